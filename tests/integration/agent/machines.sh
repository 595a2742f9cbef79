#!/bin/bash
# The agent's tools on each made-up machine of tests/machines: they find what is there, say why the rest is not, change nothing, and
# a capture of it is the same machine.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm # thousands of small files: not on a disk
[ -w /dev/shm ] && TMPDIR=/dev/shm # a machine is thousands of small files
. "$(dirname "$0")/../tap.sh"
agent=$ASSAY_BUILD/libexec/assay/assay-agent make=$ASSAY_BUILD/tests/machines/machine-tree
tab=$(printf '\t')
sums() { (cd "$1" && find . -type f | sort | xargs sha256sum); }
# is CONTROL ACCESS VALUE
is() { grep -q "^control$tab$1$tab$2$tab$3$tab" "$scratch/controls" || { grep "^control$tab$1$tab" "$scratch/controls" >&2; false; }; }
has() { local probe; for probe; do grep -q "^probe$tab$probe$tab" "$scratch/probes" || { cat "$scratch/probes" >&2; return 1; }; done; }
lacks() { local probe; for probe; do grep -q "^missing$tab$probe$tab." "$scratch/probes" && ! grep -q "^probe$tab$probe$tab" "$scratch/probes" || return 1; done; }
columns() { sed -n "s/^probe$tab$1$tab\([^$tab]*\)$tab.*/\1/p" "$scratch/probes"; }

for machine in intel-pstate intel-cpufreq acpi-cpufreq amd-pstate arm-cppc virtual offline-cores two-sockets two-sockets:cores=32; do
    root=$scratch/machine
    rm -rf "$root" "$scratch/captured"
    check "$machine: made" "$make" "$machine" "$root"
    sums "$root" >"$scratch/before"
    check "$machine: controls are told" sh -c "'$agent' --controls --root '$root' >'$scratch/controls'"
    check "$machine: each has a line" test "$(grep -c "^control$tab" "$scratch/controls")" -eq 11
    check "$machine: what is not available has a reason" test -z "$(awk -F"$tab" '$1 == "control" && $3 != "available" && $7 == ""' "$scratch/controls")"
    check "$machine: probes are told" sh -c "'$agent' --probes --root '$root' >'$scratch/probes'"
    case $machine in
    intel-pstate) check "$machine: has all" has frequency temperature throttle energy load memory network
        check "$machine: sums up no energy twice" test "$(columns energy)" = 'package-0:uJ package-0-dram:uJ psys:uJ'
        check "$machine: is not misled by another sensor" test "$(columns temperature | cut -d' ' -f1)" = package-0:Cel ;;
    intel-cpufreq) check "$machine: generic governors" is governor available schedutil ;;
    acpi-cpufreq) check "$machine: threads go one by one" is hyperthreads available on
        check "$machine: a bias stands for the preference" is energy-preference available normal ;;
    amd-pstate) check "$machine: boost" is turbo available on
        check "$machine: sensors of AMD" has temperature energy
        check "$machine: counts no throttling" lacks throttle ;;
    arm-cppc) check "$machine: no threads" is hyperthreads absent ''
        check "$machine: no turbo" is turbo absent ''
        check "$machine: no energy, but power" has power
        check "$machine: no RAPL" lacks energy ;;
    virtual) check "$machine: nothing to set" is frequency absent ''
        check "$machine: nothing of a processor to sample" lacks frequency temperature throttle energy power ;;
    offline-cores) check "$machine: samples what is on" test "$(columns frequency | wc -w)" -eq 6 ;;
    two-sockets*) check "$machine: both packages" test "$(columns energy)" = 'package-0:uJ package-0-dram:uJ package-1:uJ package-1-dram:uJ psys:uJ' ;;
    esac
    mkdir "$scratch/captured"
    check "$machine: is captured" bash -o pipefail -c "'$agent' --capture --root '$root' | tar -xf - -C '$scratch/captured'"
    check "$machine: the capture has the same controls" diff "$scratch/controls" <("$agent" --controls --root "$scratch/captured")
    check "$machine: and the same probes" diff "$scratch/probes" <("$agent" --probes --root "$scratch/captured")
    check "$machine: nothing has changed" diff "$scratch/before" <(sums "$root")
done
finish
