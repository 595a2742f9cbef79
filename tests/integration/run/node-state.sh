#!/bin/bash
# The state of nodes whose files answer as a kernel's do: set, proved, warmed up, watched, judged and put back by a run;
# and every way in which a node does not do as it is told.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
bed_first 2 --machine intel-pstate:heat=1 --names 'node-%'
bed can kernel-files || plan_skip "nodes whose files answer as a kernel's need root and FUSE"

cpu=/sys/devices/system/cpu
cat_of() { "$ASSAY" archive cat "$1" "$2"; }
for node in 1 2; do bed files $node | sort >"$scratch/before-$node"; done
are_as_before() { for node in 1 2; do bed files $node | sort | diff "$scratch/before-$node" - | head -4 | sed 's/^/# /' >&2; bed files $node | sort | cmp -s - "$scratch/before-$node" || return 1; done; }
# campaign NAME: its own lines are on stdin
campaign() {
    cat >"$scratch/$1.yaml"
    cat >>"$scratch/$1.yaml" <<'EOF'
experiment:
  name: brief
  run: sh -c 'sleep 0.2; echo took 1; cat /sys/devices/system/cpu/intel_pstate/no_turbo >&2'
  responses: {took: {pattern: 'took ([0-9]+)', unit: s}}
testbed: {hosts: 'node-[1-2]', lease: 1h}
EOF
}
run() { # run NAME: archive in $archive, stderr in err
    bed run "$ASSAY" run "$scratch/$1.yaml" -o "$scratch/runs" >"$scratch/out" 2>"$scratch/err"
    status=$?
    archive=$(cat "$scratch/out")
    [ $status -eq "${2:-0}" ] || sed 's/^/# /' "$scratch/err" >&2
    return $status
}
column() { awk -F, -v name="$1" 'NR == 1 {for (i = 1; i <= NF; i++) if ($i == name) c = i; next} {print $c}' <(cat_of "$archive" results/results.csv); }

# ---- controls as factors
campaign factors <<'EOF'
name: factors
controls: {governor: performance, proof: 100ms}
probes: 100ms
gates: none
design: {generate: factorial, factors: {control.turbo: ['on', 'off'], control.hyperthreads: ['on', 'off']}, repetitions: 2, blocks: 2, seed: 3}
EOF
run factors
check "a design with columns of controls is measured" test $status -eq 0
check "... in eight blocks of four states" test "$(column block | sort -nu | tail -1)" -eq 8
check "... each unit under the state that its row wants" awk -F, '
    NR == 1 {for (i = 1; i <= NF; i++) at[$i] = i; next}
    {s = $at["block"] " " $at["control.turbo"] " " $at["control.hyperthreads"]; if (block[$at["block"]] && block[$at["block"]] != s) bad = 1; block[$at["block"]] = s}
    END {exit bad || NR != 17}' <(cat_of "$archive" results/results.csv)
states=$(for order in $(seq 8); do
    cat_of "$archive" "results/raw/$order-node-1-all.err"
done | paste -sd' ')
wanted=$(awk -F, 'NR == 1 {for (i = 1; i <= NF; i++) at[$i] = i; next} $at["node"] == "node-1" {print $at["order"], $at["control.turbo"] == "off"}' \
    <(cat_of "$archive" results/results.csv) | sort -n | cut -d' ' -f2 | paste -sd' ')
check "... as the machine's own files say" test "$states" = "$wanted"
check "controls.json has what each block set" test "$(cat_of "$archive" nodes/node-2/controls.json | grep -c '"block": 8')" -ge 2
check "datapackage.json calls them factors" grep -A8 '"control.turbo"' <(cat_of "$archive" datapackage.json) | grep -q '"factor"'
check "all is as it was" are_as_before
check "PUs that come and go have files of their own" cat_of "$archive" nodes/node-1/probes/frequency-2.csv
check "... and where the sampler began anew is told" test "$(cat_of "$archive" nodes/node-1/probes/events.csv | grep -c ',begin,')" -ge 8
check "the archive verifies" "$ASSAY" archive verify "$archive"
check "its states can be fitted apart" "$ASSAY" fit linear "$archive" --response took --terms 1 --by control.turbo -o "$scratch/model.json"

