# Keeping a machine busy: processes that die with who started them, and how fast PUs are meanwhile.
. "$(dirname "$0")/../tap.sh"
agent=$ASSAY_BUILD/libexec/assay/assay-agent
tab=$(printf '\t')
first=$(sed -nE 's/^Cpus_allowed_list:\s*([0-9]+).*/\1/p' /proc/self/status)
pus=$(nproc)

children() { ps -o pid= --ppid "$1" 2>/dev/null | wc -l; }
busy() { awk '{print $14 + $15}' "/proc/$1/stat"; }
gone() { ! ps -o stat=,args= -p "$(echo "$*" | tr ' ' ,)" 2>/dev/null | grep -v '^Z'; }
has_children() { [ "$(children $pid)" -eq "$1" ]; }
stress() { # stress COUNT ARGUMENT...: runs, with as many processes
    local count=$1; shift
    "$agent" --stress "$@" & pid=$!
    eventually has_children "$count" || return 1
    workers=$(ps -o pid= --ppid $pid | xargs)
}
first_is_busy() { [ "$(busy "${workers%% *}")" -gt 5 ]; }
check "a process a PU" stress "$pus"
check "which is busy" eventually first_is_busy
bound() { taskset -cp "${workers%% *}" 2>/dev/null | grep -q ": $first$"; }
check "and bound to it" bound
ends() { kill -TERM $pid; wait $pid; }
check "it ends with 0 at SIGTERM" ends
check "and leaves none" eventually gone $workers
check "only where it was told to" stress 1 --pus "$first"
killed() { kill -KILL $pid; { wait $pid; } 2>/dev/null; eventually gone $workers; }
check "it is killed, and leaves none" killed
stress 1 --pus "$first"
lost() { kill -KILL "$workers"; wait $pid; [ $? -eq 1 ]; }
check "a process of it is killed: it says so, and ends" lost

refuse "a PU that is not there" 1 'cannot keep PU 8191 busy: Invalid argument' "$agent" --stress --pus 8191
refuse "no list of PUs" 2 "'3-1' is no list of PUs" "$agent" --stress --pus 3-1
refuse "an empty list" 2 "'' is no list of PUs" "$agent" --spin --pus ''
refuse "no time" 2 "'0' is not a number from 1 to 600000" "$agent" --spin --milliseconds 0
refuse "an unknown option" 2 "unknown option '--root'" "$agent" --stress --root /

spin() { "$agent" --spin --milliseconds 200 >"$scratch/spin" && [ "$(wc -l <"$scratch/spin")" -eq "$pus" ] &&
    ! grep -vE "^spin$tab[0-9]+$tab[0-9]{9,10}$tab(aperf|cpufreq|cycles)$tab[0-9]*$" "$scratch/spin"; }
# Beside others a PU may not be kept for long enough to know, which is said: it is asked again.
check "every PU says how fast it was" eventually spin
possible() { awk -F"$tab" '$3 < 2e8 || $3 > 8e9 {exit 1}' "$scratch/spin"; }
check "as fast as processors are" possible
"$ASSAY_BUILD/tests/machines/machine-tree" intel-pstate:cores=2 "$scratch/machine" || exit 1
chmod -R u+w "$scratch/machine"
echo 2000001 >"$scratch/machine/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq"
captured() { "$agent" --spin --root "$scratch/machine" --pus 1,3 >"$scratch/spin"; }
check "a captured machine's PUs" captured
printf 'spin\t1\t2000001000\tcpufreq\t2000001000\nspin\t3\t2100000000\tcpufreq\t2100000000\n' >"$scratch/expected"
check "are as fast as its files say" diff "$scratch/expected" "$scratch/spin"
rm "$scratch/machine/sys/devices/system/cpu/cpu3/cpufreq/scaling_cur_freq"
refuse "what is not known is empty" 1 'does not report the frequency of PU 3' "$agent" --spin --root "$scratch/machine" --pus 3
cp "$scratch/.out" "$scratch/spin"
check "and said to be" grep -qx "spin${tab}3${tab}${tab}cycles${tab}" "$scratch/spin"
finish
