#!/bin/bash
# assay fit smpi, assay export: what SimGrid simulates on an exported platform is what the model says, and a header of
# kernels says what the model says.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
output() { contains "$scratch/.out" "$1"; } # of the last `check`
contains() { grep -qE -- "$2" "$1" || { echo "# '$1' does not match: $2"; sed 's/^/# /' "$1" | head -20; return 1; } >&2; }

# Lines that are known: below 1000 byte, from there, and from 40000 on; both halves of a ping-pong take os + net + or.
awk 'BEGIN {
    print "operation,size,duration"
    n = split("8 100 500 999 1000 3000 20000 39999 40000 200000 900000", sizes)
    for (i = 1; i <= n; i++) for (k = 0; k < 10; k++) {
        s = sizes[i]; e = s < 1000 ? 1 : s < 40000 ? 2 : 3
        printf "Isend,%d,%.17g\n", s, (1e-6 + 1e-10 * s) * e
        printf "Send,%d,%.17g\n", s, (2e-6 + 2e-10 * s) * e
        printf "Recv,%d,%.17g\n", s, (3e-6 + 3e-10 * s) * e
        printf "PingPong,%d,%.17g\n", s, (4e-5 + 3e-9 * s) * e
    }
    for (k = 0; k < 10; k++) { print "Iprobe,1,3e-7"; print "Test,1,2e-7" }
    print "Wtime,0,0.4"
}' >calls.csv
fit() { "$ASSAY" fit smpi calls.csv --set latency=10us --set bandwidth=1GB/s --set break1=1000 --set break2=40000 "$@"; }
check "a model" fit --set send-is-detached-thresh=40001 --set async-small-thresh=20000 -o smpi.json
told() {
    [ "$(grep -cE '^  PingPong( +[0-9.e+-]+){7}' .out)" -eq 3 ] && output '^  name +from +to +lat_factor +\+- +bw_factor' &&
        output '^  Send +(8|0) +1000 +2e-06 .* yes ' && output '^  Isend +40000 .* no ' && output '^  Wtime +4e-08 ' &&
        output '^    async_small_thresh +20000 By$' && output '^    bandwidth +1e\+09 By/s$'
}
report $(told; echo $?) "its factors, costs and thresholds are printed"
check "it is shown" "$ASSAY" model show smpi.json
report $(told; echo $?) "the same way"
check "it is read" "$ASSAY" export simgrid smpi.json --hosts 4 --cores 2 --loopback-latency 1us \
    --loopback-bandwidth 20GB/s --exact-breaks -o exact.xml
report $(contains exact.xml '<prop id="smpi/or" value="0:3[.0-9e-]+:[.0-9e-]+;999:[.0-9e-]+:[.0-9e-]+;39999:0:0"/>'; echo $?) \
    "its costs change one byte below the break, and end at the threshold"
report $(contains exact.xml '<prop id="smpi/async-small-thresh" value="20000"/>'; echo $?) "thresholds by the names SimGrid has now"
report $(contains exact.xml 'from smpi.json \(SHA-256 '"$(sha256sum smpi.json | cut -d' ' -f1)"'\)'; echo $?) "the model by its hash"
check "the usual breaks" "$ASSAY" export simgrid smpi.json --radical 1-3,7 --prefix 'a&<b' --suffix '"x' -o usual.xml
report $(contains usual.xml 'lat-factor" value="0:[.0-9e-]+;1000:[.0-9e-]+;40000:'; echo $?) "are those of the model"
report $(contains usual.xml 'prefix="a&amp;&lt;b" suffix="&quot;x" radical="1-3,7"'; echo $?) "names are escaped"

