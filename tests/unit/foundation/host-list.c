/* Host lists: what people write, and the shortest way to write it again. That any list reads back the same:
 * fuzz-host-list. */
#include "engine/foundation/host-list.h"

#include "engine/foundation/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <unistd.h>

static void expect(const char *text, const char *expected) {
    cleanup(host_list_clear) struct host_list list = {0};
    cleanup(text_clear) struct text joined;
    struct failure failure = {0};
    text_init(&joined, 1 << 20);
    if (host_list_parse(&list, text, &failure) < 0)
        fail_msg("'%s': %s", text, failure.text);
    for (size_t i = 0; i < list.count; i++)
        assert_int_equal(text_printf(&joined, "%s%s", i > 0 ? " " : "", list.names[i]), 0);
    assert_string_equal(joined.bytes, expected);
}

static void expect_refused(const char *text, const char *sentence, unsigned column) {
    cleanup(host_list_clear) struct host_list list = {0};
    struct failure failure = {0};
    assert_int_equal(host_list_parse(&list, "first,second", &failure), 0);
    if (host_list_parse(&list, text, &failure) == 0)
        fail_msg("'%s' was taken", text);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    char place[64];
    snprintf(place, sizeof place, "at column %u of", column);
    if (!strstr(failure.text, sentence) || !strstr(failure.text, place))
        fail_msg("'%s': \"%s\" does not say \"%s\" and \"%s\"", text, failure.text, sentence, place);
    assert_int_equal(list.count, 2);
    assert_int_equal(host_list_parse(&list, "second,third", &failure), 0); /* still a list, without doubles */
    assert_int_equal(list.count, 3);
    assert_string_equal(list.names[2], "third");
}

TEST(entries) {
    expect("", "");
    expect(" ,\n\t, ", "");
    expect("a,b,c", "a b c");
    expect("a b\n\tc,\r\n", "a b c");
    expect("b,a,b,a", "b a");
    expect("root@dahu-1.grenoble:2222", "root@dahu-1.grenoble:2222");
    expect("10.0.0.[1-3]", "10.0.0.1 10.0.0.2 10.0.0.3");
    expect("a_b+c@x%y", "a_b+c@x%y");
}

TEST(ranges) {
    expect("dahu-[1-3].grenoble", "dahu-1.grenoble dahu-2.grenoble dahu-3.grenoble");
    expect("gros-[1-3,7,10-12]-bmc",
           "gros-1-bmc gros-2-bmc gros-3-bmc gros-7-bmc gros-10-bmc gros-11-bmc gros-12-bmc");
    expect("n[7]", "n7");
    expect("[1-2]", "1 2");
    expect("n[3,1,3,2]", "n3 n1 n2");
    expect("u[1-2]@h[1-2]:2[2-3]", "u1@h1:22 u1@h1:23 u1@h2:22 u1@h2:23 u2@h1:22 u2@h1:23 u2@h2:22 u2@h2:23");
    expect("a[1-2],b[1-2]", "a1 a2 b1 b2");
    expect("n[999999999999999998-999999999999999999]", "n999999999999999998 n999999999999999999");
}

TEST(widths) {
    expect("n[08-11]", "n08 n09 n10 n11");
    expect("n[8-11]", "n8 n9 n10 n11");
    expect("n[098-101]", "n098 n099 n100 n101");
    expect("n[99-101]", "n99 n100 n101");
    expect("n[01-3]", "n01 n02 n03");
    expect("n[0-2]", "n0 n1 n2");
    expect("n[00-02]", "n00 n01 n02");
    expect("n[1,01,001]", "n1 n01 n001");
}

TEST(several_brackets) {
    expect("rack[1-2]node[09-10]", "rack1node09 rack1node10 rack2node09 rack2node10");
    expect("[1-2][1-2]", "11 12 21 22");
    expect("a[1][2][3][4][5][6][7][8][9][1][2][3][4][5][6][7]", "a1234567891234567");
}

