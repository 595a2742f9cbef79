#!/bin/bash
# Controls on nodes whose files answer as a kernel's do: what is refused, clamped, kept and changed along with something else;
# and daemons. Everything comes back, to the byte.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"

agent=${ASSAY_AGENT:-$ASSAY_BUILD/libexec/assay/assay-agent}
cpu=/sys/devices/system/cpu

# Two words with one parent: the snapshot is that of whoever set.
cat >"$scratch/set" <<'END'
/root/agent --snapshot-controls --label test >/root/snapshot || exit 3
/root/agent --set-controls "$@" >/root/told
status=$?
grep -v -e ^write -e ^expect /root/told
exit $status
END

up() { # up MACHINE
    bed up 1 --machine "$1" || exit 1
    bed can kernel-files || plan_skip "no FUSE here"
    bed on 1 sh -c 'cat >/root/agent && chmod +x /root/agent' <"$agent"
    bed on 1 sh -c 'cat >/root/set' <"$scratch/set"
    bed files 1 >"$scratch/before"
}
setting() { bed on 1 timeout 60 sh /root/set "$@" >"$scratch/told"; }
restore() { bed on 1 timeout 60 /root/agent --restore-controls >"$scratch/restored" 2>"$scratch/words"; }
is_as_before() { bed files 1 | diff "$scratch/before" -; }
# told CONTROL STATE [PATTERN]: of its line, the state and, in the sentence, the pattern
told() {
    awk -F'\t' -v control="$1" -v state="$2" -v pattern="${3:-}" \
        '$1 == "set" && $2 == control { found = $6 == state && $7 ~ pattern } END { exit !found }' "$scratch/told" ||
        { cat "$scratch/told" >&2; false; }
}
comes_back() { # comes_back NAME
    check "$1: put back" restore
    check "$1: all files are as they were" is_as_before
    check "$1: nothing stays behind" bed on 1 sh -c '! test -e /run/assay'
}

# ---- Each machine, all of its controls

while read -r machine words; do
    up "$machine"
    # shellcheck disable=SC2086
    check "$machine: set" setting $words
    check "$machine: none differs" sh -c "! grep -v -e '	done	' -e '	unchanged	' '$scratch/told' | grep ^set"
    comes_back "$machine"
    bed down
done <<END
intel-pstate turbo=off hyperthreads=off governor=performance frequency=2.1GHz energy-preference=performance idle-states=C1 uncore-frequency=2GHz numa-balancing=off transparent-huge-pages=never
intel-pstate frequency=max turbo=off idle-states=POLL
intel-pstate frequency=800MHz..1GHz energy-preference=power
intel-cpufreq turbo=off hyperthreads=off governor=performance frequency=base
acpi-cpufreq turbo=off hyperthreads=off governor=performance frequency=min..base energy-preference=performance idle-states=10us
amd-pstate turbo=off hyperthreads=off governor=performance frequency=min..base idle-states=10us
arm-cppc governor=performance frequency=max idle-states=10us
virtual transparent-huge-pages=never
offline-cores hyperthreads=off governor=performance frequency=1GHz idle-states=C1
two-sockets:cores=16 turbo=off hyperthreads=off governor=performance frequency=1.5GHz idle-states=POLL uncore-frequency=min
END

# ---- What a kernel does

up intel-pstate
bed fault 1 busy $cpu/cpufreq/policy2/scaling_governor 2
check "a file that is busy for a moment" setting governor=performance
comes_back "busy for a moment"

bed fault 1 busy $cpu/cpufreq/policy2/scaling_governor 60000
setting governor=performance
check "one that stays busy: failed, and which" told governor failed 'Device or resource busy \(1 of 8 files; PUs 2\)'
bed fault 1 none
comes_back "busy for long"

bed fault 1 denied $cpu/intel_pstate/no_turbo 60000
setting turbo=off
check "what is not permitted is denied" told turbo denied 'firmware'
bed fault 1 none
comes_back "not permitted"

bed fault 1 stuck "$cpu/cpufreq/policy[23]/scaling_max_freq"
setting frequency=2GHz
check "what keeps its value is a mismatch, and says what was given" told frequency mismatch \
    'the driver gave 3.5GHz for 2GHz .*\(2 of 16 files; PUs 2-3\)'
bed fault 1 none
comes_back "stuck"

bed fault 1 resets-turbo on
check "a governor that resets turbo: turbo is off in the end" setting turbo=off governor=performance
check "and is told so" told turbo done
comes_back "governor and turbo"
bed on 1 sh -c "echo 1 >$cpu/intel_pstate/no_turbo"
bed files 1 >"$scratch/before"
check "a governor alone" setting governor=performance
check "does not switch turbo on" test "$(bed on 1 cat $cpu/intel_pstate/no_turbo)" = 1
comes_back "governor alone"
bed fault 1 none
bed on 1 sh -c "echo 0 >$cpu/intel_pstate/no_turbo"

