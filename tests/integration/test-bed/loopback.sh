#!/bin/bash
# Without root: one sshd on loopback with the names of many nodes, by a user who may do nothing else.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"

# Root tests it as a user that exists in a mount namespace of this script only.
if [ "$(id -u)" -eq 0 ] && [ -z "${ASSAY_TEST_USER:-}" ]; then
    { cat /etc/passwd; echo "tester:x:64999:64999::$scratch:/bin/bash"; } >"$scratch/passwd"
    export ASSAY_TEST_USER=yes passwd="$scratch/passwd" script=$0
    chmod 755 "$scratch"
    mkdir -m 777 "$scratch/tmp"
    program=$(bed_program) || exit 1
    mkdir -p "$scratch/build/tests/test-bed"
    cp "$program" "$scratch/build/tests/test-bed/bed"
    part() { # part NAME COMMAND...: this script again, as one check of this one
        local name=$1; shift
        "$@" 2>&1 | sed 's/^/#   /'; report "${PIPESTATUS[0]}" "$name"
    }
    part "a user who is not root" env ASSAY_BUILD="$scratch/build" TMPDIR="$scratch/tmp" HOME="$scratch" unshare --mount \
        --propagation private bash -c 'mount --bind "$passwd" /etc/passwd &&
            exec setpriv --reuid=64999 --regid=64999 --clear-groups bash "$script"'
    part "root where no namespaces may be made" env ASSAY_TEST_USER=root setpriv --bounding-set=-sys_admin \
        --inh-caps=-sys_admin bash "$script"
    finish
fi

# Root in a place where no namespaces may be made.
if [ "${ASSAY_TEST_USER:-}" = root ]; then
    bed up 2 2>"$scratch/said" || { cat "$scratch/said" >&2; exit 1; }
    check "root without namespaces is told" grep -q 'no namespaces may be made here: one sshd on loopback' "$scratch/said"
    check "and gets a bed on loopback" bed run ssh -F "$BED/ssh_config" node2 true
    finish
fi

on() { local node=$1; shift; bed run ssh -F "$BED/ssh_config" -o ConnectTimeout=10 "$node" "$@"; }
bed up 4 --names 'dahu-%.grenoble' 2>"$scratch/said" || { cat "$scratch/said" >&2; exit 1; }
check "it says aloud that there is no root, and what is missing" grep -q 'not root: one sshd on loopback' "$scratch/said"
check "all names let logins in" on dahu-1.grenoble true
check "the last one too" test "$(on dahu-4.grenoble id -u)" = "$(id -u)"
check "HOME over ssh is a folder of the bed" test "$(on dahu-2.grenoble 'echo $HOME')" = "$BED/remote-home"
for feature in nodes names sys cut freeze crash delay; do refuse "can says that there is no $feature" 3 'needs root' bed can $feature; done
for feature in refuse-logins accept-logins sshd new-host-key; do check "can says that there is $feature" bed can $feature; done
refuse "what is not there fails" 1 "'cut' is not here" bed cut 1
bed refuse-logins 1
refuse "logins can be refused" 255 'Connection refused' on dahu-1.grenoble true
bed accept-logins 1
check "and accepted" on dahu-1.grenoble true
bed new-host-key 1
refuse "another host key is noticed" 255 'HOST IDENTIFICATION HAS CHANGED' on dahu-1.grenoble true
folder=$BED
bed run ssh -F "$BED/ssh_config" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null dahu-3.grenoble \
    'setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo $!' >"$scratch/daemon"
daemon=$(<"$scratch/daemon")
check "a login has left a daemon" kill -0 "$daemon"
bed down
gone() { ! kill -0 "$1"; }
check "down ends it" eventually gone "$daemon"
check "and leaves no folder" test ! -e "$folder"
finish
