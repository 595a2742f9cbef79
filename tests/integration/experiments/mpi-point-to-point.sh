#!/bin/bash
# The program of mpi-point-to-point by itself, with real libraries: the list, the flags, the thresholds, the checks; and
# that a fit of what it prints is a platform.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
command -v mpicc.openmpi >"$scratch/which" || plan_skip "no OpenMPI here (libopenmpi-dev)"
source=("$ASSAY_SOURCE"/experiments/mpi/{point-to-point,ranks}.c)
cd "$scratch" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
open_mpi() { mpirun.openmpi --bind-to none --mca pml ob1 -n 2 "$@"; }
messages() { sed -n "s/^message $1 //p" "${2:-out}"; } # pair from to size start duration found
thresholds() { awk '$2 == "Asynchronous" || $2 == "Detached" { print $3, $2, $6 }' "${1:-out}"; }

check "it builds with OpenMPI" mpicc.openmpi -O2 -Wall -Wextra -Werror -o point-to-point "${source[@]}" -lm -ldl

# ---- The list ----
small="--sizes 12 --largest 8388608 --repetitions 3 --wtime-calls 100"
# shellcheck disable=SC2086 # words
check "two ranks on a node" open_mpi ./point-to-point $small
cp .out out
sized=$(for o in Recv Isend Send PingPong; do messages $o | awk -v o=$o '{ print o, $4 }'; done | sort | uniq -c | awk '{ print $1 }' | sort | uniq -c | xargs)
is "each of 4 operations and 12 sizes comes 3 times" "$sized" "48 3"
is "the sizes are from all decades up to the largest" \
    "$(messages PingPong | awk '{ n[length($4)] = 1; if ($4 < 1 || $4 > 8388608) bad = 1 } END { print length(n), bad + 0 }')" "7 0"
is "each probe is in vain once and then finds something" \
    "$(awk '$2 == "Iprobe" || $2 == "Test" { n[$2 " " $9]++ } END { print n["Iprobe 0"], n["Iprobe 1"], n["Test 0"], n["Test 1"] }' out)" "36 36 36 36"
is "other operations have no flag" "$(awk '$1 == "message" && $2 != "Iprobe" && $2 != "Test" && NF != 8' out)" ""
is "Wtime is timed 3 times" "$(messages Wtime | wc -l)" 3
list() { awk '$1 == "message" { print $2, $6, $9 }' "$@" | grep -v '^[AD]'; }
list out >first
report $(list out | sort -s -k1,1 -k2,2n | cmp -s first -; [ $? -eq 1 ]; echo $?) "the order is shuffled"
is "over operations, too: they change at most rows" "$(awk '{ if ($1 != last) n++; last = $1 } END { print (n > NR / 3) }' first)" 1
# shellcheck disable=SC2086
check "the same seed" open_mpi ./point-to-point $small --buffer moving --load probe
report $(list .out | cmp - first >&2; echo $?) "gives the same order and the same sizes"
# shellcheck disable=SC2086
check "another seed" open_mpi ./point-to-point $small --seed 2 --only PingPong
is "gives other sizes" "$(list .out | sort | comm -12 - <(sort first) | awk '{ n++ } END { print (n < 12) }')" 1
is "of the one operation that was asked for, without thresholds" "$(awk '$1 == "message" { print $2 }' .out | sort -u)" PingPong
is "with the ping-pongs of the warm-up apart" "$(grep -c '^warm-up PingPong loopback 0 1 \(1\|1048576\) ' .out)" 20

# ---- Physics: calls that end by themselves, whatever else the machine does ----
check "small and large" open_mpi ./point-to-point --at 1,8388608 --repetitions 9 --wtime-calls 100
median() { messages "$1" .out | awk -v s="$2" '$4 == s { print $6 }' | sort -n | sed -n 5p; }
for operation in Recv Send PingPong; do
    is "8 MiB take longer than a byte ($operation)" \
        "$(awk -v a="$(median Send 1)" -v b="$(median $operation 8388608)" 'BEGIN { print (b > a) }')" 1
done
is "and there and back no less than memory takes" "$(awk -v t="$(median PingPong 8388608)" 'BEGIN { print (t > 2 * 8388608 / 1e12) }')" 1

