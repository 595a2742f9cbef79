#!/bin/bash
# Campaigns on `testbed: hosts`: the same file as on this machine, on three nodes over ssh; through a gateway; with a node
# that is not there, a link that is cut, an engine that is killed.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
. "$ASSAY_SOURCE/tests/faults/killed-runs.sh"
move_clock
command -v cc >/dev/null || plan_skip "no C compiler, which the dgemm experiment needs on a node"
ldconfig -p | grep -q libopenblas || plan_skip "no OpenBLAS, which the dgemm experiment needs"
bed_first 3 --names 'node-%'

cat_of() { "$ASSAY" archive cat "$1" "$2"; }
run_there() { bed run "$ASSAY" run "$@"; } # on the front end, which reaches the nodes
# Nothing of assay's runs or lies on a node but the program itself, for the next time.
are_clean() {
    local node
    for node; do bed on "$node" sh -c '! pgrep -a "^(assay-)?agent" && ! ls -d /tmp/assay-*-node-* 2>/dev/null' || return; done
}
# The value of a member, of a file with a member a line.
json() { sed -n "s/^ *\"$2\": *\"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$1" | head -1; }

# ---- the main job, small, on three nodes ------------------------------------------------------------------------
cat >"$scratch/campaign.yaml" <<'EOF'
name: small
experiment: dgemm
design: {generate: uniform-product, factors: [m, n, k], max-product: 1e6, max-size: 300, products: 4, batch: 2, repetitions: 2, seed: 42}
probes: 100ms
EOF
"$ASSAY" run "$scratch/campaign.yaml" --nodes 'node-[1-3]' --dry-run -o "$scratch/none" >"$scratch/plan"
check "the dry run shows the nodes, folded" grep -qx "nodes        3: node-\[1-3\]" "$scratch/plan"
check "... and what is expected of each" grep -q "^expected     on each: sshd" "$scratch/plan"
check "... and touches nothing" test ! -e "$scratch/none"
run_there "$scratch/campaign.yaml" --nodes 'node-[1-3]' -o "$scratch/runs" >"$scratch/out" 2>"$scratch/err"
status=$?
[ $status -eq 0 ] || sed 's/^/# /' "$scratch/err"
report $status "the campaign runs on three nodes"
archive=$(cat "$scratch/out")
check "the archive verifies" "$ASSAY" archive verify "$archive"
cat_of "$archive" results/results.csv >"$scratch/results.csv"
rows=$(($(cat_of "$archive" design.csv | wc -l) - 1))
units_of() { awk -F, -v node="$1" 'NR > 1 && $6 == node' "$scratch/results.csv" | wc -l; }
for node in node-1 node-2 node-3; do
    units=$(units_of $node)
    check "$node has rows x repetitions x cores units" test "$units" -gt 0 -a $((units % (rows * 2))) -eq 0
done
check "no unit is there twice" test -z "$(tail -n +2 "$scratch/results.csv" | cut -d, -f1,2,6,7 | sort | uniq -d)"
check "run.json names the testbed" grep -q '"testbed": *"hosts"' <(cat_of "$archive" run.json)
check "... and the nodes" test "$(cat_of "$archive" run.json | grep -oE '"node-[123]"' | sort -u | wc -l)" -eq 3
cat_of "$archive" nodes/node-2/facts.json >"$scratch/facts.json"
check "facts tell that the agent was delivered" test "$(json "$scratch/facts.json" delivered)" = true
check "... with our agent's hash" test "$(json "$scratch/facts.json" sha256)" = \
    "$(sha256sum "${ASSAY%/bin/assay}/libexec/assay/assay-agent" | cut -c1-64)"
cat_of "$archive" journal.jsonl >"$scratch/journal"
check "the journal has an agent a node" test "$(grep -c '"event":"agent",.*"how":"delivered"' "$scratch/journal")" -eq 3
check "... and every entry both clocks" test "$(grep -cE '"t":"[0-9]{19}","m":"[0-9]+","event"' "$scratch/journal")" -eq "$(wc -l <"$scratch/journal")"
check "what setup wrote is kept" grep -q "logs/commands/.*-setup/node-1.out" <("$ASSAY" archive list "$archive")
check "nothing of the agents is left on the nodes" eventually are_clean 1 2 3

