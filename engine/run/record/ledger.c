#include "engine/run/record/ledger.h"

#include "engine/foundation/memory.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    uint16_t attempts;
    uint8_t flags;
    bool done;
};

struct place {
    char *node, *core;
    size_t number;
    struct unit *units; /* one a position */
};

struct ledger {
    size_t positions;
    struct place **places;
    size_t place_count;
    void *names; /* the places as tsearch(3) has them */
    struct ledger_totals totals;
};

struct ledger *ledger_new(size_t positions) {
    struct ledger *ledger = xcalloc(1, sizeof *ledger);
    ledger->positions = positions;
    return ledger;
}

static void free_place(void *item) {
    struct place *place = item;
    free(place->node);
    free(place->core);
    free(place->units);
    free(place);
}

void ledger_free(struct ledger *ledger) {
    if (!ledger)
        return;
    tdestroy(ledger->names, free_place);
    free(ledger->places);
    free(ledger);
}

static int compare_places(const void *a, const void *b) {
    const struct place *one = a, *other = b;
    int order = strcmp(one->core, other->core);
    return order ? order : strcmp(one->node, other->node);
}

size_t ledger_place(struct ledger *ledger, const char *node, const char *core) {
    struct place wanted = {.node = (char *)node, .core = (char *)core};
    struct place *const *found = tfind(&wanted, &ledger->names, compare_places);
    if (found)
        return (*found)->number;
    size_t count = ledger->place_count;
    if ((count & (count - 1)) == 0) /* 0 or a power of two: full */
        ledger->places = xrealloc(ledger->places, (count ? 2 * count : 1) * sizeof(struct place *));
    struct place *place = xcalloc(1, sizeof *place);
    *place = (struct place){xstrdup(node), xstrdup(core), count,
                            xcalloc(ledger->positions + 1, sizeof *place->units)};
    if (!tsearch(place, &ledger->names, compare_places))
        abort(); /* out of memory */
    ledger->places[ledger->place_count++] = place;
    return place->number;
}

size_t ledger_place_count(const struct ledger *ledger) {
    return ledger->place_count;
}

const char *ledger_place_node(const struct ledger *ledger, size_t place) {
    return ledger->places[place]->node;
}

const char *ledger_place_core(const struct ledger *ledger, size_t place) {
    return ledger->places[place]->core;
}

static const struct unit *find_unit(const struct ledger *ledger, size_t place, size_t position) {
    return &ledger->places[place]->units[position];
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
    return !unit->done && unit->attempts > 0;
}

static void count_line(struct ledger_totals *totals, unsigned flags, bool again) {
    totals->repeated += again;
    totals->flagged += flags != 0;
    for (unsigned flag = 0; flag < LEDGER_FLAGS; flag++)
        totals->flagged_by[flag] += flags >> flag & 1;
}

void ledger_take(struct ledger *ledger, const struct ledger_attempt *attempt) {
    struct ledger_totals *totals = &ledger->totals;
    struct unit *unit = &ledger->places[attempt->place]->units[attempt->position];
    bool had_failed = !unit->done && unit->attempts > 0;
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
        totals->failed += !had_failed;
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
