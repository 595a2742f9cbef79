#!/bin/bash
# The results of many runs in one file: adding, listing, the log, checking. Unit tests have the statistics.
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
unset ASSAY_HISTORY

cat >toy.yaml <<'E'
name: toy
testbed: local
probes: none
experiment:
  name: toy
  factors: {a: {type: integer}}
  responses: {rate: {pattern: '^rate ([0-9.]+)', unit: Gflop/s}}
  run: 'echo rate $((100 * a + repetition))'
design: {factors: {a: [1, 2]}, repetitions: 3}
E
first=$("$ASSAY" run toy.yaml -o runs 2>/dev/null)
second=$("$ASSAY" run toy.yaml -o runs 2>/dev/null)
id=${second%.zip} id=${id##*-}

refuse "no history yet" 2 "there is no history; 'assay history add ARCHIVE...' begins one" "$ASSAY" history check
check "archives are added" "$ASSAY" history add --with-flagged "$first" "$second"
report $(output "$(basename "$second"): 2 values added"; echo $?) "... a value a setting"
check "once" "$ASSAY" history add "$first"
report $(output "is there already"; echo $?) "... only"
check "with its flagged rows again" "$ASSAY" history add --with-flagged "$first"
check "the runs" "$ASSAY" history list
is "... each once" "$(grep -c ' toy ' .out)" 2
check "a run" "$ASSAY" history show "$id"
report $(output 'a=2 +rate +Gflop/s +3 +202 +1$'; echo $?) "... means over the repetitions, with units"
report $(output 'kernel_release +'"$(uname -r)"; echo $?) "... and what the node was"
check "all values" "$ASSAY" history export -o all.csv
is "... as CSV" "$(wc -l <all.csv) $(cut -d, -f1,2,4,5,6,9 all.csv | sort -u | tail -2 | paste -sd' ')" \
    "5 toy,toy,a=1,rate,Gflop/s,102 toy,toy,a=2,rate,Gflop/s,202"
check "too few runs" "$ASSAY" history check --exit-code
report $(output '^0 of 2 series changed \(the longest has 2 runs\); 2 series have too few runs to be tested$'; echo $?) "... are said"
check "for programs" "$ASSAY" history check --json
report $(output '"grade": *"unknown"'; echo $?) "... too"

check "a change" "$ASSAY" history change 2020-10-12 --nodes 'dahu-[1-2]' --reason "BIOS 2.19" --author me
check "an outlier" "$ASSAY" history outlier "$id" --reason "the fan"
check "the log" "$ASSAY" history log
report $(output '^change +2020-10-12T00:00:00Z +- +dahu-\[1-2\] +me +BIOS 2.19$'; echo $?) "... has both"
refuse "a change without a reason" 2 "needs --reason TEXT" "$ASSAY" history change 2020-10-12
refuse "no time" 2 "'today' is not a time; expected a time in UTC such as 2026-10-12" "$ASSAY" history change today --reason x
refuse "a run that is none" 2 "no run has an id that begins with 'zzz'" "$ASSAY" history outlier zzz --reason x
refuse "a method that is none" 2 "expected shift, chew or e-divisive" "$ASSAY" history check --method t-test
refuse "a probability that is none" 2 "is not a probability" "$ASSAY" history check --p 2
refuse "what is no archive" 5 "toy.yaml" "$ASSAY" history add toy.yaml
refuse "the folder of a run" 2 "this is not the archive of a run" "$ASSAY" history add "${first%.zip}"
cp "$first" cut.zip && truncate -s -100 cut.zip
refuse "a damaged archive" 5 "cut.zip" "$ASSAY" history add cut.zip
echo "some text that is longer than the head of a database, so that it is read as one: it is none" >text.sqlite
refuse "another file" 2 "this file is no history of assay" "$ASSAY" history add --history text.sqlite "$first"
{
    echo value,node,cut
    for i in {1..60}; do echo "$((1000 + i * 7 % 11 - (i > 30 ? 50 : 0))),dahu-1,0"; done
    for i in {1..60}; do echo "$((1000 + i * 7 % 11 - (i > 30 ? 50 : 0))),dahu-2,$((i == 31))"; done
} >slow.csv
check "series of a CSV file" "$ASSAY" history check slow.csv
report $(output '^1 of 2 series changed \(the longest has 60 runs\)'; echo $?) "... in the order of its rows, with its cuts"
report $(output 'dahu-1 .*run 31 +-4[.0-9]+'; echo $?) "... since when"
check "a page" "$ASSAY" history check slow.csv -o slow.html
is "... has a section and a chart for each node" "$(grep -o '<h2[^>]*>[^<]*' slow.html | sed 's/.*>//' | paste -sd' ') $(grep -c '<svg' slow.html)" "dahu-1 dahu-2 2"
report $(contains slow.html 'changed since this run'; echo $?) "... with what has changed"
refuse "a page of another kind" 2 "expected --output NAME.html" "$ASSAY" history check slow.csv -o slow.csv
check "a page of a history" "$ASSAY" history check -o toy.html
report $(contains toy.html "days since 2[0-9]{3}-[0-9]{2}-[0-9]{2}"; echo $?) "... over days"
printf 'rate,node\n1,a\n' >rates.csv
refuse "a CSV file without values" 2 "there is no number column 'value'" "$ASSAY" history check rates.csv
printf 'value\n' >empty.csv
refuse "... or without rows" 2 "^assay: empty.csv: no row has a number in the column 'value'$" "$ASSAY" history check empty.csv
{
    echo started,value
    for i in {1..60}; do echo "$((1700000000 + i))000000000,$((1000 + i * 7 % 11 - (i > 30 ? 50 : 0)))"; done
} >nanoseconds.csv
refuse "times in ns" 2 "row 1 has the time 1\.700000001e\+18 in the column 'started'; expected seconds since 1970" "$ASSAY" history check nanoseconds.csv
sed '92s/^[0-9]*//' slow.csv >lost.csv
check "a cut in a row without a value" "$ASSAY" history check lost.csv --node dahu-2
report $(output '^0 of 1 series changed'; echo $?) "... is that of the next row"
refuse "an archive" 2 "this is an archive; add it to a history with 'assay history add', then run" "$ASSAY" history check "$first"
refuse "a node of no row" 2 "no series has the node 'dahu-3'; did you mean 'dahu-1'" "$ASSAY" history check slow.csv --node dahu-3
check "what export wrote" "$ASSAY" history check all.csv
report $(output '^0 of 2 series changed \(the longest has 2 runs\)'; echo $?) "... is read"
refuse "a campaign that is none" 2 "no series has the campaign 'toys'; did you mean 'toy'" "$ASSAY" history check --campaign toys
refuse "a response that is none" 2 "no series has the response 'time'; there are: rate" "$ASSAY" history export --response time
refuse "the number of an archive" 2 "no run has an id that begins with '1234567'; 'assay history list'" "$ASSAY" history show 1234567

# Eight processes begin one history.
racers=()
for i in {1..8}; do "$ASSAY" history add --history race.sqlite "$first" >"race$i" 2>&1 & racers+=($!); done
for racer in "${racers[@]}"; do wait "$racer" || touch race.failed; done
is "histories that begin at once are one" "$(ls race.failed 2>/dev/null; cat race? | grep -c 'flagged rows left out')" 1

check "another name" env ASSAY_HISTORY=mine.sqlite "$ASSAY" history add "$first"
report $(test -s mine.sqlite; echo $?) "... by the environment"
finish
