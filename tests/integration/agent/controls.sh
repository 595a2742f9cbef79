#!/bin/bash
# Controls that change along with others, hardware threads that come and go, and daemons, on nodes whose files answer as a
# kernel's do (controls-faults.sh has what these refuse). Everything comes back, to the byte.
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
    bed_first 1 --machine "$1"
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

# ---- What comes along with something else

up intel-pstate
bed fault 1 resets-turbo on
check "a governor that resets turbo: turbo is off in the end" setting turbo=off governor=performance
check "and is told so" told turbo done
comes_back "governor and turbo"
bed on 1 sh -c "echo 1 >$cpu/intel_pstate/no_turbo"
bed files 1 >"$scratch/before"
check "a governor alone" setting governor=performance
check "does not switch turbo on" test "$(bed on 1 cat $cpu/intel_pstate/no_turbo)" = 1
comes_back "governor alone"
# Limits that were kept without turbo show its cap, 2.1 GHz; the user's come back with turbo.
with_turbo() { bed on 1 sh -c "echo 0 >$cpu/intel_pstate/no_turbo; cat $cpu/cpufreq/policy[0-2]/scaling_max_freq; echo 1 >$cpu/intel_pstate/no_turbo" | tr '\n' ' '; }
bed on 1 sh -c "echo 1800000 >$cpu/cpufreq/policy1/scaling_max_freq"
bed files 1 >"$scratch/before"
for wishes in frequency=1.5GHz "turbo=on frequency=3GHz" "frequency=2.1GHz" hyperthreads=off; do
    check "$wishes where turbo was off" setting $wishes
    comes_back "$wishes where turbo was off"
    check "with turbo the limits are those from before" test "$(with_turbo)" = "3500000 1800000 3500000 "
done
bed on 1 sh -c "echo 3500000 >$cpu/cpufreq/policy1/scaling_max_freq"
bed fault 1 none
bed on 1 sh -c "echo 0 >$cpu/intel_pstate/no_turbo"

bed on 1 sh -c "echo off >$cpu/smt/control"
bed files 1 >"$scratch/before"
check "threads that come are set like the others" setting hyperthreads=on governor=performance frequency=1.5GHz idle-states=POLL
check "all of them" test "$(bed on 1 sh -c "cat $cpu/cpufreq/policy*/scaling_governor" | sort | uniq -c | tr -d '\n ')" = 8performance
comes_back "threads that came"
bed on 1 sh -c "echo on >$cpu/smt/control"
# Threads that were taken offline one by one, which the switch of all does not tell.
value() { bed on 1 /root/agent --controls | awk -F'\t' '$2 == "hyperthreads" { print $4 }'; }
bed on 1 sh -c "echo 0 >$cpu/cpu5/online"
check "a thread that is offline alone is told" test "$(value)" = "mixed: on (0,2-4,6-7), off (1)"
bed on 1 sh -c "for pu in 4 6 7; do echo 0 >$cpu/cpu\$pu/online; done"
bed files 1 >"$scratch/before"
check "none is on, although the switch is" test "$(value)" = off
check "they are brought back one by one" setting hyperthreads=on
check "all are there" test "$(value) $(bed on 1 cat $cpu/online)" = "on 0-7"
check "that is told" told hyperthreads done
comes_back "threads that were offline one by one"
bed on 1 sh -c "for pu in 4 5 6 7; do echo 1 >$cpu/cpu\$pu/online; done; for pu in 2 6; do echo 0 >$cpu/cpu\$pu/online; done"
bed files 1 >"$scratch/before"
check "a whole core that is offline is no thread that is missing" test "$(value)" = on
check "and stays so" setting hyperthreads=on
check "as it was" is_as_before
restore
bed on 1 sh -c "for pu in 2 6; do echo 1 >$cpu/cpu\$pu/online; done"
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
show)
    until [ ! -e /root/hangs ]; do sleep 0.05; done
    [ -e /root/deaf ] && { echo 'Failed to connect to bus' >&2; exit 1; }
    echo 'Warning: LoadState=not-found of something else' >&2
    for name; do :; done
    if [ -e "/root/there-$name" ]; then echo LoadState=loaded; else echo LoadState=not-found; fi
    if [ -e "/root/active-$name" ]; then echo ActiveState=active; else echo ActiveState=inactive; fi ;;
