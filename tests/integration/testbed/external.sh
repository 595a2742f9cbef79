#!/bin/bash
# Campaigns on nodes that a program of the user's reserves: the examples, programs that are wrong in one way each, engines
# that die.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
. "$ASSAY_SOURCE/tests/faults/killed-runs.sh"
bed_first 3
cd "$scratch" || exit
export ASSAY_PATH=$scratch
write_tick "$scratch"
cp "$ASSAY_SOURCE"/examples/testbeds/* .
cp "$BED/nodes" hosts.txt
mapfile -t node <hosts.txt
ssh="ssh-config: $BED/ssh_config"
there() { bed run "$ASSAY" "$@"; }
lines() { "$ASSAY" archive cat "$1" results/results.csv | tail -n +2 | wc -l; }
says() { grep -q -- "$1" "$scratch/.err"; }
ends_as() { wait "$shell_job"; local status=$?; [ "$status" -eq "$1" ] || { echo "exit $status"; cat "$scratch"/*.err; return 1; }; }

# ---- the small example
pool="external: {program: [./pool, ./hosts.txt], request: {nodes: 2}}, $ssh"
tick_campaign "$scratch/lent" 20 0 "{$pool}"
check "a campaign runs on nodes that a program gives" there run lent.yaml -o lent
is "each unit on each node" "$(lines lent/*.zip)" 40
is "and gives them back" "$(cat hosts.txt.taken)" ""
check "the reservation is journalled" grep -q '"event":"reservation","testbed":"external","id":"assay-' lent/*/journal.jsonl
check "what is resolved can be bound somewhere else" grep -q "\"$scratch/./pool\"" lent/*/campaign.resolved.json
for run in 1 2 3; do echo "${node[run - 1]} other" >>hosts.txt.taken; done
start_engine "$scratch/waits" run lent.yaml -o waits --json
says_why() { "$ASSAY" status waits/*/ | grep -q 'reservation *pool: waiting until 2 hosts are free'; }
check "assay status says what the program waits for" eventually says_why
kill_engine
gives_back() { there release waits/*/ >released; }
check "release gives back what an engine that was killed had asked for" gives_back
check "which it says" grep -qx 'pool has given reservation assay-[0-9a-f-]* back' released
check "and again" gives_back
start_engine "$scratch/waits" resume waits/*/ --json
says_twice() { [ "$(grep -c 'waiting until 2 hosts' waits/*/journal.jsonl)" -ge 2 ]; }
check "a part that is resumed waits, too" eventually says_twice
: >hosts.txt.taken
check "... until there are nodes" ends_as 0
is "... and measures everything" "$(lines waits/*.zip)" 40
for run in 1 2 3; do echo "${node[run - 1]} other" >>hosts.txt.taken; done
start_engine "$scratch/cut" run lent.yaml -o cut --json
has_note() { grep -q 'waiting until 2 hosts' cut/*/journal.jsonl; }
check "another one waits" eventually has_note
kill -INT "$engine"
check "waiting is interrupted" ends_as 4
check "... which it says, without units that there are not" grep -q "interrupted before any unit was measured; the archive has the run's records alone" cut.err
is "... and nothing of its own is kept" "$(grep -c -v other hosts.txt.taken)" 0
tick_campaign "$scratch/late" 20 0 "{external: {program: [./pool, ./hosts.txt], request: {nodes: 3}, at-most-wait: 1 s}, $ssh}"
refuse "waiting is given up after what the campaign says" 1 'reservation assay-.* has waited for 1 s' there run late.yaml -o late
: >hosts.txt.taken

# ---- by hand
by_hand() { there reserve lent.yaml -o hand -q >reserved; }
on_each() { there nodes run --run hand/*/ --apart -- hostname >named && [ "$(grep -cxE "${node[0]}|${node[1]}" named)" = 2 ]; }
check "nodes are reserved for use by hand" by_hand
check "... which it prints, with the reservation" grep -q 'reserved *external, job assay-[0-9a-f-]*$' reserved
is "... and are left reserved" "$(grep -c . hosts.txt.taken)" 2
check "assay nodes runs commands on them" on_each
is "... and leaves them reserved" "$(grep -c . hosts.txt.taken)" 2
check "assay resume measures on them" there resume hand/*/ -q
is "... everything" "$(lines hand/*.zip)" 40
is "... and gives them back" "$(cat hosts.txt.taken)" ""
refuse "there are no nodes then" 2 'the run has no nodes reserved' there nodes show --run hand/*/
is "... and none are taken for that" "$(cat hosts.txt.taken)" ""

# ---- programs that are wrong
cat >lease <<E
#!/bin/bash
# lease WRONG ANSWER: WRONG is what goes wrong, ANSWER the members that answer \`nodes\`
cd $scratch
E
cat >>lease <<'E'
wrong=$1 answer=$2
echo >>started
[ "$wrong" != mute ] || exec cat >/dev/null
[ "$wrong" != leaves ] || printf 'Loading {modules}\n\n'
[ "$wrong" = newer ] && echo '{"assay":2}' || echo '{"assay":1}'
read -r _
while read -r line; do
    id=${line#*:} id=${id%%,*} name=${line#*\"name\":\"} name=${name%%\"*}
    echo "$line" >>asked
    case $wrong,$line in
    garbage,*reserve*) echo 'Loading...' ;;
    half,*reserve*) printf '{"id":'; exit 0 ;;
    nothing,*reserve*) exec cat >/dev/null ;;
    long,*reserve*) head -c 5000000 /dev/zero | tr '\0' x ;;
    ends,*reserve*) printf 'no credentials\n\nlog in first' >&2; exit 3 ;;
    killed,*reserve*) kill -KILL $$ ;;
    refuses,*reserve*) echo "{\"id\":$id,\"error\":\"no such nodes\"}" ;;
    another,*reserve*) echo '{"id":99}' ;;
    gone,*'"nodes"'*)
        [ -e given ] && echo "{\"id\":$id,\"error\":\"it has expired\"}" || echo "{\"id\":$id,$answer}"
        touch given ;;
    leaves,*'"nodes"'*) echo "{\"id\":$id,$answer}"; echo bye >&2; exit 0 ;;
    over,*'"nodes"'*)
        echo '{"note":"soon"}'; echo '{"note":"soon"}'
        echo "{\"id\":$id,$answer}"
        { read -r _ <revoked; echo '{"over":"it was revoked"}'; } & ;;
    *,*reserve*)
        grep -qx "$name" leases || { echo "$name" >>leases; echo "$name" >>made; }
        [ ! -e hold ] || { touch submitted; exec cat >/dev/null; }
        echo "{\"id\":$id,\"reservation\":\"lease-7\"}" ;;
    *,*'"nodes"'*) echo "{\"id\":$id,$answer}" ;;
    *,*release*)
        grep -qx "$name" leases && echo "{\"id\":$id}" || echo "{\"id\":$id,\"released\":false}"
        sed -i "/^$name$/d" leases ;;
    esac
