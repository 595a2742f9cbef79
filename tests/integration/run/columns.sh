#!/bin/bash
# What is read from a unit's output beside numbers: texts, whether it passed, and further tables; names as HPL has them.
. "$(dirname "$0")/../tap.sh"
command -v awk >/dev/null || plan_skip "no awk"

# Elimination as HPL reports it: a line a panel, with the work that is done so far and the rate since the beginning when
# a panel's time is its work over $RATE; at its end the whole time, a residual and a verdict.
cat >"$scratch/eliminate.awk" <<'E2'
BEGIN {
    for (at = NB; at <= N; at += NB) {
        done = 2 / 3 * (N ^ 3 - (N - at) ^ 3); time = done / (RATE * 1e9)
        printf "Column=%d Fraction=%.1f%% Work=%.0f Time=%.17e note \"%s\"\n", at, 100 * at / N, done, time, at == N ? "last, at " N : ""
    }
    printf "took %.17e s\nresidual %s\nresidual checks %s\n", time, RESIDUAL, VERDICT
}
E2
cat >"$scratch/hpl.yaml" <<E2
experiment:
  name: elimination
  source: {folder: program}
  factors:
    N: {type: integer, minimum: 1}
    NB: {type: integer, minimum: 1, default: "max(1, N / 8)"}
    RATE: {type: number, default: 2.5, unit: GFLOPS}
    RESIDUAL: {type: text, default: 0.01}
    VERDICT: {type: text, default: PASSED}
  require: [N >= NB]
  run:
    command: [sh, -c, 'test -e $scratch/mended && RESIDUAL=0.5 VERDICT=PASSED; awk -v N=\$N -v NB=\$NB -v RATE=\$RATE -v RESIDUAL=\$RESIDUAL -v VERDICT=\$VERDICT -f eliminate.awk']
    pass: residual < 16
  responses:
    time: {pattern: '^took ([0-9.e+-]+) s', unit: s}
    residual: {pattern: '^residual ([0-9.enainf+-]+)\$'}
    checks: {type: text, choices: [PASSED, FAILED, unchecked], pass: [PASSED, unchecked], pattern: '^residual checks (.*)\$'}
    said: {type: text, pattern: '(note .*)\$', description: what it said first}
  tables:
    panels:
      description: one line a panel
      pattern: '^Column=([0-9]+) Fraction=([0-9.]+)% Work=([0-9]+) Time=([0-9.e+-]+) note "([^"]*)"'
      columns: {column: , fraction: {unit: "%"}, work: {unit: "1"}, time: {unit: s}, remark: {type: text}}
    never: {pattern: '^never (.*)\$', columns: {word: {type: text}}}
    odd: {pattern: '^residual( checks)? (.*)\$', columns: {checks: {type: text}, value: }}
design: {file: rows.csv, repetitions: 2}
stop-after-failures: none
probes: none
E2
mkdir "$scratch/program" && cp "$scratch/eliminate.awk" "$scratch/program"
printf 'N,RESIDUAL,VERDICT\n64,0.01,PASSED\n128,0.02,unchecked\n256,31.25,PASSED\n512,0.03,FAILED\n1024,nan,PASSED\n2048,0.04,DUNNO\n' >"$scratch/rows.csv"
member() { "$ASSAY" archive cat "$archive" "$1"; }

