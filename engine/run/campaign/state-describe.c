#include "engine/run/campaign/state-describe.h"

#include "engine/foundation/number.h"

#include <string.h>

static const char *const rigours[] = {[CONTROL_ERROR] = "error", [CONTROL_BEST_EFFORT] = "best-effort"};
static const char *const warm_up_kinds[] = {
    [WARM_UP_NONE] = "none", [WARM_UP_TIME] = "time", [WARM_UP_STEADY] = "steady"};

/* ---- For people */

static void describe_controls(const struct control_settings *settings, bool varying, struct text *ret) {
    char words[NUMBER_TEXT_SIZE];
    if (!control_settings_any(settings) && !varying) {
        text_append_string(ret, "  control    nothing is changed on the nodes\n");
        return;
    }
    text_append_string(ret, "  control    every control is kept as it is found, then:");
    for (size_t i = 0; i < CONTROL_KINDS; i++)
        if (settings->values[i])
            text_printf(ret, " %s %s;", control_kind_names[i], settings->values[i]);
    text_printf(ret, "%s\n             read back; a mismatch is %s, what a node cannot do is %s",
                varying ? " the rest as each block wants it;" : "",
                settings->mismatch == CONTROL_ERROR ? "an error" : "recorded",
                settings->unavailable == CONTROL_ERROR ? "an error" : "recorded");
    if (settings->proof_seconds > 0)
        text_printf(ret, "\n             proof: all PUs busy for %s, within %g %% of what was asked",
                    number_describe_duration(settings->proof_seconds, words), settings->tolerance * 100);
    text_append_character(ret, '\n');
}

static void describe_warm_up(const struct warm_up_settings *settings, bool varying, struct text *ret) {
    char words[NUMBER_TEXT_SIZE], window[NUMBER_TEXT_SIZE];
    const char *each = varying ? ", before each block" : "";
    if (settings->kind == WARM_UP_NONE)
        text_append_string(ret, "  warm-up    none\n");
    else if (settings->kind == WARM_UP_TIME)
        text_printf(ret, "  warm-up    load (%s) for %s%s\n", warm_up_load_names[settings->load],
                    number_describe_duration(settings->seconds, words), each);
    else
        text_printf(ret,
                    "  warm-up    load (%s) until steady%s, at most %s: over %s temperatures keep to %g Cel "
                    "(slope) and %g Cel (spread), frequencies to %g %% and %g %%\n",
                    warm_up_load_names[settings->load], each,
                    number_describe_duration(settings->at_most_seconds, words),
                    number_describe_duration(settings->limits.window_seconds, window),
                    settings->limits.temperature_slope, settings->limits.temperature_spread,
                    settings->limits.frequency_slope * 100, settings->limits.frequency_spread * 100);
}

void state_describe(const struct campaign *campaign, bool varying, struct text *ret) {
    describe_controls(&campaign->controls, varying, ret);
    describe_warm_up(&campaign->warm_up, varying, ret);
}

void state_describe_watch(const struct campaign *campaign, struct text *ret) {
    const struct gate_settings *gates = &campaign->gates;
    if (!probe_settings_any(&campaign->probes)) {
        text_append_string(ret, "             not watched: probes are none\n");
        return;
    }
    text_append_string(ret, "             watched:");
    for (size_t i = 0; i < PROBE_KINDS; i++) {
        char words[NUMBER_TEXT_SIZE];
        if (campaign->probes.periods_ns[i] > 0)
            text_printf(ret, " %s (%s)", probe_kind_names[i],
                        number_describe_duration((double)campaign->probes.periods_ns[i] * 1e-9, words));
    }
    text_append_string(ret, "\n             gates:");
    for (size_t i = 0; i < GATE_KINDS; i++)
        text_printf(ret, " %s %s;", gate_kind_names[i], gate_action_names[gates->actions[i]]);
    text_printf(ret, " at most %lld repeats of a unit\n", (long long)gates->repeats);
}

