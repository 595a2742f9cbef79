#!/bin/bash
# What goes wrong between an engine and its nodes, made on purpose against real sshd: each fault has to be told with the
# node's name, must not hang, must leave nothing on a node, and must not touch the other nodes.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
move_clock
bed up 8 || plan_skip "no test bed here"

nodes() { bed run "$ASSAY" nodes "$@"; }
# Nothing of us is left on the nodes given: no agent, no run directory.
clean_nodes() {
    local node
    for node in "$@"; do
        ! bed on "$node" sh -c 'ps -eo args | grep "[a]ssay-agent\|[a]gent-[0-9a-f]\{64\}"; ls -d /tmp/assay-* 2>/dev/null | grep -v "/tmp/assay-0$"' |
            sed "s/^/# node $node: /" | grep . || return 1
    done
}
begun() { bed on "$1" test -e "/tmp/$2"; } # begun NODE NAME: the command that makes /tmp/NAME on it runs there
has_ended() { ! kill -0 "$1" 2>/dev/null; }
numbers() { cmp -s <(seq "$2") "$1" || { echo "# $1: $(wc -l <"$1") lines of $2"; return 1; }; } # numbers FILE N

check "the bed answers" nodes run -w 'node[1-4]' -- true

# ---- the wire, and nodes that stand still

# outage NAME SECONDS NODE DO UNDO: it is DOne to the node for so long, while it and the one before it run a command that
# says 200 numbers, half of them later.
outage() {
    local name=$1 seconds=$2 node=$3 other=$(($3 - 1)) folder=$scratch/$4$2 i pid
    mkdir "$folder"
    nodes run -w "node[$other-$node]" -o "$folder" -- sh -c "seq 100; touch /tmp/$4; until [ -e /tmp/go ]; do sleep 0.05; done; seq 101 200" \
        >"$folder/out" 2>"$folder/err" &
    pid=$!
    for i in $node $other; do eventually begun "$i" "$4"; done
    bed "$4" "$node"
    for ((i = 0; i < seconds; i += 2)); do is_reachable "node$other"; advance 2s; done
    [ "$4" != cut ] || bed on "$node" touch /tmp/go
    bed "$5" "$node"
    for i in $node $other; do bed on "$i" touch /tmp/go; done
    hurry_beside "node$other" has_ended $pid
    wait $pid
    report $? "$name for $seconds s: every node's command ends well"
    for i in $node $other; do
        numbers "$folder/node$i.out" 200
        report $? "$name for $seconds s: node$i's output is there, each byte once"
    done
    check "nothing is left on the nodes" eventually clean_nodes $node $other
}
if bed can cut; then
    outage "a wire cut" 3 6 cut mend
    outage "a wire cut" 60 8 cut mend
    check "an outage of 60 s is told with the node's name" grep -q node8 "$scratch/cut60/err"
else
    skip "a wire cut for 3 s and for 60 s" "no wire to cut here"
fi
if bed can freeze; then
    outage "a node frozen" 25 3 freeze thaw
    bed on 3 rm /tmp/go

    nodes run -w 'node[1-3]' --lease 1h -- sh -c 'touch /tmp/freezes; until [ -e /tmp/go ]; do sleep 0.05; done; echo there' \
        >"$scratch/out" 2>"$scratch/err" &
    pid=$!
    eventually begun 3 freezes; bed freeze 3
    bed on 1 touch /tmp/go
    hurry_beside 'node1 node2' grep -q node3 "$scratch/err"
    advance 3601s
    wait $pid; status=$?
    [ $status -eq 1 ] && grep -q 'node3' "$scratch/err"
    report $? "a node that stays frozen is given up when its lease is over, by name"
    grep -q 'node\[1-2\]' "$scratch/out" && grep -q there "$scratch/out"
    report $? "the other nodes' answers are there"
    bed thaw 3
    # What the engine had sent before is heard when it is read, and the lease begins anew then.
    or_its_lease_is_over() { clean_nodes 1 2 3 && return; advance 3601s 3; return 1; }
    check "its agent has left once it can" eventually or_its_lease_is_over
fi
if bed can crash; then
    nodes run -w 'node[1-3]' -- sh -c 'touch /tmp/dies; until [ -e /tmp/goes ]; do sleep 0.05; done; echo there' >"$scratch/out" 2>"$scratch/err" &
    pid=$!
    eventually begun 3 dies; bed reboot 3
    for node in 1 2; do bed on $node touch /tmp/goes; done
    wait $pid; status=$?
    [ $status -eq 1 ] && grep -q 'node3' "$scratch/err" && grep -q there "$scratch/out"
    report $? "a node that dies and comes back without its agent is told at once"
    bed power-off 3
    nodes run -w 'node[1-3]' --timeout 20s -- echo there >"$scratch/out" 2>"$scratch/err" &
    pid=$!
    hurry_beside 'node1 node2' has_ended $pid
    wait $pid; status=$?
    [ $status -eq 1 ] && grep -q 'node3' "$scratch/err" && grep -q there "$scratch/out"
    report $? "a node that is off is told by name after the time-out, the others answer"
    bed power-on 3
    eventually is_reachable node3
fi

# ---- sshd

if bed can nodes; then
    bed sshd 4 'MaxStartups 1:100:1'
    # A connection that says nothing takes the one place, until one of ours has been refused.
    bed run bash -c 'exec 3<>/dev/tcp/node4/22; read -r _ <&3; touch "$0/held"; until [ -e "$0/release" ]; do sleep 0.05; done' "$scratch" &
    eventually test -e "$scratch/held"
    { eventually grep -q "past MaxStartups" "$BED/log/node4"; touch "$scratch/release"; } &
    check "an sshd beyond its MaxStartups is tried again" nodes run -w 'node[1-4]' -- true
    wait
    bed sshd 4
