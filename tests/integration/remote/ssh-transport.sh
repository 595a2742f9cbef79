#!/bin/bash
# Transports to agents over ssh: started, brought, lost and reached again, and what is said when that does not work.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/../sshd.sh"
try=$ASSAY_BUILD/tests/integration/transport-try
agent=$ASSAY_BUILD/libexec/assay/assay-agent
[ -x "$agent" ] || plan_skip "there is no agent"
label=transport-$$
home=$scratch/there
mkdir "$home" "$home/tmp"
usual=$home/.cache/assay/agent-$(sha256sum <"$agent" | cut -c1-64)
there="SetEnv=HOME=$home XDG_CACHE_HOME= TMPDIR=$home/tmp"
put_agent() { mkdir -p "${usual%/*}"; chmod 700 "${usual%/*}"; rm -f "$usual"; cp "${1:-$agent}" "$usual"; chmod 700 "$usual"; }
agents() { "$agent" --list | awk -F '\t' -v label="$label" '$9 == label' | cut -f"${1:-1}"; }
end_agents() { for session in $(agents); do "$agent" --end "$session" >/dev/null 2>&1; done; }
cleanup() { end_agents; sshd_stop_all; }
sshd_start node "$there" || exit 1
to=$me@127.0.0.1:$port_node
run() { timeout 120 "$try" --prefix "$ASSAY_BUILD" --known-hosts "$scratch/known" --identity "$scratch/id" --label "$label" "$@" \
        2>&1 | tee "$scratch/said" >&2; return "${PIPESTATUS[0]}"; }
says() { local name=$1 pattern=$2; shift 2; "$@" 2>/dev/null; grep -qE -- "$pattern" "$scratch/said"; local status=$?
         [ $status -eq 0 ] || sed 's/^/# /' "$scratch/said"; report $status "$name"; }
hash=$(sha256sum <"$agent" | cut -c1-64)

# ---- the agent is there
put_agent
says "an agent where it normally is" "^open ~/.cache/assay/agent-$hash as-usual$" run "$to" open close
check "the order is kept" test "$(cut -d' ' -f1 "$scratch/said" | tr '\n' ' ')" = "open closed "
check "it outlives its stream" test "$(agents | wc -l)" -eq 1
check "in its folder" test -d "$home/tmp/transport-try"
end_agents
check "which goes with it" test ! -e "$home/tmp/transport-try"
says "reached again" "^open .* as-usual$" run "$to" open close renew close
check "twice open, twice closed" test "$(cut -d' ' -f1 "$scratch/said" | tr '\n' ' ')" = "open closed open closed "
end_agents
says "an agent that was ended" "^closed ECONNRESET node $to: the agent closed the connection$" \
    run "$to" open "do:$agent --end \$SESSION" lost renew
check "is not there any more" grep -q "^closed ESTALE node $to: cannot reach the agent: it ended with exit status 69: there is no agent" "$scratch/said"

# The server's process of this connection dies, as it would with the node's network. (An sshd that is not root's gives
# its connections no such process.)
if [ "$(id -u)" = 0 ]; then
    cut="do:kill -KILL \$(ps -o pid= --ppid $(cat "$scratch/node.pid"))"
    says "a stream that breaks" "^closed ECONNRESET node $to: the connection ended unexpectedly" \
        run "$to" open "do:$agent --list | grep $label | cut -f6 >$scratch/pid" "$cut" lost renew close
    check "is reached again" test "$(grep -c ^open "$scratch/said")" -eq 2
    check "the same process" test "$(agents 6)" = "$(cat "$scratch/pid")"
    end_agents
    says "freed as it is" "^open" run "$to" open free
    end_agents
    says "another name" "^closed ECONNRESET node blue: " run --node blue "$to" open "$cut" lost
    end_agents
else
    skip "a stream that breaks" "needs root"
fi

# ---- it is not there
rm -f "$usual"
says "an agent is brought" "^open $usual delivered$" run "$to" open close
end_agents
says "and found the next time" "^open ~/.cache/assay/agent-$hash as-usual$" run "$to" open close
end_agents
: >"$scratch/empty"; put_agent "$scratch/empty"; chmod 600 "$usual"
says "what cannot be executed is replaced" "^open $usual delivered, damaged: " run "$to" open close
end_agents

