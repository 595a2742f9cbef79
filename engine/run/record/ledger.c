#include "engine/run/record/ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct place {
    char *node, *core;
    uint64_t *done; /* a bit a position */
};

/* A unit whose story is longer than one good attempt without flags. */
struct story {
    uint64_t key; /* place << 32 | position, and 1 << 63: there is one */
    uint32_t attempts;
    uint32_t flags;
};

struct ledger {
    size_t positions;
    struct place *places;
    size_t place_count, place_capacity;
    uint32_t *slots; /* of a hash of their names: number + 1, 0: none; twice place_capacity */
    struct story *stories;
    size_t story_count, story_capacity; /* a power of two */
    struct ledger_totals totals;
};

int ledger_new(size_t positions, struct ledger **ret) {
    struct ledger *ledger = calloc(1, sizeof *ledger);
    if (!ledger)
        return -ENOMEM;
    ledger->positions = positions;
    *ret = ledger;
    return 0;
}

void ledger_free(struct ledger *ledger) {
    if (!ledger)
        return;
    for (size_t i = 0; i < ledger->place_count; i++) {
        free(ledger->places[i].node);
        free(ledger->places[i].core);
        free(ledger->places[i].done);
    }
    free(ledger->places);
    free(ledger->slots);
    free(ledger->stories);
    free(ledger);
}

/* ---- Places ----------------------------------------------------------------------------------------------
 */

static uint64_t hash_name(uint64_t hash, const char *name) {
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3); /* FNV-1a */
    return hash * UINT64_C(0x9e3779b97f4a7c15);
}

/* Where the number of the place is, or the empty slot where it would be. */
static uint32_t *find_slot(const struct ledger *ledger, const char *node, const char *core) {
    size_t slots = 2 * ledger->place_capacity;
    size_t slot = (size_t)(hash_name(hash_name(UINT64_C(0xcbf29ce484222325), node), core) >> 20) % slots;
    for (;; slot = (slot + 1) % slots) {
        uint32_t number = ledger->slots[slot];
        if (number == 0 || (strcmp(ledger->places[number - 1].core, core) == 0 &&
                            strcmp(ledger->places[number - 1].node, node) == 0))
            return &ledger->slots[slot];
    }
}

static bool grow_places(struct ledger *ledger) {
    if (ledger->place_count < ledger->place_capacity)
        return true;
    size_t capacity = ledger->place_capacity ? 2 * ledger->place_capacity : 16;
    struct place *places = realloc(ledger->places, capacity * sizeof *places);
    if (!places)
        return false;
    ledger->places = places;
    uint32_t *slots = calloc(2 * capacity, sizeof *slots);
    if (!slots)
        return false;
    free(ledger->slots);
    ledger->slots = slots;
    ledger->place_capacity = capacity;
    for (uint32_t i = 0; i < ledger->place_count; i++)
        *find_slot(ledger, places[i].node, places[i].core) = i + 1;
    return true;
}

size_t ledger_place(struct ledger *ledger, const char *node, const char *core) {
    uint32_t *slot = ledger->place_count ? find_slot(ledger, node, core) : NULL;
    if (slot && *slot)
        return *slot - 1;
    if (ledger->place_count == LEDGER_PLACES_MOST || !grow_places(ledger))
        return SIZE_MAX;
    struct place *place = &ledger->places[ledger->place_count];
    *place = (struct place){.node = strdup(node),
                            .core = strdup(core),
                            .done = calloc(ledger->positions / 64 + 1, sizeof *place->done)};
    if (!place->node || !place->core || !place->done) {
        free(place->node);
        free(place->core);
        free(place->done);
        return SIZE_MAX;
    }
    slot = find_slot(ledger, node, core);
    *slot = (uint32_t)++ledger->place_count;
    return *slot - 1;
}

size_t ledger_place_count(const struct ledger *ledger) {
    return ledger->place_count;
}

const char *ledger_place_node(const struct ledger *ledger, size_t place) {
    return ledger->places[place].node;
}

const char *ledger_place_core(const struct ledger *ledger, size_t place) {
    return ledger->places[place].core;
}

/* ---- Stories ---------------------------------------------------------------------------------------------
 */

static uint64_t key_of(size_t place, size_t position) {
    return UINT64_C(1) << 63 | (uint64_t)place << 32 | (uint64_t)position;
}

/* Where KEY is, or the empty slot where it would be. */
static size_t slot_of(const struct story *stories, size_t capacity, uint64_t key) {
    size_t slot = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (capacity - 1);
    while (stories[slot].key && stories[slot].key != key)
        slot = (slot + 1) & (capacity - 1);
    return slot;
}

