#!/bin/bash
# assay nodes controls, restore and capture: what can be set on nodes, what an agent that was killed has left and how it is
# put back, and nodes as files.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
move_clock
bed_first 5 --machine intel-pstate --names 'paradoxe-%'
bed can kernel-files || plan_skip "no FUSE here"
all='paradoxe-[1-5]'
cpu=/sys/devices/system/cpu
nodes() { # keeps what it prints for `said`
    bed run "$ASSAY" nodes "$@" >"$scratch/out"
}
said() { grep -qE -- "$1" "$scratch/out"; }
times() { [ "$(grep -cE -- "$2" "$scratch/out")" -eq "$1" ]; } # times COUNT PATTERN
json() { [ "$(jq -c "$1" "$scratch/out")" = "$2" ]; }
turbo_is_off() { [ "$(bed on "$1" cat $cpu/intel_pstate/no_turbo)" = 1 ]; }

# ---- what can be set

check "lists controls" nodes controls -w "$all"
sed 's/^/# /' "$scratch/out"
check "of all nodes" said '^nodes +paradoxe-\[1-5\]   \(5\)$'
check "the driver and its frequencies" said '^cpu driver +intel_pstate, base 2.1 GHz, at most 3.5 GHz$'
check "nobody holds them" said '^held by +nobody$'
check "what is equal once, with what it may be" said '^turbo +on +intel_pstate +on off$'
check "each control once" times 11 '^(turbo|hyperthreads|governor|frequency|energy-preference|idle-states|uncore-frequency|numa-balancing|transparent-huge-pages|daemons|aslr)  '
check "why one cannot be set" said '^aslr +[0-2] +- +read-only: [a-z]'
check "no probes unless they are asked for" times 0 '^(probe|load) '
check "nothing was written for it" [ -z "$(bed writes 1)$(bed writes 5)" ]
bed on 4 sh -c "echo performance >$cpu/cpufreq/policy0/scaling_governor"
bed set 3 $cpu/cpufreq/policy0/scaling_driver "$(printf 'x\033[31m\302\233y')"
check "who differs" nodes controls -w "$all"
check "... what most have first" said '^governor +powersave +intel_pstate .*   paradoxe-\[1-2,5\]$'
check "... then the others by name" said '^ +mixed: performance \([0-9,-]+\), powersave \([0-9,-]+\) .*   paradoxe-4$'
check "... and nothing of it reaches the terminal" said '^ +powersave +x\\x1b\[31m.*   paradoxe-3$'
check "... in whatever place" times 0 $'\033'
bed on 4 sh -c "echo powersave >$cpu/cpufreq/policy0/scaling_governor"
bed unset 3 $cpu/cpufreq/policy0/scaling_driver

check "lists probes too" nodes controls -w "$all" --probes
check "... columns and where they come from" said '^load +load-1min busy .*\(/proc/loadavg'
check "... and why one is missing" said '^power +missing: no '
check "tells JSON" nodes controls -w "$all" --json --probes
check "... a list of nodes" json '[.nodes[] | .known, .driver, .base_hertz, .held] | unique' '[null,true,2100000000,"intel_pstate"]'
check "... with controls" json '.nodes[4].controls[] | select(.name == "turbo") | del(.why)' \
    '{"name":"turbo","status":"available","value":"on","possible":["on","off"],"driver":"intel_pstate"}'
check "... that say why not" json '.nodes[0].controls[] | select(.name == "aslr") | [.status, (.why | length > 9)]' '["read-only",true]'
check "... and probes" json '[.nodes[0].probes[] | select(.name == "memory" or .name == "power") | keys]' \
    '[["missing","name"],["columns","name","source"]]'
bed refuse-logins 2
refuse "one that cannot be reached is named" 1 'looking failed on 1 of 5 nodes: paradoxe-2: ' while_hurrying 'paradoxe-1 paradoxe-5' nodes controls --timeout 1h -w "$all" --probes
check "... the others are shown" said '^turbo +on +intel_pstate +on off$'
refuse "... in JSON" 1 'paradoxe-2: ' while_hurrying 'paradoxe-1 paradoxe-5' nodes controls --timeout 1h -w "$all" --json
check "... it has a reason" json '.nodes[1] | [.known, (.failure | length > 9), .controls]' '[false,true,null]'
refuse "restore names it" 1 'restoring failed on 1 of 5 nodes: paradoxe-2: ' while_hurrying 'paradoxe-1 paradoxe-5' nodes restore --timeout 1h -w "$all"
check "... and tells of the others" said '^paradoxe-\[1,3-5\]: nothing to do: no control was changed: this node has no snapshot$'
bed accept-logins 2

