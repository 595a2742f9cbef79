#!/bin/bash
# assay export: what SimGrid simulates on an exported platform, and what an exported header computes, is what the models
# say; hostile names stay names.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
export_to() { local file=$1; shift; "$ASSAY" export "$@" -o "$file"; }

# A model file from lines; texts are as JSON has them, without blanks, and - is none:
#   model KIND UNIT OVER NAMED_BY BY... ; term NAME [COLUMN POWER log2|-]... ; group LABEL... ; part KIND NAME FROM TO
#   est NUMBER...      a number with d behind it is of a term that is dropped
#   noise KIND DISTRIBUTION CONSTANT NUMBER... ; values NAME NUMBER...
cat >model.awk <<'EOF'
function text(s) { return s == "-" ? "null" : "\"" s "\"" }
function column(name) { if (name != "-" && !(name in seen)) { seen[name] = 1; columns = columns (columns ? ", " : "") "{\"name\": " text(name) ", \"unit\": null, \"type\": null}" } }
function list(from,  i, s) { for (i = from; i <= NF; i++) s = s (i > from ? ", " : "") $i; return "[" s "]" }
function end_part() { if (part) groups = groups (parts++ ? ", " : "") part "}"; part = "" }
function end_group() { end_part(); if (count) groups = groups "]}" }
$1 == "model" { kind = $2; unit = $3; over = $4; named = $5; for (i = 6; i <= NF; i++) by[++bys] = $i; column(over) }
$1 == "term" {
    factors = ""
    for (i = 3; i < NF; i += 3) { column($i); factors = factors (i > 3 ? ", " : "") "{\"column\": " text($i) ", \"power\": " $(i + 1) ", \"function\": " text($(i + 2)) "}" }
    term[++terms] = $2; formula = formula (terms > 1 ? ", " : "") "{\"name\": " text($2) ", \"unit\": null, \"factors\": [" factors "]}"
}
$1 == "group" {
    end_group(); labels = ""
    for (i = 1; i <= bys; i++) labels = labels (i > 1 ? ", " : "") text(by[i]) ": " text($(i + 1))
    groups = groups (count++ ? ",\n " : "") "{\"labels\": {" labels "}, \"rows\": 4, \"values\": {}, \"notes\": [], \"parts\": ["; parts = 0
}
$1 == "part" { end_part(); part = "{\"kind\": " text($2) ", \"name\": " text($3) ($4 == "-" ? "" : ", \"from\": " $4) ($5 == "-" ? "" : ", \"to\": " $5) ", \"covariance\": null, \"domain\": {}" }
$1 == "est" {
    part = part ", \"estimates\": ["
    for (i = 2; i <= NF; i++) part = part (i > 2 ? ", " : "") "{\"term\": " text(term[i - 1]) ", \"estimate\": " $i + 0 ", \"standard_error\": null, \"t\": null, \"p\": null" ($i ~ /d/ ? ", \"dropped\": true" : "") "}"
    part = part "]"
}
$1 == "noise" { part = part ", \"noise\": {\"kind\": " text($2) ", \"distribution\": " text($3) ", \"method\": \"rule\", \"constant\": " $4 ($2 == "N-2" ? ", \"coefficients\": " list(5) : "") "}" }
$1 == "values" { part = part ", \"values\": {"; for (i = 2; i < NF; i += 2) part = part (i > 2 ? ", " : "") text($i) ": " $(i + 1); part = part "}" }
END {
    end_group(); all = ""
    for (i = 1; i <= bys; i++) all = all (i > 1 ? ", " : "") text(by[i])
    print "{\"assay_model\": 2, \"kind\": " text(kind) ", \"over\": " text(over) ", \"named_by\": " text(named) ", \"response\": {\"name\": \"t\", \"unit\": " text(unit) "},"
    print "\"weights\": null, \"by\": [" all "], \"terms\": [" formula "], \"columns\": [" columns "], \"origin\": {\"plugin\": \"p\", \"version\": \"1\", \"engine\": \"1\", \"created\": \"2024-01-01T00:00:00Z\", \"rows\": 4, \"settings\": {}, \"inputs\": []},"
    print "\"units\": {}, \"groups\": [" groups "],\n\"skipped\": []}"
}
EOF
model() { awk -v CONVFMT=%.17g -v OFMT=%.17g -f model.awk; } # lines on stdin

# ---- Platforms

