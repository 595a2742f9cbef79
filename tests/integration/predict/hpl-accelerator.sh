#!/bin/bash
# predict hpl-accelerator: Table 1 of its paper by one command, a model of this machine, and what is refused.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/../made-run.sh"
cd "$scratch" || exit 1
export ASSAY

check "Table 1 by one command" "$ASSAY_SOURCE/examples/predict-hpl-accelerator/table1.sh"
report $(awk '$2 == "accelerator_table1_max_error" { found = 1; bad = !($3 <= 5.05) } END { exit !found || bad }' .out; echo $?) \
    "is as near as the paper on every system"
report $(output '^ABCI +19.8 +20.8 +\+5.05% ' && output '^  no look-ahead .*at most'; echo $?) "the paper's predictions and other choices are beside"

# A model of dgemm at 5 Gflop/s, by the archive of a made-up run.
dgemm=$(made_dgemm dgemm 1e-7 4e-10 2>.err) || sed 's/^/# /' .err
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { print $at[name] }' "$2"; }
grid=(--set N=20000 --set NB=128 --set P=2 --set Q=2) speeds=(--set peak=5Gflop/s --set dgemm-efficiency=1)
network=(--set latency=2us --set bandwidth=4GB/s)
check "the update from an archive" "$ASSAY" predict hpl-accelerator "${grid[@]}" --set peak=5Gflop/s "${network[@]}" --from "$dgemm" --draws 50 -o from.csv
report $(output '^time +[0-9.]+ s +[0-9.]+ s to' && output '^warning: .* predicts is extrapolated.*times the greatest'; echo $?) "with an interval, and warned of what was not calibrated"
refuse "an efficiency and a model of it" 2 "dgemm-efficiency is set, but the model for 'dgemm' gives it, too; remove one" \
    "$ASSAY" predict hpl-accelerator "${grid[@]}" "${speeds[@]}" "${network[@]}" --from "$dgemm"
check "the same rate as numbers" "$ASSAY" predict hpl-accelerator "${grid[@]}" "${speeds[@]}" "${network[@]}" -o set.csv
report $(awk -F, 'FNR == 1 { for (i = 1; i <= NF; i++) if ($i == "time") c = i; next } { t[++n] = $c } END { exit !(n == 2 && t[1] / t[2] > 0.99 && t[1] / t[2] < 1.01) }' from.csv set.csv; echo $?) "gives the same time to 1 %"
"$ASSAY" predict hpl-accelerator "${grid[@]}" --set peak=50Gflop/s --set panel-peak=5Gflop/s "${network[@]}" --from "$dgemm" -o peak.csv >.out
is "the peak has no part in the update: dtrsm runs at the model's rate, too" "$(column update peak.csv)" "$(column update from.csv)"
set -- predict hpl-accelerator "${speeds[@]}" "${network[@]}"
check "ranges, pictures, a search" "$ASSAY" "$@" --set N=20000 --set NB=64..512:64 --set P=1,2,4 --set Q=1,2,4 --set overlap=look-ahead,split --search 40 --plot time=time.svg --plot panels=panels.csv
report $(head -1 panels.csv | grep -q '^scenario,panel,panel_time,panel_update'; echo $?) "have the panels"
check "an explanation" "$ASSAY" "$@" "${grid[@]}" --explain
report $(output '^update +[0-9.]+ ' && output '^parameter +bandwidth +-'; echo $?) "has parts and parameters"
check "its help" "$ASSAY" predict hpl-accelerator --help
report $(output '^overlap +none, look-ahead, split +look-ahead' && output '^panels +curve'; echo $?) "has words and tables"

refuse "no efficiency" 2 "dgemm-efficiency is not set .*needed unless a model has the role 'dgemm'" "$ASSAY" predict hpl-accelerator "${grid[@]}" --set peak=5Gflop/s "${network[@]}"
refuse "no network" 2 "latency is not set .*the experiment mpi-point-to-point" "$ASSAY" predict hpl-accelerator "${grid[@]}" "${speeds[@]}"
refuse "no network within a node" 2 "node-latency is not set .latency between two processes of a node" "$ASSAY" "$@" "${grid[@]}" --set node-rows=2
refuse "P x Q that is not nodes" 2 "a node of 3 x 1 processes does not divide the grid of 2 x 2" "$ASSAY" "$@" "${grid[@]}" --set node-rows=3 --set node-latency=1us --set node-bandwidth=9GB/s
refuse "no peak" 2 "the parameter 'peak' is not set .P_acc" "$ASSAY" predict hpl-accelerator "${grid[@]}"
refuse "an efficiency above 1" 2 "dtrsm-efficiency: '1.2' is out of range" "$ASSAY" "$@" "${grid[@]}" --set dtrsm-efficiency=1.2
refuse "N = 0" 2 "N: '0' is out of range" "$ASSAY" "$@" --set N=0 --set NB=1 --set P=1 --set Q=1
refuse "NB > N" 2 "NB = 200 is larger than the order of the matrix, N = 100" "$ASSAY" "$@" --set N=100 --set NB=200 --set P=1 --set Q=1
refuse "a negative latency" 2 "latency: '-1us' is out of range" "$ASSAY" predict hpl-accelerator --set latency=-1us
refuse "no bandwidth" 2 "bandwidth: '0' is out of range" "$ASSAY" predict hpl-accelerator --set bandwidth=0
refuse "a wrong unit" 2 "peak: '5GHz' is not" "$ASSAY" predict hpl-accelerator --set peak=5GHz
printf 'N,NB,P,Q,peek\n100,10,1,1,1\n' >typo.csv
refuse "a misspelt column" 2 "there is no parameter 'peek'; did you mean 'peak'" "$ASSAY" predict hpl-accelerator --scenario typo.csv
awk 'BEGIN { print "size,duration"; for (s = 64; s < 1e8; s *= 3) printf "%d,%.9g\n", s, 2e-6 + s / 4e9 }' >transfer.csv
"$ASSAY" fit transfer transfer.csv -o transfer.json >out
refuse "a model of something else" 2 "the model 'transfer.json' has no term m\*n\*k" "$ASSAY" predict hpl-accelerator --set peak=5Gflop/s "${network[@]}" "${grid[@]}" transfer.json
finish
