# A simulated fleet: machines whose microkernels are drawn, and run times of which the truth is known.
#
#   awk -v first=1 -v last=13 -v noise=0.1 -f fleet.awk >fleet.csv
#
# A row is a machine, a number of ranks and an application. What the microkernels say is 3 % off what they are; a run time
# is off its formula by `noise`, relative: what machines have besides these four numbers.
# Speeds are log-uniform: DGEMM 4 to 12 Gflop/s a rank, triad 0.6 to 3 GB/s, ring 0.05 to 0.5 GB/s and 2 to 15 us;
# machines from 11 on have processors up to twice as fast.
function uniform() { state = (16807 * state) % 2147483647; return state / 2147483647 } # Park and Miller, CACM 31 (1988), 1192
function normal() { return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()) }
function between(low, high) { return low * exp(uniform() * log(high / low)) }
function off(share) { return exp(share * normal()) }
function add(application, n, time) {
    printf "machine-%d,%s,%d,%d,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.9g\n", m, application, n, ranks, seen["dgemm"], seen["single"],
        seen["fft"], seen["triad"], seen["copy"], seen["ring"], seen["pair"], seen["latency"], seen["pairs"], time * off(noise)
}
BEGIN {
    print "machine,application,N,ranks,StarDGEMM_Gflops [Gflop/s],SingleDGEMM_Gflops [Gflop/s],StarFFT_Gflops [Gflop/s]," \
        "StarSTREAM_Triad [GB/s],StarSTREAM_Copy [GB/s],RandomlyOrderedRingBandwidth [GB/s],AvgPingPongBandwidth [GB/s]," \
        "RandomlyOrderedRingLatency [us],AvgPingPongLatency [us],time [s]"
    # Of 100 s on 128 ranks of a middling machine: floating point, memory, bandwidth, latency.
    split("60 10 25 5  50 0 30 20  15 60 15 10  20 50 0 30", share, /  */)
    for (m = first; m <= last; m++) {
        state = 1000 * seed + 7919 * m + 1
        for (i = 0; i < 10; i++) uniform()
        dgemm = between(4, 12) * (m > 10 ? between(1, 2) : 1); triad = between(0.6, 3); ring = between(0.05, 0.5); latency = between(2, 15)
        fft = 0.12 * dgemm * off(0.2)
        seen["dgemm"] = dgemm * off(0.03); seen["single"] = 1.05 * dgemm * off(0.05); seen["fft"] = fft * off(0.03)
        seen["triad"] = triad * off(0.03); seen["copy"] = 0.95 * triad * off(0.05)
        seen["ring"] = ring * off(0.03); seen["pair"] = 3 * ring * off(0.3)
        seen["latency"] = latency * off(0.03); seen["pairs"] = 0.5 * latency * off(0.2)
        for (ranks = 64; ranks <= 256; ranks *= 4) {
            for (a = 0; a < 4; a++)
                add("application-" a + 1, 1, 128 / ranks * (share[4 * a + 1] * 7 / dgemm + share[4 * a + 2] * 1.4 / triad + share[4 * a + 3] * 0.16 / ring) \
                    + share[4 * a + 4] * latency / 5.5)
            for (n = 20000; n <= 80000; n *= 2) { # HPL: netlib's closed form, NB = 128, P = Q
                p = sqrt(ranks)
                add("HPL", n, 2 * n ^ 3 / (3 * ranks) / (0.95e9 * dgemm) + 8 / (1e9 * ring) * n ^ 2 * 4 * p / (2 * ranks) \
                    + 1e-6 * latency * n * (129 * log(p) / log(2) + p) / 128)
            }
            for (n = 2 ^ 26; n <= 2 ^ 30; n *= 4) # G-FFT: 5 n log2 n operations, three transpositions of 16 byte a point
                add("G-FFT", n, 5 * n * log(n) / log(2) / ranks / (1e9 * fft) + 3 * 16 * n / ranks / (1e9 * ring) + 3e-6 * ranks * latency)
        }
    }
}
