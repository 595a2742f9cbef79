/*
 * Runs a fuzz target without libFuzzer: every file of the corpus as it is, and then mutations of it. The
 * mutations are the same every time, so that a failure can be repeated; the input that was being tried when
 * the target died is left in the working folder.
 *
 *     fuzz-NAME FOLDER|FILE...      ASSAY_FUZZ_MUTATIONS=N: so many for each file, not what the target says
 */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/list.h"
#include "engine/foundation/number.h"
#include "tests/fuzz/fuzz.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* In a build with sanitizers only. */
extern void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

enum { INPUT_MAX = 1 << 20, FILES_MAX = 1 << 16 };

static uint8_t current[INPUT_MAX];
static size_t current_length;
static const char dead_input[] = "fuzz-died-on.bin";

static void save_current(void) {
    int descriptor = open(dead_input, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (descriptor >= 0 && write(descriptor, current, current_length) == (ssize_t)current_length)
        (void)!write(STDERR_FILENO, "the input is in fuzz-died-on.bin\n", 33);
}

static void on_signal(int number) {
    save_current();
    signal(number, SIG_DFL);
    raise(number);
}

/* SplitMix64. */
static uint64_t draw(uint64_t *state, uint64_t below) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return below ? (z ^ (z >> 31)) % below : 0;
}

/* Opens a gap of LENGTH bytes at AT, or as much of it as there is room for. */
static size_t open_gap(size_t at, size_t length) {
    if (length > INPUT_MAX - current_length)
        length = INPUT_MAX - current_length;
    memmove(current + at + length, current + at, current_length - at);
    current_length += length;
    return length;
}

/* Changes a byte where it stands: a bit, any byte, or the next letter or digit to another, which most readers
 * take. */
static void mutate_byte(uint64_t *state, size_t at) {
    uint64_t choice = draw(state, 6);
    if (choice == 0)
        current[at] ^= (uint8_t)(1u << draw(state, 8));
    if (choice == 1)
        current[at] = (uint8_t)draw(state, 256);
    if (choice < 2)
        return;
    while (at < current_length && !isalnum(current[at]))
        at++;
    if (at < current_length)
        current[at] = (uint8_t)(isdigit(current[at]) ? '0' + draw(state, 10) : 'a' + draw(state, 26));
}

/* One small change of the current input: a byte, what parsers trip over, and pieces gone, doubled or moved.
 */
static void mutate(uint64_t *state) {
    static const char *const tokens[] = {
        "\"",    "\n",  ",",       ":",  "-",    "{",    "}",
        "[",     "]",   "&a ",     "*a", "\xff", "\xc3", "999999999999999999999",
        "1e999", "../", "\\u0000", "'"};
    size_t at = (size_t)draw(state, current_length + 1);
    size_t left = current_length - at;
    size_t piece = (size_t)draw(state, (left < 64 ? left : 64) + 1);
    switch (draw(state, 10)) {
    case 0:
        current_length = at;
        break;
    case 1:
        memmove(current + at, current + at + piece, left - piece);
        current_length -= piece;
        break;
    case 2:
        piece = open_gap(at, piece); /* what was there stands before the gap too */
        break;
    case 3: {
        const char *token = tokens[draw(state, sizeof tokens / sizeof *tokens)];
        memcpy(current + at, token, open_gap(at, strlen(token)));
        break;
    }
    case 4:
        if (piece > 0) {
            size_t to = (size_t)draw(state, current_length - piece + 1);
            memmove(current + to, current + at, piece);
        }
        break;
    default:
        if (left > 0)
            mutate_byte(state, at);
    }
}

static int replay_file(const char *path, uint64_t mutations, uint64_t *ret_runs) {
    struct failure failure = {0};
    cleanup(text_clear) struct text content;
    text_init(&content, INPUT_MAX);
    if (file_read(path, &content, &failure) < 0) {
        fprintf(stderr, "%s\n", failure.text);
        return -1;
    }
    uint64_t state = content.length;
    for (const char *at = file_base_name(path); *at; at++)
        state = 31 * state + (unsigned char)*at;
    for (uint64_t run = 0; run <= mutations; run++) {
        memcpy(current, content.bytes, content.length);
        current_length = content.length;
        if (run > 0)
            do
                mutate(&state);
            while (draw(&state, 2)); /* mostly few: what is changed much is refused at once */
        /* A copy of exactly this length, so that a read past the end is seen. */
        cleanup_free uint8_t *input = malloc(current_length ? current_length : 1);
        if (!input)
            return -1;
        memcpy(input, current, current_length);
        uint64_t passed = fuzz_passed;
        LLVMFuzzerTestOneInput(input, current_length);
        if (run == 0 && fuzz_passed == passed)
            mutations /= 10; /* little of what is made of it gets further than it does */
        ++*ret_runs;
    }
    return 0;
}

struct paths {
    char **items;
    size_t count, capacity;
};

static int compare_paths(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_path(struct paths *paths, char *path) {
    if (!path || list_reserve(&paths->items, &paths->capacity, paths->count + 1, sizeof *paths->items,
                              FILES_MAX) < 0) {
        fprintf(stderr, "too many files, or out of memory\n");
        return -1;
    }
    paths->items[paths->count++] = path;
    return 0;
}

static int add_paths(struct paths *paths, const char *path) {
    if (!file_is_folder(path))
        return add_path(paths, strdup(path));
    DIR *folder = opendir(path);
    struct dirent *entry;
    int r = 0;
    while (folder && r == 0 && (entry = readdir(folder)))
        if (entry->d_name[0] != '.')
            r = add_path(paths, file_join(path, entry->d_name));
    if (folder)
        closedir(folder);
    return r;
}

int main(int argc, char **argv) {
    uint64_t mutations = fuzz_mutations, runs = 0;
    const char *wanted = getenv("ASSAY_FUZZ_MUTATIONS");
    if (wanted && !number_parse_uint64(wanted, strlen(wanted), &mutations)) {
        fprintf(stderr, "ASSAY_FUZZ_MUTATIONS is not a number: '%s'\n", wanted);
        return 2;
    }
    signal(SIGABRT, on_signal); /* sanitizers leave it alone */
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(save_current);
    else
        for (size_t i = 0; i < 4; i++)
            signal((const int[]){SIGSEGV, SIGBUS, SIGFPE, SIGILL}[i], on_signal);
    struct paths paths = {0};
    int status = 0;
    for (int i = 1; i < argc && status == 0; i++)
        status = add_paths(&paths, argv[i]) < 0;
    if (paths.count > 0)
        qsort(paths.items, paths.count, sizeof *paths.items, compare_paths);
    for (size_t i = 0; i < paths.count && status == 0; i++)
        status = replay_file(paths.items[i], mutations, &runs) < 0;
    printf("%zu files, %llu inputs, %llu past the first check\n", paths.count, (unsigned long long)runs,
           (unsigned long long)fuzz_passed);
    if (fuzz_passed * 100 < runs * fuzz_least_percent) {
        fprintf(stderr, "expected %llu of a hundred past it\n", (unsigned long long)fuzz_least_percent);
        status = 1;
    }
    if (paths.count == 0)
        fprintf(stderr, "no corpus: a fuzz target that tries nothing finds nothing\n");
    for (size_t i = 0; i < paths.count; i++)
        free(paths.items[i]);
    free(paths.items);
    return status || runs == 0;
}