refuse "units that do not pass have failed" 3 "8 of 12 units failed; the first: unit [0-9]+ on node" "$ASSAY" run "$scratch/hpl.yaml" -o "$scratch/runs"
cp "$scratch/.err" "$scratch/told"
archive=$(echo "$scratch"/runs/*.zip)
check "... and the archive is whole" "$ASSAY" archive verify "$archive"
is "a unit as people write it has its UCUM code" "$(member datapackage.json | grep -oE 'GFLOPS|"Gflop/s"' | sort -u)" '"Gflop/s"'
sed 's/GFLOPS/KB/' "$scratch/hpl.yaml" >"$scratch/kb.yaml"
refuse "one of two meanings" 2 "'unit' is 'KB', expected kB for 1000 bytes or KiB for 1024" "$ASSAY" run "$scratch/kb.yaml" -o "$scratch/runs"
member journal.jsonl >"$scratch/journal"
is "... each with what it found, and what was expected" "$(grep '"event":"unit-failed"' "$scratch/journal" | sed 's/; see results[^"]*//; s/.*"sentence":"\(.*\)","row":\([0-9]*\),.*/\2 \1/' | sort -u)" \
"3 it did not pass: residual is 31.25, expected residual < 16
4 it did not pass: checks is 'FAILED', expected one of PASSED, unchecked
5 the pattern of 'residual' found 'nan', expected a number
6 the pattern of 'checks' found 'DUNNO', expected one of PASSED, FAILED, unchecked"
check "... and their output is kept" test "$("$ASSAY" archive list "$archive" | grep -cE '[0-9a-f]{64}  results/raw/[0-9].*\.out$')" -eq 12
is "texts are columns of the results, capitals of the factors" "$(member results/results.csv | cut -d, -f1,10-14,16-18 | sort -u)" \
'1,64,8,2.5,0.01,PASSED,0.01,PASSED,"note """""
2,128,16,2.5,0.02,unchecked,0.02,unchecked,"note """""
row,N,NB,RATE,RESIDUAL,VERDICT,residual,checks,said'

member results/tables/panels.csv >"$scratch/panels.csv"
is "a table has the unit, its factors and its own columns" "$(head -1 "$scratch/panels.csv")" \
    row,repetition,order,attempt,node,core,N,NB,RATE,RESIDUAL,VERDICT,column,fraction,work,time,remark
is "... a row for each panel of the units that passed" "$(tail -n +2 "$scratch/panels.csv" | cut -d, -f1,2 | sort | uniq -c | xargs)" "8 1,1 8 1,2 8 2,1 8 2,2"
check "... whose last has done all the work, in the time that the unit took" awk -F, 'NR == FNR {if (NR > 1) time[$3] = $15; next}
    FNR > 1 && $12 == $7 {n++; if ($14 != sprintf("%.0f", 2 / 3 * $7 ^ 3) || $15 != time[$3] || $13 != 100) bad = 1} END {exit bad || n != 4}' \
    <(member results/results.csv) "$scratch/panels.csv"
check "... and texts with commas in quotes" test "$(grep -c ',"last, at 64"$' "$scratch/panels.csv")-$(grep -c ',$' "$scratch/panels.csv")" = 2-28
member logs/engine.log >"$scratch/log"
check "a table that nothing matches is in the log" grep -q "the table 'never' has no rows and is left out: its pattern, '^never (.\*)\$', matches no line" "$scratch/log"
check "... and not in the archive" sh -c "! '$ASSAY' archive list '$archive' | grep -q never.csv"
member run.json >"$scratch/run.json"
is "run.json of an archive says that the run was sealed" "$(jq -r '.phases[] | select(.name == "seal") | .status, (.ended != null)' "$scratch/run.json" | xargs)" "done true"
is "... and by which program" "$(jq -r .engine.sha256 "$scratch/run.json")" "$(sha256sum "$(realpath "$ASSAY")" | cut -d' ' -f1)"
check "values that are no numbers are left empty, and noted" grep -qE "4 values of the table 'odd' are not what their columns say and are left empty, such as '(PASSED|unchecked)' of column 'value' in line 11 of 'results/raw/" "$scratch/told"
is "... beside those that are" "$(member results/tables/odd.csv | cut -d, -f1,12- | sort | uniq -c | awk '{$1 = $1} 1' | paste -sd';')" \
    "2 1, checks,;2 1,,0.01;2 2, checks,;2 2,,0.02;1 row,checks,value"
"$ASSAY" fit linear "$archive" --table panels --response time --terms work --brief >"$scratch/fit" 2>&1
check "assay fit reads it, with its units: the time of an operation is 1 / RATE" grep -qE '^ *work +4e-10 .* s( +[0-9.e-]+)?$' "$scratch/fit"
"$ASSAY" fit linear "$archive" --table panels --response time --terms 'N^2*column + N*column^2 + column^3' --by remark --brief >"$scratch/fit" 2>&1
is "... by its texts: (N^3 - (N - column)^3) 2/3 / RATE" "$(awk '/^rows +28$/ {on = 1} on && $1 ~ /column/ {print $2} /^$/ {on = 0}' "$scratch/fit" | xargs)" "8e-10 -8e-10 2.666667e-10"
"$ASSAY" fit linear "$archive" --response time --terms N^3 --by checks --brief -o "$scratch/cubic.json" >/dev/null
is "a model of the results knows N, and groups by a text" \
    "$("$ASSAY" model eval "$scratch/cubic.json" N=3000 checks=unchecked 2>/dev/null | awk 'NR == 1 {print $3, $4} NR == 2 {print $1, $2, $3}' | xargs)" "time (s) 3000 unchecked 7.2"
refuse "a table that is not there is refused" 2 "no member 'results/tables/panel.csv'" "$ASSAY" fit "$archive" --table panel

# Going on: the tables are made anew, of all parts.
touch "$scratch/mended"
archive=$("$ASSAY" resume "$archive" -q 2>"$scratch/err") || sed 's/^/# /' "$scratch/err"
member results/tables/panels.csv >"$scratch/panels.csv"
is "a resumed run has all of its tables, once: units that had failed as their second attempts" \
    "$(tail -n +2 "$scratch/panels.csv" | cut -d, -f1,2,4 | sort | uniq -c | awk '{print $1 "x" $2}' | xargs)" \
    "8x1,1,1 8x1,2,1 8x2,1,1 8x2,2,1 8x3,1,2 8x3,2,2 8x4,1,2 8x4,2,2 8x5,1,2 8x5,2,2 8x6,1,2 8x6,2,2"

# Refused before anything is touched.
wrong() { # wrong NAME PATTERN SED-SCRIPT
    sed "$3" "$scratch/hpl.yaml" >"$scratch/wrong.yaml"
    refuse "$1" 2 "$2" "$ASSAY" run "$scratch/wrong.yaml" --dry-run
}
wrong "a factor that is called as a variable of the system" "wrong.yaml:6:5: 'PATH' cannot name a factor, since programs have" 's/^    NB:/    PATH:/'
wrong "... or of a program" "'OMP_NUM_THREADS' cannot name a factor" 's/^    NB:/    OMP_NUM_THREADS:/'
wrong "an expression knows capitals from small letters" "10:13: unknown name 'n', expected one of N, NB" 's/N >= NB/n >= NB/'
wrong "'pass' of a text" "13:11: 'checks' is a text; expected numbers here, and 'pass: \[...\]'" 's/pass: residual < 16/pass: checks < 16/'
wrong "... and with what is no choice" "17:.*response 'checks' has a text in 'pass' that is not one of its choices" 's/pass: \[PASSED,/pass: [passed,/'
wrong "choices of a number" "'residual' has choices, but is a number" 's/^    residual: {/&choices: [a], /'
wrong "a pattern with too few groups" "the pattern of 'panels' has 5 groups, expected 4, one for each column" 's/, remark: {type: text}//'
wrong "tables whose files some systems would take for one" "'panels' is already a table" 's/^    never:/    Panels:/'
wrong "tables of a streamed kernel" "a streamed kernel cannot have 'tables'" 's/command: \[/streamed: [/'
wrong "a column that is a factor" "'N' is already a factor" 's/{column: ,/{N: ,/'
wrong "repeating until a text is known" "wrong.yaml:26:.*'checks' is a text, which has no mean" \
    's/repetitions: 2}/repeat: {until: {ci: 5%, at-most: 9, response: checks}}}/'
wrong "a model of a text" "'checks' is not a response of this experiment that is a number" 's/^design:.*/  model: {method: linear, response: checks}\n&/'
finish
