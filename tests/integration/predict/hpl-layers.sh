#!/bin/bash
# predict hpl-layers: Table 5 of its paper by one command, models of this machine, and what is refused.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/../made-run.sh"
cd "$scratch" || exit 1
export ASSAY
below() { awk -v figure="$1" -v most="$2" '$2 == figure { found = 1; bad = !($3 <= most) } END { exit !found || bad }' .out || { grep figure .out >&2; return 1; }; }

check "Table 5 by one command" "$ASSAY_SOURCE/examples/predict-hpl-layers/table5.sh"
report $(below layers_table5_one_node_error 5.03; echo $?) "one node is as near as the paper"
report $(below layers_table5_nodes_error 7.8; echo $?) "several nodes are within 7.8 %"
report $(output '^4N12G +40050 +41077 +\+2.56% +[0-9]+ ' && output '^range over 128 sets of inputs, several nodes'; echo $?) "the paper's estimates and the range are beside"
is "a network that is cut in two costs the same in the additive form alone" \
    "$(awk '/^  layers/ { gsub(",", ""); time[$2] = $4; printed[$2] = $7 } END { print (time["1:"] == time["2:"]), (printed["1:"] > 1.1 * printed["2:"]) }' .out)" "1 1"

# Models of this machine, by the archives of made-up runs: 5 Gflop/s, 2 us and 4 GB/s.
campaign() { # campaign NAME FACTORS RUN MODEL ROWS...: the archive
    { printf 'name: %s\ntestbed: local\nprobes: none\nexperiment:\n  name: %s\n' "$1" "$1"
        printf '  factors: %s\n  responses: {duration: {pattern: "took ([0-9.e-]+)", unit: s}}\n  run: "%s"\n  model: %s\ndesign: %s.csv\n' "$2" "$3" "$4" "$1"; } >"$1.yaml"
    printf '%s\n' "${@:5}" >"$1.csv"
    "$ASSAY" run "$1.yaml" -q -o runs 2>>.err
}
dgemm=$(made_dgemm dgemm 1e-6 4e-10 2>>.err)
transfer=$(campaign transfer '{size: {type: integer, unit: By}}' \
    "awk -v s=\$size 'BEGIN { printf \\\"took %.12f\\\\n\\\", (2e-6 + s / 4e9) * (1 + s % 7 / 1000) }'" \
    "{method: transfer, response: duration, sizes: [size], set: [criterion=log]}" size 64 1000 8000 64000 512000 4000000 16000000)
