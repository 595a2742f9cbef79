#!/bin/bash
# assay nodes run: one command on sixteen nodes, its answers, and what becomes of it when something goes wrong.
# shellcheck disable=SC2016 # the dollars are for the nodes
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
move_clock
bed_first 16 --names 'dahu-%.grenoble'
all='dahu-[1-16].grenoble'

nodes() { bed run "$ASSAY" nodes "$@"; }
run() { nodes run "$@"; }
# Runs, and compares exit code and standard output, durations taken out.
prints() { # prints CODE EXPECTED WORDS...
    local code=$1 expected=$2; shift 2
    run "$@" >"$scratch/out" 2>"$scratch/err"
    local got=$?
    sed -E 's/, [0-9.e+-]+( to [0-9.e+-]+)? s$/, TIME/' "$scratch/out" >"$scratch/plain"
    printf '%s' "$expected" | diff - "$scratch/plain" >"$scratch/diff" && [ $got -eq "$code" ] && return
    echo "exit $got, expected $code"; cat "$scratch/diff" "$scratch/err"; return 1
} >&2
last_error() { grep -qE -- "$1" "$scratch/err"; } # of prints

# ---- answers

check "equal answers are printed once" prints 0 "\
dahu-[1-16].grenoble (16 nodes): exit 0, TIME
hello
" -w "$all" -- echo hello
check "words are arguments, never shell text" prints 0 "\
dahu-[1-16].grenoble (16 nodes): exit 0, TIME
a b|\$HOME|it's|*|;|
" -w "$all" -- printf '%s|' 'a b' '$HOME' "it's" '*' ';'
check "options of the command are its own" prints 0 "\
dahu-1.grenoble: exit 0, TIME
-w
" -w dahu-1.grenoble -- printf '%s\n' -w
ASSAY_NODES='dahu-[2-3].grenoble' check "the list may come from the environment" prints 0 "\
dahu-[2-3].grenoble (2 nodes): exit 0, TIME
x
" -- echo x
printf 'dahu-[4,5].grenoble # two\n# none\ndahu-6.grenoble\n' >"$scratch/hosts"
check "or from a file, and several lists count" prints 0 "\
dahu-[2,4-6].grenoble (4 nodes): exit 0, TIME
x
" -w "@$scratch/hosts" -w dahu-2.grenoble -- echo x
check "nodes that answer otherwise are apart, those that fail come last" prints 3 "\
dahu-[1,4-16].grenoble (14 nodes): exit 0, TIME
as all
dahu-2.grenoble: exit 0, TIME
other
dahu-3.grenoble: exit 7, TIME
as all
dahu-3.grenoble, stderr:
broken
" -w "$all" -- sh -c 'case $(hostname) in dahu-2.*) echo other; exit;; esac; echo as all
    case $(hostname) in dahu-3.*) echo broken >&2; exit 7;; esac'
check "and the failure names them" last_error \
    '^assay: 1 of 16 nodes failed: dahu-3\.grenoble: exited with status 7: broken$'
