#!/bin/bash
# Factors that depend on the machine and on each other: sizes as shares of the memory that is available, and as times.
. "$(dirname "$0")/../tap.sh"
export ASSAY_PATH=$scratch/path
mkdir -p "$ASSAY_PATH/experiments/solver"
cat >"$ASSAY_PATH/experiments/solver/experiment.yaml" <<'E2'
name: solver
factors: # each uses what comes after it
  n: {type: integer, minimum: 1, default: 50%,
      from-share: "round_down(sqrt(share * node_memory * nodes / 8), nb * lcm(p, q))",
      from-time: "round_down((1.5 * time * ranks * rate) ^ (1/3), nb)"}
  q: {type: integer, minimum: 1, default: ranks / p}
  p: {type: integer, minimum: 1, default: grid_rows(ranks)}
  ranks: {type: integer, minimum: 1, default: nodes * node_cores}
  nodes: {type: integer, minimum: 1, default: run_nodes}
  nb: {type: integer, minimum: 1, default: 4}
require: [p * q == ranks]
responses: {answer: {pattern: 'n is ([0-9]+)'}}
options: {rate: {type: number, default: 1e9}, gate: {default: /dev/null}}
run: [sh, -c, 'test -e "$gate" || exit 1; echo "n is $n"']
E2
solve() { sed 's/^/experiment: solver\n/' >"$scratch/c.yaml"; "$ASSAY" run "$scratch/c.yaml" -q -o "$scratch/runs" "$@" 2>"$scratch/err" || sed 's/^/# /' "$scratch/err"; }
field() { grep -ao "\"$1\":[0-9]*" <<<"$2" | cut -d: -f2; } # field NAME JOURNAL-ENTRY
column() { awk -F, -v c="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == c) k = i } NR > 1 { print $k }' "$1"; }
# expected SHARE FACTS: n by whole numbers and awk's own arithmetic.
expected() {
    awk -v share="$1" -v memory="$(field node_memory "$2")" -v cores="$(field node_cores "$2")" 'BEGIN {
        for (p = int(sqrt(cores)); cores % p; p--);
        q = cores / p; a = p; b = q; while (b) { r = a % b; a = b; b = r }
        unit = 4 * p * q / a; print int(int(sqrt(share * memory / 8)) / unit) * unit }'
}

archive=$(solve <<<$'design: {factors: {n: [50%, 12.5%, 1000, 10min]}, order: as-written}')
"$ASSAY" archive cat "$archive" results/results.csv >"$scratch/results.csv"
"$ASSAY" archive cat "$archive" design.csv >"$scratch/design.csv"
facts=$(grep -a '"event":"facts"' <("$ASSAY" archive cat "$archive" journal.jsonl))
check "the facts that were used are journalled, once" test "$(grep -c . <<<"$facts")" -eq 1
is "... of one node" "$(field run_nodes "$facts")" 1
check "... with no more memory than this machine has" test "$(field node_memory "$facts")" -lt "$(awk '/MemTotal/ { printf "%.0f", $2 * 1024 }' /proc/meminfo)"
is "... and the cores that the node says it has" "$(field node_cores "$facts")" \
    "$("$ASSAY" archive cat "$archive" "nodes/$(column "$scratch/results.csv" node | head -1)/facts.json" | sed -n 's/.*"physical_cores_usable":[^0-9]*\([0-9]*\).*/\1/p')"
cores=$(field node_cores "$facts")
is "shares, numbers and times are what their expressions say of these facts" "$(column "$scratch/design.csv" n | xargs)" \
    "$(expected 0.5 "$facts") $(expected 0.125 "$facts") 1000 $(awk -v c="$cores" 'BEGIN { x = int((900e9 * c) ^ (1/3) + 1e-9); print x - x % 4 }')"
is "what was measured is what the design says" "$(column "$scratch/results.csv" answer | xargs)" "$(column "$scratch/design.csv" n | xargs)"
is "the matrix of half of the memory is no larger than that" \
    "$(awk -v n="$(column "$scratch/design.csv" n | head -1)" -v m="$(field node_memory "$facts")" 'BEGIN { x = 8 * n * n / m; print (x <= 0.5 && x > 0.49) }')" 1
is "the resolved campaign has the facts, which are no guesses" \
    "$("$ASSAY" archive cat "$archive" campaign.resolved.json | tr -d ' \n\t' | grep -o '"facts":{[^}]*}' | grep -o "\"node_memory\":.*")" \
    "\"node_memory\":$(field node_memory "$facts"),\"guessed\":false}"
check "the archive is whole" "$ASSAY" archive verify "$archive"

