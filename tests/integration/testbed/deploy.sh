#!/bin/bash
# A fresh system for every run, on this machine and on nodes over ssh: what a run writes is seen by no other and not by the
# node; nothing of it stays, whatever was killed; what is no image is refused.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
. "$ASSAY_SOURCE/tests/faults/killed-runs.sh"
[ "$(id -u)" -eq 0 ] || plan_skip "deploying a system needs root"
unshare --mount true 2>/dev/null || plan_skip "no mounts may be made here"
busybox=$(command -v busybox) || plan_skip "no busybox (busybox-static)"
agent=$(dirname "$ASSAY")/../libexec/assay/assay-agent
! readelf -l "$agent" | grep -q INTERP || plan_skip "an agent that is not static, as one with sanitizers, runs in no other system"
bed_first 2 --names 'node-%' --tmp-size 64m --disk-size 64m
cd "$scratch" || exit
chmod 755 "$scratch"
export HOME=$scratch/home # whose cache gets the image
mkdir -p home system/{bin,etc,tmp,dev,usr/lib}

# ---- an image: a shell, a name, and what only tar has a word for
cp "$busybox" system/bin/busybox
for name in $("$busybox" --list); do [ "$name" = busybox ] || ln -s busybox "system/bin/$name"; done
printf 'PRETTY_NAME="Tiny 1 (test)"\nID=tiny\n' >system/usr/lib/os-release
ln -s ../usr/lib/os-release system/etc/os-release
ln system/usr/lib/os-release system/etc/hard
ln -s /nowhere/at-all system/etc/hosts # where the node's is to be
mknod system/dev/null c 1 3
touch system/etc/owned && chown 12:34 system/etc/owned && chmod 4711 system/etc/owned
mkdir -p "system/$(printf 'long%.0s' {1..30})/$(printf 'name%.0s' {1..30})" && touch "$_/ő"
pack() { bsdtar --format pax -C "$1" -cf - . | gzip >"$2"; } # pack FOLDER FILE
bsdtar --zstd -C system -cf system.tar.zst .
hash=$(sha256sum system.tar.zst | cut -c1-64)

# campaign FILE TESTBED [COMMAND]: two units a node, which write into /; setup sees what another run wrote.
campaign() {
    local look='cat /etc/os-release; stat -c "owned %u %g %a" /etc/owned; cat /etc/hard >/dev/null && ls -d /long*/name*/*; echo pid 1 $(ls -d /proc/1); echo answer $n; echo x >/trace; echo x >/etc/hosts-trace'
    cat >"$1" <<END
name: fresh
experiment:
  name: fresh
  factors: {n: {type: integer}}
  setup: [[sh, -c, 'test ! -e /trace && echo x >/dev/shm/assay-trace']]
  run: {placement: node, command: [sh, -c, '${3:-$look}']}
  responses: {answer: {pattern: 'answer ([0-9]+)'}}
design: {file: two.csv, seed: 1}
probes: none
testbed: $2
END
}
printf 'n\n1\n2\n' >two.csv
json_of() { "$ASSAY" archive cat "$1" "$2"; }
mounts_of() { bed on "$1" sh -c 'cat /proc/[0-9]*/mounts 2>/dev/null | grep -c "^assay /"'; }
no_mounts() { [ "$(mounts_of "$1")" = 0 ]; }
no_folders() { [ -z "$(bed on "$1" sh -c 'ls -d /tmp/assay-* 2>/dev/null')" ]; }
nothing_here() { ! ls -d "$TMPDIR"/assay-* && ! cat /proc/[0-9]*/mounts 2>/dev/null | grep "^assay /"; }

