#!/bin/bash
# The kernel of blas, bit-flips and stress: every call against plain loops, what it counts, refusals; and each of these
# experiments through the engine, with the model that it suggests. How the kernel takes rows: dgemm-kernel.sh.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/../kernel-campaign.sh"
cd "$ASSAY_SOURCE/experiments/kernels" || exit 1
check "it builds" cc -O2 -Wall -Wextra -Werror -o "$scratch/blas" \
    blas.c blas-call.c blas-check.c blas-library.c buffer.c processor.c rows.c settings.c -ldl
cd "$scratch" || exit 1
[ -x blas ] || finish
kernels="dgemm dtrsm dgemv dger dtrsv dswap dcopy daxpy dscal idamax dlaswp dlacpy dlatcpy empty"

# ---- Results
for blas in openblas blis reference; do
    name="$blas computes what plain loops do"
    ./blas --check --blas $blas >out 2>err || { skip "$name" "$blas is not installed"; continue; }
    for kernel in $kernels; do ./blas --check --blas $blas --kernel "$kernel" || echo "$kernel"; done >out 2>&1
    is "$name" "$(grep -v '^#' out)" ""
done
# A BLAS that computes every call with a vector of one element less, and finds the maximum one too early.
cat >short.c <<'END'
void dcopy_(const int *n, const double *x, const int *ix, double *y, const int *iy) {
    for (int i = 0; i < *n - 1; i++)
        y[i * *iy] = x[i * *ix];
}
int idamax_(const int *n, const double *x, const int *ix) {
    int most = 0;
    for (int i = 0; i < *n; i++)
        most = (x[i * *ix] < 0 ? -x[i * *ix] : x[i * *ix]) > x[most * *ix] ? i : most;
    return most;
}
END
cc -shared -fPIC -o short.so short.c
refuse "a call that leaves out an element" 3 "wrong results: element 8 of a small dcopy is" ./blas --check --kernel dcopy --blas ./short.so
refuse "a maximum that is another element" 3 "wrong results: idamax found element" ./blas --check --kernel idamax --blas ./short.so
refuse "a BLAS that lacks a call" 3 "the library has no dtrsm_" ./blas --check --kernel dtrsm --blas ./short.so
refuse "a loop of ours in single precision" 2 "dlacpy has no single precision" ./blas --check --kernel dlacpy --precision single

# ---- Rows: m = 6, n = 4, k = 2
rooms="--a-elements 100 --b-elements 100 --c-elements 1000 --t-elements 100 --offset-range 50"
# shellcheck disable=SC2086 # words
feed() { # feed ROWS [OPTIONS]
    local rows=$1; shift
    printf "unit,kernel,m,n,k,lda,ldb,ldc,inc\n$rows" | ./blas $rooms --responses duration,operations,bytes,class "$@"
}
rows=; unit=0
for kernel in $kernels; do unit=$((unit + 1)); rows+="$unit,$kernel,6,4,2,6,4,8,1\\n"; done
check "a row of each" feed "$rows"
cp .out answers
counts() { grep -v '^#' answers | sed 1d | awk -F, -v names="$kernels" 'BEGIN { split(names, name, " ") } { printf "%s %d %d\n", name[$1], $5, $6 }'; }
is "operations and bytes are those of the formulas" "$(counts | xargs)" "$(echo "dgemm 96 $((8 * (12 + 8 + 48)))
dtrsm 96 $((8 * (8 + 48))) dgemv 48 $((8 * (24 + 4 + 12))) dger 48 $((8 * (6 + 4 + 48))) dtrsv 16 $((8 * (8 + 8)))
dswap 4 128 dcopy 4 64 daxpy 8 96 dscal 4 64 idamax 4 32 dlaswp 24 768 dlacpy 24 384 dlatcpy 24 384 empty 0 0" | xargs)"
refuse "a triangle for which no room was made" 2 "line 2: the matrix T needs 121 elements; expected at most --t-elements 100" feed "1,dtrsv,1,11,1,1,11,1,1\n"
refuse "a transposed copy whose source has more rows than ldb" 2 "line 2: ldb = 3 is smaller than 4, the rows of B" \
    feed "1,dlatcpy,6,4,2,6,3,6,1\n"