# ---- it is damaged, or could be anybody's: it is replaced and not run (unit-remote-agent-delivery has all the ways)
repaired() { says "$1" "^open $usual delivered, damaged: ${2:-$usual: its SHA-256 is [0-9a-f]+}$" run "$to" open close; end_agents; }
put_agent; printf U | dd of="$usual" conv=notrunc bs=1 seek="$(LC_ALL=C grep -abo 'usage: assay-agent' "$usual" | head -n 1 | cut -d: -f1)" 2>/dev/null
repaired "what runs, but for a byte"
fake() { printf '#!/bin/sh\n%s\n' "$1" >"$scratch/fake"; put_agent "$scratch/fake"; }
fake ": >$scratch/ran"; chmod 777 "${usual%/*}"
repaired "in a folder that others can write to" "${usual%/*}: others could write to it \(drwxrwxrwx\)"
check "it was not run" test ! -e "$scratch/ran"

# ---- it will not start
fake 'echo "assay-agent: the disk is full" >&2; exit 1'
refuse "it says why" 1 "^closed ECONNABORTED node $to: cannot start the agent: it ended with exit status 1: the disk is full$" run "$to" open
check "which is no reason to replace it" cmp -s "$scratch/fake" "$usual"
put_agent
starts() { sshd_start "$1" "$there" "ForceCommand=case \$SSH_ORIGINAL_COMMAND in *--attach*) echo try >>$scratch/$1.tries; $2 ;; *) eval \"\$SSH_ORIGINAL_COMMAND\" ;; esac"; }
starts killed 'kill -SEGV $$'
refuse "it is killed, and is not damaged" 1 "^closed ECONNABORTED .*cannot start the agent: it was killed by signal SEGV" run "$me@127.0.0.1:$port_killed" open
check "tried twice" test "$(wc -l <"$scratch/killed.tries")" -eq 2
starts silent 'exit 0'
refuse "it says nothing" 1 "cannot start the agent: it ended with exit status 0" run "$me@127.0.0.1:$port_silent" open
starts stranger 'echo ASSAY-AGENT ATTACHED 0123456789abcdef; exit 3'
refuse "another session is not ours" 1 "cannot start the agent: it ended with exit status 3" run "$me@127.0.0.1:$port_stranger" open
refuse "arguments of no command" 2 "refused .*'a b'" run --workspace 'a b' "$to" open

# ---- what login scripts print
sshd_start noisy "$there" 'ForceCommand=printf "welcome\nASSAY-AGENT\n"; echo warning >&2; eval "$SSH_ORIGINAL_COMMAND"'
says "is passed over" "^open .* as-usual$" run "$me@127.0.0.1:$port_noisy" open close
end_agents
sshd_start endless "$there" 'ForceCommand=yes welcome'
refuse "unless it is without end" 1 "EPROTO .*the login shell printed more than 256 KiB" run "$me@127.0.0.1:$port_endless" open

# What the login says in place of the command, and which line of it has the reason.
sshd_start nologin "$there" 'ForceCommand=echo "This account is currently not available."; exit 1'
refuse "an account without a shell: its words" 1 "the node's sh ended with exit status 1: This account is currently not available.$" run "$me@127.0.0.1:$port_nologin" open
sshd_start queued "$there" 'ForceCommand=printf "srun: job 5 queued and waiting for resources\nsrun: error: Unable to create step for job 5: Invalid account\nsrun: goodbye\n" >&2; exit 1'
refuse "of several lines, the one with the error" 1 "the node's sh ended with exit status 1: srun: error: Unable to create step for job 5: Invalid account$" \
    run "$me@127.0.0.1:$port_queued" open

# Before the agent is there, and after.
rm -f "$usual"
sshd_start loud "$there" 'ForceCommand=printf "%%250000s\n" x; eval "$SSH_ORIGINAL_COMMAND"'
says "of 250 KB too, when the agent is brought" "^open $usual delivered$" run "$me@127.0.0.1:$port_loud" open close
end_agents
# A shell that is started in place of the command waits for one on its input. The clock is moved: this takes no 2 min.
sshd_start elsewhere "$there" "ForceCommand=echo >$scratch/began; exec sh"
(move_clock; "$ASSAY" nodes run -w "$me@127.0.0.1:$port_elsewhere" -F none --known-hosts "$scratch/known" -i "$scratch/id" -- true >"$scratch/said" 2>&1) &
check "a startup file that starts another shell: the login" eventually test -s "$scratch/began"
(move_clock; advance 121s)
wait $!
check "... is given up after 2 min, with the cause" grep -q "the login shell did not run the agent's command within 120 s: a startup file such as ~/.bashrc waits, or starts another" "$scratch/said"

