#!/bin/bash
# assay predict --archive: a prediction is sealed with all that it was made from, and the chain back to what was measured is
# proved by hashes alone.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/../made-run.sh"
cd "$scratch" || exit 1
export ASSAY_PATH=$ASSAY_BUILD/tests/plugins TMPDIR=$scratch/temporary
mkdir temporary
sha() { sha256sum <"$1" | cut -d' ' -f1; }
cat_of() { "$ASSAY" archive cat "$1" "$2"; }
# json FILE PATTERN: a JSON file on one line matches.
json() { tr -d '\n' <"$1" | tr -s ' \t' ' ' >flat.json && contains flat.json "$2"; }

# ---- The chain: a run, a model of it, a prediction from the model ----------------------------------------------
calls=$(made_dgemm calls 1e-6 1e-10 2>.err) || sed 's/^/# /' .err
"$ASSAY" fit "$calls" -o model.json >/dev/null
printf 'name,N,NB,P,Q,latency [us],bandwidth\nsmall,2000,64,2,2,1,10GB/s\n"large, ""far""",8000,128,2,4,2,10GB/s\n' >rows.csv
set -- --scenario rows.csv --set panels=recursive --set speed=mean --draws 20 --seed 7
check "a prediction is sealed" "$ASSAY" predict hpl model.json "$@" --plot panels --archive hpl.zip
report $(output '^sealed in +hpl.zip$' && output "^sha256 +$(sha hpl.zip)$"; echo $?) "it says where, with the hash of the archive"
check "it verifies" "$ASSAY" archive verify hpl.zip
report $(output '^hpl.zip: verified: completed prediction of hpl, '; echo $?) "and says that it is a prediction"
check "it is listed" "$ASSAY" archive list hpl.zip
report $(output ' models/1-dgemm.json$' && output ' scenarios.csv$' && output ' results/tables/panels.csv$'; echo $?) \
    "models, scenarios and the wanted table are in it"
report $(output '^kind +prediction$'; echo $?) "and its kind"
cat_of hpl.zip run.json >run.json
cat_of hpl.zip models/1-dgemm.json >sealed.json
report $(cmp -s sealed.json model.json; echo $?) "the model is there, byte for byte"
report $(json run.json "\"role\": \"dgemm\", \"member\": \"models/1-dgemm.json\", \"file\": \"model.json\", \"sha256\": \"$(sha model.json)\""; echo $?) \
    "with its role and hash"
report $(json run.json "\"inputs\": \[ ?\{ ?\"name\": \"${calls##*/}\", \"sha256\": \"$(sha "$calls")\", \"run_id\": \"[0-9a-f-]{36}\", \"experiment\": \"dgemm\""; echo $?) \
    "and the archive that it was fitted from, by its hash"
report $(json run.json '"kind": "prediction"' && json run.json '"seed": "7"' && json run.json '"draws": 20' &&
    json run.json '"settings": \[ ?"panels=recursive", "speed=mean" ?\]' && json run.json '"command": \[.*"predict", "hpl"'; echo $?) \
    "seed, draws, settings and command line are in run.json"
report $(json run.json '"grade": "(usable|not usable)", "verdict": "'; echo $?) "and the verdict of the model"
if python3 -c 'import jsonschema' 2>/dev/null; then
    cat_of "$calls" run.json >measured.json
    check "run.json keeps to the schema, of a run as well" python3 -c '
import json, jsonschema, sys
schema = json.load(open(sys.argv[1]))
for name in sys.argv[2:]:
    jsonschema.Draft202012Validator(schema).validate(json.load(open(name)))' \
        "$ASSAY_SOURCE/archive-format/schemas/run.schema.json" run.json measured.json
