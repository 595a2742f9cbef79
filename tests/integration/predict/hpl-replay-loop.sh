#!/bin/bash
# The loop of examples/hpl-replay at small size: measured, fitted, replayed, beside the same HPL really run. How far off the replay is
# depends on what else the machine does, so that only its parts are looked at.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
command -v mpicc >"$scratch/tool" && command -v mpirun >"$scratch/tool" || plan_skip "no MPI (libopenmpi-dev)"
. "$(dirname "$0")/../real-hpl.sh"
cd "$scratch" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1

check "one command measures, fits, replays and runs HPL" env HPL="$xhpl" ORDERS=300 NB=32 REPETITIONS=1 PRODUCTS=4 CALLS=2 MESSAGES=8 BIND=none \
    bash "$ASSAY_SOURCE/examples/hpl-replay/own.sh" loop
report $(output '^ +300 +[0-9.]+ +\([0-9.]+ to [0-9.]+\) +[0-9.]+ +[-+][0-9.]+ %$'; echo $?) "and prints the measured time beside the replayed one"
for role in "dgemm.zip' for the role 'dgemm" "blas.zip' for the role 'kernel" "mpi.zip' for the role 'network"; do
    report $(contains loop/predict.txt "$role"; echo $?) "an archive has its role: $role"
done
report $(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR == 2 { exit !($at["dgemm"] > 0 && $at["other_kernels"] > 0 && $at["messages"] > 0 && $at["time"] > $at["dgemm"]) }' loop/predicted.csv; echo $?) \
    "dgemm, the other kernels and messages take time in the replay"
"$ASSAY" fit loop/dgemm.zip -o dgemm.json >fit.out 2>&1
check "a kernel with a model of its own beside those of an archive" "$ASSAY" predict hpl-replay dgemm=dgemm.json daxpy=dgemm.json --from loop/blas.zip --set N=64 --set NB=8 --set P=1 --set Q=1
report $(output "blas.zip' for the role 'kernel'"; echo $?) "has them both"
finish
