#!/bin/bash
# What an archive has of a machine with `provenance: full`: what its programs print, without serial numbers, hardware
# addresses and passwords, and what the kernel has logged while the run went on.
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
export XDG_STATE_HOME=$scratch/state
mkdir tools
tool() { printf '#!/bin/sh\n%s\n' "$2" >"tools/$1"; chmod +x "tools/$1"; }
tool dmesg "cat $scratch/log"
tool lspci 'echo "00:1f.6 Ethernet controller [0200]: Intel I219 [8086:15bc]"'
tool dmidecode 'printf "System Information\n\tProduct Name: R640\n\tSerial Number: ABC1234\n\tUUID: 4c4c4544-0042\n\tSpeed: 2933 MT/s\n"'
tool lstopo-no-graphics 'printf "<info name=\"DMIProductSerial\" value=\"ABC1234\"/>\n<info name=\"Address\" value=\"aa:bb:cc:dd:ee:ff\"/>\n<info name=\"PCIDevice\" value=\"0000:00:1f.6\"/>\n"'
tool dpkg-query 'printf "libc6\t2.36\tamd64\n"'
tool nvidia-smi 'exit 1'
printf '[1.0] Linux\n[2.0] eth0: aa:bb:cc:dd:ee:ff\n[3.0] cifs //h/x password=hunter2,user=me\n' >log
cat >c.yaml <<Y
experiment:
  name: c
  run: [sh, -c, 'echo "[4.0] mce: error" >>$scratch/log; echo y 5']
  responses: {y: {pattern: '^y ([0-9]+)'}}
design: {repetitions: 1}
probes: none
Y
run() { archive=$(PATH=$scratch/tools:$PATH "$ASSAY" run c.yaml -q -o runs "$@" 2>err) || sed 's/^/# /' err; }
raw() { "$ASSAY" archive cat "$archive" "nodes/$(uname -n)/raw/$1" 2>/dev/null; }
ASSAY_PROVENANCE=full run
is "packages are those of the package manager" "$(raw packages)" "$(printf 'libc6\t2.36\tamd64')"
is "... devices those of lspci" "$(raw lspci)" "00:1f.6 Ethernet controller [0200]: Intel I219 [8086:15bc]"
is "... and what a program does not print is left out" "$(raw gpus)" ""
serial=$(raw dmidecode | sed -n 's/.*Serial Number: //p')
check "a serial number is hashed" grep -qE '^hashed:[0-9a-f]{16}$' <<<"$serial"
is "... with the salt of the user" "$serial" "hashed:$(printf '%s ABC1234' "$(<state/assay/salt)" | sha256sum | cut -c1-16)"
is "... which nobody else can read" "$(stat -c %a state/assay/salt)" 600
is "... wherever it stands" "$(raw topology.xml | sed -n 's/.*Serial" value="\(.*\)".*/\1/p')" "$serial"
is "... and the rest stays" "$(raw dmidecode | sed 's/hashed:[0-9a-f]*/-/' | xargs)" "System Information Product Name: R640 Serial Number: - UUID: - Speed: 2933 MT/s"
is "a hardware address is hashed in the same way everywhere" "$(raw kernel-log | sed -n 's/.*eth0: //p')" "$(raw topology.xml | sed -n 's/.*Address" value="\(.*\)".*/\1/p')"
is "... and the address of a device is not one" "$(raw topology.xml | tail -n 1)" '<info name="PCIDevice" value="0000:00:1f.6"/>'
is "a password is taken out" "$(raw kernel-log | tail -n 1)" "[3.0] cifs //h/x password=[redacted],user=me"
is "what the kernel logged meanwhile is apart" "$(raw kernel-log-during)" "[4.0] mce: error"
check "limits are those of the commands" grep -q '^Max open files' <(raw limits)
check "mounts are there" grep -q ' /proc proc ' <(raw mounts)
check "the run says how much was recorded of what" grep -qE 'recorded \(provenance: full\): results [0-9.]+ (B|KiB), nodes [0-9.]+ KiB, sources [0-9.]+ (B|KiB), journal and logs [0-9.]+ KiB$' \
    <("$ASSAY" archive cat "$archive" logs/engine.log)
first=$serial
ASSAY_PROVENANCE=full run
is "a second run has the same hashes" "$(raw dmidecode | sed -n 's/.*Serial Number: //p')" "$first"
echo 'provenance: lean' >>c.yaml
ASSAY_PROVENANCE=full run
is "lean: neither programs nor the kernel are asked" "$(raw packages)$(raw kernel-log)$(raw kernel-log-during)$(raw topology.xml)" ""
check "... files are there all the same" grep -q ' /proc proc ' <(raw mounts)
ASSAY_PROVENANCE=all refuse "a variable that says something else" 2 "^assay: the variable ASSAY_PROVENANCE is 'all', expected 'full' or 'lean'$" "$ASSAY" run c.yaml -q
finish
