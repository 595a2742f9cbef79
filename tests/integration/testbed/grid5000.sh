#!/bin/bash
# Campaigns on `testbed: grid5000`: its API is a server of the test, and its nodes are those of a test bed.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
. "$ASSAY_SOURCE/tests/faults/killed-runs.sh"
perl -MIO::Socket::SSL -MJSON::PP -e 1 2>/dev/null || plan_skip "no perl with libio-socket-ssl-perl"
bed_first 4 --names 'dahu-%.grenoble.grid5000.fr'
cd "$scratch" || exit
export ASSAY_PATH=$scratch
write_tick "$scratch"
password=not-for-the-archive
ssh-keygen -q -y -f "$BED/id_ed25519" >key.pub
netrc() { (umask 077; printf 'machine 127.0.0.1 login jdoe password %s\n' "$1" >"$2"); }
netrc "$password" "$BED/home/.netrc"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1 \
    -addext subjectAltName=IP:127.0.0.1 -keyout server.key -out server.pem 2>/dev/null
cleanup() { [ -z "${server:-}" ] || kill "$server"; }
nodes=$(cat "$BED/nodes")

# serve NAME [FILE TEXT]...: another server, with nothing done yet; $api is its folder
serve() {
    [ -z "${server:-}" ] || { kill "$server"; wait "$server"; } 2>/dev/null
    api=$scratch/$1; shift
    mkdir "$api" && cp server.key server.pem "$api"
    while [ $# -gt 0 ]; do printf '%s' "$2" >"$api/$1"; shift 2; done
    # shellcheck disable=SC2086 # names
    bed run perl "$ASSAY_SOURCE/tests/integration/testbed/grid5000-server.pl" "$api" $nodes 2>"$api/err" & server=$!
    eventually test -s "$api/port"
}
# campaign NAME KEYS [LINE...]: NAME.yaml for that server
campaign() {
    local name=$1 keys=$2; shift 2
    tick_campaign "$scratch/$name" 20 0 "{grid5000: {site: grenoble, cluster: dahu, walltime: 1h, api: 'https://127.0.0.1:$(cat "$api/port")/stable',
  authority: server.pem, $keys}, ssh-config: $BED/ssh_config, timeout: 60 s}" "$@"
}
deployed='environment: debian12-min, key: key.pub'
there() { bed run "$ASSAY" "$@"; }
asked() { grep -cE "$1" "$api/log"; }
no_job_left() { release_it && grep -q "Grid'5000 has no job 'assay-.*' that waits or runs" released; }
number() { sed -n 's/.*"event":"reservation","testbed":"grid5000","id":"\([0-9]*\)".*/\1/p' "$1"/*/journal.jsonl; }
lines() { "$ASSAY" archive cat "$1" results/results.csv | tail -n +2 | wc -l; }
has_file() { "$ASSAY" archive cat "$1" "$2" >"$scratch/.file" && grep -q "$3" "$scratch/.file"; }

# ---- a whole campaign: one node fails at first, answers are stale and late
serve well ko 'dahu-3.grenoble.grid5000.fr 1'
campaign lent "nodes: {want: 4, at-least: 3}, $deployed, monitor: wattmetre_power_watt"
check "a campaign runs on nodes that Grid'5000 lends" there run lent.yaml -o lent
job=$(number lent)
is "each unit on each node" "$(lines lent/*.zip)" 80
is "a job that deploys, with its metrics" "$(grep -o '"types":\[.*\]' "$api/log")" '"types":["deploy","monitor=wattmetre_power_watt"]'
is "of the deployments, the second is of the node that failed" \
    "$(grep 'POST .*/deployments' "$api/log" | grep -o '"nodes":\[[^]]*\]' | tail -n +2)" '"nodes":["dahu-3.grenoble.grid5000.fr"]'
