#!/bin/bash
# What goes wrong between an engine and its nodes, made on purpose against real sshd: each fault has to be told with the
# node's name, must not hang, must leave nothing on a node, and must not touch the other nodes.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
bed up 8 || plan_skip "no test bed here"
sanitized=no
grep -q '^CMAKE_BUILD_TYPE:.*=Sanitize' "$ASSAY_BUILD/CMakeCache.txt" && sanitized=yes

nodes() { bed run "$ASSAY" nodes "$@"; }
# Nothing of us is left on the nodes given: no agent, no run directory.
clean_nodes() {
    local node
    for node in "$@"; do
        ! bed on "$node" sh -c 'ps -eo args | grep "[a]ssay-agent\|[a]gent-[0-9a-f]\{64\}"; ls -d /tmp/assay-* 2>/dev/null | grep -v "/tmp/assay-0$"' |
            sed "s/^/# node $node: /" | grep . || return 1
    done
}
soon() { # soon SECONDS COMMAND...: it succeeds within so long
    local until=$((SECONDS + $1)); shift
    until "$@"; do [ $SECONDS -lt $until ] || return 1; sleep 0.2; done
}
# begun NODE NAME: the command that makes /tmp/NAME on it runs there; connecting takes a busy machine long.
begun() { for _ in $(seq 600); do bed on "$1" test -e "/tmp/$2" && return; sleep 0.1; done; }
numbers() { cmp -s <(seq "$2") "$1" || { echo "# $1: $(wc -l <"$1") lines of $2"; return 1; }; } # numbers FILE N

check "the bed answers" nodes run -w 'node[1-4]' -- true

# ---- the wire

# start_outage SECONDS NODE: a command on that node and the one before it, whose wire is cut for so long; in the
# background, as most of it is waiting.
start_outage() {
    local seconds=$1 node=$2 name
    name=$scratch/cut$seconds
    mkdir "$name"
    nodes run -w "node[$((node - 1))-$node]" -o "$name" -- sh -c \
        "touch /tmp/cut$seconds; i=0; while [ \$i -lt $((10 * (seconds + 8))) ]; do i=\$((i+1)); echo \$i; sleep 0.1; done" \
        >"$name/out" 2>"$name/err" &
    outage[seconds]=$!
    { begun "$node" "cut$seconds"; sleep 1; bed cut "$node"; sleep "$seconds"; bed mend "$node"; } &
}
end_outage() { # end_outage SECONDS NODE
    local seconds=$1 node
    wait "${outage[$seconds]}"
    report $? "a wire cut for $seconds s: every node's command ends well"
    for node in $(($2 - 1)) "$2"; do
        numbers "$scratch/cut$seconds/node$node.out" $((10 * (seconds + 8)))
        report $? "a wire cut for $seconds s: node$node's output is there, each byte once"
    done
}
outage=() long=60
[ $sanitized = yes ] && long=25 # it is given up after 15
if bed can cut; then
    start_outage 3 6
    start_outage $long 8
fi

# ---- nodes

if bed can freeze; then
    nodes run -w 'node[1-3]' --json -- sh -c 'touch /tmp/thaws; sleep 2; echo there' >"$scratch/out" 2>"$scratch/err" &
    pid=$!
    begun 3 thaws; bed freeze 3; sleep 25; bed thaw 3
    wait $pid
    report $? "a node that was frozen for 25 s: all commands end well"
    check "nothing is left on the nodes" soon 10 clean_nodes 1 2 3

    nodes run -w 'node[1-3]' --lease 8s -- sh -c 'touch /tmp/freezes; sleep 2; echo there' >"$scratch/out" 2>"$scratch/err" &
    pid=$!
    begun 3 freezes; bed freeze 3
    before=$SECONDS
    wait $pid; status=$?
    [ $status -eq 1 ] && grep -q 'node3' "$scratch/err" && [ $((SECONDS - before)) -lt 60 ]
    report $? "a node that stays frozen is given up when its lease is over, by name"
    grep -q 'node\[1-2\]' "$scratch/out" && grep -q there "$scratch/out"
    report $? "the other nodes' answers are there"
    bed thaw 3
    check "its agent has left once it can" soon 30 clean_nodes 1 2 3
fi
if bed can crash; then
    nodes run -w 'node[1-3]' -- sh -c 'touch /tmp/dies; sleep 4; echo there' >"$scratch/out" 2>"$scratch/err" &
    pid=$!
    begun 3 dies; bed reboot 3
    wait $pid; status=$?
    [ $status -eq 1 ] && grep -q 'node3' "$scratch/err" && grep -q there "$scratch/out"
    report $? "a node that dies and comes back without its agent is told at once"
    bed power-off 3
    before=$SECONDS
    nodes run -w 'node[1-3]' --timeout 3s -- echo there >"$scratch/out" 2>"$scratch/err"; status=$?
    [ $status -eq 1 ] && grep -q 'node3' "$scratch/err" && grep -q there "$scratch/out" && [ $((SECONDS - before)) -lt 20 ]
    report $? "a node that is off is told by name after the time-out, the others answer"
    bed power-on 3
fi
if bed can cut; then
    end_outage 3 6
    end_outage $long 8
    grep -q node8 "$scratch/cut$long/err"
    report $? "an outage of $long s is told with the node's name"
    check "nothing is left on the nodes" soon 10 clean_nodes 5 6 7 8
else
    skip "a wire cut for 3 s and for $long s" "no wire to cut here"
fi

# ---- sshd

if bed can nodes; then
    bed sshd 4 'MaxStartups 1:100:1'
    # A connection that says nothing takes the one place for a while.
    bed run timeout 2 bash -c 'exec 3<>/dev/tcp/node4/22; sleep 2' &
    sleep 0.5
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

nodes run -w 'node[1-2]' --limit 1MB -o "$scratch" --time-limit 3s -- yes endless >"$scratch/out" 2>"$scratch/err"; status=$?
[ $status -eq 3 ] && grep -q 'time limit' "$scratch/err" && [ "$(stat -c %s "$scratch/node1.out")" -eq 1000000 ]
report $? "a command that prints without end is cut at the limit and ended at its time"
grep -qi 'cut\|limit\|left out' "$scratch/out"
report $? "and that its output was cut is said"
before=$SECONDS
refuse "a command that ignores SIGTERM" 3 'time limit' \
    nodes run -w 'node[1-2]' --time-limit 1s -- sh -c 'trap "" TERM; while :; do sleep 0.1; done'
[ $((SECONDS - before)) -lt 15 ]; report $? "does not hang"
check "nothing is left on the nodes" soon 10 clean_nodes 1 2
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

rate=1000 seconds=10 count=16 # tests/benchmarks/fan-out has 64 nodes at 10,000 lines a second
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
    check "nothing is left on the nodes" soon 10 clean_nodes 1 $count
    bed down
else
    skip "$rate lines a second from $count nodes" "no nodes of their own here"
fi
finish
