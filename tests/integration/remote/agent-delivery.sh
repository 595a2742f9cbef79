#!/bin/bash
# Agents brought to nodes that make it hard, over real sshd: where they end up, and what is said when there is no way.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
try=$ASSAY_BUILD/tests/integration/transport-try
agent=$ASSAY_BUILD/libexec/assay/assay-agent
[ -x "$agent" ] && [ -x "$try" ] || plan_skip "there is no agent"
hash=$(sha256sum <"$agent" | cut -c1-64)
cache='/root/\.cache/assay'

# What the transport says of an agent on node N of the bed that is up, or of all.
reach() { # reach NODE [OPTION...]
    local node=$1; shift
    bed run timeout 300 "$try" --prefix "$ASSAY_BUILD" --known-hosts "$BED/known_hosts" --identity "$BED/id_ed25519" "$@" \
        "node$node" open close >"$scratch/said" 2>&1
}
says() { # says NAME PATTERN NODE [OPTION...]
    local name=$1 pattern=$2; shift 2
    reach "$@"; grep -qE -- "$pattern" "$scratch/said"; local status=$?
    [ $status -eq 0 ] || { echo "# expected: $pattern"; sed 's/^/# /' "$scratch/said" | head -5; }
    report $status "$name"
}
leave() { bed on "$1" sh -c 'for agent in /root/.cache/assay/agent-* /tmp/assay-0/agent-* /var/tmp/assay-0/agent-*; do
    [ ! -x "$agent" ] || "$agent" --end all; done' >/dev/null 2>&1; } # no agent is left running there

# ---- a node that has nothing against it
bed_first 3 --no-compiler
says "brought" "^open $cache/agent-$hash delivered$" 1
says "and found" "^open ~/.cache/assay/agent-$hash as-usual$" 1
leave 1
check "one file, and nothing half done" test "$(bed on 1 ls -A /root/.cache/assay)" = "agent-$hash"
check "private" test "$(bed on 1 stat -c '%a %a' /root/.cache/assay "/root/.cache/assay/agent-$hash" | tr '\n' ' ')" = "700 700 700 700 "
bed on 1 sh -c "printf '#!/bin/sh\nexit 126\n' >/root/.cache/assay/agent-$hash"
says "damaged, and replaced" "^open $cache/agent-$hash delivered, damaged: $cache/agent-$hash: its SHA-256 is [0-9a-f]{64}$" 1
bed on 1 rm -rf /root/.cache
says "by many at once" "^open .* delivered$" 1 --copies 8
check "all of them" test "$(grep -c "^open .*agent-$hash " "$scratch/said")" -eq 8
leave 1
check "into one file" test "$(bed on 1 ls -A /root/.cache/assay)" = "agent-$hash"

# ---- a machine of another kind
bed on 2 sh -c 'printf "#!/bin/sh\ncase \$1 in -s) echo Linux ;; *) echo riscv64 ;; esac\n" >/usr/local/bin/uname; chmod 755 /usr/local/bin/uname'
says "no binary for it and no compiler there" \
    "^closed ENOEXEC node node2: cannot deliver the agent: the node is a Linux riscv64 and the binary is for Linux .*, and it cannot be built there: there is neither cc nor gcc nor clang$" 2
says "the binary and nothing else" "^closed ENOEXEC node node2: .*the node is a Linux riscv64 and the binary is for Linux" 2 --binary

# ---- folders that are full, or somebody else's
bed fill 3 /root
says "a full disk" "^open /(tmp|dev/shm)/assay-0/agent-$hash delivered$" 3
leave 3
bed on 3 rm -rf /tmp/assay-0 /dev/shm/assay-0
bed on 3 sh -c ': >/var/tmp/assay-0; mkdir -m 777 /tmp/assay-0; chown 12345 /tmp/assay-0; mkdir /dev/shm/trap; ln -s /dev/shm/trap /dev/shm/assay-0'
bed fill 3 /
says "and others have been in all the rest" "^closed EACCES node node3: cannot deliver the agent: no folder on the node can hold the agent: " 3
check "each with its reason" grep -qE 'cache/assay: No space left on device; /tmp/assay-0: it belongs to another user \(uid 12345\); /var/tmp/assay-0: it is not a folder; /dev/shm/assay-0: it is a link; /run/user/0/assay: ' "$scratch/said"
check "nothing was put where others can reach it" bed on 3 sh -c '[ -z "$(ls -A /tmp/assay-0 /dev/shm/trap | grep -v :)" ]'
bed empty 3
bed on 3 rm -rf /tmp/assay-0 /var/tmp/assay-0
says "with room again" "^open $cache/agent-$hash delivered$" 3
leave 3
bed on 3 sh -c 'rm -rf /root/.cache; mkdir -p /var/tmp/theirs && chown 12345 /var/tmp/theirs && ln -s /var/tmp/theirs /root/.cache'
says "a cache below a folder of another user's" "^open /tmp/assay-0/agent-$hash delivered$" 3
check "has nothing of ours" test -z "$(bed on 3 ls -A /var/tmp/theirs)"
bed down

# ---- homes and temporary folders that nothing can be run from
bed up 1 --home-read-only
says "a home that is read-only" "^open /tmp/assay-0/agent-$hash delivered$" 1
says "and found there" "^open /tmp/assay-0/agent-$hash as-usual$" 1
bed down
bed up 1 --home-noexec --tmp-noexec
says "a home and a /tmp that are noexec" "^open /(var/tmp|dev/shm)/assay-0/agent-$hash delivered$" 1
bed down

# ---- built there
if command -v cc >/dev/null; then
    bed up 1
    bed on 1 sh -c 'printf "#!/bin/sh\ncase \$1 in -s) echo Linux ;; *) echo riscv64 ;; esac\n" >/usr/local/bin/uname; chmod 755 /usr/local/bin/uname'
    says "built from source" "^open $cache/agent-[0-9a-f]{64} built$" 1
    built=$(grep -oE "[0-9a-f]{64}" "$scratch/said" | head -1)
    check "its name is its hash" test "$(bed on 1 sha256sum "/root/.cache/assay/agent-$built" | cut -c1-64)" = "$built"
    says "and found" "^open $cache/agent-$built built$" 1 --source
    bed down
else
    skip "built from source" "there is no cc"
fi

# ---- login shells
for shell in /bin/bash /bin/dash /bin/tcsh /usr/bin/fish /bin/ksh; do
    if [ ! -x "$shell" ]; then skip "by $shell" "there is none"; continue; fi
    bed up 1 --shell "$shell" || { report 1 "a bed with $shell"; continue; }
    says "brought by $shell" "^open $cache/agent-$hash delivered$" 1
    says "and found by it" "^open ~/.cache/assay/agent-$hash as-usual$" 1
    bed down
done
finish
