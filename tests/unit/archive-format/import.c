/* Imports: what local times mean, and zips of other programs. */
#include "archive-format/import/imported.h"
#include "archive-format/reader.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "tests/test.h"
#include "tests/unit/archive-format/zip-builder.h"

/* Summer time in France begins and ends at 01:00 UTC on the last Sundays of March and October. */
TEST(local_times_become_utc) {
    static const struct import_zone unknown = {0}, france = {.kind = ZONE_FRANCE},
                                    fixed = {.kind = ZONE_FIXED, .offset_ns = -INT64_C(5400000000000)};
    static const struct {
        const struct import_zone *zone;
        const char *text, *utc; /* NULL: refused */
    } cases[] = {
        {&france, "2020-05-13 18:37:13.444088", "2020-05-13T16:37:13.444088000Z"},
        {&france, "2020-12-13 18:37:13", "2020-12-13T17:37:13.000000000Z"},
        {&france, "2021-03-28 01:59:59", "2021-03-28T00:59:59.000000000Z"},
        {&france, "2021-03-28 03:00:00", "2021-03-28T01:00:00.000000000Z"},
        {&france, "2021-10-31 01:59:59", "2021-10-30T23:59:59.000000000Z"},
        {&france, "2021-10-31 02:59:59", "2021-10-31T00:59:59.000000000Z"},
        {&france, "2021-10-31 03:00:00", "2021-10-31T02:00:00.000000000Z"},
        {&france, "2020-05-13T18:37:13+00:00", "2020-05-13T18:37:13.000000000Z"},
        {&fixed, "2020-05-13 18:00:00", "2020-05-13T19:30:00.000000000Z"},
        {&unknown, "1589387833.5", "2020-05-13T16:37:13.500000000Z"},
        {&unknown, "2020-05-13T18:37:13.25+02:00", "2020-05-13T16:37:13.250000000Z"},
        {&unknown, "2020-05-13 18:37:13", NULL},
        {&france, "2020-05-13", NULL},
        {&france, "2020-05-13x18:37:13", NULL},
        {&france, "2020-05-13 18:37:13 and much more text than a time can have", NULL},
        {&france, "-1", NULL},
        {&france, "235.83", NULL},
        {&france, "1e300", NULL},
        {&france, "", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char shown[CLOCK_TEXT_SIZE] = "refused";
        int64_t at;
        if (import_time(cases[i].zone, cases[i].text, &at))
            clock_format_ns(at, shown);
        assert_string_equal(shown, cases[i].utc ? cases[i].utc : "refused");
    }
}

/* The rules of zips hold for those of other programs: all but what makes one an archive of assay. */
TEST(zips_of_others_keep_to_the_same_rules) {
    static const struct {
        struct build_member member;
        const char *why; /* NULL: taken */
    } cases[] = {
        {{.name = "info.yaml", .bytes = "a", .length = 1}, NULL},
        {{.name = "../info.yaml"}, "climbs out"},
        {{.name = "/info.yaml"}, "absolute"},
        {{.name = "a b"}, "a byte other than"},
        {{.name = "info.yaml", .mode = 0120777}, "symbolic link"},
        {{.name = "info.yaml", .bytes = "a", .length = 1, .local_size_off = 1}, "described differently"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup(archive_cleanup) struct archive_reader *archive = NULL;
        cleanup(text_clear) struct text zip;
        text_init(&zip, 1 << 20);
        struct build build = {.members = {cases[i].member}, .count = 1};
        build_zip(&build, &zip);
        const char *path = test_path("other.zip");
        assert_ok(file_write_output(path, zip.bytes, zip.length, &test_failure));
        int r = archive_open_foreign(path, &archive, &test_failure);
        if (cases[i].why)
            assert_non_null(strstr(test_failure.text, cases[i].why));
        assert_int_equal(r < 0, cases[i].why != NULL);
    }
}
