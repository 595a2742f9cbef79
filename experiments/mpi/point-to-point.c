/*
 * Times single calls of MPI between two ranks, for messages of many sizes, in one shuffled list of all
 * operations, sizes and pairs; finds out, without a clock, up to which size a message is sent before it is
 * received; and prints a line a measurement when all is done, so that nothing is written while something is
 * timed. The README of experiments/mpi-point-to-point says what each operation means. Every rank makes the
 * same list from the seed: no rank directs the others.
 */
#include "ranks.h"

#include <limits.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    MEET_ROUNDS = 10,     /* exchanges of a byte before each measurement, so that both ranks are awake */
    WARM_UP_ROUNDS = 10,  /* ping-pongs of each pair and size before anything counts */
    PROBE_ROUNDS = 10,    /* exchanges of a byte that a message without a receive is given to be sent */
    PREFLIGHT_LIMIT = 60, /* s that the first byte of a pair may take */
    WARM_UP_BYTES = 1 << 20,
    SPAN = 64 << 20, /* bytes over which messages move in memory */
    DGEMM_ORDER = 256,
    STAMP_MODULUS = 251,
};

enum operation { RECV, ISEND, SEND, PING_PONG, IPROBE, TEST, WTIME, OPERATIONS };
static const char *const operation_names[] = {"Recv",   "Isend", "Send",  "PingPong",
                                              "Iprobe", "Test",  "Wtime", NULL};

enum tag { TAG_DATA, TAG_MEET, TAG_READY, TAG_BEHIND, TAG_COMMAND, TAG_NEVER };

enum load { LOAD_NONE, LOAD_DGEMM, LOAD_PROBE };

struct options {
    struct ranks_sizes sizes;
    long repetitions, seed, wtime_calls;
    long pairs, load, buffer, only; /* indices of words; `only` is OPERATIONS for all */
};

/* A message goes from FROM to TO. */
struct pair {
    int from, to;
    bool remote;
};

struct measurement {
    enum operation operation;
    const struct pair *pair;
    long size;
    size_t offset; /* in the buffers of both ranks */
};

/* Times of a measurement in s, on the rank that reads the clock; 0 on the others, so that MPI_SUM gathers
 * them. */
struct times {
    double start, duration;
    double empty_probe; /* duration of a probe that found no message */
};

static struct options options;
static char *buffer;
static double begun; /* this rank's clock when the measurements began */

/* ---- Options */

static const char *const pair_words[] = {"first", "all", NULL};
static const char *const load_words[] = {"none", "dgemm", "probe", NULL};
static const char *const buffer_words[] = {"same", "moving", NULL};

static const char usage[] =
    "usage: mpirun -n RANKS point-to-point [OPTIONS]\n"
    "  --sizes N          how many sizes, evenly spread over their logarithm and drawn from the seed (40)\n"
    "  --at A,B,...       these sizes instead, ascending\n"
    "  --repetitions N    of each operation, size and pair (5)\n"
    "  --largest BYTES    the largest message, at most 2147483647 (1000000000)\n"
    "  --seed N           of sizes, order and places in memory (1)\n"
    "  --pairs WORD       first: of rank 0 with one on another node, and with one on its own; or all "
    "(first)\n"
    "  --load WORD        what other ranks do: none (they sleep), dgemm or probe (none)\n"
    "  --buffer WORD      same: every message at one place in memory; or moving (same)\n"
    "  --wtime-calls N    calls of MPI_Wtime that are timed together (100000)\n"
    "  --only OPERATION   Recv, Isend, Send, PingPong, Iprobe, Test or Wtime alone, without thresholds\n";

static void parse_options(int argc, char **argv) {
    options = (struct options){.sizes = {.count = 40, .largest = 1000000000},
                               .repetitions = 5,
                               .seed = 1,
                               .wtime_calls = 100000,
                               .only = OPERATIONS};
    const struct ranks_option known[] = {{"repetitions", &options.repetitions, 1, RANKS_LINES_MAX, NULL},
                                         {"seed", &options.seed, 0, LONG_MAX, NULL},
                                         {"wtime-calls", &options.wtime_calls, 1, 1000000000, NULL},
                                         {"pairs", &options.pairs, 0, 0, pair_words},
                                         {"load", &options.load, 0, 0, load_words},
                                         {"buffer", &options.buffer, 0, 0, buffer_words},
                                         {"only", &options.only, 0, 0, operation_names},
                                         {NULL, NULL, 0, 0, NULL}};
    ranks_parse(argc, argv, known, &options.sizes, usage);
}

