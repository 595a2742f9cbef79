#!/bin/bash
# assay list and assay status on real runs: one that goes on, the same one killed, one completed, one failed, and one
# of which only the archive is left.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/integration/beat.sh"
. "$ASSAY_SOURCE/tests/faults/faults.sh"

runs=$scratch/runs
# has MEMBER VALUE: the last status has this line; VALUE is a pattern
has() { grep -qE "^ *\"$1\": $2,?\$" "$scratch/.json"; }
status() { "$ASSAY" status --json "$@" >"$scratch/.json"; }
next_is() { has next "\"$1\"" || { sed -n 's/^ *"next"/# next/p' "$scratch/.json"; false; }; }

refuse "no runs/ yet" 2 "cannot list 'runs': No such file or directory; expected a folder with runs" \
    sh -c "cd '$scratch' && '$ASSAY' status"
refuse "a folder that is no run is refused in one sentence" 2 "^assay: '$scratch/tmp' is no run: there is no journal.jsonl in it\$" \
    "$ASSAY" status "$scratch/tmp"
refuse "... and so is a file that is no archive" 5 "beat.sh" "$ASSAY" status "$scratch/experiments/beat/beat.sh"

campaign good local 1 2
"$ASSAY" run "$scratch/good.yaml" -q -o "$runs" >/dev/null 2>"$scratch/err" </dev/null || sed 's/^/# /' "$scratch/err"
good=$(echo "$runs"/good-*.zip); good=${good%.zip}
status "$good"
check "a run that is complete says so" has status '"completed"'
check "... and how much it measured" has done 2
check "... and of how much" has planned 2
check "... its archive is beside it" has archive "\"$good.zip\""
check "... nothing is left to do" next_is "nothing: .*"
check "... its archive tells the same of it" status "$good.zip"
check "... " has folder "\"$good\""

