#!/bin/bash
# What assay fit leaves out together: settings, rows, or what is equal in some columns.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
error() { grep -oE '"cv_rmse": [0-9][^,]*' "$1" | head -1 | cut -d' ' -f2; }
above() { awk -v a="$1" -v b="$2" 'BEGIN {print !(a > b)}'; }

# Twelve sizes, forty times each on three hosts; each size has an offset of its own that no line explains, and
# each host is slower than the one before.
awk 'BEGIN {print "host,size,y"; for (i = 0; i < 480; i++) { s = i * 7 % 12
    printf "h%d,%d,%.6f\n", i % 3, s * s, 5 + s * s + (s * 7919 % 13 - 6) * 4 + i % 3 * 30 + (i * 31 % 101) / 500}}' >sizes.csv

fold() { # fold NAME [OPTION...]: fits both hosts' levels and the size
    local name=$1; shift
    check "folds: $name" "$ASSAY" fit sizes.csv --response y --terms 1+size+category'(host)' -o "$name.json" "$@"
}
fold setting
report $(contains setting.json '"folds_by": "setting"' && contains setting.json '"folds_columns": \["size", "host"\]'; echo $?) \
    "by default settings are left out, and the model has the columns that make them"
fold row --folds-by row
report $(contains row.json '"folds_by": "row"' && contains row.json '"folds_columns": \[\]'; echo $?) "rows have none"
fold size --folds-by size
report $(contains size.json '"folds_by": "columns"' && contains size.json '"folds_columns": \["size"\]'; echo $?) "columns are named"
report $(above "$(error size.json)" "$(awk -v e="$(error row.json)" 'BEGIN {print 1.1 * e}')") \
    "sizes that were not measured are harder than one more repetition of those that were"
fold again
report $([ "$(error again.json)" = "$(error setting.json)" ]; echo $?) "the same seed, the same folds"
fold seed --seed 2
report $([ "$(error seed.json)" != "$(error setting.json)" ]; echo $?) "another seed, other folds"
check "by host" "$ASSAY" fit sizes.csv --response y --terms 1+size --folds-by host -o host.json
report $(contains host.json '"folds": 3[,}]'; echo $?) "there are as many folds as hosts"
check "likewise by row" "$ASSAY" fit sizes.csv --response y --terms 1+size --folds-by row -o host-row.json
report $(above "$(error host.json)" "$(error host-row.json)") "a host that was not seen is harder"

# One row of a level that no other row has is in all fits; the others are cross-validated.
{ cat sizes.csv && echo lonely,5,10; } >rare.csv
check "a rare level" "$ASSAY" fit rare.csv --response y --terms 1+size+category'(host)' --folds-by row -o rare.json
report $(grep -q "^note: 1 row is not cross-validated: the level 'lonely' of 'host' occurs in one fold only" .out; echo $?) "is left out aloud"
report $([ -n "$(error rare.json)" ] && above 1 "$(awk -v a="$(error rare.json)" -v b="$(error row.json)" 'BEGIN {print 20 * (a / b > 1 ? a / b - 1 : 1 - a / b)}')"; echo $?) \
    "the error is as without it"

# Few units: as many folds as there are, and no empty one; without one of two sizes there is no line.
for units in 2 3 12; do
    awk -v units=$units 'BEGIN {print "x,y"; for (i = 0; i < 60; i++) print i % units "," i % units + i % 7}' >few.csv
    check "$units settings" "$ASSAY" fit few.csv --response y --terms 1+x --folds 255 -o few.json
    report $(contains few.json "\"folds\": $units[,}]"; echo $?) "are in $units folds"
    report $([ $units -gt 2 ] || { contains few.json '"cv_rmse": null' && head -1 .out | grep -q 'its prediction error is not known'; }; echo $?) \
        "... of which the errors are known, or said not to be"
done
check "no folds" "$ASSAY" fit sizes.csv --response y --terms 1+size --folds 0 --json
report $(! grep -q '"cv_rmse": [0-9]' .out; echo $?) "leave no error"
printf 'x,y\n1,2\n' >one.csv
check "one row" "$ASSAY" fit one.csv --response y --terms 1

check "the model holds together" "$ASSAY" model check size.json setting.json row.json
sed 's/"folds_columns": \[/"folds_columns": [7, /' size.json >wrong.json
refuse "a column that is a number" 2 "fails the check" "$ASSAY" model check wrong.json
refuse "the groups' own column" 2 "--folds-by host: each group has one value of it" \
    "$ASSAY" fit sizes.csv --response y --terms 1+size --by host --folds-by host
refuse "a column that there is not" 2 "there is no fold column 'hots'" "$ASSAY" fit sizes.csv --response y --terms 1+size --folds-by hots
refuse "a column again" 2 "'host,host' has 'host' twice" "$ASSAY" fit sizes.csv --response y --terms 1+size --folds-by host,host
finish
