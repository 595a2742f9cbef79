# Sourced by `fits`, with its $assay, $build, $root, $scratch, $tries and figure: how many of 20 calibrations of messages can be
# simulated. Each is fitted with found breaks, exported, loaded by SimGrid, and simulates ping-pongs of ten sizes, both
# sides of breaks among them, within 2 % of the model; and of ten measured sizes within 10 % (median) of the means there.
#
# Two, with --quick, otherwise eight are measured between two nodes of the test bed, half of them with Open MPI and half with
# MPICH, where root and both libraries are here; their means are of the middle half, since the nodes share processors
# with all else, and a measurement that does not repeat within 20 % is made up instead. The rest is made up: latency, bandwidth, up to three protocols, 8 to 120 sizes up to 64 KiB, 1 or 4 MiB,
# 1 to 10 rows a size; noise that is constant, proportional, both or none, or has outliers (then the middle half, too).
# shellcheck shell=bash disable=SC2154 # from fits

# made_up SEED: the rows, and in the comment of the last the kind of noise.
made_up() {
    awk -v seed="$1" 'function between(a, b) { return a + (b - a) * rand() }
        function one(list, n, parts) { n = split(list, parts, " "); return 0 + parts[1 + int(n * rand())] }
        function normal() { return sqrt(-2 * log(1 - rand())) * cos(6.283185307179586 * rand()) }
        function row(operation, s, t) {
            if (noise == "constant") t += 0.05 * latency * normal()
            if (noise == "proportional") t *= 1 + share * normal()
            if (noise == "both") t = t * (1 + share / 2 * normal()) + 0.03 * latency * sqrt(normal() ^ 2)
            if (noise == "outliers") { t *= 1 + share * sqrt(normal() ^ 2); if (rand() < 0.04) t *= between(3, 20) }
            printf "%s,%d,%.9g\n", operation, s, (t > 1e-8 ? t : 1e-8)
        }
        BEGIN {
            srand(seed); latency = 10 ^ between(-6, -4.3); pace = 10 ^ -between(8, 10); largest = one("65536 1048576 4194304")
            sizes = one("8 12 20 40 80 120"); rows = one("1 2 3 5 10"); split("none constant proportional both outliers", kinds)
            noise = kinds[1 + seed % 5]; share = one("0.01 0.03 0.08"); eager = one("500 1420 4096 9000"); detached = one("16384 65536 131072")
            for (i = 0; i < 3; i++) {
                before[i] = latency * between(0.02, 0.4); after[i] = latency * between(0.02, 0.3); alone[i] = latency * between(0.02, 0.3)
                copy[i] = one("0 1") * pace * between(0.02, 0.4); delay[i] = latency; wire[i] = pace
                latency *= between(1, 2); pace *= between(0.7, 1.4)
            }
            latency = delay[0]
            print "operation,size,duration"
            for (k = 0; k < sizes; k++) {
                s = int(exp(log(largest) * (k + rand()) / sizes) + 0.5); i = (s >= eager) + (s >= detached); net = delay[i] + wire[i] * s
                send = s < detached ? before[i] + copy[i] * s : 0; receive = s < detached ? after[i] : 0
                for (r = 0; r < rows; r++) {
                    row("Isend", s, alone[i]); row("Send", s, send ? send : net)
                    row("Recv", s, receive ? receive : net); row("PingPong", s, 2 * (send + receive + net))
                }
            }
            printf "Iprobe,1,3e-7\nTest,1,2e-7\nAsynchronous,%d,0\nDetached,%d,0\n", eager, detached < largest ? detached : largest + 1
        }'
}

# Whether the measurement is complete and repeats: of half of the sizes the middle half of the ping-pongs is within 20 %.
is_healthy() { # FILE
    grep -q '^measured' "$1" && awk '$2 == "PingPong" { print $6, $8 }' "$1" | sort -k1,1n -k2,2g | awk 'function gap() { if (n) print (t[int(3 * n / 4)] - t[int(n / 4)]) / t[int(n / 2)] }
        $1 != size { gap(); n = 0; size = $1 } { t[n++] = $2 } END { gap() }' | sort -g | awk '{ gap[NR] = $1 } END { exit !(NR > 0 && gap[int((NR + 1) / 2)] < 0.2) }' && return
    echo "a measurement is left out: it did not end, or its ping-pongs do not repeat within 20 %"
    return 1
}

# measure_messages: calibrations measured on a bed of two nodes, COUNT with each library.
measure_messages() { # COUNT
    local count=$1 mpi seed node started=()
    for mpi in openmpi mpich; do
        command -v "mpicc.$mpi" >/dev/null && "mpicc.$mpi" -O2 -o "$scratch/$mpi" "$root"/experiments/mpi/{point-to-point,ranks}.c -lm -ldl || return 1
    done
    ASSAY_BUILD=$(realpath "$build")
    export ASSAY_BUILD ASSAY_SOURCE=$root
    . "$root/tests/test-bed/test-bed.sh"
    bed up 2 --names 'node-%' >"$scratch/bed.log" 2>&1 || return 1
    printf '%s\n' '#!/bin/sh' "exec ssh -F $BED/ssh_config \"\$@\"" >"$scratch/launch"
    chmod +x "$scratch/launch"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    for mpi in openmpi mpich; do
        for node in node-1 node-2; do
            bed run ssh -F "$BED/ssh_config" $node "cat >/root/$mpi && chmod +x /root/$mpi" <"$scratch/$mpi"
        done
        if [ $mpi = openmpi ]; then
            started=(mpirun.openmpi --bind-to none --mca pml ob1 --mca btl "tcp,self" --mca btl_tcp_if_include 10.77.0.0/16
                --mca oob_tcp_if_include 10.77.0.0/16 --mca plm_rsh_agent "$scratch/launch" --host "node-1,node-2")
        else
            started=(mpirun.mpich -wdir /root -launcher ssh -launcher-exec "$scratch/launch" -hosts "node-1,node-2" -n 2)
        fi
        for ((seed = 1; seed <= count; seed++)); do # MPICH 4.0.2 may hang in MPI_Finalize, when all is printed
            bed run timeout $((tries > 1 ? 30 : 8)) "${started[@]}" "/root/$mpi" --seed $seed --sizes $((tries > 1 ? 24 : 12)) --repetitions 5 --wtime-calls 1000 \
                --largest $((seed % 2 ? 1048576 : 65536)) >"$scratch/messages" 2>"$scratch/messages.log" || true
            is_healthy "$scratch/messages" || continue
            { echo operation,size,duration,found; awk '$1 == "message" { print $2 "," $6 "," $8 "," $9 }' "$scratch/messages"; } >"$scratch/measured-$mpi-$seed.csv"
        done
    done
    bed down
}

