/* What a unit test includes: cmocka, the headers of C that it and most tests need, and cleanup.h.
 *
 *   TEST(lines_are_counted) { ... }  a test; it is found by itself: no list of tests, no main
 *   TEST_EACH(set_up, tear_down)     what runs before and after each test of the file; either may be NULL
 *   TEST_GROUP(set_up, tear_down)    what runs before the first and after the last
 *
 * The program runs its tests in the order in which they are written, or with ASSAY_TEST_ONLY=NAME that one
 * alone (tests/run.sh --only). A program that needs a main of its own ends it with test_run(). */
#ifndef ASSAY_TESTS_TEST_H
#define ASSAY_TESTS_TEST_H

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <cmocka.h>

#include "engine/foundation/cleanup.h"
#include "engine/foundation/failure.h"

#define TEST(name)                                                                                           \
    static void test_##name(void **state);                                                                   \
    __attribute__((constructor)) static void add_##name(void) {                                              \
        test_add(#name, test_##name);                                                                        \
    }                                                                                                        \
    static void test_##name(void **state)
#define TEST_EACH(set_up, tear_down)                                                                         \
    __attribute__((constructor)) static void add_each(void) {                                                \
        test_set_each(set_up, tear_down);                                                                    \
    }
#define TEST_GROUP(set_up, tear_down)                                                                        \
    __attribute__((constructor)) static void add_group(void) {                                               \
        test_set_group(set_up, tear_down);                                                                   \
    }

void test_add(const char *name, CMUnitTestFunction function);
void test_set_each(CMFixtureFunction set_up, CMFixtureFunction tear_down);
void test_set_group(CMFixtureFunction set_up, CMFixtureFunction tear_down);

/* Runs the tests; the exit status of the program. */
int test_run(void);

/* Fails unless FOUND, which is called WHAT, is EXPECTED to a relative error of TOLERANCE (absolute where zero
 * is expected). */
#define assert_close(found, expected, tolerance, what)                                                       \
    test_close(__FILE__, __LINE__, found, expected, tolerance, what)
void test_close(const char *file, int line, double found, double expected, double tolerance,
                const char *what);

/* Where calls put their failures: empty before each test, and before each CALL below. */
extern struct failure test_failure;
void test_forget(void);

/* Fails, and prints the failure, unless CALL is 0. */
#define assert_ok(call) test_ok(__FILE__, __LINE__, (test_forget(), (call)))
void test_ok(const char *file, int line, int result);

/* Fails unless CALL is CODE, and the sentence of the failure contains PART. */
#define assert_error(call, code, part) test_error(__FILE__, __LINE__, (test_forget(), (call)), code, part)
void test_error(const char *file, int line, int result, int code, const char *part);

/* Fails unless CALL refused an input: the failure is of that kind, at PLACE, and contains PART. */
#define assert_refused(call, place, part)                                                                    \
    test_refused(__FILE__, __LINE__, (test_forget(), (call)), place, part)
void test_refused(const char *file, int line, int result, const char *place, const char *part);

/* Fails unless TEXT contains EXPECTED. */
#define assert_says(text, expected) test_says(__FILE__, __LINE__, text, expected)
void test_says(const char *file, int line, const char *text, const char *expected);

/* A number in (0, 1), by splitmix64 (Steele, Lea and Flood 2014) from the seed: the same in every run. */
extern uint64_t test_seed;
double test_random(void);
uint64_t test_random_bits(void); /* the 64 that it is made of */
double test_normal(void);        /* of mean 0 and variance 1, from two of them */

/* A fresh folder for the files of this program: it is removed at the end. */
const char *test_folder(void);

/* Another one, for the running test, after which it is removed. The second is in memory, where that can be:
 * for thousands of small files. */
const char *test_own_folder(void);
const char *test_memory_folder(void);

/* The path of NAME in test_folder(), which stays until the program ends. test_put() makes a file of TEXT
 * there, and the folders that it is in. */
const char *test_path(const char *name);
const char *test_put(const char *name, const char *text);
/* The same in FOLDER, of LENGTH bytes, with MODE. */
const char *test_put_in(const char *folder, const char *name, const void *bytes, size_t length, mode_t mode);
/* What is in the file at PATH, with a NUL behind it, good until the next call but seven. RET_LENGTH may be
 * NULL. */
char *test_read(const char *path, size_t *ret_length);
/* Fails unless the text of the file at PATH is EXPECTED. */
#define assert_file(path, expected) assert_string_equal(test_read(path, NULL), expected)
/* A buffer of this text, good until the next call but seven. */
const char *test_formatted(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The build that is tested, and its agent, or $ASSAY_AGENT. */
const char *test_build(void);
const char *test_agent(void);

/* Ends the test as skipped, and prints the reason, a printf format and its arguments: tests/run.sh lists it.
 * What the test's variables hold is not cleaned up, as at a failed assertion: skip first. */
_Noreturn void test_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The test goes on only as root, to whom files and processes of other users can be made; otherwise it is
 * skipped. */
void test_need_root(void);

/* Whether a process may have mounts of its own, and namespaces of the kinds MORE (CLONE_NEWNET, ...; 0: no
 * others): tried in a process that ends. Where it may not, as in a container or after chroot, `test_failure`
 * has the reason. test_need_own_mounts() skips the test then. */
bool test_can_own_mounts(int more);
void test_need_own_mounts(int more);

/* The test goes on only where file systems may be mounted without that, for all to see. */
void test_need_mounts(void);

/* Gives this process the mounts and namespaces that test_can_own_mounts() tried; its children have them too.
 * 0, or -errno with the reason in `test_failure`. */
int test_own_mounts(int more);

/* The folder of measurements that are not part of the project; where they are not here it says so and returns
 * NULL. */
const char *test_data(void);

#endif
