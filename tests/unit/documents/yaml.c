/* YAML: what is read, and every refusal with its line and column. */
#include "engine/documents/document.h"

#include "engine/foundation/file.h"
#include "engine/foundation/text.h"
#include "tests/test.h"

#include <unistd.h>

static struct document *document; /* of the test: parse() frees the last one */

static int free_document(void **state) {
    document_free(document);
    document = NULL;
    return 0;
}

TEST_EACH(NULL, free_document)

static void parse(const char *bytes, size_t length) {
    free_document(NULL);
    struct failure failure = {0};
    if (document_parse_yaml("c.yaml", bytes, length, &document, &failure) < 0)
        fail_msg("%s: %s", failure.place, failure.text);
}

static void refuse_bytes(const char *bytes, size_t length, const char *expected) {
    struct document *none = NULL;
    struct failure failure = {0};
    char text[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE];
    assert_int_equal(document_parse_yaml("c.yaml", bytes, length, &none, &failure), -EINVAL);
    assert_null(none);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    assert_string_equal(failure_describe(&failure, text, sizeof text), expected);
    assert_int_equal(document_parse_yaml("c.yaml", bytes, length, &none, NULL), -EINVAL);
}

static void refuse(const char *yaml, const char *expected) {
    refuse_bytes(yaml, strlen(yaml), expected);
}

