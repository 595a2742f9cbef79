#!/bin/bash
# Campaigns on `testbed: oar`, by a real OAR whose nodes are those of a test bed. With ASSAY_TEST_ALL all of it, which takes
# minutes; without, a campaign by each interface, a job that is deleted, and one whose engine was killed.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
. "$ASSAY_SOURCE/tests/integration/oar-bed.sh"
. "$ASSAY_SOURCE/tests/faults/killed-runs.sh"
id oar >/dev/null 2>&1 || plan_skip "no OAR (oar-server-pgsql, oar-user-pgsql, oar-node, libdbd-pg-perl, postgresql)"
oar_take || plan_skip "no OAR"
user=assay_oar # OAR lends nothing to root, and its API takes no other letters in a name
home=$(mktemp -d /var/tmp/assay-oar-XXXXXX)
useradd -M -d "$home" "$user" 2>/dev/null; usermod -p '*' "$user"
cleanup() { [ -z "${oar_settings:-}" ] || oar_down; userdel "$user"; rm -rf "$home"; }
shared=$scratch/shared # which all nodes see, as a cluster's file system; and assay too
mkdir "$shared"
chmod 755 "$scratch"
copy_for_all "$scratch/assay"
bed_first 4 --share "$scratch"
oar_up || { report 1 "OAR comes up"; finish; }
cd "$scratch" || exit
write_tick "$scratch"
mkdir ssh && cp "$BED"/{id_ed25519,known_hosts,ssh_config} ssh && sed -i "s|$BED|$scratch/ssh|g" ssh/ssh_config
mkdir odd # an oarstat that says more, and what a user's shell has for the user's own calls of it
printf '#!/bin/sh\necho "Warning: maintenance of {the site}"\n%s "$@" || exit\necho "[end]"\n' "$(command -v oarstat)" >odd/oarstat
chmod +x odd/oarstat
own="OAR_JOB_ID=1 OAR_OARSTAT_OUTPUT_FORMAT=2 PATH=$scratch/odd:\$PATH"
as_user() { chown -R "$user" "$scratch" 2>/dev/null; bed run su "$user" -s /bin/sh -c "cd $scratch && ASSAY_PATH=$scratch HOME=$home TMPDIR=$scratch $own $*"; }
jobs_over() { ! bed run oarstat -u "$user" | grep -qE '^[0-9]+ +[RWLS] '; }

tick_campaign "$scratch/lent" 20 0 "{oar: {cluster: bed, nodes: 2, walltime: 10min}, ssh-config: $scratch/ssh/ssh_config}"
check "a campaign runs on nodes that OAR lends" as_user "$ASSAY" run lent.yaml -o lent
is "each unit on each node" "$("$ASSAY" archive cat lent/*.zip results/results.csv | tail -n +2 | wc -l)" 40
check "when the job ends is the run's deadline" grep -q '"source":"testbed"' lent/*/journal.jsonl
check "and gives them back" eventually jobs_over

tick_campaign "$scratch/many" 4 0 "{oar: {cluster: bed, nodes: 40, walltime: 10min}, ssh-config: $scratch/ssh/ssh_config}"
refuse "more nodes than there are, in OAR's words" 1 'oarsub ended with exit status [0-9]+: .' as_user "$ASSAY" run many.yaml -o many
tick_campaign "$scratch/array" 4 0 "{oar: {cluster: bed, nodes: 1, walltime: 10min, options: [--array, '2']}}"
refuse "several jobs" 2 "array.yaml:4:.*'--array'.*an option that leaves it one job" as_user "$ASSAY" run array.yaml -o array --dry-run
if [ -n "${ASSAY_TEST_ALL:-}" ]; then # as far as the job that is deleted
tick_campaign "$scratch/raw" 4 0 "{oar: {resources: '/nodes=1,walltime=0:05'}, ssh-config: $scratch/ssh/ssh_config}"
check "oarsub's own words" as_user "$ASSAY" run raw.yaml -o raw
check "and gives them back" eventually jobs_over

# ---- the engine in the job
tick_campaign "$scratch/within" 20 0 "{oar: {cluster: bed, nodes: 2, walltime: 10min}, ssh-config: $scratch/ssh/ssh_config}"
begin_within() { as_user "$ASSAY" run within.yaml -o "$shared" --detach=job >"$scratch/began"; run=$(cat "$scratch/began"); }
check "a job with the engine in it is submitted" begin_within
check "it measures" as_user "$ASSAY" watch "$run"
is "each unit on each node" "$("$ASSAY" archive cat "$run.zip" results/results.csv | tail -n +2 | wc -l)" 40
check "the job that it is in was its reservation" grep -q "using job [0-9]* of OAR" "$run/logs/engine.log"
check "and ended with it" eventually jobs_over

# ---- dgemm and MPI, on real experiments
on_two() { # on_two EXPERIMENT KEYS
    printf '%s\n' "experiment: $1" "testbed: {oar: {cluster: bed, nodes: 2, walltime: 10min}, ssh-config: $scratch/ssh/ssh_config}" \
        'probes: none' "$2" >"$1.yaml"
    check "$1 in a job of OAR" as_user "$ASSAY" run "$1.yaml" -o "of-$1"
}
column() { awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } NR > 1 { print $at }' "$1"/*/results/results.csv | sort -u | xargs; }
on_two dgemm 'design: {factors: {m: [32], n: [32], k: [16, 32]}}'
is "... on both nodes" "$(column of-dgemm node | wc -w)" 2
on_two mpi-preflight 'options: {mpicc: mpicc.openmpi, mpirun: mpirun.openmpi}'
is "... between both" "$(column of-mpi-preflight pairs)" 1

