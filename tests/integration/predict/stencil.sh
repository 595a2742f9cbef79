#!/bin/bash
# assay predict roofline and stencil: the seed's own figures, equations (1) to (5) by hand, models by role, bad input.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
export ASSAY

# value FILE COLUMN [ROW]: of a table of predictions.
value() { awk -F, -v name="$2" -v row="${3:-1}" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR == row + 1 { print $at[name] }' "$1"; }
# same NUMBER EXPRESSION TITLE: to nine digits.
same() { report $(awk "BEGIN { a = $1 + 0; b = $2; exit !(a - b <= 1e-9 * b && b - a <= 1e-9 * b) }"; echo $?) "$3"; }

check "one command reproduces the figures of the source" sh "$ASSAY_SOURCE/examples/predict-stencil/reproduce.sh" figures
report $(output 'M2050: 56.8 -> 56.8$' && output 'K20X: 99.0 -> 99.0$' && output 'LBM on M2050: 214.5 -> 214.5$'; echo $?) "single GPUs to the printed digits"
report $(output '^figure 7, 512 x 512 x 512: all exchange is hidden up to 12 GPUs'; echo $?) "and says where the exchange is no longer hidden"
report $(test -s figures/figure-3-k20x.svg && test -s figures/figure-7.html && test -s figures/figure-8.html && test -s figures/figure-11.html; echo $?) "with pictures"
is "and a row for each GPU count, mesh and method" "$(wc -l <figures/figure-11.csv)" 97

# ---- roofline
set -- predict roofline --set flops=13 --set bytes=32
peaks=(--set peak-flops=1Tflop/s --set peak-bandwidth=100GB/s)
check "a roofline" "$ASSAY" "$@" "${peaks[@]}" --set overhead=1ns --set form=improved,classical -o roof.csv --plot roof=curve.csv
same "$(value roof.csv time)" "13e-12 + 32e-11 + 1e-9" "improved: the sum"
same "$(value roof.csv time 2)" "32e-11" "classical: the larger one"
is "which is memory's" "$(value roof.csv bound 2)" memory
report $(grep -q 'the classical form has none' roof.csv; echo $?) "and says that the overhead is ignored"
is "the ridge of the curve" "$(awk -F, '$2 == 10 && $1 == 2 { print $4 }' curve.csv)" 1000
check "an explanation" "$ASSAY" "$@" "${peaks[@]}" --explain
report $(output '^transfer +96\.1 '; echo $?) "has the share of memory"
awk 'BEGIN { print "flops [flop],bytes [B],duration [s]"; for (i = 1; i < 30; i++) { f = 1e6 * i; b = 1e6 * (i * 7 % 11 + 1)
    printf "%d,%d,%.12g\n", f, b, (f / 1e9 + b / 4e9 + 1e-3) * (1 + (i % 3 - 1) * 1e-3) } }' >kernels.csv
"$ASSAY" fit roofline kernels.csv --sizes flops,bytes -o machine.json >/dev/null
"$ASSAY" fit roofline kernels.csv --sizes flops,bytes --set form=classical -o classical.json >/dev/null
check "a model of the machine" "$ASSAY" predict roofline machine=machine.json --set flops=2e7 --set bytes=5e6 --draws 50 -o fitted.csv
report $(awk "BEGIN { t = $(value fitted.csv time); exit !(t > 0.02215 && t < 0.02235 && $(value fitted.csv time_low) < t && t < $(value fitted.csv time_high)) }"; echo $?) \
    "says the time, with an interval"
