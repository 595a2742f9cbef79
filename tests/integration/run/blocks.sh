#!/bin/bash
# Controls as factors of a campaign: what the plan says of blocks and states, and what is refused before a node is touched.
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
export ASSAY_PATH=$scratch/path
mkdir -p "$ASSAY_PATH/experiments/tiny" "$ASSAY_PATH/experiments/streaming"
cat >"$ASSAY_PATH/experiments/tiny/experiment.yaml" <<'E2'
name: tiny
factors: {n: {type: integer, minimum: 1, maximum: 100}, m: {type: integer, default: 2 * n}}
responses: {answer: {pattern: '([0-9]+)'}}
estimate: n
run: [echo, "{n}", "{control_turbo}", "{control_idle_states}", "{block}"]
E2
sed 's/, pattern.*//; s/name: tiny/name: streaming/; s/{pattern: .*}}/{unit: s}}/; s/^run: .*/run: {streamed: [kernel, "{control_turbo}"]}/' \
    "$ASSAY_PATH/experiments/tiny/experiment.yaml" >"$ASSAY_PATH/experiments/streaming/experiment.yaml"
plan() { "$ASSAY" run c.yaml --dry-run "$@"; }
states() { sed -n '/^The blocks:/,/^The first/p' out | grep -E '^ +[0-9]' | tr -s ' ' | sed 's/^ //'; }

cat >c.yaml <<'E2'
experiment: tiny
design:
  generate: factorial
  factors: {control.turbo: [on, off], n: [1, 2, 3], control.idle-states: [C1, 10us]}
  repetitions: 6
  blocks: 3
  seed: 4
E2
check "a plan with controls" sh -c '"$ASSAY" run c.yaml --dry-run >out'
check "... says how many blocks of how many states" grep -q '^The blocks: 12 of 4 states of the controls' out
check "... with the units and rows of each: a third of six repetitions of three rows" \
    equal "$(states | cut -d' ' -f1-3 | tr '\n' ';')" "$(for b in $(seq 12); do printf '%d 6 3;' "$b"; done)"
is "... every state in every round" \
    "$(states | cut -d' ' -f4- | awk '{print int((NR - 1) / 4), $0}' | sort -u | wc -l) $(states | cut -d' ' -f4- | sort | uniq -c | awk '{print $1}' | sort -u)" "12 3"
is "... none of them twice in a row" "$(states | cut -d' ' -f4- | uniq | wc -l)" 12
check "... and all in one line" grep -qE 'measure +12 rows x 6 repetitions = 72 units on .*, in 12 blocks, order random, seed 4' out
first=$(states | sed -n '1s/.*idle-states \([^,]*\)$/\1/p') turbo=$(states | sed -n '1s/.*turbo \(on\|off\),.*/\1/p')
check "the factors of the experiment come first, then the controls as they are written" \
    grep -qE '^ +order +row +repetition +n +m +control.turbo +control.idle-states$' out
check "a command has the state of its block" grep -qE "^ +echo [123] $turbo $first 1$" out
check "the time that is estimated is that of all repetitions" grep -q 'about 2 min' out
cp out once; check "the same seed gives the same blocks" sh -c '"$ASSAY" run c.yaml --dry-run >out && cmp once out'
check "another gives others" sh -c '"$ASSAY" run c.yaml --dry-run --seed 5 | grep -v seed >out; grep -v seed once | cmp -s - out; [ $? -eq 1 ]'

check "the same for programs" sh -c '"$ASSAY" run c.yaml --dry-run --json >json'
plan >out
is "... has each block" "$(grep -cE '^ +"block": [0-9]+,' json)" 12
is "... its positions" "$(sed -n 's/^ *"first": \([0-9]*\),/\1/p' json | tr '\n' ' ')" "1 7 13 19 25 31 37 43 49 55 61 67 "
is "... and its state, in the same order" \
    "$(sed -n 's/^ *"turbo": "\(.*\)",/turbo \1/p' json)" "$(states | grep -o 'turbo [a-z]*')"

