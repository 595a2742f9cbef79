#include "archive-format/crate/check.h"

#include "archive-format/crate/crate.h"
#include "archive-format/reader-private.h"
#include "engine/documents/bind.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text-set.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOT "./"

/* What a member has to be. A REFERENCE is one or a list of them. */
enum form { TEXT, DIGITS, TIME, STATUS, REFERENCE };

/* Of each entity that has the @id ENTITY, or else is of that type. */
static const struct rule {
    const char *entity, *member;
    enum form form;
    const char *value; /* of a REFERENCE: one of them must be this; NULL: any */
    enum crate_level level;
} rules[] = {
    {ARCHIVE_CRATE, "about", REFERENCE, ROOT, CRATE_MUST},
    {ARCHIVE_CRATE, "conformsTo", REFERENCE, CRATE_SPECIFICATION, CRATE_MUST},
    {ROOT, "name", TEXT, NULL, CRATE_MUST},
    {ROOT, "description", TEXT, NULL, CRATE_MUST},
    {ROOT, "datePublished", TIME, NULL, CRATE_MUST},
    {ROOT, "license", REFERENCE, NULL, CRATE_MUST},
    {ROOT, "hasPart", REFERENCE, NULL, CRATE_MUST},
    {ROOT, "conformsTo", REFERENCE, CRATE_PROFILE, CRATE_MUST},
    {ROOT, "mentions", REFERENCE, NULL, CRATE_SHOULD},
    {CRATE_PROFILE, "name", TEXT, NULL, CRATE_SHOULD},
    {CRATE_PROFILE, "version", TEXT, NULL, CRATE_SHOULD},
    {"File", "name", TEXT, NULL, CRATE_SHOULD},
    {"File", "description", TEXT, NULL, CRATE_SHOULD},
    {"File", "encodingFormat", TEXT, NULL, CRATE_SHOULD},
    {"File", "contentSize", DIGITS, NULL, CRATE_SHOULD},
    {"Dataset", "name", TEXT, NULL, CRATE_SHOULD},
    {"Dataset", "description", TEXT, NULL, CRATE_SHOULD},
    {"SoftwareApplication", "name", TEXT, NULL, CRATE_SHOULD},
    {"SoftwareApplication", "version", TEXT, NULL, CRATE_SHOULD},
    {"Person", "name", TEXT, NULL, CRATE_SHOULD},
    {"CreateAction", "instrument", REFERENCE, NULL, CRATE_MUST},
    {"CreateAction", "name", TEXT, NULL, CRATE_SHOULD},
    {"CreateAction", "description", TEXT, NULL, CRATE_SHOULD},
    {"CreateAction", "startTime", TIME, NULL, CRATE_SHOULD},
    {"CreateAction", "endTime", TIME, NULL, CRATE_SHOULD},
    {"CreateAction", "object", REFERENCE, NULL, CRATE_SHOULD},
    {"CreateAction", "result", REFERENCE, NULL, CRATE_SHOULD},
    {"CreateAction", "actionStatus", STATUS, NULL, CRATE_SHOULD},
};
enum { RULE_COUNT = sizeof rules / sizeof *rules };

struct graph {
    const struct document *document;
    const struct archive_reader *archive;
    enum crate_level level;
    struct failure *failure;
    const struct document_node *entities; /* @graph */
    struct text_set ids;                  /* of the entities, by their place in @graph */
};

#define refuse(graph, node, ...) bind_refuse((graph)->document, (node), (graph)->failure, __VA_ARGS__)

/* ---- Values */

/* Item number INDEX, from 0, of VALUE, a list or a single item; NULL: VALUE has no item of that number. */
static const struct document_node *item(const struct document_node *value, size_t index) {
    if (value && value->kind == DOCUMENT_SEQUENCE)
        return index < value->count ? value->items[index] : NULL;
    return index == 0 ? value : NULL;
}

static const char *text_of(const struct document_node *node) {
    return node && node->kind == DOCUMENT_TEXT ? node->text : "";
}

static const char *id_of(const struct document_node *node) {
    return text_of(document_get(node, "@id"));
}

static bool has_type(const struct document_node *entity, const char *type) {
    const struct document_node *types = document_get(entity, "@type"), *one;
    for (size_t i = 0; (one = item(types, i)); i++)
        if (strcmp(text_of(one), type) == 0)
            return true;
    return false;
}

static bool has_form(const char *text, const char *form) {
    for (; *form; text++, form++)
        if (*form == 'd' ? *text < '0' || *text > '9' : *text != *form)
            return false;
    return !*text;
}

static bool is_time(const char *text) {
    return has_form(text, "dddd-dd-dd") || has_form(text, "dddd-dd-ddTdd:dd:dd+dd:dd") ||
           has_form(text, "dddd-dd-ddTdd:dd:dd.ddd+dd:dd");
}

