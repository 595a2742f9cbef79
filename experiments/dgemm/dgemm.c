/*
 * The dgemm kernel: reads sizes on standard input, a line a row, times one matrix product each, and answers a
 * line a row on standard output. The protocol, the facts and the options are described in the README beside
 * this file.
 *
 * The call is the one that HPL's update makes: column major, C = C - A B', with A of m x k, B of n x k and C
 * of m x n. It goes through the Fortran interface, which every BLAS has, and the BLAS is loaded when the
 * program starts, so that this file builds on a node with nothing but a C compiler:
 *
 *     cc -O2 -o dgemm dgemm.c -ldl
 *
 * Exit codes: 0 done, 1 memory or input and output failed, 2 an option or a row is wrong, 3 the BLAS cannot
 * be loaded or computes wrong results.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_SYSTEM = 1, EXIT_INPUT = 2, EXIT_BLAS = 3 };

enum {
    LINE_LENGTH_MAX = 1024, /* bytes of an input line, with its newline */
    INPUT_BYTES = 64 << 10, /* read ahead, so that the next row is here when a call ends */
    THREADS_MAX = 4096,
    FACT_MAX = 4096, /* bytes of one fact line */
};

__attribute__((noreturn, format(printf, 2, 3))) static void die(int code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("dgemm: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(code);
}

/* ---- Options ---------------------------------------------------------------------------------------------
 */

enum content { CONTENT_RANDOM, CONTENT_SEQUENTIAL, CONTENT_CONSTANT };

struct options {
    const char *blas;
    enum content content;
    double value;
    unsigned mask;
    bool is_single;
    unsigned threads;
    uint64_t seed;
    uint64_t elements[3]; /* the largest A, B and C */
    uint64_t offset_range;
    bool check;
};

static const char usage[] =
    "usage: dgemm --a-elements N --b-elements N --c-elements N [OPTIONS]   (rows on standard input)\n"
    "       dgemm --check [OPTIONS]\n"
    "  --blas NAME            openblas, blis, reference, mkl, or the path of a library (openblas)\n"
    "  --content KIND         random, sequential or constant (random)\n"
    "  --value X              every element when constant, from -1e6 to 1e6 (0.987)\n"
    "  --mask BITS            low-order bits of every element that are set to one, 0 to 53; single: 0 to 24 "
    "(0)\n"
    "  --precision KIND       double, or single for sgemm (double)\n"
    "  --threads N            of the BLAS (1)\n"
    "  --a-elements N, --b-elements N, --c-elements N\n"
    "                         elements of the largest A, B and C of the rows: lda k, ldb k and ldc n\n"
    "  --offset-range N       each call starts at a random element, 0 to N, of each buffer (1000000)\n"
    "  --seed N               of content and offsets (1)\n"
    "  --check                load the BLAS, check one small product, print the facts, and end\n";

/* All of TEXT as a whole number up to MOST, which is at least 9. */
static bool read_whole(const char *text, uint64_t most, uint64_t *ret) {
    uint64_t value = 0;
    if (*text == '\0')
        return false;
    for (const char *at = text; *at; at++) {
        if (*at < '0' || *at > '9')
            return false;
        uint64_t digit = (uint64_t)(*at - '0');
        if (value > (most - digit) / 10)
            return false;
        value = 10 * value + digit;
    }
    *ret = value;
    return true;
}

static uint64_t parse_whole(const char *option, const char *text, uint64_t most) {
    uint64_t value;
    if (!read_whole(text, most, &value))
        die(EXIT_INPUT, "%s '%s' is not a whole number from 0 to %llu", option, text,
            (unsigned long long)most);
    return value;
}

static int parse_choice(const char *option, const char *text, const char *const *choices) {
    for (int i = 0; choices[i]; i++)
        if (strcmp(choices[i], text) == 0)
            return i;
    fprintf(stderr, "dgemm: %s '%s' is not known; expected", option, text);
    for (int i = 0; choices[i]; i++)
        fprintf(stderr, "%s %s", i > 0 ? " or" : "", choices[i]);
    fputc('\n', stderr);
    exit(EXIT_INPUT);
}

/* C receives at most k value^2 a call: with this bound it stays finite for more calls than anyone makes. */
static double parse_value(const char *option, const char *text) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= -1e6 && value <= 1e6))
        die(EXIT_INPUT, "%s '%s' is not a number from -1e6 to 1e6", option, text);
    return value;
}

