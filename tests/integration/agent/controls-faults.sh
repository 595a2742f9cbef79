#!/bin/bash
# The agent's tools for controls on nodes that answer as kernels do: whatever refuses, keeps its value, vanishes or changes by
# itself, what is said of it is true, and after --restore-controls every file holds what it held, to the byte.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"

copy_for_all "$scratch/assay" # one that an ordinary user runs on the node
agent=$scratch/assay/libexec/assay/assay-agent
up() { # up MACHINE [OPTION...]: one node of it
    bed_first 1 --machine "$@" --share "$scratch/assay"
    bed can kernel-files || plan_skip "no FUSE here"
    bed files 1 >"$scratch/before"
}
# What a shell of the node does, which owns the snapshot: its stdout in $scratch/said, its status is returned.
play() { bed on 1 bash -c "agent='$agent'; $1" >"$scratch/said" 2>"$scratch/errors"; }
said() { grep -qE -- "$(printf '%b' "$1")" "$scratch/said" || { cat "$scratch/said" "$scratch/errors" >&2; false; }; }
unsaid() { ! grep -qE -- "$(printf '%b' "$1")" "$scratch/said"; }
as_before() { bed files 1 | diff "$scratch/before" - >&2; }
no_snapshot() { [ -z "$(bed on 1 find /run/assay -name 'controls*' 2>/dev/null)" ]; }
restored() { # restored NAME: all is put back, by whoever comes
    check "$1: put back" play '$agent --restore-controls'
    check "$1: byte for byte" as_before
    check "$1: no snapshot stays" no_snapshot
}
snapshot='$agent --snapshot-controls >/dev/null && exec 3>&1 &&'
cpu=/sys/devices/system/cpu
policies=$cpu/cpufreq
all='hyperthreads=off governor=performance turbo=off frequency=base energy-preference=performance idle-states=C1 uncore-frequency=min numa-balancing=off transparent-huge-pages=never'

# ---- Each machine, all that it has
while read -r machine status wishes; do
    up "$machine"
    play "$snapshot \$agent --set-controls $wishes"
    check "$machine: set, with status $status" test $? -eq "$status" -a "$(grep -cE '^set' "$scratch/said")" -eq "$(wc -w <<<"$wishes")"
    check "$machine: no write failed" unsaid '^write\t.*\t[A-Z]+$'
    check "$machine: each is done, unchanged or absent" unsaid '^set\t.*\t(mismatch|read-only|denied|failed|invalid)\t'
    check "$machine: it is another machine now" test "$(bed files 1 | diff "$scratch/before" - | wc -l)" -gt 2
    restored "$machine"
    bed down
done <<END
intel-pstate 0 $all
intel-cpufreq 0 $all
acpi-cpufreq 1 $all
amd-pstate 1 hyperthreads=off governor=performance turbo=off frequency=2GHz energy-preference=performance idle-states=1us uncore-frequency=min
arm-cppc 1 hyperthreads=off governor=performance turbo=off frequency=2GHz..2.5GHz idle-states=LPI-0 transparent-huge-pages=always
virtual 1 hyperthreads=off governor=performance turbo=off frequency=base transparent-huge-pages=never numa-balancing=off
two-sockets:cores=16 0 $all
END

