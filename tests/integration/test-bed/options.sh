#!/bin/bash
# Beds that are not the plain one: a gateway, a user who is not root, folders that cannot be written, small disks.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
bed up 1 || exit 1
bed can nodes || plan_skip "nodes of their own need root"
bed down
on() { local node=$1; shift; bed run ssh -F "$BED/ssh_config" -o ConnectTimeout=10 "$node" "$@"; }

mkdir "$scratch/shared" && echo hello >"$scratch/shared/word"
check "a bed with a gateway comes up" bed up 3 --gateway front --names 'dahu-%.grenoble' --gateway-startups 2:100:2 \
    --user alice --shell /bin/dash --no-compiler --tmp-noexec --tmp-size 1m --host-key-each --share "$scratch/shared"
first=$BED
check "a node is reached through it, by name" test "$(on dahu-2.grenoble hostname)" = dahu-2.grenoble
check "and by its short name" test "$(on dahu-2 hostname)" = dahu-2.grenoble
refuse "the front end does not know the nodes" 255 'Could not resolve' bed run ssh -F "$BED/ssh_config" -J none dahu-2.grenoble true
refuse "and has no way to them" 255 'unreachable' bed run ssh -F "$BED/ssh_config" -J none 10.77.0.2 true
bed cut front
refuse "with the gateway cut there is no way" 255 'timed out' bed run ssh -F "$BED/ssh_config" -o ConnectTimeout=1 front true
bed mend front
check "mended, there is" on dahu-1.grenoble true
check "the user is no root and has a home" test "$(on dahu-1.grenoble 'id -un; pwd' | tr '\n' ' ')" = "alice /home/alice "
check "and the login shell of the option" test "$(on dahu-1.grenoble 'echo $0')" = dash
refuse "there is no compiler" 127 'not found' on dahu-1.grenoble cc --version
check "but there is one on this machine" cc --version
refuse "nothing runs in /tmp" 126 'Permission denied' on dahu-1.grenoble 'cp /bin/true /tmp && /tmp/true'
refuse "/tmp has 1 MB" 1 'No space left' on dahu-1.grenoble 'head -c 2000000 /dev/zero >/tmp/zeros'
check "each node has a host key of its own" test "$(cut -d' ' -f 3 "$BED/known_hosts" | sort -u | wc -l)" -eq 4
check "a shared folder is shared" test "$(on dahu-3.grenoble cat "$scratch/shared/word")" = hello

# A second bed of the same test, beside the first.
check "a second bed comes up" bed up 2 --home-read-only --disk-size 2m --sshd 'MaxSessions 1'
check "it is another one" test "$BED" != "$first"
refuse "a read-only home cannot be written" 1 'Read-only file system' on node1 'touch /root/file'
refuse "a small disk fills" 1 'No space left' on node1 'head -c 4000000 /dev/zero >/var/tmp/zeros'
check "sshd has the option's line" bed on node1 grep -qx 'MaxSessions 1' /etc/ssh/sshd_config
bed down
check "when it is down the first one is still up" env BED="$first" bash -c ". '$ASSAY_SOURCE/tests/test-bed/test-bed.sh'; bed on 1 true"
BED=$first bed down
check "--home-noexec keeps programs at home from running" bed up 1 --home-noexec
refuse "as the kernel says" 126 'Permission denied' on node1 'cp /bin/true . && ./true'
bed down

refuse "an option that there is not" 2 "'--colour' is no option of up" bed up 1 --colour red
refuse "no nodes" 2 "'0' is not a number of nodes; expected 1 to 1000" bed up 0
refuse "a pattern without a number" 2 "expected a host name with one %" bed up 1 --names node
refuse "an owner that there is not" 2 "expected the id of a process that runs" bed up 1 --owner 4194303
refuse "a line that sshd does not take" 1 "sshd ended at once" bed up 1 --sshd 'Nonsense yes'
finish
