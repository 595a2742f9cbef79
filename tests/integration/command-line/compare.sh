#!/bin/bash
# Runs beside each other, and a prediction beside a run: `assay compare`.
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1

# The rate of NB is that of the line NB of the file `rates` and, behind the point, the repetition.
campaign() { # campaign NAME UNIT
    cat <<E
name: toy
testbed: local
probes: none
experiment:
  name: $1
  factors: {NB: {type: integer}}
  responses: {rate: {pattern: '^rate ([0-9.]+)', unit: $2}}
  answer: {response: rate, best: most}
  run: 'echo "rate \$(sed -n "\${NB}p" $scratch/rates).\$repetition"'
design: {factors: {NB: [1, 2, 3]}, repetitions: 4}
E
}
run() { # run NAME RATE...: its archive is NAME.zip
    printf '%s\n' "${@:2}" >rates
    cp "$("$ASSAY" run toy.yaml -o runs 2>.err)" "$1.zip" || sed 's/^/# /' .err
}
campaign toy Gflop/s >toy.yaml
run base 100 200 300
run same 100 200 300
run slow 100 180 300
run fast 100 200 330

check "two runs that do not differ" "$ASSAY" compare base.zip same.zip --exit-code
report $(output '^no difference shown: rate changed by \+0 % over 3 settings \(95 % interval .*; settings tested: 3, of which worse: 0, better: 0$'; echo $?) "... are said not to"
refuse "one that is worse" 3 "the new run is worse" "$ASSAY" compare base.zip slow.zip --exit-code
check "... without --exit-code is reported alone" "$ASSAY" compare base.zip slow.zip
report $(output '^worse: rate changed by -3\.[0-9]+ % over 3 settings' && output '^ *2 +200\.25 +180\.25 +-9\.99 .* worse$'; echo $?) "... with its setting"
check "below the threshold nothing counts" "$ASSAY" compare base.zip slow.zip --exit-code --threshold 15%
check "one that is better" "$ASSAY" compare base.zip fast.zip --exit-code
report $(output '^better: .*, better: 1$'; echo $?) "... is no failure"
is "three runs before the new one count once each" \
    "$("$ASSAY" compare base.zip same.zip fast.zip slow.zip --json | jq -r '.method, .settings[0].base_replicates' | paste -sd' ')" \
    "each earlier run counts once; the new run is tested as one more run (Student's t) 3"
is "for programs" "$("$ASSAY" compare base.zip slow.zip --json |
    jq -r '[.grade, .worse, .better, .settings[1].standing, .units["settings.difference"]] | join(" ")')" "not usable 1 0 worse %"

mkdir one other
cp base.zip one/run.zip
cp slow.zip other/run.zip
is "runs whose archives have one name are several runs" "$("$ASSAY" report one/run.zip other/run.zip --json | jq -c .checks)" \
    "$("$ASSAY" report base.zip slow.zip --json | jq -c .checks)"
refuse "one run twice" 2 "the last run is one of those before it" "$ASSAY" compare base.zip base.zip
refuse "what is no archive" 2 "toy.yaml: this is no archive, and others are" "$ASSAY" compare toy.yaml base.zip
refuse "options of models" 2 "data is an option for comparing models; the inputs are runs" "$ASSAY" compare base.zip slow.zip --data base.zip
refuse "a threshold that is none" 2 "threshold '2' is not a share between 0 % and 100 %" "$ASSAY" compare base.zip slow.zip --threshold 2
campaign other Gflop/s >toy.yaml
run other 100 200 300
refuse "another experiment" 2 "this is a run of the experiment 'other', but 'base.zip' is a run of 'toy'" "$ASSAY" compare base.zip other.zip
campaign toy s >toy.yaml
run seconds 100 200 300
refuse "another unit" 2 "'rate'" "$ASSAY" compare base.zip seconds.zip