# Lines that are known, in microseconds: segment e = 1, 2, 3 is below 1000 bytes, from there, and from 40000 on. Both halves of
# a ping-pong of (40 + 0.003 size) e take os + net + or, which is charged below 40000; latency 10 us, bandwidth 1 GB/s.
awk 'BEGIN {
    print "model smpi us size operation"; print "term 1"; print "term size size 1 -"; print "group"
    split("- 1000 40000 -", bound)
    for (o = 1; o <= 4; o++) for (e = 1; e <= 3; e++) {
        name = o == 1 ? "Isend" : o == 2 ? "Send" : o == 3 ? "Recv" : "PingPong"
        print "part segment", name, bound[e], bound[e + 1]
        print "est", (o < 4 ? o : 40) * e, (o < 4 ? o * 1e-4 : 0.003) * e
        if (o < 4) print "values charged", e < 3
        else printf "values lat_factor %.17g bw_factor %.17g\n", (40 - (e < 3 ? 3 : 0)) * e / 2 / 10, 1 / (((0.003 - (e < 3 ? 0.0003 : 0)) * e / 2) * 1e-6 * 1e9)
    }
    print "part whole Iprobe - -\nest 0.3 0\npart whole Test - -\nest 0.2 0\npart whole Wtime - -\nest 0.04 0"
    print "part protocol protocol - -\nest 0 0\nvalues latency 1e-05 bandwidth 1e9 async_small_thresh 20000 send_is_detached_thresh 40001"
}' | sed 's/part segment \([A-Za-z]*\) - -/part segment \1 40000 -/' >smpi.txt
model <smpi.txt >smpi.json
usual=(--set hosts=4 --set cores=2 --set loopback-latency=1us --set loopback-bandwidth=20GB/s)
check "a platform of SMPI's tables" export_to usual.xml simgrid smpi.json "${usual[@]}"
report $(contains usual.xml '<prop id="smpi/or" value="0:3[.0-9e-]+:[.0-9e-]+;1000:6[.0-9e-]+:[.0-9e-]+;40000:0:0"/>'; echo $?) \
    "has their breaks, and costs 0 where none is charged"
report $(contains usual.xml '<prop id="smpi/async-small-thresh" value="20000"/>'; echo $?) "thresholds by the names of SimGrid"
report $(contains usual.xml 'from smpi.json \(SHA-256 '"$(sha256sum smpi.json | cut -d' ' -f1)"'\)'; echo $?) "the model by its hash"
check "other names" export_to names.xml simgrid smpi.json --set radical=1-3,7 --set 'prefix=a&<b' --set 'suffix="x' \
    --set config=smpi/iprobe=1e-6,smpi/host-speed=2f
report $(contains names.xml 'prefix="a&amp;&lt;b" suffix="&quot;x" radical="1-3,7"'; echo $?) "are escaped"
report $([ "$(grep -c 'smpi/iprobe\|smpi/host-speed' names.xml)" = 2 ] && contains names.xml '"smpi/iprobe" value="1e-6"'; echo $?) \
    "what the user sets is not the model's, too"

# A message of N bytes is of N + 16 to the network; SMPI takes an entry of a table for what is larger than its size.
cat >expect.awk <<'EOF'
function segment(n) { return n < 1000 ? 1 : n < 40000 ? 2 : 3 }
function near(a, b) { return (a > b ? a - b : b - a) <= 1e-12 * b }
$1 == "host" { next }
{
    n = $1; wire = n + 16
    cost = segment(n - 1); net = segment(wire - 1)
    os = cost < 3 ? (2e-6 + 2e-10 * n) * cost : 0
    or = cost < 3 ? (3e-6 + 3e-10 * n) * cost : 0
    delay = (4e-5 * net - (net < 3 ? 3e-6 * net : 0)) / 2
    pace = (3e-9 * net - (net < 3 ? 3e-10 * net : 0)) / 2
    time = 2 * (delay + pace * wire + (n < 40001 ? os + or : 0))
    if (!near($3, time)) { printf "# %d bytes: %.17g s; expected %.17g\n", n, $3, time; bad = 1 }
    if (n < 40000 && !near($2, os)) { printf "# %d bytes: MPI_Send %.17g s; expected %.17g\n", n, $2, os; bad = 1 }
    lines++
}
END { exit bad || lines != 16 }
EOF
sizes="0 1 100 984 985 999 1000 1001 20000 39983 39984 39999 40000 40001 200000 1000000"
simgrid=
if ! command -v smpirun >smpirun.txt 2>&1 || ! command -v smpicc >>smpirun.txt 2>&1; then
    skip "what SimGrid simulates" "no SimGrid here (libsimgrid-dev)"
else
    check "a program for SimGrid" smpicc -O1 -o ping-pong "$here/simgrid-ping-pong.c"
    [ -x ping-pong ] && simgrid=1
