#!/bin/bash
# A run is run again from its archive: with its own sources, wherever the originals are, on this testbed or another; what
# differs is reported before the first unit, and the new archive names the one that it repeats.
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1

# An experiment in the folder of its campaign, with a source, a program and an input; units fail until $scratch/go is there.
mkdir -p beat source
cat >beat/experiment.yaml <<'E'
name: beat
factors: {n: {type: integer}}
options: {by: {type: integer, default: 1}, table: {type: text, default: ../data.txt}}
inputs: [table]
source: {folder: ../source}
setup: [[sh, build.sh]]
run: ../experiment/beat.sh
responses: {y: {unit: s, pattern: '^y ([0-9.]+)'}}
answer: {response: y, best: least}
design: {generate: factorial, factors: {n: [1, 2]}, repetitions: 2}
E
printf '#!/bin/sh\ntest -e %s/go && echo "y $(cat built)$((n * by)).$repetition"\n' "$scratch" >beat/beat.sh
chmod +x beat/beat.sh
echo 'cp offset.txt built' >source/build.sh
echo 3 >source/offset.txt
echo data >data.txt
printf 'experiment: ./\nname: beat\nprobes: none\nstop-after-failures: 1\ntestbed: {hosts: nowhere.invalid}\n' >beat/c.yaml
values() { "$ASSAY" archive cat "$1" results/results.csv | awk -F, 'NR > 1 {print $11}' | sort | xargs; }
of_run() { "$ASSAY" archive cat "$1" run.json | jq -c "$2"; }
sources() { unzip -p "$1" manifest-sha256.txt | grep -E '  (source.tar|design.csv|experiment/|inputs/|software/source-)'; }

touch go
first=$("$ASSAY" run beat/c.yaml --testbed local --seed 5 -q -o runs 2>err) || sed 's/^/# /' err
is "--testbed stands for the campaign's" "$(of_run "$first" '.testbed, .based_on')" '"local"
null'
hash=$(sha256sum <"$first") id=$(of_run "$first" .run_id)
refuse "one that is none" 2 "testbed:1:1: there is no testbed 'loca'; did you mean 'local'" "$ASSAY" run beat/c.yaml --testbed loca
refuse "... nor YAML" 2 "testbed:2:1: did not find expected" "$ASSAY" run beat/c.yaml --testbed '{local'
refuse "... beside --nodes" 2 "nodes makes the testbed 'hosts', and --testbed names one; expected one of them" \
    "$ASSAY" run beat/c.yaml --testbed local --nodes n-1
mv beat moved && rm -r source data.txt

again=$("$ASSAY" run "$first" -o again 2>err) || sed 's/^/# /' err
is "an archive is run again where its originals are gone" "$(values "$again")" "31.1 31.2 32.1 32.2"
is "... with the sources, the input and the design that it has" "$(sources "$again")" "$(sources "$first")"
check "... which are there" test "$(sources "$first" | wc -l)" -ge 5
is "it names the run that it repeats" "$(of_run "$again" .based_on)" \
    "{\"run_id\":$id,\"archive\":\"$(basename "$first")\",\"sha256\":\"${hash%% *}\"}"
