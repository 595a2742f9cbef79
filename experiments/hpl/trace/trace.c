/* Traces the MPI and BLAS calls of a program that was not built for it: sizes and duration of every call,
 * printed as lines by rank 0 when the program calls MPI_Finalize. README.md says how to use it and what the
 * lines mean.
 *
 *     mpicc -O2 -shared -fPIC -o libassay-trace.so trace.c -ldl     with the MPI of the program
 *     mpirun -n 4 env LD_PRELOAD=./libassay-trace.so ./xhpl
 *
 * MPI is wrapped by its profiling interface: MPI_Send here calls PMPI_Send there. BLAS is wrapped by name,
 * Fortran's (dgemm_) and C's (cblas_dgemm): the next library that has the name is called. What is called from
 * inside a traced call is part of that call, and not a call of its own. */
#include <dlfcn.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Bytes of records that all ranks print together: assay keeps 16 MiB of a unit's output. */
#define OUTPUT_MAX (12 << 20)
#define LINE_MAX 80             /* bytes of a line */
#define RANKS_MAX 1024          /* only the first ones are traced */
#define RECORDS_MIN 64          /* of a rank: more than there are functions, so that each can have one */
#define RECORDS_MAX 1000000     /* of a rank, when ASSAY_TRACE_RECORDS asks for it */
#define TRIAL_BATCHES 10        /* of the measurement of what a record costs */
#define TRIAL_CALLS RECORDS_MIN /* in a batch: they fit into the smallest trace */

/* What is traced. Iprobe and Test are calls that find nothing, which cost something else than those that do;
 * empty are the calls of all kernels with a size of 0: HPL makes many while it looks ahead, and they have no
 * records. */
// clang-format off
#define KERNELS(X) \
    X(dgemm) X(dtrsm) X(dgemv) X(dtrsv) X(dger) X(dswap) X(dscal) X(daxpy) X(dcopy) X(idamax) X(empty)
#define OPERATIONS(X) \
    X(Send) X(Ssend) X(Isend) X(Issend) X(Recv) X(Irecv) X(Sendrecv) X(Probe) X(Iprobe) X(Iprobe_found) \
    X(Test) X(Test_done) X(Wait) X(Waitall) X(Barrier) X(Bcast) X(Reduce) X(Allreduce) \
    X(Gather) X(Scatter) X(Allgather) X(Alltoall)
// clang-format on
#define CONSTANT(NAME) NAME,
#define NAME(NAME) #NAME,
enum function { KERNELS(CONSTANT) OPERATIONS(CONSTANT) FUNCTION_COUNT };
static const char *const names[] = {KERNELS(NAME) OPERATIONS(NAME)};
_Static_assert(RECORDS_MIN > FUNCTION_COUNT, "every function can have a record");
static bool is_kernel(enum function function) {
    return function <= empty;
}

/* All that is known of a function's calls, also of those without a record. */
static struct total {
    uint64_t calls, kept;
    int64_t duration; /* ns */
    int halvings;     /* about one call in 2^halvings has a record */
} totals[FUNCTION_COUNT];

struct record {
    uint64_t index;          /* of the call among those of its function */
    int64_t start, duration; /* ns; start since MPI_Init */
    int64_t sizes[3];        /* m, n, k of a kernel; peer and bytes of an operation */
    enum function function;
};
static struct record *records;
static size_t count, capacity;

static _Atomic bool running;
/* A spin lock over totals and records, as threads may call at the same time. */
static atomic_flag busy = ATOMIC_FLAG_INIT;
/* The number of nested traced calls that this thread is inside. */
static _Thread_local int depth __attribute__((tls_model("initial-exec")));
static int64_t start_time;               /* ns, when MPI_Init returned */
static double cost;                      /* ns that tracing adds to a call */
static double empty_duration;            /* ns, the duration of a call that does nothing */
static MPI_Comm private = MPI_COMM_NULL; /* all ranks, for the lines */
static int
    world_ranks; /* the key of an attribute: the rank in MPI_COMM_WORLD of each rank of a communicator */

