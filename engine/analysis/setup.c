#include "engine/analysis/setup.h"

#include "archive-format/reader.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/host-list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/natural-order.h"
#include "engine/foundation/text-set.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIDES = 2,
    NO_NODE = UINT32_MAX,       /* a fact of the whole run */
    IGNORED = SETUP_KINDS,      /* of a rule: the fact differs between any two runs */
    VALUE_BYTES_MAX = 4096,     /* of one that is kept; a longer one is compared by its SHA-256 */
    VALUE_BYTES_SHOWN = 160,    /* of each side of a line */
    HASH_BYTES_SHOWN = 12,      /* of a SHA-256 */
    LINES_SHOWN = 20,           /* of a kind, without details */
    FACTS_BYTES_MAX = 64 << 20, /* of a file of facts that are read line by line */
};

/* ---- Which facts there are */

enum form { FORM_JSON, FORM_LINES, FORM_HASH };

/* Members with facts. The first pattern that a member's name has decides; "*" stands for one folder, or, of
 * files that are hashed, for any number of folders. */
static const struct source {
    const char *pattern, *name;
    enum form form;
} sources[] = {
    {ARCHIVE_RUN, "run", FORM_JSON},
    {ARCHIVE_CAMPAIGN_RESOLVED, "campaign", FORM_JSON},
    {ARCHIVE_INPUTS, "inputs", FORM_JSON},
    {ARCHIVE_VERSIONS, "software", FORM_JSON},
    {ARCHIVE_SOFTWARE "/sources.json", "sources", FORM_JSON},
    {ARCHIVE_NODES "/*/" ARCHIVE_NODE_FACTS, "facts", FORM_JSON},
    {ARCHIVE_NODES "/*/" ARCHIVE_NODE_CONTROLS, "controls", FORM_JSON},
    {ARCHIVE_NODES "/*/raw/*", "raw", FORM_LINES},
    {ARCHIVE_DESIGN, "file", FORM_HASH},
    {ARCHIVE_SOURCE, "file", FORM_HASH},
    {ARCHIVE_EXPERIMENT "/*", "file", FORM_HASH},
    {ARCHIVE_INPUT_FILES "/*", "file", FORM_HASH},
};
enum { SOURCES = sizeof sources / sizeof *sources };

/* What a fact is about. The first pattern of its source that its path has decides; others are SETUP_OTHER. */
static const struct rule {
    int kind;                      /* enum setup_kind, or IGNORED */
    const char *source, *patterns; /* the latter between blanks */
} rules[] = {
    {SETUP_OTHER, "run", "engine.* import.engine"},
    {SETUP_DESIGN, "run", "experiment.name counts.rows"},
    {SETUP_SEED, "run", "seed order"},
    {SETUP_NODES, "run", "nodes testbed"},
    {SETUP_BLAS, "run", "options.*blas*"},
    {SETUP_COMPILER, "run", "options.*flags* options.*cc"},
    {SETUP_DESIGN, "run", "options.*"},
    {IGNORED, "run", "*"},
    {SETUP_SEED, "inputs", "order_sha256"},
    {IGNORED, "inputs", "*"},
    {SETUP_CONTROLS, "campaign", "controls.*"},
    {SETUP_NODES, "campaign", "testbed*"},
    {IGNORED, "campaign", "design.seed experiment options.* resolved.*"}, /* the run has them */
    {SETUP_DESIGN, "campaign", "design.* experiment.*"},
    {SETUP_PROCESSOR, "facts", "cpu_model microcode physical_cores_usable pus machine"},
    {SETUP_KERNEL, "facts", "kernel_*"},
    {IGNORED, "facts", "boot_id host_name memory_available_bytes agent.path agent.delivered agent.built"},
    {IGNORED, "facts", "unreadable shared.*"},
    {SETUP_CONTROLS, "controls", "driver *_frequency_hz found*.status found*.value set*.after set*.status"},
    {IGNORED, "controls", "*"},
    {IGNORED, "software", "*.path"},
    {SETUP_BLAS, "software", "*blas* *blis* *mkl* *lapack*"},
    {SETUP_COMPILER, "software", "compiler libc"},
    {SETUP_DESIGN, "sources", "*.sha256 *.git.*"},
    {IGNORED, "sources", "*"},
    {SETUP_KERNEL, "raw", "cmdline clocksource vulnerability* sysctl*"},
    {SETUP_CONTROLS, "raw", "scaling_* intel_pstate* cpufreq* cpuidle* smt-control"},
    {SETUP_CONTROLS, "raw", "transparent_hugepage* numa_balancing"},
    {SETUP_PROCESSOR, "raw", "dmi-bios* caches* numa*"},
    {SETUP_BLAS, "raw", "packages*blas* packages*mkl*"},
    {IGNORED, "raw", "cpuinfo* meminfo* swaps* version kernel-log*"},
    {IGNORED, "raw", "topology.xml"}, /* has the name of the node */
    {IGNORED, "raw", "network*address* dmi*serial* dmi*Serial* dmi*uuid* dmi*UUID*"},
    {SETUP_DESIGN, "file", "*"},
};
enum { RULES = sizeof rules / sizeof *rules };

