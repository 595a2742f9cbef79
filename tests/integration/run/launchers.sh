#!/bin/bash
# Campaigns whose `launcher` is not libssh: by srun, whose steps end with their first process, and by ssh(1).
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
. "$ASSAY_SOURCE/tests/faults/killed-runs.sh"
command -v cc >/dev/null || plan_skip "no C compiler"
bed_first 2 --names 'node-%'
bed on 1 unshare --pid --fork --kill-child --mount-proc true 2>/dev/null || plan_skip "no process namespaces on the nodes"
export ASSAY_PATH=$scratch
write_tick "$scratch"
# srun's stand-in: a step is a process namespace, of which nothing is left when its first process has ended.
mkdir "$scratch/bin"
cat >"$scratch/bin/srun" <<END
#!/bin/bash
for word; do case \$word in --nodelist=*) node=\${word#*=} ;; -*) ;; *) break ;; esac; shift; done
exec ssh -T -F $BED/ssh_config "\$node" "\$(printf '%q ' unshare --pid --fork --kill-child --mount-proc -- "\$@")"
END
chmod +x "$scratch/bin/srun"
run_there() { PATH=$scratch/bin:$PATH bed run "$ASSAY" run "$@"; }
are_clean() {
    local node
    for node; do bed on "$node" sh -c '! pgrep -a "^(assay-)?agent" && ! ls -d /tmp/assay-*-node-* 2>/dev/null' || return; done
}
campaign() { tick_campaign "$scratch/$1" 5 0 "{hosts: 'node-[1-2]', launcher: $2}" 'probes: none'; }

for way in srun "{attach: [ssh, -T, -F, '$BED/ssh_config', '{host}', '{command}']}"; do
    name=${way//[^a-z]/}
    name=${name:0:9}
    campaign "$name" "$way"
    run_there "$scratch/$name.yaml" -o "$scratch/$name" >"$scratch/out" 2>"$scratch/err"
    status=$?
    [ $status -eq 0 ] || sed 's/^/# /' "$scratch/err"
    report $status "a campaign runs on two nodes by $name"
    archive=$(tail -n 1 "$scratch/out")
    check "... and its archive verifies" "$ASSAY" archive verify "$archive"
    check "... with units of both" test "$("$ASSAY" archive cat "$archive" results/results.csv | cut -d, -f6 | sort -u | grep -c '^node-')" -eq 2
    check "... and its agents have left" eventually are_clean 1 2
done
"$ASSAY" run "$scratch/srun.yaml" --dry-run -o "$scratch/none" >"$scratch/plan"
check "the plan shows what starts the agents" grep -qE "^launcher     started by srun --overlap .*--nodelist=\{host\} .*\{command\.\.\.\}$" "$scratch/plan"
check "... and what reaches them" grep -q "^launcher     reached by srun" "$scratch/plan"

refused() { # refused NAME PATTERN LAUNCHER
    campaign refused "$3"
    refuse "$1" 2 "$2" "$ASSAY" run "$scratch/refused.yaml" -o "$scratch/none"
}
refused "a launcher that is not known" "refused.yaml:[0-9]+:[0-9]+: .*'launcher' is 'rsh', expected ssh, srun, oarsh, or \{attach" rsh
refused "words without a place for the command" "'attach' lacks a placeholder; expected \{command\} or \{command\.\.\.\}" "{attach: [rsh, '{host}']}"
refused "a place within a word" "'attach' lacks a placeholder; expected \{command\} and" "{attach: [rsh, '{host}', 'exec {command}']}"
refused "a step that starts and none that reaches" "has 'start' without 'attach'; give both" "{start: [srun, '{command...}']}"
refused "words that name no node" "'attach' lacks a placeholder; expected \{node\} or \{host\}" "{attach: [rsh, '{command}']}"
refused "what stands for nothing" "expected nothing in braces but \{node\}" "{attach: [rsh, '{hst}', '{command}']}"
refused "nothing at all" "'launcher' is empty, expected ssh" "{}"
refused "a login that another program makes" "'user' is used only where assay connects by ssh itself, and 'launcher' names another program" "srun, user: root"
finish
