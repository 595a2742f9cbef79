#!/bin/bash
# The kernels of memory and transfer: what they count and refuse, that a wrong result is seen; and both through the
# engine, with the models that they suggest.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/../kernel-campaign.sh"
cd "$ASSAY_SOURCE/experiments/kernels" || exit 1
check "memory builds" cc -O3 -march=native -fno-tree-loop-distribute-patterns -Wall -Wextra -Werror -I. -o "$scratch/memory" \
    ../memory/memory.c buffer.c processor.c rows.c settings.c team.c -lpthread
check "transfer builds" cc -O2 -Wall -Wextra -Werror -I. -o "$scratch/transfer" ../transfer/transfer.c buffer.c processor.c rows.c settings.c
cd "$scratch" || exit 1

# ---- Memory
feed() { # feed ROWS [OPTIONS]
    local rows=$1; shift
    printf "unit,kernel,size,threads\n$rows" | ./memory --largest 100000 --most-threads 1 --volume 1000000 "$@"
}
check "a row of each kernel" feed '1,read,8192,1\n2,write,8192,1\n3,copy,8192,1\n4,triad,8192,1\n5,triad,192,1\n6,read,100000,1\n'
grep -v '^[#u]' .out >answers
# Whole lines of 64 bytes in each array, and as many passes as make a million bytes.
moved() { awk -v size="$1" -v arrays="$2" 'BEGIN { b = int(size / arrays / 64) * 64 * arrays; p = int((1e6 + b - 1) / b); printf "%d ", b * p }'; }
is "what was moved is counted" "$(cut -d, -f6 answers | cut -d. -f1 | xargs)" \
    "$(echo "$(moved 8192 1)$(moved 8192 1)$(moved 8192 2)$(moved 8192 3)$(moved 192 3)$(moved 100000 1)" | xargs)"
is "bandwidth is that over the time of all passes" "$(awk -F, -v s=8192 'NR == 1 { p = $6 / s; r = $6 / ($4 * p) / $5; print (r > 0.99 && r < 1.01) }' answers)" 1
is "every bandwidth is below that of any memory" "$(awk -F, '$5 > 1e14' answers)" ""
threads=$(nproc)
refuse "more threads than CPUs" 2 "$((threads + 1)) threads are set; expected at most $threads" feed "" --most-threads $((threads + 1))
refuse "more than there is room for" 2 "line 2: a row has the size 100001; expected at most --largest 100000" feed '1,read,100001,1\n'
refuse "more threads than were started" 2 "line 2: a row has 2 threads; expected at most --most-threads 1" feed '1,read,8192,2\n'
refuse "an unknown kernel" 2 "kernel 'scale' is not known; expected read or write or copy or triad" feed '1,scale,8192,1\n'
check "all CPUs at once" feed "1,triad,8192,$threads\n2,copy,8192,1\n3,triad,100000,$threads\n" --most-threads "$threads"
is "... move so many times as much" "$(grep -v '^[#u]' .out | head -n 1 | cut -d, -f6 | cut -d. -f1)" "$(awk -v a="$(moved 8192 3)" -v t="$threads" 'BEGIN { print a * t }')"

# ---- Transfer
send() { # send ROWS [OPTIONS]
    local rows=$1; shift
    printf "unit,size,buffer\n$rows" | ./transfer --largest 100000 --span 1000000 "$@"
}
check "messages of all kinds" send '1,1,moving\n2,1,same\n3,100000,moving\n4,100000,same\n5,100000,same\n'
is "... are answered" "$(grep -cE '^[1-5],[0-9]{19},[0-9]+,[0-9]+\.[0-9]{9},0' .out)" 5
refuse "a message for which there is no room" 2 "line 2: a row has the size 100001; expected at most --largest" send '1,100001,same\n'
cat >short.c <<'END'
#include <stddef.h>
void *memcpy(void *to, const void *from, size_t size) {
    for (size_t i = 0; i < (size == 5003 ? size - 1 : size); i++)
        ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}
END
cc -O1 -fno-builtin -shared -fPIC -o short.so short.c
refuse "a copy that lacks its last byte" 3 "a copy of 5003 bytes differs" env LD_PRELOAD=./short.so \
    bash -c 'printf "unit,size\n1,5002\n2,5003\n" | ./transfer --largest 100000'

# ---- Through the engine
printf '%s\n' 'experiment: memory' 'probes: none' 'options: {volume: 100000}' \
    'design: {factors: {kernel: [copy, triad], size: {from: 4KiB, to: 256KiB, steps: 7, scale: log}, threads: [1]}, repetitions: 2}' >memory.yaml
complete memory 28
check "segments, whose breaks are caches" "$ASSAY" fit piecewise "$archive" --sizes size --by kernel,threads
# A byte takes more than its share of any copy of megabytes, however busy the machine is.
printf '%s\n' 'experiment: transfer' 'probes: none' 'options: {span: 1000000}' \
    'design: {factors: {size: [1, 4194304, 8388608]}, repetitions: 5}' >transfer.yaml
complete transfer 15
is "... latency and bandwidth are above 0" "$(grep -oE '"(latency|bandwidth)": -?[0-9.e+-]+' transfer.json | awk '{ n += $2 > 0; m++ } END { print (n == m && m > 1) }')" 1
finish