static void set_option(struct options *options, const char *name, const char *text) {
    static const char *const contents[] = {"random", "sequential", "constant", NULL};
    static const char *const precisions[] = {"double", "single", NULL};
    static const char *const elements[] = {"--a-elements", "--b-elements", "--c-elements"};
    const uint64_t elements_most = UINT64_C(1) << 56; /* sums and bytes of such sizes do not overflow */
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, elements[i]) == 0) {
            options->elements[i] = parse_whole(name, text, elements_most);
            return;
        }
    }
    if (strcmp(name, "--blas") == 0)
        options->blas = text;
    else if (strcmp(name, "--content") == 0)
        options->content = (enum content)parse_choice(name, text, contents);
    else if (strcmp(name, "--value") == 0)
        options->value = parse_value(name, text);
    else if (strcmp(name, "--mask") == 0)
        options->mask = (unsigned)parse_whole(name, text, 53);
    else if (strcmp(name, "--precision") == 0)
        options->is_single = parse_choice(name, text, precisions) == 1;
    else if (strcmp(name, "--threads") == 0)
        options->threads = (unsigned)parse_whole(name, text, THREADS_MAX);
    else if (strcmp(name, "--offset-range") == 0)
        options->offset_range = parse_whole(name, text, elements_most);
    else if (strcmp(name, "--seed") == 0)
        options->seed = parse_whole(name, text, UINT64_MAX);
    else
        die(EXIT_INPUT, "unknown option '%s'; 'dgemm --help' lists them", name);
}

static struct options parse_options(int count, char **words) {
    struct options options = {
        .blas = "openblas", .value = 0.987, .threads = 1, .seed = 1, .offset_range = 1000000};
    for (int i = 1; i < count; i++) {
        if (strcmp(words[i], "--help") == 0) {
            fputs(usage, stdout);
            exit(0);
        }
        if (strcmp(words[i], "--check") == 0) {
            options.check = true;
            continue;
        }
        if (i + 1 == count)
            die(EXIT_INPUT, "option '%s' is unknown or lacks its argument; 'dgemm --help' lists them",
                words[i]);
        set_option(&options, words[i], words[i + 1]);
        i++;
    }
    if (options.is_single && options.mask > 24)
        die(EXIT_INPUT, "--mask %u is wider than a single's significand; expected at most 24", options.mask);
    if (options.threads == 0)
        die(EXIT_INPUT, "--threads 0: expected at least one");
    for (int i = 0; i < 3; i++)
        if (!options.check && options.elements[i] == 0)
            die(EXIT_INPUT, "--%c-elements is missing or 0; expected the size of the largest %c", 'a' + i,
                'A' + i);
    return options;
}

/* ---- The BLAS --------------------------------------------------------------------------------------------
 */

/* dgemm_ and sgemm_: scalars and arrays of the one or the other type, 32-bit integers (LP64), and at the end
 * the lengths of the two strings, as Fortran passes them. */
typedef void gemm_function(const char *trans_a, const char *trans_b, const int *m, const int *n, const int *k,
                           const void *alpha, const void *a, const int *lda, const void *b, const int *ldb,
                           const void *beta, void *c, const int *ldc, size_t trans_a_length,
                           size_t trans_b_length);

struct blas {
    const char *name;
    void *handle;
    gemm_function *gemm;
    bool is_single;
};

enum { CANDIDATES_MAX = 4 };

/* File names by falling version. "%s" is the machine's name: Debian keeps the reference BLAS in a folder of
 * its own, for libblas.so.3 may be a link to any other BLAS. */
static const struct {
    const char *name;
    const char *candidates[CANDIDATES_MAX + 1];
    const char *package; /* where Debian has it */
} known_blas[] = {
    {"openblas", {"libopenblas.so.0", "libopenblasp.so.0", "libopenblas.so"}, "libopenblas0-pthread"},
    {"blis", {"libblis.so.4", "libblis.so.3", "libblis-mt.so", "libblis.so"}, "libblis4-pthread"},
    {"reference", {"/usr/lib/%s-linux-gnu/blas/libblas.so.3", "libblas.so.3", "libblas.so"}, "libblas3"},
    {"mkl", {"libmkl_rt.so.2", "libmkl_rt.so.1", "libmkl_rt.so"}, "libmkl-rt (non-free)"},
};

