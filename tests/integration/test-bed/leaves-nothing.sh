#!/bin/bash
# However a bed ends, nothing is left of it: no process, namespace, mount or folder. And how fast beds come and go.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
[ "$(id -u)" -eq 0 ] || plan_skip "nodes with namespaces need root"
milliseconds() { echo $(($(date +%s%N) / 1000000)); }
devices=$(ls /sys/class/net)
names=$(ls /run/netns 2>/dev/null)

# Notes what the bed holds: its namespaces and its processes, while it is up.
note() {
    local process
    keeper=$(<"$BED/keeper") folder=$BED
    : >"$scratch/namespaces"
    for process in $keeper $(bed process all); do
        readlink "/proc/$process"/ns/{net,mnt,pid,uts,ipc,time} >>"$scratch/namespaces"
    done
    # But for what the front end shares with this machine.
    readlink /proc/$$/ns/{net,mnt,pid,uts,ipc,time} | grep -vxFf - "$scratch/namespaces" | sort -u >"$scratch/own"
}
# What is left of it, one a line. A zombie is nothing that runs, its parent has not looked yet: it has no namespaces.
left() {
    local process
    [ ! -e "$folder" ] || echo "folder $folder"
    for process in $({
        stat -c '%N' /proc/[0-9]*/ns/* | grep -F "$(sed "s/.*/'&'/" "$scratch/own")"
        grep -lF "$folder/" /proc/[0-9]*/mounts
    } 2>/dev/null | cut -d/ -f3 | sort -u); do
        echo "process $process $(tr '\0' ' ' <"/proc/$process/cmdline")"
    done 2>/dev/null
    [ "$(ls /sys/class/net)" = "$devices" ] || echo "network devices"
    [ "$(ls /run/netns 2>/dev/null)" = "$names" ] || echo "named network namespaces"
    true
}
nothing_is_left() { # within 10 s
    local end=$((SECONDS + 10)) found
    while found=$(left); [ -n "$found" ]; do
        [ $SECONDS -lt $end ] || { echo "$found" >&2; return 1; }
        sleep 0.05
    done
}

# ---- bed down
bed up 8 || exit 1
note
check "the check sees what is up" test "$(left | wc -l)" -gt 8
bed run ssh -F "$BED/ssh_config" -o ControlMaster=yes -o ControlPath="$scratch/master" -o ControlPersist=yes node1 true
bed run ssh -F "$BED/ssh_config" node2 'setsid sleep 1000 >/dev/null 2>&1 </dev/null &'
bed freeze 3; bed cut 4; bed delay 5 10; bed crash 6; bed power-off 7
check "down, with a master still connected, a daemon on a node, and nodes in all states" bed down
check "leaves nothing" nothing_is_left
refuse "a second down says so" 1 'there is no bed' bed down

# ---- The test is killed
bash -c '. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"; bed up 4 >&2; bed run sleep 1000 & echo "$BED"; sleep 1000' >"$scratch/folder" & test=$!
for ((i = 0; i < 200; i++)); do [ -s "$scratch/folder" ] && break; sleep 0.05; done
BED=$(<"$scratch/folder")
note
check "a bed of another process is up" test "$(left | wc -l)" -gt 4
kill -9 $test; wait $test 2>/dev/null
check "a bed whose test was killed leaves nothing" nothing_is_left

# ---- The test ends without a word
BED=$(bash -c '. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"; bed up 2 >&2; echo "$BED"') folder=$BED
check "a bed whose test has ended leaves nothing" nothing_is_left

# ---- The keeper is killed
bed up 4 || exit 1
note
bed run sleep 1000 & sleeper=$!
sleep 0.2
kill -9 "$keeper"
wait_for_nodes() {
    for ((i = 0; i < 200; i++)); do left | grep -v 'sleep 1000' | grep -q process || return 0; sleep 0.05; done
    left >&2; return 1
}
check "nodes die with their keeper" wait_for_nodes
check "the folder stays, and what the test has started" test "$(left | wc -l)" -eq 2
bed reap
wait $sleeper 2>/dev/null
check "reap leaves nothing" nothing_is_left

# ---- A bed that does not come up
refuse "a bed that cannot come up says why" 1 "node 'node[12]' did not start: sshd ended at once .*[Bb]adly formatted port" bed up 2 --sshd 'Port none'
check "and leaves no folder" test -z "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'assay-bed.*' -newer "$scratch/folder" ! -newer /proc/self -user root -exec sh -c 'flock -n "$1/lock" true' sh {} \; -print)"

# ---- How fast
for count in 4 16 64 128; do
    start=$(milliseconds); bed up $count || break
    up=$(($(milliseconds) - start)); note
    start=$(milliseconds); bed down; down=$(($(milliseconds) - start))
    echo "# $count nodes: up in $up ms, down in $down ms"
    [ $count -ne 64 ] || check "64 nodes are up within 10 s" test $up -lt 10000
done
check "128 nodes come and go" test "$count" -eq 128
check "and leave nothing" nothing_is_left
finish
