#!/bin/bash
# Runs whose time is limited: they end before it is over, restored and sealed, and say what is missing.
. "$(dirname "$0")/../tap.sh"
command -v cc >/dev/null || plan_skip "no C compiler"
export TMPDIR=$scratch/tmp
mkdir -p "$TMPDIR"
unset SLURM_JOB_END_TIME

# naps NAME SLEEP ROWS [LINE]...: a campaign in place, a command a unit, of so many seconds.
naps() {
    local name=$1 sleep=$2 rows=$3; shift 3
    { echo n; seq "$rows"; } >"$scratch/$name.csv"
    cat >"$scratch/$name.yaml" <<EOF
name: $name
probes: none
design: $name.csv
$(printf '%s\n' "$@" | grep -v '^  ')
experiment:
  name: $name
  factors: {n: {type: integer}}
  responses: {took: {pattern: 'took ([0-9.]+)', unit: s}}
  run: [sh, -c, 'sleep $sleep; echo took $sleep']
$(printf '%s\n' "$@" | grep '^  ')
EOF
}
# limited NAME [OPTION]...: runs it; sets $status, $seconds (rounded up), $archive.
limited() {
    local name=$1 began=$SECONDS; shift
    rm -rf "${scratch:?}/$name"
    timeout 200 "$ASSAY" run "$scratch/$name.yaml" -o "$scratch/$name" "$@" >"$scratch/out" 2>"$scratch/err"
    status=$? seconds=$((SECONDS - began + 1)) archive=$(tail -1 "$scratch/out")
}
# A machine that is busy with other things is late: what is asked of the clock is asked again with twice the time.
# punctual MS CONDITION NAME [OPTION]...: limited with a limit of MS, and again until the condition holds. Sets $limit (ms).
punctual() {
    local first=$1 condition=$2 factor; shift 2
    for factor in 1 2 4; do
        limit=$((first * factor))
        sed -i "s/limit: [0-9]*ms/limit: ${limit}ms/" "$scratch/$1.yaml"
        limited "$@"; eval "$condition" && return
    done
}
member() { "$ASSAY" archive cat "$archive" "$1"; }
lines_of() { member "$1" | tail -n +2 | wc -l; }
events() { member journal.jsonl | grep "\"event\":\"$1\""; }
# is_partial LANES ROWS WHY: exit code, status, and that done and missing units are the planned ones, each once.
is_partial() {
    local lanes=$1 rows=$2 why=$3
    check "... the exit code is 6 (it was $status)" test $status -eq 6
    check "... it is sealed, as partial" sh -c "'$ASSAY' archive verify '$archive' && '$ASSAY' archive cat '$archive' run.json | grep -q '\"status\": *\"partial\"'"
    member results/results.csv | awk -F, 'NR>1 {print $1","$2","$3","$6","$7}' | sort >"$scratch/done"
    member results/missing.csv | awk -F, 'NR>1 {print $1","$2","$3","$4","$5}' | sort >"$scratch/missing"
    check "... done and missing units are all that were planned, and none is both" \
        test "$(sort -u "$scratch/done" "$scratch/missing" | wc -l)" -eq $((lanes * rows)) \
        -a $(($(wc -l <"$scratch/done") + $(wc -l <"$scratch/missing"))) -eq $((lanes * rows))
    check "... missing.csv says why: $why" test "$(member results/missing.csv | awk -F, 'NR>1 {print $6}' | sort -u)" = "$why"
    check "... and is described" grep -q '"path": *"results/missing.csv"' <(member datapackage.json)
    check "... nothing is left on the node" test -z "$(ls -A "$TMPDIR")"
}

# ---- A command a unit
naps walltime 0.1 200 'walltime: {limit: 2500ms, margin: 500ms}'
punctual 2500 '[ $seconds -le $((limit / 1000 + 2)) ] && [ "$(lines_of results/results.csv)" -ge 1 ]' walltime
check "a run of 20 s with a walltime of $limit ms ends in time (after $seconds s at most)" test $seconds -le $((limit / 1000 + 2))
check "... having measured something" test "$(lines_of results/results.csv)" -ge 1
is_partial 1 200 deadline
check "... what is kept for the end is told" grep -qE "the reservation ends at [0-9:]+; .* kept for restoring and sealing" "$scratch/err"
check "... why it ended, too" grep -qE "the time was up after [0-9]+ of 200 units; they are sealed" "$scratch/err"
check "... the journal has the deadline and its source" grep -q '"source":"walltime"' <(events deadline)
check "... and that it was reached" test "$(events deadline-reached | wc -l)" -eq 1
check "... and how long each unit took" test "$(events unit | grep -c '"took_ns":[0-9]')" -eq "$(lines_of results/results.csv)"
check "... no unit was ended: those that would not end in time were not begun" \
    test -z "$(events unit | grep -v '"status":"done"')"
