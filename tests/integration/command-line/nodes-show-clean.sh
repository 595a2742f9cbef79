#!/bin/bash
# assay nodes show: what sixteen nodes are, and who differs. assay nodes clean: agents that are left over.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
move_clock
bed_first 16 --names 'taurus-%'
all='taurus-[1-16]'
nodes() { # keeps what it prints for `said`
    bed run "$ASSAY" nodes "$@" >"$scratch/out"
}
said() { grep -qE -- "$1" "$scratch/out"; }
times() { [ "$(grep -cE -- "$2" "$scratch/out")" -eq "$1" ]; } # times COUNT PATTERN

# ---- show

check "shows all" nodes show -w "$all"
sed 's/^/# /' "$scratch/out"
check "names them" said '^nodes +taurus-\[1-16\]   \(16\)$'
check "what is common to all once" times 1 Linux
check "the run directories as one" said '^run directory +/[^ ]*-NODE$'
check "and how the clocks stand" said '^clock offset +[+-]0\.[0-9]{6} s, give or take 0\.[0-9]{6} s   taurus-[0-9]+$'
check "the topology that the nodes have" said '^topology +1 socket, 4 cores, 8 threads'
bed on 5 sh -c "echo other-name >/proc/sys/kernel/hostname"
check "shows one that differs" nodes show -w "$all"
check "the common value first" said '^host name +as listed   taurus-\[1-4,6-16\]$'
check "then who differs" said '^ +other-name   taurus-5$'
bed on 5 sh -c "echo taurus-5 >/proc/sys/kernel/hostname"
check "shows JSON" nodes show -w "$all" --json
check "of each" [ "$(jq '.nodes | map(select(.known and .threads > 0 and .memory_bytes > 0 and
    (.clock_offset_seconds | fabs) < 1 and .round_trip_seconds > 0)) | length' "$scratch/out")" = 16 ]
bed refuse-logins 7
refuse "one that cannot be reached is named" 1 'looking failed on 1 of 16 nodes: taurus-7: ' while_hurrying 'taurus-1 taurus-16' nodes show --timeout 1h -w "$all"
check "the others are shown" said '^nodes +taurus-\[1-6,8-16\]   \(15\)$'
bed accept-logins 7

# ---- clean

# Folders of agents that were killed with their guardians, among others that are not theirs to remove.
has_agents() { [ "$(bed on 3 pgrep -c -f -- "--attach|--serve")" = "$1" ]; } # has_agents COUNT
folder_of() { bed on 3 sh -c 'ls -d /tmp/assay-nodes-* 2>/dev/null'; }
bed run "$ASSAY" nodes run -w 'taurus-3' -- sleep 1000 >/dev/null 2>&1 &
eventually bed on 3 pgrep -x sleep >/dev/null
folder=$(folder_of)
bed on 3 sh -c 'mkdir -p /tmp/assay-mine /tmp/assay-other /tmp/outside && echo >/tmp/outside/.assay-agent && ln -s /tmp/outside /tmp/assay-link &&
    echo >/tmp/assay-other/.assay-agent && chown -R 1234 /tmp/assay-other'
check "what a live agent uses is not left over" nodes clean -w 'taurus-3' --dry-run
check "... and is not said to be" [ "$(grep -c 'that was killed' "$scratch/out")" = 0 ]
# Stopped first: who does not run does not see the other die, and leaves nothing in order.
bed on 3 sh -c 'pkill -STOP -f -- [-]-attach; pkill -KILL -f -- [-]-attach'
wait
eventually has_agents 0
check "a folder stays when an agent and its guardian are killed" test -n "$(folder_of)"
check "nodes show names it" nodes show -w 'taurus-[3-4]'
check "... and what removes it" said "left over by agents that were killed: $folder; 'assay nodes clean' removes this"
check "nodes clean finds it" nodes clean -w 'taurus-[3-4]' --dry-run
check "... and leaves it with --dry-run" said "^taurus-3: left over: $folder, the folder of a killed agent\$"
check "nodes clean removes it" nodes clean -w 'taurus-[3-4]'
check "... which is said" said "^taurus-3: removed: $folder, the folder of a killed agent\$"
check "... and nothing else" [ "$(bed on 3 sh -c 'cd /tmp; ls -d assay-* outside/.assay-agent')" = 'assay-link
assay-mine
assay-other
outside/.assay-agent' ]
bed on 3 sh -c 'rm -r /tmp/assay-mine /tmp/assay-other /tmp/assay-link /tmp/outside'

check "finds nothing where nothing is" nodes clean -w "$all"
check "and says so" said '^nothing is left over$'

sleeps() { # sleeps NODE: how many
    bed on "$1" pgrep -c -x sleep
}
has_sleeps() { [ "$(sleeps "$1")" = "$2" ]; } # has_sleeps NODE COUNT
engine() { pgrep -o -f "^$ASSAY nodes run .* -- sleep $1\$"; } # not its resolver of names, whose number may be lower
bed run "$ASSAY" nodes run -w 'taurus-[1-4]' -- sleep 1001 >/dev/null 2>&1 &
killed=$!
for node in 1 2 3 4; do eventually has_sleeps $node 1; done
bed run "$ASSAY" nodes run -w 'taurus-[4-5]' -- sleep 1002 >/dev/null 2>&1 &
used=$!
eventually has_sleeps 4 2
eventually has_sleeps 5 1
kill -9 "$(engine 1001)"
wait $killed

# An engine whose link broke a moment ago may be back.
check "what is alone for a moment is not ended" nodes clean -w 'taurus-[1-3]'
check "... which is said" times 3 ': left alone: .*, alone for .*; its engine may come back, --force ends it$'
check "... and it goes on" [ "$(sleeps 1)" = 1 ]
# One that does not answer: stopped.
bed on 1 pkill -STOP -f -- '--attach'
check "one that does not answer is not taken for one in use" nodes clean -w taurus-1
check "... and said to be what it is" \
    said '^taurus-1: left alone: the agent of session [0-9a-f]{16}, process [0-9]+, which does not answer; --force tries to end it$'
bed on 1 pkill -CONT -f -- '--attach'
advance 34s 1 2 3 4
check "lists what is left over" nodes clean -w "$all" --dry-run
sed 's/^/# /' "$scratch/out"
check "who it was" said '^taurus-1: left over: nodes@[^ ]+:[0-9]+, in /.*assay-nodes-[0-9a-f]+-taurus-1, since 20[0-9-]+T[0-9:]+Z, 1 command, alone for .*, would leave in '
check "all of them" times 4 ': left over: '
check "and what is in use" times 2 ': left alone: .* somebody is connected$'
check "but ends nothing" [ "$(sleeps 1) $(sleeps 4) $(sleeps 5)" = "1 2 1" ]
check "ends what is left over" nodes clean -w "$all"
check "each" times 4 '^taurus-[1-4]: ended: '
check "with its command, and not what is in use" [ "$(sleeps 1) $(sleeps 4) $(sleeps 5)" = "0 1 1" ]
check "and its folder" [ "$(bed on 2 sh -c 'ls -d /tmp/assay-nodes-* 2>/dev/null')" = "" ]
check "not even twice" nodes clean -w "$all"
check "unless it is told to" nodes clean -w 'taurus-5' --force
check "then that too" [ "$(sleeps 5)" = 0 ]
kill -INT "$(engine 1002)"
wait $used
check "who was cut off is told" [ $? -ne 0 ]
check "nothing is left" [ "$(sleeps 4)" = 0 ]
finish
