#!/bin/bash
# What can have happened to a run between its kill and its resume, and to a disk and a clock while it runs: lines that
# were lost after they were synced, a full or a failing disk, a clock that was set back, another engine, another place,
# another campaign. crashes.sh has what a crash leaves.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/faults/killed-runs.sh"
. "$ASSAY_SOURCE/tests/faults/faults.sh"
command -v cc >/dev/null || plan_skip "no C compiler"
export ASSAY_PATH=$scratch TMPDIR=$scratch/tmp
mkdir "$TMPDIR"
bed() { shift; "$@"; } # on this machine: killed-runs.sh says `bed run`
write_tick "$scratch"
# Where there is a file `held` a kernel waits after 40 units.
sed -i "s|if (access.*|static int count; while (++count > 40 \&\& access(\"$scratch/held\", F_OK) == 0) usleep(10000);|" "$scratch/experiments/tick/tick.c"
rows=100
tick_campaign "$scratch/tick" $rows 2000 local "probes: none" # with probes a row waits for samples

folder_in() { find "$1" -mindepth 1 -maxdepth 1 -type d; }
is_whole() { # is_whole NAME FOLDER PARTS
    check "$1: each unit is there once, with its answer" check_rows "$2/results/results.csv" $rows 1
    check "$1: the journal is whole" check_journal "$2/journal.jsonl" "$3"
    check "$1: the archive verifies" "$ASSAY" archive verify "$(find "$(dirname "$2")" -maxdepth 1 -name '*.zip' | sort | tail -1)"
}

# ---- a run that was killed in the middle, of which all that follows has copies: in other places, then
touch "$scratch/held"
start_engine "$scratch/base" run "$scratch/tick.yaml" --json -o "$scratch/base-runs"
wait_for_units "$scratch/base" 40
kill_engine
rm "$scratch/held"
base=$(folder_in "$scratch/base-runs")
is "what was shown is on disk" "$(journalled "$base")" 40
no_process() { ! pgrep -af "$TMPDIR/assay-"; }
eventually no_process