TEST(addresses) {
    expect("::1", "::1");
    expect("fe80::1%eth0", "fe80::1%eth0");
    expect("[fe80::1]:22", "[fe80::1]:22");
    expect("root@[fe80::1%eth0]:22,n[1-2]:22", "root@[fe80::1%eth0]:22 n1:22 n2:22");
    expect("n[1-2],[::1],[::2]:22", "n1 n2 [::1] [::2]:22");
    expect("fe80::[1-3]", "fe80::1 fe80::2 fe80::3");
}

TEST(refusals) {
    expect_refused("a,n[1-3", "not closed", 4);
    expect_refused("n[1-3 ]", "not closed", 2);
    expect_refused("n[3-1]", "3-1 runs backwards", 3);
    expect_refused("n[1-010]", "different numbers of digits", 3);
    expect_refused("n[]", "expected a number", 3);
    expect_refused("n[1-]", "expected a number", 5);
    expect_refused("n[-1]", "expected a number", 3);
    expect_refused("n[1,]", "expected a number", 5);
    expect_refused("n[1-2-3]", "expected ',', '-' or ']'", 6);
    expect_refused("n[a]", "expected a number", 3);
    expect_refused("n[[1]]", "expected a number", 3);
    expect_refused("n1]", "a ']' without a '['", 3);
    expect_refused("n[1234567890123456789]", "more than 18 digits", 3);
    expect_refused("a b;c", "';' is in no host name", 4);
    expect_refused("a\nb$(reboot)", "'$' is in no host name", 4);
    expect_refused("a/b", "'/' is in no host name", 2);
    expect_refused("a\x01", "a byte that is in no host name", 2);
    expect_refused("d\xc3\xa9j\xc3\xa0", "a byte that is in no host name", 2);
    expect_refused("a,-oProxyCommand=x", "is in no host name", 17);
    expect_refused("a,-la", "begins with '-'", 3);
    expect_refused("a,root@-v", "begins with '-'", 3);
    expect_refused("@a", "no user", 1);
    expect_refused("a@", "names no host", 1);
    expect_refused("a@b@c", "two '@'", 1);
    expect_refused("...", "names no host", 1);
    expect_refused("[fe80::1,2]", "no address has", 9);
    expect_refused("[1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1]", "more than 16 brackets", 49);
}

TEST(limits) {
    expect_refused("n[1-65537]", "more than 65536 numbers", 2);
    expect_refused("n[0-999999999999999999]", "more than 65536 numbers", 2);
    expect_refused("n[1-40000,1-40000]", "more than 65536 numbers", 2);
    expect_refused("n[1-257]m[1-256]", "more than 65536 hosts", 1);
    expect_refused("n[1-65536]m[1-65536]m[1-65536]m[1-65536]m[1-65536]", "more than 65536 hosts", 1);
    expect_refused("n[1-65535]", "more than 65536 hosts", 1); /* two are there already */
    char name[2 * HOST_BYTES_MAX];
    memset(name, 'n', sizeof name);
    memcpy(name + HOST_BYTES_MAX - 1, "[9]", 4);
    cleanup(host_list_clear) struct host_list list = {0};
    assert_int_equal(host_list_parse(&list, name, &test_failure), 0);
    assert_int_equal(strlen(list.names[0]), HOST_BYTES_MAX);
    memcpy(name + HOST_BYTES_MAX - 1, "[9-10]", 7);
    expect_refused(name, "more than 255 bytes", 1);
    memcpy(name + HOST_BYTES_MAX - 1, "nnn", 4);
    expect_refused(name, "more than 255 bytes", 1);
    assert_int_equal(host_list_parse(&list, "n[1-65535]", &test_failure), 0);
    assert_int_equal(list.count, HOST_LIST_MAX);
    assert_int_equal(host_list_parse(&list, "n[500-600]", &test_failure), 0); /* there already: still fine */
    assert_int_equal(host_list_add(&list, "one-more", &test_failure), -EFBIG);
    assert_int_equal(list.count, HOST_LIST_MAX);
}

