#!/bin/bash
# However a bed ends, nothing is left of it: no process, namespace, mount or folder.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
bed_first 1
bed down
devices=$(ls /sys/class/net)
names=$(ls /run/netns 2>/dev/null)

# Notes which bed it is, while it is up.
note() { keeper=$(<"$BED/keeper") folder=$BED; }
# What is left of it, one a line. The bed's folder, whose name no other bed has, is in the mount tables of its nodes, its keeper and
# of what bed run has started: who has it in none is in none of the bed's namespaces. (The kernel gives the numbers
# of namespaces that are gone to new ones.) A zombie is nothing that runs, its parent has not looked yet.
left() {
    local process
    [ ! -e "$folder" ] || echo "folder $folder"
    for process in $(grep -lsF "$folder" /proc/[0-9]*/mountinfo | cut -d/ -f3); do
        echo "process $process $(tr '\0' ' ' <"/proc/$process/cmdline")"
    done 2>/dev/null
    [ "$(ls /sys/class/net)" = "$devices" ] || echo "network devices"
    [ "$(ls /run/netns 2>/dev/null)" = "$names" ] || echo "named network namespaces"
    true
}
none_left() { ! left | grep .; }
nothing_is_left() { eventually none_left; }

# ---- bed down
bed up 8 --machine intel-pstate || exit 1
note
check "the check sees what is up" test "$(left | wc -l)" -gt 8
bed run ssh -F "$BED/ssh_config" -o ControlMaster=yes -o ControlPath="$scratch/master" -o ControlPersist=yes node1 true
bed run ssh -F "$BED/ssh_config" node2 'setsid sleep 1000 >/dev/null 2>&1 </dev/null &'
bed freeze 3; bed cut 4; bed crash 6; bed power-off 7
check "down, with a master still connected, a daemon on a node, and nodes in all states" bed down
check "leaves nothing" nothing_is_left
refuse "a second down says so" 1 'there is no bed' bed down

# ---- The test is killed
bash -c '. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"; bed up 4 >&2; bed run sleep 1000 & echo "$BED"; sleep 1000' >"$scratch/folder" & test=$!
eventually test -s "$scratch/folder"
BED=$(<"$scratch/folder")
note
check "a bed of another process is up" test "$(left | wc -l)" -gt 4
kill -9 $test; wait $test 2>/dev/null
check "a bed whose test was killed leaves nothing" nothing_is_left

# ---- The test ends without a word
BED=$(bash -c '. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"; bed up 2 >&2; echo "$BED"') folder=$BED
check "a bed whose test has ended leaves nothing" nothing_is_left

# ---- The keeper is killed. In a folder of its own: other tests reap too.
mkdir "$scratch/beds"
TMPDIR=$scratch/beds bed up 4 --machine intel-pstate || exit 1
note
bed on 1 sh -c 'exec sleep 1000 </sys/devices/system/cpu/smt/control' & # a kernel file is open
bed run sleep 1000 & sleeper=$!
eventually sh -c "pgrep -fx 'sleep 1000' | grep -c . | grep 2"
kill -9 "$keeper"
no_nodes() { ! left | grep -v 'sleep 1000' | grep process; }
check "nodes die with their keeper" eventually no_nodes
check "the folder stays, and what the test has started" test "$(left | wc -l)" -eq 2
TMPDIR=$scratch/beds bed reap
wait $sleeper 2>/dev/null
check "reap leaves nothing" nothing_is_left

# ---- A bed that does not come up
TMPDIR=$scratch/beds refuse "a bed that cannot come up says why" 1 "node 'node[12]' did not start: sshd ended at once .*[Bb]adly formatted port" bed up 2 --sshd 'Port none'
check "and leaves nothing" test -z "$(ls "$scratch/beds")"

# ---- Many
bed up 128; note
check "128 nodes come and go" bed down
check "and leave nothing" nothing_is_left
finish