/* Threads are counted by the library when it is loaded, some also later. What the user has set by hand for
 * MKL's layers stays. */
static void set_threads(unsigned threads) {
    static const char *const variables[] = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS",
                                            "BLIS_NUM_THREADS", "MKL_NUM_THREADS"};
    char text[16];
    snprintf(text, sizeof text, "%u", threads);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        setenv(variables[i], text, 1);
    setenv("MKL_DYNAMIC", "FALSE", 1);
    setenv("MKL_INTERFACE_LAYER", "LP64", 0);
    setenv("MKL_THREADING_LAYER", threads == 1 ? "SEQUENTIAL" : "GNU", 0);
}

/* dlsym for functions: ISO C has no conversion from an object's pointer to a function's. */
static void find_function(void *handle, const char *symbol, void *ret_function) {
    void *found = dlsym(handle, symbol);
    memcpy(ret_function, &found, sizeof found);
}

static bool is_another_blas(void *handle) {
    return dlsym(handle, "openblas_get_config") || dlsym(handle, "bli_info_get_version_str") ||
           dlsym(handle, "mkl_get_version_string");
}

/* Loads the first candidate that is there. TRIED receives the names, for the sentence. */
static void *load_candidates(size_t which, char *tried, size_t tried_size, char *why, size_t why_size) {
    struct utsname machine;
    uname(&machine);
    size_t used = 0;
    for (size_t i = 0; i < CANDIDATES_MAX && known_blas[which].candidates[i]; i++) {
        const char *candidate = known_blas[which].candidates[i], *hole = strstr(candidate, "%s");
        char path[512];
        int before = hole ? (int)(hole - candidate) : (int)strlen(candidate);
        snprintf(path, sizeof path, "%.*s%s%s", before, candidate, hole ? machine.machine : "",
                 hole ? hole + 2 : "");
        void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (handle && strcmp(known_blas[which].name, "reference") == 0 && is_another_blas(handle)) {
            snprintf(why, why_size, "%s is another BLAS here", path);
            dlclose(handle);
            handle = NULL;
        } else if (!handle) {
            snprintf(why, why_size, "%s", dlerror());
        }
        if (handle)
            return handle;
        int written = snprintf(tried + used, tried_size - used, "%s%s", used ? ", " : "", path);
        if (written > 0 && used + (size_t)written < tried_size)
            used += (size_t)written;
    }
    return NULL;
}

static void *load_library(const char *name) {
    if (strchr(name, '/')) {
        void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (!handle)
            die(EXIT_BLAS, "cannot load BLAS '%s': %s", name, dlerror());
        return handle;
    }
    for (size_t i = 0; i < sizeof known_blas / sizeof *known_blas; i++) {
        if (strcmp(known_blas[i].name, name) != 0)
            continue;
        char tried[1024] = "", why[1024] = "";
        void *handle = load_candidates(i, tried, sizeof tried, why, sizeof why);
        if (!handle)
            die(EXIT_BLAS, "cannot load BLAS '%s': tried %s: %s; Debian has it in the package %s", name,
                tried, why, known_blas[i].package);
        return handle;
    }
    die(EXIT_INPUT,
        "--blas '%s' is not known; expected openblas, blis, reference, mkl, or a path with a slash", name);
}

static struct blas load_blas(const struct options *options) {
    set_threads(options->threads);
    struct blas blas = {.name = options->blas, .is_single = options->is_single};
    blas.handle = load_library(options->blas);
    const char *symbol = options->is_single ? "sgemm_" : "dgemm_";
    find_function(blas.handle, symbol, &blas.gemm);
    if (!blas.gemm)
        die(EXIT_BLAS, "cannot use BLAS '%s': it has no %s: %s", options->blas, symbol, dlerror());
    void (*set_num_threads)(int);
    find_function(blas.handle, "openblas_set_num_threads", &set_num_threads);
    if (set_num_threads)
        set_num_threads((int)options->threads);
    return blas;
}

/* ---- The call --------------------------------------------------------------------------------------------
 */

struct row {
    uint64_t unit;
    int m, n, k, lda, ldb, ldc;
};

static const float single_minus_one = -1, single_one = 1;
static const double double_minus_one = -1, double_one = 1;

/* C = C - A B'. Each element of C moves by at most k max|a| max|b| a call: after 1e6 calls with k = 1e5 and
 * elements below 2 that is 4e11, far from the largest number of either type. */