static int64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Prints a sentence of WHAT and NAME to standard error and aborts the MPI job; does not return. */
static void fail(const char *what, const char *name) {
    fprintf(stderr, "trace: %s %s\n", what, name);
    PMPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

/* The next definition of the function NAME in the order of loading (dlsym with RTLD_NEXT), cached in *NEXT.
 * Aborts the job if no library has it. */
static void *resolve(void *_Atomic *next, const char *name) {
    void *found = atomic_load_explicit(next, memory_order_relaxed);
    if (!found) {
        if (!(found = dlsym(RTLD_NEXT, name)))
            fail("no library has the function", name);
        atomic_store_explicit(next, found, memory_order_relaxed);
    }
    return found;
}

/* ---- Ranks and sizes ----------------------------------------------------------------------------------- */

/* MPI calls this when a communicator with our attribute is freed. */
static int free_ranks(MPI_Comm comm, int key, void *ranks, void *extra) {
    (void)comm, (void)key, (void)extra;
    free(ranks);
    return MPI_SUCCESS;
}

/* The rank in MPI_COMM_WORLD of a communicator's RANK; -1 if there is none (MPI_PROC_NULL, MPI_ANY_SOURCE).
 * The translated ranks are stored as an attribute of the communicator. */
static int world_rank_of(int rank, MPI_Comm comm) {
    if (rank < 0 || comm == MPI_COMM_WORLD)
        return rank < 0 ? -1 : rank;
    int *ranks, found, between, size;
    PMPI_Comm_get_attr(comm, world_ranks, &ranks, &found);
    if (!found) {
        MPI_Group group, world;
        PMPI_Comm_test_inter(comm, &between);
        (between ? PMPI_Comm_remote_group : PMPI_Comm_group)(comm, &group);
        PMPI_Comm_group(MPI_COMM_WORLD, &world);
        PMPI_Group_size(group, &size);
        int *own = malloc((size_t)size * sizeof *own);
        ranks = malloc((size_t)size * sizeof *ranks);
        if (!own || !ranks)
            fail("no memory for the", "ranks of a communicator");
        for (int i = 0; i < size; i++)
            own[i] = i;
        PMPI_Group_translate_ranks(group, size, own, world, ranks);
        free(own);
        PMPI_Group_free(&group);
        PMPI_Group_free(&world);
        PMPI_Comm_set_attr(comm, world_ranks, ranks);
    }
    return ranks[rank] < 0 ? -1 : ranks[rank];
}

/* The size of so many elements of an MPI datatype. */
static int64_t bytes(int64_t elements, MPI_Datatype type) {
    int size;
    PMPI_Type_size(type, &size);
    return elements * size;
}

/* ---- Records ------------------------------------------------------------------------------------------- */

/* Whether call INDEX gets a record, when about one call in 2^HALVINGS does. Multiples of the golden ratio
 * (Fibonacci hashing) are spread evenly, where every second call would miss half of a program whose calls
 * alternate. Calls chosen at more halvings are chosen at fewer too. */
static bool is_sampled(uint64_t index, int halvings) {
    return halvings == 0 || (index * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - halvings) == 0;
}

/* While the array is full: drops about half of the records of the function that has most. */
static void thin_records(void) {
    while (count == capacity) {
        struct total *most = totals;
        for (struct total *total = totals; total < totals + FUNCTION_COUNT; total++)
            most = total->kept > most->kept ? total : most;
        most->halvings++;
        count = 0;
        for (size_t i = 0; i < capacity; i++) {
            if (&totals[records[i].function] == most && !is_sampled(records[i].index, most->halvings))
                most->kept--;
            else
                records[count++] = records[i];
        }
    }
}

/* Enters a call. Returns its start in ns, or -1 if it is not traced: inside another traced call, or before
 * MPI_Init. */
static int64_t call_begin(void) {
    return depth++ == 0 && atomic_load_explicit(&running, memory_order_relaxed) ? clock_ns() : -1;
}
/* Leaves a call. Returns its duration in ns, or -1 if it is not traced. */
static int64_t call_end(int64_t start) {
    depth--;
    return start < 0 ? -1 : clock_ns() - start;
}

/* Adds a call to the totals of its function, and a record with its three sizes if the call is sampled. */
static void record(enum function function, int64_t start, int64_t duration, int64_t a, int64_t b, int64_t c) {
    while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
        ;
    struct total *total = &totals[function];
    uint64_t index = total->calls++;
    total->duration += duration;
    if (function != empty && is_sampled(index, total->halvings)) {
        thin_records();
        if (is_sampled(index, total->halvings)) {
            records[count++] = (struct record){index, start - start_time, duration, {a, b, c}, function};
            total->kept++;
        }
    }
    atomic_flag_clear_explicit(&busy, memory_order_release);
}

/* Measures what tracing adds to a call, by calls that do nothing: the mean of the fastest batch, since
 * interruptions by other programs are no cost of tracing. Sets cost and empty_duration, and clears the
 * totals. */
static void measure_cost(void) {
    for (int batch = 0; batch < TRIAL_BATCHES; batch++) {
        memset(totals, 0, sizeof totals);
        count = 0;
        int64_t start = clock_ns();
        for (int i = 0; i < TRIAL_CALLS; i++) {
            int64_t call = call_begin(), duration = call_end(call);
            record(dgemm, call, duration, world_rank_of(0, private), bytes(i, MPI_DOUBLE), 0);
        }
        double mean = (double)(clock_ns() - start) / TRIAL_CALLS;
        if (batch == 0 || mean < cost) {
            cost = mean;
            empty_duration = (double)totals[dgemm].duration / TRIAL_CALLS;
        }
    }
    memset(totals, 0, sizeof totals);
    count = 0;
}

/* ---- From MPI_Init to MPI_Finalize --------------------------------------------------------------------- */

/* Called after MPI_Init: allocates the records, measures what tracing costs, and starts tracing in the first
 * RANKS_MAX ranks. Aborts the job if ASSAY_TRACE_RECORDS is out of range or memory runs out. */
static void trace_begin(void) {
    int rank, ranks;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    PMPI_Comm_dup(MPI_COMM_WORLD, &private);
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_ranks, &world_ranks, NULL);
    capacity = OUTPUT_MAX / LINE_MAX / (size_t)(ranks < RANKS_MAX ? ranks : RANKS_MAX);
    const char *wanted = getenv("ASSAY_TRACE_RECORDS");
    if (wanted) {
        char *end;
        capacity = strtoul(wanted, &end, 10);
        if (*end || capacity < RECORDS_MIN || capacity > RECORDS_MAX)
            fail("ASSAY_TRACE_RECORDS must be a number from 64 to 1000000, but is", wanted);
    }
    if (rank >= RANKS_MAX)
        return;
    records = malloc(capacity * sizeof *records);
    if (!records)
        fail("no memory for the", "records");
    memset(records, 0, capacity * sizeof *records); /* its pages are there before the program is timed */
    running = true;
    measure_cost();
    start_time = clock_ns();
}

