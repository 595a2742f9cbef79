#include "engine/table/table.h"

#include "engine/documents/csv.h"
#include "engine/documents/unit.h"
#include "engine/expression/expression.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/natural-order.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text-set.h"
#include "engine/foundation/text.h"
#include "engine/table/duplicate-inputs.h"
#include "engine/table/input.h"
#include "engine/table/row-places.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of archives: the gates that a row did not pass. */
#define FLAGS_COLUMN "state.flags"

enum { FIRST_CAPACITY = 4096 };

struct table_private {
    struct table_options options;
    struct input *inputs;
    struct row_places places;
    size_t capacity; /* rows that the arrays have room for */
};

/* ---- Notes and columns */

const struct column *table_find(const struct table *table, const char *name) {
    return input_find_column(table->columns, table->column_count, name);
}

const char *table_column_name(const struct table *table, const char *name) {
    const struct column *column = table_find(table, name);
    return column ? column->name : name;
}

static int no_column(const char *path, const struct column *columns, size_t count, const char *what,
                     const char *name, struct failure *failure) {
    cleanup_free const char **names = xcalloc(count + 1, sizeof *names);
    char instead[TEXT_INSTEAD_SIZE];
    for (size_t i = 0; i < count; i++)
        names[i] = columns[i].name;
    return failure_input(failure, path, 0, 0, "there is no %s column '%s'; %s", what, name,
                         text_instead(name, names, count, instead));
}

int table_no_column(const struct table *table, const char *what, const char *name, struct failure *failure) {
    return no_column(table->inputs[0].path, table->columns, table->column_count, what, name, failure);
}

/* ---- Opening */

static void add_column(struct table *table, const struct column *column) {
    table->columns = xrealloc(table->columns, (table->column_count + 1) * sizeof *table->columns);
    table->columns[table->column_count++] = column_copy(column);
}

/* Copies the columns of the first input. A missing unit is taken from the first input that has it. A column
 * 'file' is added if there are several inputs. */
static void copy_columns(struct table *table) {
    const struct input *inputs = table->private->inputs;
    for (size_t i = 0; i < inputs[0].column_count; i++) {
        struct column column = inputs[0].columns[i];
        for (size_t s = 1; s < table->input_count && !column.unit; s++) {
            const struct column *other = input_find(&inputs[s], column.name);
            column.unit = other ? other->unit : NULL;
        }
        add_column(table, &column);
    }
    if (table->input_count > 1 && !table_find(table, TABLE_FILE_COLUMN))
        add_column(table, &(struct column){.name = TABLE_FILE_COLUMN, .type = COLUMN_STRING});
}

/* Removes inputs that repeat the rows of another, with a note for each. Negative with FAILURE: an input
 * cannot be read. */
static int remove_repeated_inputs(struct table *table, struct failure *failure) {
    struct input *inputs = table->private->inputs;
    cleanup_free char **reasons = xcalloc(table->input_count, sizeof *reasons);
    int r = duplicate_inputs_hash_rows(inputs, table->input_count, &table->private->options, failure);
    for (size_t i = 0; r == 0 && i < table->input_count; i++)
        r = duplicate_inputs_reason(inputs, table->input_count, i, &reasons[i], failure);
    size_t kept = 0;
    for (size_t i = 0; i < table->input_count; i++) {
        if (r == 0 && reasons[i]) {
            xappend(&table->notes, &table->note_count, xstrdup(reasons[i]));
            input_clear(&inputs[i]);
        } else {
            inputs[kept++] = inputs[i];
        }
        free(reasons[i]);
    }
    table->input_count = kept;
    for (size_t i = 0; r == 0 && i < kept; i++) {
        char *shared = duplicate_inputs_describe_shared(inputs, i);
        if (shared)
            xappend(&table->notes, &table->note_count, shared);
    }
    for (size_t i = 0; i < kept; i++)
        free(take_pointer(inputs[i].row_hashes));
    return r;
}