# ---- A file that is busy
up intel-pstate
bed fault 1 busy $policies/policy2/scaling_governor 1
check "a core that is busy for a moment is set all the same" play "$snapshot \$agent --set-controls governor=performance"
check "it was tried again" test "$(bed writes 1 | grep policy2/scaling_governor | cut -f2- | tr '\t\n' ':,')" = performance:EBUSY,performance:,
check "and that it is done" said '^set\tgovernor\tperformance\tpowersave\tperformance\tdone\t'
restored "a busy moment"
bed fault 1 busy $policies/policy2/scaling_governor
play "$snapshot \$agent --set-controls governor=performance turbo=off"
check "a core that stays busy fails" test $? -eq 1
check "the control is said to have failed, with how it stands" said '^set\tgovernor\tperformance\tpowersave\tmixed: .*\tfailed\t.*policy2'
check "the others are set" said '^set\tturbo\toff\ton\toff\tdone\t'
check "what was set is put back" play '$agent --restore-controls'
check "byte for byte" as_before
play "$snapshot \$agent --set-controls turbo=off"
bed fault 1 busy $cpu/intel_pstate/no_turbo
play '$agent --restore-controls'
check "a file that cannot be put back is an error" test $? -eq 1
check "it is named, with what it should hold and what it holds" said "^different\tturbo\t$cpu/intel_pstate/no_turbo\t0.*\t1.*\tEBUSY$"
check "the snapshot stays" play 'ls /run/assay/controls*'
bed fault 1 none
restored "when it is no more busy"

# ---- A file that keeps its value
bed fault 1 stuck $cpu/intel_pstate/no_turbo
play "$snapshot \$agent --set-controls turbo=off governor=performance"
check "a value that is taken and not kept is a mismatch" test $? -eq 1
check "that is said" said '^set\tturbo\toff\ton\ton\tmismatch\t'
check "with what was written and what came of it" said "^write\tturbo\t$cpu/intel_pstate/no_turbo\t0\t1\t0\t$"
bed fault 1 none
restored "a value that was not kept"
bed fault 1 denied $cpu/intel_pstate/no_turbo
play "$snapshot \$agent --set-controls turbo=off"
check "turbo that the firmware has locked is told" said "^set\tturbo\toff\ton\ton\t(failed|denied)\t"
bed fault 1 none
restored "locked turbo"

# ---- A governor that turns turbo on
bed fault 1 resets-turbo on
check "a governor that turns turbo on" play "$snapshot \$agent --set-controls turbo=off governor=performance"
check "comes before turbo" test "$(bed on 1 cat $cpu/intel_pstate/no_turbo)" = 1
bed writes 1 forget
restored "with a governor that turns turbo on"
bed set 1 $cpu/intel_pstate/no_turbo 1
bed files 1 >"$scratch/before"
check "where turbo was off before" play "$snapshot \$agent --set-controls turbo=on governor=performance"
restored "turbo that was off before"
bed fault 1 none
bed set 1 $cpu/intel_pstate/no_turbo 0
bed files 1 >"$scratch/before"

# ---- A core that goes away in between
bed fault 1 offline 3 6
play "$snapshot \$agent --set-controls governor=performance frequency=1.2GHz idle-states=POLL"
status=$?
check "a core that goes away midway is no crash" test $status -le 1
check "it is gone" test "$(bed on 1 cat $cpu/online)" = 0-2,4-7
check "each control has its line" test "$(grep -c '^set' "$scratch/said")" -eq 3
play '$agent --restore-controls'
check "restoring says how it went" said '^restored\t'
bed set 1 $cpu/cpu3/online 1
play '$agent --restore-controls'
check "with the core back, all is as before" as_before
bed fault 1 none; bed on 1 sh -c 'rm -f /run/assay/controls*'
bed reboot 1
play "$snapshot \$agent --set-controls governor=performance frequency=1.2GHz"
bed fault 1 offline 3 4
play '$agent --restore-controls'
check "a core that goes away while others are put back is no crash" said '^restored\t'
bed set 1 $cpu/cpu3/online 1
play '$agent --restore-controls'
check "with it back, all is as before" as_before
bed reboot 1

# ---- Processors that were off before
bed set 1 $cpu/cpu2/online 0; bed set 1 $cpu/cpu6/online 0
bed files 1 >"$scratch/before"
check "a machine with a core off" play "$snapshot \$agent --set-controls hyperthreads=off governor=performance frequency=base"
check "the core stays off" test "$(bed on 1 cat $cpu/online)" = 0-1,3
restored "a core that was off"
check "it is off again" test "$(bed on 1 cat $cpu/online)" = 0-1,3-5,7
bed reboot 1
bed files 1 >"$scratch/before"

