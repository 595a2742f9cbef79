/* YAML by libyaml's events: typing by the core schema of YAML 1.2, and our own limits. */
#include "engine/documents/document-builder.h"
#include "engine/documents/number-literal.h"
#include "engine/documents/shown-value.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text-set.h"

#include <stdarg.h>
#include <string.h>
#include <yaml.h>

struct anchor {
    const struct document_node *node; /* an anchor used again names its last node */
    bool open;                        /* the node is not complete */
};

struct yaml {
    yaml_parser_t parser;
    struct document_builder builder;
    const char *bytes; /* for places that libyaml gives as offsets */
    size_t length;
    struct text_set names; /* of the anchors */
    struct anchor anchors[DOCUMENT_ANCHORS_MAX];
};

/* Sets the error of the document, if it is the first, at MARK. */
__attribute__((format(printf, 3, 4))) static void refuse(struct yaml *yaml, const yaml_mark_t *mark,
                                                         const char *format, ...) {
    char sentence[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (yaml->builder.error == 0)
        yaml->builder.error = failure_input(yaml->builder.failure, yaml->builder.file, mark->line + 1,
                                            mark->column + 1, "%s", sentence);
}

/* A hint for an error at MARK, by its line: tabs, or characters like those of x-[1-2] that need quotes; "" if
 * there is none. */
static const char *find_advice(const struct yaml *yaml, const yaml_mark_t *mark) {
    const char *line = yaml->bytes, *end = yaml->bytes + yaml->length, *next;
    for (size_t i = 0; i < mark->line; i++)
        line = (next = memchr(line, '\n', (size_t)(end - line))) ? next + 1 : end;
    cleanup_free char *text = xstrndup(line, (size_t)(end - line));
    text[strcspn(text, "\r\n")] = '\0';
    size_t blanks = strspn(text, " \t"), key = strcspn(text, ":");
    if (memchr(text, '\t', blanks))
        return "; indent by spaces, not by tabs";
    return strpbrk(text + (text[key] ? key + 1 : blanks), "[]{}:#&*!|>%@`\"'-?")
               ? "; a value with one of []{}:#&*!|>%@`\"'-? may need quotes, as in hosts: \"x-[1-2]\""
               : "";
}

/* Fails with the error of libyaml as one sentence, and a hint. */
static void refuse_syntax(struct yaml *yaml) {
    const yaml_parser_t *parser = &yaml->parser;
    bool is_quoted = parser->context && strstr(parser->context, "quoted scalar");
    const char *advice = is_quoted ? "" : find_advice(yaml, &parser->problem_mark);
    const char *problem = parser->problem ? parser->problem : "not YAML";
    if (parser->error == YAML_MEMORY_ERROR)
        memory_exhausted();
    if (parser->error == YAML_READER_ERROR) {
        struct document_place place = {yaml->bytes, 1, 1};
        document_place_move(&place, yaml->bytes + parser->problem_offset);
        yaml_mark_t mark = {.line = place.line - 1, .column = place.column - 1};
        refuse(yaml, &mark, "%s (0x%02x)", problem, (unsigned)parser->problem_value);
    } else if (parser->context && parser->context_mark.line != parser->problem_mark.line) {
        refuse(yaml, &parser->problem_mark, "%s %s that begins in line %zu%s", problem, parser->context,
               parser->context_mark.line + 1, advice);
    } else {
        refuse(yaml, &parser->problem_mark, "%s%s%s%s", problem, parser->context ? " " : "",
               parser->context ? parser->context : "", advice);
    }
}

/* The next event, which the caller deletes; after an error, none. */
static void next_event(struct yaml *yaml, yaml_event_t *ret) {
    if (yaml->builder.error == 0 && !yaml_parser_parse(&yaml->parser, ret))
        refuse_syntax(yaml);
}

/* ---- Scalars */

static bool is_one_of(const char *text, const char *const *words) {
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

static enum document_kind kind_of_plain(const char *text, size_t length) {
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const booleans[] = {"true", "True", "TRUE", "false", "False", "FALSE", NULL};
    if (is_one_of(text, nulls))
        return DOCUMENT_NULL;
    if (is_one_of(text, booleans))
        return DOCUMENT_BOOLEAN;
    return number_literal_is_decimal(text, length) ? DOCUMENT_NUMBER : DOCUMENT_TEXT;
}

static void refuse_tag(struct yaml *yaml, const yaml_event_t *event, const char *tag) {
    refuse(yaml, &event->start_mark, "tag %s is not known, expected a value without a tag%s",
           shown_value(tag, strlen(tag)).text, find_advice(yaml, &event->start_mark));
}

/* The kind of a scalar with a tag. Refuses tags other than those of the core schema, and a text that does not
 * fit its tag. */
static enum document_kind kind_of_tagged(struct yaml *yaml, const yaml_event_t *event) {
    static const struct {
        const char *name;
        enum document_kind kind;
    } tags[] = {
        {"tag:yaml.org,2002:null", DOCUMENT_NULL},  {"tag:yaml.org,2002:bool", DOCUMENT_BOOLEAN},
        {"tag:yaml.org,2002:int", DOCUMENT_NUMBER}, {"tag:yaml.org,2002:float", DOCUMENT_NUMBER},
        {"tag:yaml.org,2002:str", DOCUMENT_TEXT},   {"!", DOCUMENT_TEXT},
    };
    const char *tag = (const char *)event->data.scalar.tag, *text = (const char *)event->data.scalar.value;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (strcmp(tags[i].name, tag) != 0)
            continue;
        if (tags[i].kind != DOCUMENT_TEXT && kind_of_plain(text, event->data.scalar.length) != tags[i].kind)
            refuse(yaml, &event->start_mark, "%s is tagged as %s", shown_value(text, strlen(text)).text,
                   document_kind_name(tags[i].kind));
        return tags[i].kind;
    }
    refuse_tag(yaml, event, tag);
    return DOCUMENT_TEXT;
}

static struct document_node *make_node(struct yaml *yaml, enum document_kind kind, size_t level,
                                       const yaml_event_t *event) {
    return document_builder_node(&yaml->builder, kind, level, event->start_mark.line + 1,
                                 event->start_mark.column + 1);
}

/* Remembers NODE by the anchor NAME; NULL: it has none. */
static void set_anchor(struct yaml *yaml, const yaml_char_t *name, const struct document_node *node,
                       const yaml_mark_t *mark) {
    if (!name)
        return;
    uint32_t number = text_set_add(&yaml->names, (const char *)name, strlen((const char *)name));
    if (number < DOCUMENT_ANCHORS_MAX)
        yaml->anchors[number] = (struct anchor){.node = node, .open = node->kind >= DOCUMENT_SEQUENCE};
    else
        refuse(yaml, mark, "too many anchors");
}

/* Makes the node of a scalar at LEVEL, its kind by tag, quotes or text. */
static struct document_node *make_scalar(struct yaml *yaml, const yaml_event_t *event, size_t level) {
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    enum document_kind kind = DOCUMENT_TEXT;
    if (event->data.scalar.tag)
        kind = kind_of_tagged(yaml, event);
    else if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        kind = kind_of_plain(text, length);
    if (memchr(text, '\0', length))
        refuse(yaml, &event->start_mark, "the text holds a NUL");
    struct document_node *node = make_node(yaml, kind, level, event);
    document_builder_text(&yaml->builder, node, text, length);
    set_anchor(yaml, event->data.scalar.anchor, node, &event->start_mark);
    return node;
}

/* ---- Anchors and aliases */

/* An anchor's node is complete, unless the same name was given to another node inside it. */
static void close_anchor(struct yaml *yaml, const struct document_node *node) {
    /* One name more than there may be was added before that was refused. */
    for (size_t i = 0; i < yaml->names.count && i < DOCUMENT_ANCHORS_MAX; i++)
        if (yaml->anchors[i].node == node)
            yaml->anchors[i].open = false;
}

/* Makes the node of an alias: a copy of the value of its anchor, or null if the anchor is missing. */
static struct document_node *make_alias(struct yaml *yaml, const yaml_event_t *event, size_t level) {
    const char *name = (const char *)event->data.alias.anchor;
    const yaml_mark_t *mark = &event->start_mark;
    struct document_builder *builder = &yaml->builder;
    struct document_node *copy = make_node(yaml, DOCUMENT_NULL, level, event);
    uint32_t number;
    if (!text_set_find(&yaml->names, name, strlen(name), &number)) {
        refuse(yaml, mark, "alias '*%.100s' has no anchor '&%.100s' before it%s", name, name,
               find_advice(yaml, mark));
        return copy;
    }
    const struct anchor *anchor = &yaml->anchors[number];
    if (anchor->open)
        refuse(yaml, mark, "alias '*%.100s' lies inside the value of its own anchor", name);
    if (builder->error < 0)
        return copy;
    document_builder_count_again(builder, anchor->node, level);
    if (builder->error < 0) {
        builder->error = 0; /* the place of the alias is the one that the user can change */
        refuse(yaml, mark, "alias '*%.100s' makes the document too big: %s", name,
               builder->failure ? builder->failure->text : "");
    }
    copy->kind = anchor->node->kind;
    copy->text = anchor->node->text;
    copy->count = anchor->node->count;
    copy->keys = anchor->node->keys;
    copy->items = anchor->node->items; /* shared */
    return copy;
}

/* ---- Collections */

/* Refuses a key that is no plain scalar, is empty, or is a merge key. */
static void check_key(struct yaml *yaml, const yaml_event_t *event) {
    const yaml_mark_t *mark = &event->start_mark;
    const char *what = event->type == YAML_ALIAS_EVENT            ? "an alias"
                       : event->type == YAML_SEQUENCE_START_EVENT ? "a sequence"
                       : event->type == YAML_MAPPING_START_EVENT  ? "a mapping"
                                                                  : NULL;
    if (what)
        refuse(yaml, mark, "%s as a key, expected a plain scalar", what);
    else if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        if (strcmp((const char *)event->data.scalar.value, "<<") == 0)
            refuse(yaml, mark, "merge keys ('<<') are not supported, expected the keys themselves");
        if (event->data.scalar.length == 0)
            refuse(yaml, mark, "an empty key, expected a plain scalar");
    }
}

