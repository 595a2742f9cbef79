#!/bin/bash
# The experiment hpcc on the machine at hand under three loads, with one and two threads a rank; HPL and G-FFT of each of the six conditions
# predicted by models of the others.
#
#   bash own.sh [FOLDER]     runs and tables are written into FOLDER; default: the current one. Needs hpcc and two cores; minutes
#
# A load is so many endless loops beside the suite. SIZES, default 1000, 2000; REPETITIONS, default 2.
set -eu
out=${1:-.} assay=${ASSAY:-assay}
mkdir -p "$out" && cd "$out"
loops=()
stop() { [ ${#loops[@]} = 0 ] || kill "${loops[@]}"; loops=(); }
trap stop EXIT
: >all.csv
for load in 0 1 2; do
    for ((i = 0; i < load; i++)); do while :; do :; done & loops+=($!); done
    cat >load-$load.yaml <<YAML
name: load-$load
experiment: hpcc
testbed: local
probes: none
options: {bind: none}
design:
  generate: factorial
  factors: {N: [${SIZES:-1000, 2000}], ranks: 2, threads: [1, 2], NB: 96}
  repetitions: ${REPETITIONS:-2}
YAML
    archive=$("$assay" run load-$load.yaml -q -o runs)
    stop
    unzip -p "$archive" '*results.csv' >results.csv 2>/dev/null || cp "$archive/results.csv" results.csv
    # A row for HPL and one for G-FFT: 5 n log2 n operations.
    awk -F, -v OFS=, -v load=$load '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i
            if (load == 0) print "condition,application,N,ranks,StarDGEMM_Gflops [Gflop/s],SingleDGEMM_Gflops [Gflop/s],StarFFT_Gflops [Gflop/s],StarSTREAM_Triad [GB/s],RandomlyOrderedRingBandwidth [GB/s],RandomlyOrderedRingLatency [us],time [s]"
            next }
        $at["success"] != 1 { next }
        { condition = "load " load " threads " $at["threads"]
          seen = $at["ranks"] OFS $at["StarDGEMM_Gflops"] OFS $at["SingleDGEMM_Gflops"] OFS $at["StarFFT_Gflops"] OFS $at["StarSTREAM_Triad"] OFS $at["RandomlyOrderedRingBandwidth"] OFS $at["RandomlyOrderedRingLatency"]
          n = $at["MPIFFT_points"]
          print condition, "HPL", $at["N"], seen, $at["HPL_time"]
          print condition, "G-FFT", n, seen, 5 * n * log(n) / log(2) / 1e9 / $at["MPIFFT_Gflops"] }' results.csv >>all.csv
done
hpl='N^3*ranks^-1*StarDGEMM_Gflops^-1 + N^3*ranks^-1*SingleDGEMM_Gflops^-1 + N^2*ranks^-1*StarSTREAM_Triad^-1 + N^2*log2(ranks)*ranks^-1*RandomlyOrderedRingBandwidth^-1 + N*log2(ranks)*RandomlyOrderedRingLatency'
fft='N*log2(N)*ranks^-1*StarFFT_Gflops^-1 + N*log2(N)*ranks^-1*StarDGEMM_Gflops^-1 + N*ranks^-1*StarSTREAM_Triad^-1 + N*ranks^-1*RandomlyOrderedRingBandwidth^-1 + ranks*RandomlyOrderedRingLatency'
: >errors.txt
for application in HPL G-FFT; do
    [ $application = HPL ] && terms=$hpl || terms=$fft
    while read -r condition; do
        "$assay" fit linear all.csv --response time --terms "$terms" --by application --where "application == '$application' and condition != '$condition'" \
            --weights '1/time^2' --set select=elimination --set one-of='StarDGEMM_Gflops|SingleDGEMM_Gflops|StarFFT_Gflops' --set outliers=3 \
            --set bounds=nonnegative --folds 0 -o without.json >fit.log 2>&1 || { cat fit.log >&2; exit 1; }
        awk -F, -v OFS=, -v a="$application" -v c="$condition" 'NR == 1 || ($2 == a && $1 == c) { $1 = NR == 1 ? "name" : $NF; $2 = ""; sub(/,,/, ","); sub(/,[^,]*$/, ""); print }' all.csv >scenarios.csv
        "$assay" predict hpcc without.json --scenario scenarios.csv -o predicted.csv >/dev/null 2>>fit.log
        awk -F, -v a=$application 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { print a, $at["time"] / $1 - 1 }' predicted.csv >>errors.txt
    done < <(awk -F, 'NR > 1 && !seen[$1]++ { print $1 }' all.csv)
done
echo "each condition from the five others, relative root mean square error and median without sign, %:"
for application in HPL G-FFT; do
    awk -v a=$application '$1 == a { print $2 < 0 ? -$2 : $2 }' errors.txt | sort -g |
        awk -v a=$application '{ e[NR] = $1; sum += $1 ^ 2 } END { printf "%-6s %6.1f %6.1f of %d runs\n", a, 100 * sqrt(sum / NR), 100 * e[int((NR + 1) / 2)], NR }'
done