/* Writes this rank's lines to OUT: the overhead, a total for each function, then all records. WALL: ns since
 * MPI_Init. */
static void print_lines(FILE *out, int rank, int64_t wall) {
    uint64_t calls = 0;
    for (int f = 0; f < FUNCTION_COUNT; f++)
        calls += totals[f].calls;
    fprintf(out, "trace overhead %d %" PRIu64 " %.1f %.1f %.9f %.6f\n", rank, calls, cost, empty_duration,
            (double)wall * 1e-9, 100 * (double)calls * cost / (double)wall);
    for (int f = 0; f < FUNCTION_COUNT; f++) {
        if (totals[f].calls)
            fprintf(out, "trace total %d %s %" PRIu64 " %" PRIu64 " %.9f\n", rank, names[f], totals[f].calls,
                    totals[f].kept, (double)totals[f].duration * 1e-9);
    }
    for (const struct record *r = records; r < records + count; r++) {
        double start = (double)r->start * 1e-9, duration = (double)r->duration * 1e-9;
        if (is_kernel(r->function))
            fprintf(out, "trace blas %d %s %" PRId64 " %" PRId64 " %" PRId64 " %.9f %.9f\n", rank,
                    names[r->function], r->sizes[0], r->sizes[1], r->sizes[2], start, duration);
        else
            fprintf(out, "trace mpi %d %s %" PRId64 " %" PRId64 " %.9f %.9f\n", rank, names[r->function],
                    r->sizes[0], r->sizes[1], start, duration);
    }
}