static bool has_pattern(const char *path, const char *patterns) {
    cleanup_free char *copy = xstrdup(patterns);
    char *rest = copy, *pattern;
    while ((pattern = strsep(&rest, " ")))
        if (fnmatch(pattern, path, 0) == 0)
            return true;
    return false;
}

static int find_kind(const char *source, const char *path) {
    for (size_t i = 0; i < RULES; i++)
        if (strcmp(rules[i].source, source) == 0 && has_pattern(path, rules[i].patterns))
            return rules[i].kind;
    return SETUP_OTHER;
}

/* ---- Collecting them */

/* A value of a fact, on a node, in one of the archives. */
struct observation {
    uint32_t fact, side, value, node;
};

struct facts {
    struct text_set names;   /* "SOURCE:PATH" */
    int *kinds;              /* of each */
    uint32_t *origins;       /* of each: the member that it is of, as in `members` */
    struct text_set members; /* "facts.json of the nodes", "raw/cmdline" */
    unsigned char *seen;     /* of each: bits, which sides have facts of it */
    struct text_set values, nodes[SIDES];
    struct observation *items;
    size_t count, capacity;
};

/* Where facts are being added. */
struct place {
    struct facts *facts;
    uint32_t side, node, member;
    const char *source;
    struct text path;
};

static void facts_clear(struct facts *facts) {
    text_set_clear(&facts->names);
    text_set_clear(&facts->members);
    text_set_clear(&facts->values);
    for (size_t i = 0; i < SIDES; i++)
        text_set_clear(&facts->nodes[i]);
    free(facts->kinds);
    free(facts->origins);
    free(facts->seen);
    free(facts->items);
}

/* The member at PLACE is there; members without a name are compared by their files' own names. */
static void note_member(struct place *place, const char *name) {
    struct facts *facts = place->facts;
    size_t before = facts->members.count;
    place->member = text_set_add(&facts->members, name, strlen(name));
    if (facts->members.count > before) {
        facts->seen = xrealloc(facts->seen, facts->members.count);
        facts->seen[before] = 0;
    }
}

static void add(struct place *place, const char *value) {
    struct facts *facts = place->facts;
    char hex[HASH_HEX_SIZE];
    cleanup_free char *name = xformat("%s:%s", place->source, place->path.bytes);
    size_t before = facts->names.count;
    uint32_t fact = text_set_add(&facts->names, name, strlen(name));
    if (facts->names.count > before) {
        facts->kinds = xrealloc(facts->kinds, facts->names.count * sizeof *facts->kinds);
        facts->origins = xrealloc(facts->origins, facts->names.count * sizeof *facts->origins);
        facts->kinds[fact] = find_kind(place->source, place->path.bytes);
        facts->origins[fact] = place->member;
    }
    if (facts->kinds[fact] == IGNORED)
        return;
    facts->seen[place->member] |= (unsigned char)(1 << place->side);
    if (strlen(value) > VALUE_BYTES_MAX) {
        hash_bytes(value, strlen(value), hex);
        value = hex;
    }
    if (facts->count == facts->capacity) {
        facts->capacity = facts->capacity ? 2 * facts->capacity : 1024;
        facts->items = xrealloc(facts->items, facts->capacity * sizeof *facts->items);
    }
    facts->items[facts->count++] =
        (struct observation){.fact = fact,
                             .side = place->side,
                             .value = text_set_add(&facts->values, value, strlen(value)),
                             .node = place->node};
}

/* Appends the list item NAME to the path. Returns the path's length before, to which the caller cuts it back.
 */
