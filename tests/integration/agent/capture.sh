# A machine's files as a tar: what comes out of it serves as --root, for us and for any tar.
[ -w /dev/shm ] && TMPDIR=/dev/shm # a machine is thousands of small files
. "$(dirname "$0")/../tap.sh"
agent=$ASSAY_BUILD/libexec/assay/assay-agent
machine=$scratch/machine copy=$scratch/copy
"$ASSAY_BUILD/tests/machines/machine-tree" two-sockets:cores=4 "$machine" || exit 1
chmod -R u+w "$machine"

# what must not be in it, what is too long for a plain header, what is too large
mkdir -p "$machine/sys/devices/virtual/dmi/id" "$machine/sys/class/dmi" "$machine/proc/sys/vm" "$machine/proc/sys/kernel/random"
ln -sfn ../../devices/virtual/dmi/id "$machine/sys/class/dmi/id"
echo "Dell Inc." >"$machine/sys/devices/virtual/dmi/id/sys_vendor"
for name in product_serial product_uuid board_serial chassis_serial; do echo SECRET >"$machine/sys/devices/virtual/dmi/id/$name"; done
printf 'processor\t: 0\nSerial\t\t: SECRET\nModel\t\t: Pi\n' >"$machine/proc/cpuinfo"
printf 'Name:\tSECRET\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\nCpus_allowed_listing:\tSECRET\n' >"$machine/proc/self/status"
echo SECRET >"$machine/proc/cmdline"; echo SECRET >"$machine/proc/self/environ"; echo SECRET >"$machine/proc/sys/kernel/core_pattern"
echo 1 >"$machine/proc/sys/kernel/numa_balancing"; echo 60 >|"$machine/proc/sys/vm/swappiness"; chmod 0200 "$machine/proc/sys/vm/swappiness"
echo 1 >"$machine/proc/sys/vm/zone_reclaim_mode"
long=sys/devices/system/cpu/$(printf 'x%.0s' {1..90})/$(printf 'y%.0s' {1..90})
mkdir -p "$machine/$long"; echo long >"$machine/$long/value"; ln -s "$(printf '../%.0s' {1..40})$long/value" "$machine/$long/link"
head -c 300000 /dev/zero | tr '\0' 'z' >"$machine/sys/devices/system/cpu/large"
chmod 0600 "$machine/sys/class/powercap/intel-rapl:0/energy_uj"
mkfifo "$machine/sys/devices/system/cpu/fifo"

capture() { "$agent" --capture --root "$machine" >"$scratch/tar"; }
check "it is written" capture
unpack() { rm -rf "$copy"; mkdir "$copy" && tar xf "$scratch/tar" -C "$copy" 2>&1 | cat >&2; [ "${PIPESTATUS[0]}" -eq 0 ]; }
check "tar reads it" unpack
is "without a word" "$(cat "$scratch/.err")" ""
if command -v bsdtar >/dev/null; then check "bsdtar reads it" bsdtar tf "$scratch/tar"; fi

same() { "$agent" --probes --root "$machine" >"$scratch/a"; "$agent" --probes --root "$copy" >"$scratch/b"; diff "$scratch/a" "$scratch/b"; }
check "probes see the same machine" same
check "and see it at all" test "$(grep -c ^probe "$scratch/b")" -ge 7
again() { "$agent" --capture --root "$copy" >"$scratch/tar2" && mkdir -p "$scratch/copy2" && tar xf "$scratch/tar2" -C "$scratch/copy2" &&
    diff -r --no-dereference "$copy" "$scratch/copy2"; }
check "a copy of the copy is the copy" again
check "no secret is in it" sh -c "! grep -q SECRET '$scratch/tar'"
check "but who made it" grep -qx 'Dell Inc.' "$copy/sys/class/dmi/id/sys_vendor"
check "cpuinfo without serial number" test "$(cat "$copy/proc/cpuinfo")" = "$(printf 'processor\t: 0\nModel\t\t: Pi')"
check "of our own status the PUs" test "$(cat "$copy/proc/self/status")" = "$(printf 'Cpus_allowed:\tff\nCpus_allowed_list:\t0-7')"
check "links stay links" test "$(readlink "$copy/sys/class/hwmon/hwmon1")" = ../../devices/platform/coretemp.0/hwmon/hwmon1
check "long names" grep -qx long "$copy/$long/value"
check "long links" test "$(readlink "$copy/$long/link")" = "$(readlink "$machine/$long/link")"
check "so much of a large file" test "$(stat -c %s "$copy/sys/devices/system/cpu/large")" -eq 262144
check "what can only be written is left out" test ! -e "$copy/proc/sys/vm/swappiness" -a -e "$copy/proc/sys/vm/zone_reclaim_mode"
check "what is no file is left out" test ! -e "$copy/sys/devices/system/cpu/fifo"

for i in {1..300}; do ln "$machine/sys/devices/system/cpu/large" "$machine/sys/devices/system/cpu/large$i"; done
refuse "a machine that is too large" 1 'more than 64 MiB' "$agent" --capture --root "$machine"

real() { "$agent" --capture >"$scratch/real.tar" && mkdir "$scratch/real" && tar xf "$scratch/real.tar" -C "$scratch/real"; }
check "this machine" real
check "of which no process and no command line is told" sh -c "! grep -qa 'BOOT_IMAGE=' '$scratch/real.tar'"
sees() { "$agent" --probes --root "$scratch/real" | grep -q "^probe$(printf '\t')memory"; }
check "can be looked at" sees
refuse "an unknown option" 2 "unknown option '--what'" "$agent" --capture --what
finish
