#!/bin/bash
# Nodes that are lost while a campaign runs: killed, frozen, cut off, restarted, never there, hung, or taken out by a gate;
# what is kept of them, what the others do, and who takes their place. All campaigns run at once, each on nodes of its own.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
move_clock # for the two campaigns below that have a clock of their own
command -v cc >/dev/null || plan_skip "no C compiler"
bed_first 33 --names 'n-%'
export ASSAY_PATH=$scratch
cd "$scratch" || exit 1

# A kernel by the streamed protocol that takes as long as a row says; 0.2 s where /tmp/slowly is; for ever at unit 4 on
# the node called $HANGS, and, where /tmp/doomed is, at unit 6: a node that is to be lost is not done before. If a node
# is called $SLOW, nothing takes any time, and it is only said how long it took: half as long again on that one.
mkdir -p experiments/beat
cat >beat.c <<'E2'
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static int is(const char *variable, const char *host) { return getenv(variable) && strcmp(getenv(variable), host) == 0; }
int main(void) {
    char line[256], host[256] = "";
    long unit, n;
    long long made_up = 0;
    gethostname(host, sizeof host - 1);
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("unit,start,start_monotonic,duration\n");
    if (!fgets(line, sizeof line, stdin)) return 9;
    while (fgets(line, sizeof line, stdin)) {
        struct timespec t, m;
        if (sscanf(line, "%ld,%ld", &unit, &n) != 2) return 8;
        clock_gettime(CLOCK_REALTIME, &t);
        clock_gettime(CLOCK_MONOTONIC, &m);
        if (unit == 4 && is("hangs", host)) { signal(SIGTERM, SIG_IGN); for (;;) pause(); }
        while (unit >= 6 && access("/tmp/doomed", F_OK) == 0) usleep(10000);
        if (is("slow", "nobody")) usleep((unsigned)(access("/tmp/slowly", F_OK) == 0 ? 200000 : n));
        else {
            if (!made_up) made_up = m.tv_sec * 1000000000LL;
            made_up += (is("slow", host) ? n + n / 2 : n) * 1000;
            m = (struct timespec){made_up / 1000000000, made_up % 1000000000};
        }
        printf("%ld,%ld%09ld,%ld%09ld,%g\n", unit, (long)t.tv_sec, t.tv_nsec, (long)m.tv_sec, m.tv_nsec, (double)n / 1e6);
    }
    while (is("lingers", host)) pause();
    return 0;
}
E2
cc -O1 -static -o experiments/beat/beat beat.c 2>/dev/null || cc -O1 -o experiments/beat/beat beat.c || exit 1
cat >experiments/beat/experiment.yaml <<'E2'
name: beat
factors: {n: {type: integer, minimum: 0, maximum: 10000000, unit: us}}
options: {slow: {default: nobody}, hangs: {default: nobody}, lingers: {default: nobody}, until: {default: nothing}}
responses: {duration: {unit: s}}
setup: ['touch there; while [ -e /tmp/wait ]; do sleep 0.1; done']
teardown: ['true']
run: {streamed: [./beat], placement: node, timeout: 60 s}
E2
plan() { # plan NAME HOSTS MICROSECONDS ROWS [LINE...]
    local name=$1 hosts=$2 us=$3 rows=$4
    shift 4
    { echo n; for i in $(seq "$rows"); do echo $((us + i)); done; } >"$name.csv"
    { printf 'name: %s\nexperiment: beat\ndesign: {file: %s.csv, order: as-written}\ntestbed: {%s, lease: 1h, timeout: 1min}\nprobes: %s\n' "$name" "$name" "$hosts" "${probes:-none}"
      [ $# -eq 0 ] || printf '%s\n' "$@"; } >"$name.yaml"
}
declare -A statuses
start() { # start NAME: in the background; its status in NAME.status, since bash forgets it when the process number is used again
    { bed run "$ASSAY" run "$1.yaml" --json -o "$1" >"$1.out" 2>"$1.err"; echo $? >"$1.status.new"; mv "$1.status.new" "$1.status"; } &
}
start_with_clock() { ASSAY_TEST_CLOCK=$scratch/$1.clock start "$1"; }
told() { grep -q "$2" "$1.out"; } # told NAME WHAT
done_on() { cut -d, -f6 "$1"/*/results/results.csv 2>/dev/null | grep -qx "$2"; } # done_on NAME NODE
end() { eventually test -e "$1.status"; statuses[$1]=$(cat "$1.status"); cat_of "$1" results/results.csv >"$1.results"; cat_of "$1" journal.jsonl >"$1.journal"; cat_of "$1" run.json >"$1.json"; }
cat_of() { "$ASSAY" archive cat "$1"/*.zip "$2"; }
units_of() { awk -F, -v node="$2" 'NR > 1 && $6 == node' "$1.results" | wc -l; }
status_is() { equal "${statuses[$1]} $(sed -n 's/^ *"status": *"\([a-z]*\)",$/\1/p' "$1.json" | head -1)" "$2" || { tail -3 "$1.err" >&2; return 1; }; }
is_out() { grep -qE "\"event\":\"node-out\",\"node\":\"$2\",\"why\":\"$3\",\"sentence\":\".+\"" "$1.journal"; }

plan lost 'hosts: "n-[1-3,7,9]"' 10000 100
plan aborts 'hosts: "n-[4-5]"' 10000 100 'node-loss: abort'
plan reboot 'hosts: "n-[10-11]"' 10000 100
plan prepare 'hosts: "n-[12-13]"' 1000 20
plan few 'hosts: "n-[14-15]"' 10000 100 'node-loss: {do: continue, at-least: 2}'
plan all 'hosts: "n-[16-17]"' 10000 100
probes=100ms plan slow 'hosts: "n-[18-22]"' 20000 40 'options: {slow: n-20}'
plan absent 'hosts: "n-[23-24]"' 1000 20
plan hangs 'hosts: "n-[25-26]"' 1000 20 'options: {hangs: n-26, lingers: n-25}'
plan spared 'hosts: "n-[27-28]", spares: [n-29, n-30]' 10000 100
plan no-spare 'hosts: "n-[31-32]", spares: n-33' 10000 100
bed refuse-logins 33
bed refuse-logins 29
bed refuse-logins 24
bed on 13 touch /tmp/wait
for node in 3 5 7 9 11 15 16 17 28 32; do bed on $node touch /tmp/doomed; done
bed on 27 touch /tmp/slowly
for name in spared no-spare aborts reboot few all prepare slow absent; do start $name; done
for name in lost hangs; do start_with_clock $name; done
lose() { # lose NAME NODE... -- COMMAND...: when units are done there
    local name=$1; shift
    while [ "$1" != -- ]; do eventually done_on "$name" "$1" || sed 's/^/# /' "$name.err"; shift; done
    shift
    "$@"
}
lose spared n-28 -- bed reboot 28
lose no-spare n-32 -- bed reboot 32
lose aborts n-5 -- bed reboot 5
lose reboot n-11 -- bed reboot 11
lose few n-15 -- bed reboot 15
lose all n-16 n-17 -- bed reboot 16-17
eventually bed on 13 sh -c 'ls /tmp/assay-*/work/there /root/.cache/assay*/*/work/there 2>/dev/null | grep -q .'; bed reboot 13
lose lost n-3 -- bed power-off 3
lose lost n-7 -- bed freeze 7
lose lost n-9 -- bed cut 9
export ASSAY_TEST_CLOCK=$scratch/lost.clock
broken() { for node in n-3 n-7 n-9; do grep -q "\"event\":\"link-broken\",\"node\":\"$node\"" lost/*/journal.jsonl || return; done; }
hurry_beside 'n-1 n-2' broken
advance 3601s
export ASSAY_TEST_CLOCK=$scratch/hangs.clock
eventually told hangs '"units_done":23,'
advance 61s
step=1s hurry_beside 'n-25 n-26' told hangs 'unit 4 on node n-26'
step=1s hurry_beside 'n-25 n-26' told hangs 'node n-25: the kernel'
eventually told spared 'node n-30 takes the place of node n-28'
bed on 27 rm /tmp/slowly
for name in lost aborts reboot prepare few all slow absent hangs spared no-spare; do end $name; done

# ---- killed, frozen, cut off: the others go on ---------------------------------------------------------------------
check "a run goes on without nodes that die, freeze or are cut off when their lease is over, and is partial" status_is lost "6 partial"
check "... it verifies" "$ASSAY" archive verify lost/*.zip
is "... the others have all their rows" "$(units_of lost n-1) $(units_of lost n-2)" "100 100"
for node in n-3 n-7 n-9; do
    check "... what was answered on $node is kept" test "$(units_of lost $node)" -gt 0 -a "$(units_of lost $node)" -lt 100
    check "... the journal says who, and why" is_out lost $node lost
    is "... it is told once" "$(grep -c "$node: taken out of the run (lost): .*; its results are kept, and the others continue" lost.out)" 1
done
check "... and what is said at the end" grep -q 'ended without nodes n-\[3,7,9\] (lost) after [0-9]* of 500 units' lost.err
check "... run.json has it" grep -qE '"why": "lost"' lost.json
check "a run that is to abort does: failed" status_is aborts "1 failed"
check "... and names the node" grep -q "^assay: .*n-5" aborts.err
check "... its journal too" grep -q '"event":"node-lost","node":"n-5"' aborts.journal
check "... sealed with what there is" test "$(units_of aborts n-5)" -gt 0 -a "$("$ASSAY" archive verify aborts/*.zip >&2 && echo 1)"
check "so is one that was restarted, at once" status_is reboot "6 partial"
is "... and the other has all its rows" "$(units_of reboot n-10) $(is_out reboot n-11 lost && echo out)" "100 out"
check "a node that is lost in its setup is out too" status_is prepare "6 partial"
is "... and the other has all its rows" "$(units_of prepare n-12) $(is_out prepare n-13 lost && echo out)" "20 out"
check "fewer nodes than at-least: failed" status_is few "1 failed"
check "... which is said" grep -q "without node n-15 1 is left, but 'node-loss' needs at least 2; the node is lost: " few.err
check "no node left: failed" status_is all "1 failed"
check "... which is said" grep -q "no node is left .*; the last was n-1[67], lost: " all.err
check "... sealed with what there is" test "$(wc -l <all.results)" -gt 1
check "a node that cannot be reached is out from the beginning" status_is absent "6 partial"
is "... and the other has all its rows" "$(units_of absent n-23) $(is_out absent n-24 unreachable && echo out)" "20 out"
is "a kernel that hangs is ended: its unit fails, and the rest is measured" "$(units_of hangs n-25) $(units_of hangs n-26)" "20 19"
check "... which fails the run" status_is hangs "3 failed"
check "... and is said" grep -q "unit 4 on node n-26: the kernel on core all gave no answer for 60 s and was killed" hangs.err
check "a kernel that answered all its rows and does not end is ended, and nothing has failed" grep -q \
    "node n-25: the kernel on core all answered all its rows but did not end within 60 s, and was killed" hangs.out
check "a slow node is named" status_is slow "0 completed"
check "... with by how much" grep -q 'node n-20: 50 % slower than the median of' slow.out
is "... in the journal, and only it" "$(grep -c '"event":"slow-node"' slow.journal) $(grep -c '"event":"slow-node","node":"n-20","sentence":"' slow.journal)" "1 1"
check "... and in run.json" grep -q '"slow_nodes"' slow.json

# ---- spares --------------------------------------------------------------------------------------------------------
check "a spare takes the place of a node that dies, and the run is whole" status_is spared "0 completed"
is "... the first of them that can be reached" "$(is_out spared n-29 unfit && grep -c '"event":"node-replaced","node":"n-28","by":"n-30"' spared.journal)" 1
is "... it measures the whole share" "$(units_of spared n-27) $(units_of spared n-30)" "100 100"
check "... in the order of the design" sh -c 'awk -F, "NR > 1 && \$6 == \"n-30\" {print \$3}" spared.results | sort -nc'
check "... while the other went on" test "$(sed -n '/"event":"node-out","node":"n-28"/,/"event":"node-replaced"/p' spared.journal |
    grep -c '"event":"results"')" -gt 0
check "... what the lost one had answered stays, under its name" test "$(units_of spared n-28)" -gt 0
check "... the spare is described like the others" sh -c 'cat_of() { "$ASSAY" archive cat spared/*.zip "$1"; }; cat_of nodes/n-30/facts.json | grep -q cpu_model && cat_of nodes/n-30/clock.json | grep -q offset_ns && cat_of run.json | grep -q "\"n-30\""'
check "... it is told" grep -q "node n-30 takes the place of node n-28 and measures all of its units" spared.out
check "when no spare is any good the others go on, partial" status_is no-spare "6 partial"
is "... and the other has all its rows" "$(units_of no-spare n-31) $(is_out no-spare n-33 unfit && echo out)" "100 out"

"$ASSAY" run spared.yaml --dry-run >dry
check "the plan shows the spares" grep -qx 'spares       2: n-\[29-30\]' dry
check "... and what becomes of a node that is lost" grep -q '^node-loss    do replace, at-least 1$' dry
check "... which the archive has too" grep -A2 '"node-loss"' <(cat_of spared campaign.resolved.json) -q

# ---- controls that vary, a gate that has its node taken out -------------------------------------------------------
bed_for_part 6 --machine intel-pstate --names 'm-%' && bed can kernel-files || { skip "controls" "nodes whose files answer as a kernel's need root and FUSE"; finish; }
# Where /tmp/hold is, no unit ends after the number in it.
vary() { # vary NAME HOSTS ROWS LINE...
    local name=$1 hosts=$2
    shift 2
    { printf 'name: %s\nexperiment: {name: brief, run: [sh, -c, "echo >>/tmp/units; while [ -e /tmp/hold ] && [ $(wc -l </tmp/units) -gt $(cat /tmp/hold) ]; do sleep 0.05; done; echo took 1"], responses: {took: {pattern: "took ([0-9]+)", unit: s}}}\ntestbed: {%s, lease: 1h, timeout: 1min}\n' "$name" "$hosts"
      printf '%s\n' "$@"; } >"$name.yaml"
}
vary blocks 'hosts: "m-[1-2]", spares: m-3' "design: {generate: factorial, factors: {control.turbo: ['on', 'off']}, repetitions: 12, blocks: 4, seed: 3}" \
    'controls: {governor: performance, proof: none}' 'probes: 100ms' 'gates: none'
vary drift 'hosts: "m-[4-6]"' 'design: {repetitions: 40}' 'controls: {turbo: off, proof: none}' \
    'probes: {period: 100ms, drift: 100ms}' 'gates: {drift: drop, load: none}'
for node in 4 6; do bed files $node | sort >before-$node; done
for node in 2 5; do bed on $node sh -c 'echo 8 >/tmp/hold'; done
start blocks; start drift
lose drift m-4 -- bed set 5 /sys/devices/system/cpu/intel_pstate/no_turbo 0
eventually grep -rqs '"event":"watch-event","node":"m-5","kind":"drift"' drift --include=journal.jsonl
bed on 5 sh -c 'echo 9 >/tmp/hold'
eventually grep -qrs '"event":"block-started","block":2,' blocks --include=journal.jsonl; bed reboot 2
end blocks; end drift
check "a spare in a design with blocks measures the whole share: the run is whole" status_is blocks "0 completed"
is "... every unit of it once" "$(awk -F, 'NR > 1 && $6 == "m-3" {print $3}' blocks.results | sort -nu | wc -l) $(units_of blocks m-3)" "24 24"
check "... under the state that its row wants" awk -F, '
    NR == 1 {for (i = 1; i <= NF; i++) at[$i] = i; next}
    {s = $at["control.turbo"]; b = $at["block"]; if (state[b] && state[b] != s) bad = 1; state[b] = s} END {exit bad}' blocks.results
is "... the other was not measured again" "$(units_of blocks m-1)" 24
check "... and how the lost one is put back is said" grep -qE "m-2: unreachable; .*assay nodes restore" blocks.out blocks.err
check "a gate takes a node out: the others go on" status_is drift "6 partial"
is "... with all their rows" "$(units_of drift m-4) $(units_of drift m-6) $(is_out drift m-5 drift && echo out)" "40 40 out"
check "... the unit that showed it is flagged" test "$(awk -F, '$6 == "m-5" && $NF ~ /drift/' drift.results | wc -l)" -ge 1
check "... its agent answers, and puts back what it had set" grep -q '"event":"controls-restored","node":"m-5"' drift.journal
check "... the others are as they were" sh -c 'for node in 4 6; do "$1" files $node | sort | cmp -s - before-$node || exit 1; done' - "$bed_command"
finish