static size_t enter(struct place *place, const char *name) {
    size_t length = place->path.length;
    text_printf(&place->path, "[%s]", name);
    return length;
}

static void add_item(struct place *place, const char *name, const char *value) {
    size_t outer = enter(place, name);
    add(place, value);
    text_cut(&place->path, outer);
}

/* By what an item of a list is found again in another list; NULL: nothing. */
static const char *label_of(const struct document_node *item) {
    static const char *const keys[] = {"name", "control", "path", "numa_node"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct document_node *label = document_get(item, keys[i]);
        if (label && label->text && label->kind != DOCUMENT_NULL)
            return file_base_name(label->text);
    }
    return NULL;
}

static void flatten(struct place *place, const struct document_node *node);

/* Settings NAME=VALUE are facts each, and so is what mappings have; other scalars are one text. */
static void flatten_list(struct place *place, const struct document_node *list) {
    cleanup(text_clear) struct text scalars;
    cleanup(host_list_clear) struct host_list nodes = {0};
    text_init(&scalars, FACTS_BYTES_MAX);
    for (size_t i = 0; i < list->count; i++) {
        const struct document_node *item = list->items[i];
        const char *equals = item->text ? strchr(item->text, '=') : NULL;
        cleanup_free char *name = equals ? xstrndup(item->text, (size_t)(equals - item->text)) : NULL;
        const char *label = label_of(item);
        if (name)
            add_item(place, name, equals + 1);
        else if (item->text)
            text_printf(&scalars, "%s%s", scalars.length ? ", " : "", item->text);
        else {
            size_t outer = enter(place, label ? label : "");
            flatten(place, item);
            text_cut(&place->path, outer);
        }
        if (strcmp(place->path.bytes, "nodes") == 0 && item->text)
            host_list_add(&nodes, item->text, NULL);
    }
    if (nodes.count > 0 && nodes.count == list->count) {
        text_reset(&scalars);
        host_list_fold((const char *const *)nodes.names, nodes.count, &scalars);
    }
    if (scalars.length > 0)
        add(place, scalars.bytes);
}

/* Logical CPUs and the like are many: how many there are, and the hash of what is said of them. */
static void add_numbered(struct place *place, const struct document_node *list) {
    cleanup(json_cleanup) cJSON *json = json_from_node(list);
    cleanup(text_clear) struct text text;
    char hex[HASH_HEX_SIZE];
    text_init(&text, FACTS_BYTES_MAX);
    json_print(json, false, &text);
    hash_bytes(text.bytes, text.length, hex);
    cleanup_free char *value = xformat("%zu (SHA-256 %.12s)", list->count, hex);
    add(place, value);
}

static void flatten(struct place *place, const struct document_node *node) {
    if (node->kind == DOCUMENT_SEQUENCE && node->count > 0 && document_get(node->items[0], "index"))
        add_numbered(place, node);
    else if (node->kind == DOCUMENT_SEQUENCE)
        flatten_list(place, node);
    else if (node->kind == DOCUMENT_MAPPING)
        for (size_t i = 0, outer = place->path.length; i < node->count; i++) {
            text_printf(&place->path, "%s%s", outer ? "." : "", node->keys[i]->text);
            flatten(place, node->items[i]);
            text_cut(&place->path, outer);
        }
    else if (node->kind != DOCUMENT_NULL && node->text)
        add(place, node->text);
}

static int collect_lines(struct place *place, struct archive_reader *archive, const char *member,
                         struct failure *failure);

/* What a node has in common with another one is kept there: `shared` of its facts has the names and members.
 */
static int collect_shared(struct place *place, struct archive_reader *archive,
                          const struct document_node *shared, struct failure *failure) {
    int r = 0;
    for (size_t i = 0; r == 0 && shared && shared->kind == DOCUMENT_MAPPING && i < shared->count; i++) {
        const char *name = shared->keys[i]->text, *member = shared->items[i]->text;
        cleanup_free char *pattern = xformat(ARCHIVE_NODES "/*/raw/%s", name);
        if (!member || fnmatch(ARCHIVE_NODES "/*/raw/*", member, FNM_PATHNAME) != 0 ||
            strcmp(file_base_name(member), name) != 0 || !archive_find(archive, member, NULL))
            continue;
        place->source = "raw";
        note_member(place, pattern);
        text_reset(&place->path);
        r = collect_lines(place, archive, member, failure);
    }
    return r;
}

