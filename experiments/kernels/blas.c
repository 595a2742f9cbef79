/*
 * The calls of HPL, one a row (blas-call.h): the kernel of the experiments dgemm, blas, bit-flips and stress,
 * which differ in what they give as options and what as columns of their rows.
 *
 *     cc -O2 -o blas blas.c blas-call.c blas-check.c blas-library.c buffer.c processor.c rows.c settings.c
 * -ldl
 *
 * Exit codes: 0 done, 1 memory or input and output failed, 2 an option or a row is wrong, 3 the BLAS cannot
 * be loaded or computes wrong results.
 */
#include "blas-call.h"
#include "blas-library.h"
#include "buffer.h"
#include "processor.h"
#include "rows.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* Sums of sizes up to this, and their bytes, do not overflow. */
#define ELEMENTS_MOST (UINT64_C(1) << 56)

static const char *const precisions[] = {"double", "single", NULL};
static const char *const responses[] = {"duration", "operations", "bytes", "class", NULL};

enum {
    KERNEL,
    M,
    N,
    K,
    LDA,
    LDB,
    LDC,
    INC,
    CONTENT,
    VALUE,
    MASK,
    BEFORE,
    BLAS,
    PRECISION,
    THREADS,
    A_ELEMENTS,
    B_ELEMENTS,
    C_ELEMENTS,
    T_ELEMENTS,
    OFFSET_RANGE,
    SEED,
    RESPONSES,
    SYS,
    CHECK,
    SETTINGS,
};

#define SIZE(NAME, HELP)                                                                                     \
    { NAME, SETTING_WHOLE, .least = 1, .most = INT_MAX, .in_rows = true, .help = HELP }
#define ELEMENTS(NAME, HELP)                                                                                 \
    { NAME, SETTING_WHOLE, .least = 1, .most = ELEMENTS_MOST, .help = HELP }
static const struct setting settings[SETTINGS] = {
    [KERNEL] = {"kernel", SETTING_WORD, .words = blas_kernel_names, .fallback = "dgemm", .in_rows = true,
                .help = "the call"},
    [M] = SIZE("m", "rows"),
    [N] = SIZE("n", "columns, or elements of a vector"),
    [K] = SIZE("k", "columns of dgemm's A and B"),
    [LDA] = SIZE("lda", "leading dimension of A, in elements"),
    [LDB] = SIZE("ldb", "leading dimension of B"),
    [LDC] = SIZE("ldc", "leading dimension of C"),
    [INC] = {"inc", SETTING_WHOLE, .least = 1, .most = INT_MAX, .fallback = "1", .in_rows = true,
             .help = "distance between two elements of a vector (increment)"},
    [CONTENT] = {"content", SETTING_WORD, .words = content_words, .fallback = "random", .in_rows = true,
                 .help = "what fills the matrices"},
    [VALUE] = {"value", SETTING_NUMBER, .low = -1e6, .high = 1e6, .fallback = "0.987", .in_rows = true,
               .help = "every element when constant, -1e6 to 1e6"},
    [MASK] = {"mask", SETTING_WHOLE, .most = 53, .fallback = "0", .in_rows = true,
              .help = "number of low-order bits of every element that are set to one, 0 to "
                      "53; single precision: 0 to 24"},
    [BEFORE] = {"before", SETTING_WHOLE, .most = 1000000, .fallback = "0", .in_rows = true,
                .help = "calls just before the timed call"},
    [BLAS] = {"blas", SETTING_TEXT, .fallback = "openblas",
              .help = "openblas, blis, reference, mkl, or the path of a library"},
    [PRECISION] = {"precision", SETTING_WORD, .words = precisions, .fallback = "double",
                   .help = "of elements"},
    [THREADS] = {"threads", SETTING_WHOLE, .least = 1, .most = 4096, .fallback = "1", .help = "of the BLAS"},
    [A_ELEMENTS] = ELEMENTS("a-elements", "elements of the largest A: lda k"),
    [B_ELEMENTS] = ELEMENTS("b-elements", "elements of the largest B: ldb k"),
    [C_ELEMENTS] = ELEMENTS("c-elements", "elements of the largest C: ldc n"),
    [T_ELEMENTS] = {"t-elements", SETTING_WHOLE, .most = ELEMENTS_MOST, .fallback = "0",
                    .help = "elements of the largest triangle: n n"},
    [OFFSET_RANGE] = {"offset-range", SETTING_WHOLE, .most = ELEMENTS_MOST, .fallback = "1000000",
                      .help = "largest random offset, in elements, at which a call begins in each "
                              "buffer"},
    [SEED] = {"seed", SETTING_WHOLE, .most = UINT64_MAX, .fallback = "1",
              .help = "seed of contents and offsets"},
    [RESPONSES] = {"responses", SETTING_TEXT, .fallback = "duration",
                   .help = "responses that are printed, such as duration,operations,bytes,class"},
    [SYS] = {"sys", SETTING_TEXT, .fallback = "/sys",
             .help = "folder in which the kernel lists the classes of PUs"},
    [CHECK] = {"check", SETTING_FLAG, .help = "check one small call, print the facts, and end"},
};

