# shellcheck shell=bash
# Runs that are killed and resumed, and what must be so afterwards: sourced after tap.sh and test-bed.sh.

# An experiment whose every answer is known, in $1: what a unit answers is made of its row alone. Where /tmp/doomed is a
# unit takes 0.2 s: a node that is to be lost is not done before.
write_tick() {
    mkdir -p "$1/experiments/tick"
    cat >"$1/experiments/tick/tick.c" <<'C'
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(void) {
    char line[256];
    long unit, n, us;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("unit,start,answer\n");
    if (!fgets(line, sizeof line, stdin)) return 9;
    while (fgets(line, sizeof line, stdin)) {
        struct timespec t;
        if (sscanf(line, "%ld,%ld,%ld", &unit, &n, &us) != 3) return 8;
        if (access("/tmp/doomed", F_OK) == 0) us = 200000;
        if (us) usleep((unsigned)us);
        clock_gettime(CLOCK_REALTIME, &t);
        printf("%ld,%ld%09ld,%ld\n", unit, (long)t.tv_sec, t.tv_nsec, n * 7919 % 100003);
    }
    return 0;
}
C
    cat >"$1/experiments/tick/experiment.yaml" <<'E2'
name: tick
factors: {n: {type: integer, minimum: 0, maximum: 1000000000}, us: {type: integer, minimum: 0, maximum: 1000000}}
responses: {answer: {}}
setup: [[cc, -O1, -o, tick, tick.c]]
run: {streamed: [./tick], placement: node}
E2
}

# tick_campaign FILE ROWS MICROSECONDS TESTBED [LINE...]: FILE.yaml and FILE.csv; a node measures each row once.
tick_campaign() {
    local file=$1 rows=$2 us=$3 testbed=$4
    shift 4
    { echo n,us; awk -v rows="$rows" -v us="$us" 'BEGIN {for (i = 1; i <= rows; i++) print i "," us}'; } >"$file.csv"
    {
        printf 'name: %s\nexperiment: tick\ndesign: {file: %s.csv, seed: 5}\n' "$(basename "$file")" "$(basename "$file")"
        printf '%s\n' "testbed: $testbed" "$@"
    } >"$file.yaml"
}

# start_engine OUTPUT ARGUMENTS: in the background; $engine is the process that is to be killed. Its events go to
# OUTPUT.json, what it complains of to OUTPUT.err.
has_begun_or_ended() { [ -s "$1.pid" ] || ! kill -0 "$shell_job" 2>/dev/null; }
start_engine() {
    local output=$1
    shift
    rm -f "$output.pid" "$output.json" "$output.err" # nothing of an earlier one is taken for its own
    # shellcheck disable=SC2016
    bed run sh -c 'echo $$ >"$0.new"; mv "$0.new" "$0"; exec "$@"' "$output.pid" "$ASSAY" "$@" >"$output.json" 2>"$output.err" &
    shell_job=$!
    eventually has_begun_or_ended "$output"
    engine=$(cat "$output.pid")
}
kill_engine() { kill -KILL "$engine" 2>/dev/null; wait "$shell_job" 2>/dev/null; }

# The number of units that are done by the run's journal.
journalled() {
    local count
    count=$(sed -n 's/.*"event":"results",.*"units_done":\([0-9]*\),.*}$/\1/p' "$1/journal.jsonl" 2>/dev/null | tail -1)
    echo "${count:-0}"
}
# The number that the engine has last shown as done, of the events in a file.
shown() { sed -n 's/.*"units_done":\([0-9]*\).*/\1/p' "$1" 2>/dev/null | tail -1; }

has_shown() { local shown; shown=$(shown "$1.json"); [ "${shown:-0}" -ge "$2" ]; }
has_shown_or_ended() { has_shown "$@" || ! kill -0 "$engine" 2>/dev/null; }
wait_for_units() { # wait_for_units OUTPUT COUNT: shown as done
    eventually has_shown_or_ended "$@"
    has_shown "$@" || { sed 's/^/# /' "$1.err"; return 1; }
}

# What is on disk when the engine has been killed must stay: keep_rows FOLDER NAME, then rows_are_kept. What is kept are
# the rows that the journal has as done; the engine must not have shown more than those.
keep_rows() {
    local folder=$1 count
    count=$(journalled "$folder")
    if [ -f "$folder/results/results.csv" ]; then
        head -n $((count + 1)) "$folder/results/results.csv" >"$2"
    else
        : >"$2"
    fi
    [ "$(wc -l <"$2")" -eq $((count + 1)) ] || { [ "$count" -eq 0 ] && [ "$(wc -l <"$2")" -le 1 ]; }
}
rows_are_kept() { # rows_are_kept RESULTS NAME
    head -c "$(stat -c %s "$2")" "$1" | cmp -s - "$2" || { echo "$2 is no beginning of $1" >&2; return 1; }
}

# check_rows RESULTS ROWS NODES: each unit is there once, with its answer.
check_rows() {
    awk -F, -v rows="$2" -v nodes="$3" '
        NR == 1 {for (i = 1; i <= NF; i++) column[$i] = i; next}
        {unit = $column["row"] "," $column["repetition"] "," $column["node"]
         if (unit in seen) {print "unit " unit " is there twice" >"/dev/stderr"; bad = 1}
         seen[unit] = 1; count++
         if ($column["answer"] != $column["n"] * 7919 % 100003) {print "line " NR ": a wrong answer" >"/dev/stderr"; bad = 1}}
        END {if (count != rows * nodes) {print count " units of " rows * nodes >"/dev/stderr"; bad = 1} exit bad}' "$1"
}

# The journal's lines are whole and numbered without a gap, and it tells of as many parts as it had.
check_journal() { # check_journal JOURNAL PARTS
    awk -v parts="$2" '
        !/^\{"seq":[0-9]+,.*\}$/ {print "line " NR " is not whole" >"/dev/stderr"; exit bad = 1}
        {match($0, /[0-9]+/); number = substr($0, RSTART, RLENGTH) + 0
         if (NR > 1 && number != last + 1) {print "line " NR ": " number " after " last >"/dev/stderr"; bad = 1}
         last = number}
        /"event":"run-resumed"/ {resumed++}
        END {if (resumed + 1 != parts) {print resumed + 1 " parts, not " parts >"/dev/stderr"; bad = 1} exit bad}' "$1"
}

resume_to_end() { # resume_to_end NAME FOLDER
    bed run "$ASSAY" resume "$2" -q >"$scratch/out" 2>"$scratch/err"
    local status=$?
    [ $status -eq 0 ] || sed 's/^/# /' "$scratch/err"
    report $status "$1"
}
