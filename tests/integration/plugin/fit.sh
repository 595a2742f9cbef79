#!/bin/bash
# assay fit: tables in, models out; and everything that can be wrong with what it is given.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
export ASSAY_PATH=$ASSAY_BUILD/tests/plugins
first() { head -1 "$scratch/.out" | grep -qE -- "$1" || { echo "# the first line does not match: $1"; sed 's/^/# /' "$scratch/.out" | head -5; return 1; } >&2; }
fit() { "$ASSAY" fit "$@"; }

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

check "a table for people" fit calls.csv --terms '1+a*b+b' --by host
report $(first '^(not )?usable.*: cross-validated error [0-9.]+ % in the worst group \(median [0-9.]+ %\) over 24 settings of a 1 to 12, b 1 to 5'; echo $?) \
    "its first line says whether the model can be used, and where it was measured"
report $([ "$(grep -n '^node-2$' .out | cut -d: -f1)" -lt "$(grep -n '^node-10$' .out | cut -d: -f1)" ]; echo $?) "groups come in natural order"
report $(output '^warning: node-z: not fitted: 1 row' && output '^warning: node-q: not fitted: .*b'; echo $?) \
    "groups that are too small or singular are named with the reason"
check "a model file" fit linear calls.csv --terms '1+a*b+b' --by host,core -o model.json
report $(contains model.json '"sha256": "'"$(sha256sum calls.csv | cut -d' ' -f1)"'"' &&
    contains model.json '"labels": \{"host": "node-10", "core": "1"\}, "rows": 6'; echo $?) "it has the hash of its input and the groups' labels"
report $([ "$(stat -c %a model.json)" = "$(printf '%o' $((0666 & ~$(umask))))" ] && [ "$(find . -name 'model.json.*' | wc -l)" -eq 0 ]; echo $?) \
    "it has the usual mode, and nothing is left beside it"
check "the same as JSON on standard output" fit calls.csv --terms '1+a*b+b' --by host,core --json
report $(cmp -s <(sed '/"created"/d' model.json) <(sed '/"created"/d' .out); echo $?) "is the model file"
check "--verbose" fit calls.csv --terms '1+a*b' --verbose
report $(output '^aic +-?[0-9.]+$' && output '^bic ' && output '^term .* t +p' && output '^furthest off$' && output '^calls.csv:[0-9]+ '; echo $?) \
    "has AIC and BIC, t and p, the rows that are furthest off with their lines"

# What a method is, and what a file.
mkdir slope; cp calls.csv linear
check "a folder that is called as a method" fit slope calls.csv --set size=a
check "a file that is" fit linear calls.csv --terms 1+a*b
report $(first 'over 25 settings of a 1 to 12' && output "^note: 'linear' is the method; the file of that name is given as ./linear$"; echo $?) "is not read"
check "... but by its path" fit linear ./linear --terms 1+a*b
refuse "a method without input" 2 "the method 'linear' is given no input.*; the file of that name is given as" "$ASSAY" fit linear
refuse "a method that does not exist" 2 "'linaer' is neither a file nor a method: .* did you mean 'fit-linear'" "$ASSAY" fit linaer calls.csv

# What a design changes on a node is a column like any other, though its name has a dot.
awk -F, -v OFS=, 'NR == 1 {print $0, "control.turbo", "control.idle-states"} NR > 1 {print $0, NR % 2 ? "on" : "off", NR % 3 ? "C1" : "10us"}' \
    calls.csv >states.csv
