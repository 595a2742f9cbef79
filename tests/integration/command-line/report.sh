#!/bin/bash
# Which setting is best: at the end of a run, and by `assay report`.
# shellcheck disable=SC2012,SC2046 # names have no blanks; $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1

# The rate of a setting is 100 a + b and, behind the point, the repetition. While there is a file `broken`, units of b = 2 fail.
experiment() { # experiment ANSWER
    cat <<E
name: toy
testbed: local
probes: none
experiment:
  name: toy
  factors: {a: {type: integer, default: 1}, b: {type: integer, default: 1}, size: {type: integer, unit: By, default: 64}}
  responses:
    rate: {pattern: '^rate ([0-9.]+)', unit: Gflop/s}
    time: {pattern: '^time ([0-9.]+)', unit: s}
  $1
  run: 'test ! -e $scratch/broken -o \$b != 2 && echo "rate \$((100 * a + b)).\$repetition" && echo "time \$a" && echo "in: a is \$a" && echo "in: b is \$b"'
E
}
campaign() { # campaign ANSWER A B REPETITIONS
    experiment "$1"
    printf 'design: {factors: {a: [%s], b: [%s]}, repetitions: %s, order: as-written}\n' "${@:2}"
}
best="answer: {response: rate, best: most}"
run() { # run NAME ARGUMENT...: NAME.yaml; its archive is $archive, its folder $folder, and what it said NAME.err
    archive=$("$ASSAY" run "$1.yaml" -o "$1" "${@:2}" 2>"$1.err"); status=$?
    folder=${archive%.zip}
}

campaign "$best" "1, 2, 3" "1, 2" 3 >toy.yaml
run toy
is "standard output is the archive's path alone" "$status $(ls "$archive" | wc -l)" "0 1"
check "a run ends with how many settings there are" contains toy.err '^toy by rate, more is better: 6 settings, 18 measurements; units failed: 0, not measured: 0$'
is "... without what never varied" "$(grep -c size toy.err)" 0
is "... and the settings, best first" "$(sed -n '/^a  b  units/,/^intervals/{s/  */ /g; p}' toy.err | head -4)" \
"a b units mean (Gflop/s) 95 % from (Gflop/s) to (Gflop/s)
3 2 3 302.2 301.952 302.448 best
3 1 3 301.2 300.952 301.448
2 2 3 202.2 201.952 202.448"
check "... and where more is" contains toy.err "^the best setting, to be used: assay report .*\.zip --best$"
check "the same from the archive" "$ASSAY" report "$archive"
report $(output '^a +[0-9.]+ +[0-9.e-]+ +3 +1 +-66\.[0-9]$'; echo $?) "... what the response depends on"
report $(output '^order of measurement '; echo $?) "... a trend, too"
cp .out zip.txt
check "... and from the folder" "$ASSAY" report "$folder"
report $(cmp -s .out zip.txt && grep -q '^3  2 ' zip.txt; echo $?) "... word for word"
is "the best setting" "$("$ASSAY" report "$archive" --best | paste -sd' ')" "a=3 b=2 size=64"
is "for programs, with all factors" "$("$ASSAY" report "$archive" --json | tr -d ' \n' | grep -o '"settings":\[{"a":3,"b":2,"size":64,"replicates":3,"mean":302.2')" \
    '"settings":[{"a":3,"b":2,"size":64,"replicates":3,"mean":302.2'
check "... and in detail for people" "$ASSAY" report "$archive" --verbose
report $(output 'size \(byte\)'; echo $?) "..., too"
check "another response" "$ASSAY" report "$archive" --least time
report $(output '^toy by time, less is better: 6 settings'; echo $?) "... ranks them"
check "an expression" "$ASSAY" report "$archive" --most "a / b"
report $(output '^toy by a / b, more is better'; echo $?) "... too"
refuse "two wishes" 2 "give one of them" "$ASSAY" report "$archive" --least time --most rate
refuse "what is no run" 2 "this is not a run; expected the archive of a run, or its folder" "$ASSAY" report zip.txt
refuse "a model that needs a factor to vary" 2 \
    "'size' is 64 in all rows and would have to vary; 'assay report .*' says which setting is best" \
    "$ASSAY" fit linear "$archive" --response time --terms '1 + size' --sizes size

first=$archive
run toy --quiet
is "quietly: the path alone" "$status $(ls "$archive" | wc -l) $(wc -c <toy.err)" "0 1 0"
check "two runs together" "$ASSAY" report "$first" "$archive"
report $(output '^3  2 +6 '; echo $?) "... are one sample"
"$ASSAY" run toy.yaml -o json --json >json.out 2>json.err
is "as JSON: events alone" "$(grep -vc '^{' json.out) $(grep -c best json.err)" "0 0"

# Flags, in the folder, which nothing seals.
sed -i '2,$s/$/load/' "$folder/results/results.csv"
check "all flagged" "$ASSAY" report "$folder"
is "... is said first" "$(head -1 .out)" "do not trust: every unit was flagged (load)"
refuse "... and with the best" 0 'do not trust: every unit was flagged \(load\)' "$ASSAY" report "$folder" --best
sed -i '2s/load$//' "$folder/results/results.csv"
check "all but one flagged" "$ASSAY" report "$folder"
report $(output '^17 of 18 measurements were flagged \(load\) and are left out$' && output ' no value$'; echo $?) "... are counted and left out"