static struct document_node *walk_node(struct yaml *yaml, const yaml_event_t *event, size_t level);

/* Reads one child at LEVEL, with its key if IS_MAPPING. false: the end of the collection, or an error. */
static bool walk_child(struct yaml *yaml, bool is_mapping, size_t level) {
    cleanup(yaml_event_delete) yaml_event_t first = {0}, second = {0};
    next_event(yaml, &first);
    if (yaml->builder.error < 0 ||
        first.type == (is_mapping ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT))
        return false;
    if (is_mapping) {
        check_key(yaml, &first);
        if (yaml->builder.error == 0)
            document_builder_push(&yaml->builder, make_scalar(yaml, &first, level));
        next_event(yaml, &second);
    }
    if (yaml->builder.error == 0)
        document_builder_push(&yaml->builder, walk_node(yaml, is_mapping ? &second : &first, level));
    return yaml->builder.error == 0;
}

/* Reads a sequence or mapping that EVENT begins, with all that is in it. */
static struct document_node *walk_collection(struct yaml *yaml, const yaml_event_t *event, size_t level) {
    bool is_mapping = event->type == YAML_MAPPING_START_EVENT;
    const yaml_char_t *tag = is_mapping ? event->data.mapping_start.tag : event->data.sequence_start.tag;
    const yaml_char_t *name =
        is_mapping ? event->data.mapping_start.anchor : event->data.sequence_start.anchor;
    if (tag && strcmp((const char *)tag, is_mapping ? YAML_MAP_TAG : YAML_SEQ_TAG) != 0)
        refuse_tag(yaml, event, (const char *)tag);
    struct document_node *node =
        make_node(yaml, is_mapping ? DOCUMENT_MAPPING : DOCUMENT_SEQUENCE, level, event);
    set_anchor(yaml, name, node, &event->start_mark);
    size_t first = yaml->builder.open_count;
    while (walk_child(yaml, is_mapping, level + 1))
        continue;
    if (name)
        close_anchor(yaml, node);
    document_builder_close(&yaml->builder, node, first);
    return node;
}