sed -i '/blocks:/d' c.yaml
check "without 'blocks' each state comes once" sh -c '"$ASSAY" run c.yaml --dry-run >out && grep -q "^The blocks: 4 of 4 states" out'
is "... with all repetitions" "$(states | cut -d' ' -f2,3 | sort -u)" "18 3"

# Written as a table, in an order of one's own.
printf 'control.turbo,n,control.energy-preference\non,1,0\non,2,0\noff,3,0\non,4,0\n' >d.csv
sed -i 's/idle_states/energy_preference/' "$ASSAY_PATH/experiments/tiny/experiment.yaml"
printf 'experiment: tiny\ndesign: {file: d.csv, order: as-written, repetitions: 2}\n' >c.yaml
check "as written, the state changes where the table does" sh -c '"$ASSAY" run c.yaml --dry-run >out && grep -q "^The blocks: 5 of 2 states" out'
is "... and the end of the table is followed by its beginning" "$(states | cut -d' ' -f2,5 | tr '\n' ';')" \
    "2 on,;1 off,;3 on,;1 off,;1 on,;"
check "a preference that is a number stays a text" grep -q '"energy-preference": "0"' <(plan --json)

# A kernel takes rows of one state, and knows the state when it starts.
printf 'experiment: streaming\ndesign: {generate: uniform, rows: 4, factors: {n: [1, 9]}, cross: {control.turbo: [off]}}\n' >c.yaml
check "a streamed kernel's command may have the state" sh -c '"$ASSAY" run c.yaml --dry-run >out && grep -qE "^ +kernel off$" out'

printf 'experiment: streaming\ndesign: {generate: factorial, factors: {n: [1, 2]}}\n' >c.yaml
refuse "... but not where there is none" 2 "control_turbo" "$ASSAY" run c.yaml --dry-run
sed -i '/^run:/s/"{control.*"/"{block}"/' "$ASSAY_PATH/experiments/tiny/experiment.yaml"
sed -i 's/streaming/tiny/' c.yaml
check "a design without controls has no word of blocks" sh -c '"$ASSAY" run c.yaml --dry-run >out && ! grep -qi blocks out'
is "... but is one, for programs" "$(plan --json | grep -cE '^ +"block": 1,')" 1

# ---- Refusals
bad() { # bad NAME PATTERN: the design on stdin
    { echo 'experiment: tiny'; printf 'design: '; cat; } >c.yaml
    refuse "$1" 2 "$2" "$ASSAY" run c.yaml -o runs
}
bad "a control that is not there" "c.yaml:2:62: there is no control 'trubo'; did you mean 'control.turbo'" \
    <<<'{generate: factorial, factors: {n: 1, control.trubo: [on, off]}}'
bad "a frequency that no node could take" "c.yaml:2:9: row 2 of the design: 'control.frequency' is '2100', expected a frequency such as 2.1GHz" \
    <<<'{generate: factorial, factors: {n: 1, control.frequency: [2.1GHz, 2100]}}'
printf 'n,control.frequency\n1,2.1GHz\n1,fast\n' >f.csv
bad "... with the line of the table" "f.csv:3: 'control.frequency' is 'fast', expected a frequency" <<<'f.csv'
printf 'n,control.turbo\n1,on\n1,ON\n' >f.csv
bad "an upper case ON" "f.csv:3:3: 'control.turbo' is 'ON', expected one of on, off" <<<'f.csv'
bad "blocks without controls" "c.yaml:2:56: 'blocks' is the number of times that each state of the controls is visited, but the design has no column" \
    <<<'{generate: factorial, factors: {n: 1}, blocks: 1}'
for name in block control_turbo; do
    printf 'experiment:\n  name: x\n  run: echo\n  responses: {%s: {pattern: "(1)"}}\n' $name >c.yaml
    refuse "a response called '$name'" 2 "c.yaml:4:15: '$name' is already a name that every experiment has" "$ASSAY" run c.yaml -o runs
done
check "nothing was made" test ! -e runs
finish