static bool refers_to(const struct document_node *value, const char *id) {
    const struct document_node *one = NULL;
    bool found = false, any = false;
    for (size_t i = 0; (one = item(value, i)); i++) {
        any |= id_of(one)[0] != '\0';
        found |= id && strcmp(id_of(one), id) == 0;
    }
    return id ? found : any;
}

/* What VALUE should have been, in words; NULL: it is that. */
static const char *find_problem(const struct rule *rule, const struct document_node *value) {
    const char *text = text_of(value);
    switch (rule->form) {
    case TEXT:
        return text[0] ? NULL : "a text";
    case DIGITS:
        return text[0] && !text[strspn(text, "0123456789")] ? NULL : "a text of digits";
    case TIME:
        return is_time(text) ? NULL : "a text such as \"2026-11-20T10:02:03.123+00:00\"";
    case STATUS:
        return strcmp(text, "http://schema.org/CompletedActionStatus") == 0 ||
                       strcmp(text, "http://schema.org/FailedActionStatus") == 0
                   ? NULL
                   : "\"http://schema.org/CompletedActionStatus\" or \".../FailedActionStatus\"";
    case REFERENCE:
        break;
    }
    return refers_to(value, rule->value) ? NULL : rule->value ? rule->value : "a reference by @id";
}

/* ---- The graph */

/* Entities are flat: what they have in them are texts, numbers and references. */
static int check_flat(struct graph *graph, const struct document_node *entity) {
    for (size_t i = 0; i < entity->count; i++) {
        const struct document_node *one;
        for (size_t k = 0; (one = item(entity->items[i], k)); k++)
            if (one->kind == DOCUMENT_SEQUENCE ||
                (one->kind == DOCUMENT_MAPPING && (one->count != 1 || !id_of(one)[0])))
                return refuse(graph, one,
                              "member '%s' of the entity '%s' is nested; expected a text, a number or a "
                              "reference by @id alone",
                              entity->keys[i]->text, id_of(entity));
    }
    return 0;
}

