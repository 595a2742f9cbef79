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
# value NAME COMMAND...: NAME of the one scenario that COMMAND predicts
value() { "${@:2}" -o /dev/stdout 2>errors | awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } NR == 2 { print $c }'; }
check "four processes" four 200 8 2 --plot ranks=ranks.csv --plot panels=panels.csv
report $(output '^panel_wait '; echo $?) "the parts of the time are printed"
report $(awk -F, 'NR > 1 { n++ } END { exit n != 4 }' ranks.csv; echo $?) "a row for each process"
report $(awk -F, 'NR > 1 { n++; bad += $4 <= last || $3 > $4; last = $4 } END { exit n != 25 || bad }' panels.csv; echo $?) "a row for each panel, later and later"
report $(awk -F, 'NR > 1 { t = 0; for (i = 5; i <= NF; i++) t += $i; if (NR == 2) first = t; if (t < 0.999999 * first || t > 1.000001 * first) bad++ } END { exit bad || NR != 5 }' ranks.csv; echo $?) \
    "what a process computes and waits for, by cause, is the time"
check "parts and a timeline" four 200 8 2 --plot parts=parts.csv --plot timeline=timeline.csv --plot timeline --set window-panel=3 --set window-panels=2 --set window-rank=1 --set window-ranks=2
report $(awk -F, 'NR > 1 { mean += $4; path += $6; at[$2] } END { exit mean < 90 || mean > 100.001 || path < 99.999 || path > 100.001 || !("dgemm" in at) || !("pivots" in at) }' parts.csv; echo $?) \
    "the parts of the mean are nearly all of the time, those of the critical path all of it"
report $(awk -F, 'NR > 1 { lanes[$2]; if (NR == 2) from = $3; if ($4 > to) to = $4 } END { for (l in lanes) n++; exit n != 2 || !("rank 1" in lanes) || !("rank 2" in lanes) || from <= 0 || to <= from }' timeline.csv; echo $?) \
    "the timeline has the ranks of its window alone, and begins later"
report $(output '^rank 1 +\|[A-Z* ]+\|$'; echo $?) "it is drawn in characters"
check "a timeline as a picture and for a viewer" four 200 8 2 --plot timeline=timeline.svg --plot timeline=timeline.json
report $(grep -q 'fill="#0072b2"/>' timeline.svg && grep -q '>row swaps</text>' timeline.svg; echo $?) "... with what its colours mean"
report $(grep -q '^<svg' timeline.svg && grep -q '"name": "rank 3"' timeline.json && grep -q '"name": "dgemm"' timeline.json; echo $?) "has all ranks"
check "what each cost is worth" four 200 8 2 --set noise=no --plot sensitivities --plot sensitivities=worth.svg --plot sensitivities=worth.csv --plot tolerance=tolerance.csv
report $(output '^dgemm +-0\.[0-9]+ % +#+$'; echo $?) "is drawn as bars, the greatest first"
report $(grep -q '>node 1 (b)</text>' worth.svg; echo $?) "... in a file, too, with the nodes' names"
report $(awk -F, 'NR > 1 { $2 ~ /^node/ ? nodes += $4 : $2 == "cards" ? 0 : all += $4; if ($2 == "dgemm" || $2 == "dtrsm") kernels += $4 } END { exit nodes < 0.999999 * kernels || nodes > 1.000001 * kernels || all <= nodes }' worth.csv; echo $?) \
    "the times of the nodes are those of the kernels"