# ---- the archive is looked at
cp -r "$runs" "$scratch/looked" && looked=$scratch/looked/${good##*/}
printf '\1' | dd of="$looked.zip" bs=1 seek=500 conv=notrunc 2>/dev/null
status "$looked"
check "an archive with another byte is not what was sealed" next_is "\`assay resume .*\` seals the run again"
resumes() { # resumes K PATTERN: the run is sealed again as its part K, and the sentence says why
    "$ASSAY" resume "$looked" >"$scratch/.out" 2>"$scratch/.err" </dev/null && contains "$scratch/.err" "$2" &&
        equal "$(cat "$scratch/.out")" "$looked-$1.zip" && "$ASSAY" archive verify "$looked-$1.zip" >/dev/null
}
check "an archive with another byte is sealed again" resumes 2 "zip' is damaged: its SHA-256 is not the same as when it was sealed"
: >"$looked-2.zip"
status "$looked"
check "one without bytes is not what was sealed" has status '"stopped"'
check "... which is said" sh -c "'$ASSAY' status '$looked' | grep -q '^status .*-2.zip. is damaged: it has 0 bytes, and had [0-9]* bytes when it was sealed'"
check "... with what to do" next_is "\`assay resume .*\` seals the run again"
check "... in the list of runs, too" sh -c "'$ASSAY' list '$scratch/looked' | grep -q ' stopped .*assay resume'"
check "... and so it is done" resumes 3 "it has 0 bytes, and had"
rm "$looked-3.zip"
check "one that is missing is sealed again" resumes 4 "zip' is missing"
is "one that is whole is not" "$("$ASSAY" resume "$looked" -q)" "$looked-4.zip"

# The archive of a part is not that of the next one, which dies as it is sealed.
campaign parts local 1 2 9 1
"$ASSAY" run "$scratch/parts.yaml" -q -o "$scratch/parts" >/dev/null 2>&1 </dev/null
parts=$(echo "$scratch"/parts/parts-*.zip); parts=${parts%.zip}
with_fault disk-faults ASSAY_FAULT_FOLDER="$scratch/parts" ASSAY_FAULT_NAME='*.zip.part' ASSAY_FAULT_ERROR=KILL -- \
    "$ASSAY" resume "$parts" -q >/dev/null 2>&1 </dev/null
is "a part is killed while it is sealed" $? 137
status "$parts"
check "... and is not sealed by the archive of the part before" has status '"stopped"'
check "... which is not its archive" has archive null

campaign bad local 1 2 9 1
"$ASSAY" run "$scratch/bad.yaml" -q -o "$runs" >/dev/null 2>"$scratch/err" </dev/null
bad=$(echo "$runs"/bad-*.zip); bad=${bad%.zip}
status "$bad"
check "a run that failed says so" has status '"failed"'
check "... why" has error '".*out of beats.*"'
check "... what is done" has done 2

touch "$scratch/hold"
campaign long local 1 2 3 4 5
"$ASSAY" run "$scratch/long.yaml" -q -o "$runs" >/dev/null 2>"$scratch/err" </dev/null &
pid=$!
eventually sh -c "grep -s '\"event\":\"results\".*\"units_done\":2,' '$runs'/long-*/journal.jsonl"
long=$(echo "$runs"/long-*)
status "$long"
check "a run that goes on is running" has status '"running"'
check "... by whom" has pid $pid
check "... in which phase" has phase '"measure"'
check "... with what is done" has done 2
check "... and left" has left 3
check "... nothing is to do" next_is "nothing: it is running"
check "the newest run is shown without being named" sh -c "cd '$scratch' && '$ASSAY' status | grep -q '^name  *long\$'"
check "... with a bar" sh -c "cd '$scratch' && '$ASSAY' status | grep -q '^units  *\\[################\\.\\.\\.*\\] 40.0 %\$'"
node=$(ls "$long/nodes")
mkdir "$long/nodes/$node/probes"
printf 'time,monotonic,late,missed,busy\n1763632800123000000,1,0,0,0.5\n' >"$long/nodes/$node/probes/load.csv"
check "... the last samples of its nodes" sh -c "'$ASSAY' status '$long' | grep -qx 'samples  *$node, 2025-11-20 10:00:00 UTC: busy 0.5'"
printf '1763632801123000000,1,0,0,0.7\n17636328' >>"$long/nodes/$node/probes/load.csv"
status "$long"
check "... are those that came last" has busy 0.7
"$ASSAY" watch "$long" --json >"$scratch/followed" 2>&1 </dev/null &
follower=$!
eventually test -s "$scratch/followed"
kill -9 $pid; wait $pid 2>/dev/null
status "$long"
check "killed, it is stopped" has status '"stopped"'
check "... with what was done" has done 2
check "... by nobody" has owner null
check "... the wish to go on is met by a command, or by why there is none" next_is "(\`assay resume .*|run the campaign again.*)"
wait $follower
ended=$?
check "watch showed its progress" grep -q '"event":"progress".*"units_done":2' "$scratch/followed"
check "... and ended when it did, with 1: its engine was killed" test $ended -eq 1
cp -r "$long" "$scratch/copied"
status "$scratch/copied/"
check "a copy tells the same" has done 2
rm "$scratch/hold"

mkdir "$scratch/lone"
cp "$good.zip" "$scratch/lone/"
cp "$good.zip" "$scratch/lone/${good##*/}-2.zip" # as if it had been resumed: the later archive has all
status "$scratch/lone/${good##*/}.zip"
check "an archive without its folder tells of itself" has status '"completed"'
cp "$good.zip" "$scratch/damaged.zip"
printf '\1' | dd of="$scratch/damaged.zip" bs=1 seek=500 conv=notrunc 2>/dev/null
"$ASSAY" status "$scratch/damaged.zip" >"$scratch/status"
damage=$("$ASSAY" archive verify "$scratch/damaged.zip" | sed 's/.*refused: //')
check "a damaged one does not: it says what 'archive verify' says" grep -qF "stopped: its archive '$scratch/damaged.zip' is damaged: $damage" "$scratch/status"
check "... and that its folder is missing" grep -q "^next  *nothing: the run's folder is missing" "$scratch/status"
check "... " has folder null
echo nonsense >"$runs/other.zip"
"$ASSAY" list "$runs" "$scratch/lone" >"$scratch/listed" 2>"$scratch/err"
report $? "the runs are listed"
check "... with a line each" test "$(wc -l <"$scratch/listed")" -eq 6
check "... the newest last" sh -c "tail -1 '$scratch/listed' | grep -q '/long-.* stopped  *2 of 5 '"
check "... what cannot be read too, and why" grep -q "^$runs/other.zip .*unreadable .*other.zip" "$scratch/listed"
check "... and those that are only archives" grep -q "^$scratch/lone/good.* completed  *2 of 2 " "$scratch/listed"
"$ASSAY" list "$runs" --json >"$scratch/.json"
check "... as JSON as well" test "$(grep -c '^    "status": ' "$scratch/.json")" -eq 4
mkdir "$scratch/none"
check "a folder without runs has none" test -z "$("$ASSAY" list "$scratch/none" 2>&1 >/dev/null | grep -v 'no runs')"
refuse "a folder that is not there is refused" 2 "cannot list '$scratch/nowhere'" "$ASSAY" list "$scratch/nowhere"

no_agents() { ! pgrep -af "$TMPDIR/assay-"; }
eventually no_agents
finish
