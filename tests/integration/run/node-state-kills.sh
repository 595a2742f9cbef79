#!/bin/bash
# Whatever dies, and whenever, nodes are put back as they were found, to the byte: the engine is killed at random instants
# of a run that sets everything; the agent is, by halves and whole; a node is cut off for longer than its lease.
# ASSAY_KILLS says how often the engine is killed (default: 4), ASSAY_SEED when.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
bed up 3 --machine intel-pstate --names 'node-%' || plan_skip "no test bed"
bed can kernel-files || plan_skip "nodes whose files answer as a kernel's need root and FUSE"

kills=${ASSAY_KILLS:-4}
RANDOM=${ASSAY_SEED:-4711}

cat >"$scratch/campaign.yaml" <<'EOF'
name: state
experiment:
  name: slow
  run: sh -c 'sleep 0.05; echo took 1'
  responses: {took: {pattern: 'took ([0-9]+)', unit: s}}
testbed: {hosts: 'node-[1-3]', lease: 4 s}
controls: {turbo: off, hyperthreads: off, governor: performance, frequency: base, energy-preference: performance,
  idle-states: C1, uncore-frequency: min, numa-balancing: off, transparent-huge-pages: never, proof: 200ms}
probes: 100ms
design: {repetitions: 30}
EOF

files_of() { bed files "$1" | sort; }
for node in 1 2 3; do files_of $node >"$scratch/before-$node"; done
check "a node has files to compare" test "$(wc -l <"$scratch/before-1")" -gt 50
is_as_before() { files_of "$1" | cmp -s - "$scratch/before-$1"; }
are_as_before_within() { # SECONDS
    local tenths=$(($1 * 10)) node
    for node in 1 2 3; do
        while ! is_as_before $node; do
            [ $((tenths -= 1)) -gt 0 ] || { diff "$scratch/before-$node" <(files_of $node) | head -5 | sed 's/^/# /' >&2; return 1; }
            sleep 0.1
        done
    done
}
# Long enough that none ends before it is disturbed, on a busy machine too; and none goes on with the nodes that are left.
sed 's/repetitions: 30/repetitions: 1000/' "$scratch/campaign.yaml" >"$scratch/long.yaml"
echo 'node-loss: abort' >>"$scratch/long.yaml"
# Agents of the run before, which may be leaving yet, are not to be met, or taken for the new ones.
agents_have_left() {
    local node
    for node in 1 2 3; do
        for _ in $(seq 600); do bed on $node pgrep agent >/dev/null || break; sleep 0.1; done
    done
}
start() { agents_have_left; bed run "$ASSAY" run "$scratch/long.yaml" -o "$scratch/runs" >"$scratch/out" 2>"$scratch/err" & engine=$!; }
# The engine is a child of `bed run`'s process, or that process itself.
engine_process() { pgrep -o -f -- "$scratch/long.yaml -o $scratch/runs"; } # its resolver of names has the same words
wait_for() { # wait_for LINE: of the engine's stderr
    for _ in $(seq 1200); do grep -q "$1" "$scratch/err" && return; sleep 0.05; done
    sed 's/^/# /' "$scratch/err" >&2
    return 1
}
is_changed() { ! is_as_before 1; }

# ---- a whole run
check "a whole run ends well" bed run "$ASSAY" run "$scratch/campaign.yaml" -o "$scratch/whole"
check "... and leaves every file of every node as it was" are_as_before_within 1
bed writes 1 >"$scratch/writes"
check "... having written more than a few of them" test "$(wc -l <"$scratch/writes")" -ge 50

# ---- asked to end
start
wait_for '^measure' && sleep 0.3
check "while it measures, files are changed" is_changed
kill -TERM "$(engine_process)" # a shell lets its background ignore Ctrl-C
wait $engine
check "asked to end, it ends as partial" test $? -eq 6
check "... and every file is as it was" are_as_before_within 1

# ---- the engine is killed
for i in $(seq "$kills"); do
    start
    wait_for '^control'
    delay=$((RANDOM % 2500))
    sleep $((delay / 1000)).$(printf %03d $((delay % 1000)))
    kill -KILL "$(engine_process)" 2>/dev/null
    wait $engine 2>/dev/null
    check "engine killed $delay ms after its control phase began: all files as before within the lease" are_as_before_within 60
done

# ---- the agent is killed: the worker, then both of its processes
# sshd's child is the relay, its child the guardian, and its child the worker.
guardian_of() { bed on "$1" sh -c 'pgrep -o -P "$(pgrep -o "^agent")"'; }
worker_of() { bed on "$1" pgrep -o -P "$(guardian_of "$1")"; }

start
wait_for '^measure' && sleep 0.2
bed on 2 kill -KILL "$(worker_of 2)"
wait $engine
check "a run whose agent is killed fails" test $? -ne 0
check "... and its guardian put the node back" are_as_before_within 30

start
wait_for '^measure' && sleep 0.2
bed on 2 kill -KILL "$(guardian_of 2)" "$(worker_of 2)"
wait $engine
check "with both processes killed at once it fails too" test $? -ne 0
check "... and says how the node is put back" grep -q "assay nodes restore" "$scratch/err"
check "... the node is as the run left it" eval '! is_as_before 2'
check "assay nodes restore puts it back" bed run "$ASSAY" nodes restore -w 'node-[1-3]'
check "... to the byte" are_as_before_within 1

# ---- the wire is cut for longer than the lease
start
wait_for '^measure' && sleep 0.2
bed cut 3
check "a node that is cut off puts itself back when its lease is over" eval 'for _ in $(seq 600); do is_as_before 3 && break; sleep 0.1; done; is_as_before 3'
bed mend 3
wait $engine
check "... the run fails" test $? -ne 0
check "... and the others are as they were" are_as_before_within 30

# ---- a restart
start
wait_for '^measure' && sleep 0.2
bed reboot 2
wait $engine
check "a run whose node restarts fails" test $? -ne 0
is "... and there is nothing to put back, which is said" \
    "$(bed run "$ASSAY" nodes restore -w node-2 2>&1)" "node-2: nothing to do: there is no snapshot here"
check "... all files are as after a restart" are_as_before_within 2
finish
