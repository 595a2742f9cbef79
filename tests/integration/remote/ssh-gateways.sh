#!/bin/bash
# Nodes behind gateways: one login each gateway, whole bytes through several of them, and failures with their names.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/../sshd.sh"
try=$ASSAY_BUILD/tests/integration/ssh-try
export HOME=$scratch/home
mkdir -m 700 "$HOME"
run() { timeout 120 "$try" --config none --known-hosts "$scratch/known" --identity "$scratch/id" "$@" 2>&1 | tee "$scratch/said" >&2
        return "${PIPESTATUS[0]}"; }
says() { local name=$1 pattern=$2; shift 2; "$@" 2>/dev/null; grep -qE -- "$pattern" "$scratch/said"; local status=$?
         [ $status -eq 0 ] || sed 's/^/# /' "$scratch/said"; report $status "$name"; }
logins() { grep -c "Accepted publickey" "$scratch/$1.log"; }

sshd_start node && sshd_start first MaxStartups=10:30:20 && sshd_start second && sshd_start closed AllowTcpForwarding=no || exit 1
node=127.0.0.1:$port_node first=$me@127.0.0.1:$port_first second=127.0.0.1:$port_second

says "one gateway" "^end $node exit 5$" run --jump "$first" "$node" -- 'exit 5'
check "was logged in to" test "$(logins first)" -eq 1
says "two gateways" "^end $node exit 6$" run --jump "$first,$second" "$node" -- 'exit 6'
check "the second is behind the first" grep -q "Accepted" "$scratch/second.log"
head -c 10485760 /dev/urandom >"$scratch/ten"
run --jump "$first,$second" --input "$scratch/ten" --output "$scratch/back" "$node" -- cat 2>/dev/null
check "10 MB through two and back" cmp "$scratch/ten" "$scratch/back"
before=$(logins first)
says "forty nodes behind one" "^end $node exit 0$" run --jump "$first" --copies 40 --measure "$node" -- true
echo "# forty behind one: $(grep '^cpu' "$scratch/said")"
check "all of them" test "$(grep -c "^end $node exit 0$" "$scratch/said")" -eq 40
check "by one login" test $(($(logins first) - before)) -eq 1
says "ten at once, 10 MB each way" "^end $node exit 0$" \
    run --jump "$first" --copies 10 --input "$scratch/ten" --output "$scratch/back" "$node" -- cat
check "all of those" test "$(grep -c "^end $node exit 0$" "$scratch/said")" -eq 10
check "the last is whole" cmp "$scratch/ten" "$scratch/back"
says "a window of one" "^end $node exit 0$" run --window 1 --jump "$first,$second" --copies 3 "$node" -- true
says "the gateway as a node" "^end 127.0.0.1:$port_node exit 0$" run --jump "$node" "$node" -- true

cat >"$scratch/config" <<END
Host *
    ProxyJump gate
    UserKnownHostsFile $scratch/known
    IdentityFile $scratch/id
Host gate
    HostName 127.0.0.1
    Port $port_first
Host inner
    HostName 127.0.0.1
    Port $port_node
END
configured() { timeout 60 "$try" --config "$scratch/config" "$@" 2>&1 | tee "$scratch/said" >&2; return "${PIPESTATUS[0]}"; }
before=$(logins first)
says "by the configuration" "^end inner exit 0$" configured inner gate -- true
says "the gateway itself too" "^end gate exit 0$" :
check "by two logins: one as gateway, one as node" test $(($(logins first) - before)) -eq 2
says "none of it" "^end inner exit 0$" configured --jump none inner -- true
printf 'Host a\n ProxyJump b\nHost b\n ProxyJump a\nHost c\n ProxyJump a\n' >"$scratch/circle"
refuse "a circle" 2 "node c: .*more than 8 gateways lead to '[ab]'" run --config "$scratch/circle" c -- true

# ---- what fails, fails by name
refuse "a gateway that is not there" 1 "ECONNREFUSED node $node: gateway '127.0.0.1:1': cannot connect to 127.0.0.1 port 1" \
    run --jump 127.0.0.1:1 "$node" -- true
says "is told to all" "^2$" bash -c "timeout 60 '$try' --config none --known-hosts '$scratch/known' --identity '$scratch/id' \
    --jump 127.0.0.1:1 '$node' 'x@$node' -- true | grep -c \"gateway '127.0.0.1:1'\" >'$scratch/said'"
refuse "a node that is not there" 1 "ECONNREFUSED node 127.0.0.1:1: gateway '$first': cannot connect to '127.0.0.1' port 1: Connection refused" \
    run --jump "$first" 127.0.0.1:1 -- true
refuse "a gateway that forwards nothing" 1 "EACCES node $node: gateway '127.0.0.1:$port_closed': it does not allow connections to '127.0.0.1' port $port_node: open failed" \
    run --jump "127.0.0.1:$port_closed" "$node" -- true
refuse "a gateway that does not know us" 1 "EACCES node $node: gateway 'stranger@127.0.0.1:$port_first': the login of 'stranger' was refused" \
    run --jump "stranger@127.0.0.1:$port_first" "$node" -- true
refuse "a gateway that is not known" 1 "EKEYREJECTED node $node: gateway '$first': its host key is not known" \
    run --known-hosts /dev/null --jump "$first" "$node" -- true
refuse "a bad gateway" 2 "gateways '-x': '-x' is not a destination" run --jump=-x "$node" -- true
kill -STOP "$(cat "$scratch/second.pid")"
refuse "a gateway that says nothing" 1 "ETIMEDOUT node $node: gateway '$second': the server accepted the connection and sent nothing" \
    run --timeout 2 --jump "$second" "$node" -- true
refuse "a node that says nothing" 1 "ETIMEDOUT node $second: the server accepted the connection and sent nothing" \
    run --timeout 5 --jump "$first" "$second" -- true
kill -CONT "$(cat "$scratch/second.pid")"
five() { cat "$scratch/running"; test "$(wc -l <"$scratch/running")" -eq 5; }
{ eventually five; sshd_stop first; } &
run --jump "$first" --copies 5 "$node" -- "echo x >>'$scratch/running'; exec sleep 120" 2>/dev/null
check "a gateway that dies" test "$(grep -cE "^failed $node ECONNRESET node $node: gateway '$first': the connection ended unexpectedly" "$scratch/said")" -eq 5
wait
finish
