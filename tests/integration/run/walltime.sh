#!/bin/bash
# Runs whose time is limited: they end before it is over, restored and sealed, and say what is missing. Time passes when a
# unit says so, which takes a moment.
. "$(dirname "$0")/../tap.sh"
move_clock
command -v cc >/dev/null || plan_skip "no C compiler"
export TMPDIR=$scratch/tmp
mkdir -p "$TMPDIR"
unset SLURM_JOB_END_TIME

# naps NAME MINUTES ROWS [LINE]...: a campaign in place, a command a unit, of so many minutes; or $work.
naps() {
    local name=$1 minutes=$2 rows=$3; shift 3
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
  run: [sh, -c, '${work:-truncate -s +$((minutes * 60000)) $ASSAY_TEST_CLOCK; echo took 1}']
$(printf '%s\n' "$@" | grep '^  ')
EOF
}
# limited NAME [OPTION]...: runs it; sets $status, $passed (the seconds that units and this test let pass), $archive.
limited() {
    local name=$1; shift
    rm -rf "${scratch:?}/$name"
    : >"$ASSAY_TEST_CLOCK"
    "$ASSAY" run "$scratch/$name.yaml" -o "$scratch/$name" "$@" >"$scratch/out" 2>"$scratch/err"
    status=$? archive=$(tail -1 "$scratch/out") passed=$(($(stat -c %s "$ASSAY_TEST_CLOCK") / 1000))
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
naps walltime 1 200 'walltime: {limit: 20min, margin: 2min}'
limited walltime
check "a run of 200 min with a walltime of 20 min ends in time (after $passed s)" test "$passed" -le $((18 * 60))
check "... having measured something" test "$(lines_of results/results.csv)" -ge 1
is_partial 1 200 deadline
check "... what is kept for the end is told" grep -qE "the reservation ends at [0-9:]+; .* kept for restoring and sealing" "$scratch/err"
check "... why it ended, too" grep -qE "the time was up after [0-9]+ of 200 units; they are sealed" "$scratch/err"
check "... the journal has the deadline and its source" grep -q '"source":"walltime"' <(events deadline)
check "... and that it was reached" test "$(events deadline-reached | wc -l)" -eq 1
check "... no unit was ended: those that would not end in time were not begun" \
    test -z "$(events unit-failed)"
check "campaign.resolved.json has what was asked" grep -q '"limit": *1200' <(member campaign.resolved.json)
check "--dry-run tells it" grep -q "^walltime *limit 20 min" <("$ASSAY" run "$scratch/walltime.yaml" --dry-run)

naps all 1 5 'walltime: {limit: 1h}'
limited all
check "a run that has time enough is completed (it was $status)" test $status -eq 0
check "... nothing is missing" test -z "$("$ASSAY" archive list "$archive" | grep missing.csv)"
SLURM_JOB_END_TIME=$(($(date +%s) + 240)) limited all --until 1h
check "in a Slurm job its end counts, if it is the earliest" grep -q '"source":"testbed"' <(events deadline)

# ---- What cannot end in time is not begun
naps estimated 1 10 '  estimate: 1000' 'walltime: {margin: 1min}'
limited estimated --until 10min
check "units that are known to take longer than what is left are not begun" test "$(lines_of results/results.csv)" -eq 0
check "... that is said" grep -q "no time is left for another unit" "$scratch/err"
is_partial 1 10 deadline
cat >"$scratch/model.json" <<'EOF'
{"assay_model": 2, "kind": "linear", "response": {"name": "took", "unit": "ms"}, "weights": null, "by": ["node"],
 "terms": [{"name": "1", "unit": "ms", "factors": []}, {"name": "n", "unit": "ms", "factors": [{"column": "n", "power": 1}]}],
 "columns": [{"name": "n", "unit": null, "type": null}],
 "origin": {"plugin": "fit-linear", "version": "1", "engine": "1", "created": "2026-01-01T00:00:00Z", "rows": 18, "seed": 1,
            "settings": {}, "inputs": []}, "units": {},
 "groups": [
  {"labels": {"node": "a"}, "rows": 9, "values": {}, "notes": [], "parts": [{"kind": "whole", "estimates": [
   {"term": "1", "estimate": 1, "standard_error": 1, "t": 1, "p": 1},
   {"term": "n", "estimate": 1, "standard_error": 1, "t": 1, "p": 1}], "covariance": null, "values": {}, "domain": {"n": [1, 9]}}]},
  {"labels": {"node": "b"}, "rows": 9, "values": {}, "notes": [], "parts": [{"kind": "whole", "estimates": [
   {"term": "1", "estimate": 100000, "standard_error": 1, "t": 1, "p": 1},
   {"term": "n", "estimate": 1, "standard_error": 1, "t": 1, "p": 1}], "covariance": null, "values": {}, "domain": {"n": [1, 9]}}]}],
 "skipped": []}
EOF
naps modelled 1 10 'walltime: {margin: 10 s, model: model.json}'
limited modelled --until 90s
check "a model says so, too, by its slowest group" test "$(lines_of results/results.csv)" -eq 0
is_partial 1 10 deadline
sed -i 's/"unit": "ms"/"unit": "By"/; s/"column": "n"/"column": "m"/; s/"columns": \[{"name": "n"/"columns": [{"name": "m"/' "$scratch/model.json"
refuse "a model whose response is no time is refused" 2 "model.json: the model's response 'took' has the unit 'By'; expected a time" \
    "$ASSAY" run "$scratch/modelled.yaml" -o "$scratch/never"
sed -i 's/"unit": "By"/"unit": "ms"/' "$scratch/model.json"
refuse "so is one that needs what the design does not have" 2 "the model uses 'm', which is no column of the design" \
    "$ASSAY" run "$scratch/modelled.yaml" -o "$scratch/never"
# It is not known, but learnt from the first: what is left then is not enough for another one.
naps learnt 5 4 'walltime: {margin: 1min}'
limited learnt --until 18min
check "how long units take is learnt from those that are done" test -z "$(events unit-failed)"
is_partial 1 4 deadline

# ---- What still runs when the time is up is ended, and missing, not failed
work="touch $scratch/begun; exec sleep 1000" naps endless 0 3 'walltime: {limit: 100min, margin: 40min}' "  teardown: ['touch $scratch/torn; exec sleep 1000']"
gives_up() { eventually grep -q "no longer waiting for the nodes" "$scratch/err"; }
{ eventually test -e "$scratch/begun"; advance 3600s; eventually test -e "$scratch/torn"; advance 1800s; gives_up; } &
limited endless
wait $!; given_up=$?
check "a unit that takes longer than anybody knew is ended in time (after $passed s)" test "$passed" -le 6000
is_partial 1 3 deadline
is "... a teardown that takes longer than what was kept for it is given up" $given_up 0
check "... and no unit has failed" grep -q '"units_failed": *0' <(member run.json)

naps over 1 3 'walltime: {limit: 60 s, margin: 59999ms}'
limited over
is_partial 1 3 deadline
refuse "a time that is over already is refused" 2 "'2026-01-01T00:00' is in the past; expected a time in the future" \
    "$ASSAY" run "$scratch/over.yaml" --until 2026-01-01T00:00 -o "$scratch/never"
refuse "what is no time is refused" 2 "'noon' is not a time; expected a duration such as 90min" \
    "$ASSAY" run "$scratch/over.yaml" --until noon -o "$scratch/never"
check "... and nothing is touched" test ! -e "$scratch/never"
SLURM_JOB_END_TIME=1000000000 limited over
check "a Slurm job that is over already leaves no time: exit code 6 (it was $status)" test $status -eq 6

# ---- A streamed kernel, which lets n us pass: its rows are sent only as far ahead as they fit
mkdir -p "$scratch/experiments/beat"
export ASSAY_PATH=$scratch
cat >"$scratch/experiments/beat/beat.c" <<'C'
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char line[256];
    long unit, n;
    struct stat file = {0};
    if (argc != 2) return 7;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("unit,start,start_monotonic,duration\n");
    if (!fgets(line, sizeof line, stdin)) return 9;
    while (fgets(line, sizeof line, stdin)) {
        struct timespec t, m;
        if (sscanf(line, "%ld,%ld", &unit, &n) != 2 || stat(argv[1], &file) < 0) return 8;
        clock_gettime(CLOCK_REALTIME, &t);
        clock_gettime(CLOCK_MONOTONIC, &m);
        t.tv_sec += file.st_size / 1000;
        m.tv_sec += file.st_size / 1000;
        (void)!truncate(argv[1], file.st_size + n / 1000);
        printf("%ld,%ld%09ld,%ld%09ld,%g\n", unit, (long)t.tv_sec, t.tv_nsec, (long)m.tv_sec, m.tv_nsec, (double)n / 1e6);
    }
    return 0;
}
C
cat >"$scratch/experiments/beat/experiment.yaml" <<E2
name: beat
factors: {n: {type: integer, minimum: 0, maximum: 100000000, unit: us}}
responses: {duration: {unit: s}}
setup: [[cc, -o, beat, beat.c]]
estimate: n * 1e-6
run: {streamed: [./beat, $ASSAY_TEST_CLOCK], placement: node}
E2
beats() { # beats NAME N COUNT [LINE]...
    local name=$1; { echo n; for _ in $(seq "$3"); do echo "$2"; done; } >"$scratch/$name.csv"
    { printf 'name: %s\nexperiment: beat\ndesign: %s.csv\n' "$name" "$name"; shift 3; printf '%s\n' "$@"; } >"$scratch/$name.yaml"
}
beats stream 1000000 2000 'walltime: {limit: 300 s, margin: 200 s}' 'probes: none'
limited stream
check "a kernel of 2000 s with a walltime of 300 s ends in time (after $passed s)" test "$passed" -le 100
check "... having measured something" test "$(lines_of results/results.csv)" -ge 10
is_partial 1 2000 deadline
check "... its kernel ended by itself: what was sent was measured" \
    grep -q "no time is left for another unit" "$scratch/err"