TEST(kinds_of_scalars) {
    static const struct {
        const char *yaml;
        enum document_kind kind;
        const char *text;
    } cases[] = {
        {"", DOCUMENT_NULL, ""},
        {"~", DOCUMENT_NULL, "~"},
        {"null", DOCUMENT_NULL, "null"},
        {"NULL", DOCUMENT_NULL, "NULL"},
        {"nUll", DOCUMENT_TEXT, "nUll"},
        {"true", DOCUMENT_BOOLEAN, "true"},
        {"False", DOCUMENT_BOOLEAN, "False"},
        {"yes", DOCUMENT_TEXT, "yes"},
        {"off", DOCUMENT_TEXT, "off"},
        {"12", DOCUMENT_NUMBER, "12"},
        {"-0.5e+3", DOCUMENT_NUMBER, "-0.5e+3"},
        {".5", DOCUMENT_NUMBER, ".5"},
        {"5.", DOCUMENT_NUMBER, "5."},
        {"+1", DOCUMENT_NUMBER, "+1"},
        {"007", DOCUMENT_NUMBER, "007"},
        {"1e999", DOCUMENT_NUMBER, "1e999"},
        {"18446744073709551615", DOCUMENT_NUMBER, "18446744073709551615"},
        {"0x1f", DOCUMENT_TEXT, "0x1f"},
        {"0o17", DOCUMENT_TEXT, "0o17"},
        {".inf", DOCUMENT_TEXT, ".inf"},
        {".nan", DOCUMENT_TEXT, ".nan"},
        {"1:30", DOCUMENT_TEXT, "1:30"},
        {"2.4GHz", DOCUMENT_TEXT, "2.4GHz"},
        {"1.2.3", DOCUMENT_TEXT, "1.2.3"},
        {"1e", DOCUMENT_TEXT, "1e"},
        {".", DOCUMENT_TEXT, "."},
        {"-", DOCUMENT_SEQUENCE, NULL},
        {"'12'", DOCUMENT_TEXT, "12"},
        {"\"true\"", DOCUMENT_TEXT, "true"},
        {"''", DOCUMENT_TEXT, ""},
        {"'it''s'", DOCUMENT_TEXT, "it's"},
        {"\"\\u00e9\\n\"", DOCUMENT_TEXT, "\xc3\xa9\n"},
        {"|\n 12\n", DOCUMENT_TEXT, "12\n"},
        {">-\n a\n b\n", DOCUMENT_TEXT, "a b"},
        {"!!str 12", DOCUMENT_TEXT, "12"},
        {"! 12", DOCUMENT_TEXT, "12"},
        {"!!int 12", DOCUMENT_NUMBER, "12"},
        {"!!float 1.5", DOCUMENT_NUMBER, "1.5"},
        {"!!bool true", DOCUMENT_BOOLEAN, "true"},
        {"!!null ~", DOCUMENT_NULL, "~"},
        {"!!seq []", DOCUMENT_SEQUENCE, NULL},
        {"!!map {}", DOCUMENT_MAPPING, NULL},
        {"two words", DOCUMENT_TEXT, "two words"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup_free char *yaml = text_format(
            "a: %s", cases[i].kind == DOCUMENT_SEQUENCE && !cases[i].yaml[1] ? "[]" : cases[i].yaml);
        parse(yaml, strlen(yaml));
        const struct document_node *node = document_get(document->root, "a");
        if (!node || node->kind != cases[i].kind ||
            (cases[i].text ? strcmp(node->text, cases[i].text) != 0 : !!node->text))
            fail_msg("'%s' is %s '%s'", cases[i].yaml, document_kind_name(node->kind), node->text);
    }
}

TEST(places_and_shape) {
    static const char yaml[] = "# comment\n"
                               "name: dgemm\n"
                               "é: {ü: 1, b: [x, 2]}\n"
                               "list:\n"
                               "  - one\n"
                               "  - two: 2\n"
                               "    empty:\n";
    parse(yaml, sizeof yaml - 1);
    assert_string_equal(document->file, "c.yaml");
    const struct document_node *root = document->root;
    assert_int_equal(root->kind, DOCUMENT_MAPPING);
    assert_int_equal(root->count, 3);
    assert_true(root->line == 2 && root->column == 1);
    assert_string_equal(root->keys[0]->text, "name");
    assert_true(root->items[0]->line == 2 && root->items[0]->column == 7);
    const struct document_node *flow = document_get(root, "é");
    assert_true(flow->line == 3 && flow->column == 4); /* columns count characters */
    assert_true(flow->items[0]->column == 8);
    const struct document_node *list = document_get(root, "list");
    assert_int_equal(list->count, 2);
    assert_null(list->keys);
    const struct document_node *two = list->items[1];
    assert_true(two->line == 6 && two->column == 5);
    const struct document_node *empty = document_get(two, "empty");
    assert_int_equal(empty->kind, DOCUMENT_NULL);
    assert_true(empty->line == 7);
    assert_null(document_get(two, "Two")); /* case counts */
    assert_null(document_get(list, "one"));
    assert_null(document_get(NULL, "one"));
    document_free(NULL);
}

TEST(aliases_are_copies) {
    static const char yaml[] = "a: &x {k: [1, 2]}\nb: *x\nc: &x text\nd: *x\ne: &k key\n";
    parse(yaml, sizeof yaml - 1);
    const struct document_node *a = document_get(document->root, "a"), *b = document_get(document->root, "b");
    assert_ptr_not_equal(a, b);
    assert_string_equal(document_get(b, "k")->items[1]->text, "2");
    assert_true(b->line == 2 && b->column == 4);                          /* where the alias is */
    assert_int_equal(document_get(b, "k")->items[1]->line, 1);            /* where it was written */
    assert_string_equal(document_get(document->root, "d")->text, "text"); /* the name's last node */
}

TEST(marks_and_breaks) {
    static const char bom[] = "\xef\xbb\xbf"
                              "a: 1\r\nb: 2\r\n";
    parse(bom, sizeof bom - 1);
    assert_string_equal(document->root->keys[0]->text, "a");
    assert_int_equal(document->root->keys[0]->column, 1);
    assert_true(document_get(document->root, "b")->line == 2);
    parse("%YAML 1.2\n---\na: 1\n...\n", 23);
    assert_int_equal(document->root->count, 1);
    parse("---\n", 4);
    assert_int_equal(document->root->kind, DOCUMENT_NULL);
}

#define QUOTES "; a value with one of []{}:#&*!|>%@`\"'-? may need quotes, as in hosts: \"x-[1-2]\""

/* Values as people write them, which YAML reads in another way. */
TEST(values_that_need_quotes) {
    refuse("t: {hosts: x-[1-2]}\n",
           "c.yaml:1:14: did not find expected ',' or '}' while parsing a flow mapping" QUOTES);
    refuse("t:\n  hosts: [1-2]x\n",
           "c.yaml:2:15: did not find expected key while parsing a block mapping" QUOTES);
    refuse(
        "a: @x",
        "c.yaml:1:4: found character that cannot start any token while scanning for the next token" QUOTES);
    refuse("a: b: c\n", "c.yaml:1:5: mapping values are not allowed in this context" QUOTES);
    refuse("a: *nobody\n", "c.yaml:1:4: alias '*nobody' has no anchor '&nobody' before it" QUOTES);
    refuse("a: !foo 1\n", "c.yaml:1:4: tag '!foo' is not known, expected a value without a tag" QUOTES);
    refuse("t:\n\thosts: x\n",
           "c.yaml:2:1: found character that cannot start any token while scanning for the next "
           "token; indent by spaces, not by tabs");
}

TEST(refusals) {
    refuse("", "c.yaml:1:1: the file is empty; expected a document");
    refuse("# only a comment\n", "c.yaml:1:1: the file is empty; expected a document");
    refuse("a: 1\nb: 2\na: 3\n", "c.yaml:3:1: key 'a' is written twice, the first time in line 1");
    refuse("x: {a: 1, 'a': 2}\n", "c.yaml:1:11: key 'a' is written twice, the first time in line 1");
    refuse("a: &a [1, *a]\n", "c.yaml:1:11: alias '*a' lies inside the value of its own anchor");
    refuse("a: &a {b: {c: *a}}\n", "c.yaml:1:15: alias '*a' lies inside the value of its own anchor");
    refuse("? [a]\n: b\n", "c.yaml:1:3: a sequence as a key, expected a plain scalar");
    refuse("{{a: b}: c}\n", "c.yaml:1:2: a mapping as a key, expected a plain scalar");
    refuse("a: &a x\n*a : b\n", "c.yaml:2:1: an alias as a key, expected a plain scalar");
    refuse("? \n: b\n", "c.yaml:1:2: an empty key, expected a plain scalar");
    refuse("a: 1\n<<: {b: 2}\n",
           "c.yaml:2:1: merge keys ('<<') are not supported, expected the keys themselves");
    refuse("a: !foo [1]\n", "c.yaml:1:4: tag '!foo' is not known, expected a value without a tag" QUOTES);
    refuse("a: !!set {a}\n",
           "c.yaml:1:4: tag 'tag:yaml.org,2002:set' is not known, expected a value without a tag" QUOTES);
    refuse("a: !!int x\n", "c.yaml:1:4: 'x' is tagged as a number");
    refuse("a: 1\n--- \nb: 2\n", "c.yaml:2:1: a second document, expected one");
    refuse(
        "a: [1,\nb\n",
        "c.yaml:3:1: did not find expected ',' or ']' while parsing a flow sequence that begins in line 1");
    refuse("a: \"x\n",
           "c.yaml:2:1: found unexpected end of stream while scanning a quoted scalar that begins in line 1");
    refuse("a: \x01\n", "c.yaml:1:4: control characters are not allowed (0x01)");
    refuse("a: 1\né: \x02\n", "c.yaml:2:4: control characters are not allowed (0x02)");
    refuse("a: \"\\0\"\n", "c.yaml:1:4: the text holds a NUL");
    refuse("a: \"\\ud800\"\n",
           "c.yaml:1:7: found invalid Unicode character escape code while parsing a quoted scalar");
}

TEST(refused_bytes) {
    refuse_bytes("a: 1\nb: \0", 9, "c.yaml:2:4: a NUL byte, expected text");
    refuse_bytes("a: é\nb: \xff\n", 11, "c.yaml:2:4: byte 0xff is not UTF-8, expected UTF-8 text");
    refuse_bytes("é: \xed\xa0\x80\n", 8, "c.yaml:1:4: byte 0xed is not UTF-8, expected UTF-8 text");
    refuse_bytes("\xff\xfe"
                 "a\0",
                 4, "c.yaml:1:1: byte 0xff is not UTF-8, expected UTF-8 text"); /* UTF-16 */
    /* Whichever comes first. */
    refuse_bytes("\0\xff", 2, "c.yaml:1:1: a NUL byte, expected text");
    refuse_bytes("\xff\0", 2, "c.yaml:1:1: byte 0xff is not UTF-8, expected UTF-8 text");
}

/* Duplicate keys are found in big mappings too, the earliest second writing first. */
TEST(duplicates_among_many) {
    cleanup(text_clear) struct text yaml;
    text_init(&yaml, 1 << 20);
    for (int i = 0; i < 2000; i++)
        text_printf(&yaml, "key%d: %d\n", i, i);
    parse(yaml.bytes, yaml.length);
    assert_int_equal(document->root->count, 2000);
    text_append_string(&yaml, "key1500: x\nkey3: x\nkey3: y\n");
    refuse(yaml.bytes, "c.yaml:2001:1: key 'key1500' is written twice, the first time in line 1501");
}

TEST(depth) {
    cleanup(text_clear) struct text yaml;
    text_init(&yaml, 1 << 20);
    text_append_string(&yaml, "a: ");
    for (int i = 0; i < DOCUMENT_DEPTH_MAX - 1; i++)
        text_append_character(&yaml, '[');
    for (int i = 0; i < DOCUMENT_DEPTH_MAX - 1; i++)
        text_append_character(&yaml, ']');
    parse(yaml.bytes, yaml.length); /* the root and 63 sequences */
    text_reset(&yaml);
    for (int i = 0; i < 100000; i++)
        text_append_character(&yaml, '[');
    refuse(yaml.bytes, "c.yaml:1:65: nested deeper than 64 levels");
    /* Depth by way of aliases: each list is one level deeper than the last. */
    text_reset(&yaml);
    text_append_string(&yaml, "- &l0 [x]\n");
    for (int i = 1; i < 70; i++)
        text_printf(&yaml, "- &l%d [*l%d]\n", i, i - 1);
    refuse(yaml.bytes, "c.yaml:63:9: alias '*l61' makes the document too big: nested deeper than 64 levels");
}

/* Ten levels of ten aliases each would be ten thousand million nodes. */
TEST(billion_laughs) {
    cleanup(text_clear) struct text yaml;
    text_init(&yaml, 1 << 20);
    text_append_string(&yaml, "l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 10; i++) {
        text_printf(&yaml, "l%d: &l%d [", i, i);
        for (int j = 0; j < 10; j++)
            text_printf(&yaml, "%s*l%d", j ? ", " : "", i - 1);
        text_append_string(&yaml, "]\n");
    }
    struct failure failure = {0};
    assert_int_equal(document_parse_yaml("c.yaml", yaml.bytes, yaml.length, &document, &failure), -EINVAL);
    assert_non_null(strstr(failure.text, "makes the document too big: more than 4194304 values"));
    assert_string_equal(failure.place, "c.yaml:7:20");
}

TEST(anchors_have_a_limit) {
    cleanup(text_clear) struct text yaml;
    text_init(&yaml, 1 << 20);
    for (int i = 0; i < DOCUMENT_ANCHORS_MAX; i++)
        text_printf(&yaml, "- &a%d x\n", i);
    text_append_string(&yaml, "- &a7 again\n");
    parse(yaml.bytes, yaml.length);
    text_append_string(&yaml, "- &more x\n");
    refuse(yaml.bytes, "c.yaml:1026:3: too many anchors");
    text_reset(&yaml);
    for (int i = 1; i < DOCUMENT_ANCHORS_MAX; i++)
        text_printf(&yaml, "- &a%d x\n", i);
    text_append_string(&yaml, "- &last [&more x]\n"); /* the collection around it is left, too */
    refuse(yaml.bytes, "c.yaml:1024:10: too many anchors");
}

TEST(too_many_bytes) {
    size_t length = (size_t)DOCUMENT_BYTES_MAX + 1;
    cleanup_free char *bytes = malloc(length);
    memset(bytes, ' ', length);
    refuse_bytes(bytes, length, "c.yaml: 67108865 bytes, expected at most 67108864");
}

TEST(long_names_are_cut) {
    char yaml[1000];
    memset(yaml, 'x', sizeof yaml);
    memcpy(yaml + 480, ": 1\n", 4);
    memset(yaml + 484, 'x', 480);
    memcpy(yaml + 964, ": 1\n", 5);
    struct failure failure = {0};
    assert_int_equal(document_parse_yaml("c.yaml", yaml, 968, &document, &failure), -EINVAL);
    assert_true(strlen(failure.text) < 200);
    assert_non_null(strstr(failure.text, "xxx...' is written twice"));
}

TEST(read_from_file) {
    char path[] = "/tmp/assay-yaml.XXXXXX";
    int descriptor = mkstemp(path);
    assert_int_equal(file_write_all(descriptor, "a: 1\na: 2\n", 10), 0);
    close(descriptor);
    struct failure failure = {0};
    assert_int_equal(document_read_yaml(path, &document, &failure), -EINVAL);
    cleanup_free char *place = text_format("%s:2:1", path);
    assert_string_equal(failure.place, place);
    assert_int_equal(file_replace(path, "a: 1\n", 5, 0644, &failure), 0);
    assert_int_equal(document_read_yaml(path, &document, &failure), 0);
    assert_string_equal(document->file, path);
    unlink(path);
    assert_int_equal(document_read_yaml(path, &document, &failure), -ENOENT);
    assert_int_equal(failure.kind, FAILURE_INPUT);
}