static inline void multiply(const struct blas *blas, const struct row *row, const void *a, const void *b,
                            void *c) {
    const void *alpha = blas->is_single ? (const void *)&single_minus_one : (const void *)&double_minus_one;
    const void *beta = blas->is_single ? (const void *)&single_one : (const void *)&double_one;
    blas->gemm("N", "T", &row->m, &row->n, &row->k, alpha, a, &row->lda, b, &row->ldb, beta, c, &row->ldc, 1,
               1);
}

static void put_element(bool is_single, void *matrix, size_t i, double value) {
    if (is_single)
        ((float *)matrix)[i] = (float)value;
    else
        ((double *)matrix)[i] = value;
}

static double get_element(bool is_single, const void *matrix, size_t i) {
    return is_single ? (double)((const float *)matrix)[i] : ((const double *)matrix)[i];
}

enum { CHECK_LD = 11, CHECK_COLUMNS = 9, CHECK_ELEMENTS = CHECK_LD * CHECK_COLUMNS };

/* One small product against three loops, before anything is measured: a BLAS with another integer width or a
 * broken build does not go unseen. The elements are small whole numbers, so that every correct order of
 * summation gives the same result. It also makes the library do what it only does at its first call. */
static void check_product(const struct blas *blas) {
    const struct row row = {.m = 7, .n = 5, .k = 9, .lda = 8, .ldb = 6, .ldc = CHECK_LD};
    double a[CHECK_ELEMENTS], b[CHECK_ELEMENTS], c[CHECK_ELEMENTS], expected[CHECK_ELEMENTS];
    for (size_t i = 0; i < CHECK_ELEMENTS; i++) {
        put_element(blas->is_single, a, i, (double)(i % 13) - 6);
        put_element(blas->is_single, b, i, (double)(i % 7) - 3);
        put_element(blas->is_single, c, i, expected[i] = (double)(i % 5));
    }
    for (int j = 0; j < row.n; j++)
        for (int i = 0; i < row.m; i++)
            for (int l = 0; l < row.k; l++)
                expected[i + j * row.ldc] -= get_element(blas->is_single, a, (size_t)(i + l * row.lda)) *
                                             get_element(blas->is_single, b, (size_t)(j + l * row.ldb));
    multiply(blas, &row, a, b, c);
    for (size_t i = 0; i < CHECK_ELEMENTS; i++) {
        double found = get_element(blas->is_single, c, i);
        if (found != expected[i])
            die(EXIT_BLAS,
                "BLAS '%s' computes wrong results: element %zu of a small product is %g, expected %g",
                blas->name, i, found, expected[i]);
    }
}

/* ---- The matrices ----------------------------------------------------------------------------------------
 */

struct matrix {
    char *elements;
    uint64_t count; /* of the largest operand; offset_range more follow */
};

