#include "engine/run/measure/unit-output.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SNIPPET_MAX = 160 }; /* bytes of an output, in a sentence about it */

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
    return length <= EXPERIMENT_TEXT_MAX;
}

/* Converts what the pattern found to the response's value; a text becomes its code in TEXTS. False: WHY gets
 * what was expected. */
static bool convert_value(const struct experiment_response *response, struct text_set *texts,
                          const char *bytes, size_t length, double *ret, struct text *why) {
    if (response->about.type == COLUMN_NUMBER) {
        if (number_parse_double(bytes, length, ret))
            return true;
        text_append_string(why, "a number");
    } else if (!unit_output_is_text(bytes, length)) {
        text_printf(why, "one line of at most %d bytes", (int)EXPERIMENT_TEXT_MAX);
    } else if (response->choices.count > 0 && !is_one_of(&response->choices, bytes, length)) {
        append_choices(&response->choices, why);
    } else if (texts->count >= DESIGN_LABELS_MAX) {
        text_append_string(why, "fewer different texts than there are");
    } else {
        *ret = text_set_add(texts, bytes, length);
        return true;
    }
    return false;
}

/* Reads one response from OUTPUT. False: WHY says what the pattern found instead. CUT: output is missing, so
 * that a match at its end may not be whole. */
static bool read_response(const struct experiment_response *response, const regex_t *pattern,
                          struct text_set *texts, const struct text *output, bool cut, double *ret,
                          struct text *why) {
    const char *bytes;
    size_t length;
    int found = pattern_find(pattern, output->bytes, output->length, &bytes, &length);
    if (found < 0) {
        text_printf(why,
                    "the pattern of '%s', '%.200s', took more than %d s of CPU time on %zu "
                    "bytes of output; simplify the pattern",
                    response->about.name, response->pattern, (int)PATTERN_CPU_SECONDS_MAX, output->length);
        return false;
    }
    if (!found || (cut && bytes + length == output->bytes + output->length)) {
        cleanup_free char *printed = xstrndup(output->bytes, output->length);
        text_printf(why, "nothing on standard output matches the pattern of '%s', '%.200s'; it printed ",
                    response->about.name, response->pattern);
        if (text_shorten(printed, strlen(printed), SNIPPET_MAX) > 0)
            text_printf(why, "'%s'", printed);
        else
            text_append_string(why, "nothing");
        return false;
    }
    text_printf(why, "the pattern of '%s' found '%.*s', expected ", response->about.name,
                (int)(length < 100 ? length : 100), bytes);
    if (!convert_value(response, texts, bytes, length, ret, why))
        return false;
    text_reset(why);
    return true;
}

/* Does the unit pass the experiment's checks? False: WHY is "it did not pass: residual is 31.2, expected
 * residual < 16". */
static bool passes(const struct experiment *experiment, const struct text_set *texts, const double *responses,
                   struct text *why) {
    for (size_t i = 0; i < experiment->response_count; i++) {
        const struct experiment_response *response = &experiment->responses[i];
        if (response->pass.count == 0)
            continue;
        const char *found = texts->texts[(size_t)responses[i]];
        if (is_one_of(&response->pass, found, strlen(found)))
            continue;
        text_printf(why, "it did not pass: %s is '%.100s', expected ", response->about.name, found);
        append_choices(&response->pass, why);
        return false;
    }
    double value = experiment->pass ? expression_value(experiment->pass, responses) : 1;
    if (value != 0 && !isnan(value))
        return true;
    for (size_t i = 0; i < experiment->response_count; i++)
        if (expression_uses(experiment->pass, i))
            text_printf(why, "%s%s is %.10g",
                        why->length ? " and " : "it did not pass: ", experiment->responses[i].about.name,
                        responses[i]);
    text_printf(why, ", expected %.200s", expression_text(experiment->pass));
    return false;
}

bool unit_output_read(const struct experiment *experiment, const regex_t *patterns, struct text_set *texts,
                      const struct text *output, bool cut, double *responses, struct text *why) {
    for (size_t i = 0; i < experiment->response_count; i++)
        if (!read_response(&experiment->responses[i], &patterns[i], texts, output, cut, &responses[i], why))
            return false;
    return passes(experiment, texts, responses, why);
}
