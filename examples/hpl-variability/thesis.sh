#!/bin/bash
# Three figures of T. Cornebize's thesis (Grenoble 2021, part I) on what the variability of dgemm costs HPL, replayed with the models of then.
#
#   DATA=../shared/data bash thesis.sh [FOLDER] [FIGURE...]     models and tables are written into FOLDER; default: the current one
#
# orders    "HPL performance: predictions vs. reality", 32 nodes of dahu: the rates whose ratios are "22 %" (spatial) and "9 %" (temporal): six replays of 30 s
# scatter   the overhead of dgemm's coefficient of variation, 8 x 32 nodes drawn from dahu's cpus. A minute a cluster
# removal   what it gains to leave out the slowest of 256 such nodes, on the best grid of what is left. Some minutes
#
# Without FIGURE all three. ORDER: of the matrix, default 500000; CLUSTERS that are drawn, default 3 (the thesis: 10). Numbers of the thesis are those of
# its data (github.com/Ezibenroc/thesis, data/prediction), emulated by SMPI; probing=smpi is how SMPI asks for panels.
set -eu
here=$(cd "$(dirname "$0")" && pwd) data=$(cd "$DATA" && pwd) out=${1:-.} assay=${ASSAY:-assay} n=${ORDER:-500000} clusters=${CLUSTERS:-3}
shift $(($# > 0))
figures=" ${*:-orders scatter removal} "
mkdir -p "$out/hpl" && cd "$out"
models() { bash "$here/../../plugins/predict-hpl-replay/validation/dahu-models.sh" hpl "$@"; }
cp "$data"/hpl/dahu_{dgemm_polynomial_2019.csv,dgemm_linear_2019.csv,network_2019.xml} hpl/
models dahu
kernels=()
for file in dahu/d[a-z]*.json dahu/idamax.json; do
    kernel=$(basename "$file" .json)
    [ "$kernel" = dgemm ] || kernels+=("$kernel=$file")
done
# replay DGEMM.json N OPTION...: the rate in Gflop/s
replay() {
    "$assay" predict hpl-replay dgemm="$1" network=dahu/network.json loopback=dahu/loopback.json "${kernels[@]}" --set N="$2" --set BCAST=2ring --set NBMIN=2 \
        --set probing=smpi "${@:3}" -o rate.csv >last.log 2>&1 || { cat last.log >&2; exit 1; }
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "gflops") c = i } NR == 2 { printf "%.0f\n", $c }' rate.csv
}

if [[ $figures == *" orders "* ]]; then
    # The homogeneous models are those of HPL_dgemm in early 2019 (github.com/Ezibenroc/hpl, include/hpl_blas.h, commits b500a17 and 139c8a7), from before
    # the fault of four nodes: no mean of the cpus that the others have.
    for one in 'linear 0,6.674693e-11,0,0,0,0,2.429562e-12,0,0,0' \
        'polynomial 2.844700e-07,6.317136e-11,1.489053e-10,2.107985e-09,3.332944e-09,1.087202e-07,2.976703e-12,8.365868e-12,1.528598e-10,9.931248e-11'; do
        { head -1 hpl/dahu_dgemm_linear_2019.csv; echo "1,${one#* }"; } >"hpl/${one% *}.csv"
        models "homogeneous-${one% *}" "${one% *}.csv"
    done
    models heterogeneous-linear dahu_dgemm_linear_2019.csv
    rates() { # rates MODEL NOISE NAME FILE: replayed, and the thesis's, which FILE has by NAME
        echo "$(replay "$1/dgemm.json" "$n" --set NB=128 --set P=32 --set Q=32 --set ranks-per-node=32 --set cpus-per-node=2 --set noise="$2") $(awk -F, -v n="$n" -v model="$3" '
            $1 == n && $9 == model { sum += $2; count++ } END { print count ? sum / count : "nan" }' "$data/hpl/matrix_size_simulation_$4geneous.csv")"
    }
    { rates homogeneous-linear no A1 homo; rates heterogeneous-linear no A1_het hetero; rates homogeneous-polynomial no C1 homo
        rates dahu no C1_het hetero; rates homogeneous-polynomial yes D1 homo; rates dahu yes D1_het hetero; } | awk -v n="$n" '
        { r[NR] = $1; t[NR] = $2 }
        function row(what, a, b) { printf "%-52s %8.1f %% %8.1f %%\n", what, 100 * (r[a] / r[b] - 1), 100 * (t[a] / t[b] - 1) }
        END {
            split("homogeneous, linear|each cpu, linear|homogeneous, polynomial|each cpu, polynomial|homogeneous, polynomial, noise|each cpu, polynomial, noise", name, "|")
            printf "%-52s %10s %10s\n", "N = " n ", dahu 2019-03; dgemm of", "replayed", "thesis"
            for (i = 1; i <= 6; i++) printf "%-52s %10.0f %10.0f  Gflop/s\n", name[i], r[i], t[i]
            row("spatial: time of each cpu over homogeneous, linear", 1, 2); row("the same, polynomial", 3, 4)
            row("temporal: time with noise over without, each cpu", 4, 6)
        }'
