#!/bin/bash
# How often `assay fit alternatives` marks the true model: "figure alternatives_right SHARE 1", the least share of the
# truths below, of 500 simulations each; --quick: 30 each. Called by tests/benchmarks/fits.
#
#   tests/benchmarks/alternatives.sh ASSAY [--quick]
#
# Right are both terms and noise. 100 rows, noise of 3 %: of the row's own mean where it grows (prop), otherwise of the
# mean of all rows. Sizes m, n, k are uniform (uni) or log-uniform (log) from 10 to 3,000; the bytes of lines from 1 to 1e6.
set -euo pipefail
. "$(dirname "$0")/options.sh"
assay=$1 count=500; [ "${2-}" = --quick ] && count=30
scratch=$(mktemp -d "${TMPDIR:-/tmp}/assay-benchmark.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

tables() { # TRUTH NOISE SIZES ROWS LEVEL: $scratch/1.csv and so on
    awk -v truth="$1" -v noise="$2" -v sizes="$3" -v rows="$4" -v level="$5" -v count="$count" -v folder="$scratch" '
        function normal() { return sqrt(-2 * log(1 - rand())) * cos(6.283185307179586 * rand()) }
        function size(low, high) { return int(sizes == "log" ? low * exp(log(high / low) * rand()) : low + (high - low) * rand()) }
        function mean(m, n, k, x) {
            if (truth == "M-1") return 4e-4 + 7e-11 * m * n * k
            if (truth == "M-2") return 4e-4 + 6.9e-11 * m * n * k + 5.8e-9 * m * n + 2.4e-9 * m * k + 3.2e-9 * n * k
            return 1e-5 + 2e-9 * x + (truth == "segments" && x >= 2000 ? 5e-6 + 2e-9 * (x - 2000) : 0)
        }
        BEGIN {
            srand(12345)
            for (c = 1; c <= count; c++) {
                file = folder "/" c ".csv"; sum = 0; print "m,n,k,size,duration" >file
                for (i = 0; i < rows; i++) {
                    m = size(10, 3000); n = size(10, 3000); k = size(10, 3000); x = size(1, 1e6)
                    factors[i] = m "," n "," k "," x; y[i] = mean(m, n, k, x); sum += y[i] / rows
                }
                for (i = 0; i < rows; i++) printf "%s,%.9e\n", factors[i], y[i] + level * (noise == "prop" ? y[i] : sum) * normal() >file
                close(file)
            }
        }'
}

least=1
while read -r truth noise sizes rows level right; do
    tables "$truth" "$noise" "$sizes" "$rows" "$level"
    among=(linear); [[ $truth == M-* ]] || among=(linear piecewise --sizes size --terms 1+size)
    marked=0
    for ((i = 1; i <= count; i++)); do
        "$assay" fit alternatives "${among[0]}" ${among[1]:+"${among[1]}"} "$scratch/$i.csv" "${among[@]:2}" >"$scratch/out"
        if grep -qE "^\\* +$right" "$scratch/out"; then marked=$((marked + 1)); fi
    done
    share=$(awk -v m="$marked" -v n="$count" 'BEGIN {printf "%.3f", m / n}')
    echo "alternatives: truth $truth, noise $noise, sizes $sizes, $rows rows: marked in $share of $count"
    least=$(awk -v a="$least" -v b="$share" 'BEGIN {print (a < b ? a : b)}')
done <<'TRUTHS'
M-1 const uni 100 0.03 linear +M-1 .* N-1
M-2 prop uni 100 0.03 linear +M-2 .* N-2
line prop log 100 0.03 linear +1\+size .* N-2
segments prop log 100 0.03 piecewise .* N-2
TRUTHS
figure alternatives_right "$least" 1
