#!/bin/bash
# A run whose nodes came from a list in a file goes on when that is gone, and from another folder; a node that is gone for
# good is replaced by one that whoever resumes the run names, and later parts know of that.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
. "$ASSAY_SOURCE/tests/faults/killed-runs.sh"
command -v cc >/dev/null || plan_skip "no C compiler"
bed_first 4 --names 'node-%'
export ASSAY_PATH=$scratch
write_tick "$scratch"
rows=60
tick_campaign "$scratch/tick" $rows 20000 '{hosts: {file: hosts.txt}, lease: 1h, timeout: 1min}' 'probes: none' 'node-loss: continue'
echo 'node-[1-2] # and no more' >"$scratch/hosts.txt"

for node in 2 3 4; do bed on $node touch /tmp/doomed; done # until they are no longer to be slow
start_engine "$scratch/part" run "$scratch/tick.yaml" --json -o "$scratch/runs"
wait_for_units "$scratch/part" 20
bed reboot 2
wait "$shell_job"
check "a run loses a node: it is partial" test $? -eq 6
bed refuse-logins 2 # and for good
folder=$(find "$scratch/runs" -mindepth 1 -maxdepth 1 -type d)
units_of() { awk -F, -v node="$1" 'NR > 1 && $6 == node' "$folder/results/results.csv" | wc -l; }
check "... the other has all its rows" test "$(units_of node-1)" -eq $rows

check "... and what to do is said" grep -q 'units are left; --spares names others for nodes that are gone for good' \
    <("$ASSAY" status "$folder")

echo 'node-[1,3]' >"$scratch/hosts.txt"
refuse "a list of hosts that was edited is refused" 2 "hosts.txt' has changed at line [0-9]*: .*; expected" \
    bed run "$ASSAY" resume "$folder" -q
echo 'node-1' >"$scratch/hosts.txt"
refuse "... or that lacks one" 2 "hosts.txt' has changed at line 1: was 'node-\[1-2\] # and no more', is 'node-1'" bed run "$ASSAY" resume "$folder" -q
rm "$scratch/hosts.txt"
refuse "a spare that is one of the nodes is refused" 2 "--spares: 'node-1' is both a host and a spare" \
    bed run "$ASSAY" resume "$folder" --spares node-1 -q
refuse "... so is a list that is none" 2 "the spares: the bracket is not closed, at column 6" bed run "$ASSAY" resume "$folder" --spares 'node-[' -q
start_engine "$scratch/part" resume "$folder" --json --spares 'node-[3-4]'
wait_for_units "$scratch/part" $((rows + $(units_of node-2) + 5))
check "resumed without the list, a spare that was named takes its place" test "$(units_of node-3)" -gt 0
kill_engine
bed accept-logins 2
bed on 3 rm /tmp/doomed
bed run "$ASSAY" resume "$folder" -q >"$scratch/out" 2>"$scratch/err"
status=$?
sed 's/^/# /' "$scratch/err"
report $status "killed and resumed, the run knows of its spares: it is whole"
check "... with the whole share of the node that was lost" test "$(units_of node-3)" -eq $rows
check "... in an archive that verifies" "$ASSAY" archive verify "$(cat "$scratch/out")"
tick_campaign "$scratch/local" 2 0 local
refuse "spares are for nodes that ssh reaches" 2 "^assay: --spares .*'local'" "$ASSAY" run "$scratch/local.yaml" --spares node-1 --dry-run
check "they can be named from the beginning, over what the campaign says" \
    grep -q 'spares  *1: node-4' <("$ASSAY" run "$scratch/tick.yaml" --nodes 'node-[1-2]' --spares node-4 --dry-run)
# The campaign's own spare has measured, and stays known beside one more.
tick_campaign "$scratch/old" $rows 20000 '{hosts: node-1, spares: node-2, lease: 1h, timeout: 1min}' 'probes: none'
for node in 1 2; do bed on $node touch /tmp/doomed; done
start_engine "$scratch/part" run "$scratch/old.yaml" --json -o "$scratch/before"
wait_for_units "$scratch/part" 2
bed reboot 1
folder=$(find "$scratch/before" -mindepth 1 -maxdepth 1 -type d)
has_units() { [ "$(units_of "$1")" -gt 0 ]; }
eventually has_units node-2
bed refuse-logins 1
kill_engine
bed on 2 rm /tmp/doomed
bed run "$ASSAY" run "$scratch/old.yaml" --resume --spares node-3 -o "$scratch/before" -q >"$scratch/out" 2>"$scratch/err"
status=$?
sed 's/^/# /' "$scratch/err"
report $status "'run --resume --spares' adds one to those of the campaign: the run is whole"
check "... with the whole share of the node that was lost" test "$(units_of node-2)" -eq $rows
check "... and knows of them from now on" \
    test "$(grep -o 'node-[0-9]' "$folder/campaign.resolved.json" | sort -u | xargs)" = "node-1 node-2 node-3"

# A list that the command line has from a file of the folder that one was in then.
mkdir "$scratch/here"
cd "$scratch/here" || exit 1
echo node-4 >list
start_engine "$scratch/part" run "$scratch/tick.yaml" --json -o "$scratch/given" --nodes @list
wait_for_units "$scratch/part" 3
kill_engine
bed on 4 rm /tmp/doomed
cd / && rm "$scratch/here/list" || exit 1
resume_to_end "a run on --nodes @FILE is resumed from another folder, without the file" "$scratch"/given/tick-*
finish