/* Opens the inputs and finds their columns, without reading rows (table.h). */
int table_open(const char *const *paths, size_t count, const struct table_options *options,
               struct table **ret, struct failure *failure) {
    if (count == 0 || count > TABLE_INPUTS_MAX)
        return failure_input(failure, NULL, 0, 0, "%zu inputs are given; expected 1 to %d", count,
                             (int)TABLE_INPUTS_MAX);
    cleanup(table_cleanup) struct table *table = xcalloc(1, sizeof *table);
    table->private = xcalloc(1, sizeof *table->private);
    table->private->options = options ? *options : (struct table_options){0};
    table->private->inputs = xcalloc(count, sizeof *table->private->inputs);
    for (size_t i = 0; i < count; i++) {
        table->input_count = i + 1;
        int r = input_inspect(&table->private->inputs[i], paths[i], &table->private->options, failure);
        if (r < 0)
            return r;
    }
    int r = remove_repeated_inputs(table, failure);
    if (r < 0)
        return r;
    copy_columns(table);
    table->inputs = xcalloc(table->input_count, sizeof *table->inputs);
    for (size_t i = table->input_count; i-- > 0;) {
        table->inputs[i] = table->private->inputs[i].about;
        if (table->private->inputs[i].suggests)
            table->suggestion = &table->private->inputs[i].suggestion;
        if (table->private->inputs[i].answer.response)
            table->answer = &table->private->inputs[i].answer;
        else
            table->ranks_nothing |= table->private->inputs[i].has_answer;
    }
    *ret = take_pointer(table);
    return 0;
}

/* ---- Units */

/* "the column 'x' of 'a.zip' and 2 more is converted to 's', as in 'b.zip'" */
static void note_inputs(struct table *table, const char *name, const struct input *first, size_t count,
                        const char *what, const char *unit) {
    char more[32] = "";
    if (count > 1)
        snprintf(more, sizeof more, " and %zu more", count - 1);
    if (count > 0)
        xappend(&table->notes, &table->note_count,
                xformat("the column '%s' of '%s'%s %s '%s'", name, first->about.path, more, what, unit));
}

/* -EINVAL for a header with a unit that is not known, as "duration [foo]". */
static int check_unit_known(const struct input *input, const struct column *column, struct failure *failure) {
    size_t stem;
    const struct unit *unit;
    bool is_written = !input->about.archive && !column->unit &&
                      unit_read_name(column->name, strlen(column->name), &stem, &unit) == UNIT_PLACE_BRACKETS;
    if (!is_written)
        return 0;
    const char *text = column->name + stem + strspn(column->name + stem, " ");
    return failure_input(
        failure, input->about.path, 1, 0,
        "unknown unit '%.*s' in column '%s'; expected such as s, ms, us, ns, h, [min], B, kB, MiB, MB/s, "
        "Gbit/s, flop/s, Gflop/s, MHz, W, J, Cel, %%, 1 for a plain number, or a name without brackets",
        (int)strlen(text) - 2, text + 1, column->name);
}

/* -EINVAL unless all inputs have the column NAME, and in units of one dimension if it is a number. Notes
 * units that are converted or assumed. */