simulate_messages() { # SIZE...
    timeout 60 smpirun -np 2 -platform "$scratch/smpi.xml" -hostfile "$scratch/hosts" --cfg=smpi/simulate-computation:no \
        --cfg=smpi/wtime:0 --log=root.thres:warning "$scratch/ping-pong" "$@" </dev/null 2>/dev/null | grep -v '^host' | cut -d' ' -f1,3
}

# exports_right FILE MIDDLE: what is wrong with it, or nothing. MIDDLE 1: means are of the middle half.
exports_right() {
    local sizes breaks assay_path
    assay_path=$(realpath "$assay")
    cd "$scratch" || return
    "$assay_path" fit smpi "$1" --response duration --set latency=1us --set bandwidth=10GB/s --set wtime-calls=1000 -o smpi.json >fit.log 2>&1 || { echo "no fit"; return; }
    "$assay_path" export simgrid smpi.json --set hosts=2 -o smpi.xml >export.log 2>&1 || { cat export.log; return; }
    breaks=$(sed -n 's/.*breaks (By): \([0-9, ]*\); .*/\1/p' fit.log | tr -d ,)
    # shellcheck disable=SC2086 # words
    sizes=$( { for b in $breaks; do printf '%d\n' $((b - 1)) $b $((b + 1)); done; printf '%s\n' 1 64 3000 20000 65535 65536 200000 1000000; } | head -10 | sort -nu)
    # shellcheck disable=SC2086
    simulate_messages $sizes >simulated
    # shellcheck disable=SC2086
    { echo operation,size; printf 'PingPong,%d\n' $sizes; } >rows.csv
    "$assay_path" model eval smpi.json --rows rows.csv -o model.csv >eval.log 2>&1 || { echo "no model"; return; }
    awk 'FNR == NR { split($0, f, ","); model[f[1]] = f[4]; next } { n++; d = $2 / model[$1] - 1; if (d > 0.02 || d < -0.02) print "simulated " $2 " s for " $1 " byte, by the model " model[$1] }
        END { if (n < 4) print "no simulation" }' model.csv simulated
    grep '^PingPong' "$1" | sort -t, -k2,2n -k3,3g | awk -F, -v middle="$2" 'function mean(cut, i, sum) {
            cut = middle ? int(n / 4) : 0
            for (i = cut; i < n - cut; i++) sum += t[i]
            if (n) print size, sum / (n - 2 * cut)
        }
        $2 != size { mean(); n = 0; size = $2 } { t[n++] = $3 } END { mean() }' >means
    awk '{ line[NR] = $0 } END { for (i = 0; i < 10; i++) { k = 1 + int(i * (NR - 1) / 9); if (!(k in seen)) print line[k]; seen[k] } }' means >ten
    # shellcheck disable=SC2046
    simulate_messages $(cut -d' ' -f1 ten) | paste -d' ' - ten | awk '{ d = $2 / $4 - 1; print d < 0 ? -d : d }' | sort -g |
        awk '{ d[NR] = $1 } END { m = (d[int((NR + 1) / 2)] + d[int(NR / 2) + 1]) / 2; if (NR < 4 || m > 0.1) printf "%.2g %% (median) off the means\n", 100 * m }'
}

if command -v smpicc >/dev/null && command -v smpirun >/dev/null; then
    smpicc -O1 -o "$scratch/ping-pong" "$root/tests/integration/plugin/simgrid-ping-pong.c"
    printf '%s\n' node-0 node-1 >"$scratch/hosts"
    right=0 made=0 measured=0
    measure_messages $((tries > 1 ? 4 : 1)) || echo "nothing is measured here: no test bed, or not both libraries"
    for file in "$scratch"/measured-*.csv; do
        [ -e "$file" ] || continue
        wrong=$(exports_right "$file" 1)
        measured=$((measured + 1))
        if [ "$wrong" ]; then echo "$(basename "$file"): $wrong"; else right=$((right + 1)); fi
    done
    for ((seed = 1; measured + made < 20; seed++)); do
        made_up $seed >"$scratch/made-up.csv"
        wrong=$(exports_right "$scratch/made-up.csv" $((seed % 5 == 4)))
        made=$((made + 1))
        if [ "$wrong" ]; then echo "made up, seed $seed: $wrong"; else right=$((right + 1)); fi
    done
    echo "SimGrid simulates $right of 20 calibrations right: $measured measured, $made made up"
    figure smpi_exports_right $right 1
else
    echo "SimGrid is not installed here: nothing to simulate exported platforms with"
fi