--no-ask-password)
    case $2 in
    stop) [ -e /root/slow ] && { : >/root/began; until [ -e /root/go-on ]; do sleep 0.05; done; }; [ ! -e /root/stubborn ] && rm -f "/root/active-$3" ;;
    start)
        touch "/root/active-$3"
        [ -e /root/late ] && [ "$3" = irqbalance ] && rm /root/late /root/active-thermald ;;
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
# The manager does not answer when the snapshot is made, and does when it is set.
bed on 1 sh -c 'cat >/root/set-late && touch /root/deaf' <<'END'
/root/agent --snapshot-controls >/root/snapshot || exit 3
rm -f /root/deaf
/root/agent --set-controls daemons=stopped
END
bed on 1 timeout 60 sh /root/set-late >"$scratch/told"
check "a daemon that could not be asked is told" told daemons failed 'thermald is left as it is: systemd did not say whether it ran before'
check "it is kept as unknown" grep -q '^daemon	thermald	unknown$' <(bed on 1 cat /root/snapshot)
check "it still runs" test "$(state)" = "active-irqbalance active-thermald "
comes_back "a manager that did not answer"
bed on 1 touch /root/deaf
setting daemons=stopped
check "a manager that does not answer at all is no daemon that is absent" told daemons failed 'cannot ask systemd whether tuned runs'
bed on 1 rm /root/deaf
restore
# One that has come since is nobody's to stop.
bed on 1 sh -c 'sed "s/rm -f .*/touch \/root\/there-power-profiles-daemon \/root\/active-power-profiles-daemon/" /root/set-late >/root/set-new'
bed on 1 timeout 60 sh /root/set-new >"$scratch/told"
check "a daemon that has come since is told" told daemons failed 'power-profiles-daemon is left as it is: it did not exist'
check "and runs on" test "$(state)" = "active-power-profiles-daemon "
bed on 1 rm /root/there-power-profiles-daemon /root/active-power-profiles-daemon
comes_back "a daemon that has come since"
# The tool is killed, with its group, while the manager's program stops one.
bed on 1 sh -c 'cat >/root/set-killed && touch /root/slow' <<'END'
/root/agent --snapshot-controls >/root/snapshot || exit 3
setsid /root/agent --set-controls daemons=stopped >/dev/null &
until [ -e /root/began ]; do sleep 0.05; done
kill -KILL -$!
wait
rm /root/slow
touch /root/go-on
/root/agent --restore-controls >/dev/null || exit 4
END
check "a tool that is killed with its group" bed on 1 timeout 60 sh /root/set-killed
check "had begun to stop one" bed on 1 test -e /root/began
no_systemctl() { ! bed on 1 sh -c 'cat /proc/[0-9]*/cmdline' | tr '\0' ' ' | grep /usr/sbin/systemctl; }
eventually no_systemctl
check "stops none after all was put back" test "$(state)" = "active-irqbalance active-thermald "
# The manager itself is late: it stops one while the others are started.
bed on 1 sh -c 'cat >/root/set-late && touch /root/late' <<'END'
/root/agent --snapshot-controls >/root/snapshot || exit 3
/root/agent --set-controls daemons=stopped >/dev/null
touch /root/late
/root/agent --restore-controls
END
check "a daemon that is stopped once more meanwhile" bed on 1 timeout 60 sh /root/set-late
check "was" bed on 1 test ! -e /root/late
check "is started again" test "$(state)" = "active-irqbalance active-thermald "
check "nothing stays behind" bed on 1 sh -c '! test -e /run/assay'
# An agent that is gone.
on_node() { bed run timeout 60 "$ASSAY" nodes run -w node1 -- sh -c "$1"; }
check "left to the agent" on_node '/root/agent --snapshot-controls >/dev/null && /root/agent --set-controls daemons=stopped transparent-huge-pages=never >/dev/null'
check "what ran runs when it has left" test "$(state)" = "active-irqbalance active-thermald "
bed on 1 sh -c "/root/agent --snapshot-controls >/dev/null && /root/agent --set-controls daemons=stopped >/dev/null"
bed run timeout 60 "$ASSAY" nodes show -w node1 >"$scratch/told" 2>&1
check "the next agent starts what one that is gone has left stopped" test "$(state)" = "active-irqbalance active-thermald "
check "and says so" grep -q 'put back 0 files and 2 daemons that an earlier agent' "$scratch/told"
check "and files are as they were" is_as_before
# The manager hangs: the agent serves all the same, and says what is left.
bed on 1 sh -c "/root/agent --snapshot-controls >/dev/null && /root/agent --set-controls daemons=stopped >/dev/null && touch /root/hangs"
bed run timeout 200 "$ASSAY" nodes run -w node1 -- true >"$scratch/told" 2>&1
check "a manager that hangs keeps no agent from serving" grep -q '^node1: exit 0,' "$scratch/told"
bed on 1 rm /root/hangs
bed run timeout 200 "$ASSAY" nodes show -w node1 >"$scratch/told" 2>&1
check "and the next one starts what is left stopped" test "$(state)" = "active-irqbalance active-thermald "
bed on 1 rm -rf /run/systemd
bed on 1 /root/agent --controls >"$scratch/told"
check "without systemd there are none" grep -q "^control	daemons	absent	.*there is no systemd" "$scratch/told"
bed down
finish
