#!/bin/bash
# How runs end when they do not end well: interrupted, killed, out of disk, out of memory, a kernel that dies or lies.
. "$(dirname "$0")/../tap.sh"
command -v cc >/dev/null || plan_skip "no C compiler"

# A kernel by the streamed protocol, in C, that can be told to misbehave.
mkdir -p "$scratch/experiments/beat"
export ASSAY_PATH=$scratch TMPDIR=$scratch/tmp
mkdir -p "$TMPDIR"
cat >"$scratch/experiments/beat/beat.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "well";
    char line[256];
    long unit, n;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!strcmp(how, "header")) { printf("nonsense\n"); return pause(); }
    printf("#kernel: beat\n");
    /* "facts-COUNT-BYTES": so many more, of so many bytes. */
    int count = 0, bytes = 0;
    if (sscanf(how, "facts-%d-%d", &count, &bytes) == 2)
        for (int i = 0; i < count; i++) printf("#fact-%d: %0*d\n", i, bytes, i);
    printf("unit,start,duration\n");
    if (!fgets(line, sizeof line, stdin)) return 9;
    while (fgets(line, sizeof line, stdin)) {
        struct timespec t;
        if (sscanf(line, "%ld,%ld", &unit, &n) != 2) return 8;
        usleep((unsigned)n);
        clock_gettime(CLOCK_REALTIME, &t);
        if (unit == 7 && !strcmp(how, "die")) { fprintf(stderr, "beat: out of beats\n"); return 5; }
        if (unit == 7 && !strcmp(how, "crash")) abort();
        if (unit == 7 && !strcmp(how, "lie")) unit = 70;
        if (unit == 7 && !strcmp(how, "mumble")) { printf("7,now,1\n"); continue; }
        if (unit == 7 && !strcmp(how, "stop")) return 0;
        printf("%ld,%ld%09ld,%g\n", unit, (long)t.tv_sec, t.tv_nsec, (double)n / 1e6);
    }
    return 0;
}
C
cat >"$scratch/experiments/beat/experiment.yaml" <<'E2'
name: beat
factors: {n: {type: integer, minimum: 0, maximum: 10000000, unit: us}}
responses: {duration: {unit: s}}
options: {how: {type: text, default: well}, gib: {type: integer, default: 0}}
setup: [[cc, -o, beat, beat.c]]
maxima: {longest: n}
memory: longest * longest * longest / 100000000
run: {streamed: [./beat, "{how}"], placement: core}
E2
campaign() { # campaign FILE N COUNT
    printf 'n\n' >"$scratch/$1.csv"; for i in $(seq "$3"); do echo "$2"; done >>"$scratch/$1.csv"
    printf 'name: %s\nexperiment: beat\nprobes: none\ndesign: %s.csv\n' "$1" "$1" >"$scratch/$1.yaml"
}
# A run in the background writes to these; they go first, so that nothing of an earlier run is taken for it.
forget() { rm -f "$scratch/err" "$scratch/out"; }
shows_units() { eventually grep -qsE '(^|[^0-9])[1-9][0-9]* of [0-9]+ units' "$scratch/err"; }
no_process() { ! pgrep -af "$TMPDIR/assay-"; }
nothing_left() { no_process && test -z "$(ls -A "$TMPDIR")"; }
lines_of() { "$ASSAY" archive cat "$1" results/results.csv | tail -n +2 | wc -l; }

