#include "engine/plugin/table.h"

#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text-set.h"
#include "engine/foundation/text.h"
#include "engine/plugin/table-input.h"
#include "engine/plugin/table-repeats.h"
#include "engine/plugin/table-unit.h"
#include "engine/table/row-places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    NOTES_BYTES_MAX = 1 << 20,
    LABELS_MAX = 1 << 24, /* different ones of one column */
};

/* A label column over all inputs. */
struct table_labels {
    struct text_set set;
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
    const char *member; /* of archives */
    bool hash;
    struct table_column *columns; /* of the first source, in the units of the whole; names are its own */

    /* Of the pass. */
    const char *const *numbers, *const *labels;
    size_t number_count, label_count;
    size_t current;              /* source; source_count: none is open */
    struct csv_columns *reading; /* of the current source */
    uint64_t rows;               /* of the current source so far */
    bool passed;                 /* a whole pass was made */
    struct row_places places;    /* of the first pass */
    struct table_labels label_columns[TABLE_LABELS_MAX];
    const uint32_t *block_labels[TABLE_LABELS_MAX];

    struct text notes;    /* a NUL after each */
    size_t opening_notes; /* bytes of those that are about inputs that were left out; then the pass's */

    /* Units of the pass. */
    struct table_conversion *conversions; /* of the current source: one for each number */
    const double **block_numbers;         /* one for each number */
    double *converted;                    /* their numbers, one column after the other */
    size_t converted_capacity;
    bool converting; /* the current source needs it */
};

/* The columns that are told of: the first input's; a unit that it does not tell is that of another. */
static int name_columns(struct table *table) {
    const struct table_source *first = &table->sources[0];
    table->columns = xcalloc(first->column_count, sizeof *table->columns);
    for (size_t i = 0; i < first->column_count; i++) {
        table->columns[i] = first->columns[i];
        table->columns[i].unit = table_unit(table->sources, table->source_count, first->columns[i].name);
    }
    return 0;
}

/* Looks at every input once. Standard input comes last, since it stays open and cannot be moved from then on.
 */
static int look(struct table *table, const char *const *paths, size_t count, struct failure *failure) {
    bool standard_input = false;
    for (size_t i = 0; i < count; i++) {
        struct table_source *source = &table->sources[table->source_count++];
        *source = (struct table_source){.descriptor = -1};
        bool is_standard_input = strcmp(paths[i], "-") == 0;
        if (standard_input && is_standard_input)
            return failure_input(failure, NULL, 0, 0, "standard input ('-') is given twice");
        standard_input |= is_standard_input;
        int r =
            is_standard_input ? 0 : table_source_look(source, paths[i], table->member, table->hash, failure);
        if (r < 0)
            return r;
    }
    int r = table_leave_repeats_out(table->sources, &table->source_count, &table->notes, failure);
    table->opening_notes = table->notes.length;
    for (size_t i = 0; r == 0 && i < table->source_count; i++)
        if (!table->sources[i].input.path)
            r = table_source_look(&table->sources[i], "-", table->member, table->hash, failure);
    table->current = table->source_count;
    return r;
}

int table_stream_open(const char *const *paths, size_t count, bool hash, struct table **ret,
                      struct failure *failure) {
    return table_open_member(paths, count, NULL, hash, ret, failure);
}

int table_open_member(const char *const *paths, size_t count, const char *member, bool hash,
                      struct table **ret, struct failure *failure) {
    if (count == 0 || count > TABLE_INPUTS_MAX)
        return failure_input(failure, NULL, 0, 0, "%zu inputs; expected 1 to %d", count,
                             (int)TABLE_INPUTS_MAX);
    cleanup(table_stream_cleanup) struct table *table = calloc(1, sizeof *table);
    if (!table)
        return failure_memory(failure);
    table->hash = hash;
    table->member = member;
    text_init(&table->notes, NOTES_BYTES_MAX);
    table->sources = xcalloc(count, sizeof *table->sources);
    int r = look(table, paths, count, failure);
    r = r < 0 ? r : name_columns(table);
    if (r == 0)
        *ret = take_pointer(table);
    return r;
}

