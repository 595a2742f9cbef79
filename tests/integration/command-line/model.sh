#!/bin/bash
# assay model: models are shown, checked, evaluated and tabulated.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
contains() { grep -qE -- "$2" "$1" || { echo "# '$1' does not match: $2"; sed 's/^/# /' "$1" | head -30; return 1; } >&2; }
output() { contains .out "$1"; }
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
check "a linear model" "$ASSAY" fit lines.csv --terms 1+m+n --by node,core -o linear.json
check "it is shown" model show linear.json
report $(output '^linear.json: linear model of duration'; echo $?) "with its kind and response"
report $(output '^formula +duration = c1 \+ c2 m \+ c3 n; by node, core'; echo $?) "its formula"
report $(output '^inputs +lines.csv, sha256 [0-9a-f]{12}'; echo $?) "where it is from"
report $(output '^node n-2, core 0: 60 rows'; echo $?) "its groups"
report $(output 'valid for m 10 to 69, n 10 to '; echo $?) "its domain"
check "a group of it" model show linear.json --group n-1/0
report $(! grep -q 'node n-2' .out; echo $?) "and no other"
check "its summary for programs" model show linear.json --json
report $(output '"group_count": +2' && output '"minimum"' && output '"hull"'; echo $?) "is JSON"
refuse "a group that is none" 2 "the model has no group 'n-9/0'; did you mean 'n-[12]/0'" "$ASSAY" model show linear.json -g n-9/0

check "one row of one group" model eval linear.json m=20 n=25 --group n-1/0
report $(output '^n-1/0: duration = 11[56]\.'; echo $?) "has the mean that the line has there"
report $(output 'standard error 0\.0|standard error 0\.1'; echo $?) "with its standard error"
report $([ ! -s .err ]; echo $?) "and no warning inside of the domain"
check "all groups" model eval linear.json m=20 n=25 --all
report $([ "$(grep -c duration .out)" -eq 2 ]; echo $?) "are two"
check "a group by its labels" model eval linear.json m=20 n=25 node=n-2 core=0 --json
report $(output '"group": *"n-2/0"' && output '"predicted": *23[01]\.'; echo $?) "as JSON"
check "beyond a range" model eval linear.json m=690 n=25 --all
report $([ "$(grep -c warning .err)" -eq 1 ] && errors "2 of 2 rows are outside .* 'm' is 10 times the greatest value"; echo $?) \
    "warns once, by the factor"
check "beyond all rows together" model eval linear.json m=60 n=12 -g n-1/0
report $(errors 'its values together lie outside of what was measured, by'; echo $?) "warns, too"
sed 's/"response": {"name": "duration", "unit": null}/"response": {"name": "duration", "unit": "s"}/' linear.json >time.json
check "far below" model eval time.json m=-900 n=25 -g n-1/0
report $([ "$(grep -c warning .err)" -eq 1 ] && errors "outside of what the model was fitted to: .*; the predicted time is 0 or less$"; echo $?) \
    "warns of a time that cannot be, in the same sentence"
check "what is no time" model eval linear.json m=-900 n=25 -g n-1/0
report $(! grep -q 'time is 0' .err; echo $?) "may be below 0"
refuse "no group" 2 "the model has 2 groups \(n-1/0, n-2/0\); expected --group, --all" "$ASSAY" model eval linear.json m=1 n=1
refuse "a value too few" 2 "there is no value of 'n', which the model needs" "$ASSAY" model eval linear.json m=1 --all
refuse "a name that is none" 2 "the model uses no 'mm'; did you mean 'm'" "$ASSAY" model eval linear.json mm=1 --all
refuse "a value that is none" 2 "'m' is '1x'; expected a number; the model tells no unit of it" "$ASSAY" model eval linear.json m=1x n=2 --all

printf 'node,core,m,n,other\nn-1,0,20,25,x\nn-2,0,700,25,y\n' >rows.csv
check "a table of rows" model eval linear.json --rows rows.csv -o out.csv
report $([ "$(head -1 out.csv)" = "m,n,node,core,group,predicted,standard_error,sigma,outside,outside_by" ] &&
    [ "$(wc -l <out.csv)" -eq 3 ]; echo $?) "is one with predictions"
