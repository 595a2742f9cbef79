#!/bin/bash
# assay fit piecewise by the command line: real message times with known best breaks, and breaks that are given.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
data=$data/mpi
contains() { grep -qE -- "$2" "$1" || { echo "# '$1' does not match: $2"; sed 's/^/# /' "$1" | head -20; return 1; } >&2; }
output() { contains "$scratch/.out" "$1"; } # of the last `check`
# Where the segments of the group with LABELS begin, but the first.
breaks() { grep -F "$2" "$1" | grep -oE '"from": [^,]*' | cut -d' ' -f2 | paste -sd' '; }

# y = 1 + x up to 49, 100 + 3 x from 50 on, as good as without noise; group small has one size alone.
{
    echo "operation,size,duration"
    for i in $(seq 1 100); do
        y=$((i < 50 ? 1 + i : 100 + 3 * i))
        echo "send,$i,$y.0$((i * i % 7))"
        echo "send,$i,$y.0$((i * i % 5))"
    done
    echo "recv,8,1"; echo "recv,8,2"
} >calls.csv

check "segmented lines" "$ASSAY" fit piecewise calls.csv --response duration --by operation -o model.json
told() {
    output '^  segments 2, total_rss [0-9.]+, .*bic -?[0-9.]+' && output '^ +from +to +intercept +\+- +slope +\+- +sigma .*points +break_low +break_high$' &&
        output '^ +50 +100 +100\.0[0-9]+ .* 49 +50$' && [ "$(grep -c '^  noise ' .out)" -eq 1 ] && output 'N-1.*sigma as above'
}
report $(told; echo $?) "segments, the intervals of their breaks and the criterion are printed"
check "it is shown" "$ASSAY" model show model.json
report $(told; echo $?) "the same way"
report $(contains model.json '"kind": "piecewise"'; echo $?) "the model is of this kind"
report $(contains model.json '"over": "size"'; echo $?) "the only column that is left is what the lines are over"
report $([ "$(breaks model.json '"operation": "send"')" = 50 ]; echo $?) "the break is found"
report $(contains model.json '"break_low": 49, "break_high": 50'; echo $?) "and its interval"
report $(contains model.json 'size is always 8'; echo $?) "a group with one size is skipped with the reason"
report $(contains model.json '"criterion"'; echo $?) "the settings are in the model file"

check "breaks that are given" "$ASSAY" fit piecewise calls.csv --response duration --terms 'size eager | 33.5 rendezvous' --by operation -o given.json
report $([ "$(breaks given.json '"operation": "send"')" = 33.5 ]; echo $?) "hold where the user says"
report $(contains given.json '"name": "rendezvous"'; echo $?) "segments have their names"
check "shuffled rows" bash -c '{ head -1 calls.csv; tail -n +2 calls.csv | sort -t, -k3; } >sorted.csv'
check "... give the same model" "$ASSAY" fit piecewise sorted.csv --response duration --by operation -o sorted.json
sed 's/"sorted.csv"/"calls.csv"/; s/"\(created\|sha256\)": "[^"]*"//g; s/"cv_[a-z_]*": [^,}]*//g' sorted.json >1
sed 's/"\(created\|sha256\)": "[^"]*"//g; s/"cv_[a-z_]*": [^,}]*//g' model.json >2
report $(cmp -s 1 2; echo $?) "to the last digit"
refuse "a column that is not there" 2 "no column 'sise'; did you mean 'size'" \
    "$ASSAY" fit piecewise calls.csv --response duration --terms sise --by operation
refuse "breaks out of order" 2 "the terms have '40' at column 13; expected breaks in ascending order" \
    "$ASSAY" fit piecewise calls.csv --response duration --terms 'size | 50 | 40' --by operation
refuse "an unknown criterion" 2 "criterion" "$ASSAY" fit piecewise calls.csv --response duration --by operation --set criterion=hqc

# Forty rows of each size: the noise is that of one of them, not that of their means.
awk 'BEGIN {srand(1); print "size,duration"
    for (i = 1; i <= 20; i++) for (k = 0; k < 40; k++) {s = 0; for (j = 0; j < 12; j++) s += rand(); print i "," (10 + i) * (1 + 0.1 * (s - 6))}}' >noisy.csv
check "a fit of means" "$ASSAY" fit piecewise noisy.csv --response duration --set criterion=log -o noisy.json
check "its noise holds for rows" "$ASSAY" model check noisy.json --data noisy.csv
report $(awk '$1 == "all" && $7 + 0 > 92 && $7 + 0 < 98 {good = 1} END {exit !good}' "$scratch/.out"; echo $?) "95 % of them are within their intervals"

if [ -r "$data/dahu_gros.csv" ]; then
    check "real message times" "$ASSAY" fit piecewise "$data/dahu_gros.csv" --response duration --by experiment,cluster --set segments=4 -o real.json
    want=$(awk -F, '$1 == "pycewise_data:dahu/isend" && $2 == "ols" && $3 == 3 && $4 > 0 {print $5}' "$data/segments_optimum_lines.csv" | paste -sd' ')
    got=$(breaks real.json '"experiment": "isend", "cluster": "dahu"')
    report $([ "$got" = "$want" ] && [ -n "$got" ]; echo $?) "break where the best lines do: $got"
else
    skip "real message times" "the measurements are not here (no folder '$data')"
fi
finish
