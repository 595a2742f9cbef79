#!/bin/bash
# assay design next: the loop from a model back to a design, and what is refused.
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
next() { "$ASSAY" design next "$@"; }
rows() { tail -n +2 "$1" | wc -l; }
json() { grep -oE "\"$1\": *[0-9][^\",]*" "$2" | head -1 | sed 's/.*: *//'; }
below() { awk -v a="$1" -v b="$2" 'BEGIN {exit !(a + 0 < b + 0)}'; }

# ---- The loop: run -> fit -> design next -> run -> fit. An experiment that tells times of its own making:
# 1 ms + 2 us a + 3 us b + 0.1 us a b, and noise of 50 us that depends on the unit.
cat >first.yaml <<'E2'
experiment:
  name: made
  factors:
    a: {type: integer, minimum: 1, maximum: 900}
    b: {type: integer, minimum: 1, maximum: 1000}
    larger: {type: integer, default: 'max(a, b)'}
    label: {type: text, default: plain}
  require: ['a + b <= 1500']
  run: >-
    awk -v a=$a -v b=$b -v u=$order -v r=$row 'BEGIN {srand(u * 1000 + r * 7 + a); rand();
    printf "took %.9f\n", 1e-3 + 2e-6 * a + 3e-6 * b + 1e-7 * a * b + 1e-4 * (rand() + rand() - 1)}'
  responses: {took: {pattern: 'took ([0-9.]+)', unit: s}}
  model: {method: linear, response: took, terms: '1+a+b+a*b'}
probes: none
design: {file: first.csv, seed: 1}
E2
printf 'a,b\n' >first.csv
for a in 100 400 700 880; do for b in 90 300 500 620; do echo "$a,$b" >>first.csv; done; done
archive=$("$ASSAY" run first.yaml -q -o runs 2>err) || sed 's/^/# /' err
check "a first run" test -f "${archive:-none}"
check "... its model" "$ASSAY" fit linear "$archive" -o runs/model.json

sed 's/"cv_relative": [0-9][0-9.e-]*/"cv_relative": 0.69/' runs/model.json >runs/poor.json
check "from a model that is not usable" sh -c '"$ASSAY" design next runs/poor.json --rows 4 >poor.csv 2>told'
check "... is noted with the reason, once" test "$(grep -c "poor.json' is not usable for prediction: cross-validated error 69 %" told)" -eq 1
check "the next design" sh -c '"$ASSAY" design next runs/model.json --rows 16 >next.csv 2>told'
check "... has exactly the experiment's columns, as many rows as asked" \
    equal "$(head -1 next.csv) $(rows next.csv)" "a,b,larger,label 16"
check "... keeps to the domain and the experiment's conditions" \
    awk -F, 'NR > 1 && !($1 >= 100 && $1 <= 880 && $2 >= 90 && $2 <= 620 && $1 + $2 <= 1500 && $3 == ($1 > $2 ? $1 : $2) && $4 == "plain") {bad = 1}
        END {exit bad}' next.csv
check "... lies at the borders, where such a model is least sure" \
    awk -F, 'NR > 1 {n += ($1 == 100 || $1 == 880 || $1 + $2 == 1500) && ($2 == 90 || $2 == 620 || $1 + $2 == 1500)} END {exit n < 12}' next.csv
report $(grep -qE '^standard error of the prediction, after +[0-9.]+ [mu]s$' told && grep -qE '^of the mean prediction, after +0[.0-9]+$' told; echo $?) \
    "what it gains is reported, in the response's unit and relative to the mean"
report $(grep -q '^experiment +runs/made-.*zip$' -E told && grep -qE '^predicted time, all groups at once +[0-9.]+ m?s$' told; echo $?) \
    "... where the experiment came from, and the time"

