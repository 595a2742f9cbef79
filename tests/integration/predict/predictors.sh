#!/bin/bash
# Every predictor with every flag of assay predict, from small archives of the machine at hand; and what each predictor refuses.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
command -v mpicc.openmpi >/dev/null || plan_skip "no Open MPI here"

# ---- Archives: the experiment's NAME, and the campaign on standard input
measure() {
    { printf 'name: %s\ntestbed: local\nprobes: none\n' "$1"; cat; } >"$1.yaml"
    check "a run of $1" "$ASSAY" run "$1.yaml" -q -o runs
    archive[$1]=$(<.out)
}
declare -A archive
measure dgemm <<'YAML'
experiment: dgemm
options: {processes: node}
design: {generate: log-uniform, factors: {m: {from: 16, to: 256}, n: {from: 16, to: 256}, k: {from: 16, to: 256}}, rows: 20, repetitions: 2}
YAML
measure memory <<'YAML'
experiment: memory
options: {volume: 1048576}
design: {generate: factorial, factors: {kernel: copy, size: [64KiB, 256KiB, 1MiB, 4MiB], threads: 1}, repetitions: 2}
YAML
measure transfer <<'YAML'
experiment: transfer
options: {processes: node}
design: {generate: log-uniform, factors: {size: {from: 1KiB, to: 1MiB}}, rows: 20, repetitions: 2}
YAML
measure mpi-point-to-point <<'YAML'
experiment: mpi-point-to-point
options: {bind: none, mpicc: mpicc.openmpi, mpirun: mpirun.openmpi}
design: {generate: factorial, factors: {sizes: 20, repetitions: 2, largest: 1000000, nodes: 1, node_ranks: 2}}
YAML
measure stencil <<'YAML'
experiment: stencil
options: {device: cpu, bind: none, flags: -O1, mpicc: mpicc.openmpi, mpirun: mpirun.openmpi}
design: {generate: factorial, factors: {problem: diffusion, nx: [16, 32, 64], ny: 16, nz: 16, nodes: 1, ranks: 1, steps: 3}}
YAML
measure hpcc <<'YAML' # the suite itself takes too long here: a program that prints what it would
experiment:
  name: hpcc
  factors: {N: {type: integer}, ranks: {type: integer}}
  responses: {HPL_time: {unit: s, pattern: 'HPL_time=(.*)'}, StarDGEMM_Gflops: {unit: Gflop/s, pattern: 'StarDGEMM_Gflops=(.*)'}}
  run: "awk -v n=$N -v r=$ranks 'BEGIN { g = 40 + n % 7; print \"StarDGEMM_Gflops=\" g; printf \"HPL_time=%.9f\\n\", 0.8e-9 * n ^ 3 / r / g * (1 + n % 11 / 1000) }'"
  model: {method: linear, response: HPL_time, terms: 'N^3*ranks^-1*StarDGEMM_Gflops^-1'}
design: {generate: factorial, factors: {N: [1000, 1500, 2000, 2501], ranks: [1, 2]}}
YAML

