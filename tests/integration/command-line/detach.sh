#!/bin/bash
# Runs that outlive who began them: assay run --detach, attach, stop and fetch; and a campaign on several testbeds.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
cd "$scratch" || exit
chmod 755 "$scratch"
. "$ASSAY_SOURCE/tests/integration/beat.sh"
runs=$scratch/runs
begin() { "$ASSAY" run "$1.yaml" -o "$runs" --detach "${@:2}" >began 2>err </dev/null; run=$(cat began); }
pid_of() { "$ASSAY" status --json "$1" | sed -n 's/^ *"pid": \([0-9]*\),*$/\1/p'; }
measures() { grep -qs '"event":"results".*"units_done":2,' "$1/journal.jsonl"; }
exits() { # exits NAME CODE COMMAND...: its output in shown and said
    local name=$1 code=$2 status; shift 2
    "$@" >shown 2>said </dev/null; status=$?
    [ $status -eq "$code" ] || sed 's/^/# /' said
    is "$name" $status "$code"
}
attach() { # in the background; what an earlier one has said goes first, so that it is not taken for this one's
    rm -f shown said
    "$ASSAY" watch "$run" "$@" >shown 2>said </dev/null &
    attached=$!
}

# ---- begun
campaign good local 1 2
campaign bad local 1 9
campaign long local 1 2 3 4 5
touch hold
check "a run is detached" begin long
check "its folder is printed" test -d "$run"
check "... and how it is followed" grep -qx "'assay watch $run' follows it, and ends with its settings, best first" err
check "its name is journalled" grep -q '"event":"run-started"' "$run/journal.jsonl"
check "it measures" eventually measures "$run"
engine=$(pid_of "$run")
is "its engine is in a session of its own" "$(ps -o sid= -p "$engine" | tr -d ' ')" "$engine"
is "... without a terminal" "$(ps -o tty= -p "$engine" | tr -d ' ')" "?"
is "... and reads nothing" "$(readlink "/proc/$engine/fd/0")" /dev/null
is "... what it prints goes to a file beside its folder" "$(readlink "/proc/$engine/fd/1") $(readlink "/proc/$engine/fd/2")" "$run.out $run.out"
check "... as in the foreground" grep -q "^run folder: $run$" "$run.out"
check "assay list has it" sh -c '"$0" list "$1" | grep -q " running  *2 of 5 "' "$ASSAY" "$runs"

# ---- followed
attach
check "attach shows how far it is" eventually grep -q '2 of 5 units (40.0 %)' said
check "... and in which phase" grep -qx measure said
kill -INT $attached
wait $attached
is "Ctrl-C ends it with 130" $? 130
check "... which says that the run continues, and how it is ended" grep -q "the run continues: .* 'assay stop $run' ends it" said
check "... and so it does" kill -0 "$engine"
attach --json
check "as JSON" eventually grep -q '"event":"progress".*"units_done":2,' shown
mv shown events
exits "stop asks the engine to end" 0 "$ASSAY" stop "$run"
check "... which it names" grep -q "^process $engine ends its measurements" shown
wait $attached
is "attach ends with the run, and its exit code" $? 4
check "... says why" grep -q '^assay: interrupted after 2 of [0-9]* units; they are sealed$' said
check "... and has the archive" grep -q "\"event\":\"sealed\",\"text\":\"$run.zip\"" events
interrupted=$run
refuse "there is nothing left to stop" 2 "^assay: it is interrupted: no process works on the run" "$ASSAY" stop "$run"

check "what is left is resumed, detached" sh -c '"$0" resume "$1" --detach >began' "$ASSAY" "$run"
rm hold
exits "... and completed" 0 "$ASSAY" watch "$run"
is "... whose archive is printed" "$(cat shown)" "$run-2.zip"
exits "attach to a run that has ended" 0 "$ASSAY" watch "$run-2.zip"
is "... prints its archive too" "$(cat shown)" "$run-2.zip"
exits "what is complete is not begun again" 0 "$ASSAY" resume "$run" --detach
is "... and its archive is printed" "$(cat shown)" "$run-2.zip"
begin bad
exits "a run that fails" 3 "$ASSAY" watch "$run"
check "... says why" grep -q '^assay: .*out of beats' said