check "... what was rehearsed is gone" test -z "$(find "$scratch/walltime" -name '.rehearsal*')"
check "campaign.resolved.json has what was asked" grep -q "\"limit_seconds\": *$(awk "BEGIN {print $limit / 1000}")" <(member campaign.resolved.json)
check "--dry-run tells it" grep -q "^Walltime: $(awk "BEGIN {print $limit / 1000}") s" <("$ASSAY" run "$scratch/walltime.yaml" --dry-run)

naps all 0.05 5 'walltime: {limit: 60000ms}'
punctual 60000 '[ $status -eq 0 ]' all
check "a run that has time enough is completed (it was $status)" test $status -eq 0
check "... nothing is missing" test -z "$("$ASSAY" archive list "$archive" | grep missing.csv)"
SLURM_JOB_END_TIME=$(($(date +%s) + 4)) limited all --until 1h
check "in a Slurm job its end counts, if it is the earliest" grep -q '"source":"testbed"' <(events deadline)

# ---- What cannot end in time is not begun
naps estimated 0.1 10 '  estimate: 1000' 'walltime: {margin: 100ms}'
limited estimated --until 1500ms
check "units that are known to take longer than what is left are not begun" test "$(lines_of results/results.csv)" -eq 0
check "... that is said" grep -q "no further unit would end in time" "$scratch/err"
is_partial 1 10 deadline
cat >"$scratch/model.json" <<'EOF'
{"assay_model": 1, "kind": "linear", "response": {"name": "took", "unit": "ms"},
 "formula": [{"name": "1", "unit": "ms", "factors": []}, {"name": "n", "unit": "ms", "factors": [{"factor": "n", "power": 1}]}],
 "factors": [{"name": "n", "unit": null}], "weights": null, "by": ["node"],
 "origin": {"plugin": "fit-linear", "version": "1", "engine": "1", "created": "2026-01-01T00:00:00Z", "rows": 9,
            "inputs": [{"file": "a", "sha256": "0000000000000000000000000000000000000000000000000000000000000000", "run_id": null, "rows": 9}]},
 "groups": [
  {"labels": {"node": "a"}, "n": 9, "notes": [], "terms": [
   {"name": "1", "unit": "ms", "estimate": 1, "standard_error": 1, "t": 1, "p": 1},
   {"name": "n", "unit": "ms", "estimate": 1, "standard_error": 1, "t": 1, "p": 1}], "covariance": null,
   "domain": [{"name": "n", "minimum": 1, "maximum": 9}]},
  {"labels": {"node": "b"}, "n": 9, "notes": [], "terms": [
   {"name": "1", "unit": "ms", "estimate": 100000, "standard_error": 1, "t": 1, "p": 1},
   {"name": "n", "unit": "ms", "estimate": 1, "standard_error": 1, "t": 1, "p": 1}], "covariance": null,
   "domain": [{"name": "n", "minimum": 1, "maximum": 9}]}], "skipped": []}
EOF
naps modelled 0.1 10 'walltime: {margin: 100ms, model: model.json}'
limited modelled --until 1500ms
check "a model says so, too, by its slowest group" test "$(lines_of results/results.csv)" -eq 0
is_partial 1 10 deadline
sed -i 's/"unit": "ms"/"unit": "By"/; s/"factor": "n"/"factor": "m"/' "$scratch/model.json"
refuse "a model whose response is no time is refused" 2 "model.json: the model's response 'took' has the unit 'By', expected a time" \
    "$ASSAY" run "$scratch/modelled.yaml" -o "$scratch/never"
sed -i 's/"unit": "By"/"unit": "ms"/' "$scratch/model.json"
refuse "so is one that needs what the design does not have" 2 "the model needs 'm', which is no column of the design" \
    "$ASSAY" run "$scratch/modelled.yaml" -o "$scratch/never"
# It is not known, but learnt from the first: what is left then is not enough for another one.
naps learnt 0.5 4 'walltime: {margin: 100ms}'
limited learnt --until 1800ms
check "how long units take is learnt from those that are done" test -z "$(events unit | grep -v '"status":"done"')"
is_partial 1 4 deadline

# ---- What still runs when the time is up is ended, and missing, not failed
naps endless 1000 3 'walltime: {limit: 2000ms, margin: 400ms}' '  teardown: [sleep 1000]'
punctual 2000 '[ $seconds -le $((limit / 1000 + 2)) ]' endless
check "a unit that takes longer than anybody knew is ended in time (after $seconds s at most)" test $seconds -le $((limit / 1000 + 2))
is_partial 1 3 deadline
check "... a teardown that takes longer than what was kept for it is given up" grep -q "no longer waiting for the nodes" "$scratch/err"
check "... and no unit has failed" grep -q '"units_failed": *0' <(member run.json)

naps over 0.1 3 'walltime: {limit: 1 s, margin: 900ms}'
limited over
is_partial 1 3 deadline
refuse "a time that is over already is refused" 2 "'2026-01-01T00:00' is over already; expected a time to come" \
    "$ASSAY" run "$scratch/over.yaml" --until 2026-01-01T00:00 -o "$scratch/never"
refuse "what is no time is refused" 2 "'noon' is no time; expected a duration such as 90min" \
    "$ASSAY" run "$scratch/over.yaml" --until noon -o "$scratch/never"