else
    skip "an sshd beyond its MaxStartups" "one sshd for all nodes"
fi
ssh-keygen -q -t ed25519 -N '' -f "$scratch/wrong"
sed '/IdentityFile/d' "$BED/ssh_config" >"$scratch/config"
refuse "a wrong key" 1 "node1.*(log ?in|refused|denied|publickey)" \
    bed run env HOME="$scratch" "$ASSAY" nodes run -w node1 -F "$scratch/config" -i "$scratch/wrong" -- true
if bed can new-host-key; then
    bed new-host-key 2
    nodes run -w 'node[1-3]' -- echo there >"$scratch/out" 2>"$scratch/err"; status=$?
    # Without root, node2's sshd is everybody's.
    [ $status -eq 1 ] && grep -Eq 'node(2|\[1-3\]).*host key' "$scratch/err" && grep -q 'SHA256:' "$scratch/err" &&
        { ! bed can nodes 2>/dev/null || grep -q there "$scratch/out"; }
    report $? "a changed host key is refused, with its fingerprint; the others answer"
    refuse "a changed host key is refused though new ones are accepted" 1 "node2.*host key" \
        nodes run -w node2 --accept-new "$scratch/accepted" -- true
    refuse "an unknown host key" 1 "node2.*SHA256:" nodes run -w node2 --known-hosts /dev/null -- true
    check "an unknown host key, accepted" nodes run -w node2 --known-hosts /dev/null --accept-new "$scratch/accepted" -- true
    check "and then expected" nodes run -w node2 --known-hosts "$scratch/accepted" -- true
    bed down
    bed up 4
fi

# ---- programs

is_full() { [ "$(stat -c %s "$scratch/$1.out")" -eq 1000000 ]; }
{ eventually is_full node1; eventually is_full node2; advance 101s 1 2; } &
nodes run -w 'node[1-2]' --limit 1MB -o "$scratch" --time-limit 100s -- yes endless >"$scratch/out" 2>"$scratch/err"; status=$?
[ $status -eq 3 ] && grep -q 'time limit' "$scratch/err" && [ "$(stat -c %s "$scratch/node1.out")" -eq 1000000 ]
report $? "a command that prints without end is cut at the limit and ended at its time"
grep -qi 'cut\|limit\|left out' "$scratch/out"
report $? "and that its output was cut is said"
refuse "a command that ignores SIGTERM is ended too" 3 'time limit' \
    nodes run -w 'node[1-2]' --time-limit 1s -- sh -c 'trap "" TERM; while :; do sleep 0.1; done'
check "nothing is left on the nodes" eventually clean_nodes 1 2
bed down

# ---- disks

if bed up 2 --home-read-only --tmp-noexec && bed can disks; then
    check "a home that is read-only and a /tmp that is noexec" nodes run -w 'node[1-2]' -- true
    bed down
    bed up 2
    bed fill all
    nodes run -w 'node[1-2]' -- true >"$scratch/out" 2>"$scratch/err"; status=$?
    { [ $status -eq 0 ] || { [ $status -eq 1 ] && grep -q 'node' "$scratch/err" && grep -qi 'no space\|disk' "$scratch/err"; }; }
    report $? "disks that are full: it works elsewhere, or the failure says so"
    bed empty all
    check "and when there is room again it works" nodes run -w 'node[1-2]' -- true
    dd if=/dev/zero of="$scratch/zeros" bs=1M count=8 2>/dev/null
    bed fill 2 /tmp
    nodes put -w 'node[1-2]' "$scratch/zeros" /tmp/zeros >"$scratch/out" 2>"$scratch/err"; status=$?
    [ $status -eq 1 ] && grep -qi 'node2.*no space' "$scratch/err"; report $? "a disk that fills up while a file comes is named"
    is "... the other node has its file" "$(bed on 1 stat -c %s /tmp/zeros)" 8388608
    is "... and no half of it is left" "$(bed on 2 sh -c 'ls -A /tmp | grep -c zeros')" 0
    bed down
else
    skip "disks" "no disks of their own here"
fi

# ---- much at once

rate=1000 seconds=2 count=16 # tests/benchmarks/fan-out has 64 nodes at 10,000 lines a second
if bed up $count && bed can nodes; then
    "${CC:-cc}" -O2 -static -o "$scratch/lines" "$(dirname "$0")/lines.c" || "${CC:-cc}" -O2 -o "$scratch/lines" "$(dirname "$0")/lines.c"
    check "a program is put on $count nodes" nodes put -w "node[1-$count]" "$scratch/lines" /root/lines
    mkdir "$scratch/much"
    check "$rate lines a second for $seconds s from $count nodes" \
        nodes run -w "node[1-$count]" -o "$scratch/much" -- /root/lines $rate $seconds
    bad=0
    for ((node = 1; node <= count; node++)); do
        cmp -s <(seq $((rate * seconds))) "$scratch/much/node$node.out" || { bad=$((bad + 1)); echo "# node$node: $(wc -l <"$scratch/much/node$node.out")"; }
    done
    [ $bad -eq 0 ]
    report $? "every line of every node is there, once and in order"
    check "nothing is left on the nodes" eventually clean_nodes 1 $count
    bed down
else
    skip "$rate lines a second from $count nodes" "no nodes of their own here"
fi
finish