done
E
chmod +x lease
touch leases made
# lease_campaign NAME WRONG ANSWER [KEYS]
lease_campaign() {
    tick_campaign "$scratch/$1" "${rows:-20}" 0 "{external: {program: [./lease, $2, '$3'], timeout: ${timeout:-60} s}, ${4:-$ssh}}"
}
two="\"nodes\":[\"${node[0]}\",\"${node[1]}\"]"
wrong() { # wrong NAME WRONG PATTERN
    lease_campaign wrong "$2" "$two"
    rm -f asked
    refuse "$1" 1 "$3" there run wrong.yaml -o wrong
}
wrong "what is no JSON is refused" garbage "lease printed 'Loading...', expected a JSON object on a line"
check "... and another program is asked to give back what there may be" grep -q '"id":2,"do":"release","name":"assay-' asked
wrong "half a line" half 'lease ended with exit status 0 in the middle of a line without an answer to reserve'
wrong "a line without end" long 'lease printed a line longer than 4194304 bytes'
wrong "an exit status, with what it said last" ends 'lease ended with exit status 3 without an answer to reserve: log in first'
check "... and all of it is in the log" grep -q 'lease: no credentials' wrong/*/logs/engine.log
wrong "a signal" killed 'lease was killed by signal KILL without an answer to reserve'
wrong "an answer to another request" another "lease printed '\{\"id\":99\}'; expected a note, or the answer"
wrong "that there are no such nodes" refuses 'lease: no such nodes'
is "... where nothing is given back" "$(grep -c release asked)" 0
wrong "another version" newer "lease speaks version '2' of the protocol, expected 1"
# late NAME WRONG PATTERN FROM UNTIL: wrong, while time passes quickly once FROM succeeds, until UNTIL does.
late() {
    rm -f asked started ended
    (move_clock; eventually eval "$4"; step=10s hurry eval "$5") &
    timeout=40 ASSAY=$ASSAY_BUILD/tests/moved/bin/assay ASSAY_TEST_CLOCK=$scratch/clock wrong "$1" "$2" "$3"
    touch ended
    wait $!
}
late "no answer" nothing 'lease has not answered reserve within 40 s' 'grep -s reserve asked' '[ "$(wc -l <started)" -ge 2 ]'
check "... and another program is asked to give it back" grep -q '"do":"release"' asked
late "no word at all" mute 'lease has not answered hello within 40 s' 'test -s started' 'test -e ended'
lease_campaign hostile none '"nodes":["root@-oProxyCommand"]'
refuse "a host that is an option" 1 "the answer of 'lease'.*begins with '-'" there run hostile.yaml -o hostile
is "nothing is kept for any of them" "$(cat leases)" ""

# ---- engines that die
lease_campaign dies leaves "$two,\"end\":$(($(date +%s) + 7200))"
: >made; touch hold
start_engine "$scratch/dies" run dies.yaml -o dies --json
check "something is reserved, which the engine does not know yet" eventually test -e submitted
kill_engine
is "... nor its journal by its number" "$(grep -c '"event":"reservation".*"id":' dies/*/journal.jsonl)" 0
rm hold
check "it is found by its name when the run is resumed" there resume dies/*/
is "... and was made once" "$(wc -l <made)" 1
is "... everything is measured" "$(lines dies/*.zip)" 40
is "... and it is given back" "$(cat leases)" ""
check "when it ends is the run's deadline" grep -q '"source":"testbed"' dies/*/journal.jsonl
check "a program that ended while its nodes were used cost nothing" grep -q 'lease: ended with exit status 0: bye; the program is started again' dies/*/logs/engine.log
check "... and what it printed before its greeting" grep -q 'lease: Loading {modules}' dies/*/logs/engine.log
release_nothing() { there release dies/*/ >released; }
check "release again finds nothing" release_nothing
check "which it says" grep -qx 'lease has no reservation assay-[0-9a-f-]*' released

# ---- nodes that are taken away
mkfifo revoked
rows=2000 lease_campaign over over "$two"
for n in "${node[@]:0:2}"; do bed on "$n" touch /tmp/doomed; done
start_engine "$scratch/over" run over.yaml -o over --json
wait_for_units "$scratch/over" 3
echo >revoked
check "a run whose nodes are taken away ends as partial" ends_as 6
is "the same note twice in a row counts once" "$(grep -c '"event":"reservation-note".*lease: soon' over/*/journal.jsonl)" 1
check "what took them away is said" grep -q 'reservation lease-7 of lease is over: it was revoked' over/*/logs/engine.log
is "and what is left is given back" "$(cat leases)" ""
for n in "${node[@]:0:2}"; do bed on "$n" rm /tmp/doomed; done

# One that fails while it is torn down, since it was taken away, is no failure of the run, though it is the only one.
one="\"nodes\":[\"${node[0]}\"]"
cat >alone.yaml <<END
experiment:
  name: torn
  run: {placement: node, command: [sh, -c, 'touch /tmp/begun; until test -e /tmp/go; do :; done']}
  responses: {n: {pattern: '([0-9]+)'}}
  teardown: [[sh, -c, 'touch /tmp/torn; until test -e /tmp/go; do :; done']]
design: {repetitions: 1}
probes: none
testbed: {external: {program: [./lease, over, '$one']}, $ssh}
END
has_file() { bed on "${node[0]}" test -e "$1"; }
kill_agents() { # with their guardians, at once: who is stopped does not see the other die, and leaves nothing in order
    bed on "${node[0]}" sh -c 'ids=$(pgrep -f "agent-[0-9a-f]{64}"); kill -STOP $ids; kill -KILL $ids'
}
start_engine "$scratch/alone" run alone.yaml -o alone --json
check "a unit runs on the only node" eventually has_file /tmp/begun
echo >revoked
check "which is torn down when it is taken away" eventually has_file /tmp/torn
kill_agents
check "what fails then is no failure of the run" ends_as 6
bed on "${node[0]}" touch /tmp/go

# The nodes fail first, and the program has not said anything yet.
rows=2000 lease_campaign gone gone "$one"
bed on "${node[0]}" touch /tmp/doomed
start_engine "$scratch/gone" run gone.yaml -o gone --json
wait_for_units "$scratch/gone" 3
kill_agents
check "a run whose nodes fail since they were taken away ends as partial" ends_as 6
check "what took them away is said" grep -q 'reservation lease-7 of lease is over: it has expired' gone/*/logs/engine.log
is "and what is left is given back" "$(cat leases)" ""
bed on "${node[0]}" rm /tmp/doomed