report $(contains out.csv '^20,25,n-1,0,n-1/0,11[56]\..*,1,$' && contains out.csv ',m$'; echo $?) "of each row's group"
report $(contains out.csv.datapackage.json '"predicted"'; echo $?) "and says what its columns are"
report $(errors '^assay: warning: (the|1 of 2) row'; echo $?) "one of them outside"
printf 'node,core,m,n\nn-1,0,20,\n' >hole.csv
refuse "a row with a hole" 2 "hole.csv:2: there is no value of 'n'" "$ASSAY" model eval linear.json -r hole.csv
printf 'node,core,m\nn-1,0,20\n' >less.csv
refuse "rows without a column" 2 "less.csv.*'n'" "$ASSAY" model eval linear.json -r less.csv
printf 'node,core,m,n\nn-7,0,20,1\n' >strange.csv
refuse "a row of no group" 2 "strange.csv:2: no group of the model has these labels" "$ASSAY" model eval linear.json -r strange.csv
refuse "a model for its own output" 2 "linear.json" "$ASSAY" model eval linear.json m=1 n=1 --all -o linear.json

check "coefficients" model table linear.json
report $([ "$(head -1 .out)" = "node,core,rows,1,m,n,sigma" ] && output '^n-2,0,60,'; echo $?) "as CSV"
check "of two files" model table linear.json linear.json -o table.csv
report $([ "$(wc -l <table.csv)" -eq 5 ] && contains table.csv '^model,node,core,rows,1,m,n,sigma$' &&
    contains table.csv.datapackage.json '"coefficients"'; echo $?) "with the file in a column, and units beside"

check "what was fitted holds" model check linear.json
report $(output '^linear.json: good: linear model of 2 groups'; echo $?) "is said"
check "also for its own rows" model check linear.json --data lines.csv
report $(output '^  n-1/0 +60 +0\.[45]'; echo $?) "with the error of each group"
# Measurements that are five times as far off as the noise says.
awk -F, 'NR == 1 {print; next} {printf "%s,%s,%s,%s,%.17g\n", $1, $2, $3, $4, $5 + (NR % 2 ? 2 : -2)}' lines.csv >off.csv
check "with noise that is as it says" model check linear.json --data lines.csv
report $(output '^  all +120 .* 100\.00%'; echo $?) "the intervals hold"
refuse "measurements that are far off" 2 "the model does not hold: the errors are [45]\.?[0-9]* times what the noise" \
    "$ASSAY" model check linear.json --data off.csv
check "unless they may be" model check linear.json --data off.csv --most 9
check "a model without noise" "$ASSAY" fit lines.csv --terms 1+m+n --by node,core --set noise=N-0 -o silent.json
refuse "two files, one of them far off" 2 "1 of 2 models do not hold" "$ASSAY" model check silent.json linear.json --data off.csv --json
refuse "data without a column" 2 "less.csv: there is no needed column 'duration'" "$ASSAY" model check linear.json --data less.csv

# Each breaks one thing, in a line whose place is told.
damage() { # damage WHAT SED-SCRIPT SENTENCE
    sed "$2" linear.json >broken.json
    cmp -s linear.json broken.json && { report 1 "$1: nothing was broken"; return; }
    "$ASSAY" model check broken.json >.out 2>.err; local code=$?
    report $([ $code -eq 2 ] && contains .out "^broken.json:[0-9]+:[0-9]+: .*$3"; echo $?) "$1"
}
damage "no hash" 's/"sha256": "[0-9a-f]*"/"sha256": "12"/' "'sha256' is '12'; expected 64 hexadecimal digits"
damage "no origin" 's/"origin"/"orign"/' "'origin' is missing"
damage "no time" 's/"created": "/"created": "x/' "'created' is 'x"
damage "a standard error that is none" 's/"standard_error": /"standard_error": 7/' "the standard error of '1'"
damage "a t that is none" '0,/"t": /s/"t": /"t": 7/' "t of '1' is 7"
damage "a variance below zero" 's/"covariance": \[\[/"covariance": [[-/' "'covariance' is not symmetric"
damage "a covariance that is none" 's/"covariance": .*]], "notes"/"covariance": [[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]], "notes"/' \
    "some combination of the terms"
