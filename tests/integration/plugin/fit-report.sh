#!/bin/bash
# What assay fit tells of a model besides its estimates: residuals, plots, errors on rows left out; models
# side by side; methods and their parameters.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
contains() { grep -qE -- "$2" "$1" || { echo "# '$1' does not match: $2"; sed 's/^/# /' "$1" | head -40; return 1; } >&2; }
output() { contains "$scratch/.out" "$1"; } # of the last `check`

# y = 2 + 3 x + noise that repeats, x over two decades; row 40 (line 42: one label has two lines) is far off.
awk 'BEGIN {print "host,name,x,w,y"; for (i = 1; i <= 120; i++) {
    name = i == 5 ? "\"two\nlines\"" : "plain"; y = 2 + 3 * i * i / 10 + (i * 7 % 11 - 5) / 10 + (i == 40 ? 30 : 0)
    print "h" i % 3 "," name "," i * i / 10 "," (i == 7 ? 0 : 1) "," y}}' >line.csv

check "residuals of a fit" env LC_ALL=C "$ASSAY" fit line.csv --response y --terms 1+x
report $(output '^residuals of 120 rows: root mean square [0-9.]+, [0-9.]+ % beyond 2 sigma'; echo $?) "how many, how large"
report $(output '^ +\+2 s \|[-:.o@ ]+$' && output '^  +\+8 s \|' && ! LC_ALL=C grep -q '[^ -~]' .out; echo $?) "a chart in ASCII"
report $(output 'predicted y \(log\)'; echo $?) "its scale is logarithmic where two decades are not enough"
report $([ "$(grep -A1 '^the rows that are furthest off:$' .out | grep -cE '^  line.csv line 42, x 160: 512[0-9.]* observed, 48[0-9.]* predicted, \+[0-9.]+ sigma$')" -eq 1 ]; echo $?) \
    "the worst row first, with its line, behind a record of two lines"
report $(output '^  on settings left out \(5 folds\): error [0-9.]+, [0-9.]+ % of the mean'; echo $?) "the error on settings left out"
check "in a UTF-8 locale" env LC_ALL=C.UTF-8 "$ASSAY" fit line.csv --response y --terms 1+x
report $(grep -q '+2 σ │' .out && grep -q '⠈\|⠐\|⠠\|⡀\|⠁\|⠂\|⠄' .out; echo $?) "it is of dots"
check "--brief" "$ASSAY" fit line.csv --response y --terms 1+x --brief
report $(! grep -q 'residuals\|furthest' .out; echo $?) "leaves them out"
check "--json" "$ASSAY" fit line.csv --response y --terms 1+x --json
report $(! grep -q 'residuals of\|furthest' .out && output '"cv_rmse": [0-9]'; echo $?) "too, and has the error"
check "weights" "$ASSAY" fit line.csv --response y --terms 1+x --weights w
report $(output '^residuals of 119 rows, 1 left out: '; echo $?) "rows of weight 0 are left out"
check "groups" "$ASSAY" fit line.csv --response y --terms 1+x --by host
report $(output '^  line.csv line 42, host h1, x 160: '; echo $?) "the worst row has its group"
sed '/^h0,plain,3.6,/s/,1,/,-1,/' line.csv >negative.csv
refuse "a weight below 0 is told with its line" 2 "the weight 'w' of negative.csv line 8 is -1; expected 0 or more" \
    "$ASSAY" fit negative.csv --response y --terms 1+x --weights w
check "without folds" "$ASSAY" fit line.csv --response y --terms 1+x --json --folds 0
report $(! grep -q '"cv_rmse": [0-9]' .out; echo $?) "there is no such error"
refuse "one fold" 2 "--folds '1'; expected 0 or a number from 2 to 255" "$ASSAY" fit line.csv --response y --folds 1

# Rows that repeat: pure error, and what the model lacks; sizes for which it predicts less than nothing.
awk 'BEGIN {print "x,y"; for (i = 1; i <= 40; i++) for (r = 0; r < 3; r++) print i "," i * i / 10 + (i * 7 + r * 5) % 11 / 10}' >curve.csv
check "a line for a curve, on rows that repeat" "$ASSAY" fit curve.csv --response y --terms 1+x
report $(output '^rows repeat: 40 settings, pure error 0\.[0-9]+; lack of fit F = [0-9]+[0-9.]* \(38, 80\), p [<=] [0-9.]+e-[0-9]+: the standard errors above take rows for independent and the model for true$'; echo $?) \
    "lacks fit"