# ---- Thresholds ----
# ob1 sends eagerly what fits into the limit with its header.
near() { awk -v t="$1" -v limit="$2" 'BEGIN { exit !(t > limit - 128 && t <= limit + 1) }'; }
limit=$(awk '$2 == "btl_vader_eager_limit" { print $3 }' out)
is "the library says its limit" "$limit" "$(ompi_info --param btl vader --level 9 | sed -n 's/.*"btl_vader_eager_limit" (current value: "\([0-9]*\)".*/\1/p')"
report $(near "$(thresholds out | awk '/Detached/ { print $3 }')" "$limit"; echo $?) "and the threshold that is found is that"
check "another limit" open_mpi --mca btl_vader_eager_limit 16384 ./point-to-point --sizes 1 --largest 100000 --repetitions 1 --wtime-calls 1
report $(near "$(thresholds .out | awk '/Detached/ { print $3 }')" 16384; echo $?) "is found"
check "a largest message below all limits" open_mpi ./point-to-point --sizes 1 --largest 1000 --repetitions 1 --wtime-calls 1
is "has no threshold up to there" "$(thresholds .out | xargs)" "loopback Asynchronous 1001 loopback Detached 1001"

# A library that is done at once with 1000 to 2999 bytes but keeps them in the sender's buffer until it sends again.
cat >late.c <<'END'
#include <mpi.h>
#include <stdlib.h>
static const void *late;
static int bytes, to, with;
int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request) {
    if (tag != 0 || count < 1000 || count > 2999)
        return PMPI_Isend(buffer, count, type, dest, tag, comm, request);
    late = buffer, bytes = count, to = dest, with = tag;
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}
int MPI_Send(const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
    if (late && tag == 2) { /* "you may receive now" */
        PMPI_Send(late, bytes, MPI_CHAR, to, with, comm);
        late = 0;
    }
    if (getenv("DAMAGE") && count > 1000 && tag == 0)
        ((char *)buffer)[count - 1]++;
    return PMPI_Send(buffer, count, type, dest, tag, comm);
}
END
mpicc.openmpi -shared -fPIC -o late.so late.c
late() { open_mpi -x LD_PRELOAD="$scratch/late.so" "$@" --repetitions 1 --wtime-calls 1; }
check "a library with all three ways" late ./point-to-point --at 900 --largest 100000
report $(near "$(thresholds .out | awk '/Detached/ { print $3 }')" "$limit"; echo $?) "is synchronous from its limit on"
is "and asynchronous up to 999 bytes" "$(thresholds .out | awk '/Asynchronous/ { print $3 }')" 1000
refuse "a message that is damaged" 1 "rank 1: Send: a message of 5000 bytes from rank 0 arrived with other contents than were sent" \
    late -x DAMAGE=1 ./point-to-point --at 5000 --only Send

refuse "a rank alone" 2 "1 rank was started; expected at least 2" mpirun.openmpi --bind-to none -n 1 ./point-to-point
refuse "an option that is none" 2 "'--colour' is unknown" open_mpi ./point-to-point --colour 3
refuse "more sizes than there are" 2 "there are no 12 different sizes up to 10 bytes" open_mpi ./point-to-point --sizes 12 --largest 10
refuse "more than an engine keeps" 2 "240030 lines would be printed; expected at most 150000" open_mpi ./point-to-point --sizes 1000 --repetitions 30

# ---- MPICH ----
if command -v mpicc.mpich >which && mpicc.mpich -O2 -Wall -Wextra -Werror -o point-to-point-mpich "${source[@]}" -lm -ldl; then
    # shellcheck disable=SC2086
    check "two ranks of MPICH" mpirun.mpich -n 2 ./point-to-point-mpich $small
    report $(list .out | cmp - first >&2; echo $?) "measure the same in the same order"
    is "with thresholds that follow each other" "$(thresholds .out | awk '{ t[$2] = $3 } END { print (1 < t["Asynchronous"] && t["Asynchronous"] <= t["Detached"] && t["Detached"] <= 8388608) }')" 1
else
    skip "two ranks of MPICH" "no MPICH here (libmpich-dev)"
fi

