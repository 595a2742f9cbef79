#!/bin/bash
# From measurements to machines that no testbed has: the methods transfer, roofline, mixture and population by the command
# line, and clusters drawn from a population.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
# close FOUND EXPECTED TOLERANCE, relative
close() { awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { exit !(a != "" && (a - b) ^ 2 <= (t * b) ^ 2) }' || { echo "# '$1', expected $2"; return 1; } >&2; }
contains() { tr '\n' ' ' <"$1" | grep -qE -- "$2" || { echo "# $1 does not have: $2"; return 1; } >&2; }
member() { grep -oE "\"$2\": -?[0-9][^,}]*" "$1" | head -1 | cut -d" " -f2; } # member FILE NAME: the first number of that name

# ---- A link of 6.34 GB/s and 41.5 us, measured to some 5 %; one group of one size, one of one row
awk 'BEGIN {
    print "link,size,duration"
    for (i = 0; i < 60; i++) { s = 2 ^ (i % 20 + 6); printf "pcie,%.0f,%.9g\n", s, (41.5e-6 + s / 6.34e9) * (1 + 0.05 * sin(i * i)) }
    for (i = 0; i < 9; i++) printf "odd,64,%.9g\n", 1e-6 * i + 1e-6
    print "lone,64,1e-6"
}' >link.csv
check "a transfer" "$ASSAY" fit transfer link.csv --response duration --by link --set criterion=log -o link.json
report $(close "$(member link.json bandwidth)" 6.34e9 0.05 && close "$(member link.json latency)" 41.5e-6 0.05; echo $?) \
    "has the bandwidth and the latency"
report $(contains link.json '"skipped": .*"lone".*1 row for 2 terms.*"odd".*only 1 of 2 terms can be estimated: size is 64'; echo $?) "groups of one row or size are named"
awk -F, -v OFS=, 'NR == 1 { print "link", "size", "bandwidth" } NR > 1 { print $1, $2, sprintf("%.17g", $2 / $3) }' link.csv >rates.csv
check "bandwidths" "$ASSAY" fit transfer rates.csv --response 'size / bandwidth' --by link --set criterion=log -o rates.json
report $(close "$(member rates.json latency)" "$(member link.json latency)" 1e-9; echo $?) "have the latency of their durations"
refuse "a bandwidth without unit" 2 "the response 'bandwidth' has no unit" "$ASSAY" fit transfer rates.csv --response bandwidth
refuse "terms" 2 "transfer has no --terms" "$ASSAY" fit transfer link.csv --response duration --terms 1+size

# ---- Two GPUs (1030 Gflop/s and 148 GB/s, 3950 and 250) by the equation of the improved form
awk 'BEGIN {
    print "gpu,flops,bytes,duration"
    split("M2050 K20X", gpu, " "); f[1] = 1030e9; f[2] = 3950e9; b[1] = 148e9; b[2] = 250e9
    for (g = 1; g <= 2; g++) for (i = 0; i < 24; i++) {
        F = 1e9 * 2 ^ (i % 6); B = 1e9 * 2 ^ int(i / 6) * (1 + i % 3)
        printf "%s,%.0f,%.0f,%.17g\n", gpu[g], F, B, F / f[g] + B / b[g]
    }
}' >gpus.csv
check "a roofline" "$ASSAY" fit roofline gpus.csv --response duration --by gpu --set overhead=none -o gpus.json
report $(close "$(member gpus.json peak_flops)" 3950e9 1e-9 && close "$(member gpus.json peak_bandwidth)" 250e9 1e-9; echo $?) "has the peaks"
check "... by expressions" "$ASSAY" fit roofline gpus.csv --response duration --by gpu --set overhead=none --set flops=flops/2 --set bytes=2*bytes -o halves.json
report $(close "$(member halves.json peak_flops)" 1975e9 1e-9; echo $?) "has half of the peak"
check "... row by row, too" "$ASSAY" model eval halves.json --rows gpus.csv -o halves.csv
check "... whatever the operator" "$ASSAY" fit roofline gpus.csv --response duration --by gpu --set overhead=none --set flops='flops%1e18' -o rest.json
refuse "... which is compared with data, too" 2 'the model states no noise' "$ASSAY" model check rest.json --data gpus.csv
check "the classical form" "$ASSAY" fit roofline gpus.csv --response duration --by gpu --set form=classical -o classical.json
report $(contains classical.json '"kind": "maximum"'; echo $?) "is the greatest of two times"
refuse "a criterion that the form does not have" 2 "criterion=log is not possible with form=improved; set criterion=relative" \
    "$ASSAY" fit roofline gpus.csv --response duration --set criterion=log