check "states of controls are groups" fit states.csv --terms 1+a*b --by control.turbo,control.idle-states -o states.json
report $(output '^off/10us ' && [ "$(grep -c '"labels": {"control.turbo": "o[nf]*", "control.idle-states": "1*[0C][us1]*' states.json)" -eq 4 ]; echo $?) \
    "... under their names"

# Several inputs are one table; columns may stand elsewhere; labels keep their groups.
awk -F, 'NR == 1 || NR % 2 == 0' calls.csv >even.csv
awk -F, 'NR == 1 || NR % 2 == 1 {print $5 "," $3 "," $1 "," $4}' calls.csv >odd.csv
estimates() { grep -oE '"labels".*' | sed 's/"values".*"estimates"//; s/"standard_error".*//' | sort; }
check "two files are one table" fit even.csv odd.csv --terms '1+a*b+b' --by host --json
estimates <.out | sed -E 's/([0-9]\.[0-9]{9})[0-9]*/\1/g' >1
fit calls.csv --terms '1+a*b+b' --by host --json | estimates | sed -E 's/([0-9]\.[0-9]{9})[0-9]*/\1/g' >2
report $([ -s 1 ] && cmp 1 2 >&2; echo $?) "the result does not depend on how the rows are divided"
refuse "an input that lacks a column" 2 "odd.csv: there is no text column 'core'" "$ASSAY" fit even.csv odd.csv --terms 1+a --by core
check "standard input" sh -c "'$ASSAY' fit - --terms 1+a --json <calls.csv"
report $(output '"name": "standard input"'; echo $?) "is named so"

# Many groups: a line each, and how they spread.
awk 'BEGIN {print "g,x,duration"; for (i = 0; i < 4000; i++) print i % 40 "," i % 13 "," 3 * (i % 13) + i % (2 + i % 40)}' >many.csv
check "many groups" fit many.csv --terms 1+x --by g
report $(output '^group +rows +error' && output '^39 +100 ' && output '^summary over the groups$' && output '^x +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+'; echo $?) \
    "a line each, and their spread"

# An archive suggests its model and knows its units.
check "archives to fit" "$ASSAY_BUILD/tests/unit/test-table-archive" --make "$scratch"
check "an archive alone" fit dgemm.zip -o dgemm.json
report $(first '^usable: .* over 120 settings of m 64 to' && output '^n-2/0 +30 ' && contains dgemm.json '"by": \["node", "core"\]'; echo $?) \
    "the suggested model and groups"
report $(output '^asymptotic speed, from 2mnk operations +[0-9.]+ Gflop/s$' && output '^slowest and fastest group +16\.[0-9]+ Gflop/s .*\(n-10/[01]\) and 3[0-9.]+ Gflop/s \(n-2/[01]\): the slowest group has (50|49)'; echo $?) \
    "how fast a core is, and the slowest of the fastest"
report $(contains dgemm.json '"response": \{"name": "duration", "unit": "s"\}' &&
    contains dgemm.json '"name": "dgemm.zip", "sha256": "'"$(sha256sum dgemm.zip | cut -d' ' -f1)"'", "run_id": "3f0e6d2c'; echo $?) \
    "the model has units, and names the archive by hash and run"
check "alternatives of it" fit alternatives dgemm.zip --terms M-1 --by none
report $(output '^. +linear +M-1 +\(pooled\) .* N-1 ' && output '^. +linear +M-1 +\(pooled\) .* N-2 '; echo $?) "have each noise, whatever it suggests"
refuse "a robust fit with a noise of greatest likelihood" 2 "robust=huber cannot be combined with noise=heteroscedastic \(the experiment may suggest this noise\); set noise=auto" \
    "$ASSAY" fit dgemm.zip --set robust=huber --set noise=heteroscedastic
check "an option goes before the suggestion" fit dgemm.zip --terms M-1 --by none -o m1.json
report $(contains m1.json '"by": \[\]' && [ "$(grep -c '"name": .*"factors"' m1.json)" -eq 2 ]; echo $?) "terms and groups"
check "an archive without a suggestion" fit plain.zip -o plain.json
report $(contains plain.json '"name": "n\*k"'; echo $?) "its response is known by its role"
cp dgemm.zip archive.txt
check "an archive is known by its bytes" fit archive.txt
check "two archives are one table" fit dgemm.zip plain.zip --json
report $(output '"rows": 240,'; echo $?) "with all rows"
mkdir run && (cd run && python3 -m zipfile -e ../dgemm.zip .)
check "the folder of a run" fit run --json
report $(cmp -s <(sed '/"created"/d; /"sha256"/d' .out) <(sed '/"created"/d; /"sha256"/d; s/"name": "dgemm.zip"/"name": "run"/' dgemm.json); echo $?) "gives what its archive gives"
refuse "another folder" 2 "'.*' is a folder, but not that of a run" "$ASSAY" fit slope/..
head -c 3000 dgemm.zip >cut.zip
refuse "a truncated archive" 5 "cut.zip" "$ASSAY" fit cut.zip -o cut.json
report $([ ! -e cut.json ]; echo $?) "gives no model"

# Tables as other programs write them: the same estimates.
want=$(fit calls.csv --terms 1+a*b --json | estimates)
same() { # same NAME INPUT [OPTION...]
    local name=$1; shift
    check "$name" fit "$@" --terms 1+a*b --json
    report $([ -n "$want" ] && [ "$(estimates <.out)" = "$want" ]; echo $?) "... is read as it is"
}
tr , ';' <calls.csv >semicolon.csv
same "semicolons" semicolon.csv
tr , '\t' <calls.csv >tab.csv
same "tabs" tab.csv
tr , '|' <calls.csv >bar.csv
same "another separator" bar.csv --separator '|'
awk '{print (NR == 1 ? "" : NR - 2) "," $0}' calls.csv >pandas.csv
same "a column of row numbers, as pandas and R write them" pandas.csv
awk -F, -v OFS=, '{$1 = "\"" $1 "\""; print}' calls.csv >r.csv
same "quotes" r.csv
{ echo '# measured on Monday'; sed 's/,/, /g; s/$/,/' calls.csv; echo; } >spread.csv
same "comments, blanks, separators behind the last field" spread.csv
tail -n +2 calls.csv >bare.csv
same "no header" bare.csv --columns host,core,a,b,duration
gzip -c calls.csv >calls.csv.gz
same "gzip" calls.csv.gz
same "a pipe" <(zcat calls.csv.gz)
refuse "rows that the names do not fit" 2 "bare.csv" "$ASSAY" fit bare.csv --columns host,a,b,duration --terms 1+a

# Rows by condition, expressions as response and weights.
count() { grep -oE '"rows": [0-9]+' .out | head -1; }
check "a condition on numbers and texts" fit calls.csv --terms 1+a --where "host != 'node-q' and a > 2 or host == \"node-z\"" --json
report $([ "$(count)" = '"rows": 21' ] && output '"where": "host != '; echo $?) "chooses rows, and is in the model"
refuse "a condition that no row meets" 2 "none of 30 rows meets --where" "$ASSAY" fit calls.csv --terms 1+a --where "host == 'x'"
refuse "a condition on what is not there" 2 "unknown name 'hots', did you mean 'host'" "$ASSAY" fit calls.csv --terms 1+a --where "hots == 'x'"
awk -F, -v OFS=, 'NR == 1 {print $0, "r", "w"; next} {printf "%s,%.17g,%.17g\n", $0, 1 / $5, 1 / ($3 * $4)^2}' calls.csv >expressed.csv
fit expressed.csv --response r --weights w --terms 1+a --json | estimates >1
check "expressions" fit calls.csv --response 1/duration --weights '1/(a*b)^2' --terms 1+a --json
estimates <.out >2
report $([ -s 1 ] && diff <(grep -oE '"estimate": [-0-9.e]{12}' 1) <(grep -oE '"estimate": [-0-9.e]{12}' 2) >&2; echo $?) "... are as good as columns"

# What cannot be read, and what makes no sense.
: >empty.csv
echo 'a,duration' >header.csv
printf 'a,duration\n1,2\n3\n' >short.csv
printf 'a,duration\n1,2x\n' >junk.csv
printf 'a,a,duration\n1,1,2\n' >twice.csv
printf 'PK\003\004nonsense' >broken.zip
cut -d, -f1,2 many.csv >no.csv
grep 'duration\|node-q' calls.csv >q.csv
head -13 many.csv >few.csv
sed '3s/duration/x/; 3s/,[0-9.]*$/,fast/' calls.csv >fast.csv
awk -F, -v OFS=, 'NR == 1 {print $0, "w"; next} {print $0, NR == 5 ? -1 : 1}' calls.csv >negative.csv
while IFS='|' read -r what code pattern words; do
    # shellcheck disable=SC2086 # words
    refuse "$what" "$code" "$pattern" "$ASSAY" fit $words -o no.json
done <<'END'
a missing file|2|cannot open 'nothing.csv': No such file|nothing.csv
an empty file|2|empty.csv.*expected a header row|empty.csv
a header and no rows|2|could not be fitted|header.csv --terms 1+a
a short row|2|short.csv:3|short.csv --terms 1+a
a number with trailing junk|2|junk.csv:2:3.*2x|junk.csv --terms 1+a
a text in the response|2|fast.csv:3:.*fast|fast.csv --terms 1+a
a column given twice|2|twice.csv:1.*'a'|twice.csv --terms 1+a
a zip that is none|5|broken.zip|broken.zip
a model for a table|2|model.json: this file is JSON, not a table; if it is a model, 'assay model show' prints|model.json
an unknown response|2|'durations'.*did you mean 'duration'|calls.csv --response durations --terms 1+a
no response to be guessed|2|choose one with --response; there are: g, x|no.csv
an unknown group column|2|there is no group column 'hosts'; did you mean 'host'|calls.csv --by hosts --terms 1
a group column given twice|2|has 'host' twice|calls.csv --by host,host
unknown weights|2|there is no weights column 'w'|calls.csv --weights w --terms 1
a weight below 0|2|negative.csv.*weight|negative.csv --weights w --terms 1
a bad term|2|terms '1\+a\*\+b', column 5: '\+' where a column or 1 was expected|calls.csv --terms 1+a*+b
sizes that are not there|2|M-2 uses the sizes m, n, k, but there is no column 'm'|calls.csv
a text that is not said to be a category|2|calls.csv:2:1.*'host'|calls.csv --terms 1+host
no group that can be fitted|2|could not be fitted: .*b|q.csv --terms 1+b
no group of several|2|none of the 12 groups could be fitted; the first \(0\) because of 1 row|few.csv --terms 1+x --by g
one fold|2|--folds '1'; expected 0 or a number from 2 to 255|calls.csv --folds 1 --terms 1+a
a separator of two|2|--separator ';;'|calls.csv --separator ;; --terms 1+a
a plugin of another ABI|2|the plugin has ABI 7, but this assay has ABI 4|other-abi calls.csv
a plugin's own refusal|2|fails: the first of [0-9]+ rows is odd|fails calls.csv
an option of another action|2|'assay fit alternatives' has no option '--plot'|alternatives calls.csv --plot y.svg
END
report $([ ! -e no.json ]; echo $?) "then no model is written"
refuse "a folder that is not there" 2 "cannot create 'no/model.json'" "$ASSAY" fit calls.csv --terms 1+a -o no/model.json
refuse "a plot over the input" 2 "the output 'bar.csv' is also an input" "$ASSAY" fit bar.csv --plot bar.csv
refuse "two outputs that are one file" 2 "'m.json' and './m.json' are one file" "$ASSAY" fit calls.csv --terms 1+a -o m.json --plot ./m.json
refuse "nothing at all" 2 "too few operands" "$ASSAY" fit
if [ -e /dev/full ]; then
    refuse "a full disk" 1 "No space left" sh -c "'$ASSAY' fit calls.csv --terms 1+a --json >/dev/full"
fi

# What is missing; what a few rows spoil; categories.
printf 'a,duration\n1,2\n2,\n3,4\n4,7\n5,NA\n6, inf\n7,9\n' >hole.csv
check "fields without a number" fit hole.csv --terms 1+a
report $(output '^note: 3 rows are left out: a value is missing or not finite$'; echo $?) "leave their rows out, which is said"
awk 'BEGIN {print "host,p,n,duration"; for (i = 0; i < 240; i++) {h = i % 3; p = 2 ^ (i % 5); n = 100 + i * 37 % 101
    print "h-" 8 + h "," p "," n "," 3 + 5 * h + n / p + 2 * log(p) / log(2) + (i * 29 % 7) / 10 + (i == 100 ? 50 : 0)}}' >hosts.csv