check "a classical model" "$ASSAY" predict roofline machine=classical.json --set flops=2e7 --set bytes=5e6
report $(output '^rest +0 s'; echo $?) "has no overhead"
check "a kernel beyond the model" "$ASSAY" predict roofline machine=machine.json --set flops=2e9 --set bytes=5e6
is "is warned of once, with the factor" "$(grep -c "^warning: .*extrapolated.*'flops' is [0-9.]* times the greatest" .out)" 1
awk 'BEGIN { print "kernel,threads,size [B],duration [s]"; for (i = 1; i < 9; i++) for (t = 1; t < 3; t++) printf "triad,%d,%d,%.9g\n", t, 1e6 * i, 1e-6 + i * 1e6 * t / 8e9 }' >passes.csv
awk 'BEGIN { print "m,n,k,duration [s]"; for (i = 1; i < 20; i++) { m = 100 * i; n = 100 * (i * 7 % 19); k = 100 * (i * 5 % 17 + 1); printf "%d,%d,%d,%.12g\n", m, n, k, 1e-5 + m * n * k / 4e9 } }' >dgemm.csv
"$ASSAY" fit linear passes.csv --response duration --terms 1+size --by kernel,threads --folds 0 -o memory.json >/dev/null
"$ASSAY" fit linear dgemm.csv --response duration --terms '1+m*n*k' --folds 0 -o dgemm.json >/dev/null
check "peaks from models of memory and dgemm" "$ASSAY" "$@" memory=memory.json dgemm=dgemm.json --set memory-group=triad/2 -o measured.csv
report $(awk "BEGIN { r = $(value measured.csv time) / (13 / 8e9 + 32 / 4e9); exit !(r > 1 - 1e-6 && r < 1 + 1e-6) }"; echo $?) "are their slopes"
refuse "several groups" 2 "memory.json has 2 groups, and 'memory-group' is not set; expected the name of one, such as triad/1" "$ASSAY" "$@" memory=memory.json dgemm=dgemm.json
refuse "no peak" 2 "peak-flops is not known; set it, or give dgemm=MODEL of the experiment 'dgemm' \(or the archive of the experiment with --from\), or machine=MODEL" \
    "$ASSAY" "$@" --set peak-bandwidth=1GB/s
refuse "a peak and a model" 2 "peak-flops is set, but the model for 'dgemm' gives it, too; remove one" "$ASSAY" "$@" "${peaks[@]}" dgemm=dgemm.json
refuse "a machine and peaks" 2 "the model for 'machine' already gives the peaks and the overhead" "$ASSAY" "$@" "${peaks[@]}" machine=machine.json
refuse "a model of another kernel" 2 "the terms of 'dgemm.json' are not operations in flop, bytes in By, and 1" "$ASSAY" "$@" machine=dgemm.json
refuse "a model in the wrong role" 2 "the model 'dgemm.json' has no term size; expected a model of the experiment 'memory'" "$ASSAY" "$@" memory=dgemm.json --set peak-flops=1e9
sed 's/"unit": "flop"/"unit": "By"/' machine.json >swapped.json
refuse "a model in another unit" 2 "the terms of 'swapped.json' are not operations in flop" "$ASSAY" "$@" machine=swapped.json
refuse "no bandwidth" 2 "peak-bandwidth: '0' is out of range" "$ASSAY" "$@" --set peak-flops=1e9 --set peak-bandwidth=0
refuse "no work" 2 "flops and bytes are both 0" "$ASSAY" predict roofline "${peaks[@]}" --set flops=0 --set bytes=0
refuse "a missing parameter" 2 "the parameter 'bytes' is not set" "$ASSAY" predict roofline "${peaks[@]}" --set flops=1

# ---- stencil: 64 x 32 x 16 points on 8 devices, 2 x 2 x 2 parts of 4096 points, 2 faces of 128, 256 and 512 points
code=(--set nx=64 --set ny=32 --set nz=16 --set flops=10 --set halo-bytes=8)
part=(--set devices=8 --set px=2 --set py=2 --set pz=2 --set performance=1Gflop/s)
paths=(--set network-bandwidth=1GB/s --set network-latency=5us --set copy-bandwidth=2GB/s --set copy-latency=1us)
set -- predict stencil "${code[@]}" "${part[@]}" "${paths[@]}"
check "a stencil" "$ASSAY" "$@" --set devices-per-node=4 --set overlap=no,yes -o parts.csv
network="2 * 8 * (3 * 5e-6 + 896 * 8 / 1e9)" copy="2 * 2 * (3 * 1e-6 + 896 * 8 / 2e9)"
same "$(value parts.csv network)" "$network" "the network is shared by both directions of g devices: 2 g s/B"
same "$(value parts.csv copy)" "$copy" "each face is copied twice: 2 s/B"
same "$(value parts.csv time)" "4096e-8 + $network + $copy" "without overlap times add up"
same "$(value parts.csv rate)" "8 * 4096 * 1e-8 / (4096e-8 + $network + $copy)" "P_m is V R / time"
same "$(value parts.csv time 2)" "$network + $copy" "with overlap the longest counts"
check "a network for each direction, one exchange a direction" "$ASSAY" "$@" --set duplex=full --set faces=1 -o duplex.csv
same "$(value duplex.csv network)" "3 * 5e-6 + 896 * 8 / 1e9" "costs a quarter"
for progress in network none; do "$ASSAY" "$@" --set overlap=yes --set progress=$progress -o $progress.csv >/dev/null; done
same "$(value network.csv time)" "4 * (3 * 5e-6 + 896 * 8 / 1e9) + $copy" "where only the network goes on meanwhile, copies are added"
same "$(value none.csv time)" "4096e-8 + 4 * (3 * 5e-6 + 896 * 8 / 1e9) + $copy" "where nothing does, all is"
check "cuts by the number of dimensions" "$ASSAY" predict stencil "${code[@]}" --set devices=16 --set decomposition=1d,2d,3d "${paths[@]}" --set performance=1Gflop/s -o cuts.csv
same "$(value cuts.csv sent 1)" "2 * 8 * 64 * 32" "1d: in z"
same "$(value cuts.csv sent 2)" "2 * 8 * (64 * 32 / 4 + 64 * 16 / 4)" "2d: in y and z"
same "$(value cuts.csv sent 3)" "2 * 8 * (64 * 32 + 64 * 16 + 32 * 16) / 16 ^ (2 / 3)" "3d: R^(1/3) parts each, also where that is not whole"
check "one device" "$ASSAY" predict stencil "${code[@]}" --set devices=1 --set performance=1Gflop/s --set copy-bandwidth=2GB/s --set copy-latency=1us \
    --set periodic=no,yes -o one.csv