is "... as does its crate" "$("$ASSAY" archive cat "$again" ro-crate-metadata.json |
    jq -c '."@graph" | (.[] | select(."@id" == "./") | .isBasedOn), (.[] | select(."@id" == "#based-on") | .name, .identifier, .sha256)')" \
    "{\"@id\":\"#based-on\"}
\"$(basename "$first")\"
\"urn:uuid:$(jq -r . <<<"$id")\"
\"${hash%% *}\""
check "nothing is different here" contains err "^  nodes, controls, kernel, BLAS and compiler are as in '$(basename "$first")', as far as both are known$"
check "... by both archives, too" "$ASSAY" compare "$first" "$again" --setup
report $(output '^setup  0 differences'; echo $?) "... of which all is alike"
check "the plan names it" contains <("$ASSAY" run "$first" --dry-run) "^again +$(basename "$first"), run $(jq -r . <<<"$id"); what is not as it was"
refuse "on another testbed" 2 "nowhere.invalid" "$ASSAY" run "$first" --testbed '{hosts: nowhere.invalid}' -q -o again

# The folder of a run, as if it had been measured on another machine.
cp -r "${first%.zip}" theirs
for facts in theirs/nodes/*/facts.json; do
    jq '.microcode = "0x77" | .kernel_release = "5.10.0-theirs"' "$facts" >edited && mv edited "$facts"
done
for controls in theirs/nodes/*/controls.json; do
    jq '.found += [{control: "turbo-of-theirs", status: "available"}] | .driver = "intel_pstate"' "$controls" >edited && mv edited "$controls"
done
jq '(.nodes[].libraries) = [{name: "libblas.so.3", sha256: "ab"}] | (.nodes[].compiler) = "gcc 1.0"' theirs/software/versions.json >edited && mv edited theirs/software/versions.json
jq '.nodes = ["dahu-1", "dahu-2"]' theirs/run.json >edited && mv edited theirs/run.json
third=$("$ASSAY" run theirs/campaign.yaml -o again 2>err) || sed 's/^/# /' err
before=$(sed '/^measure/q' err)
check "what is different is reported before the first unit" contains <(echo "$before") "^  not as in 'theirs': microcode: 0x77 \| "
check "... the kernel" contains <(echo "$before") "^  not as in 'theirs': kernel_release: 5.10.0-theirs \| $(uname -r)$"
check "... the nodes" contains <(echo "$before") "^  not as in 'theirs': nodes: dahu-\[1-2\] \| "
check "... the compiler" contains <(echo "$before") "^  not as in 'theirs': compiler: gcc 1.0 \| "
check "... the controls" contains <(echo "$before") "^  not as in 'theirs': driver: intel_pstate \| "
is "... but not what is only known when kernels have run" "$(grep -c libblas err)" 0
check "... and is in the archive" contains <("$ASSAY" archive cat "$third" journal.jsonl) "\"note\",\"sentence\":\"not as in 'theirs': microcode"
is "a folder has no hash" "$(of_run "$third" '.based_on')" "{\"run_id\":$id,\"archive\":\"theirs\"}"

# In parts: what it repeats is not forgotten, also when that is gone.
cp "$first" copy.zip
rm go
refuse "a run again that fails" 3 "1 units in a row failed" "$ASSAY" run copy.zip -q -o parts
rm copy.zip
touch go
"$ASSAY" resume parts/*/ >out 2>err || sed 's/^/# /' err
is "a later part names it as well" "$(of_run "$(head -1 out)" '.parts[-1].status, .based_on.archive')" '"completed"
"copy.zip"'
check "... and its crate" contains <("$ASSAY" archive cat "$(head -1 out)" ro-crate-metadata.json) '"name":.*"copy.zip"'
check "... and that it cannot be compared any more" contains err "^  the run that is repeated cannot be compared with this one: .*copy.zip"
folder=$("$ASSAY" run "$first" --detach -q -o detached 2>err) || sed 's/^/# /' err
check "a detached run" "$ASSAY" watch "$folder" -q
is "... names it, too" "$(of_run "$folder.zip" .based_on.run_id)" "$id"

# An archive that was extracted.
"$ASSAY" archive extract "$first" -C extracted >/dev/null
run_extracted() { values "$("$ASSAY" run extracted/campaign.yaml -q -o from-extracted "$@" 2>err || sed 's/^/# /' err)"; }
is "runs as it is" "$(run_extracted)" "31.1 31.2 32.1 32.2"
"$ASSAY" archive extract "$first" -C edited-archive >/dev/null
echo 'options: {by: 2}' >>edited-archive/campaign.yaml
sed -i s/^testbed.*/testbed:\ local/ edited-archive/campaign.yaml
edited=$("$ASSAY" run edited-archive/campaign.yaml -q -o from-extracted --set table=inputs/table/data.txt 2>err) || sed 's/^/# /' err
is "... or edited, with its own experiment, programs and source" "$(values "$edited")" "32.1 32.2 34.1 34.2"
is "... and names the run" "$(of_run "$edited" '.based_on.run_id, .options.by')" "$id
\"2\""
finish