fi
# simulate PLATFORM HOSTS... : rank after rank
simulate() {
    local platform=$1; shift
    printf '%s\n' "$@" >hosts.txt
    # shellcheck disable=SC2086 # the sizes are words
    timeout 60 smpirun -np "$#" -platform "$platform" -hostfile hosts.txt --cfg=smpi/simulate-computation:no \
        --cfg=smpi/wtime:0 --log=root.thres:warning ./ping-pong $sizes </dev/null
}
is_expected() { report $(awk -f expect.awk .out >&2; echo $?) "$1"; }
awk 'BEGIN { # three hosts with two cores; m*n*k takes (h + c/2) 1e-10 s on core c of host h, m*n takes 1e-9 s
    print "model linear s - - node core"; print "term m*n*k m 1 - n 1 - k 1 -"; print "term m*n m 1 - n 1 -"
    for (h = 1; h <= 3; h++) for (c = 0; c < 2; c++) print "group dahu-" h ".site " c "\npart whole - - -\nest", (h + 0.5 * c) * 1e-10, 1e-9 "\nnoise N-1 normal 0"
}' | tee dgemm.txt | model >dgemm.json
check "hosts from a model" export_to hosts.xml simgrid smpi.json speeds=dgemm.json --set cores=2 --set loopback-latency=0s \
    --set loopback-bandwidth=20GB/s --set config=smpi/host-speed=1f