# A message of N bytes is of N + 16 to the network; os, or as they are. EXACT 1: segments by N for all.
cat >expect.awk <<'EOF'
function segment(n) { return n < 1000 ? 1 : n < 40000 ? 2 : 3 }
function near(a, b) { return (a > b ? a - b : b - a) <= 1e-12 * b }
$1 == "host" { next }
{
    n = $1; wire = n + 16
    cost = exact ? segment(n) : segment(n - 1); net = exact ? segment(n) : segment(wire - 1)
    os = cost < 3 ? (2e-6 + 2e-10 * n) * cost : 0
    or = cost < 3 ? (3e-6 + 3e-10 * n) * cost : 0
    # or is charged below 40000 and is a part of the ping-pong there
    delay = ((4e-5 + 0) * net - (net < 3 ? 3e-6 * net : 0)) / 2
    pace = (3e-9 * net - (net < 3 ? 3e-10 * net : 0)) / 2
    if (within) { delay *= 0; pace /= 20 } # of the link whose factors these are
    time = 2 * (delay + pace * wire + (n < 40001 ? os + or : 0))
    if (!near($3, time)) { printf "# %d bytes: %.17g s; expected %.17g\n", n, $3, time; bad = 1 }
    if (n < 40000 && !near($2, os)) { printf "# %d bytes: MPI_Send %.17g s; expected %.17g\n", n, $2, os; bad = 1 }
    lines++
}
END { exit bad || lines != 16 }
EOF
sizes="0 1 100 984 985 999 1000 1001 20000 39983 39984 39999 40000 40001 200000 1000000"
if ! command -v smpirun >smpirun.txt 2>&1 || ! command -v smpicc >>smpirun.txt 2>&1; then
    skip "what SimGrid simulates" "no SimGrid here (libsimgrid-dev)"
    simgrid=
else
    check "a program for SimGrid" smpicc -O1 -o ping-pong "$here/simgrid-ping-pong.c"
    [ -x ping-pong ] && simgrid=1 || simgrid=
fi
# simulate PLATFORM HOSTS... : rank after rank
simulate() {
    local platform=$1; shift
    printf '%s\n' "$@" >hosts.txt
    # shellcheck disable=SC2086 # the sizes are words
    timeout 60 smpirun -np "$#" -platform "$platform" -hostfile hosts.txt --cfg=smpi/simulate-computation:no \
        --cfg=smpi/wtime:0 --log=root.thres:warning ./ping-pong $sizes </dev/null
}
if [ "$simgrid" ]; then
    check "SimGrid loads it" simulate exact.xml node-0 node-3
    cp .out exact.txt
    report $([ ! -s .err ]; echo $?) "without a warning"
    report $(awk -v exact=1 -f expect.awk exact.txt >&2; echo $?) "and simulates what the model says, to the byte"
    check "the usual breaks, and odd names" simulate usual.xml 'a&<b1"x' 'a&<b7"x'
    report $(awk -v exact=0 -f expect.awk .out >&2; echo $?) "change as SMPI counts sizes"
    report $(contains .out '^host a&<b7"x 1000000000 1$'; echo $?) "hosts are called as asked"

    "$ASSAY" export simgrid smpi.json --radical 0-7 --fat-tree '2;4,2;1,2;1,1' --speed 38.4Gflop/s --cores 16 --exact-breaks -o tree.xml
    check "a fat tree" simulate tree.xml node-0 node-1
    report $(awk -v exact=1 -f expect.awk .out >&2; echo $?) "is the same between neighbours"
    report $(contains .out '^host node-1 38400000000 16$'; echo $?) "hosts have the speed and the cores"
    "$ASSAY" export simgrid smpi.json -n 4 --backbone-latency 2us --backbone-bandwidth 100GB/s --exact-breaks -o backbone.xml
    check "a backbone" simulate backbone.xml node-0 node-1
    report $(awk -v exact=1 -f expect.awk .out >&2; echo $?) "is a part of the way"
fi

# Hosts of their own speeds: three nodes with two cores; mnk takes c x 1e-10 s, so a core has 2e10 / c flop/s.
awk 'BEGIN {
    print "node,core,m,n,k,duration"
    for (h = 1; h <= 3; h++) for (c = 0; c < 2; c++) for (i = 1; i <= 9; i++) {
        m = 100 * i; n = 100 * (i * 4 % 9 + 1); k = 100 * (i * 7 % 9 + 1)
        printf "dahu-%d.site,%d,%d,%d,%d,%.17g\n", h, c, m, n, k, (h + 0.5 * c) * 1e-10 * m * n * k + 1e-9 * m * n
    }
}' >dgemm.csv
check "a model of hosts" "$ASSAY" fit dgemm.csv --terms m*n*k+m*n --by node,core -o dgemm.json
check "hosts from it" "$ASSAY" export simgrid smpi.json dgemm.json --cores 2 --exact-breaks --loopback-latency 0s \
    --loopback-bandwidth 20GB/s -c smpi/host-speed=1f -o hosts.xml
