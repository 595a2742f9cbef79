#!/bin/bash
# What a fit is judged by: a time by its unit or its name, rows that are outliers, columns that never change, and
# intervals of what it predicts.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1

# A matrix product with 2 % of noise; every fortieth row took 30 times as long.
awk 'BEGIN { srand(3); print "m,n,k,duration"
    for (i = 0; i < 200; i++) {
        m = 64 + int(2900 * rand()); n = 64 + int(2900 * rand()); k = 64 + int(2900 * rand())
        y = (1e-5 + 7e-11 * m * n * k) * (1 + 0.02 * (rand() + rand() + rand() - 1.5) * 2)
        printf "%d,%d,%d,%.9e\n", m, n, k, i % 40 == 7 ? 30 * y : y } }' >outliers.csv
awk -F, 'NR == 1 || (NR - 2) % 40 != 7' outliers.csv >plain.csv
sed '1s/duration/duration [s]/' plain.csv >seconds.csv

check "rows far off" "$ASSAY" fit outliers.csv --terms M-2
report $(output '^not usable for prediction: .*--set outliers=3 leaves rows out'; echo $?) "are spoken of"
check "which are deleted" "$ASSAY" fit outliers.csv --terms M-2 --set outliers=3
report $(output '^usable: ' && output '^note: [0-9]+ of 200 rows are outliers, and are left out of the scores'; echo $?) "... are counted, not scored"
check "or weighed down" "$ASSAY" fit outliers.csv --terms M-2 --set robust=bisquare
report $(output '^usable: ' && output '^note: [0-9]+ of 200 rows are outliers, and are left out of the scores'; echo $?) "... as well"

verdict() { sed -n 1p .out; }
check "a time by its name" "$ASSAY" fit plain.csv --set noise=homoscedastic; verdict >by-name
check "a time by its unit" "$ASSAY" fit seconds.csv --set noise=homoscedastic
report $(verdict | cmp - by-name >&2; echo $?) "are judged in the same way"
check "with the user's terms" "$ASSAY" fit plain.csv --terms '1+m+n+k' --set noise=homoscedastic; verdict >by-name
check "in both" "$ASSAY" fit seconds.csv --terms '1+m+n+k' --set noise=homoscedastic
report $(verdict | cmp - by-name >&2 && grep -q '; it predicts 0 or less for' by-name; echo $?) "... with what is predicted below 0"
sed '1s/duration/score/' plain.csv >score.csv
check "what is no time" "$ASSAY" fit score.csv --response score --terms '1+m+n+k' --set noise=homoscedastic
report $(! output '0 or less is predicted'; echo $?) "may be below 0"

for method in linear piecewise; do
    printf 'size,duration\n1,0\n2,-1e-6\n3,3e-6\n4,4e-6\n5,5e-6\n6,7e-6\n7,7e-6\n8,9e-6\n' >low.csv
    check "times of 0 and less, $method" "$ASSAY" fit "$method" low.csv --sizes size $([ "$method" = linear ] && echo --terms 1+size)
    report $(output "^note: the measured response 'duration' is 0 or less in 2 of 8 rows"; echo $?) "... are noted"
done
awk -F, -v OFS=, 'NR > 1 { $3 = 64 } 1' plain.csv >flat.csv
refuse "a column that never changes" 2 "'k' is 64 in all rows" "$ASSAY" fit flat.csv --terms M-2

# Intervals of a model with few rows, and of another method.
head -21 plain.csv >few.csv
check "few rows" "$ASSAY" fit few.csv --terms M-2 -o few.json
report $(output '^note: 20 rows are few for 5 coefficients'; echo $?) "are noted"
check "a model that is well" "$ASSAY" model check few.json
check "intervals" "$ASSAY" model eval few.json m=1000 n=1000 k=1000 --json
report $(awk -F'[:,]' '/"(predicted|mean_low|mean_high|measurement_low|measurement_high)"/ { gsub(/[ "]/, "", $1); v[$1] = $2 }
    END { exit !(v["measurement_low"] < v["mean_low"] && v["mean_low"] < v["predicted"] && v["predicted"] < v["mean_high"] &&
                 v["mean_high"] < v["measurement_high"] && v["measurement_high"] - v["measurement_low"] < v["predicted"] / 2) }' .out; echo $?) \
    "that of a measurement contains that of the mean, which contains the prediction"
check "a mixture" "$ASSAY" fit mixture plain.csv --by none --set components=1 -o mixture.json
check "is evaluated" "$ASSAY" model eval mixture.json
report $(output '^all +0\.[0-9]+ +0\.[0-9]+ +0\.[0-9]+ +0\.[0-9]+ +0\.[0-9]+ +-0\.[0-9]+ +0\.[0-9]+$'; echo $?) "... with both intervals"
finish
