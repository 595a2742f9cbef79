/* YAML by libyaml's events: typing by the core schema of YAML 1.2, and our own limits. */
#include "engine/documents/document-builder.h"
#include "engine/documents/number-literal.h"
#include "engine/documents/shown-value.h"
#include "engine/foundation/list.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct anchor {
    char *name;
    const struct document_node *node; /* in the tree; an anchor used again names its last node */
    bool open;                        /* the node is not complete */
};

struct yaml {
    yaml_parser_t parser;
    struct document_builder builder;
    const char *bytes; /* for places that libyaml gives as offsets */
    struct anchor *anchors;
    size_t anchor_count, anchor_capacity;
};

static int refuse(struct yaml *yaml, const yaml_mark_t *mark, const char *sentence) {
    return failure_input(yaml->builder.failure, yaml->builder.file, mark->line + 1, mark->column + 1, "%s",
                         sentence);
}

/* What libyaml complains of, as one sentence. */
static int refuse_syntax(struct yaml *yaml) {
    const yaml_parser_t *parser = &yaml->parser;
    struct failure *failure = yaml->builder.failure;
    const char *file = yaml->builder.file;
    const char *problem = parser->problem ? parser->problem : "not YAML";
    if (parser->error == YAML_MEMORY_ERROR)
        return failure_memory(failure);
    if (parser->error == YAML_READER_ERROR) {
        size_t line, column;
        document_place(yaml->bytes, parser->problem_offset, &line, &column);
        return failure_input(failure, file, line, column, "%s (0x%02x)", problem,
                             (unsigned)parser->problem_value);
    }
    size_t line = parser->problem_mark.line + 1, column = parser->problem_mark.column + 1;
    if (parser->context && parser->context_mark.line != parser->problem_mark.line)
        return failure_input(failure, file, line, column, "%s %s that begins in line %zu", problem,
                             parser->context, parser->context_mark.line + 1);
    if (parser->context)
        return failure_input(failure, file, line, column, "%s %s", problem, parser->context);
    return failure_input(failure, file, line, column, "%s", problem);
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
    const struct document_builder *builder = &yaml->builder;
    size_t line = event->start_mark.line + 1, column = event->start_mark.column + 1;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (strcmp(tags[i].name, tag) != 0)
            continue;
        if (tags[i].kind != DOCUMENT_TEXT && kind_of_plain(text, event->data.scalar.length) != tags[i].kind)
            return failure_input(builder->failure, builder->file, line, column, "%s is tagged as %s",
                                 shown_value(text, strlen(text)).text, document_kind_name(tags[i].kind));
        *ret = tags[i].kind;
        return 0;
    }
    return failure_input(builder->failure, builder->file, line, column,
                         "tag %s is not known, expected a value without a tag",
                         shown_value(tag, strlen(tag)).text);
}

static int make_scalar(struct yaml *yaml, const yaml_event_t *event, struct document_node **ret) {
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    enum document_kind kind = DOCUMENT_TEXT;
    if (event->data.scalar.tag) {
        int r = kind_of_tagged(yaml, event, &kind);
        if (r < 0)
            return r;
    } else if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        kind = kind_of_plain(text, length);
    }
    cleanup_document_node struct document_node *node = NULL;
    int r = document_builder_node(&yaml->builder, kind, event->start_mark.line + 1,
                                  event->start_mark.column + 1, &node);
    if (r == 0)
        r = document_builder_text(&yaml->builder, node, text, length);
    if (r < 0)
        return r;
    *ret = take_pointer(node);
    return 0;
}

/* ---- Anchors and aliases ----------------------------------------------------------------------- */

static struct anchor *find_anchor(struct yaml *yaml, const char *name) {
    for (size_t i = 0; i < yaml->anchor_count; i++)
        if (strcmp(yaml->anchors[i].name, name) == 0)
            return &yaml->anchors[i];
    return NULL;
}