static int index_entities(struct graph *graph) {
    const struct document_node *root = graph->document->root;
    graph->entities = document_get(root, "@graph");
    const struct document_node *context = document_get(root, "@context");
    if (!graph->entities || graph->entities->kind != DOCUMENT_SEQUENCE || !context || root->count != 2)
        return refuse(graph, root, "the crate is not an object of '@context' and '@graph', a list");
    static const char *const contexts[] = {CRATE_CONTEXT, CRATE_RUN_CONTEXT};
    for (size_t i = 0; i < sizeof contexts / sizeof *contexts; i++) {
        const struct document_node *one;
        size_t k = 0;
        while ((one = item(context, k)) && strcmp(text_of(one), contexts[i]) != 0)
            k++;
        if (!one)
            return refuse(graph, context, "'@context' does not have '%s'", contexts[i]);
    }
    for (size_t i = 0; i < graph->entities->count; i++) {
        const struct document_node *entity = graph->entities->items[i];
        const char *id = id_of(entity);
        if (!id[0] || !document_get(entity, "@type"))
            return refuse(graph, entity, "entity %zu of '@graph' has no '@id' or no '@type'", i + 1);
        if (text_set_add(&graph->ids, id, strlen(id)) != i)
            return refuse(graph, entity, "two entities of '@graph' have the @id '%s'", id);
        int r = check_flat(graph, entity);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Whether ID is of something that the crate itself must describe: not an address on the web. */
static bool is_own(const char *id) {
    return strncmp(id, "http://", 7) != 0 && strncmp(id, "https://", 8) != 0;
}

static int check_references(struct graph *graph, const struct document_node *entity) {
    for (size_t i = 0; i < entity->count; i++) {
        const struct document_node *one;
        uint32_t found;
        for (size_t k = 0; (one = item(entity->items[i], k)); k++)
            if (one->kind == DOCUMENT_MAPPING && is_own(id_of(one)) &&
                !text_set_find(&graph->ids, id_of(one), strlen(id_of(one)), &found))
                return refuse(graph, one,
                              "member '%s' of the entity '%s' refers to '%s', which is not in '@graph'",
                              entity->keys[i]->text, id_of(entity), id_of(one));
    }
    return 0;
}

static int check_rules(struct graph *graph, const struct document_node *entity) {
    for (size_t i = 0; i < RULE_COUNT; i++) {
        const struct rule *rule = &rules[i];
        const struct document_node *value = document_get(entity, rule->member);
        if (strcmp(id_of(entity), rule->entity) != 0 && !has_type(entity, rule->entity))
            continue;
        const char *expected = rule->level <= graph->level ? find_problem(rule, value) : NULL;
        if (expected)
            return refuse(graph, value ? value : entity, "the entity '%s' has no right '%s'; expected %s",
                          id_of(entity), rule->member, expected);
    }
    const struct document_node *error = document_get(entity, "error");
    if (error && has_type(entity, "CreateAction") &&
        strcmp(text_of(document_get(entity, "actionStatus")), "http://schema.org/FailedActionStatus") != 0)
        return refuse(graph, error,
                      "the entity '%s' has an error, but its actionStatus is not that of a failure",
                      id_of(entity));
    return 0;
}

/* A file or folder of the crate is a member or folder of the zip, with the size and the hash that the crate
 * says. */
static int check_data(struct graph *graph, const struct document_node *entity) {
    const char *id = id_of(entity);
    size_t length = strlen(id);
    bool is_file = has_type(entity, "File"), is_folder = has_type(entity, "Dataset") && strcmp(id, ROOT) != 0;
    if ((!is_file && !is_folder) || !is_own(id) || id[0] == '#')
        return 0;
    cleanup_free char *name = xstrndup(id, length - (length > 1 && id[length - 1] == '/'));
    const struct zip_entry *entry = archive_entry_called(graph->archive, name);
    if (!entry || entry->folder != is_folder)
        return refuse(graph, entity, "the entity '%s' is no %s of the archive", id,
                      is_file ? "file" : "folder");
    const char *expected = graph->archive->sha256[entry - graph->archive->zip.entries];
    const char *sha256 = text_of(document_get(entity, "sha256")),
               *size = text_of(document_get(entity, "contentSize"));
    char real_size[24];
    snprintf(real_size, sizeof real_size, "%" PRIu64, entry->size);
    if (is_file && size[0] && strcmp(size, real_size) != 0)
        return refuse(graph, entity, "the entity '%s' has the contentSize %s; the file has %s bytes", id,
                      size, real_size);
    if (expected[0] && strcmp(sha256, expected) != 0 && (sha256[0] || graph->level == CRATE_SHOULD))
        return refuse(graph, entity, "the entity '%s' has another sha256 than the manifest", id);
    return 0;
}

/* Takes entities from the root on, each when all that have it as a part are taken (Kahn 1962): what is left
 * is no part of the root, or has itself as a part. */
static int check_parts(struct graph *graph) {
    size_t count = graph->entities->count, used = 0, taken = 0;
    cleanup_free uint32_t *queue = xcalloc(count + 1, sizeof *queue),
                          *wholes = xcalloc(count + 1, sizeof *wholes);
    const struct document_node *part;
    uint32_t number;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; (part = item(document_get(graph->entities->items[i], "hasPart"), k)); k++)
            if (text_set_find(&graph->ids, id_of(part), strlen(id_of(part)), &number))
                wholes[number]++;
    if (text_set_find(&graph->ids, ROOT, strlen(ROOT), &number) && wholes[number] == 0)
        queue[used++] = number;
    for (; taken < used; taken++) {
        const struct document_node *parts = document_get(graph->entities->items[queue[taken]], "hasPart");
        for (size_t k = 0; (part = item(parts, k)); k++)
            if (text_set_find(&graph->ids, id_of(part), strlen(id_of(part)), &number) &&
                --wholes[number] == 0)
                queue[used++] = number;
    }
    cleanup_free bool *reached = xcalloc(count + 1, sizeof *reached);
    for (size_t i = 0; i < used; i++)
        reached[queue[i]] = true;
    for (size_t i = 0; i < count; i++) {
        const struct document_node *entity = graph->entities->items[i];
        if (!reached[i] && (has_type(entity, "File") || has_type(entity, "Dataset")))
            return refuse(graph, entity,
                          "the entity '%s' is no part of '" ROOT "' by hasPart, or has itself as a part",
                          id_of(entity));
    }
    return 0;
}

static int check(struct graph *graph) {
    uint32_t number;
    bool has_action = false;
    int r = index_entities(graph);
    for (size_t i = 0; r == 0 && i < graph->entities->count; i++) {
        const struct document_node *entity = graph->entities->items[i];
        has_action |= has_type(entity, "CreateAction");
        r = check_references(graph, entity);
        r = r < 0 ? r : check_rules(graph, entity);
        r = r < 0 ? r : check_data(graph, entity);
    }
    static const char *const needed[] = {ARCHIVE_CRATE, ROOT, CRATE_PROFILE};
    for (size_t i = 0; r == 0 && i < sizeof needed / sizeof *needed; i++)
        if (!text_set_find(&graph->ids, needed[i], strlen(needed[i]), &number))
            r = refuse(graph, graph->entities, "'@graph' has no entity '%s'", needed[i]);
    if (r == 0 && !has_action)
        r = refuse(graph, graph->entities, "'@graph' has no entity of the type CreateAction");
    return r < 0 ? r : check_parts(graph);
}

int crate_check(const struct document *document, const struct archive_reader *archive, enum crate_level level,
                struct failure *failure) {
    struct graph graph = {.document = document, .archive = archive, .level = level, .failure = failure};
    int r = check(&graph);
    text_set_clear(&graph.ids);
    if (r < 0 && failure)
        failure->kind = FAILURE_VERIFICATION; /* it was sealed like this */
    return r;
}