TEST(names_are_added) {
    cleanup(host_list_clear) struct host_list list = {0};
    struct failure failure = {0};
    assert_int_equal(host_list_add(&list, "[fe80::1]:22", &failure), 0);
    assert_int_equal(host_list_add(&list, "n1", &failure), 0);
    assert_int_equal(host_list_add(&list, "n1", &failure), 0);
    assert_int_equal(list.count, 2);
    static const char *const bad[] = {"", "-x", "a b", "a,b", "a;b", "a\n", "@"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        failure = (struct failure){0};
        assert_int_equal(host_list_add(&list, bad[i], &failure), -EINVAL);
        assert_int_equal(failure.kind, FAILURE_INPUT);
    }
    assert_int_equal(list.count, 2);
}

static void expect_file(const char *content, const char *expected, const char *place) {
    char path[] = "/tmp/assay-host-list.XXXXXX";
    int descriptor = mkostemp(path, O_CLOEXEC);
    assert_true(descriptor >= 0);
    assert_int_equal(file_write_all(descriptor, content, strlen(content)), 0);
    close(descriptor);
    cleanup(host_list_clear) struct host_list list = {0};
    struct failure failure = {0};
    int r = host_list_read(&list, path, &failure);
    unlink(path);
    if (place) {
        char full[128];
        snprintf(full, sizeof full, "%s%s", path, place);
        assert_int_equal(r, -EINVAL);
        assert_string_equal(failure.place, full);
        assert_non_null(strstr(failure.text, expected));
        assert_int_equal(list.count, 0);
        return;
    }
    assert_int_equal(r, 0);
    cleanup(text_clear) struct text folded;
    text_init(&folded, 4096);
    assert_int_equal(host_list_fold((const char *const *)list.names, list.count, &folded), 0);
    assert_string_equal(folded.bytes, expected);
}

TEST(files) {
    expect_file("", "", NULL);
    expect_file("# nodes\nn[1-2] n3 # three\n\n  n4,n5\r\nfront", "front,n[1-5]", NULL);
    expect_file("n1#comment[\n#", "n1", NULL);
    expect_file("\xef\xbb\xbfn1\r\nn2\r\n", "n[1-2]", NULL); /* a byte order mark */
    expect_file("n1\nn2\n  n3 n[4\nn5\n", "not closed", ":3:7");
    expect_file("ok\nnot/ok", "'/' is in no host name", ":2:4");
    struct failure failure = {0};
    struct host_list list = {0};
    assert_true(host_list_read(&list, "/nonexistent/nodes", &failure) < 0);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    assert_non_null(strstr(failure.text, "/nonexistent/nodes"));
}

/* ---- folding */

static void expect_folded(const char *text, const char *expected) {
    cleanup(host_list_clear) struct host_list list = {0};
    cleanup(text_clear) struct text folded;
    text_init(&folded, 1 << 20);
    assert_int_equal(host_list_parse(&list, text, &test_failure), 0);
    assert_int_equal(host_list_fold((const char *const *)list.names, list.count, &folded), 0);
    assert_string_equal(folded.bytes, expected);
}