# ---- Through the engine ----
printf '%s\n' 'experiment: mpi-point-to-point' 'options: {mpicc: mpicc.openmpi, mpirun: mpirun.openmpi}' 'probes: none' \
    'design: {generate: factorial, factors: {seed: [1], sizes: [12], repetitions: [3], largest: [8388608], nodes: [1]}}' >run.yaml
check "a run" "$ASSAY" run run.yaml -q -o runs
check "has the list as a table" "$ASSAY" archive cat runs/*.zip results/tables/messages.csv
is "in its order" "$(tail -n +2 .out | tr , ' ' | awk '{ print $13, $17, $20 }' | grep -v '^[AD]')" "$(cat first)"
value() { grep -oE "\"$1\": [-+.0-9e]+" "$2" | cut -d' ' -f2 | xargs; }
check "its fit needs nothing else" "$ASSAY" fit runs/*.zip -o fitted.json
report $(near "$(value send_is_detached_thresh fitted.json)" "$limit"; echo $?) "has its thresholds"
is "and the settings of the experiment" "$(value latency fitted.json)" 1e-06
check "unless others are given" "$ASSAY" fit runs/*.zip --set latency=2us -o other.json
is "as here" "$(value latency other.json)" 2e-06
check "another table is read as it is" "$ASSAY" fit smpi runs/*.zip --table warm_up --set latency=1us --set bandwidth=1GB/s

# ---- Two nodes ----
if bed_for_part 2 --names 'node-%'; then
    for node in 1 2; do
        bed run ssh -F "$BED/ssh_config" node-$node 'cat >/root/point-to-point && chmod +x /root/point-to-point' <point-to-point
    done
    check "two nodes with two ranks each" bed run mpirun.openmpi --bind-to none --mca pml ob1 --mca btl tcp,vader,self \
        --mca btl_tcp_if_include 10.77.0.0/16 --mca oob_tcp_if_include 10.77.0.0/16 --mca plm_rsh_agent "ssh -F $BED/ssh_config" \
        --host node-1:2,node-2:2 /root/point-to-point --sizes 6 --largest 1000000 --repetitions 3 --wtime-calls 100000
    cp .out out
    is "have a pair on one and a pair on two" "$(awk '$1 == "message" { print $3, $4, $5 }' out | sort -u | xargs)" "loopback 0 1 remote 0 2"
    is "in one order" "$(awk '$1 == "message" { if ($3 != last) n++; last = $3 } END { print (n > 50) }' out)" 1
    report $(near "$(thresholds | awk '/remote Detached/ { print $3 }')" "$(awk '$2 == "btl_tcp_eager_limit" { print $3 }' out)"; echo $?) "each with its own threshold: TCP"
    report $(near "$(thresholds | awk '/loopback Detached/ { print $3 }')" "$limit"; echo $?) "and memory"
    # With durations that are known, for those of a busy machine are no platform.
    awk 'BEGIN { print "operation,pair,size,duration,found" }
        $1 == "message" { s = $6; print $2 "," $3 "," s "," ($2 ~ /e[cn]d/ ? 1e-6 + 1e-10 * s : $2 == "PingPong" ? 1e-5 + 2e-9 * s : $9 ? 1e-3 : 1e-7) "," $9 }' out >calls.csv
    check "a fit" "$ASSAY" fit smpi calls.csv --by pair --set latency=1us --set bandwidth=10GB/s --set wtime-calls=100000 -o smpi.json
    is "has each pair's thresholds" "$(value '[a-z_]*_thresh' smpi.json)" "$(thresholds | sort -s -k1,1 | awk '{ print $3 }' | xargs)"
    is "and the cost of what finds nothing" \
        "$(grep -oE '"name": "(Iprobe|Test)", "estimates": [^,]*, "estimate": [^,]*' smpi.json | awk '{ print $NF }' | xargs)" "1e-07 1e-07 1e-07 1e-07"
    check "and is a platform" "$ASSAY" export simgrid smpi.json --set hosts=2 --set group=remote
    report $(grep -q "smpi/send-is-detached-thresh\" value=\"$(thresholds | awk '/remote Detached/ { print $3 }')\"" .out; echo $?) "with what was found"
else
    skip "two nodes with two ranks each" "no test bed"
fi
finish