void state_describe_loss(const struct campaign *campaign, struct text *ret) {
    static const char *const words[] = {
        [NODE_LOSS_ABORT] = "the run ends as failed",
        [NODE_LOSS_CONTINUE] = "is taken out, and the others go on",
        [NODE_LOSS_REPLACE] = "is taken out, and a spare measures its share",
    };
    const struct node_loss_settings *settings = &campaign->node_loss;
    text_printf(ret, "             a node that is lost: %s", words[settings->action]);
    if (settings->action != NODE_LOSS_ABORT)
        text_printf(ret, "; with fewer than %lld left the run ends as failed", (long long)settings->at_least);
    text_append_character(ret, '\n');
}

void state_describe_restore(const struct campaign *campaign, bool varying, struct text *ret) {
    text_append_string(ret, control_settings_any(&campaign->controls) || varying
                                ? "  restore    every control as it was found\n"
                                : "  restore    nothing was changed\n");
}

/* ---- For programs */

static void resolve_controls(const struct control_settings *settings, cJSON *object) {
    for (size_t i = 0; i < CONTROL_KINDS; i++)
        if (settings->values[i])
            json_add_string(object, control_kind_names[i], settings->values[i]);
    json_add_string(object, "mismatch", rigours[settings->mismatch]);
    json_add_string(object, "unavailable", rigours[settings->unavailable]);
    json_add_double(object, "proof_seconds", settings->proof_seconds);
    json_add_double(object, "tolerance", settings->tolerance);
}

static void resolve_warm_up(const struct warm_up_settings *settings, cJSON *object) {
    json_add_string(object, "kind", warm_up_kinds[settings->kind]);
    if (settings->kind == WARM_UP_NONE)
        return;
    json_add_string(object, "load", warm_up_load_names[settings->load]);
    if (settings->kind == WARM_UP_TIME) {
        json_add_double(object, "seconds", settings->seconds);
        return;
    }
    json_add_double(object, "at_most_seconds", settings->at_most_seconds);
    json_add_double(object, "window_seconds", settings->limits.window_seconds);
    json_add_double(object, "temperature_slope_celsius", settings->limits.temperature_slope);
    json_add_double(object, "temperature_spread_celsius", settings->limits.temperature_spread);
    json_add_double(object, "frequency_slope", settings->limits.frequency_slope);
    json_add_double(object, "frequency_spread", settings->limits.frequency_spread);
}

static void resolve_gates(const struct gate_settings *settings, cJSON *object) {
    for (size_t i = 0; i < GATE_KINDS; i++)
        json_add_string(object, gate_kind_names[i], gate_action_names[settings->actions[i]]);
    json_add_int64(object, "repeats", settings->repeats);
    json_add_double(object, "frequency_tolerance", settings->frequency_tolerance);
    json_add_double(object, "temperature_band_celsius", settings->temperature_band);
    json_add_double(object, "foreign_load", settings->foreign_load);
}

void state_resolve(const struct campaign *campaign, cJSON *object) {
    resolve_controls(&campaign->controls, json_add_object(object, "controls"));
    cJSON *probes = json_add_object(object, "probe_periods_seconds");
    for (size_t i = 0; i < PROBE_KINDS; i++)
        if (campaign->probes.periods_ns[i] > 0)
            json_add_double(probes, probe_kind_names[i], (double)campaign->probes.periods_ns[i] * 1e-9);
    resolve_warm_up(&campaign->warm_up, json_add_object(object, "warm_up"));
    resolve_gates(&campaign->gates, json_add_object(object, "gates"));
    if (campaign->stop_after_failures > 0)
        json_add_int64(object, "stop_after_failures", campaign->stop_after_failures);
    else
        json_add_string(object, "stop_after_failures", "none");
    cJSON *loss = json_add_object(object, "node_loss");
    json_add_string(loss, "do", node_loss_action_names[campaign->node_loss.action]);
    json_add_int64(loss, "at_least", campaign->node_loss.at_least);
}