check "an archive of them" four 200 8 2 --set noise=no --plot sensitivities --archive worth.zip
check "... as a page" "$ASSAY" report worth.zip -o worth.html
report $(grep -q '>node 1 (b)</text>' worth.html; echo $?) "has the bars"
check "sensitivities of more than 1,024 nodes" "$ASSAY" predict hpl-replay dgemm=dgemm.json network=network.json --set N=64 --set NB=8 --set P=33 --set Q=32 --plot sensitivities=many.csv
report $(output '^note: the table sensitivities has no rows of nodes: 1056 nodes and 1056 processes; it has them for at most 1024 nodes'; echo $?) "have none of nodes, which a note says"
factor=$(awk -F, '$2 == 5 { print $3 }' tolerance.csv)
sed -E "s/(\"latency\": *)[0-9.e-]+/\1$(awk -v f="$factor" 'BEGIN { print 1e-5 * f }')/" network.json >late.json
late() { "$ASSAY" predict hpl-replay dgemm=dgemm.json network=late.json loopback=network.json --set N=200 --set NB=8 --set P=2 --set Q=2 --set ranks-per-node=2 --set noise=no "$@"; }
report $(awk -v a="$(value time four 200 8 2 --set noise=no)" -v b="$(value time late)" 'BEGIN { exit b / a < 1.049 || b / a > 1.051 }'; echo $?) \
    "with the latency that is tolerated for 5 % the run takes 5 % longer"
# Six nodes of two processes: node s is half as fast as the others, and calls scatter.
awk 'BEGIN { srand(3); print "node,m,n,k,duration"
    for (i = 0; i < 6; i++) for (s = 10; s <= 40; s += 10) for (t = 10; t <= 30; t += 10)
        print (i == 2 ? "s" : "f" i) "," s "," t "," 20 "," 1e-7 * s * t * 20 * (i == 2 ? 2 : 1) * (0.9 + 0.2 * rand()) }' >six.csv
"$ASSAY" fit linear six.csv --by node --terms 'm*n*k' -o six.json >fit.out 2>&1
six() { "$ASSAY" predict hpl-replay dgemm=six.json network=network.json --set N=240 --set NB=8 --set ranks-per-node=2 "$@"; }
check "what different nodes and scattering calls cost" six --set P=3 --set Q=4 --set node-sets=20 --plot losses --plot losses=losses.csv
report $(output '^spatial +[1-9][0-9.]* % \([0-9.]+ to [0-9.]+\) +#+$'; echo $?) "is drawn as bars, with intervals"
report $(awk -F, '{ loss[$2] = $3 } NR > 1 { bad += $4 > $3 || $5 < $3 } END { exit bad || $4 == $5 || loss["both"] < loss["spatial"] - 2 || loss["temporal"] < 0 || loss["spatial"] < 20 || loss["temporal where nodes differ"] > 5 }' losses.csv; echo $?) \
    "... of both at least that of the nodes, which is 20 % and more, with intervals"
check "sets of fewer nodes than the model has" six --set P=2 --set Q=2 --set node-sets=40 --plot losses=few.csv
report $(awk -F, '$2 == "spatial" { exit !($4 < 10 && $5 > 20) }' few.csv; echo $?) "have the slow node or not"
check "leaving out the slowest nodes" six --set P=3 --set Q=4 --set left-out=2 --set noise=no --plot node_sets=sets.csv
report $(awk -F, 'NR == 2 { none = $5 } NR == 3 { exit !($2 == 1 && $7 == "node 5 (s)" && $3 * $4 == 10 && $5 > 1.2 * none && ($6 - 100 * ($5 / none - 1)) ^ 2 < 1e-9) }' sets.csv; echo $?) \
    "begins with the slow one, on a grid of what is left, which is faster"