# ---- What each predictor takes: its name; archives; settings; one more setting; a range of that; a part of the explanation
grid="N=2000 P=1 Q=2"
mesh="ny=64 nz=64 devices=2 flops=13 halo-bytes=4"
predictors=(
    "hpl|dgemm|$grid latency=1us bandwidth=10GB/s|NB=64|NB=32..128:32|update"
    "hpl-layers|dgemm transfer|$grid|NB=64|NB=32..128:32|computation"
    "hpl-accelerator|dgemm|$grid peak=50Gflop/s latency=1us bandwidth=10GB/s|NB=64|NB=32..128:32|update"
    "roofline|memory dgemm|flops=13|bytes=32|bytes=8..32:8|transfer"
    "stencil|stencil mpi-point-to-point transfer|$mesh network-group=loopback|nx=64|nx=32..128:32|compute"
    "hpcc|hpcc|ranks=2 StarDGEMM_Gflops=40Gflop/s|N=2000|N=1000..2500:500|floating_point"
)
for line in "${predictors[@]}"; do
    IFS='|' read -r name from settings one range part <<<"$line"
    set -- predict "$name"
    for a in $from; do set -- "$@" --from "${archive[$a]}"; done
    for s in $settings; do set -- "$@" --set "$s"; done
    varied=("$@" --set "$range")
    set -- "$@" --set "$one"
    check "$name from archives" "$ASSAY" "$@" --draws 20 -o "$name.csv"
    report $(head -1 "$name.csv" | grep -q ',time_low,time_high' && [ "$(grep -c ' is fitted for the role ' .out)" = "$(wc -w <<<"$from")" ]; echo $?) \
        "has intervals, and says what each archive is used for"
    check "$name over a range, with a picture" "$ASSAY" "${varied[@]}" -o "$name-range.csv" --plot time="$name.svg"
    is "has a row and a point for each value" "$(wc -l <"$name-range.csv") $(grep -c 'class="l"' "$name.svg")" "5 1"
    check "$name with a search" "$ASSAY" "${varied[@]}" --search 10
    report $(output '; best first'; echo $?) "says the best first"
    check "$name with an explanation" "$ASSAY" "$@" --explain
    report $(output "^$part +[0-9.]+ "; echo $?) "has the share of $part"
    check "$name into an archive" "$ASSAY" "$@" --archive "$name.zip"
    check "which verifies" "$ASSAY" archive verify "$name.zip"
done

# ---- Bad input that the scripts of single predictors leave out: the predictor; a name; a setting or the model's file; the message
grid="N=2000 NB=64 P=1 Q=1"
"$ASSAY" fit "${archive[dgemm]}" -o dgemm.json >/dev/null
"$ASSAY" fit "${archive[hpcc]}" -o hpcc.json >/dev/null
sed '/"response"/s/"unit": "s"/"unit": "By"/' dgemm.json >bytes.json
refusals=(
    "hpl dgemm.json $grid|no N|N=0|N: '0' is out of range"
    "hpl dgemm.json $grid|a negative latency|latency=-1us|latency: '-1us' is out of range"
    "hpl dgemm.json $grid|no bandwidth|bandwidth=0|bandwidth: '0' is out of range"
    "hpl dgemm.json $grid|a misspelt parameter|bandwith=1GB/s|there is no parameter 'bandwith'.*did you mean 'bandwidth'"
    "roofline|a negative overhead|overhead=-1us|overhead: '-1us' is out of range"
    "roofline|a misspelt parameter|flop=1|there is no parameter 'flop'.*did you mean 'flops'"
    "hpcc hpcc.json N=2000 ranks=2|no bandwidth|RandomlyOrderedRingBandwidth=0GB/s|RandomlyOrderedRingBandwidth: '0GB/s' is out of range"
    "hpcc hpcc.json N=2000 ranks=2|no speed|StarDGEMM_Gflops=0Gflop/s|StarDGEMM_Gflops: '0Gflop/s' is out of range"
    "hpl-accelerator bytes.json peak=1Gflop/s $grid|a model of no time||bytes.json.*time"
    "hpl-layers dgemm=bytes.json latency-1=1us bandwidth-1=1GB/s $grid|a model of no time||bytes.json.*time"
)
for line in "${refusals[@]}"; do
    IFS='|' read -r words title setting message <<<"$line"
    read -r name words <<<"$words"
    set -- predict "$name"
    for word in $words $setting; do
        case $word in *.json) set -- "$@" "$word" ;; *) [ "${word%%=*}" = "${setting%%=*}" ] && [ "$word" != "$setting" ] || set -- "$@" --set "$word" ;; esac
    done
    refuse "$name: $title" 2 "$message" "$ASSAY" "$@"
done
finish
