#!/bin/bash
# A user without root whose agents set controls by sudo: the experiment is the user's, the controls are set, and everything
# is put back whatever dies. And the epilog of Slurm, for nodes on which nothing of an agent is left to do it.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
command -v sudo >/dev/null || plan_skip "no sudo"
bed_first 2 --machine intel-pstate --names 'node-%'
bed can kernel-files || plan_skip "nodes whose files answer as a kernel's need root and FUSE"

agent=${ASSAY_AGENT:-$ASSAY_BUILD/libexec/assay/assay-agent}
turbo=/sys/devices/system/cpu/intel_pstate/no_turbo
for node in 1 2; do
    bed on $node sh -c 'useradd --create-home --uid 4711 --password "*" me && cat >/usr/libexec/assay-agent && mkdir /usr/libexec/assay &&
        mv /usr/libexec/assay-agent /usr/libexec/assay && chmod 755 /usr/libexec/assay/assay-agent' <"$agent" || exit
    bed files $node | sort >"$scratch/before-$node"
done
allow() { # allow LINE: what sudoers has of the user, on both nodes
    for node in 1 2; do bed on $node sh -c "echo '$1' >/etc/sudoers.d/me && chmod 440 /etc/sudoers.d/me"; done
}
is_as_before() { bed files "$1" | sort | diff "$scratch/before-$1" -; }
are_as_before() { is_as_before 1 && is_as_before 2; }
nothing_is_kept() { bed on 1 test ! -e /run/assay && bed on 2 test ! -e /run/assay; }

campaign() { # campaign NAME REPETITIONS [KEY: VALUE of the testbed]
    cat >"$scratch/$1.yaml" <<EOF
name: $1
experiment:
  name: who
  run: sh -c 'sleep 0.05; echo uid \$(id -u) turbo \$(cat $turbo); echo took 1'
  responses:
    uid: {pattern: 'uid ([0-9]+)'}
    no_turbo: {pattern: 'turbo ([0-9]+)'}
    took: {pattern: 'took ([0-9]+)', unit: s}
testbed: {hosts: 'node-[1-2]', user: me, lease: 1h${3:+, $3}}
controls: {turbo: off, hyperthreads: off, governor: performance, frequency: base, proof: none}
probes: none
gates: none
node-loss: abort
design: {repetitions: $2}
EOF
}
run() { # run NAME: to its end; the archive is $archive
    bed run "$ASSAY" run "$scratch/$1.yaml" -o "$scratch/runs" >"$scratch/out" 2>"$scratch/err"
    status=$?
    archive=$(cat "$scratch/out")
    return $status
}
column() { "$ASSAY" archive cat "$archive" results/results.csv | awk -F, -v name="$1" 'NR == 1 {for (i = 1; i <= NF; i++) if ($i == name) c = i; next} {print $c}'; }

# ---- what is refused, in one sentence
campaign without 2
run without
check "without sudo, what cannot be set fails the run" grep -q 'turbo: denied' "$scratch/err"
campaign sudo 3 'sudo: yes'
run sudo
status=$?
check "a sudo that asks for a password fails it" test $status -ne 0
check "... which names the nodes and what sudoers needs" \
    grep -Eq "node-\[1-2\].*'sudo -n' does not set controls as root: sudo: .*password.*'#4711 ALL=\(root\) NOPASSWD: /home/me/.cache/assay/agent-[0-9a-f]+'" "$scratch/err"
refuse "words that no command may have" 2 "letters, digits" sh -c '
    sed "s/sudo: yes/sudo: [\"sudo;reboot\"]/" "$1" >"$2" && "$0" run "$2" --dry-run' "$ASSAY" "$scratch/sudo.yaml" "$scratch/bad.yaml"

refuse "no word" 2 "is not yes, or a command" "$ASSAY" nodes controls -w node-1 --sudo ' '
refuse "more words than a command of it has" 1 "Argument list too long" bed run "$ASSAY" nodes controls -w node-1 --user me --sudo "$(yes n | head -80 | tr '\n' ' ')"