/* SplitMix64: one word of state, good enough for content and offsets, and the same everywhere. */
static uint64_t draw(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* A whole number from 0 to MOST, which is below 2^57. */
static uint64_t draw_up_to(uint64_t *state, uint64_t most) {
    return (uint64_t)(((unsigned __int128)draw(state) * (most + 1)) >> 64);
}

/* The content before the mask, in [0, 1) when random and in [0, 1] when sequential. */
static double content_at(const struct options *options, uint64_t i, uint64_t count, uint64_t *state) {
    switch (options->content) {
    case CONTENT_RANDOM: /* as many bits as the significand has */
        return options->is_single ? (double)(draw(state) >> 40) * 0x1p-24
                                  : (double)(draw(state) >> 11) * 0x1p-53;
    case CONTENT_SEQUENTIAL:
        return count > 1 ? (double)i / (double)(count - 1) : 0;
    case CONTENT_CONSTANT:
        break;
    }
    return options->value;
}

static void fill(const struct options *options, char *elements, uint64_t count, uint64_t *state) {
    uint64_t ones = (UINT64_C(1) << options->mask) - 1;
    for (uint64_t i = 0; i < count; i++) {
        double value = content_at(options, i, count, state);
        if (options->is_single) {
            float single = (float)value;
            uint32_t bits;
            memcpy(&bits, &single, sizeof bits);
            bits |= (uint32_t)ones;
            memcpy(elements + i * sizeof bits, &bits, sizeof bits);
        } else {
            uint64_t bits;
            memcpy(&bits, &value, sizeof bits);
            bits |= ones;
            memcpy(elements + i * sizeof bits, &bits, sizeof bits);
        }
    }
}

/* The matrices are this process's first touch: with the local policy they lie in the memory of the processor
 * that it is pinned to, whatever policy it was started with. Returns what came of it. */
static const char *keep_memory_local(void) {
    enum { POLICY_LOCAL = 4 }; /* MPOL_LOCAL of linux/mempolicy.h, Linux 3.8 */
    if (syscall(SYS_set_mempolicy, POLICY_LOCAL, NULL, 0UL) == 0)
        return "local";
    return errno == EPERM ? "as started (set_mempolicy is not permitted here)"
                          : "as started (no set_mempolicy)";
}

static size_t element_size(const struct options *options) {
    return options->is_single ? sizeof(float) : sizeof(double);
}

static uint64_t matrix_bytes(const struct options *options, int which) {
    return (options->elements[which] + options->offset_range) * element_size(options);
}

static void allocate_matrices(const struct options *options, struct matrix matrices[3], uint64_t *state) {
    uint64_t bytes[3], total = 0;
    for (int i = 0; i < 3; i++)
        total += bytes[i] = matrix_bytes(options, i);
    for (int i = 0; i < 3; i++) {
        void *memory = MAP_FAILED;
        errno = ENOMEM;
        if (bytes[i] <= SIZE_MAX / 2)
            memory = mmap(NULL, bytes[i], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            die(EXIT_SYSTEM, "cannot allocate %llu bytes for matrix %c (%llu for A, B and C): %s",
                (unsigned long long)bytes[i], 'A' + i, (unsigned long long)total, strerror(errno));
        matrices[i] = (struct matrix){.elements = memory, .count = options->elements[i]};
    }
    for (int i = 0; i < 3; i++)
        fill(options, matrices[i].elements, options->elements[i] + options->offset_range, state);
}

/* ---- Facts -----------------------------------------------------------------------------------------------
 */

/* All of a line or text at once, so that a killed run has lost no answer. */
static void write_out(const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            die(EXIT_SYSTEM, "cannot write answers: %s", strerror(errno));
        bytes += written;
        length -= (size_t)written;
    }
}

__attribute__((format(printf, 2, 3))) static void fact(const char *name, const char *format, ...) {
    char line[FACT_MAX];
    int used = snprintf(line, sizeof line, "#%s: ", name);
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, arguments);
    va_end(arguments);
    size_t length = strlen(line);
    if (more <= 0)
        return;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)line[i] < 0x20) /* libraries' texts may have newlines */
            line[i] = ' ';
    line[length] = '\n';
    write_out(line, length + 1);
}

static void blas_facts(const struct blas *blas, const struct options *options) {
    fact("blas", "%s", blas->name);
    Dl_info place;
    void *symbol;
    memcpy(&symbol, &blas->gemm, sizeof symbol);
    char path[PATH_MAX];
    if (dladdr(symbol, &place) && place.dli_fname)
        fact("blas_library", "%s", realpath(place.dli_fname, path) ? path : place.dli_fname);
    char *(*openblas_config)(void), *(*openblas_core)(void), *(*blis_version)(void);
    void (*mkl_version)(char *, int);
    int (*openblas_threads)(void);
    find_function(blas->handle, "openblas_get_config", &openblas_config);
    find_function(blas->handle, "openblas_get_corename", &openblas_core);
    find_function(blas->handle, "openblas_get_num_threads", &openblas_threads);
    find_function(blas->handle, "bli_info_get_version_str", &blis_version);
    find_function(blas->handle, "mkl_get_version_string", &mkl_version);
    char version[512] = "";
    if (mkl_version)
        mkl_version(version, (int)sizeof version - 1);
    if (openblas_config)
        fact("blas_version", "%s", openblas_config());
    else if (blis_version)
        fact("blas_version", "BLIS %s", blis_version());
    else if (version[0])
        fact("blas_version", "%s", version);
    if (openblas_core)
        fact("blas_core", "%s", openblas_core());
    fact("threads", "%d", openblas_threads ? openblas_threads() : (int)options->threads);
}