if [ "$simgrid" ]; then
    check "SimGrid loads it" simulate usual.xml node-0 node-3
    report $([ ! -s .err ]; echo $?) "without a warning"
    is_expected "and simulates what the model says"
    check "SimGrid loads odd names" simulate names.xml 'a&<b1"x' 'a&<b7"x'
    is_expected "and simulates the same"
    report $(contains .out '^host a&<b7"x 1000000000 1$'; echo $?) "hosts are called as asked"
    export_to tree.xml simgrid smpi.json --set radical=0-7 --set 'fat-tree=2;4,2;1,2;1,1' --set speed=38.4e9 --set cores=16
    check "a fat tree" simulate tree.xml node-0 node-1
    is_expected "is the same between neighbours"
    report $(contains .out '^host node-1 38400000000 16$'; echo $?) "hosts have the speed and the cores"
    export_to backbone.xml simgrid smpi.json --set hosts=4 --set backbone-latency=2us --set backbone-bandwidth=100GB/s
    check "a backbone" simulate backbone.xml node-0 node-1
    is_expected "is a part of the way"
    check "SimGrid loads hosts of a model" simulate hosts.xml dahu-1.site dahu-3.site
    is_expected "with the same network"
    report $(awk '$1 == "host" { e = 2e10 / (($2 == "dahu-1.site" ? 1 : 3) + 0.25); if ($3 > e * (1 + 1e-9) || $3 < e * (1 - 1e-9) || $4 != 2) bad = 1; n++ }
        END { exit bad || n != 2 }' .out; echo $?) "and the mean speed of their cores"
fi

# Durations of messages alone: 2 us + 1 ns/byte, and 5 us + 0.5 ns/byte from 5000 bytes on; there and back.
messages() { echo "model piecewise us size -
    term size size 1 -
    term 1
    group a
    part segment - - 5000
    est $1 4
    part segment - 4999.5 -
    est 0.001 10"; }
messages 0.002 | sed 's/5000$/4999.5/' | model >line.json
check "a platform of messages" export_to line.xml simgrid line.json --set hosts=2 --set round-trip=yes
report $(contains line.xml 'lat-factor" value="0:1;5000:2.5"' && contains line.xml 'bw-factor" value="0:0.50*[1-9]?;5000:1(.0+[1-9])?"' &&
    contains line.xml 'Between two hosts: 2e-06 s and 1999999999.99[0-9]* B/s'; echo $?) "has factors of the smallest latency and the largest bandwidth"
[ "$simgrid" ] && check "that SimGrid loads" simulate line.xml node-0 node-1

# The factors as they were published, with the names and numbers that SimGrid reads, against ours.
if [ -r "$data/smpi/miriel/Isend.csv.gz" ] && [ "$simgrid" ]; then
    { echo op,size,start,duration; for name in Isend.csv.gz Recv.csv.gz PingPong.csv.gz Iprobe.csv Test.csv Wtime.csv; do
        gzip -dcf "$data/smpi/miriel/$name"; done; } >miriel.csv
    check "miriel" "$ASSAY" fit smpi miriel.csv --set latency=50us --set bandwidth=1GB/s --set breaks=1420,65536,131072,400000 \
        --set async-small-thresh=17408 --set send-is-detached-thresh=17408 --set rules=2016-06 -o miriel.json
    check "as a platform" export_to ours.xml simgrid miriel.json --set hosts=2
    { sed '/<config/q' ours.xml; sed -n '/<prop/{s/thres"/thresh"/;s/4e+05/400000/;p}' "$data/smpi/miriel/published_output.xml"
      sed -n '/host-speed/,$p' ours.xml; } >published.xml
    sizes="0 1 1403 1404 1405 1419 1420 1421 17407 17408 65519 65520 65521 131056 131057 399984 399985 1000000"
    check "the platform as it was published" simulate published.xml node-0 node-1
    cp .out published.txt
    check "ours" simulate ours.xml node-0 node-1
    report $(paste -d' ' published.txt .out | awk '$1 == "host" { next } { n++; d = $3 - $6; if ($1 != $4 || (d < 0 ? -d : d) > 1e-13 * $3) { print "# " $0; bad = 1 } }
        END { exit bad || n != 18 }' >&2; echo $?) "takes the same times to 13 digits"
else
    skip "the published platform" "no data (ASSAY_TEST_DATA), or no SimGrid"
fi

# A calibration with found breaks, a threshold, noise, and costs whose slope is 0 but for noise: SimGrid takes the time of the
# model at ten sizes around the breaks, and about that of the mean measured there.
awk 'function chance() { return 1 + 0.03 * (rand() + rand() + rand() - 1.5) }
    BEGIN {
        srand(7); print "operation,size,duration"
        for (i = 0; i < 60; i++) for (k = 0; k < 5; k++) {
            s = int(exp(log(1048576) * (i + 0.5) / 60)); eager = s < 60000; b = s < 1400 ? 1e-9 : s < 60000 ? 2e-9 : 1e-9
            send = s < 1400 ? 2e-6 : 3e-6; net = (s < 1400 ? 1e-5 : s < 60000 ? 1.5e-5 : 4e-5) + b * s
            printf "Isend,%d,%.9g\n", s, 2e-6 * chance()
            printf "Send,%d,%.9g\n", s, (eager ? send : net) * chance()
            printf "Recv,%d,%.9g\n", s, (eager ? 1e-6 : net) * chance()
            printf "PingPong,%d,%.9g\n", s, 2 * (net + (eager ? send + 1e-6 : 0)) * chance()
        }
        print "Asynchronous,60000,0\nDetached,60000,0"
    }' >calls.csv
check "a calibration" "$ASSAY" fit smpi calls.csv --set latency=1us --set bandwidth=10GB/s -o calls.json
found=$(sed -n 's/.*breaks (By): \([0-9]*\), 60000; found.*/\1/p' .out)
report $([ "$found" -ge 1400 ] && [ "$found" -lt 1800 ]; echo $?) "has the break and the threshold"
check "as a platform" export_to calls.xml simgrid calls.json --set hosts=2
if [ "$simgrid" ]; then
    sizes="1 100 $((found - 1)) $found $((found + 1)) 20000 59999 60000 60001 1000000"
    # shellcheck disable=SC2086 # the sizes are words
    { echo operation,size; printf 'PingPong,%d\n' $sizes; } >rows.csv
    "$ASSAY" model eval calls.json --rows rows.csv -o model.csv 2>warnings.txt
    check "that SimGrid loads" simulate calls.xml node-0 node-1
    report $(awk 'FNR == NR { split($0, f, ","); model[f[1]] = f[4]; next } # size,operation,group,predicted
        $1 != "host" { n++; d = $3 / model[$1] - 1; if (d > 1e-6 || d < -1e-6) { print "# " $0 "; expected " model[$1]; bad = 1 } }
        END { exit bad || n != 10 }' model.csv .out >&2; echo $?) "takes the ping-pongs of the model"
    sizes=$(awk -F, '$1 == "PingPong" && !($2 in seen) { seen[$2]; if (n++ % 5 == 2 && n < 50) printf "%d ", $2 }' calls.csv)
    check "and at measured sizes" simulate calls.xml node-0 node-1
    report $(awk 'FNR == NR { split($0, f, ","); if (f[1] == "PingPong") { sum[f[2]] += f[3]; rows[f[2]]++ }; next }
        $1 != "host" { n++; d = $3 / (sum[$1] / rows[$1]) - 1; if (d > 0.05 || d < -0.05) { print "# " $0 "; measured " sum[$1] / rows[$1]; bad = 1 } }
        END { exit bad || n != 10 }' calls.csv .out >&2; echo $?) "those that were measured, within 5 %"
fi

# ---- Kernels

odd='term 1
term log2(size)^2 size 2 log2
term int^-1*size int -1 - size 1 -'
noise() { echo "noise N-2 $1 0.5 0 ${2:--0.25} 2"; }
{ echo "model piecewise us size -"; echo "$odd"; echo "group"; echo "part segment - - 16"; echo "est 1 2 3"; noise half-normal
  echo "part segment - 16 -"; echo "est 4 5 -6"; noise normal; } | model >segments.json
{ echo "model maximum us - -"; echo "$odd"; echo "group"; echo "part whole - - -"; echo "est 1 2 3"; } | model >maximum.json
check "a header" export_to kernels.h kernels dgemm.json segments.json roof=maximum.json
check "one without noise" export_to plain.h kernels segments.json --set noise=no
cat >kernels.c <<'EOF'
#include HEADER
#include <stdio.h>
static int near(double a, double b) { return fabs(a - b) <= 1e-9 * fabs(b); }
int main(void) {
    int bad = 0;
    double size = 8, x2 = 2, mean = 1e-6 * (1 + 2 * 9 + 3 * 4); /* microseconds, of size 8 and int 2 */
#ifndef PLAIN
    int g = assay_dgemm_group("dahu-3.site/1");
    bad |= g != 5 || ASSAY_DGEMM_GROUPS != 6 || assay_dgemm_group("dahu-3") != -1;
    bad |= !near(assay_dgemm_mean(g, 10, 20, 30), 3.5e-10 * 6000 + 1e-9 * 200) << 1;
    bad |= !near(assay_dgemm_mean(-1, 10, 20, 30), 2.25e-10 * 6000 + 1e-9 * 200) << 2;
    bad |= !isnan(assay_dgemm_mean(6, 10, 20, 30)) << 3 | !isnan(assay_dgemm_mean(-2, 1, 1, 1)) << 4;
    double sigma = 1e-6 * (0.5 - 0.25 * 9 + 2 * 4), pi = acos(-1), s = sigma / sqrt(1 - 2 / pi);
    bad |= !near(assay_segments_mean(-1, size, x2), mean) << 5;
    bad |= !near(assay_segments_sigma(0, size, x2), sigma) << 7;
    bad |= !near(assay_segments_draw(0, size, x2, -1.5), mean + 1.5 * s - s * sqrt(2 / pi)) << 8;
    bad |= !near(assay_segments_draw(0, 16, 4, 1.5), 1e-6 * (60 + 1.5 * (0.5 - 4 + 8))) << 10;
    bad |= (assay_segments_draw(0, 16, 4, -100) != 0) << 11 | (assay_segments_sigma(0, 16, 1e9) != 0) << 12;
    bad |= !near(assay_roof_mean(0, size, x2), 1e-6 * 18) << 14 | (assay_roof_sigma(0, size, x2) != 0) << 15;
#else
    bad |= (assay_segments_sigma(0, size, x2) != 0) << 1;
    bad |= !near(assay_segments_draw(0, size, x2, 3), mean) << 2;
#endif
    bad |= !near(assay_segments_mean(0, size, x2), mean) << 6;
    bad |= !near(assay_segments_mean(0, 16, 4), 1e-6 * (4 + 5 * 16 - 6 * 4)) << 9;
    if (bad)
        fprintf(stderr, "%x\n", bad);
    return bad != 0;
}
EOF
for header in kernels plain; do
    flag=; [ $header = plain ] && flag=-DPLAIN
    check "$header.h compiles as C99, every warning an error" cc -std=c99 -Wall -Wextra -Wpedantic -Werror -DHEADER="\"$header.h\"" $flag -o kernels kernels.c -lm
    check "and computes what the model says" ./kernels
done

# Terms that a part drops are ignored, whatever their value, and between segments the nearest counts, as assay has it.
{ echo "model piecewise us size -"; echo "$odd"; echo "group"; echo "part segment - 0 16"; echo "est 1 0d 3"; noise normal 0
  echo "part segment - 32 64"; echo "est 4 5 0d"; noise normal 0; echo "part segment - 100 200"; echo "est 7 0d 0d"; noise half-normal 0; } | model >gaps.json
for kind in linear maximum; do
    { echo "model $kind us - -"; echo "$odd"; echo "group"; echo "part whole - - -"; echo "est -1 0d -3"; noise normal 0; } | model >$kind.json
done
check "dropped terms" export_to dropped.h kernels gaps.json linear.json maximum.json
cat >dropped.c <<'EOF'
#include "dropped.h"
#include <stdio.h>
#define ROW(kernel) printf("%.17g,%g,%.17g,%.17g\n", size, x, 1e6 * assay_##kernel##_mean(0, size, x), 1e6 * assay_##kernel##_sigma(0, size, x))
int main(int argc, char **argv) {
    static const double sizes[] = {-5, 0, 1, 8, 15.5, 16, 20, 24, 24.5, 31, 32, 50, 64, 82, 82.5, 100, 150, 200, 1e6, 0, 20};
    printf("size,int,mean,sigma\n");
    for (int i = 0; argc == 2 && i < 21; i++) {
        double size = sizes[i], x = i < 19 ? 2 : 0;
        switch (argv[1][0]) {
        case 'g': ROW(gaps); break;
        case 'l': ROW(linear); break;
        default: ROW(maximum);
        }
    }
    return !isnan(assay_gaps_mean(0, NAN, 2)) | !isnan(assay_linear_mean(-1, 1, NAN)) | !isnan(assay_maximum_mean(-1, 1, NAN));
}
EOF
check "compile" cc -std=c99 -Wall -Wextra -Wpedantic -Werror -o dropped dropped.c -lm
for kind in gaps linear maximum; do
    check "the rows ($kind)" ./dropped $kind
    cp .out theirs.csv
    "$ASSAY" model eval $kind.json --rows theirs.csv -o ours.csv 2>warnings.txt
    report $(awk -F, 'function same(a, b, d) { d = a - b; return a ~ /n/ ? b == "" : b != "" && (d < 0 ? -d : d) <= 1e-14 * (b < 0 ? -b : b) }
        FNR == 1 { file++; for (i = 1; i <= NF; i++) { if ($i == "predicted") mean = i; if ($i == "sigma") sigma = i }; next }
        file == 1 { m[FNR] = $3; s[FNR] = $4; next }
        { n++; if (!same(m[FNR], $mean) || (s[FNR] > 0 && !same(s[FNR], $sigma))) { print "# " $0 " here " m[FNR] " " s[FNR]; bad = 1 } }
        END { exit bad || n != 21 }' theirs.csv ours.csv >&2; echo $?) "are as assay evaluates them"
done

# Columns and groups that C or C++ has other uses for, next to headers full of macros; usual names have only the prefix.
columns() { # NAME... of a linear model; the n-th coefficient is n
    local name n=0 est=
    { echo "model linear us - - node"; for name; do echo "term $name $name 1 -"; est+=" $((++n))"; done
      printf '%s\n' "group a\\\"?\\u0001*/\\\\" "part whole - - -" "est$est"; } | model
}
columns m n k z x size msg_size M N K msgSize x2 value sigma part group >a.json
columns 1abc x1abc x3 3 'a:b' a_b 'a(b)' _ __ é '*/' '/*' 'a\\' '??/' assay_z ASSAY_E_GROUPS >b.json
columns sqrt asm log2 typeof true false nullptr linux unix class new I NAN HUGE_VAL EOF NULL >c.json
columns strcmp int this template isnan fabs and xor bool complex errno stdin INFINITY thread_local terms mean >d.json
check "odd columns" export_to odd.h kernels [a-d].json
report $(contains odd.h 'assay_a_mean\(int group, double x_m, double x_n, double x_k, double x_z, double x_x, double x_size,'; echo $?) "are arguments"
cat >odd.c <<'EOF'
#ifndef __cplusplus
#include <complex.h>
#include <iso646.h>
#endif
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include "odd.h"
#define SIXTEEN 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16
#define GOOD(kernel) (fabs(assay_##kernel##_draw(0, SIXTEEN, 1) - 1496e-6) < 1e-12 && assay_##kernel##_sigma(0, SIXTEEN) <= 0)
int main(void) {
    return !(GOOD(a) && GOOD(b) && GOOD(c) && GOOD(d) && assay_b_group("a\"\?\001*/\\") == 0);
}
EOF
for compiler in "cc -std=c99 -Wpedantic" "cc -std=gnu2x" "g++ -std=c++11 -Wpedantic" "g++ -std=gnu++20"; do
    if command -v ${compiler%% *} >compiler.txt; then
        language=c; [ "${compiler%% *}" = g++ ] && language=c++
        check "they compile ($compiler)" $compiler -Wall -Wextra -Werror -x $language -o odd odd.c -lm
        check "each argument in its place" ./odd
    else
        skip "they compile ($compiler)" "no ${compiler%% *}"
    fi
done

# dgemm_model.c as HPL includes it: node 3, cpu 1 is its cpu 7; a node it does not know is the mean.
sed 's/ core$/ cpu/' dgemm.txt | model >cpus.json
sed 's/^noise.*/noise N-1 half-normal 0.001/; s/ core$/ cpu/' dgemm.txt | model >noisy.json
sed '/^noise/d; s/ core$//; s/^group dahu-1.*/group dahu-7/; /^group/b; s/^est.*/est 3.5e-10 1e-9/' dgemm.txt | awk '/^group/ && n++ { exit } 1' | model >node.json
cat >hpl.c <<'EOF'
static int cpu;
int get_cpuid(void) { return cpu; }
int get_nodeid(void) { return cpu; }
double random_normal(void) { return 0; }
double random_halfnormal_shifted(double a, double b) { return a + 2 * b; }
/* As src/blas/HPL_dgemm.c has it, with what goes before and after the file; sizes whose product is no int. */
double dgemm_time(int M, int N, int K) {
    double mnk = M*(double)N*K;
    double mn = M*N;
    (void)mnk, (void)mn;
#include MODEL
    return 0;
}
static int near(double a, double b) { return a > b * (1 - 1e-9) && a < b * (1 + 1e-9); }
int main(void) {
    cpu = 7;
    int bad = !near(dgemm_time(1000, 2000, 3000), 3.5e-10 * 6e9 + 1e-9 * 2e6 + NOISE);
    cpu = 99;
    return bad | !near(dgemm_time(1000, 2000, 3000), ALL * 6e9 + 1e-9 * 2e6 + NOISE) << 1;
}
EOF
for model in cpus plain noisy node; do
    noise=0 all=2.25e-10 set=yes file=$model
    case $model in noisy) noise=2e-3 ;; node) all=3.5e-10 ;; plain) set=no file=noisy ;; esac
    check "HPL's dgemm ($model)" export_to ${model}_model.c kernels $file.json --set form=hpl-smpi --set noise=$set
    check "compiles" cc -std=c99 -Wall -Wextra -Werror -DNOISE="$noise" -DALL="$all" -DMODEL="\"${model}_model.c\"" -o hpl hpl.c -lm
    check "and takes what the model says" ./hpl
done
report $(contains node_model.c 'get_nodeid\(\)' && contains cpus_model.c '^/\* The body of dgemm_time\(M, N, K\) of HPL on SMPI'; echo $?) "by node or cpu"

# ---- Refusals

of() { sed "$2" "$1" | model >bad.json; shift 2; "$ASSAY" export "$@"; } # of LINES CHANGE EXPORT...
smpi() { refuse "$1" 2 "$2" of smpi.txt "$3" simgrid bad.json --set hosts=2; }
smpi "a latency below 0" "smpi/lat-factor from the model bad.json is -1 for messages from 0 byte on; expected 0 or more" 's/lat_factor 1.85[0-9]* /lat_factor -1 /'
smpi "no bandwidth" "smpi/bw-factor from the model bad.json is 0 for messages from 40000 byte on; expected more than 0" 's/\(lat_factor 6.*bw_factor\).*/\1 0/'
smpi "a factor that is missing" "smpi/lat-factor from the model bad.json is nan for messages from 0 byte" 's/lat_factor 1.85[0-9]* /other 0 /'
smpi "a cost below 0" "smpi/os from the model bad.json is -2e-06 for messages from 0 byte" 's/^est 2 /est -2 /'
smpi "a call below 0" "smpi/iprobe from the model bad.json is -3e-07" 's/^est 0.3/est -0.3/'
smpi "no base" "bad.json has no part 'protocol'" 's/protocol protocol/protocol other/'
smpi "a base of 0" "bad.json has a latency of 0 s" 's/latency 1e-05/latency 0/'
smpi "no ping-pong" "bad.json has no part 'PingPong'" 's/PingPong/Other/'
smpi "segments out of order" "begins at 1000 byte, and the segment before it at 1000" '/segment PingPong 40000/s/40000 -/999.5 -/; s/segment PingPong 1000 40000/segment PingPong 1000 1000.5/;
    /PingPong 1000/,/values/{/values/a part segment Other - -\nest 0 0
    }; s/PingPong 999.5/PingPong 999.5/'
smpi "other terms" "the terms of bad.json do not describe a network" 's/size size 1 -/size size 2 -/'
smpi "no time" "Hz" 's/^model smpi us/model smpi Hz/'
refuse "another group" 2 "line.json has 1 groups, and 'group' is b; expected the name of one, such as all" "$ASSAY" export simgrid line.json --set group=b --set hosts=2
refuse "another base" 2 "'latency' or 'bandwidth' is set" "$ASSAY" export simgrid smpi.json --set hosts=2 --set latency=20us
refuse "no hosts" 2 "the number of hosts is not known" "$ASSAY" export simgrid smpi.json
refuse "hosts twice" 2 "the number of hosts is set twice" "$ASSAY" export simgrid smpi.json --set hosts=2 --set radical=1
refuse "no network" 2 "the latency between two hosts is not known" "$ASSAY" export simgrid --set hosts=2
refuse "two networks" 2 "2 models are given for the role 'network'; expected a single model: remove the others" "$ASSAY" export simgrid smpi.json network=line.json --set hosts=2
refuse "a speed beside those of a model" 2 "'speed' describes equal hosts" "$ASSAY" export simgrid smpi.json speeds=dgemm.json --set speed=1e9
refuse "half of a link" 2 "'loopback-bandwidth' is set without 'loopback-latency'" "$ASSAY" export simgrid smpi.json --set hosts=8 --set loopback-bandwidth=1GB/s
refuse "a slow backbone" 2 "the backbone has a latency of 1 s" "$ASSAY" export simgrid smpi.json --set hosts=8 --set backbone-latency=1s --set backbone-bandwidth=1GB/s
for name in 'a b' $'a\n' $'\x7f' $'\xff' "$(printf '%01001d' 0)"; do
    refuse "a name (${#name})" 2 "prefix .* is not possible in a platform" "$ASSAY" export simgrid smpi.json --set hosts=8 --set "prefix=$name"
done
refuse "a setting" 2 "'smpi/os' is not a setting of SimGrid" "$ASSAY" export simgrid smpi.json --set hosts=8 --set config=smpi/os
refuse "a host without a name" 2 "the host '' is not possible in a platform" of dgemm.txt 's/dahu-2.site//; s/^group  /group _ /; s/ node core/ core node/; s/^group _ \(.\)/group \1/' \
    simgrid smpi.json speeds=bad.json
refuse "hosts that are none" 2 "bad.json has a single fit for all" of dgemm.txt 's/ node core//' simgrid smpi.json speeds=bad.json
refuse "a column of hosts" 2 "none of their columns is called node or host" of dgemm.txt 's/ node core/ a b/' simgrid smpi.json speeds=bad.json
refuse "no speed" 2 "'dahu-1.site/0' of bad.json has the coefficient 0 s" of dgemm.txt 's/^est 1e-10/est 0/' simgrid smpi.json speeds=bad.json
refuse "no term of the highest degree" 2 "no term of bad.json gives the speed" of dgemm.txt 's/^term m.n .*/term k*m k 2 - m 1 -/' simgrid smpi.json speeds=bad.json
refuse "a population" 2 "bad.json: the model has the kind 'population'.*linear" of dgemm.txt 's/model linear/model population/' simgrid smpi.json speeds=bad.json

sed 's/"function": null/"function": null, "level": "a"/' dgemm.json >level.json
refuse "a category" 2 "the term 'm\*n\*k' of level.json is not a product of numbers" "$ASSAY" export kernels level.json
sed 's/"noise": {[^}]*}/"noise": {"kind": "mixture", "distribution": "normal", "components": [{"weight": 1, "mean": 0, "sigma": 1}]}/' dgemm.json >mixture.json
refuse "a mixture" 2 "the noise of the group 'dahu-1.site/0' of mixture.json is a mixture.* or set noise=no" "$ASSAY" export kernels mixture.json
check "without its noise" export_to mixture.h kernels mixture.json --set noise=no
refuse "SMPI's tables as a kernel" 2 "has the kind 'smpi', which no role accepts; expected .*kernel \(linear, piecewise, maximum\)" "$ASSAY" export kernels smpi.json
refuse "a name that C cannot have" 2 "'2x' cannot be part of a name in C" "$ASSAY" export kernels 2x=dgemm.json
refuse "two of a name" 2 "two kernels are called 'dgemm'" "$ASSAY" export kernels dgemm.json dgemm=cpus.json
refuse "cpus that HPL does not know" 2 "'dahu-1.site/2' of bad.json has no process number for HPL" of dgemm.txt 's/ core$/ cpu/; s/^group dahu-1.site 1/group dahu-1.site 2/' \
    kernels bad.json --set form=hpl-smpi
refuse "groups that HPL does not know" 2 "'dahu-1.site/0' of dgemm.json has no process number" "$ASSAY" export kernels dgemm.json --set form=hpl-smpi
refuse "terms that HPL does not know" 2 "'log2\(size\)\^2' of linear.json is not a product of m, n and k" "$ASSAY" export kernels linear.json --set form=hpl-smpi
refuse "the model overwritten" 2 "smpi.json" "$ASSAY" export simgrid smpi.json --set hosts=2 -o smpi.json
finish
