/* JSON: what is read and written, digits and all, and every refusal with its line and column. */
#include "engine/documents/json.h"

#include "engine/foundation/number.h"
#include "tests/test.h"

#include <malloc.h>

static struct document *document; /* of the test: parse() frees the last one */

static int free_document(void **state) {
    document_free(document);
    document = NULL;
    return 0;
}

TEST_EACH(NULL, free_document)

static void parse(const char *json) {
    free_document(NULL);
    struct failure failure = {0};
    if (document_parse_json("m.json", json, strlen(json), &document, &failure) < 0)
        fail_msg("%s: %s", failure.place, failure.text);
}

static void refuse_bytes(const char *bytes, size_t length, const char *expected) {
    struct document *none = NULL;
    struct failure failure = {0};
    char text[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE];
    /* Exactly as long as it is said to be, for a sanitizer to see. */
    cleanup_free char *copy = malloc(length ? length : 1);
    memcpy(copy, bytes, length);
    assert_int_equal(document_parse_json("m.json", copy, length, &none, &failure), -EINVAL);
    assert_null(none);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    assert_string_equal(failure_describe(&failure, text, sizeof text), expected);
}

static void refuse(const char *json, const char *expected) {
    refuse_bytes(json, strlen(json), expected);
}

/* ---- Reading ------------------------------------------------------------------------------------ */

TEST(values_and_places) {
    parse("\xef\xbb\xbf{\n \"name\": \"dgemm\",\r\n\t\"é\": [1, -0.5e-3, true, null],\n"
          " \"nested\": {\"a\": {}, \"b\": []}\n}\n");
    const struct document_node *root = document->root;
    assert_true(root->line == 1 && root->column == 1);
    assert_int_equal(root->count, 3);
    const struct document_node *list = document_get(root, "é");
    assert_true(list->line == 3 && list->column == 7); /* a tab is one character, é too */
    assert_int_equal(list->count, 4);
    assert_string_equal(list->items[1]->text, "-0.5e-3");
    assert_int_equal(list->items[1]->kind, DOCUMENT_NUMBER);
    assert_int_equal(list->items[2]->kind, DOCUMENT_BOOLEAN);
    assert_int_equal(list->items[3]->kind, DOCUMENT_NULL);
    assert_string_equal(list->items[3]->text, "null");
    assert_int_equal(document_get(document_get(root, "nested"), "a")->kind, DOCUMENT_MAPPING);
    assert_int_equal(document_get(document_get(root, "nested"), "b")->kind, DOCUMENT_SEQUENCE);
    assert_null(document_get(root, "Name")); /* cJSON's own search would find it */
}

TEST(strings) {
    parse("[\"\", \"\\\"\\\\\\/\\b\\f\\n\\r\\t\", \"\\u00e9\\u20AC\\ud83d\\ude00\", \"é€😀\"]");
    const struct document_node *root = document->root;
    assert_string_equal(root->items[0]->text, "");
    assert_string_equal(root->items[1]->text, "\"\\/\b\f\n\r\t");
    assert_string_equal(root->items[2]->text, "é€😀");
    assert_string_equal(root->items[3]->text, "é€😀");
    assert_int_equal(root->items[3]->column, 54);
}