# What holds for all of the run holds for PUs that only a block brings.
bed on 1 sh -c "echo off >$cpu/smt/control"
bed files 1 | sort >"$scratch/before-1"
cat >"$scratch/constant.yaml" <<'EOF'
name: constant
experiment:
  name: governors
  run: sh -c 'sleep 0.1; echo took 1; cat /sys/devices/system/cpu/cpufreq/policy*/scaling_governor 2>/dev/null | sort | uniq -c >&2'
  responses: {took: {pattern: 'took ([0-9]+)', unit: s}}
testbed: {hosts: node-1}
controls: {governor: performance, idle-states: C1, proof: none}
probes: 100ms
gates: {load: none}
design: {generate: factorial, factors: {control.hyperthreads: ['on', 'off']}, order: as-written}
EOF
run constant
check "constant controls hold in every block" test "$(cat_of "$archive" results/raw/1-node-1-all.err | tr -s ' ')" = " 8 performance"
check "... also with fewer PUs" test "$(cat_of "$archive" results/raw/2-node-1-all.err | tr -s ' ')" = " 4 performance"
check "... and all is as it was, hardware threads off" are_as_before
bed on 1 sh -c "echo on >$cpu/smt/control"
bed files 1 | sort >"$scratch/before-1"

# ---- what contradicts itself is refused before a node is touched
refused() { # refused SENTENCE: of the campaign on stdin
    campaign refused
    "$ASSAY" run "$scratch/refused.yaml" --dry-run -o "$scratch/none" >"$scratch/out" 2>"$scratch/err"
    [ $? -eq 2 ] && grep -q -- "$1" "$scratch/err" || { sed 's/^/# /' "$scratch/err" >&2; return 1; }
}
check "a gate without its probe" refused "refused.yaml:2:19: the gate 'throttle' needs the probe 'throttle', which is off" <<'EOF'
probes: {throttle: none}
gates: {throttle: stop}
EOF
check "gates without any probe" refused "refused.yaml:2:8: 'gates' is 'stop' but 'probes' is 'none'" <<'EOF'
probes: none
gates: stop
EOF
check "a warm-up until nothing that is sampled is steady" refused "refused.yaml:2:10: 'warm-up: steady' needs one of the probes" <<'EOF'
probes: {temperature: none, frequency: none}
warm-up: steady
EOF
check "a control that is constant and a factor" refused "refused.yaml:1:19: 'turbo' is set for the whole run and also by the design's column 'control.turbo'" <<'EOF'
controls: {turbo: 'off'}
design: {generate: factorial, factors: {control.turbo: ['on', 'off']}}
EOF
check "limits the wrong way round" refused "the lower first" <<'EOF'
controls: {frequency: 3GHz..2GHz}
EOF

# ---- warm-up until steady
campaign steady <<'EOF'
name: steady
controls: {turbo: off, frequency: base, idle-states: C1, transparent-huge-pages: never, numa-balancing: off, proof: none}
probes: 100ms
warm-up: {until: steady, window: 2 s, at-most: 5min}
gates: {load: none, temperature: none}
EOF
run steady
check "a node is warmed up until it is steady" grep -q "steady after" "$scratch/err"
check "... which is recorded" grep -q '"steady": true' <(cat_of "$archive" nodes/node-1/warm-up.json)
# An idle package has 39 degrees (coretemp.machine). The first sample may be warmer: where the machine is busy, so is the node.
check "... and its temperatures rose before" awk -F, 'NR > 1 && $5 > most {most = $5} END {exit !(most > 39 + 10)}' \
    <(cat_of "$archive" nodes/node-1/probes/temperature.csv)
