#!/bin/bash
# assay fit --set noise=...: the noise of a linear model, from a table to its file; and what does not go together.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1

# duration = 1 + 2 x, and scatter that grows with x; every size four times.
awk 'BEGIN { srand(7); print "host,x,duration"; for (i = 0; i < 400; i++) {
    x = int(i / 4) % 50 + 1; e = rand() + rand() + rand() - 1.5; print "node-" i % 2 "," x "," 1 + 2 * x + e * (0.1 + 0.05 * x) } }' >calls.csv

noise() { grep -oE '"noise": \{"kind"[^}]*' "$1" | head -1; }
score() { grep -oE '"cv_log_score": [-0-9.e+]+' "$1" | head -1 | cut -d' ' -f2; }
while IFS='|' read -r name settings pattern; do
    # shellcheck disable=SC2086 # words
    check "$name" "$ASSAY" fit calls.csv --terms 1+x --by host $settings -o "$name.json"
    report $(noise "$name.json" | grep -qE "$pattern"; echo $?) "... is in the model, with how it was found"
    check "... which is a good one, and shown" sh -c "'$ASSAY' model check $name.json && '$ASSAY' model show $name.json"
done <<'END'
N-1|--set noise=homoscedastic|"N-1", "distribution": "normal", "method": "least-squares"
N-2|--set noise=heteroscedastic|"N-2", "distribution": "normal", "method": "maximum-likelihood"
rule|--set noise=rule|"N-2", "distribution": "normal", "method": "rule"
half|--set noise=heteroscedastic --set distribution=half-normal|"N-2", "distribution": "half-normal"
END
report $(awk -v a="$(score N-2.json)" -v b="$(score N-1.json)" 'BEGIN { exit !(a > b + 0.1) }'; echo $?) "N-2 is better on rows left out"
check "no noise" "$ASSAY" fit calls.csv --terms 1+x --set noise=none -o N-0.json
report $([ -z "$(noise N-0.json)" ]; echo $?) "... is not in the model"
check "the same again" "$ASSAY" fit calls.csv --terms 1+x --by host --set noise=heteroscedastic -o again.json
report $(cmp -s <(sed '/"created"/d' N-2.json) <(sed '/"created"/d' again.json); echo $?) "... is the same to the last digit"
refuse "a noise that is none" 2 "noise" "$ASSAY" fit calls.csv --terms 1+x --set noise=N-3
refuse "robust fits and outliers" 2 "robust=huber cannot be combined with outliers" "$ASSAY" fit calls.csv --terms 1+x --set robust=huber --set outliers=3
finish