/* ---- Pairs, and the list of all measurements */

/* The ordered pairs of ranks that are measured; the caller frees them. By default rank 0 with the first rank
 * on another node and the first on its own; with --pairs all every pair. Ends the program when there is only
 * one rank. */
static struct pair *choose_pairs(size_t *ret_count) {
    struct pair *pairs = ranks_allocate((size_t)ranks * (size_t)ranks, sizeof *pairs);
    size_t count = 0;
    for (int from = 0; from < (options.pairs ? ranks : 1); from++)
        for (int to = 0; to < ranks; to++) {
            bool remote = strcmp(rank_names + from * MPI_MAX_PROCESSOR_NAME,
                                 rank_names + to * MPI_MAX_PROCESSOR_NAME) != 0;
            bool another = from != to;
            for (size_t i = 0; !options.pairs && i < count; i++)
                another = another && pairs[i].remote != remote;
            if (another)
                pairs[count++] = (struct pair){from, to, remote};
        }
    if (count == 0)
        ranks_die(2, "%d rank was started; expected at least 2", ranks);
    *ret_count = count;
    return pairs;
}

/* Whether the operation is measured for every message size. */
static bool is_sized(enum operation operation) {
    return operation <= PING_PONG;
}

/* All measurements, in an order shuffled by *STATE: each operation, size and repetition of each pair. Ends
 * the program if their lines exceed RANKS_LINES_MAX. */
static struct measurement *make_measurements(const struct pair *pairs, size_t pair_count, uint64_t *state,
                                             size_t *ret_count) {
    /* Iprobe and Test have a line for the probe in vain too. */
    double lines = (double)pair_count * (double)options.repetitions * ((double)options.sizes.count * 8 + 1);
    if (lines > RANKS_LINES_MAX)
        ranks_die(2,
                  "%.0f lines would be printed; expected at most %d: set fewer pairs, "
                  "sizes or repetitions",
                  lines, (int)RANKS_LINES_MAX);
    struct measurement *list = ranks_allocate((size_t)lines, sizeof *list);
    size_t count = 0;
    uint64_t offset_state =
        ~*state; /* numbers of their own: the order is that of the seed, wherever messages lie */
    for (size_t p = 0; p < pair_count; p++)
        for (int o = 0; o < OPERATIONS; o++)
            for (long i = 0; i < (o == WTIME ? 1 : options.sizes.count) * options.repetitions; i++) {
                if (options.only != OPERATIONS && options.only != o)
                    continue;
                long size = is_sized(o) ? options.sizes.at[i % options.sizes.count] : o == WTIME ? 0 : 1;
                size_t offset = options.buffer ? ranks_draw(&offset_state) % SPAN / 64 * 64 : 0;
                list[count++] = (struct measurement){o, &pairs[p], size, offset};
            }
    ranks_shuffle(list, count, sizeof *list, state);
    *ret_count = count;
    return list;
}

/* Allocates the message buffer; a single byte on ranks of no pair. */
static void allocate_buffer(const struct pair *pairs, size_t pair_count) {
    size_t room = 1;
    for (size_t i = 0; i < pair_count; i++)
        if (rank == pairs[i].from || rank == pairs[i].to)
            room = (size_t)options.sizes.largest + (options.buffer ? SPAN : 0);
    buffer = ranks_allocate_buffer(room);
}

/* Ping-pongs of each pair, small and large in turn, whose times are printed apart: the first messages of a
 * pair also pay for connections, memory registration and page faults. */
static struct measurement *make_warm_up(const struct pair *pairs, size_t pair_count, size_t *ret_count) {
    struct measurement *list = ranks_allocate(pair_count * WARM_UP_ROUNDS * 2, sizeof *list);
    for (size_t i = *ret_count = 0; i < pair_count * WARM_UP_ROUNDS * 2; i++) {
        bool large = i % 2 && options.sizes.largest >= WARM_UP_BYTES;
        list[(*ret_count)++] = (struct measurement){.operation = PING_PONG,
                                                    .pair = &pairs[i / (WARM_UP_ROUNDS * 2)],
                                                    .size = large ? WARM_UP_BYTES : 1};
    }
    return list;
}

/* ---- Waiting */

static char timeout_message[256];

/* Signal handler: prints which pair did not exchange a byte in time, and ends this process. */
static void on_alarm(int signal) {
    (void)signal;
    ssize_t written = write(STDERR_FILENO, timeout_message, strlen(timeout_message));
    (void)written;
    _exit(1);
}

