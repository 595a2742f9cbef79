/* The line of a fit that takes long: when there is one, what it says, and that it goes. */
#include "engine/command-line/fit-progress.h"
#include "tests/test.h"

static char *text;
static size_t size;

static int64_t after(double seconds) {
    return 7000000000 + (int64_t)(seconds * 1e9);
}

static struct fit_progress begin(bool shows) {
    struct fit_progress progress;
    fit_progress_init(&progress, open_memstream(&text, &size), shows, after(0));
    return progress;
}

static void end(struct fit_progress *progress) {
    fclose(progress->stream);
    free(text);
}

static void show(struct fit_progress *progress, const char *of, uint64_t done, uint64_t total, uint32_t pass,
                 double seconds) {
    fit_progress_show(progress, &(struct fitting_stage){of, done, total, pass}, after(seconds));
    fflush(progress->stream);
}

/* The last line drawn. */
static const char *line(void) {
    const char *last = strrchr(text, '\r');
    return last ? last : "";
}

TEST(in_time) {
    struct fit_progress progress = begin(true);
    show(&progress, "rows", 1000, 0, 1, 0.5);
    show(&progress, "rows", 2000, 0, 1, 1.99);
    assert_int_equal(size, 0);
    show(&progress, "rows", 3001000, 0, 1, 2);
    assert_string_equal(line(), "\r\033[K  3,001,000 rows, 2e+06 rows/s");
    size_t before = size;
    show(&progress, "rows", 3100000, 0, 1, 2.05); /* too soon after the last one */
    assert_int_equal(size, before);
    show(&progress, "groups", 0, 1024, 0, 3);
    assert_string_equal(line(), "\r\033[K  [........................] 0 of 1,024 groups");
    show(&progress, "groups", 256, 1024, 0, 5);
    assert_string_equal(line(),
                        "\r\033[K  [######..................] 256 of 1,024 groups, 128 groups/s, 6 s left");
    show(&progress, "groups", 1024, 1024, 0, 11);
    assert_string_equal(line(), "\r\033[K  [########################] 1,024 of 1,024 groups, 128 groups/s");
    fit_progress_show(&progress, NULL, after(11));
    fflush(progress.stream);
    assert_string_equal(line(), "\r\033[K");
    before = size;
    fit_progress_end(&progress); /* nothing is there any more */
    fflush(progress.stream);
    assert_int_equal(size, before);
    end(&progress);
}

/* The time that is left is by the pass in hand. */
TEST(of_a_pass) {
    struct fit_progress progress = begin(true);
    show(&progress, "rows", 0, 0, 1, 0);
    show(&progress, "rows", 1000, 0, 1, 100);
    show(&progress, "rows", 0, 1000, 2, 100);
    show(&progress, "rows", 500, 1000, 2, 105);
    assert_string_equal(
        line(), "\r\033[K  [############............] 500 of 1,000 rows, pass 2, 100 rows/s, 5 s left");
    show(&progress, "folds", 1, 5, 0, 106);
    show(&progress, "folds", 0, 5, 0, 107); /* another model's */
    assert_string_equal(line(), "\r\033[K  [........................] 0 of 5 folds");
    end(&progress);
}

TEST(nowhere_else) {
    struct fit_progress progress = begin(false);
    show(&progress, "rows", 1000, 0, 1, 50);
    fit_progress_show(&progress, NULL, after(60));
    fflush(progress.stream);
    assert_int_equal(size, 0);
    end(&progress);
}