# ---- the logout
touch hold
mkfifo door
rm -f began err
setsid bash -c '"$0" run long.yaml -o runs --detach >began 2>err && read -r _ <door' "$ASSAY" </dev/null &
shell=$!
check "a run is begun in a session" eventually test -s began -a -s err
run=$(cat began)
check "which measures" eventually measures "$run"
kill -HUP -- -$shell
wait $shell
is "the session is hung up" $? 129
check "the run is not" kill -0 "$(pid_of "$run")"
rm hold
exits "... and it completes" 0 "$ASSAY" watch "$run"

# ---- an engine that is killed
touch hold
begin long
check "a run measures" eventually measures "$run"
attach
check "and is followed" eventually grep -q '2 of 5 units' said
kill -9 "$(pid_of "$run")"
wait $attached
is "attach fails when its engine is killed" $? 1
check "... and says what to do" grep -q "the engine of '$run' ended before the run was sealed; .assay resume $run. continues it" said
refuse "a dead engine's number is not signalled" 2 "^assay: it is stopped: no process works on the run" "$ASSAY" stop "$run"
killed=$run

# ---- a folder in which a stranger could put something
rm "$run.out" && mkfifo "$run.out"
check "a FIFO in the place of its output is not waited for" sh -c '"$0" resume "$1" --detach >began' "$ASSAY" "$run"
mv "$run/logs/engine.log" was && mkfifo "$run/logs/engine.log"
attach
check "nor one in that of its log" eventually grep -q '2 of 5 units' said
kill -INT $attached
wait $attached
is "... by who follows it" $? 130
kill -9 "$(pid_of "$run")"
mv was "$run/logs/engine.log"
rm hold

# ---- what fails before a run has begun
sed 's/experiment: beat/experiment: baet/' good.yaml >wrong.yaml
before=$(ls "$runs")
refuse "a bad campaign is refused at once" 2 "wrong.yaml:2:13: .*did you mean 'beat'" "$ASSAY" run wrong.yaml -o "$runs" --detach
refuse "... and so is a folder that cannot be made" 2 "cannot make folder 'good.csv/runs'" "$ASSAY" run good.yaml -o good.csv/runs --detach
refuse "... a job where there are none" 2 "testbed 'local' has none; expected slurm or oar" "$ASSAY" run good.yaml -o "$runs" --detach=job
refuse "... and what is neither" 2 "expected --detach or --detach=job" "$ASSAY" run good.yaml -o "$runs" --detach=sometimes
is "nothing is left of these" "$(ls "$runs")" "$before"
refuse "a run that is not there" 2 "there is no folder of a run 'nowhere'" "$ASSAY" watch nowhere
refuse "... cannot be stopped" 2 "there is no folder of a run 'nowhere'" "$ASSAY" stop nowhere