set -- predict hpl-layers --set N=20000 --set NB=128 --set P=2 --set Q=2
check "rate and network from archives" "$ASSAY" "$@" --from "$dgemm" --from "$transfer" -o from.csv --draws 50
report $(output '^time +[0-9.]+ s +[0-9.]+ s to' && contains .out "'$transfer' for the role 'layer'"; echo $?) "with an interval, and said"
report $(contains from.csv 'broadcast_low.*swap_low'; echo $?) "also of what is sent"
report $(contains .out "warning: 100 % of the total that .* predicts is extrapolated.*times the greatest"; echo $?) "a size that was not calibrated is warned of, with the factor"
"$ASSAY" fit "$dgemm" -o dgemm.json >out && "$ASSAY" fit "$transfer" -o transfer.json >out || sed 's/^/# /' .err out
check "rate and layer as models" "$ASSAY" "$@" dgemm=dgemm.json layer=transfer.json -o models.csv
close() { awk -F, -v a="$1" -v b="$2" -v by="$3" 'NR == FNR { f = FNR == 1 ? 1 : f; if (FNR == 1) { for (i = 1; i <= NF; i++) at[$i] = i } else { x = $at["time"] } next }
    FNR == 1 { for (i = 1; i <= NF; i++) to[$i] = i; next } { y = $to["time"]; exit !(x / y < 1 + by && y / x < 1 + by) }' "$1" "$2"; }
refuse "a rate and a model of it" 2 "rate is set, but the model for 'dgemm' gives it, too; remove one" "$ASSAY" "$@" dgemm=dgemm.json layer=transfer.json --set rate=1Gflop/s
refuse "a layer and a model of it" 2 "latency-1 is set, but the model for 'layer' gives it, too; remove one" "$ASSAY" "$@" dgemm=dgemm.json layer=transfer.json --set latency-1=1us
check "the same as parameters" "$ASSAY" "$@" --set rate=4.98Gflop/s --set latency-1=2us --set bandwidth-1=4GB/s -o set.csv
report $(close models.csv set.csv 0.01; echo $?) "gives the same time to 1 %"
check "predict-hpl with the same numbers" "$ASSAY" predict hpl dgemm.json "${@:3}" --set latency=2us --set bandwidth=4GB/s --set panels=asymptotic -o hpl.csv
report $(close models.csv hpl.csv 0.02; echo $?) "does so too: one layer is one network"
network=(--set rate=5Gflop/s --set latency-1=2us --set bandwidth-1=4GB/s)
check "ranges, pictures" "$ASSAY" predict hpl-layers --set N=20000 --set NB=64..512:64 --set P=2 --set Q=2 "${network[@]}" --plot time=time.svg --plot layers=layers.csv --plot panels=panels.html
is "a row for each layer" "$(wc -l <layers.csv)" 9
report $(output 'bandwidth-1 \(B/s\)' && ! grep -q bandwidth-2 .out; echo $?) "no column for what is not set"
check "a search" "$ASSAY" predict hpl-layers --set N=20000 --set NB=64..512:64 --set P=1,2,4 --set Q=1,2,4 "${network[@]}" --search 100
check "an explanation" "$ASSAY" "$@" "${network[@]}" --explain
report $(output '^computation +[0-9.]+ ' && output '^parameter +bandwidth-1 +-' && ! grep -q latency-2 .out; echo $?) "has parts and parameters, and none that is not set"
check "its help" "$ASSAY" predict hpl-layers --help
report $(output '^bandwidth-6 +B/s' && output '^layer +linear +latency and bandwidth' && output '^layers +rows'; echo $?) "has units, roles and tables"

# What is refused.
p100=(--set cores=3584 --set clock=1.303GHz --set memory-bandwidth=732.2GB/s --set memory-cycles=1029)
refuse "no rate" 2 "the rate is not known; set rate, or cores and clock" "$ASSAY" "$@" --set latency-1=1us --set bandwidth-1=1GB/s
refuse "no layer" 2 "latency-1 is not set, .*a data sheet, or measure both with the experiments" "$ASSAY" "$@" --set rate=1Gflop/s
refuse "an accelerator without a layer between two" 2 "latency-2 is not set" "$ASSAY" "$@" "${p100[@]}"
refuse "half an accelerator" 2 "is set, but 'memory-cycles' is not" "$ASSAY" "$@" --set cores=3 --set clock=1GHz --set memory-bandwidth=9GB/s
refuse "a first layer besides memory" 2 "layer 1 is the accelerator's memory" "$ASSAY" "$@" "${p100[@]}" "${network[@]}"
refuse "a gap" 2 "latency-2 is not set" "$ASSAY" "$@" "${network[@]}" --set latency-3=1us --set bandwidth-3=1GB/s
refuse "an intermediate layer of no size" 2 "processes-2 is not set; set it to the number of processes that layer 2 joins" \
    "$ASSAY" "$@" "${network[@]}" --set latency-2=1us --set bandwidth-2=1GB/s --set latency-3=1us --set bandwidth-3=1GB/s
refuse "layers out of order" 2 "the layers are not in ascending order: processes-2 is 1; expected 2 \(layer 1\) to P Q = 4" \
    "$ASSAY" "$@" "${network[@]}" --set processes-1=2 --set processes-2=1 --set latency-2=1us --set bandwidth-2=1GB/s --set latency-3=1us --set bandwidth-3=1GB/s
refuse "P x Q that is not the ranks" 2 "P x Q = 2 x 2 has 4 processes, but processes-1 of the last layer is 8" "$ASSAY" "$@" "${network[@]}" --set processes-1=8
refuse "a part that is no rectangle" 2 "processes-1 is 3, and so many processes form no rectangle in a grid of 2 x 2; choose another grid or number" "$ASSAY" "$@" "${network[@]}" --set processes-1=3 --set latency-2=1us --set bandwidth-2=1GB/s
refuse "a model and the flops of an accelerator" 2 "flops is set, but the model for 'dgemm' gives it, too; remove one" "$ASSAY" "$@" "${p100[@]}" --set flops=2 --set latency-2=1us --set bandwidth-2=1GB/s dgemm=dgemm.json
refuse "a rate and the flops of an accelerator" 2 "rate and flops are set, and flops" "$ASSAY" "$@" "${p100[@]}" --set flops=2 --set rate=1Gflop/s --set latency-2=1us --set bandwidth-2=1GB/s
refuse "a part of an accelerator alone" 2 "'memory-words' is set, but 'memory-cycles' is not" "$ASSAY" "$@" "${network[@]}" --set memory-words=64
refuse "a latency beyond the last layer" 2 "latency-2 has no effect, because the last layer with a bandwidth is layer 1; set bandwidth-2, or remove latency-2" "$ASSAY" "$@" "${network[@]}" --set latency-2=1us
refuse "processes beyond the last layer" 2 "processes-3 has no effect" "$ASSAY" "$@" "${network[@]}" --set processes-3=4
refuse "N = 0" 2 "N: '0' is out of range" "$ASSAY" predict hpl-layers --set N=0 --set NB=1 --set P=1 --set Q=1 "${network[@]}"
refuse "NB > N" 2 "NB = 200 is larger than the order of the matrix, N = 100" "$ASSAY" predict hpl-layers --set N=100 --set NB=200 --set P=1 --set Q=1 "${network[@]}"
refuse "a negative latency" 2 "latency-2: '-1us' is out of range" "$ASSAY" "$@" "${network[@]}" --set latency-2=-1us
refuse "no bandwidth" 2 "bandwidth-2: '0' is out of range" "$ASSAY" "$@" "${network[@]}" --set bandwidth-2=0
refuse "a wrong unit" 2 "bandwidth-2: '1us' is not" "$ASSAY" "$@" --set bandwidth-2=1us
refuse "a missing parameter" 2 "the parameter 'Q' is not set .columns of the process grid" "$ASSAY" predict hpl-layers --set N=9 --set NB=1 --set P=2
printf 'N,NB,P,Q,bandwith-1\n100,10,1,1,1\n' >typo.csv
refuse "a misspelt column" 2 "there is no parameter 'bandwith-1'; did you mean 'bandwidth-1'" "$ASSAY" predict hpl-layers --scenario typo.csv
refuse "a model of a transfer as dgemm" 2 "the model 'transfer.json' has no term m\*n\*k" "$ASSAY" "$@" dgemm=transfer.json
refuse "a model of dgemm as a layer" 2 "'dgemm.json' has other terms than 1 and bytes" "$ASSAY" "$@" layer=dgemm.json --set rate=1Gflop/s
awk 'BEGIN { print "size,bandwidth [GB/s]"; for (s = 64; s < 1e8; s *= 3) printf "%d,%.9g\n", s, s / (2e-6 + s / 4e9) / 1e9 }' >rates.csv
"$ASSAY" fit transfer rates.csv --response bandwidth -o rate.json >out
refuse "a model of a rate" 2 "rate.json.*(linear|time)" "$ASSAY" "$@" layer=rate.json --set rate=1Gflop/s
check "more panels than are summed" "$ASSAY" predict hpl-layers --set N=1e9,1000 --set NB=10 --set P=1 --set Q=1 "${network[@]}"
report $(output 'the matrix has 100000000 panels \(N / NB\); expected at most 1e\+06'; echo $?) "have no answer, and others do"
check "a grid that is too tall" "$ASSAY" predict hpl-layers --set N=1000 --set NB=1000 --set P=8 --set Q=1 "${network[@]}"
report $(output '^warning: some processes have no rows or columns: the matrix has 1 x 1 blocks'; echo $?) "is warned of"
finish
