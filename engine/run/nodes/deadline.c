#include "engine/run/nodes/deadline.h"

static const int64_t least_margin_ns = 5000000000;
static const int64_t most_ns = INT64_MAX / 16; /* of one cost: so that sums fit */
/* Sealing by a slow processor on a shared file system: 20 MB/s, 1000 files/s. */
static const double seal_byte_ns = 50, seal_file_ns = 1e6;

const char *const deadline_source_names[] = {[DEADLINE_NONE] = "none",
                                             [DEADLINE_WALLTIME] = "walltime",
                                             [DEADLINE_UNTIL] = "until",
                                             [DEADLINE_TESTBED] = "testbed"};

/* Sets the end that SOURCE names and chooses the earliest of all. True: the deadline has changed. */
bool deadline_consider(struct deadline *deadline, enum deadline_source source, int64_t wall_ns,
                       int64_t now_wall_ns, int64_t now_monotonic_ns) {
    struct deadline_end before = {deadline->end_ns, deadline->wall_ns};
    if (deadline->ends[source].wall_ns == wall_ns)
        return false;
    deadline->ends[source] = (struct deadline_end){now_monotonic_ns + (wall_ns - now_wall_ns), wall_ns};
    deadline->source = DEADLINE_NONE;
    for (int i = DEADLINE_NONE + 1; i < DEADLINE_SOURCES; i++) {
        const struct deadline_end *end = &deadline->ends[i];
        if (!end->wall_ns || (deadline->source != DEADLINE_NONE && end->end_ns >= deadline->end_ns))
            continue;
        deadline->source = (enum deadline_source)i;
        deadline->end_ns = end->end_ns;
        deadline->wall_ns = end->wall_ns;
    }
    return before.end_ns != deadline->end_ns || before.wall_ns != deadline->wall_ns;
}

void deadline_took(struct deadline *deadline, enum deadline_cost cost, int64_t took_ns) {
    if (took_ns > most_ns)
        took_ns = most_ns;
    if (took_ns > deadline->costs_ns[cost])
        deadline->costs_ns[cost] = took_ns;
}

void deadline_set_size(struct deadline *deadline, uint64_t bytes, uint64_t files) {
    double seal_ns = (double)bytes * seal_byte_ns + (double)files * seal_file_ns;
    deadline->costs_ns[DEADLINE_SEAL] = seal_ns < (double)most_ns ? (int64_t)seal_ns : most_ns;
}

/* All but the margin. */
static int64_t sum_costs(const struct deadline *deadline) {
    int64_t sum = 0;
    for (int cost = 0; cost < DEADLINE_COSTS; cost++)
        sum += deadline->costs_ns[cost];
    return sum;
}

int64_t deadline_margin_ns(const struct deadline *deadline) {
    if (deadline->margin_ns >= 0)
        return deadline->margin_ns;
    int64_t tenth_ns = sum_costs(deadline) / 10;
    return tenth_ns > least_margin_ns ? tenth_ns : least_margin_ns;
}

int64_t deadline_reserve_ns(const struct deadline *deadline) {
    return sum_costs(deadline) + deadline_margin_ns(deadline);
}

int64_t deadline_left_ns(const struct deadline *deadline, int64_t now_ns) {
    if (deadline->source == DEADLINE_NONE)
        return INT64_MAX;
    return deadline->end_ns - deadline_reserve_ns(deadline) - now_ns;
}

int64_t deadline_grace_ns(const struct deadline *deadline) {
    return deadline_margin_ns(deadline) / 2;
}
