/*
 * How fast memory is read and written: one row is a kernel over arrays of so many bytes in each of so many
 * threads, each with arrays of its own, which it touched first. The README beside this file has the rest.
 *
 *     cc -O3 -march=native -fno-tree-loop-distribute-patterns -falign-loops=64 -I../kernels -o memory \
 *         memory.c ../kernels/{buffer,processor,rows,settings,team}.c -lpthread
 *
 * The first flag keeps the compiler from making a call of memcpy of a loop; the second lets no bandwidth of
 * the first cache depend on where a loop happens to lie, which is 5 %. Exit codes: 0 done, 1 memory or input
 * and output failed, 2 an option or a row is wrong, 3 a result is wrong.
 */
#include "buffer.h"
#include "processor.h"
#include "rows.h"
#include "team.h"

enum {
    ARRAYS_MAX = 3,
    LINE = 64,         /* bytes: arrays are of whole lines of the cache */
    APART = 21 * LINE, /* between arrays, so that they do not fall into the same cache sets */
    NUMBERS = 1024,    /* different ones in an array */
};

enum kernel { KERNEL_READ, KERNEL_WRITE, KERNEL_COPY, KERNEL_TRIAD };
static const char *const kernel_names[] = {"read", "write", "copy", "triad", NULL};
static const size_t array_counts[] = {1, 1, 2, 3};
static const char *const responses[] = {"duration", "bandwidth", "bytes", "class", NULL};

enum { KERNEL, SIZE, THREADS, VOLUME, LARGEST, MOST_THREADS, SYS, SETTINGS };
static const struct setting settings[SETTINGS] = {
    [KERNEL] = {"kernel", SETTING_WORD, .words = kernel_names, .in_rows = true, .help = "what is done"},
    [SIZE] = {"size", SETTING_WHOLE, .least = LINE * ARRAYS_MAX, .most = UINT64_C(1) << 48, .in_rows = true,
              .help = "bytes of all arrays of a thread together"},
    [THREADS] = {"threads", SETTING_WHOLE, .least = 1, .most = 4096, .in_rows = true, .help = "threads"},
    [VOLUME] = {"volume", SETTING_WHOLE, .least = 1, .most = UINT64_C(1) << 48, .fallback = "67108864",
                .help = "least number of bytes that a thread moves while it is timed; passes "
                        "are repeated until then"},
    [LARGEST] = {"largest", SETTING_WHOLE, .least = LINE * ARRAYS_MAX, .most = UINT64_C(1) << 48,
                 .help = "largest size of the rows"},
    [MOST_THREADS] = {"most-threads", SETTING_WHOLE, .least = 1, .most = 4096,
                      .help = "largest number of threads of the rows"},
    [SYS] = {"sys", SETTING_TEXT, .fallback = "/sys",
             .help = "folder in which the kernel lists the classes of PUs"},
};
static struct value values[SETTINGS];

/* A thread's data, on cache lines that no other thread writes to. */
static struct thread_state {
    char *memory;
    uint64_t sum, expected; /* of the bits that were read */
    bool wrong;
} __attribute__((aligned(128))) thread_data[4096];

struct job {
    enum kernel kernel;
    size_t count; /* elements of an array */
    uint64_t passes;
};

/* Array WHICH of thread INDEX. */
static double *array_of(const struct job *job, unsigned index, size_t which) {
    return (double *)(thread_data[index].memory + which * (job->count * sizeof(double) + APART));
}

/* The bits of the numbers that were written. */
typedef uint64_t __attribute__((may_alias)) bits;

static uint64_t read_all(const bits *restrict a, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += a[i];
    return sum;
}

static void write_all(double *restrict a, double value, size_t count) {
    for (size_t i = 0; i < count; i++)
        a[i] = value;
}

static void copy_all(double *restrict a, const double *restrict b, size_t count) {
    for (size_t i = 0; i < count; i++)
        a[i] = b[i];
}

static void triad_all(double *restrict a, const double *restrict b, const double *restrict c, double scalar,
                      size_t count) {
    for (size_t i = 0; i < count; i++)
        a[i] = b[i] + scalar * c[i];
}

/* Runs the passes of a job in thread INDEX. Each pass writes its number, so that the result shows whether the
 * last pass was done. */