static void process_facts(const struct options *options, const char *policy) {
    static const char *const contents[] = {"random", "sequential", "constant"};
    fact("precision", "%s", options->is_single ? "single" : "double");
    fact("call", "C = C - A B', column major, alpha -1, beta 1");
    fact("content", "%s", contents[options->content]);
    if (options->content == CONTENT_CONSTANT)
        fact("value", "%.17g", options->value);
    fact("mask_bits", "%u", options->mask);
    fact("seed", "%llu", (unsigned long long)options->seed);
    if (!options->check) {
        uint64_t bytes = matrix_bytes(options, 0) + matrix_bytes(options, 1) + matrix_bytes(options, 2);
        fact("matrix_bytes", "%llu", (unsigned long long)bytes);
        fact("offset_range", "%llu", (unsigned long long)options->offset_range);
    }
    fact("memory_policy", "%s", policy);
    fact("page_bytes", "%ld", sysconf(_SC_PAGESIZE));
    struct timespec resolution;
    if (clock_getres(CLOCK_MONOTONIC, &resolution) == 0)
        fact("clock", "CLOCK_MONOTONIC, %ld ns", resolution.tv_nsec);
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        fact("cpus_allowed", "%d", CPU_COUNT(&allowed));
    fact("cpu", "%d", sched_getcpu());
}

/* ---- Rows ------------------------------------------------------------------------------------------------
 */

struct input {
    char bytes[INPUT_BYTES];
    size_t begin, end;
    unsigned long long line; /* number of the last line, from 1 */
};

/* The next line without its end, NUL-ended, valid until the next call; NULL when the input is over. */
static char *read_line(struct input *input) {
    for (size_t searched = 0;;) {
        char *start = input->bytes + input->begin;
        size_t length = input->end - input->begin;
        char *newline = memchr(start + searched, '\n', length - searched);
        if (newline ? newline - start >= LINE_LENGTH_MAX : length >= LINE_LENGTH_MAX)
            die(EXIT_INPUT, "line %llu is longer than %d bytes", input->line + 1, (int)LINE_LENGTH_MAX);
        if (newline) {
            input->begin += (size_t)(newline - start) + 1;
            input->line++;
            if (newline > start && newline[-1] == '\r')
                newline--;
            *newline = '\0';
            if (strlen(start) != (size_t)(newline - start))
                die(EXIT_INPUT, "line %llu holds a NUL", input->line);
            return start;
        }
        searched = length;
        memmove(input->bytes, start, length);
        input->begin = 0;
        input->end = length;
        ssize_t got = read(STDIN_FILENO, input->bytes + length, sizeof input->bytes - length);
        if (got < 0 && errno != EINTR)
            die(EXIT_SYSTEM, "cannot read rows: %s", strerror(errno));
        if (got == 0 && length > 0)
            die(EXIT_INPUT, "the input ends inside line %llu", input->line + 1);
        if (got == 0)
            return NULL;
        if (got > 0)
            input->end += (size_t)got;
    }
}

enum { COLUMNS = 7 };

static const char *const column_names[COLUMNS] = {"unit", "m", "n", "k", "lda", "ldb", "ldc"};

/* Cuts LINE at its commas into at most MOST fields; returns how many there are. */
static int split(char *line, char **fields, int most) {
    int count = 0;
    for (char *at = line;;) {
        char *comma = strchr(at, ',');
        if (count < most)
            fields[count] = at;
        count++;
        if (!comma)
            return count;
        *comma = '\0';
        at = comma + 1;
    }
}

/* COLUMN_OF[i] is where column_names[i] stands in a row. */
static void read_header(struct input *input, int column_of[COLUMNS]) {
    char *line = read_line(input);
    if (!line)
        die(EXIT_INPUT, "the input is empty; expected the header unit,m,n,k,lda,ldb,ldc");
    char *fields[COLUMNS];
    int count = split(line, fields, COLUMNS);
    for (int i = 0; i < COLUMNS; i++) {
        column_of[i] = -1;
        for (int j = 0; j < count && j < COLUMNS; j++)
            if (strcmp(fields[j], column_names[i]) == 0)
                column_of[i] = j;
        if (column_of[i] < 0)
            die(EXIT_INPUT, "line 1 is not a header of the columns unit,m,n,k,lda,ldb,ldc; missing: %s",
                column_names[i]);
    }
    if (count != COLUMNS)
        die(EXIT_INPUT, "line 1 has %d columns; expected unit,m,n,k,lda,ldb,ldc", count);
}