# ---- on this machine
export TMPDIR=$scratch/tmp; mkdir tmp
campaign here.yaml '{local: , deploy: system.tar.zst}'
"$ASSAY" run here.yaml --dry-run >plan
check "the plan names the image and its hash" grep -qx "system       fresh on each node, of $scratch/system.tar.zst, SHA-256 $hash" plan
check "a campaign runs in a fresh system here" "$ASSAY" run here.yaml -o here
archive=$(echo here/*.zip)
is "each unit has its answer" "$(json_of "$archive" results/results.csv | tail -n +2 | cut -d, -f11 | sort | tr '\n' ' ')" "1 2 "
unit=$("$ASSAY" archive list "$archive" | grep -o 'results/raw/1-[^ ]*' | head -1)
json_of "$archive" "$unit" >unit
check "units are in that system" grep -qx 'PRETTY_NAME="Tiny 1 (test)"' unit
check "... with owners and modes" grep -qx 'owned 12 34 4711' unit
check "... with names of any length and letters" grep -q 'namename/ő$' unit
check "... and the node's processes" grep -qx 'pid 1 /proc/1' unit
check "what nodes are inspected for is within" grep -q 'Tiny 1' <(json_of "$archive" nodes/*/raw/os-release 2>/dev/null || json_of "$archive" "nodes/$(hostname)/raw/os-release")
check "the archive has the image's hash" grep -q "\"sha256\": *\"$hash\"" <(json_of "$archive" campaign.resolved.json)
check "... and so has the journal" grep -q "fresh system from the image '.*system.tar.zst' (SHA-256 $hash" <(json_of "$archive" journal.jsonl)
check "the machine has no trace" test ! -e /trace -a ! -e /etc/hosts-trace -a ! -e /dev/shm/assay-trace
check "nothing stays but the image" nothing_here
is "... which is there once" "$(ls home/.cache/assay)" "image-$hash"
check "and neither has a second run" "$ASSAY" run here.yaml -o again
is "the image is as it was" "$(ls home/.cache/assay/image-*/)" "$(ls system)"

# ---- on nodes
ssh="ssh-config: $BED/ssh_config"
there() { bed run env HOME="$BED/home" TMPDIR=/tmp "$ASSAY" "$@"; }
campaign nodes.yaml "{hosts: 'node-[1-2]', deploy: {image: system.tar.zst, sha256: $hash}, $ssh}"
check "a campaign runs in fresh systems on nodes" there run nodes.yaml -o nodes
archive=$(echo nodes/*.zip)
is "each unit on each node" "$(json_of "$archive" results/results.csv | tail -n +2 | wc -l)" 4
for node in node-1 node-2; do
    check "$node was inspected within" grep -q 'Tiny 1' <(json_of "$archive" nodes/$node/raw/os-release)
    check "... has no trace" bed on $node test ! -e /trace -a ! -e /etc/hosts-trace -a ! -e /dev/shm/assay-trace
    check "... and no mounts" no_mounts $node
    check "... and no folders" eventually no_folders $node
done
check "another run finds nothing of it" there run nodes.yaml -o nodes-again
is "for which the image was there" "$(bed on node-1 sh -c 'ls -d /root/.cache/assay/image-* | wc -l')" 1

# ---- a link that breaks, and agents that are killed, while units wait for a file of the node's
waiting='touch /dev/begun; until test -e /dev/go; do :; done; echo answer $n'
campaign wait.yaml "{hosts: node-1, deploy: system.tar.zst, lease: 1 h, $ssh}" "$waiting"
begun() { bed on node-1 test -e /dev/begun; }
sessions() { bed on node-1 ps -eo pid=,args= | awk '/sshd: root@notty/ && !/awk/ {print $1}'; }
cut_link() { local ids; ids=$(sessions) && [ -n "$ids" ] && bed on node-1 kill $ids; }
ends_as() { wait "$shell_job"; local status=$?; [ "$status" -eq "$1" ] || { echo "exit $status"; cat "$scratch/engine.err"; return 1; }; }
resumed() { grep -q '"event":"link-resumed"' cut/*/journal.jsonl; }
start_engine "$scratch/engine" run wait.yaml -o cut --json
check "a unit waits" eventually begun
check "the link is cut" cut_link
check "and found again" eventually resumed
bed on node-1 touch /dev/go
check "the run ends well" ends_as 0
bed on node-1 rm -f /dev/go /dev/begun

