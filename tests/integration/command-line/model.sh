#!/bin/bash
# assay model: models are shown, checked, evaluated and tabulated.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
errors() { contains .err "$1"; }
model() { "$ASSAY" model "$@"; }

# Two nodes; y = 1 + 2 m + 3 n, twice that on the other, with a residual of +-0.5; m and n both grow, so that large m
# never comes with small n.
awk 'BEGIN {
    print "node,core,m,n,duration"
    for (c = 1; c <= 2; c++)
        for (i = 0; i < 60; i++) {
            m = 10 + i; n = 10 + i + (i * 7 % 11)
            printf "n-%d,0,%d,%d,%.17g\n", c, m, n, c * (1 + 2 * m + 3 * n) + (i % 2 ? 0.5 : -0.5)
        }
}' >lines.csv
check "a linear model" "$ASSAY" fit lines.csv --terms 1+m+n --by node,core --set noise=homoscedastic -o linear.json
check "it is shown" model show linear.json
report $([ "$(sed -n 1p .out)" = "linear.json: linear model of duration, 2 groups" ] &&
    sed -n 2p .out | grep -qE '^usable: cross-validated error 0\.25 % in the worst group \(median 0\.25 %\) over 120 settings of m 10 to 69, n 10 to 78$'; echo $?) \
    "with what it is and whether it can be used first"
report $(output '^formula +duration = c1 \+ c2 m \+ c3 n; by node, core$' && output '^lines.csv +120 +[0-9a-f]{64}$' && output '^n-2/0$' &&
    output '^m +4\.0001'; echo $?) "formula, origin, groups"
check "a group of it" model show linear.json --group n-1/0 --verbose
report $(! grep -q 'n-2/0' .out && output '^m +10 +69'; echo $?) "and no other, with its domain"
check "for programs" model show linear.json --json
report $(output '"group_count": +2' && output '"verdict": "usable' && output '"grade": "usable"' && output '"estimate": 2\.00014'; echo $?) "is JSON of the same"
refuse "a group that is none" 2 "the model has no group 'n-9/0'; did you mean 'n-[12]/0'" "$ASSAY" model show linear.json -g n-9/0

check "one row of one group" model eval linear.json m=20 n=25 --group n-1/0
report $(output '^20 +25 +n-1/0 +115\.98381 +0\.0997[0-9]* +0\.5128 +115\.784 +116\.183 +114\.938 +117\.03$' && [ ! -s .err ]; echo $?) \
    "has the mean that the line has there, its standard error, intervals by Student's t, and no warning inside of the domain"
check "all groups" model eval linear.json m=20 n=25 --all
report $([ "$(wc -l <.out)" -eq 3 ]; echo $?) "are two"
check "a group by its labels" model eval linear.json m=20 n=25 node=n-2 core=0 --json
report $(output '"group": *"n-2/0"' && output '"predicted": *231\.98' && output '"grade": *"usable"'; echo $?) "as JSON, with the grade"
check "beyond a range" model eval linear.json m=690 n=25 --all
report $([ "$(grep -c warning .err)" -eq 1 ] && errors "2 of 2 rows are outside .* 'm' is 10 times the greatest measured value"; echo $?) \
    "warns once, by the factor"
check "beyond all rows together" model eval linear.json m=60 n=12 -g n-1/0
report $(errors 'its measured range, but the combination lies outside the measured rows, by'; echo $?) "warns, too"
sed 's/"response": {"name": "duration", "unit": null}/"response": {"name": "duration", "unit": "s"}/' linear.json >time.json
check "far below" model eval time.json m=-900 n=25 -g n-1/0
report $([ "$(grep -c warning .err)" -eq 1 ] && errors "outside the domain of the model: .*; the predicted time is 0 or less$"; echo $?) \
    "warns of a time that cannot be, in the same sentence"
check "without a unit" model eval linear.json m=-900 n=25 -g n-1/0
report $(errors 'the predicted time is 0 or less$'; echo $?) "a duration is a time, too"
sed 's/"response": {"name": "duration"/"response": {"name": "score"/' linear.json >score.json
check "what is no time" model eval score.json m=-900 n=25 -g n-1/0
report $(! grep -q 'time is 0' .err; echo $?) "may be below 0"
while IFS='|' read -r what pattern words; do
    # shellcheck disable=SC2086 # words
    refuse "$what" 2 "$pattern" "$ASSAY" model $words