static const struct story *find_story(const struct ledger *ledger, size_t place, size_t position) {
    if (ledger->story_count == 0)
        return NULL;
    size_t slot = slot_of(ledger->stories, ledger->story_capacity, key_of(place, position));
    return ledger->stories[slot].key ? &ledger->stories[slot] : NULL;
}

static int grow_stories(struct ledger *ledger) {
    if (2 * (ledger->story_count + 1) < ledger->story_capacity)
        return 0;
    size_t capacity = ledger->story_capacity ? 2 * ledger->story_capacity : 64;
    struct story *stories = calloc(capacity, sizeof *stories);
    if (!stories)
        return -ENOMEM;
    for (size_t i = 0; i < ledger->story_capacity; i++)
        if (ledger->stories[i].key)
            stories[slot_of(stories, capacity, ledger->stories[i].key)] = ledger->stories[i];
    free(ledger->stories);
    ledger->stories = stories;
    ledger->story_capacity = capacity;
    return 0;
}

static struct story *make_story(struct ledger *ledger, size_t place, size_t position) {
    if (grow_stories(ledger) < 0)
        return NULL;
    uint64_t key = key_of(place, position);
    struct story *story = &ledger->stories[slot_of(ledger->stories, ledger->story_capacity, key)];
    if (!story->key) {
        *story = (struct story){.key = key, .attempts = ledger_is_done(ledger, place, position)};
        ledger->story_count++;
    }
    return story;
}

/* ---- Units -----------------------------------------------------------------------------------------------
 */

static uint64_t *word_of(const struct ledger *ledger, size_t place, size_t position) {
    return &ledger->places[place].done[position / 64];
}

static uint64_t bit_of(size_t position) {
    return UINT64_C(1) << (position % 64);
}

bool ledger_is_done(const struct ledger *ledger, size_t place, size_t position) {
    return (*word_of(ledger, place, position) & bit_of(position)) != 0;
}

unsigned ledger_attempts(const struct ledger *ledger, size_t place, size_t position) {
    const struct story *story = find_story(ledger, place, position);
    return story ? story->attempts : ledger_is_done(ledger, place, position);
}

unsigned ledger_flags(const struct ledger *ledger, size_t place, size_t position) {
    const struct story *story = find_story(ledger, place, position);
    return story ? story->flags : 0;
}

bool ledger_has_failed(const struct ledger *ledger, size_t place, size_t position) {
    return !ledger_is_done(ledger, place, position) && ledger_attempts(ledger, place, position) > 0;
}

static bool is_there(const struct ledger *ledger, const struct ledger_attempt *attempt) {
    return attempt->place < ledger->place_count && attempt->position < ledger->positions;
}

static void count_line(struct ledger_totals *totals, unsigned flags, bool again) {
    totals->lines++;
    totals->repeated += again;
    totals->flagged += flags != 0;
    for (unsigned gate = 0; gate < GATE_KINDS; gate++)
        totals->flagged_by[gate] += flags >> gate & 1;
}

int ledger_take(struct ledger *ledger, const struct ledger_attempt *attempt) {
    if (!is_there(ledger, attempt))
        return -ERANGE;
    size_t place = attempt->place, position = attempt->position;
    bool was_done = ledger_is_done(ledger, place, position),
         had_failed = ledger_has_failed(ledger, place, position);
    /* The usual case: the first attempt was good. */
    if (attempt->attempt != 1 || !attempt->done || attempt->flags || was_done || had_failed) {
        struct story *story = make_story(ledger, place, position);
        if (!story)
            return -ENOMEM;
        if (attempt->attempt > story->attempts)
            story->attempts = attempt->attempt;
        if (attempt->done)
            story->flags = attempt->flags;
    }
    struct ledger_totals *totals = &ledger->totals;
    if (attempt->done) {
        count_line(totals, attempt->flags, was_done);
        totals->done += !was_done;
        totals->failed -= had_failed;
        *word_of(ledger, place, position) |= bit_of(position);
    } else if (was_done) {
        totals->repeats_failed++;
    } else {
        totals->failed += !had_failed;
    }
    return 0;
}

uint64_t ledger_count_done(const struct ledger *ledger, size_t place, size_t first, size_t count) {
    uint64_t done = 0;
    if (place == SIZE_MAX) {
        for (size_t i = 0; i < ledger->place_count; i++)
            done += ledger_count_done(ledger, i, first, count);
        return done;
    }
    const uint64_t *words = ledger->places[place].done;
    for (size_t at = first, end = first + count; at < end;) {
        size_t bits = 64 - at % 64 < end - at ? 64 - at % 64 : end - at;
        uint64_t mask = (bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1) << (at % 64);
        done += (uint64_t)__builtin_popcountll(words[at / 64] & mask);
        at += bits;
    }
    return done;
}

const struct ledger_totals *ledger_totals(const struct ledger *ledger) {
    return &ledger->totals;
}
