/* Binding: every type, and every complaint with its place. */
#include "engine/documents/bind.h"
#include "tests/test.h"

struct target {
    char *name;
    bool turbo;
    int64_t repetitions, seed;
    double share, length, factor, low, high;
    int order;
    struct bind_texts packages;
    const struct document_node *design, *any;
};

static const char *const orders[] = {"random", "as-written", NULL};
static const char *const single[] = {"only", NULL};
#define MEMBER(name) .offset = offsetof(struct target, name)
static const struct bind_field fields[] = {
    {.key = "name", .type = BIND_TEXT, MEMBER(name), .required = true},
    {.key = "turbo", .type = BIND_BOOLEAN, MEMBER(turbo)},
    {.key = "repetitions", .type = BIND_INTEGER, MEMBER(repetitions), .minimum = 1, .maximum = 1000000},
    {.key = "seed", .type = BIND_INTEGER, MEMBER(seed)},
    {.key = "share", .type = BIND_NUMBER, MEMBER(share), .minimum = 0, .maximum = 0.5},
    {.key = "factor", .type = BIND_NUMBER, MEMBER(factor)},
    {.key = "low", .type = BIND_NUMBER, MEMBER(low), .minimum = 1, .maximum = INFINITY},
    {.key = "high", .type = BIND_NUMBER, MEMBER(high), .minimum = -INFINITY, .maximum = 9},
    {.key = "length",
     .type = BIND_QUANTITY,
     MEMBER(length),
     .dimension = UNIT_TIME,
     .minimum = 1,
     .maximum = 3600},
    {.key = "order", .type = BIND_CHOICE, MEMBER(order), .choices = orders},
    {.key = "packages", .type = BIND_TEXTS, MEMBER(packages)},
    {.key = "design",
     .type = BIND_NODE,
     MEMBER(design),
     .kinds = 1 << DOCUMENT_MAPPING | 1 << DOCUMENT_SEQUENCE},
    {.key = "any", .type = BIND_NODE, MEMBER(any)},
};
enum { FIELDS = sizeof fields / sizeof *fields };

static struct document *parse(const char *yaml) {
    struct document *document = NULL;
    struct failure failure = {0};
    if (document_parse_yaml("c.yaml", yaml, strlen(yaml), &document, &failure) < 0)
        fail_msg("%s: %s", failure.place, failure.text);
    return document;
}

static void refuse(const char *yaml, const char *expected) {
    struct document *document = parse(yaml);
    struct target target = {.repetitions = 42};
    struct failure failure = {0};
    char text[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE];
    assert_int_equal(bind_mapping(document, document->root, "campaign", fields, FIELDS, &target, &failure),
                     -EINVAL);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    assert_string_equal(failure_describe(&failure, text, sizeof text), expected);
    assert_int_equal(target.repetitions, 42);
    bind_clear(fields, FIELDS, &target);
    document_free(document);
}

TEST(every_type) {
    struct document *document =
        parse("name: 12\nturbo: false\nrepetitions: 1e3\nseed: -9223372036854775808\nshare: .25\n"
              "length: 10 min\norder: as-written\npackages: [gcc, 1.5, true]\n"
              "design: {rows: 3}\nany: 7\nlow: 1e9\nhigh: -1e9\nfactor: 5\n");
    struct target target = {.name = strdup("default"), .turbo = true};
    assert_int_equal(
        bind_mapping(document, document->root, "campaign", fields, FIELDS, &target, &test_failure), 0);
    assert_string_equal(target.name, "12"); /* the literal; the default was freed */
    assert_false(target.turbo);
    assert_int_equal(target.repetitions, 1000);
    assert_true(target.seed == INT64_MIN);
    assert_true(target.share == 0.25 && target.length == 600 && target.low == 1e9 && target.high == -1e9);
    assert_int_equal(target.order, 1);
    assert_int_equal(target.packages.count, 3);
    assert_string_equal(target.packages.items[1], "1.5");
    assert_ptr_equal(target.design, document_get(document->root, "design"));
    assert_int_equal(target.any->kind, DOCUMENT_NUMBER);
    bind_clear(fields, FIELDS, &target);
    assert_null(target.name);
    assert_null(target.packages.items);
    bind_clear(fields, FIELDS, &target);
    document_free(document);
}

