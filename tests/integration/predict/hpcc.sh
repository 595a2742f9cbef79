#!/bin/bash
# assay predict hpcc and the elimination behind it: a simulated fleet with known truth, terms of one kind, bad input.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
export ASSAY

check "one command fits ten machines of a fleet and predicts three" sh "$ASSAY_SOURCE/examples/predict-hpcc/reproduce.sh" fleet
report $(awk 'NR > 2 && $2 + 0 > 0 && $2 < 30 && $4 < 30 { n++ } END { exit n != 6 }' .out; echo $?) "all six applications within 30 %, each machine left out, too"
check "without noise" env NOISE=0 sh "$ASSAY_SOURCE/examples/predict-hpcc/reproduce.sh" exact
report $(awk 'NR > 2 && $2 + 0 > 0 && $2 < 10 && $4 < 10 { n++ } END { exit n != 6 }' .out; echo $?) "within 10 %: what the microkernels are off"

# Truth: 30 / dgemm + 2 latency, single is dgemm but for 1 %, triad plays no part; one row is an outlier.
awk 'BEGIN { print "machine,StarDGEMM_Gflops [Gflop/s],SingleDGEMM_Gflops [Gflop/s],StarSTREAM_Triad [GB/s],RandomlyOrderedRingLatency [us],time [s]"
    for (i = 1; i <= 24; i++) { d = 4 + i * 7 % 11; l = 1 + i * 5 % 13
        printf "m%d,%g,%g,%g,%g,%.9g\n", i, d, d * (1 + i * 3 % 7 / 300), 2 + i * 11 % 17, l, (30 / d + 2 * l) * (1 + (i * 5 % 9 - 4) / 1000) * (i == 9 ? 2 : 1) } }' >machines.csv
terms='StarDGEMM_Gflops^-1 + SingleDGEMM_Gflops^-1 + StarSTREAM_Triad^-1 + RandomlyOrderedRingLatency'
fit=("$ASSAY" fit linear machines.csv --response time --weights '1/time^2' --folds 0 --terms)
check "elimination with outliers deleted and one term of a kind" "${fit[@]}" "$terms" --set select=elimination --set outliers=3 \
    --set 'one-of=StarDGEMM_Gflops|SingleDGEMM_Gflops,StarSTREAM_Triad' -o model.json
report $(output '^StarDGEMM_Gflops\^-1 +(29\.[89]|30\.[01])' && output '^RandomlyOrderedRingLatency +(1\.99|2\.0)'; echo $?) "finds the truth"
report $(output '^note: dropped SingleDGEMM_Gflops\^-1: p = .*, one of several terms with columns of one-of$' && output '^note: dropped StarSTREAM_Triad\^-1' && output '^outliers_deleted +1'; echo $?) \
    "and says what went"
check "it keeps one of a kind even where both are significant" "${fit[@]}" 'StarSTREAM_Triad^-1 + StarDGEMM_Gflops^-1 + RandomlyOrderedRingLatency' --set select=elimination --set outliers=3 \
    --set 'one-of=StarDGEMM_Gflops|RandomlyOrderedRingLatency'
report $(output '^note: dropped StarDGEMM_Gflops\^-1: p = .*, one of several terms with columns of one-of$'; echo $?) "the one with the smaller p"
refuse "kinds without elimination" 2 "one-of has an effect only with select=elimination; set both" "${fit[@]}" "$terms" --set one-of='a|b'
"${fit[@]}" "$terms" -o double.json >/dev/null
"${fit[@]}" 'StarDGEMM_Gflops' -o speed.json >/dev/null
"${fit[@]}" '1 + StarDGEMM_Gflops^-1' --by machine -o few.json >/dev/null 2>&1
sed 's/RandomlyOrderedRingLatency/ring/g' model.json >unknown.json
sed 's,"unit": "Gflop/s","unit": "Mflop/s",' model.json >mega.json

machine=(--set StarDGEMM_Gflops=6Gflop/s --set RandomlyOrderedRingLatency=5us)
check "a machine" "$ASSAY" predict hpcc model.json "${machine[@]}" --draws 200 -o one.csv
report $(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { t = $at["time"]; p = $at["floating_point"] + $at["latency"]
    exit !(t > 14.9 && t < 15.1 && t - p < 1e-9 && p - t < 1e-9 && $at["memory"] == 0 && $at["time_low"] < t && t < $at["time_high"]) }' one.csv; echo $?) "is the sum of its terms, with an interval"
printf 'name,StarDGEMM_Gflops [Gflop/s],RandomlyOrderedRingLatency [us]\nold,6,5\nnew,60,5\n' >new.csv
check "a table of machines" "$ASSAY" predict hpcc model.json --scenario new.csv -o table.csv
is "one beyond those that were fitted is warned of, with the factor" "$(grep -c "^new.*'StarDGEMM_Gflops' is 4.29 times the greatest" table.csv) $(grep -c '^old.*extrapolated' table.csv)" "1 0"
check "shares" "$ASSAY" predict hpcc model.json "${machine[@]}" --explain
report $(output '^floating_point +33\.'; echo $?) "by kind"
refuse "two terms of a kind" 2 "has two terms of floating point, StarDGEMM_Gflops\^-1 and SingleDGEMM_Gflops\^-1; expected at most one: fit with --set select=elimination --set one-of=" \
    "$ASSAY" predict hpcc double.json "${machine[@]}"
refuse "a speed that multiplies" 2 "the term StarDGEMM_Gflops of 'speed.json' is not a single inverse speed" "$ASSAY" predict hpcc speed.json "${machine[@]}"
refuse "a model of other columns" 2 "the model 'unknown.json' uses the column 'ring', which is no result of the experiment hpcc" "$ASSAY" predict hpcc unknown.json "${machine[@]}"
refuse "a model in another unit" 2 "'mega.json' was fitted to StarDGEMM_Gflops in Mflop/s; expected Gflop/s" "$ASSAY" predict hpcc mega.json "${machine[@]}"
refuse "a microkernel that is missing" 2 "RandomlyOrderedRingLatency is not set, but the model uses it; set it: a result of the experiment hpcc" "$ASSAY" predict hpcc model.json --set StarDGEMM_Gflops=6Gflop/s
refuse "a speed without its unit" 2 "StarDGEMM_Gflops: '6' is out of range; expected 0.0001 to 10000000 Gflop/s" "$ASSAY" predict hpcc model.json --set StarDGEMM_Gflops=6 --set RandomlyOrderedRingLatency=5us
refuse "a negative latency" 2 "RandomlyOrderedRingLatency: '-5us' is out of range" "$ASSAY" predict hpcc model.json --set StarDGEMM_Gflops=6Gflop/s --set RandomlyOrderedRingLatency=-5us
sed '1s/Star/Stra/' new.csv >misspelt.csv
refuse "a misspelt column" 2 "misspelt.csv:1: there is no parameter 'StraDGEMM_Gflops'" "$ASSAY" predict hpcc model.json --scenario misspelt.csv
refuse "no size" 2 "N: '0' is out of range" "$ASSAY" predict hpcc model.json "${machine[@]}" --set N=0
sed 's/"estimate": \([1-9]\)/"estimate": -\1/g' model.json >negative.json
check "a model that says no time" "$ASSAY" predict hpcc negative.json "${machine[@]}"
report $(output "the model 'negative.json' predicts -15.* s for 'all'; expected a time above 0: fit it with --set bounds=nonnegative"; echo $?) "gives none, and says so"
finish
