#!/bin/bash
# Nodes whose /sys answers as a kernel does: what files take and refuse, what one does to others, faults, and that nothing of
# it is another node's, this machine's, or there after a reboot.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"

bed_first 3 --machine intel-pstate:heat=1
bed can kernel-files || plan_skip "no FUSE here"
cpu=/sys/devices/system/cpu
ours() { find $cpu /sys/kernel/mm/transparent_hugepage /proc/sys/kernel/{numa_balancing,randomize_va_space,nmi_watchdog} /proc/sys/vm/swappiness \
    -type f -perm -200 2>/dev/null | sort | xargs grep -Hs .; }
ours >"$scratch/ours"

get() { bed on "$1" cat "$2"; }
# put NODE FILE VALUE: the error's name, as bash says it, or nothing.
put() { bed on "$1" bash -c 'printf "%s\n" "$2" >"$1"' put "$2" "$3" 2>&1 | sed 's/.*: //'; }
takes() { check "$4" test -z "$(put 1 "$1" "$2")" -a "$(get 1 "$1")" = "$3"; }
refuses() { local before; before=$(get 1 "$1"); check "$4" test "$(put 1 "$1" "$2")" = "$3" -a "$(get 1 "$1")" = "$before"; }
policy=$cpu/cpufreq/policy2

bed files 1 >"$scratch/at-first"
check "files says what the node shows" test "$(sed -n "s|^$policy/scaling_max_freq\t||p" "$scratch/at-first")" = '3500000\n'
check "all nodes are alike at first" diff "$scratch/at-first" <(bed files 3)

# ---- What a value may be
takes $policy/scaling_governor performance performance "a governor that there is"
refuses $policy/scaling_governor ondemand 'Invalid argument' "one that there is not is refused"
refuses $policy/scaling_governor '' 'Invalid argument' "and so is none"
refuses $policy/scaling_max_freq 2.1GHz 'Invalid argument' "a frequency that is no number is refused"
takes $policy/scaling_max_freq 99000000 3500000 "one above all is clamped"
takes $policy/scaling_max_freq 2000000 2000000 "one within the range is taken"
refuses $policy/scaling_min_freq 2400000 'Invalid argument' "a lower limit above the upper one is refused"
takes $policy/scaling_min_freq 100 800000 "one below all is clamped"
refuses $policy/scaling_cur_freq 2000000 'Permission denied' "what cannot be written is not, by root either"
refuses $policy/energy_performance_preference power 'Device or resource busy' "governor performance keeps the preference"
takes $policy/scaling_governor powersave powersave "with the other governor"
check "the preference is as it was" test "$(get 1 $policy/energy_performance_preference)" = balance_performance
takes $policy/energy_performance_preference power power "and can be set"
takes $policy/energy_performance_preference 77 77 "to a number too"
takes $policy/energy_performance_preference 0 performance "which has a word sometimes"
refuses $policy/energy_performance_preference 256 'Invalid argument' "but not to any number"
takes $cpu/cpu2/power/energy_perf_bias balance-power 8 "a bias by its word"
refuses $cpu/cpu2/power/energy_perf_bias 16 'Invalid argument' "or by number, up to 15"
takes /sys/kernel/mm/transparent_hugepage/enabled never 'always madvise [never]' "a choice moves the brackets"
refuses /sys/kernel/mm/transparent_hugepage/enabled sometimes 'Invalid argument' "and is one of those shown"
takes $cpu/cpu2/cpuidle/state3/disable 5 1 "an idle state is off or on"
takes $cpu/intel_uncore_frequency/package_00_die_00/max_freq_khz 1850000 1800000 "the uncore takes whole 100 MHz"
takes /proc/sys/kernel/numa_balancing 0 0 "a setting of /proc/sys is taken"
refuses /proc/sys/kernel/numa_balancing yes 'Invalid argument' "or refused"
check "each write is in the log, with its error" test "$(bed writes 1 | sed -n "s|^$policy/scaling_governor\t||p" | tr '\t\n' ':,')" = \
    "performance:,ondemand:EINVAL,:EINVAL,powersave:,"
