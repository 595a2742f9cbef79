#!/bin/bash
# validate.sh DATA [STUDY...] [--orders N,...] [--seeds COUNT] [-- OPTION...]: rates of HPL as replayed, beside real runs, SMPI, and the
# naive prediction. DATA is the folder of the measured data (../README.md, "How right it is").
#
#   2018-10 2019-03 2019-10-30 2020-10   matrix sizes on dahu: 32 x 32 processes on 32 nodes, NB = 128, 2ring, look-ahead 1
#   dahu4                                4 nodes with a process of 32 threads each: N, NB, BCAST, DEPTH, PFACT and RFACT vary
#   factorial                            72 settings of NB, DEPTH, BCAST and SWAP on dahu, 32 x 32 processes, N = 250,000, by replay=sampled: how they
#                                        rank, and which places the intervals leave open; no real run of it is in the data
#   smpi                                 runs of SimGrid 3.32's SMPI with the same models, instead of real runs; with -- --set probing=smpi
#
# Without STUDY: all. --orders: these N alone. --seeds: the mean over so many seeds instead of one. OPTION goes to `assay predict
# hpl-replay`, such as --set probing=smpi. $ASSAY is the program, by default the one in PATH.
#
# "linear" is linear scaling in nodes: the rate of one node that is replayed alone, with as much of the matrix as it has in the
# whole, times the number of nodes. "SMPI" is what the authors of the runs published; mean absolute errors are of the rate. Where ten or more
# settings have the same N, Spearman's rank correlation is of them, and the regret: what the setting that the replay would choose loses to the best.
set -eu
here=$(dirname "$0") data=$1 seeds=1 orders= studies=()
shift
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case $1 in
        --orders | --seeds) [ "$1" = --seeds ] && seeds=$2 || orders=$2; shift 2 ;;
        2018-10 | 2019-03 | 2019-10-30 | 2020-10 | dahu4 | factorial | smpi) studies+=("$1"); shift ;;
        *) echo "validate.sh: there is no study '$1'; expected 2018-10, 2019-03, 2019-10-30, 2020-10, dahu4, factorial or smpi" >&2; exit 2 ;;
    esac
done
[ $# -eq 0 ] || shift
[ ${#studies[@]} -gt 0 ] || studies=(2018-10 2019-03 2019-10-30 2020-10 dahu4 factorial smpi)
models=$(mktemp -d)
trap 'rm -rf "$models"' EXIT

# replay N NB P Q RANKS_PER_NODE BCAST DEPTH PFACT RFACT OPTION...: Gflop/s
replay() {
    local values=(--set "N=$1" --set "NB=$2" --set "P=$3" --set "Q=$4" --set "ranks-per-node=$5" --set "BCAST=$6" --set "DEPTH=$7" --set "PFACT=$8" --set "RFACT=$9")
    shift 9
    for ((seed = 1; seed <= seeds; seed++)); do
        "${ASSAY:-assay}" predict hpl-replay dgemm="$models/dgemm.json" network="$models/network.json" loopback="$models/loopback.json" \
            "${kernels[@]}" "${values[@]}" --set cpus-per-node=2 --set NBMIN=2 --seed "$seed" "$@" -o /dev/stdout 2>/dev/null |
            awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "gflops") c = i } NR == 2 { print $c }'
    done | awk '{ sum += $1 } END { print NR ? sum / NR : "nan" }'
}

# Lines "N NB P Q RANKS_PER_NODE BCAST DEPTH PFACT RFACT MEASURED SMPI" of a study; "-": not known.
points() {
    local hpl=$data/hpl
    case $1 in
        smpi) awk -F, -v OFS=' ' 'NR > 1 { print $1, $2, $3, $4, 32, $5, $6, $3 == 8 ? "left" : "crout", "right", $9, "-" }' "$hpl/smpi_runs.csv" ;;
        dahu4) awk -F, -v OFS=' ' 'NR > 1 { print $1, $2, $3, $4, 1, $5, $6, $7, $8, $9, "-" }' "$hpl/dahu4_factorial_threads.csv" ;;
        *) awk -F, -v date="$1" '
            NR == 1 { next }
            $1 == "Reality" && index($3, date) == 1 { sum[$4] += $5 * $6; runs[$4] += $5; cooling = $2 }
            $1 == "Simulation" { smpi[$2, $4] = $6 }
            END { for (n in sum) print n, 128, 32, 32, 32, "2ring", 1, "crout", "right", sum[n] / runs[n], ((cooling, n) in smpi) ? smpi[cooling, n] : "-" }
        ' "$hpl/dahu_matrix_size_cooling.csv" | sort -n ;;
    esac | awk -v orders=",$orders," '
        BEGIN { split("1ring 1ringM 2ring 2ringM long longM", bcast); split("left crout right", fact) }
        { if ($6 ~ /^[0-5]$/) $6 = bcast[$6 + 1] }
        { for (i = 8; i <= 9; i++) { if ($i ~ /^[0-2]$/) $i = fact[$i + 1]; } }
        orders == ",," || index(orders, "," $1 ",")'
}

