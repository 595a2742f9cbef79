#!/bin/bash
# Campaigns on `testbed: slurm`, by a real Slurm whose nodes are those of a test bed.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
. "$ASSAY_SOURCE/tests/integration/slurm-bed.sh"
. "$ASSAY_SOURCE/tests/faults/killed-runs.sh"
shared=$scratch/shared # which all nodes see, as a cluster's file system; and assay too
mkdir "$shared"
chmod 755 "$scratch"
copy_for_all "$shared/assay"
bed_first 4 --share "$shared"
cleanup() { [ -z "${SLURM:-}" ] || slurm_down; }
slurm_up || { report 1 "Slurm comes up"; finish; }
cd "$scratch" || exit
export ASSAY_PATH=$scratch
write_tick "$scratch"
ssh="ssh-config: $BED/ssh_config"
# What a user's shell has for the user's own calls of squeue, sbatch and the others.
own="SQUEUE_PARTITION=gpu SQUEUE_ACCOUNT=x SQUEUE_QOS=x SQUEUE_STATES=F SQUEUE_USERS=daemon SQUEUE_NAMES=x SQUEUE_FORMAT=%i \
    SBATCH_ARRAY_INX=1-2 SBATCH_WAIT=1 SBATCH_EXCLUSIVE=user SBATCH_CLUSTERS=x SLURM_CLUSTERS=x SCANCEL_STATE=PENDING SCANCEL_PARTITION=gpu \
    SCANCEL_USER=daemon SLURM_LABELIO=1 SLURM_STDOUTMODE=none SLURM_STDINMODE=none SLURM_IMMEDIATE=1 SLURM_NTASKS=7 SLURM_EXACT=1 SRUN_OUTPUT=/x"
# shellcheck disable=SC2086 # words
there() { bed run env HOME=/root $own "$ASSAY" "$@"; } # nodes share no home with the front end
jobs() { bed run squeue -h -o '%T %j'; }
no_jobs() { [ -z "$(jobs | grep -v COMPLETING)" ]; }
lines() { "$ASSAY" archive cat "$1" results/results.csv | tail -n +2 | wc -l; }

# ---- by ssh, and by steps of srun
tick_campaign "$scratch/lent" 20 0 "{slurm: {nodes: 2, walltime: 10min, partition: test}, $ssh}"
check "a campaign runs on nodes that Slurm lends" there run lent.yaml -o ssh
is "each unit on each node" "$(lines ssh/*.zip)" 40
check "and gives them back" eventually no_jobs
check "when the job ends is the run's deadline" grep -q '"source":"testbed"' ssh/*/journal.jsonl
check "what the job is called is journalled" grep -q '"reservation".*"id":"1"' ssh/*/journal.jsonl

tick_campaign "$scratch/steps" 20 0 "{slurm: {nodes: 4, walltime: 10min}, launcher: srun}"
check "where ssh is closed, by steps of srun" there run steps.yaml -o steps
is "on each node, where the agent now is" "$(lines steps/*.zip)" 80
steps_of() { for node in $(cat "$BED/nodes"); do bed on "$node" grep "launch task StepId=$1\.[0-9]" /run/slurmd.log; done; }
tick_campaign "$scratch/more" 500 0 "{slurm: {nodes: 4, walltime: 10min}, launcher: srun}"
check "again, with more units" there run more.yaml -o steps
is "two steps a node, however many units" "$(steps_of 3 | wc -l)" 8
check "and gives them back" eventually no_jobs

