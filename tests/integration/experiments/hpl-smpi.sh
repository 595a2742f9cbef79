#!/bin/bash
# hpl-smpi: HPL's own code on machines that SimGrid simulates, with kernels at rates that are known: 10 Gflop/s on hosts
# node-0 to node-3, 5 Gflop/s on node-9. The simulated times are what these rates and the networks allow.
. "$(dirname "$0")/../tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
experiment=$ASSAY_SOURCE/experiments/hpl-smpi
for tool in smpicc smpirun; do command -v $tool >"$scratch/tool" || plan_skip "no $tool (libsimgrid-dev)"; done
. "$ASSAY_SOURCE/tests/integration/real-hpl.sh"
hpl=$hpl_source
cd "$scratch" || exit 1

# Each size takes 3 % more than the rate says and 3 % less.
awk 'BEGIN {
    print "node,m,n,k,duration"
    for (h = 0; h < 5; h++) for (i = 1; i <= 9; i++) for (e = -1; e <= 1; e += 2) {
        m = 100 * i; n = 100 * (i * 4 % 9 + 1); k = 100 * (i * 7 % 9 + 1)
        printf "node-%d,%d,%d,%d,%.17g\n", h < 4 ? h : 9, m, n, k, (1 + 0.03 * e) * 2 * m * n * k / (h < 4 ? 1e10 : 5e9)
    }
}' >dgemm.csv
check "a model of dgemm" "$ASSAY" fit dgemm.csv --terms m*n*k --by node --set noise=heteroscedastic -o dgemm.json
check "as a header" "$ASSAY" export kernels dgemm.json -o kernels.h
platform() { "$ASSAY" export simgrid -o "$1.xml" --set radical="$2" --set latency="$3" --set bandwidth="$4" --set cores=4 --set config=smpi/iprobe=1e-6,smpi/test=1e-6; }
check "a platform" platform fast 0-3 1us 10GB/s
check "one with a slow network" platform slow 0-3 50us 200MB/s
check "one with a slow host" platform lame 9 1us 10GB/s
# One of a fitted network, which sets SMPI's tables of costs and factors.
awk 'BEGIN { print "operation,size,duration"
    for (r = 0; r < 3; r++) for (s = 1; s <= 4e6; s = s * 2 + 1) {
        print "PingPong," s "," 2 * (1e-6 + s / 1e10) * (1 + (r - 1) / 1000)
        print "Isend," s "," 1e-7 * (1 + (r - 1) / 1000)
    }
}' >network.csv
check "a model of a network" "$ASSAY" fit smpi network.csv --set latency=1us --set bandwidth=10GB/s -o network.json
check "as a platform" "$ASSAY" export simgrid network.json -o fitted.xml --set radical=0-3 --set cores=4 --set config=smpi/iprobe=1e-6,smpi/test=1e-6
report $(grep -q 'smpi/ois' fitted.xml; echo $?) "with the costs of Isend"
# fast.xml as people write XML: hosts that are commented out come first.
awk '/<zone/ { print; print "<!-- <host id=\"node-9\" speed=\"1Gf\"/> <cluster id=\"old\" prefix=\"node-\" suffix=\"\" radical=\"9\" speed=\"1Gf\" bw=\"1GBps\" lat=\"1us\"/> -->"; next }
    /<cluster/ { gsub("\"", "\047"); sub(/radical=/, "\n radical\n =\n ") } { print }' fast.xml >written.xml

build() { # build SOURCES NAME=MODEL...: as setup does it, with a header of these
    rm -rf built && mkdir built && cd built && cp "$experiment/platform-hosts.cpp" . && "$ASSAY" export kernels "${@:2}" -o ../other.h && hpl=$1 kernels=../other.h sh "$experiment/build.sh"
}
refuse "a header without dgemm" 1 "no model called dgemm" eval "(build '$hpl' gemm=../dgemm.json)"
refuse "a model of what HPL does not call" 1 "calls no sgemm, expected models of: dgemm dtrsm" \
    eval "(build '$hpl' ../dgemm.json sgemm=../dgemm.json)"
refuse "sources that are none" 1 "is no HPL, expected its folder in netlib's layout" eval "(build '$here' ../dgemm.json)"

