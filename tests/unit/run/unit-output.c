/* What is read from a unit's output: numbers and texts, their limits, and whether the unit passed. */
#include "engine/run/measure/unit-output.h"

#include "tests/test.h"

#define WORD(literal) ((char *)(literal))

static char *words[] = {WORD("yes"), WORD("no"), WORD("unchecked")};
static struct experiment_response responses[] = {
    {.about = {"residual", COLUMN_NUMBER, "1", .label = NULL}, .pattern = WORD("^residual (.*)$")},
    {.about = {.name = "said", .type = COLUMN_STRING}, .pattern = WORD("said=([^;]*);")},
    {.about = {.name = "verdict", .type = COLUMN_STRING},
     .pattern = WORD("^verdict (.*)$"),
     .choices = {words, 3},
     .pass = {words, 1}},
};
enum { RESPONSES = sizeof responses / sizeof *responses };

static struct world {
    struct experiment experiment;
    regex_t patterns[RESPONSES];
    struct text_set texts;
    double values[RESPONSES];
    struct text why;
} world;

static void begin(const char *pass) {
    world = (struct world){.experiment = {.responses = responses, .response_count = RESPONSES}};
    text_init(&world.why, UNIT_OUTPUT_WHY_MAX);
    char reason[PATTERN_REASON_SIZE];
    const char *names[RESPONSES];
    for (size_t i = 0; i < RESPONSES; i++) {
        names[i] = responses[i].about.name;
        assert_int_equal(pattern_compile(responses[i].pattern, &world.patterns[i], reason), 0);
    }
    if (pass)
        assert_int_equal(expression_parse(pass, names, RESPONSES, NULL, 0, 0, &world.experiment.pass, NULL),
                         0);
}

static int end(void **state) {
    for (size_t i = 0; i < RESPONSES; i++)
        tre_regfree(&world.patterns[i]);
    expression_free(world.experiment.pass);
    text_set_clear(&world.texts);
    text_clear(&world.why);
    return 0;
}
TEST_EACH(NULL, end)

/* "" when all was read and the unit passed. */
static const char *look_at(const char *output, bool cut) {
    struct text text = {.bytes = (char *)output, .length = strlen(output)};
    text_reset(&world.why);
    bool good = unit_output_read(&world.experiment, world.patterns, &world.texts, &text, cut, world.values,
                                 &world.why);
    assert_int_equal(good, world.why.length == 0);
    return world.why.bytes;
}

TEST(texts_are_codes_of_their_labels) {
    begin(NULL);
    assert_string_equal(look_at("said=a, \"b\";\nresidual 1.5\nverdict yes\n", false), "");
    assert_true(world.values[0] == 1.5);
    assert_string_equal(world.texts.texts[(size_t)world.values[1]], "a, \"b\"");
    assert_string_equal(world.texts.texts[(size_t)world.values[2]], "yes");
    double before = world.values[1];
    assert_string_equal(look_at("said=;\nresidual 1\nverdict yes\n", false), "");
    assert_string_equal(world.texts.texts[(size_t)world.values[1]], "");
    assert_string_equal(look_at("said=a, \"b\";\nresidual 2\nverdict yes\n", false), "");
    assert_true(world.values[1] == before);
}

TEST(what_is_no_text_is_refused) {
    char output[EXPERIMENT_TEXT_MAX + 100], text[EXPERIMENT_TEXT_MAX + 2] = "";
    begin(NULL);
    memset(text, 'x', EXPERIMENT_TEXT_MAX);
    snprintf(output, sizeof output, "said=%s;\nresidual 1\nverdict yes\n", text);
    assert_string_equal(look_at(output, false), "");
    text[EXPERIMENT_TEXT_MAX] = 'x';
    snprintf(output, sizeof output, "said=%s;\nresidual 1\nverdict yes\n", text);
    assert_non_null(strstr(look_at(output, false), "xxx', expected one line of at most 256 bytes"));
    /* A line of the results is a line: resuming counts them. */
    assert_non_null(strstr(look_at("said=a\nb;\nresidual 1\nverdict yes\n", false), "expected one line"));
    assert_string_equal(look_at("said=a;\nresidual 1\nverdict maybe\n", false),
                        "the pattern of 'verdict' found 'maybe', expected one of yes, no, unchecked");
    assert_string_equal(look_at("said=a;\nresidual inf\nverdict yes\n", false),
                        "the pattern of 'residual' found 'inf', expected a number");
    assert_non_null(strstr(look_at("said=a;\nresidual 1\nverdict yes", true), "nothing on standard output"));
    assert_non_null(strstr(look_at("oh dear\nat the end\n", false), "; it printed 'oh dear\nat the end\n'"));
    assert_non_null(strstr(look_at("", false), "; it printed nothing"));
}

TEST(a_unit_passes_or_says_why_not) {
    begin("residual < 16 and 1 / residual < 10");
    assert_string_equal(look_at("said=;\nresidual 15.5\nverdict yes\n", false), "");
    assert_string_equal(look_at("said=;\nresidual 31.2\nverdict yes\n", false),
                        "it did not pass: residual is 31.2, expected residual < 16 and 1 / residual < 10");
    assert_string_equal(look_at("said=;\nresidual 31.2\nverdict no\n", false),
                        "it did not pass: verdict is 'no', expected yes");
    end(NULL);
    begin("residual / residual"); /* nan is not true */
    assert_string_equal(look_at("said=;\nresidual 2\nverdict yes\n", false), "");
    assert_string_equal(look_at("said=;\nresidual 0\nverdict yes\n", false),
                        "it did not pass: residual is 0, expected residual / residual");
}