else skip "run.json keeps to the schema, of a run as well" "no python3-jsonschema here"; fi
cat_of hpl.zip scenarios.csv >scenarios.csv
report $(cmp -s scenarios.csv rows.csv; echo $?) "the table of scenarios is as it was given"
"$ASSAY" predict hpl model.json "$@" -o out.csv >/dev/null
cat_of hpl.zip results/results.csv >results.csv
report $(cmp -s results.csv out.csv; echo $?) "results.csv is what --output writes"
cat_of hpl.zip datapackage.json >package.json
report $(json package.json '"name": "latency", "type": "number",[^}]*"unit": "s"[^}]*"role": "factor"' &&
    json package.json '"name": "gamma3",[^}]*"s/\{flop\}"' && json package.json '"path": "results/tables/panels.csv"'; echo $?) \
    "and its columns have types, units and roles"
check "again, from the table on standard input" sh -c '"$@" --scenario - --archive again.zip -o again.csv <rows.csv' - \
    "$ASSAY" predict hpl model.json "${@:3}"
cat_of again.zip results/results.csv >again-results.csv
report $(cmp -s results.csv again-results.csv && cmp -s results.csv again.csv; echo $?) "the same command and seed give the same bytes"
cat_of again.zip scenarios.csv >scenarios.csv
report $(cmp -s scenarios.csv rows.csv; echo $?) "and what came from a pipe is kept as it came"

check "fitted on the way, without a table" "$ASSAY" predict hpl --from "$calls" --set N=2000,4000 --set NB=64 --set P=1 --set Q=1 --archive from.zip
cat_of from.zip run.json >run.json
cat_of from.zip models/1-dgemm.json >fitted.json
report $(json run.json "\"sha256\": \"$(sha fitted.json)\"" && json run.json "\"sha256\": \"$(sha "$calls")\""; echo $?) \
    "the model that was fitted and the hash of its archive are kept"
check "the sealed model is one" "$ASSAY" model check fitted.json
report $(json run.json "\"notes\": \[ ?\"fitted '[^']*' for the role 'dgemm'\""; echo $?) "and the notes"

# ---- What reads archives ---------------------------------------------------------------------------------------
check "report prints it" "$ASSAY" report hpl.zip
report $(output '^method +predict-hpl$' && output '^small +2000 ' && output "${calls##*/}" && output '^dgemm +model.json +[0-9a-f]{64} '; echo $?) \
    "method, models, archives and the table"
check "one scenario" sh -c '"$0" predict hpl model.json --set N=2000 --set NB=64 --set P=1 --set Q=1 --archive one.zip && "$0" report one.zip' "$ASSAY"
report $(output '^time +[0-9.]+ m?s '; echo $?) "is a list"
check "as JSON" "$ASSAY" report hpl.zip --json
report $(output '"scenario_count": *2' && output '"scenarios.latency": *"s"' && output '"sha256": *"'"$(sha model.json)"; echo $?) "for programs"
check "extracted" "$ASSAY" archive extract hpl.zip -C extracted
check "it is printed too" "$ASSAY" report extracted
report $(output '^small +2000 '; echo $?) "from its files"
refuse "a ranking" 2 "hpl.zip: --best ranks what was measured, and this is the archive of a prediction" "$ASSAY" report hpl.zip --best
check "status" "$ASSAY" status hpl.zip
report $(output '^status +completed' && output '2 of 2 done' && output '`assay report hpl.zip` prints it'; echo $?) "says how it stands and what prints it"
unmeasured="this is the archive of a prediction, nothing in it was measured; 'assay report' prints it"
refuse "a fit of it" 2 "hpl.zip: $unmeasured" "$ASSAY" fit linear hpl.zip --response time --terms N
refuse "a run of it" 2 "hpl.zip: $unmeasured" "$ASSAY" run hpl.zip
refuse "a prediction from it" 2 "$unmeasured" "$ASSAY" predict hpl --from hpl.zip --set N=2000
refuse "a report of it beside another" 2 "give it alone" "$ASSAY" report hpl.zip "$calls"