check "... and nothing is touched" test ! -e "$scratch/never"
SLURM_JOB_END_TIME=1000000000 limited over
check "a Slurm job that is over already leaves no time: exit code 6 (it was $status)" test $status -eq 6

# ---- A streamed kernel: its core's rows are sent only as far ahead as they fit
mkdir -p "$scratch/experiments/beat"
export ASSAY_PATH=$scratch
cat >"$scratch/experiments/beat/beat.c" <<'C'
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
int main(void) {
    char line[256];
    long unit, n;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("unit,start,start_monotonic,duration\n");
    if (!fgets(line, sizeof line, stdin)) return 9;
    while (fgets(line, sizeof line, stdin)) {
        struct timespec t, m;
        if (sscanf(line, "%ld,%ld", &unit, &n) != 2) return 8;
        clock_gettime(CLOCK_REALTIME, &t);
        clock_gettime(CLOCK_MONOTONIC, &m);
        usleep((unsigned)n);
        printf("%ld,%ld%09ld,%ld%09ld,%g\n", unit, (long)t.tv_sec, t.tv_nsec, (long)m.tv_sec, m.tv_nsec, (double)n / 1e6);
    }
    return 0;
}
C
cat >"$scratch/experiments/beat/experiment.yaml" <<'E2'
name: beat
factors: {n: {type: integer, minimum: 0, maximum: 10000000, unit: us}}
responses: {duration: {unit: s}}
setup: [[cc, -o, beat, beat.c]]
estimate: n * 1e-6
run: {streamed: [./beat], placement: core}
E2
beats() { # beats NAME N COUNT [LINE]...
    local name=$1; { echo n; for _ in $(seq "$3"); do echo "$2"; done; } >"$scratch/$name.csv"
    { printf 'name: %s\nexperiment: beat\ndesign: %s.csv\n' "$name" "$name"; shift 3; printf '%s\n' "$@"; } >"$scratch/$name.yaml"
}
beats short 1000 3 'probes: none'
limited short
lanes=$(($(lines_of results/results.csv) / 3))
beats stream 10000 3000 'walltime: {limit: 5000ms, margin: 2 s}' 'probes: 500ms'
punctual 5000 '[ $seconds -le $((limit / 1000 + 1)) ] && [ "$(lines_of results/results.csv)" -ge $((10 * lanes)) ] &&
    grep -q "no further unit would end in time" "$scratch/err"' stream
check "a kernel of 30 s with a walltime of $limit ms ends in time (after $seconds s at most)" test $seconds -le $((limit / 1000 + 1))
check "... having measured something" test "$(lines_of results/results.csv)" -ge $((10 * lanes))
is_partial "$lanes" 3000 deadline
check "... its kernels ended by themselves: what was sent was measured" \
    grep -q "no further unit would end in time" "$scratch/err"
beats jumps 800000 20 'walltime: {limit: 2500ms, margin: 300ms}' 'probes: none'
punctual 2500 '[ "$(lines_of results/results.csv)" -ge "$lanes" ]' jumps
check "rows of 0.8 s are sent one by one, as long as they fit: up to $((limit / 800 - 1)) a core" \
    test "$(lines_of results/results.csv)" -ge "$lanes" -a "$(lines_of results/results.csv)" -le $(((limit / 800 - 1) * lanes))
is_partial "$lanes" 20 deadline

# ---- In a new reservation
naps again 0.1 80 'walltime: {limit: 4000ms, margin: 300ms}'
punctual 4000 '[ $status -eq 0 ]' again --resubmit
check "what the time did not allow is done in further reservations (exit code $status)" test $status -eq 0
check "... there were some" test "$(events run-resumed | wc -l)" -ge 1
check "... each unit was done, once" test "$(member results/results.csv | awk -F, 'NR > 1 {print $1}' | sort -n | uniq | wc -l) $(lines_of results/results.csv)" = "80 80"
check "... and nothing is missing any more" test -z "$("$ASSAY" archive list "$archive" | grep missing.csv)"

# ---- Asked to end
naps asked 0.1 200
for signal in USR2 TERM; do
    rm -rf "${scratch:?}/asked" "$scratch/err" "$scratch/out"
    timeout 60 "$ASSAY" run "$scratch/asked.yaml" -o "$scratch/asked" >"$scratch/out" 2>"$scratch/err" &
    for _ in $(seq 300); do grep -qs ' of .* units' "$scratch/err" && break; sleep 0.1; done
    pid=$(pgrep -P $!)
    sleep 0.5; kill -$signal "$pid"; kill -TERM "$pid"; wait $!; status=$? archive=$(cat "$scratch/out")
    check "SIG$signal, and SIGTERM at once after it, end the run" test $status -eq 6
    is_partial 1 200 checkpoint
    check "... the journal has the signal" test "$(events checkpoint | grep -c "\"signal\":\"SIG$signal\"")" -eq 1
    check "... and what software there was" grep -q '"compiler"' <(member software/versions.json)
done
finish