done <<'END'
no group|the model has 2 groups \(n-1/0, n-2/0\); expected --group, --all|eval linear.json m=1 n=1
a value too few|the model needs a value of 'n'|eval linear.json m=1 --all
a name that is none|the model uses no 'mm'; did you mean 'm'|eval linear.json mm=1 --all
a value that is none|'m' is '1x'; expected a number; the model has no unit of it|eval linear.json m=1x n=2 --all
an action that is none|'assay model' has no action 'shw'; did you mean 'show'|shw linear.json
an option of another action|'assay model show' has no option '--rows'|show linear.json --rows x
an operand too many|expected a model|show a b
an archive|a.zip: this is an archive, not a model; 'assay fit' makes a model of it|show a.zip
a model for its own output|linear.json|eval linear.json m=1 n=1 --all -o linear.json
END

# The verdict is said by what uses the model, and is in the model file.
check "a model that is worth little" "$ASSAY" fit lines.csv --terms 1 --by node,core -o poor.json --json
report $(output '^  "grade": "not usable",$' && contains linear.json '^  "grade": "usable",$'; echo $?) "has its grade as a word"
check "a row of it" model eval poor.json --all
report $(errors "^assay: warning: 'poor.json' is not usable for prediction: cross-validated error [0-9.]+ %.*; 0 of 2 groups are usable, the worst is 'n-[12]/0'" &&
    [ "$(grep -c warning .err)" -eq 1 ]; echo $?) "is warned of, once"
check "what holds together" model check poor.json
report $(output '^poor.json: good: ' && errors "^assay: warning: 'poor.json' is not usable for prediction"; echo $?) "need not be usable"
check "its coefficients" model table poor.json
report $([ "$(grep -c "^assay: warning: 'poor.json' is not usable for prediction" .err)" -eq 1 ]; echo $?) "are warned of, once"

printf 'node,core,m,n,other\nn-1,0,20,25,x\nn-2,0,700,25,y\n' >rows.csv
check "a table of rows" model eval linear.json --rows rows.csv -o out.csv
report $([ "$(head -1 out.csv)" = "m,n,node,core,group,predicted,standard_error,sigma,mean_low,mean_high,measurement_low,measurement_high,outside,outside_hull,outside_by" ] &&
    contains out.csv '^20,25,n-1,0,n-1/0,115\.98.*,1,0,$' && contains out.csv ',m$' && contains out.csv.datapackage.json '"predicted"' &&
    errors '^assay: warning: 1 of 2 rows'; echo $?) "is one with predictions of each row's group, and units beside it"
check "from a pipe" sh -c "gzip -c rows.csv | '$ASSAY' model eval linear.json --rows -"
report $(output '^20,25,n-1,0,n-1/0,115\.98'; echo $?) "is CSV"
bad_rows() { printf "$2" >bad.csv; refuse "$1" 2 "$3" "$ASSAY" model eval linear.json -r bad.csv; }
bad_rows "a row with a hole" 'node,core,m,n\nn-1,0,20,\n' "bad.csv:2: the model needs a value of 'n'"
bad_rows "rows without a column" 'node,core,m\nn-1,0,20\n' "bad.csv.*'n'"
bad_rows "a row of no group" 'node,core,m,n\nn-7,0,20,1\n' "bad.csv:2: no group of the model has these labels"

check "coefficients" model table linear.json
report $(head -1 .out | grep -q '^node,core,rows,1,m,n,sigma,.*rss,' && output '^n-2,0,60,'; echo $?) "as CSV"
check "of two files" model table linear.json linear.json -o table.csv
report $([ "$(wc -l <table.csv)" -eq 5 ] && contains table.csv '^model,node,core,rows,1,m,n,sigma,' &&
    contains table.csv.datapackage.json '"coefficients"'; echo $?) "with the file in a column, and units beside"

check "what was fitted holds, also for its own rows" model check linear.json --data lines.csv
report $(output '^linear.json: good: linear model of 2 groups$' && output '^n-1/0 +60 +0\.4998'; echo $?) "with the error of each group"
# Measurements that are five times as far off as the noise says.
awk -F, 'NR == 1 {print; next} {printf "%s,%s,%s,%s,%.17g\n", $1, $2, $3, $4, $5 + (NR % 2 ? 2 : -2)}' lines.csv >off.csv
refuse "measurements that are far off" 2 "the model fails the check: the errors are [45]\.?[0-9]* times the standard deviation that the model states" \
    "$ASSAY" model check linear.json --data off.csv