# ---- What the user was told, and why the number is what it is
awk 'BEGIN { print "size,time [s]"; for (i = 1; i <= 9; i++) print i "," 2 + 3 * i + (i % 3 - 1) / 1000 }' >size.csv
"$ASSAY" fit linear size.csv --response time --terms '1+size' -o size.json >/dev/null
check "warnings of some scenarios" "$ASSAY" predict travel size.json --set size=8,13,90,91 --archive told.zip
cat_of told.zip run.json >run.json
report $(json run.json '"warnings": \[ ?"scenario 2: no answer: 13 has no answer", .*"scenario 4: 100 % of the total that ' && json run.json '"notes": \[ ?"scenario 1 and 2 more: a note"'; echo $?) \
    "say of which scenario they are"
check "rows" "$ASSAY" predict travel size.json --set size=8,9 --set hops=3 --archive rows.zip
cat_of rows.zip run.json >run.json
report $(json run.json '"rows": 6' && json run.json '"units_done": 2'; echo $?) "are counted apart from scenarios"
check "an explanation" "$ASSAY" predict travel size.json --set size=8 --set wait=24 --explain --archive explained.zip
is "is in the archive" "$(cat_of explained.zip results/tables/explained-effects.csv | cut -d, -f1,2 | paste -sd' ')" "of,name size.json,1 size.json,size parameter,size parameter,wait"
cat_of explained.zip datapackage.json >package.json
report $(json package.json '"path": "results/tables/explained-effects.csv"' && json package.json '"name": "effect",[^}]*"unit": "%"'; echo $?) "with units"
check "and verifies" "$ASSAY" archive verify explained.zip

# ---- What is not sealed ----------------------------------------------------------------------------------------
before=$(sha hpl.zip)
refuse "an archive that is there" 2 "'hpl.zip' is already there, and archives are not replaced" "$ASSAY" predict hpl model.json "$@" --archive hpl.zip
is "is left as it was" "$(sha hpl.zip)" "$before"
refuse "another name" 2 "expected one that ends in .zip" "$ASSAY" predict hpl model.json "$@" --archive hpl.tar
refuse "a folder that is not there" 2 "cannot write into the folder 'no/'" "$ASSAY" predict hpl model.json "$@" --archive no/hpl.zip
refuse "two outputs in one file" 2 "both.zip" "$ASSAY" predict hpl model.json "$@" --archive both.zip -o ./both.zip
printf 'N,NB,P,Q\n2000,64,1,none\n' >wrong.csv
refuse "a wrong table is named, not its copy" 2 "^assay: wrong.csv:2:" "$ASSAY" predict hpl model.json --scenario wrong.csv --archive wrong.zip
report $([ ! -e wrong.zip ] && [ ! -e wrong.zip.part ]; echo $?) "and nothing is left under the archive's name"
is "nor of what was in preparation" "$(ls -A temporary)" ""
for member in models/1-dgemm.json results/results.csv; do
    rm -rf open && mkdir open && "$ASSAY" archive extract hpl.zip -C open >/dev/null
    printf ' ' >>"open/$member"
    if command -v zip >/dev/null; then
        rm -f forged.zip
        (cd open && zip -qrX ../forged.zip ro-crate-metadata.json manifest-sha256.txt run.json .)
        refuse "a forged $member" 5 "member '$member' is not what was sealed" "$ASSAY" archive verify forged.zip
    else skip "a forged $member" "zip is not installed"; fi
done

# A prediction that is interrupted, and one that is killed, while it predicts.
for signal in INT KILL; do
    rm -f begun
    "$ASSAY" predict travel size.json --set size=8 --set "stop=$scratch/begun" --archive stopped.zip >stopped 2>&1 &
    child=$!
    if eventually sh -c "test -e begun || ! kill -0 $child"; then kill -$signal $child; fi
    wait $child; status=$?
    report $([ $status -eq $([ $signal = INT ] && echo 4 || echo 137) ]; echo $?) "SIG$signal ends it"
    report $([ -z "$(ls -d stopped.zip* 2>/dev/null)" ]; echo $?) "and nothing has the archive's name"
    [ $signal != INT ] || is "nor is anything in preparation" "$(ls -A temporary)" ""
done
finish
