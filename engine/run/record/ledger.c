#include "engine/run/record/ledger.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text-set.h"

#include <stdlib.h>
#include <string.h>

struct unit {
    uint16_t attempts;
    uint8_t flags;
    bool done;
};

struct place {
    char *node, *core;
    bool is_replaced;
    struct unit *units; /* one a position */
};

struct ledger {
    size_t positions;
    struct place *places; /* by the numbers of NAMES */
    size_t capacity;
    struct text_set names; /* core and node, a newline between */
    struct ledger_totals totals;
};

struct ledger *ledger_new(size_t positions) {
    struct ledger *ledger = xcalloc(1, sizeof *ledger);
    ledger->positions = positions;
    return ledger;
}

void ledger_free(struct ledger *ledger) {
    if (!ledger)
        return;
    for (size_t i = 0; i < ledger->names.count; i++) {
        free(ledger->places[i].node);
        free(ledger->places[i].core);
        free(ledger->places[i].units);
    }
    free(ledger->places);
    text_set_clear(&ledger->names);
    free(ledger);
}

/* The number of the place that CORE and NODE name; a new one is added. */
size_t ledger_place(struct ledger *ledger, const char *node, const char *core) {
    cleanup_free char *name = xmalloc(strlen(core) + 1 + strlen(node) + 1);
    const char *end = stpcpy(stpcpy(stpcpy(name, core), "\n"), node);
    size_t count = ledger->names.count, number = text_set_add(&ledger->names, name, (size_t)(end - name));
    if (number < count)
        return number;
    if (number == ledger->capacity) {
        ledger->capacity = number ? 2 * number : 1;
        ledger->places = xrealloc(ledger->places, ledger->capacity * sizeof *ledger->places);
    }
    ledger->places[number] = (struct place){.node = xstrdup(node),
                                            .core = xstrdup(core),
                                            .units = xcalloc(ledger->positions + 1, sizeof(struct unit))};
    return number;
}

size_t ledger_place_count(const struct ledger *ledger) {
    return ledger->names.count;
}

const char *ledger_place_node(const struct ledger *ledger, size_t place) {
    return ledger->places[place].node;
}

const char *ledger_place_core(const struct ledger *ledger, size_t place) {
    return ledger->places[place].core;
}

static const struct unit *find_unit(const struct ledger *ledger, size_t place, size_t position) {
    return &ledger->places[place].units[position];
}

bool ledger_is_done(const struct ledger *ledger, size_t place, size_t position) {
    return find_unit(ledger, place, position)->done;
}

unsigned ledger_attempts(const struct ledger *ledger, size_t place, size_t position) {
    return find_unit(ledger, place, position)->attempts;
}

unsigned ledger_flags(const struct ledger *ledger, size_t place, size_t position) {
    return find_unit(ledger, place, position)->flags;
}

bool ledger_has_failed(const struct ledger *ledger, size_t place, size_t position) {
    const struct unit *unit = find_unit(ledger, place, position);
    return !unit->done && unit->attempts > 0 && !ledger->places[place].is_replaced;
}

/* Failed units of NODE are no longer counted. */
void ledger_replace_node(struct ledger *ledger, const char *node) {
    for (size_t place = 0; place < ledger->names.count; place++) {
        if (strcmp(ledger->places[place].node, node) != 0)
            continue;
        for (size_t position = 0; position < ledger->positions; position++)
            ledger->totals.failed -= ledger_has_failed(ledger, place, position);
        ledger->places[place].is_replaced = true;
    }
}

/* Counts a line of the results. AGAIN: its unit was done before. */
static void count_line(struct ledger_totals *totals, unsigned flags, bool again) {
    totals->repeated += again;
    totals->flagged += flags != 0;
    for (unsigned flag = 0; flag < LEDGER_FLAGS; flag++)
        totals->flagged_by[flag] += flags >> flag & 1;
}

/* Updates the totals: a unit counts once as done or failed, further attempts as repeated. */
void ledger_add_attempt(struct ledger *ledger, const struct ledger_attempt *attempt) {
    struct ledger_totals *totals = &ledger->totals;
    struct unit *unit = &ledger->places[attempt->place].units[attempt->position];
    bool had_failed = ledger_has_failed(ledger, attempt->place, attempt->position);
    if (attempt->attempt > unit->attempts)
        unit->attempts = (uint16_t)attempt->attempt;
    if (attempt->done) {
        count_line(totals, attempt->flags, unit->done);
        totals->done += !unit->done;
        totals->failed -= had_failed;
        unit->done = true;
        unit->flags = (uint8_t)attempt->flags;
    } else if (unit->done) {
        totals->repeats_failed++;
    } else {
        totals->failed += ledger_has_failed(ledger, attempt->place, attempt->position) && !had_failed;
    }
}

uint64_t ledger_count_done(const struct ledger *ledger, size_t place, size_t first, size_t count) {
    uint64_t done = 0;
    for (size_t i = first; i < first + count; i++)
        done += find_unit(ledger, place, i)->done;
    return done;
}

const struct ledger_totals *ledger_totals(const struct ledger *ledger) {
    return &ledger->totals;
}
