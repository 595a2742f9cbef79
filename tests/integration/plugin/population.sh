#!/bin/bash
# From measurements to machines that no testbed has: assay fit mixture, fit population, generate cluster, predict.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
contains() { grep -qE -- "$2" "$1" || { echo "# '$1' does not match: $2"; sed 's/^/# /' "$1" | head -20; return 1; } >&2; }
output() { contains "$scratch/.out" "$1"; }

# Two modes below 1000 bytes, one above; a grid of quantiles, so that nothing is drawn.
awk 'BEGIN {
    print "node,size,duration"
    for (i = 1; i < 400; i++) {
        z = log(i / (400 - i)) / 1.7
        printf "%s,%d,%.17g\n", i % 2 ? "a" : "b", i, 1e-6 + z * 1e-8
        if (i % 2 == 0) printf "%s,%d,%.17g\n", i % 4 ? "a" : "b", i, 2e-6 + z * 2e-8
        printf "%s,%d,%.17g\n", i % 2 ? "a" : "b", 1000 + i, 5e-6 + z * 1e-7
    }
}' >messages.csv
check "a mixture" "$ASSAY" fit mixture messages.csv --by none --set components=3 -o modes.json
check "it is a linear model with the mean alone" "$ASSAY" model check modes.json
report $(contains modes.json '"kind": "linear"'; echo $?) "of the kind linear"
report $(contains modes.json '"noise": \{"kind": "mixture", .*"components": \[\{"weight": 0\.(4|39).*"weight": 0\.(2|19).*"weight": 0\.(4|39)'; echo $?) \
    "the three modes with their shares"
cp modes.json first.json
check "as many as BIC was asked about" "$ASSAY" fit mixture messages.csv --by none --set most=2
report $(output 'components 2, log-likelihood [0-9.]+, AIC' && output 'note: 2 components, the most .*: more were not tried'; echo $?) "that is said"
check "the same again" "$ASSAY" fit mixture messages.csv --by none --set components=3 -o modes.json
report $(cmp <(grep -v created modes.json) <(grep -v created first.json); echo $?) "and bit by bit the same"
check "by segments and nodes" "$ASSAY" fit mixture messages.csv --by node --sizes size --set break1=1000 -o segments.json
check "that is a good model" "$ASSAY" model check segments.json
report $(contains segments.json '"over": "size"'; echo $?) "over the size"
report $([ $(grep -o '"components": 2' segments.json | wc -l) -eq 2 ] && [ $(grep -o '"components": 1' segments.json | wc -l) -eq 2 ]; echo $?) \
    "two modes below the break, one above it, on both nodes"
refuse "breaks of no column" 2 "breaks are given, and 0 columns that they might be of; expected one, with --sizes" \
    "$ASSAY" fit mixture messages.csv --set break1=1000
refuse "more than eight" 2 "components" "$ASSAY" fit mixture messages.csv --set components=9
refuse "no parameter" 2 "did you mean 'components'" "$ASSAY" fit mixture messages.csv --set component=2

# 40 machines on 5 days, every eighth 20 % slower.
awk 'BEGIN {
    print "node,cpu,day,mnk,intercept,mnk_residual"
    for (c = 0; c < 40; c++)
        for (d = 0; d < 5; d++) {
            s = sin(12.9898 * c + 1); t = sin(78.233 * (5 * c + d) + 2)
            a = (c % 8 ? 7e-11 : 8.4e-11) * (1 + 0.01 * s + 0.002 * t)
            printf "%d,%d,%d,%.17g,%.17g,%.17g\n", c / 2, c % 2, d, a, 2e-6 * (1 + 0.05 * cos(5 * c) + 0.01 * t), 2e-12 * (1 + 0.1 * cos(7 * c + d))
        }
}' >days.csv
check "a population" "$ASSAY" fit population days.csv -y mnk --terms 'intercept + mnk_residual | node, cpu' --by none -o one.json
report $(contains one.json '"kind": "days".*"repeated": 40'; echo $?) "with the days of 40 machines"
told() {
    output '^all rows: 200 rows, 1 population$|^all rows: 200 rows$' && output '^  machines 40, .*days a machine 5, .*variability 0\.' &&
        output '^  mnk +7\.17[0-9]+e-11 +[0-9.]+e-13 +[0-9.]+e-12 +[0-9.]+e-13 ' && output '^  correlations between days$' &&
        ! grep -qE '^  mnk +0 ' .out
}
report $(told; echo $?) "means, their errors, and what machines and days differ by are printed"
check "distances are drawn" "$ASSAY" fit population days.csv -y mnk --terms 'intercept + mnk_residual | node, cpu' --by none --plot one.svg
furthest() {
    output "^distances of 40 machines from their population's mean: 2 beyond the 97.5 % point of chi-squared \(3\), 1 expected" &&
        output "^distances of 200 runs from their machine's mean: " &&
        output "^  node 0, cpu 0, days.csv line 2: mnk 8.47[0-9]+e-11, 7.17651e-11 expected of 'typical', distance 3.3" &&
        output '^  node 4, cpu 0, days.csv line 45: mnk 8.30[0-9]+e-11, 8.32[0-9]+e-11 expected, distance 4.1' && ! output '^slow:'
}
report $(furthest; echo $?) "the machines and the runs that are furthest off are named, with their lines"
report $(contains one.svg '>40 machines<' && contains one.svg '>200 runs<' && ! grep -q '>-0<' one.svg; echo $?) "and in the plot"
check "brief" "$ASSAY" fit population days.csv -y mnk --terms 'intercept + mnk_residual | node, cpu' --by none --brief
report $(! output distances; echo $?) "says nothing of them"
check "it is shown" "$ASSAY" model show one.json
report $(told; echo $?) "the same way"
awk 'BEGIN { print "node,a"; for (i = 0; i < 10; i++) print i "," (i % 2 ? "" : "-") "1e300" }' >huge.csv
refuse "squares beyond a double" 2 "beyond what a double can hold" "$ASSAY" fit population huge.csv -y a --by none -o huge.json
report $([ ! -e huge.json ]; echo $?) "no model of them"
check "with slow nodes" "$ASSAY" fit population days.csv -y mnk --terms 'intercept + mnk_residual' --by none \
    --set components=0 -o slow.json