# ---- by hand
tick_campaign "$scratch/hand" 20 0 "{slurm: {nodes: 2, walltime: 10min}, launcher: srun}"
reserved() { "$ASSAY" list --reservations --json "$1" | grep -c '"run_id"'; }
reserve() { there reserve hand.yaml -o hand -q >"$scratch/reserved"; }
by_hand() { [ "$(there nodes run --run hand/*/ --apart -- printenv SLURM_JOB_ID | grep -cx "$(sed -n 's/.*job \([0-9]*\),.*/\1/p' "$scratch/reserved")")" = 2 ]; }
check "nodes are reserved for use by hand" reserve
check "which it prints" grep -qE '^ *node\[[1-4][-,][1-4]\]$' "$scratch/reserved"
check "... with the end of the reservation" grep -q 'reserved *slurm, job [0-9]*, until 20[-0-9]* [0-9:]* UTC' "$scratch/reserved"
check "the job is left to run" eval 'jobs | grep -q "RUNNING assay-"'
is "assay list has it" "$(reserved hand)" 1
check "assay status says so" eval '"$ASSAY" status hand/*/ | grep -q "status *reserved"'
refuse "there is nothing to attach to" 2 "no engine works on the run .*assay resume.* measures on what is reserved" there watch hand/*/
check "assay nodes runs commands as steps of it" by_hand
check "assay resume measures on it" there resume hand/*/ -q
is "... on the same job" "$(grep -oh '"reservation","testbed":"slurm","id":"[0-9]*"' hand/*/journal.jsonl | sort -u | wc -l)" 1
is "... everything" "$(lines hand/*.zip)" 40
is "... and gives it back, which assay list knows" "$(no_jobs; reserved hand)" 0
rm -r hand
check "nodes are reserved again" reserve
# Root may delete any job: that of somebody else, who calls it as ours, must not be taken for ours.
bed run setpriv --reuid=nobody --regid=nogroup --clear-groups sbatch -Q -J "$(jobs | sed 's/.* //')" -D / -o /dev/null --wrap='sleep 600'
namesakes() { [ "$(jobs | grep -c RUNNING)" = "$1" ]; }
check "somebody else's job has its name" eventually namesakes 2
check "assay release gives them back" there release hand/*/
check "... and leaves the other" eventually namesakes 1
bed run scancel --user=nobody
is "which assay list knows" "$(reserved hand)" 0
refuse "there are no nodes then" 2 'the run has no nodes reserved' there nodes show --run hand/*/
refuse "a run whose testbed says how nodes are reached" 2 '--user beside --run' there nodes show --run hand/*/ -l root
tick_campaign "$scratch/here" 4 0 local
refuse "what lends nothing" 2 "the testbed 'local' has no reservations" there reserve here.yaml -o here

# ---- in an allocation of the user's
tick_campaign "$scratch/allocated" 4 0 "{hosts: 'node[1-2]', launcher: srun}"
# shellcheck disable=SC2086 # words
in_allocation() { bed run env HOME=/root salloc -Q --nodelist='node[1-2]' env $own "$ASSAY" run allocated.yaml -o allocated; }
check "steps of the job that assay is called in" in_allocation

# ---- a partition that is hidden from all but root, and nodes that nobody can read
as_nobody() { bed run setpriv --reuid=nobody --regid=nogroup --clear-groups env "HOME=$shared/nobody" "$ASSAY" "$@"; }
mkdir "$shared/nobody" && chown nobody "$shared/nobody"
tick_campaign "$scratch/hidden" 4 0 "{slurm: {nodes: 1, walltime: 10min, partition: hidden}, launcher: srun}"
check "a campaign runs in a hidden partition" as_nobody run hidden.yaml -o "$shared/nobody"
check "and gives back what it had" eventually no_jobs
mkdir odd
printf '#!/bin/sh\n%s "$@" | sed "s/|node[^|]*|/|-oProxyCommand=x|/"\n' "$(command -v squeue)" >odd/squeue
chmod +x odd/squeue
PATH=$scratch/odd:$PATH refuse "nodes that are an option are refused" 1 "'-oProxyCommand=x'" there run lent.yaml -o odd
is "... and their job is deleted" "$(jobs | grep -v COMPLETING)" ""
check "... which the run knows" grep -q '"event":"reservation-released"' odd/*/journal.jsonl