damage "a domain the wrong way round" 's/"minimum": 10, "maximum": 69/"minimum": 70, "maximum": 69/' "'minimum' is not at most"
damage "a group twice" 's/"node": "n-2"/"node": "n-1"/' "the group 'n-1/0' is there twice"
damage "labels that are missing" 's/"labels": {"node": "n-2", /"labels": {/' "the group has no text for 'node'"
damage "a factor that is none" 's/"factors": \[{"name": "m"/"factors": [{"name": "mm"/' "'factors' has no 'm'"
damage "an estimate too few" 's/, {"name": "n", "unit": null, "estimate".*"rss"/], "rss"/' "'terms' is missing or is not as long as the formula"
"$ASSAY" model check broken.json linear.json no.json >.out 2>.err
report $([ $? -eq 2 ] && contains .err '2 of 3 models do not hold' && contains .out '^linear.json: good'; echo $?) "each file by itself"

# Segments, a category, units, and noise that grows, written by hand.
cat >calls.json <<'JSON'
{"assay_model": 1, "kind": "piecewise", "over": "size", "response": {"name": "took", "unit": "us"},
 "formula": [{"name": "1", "unit": "us", "factors": []},
  {"name": "size", "unit": "us/By", "factors": [{"factor": "size", "power": 1}]},
  {"name": "op=recv", "unit": "us", "factors": [{"factor": "op", "power": 1, "level": "recv"}]}],
 "factors": [{"name": "size", "unit": "By", "type": "integer"},
  {"name": "op", "unit": null, "type": "string", "levels": ["recv", "send"]}],
 "weights": null, "by": [],
 "origin": {"plugin": "fit-hand", "version": "1", "engine": "1", "created": "2026-11-22T08:00:00Z", "rows": 9, "inputs":
  [{"file": "x.csv", "sha256": "0000000000000000000000000000000000000000000000000000000000000000", "run_id": null, "rows": 9}]},
 "groups": [{"labels": {}, "n": 9, "parts": [
  {"kind": "segment", "to": 65536, "terms": [
    {"name": "1", "unit": "us", "estimate": 10, "standard_error": 1, "t": 10, "p": 0},
    {"name": "size", "unit": "us/By", "estimate": 0.001, "standard_error": null, "t": null, "p": null},
    {"name": "op=recv", "unit": "us", "estimate": 5, "standard_error": null, "t": null, "p": null}],
   "domain": [{"name": "size", "minimum": 1, "maximum": 65535}],
   "noise": {"kind": "N-2", "distribution": "half-normal", "sigma": [{"name": "1", "estimate": 1}, {"name": "size", "estimate": 0.0001}]},
   "covariance": null},
  {"kind": "segment", "from": 65536, "terms": [
    {"name": "1", "unit": "us", "estimate": 100, "standard_error": null, "t": null, "p": null},
    {"name": "size", "unit": "us/By", "estimate": 0.002, "standard_error": null, "t": null, "p": null},
    {"name": "op=recv", "unit": "us", "estimate": 0, "standard_error": null, "t": null, "p": null, "dropped": true}],
   "domain": [{"name": "size", "minimum": 70000, "maximum": 1048576}],
   "noise": {"kind": "mixture", "distribution": "normal", "components":
    [{"weight": 0.5, "mean": -3, "sigma": 0}, {"weight": 0.5, "mean": 3, "sigma": 4}]}, "covariance": null}],
  "notes": []}], "skipped": []}