check "what was set is watched" test -n "$(cat_of "$archive" nodes/node-1/probes/drift.csv | tail -n +2)"
check "nothing is flagged" test -z "$(column state.flags | grep .)"
check "frequency and temperature of each unit are in its line" test "$(column state.frequency | sort -u)" = 2100000000 -a -n "$(column state.temperature | head -1)"
check "samples have units" grep -q '"unit": "Cel"' <(cat_of "$archive" nodes/node-1/probes/datapackage.json)
check "what the sampler cost is in the journal" grep -q '"event":"watch-cost","node":"node-1"' <(cat_of "$archive" journal.jsonl)
campaign never <<'EOF'
name: never
warm-up: {until: steady, window: 2 s, at-most: 3 s, temperature-spread: 0.001 Cel, temperature-slope: 0.001 Cel}
probes: 100ms
EOF
swings() { bed load all $((SECONDS % 2 * 100)); test -e "$scratch/ended"; }
eventually swings &
run never
touch "$scratch/ended"
wait
check "one that does not settle is measured after the cap, and that is said" grep -q "not steady after [3-9]" "$scratch/err"
bed load all auto

# ---- gates
campaign throttled <<'EOF'
name: throttled
probes: 100ms
gates: {throttle: repeat, repeats: 2, load: none, temperature: none}
design: {repetitions: 4}
EOF
# The counter of a package moves once, while the first unit waits for that.
sed -i "s|^  run: .*|  run: sh -c 'touch /tmp/begun; until [ -e /tmp/go ]; do sleep 0.05; done; sleep 0.2; echo took 1'|" "$scratch/throttled.yaml"
(eventually bed on 1 test -e /tmp/begun
    bed set 1 "$cpu/cpu0/thermal_throttle/package_throttle_count" 7
    for node in 1 2; do bed on $node touch /tmp/go; done) &
run throttled
wait
check "units during which the processor was slowed down are flagged" column state.flags | grep -qx throttle
check "... and measured again, as attempts of their own" column attempt | grep -qx 2
check "... every attempt has a line" test "$(column attempt | grep -c 2)" -eq "$(paste -d, <(column attempt) <(column state.flags) | grep -c '^1,throttle')"
check "... the second is not flagged" test -z "$(paste -d, <(column attempt) <(column state.flags) | grep '^2,.')"
check "... and only of the node that was slowed down" test "$(paste -d, <(column node) <(column attempt) | grep ',2' | sort -u)" = node-1,2
bed unset 1 "$cpu/cpu0/thermal_throttle/package_throttle_count"

campaign ended <<'EOF'
name: ended
probes: 100ms
gates: {unwatched: stop, load: none, temperature: none}
design: {repetitions: 100}
EOF
has_units() { [ "$(cat "$scratch"/runs/ended-*/results/results.csv | wc -l)" -ge 4 ]; }
(eventually has_units
    kill -TERM "$(pgrep -o -f -- "$scratch/ended.yaml -o $scratch/runs")") &
run ended 6
wait
check "a run that is asked to end is partial, whatever its gates" test $status -eq 6
check "... and its last units are judged by last samples" test -z "$(column state.flags | grep .)" -a "$(column attempt | wc -l)" -gt 2

campaign drift <<'EOF'
name: drift
controls: {turbo: off, proof: none}
probes: {period: 100ms, drift: 100ms}
gates: {drift: stop, load: none}
design: {repetitions: 100}
EOF
: >"$scratch/err" # or the run before has measured for this one
(eventually grep -q '^measure' "$scratch/err"
    bed set 2 "$cpu/intel_pstate/no_turbo" 0) &
run drift 3
wait
check "a control that changes by itself stops the run, if the campaign says so" test $status -eq 3
check "... in one sentence that names unit, node, file and values" \
    grep -q "unit .* on node node-2, core all: a control changed since it was set: $cpu/intel_pstate/no_turbo: expected 1, found 0" "$scratch/err"
check "... what was measured is sealed" "$ASSAY" archive verify "$archive"
bed unset 2 "$cpu/intel_pstate/no_turbo"
check "... and all is as it was" are_as_before

