#!/bin/bash
# The main job, small: a dgemm campaign on this machine, its archive, its model, a prediction.
. "$(dirname "$0")/../tap.sh"
command -v cc >/dev/null || plan_skip "no C compiler, which the dgemm experiment needs on a node"
ldconfig -p | grep -q libopenblas || plan_skip "no OpenBLAS, which the dgemm experiment needs"

export TMPDIR=$scratch/tmp
mkdir "$TMPDIR"
cat >"$scratch/campaign.yaml" <<'E2'
name: small
experiment: dgemm
design: {generate: uniform-product, factors: [m, n, k], max-product: 1e7, max-size: 600, products: 5, batch: 2, repetitions: 2, seed: 42}
E2
cores=$(lscpu -p=CORE,SOCKET,ONLINE 2>/dev/null | grep -v '^#' | sort -u | wc -l)

"$ASSAY" run "$scratch/campaign.yaml" --dry-run -o "$scratch/none" >"$scratch/plan"
report $? "the dry run prints the plan"
check "... with units and seed" grep -qE 'rows x 2 repetitions.*seed 42' "$scratch/plan"
check "... and the kernel's command" grep -q './dgemm --blas openblas' "$scratch/plan"
check "... memory has a unit" grep -qE 'Memory: [0-9.]+ [KMGT]?i?B a process' "$scratch/plan"
check "... time has a unit" grep -qE 'Time to measure: about [0-9.]+ (ns|us|ms|s|min)' "$scratch/plan"
check "... and touches nothing" test ! -e "$scratch/none"

"$ASSAY" run "$scratch/campaign.yaml" -o "$scratch/runs" >"$scratch/out" 2>"$scratch/err"
status=$?
[ $status -eq 0 ] || sed 's/^/# /' "$scratch/err"
report $status "the campaign runs"
archive=$(cat "$scratch/out")
check "standard output is the archive's path, and nothing else" test -f "$archive"
check "the archive verifies" "$ASSAY" archive verify "$archive"
check "progress was shown in plain lines" grep -qE '[0-9]+ of [0-9]+ units \(100.0 %\)' "$scratch/err"

"$ASSAY" archive cat "$archive" results/results.csv >"$scratch/results.csv"
"$ASSAY" archive cat "$archive" design.csv >"$scratch/design.csv"
rows=$(($(wc -l <"$scratch/design.csv") - 1))
units=$(($(wc -l <"$scratch/results.csv") - 1))
check "every unit has its line: rows x repetitions x cores" test "$units" -gt 0 -a $((units % (rows * 2))) -eq 0
check "... one core at least, and no more than the machine has" test $((units / (rows * 2))) -le "${cores:-1024}"
check "the header is the documented one" \
    grep -qx 'row,repetition,order,block,attempt,node,core,start,start_monotonic,m,n,k,lda,ldb,ldc,duration,state.frequency,state.temperature,state.flags' <(head -1 "$scratch/results.csv")
check "no unit is there twice" \
    test "$(tail -n +2 "$scratch/results.csv" | cut -d, -f1,2,6,7 | sort -u | wc -l)" -eq "$units"
check "durations are positive and starts are of today" \
    awk -F, -v from="$(date -u -d '1 hour ago' +%FT%TZ)" -v to="$(date -u -d '1 second' +%FT%TZ)" '
        NR>1 && !($4==1 && $16>0 && $8 ~ /^....-..-..T..:..:..\.[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]Z$/ && $8>from && $8<to) {bad=1} END {exit bad}' "$scratch/results.csv"
check "monotonic starts follow each other on each core by what each unit took, at least" \
    awk -F, 'NR>1 && $7==core && $9 < last {bad=1} {core=$7; last=$9+$16*1e9-1} END {exit bad || NR<2}' <(sort -t, -k7,7 -k3,3n "$scratch/results.csv")
check "the factors are the design's" \
    awk -F, 'NR==FNR {if (FNR>1) d[FNR-1]=$0; next} FNR>1 && d[$1] != $10","$11","$12","$13","$14","$15 {bad=1} END {exit bad}' \
    "$scratch/design.csv" "$scratch/results.csv"
check "without controls there is one block, journalled at both ends" test "$("$ASSAY" archive cat "$archive" journal.jsonl |
    grep -oE '"event":"block-(started","block":1,"first":1,"last":[0-9]+|ended","block":1,"status":"done"),' | sort | tr -d '\n')" = \
    "\"event\":\"block-ended\",\"block\":1,\"status\":\"done\",\"event\":\"block-started\",\"block\":1,\"first\":1,\"last\":$((units / cores)),"