if [ "$simgrid" ]; then
    check "SimGrid loads them" simulate hosts.xml dahu-1.site dahu-3.site
    cp .out hosts.txt.out
    report $(awk -v exact=1 -f expect.awk hosts.txt.out >&2; echo $?) "with the same network"
    report $(awk '$1 == "host" { e = 2e10 / (($2 == "dahu-1.site" ? 1 : 3) + 0.25); if ($3 > e * (1 + 1e-9) || $3 < e * (1 - 1e-9) || $4 != 2) bad = 1; n++ }
        END { exit bad || n != 2 }' hosts.txt.out; echo $?) "and the mean speed of their cores"
    check "messages within a host" simulate hosts.xml dahu-2.site dahu-2.site
    report $(awk -v exact=1 -v within=1 -f expect.awk .out >&2; echo $?) "take the loopback"
fi

# A model of messages alone: 2 us + 1 byte/ns below 5000 byte, 5 us + 0.5 ns/byte from there.
awk 'BEGIN { print "size,duration"; for (s = 100; s <= 20000; s += 100) printf "%d,%.17g\n", s, s < 5000 ? 2e-6 + 1e-9 * s : 5e-6 + 5e-10 * s }' >messages.csv
check "one line of messages" "$ASSAY" fit linear messages.csv --terms 1+size -o line.json
check "is a network" "$ASSAY" export simgrid line.json --hosts 2 -o line.xml
report $(contains line.xml 'lat-factor" value="0:1"' && contains line.xml 'bw-factor" value="0:1"'; echo $?) "with factors of 1"
[ "$simgrid" ] && check "that SimGrid loads" simulate line.xml node-0 node-1

# The factors as they were published, with the names and numbers that SimGrid reads, against ours.
if [ -r "$data/smpi/miriel/Isend.csv.gz" ] && [ "$simgrid" ]; then
    { echo op,size,start,duration; for name in Isend.csv.gz Recv.csv.gz PingPong.csv.gz Iprobe.csv Test.csv Wtime.csv; do
        gzip -dcf "$data/smpi/miriel/$name"; done; } >miriel.csv
    check "miriel" "$ASSAY" fit smpi miriel.csv --set latency=50us --set bandwidth=1GB/s --set break1=1420 --set break2=65536 \
        --set break3=131072 --set break4=400000 --set async-small-thresh=17408 --set send-is-detached-thresh=17408 \
        --set quantile=old-r -o miriel.json
    "$ASSAY" export simgrid miriel.json --hosts 2 -o ours.xml
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

# A streamed experiment that suggests the method, in random order and in microseconds.
mkdir -p experiments/p2p
cat >experiments/p2p/experiment.yaml <<EOF
name: p2p
factors:
  operation: {type: text, choices: [Isend, Send, Recv, PingPong]}
  size: {type: integer, minimum: 0, maximum: 10000000, unit: By}
responses: {duration: {unit: us}}
run: {streamed: [awk, -F, ",", -f, "$PWD/experiments/p2p/p2p.awk"], placement: node}
model: {method: smpi, response: duration, terms: operation, sizes: [size]}
EOF
cat >experiments/p2p/p2p.awk <<'EOF'
NR == 1 { print "unit,start,duration"; fflush(); next }
{ a = $2 == "Isend" ? 1 : $2 == "Send" ? 2 : $2 == "Recv" ? 3 : 40; printf "%s,%d,%.17g\n", $1, NR, a + a * 1e-4 * $3; fflush() }
EOF
awk 'BEGIN { print "operation,size"; for (k = 0; k < 5; k++) for (o = 1; o <= 4; o++) for (s = 8; s < 2e5; s *= 4)
    print (o == 1 ? "Isend" : o == 2 ? "Send" : o == 3 ? "Recv" : "PingPong") "," s }' >p2p.csv