bed on 1 sh -c "echo off >$cpu/smt/control"
bed files 1 >"$scratch/before"
check "threads that come are set like the others" setting hyperthreads=on governor=performance frequency=1.5GHz idle-states=POLL
check "all of them" test "$(bed on 1 sh -c "cat $cpu/cpufreq/policy*/scaling_governor" | sort | uniq -c | tr -d '\n ')" = 8performance
comes_back "threads that came"
bed on 1 sh -c "echo on >$cpu/smt/control"
bed down

up intel-pstate
bed fault 1 remembers on
check "processors that come back with their settings" setting hyperthreads=off governor=performance frequency=1GHz
comes_back "with their settings"
bed fault 1 offline 3 14
setting governor=performance frequency=2GHz idle-states=C1
check "a processor that goes meanwhile is told" grep -q 'PU 3 went offline meanwhile' "$scratch/told"
restore
check "its files cannot be put back" grep -q 'could not be put back' "$scratch/words"
check "which is told of each" grep -q '^different	frequency	.*policy3/scaling_max_freq	' "$scratch/restored"
bed on 1 sh -c "echo 1 >$cpu/cpu3/online"
comes_back "the processor is there again"
bed down

# ---- Daemons, by a systemctl of ours

up virtual
bed on 1 sh -c 'mkdir -p /run/systemd/system; cat >/usr/sbin/systemctl; chmod +x /usr/sbin/systemctl
    touch /root/there-irqbalance /root/active-irqbalance /root/there-tuned /root/there-thermald /root/active-thermald' <<'END'
#!/bin/sh
echo "$*" >>/root/calls
case $1 in
is-active)
    shift
    for name; do if [ -e "/root/active-$name" ]; then echo active; else echo inactive; fi; done ;;
show)
    for name; do :; done
    if [ -e "/root/there-$name" ]; then echo LoadState=loaded; else echo LoadState=not-found; fi ;;
--no-ask-password)
    case $2 in
    stop) [ ! -e /root/stubborn ] && rm -f "/root/active-$3" ;;
    start) touch "/root/active-$3" ;;
    esac ;;
esac
END
state() { bed on 1 sh -c 'cd /root; ls -d active-* 2>/dev/null' | tr '\n' ' '; }
bed on 1 /root/agent --controls >"$scratch/told"
check "daemons are found" grep -q "^control	daemons	available	mixed: stopped (tuned), running (thermald, irqbalance)	running stopped	systemd	$" "$scratch/told"
check "stopped" setting daemons=stopped
check "none runs" test "$(state)" = ""
check "that is told" told daemons done
check "and of whom" grep -q '^daemon	irqbalance	running$' <(bed on 1 cat /root/snapshot)
comes_back "daemons"
check "those that ran run again, and no other" test "$(state)" = "active-irqbalance active-thermald "
check "again" setting daemons=running
check "all that are there run" test "$(state)" = "active-irqbalance active-thermald active-tuned "
comes_back "daemons that were started"
check "the one that did not run does not" test "$(state)" = "active-irqbalance active-thermald "
bed on 1 touch /root/stubborn
setting daemons=stopped
check "one that does not stop is told" told daemons failed 'cannot stop thermald'
bed on 1 rm /root/stubborn
comes_back "a daemon that does not stop"
bed down

# ---- Daemons of a node without systemd: those that we started again outlive us

up virtual
bed on 1 sh -c 'cp /bin/sleep /root/irqbalance; mkdir -p /etc/init.d; cat >/etc/init.d/irqbalance; chmod +x /etc/init.d/irqbalance
    rm -rf /run/systemd; /etc/init.d/irqbalance start' <<'END'
#!/bin/sh
running() { pid=$(cat /root/pid 2>/dev/null) && kill -0 "$pid" 2>/dev/null; }
case $1 in
start) running || { setsid /root/irqbalance 1000 >/dev/null 2>&1 </dev/null & echo $! >/root/pid; } ;;
stop) running && kill "$pid"; rm -f /root/pid ;;
status) running || exit 3 ;;
esac
END
runs() { bed on 1 /etc/init.d/irqbalance status; }
stopped() { ! runs; }
if bed on 1 sh -c 'command -v service >/dev/null'; then
    check "it runs at first" runs
    check "stopped by service" setting daemons=stopped
    check "it does not run" stopped
    comes_back "a daemon of service"
    check "it runs again" runs
    on_node() { bed run timeout 60 "$ASSAY" nodes run -w node1 -- sh -c "$1"; }
    check "put back by a command of an agent" on_node '/root/agent --snapshot-controls >/dev/null && /root/agent --set-controls daemons=stopped >/dev/null && /root/agent --restore-controls >/dev/null'
    check "it runs when the agent has left" runs
    check "left to the agent" on_node '/root/agent --snapshot-controls >/dev/null && /root/agent --set-controls daemons=stopped transparent-huge-pages=never >/dev/null'
    check "it runs then, too" runs
    check "and files are as they were" is_as_before
else
    skip "daemons of service" "there is no service program"
fi
finish