static int collect_json(struct place *place, struct archive_reader *archive, const char *member,
                        struct failure *failure) {
    cleanup(document_cleanup) struct document *document = NULL;
    int r = archive_read_document(archive, member, &document, failure);
    if (r < 0)
        return r;
    const struct document_node *nodes = document_get(document->root, "nodes");
    if (strcmp(place->source, "software") != 0 || !nodes || nodes->kind != DOCUMENT_MAPPING) {
        flatten(place, document->root);
        return collect_shared(place, archive, document_get(document->root, "shared"), failure);
    }
    for (size_t i = 0; i < nodes->count; i++) {
        const char *name = nodes->keys[i]->text;
        place->node = text_set_add(&place->facts->nodes[place->side], name, strlen(name));
        flatten(place, nodes->items[i]);
    }
    return 0;
}

/* How many bytes of LINE name what the rest is about: its first word, or "eth0/mtu" of "eth0/mtu:1500", as
 * grep prints files of one line. */
static size_t key_length(const char *line) {
    size_t word = strcspn(line, " \t=\n");
    const char *slash = memchr(line, '/', word), *from = slash                           ? slash
                                                         : isalpha((unsigned char)*line) ? line
                                                                                         : NULL;
    const char *colon = from ? memchr(from, ':', word - (size_t)(from - line)) : NULL;
    return colon ? (size_t)(colon - line) : word;
}

/* Notes in KEYS how often each first word of the lines begins one. */
static void count_keys(const char *lines, struct text_set *keys, uint32_t **ret_counts) {
    size_t capacity = 0;
    for (const char *line = lines; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t before = keys->count;
        uint32_t key = text_set_add(keys, line, key_length(line));
        if (keys->count > capacity) {
            capacity = 2 * keys->count;
            *ret_counts = xrealloc(*ret_counts, capacity * sizeof **ret_counts);
        }
        (*ret_counts)[key] = key == before ? 1 : 2;
    }
}

/* Of a file of several lines each is a fact, called by its first word; or by all of its words, where others
 * begin with the same. */
static void add_lines(struct place *place, char *lines, bool is_list) {
    cleanup(text_set_clear) struct text_set keys = {0};
    cleanup_free uint32_t *counts = NULL;
    uint32_t key;
    count_keys(lines, &keys, &counts);
    for (char *line = lines, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        size_t length = key_length(line);
        bool is_one = text_set_find(&keys, line, length, &key) && counts[key] == 1;
        const char *value = line[length] ? line + length + 1 : "there";
        if (is_one)
            line[length] = '\0';
        if (line[0])
            add_item(place, line, !is_one || is_list ? "there" : value + strspn(value, " \t"));
    }
}

/* A file of one line is a value; markup is compared as a whole. */
static int collect_lines(struct place *place, struct archive_reader *archive, const char *member,
                         struct failure *failure) {
    cleanup(text_clear) struct text text;
    const char *name = file_base_name(member);
    char hex[HASH_HEX_SIZE];
    text_init(&text, FACTS_BYTES_MAX);
    text_append_string(&place->path, name);
    int r = archive_read_member(archive, member, &text, failure);
    if (r < 0)
        return r;
    while (text.length > 0 && text.bytes[text.length - 1] == '\n')
        text_cut(&text, text.length - 1);
    if (text.bytes[0] == '<') {
        hash_bytes(text.bytes, text.length, hex);
        add(place, hex);
    } else if (strchr(text.bytes, '\n')) {
        add_lines(place, text.bytes, strcmp(name, "modules") == 0);
    } else {
        add(place, text.bytes);
    }
    return 0;
}

static void free_hash(struct hash **hash) {
    hash_free(*hash);
}

static int collect_hash(struct place *place, struct archive_reader *archive, size_t index,
                        struct failure *failure) {
    cleanup(free_hash) struct hash *hash = hash_new();
    cleanup(archive_member_cleanup) struct archive_member *member = NULL;
    char hex[HASH_HEX_SIZE], buffer[1 << 16];
    const char *known = archive_member_sha256(archive, index), *name = archive_member_name(archive, index);
    int64_t got = 0;
    text_append_string(&place->path, name);
    if (!*known) {
        int r = archive_member_open(archive, name, &member, failure);
        while (r == 0 && (got = archive_member_read(member, buffer, sizeof buffer)) > 0)
            hash_update(hash, buffer, (size_t)got);
        r = r == 0 ? archive_member_status(member, failure) : r;
        if (r < 0)
            return r;
        hash_finish(hash, hex);
        known = hex;
    }
    add(place, known);
    return 0;
}