# ---- a job whose walltime is over before all is measured, continued in another, on what nodes there are
for node in $(cat "$BED/nodes"); do bed on "$node" touch /tmp/doomed; done # units are slow
tick_campaign "$scratch/timed" 500 0 "{oar: {cluster: bed, nodes: 2, walltime: 60s}, ssh-config: $scratch/ssh/ssh_config}"
as_user "$ASSAY" run timed.yaml -o timed >"$scratch/timed.out" 2>&1
is "a run that its job's walltime ends is partial" "$?" 6
nodes_of() { sed -n 's/.*"event":"node","name":"\([^"]*\)".*/\1/p' timed/*/journal.jsonl | "$@" | xargs; }
first=$(nodes_of head -n 2)
hold() { as_user "oarsub -l nodes=2,walltime=0:05 -p \"host='${first% *}' OR host='${first#* }'\" 'sleep 300' >held"; }
check "others take its nodes" eventually hold
for node in $(cat "$BED/nodes"); do bed on "$node" rm -f /tmp/doomed; done
check "it is resumed in another job" as_user "$ASSAY" resume timed/*/
is "... on other nodes" "$(nodes_of tail -n 2 | tr ' ' '\n' | grep -cE "^(${first% *}|${first#* })$")" 0
is "... which have measured all units" "$("$ASSAY" archive cat timed/*-2.zip results/results.csv | awk -F, 'NR > 1 { n[$6]++ } END { for (i in n) all += n[i] == 500; print (all >= 2) }')" 1
as_user oardel "$(sed -n 's/OAR_JOB_ID=//p' held)" >/dev/null
check "and all is given back" eventually jobs_over
fi

# ---- a job that is deleted under the engine, and one whose engine was killed
for node in $(cat "$BED/nodes"); do bed on "$node" touch /tmp/doomed; done # units are slow
tick_campaign "$scratch/taken" 2000 0 "{oar: {cluster: bed, nodes: 2, walltime: 10min}, ssh-config: $scratch/ssh/ssh_config}"
has_rows() { [ "$(cat "$1"/*/results/results.csv 2>/dev/null | wc -l)" -gt 4 ]; }
number() { sed -n 's/.*"event":"reservation","testbed":"oar","id":"\([0-9]*\)".*/\1/p' "$1"/*/journal.jsonl; }
as_user "$ASSAY" run taken.yaml -o taken 2>"$scratch/taken.err" >/dev/null & engine=$!
check "a campaign measures" eventually has_rows taken
as_user oardel "$(number taken)" >/dev/null
wait $engine
is "a run whose job is deleted ends as partial" "$?" 6
check "which says why" grep -qE "job $(number taken) of OAR (was over|is ending) before it was given back" taken/*/logs/engine.log
printf 'echo $$ >engine.pid\nexec "$@"\n' >engine.sh
as_user sh engine.sh "$ASSAY" run taken.yaml -o left >/dev/null 2>&1 & engine=$!
check "another measures" eventually has_rows left
kill -KILL "$(cat engine.pid)"
wait $engine
release_it() { as_user "$ASSAY" release left/*/ >"$scratch/released"; }
check "release deletes the job of an engine that was killed" release_it
check "which it says" grep -qx "job $(number left) of OAR is deleted" "$scratch/released"
check "and it is gone" eventually jobs_over
check "again, there is none" release_it
check "which it says" grep -q "OAR has no job 'assay-.*' that waits or runs" "$scratch/released"

# ---- more time, of which OAR grants an hour
if [ -n "${ASSAY_TEST_ALL:-}" ]; then
reports() { grep -q "$2" "$1"/*/logs/engine.log 2>/dev/null; }
run_for_long() { # run_for_long NAME KEYS
    tick_campaign "$scratch/$1" 2000 0 "{oar: {cluster: bed, nodes: 1, walltime: 10min, $2}, ssh-config: $scratch/ssh/ssh_config}"
    as_user sh engine.sh "$ASSAY" run "$1.yaml" -o "$1" >/dev/null 2>&1 & engine=$!
    check "$1: a campaign measures" eventually has_rows "$1"
}
end_of_run() { kill -TERM "$(cat engine.pid)"; wait $engine; }
run_for_long longer 'extend: 30min'
check "more time is asked for" reports longer 'asked to extend job [0-9]* of OAR by 30 min'
check "and what is granted moves the end of the run" eventually reports longer 'the reservation now ends at'
end_of_run
run_for_long too-long 'extend: 2h'
check "more than OAR grants is refused in its words" reports too-long 'cannot extend job .*oarwalltime .*cannot increase by more than'
end_of_run
fi

# ---- the same by OAR's REST API
if ! oar_api_up "$user" secret; then
    skip "campaigns by OAR's REST API" "none (oar-restful-api, apache2, libapache2-mod-fcgid, libcgi-fast-perl)"
    finish
fi
cp "$oar_api/authority.pem" authority.pem
(umask 077 && echo "machine 10.77.255.254 login $user password secret" >netrc && sed 's/secret/wrong/' netrc >wrong-netrc)
api='api: https://10.77.255.254:6668/oarapi, cluster: bed, walltime: 10min'
on_api() { # on_api NAME UNITS KEYS
    tick_campaign "$scratch/$1" "$2" 0 "{oar: {$api, $3}, ssh-config: $scratch/ssh/ssh_config}"
}
for node in $(cat "$BED/nodes"); do bed on "$node" rm /tmp/doomed; done
on_api asked 20 'nodes: 2, credentials: netrc, authority: authority.pem'
check "a campaign runs on nodes that the API of OAR lends" as_user "$ASSAY" run asked.yaml -o asked
is "each unit on each node" "$("$ASSAY" archive cat asked/*.zip results/results.csv | tail -n +2 | wc -l)" 40
check "when the job ends is the run's deadline" grep -q '"source":"testbed"' asked/*/journal.jsonl
check "and gives them back" eventually jobs_over
on_api stranger 4 'nodes: 1, credentials: wrong-netrc, authority: authority.pem'
refuse "wrong credentials" 1 'GET /whoami.json.* was answered with status 401 \(wrong credentials\?\)' as_user "$ASSAY" run stranger.yaml -o stranger
on_api impostor 4 'nodes: 1, credentials: netrc'
refuse "a certificate that nobody vouches for" 1 'oarapi shows a certificate that is not trusted: .*certificate' as_user "$ASSAY" run impostor.yaml -o impostor
on_api crowd 4 'nodes: 40, credentials: netrc, authority: authority.pem'
refuse "more nodes than there are, in OAR's words" 1 'POST /jobs.json.* status 400: Oarsub command exited with status' as_user "$ASSAY" run crowd.yaml -o crowd
check "the password is nowhere in what is kept" sh -c '! grep -rq secret asked stranger impostor crowd'
[ -n "${ASSAY_TEST_ALL:-}" ] || finish
for node in $(cat "$BED/nodes"); do bed on "$node" touch /tmp/doomed; done
on_api gone 2000 'nodes: 2, credentials: netrc, authority: authority.pem, extend: 30min'
as_user sh engine.sh "$ASSAY" run gone.yaml -o gone >/dev/null 2>&1 & engine=$!
check "another measures" eventually has_rows gone
check "more time is asked for" reports gone 'asked to extend job [0-9]* of OAR by 30 min'
check "and what is granted moves the end of the run" eventually reports gone 'the reservation now ends at'
kill -KILL "$(cat engine.pid)"
wait $engine
release_gone() { as_user "$ASSAY" release gone/*/ >"$scratch/released"; }
check "release deletes the job of an engine that was killed" release_gone
check "which it says" grep -qx "job $(number gone) of OAR is deleted" "$scratch/released"
check "and it is gone" eventually jobs_over
check "again, there is none" release_gone
check "which it says" grep -q "OAR has no job 'assay-.*' that waits or runs" "$scratch/released"
finish
