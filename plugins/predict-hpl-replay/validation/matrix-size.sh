#!/bin/bash
# matrix-size.sh DATA [N...] [-- OPTION...]: rates of HPL on dahu by the order of the matrix, replayed beside the real runs of March 2019
# (32 x 32 processes on 32 nodes, NB = 128, 2ring, look-ahead 1). DATA is the folder of the measured data (../README.md, "Reality"); OPTION goes
# to `assay predict hpl-replay`, such as --set probing=smpi or --seed 7. $ASSAY is the program, by default the one in PATH.
set -eu
data=$1
shift
sizes=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do sizes+=("$1") && shift; done
[ $# -eq 0 ] || shift
models=$(mktemp -d)
trap 'rm -rf "$models"' EXIT
bash "$(dirname "$0")/dahu-models.sh" "$data/hpl" "$models"
kernels=()
for file in "$models"/d[a-z]*.json "$models"/idamax.json; do
    kernel=$(basename "$file" .json)
    [ "$kernel" = dgemm ] || kernels+=("$kernel=$file")
done
[ ${#sizes[@]} -gt 0 ] || mapfile -t sizes < <(awk -F, '$5 == "2019-03" { print $1 }' "$data/hpl/matrix_size_reality.csv" | sort -nu)
printf '%8s %10s %10s %8s\n' N measured replayed error
for n in "${sizes[@]}"; do
    measured=$(awk -F, -v n="$n" '$5 == "2019-03" && $1 == n { sum += $2; count++ } END { print count ? sum / count : "nan" }' "$data/hpl/matrix_size_reality.csv")
    replayed=$("${ASSAY:-assay}" predict hpl-replay dgemm="$models/dgemm.json" network="$models/network.json" loopback="$models/loopback.json" \
        "${kernels[@]}" --set N="$n" --set NB=128 --set P=32 --set Q=32 --set ranks-per-node=32 --set cpus-per-node=2 --set NBMIN=2 \
        --set BCAST=2ring "$@" -o /dev/stdout 2>/dev/null | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "gflops") c = i } NR == 2 { print $c }')
    awk -v n="$n" -v m="$measured" -v r="$replayed" 'BEGIN { printf "%8d %10.0f %10.0f %+7.1f %%\n", n, m, r, 100 * (r / m - 1) }'
done | tee "$models/rows"
awk '{ e = $4 < 0 ? -$4 : $4; sum += e; if (e > most) most = e } END { printf "mean absolute error %.1f %%, greatest %.1f %%\n", sum / NR, most }' "$models/rows"
