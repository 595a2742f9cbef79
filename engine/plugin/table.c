#include "engine/plugin/table.h"

#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"
#include "engine/foundation/text.h"
#include "engine/plugin/label-set.h"
#include "engine/plugin/row-places.h"
#include "engine/plugin/table-input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A label column over all inputs. */
struct table_labels {
    struct label_set set;
    /* The set's code of each code of the current input; NULL while they are the same (as in the first input).
     */
    uint32_t *translation;
    size_t translated, translation_capacity;
    uint32_t *codes; /* of the current block, when translated */
    size_t code_capacity;
};

struct table {
    struct table_source *sources;
    size_t source_count;
    bool hash;

    /* Of the pass. */
    const char *const *numbers, *const *labels;
    size_t number_count, label_count;
    size_t current;              /* source; source_count: none is open */
    struct csv_columns *columns; /* of the current source */
    uint64_t rows;               /* of the current source so far */
    bool passed;                 /* a whole pass was made */
    struct row_places places;    /* of the first pass */
    struct table_labels label_columns[TABLE_LABELS_MOST];
    const uint32_t *block_labels[TABLE_LABELS_MOST];
};

int table_open(const char *const *paths, size_t count, bool hash, struct table **ret,
               struct failure *failure) {
    if (count == 0 || count > TABLE_INPUTS_MOST)
        return failure_input(failure, NULL, 0, 0, "%zu inputs; expected 1 to %d", count,
                             (int)TABLE_INPUTS_MOST);
    cleanup(table_cleanup) struct table *table = calloc(1, sizeof *table);
    if (!table)
        return failure_memory(failure);
    table->hash = hash;
    table->sources = calloc(count, sizeof *table->sources);
    if (!table->sources)
        return failure_memory(failure);
    bool standard_input = false;
    for (size_t i = 0; i < count; i++) {
        if (standard_input && strcmp(paths[i], "-") == 0)
            return failure_input(failure, NULL, 0, 0, "standard input ('-') is given twice");
        standard_input |= strcmp(paths[i], "-") == 0;
        table->source_count = i + 1;
        int r = table_source_look(&table->sources[i], paths[i], hash, failure);
        if (r < 0)
            return r;
    }
    table->current = table->source_count;
    *ret = take_pointer(table);
    return 0;
}

static void clear_labels(struct table_labels *labels) {
    label_set_clear(&labels->set);
    free(labels->translation);
    free(labels->codes);
    *labels = (struct table_labels){0};
}

static void stop(struct table *table, bool complete) {
    csv_columns_close(table->columns);
    table->columns = NULL;
    if (table->current < table->source_count)
        table_source_stop(&table->sources[table->current], complete);
}

void table_close(struct table *table) {
    if (!table)
        return;
    csv_columns_close(table->columns);
    for (size_t i = 0; i < table->source_count; i++)
        table_source_clear(&table->sources[i]);
    for (size_t j = 0; j < TABLE_LABELS_MOST; j++)
        clear_labels(&table->label_columns[j]);
    row_places_clear(&table->places);
    free(table->sources);
    free(table);
}

void table_cleanup(struct table **table) {
    table_close(*table);
}

size_t table_input_count(const struct table *table) {
    return table->source_count;
}

const struct table_input *table_input(const struct table *table, size_t i) {
    return &table->sources[i].input;
}

size_t table_column_count(const struct table *table) {
    return table->sources[0].column_count;
}

const struct table_column *table_column(const struct table *table, size_t i) {
    return &table->sources[0].columns[i];
}

static const struct table_column *find_in(const struct table_source *source, const char *name) {
    for (size_t i = 0; i < source->column_count; i++)
        if (strcmp(source->columns[i].name, name) == 0)
            return &source->columns[i];
    return NULL;
}

/* "did you mean 'x'?", or the list of what there is. */
static int no_such_column(const struct table_source *source, const char *what, const char *name,
                          struct failure *failure) {
    cleanup_free const char **names = calloc(source->column_count, sizeof *names);
    if (!names)
        return failure_memory(failure);
    cleanup(text_clear) struct text list;
    text_init(&list, FAILURE_TEXT_SIZE / 2);
    for (size_t i = 0; i < source->column_count; i++) {
        names[i] = source->columns[i].name;
        if (text_printf(&list, "%s%s", i ? ", " : "", names[i]) < 0)
            break; /* a list that is too long to be read is cut */
    }
    const char *nearest = text_nearest(name, names, source->column_count);
    if (nearest)
        return failure_input(failure, source->input.path, 0, 0,
                             "there is no %s column '%s'; did you mean '%s'?", what, name, nearest);
    return failure_input(failure, source->input.path, 0, 0, "there is no %s column '%s'; there are: %s", what,
                         name, list.bytes);
}

int table_find(const struct table *table, const char *what, const char *name, size_t *ret,
               struct failure *failure) {
    const struct table_column *column = find_in(&table->sources[0], name);
    if (!column)
        return no_such_column(&table->sources[0], what, name, failure);
    *ret = (size_t)(column - table->sources[0].columns);
    return 0;
}

const struct table_suggestion *table_suggestion(const struct table *table) {
    for (size_t i = 0; i < table->source_count; i++)
        if (table->sources[i].suggests)
            return &table->sources[i].suggestion;
    return NULL;
}

/* ---- Passes */

