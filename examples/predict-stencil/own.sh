#!/bin/sh
# Steps of the experiment `stencil` on two cores of the machine at hand, predicted with and without overlap. The rate of a core is
# measured on meshes of two widths, steps are predicted for three others; B(s) of messages and of packing comes from the experiments
# mpi-point-to-point and transfer. Nothing is fitted to a step.
#
#   sh own.sh [FOLDER]     runs and tables are written into FOLDER; default: the current one. Needs MPI and two cores; minutes
#
# Ranks share no network but the memory, and each moves its bytes itself: duplex=full, progress=none, packing as copies. The parts of the
# diffusion fit into a core's second cache, those of the lattice into the third, so what is packed is warm (buffer: same). Of the repetitions of
# a mesh, a message and a copy the least counts: other programs on the machine only make them longer. REPETITIONS, default 10.
set -eu
out=${1:-.} assay=${ASSAY:-assay} repetitions=${REPETITIONS:-10}
mkdir -p "$out" && cd "$out"
run() { # NAME: the design is on standard input; prints the archive's path
    { printf 'name: own-%s\nexperiment: %s\ntestbed: local\nprobes: none\n' "$1" "$1"; cat; } >"$1.yaml"
    "$assay" run "$1.yaml" -q -o runs
}
table() { unzip -p "$1" "*$2" 2>/dev/null || cat "$1/$2"; } # of an archive or a folder
# least VALUE KEY...: of a table with a header on standard input, for each key.
least() {
    awk -F, -v OFS=, -v columns="$*" '
        BEGIN { count = split(columns, name, " ") }
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at[name[1]] == "" || $at[name[1]] == name[1] { next }
        { key = $at[name[2]]; for (i = 3; i <= count; i++) key = key OFS $at[name[i]]
          if (!(key in value) || $at[name[1]] + 0 < value[key] + 0) value[key] = $at[name[1]] }
        END { for (key in value) print key, value[key] }' | sort
}
copies=$(run transfer <<YAML
design: {generate: log-uniform, factors: {size: {from: 1KiB, to: 256KiB}, buffer: same}, rows: 40, repetitions: $repetitions}
YAML
)
messages=$(run mpi-point-to-point <<YAML
design: {generate: factorial, factors: {seed: [1, 2], sizes: 40, repetitions: $repetitions, largest: 262144, nodes: 1, node_ranks: 2}}
YAML
)
# Few steps a unit, so that some of the units run undisturbed on a machine that has other work, too.
: >steps.csv
for problem in diffusion lbm; do
    [ $problem = lbm ] && side=16 || side=64
    archive=$(run stencil <<YAML
options: {device: cpu}
design:
  generate: factorial
  factors: {problem: $problem, overlap: ["no", "yes"], nx: [64, 96, 128, 160, 192], ny: $side, nz: $side, nodes: 1, ranks: 2, py: 1, pz: 2, steps: 10}
  repetitions: $repetitions
YAML
    )
    table "$archive" results/results.csv >>steps.csv
done
{ echo 'problem,overlap,nx,flops [flop],compute [s]'; least compute problem overlap nx flops <steps.csv; } >compute.csv
{ echo 'size [B],duration [s]'; table "$copies" results/results.csv | least duration size; } >copies.csv
{ echo 'pair,operation,size [B],duration [s]'; table "$messages" results/tables/messages.csv | least duration pair operation size; } >messages.csv
least step problem overlap nx <steps.csv >steps-least.csv
"$assay" fit linear compute.csv --response compute --terms M-1 --sizes flops --by problem --where "overlap == 'no' and (nx == 96 or nx == 160)" --folds 0 \
    -o compute.json >fit.log 2>&1
"$assay" fit transfer copies.csv --set criterion=log -o copies.json >>fit.log 2>&1
"$assay" fit transfer messages.csv --response 'duration / 2' --where "pair == 'loopback' and operation == 'PingPong' and size > 0" --set criterion=log -o messages.json >>fit.log 2>&1
: >errors.txt
for problem in diffusion lbm; do
    [ $problem = lbm ] && code='--set ny=16 --set nz=16 --set flops=253 --set halo-bytes=20' || code='--set ny=64 --set nz=64 --set flops=13 --set halo-bytes=4'
    # shellcheck disable=SC2086 # several words
    "$assay" predict stencil compute=compute.json network=messages.json copy=copies.json --set compute-group=$problem $code \
        --set devices=2 --set nx=64,128,192 --set py=1 --set pz=2 --set periodic=yes \
        --set duplex=full --set progress=none,all --set overlap=no,yes -o predicted-$problem.csv >/dev/null 2>>fit.log
    awk -F, -v problem=$problem '
        FNR == 1 { file++ } FNR == 1 && file == 2 { for (i = 1; i <= NF; i++) at[file, $i] = i; next }
        file == 1 { if ($1 == problem) step[$2, $3] = $4; next }
        { p = $at[2, "progress"]; o = $at[2, "overlap"]; x = $at[2, "nx"]; t = $at[2, "time"]
          if (p == "none" || o == "yes") printf "%s %s %d %s %.6g %.6g %.1f\n", problem, o, x, p, step[o, x], t, 100 * (t / step[o, x] - 1) }' \
        steps-least.csv predicted-$problem.csv >>errors.txt
done
printf '%-10s %-8s %4s %-9s %12s %12s %8s\n' problem overlap nx progress 'measured, s' 'predicted, s' 'error, %'
awk '{ printf "%-10s %-8s %4d %-9s %12s %12s %8s\n", $1, $2, $3, $4, $5, $6, $7 }' errors.txt
median() { awk "$1"' { e = $7 < 0 ? -$7 : $7; print e }' errors.txt | sort -n | awk '{ e[NR] = $1 } END { print NR % 2 ? e[(NR + 1) / 2] : (e[NR / 2] + e[NR / 2 + 1]) / 2 }'; }
echo "median error without sign, %: without overlap $(median '$2 == "no"'), with overlap $(median '$2 == "yes" && $4 == "none"'), with equation (4) $(median '$2 == "yes" && $4 == "all"')"
