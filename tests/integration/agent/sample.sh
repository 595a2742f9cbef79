# The sampler as the engine starts it: header, lines, periods, a reader that does not read, its end. On a made-up machine.
[ -w /dev/shm ] && TMPDIR=/dev/shm # a machine is thousands of small files
. "$(dirname "$0")/../tap.sh"
agent=$ASSAY_BUILD/libexec/assay/assay-agent
tab=$(printf '\t')
small=$scratch/small
"$ASSAY_BUILD/tests/machines/machine-tree" two-sockets:cores=1,threads=2 "$small" &&
    "$ASSAY_BUILD/tests/machines/machine-tree" two-sockets:cores=32,threads=2 "$scratch/large" || exit 1
chmod -R u+w "$small"
mkdir -p "$scratch/empty" "$small/sys/class/hwmon/hwmon7"
hot=$small/sys/devices/platform/coretemp.1/hwmon/hwmon2/temp1_input
# values that tell which file they are from
for pu in 0 1 2 3; do
    cpu=$small/sys/devices/system/cpu/cpu$pu
    echo $((2000000 + pu)) >"$cpu/cpufreq/scaling_cur_freq"
    echo "$pu" >"$cpu/thermal_throttle/core_throttle_count"
    echo $((10 + pu)) >"$cpu/thermal_throttle/package_throttle_count"
done
echo 60001 >"$hot"
echo power_meter >"$small/sys/class/hwmon/hwmon7/name"
echo 215000000 >"$small/sys/class/hwmon/hwmon7/power1_average"

sample() { # sample LINES OUT ARGUMENT...: until it has printed so many; its exit status
    local lines=$1 out=$2 status=0; shift 2
    : >"$out"
    "$agent" --sample --flush 0 "$@" >"$out" 2>"$scratch/words" & local pid=$!
    has_lines() { test "$(wc -l <"$out")" -ge "$lines" && grep -q ^begin "$out"; }
    eventually has_lines; kill -TERM $pid; wait $pid || status=$?
    return $status
}

# ---- what it prints

check "it ends with 0 at SIGTERM" sample 50 "$scratch/out" --root "$small" --period 100000000
cat >"$scratch/header" <<END
probe${tab}0${tab}frequency${tab}100000000${tab}cpu0:Hz${tab}cpu1:Hz${tab}cpu2:Hz${tab}cpu3:Hz
probe${tab}1${tab}temperature${tab}100000000${tab}package-0:Cel${tab}core-0-0:Cel${tab}package-1:Cel${tab}core-1-0:Cel
probe${tab}2${tab}throttle${tab}100000000${tab}package-0:1${tab}core-0-0:1${tab}package-1:1${tab}core-1-0:1
probe${tab}3${tab}energy${tab}100000000${tab}package-0:uJ${tab}package-0-dram:uJ${tab}package-1:uJ${tab}package-1-dram:uJ${tab}psys:uJ
probe${tab}4${tab}power${tab}100000000${tab}power_meter-power1:uW
probe${tab}5${tab}load${tab}100000000${tab}load-1min:1${tab}busy:1${tab}foreign:1${tab}context-switches:1${tab}interrupts:1
probe${tab}6${tab}memory${tab}100000000${tab}available:By${tab}free:By
probe${tab}7${tab}network${tab}100000000${tab}eno1-rx-bytes:By${tab}eno1-rx-packets:1${tab}eno1-rx-errors:1${tab}eno1-tx-bytes:By${tab}eno1-tx-packets:1${tab}eno1-tx-errors:1
missing${tab}kernel${tab}/dev/kmsg: No such file or directory
missing${tab}drift${tab}nothing is expected (--expect)
END
head -10 "$scratch/out" >"$scratch/header-found"
check "the header is this" diff "$scratch/header" "$scratch/header-found"
begins() { sed -n 11p "$scratch/out" | grep -qE "^begin$tab[0-9]{19}$tab[0-9]+$"; }
check "then it begins" begins
values() { # values INDEX: those of its first line
    grep -m1 "^s$1," "$scratch/out" | cut -d, -f6-
}
check "frequencies in Hz" test "$(values 0)" = 2000000000,2000001000,2000002000,2000003000
check "temperatures in Cel" test "$(values 1)" = 39.000,38.000,60.001,38.000
check "throttling" test "$(values 2)" = 10,0,11,1
check "energy from the beginning" test "$(values 3)" = 0,0,0,0,0
check "power in uW" test "$(values 4)" = 215000000
check "load" test "$(values 5)" = 0.08,,,0,0
check "memory in bytes" test "$(values 6)" = 198574080000,196608000000
check "network" test "$(values 7)" = 123456789,98765,3,87654321,76543,0
forms() { # every line is of a form that TOOLS.md has
    ! grep -vE "^(probe|missing|begin|event|cost)$tab|^s[0-9],[0-9]{19},[0-9]+,[0-9]+,[0-9]+(,-?[0-9.]*)+$" "$scratch/out"
}
check "all lines have a form" forms
columns() { awk -F"$tab" '$1 == "probe" {n[$2] = NF - 4} {if ($0 ~ /^s/) {split($0, f, ","); i = substr(f[1], 2)
    if (split($0, f, ",") != 5 + n[i]) exit 1; seen++}} END {exit !seen}' "$scratch/out"; }
