#!/bin/bash
# assay fit alternatives and assay compare: which model suffices.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
fit() { "$ASSAY" fit linear "$@" >/dev/null || exit 1; }

# ---- Alternatives: the truth is M-1 by host.
awk 'BEGIN {print "host,core,m,n,k,duration"; for (i = 0; i < 600; i++) {m = i * 37 % 91 + 9; n = i * 53 % 97 + 3; k = i * 29 % 89 + 11; h = i % 2
    printf "n%d,%d,%d,%d,%d,%.9g\n", h, i % 3, m, n, k, 1 + (2 + h) * m * n * k / 1e4 + (i * 7919 % 101 - 50) / 500}}' >gemm.csv
check "alternatives" "$ASSAY" fit alternatives linear gemm.csv --by host,core
report $(output '^\* +linear +M-1 +host +600 +2 +N-1 +6 ' && [ "$(grep -c '^\* .*linear' .out)" -eq 1 ]; echo $?) "the simplest that suffices is the true one"
report $(output '^ +linear +M-0 +\(pooled\) +600 +1 ' && output '^ +linear +M-2 +host,core +600 +6 '; echo $?) "from pooled to every group"
check "as JSON" "$ASSAY" fit alternatives linear gemm.csv --by host,core --json
report $(output '"mark": "\*"' && output '"rmse_error": [0-9]' && output '"coverage": '; echo $?) "with all there is"
cp .out first
"$ASSAY" fit alternatives linear gemm.csv --by host,core --json >.out
report $(diff first .out >&2; echo $?) "the same seed, the same numbers"
check "formulas of one's own" "$ASSAY" fit alternatives linear gemm.csv --by host --terms '1 + m*n*k, M-1, 1 + m*n*k + m, `m`'
report $(output '^\* +linear +1 \+ m\*n\*k  +host ' && [ "$(grep -c ' linear  *M-1' .out)" -eq 0 ] && [ "$(grep -cE '^. +linear .* N-1 ' .out)" -eq 6 ]; echo $?) \
    "are tried, each once"
sed '$a x,0,10,10,10,2' gemm.csv >straggler.csv
check "a group of one row" "$ASSAY" fit alternatives linear straggler.csv --by host,core
report $(output '^rows compared +600$' && output '^rows left out, as some model cannot predict them +1$' && output '^\* +linear +M-1 +host ' && output '^note: linear M-1 by host: 1 of 3 groups'; echo $?) \
    "is left out for all of them, and named"
awk -F, 'NR == 1 || ++rows[$1] < ($1 == "n0" ? 60 : 3)' gemm.csv | sed 's/^n1,/x,/; $a y,1,9,9,9,7' >few.csv
check "groups of a few rows" "$ASSAY" fit alternatives linear few.csv --by host --terms M-1
awk 'NR == 1 || NR % 5 == 0' gemm.csv | awk -F, -v OFS=, 'NR == 1 {print; next} {$1 = "h" int(NR / 4); print}' >many.csv
check "many groups too small for M-2" "$ASSAY" fit alternatives linear many.csv --by host
report $(output '^note: linear M-2 by host: not compared: '; echo $?) "is not compared, and says why"
awk 'BEGIN {print "n,duration"; for (i = 0; i < 90; i++) print i % 9 "," (i * 7919 % 101) ^ 6}' >wild.csv
check "rows that nothing explains" "$ASSAY" fit alternatives linear wild.csv --sizes n
report $(output '^warning: \* is not usable for prediction: cross-validated error [0-9.]+ % \(median [0-9.]+ %\) over 90 rows'; echo $?) "are warned of"