static int check_column(struct table *table, const char *name, bool is_number, struct failure *failure) {
    const struct input *inputs = table->private->inputs, *converted = NULL, *unknown = NULL;
    const char *unit = table_find(table, name)->unit;
    size_t converted_count = 0, unknown_count = 0;
    for (size_t i = 0; i < table->input_count; i++) {
        const struct column *column = input_find(&inputs[i], name);
        double multiply, divide;
        if (!column && strcmp(name, TABLE_FILE_COLUMN) == 0 && table->input_count > 1)
            continue;
        if (!column)
            return no_column(inputs[i].about.path, inputs[i].columns, inputs[i].column_count,
                             is_number ? "number" : "text", name, failure);
        int r = is_number ? check_unit_known(&inputs[i], column, failure) : 0;
        if (r < 0)
            return r;
        if (!is_number && unit && column->unit && strcmp(column->unit, unit) != 0)
            return failure_input(failure, inputs[i].about.path, 0, 0,
                                 "the column '%s' has the unit '%s'; expected the same unit '%s' as in "
                                 "'%s', because groups are compared as texts",
                                 name, column->unit, unit, inputs[0].about.path);
        if (!unit || !is_number || (column->unit && strcmp(column->unit, unit) == 0))
            continue;
        if (!column->unit && strcmp(unit, "1") == 0)
            continue; /* a plain number either way */
        if (!column->unit) {
            unknown = unknown_count++ ? unknown : &inputs[i];
        } else if (unit_conversion(column->unit, unit, &multiply, &divide)) {
            converted = converted_count++ ? converted : &inputs[i];
        } else {
            return failure_input(failure, inputs[i].about.path, 0, 0,
                                 "the column '%s' has the unit '%s'; expected a unit that converts to "
                                 "'%s', the unit in the inputs before",
                                 name, column->unit, unit);
        }
    }
    if (is_number && !unit && !inputs[0].about.archive && unit_is_time_name(name, strlen(name)))
        xappend(&table->notes, &table->note_count,
                xformat("the column '%s' has no unit, and seconds are assumed; a header such "
                        "as '%s [us]' states another unit",
                        name, name));
    note_inputs(table, name, converted, converted_count, "is converted to", unit);
    note_inputs(table, name, unknown, unknown_count, "has no unit, and is assumed to be in", unit);
    return 0;
}

/* ---- Loading */

/* The columns to read from each input, and how the values of the table are made of them. */
struct loading {
    struct table *table;
    const struct table_selection *selection;
    const char **columns; /* read as numbers */
    size_t column_count;
    struct expression **expressions; /* of each kept number; NULL: a column */
    size_t *sources;                 /* of each kept number that is a column: which of `columns` */
    struct expression *where;
    const char **names;    /* of all columns of the table, as expressions see them */
    double *values;        /* of one row, by the table's columns; then comparisons with texts of `where` */
    size_t comparisons;    /* how many of these there are */
    size_t *in_values;     /* where each of `columns` is in `values` */
    struct text_set *sets; /* of each category */
};

static size_t add_name(const char **names, size_t *count, const char *name) {
    size_t i = text_find(name, names, *count);
    if (i == *count)
        names[(*count)++] = name;
    return i;
}

/* The columns that EXPRESSION uses are read. */
static void add_columns_of(struct loading *loading, const struct expression *expression) {
    for (size_t i = 0; i < loading->table->column_count; i++)
        if (expression_uses(expression, i))
            loading->in_values[add_name(loading->columns, &loading->column_count, loading->names[i])] = i;
}

/* Finds the columns and expressions of the selection, and checks them. -EINVAL with FAILURE: a column is
 * missing or does not fit. */
static int plan_columns(struct loading *loading, struct failure *failure) {
    const struct table_selection *selection = loading->selection;
    struct table *table = loading->table;
    size_t count = table->column_count;
    loading->names = xcalloc(count + 1, sizeof *loading->names);
    loading->in_values = xcalloc(count + 1, sizeof *loading->in_values);
    loading->columns = xcalloc(count + 1, sizeof *loading->columns);
    loading->expressions = xcalloc(selection->number_count + 1, sizeof *loading->expressions);
    loading->sources = xcalloc(selection->number_count + 1, sizeof *loading->sources);
    loading->sets = xcalloc(selection->category_count + 1, sizeof *loading->sets);
    for (size_t i = 0; i < count; i++)
        loading->names[i] = table->columns[i].name;
    for (size_t i = 0; i < selection->number_count; i++) {
        const struct column *column = table_find(table, selection->numbers[i]);
        if (column) {
            loading->sources[i] = add_name(loading->columns, &loading->column_count, column->name);
            loading->in_values[loading->sources[i]] = (size_t)(column - table->columns);
            continue;
        }
        int r = expression_parse(selection->numbers[i], loading->names, count, NULL, 0, 0,
                                 &loading->expressions[i], failure);
        if (r < 0)
            return r;
        add_columns_of(loading, loading->expressions[i]);
    }
    if (selection->where) {
        int r = expression_parse_condition(selection->where, loading->names, count, &loading->where, failure);
        if (r < 0)
            return r;
        add_columns_of(loading, loading->where);
        loading->comparisons = expression_comparison_count(loading->where);
    }
    loading->values = xcalloc(count + loading->comparisons + 1, sizeof *loading->values);
    int r = 0;
    for (size_t j = 0, name; r == 0 && j < loading->comparisons; j++) {
        expression_comparison(loading->where, j, &name);
        r = check_column(table, loading->names[name], false, failure);
    }
    for (size_t i = 0; r == 0 && i < loading->column_count; i++)
        r = check_column(table, loading->columns[i], true, failure);
    for (size_t j = 0; r == 0 && j < selection->category_count; j++)
        r = !table_find(table, selection->categories[j])
                ? table_no_column(table, "text", selection->categories[j], failure)
                : check_column(table, selection->categories[j], false, failure);
    return r;
}