check "the order is not the table's" \
    awk -F, 'NR>1 && $1 < last {shuffled=1} {last=$1} END {exit !shuffled}' "$scratch/results.csv"
check "each core was measured in the recorded order" \
    awk -F, 'NR>1 {if ($3 != seen[$7]+1) bad=1; seen[$7]=$3} END {exit bad}' "$scratch/results.csv"

"$ASSAY" archive cat "$archive" run.json >"$scratch/run.json"
check "run.json has the seed and the generator" grep -q '"seed": *"42"' "$scratch/run.json"
check "... and the status" grep -q '"status": *"completed"' "$scratch/run.json"
check "the campaign is there byte for byte" cmp <("$ASSAY" archive cat "$archive" campaign.yaml) "$scratch/campaign.yaml"
check "the BLAS is named, with its hash" \
    grep -qE '"name":"blas_library","path":"[^"]*","sha256":"[0-9a-f]{64}"' <("$ASSAY" archive cat "$archive" software/versions.json | tr -d ' \n')
check "the archive's README says what the machine is" grep -qE 'facts.json`: .+, [0-9]+ physical cores, [0-9.]+ [MGT]iB of memory, Linux ' \
    <("$ASSAY" archive cat "$archive" README.md)
check "every column has a role and the response its unit" \
    grep -q '"unit": *"s"' <("$ASSAY" archive cat "$archive" datapackage.json)
check "nothing of the agent's is left" test -z "$(ls -A "$TMPDIR")"

"$ASSAY" run "$scratch/campaign.yaml" -q -o "$scratch/runs" >"$scratch/out2" 2>/dev/null
"$ASSAY" archive cat "$(cat "$scratch/out2")" results/results.csv >"$scratch/again.csv"
check "the same seed gives the same units in the same order" \
    cmp <(cut -d, -f1-3,7,10-15 "$scratch/results.csv" | sort -t, -k4,4 -k3,3n) <(cut -d, -f1-3,7,10-15 "$scratch/again.csv" | sort -t, -k4,4 -k3,3n)

check "the archive alone is enough to fit" "$ASSAY" fit "$archive" -o "$scratch/suggested.json"
check "the model names its archive" grep -q "$(sha256sum "$archive" | cut -c1-64)" "$scratch/suggested.json"
# A busy machine can make small products look free; a time for each operation and nothing else is above 0 whatever it does.
check "a simpler model of the same archive" "$ASSAY" fit "$archive" --terms 'm*n*k' --by node -o "$scratch/model.json"
check "a prediction comes out of the model" \
    "$ASSAY" predict hpl "$scratch/model.json" --set N=5000 --set NB=128 --set P=1 --set Q=2 --set latency=1us --set bandwidth=10GB/s -o "$scratch/prediction.csv"
check "... with a time" awk -F, 'NR==1 {for (i=1;i<=NF;i++) if ($i=="time") t=i} NR==2 {exit !(t && $t>0)}' "$scratch/prediction.csv"

# The script that the README begins with.
check "examples/quickstart.sh says what it does" grep -q -- '--assay PROGRAM  with' <("$ASSAY_SOURCE/examples/quickstart.sh" --help)
refuse "... refuses what it does not know" 2 "there is no option '--smal'" "$ASSAY_SOURCE/examples/quickstart.sh" --smal
(cd "$scratch" && "$ASSAY_SOURCE/examples/quickstart.sh" --small --assay "$ASSAY" quick) >"$scratch/quickstart" 2>"$scratch/err" ||
    tail -n 20 "$scratch/err" "$scratch/quickstart" | sed 's/^/# /'
archive=$(sed -n 's/^  archive *//p' "$scratch/quickstart")
check "... calibrates, and seals" "$ASSAY" archive verify "${archive:-none}"
check "... fits" "$ASSAY" model check "$(sed -n 's/^  model *//p' "$scratch/quickstart")"
check "... and predicts HPL of three sizes" \
    awk -F, 'NR==1 {for (i=1;i<=NF;i++) if ($i=="time") t=i} NR>1 && $t>0 {n++} END {exit n!=3}' "$(sed -n 's/^  prediction *//p' "$scratch/quickstart")"