JSON
check "a model of segments holds" model check calls.json
check "and is shown" model show calls.json
report $(output '^ +65536 +1048576 +100 +- +0\.002 +-( |$)'; echo $?) "a line a segment"
awk 'BEGIN {print "size,took"; for (i = 1; i <= 60; i++) printf "%d,%.9g\n", i * i, (i < 30 ? 5 : 5 + i * i) + (i % 3) / 100}' >steps.csv
check "a fit by segments" "$ASSAY" fit piecewise steps.csv -y took -o steps.json
check "holds" model check steps.json --data steps.csv
check "and is shown" model show steps.json
report $(output '^ +[0-9.]+ \|.*\*' && output 'took .*over size .*; .:. is where a segment begins'; echo $?) "as a curve"
check "a size with its unit" model eval calls.json size=1KiB op=recv
report $(output '^all: took = 16\.024 us, of one measurement 1\.102 us'; echo $?) "is converted, in the first segment"
check "a size in the second" model eval calls.json size=0.128MB op=send
report $(output '^all: took = 356 us, of one measurement 4\.123 us'; echo $?) "has its line, and the sigma of its mixture"
check "between what two segments saw" model eval calls.json size=66000 op=send
report $([ ! -s .err ]; echo $?) "is inside"
check "an operation that was never seen" model eval calls.json size=9 op=other
report $(errors "the row is outside .*: 'op' is outside of what was measured"; echo $?) "is outside"
refuse "a time for a size" 2 "'size' is '3s'; expected a number of By, or one with its unit" "$ASSAY" model eval calls.json size=3s op=send
check "segments as a table" model table calls.json
report $(output '^rows,part,from,to,1,size,op=recv,sigma,sigma.size$' && output '^9,segment,,65536,10,0\.001,5,1,0\.0001$'; echo $?) \
    "a row each"
sed 's/"from": 65536/"from": 60000/' calls.json >overlap.json
refuse "segments that overlap" 2 "overlap.json:[0-9]+:[0-9]+: 'from' is not at least the 'to' of the segment before" \
    "$ASSAY" model eval overlap.json size=1 op=send
sed 's/"from": 65536/"from": 70000/' calls.json >gap.json
"$ASSAY" model check gap.json >.out 2>.err
report $([ $? -eq 2 ] && output 'gap.json:[0-9]+:[0-9]+: the segment begins at 70000, and the one before it ends at 65536'; echo $?) "a gap"
sed 's/"weight": 0.5, "mean": 3/"weight": 0.4, "mean": 3/' calls.json >light.json
refuse "weights that do not add up" 2 "light.json:[0-9]+:[0-9]+: 'components' is not such that the weights add up to 1" \
    "$ASSAY" model show light.json
sed 's/"kind": "piecewise"/"kind": "population"/; s/, "over": "size"//' calls.json >other.json
check "a kind of somebody's own is shown" model show other.json
refuse "and is not evaluated" 2 "of the kind 'population', which is not evaluated row by row; expected 'linear', 'piecewise'" \
    "$ASSAY" model eval other.json size=1 op=send
refuse "nor predicted from" 2 "of the kind 'piecewise'" "$ASSAY" predict hpl calls.json --set N=100 --set NB=10 --set P=1 --set Q=1
refuse "nor designed for" 2 "of the kind 'piecewise', of which no uncertainty is known; expected 'linear'" "$ASSAY" design next calls.json

if python3 -c 'import jsonschema' 2>/dev/null; then
    check "files keep to the schema" python3 -c '
import json, jsonschema, sys
schema = json.load(open(sys.argv[1]))
for name in sys.argv[2:]:
    jsonschema.Draft202012Validator(schema).validate(json.load(open(name)))' \
        "$ASSAY_SOURCE/plugins/interface/model.schema.json" linear.json calls.json
else
    skip "files keep to the schema" "no python3-jsonschema here"
fi

refuse "an action that is none" 2 "'shw' is not what can be done with a model; expected 'show'" "$ASSAY" model shw linear.json
refuse "an option of another action" 2 "'assay model show' has no option '--rows'" "$ASSAY" model show linear.json --rows x
refuse "two operands too many" 2 "expected a model" "$ASSAY" model show a b
finish
