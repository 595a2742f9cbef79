#!/bin/bash
# Launchers whose steps end with their first process, as those of Slurm's srun do: the agent is started by one step, in
# the foreground, and reached by another.
. "$(dirname "$0")/../tap.sh"
try=$ASSAY_BUILD/tests/integration/transport-try
agent=$ASSAY_BUILD/libexec/assay/assay-agent
[ -x "$agent" ] || plan_skip "there is no agent"
# A step has a process namespace of its own: when its first process ends, the kernel kills all that is left in it, as
# slurmd does with the step's cgroup.
unshare --pid --fork --kill-child --mount-proc true 2>/dev/null || plan_skip "no process namespaces may be made here"
label=launchers-$$
export HOME=$scratch/home TMPDIR=$scratch/home/tmp XDG_CACHE_HOME=
mkdir -p "$TMPDIR" "$scratch/bin"
hash=$(sha256sum <"$agent" | cut -c1-64)
usual=$HOME/.cache/assay/agent-$hash
# srun's stand-in: options, then the words that it executes on the node, which is this machine.
cat >"$scratch/bin/srun" <<END
#!/bin/bash
for word; do case \$word in --nodelist=*) node=\${word#*=} ;; -*) ;; *) break ;; esac; shift; done
printf '%s %s\n' "\$node" "\$3" >>$scratch/steps
unshare --pid --fork --kill-child --mount-proc -- "\$@"
status=\$?
[ \$status = 0 ] || echo "srun: error: \$node: task 0: Exited with exit code \$status" >&2
exit \$status
END
chmod +x "$scratch/bin/srun"
PATH=$scratch/bin:$PATH
agents() { "$agent" --list | awk -F '\t' -v label="$label" '$9 == label' | cut -f1; }
none() { [ -z "$(agents)" ]; }
cleanup() { for session in $(agents); do "$agent" --end "$session" >/dev/null 2>&1; done; }
run() { timeout 120 "$try" --prefix "$ASSAY_BUILD" --label "$label" "$@" 2>&1 | tee "$scratch/said" >&2; return "${PIPESTATUS[0]}"; }
says() { local name=$1 pattern=$2; shift 2; "$@" 2>/dev/null; grep -qE -- "$pattern" "$scratch/said"; local status=$?
         [ $status -eq 0 ] || sed 's/^/# /' "$scratch/said"; report $status "$name"; }
gone() { none && [ ! -e "$TMPDIR/transport-try" ]; }
verbs() { grep -oE -- '--(serve|resume|attach)|(find|put|build) ' "$scratch/steps" | tr -d ' \n-'; }
# The first process of the step in which the agent's program runs with an option: in the command of a step.
printf '#!/bin/sh\npgrep -f "^/[^ ]*/agent-%s $1 $SESSION" | head -n 1\n' "$hash" >"$scratch/bin/first"
chmod +x "$scratch/bin/first"
to=user@node-7:2200
leave="do:$agent --end \$SESSION" # as a link would have it leave

# ---- what it is for: a daemon that a step leaves behind does not live
says "an agent that attaching started dies with the relay's step" "^closed E" \
    run --attach "srun --nodelist={host} {command...}" "$to" open "do:kill -9 \$(first --attach)" lost renew
check "and is not found again" grep -q "closed ESTALE" "$scratch/said"
rm -f "$scratch/steps" "$usual"

# ---- start and attach
says "an agent is brought and started by srun" "^open $usual delivered$" run --launcher srun "$to" open "$leave" lost
is "found out, delivered, started, reached" "$(verbs)" "servefindputserveresume"
is "each on the host of the destination" "$(cut -d' ' -f1 "$scratch/steps" | sort -u)" node-7
check "it leaves when it is told to" grep -q "^closed ECONNRESET node $to: the agent closed the connection$" "$scratch/said"
check "and leaves nothing behind" gone
rm -f "$scratch/steps"
listed="do:$agent --list | grep \$SESSION"
says "it is found the next time" "^open ~/.cache/assay/agent-$hash as-usual$" run --launcher srun "$to" open "$listed | cut -f1-2,9" "$leave" lost
is "by two steps" "$(verbs)" "serveresume"
check "while it was listed" grep -qE "^[0-9a-f]{16}	[a-z]+	$label$" "$scratch/said"
rm -f "$scratch/steps"
says "a relay that is killed" "^closed ECONNRESET node $to: " \
    run --launcher srun "$to" open "$listed | cut -f6,7" "do:kill -9 \$(first --resume)" lost "$listed | cut -f6,7" renew "$leave" lost
is "is replaced by another step" "$(grep -c ^open "$scratch/said")" 2
is "to the same agent" "$(grep -E '^[0-9]+	' "$scratch/said" | uniq -c | awk '{ print $1 }')" 2
is "which is started once" "$(verbs)" "serveresumeresume"
check "and has left" gone
says "an agent whose step is killed" "^closed ECONNRESET node $to: " \
    run --launcher srun "$to" open "do:kill -9 \$(first --serve)" lost -renew
check "is gone for good" grep -q "^closed ESTALE node $to: cannot reach the agent: .*there is no agent of session" "$scratch/said"
rm -rf "$TMPDIR/transport-try"
says "an engine that gives it up" "^open" run --launcher srun "$to" open free
check "ends its step" eventually none
rm -rf "$TMPDIR/transport-try"

# ---- what goes wrong
refuse "the agent's own words count, not what srun adds" 1 \
    "^closed ECONNABORTED node $to: cannot start the agent: it ended with exit status 1: .*workspace" \
    run --launcher srun --workspace /nonexistent "$to" open
refuse "a step that cannot be started" 1 "^closed ENOENT node $to: .*cannot start 'no-such-srun': No such file or directory" \
    run --start "no-such-srun {command...}" --attach "srun {command...}" "$to" open
refuse "a host that would be an option" 2 "refused .*a part begins with '-'" run --launcher srun "user@-oProxyCommand=x" open
rm -f "$scratch/steps"
says "words with what a shell would take for its own" "^open .* as-usual$" \
    run --start "srun --comment=\$(touch\${IFS}$scratch/ran);{node} --nodelist={host} {command...}" --attach "srun --nodelist={node} {command...}" "$to" open "$leave" lost
check "are words" test ! -e "$scratch/ran"
is "with the names in their places" "$(cut -d' ' -f1 "$scratch/steps" | sort -u | tr '\n' ' ')" "node-7 $to "
finish