check "each line has as many values as columns" columns
costs() { tail -1 "$scratch/out" | grep -qE "^cost($tab[0-9]+){5}$tab[1-9][0-9]+$"; }
check "at the end what it cost" costs
last() { tail -9 "$scratch/out" | head -8 | cut -d, -f1,4 | tr '\n' ' ' | grep -qx 's0,0 s1,0 s2,0 s3,0 s4,0 s5,0 s6,0 s7,0 '; }
check "before it a last sample of each probe" last
counted() { awk -F"$tab" '/^s/ {n++} $1 == "cost" {exit $5 != n}' "$scratch/out"; }
check "samples are counted" counted
missed() { awk -F"$tab" '/^s/ {split($0, f, ","); m += f[5]} $1 == "cost" {exit !($6 == m && m >= least)}' least="$1" "$scratch/out"; }
check "and those that a busy machine came too late for" missed 0

# ---- when it samples

check "periods of their own" sample 60 "$scratch/out" --root "$small" --probe frequency=20000000 --probe memory \
    --period 100000000
punctual() { # due on whole multiples, but for the first and the last, which are not due
    awk -F, '/^s0/ {p = 20000000} /^s1/ {p = 100000000} /^s/ {line[++n] = $3 - $4; period[n] = p}
        END {for (i = 3; i <= n - 2; i++) if (line[i] % period[i]) exit 1; exit n < 4}' "$scratch/out"
}
check "due times are whole multiples" punctual
none_lost() { # what is neither there nor missed: none
    awk -F, '/^s0/ {if (n > 1) {d = ($3 - $4 - t) / 20000000; if (d != $5 + 1) bad[n] = 1} t = $3 - $4; n++}
        END {for (i in bad) if (i < n - 1) exit 1; exit n < 4}' "$scratch/out"
}
check "each is there or missed" none_lost
# Those that a busy machine came too late for are counted with the rest.
both() { awk -F, '/^s/ {due[$1] += 1 + $5} END {exit !(due["s1"] >= 3 && due["s0"] > 2 * due["s1"])}' "$scratch/out"; }
check "both were sampled, one of them more often" both
seldom() { # read less often than asked: ten times a second
    sample 80 "$scratch/out" --root "$small" --probe memory --period 10000000 &&
        awk -F, '/^s/ {if (!first) first = $3; last = $3; if ($6 == "") e++; else f++}
            END {exit !(e > 0 && f >= 2 && f <= (last - first) / 1e8 + 2)}' "$scratch/out" &&
        ! grep -q '^event' "$scratch/out"
}
check "what is dear is not read at each sample, and its values are not made up" seldom

# ---- what happens meanwhile

