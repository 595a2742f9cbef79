#!/bin/bash
# assay nodes put and get: files to sixteen nodes and back, compared by SHA-256.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
move_clock
bed_first 16 --names 'gros-%'
all='gros-[1-16]'
nodes() { # keeps what it prints for `said` and `complained`
    bed run "$ASSAY" nodes "$@" >"$scratch/out" 2>"$scratch/err"
    local code=$?
    cat "$scratch/err" >&2
    return $code
}
put() { nodes put -w "$all" "$@"; }
get() { nodes get -w "$all" "$@"; }
said() { grep -qE -- "$1" "$scratch/out"; }
complained() { grep -qE -- "$1" "$scratch/err"; }

mkdir -p "$scratch/tree/sub/empty" && head -c 3000000 /dev/urandom >"$scratch/tree/sub/random"
echo one >"$scratch/tree/one" && echo two >"$scratch/two" && ln -s one "$scratch/tree/link"
chmod 755 "$scratch/tree/one"

# ---- put

check "a file gets the name that is given" put "$scratch/two" /tmp/called
check "and says that it was verified" said '^put: 16 of 16 nodes, verified, in '
on_all() { # on_all EXPECTED COMMAND...: what it prints on each
    local expected=$1 node; shift
    for node in $(seq 16); do
        [ "$(bed on "$node" "$@")" = "$expected" ] || { echo "gros-$node differs"; return 1; }
    done >&2
}
check "on every node" on_all two cat /tmp/called
bed on 3 sh -c 'cd ~/.cache/assay && chmod g+w agent-*'
check "a folder is made for it" put "$scratch/two" /tmp/deep/er/two
check "by a new agent where others could write to the old one" \
    complained '^assay: node gros-3: /.*/agent-[0-9a-f]{64}: others could write to it \(-rwx-w----\): a new agent was delivered$'
check "there" on_all two cat /tmp/deep/er/two
check "a slash at the end is a folder to go into" put "$scratch/tree" /tmp/into/
check "and links are left out, aloud" complained "^assay: 1 links and special files of '$scratch/tree' were left out"
check "with all that is in it" on_all "$(sha256sum <"$scratch/tree/sub/random")" sh -c 'sha256sum </tmp/into/tree/sub/random'
check "and its modes" on_all "755 directory" sh -c 'stat -c %a /tmp/into/tree/one | tr "\n" " "; stat -c %F /tmp/into/tree/sub/empty'
check "a folder gets the name that is given" put "$scratch/tree" /tmp/again
check "too" on_all one cat /tmp/again/one
check "a file goes over the one that is there" put "$scratch/two" /tmp/again/one
check "everywhere" on_all two cat /tmp/again/one
check "several files go into a folder" put "$scratch/two" "$scratch/tree/one" /tmp/several
check "each by its name" on_all "one two" sh -c 'echo $(cd /tmp/several && cat one two)'
refuse "a relative path" 2 "'here' is a relative path; expected an absolute one" put "$scratch/two" here
refuse "a file that is not there" 2 "cannot read '$scratch/nowhere'" put "$scratch/nowhere" /tmp/x
refuse "what is neither file nor folder" 2 "/dev/null" put /dev/null /tmp/x
refuse "one operand" 2 "has 1 operand; expected files, and where they go" put /tmp/x
refuse "a file without a name" 2 "does not end in a name" put "$scratch/tree/.." /tmp/x/
bed on 3 mkdir /tmp/inway/called -p
bed on 4 sh -c 'echo >/tmp/inway'
refuse "what is in the way on some" 1 '^assay: put failed on 2 of 16 nodes: gros-3: .*; gros-4: ' put "$scratch/two" /tmp/inway/called
bed on 3 rm -r /tmp/inway; bed on 4 rm /tmp/inway
bed fill 5 /tmp
refuse "a full disk on one" 1 'put failed on 1 of 16 nodes: gros-5: .*[Nn]o space left' put "$scratch/tree/sub/random" /tmp/big
check "is none on the others" [ "$(bed on 16 sh -c 'sha256sum </tmp/big')" = "$(sha256sum <"$scratch/tree/sub/random")" ]
check "and no half of it is left there" [ "$(bed on 5 sh -c 'ls -A /tmp | grep -c big')" = 0 ]
bed empty 5 /tmp