/* Called before MPI_Finalize: stops tracing. Each rank sends its lines to rank 0, which prints them in the
 * order of ranks, so that lines are never mixed. */
static void trace_end(void) {
    int64_t wall = clock_ns() - start_time;
    int rank, ranks, length;
    bool traced = running;
    running = false;
    PMPI_Comm_rank(private, &rank);
    PMPI_Comm_size(private, &ranks);
    char *text = NULL;
    size_t size = 0;
    FILE *lines = rank == 0 ? stdout : open_memstream(&text, &size);
    if (!lines)
        fail("no memory for the", "lines");
    if (traced)
        print_lines(lines, rank, wall);
    if (rank == 0) {
        for (int from = 1; from < ranks && from < RANKS_MAX; from++) {
            PMPI_Recv(&length, 1, MPI_INT, from, 0, private, MPI_STATUS_IGNORE);
            if (!(text = malloc((size_t)length + 1)))
                fail("no memory for the", "lines");
            PMPI_Recv(text, length, MPI_CHAR, from, 0, private, MPI_STATUS_IGNORE);
            fwrite(text, 1, (size_t)length, stdout);
            free(text);
        }
        uint64_t kernels = 0;
        for (int f = 0; is_kernel(f); f++)
            kernels += totals[f].calls;
        if (fflush(stdout) != 0)
            fail("the lines cannot be written to", "standard output");
        if (kernels == 0)
            fputs("trace: no BLAS call of rank 0 was seen; a BLAS that is linked "
                  "statically cannot be traced, link it dynamically\n",
                  stderr);
    } else {
        fclose(lines);
        length = (int)size;
        if (traced) {
            PMPI_Send(&length, 1, MPI_INT, 0, 0, private);
            PMPI_Send(text, length, MPI_CHAR, 0, 0, private);
        }
        free(text);
    }
    PMPI_Comm_free(&private);
    PMPI_Comm_free_keyval(&world_ranks);
    free(records);
}

/* Calls the next MPI_Init rather than PMPI_Init, so that other preloaded libraries see the call as well. */
int MPI_Init(int *argc, char ***argv) {
    static void *_Atomic next;
    int result = ((int (*)(int *, char ***))resolve(&next, "MPI_Init"))(argc, argv);
    if (result == MPI_SUCCESS)
        trace_begin();
    return result;
}
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    static void *_Atomic next;
    int (*init)(int *, char ***, int, int *) = resolve(&next, "MPI_Init_thread");
    int result = init(argc, argv, required, provided);
    if (result == MPI_SUCCESS)
        trace_begin();
    return result;
}
int MPI_Finalize(void) {
    static void *_Atomic next;
    if (private != MPI_COMM_NULL)
        trace_end();
    return ((int (*)(void))resolve(&next, "MPI_Finalize"))();
}

/* ---- MPI ----------------------------------------------------------------------------------------------- */

/* The bytes of a block; 0 if the operation is in place. */
static int64_t block(const void *buffer, int64_t elements, MPI_Datatype type) {
    return buffer == MPI_IN_PLACE ? 0 : bytes(elements, type);
}
/* The bytes that a completed receive or probe reports. */
static int64_t received(MPI_Status *status) {
    MPI_Count size;
    PMPI_Get_elements_x(status, MPI_BYTE, &size);
    return size;
}
/* STATUS, or a buffer of this thread where the program passes MPI_STATUS_IGNORE: its source and size are read
 * after the call. */