# ---- what is left over

hold() { # hold LIST NODE...: an agent on each sets controls as a run would, and goes on
    local list=$1
    shift
    # shellcheck disable=SC2016
    bed run "$ASSAY" nodes run -w "$list" --repeat 3 -- sh -c 'case $(cat step 2>/dev/null) in
        "") echo 1 >step; exec /proc/$PPID/exe --snapshot-controls --label run:bed --session 00000000feedface ;;
        1) echo 2 >step; exec /proc/$PPID/exe --set-controls turbo=off governor=performance ;;
        *) exec sleep 1003 ;; esac' >/dev/null 2>"$scratch/held" &
    held=$!
    for node; do eventually bed on "$node" pgrep -x sleep; done
}
agents_die() { # agents_die NODE...: with their guardians, at once: who is stopped does not see the other die
    for node; do bed on "$node" sh -c 'pkill -STOP -f -- [-]-attach; pkill -9 -f -- [-]-attach'; done
    wait $held
}
hold 'paradoxe-[1-4]' 1 2 3 4
check "turbo is off on a node that a run holds" turbo_is_off 3
check "controls says who holds them" nodes controls -w "$all"
check "... by session and label, and that it is there" \
    said '^held by +session 00000000feedface \(run:bed\), whose agent is there   paradoxe-\[1-4\]$'
check "... and who not" said '^ +nobody   paradoxe-5$'
check "... and how they stand" said '^turbo +off +intel_pstate +on off   paradoxe-\[1-4\]$'
nodes controls -w paradoxe-3 --json
check "... in JSON too, with since when" json '.nodes[0].held | [.by, .alive, (.since | startswith("20"))]' \
    '["session 00000000feedface (run:bed)",true,true]'
refuse "restore leaves alone what is held, and fails" 1 \
    'restoring failed on 4 of 5 nodes: paradoxe-\[1-4\]: held by session 00000000feedface \(run:bed\), whose agent is there' nodes restore -w "$all"
check "... and says so" said '^paradoxe-\[1-4\]: left alone: held by session 00000000feedface \(run:bed\), whose agent is there; --force '
check "... nothing is changed by it" turbo_is_off 1
check "so does --dry-run" nodes restore -w "$all" --dry-run --force
check "... " said '^paradoxe-\[1-4\]: held by '
check "--force takes it back" nodes restore -w paradoxe-1 --force
check "... and says of whom, and how many files" \
    said '^paradoxe-1: put back what session 00000000feedface \(run:bed\) had changed: [1-9][0-9]* files written$'
check "... which is so" [ "$(bed on 1 cat $cpu/intel_pstate/no_turbo $cpu/cpufreq/policy5/scaling_governor | xargs)" = "0 powersave" ]

agents_die 1 2 3 4
check "agents that are killed leave it" turbo_is_off 3
check "looking puts nothing back" nodes controls -w "$all"
check "... and says that they are gone" said 'whose agent is gone: .assay nodes restore. puts them back   paradoxe-\[2-4\]$'
check "nor does a dry run" nodes restore -w "$all" --dry-run
check "... which names what is left" said '^paradoxe-\[2-4\]: left changed by session 00000000feedface \(run:bed\), whose agent is gone$'
check "... and where nothing is" said '^paradoxe-\[1,5\]: nothing to restore: no control is set by anyone$'
check "... nor a dry run in JSON" nodes restore -w "$all" --dry-run --json
check "... for programs" json '[.nodes[].outcome]' '["nothing","left over","left over","left over","nothing"]'
check "it was so" turbo_is_off 2

bed fault 3 stuck $cpu/intel_pstate/no_turbo
refuse "what does not go back is a failure" 1 \
    "restoring failed on 1 of 2 nodes: paradoxe-3: [1-9][0-9]* files? could not be put back: .*turbo: $cpu/intel_pstate/no_turbo: expected '0.*', found '1" \
    nodes restore -w 'paradoxe-[2-3]'