printf 'experiment: p2p\ndesign: p2p.csv\n' >p2p.yaml
check "an experiment" env ASSAY_PATH="$PWD" "$ASSAY" run p2p.yaml -q -o runs
check "is fitted as it suggests" sh -c "'$ASSAY' fit runs/p2p-*.zip --set latency=10us --set bandwidth=1GB/s --set break1=5000 -o p2p.json"
report $(contains .out 'note: Isend is trimmed size by size'; echo $?) "in random order each size is trimmed for itself"
check "a platform of it" "$ASSAY" export simgrid p2p.json -n 2 -o p2p.xml
report $(tr ':;"' '[\n*]' <p2p.xml | awk 'function near(a, b) { return a > b * (1 - 1e-12) && a < b * (1 + 1e-12) }
    /lat-factor/ { at = NR } at && NR == at + 3 && near($1, 1.85) { good++ } at && NR == at + 5 && near($1, 2) { good++ }
    /smpi\/os/ { os = NR } os && NR == os + 3 && near($1, 2e-6) { good++ } os && NR == os + 4 && near($1, 2e-10) { good++ } END { exit good != 4 }'; echo $?) \
    "is in seconds"

# Kernels. A header says what the model says; noise, segments and odd terms from models made by hand.
head='"assay_model": 1, "response": {"name": "t", "unit": "us"}, "weights": null, "by": [], "skipped": [],
    "origin": {"plugin": "p", "version": "1", "engine": "1", "created": "2024-01-01T00:00:00Z", "rows": 4, "inputs": []}'
estimates() { # ESTIMATE... of the terms 1, x, y
    local name; local names=(1 "log2(size)^2" "int^-1*size") list=
    for name in 0 1 2; do
        list+="${list:+, }{\"name\": \"${names[$name]}\", \"unit\": null, \"estimate\": $1, \"standard_error\": null, \"t\": null, \"p\": null}"; shift
    done
    echo "\"terms\": [$list], \"covariance\": null, \"domain\": [{\"name\": \"size\", \"minimum\": 1, \"maximum\": 99}]"
}
formula='"formula": [{"name": "1", "unit": null, "factors": []},
    {"name": "log2(size)^2", "unit": null, "factors": [{"factor": "size", "power": 2, "function": "log2"}]},
    {"name": "int^-1*size", "unit": null, "factors": [{"factor": "int", "power": -1}, {"factor": "size", "power": 1}]}],
    "factors": [{"name": "size", "unit": null}, {"name": "int", "unit": null}]'