static int set_anchor(struct yaml *yaml, const yaml_char_t *name, const struct document_node *node, bool open,
                      const yaml_mark_t *mark) {
    if (!name)
        return 0;
    struct anchor *anchor = find_anchor(yaml, (const char *)name);
    if (!anchor) {
        int r = list_reserve(&yaml->anchors, &yaml->anchor_capacity, yaml->anchor_count + 1, sizeof *anchor,
                             DOCUMENT_ANCHORS_MOST);
        if (r == -EFBIG)
            return refuse(yaml, mark, "too many anchors");
        anchor = yaml->anchors ? &yaml->anchors[yaml->anchor_count] : NULL;
        if (r < 0 || !(anchor->name = strdup((const char *)name)))
            return failure_memory(yaml->builder.failure);
        yaml->anchor_count++;
    }
    anchor->node = node;
    anchor->open = open;
    return 0;
}

/* An anchor's node is complete, unless the same name was given to another node inside it. */
static void close_anchor(struct yaml *yaml, const yaml_char_t *name, const struct document_node *node) {
    struct anchor *anchor = name ? find_anchor(yaml, (const char *)name) : NULL;
    if (anchor && anchor->node == node)
        anchor->open = false;
}

static int make_alias(struct yaml *yaml, const yaml_event_t *event, size_t depth,
                      struct document_node **ret) {
    const char *name = (const char *)event->data.alias.anchor;
    size_t line = event->start_mark.line + 1, column = event->start_mark.column + 1;
    const struct document_builder *builder = &yaml->builder;
    const struct anchor *anchor = find_anchor(yaml, name);
    if (!anchor)
        return failure_input(builder->failure, builder->file, line, column,
                             "alias '*%.100s' names no node before it", name);
    if (anchor->open)
        return failure_input(builder->failure, builder->file, line, column,
                             "alias '*%.100s' is inside the node that it names", name);
    cleanup_document_node struct document_node *copy = NULL;
    int r = document_builder_copy(&yaml->builder, anchor->node, depth, &copy);
    if (r < 0) {
        /* The reader can do something about it where the alias stands. */
        if (r == -EINVAL)
            failure_input(builder->failure, builder->file, line, column,
                          "alias '*%.100s' makes the document too big: %s", name,
                          builder->failure ? builder->failure->text : "");
        return r;
    }
    copy->line = (uint32_t)line;
    copy->column = (uint32_t)column;
    *ret = take_pointer(copy);
    return 0;
}

/* ---- Collections ------------------------------------------------------------------------------- */

static int make_node(struct yaml *yaml, const yaml_event_t *event, size_t depth, struct document_node **ret);

static int check_collection_tag(struct yaml *yaml, const yaml_char_t *tag, const char *own,
                                const yaml_mark_t *mark) {
    if (!tag || strcmp((const char *)tag, own) == 0)
        return 0;
    return failure_input(yaml->builder.failure, yaml->builder.file, mark->line + 1, mark->column + 1,
                         "tag %s is not known, expected a value without a tag",
                         shown_value((const char *)tag, strlen((const char *)tag)).text);
}

static int make_key(struct yaml *yaml, const yaml_event_t *event, struct document_node **ret) {
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
    cleanup_document_node struct document_node *key = NULL;
    int r = make_scalar(yaml, event, &key);
    if (r == 0)
        r = set_anchor(yaml, event->data.scalar.anchor, key, false, mark);
    if (r < 0)
        return r;
    *ret = take_pointer(key);
    return 0;
}

/* Reads the events of one child and adds it to COLLECTION; *RET_END says that its end came instead. */
static int add_child(struct yaml *yaml, struct document_node *collection, size_t depth, bool *ret_end) {
    bool is_mapping = collection->kind == DOCUMENT_MAPPING;
    cleanup_document_node struct document_node *key = NULL, *item = NULL;
    cleanup(yaml_event_delete) yaml_event_t first = {0}, second = {0};
    int r = next_event(yaml, &first);
    if (r < 0)
        return r;
    if (first.type == (is_mapping ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT)) {
        *ret_end = true;
        return 0;
    }
    if (is_mapping) {
        r = make_key(yaml, &first, &key);
        if (r == 0)
            r = next_event(yaml, &second);
    }
    if (r == 0)
        r = make_node(yaml, is_mapping ? &second : &first, depth + 1, &item);
    if (r == 0)
        r = document_builder_add(&yaml->builder, collection, key, item);
    if (r == 0)
        key = item = NULL;
    return r;
}