# Its comparison with HPL, by a made-up assay whose rows are flagged as FAKE_HPL and FAKE_DGEMM say: some, or all.
mkdir "$scratch/fake"
printf '#!/bin/sh\n' | tee "$scratch/fake/hpcc" >"$scratch/fake/mpirun"
cat >"$scratch/fake/assay" <<'E2'
#!/bin/bash
rows() { # rows COLUMN FLAGGED VALUE...
    echo "$1,time,state.flags"
    for value in "${@:3}"; do case $2,$((++row)) in all,* | some,1) echo "$value,2,load" ;; *) echo "$value,2," ;; esac; done
}
output() { while [ "$1" != -o ]; do shift; done; echo "$2"; }
case $1 in
run)
    archive=$(output "$@")/dgemm.zip
    case $2 in *hpl.yaml) archive=${archive%dgemm.zip}hpl.zip && sed -n 's/.*{N: \[\(.*\)\], NB.*/\1/p' "$2" | tr -d , >"$archive" ;; *) : >"$archive" ;; esac
    echo "$archive" ;;
archive) [ "$2" != cat ] || case $3 in *hpl.zip) rows N "$FAKE_HPL" $(cat "$3") ;; *) rows m "$FAKE_DGEMM" 1 2 3 4 ;; esac ;;
predict) awk -F, -v OFS=, 'NR == 1 {print "N", "time"} NR > 1 {print $2, 1}' "${@:5:1}" >"$(output "$@")" ;;
esac
E2
chmod +x "$scratch"/fake/*
compared() { # compared HPL DGEMM: what it prints of the comparison
    (cd "$scratch" && FAKE_HPL=$1 FAKE_DGEMM=$2 PATH=$scratch/fake:$PATH "$ASSAY_SOURCE/examples/quickstart.sh" --small --assay "$scratch/fake/assay" "compared-$1-$2") |
        sed -n '/^== Run HPL/,/^== Where/p' >"$scratch/compared"
}
says() { grep -qE "$1" "$scratch/compared"; }
compared some some
check "... compares with HPL: flagged rows are left out on both sides, and counted" \
    says '^flagged by gates: 1 of 3 rows of HPL, 1 of 4 rows of dgemm; they are left out on both sides$'
check "... of the others the ratio is printed" test "$(grep -cE '^ +[0-9]+ +1 +2 +0\.5$' "$scratch/compared")" -eq 2
check "... and of a flagged one none" says '^ +[0-9]+ +1 +flagged +-$'
check "... without a doubt" test "$(grep -c 'cannot be trusted' "$scratch/compared")" -eq 0
compared all some
check "... where all of HPL is flagged, the model is fitted with flagged rows, too" says '^\$ .*/assay fit .* --with-flagged '
check "... they are used on both sides" says '^flagged by gates: 3 of 3 rows of HPL, 1 of 4 rows of dgemm; they are used on both sides$'
check "... and it cannot be trusted" says '^This comparison cannot be trusted: the machine was disturbed during every row of HPL'
compared some all
check "... likewise where all of dgemm is" says '^This comparison cannot be trusted: .* every row of dgemm'
check "... every row of HPL has a ratio then" test "$(grep -cE '^ +[0-9]+ +1 +2 +0\.5$' "$scratch/compared")" -eq 3

"$ASSAY" run "$scratch/campaign.yaml" --json --set processes=node -o "$scratch/runs" >"$scratch/events" 2>"$scratch/err"
report $? "one multi-threaded process runs too"
check "... and --json prints one event a line" \
    test "$(grep -c '^{.*"event":.*}$' "$scratch/events")" -eq "$(wc -l <"$scratch/events")"
archive=$(sed -n 's/.*"event":"sealed","text":"\([^"]*\)".*/\1/p' "$scratch/events")
check "... its core is 'all'" \
    awk -F, 'NR>1 && $7!="all" {bad=1} END {exit bad || NR<2}' <("$ASSAY" archive cat "$archive" results/results.csv)
refuse "a BLAS that is not installed is named, with what was tried" 3 "cannot load BLAS.*libnosuchblas" \
    "$ASSAY" run "$scratch/campaign.yaml" --set blas=/nowhere/libnosuchblas.so -o "$scratch/noblas"
check "... before anything is measured" test "$("$ASSAY" archive cat "$scratch"/noblas/*.zip results/results.csv | wc -l)" -eq 0
refuse "an option out of range" 2 "option 'mask' is '54', expected a whole number from 0 to 53" \
    "$ASSAY" run "$scratch/campaign.yaml" --set mask=54 -o "$scratch/noblas"
finish
