#!/bin/bash
# What is no file is refused by name, and pipes are read where nothing has to be read twice.
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
export ASSAY_PATH=$scratch/own
mkdir -p own/plugins own/experiments/piped inputs
mkfifo fifo own/plugins/fit-piped.so own/experiments/piped/experiment.yaml
printf 'x,y\n1,5\n2,7\n3,10\n4,11\n' >calls.csv
"$ASSAY" fit calls.csv -y y --terms 1+x --by none -o model.json >/dev/null
{ echo n; seq 1 3; } >rows.csv
experiment="experiment: {name: x, factors: {n: {}}, run: [echo, '{n}'], responses: {a: {pattern: '([0-9]+)'}}}"
printf '%s\n' "$experiment" 'design: rows.csv' >campaign.yaml

# ---- Files alone: they are read more than once, or something is found beside them
only_file="'.*' is a (pipe|device); expected a file$"
for name in fifo /dev/zero; do
    refuse "a campaign: $name" 2 "$only_file" "$ASSAY" run "$name"
done
refuse "... from a process" 2 "$only_file" "$ASSAY" run <(cat campaign.yaml)
refuse "a document with a design" 2 "$only_file" "$ASSAY" design --from /dev/zero
refuse "a plugin" 2 "$only_file" "$ASSAY" fit piped calls.csv -y y
printf 'experiment: piped\ndesign: rows.csv\n' >piped.yaml
refuse "an experiment" 2 "$only_file" "$ASSAY" run piped.yaml
printf '%s\n' "$experiment" 'design: rows.csv' 'testbed: {hosts: {file: /dev/zero}}' >hosts.yaml
refuse "hosts that a campaign names" 2 "is a device" "$ASSAY" run hosts.yaml -o runs

# ---- Files or pipes
printf '%s\n' "$experiment" 'design: /dev/zero' >zero.yaml
refuse "a device as a design" 2 "'/dev/zero' is a device; expected a file or a pipe" "$ASSAY" run zero.yaml
for arguments in "fit FILE -y y" "report FILE" "model show FILE" "nodes run -w @FILE -- true" "nodes run -w x --input FILE -- true"; do
    refuse "a device: ${arguments}" 2 "'/dev/zero' is a device; expected a file or a pipe" "$ASSAY" ${arguments//FILE//dev/zero}
done
refuse "a FIFO that nobody writes to" 2 "'fifo' is a pipe to which nothing is written \(waited for 5 s\); start" "$ASSAY" fit fifo -y y
(cat calls.csv >fifo) &
check "a FIFO with a writer is read" "$ASSAY" fit fifo -y y --terms 1+x --by none
wait $!
check "a model from a process" "$ASSAY" model show <(cat model.json)
check "... to predict with it" "$ASSAY" export kernels a=<(cat model.json)
check "a table from a process is a design" "$ASSAY" design --from <(cat rows.csv) --seed 1
finish
