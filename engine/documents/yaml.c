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
    const char *bytes;     /* for places that libyaml gives as offsets */
    struct text_set names; /* of the anchors */
    struct anchor anchors[DOCUMENT_ANCHORS_MOST];
};

__attribute__((format(printf, 3, 4))) static int refuse(struct yaml *yaml, const yaml_mark_t *mark,
                                                        const char *format, ...) {
    char sentence[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return failure_input(yaml->builder.failure, yaml->builder.file, mark->line + 1, mark->column + 1, "%s",
                         sentence);
}

/* What libyaml complains of, as one sentence. */
static int refuse_syntax(struct yaml *yaml) {
    const yaml_parser_t *parser = &yaml->parser;
    const char *problem = parser->problem ? parser->problem : "not YAML";
    if (parser->error == YAML_MEMORY_ERROR)
        memory_exhausted();
    if (parser->error == YAML_READER_ERROR) {
        struct document_place place = {yaml->bytes, 1, 1};
        document_place_move(&place, yaml->bytes + parser->problem_offset);
        return failure_input(yaml->builder.failure, yaml->builder.file, place.line, place.column,
                             "%s (0x%02x)", problem, (unsigned)parser->problem_value);
    }
    if (parser->context && parser->context_mark.line != parser->problem_mark.line)
        return refuse(yaml, &parser->problem_mark, "%s %s that begins in line %zu", problem, parser->context,
                      parser->context_mark.line + 1);
    if (parser->context)
        return refuse(yaml, &parser->problem_mark, "%s %s", problem, parser->context);
    return refuse(yaml, &parser->problem_mark, "%s", problem);
}

/* The next event; the caller deletes it. */
static int next_event(struct yaml *yaml, yaml_event_t *ret) {
    return yaml_parser_parse(&yaml->parser, ret) ? 0 : refuse_syntax(yaml);
}

/* ---- Scalars ----------------------------------------------------------------------------------- */

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

static int refuse_tag(struct yaml *yaml, const yaml_event_t *event, const char *tag) {
    return refuse(yaml, &event->start_mark, "tag %s is not known, expected a value without a tag",
                  shown_value(tag, strlen(tag)).text);
}

/* The kind that a tag asks for; the core schema's alone are known. */
static int kind_of_tagged(struct yaml *yaml, const yaml_event_t *event, enum document_kind *ret) {
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
            return refuse(yaml, &event->start_mark, "%s is tagged as %s",
                          shown_value(text, strlen(text)).text, document_kind_name(tags[i].kind));
        *ret = tags[i].kind;
        return 0;
    }
    return refuse_tag(yaml, event, tag);
}

static int make_node(struct yaml *yaml, enum document_kind kind, size_t level, const yaml_event_t *event,
                     struct document_node **ret) {
    return document_builder_node(&yaml->builder, kind, level, event->start_mark.line + 1,
                                 event->start_mark.column + 1, ret);
}

static int set_anchor(struct yaml *yaml, const yaml_char_t *name, const struct document_node *node,
                      const yaml_mark_t *mark) {
    if (!name)
        return 0;
    uint32_t number = text_set_add(&yaml->names, (const char *)name, strlen((const char *)name));
    if (number == DOCUMENT_ANCHORS_MOST)
        return refuse(yaml, mark, "too many anchors");
    yaml->anchors[number] = (struct anchor){.node = node, .open = node->kind >= DOCUMENT_SEQUENCE};
    return 0;
}

static int make_scalar(struct yaml *yaml, const yaml_event_t *event, size_t level,
                       struct document_node **ret) {
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    enum document_kind kind = DOCUMENT_TEXT;
    int r = 0;
    if (event->data.scalar.tag)
        r = kind_of_tagged(yaml, event, &kind);
    else if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        kind = kind_of_plain(text, length);
    if (r < 0)
        return r;
    if (memchr(text, '\0', length))
        return refuse(yaml, &event->start_mark, "the text holds a NUL");
    r = make_node(yaml, kind, level, event, ret);
    if (r < 0)
        return r;
    document_builder_text(&yaml->builder, *ret, text, length);
    return set_anchor(yaml, event->data.scalar.anchor, *ret, &event->start_mark);
}

/* ---- Anchors and aliases ----------------------------------------------------------------------- */

/* An anchor's node is complete, unless the same name was given to another node inside it. */
static void close_anchor(struct yaml *yaml, const struct document_node *node) {
    for (size_t i = 0; i < yaml->names.count; i++)
        if (yaml->anchors[i].node == node)
            yaml->anchors[i].open = false;
}

static int make_alias(struct yaml *yaml, const yaml_event_t *event, size_t level,
                      struct document_node **ret) {
    const char *name = (const char *)event->data.alias.anchor;
    const yaml_mark_t *mark = &event->start_mark;
    struct document_builder *builder = &yaml->builder;
    uint32_t number;
    if (!text_set_find(&yaml->names, name, strlen(name), &number))
        return refuse(yaml, mark, "alias '*%.100s' names no node before it", name);
    const struct anchor *anchor = &yaml->anchors[number];
    if (anchor->open)
        return refuse(yaml, mark, "alias '*%.100s' is inside the node that it names", name);
    int r = make_node(yaml, anchor->node->kind, level, event, ret);
    if (r < 0)
        return r;
    if (document_builder_count_again(builder, anchor->node, level) < 0)
        /* The place of the alias is the one that the user can change. */
        return refuse(yaml, mark, "alias '*%.100s' makes the document too big: %s", name,
                      builder->failure ? builder->failure->text : "");
    struct document_node *copy = *ret;
    copy->text = anchor->node->text;
    copy->count = anchor->node->count;
    copy->keys = anchor->node->keys;
    copy->items = anchor->node->items; /* shared */
    return 0;
}