rm -r hand
check "nodes are reserved" reserve
PATH=$scratch/odd:$PATH check "release deletes a job whose nodes cannot be read" there release hand/*/
is "... and it is gone" "$(jobs | grep -v COMPLETING)" ""

# ---- what is refused
tick_campaign "$scratch/refused" 4 0 "{slurm: {nodes: 1, walltime: 10min, partition: nowhere}, $ssh}"
refuse "a partition that is not there, in Slurm's words" 1 'sbatch ended with exit status 1: sbatch: error: .*invalid partition' \
    there run refused.yaml -o refused
tick_campaign "$scratch/many" 4 0 "{slurm: {nodes: 40, walltime: 10min, at-most-wait: 1s}, $ssh}"
refuse "waiting is given up after what the campaign says" 1 'has waited for 1 s' there run many.yaml -o many
check "with the job" eventually no_jobs
printf 'name: x\nexperiment: tick\ndesign: {file: lent.csv, seed: 1}\ntestbed: {slurm: {nodes: 1}}\n' >bad.yaml
refuse "a job without walltime" 2 "bad.yaml:4:18: .*'walltime'" there run bad.yaml --dry-run
printf 'name: x\nexperiment: tick\ndesign: {file: lent.csv, seed: 1}\ntestbed: slurm\n' >bad.yaml
refuse "a testbed without a job" 2 'expected slurm: \{nodes: 4, walltime: 2h' there run bad.yaml --dry-run

tick_campaign "$scratch/other" 4 0 "{slurm: {nodes: 1, walltime: 10min}, launcher: oarsh}"
refuse "another scheduler's launcher" 2 "'oarsh' cannot start programs in jobs of Slurm; expected ssh or srun" there run other.yaml --dry-run

# ---- an engine that dies while its job waits
ends_as() { wait "$shell_job"; local status=$?; [ "$status" -eq "$1" ] || { echo "exit $status"; cat "$scratch/engine.err"; return 1; }; }
bed run sbatch -Q --nodes=4 --exclusive --output=/dev/null --job-name=other --wrap='exec sleep 600'
tick_campaign "$scratch/waits" 20 0 "{slurm: {nodes: 2, walltime: 10min}, $ssh}"
export HOME=/root
start_engine "$scratch/dead" run waits.yaml -o waits --json
waits() { jobs | grep -q 'PENDING assay-'; }
check "a job waits while others have the nodes" eventually waits
kill -9 "$engine"
wait "$shell_job"
start_engine "$scratch/engine" reserve waits.yaml -o gone
check "so does one that is only reserved" eventually eval '[ "$(jobs | grep -c "PENDING assay-")" = 2 ]'
kill -INT "$engine"
check "interrupted, it gives that back" ends_as 4
is "... and leaves no run" "$(ls gone)" ""
is "assay list has what an engine that was killed has asked for" "$(reserved waits)" 1
bed run scancel --name=other
check "resuming takes over the job of an engine that was killed" there resume waits/*/
is "... which is the one it had" "$(grep -oh '"reservation".*"id":"[0-9]*"' waits/*/journal.jsonl | sort -u | wc -l)" 1
is "... and measures everything" "$(lines waits/*.zip)" 40
check "... and gives it back" eventually no_jobs