noise() { # DISTRIBUTION
    echo '"noise": {"kind": "N-2", "distribution": "'"$1"'", "method": "rule", "sigma": [{"name": "1", "unit": "us", "estimate": 0.5},
        {"name": "log2(size)^2", "unit": null, "estimate": -0.25}, {"name": "int^-1*size", "unit": null, "estimate": 2}]}'
}
echo "{$head, \"kind\": \"piecewise\", \"over\": \"size\", $formula, \"groups\": [{\"labels\": {}, \"n\": 4, \"notes\": [], \"parts\": [
    {\"kind\": \"segment\", \"to\": 16, $(estimates 1 2 3), $(noise half-normal)},
    {\"kind\": \"segment\", \"from\": 16, $(estimates 4 5 -6), $(noise normal)}]}]}" >segments.json
echo "{$head, \"kind\": \"maximum\", $formula, \"groups\": [{\"labels\": {}, \"n\": 4, \"notes\": [], $(estimates 1 2 3)}]}" >maximum.json
check "a header" "$ASSAY" export kernels dgemm=dgemm.json line.json segments.json roof=maximum.json -o kernels.h
cat >kernels.c <<'EOF'
#include "kernels.h"
#include <stdio.h>
static int near(double a, double b) { return fabs(a - b) <= 1e-9 * fabs(b); }
int main(void) {
    int bad = 0, g = assay_dgemm_group("dahu-3.site/1");
    bad |= g != 5 || ASSAY_DGEMM_GROUPS != 6 || assay_dgemm_group("dahu-3") != -1;
    bad |= !near(assay_dgemm_mean(g, 10, 20, 30), 3.5e-10 * 6000 + 1e-9 * 200) << 1;
    bad |= !near(assay_dgemm_mean(-1, 10, 20, 30), 2.25e-10 * 6000 + 1e-9 * 200) << 2;
    bad |= !isnan(assay_dgemm_mean(6, 10, 20, 30)) << 3 | !isnan(assay_dgemm_mean(-2, 1, 1, 1)) << 4;
    bad |= !near(assay_line_mean(0, 1e9), assay_line_mean(-1, 1e9)) << 5;
    /* Microseconds; of size 8 and int 2; the second argument cannot be called int in C. */
    double size = 8, x2 = 2, mean = 1e-6 * (1 + 2 * 9 + 3 * 4), sigma = 1e-6 * (0.5 - 0.25 * 9 + 2 * 4), pi = acos(-1);
    bad |= !near(assay_segments_mean(0, size, x2), mean) << 6 | !near(assay_segments_sigma(0, size, x2), sigma) << 7;
    double s = sigma / sqrt(1 - 2 / pi);
    bad |= !near(assay_segments_draw(0, size, x2, -1.5), mean + 1.5 * s - s * sqrt(2 / pi)) << 8;
    bad |= !near(assay_segments_mean(0, 16, 4), 1e-6 * (4 + 5 * 16 - 6 * 4)) << 9;
    bad |= !near(assay_segments_draw(0, 16, 4, 1.5), 1e-6 * (60 + 1.5 * (0.5 - 4 + 8))) << 10;
    bad |= (assay_segments_draw(0, 16, 4, -100) != 0) << 11 | (assay_segments_sigma(0, 16, 1e9) != 0) << 12;
    bad |= !isnan(assay_segments_mean(-1, 8, 2)) << 13; /* segments have no mean over groups */
    bad |= !near(assay_roof_mean(0, size, x2), 1e-6 * 18) << 14;
    if (bad)
        fprintf(stderr, "%x\n", bad);
    return bad != 0;
}
EOF
check "it compiles as C99, every warning an error" cc -std=c99 -Wall -Wextra -Wpedantic -Werror -o kernels kernels.c -lm
check "and says what the model says" ./kernels

# Every group at some sizes, the header's numbers against those of assay itself.
cat >compare.c <<'EOF'
#include "kernels.h"
#include <stdio.h>
int main(void) {
    printf("m,n,k,node,core,mean\n");
    for (int g = 0; g < ASSAY_DGEMM_GROUPS; g++)
        for (int i = 1; i < 4; i++)
            printf("%d,%d,%d,%.11s,%s,%.17g\n", 97 * i, 211 * i * i, 300 + i, assay_dgemm_names[g],
                   strchr(assay_dgemm_names[g], '/') + 1, assay_dgemm_mean(g, 97 * i, 211 * i * i, 300 + i));
    return 0;
}
EOF
cc -std=c99 -o compare compare.c -lm && ./compare >theirs.csv
check "assay evaluates the same" "$ASSAY" model eval dgemm.json --rows theirs.csv -o ours.csv
report $(paste -d, theirs.csv ours.csv | awk -F, 'NR == 1 { for (i = 7; i <= NF; i++) if ($i == "predicted") at = i; next }
    { n++; d = $6 - $at; if (!($1 == $7 && (d < 0 ? -d : d) <= 1e-15 * $at)) { print "# " $0; bad = 1 } } END { exit bad || n != 18 }' >&2; echo $?) \
    "to the last digits"

# Terms that a part drops have no say, whatever their value, and between segments the nearest counts, as assay says too.
drop() { sed 's/\("name": "'"$1"'", "unit": null, "estimate": 0\)\([^}]*\)/\1\2, "dropped": true/g'; } # terms whose estimate is 0
part() { echo "$(estimates "${@:2}"), $(noise "$1" | sed 's/-0.25/0/')"; } # the sigma of log2(size)^2 is 0
echo "{$head, \"kind\": \"piecewise\", \"over\": \"size\", $formula, \"groups\": [{\"labels\": {}, \"n\": 4, \"notes\": [], \"parts\": [
    {\"kind\": \"segment\", \"from\": 0, \"to\": 16, $(part normal 1 0 3)}, {\"kind\": \"segment\", \"from\": 32, \"to\": 64, $(part normal 4 5 0)},
    {\"kind\": \"segment\", \"from\": 100, \"to\": 200, $(part half-normal 7 0 0)}]}]}" | drop '[li][^"]*' >gaps.json
for kind in linear maximum; do
    echo "{$head, \"kind\": \"$kind\", $formula, \"groups\": [{\"labels\": {}, \"n\": 4, \"notes\": [], $(part normal -1 0 -3)}]}" |
        drop 'l[^"]*' >dropped-$kind.json
done
check "dropped terms" "$ASSAY" export kernels gaps.json linear=dropped-linear.json maximum=dropped-maximum.json -o dropped.h
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
    model=dropped-$kind.json; [ $kind = gaps ] && model=gaps.json
    check "the rows ($kind)" ./dropped $kind
    cp .out theirs.csv
    "$ASSAY" model eval $model --rows theirs.csv -o ours.csv 2>warnings.txt
    report $(paste -d, theirs.csv ours.csv | awk -F, 'function same(a, b, d) { d = a - b; return a ~ /n/ ? b == "" : b != "" && (d < 0 ? -d : d) <= 1e-14 * (b < 0 ? -b : b) }
        NR > 1 { n++; if (!same($3, $8) || !same($4, $10)) { print "# " $0; bad = 1 } } END { exit bad || n != 21 }' >&2; echo $?) "are as assay evaluates them"
done

# Columns that C or C++ has other uses for, next to headers full of macros; usual names stay.
columns() { # NAME... of a linear model; the n-th coefficient is n
    local name n=0 terms= formula= factors=
    for name; do
        terms+="${terms:+, }{\"name\": \"$name\", \"unit\": null, \"estimate\": $((++n)), \"standard_error\": null, \"t\": null, \"p\": null}"
        formula+="${formula:+, }{\"name\": \"$name\", \"unit\": null, \"factors\": [{\"factor\": \"$name\", \"power\": 1}]}"
        factors+="${factors:+, }{\"name\": \"$name\", \"unit\": null}"
    done
    echo "{$head, \"kind\": \"linear\", \"formula\": [$formula], \"factors\": [$factors], \"groups\": [{\"labels\": {}, \"n\": 4, \"notes\": [],
        \"terms\": [$terms], \"covariance\": null, \"domain\": []}]}"
}
columns m n k z x size msg_size M N K msgSize x2 value sigma part group >a.json
columns 1abc x1abc x3 3 'a b' a_b 'a(b)' _ __ é '*/' '/*' 'a\\' '??/' assay_z ASSAY_E_GROUPS >b.json
columns sqrt asm log2 typeof true false nullptr linux unix class new I NAN HUGE_VAL EOF NULL >c.json
columns strcmp isnan isfinite fabs and xor not_eq bool complex errno stdin assert thread_local alignas constexpr noreturn >d.json
columns int this template operator delete typename wchar_t char8_t co_await concept requires mutable errno_1 errno M_PI INFINITY >e.json
check "odd columns" "$ASSAY" export kernels [a-e].json -o odd.h
report $(contains odd.h 'assay_a_mean\(int assay_group, double m, double n, double k, double z, double x, double size, double msg_size, double M, double N, double K, double msgSize, double x2, '; echo $?) \
    "usual ones stay as they are"
cat >odd.c <<'EOF'
#ifndef __cplusplus
#include <complex.h>
#include <stdalign.h>
#include <stdnoreturn.h>
#include <iso646.h>
#endif
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include "odd.h"
#define SIXTEEN 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16
#define GOOD(kernel) (fabs(assay_##kernel##_draw(0, SIXTEEN, 1) - 1496e-6) < 1e-12 && assay_##kernel##_sigma(0, SIXTEEN) <= 0)
int main(void) {
    return !(GOOD(a) && GOOD(b) && GOOD(c) && GOOD(d) && GOOD(e));
}
EOF
for compiler in "cc -std=c99 -Wpedantic" "cc -std=gnu17" "cc -std=gnu2x" "g++ -std=c++11 -Wpedantic" "g++ -std=gnu++20"; do
    if command -v ${compiler%% *} >compiler.txt; then
        language=c; [ "${compiler%% *}" = g++ ] && language=c++
        check "they compile ($compiler)" $compiler -Wall -Wextra -Werror -x $language -o odd odd.c -lm
        check "each argument in its place" ./odd
    else
        skip "they compile ($compiler)" "no ${compiler%% *}"
    fi
done

# dgemm_model.c as HPL includes it: node 3, cpu 1 is its cpu 7; a node it does not know is the mean.
sed 's/^node,core/node,cpu/' dgemm.csv >cpus.csv
"$ASSAY" fit cpus.csv --terms m*n*k+m*n --by node,cpu -o cpus.json >cpus.txt
check "HPL's dgemm" "$ASSAY" export hpl-smpi cpus.json -o dgemm_model.c
report $(contains dgemm_model.c '^/\* The body of dgemm_time\(M, N, K\) of HPL on SMPI, in its src/blas/dgemm_model.c: seconds'; echo $?) "says where it goes"
"$ASSAY" export hpl-smpi --no-noise cpus.json -o plain_model.c
noise='"noise": {"kind": "N-1", "distribution": "half-normal", "method": "rule", "sigma": [{"name": "1", "unit": null, "estimate": 0.001}]}'
sed "s/, \"noise\": {[^}]*}[^}]*}//; s/\"notes\": \[/$noise, &/" cpus.json >noisy.json
"$ASSAY" export hpl-smpi noisy.json -o noisy_model.c
cat >hpl.c <<'EOF'
#include <math.h>
#include <stdio.h>
static int cpu;
int get_cpuid(void) { return cpu; }
double random_normal(void) { return 0; }
double random_halfnormal_shifted(double a, double b) { return a + 2 * b; }
/* As src/blas/HPL_dgemm.c has it, with what goes before and after the file. */
double dgemm_time(double M, double N, double K) {
    double mnk = M*N*K;
    double mn = M*N;
    double mk = M*K;
    double nk = N*K;
    (void)mnk, (void)mn, (void)mk, (void)nk;
#include MODEL
    return 0;
}
static int near(double a, double b) { return fabs(a - b) <= 1e-9 * fabs(b); }
int main(void) {
    cpu = 7;
    int bad = !near(dgemm_time(10, 20, 30), 3.5e-10 * 6000 + 1e-9 * 200 + NOISE);
    cpu = 99;
    bad |= !near(dgemm_time(10, 20, 30), 2.25e-10 * 6000 + 1e-9 * 200 + NOISE) << 1;
    return bad;
}
EOF
for model in dgemm plain noisy; do
    [ $model = noisy ] && noise=2e-3 || noise=0
    check "it compiles ($model)" cc -std=c99 -Wall -Wextra -Werror -DNOISE="$noise" -DMODEL="\"${model}_model.c\"" -o hpl hpl.c -lm
    check "and says what the model says" ./hpl
done
# Coefficients that are whole are no integers, whose product would overflow where the sizes are integers.
node='"by": ["node"], "skipped"'
product='"formula": [{"name": "m*n*k", "unit": null, "factors": [{"factor": "m", "power": 1}, {"factor": "n", "power": 1}, {"factor": "k", "power": 1}]}],
    "factors": [{"name": "m", "unit": null}, {"name": "n", "unit": null}, {"name": "k", "unit": null}]'
echo "{$head, \"kind\": \"linear\", $product, \"groups\": [{\"labels\": {\"node\": \"a1\"}, \"n\": 4, \"notes\": [], \"terms\": [{\"name\": \"m*n*k\",
    \"unit\": null, \"estimate\": 2, \"standard_error\": null, \"t\": null, \"p\": null}], \"covariance\": null, \"domain\": []}]}" |
    sed "s/\"by\": \[\], \"skipped\"/$node/; s/\"unit\": \"us\"/\"unit\": \"s\"/" >whole.json
check "a whole coefficient" "$ASSAY" export hpl-smpi whole.json -o whole_model.c
cat >whole.c <<'EOF'
static int get_nodeid(void) { return 1; }
static double dgemm_time(int M, int N, int K) {
#include "whole_model.c"
}
int main(void) { return !(dgemm_time(10000, 20000, 30000) == 1.2e13); }
EOF
check "compiles" cc -std=c99 -Wall -Wextra -Werror -o whole whole.c
check "and is a double" ./whole
sed 's/"unit": "s"/"unit": "h"/; s/"estimate": 2/"estimate": 1e308/' whole.json >huge.json
for export in kernels hpl-smpi; do
    refuse "an estimate that is none in seconds ($export)" 2 "an estimate of the group 'a1' is not finite in seconds" "$ASSAY" export $export huge.json
done
refuse "cpus that HPL does not know" 2 "the group 'dahu-1.site/2' has no number for HPL" sh -c "
    sed 's/^\(dahu-1.site\),1,/\1,2,/' cpus.csv >three.csv
    '$ASSAY' fit three.csv --terms m*n*k --by node,cpu -o three.json >three.txt; '$ASSAY' export hpl-smpi three.json"
sed 's/"kind": "linear"/"kind": "population"/' cpus.json >population.json
refuse "a population as dgemm" 2 "a model of kind 'population' is none of dgemm; .*generate cluster --model" "$ASSAY" export hpl-smpi population.json
refuse "a population as hosts" 2 "a population tells no hosts by name" "$ASSAY" export simgrid smpi.json population.json
refuse "SMPI's tables as dgemm" 2 "a model of kind 'smpi' is none of dgemm" "$ASSAY" export hpl-smpi smpi.json
refuse "groups that HPL does not know" 2 "the groups are not by node" "$ASSAY" export hpl-smpi dgemm.json
refuse "terms that HPL does not know" 2 "'log2\(size\)\^2' is not a product of m, n and k" sh -c "
    sed 's/\"by\": \[\]/\"by\": [\"node\"]/; s/\"labels\": {}/\"labels\": {\"node\": \"a1\"}/; s/\"kind\": \"maximum\"/\"kind\": \"linear\"/' maximum.json >log.json
    '$ASSAY' export hpl-smpi log.json"

refuse "an export that is none" 2 "there is no export 'simgird'; did you mean 'simgrid'" "$ASSAY" export simgird smpi.json
refuse "no hosts" 2 "how many hosts" "$ASSAY" export simgrid smpi.json
refuse "no network" 2 "no model tells the latency between two hosts; say it with --latency" "$ASSAY" export simgrid --hosts 2
refuse "another base" 2 "factors are relative to the latency 1e-05, not 2e-05" "$ASSAY" export simgrid smpi.json --hosts 2 --latency 20us
refuse "two networks" 2 "line.json: this is the second model of the network" "$ASSAY" export simgrid smpi.json line.json --hosts 2
refuse "hosts twice" 2 "--speed is for hosts that are alike" "$ASSAY" export simgrid smpi.json dgemm.json --speed 1Gf
refuse "a list of hosts" 2 "'0-3,' is no list of hosts" "$ASSAY" export simgrid smpi.json --radical 0-3,
refuse "a fat tree" 2 "'2;4,4' is no fat tree" "$ASSAY" export simgrid smpi.json -n 8 --fat-tree '2;4,4'
refuse "a fat tree of other hosts" 2 "has 16 hosts; the platform has 8" "$ASSAY" export simgrid smpi.json -n 8 --fat-tree '2;4,4;1,1;1,1'
refuse "half of a link" 2 "the loopback has no latency \(--loopback-latency\)" "$ASSAY" export simgrid smpi.json -n 8 --loopback-bandwidth 1GB/s
refuse "a name" 2 "the prefix 'a b' cannot be a name" "$ASSAY" export simgrid smpi.json -n 8 --prefix 'a b'
refuse "a speed" 2 "'fast' is not a speed" "$ASSAY" export simgrid smpi.json -n 8 --speed fast
refuse "a setting" 2 "is not NAME=VALUE" "$ASSAY" export simgrid smpi.json -n 8 -c 'smpi/os'
"$ASSAY" fit dgemm.csv --terms m*n*k+m*n --by none -o pooled.json >pooled.txt
refuse "hosts that are none" 2 "pooled.json: the model has one fit for all; expected one for each host" "$ASSAY" export simgrid smpi.json pooled.json
refuse "a column of hosts" 2 "no column 'nod' forms groups; did you mean 'node'" "$ASSAY" export simgrid smpi.json dgemm.json --host-column nod
sed 's/"factor": "int", "power": -1/"factor": "int", "power": 1, "level": "a"/' maximum.json >level.json
refuse "a category" 2 "'int' is a category; the header takes numbers only" "$ASSAY" export kernels level.json
refuse "kernels that are none" 2 "a model of kind 'smpi' says nothing of one call" "$ASSAY" export kernels k=smpi.json
refuse "a name that C does not know" 2 "cannot be a part of names in C" sh -c "cp dgemm.json 2x.json; '$ASSAY' export kernels 2x.json"
refuse "the model overwritten" 2 "smpi.json" "$ASSAY" export simgrid smpi.json -n 2 -o smpi.json
sed 's/Recv,/Barrier,/;s/^PingPong,\([0-9]*\),.*/PingPong,\1,1e-5/' calls.csv >flat.csv
check "durations that do not grow" "$ASSAY" fit smpi flat.csv --set latency=10us --set bandwidth=1GB/s -o flat.json
refuse "are no bandwidth" 2 "(from 0 byte on the model's time does not grow|the bandwidth factor from 0 byte on is -)" \
    "$ASSAY" export simgrid flat.json -n 2
finish