sed 's/first.csv/next.csv/' first.yaml >second.yaml
check "the campaign takes it as it is" "$ASSAY" run second.yaml --dry-run
second=$("$ASSAY" run second.yaml -q -o runs 2>err) || sed 's/^/# /' err
check "a second run with it" test -f "${second:-none}"
check "... the model of both" "$ASSAY" fit linear "$archive" "$second" -o runs/better.json
next runs/model.json --rows 16 --json >one.json 2>/dev/null
next runs/better.json --rows 16 --json >two.json 2>/dev/null
before=$(json error_before one.json) after=$(json error_after one.json) measured=$(json error_before two.json)
check "its average standard error went down" below "$measured" "$before"
check "... to what was promised, as far as sigma is known" \
    awk -v p="$after" -v m="$measured" 'BEGIN {exit !(m < 1.6 * p && m > 0.6 * p)}'
check "every coefficient is surer" sh -c '
    for f in model better; do grep -o "\"standard_error\": [^,]*" runs/$f.json | cut -d: -f2; done |
        awk "{v[NR] = \$1} END {for (i = 1; i <= NR / 2; i++) if (!(v[i + NR / 2] < v[i])) exit 1; exit NR != 8}"'

# ---- JSON, budgets and options
check "JSON for programs" sh -c '"$ASSAY" design next runs/model.json --rows 3 --json -o three.csv 2>/dev/null >out.json'
report $([ "$(awk '/"times"/ {n += $2} END {print n}' out.json)" -eq 3 ] && [ "$(rows three.csv)" -eq 3 ]; echo $?) "... with every row; -o has the table beside it"
check "a budget" sh -c '"$ASSAY" design next runs/model.json --budget 200ms --json >b.json 2>/dev/null'
check "... is kept to, and used" sh -c 'grep -o "^  \"time\": [0-9.]*" b.json | awk "{exit !(\$2 <= 0.2 && \$2 > 0.15)}"'
check "... has cheap rows in it" awk '/^      "times"/ {n = $2 + 0} /^      "time"/ {if ($2 + 0 < 0.02) all += n} END {exit all < 3}' b.json
check "distinct rows" sh -c '"$ASSAY" design next runs/model.json --rows 12 --distinct --criterion d 2>/dev/null >d.csv'
report $([ "$(tail -n +2 d.csv | sort -u | wc -l)" -eq 12 ]; echo $?) "... are distinct"
check "a smaller range" sh -c '"$ASSAY" design next runs/model.json --within a=200..300 2>/dev/null >w.csv'
report $(awk -F, 'NR > 1 && !($1 >= 200 && $1 <= 300) {exit 1}' w.csv; echo $?) "... is kept to"
check "a wider range" sh -c '"$ASSAY" design next runs/model.json --within b=50..800 2>told >w.csv'
report $(grep -q "note: 'b' from 50 to 800 leaves the domain of the model, 90 to 620" told &&
    awk -F, 'NR > 1 && $2 > 620 {n++} END {exit n < 3}' w.csv; echo $?) "... is warned of by its name"
check "a fixed factor" sh -c '"$ASSAY" design next runs/model.json --set label=other 2>/dev/null >l.csv && cut -d, -f4 l.csv | sort -u | paste -sd" " | grep -qx "label other"'
printf 'b,a\n100,500\n600,200\n300,300\n700,850\n620,880\n630,100\n' >table.csv
check "candidates of one's own" sh -c '"$ASSAY" design next runs/model.json --candidates table.csv --rows 2 2>told >c.csv'
report $([ "$(head -1 c.csv)" = a,b,larger,label ] && tail -n +2 c.csv | cut -d, -f2,1 | while IFS=, read -r a b; do grep -qx "$b,$a" table.csv || exit 1; done &&
    ! grep -q 850,700 c.csv && grep -q "note: 1 of the 6 candidates lie outside the domain of the model, where predictions are extrapolated$" told; echo $?) \
    "... are chosen from, less those that the experiment refuses"