TEST(root_may_be_anything) {
    static const char *const texts[] = {"1", " null ", "\"x\"", "[]", "\n{}\n", "-0"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        parse(texts[i]);
}

TEST(refusals) {
    refuse("", "m.json:1:1: the text ends here, expected a JSON value");
    refuse(" \n ", "m.json:2:2: the text ends here, expected a JSON value");
    refuse("{\"a\": 1,\n \"b\": 2,\n \"a\": 3}",
           "m.json:3:2: key 'a' is written twice, the first time in line 1");
    refuse("{\"a\": 1, \"\\u0061\": 2}", "m.json:1:10: key 'a' is written twice, the first time in line 1");
    refuse("[01]", "m.json:1:2: '0', expected a number as JSON writes it, such as -1.5e3");
    refuse("[-]", "m.json:1:2: '-', expected a number as JSON writes it, such as -1.5e3");
    refuse("[.5]", "m.json:1:2: '.', expected a number as JSON writes it, such as -1.5e3");
    refuse("[+1]", "m.json:1:2: '+', expected a number as JSON writes it, such as -1.5e3");
    refuse("[1.]", "m.json:1:2: '1', expected a number as JSON writes it, such as -1.5e3");
    refuse("[1e]", "m.json:1:2: '1', expected a number as JSON writes it, such as -1.5e3");
    refuse("[1x]", "m.json:1:3: 'x', expected ',' or ']'");
    refuse("[0x10]", "m.json:1:3: 'x', expected ',' or ']'");
    refuse("[NaN]", "m.json:1:2: 'N', expected a JSON value");
    refuse("[nul]", "m.json:1:2: 'n', expected a JSON value");
    refuse("[True]", "m.json:1:2: 'T', expected a JSON value");
    refuse("[1,]", "m.json:1:4: ']', expected a JSON value");
    refuse("[1 2]", "m.json:1:4: '2', expected ',' or ']'");
    refuse("[1", "m.json:1:3: the text ends here, expected ',' or ']'");
    refuse("[", "m.json:1:2: the text ends here, expected a JSON value");
    refuse("{a: 1}", "m.json:1:2: 'a', expected a key in double quotes");
    refuse("{\"a\": 1,}", "m.json:1:9: '}', expected a key in double quotes");
    refuse("{\"a\" 1}", "m.json:1:6: '1', expected ':' after the key");
    refuse("{\"a\": }", "m.json:1:7: '}', expected a JSON value");
    refuse("{\"a\": 1 \"b\"}", "m.json:1:9: '\"', expected ',' or '}'");
    refuse("[1] x", "m.json:1:5: 'x', expected nothing after the value");
    refuse("{}{}", "m.json:1:3: '{', expected nothing after the value");
    refuse("1 é", "m.json:1:3: 'é', expected nothing after the value");
    refuse("// comment\n1", "m.json:1:1: '/', expected a JSON value");
    refuse("[\"a\nb\"]", "m.json:1:4: control character 0x0a, expected '\"' at the end of the string");
    refuse("[\"a]", "m.json:1:5: the text ends here, expected '\"' at the end of the string");
    refuse("[\"\\x\"]",
           "m.json:1:4: 'x', expected one of the escapes \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
    refuse("[\"\\u12g4\"]", "m.json:1:5: '1', expected four hexadecimal digits");
    refuse("[\"\\u12", "m.json:1:5: '1', expected four hexadecimal digits");
    refuse("[\"\\u0000\"]", "m.json:1:3: '\\', expected text without NULs (\\u0000)");
    refuse("[\"\\ud800\"]", "m.json:1:9: '\"', expected the second half of a surrogate pair");
    refuse("[\"\\ud800\\u0041\"]", "m.json:1:9: '\\', expected the second half of a surrogate pair");
    refuse("[\"\\udc00\"]",
           "m.json:1:3: '\\', expected the first half of a surrogate pair before the second");
    refuse("\v1",
           "m.json:1:1: control character 0x0b, expected a JSON value"); /* cJSON takes it for a blank */
    refuse_bytes("[1]\0", 4, "m.json:1:4: a NUL byte, expected text");
    refuse_bytes("[\"\xc3\"]", 5, "m.json:1:3: byte 0xc3 is not UTF-8, expected UTF-8 text");
}

TEST(numbers_have_a_length) {
    char json[100];
    memset(json, '1', sizeof json);
    json[63] = '\0';
    parse(json);
    assert_string_equal(document->root->text, json);
    json[63] = '1';
    json[64] = '\0';
    refuse(json, "m.json:1:1: '1', expected a number of at most 63 characters");
}

TEST(depth) {
    cleanup_free char *json = calloc(1, 300000);
    memset(json, '[', DOCUMENT_DEPTH_MAX);
    memset(json + DOCUMENT_DEPTH_MAX, ']', DOCUMENT_DEPTH_MAX);
    parse(json);
    memset(json, '[', 200000); /* deeper than cJSON goes */
    refuse(json, "m.json:1:65: nested deeper than 64 levels");
}

/* A line of half a million values takes no longer for being one line. */
TEST(one_long_line) {
    cleanup(text_clear) struct text json;
    text_init(&json, 64 << 20);
    text_append_character(&json, '[');
    for (int i = 0; i < 500000; i++)
        text_printf(&json, "%s%d", i ? "," : "", i % 10);
    text_append_character(&json, ']');
    parse(json.bytes);
    assert_int_equal(document->root->count, 500000);
    assert_int_equal(document->root->items[499999]->column, 2 + 2 * 499999);
}

/* ---- Writing ------------------------------------------------------------------------------------ */

static void check_printed(const cJSON *value, bool pretty, const char *expected) {
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 20);
    assert_int_equal(json_print(value, pretty, &text), 0);
    assert_string_equal(text.bytes, expected);
}

TEST(print) {
    cJSON *root = cJSON_CreateObject();
    assert_true(json_add_string(root, "name", "dgemm"));
    assert_true(json_add_string(root, "none", NULL));
    assert_true(json_add_boolean(root, "valid", true));
    assert_true(json_add_boolean(root, "wrong", false));
    cJSON *list = json_add_array(root, "list");
    assert_true(json_add_double(list, NULL, 0x1.3333333333334p-2));
    assert_true(json_add_double(list, NULL, NAN));
    assert_true(json_add_double(list, NULL, -INFINITY));
    assert_true(json_add_int64(list, NULL, INT64_MIN));
    assert_true(json_add_uint64(list, NULL, UINT64_MAX));
    cJSON *inner = json_add_object(list, NULL);
    json_add_array(inner, "empty");
    json_add_object(inner, "bare");
    cJSON_AddNumberToObject(inner, "plain", 0.30000000000000004); /* cJSON's own, all digits too */
    check_printed(root, false,
                  "{\"name\":\"dgemm\",\"none\":null,\"valid\":true,\"wrong\":false,\"list\":[0."
                  "30000000000000004,null,null,"
                  "-9223372036854775808,18446744073709551615,{\"empty\":[],\"bare\":{},\"plain\":0."
                  "30000000000000004}]}");
    check_printed(root, true,
                  "{\n  \"name\": \"dgemm\",\n  \"none\": null,\n  \"valid\": true,\n  \"wrong\": false,\n  "
                  "\"list\": [\n    0.30000000000000004,\n"
                  "    null,\n    null,\n    -9223372036854775808,\n    18446744073709551615,\n    {\n      "
                  "\"empty\": [],\n"
                  "      \"bare\": {},\n      \"plain\": 0.30000000000000004\n    }\n  ]\n}");
    cJSON_Delete(root);
}

static void check_literal(const char *bytes, size_t length, const char *expected) {
    cleanup(text_clear) struct text text;
    text_init(&text, 1000);
    assert_int_equal(json_append_string(&text, bytes, length), 0);
    assert_string_equal(text.bytes, expected);
}

TEST(string_literals) {
    check_literal("", 0, "\"\"");
    check_literal("a\"b\\c/", 6, "\"a\\\"b\\\\c/\"");
    check_literal("\b\t\n\f\r\x01\x1f\x7f", 8, "\"\\b\\t\\n\\f\\r\\u0001\\u001f\\u007f\"");
    check_literal("\xc2\x9b\xc2\xa0\xc2", 5,
                  "\"\\u009b\xc2\xa0\xef\xbf\xbd\""); /* a terminal takes U+009B for ESC [ */
    check_literal("a\xe2\x80\xae\xe2\x81\xa6\xd8\x9c\xe2\x80\xa8"
                  "b",
                  13, "\"a\\u202e\\u2066\\u061c\\u2028b\"");
    check_literal("é€😀", 9, "\"é€😀\"");
    check_literal("a\0b", 3,
                  "\"a\xef\xbf\xbd"
                  "b\"");
    check_literal("\xff\xc3", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"");
    check_literal("\xe2\x82x", 3, "\"\xef\xbf\xbd\xef\xbf\xbdx\"");
}

TEST(any_bytes_in_values_and_keys) {
    cJSON *root = cJSON_CreateObject();
    assert_true(json_add_bytes(root, "bytes", "a\0\xff", 3));
    assert_true(json_add_string(root, "k\xff", "v\xfe"));
    check_printed(root, false,
                  "{\"bytes\":\"a\xef\xbf\xbd\xef\xbf\xbd\",\"k\xef\xbf\xbd\":\"v\xef\xbf\xbd\"}");
    cJSON_Delete(root);
}

TEST(print_leaves_what_was) {
    cleanup(text_clear) struct text text;
    text_init(&text, 10);
    text_append_string(&text, "ab");
    cJSON *root = cJSON_CreateArray();
    json_add_string(root, NULL, "too long for ten");
    assert_int_equal(json_print(root, false, &text), -EFBIG);
    assert_string_equal(text.bytes, "ab");
    assert_int_equal(json_append_string(&text, "12345678", 8), -EFBIG);
    assert_string_equal(text.bytes, "ab");
    assert_int_equal(json_append_string(&text, "123456", 6), 0);
    assert_string_equal(text.bytes, "ab\"123456\"");
    cJSON_Delete(root);
    /* Nested beyond reason: an error, not a crash. */
    root = cJSON_CreateArray();
    cJSON *deepest = root;
    for (int i = 0; i < CJSON_NESTING_LIMIT + 5; i++)
        deepest = json_add_array(deepest, NULL);
    cleanup(text_clear) struct text big;
    text_init(&big, 1 << 20);
    assert_int_equal(json_print(root, true, &big), -ELOOP);
    assert_int_equal(big.length, 0);
    cJSON_Delete(root);
}

/* ---- There and back ------------------------------------------------------------------------------ */

TEST(integers_round_trip) {
    static const int64_t values[] = {0,
                                     -1,
                                     INT64_MAX,
                                     INT64_MIN,
                                     INT64_MAX - 1,
                                     INT64_MIN + 1,
                                     9007199254740993,
                                     -9007199254740993,
                                     1763658000123456789};
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        json_add_int64(list, NULL, values[i]);
    json_add_uint64(list, NULL, UINT64_MAX);
    cleanup(text_clear) struct text text;
    text_init(&text, 1000);
    assert_int_equal(json_print(list, false, &text), 0);
    cJSON_Delete(list);
    parse(text.bytes);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        int64_t value;
        const char *literal = document->root->items[i]->text;
        assert_true(number_parse_int64(literal, strlen(literal), &value));
        assert_true(value == values[i]);
    }
    assert_string_equal(document->root->items[sizeof values / sizeof *values]->text, "18446744073709551615");
}