TEST(fold) {
    expect_folded("", "");
    expect_folded("front", "front");
    expect_folded("dahu-7.grenoble,dahu-2.grenoble,front,dahu-1.grenoble,dahu-3.grenoble",
                  "dahu-[1-3,7].grenoble,front");
    expect_folded("dahu-1.grenoble.grid5000.fr,dahu-10.grenoble.grid5000.fr,dahu-2.grenoble.grid5000.fr",
                  "dahu-[1-2,10].grenoble.grid5000.fr");
    expect_folded("n9,n10,n08,n09,n11", "n[08-09,9-11]");
    expect_folded("n08,n09,n10", "n[08-10]");
    expect_folded("n099,n100,n101,n98", "n[98,099-101]");
    expect_folded("n1,n01,n001", "n[001,01,1]");
    expect_folded("n0,n00", "n[0,00]");
    expect_folded("rack[1-2]node[01-16]", "rack[1-2]node[01-16]");
    expect_folded("rack1node[01-16],rack2node[01-15]", "rack1node[01-16],rack2node[01-15]");
    expect_folded("c[1-2]r[1-2]n[1-2]", "c[1-2]r[1-2]n[1-2]");
    expect_folded("n1-1,n2-2,n3-3", "n1-1,n2-2,n3-3");
    expect_folded("n,n1,n1a,n1b", "n,n1,n1a,n1b");
    expect_folded("n2x,n10x,n10,n2", "n[2,10],n[2,10]x");
    expect_folded("10.0.0.1,10.0.1.1,10.0.0.2", "10.0.0.[1-2],10.0.1.1");
    expect_folded("[fe80::1]:22,[fe80::2]:22", "[fe80::1]:22,[fe80::2]:22");
    expect_folded("fe80::1,fe80::2", "fe80::[1-2]");
    expect_folded("n1234567890123456789,n1234567890123456790", "n1234567890123456789,n1234567890123456790");
    expect_folded("1,2,3", "[1-3]");
}

TEST(fold_drops_doubles_and_keeps_to_the_limit) {
    static const char *const names[] = {"b", "n2", "n1", "n2", "b"};
    cleanup(text_clear) struct text folded;
    text_init(&folded, 4096);
    assert_int_equal(text_append_string(&folded, "on "), 0);
    assert_int_equal(host_list_fold(names, 5, &folded), 0);
    assert_string_equal(folded.bytes, "on b,n[1-2]");
    cleanup(text_clear) struct text small;
    text_init(&small, 4);
    assert_int_equal(host_list_fold(names, 5, &small), -EFBIG);
    assert_int_equal(small.length, 0);
    assert_string_equal(small.bytes, "");
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Folding and parsing again gives the same set; returns the length of the folded text. */
static size_t check_round_trip(const struct host_list *list) {
    cleanup(host_list_clear) struct host_list again = {0};
    cleanup(text_clear) struct text folded;
    struct failure failure = {0};
    text_init(&folded, 64 << 20);
    assert_int_equal(host_list_fold((const char *const *)list->names, list->count, &folded), 0);
    if (host_list_parse(&again, folded.bytes, &failure) < 0)
        fail_msg("%.200s: %s", folded.bytes, failure.text);
    assert_int_equal(again.count, list->count);
    char **a = malloc(list->count * sizeof *a), **b = malloc(list->count * sizeof *b);
    memcpy(a, list->names, list->count * sizeof *a);
    memcpy(b, again.names, list->count * sizeof *b);
    qsort(a, list->count, sizeof *a, compare_names);
    qsort(b, list->count, sizeof *b, compare_names);
    for (size_t i = 0; i < list->count; i++)
        assert_string_equal(a[i], b[i]);
    free(a);
    free(b);
    return folded.length;
}

/* Were any step of it quadratic, it would take minutes, and ctest would end it. */
TEST(many_names) {
    cleanup(host_list_clear) struct host_list list = {0};
    assert_int_equal(host_list_parse(&list, "dahu-[1-10000].grenoble.grid5000.fr", &test_failure), 0);
    size_t length = check_round_trip(&list);
    assert_int_equal(length, strlen("dahu-[1-10000].grenoble.grid5000.fr"));
    host_list_clear(&list);
    for (unsigned i = 0; i < HOST_LIST_MAX; i++) { /* nothing to fold: the slow case */
        char name[64];
        snprintf(name, sizeof name, "r%uc%un%u", i % 251, i % 241, i);
        assert_int_equal(host_list_add(&list, name, &test_failure), 0);
    }
    check_round_trip(&list);
}
