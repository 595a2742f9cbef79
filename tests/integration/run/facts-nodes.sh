#!/bin/bash
# Factors that depend on nodes which are other machines than the one that the campaign is started on.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
bed_first 2 --names 'node-%'
core=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
campaign() { # campaign P
    cat >"$scratch/c.yaml" <<E2
experiment:
  name: grid
  factors:
    q: {type: integer, minimum: 1, default: run_nodes * node_cores / p}
    p: {type: integer, minimum: 1}
  require: [q > 1]
  run: {placement: job, command: 'echo "grid \$p x \$q"'}
  responses: {columns: {pattern: 'grid [0-9]+ x ([0-9]+)'}}
design: {factors: {p: $1}}
provenance: full
E2
}
# The front end has one core: what it guesses is wrong, and nobody is refused for that.
run_there() { bed run taskset -c "$core" "$ASSAY" run "$scratch/c.yaml" --nodes 'node-[1-2]' -q -o "$scratch/runs"; }
campaign 1
archive=$(run_there 2>"$scratch/err") || sed 's/^/# /' "$scratch/err"
facts=$(grep -a '"event":"facts"' <("$ASSAY" archive cat "$archive" journal.jsonl))
cores=$("$ASSAY" archive cat "$archive" nodes/node-2/facts.json | sed -n 's/.*"physical_cores_usable":[^0-9]*\([0-9]*\).*/\1/p')
check "the facts are those of the nodes" grep -q "\"run_nodes\":2,\"node_cores\":$cores," <<<"$facts"
is "... and so are the rows" "$("$ASSAY" archive cat "$archive" design.csv)" "$(printf 'q,p\n%d,1' $((2 * cores)))"
is "... which the nodes have measured together" "$("$ASSAY" archive cat "$archive" results/results.csv | cut -d, -f6,10-12 | sort)" \
    "$(printf 'node,q,p,columns\nnode-[1-2],%d,1,%d' $((2 * cores)) $((2 * cores)))"
large=$("$ASSAY" archive list "$archive" | awk '$1 >= 1024 && sub(".*/raw/", "", $NF) { print $NF }' | sort | uniq -d | xargs)
check "what both nodes have is kept once: no list of packages comes twice" test "${large/packages/}" = "$large" -a -n "$("$ASSAY" archive cat "$archive" nodes/node-1/raw/packages)"
is "... and the other node says where" "$("$ASSAY" archive cat "$archive" nodes/node-2/facts.json | grep -o '"packages": *"[^"]*"' | cut -d'"' -f4)" nodes/node-1/raw/packages
campaign $((4 * cores))
check "what this machine could not have is no matter before the nodes are known" bed run "$ASSAY" run "$scratch/c.yaml" --nodes 'node-[1-2]' --dry-run
refuse "a row that the nodes cannot have is refused when they are" 2 "c.yaml:9:9: row 1 of the design: the default of 'q', run_nodes \* node_cores / p, is 0.5 in this row, expected a whole number" run_there
campaign $((2 * cores))
refuse "... as is one that breaks a condition with them" 2 "c.yaml:9:9: row 1 of the design: q 1, p $((2 * cores)); expected q > 1" run_there
check "nothing of it was measured" test "$(cat "$scratch"/runs/*/journal.jsonl | grep -ac '"event":"results".*"units_done":[1-9]')" -eq 1

# A source that only one node has: all nodes build the copy, and so does who runs the archive again without it.
mkdir -p "$scratch/experiments/there"
cat >"$scratch/experiments/there/experiment.yaml" <<'Y'
name: there
options: {code: {type: text, default: none}}
sources: [code]
run: {placement: node, command: [sh, -c, 'cat "$code/src/value"; "$code/show"']}
responses: {value: {pattern: '^([0-9]+)'}}
Y
printf 'experiment: there\nprobes: none\ndesign: {repetitions: 1}\n' >"$scratch/there.yaml"
bed on 1 sh -c 'mkdir -p "$HOME/only/src" && echo 6 >"$HOME/only/src/value" && printf "#!/bin/sh\necho shown\n" >"$HOME/only/show" && chmod +x "$HOME/only/show" && ln -s /etc "$HOME/only/link"'
home=$(bed on 1 sh -c 'echo "$HOME"')
there() { bed run env ASSAY_PATH="$scratch" "$ASSAY" run "$@" -q -o "$scratch/there" 2>"$scratch/err" || sed 's/^/# /' "$scratch/err"; }
if [ -e "$home/only" ]; then skip "a source on one node" "nodes have this machine's files"; finish; fi
archive=$(there "$scratch/there.yaml" --nodes 'node-[1-2]' --set code="$home/only")
values() { "$ASSAY" archive cat "${archive:-none}" results/results.csv | cut -d, -f6,10 | sort | xargs; }
is "a source that one node has is built by all" "$(values)" "node,value node-1,6 node-2,6"
is "... the archive has it, without links" "$("$ASSAY" archive list "$archive" | awk '$NF ~ "^inputs/" { print $NF }' | xargs)" "inputs/code/show inputs/code/src/value"
is "... and where it came from" "$("$ASSAY" archive cat "$archive" software/sources.json | tr -d ' \n' | grep -o '"written":[^,]*\|"node":[^,]*' | xargs)" "written:$home/only node:node-1"
bed on 1 rm -rf only
archive=$(there "$archive")
is "... from which it is run again when it is gone" "$(values)" "node,value node-1,6 node-2,6"
finish