# ---- get

check "a file comes as FOLDER/NODE/NAME" get /tmp/called "$scratch/got"
check "from every node" sh -c "[ \$(cat '$scratch'/got/gros-*/called | grep -c '^two\$') -eq 16 ]"
check "a folder with all that is in it" get /tmp/into/tree "$scratch/got"
check "the same bytes" sh -c "for i in \$(seq 16); do cmp '$scratch/tree/sub/random' '$scratch/got/gros-'\$i/tree/sub/random || exit 1; done"
check "the same modes" [ "$(stat -c %a "$scratch/got/gros-7/tree/one")" = 755 ]
check "what says that it is empty" get /proc/sys/kernel/ostype "$scratch/got"
check "is not" [ "$(cat "$scratch/got/gros-2/ostype")" = Linux ]
bed on 9 rm /tmp/called
refuse "what one has not" 1 "^assay: get failed on 1 of 16 nodes: gros-9: .*No such file or directory" get /tmp/called "$scratch/more"
check "the others have" [ "$(cat "$scratch/more/gros-10/called")" = two ]
mkdir "$scratch/twice"; echo other >"$scratch/twice/one"
refuse "two files that would be one there" 2 "would both become '/tmp/one'" put "$scratch/twice/one" "$scratch/tree/one" /tmp
refuse "a relative path of theirs" 2 "'called' is a relative path" get called "$scratch/got"

# ---- what another user owns or may write to, on a node (12) and here

bed on 12 sh -c 'umask 077; echo secret >/root/x; mkdir -p /tmp/theirs /tmp/open /tmp/group; chmod 777 /tmp/open /tmp/theirs
    chgrp 65534 /tmp/group; chmod 2775 /tmp/group; for i in theirs open group; do ln -s /root/x /tmp/$i/one; ln -s /root /tmp/$i/root; done
    ln -s /root/x /tmp/link; chown -h 65534 /tmp/theirs /tmp/*/one /tmp/*/root /tmp/link'
for i in theirs open group; do
    refuse "files into a folder of others' ($i)" 1 "gros-12: cannot make folder '/tmp/$i': '/tmp/$i' belongs to user [0-9]+ and has mode" put "$scratch/tree" "/tmp/$i"
    refuse "a file of others' link there" 1 "gros-12: cannot read '/tmp/$i/one': '/tmp/$i' belongs to user" nodes get -w gros-12 "/tmp/$i/one" "$scratch/more"
done
refuse "through a link of another user's in /tmp" 1 "gros-12: cannot write '/tmp/link': the link '/tmp/link' belongs to user 65534" put "$scratch/two" /tmp/link
refuse "or from there" 1 "gros-12: cannot read '/tmp/link': the link" nodes get -w gros-12 /tmp/link "$scratch/more"
check "what root has is as it was" [ "$(bed on 12 sh -c 'cat /root/x; stat -c %a /root/x')" = "secret
600" ]
trusting() { ASSAY_TRUSTED_FOLDERS=$1 put "${@:2}"; }
check "a folder that is trusted is used" trusting /tmp/open "$scratch/two" /tmp/open/two
mkdir -m 777 "$scratch/open"; mkdir "$scratch/open/tree"
refuse "files of a folder of others' here" 2 "cannot use '$scratch/open/tree': '$scratch/open' belongs to user 0 and has mode 0777" put "$scratch/open/tree" /tmp/x
refuse "files into one" 2 "'$scratch/open' belongs to user 0 and has mode 0777.*ASSAY_TRUSTED_FOLDERS" get /tmp/again/one "$scratch/open"
bed refuse-logins 11
refuse "one that cannot be reached" 1 "^assay: get failed on 1 of 16 nodes: gros-11: there is no connection" while_hurrying 'gros-1 gros-16' get --timeout 1h /tmp/again/one "$scratch/more"
check "keeps no other from answering" [ -f "$scratch/more/gros-12/one" ]
finish
