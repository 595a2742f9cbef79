#include "engine/run/campaign/warm-up-settings.h"

#include "engine/documents/bind.h"
#include "engine/documents/unit.h"

#include <string.h>

static const double longest = 86400; /* s */

struct written {
    struct warm_up_settings settings;
    int until, load;
};

static const char *const untils[] = {"time", "steady", NULL};
const char *const warm_up_load_names[] = {
    [WARM_UP_AGENT] = "agent", [WARM_UP_STRESS] = "stress", [WARM_UP_STRESS_NG] = "stress-ng", NULL};

#define WARM_UP_QUANTITY(name, member, unit, least, most)                                                    \
    {                                                                                                        \
        .key = name, .type = BIND_QUANTITY, .offset = offsetof(struct written, settings.member),             \
        .dimension = unit, .minimum = least, .maximum = most                                                 \
    }
static const struct bind_field fields[] = {
    {.key = "until", .type = BIND_CHOICE, .offset = offsetof(struct written, until), .choices = untils},
    {.key = "load",
     .type = BIND_CHOICE,
     .offset = offsetof(struct written, load),
     .choices = warm_up_load_names},
    WARM_UP_QUANTITY("time", seconds, UNIT_TIME, 0.1, 86400),
    WARM_UP_QUANTITY("at-most", at_most_seconds, UNIT_TIME, 1, 86400),
    WARM_UP_QUANTITY("window", limits.window_seconds, UNIT_TIME, 0.5, 3600),
    WARM_UP_QUANTITY("temperature-slope", limits.temperature_slope, UNIT_TEMPERATURE, 1e-3, 100),
    WARM_UP_QUANTITY("temperature-spread", limits.temperature_spread, UNIT_TEMPERATURE, 1e-3, 100),
    WARM_UP_QUANTITY("frequency-slope", limits.frequency_slope, UNIT_RATIO, 1e-5, 1),
    WARM_UP_QUANTITY("frequency-spread", limits.frequency_spread, UNIT_RATIO, 1e-5, 1),
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

static int bind_all(const struct document *document, const struct document_node *node,
                    struct warm_up_settings *settings, struct failure *failure) {
    struct written written = {.settings = *settings};
    int r = bind_mapping(document, node, "warm-up", fields, FIELD_COUNT, &written, failure);
    if (r < 0)
        return r;
    const struct document_node *time = document_get(node, "time"), *until = document_get(node, "until");
    if (!time == !until || (time && written.until) || (until && !written.until))
        return failure_input(failure, document->file, node->line, node->column,
                             "'warm-up' needs one of 'time' and 'until: steady'");
    written.settings.kind = time ? WARM_UP_TIME : WARM_UP_STEADY;
    written.settings.load = (enum warm_up_load)written.load;
    if (written.settings.kind == WARM_UP_STEADY &&
        written.settings.at_most_seconds < written.settings.limits.window_seconds) {
        const struct document_node *at = document_get(node, "at-most");
        at = at ? at : document_get(node, "window");
        return failure_input(failure, document->file, at->line, at->column,
                             "'at-most' is %g s and 'window' is %g s, expected at least one window",
                             written.settings.at_most_seconds, written.settings.limits.window_seconds);
    }
    *settings = written.settings;
    return 0;
}

int warm_up_settings_bind(const struct document *document, const struct document_node *node,
                          struct warm_up_settings *ret, struct failure *failure) {
    struct warm_up_settings settings = {.at_most_seconds = 900,
                                        .limits = {.window_seconds = 60,
                                                   .temperature_slope = 1,
                                                   .temperature_spread = 3,
                                                   .frequency_slope = 0.01,
                                                   .frequency_spread = 0.03}};
    if (node && node->kind == DOCUMENT_MAPPING) {
        int r = bind_all(document, node, &settings, failure);
        if (r < 0)
            return r;
    } else if (node && node->text && strcmp(node->text, "steady") == 0) {
        settings.kind = WARM_UP_STEADY;
    } else if (node && !(node->text && strcmp(node->text, "none") == 0)) {
        settings.kind = WARM_UP_TIME;
        if (!node->text || !unit_parse(node->text, UNIT_TIME, &settings.seconds) ||
            !(settings.seconds >= 0.1 && settings.seconds <= longest))
            return failure_input(failure, document->file, node->line, node->column,
                                 "'warm-up' is %s%.64s%s, expected a time such as 2min, steady, none, or a "
                                 "mapping",
                                 node->text ? "'" : "",
                                 node->text ? node->text : document_kind_name(node->kind),
                                 node->text ? "'" : "");
    }
    *ret = settings;
    return 0;
}