beats jumps 80000000 20 'walltime: {limit: 250 s, margin: 30 s}' 'probes: none'
limited jumps
check "rows of 80 s are sent one by one, as long as they fit: twice" test "$(lines_of results/results.csv)" -eq 2
is_partial 1 20 deadline

# ---- A unit that takes many times what it should
work='truncate -s +590000 $ASSAY_TEST_CLOCK; if [ $n = 2 ]; then truncate -s +20000 $ASSAY_TEST_CLOCK; exec sleep 1000; fi; echo took 1' naps overrun 0 2
sed -i 's/^  run: \(.*\)/  run: {command: \1, timeout: 48h, overrun: 5}\n  estimate: n/; s/design: \(.*\)/design: {file: \1, order: as-written}/' "$scratch/overrun.yaml"
limited overrun
check "a unit that takes many times its estimate is ended, but not within 10 minutes" \
    test "$(lines_of results/results.csv) $(grep -c 'unit 2 .* failed: the command ran past its time limit.*; the limit is 600 s' "$scratch/err")" = "1 1"
sed -i '/estimate: n/d' "$scratch/overrun.yaml"
refuse "'overrun' without an estimate" 2 "'overrun' .* expected an 'estimate'" "$ASSAY" run "$scratch/overrun.yaml" --dry-run

