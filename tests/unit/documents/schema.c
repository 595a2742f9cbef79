/* JSON Schema: each keyword lets right documents pass, and names what breaks it. */
#include "engine/documents/schema.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "tests/test.h"

static const struct {
    const char *schema, *document, *reason; /* "": it passes */
} cases[] = {
    {"{'type':'object'}", "{}", ""},
    {"{'type':'object'}", "[1]", "'the document' is a sequence; expected the type object"},
    {"{'type':['number','null']}", "null", ""},
    {"{'type':['number','null']}", "'x'", "'the document' is 'x'; expected the type number, null"},
    {"{'type':'integer'}", "1e3", ""},
    {"{'type':'integer'}", "1.5", "expected the type integer"},
    {"{'const':[\"\"]}", "['']", ""},
    {"{'const':'a'}", "'b'", "'the document' is 'b'; expected a"},
    {"{'enum':['a','b']}", "'b'", ""},
    {"{'enum':['a','b']}", "'c'", "expected one of a, b"},
    {"{'pattern':'^[0-9]+$'}", "'12'", ""},
    {"{'pattern':'^[0-9]+$'}", "'1x'", "expected a text that matches ^[0-9]+$"},
    {"{'minLength':1}", "''", "expected a length of at least 1"},
    {"{'minItems':1}", "[]", "expected a length of at least 1"},
    {"{'minimum':0}", "0", ""},
    {"{'minimum':0}", "-1", "expected at least 0"},
    {"{'exclusiveMinimum':0,'exclusiveMaximum':1}", "0.5", ""},
    {"{'exclusiveMinimum':0}", "0", "expected more than 0"},
    {"{'exclusiveMinimum':0,'exclusiveMaximum':1}", "1", "expected less than 1"},
    {"{'required':['a']}", "{'a':null}", ""},
    {"{'required':['a']}", "{'b':1}", "expected one with the member a"},
    {"{'properties':{'a':{'type':'string'}}}", "{'a':null,'b':1}", ""},
    {"{'properties':{'a':{'type':'string'}}}", "{'a':1}", "'a' is '1'; expected the type string"},
    {"{'properties':{'a':false}}", "{'a':1}", "'a' is '1'; expected no such member"},
    {"{'properties':{'a':true},'additionalProperties':{'type':'string'}}", "{'a':1,'b':2}", "'b' is '2'"},
    {"{'items':{'type':'string'}}", "['a',2]", "expected the type string"},
    {"{'items':{'$ref':'#/$defs/t'},'$defs':{'t':{'type':'string'}}}", "[2]", "expected the type string"},
    {"{'oneOf':[{'type':'null'},{'type':'object','required':['a']}]}", "null", ""},
    {"{'oneOf':[{'type':'null'},{'type':'object','required':['a']}]}", "{}", "the member a"},
    {"{'if':{'required':['a']},'then':{'required':['b']},'else':{'required':['c']}}", "{'a':1}", "member b"},
    {"{'if':{'required':['a']},'then':{'required':['b']},'else':{'required':['c']}}", "{'d':1}", "member c"},
};

static struct document *parse(const char *text) {
    struct document *document = NULL;
    cleanup_free char *json = xstrdup(text);
    for (char *at = json; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    assert_ok(document_parse_json("x.json", json, strlen(json), &document, &test_failure));
    return document;
}

TEST(keywords) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup(document_cleanup) struct document *schema = parse(cases[i].schema),
                                                  *document = parse(cases[i].document);
        test_forget();
        int r = schema_check(schema, document, &test_failure);
        if ((r < 0) != (cases[i].reason[0] != '\0'))
            fail_msg("%s of %s: %d", cases[i].schema, cases[i].document, r);
        assert_says(test_failure.text, cases[i].reason);
        if (r < 0)
            assert_says(test_failure.place, "x.json:1:");
    }
}