/* Makes room for ROWS more rows in all columns. */
static void make_room(struct table *table, const struct table_selection *selection, size_t rows) {
    if (table->rows + rows <= table->private->capacity)
        return;
    size_t capacity = table->private->capacity * 8; /* what is not written takes no memory */
    capacity = capacity < FIRST_CAPACITY   ? FIRST_CAPACITY
               : capacity > TABLE_ROWS_MAX ? TABLE_ROWS_MAX
                                           : capacity;
    capacity = capacity < table->rows + rows ? table->rows + rows : capacity;
    for (size_t i = 0; i < selection->number_count; i++)
        table->numbers[i].values =
            xrealloc_large(table->numbers[i].values, table->rows * sizeof(double), capacity * sizeof(double));
    for (size_t j = 0; j < selection->category_count; j++)
        table->categories[j].codes = xrealloc_large(
            table->categories[j].codes, table->rows * sizeof(uint32_t), capacity * sizeof(uint32_t));
    table->private->capacity = capacity;
}

/* How the rows of one input are read. */
struct reading {
    struct csv_columns *columns;
    double *multiply, *divide; /* of each column, to the table's unit */
    bool *converts;
    uint32_t **translations; /* of each text: the code in the table of each code of this input */
    size_t *translated;
    size_t *labels;   /* of each text, where the csv_columns have it; SIZE_MAX: it is the file's name */
    size_t flags;     /* likewise of the flags; SIZE_MAX: there are none */
    size_t *compared; /* likewise of each comparison with a text */
    const char *file;
};

/* Sets the factors from the units of INPUT to the table's. */
static void set_conversions(const struct loading *loading, const struct input *input,
                            struct reading *reading) {
    for (size_t i = 0; i < loading->column_count; i++) {
        const char *name = loading->columns[i];
        const char *from = input_find(input, name)->unit, *to = table_find(loading->table, name)->unit;
        reading->multiply[i] = reading->divide[i] = 1;
        if (from && to && strcmp(from, to) != 0)
            unit_conversion(from, to, &reading->multiply[i], &reading->divide[i]);
        reading->converts[i] = reading->multiply[i] != 1 || reading->divide[i] != 1;
    }
}

static double number_at(const struct reading *reading, const struct csv_block *block, size_t column,
                        size_t row) {
    double value = block->numbers[column][row];
    return reading->converts[column] ? value * reading->multiply[column] / reading->divide[column] : value;
}

static void set_values(const struct loading *loading, const struct reading *reading,
                       const struct csv_block *block, size_t row) {
    for (size_t i = 0; i < loading->column_count; i++)
        loading->values[loading->in_values[i]] = number_at(reading, block, i, row);
}

/* Sets the results of comparisons with texts, of ROW, for the condition. */
static void set_comparisons(const struct loading *loading, const struct reading *reading,
                            const struct csv_block *block, size_t row) {
    for (size_t j = 0, name; j < loading->comparisons; j++) {
        const char *text = expression_comparison(loading->where, j, &name), *field = reading->file;
        size_t label = reading->compared[j];
        if (label != SIZE_MAX)
            field = csv_label(reading->columns, label, block->labels[label][row]);
        loading->values[loading->table->column_count + j] = number_texts_equal(field, text);
    }
}