refuse "a vector that reaches too far" 2 "line 2: the matrix A needs 103 elements" feed "1,daxpy,1,35,1,1,35,1,3\n"
refuse "an unknown call" 2 "line 2: kernel 'zgemm' is not known; expected dgemm or dtrsm" feed "1,zgemm,1,1,1,1,1,1,1\n"
solves=$(printf '1,dtrsv,1,10,1,1,10,1,1\\n%.0s' $(seq 300))$(printf '1,dtrsm,10,10,1,10,10,10,1\\n%.0s' $(seq 300))
is "many solves of one right-hand side are answered" "$(feed "$solves" --offset-range 0 | grep -vc '^[#u]')" 600

# ---- Classes of cores
class() { feed "1,empty,1,1,1,1,1,1,1\n" --sys sys | tail -n 1 | cut -d, -f7; }
is "a node without classes" "$(class)" 0.000000000
mkdir -p sys/devices/cpu_core sys/devices/cpu_atom
echo 4096-4099 >sys/devices/cpu_core/cpus
echo 4100,0-4095 >sys/devices/cpu_atom/cpus
is "an efficient core of Intel's" "$(class)" 2.000000000
echo 0-4095 >sys/devices/cpu_core/cpus
is "a performance core" "$(class)" 1.000000000
rm -r sys/devices
for ((cpu = 0; cpu < $(nproc --all); cpu++)); do
    mkdir -p "sys/devices/system/cpu/cpu$cpu"
    echo 446 >"sys/devices/system/cpu/cpu$cpu/cpu_capacity"
done
is "cores of one capacity" "$(class)" 0.000000000
mkdir -p sys/devices/system/cpu/cpu1000
echo 1024 >sys/devices/system/cpu/cpu1000/cpu_capacity
is "a core whose capacity the kernel knows" "$(class)" 446.000000000

# ---- Through the engine
{ echo kernel,m,n,k,lda; for size in 8 16 24; do for kernel in $kernels; do echo "$kernel,$size,$size,$size,$size"; done; done; } >sizes.csv
printf '%s\n' 'experiment: blas' 'probes: none' 'design: {file: sizes.csv, repetitions: 3}' >blas.yaml
complete blas 126
check "what is known of the library" "$ASSAY" archive cat "$archive" software/versions.json
cp .out versions
for name in blas_version blas_library blas_core; do check "... $name" grep -q "\"$name\": *\"[^\"]\{3,\}\"" versions; done
library=$(grep -oE '"blas_library": *"[^"]*"' versions | cut -d'"' -f4 | head -n 1)
check "... and its hash" grep -q "\"$(sha256sum <"$library" | cut -c1-64)\"" versions
check "a model of one kernel, for hpl-smpi" "$ASSAY" fit linear "$archive" --where "kernel == 'dtrsm'" --terms '1 + m*n^2' --by node,core -o dtrsm.json
check "a model by the class of the core" "$ASSAY" fit linear "$archive" --where "kernel == 'dgemm'" --terms 1+operations --by class
check "a roofline of all kernels" "$ASSAY" fit roofline "$archive" --where 'bytes > 0' --sizes operations,bytes --by node
printf '%s\n' 'experiment: bit-flips' 'probes: none' 'design: {factors: {content: [constant, random], mask: [0, 53], m: [64], before: [1]}, repetitions: 2}' >bit-flips.yaml
complete bit-flips 8
printf '%s\n' 'experiment: stress' 'probes: none' 'design: {factors: {m: [64], before: [1]}, repetitions: 20}' >stress.yaml
complete stress 20
finish