# Noise in proportion to the time: small rows tell as much as large ones. A line, two lines, and M-2, within 5 %.
grown() { awk -v kind="$1" 'BEGIN {print kind == "M-2" ? "m,n,k,t" : "size,t"; for (i = 0; i < 120; i++) {
    m = i * 37 % 91 + 9; n = i * 53 % 97 + 3; k = i * 29 % 89 + 11; x = int(exp(i * 0.11)) + i
    y = kind == "M-2" ? 100 + m * n * k / 10 + m * n + 2 * m * k + n * k : 10 + x / 500 + (kind == "lines" && x >= 2000 ? 5 + (x - 2000) / 500 : 0)
    printf "%s,%.9g\n", kind == "M-2" ? m "," n "," k : x, y * (1 + (i * 7919 % 101 - 50) / 1000)}}' >"$1.csv"; }
for kind in M-2 line lines; do grown $kind; done
check "M-2 under noise that grows" "$ASSAY" fit alternatives linear M-2.csv --response t
report $(output '^\* +linear +M-2 .* N-2 '; echo $?) "is marked, with its noise"
check "two lines" "$ASSAY" fit alternatives linear piecewise lines.csv --response t --sizes size --terms 1+size
report $(output '^\* +piecewise '; echo $?) "are segments"
for methods in "linear piecewise" "piecewise linear"; do
    check "one line, $methods" "$ASSAY" fit alternatives $methods line.csv --response t --sizes size --terms 1+size
    report $(output '^\* +linear +1\+size .* N-2 '; echo $?) "is a line, and no segment"
done

# Twelve settings, forty repetitions, an offset of each that no line explains: errors are those of twelve.
awk 'BEGIN {print "host,size,y"; for (i = 0; i < 480; i++) { s = i * 7 % 12
    printf "h%d,%d,%.6f\n", i % 3, s * s, 5 + s * s + (s * 7919 % 13 - 6) * 4 + i % 3 * 30 + (i * 31 % 101) / 500}}' >sizes.csv
check "settings" "$ASSAY" fit alternatives linear sizes.csv --response y --sizes size --terms M-1 --json
report $(output '"settings": 12,'; echo $?) "are twelve"
error() { grep -oE '"rmse_error": [0-9.e-]+' .out | head -1 | cut -d' ' -f2; }
settings=$(error)
check "rows" "$ASSAY" fit alternatives linear sizes.csv --response y --sizes size --terms M-1 --folds-by row --json
report $(awk -v s="$settings" -v r="$(error)" 'BEGIN {exit !(s > 2 * r)}'; echo $?) "its standard error is that of settings, not of rows"
check "hosts" "$ASSAY" fit alternatives linear sizes.csv --response y --sizes size --by host --folds-by host
report $(output '^rows in one fold share +columns$' && output '^settings +3$' && output '^\* +linear +M-1 +\(pooled\)'; echo $?) \
    "only a model of all hosts says something of another one"
check "over one size" "$ASSAY" fit alternatives linear sizes.csv --response y --sizes size
report $(! grep -q 'M-2' .out; echo $?) "M-2 is M-1"
check "several methods" sh -c 'ASSAY_PATH=$ASSAY_BUILD/tests/plugins "$ASSAY" fit alternatives linear mean sizes.csv --response y --sizes size --terms M-1'
report $(output '^\* +linear +M-1 +\(pooled\)' && output '^ +mean +\(pooled\) '; echo $?) "are judged on the same rows"
refuse "one setting" 2 "1 setting in 40 rows; expected at least two" sh -c 'awk -F, "NR == 1 || \$2 == 0" sizes.csv >one.csv
    "$ASSAY" fit alternatives linear one.csv --response y --sizes size'
refuse "no input" 2 "'alternatives' is given no input" "$ASSAY" fit alternatives
refuse "no folds" 2 "expected 2 or more" "$ASSAY" fit alternatives linear gemm.csv --folds 0