bed writes 1 forget
check "which can be begun anew" test -z "$(bed writes 1)"

# ---- Turbo
takes $policy/scaling_max_freq 3500000 3500000 "the upper limit is what turbo reaches"
check "a busy processor runs at it" test "$(get 1 $policy/scaling_cur_freq)" = 3500000
takes $cpu/intel_pstate/no_turbo 1 1 "without turbo"
check "no limit is above the base frequency" test "$(get 1 $cpu/cpufreq/policy3/scaling_max_freq)" = 2100000
check "and no processor runs faster" test "$(get 1 $policy/scaling_cur_freq)" = 2100000
takes $policy/scaling_max_freq 3000000 2100000 "a limit that is written meanwhile does not show"
put 1 $cpu/intel_pstate/no_turbo 0
check "and holds with turbo, as the others do that were there before" test "$(get 1 $policy/scaling_max_freq),$(get 1 $cpu/cpufreq/policy3/scaling_max_freq)" = 3000000,3500000
put 1 $cpu/intel_pstate/no_turbo 1; put 1 $policy/scaling_governor performance
check "a governor leaves turbo alone" test "$(get 1 $cpu/intel_pstate/no_turbo)" = 1
bed fault 1 resets-turbo on
put 1 $policy/scaling_governor powersave
check "but not one with that fault" test "$(get 1 $cpu/intel_pstate/no_turbo)" = 0
bed fault 1 resets-turbo off

# ---- Processors
put 1 $cpu/cpufreq/policy6/scaling_max_freq 1000000
takes $cpu/smt/control off off "threads can be taken off"
check "the second of each core is" test "$(get 1 $cpu/online),$(get 1 $cpu/offline),$(get 1 $cpu/smt/active)" = 0-3,4-7,0
check "sets of processors are smaller" test "$(get 1 $cpu/cpu1/topology/thread_siblings_list),$(get 1 /sys/devices/system/node/node0/cpulist)" = 1,0-3
check "their files are not there" bed on 1 test ! -e $cpu/cpu6/topology -a ! -e $cpu/cpu6/cpufreq -a ! -e $cpu/cpu6/cpuidle -a -e $cpu/cpu6/online
refuse "their policies are busy" 1 'resource busy' bed on 1 cat $cpu/cpufreq/policy6/scaling_max_freq
check "for writing too" test "$(put 1 $cpu/cpufreq/policy6/scaling_max_freq 2000000)" = 'Device or resource busy'
check "one alone cannot be taken on" test "$(put 1 $cpu/cpu6/online 1)" = 'Operation not permitted'
# A file that is open while its processor goes.
bed on 1 bash -c "echo on >$cpu/smt/control; exec 3<$cpu/cpu6/topology/core_id; echo off >$cpu/smt/control; cat <&3" >/dev/null 2>"$scratch/open"
check "an open file of one that goes cannot be read" grep -q 'No such device' "$scratch/open"
takes $cpu/smt/control on on "threads can be taken on"
check "all are there" test "$(get 1 $cpu/online),$(get 1 $cpu/smt/active),$(get 1 $cpu/cpu1/topology/thread_siblings_list)" = 0-7,1,1,5
check "with settings as after a boot" test "$(get 1 $cpu/cpufreq/policy6/scaling_max_freq)" = 3500000
bed fault 1 remembers on
put 1 $cpu/cpufreq/policy6/scaling_max_freq 1000000
put 1 $cpu/cpu6/online 0; put 1 $cpu/cpu6/online 1
check "or, if wanted, with those that they had" test "$(get 1 $cpu/cpufreq/policy6/scaling_max_freq)" = 1000000
bed fault 1 offline 5 1
put 1 $cpu/cpu1/cpuidle/state1/disable 1; check "a processor goes when it is wanted to" test "$(get 1 $cpu/online)" = 0-7
put 1 $cpu/cpu1/cpuidle/state2/disable 1; check "between two writes" test "$(get 1 $cpu/online)" = 0-4,6-7