# ---- a job that ends under the engine, and a part on other nodes
slow() { for node in $(cat "$BED/nodes"); do bed on "$node" "$@" /tmp/doomed; done; }
slow touch # so that no run is done before it is disturbed
tick_campaign "$scratch/killed" 200 0 "{slurm: {nodes: 2, walltime: 10min}, $ssh}"
start_engine "$scratch/engine" run killed.yaml -o killed --json
measures() { [ "$(cat killed/*/results/results.csv 2>/dev/null | wc -l)" -gt 20 ]; }
check "a campaign measures" eventually measures
kill -INT "$engine"
wait "$shell_job"
check "an interrupted one gives the nodes back" eventually no_jobs
slow rm -f
given=$(sed -n 's/.*"event":"node","name":"\([^"]*\)".*/\1/p' killed/*/journal.jsonl | head -1)
bed run scontrol update nodename="$given" state=drain reason=test
check "it is resumed on other nodes" there resume killed/*/
check "which is said" grep -q "no longer gives node $given" killed/*/logs/engine.log
nodes_of() { "$ASSAY" archive cat "$1" results/results.csv | awk -F, 'NR > 1 {n[$6]++} END {for (i in n) if (n[i] == 200) print i}' | sort | tr '\n' ' '; }
is "two others have measured all units" "$(nodes_of "$(echo killed/*-2.zip)" | xargs -n1 | grep -cvx "$given")" 2
bed run scontrol update nodename="$given" state=resume

# ---- what happens to the job while it is used
tick_campaign "$scratch/taken" 2000 0 "{slurm: {nodes: 2, walltime: 10min}, $ssh}"
slow touch
ended="is ending before it was given back: COMPLETING" # one whose end takes long
begin() { # begin CAMPAIGN: an engine that measures; the job's number is $job
    rm -rf "$1"
    start_engine "$scratch/engine" run "$1.yaml" -o "$1" --json
    has_rows() { [ "$(cat "$1"/*/results/results.csv 2>/dev/null | wc -l)" -gt 4 ]; }
    eventually has_rows "$1"
    job=$(sed -n 's/.*"event":"reservation","testbed":"slurm","id":"\([0-9]*\)".*/\1/p' "$1"/*/journal.jsonl)
}
begin taken
bed run scancel "$job"
check "a run whose job is deleted ends as partial" ends_as 6
check "which says why" grep -qE "job $job of Slurm (was over before it was given back: CANCELLED|$ended)" taken/*/logs/engine.log
check "... and so does its last sentence" grep -q 'the nodes were taken away after [0-9]* of 4000 units' "$scratch/engine.err"
check "the units that are missing say so" sh -c '"$0" archive cat taken/*.zip results/missing.csv | grep -q ",revoked$"' "$ASSAY"
slow rm -f
check "it is resumed in another job" there resume taken/*/
nodes_with() { "$ASSAY" archive cat "$1" results/results.csv | awk -F, -v rows="$2" 'NR > 1 {n[$6]++} END {for (i in n) count += n[i] == rows; print count}'; }
is "... whose nodes, the same or others, have measured all units" "$(nodes_with "$(echo taken/*-2.zip)" 2000)" 2
slow touch
tick_campaign "$scratch/requeued" 2000 0 "{slurm: {nodes: 2, walltime: 10min, options: [--requeue]}, $ssh}"
begin requeued
bed run scontrol requeue "$job"
check "a run whose job begins anew ends as partial" ends_as 6
check "which says why" grep -qE "job $job of Slurm (was taken off its nodes, and waits again|$ended)" requeued/*/logs/engine.log
check "and deletes it" eventually no_jobs
for nodes in 2 1; do # a run on one node ends when that is lost
    tick_campaign "$scratch/stepped-$nodes" 2000 0 "{slurm: {nodes: $nodes, walltime: 10min}, launcher: srun}"
    begin stepped-$nodes
    bed run scancel "$job"
    check "$nodes: where the agents die with the job likewise" ends_as 6
    check "which says why" grep -qE "job $job of Slurm (was over before it was given back: CANCELLED|$ended)" stepped-$nodes/*/logs/engine.log
done
slow rm -f

# ---- while the job waits
bed run sbatch -Q --nodes=4 --exclusive --output=/dev/null --job-name=other --wrap='exec sleep 600'
start_engine "$scratch/engine" run waits.yaml -o patient --json
check "a job waits" eventually waits
says_why() { "$ASSAY" status patient/*/ | grep -q 'reservation *job [0-9]* of Slurm waits: [A-Z]'; }
check "assay status says for what" eventually says_why
refuse "a run that waits gives its nodes back itself" 2 'process [0-9]' there release patient/*/
kill -INT "$engine"
check "waiting is interrupted" ends_as 4
is "and the job is given back" "$(jobs | grep -c assay-)" 0
start_engine "$scratch/engine" run waits.yaml -o away --json
check "a job waits" eventually waits
kill "$(cat "$SLURM/slurmctld.pid")"
eventually slurm_is_away "$SLURM/slurmctld.pid"
is_missed() { grep -q 'Slurm does not answer; asking again' away/*/journal.jsonl; }
check "a scheduler that is away is asked again" eventually is_missed
bed run slurmctld
eventually bed run scancel --name=other
check "a job outlives its scheduler" ends_as 0
is "... and measures everything" "$(lines away/*.zip)" 40