/* One matrix product, the load of --load dgemm; allocates its matrices at the first call. */
static void multiply(void) {
    static double *matrices;
    if (!matrices)
        ranks_fill_matrices(matrices = ranks_allocate(3 * DGEMM_ORDER * DGEMM_ORDER, sizeof *matrices),
                            DGEMM_ORDER);
    ranks_multiply(matrices, DGEMM_ORDER);
}

/* One step of the load of a rank that is not being measured (--load): a short sleep, a matrix product or a
 * probe. */
static void run_load(void) {
    int flag;
    switch ((enum load)options.load) {
    case LOAD_NONE:
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
        break;
    case LOAD_DGEMM:
        multiply();
        break;
    case LOAD_PROBE:
        MPI_Iprobe(MPI_ANY_SOURCE, TAG_NEVER, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        break;
    }
}

/* Waits for the requests by MPI_Testall. If the rank WAS_IDLE it runs its load between tests, since a
 * blocking call of MPI spins, and the core would be neither idle nor loaded as asked. */
static void wait_for(MPI_Request *requests, int count, bool was_idle) {
    MPI_Status statuses[2];
    for (int done = 0;;) {
        MPI_Testall(count, requests, &done, statuses);
        if (done)
            return;
        if (was_idle)
            run_load();
    }
}

static void send_byte(int to, enum tag tag) {
    char byte = 0;
    MPI_Send(&byte, 1, MPI_CHAR, to, tag, MPI_COMM_WORLD);
}

static void receive_byte(int from, enum tag tag) {
    char byte;
    MPI_Recv(&byte, 1, MPI_CHAR, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Exchanges bytes with rank OTHER until both are awake. If LIMIT is not 0 and the first byte takes more than
 * LIMIT seconds, SIGALRM prints the pair and ends the program: the usual first failure of a new cluster. */
static void synchronize_pair(int other, bool was_idle, unsigned limit) {
    char out = 0, in;
    MPI_Request requests[2];
    snprintf(timeout_message, sizeof timeout_message,
             "point-to-point: rank %d and rank %d (%.100s) have not exchanged a byte in %d s\n", rank, other,
             rank_names + other * MPI_MAX_PROCESSOR_NAME, (int)PREFLIGHT_LIMIT);
    alarm(limit);
    MPI_Irecv(&in, 1, MPI_CHAR, other, TAG_MEET, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&out, 1, MPI_CHAR, other, TAG_MEET, MPI_COMM_WORLD, &requests[1]);
    wait_for(requests, 2, was_idle);
    alarm(0);
    for (int i = 0; i < MEET_ROUNDS; i++)
        MPI_Sendrecv(&out, 1, MPI_CHAR, other, TAG_MEET, &in, 1, MPI_CHAR, other, TAG_MEET, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
}

/* ---- One measurement, by its two ranks */

static char *message_of(const struct measurement *measurement) {
    return buffer + measurement->offset;
}

/* The byte at both ends of message INDEX, by which the receiver checks it. */
static char stamp_of(size_t index) {
    return (char)(1 + index % STAMP_MODULUS);
}

static void send_message(const struct measurement *m) {
    MPI_Send(message_of(m), (int)m->size, MPI_CHAR, m->pair->to, TAG_DATA, MPI_COMM_WORLD);
}

/* Runs the measurement on the rank FROM of its pair. Returns the duration in s if the operation is timed on
 * this rank, else 0. */
static double run_sender(const struct measurement *m, size_t index) {
    MPI_Request request;
    int to = m->pair->to;
    double start;
    if (m->operation == WTIME) {
        volatile double sink; /* so that no compiler counts the calls as useless */
        start = ranks_now();
        for (long i = 0; i < options.wtime_calls; i++)
            sink = MPI_Wtime();
        (void)sink;
        return ranks_now() - start;
    }
    message_of(m)[0] = message_of(m)[m->size - 1] = stamp_of(index);
    if (m->operation == RECV) {
        MPI_Isend(message_of(m), (int)m->size, MPI_CHAR, to, TAG_DATA, MPI_COMM_WORLD, &request);
        send_byte(to, TAG_BEHIND);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return 0;
    }
    receive_byte(to, TAG_READY);
    start = ranks_now();
    switch (m->operation) {
    case PING_PONG:
        send_message(m);
        MPI_Recv(message_of(m), (int)m->size, MPI_CHAR, to, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return ranks_now() - start;
    case SEND:
        send_message(m);
        return ranks_now() - start;
    case ISEND: {
        MPI_Isend(message_of(m), (int)m->size, MPI_CHAR, to, TAG_DATA, MPI_COMM_WORLD, &request);
        double duration = ranks_now() - start;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return duration;
    }
    default: /* a probe for TO to find */
        send_message(m);
        return 0;
    }
}

/* Probes (MPI_Iprobe, or MPI_Test of a receive) until the message has arrived. The first probe comes before
 * the sender may send, and its duration goes to *RET_EMPTY_PROBE; returns the duration of the probe that
 * finds the message. */
static double time_probe(const struct measurement *m, double *ret_empty_probe) {
    MPI_Request request = MPI_REQUEST_NULL;
    int from = m->pair->from, found = 0;
    double duration = 0;
    if (m->operation == TEST)
        MPI_Irecv(message_of(m), (int)m->size, MPI_CHAR, from, TAG_DATA, MPI_COMM_WORLD, &request);
    for (bool empty_probe = true; empty_probe || !found; empty_probe = false) {
        double start = ranks_now();
        if (m->operation == TEST)
            MPI_Test(&request, &found, MPI_STATUS_IGNORE);
        else
            MPI_Iprobe(from, TAG_DATA, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        duration = ranks_now() - start;
        if (!empty_probe)
            continue;
        if (found)
            ranks_die(1, "a message of rank %d was found before it was sent", from);
        *ret_empty_probe = duration;
        send_byte(from, TAG_READY);
    }
    if (m->operation == IPROBE)
        MPI_Recv(message_of(m), (int)m->size, MPI_CHAR, from, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return duration;
}

/* The duration of MPI_Recv of a message that has already arrived. */
static double time_recv(const struct measurement *m) {
    int from = m->pair->from;
    receive_byte(from, TAG_BEHIND); /* sent after the message */
    for (int found = 0; !found;)    /* the byte may still have arrived first */
        MPI_Iprobe(from, TAG_DATA, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    double start = ranks_now();
    MPI_Recv(message_of(m), (int)m->size, MPI_CHAR, from, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return ranks_now() - start;
}

/* Runs the measurement on the rank TO of its pair, and ends the program if the message has wrong contents.
 * Returns the duration in s if the operation is timed on this rank, else 0. */
static double run_receiver(const struct measurement *m, size_t index, double *ret_empty_probe) {
    MPI_Request request;
    int from = m->pair->from;
    double duration = 0;
    if (m->operation == WTIME)
        return 0;
    if (m->operation == RECV) {
        duration = time_recv(m);
    } else if (!is_sized(m->operation)) {
        duration = time_probe(m, ret_empty_probe);
    } else {
        MPI_Irecv(message_of(m), (int)m->size, MPI_CHAR, from, TAG_DATA, MPI_COMM_WORLD, &request);
        send_byte(from, TAG_READY);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (m->operation == PING_PONG)
            MPI_Send(message_of(m), (int)m->size, MPI_CHAR, from, TAG_DATA, MPI_COMM_WORLD);
    }
    if (message_of(m)[0] != stamp_of(index) || message_of(m)[m->size - 1] != stamp_of(index))
        ranks_die(1,
                  "%s: a message of %ld bytes from rank %d arrived with other contents "
                  "than were sent",
                  operation_names[m->operation], m->size, from);
    return duration;
}

/* Runs all measurements in the order of LIST, and ends with a barrier of all ranks. LIMIT: seconds in which a
 * pair must exchange its first byte; 0: no limit. */
static void measure(const struct measurement *list, size_t count, unsigned limit, struct times *times) {
    bool was_idle = true;
    for (size_t i = 0; i < count; i++) {
        const struct pair *pair = list[i].pair;
        bool is_from = rank == pair->from, is_to = rank == pair->to;
        if (is_from || is_to) {
            synchronize_pair(is_from ? pair->to : pair->from, was_idle, limit);
            double start = ranks_now() - begun;
            times[i].duration =
                is_from ? run_sender(&list[i], i) : run_receiver(&list[i], i, &times[i].empty_probe);
            times[i].start = times[i].duration > 0 ? start : 0;
        }
        was_idle = !is_from && !is_to;
    }
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    wait_for(&request, 1, true);
}

/* ---- Thresholds: up to which size a message is sent before its receive is posted */

struct probe_result {
    bool complete; /* the send completed before a receive was posted: not synchronous */
    bool intact; /* what the sender wrote over its buffer after Isend did not reach the receiver: asynchronous
                  */
};

/* Sends a message of SIZE bytes to rank TO, waits for PROBE_ROUNDS exchanges of a byte, then lets the
 * receiver post its receive. Says whether the send completed before that, and whether bytes overwritten after
 * Isend arrived intact. */
static struct probe_result probe(int to, long size) {
    MPI_Request request;
    int done = 0;
    char intact;
    MPI_Send(&size, 1, MPI_LONG, to, TAG_COMMAND, MPI_COMM_WORLD);
    memset(buffer, 'A', (size_t)size);
    MPI_Isend(buffer, (int)size, MPI_CHAR, to, TAG_DATA, MPI_COMM_WORLD, &request);
    memset(buffer, 'B', (size_t)size);
    for (int i = 0; i < PROBE_ROUNDS; i++) {
        send_byte(to, TAG_BEHIND);
        receive_byte(to, TAG_BEHIND);
        if (!done)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
    send_byte(to, TAG_READY);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Recv(&intact, 1, MPI_CHAR, to, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return (struct probe_result){.complete = done, .intact = intact};
}

/* The receiver's side of probe(), repeated until a size of 0 arrives. */
static void answer_probes(int from) {
    for (long size;;) {
        MPI_Recv(&size, 1, MPI_LONG, from, TAG_COMMAND, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (size == 0)
            return;
        memset(buffer, 'C', (size_t)size);
        for (int i = 0; i < PROBE_ROUNDS; i++) {
            receive_byte(from, TAG_BEHIND);
            send_byte(from, TAG_BEHIND);
        }
        receive_byte(from, TAG_READY);
        MPI_Recv(buffer, (int)size, MPI_CHAR, from, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        char intact = buffer[0] == 'A' && memcmp(buffer, buffer + 1, (size_t)size - 1) == 0;
        MPI_Send(&intact, 1, MPI_CHAR, from, TAG_READY, MPI_COMM_WORLD);
    }
}

enum { ASYNCHRONOUS, DETACHED, THRESHOLDS };

/* For each protocol the least size that is not sent by it, or largest + 1 if there is none: by doubling, then
 * bisection. Each probe tells of both protocols. */
static void find_pair_thresholds(int to, double thresholds[static THRESHOLDS]) {
    long below[THRESHOLDS] = {0}, above[THRESHOLDS] = {options.sizes.largest + 1, options.sizes.largest + 1};
    for (int i = 0; i < THRESHOLDS; i++) {
        while (above[i] - below[i] > 1) {
            long size = below[i] + (above[i] - below[i]) / 2;
            if (above[i] > options.sizes.largest) /* nothing is known yet: large messages are dear */
                size = below[i] == 0                           ? 1
                       : below[i] <= options.sizes.largest / 2 ? 2 * below[i]
                                                               : options.sizes.largest;
            struct probe_result probe_result = probe(to, size);
            for (int j = 0; j < THRESHOLDS; j++) {
                bool holds = j == DETACHED ? probe_result.complete : probe_result.intact;
                if (holds && size > below[j])
                    below[j] = size;
                else if (!holds && size < above[j])
                    above[j] = size;
            }
        }
        thresholds[i] = (double)above[i];
    }
}

/* Finds the thresholds of each pair in turn; they are set on the rank FROM of the pair only. */
static void find_thresholds(const struct pair *pairs, size_t count, double (*thresholds)[THRESHOLDS]) {
    for (size_t p = 0; p < count; p++) {
        long end = 0;
        if (rank == pairs[p].to) {
            synchronize_pair(pairs[p].from, true, 0);
            answer_probes(pairs[p].from);
        } else if (rank == pairs[p].from) {
            synchronize_pair(pairs[p].to, true, 0);
            find_pair_thresholds(pairs[p].to, thresholds[p]);
            MPI_Send(&end, 1, MPI_LONG, pairs[p].to, TAG_COMMAND, MPI_COMM_WORLD);
        }
    }
}

/* ---- What is printed, all by rank 0 */

/* Sums VALUES, an array of doubles of so many BYTES, over all ranks into rank 0's. */
static void gather(void *values, size_t bytes) {
    MPI_Reduce(rank == 0 ? MPI_IN_PLACE : values, values, (int)(bytes / sizeof(double)), MPI_DOUBLE, MPI_SUM,
               0, MPI_COMM_WORLD);
}

/* Prints the library's own limits: its integer control variables (MPI_T) with "eager" in their names. Prints
 * nothing if MPI_T is unavailable. */
static void print_limits(void) {
    int provided, count;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS ||
        MPI_T_cvar_get_num(&count) != MPI_SUCCESS)
        return;
    for (int i = 0; i < count; i++) {
        char name[256] = "";
        int length = sizeof name, verbosity, bind, scope, elements, size, described = 0;
        MPI_Datatype type;
        MPI_T_enum words;
        MPI_T_cvar_handle handle;
        if (MPI_T_cvar_get_info(i, name, &length, &verbosity, &type, &words, NULL, &described, &bind,
                                &scope) ||
            !strcasestr(name, "eager") || bind != MPI_T_BIND_NO_OBJECT || type == MPI_CHAR ||
            MPI_Type_size(type, &size) || (size != 4 && size != 8) ||
            MPI_T_cvar_handle_alloc(i, NULL, &handle, &elements))
            continue;
        union {
            int32_t narrow;
            int64_t wide;
        } value = {0};
        if (elements == 1 && MPI_T_cvar_read(handle, &value) == MPI_SUCCESS)
            printf("limit %s %lld\n", name, size == 4 ? (long long)value.narrow : (long long)value.wide);
        MPI_T_cvar_handle_free(&handle);
    }
    MPI_T_finalize();
}

/* Prints a measurement's line. FOUND: "0" or "1", whether a probe found a message; "" for other operations.
 */
static void print_row(const char *kind, const char *operation, const struct pair *pair, long size,
                      double start, double duration, const char *found) {
    printf("%s %s %s %d %d %ld %.9f %.9f%s%s\n", kind, operation, pair->remote ? "remote" : "loopback",
           pair->from, pair->to, size, start, duration, *found ? " " : "", found);
}

/* Prints the lines of all measurements; Iprobe and Test have a second one, of the probe that found
 * nothing. */
static void print_list(const char *kind, const struct measurement *list, size_t count,
                       const struct times *times) {
    for (size_t i = 0; i < count; i++) {
        const struct measurement *m = &list[i];
        bool probes = m->operation == IPROBE || m->operation == TEST;
        if (probes)
            print_row(kind, operation_names[m->operation], m->pair, m->size, times[i].start,
                      times[i].empty_probe, "0");
        print_row(kind, operation_names[m->operation], m->pair, m->size, times[i].start, times[i].duration,
                  probes ? "1" : "");
    }
}

static void print_places(void) {
    ranks_print_places();
    print_limits();
}

int main(int argc, char **argv) {
    ranks_begin(&argc, &argv, "point-to-point");
    parse_options(argc, argv);
    signal(SIGALRM, on_alarm);
    uint64_t state = (uint64_t)options.seed;
    ranks_draw_sizes(&options.sizes, &state);
    size_t pair_count, count, warm_up_count;
    struct pair *pairs = choose_pairs(&pair_count);
    struct measurement *list = make_measurements(pairs, pair_count, &state, &count);
    struct measurement *warm_up = make_warm_up(pairs, pair_count, &warm_up_count);
    allocate_buffer(pairs, pair_count);
    size_t bytes = count * sizeof(struct times), warm_up_bytes = warm_up_count * sizeof(struct times);
    struct times *times = ranks_allocate(1, bytes), *warm_up_times = ranks_allocate(1, warm_up_bytes);
    double(*thresholds)[THRESHOLDS] = ranks_allocate(pair_count, sizeof *thresholds);

    MPI_Barrier(MPI_COMM_WORLD);
    begun = ranks_now();
    measure(warm_up, warm_up_count, PREFLIGHT_LIMIT, warm_up_times);
    if (options.only == OPERATIONS)
        find_thresholds(pairs, pair_count, thresholds);
    measure(list, count, 0, times);
    gather(warm_up_times, warm_up_bytes);
    gather(thresholds, pair_count * sizeof *thresholds);
    gather(times, bytes);
    if (rank == 0) {
        print_places();
        print_list("warm-up", warm_up, warm_up_count, warm_up_times);
        for (size_t i = 0; options.only == OPERATIONS && i < pair_count; i++) {
            print_row("message", "Asynchronous", &pairs[i], (long)thresholds[i][ASYNCHRONOUS], 0, 0, "");
            print_row("message", "Detached", &pairs[i], (long)thresholds[i][DETACHED], 0, 0, "");
        }
        print_list("message", list, count, times);
        printf("measured %zu in %.3f s\n", count, ranks_now() - begun);
    }
    MPI_Finalize();
    return 0;
}