fi
[[ $figures == *scatter* || $figures == *removal* ]] || exit 0

# cluster SEED VARIATION FILE: 256 nodes like dahu's cpus; calls scatter by VARIATION of dgemm's time, half-normal as in the thesis.
gzip -dc "$data/dgemm/generative_coefficients.csv.gz" >coefficients.csv
cluster() {
    awk -F, -v OFS=, -v v="$2" 'NR == 1 { print "node,cpu,mnk [s],intercept [s],mnk_residual [s]"; next } { print $10, $12, $2, $1, v ? v * $2 : $5 }' coefficients.csv >days.csv
    "$assay" fit population days.csv -y mnk --set coefficients=intercept,mnk_residual --set machine=node,cpu -o population.json >last.log 2>&1 || { cat last.log >&2; exit 1; }
    "$assay" export cluster population.json --set nodes=256 --seed "$1" -o drawn.json >last.log 2>&1
    sed 's/"distribution": "normal"/"distribution": "half-normal"/' drawn.json >"$3"
}
# A process of 32 threads on each node: dgemm alone has all of them.
awk '{ gsub(/5.44554e-11/, 32 * 5.44554e-11); print }' dahu/dtrsm.json >dtrsm.json
for i in "${!kernels[@]}"; do [[ ${kernels[i]} != dtrsm=* ]] || kernels[i]=dtrsm=dtrsm.json; done
threads() { replay "$@" --set NB=512 --set threads=32; }

if [[ $figures == *" scatter "* ]]; then
    printf '\n%-52s %10s %10s\n' "N = $n, 8 x 32 nodes, coefficient of variation" replayed thesis
    for pair in 0.02:0.6 0.04:2.1 0.06:3.9 0.08:6.2 0.1:8.7; do
        for ((seed = 1; seed <= clusters; seed++)); do
            cluster "$seed" "${pair%:*}" cluster.json
            echo "$(threads cluster.json "$n" --set P=8 --set Q=32 --set noise=no) $(threads cluster.json "$n" --set P=8 --set Q=32)"
        done | awk -v pair="$pair" '{ sum += 100 * ($1 / $2 - 1) } END { split(pair, p, ":"); printf "%-52s %8.1f %% %8.1f %%\n", p[1], sum / NR, p[2] }'
    done
fi
if [[ $figures == *" removal "* ]]; then
    cluster 1 "" cluster.json
    threads cluster.json "$n" --set P=4 --set Q=64 --set left-out=16 --set grid-ratio=30 --plot node_sets=node_sets.csv >rate
    printf '\n%-52s %10s %10s\n' "N = $n, nodes left out of 256, best grid" replayed thesis
    awk -F, 'BEGIN { n = split("0 1 3 4 6 7 8 9 10 11 12 13 14 16", k, " "); split("0 -1.0 11.9 0.9 0.7 5.6 1.9 19.4 4.2 2.3 3.0 7.3 16.1 4.1", t, " "); for (i = 1; i <= n; i++) thesis[k[i]] = t[i] " %" }
        NR > 1 { if ($2 == 0) first = $5; printf "%2d %3d x %-44d %8.1f %% %10s\n", $2, $3, $4, 100 * (first / $5 - 1), ($2 in thesis) ? thesis[$2] : "-" }' node_sets.csv
fi
