#!/bin/bash
# The programs of mpi-ring, mpi-saturation and mpi-collectives with real ranks: what is measured how often, that clocks of
# nodes are found, that a library which breaks a guideline is; and campaigns whose suggested models fit.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
command -v mpicc.openmpi >"$scratch/which" || plan_skip "no OpenMPI here (libopenmpi-dev)"
bed_first 2
source=$ASSAY_SOURCE/experiments/mpi
cd "$scratch" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
build() { mpicc.openmpi -O2 -Wall -Wextra -Werror -o "$1" "${@:2}" "$source/ranks.c" -lm -ldl; } # build PROGRAM SOURCES
run() { mpirun.openmpi --bind-to none --mca pml ob1 -n "$@"; }                                   # run RANKS PROGRAM OPTIONS
of() { sed -n "s/^$1 //p" .out; }                                                                # of KIND: its lines

# ---- The ring
check "the ring builds" build ring "$source/ring.c"
check "three ranks" run 3 ./ring --at 1,5000,200000 --repetitions 4 --load dgemm --buffer shared --order 32
is "each rank has each message" "$(of hop | awk '{ n[$1 " " $2]++ } END { for (i in n) print n[i] }' | sort | uniq -c | xargs)" "9 4"
is "a hop is no shorter than its parts" "$(of hop | awk '$9 < $4 + $5 * $6 + $7 + $8 - 1e-7')" ""
is "probes in vain have a time, and only those" "$(of hop | awk '($5 > 0) != ($6 > 0)')" ""
order() { of hop | awk '$1 == 0 { print $2 }'; }
order >first
is "in an order that is shuffled" "$(sort -n first | cmp -s - first; echo $?)" 1
check "the same seed" run 2 ./ring --at 1,5000,200000 --repetitions 4
is "gives the same order to other ranks" "$(order | cmp - first)" ""
echo '{experiment: mpi-ring, design: {factors: {dgemm_order: [4096], largest: [1048576]}}}' >plan.yaml
check "a plan with large matrices" "$ASSAY" run --dry-run plan.yaml
is "has memory for them" "$(sed -n 's/^Memory: \(.*\) a process.*/\1/p' .out)" "450 MiB"
refuse "one rank alone" 2 '1 rank was started; expected at least 2' run 1 ./ring
refuse "a load that is none" 2 "'swim' is not known; expected one of 'none', 'dgemm'" run 2 ./ring --load swim
refuse "an option that is none" 2 'usage: mpirun -n RANKS ring' run 2 ./ring --speed 3

# ---- Saturation
check "saturation builds" build saturation "$source/saturation.c"
check "five ranks" run 5 ./saturation --at 3,1000 --repetitions 2 --window 4
is "pairs are doubled up to all, and ranks of an all-to-all" "$(of flow | awk '{ n[$1 ":" $2]++ } END { for (i in n) print i "=" n[i] }' | sort | xargs)" \
    "all-to-all:2=4 all-to-all:4=4 all-to-all:5=4 both-ways:1=4 both-ways:2=4 one-way:1=4 one-way:2=4"
is "what they move is counted" "$(of flow | awk '{ m = $1 == "all-to-all" ? $2 * ($2 - 1) : $2 * 4 * (1 + ($1 == "both-ways")) } $5 != m * $4')" ""
is "the slowest takes no less than the fastest" "$(of flow | awk '$7 < $8 || $8 <= 0')" ""

# ---- Collectives
check "collectives build" build collectives "$source"/{collectives,global-clock}.c
check "two ranks" run 2 ./collectives --at 16,4096 --repetitions 10 --slot 100000
is "14 operations and 2 sizes, each 10 times that nobody was late, or 40 times" "$({ of collective; of late | sed 's/$/ late/'; } | awk '{ n[$1 " " $2] += !$5; all[$1 " " $2]++ } END { for (i in all) print (n[i] == 10 || all[i] == 40) }' | sort | uniq -c | xargs)" "28 1"
is "none ends before it began" "$({ of collective; of late; } | awk '$4 <= 0')" ""
is "each guideline is looked at for both sizes" "$(of guideline | grep -c .)" 16
is "with a verdict or none where too many were late" "$(of guideline | awk '{ print $6 }' | grep -vE '^(kept|broken|unknown)$')" ""
# A library whose gather is slow, by a clock that both ranks share and that only they move: a microsecond whenever
# one looks at it, and a second in each gather.
cat >slow.c <<'END'
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
static _Atomic long *microseconds(void) {
    static _Atomic long *shared;
    if (!shared)
        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, open(getenv("SHARED_CLOCK"), O_RDWR), 0);
    return shared;
}
int clock_gettime(clockid_t clock, struct timespec *time) {
    (void)clock;
    sched_yield(); /* to the other rank */
    long now = atomic_fetch_add(microseconds(), 1);
    *time = (struct timespec){now / 1000000, now % 1000000 * 1000};
    return 0;
}
int MPI_Gather(const void *sent, int count, MPI_Datatype type, void *received, int received_count, MPI_Datatype received_type,
               int root, MPI_Comm comm) {
    atomic_fetch_add(microseconds(), 1000000);
    return PMPI_Gather(sent, count, type, received, received_count, received_type, root, comm);
}
END
head -c 8 /dev/zero >clock
check "a library with a slow gather" build slow "$source"/{collectives,global-clock}.c slow.c
check "two ranks of it" run 2 -x SHARED_CLOCK="$PWD/clock" ./slow --at 16 --repetitions 10 --slot 3600000
is "is found out" "$(of guideline | awk '$1 == "Gather" { print $2, $6 }')" "Allgather broken"
is "and nobody else is blamed for it" "$(of guideline | awk '$2 == "Gather+Bcast" { print $1, $6 }')" "Allgather kept"

# ---- Campaigns over two nodes, whose clocks are a thousand seconds apart
for pattern in ring saturation collectives; do
    cat >$pattern.yaml <<END
experiment: mpi-$pattern
testbed: {hosts: 'node[1-2]', ssh-config: $BED/ssh_config}
design: {factors: {seed: [1, 2], sizes: [5], largest: [20000], repetitions: [6], node_ranks: [1]}}
options: {bind: none}
probes: none
END
    check "a campaign of mpi-$pattern" bed run "$ASSAY" run $pattern.yaml -o of-$pattern
    check "its suggested model fits" "$ASSAY" fit of-$pattern/*.zip -o $pattern.json
    is "with no term below 0" "$(grep -c '"estimate": *-' $pattern.json)" 0
done
is "flows between nodes are known as such" "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR > 1 { print $at["remote"] }' of-saturation/*/results/tables/flows.csv | sort -u)" 1
check "what was late is in a table of its own, and there is no table without rows" sh -c 'for table in of-*/*/results/tables/*.csv; do [ "$(head -n 2 "$table" | wc -l)" = 2 ] || exit 1; done'
for node in 1 2; do
    check "the network that MPI used is on record" test "$(jq -r ".nodes.node$node.mpi_networks[]" of-ring/*/software/versions.json)" = 10.77.0.$((node + 1))
done
check "a run of seeds alone is not ranked" sh -c "'$ASSAY' report of-ring/*.zip 2>&1 | grep -q \"'mpi-ring' declares no response by which settings are ranked; .*'assay fit\""
is "the other node's clock is found" "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
    NR > 1 { o = $at["offset"]; n[$at["host"]] += $at["host"] == "node1" ? o == 0 : o > 999 && o < 1001 }
    END { print (n["node1"] > 1 && n["node2"] > 1) }' of-collectives/*/results/tables/clocks.csv)" 1
finish
