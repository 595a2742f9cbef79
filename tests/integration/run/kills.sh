#!/bin/bash
# Runs that are killed at random instants and resumed, again and again, until they are whole: each unit is there once,
# with its answer; what was on disk at a kill stays as it is, to the byte; nodes are as before.
# ASSAY_KILLS says how many kills there are (default: 200; sanitized: 20), ASSAY_SEED when. crashes.sh tries every call
# of one run; here many nodes take part, some of which are in any phase.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
. "$ASSAY_SOURCE/tests/faults/killed-runs.sh"
command -v cc >/dev/null || plan_skip "no C compiler"
bed_first 8 --names 'node-%'

kills=200
grep -q '^CMAKE_BUILD_TYPE:.*=Sanitize' "$ASSAY_BUILD/CMakeCache.txt" && kills=20
kills=${ASSAY_KILLS:-$kills}
RANDOM=${ASSAY_SEED:-4711}
export ASSAY_PATH=$scratch
write_tick "$scratch"
# With probes rows wait for samples before they are written; in every other run they do not.
testbed='{hosts: "node-[1-8]", lease: 20 s}'
tick_campaign "$scratch/campaign-0" 250 8000 "$testbed" 'probes: 100ms'
tick_campaign "$scratch/campaign-1" 250 8000 "$testbed" 'probes: none'

now_ms() { echo $(($(date +%s%N) / 1000000)); }
sleep_ms() { sleep "$(($1 / 1000)).$(printf %03d $(($1 % 1000)))"; }