static bool is_flagged(const struct reading *reading, const struct csv_block *block, size_t row) {
    return reading->flags != SIZE_MAX &&
           csv_label(reading->columns, reading->flags, block->labels[reading->flags][row])[0] != '\0';
}

/* Lists the rows of the block that are not flagged and match the condition in KEPT. Returns their number. */
static size_t choose_rows(const struct loading *loading, const struct reading *reading,
                          const struct csv_block *block, uint32_t *kept) {
    size_t count = 0;
    for (size_t row = 0; row < block->rows; row++) {
        if (is_flagged(reading, block, row)) {
            loading->table->rows_flagged++;
            continue;
        }
        if (loading->where) {
            set_values(loading, reading, block, row);
            set_comparisons(loading, reading, block, row);
            double truth = expression_value(loading->where, loading->values);
            if (isnan(truth) || truth == 0) {
                loading->table->rows_not_matching++;
                continue;
            }
        }
        kept[count++] = (uint32_t)row;
    }
    return count;
}

/* Appends the numbers of the chosen rows to the table, computing expressions. */
static void append_numbers(const struct loading *loading, const struct reading *reading,
                           const struct csv_block *block, const uint32_t *kept, size_t count) {
    for (size_t i = 0; i < loading->selection->number_count; i++) {
        double *values = loading->table->numbers[i].values + loading->table->rows;
        const struct expression *expression = loading->expressions[i];
        for (size_t k = 0; k < count; k++) {
            if (expression) {
                set_values(loading, reading, block, kept[k]);
                values[k] = expression_value(expression, loading->values);
            } else {
                values[k] = number_at(reading, block, loading->sources[i], kept[k]);
            }
        }
    }
}

/* Finds the table's codes for all texts of category J that this input has so far. */
static void translate_codes(const struct loading *loading, struct reading *reading, size_t j) {
    size_t count = csv_label_count(reading->columns, reading->labels[j]);
    if (count > reading->translated[j])
        reading->translations[j] = xrealloc(reading->translations[j], count * sizeof(uint32_t));
    for (; reading->translated[j] < count; reading->translated[j]++) {
        const char *text = csv_label(reading->columns, reading->labels[j], (uint32_t)reading->translated[j]);
        reading->translations[j][reading->translated[j]] =
            text_set_add(&loading->sets[j], text, strlen(text));
    }
}

/* Appends the codes of the chosen rows. -EINVAL: a category has too many texts. */
static int append_categories(const struct loading *loading, struct reading *reading,
                             const struct csv_block *block, const uint32_t *kept, size_t count,
                             struct failure *failure) {
    for (size_t j = 0; j < loading->selection->category_count; j++) {
        uint32_t *codes = loading->table->categories[j].codes + loading->table->rows;
        if (reading->labels[j] == SIZE_MAX) {
            uint32_t code = text_set_add(&loading->sets[j], reading->file, strlen(reading->file));
            for (size_t k = 0; k < count; k++)
                codes[k] = code;
            continue;
        }
        translate_codes(loading, reading, j);
        for (size_t k = 0; k < count; k++)
            codes[k] = reading->translations[j][block->labels[reading->labels[j]][kept[k]]];
        if (loading->sets[j].count > TABLE_LEVELS_MAX)
            return failure_input(failure, NULL, 0, 0,
                                 "the column '%s' has more than %d different texts, the most accepted",
                                 loading->selection->categories[j], (int)TABLE_LEVELS_MAX);
    }
    return 0;
}