report $(output '^predicts 0 or less for 18 of 120 rows, the first curve.csv line 2$'; echo $?) "predicts 0 or less, which is said once"
check "the curve" "$ASSAY" fit curve.csv --response y --terms 1+x+x^2
report $(output '^rows repeat: 40 settings, pure error 0\.[0-9]+; lack of fit F = [0-9.]+ \(37, 80\), p = [0-9.]+$' && ! grep -q '^predicts 0' .out; echo $?) \
    "does not"
check "rows of weights" "$ASSAY" fit line.csv --response y --terms 1+x --weights w
report $(! grep -q '^rows repeat' .out; echo $?) "have no such test"

# A large table is thinned, which is said.
awk 'BEGIN {print "x,y"; for (i = 0; i < 300000; i++) print i % 997 "," 5 + 2 * (i % 997) + i % 7}' >large.csv
check "a large table" "$ASSAY" fit piecewise large.csv --response y --terms 1+x --set segments=1
report $(output '^residuals of [0-9]+ rows \(1 in 8\): ' && output '^the rows that are furthest off, of 1 in 8 rows:$'; echo $?) \
    "residuals of some of its rows"
report $(grep -q 'assay: note: there is no cross-validated error: the table has more rows than stay in memory' .err; echo $?) \
    "no cross-validation by the host"

# The plot.
check "a plot" "$ASSAY" fit line.csv --response y --terms 1+x --by host --plot line.svg
report $(contains line.svg '^<svg xmlns="http://www.w3.org/2000/svg" ' && [ "$(tail -n 1 line.svg)" = "</svg>" ]; echo $?) "it is SVG"
report $(! grep -qi '<script\|href\|url(\|<image\|<style' line.svg; echo $?) "of nothing from elsewhere"
report $(contains line.svg 'n = 120 rows of line.csv, 3 groups' && contains line.svg 'fit-linear: y = 1 \+ x; by host' &&
    contains line.svg '>Residuals<' && contains line.svg '>Normal quantiles<' && contains line.svg '>Data and model<'; echo $?) \
    "its title, its panels"
awk -F, -v OFS=, 'NR == 1 {$3 = "x<&\"y"} {print}' line.csv | grep -v '^lines' | sed 's/"two$/plain,1,1,1/' >odd.csv
sed -i '1s/.*/host,name,"x<\&""y",w,y/' odd.csv
check "names that are markup" "$ASSAY" fit transfer odd.csv --response y --sizes 'x<&"y' --plot odd.svg --json
report $(contains odd.svg 'x&lt;&amp;&quot;y' && ! grep -q 'x<&' odd.svg; echo $?) "are escaped"
if command -v xmllint >/dev/null; then
    check "well-formed XML" xmllint --noout line.svg odd.svg
else
    skip "well-formed XML" "there is no xmllint"
fi
cp line.csv same.csv
refuse "a plot over the input" 2 "the output 'same.csv' is also an input" "$ASSAY" fit same.csv --response y --terms 1+x --plot same.csv

# Segments: a line each; a file that is a model of them.
awk 'BEGIN {print "x,y"; for (i = 1; i <= 200; i++) print i "," (i < 100 ? i : 500 + 3 * i) + i % 3 / 10}' >broken.csv
check "segments" "$ASSAY" fit piecewise broken.csv --response y --terms 1+x -o broken.json --plot broken.svg
report $(output '^all rows: 200 rows.*, 2 segments$' && output '^ +1 +100 '; echo $?) "one line for each"
report $(contains broken.json '"cv_rmse": [0-9.e-]+, "cv_relative": [0-9.e-]+, "cv_log_score": -?[0-9.e-]+, "folds": 5'; echo $?) \
    "the model has the host's cross-validation"
check "such a model can be looked at" "$ASSAY" model check broken.json

# Side by side.
for terms in 1 1+x; do "$ASSAY" fit line.csv --response y --terms $terms --brief -o "model-$terms.json" >/dev/null || exit 1; done
check "compare" "$ASSAY" fit compare model-1.json model-1+x.json
report $(output '^A  model-1.json: y = 1$' && output '^  parameters +[0-9]+ +[0-9]+$' && output '^  cv error +[0-9.]+ +[0-9.]+$' && output '^  B is valid for x 0.1 to 1440$'; echo $?) \
    "what they are"
report $(output '^  1 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[-+][0-9.]+$' && output '^  x +- +- +[0-9.]+ +[0-9.]+ +-$'; echo $?) \
    "estimates, and how far apart they are"