static void run_passes(unsigned index, void *context) {
    const struct job *job = context;
    double *a = array_of(job, index, 0), *b = array_of(job, index, 1), *c = array_of(job, index, 2);
    uint64_t sum = 0;
    for (uint64_t pass = 1; pass <= job->passes; pass++) {
        if (job->kernel == KERNEL_READ)
            sum += read_all((const bits *)a, job->count);
        else if (job->kernel == KERNEL_WRITE)
            write_all(a, (double)pass, job->count);
        else if (job->kernel == KERNEL_COPY)
            copy_all(a, b, job->count);
        else
            triad_all(a, b, c, (double)pass, job->count);
        __asm__ volatile("" ::: "memory"); /* every pass is done */
    }
    thread_data[index].sum = sum;
}

/* The initial value of element I of array WHICH. */
static double number_at(size_t i, size_t which) {
    return (double)((i * (which + 1)) % NUMBERS);
}

/* Fills the thread's arrays; the first call is also the first touch of their pages. Sets the sum that reading
 * must give. */
static void fill_arrays(unsigned index, void *context) {
    const struct job *job = context;
    size_t arrays = array_counts[job->kernel];
    thread_data[index].expected = 0;
    for (size_t which = 0; which < arrays; which++)
        for (size_t i = 0; i < job->count; i++)
            array_of(job, index, which)[i] = number_at(i, which);
    if (job->kernel == KERNEL_READ)
        thread_data[index].expected =
            job->passes * read_all((const bits *)thread_data[index].memory, job->count);
}

/* Checks the result of the last run in thread INDEX, and sets `wrong`. */
static void verify_arrays(unsigned index, void *context) {
    const struct job *job = context;
    const double *a = array_of(job, index, 0);
    bool wrong = thread_data[index].sum != thread_data[index].expected;
    for (size_t i = 0; i < job->count && job->kernel != KERNEL_READ && !wrong; i++) {
        double expected = (double)job->passes;
        if (job->kernel == KERNEL_COPY)
            expected = number_at(i, 1);
        else if (job->kernel == KERNEL_TRIAD)
            expected = number_at(i, 1) + expected * number_at(i, 2);
        wrong = a[i] != expected;
    }
    thread_data[index].wrong = wrong;
}

/* Runs one row: fill, a pass to warm the caches, the timed passes, verification. Refuses a row that exceeds
 * the largest size or number of threads; ends the program if a result is wrong. */
static void run_row(double class) {
    unsigned threads = (unsigned)values[THREADS].whole;
    struct job job = {.kernel = (enum kernel)values[KERNEL].word};
    struct stopwatch watch;
    size_t arrays = array_counts[job.kernel];
    if (values[SIZE].whole > values[LARGEST].whole)
        rows_refuse("a row has the size %llu; expected at most --largest %llu",
                    (unsigned long long)values[SIZE].whole, (unsigned long long)values[LARGEST].whole);
    if (threads > values[MOST_THREADS].whole)
        rows_refuse("a row has %u threads; expected at most --most-threads %llu", threads,
                    (unsigned long long)values[MOST_THREADS].whole);
    job.count = values[SIZE].whole / arrays / LINE * (LINE / sizeof(double));
    uint64_t bytes = arrays * job.count * sizeof(double);
    job.passes = (values[VOLUME].whole + bytes - 1) / bytes;
    team_run(threads, fill_arrays, &job, NULL);
    team_run(threads, run_passes, &(struct job){job.kernel, job.count, 1},
             NULL); /* the caches are as after a pass */
    team_run(threads, run_passes, &job, &watch);
    team_run(threads, verify_arrays, &job, NULL);
    for (unsigned i = 0; i < threads; i++)
        if (thread_data[i].wrong)
            die(EXIT_WRONG, "thread %u computed a wrong %s of %llu bytes", i, kernel_names[job.kernel],
                (unsigned long long)bytes);
    double duration = stopwatch_read(&watch), moved = (double)(bytes * job.passes) * threads;
    rows_answer(&watch, (const double[]){duration / (double)job.passes, moved / duration, moved, class});
}

int main(int argc, char **argv) {
    settings_read(argc, argv, "rows on standard input", settings, SETTINGS, values);
    settings_require(settings, SETTINGS, values);
    unsigned most = (unsigned)values[MOST_THREADS].whole;
    fact("compiler", "%s", __VERSION__);
    fact("volume", "%s", values[VOLUME].text);
    fact_process(buffer_keep_local());
    team_start(most);
    for (unsigned i = 0; i < most; i++)
        thread_data[i].memory =
            buffer_allocate(values[LARGEST].whole + ARRAYS_MAX * APART, "a thread's arrays");
    rows_begin(settings, SETTINGS, values);
    rows_answers(responses, "duration,bandwidth,bytes,class");
    double class = processor_class(values[SYS].text);
    while (rows_next())
        run_row(class);
    return 0;
}
