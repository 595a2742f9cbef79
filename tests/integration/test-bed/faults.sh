#!/bin/bash
# Each fault does what it says, to the node that it is done to and to no other, and can be undone.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"

bed_first 3
on() { local node=$1; shift; bed run ssh -F "$BED/ssh_config" -o ConnectTimeout="${patience:-10}" "$node" "$@"; }
boot_id() { on "$1" cat /proc/sys/kernel/random/boot_id; }
there() { eventually test -s "$1"; }

# ---- A cut wire
on node1 'for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 0.1; done' >"$scratch/numbers" & talking=$!
there "$scratch/numbers"
bed cut 1
patience=1 refuse "no login through a cut wire" 255 'timed out' on node1 true
check "the others are reached" on node2 true
bed mend 1
check "a mended wire lets logins through" on node1 true
check "a session that was cut goes on" wait $talking
check "and has lost nothing" test "$(tr '\n' ' ' <"$scratch/numbers")" = "1 2 3 4 5 6 7 8 9 10 "

# ---- A frozen node
on node2 'while :; do date +%s%N; sleep 0.02; done' >"$scratch/clock" & ticking=$!
ticks_after() { test "$(wc -l <"$scratch/clock")" -gt "$1"; }
check "a node's processes run" eventually ticks_after 3
bed freeze 2
patience=1 refuse "a frozen node lets nobody in" 255 'timed out' on node2 true
ticks=$(wc -l <"$scratch/clock")
patience=1 refuse "however long" 255 'timed out' on node2 true
check "its processes do nothing" test "$(wc -l <"$scratch/clock")" -eq "$ticks"
refuse "what needs a node that is up says so" 1 "'node2' is frozen; expected one that is up" bed refuse-logins 2
bed thaw 2
check "a thawed node lets logins in" on node2 true
check "and its processes go on" eventually ticks_after "$ticks"

# ---- Death
before=$(boot_id node2)
on node2 'touch /root/kept /tmp/lost'
bed crash 2
wait $ticking
is "a crash closes connections" $? 255
refuse "and later ones are refused" 255 'Connection refused' on node2 true
check "a reboot brings the node back" bed reboot node2
after=$(boot_id node2)
check "with another boot id" test -n "$before" -a -n "$after" -a "$before" != "$after"
check "its disk as it was" on node2 test -e /root/kept
check "and an empty /tmp" on node2 test ! -e /tmp/lost
check "its uptime starts again" test "$(on node2 'cut -d. -f1 /proc/uptime')" -lt 100

bed run ssh -F "$BED/ssh_config" -o ServerAliveInterval=1 -o ServerAliveCountMax=20 node3 'echo begun; sleep 60' >"$scratch/sleeping" & sleeping=$!
there "$scratch/sleeping"
bed power-off 3
check "of a power failure a connection hears nothing" kill -0 $sleeping
patience=1 refuse "and nobody is let in" 255 '(timed out|No route)' on node3 true
check "the node is off" test "$(bed status | sed -n 3p | cut -f 4)" = off
check "power-on brings it back" bed power-on 3
check "and lets logins in" on node3 true
wait $sleeping
check "which the old connection then hears" test $? -eq 255
refuse "power-on is for a node that is off" 1 "is up; expected one that is off" bed power-on 3

# ---- sshd
on node1 'echo begun; sleep 1; echo still here' >"$scratch/session" & session=$!
there "$scratch/session"
bed refuse-logins 1
refuse "without an sshd logins are refused" 255 'Connection refused' on node1 true
check "a session that there was goes on" wait $session
check "to its end" grep -q 'still here' "$scratch/session"
bed accept-logins 1
check "with an sshd logins are accepted" on node1 true

# ---- Full disks
bed fill 1-2,node3
full() { on node3 "echo x >$1/x" 2>&1 | grep -q 'No space left'; }
for folder in /root /tmp /dev/shm /var/tmp; do check "no room in $folder" full $folder; done
check "but the node lets logins in" on node3 true
bed empty all
check "room again" on node3 'for f in /root /tmp /dev/shm /var/tmp; do echo x >$f/x || exit 1; done'
bed down
finish
