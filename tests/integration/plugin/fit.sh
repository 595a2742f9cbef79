#!/bin/bash
# assay fit: tables in, models out; and everything that can be wrong with what it is given.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
export ASSAY_PATH=$ASSAY_BUILD/tests/plugins
contains() { grep -qE -- "$2" "$1" || { echo "# '$1' does not match: $2"; sed 's/^/# /' "$1" | head -20; return 1; } >&2; }
output() { contains "$scratch/.out" "$1"; } # of the last `check`

# y = 2 + 3*a*b + 5*b + noise that the terms cannot explain, in two groups; group z is too small, q is singular.
{
    echo "host,core,a,b,duration"
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
        echo "node-10,$((i % 2)),$i,$((i * i % 7 + 1)),$((2 + 3 * i * (i * i % 7 + 1) + 5 * (i * i % 7 + 1) + i % 3))"
        echo "node-2,$((i % 2)),$i,$((i * i % 5 + 1)),$((2 + 3 * i * (i * i % 5 + 1) + i % 2)).5"
    done
    echo "node-z,0,1,2,3"
    for i in 1 2 3 4 5; do echo "node-q,0,$i,64,$((i * i))"; done
} >calls.csv

check "a table for people" "$ASSAY" fit calls.csv --terms '1+a*b+b' --by host
report $(output '^fit-linear: duration = 1 \+ a\*b \+ b; by host$'; echo $?) "it says the formula and the groups"
report $(output '^30 rows from calls.csv; 4 groups$'; echo $?) "it says how many rows and groups"
report $(output '^host node-2: 12 rows, R2 0\.9'; echo $?) "it shows each of a few groups"
report $([ "$(grep -n 'host node-2' .out | head -1 | cut -d: -f1)" -lt "$(grep -n 'host node-10' .out | head -1 | cut -d: -f1)" ]; echo $?) \
    "groups come in natural order"
report $(output 'host node-z: 1 row for 3 terms'; echo $?) "a group that is too small is named"
report $(output 'host node-q: rank 2 of 3: b is always 64'; echo $?) "a singular group is named with the reason"

check "a model file" "$ASSAY" fit linear calls.csv --terms '1+a*b+b' --by host,core -o model.json
report $(contains model.json '"sha256": "'"$(sha256sum calls.csv | cut -d' ' -f1)"'"'; echo $?) "it has the hash of its input"
report $(contains model.json '"labels": \{"host": "node-10", "core": "1"\}, "n": 6'; echo $?) "it has the groups' labels"
report $([ "$(stat -c %a model.json)" = "$(printf '%o' $((0666 & ~$(umask))))" ]; echo $?) "it has the usual mode"
report $([ "$(find . -name 'model.json.*' | wc -l)" -eq 0 ]; echo $?) "nothing is left beside it"
check "the same as JSON on standard output" "$ASSAY" fit calls.csv --terms '1+a*b+b' --by host,core --json
sed '/"created"/d' model.json >1; sed '/"created"/d' .out >2
report $(cmp -s 1 2; echo $?) "JSON on standard output is the model file"

check "pooled by default" "$ASSAY" fit calls.csv --terms '1+a*b'
report $(output '^30 rows from calls.csv; 1 group$'; echo $?) "without --by all rows are one group"

# What a design changes on a node is a column like any other, though its name has a dot.
awk -F, -v OFS=, 'NR == 1 {print $0, "control.turbo", "control.idle-states"} NR > 1 {print $0, NR % 2 ? "on" : "off", NR % 3 ? "C1" : "10us"}' \
    calls.csv >states.csv
check "states of controls are groups" "$ASSAY" fit states.csv --terms 1+a*b --by control.turbo,control.idle-states -o states.json
report $(output '; by control.turbo, control.idle-states$' && output '^control.turbo off, control.idle-states 10us: [0-9]+ rows'; echo $?) \
    "... under their names"