report $(awk -F, 'NR == 4 { exit !($2 == 2 && $3 * $4 == 8) }' sets.csv; echo $?) "then another node"
# Of 5, 4, 3 and 2 nodes with 2 rows each: 2 x 5 (not 1 x 10), 2 x 4 (not 1 x 8), 2 x 3, and 2 x 2.
check "leaving out nodes that have a block of the grid" six --set P=2 --set Q=6 --set node-rows=2 --set left-out=4 --set noise=no --plot node_sets=blocks.csv
report $(awk -F, 'NR > 1 { left = 6 - $2; bad += $2 != NR - 2 || $3 * $4 != 2 * left || $3 % 2 } END { exit bad || NR != 6 }' blocks.csv; echo $?) "leaves grids of whole blocks"
check "wider grids" six --set P=3 --set Q=4 --set left-out=2 --set noise=no --set grid-ratio=8 --set BCAST=long --plot node_sets=wide.csv
report $(awk -F, '{ exit NR > 1 && !($3 * $4 == 2 * (6 - $2)) }' wide.csv; echo $?) "are of all processes that are left"
check "nodes that are no block of P <= Q" six --set P=2 --set Q=1 --set node-rows=2 --set noise=no --plot node_sets=column.csv
is "... have the grid that there is" "$(awk -F, 'NR == 2 { print $3 "x" $4 }' column.csv)" 2x1
check "the latency that one node tolerates" four 200 8 4 --plot tolerance=one.csv
report $(output '^note: the table tolerance is empty: the run does not wait for the latency between nodes'; echo $?) "is none, which a note says"
check "a timeline behind the end" four 200 8 2 --plot timeline=late.csv --set window-panel=25
report $(output '^warning: the timeline is to begin with panel 25 and rank 0, but there are 25 panels and 4 ranks, from 0: it shows the last'; echo $?) "is warned of"
check "a timeline of the last panel" four 200 8 2 --plot timeline=late.csv --set window-panel=24 --set window-rank=3
report $(! output 'timeline is to begin'; echo $?) "is not"
is "without any left out the rate is that of the prediction" "$(awk -F, 'NR == 2 { printf "%.6f", $5 }' sets.csv)" \
    "$(awk -v a="$(value gflops six --set P=3 --set Q=4 --set noise=no)" 'BEGIN { printf "%.6f", a }')"
is "tables change no digit" "$(value time four 200 8 2 --plot parts=parts.csv)" "$(value time four 200 8 2)"
four 200 8 2 --json >one.json 2>errors && four 200 8 2 --json --threads 2 >two.json 2>errors
report $(sed 's/"created[^,]*,//' one.json | cmp -s - <(sed 's/"created[^,]*,//' two.json); echo $?) "the same digits with more threads"
check "another seed" four 200 8 2 --seed 2

# A leaf switch for each row of the grid: the row swaps go through the spines.
tree() { four 3000 128 1 --set noise=no --set SWAP=spread-roll "$@"; }
check "a fat tree" tree --set leaf-nodes=2 --set removed-spines=1 --set cable=100MB/s
report $(output 'note: fat tree: leaf switches 2, nodes on each 2 with cards of 1 GB/s; spine switches 1, cables of a leaf switch 1 with 0.1 GB/s; oversubscription 20'; echo $?) "is described"
is "as many cables as nodes change no digit" "$(value time tree --set leaf-nodes=2)" "$(value time tree)"
report $(awk -v a="$(value time tree --set leaf-nodes=2 --set oversubscription=8)" -v b="$(value time tree --set leaf-nodes=2 --set cable=125MB/s)" -v c="$(value time tree)" \
    'BEGIN { exit a != b || a < 1.04 * c }'; echo $?) "cables of an eighth of the cards cost time, however they are said"
report $(awk -v a="$(value time tree --set leaf-nodes=2 --set removed-spines=1)" -v b="$(value time tree --set leaf-nodes=2 --set removed-cables=1)" -v c="$(value time tree)" \
    'BEGIN { exit a != b || a <= c }'; echo $?) "so does a spine less, or its cable"
