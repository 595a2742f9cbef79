#!/bin/bash
# The experiment predict: more than a hundred scenarios of `assay predict hpl`, with a model that the campaign brings.
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
mkdir models
awk 'BEGIN {
    print "m,n,k,duration"
    for (i = 1; i <= 9; i++) for (e = -1; e <= 1; e += 2) {
        m = 100 * i; n = 100 * (i * 4 % 9 + 1); k = 100 * (i * 7 % 9 + 1)
        printf "%d,%d,%d,%.17g\n", m, n, k, (1 + 0.03 * e) * 2 * m * n * k / 1e10
    }
}' >dgemm.csv
cp dgemm.csv models/
fit=(linear --terms 'm*n*k' --set noise=heteroscedastic)
campaign() { # campaign NAME LINE...
    printf '%s\n' "name: $1" "experiment: predict" "testbed: local" "probes: none" "${@:2}" >"$1.yaml"
}
design='design: {generate: factorial, factors: {N: [1000, 2000, 4000], NB: [32, 64, 128], P: [1, 2, 3], Q: [1, 2, 3, 4], latency: [1e-6], bandwidth: [1e10]}, seed: 1}'
campaign sweep "options: {assay: $ASSAY, draws: 20, fit: '${fit[*]}'}" "$design"
check "108 scenarios are predicted" "$ASSAY" run sweep.yaml -q -o runs
results=$(echo runs/sweep-*/results/results.csv)
is "each of them" "$(tail -n +2 "$results" | wc -l)" 108
of() { # of FILE COLUMN N NB P Q: that column of that scenario
    awk -F, -v name="$2" -v key="$3,$4,$5,$6" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["N"] "," $at["NB"] "," $at["P"] "," $at["Q"] == key { print $at[name] }' "$1"
}
check "the model by hand" "$ASSAY" fit "${fit[@]}" dgemm.csv -o dgemm.json
for row in "1000 32 1 1" "2000 64 2 3" "4000 128 3 4"; do
    # shellcheck disable=SC2086 # four words
    set -- $row
    check "a prediction by hand ($row)" "$ASSAY" predict hpl dgemm=dgemm.json --set "N=$1" --set "NB=$2" --set "P=$3" --set "Q=$4" \
        --set latency=1us --set bandwidth=10GB/s --draws 20 -o hand.csv
    for column in time time_low time_high; do
        is "is the same ($column)" "$(of "$results" $column "$@")" "$(of hand.csv $column "$@")"
    done
done
archive=$(echo runs/sweep-*.zip)
"$ASSAY" archive cat "$archive" results/tables/predictions.csv >predictions.csv
check "all numbers are there, with their units" grep -q ',gflops,[0-9.e+]*,Gflop/s$' predictions.csv
check "the archive has what the models were made from" sh -c '"$0" archive cat "$1" inputs/models/dgemm.csv | cmp - dgemm.csv' "$ASSAY" "$archive"

# Each unit's prediction is sealed in it, and its hashes lead to what was measured.
sha() { sha256sum "$@" | cut -d' ' -f1; }
member=$("$ASSAY" archive list "$archive" | grep -o 'results/raw/.*[.]prediction[.]zip$' | sed -n 7p)
is "a sealed prediction for each" "$("$ASSAY" archive list "$archive" | grep -c 'results/raw/.*[.]prediction[.]zip$')" 108
"$ASSAY" archive cat "$archive" "$member" >prediction.zip
report $("$ASSAY" archive cat "$archive" manifest-sha256.txt | grep -qx "$(sha prediction.zip)  $member"; echo $?) "the run's manifest has its hash"
check "it verifies" "$ASSAY" archive verify prediction.zip
"$ASSAY" archive cat prediction.zip run.json | tr -d ' \n' >sealed.json
"$ASSAY" archive cat prediction.zip models/1-dgemm.json >sealed-model.json
check "it has the hash of its model" grep -q "\"sha256\":\"$(sha sealed-model.json)\"" sealed.json
check "... and of what that was fitted to, an input of the run" \
    grep -q "\"inputs\":\[{\"name\":\"dgemm.csv\",\"sha256\":\"$("$ASSAY" archive cat "$archive" inputs/models/dgemm.csv | sha)\"" sealed.json
order=${member##*/} order=${order%%-*}
of_order() { awk -F, -v name="$2" -v order="$order" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } !order || $at["order"] == order { print $at[name] }' "$1"; }
"$ASSAY" archive cat prediction.zip results/results.csv >sealed.csv
is "and the unit's time" "$(order= of_order sealed.csv time)" "$(of_order "$results" time)"
is "... and scenario" "$(order= of_order sealed.csv N)" "$(of_order "$results" N)"

rm -r models
check "and is predicted again from that alone" "$ASSAY" run "$archive" -q -o again
is "... with the same numbers" "$(of again/*/results/results.csv time 2000 64 2 3)" "$(of "$results" time 2000 64 2 3)"

mkdir models && cp dgemm.json models/
small='design: {factors: {N: [1000], NB: [32], P: [1], Q: [1], settings: ["speed=mean panels=asymptotic"]}}'
campaign settings "options: {assay: $ASSAY, models: dgemm.json}" "$small"
check "one model, and parameters of the method" "$ASSAY" run settings.yaml -q -o settings
check "... which count" "$ASSAY" predict hpl dgemm.json --set N=1000 --set NB=32 --set P=1 --set Q=1 --set panels=asymptotic --set speed=mean -o hand.csv
is "... as by hand" "$(of settings/*/results/results.csv time 1000 32 1 1)" "$(of hand.csv time 1000 32 1 1)"
campaign lacking "options: {assay: /nowhere/assay}" "$small"
refuse "a node without assay" 3 "there is no program '/nowhere/assay' on this node, expected assay there \(--set assay=PATH" "$ASSAY" run lacking.yaml -q -o lacking
campaign other "options: {assay: $ASSAY, method: hlp}" "$small"
refuse "a method that is not there" 3 "cannot predict 'hlp'" "$ASSAY" run other.yaml -q -o other
campaign gone "options: {assay: $ASSAY, models: nowhere}" "$small"
refuse "models that are not there" 2 "gone.yaml: option 'models': cannot open '$scratch/nowhere': No such file or directory; expected a file or a folder" \
    "$ASSAY" run gone.yaml -q -o gone
finish