/* The node that EVENT begins, at LEVEL; recursion ends with DOCUMENT_DEPTH_MAX. */
static struct document_node *walk_node(struct yaml *yaml, const yaml_event_t *event, size_t level) {
    if (event->type == YAML_ALIAS_EVENT)
        return make_alias(yaml, event, level);
    if (event->type == YAML_SCALAR_EVENT)
        return make_scalar(yaml, event, level);
    return walk_collection(yaml, event, level);
}

/* ---- The stream */

/* Reads the stream, which must have exactly one document. Returns its root; errors go to the builder. */
static struct document_node *walk_stream(struct yaml *yaml) {
    cleanup(yaml_event_delete) yaml_event_t stream = {0}, start = {0}, first = {0}, end = {0}, last = {0};
    next_event(yaml, &stream);
    next_event(yaml, &start);
    if (start.type == YAML_STREAM_END_EVENT)
        refuse(yaml, &(yaml_mark_t){0}, "the file is empty; expected a document");
    next_event(yaml, &first);
    if (yaml->builder.error < 0)
        return NULL;
    struct document_node *root = walk_node(yaml, &first, 1);
    next_event(yaml, &end);
    next_event(yaml, &last);
    if (last.type != YAML_STREAM_END_EVENT)
        refuse(yaml, &last.start_mark, "a second document, expected one");
    return root;
}

/* Parses YAML (document.h): types by the core schema of YAML 1.2, with limits of size, depth and aliases. */
int document_parse_yaml(const char *name, const char *bytes, size_t length, struct document **ret,
                        struct failure *failure) {
    int r = document_check_bytes(name, bytes, length, DOCUMENT_BYTES_MAX, failure);
    if (r < 0)
        return r;
    size_t mark = document_byte_order_mark(bytes, length);
    struct yaml yaml = {.bytes = bytes + mark, .length = length - mark};
    if (!yaml_parser_initialize(&yaml.parser))
        memory_exhausted();
    /* Without this libyaml would guess UTF-16 from the first bytes. */
    yaml_parser_set_encoding(&yaml.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&yaml.parser, (const unsigned char *)bytes + mark, length - mark);
    yaml.builder = document_builder_begin(name, DOCUMENT_NODES_MAX, failure);
    struct document_node *root = walk_stream(&yaml);
    text_set_clear(&yaml.names);
    yaml_parser_delete(&yaml.parser);
    return document_builder_finish(&yaml.builder, root, ret);
}
