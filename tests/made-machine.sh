# A made-up machine in a folder, for --root: sourced, not run.
#
#   make_machine DIR CORES PACKAGES    each core with two threads, numbered as Linux does on Intel's: PU n and n + CORES
#
# Only what probes read: cpufreq, coretemp, thermal_throttle, RAPL with dram and psys and the duplicates that there are on
# real ones, power_meter, /proc/{loadavg,stat,meminfo,net/dev}.

put() { printf '%s\n' "$2" >"$1"; }

make_pu() { # make_pu DIR PU CORE-ID PACKAGE SIBLINGS
    local cpu=$1/sys/devices/system/cpu/cpu$2
    put "$cpu/topology/core_id" "$3"
    put "$cpu/topology/physical_package_id" "$4"
    put "$cpu/topology/thread_siblings_list" "$5"
    put "$cpu/thermal_throttle/core_throttle_count" "$3"
    put "$cpu/thermal_throttle/package_throttle_count" $((10 + $4))
    put "$1/sys/devices/system/cpu/cpufreq/policy$2/scaling_cur_freq" $((2000000 + $2))
    ln -s "../cpufreq/policy$2" "$cpu/cpufreq"
}

make_chip() { # make_chip DIR HWMON DEVICE NAME: prints its folder
    local folder=$1/sys/devices/platform/$3/hwmon/$2
    mkdir -p "$folder" "$1/sys/class/hwmon"
    ln -s "../../devices/platform/$3/hwmon/$2" "$1/sys/class/hwmon/$2"
    put "$folder/name" "$4"
    echo "$folder"
}

make_zone() { # make_zone DIR CLASS-NAME NAME ENERGY RANGE
    local parent=${2%:*} folder
    case $2 in *:*:*) folder=devices/virtual/powercap/${2%%:*}/$parent/$2 ;; *) folder=devices/virtual/powercap/${2%%:*}/$2 ;; esac
    mkdir -p "$1/sys/$folder" "$1/sys/class/powercap"
    ln -s "../../$folder" "$1/sys/class/powercap/$2"
    put "$1/sys/$folder/name" "$3"
    put "$1/sys/$folder/energy_uj" "$4"
    put "$1/sys/$folder/max_energy_range_uj" "$5"
}

make_proc() { # make_proc DIR PUS
    local pu
    mkdir -p "$1/proc/net" "$1/proc/self"
    put "$1/proc/loadavg" '0.52 0.58 0.59 3/1234 56789'
    {
        echo "cpu  $((1000 * $2)) 0 $((500 * $2)) $((8500 * $2)) 0 0 0 0 0 0"
        for ((pu = 0; pu < $2; pu++)); do echo "cpu$pu 1000 0 500 8500 0 0 0 0 0 0"; done
        printf 'intr 123456'; for ((pu = 0; pu < 8 * $2; pu++)); do printf ' 0'; done
        printf '\nctxt 654321\nbtime 1700000000\nprocesses 1234\nprocs_running 1\nprocs_blocked 0\nsoftirq 100 1 2 3 4\n'
    } >"$1/proc/stat"
    printf '%-16s%10d kB\n' MemTotal: 196608000 MemFree: 180000000 MemAvailable: 190000000 Buffers: 1000 Cached: 2000000 \
        >"$1/proc/meminfo"
    printf '%s\n' 'Inter-|   Receive                                                |  Transmit' \
        ' face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed' \
        '    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0' '  eth0: 1000 10 1 2 0 0 0 0 2000 20 3 4 0 0 0 0' \
        '   ib0: 5000 50 0 0 0 0 0 0 6000 60 0 0 0 0 0 0' >"$1/proc/net/dev"
    printf 'Cpus_allowed_list:\t0-%d\n' $(($2 - 1)) >"$1/proc/self/status"
}

make_machine() {
    local dir=$1 cores=$2 packages=$3 core package chip each=$(($2 / $3))
    eval "mkdir -p '$dir'/sys/devices/system/cpu/{cpu{0..$((2 * cores - 1))}/{topology,thermal_throttle},cpufreq/policy{0..$((2 * cores - 1))}}"
    put "$dir/sys/devices/system/cpu/online" "0-$((2 * cores - 1))"
    for ((core = 0; core < cores; core++)); do
        package=$((core / each))
        make_pu "$dir" $core $((core % each)) $package "$core,$((core + cores))"
        make_pu "$dir" $((core + cores)) $((core % each)) $package "$core,$((core + cores))"
    done
    for ((package = 0; package < packages; package++)); do
        # hwmon's numbers run against the packages', as they may
        chip=$(make_chip "$dir" hwmon$((9 - package)) coretemp.$package coretemp)
        put "$chip/temp1_label" "Package id $package"; put "$chip/temp1_input" $((60000 + package))
        for ((core = 0; core < each; core++)); do
            put "$chip/temp$((core + 2))_label" "Core $core"
            put "$chip/temp$((core + 2))_input" $((40000 + 1000 * package + core))
        done
        make_zone "$dir" intel-rapl:$package package-$package $((1000000 + package)) 262143328850
        make_zone "$dir" intel-rapl:$package:0 dram $((2000000 + package)) 65712999613
    done
    make_zone "$dir" intel-rapl:$packages psys 3000000 262143328850
    make_zone "$dir" intel-rapl-mmio:0 package-0 1000000 262143328850
    chip=$(make_chip "$dir" hwmon1 nvme0 nvme); put "$chip/temp1_input" 33000; put "$chip/temp1_label" Composite
    chip=$(make_chip "$dir" hwmon0 ACPI000D:00 power_meter); put "$chip/power1_average" 215000000
    make_proc "$dir" $((2 * cores))
}
