#include "engine/run/measure/unit-output.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

char *unit_output_name(size_t order, const char *node, const char *core, unsigned attempt,
                       const char *suffix) {
    if (attempt == 1)
        return text_format("results/raw/%zu-%s-%s.%s", order, node, core, suffix);
    return text_format("results/raw/%zu-%s-%s-again-%u.%s", order, node, core, attempt, suffix);
}

static bool is_one_of(const struct bind_texts *texts, const char *bytes, size_t length) {
    for (size_t i = 0; i < texts->count; i++)
        if (strlen(texts->items[i]) == length && memcmp(texts->items[i], bytes, length) == 0)
            return true;
    return false;
}

/* "one of yes, unchecked"; many choices just end. */
static void append_choices(const struct bind_texts *texts, struct text *ret) {
    text_append_string(ret, texts->count > 1 ? "one of " : "");
    for (size_t i = 0; i < texts->count; i++)
        if (text_printf(ret, "%s%s", i ? ", " : "", texts->items[i]) < 0)
            return;
}

bool unit_output_is_text(const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (((unsigned char)bytes[i] < ' ' && bytes[i] != '\t') || bytes[i] == 0x7f)
            return false;
    return length <= EXPERIMENT_TEXT_MOST;
}

/* What the pattern found, as the response's value; what was expected instead is appended to EXPECTED. */
static bool take(const struct experiment_response *response, struct labels *texts, const char *bytes,
                 size_t length, double *ret, struct text *expected) {
    uint32_t code;
    if (response->type == EXPERIMENT_RESPONSE_NUMBER && !number_parse_double(bytes, length, ret))
        text_append_string(expected, "a number");
    else if (response->type == EXPERIMENT_RESPONSE_NUMBER)
        return true;
    else if (!unit_output_is_text(bytes, length))
        text_printf(expected, "one line of at most %d bytes", (int)EXPERIMENT_TEXT_MOST);
    else if (response->choices.count > 0 && !is_one_of(&response->choices, bytes, length))
        append_choices(&response->choices, expected);
    else if (labels_code(texts, bytes, length, &code) < 0)
        text_append_string(expected, "fewer different texts than there are");
    else
        return *ret = code, true;
    return false;
}

static bool read_response(const struct experiment_response *response, const regex_t *pattern,
                          struct labels *texts, const struct text *output, bool cut, double *ret,
                          char why[static UNIT_OUTPUT_WHY_SIZE]) {
    const char *bytes;
    size_t length;
    int found = pattern_find(pattern, output->bytes, output->length, &bytes, &length);
    if (found < 0) {
        snprintf(
            why, UNIT_OUTPUT_WHY_SIZE,
            "the pattern of '%s', '%.200s', was given up after %d s of CPU time: it takes too long on %zu "
            "bytes of output",
            response->name, response->pattern, (int)PATTERN_CPU_SECONDS_MAX, output->length);
        return false;
    }
    if (!found || (cut && bytes + length == output->bytes + output->length)) {
        snprintf(why, UNIT_OUTPUT_WHY_SIZE, "nothing in the output matches the pattern of '%s', '%.200s'",
                 response->name, response->pattern);
        return false;
    }
    cleanup(text_clear) struct text expected;
    text_init(&expected, UNIT_OUTPUT_WHY_SIZE / 2);
    if (take(response, texts, bytes, length, ret, &expected))
        return true;
    snprintf(why, UNIT_OUTPUT_WHY_SIZE, "the pattern of '%s' found '%.*s', expected %s", response->name,
             (int)(length < 100 ? length : 100), bytes, expected.bytes);
    return false;
}

/* What a unit that does not pass has said: "residual is 31.2, expected residual < 16". */
static bool passes(const struct experiment *experiment, const struct labels *texts, const double *responses,
                   struct text *words) {
    for (size_t i = 0; i < experiment->response_count; i++) {
        const struct experiment_response *response = &experiment->responses[i];
        if (response->pass.count == 0)
            continue;
        const char *found = texts->items[(size_t)responses[i]];
        if (is_one_of(&response->pass, found, strlen(found)))
            continue;
        text_printf(words, "%s is '%.100s', expected ", response->name, found);
        append_choices(&response->pass, words);
        return false;
    }
    double value = experiment->pass ? expression_value(experiment->pass, responses) : 1;
    if (value != 0 && !isnan(value))
        return true;
    for (size_t i = 0; i < experiment->response_count; i++)
        if (expression_uses(experiment->pass, i))
            text_printf(words, "%s%s is %.10g", words->length ? " and " : "", experiment->responses[i].name,
                        responses[i]);
    text_printf(words, ", expected %.200s", expression_text(experiment->pass));
    return false;
}

bool unit_output_read(const struct experiment *experiment, const regex_t *patterns, struct labels *texts,
                      const struct text *output, bool cut, double *responses,
                      char why[static UNIT_OUTPUT_WHY_SIZE]) {
    for (size_t i = 0; i < experiment->response_count; i++)
        if (!read_response(&experiment->responses[i], &patterns[i], texts, output, cut, &responses[i], why))
            return false;
    cleanup(text_clear) struct text words;
    text_init(&words, UNIT_OUTPUT_WHY_SIZE - 32);
    if (passes(experiment, texts, responses, &words))
        return true;
    snprintf(why, UNIT_OUTPUT_WHY_SIZE, "it did not pass: %s", words.bytes);
    return false;
}