mkdir slow
printf '#!/bin/sh\n%s "$@"\ntouch %s/submitted\nexec sleep 600\n' "$(command -v sbatch)" "$scratch" >slow/sbatch
chmod +x slow/sbatch
PATH=$scratch/slow:$PATH start_engine "$scratch/engine" run waits.yaml -o cut --json
check "sbatch has submitted, and has not answered" eventually test -e submitted
kill -INT "$engine"
check "the run is interrupted" ends_as 4
check "and the job, whose number it does not know, is given back" eventually no_jobs
rm submitted
PATH=$scratch/slow:$PATH start_engine "$scratch/engine" run lent.yaml -o unheard --json
check "another is killed then" eventually test -e submitted
kill_engine
is "assay list has the job that nobody lived to hear of" "$(reserved unheard)" 1
check "which release deletes" there release unheard/*/
is "... and assay list knows" "$(eventually no_jobs; reserved unheard)" 0
: >"$(echo unheard/*/)journal.jsonl"
has_nothing() { there release unheard/*/ | grep -q 'nothing is reserved: the engine was killed before the run had begun'; }
check "a run that was killed before it had begun has nothing" has_nothing

# ---- by a login node
# Its shell names the window, as many do, and ends no line.
bed on node4 sh -c 'echo "export SLURM_CONF=/run/slurm.conf; printf \"\\033]0;front end\\007\"" >/root/.bashrc'
mkdir none
printf '#!/bin/sh\nexit 3\n' | tee none/sbatch none/squeue >none/scancel
chmod +x none/*
tick_campaign "$scratch/login" 20 0 "{slurm: {nodes: 2, walltime: 10min, login: root@node4, partition: test}, $ssh}"
bed run sbatch -Q --nodes=4 --exclusive --output=/dev/null --job-name=other --wrap='exec sleep 600'
PATH=$scratch/none:$PATH start_engine "$scratch/engine" run login.yaml -o login --json
check "a job is submitted on a login node" eventually waits
sessions() { bed on node4 ps -eo pid=,args= | awk '/sshd: root@notty/ && !/awk/ {print $1}'; }
lose_login() { local ids; ids=$(sessions) && [ -n "$ids" ] && bed on node4 kill $ids; }
check "whose connection is lost" eventually lose_login
bed run scancel --name=other
check "which is connected again when it was lost" ends_as 0
is "... and everything is measured" "$(lines login/*.zip)" 40
check "and the job is given back" eventually no_jobs
tick_campaign "$scratch/nowhere" 4 0 "{slurm: {nodes: 2, walltime: 10min, login: root@node4, partition: test}, $ssh}"
bed on node4 sh -c 'echo "PATH=/nowhere" >>/root/.bashrc'
refuse "a login node without Slurm" 1 'squeue ended with exit status 127: .*not found' there run nowhere.yaml -o nowhere

# ---- what an engine that was killed has left
bed run sbatch -Q --nodes=4 --exclusive --output=/dev/null --job-name=other --wrap='exec sleep 600'
start_engine "$scratch/engine" run waits.yaml -o left --json
check "a job waits" eventually waits
kill_engine
release_it() { there release left/*/ >"$scratch/released"; }
check "release deletes the job of an engine that was killed" release_it
check "which it says" grep -qx 'job [0-9]* of Slurm is deleted' "$scratch/released"
is "... and it is gone" "$(jobs | grep -c assay-)" 0
check "again, there is none" release_it
check "which it says" grep -q "Slurm has no job 'assay-.*' that waits or runs" "$scratch/released"
bed run scancel --name=other

printf '#!/bin/sh\nkill -9 "$(cat %s/engine.pid)"\n' "$scratch" >slow/scancel
chmod +x slow/scancel
rm slow/sbatch
PATH=$scratch/slow:$PATH start_engine "$scratch/engine" run steps.yaml -o sealed --json
wait "$shell_job"
rm slow/scancel
has_job() { jobs >"$scratch/jobs" && grep -q 'RUNNING assay-' "$scratch/jobs"; } # one answer of a busy controller may lack it
kept_job() { eventually has_job || { cat "$scratch/jobs"; return 1; }; }
check "an engine is killed as it gives its job back" kept_job
check "... whose run is sealed" test -e sealed/*.zip
says_release() { "$ASSAY" status sealed/*/ | grep -q 'assay release sealed/.* gives back what is still reserved'; }
check "assay status says what gives the job back" says_release
check "... and assay resume does" there resume sealed/*/
is "... which has deleted it" "$(jobs | grep -v COMPLETING)" ""
is "... and assay list knows" "$(reserved sealed)" 0

# ---- the engine in the job
tick_campaign "$scratch/within" 40 0 "{slurm: {nodes: 2, walltime: 10min, partition: test}, launcher: srun}"
state_of() { bed run scontrol show job "$(bed run squeue -h --states=all -o '%i %j' | sort -n | tail -1 | cut -d' ' -f1)" | sed -n 's/ *JobState=\([A-Z]*\).*/\1/p'; }
no_waiting() { ! waits; }
begin_within() { there "$@" --detach=job >"$scratch/began"; run=$(cat "$scratch/began"); }
check "a job with the engine in it is submitted" begin_within run within.yaml -o "$shared" --until 9min
check "it measures" there watch "$run"
is "each unit on each node" "$(lines "$run.zip")" 80
check "the archive has Slurm's own description of the job" grep -q "JobId=.*JobName=assay-" \
    <("$ASSAY" archive cat "$run.zip" "$("$ASSAY" archive list "$run.zip" | awk '$NF ~ /^testbed\/job-[0-9]*\/job.txt$/ { print $NF }')")
