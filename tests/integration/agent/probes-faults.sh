#!/bin/bash
# The sampler, the load and the look at frequencies on nodes that answer as kernels do: sensors that vanish and come back, counters
# that wrap, processors that go away or are slow, controls that somebody else changes.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"

agent=$ASSAY_BUILD/libexec/assay/assay-agent
# 10 J at 40 W: the counter of the package wraps four times a second.
bed_first 1 --machine intel-pstate:heat=1,range=10000000 --share "$ASSAY_BUILD/libexec"
bed can kernel-files || plan_skip "no FUSE here"
cpu=/sys/devices/system/cpu
tab=$(printf '\t')

begin() { # begin ARGUMENT...: the sampler, 20 times a second, into $scratch/out
    : >"$scratch/out" # or what is there from before is taken for a beginning
    bed on 1 "$agent" --sample --period 50000000 --flush 0 "$@" >"$scratch/out" 2>"$scratch/errors" & sampler=$!
    wait_for '^s0,'
}
wait_for() { # wait_for PATTERN: a line that there was not before
    eventually grep -qE -- "$1" "$scratch/out"
}
# The sampler is the only child of its kind; bed on dies with a signal that it does not give on.
end() {
    bed on 1 pkill -TERM -f 'assay-agent --sample' # a shell that looked for it would have these words too
    wait $sampler
}
column() { # column NAME: its number among those of a line
    awk -F"$tab" -v name="$1" '$1 == "probe" { for (i = 5; i <= NF; i++) { split($i, f, ":"); if (f[1] == name) { print i + 1; exit } } }' "$scratch/out"
}
values() { grep '^s0,' "$scratch/out" | cut -d, -f"$(column "$1")"; }

# ---- Sensors
begin --probe temperature
check "all sensors are read" test -n "$(values package-0 | tail -1)" -a -n "$(values core-0-3 | tail -1)"
bed fault 1 gone /sys/class/hwmon/hwmon1/temp3_input
check "one that vanishes is told" wait_for "^event${tab}.*${tab}gone${tab}temperature core-0-1$"
no_value() { test -z "$(values core-0-1 | tail -1)" -a -n "$(values core-0-0 | tail -1)"; }
check "it has no value, and no zero" eventually no_value
bed fault 1 none
check "and when it is back" wait_for "^event${tab}.*${tab}back${tab}temperature core-0-1$"
bed fault 1 gone /sys/class/hwmon/hwmon1
check "all of a chip may go" wait_for "^event${tab}.*${tab}gone${tab}temperature package-0$"
bed fault 1 none
check "and come back" wait_for "^event${tab}.*${tab}back${tab}temperature package-0$"
check "it ends well" end
check "and has said what it cost" grep -q "^cost$tab" "$scratch/out"

# ---- Energy
begin --probe energy
used() { values package-0 | awk -v range=10000000 '$1 < last { exit 1 } { last = $1 } END { exit !(last > 2 * range) }'; }
check "energy adds up over wraps of the counter" eventually used
end
check "and never falls" used
wraps() { grep '^s0,' "$scratch/out" | awk -F, -v at="$(column package-0)" \
    'NR == 1 { first = $at; begun = $3 } END { watts = ($at - first) * 1e3 / ($3 - begun); exit !(watts > 10 && watts < 400) }'; }
check "it is some watts" wraps

# ---- Processors
begin --probe frequency
check "frequencies are read" test "$(values cpu3 | tail -1)" = 3500000000
bed set 1 $cpu/cpufreq/policy3/scaling_cur_freq 1200000
check "one that is slow is seen" wait_for '^s0,.*,1200000000,'
bed unset 1 $cpu/cpufreq/policy3/scaling_cur_freq
bed set 1 $cpu/cpu3/online 0
check "one that goes away is told" wait_for "^event${tab}.*${tab}gone${tab}frequency cpu3$"
bed set 1 $cpu/cpu3/online 1
check "and when it is back" wait_for "^event${tab}.*${tab}back${tab}frequency cpu3$"
check "the sampler ends well" end
begin --probe throttle
bed set 1 $cpu/cpu2/thermal_throttle/core_throttle_count 7
check "throttling is counted" wait_for '^s0,.*,7(,|$)'
end

# ---- Controls that somebody changes
begin --probe drift --expect $cpu/intel_pstate/no_turbo=0 --expect /sys/kernel/mm/transparent_hugepage/enabled=madvise
bed set 1 $cpu/intel_pstate/no_turbo 1
check "a control that changes is told" wait_for "^event${tab}.*${tab}drift${tab}$cpu/intel_pstate/no_turbo: expected 0, found 1$"
bed set 1 $cpu/intel_pstate/no_turbo 0
check "and when it is as it was" wait_for "^event${tab}.*${tab}drift-over${tab}$cpu/intel_pstate/no_turbo: "
bed set 1 /sys/kernel/mm/transparent_hugepage/enabled never
check "a word in brackets too" wait_for "^event${tab}.*${tab}drift${tab}/sys/kernel/mm/transparent_hugepage/enabled: expected madvise, "
end

# ---- Load
temperature() { bed on 1 cat /sys/class/hwmon/hwmon1/temp1_input; }
before=$(temperature)
bed on 1 timeout 150 "$agent" --stress & stress=$!
warm() { [ "$(temperature)" -gt $((before + 5000)) ]; }
check "a node whose processors are kept busy gets warm" eventually warm
bed on 1 pkill -TERM timeout
wait $stress
on_two=$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')
check "spinning says what cpufreq does" bed on 1 sh -c "$agent --spin --milliseconds 100 --pus $on_two >/tmp/spin && grep -q '3500000000$' /tmp/spin"
bed set 1 "$cpu/cpufreq/policy$on_two/scaling_cur_freq" 1200000
check "also of one that is slower than it may be" bed on 1 sh -c "$agent --spin --milliseconds 100 --pus $on_two >/tmp/spin; cat /tmp/spin; grep -q '1200000000$' /tmp/spin"
bed down
finish