turbo=/sys/devices/system/cpu/intel_pstate/no_turbo
echo 'controls: {turbo: off, proof: none}' >>wait.yaml
is "before, the node has its turbo" "$(bed on node-1 cat $turbo)" 0
start_engine "$scratch/engine" run wait.yaml -o killed --json
check "a unit waits" eventually begun
is "controls are the node's" "$(bed on node-1 cat $turbo)" 1
check "... and what they were is known outside" test -n "$(bed on node-1 sh -c 'ls /run/assay')"
is "in mounts of its own" "$(no_mounts node-1 && echo none)" ""
# All are stopped first: a guardian that runs when its agent is killed puts the node back before it is killed too.
bed on node-1 sh -c 'ids=$(pgrep -f "agent-[0-9a-f]{64}.*--image|[u]ntil test -e /dev/go"); kill -STOP $ids; kill -KILL $ids'
check "agent, guardian and unit are killed" eventually no_mounts node-1
check "the run ends as failed" ends_as 1
is "what was set is left" "$(bed on node-1 cat $turbo)" 1
check "... and a folder" test -n "$(bed on node-1 sh -c 'ls -d /tmp/assay-*/.assay-layer')"
bed on node-1 touch /dev/go
check "resuming deploys again" there resume killed/*/
check "... and removes what was left" eventually no_folders node-1
check "... with all mounts" no_mounts node-1
is "... and puts back what was set" "$(bed on node-1 cat $turbo)" 0

# ---- what is refused, on one line
refused() { # refused NAME PATTERN IMAGE [CODE]
    campaign bad.yaml "{local: , deploy: $3}"
    refuse "$1" "${4:-2}" "$2" "$ASSAY" run bad.yaml -o bad
}
refused "an image that is not there" "bad.yaml:10:28: cannot read the image '.*/none.tar': No such file" none.tar
echo 'no tar at all, but a text' >text
refused "an image that is no tar" "the image '.*/text' is no tar, or damaged" text
pack system damaged.tgz
truncate -s -100 damaged.tgz
refused "an image that is damaged" "damaged.tgz' is no tar, or damaged \(" damaged.tgz
refused "an image of another hash" "system.tar.zst' has SHA-256 $hash, expected 0{64}" "{image: system.tar.zst, sha256: $(printf '0%.0s' {1..64})}"
refused "a hash without an image" "'deploy' names no image" "{sha256: $hash}"
mkdir -p hostile/bin; cp "$busybox" hostile/bin/sh; touch hostile/evil
tar -C hostile -cf outside.tar --transform 's,^\(./\)\?evil,../evil,' -P .
refused "an image with a path that leads out" "'../evil' in the image '.*' leads out of the image" outside.tar
tar -C hostile -cf absolute.tar --transform 's,^\(./\)\?evil,/tmp/evil,' -P .
refused "an image with an absolute path" "'/tmp/evil' in the image '.*' leads out of the image" absolute.tar
rm hostile/evil; mknod hostile/evil b 8 0; tar -C hostile -cf device.tar .
refused "an image with a device" "'evil' in the image '.*' is a device" device.tar
rm hostile/evil hostile/bin/sh; tar -C hostile -cf shell.tar .
refused "an image without a shell" "has no /bin/sh" shell.tar
# A link to a folder of the machine, and a file through it: both within the image.
mkdir -p linked/bin victim; cp "$busybox" linked/bin/sh; ln -s "$scratch/victim" linked/out; tar -C linked -cf linked.tar .
rm linked/out; mkdir linked/out; touch linked/out/evil; tar -C linked -rf linked.tar ./out/evil
campaign bad.yaml '{local: , deploy: linked.tar}' 'echo answer $n'
"$ASSAY" run bad.yaml -o linked-run >/dev/null 2>&1
is "no link of an image leads out while it is extracted" "$(ls victim)" ""

campaign bad.yaml '{local: , deploy: system.tar.zst}'
copy_for_all "$scratch/assay"
mkdir other; cp bad.yaml two.csv system.tar.zst other; chown -R 65534:65534 other
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$scratch/other" TMPDIR="$scratch/other" "$@"; }
refuse "without root" 1 "node $(hostname): cannot bring the image: .*deploying a system needs root on the node" \
    as_nobody "$ASSAY" run other/bad.yaml -o other/bad
bed on node-2 sh -c 'rm -rf /root/.cache/assay/image-*'
bed fill node-2 /
campaign bad.yaml "{hosts: node-2, deploy: system.tar.zst, $ssh}"
refuse "a node whose disk is full" 1 "node-2: cannot bring the image: the node's sh ended with exit status 1: tar: .*(No space left|Wrote only)" there run bad.yaml -o full
bed empty node-2 /
is "... on which nothing stays" "$(bed on node-2 sh -c 'ls -A /root/.cache/assay | grep image')" ""
check "... and which works when there is room" there run bad.yaml -o full
echo 'workspace: /var/tmp' >>bad.yaml # on the node's own root, which is an overlay
refuse "a workspace that no layer can be on" 1 'node-2: .*cannot deploy a system: an overlay is not mounted, .*: Invalid argument' \
    there run bad.yaml -o overlay
is "... on which nothing stays" "$(bed on node-2 sh -c 'ls -d /var/tmp/assay-* 2>/dev/null')" ""
refuse "nodes of the command line beside deploy" 2 "'deploy' of the testbed 'local' does not go with --nodes" \
    "$ASSAY" run here.yaml --nodes node-1 --dry-run
finish