# ---- one that nobody kills, for how long it takes
began=$(now_ms)
start_engine "$scratch/whole" run "$scratch/campaign-0.yaml" --json -o "$scratch/whole-runs"
wait "$shell_job"
report $? "a run that is left alone ends well"
whole_ms=$(($(now_ms) - began))
answers() { tail -n +2 "$1" | cut -d, -f1,2,6,10-12 | sort; }
answers "$scratch"/whole-runs/*/results/results.csv >"$scratch/answers"
check "... with 2000 answers" test "$(wc -l <"$scratch/answers")" -eq 2000

# ---- killed, resumed, killed, resumed
killed=0 survived=0 round=0
while [ $killed -lt "$kills" ]; do
    round=$((round + 1)) kept=()
    runs=$scratch/runs-$round folder=
    chain=$((1 + RANDOM % 7)) before=$tests_failed kills_before=$killed
    for ((link = 1; link <= chain && killed < kills; link++)); do
        if [ -z "$folder" ]; then
            start_engine "$scratch/part" run "$scratch/campaign-$((round % 2)).yaml" --json -o "$runs"
        else
            start_engine "$scratch/part" resume "$folder" --json
        fi
        delay=$((RANDOM % whole_ms))
        sleep_ms $delay
        kill_engine
        killed=$((killed + 1))
        phase=$(sed -n 's/.*"event":"phase","text":"\([a-z-]*\)".*/\1/p' "$scratch/part.json" | tail -1)
        folder=$(find "$runs" -mindepth 1 -maxdepth 1 -type d 2>/dev/null)
        ls "$runs"/*.zip >/dev/null 2>&1 && break # it was sealed
        [ -z "$folder" ] || [ -s "$folder/journal.jsonl" ] || { rm -rf "$folder"; folder=; } # it had not begun
        [ -n "$folder" ] || continue
        name="run $round, kill $link, $delay ms after it was started, in ${phase:-no phase yet}"
        kept+=("$scratch/kept-$round-$link")
        check "$name: the journal's rows are on disk" keep_rows "$folder" "$scratch/kept-$round-$link"
        lines=$(wc -l <"$scratch/kept-$round-$link") shown=$(shown "$scratch/part.json")
        check "... and what was shown as done (${shown:-0}) is among them" test "$lines" -gt "${shown:-0}" -o "${shown:-0}" -eq 0
    done
    [ -n "$folder" ] || { survived=$((survived + killed - kills_before)); continue; }
    if ! ls "$runs"/*.zip >/dev/null 2>&1; then
        resume_to_end "run $round is resumed to its end" "$folder"
    fi
    check "... each unit is there once, with its answer" check_rows "$folder/results/results.csv" 250 8
    check "... they are those of the run that was left alone" cmp <(answers "$folder/results/results.csv") "$scratch/answers"
    for file in "${kept[@]}"; do
        check "... what was there at kill ${file##*-} is there to the byte" rows_are_kept "$folder/results/results.csv" "$file"
    done
    parts=$(grep -ac '"event":"run-resumed"' "$folder/journal.jsonl")
    check "... the journal is whole" check_journal "$folder/journal.jsonl" $((parts + 1))
    for archive in "$runs"/*.zip; do
        check "... and the archive verifies" "$ASSAY" archive verify "$archive"
    done
    [ "$tests_failed" -gt "$before" ] || survived=$((survived + killed - kills_before))
    rm -rf "$runs"
done
# ---- agents that have left long ago
start_engine "$scratch/part" run "$scratch/campaign-1.yaml" --json -o "$scratch/ended"
wait_for_units "$scratch/part" 50
kill -TERM "$engine"
wait "$shell_job"
check "a run that was asked to end is partial" test $? -eq 6
folder=$(find "$scratch/ended" -mindepth 1 -maxdepth 1 -type d)
agents_have_left() { local node; for node in {1..8}; do ! bed on "$node" pgrep agent || return 1; done; }
eventually agents_have_left
resume_to_end "... and can be resumed when its agents are long gone" "$folder"
check "... each unit is there once, with its answer" check_rows "$folder/results/results.csv" 250 8
check "... in an archive of its own" "$ASSAY" archive verify "$folder-2.zip"
bed run timeout 60 "$ASSAY" resume "$folder" -q >"$scratch/out"
check "what is complete is not begun again" test "$(cat "$scratch/out")" = "$folder-2.zip"
rm "$folder-2.zip"
resume_to_end "an archive that could not be made is made when the run is resumed" "$folder"
check "... as that of its part" "$ASSAY" archive verify "$folder-3.zip"
check "... with what was known of its software" test "$("$ASSAY" archive cat "$folder-3.zip" software/versions.json | wc -l)" -gt 10
bed down

# ---- nodes whose controls were set when it was killed, one run a list of phases in which it is
if [ "$kills" -gt 0 ] && bed_for_part 2 --machine intel-pstate --names 'node-%' && bed can kernel-files; then
    tick_campaign "$scratch/state" 100 10000 '{hosts: "node-[1-2]", lease: 20 s}' 'probes: 100ms' \
        'controls: {turbo: off, hyperthreads: off, governor: performance, frequency: base, numa-balancing: off, transparent-huge-pages: never, proof: 100ms}'
    for node in 1 2; do bed files $node | sort >"$scratch/before-$node"; done
    files_are_as_before() {
        local node
        for node in 1 2; do diff "$scratch/before-$node" <(bed files $node | sort) >&2 || return 1; done
    }
    is_in_phase_or_ended() {
        grep -q "\"event\":\"phase\",\"text\":\"$1\"" "$scratch/part.json" || ! kill -0 "$engine" 2>/dev/null
    }
    for phases in measure "control measure" "restore" "measure control collect"; do
        runs=$scratch/state-${phases// /-} folder=
        rm -rf "$runs"
        for phase in $phases; do
            if [ -z "$folder" ]; then
                start_engine "$scratch/part" run "$scratch/state.yaml" --json -o "$runs"
            else
                start_engine "$scratch/part" resume "$folder" --json
            fi
            eventually is_in_phase_or_ended "$phase"
            sleep_ms $((RANDOM % 400))
            kill_engine
            folder=$(find "$runs" -mindepth 1 -maxdepth 1 -type d)
        done
        if ! ls "$runs"/*.zip >/dev/null 2>&1; then
            resume_to_end "a run that sets controls, killed in $phases, is resumed to its end" "$folder"
        fi
        check "... each unit is there once, with its answer" check_rows "$folder/results/results.csv" 100 2
        check "... and every file of its nodes is as it was" files_are_as_before
    done
    bed down
else
    skip "nodes whose controls are set" "nodes whose files answer as a kernel's need root and FUSE"
fi
echo "# survived $survived of $killed kills in $round runs"
finish