# ---- Faults of one file
bed fault 1 busy $policy/scaling_governor 1
check "a file is busy" test "$(put 1 $policy/scaling_governor performance)" = 'Device or resource busy'
takes $policy/scaling_governor performance performance "once"
bed fault 1 denied "$cpu/cpufreq/policy*/scaling_governor"
refuses $cpu/cpufreq/policy3/scaling_governor performance 'Operation not permitted' "a pattern means many"
refuses $policy/scaling_governor powersave 'Operation not permitted' "each of them, as often as it is tried"
bed fault 1 stuck $cpu/intel_pstate/no_turbo
check "a file takes a value and keeps what it had" test -z "$(put 1 $cpu/intel_pstate/no_turbo 1)" -a "$(get 1 $cpu/intel_pstate/no_turbo)" = 0
bed fault 1 unreadable $cpu/smt/control
refuse "a file cannot be read" 1 'Input/output error' bed on 1 cat $cpu/smt/control
bed fault 1 gone /sys/class/hwmon/hwmon1
check "a sensor vanishes" test "$(bed on 1 ls /sys/class/hwmon)" = hwmon0
refuse "from its own place too" 1 'No such file' bed on 1 cat /sys/devices/platform/coretemp.0/hwmon/hwmon1/temp1_input
bed fault 1 back /sys/class/hwmon/hwmon1
check "and is back" bed on 1 cat /sys/class/hwmon/hwmon1/temp1_input
bed fault 1 none
takes $cpu/cpufreq/policy3/scaling_governor performance performance "without faults all is well again"
refuse "a file that there is not is named" 1 "no file '/sys/no/such'" bed fault 1 busy /sys/no/such
refuse "so is a fault" 1 "'melted' is no fault" bed fault 1 melted $policy/scaling_governor

# ---- Values that move
sensor=/sys/class/hwmon/hwmon1/temp1_input
warm() { local now; now=$(get 1 $sensor); echo "$now"; test "$now" -gt $((low + 10000)) -a "$now" -le 75000; }
cool() { local now; now=$(get 1 $sensor); echo "$now"; test "$now" -le "$low"; }
low=$(get 1 $sensor) # it has never been busy
bed load 1 100
check "a busy machine is warmer" eventually warm
bed load 1 0
check "an idle one is not" eventually cool
bed load 1 auto
bed on 1 bash -c 'while [ ! -e /run/enough ]; do :; done' &
check "so is one whose processes run" eventually warm
bed on 1 touch /run/enough
wait
bed set 1 /sys/class/hwmon/hwmon1/temp1_input 91000
check "a sensor shows what a test wants" test "$(get 1 /sys/class/hwmon/hwmon1/temp1_input)" = 91000
bed unset 1 /sys/class/hwmon/hwmon1/temp1_input
check "until it is free again" test "$(get 1 /sys/class/hwmon/hwmon1/temp1_input)" -lt 91000
bed set 1 $cpu/cpu0/thermal_throttle/core_throttle_count 7
check "counters move" test "$(get 1 $cpu/cpu0/thermal_throttle/core_throttle_count)" = 7
bed set 1 $cpu/cpufreq/policy0/scaling_cur_freq 1200000
check "a processor is slower than it may be" test "$(get 1 $cpu/cpufreq/policy0/scaling_cur_freq)" = 1200000
bed set 1 $cpu/smt/control off
check "a control changes by itself" test "$(get 1 $cpu/online)" = 0-3
check "which is no write" test -z "$(bed writes 1 | grep -v none | tail -1 | grep smt)"
energy() { get 1 /sys/class/powercap/intel-rapl:0/energy_uj; }
since=$(date +%s%N) first=$(energy)
more() { second=$(energy); test "$second" -gt "$first"; }
check "energy is used" eventually more
check "some watts of it" awk "BEGIN { exit !(($(energy) - $first) / ($(date +%s%N) - $since) * 1000 < 1000) }"