# ---- Chameleon, by commands that answer as its own do; and keys that nobody but the program knows
bare="ssh-config: none, user: root, identity: $BED/id_ed25519, known-hosts: /dev/null, host-keys: accept-new"
if command -v python3 >/dev/null; then
    mkdir bin
    cp "$ASSAY_SOURCE/tests/integration/testbed/openstack" bin
    printf '%s\n' "${node[@]}" >addresses
    echo 'import time; time.sleep = lambda seconds: None' >bin/sitecustomize.py # what it waits for is there the next time
    request="request: {nodes: 2, node-type: compute_skylake, hours: 4, image: CC-Ubuntu24.04, key: mine}"
    tick_campaign "$scratch/cloud" 20 0 "{external: {program: [./chameleon, --os-cloud, chi-tacc], $request}, $bare}"
    PYTHONPATH=$scratch/bin PATH=$scratch/bin:$PATH CLOUD=$scratch check "the example for Chameleon gives nodes and their keys" there run cloud.yaml -o cloud
    is "on which everything is measured" "$(lines cloud/*.zip)" 40
    is "it asks for what OpenStack documents" "$(diff "$ASSAY_SOURCE/tests/integration/testbed/chameleon.txt" <(sed 's/assay-[0-9a-f-]\{36\}/NAME/g; s/20[0-9-]* [0-9:]*/END/' calls) 2>&1)" ""
else
    skip "the example for Chameleon gives nodes and their keys" "no python3"
fi
lease_campaign keys none "\"nodes\":[\"${node[1]}\"],\"known_hosts\":[\"${node[0]} ssh-ed25519 AAAA\"]" "$bare"
refuse "no other keys are expected" 1 "${node[1]}: its host key is not known" there run keys.yaml -o keys

# ---- what is refused before anything is started
refuses() { # refuses NAME PATTERN TESTBED
    tick_campaign "$scratch/bad" 4 0 "$3"
    refuse "$1" 2 "$2" there run bad.yaml --dry-run
}
refuses "a testbed without a program" "bad.yaml.*names no program, expected external: \{program" external
refuses "a program that is not there" "bad.yaml:4:.*cannot execute '$scratch/./none'" '{external: ./none}'
refuses "a key that it does not have" "'nodes'" '{external: {program: ./pool, nodes: 4}}'
refuses "a request that is none" "'request'" '{external: {program: ./pool, request: 4}}'
shows() { there run lent.yaml --dry-run >shown; }
check "a dry run" shows
check "... shows program and request" grep -q 'request *{"nodes":2}' shown
finish