static MPI_Status *readable(MPI_Status *status) {
    static _Thread_local MPI_Status own;
    return status == MPI_STATUS_IGNORE ? &own : status;
}

/* Defines MPI_NAME, which calls PMPI_NAME and records FUNCTION, PEER and SIZE; they are computed after the
 * call. */
#define WRAP_MPI(NAME, PARAMETERS, ARGUMENTS, FUNCTION, PEER, SIZE)                                          \
    int MPI_##NAME PARAMETERS {                                                                              \
        int64_t start = call_begin();                                                                        \
        int result = PMPI_##NAME ARGUMENTS;                                                                  \
        int64_t duration = call_end(start);                                                                  \
        if (duration >= 0 && result == MPI_SUCCESS)                                                          \
            record(FUNCTION, start, duration, PEER, SIZE, 0);                                                \
        return result;                                                                                       \
    }

#define SENDING (const void *buffer, int elements, MPI_Datatype type, int to, int tag, MPI_Comm comm)
#define ISENDING                                                                                             \
    (const void *buffer, int elements, MPI_Datatype type, int to, int tag, MPI_Comm comm,                    \
     MPI_Request *request)
WRAP_MPI(Send, SENDING, (buffer, elements, type, to, tag, comm), Send, world_rank_of(to, comm),
         bytes(elements, type))
WRAP_MPI(Ssend, SENDING, (buffer, elements, type, to, tag, comm), Ssend, world_rank_of(to, comm),
         bytes(elements, type))
WRAP_MPI(Isend, ISENDING, (buffer, elements, type, to, tag, comm, request), Isend, world_rank_of(to, comm),
         bytes(elements, type))
WRAP_MPI(Issend, ISENDING, (buffer, elements, type, to, tag, comm, request), Issend, world_rank_of(to, comm),
         bytes(elements, type))
WRAP_MPI(Recv,
         (void *buffer, int elements, MPI_Datatype type, int from, int tag, MPI_Comm comm,
          MPI_Status *status),
         (buffer, elements, type, from, tag, comm, status = readable(status)), Recv,
         world_rank_of(status->MPI_SOURCE, comm), received(status))
WRAP_MPI(Irecv,
         (void *buffer, int elements, MPI_Datatype type, int from, int tag, MPI_Comm comm,
          MPI_Request *request),
         (buffer, elements, type, from, tag, comm, request), Irecv, world_rank_of(from, comm),
         bytes(elements, type))
WRAP_MPI(Sendrecv,
         (const void *buffer, int elements, MPI_Datatype type, int to, int tag, void *into, int into_elements,
          MPI_Datatype into_type, int from, int from_tag, MPI_Comm comm, MPI_Status *status),
         (buffer, elements, type, to, tag, into, into_elements, into_type, from, from_tag, comm, status),
         Sendrecv, world_rank_of(to, comm), bytes(elements, type))
WRAP_MPI(Probe, (int from, int tag, MPI_Comm comm, MPI_Status *status),
         (from, tag, comm, status = readable(status)), Probe, world_rank_of(status->MPI_SOURCE, comm),
         received(status))
WRAP_MPI(Iprobe, (int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status),
         (from, tag, comm, flag, status = readable(status)), *flag ? Iprobe_found : Iprobe,
         *flag ? world_rank_of(status->MPI_SOURCE, comm) : world_rank_of(from, comm),
         *flag ? received(status) : 0)
WRAP_MPI(Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status),
         *flag ? Test_done : Test, -1, 0)
WRAP_MPI(Wait, (MPI_Request * request, MPI_Status *status), (request, status), Wait, -1, 0)
WRAP_MPI(Waitall, (int requests, MPI_Request list[], MPI_Status statuses[]), (requests, list, statuses),
         Waitall, -1, 0)