TEST(defaults_stay) {
    struct document *document = parse("name: x\npackages: one\n");
    struct target target = {.turbo = true, .repetitions = 5, .order = 1, .share = 0.1};
    assert_int_equal(
        bind_mapping(document, document->root, "campaign", fields, FIELDS, &target, &test_failure), 0);
    assert_true(target.turbo && target.repetitions == 5 && target.order == 1 && target.share == 0.1);
    assert_int_equal(target.packages.count, 1); /* one scalar is a list of one */
    assert_string_equal(target.packages.items[0], "one");
    bind_clear(fields, FIELDS, &target);
    document_free(document);
}

TEST(unknown_and_missing) {
    refuse("name: a\ntubro: true\n", "c.yaml:2:1: 'tubro' is not a key of campaign; did you mean 'turbo'?");
    refuse("name: a\n  \nxyz: 1\n",
           "c.yaml:3:1: 'xyz' is not a key of campaign, expected one of 'name', 'turbo', 'repetitions', "
           "'seed', 'share', "
           "'factor', 'low', 'high', 'length', 'order', 'packages', 'design', 'any'");
    refuse("name: a\nTurbo: true\n", "c.yaml:2:1: 'Turbo' is not a key of campaign; did you mean 'turbo'?");
    refuse("turbo: true\n", "c.yaml:1:1: campaign has no 'name', which it must have");
    refuse("# x\n\n  turbo: true\n", "c.yaml:3:3: campaign has no 'name', which it must have");
    refuse("- a\n", "c.yaml:1:1: campaign is a sequence, expected a mapping");
    refuse("text", "c.yaml:1:1: campaign is 'text', expected a mapping");
    refuse("---\n", "c.yaml:2:1: campaign is nothing, expected a mapping");
}

TEST(wrong_types) {
    refuse("name:\n", "c.yaml:1:6: 'name' is nothing, expected text");
    refuse("name: [a]\n", "c.yaml:1:7: 'name' is a sequence, expected text");
    refuse("turbo: yes\n", "c.yaml:1:8: 'turbo' is 'yes', expected true or false");
    refuse("turbo: 'true'\n", "c.yaml:1:8: 'turbo' is 'true' in quotes, expected true or false");
    refuse("repetitions: many\n",
           "c.yaml:1:14: 'repetitions' is 'many', expected a whole number from 1 to 1000000");
    refuse("repetitions: 1.5\n",
           "c.yaml:1:14: 'repetitions' is '1.5', expected a whole number from 1 to 1000000");
    refuse("repetitions: 0\n",
           "c.yaml:1:14: 'repetitions' is '0', expected a whole number from 1 to 1000000");
    refuse("repetitions: 1000001\n",
           "c.yaml:1:14: 'repetitions' is '1000001', expected a whole number from 1 to 1000000");
    refuse("repetitions: \"5\"\n",
           "c.yaml:1:14: 'repetitions' is '5' in quotes, expected a whole number from 1 to 1000000");
    refuse("repetitions: [5]\n",
           "c.yaml:1:14: 'repetitions' is a sequence, expected a whole number from 1 to 1000000");
    refuse("seed: 9223372036854775808\n",
           "c.yaml:1:7: 'seed' is '9223372036854775808', expected a whole number");
    refuse("seed: 1e19\n", "c.yaml:1:7: 'seed' is '1e19', expected a whole number");
    refuse("share: 0.6\n", "c.yaml:1:8: 'share' is '0.6', expected a number from 0 to 0.5");
    refuse("factor: 1e999\n", "c.yaml:1:9: 'factor' is '1e999', expected a number");
    refuse("low: 0\n", "c.yaml:1:6: 'low' is '0', expected a number of at least 1");
    refuse("high: 10\n", "c.yaml:1:7: 'high' is '10', expected a number of at most 9");
    refuse("length: 10 parsec\n",
           "c.yaml:1:9: 'length' is '10 parsec', expected a time, such as 10min or 1.5 s");
    refuse("length: true\n", "c.yaml:1:9: 'length' is 'true', expected a time, such as 10min or 1.5 s");
    refuse("length: 2h\n", "c.yaml:1:9: 'length' is '2h', expected a time from 1 to 3600 s");
    refuse("order: randm\n",
           "c.yaml:1:8: 'order' is 'randm', expected one of 'random', 'as-written'; did you mean 'random'?");
    refuse("order: 7\n", "c.yaml:1:8: 'order' is '7', expected one of 'random', 'as-written'");
    refuse("order:\n", "c.yaml:1:7: 'order' is nothing, expected one of 'random', 'as-written'");
    refuse("packages: {a: b}\n",
           "c.yaml:1:11: 'packages' is a mapping, expected text or a sequence of texts");
    refuse("packages: [a, [b]]\n", "c.yaml:1:15: item 2 of 'packages' is a sequence, expected text");
    refuse("packages: [~]\n", "c.yaml:1:12: item 1 of 'packages' is nothing, expected text");
    refuse("design: 5\n", "c.yaml:1:9: 'design' is '5', expected a sequence or a mapping");
}

