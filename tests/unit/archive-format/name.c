/* Which names are taken, and which cannot stand beside each other. */
#include "archive-format/name.h"
#include "archive-format/writer.h"
#include "tests/test.h"

TEST(names) {
    static const char *const taken[] = {"a",   "run.json", "nodes/n-1.site/raw/os-release",
                                        "...", "a..b/..c", "-rf"};
    static const char *const dangerous[] = {"",    "/",     "/a", "a/",   "a//b", ".",    "..",    "a/..",
                                            "./a", "a/./b", "C:", "c:/a", "a\\b", "a\tb", "a\x7f", "a/../b"};
    static const char *const other[] = {"a b", "ab:c", "\xc3\xa9", "a*", "~a", "a\xff"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        assert_null(archive_name_problem(taken[i]));
    for (size_t i = 0; i < sizeof dangerous / sizeof *dangerous; i++) {
        if (!archive_name_danger(dangerous[i]))
            fail_msg("'%s' is taken", dangerous[i]);
        assert_non_null(archive_name_problem(dangerous[i]));
    }
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        assert_null(archive_name_danger(other[i]));
        assert_non_null(archive_name_problem(other[i]));
    }
    char name[514];
    memset(name, 'a', sizeof name);
    name[513] = '\0';
    assert_non_null(archive_name_problem(name));
    name[512] = '\0';
    assert_null(archive_name_problem(name));
}

TEST(order_puts_a_folder_before_what_is_in_it) {
    static const char *const ordered[] = {"A", "a/b", "a/B/c", "A-b", "a.b", "Ab", "b"};
    for (size_t i = 0; i < sizeof ordered / sizeof *ordered; i++)
        for (size_t k = 0; k < sizeof ordered / sizeof *ordered; k++) {
            int order = archive_name_compare(ordered[i], ordered[k]);
            assert_true(i < k ? order < 0 : i > k ? order > 0 : order == 0);
        }
    assert_int_equal(archive_name_compare("Results/A.csv", "results/a.CSV"), 0);
}

TEST(conflicts) {
    static const struct {
        const char *a;
        bool folder;
        const char *b, *conflict;
    } cases[] = {
        {"a", false, "a", "is there twice"},
        {"a", true, "a", "is there twice"},
        {"a", false, "A", "differs only in"},
        {"a", false, "a/b", "is a file and a folder at once"},
        {"a", true, "a/b", NULL},
        {"a", true, "A/b", "differs only in"},
        {"x/a/1", false, "x/A/2", "differs only in"},
        {"x/a/1", false, "X/a/2", "differs only in"},
        {"x/a/1", false, "x/a/2", NULL},
        {"x/a1", false, "x/A2", NULL}, /* different names: the case of what differs does not matter */
        {"ab", false, "ac", NULL},
        {"a", false, "ab/c", NULL},
        {"a/b", false, "b", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *conflict = archive_name_conflict(cases[i].a, cases[i].folder, cases[i].b);
        if (!conflict != !cases[i].conflict || (conflict && !strstr(conflict, cases[i].conflict)))
            fail_msg("'%s' and '%s': %s; expected %s", cases[i].a, cases[i].b, conflict ? conflict : "none",
                     cases[i].conflict ? cases[i].conflict : "none");
    }
}

TEST(shown) {
    char buffer[ARCHIVE_NAME_SHOWN_SIZE], name[300];
    assert_string_equal(archive_name_show("a\nb\x1b[0m\xc3\xa9", buffer), "a?b?[0m??");
    memset(name, 'a', sizeof name);
    name[299] = '\0';
    archive_name_show(name, buffer);
    assert_int_equal(strlen(buffer), ARCHIVE_NAME_SHOWN_SIZE - 1);
    assert_string_equal(buffer + ARCHIVE_NAME_SHOWN_SIZE - 4, "...");
}