static uint64_t parse_field(const struct input *input, const char *name, const char *text, uint64_t least,
                            uint64_t most) {
    uint64_t value;
    if (!read_whole(text, most, &value) || value < least)
        die(EXIT_INPUT, "line %llu: %s '%.64s' is not a whole number from %llu to %llu", input->line, name,
            text, (unsigned long long)least, (unsigned long long)most);
    return value;
}

/* The last element that an operand of COLUMNS columns touches, counted from 1, must be in the buffer. */
static void check_operand(const struct input *input, const struct matrix *matrix, char letter, int rows,
                          int columns, int leading) {
    if (leading < rows)
        die(EXIT_INPUT, "line %llu: ld%c = %d is less than %d, the rows of %c", input->line,
            letter - 'A' + 'a', leading, rows, letter);
    uint64_t needed = (uint64_t)leading * (uint64_t)(columns - 1) + (uint64_t)rows;
    if (needed > matrix->count)
        die(EXIT_INPUT, "line %llu: %c needs %llu elements, more than --%c-elements %llu", input->line,
            letter, (unsigned long long)needed, letter - 'A' + 'a', (unsigned long long)matrix->count);
}

static void parse_row(const struct input *input, char *line, const int column_of[COLUMNS],
                      const struct matrix matrices[3], struct row *ret) {
    char *fields[COLUMNS];
    int count = split(line, fields, COLUMNS);
    if (count != COLUMNS)
        die(EXIT_INPUT, "line %llu has %d fields; expected %d", input->line, count, (int)COLUMNS);
    int *members[COLUMNS] = {NULL, &ret->m, &ret->n, &ret->k, &ret->lda, &ret->ldb, &ret->ldc};
    ret->unit = parse_field(input, column_names[0], fields[column_of[0]], 0, UINT64_MAX);
    for (int i = 1; i < COLUMNS; i++)
        *members[i] = (int)parse_field(input, column_names[i], fields[column_of[i]], 1, INT_MAX);
    check_operand(input, &matrices[0], 'A', ret->m, ret->k, ret->lda);
    check_operand(input, &matrices[1], 'B', ret->n, ret->k, ret->ldb);
    check_operand(input, &matrices[2], 'C', ret->m, ret->n, ret->ldc);
}

static int64_t nanoseconds(const struct timespec *time) {
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

static void run_row(const struct blas *blas, const struct row *row, const void *a, const void *b, void *c) {
    struct timespec wall, before, after;
    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_MONOTONIC, &before);
    multiply(blas, row, a, b, c);
    clock_gettime(CLOCK_MONOTONIC, &after);
    int64_t duration = nanoseconds(&after) - nanoseconds(&before);
    char line[128];
    int length = snprintf(line, sizeof line, "%llu,%lld,%lld,%lld.%09lld\n", (unsigned long long)row->unit,
                          (long long)nanoseconds(&wall), (long long)nanoseconds(&before),
                          (long long)(duration / 1000000000), (long long)(duration % 1000000000));
    write_out(line, (size_t)length);
}

static void run_rows(const struct blas *blas, const struct options *options, const struct matrix matrices[3],
                     uint64_t *state) {
    static struct input input;
    int column_of[COLUMNS];
    read_header(&input, column_of);
    static const char header[] = "unit,start,start_monotonic,duration\n";
    write_out(header, sizeof header - 1);
    size_t size = element_size(options);
    char *line;
    while ((line = read_line(&input))) {
        struct row row;
        parse_row(&input, line, column_of, matrices, &row);
        char *operands[3];
        for (int i = 0; i < 3; i++)
            operands[i] = matrices[i].elements + draw_up_to(state, options->offset_range) * size;
        run_row(blas, &row, operands[0], operands[1], operands[2]);
    }
}

int main(int argc, char **argv) {
    struct options options = parse_options(argc, argv);
    const char *policy = keep_memory_local();
    struct blas blas = load_blas(&options);
    check_product(&blas);
    if (options.check) {
        blas_facts(&blas, &options);
        process_facts(&options, policy);
        return 0;
    }
    uint64_t state = options.seed;
    struct matrix matrices[3];
    allocate_matrices(&options, matrices, &state);
    blas_facts(&blas, &options);
    process_facts(&options, policy);
    run_rows(&blas, &options, matrices, &state);
    return 0;
}