check "a category, an inverse, a logarithm" fit hosts.csv --terms '1+category(host)+n*p^-1+log2(p)' -o hosts.json
report $(first '1 of 240 rows cause [0-9]+ % of the squared error: --set outliers=3 leaves rows out' && output '^hosts.csv:102 '; echo $?) \
    "the row that spoils the fit is shown, and what to do"
report $(output '^host\[h-10\] +(9\.|10\.)' && contains hosts.json '"level": "h-9"' && contains hosts.json '"function": "log2"'; echo $?) \
    "dummies without the first level; factors are data"
check "what was said" fit hosts.csv --terms '1+category(host)+n*p^-1+log2(p)' --set outliers=3
report $(first '^usable' && ! head -1 .out | grep -q outliers && output '^outliers_deleted +1$'; echo $?) "helps"
check "an archive's texts are categories" fit dgemm.zip --terms 1+m*n*k+node --by none
report $(output '^node\[n-10\] '; echo $?) "... without being said to be"

# The charts.
check "a chart in ASCII" env LC_ALL=C "$ASSAY" fit hosts.csv --terms 1+n
report $(output '^ +2 \|' && output '^ +-2 \|' && ! LC_ALL=C grep -q '[^ -~]' .out; echo $?) "has lines at two sigma"
check "in a UTF-8 locale" env LC_ALL=C.UTF-8 "$ASSAY" fit hosts.csv --terms 1+n
report $(LC_ALL=C.UTF-8 grep -qP '^ +2 \x{2502}.*[\x{2800}-\x{28ff}]' .out || grep -q '⠄\|⠂\|⠁\|⡀' .out; echo $?) "it is of dots"
check "--brief" fit hosts.csv --terms 1+n --brief
report $(! grep -q 'residuals in' .out; echo $?) "leaves it out"
sed '1s/host,p,n/host,p,"n<\&"/' hosts.csv >odd.csv
check "a plot" fit odd.csv --terms '1+`n<&`' --plot odd.svg
report $(contains odd.svg '^<svg xmlns' && [ "$(tail -n 1 odd.svg)" = "</svg>" ] && contains odd.svg 'n&lt;&amp;' && contains odd.svg 'class="l"' &&
    ! grep -qi '<script\|href\|url(\|<image' odd.svg; echo $?) "is SVG of residuals, data and curve, of nothing from elsewhere, with names escaped"
