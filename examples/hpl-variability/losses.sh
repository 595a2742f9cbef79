#!/bin/bash
# What it costs HPL that nodes differ and that calls scatter, and what it gains to leave slow nodes out.
#
#   bash losses.sh [FOLDER]     models and tables are written into FOLDER; default: the current one. About a minute
#
# The machines are drawn from a population: with DATA, the folder of the measured data (generative_coefficients.csv.gz: dgemm of
# the 64 cpus of dahu on 23 days), from these, else from one that is made up to be like them, in which one node of eight is 12 % slower. A
# cluster of NODES nodes, default 128, is drawn with two cpus each; HPL runs on 16 of them, 4 processes each.
# ORDER, default 20000; SETS of nodes, default 20; SEED of all that is drawn, default 1.
set -eu
out=${1:-.} assay=${ASSAY:-assay} seed=${SEED:-1}
mkdir -p "$out" && cd "$out"
quietly() { "$@" >last.log 2>&1 || { cat last.log >&2; exit 1; }; }

if [ -n "${DATA:-}" ]; then
    gzip -dc "$DATA/dgemm/generative_coefficients.csv.gz" |
        awk -F, -v OFS=, 'NR == 1 { print "node,cpu,mnk [s],intercept [s],mnk_residual [s]"; next } { print $10, $12, $2, $1, $5 }' >days.csv
    components=1
else
    awk -v seed="$seed" -v OFS=, '
        function normal() { return sqrt(-2 * log(1 - rand())) * cos(6.283185307 * rand()) }
        BEGIN {
            srand(seed)
            print "node,cpu,mnk [s],intercept [s],mnk_residual [s]"
            for (node = 1; node <= 64; node++) for (cpu = 0; cpu < 2; cpu++) {
                speed = 7.38e-11 * (1 + 0.02 * normal()) * (node % 8 == 0 ? 1.12 : 1)
                for (day = 1; day <= 5; day++)
                    print node, cpu, speed * (1 + 0.008 * normal()), 2.4e-6 * (1 + 0.02 * normal()), 2.78e-12 * (1 + 0.03 * normal())
            }
        }' >days.csv
    components=2
fi
quietly "$assay" fit population days.csv -y mnk --set coefficients=intercept,mnk_residual --set machine=node,cpu --set components=$components -o population.json
quietly "$assay" export cluster population.json --set nodes="${NODES:-128}" --set cpus=2 --seed "$seed" -o dgemm.json
# Messages of 1 us and 12.5 GB/s between nodes.
awk 'BEGIN { print "operation,size,duration"
    for (i = -1; i <= 1; i++) for (s = 1; s <= 1e8; s = s * 2 + 1) print "PingPong," s "," 2 * (1e-6 + s / 12.5e9) * (1 + i / 1000) }' >messages.csv
quietly "$assay" fit smpi messages.csv --set latency=1us --set bandwidth=12.5GB/s -o network.json

quietly "$assay" predict hpl-replay dgemm=dgemm.json network=network.json --set N="${ORDER:-20000}" --set NB=128 --set P=8 --set Q=8 --set BCAST=2ring \
    --set ranks-per-node=4 --seed "$seed" --set node-sets="${SETS:-20}" --set left-out=4 --plot losses=losses.csv --plot losses=losses.svg --plot node_sets=node_sets.csv
awk -F, 'BEGIN { thesis["spatial"] = "22 %"; thesis["temporal"] = "9 %"; printf "%-10s %8s  %-18s %s\n", "nodes", "loss", "95 % of the sets", "thesis" }
    NR > 1 { printf "%-10s %6.1f %%  %4.1f to %4.1f %%     %s\n", $2, $3, $4, $5, thesis[$2] }' losses.csv
awk -F, 'BEGIN { printf "\n%8s %8s %9s %8s  %s\n", "left out", "grid", "Gflop/s", "gain", "the last one" }
    NR > 1 { printf "%8d %8s %9.0f %+6.1f %%  %s\n", $2, $3 "x" $4, $5, $6, $7 }' node_sets.csv