# ---- clocks: one wall clock, and a monotonic one a node, which is N times 1000 s ahead on node N ------------------
for node in 1 2 3; do
    cat_of "$archive" nodes/node-$node/clock.json >"$scratch/clock-$node.json"
    check "node-$node: two comparisons of five exchanges" test "$(grep -c '"exchanges": 5' "$scratch/clock-$node.json")" -eq 2
    check "... whose offset is 0 to within the bound" awk '
        /"offset_ns"/ {gsub(/[",]/, ""); offset = $2 + 0; if (offset < 0) offset = -offset}
        /"bound_ns"/ {bound = $2 + 0; if (offset > bound + 2000 || bound <= 0 || bound > 1e8) bad = 1; seen++}
        END {exit bad || seen != 2}' "$scratch/clock-$node.json"
    check "... and a drift of 0 to within its own" awk '
        /"drift_ppm"/ {drift = $2 + 0} /"monotonic_drift_ppm"/ {other = $2 + 0} /"drift_bound_ppm"/ {bound = $2 + 1}
        END {exit !(bound > 1 && drift <= bound && -drift <= bound && other <= bound && -other <= bound)}' "$scratch/clock-$node.json"
done
up() { json "$scratch/clock-$1.json" node_monotonic_ns; }
if bed can boot-id; then
    check "node-3's monotonic clock is 1000 s ahead of node-2's" test $((($(up 3) - $(up 2) + 50000000000) / 100000000000)) -eq 10
    check "... and so are the units' stamps" awk -F, -v two="$(up 2)" -v three="$(up 3)" '
        NR > 1 && $6 == "node-2" && ($9 < two || $9 > two + 300e9) {bad = 1}
        NR > 1 && $6 == "node-3" && ($9 < three || $9 > three + 300e9) {bad = 1} END {exit bad}' "$scratch/results.csv"
else
    skip "monotonic clocks of the nodes' own" "the kernel has no time namespaces"
fi
check "the journal has them too, at both ends" test "$(grep -c '"event":"clock"' "$scratch/journal")" -eq 6

# ---- the same on this machine, unchanged ---------------------------------------------------------------------------
mkdir "$scratch/tmp"
TMPDIR=$scratch/tmp "$ASSAY" run "$scratch/campaign.yaml" -q -o "$scratch/local" >"$scratch/local.out" 2>"$scratch/err"
report $? "the same campaign runs on this machine"
order_of() { awk -F, -v node="$2" 'NR > 1 && (!node || $6 == node)' "$1" | cut -d, -f1-3,7,10-15 | sort -t, -k4,4 -k3,3n; }
cat_of "$(cat "$scratch/local.out")" results/results.csv >"$scratch/local.csv"
check "... with the same units in the same order" cmp <(order_of "$scratch/results.csv" node-1) <(order_of "$scratch/local.csv" "")
# ---- a kernel by the streamed protocol, whose units take 0.2 s where /tmp/doomed is: until the test takes it away --
export ASSAY_PATH=$scratch
write_tick "$scratch"
all='hosts: "node-[1-3]"'
start_there() { # start_there NAME ROWS [LINE...]: in the background, until units are done; no lease is over by itself
    local name=$1 rows=$2; shift 2
    tick_campaign "$scratch/$name" "$rows" 0 "{$all, lease: 1h, timeout: 30 s}" 'probes: none' "$@"
    for node in 1 2 3; do bed on $node touch /tmp/doomed; done
    start_engine "$scratch/part" run "$scratch/$name.yaml" --json -o "$scratch/$name"
    wait_for_units "$scratch/part" 3
}
told() { grep -q "$1" "$scratch/part.json"; }
ended() { ! kill -0 "$engine" 2>/dev/null; }
sealed() { sed -n 's/.*"event":"sealed","text":"\([^"]*\)".*/\1/p' "$scratch/part.json"; }

printf 'node-[1,3]   # two of them\n' >"$scratch/list"
bed on 3 sh -c 'cd ~/.cache/assay && chmod g+w agent-*'
tick_campaign "$scratch/tick" 5 0 local 'probes: none'
run_there "$scratch/tick.yaml" --nodes "@$scratch/list" -o "$scratch/again" >"$scratch/out" 2>"$scratch/err"
report $? "another campaign runs on two nodes, which a file names"
damage='/.*/agent-[0-9a-f]{64}: others could write to it \(-rwx-w----\)'
check "... where an agent that others could write to is replaced, aloud" grep -qE "node node-3: $damage; a new agent was delivered" "$scratch/err"
cat_of "$(tail -n 1 "$scratch/out")" journal.jsonl >"$scratch/journal"
check "... and in the journal" grep -qE "\"event\":\"agent\",\"node\":\"node-3\",.*\"how\":\"delivered\",\"damage\":\"$damage\"" "$scratch/journal"
check "... and the other is found, and not delivered again" test "$(grep -c '"event":"agent",.*"how":"there"' "$scratch/journal")" -eq 1

# ---- a link is cut for longer than it may be silent ----------------------------------------------------------------
start_there cut 150
bed cut 2
check "a link that is silent is told to be broken" hurry_beside 'node-1 node-3' told "node node-2: connection lost"
bed on 2 rm /tmp/doomed
check "... its node measures all of its share while nobody hears it" eventually bed on 2 sh -c '! pgrep -x tick'
bed mend 2
for node in 1 3; do bed on $node rm /tmp/doomed; done
hurry_beside 'node-1 node-3' told "node node-2: reconnected after"
wait $shell_job
report $? "... the run outlives that"
archive=$(sealed)
cat_of "$archive" results/results.csv >"$scratch/results.csv"
check "every unit of every node is there, once" \
    test "$(tail -n +2 "$scratch/results.csv" | cut -d, -f3,6 | sort -u | wc -l)-$(wc -l <"$scratch/results.csv")" = 450-451
cat_of "$archive" journal.jsonl >"$scratch/journal"
check "the break is journalled, with the node and why" grep -qE '"event":"link-broken","node":"node-2","sentence":"..+"' "$scratch/journal"
check "... and its end, with how long it was" awk -F'"outage_ns":' '/"event":"link-resumed","node":"node-2"/ {
    split($2, part, ","); good = part[1] > 0} END {exit !good}' "$scratch/journal"
check "... of no other node" test "$(grep -cE '"event":"link-(broken|resumed)","node":"node-[13]"' "$scratch/journal")" -eq 0
check "a kernel that tells no monotonic start leaves the field empty" awk -F, 'NR > 1 && $9 != "" {bad = 1} END {exit bad}' "$scratch/results.csv"
check "nothing is left on the nodes" eventually are_clean 1 2 3

# ---- the engine is killed: agents leave after their lease ----------------------------------------------------------
start_there killed 3000
kill_engine
check "kill -9: the agents are there for a while" bed on 1 pgrep '^(assay-)?agent'
advance 3601s 1 2 3
check "... and after the lease they and their folders are gone" eventually are_clean 1 2 3
kept=$(cat "$scratch"/killed/*/results/results.csv | tail -n +2 | wc -l)
check "... and the units that were shown are on disk ($kept)" test "$kept" -ge "$(shown "$scratch/part.json")"

# ---- the user has enough: sealed, and nothing is left; nodes out of reach are not waited for -----------------------
start_there stopped 3000
kill -INT "$engine"; wait $shell_job; status=$?
check "SIGINT ends a run on hosts with exit code 4 (it was $status)" test $status -eq 4
check "... sealed with what there is" test "$(cat_of "$(sealed)" results/results.csv | wc -l)" -gt 1
check "... and nothing is left on the nodes" eventually are_clean 1 2 3
start_there unreached 3000
bed cut 2
hurry_beside 'node-1 node-3' told "node node-2: connection lost"
bed cut 3
kill -INT "$engine"
hurry_beside node-1 ended; wait $shell_job; status=$?
bed mend 2-3
check "so it does when nodes are out of reach, whose lease is not waited for (it was $status)" test $status -eq 4
check "... which is said" told "node node-2: not reachable; the run continues"
check "... of one, too, that was cut off just before, which nobody had noticed" told "node node-3: not reachable; the run continues"
advance 3601s 2
check "... the other node is clean, and after its lease that one" eventually are_clean 1 2
eventually is_reachable node-3
check "... its agent can be ended" bed run "$ASSAY" nodes clean -w node-3 --force
check "... then all are clean" eventually are_clean 3
for node in 1 2 3; do bed on $node rm /tmp/doomed; done

# ---- a name that no host has -------------------------------------------------------------------------------------
refuse "a mistyped host of several refuses the start" 2 "node node-3.invalid: cannot look up the host name 'node-3.invalid': .*; expected names that" \
    run_there "$scratch/campaign.yaml" --nodes 'node-[1-2],node-3.invalid' -o "$scratch/mistyped"
check "... and leaves nothing" test -z "$(ls -A "$scratch/mistyped")"

# ---- what fails on some nodes ------------------------------------------------------------------------------------
fails_on() { # fails_on NAME PATTERN: a setup that fails where the host's name matches
    printf 'name: %s\nexperiment:\n  name: x\n  setup: ["case $(hostname) in %s) echo out of luck >&2; exit 7;; esac"]\n  run: echo 1\n  responses: {one: {pattern: "(1)"}}\ntestbed: {hosts: "node-[1-3]"}\n' "$1" "$2" >"$scratch/$1.yaml"
}
fails_on once node-2
refuse "a setup that fails on one node is quoted, with the node" 3 "on node node-2, '.*' exited with status 7: out of luck" \
    run_there "$scratch/once.yaml" -o "$scratch/once"
check "... what it wrote is kept" grep -q "out of luck" <(cat_of "$scratch"/once/*.zip logs/commands/001-setup/node-2.err)
fails_on twice 'node-[13]'
refuse "one that fails on several names them together" 3 "2 of 3 nodes.*node-\[1,3\]: .*status 7.*out of luck" \
    run_there "$scratch/twice.yaml" -o "$scratch/twice"
check "... once for all, as they wrote the same" test "$("$ASSAY" archive list "$scratch"/twice/*.zip | grep -c 'logs/commands/001-setup/.*err')" -eq 1
check "... and each node's journal entry says where" \
    test "$(cat_of "$scratch"/twice/*.zip journal.jsonl | grep -cE '"node":"node-[13]".*"exit":7.*"error":"logs/commands/001-setup/node-1.err"')" -eq 2
check "nothing is left on the nodes" eventually are_clean 1 2 3

# ---- the agent's source, where the binary is not wanted ------------------------------------------------------------
if [ -n "${ASSAY_TEST_ALL:-}" ]; then
    tick_campaign "$scratch/built" 10 0 '{hosts: node-1, agent: source}' 'probes: none'
    run_there "$scratch/built.yaml" -q -o "$scratch/built" >"$scratch/out" 2>"$scratch/err"
    report $? "agent: source runs too"
    cat_of "$(cat "$scratch/out")" nodes/node-1/facts.json >"$scratch/facts.json"
    check "... and facts tell that it was built there" test "$(json "$scratch/facts.json" built)" = true
else
    skip "agent: source runs too" "takes long: tests/run.sh --all"
fi

# ---- nodes that cannot be used -------------------------------------------------------------------------------------
tick_campaign "$scratch/strict" 2 0 "{$all, lease: 1h, timeout: 1h}" 'probes: none' 'node-loss: abort'
bed refuse-logins 2
bed cut 3
start_engine "$scratch/part" run "$scratch/strict.yaml" --json -o "$scratch/strict"
eventually told '"text":"connect","nodes_done":1'
advance 3601s
hurry ended; wait $shell_job
check "nodes that cannot be used end a run that needs all" test $? -eq 1
check "... one that refuses is named, and one that is silent, after the timeout" grep -qE \
    "^assay: 2 of 3 nodes cannot be reached: node-2: .*refused.*; node-3: " "$scratch/part.err"
check "... and the run is sealed as failed" grep -q '"status": *"failed"' <(cat_of "$scratch"/strict/*.zip run.json)
check "... and the other is left as it was" eventually are_clean 1
bed accept-logins 2
bed mend 3

# ---- host keys -----------------------------------------------------------------------------------------------------
keys() { # keys POLICY
    tick_campaign "$scratch/keys" 2 0 "{hosts: node-1, user: root, identity: $BED/id_ed25519, ssh-config: none, known-hosts: none-yet, host-keys: $1}" 'probes: none'
    run_there "$scratch/keys.yaml" -q -o "$scratch/keys-$1"
}
: >"$scratch/none-yet"
refuse "a host key that nobody knows is refused, with its fingerprint" 1 "SHA256:" keys known
check "accept-new takes it" keys accept-new
check "... and notes it in the archive" grep -q "ssh-ed25519" <(cat_of "$scratch"/keys-accept-new/*.zip known_hosts)
check "... not in the user's file" test ! -s "$scratch/none-yet"

# ---- nodes that differ ---------------------------------------------------------------------------------------------
if bed can sys && bed on 2 sh -c 'echo 0 >/sys/devices/system/cpu/online' 2>/dev/null; then
    tick_campaign "$scratch/unlike" 10 0 "{$all}" 'probes: none'
    run_there "$scratch/unlike.yaml" -o "$scratch/unlike" >"$scratch/out" 2>"$scratch/err"
    report $? "nodes that differ run too"
    check "... and how they differ is said" grep -qE "the nodes differ in physical cores: nodes node-\[1,3\]: [0-9]+; node node-2: 1" "$scratch/err"
    check "... and journalled" grep -q '"event":"difference","what":"physical cores","value":"1","nodes":"node-2"' <(cat_of "$(cat "$scratch/out")" journal.jsonl)
else
    skip "nodes that differ" "the nodes have no /sys of their own"
fi
bed down

# ---- through a gateway ---------------------------------------------------------------------------------------------
if bed_for_part 2 --names 'inner-%' --gateway gate; then
    tick_campaign "$scratch/gated" 2 0 "{hosts: [inner-1, inner-2], user: root, identity: $BED/id_ed25519, known-hosts: $BED/known_hosts, ssh-config: none, jump: root@gate, window: 4}" \
        'probes: none'
    run_there "$scratch/gated.yaml" -q -o "$scratch/gated" >"$scratch/out" 2>"$scratch/err"
    status=$?
    [ $status -eq 0 ] || sed 's/^/# /' "$scratch/err"
    report $status "a campaign runs through a gateway"
    check "... on both nodes" test "$(cat_of "$(cat "$scratch/out")" results/results.csv | tail -n +2 | cut -d, -f6 | sort -u | paste -sd' ')" = "inner-1 inner-2"
    check "... and leaves nothing" eventually are_clean 1 2
else
    skip "a gateway" "no second test bed"
fi
finish