# ---- A prediction by HPL's formulas, and a run that takes 10 % longer for one NB, and 20 % less for the other.
cat >calls.csv <<'E'
m,n,k,duration
20,30,10,1.0e-6
400,500,60,1.2e-3
400,500,200,4e-3
20,500,200,2e-4
400,30,200,2.4e-4
900,500,200,9e-3
E
"$ASSAY" fit linear calls.csv --response duration --terms 'm*n*k' --sizes m,n,k -o model.json >.out 2>&1 || sed 's/^/# /' .out
predict() { # predict NAME SETTING...
    "$ASSAY" predict hpl model.json --set P=1 --set Q=2 --set latency=1us --set bandwidth=10GB/s "${@:2}" --archive "$1.zip" >.out 2>.err ||
        sed 's/^/# /' .err
}
predict predicted --set N=2000,4000 --set NB=64,128,256
"$ASSAY" archive cat predicted.zip results/results.csv |
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "time") column = i; next }
             $3 < 200 { printf "%d-%d %.9g\n", $2, $3, $column * ($3 == 64 ? 1.1 : 0.8) }' >times
cat >toy.yaml <<E
name: toy
testbed: local
probes: none
experiment:
  name: measured
  factors: {N: {type: integer}, NB: {type: integer}, SWAP: {type: integer}}
  responses: {time: {pattern: '^time ([0-9.e-]+)', unit: s}}
  answer: {response: time, best: least, sizes: [N]}
  run: 'awk -v of="\$N-\$NB" "\\\$1 == of { print \"time \" \\\$2 }" $scratch/times'
design: {factors: {N: [2000, 4000], NB: [64, 128], SWAP: 1}, repetitions: 2}
E
run measured
check "a prediction beside a run" "$ASSAY" compare predicted.zip measured.zip
report $(output '^the prediction of time has a mean error of \+7\.95 % \(mean absolute error 17 %\) over 4 settings; the largest error is \+25 % \(N=[24]000 NB=128\)$'; echo $?) \
    "... mean and worst error"
report $(output '^scenarios without a setting +2$' && output '^standard deviation of the repetitions +0 %$'; echo $?) "... what is not joined, and the scatter"
check "in any order, with the greatest error" "$ASSAY" compare measured.zip predicted.zip --threshold 20% --exit-code
refuse "... that is exceeded" 3 "the prediction is off by more than --threshold" "$ASSAY" compare predicted.zip measured.zip --threshold 10% --exit-code
is "for programs" "$("$ASSAY" compare predicted.zip measured.zip --threshold 10% --json |
    jq -r '[.grade, (.settings | length), (.settings[0].error * 10 | round), .units.regret] | join(" ")')" "not usable 4 250 %"
refuse "no setting in common" 2 "none of the predicted scenarios was measured" sh -c '
    "$0" predict hpl model.json --set P=1 --set Q=2 --set latency=1us --set bandwidth=10GB/s --set N=3000 --set NB=64 --archive none.zip >/dev/null 2>&1
    "$0" compare none.zip measured.zip' "$ASSAY"
predict twice --set N=2000 --set NB=64 --set speed=mean,slowest
refuse "a setting twice" 2 "scenarios 1 and 2 match the same setting of the runs" "$ASSAY" compare twice.zip measured.zip
refuse "... or by the factors that both have" 2 "scenarios 1 and 2 match the same setting of the runs" "$ASSAY" compare predicted.zip base.zip
refuse "two predictions" 2 "these are predictions" "$ASSAY" compare predicted.zip twice.zip

# ---- Where a run and its replay part: made from the replay, 0.5 s later from column 248 on, with as much more in row swaps; node 1
# computes 20 % longer.
awk 'BEGIN { print "operation,size,duration"
    for (r = 0; r < 3; r++) for (s = 1; s <= 4e6; s = s * 2 + 1) print "PingPong," s "," 2 * (1e-5 + s / 1e9) * (1 + (r - 1) / 1000) }' >network.csv
