#!/bin/bash
# assay predict hpl-replay: models of kernels and of the network in; the time of every process out.
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1

# dgemm of two nodes of two cores: 1e-9 mnk, of the core b/2 twice as much; a network of 10 us and 1 GB/s, 64 KiB eager.
awk 'BEGIN {
    print "node,core,m,n,k,duration"
    for (i = 0; i < 4; i++) for (s = 10; s <= 40; s += 10) for (t = 10; t <= 30; t += 10)
        print (i < 2 ? "a" : "b") "," i % 2 + 1 "," s "," t "," 20 "," 1e-9 * s * t * 20 * (i == 3 ? 2 : 1)
}' >dgemm.csv
awk 'BEGIN { print "operation,size,duration"
    for (r = 0; r < 3; r++) for (s = 1; s <= 4e6; s = s * 2 + 1) print "PingPong," s "," 2 * (1e-5 + s / 1e9) * (1 + (r - 1) / 1000) }' >network.csv
"$ASSAY" fit linear dgemm.csv --by node,core --terms 'm*n*k' -o dgemm.json >fit.out 2>&1
"$ASSAY" fit smpi network.csv --set latency=10us --set bandwidth=1GB/s -o network.json >>fit.out 2>&1
report $([ -s dgemm.json ] && [ -s network.json ]; echo $?) "models to begin with"

one=(--set N=64 --set NB=8 --set P=1 --set Q=1 --set noise=no)
check "one process" "$ASSAY" predict hpl-replay dgemm=dgemm.json "${one[@]}"
report $(output '^messages +0 '; echo $?) "sends nothing"

# four N NB RANKS_PER_NODE OPTION...: a grid of 2 x 2
four() {
    local n=$1 nb=$2 each=$3
    shift 3
    "$ASSAY" predict hpl-replay dgemm=dgemm.json network=network.json --set N="$n" --set NB="$nb" --set P=2 --set Q=2 --set ranks-per-node="$each" "$@"
}
check "four processes" four 200 8 2 --plot ranks=ranks.csv --plot panels=panels.csv
report $(output '^panel_wait '; echo $?) "the parts of the time are printed"
report $(awk -F, 'NR > 1 { n++ } END { exit n != 4 }' ranks.csv; echo $?) "a row for each process"
report $(awk -F, 'NR > 1 { n++; bad += $3 <= last; last = $3 } END { exit n != 25 || bad }' panels.csv; echo $?) "a row for each panel, later and later"
four 200 8 2 --json >one.json 2>errors && four 200 8 2 --json --threads 2 >two.json 2>errors
report $(sed 's/"created[^,]*,//' one.json | cmp -s - <(sed 's/"created[^,]*,//' two.json); echo $?) "the same digits with more threads"
check "another seed" four 200 8 2 --seed 2

refuse "without a network" 2 'no model of the network' "$ASSAY" predict hpl-replay dgemm=dgemm.json --set N=200 --set NB=8 --set P=2 --set Q=2
refuse "a kernel that HPL does not have" 2 "'dsyrk' is no kernel of HPL; expected dtrsm" "$ASSAY" predict hpl-replay dgemm=dgemm.json dsyrk=dgemm.json "${one[@]}"
refuse "no N" 2 "N" "$ASSAY" predict hpl-replay dgemm=dgemm.json --set NB=8 --set P=1 --set Q=1

check "more nodes than the model has" four 200 8 1
report $(output 'has 2 nodes, and 4 are used: they are repeated in order'; echo $?) "are said to be repeated"
check "more processes than cores" four 200 8 4
report $(output 'a node has 4 processes, and 2 cores in the model'; echo $?) "are warned of"
check "more processes than blocks" four 200 250 2
report $(output 'some processes have no rows or columns'; echo $?) "are warned of"
check "a matrix that does not fit" four 200 8 2 --set node-memory=10kB
report $(output 'HPL would not run'; echo $?) "is warned of"
awk -F, 'NR > 1 { $6 = -$6 } 1' OFS=, dgemm.csv >negative.csv
"$ASSAY" fit linear negative.csv --by node,core --terms 'm*n*k' -o negative.json >fit.out 2>&1
check "times below 0" four 200 8 2 dtrsm=negative.json
report $(output '[0-9]+ of [0-9]+ kernel calls had a time below 0 s, or none'; echo $?) "are counted and warned of"
check "larger messages than were measured" four 30000 128 2
report $(output 'measure larger ones'; echo $?) "are warned of"

echo '4,0,1' >pivots.csv
refuse "too few pivots" 2 'pivots.csv has 1 pivots; expected one for each of N = 4 columns' "$ASSAY" predict hpl-replay dgemm=dgemm.json pivots=pivots.csv --set N=4 --set NB=2 --set P=1 --set Q=1
printf '0,1\n1,0\n2,2\n3,3\n' >pivots.csv
refuse "a pivot above its column" 2 'pivots.csv:2: row 0 for column 1' "$ASSAY" predict hpl-replay dgemm=dgemm.json pivots=pivots.csv --set N=4 --set NB=2 --set P=1 --set Q=1
printf '0,1\n1,\n3\n2,2\n3,3\n' >pivots.csv
refuse "a row on the next line" 2 'pivots.csv has 3 pivots' "$ASSAY" predict hpl-replay dgemm=dgemm.json pivots=pivots.csv --set N=4 --set NB=2 --set P=1 --set Q=1
printf '0,1\n1,3\n2,2\n3,3\n' >pivots.csv
check "pivots that are right" "$ASSAY" predict hpl-replay dgemm=dgemm.json pivots=pivots.csv --set N=4 --set NB=2 --set P=1 --set Q=1
finish