is "the newest version, which is named" "$(grep -c 'POST .*/deployments .*"version":2026010100' "$api/log")" 2
check "the environment is in the archive" has_file lent/*.zip "testbed/job-$job/environment.json" 'server:///images/2026010100'
check "the deployments, too" has_file lent/*.zip "testbed/job-$job/deployment-2.json" '"state": "OK"'
check "the hardware, too" has_file lent/*.zip "testbed/job-$job/reference.json" '"cpu_core_numbering" : "round-robin"'
check "what was measured outside, too" has_file lent/*.zip "testbed/job-$job/metrics.csv" '^time,node,metric,source,value,unit$'
is "... each port by itself, nothing of another window" \
    "$(cut -d, -f2-6 .file | sort | uniq -c | grep -c '^ *1 dahu-[1-4],wattmetre_power_watt,wattmetre1-port[12],9[89].5,W$')" 8
check "... in the archive's form of times" grep -qE '^20[0-9-]{8}T[0-9:]{8}\.250000000Z,' .file
check "when the job ends is the run's deadline" grep -q '"source":"testbed"' lent/*/journal.jsonl
is "the job is deleted, once" "$(asked "DELETE /sites/grenoble/jobs/$job")" 1
check "releasing it again finds none" there release lent/*/
is "no password is anywhere in the run" "$(grep -rc "$password" lent well/log | grep -v ':0$')" ''

# ---- nodes that fail for ever
serve one ko 'dahu-2.grenoble.grid5000.fr 9'
campaign three "nodes: {want: 4, at-least: 3}, $deployed, version: 2021090715, queue: production"
mkdir bin
printf '#!/bin/sh\n[ "$*" = -t ] && echo "%s"\n' '{\"limits\": {\"grenoble\": {\"dahu\": {\"time\": 7200, \"nb_cores\": 256}}}}' >bin/usagepolicycheck
chmod +x bin/usagepolicycheck
PATH=$scratch/bin:$PATH check "a campaign runs where enough nodes are deployed" there run three.yaml -o three
printf '#!/bin/sh\necho "jdoe has used too much of dahu" >&2\nexit 1\n' >bin/usagepolicycheck
is "... on those" "$(lines three/*.zip)" 60
is "... after three attempts" "$(asked 'POST .*/deployments .*2021090715')" 3
check "... which is said" grep -q "is deployed on 3 of 4 nodes, which 'at-least' accepts; dahu-2.grenoble.grid5000.fr failed, and is left out" three/*/logs/engine.log
is "... submitted for no time in particular" "$(asked 'POST .*/jobs .*"reservation"')" 0
check "... which the frontend's own check was asked about" grep -q 'limits of usagepolicycheck for dahu, time 7200, nb_cores 256' three/*/logs/engine.log
serve none ko "$(for node in $nodes; do echo "$node 9"; done)" error 1
campaign four "nodes: 4, $deployed"
PATH=$scratch/bin:$PATH refuse "where none is, the run fails, with their names" 1 'deployed on 0 of 4 nodes; at least 4 are needed .*dahu-\[1-4\]' there run four.yaml -o four
is "... and the job is deleted" "$(asked 'DELETE .*/jobs/')" 1
check "... what the frontend's own check had against the user is said" grep -q 'usagepolicycheck: jdoe has used too much of dahu' four/*/logs/engine.log
serve cut
bed cut 4
campaign silent "nodes: 4, $deployed" 'node-loss: abort'
sed -i 's/timeout: 60 s/timeout: 1 s/' silent.yaml
refuse "a node that does not answer after its deployment is named" 1 'dahu-(4|\[.*4\])' there run silent.yaml -o silent
is "... and the job is deleted" "$(asked 'DELETE .*/jobs/')" 1
bed mend 4