check "a signal is told" prints 3 "\
dahu-[1-2].grenoble (2 nodes): signal 9, TIME
" -w 'dahu-[1-2].grenoble' -- sh -c 'kill -9 $$'
check "--apart prints each" prints 0 "\
dahu-1.grenoble: exit 0, TIME
x
dahu-2.grenoble: exit 0, TIME
x
" --apart -w 'dahu-[1-2].grenoble' -- echo x
check "--quiet prints what failed only" prints 3 "\
dahu-2.grenoble: exit 1, TIME
no
" --quiet -w 'dahu-[1-3].grenoble' -- sh -c 'case $(hostname) in dahu-2.*) echo no; exit 1;; esac; echo yes'
check "nothing in an answer steers the terminal" prints 0 "\
dahu-1.grenoble: exit 0, TIME
\\x1b[2J\\x07a\\x00b\\xff
" -w dahu-1.grenoble -- printf '\033[2J\007a\000b\377'
check "a program that is not there is no lost connection" prints 3 "\
dahu-[1-2].grenoble (2 nodes): cannot run '/no/such/program' in folder '.': No such file or directory (or the interpreter that it names is missing)
" -w 'dahu-[1-2].grenoble' -- /no/such/program

# ---- options

check "variables, input and a limit reach all" prints 0 "\
dahu-[1-16].grenoble (16 nodes): exit 0, TIME
one two
6
" -w "$all" --env A=one -e 'B=two' --input <(printf 'input!') -- sh -c 'echo $A $B; wc -c'
run -w "$all" -o "$scratch/all" -- sh -c 'echo few; seq 100000 >&2' >"$scratch/out"
check "-o writes all of each stream" sh -c "seq 100000 | cmp - '$scratch/all/dahu-16.grenoble.err' &&
    echo few | cmp - '$scratch/all/dahu-1.grenoble.out' && [ \$(ls '$scratch/all' | wc -l) -eq 32 ]"
check "what is not shown is counted" grep -q '^\[\.\.\. 523359 of 588895 bytes are not shown\]$' "$scratch/out"
run -w "$all" -o "$scratch/cut" --limit 1000B -- seq 100000 >"$scratch/out"
check "--limit keeps the rest on the nodes" sh -c "seq 100000 | head -c 1000 | cmp - '$scratch/cut/dahu-9.grenoble.out' &&
    grep -q '587895 of 588895 bytes are not shown; the limit let 1000 pass' '$scratch/out'"
check "--time-limit ends what takes longer" prints 3 "\
dahu-[1-2].grenoble (2 nodes): time limit, signal 15, TIME
" -w 'dahu-[1-2].grenoble' --time-limit 300ms -- sleep 60
run -w "$all" --repeat 20 -- true >"$scratch/out"
check "--repeat tells how long it took" grep -qE \
    '^connected 16 of 16 nodes in [0-9.]+ s; 20 rounds: median [0-9.]+ s, least [0-9.]+ s, most [0-9.]+ s$' "$scratch/out"
run -w "$all" --json -- sh -c 'printf "\377x"; exit 4' >"$scratch/json" 2>"$scratch/err"
code=$?
check "--json is one object a node and a summary, exit code 3" sh -c "[ $code -eq 3 ] &&
    [ \$(jq -r 'select(.node) | [.outcome, .exit, .stdout.bytes, .stdout.kept] | @tsv' '$scratch/json' |
        grep -c '^done	4	2	.x\$') -eq 16 ] &&
    [ \"\$(jq -c 'select(.summary) | .summary | [.nodes, .there, .good, .rounds]' '$scratch/json')\" = '[16,16,false,1]' ] &&
    [ \$(jq -r .stdout.sha256 '$scratch/json' | grep -c \$(printf '\377x' | sha256sum | cut -d' ' -f1)) -eq 16 ]"

# ---- what is wrong

refuse "no nodes" 2 'no nodes are given; expected -w LIST' run -- true
refuse "no command" 2 "has 0 operands; expected -- and a command" run -w dahu-1.grenoble
refuse "a list that is none" 2 'assay: --nodes: .*' run -w 'dahu-[1-' -- true
refuse "a file of nodes that is not there" 2 'nowhere' run -w "@$scratch/nowhere" -- true
refuse "the same name twice" 2 "two nodes would be called 'dahu-1.grenoble'" run -w 'dahu-1.grenoble,root@dahu-1.grenoble' -- true
refuse "a time that is none" 2 "--time-limit 'soon' is not a time" run -w dahu-1.grenoble --time-limit soon -- true
refuse "a number that is none" 2 "--repeat '0' is not a whole number from 1" run -w dahu-1.grenoble --repeat 0 -- true
refuse "a variable that is none" 2 "--env 'A' is not NAME=VALUE" run -w dahu-1.grenoble --env A -- true
refuse "an option of another action" 2 "'assay nodes run' has no option '--force'" run -w dahu-1.grenoble --force -- true
refuse "an action that is none" 2 "'assay nodes' has no action 'rum'; did you mean 'run'" nodes rum -w dahu-1.grenoble
refuse "a kind of agent that is none" 2 "--agent 'java' is not 'auto', 'binary' or 'source'" run -w dahu-1.grenoble --agent java -- true
refuse "an output folder that cannot be" 2 "cannot make folder '/dev/null/x'" run -w dahu-1.grenoble -o /dev/null/x -- true

bed refuse-logins 5-6
bed cut 7
(for node in $(seq 4) $(seq 8 16); do eventually bed on $node pgrep agent; done
    hurry_beside 'dahu-1.grenoble dahu-16.grenoble' test -e "$scratch/ended") &
check "nodes that cannot be reached keep no other from answering" prints 1 "\
dahu-[1-4,8-16].grenoble (13 nodes): exit 0, TIME
x
" -w "$all" --timeout 20s -- echo x
touch "$scratch/ended"
check "and are named, folded" last_error '^assay: 3 of 16 nodes failed: dahu-\[5-6\]\.grenoble: .*; dahu-7\.grenoble: '
check "a command that failed somewhere counts more" while_hurrying dahu-4.grenoble prints 3 "\
dahu-4.grenoble: exit 1, TIME
" -w 'dahu-[4-5].grenoble' --timeout 1h -- false
refuse "none at all" 1 '^assay: 2 of 2 nodes cannot be reached: dahu-\[5-6\].grenoble: ' while_hurrying '' run --timeout 1h -w 'dahu-[5-6].grenoble' -- true
refuse "one alone" 1 '^assay: node dahu-5.grenoble: ' while_hurrying '' run --timeout 1h -w dahu-5.grenoble -- true
bed accept-logins 5-6
bed mend 7
eventually is_reachable dahu-7.grenoble

# A wire that is cut for a while in mid-command is none of its business.
(for node in 2 3; do eventually bed on $node test -e /tmp/before; done
    bed cut 2-3
    for node in 2 3; do bed on $node touch /tmp/go; eventually bed on $node test -e /tmp/after; done
    bed mend 2-3) &
for node in 1 $(seq 4 16); do bed on $node touch /tmp/go; done
check "a broken wire is survived" prints 0 "\
dahu-[1-16].grenoble (16 nodes): exit 0, TIME
before
after
" -w "$all" -- sh -c 'echo before; touch /tmp/before; until [ -e /tmp/go ]; do sleep 0.05; done; echo after; touch /tmp/after'
wait

# ---- nothing stays

left_behind() { # agents, and run directories; of which there are none
    local node
    for node in $(seq 16); do
        bed on "$node" sh -c 'ls -d /tmp/assay-* /var/tmp/assay-* 2>/dev/null; pgrep -f "[a]gent-"' | grep . && return 0
    done
    return 1
}
nothing_left_behind() { ! left_behind >&2; }
check "nothing is left behind" nothing_left_behind
mkdir "$scratch/came"
bed run bash -c 'exec "$0" nodes run -w "$1" -o "$2" -- sh -c "echo begun; exec sleep 1000"' "$ASSAY" "$all" "$scratch/came" >"$scratch/out" 2>"$scratch/err" &
started=$!
for node in $(seq 16); do eventually bed on $node pgrep -x sleep; done
engine=$(pgrep -o -f "^$ASSAY nodes run -w dahu-.* sleep 1000")
kill -INT "$engine"
wait $started
check "Ctrl-C exits with 4" [ $? -eq 4 ]
check "and ends the commands" grep -q interrupted "$scratch/err"
check "and shows what had come" sh -c "grep -q '16 nodes.*interrupted' '$scratch/out' && grep -qx begun '$scratch/out'"
check "in files too" sh -c "cat '$scratch/came/'*.out | grep -cx begun | grep -qx 16"
check "and leaves nothing behind" nothing_left_behind
# The reader of the answers has gone: nobody waits for the command's end.
run -w "$all" -- sleep 1000 2>"$scratch/err" | true
check "a reader that has gone ends the command" [ "${PIPESTATUS[0]}" -ne 0 ]
check "and leaves nothing behind" nothing_left_behind
finish
