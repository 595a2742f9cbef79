#!/bin/bash
# Bytes through ssh: whole, both ways, without more memory than is bounded, and an end that never waits.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/../sshd.sh"
try=$ASSAY_BUILD/tests/integration/ssh-try
sshd_start node || exit 1
to=127.0.0.1:$port_node
run() { timeout 120 "$try" --config none --known-hosts "$scratch/known" --identity "$scratch/id" "$@" >"$scratch/said"; }
same() { cmp "$scratch/$1" "$scratch/$2"; }

head -c 10485760 /dev/urandom >"$scratch/ten"
head -c 67108864 /dev/zero >"$scratch/large"
check "10 MB there and back" run --input "$scratch/ten" --output "$scratch/back" "$to" -- cat
check "are the same" same ten back
check "10 MB there" run --input "$scratch/ten" --output "$scratch/sum" "$to" -- sha256sum
check "have the same hash" test "$(cut -c1-64 "$scratch/sum")" = "$(sha256sum <"$scratch/ten" | cut -c1-64)"
check "10 MB back on standard error" run --input "$scratch/ten" --error "$scratch/back" --output "$scratch/none" "$to" -- 'cat >&2'
check "are the same too" same ten back
check "and nothing on standard output" test ! -s "$scratch/none"
check "both at once" run --input "$scratch/ten" --output "$scratch/back" --error "$scratch/other" "$to" -- "tee /dev/stderr"
check "standard output is whole" same ten back
check "standard error is whole" same ten other
check "eight at once" run --copies 8 --input "$scratch/ten" --output "$scratch/back" "$to" -- cat
check "all ended" test "$(grep -c ' exit 0$' "$scratch/said")" -eq 8
check "input that nobody reads" run --input "$scratch/ten" "$to" -- 'exit 7'
check "does not hide the status" grep -q ' exit 7$' "$scratch/said"
check "no output, no input" run --output "$scratch/back" "$to" -- true
check "is empty" test ! -s "$scratch/back"
check "a command that goes on alone does not keep us" run "$to" -- 'sleep 100 >/dev/null 2>&1 </dev/null & exit 4'
check "and has its status" grep -q ' exit 4$' "$scratch/said"

# ---- what breaks
run "$to" -- 'kill -KILL $PPID; sleep 1'
check "a server that dies is told" grep -qE '^failed .* ECONNRESET .*the connection ended unexpectedly' "$scratch/said"

# The server stops while we have much to say: everything that can be full is full, and we go all the same.
# With a time limit of an hour, whoever waited for the server would not come back.
run --timeout 3600 --give-up 1.5 --input "$scratch/large" "$to" -- 'kill -STOP $PPID; cat >/dev/null'
check "a connection that is stuck is given up" test $? -eq 3
pgrep -P "$(cat "$scratch/node.pid")" | xargs -r kill -CONT 2>/dev/null

run --copies 64 "$to" -- true
check "64 at once come" test "$(grep -c ' exit 0$' "$scratch/said")" -eq 64
finish