if command -v xmllint >/dev/null; then check "well-formed XML" xmllint --noout odd.svg; else skip "well-formed XML" "there is no xmllint"; fi
awk 'BEGIN {print "x,y"; for (i = 1; i <= 40; i++) for (r = 0; r < 3; r++) print i "," i * i / 10 + (i * 7 + r * 5) % 11 / 10}' >curve.csv
check "a line for a curve, on rows that repeat" fit curve.csv --response y --terms 1+x
report $(first '^not usable for prediction: .*; significant lack of fit \(F = [0-9.e+]+\): the standard errors are too small'; echo $?) "lacks fit"
check "the curve" fit curve.csv --response y --terms 1+x+x^2
report $(! head -1 .out | grep -q lack; echo $?) "does not"

# Methods.
check "methods" "$ASSAY" plugins
report $(output '^fit +linear +[0-9.]+ +least squares' && output 'other-abi.*the plugin has ABI 7, but'; echo $?) "are listed, with why one cannot be used"
check "parameters" fit linear --parameters
report $(output '^threshold +number from 0 to 1 +0.05 ' && output '^select +none, elimination +none '; echo $?) "words, ranges, defaults"
check "as JSON" fit linear --parameters --json
report $(output '"default": "auto"'; echo $?) "too"
refuse "of what" 2 "expected 'assay fit METHOD --parameters'" "$ASSAY" fit --parameters linear robust

# Names can hold anything; the terminal gets none of it.
printf '"\033[31mx\n",g,"\033[2Jy\a"\n1,\033[3m,2\n2,\033[3m,3\n3,\033[3m,5\n4,\033[3m,4\n' >hostile.csv
check "names with control characters" fit hostile.csv -y $'\033[2Jy\a' --by g --terms M-1 --sizes $'\033[31mx\n'
report $(! LC_ALL=C grep -q $'[\001-\011\013-\037\177]' .out && output 'x1b\[31mx.n'; echo $?) "are escaped"
finish
