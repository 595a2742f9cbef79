#!/bin/bash
# What assay fit leaves out together: settings, rows, or what is equal in some columns.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
contains() { grep -qE -- "$2" "$1" || { echo "# '$1' does not match: $2"; sed 's/^/# /' "$1" | head -40; return 1; } >&2; }
output() { contains "$scratch/.out" "$1"; } # of the last `check`
error() { sed -nE 's/.*"cv_rmse": ([^,]*),.*/\1/p' "$1" | head -1; }
above() { awk -v a="$1" -v b="$2" 'BEGIN {print !(a > b)}'; }

# Twelve sizes, forty times each on three hosts; each size has an offset of its own that no line explains, and
# each host is slower than the one before.
awk 'BEGIN {print "host,size,y"; for (i = 0; i < 480; i++) { s = i * 7 % 12
    printf "h%d,%d,%.6f\n", i % 3, s * s, 5 + s * s + (s * 7919 % 13 - 6) * 4 + i % 3 * 30 + (i * 31 % 101) / 500}}' >sizes.csv

check "by default" "$ASSAY" fit sizes.csv --response y --terms 1+size+category'(host)' -o setting.json
report $(output '^  on settings left out \(5 folds\): error [0-9.]+,'; echo $?) "settings are left out, which is said"
report $(contains setting.json '^    "folds_by": "setting",$' && contains setting.json '^    "folds_columns": \["size", "host"\],$'; echo $?) \
    "in the model file too, with the columns that tell them apart"
check "by row" "$ASSAY" fit sizes.csv --response y --terms 1+size+category'(host)' --folds-by row -o row.json
report $(output '^  on rows left out \(5 folds\): ' && contains row.json '^    "folds_by": "row",$' && contains row.json '"folds_columns": \[\]'; echo $?) \
    "is said likewise"
check "by size alone" "$ASSAY" fit sizes.csv --response y --terms 1+size+category'(host)' --folds-by size -o size.json
report $(output '^  on values of size left out \(5 folds\): ' && contains size.json '"folds_columns": \["size"\]'; echo $?) "is said likewise"
report $(above "$(error size.json)" "$(awk -v e="$(error row.json)" 'BEGIN {print 1.1 * e}')") \
    "sizes that were not measured are harder than one more repetition of those that were"
check "by host" "$ASSAY" fit sizes.csv --response y --terms 1+size --folds-by host -o host.json
report $(output '^  on values of host left out \(3 folds\): ' && contains host.json '"folds": 3'; echo $?) \
    "there are as many folds as hosts"
check "likewise by row" "$ASSAY" fit sizes.csv --response y --terms 1+size --folds-by row -o host-row.json
report $(above "$(error host.json)" "$(error host-row.json)") "a host that was not seen is harder"
check "once more" "$ASSAY" fit sizes.csv --response y --terms 1+size+category'(host)' -o again.json
report $([ "$(error again.json)" = "$(error setting.json)" ]; echo $?) "the same seed, the same folds"
check "another seed" "$ASSAY" fit sizes.csv --response y --terms 1+size+category'(host)' --seed 2 -o seed.json
report $([ "$(error seed.json)" != "$(error setting.json)" ]; echo $?) "other folds"
check "robust fits" "$ASSAY" fit sizes.csv --response y --terms 1+size --set robust=huber --folds-by size
report $(output '^  on values of size left out \(5 folds\): '; echo $?) "know of them"
check "noise that grows" "$ASSAY" fit sizes.csv --response y --terms 1+size --set noise=N-2 --folds-by host
report $(output '^  on values of host left out \(3 folds\): error .*, log score -'; echo $?) "does"
check "mixtures" "$ASSAY" fit mixture sizes.csv --response y --folds-by host --set components=1 -o mixture.json
check "by row" "$ASSAY" fit mixture sizes.csv --response y --set components=1 -o mixture-row.json
report $(contains mixture-row.json '"folds_by": "row"' && above "$(error mixture.json)" "$(error mixture-row.json)"; echo $?) \
    "without factors each row is by itself"