# ---- In a new reservation
naps again 1 30 'walltime: {limit: 20min, margin: 2min}'
limited again --resubmit
check "what the time did not allow is done in further reservations (exit code $status)" test $status -eq 0
check "... there were some" test "$(events run-resumed | wc -l)" -ge 1
check "... each unit was done, once" test "$(member results/results.csv | awk -F, 'NR > 1 {print $1}' | sort -n | uniq | wc -l) $(lines_of results/results.csv)" = "30 30"
check "... and nothing is missing any more" test -z "$("$ASSAY" archive list "$archive" | grep missing.csv)"

# ---- Asked to end
work='sleep 0.1; echo took 0.1' naps asked 0 1000
for signal in USR2 TERM; do
    rm -rf "${scratch:?}/asked" "$scratch/err" "$scratch/out"
    "$ASSAY" run "$scratch/asked.yaml" -o "$scratch/asked" >"$scratch/out" 2>"$scratch/err" &
    eventually grep -qs ' of .* units' "$scratch/err"
    kill -$signal $!; kill -TERM $!; wait $!; status=$? archive=$(cat "$scratch/out")
    check "SIG$signal, and SIGTERM at once after it, end the run" test $status -eq 6
    is_partial 1 1000 checkpoint
    check "... the journal has the signal" test "$(events checkpoint | grep -c "\"signal\":\"SIG$signal\"")" -eq 1
    check "... and what software there was" grep -q '"compiler"' <(member software/versions.json)
done
finish