static int make_collection(struct yaml *yaml, const yaml_event_t *event, size_t depth,
                           struct document_node **ret) {
    bool is_mapping = event->type == YAML_MAPPING_START_EVENT;
    const yaml_char_t *tag = is_mapping ? event->data.mapping_start.tag : event->data.sequence_start.tag;
    const yaml_char_t *name =
        is_mapping ? event->data.mapping_start.anchor : event->data.sequence_start.anchor;
    const yaml_mark_t *mark = &event->start_mark;
    cleanup_document_node struct document_node *node = NULL;
    int r =
        check_collection_tag(yaml, tag, is_mapping ? "tag:yaml.org,2002:map" : "tag:yaml.org,2002:seq", mark);
    if (r == 0)
        r = document_builder_node(&yaml->builder, is_mapping ? DOCUMENT_MAPPING : DOCUMENT_SEQUENCE,
                                  mark->line + 1, mark->column + 1, &node);
    if (r == 0)
        r = set_anchor(yaml, name, node, true, mark);
    for (bool end = false; r == 0 && !end;)
        r = add_child(yaml, node, depth, &end);
    if (r == 0 && is_mapping)
        r = document_builder_check_keys(&yaml->builder, node);
    if (r < 0)
        return r;
    close_anchor(yaml, name, node);
    *ret = take_pointer(node);
    return 0;
}

/* The node that EVENT begins, at level DEPTH; recursion ends with DOCUMENT_DEPTH_MOST. */
static int make_node(struct yaml *yaml, const yaml_event_t *event, size_t depth, struct document_node **ret) {
    const yaml_mark_t *mark = &event->start_mark;
    int r = document_builder_check_depth(&yaml->builder, depth, mark->line + 1, mark->column + 1);
    if (r < 0)
        return r;
    if (event->type == YAML_ALIAS_EVENT)
        return make_alias(yaml, event, depth, ret);
    if (event->type != YAML_SCALAR_EVENT)
        return make_collection(yaml, event, depth, ret);
    cleanup_document_node struct document_node *node = NULL;
    r = make_scalar(yaml, event, &node);
    if (r == 0)
        r = set_anchor(yaml, event->data.scalar.anchor, node, false, mark);
    if (r < 0)
        return r;
    *ret = take_pointer(node);
    return 0;
}

/* ---- The stream -------------------------------------------------------------------------------- */

/* Stream start, document start, a node, document end, stream end. */
static int make_root(struct yaml *yaml, struct document_node **ret) {
    cleanup(yaml_event_delete) yaml_event_t stream = {0}, start = {0}, first = {0}, end = {0}, last = {0};
    cleanup_document_node struct document_node *root = NULL;
    int r = next_event(yaml, &stream);
    if (r == 0)
        r = next_event(yaml, &start);
    if (r == 0 && start.type == YAML_STREAM_END_EVENT)
        return failure_input(yaml->builder.failure, yaml->builder.file, 1, 1, "nothing, expected a document");
    if (r == 0)
        r = next_event(yaml, &first);
    if (r == 0)
        r = make_node(yaml, &first, 1, &root);
    if (r == 0)
        r = next_event(yaml, &end);
    if (r == 0)
        r = next_event(yaml, &last);
    if (r < 0)
        return r;
    if (last.type != YAML_STREAM_END_EVENT)
        return refuse(yaml, &last.start_mark, "a second document, expected one");
    *ret = take_pointer(root);
    return 0;
}

static void clear_yaml(struct yaml *yaml) {
    for (size_t i = 0; i < yaml->anchor_count; i++)
        free(yaml->anchors[i].name);
    free(yaml->anchors);
    yaml_parser_delete(&yaml->parser);
}

int document_parse_yaml(const char *name, const char *bytes, size_t length, struct document **ret,
                        struct failure *failure) {
    int r = document_check_bytes(name, bytes, length, DOCUMENT_BYTES_MOST, failure);
    if (r < 0)
        return r;
    size_t mark = document_byte_order_mark(bytes, length);
    struct yaml yaml = {.builder = {.file = name, .failure = failure}, .bytes = bytes + mark};
    if (!yaml_parser_initialize(&yaml.parser))
        return failure_memory(failure);
    /* Said aloud, for libyaml would guess UTF-16 from the first bytes. */
    yaml_parser_set_encoding(&yaml.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&yaml.parser, (const unsigned char *)bytes + mark, length - mark);
    struct document_node *root = NULL;
    r = make_root(&yaml, &root);
    clear_yaml(&yaml);
    return r < 0 ? r : document_new(name, root, NULL, ret, failure);
}
