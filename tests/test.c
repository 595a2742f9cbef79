#include "tests/test.h"

#include <unistd.h>

enum { TESTS_MAX = 128 };

static struct CMUnitTest tests[TESTS_MAX];
static size_t test_count;
static CMFixtureFunction each[2], group[2];

void test_add(const char *name, CMUnitTestFunction function) {
    if (test_count == TESTS_MAX)
        abort();
    tests[test_count++] = (struct CMUnitTest){.name = name, .test_func = function};
}

void test_set_each(CMFixtureFunction set_up, CMFixtureFunction tear_down) {
    each[0] = set_up;
    each[1] = tear_down;
}

void test_set_group(CMFixtureFunction set_up, CMFixtureFunction tear_down) {
    group[0] = set_up;
    group[1] = tear_down;
}

int test_run(void) {
    for (size_t i = 0; i < test_count; i++) {
        tests[i].setup_func = each[0];
        tests[i].teardown_func = each[1];
    }
    return _cmocka_run_group_tests(program_invocation_short_name, tests, test_count, group[0], group[1]);
}

__attribute__((weak)) int main(void) {
    return test_run();
}

__attribute__((constructor)) static void run_one_function(void) {
    const char *name = getenv("ASSAY_TEST_ONLY");
    if (name && *name)
        cmocka_set_test_filter(name);
}

void test_close(const char *file, int line, double found, double expected, double tolerance,
                const char *what) {
    double error = fabs(found - expected) / (expected == 0 ? 1 : fabs(expected));
    if (error <= tolerance)
        return;
    print_error("%s is %.17g; expected %.17g (relative error %.3g)\n", what, found, expected, error);
    _fail(file, line);
}

void test_says(const char *file, int line, const char *text, const char *expected) {
    if (strstr(text, expected))
        return;
    print_error("'%s'; expected '%s'\n", text, expected);
    _fail(file, line);
}

uint64_t test_seed = 1;

uint64_t test_random_bits(void) {
    uint64_t z = (test_seed += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

double test_random(void) {
    return ((double)(test_random_bits() >> 11) + 0.5) * 0x1p-53;
}

const char *test_build(void) {
    const char *build = getenv("ASSAY_BUILD");
    return build ? build : "build";
}

const char *test_data(void) {
    static char data[4096];
    const char *set = getenv("ASSAY_TEST_DATA"), *source = getenv("ASSAY_SOURCE");
    snprintf(data, sizeof data, "%s%s", set ? set : source ? source : ".", set ? "" : "/../shared/data");
    if (access(data, R_OK) == 0)
        return data;
    fprintf(stderr, "skipped: the measurements are not here (no folder '%s'; ASSAY_TEST_DATA names it)\n",
            data);
    return NULL;
}
