#!/bin/sh
# Steps of the experiment `stencil` on two cores of the machine at hand, predicted with and without overlap. The rate of a core is
# measured on meshes of two widths, steps are predicted for three others; B(s) of messages and of packing comes from the experiments
# mpi-point-to-point and transfer. Nothing is fitted to a step that is predicted.
#
#   sh own.sh [FOLDER]     runs and tables are written into FOLDER; default: the current one. Needs MPI and two cores; 40 s where nothing else runs
#
# README.md says why the meshes, rates and settings are these. REPETITIONS of a mesh, default 4; STEPS of each, default 200.
set -eu
out=${1:-.} assay=${ASSAY:-assay} repetitions=${REPETITIONS:-4} steps=${STEPS:-200}
mkdir -p "$out" && cd "$out"
run() { # NAME: the design is on standard input; prints the archive's path
    { printf 'name: own-%s\nexperiment: %s\ntestbed: local\nprobes: none\n' "$1" "$1"; cat; } >"$1.yaml"
    "$assay" run "$1.yaml" -q -o runs
}
table() { unzip -p "$1" "*$2" 2>/dev/null || cat "$1/$2"; } # of an archive or a folder
# reduce least|median VALUE KEY...: of a table with a header on standard input, for each key.
reduce() {
    how=$1 && shift
    awk -F, -v OFS=, -v how="$how" -v columns="$*" '
        BEGIN { count = split(columns, name, " ") }
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at[name[1]] == "" || $at[name[1]] == name[1] { next }
        { key = $at[name[2]]; for (i = 3; i <= count; i++) key = key OFS $at[name[i]]
          for (i = ++n[key]; i > 1 && value[key, i - 1] > $at[name[1]] + 0; i--) value[key, i] = value[key, i - 1]
          value[key, i] = $at[name[1]] + 0 }
        END { for (key in n) print key, how == "least" ? value[key, 1] : (value[key, int((n[key] + 1) / 2)] + value[key, int(n[key] / 2) + 1]) / 2 }' | sort
}
# Ranks wait for each other in loops, and a rank that another program displaces holds up both: where the user may, MPI runs before all others.
chrt -r 1 true 2>/dev/null && first='chrt -r 1' || first=
printf '#!/bin/sh\nexec %s mpirun "$@"\n' "$first" >mpirun-first && chmod +x mpirun-first
# Paths before and after the steps.
: >copies-all.csv; : >messages-all.csv
paths() {
    table "$(run transfer <<'YAML'
design: {generate: log-uniform, factors: {size: {from: 8KiB, to: 128KiB}, buffer: same}, rows: 20, repetitions: 10}
YAML
    )" results/results.csv >>copies-all.csv
    table "$(run mpi-point-to-point <<YAML
options: {mpirun: $PWD/mpirun-first}
design: {generate: factorial, factors: {sizes: 40, repetitions: 5, largest: 131072, nodes: 1, node_ranks: 2}, repetitions: 3}
YAML
    )" results/tables/messages.csv >>messages-all.csv
}
paths
{
    echo problem,overlap,nx,ny,nz,nodes,ranks,py,pz,steps
    for code in diffusion,96 lbm,24; do
        side=${code#*,}
        for nx in 80 112 144 176 208; do
            for overlap in no yes; do echo "${code%,*},$overlap,$nx,$side,$side,1,2,1,2,$steps"; done
        done
    done
} >meshes.csv
table "$(run stencil <<YAML
options: {device: cpu, mpirun: $PWD/mpirun-first}
design: {file: meshes.csv, repetitions: $repetitions}
YAML
)" results/results.csv >steps.csv
paths
{ echo 'problem,overlap,nx,flops [flop],compute [s]'; reduce least least_compute problem overlap nx flops <steps.csv; } >compute.csv
{ echo 'size [B],duration [s]'; reduce least duration size <copies-all.csv; } >copies.csv
{ echo 'pair,operation,size [B],duration [s]'; reduce median duration pair operation size <messages-all.csv; } >messages.csv
reduce least least_step problem overlap nx <steps.csv >steps-least.csv
"$assay" fit linear compute.csv --response compute --terms M-1 --sizes flops --by problem,overlap --where 'nx == 80 or nx == 208' --folds 0 \
    -o compute.json >fit.log 2>&1
"$assay" fit transfer copies.csv --set criterion=log -o copies.json >>fit.log 2>&1
"$assay" fit transfer messages.csv --response 'duration / 2' --where "pair == 'loopback' and operation == 'PingPong' and size >= 8192" --set criterion=log -o messages.json >>fit.log 2>&1
: >errors.txt
for problem in diffusion lbm; do
    for overlap in no yes; do
        [ $problem = lbm ] && code='--set ny=24 --set nz=24 --set flops=253 --set halo-bytes=20' || code='--set ny=96 --set nz=96 --set flops=13 --set halo-bytes=4'
        # shellcheck disable=SC2086 # several words
        "$assay" predict stencil compute=compute.json network=messages.json copy=copies.json --set compute-group=$problem/$overlap $code \
            --set devices=2 --set nx=112,144,176 --set py=1 --set pz=2 --set periodic=yes \
            --set duplex=full --set progress=none,all --set overlap=$overlap -o predicted.csv >/dev/null 2>>fit.log
        awk -F, -v problem=$problem -v overlap=$overlap '
            FNR == 1 { file++ } FNR == 1 && file == 2 { for (i = 1; i <= NF; i++) at[$i] = i; next }
            file == 1 { if ($1 == problem && $2 == overlap) step[$3] = $4; next }
            { p = $at["progress"]; x = $at["nx"]; t = $at["time"]
              if (p == "none" || overlap == "yes") printf "%s %s %d %s %.6g %.6g %.1f\n", problem, overlap, x, p, step[x], t, 100 * (t / step[x] - 1) }' \
            steps-least.csv predicted.csv >>errors.txt
    done
done
printf '%-10s %-8s %4s %-9s %12s %12s %8s\n' problem overlap nx progress 'measured, s' 'predicted, s' 'error, %'
awk '{ printf "%-10s %-8s %4d %-9s %12s %12s %8s\n", $1, $2, $3, $4, $5, $6, $7 }' errors.txt
median() { awk "$1"' { e = $7 < 0 ? -$7 : $7; print e }' errors.txt | sort -n | awk '{ e[NR] = $1 } END { print NR % 2 ? e[(NR + 1) / 2] : (e[NR / 2] + e[NR / 2 + 1]) / 2 }'; }
echo "median error without sign, %: without overlap $(median '$2 == "no"'), with overlap $(median '$2 == "yes" && $4 == "none"'), with equation (4) $(median '$2 == "yes" && $4 == "all"')"
