#!/bin/bash
# A bed of 16 nodes: each is reached over ssh and is a machine of its own, and nothing of what it writes reaches this one.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"

nodes=16
bed up $nodes --names 'dahu-%.grenoble' || exit 1
bed can nodes || plan_skip "nodes of their own need root"
on() { local node=$1; shift; bed run ssh -F "$BED/ssh_config" -o ConnectTimeout=10 "$node" "$@"; }

# What each says of itself, one file a node.
ask() {
    local question='hostname; cat /proc/sys/kernel/random/boot_id /etc/machine-id; cut -d. -f1 /proc/uptime; nproc --all
        cat /sys/devices/system/cpu/online /sys/devices/system/cpu/cpu5/topology/thread_siblings_list; pwd; ls -A / | tr "\n" " "'
    mkdir -p "$scratch/said"
    for name in $(<"$BED/nodes"); do on "$name" "$question" >"$scratch/said/$name" & done
    wait
    [ "$(find "$scratch/said" -size +0 | grep -c grenoble)" -eq $nodes ]
}
check "each answers over ssh" ask
names() { for name in $(<"$BED/nodes"); do [ "$(head -1 "$scratch/said/$name")" = "$name" ] || return 1; done; }
check "each has the host name that it was reached by" names
distinct() { [ "$(sed -sn "$1p" "$scratch"/said/* | sort -u | wc -l)" -eq $nodes ]; }
check "each has a boot id of its own" distinct 2
check "each has a machine id of its own" distinct 3
uptimes() { # node N has been up for N times 1000 s
    for i in 1 $nodes; do
        local up; up=$(sed -n 4p "$scratch/said/dahu-$i.grenoble")
        [ "$up" -ge $((i * 1000)) ] && [ "$up" -lt $((i * 1000 + 100)) ] || return 1
    done
}
check "each has a monotonic clock of its own" uptimes
check "each has 8 processors with 2 threads a core" test "$(sed -sn '6,7p' "$scratch"/said/* | sort | uniq -c | tr -s ' \n' ' ')" = " $nodes 0-7 $nodes 1,5 "
check "none has this machine's folders" test -z "$(grep -hEo "(^| )(work|srv/.*|lost\+found) " "$scratch"/said/*)"

shells() { on dahu-3 lscpu >"$scratch/lscpu" && grep -Eq 'Thread\(s\) per core: +2' "$scratch/lscpu"; }
check "lscpu reads the made-up /sys" shells
check "nodes reach each other" on dahu-1 'exec 3<>/dev/tcp/dahu-2.grenoble/22'

# Writing: to the node, not to the others, not to this machine.
controls="/sys/devices/system/cpu/smt/control /sys/devices/system/cpu/intel_pstate/no_turbo
    /sys/devices/system/cpu/cpu1/online /sys/kernel/mm/transparent_hugepage/enabled /proc/sys/kernel/numa_balancing
    /proc/sys/kernel/randomize_va_space /proc/sys/vm/swappiness /sys/bus/cpu/devices/cpu1/online"
ours() { for file in $controls; do cat "$file" 2>/dev/null || echo none; done; }
before=$(ours)
writes() {
    on dahu-3 "for f in $(echo $controls); do echo 0 >\$f; done 2>/dev/null
        echo 0 >/sys/class/net/lo/mtu; echo 1 >/proc/sys/net/ipv4/ip_default_ttl; touch /etc/of-node /usr/of-node /var/of-node
        grep -L '^0\$' $(echo $controls) 2>/dev/null" 2>/dev/null | grep -v /bus/ >"$scratch/unwritten"
    [ ! -s "$scratch/unwritten" ]
}
check "a node takes what is written to its controls" writes
check "this machine's controls are as before" test "$(ours)" = "$before"
check "and so are its files" test ! -e /etc/of-node -a ! -e /usr/of-node -a ! -e /var/of-node
check "another node's control is as before" test "$(on dahu-4 cat /sys/devices/system/cpu/smt/control)" = on
check "what was written is there at the next login" test "$(on dahu-3 cat /sys/devices/system/cpu/smt/control)" = 0
check "no node has this machine's other devices" test -z "$(on dahu-1 'ls /dev' | grep -E '^(vd|sd|nvme|loop|mem|kvm)')"
check "its own network devices are true" test "$(on dahu-1 'ls /sys/class/net | tr "\n" " "')" = "eth0 lo "

check "bed on enters a node without ssh" test "$(bed on 7 hostname)" = dahu-7.grenoble
bed on 7 sh -c 'exit 7'
check "and gives the exit status" test $? -eq 7
check "bed run keeps the working directory" test "$(cd / && bed run pwd)" = /
check "status lists the nodes" test "$(bed status | cut -f 2,4 | tail -1)" = "$(printf 'dahu-16.grenoble\tup')"
refuse "a node that there is not is named" 1 "'17' is no node of this bed; expected numbers up to 16" bed cut 17
refuse "so is a command" 1 "'melt' is no command" bed melt 1
refuse "and a feature" 3 "'fly' is nothing" bed can fly
check "a real feature is one" bed can cut
bed down
refuse "without a bed there is nothing to run on" 1 "there is no bed" bed run true
finish