static int collect_member(struct place *place, struct archive_reader *archive, size_t index,
                          struct failure *failure) {
    const char *name = archive_member_name(archive, index);
    const struct source *source = sources;
    while (source < sources + SOURCES &&
           fnmatch(source->pattern, name, source->form == FORM_HASH ? 0 : FNM_PATHNAME) != 0)
        source++;
    if (source == sources + SOURCES)
        return 0;
    place->source = source->name;
    place->node = NO_NODE;
    text_reset(&place->path);
    if (strncmp(name, ARCHIVE_NODES "/", strlen(ARCHIVE_NODES "/")) == 0) {
        const char *node = name + strlen(ARCHIVE_NODES "/"), *file = strchr(node, '/') + 1;
        place->node = text_set_add(&place->facts->nodes[place->side], node, (size_t)(file - node - 1));
        cleanup_free char *of_nodes = xformat(ARCHIVE_NODES "/*/%s", file);
        note_member(place, of_nodes);
    } else if (source->form == FORM_JSON) {
        note_member(place, name);
    } else { /* a file that only one has is a difference */
        note_member(place, "");
        place->facts->seen[place->member] = 1 << 0 | 1 << 1;
    }
    return source->form == FORM_JSON    ? collect_json(place, archive, name, failure)
           : source->form == FORM_LINES ? collect_lines(place, archive, name, failure)
                                        : collect_hash(place, archive, index, failure);
}

static int collect(struct facts *facts, uint32_t side, const char *path, struct failure *failure) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    struct place place = {.facts = facts, .side = side};
    int r = archive_open(path, &archive, failure);
    r = r < 0 ? r : archive_check_measured(archive, failure);
    r = r < 0 ? r : archive_list(archive, failure);
    text_init(&place.path, FACTS_BYTES_MAX);
    for (size_t i = 0; r == 0 && i < archive_member_count(archive); i++)
        r = collect_member(&place, archive, i, failure);
    text_clear(&place.path);
    return r;
}

/* ---- Comparing */

static int compare_observations(const void *a, const void *b, void *context) {
    const struct observation *one = a, *other = b;
    const struct facts *facts = context;
    int kinds[] = {facts->kinds[one->fact], facts->kinds[other->fact]};
    if (kinds[0] != kinds[1])
        return kinds[0] < kinds[1] ? -1 : 1;
    if (one->fact != other->fact) {
        int r = natural_order_compare(strchr(facts->names.texts[one->fact], ':'),
                                      strchr(facts->names.texts[other->fact], ':'));
        return r != 0 ? r : one->fact < other->fact ? -1 : 1;
    }
    if (one->side != other->side)
        return one->side < other->side ? -1 : 1;
    if (one->value != other->value)
        return natural_order_compare(facts->values.texts[one->value], facts->values.texts[other->value]);
    return one->node < other->node ? -1 : one->node > other->node;
}

static void append_value(struct text *ret, const char *value, const char *const *nodes, size_t count) {
    cleanup(text_clear) struct text folded;
    text_init(&folded, VALUE_BYTES_MAX);
    text_printf(ret, "%s%s", ret->length ? ", " : "", value[0] ? value : "''");
    if (count > 0 && host_list_fold(nodes, count, &folded) == 0)
        text_printf(ret, " (%s)", folded.bytes);
    else if (count > 0)
        text_printf(ret, " (%zu nodes)", count);
}

/* The values of the COUNT observations of a fact in one archive, whose NODES are those that it may be of;
 * NULL: it is one of the whole run. HAS_NAMES: each value is followed by its nodes, unless all have it. The
 * caller's. */