# What the memory is like when the run goes on is of no matter: the parts have the same n.
rm -rf "$scratch/runs"
printf 'experiment: solver\noptions: {gate: %s}\ndesign: {repetitions: 2}\n' "$scratch/gate" >"$scratch/c.yaml"
"$ASSAY" run "$scratch/c.yaml" -q -o "$scratch/runs" >"$scratch/out" 2>&1
folder=$(find "$scratch/runs" -mindepth 1 -maxdepth 1 -type d)
before=$(cat "$folder/design.csv") facts=$(grep -a '"event":"facts"' "$folder/journal.jsonl")
: >"$scratch/gate"
archive=$("$ASSAY" resume "$folder" -q 2>"$scratch/err") || sed 's/^/# /' "$scratch/err"
"$ASSAY" archive cat "$archive" results/results.csv >"$scratch/results.csv"
is "a run that goes on keeps its facts" "$(grep -a '"event":"facts"' <("$ASSAY" archive cat "$archive" journal.jsonl))" "$facts"
is "... and its design" "$("$ASSAY" archive cat "$archive" design.csv)" "$before"
is "... and measures that" "$(column "$scratch/results.csv" answer | xargs)" "$(expected 0.5 "$facts") $(expected 0.5 "$facts")"

# A run that ends before its nodes are inspected has only guessed; the next part plans for what they are.
rm -rf "$scratch/runs"
printf 'experiment: solver\nworkspace: %s\ndesign: {repetitions: 1}\n' "$scratch/workspace" >"$scratch/c.yaml"
: >"$scratch/workspace" # no folder
"$ASSAY" run "$scratch/c.yaml" -q -o "$scratch/runs" >"$scratch/out" 2>&1
folder=$(find "$scratch/runs" -mindepth 1 -maxdepth 1 -type d)
check "a run that does not get to its nodes has no facts" test "$(grep -ac '"event":"facts"' "$folder/journal.jsonl")" -eq 0
echo "n,q,p,ranks,nodes,nb" >"$folder/design.csv"; echo "4,1,1,1,1,4" >>"$folder/design.csv" # another guess
rm "$scratch/workspace"; mkdir "$scratch/workspace"
archive=$("$ASSAY" resume "$folder" -q 2>"$scratch/err") || sed 's/^/# /' "$scratch/err"
facts=$(grep -a '"event":"facts"' "$folder/journal.jsonl")
"$ASSAY" archive cat "$archive" results/results.csv >"$scratch/results.csv"
is "... and when it goes on it measures what they are" "$(column "$scratch/results.csv" answer)" "$(expected 0.5 "$facts")"
is "... which is what its design says then" "$("$ASSAY" archive cat "$archive" design.csv | column /dev/stdin n)" "$(expected 0.5 "$facts")"

printf 'experiment: solver\ndesign: {repetitions: 2}\n' >"$scratch/c.yaml"
dry() { "$ASSAY" run "$scratch/c.yaml" --dry-run; }
check "a dry run says which values are chosen when the nodes are known" grep -qx "When the nodes are known, these are chosen for them: n q p ranks." <(dry)
printf 'experiment: solver\ntestbed: {hosts: "a-[1-3]"}\ndesign: {factors: {p: 5}}\n' >"$scratch/c.yaml"
check "... of other machines, whose cores nobody knows yet, what is refused is known then" grep -q "The experiment's conditions are checked then, too" <(dry)
check "... and how many nodes it takes" grep -q "this plan is for 3 nodes of $cores physical core" <(dry)
printf 'experiment: solver\ndesign: {factors: {n: 100, nodes: 1, ranks: 4}}\n' >"$scratch/c.yaml"
check "a plan without facts says nothing of them" test -z "$(dry | grep -i "facts\|when the nodes")"

bad() { # bad NAME PATTERN: the design on stdin
    sed '1i experiment: solver' >"$scratch/c.yaml"; refuse "$1" 2 "$2" "$ASSAY" run "$scratch/c.yaml" -o "$scratch/runs"
}
bad "a share of what has no meaning for it is refused with its place" "c.yaml:2:24: 'nb' is 80%, expected a whole number of at least 1$" <<<'design: {factors: {nb: [80%]}}'
bad "more than all of it is refused" "c.yaml:2:23: 'n' is 120%, expected .*, or a share such as 80%, or a time such as 10min" <<<'design: {factors: {n: [120%]}}'
bad "a range of shares is refused" "c.yaml:2:23: '10%' in the range of 'n' is not a number" <<<'design: {factors: {n: {from: 10%, to: 80%}}}'
printf 'n,nb\n80%%,4\n5,1\n1000s,2\n10MB,2\n' >"$scratch/d.csv"
check "a CSV file has shares and times, too" test "$(sed '1i experiment: solver' <<<'design: d.csv' >"$scratch/c.yaml"; dry | grep -c 'x 1 repetitions')" -eq 1
printf 'n,nb\n80%%,4\n5,80%%\n' >"$scratch/d.csv"
bad "... and is refused with its place where they mean nothing" "d.csv:3:3: 'nb' is '80%', expected a whole number" <<<'design: d.csv'
printf 'experiment: {name: x, run: [echo], responses: {a: {pattern: "(1)"}}, factors: {node_cores: {type: integer}}}\n' >"$scratch/c.yaml"
refuse "the names of facts are taken" 2 "'node_cores' is already a name that every experiment has" "$ASSAY" run "$scratch/c.yaml" --dry-run
finish