report $(output '^slow: node 0, cpu 0; node 4, cpu 0; node 8, cpu 0; node 12, cpu 0; node 16, cpu 0 \(5 of 40 machines\)$'; echo $?) \
    "the slow ones by name"
report $(output '^  note: 2 populations among 40 machines: among so few BIC may see'; echo $?) "and a word on how sure that is"
report $(contains slow.json '"name": "typical".*"weight": 0\.875.*"name": "slow".*"weight": 0\.125'; echo $?) "one in eight"
check "both are good models" "$ASSAY" model check one.json slow.json

check "a cluster" "$ASSAY" generate cluster slow.json --nodes 50 --cpus 2 --seed 7 -o cluster.csv
report $([ "$(wc -l <cluster.csv)" -eq 101 ]; echo $?) "a line each"
report $(contains cluster.csv '^node,cpu,day,population,mnk,intercept,mnk_residual$'; echo $?) "its columns"
report $(contains cluster.csv.datapackage.json '"mnk_residual"'; echo $?) "and what they are"
check "the same seed" "$ASSAY" generate cluster slow.json --nodes 50 --cpus 2 --seed 7
report $(cmp "$scratch/.out" cluster.csv; echo $?) "is the same cluster"
check "fewer nodes" "$ASSAY" generate cluster slow.json --nodes 10 --cpus 2 --seed 7
report $(cmp "$scratch/.out" <(head -21 cluster.csv); echo $?) "are the first of them"
check "another seed" "$ASSAY" generate cluster slow.json --nodes 50 --cpus 2 --seed 8
report $(! cmp -s "$scratch/.out" cluster.csv; echo $?) "is another cluster"
check "the drawn cluster as a population" "$ASSAY" fit population cluster.csv -y mnk --terms 'intercept | node, cpu' --by none
check "JSON" "$ASSAY" generate cluster one.json --nodes 1 --json
report $(output '"population": "typical"'; echo $?) "tells the population"

check "a model of it" "$ASSAY" generate cluster slow.json --nodes 16 --days 0 --model nodes.json
check "is a good model" "$ASSAY" model check nodes.json
report $([ $(grep -c '"labels": {"node": "node-' nodes.json) -eq 16 ]; echo $?) "with a group for each node"
check "that predictors take" "$ASSAY" predict hpl nodes.json --set N=4096 --set NB=64 --set P=4 --set Q=4 \
    --set latency=1us --set bandwidth=10GB/s --set speed=slowest
report $(output '^note: the model tells no domain'; echo $?) "which were never measured, and that is said"
report $(output "as slow as 'node-[0-9]+', the slowest of 16 groups"; echo $?) "by the slowest"

refuse "a model of another kind" 2 "is of the kind 'linear'; expected 'population'" "$ASSAY" generate cluster modes.json --nodes 2
refuse "no nodes" 2 "how many nodes" "$ASSAY" generate cluster one.json
refuse "nodes that are no number" 2 "--nodes '0'; expected a whole number from 1 to" "$ASSAY" generate cluster one.json --nodes 0
refuse "too many" 2 "expected at most 16777216" "$ASSAY" generate cluster one.json --nodes 16777216 --cpus 2
refuse "its own input" 2 "one.json" "$ASSAY" generate cluster one.json --nodes 2 -o one.json
refuse "no such coefficient" 2 "there is no coefficient 'mnkk'; did you mean 'mnk'" \
    "$ASSAY" generate cluster one.json --nodes 2 --model m.json --as mnkk=1
refuse "two of one term" 2 "'mnk' and 'intercept' are both the coefficient of m\*n\*k" \
    "$ASSAY" generate cluster one.json --nodes 2 --model m.json --as 'intercept=m*n*k'
refuse "a sigma of nothing" 2 "'mnk_residual' is the sigma of m\*n\*k, and no coefficient is that" \
    "$ASSAY" generate cluster one.json --nodes 2 --model m.json --as mnk=none
refuse "something else" 2 "'nodes' cannot be generated; expected 'cluster'" "$ASSAY" generate nodes one.json
sed 's/"covariance": \[\[[^]]*\]/"covariance": [[1, 2, 3]/' one.json >broken.json
refuse "a covariance that is none" 2 "covariance" "$ASSAY" generate cluster broken.json --nodes 2
finish
