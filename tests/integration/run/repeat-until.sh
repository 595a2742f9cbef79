#!/bin/bash
# `repeat: {until: ...}`: rows are measured until they are known well enough, and where that is, is known here.
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
# Row 1 is always the same, row 2 goes 101, 99, 101, ..., row 3 goes 110, 90, 110, ..., row 4 goes 1, -1, 1, ...
write() { # write REPEAT [DESIGN-KEYS]
    cat >c.yaml <<E2
experiment:
  name: pattern
  factors: {n: {type: integer}}
  responses: {other: {pattern: 'other ([0-9]+)'}, duration: {pattern: 'answer (-?[0-9.]+)', unit: ms}}
  estimate: 60
  run:
    placement: node
    command: |
      sign=\$((repetition % 2 * 2 - 1))
      case \$n in 1) v=10 ;; 2) v=\$((100 + sign)) ;; 3) v=\$((100 + 10 * sign)) ;; 4) v=\$sign ;; esac
      echo "other \$repetition answer \$v"
probes: none
gates: none
design:
  generate: factorial
  factors: {n: [1, 2, 3, 4]}
  seed: 7
  repeat: {until: {$1}}
  ${2-}
E2
}
run() { rm -rf runs; "$ASSAY" run c.yaml -o runs "$@" >out 2>&1; local status=$?; folder=$(echo runs/*.zip); folder=${folder%.zip}; cat out >&2; return $status; }
counts() { cut -d, -f1 "$folder/results/results.csv" | sed 1d | sort | uniq -c | awk '{print $2 ":" $1}' | tr '\n' ' '; }

# Half widths by hand: of 101, 99 it is 12.7; of 101, 99, 101 it is 2.87; of 101, 99, 101, 99 it is 1.84 (3.182 sqrt(4/3) / sqrt(4)).
write 'ci: 2%, at-least: 3, at-most: 6, between: [block], response: duration'
check "a campaign that is repeated until its rows are known" run
is "... stops each row where it is" "$(counts)" "1:3 2:4 3:6 4:6 "
check "... and says so" grep -q '2 of 4 rows have an error within 2 % (confidence level 95 %) after 3 to 4 repetitions; 2 reached 6$' out
check "... having said that it may be fewer" grep -q ' 24 units at most: 4 rows, 6 repetitions, 1 node' out
check "units that are not needed are not planned" grep -q '19 of 19 units (100.0 %)' out
check "... nor counted as such" sh -c 'grep -A9 "\"counts\"" "$1/run.json" | tr -d " \n" | grep -q "\"units_planned\":19,\"units_done\":19,\"units_failed\":0,.*\"rows_settled\":2"' - "$folder"
is "what is known of each row is in a table" "$(cut -d, -f1-4,7 "$folder/results/repeat.csv" | sed '$d')" \
    "row,repetitions,groups,mean,settled
1,3,3,10,yes
2,4,4,100,yes
3,6,6,100,no"
check "... with the half width, and that relative to the mean" \
    equal "$(sed -n '2s/^1,3,3,10,//p;3s/^2,4,4,100,//p' "$folder/results/repeat.csv" | awk -F, '{printf "%.12g %.12g\n", $1, $2}')" "0 0
1.83738623104 0.0183738623104"
check "... of which a mean near 0 has none that is narrow" grep -qE '^4,6,6,[^,]*,1\.14959914524[0-9]*,[0-9.e+]*,no$' "$folder/results/repeat.csv"
check "... whose columns are described" sh -c 'tr -d " \n" <"$1/datapackage.json" | grep -q "\"path\":\"results/repeat.csv\".*\"name\":\"half_width\",\"type\":\"number\",[^}]*\"unit\":\"ms\""' - "$folder"
check "... and which is sealed" sh -c '"$ASSAY" archive verify "$1.zip" && "$ASSAY" archive cat "$1.zip" results/repeat.csv | cmp - "$1/results/repeat.csv"' - "$folder"
is "the journal tells when" \
    "$(grep -oE '"event":"(row-settled","row":[0-9]+,"repetitions":[0-9]+,"groups":[0-9]+,"mean":[0-9]+|planned","units":[0-9]+|block-started","block":[0-9]+)' "$folder/journal.jsonl" | sed 's/"event"://; s/"[a-z]*"://g; s/"//g' | tr '\n' ' ')" \
    "planned,24 block-started,1 block-started,2 block-started,3 row-settled,1,3,3,10 planned,21 block-started,4 row-settled,2,4,4,100 planned,19 block-started,5 block-started,6 "
is "every repetition is a block of its own" "$(awk -F, 'NR > 1 && $2 != $4' "$folder/results/results.csv" | wc -l)" 0
is "... in which the order is that of the plan without what is left out" \
    "$(cut -d, -f3 "$folder/results/results.csv" | sed 1d | sort -n | tr '\n' ' ')" "$(cut -d, -f3 "$folder/results/results.csv" | sed 1d | tr '\n' ' ')"
is "the rule is in the archive, all of it" \
    "$(for f in run campaign.resolved; do tr -d ' \n' <"$folder/$f.json" | grep -o '"repeat":{"ci"[^}]*}'; done | sort -u)" \
    '"repeat":{"ci":0.02,"confidence":0.95,"at_least":3,"at_most":6,"between":["block"],"response":"duration"}'
cut -d, -f1-4,11 "$folder/results/results.csv" >first
check "the same seed" run
check "... gives the same units in the same order" sh -c 'cut -d, -f1-4,11 "$1/results/results.csv" | cmp first -' - "$folder"

write 'ci: 3%, at-most: 6, between: [block], response: duration' 'order: as-written'
check "a wider interval, as written" run
is "... is reached sooner" "$(counts)" "1:2 2:3 3:6 4:6 "
write 'ci: 99%, at-most: 9, between: [block], response: duration' 'factors: {n: [1]}'; sed -i '/factors: {n: \[1, /d' c.yaml
check "when all rows are known" run
is "... the blocks to come are skipped" "$(counts) $(grep -c '"block-started"' "$folder/journal.jsonl")" "1:2  2"
check "... and the run is complete" grep -q 'completed' out

# ---- The plan
write 'ci: 2%, at-most: 6'
check "a plan" sh -c '"$ASSAY" run c.yaml --dry-run >plan'
check "... says at most" grep -qF '4 rows x at most 6 repetitions = at most 24 units on each node' plan
check "... and until when: of the first response, between nodes and blocks" grep -qF "each row until the mean of 'other' between nodes and blocks is known to 2 % (95 %), after 2 to 6 repetitions" plan
check "... and how long at most" grep -qF 'Time to measure: at most about 24 min' plan
is "a table has all repetitions" "$("$ASSAY" design --from c.yaml 2>err | wc -l)" 25
check "... and it is said why" grep -q "6 repetitions, the most that 'repeat' allows" err
is "... unless they are given" "$("$ASSAY" design --from c.yaml --repetitions 2 2>err | wc -l) $(grep -c repeat err)" "9 0"

# ---- Refusals
bad() { refuse "$1" 2 "$2" "$ASSAY" run c.yaml -o bad; }
write 'ci: 2%, at-most: 6, response: durations'
bad "a response that is none, the nearest named" "c.yaml:18:50: 'durations' is not a response of experiment 'pattern'; did you mean 'duration'\?"
write 'ci: 2%, at-most: 6, response: x'
bad "... or all of them" "c.yaml:18:50: 'x' is not a response of experiment 'pattern'; there are: other, duration"
write 'ci: 2%, at-most: 6, between: [node]'
bad "between nodes, of which there is one" "c.yaml:18:49: a mean over one node has no confidence interval"
write 'ci: 2%, at-most: 6' 'repetitions: 3'
bad "repetitions as well" "c.yaml:19:16: both 'repetitions' and 'repeat' are set; remove one"
printf 'experiment: dgemm\nrepeat: {until: {ci: 2%%, at-most: 6}}\n' >c.yaml
bad "it beside the design" "c.yaml:2:1: 'repeat' belongs inside 'design'"
check "nothing was left behind" test ! -e bad

# ---- On two nodes, one of which is slower: by 0.2 in row 1, by 1 in row 2
on_nodes() { # on_nodes BETWEEN: half widths between two nodes are 12.7 * 0.1 and 12.7 * 0.5
    cat >c.yaml <<E2
experiment:
  name: pattern
  factors: {n: {type: integer}}
  responses: {duration: {pattern: 'answer ([0-9.]+)', unit: ms}}
  run: {placement: node, command: 'case \$n-\$(hostname) in *-1) v=100 ;; 1-*) v=100.2 ;; 2-*) v=101 ;; esac; echo "answer \$v"'}
probes: none
gates: none
design: {generate: factorial, factors: {n: [1, 2]}, repeat: {until: {ci: 2%, at-most: 4, between: $1}}}
E2
    rm -rf runs
    bed run "$ASSAY" run c.yaml --nodes 'node-[1-2]' -o runs >out 2>&1 || { cat out >&2; return 1; }
    folder=$(echo runs/*.zip); folder=${folder%.zip}
}
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
if bed_for_part 2 --names 'node-%'; then
    check "between nodes" on_nodes '[node]'
    is "... repetitions do not help where nodes differ" "$(counts)" "1:4 2:8 "
    is "... and nodes are the groups" "$(cut -d, -f1-3,7 "$folder/results/repeat.csv" | sed 1d | tr '\n' ' ')" "1,2,2,yes 2,4,2,no "
    check "between nodes and blocks" on_nodes '[node, block]'
    is "... they do" "$(counts)" "1:4 2:4 "
    is "... each node in each repetition being a group" "$(cut -d, -f1-4,7 "$folder/results/repeat.csv" | sed 1d | tr '\n' ' ')" "1,2,4,100.1,yes 2,2,4,100.5,yes "
else
    skip "between nodes" "no test bed"
fi
finish