# ---- Whose it is
check "another node is as it was" diff "$scratch/at-first" <(bed files 2)
check "this machine too" diff "$scratch/ours" <(ours)
bed on 1 sh -c 'mkdir /run/assay && touch /run/assay/mark'
check "what is in /run is the node's own" bed on 2 test ! -e /run/assay
boot=$(get 1 /proc/sys/kernel/random/boot_id)
bed freeze 1
check "a frozen node's files are there" test -n "$(bed files 1)"
bed thaw 1
bed crash 1
refuse "a crashed node has none" 1 "is crashed" bed files 1
bed reboot 1
check "a reboot brings all back" diff "$scratch/at-first" <(bed files 1)
check "in a new boot, with nothing in /run" test "$(get 1 /proc/sys/kernel/random/boot_id)" != "$boot" -a -z "$(bed on 1 ls -d /run/assay 2>/dev/null)"
bed run ssh -F "$BED/ssh_config" node2 "cat $cpu/online" >"$scratch/ssh"
check "over ssh it is the same" test "$(<"$scratch/ssh")" = 0-7
bed down

# ---- Other machines, other users, many nodes
check "an older driver" bed up 1 --machine acpi-cpufreq --user alice
check "one boost for all" test -z "$(put 1 $cpu/cpufreq/boost 0)" -a "$(get 1 $policy/scaling_cur_freq)" = 2400000
check "threads of a core share a policy" test "$(get 1 $cpu/cpu6/cpufreq/affected_cpus)" = '2 6'
put 1 $cpu/cpu6/online 0
check "which stays with one of them" test "$(get 1 $cpu/cpu2/cpufreq/affected_cpus),$(get 1 $cpu/cpu2/cpufreq/scaling_driver)" = 2,acpi-cpufreq
refuse "who is not root sets nothing" 1 'Permission denied' bed run ssh -F "$BED/ssh_config" node1 "echo 1 >$cpu/cpufreq/boost"
refuse "and reads no energy" 1 'Permission denied' bed run ssh -F "$BED/ssh_config" node1 cat /sys/class/powercap/intel-rapl:0/energy_uj
bed down
bed up 1 --machine amd-pstate
put 1 $policy/boost 0
check "boost of one policy lowers its limits" test "$(get 1 $policy/cpuinfo_max_freq),$(get 1 $policy/scaling_max_freq),$(get 1 $cpu/cpufreq/policy3/scaling_max_freq)" = 2450000,2450000,3500000
put 1 $cpu/cpufreq/boost 0
check "that of all takes them along, which take nothing then" test "$(put 1 $policy/boost 1),$(get 1 $cpu/cpufreq/policy3/boost)" = 'Invalid argument,0'
put 1 $cpu/cpufreq/boost 1
check "and gives it back to all" test "$(get 1 $policy/boost),$(get 1 $policy/cpuinfo_max_freq)" = 1,3500000
bed down
bed up 1 --machine virtual
check "a machine without SMT" test "$(put 1 $cpu/smt/control off)" = 'No such device'
check "and without NUMA balancing" bed on 1 test ! -e /proc/sys/kernel/numa_balancing -a ! -e $cpu/cpufreq
bed down
refuse "a machine that there is not is named" 1 "no machine 'abacus'" bed up 1 --machine abacus
check "a plain bed says that it has plain files" bed up 1
refuse "when it is asked" 3 'plain files' bed can kernel-files
bed down

bed up 64 --machine two-sockets
servers=$(pgrep -P "$(<"$BED/keeper")" bed-kernel)
check "each of 64 nodes has a process for its files" test "$(wc -w <<<"$servers")" -eq 64
size=$(for process in $servers; do sed -n 's/^Pss: *\([0-9]*\) kB/\1/p' "/proc/$process/smaps_rollup"; done | awk '{ sum += $1 } END { print int(sum / NR) }')
check "that is small ($size kB of memory a node's files)" test "$size" -lt 2000
bed on 64 sh -c "cd $cpu/cpufreq; for p in policy*; do echo performance >\$p/scaling_governor; echo 1500000 >\$p/scaling_max_freq; done; cat policy*/scaling_max_freq" >"$scratch/many"
check "all is as written" test "$(sort -u "$scratch/many")" = 1500000
bed down
left() { for process in $servers; do [ ! -e "/proc/$process" ] || return 1; done; }
check "and nothing is left of them" left
finish
