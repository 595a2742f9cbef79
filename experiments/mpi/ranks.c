#include "ranks.h"

#include <dlfcn.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int rank, ranks;
char *rank_names;
static const char *program_name;

void ranks_begin(int *argc, char ***argv, const char *program) {
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int length;
    program_name = program;
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    rank_names = ranks_allocate((size_t)ranks, sizeof name);
    MPI_Get_processor_name(name, &length);
    MPI_Allgather(name, sizeof name, MPI_CHAR, rank_names, sizeof name, MPI_CHAR, MPI_COMM_WORLD);
}

void ranks_die(int code, const char *format, ...) {
    char sentence[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    /* At once: mpirun mixes what ranks write. */
    fprintf(stderr, "%s: rank %d: %s\n", program_name, rank, sentence);
    MPI_Abort(MPI_COMM_WORLD, code);
    _exit(code);
}

double ranks_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void *ranks_allocate(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        ranks_die(1, "cannot allocate %zu bytes", count * size);
    return memory;
}

char *ranks_allocate_buffer(size_t bytes) {
    size_t room = (bytes / RANKS_PAGE + 1) * RANKS_PAGE;
    char *buffer = aligned_alloc(RANKS_PAGE, room);
    if (!buffer)
        ranks_die(1, "cannot allocate %zu bytes for messages", bytes);
    memset(buffer, 0, room);
    return buffer;
}

uint64_t ranks_draw(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

void ranks_shuffle(void *items, size_t count, size_t size, uint64_t *state) {
    char *bytes = items, *other = ranks_allocate(1, size);
    for (size_t i = count; i > 1; i--) {
        size_t j = ranks_draw(state) % i;
        memcpy(other, bytes + j * size, size);
        memmove(bytes + j * size, bytes + (i - 1) * size, size);
        memcpy(bytes + (i - 1) * size, other, size);
    }
    free(other);
}

/* ---- Options */

/* TEXT as a whole number from LEAST to MOST; ends the program if it is none. */
static long parse_whole(const char *name, const char *text, long least, long most) {
    char *end;
    long value = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || value < least || value > most)
        ranks_die(2, "--%s '%s' is not a whole number from %ld to %ld", name, text, least, most);
    return value;
}

/* The index of TEXT in WORDS; ends the program if it is none of them. */
static long parse_word(const char *name, const char *text, const char *const *words) {
    for (long i = 0; words[i]; i++)
        if (strcmp(words[i], text) == 0)
            return i;
    ranks_die(2, "--%s '%s' is not known; expected one of '%s', '%s', ...", name, text, words[0], words[1]);
}

/* Reads the sizes of --at, ascending and separated by commas; ends the program if they are not. */
static void parse_sizes(char *text, struct ranks_sizes *sizes) {
    char *rest = NULL;
    sizes->count = 0;
    sizes->given = 1;
    for (char *field = strtok_r(text, ",", &rest); field; field = strtok_r(NULL, ",", &rest)) {
        long least = sizes->count ? sizes->at[sizes->count - 1] + 1 : 1;
        if (sizes->count == RANKS_SIZES_MAX)
            ranks_die(2, "--at has more than %d sizes, the most accepted", (int)RANKS_SIZES_MAX);
        sizes->at[sizes->count++] = parse_whole("at", field, least, INT_MAX);
    }
    if (sizes->count == 0)
        ranks_die(2, "--at has no sizes; expected sizes separated by commas");
    sizes->largest = sizes->at[sizes->count - 1];
}

/* The option NAME of a list that ends with a nameless one; NULL: there is none. */
static const struct ranks_option *find_option(const struct ranks_option *options, const char *name) {
    while (options->name && strcmp(options->name, name) != 0)
        options++;
    return options->name ? options : NULL;
}

/* Reads the arguments --NAME VALUE into the options and sizes; ends the program if one is unknown or
 * wrong. */
void ranks_parse(int argc, char **argv, const struct ranks_option *options, struct ranks_sizes *sizes,
                 const char *usage) {
    const struct ranks_option common_options[] = {{"sizes", &sizes->count, 1, RANKS_SIZES_MAX, NULL},
                                                  {"largest", &sizes->largest, 1, INT_MAX, NULL},
                                                  {NULL, NULL, 0, 0, NULL}};
    for (int i = 1; i < argc; i += 2) {
        const char *word = argv[i], *name = word + 2;
        char *value = argv[i + 1]; /* NULL behind the last */
        if (strncmp(word, "--", 2) != 0)
            ranks_die(2, "there is no argument '%s'\n%s", word, usage);
        const struct ranks_option *option = find_option(common_options, name);
        option = option ? option : find_option(options, name);
        if (!value || (!option && strcmp(name, "at") != 0))
            ranks_die(2, "the option '%s' is unknown, or has no value\n%s", word, usage);
        if (!option)
            parse_sizes(value, sizes);
        else
            *option->value = option->words ? parse_word(name, value, option->words)
                                           : parse_whole(name, value, option->least, option->most);
    }
}

/* Draws a size from each of COUNT intervals of equal length in the logarithm; rank 0's sizes are used by all.
 * Collective. */
void ranks_draw_sizes(struct ranks_sizes *sizes, uint64_t *state) {
    if (sizes->count > sizes->largest)
        ranks_die(2, "there are no %ld different sizes up to %ld bytes", sizes->count, sizes->largest);
    for (long i = 0; !sizes->given && i < sizes->count; i++) {
        double share = ((double)i + (double)(ranks_draw(state) >> 11) * 0x1p-53) / (double)sizes->count;
        long size = (long)exp(share * log((double)sizes->largest + 1)),
             most = sizes->largest - (sizes->count - 1 - i);
        if (i > 0 && size <= sizes->at[i - 1])
            size = sizes->at[i - 1] + 1;
        sizes->at[i] = size < most ? size : most;
    }
    MPI_Bcast(sizes->at, (int)sizes->count, MPI_LONG, 0, MPI_COMM_WORLD);
}

/* ---- Load */

void ranks_fill_matrices(double *matrices, int order) {
    for (int i = 0; i < 2 * order * order; i++)
        matrices[i] = i % 1000 * 1e-3;
}

/* One product of matrices by OpenBLAS, loaded at the first call; ends the program if it is missing. */
void ranks_multiply(double *matrices, int order) {
    typedef void dgemm(int, int, int, int, int, int, double, const double *, int, const double *, int, double,
                       double *, int);
    static dgemm *function;
    if (!function) {
        setenv("OPENBLAS_NUM_THREADS", "1", 1);
        void *library = dlopen("libopenblas.so.0", RTLD_NOW),
             *symbol = library ? dlsym(library, "cblas_dgemm") : NULL;
        if (!symbol)
            ranks_die(1, "--load dgemm needs libopenblas.so.0: %s", dlerror());
        memcpy(&function, &symbol, sizeof function);
    }
    double *b = matrices + order * order;
    function(102, 111, 112, order, order, order, -1, matrices, order, b, order, 1, b + order * order,
             order); /* column major, A B' */
}

void ranks_print_places(void) {
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(library, &length);
    printf("library %.*s\n", (int)strcspn(library, "\n"), library);
    for (int i = 0; i < ranks; i++)
        printf("rank %d %s\n", i, rank_names + i * MPI_MAX_PROCESSOR_NAME);
}