check "... the other is as it was" [ "$(bed on 2 cat $cpu/intel_pstate/no_turbo $cpu/cpufreq/policy5/scaling_governor | xargs)" = "0 powersave" ]
refuse "... tried again" 1 'could not be put back' nodes restore -w 'paradoxe-3' --json
check "... for programs" json '.nodes[0] | [.outcome, .files_different > 0, (.different[] | select(.path == "'$cpu'/intel_pstate/no_turbo") | .control)]' \
    '["different",true,"turbo"]'
bed fault 3 none
check "... and once it does" nodes restore -w 'paradoxe-[2-3]' --json
check "... it is" json '[.nodes[] | .outcome, .of]' '["nothing",null,"restored","session 00000000feedface (run:bed)"]'
check "... indeed" [ "$(bed on 3 cat $cpu/intel_pstate/no_turbo)" = 0 ]
check "then nothing is left" nodes restore -w 'paradoxe-[1-3]'
check "... of which it says why" said '^paradoxe-\[1-3\]: nothing to do: no control was changed: this node has no snapshot$'

check "another action puts it back unasked" nodes show -w paradoxe-4
sed 's/^/# /' "$scratch/out"
check "... and says so" said '^paradoxe-4: put back [1-9][0-9]* files that an earlier agent \(session 00000000feedface, label run:bed\) had left changed$'
check "... it has" [ "$(bed on 4 cat $cpu/intel_pstate/no_turbo)" = 0 ]

hold 'paradoxe-5' 5
agents_die 5
bed reboot 5
eventually is_reachable paradoxe-5
check "after a restart there is nothing to do" nodes restore -w paradoxe-5
check "... which is said" said '^paradoxe-5: nothing to do: '

# ---- captures

check "captures nodes" nodes capture -w "$all" -o "$scratch/captures/all"
check "... and says how large they are" said '^paradoxe-\[?[0-9,-]+\]?: [0-9]+ bytes \('
check "... and what for" said 'assay-agent --controls --root DIR$'
check "... a file each, and nothing else" [ "$(ls -A "$scratch/captures/all" | xargs)" = "$(echo paradoxe-{1..5}.tar)" ]
mkdir "$scratch/node"
check "a capture is a tar" tar -xf "$scratch/captures/all/paradoxe-3.tar" -C "$scratch/node"
"${ASSAY%/bin/assay}/libexec/assay/assay-agent" --controls --root "$scratch/node" >"$scratch/out"
check "... which stands for the node, with its controls" said "^control	turbo	available	on	on off	intel_pstate	"
refuse "a capture needs a folder" 2 'expected -o FOLDER' nodes capture -w "$all"
bed refuse-logins 2
refuse "one that is not there is named" 1 'capturing failed on 1 of 2 nodes: paradoxe-2: ' while_hurrying paradoxe-1 nodes capture --timeout 1h -w 'paradoxe-[1-2]' -o "$scratch/captures/all"
check "... and an old capture does not pass for it" [ ! -e "$scratch/captures/all/paradoxe-2.tar" ]
check "... nor is another one's touched" [ -s "$scratch/captures/all/paradoxe-5.tar" ]
bed accept-logins 2

# ---- options

refuse "options of others" 2 "'assay nodes capture' has no option '--json'" nodes capture -w "$all" -o "$scratch/x" --json
refuse "... of each" 2 "'assay nodes restore' has no option '--probes'" nodes restore -w "$all" --probes
refuse "... are refused" 2 "'assay nodes controls' has no option '--force'" nodes controls -w "$all" --force
refuse "and so are operands" 2 "'assay nodes controls' has 1 operand; expected none" nodes controls turbo -w "$all"
check "help has them" sh -c '"$0" nodes --help | grep -q "assay nodes capture -w"' "$ASSAY"

# ---- agents that lie: theirs is a program whose tools are what the test says