report $([ "$(grep -c '"labels": {"control.turbo": "o[nf]*", "control.idle-states": "1*[0C][us1]*' states.json)" -eq 4 ]; echo $?) "... in the model, too"
refuse "one that is not there is named" 2 "no group column 'control.trubo'; did you mean 'control.turbo'" \
    "$ASSAY" fit states.csv --terms 1+a*b --by control.trubo

# Several inputs are one table; columns may stand elsewhere; labels keep their groups.
awk -F, 'NR == 1 || NR % 2 == 0' calls.csv >even.csv
awk -F, 'NR == 1 || NR % 2 == 1 {print $5 "," $3 "," $1 "," $4}' calls.csv >odd.csv
check "two files are one table" "$ASSAY" fit even.csv odd.csv --terms '1+a*b+b' --by host --json
# Which rows are left out together in the cross-validation is a matter of their order; the estimates are not.
estimates() { sed -n 's/.*\("labels".*\), "cv_rmse".*/\1/p'; }
estimates <.out >1
"$ASSAY" fit calls.csv --terms '1+a*b+b' --by host --json | estimates >2
report $([ -s 1 ] && cmp -s 1 2; echo $?) "the result does not depend on how the rows are parted"
refuse "an input that lacks a column" 2 "odd.csv: there is no group column 'core'; there are: duration, a, host, b" \
    "$ASSAY" fit even.csv odd.csv --terms 1+a --by core
check "standard input" sh -c "'$ASSAY' fit - --terms 1+a --json <calls.csv"
report $(output '"file": "standard input", "sha256": "'"$(sha256sum calls.csv | cut -d' ' -f1)"; echo $?) \
    "standard input is hashed too"

# Many groups: how they spread, and which are worst.
awk 'BEGIN {print "g,x,duration"; for (i = 0; i < 4000; i++) print i % 40 "," i % 13 "," 3 * (i % 13) + i % (2 + i % 40)}' >many.csv
check "many groups" "$ASSAY" fit many.csv --terms 1+x --by g
report $(output '^  term +minimum +median +maximum'; echo $?) "their spread"
report $(output 'g 39: R2 '; echo $?) "the worst ones"
report $(output "'-o MODEL.json' keeps all of it"; echo $?) "where the whole is"
check "a plugin may read the rows twice" "$ASSAY" fit passes many.csv --by g --json
report $(grep -q 'assay: note: once more' .err; echo $?) "what a plugin notes is passed on"
report $(! grep -q named_by .out; echo $?) "what was not yet told when it was built is not told of it"
awk -F, '$1 == "0" {n++; s += $3; v[n] = $3} END {for (i in v) q += (v[i] - s / n) ^ 2
    printf "\"estimate\": %.12g\n\"squares\": %.12g\n", s / n, q}' many.csv >1
grep '{"g": "0"}' .out | grep -oE '"(estimate|squares)": [0-9.]*' | awk '{printf "%s %.12g\n", $1, $2}' >2
report $([ -s 1 ] && cmp 1 2 >&2; echo $?) "its result is right"
check "over several inputs too" "$ASSAY" fit passes many.csv calls.csv --json
refuse "but not standard input" 2 "standard input cannot be; give a file" sh -c "'$ASSAY' fit passes - <many.csv"

# An archive suggests its model and knows its units.
check "archives to fit" "$ASSAY_BUILD/tests/unit/test-table-archive" --make "$scratch"
check "an archive alone" "$ASSAY" fit dgemm.zip -o dgemm.json
report $(output '^fit-linear: duration = 1 \+ m\*n\*k \+ m\*n \+ m\*k \+ n\*k; by node, core$'; echo $?) "the suggested model"
report $(output '^120 rows from dgemm.zip; 4 groups$'; echo $?) "the suggested groups"
report $(output '^  m\*n\*k .* s$'; echo $?) "coefficients have units"
report $(output '^node n-2, core 0: 30 rows, R2 0.99.* sigma [0-9.e-]+ s, '; echo $?) "so has sigma"
report $(contains dgemm.json '"response": \{"name": "duration", "unit": "s"\}'; echo $?) "the model has them"
report $(contains dgemm.json '"file": "dgemm.zip", "sha256": "'"$(sha256sum dgemm.zip | cut -d' ' -f1)"'", "run_id": "3f0e6d2c'; echo $?) \
    "the model names the archive by hash and run"
check "an option goes before the suggestion" "$ASSAY" fit dgemm.zip --terms M-1 --by none
report $(output '^fit-linear: duration = 1 \+ m\*n\*k$'; echo $?) "terms and groups"
check "an archive without a suggestion" "$ASSAY" fit plain.zip
report $(output '^fit-linear: duration = 1 \+ m\*n\*k \+ .* n\*k$'; echo $?) "its response is known by its role"
cp dgemm.zip calls.txt
check "an archive is known by its bytes" "$ASSAY" fit calls.txt
check "two archives" "$ASSAY" fit dgemm.zip plain.zip
report $(output '^240 rows from dgemm.zip, plain.zip; 4 groups$'; echo $?) "are one table"
check "a prediction from it" "$ASSAY" predict hpl dgemm.json --set N=500 --set NB=64 --set P=1 --set Q=1
report $(! grep -q 'does not say the unit' .err; echo $?) "needs no guess at units"
head -c 3000 dgemm.zip >cut.zip
refuse "a truncated archive" 5 "cut.zip" "$ASSAY" fit cut.zip -o cut.json
report $([ ! -e cut.json ]; echo $?) "gives no model"

# What cannot be read.
refuse "a missing file" 2 "cannot open 'nothing.csv': No such file" "$ASSAY" fit nothing.csv
: >empty.csv
refuse "an empty file" 2 "empty.csv.*expected a header row" "$ASSAY" fit empty.csv
echo 'a,duration' >header.csv
refuse "a header and no rows" 2 "there are no rows" "$ASSAY" fit header.csv --terms 1+a
printf 'a,duration\n1,2\n3\n' >short.csv
refuse "a short row" 2 "short.csv:3" "$ASSAY" fit short.csv --terms 1+a
printf 'name,a,duration\n"two\nlines",1,2\n"x ""y""",2,3\nplain,3,5\n' >quoted.csv
check "quotes and newlines inside fields" "$ASSAY" fit quoted.csv --terms 1+a
check "also in labels" "$ASSAY" fit quoted.csv --terms 1 --by name
report $(output '^name two.x0alines: 1 row'; echo $?) "a label's newline does not break the table"
printf 'a,duration\n1,2x\n' >junk.csv
refuse "a number with trailing junk" 2 "junk.csv:2:3.*2x" "$ASSAY" fit junk.csv --terms 1+a
printf 'a,a,duration\n1,1,2\n' >twice.csv
refuse "a column given twice" 2 "twice.csv:1.*'a'" "$ASSAY" fit twice.csv --terms 1+a
printf 'a,duration\n1,2\n2,\n3,4\n4,7\n' >hole.csv
check "an empty field leaves its row out" "$ASSAY" fit hole.csv --terms 1+a
report $(output 'note: 1 row left out'; echo $?) "and that is said"
refuse "a folder" 2 "Is a directory" "$ASSAY" fit "$scratch"
printf 'PK\003\004nonsense' >broken.zip
refuse "a zip that is none" 5 "broken.zip" "$ASSAY" fit broken.zip
cp broken.zip broken.csv
refuse "whatever it is called" 5 "broken.csv" "$ASSAY" fit broken.csv

# What makes no sense.
refuse "an unknown response" 2 "there is no response column 'durations'; did you mean 'duration'" \
    "$ASSAY" fit calls.csv --response durations
refuse "no response to be guessed" 2 "say it with --response; there are: g, x" \
    sh -c "cut -d, -f1,2 many.csv >no.csv; '$ASSAY' fit no.csv"
refuse "an unknown group column" 2 "there is no group column 'hosts'; did you mean 'host'" "$ASSAY" fit calls.csv --by hosts
refuse "a group column given twice" 2 "'host' is given twice" "$ASSAY" fit calls.csv --by host,host
refuse "an unknown column of weights" 2 "there is no weights column 'w'" "$ASSAY" fit calls.csv --weights w --terms 1
refuse "a bad term" 2 "terms '1\+a\*\+b', column 5: '\+' where a column or 1 was expected" \
    "$ASSAY" fit calls.csv --terms '1+a*+b'
refuse "sizes that are not there" 2 "M-2 is over the sizes m, n, k, and there is no column 'm'" "$ASSAY" fit calls.csv
refuse "an empty name in a list" 2 "--by 'host,' has an empty name" "$ASSAY" fit calls.csv --by host,
refuse "a method without input" 2 "the method 'linear' is given no input" "$ASSAY" fit linear
refuse "a method that does not exist" 2 "there is no plugin 'fit-linaer'; did you mean 'fit-linear'" \
    "$ASSAY" fit linaer calls.csv
refuse "no group that can be fitted" 2 "could not be fitted: rank 1 of 2: b is always 64" \
    sh -c "grep 'duration\|node-q' calls.csv >q.csv; '$ASSAY' fit q.csv --terms 1+b -o q.json"
report $([ ! -e q.json ]; echo $?) "then no model is written"
refuse "no group of several" 2 "none of the 12 groups could be fitted; the first because of 1 row for 2 terms" \
    sh -c "head -13 many.csv >few.csv; '$ASSAY' fit few.csv --terms 1+x --by g"
refuse "a folder that is not there" 2 "cannot create 'no/model.json'" "$ASSAY" fit calls.csv --terms 1+a -o no/model.json
echo old >kept.json
refuse "a failure" 2 "column" "$ASSAY" fit calls.csv --terms 1+zz -o kept.json
report $([ "$(cat kept.json)" = old ]; echo $?) "leaves the file that was there"
if [ -e /dev/full ]; then
    refuse "a full disk" 1 "No space left" sh -c "'$ASSAY' fit calls.csv --terms 1+a --json >/dev/full"
fi

# Categories, inverses, logarithms; selection, outliers, robust fits.
awk 'BEGIN {print "host,p,n,duration,w"; for (i = 0; i < 240; i++) {h = i % 3; p = 2 ^ (i % 5); n = 100 + i * 37 % 101
    print "h-" 8 + h "," p "," n "," 3 + 5 * h + n / p + 2 * log(p) / log(2) + (i * 29 % 7) / 10 + (i == 100 ? 50 : 0) "," 1}}' >hosts.csv