# ---- an API in trouble; nodes as they are, with root by sudo-g5k
for node in $nodes; do bed on "$node" sh -c 'printf "#!/bin/sh\necho \"\$@\" >/tmp/asked\ncat >>/tmp/asked\n" >/usr/local/bin/sudo-g5k; chmod +x /usr/local/bin/sudo-g5k'; done
serve trouble faults '1 500 ^GET /sites\?
1 html GET .*/clusters
1 half GET .*/jobs\?
1 nothing GET .*/jobs/
1 nothing POST .*/jobs
2 half deep=1
9 500 deep=1
99 500 /metrics'
campaign rooted 'nodes: 2, sudo-g5k: yes, monitor: [wattmetre_power_watt, bmc_node_power_watt]'
refuse "an answer that was lost: nobody knows of the job" 1 'POST /sites/grenoble/jobs' there run rooted.yaml -o lost
is "... which is found, and deleted" "$(asked 'DELETE .*/jobs/')" 1
check "a campaign outlives an API in trouble" there run rooted.yaml -o rooted
is "... on nodes whose root was let in" "$(for node in 1 2 3 4; do bed on $node grep -qx "tee -a /root/.ssh/authorized_keys" /tmp/asked 2>/dev/null && echo $node; done | tr '\n' ' ')" '1 2 '
check "... whose descriptions were asked for one by one" has_file rooted/*.zip "$(cd rooted/*/ && echo testbed/job-*/reference-dahu-2.json)" round-robin
check "... and says what it did not get" grep -q "lacks some of Grid'5000's metrics (the run is not affected): GET .* status 500: Internal Server Error" rooted/*/logs/engine.log

# ---- what is refused, and what is not
cp key.pub "$BED/home/.ssh/id_ed25519.pub"
check "the example is a campaign" there run "$ASSAY_SOURCE/examples/grid5000.yaml" --dry-run
serve refused
netrc wrong wrong.netrc
campaign wrong "nodes: 1, credentials: wrong.netrc"
refuse "wrong credentials" 1 'status 401' there run wrong.yaml -o wrong
campaign cluster "nodes: 1"; sed -i 's/cluster: dahu/cluster: dhau/' cluster.yaml
refuse "a cluster that there is not: the nearest is named" 2 "no cluster 'dhau'; did you mean 'dahu'" there run cluster.yaml -o refused
campaign environment "nodes: 1, environment: debian12-mni, key: key.pub"
refuse "an environment likewise" 2 "no environment 'debian12-mni'; did you mean 'debian12-min'" there run environment.yaml -o refused
campaign many "nodes: 9"
refuse "more nodes than there are, in OAR's words" 1 'There are not enough resources' there run many.yaml -o refused
campaign keyless "nodes: 1, environment: debian12-min"
refuse "a deployment without a key" 2 "expected 'key'" there run keyless.yaml --dry-run
is "nothing was reserved" "$(asked 'DELETE')" 0

# ---- engines that die: between submitting and journalling, and twice while deploying
serve dies hold '^POST .*/jobs'
campaign dead "nodes: 4, $deployed"
die_held() { eventually test -e "$api/holding"; kill_engine; printf '%s' "$1" >"$api/next"; rm "$api/hold"; eventually test ! -e "$api/holding"; mv "$api/next" "$api/hold"; }
start_engine "$scratch/engine" run dead.yaml -o dead --json
die_held '^POST .*/deployments'
start_engine "$scratch/engine" resume dead/*/ --json
die_held '^GET .*/deployments/'
start_engine "$scratch/engine" resume dead/*/ --json
die_held nothing
check "resuming takes over the job and the deployment of engines that were killed" there resume dead/*/
is "... the one job" "$(asked 'POST .*/jobs')" 1
is "... and the one deployment" "$(asked 'POST .*/deployments')" 1
is "... and measures everything" "$(lines dead/*.zip)" 80
is "... and deletes the job" "$(asked 'DELETE .*/jobs/')" 1

printf '%s' '^GET .*/deployments/' >"$api/hold"
start_engine "$scratch/engine" run dead.yaml -o left --json
die_held nothing
release_it() { there release left/*/ >"$scratch/released"; }
check "release deletes the job of one that was killed" release_it
check "... which it says" grep -qx "job [0-9]* of Grid'5000 is deleted" released
check "again, while that is not over yet" release_it
check "... and again, when there is none" eventually no_job_left

printf '%s' '^GET .*/deployments/' >"$api/hold"
start_engine "$scratch/engine" run dead.yaml -o stopped --json
eventually test -e "$api/holding"
kill -INT "$engine"
rm "$api/hold"
wait "$shell_job"
is "a run is interrupted while it deploys" "$?" 4
is "... and gives its job back" "$(asked "DELETE .*/jobs/$(number stopped)")" 1
finish
