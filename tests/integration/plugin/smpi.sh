#!/bin/bash
# assay fit smpi: what it says of single rows, and where its breaks come from.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
contains() { grep -qE -- "$2" "$1" || { echo "# '$1' does not match: $2"; sed 's/^/# /' "$1" | head -40; return 1; } >&2; }
output() { contains "$scratch/.out" "$1"; }
base="--set latency=10us --set bandwidth=1GB/s"
# shellcheck disable=SC2086 # words
fit() { "$ASSAY" fit smpi "$@" $base; }

# Lines with a little noise that is not drawn, below 1000 byte, from there, and from 40000 on; one row is far off, a
# ping-pong, one an Isend, and of one the size is missing.
awk 'BEGIN {
    print "operation,size,duration"
    n = split("8 100 300 500 999 1000 3000 9000 20000 39999 40000 100000 200000 500000 900000", sizes)
    for (i = 1; i <= n; i++) for (k = 0; k < 10; k++) {
        s = sizes[i]; e = s < 1000 ? 1 : s < 40000 ? 2 : 3; z = 1 + 0.01 * sin(12.9898 * (10 * i + k))
        printf "MPI_Isend,%d,%.17g\n", s, (i == 2 && k == 4 ? 30 : 1) * z * (1e-6 + 1e-10 * s) * e
        printf "Send,%d,%.17g\n", s, z * (2e-6 + 2e-10 * s) * e
        printf "recv,%d,%.17g\n", s, z * (3e-6 + 3e-10 * s) * e
        printf "PingPong,%d,%.17g\n", s, (i == 7 && k == 3 ? 20 : 1) * z * (4e-5 + 3e-9 * s) * e
    }
    print "PingPong,,1"
    for (k = 0; k < 10; k++) { print "Iprobe,1,3e-7"; print "Test,1,2e-7" }
    print "Wtime,0,0.4"
}' >calls.csv
check "a fit" fit calls.csv --set break1=1000 --set break2=40000 --set send-is-detached-thresh=40000 -o smpi.json --plot smpi.svg
told() {
    output '^  on settings left out \(5 folds\): error [0-9.e-]+, .* % of the mean' && output '^residuals of 621 rows, 1 left out: root mean square' &&
        output 'sigma that of the model.s noise' && output 'predicted duration \(log\)' && output '^the rows that are furthest off:$'
}
report $(told; echo $?) "has an error on rows left out, a chart of residuals, and how many rows are behind it"
report $(output '^  calls.csv line 58, operation MPI_Isend, size 100: 3\.0[0-9]+e-05 observed, 1\.[0-9]+e-06 predicted, \+' &&
    output '^  calls.csv line 257, operation PingPong, size 3000: 0.00195[0-9]* observed, '; echo $?) "the rows that are furthest off with their lines"
report $(contains smpi.svg '>Residuals<' && contains smpi.svg '>Data and model<' && contains smpi.svg '>PingPong<' && contains smpi.svg '>Isend<'; echo $?) \
    "and a plot with a curve for each operation"
report $(output 'note: breaks: 1000, 40000; set by break1'; echo $?) "it says where its breaks come from"
check "the model" "$ASSAY" model check smpi.json
report $(contains smpi.json '"named_by": "operation"' && contains smpi.json '"levels": \["Iprobe", "MPI_Isend", '; echo $?) "tells what its parts are named by"
check "a row" "$ASSAY" model eval smpi.json operation=mpi_pingpong size=100
report $(output '^all: duration = (3\.9|4\.0)[0-9]*e-05, standard error '; echo $?) "is evaluated by the part that its operation names"
refuse "an operation that it has not" 2 "no part for the operation 'Pingpnog'; did you mean 'PingPong'" "$ASSAY" model eval smpi.json operation=Pingpnog size=1
check "a table" "$ASSAY" model table smpi.json
report $(output '^rows,part,from,to,1,size,sigma,charged,lat_factor,lat_factor_error,bw_factor,bw_factor_error$' &&
    output '^531,PingPong,0,1000,[^,]+,[^,]+,[^,]+,,1\.8[^,]+,[^,]+,0\.7[^,]+,[^,]+$' && output '^531,protocol,,,,,,,,,,$'; echo $?) "has the factors"
sed '/"named_by"/d' smpi.json >before.json
check "a file of before there were names" "$ASSAY" model show before.json
check "is exported as it was" sh -c "'$ASSAY' export simgrid before.json -n 2 | sed '/Written/d' >before.xml; '$ASSAY' export simgrid smpi.json -n 2 | sed '/Written/d' | cmp - before.xml"
refuse "and is not evaluated" 2 "does not tell which column names the operation" "$ASSAY" model eval before.json size=1
check "other rows" "$ASSAY" model check smpi.json --data calls.csv
report $(output '^  all +600 ' && output '^  22 rows are incomplete'; echo $?) "without those whose cost is that of a call"

# Thresholds that were measured, and probes that found something, in the same table.
awk -F, 'NR == 1 { print $0 ",found"; next } { print $0 "," ($1 ~ /Iprobe|Test/ ? 0 : "") }
    END { print "Asynchronous,1000,0,\nAsynchronous,900,0,\nDetached,40000,0,"; for (k = 0; k < 30; k++) print "Iprobe,1,5e-3,1" }' calls.csv >measured.csv
