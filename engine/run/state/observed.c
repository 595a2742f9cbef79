#include "engine/run/state/observed.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/run/nodes/kinds.h"

#include <stdlib.h>
#include <string.h>

static const char *const shown_controls[] = {"governor", "frequency", "turbo", "hyperthreads"};
enum { SHOWN_CONTROLS = sizeof shown_controls / sizeof *shown_controls, TEXT_MAX = 4096 };

/* Does the agent see two processors of one core? A scheduler may have left it one of each. */
static bool has_siblings(const struct node_facts *facts) {
    for (size_t i = 0; i < facts->pu_count; i++)
        if (facts->pus[i].allowed && facts->pus[i].index != facts->pus[i].first_sibling_index)
            return true;
    return false;
}

/* "governor powersave (the job asks for performance)" */
static void describe_control(const struct run_node *node, const struct node_control_state *state,
                             const char *name, const char *asked, struct text *ret) {
    const struct node_control *control = NULL;
    for (size_t i = 0; i < state->count; i++)
        if (strcmp(state->controls[i].name, name) == 0)
            control = &state->controls[i];
    const char *value = control && control->value[0] ? control->value : "unknown";
    bool is_as_asked = !asked || strcmp(asked, value) == 0 ||
                       (strcmp(name, "hyperthreads") == 0 && !has_siblings(node->facts));
    text_printf(ret, "%s%s %s", ret->length ? ", " : "", name, value);
    if (!is_as_asked)
        text_printf(ret, " (the job asks for %s)", asked);
}

void observed_note(struct node_set *set, const struct node_control_state *states) {
    const struct testbed_choice *testbed = &set->campaign->testbed;
    bool is_only_observed =
        testbed->backend->kills_agents && testbed->backend->kills_agents(testbed->settings);
    char *asked[SHOWN_CONTROLS] = {0};
    bool is_shown = is_only_observed;
    for (size_t i = 0; testbed->backend->asks && i < SHOWN_CONTROLS; i++) {
        asked[i] = testbed->backend->asks(testbed->settings, shown_controls[i]);
        is_shown |= asked[i] != NULL;
    }
    cleanup(node_texts_clear) struct node_texts words = node_texts_new(set->count);
    for (struct run_node *node = NULL; is_shown && (node = node_set_next(set, node));) {
        cleanup(text_clear) struct text text;
        text_init(&text, TEXT_MAX);
        if (states[node->number].count == 0)
            continue; /* it has not answered */
        for (size_t i = 0; i < SHOWN_CONTROLS; i++)
            describe_control(node, &states[node->number], shown_controls[i], asked[i], &text);
        words.items[node->number] = xformat(
            "%s: %s", is_only_observed ? "controls are observed, not set" : "controls as found", text.bytes);
    }
    node_set_note_grouped(set, &words);
    for (size_t i = 0; i < SHOWN_CONTROLS; i++)
        free(asked[i]);
}