check "the host's own cross-validation" "$ASSAY" fit piecewise sizes.csv --response y --terms 1+size -o piecewise.json
report $(output '^  on settings left out \(5 folds\): '; echo $?) "leaves out settings"
check "by row" "$ASSAY" fit piecewise sizes.csv --response y --terms 1+size --folds-by row -o piecewise-row.json
report $(above "$(error piecewise.json)" "$(error piecewise-row.json)") "which are harder than rows"
check "alternatives" "$ASSAY" fit alternatives sizes.csv --response y --sizes size --by host --folds-by host
report $(output 'judged on values of host left out of the fit' && output '^\* M-1 +\(pooled\)'; echo $?) \
    "only a model of all hosts says something of another one"

# Three sizes are in three folds at most, whoever counts them.
awk 'BEGIN {print "x,y"; for (i = 0; i < 60; i++) print i % 3 "," i % 3 + i % 7}' >three.csv
for way in "linear --terms 1+x" "linear --terms 1+x --set robust=huber" "linear --terms 1+x+x^2 --set robust=huber" \
    "mixture --set components=1 --folds-by x" "piecewise --terms x" "piecewise --terms x --folds 255"; do
    # shellcheck disable=SC2086 # words
    check "$way" "$ASSAY" fit $way three.csv --response y -o three.json
    report $(contains three.json '"folds": 3[,}]'; echo $?) "has three folds"
done

# Two sizes: without one of them there is no line.
awk 'BEGIN {print "x,y"; for (i = 0; i < 40; i++) print i % 2 "," i % 2 + i % 7}' >two.csv
check "two settings" "$ASSAY" fit two.csv --response y --terms 1+x
report $(output 'note: no cross-validated error: what one fold leaves cannot be fitted: ' && output '^  on settings left out: not defined; --folds-by row tells of single rows$'; echo $?) "are too few, and that is said"
check "rows of them" "$ASSAY" fit two.csv --response y --terms 1+x --folds-by row
report $(output '^  on rows left out \(5 folds\): '; echo $?) "are not"
check "two settings and noise that grows" "$ASSAY" fit two.csv --response y --terms 1+x --set noise=N-2
report $(output 'left out: not defined' && ! grep -q 'log score' .out; echo $?) "have no score either"

# Words that may be slips; one row.
check "a letter twice" "$ASSAY" fit two.csv --response y --terms 1+xx --brief --folds-by row
report $(contains .err "note: 'xx' is no column and is read as the product of its letters" && output '^  x\^2 '; echo $?) "is the square, which is said"
printf 'x,y\n1,2\n' >one.csv
check "one row" "$ASSAY" fit one.csv --response y --terms 1 --brief
report $(output '^1 row from one.csv; 1 group$' && output '^all rows: 1 row,'; echo $?) "is one row"

check "the model holds together" "$ASSAY" model check size.json
check "and is shown" "$ASSAY" model show size.json
report $(output '; seed 1; folds by columns \(size\);'; echo $?) "with its folds"
sed 's/"folds_by": "columns"/"folds_by": "column"/' size.json >wrong.json
refuse "a unit that there is not" 2 "does not hold" "$ASSAY" model check wrong.json
report $(output "'folds_by' is not one of setting, row, columns"; echo $?) "is told"
sed 's/"folds_columns": \[/"folds_columns": [7, /' size.json >wrong.json
refuse "a column that is a number" 2 "does not hold" "$ASSAY" model check wrong.json
report $(output "'folds_columns' is not a list of names"; echo $?) "is told"
check "files that left out other rows" "$ASSAY" fit compare setting.json row.json
report $(output 'rows were left out of them by different columns, which --folds-by makes the same'; echo $?) "are not compared by that"
refuse "the groups' own column" 2 "--folds-by host: each group has one value of it" \
    "$ASSAY" fit sizes.csv --response y --terms 1+size --by host --folds-by host
refuse "a column that there is not" 2 "there is no fold column 'hots'" "$ASSAY" fit sizes.csv --response y --terms 1+size --folds-by hots
refuse "a column again and again" 2 "the fold column 'host' is given twice" \
    "$ASSAY" fit sizes.csv --response y --terms 1+size --folds-by host$(printf ',host%.0s' {1..63})
finish