# ---- by a command that leads to the node, in place of libssh
by_ssh() { run --attach "ssh -F none -T -o BatchMode=yes -o UserKnownHostsFile=$scratch/known -i $scratch/id -p $port_node -l $me {host} {command}" "$@"; }
says "by ssh(1)" "^open ~/.cache/assay/agent-$hash as-usual$" by_ssh "$to" open close renew close
is "reached again" "$(cut -d' ' -f1 "$scratch/said" | tr '\n' ' ')" "open closed open closed "
end_agents
rm -f "$usual"
says "it is brought too" "^open $usual delivered$" by_ssh "$to" open close
says "by 8 at once" "^open .* as-usual$" by_ssh --copies 8 "$to" open close
is "all of them" "$(grep -c '^open' "$scratch/said")" 8
end_agents
refuse "a command that fails" 1 "^closed EPROTO node $to: cannot deliver the agent: the node's sh ended with exit status 255: .*Connection refused" \
    run --attach "ssh -F none -T -o BatchMode=yes -p 1 {host} {command}" "$to" open
refuse "a command that is not there" 1 "^closed ENOENT node $to: .*cannot start '/no/such/program': No such file or directory" \
    run --attach "/no/such/program {command}" "$to" open

# ---- logins that are refused for a moment
refuse "nobody listens" 1 "^closed ECONNREFUSED node 127.0.0.1:1: " run 127.0.0.1:1 open
perl -MIO::Socket::INET -e '$| = 1; $s = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1") or die;
    print $s->sockport, "\n"; print "connection\n" while $s->accept' >"$scratch/hangs-up" &
listener=$!
eventually test -s "$scratch/hangs-up"
refuse "somebody hangs up" 1 "^closed ECONNRESET node " run "127.0.0.1:$(head -1 "$scratch/hangs-up")" open
kill $listener
is "is tried four times more" "$(grep -c connection "$scratch/hangs-up")" 5
# Connections that say nothing take all its places, until one of ours has been refused.
sshd_start busy "$there" MaxStartups=4:100:4
holders=()
for _ in 1 2 3 4; do cat <>/dev/tcp/127.0.0.1/$port_busy >/dev/null & holders+=($!); done
{ eventually grep -q "past MaxStartups" "$scratch/busy.log"; kill "${holders[@]}"; } &
says "more at once than the server takes" "^open" run --copies 4 "$me@127.0.0.1:$port_busy" open close
check "get in, all of them" test "$(grep -c '^open' "$scratch/said")" -eq 4
check "after being refused" grep -q "past MaxStartups" "$scratch/busy.log"
end_agents
refuse "a login that is refused" 1 "^closed EACCES " run --copies 1 "stranger@127.0.0.1:$port_node" open
is "is not tried again" "$(grep -c "Invalid user stranger" "$scratch/node.log")" 1
says "twenty through a gateway" "^open" run --jump "$me@127.0.0.1:$port_busy" --copies 20 "$to" open close
check "are all open" test "$(grep -c '^open' "$scratch/said")" -eq 20
end_agents

# The gateway's end of the connection stops, as when its network is gone: a new connection to it is what helps.
sshd_start gate
stop="do:kill -STOP \$(ps -o pid= --ppid $(cat "$scratch/gate.pid"))"
noticed() { grep -q "^closed ETIMEDOUT" "$scratch/said"; }
: >"$scratch/said"
(move_clock; eventually grep -q ^open "$scratch/said"; hurry noticed) &
ASSAY_TEST_CLOCK=$scratch/clock says "a gateway that is gone is noticed" "^closed ETIMEDOUT node $to: gateway '$me@127.0.0.1:$port_gate': it stopped answering$" \
    run --timeout 60 --jump "$me@127.0.0.1:$port_gate" "$to" open "$stop" -renew renew
check "and replaced" test "$(cut -d' ' -f1 "$scratch/said" | tr '\n' ' ')" = "open closed open "
end_agents
finish