# torn NAME [FILE CUT ZEROS]...: a copy whose FILE has lost CUT bytes of its end and got ZEROS zeros; resumed.
torn() {
    local name=$1 place file size
    shift
    place=$(mktemp -d "$scratch/torn.XXXXXX")
    cp -a "$base" "$place/"
    place=$(folder_in "$place")
    while [ $# -gt 0 ]; do
        file=$place/$1
        size=$(stat -c %s "$file")
        truncate -s $((size > $2 ? size - $2 : 0)) "$file"
        truncate -s +"$3" "$file"
        shift 3
    done
    resume_to_end "$name: it is resumed to its end" "$place"
    is_whole "$name" "$place" 2
    rm -rf "$(dirname "$place")"
}
torn "nothing torn, in another place"
torn "results without their last lines" results/results.csv 1234 0
torn "both torn, with zeros behind" journal.jsonl 567 512 results/results.csv 89 4096
torn "no rows at all" results/results.csv 100000000 0

# ---- another machine's
if [ "$(id -u)" -eq 0 ] && unshare -u true 2>/dev/null; then
    mkdir "$scratch/elsewhere"
    cp -a "$base" "$scratch/elsewhere/"
    refuse "on a machine of another name its nodes are others, which is said" 2 "has not measured on so far; expected" \
        unshare -u sh -c 'hostname elsewhere; exec "$@"' sh "$ASSAY" resume "$(folder_in "$scratch/elsewhere")" -q
else
    skip "on another machine" "needs root"
fi

# ---- a disk that is full for a while: a tmpfs
if [ "$(id -u)" -eq 0 ] && mkdir -p "$scratch/full" && mount -t tmpfs -o size=400k assay-test "$scratch/full" 2>/dev/null; then
    tick_campaign "$scratch/many" 4000 0 local "probes: none"
    refuse "a full disk ends the run by a sentence" 1 "No space left on device" \
        "$ASSAY" run "$scratch/many.yaml" -q -o "$scratch/full"
    folder=$(folder_in "$scratch/full")
    keep_rows "$folder" "$scratch/kept-full"
    refuse "... so it does when it is resumed too soon" 1 "No space left on device" "$ASSAY" resume "$folder" -q
    mount -o remount,size=64m "$scratch/full"
    resume_to_end "... and when there is room it is resumed to its end" "$folder"
    check "... with each unit once" check_rows "$folder/results/results.csv" 4000 1
    check "... and what was there is there to the byte" rows_are_kept "$folder/results/results.csv" "$scratch/kept-full"
    umount "$scratch/full"

    # Units whose output fills it before a quarter of a second, after which they would be committed, is over.
    cat >"$scratch/verbose.yaml" <<END
experiment:
  name: verbose
  factors: {n: {type: integer}}
  run: [sh, -c, 'head -c 8000 /dev/zero | tr "\\\\0" x; echo; echo answer \$n']
  responses: {answer: {pattern: 'answer ([0-9]+)'}}
testbed: local
probes: none
design: {file: verbose.csv}
END
    { echo n; seq 400; } >"$scratch/verbose.csv"
    mount -t tmpfs -o size=500k assay-test "$scratch/full"
    refuse "a disk that outputs fill ends the run by a sentence" 1 "No space left on device" \
        "$ASSAY" run "$scratch/verbose.yaml" --json -o "$scratch/full"
    is "... as failed" "$(grep -c '"event":"ended","text":"failed"' "$scratch/.out")" 1
    folder=$(folder_in "$scratch/full")
    kept=$(journalled "$folder")
    check "... all whose output is there are kept, but the one that did not fit" test "$kept" -ge 5 -a \
        "$(find "$folder/results/raw" -name '*.out' | wc -l)" -le $((kept + 1))
    check "... in its folder" grep -q '"status": "failed"' "$folder/run.json"
    check "... also by its journal" sh -c "'$ASSAY' status '$folder' | grep -q '^status  *failed\$'"
    mount -o remount,size=64m "$scratch/full"
    resume_to_end "... and with room it is resumed to its end" "$folder"
    is "... with all units" "$(($(wc -l <"$folder/results/results.csv") - 1))" 400
    check "... nothing is left of what was reserved" test ! -e "$folder/.reserve"
    umount "$scratch/full"
else
    skip "a full disk" "mounting a tmpfs needs root"
fi

# ---- a disk that fails
# fails NAME PATTERN SETTING...: a run on it ends by a sentence; resumed on one that does not it is whole. It is a slower
# one, which writes more than once.
tick_campaign "$scratch/paced" $rows 8000 local "probes: none"
fails() {
    local name=$1 pattern=$2 runs folder
    shift 2
    runs=$(mktemp -d "$scratch/fails.XXXXXX")
    refuse "$name: the run ends by a sentence" 1 "$pattern" \
        with_fault disk-faults ASSAY_FAULT_FOLDER="$runs" ASSAY_FAULT_ERROR=EIO "$@" -- "$ASSAY" run "$scratch/paced.yaml" -q -o "$runs"
    folder=$(folder_in "$runs")
    keep_rows "$folder" "$scratch/kept-fails"
    resume_to_end "$name: it is resumed to its end" "$folder"
    check "$name: what was there is there to the byte" rows_are_kept "$folder/results/results.csv" "$scratch/kept-fails"
    check "$name: each unit is there once, with its answer" check_rows "$folder/results/results.csv" $rows 1
    rm -rf "$runs"
}
fails "results that cannot be written" "Input/output error" ASSAY_FAULT_NAME=results.csv ASSAY_FAULT_CALL=write ASSAY_FAULT_FROM=3
fails "results that are written by halves" "No space left" ASSAY_FAULT_NAME=results.csv ASSAY_FAULT_CALL=write ASSAY_FAULT_FROM=3 \
    ASSAY_FAULT_ERROR=ENOSPC ASSAY_FAULT_SHORT=1
fails "results that cannot be synced" "Input/output error" ASSAY_FAULT_NAME=results.csv ASSAY_FAULT_CALL=sync ASSAY_FAULT_FROM=3
fails "a journal that cannot be written" "Input/output error" ASSAY_FAULT_NAME=journal.jsonl ASSAY_FAULT_CALL=write ASSAY_FAULT_FROM=12
fails "a journal that cannot be synced" "Input/output error" ASSAY_FAULT_NAME=journal.jsonl ASSAY_FAULT_CALL=sync ASSAY_FAULT_FROM=12
fails "a journal beyond the quota" "Disk quota exceeded" ASSAY_FAULT_NAME=journal.jsonl ASSAY_FAULT_CALL=write ASSAY_FAULT_FROM=12 \
    ASSAY_FAULT_ERROR=EDQUOT
fails "a disk without room for the archive" "stays in '.*'; free space on its disk, then continue the run with 'assay resume': .*No space left" \
    ASSAY_FAULT_NAME='*.zip.part' ASSAY_FAULT_CALL=write ASSAY_FAULT_ERROR=ENOSPC
fails "a disk that is read-only when the archive gets its name" "Read-only file system" ASSAY_FAULT_NAME='*.zip.part' \
    ASSAY_FAULT_CALL=rename ASSAY_FAULT_ERROR=EROFS

# ---- a clock that is set back by an hour
start_stepped() { with_fault clock-step ASSAY_CLOCK_STEP="$scratch/step" -- "$@"; }
touch "$scratch/held"
start_stepped "$ASSAY" run "$scratch/tick.yaml" --json -o "$scratch/clock" >"$scratch/clock.json" 2>"$scratch/clock.err" &
shell_job=$! engine=$!
wait_for_units "$scratch/clock" 40
touch "$scratch/step"
rm "$scratch/held"
wait $shell_job
report $? "a run whose clock is set back ends well"
folder=$(folder_in "$scratch/clock")
is_whole "a clock that is set back" "$folder" 1
check "... it was: the journal has a time before the one above it" awk '{match($0, /"t":"[0-9]+/)
    t = substr($0, RSTART + 5, RLENGTH - 5) + 0; if (t < last - 3e12) back = 1; last = t} END {exit !back}' "$folder/journal.jsonl"