/* What YAML allows and JSON does not is respelled. */
TEST(from_yaml) {
    static const char yaml[] = "{a: [+1, .5, -.5e3, 5., 007, -0, 00.10, 1e5], b: [True, FALSE, ~, yes], c: "
                               "{'1': \"é\"}, d: {}, e: []}";
    struct failure failure = {0};
    assert_int_equal(document_parse_yaml("c.yaml", yaml, sizeof yaml - 1, &document, &failure), 0);
    cJSON *tree = json_from_node(document->root);
    check_printed(tree, false,
                  "{\"a\":[1,0.5,-500,5,7,-0,0.1,1e5],\"b\":[true,false,null,\"yes\"],\"c\":{\"1\":\"é\"},"
                  "\"d\":{},\"e\":[]}");
    cJSON_Delete(tree);
}

/* The quick way for lines of texts and integers gives what cJSON gives, or leaves the line to it. */
TEST(an_arena_reads_what_cjson_reads) {
    static struct json_arena arena;
    static char many[8000] = "{";
    char *end = many + 1;
    for (int i = 0; i < 1000; i++)
        end = stpcpy(end, i ? ",\"a\":1" : "\"a\":1");
    stpcpy(end, "}");
    static const char *const lines[] = {
        "{\"seq\":1,\"t\":\"12\",\"event\":\"x\",\"order\":-3}",
        "{\"a\":999999999999999,\"b\":-999999999999999,\"c\":2147483647,\"d\":-2147483648,\"\":0}",
        "{\"a\":1000000000000000}",
        "{\"a\":\"\xc3\xa9\",\"a\":\"\"}",
        "{\"a\":007,\"b\":-0}",
        "{\"a\":1.5}",
        "{\"a\":1e3}",
        "{\"a\":\"\\n\"}",
        "{\"a\":{\"b\":1},\"c\":[1],\"d\":true,\"e\":null}",
        "{ \"a\": 1 }",
        "{}",
        "{",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":-}",
        "{\"a\":1,}",
        "{\"a\":1}}",
        "{\"a\":1}x",
        "{\"a\" 1}",
        "{\"a\":1,\"b\"}",
        "[1]",
        "",
        many,
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        cJSON *value = json_arena_parse(&arena, lines[i], strlen(lines[i])),
              *expected = cJSON_ParseWithLength(lines[i], strlen(lines[i]));
        assert_int_equal(value != NULL, expected != NULL);
        if (expected) {
            cleanup_free char *text = cJSON_Print(value), *expected_text = cJSON_Print(expected);
            assert_string_equal(text, expected_text);
            assert_int_equal(cJSON_GetArraySize(value), cJSON_GetArraySize(expected));
            for (const cJSON *a = value->child, *b = expected->child; a && b; a = a->next, b = b->next)
                assert_int_equal(a->valueint, b->valueint);
            if (value->child)
                assert_ptr_equal(value->child->prev->next, NULL);
        }
        cJSON_Delete(expected);
        json_arena_delete(&arena, value);
    }
}

/* Lines that fit an arena, and longer ones, in turns: what did not fit is given back. */
TEST(an_arena_keeps_nothing_of_a_long_line) {
    static struct json_arena arena;
    static char line[2 * sizeof arena.bytes];
    memset(line, 'x', sizeof line);
    line[0] = line[sizeof line - 1] = '"';
    size_t used = 0;
    for (int i = 0; i < 4; i++) {
        cJSON *value = json_arena_parse(&arena, line, sizeof line);
        assert_int_equal(strlen(cJSON_GetStringValue(value)), sizeof line - 2);
        json_arena_delete(&arena, value);
        value = json_arena_parse(&arena, "{\"a\": \"b\"}", 10);
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(value, "a")), "b");
        json_arena_delete(&arena, value);
        if (i == 0)
            used = mallinfo2().uordblks;
    }
    assert_int_equal(mallinfo2().uordblks, used); /* both 0 under the sanitizers */
}
