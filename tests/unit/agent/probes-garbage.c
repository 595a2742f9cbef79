/* Whatever files hold, values are numbers or empty, and there is one a column. */
#include "tests/machines/machine-tree.h"
#include "tests/test.h"
#include "tests/unit/agent/made-tree.h"

#include <ftw.h>

enum { ROUNDS = 60, FILES = 2048 };

static char *files[FILES];
static size_t file_count;

static int note_file(const char *path, const struct stat *status, int type, struct FTW *walk) {
    if (type == FTW_F && file_count < FILES && chmod(path, 0644) == 0)
        files[file_count++] = strdup(path);
    return 0;
}

static uint64_t random_state = 12345;

static unsigned random_below(unsigned limit) {
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)(random_state >> 33) % limit;
}

/* Bytes, or something near to what was there. */
static size_t make_garbage(char *buffer, size_t size) {
    static const char *const pieces[] = {"-",      "0",        "99999999999999999999",
                                         "\n",     " ",        "\t",
                                         "cpu ",   "intr ",    "ctxt",
                                         "eth0:",  "MemFree:", " kB",
                                         ",",      "0-4095",   "3,1,1",
                                         ";text",  "Core",     "Package",
                                         "id",     "coretemp", "[on]",
                                         "energy", "\\",       "\xff"};
    size_t length = 0;
    for (unsigned left = random_below(12); left > 0; left--) {
        const char *piece = pieces[random_below(sizeof pieces / sizeof *pieces)];
        length += (size_t)snprintf(buffer + length, size - length, "%s", piece);
        if (random_below(4) == 0)
            buffer[length++] = (char)random_below(256);
    }
    return length;
}

static void spoil(const char *path) {
    char garbage[1024];
    int file = open(path, O_WRONLY | O_CLOEXEC | (random_below(3) ? O_TRUNC : 0));
    assert_true(file >= 0);
    assert_int_equal(file_write_all(file, garbage, make_garbage(garbage, sizeof garbage)), 0);
    close(file);
}

static void check_values(const struct probing *probing) {
    size_t commas = 0;
    for (size_t i = 0; i < probing->length; i++) {
        char byte = probing->values[i];
        commas += byte == ',';
        if (byte != ',' && byte != '.' && byte != '-' && (byte < '0' || byte > '9'))
            fail_msg("%s: '%.*s'", probing->probe->name, (int)probing->length, probing->values);
    }
    assert_int_equal(commas, probing->count);
}

static void a_round(unsigned round) {
    static const char *const expected[] = {"/sys/devices/system/cpu/online=0-7", "/proc/loadavg="};
    for (size_t p = 0; probe_table[p]; p++) {
        int r = begin_with(probe_table[p]->name, expected, 2);
        if (r < 0)
            assert_true(tree.probing.why[0] != '\0');
        for (int sample = 1; r == 0 && sample <= 4; sample++) {
            tree.probing.now_ns += 2 * PROBE_SECOND;
            for (unsigned i = 0; i < 1 + round % 20; i++)
                spoil(files[random_below((unsigned)file_count)]);
            probing_refresh(&tree.probing);
            probing_sample(&tree.probing);
            check_values(&tree.probing);
        }
    }
}

TEST(garbage_gives_empty_values) {
    char folder[128];
    for (unsigned round = 0; round < ROUNDS; round++) {
        if (round % 10 == 0) { /* a whole one again */
            struct failure failure;
            assert_int_equal(file_remove_tree(tree.folder, NULL), 0);
            assert_int_equal(machine_tree_make("intel-pstate", tree.folder, &failure), 0);
            machine_close(&tree.machine);
            assert_int_equal(machine_open(tree.folder, &tree.machine, &failure), 0);
            put("dev/kmsg", "");
            for (size_t i = 0; i < file_count; i++)
                free(files[i]);
            file_count = 0;
            snprintf(folder, sizeof folder, "%s", tree.folder);
            assert_int_equal(nftw(folder, note_file, 16, FTW_PHYS), 0);
            assert_true(file_count > 300 && file_count < FILES);
        }
        a_round(round);
    }
    for (size_t i = 0; i < file_count; i++)
        free(files[i]);
}
