#!/bin/bash
# assay fit --set noise=...: the noise of a linear model, from a table to its file; and what does not go together.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
contains() { grep -qE -- "$2" "$1" || { echo "# '$1' does not match: $2"; sed 's/^/# /' "$1" | head -20; return 1; } >&2; }

# duration = 1 + 2 x, and scatter that grows with x; every size four times.
awk 'BEGIN { srand(7); print "host,x,duration"; for (i = 0; i < 400; i++) {
    x = int(i / 4) % 50 + 1; e = rand() + rand() + rand() - 1.5; print "node-" i % 2 "," x "," 1 + 2 * x + e * (0.1 + 0.05 * x) } }' >calls.csv

noise() { tr -d '\n' <"$1" | grep -oE '"noise": *\{[^}]*' | head -1; } # up to its first coefficient
check "N-1 is told without being asked for" "$ASSAY" fit calls.csv --terms 1+x --by host -o n1.json
report $(noise n1.json | grep -q '"kind": "N-1", *"distribution": "normal", *"method": "least-squares"'; echo $?) "... and how it was found"
check "N-2" "$ASSAY" fit calls.csv --terms 1+x --by host --set noise=N-2 -o n2.json
report $(noise n2.json | grep -q '"kind": "N-2", *"distribution": "normal", *"method": "maximum-likelihood"'; echo $?) "... by maximum likelihood"
score() { grep -oE '"cv_log_score": [-0-9.e+]+' "$1" | head -1 | cut -d' ' -f2; }
report $(awk -v a="$(score n2.json)" -v b="$(score n1.json)" 'BEGIN { exit !(a > b + 0.1) }'; echo $?) "... which is better on held-out rows"
check "the rule" "$ASSAY" fit calls.csv --terms 1+x --by host --set noise=rule -o rule.json
report $(noise rule.json | grep -q '"kind": "N-2", *"distribution": "normal", *"method": "rule"'; echo $?) "... is named"
check "half-normals" "$ASSAY" fit calls.csv --terms 1+x --by host --set noise=N-2 --set distribution=half-normal -o half.json
report $(noise half.json | grep -q '"distribution": "half-normal"'; echo $?) "... are named"
check "nothing is told" "$ASSAY" fit calls.csv --terms 1+x --set noise=N-0 -o n0.json
report $([ -z "$(noise n0.json)" ]; echo $?) "... of N-0"
for model in n0 n1 n2 rule half; do
    check "the model is a good one: $model" "$ASSAY" model check $model.json
done

check "the same again" "$ASSAY" fit calls.csv --terms 1+x --by host --set noise=N-2 -o again.json
sed '/"created"/d' n2.json >1; sed '/"created"/d' again.json >2
report $(cmp -s 1 2; echo $?) "... is the same to the last digit"
refuse "a noise that is none" 2 "noise" "$ASSAY" fit calls.csv --terms 1+x --set noise=N-3
refuse "outliers and N-2" 2 "noise=N-2 with distribution=normal is found from all rows, and 'outliers'" \
    "$ASSAY" fit calls.csv --terms 1+x --set noise=N-2 --set outliers=3
finish
