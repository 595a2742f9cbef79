#!/bin/sh
# One simulation, in a folder of its own: several may run at once. Factors and options are in the environment.
set -eu
[ -f "$platform" ] || { echo "hpl-smpi: platform '$platform' is no file, expected the path of one of 'assay export simgrid'" >&2 && exit 1; }
sha256sum "$platform"
here=$PWD
folder=$(mktemp -d "$here/simulation.XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
RANKS_PER_NODE=$(((P * Q + nodes - 1) / nodes)) SEED=$((seed_of_simulation + repetition)) NOISE=$([ "$noise" = drawn ] && echo 1 || echo 0)
export RANKS_PER_NODE SEED NOISE

# Where each rank is: nodes one after the other, each filled. SimGrid reads the platform.
"$here/platform-hosts" --log=root.thresh:warning "$platform" >platform-hosts ||
    { echo "hpl-smpi: SimGrid does not read the platform '$platform'" >&2 && exit 1; }
awk -v ranks=$((P * Q)) -v each="$RANKS_PER_NODE" '
    { host[NR - 1] = $0 }
    END {
        needed = int((ranks + each - 1) / each)
        if (NR < needed) { printf "hpl-smpi: the platform has %d hosts, expected %d\n", NR, needed > "/dev/stderr"; exit 1 }
        for (rank = 0; rank < ranks; rank++) print host[int(rank / each)]
    }' platform-hosts >hosts

# Only the local matrix is shared among ranks: it is the one allocation above this size. The panels carry indices, and in a
# grid where they are not smaller than the matrix nothing is shared.
share=$(awk -v n="$N" -v nb="$NB" -v p="$P" -v q="$Q" -v align="$alignment" -v wanted="$matrix" '
    function up(x) { return int(x) < x ? int(x) + 1 : int(x) }
    BEGIN {
        blocks = int(n / nb)
        matrix = 8 * int(blocks / p) * nb * int(blocks / q) * nb
        panel = 8 * (align + nb * (nb + 2) + nb * nb * (up(up(n / nb) / p) + up(up(n / nb) / q)))
        printf "%.0f", (wanted == "shared" && matrix > panel) ? matrix - 1 : 0
    }')

place() { # place WORD LIST...: at which place the word stands in the list, from 0
    word=$1 at=0
    shift
    while [ "$1" != "$word" ]; do at=$((at + 1)) && shift; done
    echo $at
}
cat >HPL.dat <<END
HPL.dat
assay
HPL.out      file
6            standard output
1            number of N
$N           N
1            number of NB
$NB          NB
$(place "$PMAP" row column)            PMAP
1            number of grids
$P           P
$Q           Q
0.0          threshold: nothing is computed, so nothing is checked
1            number of PFACT
$(place "$PFACT" left crout right)            PFACT
1            number of NBMIN
$NBMIN            NBMIN
1            number of NDIV
$NDIV            NDIV
1            number of RFACT
$(place "$RFACT" left crout right)            RFACT
1            number of BCAST
$(place "$BCAST" 1ring 1ringM 2ring 2ringM long longM)            BCAST
1            number of DEPTH
$DEPTH            DEPTH
$(place "$SWAP" binary-exchange spread-roll mix)            SWAP
$swap_threshold           swap_threshold
$(place "$L1" transposed not-transposed)            L1
$(place "$U" transposed not-transposed)            U
$(place "$equilibration" no yes)            equilibration
$alignment            alignment in numbers of 8 bytes
END

start=$(date +%s%N)
smpirun -np $((P * Q)) -platform "$platform" -hostfile hosts --cfg=smpi/simulate-computation:no \
    --cfg=smpi/grow-injected-times:"$grow_injected_times" --cfg=smpi/shared-malloc:global \
    --cfg=smpi/auto-shared-malloc-thresh:"$share" --log=root.thresh:warning "$here/xhpl" </dev/null >out || { cat out; exit 1; }
end=$(date +%s%N)
cat out
awk -v n="$N" -v ns=$((end - start)) '/^simulated: / {
        gsub(",", "")
        printf "time: %s s\nkernels: %s s\nmemory: %.0f bytes\n", $2, $6, 1024 * $9
        printf "rate: %.6g Gflop/s\nwall: %.3f s\n", (2 / 3 * n + 1.5) * n * n / $2 / 1e9, ns / 1e9
    }' out