campaign quick 10 20
"$ASSAY" run "$scratch/quick.yaml" -q -o "$scratch/quick" >/dev/null 2>"$scratch/err"
report $? "a kernel that behaves is run to its end"
lanes=$(($(lines_of "$scratch"/quick/*.zip) / 20))
"$ASSAY" run "$scratch/quick.yaml" -q -o "$scratch/full-out" >/dev/full 2>"$scratch/full-err"
status=$?
check "a full standard output ends with 1 (it was $status)" test $status -eq 1
check "... why is said" grep -qx "assay: cannot write standard output: No space left on device" "$scratch/full-err"
check "... and where the archive is" grep -qx "$scratch/full-out/quick-.*\.zip" "$scratch/full-err"
check "its facts are kept" grep -q '"kernel": *"beat"' <("$ASSAY" archive cat "$scratch"/quick/*.zip software/versions.json)
check "nothing is left on the node" nothing_left

misbehave() { # misbehave HOW PATTERN
    refuse "a kernel that does '$1' fails the run, and why is said" 3 "$2" \
        "$ASSAY" run "$scratch/quick.yaml" --set how="$1" -o "$scratch/$1"
    check "... it is sealed with what came before" "$ASSAY" archive verify "$scratch/$1"/*.zip
    check "... as failed" grep -q '"status": *"failed"' <("$ASSAY" archive cat "$scratch/$1"/*.zip run.json)
    check "... nothing is left on the node" nothing_left
}
misbehave die "exited with status 5 after 6 of 20 units: beat: out of beats"
check "... the six good units of a core are in it" test "$(lines_of "$scratch"/die/*.zip)" -ge 6
misbehave crash "killed by signal 6.* after 6 of 20 units"
misbehave lie "answered unit 70, expected unit 7"
misbehave mumble "answered '7,now,1'"
misbehave stop "exited with status 0 after 6 of 20 units"
misbehave header "answered the header 'nonsense'"
misbehave facts-256-1 "printed more than 256 facts from one node, at 'fact-255'"
misbehave facts-1-4097 "printed the fact 'fact-0: .*' of 4105 bytes; expected at most 256 for its name and 4096 for it"
misbehave facts-60000-1 "printed more than 256 facts"
"$ASSAY" run "$scratch/quick.yaml" --set how=facts-255-4096 -q -o "$scratch/facts" >/dev/null 2>"$scratch/err"
report $? "as many and as large facts as the protocol allows are taken"
is "... and kept" "$("$ASSAY" archive cat "$scratch"/facts/*.zip software/versions.json | awk -F '"' '$2 ~ /^fact-/ && length($4) == 4096' | wc -l)" 255

# Interrupted while it measures: 10 ms a unit, 3,000 units.
campaign long 10000 3000
for signal in INT TERM HUP USR2; do
    case $signal in TERM | USR2) code=6 status_word=partial ;; *) code=4 status_word=interrupted ;; esac
    forget
    "$ASSAY" run "$scratch/long.yaml" -o "$scratch/$signal" >"$scratch/out" 2>"$scratch/err" &
    pid=$!
    shows_units
    kill -$signal $pid; wait $pid; status=$?
    report $((status != code)) "SIG$signal ends a run with exit code $code (it was $status)"
    check "... sealed" "$ASSAY" archive verify "$(cat "$scratch/out")"
    check "... as $status_word" grep -q "\"status\": *\"$status_word\"" <("$ASSAY" archive cat "$(cat "$scratch/out")" run.json)
    done_units=$(lines_of "$(cat "$scratch/out")")
    check "... with the units that were done" test "$done_units" -gt 0 -a "$done_units" -lt $((3000 * lanes))
    check "... which is what its journal says" test "$("$ASSAY" archive cat "$(cat "$scratch/out")" journal.jsonl |
        sed -n 's/.*"event":"results".*"units_done":\([0-9]*\),.*/\1/p' | tail -1)" -eq "$done_units"
    check "... and nothing is left on the node" nothing_left
done

# Interrupted, and then the archive cannot be made: both are said, and the folder has all of it.
forget
"$ASSAY" run "$scratch/long.yaml" -o "$scratch/unsealed" >"$scratch/out" 2>"$scratch/err" &
pid=$!
shows_units
touch "$(echo "$scratch"/unsealed/long-*/)/bad name"
kill -INT $pid; wait $pid; status=$?
check "a run that cannot be sealed exits with 1 (it was $status)" test $status -eq 1
check "... says that, why, and where it is" grep -qE "could not be sealed and stays in '.*/unsealed/long-.*'.*bad name" "$scratch/err"
check "... its run.json says failed" grep -q '"status": *"failed"' "$scratch"/unsealed/long-*/run.json
check "... and nothing is left on the node" nothing_left

# From inside the experiment's own folder, the runs are not copied into the next one.
mkdir "$scratch/own"
cp "$scratch"/experiments/beat/* "$scratch/own/"
printf 'n\n10\n20\n' >"$scratch/own/d.csv"
printf 'experiment: ./\nname: own\nprobes: none\ndesign: d.csv\n' >"$scratch/own/c.yaml"
touch "$scratch/own/.hidden"
(cd "$scratch/own" && "$ASSAY" run c.yaml -q && "$ASSAY" run c.yaml -q) >"$scratch/out" 2>&1
report $? "a campaign runs inside its experiment's folder, twice"
check "... and the second archive has nothing of the first run" \
    test "$("$ASSAY" archive list "$(tail -1 "$scratch/out")" | grep -cE 'experiment/(runs|\.hidden)')" -eq 0
(cd "$scratch/own" && "$ASSAY" run c.yaml -q -o . && "$ASSAY" run c.yaml -q -o .) >"$scratch/out" 2>&1
report $? "... and with the runs in that folder itself"
check "... likewise" test "$("$ASSAY" archive list "$(tail -1 "$scratch/out")" | grep -cE 'experiment/(runs/|own-)')" -eq 0

# A second signal cuts short what still waits: a teardown here.
campaign slow 10 20
mkdir -p "$scratch/experiments/lag"
sed 's/^name: beat/name: lag/; $a teardown: ["touch '"$scratch"'/torn; exec sleep 1000"]' "$scratch/experiments/beat/experiment.yaml" >"$scratch/experiments/lag/experiment.yaml"
cp "$scratch/experiments/beat/beat.c" "$scratch/experiments/lag/"
sed -i 's/beat$/lag/' "$scratch/slow.yaml"
forget
"$ASSAY" run "$scratch/slow.yaml" -o "$scratch/slow" >"$scratch/out" 2>"$scratch/err" &
pid=$!
eventually test -e "$scratch/torn"
kill -INT $pid; wait $pid
check "a signal ends a teardown that hangs; the run is sealed with all of its units" \
    test "$(lines_of "$(cat "$scratch/out")")" -eq $((20 * lanes))
check "... nothing is left on the node" nothing_left

# Memory: a MiB for every microsecond, by this experiment's own word.
campaign big 10000000 1
refuse "a design that needs more memory than the node has is refused" 2 \
    "needs [0-9.]+ [MGTP]iB of memory on node .* but .* are available" "$ASSAY" run "$scratch/big.yaml" -o "$scratch/big"
check "... and leaves nothing" test -z "$(ls -A "$scratch/big")"
finish
