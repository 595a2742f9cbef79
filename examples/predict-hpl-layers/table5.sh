#!/bin/bash
# Table 5 of the paper on multi-communication layered HPL (15 configurations of one to four nodes with one to four
# P100), predicted from inputs.csv: the additive and the printed form beside the original model and the paper's own
# estimates, and how far the errors go where the inputs that the paper does not give are others.
#
#   examples/predict-hpl-layers/table5.sh      ASSAY names the program; default: assay
set -euo pipefail
assay=$(realpath "$(command -v "${ASSAY:-assay}")")
cd "$(dirname "$0")"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/assay-table5.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
p100=(--set cores=3584 --set clock=1.303GHz --set memory-bandwidth=732.2GB/s --set memory-words=64 --set memory-cycles=1029)

predict() { # predict SCENARIOS RESULT [OPTIONS...]
    "$assay" predict hpl-layers --scenario "$1" "${p100[@]}" --output "$2" "${@:3}" >"$scratch/out" || { cat "$scratch/out" >&2; exit 1; }
}
# The columns of a prediction that are compared: name, additive, printed, original, in Gflop/s.
rates() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { print $1 "," $at["gflops"] "," $at["gflops_printed"] "," $at["gflops_original"] }' "$1"
}

predict scenarios.csv "$scratch/own.csv"
rates "$scratch/own.csv" | paste -d, table5.csv <(echo; cat) | awk -F, '
    function error(found) { return 100 * (found / $2 - 1) }
    function count(key, e) { sum[where, key] += e < 0 ? -e : e }
    NR == 1 { printf "%-6s %8s %16s %16s %16s %16s   Gflop/s, error\n", "", "measured", "paper", "additive", "printed", "original"; next }
    {
        where = $1 ~ /^1N/ ? "one node" : "several nodes"; n[where]++
        printf "%-6s %8.0f", $1, $2
        for (i = 3; i <= 8; i += i == 3 ? 3 : 1) { printf " %8.0f %+6.2f%%", $i, error($i); count(i, error($i)) }
        print ""
    }
    END {
        split("one node,several nodes", places, ",")
        for (k = 1; k <= 2; k++) {
            where = places[k]
            printf "mean without sign, %-14s", where
            for (i = 3; i <= 8; i += i == 3 ? 3 : 1) printf " %s %.2f %%", i == 3 ? "paper" : i == 6 ? " additive" : i == 7 ? " printed" : " original", sum[where, i] / n[where]
            print ""
            printf "figure layers_table5_%s_error %.2f %%\n", k == 1 ? "one_node" : "nodes", sum[where, 6] / n[where]
        }
    }' | sed 's/,Table 5//' | tee "$scratch/table" | grep -v '^figure'

# What is not in the paper, at its plausible values: block size, grid either way, PCI Express as NVIDIA measured it
# with all GPUs at once, halved, measured alone, and by its specification; InfiniBand measured and by its specification.
awk -F, 'NR == 1 { print; next } {
    split("256 384 512 1024", nb, " "); split("5.6 7.877 12 15.754", pcie, " "); split("6 6.818", ib, " "); split("0.5 5", us, " ")
    for (a in nb) for (b = 0; b < 2; b++) for (c in pcie) for (d in ib) for (e in us)
        print $1 "," $2 "," nb[a] "," (b ? $5 : $4) "," (b ? $4 : $5) "," $6 "," ($8 ? us[e] : "") "," ($8 ? pcie[c] : "") "," ($10 ? us[e] : "") "," ($10 ? ib[d] : "")
}' scenarios.csv >"$scratch/all.csv"
predict "$scratch/all.csv" "$scratch/range.csv"
rates "$scratch/range.csv" | paste -d, - <(tail -n +2 "$scratch/all.csv") | awk -F, -v measured=table5.csv '
    BEGIN { while ((getline line <measured) > 0) { split(line, field, ","); rate[field[1]] = field[2] } }
    {
        seen[$1]++; where = $1 ~ /^1N/ ? 1 : 2 # the rows of a configuration are in the same order of variants
        for (i = 2; i <= 4; i++) { e = 100 * ($i / rate[$1] - 1); sum[seen[$1], where, i] += e < 0 ? -e : e }
        if (seen[$1] == 1) n[where]++
        if (seen[$1] > variants) variants = seen[$1]
    }
    END {
        for (where = 1; where <= 2; where++) {
            printf "range over %d sets of inputs, %-14s", variants, where == 1 ? "one node" : "several nodes"
            for (i = 2; i <= 4; i++) {
                low = 1e9; high = 0
                for (v = 1; v <= variants; v++) { e = sum[v, where, i] / n[where]; if (e < low) low = e; if (e > high) high = e }
                printf "  %s %.1f to %.1f %%", i == 2 ? "additive" : i == 3 ? "printed" : "original", low, high
            }
            print ""
        }
    }'

# One network, and the same in two layers: what 2 x 2 of 4 x 4 processes send, and what is sent beyond.
echo "16 processes on one network, and the same network cut in two at 4 processes:"
printf 'processes-1,latency-2,bandwidth-2 [GB/s]\n,,\n4,1us,6.818\n' >"$scratch/cut.csv"
"$assay" predict hpl-layers --scenario "$scratch/cut.csv" --set N=152000 --set NB=384 --set P=4 --set Q=4 --set rate=4.67Tflop/s \
    --set latency-1=1us --set bandwidth-1=6.818GB/s --output "$scratch/halves.csv" >/dev/null
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { printf "  layers %d: additive %.3f s, printed %.3f s\n", NR - 1, $at["time"], $at["time_printed"] }' "$scratch/halves.csv"
grep '^figure' "$scratch/table"