static void clear_labels(struct table_labels *labels) {
    text_set_clear(&labels->set);
    free(labels->translation);
    free(labels->codes);
    *labels = (struct table_labels){0};
}

static void stop(struct table *table, bool complete) {
    csv_columns_close(table->reading);
    table->reading = NULL;
    if (table->current < table->source_count)
        table_source_stop(&table->sources[table->current], complete);
}

void table_close(struct table *table) {
    if (!table)
        return;
    csv_columns_close(table->reading);
    for (size_t i = 0; i < table->source_count; i++)
        table_source_clear(&table->sources[i]);
    for (size_t j = 0; j < TABLE_LABELS_MAX; j++)
        clear_labels(&table->label_columns[j]);
    row_places_clear(&table->places);
    free(table->sources);
    free(table->columns);
    text_clear(&table->notes);
    free(table->conversions);
    free((void *)table->block_numbers);
    free(table->converted);
    free(table);
}

void table_stream_cleanup(struct table **table) {
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
    return &table->columns[i];
}

/* "did you mean 'x'?", or the list of what there is. */
static int no_such_column(const struct table_source *source, const char *what, const char *name,
                          struct failure *failure) {
    cleanup_free const char **names = xcalloc(source->column_count, sizeof *names);
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

int table_stream_find(const struct table *table, const char *what, const char *name, size_t *ret,
                      struct failure *failure) {
    const struct table_column *column = table_source_find(&table->sources[0], name);
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

static int check_columns(struct table *table, struct failure *failure) {
    table->notes.length = table->opening_notes;
    for (size_t i = 0; i < table->number_count + table->label_count; i++) {
        bool number = i < table->number_count;
        const char *name = number ? table->numbers[i] : table->labels[i - table->number_count];
        for (size_t s = 0; s < table->source_count; s++)
            if (!table_source_find(&table->sources[s], name))
                return no_such_column(&table->sources[s], number ? "number" : "group", name, failure);
        int r = table_unit_check(table->sources, table->source_count, name, number, &table->notes, failure);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Opens the columns of the current source. */
static int start(struct table *table, struct failure *failure) {
    struct table_source *source = &table->sources[table->current];
    int r = table_source_start(source, table->hash && !table->passed, failure);
    if (r < 0)
        return r;
    cleanup_free size_t *indices = xcalloc(table->number_count + table->label_count + 1, sizeof *indices);
    for (size_t i = 0; i < table->number_count + table->label_count; i++) {
        const char *name =
            i < table->number_count ? table->numbers[i] : table->labels[i - table->number_count];
        r = csv_find_column(source->csv, name, &indices[i], failure);
        if (r < 0)
            return r;
    }
    table->rows = 0;
    table->converting = false;
    for (size_t i = 0; i < table->number_count; i++) {
        const char *unit = table_unit(table->sources, table->source_count, table->numbers[i]);
        table->conversions[i] = table_unit_conversion(source, table->numbers[i], unit);
        table->converting |= table->conversions[i].multiply != 1 || table->conversions[i].divide != 1;
    }
    for (size_t j = 0; j < table->label_count; j++)
        table->label_columns[j].translated = 0;
    return csv_columns_open(source->csv, indices, table->number_count, indices + table->number_count,
                            table->label_count, CSV_MISSING_IS_NAN, &table->reading, failure);
}

int table_begin(struct table *table, const char *const *numbers, size_t number_count,
                const char *const *labels, size_t label_count, struct failure *failure) {
    if (label_count > TABLE_LABELS_MAX)
        return failure_input(failure, NULL, 0, 0, "%zu group columns; expected at most %d", label_count,
                             (int)TABLE_LABELS_MAX);
    stop(table, false);
    table->numbers = numbers;
    table->number_count = number_count;
    table->labels = labels;
    table->label_count = label_count;
    table->current = 0;
    if (!table->passed)
        row_places_clear(&table->places);
    free(table->conversions);
    free((void *)table->block_numbers);
    table->conversions = xcalloc(number_count + 1, sizeof *table->conversions);
    table->block_numbers = xcalloc(number_count + 1, sizeof *table->block_numbers);
    int r = check_columns(table, failure);
    return r < 0 ? r : start(table, failure);
}

/* Brings the translation of label column J up to what the current input has by now. */
static void extend_translation(struct table *table, size_t j) {
    struct table_labels *labels = &table->label_columns[j];
    size_t count = csv_label_count(table->reading, j);
    if (count > labels->translation_capacity) {
        labels->translation_capacity = 2 * count;
        labels->translation = xrealloc(labels->translation, 2 * count * sizeof *labels->translation);
    }
    for (; labels->translated < count; labels->translated++) {
        const char *text = csv_label(table->reading, j, (uint32_t)labels->translated);
        labels->translation[labels->translated] = text_set_add(&labels->set, text, strlen(text));
    }
}

static int translate(struct table *table, size_t j, size_t rows, const uint32_t *codes,
                     struct failure *failure) {
    struct table_labels *labels = &table->label_columns[j];
    extend_translation(table, j);
    if (labels->set.count > LABELS_MAX)
        return failure_input(failure, NULL, 0, 0, "the group column '%s' has more than %d different labels",
                             table->labels[j], (int)LABELS_MAX);
    if (table->current > 0 && rows > labels->code_capacity) {
        labels->code_capacity = rows;
        labels->codes = xrealloc(labels->codes, rows * sizeof *labels->codes);
    }
    table->block_labels[j] = codes;
    if (table->current == 0)
        return 0; /* both sides number by first appearance */
    for (size_t i = 0; i < rows; i++)
        labels->codes[i] = labels->translation[codes[i]];
    table->block_labels[j] = labels->codes;
    return 0;
}

/* The block's numbers in the units of the whole table. */
static int convert(struct table *table, size_t rows, const double *const *numbers, struct failure *failure) {
    int r = list_reserve(&table->converted, &table->converted_capacity, rows * table->number_count,
                         sizeof *table->converted, SIZE_MAX / 8);
    if (r < 0)
        return failure_memory(failure);
    for (size_t i = 0; i < table->number_count; i++) {
        struct table_conversion conversion = table->conversions[i];
        table->block_numbers[i] = numbers[i];
        if (conversion.multiply == 1 && conversion.divide == 1)
            continue;
        double *column = table->converted + i * rows;
        for (size_t row = 0; row < rows; row++)
            column[row] = numbers[i][row] * conversion.multiply / conversion.divide;
        table->block_numbers[i] = column;
    }
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
        int r = csv_columns_next(table->reading, &block, failure);
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
        if (table->converting && (r = convert(table, block.rows, block.numbers, failure)) < 0)
            return r;
        *ret = (struct table_block){block.rows, table->converting ? table->block_numbers : block.numbers,
                                    table->block_labels};
        return 1;
    }
    return 0;
}

bool table_stream_place(const struct table *table, uint64_t row, const struct table_input **ret_input,
                        uint64_t *ret_line) {
    uint32_t input;
    if (!row_places_find(&table->places, row, &input, ret_line))
        return false;
    *ret_input = &table->sources[input].input;
    return true;
}

const char *table_note_after(const struct table *table, const char *previous) {
    const struct text *notes = &table->notes;
    size_t at = previous ? (size_t)(previous - notes->bytes) + strlen(previous) + 1 : 0;
    return at < notes->length ? notes->bytes + at : NULL;
}

const char *table_label(const struct table *table, size_t j, uint32_t code) {
    return table->label_columns[j].set.texts[code];
}

size_t table_label_count(const struct table *table, size_t j) {
    return table->label_columns[j].set.count;
}