"$ASSAY" fit smpi network.csv --set latency=10us --set bandwidth=1GB/s -o network.json >.out 2>&1 || sed 's/^/# /' .out
replay() {
    "$ASSAY" predict hpl-replay dgemm=model.json network=network.json --set N=400 --set NB=8 --set P=2 --set Q=2 --set ranks-per-node=2 "$@"
}
check "a replay with its tables" replay --plot panels=panels.csv --plot ranks=ranks.csv --archive replay.zip -o replayed.csv
replay --archive bare.zip >.out 2>&1
awk -F, '
    FNR == 1 { file++; for (i = 1; i <= NF; i++) at[$i] = i; next }
    file == 1 { printf "time %.9g\n", $at["time"] + 0.5 }
    file == 2 && $2 > 0 { t = $3 + ($2 >= 248 ? 0.5 : 0); printf "Column=%09d Fraction=%4.1f%% Gflops=%.9e\n", $2, $2 / 4, 2 / 3 * (400 ^ 3 - (400 - $2) ^ 3) / t / 1e9 }
    file == 3 {
        if ($at["rank_swaps"] > swaps) swaps = $at["rank_swaps"]
        if ($at["rank_pivots"] > pivots) pivots = $at["rank_pivots"]
        printf "trace total %d dgemm 9 9 %.9f\ntrace total %d dtrsm 9 9 %.9f\n", $2, $5 / 2 * ($2 < 2 ? 1 : 1.2), $2, $5 / 2 * ($2 < 2 ? 1 : 1.2)
        printf "trace total %d Send 9 9 %.9f\n", $2, $at["rank_swaps"]
    }
    END { printf "Max aggregated wall time mxswp . . : %.9f\nMax aggregated wall time laswp . . : %.9f\n", pivots, swaps + 0.5 }
' replayed.csv panels.csv ranks.csv >printed
cat >toy.yaml <<E
name: toy
testbed: local
probes: none
experiment:
  name: made
  factors: {N: {type: integer}, nodes: {type: integer}, ranks: {type: integer}}
  responses: {time: {pattern: '^time ([0-9.e-]+)', unit: s}}
  answer: {response: time, best: least, sizes: [N]}
  tables:
    panels: {pattern: 'Column=([0-9]+) Fraction= *([0-9.]+)% Gflops=([0-9.e+-]+)', columns: {column: {unit: "1"}, fraction: {unit: "%"}, gflops: {unit: Gflop/s}}}
    phases: {pattern: 'Max aggregated wall time ([a-z ]*[a-z]) *[. ]*: *([0-9.]+)', columns: {phase: {type: text}, seconds: {unit: s}}}
    calls: {pattern: '^trace total ([0-9]+) ([A-Za-z_]+) ([0-9]+) ([0-9]+) ([0-9.]+)$', columns: {rank: {unit: "1"}, call: {type: text}, calls: {unit: "1"}, recorded: {unit: "1"}, duration: {unit: s}}}
  run: 'cat $scratch/printed'
design: {factors: {N: 400, nodes: 2, ranks: 4}, repetitions: 2}
E
run parted
check "a replay beside a run with tables" "$ASSAY" compare replay.zip parted.zip
report $(output '^at its last panel the run is 0\.5 s later than the replay; 0\.5 s of that come between columns 232 and 272$'; echo $?) \
    "says between which columns they part"
report $(output '^the phase that differs most is laswp: 0\.5[0-9]* s, and 0\.0[0-9]+ s in the replay$'; echo $?) "... in which phase"
report $(output '^node 1 differs most: its processes compute 20 % longer than in the replay; the mean of the other nodes differs by [-+][0-9.e-]+ %$'; echo $?) "... and on which node"
is "for programs, too" "$("$ASSAY" compare replay.zip parted.zip --json | jq -r '.divergence | [(.panels | length), .phases[1].phase, (.nodes[1].computing / .nodes[1].replayed_computing * 1000 | round)] | join(" ")')" "10 laswp 1200"
check "a replay without tables" "$ASSAY" compare bare.zip parted.zip
report $(output 'predict with --plot panels=panels.csv --plot ranks=ranks.csv, as well'; echo $?) "says which would be needed"
finish