# ---- Models of plain tables: no experiment, no units; groups by a control and by cores
awk 'BEGIN {print "core,control.turbo,x,duration"; for (i = 0; i < 80; i++) {x = 10 + 5 * int(i / 4);
    printf "%d,%s,%d,%.6f\n", i % 2, i % 4 < 2 ? "on" : "off", x, (i % 4 < 2 ? 1 : 2) * (3 + 0.5 * x) + (i * 7919 % 101 - 50) / 100}}' >plain.csv
"$ASSAY" fit linear plain.csv --terms '1+x' --by core,control.turbo -o plain.json >/dev/null
check "a model of a table" sh -c '"$ASSAY" design next plain.json --rows 8 2>told >p.csv'
report $(grep -q "does not state the unit of 'duration'; seconds are assumed" told && grep -q 'none known' told; echo $?) "... what is not known is said"
report $([ "$(head -1 p.csv)" = x,control.turbo ] && [ "$(cut -d, -f2 p.csv | sort -u | paste -sd' ')" = 'control.turbo off on' ] &&
    awk -F, 'NR > 1 && $1 != 10 && $1 != 105 {n++; last = NR} END {exit !(n == 1 && last == NR)}' p.csv; echo $?) \
    "a control that makes groups is a column; a line is measured at its ends, and once between them"
check "one group" sh -c '"$ASSAY" design next plain.json --group 1/off --rows 4 2>/dev/null | cut -d, -f2 | sort -u | paste -sd" " | grep -qx "control.turbo off"'
check "noise in proportion to the time" sh -c '"$ASSAY" design next plain.json --rows 8 --weights "1 / duration^2" 2>/dev/null >r.csv'
report $([ "$(grep -c '^10,' r.csv)" -ge 4 ]; echo $?) "... makes small sizes tell as much as large ones"
sed 's/"response": {"name": "duration", "unit": null}/"response": {"name": "duration", "unit": "By\/s"}/' plain.json >rate.json
check "a model of no time" sh -c '"$ASSAY" design next rate.json --rows 4 2>told >/dev/null && grep -qE "^cost +4$" told'
check "... costs what the user says" sh -c '"$ASSAY" design next rate.json --cost "x / 10" --budget 20 --json 2>/dev/null | grep -q "\"cost\": 1[5-9]\|\"cost\": 20"'

# The domain of products: a corner of the factors' ranges where nothing was ever measured is none of the model's.
awk 'BEGIN {print "m,n,duration"; for (i = 1; i <= 40; i++) {m = 5 * i; n = int(1000 / m);
    printf "%d,%d,%.3f\n%d,1,%.3f\n", m, n, 1 + m * n / 50 + (i * 7919 % 101) / 100, m, 1 + m / 50 + (i * 7907 % 101) / 100}}' >needles.csv
"$ASSAY" fit linear needles.csv --terms '1+m+m*n' -o needles.json >/dev/null
check "products are kept to" sh -c '"$ASSAY" design next needles.json --rows 20 --criterion d 2>/dev/null >n.csv'
report $(awk -F, 'NR > 1 {if ($1 * $2 > 1000) bad = 1; n += $1 * $2 > 980} END {exit bad || n < 4}' n.csv; echo $?) "... and gone to"

# Noise that grows, taken to be alike everywhere: rows that would take no time are none to be had for it.
awk 'BEGIN {print "x,duration"; for (i = 1; i <= 60; i++) {x = i * i; printf "%d,%.6f\n", x, (x > 200 ? x - 200 : 1) * (1 + (i * 7919 % 101 - 50) / 200)}}' >grows.csv
"$ASSAY" fit linear grows.csv --terms '1+x' -o grows.json >/dev/null
check "where times of 0 or less are predicted" sh -c '"$ASSAY" design next grows.json --rows 6 --json 2>told >g.json'
report $(grep -qE '^ +"[0-9]+ of [0-9]+ candidates are left out, because the model predicts a time of 0 s or less for them"' g.json &&
    awk '/^      "time"/ && !($2 + 0 > 0) {exit 1}' g.json; echo $?) "no row is"
