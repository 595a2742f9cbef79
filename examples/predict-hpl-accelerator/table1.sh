#!/bin/bash
# Table 1 of the paper on HPL for the Sugon exascale prototype: four systems predicted from inputs.csv, with the paper's
# predictions beside, and what the choices that are not in the paper do.
#
#   examples/predict-hpl-accelerator/table1.sh      ASSAY names the program; default: assay
set -euo pipefail
assay=$(realpath "$(command -v "${ASSAY:-assay}")")
cd "$(dirname "$0")"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/assay-table1.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

predict() { # predict SCENARIOS OPTIONS...: a line NAME,PFLOPS a scenario
    "$assay" predict hpl-accelerator --scenario "$1" --output "$scratch/own.csv" "${@:2}" >"$scratch/out" || { cat "$scratch/out" >&2; exit 1; }
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { print $1 "," $at["gflops"] / 1e6 }' "$scratch/own.csv"
}
show() { # show LABEL SCENARIOS OPTIONS...: the errors of all systems, without sign the largest
    predict "${@:2}" | paste -d, <(tail -n +2 table1.csv) - | awk -F, -v label="$1" '
        BEGIN { printf "  %-36s", label }
        { error = 100 * ($6 / $2 - 1); printf "%s%s %+.2f %%", (NR > 1 ? ", " : ""), $1, error
          if ((error < 0 ? -error : error) > most) most = error < 0 ? -error : error }
        END { printf "; at most %.2f %%\n", most }'
}

rule=(--set dgemm-efficiency=0.916 --set latency=1us --set bandwidth=25GB/s)
predict scenarios.csv "${rule[@]}" | paste -d, <(tail -n +2 table1.csv) - | awk -F, '
    BEGIN { printf "%-16s %9s %18s %18s   Pflop/s, error\n", "", "measured", "paper", "assay" }
    { error = 100 * ($6 / $2 - 1); printf "%-16s %9.1f %9.1f %+7.2f%% %9.1f %+7.2f%%\n", $1, $2, $3, 100 * ($3 / $2 - 1), $6, error
      if ((error < 0 ? -error : error) > most) most = error < 0 ? -error : error }
    END { printf "figure accelerator_table1_max_error %.2f %%\n", most }' | tee "$scratch/table" | grep -v '^figure'
echo "with other choices:"
show "no look-ahead" scenarios.csv "${rule[@]}" --set overlap=none
show "split update" scenarios.csv "${rule[@]}" --set overlap=split
show "panels at 0.25 of the processors" scenarios.csv "${rule[@]}" --set panel-efficiency=0.25
show "panels at their peak" scenarios.csv "${rule[@]}" --set panel-efficiency=1
show "dtrsm at 0.5 of the accelerators" scenarios.csv "${rule[@]}" --set dtrsm-efficiency=0.5
show "dgemm at 0.88" scenarios.csv --set dgemm-efficiency=0.88 "${rule[@]:2}"
show "dgemm at 0.95" scenarios.csv --set dgemm-efficiency=0.95 "${rule[@]:2}"
show "latency of 5 us" scenarios.csv --set latency=5us "${rule[@]:0:2}" "${rule[@]:4}"
show "23 GB/s a node" scenarios.csv --set bandwidth=23GB/s "${rule[@]:0:4}"
sed 's/,384,/,768,/' scenarios.csv >"$scratch/wide.csv"
show "NB = 768" "$scratch/wide.csv" "${rule[@]}"
awk -F, 'BEGIN { OFS = "," } NR > 1 { p = $4; $4 = $5; $5 = p } 1' scenarios.csv >"$scratch/tall.csv"
show "P and Q exchanged" "$scratch/tall.csv" "${rule[@]}"
awk -F, 'BEGIN { OFS = "," } NR == 1 { print $0, "node-rows", "node-columns", "node-latency", "node-bandwidth [GB/s]"; next }
    { rows = 2; columns = /Summit/ ? 3 : /Sugon/ ? 1 : 2; if (/Sugon/) rows = 1
      $4 *= rows; $5 *= columns; $6 /= rows * columns; $7 /= rows * columns; print $0, rows, columns, "1us", 50 }' scenarios.csv >"$scratch/local.csv"
show "a process an accelerator, in nodes" "$scratch/local.csv" "${rule[@]}"
grep '^figure' "$scratch/table"
