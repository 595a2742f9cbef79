#include "tests/test.h"
#include "engine/foundation/file.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
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

/* Paths of folders that are removed: when the program ends, and after the running test. */
static struct path {
    struct path *next;
    char text[];
} * folders, *own_folders, *paths;

static char *add_path(struct path **list, const char *in, const char *name) {
    size_t size = strlen(in) + strlen(name) + 2;
    struct path *path = malloc(sizeof *path + size);
    assert_non_null(path);
    snprintf(path->text, size, "%s/%s", in, name);
    path->next = *list;
    *list = path;
    return path->text;
}

static const char *make_folder(struct path **list, const char *in) {
    char *path = add_path(list, in, "assay-unit-XXXXXX");
    if (!mkdtemp(path))
        fail_msg("%s: %s", path, strerror(errno));
    return path;
}

/* 0, or a negative errno of one that cannot be removed. */
static int remove_folders(struct path **list) {
    int r = 0;
    for (struct path *next; *list; *list = next) {
        int removed = file_remove_tree((*list)->text, &test_failure);
        if (removed < 0)
            print_error("%s\n", test_failure.text);
        r = r < 0 ? r : removed;
        next = (*list)->next;
        free(*list);
    }
    return r;
}

const char *test_folder(void) {
    return folders ? folders->text : make_folder(&folders, "/tmp");
}

const char *test_own_folder(void) {
    return make_folder(&own_folders, "/tmp");
}

const char *test_memory_folder(void) {
    return make_folder(&own_folders, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
}

const char *test_path(const char *name) {
    return add_path(&paths, test_folder(), name);
}

const char *test_put_in(const char *folder, const char *name, const void *bytes, size_t length, mode_t mode) {
    char *path = add_path(&paths, folder, name), *slash = strrchr(path, '/');
    *slash = '\0';
    assert_ok(file_make_folders(path, &test_failure));
    *slash = '/';
    assert_ok(file_replace(path, bytes, length, mode, &test_failure));
    return path;
}

const char *test_put(const char *name, const char *text) {
    return test_put_in(test_folder(), name, text, strlen(text), 0600);
}

char *test_read(const char *path, size_t *ret_length) {
    static struct text kept[8];
    static unsigned next;
    struct text *text = &kept[next++ % 8];
    text_clear(text);
    text_init(text, 256 << 20);
    assert_ok(file_read(path, text, &test_failure));
    if (ret_length)
        *ret_length = text->length;
    return text->bytes;
}

const char *test_formatted(const char *format, ...) {
    static char buffers[8][4096];
    static unsigned next;
    char *buffer = buffers[next++ % 8];
    va_list arguments;
    va_start(arguments, format);
    assert_in_range(vsnprintf(buffer, sizeof buffers[0], format, arguments), 0, sizeof buffers[0] - 1);
    va_end(arguments);
    return buffer;
}

static int begin(void **state) {
    test_forget();
    return each[0] ? each[0](state) : 0;
}

static int end(void **state) {
    int r = each[1] ? each[1](state) : 0, removed = remove_folders(&own_folders);
    return r ? r : removed;
}

int test_run(void) {
    for (size_t i = 0; i < test_count; i++) {
        tests[i].setup_func = begin;
        tests[i].teardown_func = end;
    }
    int r = _cmocka_run_group_tests(program_invocation_short_name, tests, test_count, group[0], group[1]);
    (void)remove_folders(&own_folders);
    (void)remove_folders(&folders);
    return r;
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

struct failure test_failure;

void test_forget(void) {
    test_failure = (struct failure){0};
}

void test_ok(const char *file, int line, int result) {
    if (result == 0)
        return;
    print_error("%d; expected 0: %s: %s\n", result, test_failure.place, test_failure.text);
    _fail(file, line);
}

void test_error(const char *file, int line, int result, int code, const char *part) {
    if (result == code && strstr(test_failure.text, part))
        return;
    print_error("%d, '%s'; expected %d, '%s'\n", result, test_failure.text, code, part);
    _fail(file, line);
}

void test_refused(const char *file, int line, int result, const char *place, const char *part) {
    if (result < 0 && test_failure.kind == FAILURE_INPUT && strcmp(test_failure.place, place) == 0 &&
        strstr(test_failure.text, part))
        return;
    print_error("%d, kind %d, %s: %s; expected %s: %s\n", result, (int)test_failure.kind, test_failure.place,
                test_failure.text, place, part);
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

double test_normal(void) {
    double u = test_random(), v = test_random();
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

const char *test_build(void) {
    const char *build = getenv("ASSAY_BUILD");
    return build ? build : "build";
}

const char *test_agent(void) {
    static const char *path;
    const char *agent = getenv("ASSAY_AGENT");
    path = path ? path : add_path(&paths, test_build(), "libexec/assay/assay-agent");
    return agent ? agent : path;
}

void test_skip(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_message("SKIPPED: ");
    vprint_message(format, arguments);
    print_message("\n");
    va_end(arguments);
    skip();
    abort();
}

void test_need_root(void) {
    if (geteuid() != 0)
        test_skip("only root can make what belongs to other users");
}

int test_own_mounts(int more) {
    if (unshare(CLONE_NEWNS | more) < 0)
        return failure_set(&test_failure, -errno,
                           "a process may not have mounts of its own here: unshare: %s", strerror(errno));
    /* Nothing that is mounted from here on is seen outside. EINVAL after chroot to a folder that is no mount.
     */
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return failure_set(&test_failure, -errno,
                           "a process may not have mounts of its own here: '/' cannot be made private: %s",
                           strerror(errno));
    if (mount("none", test_folder(), "tmpfs", 0, "size=4k") < 0 || umount2(test_folder(), MNT_DETACH) < 0)
        return failure_set(&test_failure, -errno, "a process may not have mounts of its own here: mount: %s",
                           strerror(errno));
    return 0;
}

bool test_can_own_mounts(int more) {
    int pipes[2];
    (void)test_folder(); /* made, and removed, by this process */
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        int r = test_own_mounts(more);
        (void)!write(pipes[1], &test_failure, sizeof test_failure);
        _exit(r < 0);
    }
    close(pipes[1]);
    struct failure found;
    bool told = read(pipes[0], &found, sizeof found) == sizeof found;
    close(pipes[0]);
    int status;
    assert_true(waitpid(child, &status, 0) == child && told && WIFEXITED(status));
    if (status != 0)
        test_failure = found;
    return status == 0;
}

void test_need_own_mounts(int more) {
    if (!test_can_own_mounts(more))
        test_skip("%s", test_failure.text);
}

void test_need_mounts(void) {
    if (mount("none", test_folder(), "tmpfs", 0, "size=4k") == 0) {
        assert_int_equal(umount2(test_folder(), MNT_DETACH), 0);
        return;
    }
    assert_int_equal(errno, EPERM);
    test_skip("no file system may be mounted here");
}

const char *test_data(void) {
    static char data[4096];
    const char *set = getenv("ASSAY_TEST_DATA"), *source = getenv("ASSAY_SOURCE");
    snprintf(data, sizeof data, "%s%s", set ? set : source ? source : ".", set ? "" : "/../shared/data");
    if (access(data, R_OK) == 0)
        return data;
    print_message("SKIPPED: the measurements are not here (no folder '%s'; ASSAY_TEST_DATA names it)\n",
                  data);
    return NULL;
}
