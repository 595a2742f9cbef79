/* datapackage.json: what is written is what is read, and what is not understood. */
#include "archive-format/datapackage.h"
#include "archive-format/reader.h"
#include "engine/documents/document.h"
#include "engine/foundation/file.h"
#include "tests/test.h"

static int parse(const char *text, const char *table, struct archive_columns *ret) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    test_put("run/run.json", "{\"archive_version\": \"1.0\"}");
    test_put("run/datapackage.json", text);
    assert_ok(archive_open(test_path("run"), &archive, &test_failure));
    return archive_table_columns(archive, table, ret, &test_failure);
}

TEST(round_trip) {
    static const struct column columns[] = {
        {"row", COLUMN_INTEGER, "", COLUMN_ROLE_ID, NULL, .help = "row of the \"design\""},
        {"m", COLUMN_INTEGER, "1", COLUMN_ROLE_FACTOR, "", .help = ""},
        {"start", COLUMN_INTEGER, "ns", COLUMN_ROLE_TIME, "Start", .help = "since 1970"},
        {"duration", COLUMN_NUMBER, "s", COLUMN_ROLE_RESPONSE, "Time", .help = NULL},
        {"speed", COLUMN_NUMBER, "furlong/fortnight", COLUMN_ROLE_COVARIATE, .label = NULL},
        {"ok", COLUMN_BOOLEAN, NULL, COLUMN_ROLE_NONE, .label = NULL},
        {"node", COLUMN_STRING, "", COLUMN_ROLE_ID, .label = NULL},
    };
    enum { COUNT = sizeof columns / sizeof *columns };
    static const struct column stamps[] = {{"at", COLUMN_TIME, "", COLUMN_ROLE_TIME, .label = NULL}};
    const struct archive_table tables[] = {{"design.csv", "The design", columns, 2},
                                           {"results/Results.csv", NULL, columns, COUNT},
                                           {"stamps.csv", NULL, stamps, 1}};
    const char *path = test_path("datapackage.json");
    assert_ok(archive_write_datapackage(path, "sample", tables, 3, &test_failure));
    const char *text = test_read(path, NULL);
    cleanup(archive_columns_clear) struct archive_columns found = {0};
    assert_ok(parse(text, "results/Results.csv", &found));
    assert_int_equal(found.count, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_string_equal(found.items[i].name, columns[i].name);
        /* Integers that count time are numbers there: readers in JavaScript refuse integers above 2^53. */
        bool is_stamp = columns[i].role == COLUMN_ROLE_TIME;
        assert_int_equal(found.items[i].type, is_stamp ? COLUMN_NUMBER : columns[i].type);
        assert_int_equal(found.items[i].role, columns[i].role);
        assert_string_equal(found.items[i].unit ? found.items[i].unit : "",
                            columns[i].unit ? columns[i].unit : "");
        bool has_label = columns[i].label && columns[i].label[0]; /* without one its name is shown */
        assert_true(text_is_same(found.items[i].label, has_label ? columns[i].label : NULL));
        assert_string_equal(found.items[i].help, columns[i].help ? columns[i].help : "");
    }
    assert_null(archive_columns_find(&found, "Duration"));
    assert_non_null(strstr(text, "\"http://qudt.org/vocab/unit/SEC\""));
    assert_non_null(strstr(text, "\"name\": \"results-results\""));
    assert_null(strstr(text, "fieldsMatch"));
    /* The default format of a datetime has no fractions of seconds, which our times have. */
    const char *stamp = strstr(text, "\"datetime\"");
    assert_non_null(stamp);
    assert_non_null(strstr(stamp, "\"format\": \"any\""));
}

TEST(refused_tables) {
    const struct column twice[] = {{.name = "a"}, {.name = "b"}, {.name = "a"}};
    const struct column unnamed[] = {{.name = "a"}, {.name = ""}};
    const struct archive_table tables[] = {{"a.csv", "", twice, 3}, {"b.csv", "", unnamed, 2}};
    const char *other = test_path("other.json");
    assert_int_equal(archive_write_datapackage(other, "x", &tables[0], 1, &test_failure), -EINVAL);
    assert_string_equal(test_failure.text, "'a.csv' has two columns called 'a'");
    assert_int_equal(archive_write_datapackage(other, "x", &tables[1], 1, &test_failure), -EINVAL);
    assert_string_equal(test_failure.text, "column 2 of 'b.csv' has no name");
    assert_false(file_exists(other));
}

TEST(later_versions) {
    static const char text[] =
        "{\"resources\":[{\"path\":\"r.csv\",\"novelty\":1,\"schema\":{\"fields\":[{\"name\":\"a\",\"type\":"
        "\"geopoint\",\"role\":\"weight\",\"unit\":7,\"novelty\":[1]},{\"name\":\"b\"}]}}]}";
    cleanup(archive_columns_clear) struct archive_columns found = {0};
    assert_ok(parse(text, "r.csv", &found));
    assert_int_equal(found.count, 2);
    assert_int_equal(found.items[0].type, COLUMN_STRING);
    assert_int_equal(found.items[0].role, COLUMN_ROLE_NONE);
    assert_null(found.items[0].unit);
}

TEST(damaged) {
    static const struct {
        const char *text, *reason;
        enum failure_kind kind;
    } cases[] = {
        {"{}", "there are no resources", FAILURE_VERIFICATION},
        {"{\"resources\":{}}", "there are no resources", FAILURE_VERIFICATION},
        {"[]", "there are no resources", FAILURE_VERIFICATION},
        {"{\"resources\":[{\"path\":\"r.csv\"}]}", "the table has no schema.fields", FAILURE_VERIFICATION},
        {"{\"resources\":[{\"path\":\"r.csv\",\"schema\":{\"fields\":[]}}]}",
         "the table has no schema.fields", FAILURE_VERIFICATION},
        {"{\"resources\":[{\"path\":\"r.csv\",\"schema\":{\"fields\":[{\"name\":\"a\"},{}]}}]}",
         "the column has no name", FAILURE_VERIFICATION},
        {"{\"resources\":[{\"path\":\"r.csv\",\"schema\":{\"fields\":[{\"name\":\"a\"},3]}}]}",
         "the column has no name", FAILURE_VERIFICATION},
        {"{\"resources\":[{\"path\":\"x.csv\"},{\"path\":\"y.csv\"}]}",
         "there is no table 'r.csv'; there is 'x.csv', 'y.csv'", FAILURE_INPUT},
        {"{\"resources\":[]}", "there is no table 'r.csv'; there is none", FAILURE_INPUT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct archive_columns found = {.count = 77};
        print_message("%s\n", cases[i].text);
        assert_true(parse(cases[i].text, "r.csv", &found) < 0);
        assert_says(test_failure.text, cases[i].reason);
        assert_int_equal(test_failure.kind, cases[i].kind);
        assert_int_equal(found.count, 77); /* untouched */
    }
}