same "$(value one.csv time)" "32768e-8" "exchanges nothing"
same "$(value one.csv time 2)" "32768e-8 + 2 * 3 * (2e-6 + (2048 + 1024) * 8 / 2e9)" "or copies what it sends to itself"

# Models by role, in what units they come.
awk 'BEGIN { print "flops [flop],duration [us]"; for (i = 1; i < 20; i++) printf "%d,%.9g\n", 4000 * i, 2 + 4 * i * (1 + (i % 3 - 1) * 1e-3) }' >compute.csv
awk 'BEGIN { print "size [B],duration [us]"; for (i = 1; i < 20; i++) printf "%d,%.9g\n", 400 * i, 5 + 0.4 * i * (1 + (i % 3 - 1) * 1e-2) }' >messages.csv
awk 'BEGIN { print "operation,size [B],duration [us]"; for (i = 1; i < 40; i++) printf "PingPong,%d,%.9g\n", 200 * i, 10 + 0.4 * i }' >calls.csv
"$ASSAY" fit linear compute.csv --response duration --terms 1+flops -o compute.json >/dev/null
"$ASSAY" fit transfer messages.csv -o network.json >/dev/null
"$ASSAY" fit smpi calls.csv --set latency=1us --set bandwidth=10GB/s --set find-breaks=no -o smpi.json >/dev/null 2>&1
set -- predict stencil "${code[@]}" --set devices=8 --set px=2 --set py=2 --set pz=2
check "models" "$ASSAY" "$@" compute=compute.json network=network.json --draws 50 -o models.csv
report $(awk "BEGIN { r = $(value models.csv time) / (43e-6 + 4 * (3 * 5e-6 + 896 * 8 / 1e9)); exit !(r > 0.98 && r < 1.02 && $(value models.csv time_low) < $(value models.csv time)) }"; echo $?) \
    "are added up, with an interval"
check "a model of SMPI" "$ASSAY" "$@" compute=compute.json network=smpi.json -o smpi.csv
report $(awk "BEGIN { r = $(value smpi.csv network) / (4 * (3 * 5e-6 + 896 * 8 / 1e9)); exit !(r > 0.999 && r < 1.001) }"; echo $?) "is half a ping-pong"
check "a roofline as the model of a device" "$ASSAY" "$@" compute=machine.json network=network.json --set bytes=20
is "is warned of outside of its domain, once" "$(grep -c "^warning: .*'machine.json' .*extrapolated" .out)" 1
check "peaks" "$ASSAY" "$@" --set bytes=20 --set peak-flops=1Tflop/s --set peak-bandwidth=100GB/s network=network.json -o peaks.csv
same "$(value peaks.csv compute)" "4096 * (10e-12 + 20e-11)" "are equation (1)"
cat >stencil.yaml <<'YAML'
name: stencil
testbed: local
probes: none
experiment:
  name: stencil
  factors: {flops: {type: integer, unit: flop}}
  responses: {compute: {pattern: 'took ([0-9.e-]+)', unit: s}}
  run: "awk -v f=$flops 'BEGIN { printf \"took %.12f\\n\", 1e-6 + f * 1e-9 * (1 + f % 7 / 1000) }'"
  model: {method: linear, response: compute, terms: M-1, sizes: [flops]}