check "a category" "$ASSAY" fit hosts.csv --terms '1+category(host)+n*p^-1+log2(p)' --set select=none
report $(output '^fit-linear: duration = 1 \+ host\[h-9\] \+ host\[h-10\] \+ n\*p\^-1 \+ log2\(p\)$'; echo $?) \
    "levels in natural order, without the first"
report $(output '^  host\[h-10\] +(9\.|10\.)'; echo $?) "its dummies' coefficients"
check "a model with categories" "$ASSAY" fit hosts.csv --terms '1+category(host)+n*p^-1+log2(p)' -o hosts.json
report $(contains hosts.json '"level": "h-9"' && contains hosts.json '"function": "log2"' && contains hosts.json '"power": -1'; echo $?) \
    "its factors are data"
refuse "a text that is not said to be a category" 2 "hosts.csv:2:1.*'host' is 'h-8', expected a number; a column of texts is written as category" \
    "$ASSAY" fit hosts.csv --terms 1+host
sed '3s/[^,]*,1$/fast,1/' hosts.csv >fast.csv
refuse "a text in the response" 2 "fast.csv:3:.*'duration' is 'fast', expected a number$" "$ASSAY" fit fast.csv --terms 1+n
sed 's/1$/one/' hosts.csv >one.csv
refuse "a text in the weights" 2 "one.csv:2:.*'w' is 'one', expected a number$" "$ASSAY" fit one.csv --terms 1+n --weights w
awk -F, -v OFS=, 'NR > 1 {$3 = "   " $3; if (NR < 6) $4 = substr("NaN NA  Inf -inf", NR * 4 - 7, 4)} 1' hosts.csv >missing.csv
check "numbers that are missing, others padded" "$ASSAY" fit missing.csv --terms 1+n --set select=none
report $(output 'all rows: 236 rows' && output 'note: 4 rows left out: a value is empty or not finite'; echo $?) "their rows are left out and counted"
sed '2,4s/[^,]*,1$/-1,1/' hosts.csv >below.csv
check "times below 0" "$ASSAY" fit below.csv --terms 1+n
report $(contains .err "^assay: note: 'duration' is below 0 in 3 of 240 rows"; echo $?) "are noted"
sed '1s/duration/time_offset/' below.csv >offset.csv
check "a difference of times" "$ASSAY" fit offset.csv --response time_offset --terms 1+n
report $([ ! -s .err ]; echo $?) "may be below 0"
refuse "a model for a table" 2 "hosts.json: this is JSON, not a table; 'assay model show' tells" "$ASSAY" fit hosts.json
refuse "a model on standard input" 2 "standard input: this is JSON, not a table" sh -c "'$ASSAY' fit - <hosts.json"
refuse "a function that is none" 2 "column 3: there is no function 'log'; there are: log2, category" "$ASSAY" fit hosts.csv --terms '1+log(p)'
check "an archive's texts are categories" "$ASSAY" fit dgemm.zip --terms 1+m*n*k+node --by none
report $(output '^  node\[n-10\] '; echo $?) "... without being said to be"
refuse "a column that never changes" 2 "rank 3 of 4: w is always 1" "$ASSAY" fit hosts.csv --terms 1+n+p+w --set outliers=3
check "in one pass over standard input" sh -c "'$ASSAY' fit - --terms '1+n*p^-1+log2(p)+category(host)+n' --set outliers=3 --set select=elimination <hosts.csv"
report $(output 'note: 1 outlier deleted: standard input .*1(01|02)$'; echo $?) "the row is named"
report $(output 'note: selection.* dropped n \(p '; echo $?) "what is dropped is told"
check "a robust fit" "$ASSAY" fit hosts.csv --terms '1+n*p^-1+log2(p)+category(host)' --set robust=bisquare --json
report $(contains .out '"method": "robust"' && contains .out '"rows_weighted_down": [0-9]' && contains .out '"robust_iterations": [1-9]' && contains .out '"bic": null' && contains .out '"cv_rmse": [0-9]'; echo $?) "its values"
refuse "robust and outliers" 2 "both 'robust' and 'outliers' are set" "$ASSAY" fit hosts.csv --terms 1+n --set robust=huber --set outliers=3
for i in 1 2; do "$ASSAY" fit hosts.csv --terms '1+n*p^-1+category(host)' --set outliers=3 --seed 5 --json | grep -v created >$i; done
report $([ -s 1 ] && cmp 1 2 >&2; echo $?) "the same seed gives the same model"