check "... until the time that was meant then" sh -c '"$0" archive cat "$1.zip" run.json | tr -d " \n" | grep -Eq "\"--until\",\"[-0-9]+T[0-9:]+Z\""' "$ASSAY" "$run"
check "... and says there what it did" grep -qx "run folder: $run" "$run.out"
check "... the job that it is in was its reservation" grep -q "using job [0-9]* of Slurm" "$run/logs/engine.log"
check "... and ended with it, by itself" eventually no_jobs
is_in_order() { [ "$(state_of)" = COMPLETED ]; }
check "... in good order" eventually is_in_order
bed run sbatch -Q --nodes=4 --exclusive --output=/dev/null --job-name=other --wrap='exec sleep 600'
check "one waits in the queue" begin_within run within.yaml -o "$shared"
check "which status says" sh -c '"$0" status "$1" | grep -q "^status  *queued$"' "$ASSAY" "$run"
check "... and list" sh -c '"$0" list "$1" | grep -q " queued .*waits for its job"' "$ASSAY" "$shared"
refuse "it has not begun, and cannot be stopped" 2 "has not begun: its engine waits in job assay-" there stop "$run"
refuse "it is not submitted twice" 2 "exists already; delete it with 'assay release'" there resume "$run" --detach=job
check "it is taken out of the queue" there release "$run"
check "... and is gone" eventually no_waiting
check "... which status knows" sh -c '"$0" status "$1" | grep -q "^status  *stopped"' "$ASSAY" "$run"
check "it is put there again" begin_within resume "$run"
echo '# for the next one' >>"$scratch/within.yaml" # it was begun with what it was
bed run scancel --name=other
check "... and measures when its job begins" there watch "$run"
is "... everything" "$(lines "$run.zip")" 80
slow touch
tick_campaign "$scratch/stays" 2000 0 "{slurm: {nodes: 2, walltime: 10min, partition: test}, launcher: srun}"
check "a job's engine measures" begin_within run stays.yaml -o "$shared"
check "... units" eventually grep -qs '"event":"results"' "$run/journal.jsonl"
refuse "stop is for engines of the same machine" 2 'on host node[1-4] works on the run' there stop "$run"
owner() { "$ASSAY" status --json "$run" | sed -n "s/^ *\"$1\": \"*\([a-z0-9]*\)\"*,*\$/\1/p" | head -1; }
bed on "$(owner host)" kill -9 "$(owner pid)"
refuse "attach ends when the engine is killed" 1 "the engine of '$run' ended before the run was sealed" there watch "$run"
check "... and the job with it" eventually no_jobs
slow rm -f
check "what is left is resumed" there resume "$run"
is "... everything is measured" "$(nodes_with "$run.zip" 2000)" 2
left=$(ls "$shared")
tick_campaign "$scratch/nowhere" 4 0 "{slurm: {nodes: 1, walltime: 10min, partition: nowhere}, $ssh}"
refuse "a job that is refused leaves no run" 1 'invalid partition' there run nowhere.yaml -o "$shared" --detach=job
is "... nor anything else" "$(ls "$shared")" "$left"
refuse "the login node's path is not a node's" 2 "expected no 'login'" there run login.yaml -o "$shared" --detach=job
refuse "a path that a shell could change" 2 "cannot be the command of a job" there run within.yaml -o "$shared/a b" --detach=job

# ---- what is refused before anything is asked for
tick_campaign "$scratch/controls" 4 0 "{slurm: {nodes: 1, walltime: 10min}, launcher: srun}" 'controls: {turbo: off}'
refuse "controls that the end of the job would leave set" 2 "controls.yaml:5:[0-9]*: .*use 'launcher: ssh', or set no controls" \
    there run controls.yaml --dry-run
tick_campaign "$scratch/controls" 4 0 "{oar: {nodes: 1, walltime: 10min}, launcher: oarsh, sudo: yes}" 'controls: {turbo: off}'
refuse "... nor in OAR's cpusets" 2 "with the launcher 'srun' or 'oarsh'" there run controls.yaml --dry-run
finish