report $(output '^B suffices: ' && output 'by their own cross-validation'; echo $?) "which suffices"
check "on data" "$ASSAY" fit compare model-1.json model-1+x.json --data line.csv
report $(output '^  error on the data +[0-9.]+ +[0-9.]+$' && output 'on 120 rows of the data'; echo $?) "errors on the same rows"
awk 'NR > 1 {n++; s += $1; v[n] = $1} END {for (i in v) q += (v[i] - s / n) ^ 2; printf "%.5g\n", sqrt(q / n)}' \
    <(grep -v '^lines\|two$' line.csv | awk -F, '{print $5}') >1
grep -v 'two$' line.csv | sed 's/^lines"/h2,plain/' | grep -v '^h2,plain,2.5,' >without5.csv
check "other rows" "$ASSAY" fit compare model-1.json model-1+x.json --data without5.csv --json
report $(output '"rows": 119,' && output '"sufficient": true'; echo $?) "as JSON"
awk -F, 'NR == 1 {next} {n++; d = $5 - m; q += d * d} END {printf "%.6g\n", sqrt(q / n)}' \
    m="$(grep -o '"estimate": [0-9.e]*' model-1.json | cut -d' ' -f2)" without5.csv >1
grep -o '"rmse": [0-9.e]*' .out | head -1 | awk '{printf "%.6g\n", $2}' >2
report $(cmp 1 2 >&2; echo $?) "the error is right"
"$ASSAY" fit without5.csv --response y --terms 1 --brief -o other.json >/dev/null || exit 1
check "models of different data" "$ASSAY" fit compare other.json model-1+x.json
report $(output '^  cv error +[0-9.]+ +[0-9.]+$' && ! grep -q suffices: .out && output 'not told: they are of different data' && output -- '--data INPUT'; echo $?) \
    "are shown without a verdict"
check "as JSON" "$ASSAY" fit compare other.json model-1+x.json --json
report $(output '"no_verdict": "they are of different data"' && ! grep -q '"sufficient": true' .out; echo $?) "too"
check "with data" "$ASSAY" fit compare other.json model-1+x.json --data line.csv
report $(output '^B suffices: '; echo $?) "there is one"
# Noise: of the same mean the log score decides, in whatever order.
awk 'BEGIN {print "x,y"; for (i = 1; i <= 400; i++) {x = i % 80 + 1; printf "%d,%.9g\n", x, 2 + 3 * x + x * (i * 7919 % 101 - 50) / 500}}' >grow.csv
awk 'BEGIN {print "x,y"; for (i = 1; i <= 400; i++) {x = i % 80 + 1; printf "%d,%.9g\n", x, 2 + 3 * x + (i * 7919 % 101 - 50) / 50}}' >flat.csv
for noise in grow-N-0 grow-N-1 grow-N-2 flat-N-1 flat-N-2; do
    "$ASSAY" fit ${noise%%-*}.csv --response y --terms 1+x --set noise=${noise#*-} --brief -o $noise.json >/dev/null || exit 1
done
check "noise that grows" "$ASSAY" fit compare grow-N-0.json grow-N-1.json grow-N-2.json --data grow.csv
report $(output '^C suffices: ' && output 'of the 3 models .* C has the simplest noise \(N-2\) whose log score' && output 'the best, that of C, -1\.'; echo $?) \
    "N-2 suffices, by its log score"
check "of the files alone" "$ASSAY" fit compare grow-N-2.json grow-N-1.json
report $(output '^A suffices: '; echo $?) "it does too"
check "noise that does not" "$ASSAY" fit compare flat-N-2.json flat-N-1.json --data flat.csv
report $(output '^B suffices: ' && output 'B has the simplest noise \(N-1\)'; echo $?) "N-1 does"
refuse "another response" 2 "expected" "$ASSAY" fit compare model-1.json <(sed 's/"name": "y"/"name": "z"/' model-1+x.json) --data line.csv
refuse "one model" 2 "'compare' is given 1 model; expected 2 to 16" "$ASSAY" fit compare model-1.json
refuse "an option of another action" 2 "'assay fit compare' has no option '--plot'" "$ASSAY" fit compare model-1.json model-1.json --plot x.svg
cp line.csv compare
check "a file called compare" "$ASSAY" fit ./compare --response y --terms 1+x --brief

# All named models.
awk 'BEGIN {print "host,core,m,n,k,duration"; for (i = 0; i < 600; i++) {m = i * 37 % 91 + 9; n = i * 53 % 97 + 3; k = i * 29 % 89 + 11; h = i % 2
    printf "n%d,%d,%d,%d,%d,%.9g\n", h, i % 3, m, n, k, 1 + (2 + h) * m * n * k / 1e4 + (i * 7919 % 101 - 50) / 500}}' >gemm.csv