/* ---- Collections ------------------------------------------------------------------------------- */

static int walk_node(struct yaml *yaml, const yaml_event_t *event, size_t level, struct document_node **ret);

static int make_key(struct yaml *yaml, const yaml_event_t *event, size_t level, struct document_node **ret) {
    const yaml_mark_t *mark = &event->start_mark;
    if (event->type == YAML_ALIAS_EVENT)
        return refuse(yaml, mark, "an alias as a key, expected a plain scalar");
    if (event->type == YAML_SEQUENCE_START_EVENT)
        return refuse(yaml, mark, "a sequence as a key, expected a plain scalar");
    if (event->type == YAML_MAPPING_START_EVENT)
        return refuse(yaml, mark, "a mapping as a key, expected a plain scalar");
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (plain && strcmp((const char *)event->data.scalar.value, "<<") == 0)
        return refuse(yaml, mark, "merge keys ('<<') are not supported, expected the keys themselves");
    if (plain && event->data.scalar.length == 0)
        return refuse(yaml, mark, "an empty key, expected a plain scalar");
    return make_scalar(yaml, event, level, ret);
}

/* Reads the events of one child at LEVEL; *RET_END says that the collection's end came instead. */
static int walk_child(struct yaml *yaml, bool is_mapping, size_t level, bool *ret_end) {
    cleanup(yaml_event_delete) yaml_event_t first = {0}, second = {0};
    struct document_node *child;
    int r = next_event(yaml, &first);
    if (r < 0)
        return r;
    *ret_end = first.type == (is_mapping ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT);
    if (*ret_end)
        return 0;
    if (is_mapping) {
        r = make_key(yaml, &first, level, &child);
        if (r < 0)
            return r;
        document_builder_push(&yaml->builder, child);
        r = next_event(yaml, &second);
        if (r < 0)
            return r;
    }
    r = walk_node(yaml, is_mapping ? &second : &first, level, &child);
    if (r == 0)
        document_builder_push(&yaml->builder, child);
    return r;
}

static int walk_collection(struct yaml *yaml, const yaml_event_t *event, size_t level,
                           struct document_node **ret) {
    bool is_mapping = event->type == YAML_MAPPING_START_EVENT;
    const yaml_char_t *tag = is_mapping ? event->data.mapping_start.tag : event->data.sequence_start.tag;
    const yaml_char_t *name =
        is_mapping ? event->data.mapping_start.anchor : event->data.sequence_start.anchor;
    if (tag && strcmp((const char *)tag, is_mapping ? YAML_MAP_TAG : YAML_SEQ_TAG) != 0)
        return refuse_tag(yaml, event, (const char *)tag);
    int r = make_node(yaml, is_mapping ? DOCUMENT_MAPPING : DOCUMENT_SEQUENCE, level, event, ret);
    if (r == 0)
        r = set_anchor(yaml, name, *ret, &event->start_mark);
    size_t first = yaml->builder.open_count;
    for (bool end = false; r == 0 && !end;)
        r = walk_child(yaml, is_mapping, level + 1, &end);
    if (r < 0)
        return r;
    if (name)
        close_anchor(yaml, *ret);
    return document_builder_close(&yaml->builder, *ret, first);
}

/* The node that EVENT begins, at LEVEL; recursion ends with DOCUMENT_DEPTH_MOST. */
static int walk_node(struct yaml *yaml, const yaml_event_t *event, size_t level, struct document_node **ret) {
    if (event->type == YAML_ALIAS_EVENT)
        return make_alias(yaml, event, level, ret);
    if (event->type == YAML_SCALAR_EVENT)
        return make_scalar(yaml, event, level, ret);
    return walk_collection(yaml, event, level, ret);
}

/* ---- The stream -------------------------------------------------------------------------------- */

/* Stream start, document start, a node, document end, stream end. */
static int walk_stream(struct yaml *yaml, struct document_node **ret) {
    cleanup(yaml_event_delete) yaml_event_t stream = {0}, start = {0}, first = {0}, end = {0}, last = {0};
    int r = next_event(yaml, &stream);
    if (r == 0)
        r = next_event(yaml, &start);
    if (r == 0 && start.type == YAML_STREAM_END_EVENT)
        return refuse(yaml, &(yaml_mark_t){0}, "nothing, expected a document");
    if (r == 0)
        r = next_event(yaml, &first);
    if (r == 0)
        r = walk_node(yaml, &first, 1, ret);
    if (r == 0)
        r = next_event(yaml, &end);
    if (r == 0)
        r = next_event(yaml, &last);
    if (r == 0 && last.type != YAML_STREAM_END_EVENT)
        return refuse(yaml, &last.start_mark, "a second document, expected one");
    return r;
}

int document_parse_yaml(const char *name, const char *bytes, size_t length, struct document **ret,
                        struct failure *failure) {
    int r = document_check_bytes(name, bytes, length, DOCUMENT_BYTES_MOST, failure);
    if (r < 0)
        return r;
    size_t mark = document_byte_order_mark(bytes, length);
    struct yaml yaml = {.bytes = bytes + mark};
    if (!yaml_parser_initialize(&yaml.parser))
        memory_exhausted();
    /* Without this libyaml would guess UTF-16 from the first bytes. */
    yaml_parser_set_encoding(&yaml.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&yaml.parser, (const unsigned char *)bytes + mark, length - mark);
    yaml.builder = document_builder_begin(name, DOCUMENT_NODES_MOST, failure);
    struct document_node *root = NULL;
    r = walk_stream(&yaml, &root);
    text_set_clear(&yaml.names);
    yaml_parser_delete(&yaml.parser);
    return document_builder_finish(&yaml.builder, r, root, ret);
}