check "max-min shares" tree --set leaf-nodes=2 --set spines=1 --set sharing=max-min
refuse "a topology that is not replayed" 2 'topology=torus is not replayed, since its routes are not those of levels of switches; set topology=fat-tree or one-switch' tree --set topology=torus
refuse "spines of no tree" 2 'spines is of a fat tree: set leaf-nodes=COUNT, too, or remove it' tree --set spines=2
refuse "a fat tree without leaf switches" 2 'set leaf-nodes=COUNT' tree --set topology=fat-tree
refuse "two speeds of a cable" 2 'cable and oversubscription both' tree --set leaf-nodes=2 --set cable=1GB/s --set oversubscription=2
refuse "no spine left" 2 'of 2 spine switches 2 are removed' tree --set leaf-nodes=2 --set removed-spines=2
refuse "sensitivities of a tree" 2 'are of cards with equal shares alone' tree --set leaf-nodes=2 --plot sensitivities
refuse "... of max-min shares" 2 'set topology=one-switch and sharing=least-share' tree --set sharing=max-min --plot tolerance

refuse "without a network" 2 'no model of the network' "$ASSAY" predict hpl-replay dgemm=dgemm.json --set N=200 --set NB=8 --set P=2 --set Q=2
refuse "a kernel that HPL does not have" 2 "'dsyrk' is no kernel of HPL; expected dtrsm" "$ASSAY" predict hpl-replay dgemm=dgemm.json dsyrk=dgemm.json "${one[@]}"
refuse "no N" 2 "N" "$ASSAY" predict hpl-replay dgemm=dgemm.json --set NB=8 --set P=1 --set Q=1

check "more nodes than the model has" four 200 8 1
report $(output 'has 2 nodes, and 4 are used: they are repeated in order'; echo $?) "are said to be repeated"
check "more processes than cores" four 200 8 4
report $(output "4 processes on a node with threads=1 need 4 cores, and a node of the model 'dgemm.json' has 2"; echo $?) "are warned of"
check "more threads than cores" four 200 8 2 --set threads=2
report $(output '2 processes on a node with threads=2 need 4 cores'; echo $?) "are warned of, too"
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

awk -F, 'NR == 1 || $2 > 1e5' network.csv >large.csv
"$ASSAY" fit smpi large.csv --set latency=10us --set bandwidth=1GB/s -o large.json >fit.out 2>&1
check "smaller messages than were measured" "$ASSAY" predict hpl-replay dgemm=dgemm.json network=large.json --set N=200 --set NB=8 --set P=2 --set Q=2
report $(output "messages have as few as 0.096 kB, and 'large.json' was measured from 131 kB on"; echo $?) "are warned of"
awk 'BEGIN { srand(1); print "m,n,k,duration"; for (i = 1; i < 40; i++) print i ",9,9," rand() }' >wild.csv
"$ASSAY" fit linear wild.csv --terms 'm*n*k' -o wild.json >fit.out 2>&1
check "a model that is not usable" "$ASSAY" predict hpl-replay dgemm=wild.json "${one[@]}"
report $(output 'wild.json.* not usable'; echo $?) "is warned of"

alone() { "$ASSAY" predict hpl-replay dgemm=dgemm.json "${one[@]}" "$@"; }
is "two threads halve dgemm" "$(awk -v a="$(value dgemm alone)" -v b="$(value dgemm alone --set threads=2)" 'BEGIN { printf "%.6f", a / b }')" 2.000000

report $(awk -v t="$(value dgemm alone --set whole-microseconds=yes)" 'BEGIN { exit (1e6 * t - int(1e6 * t + 0.5)) ^ 2 > 1e-6 }'; echo $?) "kernel times are cut to whole microseconds on demand"

# One model of several kernels, as the experiment blas suggests it: dgemv 1e-9 and dscal 1e-6 s an operation.
awk 'BEGIN { print "node,core,kernel,m,n,k,operations,duration"
    for (i = 1; i < 9; i++) print "a,1,dgemv," i "," 9 * i ",1," 18 * i * i "," 18e-9 * i * i
    for (i = 1; i < 9; i++) print "a,1,dscal,1," i ",1," i "," 1e-6 * i }' >blas.csv