cp -a "$scratch/base-runs" "$scratch/back"
folder=$(folder_in "$scratch/back")
start_stepped "$ASSAY" resume "$folder" -q >"$scratch/out" 2>"$scratch/err"
report $? "a run is resumed with a clock an hour earlier than that of its first part"
is_whole "an earlier clock" "$folder" 2

# ---- two engines
touch "$scratch/held"
start_engine "$scratch/slow" run "$scratch/tick.yaml" --json -o "$scratch/slow-runs"
wait_for_units "$scratch/slow" 40
folder=$(folder_in "$scratch/slow-runs")
refuse "a run that is worked on is refused, and who does is named" 2 "$(hostname).*$engine|$engine.*$(hostname)" \
    "$ASSAY" resume "$folder" -q
check "... and goes on" kill -0 "$engine"
kill_engine
start_engine "$scratch/slow" resume "$folder" --json
wait_for_units "$scratch/slow" 80
check "... not when that has been killed" kill -0 "$engine"
kill_engine
rm "$scratch/held"

# ---- originals that have changed
cp -a "$scratch/base-runs" "$scratch/changed"
folder=$(folder_in "$scratch/changed")
cp "$scratch/tick.csv" "$scratch/tick.csv.kept"
sed -i 's/^7,/700,/' "$scratch/tick.csv"
echo '# a word more' >>"$scratch/tick.yaml"
echo '/* another */' >>"$scratch/experiments/tick/tick.c"
"$ASSAY" resume "$folder" >"$scratch/out" 2>"$scratch/err"
check "a run whose campaign was edited meanwhile is refused" test $? -eq 2
check "... with the line of the campaign" grep -q "tick.yaml' has changed at line [0-9]*: .*a word more" "$scratch/err"
check "... and of the experiment" grep -q "experiments/tick/tick.c' has changed at line [0-9]*: .*another" "$scratch/err"
check "... and of the design's file" grep -q "tick.csv' has changed at line 8: was '7,2000', is '700,2000'" "$scratch/err"
refuse "... so it is by 'run --resume'" 2 "has changed at line [0-9]*: .*a word more" \
    "$ASSAY" run "$scratch/tick.yaml" --resume -o "$scratch/changed" -q
cp "$folder/inputs.json" "$scratch/aside"
sed -i 's/"set": \[\]/"set": [{}]/' "$folder/inputs.json"
refuse "... a list of texts with others in it, too" 2 "inputs.json:[0-9:]* item 1 of 'set' is a mapping, expected text" \
    "$ASSAY" resume "$folder" -q
mv "$scratch/aside" "$folder/inputs.json"
mv "$folder/campaign.yaml" "$scratch/aside"
"$ASSAY" run "$scratch/tick.yaml" -q -o "$scratch/changed" >"$scratch/out" 2>"$scratch/err"
report $? "... and no damage of it keeps another run from its end"
check "... which tells of it" \
    grep -q "cannot be continued: cannot open '.*/campaign.yaml'.*; this is a new run" "$scratch/err"
rm -rf "$(sed 's/\.zip$//' "$scratch/out")"*
mv "$scratch/aside" "$folder/campaign.yaml"
"$ASSAY" resume "$folder" --as-recorded >"$scratch/out" 2>"$scratch/err"
report $? "... and with --as-recorded resumed as it was"
is_whole "an edited campaign" "$folder" 2
mv "$scratch/tick.csv.kept" "$scratch/tick.csv"

# ---- nothing is left
check "no process of any part is left" eventually no_process
finish