static char *describe(const struct facts *facts, const struct observation *items, size_t count,
                      const struct text_set *nodes, bool has_names) {
    cleanup(text_clear) struct text text;
    size_t node_count = nodes ? nodes->count : 0, used, lacking = 0;
    cleanup_free const char **names = xcalloc(node_count + count + 1, sizeof *names);
    cleanup_free bool *is_there = xcalloc(node_count + 1, sizeof *is_there);
    text_init(&text, FACTS_BYTES_MAX);
    for (size_t i = 0; i < count; i += used) {
        size_t own = 0;
        for (used = 0; i + used < count && items[i + used].value == items[i].value; used++) {
            const struct observation *item = &items[i + used];
            if (nodes && (used == 0 || item->node != item[-1].node))
                names[own++] = nodes->texts[item->node];
            if (nodes)
                is_there[item->node] = true;
        }
        append_value(&text, facts->values.texts[items[i].value], names,
                     has_names && own < node_count ? own : 0);
    }
    for (size_t i = 0; i < node_count; i++)
        if (!is_there[i])
            names[lacking++] = nodes->texts[i];
    if (count == 0 || lacking > 0)
        append_value(&text, SETUP_NONE, names, has_names && lacking < node_count ? lacking : 0);
    return text_take(&text);
}

static bool has_same_nodes(const struct facts *facts) {
    const struct text_set *one = &facts->nodes[0], *other = &facts->nodes[1];
    uint32_t number;
    bool is_same = one->count == other->count;
    for (size_t i = 0; is_same && i < one->count; i++)
        is_same = text_set_find(other, one->texts[i], strlen(one->texts[i]), &number);
    return is_same;
}

/* The COUNT observations of one fact, in both archives. On different nodes only the values are compared. */
static void compare_fact(const struct facts *facts, const struct observation *items, size_t count,
                         bool has_same_nodes, struct setup *ret) {
    size_t first[SIDES + 1] = {0, 0, count};
    char *values[SIDES], *bare[SIDES];
    bool is_of_nodes = items[0].node != NO_NODE;
    while (first[1] < count && items[first[1]].side == 0)
        first[1]++;
    for (size_t side = 0; side < SIDES; side++) {
        const struct observation *own = items + first[side];
        const struct text_set *nodes = is_of_nodes ? &facts->nodes[side] : NULL;
        size_t own_count = first[side + 1] - first[side];
        values[side] = describe(facts, own, own_count, nodes, true);
        bare[side] = describe(facts, own, own_count, nodes, false);
    }
    bool is_same = has_same_nodes ? strcmp(values[0], values[1]) == 0 : strcmp(bare[0], bare[1]) == 0;
    free(bare[0]), free(bare[1]);
    ret->alike += is_same;
    if (is_same) {
        free(values[0]), free(values[1]);
        return;
    }
    ret->items = xrealloc(ret->items, (ret->count + 1) * sizeof *ret->items);
    ret->items[ret->count++] = (struct setup_difference){
        .kind = (enum setup_kind)facts->kinds[items[0].fact],
        .object = xstrdup(strchr(facts->names.texts[items[0].fact], ':') + 1),
        .values = {values[0], values[1]},
    };
}

/* What the archive of SIDE does not record, and the other one does. */
static void note_missing(const struct facts *facts, size_t side, const char *path, struct bind_texts *ret) {
    cleanup(text_clear) struct text missing;
    text_init(&missing, FAILURE_TEXT_SIZE);
    for (size_t i = 0; i < facts->members.count; i++)
        if (facts->seen[i] == 1 << (1 - side)) /* a list that is too long just ends */
            (void)text_printf(&missing, "%s%s", missing.length ? ", " : "", facts->members.texts[i]);
    cleanup_free char *sentence =
        xformat("'%s' does not have %s, so that these facts are not compared", path, missing.bytes);
    if (missing.length > 0)
        bind_texts_add(ret, sentence);
}

int setup_compare(const char *const paths[2], struct setup *ret, struct failure *failure) {
    cleanup(facts_clear) struct facts facts = {0};
    int r = 0;
    *ret = (struct setup){0};
    for (uint32_t side = 0; r == 0 && side < SIDES; side++)
        r = collect(&facts, side, paths[side], failure);
    if (r < 0)
        return r;
    qsort_r(facts.items, facts.count, sizeof *facts.items, compare_observations, &facts);
    bool is_same = has_same_nodes(&facts);
    for (size_t i = 0, count; i < facts.count; i += count) {
        const struct observation *items = facts.items + i;
        for (count = 1; i + count < facts.count && items[count].fact == items[0].fact;)
            count++;
        if (facts.seen[facts.origins[items[0].fact]] == (1 << 0 | 1 << 1))
            compare_fact(&facts, items, count, is_same, ret);
    }
    for (size_t side = 0; side < SIDES; side++)
        note_missing(&facts, side, paths[side], &ret->not_compared);
    return 0;
}

