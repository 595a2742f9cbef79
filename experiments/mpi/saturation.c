/*
 * How a network shares its bandwidth: 1, 2, 4, ... pairs of ranks send at once, one way or both ways, or as
 * many ranks make an MPI_Alltoall. A line a measurement is printed when all is done, with the time of the
 * slowest and of the fastest.
 */
#include "ranks.h"

#include <limits.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_DATA, TAG_DONE, WINDOW_MAX = 1024, ACTIVE_MAX = 32 };

enum pattern { ONE_WAY, BOTH_WAYS, ALL_TO_ALL, PATTERNS };
static const char *const pattern_names[] = {"one-way", "both-ways", "all-to-all"};

static const char usage[] =
    "usage: mpirun -n RANKS saturation [OPTIONS]\n"
    "  --sizes N          how many sizes, evenly spread over their logarithm and drawn from the seed (10)\n"
    "  --at A,B,...       these sizes instead, ascending\n"
    "  --largest BYTES    the largest message, at most 2147483647 (10000000)\n"
    "  --repetitions N    of each pattern, number of pairs and size (5)\n"
    "  --seed N           of sizes and order (1)\n"
    "  --window N         messages that a pair has on their way at once (8)\n";

struct measurement {
    enum pattern pattern;
    int active; /* pairs, or ranks of an all-to-all */
    long size;
};

/* In s. */
struct times {
    double elapsed, slowest, fastest;
};

static struct ranks_sizes sizes = {.count = 10, .largest = 10000000};
static long repetitions = 5, seed = 1, window = 8;
static char *sent, *received;
static MPI_Comm first_ranks[ACTIVE_MAX]; /* of an all-to-all: 2, 4, 8, ..., all */
static int active_counts[PATTERNS][ACTIVE_MAX], active_sets[PATTERNS];

static void parse(int argc, char **argv) {
    const struct ranks_option options[] = {{"repetitions", &repetitions, 1, RANKS_LINES_MAX, NULL},
                                           {"seed", &seed, 0, LONG_MAX, NULL},
                                           {"window", &window, 1, WINDOW_MAX, NULL},
                                           {NULL, NULL, 0, 0, NULL}};
    ranks_parse(argc, argv, options, &sizes, usage);
    if (ranks < 2)
        ranks_die(2, "%d rank was started; expected at least 2", ranks);
}

/* Sets the numbers of pairs that are active at once, 1, 2, 4, ... and all; for all-to-all of ranks, 2, 4, 8,
 * ... and all, each with its communicator. */
static void choose_active(void) {
    for (int p = 0; p < PATTERNS; p++) {
        int most = p == ALL_TO_ALL ? ranks : ranks / 2;
        for (int active = p == ALL_TO_ALL ? 2 : 1;; active *= 2) {
            if (active > most)
                active = most;
            if (p == ALL_TO_ALL)
                MPI_Comm_split(MPI_COMM_WORLD, rank < active ? 0 : MPI_UNDEFINED, rank,
                               &first_ranks[active_sets[p]]);
            active_counts[p][active_sets[p]++] = active;
            if (active == most)
                break;
        }
    }
}

/* All measurements in an order shuffled by *STATE: each pattern, number of pairs, size and repetition. Ends
 * the program if their lines exceed RANKS_LINES_MAX. */
static struct measurement *make_list(uint64_t *state, size_t *ret_count) {
    size_t sets = 0, count = 0;
    for (int p = 0; p < PATTERNS; p++)
        sets += (size_t)active_sets[p];
    double lines = (double)sets * (double)sizes.count * (double)repetitions;
    if (lines > RANKS_LINES_MAX)
        ranks_die(2,
                  "%.0f lines would be printed; expected at most %d: set fewer sizes or "
                  "repetitions",
                  lines, (int)RANKS_LINES_MAX);
    struct measurement *list = ranks_allocate((size_t)lines, sizeof *list);
    for (int p = 0; p < PATTERNS; p++)
        for (int a = 0; a < active_sets[p]; a++)
            for (long i = 0; i < sizes.count * repetitions; i++)
                list[count++] =
                    (struct measurement){(enum pattern)p, active_counts[p][a], sizes.at[i % sizes.count]};
    ranks_shuffle(list, count, sizeof *list, state);
    *ret_count = count;
    return list;
}

/* Sends and receives a window of messages at once; then the receiver answers with a byte, by which the sender
 * knows that they have arrived. */
