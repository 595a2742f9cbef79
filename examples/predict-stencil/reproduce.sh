#!/bin/sh
# The figures of T. Shimokawabe, T. Aoki, N. Onodera, "Scalability model for multi-GPU computation of stencil applications
# using regular structured meshes with explicit time integration": what README.md says of them.
#
#   sh reproduce.sh [FOLDER]     writes tables and pictures into FOLDER; default: the current one
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-.}
assay=${ASSAY:-assay}
mkdir -p "$out"
"$assay" predict roofline --scenario "$here/single-gpu.csv" -o "$out/single-gpu.csv" >/dev/null
echo "performance of one GPU by equation (1), Gflop/s, after the printed one:"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { printf "  %s -> %.1f\n", $1, $at["performance"] }' "$out/single-gpu.csv"
"$assay" predict roofline --set flops=13 --set bytes=32 --set peak-flops=1030Gflop/s --set peak-bandwidth=148GB/s \
    --plot roof="$out/figure-3-m2050.svg" >/dev/null
"$assay" predict roofline --set flops=13 --set bytes=32 --set peak-flops=3950Gflop/s --set peak-bandwidth=250GB/s \
    --plot roof="$out/figure-3-k20x.svg" >/dev/null
figure() { # NUMBER GPUS
    "$assay" predict stencil --scenario "$here/figure-$1.csv" --set devices="$2" --set overlap=no,yes \
        -o "$out/figure-$1.csv" --plot rate="$out/figure-$1.html" >/dev/null
    awk -F, -v figure="$1" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { mesh = $at["nx"] " x " $at["ny"] " x " $at["nz"]; g = $at["devices"] + 0 }
        !(mesh in last) { order[++count] = mesh; last[mesh] = 0 }
        $at["overlap"] == "yes" && $at["exposed"] == 0 && g > last[mesh] { last[mesh] = g }
        { most[mesh, $at["overlap"]] = $at["rate"]; largest = g }
        END { for (i = 1; i <= count; i++)
            printf "figure %s, %s: all exchange is hidden up to %d GPUs; %d GPUs: %.0f Gflop/s without overlap, %.0f with\n",
                figure, order[i], last[order[i]], largest, most[order[i], "no"], most[order[i], "yes"] }' "$out/figure-$1.csv"
}
figure 7 4,6,9,12,18,24,36,48,72,96,144,192,288,384,576,768
figure 8 2,4,6,9,12,16,20,25,30,36,40
figure 11 4,6,9,12,18,24,36,48,72,96,144,192,288,384,576,768
