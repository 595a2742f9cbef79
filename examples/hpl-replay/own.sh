#!/bin/bash
# The loop on the machine at hand: dgemm, the other kernels and MPI measured, models fitted to them, HPL replayed on the models, and
# beside it the same HPL really run.
#
#   HPL=PATH bash own.sh [FOLDER]     archives and tables are written into FOLDER; default: the current one. Some minutes
#
# HPL: an xhpl, a folder with bin/xhpl, or HPL's source (as the experiment hpl takes it); without it Debian's hpcc, which takes longer.
# RANKS, default 2, on as many cores of this machine; ORDERS, default 2000, 4000, 6000; NB, default 128; DEPTH, default 1; REPETITIONS of
# HPL, default 3; PRODUCTS, of sizes of dgemm, default 30; CALLS of each other kernel, default
# 10; MESSAGES, the sizes of messages, default 40; BIND, default core.
# With PANELS=yes, and HPL's source, HPL reports when it begins a panel, and its calls of BLAS and MPI: curve.csv has these times of the largest matrix and those of its
# replay, and their greatest difference is printed.
set -eu
out=${1:-.} assay=${ASSAY:-assay} ranks=${RANKS:-2} nb=${NB:-128}
mkdir -p "$out" && cd "$out"
largest=$(echo "${ORDERS:-2000, 4000, 6000}" | tr ',' '\n' | sort -n | tail -1)

measure() { # measure NAME: the campaign of standard input; the archive is NAME.zip
    { echo "name: $1"; echo "testbed: local"; echo "probes: none"; cat; } >"$1.yaml"
    ln -sf "$("$assay" run "$1.yaml" -q -o runs)" "$1.zip"
}
measure dgemm <<YAML
experiment: dgemm
design: {generate: uniform-product, factors: [m, n, k], max-product: $((largest * largest / 2 * nb)), max-size: $largest, products: ${PRODUCTS:-30}, repetitions: 3}
YAML
# The calls of panels of NB columns and N rows or less, and of their rows.
awk -F, -v OFS=, -v n="$largest" -v nb="$nb" 'BEGIN {
    print "kernel", "m", "n", "ldc"
    for (width = nb; width >= 4; width = int(width / 4)) print "dtrsv", 1, width, 1
    for (size = n; size >= n / 16; size = int(size / 2)) {
        for (width = nb; width >= 4; width = int(width / 4)) {
            for (i = split("dtrsm dgemv dger dlacpy dlatcpy", kernel, " "); i > 0; i--) print kernel[i], size, width, size
            print "dlaswp", width, size, n
        }
        for (i = split("dscal daxpy dcopy idamax", kernel, " "); i > 0; i--) print kernel[i], 1, size, 1
    }
}' >blas.csv
measure blas <<YAML
experiment: blas
design: {file: blas.csv, repetitions: ${CALLS:-10}}
YAML
measure mpi <<YAML
experiment: mpi-point-to-point
options: {bind: ${BIND:-core}}
design: {generate: factorial, factors: {nodes: [1], sizes: [${MESSAGES:-40}], largest: [$((16 * largest * nb))], repetitions: [5], seed: [1]}}
YAML
measure hpl <<YAML
experiment: hpl
options: {hpl: ${HPL:-hpcc}, bind: ${BIND:-core}, dgemm: "no", panel_times: "${PANELS:-no}", trace: "${PANELS:-no}"}
design:
  generate: factorial
  factors: {N: [${ORDERS:-2000, 4000, 6000}], NB: [$nb], ranks: [$ranks], BCAST: [1ring], SWAP: [binary-exchange], DEPTH: [${DEPTH:-1}]}
  repetitions: ${REPETITIONS:-3}
YAML

# The settings of HPL are the scenarios of the replay: each once, and the median of their times.
"$assay" archive cat hpl.zip results/results.csv | awk -F, -v OFS=, '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $at["passed"] == "yes" { n = $at["N"]; of[n] = of[n] " " $at["time"]
        scenario[n] = n OFS $at["NB"] OFS $at["P"] OFS $at["Q"] OFS $at["BCAST"] OFS $at["DEPTH"] OFS $at["SWAP"] OFS $at["RFACT"] OFS $at["PFACT"] OFS $at["NBMIN"] OFS $at["NDIV"] }
    END { for (n in scenario) { count = split(of[n], t, " "); sort(t, count); print scenario[n], t[int((count + 1) / 2)], t[1], t[count] } }
    function sort(t, count, i, j, x) { for (i = 2; i <= count; i++) { x = t[i] + 0; for (j = i - 1; j > 0 && t[j] + 0 > x; j--) t[j + 1] = t[j]; t[j + 1] = x } }
' | sort -n >measured.csv
{ echo N,NB,P,Q,BCAST,DEPTH,SWAP,RFACT,PFACT,NBMIN,NDIV; cut -d, -f1-11 measured.csv; } >scenarios.csv
"$assay" predict hpl-replay --from dgemm.zip --from blas.zip --from mpi.zip --scenario scenarios.csv --set ranks-per-node="$ranks" --plot panels=panels.csv --plot ranks=ranks.csv --plot parts=parts.csv --archive predicted.zip -o predicted.csv >predict.txt 2>&1 ||
    { cat predict.txt; exit 1; }
awk -F, '
    BEGIN { printf "%8s %28s %10s %8s\n", "N", "measured, s: median (range)", "replayed", "error" }
    FNR == 1 { file++ }
    file == 1 { measured[$1] = $12; range[$1] = sprintf("(%.3f to %.3f)", $13, $14); next }
    FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { n = $at["N"]; t = $at["time"]; printf "%8d %8.3f %19s %10.3f %+6.1f %%\n", n, measured[n], range[n], t, 100 * (t / measured[n] - 1) }
' measured.csv predicted.csv
[ "${PANELS:-no}" = yes ] || exit 0

# HPL says how many operations a second it had until it began a column; the median over the runs is compared with the replay, the
# spread is that of the runs themselves.
"$assay" archive cat hpl.zip results/tables/panels.csv | awk -F, -v OFS=, -v n="$largest" '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $at["N"] == n { j = $at["column"]; print j, 2 / 3 * (n ^ 3 - (n - j) ^ 3) / $at["gflops"] / 1e9 }' | sort -t, -k1,1n -k2,2g >panel-times.csv
scenario=$(awk -F, -v n="$largest" '$1 == n { print NR }' measured.csv)
awk -F, -v OFS=, -v n="$largest" -v scenario="$scenario" '
    FNR == 1 { file++ }
    file == 1 { if ($1 == n) { total = $12; least = $13; most = $14 } next }
    file == 2 { t[$1, ++count[$1]] = $2; next }
    FNR == 1 { print "column,measured_median,measured_least,measured_most,replayed"; next }
    $1 == scenario && count[$2] > 0 {
        c = count[$2]; median = t[$2, int((c + 1) / 2)]
        print $2, median, t[$2, 1], t[$2, c], $3
        error = $3 - median; if (error < 0) error = -error; if (error > worst) worst = error
        if (t[$2, c] - t[$2, 1] > spread) spread = t[$2, c] - t[$2, 1]
    }
    END { if (most - least > spread) spread = most - least
        printf "panels of N = %d: greatest difference of cumulated time %.1f %% of the total, spread of the runs %.1f %%\n", n, 100 * worst / total, 100 * spread / total >"/dev/stderr" }
' measured.csv panel-times.csv panels.csv 2>curve.txt >curve.csv
cat curve.txt
"$assay" compare predicted.zip hpl.zip --explain | sed -n "/where the run and the replay part/,\$p"
