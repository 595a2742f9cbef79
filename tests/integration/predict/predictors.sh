#!/bin/bash
# Every predictor with every flag of assay predict, from archives of made-up runs; and what each predictor refuses.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/../made-run.sh"
cd "$scratch" || exit 1

# ---- Archives: the experiment's NAME, and its factors, run and model on standard input
measure() {
    { printf 'name: %s\ntestbed: local\nprobes: none\n' "$1"; cat; } >"$1.yaml"
    check "a run of $1" "$ASSAY" run "$1.yaml" -q -o runs
    archive[$1]=$(<.out)
}
# measure_line EXPERIMENT FACTOR UNIT RESPONSE METHOD [TERMS]: the response is 1 us, and 1 s more for 10^10 of the factor.
measure_line() {
    measure "$1" <<YAML
experiment:
  name: $1
  factors: {$2: {type: integer, unit: $3}}
  responses: {$4: {unit: s, pattern: 'took (.*)'}}
  run: "awk -v s=\$$2 'BEGIN { printf \"took %.12f\", (1e-6 + s / 1e10) * (1 + s % 7 / 1000) }'"
  model: {method: $5, response: $4, sizes: [$2]${6:+, terms: $6}}
design: {generate: factorial, factors: {$2: [1000, 5000, 20000, 64000, 200000, 1000000]}}
YAML
}
declare -A archive
check "a run of dgemm" made_dgemm dgemm 1e-6 1e-10
archive[dgemm]=$(<.out)
measure_line memory size By duration linear M-1
measure_line transfer size By duration transfer
measure_line mpi-point-to-point size By duration transfer
measure_line stencil flops flop compute linear M-1
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
    "stencil|stencil mpi-point-to-point transfer|$mesh|nx=64|nx=32..128:32|compute"
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
    report $(head -1 "$name.csv" | grep -q ',time_low,time_high' && [ "$(grep -c 'fitted .* for the role ' .out)" = "$(wc -w <<<"$from")" ]; echo $?) \
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
