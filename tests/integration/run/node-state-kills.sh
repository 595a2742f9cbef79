#!/bin/bash
# Whatever dies, and whenever, nodes are put back as they were found, to the byte: the engine is killed after a random one
# of the writes of a run that sets everything; the agent is, by halves and whole; a node is cut off for longer than its lease.
# ASSAY_KILLS says how often the engine is killed (default: 4), ASSAY_SEED when.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
move_clock # the nodes' is moved when a lease is to be over
bed_first 3 --machine intel-pstate --names 'node-%'
bed can kernel-files || plan_skip "nodes whose files answer as a kernel's need root and FUSE"

kills=${ASSAY_KILLS:-4}
RANDOM=${ASSAY_SEED:-4711}

cat >"$scratch/campaign.yaml" <<'EOF'
name: state
experiment:
  name: slow
  run: sh -c 'sleep 0.05; echo took 1'
  responses: {took: {pattern: 'took ([0-9]+)', unit: s}}
testbed: {hosts: 'node-[1-3]', lease: 1h}
controls: {turbo: off, hyperthreads: off, governor: performance, frequency: base, energy-preference: performance,
  idle-states: C1, uncore-frequency: min, numa-balancing: off, transparent-huge-pages: never, proof: 200ms}
probes: 100ms
design: {repetitions: 5}
EOF

files_of() { bed files "$1" | sort; }
for node in 1 2 3; do files_of $node >"$scratch/before-$node"; done
check "a node has files to compare" test "$(wc -l <"$scratch/before-1")" -gt 50
is_as_before() { files_of "$1" | cmp -s - "$scratch/before-$1"; }
are_as_before() {
    local node
    for node in 1 2 3; do diff "$scratch/before-$node" <(files_of $node) || return; done
}
# Long enough that none ends before it is disturbed, on a busy machine too; and none goes on with the nodes that are left.
sed 's/repetitions: 5/repetitions: 1000/' "$scratch/campaign.yaml" >"$scratch/long.yaml"
echo 'node-loss: abort' >>"$scratch/long.yaml"
# Agents of the run before, which may be leaving yet, are not to be met, or taken for the new ones.
no_agents() { ! { bed on 1 pgrep agent || bed on 2 pgrep agent || bed on 3 pgrep agent; }; }
start() {
    eventually no_agents
    bed writes all forget
    rm -f "$scratch/err"
    bed run "$ASSAY" run "$scratch/long.yaml" -o "$scratch/runs" >"$scratch/out" 2>"$scratch/err" & engine=$!
}
# The engine is a child of `bed run`'s process, or that process itself.
engine_process() { pgrep -o -f -- "$scratch/long.yaml -o $scratch/runs"; } # its resolver of names has the same words
wrote() { [ "$(bed writes 1 | wc -l)" -ge "$1" ]; }
start_measuring() { start; eventually grep -qs '^measure' "$scratch/err"; }
is_changed() { ! is_as_before 1; }

# ---- a whole run
check "a whole run ends well" bed run "$ASSAY" run "$scratch/campaign.yaml" -o "$scratch/whole"
check "... and leaves every file of every node as it was" are_as_before
bed writes 1 >"$scratch/writes"
check "... having written more than a few of them" test "$(wc -l <"$scratch/writes")" -ge 50

# ---- asked to end
start_measuring
check "while it measures, files are changed" is_changed
changes=$(bed writes 1 | wc -l)
kill -TERM "$(engine_process)" # a shell lets its background ignore Ctrl-C
wait $engine
check "asked to end, it ends as partial" test $? -eq 6
check "... and every file is as it was" are_as_before

# ---- the engine is killed
for i in $(seq "$kills"); do
    count=$((1 + RANDOM % changes))
    start
    eventually wrote $count
    kill -KILL "$(engine_process)"
    wait $engine 2>/dev/null
    advance 3601s 1 2 3
    check "engine killed after $count of $changes changes of a node: all files as before after the lease" eventually are_as_before
done

# ---- the agent is killed: the worker, then both of its processes
# sshd's child is the relay, its child the guardian, and its child the worker.
guardian_of() { bed on "$1" sh -c 'pgrep -o -P "$(pgrep -o "^agent")"'; }
worker_of() { bed on "$1" pgrep -o -P "$(guardian_of "$1")"; }

start_measuring
bed on 2 kill -KILL "$(worker_of 2)"
wait $engine
check "a run whose agent is killed fails" test $? -ne 0
check "... and its guardian put the node back" eventually are_as_before

start_measuring
worker=$(worker_of 2)
bed on 2 kill -STOP "$worker" # or it sees its guardian's end, and restores the node before its own
bed on 2 kill -KILL "$(guardian_of 2)" "$worker" 2>/dev/null
wait $engine
check "with both processes killed at once it fails too" test $? -ne 0
check "... and says how the node is put back" grep -q "assay nodes restore" "$scratch/err"
check "... the node is as the run left it" eval '! is_as_before 2'
check "assay nodes restore puts it back" bed run "$ASSAY" nodes restore -w 'node-[1-3]'
check "... to the byte" eventually are_as_before

# ---- the wire is cut for longer than the lease
start_measuring
bed cut 3
advance 3601s 3
check "a node that is cut off puts itself back when its lease is over" eventually is_as_before 3
bed mend 3
wait $engine
check "... the run fails" test $? -ne 0
check "... and the others are as they were" eventually are_as_before

# ---- a restart
start_measuring
bed reboot 2
wait $engine
check "a run whose node restarts fails" test $? -ne 0
is "... and there is nothing to put back, which is said" \
    "$(bed run "$ASSAY" nodes restore -w node-2 2>&1)" "node-2: nothing to do: no control was changed: this node has no snapshot"
check "... all files are as after a restart" eventually are_as_before
finish