/* Appends the chosen rows of a block to the table, with their lines. -EINVAL: too many rows or texts. */
static int append_block(const struct loading *loading, struct reading *reading, uint32_t input,
                        const struct csv_block *block, struct failure *failure) {
    struct table *table = loading->table;
    cleanup_free uint32_t *kept = xmalloc((block->rows + 1) * sizeof *kept);
    size_t count = choose_rows(loading, reading, block, kept);
    if (table->rows + count > TABLE_ROWS_MAX)
        return failure_input(failure, NULL, 0, 0, "the inputs have more than %zu rows, the most accepted",
                             TABLE_ROWS_MAX);
    make_room(table, loading->selection, count);
    append_numbers(loading, reading, block, kept, count);
    int r = append_categories(loading, reading, block, kept, count, failure);
    cleanup_free uint64_t *lines = xmalloc((count + 1) * sizeof *lines);
    for (size_t k = 0; k < count; k++)
        lines[k] = block->lines[kept[k]];
    if (r == 0 && count > 0 && row_places_add(&table->private->places, input, count, lines) < 0)
        memory_exhausted();
    table->rows += count;
    return r;
}

/* Adds the column NAME of INPUT to LABELS; returns its place there. SIZE_MAX: INPUT has none, so that it is
 * the file's name, as check_column() has seen. */
static size_t add_label(const struct input *input, const char *name, size_t *labels, size_t *count) {
    const struct column *column = input_find(input, name);
    if (!column)
        return SIZE_MAX;
    labels[*count] = (size_t)(column - input->columns);
    return (*count)++;
}

/* Opens the columns of INPUT that are needed. */
static int open_columns(const struct loading *loading, const struct input *input, struct reading *reading,
                        struct failure *failure) {
    const struct table_selection *selection = loading->selection;
    cleanup_free size_t *numbers = xcalloc(loading->column_count + 1, sizeof *numbers);
    cleanup_free size_t *labels =
        xcalloc(selection->category_count + loading->comparisons + 1, sizeof *labels);
    size_t label_count = 0;
    for (size_t i = 0; i < loading->column_count; i++)
        numbers[i] = (size_t)(input_find(input, loading->columns[i]) - input->columns);
    for (size_t j = 0; j < selection->category_count; j++)
        reading->labels[j] = add_label(input, selection->categories[j], labels, &label_count);
    for (size_t j = 0, name; j < loading->comparisons; j++) {
        expression_comparison(loading->where, j, &name);
        reading->compared[j] = add_label(input, loading->names[name], labels, &label_count);
    }
    reading->flags = SIZE_MAX;
    if (input->about.archive && !selection->with_flagged)
        reading->flags = add_label(input, FLAGS_COLUMN, labels, &label_count);
    return csv_columns_open(input->csv, numbers, loading->column_count, labels, label_count,
                            CSV_MISSING_IS_NAN, &reading->columns, failure);
}

/* Reads all rows of INPUT, block by block. */
static int read_rows(const struct loading *loading, struct input *input, uint32_t index,
                     struct reading *reading, struct failure *failure) {
    const struct table_selection *selection = loading->selection;
    int r = open_columns(loading, input, reading, failure);
    if (r < 0)
        return r;
    set_conversions(loading, input, reading);
    struct csv_block block;
    while ((r = csv_columns_next(reading->columns, &block, failure)) > 0) {
        input->about.rows += block.rows;
        r = append_block(loading, reading, index, &block, failure);
        if (r < 0)
            return r;
        if (selection->progress)
            selection->progress(selection->progress_context, loading->table->rows);
    }
    return r < 0 ? input_failure(input, r, failure) : 0;
}