"$ASSAY" fit linear blas.csv --by node,core,kernel --terms operations -o blas.json >fit.out 2>&1
"$ASSAY" predict hpl-replay dgemm=dgemm.json "${one[@]}" --plot kernels=kernels.csv >calls.out 2>&1
is "kernels by one model take what their operations say" "$(awk -v t="$(value other_kernels alone kernel=blas.json)" 'BEGIN { printf "%.9f", t }')" "$(awk -F, '
    $4 == "dgemv" { s += 2e-9 * $10 } $4 == "dscal" { s += 1e-6 * $7 } END { printf "%.9f", s }' kernels.csv)"
awk -F, 'NR == 1 { print $0 ",pair" } NR > 1 { print $0 ",remote"; print $1 "," $2 "," $3 / 4 ",loopback" }' network.csv >pairs.csv
"$ASSAY" fit smpi pairs.csv --by pair --set latency=10us --set bandwidth=1GB/s -o pairs.json >fit.out 2>&1
awk -F, 'NR == 1 || / *loopback/' pairs.csv >loopback.csv
"$ASSAY" fit smpi loopback.csv --set latency=10us --set bandwidth=1GB/s -o loopback.json >fit.out 2>&1
is "a network by pair has its own loopback" "$(value time "$ASSAY" predict hpl-replay dgemm=dgemm.json network=pairs.json --set N=200 --set NB=8 --set P=2 --set Q=2 --set ranks-per-node=2)" \
    "$(value time four 200 8 2 loopback=loopback.json)"

# Some panels for all: 250 of them, of which all but a few windows are left out.
check "a sampled replay" four 2000 8 2 --set noise=no --set replay=sampled --set replayed-panels=80 --plot panels=sampled.csv
report $(output '^note: [0-9]+ of 250 panels were replayed' && output '^sampling_error +[0-9.]+ .?s'; echo $?) "says of how many, and how far off it may be"
is "it has all panels" "$(wc -l <sampled.csv)" 251
sampled() { four 2000 8 2 --set noise=no --set replay=sampled --set replayed-panels=80 "$@"; }
report $(awk -v e="$(value time four 2000 8 2 --set noise=no)" -v t="$(value time sampled)" -v s="$(value sampling_error sampled)" \
    'BEGIN { d = t - e; d = d < 0 ? -d : d; exit !(d <= s && d < 0.01 * e && s < 0.05 * e) }'; echo $?) "is as far off as it says"
check "few panels" four 200 8 2 --set replay=sampled
report $(output '^note: all 25 panels were replayed'; echo $?) "are all replayed"
is "... with the same digits" "$(value time four 200 8 2 --set replay=sampled)" "$(value time four 200 8 2)"
report $(! output 'plausible'; echo $?) "80 panels are plausible"
for table in parts ranks timeline sensitivities tolerance losses node_sets; do
    refuse "the table $table of a sample" 2 "the table $table needs every panel, and replay=sampled leaves some out; set replay=exact" four 2000 8 2 --set replay=sampled --plot $table=sample.csv
done
refuse "a matrix beyond any machine" 2 "N: '2000000000' is out of range; expected 1 to 100000000" four 2000000000 8 2

# HPL as it was built, and as accelerators have it.
copies() { "$ASSAY" predict hpl-replay dgemm=dgemm.json network=network.json --set N=64 --set NB=8 --set P=2 --set Q=2 "$@" --plot kernels=kernels.csv >/dev/null 2>&1 &&
    awk -F, '$3 == "bcast" && $4 == "dlacpy" { n += $5 } END { print n + 0 }' kernels.csv; }