static struct value values[SETTINGS];
static struct blas_library library;
static blas_function *functions[BLAS_KERNELS]; /* of those that are checked */
static uint64_t state;                         /* of content, offsets and pivots */
static char *buffers[BLAS_OPERANDS];           /* T: NULL where no kernel has it */

/* The elements of the largest matrix of operand WHICH, as the options say. */
static uint64_t elements_of(int which) {
    return values[A_ELEMENTS + which].whole;
}

static size_t element_size(void) {
    return values[PRECISION].word == 1 ? sizeof(float) : sizeof(double);
}

/* The size of the buffer of operand WHICH: the largest matrix and the range of offsets. */
static uint64_t buffer_bytes(int which) {
    return (elements_of(which) + values[OFFSET_RANGE].whole) * element_size();
}

/* Finds the kernel's function in the BLAS and checks its result in a small call; ends the program if the BLAS
 * lacks it or computes wrong. */
static void check_kernel(enum blas_kernel kernel) {
    bool is_single = values[PRECISION].word == 1;
    const char *symbol = blas_call_symbol(kernel, is_single);
    if (!symbol && kernel != BLAS_EMPTY && is_single)
        die(EXIT_INPUT, "%s has no single precision", blas_kernel_names[kernel]);
    functions[kernel] = symbol ? blas_library_find(&library, symbol) : NULL;
    blas_call_check(&library, kernel, is_single);
}

/* Ends the program if the mask has more bits than single precision has in its significand. */
static void check_mask(void) {
    if (values[PRECISION].word == 1 && values[MASK].whole > 24)
        die(EXIT_INPUT,
            "--mask %llu is wider than the significand of single precision; "
            "expected at most 24",
            (unsigned long long)values[MASK].whole);
}

/* Fills the buffer of an operand. T's elements are scaled so that it is nearly the unit matrix at any offset:
 * repeated solves must neither overflow nor vanish. */
static void fill(int which) {
    struct content content = {.kind = (enum content_kind)values[CONTENT].word,
                              .value = values[VALUE].number,
                              .scale = which == BLAS_T ? 0x1p-40 : 1,
                              .mask = (unsigned)values[MASK].whole,
                              .is_single = values[PRECISION].word == 1};
    if (which == BLAS_T) /* the highest bit of a mask is one of the exponent's */
        content.mask = content.mask > 52 ? 52 : content.mask;
    if (buffers[which])
        content_fill(&content, buffers[which], elements_of(which) + values[OFFSET_RANGE].whole, &state);
}

/* Allocates the buffers of the operands that have elements. */
static void allocate(void) {
    static const char *const names[] = {"matrix A", "matrix B", "matrix C", "matrix T"};
    for (int i = 0; i < BLAS_OPERANDS; i++)
        if (elements_of(i) > 0)
            buffers[i] = buffer_allocate(buffer_bytes(i), names[i]);
}

/* Prints the library, precision, contents, seed and memory; settings that are columns of the rows are not
 * facts. */
static void print_facts(enum blas_kernel first, const char *policy) {
    blas_library_facts(&library, functions[first], (unsigned)values[THREADS].whole);
    fact("precision", "%s", precisions[values[PRECISION].word]);
    if (!rows_have("kernel"))
        fact("kernel", "%s", blas_kernel_names[values[KERNEL].word]);
    fact("content", "%s", rows_have("content") ? "a factor" : content_words[values[CONTENT].word]);
    if (!rows_have("value") && values[CONTENT].word == CONTENT_CONSTANT)
        fact("value", "%.17g", values[VALUE].number);
    if (!rows_have("mask"))
        fact("mask_bits", "%llu", (unsigned long long)values[MASK].whole);
    fact("seed", "%llu", (unsigned long long)values[SEED].whole);
    uint64_t bytes = 0;
    for (int i = 0; i < BLAS_OPERANDS; i++)
        bytes += buffers[i] ? buffer_bytes(i) : 0;
    if (bytes > 0) {
        fact("matrix_bytes", "%llu", (unsigned long long)bytes);
        fact("offset_range", "%llu", (unsigned long long)values[OFFSET_RANGE].whole);
    }
    fact_process(policy);
}

