#!/bin/bash
# What a real Slurm, its users and its administrators do to the job of a run, while it waits, while it is measured on, and
# when it is given back.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
. "$ASSAY_SOURCE/tests/integration/slurm-bed.sh"
. "$ASSAY_SOURCE/tests/faults/killed-runs.sh"
bed_first 3
cleanup() { [ -z "${SLURM:-}" ] || slurm_down; }
slurm_up || { report 1 "Slurm comes up"; finish; }
cd "$scratch" || exit
export ASSAY_PATH=$scratch HOME=/root
write_tick "$scratch"
there() { bed run "$ASSAY" "$@"; }
jobs() { bed run squeue -h -o '%T %j'; }
no_jobs() { [ -z "$(jobs | grep -v COMPLETING)" ]; }
lines() { "$ASSAY" archive cat "$1" results/results.csv | tail -n +2 | wc -l; }
slow() { for node in $(cat "$BED/nodes"); do bed on "$node" "$@" /tmp/doomed; done; } # no run is done before it is disturbed
has_rows() { [ "$(cat "$1"/*/results/results.csv 2>/dev/null | wc -l)" -gt "${2:-4}" ]; }
number() { sed -n 's/.*"event":"reservation","testbed":"slurm","id":"\([0-9]*\)".*/\1/p' "$1"/*/journal.jsonl; }
ends_as() { wait "$shell_job"; local status=$?; [ "$status" -eq "$1" ] || { echo "exit $status"; cat "$scratch/engine.err"; return 1; }; }
run_with() { # run_with NAME TESTBED: an engine in the background
    tick_campaign "$scratch/$1" 1000 0 "$2"
    start_engine "$scratch/engine" run "$1.yaml" -o "$1" --json
}
begin() { # begin NAME: one that measures on two nodes; $job is its number
    run_with "$1" "{slurm: {nodes: 2, walltime: 10min}, ssh-config: $BED/ssh_config}"
    eventually has_rows "$1"
    job=$(number "$1")
}
others_run() { jobs | grep -q 'RUNNING other'; }
others_have_all() { bed run sbatch -Q --nodes=3 --exclusive --output=/dev/null --job-name=other --wrap='exec sleep 600'; eventually others_run; }
waits() { jobs | grep -q 'PENDING assay-'; }
stop_controller() { kill "$(cat "$SLURM/slurmctld.pid")" && eventually slurm_is_away "$SLURM/slurmctld.pid"; }

# ---- by others, while it waits
others_have_all
run_with waits "{slurm: {nodes: 2, walltime: 10min}, ssh-config: $BED/ssh_config}"
check "a job waits" eventually waits
bed run scancel "$(number waits)"
check "a job that its user deletes while it waits ends the run" ends_as 1
check "which says so" grep -q "job [0-9]* of Slurm ended before it began: CANCELLED" "$scratch/engine.err"

# ---- an engine that dies after its job is submitted, and before it knows the number
mkdir bin
printf '#!/bin/sh\n%s "$@" >/dev/null\nkill -9 "$(cat %s/engine.pid)"\n' "$(command -v sbatch)" "$scratch" >bin/sbatch
chmod +x bin/sbatch
PATH=$scratch/bin:$PATH run_with unknown "{slurm: {nodes: 2, walltime: 10min}, ssh-config: $BED/ssh_config}"
wait "$shell_job"
check "an engine is killed, and its job waits" eventually waits
is "... whose number is not in the journal" "$(number unknown)" ""
bed run scancel --name=other
check "the run is resumed in that job" there resume unknown/*/
check "which it found by its name" grep -q "using job [0-9]* of Slurm" unknown/*/logs/engine.log
is "... and measures everything" "$(lines unknown/*.zip)" 2000
check "... and gives it back" eventually no_jobs

# ---- while it is used
slow touch
ended="is ending before it was given back: COMPLETING" # one whose end takes long
begin failed
bed run scontrol update nodename="$(bed run squeue -h -j "$job" -o %N | sed 's/\[\([0-9]\).*/\1/')" state=down reason=test
check "a node that Slurm takes for dead ends the run as partial" ends_as 6
check "which says why" grep -qE "job $job of Slurm (was over before it was given back: NODE_FAIL|$ended)" failed/*/logs/engine.log
check "its job does not begin again" eventually no_jobs
for node in $(cat "$BED/nodes"); do bed run scontrol update nodename="$node" state=resume 2>/dev/null; done
eventually slurm_is_idle
begin late
bed run scontrol update jobid="$job" EndTime=now
check "a job whose time is shortened ends the run as partial" ends_as 6
check "which says why" grep -qE "job $job of Slurm was over before it was given back: TIMEOUT|the reservation now ends at|$ended" late/*/logs/engine.log

# ---- a scheduler that is away while the nodes are used, and when they are given back
printf '#!/bin/sh\n%s "$@" || { echo $? >>%s/missed; exit 1; }\n' "$(command -v squeue)" "$scratch" >bin/squeue
chmod +x bin/squeue
rm bin/sbatch
PATH=$scratch/bin:$PATH begin unheard
stop_controller
check "a scheduler that is away is asked while the nodes are used" eventually test -s missed
check "... and the run continues" eventually has_rows unheard $((20 + $(cat unheard/*/results/results.csv | wc -l)))
kill -INT "$engine"
is_sealed() { test -e unheard/*.zip; }
eventually is_sealed # the nodes are given back after that
missed=$(wc -l <missed)
is_missed() { [ "$(wc -l <missed)" -gt "$missed" ]; }
check "it is asked again when the nodes are given back" eventually is_missed
bed run slurmctld
check "the run ends" ends_as 4
check "and its job is given back" eventually no_jobs

# ---- another job in place of one that was taken
tick_campaign "$scratch/again" 1000 0 "{slurm: {nodes: 2, walltime: 10min}, ssh-config: $BED/ssh_config}"
start_engine "$scratch/engine" run again.yaml -o again --resubmit --json
eventually has_rows again
bed run scancel "$(number again)"
has_two_jobs() { [ "$(number again | sort -u | wc -l)" = 2 ]; }
check "with --resubmit a run gets another job when its job is deleted" eventually has_two_jobs
slow rm -f
check "... and continues in it" ends_as 0
check "... until each node of that has measured everything" test "$(lines again/*-2.zip)" -ge 2000
finish
