/* How the words of a command line become options and operands, and what is refused. */
#include "engine/command-line/verb.h"

#include "engine/command-line/manual.h"
#include "engine/foundation/memory.h"
#include "tests/test.h"

static const struct verb_option options[] = {
    {"--output", 'o', "FILE", "Where to write."}, {"--json", 'j', NULL, "JSON."},
    {"--quiet", 'q', NULL, "Say less."},          {"--terms", 0, "TERM...", "A term."},
    {"--aside", 0, "[=WHERE]", "Elsewhere."},     {0},
};

static const struct verb fit = {
    .name = "fit",
    .summary = "fit a thing",
    .synopsis = "assay fit INPUT...",
    .description = "First paragraph with words.\nIt goes on.\n\n    example --kept  as it is\n\n.start and "
                   "'quote' and a "
                   "back\\slash.",
    .options = options,
    .operands_least = 1,
    .operands_most = 3,
};

#define WORDS(...)                                                                                           \
    ((const char *const[]){__VA_ARGS__}), sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

static int parse(const char *const *words, size_t count, struct verb_arguments *ret,
                 struct failure *failure) {
    return verb_parse(&fit, count, words, ret, failure);
}

static void refused(const char *const *words, size_t count, const char *expected) {
    struct verb_arguments arguments = {0};
    struct failure failure = {0};
    assert_true(parse(words, count, &arguments, &failure) < 0);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    assert_string_equal(failure.place, "fit");
    assert_string_equal(failure.text, expected);
    assert_null(arguments.verb);
}

TEST(every_spelling) {
    static const struct {
        const char *words[3];
        size_t count;
    } spellings[] = {
        {{"--output", "x.json", "in"}, 3}, {{"--output=x.json", "in"}, 2}, {{"-o", "x.json", "in"}, 3},
        {{"-ox.json", "in"}, 2},           {{"in", "-o", "x.json"}, 3},    {{"in", "--output=x.json"}, 2},
    };
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        cleanup(verb_arguments_clear) struct verb_arguments arguments = {0};
        struct failure failure = {0};
        assert_int_equal(parse(spellings[i].words, spellings[i].count, &arguments, &failure), 0);
        assert_string_equal(verb_value(&arguments, "--output"), "x.json");
        assert_false(verb_switch(&arguments, "--json"));
        assert_int_equal(arguments.operand_count, 1);
        assert_string_equal(arguments.operands[0], "in");
    }
}

/* NAME=VALUE: the same name twice is refused, whatever the values. */
TEST(settings) {
    cleanup(verb_arguments_clear) struct verb_arguments once = {0}, twice = {0};
    struct failure failure = {0};
    assert_int_equal(parse(WORDS("in", "--terms", "a=1", "--terms", "ab=1", "--terms=b=a"), &once, &failure),
                     0);
    assert_int_equal(verb_check_settings(&once, "--terms", &failure), 0);
    assert_int_equal(parse(WORDS("in", "--terms", "a=1", "--terms", "b", "--terms=a=2"), &twice, &failure),
                     0);
    assert_true(verb_check_settings(&twice, "--terms", &failure) < 0);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    assert_string_equal(failure.text, "'a' is set twice: 'a=1' and 'a=2'; expected one of them");
}

TEST(mixture) {
    cleanup(verb_arguments_clear) struct verb_arguments arguments = {0};
    assert_int_equal(parse(WORDS("a", "-jqotwo=2", "--terms", "m*n", "-", "--terms=", "--", "--json"),
                           &arguments, &test_failure),
                     0);
    assert_true(verb_switch(&arguments, "--json"));
    assert_true(verb_switch(&arguments, "--quiet"));
    assert_string_equal(verb_value(&arguments, "--output"), "two=2");
    assert_string_equal(verb_value_at(&arguments, "--terms", 0), "m*n");
    assert_string_equal(verb_value_at(&arguments, "--terms", 1), "");
    assert_null(verb_value_at(&arguments, "--terms", 2));
    assert_int_equal(arguments.operand_count, 3);
    assert_string_equal(arguments.operands[0], "a");
    assert_string_equal(arguments.operands[1], "-");
    assert_string_equal(arguments.operands[2], "--json");
}

TEST(many_switches_in_one_word) {
    char word[4096] = "-";
    memset(word + 1, 'j', sizeof word - 2);
    cleanup(verb_arguments_clear) struct verb_arguments arguments = {0};
    assert_int_equal(parse(WORDS("in", word), &arguments, &test_failure), 0);
    assert_int_equal(arguments.option_count, sizeof word - 2);
}

TEST(refusals) {
    refused(WORDS("in", "--jsno"), "unknown option '--jsno'; did you mean '--json'?");
    refused(WORDS("in", "--ouput=x"), "unknown option '--ouput'; did you mean '--output'?");
    refused(WORDS("in", "--frobnicate"), "unknown option '--frobnicate'; 'assay fit --help' lists them");
    refused(WORDS("in", "-jx"), "unknown option '-x'; 'assay fit --help' lists them");
    refused(WORDS("in", "-o"), "option '--output' needs an argument: --output FILE");
    refused(WORDS("in", "--json=yes"), "option '--json' takes no argument; found 'yes'");
    refused(WORDS("in", "-oa", "--output=b"), "option '--output' is given twice; expected it once");
    refused(WORDS("--json"), "too few operands; usage: assay fit INPUT...");
    refused(WORDS("a", "b", "c", "d"), "unexpected operand 'd'; usage: assay fit INPUT...");
}

TEST(help_is_asked) {
    struct verb_arguments arguments = {0};
    assert_int_equal(parse(WORDS("--json", "--help", "--no-such-option"), &arguments, &test_failure), 1);
    assert_int_equal(parse(WORDS("-qh"), &arguments, &test_failure), 1);
    assert_null(arguments.given);
    cleanup(verb_arguments_clear) struct verb_arguments literal = {0};
    assert_int_equal(parse(WORDS("--", "--help"), &literal, &test_failure), 0);
    assert_string_equal(literal.operands[0], "--help");
}

TEST(text_keeps_the_width) {
    for (size_t width = MANUAL_WIDTH_LEAST; width <= MANUAL_WIDTH_MAX; width++) {
        cleanup_free char *program = manual_text(NULL, width), *command = manual_text(&fit, width);
        cleanup_free char *text = xformat("%s%s", program, command);
        assert_non_null(strstr(text, "\n    example --kept  as it is\n"));
        for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
            if (line[0] != ' ' || strncmp(line, "      ", 6) == 0)
                assert_true(strcspn(line, "\n") <= width);
    }
}

/* What follows a switch that may have a value is its value only after "=". */
TEST(values_that_may_be_left_out) {
    static const struct {
        const char *words[2], *value;
    } cases[] = {{{"--aside", "in"}, NULL}, {{"--aside=job", "in"}, "job"}, {{"--aside=", "in"}, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup(verb_arguments_clear) struct verb_arguments arguments = {0};
        struct failure failure = {0};
        assert_int_equal(parse(cases[i].words, 2, &arguments, &failure), 0);
        assert_true(verb_switch(&arguments, "--aside"));
        assert_int_equal(arguments.operand_count, 1);
        const char *value = verb_value(&arguments, "--aside");
        assert_true(cases[i].value ? value && strcmp(value, cases[i].value) == 0 : !value);
    }
    cleanup_free char *page = manual_text(&fit, MANUAL_WIDTH_MAX);
    assert_non_null(strstr(page, "--aside[=WHERE]  "));
}