# ---- What it was, word for word
bed set 1 /sys/kernel/mm/transparent_hugepage/enabled always
bed files 1 >"$scratch/before"
check "a file with brackets" play "$snapshot \$agent --set-controls transparent-huge-pages=madvise"
check "is set by a word" said '^write\ttransparent-huge-pages\t/sys/kernel/mm/transparent_hugepage/enabled\t\[always\] madvise never\tmadvise\talways \[madvise\] never\t$'
restored "a file with brackets"
for pu in 1 5; do bed set 1 $policies/policy$pu/scaling_max_freq 1300000; done
bed set 1 $policies/policy2/scaling_min_freq 900000
bed set 1 $policies/policy2/energy_performance_preference 77
bed set 1 $cpu/cpu3/cpuidle/state2/disable 1
bed files 1 >"$scratch/before"
check "a machine whose cores all differ" play "$snapshot \$agent --set-controls hyperthreads=off governor=performance frequency=2GHz..3GHz idle-states=POLL energy-preference=performance"
restored "cores that differ"
bed reboot 1; bed files 1 >"$scratch/before"
check "limits that move up and down" play "$snapshot \$agent --set-controls frequency=max && \$agent --set-controls frequency=min && \$agent --set-controls frequency=1GHz..2GHz"
check "never cross" test -z "$(bed writes 1 | grep EINVAL)"
restored "limits"
bed writes 1 forget
bed fault 1 unreadable $policies/policy1/scaling_max_freq
play "$snapshot \$agent --set-controls frequency=2GHz governor=performance"
check "a file that cannot be read is not set" test -z "$(bed writes 1 | grep policy1/scaling_max_freq)"
check "and that is said" said '^set\tfrequency\t2GHz\t.*\t(failed|mismatch)\t.*policy1'
bed fault 1 none
restored "a file that could not be read"
play "$snapshot \$agent --set-controls governor=performance turbo=off"
bed set 1 $policies/policy4/scaling_governor powersave
bed set 1 $cpu/intel_pstate/no_turbo 0
restored "what others have set back meanwhile"

# ---- Over ssh, and as somebody else
over_ssh() { bed run ssh -F "$BED/ssh_config" node1 "agent='$agent'; $1" >"$scratch/said" 2>"$scratch/errors"; }
check "over ssh the same is set" over_ssh "$snapshot \$agent --set-controls $all"
check "and put back" over_ssh '$agent --restore-controls'
check "over ssh: byte for byte" as_before
bed down
up intel-pstate --user alice
over_ssh '$agent --controls'
check "who is not root is told so" said '^control\tgovernor\tdenied\tpowersave\t'
over_ssh "$snapshot \$agent --set-controls governor=performance"
check "and sets nothing" test $? -eq 1 -a -z "$(bed writes 1)"
check "which is said" said '^set\tgovernor\tperformance\tpowersave\tpowersave\tdenied\t'
over_ssh '$agent --restore-controls'

# ---- An ordinary user's snapshot: in a folder of /tmp that only he may write
kept=/tmp/assay-$(bed on 1 id -u alice)
check "a folder of his own" over_ssh '$agent --controls && $agent --snapshot-controls'
check "which is his alone" test "$(bed on 1 stat -c %a:%U "$kept")" = 700:alice
check "has the snapshot of this boot" bed on 1 test -e "$kept/controls-$(bed on 1 cat /proc/sys/kernel/random/boot_id)"
over_ssh '$agent --snapshot-controls && chmod 775 '"$kept"' && $agent --snapshot-controls'
check "one that a group may write is refused" test $? -eq 1
check "with the reason" grep -q 'can be written by others' "$scratch/errors"
over_ssh "chmod 700 $kept"
bed reboot 1
check "after a restart" over_ssh '$agent --restore-controls'
check "there is none" said '^nothing\tno control was changed: this node has no snapshot'
bed on 1 rm -rf "$kept"
bed down
finish