check "thresholds among the rows" fit measured.csv --brief -o measured.json
report $(output '^    async_small_thresh +900 By$' && output '^    send_is_detached_thresh +40000 By$'; echo $?) "are those of the model, the least of each"
report $(output '^  Iprobe +3e-07 +10 '; echo $?) "and what a probe costs is what it costs in vain"
report $(output '30 rows of other operations left out'; echo $?) "of which the others are no part, said aloud"
check "a threshold that is set" fit measured.csv --brief --set send-is-detached-thresh=1000
report $(output '^    send_is_detached_thresh +1000 By$'; echo $?) "is set"
check "ping-pongs that are trimmed" fit measured.csv --brief --set trim-ping-pong=0.1 -o trimmed.json
rows() { "$ASSAY" model table "$1" | awk -F, '$2 == "PingPong" { print $1; exit }'; }
is "are two fewer of each of 15 sizes" "$(($(rows measured.json) - $(rows trimmed.json)))" 30

# Both halves of a ping-pong: its Recv stands for both, and both are in one fold.
awk 'BEGIN { print "operation,size,duration"
    for (i = 1; i < 30; i++) for (k = 0; k < 4; k++) { s = i * i * 100; z = 1 + 0.01 * sin(i * 7 + k)
        printf "Send,%d,%.17g\nRecv,%d,%.17g\n", s, 1e-6 * z, s, (i == 9 && k == 2 ? 3 : 1) * z * (2e-5 + 1e-9 * s) } }' >raw.csv
check "raw halves" fit raw.csv --set breaks=none
report $(output '^  raw.csv line 71, operation Recv, size 8100, with the row before it a PingPong: 8\.[0-9]+e-05 observed, (2|3)\.[0-9]+e-05 predicted'; echo $?) \
    "are compared as what they are together"

# Breaks.
check "breaks that are not given" fit calls.csv --set send-is-detached-thresh=0 --brief
report $(output "note: breaks: 1000, 40000; found in PingPong's 15 sizes"; echo $?) "are found"
awk -F, 'NR == 1 || $1 == "PingPong" && $2' calls.csv >pings.csv
"$ASSAY" fit piecewise pings.csv --terms 'size | 900 | 50000' --by operation -o network.json >network.txt
check "breaks of a piecewise model" fit calls.csv --breaks network.json --brief
report $(output 'note: breaks: 900, 50000; those of network.json \(SHA-256 [0-9a-f]{12}\), group PingPong'; echo $?) "with the model they are of"
check "of another model of SMPI" fit calls.csv --breaks smpi.json --brief
report $(output 'note: breaks: 1000, 40000; those of smpi.json'; echo $?) "too"
check "in the terms" fit calls.csv --terms 'operation | 999 eager | 40000' --brief
report $(output 'note: breaks: 999, 40000; in the terms'; echo $?) "with names, which SMPI has no use for"
"$ASSAY" fit linear pings.csv --terms 1+size -o line.json >line.txt
refuse "a model without segments" 2 "line.json: the model has no segments" fit calls.csv --breaks line.json
refuse "a group that it has not" 2 "PingPnog" fit calls.csv --breaks network.json --breaks-group PingPnog
refuse "two sources" 2 "more than one of break1 ..., the terms and --breaks" fit calls.csv --breaks network.json --set break1=7
refuse "another method" 2 "the method 'linear' takes no breaks" "$ASSAY" fit linear calls.csv --terms 1+size --breaks network.json
refuse "a group of nothing" 2 "--breaks is not given" fit calls.csv --breaks-group PingPong

# An experiment that knows its protocol's thresholds, for fit-piecewise.
mkdir -p experiments/p2p
cat >experiments/p2p/experiment.yaml <<YAML
name: p2p
factors: {operation: {type: text, choices: [PingPong]}, size: {type: integer, minimum: 0, maximum: 10000000, unit: By}}
responses: {duration: {unit: us}}
run: {streamed: [awk, -F, ",", -f, "$PWD/experiments/p2p/p2p.awk"], placement: node}
model: {method: piecewise, response: duration, terms: "size asynchronous | 1420 detached | 65536 synchronous", by: [operation]}
YAML
cat >experiments/p2p/p2p.awk <<'AWK'
NR == 1 { print "unit,start,duration"; fflush(); next }
{ printf "%s,%d,%.17g\n", $1, NR, 40 + 1e-3 * $3 + NR % 3; fflush() }
AWK
awk 'BEGIN { print "operation,size"; for (k = 0; k < 3; k++) for (s = 8; s < 1e6; s *= 4) print "PingPong," s }' >p2p.csv
printf 'experiment: p2p\ndesign: p2p.csv\n' >p2p.yaml
check "an experiment" env ASSAY_PATH="$PWD" "$ASSAY" run p2p.yaml -q -o runs
check "is fitted with its thresholds" sh -c "'$ASSAY' fit smpi runs/p2p-*.zip --by none $base --plot p2p.svg"
report $(output 'note: breaks: 1420, 65536; thresholds that the archive tells'; echo $?) "and it says so"
report $(output '^  p2p-.*\.zip results/results.csv line [0-9]+, '; echo $?) "the rows that are furthest off with the line in the archive"
finish