/* ---- Rows ------------------------------------------------------------------------------------------------
 */

/* Refuses the row if an operand reaches beyond its buffer, or if its leading dimension is less than its
 * rows. */
static void check_operand(const struct blas_call *call, enum blas_operand which) {
    static const char lower[] = "abct", upper[] = "ABCT";
    struct blas_extent extent = blas_call_extent(call, which);
    if (extent.leading < extent.rows)
        rows_refuse("ld%c = %d is smaller than %d, the rows of %c; expected at least as "
                    "much",
                    lower[which], extent.leading, extent.rows, upper[which]);
    if (extent.elements > elements_of(which))
        rows_refuse("the matrix %c needs %llu elements; expected at most --%c-elements %llu", upper[which],
                    (unsigned long long)extent.elements, lower[which],
                    (unsigned long long)elements_of(which));
}

/* Draws for each row i a pivot from i to ldc - 1; the array is reused by the next call. */
static void draw_pivots(struct blas_call *call) {
    static int *pivots, room;
    if (call->m > room) {
        room = call->m;
        pivots = realloc(pivots, (size_t)room * sizeof *pivots);
        if (!pivots)
            die(EXIT_SYSTEM, "cannot allocate %d pivots", room);
    }
    for (int i = 0; i < call->m; i++)
        pivots[i] = i + (int)draw_up_to(&state, (uint64_t)(call->ldc - 1 - i));
    call->pivots = pivots;
}

/* The call of the current row, each operand at a random offset in its buffer. Refuses the row if an operand
 * does not fit. */
static struct blas_call make_call(void) {
    struct blas_call call = {.kernel = (enum blas_kernel)values[KERNEL].word,
                             .is_single = values[PRECISION].word == 1,
                             .m = (int)values[M].whole,
                             .n = (int)values[N].whole,
                             .k = (int)values[K].whole,
                             .lda = (int)values[LDA].whole,
                             .ldb = (int)values[LDB].whole,
                             .ldc = (int)values[LDC].whole,
                             .inc = (int)values[INC].whole};
    call.function = functions[call.kernel];
    for (int i = 0; i < BLAS_OPERANDS; i++) {
        check_operand(&call, (enum blas_operand)i);
        if (buffers[i])
            call.operands[i] = buffers[i] + draw_up_to(&state, values[OFFSET_RANGE].whole) * element_size();
    }
    if (call.kernel == BLAS_DLASWP)
        draw_pivots(&call);
    return call;
}

/* Fills all buffers at the first call, and whenever the row's content differs from that of the row before. */
static void fill_all(void) {
    static struct value last[3];
    if (last[0].known && last[0].word == values[CONTENT].word && last[1].number == values[VALUE].number &&
        last[2].whole == values[MASK].whole)
        return;
    last[0] = values[CONTENT], last[1] = values[VALUE], last[2] = values[MASK];
    check_mask();
    for (int i = 0; i < BLAS_OPERANDS; i++)
        fill(i);
}

/* Runs the rows until the input ends, and answers each with its responses; the calls of `before` are not
 * timed. */
static void run_rows(void) {
    double class = processor_class(values[SYS].text);
    fill_all(); /* before the answers' header, which says that the program is ready */
    rows_answers(responses, values[RESPONSES].text);
    while (rows_next()) {
        struct stopwatch watch;
        fill_all();
        struct blas_call call = make_call();
        for (uint64_t i = 0; i < values[BEFORE].whole; i++)
            blas_call_run(&call);
        stopwatch_start(&watch);
        blas_call_run(&call);
        stopwatch_stop(&watch);
        rows_answer(&watch, (const double[]){stopwatch_read(&watch), blas_call_operations(&call),
                                             blas_call_bytes(&call), class});
    }
}

int main(int argc, char **argv) {
    settings_read(argc, argv, "rows on standard input", settings, SETTINGS, values);
    check_mask();
    const char *policy = buffer_keep_local();
    enum blas_kernel kernel = (enum blas_kernel)values[KERNEL].word;
    library = blas_library_load(values[BLAS].text, (unsigned)values[THREADS].whole);
    state = values[SEED].whole;
    if (!values[CHECK].given) {
        settings_require(settings, SETTINGS, values);
        allocate();
        rows_begin(settings, SETTINGS, values);
    }
    for (int i = 0; i < BLAS_KERNELS; i++)
        if (rows_have("kernel") || i == (int)kernel)
            check_kernel((enum blas_kernel)i);
    print_facts(functions[kernel] ? kernel : BLAS_DGEMM, policy);
    if (!values[CHECK].given)
        run_rows();
    return 0;
}
