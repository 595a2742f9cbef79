#!/bin/bash
# The experiment hpcc on the machine at hand as several machines: with kernels of BLAS for three generations of processors, and messages that are
# copied once (cma: by the kernel) or twice (none: through shared memory). HPL and G-FFT of each of the six conditions are predicted by models of
# the others, from the microkernels of the same run.
#
#   bash own.sh [FOLDER]     runs and tables are written into FOLDER; default: the current one. Needs hpcc, OpenBLAS and two cores; minutes
#
# SIZES, default 3000, 4500; REPETITIONS, default 3. LOADS, default 0: how many endless loops run beside the suite; a list adds conditions.
# FIRST='chrt -r 1' runs the ranks before all other programs, which stand still meanwhile: README.md says why.
set -eu
out=${1:-.} assay=${ASSAY:-assay}
mkdir -p "$out" && cd "$out"
loops=()
stop() { [ ${#loops[@]} = 0 ] || kill "${loops[@]}"; loops=(); }
trap stop EXIT
# measure KERNELS COPIES LOAD: adds a row for HPL and one for G-FFT (5 n log2 n operations) of each N to all.csv, medians of the repetitions.
measure() {
    local name=$1-$2-$3 archive
    printf '#!/bin/sh\nexport OPENBLAS_CORETYPE=%s OMPI_MCA_btl_vader_single_copy_mechanism=%s\nexec %s mpirun "$@"\n' "$1" "$2" "${FIRST:-}" >"mpirun-$name"
    chmod +x "mpirun-$name"
    cat >"$name.yaml" <<YAML
name: $name
experiment: hpcc
testbed: local
probes: none
options: {bind: core, mpirun: $PWD/mpirun-$name}
design:
  generate: factorial
  factors: {N: [${SIZES:-3000, 4500}], ranks: 2, threads: 1, NB: 96}
  repetitions: ${REPETITIONS:-3}
YAML
    archive=$("$assay" run "$name.yaml" -q -o runs)
    unzip -p "$archive" '*results/results.csv' >results.csv 2>/dev/null || cp "$archive/results/results.csv" results.csv
    awk -F, -v OFS=, -v condition="$1 $2 load $3" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["success"] == 1 { N = $at["N"]; count[N]++; for (i in at) add(N, i, $at[i]) }
        function add(N, name, x,    i) { for (i = count[N]; i > 1 && value[N, name, i - 1] > x + 0; i--) value[N, name, i] = value[N, name, i - 1]; value[N, name, i] = x + 0 }
        function median(name) { return (value[N, name, int((count[N] + 1) / 2)] + value[N, name, int(count[N] / 2) + 1]) / 2 }
        END { for (N in count) {
            seen = median("ranks") OFS median("StarDGEMM_Gflops") OFS median("SingleDGEMM_Gflops") OFS median("StarFFT_Gflops") OFS median("StarSTREAM_Triad") OFS median("RandomlyOrderedRingBandwidth") OFS median("RandomlyOrderedRingLatency")
            n = median("MPIFFT_points")
            print condition, "HPL", N, seen, median("HPL_time")
            print condition, "G-FFT", n, seen, 5 * n * log(n) / log(2) / 1e9 / median("MPIFFT_Gflops") } }' results.csv >>all.csv
}
echo "condition,application,N,ranks,StarDGEMM_Gflops [Gflop/s],SingleDGEMM_Gflops [Gflop/s],StarFFT_Gflops [Gflop/s],StarSTREAM_Triad [GB/s],RandomlyOrderedRingBandwidth [GB/s],RandomlyOrderedRingLatency [us],time [s]" >all.csv
for load in ${LOADS:-0}; do
    for ((i = 0; i < load; i++)); do while :; do :; done & loops+=($!); done
    for kernels in Haswell Sandybridge Prescott; do
        for copies in cma none; do measure $kernels $copies "$load"; done
    done
    stop
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
echo "each condition from the others, relative root mean square error and median without sign, %:"
for application in HPL G-FFT; do
    awk -v a=$application '$1 == a { print $2 < 0 ? -$2 : $2 }' errors.txt | sort -g |
        awk -v a=$application '{ e[NR] = $1; sum += $1 ^ 2 } END { printf "%-6s %6.1f %6.1f of %d rows\n", a, 100 * sqrt(sum / NR), 100 * e[int((NR + 1) / 2)], NR }'
done