mkdir -p "$scratch/liar/bin" "$scratch/liar/libexec/assay"
cp "$ASSAY" "$scratch/liar/bin/"
cp "$ASSAY_BUILD/tests/unit/scripted-agent" "$scratch/liar/libexec/assay/assay-agent"
ln -s "$ASSAY_BUILD/share" "$scratch/liar/share"
lies() { bed on 1 sh -c 'cat >/run/scripted-agent-tool'; }
liar() { bed run "$scratch/liar/bin/assay" nodes "$@" >"$scratch/out"; }
echo 'printf "control\tturbo\tavailable\ton\ton off\t\033]0;x\007\t\ncontrol\t\033[2J\tdenied\t\t\t\t\033[1m\\\\nb\n"
      printf "held\t\033[3m\t\033[4m\tgone\t1\n"' | lies
check "what an agent tells is shown" liar controls -w 'paradoxe-[1-2]'
check "... with no control character" times 0 $'[\001-\010\013-\037\177]'
check "... but as what it is" said '\\x1b\[2J +- .*denied: \\x1b\[1m\\nb   paradoxe-1$|\\x1b\[2J +- .*denied: \\x1b\[1m\\nb$'
check "... in each place" said 'session \\x1b\[3m \(\\x1b\[4m\)'
echo 'printf "different\t\033[5m\t/x\t0\t1\tE\nrestored\t1\t1\t\033[6m\t\n"; exit 1' | lies
refuse "... in failures too" 1 'could not be put back: \\x1b\[5m: /x: expected .0., found .1. \(E\)' liar restore -w paradoxe-1
check "... and what was done" said '^paradoxe-1: put back what session \\x1b\[6m had changed: 1 file written$'
echo 'exit 0' | lies
refuse "silence is no capture" 1 'paradoxe-1: it sent nothing' liar capture -w 'paradoxe-[1-2]' -o "$scratch/captures/all"
check "... and leaves no file" [ "$(ls -A "$scratch/captures/all" | xargs)" = "$(echo paradoxe-{2..5}.tar)" ]
refuse "nor is it a list of controls" 1 "paradoxe-1: the output of the agent's tool lacks lines that were asked for" liar controls -w paradoxe-1
refuse "nor a restore" 1 "paradoxe-1: the output of the agent's tool lacks lines that were asked for" liar restore -w paradoxe-1
echo 'head -c 10240 /dev/zero | tr "\0" x' | lies
refuse "any bytes are none" 1 'the capture \(10240 bytes\) is no tar archive' liar capture -w paradoxe-1 -o "$scratch/captures/all"
echo 'cd / && tar -cf - etc/passwd | head -c 2048' | lies
refuse "a tar that is cut off is none" 1 'the capture \(2048 bytes\) is cut off' liar capture -w paradoxe-1 -o "$scratch/captures/all"
echo 'cd / && tar -cf - etc/passwd; echo "the disk is gone" >&2; exit 1' | lies
refuse "nor one that its tool takes back" 1 'capturing exited with status 1: the disk is gone' liar capture -w paradoxe-1 -o "$scratch/captures/all"
echo 'head -c 90000000 /dev/zero' | lies
refuse "one that is too large is cut" 1 'it has 90000000 bytes; expected at most 80 MiB' liar capture -w paradoxe-1 -o "$scratch/captures/all"
check "... and nothing of all these stays" [ "$(ls -A "$scratch/captures/all" | xargs)" = "$(echo paradoxe-{2..5}.tar)" ]
echo 'cd / && tar -cf - etc/passwd' | lies
check "a whole one is taken" liar capture -w paradoxe-1 -o "$scratch/captures/all"
check "... as it is" tar -tf "$scratch/captures/all/paradoxe-1.tar" etc/passwd
bed down

# ---- without the right to

bed up 2 --machine intel-pstate --user alice || exit 1
check "an ordinary user looks" nodes controls -w 'node[1-2]'
sed 's/^/# /' "$scratch/out"
check "... and is told what is not his to set" said '^turbo +on +intel_pstate +on off; denied: '
check "... which is no failure of his" nodes restore -w 'node[1-2]'
check "... either" said '^node\[1-2\]: nothing to do: '
check "he captures what he may read" nodes capture -w 'node[1-2]' -o "$scratch/captures/alice"
check "... which is a tar" tar -tf "$scratch/captures/alice/node2.tar"
finish