check "alternatives" "$ASSAY" fit alternatives gemm.csv --by host,core
report $(output '^\* M-1 +host +2 +N-' && [ "$(grep -c '^\* M' .out)" -eq 1 ]; echo $?) "the simplest that suffices is the true one"
report $(output '^  M-0 +\(pooled\) +1 +N-0' && output '^[ +] M-2 +host,core +6 +N-'; echo $?) "from pooled to every group"
grep -E '^    assay fit ' .out | sed "s|assay|$ASSAY|" >command
report $(sh ./command >.out 2>.err && contains model.json '"by": \["host"\]'; echo $?) "its command can be copied"
check "as JSON" "$ASSAY" fit alternatives gemm.csv --by host,core --json
report $(output '"command": "assay fit gemm.csv --response duration --terms M-1 .*--by host' && output '"rmse_standard_error": [0-9]'; echo $?) "with the command"
sed '$a x,0,10,10,10,2' gemm.csv >straggler.csv
check "a group of one row" "$ASSAY" fit alternatives straggler.csv --by host,core
report $(output '^1 group with 1 row left out of the judgement, .*: host x$' && output '^\* M-1 +host +2 +N-' && ! grep -q 'cannot be fitted\|^warning' .out; echo $?) \
    "is left out for all of them, and named"
check "as JSON" "$ASSAY" fit alternatives straggler.csv --by host,core --json
report $(output '"groups_left_out": 1,' && output '"left_out": "host x"' && output '"predicts_well": true'; echo $?) "too"
sed '$a n0,7,10,10,10,2\nn0,7,12,10,10,2\nn1,8,10,10,10,2' gemm.csv >straggler.csv
check "small groups of a second column" "$ASSAY" fit alternatives straggler.csv --by host,core
report $(output '^2 groups with 3 rows left out .*: host n0, core 7; host n1, core 8$' && output '^\* M-1 +host +2 +N-'; echo $?) "likewise"
awk -F, 'NR == 1 || ++rows[$1] < ($1 == "n0" ? 99 : 3)' gemm.csv | sed 's/^n1,/x,/; $a y,1,9,9,9,7' >few.csv
check "two groups of three" "$ASSAY" fit alternatives few.csv --by host
report $(! grep -q 'left out of the judgement' .out && output '^  M-1 +host +3 .* cannot be fitted$'; echo $?) "are no minority: candidates are named"
awk 'BEGIN {print "n,duration"; for (i = 0; i < 90; i++) print i % 9 "," (i * 7919 % 101) ^ 6}' >wild.csv
check "rows that nothing explains" "$ASSAY" fit alternatives wild.csv --sizes n
report $(output '^warning: none of the candidates predicts well: the error of this one is [0-9.]+ % of the mean$'; echo $?) "are warned of"
check "over one size" "$ASSAY" fit alternatives line.csv --response y --sizes x
report $(! grep -q 'M-2' .out && output '^\* M-1'; echo $?) "M-2 is M-1"
refuse "terms of one's own" 2 "the alternatives are M-0, M-1 and M-2; expected no --terms" "$ASSAY" fit alternatives gemm.csv --terms 1+m
refuse "another method" 2 "models of the method 'linear'; found 'transfer'" "$ASSAY" fit alternatives transfer gemm.csv
refuse "no input" 2 "'alternatives' is given no input" "$ASSAY" fit alternatives

# Methods.
check "methods" "$ASSAY" fit --methods
report $(output '^  linear +least squares' && output '^  piecewise +' && ! grep -q predict .out; echo $?) "are listed"
check "as JSON" "$ASSAY" fit --methods --json
report $(output '"method": "linear"'; echo $?) "too"
check "parameters" "$ASSAY" fit linear --parameters
report $(output '^  robust: none, huber, bisquare; default: none$' && output '^  threshold: a number from 0 to 1; default: 0.05$'; echo $?) \
    "words, ranges, defaults"
check "as JSON" "$ASSAY" fit linear --parameters --json
report $(output '"default": "auto"' && output '"maximum": 1,'; echo $?) "too"
refuse "of what" 2 "expected 'assay fit METHOD --parameters'" "$ASSAY" fit --parameters linear robust
refuse "of no method" 2 "there is no plugin 'fit-linaer'; did you mean 'fit-linear'" "$ASSAY" fit linaer --parameters
refuse "nothing at all" 2 "too few operands" "$ASSAY" fit
finish