campaign "answer: {response: rate, best: most, lines: 'in: '}" 7 1 1 >one.yaml
run one
check "one unit" contains one.err '1 setting, 1 measurement;'
check "... has no interval" contains one.err 'a single unit has no interval'
is "the lines that its experiment keeps" "$("$ASSAY" report "$archive" --best | paste -sd,)" "a is 7,b is 1"

touch broken
campaign "$best" "1, 2" "1, 2" 2 >part.yaml
run part
check "a run with failures" contains part.err '2 settings, 4 measurements; units failed: 4, not measured: 0$'
cp -R "$folder" unsealed && rm unsealed/results/missing.csv && sed -i '/"event":"sealing"/,$d' unsealed/journal.jsonl
check "before it is sealed, too" "$ASSAY" report unsealed
report $(output '4 measurements; units failed: 4, not measured: 0$'; echo $?) "... by its journal"
rm broken
"$ASSAY" resume "$folder" >resumed.out 2>resumed.err
check "resumed, it has all" contains resumed.err '4 settings, 8 measurements; units failed: 0, not measured: 0$'
check "... ranked" contains resumed.err '^2  2 +2 '
check "attached to, it says the same" "$ASSAY" watch "$folder"
report $(contains .err '^2  2 +2 '; echo $?) "... at its end"

touch broken
campaign "$best" 1 2 2 >none.yaml
run none
check "where all failed, that is said" contains none.err 'no setting can be ranked: no measurement has a value of .rate.'
refuse "... and nothing is best" 2 "no best setting, because" "$ASSAY" report "$archive" --best
rm broken

campaign "setup: [false]" 1 1 1 >early.yaml
run early
refuse "of a run that ended before its first unit, that is said" 2 "nothing was measured: the run ended before its first unit" \
    "$ASSAY" report "$archive"
refuse "... also from its folder" 2 "nothing was measured" "$ASSAY" report "$folder"

campaign "$best
  model: {method: linear, response: time, terms: 1 + a, sizes: [a]}" "1, 12" "1, 2" 2 >sizes.yaml
run sizes
check "sizes of the problem are not compared" contains sizes.err 'only settings with the same problem size .a. are compared; the largest size is first$'
is "... each has a best setting" "$(grep ' best$' sizes.err | awk '{ print $1, $2 }' | xargs)" "12 2 1 2"
is "... that of the largest is the best" "$("$ASSAY" report "$archive" --best | paste -sd' ')" "a=12 b=2 size=64"
"$ASSAY" status "$folder" >sizes.out
check "a complete run's status names the report" contains sizes.out "assay report .*zip. says which setting is best"
campaign "$best
  model: {method: linear, response: time, terms: 1 + a, sizes: [a]}" "1, 12" 1 2 >scan.yaml
run scan
check "sizes alone are not ranked" contains scan.err "with the same problem size .a. are compared; each size has a single setting, so that no settings can be compared; 'assay fit' models"
is "... nor shown, but by the report" "$(grep -c '^12 ' scan.err) $("$ASSAY" report "$archive" | grep -c '^12 ')" "0 1"

sed 's/^testbed: local/testbed: [local, local]/' scan.yaml >list.yaml
run list
is "of a list of testbeds each run names its report" "$(grep -c '^which setting is best: assay report .*/toy-[12]-' list.err)" 2

campaign "" "1, 2" 1 1 >mute.yaml
run mute
check "without an answer a run says which line to add" \
    contains mute.err "does not say by which of its responses \(rate, time\) settings are ranked; .*'answer: "
is "... and is done all the same" "$status" 0

# Settings that differ in their size are no alternatives, whatever the model's sizes are.
campaign "answer: {response: rate, best: most, sizes: [a]}" "1, 2" "1, 2" 2 >sizes.yaml
run sizes
is "settings are compared within the sizes that the answer names" "$("$ASSAY" report "$archive" --json | jq -r '[.settings[] | select(.standing == "best")] | length')" 2
campaign "answer: {response: rate, best: most, share: time, of: the peak}" 1 1 1 >share.yaml
run share
check "the best setting says which share of what can be had it reached" contains share.err "^best: share of the peak +100 %$"
campaign "answer: none" "1, 2" 1 2 >none.yaml
run none
check "a run whose settings are no alternatives ranks none" contains none.err "the settings are not ranked: .*the experiment 'toy' declares no response by which settings are ranked; choose a response: 'assay report .* 'assay fit "
check "... unless it is asked to" "$ASSAY" report "$archive" --most rate

wrong() { # wrong NAME ANSWER PATTERN
    campaign "$2" 1 1 1 >wrong.yaml
    refuse "$1" 2 "wrong.yaml:10:[0-9]+: $3" "$ASSAY" run wrong.yaml --dry-run
}
wrong "an unknown response" "answer: {response: rte, best: most}" ".*'rte'.*'rate'"
wrong "neither most nor least" "answer: {response: rate, best: max}" ".*'max'.*most"
wrong "a size that is no factor" "answer: {response: rate, best: most, sizes: [rate]}" ".*'rate' is not a factor"
wrong "a share that is no response" "answer: {response: rate, best: most, share: size}" "'size' is not a response that is a number; expected the name of one"
wrong "no direction" "answer: {response: rate}" ".*'best'"
wrong "a unit that is written otherwise" "answer: {response: a / time, unit: KB/s, best: most}" ".*kB for 1000 bytes"
finish
