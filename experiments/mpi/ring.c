/*
 * A ring of all ranks, as HPL's broadcasts are: each sends a message to the next one with MPI_Isend, and
 * probes for that of the one before until it is there, with or without matrix products between two probes;
 * then it receives. All ranks do so at once. A line a rank and message is printed when all is done.
 */
#include "ranks.h"

#include <limits.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { TAG_DATA, WARM_UP_ROUNDS = 3, ORDER_MAX = 8192 };

enum load { LOAD_NONE, LOAD_DGEMM };
enum buffer { BUFFER_OWN, BUFFER_SHARED };

static const char *const load_words[] = {"none", "dgemm", NULL};
static const char *const buffer_words[] = {"own", "shared", NULL};

static const char usage[] =
    "usage: mpirun -n RANKS ring [OPTIONS]\n"
    "  --sizes N          how many sizes, evenly spread over their logarithm and drawn from the seed (20)\n"
    "  --at A,B,...       these sizes instead, ascending\n"
    "  --largest BYTES    the largest message, at most 2147483647 (100000000)\n"
    "  --repetitions N    of each size (10)\n"
    "  --seed N           of sizes and order (1)\n"
    "  --load WORD        between two probes: none, or dgemm, a matrix product (none)\n"
    "  --order N          rows and columns of its matrices (128)\n"
    "  --buffer WORD      messages are sent from and received into memory of their own, or, shared, into "
    "the\n"
    "                     matrices (own)\n";

/* Times in s. */
struct hop {
    double elapsed; /* since the ranks met */
    double send;    /* MPI_Isend */
    double probe;   /* one MPI_Iprobe that found nothing, the mean; 0: there was none */
    double receive; /* MPI_Recv, of a message that is there */
    double wait;    /* MPI_Wait of what was sent */
    double whole;
    double probes; /* how many found nothing */
};

static struct ranks_sizes sizes = {.count = 20, .largest = 100000000};
static long repetitions = 10, seed = 1, load = LOAD_NONE, order = 128, place = BUFFER_OWN;
static char *sent, *received;
static double *matrices;

static void parse(int argc, char **argv) {
    const struct ranks_option options[] = {{"repetitions", &repetitions, 1, RANKS_LINES_MAX, NULL},
                                           {"seed", &seed, 0, LONG_MAX, NULL},
                                           {"load", &load, 0, 0, load_words},
                                           {"order", &order, 1, ORDER_MAX, NULL},
                                           {"buffer", &place, 0, 0, buffer_words},
                                           {NULL, NULL, 0, 0, NULL}};
    ranks_parse(argc, argv, options, &sizes, usage);
    if (ranks < 2)
        ranks_die(2, "%d rank was started; expected at least 2", ranks);
    if ((double)sizes.count * (double)repetitions * ranks > RANKS_LINES_MAX)
        ranks_die(2,
                  "more than %d lines would be printed; set fewer sizes or repetitions, "
                  "or start fewer ranks",
                  (int)RANKS_LINES_MAX);
}

/* Allocates messages and matrices. With --buffer shared messages are received into the matrices, so that what
 * arrives is multiplied next, like a panel of HPL. */
static void allocate(void) {
    size_t matrix_bytes = 3 * (size_t)order * (size_t)order * sizeof(double);
    size_t largest = (size_t)sizes.largest;
    char *memory =
        ranks_allocate_buffer(place == BUFFER_SHARED && largest > matrix_bytes ? largest : matrix_bytes);
    matrices = (double *)(void *)memory;
    ranks_fill_matrices(matrices, (int)order);
    if (load == LOAD_DGEMM)
        ranks_multiply(matrices, (int)order); /* the first product loads the library */
    sent = ranks_allocate_buffer(largest);
    received = place == BUFFER_SHARED ? memory : ranks_allocate_buffer(largest);
}

/* Each rank sends SIZE bytes to the next rank and receives from the one before, with the load between two
 * probes. Returns the times of this rank's calls. */
static struct hop run_hop(long size) {
    const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    struct hop hop = {0};
    MPI_Request request;
    MPI_Status status;
    int count;
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = ranks_now(), at = begun;
    MPI_Isend(sent, (int)size, MPI_CHAR, next, TAG_DATA, MPI_COMM_WORLD, &request);
    hop.send = ranks_now() - at;
    for (;;) {
        int found;
        at = ranks_now();
        MPI_Iprobe(before, TAG_DATA, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        if (found)
            break;
        hop.probe += ranks_now() - at;
        hop.probes++;
        if (load == LOAD_DGEMM)
            ranks_multiply(matrices, (int)order);
    }
    at = ranks_now();
    MPI_Recv(received, (int)size, MPI_CHAR, before, TAG_DATA, MPI_COMM_WORLD, &status);
    hop.receive = ranks_now() - at;
    at = ranks_now();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    hop.wait = ranks_now() - at;
    hop.whole = ranks_now() - begun;
    hop.elapsed = begun;
    if (hop.probes > 0)
        hop.probe /= hop.probes;
    MPI_Get_count(&status, MPI_CHAR, &count);
    if (count != size)
        ranks_die(1, "%d bytes were received instead of %ld", count, size);
    return hop;
}

int main(int argc, char **argv) {
    ranks_begin(&argc, &argv, "ring");
    parse(argc, argv);
    uint64_t state = (uint64_t)seed;
    ranks_draw_sizes(&sizes, &state);
    allocate();
    size_t count = (size_t)(sizes.count * repetitions);
    long *list = ranks_allocate(count, sizeof *list);
    for (size_t i = 0; i < count; i++)
        list[i] = sizes.at[i % (size_t)sizes.count];
    ranks_shuffle(list, count, sizeof *list, &state);
    struct hop *hops = ranks_allocate(count, sizeof *hops),
               *all = ranks_allocate(rank == 0 ? count * (size_t)ranks : 1, sizeof *hops);

    MPI_Barrier(MPI_COMM_WORLD);
    double origin = ranks_now();
    for (int i = 0; i < WARM_UP_ROUNDS; i++)
        for (int large = 0; large < 2; large++)
            (void)run_hop(large ? sizes.largest : sizes.at[0]);
    for (size_t i = 0; i < count; i++) {
        hops[i] = run_hop(list[i]);
        hops[i].elapsed -= origin;
    }
    const int numbers = (int)(count * sizeof *hops / sizeof(double));
    MPI_Gather(hops, numbers, MPI_DOUBLE, all, numbers, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        ranks_print_places();
        for (size_t i = 0; i < count; i++)
            for (int r = 0; r < ranks; r++) {
                const struct hop *hop = &all[(size_t)r * count + i];
                printf("hop %d %ld %.9f %.9f %.0f %.9f %.9f %.9f %.9f\n", r, list[i], hop->elapsed, hop->send,
                       hop->probes, hop->probe, hop->receive, hop->wait, hop->whole);
            }
        printf("measured %zu in %.3f s\n", count * (size_t)ranks, ranks_now() - origin);
    }
    MPI_Finalize();
    return 0;
}