# ---- Models side by side, on other rows.
line() { awk -v seed="$1" 'BEGIN {print "x,y"; for (i = 1; i <= 120; i++) {x = i % 40 + 1; printf "%d,%.9g\n", x, 2 + 3 * x + (i * seed % 101 - 50) / 50}}'; }
line 7919 >line.csv
line 7907 >other.csv
for terms in 1 1+x 1+x+x^2; do fit line.csv --response y --terms $terms -o "$terms.json"; done
fit other.csv --response y --terms 1+x -o other.json
check "compare" "$ASSAY" compare 1.json 1+x.json other.json
report $(output '^ *A +1.json +linear +120 +1 +N-1 +2$' && output '^note: to see which model suffices, give measurements' && ! grep -q '[*] is the simplest' .out; echo $?) "what they are, without a verdict"
report $(output '^all +1 +C +[0-9.]+ +[0-9.]+ +-[0-9.]+$' && output '^all +1 +B +[0-9.]+ +[0-9.]+ +-$' && output '^note: models A and B were fitted to the same data'; echo $?) \
    "estimates are so many standard errors apart only where data differ"
report $([ "$(grep -cE '^warning: A is not usable for prediction: cross-validated error [0-9.]+ %' .out)" -eq 1 ] && ! grep -q '^warning: [BC] is' .out; echo $?) "and which of them is not usable"
check "on data" "$ASSAY" compare 1+x+x^2.json 1+x.json 1.json --data other.csv
report $(output '^rows of the data +120$' && output '^\* +B '; echo $?) "the simplest that suffices"
check "as JSON" "$ASSAY" compare 1.json 1+x.json --data other.csv --json
report $(output '"grade": "not usable"' && output '"grade": "usable"'; echo $?) "the grades are words"
awk -F, 'NR > 1 {n++; d = $2 - m; q += d * d} END {printf "%.6g\n", sqrt(q / n)}' \
    m="$(grep -oE '"estimate": [0-9.e]+' 1.json | cut -d' ' -f2)" other.csv >1
grep -oE '"rmse": [0-9.e]+' .out | head -1 | awk '{printf "%.6g\n", $2}' >2
report $(cmp 1 2 >&2; echo $?) "the error is right"
sed 's/"response": {"name": "y", "unit": null}/"response": {"name": "y", "unit": "ms"}/' 1+x.json >ms.json
sed 's/"response": {"name": "y", "unit": null}/"response": {"name": "y", "unit": "s"}/' 1+x.json >s.json
check "units" "$ASSAY" compare ms.json s.json --data other.csv
report $(output 'error \(ms\)' && output 'B +s.json +linear +120 +1 +N-[12] +[34] +[0-9]{5} '; echo $?) "models in other units are converted"
check "its own data" "$ASSAY" compare 1.json 1+x.json --data line.csv
report $(output "^warning: model A was fitted to 'line.csv'"; echo $?) "are warned of"
# Of the same mean the log score decides, in whatever order.
scattered() { awk -v grows=$1 -v by=$2 'BEGIN {print "x,y"; for (i = 1; i <= 400; i++) {x = i % 80 + 1
    printf "%d,%.9g\n", x, 2 + 3 * x + (grows ? x / 10 : 4) * (i * by % 101 - 50) / 50}}'; }
for grows in 0 1; do
    scattered $grows 7919 >fitted.csv
    scattered $grows 7907 >judged$grows.csv
    for noise in homoscedastic heteroscedastic; do fit fitted.csv --response y --terms 1+x --set noise=$noise -o $noise$grows.json; done
done
check "noise that grows" "$ASSAY" compare homoscedastic1.json heteroscedastic1.json --data judged1.csv
report $(output '^\* +B .* N-2 '; echo $?) "is heteroscedastic"
check "noise that does not" "$ASSAY" compare heteroscedastic0.json homoscedastic0.json --data judged0.csv
report $(output '^\* +B .* N-1 '; echo $?) "is homoscedastic"
sed 's/"name": "y"/"name": "z"/' 1+x.json >z.json
refuse "another response" 2 "the model's response is 'z'; expected 'y'" "$ASSAY" compare 1.json z.json --data line.csv
refuse "one model" 2 "compare: too few operands; usage: assay compare BASE... NEW" "$ASSAY" compare 1.json
refuse "an option of another action" 2 "compare: unknown option '--plot'" "$ASSAY" compare 1.json 1.json --plot x.svg
finish