void setup_clear(struct setup *setup) {
    for (size_t i = 0; i < setup->count; i++) {
        free(setup->items[i].object);
        free(setup->items[i].values[0]);
        free(setup->items[i].values[1]);
    }
    free(setup->items);
    bind_texts_clear(&setup->not_compared);
    *setup = (struct setup){0};
}

/* ---- The report */

static const char *const kind_names[SETUP_KINDS] = {
    [SETUP_CONTROLS] = "controls", [SETUP_PROCESSOR] = "processor", [SETUP_KERNEL] = "kernel",
    [SETUP_BLAS] = "BLAS",         [SETUP_COMPILER] = "compiler",   [SETUP_NODES] = "nodes",
    [SETUP_DESIGN] = "design",     [SETUP_SEED] = "seed",           [SETUP_OTHER] = "other",
};

/* How much of both values is left out before what differs: of long values, which are shortened. */
static size_t skip_alike(char *const *values) {
    size_t alike = 0;
    while (values[0][alike] && values[0][alike] == values[1][alike])
        alike++;
    bool is_long = strlen(values[0]) > VALUE_BYTES_SHOWN || strlen(values[1]) > VALUE_BYTES_SHOWN;
    size_t skipped = is_long && alike > VALUE_BYTES_SHOWN / 4 ? alike - VALUE_BYTES_SHOWN / 4 : 0;
    while (skipped > 0 && (values[0][skipped] & 0xc0) == 0x80)
        skipped--;
    return skipped;
}

char *setup_describe(const struct setup_difference *difference) {
    char *values[SIDES];
    size_t skipped = skip_alike(difference->values);
    for (size_t side = 0; side < SIDES; side++) {
        values[side] = xformat("%s%s", skipped > 0 ? "... " : "", difference->values[side] + skipped);
        size_t length = strlen(values[side]);
        bool is_hash = length == HASH_HEX_SIZE - 1 && strspn(values[side], "0123456789abcdef") == length;
        if (is_hash)
            values[side][HASH_BYTES_SHOWN] = '\0';
        else
            text_shorten(values[side], length, VALUE_BYTES_SHOWN);
    }
    char *line = xformat("%s: %s | %s", difference->object, values[0], values[1]);
    free(values[0]), free(values[1]);
    return line;
}

/* The differences FIRST and those after it that are of the same kind. Returns how many these are. */
static size_t report_kind(struct report_section *in, struct report_section *list, const struct setup *setup,
                          size_t first) {
    const struct setup_difference *items = setup->items + first;
    size_t count = 0;
    for (; first + count < setup->count && items[count].kind == items[0].kind; count++) {
        struct report_section *in_list = report_section(list, "", NULL, false);
        cleanup_free char *line = setup_describe(&items[count]);
        const char *kind = kind_names[items[0].kind];
        report_text(in_list, "kind", NULL, kind, false);
        report_text(in_list, "object", NULL, items[count].object, false);
        report_text(in_list, "base", NULL, items[count].values[0], false);
        report_text(in_list, "new", NULL, items[count].values[1], false);
        report_text(in, NULL, count > 0 ? " " : kind, line, count >= LINES_SHOWN);
    }
    cleanup_free char *rest = xformat("the first %d of %zu; --verbose shows all", LINES_SHOWN, count);
    if (count > LINES_SHOWN)
        report_text(in, NULL, " ", rest, false);
    return count;
}

void setup_report(struct report_section *in, const struct setup *setup) {
    struct report_section *own = report_section(in, "setup", NULL, false),
                          *list = report_list(own, "differences");
    cleanup_free char *total = xformat("%zu difference%s, those that usually matter most first; %zu alike",
                                       setup->count, setup->count == 1 ? "" : "s", setup->alike);
    report_text(own, NULL, "setup", total, false);
    report_number(own, "differ", NULL, (double)setup->count, "1", 0, true);
    report_number(own, "alike", NULL, (double)setup->alike, "1", 0, true);
    for (size_t i = 0; i < setup->count;)
        i += report_kind(own, list, setup, i);
    for (size_t i = 0; i < setup->not_compared.count; i++)
        report_note(own, REPORT_WARNING, "%s", setup->not_compared.items[i]);
}