told() { eventually grep -q "$1" "$scratch/out"; }
replace() { echo "$2" >"$scratch/new" && mv "$scratch/new" "$1"; } # never seen empty, as a file of the kernel is not
happens() {
    : >"$scratch/out" # or what is there from before is taken for an answer
    "$agent" --sample --root "$small" --period 50000000 --flush 0 --expect /sys/control=on \
        --probe temperature --probe drift >"$scratch/out" & local pid=$!
    told '^s0,'; rm "$hot"
    told gone; replace "$hot" 61000
    told back; replace "$small/sys/control" off
    kill -INT $pid; wait $pid
}
echo on >"$small/sys/control"
check "it ends with 0 at SIGINT" happens
events() { grep ^event "$scratch/out" | cut -f4- | tr '\t\n' ' ;'; }
check "a sensor goes and comes back, a control drifts" test "$(events)" = \
    "gone temperature package-1;back temperature package-1;drift /sys/control: expected on, found off;"
check "the value is empty meanwhile" grep -qE '^s0,.*,39\.000,38\.000,,38\.000$' "$scratch/out"
check "and there again" grep -qE '^s0,.*,39\.000,38\.000,61\.000,38\.000$' "$scratch/out"

nothing() { sample 11 "$scratch/out" --root "$scratch/empty" --period 100000000; }
check "no sources at all" nothing
check "all of them are missing" test "$(grep -c ^missing "$scratch/out")" -eq 10
check "and it ran on until told" grep -qE "^cost($tab[0-9]+){3}${tab}0$tab[0-9]+$tab[0-9]+$" "$scratch/out"

# ---- a reader that does not read, one that goes

stuck() { # 2.4 kB every 10 ms, more than 1 MiB in all, before anybody reads
    mkfifo "$scratch/pipe" && exec 7<>"$scratch/pipe"
    "$agent" --sample --root "$scratch/large" --period 10000000 --flush 0 >"$scratch/pipe" & local pid=$!
    woken() { awk '$1 == "voluntary_ctxt_switches:" { print; exit $2 < 700 }' /proc/$pid/status; }
    eventually woken # each time to sample
    memory=$(awk '/^VmRSS/ {print $2}' /proc/$pid/status)
    exec 8<"$scratch/pipe" 7<&-
    cat <&8 >"$scratch/out" & local reader=$!
    exec 8<&-
    caught_up() { awk -F, '/^s0,/ && $5 > 100 {gap = 1} END {exit !gap}' "$scratch/out"; }
    eventually caught_up; kill -TERM $pid; wait $pid || return 1
    wait $reader
}
check "nobody reads for long" stuck
most=4096 # kB
grep -q __asan_init "$agent" && most=65536 # the sanitizer's own
check "its memory is bounded" test "$memory" -lt $most
check "all lines have a form, none is torn" forms
check "what was dropped was counted as missed" missed 101

gone() { "$agent" --sample --root "$small" --period 10000000 --flush 0 2>"$scratch/words" | head -20 >/dev/null
    [ "${PIPESTATUS[0]}" -eq 1 ] && grep -q 'Broken pipe' "$scratch/words"; }
check "a reader that goes ends it" timeout 20 bash -c "$(declare -f gone); agent=$agent scratch=$scratch small=$small; gone"

# ---- arguments

refuse "no period" 2 'a probe has no period' "$agent" --sample
refuse "a period that is too short" 2 "--period: '9999999' is not a number from 10000000 to 86400000000000" "$agent" --sample --period 9999999
refuse "no such probe" 2 "there is no probe 'tempature=1'" "$agent" --sample --probe tempature=1
refuse "a probe twice" 2 'the probe load is named twice' "$agent" --sample --probe load --probe load=10000000
for bad in a=b sys/a=1 /sys/a /=1 '' =; do
    refuse "an expectation that is '$bad'" 2 "'$bad' is not /PATH=VALUE" "$agent" --sample --period 10000000 --expect "$bad"
done
refuse "an unknown option" 2 "unknown option '--what'" "$agent" --sample --what x
refuse "no value" 2 'lacks its value' "$agent" --sample --period
refuse "no such root" 2 'cannot open the root' "$agent" --sample --period 10000000 --root "$scratch/nothing"
refuse "--probes takes a root only" 2 "unexpected argument 'x'" "$agent" --probes x

listed() { "$agent" --probes --root "$small" >"$scratch/list" && [ "$(wc -l <"$scratch/list")" -eq 10 ] &&
    grep -qx "probe${tab}temperature${tab}package-0:Cel core-0-0:Cel package-1:Cel core-1-0:Cel${tab}hwmon coretemp" "$scratch/list"; }
check "probes are listed" listed
finish
