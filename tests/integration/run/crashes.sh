#!/bin/bash
# A run of ten units is recorded, call by call; so is one that is killed in the middle and resumed. Then everything is
# tried that their folders can hold when the engine is killed at any of these calls, or the machine loses its power
# there (tests/faults/crash-states.c): what was shown as done is done, each unit is there once when the run is resumed,
# and the archive verifies.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/faults/faults.sh"
memory=$(mktemp -d -p /dev/shm assay-test.XXXXXX 2>/dev/null) || memory=$scratch # a sync costs nothing there
cleanup() { [ "$memory" = "$scratch" ] || mv "$memory" "$scratch/states"; } # which is kept if a check failed

# A unit waits until the one before it was shown as done, so that there is a commit for each.
cat >"$scratch/unit" <<EOF
#!/bin/sh
[ ! -e "$scratch/one-by-one" ] || [ "\$order" -eq 1 ] ||
    tail -n +1 -f "$scratch/events" | grep -q "\"units_done\":\$((order - 1)),"
echo "answer \$((n * 7919 % 101))"
EOF
chmod +x "$scratch/unit"
cat >"$scratch/ten.yaml" <<EOF
name: ten
experiment:
  name: ten
  factors: {n: {type: integer}}
  run: $scratch/unit
  responses: {answer: {pattern: 'answer ([0-9]+)'}}
testbed: local
probes: none
design: {file: ten.csv, seed: 1}
EOF
{ echo n; seq 10; } >"$scratch/ten.csv"

# recorded NAME [ASSAY_FAULT_...=...]... -- ARGUMENTS: the engine's calls on $scratch/NAME, and what it shows.
recorded() {
    local name=$1 faults=()
    shift
    while [ "$1" != -- ]; do faults+=("$1"); shift; done
    mkdir -p "$scratch/$name"
    with_fault disk-faults ASSAY_FAULT_FOLDER="$scratch/$name" ASSAY_FAULT_RECORD="$scratch/$name.record" \
        "${faults[@]}" -- "$ASSAY" "${@:2}" --json >"$scratch/events" 2>"$scratch/err"
}

results_of() { # results_of FOLDER COUNT: lines and outputs of the first
    local i outputs=()
    for ((i = 1; i <= $2; i++)); do outputs+=("$1/results/raw/$i-"*); done
    head -n $(($2 + 1)) "$1/results/results.csv" | cat - "${outputs[@]}"
}
# Whether what was shown before a crash is so after it, and the run can be brought to its end; if so the folder goes.
look_at() { # look_at STATES NUMBER CALL WHAT STARTED UNITS SEALED
    local states=$1 number=$2 call=$3 what=$4 started=$5 units=$6 sealed=$7 status archive kept=0
    local whole=("$states/0"/ten-*[0-9a-f]) folder=("$states/$number"/ten-*[0-9a-f]) agents=$scratch/agents/$number
    complain() { echo "${folder#"$memory"/}, $what at call $call, when $units units were shown (sealed: $sealed): $*"; }
    status=$("$ASSAY" status --json "$folder" 2>&1)
    [[ ! $status =~ \"done\":\ ([0-9]+) ]] || kept=${BASH_REMATCH[1]}
    [ "$kept" -ge "$units" ] || complain "$kept are done"
    [ "$sealed" -eq 0 ] || "$ASSAY" archive verify "$folder.zip" >/dev/null 2>&1 || complain "no archive that verifies"
    # All of them are one run, whose agents would be in each other's way.
    mkdir -p "$agents"
    archive=$(TMPDIR=$agents "$ASSAY" resume "$folder" -q 2>&1)
    status=$?
    [ $status -eq 2 ] && [ "$started" -eq 0 ] && return # nobody was told that there is a run
    [ $status -eq 0 ] || { complain "resumed: $archive"; return; }
    cmp -s <(results_of "$whole" "$kept") <(results_of "$folder" "$kept") ||
        complain "the results of the $kept units that were done are others"
    awk -F, 'NR > 1 && ($11 != $10 * 7919 % 101 || seen[$1]++) {bad = 1} END {exit bad || NR != 11}' "$folder/results/results.csv" ||
        complain "not each unit is there once, with its answer"
    "$ASSAY" archive verify "$archive" >/dev/null 2>&1 || complain "the archive does not verify"
    ! grep -aq '[.]part' "$archive" || complain "the archive has what was half written" # names are not compressed
    rm -rf "${states:?}/$number"
}
nothing_in() { ! grep -h . "$@"; }
states_of() {
    mkdir "$2" && "$ASSAY_BUILD/tests/faults/crash-states" "$scratch/$1.record" "$2" >"$2.list" &&
        diff -r "$scratch/$1" "$2/0"
}
every_state() { # every_state NAME CHECK: of what was recorded under NAME, two at a time
    local states=$memory/$1.states worker number rest workers=()
    check "... $1: the record has all that the folder holds" states_of "$1" "$states"
    for worker in 0 1; do
        while read -r number rest; do
            # shellcheck disable=SC2086
            [ $((number % 2)) -ne $worker ] || look_at "$states" "$number" $rest
        done <"$states.list" >"$states.bad-$worker" &
        workers+=($!)
    done
    for worker in "${workers[@]}"; do wait "$worker" || echo "not every state was looked at" >>"$states.bad-0"; done
    echo "# $(wc -l <"$states.list") states"
    check "$2" nothing_in "$states".bad-*
}

touch "$scratch/one-by-one"
recorded whole -- run "$scratch/ten.yaml" -o "$scratch/whole"
report $? "a run of ten units"
check "... each of which is shown" test "$(grep -o '"units_done":[0-9]*' "$scratch/events" | sort -u | wc -l)" -ge 10
every_state whole "... a crash at any of its calls loses nothing"

# The fifth unit is in the journal, but not synced.
sync=$(awk '/^make .* journal.jsonl -$/ {inode = $3} $1 == "fdatasync" && $2 == inode {syncs++}
    /"event":"progress",.*"units_done":5,/ {print syncs; exit}' "$scratch/whole.record")
recorded resumed ASSAY_FAULT_NAME=journal.jsonl ASSAY_FAULT_CALL=sync ASSAY_FAULT_FROM="$sync" ASSAY_FAULT_ERROR=KILL -- \
    run "$scratch/ten.yaml" -o "$scratch/resumed"
check "a run that is killed before it syncs its journal" test $? -eq 137
rm "$scratch/one-by-one"
ln -s resumed "$scratch/asked"
cp "$scratch/resumed.record" "$scratch/asked.record"
recorded asked -- status "$(echo "$scratch"/resumed/ten-*)"
check "... and asked for its status, which has that unit as done" grep -q '"done": 5' "$scratch/events"
every_state asked "... a crash after that loses nothing"
recorded resumed -- resume "$(echo "$scratch"/resumed/ten-*)"
report $? "... and resumed"
every_state resumed "... a crash at any call of the resumed run loses nothing"
finish