TEST(one_value) {
    struct document *document = parse("[12, only, x]");
    double number = 0;
    int choice = -1;
    struct failure failure = {0};
    const struct bind_field field = {.key = "mask", .type = BIND_NUMBER, .maximum = 53};
    assert_int_equal(bind_value(document, document->root->items[0], &field, &number, &failure), 0);
    assert_true(number == 12);
    assert_int_equal(bind_value(document, document->root->items[2], &field, &number, &failure), -EINVAL);
    assert_string_equal(failure.place, "c.yaml:1:12");
    assert_string_equal(failure.text, "'mask' is 'x', expected a number from 0 to 53");
    const struct bind_field one = {.key = "kind", .type = BIND_CHOICE, .choices = single};
    assert_int_equal(bind_value(document, document->root->items[1], &one, &choice, &failure), 0);
    assert_int_equal(choice, 0);
    assert_int_equal(bind_value(document, document->root->items[2], &one, &choice, &failure), -EINVAL);
    assert_string_equal(failure.text, "'kind' is 'x', expected 'only'");
    document_free(document);
}

/* What was bound before the failure is the caller's to clear: nothing leaks, nothing is freed twice. */
TEST(failure_half_way) {
    refuse("name: a\npackages: [a, b]\nturbo: maybe\n",
           "c.yaml:3:8: 'turbo' is 'maybe', expected true or false");
}

TEST(long_values_are_cut) {
    refuse("turbo: éééééééééééééééééééééééééééééééééééééééééééééééééééé\n",
           "c.yaml:1:8: 'turbo' is 'éééééééééééééééééééééééééééééééééééééééé...', expected true or false");
    refuse("turbo: |\n  two\n  lines\n", "c.yaml:1:8: 'turbo' is 'two\\nlines\\n', expected true or false");
}

/* ---- What is more than one member a row ------------------------------------------------------- */

struct inner {
    double limit, margin;
    int64_t period_ns;
    enum { FIRST, SECOND } kind;
    char *colours[3];
};
struct outer {
    struct inner inner;
    struct bind_texts names;
    int64_t most;
    bool sure;
    char *path;
};

static const char *const colour_names[] = {"red", "green", "blue", NULL};
static const char *const kind_names[] = {[FIRST] = "first", [SECOND] = "second", NULL};
static const struct bind_word words[] = {{"none", 0}, {"auto", -1}, {NULL, 0}};

static const char *expect_dark(const char *key, const char *value) {
    return strcmp(value, "dark") == 0 ? NULL : strcmp(key, "red") == 0 ? "dark, as red is" : "dark";
}

#define INNER(name) .offset = offsetof(struct inner, name)
static const struct bind_field inner_fields[] = {
    {.key = "limit",
     .type = BIND_QUANTITY,
     INNER(limit),
     .dimension = UNIT_TIME,
     .minimum = 1,
     .maximum = 60,
     .words = words},
    {.key = "margin",
     .type = BIND_QUANTITY,
     INNER(margin),
     .dimension = UNIT_RATIO,
     .minimum = 0.1,
     .maximum = 1},
    {.key = "period", .type = BIND_DURATION, INNER(period_ns), .dimension = UNIT_TIME},
    {.key = "kind", .type = BIND_CHOICE, INNER(kind), .choices = kind_names},
    {.keys = colour_names, .type = BIND_TEXT, INNER(colours), .expect = expect_dark},
};
static const struct bind_field group_fields[] = {
    {.key = "names", .type = BIND_TEXTS, .offset = offsetof(struct outer, names)},
    {.key = "later", .type = BIND_LATER, .kinds = 1 << DOCUMENT_SEQUENCE},
};
static const struct bind_field wide_fields[] = {
    {.key = "inner",
     .type = BIND_MAPPING,
     .offset = offsetof(struct outer, inner),
     .fields = inner_fields,
     .field_count = sizeof inner_fields / sizeof *inner_fields,
     .scalar = "limit"},
    {.type = BIND_MAPPING, .fields = group_fields, .field_count = sizeof group_fields / sizeof *group_fields},
    {.key = "most",
     .type = BIND_INTEGER,
     .offset = offsetof(struct outer, most),
     .minimum = 1,
     .maximum = 9,
     .words = words},
    {.key = "sure", .type = BIND_BOOLEAN, .offset = offsetof(struct outer, sure)},
    {.key = "path", .type = BIND_TEXT, .offset = offsetof(struct outer, path)},
};
enum { WIDE = sizeof wide_fields / sizeof *wide_fields };