# ---- Messages that take one of two ways below 1000 bytes
awk 'BEGIN {
    print "node,size,duration"
    for (i = 0; i < 800; i++) {
        z = sin(12.9898 * i) + sin(78.233 * i) + sin(37.719 * i)
        printf "%s,%d,%.9g\n", i % 2 ? "a" : "b", i % 4 < 2 ? 500 : 2000, (i % 4 < 2 ? (i % 3 ? 1e-6 : 3e-6) : 9e-6) + 1e-7 * z
    }
}' >messages.csv
check "by segments and nodes" "$ASSAY" fit mixture messages.csv --response duration --by node --set over=size --set breaks=1000 --seed 3 -o modes.json
report $(contains .out '^fitted to 800 rows of size 500 to 2000; mean log density of rows left out: -?[0-9.]+ in the worst group '; echo $?) \
    "judged by the distribution of rows left out, not by the error of a mean"
report $(contains modes.json '"over": "size"' && [ $(grep -o '"components": 2' modes.json | wc -l) -eq 2 ] &&
    [ $(grep -o '"components": 1' modes.json | wc -l) -eq 2 ]; echo $?) "two modes below the break, one above it, on both nodes"
check "the same again" "$ASSAY" fit mixture messages.csv --response duration --by node --set over=size --set breaks=1000 --seed 3 -o again.json
report $(cmp <(sed 's/"created": "[^"]*"//' modes.json) <(sed 's/"created": "[^"]*"//' again.json); echo $?) "bit by bit the same"
refuse "breaks of no column" 2 "breaks are set, but not the column" "$ASSAY" fit mixture messages.csv --response duration --set breaks=1000

# ---- 40 machines on 5 days, every eighth 20 % slower
awk 'BEGIN {
    print "node,cpu,day,mnk,intercept,mnk_residual"
    for (c = 0; c < 40; c++)
        for (d = 0; d < 5; d++) {
            s = sin(12.9898 * c + 1); t = sin(78.233 * (5 * c + d) + 2)
            a = (c % 8 ? 7e-11 : 8.4e-11) * (1 + 0.01 * s + 0.002 * t)
            printf "%d,%d,%d,%.17g,%.17g,%.17g\n", c / 2, c % 2, d, a, 2e-6 * (1 + 0.05 * cos(5 * c) + 0.01 * t), 2e-12 * (1 + 0.1 * cos(7 * c + d))
        }
}' >days.csv
population=("$ASSAY" fit population days.csv --response mnk --set coefficients=intercept,mnk_residual)
check "a population" "${population[@]}" -o one.json
report $(contains one.json '"machines": 40, "repeated": 40'; echo $?) "of 40 machines, two columns naming them"
report $(contains .out ' term +estimate +std error +std deviation mnk .* heterogeneity +0\.0.* variability +0\.00'; echo $?) \
    "with the standard deviations between machines and days"
check "with slow nodes" "${population[@]}" --set components=0 -o slow.json
report $(contains slow.json 'machines of the slow population: node 0, cpu 0; node 4, cpu 0; node 8, cpu 0; node 12, cpu 0; node 16, cpu 0 \(5 of 40 machines\)'; echo $?) "by name"
report $(contains slow.json '"name": "typical".*"weight": 0\.87.*"name": "slow".*"weight": 0\.12'; echo $?) "one in eight"
check "both are good models" "$ASSAY" model check one.json slow.json

# ---- Drawn clusters
draw() { "$ASSAY" export cluster slow.json --set nodes="$1" --set cpus=2 --set form=table --seed "$2" -o "$3"; }
check "a cluster" draw 50 7 cluster.csv
report $([ "$(wc -l <cluster.csv)" -eq 101 ]; echo $?) "a line each"
report $(contains cluster.csv '^node,cpu,day,population,"?mnk"?,"?intercept"?,"?mnk_residual"?'; echo $?) "its columns"
check "fewer nodes" draw 10 7 fewer.csv
report $(cmp fewer.csv <(head -21 cluster.csv); echo $?) "are the first of them"
check "another seed" draw 50 8 other.csv
report $(! cmp -s other.csv cluster.csv; echo $?) "is another cluster"
check "the drawn cluster as a population" "$ASSAY" fit population cluster.csv --response mnk --set coefficients=intercept
check "a model of it" "$ASSAY" export cluster slow.json --set nodes=16 --seed 7 -o nodes.json
report $(contains nodes.json '"engine": "[0-9]' && ! grep -qE '"estimate": [0-9.]{19}' nodes.json; echo $?) "with the version alone, and the fewest digits"
check "is a good model" "$ASSAY" model check nodes.json
report $([ $(grep -c '"labels": {"node": "node-' nodes.json) -eq 16 ]; echo $?) "with a group for each node"
refuse "a model of another kind" 2 "population" "$ASSAY" export cluster modes.json --set nodes=2
refuse "no nodes" 2 "nodes" "$ASSAY" export cluster one.json
refuse "too many" 2 "expected at most 2097152" "$ASSAY" export cluster one.json --set nodes=16777216 --set cpus=2
refuse "a sigma of nothing" 2 "but no coefficient" "$ASSAY" export cluster one.json --set nodes=2 --set as=mnk=none
finish
