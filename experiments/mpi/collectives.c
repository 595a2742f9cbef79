/*
 * How long collective operations take, from the first rank's entry to the last one's exit, on a clock that
 * all ranks share. All enter at a moment that was agreed on, instead of behind a barrier, whose own way of
 * ending would be in the times; a rank that comes late marks the measurement (Round-Time of S. Hunold, A.
 * Carpen-Amarie, "Reproducible MPI Benchmarking is Still Not as Easy as You Think", IEEE TPDS 2016). And
 * whether a library is healthy: no operation may be slower than others that do the same (their "PGMPI",
 * EuroMPI 2017).
 */
#include "global-clock.h"
#include "ranks.h"

#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BCASTS = 20, CALLS_MAX = 2, QUARTILES_LEAST = 8, TRIES = 4 };
/* Time from the announcement of a start to the start itself, in durations of a broadcast; doubled after each
 * measurement in which a rank was late. */
static const double slack_least = 5, slack_most = 100000;
static const double synchronize_every = 1; /* s */

enum call { NONE, BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, ALLTOALL, REDUCE_SCATTER };

/* Blocks are of the size; a part is a block's share of a rank. */
enum unit { BLOCK, BLOCK_OF_EACH, PART };

static const struct operation {
    const char *name;
    struct {
        enum call call;
        enum unit unit;
    } calls[CALLS_MAX];
} operations[] = {
    {"Barrier", {{BARRIER, BLOCK}}},
    {"Bcast", {{BCAST, BLOCK}}},
    {"Reduce", {{REDUCE, BLOCK}}},
    {"Allreduce", {{ALLREDUCE, BLOCK}}},
    {"Gather", {{GATHER, BLOCK}}},
    {"Scatter", {{SCATTER, BLOCK}}},
    {"Allgather", {{ALLGATHER, BLOCK}}},
    {"Alltoall", {{ALLTOALL, BLOCK}}},
    {"Reduce_scatter", {{REDUCE_SCATTER, BLOCK}}},
    {"Reduce+Bcast", {{REDUCE, BLOCK}, {BCAST, BLOCK}}},
    {"Gather+Bcast", {{GATHER, BLOCK}, {BCAST, BLOCK_OF_EACH}}},
    {"Reduce+Scatter", {{REDUCE, BLOCK_OF_EACH}, {SCATTER, BLOCK}}},
    {"Scatter+Allgather", {{SCATTER, PART}, {ALLGATHER, PART}}},
    {"Bcast-of-all", {{BCAST, BLOCK_OF_EACH}}},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

/* The first operation should not be slower than the second, which does the same or more. */
static const char *const guidelines[][2] = {
    {"Allreduce", "Reduce+Bcast"},  {"Allgather", "Gather+Bcast"}, {"Reduce_scatter", "Reduce+Scatter"},
    {"Bcast", "Scatter+Allgather"}, {"Scatter", "Bcast-of-all"},   {"Gather", "Allgather"},
    {"Reduce", "Allreduce"},        {"Allgather", "Alltoall"},
};
enum { GUIDELINES = sizeof guidelines / sizeof *guidelines };

static const char usage[] =
    "usage: mpirun -n RANKS collectives [OPTIONS]\n"
    "  --sizes N          how many sizes, evenly spread over their logarithm and drawn from the seed (8)\n"
    "  --at A,B,...       these sizes instead, ascending\n"
    "  --largest BYTES    the largest block, at most 2147483647 (1000000)\n"
    "  --repetitions N    of each operation and size, at most (50)\n"
    "  --slot MS          that an operation and size have, at most, in ms (500)\n"
    "  --seed N           of sizes and order (1)\n";

/* The next step, which rank 0 broadcasts. */
struct command {
    enum { START, SYNCHRONIZE, NEXT } kind;
    double at; /* START: when, on the global clock */
};

struct pair {
    int operation;
    long size;
};

/* Of one measurement, on this rank: local clock, then the global one; then of all ranks. */
struct times {
    double entry, exit, late; /* s; late: how much after the agreed moment */
};

static struct ranks_sizes sizes = {.count = 8, .largest = 1000000};
static long repetitions = 50, slot = 500, seed = 1;
static char *sent, *received;
static struct times *times;
static int *pair_of; /* of each measurement */
static size_t measured;

/* Reads the options; ends the program if there is one rank, or too many lines or bytes are asked for. */
static void parse(int argc, char **argv) {
    const struct ranks_option options[] = {{"repetitions", &repetitions, 1, RANKS_LINES_MAX, NULL},
                                           {"slot", &slot, 1, 3600000, NULL},
                                           {"seed", &seed, 0, LONG_MAX, NULL},
                                           {NULL, NULL, 0, 0, NULL}};
    ranks_parse(argc, argv, options, &sizes, usage);
    if (ranks < 2)
        ranks_die(2, "%d rank was started; expected at least 2", ranks);
    if (TRIES * (double)OPERATIONS * (double)sizes.count * (double)repetitions > RANKS_LINES_MAX)
        ranks_die(2, "more than %d lines would be printed; set fewer sizes or repetitions",
                  (int)RANKS_LINES_MAX);
    if ((double)sizes.largest * ranks > INT_MAX)
        ranks_die(2,
                  "blocks of %ld bytes from %d ranks exceed 2147483647 bytes, the most "
                  "of an MPI call; set a smaller --largest",
                  sizes.largest, ranks);
}

/* ---- The calls */

/* The bytes that a call in a measurement of SIZE passes for each rank; a part is rounded up. */
static int bytes_of(enum unit unit, long size) {
    return (int)(unit == BLOCK ? size : unit == BLOCK_OF_EACH ? size * ranks : (size + ranks - 1) / ranks);
}

/* Makes one collective call over all ranks, with BYTES of each rank; the root is rank 0. */
static void make_call(enum call call, int bytes) {
    MPI_Comm all = MPI_COMM_WORLD;
    switch (call) {
    case NONE:
        break;
    case BARRIER:
        MPI_Barrier(all);
        break;
    case BCAST:
        MPI_Bcast(sent, bytes, MPI_BYTE, 0, all);
        break;
    case REDUCE:
        MPI_Reduce(sent, received, bytes, MPI_BYTE, MPI_BXOR, 0, all);
        break;
    case ALLREDUCE:
        MPI_Allreduce(sent, received, bytes, MPI_BYTE, MPI_BXOR, all);
        break;
    case GATHER:
        MPI_Gather(sent, bytes, MPI_BYTE, received, bytes, MPI_BYTE, 0, all);
        break;
    case SCATTER:
        MPI_Scatter(sent, bytes, MPI_BYTE, received, bytes, MPI_BYTE, 0, all);
        break;
    case ALLGATHER:
        MPI_Allgather(sent, bytes, MPI_BYTE, received, bytes, MPI_BYTE, all);
        break;
    case ALLTOALL:
        MPI_Alltoall(sent, bytes, MPI_BYTE, received, bytes, MPI_BYTE, all);
        break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter_block(sent, received, bytes, MPI_BYTE, MPI_BXOR, all);
        break;
    }
}

/* Makes the calls of the pair's operation. */
static void operate(const struct pair *pair) {
    for (int i = 0; i < CALLS_MAX; i++)
        make_call(operations[pair->operation].calls[i].call,
                  bytes_of(operations[pair->operation].calls[i].unit, pair->size));
}

/* ---- One operation and size for its slot */

/* Runs one operation that all ranks enter at START on the global clock, and records its times. Returns how
 * late the latest rank entered, in s, on rank 0; <= 0: none was late. */
static double measure_one(int pair_number, const struct pair *pair, double start) {
    struct times *one = &times[measured];
    pair_of[measured++] = pair_number;
    const double at = local_clock_of(start);
    one->entry = ranks_now();
    one->late = one->entry - at;
    while (one->entry < at)
        one->entry = ranks_now();
    operate(pair);
    one->exit = ranks_now();
    double late = one->late;
    MPI_Reduce(&one->late, &late, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return late;
}

/* The duration of a broadcast and a barrier on the slowest rank, in s: the time until all ranks know the next
 * start. */
static double time_of_bcast(void) {
    double begun, longest = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    begun = ranks_now();
    for (int i = 0; i < BCASTS; i++) {
        struct command command = {NEXT, 0};
        MPI_Bcast(&command, sizeof command, MPI_BYTE, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    longest = (ranks_now() - begun) / BCASTS;
    MPI_Allreduce(MPI_IN_PLACE, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return longest;
}

/* What to do next, as rank 0 decides it and broadcasts it: NEXT when the slot is over or ENOUGH are measured,
 * SYNCHRONIZE once a second, else START in AHEAD seconds. */
static struct command next_command(double slot_begun, bool enough, double *synchronized, double ahead) {
    double now = ranks_now();
    if (enough || now - slot_begun > 1e-3 * (double)slot)
        return (struct command){NEXT, 0};
    if (now - *synchronized > synchronize_every) {
        *synchronized = now;
        return (struct command){SYNCHRONIZE, 0};
    }
    return (struct command){START, now + ahead};
}

/* Measures one operation and size until it has its repetitions or its slot is over. A measurement with a late
 * rank does not count, and doubles the lead time of the next start. */
static void measure_pair(int number, const struct pair *pair, double *synchronized, double bcast) {
    double begun = ranks_now(), slack = slack_least;
    operate(pair); /* connections and pages */
    for (long done = 0, tries = 0;;) {
        struct command command = next_command(begun, done >= repetitions || tries >= TRIES * repetitions,
                                              synchronized, slack * bcast);
        MPI_Bcast(&command, sizeof command, MPI_BYTE, 0, MPI_COMM_WORLD);
        if (command.kind == NEXT)
            return;
        if (command.kind == SYNCHRONIZE) {
            global_clock_synchronize();
            continue;
        }
        bool late = measure_one(number, pair, command.at) > 0;
        slack = late ? fmin(2 * slack, slack_most) : fmax(0.9 * slack, slack_least);
        done += !late;
        tries++;
    }
}

/* Converts all times to the global clock; on rank 0 they become the first entry, last exit and greatest
 * lateness over the ranks. */
static void gather_times(void) {
    double *ends = ranks_allocate(3 * measured, sizeof *ends);
    for (size_t i = 0; i < measured; i++) {
        ends[3 * i] = -global_clock_of(times[i].entry);
        ends[3 * i + 1] = global_clock_of(times[i].exit);
        ends[3 * i + 2] = times[i].late;
    }
    MPI_Reduce(rank == 0 ? MPI_IN_PLACE : ends, ends, (int)(3 * measured), MPI_DOUBLE, MPI_MAX, 0,
               MPI_COMM_WORLD);
    for (size_t i = 0; i < measured; i++)
        times[i] = (struct times){-ends[3 * i], ends[3 * i + 1], ends[3 * i + 2]};
    free(ends);
}

/* ---- What rank 0 prints */

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sets the quartiles of the durations of operation NAME at SIZE, over the measurements in which no rank was
 * late. Returns the number of those; at 0 the quartiles are unset. */
static size_t find_quartiles(const char *name, long size, const struct pair *pairs,
                             double quartiles[static 3]) {
    double *durations = ranks_allocate(measured, sizeof *durations);
    size_t count = 0;
    for (size_t i = 0; i < measured; i++) {
        const struct pair *pair = &pairs[pair_of[i]];
        if (times[i].late <= 0 && pair->size == size && strcmp(operations[pair->operation].name, name) == 0)
            durations[count++] = times[i].exit - times[i].entry;
    }
    qsort(durations, count, sizeof *durations, compare);
    for (size_t q = 1; count > 0 && q <= 3; q++)
        quartiles[q - 1] = durations[(count - 1) * q / 4];
    free(durations);
    return count;
}

/* Prints each performance guideline at each size. It is broken if the lower quartile of the operation exceeds
 * the upper quartile of its replacement. Returns how many are broken. */
static int print_guidelines(const struct pair *pairs) {
    int broken = 0;
    for (size_t g = 0; g < GUIDELINES; g++)
        for (long s = 0; s < sizes.count; s++) {
            double left[3] = {0}, right[3] = {0};
            size_t count = find_quartiles(guidelines[g][0], sizes.at[s], pairs, left),
                   others = find_quartiles(guidelines[g][1], sizes.at[s], pairs, right);
            bool known = count >= QUARTILES_LEAST && others >= QUARTILES_LEAST, slower = left[0] > right[2];
            broken += known && slower;
            printf("guideline %s %s %ld %.9f %.9f %s\n", guidelines[g][0], guidelines[g][1], sizes.at[s],
                   left[1], right[1],
                   !known   ? "unknown"
                   : slower ? "broken"
                            : "kept");
        }
    return broken;
}

int main(int argc, char **argv) {
    ranks_begin(&argc, &argv, "collectives");
    parse(argc, argv);
    uint64_t state = (uint64_t)seed;
    ranks_draw_sizes(&sizes, &state);
    sent = ranks_allocate_buffer((size_t)sizes.largest * (size_t)ranks);
    received = ranks_allocate_buffer((size_t)sizes.largest * (size_t)ranks);
    size_t count = OPERATIONS * (size_t)sizes.count, most = TRIES * count * (size_t)repetitions;
    struct pair *pairs = ranks_allocate(count, sizeof *pairs);
    for (size_t i = 0; i < count; i++)
        pairs[i] = (struct pair){(int)(i % OPERATIONS), sizes.at[i / OPERATIONS]};
    ranks_shuffle(pairs, count, sizeof *pairs, &state);
    times = ranks_allocate(most, sizeof *times);
    pair_of = ranks_allocate(most, sizeof *pair_of);

    double bcast = time_of_bcast(), origin = ranks_now(), synchronized = origin;
    global_clock_begin();
    for (size_t i = 0; i < count; i++)
        measure_pair((int)i, &pairs[i], &synchronized, bcast);
    global_clock_synchronize();
    gather_times();
    if (rank == 0) {
        ranks_print_places();
        for (size_t i = 0; i < measured; i++)
            printf("%s %s %ld %.9f %.9f\n", times[i].late > 0 ? "late" : "collective",
                   operations[pairs[pair_of[i]].operation].name, pairs[pair_of[i]].size,
                   times[i].entry - origin, times[i].exit - times[i].entry);
        printf("guidelines broken %d\n", print_guidelines(pairs));
        printf("measured %zu in %.3f s\n", measured, ranks_now() - origin);
    }
    global_clock_print(origin);
    MPI_Finalize();
    return 0;
}