is "HPL copies no panel" "$(copies)" 0
is "with HPL_COPY_L each process copies what it has of its panels" "$(copies --set build=copy-l)" 13
is "... and so it does without MPI's data types" "$(copies --set build=no-mpi-datatype)" 13
is "a node has a block of the grid" "$(value time four 200 8 2 --set noise=no --set node-rows=2)" "$(value time four 200 8 2 --set noise=no --set PMAP=column)"
refuse "a block that does not fit" 2 'node-rows is 3: the 2 ranks of a node are no block of 3 rows of the grid of 2 x 2' four 200 8 2 --set node-rows=3
is "a device of their own factors panels" "$(value time alone dscal=dgemm.json panel-dgemm=dgemm.json)" "$(value time alone dscal=dgemm.json)"
awk -F, 'NR > 1 { $6 *= 3 } 1' OFS=, dgemm.csv >slow.csv
"$ASSAY" fit linear slow.csv --by node,core --terms 'm*n*k' -o slow.json >fit.out 2>&1
is "... which takes its own time, and the update takes no other" \
    "$(awk -v a="$(value dgemm alone)" -v b="$(value dgemm alone panel-dgemm=slow.json)" -v u="$(awk -F, '$3 == "update" && $4 == "dgemm" { s += 1e-9 * $13 } END { print s }' <(
        "$ASSAY" predict hpl-replay dgemm=dgemm.json "${one[@]}" --plot kernels=kernels.csv >/dev/null 2>&1; cat kernels.csv))" 'BEGIN { printf "%.4f", (b - u) / (a - u) }')" 3.0000
refuse "a kernel that panels do not have" 2 "'panel-dsyrk' is no kernel of HPL; expected dtrsm" "$ASSAY" predict hpl-replay dgemm=dgemm.json panel-dsyrk=dgemm.json "${one[@]}"
report $(awk -v a="$(value time four 400 8 2 --set noise=no panel-dgemm=slow.json)" -v b="$(value time four 400 8 2 --set noise=no panel-dgemm=slow.json --set split=0.5)" 'BEGIN { exit !(b < a) }'; echo $?) \
    "a split update is faster where panels are slow"

# A search over what decides, N from the memory.
check "a search by the rate" "$ASSAY" predict hpl-replay dgemm=dgemm.json network=network.json --set P=2 --set Q=2 --set ranks-per-node=2 --set NB=4,8,16 --set node-memory=300kB --set N='round_down(sqrt(0.8 * node_memory * 2 / 8), NB)' --set SWAP=binary-exchange,spread-roll \
    --search 1min --goal gflops -o searched.csv
report $(output '^note: the best of [0-9]+ evaluated scenarios .of .*6 combinations. are shown, by the greatest gflops; best first$'; echo $?) "says of how many"
report $(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { n++; bad += $at["gflops"] > last && n > 1; bad += $at["N"] % $at["NB"] > 0 || $at["N"] < 230 || $at["N"] > 245; last = $at["gflops"] } END { exit bad || n != 6 }' searched.csv; echo $?) \
    "the matrix fills the memory, and the best is first"

echo '4,0,1' >pivots.csv
refuse "too few pivots" 2 'pivots.csv has 1 pivots; expected one for each of N = 4 columns' "$ASSAY" predict hpl-replay dgemm=dgemm.json pivots=pivots.csv --set N=4 --set NB=2 --set P=1 --set Q=1
printf '0,1\n1,0\n2,2\n3,3\n' >pivots.csv
refuse "a pivot above its column" 2 'pivots.csv:2: row 0 for column 1' "$ASSAY" predict hpl-replay dgemm=dgemm.json pivots=pivots.csv --set N=4 --set NB=2 --set P=1 --set Q=1
printf '0,1\n1,\n3\n2,2\n3,3\n' >pivots.csv
refuse "a row on the next line" 2 'pivots.csv has 3 pivots' "$ASSAY" predict hpl-replay dgemm=dgemm.json pivots=pivots.csv --set N=4 --set NB=2 --set P=1 --set Q=1
printf '0,1\n1,3\n2,2\n3,3\n' >pivots.csv
check "pivots that are right" "$ASSAY" predict hpl-replay dgemm=dgemm.json pivots=pivots.csv --set N=4 --set NB=2 --set P=1 --set Q=1
finish