/* The size of a collective operation is that of the block which the calling rank gives, or gets where it
 * gives none. */
#define EXCHANGING                                                                                           \
    (const void *from, int give, MPI_Datatype type, void *into, int take, MPI_Datatype into_type,            \
     MPI_Comm comm)
#define ROOTED                                                                                               \
    (const void *from, int give, MPI_Datatype type, void *into, int take, MPI_Datatype into_type, int root,  \
     MPI_Comm comm)
WRAP_MPI(Barrier, (MPI_Comm comm), (comm), Barrier, -1, 0)
WRAP_MPI(Bcast, (void *buffer, int elements, MPI_Datatype type, int root, MPI_Comm comm),
         (buffer, elements, type, root, comm), Bcast, world_rank_of(root, comm), bytes(elements, type))
WRAP_MPI(Reduce,
         (const void *from, void *into, int elements, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
         (from, into, elements, type, op, root, comm), Reduce, world_rank_of(root, comm),
         bytes(elements, type))
WRAP_MPI(Allreduce, (const void *from, void *into, int elements, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
         (from, into, elements, type, op, comm), Allreduce, -1, bytes(elements, type))
WRAP_MPI(Gather, ROOTED, (from, give, type, into, take, into_type, root, comm), Gather,
         world_rank_of(root, comm), block(from, give, type))
WRAP_MPI(Scatter, ROOTED, (from, give, type, into, take, into_type, root, comm), Scatter,
         world_rank_of(root, comm), block(into, take, into_type))
WRAP_MPI(Allgather, EXCHANGING, (from, give, type, into, take, into_type, comm), Allgather, -1,
         bytes(take, into_type))
WRAP_MPI(Alltoall, EXCHANGING, (from, give, type, into, take, into_type, comm), Alltoall, -1,
         bytes(take, into_type))

/* ---- BLAS ---------------------------------------------------------------------------------------------- */

/* Defines the BLAS function SYMBOL, recorded as KERNEL with the sizes M, N, K; GIVE and RETURN store and
 * return the result, if it has one. */
#define WRAP_BLAS_AS(TYPE, GIVE, RETURN, SYMBOL, PARAMETERS, ARGUMENTS, KERNEL, M, N, K)                     \
    TYPE SYMBOL PARAMETERS;                                                                                  \
    TYPE SYMBOL PARAMETERS {                                                                                 \
        static void *_Atomic next;                                                                           \
        TYPE(*function) PARAMETERS = (TYPE(*) PARAMETERS)resolve(&next, #SYMBOL);                            \
        int64_t start = call_begin();                                                                        \
        GIVE function ARGUMENTS;                                                                             \
        int64_t duration = call_end(start);                                                                  \
        if (duration >= 0)                                                                                   \
            record((M) > 0 && (N) > 0 && (K) > 0 ? KERNEL : empty, start, duration, M, N, K);                \
        RETURN                                                                                               \
    }
#define WRAP_BLAS(...) WRAP_BLAS_AS(void, , , __VA_ARGS__)
#define WRAP_BLAS_GIVING(TYPE, ...) WRAP_BLAS_AS(TYPE, TYPE result =, return result;, __VA_ARGS__)
typedef const int *I;    /* Fortran passes addresses */
typedef const double *A; /* what is read */
typedef double *B;       /* what is written */
typedef const char *T;   /* 'N', 'T', ... followed at the end by its length, which C leaves out: so may we */

WRAP_BLAS(dgemm_,
          (T ta, T tb, I m, I n, I k, A alpha, A a, I lda, A b, I ldb, A beta, B c, I ldc, size_t la,
           size_t lb),
          (ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, la, lb), dgemm, *m, *n, *k)
WRAP_BLAS(cblas_dgemm,
          (int order, int ta, int tb, int m, int n, int k, double alpha, A a, int lda, A b, int ldb,
           double beta, B c, int ldc),
          (order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc), dgemm, m, n, k)
WRAP_BLAS(dtrsm_,
          (T side, T uplo, T ta, T diag, I m, I n, A alpha, A a, I lda, B b, I ldb, size_t ls, size_t lu,
           size_t lt, size_t ld),
          (side, uplo, ta, diag, m, n, alpha, a, lda, b, ldb, ls, lu, lt, ld), dtrsm, *m, *n,
          *side == 'L' || *side == 'l' ? *m : *n)
#define CBLAS_LEFT 141
WRAP_BLAS(cblas_dtrsm,
          (int order, int side, int uplo, int ta, int diag, int m, int n, double alpha, A a, int lda, B b,
           int ldb),
          (order, side, uplo, ta, diag, m, n, alpha, a, lda, b, ldb), dtrsm, m, n, side == CBLAS_LEFT ? m : n)
WRAP_BLAS(dgemv_, (T ta, I m, I n, A alpha, A a, I lda, A x, I incx, A beta, B y, I incy, size_t lt),
          (ta, m, n, alpha, a, lda, x, incx, beta, y, incy, lt), dgemv, *m, *n, 1)
WRAP_BLAS(cblas_dgemv,
          (int order, int ta, int m, int n, double alpha, A a, int lda, A x, int incx, double beta, B y,
           int incy),
          (order, ta, m, n, alpha, a, lda, x, incx, beta, y, incy), dgemv, m, n, 1)
WRAP_BLAS(dtrsv_, (T uplo, T ta, T diag, I n, A a, I lda, B x, I incx, size_t lu, size_t lt, size_t ld),
          (uplo, ta, diag, n, a, lda, x, incx, lu, lt, ld), dtrsv, *n, *n, 1)
WRAP_BLAS(cblas_dtrsv, (int order, int uplo, int ta, int diag, int n, A a, int lda, B x, int incx),
          (order, uplo, ta, diag, n, a, lda, x, incx), dtrsv, n, n, 1)
WRAP_BLAS(dger_, (I m, I n, A alpha, A x, I incx, A y, I incy, B a, I lda),
          (m, n, alpha, x, incx, y, incy, a, lda), dger, *m, *n, 1)
WRAP_BLAS(cblas_dger, (int order, int m, int n, double alpha, A x, int incx, A y, int incy, B a, int lda),
          (order, m, n, alpha, x, incx, y, incy, a, lda), dger, m, n, 1)
WRAP_BLAS(dswap_, (I n, B x, I incx, B y, I incy), (n, x, incx, y, incy), dswap, 1, *n, 1)
WRAP_BLAS(cblas_dswap, (int n, B x, int incx, B y, int incy), (n, x, incx, y, incy), dswap, 1, n, 1)
WRAP_BLAS(dscal_, (I n, A alpha, B x, I incx), (n, alpha, x, incx), dscal, 1, *n, 1)
WRAP_BLAS(cblas_dscal, (int n, double alpha, B x, int incx), (n, alpha, x, incx), dscal, 1, n, 1)
WRAP_BLAS(daxpy_, (I n, A alpha, A x, I incx, B y, I incy), (n, alpha, x, incx, y, incy), daxpy, 1, *n, 1)
WRAP_BLAS(cblas_daxpy, (int n, double alpha, A x, int incx, B y, int incy), (n, alpha, x, incx, y, incy),
          daxpy, 1, n, 1)
WRAP_BLAS(dcopy_, (I n, A x, I incx, B y, I incy), (n, x, incx, y, incy), dcopy, 1, *n, 1)
WRAP_BLAS(cblas_dcopy, (int n, A x, int incx, B y, int incy), (n, x, incx, y, incy), dcopy, 1, n, 1)
WRAP_BLAS_GIVING(int, idamax_, (I n, A x, I incx), (n, x, incx), idamax, 1, *n, 1)
WRAP_BLAS_GIVING(size_t, cblas_idamax, (int n, A x, int incx), (n, x, incx), idamax, 1, n, 1)
