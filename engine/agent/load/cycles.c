#include "engine/agent/load/cycles.h"

#if defined __x86_64__
#define ADD "add %1, %0\n\t"
#elif defined __aarch64__
#define ADD "add %0, %0, %1\n\t"
#endif

#ifdef ADD
#define ADD_8 ADD ADD ADD ADD ADD ADD ADD ADD
bool cycles_spend(uint64_t count) {
    uint64_t sum = 0, one = 1;
    for (uint64_t done = 0; done < count; done += CYCLES_CHAIN)
        __asm__ volatile(ADD_8 ADD_8 ADD_8 ADD_8 ADD_8 ADD_8 ADD_8 ADD_8 : "+r"(sum) : "r"(one) : "cc");
    return sum == count;
}
#else
bool cycles_spend(uint64_t count) {
    (void)count;
    return false;
}
#endif

uint64_t cycles_time_stamp(void) {
#ifdef __x86_64__
    uint32_t low, high;
    __asm__ volatile("lfence\n\trdtsc" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
#else
    return 0;
#endif
}

double cycles_mean_hz(const struct cycles_counters *from, const struct cycles_counters *to) {
    if (to->now_ns <= from->now_ns || to->actual <= from->actual || to->maximum <= from->maximum ||
        to->stamp <= from->stamp)
        return 0;
    double seconds = (double)(to->now_ns - from->now_ns) * 1e-9;
    return (double)(to->actual - from->actual) / (double)(to->maximum - from->maximum) *
           (double)(to->stamp - from->stamp) / seconds;
}
