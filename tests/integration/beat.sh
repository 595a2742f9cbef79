# An experiment for integration tests that hold and fail runs: sourced after tap.sh. ASSAY_PATH is $scratch, TMPDIR in it.
# Unit n = 3 of `beat` waits as long as $scratch/hold is there; n = 9 fails.
#
#   campaign NAME TESTBED N...   $scratch/NAME.yaml: those units, in that order
mkdir -p "$scratch/experiments/beat" "$scratch/tmp"
export ASSAY_PATH=$scratch TMPDIR=$scratch/tmp
cat >"$scratch/experiments/beat/beat.sh" <<'SH'
echo "unit,start,duration"
read -r _
while IFS=, read -r unit n; do
    [ "$n" != 9 ] || { echo "beat: out of beats" >&2; exit 5; }
    while [ "$n" = 3 ] && [ -e "$1" ]; do sleep 0.05; done
    echo "$unit,$(date +%s%N),0.$n"
done
SH
cat >"$scratch/experiments/beat/experiment.yaml" <<'YAML'
name: beat
factors: {n: {type: integer, minimum: 0, maximum: 9}}
responses: {duration: {unit: s}}
options: {hold: {type: text, default: none}}
run: {streamed: [sh, ./beat.sh, "{hold}"], placement: node}
YAML
campaign() {
    local name=$1 testbed=$2; shift 2
    printf '%s\n' n "$@" >"$scratch/$name.csv"
    printf '%s\n' "name: $name" "experiment: beat" "testbed: $testbed" "probes: none" "gates: none" "options: {hold: $scratch/hold}" \
        "design: {file: $name.csv, order: as-written}" >"$scratch/$name.yaml"
}