static int check_columns(const struct table *table, struct failure *failure) {
    for (size_t i = 0; i < table->number_count + table->label_count; i++) {
        bool number = i < table->number_count;
        const char *name = number ? table->numbers[i] : table->labels[i - table->number_count];
        const struct table_column *first = NULL;
        for (size_t s = 0; s < table->source_count; s++) {
            const struct table_source *source = &table->sources[s];
            const struct table_column *column = find_in(source, name);
            if (!column)
                return no_such_column(source, number ? "number" : "group", name, failure);
            first = first ? first : column;
            if (number && first->unit && column->unit && strcmp(first->unit, column->unit) != 0)
                return failure_input(failure, source->input.path, 0, 0,
                                     "the column '%s' is in '%s'; expected '%s', as in '%s'", name,
                                     column->unit, first->unit, table->sources[0].input.path);
        }
    }
    return 0;
}

/* Opens the columns of the current source. */
static int start(struct table *table, struct failure *failure) {
    struct table_source *source = &table->sources[table->current];
    int r = table_source_start(source, table->hash && !table->passed, failure);
    if (r < 0)
        return r;
    cleanup_free size_t *indices = calloc(table->number_count + table->label_count + 1, sizeof *indices);
    if (!indices)
        return failure_memory(failure);
    for (size_t i = 0; i < table->number_count + table->label_count; i++) {
        const char *name =
            i < table->number_count ? table->numbers[i] : table->labels[i - table->number_count];
        r = csv_find_column(source->csv, name, &indices[i], failure);
        if (r < 0)
            return r;
    }
    table->rows = 0;
    for (size_t j = 0; j < table->label_count; j++)
        table->label_columns[j].translated = 0;
    return csv_columns_open(source->csv, indices, table->number_count, indices + table->number_count,
                            table->label_count, CSV_EMPTY_IS_NAN, &table->columns, failure);
}

int table_begin(struct table *table, const char *const *numbers, size_t number_count,
                const char *const *labels, size_t label_count, struct failure *failure) {
    if (label_count > TABLE_LABELS_MOST)
        return failure_input(failure, NULL, 0, 0, "%zu group columns; expected at most %d", label_count,
                             (int)TABLE_LABELS_MOST);
    stop(table, false);
    table->numbers = numbers;
    table->number_count = number_count;
    table->labels = labels;
    table->label_count = label_count;
    table->current = 0;
    if (!table->passed)
        row_places_clear(&table->places);
    int r = check_columns(table, failure);
    return r < 0 ? r : start(table, failure);
}

/* Brings the translation of label column J up to what the current input has by now. */
static int extend_translation(struct table *table, size_t j) {
    struct table_labels *labels = &table->label_columns[j];
    size_t count = csv_label_count(table->columns, j);
    int r = list_reserve(&labels->translation, &labels->translation_capacity, count,
                         sizeof *labels->translation, LABEL_SET_MOST);
    for (; r == 0 && labels->translated < count; labels->translated += r == 0)
        r = label_set_code(&labels->set, csv_label(table->columns, j, (uint32_t)labels->translated),
                           &labels->translation[labels->translated]);
    return r;
}

static int translate(struct table *table, size_t j, size_t rows, const uint32_t *codes,
                     struct failure *failure) {
    struct table_labels *labels = &table->label_columns[j];
    int r = extend_translation(table, j);
    if (r == 0 && table->current > 0)
        r = list_reserve(&labels->codes, &labels->code_capacity, rows, sizeof *labels->codes, SIZE_MAX / 8);
    if (r == -EFBIG)
        return failure_input(failure, NULL, 0, 0, "the group column '%s' has more than %d different labels",
                             table->labels[j], (int)LABEL_SET_MOST);
    if (r < 0)
        return failure_memory(failure);
    table->block_labels[j] = codes;
    if (table->current == 0)
        return 0; /* both sides number by first appearance */
    for (size_t i = 0; i < rows; i++)
        labels->codes[i] = labels->translation[codes[i]];
    table->block_labels[j] = labels->codes;
    return 0;
}

/* The current source is at its end: closes it, and opens the next one if there is one. */
static int advance(struct table *table, struct failure *failure) {
    struct table_source *source = &table->sources[table->current];
    if (table->passed && table->rows != source->input.rows)
        return failure_set(failure, -ESTALE, "'%s' changed while it was being read", source->input.path);
    source->input.rows = table->rows;
    stop(table, true);
    table->current++;
    if (table->current < table->source_count)
        return start(table, failure);
    table->passed = true;
    return 0;
}

int table_next(struct table *table, struct table_block *ret, struct failure *failure) {
    while (table->current < table->source_count) {
        struct csv_block block;
        int r = csv_columns_next(table->columns, &block, failure);
        if (r < 0)
            return table_source_failure(&table->sources[table->current], r, failure);
        if (r == 0) {
            r = advance(table, failure);
            if (r < 0)
                return r;
            continue;
        }
        table->rows += block.rows;
        if (!table->passed &&
            row_places_add(&table->places, (uint32_t)table->current, block.rows, block.lines) < 0)
            return failure_memory(failure);
        for (size_t j = 0; j < table->label_count; j++) {
            r = translate(table, j, block.rows, block.labels[j], failure);
            if (r < 0)
                return r;
        }
        *ret = (struct table_block){block.rows, block.numbers, table->block_labels};
        return 1;
    }
    return 0;
}

bool table_place(const struct table *table, uint64_t row, const struct table_input **ret_input,
                 uint64_t *ret_line) {
    uint32_t input;
    if (!row_places_find(&table->places, row, &input, ret_line))
        return false;
    *ret_input = &table->sources[input].input;
    return true;
}

const char *table_label(const struct table *table, size_t j, uint32_t code) {
    return table->label_columns[j].set.texts[code];
}

size_t table_label_count(const struct table *table, size_t j) {
    return table->label_columns[j].set.count;
}