static void bind_wide(const char *yaml, struct outer *target) {
    struct document *document = parse(yaml);
    struct failure failure = {0};
    if (bind_mapping(document, document->root, "outer", wide_fields, WIDE, target, &failure) < 0)
        fail_msg("%s: %s", failure.place, failure.text);
    document_free(document);
}

static void refuse_wide(const char *yaml, const char *expected) {
    struct document *document = parse(yaml);
    struct outer target = {0};
    char text[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE];
    assert_int_equal(
        bind_mapping(document, document->root, "outer", wide_fields, WIDE, &target, &test_failure), -EINVAL);
    assert_string_equal(failure_describe(&test_failure, text, sizeof text), expected);
    bind_clear(wide_fields, WIDE, &target);
    document_free(document);
}

TEST(mappings_words_and_arrays) {
    struct outer target = {.inner.margin = 0.5};
    bind_wide("inner: {limit: 30 s, period: 100ms, kind: second, green: dark}\nnames: [a, b]\nlater: []\n"
              "most: none\n",
              &target);
    assert_true(target.inner.limit == 30 && target.inner.margin == 0.5 &&
                target.inner.period_ns == 100000000);
    assert_int_equal(target.inner.kind, SECOND);
    assert_null(target.inner.colours[0]);
    assert_string_equal(target.inner.colours[1], "dark");
    assert_int_equal(target.names.count, 2);
    assert_null(target.names.items[2]);
    assert_int_equal(target.most, 0);
    bind_wide("inner: auto\n", &target); /* what is no mapping */
    assert_true(target.inner.limit == -1);
    bind_clear(wide_fields, WIDE, &target);
    assert_null(target.inner.colours[1]);
    assert_null(target.names.items);
    refuse_wide("inner: soon\n",
                "c.yaml:1:8: 'inner' is 'soon', expected a time, such as 10min or 1.5 s, or none or auto");
    refuse_wide("inner: 2min\n",
                "c.yaml:1:8: 'inner' is '2min', expected a time from 1 to 60 s, or none or auto");
    refuse_wide("most: 0\n",
                "c.yaml:1:7: 'most' is '0', expected a whole number from 1 to 9, or none or auto");
    refuse_wide("inner: {red: light}\n", "c.yaml:1:14: 'red' is 'light', expected dark, as red is");
    refuse_wide("inner: {rde: dark}\n", "c.yaml:1:9: 'rde' is not a key of inner; did you mean 'red'?");
    refuse_wide("nmaes: x\n", "c.yaml:1:1: 'nmaes' is not a key of outer; did you mean 'names'?");
    refuse_wide("later: x\n", "c.yaml:1:8: 'later' is 'x', expected a sequence");
}

TEST(printed) {
    struct outer target = {
        .inner = {.margin = 0.25, .period_ns = 1500000000}, .most = 3, .path = strdup("/x")};
    struct text text;
    text_init(&text, 4096);
    cJSON *object = cJSON_CreateObject();
    bind_resolve(wide_fields, WIDE, &target, object);
    assert_int_equal(json_print(object, false, &text), 0);
    assert_string_equal(text.bytes, "{\"inner\":{\"limit\":\"none\",\"margin\":0.25,\"period\":1.5,\"kind\":"
                                    "\"first\"},\"names\":[],\"most\":3,\"sure\":false,\"path\":\"/x\"}");
    cJSON_Delete(object);
    text_reset(&text);
    bind_describe(inner_fields, wide_fields[0].field_count, &target.inner, &text);
    assert_string_equal(text.bytes, "limit none, margin 25 %, period 1.5 s, kind first");
    text_clear(&text);
    bind_clear(wide_fields, WIDE, &target);
}
