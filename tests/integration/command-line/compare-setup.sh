#!/bin/bash
# What differs between two runs beside their results: `assay compare A B --setup`.
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1

cat >toy.yaml <<'E'
name: toy
testbed: local
probes: none
experiment:
  name: toy
  factors: {n: {type: integer}}
  options: {blas: {type: text, default: openblas}, flags: {type: text, default: -O3}, by: {type: integer, default: 1}}
  responses: {y: {pattern: '^y ([0-9.]+)', unit: s}}
  answer: {response: y, best: least}
  run: 'echo y $((n * by)).$repetition'
design: {factors: {n: [1, 2, 3]}, repetitions: 3}
E
run() { "$ASSAY" run toy.yaml -q -o runs "$@" 2>.err || sed 's/^/# /' .err; }
first=$(run --seed 1)
same=$(run --seed 1)
other=$(run --seed 2 --set blas=mkl --set by=3)
setup() { "$ASSAY" compare "$@" --setup; }
lines() { setup "$@" | sed -n '/^setup/,/^$/p' | sed '1d;/^$/d'; } # without the sum

# ---- Archives, where they are
check "two runs of one campaign do not differ" setup "$first" "$same"
report $(output '^setup  0 differences, those that usually matter most first; [0-9]+ alike$'; echo $?) "... in anything"
report $(output '^no difference shown: y changed by \+0 % over 3 settings'; echo $?) "... and their results follow"
export TMPDIR=$scratch/none
is "what differs is sorted by what usually matters; nothing is unpacked" "$(lines "$first" "$other" | sed 's/sha256: .*/sha256/')" \
    "BLAS    options.blas: openblas | mkl
design  options.by: 1 | 3
seed    order_sha256
        seed: 1 | 2"
export TMPDIR=$scratch
is "for programs" "$(setup "$first" "$other" --json | jq -c '[.setup.differences[] | select(.object | test("sha") | not)], .setup.differ, .results.worse')" \
    '[{"kind":"BLAS","object":"options.blas","base":"openblas","new":"mkl"},{"kind":"design","object":"options.by","base":"1","new":"3"},{"kind":"seed","object":"seed","base":"1","new":"2"}]
4
3'
refuse "a run that is worse" 3 "the new run is worse" setup "$first" "$other" --exit-code
is "an archive and a folder" "$(lines "$first" "${other%.zip}")" "$(lines "$first" "$other")"