{
    echo N,ranks,P,Q,nodes,platform,noise,matrix,grow_injected_times,NB
    row() { echo "$1,$2,$scratch/$3.xml,$4,64"; }
    for simulation in fast,mean fast,drawn lame,mean; do row 1000 1,1,1,1 ${simulation%,*} ${simulation#*,},shared,yes; done
    row 500 1,1,1,1 fast mean,shared,yes
    row 1000 1,1,1,1 written mean,shared,yes
    for platform in fast slow; do
        for grid in 2,2 4,1 1,4; do for grow in yes no; do row 1000 4,$grid,4 $platform mean,shared,$grow; done; done
        row 1500 16,4,4,4 $platform mean,shared,yes
    done
    row 1000 4,2,2,4 fast mean,private,yes
    row 1000 4,2,2,4 fitted mean,shared,yes
} >rows.csv
printf 'experiment: hpl-smpi\ndesign: rows.csv\noptions: {hpl: %s, kernels: %s}\nprobes: none\n' "$hpl" "$scratch/kernels.h" >smpi.yaml
check "HPL is simulated" "$ASSAY" run smpi.yaml -q -o runs
check "all of it" test "$(cat runs/*/results/results.csv | wc -l)" -eq 22
[ $tests_failed -eq 0 ] || finish

# of NAME N P Q PLATFORM NOISE MATRIX GROW: that response of that row
of() {
    awk -F, -v name="$1" -v key="$2,$3,$4,$scratch/$5.xml,$6,$7,$8" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["N"] "," $at["P"] "," $at["Q"] "," $at["platform"] "," $at["noise"] "," $at["matrix"] "," $at["grow_injected_times"] == key { print $at[name] }
    ' runs/*/results/results.csv
}
holds() { # holds NAME CONDITION: over numbers that are written in it
    awk "BEGIN { exit !($2) }" || { echo "# not so: $2"; false; }
    report $? "$1"
}
one=$(of time 1000 1 1 fast mean shared yes) half=$(of time 500 1 1 fast mean shared yes)
# What is neither dgemm nor dtrsm, in panels of 4 columns, has no model and takes no time: 3/4 x 4/N of all operations.
holds "one rank takes the operations of HPL at the rate (N = 1000)" "$one / (2/3 * 1000^3 / 1e10) > 1 - 4/1000 && $one / (2/3 * 1000^3 / 1e10) < 1 + 1/1000"
holds "comments, single quotes and line ends in the platform change nothing" "$(of time 1000 1 1 written mean shared yes) == $one"
holds "... and N = 500" "$half / (2/3 * 500^3 / 1e10) > 1 - 4/500 && $half / (2/3 * 500^3 / 1e10) < 1 + 1/500"
holds "which is the time in kernels" "($one - $(of kernel_time 1000 1 1 fast mean shared yes))^2 < (1e-4 * $one)^2"
holds "a host at half the rate takes twice the time" "($(of time 1000 1 1 lame mean shared yes) / $one - 2)^2 < 1e-3^2"
drawn=$(of time 1000 1 1 fast drawn shared yes)
holds "drawn times are others, and the same on average" "$drawn != $one && ($drawn / $one - 1)^2 < 0.01^2"
holds "HPL's rate is from the same time" "($(of rate 1000 1 1 fast mean shared yes) * 1e9 * $one / (2/3 * 1000^3 + 1.5 * 1000^2) - 1)^2 < 1e-5^2"

for grid in "1000 2 2" "1000 4 1" "1000 1 4" "1500 4 4"; do
    fast=$(of time $grid fast mean shared yes) slow=$(of time $grid slow mean shared yes) busy=$(of kernel_time $grid fast mean shared yes)
    holds "a faster network is not slower ($grid)" "$fast < $slow"
    holds "the kernels take the same on both ($grid)" "$busy == $(of kernel_time $grid slow mean shared yes)"
    holds "and messages take time besides ($grid)" "$busy < $fast"
done
for grid in "1000 2 2" "1000 4 1" "1000 1 4"; do
    set -- $grid
    # Every row of processes solves with the panel's triangle for itself: N^2 NB / 2 operations more for each but one.
    holds "ranks share the work ($grid)" "($(of kernel_time $grid fast mean shared yes) * $2 * $3 / $one - 1 - 0.75 * 64 / $1 * ($2 - 1))^2 < 0.01^2"
done

yes=$(of time 1000 4 1 fast mean shared yes)
is "without a panel to broadcast nobody probes, and growing probes change nothing" "$yes" "$(of time 1000 4 1 fast mean shared no)"
holds "elsewhere they cost time" "$(of time 1000 1 4 slow mean shared yes) > $(of time 1000 1 4 slow mean shared no)"
is "... and only that" "$(of kernel_time 1000 1 4 slow mean shared yes)" "$(of kernel_time 1000 1 4 slow mean shared no)"

fitted=$(of time 1000 2 2 fitted mean shared yes) fast=$(of time 1000 2 2 fast mean shared yes)
holds "a fitted network of the same latency and bandwidth takes nearly the same" "($fitted / $fast - 1)^2 < 0.05^2"

is "where the matrix is does not matter to the time" "$(of time 1000 2 2 fast mean private yes)" "$(of time 1000 2 2 fast mean shared yes)"
holds "but to the memory" "$(of memory 1000 2 2 fast mean private yes) > $(of memory 1000 2 2 fast mean shared yes)"
finish