check "unless they may be" model check linear.json --data off.csv --most 9
refuse "two files, one of them damaged" 2 "1 of 2 models fail the check" "$ASSAY" model check linear.json rows.csv --json
report $(output '"verdict": "linear.json: good'; echo $?) "each file by itself"

# Each breaks one thing, in a line whose place is reported.
damage() { # damage WHAT SED-SCRIPT SENTENCE
    sed "$2" linear.json >broken.json
    cmp -s linear.json broken.json && { report 1 "$1: nothing was broken"; return; }
    "$ASSAY" model check broken.json >.out 2>.err; local code=$?
    report $([ $code -eq 2 ] && contains .out "^broken.json:[0-9]+:[0-9]+: +error: +.*$3"; echo $?) "$1"
}
while IFS='|' read -r what script sentence; do damage "$what" "$script" "$sentence"; done <<'END'
no hash|s/"sha256": "[0-9a-f]*"/"sha256": "12"/|'sha256' is '12'; expected 64 hexadecimal digits
no origin|s/"origin"/"orign"/|'origin' is missing
no time|s/"created": "/"created": "x/|'created' is 'x
a standard error that is none|s/"standard_error": /"standard_error": 7/|the standard error of '1'
a t that is none|0,/"t": /s/"t": /"t": 7/|t of '1' is 7
a variance below zero|s/"covariance": \[\[/"covariance": [[-/|covariance
a covariance that is none|s/"covariance": \[\[.*\]\]/"covariance": [[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]]/|not positive semidefinite
a domain the wrong way round|s/"m": \[10, 69\]/"m": [70, 69]/|'m'
a domain of nothing|s/"m": \[10, 69\]/"x": [10, 69]/|the domain has a range of 'x'
a group twice|s/"node": "n-2"/"node": "n-1"/|the group 'n-1/0' occurs twice
labels that are missing|s/"labels": {"node": "n-2", /"labels": {/|node
a factor that is none|s/"factors": \[{"column": "m"/"factors": [{"column": "mm"/|'columns' has no 'mm'
by the same column twice|s/"by": \["node", "core"\]/"by": ["node", "node"]/|node
a column twice|s/{"name": "n", "unit": null, "type"/{"name": "m", "unit": null, "type"/|the column 'm' occurs twice
a hull without a scale|/"hull"/s/"scale": \[[^]]*\]/"scale": [0, 1]/|the scale of 'm' is 0; expected above 0
a sigma below 0|s/"sigma": 0/"sigma": -0/|'sigma' is -0\.51
a sum of squares below 0|s/"rss": 1/"rss": -1/|'rss' is -1
an R2 of 5|s/"r2": 0[.0-9]*/"r2": 5/|'r2' is 5; expected
noise below 0|s/"constant": /"constant": -/|sigma is -0\.51
folds by what is none|s/"folds_by": "setting"/"folds_by": "set"/|expected setting, row or columns
END
printf '[%.0s' $(seq 50000) >deep.json
refuse "what is nested without end" 2 "the model fails the check" "$ASSAY" model check deep.json

# Segments, a category, units, and noise that grows, written by hand.
cat >calls.json <<'JSON'
{"assay_model": 2, "kind": "piecewise", "over": "size", "response": {"name": "took", "unit": "us"}, "weights": null, "by": [],
 "terms": [{"name": "1", "unit": "us", "factors": []},
  {"name": "size", "unit": "us/By", "factors": [{"column": "size", "power": 1}]},
  {"name": "op[recv]", "unit": "us", "factors": [{"column": "op", "power": 1, "level": "recv"}]}],
 "columns": [{"name": "size", "unit": "By", "type": "integer"}, {"name": "op", "unit": null, "type": "string", "levels": ["recv", "send"]}],
 "origin": {"plugin": "fit-hand", "version": "1", "engine": "1", "created": "2026-11-22T08:00:00Z", "rows": 9, "seed": 1, "settings": {}, "inputs":
  [{"name": "x.csv", "sha256": "0000000000000000000000000000000000000000000000000000000000000000", "run_id": null, "experiment": null, "rows": 9}]},
 "units": {}, "groups": [{"labels": {}, "rows": 9, "values": {}, "parts": [
  {"kind": "segment", "to": 65536, "estimates": [
    {"term": "1", "estimate": 10, "standard_error": 1, "t": 10, "p": 0},
    {"term": "size", "estimate": 0.001, "standard_error": null, "t": null, "p": null},
    {"term": "op[recv]", "estimate": 5, "standard_error": null, "t": null, "p": null}],
   "covariance": null, "noise": {"kind": "N-2", "distribution": "half-normal", "constant": 1, "coefficients": [0, 0.0001, 0]},
   "values": {}, "domain": {"size": [1, 65535]}},
  {"kind": "segment", "from": 65536, "estimates": [
    {"term": "1", "estimate": 100, "standard_error": null, "t": null, "p": null},
    {"term": "size", "estimate": 0.002, "standard_error": null, "t": null, "p": null},
    {"term": "op[recv]", "estimate": 0, "standard_error": null, "t": null, "p": null, "dropped": true}],
   "covariance": null, "noise": {"kind": "mixture", "distribution": "normal", "components":
    [{"weight": 0.5, "mean": -3, "sigma": 0}, {"weight": 0.5, "mean": 3, "sigma": 4}]},
   "values": {}, "domain": {"size": [70000, 1048576]}}],
  "notes": []}], "skipped": []}
JSON
check "a model of segments holds" model check calls.json
check "and is shown" model show calls.json
report $(output '^size below 65536 byte$' && output '^size from 65536 byte$' && output '^size +0\.002' && output '^ +0\.5 +3 +4$'; echo $?) "each segment with its noise"
value() { # value NAME OUTPUT WORDS...: what eval prints
    local name=$1 pattern=$2; shift 2
    check "$name" model eval calls.json "$@"
    report $(output "$pattern" && [ ! -s .err ]; echo $?) "... is evaluated, inside"
}
value "a size with its unit in the first segment" '^ +1024 +all +16\.024 +- +1\.102 +- +- +14\.6222 +18\.6639$' size=1KiB op=recv
value "a size in the second, with the sigma of its mixture" '^ +128000 +all +356 +- +4\.123 +- +- +352\.421 +365\.579$' size=0.128MB op=send
report $(output 'no interval of the mean for 1 of 1 rows: the model has no covariance'; echo $?) "... and says which interval it has not"
value "between what two segments saw" ' all ' size=66000 op=send
check "an operation that was never seen" model eval calls.json size=9 op=other
report $(errors "the row is outside .*: 'op' is outside its measured range"; echo $?) "is outside"
refuse "a time for a size" 2 "'size' is '3s'; expected a number of By, or one with its unit" "$ASSAY" model eval calls.json size=3s op=send
check "segments as a table" model table calls.json
report $(output '^rows,part,from,to,1,size,op\[recv\],sigma,sigma.size$' && output '^9,segment,,65536,10,0\.001,5,1,0\.0001$'; echo $?) "a row each"
sed 's/"from": 65536/"from": 60000/' calls.json >overlap.json
refuse "segments that overlap" 2 "overlap.json:[0-9]+:[0-9]+: the segment begins at 60000" "$ASSAY" model eval overlap.json size=1 op=send
sed 's/"from": 65536/"from": 70000/' calls.json >gap.json
refuse "a gap" 2 "fails the check" "$ASSAY" model check gap.json
report $(output 'gap.json:[0-9]+:[0-9]+: +error: +the segment begins at 70000, but the segment before it ends at 65536'; echo $?) "... with its place"
sed 's/"weight": 0.5, "mean": 3/"weight": 0.4, "mean": 3/' calls.json >light.json
refuse "weights that do not add up" 2 "light.json:[0-9]+:[0-9]+: .*add up to" "$ASSAY" model show light.json
sed 's/"kind": "piecewise"/"kind": "population"/; s/, "over": "size"//' calls.json >other.json
check "a kind of somebody's own is shown" model show other.json
refuse "and is not evaluated" 2 "has the kind 'population', which gives no value for a row; expected 'linear', 'piecewise'" \
    "$ASSAY" model eval other.json size=1 op=send
sed 's/"values": {}, "domain"/"values": {"weight": 3}, "domain"/' other.json >heavy.json
refuse "populations with weights of 3" 2 "fails the check" "$ASSAY" model check heavy.json
report $(output "'weight' is 3; expected 0 to 1" && output 'the weights of the parts add up to 6; expected 1'; echo $?) "... with why"

if python3 -c 'import jsonschema' 2>/dev/null; then
    check "files keep to the schema" python3 -c '
import json, jsonschema, sys
schema = json.load(open(sys.argv[1]))
for name in sys.argv[2:]:
    jsonschema.Draft202012Validator(schema).validate(json.load(open(name)))' \
        "$ASSAY_SOURCE/plugins/interface/assay/model.schema.json" linear.json calls.json
else
    skip "files keep to the schema" "no python3-jsonschema here"
fi
finish