"$ASSAY" fit linear plain.csv --terms x --by none --set noise=homoscedastic -o proportional.json >/dev/null
check "a line through 0" sh -c '"$ASSAY" design next proportional.json --rows 10 2>told >o.csv'
report $(sort o.csv | uniq -c | awk '$1 > 5 {exit 1}'; echo $?) "is measured at one point no more than half of the times"
printf 'x\n50\n' >one.csv
check "one candidate" sh -c '"$ASSAY" design next proportional.json --candidates one.csv --rows 20 2>told >o.csv'
report $([ "$(rows o.csv)" -eq 10 ] && grep -q "^note: all 10 rows have the same settings, so that lack of fit cannot be tested" told &&
    grep -q "^note: 50 % of the number of rows is not used: .*limit (20 rows in all, 20 % of the rows for lack of fit, 10 repetitions" told; echo $?) \
    "is measured up to the limit, of which it warns"

# ---- Limits, lack of fit
# Of each row: times, time, gain, what it is for.
table() { awk '/^      "times"/ {t = $2 + 0} /^      "time"/ {s = $2 + 0} /^      "gain"/ {g = $2 + 0} /^      "for"/ {print t, s, g, $2}' "$1"; }
check "a long budget" sh -c '"$ASSAY" design next runs/model.json --budget 5s --json -o long.csv >long.json 2>/dev/null'
report $(table long.json | awk '{most = $1 > most ? $1 : most} END {exit !(NR > 20 && most == 10)}'; echo $?) "repeats no row more than 10 times"
report $(table long.json | awk '{best = $3 > best ? $3 : best; sum += $3; if ($4 ~ /precision/ && (!least || $3 < least)) least = $3}
    END {exit !(least >= 0.0099 * best && best < 0.5 && sum > 0.999 && sum < 1.001)}'; echo $?) "has no row for precision that gains next to nothing"
report $(table long.json | awk '{all += $1 * $2} $4 ~ /lack/ {lack += $1 * $2; n++} END {exit !(n > 5 && lack <= 0.2 * 5 && lack > 0.1 * all)}'; echo $?) \
    "a fifth of it is for lack of fit"
report $(tail -n +2 long.csv | awk -F, '$1 > 250 && $1 < 700 && $2 > 200 && $2 < 500 {n++} END {exit !(n > 5)}'; echo $?) "... inside of the domain, too"
check "no limits" sh -c '"$ASSAY" design next runs/model.json --budget 5s --json --repeats 1000 --lack-of-fit 0 >free.json 2>/dev/null'
report $(table free.json | awk '$1 * $2 > 2.5001 {bad = 1} {most = $1 > most ? $1 : most} $4 ~ /lack/ {bad = 1} END {exit !(most > 10 && !bad)}'; echo $?) \
    "repeats rows, up to half of the budget, and has none for lack of fit"
report $(awk -v a="$(json error_after long.json)" -v b="$(json error_after free.json)" 'BEGIN {exit !(a < 1.1 * b)}'; echo $?) "... which costs less than a tenth of the precision"
check "a larger share" sh -c '"$ASSAY" design next runs/model.json --rows 20 --lack-of-fit 50% --json 2>/dev/null >half.json'
report $(table half.json | awk '{all += $1} $4 ~ /lack/ {n += $1} END {exit !(all == 20 && n == 10)}'; echo $?) "... is kept to"

# ---- Refusals
refuse "no model" 2 "'assay design next' has 0 operands; expected a model" "$ASSAY" design next
refuse "a model that is not there" 2 "cannot open 'no.json'" "$ASSAY" design next no.json
sed 's/"kind": "linear"/"kind": "linaer"/' plain.json >kind.json
refuse "another kind of model" 2 "linaer" "$ASSAY" design next kind.json
sed 's/"covariance": \[\[[^]]*\], \[[^]]*\]\]/"covariance": null/' plain.json >bare.json
awk 'BEGIN {print "size,duration"; for (s = 1; s < 1e6; s *= 2) print s "," (1e-6 + s / 1e9) * (1 + 0.01 * sin(s))}' >transfers.csv
"$ASSAY" fit transfer transfers.csv --set criterion=log -o log.json >/dev/null
refuse "errors of a logarithm" 2 "no residual standard error of its response.*fit the response itself" "$ASSAY" design next log.json
refuse "no covariance" 2 "no covariance of its coefficients.*fit it to more rows than it has terms" "$ASSAY" design next bare.json
sed 's/"covariance": \[\[[^]]*\]/"covariance": [[1]/' plain.json >short.json
refuse "a covariance that is none" 2 "short.json:[0-9]+:[0-9]+: " "$ASSAY" design next short.json
refuse "a budget for not one row" 2 "the budget of 1 ms is too small for a single row: the fastest row takes" \
    "$ASSAY" design next plain.json --budget 1ms
refuse "a budget that is no time" 2 "--budget '10 parsecs', expected a time" "$ASSAY" design next plain.json --budget '10 parsecs'
refuse "a budget for no time" 2 "the model predicts 'duration' in By/s, which is no time" "$ASSAY" design next rate.json --budget 10s
refuse "an empty domain" 2 "the domain is empty: none of the [0-9]* candidates satisfies the experiment's conditions" \
    "$ASSAY" design next runs/model.json --within a=880..880 --within b=621..700
refuse "a range beyond the experiment's bounds" 2 "the domain is empty: no whole number of 'a'" "$ASSAY" design next runs/model.json --within a=901..950
refuse "an unknown factor" 2 "'aa' is no factor of the model; did you mean 'a'" "$ASSAY" design next runs/model.json --within aa=1..2
refuse "an unknown group" 2 "no group '1/of'; did you mean '1/off'" "$ASSAY" design next plain.json --group 1/of
refuse "an unknown criterion" 2 "--criterion 'a', expected i" "$ASSAY" design next plain.json --criterion a
refuse "a share that is none" 2 "--lack-of-fit 'all'; expected a share of the budget from 0% to 90%" "$ASSAY" design next plain.json --lack-of-fit all
refuse "rows that are too many" 2 "--rows '1001' is not a whole number from 1 to 1000" "$ASSAY" design next plain.json --rows 1001
refuse "a seed" 2 "'assay design next' has no option '--seed'" "$ASSAY" design next plain.json --seed 1
refuse "an option of another kind" 2 "'assay design next' has no option '--repetitions'" "$ASSAY" design next plain.json --repetitions 3
refuse "an option of next" 2 "'assay design factorial' has no option '--budget'" "$ASSAY" design factorial n=1,2 --budget 3s
refuse "weights that are not positive" 2 "--weights x - 10 is 0 for this row.*expected a number above 0" "$ASSAY" design next plain.json --weights 'x - 10'
"$ASSAY" fit linear plain.csv --terms '1+x' --weights x -o weighted.json >/dev/null
sed -i 's/"weights": "x"/"weights": "w"/' weighted.json
refuse "weights that nobody knows" 2 "fitted with the weights 'w'; give the weights of new rows" "$ASSAY" design next weighted.json
refuse "a factor that nobody gives" 2 "nb" sh -c '
    printf "name: needs\nfactors: {x: {type: number}, nb: {type: integer}}\nrun: [true]\nresponses: {duration: {pattern: \"(1)\"}}\n" >needs.yaml
    "$ASSAY" design next plain.json --experiment needs.yaml'
refuse "a term of what is no factor" 2 "the terms of the model use 'x', which is no factor of the experiment" \
    "$ASSAY" design next plain.json --experiment first.yaml
refuse "the model as output" 2 "the output 'plain.json' is also an input" "$ASSAY" design next plain.json -o plain.json
finish