bed_for_part 2 --share "$scratch" || { skip "archives are fetched, and testbeds are several" "no test bed"; finish; }
fetch() { (umask 022; bed run "$ASSAY" archive fetch -F "$BED/ssh_config" "$@"); }
check "the archive of a run is fetched" fetch "node1:$interrupted" fetched
name=${interrupted##*/}-2.zip
check "... is the same" cmp "$interrupted-2.zip" "fetched/$name"
check "... and has its checksum" sh -c 'cd fetched && sha256sum -c "$0.sha256"' "$name"
is "... nothing else is left" "$(ls -A fetched)" "$name
$name.sha256"
refuse "one that is there is not replaced" 2 "'fetched/$name' is there already" fetch "node1:$interrupted" fetched
refuse "a run that was not sealed says how it stands" 2 "is not sealed, in phase measure: 2 of 5 units are done, last heard of" fetch "node1:$killed" fetched
"$ASSAY" run long.yaml -o until --until 1s -q >until.txt 2>err </dev/null
partial=$(cat until.txt); partial=${partial%.zip}
refuse "... and so does one that is partial" 2 "is partial: [0-9] of [0-9] units are done, .*; --partial brings" fetch "node1:$partial" fetched
check "--partial brings it" fetch "node1:$partial.zip" --partial fetched
cp -r "$interrupted" broken && cp "$interrupted-2.zip" .
printf x | dd of="$name" bs=1 seek=2000 conv=notrunc status=none
mkdir other && mv broken "other/${interrupted##*/}" && mv "$name" other/
refuse "one that is damaged is not kept" 5 "$name" fetch "node1:$scratch/other/${interrupted##*/}" damaged
is "... and nothing is left of it" "$(ls -A damaged)" ""
refuse "one that is not there" 2 "there is no folder of a run '/nowhere' there" fetch node1:/nowhere fetched
refuse "... nor is this a run" 2 "there is no folder of a run '$scratch' there" fetch "node1:$scratch" fetched
mkdir "two
lines" && cp -r "$interrupted" "two
lines/run"
refuse "... nor what leads elsewhere" 2 "a newline in its name" fetch "node1:$scratch/two
lines/run" fetched
refuse "no run at all" 2 "is not HOST:RUN" fetch node1 fetched
sed 's|UserKnownHostsFile.*|UserKnownHostsFile /dev/null|' "$BED/ssh_config" >strangers
refuse "a host whose key is not known is refused" 1 "key" bed run "$ASSAY" archive fetch -F "$scratch/strangers" "node1:$interrupted" stranger

# ---- on several testbeds
there="ssh-config: $BED/ssh_config"
campaign both "[{hosts: node1, $there}, {hosts: node2, $there}]" 1 2 4 5 6
check "each is shown by a dry run" sh -c '"$0" run both.yaml --dry-run | grep -c "^testbed [12] of 2" | grep -qx 2' "$ASSAY"
exits "a campaign runs on each of its testbeds" 0 bed run "$ASSAY" run both.yaml -o both
is "... with an archive each" "$(sed 's/.*both-\([12]\)-.*zip$/\1/' shown | sort | tr '\n' ' ')" "1 2 "
is "... a line each while it runs" "$(grep -c ': completed, 5 of 5 units' said)" 2
nodes_of() { for archive; do "$ASSAY" archive cat "$archive" results/results.csv | awk -F, 'NR > 1 { print $6 }' | sort -u; done; }
is "... of its own node" "$(nodes_of both/both-1-*.zip both/both-2-*.zip | tr '\n' ' ')" "node1 node2 "
check "fit reads them together" "$ASSAY" fit linear both/*.zip --terms 1+n --by node -o both.json
is "... with both nodes" "$(grep -o 'node[12]' both.json | sort -u | tr '\n' ' ')" "node1 node2 "
campaign mixed "[{hosts: node1, $there}, local]" 1 9
exits "the exit code is the worst" 3 bed run "$ASSAY" run mixed.yaml -o mixed
touch hold
campaign held "[{hosts: node1, $there}, {hosts: node2, $there}]" 1 2 3
bed run sh -c 'echo $$ >pid; exec "$@"' sh "$ASSAY" run held.yaml -o held >shown 2>said </dev/null &
shell=$!
both_measure() { [ "$(cat held/*/journal.jsonl 2>&1 | grep -c '"event":"results".*"units_done":2,')" -eq 2 ]; }
check "both measure" eventually both_measure
kill -INT "$(cat pid)"
wait $shell
is "Ctrl-C ends all of them" $? 4
is "... and both are sealed" "$(grep -c 'both\|held-[12]-.*zip' shown)" 2
rm hold
campaign wrong "[local, {hosts: node1, prot: 22}]" 1
refuse "what is wrong with one is said before any begins" 2 "'prot'.*" "$ASSAY" run wrong.yaml -o wrong
check "... and none did" test ! -e wrong
refuse "a list is not resumed" 2 "expected 'assay resume' or" "$ASSAY" run both.yaml --resume -o both

no_agents() { ! pgrep -af "$TMPDIR/assay-"; }
eventually no_agents
finish