# One row among thousands in a group of its own, and more groups than are cross-validated.
{ cat many.csv; echo 40,1,1; } >lonely.csv
check "a group of one row among thousands" "$ASSAY" fit lonely.csv --terms 1+x --by g
report $(output 'g 40: 1 row for 2 terms'; echo $?) "is named, the others are fitted"
awk 'BEGIN {print "g,x,duration"; for (i = 0; i < 34000; i++) print i % 17000 "," i % 13 "," i % 11}' >crowd.csv
check "17,000 groups" "$ASSAY" fit crowd.csv --terms 1 --by g
report $(contains .err 'note: no cross-validation: it takes sums for each of 5 folds'; echo $?) "are not cross-validated, which is said once"
report $([ "$(grep -c 'no cross-validation' .err)" -eq 1 ]; echo $?) "... and once only"

# Plugins that must be refused.
refuse "a plugin of another ABI" 2 "it has ABI 7 and this assay speaks ABI 2" "$ASSAY" fit other-abi calls.csv
refuse "a plugin without the symbol" 2 "has no symbol 'assay_plugin'" "$ASSAY" fit no-symbol calls.csv
refuse "a plugin of the wrong kind" 2 "of the kind 'predict'" "$ASSAY" fit predicts calls.csv
refuse "a plugin with another's name" 2 "calls itself 'fit-otherwise'" "$ASSAY" fit misnamed calls.csv
refuse "a plugin that cannot be linked" 2 "undefined symbol" "$ASSAY" fit unresolved calls.csv
refuse "a plugin's own refusal" 2 "fit-fails: the first of [0-9]+ rows is odd" "$ASSAY" fit fails calls.csv
# Beyond the range of a double, in the scale of the data if not in that of the sums.
printf 'x,duration\n1e300,1\n2e300,2\n3e300,4\n5e300,7\n' >large.csv
refuse "a term that no double can hold" 2 "could not be fitted: x\^2 or its coefficient is beyond the range of a double" \
    "$ASSAY" fit large.csv --terms '1+x^2'
check "large values that a double can hold" "$ASSAY" fit large.csv --terms '1+x' --json
report $(contains .out '"estimate": 1\.54.*e-300'; echo $?) "are fitted"
printf 'x,duration\n1,1e200\n2,2e200\n3,4e200\n5,7e200\n' >large.csv
refuse "residuals whose squares no double can hold" 2 "the residual sum of squares .* is beyond the range of a double" \
    "$ASSAY" fit large.csv --terms '1+x'
# Names can hold anything; the terminal gets none of it.
printf '"\033[31mx\n",g,"\033[2Jy\a"\n1,\033[3m,2\n2,\033[3m,3\n3,\033[3m,5\n4,\033[3m,4\n' >hostile.csv
check "names with control characters" "$ASSAY" fit hostile.csv -y $'\033[2Jy\a' --by g --terms M-1 --sizes $'\033[31mx\n'
report $(! LC_ALL=C grep -q $'[\001-\011\013-\037\177]' .out; echo $?) "no control character is printed"
report $(output '^fit-linear: .x1b\[2Jy.x07 = 1 \+ .x1b\[31mx.x0a; by g$'; echo $?) "they are escaped"
finish