static void send_window(const struct measurement *m, int other, bool sends, bool receives) {
    MPI_Request requests[2 * WINDOW_MAX];
    int count = 0;
    char done = 0;
    for (long i = 0; receives && i < window; i++)
        MPI_Irecv(received + i * m->size, (int)m->size, MPI_CHAR, other, TAG_DATA, MPI_COMM_WORLD,
                  &requests[count++]);
    for (long i = 0; sends && i < window; i++)
        MPI_Isend(sent + i * m->size, (int)m->size, MPI_CHAR, other, TAG_DATA, MPI_COMM_WORLD,
                  &requests[count++]);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    if (receives)
        MPI_Send(&done, 1, MPI_CHAR, other, TAG_DONE, MPI_COMM_WORLD);
    if (sends)
        MPI_Recv(&done, 1, MPI_CHAR, other, TAG_DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Runs this rank's part of a measurement. Returns its duration in s, or -1 if the rank is not active. */
static double time_one(const struct measurement *m) {
    double begun = ranks_now();
    if (m->pattern == ALL_TO_ALL) {
        int set = 0;
        while (active_counts[ALL_TO_ALL][set] != m->active)
            set++;
        if (rank >= m->active)
            return -1;
        MPI_Alltoall(sent, (int)m->size, MPI_CHAR, received, (int)m->size, MPI_CHAR, first_ranks[set]);
        return ranks_now() - begun;
    }
    const int half = ranks / 2, pair = rank < half ? rank : rank - half;
    if (rank >= 2 * half || pair >= m->active)
        return -1;
    bool low = rank < half;
    send_window(m, low ? rank + half : rank - half, low || m->pattern == BOTH_WAYS,
                !low || m->pattern == BOTH_WAYS);
    return ranks_now() - begun;
}

/* Runs a measurement on all ranks. Returns its start and the durations of the slowest and the fastest active
 * rank. */
static struct times measure(const struct measurement *m) {
    MPI_Barrier(MPI_COMM_WORLD);
    struct times times = {.elapsed = ranks_now()};
    double seconds = time_one(m), ends[] = {seconds, seconds < 0 ? -1e300 : -seconds};
    MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    times.slowest = ends[0];
    times.fastest = -ends[1];
    return times;
}

/* The bytes that all ranks together send. */
static double bytes_moved(const struct measurement *m) {
    double messages = m->pattern == ALL_TO_ALL
                          ? (double)m->active * (m->active - 1)
                          : (double)m->active * (double)window * (m->pattern == BOTH_WAYS ? 2 : 1);
    return messages * (double)m->size;
}

/* How many of the active pairs, or of the ranks of an all-to-all beside rank 0's node, communicate between
 * nodes. */
static int count_remote(const struct measurement *m) {
    int remote = 0, half = ranks / 2;
    for (int i = 0; i < m->active; i++) {
        int other = m->pattern == ALL_TO_ALL ? 0 : i + half;
        remote +=
            strcmp(rank_names + i * MPI_MAX_PROCESSOR_NAME, rank_names + other * MPI_MAX_PROCESSOR_NAME) != 0;
    }
    return remote;
}

int main(int argc, char **argv) {
    ranks_begin(&argc, &argv, "saturation");
    parse(argc, argv);
    uint64_t state = (uint64_t)seed;
    ranks_draw_sizes(&sizes, &state);
    size_t room = (size_t)sizes.largest * (size_t)(window > ranks ? window : ranks), count;
    sent = ranks_allocate_buffer(room);
    received = ranks_allocate_buffer(room);
    choose_active();
    struct measurement *list = make_list(&state, &count);
    struct times *times = ranks_allocate(count, sizeof *times);

    MPI_Barrier(MPI_COMM_WORLD);
    double origin = ranks_now();
    for (int p = 0; p < PATTERNS; p++) /* connections and pages, which the first message of a pair pays for */
        for (int a = 0; a < active_sets[p]; a++)
            (void)measure(&(struct measurement){(enum pattern)p, active_counts[p][a], sizes.largest});
    for (size_t i = 0; i < count; i++)
        times[i] = measure(&list[i]);
    if (rank == 0) {
        ranks_print_places();
        for (size_t i = 0; i < count; i++)
            printf("flow %s %d %d %ld %.0f %.9f %.9f %.9f\n", pattern_names[list[i].pattern], list[i].active,
                   count_remote(&list[i]), list[i].size, bytes_moved(&list[i]), times[i].elapsed - origin,
                   times[i].slowest, times[i].fastest);
        printf("measured %zu in %.3f s\n", count, ranks_now() - origin);
    }
    MPI_Finalize();
    return 0;
}