# All 72 settings, best first, each with the places that it may have: as many others are certainly better, or not certainly worse.
rank_factorial() {
    echo "factorial: dahu, 32 x 32 processes on 32 nodes, N = 250,000; dgemm of $dgemm"
    "${ASSAY:-assay}" predict hpl-replay dgemm="$models/dgemm.json" network="$models/network.json" loopback="$models/loopback.json" "${kernels[@]}" \
        --set N=250000 --set NB=128,256 --set P=32 --set Q=32 --set ranks-per-node=32 --set DEPTH=0,1 --set BCAST=1ring,1ringM,2ring,2ringM,long,longM \
        --set SWAP=binary-exchange,spread-roll,mix --set cpus-per-node=2 --set NBMIN=2 --set replay=sampled "$@" -o "$models/factorial.csv" >/dev/null
    awk -F, '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { print $at["time"], $at["sampling_error"], $at["gflops"], $at["NB"], $at["DEPTH"], $at["BCAST"], $at["SWAP"] }' "$models/factorial.csv" | sort -g | awk '
        { low[NR] = $1 - $2; high[NR] = $1 + $2; line[NR] = sprintf("%10.0f %8.2f %8.2f %4d %2d %7s %15s", $3, $1, $2, $4, $5, $6, $7) }
        END {
            printf "%10s %8s %8s %4s %2s %7s %15s %9s\n", "Gflop/s", "time", "+-", "NB", "d", "bcast", "swap", "places"
            for (i = 1; i <= NR; i++) {
                first = 1; last = NR
                for (j = 1; j <= NR; j++) { first += high[j] < low[i]; last -= low[j] > high[i] }
                printf "%s %4d..%-3d\n", line[i], first, last
            }
        }'
}

for study in "${studies[@]}"; do
    case $study in
        dahu4) dgemm=threads.csv threads=(--set threads=32) ;;
        2019-10-30) dgemm=dahu_dgemm_polynomial_2019-10.csv threads=() ;;
        *) dgemm=dahu_dgemm_polynomial_2019.csv threads=() ;; # the data have none of 2018-10 and 2020-10
    esac
    bash "$here/dahu-models.sh" "$data/hpl" "$models" "$dgemm"
    kernels=()
    for file in "$models"/d[a-z]*.json "$models"/idamax.json; do
        kernel=$(basename "$file" .json)
        [ "$kernel" = dgemm ] || kernels+=("$kernel=$file")
    done
    if [ "$study" = factorial ]; then
        rank_factorial "$@"
        continue
    fi
    echo "$study: rates in Gflop/s; dgemm of $dgemm"
    printf '%8s %4s %7s %6s %2s %10s %10s %9s %10s %9s %10s %9s\n' N NB grid bcast d measured replayed error SMPI error linear error
    while read -r n nb p q each bcast depth pfact rfact measured smpi; do
        nodes=$((p * q / each)) # a node alone has N / sqrt(nodes), in whole blocks
        alone=$(awk -v n="$n" -v nb="$nb" -v nodes="$nodes" 'BEGIN { blocks = int(n / sqrt(nodes) / nb + 0.5); print nb * (blocks > 1 ? blocks : 1) }')
        rows=$(awk -v each="$each" 'BEGIN { r = int(sqrt(each)); while (each % r) r--; print r }')
        replayed=$(replay "$n" "$nb" "$p" "$q" "$each" "$bcast" "$depth" "$pfact" "$rfact" "${threads[@]}" "$@")
        one=$(replay "$alone" "$nb" "$rows" $((each / rows)) "$each" "$bcast" "$depth" "$pfact" "$rfact" "${threads[@]}" "$@")
        awk -v n="$n" -v nb="$nb" -v grid="${p}x$q" -v bcast="$bcast" -v depth="$depth" -v m="$measured" -v r="$replayed" -v s="$smpi" -v one="$one" -v nodes="$nodes" '
            function pair(x) { return x == "-" ? sprintf("%10s %9s", "-", "-") : sprintf("%10.0f %+7.1f %%", x, 100 * (x / m - 1)) }
            BEGIN { printf "%8d %4d %7s %6s %2d %10.0f %s %s %s\n", n, nb, grid, bcast, depth, m, pair(r), pair(s), pair(one * nodes) }'
    done < <(points "$study") | tee "$models/rows"
    awk '
        function rank(values, ranks, i, j) {
            for (i = 1; i <= kept; i++) {
                ranks[i] = 0.5
                for (j = 1; j <= kept; j++) ranks[i] += values[j] < values[i] ? 1 : values[j] == values[i] ? 0.5 : 0
            }
        }
        NR == 1 { order = $1 }
        $1 == order { real[++kept] = $6; replayed[kept] = $7; if ($6 > best) best = $6; if ($7 > most_replayed) { most_replayed = $7; chosen = $6 } }
        function add(i, x) { if (x == "-") return; x = x < 0 ? -x : x; sum[i] += x; n[i]++; if (x > most[i]) most[i] = x }
        { add(1, $8); s = $10 == "-" ? 11 : 12; add(2, $10 == "-" ? "-" : $11); add(3, $(s + 2)) }
        END {
            split("replay SMPI linear", name)
            for (i = 1; i <= 3; i++) if (n[i]) printf "%s: mean absolute error %.1f %%, greatest %.1f %%\n", name[i], sum[i] / n[i], most[i]
            if (kept < 10) exit
            rank(real, a); rank(replayed, b)
            for (i = 1; i <= kept; i++) { d = (kept + 1) / 2; xy += (a[i] - d) * (b[i] - d); xx += (a[i] - d) ^ 2; yy += (b[i] - d) ^ 2 }
            printf "%d settings of N = %d: rank correlation (Spearman) %.2f, regret of the chosen one %.1f %%\n", kept, order, xy / sqrt(xx * yy), 100 * (1 - chosen / best)
        }' "$models/rows"
done