/* Opens, reads and closes input number INDEX. */
static int load_input(const struct loading *loading, uint32_t index, struct failure *failure) {
    struct table *table = loading->table;
    struct input *input = &table->private->inputs[index];
    size_t columns = loading->column_count + 1, texts = loading->selection->category_count + 1;
    struct reading reading = {
        .multiply = xcalloc(columns, sizeof(double)),
        .divide = xcalloc(columns, sizeof(double)),
        .converts = xcalloc(columns, sizeof(bool)),
        .translations = xcalloc(texts, sizeof(uint32_t *)),
        .translated = xcalloc(texts, sizeof(size_t)),
        .labels = xcalloc(texts, sizeof(size_t)),
        .compared = xcalloc(loading->comparisons + 1, sizeof(size_t)),
        .file = input->about.name,
    };
    int r = input_open(input, &table->private->options, failure);
    if (r == 0)
        r = read_rows(loading, input, index, &reading, failure);
    csv_columns_close(reading.columns);
    input_close(input);
    if (r == 0 && table->private->options.hash && input->is_regular && !input->about.archive)
        r = hash_file(input->about.path, input->about.sha256, NULL, failure);
    table->inputs[index] = input->about;
    for (size_t j = 0; j < texts; j++)
        free(reading.translations[j]);
    free(reading.multiply), free(reading.divide), free(reading.converts);
    free(reading.translations), free(reading.translated), free(reading.labels), free(reading.compared);
    return r;
}

/* If all texts of a column are numbers, merges equal numbers into one text, as 1e+05 and 100000; missing
 * values stay. TEXTS becomes the smaller set; MERGED[i] is the new code of text i. */
static void merge_numbers(struct text_set *texts, uint32_t *merged) {
    cleanup(text_set_clear) struct text_set spelled = {0};
    char buffer[NUMBER_TEXT_SIZE];
    bool is_numbers = true;
    for (size_t i = 0; i < texts->count; i++) {
        const char *text = texts->texts[i];
        bool is_missing = csv_is_missing(text, strlen(text));
        is_numbers = is_numbers && (is_missing || number_spell(text, buffer));
        merged[i] = is_numbers ? text_set_add(&spelled, is_missing ? text : buffer,
                                              strlen(is_missing ? text : buffer))
                               : 0;
    }
    for (size_t i = 0; !is_numbers && i < texts->count; i++)
        merged[i] = (uint32_t)i;
    if (is_numbers) {
        struct text_set before = *texts;
        *texts = spelled;
        spelled = before;
    }
}

/* Sorts the levels of category J in natural order, and changes the codes accordingly. */
static void sort_levels(struct table *table, size_t j, struct text_set *set) {
    struct table_category *category = &table->categories[j];
    cleanup_free uint32_t *ranks = NULL, *merged = xcalloc(set->count + 1, sizeof *merged);
    merge_numbers(set, merged);
    if (natural_order_ranks((const char *const *)set->texts, set->count, &ranks) < 0)
        memory_exhausted();
    category->level_count = set->count;
    category->levels = xcalloc(set->count + 1, sizeof *category->levels);
    for (size_t i = 0; i < set->count; i++)
        category->levels[ranks[i]] = xstrdup(set->texts[i]);
    for (size_t row = 0; row < table->rows; row++)
        category->codes[row] = ranks[merged[category->codes[row]]];
}

/* Allocates the columns of the selection, without rows. */
static void prepare_results(struct table *table, const struct table_selection *selection) {
    table->numbers = xcalloc(selection->number_count + 1, sizeof *table->numbers);
    table->categories = xcalloc(selection->category_count + 1, sizeof *table->categories);
    table->number_count = selection->number_count;
    table->category_count = selection->category_count;
    for (size_t i = 0; i < selection->number_count; i++) {
        const struct column *column = table_find(table, selection->numbers[i]);
        table->numbers[i].name = xstrdup(selection->numbers[i]);
        table->numbers[i].unit = column && column->unit ? xstrdup(column->unit) : NULL;
    }
    for (size_t j = 0; j < selection->category_count; j++)
        table->categories[j].name = xstrdup(selection->categories[j]);
}

static void loading_clear(struct loading *loading) {
    for (size_t i = 0; loading->expressions && i < loading->selection->number_count; i++)
        expression_free(loading->expressions[i]);
    for (size_t j = 0; loading->sets && j < loading->selection->category_count; j++)
        text_set_clear(&loading->sets[j]);
    expression_free(loading->where);
    free(loading->columns), free(loading->expressions), free(loading->sources), free(loading->names);
    free(loading->values), free(loading->in_values), free(loading->sets);
}