# ---- Folders of runs, as they would be on machines that differ
edit() { jq "$2" "$1" >edited && mv edited "$1"; }
node() { # node RUN NAME MICROCODE KERNEL TURBO HASH [MOUNT]: facts, controls and software
    mkdir -p "$1/nodes/$2/raw"
    cp "$real_node/facts.json" "$real_node/controls.json" "$1/nodes/$2/"
    edit "$1/nodes/$2/facts.json" ".microcode = \"$3\" | .kernel_release = \"$4\" | .boot_id = \"$RANDOM\" | .host_name = \"$2\" |
        .memory_available_bytes = $RANDOM | .pus = [range(4) | {index: ., core: .}]"
    edit "$1/nodes/$2/controls.json" ".set = [{control: \"turbo\", asked: \"off\", before: \"on\", after: \"$5\", status: \"done\"}] | .found = []"
    edit "$1/software/versions.json" ".nodes[\"$2\"] = {compiler: \"gcc 12.2.0\", packages: {make: \"4.3\"}, programs: [{path: \"/tmp/assay-$RANDOM/work/x\",
        sha256: \"cc\", libraries: [{name: \"libopenblas.so.0\", path: \"/usr/lib/libopenblas.so.0\", sha256: \"$6\"}]}]}"
    printf '/dev/sda1 / ext4 rw\n/dev/sdb1 /tmp ext4 %s\ntmpfs /run\ntmpfs %s\n' "${7:-rw}" "/${7:-rw}" >"$1/nodes/$2/raw/mounts"
    printf '<a>\n<b c="%s"/></a>\n' "${7:-rw}" >"$1/nodes/$2/raw/lstopo.xml"
    printf '0000:00:1f.0/class:0x01\n0000:00:1f.0/device:0x%s\neth0/mtu:1500\n' "$4" >"$1/nodes/$2/raw/pci"
    echo "$RANDOM boot" >"$1/nodes/$2/raw/kernel-log"
    edit "$1/run.json" ".nodes += [\"$2\"]"
}
real_node=$(echo "${first%.zip}"/nodes/*)
made() { # made RUN: a folder of a run without nodes
    cp -r "${first%.zip}" "$1"
    rm -r "$1"/nodes/*
    edit "$1/run.json" '.nodes = []'
    edit "$1/software/versions.json" '.nodes = {}'
}
a=$(printf 'a%.0s' {1..64}) b=$(printf 'b%.0s' {1..64})
for run in base new elsewhere; do made $run; done
for n in 1 2 3; do node base n-$n 0x1 6.1.0-28 off "$a"; done
for n in 1 2; do node new n-$n 0x1 6.1.0-30 on "$b" ro; done
node new n-3 0x2 6.1.0-30 on "$b" ro
for n in 1 2; do node elsewhere m-$n 0x1 6.1.0-28 off "$a"; done
edit new/campaign.resolved.json '.controls.governor = "performance"'
edit new/run.json '.options.flags = "-O2" | .engine.version = "0.2.0"'
edit new/nodes/n-1/facts.json '.pus[3].core = 0'
is "nodes are grouped, and each kind has its place" "$(lines base new | sed 's/pus: 4 (SHA-256 .*|.*(n-1).*/pus: differ/')" \
    "controls   controls.governor: - | performance
           set[turbo].after: off | on
processor  microcode: 0x1 | 0x1 (n-[1-2]), 0x2 (n-3)
           pus: differ
kernel     kernel_release: 6.1.0-28 | 6.1.0-30
BLAS       programs[x].libraries[libopenblas.so.0].sha256: aaaaaaaaaaaa | bbbbbbbbbbbb
compiler   options.flags: -O3 | -O2
other      engine.version: 0.1.0 | 0.2.0
           lstopo.xml: bfd5915cc15f | 3fbff979a530
           mounts[/dev/sdb1]: /tmp ext4 rw | /tmp ext4 ro
           mounts[tmpfs /ro]: - | there
           mounts[tmpfs /rw]: there | -
           pci[0000:00:1f.0/device]: 0x6.1.0-28 | 0x6.1.0-30"
is "on other nodes the values are compared" "$(lines base elsewhere)" "nodes  nodes: n-[1-3] | m-[1-2]"
rm new/nodes/n-[23]/raw/*
for n in 2 3; do
    edit new/nodes/n-$n/facts.json '.shared = ({mounts: "nodes/n-1/raw/mounts", pci: "nodes/n-1/raw/pci", "lstopo.xml": "nodes/n-1/raw/lstopo.xml",
        journal: "journal.jsonl", results: "/etc/passwd", none: 1})'
done
is "files that nodes share are of each of them" "$(lines base new | grep -E 'mounts|pci|xml|journal')" \
    "           lstopo.xml: bfd5915cc15f | 3fbff979a530
           mounts[/dev/sdb1]: /tmp ext4 rw | /tmp ext4 ro
           mounts[tmpfs /ro]: - | there
           mounts[tmpfs /rw]: there | -
           pci[0000:00:1f.0/device]: 0x6.1.0-28 | 0x6.1.0-30"
edit new/software/versions.json 'del(.nodes["n-2"].compiler)'
lines base new >shown
check "a node that lacks what the others have" contains shown '^compiler +compiler: gcc 12.2.0 \| gcc 12.2.0 \(n-\[1,3\]\), - \(n-2\)$'
edit new/software/versions.json '.nodes["n-1"].packages += ([range(50) | {"p\(.)": "1"}] | add)'
lines base new >shown
check "of many differences of a kind 20 are shown" contains shown '^ +the first 20 of 56; --verbose shows all$'
is "... no more" "$(sed -n '/^other/,$p' shown | grep -c ' | ')" 20
is "... and all of them with --verbose" "$(setup base new -v | grep -c 'packages\.p[0-9]*: - | 1 (n-1), - (n-\[2-3\])$')" 50

# ---- What cannot be compared
rm -r elsewhere/nodes elsewhere/results
check "an archive without facts of its nodes" setup base elsewhere
report $(output "^warning: 'elsewhere' does not have nodes/\*/controls.json, nodes/\*/facts.json, nodes/\*/raw/lstopo.xml, nodes/\*/raw/mounts, nodes/\*/raw/pci, so that these facts are not compared$"; echo $?) \
    "... is named, and the rest is compared"
report $(output "^warning: the results are not compared: .*results.csv"; echo $?) "... as are results that are missing"
refuse "three runs" 2 "setup compares two runs, and these are 3; expected two" setup "$first" "$same" "$other"
refuse "one that is not there" 2 "none.zip'?: No such file" setup "$first" none.zip
refuse "a hostile archive" 5 "path-escape.zip" setup "$first" "$ASSAY_SOURCE/archive-format/samples/invalid/path-escape.zip"
echo '{}' >model.json
refuse "a model" 2 "model.json: this is no archive, and others are" setup "$first" model.json
refuse "models" 2 "setup is an option for comparing runs; the inputs are models" setup model.json model.json
printf 'm,n,k,duration\n2,3,1,1\n4,5,6,2\n40,50,20,4\n9,50,20,3\n' >calls.csv
"$ASSAY" fit linear calls.csv --response duration --terms 'm*n*k' --sizes m,n,k -o model.json >.out 2>&1 &&
    "$ASSAY" predict hpl model.json --set P=1 --set Q=1 --set latency=1us --set bandwidth=10GB/s --set N=2000 --set NB=64 --archive predicted.zip >.out 2>&1 ||
    sed 's/^/# /' .out
refuse "a prediction" 2 "setup compares how two runs were made, and one of these is a prediction" setup "$first" predicted.zip
edit base/run.json '.nodes = {}'
long=$(printf 'x%.0s' {1..200})
edit new/run.json ".options.flags = \"$long -O2 $long\""
edit elsewhere/run.json ".options.flags = \"$long -O3 $long\""
report $(lines new elsewhere | grep -qE '^[a-z]* +options.flags: [.]{3} x+ -O2 x+ [.]{3} x+ [|] [.]{3} x+ -O3 x+ [.]{3} x+$'; echo $?) \
    "of long values what differs is shown"
refuse "a run.json that is damaged" 5 "run.json:.*'nodes'" setup base "$first"
finish