# ---- the agent that assay brings, by sudo
allow 'me ALL=(root) NOPASSWD: /home/me/.cache/assay/agent-*'
check "with it, the run is done" run sudo
check "... and controls are shown, however the words are apart" bed run "$ASSAY" nodes controls -w node-1 --user me --sudo 'sudo  -n '
check "... by the user" test "$(column uid | sort -u)" = 4711
check "... while root's files are set" test "$(column no_turbo | sort -u)" = 1
check "... and put back" are_as_before
check "... of which nothing is left" nothing_is_kept
check "a run says by what" sh -c '"$0" run "$1" --dry-run | grep -q "controls are set by .sudo -n."' "$ASSAY" "$scratch/sudo.yaml"

# ---- killed while it measures
campaign long 5000 'sudo: yes'
# sshd's child is the relay, its child the guardian, and its child the worker.
guardian_of() { bed on "$1" sh -c 'pgrep -o -P "$(pgrep -o "^agent")"'; }
worker_of() { bed on "$1" pgrep -o -P "$(guardian_of "$1")"; }
no_agents() { ! { bed on 1 pgrep agent || bed on 2 pgrep agent; }; }
start_measuring() {
    eventually no_agents
    rm -f "$scratch/err"
    bed run "$ASSAY" run "$scratch/long.yaml" -o "$scratch/runs" >"$scratch/out" 2>"$scratch/err" & engine=$!
    eventually grep -qs '^measure' "$scratch/err"
}
start_measuring
check "the agent is the user's" test "$(bed on 2 ps -o uid= -p "$(worker_of 2)" | tr -d ' ')" = 4711
check "while it measures, files are changed" eval '! is_as_before 2 >/dev/null'
bed on 2 kill -KILL "$(worker_of 2)"
wait $engine
check "a run whose agent is killed fails" test $? -ne 0
check "... and its guardian put the node back, by sudo" eventually are_as_before
check "... of which nothing is left" eventually nothing_is_kept

leave_changed() { # leave_changed: node 2 has what was set, and no agent
    start_measuring
    local worker
    worker=$(worker_of 2)
    bed on 2 kill -STOP "$worker" # or it sees its guardian's end, and leaves in order
    bed on 2 kill -KILL "$(guardian_of 2)" "$worker" 2>/dev/null
    wait $engine
    eventually no_agents
}
leave_changed
check "killed with its guardian, it leaves the node as it was set" eval '! is_as_before 2 >/dev/null'
check "who has no sudo leaves it too" bed run "$ASSAY" nodes show -w me@node-2
check "... and changes nothing" eval '! is_as_before 2 >/dev/null'
check "assay nodes restore --sudo puts it back" bed run "$ASSAY" nodes restore -w me@node-2 --sudo yes
check "... to the byte" are_as_before
leave_changed
check "the next agent that has sudo does so by itself" run sudo
check "... to the byte" are_as_before

# ---- Slurm's epilog, where an agent and its guardian are killed with the job
leave_changed
bed on 2 sh -c 'cat >/root/epilog' <"$ASSAY_SOURCE/examples/slurm-epilog"
check "the epilog puts back what is left" bed on 2 env SLURM_JOB_UID=4711 sh /root/epilog
check "... to the byte" are_as_before
check "where there is nothing to put back it is done" bed on 2 env SLURM_JOB_UID=4711 sh /root/epilog
start_measuring
check "what an agent that is alive holds is no failure of the node" bed on 2 sh /root/epilog
check "... and stays as it is set" eval '! is_as_before 2 >/dev/null'

# ---- an agent that only root can change, and no other
kill -INT "$(pgrep -o -f -- "$scratch/long.yaml -o $scratch/runs")"
wait $engine
check "interrupted, a run puts everything back" are_as_before
installed=/usr/libexec/assay/assay-agent
allow "me ALL=(root) NOPASSWD: $installed --controls --owner *, $installed --snapshot-controls --owner *, $installed --set-controls --owner *, $installed --restore-controls --owner *"
run sudo
check "the agent that assay brings is not run then" grep -q "does not set controls as root: sudo: " "$scratch/err"
campaign installed 3 "sudo: [sudo, -n, $installed]"
check "the installed one is" run installed
check "... while root's files are set" test "$(column no_turbo | sort -u)" = 1
check "... and put back" are_as_before
refuse "which changes no other tree for its user" 2 "owner excludes --root" \
    bed on 1 setpriv --reuid 4711 --regid 4711 --clear-groups sudo -n $installed --restore-controls --owner 1 --root /tmp
finish