/* Loads all inputs one after the other. */
static int load_inputs(const struct loading *loading, struct failure *failure) {
    struct table *table = loading->table;
    int r = 0;
    table->rows_flagged = table->rows_not_matching = 0;
    for (size_t i = 0; r == 0 && i < table->input_count; i++) {
        table->private->inputs[i].about.rows = 0;
        r = load_input(loading, (uint32_t)i, failure);
    }
    return r;
}

/* Loads the selected columns and rows of all inputs (table.h). If gates flagged all rows, they are used
 * nevertheless, with a note. */
int table_load(struct table *table, const struct table_selection *selection, struct failure *failure) {
    cleanup(loading_clear) struct loading loading = {.table = table, .selection = selection};
    struct table_selection all = *selection;
    int r = plan_columns(&loading, failure);
    if (r < 0)
        return r;
    prepare_results(table, selection);
    r = load_inputs(&loading, failure);
    if (r == 0 && table->rows == 0 && table->rows_flagged > 0) {
        table->ignores_flags = all.with_flagged = true;
        loading.selection = &all;
        r = load_inputs(&loading, failure);
        xappend(&table->notes, &table->note_count,
                xformat("all %zu rows were flagged by gates, because the machine was "
                        "disturbed; the rows are used nevertheless, but do not trust the "
                        "results",
                        table->rows));
    }
    if (r == 0 && table->rows_flagged > 0)
        xappend(&table->notes, &table->note_count,
                xformat("%llu rows were flagged by gates and are left out (--with-flagged uses "
                        "them)",
                        (unsigned long long)table->rows_flagged));
    loading.selection = selection;
    if (r < 0)
        return r;
    for (size_t j = 0; j < selection->category_count; j++)
        sort_levels(table, j, &loading.sets[j]);
    return 0;
}

/* Orders the loaded columns as SELECTION has them. false: one is not loaded. */
bool table_arrange(struct table *table, const struct table_selection *selection) {
    for (size_t i = 0; i < selection->number_count; i++) {
        size_t found = i;
        while (found < table->number_count && strcmp(table->numbers[found].name, selection->numbers[i]) != 0)
            found++;
        if (found == table->number_count)
            return false;
        struct table_numbers kept = table->numbers[i];
        table->numbers[i] = table->numbers[found];
        table->numbers[found] = kept;
    }
    for (size_t j = 0; j < selection->category_count; j++) {
        size_t found = j;
        while (found < table->category_count &&
               strcmp(table->categories[found].name, selection->categories[j]) != 0)
            found++;
        if (found == table->category_count)
            return false;
        struct table_category kept = table->categories[j];
        table->categories[j] = table->categories[found];
        table->categories[found] = kept;
    }
    return true;
}

bool table_place(const struct table *table, size_t row, const struct table_input **ret_input,
                 uint64_t *ret_line) {
    uint32_t input;
    if (!row_places_find(&table->private->places, row, &input, ret_line))
        return false;
    *ret_input = &table->inputs[input];
    return true;
}

/* ---- Freeing */

/* Frees the table; NULL is allowed. */
void table_free(struct table *table) {
    if (!table)
        return;
    for (size_t i = 0; i < table->column_count; i++)
        column_clear(&table->columns[i]);
    for (size_t i = 0; i < table->number_count; i++)
        free(table->numbers[i].name), free(table->numbers[i].unit), free(table->numbers[i].values);
    for (size_t j = 0; j < table->category_count; j++) {
        struct table_category *category = &table->categories[j];
        for (size_t i = 0; i < category->level_count; i++)
            free(category->levels[i]);
        free(category->name), free(category->codes), free(category->levels);
    }
    for (size_t i = 0; i < table->note_count; i++)
        free(table->notes[i]);
    for (size_t i = 0; i < table->input_count; i++)
        input_clear(&table->private->inputs[i]); /* its texts are those of table->inputs */
    row_places_clear(&table->private->places);
    free(table->columns), free(table->numbers), free(table->categories), free(table->notes);
    free(table->inputs), free(table->private->inputs), free(table->private), free(table);
}

void table_cleanup(struct table **table) {
    table_free(*table);
}
