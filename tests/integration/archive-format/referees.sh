#!/bin/bash
# Archives of every kind and end, as other programs see them: unzip, sha256sum, Python's zipfile, and the libraries `ro-crate` and
# `datapackage` of the npm registry, which are for development only:
#     npm install --prefix FOLDER ro-crate datapackage; NODE_PATH=FOLDER/node_modules tests/run.sh --only integration-archive-format-referees
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
export TMPDIR=$scratch/temporary
mkdir temporary

# ---- Archives ---------------------------------------------------------------------------------------------------
# campaign NAME COMMAND STATUS: a run of COMMAND by factor and word, which exits with STATUS, as NAME.zip. The file `engine` has the
# number of its process.
campaign() {
    cat >campaign.yaml <<YAML
name: $1
author: "Josiah Carberry <https://orcid.org/0000-0002-1825-0097>"
license: https://creativecommons.org/licenses/by/4.0/
testbed: local
probes: {frequency: 50ms}
experiment:
  name: $1
  factors: {a: {type: integer}, word: {type: text}}
  responses: {rate: {pattern: '^rate ([0-9.]+)', unit: Gflop/s}}
  answer: {response: rate, best: most}
  run: '$2'
design: {factors: {a: [1, 2], word: ["x,y", 'b"c']}, repetitions: 2}
YAML
    sh -c 'echo $$ >engine; exec "$0" run campaign.yaml -o runs' "$ASSAY" >archive 2>err
    equal $? "$3" && mv "$(cat archive)" "$1.zip"
}
check "a complete run" campaign complete 'echo rate $((100 * a))' 0
check "a run whose units fail" campaign failed 'exit 3' 3
check "a run that is interrupted" campaign interrupted "kill -INT \$(cat $scratch/engine); echo rate 1" 4
printf 'rows,duration (ms)\n10,1.5\n20,2.5\n' >times.csv
check "an import" "$ASSAY" archive import csv times.csv -o import.zip
check "a prediction" "$ASSAY" predict roofline --set flops=1e9,2e9 --set bytes=1e9 --set peak-flops=1e11 --set peak-bandwidth=1e10 --archive prediction.zip

is "how they ended" "$(for name in complete failed interrupted import prediction; do "$ASSAY" archive verify $name.zip | sed 's/.*: verified: \([a-z]* [a-z]*\).*/\1/'; done | tr '\n' ' ')" \
    "completed run failed run interrupted run completed import completed prediction "
check "README.md begins with the result" sh -c '"$1" archive cat complete.zip README.md | head -6 | grep -q "^    complete by rate, more is better: 4 settings"' - "$ASSAY"
check "and then flags and failures" sh -c '"$1" archive cat failed.zip README.md | grep -q "^- Failures: of 8 units, 3 failed and 5 were not measured"' - "$ASSAY"

# ---- Referees ---------------------------------------------------------------------------------------------------
if command -v node >/dev/null && node -e 'require("ro-crate/lib/validator"); require("datapackage")' 2>/dev/null; then
    judge() { node "$(dirname "$test_script")/referees.js" "$@"; }
    has_node=1
else has_node=; fi
for name in complete failed interrupted import prediction; do
    if command -v unzip >/dev/null; then
        check "$name: unzip takes it" unzip -q $name.zip -d $name
        check "$name: sha256sum finds every file as it was" sh -c "cd $name && sha256sum --quiet -c manifest-sha256.txt"
    else
        skip "$name: unzip takes it" "unzip is not installed"
        "$ASSAY" archive extract $name.zip -C $name >/dev/null
    fi
    if command -v python3 >/dev/null; then
        check "$name: so does Python" python3 -c 'import sys, zipfile; sys.exit(zipfile.ZipFile(sys.argv[1]).testzip() is not None)' $name.zip
    else skip "$name: so does Python" "python3 is not installed"; fi
    if [ "$has_node" ]; then check "$name: ro-crate and datapackage find no error" judge $name
    else skip "$name: ro-crate and datapackage find no error" "node, or its packages ro-crate and datapackage, are not there"; fi
done
if [ "$has_node" ]; then
    judge complete >judged
    check "each row is read" contains judged '^results/results.csv: 8 rows$'
    sed -i 's/^\(1,1,[0-9]*,1,\)1,/\1x,/' complete/results/results.csv
    sed -i 's/"@id": "logs\/"/"@id": "elsewhere\/"/; s/"datePublished"/"published"/' complete/ro-crate-metadata.json
    judge complete >judged
    check "and a wrong one is found" contains judged 'The value "x" in column "attempt" is not type "integer"'
    check "as are files that are not there" contains judged 'does not exist elsewhere/'
    check "and what a crate must have" contains judged 'Missing required property: datePublished'
else skip "each row is read" "node, or its packages ro-crate and datapackage, are not there"; fi
finish
