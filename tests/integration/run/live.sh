#!/bin/bash
# A run on a terminal, as people see it while it goes on: windows of two sizes, one that changes, colours, characters, and no
# terminal at all.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/integration/beat.sh"
command -v tmux >/dev/null || plan_skip "tmux is not there (package tmux)"
live=$ASSAY_BUILD/tests/benchmarks/live-run
cd "$scratch" || exit 1
export TMUX_TMPDIR=$scratch
unset NO_COLOR TMUX
terminal() { LC_ALL=C.UTF-8 tmux -u -f /dev/null -L assay "$@"; }
cleanup() { terminal kill-server 2>/dev/null; kill "${pids[@]}" 2>/dev/null; wait; }
pids=()
# open NAME WIDTH HEIGHT COMMAND: a window of that size, which stays open when COMMAND ends, by Ctrl-C as well
open() { terminal new-session -d -s "$1" -x "$2" -y "$3" "trap : INT; $4; echo \"exit code \$?\"; exec cat"; }
page() { terminal capture-pane -p -t "$1"; }
styled() { terminal capture-pane -e -p -t "$1"; }
# printed NAME PATTERN: also what has left the window at its top
printed() { terminal capture-pane -p -S - -t "$1" | grep -qE -- "$2"; }
shows() { page "$1" | grep -qE -- "$2" || { page "$1"; false; }; }
wide() { page "$1" | sed 's/°/o/g' | awk -v most="$2" 'length > most { wide = 1 } END { exit wide }'; }
resize() { terminal resize-window -t "$1" -x "$2" -y "$3"; }
# lines NAME: how many nodes have a line
lines() { page "$1" | grep -c '^node-'; }
has_lines() { equal "$(lines "$1")" "$2"; }

# ---- a run of one node
touch hold
campaign small local 1 2 1 3
open small 80 24 "$ASSAY run small.yaml -o runs"
eventually shows small '^units .* 75\.0 %, 3 of 4, 0 failed'
check "a run shows itself" shows small '^small  running for '
check "... the time left" shows small '^time left  '
check "... its phases with times, the last first" shows small '^phases     measure for .*s, warm-up [0-9.]+ '
check "... its node, with its last unit" shows small "^[^ ]+ +in +[^ ]+.* 3 *$"
check "... the best settings so far" eventually shows small '^1 +2 +0\.1 .* best'
check "... messages" shows small '^[0-9:]{8}  4 units: 4 rows'
check "... within the window" wide small 80
run=$(echo runs/small-*)
open watch 200 50 "$ASSAY watch $run"
eventually shows watch '^small  running for '
check "watch shows the same" shows watch '^units .* 75\.0 %, 3 of 4, 0 failed, 0 flagged'
terminal send-keys -t watch C-c
check "... until Ctrl-C" eventually shows watch "the run continues: 'assay watch $run' follows it again"
rm hold
check "the end is on the terminal: the archive's path" eventually shows small "^.*/$run.zip$"
check "... the folder and the messages" printed small "^run folder: .*/$run$"
check "... " printed small '^  4 units: 4 rows'
check "... the answer" eventually shows small '^1 .* best$'
check "... and the exit code" eventually shows small '^exit code 0$'
is "... nothing that draws is left" "$(pgrep -f "watch --screen -- .*$run" | wc -l)" 0

open after 80 24 "$ASSAY watch $run"
check "watch of a run that has ended prints the same" eventually shows after '^exit code 0$'
check "... the path and the answer" shows after "^$run.zip$"
check "... " shows after '^1 .* best$'

touch hold
open stopped 80 24 "$ASSAY run small.yaml -o runs"
eventually shows stopped '^units .* 75\.0 %, 3 of 4, 0 failed'
terminal send-keys -t stopped C-c
check "Ctrl-C ends a run that shows itself" eventually shows stopped '^exit code 4$'
rm hold

# ---- a run of many nodes, which is made up
"$live" many 256 100000 & pids+=($!)
eventually grep -qs '"results"' many/journal.jsonl
open many 80 24 "$ASSAY watch many"
check "nodes that do not fit are folded" eventually shows many '^all 256 nodes: 256 in, 0 away, 0 slow'
eventually has_lines many 14
check "... into those that fit" shows many '^\.\.\. and 242 more nodes$'
check "... with temperature, frequency and power" eventually shows many '^node-[0-9]+ +in +[0-9.]+ °C +2\.[0-9]+ GHz +[0-9.]+ k?W +[0-9]+'
first_is_flagged() { equal "$(page many | grep -m1 '^node-' | cut -d' ' -f1)" node-50; }
check "... those with flags first" eventually first_is_flagged
check "... within the window" wide many 80
resize many 200 50
check "a larger window has more of them" eventually has_lines many 40
check "... and the flags" eventually shows many '^node-50 .* load$'
resize many 60 10
check "a small one has what fits" eventually has_lines many 1
check "... within it" wide many 60
styled many | grep -q $'\033\\[1m'
report $? "there are colours"
open plain 80 24 "NO_COLOR=1 LC_ALL=C $ASSAY watch many"
eventually shows plain '^all 256 nodes: '
is "... none with NO_COLOR" "$(styled plain | grep -c $'\033\\[[0-9;]*m')" 0
check "... and ASCII alone in the C locale" eventually shows plain '^node-[0-9]+ +in +[0-9.]+ Cel '
is "... everywhere" "$(page plain | LC_ALL=C grep -c $'[\x80-\xff]')" 0
open dumb 80 24 "TERM=dumb $ASSAY watch many"
check "a terminal that cannot be drawn on has lines" eventually shows dumb '^run folder: many$'
"$ASSAY" watch many >out 2>err </dev/null & pids+=($!)
eventually grep -q ' of 1000000 units ' err
is "without a terminal there are plain lines" "$(grep -c $'\033' err out | paste -sd' ')" "err:0 out:0"
refuse "... and no screen" 2 "--screen needs a terminal" "$ASSAY" watch many --screen
kill "${pids[0]}"; wait "${pids[0]}" 2>/dev/null
check "a run whose engine is gone ends the screen" eventually shows many '^exit code 1$'
finish