campaign slow <<'EOF'
name: slow
controls: {turbo: off, frequency: base, proof: none}
probes: 100ms
gates: {load: none}
EOF
bed set 1 "$cpu/cpufreq/policy0/scaling_cur_freq" 1200000
run slow
check "a unit on a slow PU is flagged" grep -q "node-1.*,frequency$" <(cat_of "$archive" results/results.csv)
check "... and none on a good node" test "$(paste -d, <(column node) <(column state.flags) | grep '^node-2')" = node-2,
campaign proof <<'EOF'
name: proof
controls: {turbo: off, frequency: base, proof: 300ms}
EOF
run proof 3
check "the proof under load finds it before anything is measured" grep -q "checking the controls under load failed on 1 of 2 nodes: node-1: .*1 of [0-9]* PUs are off by more than 2 %" "$scratch/err"
check "... exit code 3" test $status -eq 3
check "... and all is as it was" are_as_before
bed unset 1 "$cpu/cpufreq/policy0/scaling_cur_freq"

# ---- nodes that do not do as they are told
campaign governor <<'EOF'
name: governor
controls: {governor: performance, proof: none}
EOF
bed fault 2 busy "$cpu/cpufreq/policy3/scaling_governor"
run governor 3
check "EBUSY on one core fails the run" test $status -eq 3
check "... by node, file and reason" grep -q "node-2: governor: failed: .*policy3/scaling_governor.*busy" "$scratch/err"
check "... and all is as it was" are_as_before
sed -i 's/proof: none/proof: none, mismatch: best-effort/' "$scratch/governor.yaml"
run governor
check "best-effort: it is told, and the run goes on" grep -q "node-2: governor: failed: .*policy3" "$scratch/err"
check "... and recorded" grep -q '"status": "failed"' <(cat_of "$archive" nodes/node-2/controls.json)
check "... and all is as it was" are_as_before
bed fault 2 none
campaign absent <<'EOF'
name: absent
controls: {turbo: off, proof: none}
EOF
bed fault 1 gone "$cpu/intel_pstate/no_turbo"
run absent 2
check "a control that one node does not have refuses the start" test $status -eq 2
check "... with the way to go on" grep -q "node-1: turbo: absent: .*; 'unavailable: best-effort' in 'controls' measures without it" "$scratch/err"
check "... and nothing is left" sh -c "! ls -d '$scratch'/*/absent-*"
bed fault 1 back "$cpu/intel_pstate/no_turbo"
check "... and all is as it was" are_as_before
bed fault 1 stuck "$cpu/intel_pstate/no_turbo"
campaign stuck <<'EOF'
name: stuck
controls: {turbo: off, proof: none}
EOF
run stuck 3
check "a file that keeps its old value is a mismatch" grep -q "node-1: turbo: mismatch: .*no_turbo' has '0' where '1' was written" "$scratch/err"
bed fault 1 none
bed fault all resets-turbo on
campaign resets <<'EOF'
name: resets
controls: {turbo: off, governor: performance, proof: none}
gates: {load: none}
EOF
run resets
check "a governor that resets turbo is dealt with" test $status -eq 0
check "... and all is as it was" are_as_before
bed fault all resets-turbo off
campaign energy <<'EOF'
name: energy
controls: {energy-preference: sometimes}
EOF
run energy 3
check "a value that a node does not have is an error, with those that it has" grep -q "energy-preference: invalid: .*balance_performance" "$scratch/err"
bed fault 1 gone /sys/class/hwmon/hwmon1
bed fault 1 gone '/sys/class/thermal/thermal_zone*'
campaign sensor <<'EOF'
name: sensor
probes: 100ms
EOF
run sensor
check "a node without a sensor is named" grep -q "node node-1: not watched: .*temperature" "$scratch/err"
check "... and its units have no temperature" test -z "$(paste -d, <(column node) <(column state.temperature) | grep '^node-1,.')"
bed fault 1 none
finish