design: flops.csv
YAML
printf 'flops\n1000\n5000\n20000\n40000\n60000\n80000\n' >flops.csv
archive=$("$ASSAY" run stencil.yaml -q -o runs 2>.err) || sed 's/^/# /' .err
check "an archive of the experiment" "$ASSAY" "$@" --from "$archive" network=network.json
report $(output "for the role 'compute'" && output '^compute +42\.[0-9]+ us'; echo $?) "is fitted for its role"
check "a search" "$ASSAY" predict stencil "${code[@]}" --set devices=1..64:1 --set overlap=no,yes "${paths[@]}" --set performance=1Gflop/s --search 200 --plot time=s.svg
report $(output 'by the least time; best first'; echo $?) "finds the best"

full=("$@" --set performance=1e9 --set network-bandwidth=1GB/s)
refuse "parts that are not the devices" 2 "px x py x pz are 4 parts; expected as many parts as devices, 8" "$ASSAY" predict stencil "${code[@]}" --set devices=8 --set py=4 "${paths[@]}" --set performance=1e9
refuse "parts in two ways" 2 "decomposition and px, py or pz are set" "$ASSAY" "${full[@]}" --set network-latency=0 --set decomposition=2d
refuse "more parts than points" 2 "40 parts in direction y are more than its 32 points" "$ASSAY" predict stencil "${code[@]}" --set devices=40 --set py=40 "${paths[@]}" --set performance=1e9
refuse "no points" 2 "nx: '0' is out of range" "$ASSAY" predict stencil "${code[@]/nx=64/nx=0}" --set devices=1 --set performance=1e9
refuse "a negative latency" 2 "network-latency: '-1us' is out of range" "$ASSAY" "${full[@]}" --set network-latency=-1us
refuse "no bandwidth" 2 "network-bandwidth: '0' is out of range" "$ASSAY" "$@" --set performance=1e9 --set network-bandwidth=0 --set network-latency=0
refuse "half a network" 2 "network-latency is not set; set it \(B0 and t0 of equation \(5\)\), or give network=MODEL" "$ASSAY" "${full[@]}"
refuse "half a path of copies" 2 "copy-bandwidth is not set" "$ASSAY" "${full[@]}" --set network-latency=0 --set copy-latency=1us
refuse "no device" 2 "the speed of a device must be given in one way: performance, or both peak-flops .*; none is given" "$ASSAY" "$@" "${paths[@]}"
refuse "a device in two ways" 2 "several are given" "$ASSAY" "$@" "${paths[@]}" --set performance=1e9 compute=compute.json
refuse "one peak" 2 "peak-bandwidth is not set; equation \(1\) needs both" "$ASSAY" "$@" "${paths[@]}" --set peak-flops=1e9 --set bytes=1
refuse "a roofline without bytes" 2 "bytes is not set; a roofline needs the bytes of a point" "$ASSAY" "$@" "${paths[@]}" compute=machine.json
refuse "a network in two ways" 2 "a model is given for 'network', but network-bandwidth or network-latency is set" "$ASSAY" "$@" "${paths[@]}" --set performance=1e9 network=network.json
refuse "a model of another kernel" 2 "the model 'dgemm.json' needs the column 'm'" "$ASSAY" "$@" compute=dgemm.json "${paths[@]}"
refuse "a model in the wrong role" 2 "the model 'compute.json' needs the column 'flops'" "$ASSAY" "$@" network=compute.json --set performance=1e9
sed '/"response"/s/"unit": "s"/"unit": "By"/' network.json >bytes.json
refuse "a model of no time" 2 "bytes.json.*time" "$ASSAY" "$@" network=bytes.json --set performance=1e9
printf 'nx,ny,nz,device\n64,32,16,8\n' >misspelt.csv
refuse "a misspelt column" 2 "misspelt.csv:1: there is no parameter 'device'" "$ASSAY" predict stencil --scenario misspelt.csv
refuse "a missing parameter" 2 "the parameter 'devices' is not set" "$ASSAY" predict stencil "${code[@]}" --set performance=1e9
finish
