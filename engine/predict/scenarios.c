#include "engine/predict/scenarios.h"

#include "engine/design/levels.h"
#include "engine/documents/csv.h"
#include "engine/documents/unit.h"
#include "engine/expression/expression.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The values that NAME=VALUE gave to a parameter. */
struct sweep {
    size_t parameter;
    char **values;
    size_t count;
    struct expression *expression; /* instead of values; COUNT is 1 */
    size_t *inputs, input_count;   /* the parameters that its names are */
};

/* A column of the table: its parameter, and the unit in its header. */
struct bound_column {
    size_t parameter;
    bool is_name;
    char *unit; /* NULL: none */
};

struct reading {
    struct scenarios *scenarios;
    struct sweep *sweeps;
    size_t sweep_count;
    struct csv_reader *csv;
    struct bound_column *columns;
    const struct csv_field *fields; /* of the row in hand; NULL: there is no table */
    size_t combinations, next;      /* of the sweeps: how many, and which is next for this row */
    size_t rows, scenarios_made;
};

/* Frees what was read of the scenarios. */
static void reading_free(struct reading *reading) {
    if (!reading)
        return;
    for (size_t i = 0; i < reading->sweep_count; i++) {
        for (size_t k = 0; reading->sweeps[i].values && k < reading->sweeps[i].count; k++)
            free(reading->sweeps[i].values[k]);
        free(reading->sweeps[i].values);
        expression_free(reading->sweeps[i].expression);
        free(reading->sweeps[i].inputs);
    }
    for (size_t i = 0; reading->columns && i < csv_column_count(reading->csv); i++)
        free(reading->columns[i].unit);
    free(reading->sweeps), free(reading->columns);
    csv_close(reading->csv);
    free(reading);
}

/* ---- NAME=VALUE
 * ----------------------------------------------------------------------------------------------- */

static void add_value(struct sweep *sweep, char *value) {
    sweep->values = xrealloc(sweep->values, (sweep->count + 1) * sizeof *sweep->values);
    sweep->values[sweep->count++] = value;
}

/* Cuts the unit off the numbers of a range (NULL: not given), of which not each must have it, and returns it;
 * the caller frees it. "": no number has a unit, two differ, or a text is no number; then nothing was cut. */
static char *cut_unit(char *numbers[3]) {
    char *ends[3], *unit = NULL;
    for (size_t i = 0; i < 3; i++) {
        ends[i] = numbers[i];
        (void)(numbers[i] ? strtod(numbers[i], &ends[i]) : 0);
        if (numbers[i] && (ends[i] == numbers[i] || (unit && *ends[i] && strcmp(unit, ends[i]) != 0)))
            return xstrdup("");
        unit = numbers[i] && *ends[i] ? ends[i] : unit;
    }
    unit = xstrdup(unit ? unit : "");
    for (size_t i = 0; i < 3; i++)
        if (numbers[i])
            *ends[i] = '\0';
    return unit;
}

/* Adds the numbers of a range "LOW..HIGH" or "LOW..HIGH:STEP" with one unit: LENGTH bytes at TEXT, with the
 * dots at DOTS. -EINVAL: no range, or too many values. */
static int add_range(struct sweep *sweep, const char *name, const char *text, size_t length, const char *dots,
                     struct failure *failure) {
    cleanup(levels_clear) struct levels levels = {0};
    cleanup_free char *low = xstrndup(text, (size_t)(dots - text));
    cleanup_free char *high = xstrndup(dots + 2, length - (size_t)(dots + 2 - text));
    char *step = strchr(high, ':');
    if (step)
        *step++ = '\0';
    struct failure own = {0};
    cleanup_free char *unit = NULL;
    int r = levels_from_range(name, low, high, step, (struct levels_place){0}, &levels, &own);
    if (r < 0) { /* sizes such as 64MiB are numbers to it, other units are not */
        unit = cut_unit((char *[]){low, high, step});
        r = levels_from_range(name, low, high, step, (struct levels_place){0}, &levels, failure);
    }
    uint64_t count = r < 0 ? 0 : levels_count(&levels);
    if (r == 0 && (count == 0 || count > LEVELS_MAX))
        return failure_input(failure, NULL, 0, 0,
                             "the range of '%s' has %s values; expected LOW..HIGH:STEP with at most %d", name,
                             count ? "too many" : "no step between its", LEVELS_MAX);
    for (uint64_t i = 0; i < count; i++)
        add_value(sweep, xformat("%.17g%s", levels_number(&levels, i), unit ? unit : ""));
    return r;
}

/* Adds the values of TEXT, separated by commas; numbers may be ranges. */
static int add_values(struct sweep *sweep, const struct plugin_parameter *parameter, const char *text,
                      struct failure *failure) {
    bool is_number = parameter->type == PLUGIN_NUMBER, is_list = is_number || parameter->type == PLUGIN_WORD;
    int r = 0;
    for (bool is_last = false; r == 0 && !is_last;) {
        text += strspn(text, " ");
        size_t length = is_list ? strcspn(text, ",") : strlen(text);
        const char *dots = is_number ? strstr(text, "..") : NULL;
        is_last = text[length] == '\0';
        if (dots && dots < text + length)
            r = add_range(sweep, parameter->name, text, length, dots, failure);
        else
            add_value(sweep, xstrndup(text, length));
        text += length + !is_last;
    }
    return r;
}

/* Reads TEXT as an expression over numbers of other parameters, as 64/P ('_' stands for '-' in names). 1: it
 * is one; 0: it is a plain value, such as 10GB/s; -EINVAL: a malformed expression. */
static int read_expression(const struct reading *reading, struct sweep *sweep, const char *text,
                           struct failure *failure) {
    const struct parameters *all = &reading->scenarios->options;
    const struct plugin_parameter *parameter = &all->table[sweep->parameter];
    const struct unit *unit = unit_find(parameter->unit ? parameter->unit : "1");
    enum unit_dimension dimension = unit ? unit->dimension : UNIT_NONE;
    struct failure own = {0};
    double value;
    if (parameter->type != PLUGIN_NUMBER || strstr(text, "..") || unit_parse(text, dimension, &value))
        return 0;
    cleanup_free char **names = xcalloc(all->count + 1, sizeof *names);
    size_t count = 0;
    bool uses = false;
    sweep->inputs = xcalloc(all->count + 1, sizeof *sweep->inputs);
    for (size_t i = 0; i < all->count; i++) {
        if (i == sweep->parameter || all->table[i].type != PLUGIN_NUMBER)
            continue;
        sweep->inputs[count] = i;
        names[count] = xstrdup(all->table[i].name);
        for (char *c = names[count++]; *c; c++)
            *c = *c == '-' ? '_' : *c;
    }
    int r = expression_parse(text, (const char *const *)names, count, NULL, 0, 0, &sweep->expression, &own);
    for (size_t i = 0; i < count; i++) {
        uses = uses || (r == 0 && expression_uses(sweep->expression, i));
        free(names[i]);
    }
    sweep->input_count = count;
    sweep->count = 1;
    if (r == 0 && uses)
        return 1;
    if (r < 0 && strpbrk(text, dimension == UNIT_NONE ? "()*+/" : "()*+"))
        return failure_input(failure, NULL, 0, 0, "%s: %s", parameter->name, own.text);
    expression_free(sweep->expression);
    free(sweep->inputs);
    *sweep = (struct sweep){.parameter = sweep->parameter};
    return 0;
}

/* Reads NAME=VALUE: an option, or the values of a parameter of scenarios. -EINVAL: no such parameter, or set
 * twice. */
static int read_setting(struct reading *reading, const char *pair, struct failure *failure) {
    struct scenarios *scenarios = reading->scenarios;
    const char *sign = strchr(pair, '=');
    if (!sign)
        return failure_input(failure, NULL, 0, 0, "'%.200s' is not a setting; expected NAME=VALUE", pair);
    int found = parameters_find(&scenarios->options, pair, (size_t)(sign - pair), failure);
    if (found < 0)
        return found;
    size_t index = (size_t)found;
    const struct plugin_parameter *parameter = &scenarios->table[index];
    bool is_twice = scenarios->options.values[index].is_set;
    for (size_t i = 0; i < reading->sweep_count; i++)
        is_twice |= reading->sweeps[i].parameter == index;
    if (is_twice)
        return failure_input(failure, NULL, 0, 0, "the parameter '%s' is set twice", parameter->name);
    if (index < scenarios->option_count)
        return parameters_set(&scenarios->options, index, sign + 1, NULL, 0, 0, failure);
    reading->sweeps = xrealloc(reading->sweeps, (reading->sweep_count + 1) * sizeof *reading->sweeps);
    struct sweep *sweep = &reading->sweeps[reading->sweep_count++];
    *sweep = (struct sweep){.parameter = index};
    int r = read_expression(reading, sweep, sign + 1, failure);
    return r == 0 ? add_values(sweep, parameter, sign + 1, failure) : r < 0 ? r : 0;
}

/* ---- The table
 * ------------------------------------------------------------------------------------------------ */

/* Finds the parameter and unit of column C of the table. -EINVAL: there is none, or it is set elsewhere
 * too. */
static int bind_column(struct reading *reading, size_t c, struct failure *failure) {
    const char *file = csv_file(reading->csv), *name = csv_column_name(reading->csv, c);
    struct bound_column *column = &reading->columns[c];
    size_t end;
    const struct unit *unit;
    enum unit_place place = unit_read_name(name, strlen(name), &end, &unit);
    if ((column->is_name = strcmp(name, SCENARIOS_NAME) == 0))
        return 0;
    if (place == UNIT_PLACE_BRACKETS && !unit)
        return failure_input(failure, file, 1, 0,
                             "unknown unit in column '%.128s'; expected a unit such as [us], [MB/s] "
                             "or [Gbit/s]",
                             name);
    end = place == UNIT_PLACE_SUFFIX ? strlen(name) : end; /* no parameter has a unit in its name */
    if (unit && unit->dimension != UNIT_NONE && place != UNIT_PLACE_SUFFIX)
        column->unit = xstrdup(unit->code);
    int found = parameters_find(&reading->scenarios->options, name, end, failure);
    if (found < 0)
        return failure_place(failure, found, file, 1, 0);
    column->parameter = (size_t)found;
    if (column->parameter < reading->scenarios->option_count)
        return failure_input(failure, file, 1, 0,
                             "'%.128s' cannot be a column, because it has one value for all "
                             "scenarios; set it on the command line",
                             name);
    bool is_set = false, is_twice = false;
    for (size_t i = 0; i < reading->sweep_count; i++)
        is_set |= reading->sweeps[i].parameter == column->parameter;
    for (size_t i = 0; i < c; i++)
        is_twice |= !reading->columns[i].is_name && reading->columns[i].parameter == column->parameter;
    if (is_set || is_twice)
        return failure_input(failure, file, 1, 0, "the parameter '%s' has %s; remove one",
                             reading->scenarios->table[column->parameter].name,
                             is_twice ? "two columns" : "a column, and a value on the command line");
    return 0;
}

/* Sets the parameter of column C from a field; an empty field leaves it unset. -EINVAL with the place. */
static int read_field(const struct reading *reading, const struct csv_field *field, size_t c,
                      struct scenario *scenario, struct failure *failure) {
    const struct bound_column *column = &reading->columns[c];
    const struct plugin_parameter *parameter = &reading->scenarios->table[column->parameter];
    if (column->is_name) {
        free(scenario->name);
        scenario->name = xstrndup(field->bytes, field->length);
        return 0;
    }
    if (field->length == 0 && !parameter->required)
        return 0;
    if (field->length == 0 || field->length > SCENARIOS_VALUE_MAX)
        return csv_failure(reading->csv, c, failure, "%s: %s", parameter->name,
                           field->length ? "the value is too long; expected at most 4096 bytes"
                                         : "the field is empty; expected a value");
    double number;
    bool is_bare = column->unit && number_parse_double(field->bytes, field->length, &number);
    cleanup_free char *value =
        xformat("%.*s%s", (int)field->length, field->bytes, is_bare ? column->unit : "");
    return parameters_set(&scenario->parameters, column->parameter, value, csv_file(reading->csv),
                          csv_line(reading->csv), field->column, failure);
}

/* ---- The scenarios
 * ---------------------------------------------------------------------------------------------- */

/* Sets the parameter of SWEEP by its expression. 1: the parameter cannot have that value, and the scenario is
 * left out; -EINVAL: an input has no value. */
static int compute_parameter(struct scenarios *scenarios, const struct sweep *sweep,
                             struct scenario *scenario, struct failure *failure) {
    const struct plugin_parameter *table = scenarios->table, *parameter = &table[sweep->parameter];
    const struct unit *unit = unit_find(parameter->unit ? parameter->unit : "1");
    const char *text = expression_text(sweep->expression);
    cleanup_free double *numbers = xcalloc(sweep->input_count + 1, sizeof *numbers);
    for (size_t i = 0; i < sweep->input_count; i++) {
        size_t input = sweep->inputs[i];
        bool is_option = input < scenarios->option_count;
        numbers[i] = (is_option ? &scenarios->options : &scenario->parameters)->values[input].number;
        if (isnan(numbers[i]) && expression_uses(sweep->expression, i))
            return failure_input(failure, NULL, 0, 0,
                                 "%s=%s: the expression uses '%s', which has no value; set '%s', too",
                                 parameter->name, text, table[input].name, table[input].name);
    }
    double value = expression_value(sweep->expression, numbers) * (unit ? unit->scale : 1);
    cleanup_free char *number = xformat("%.17g", value);
    struct failure own = {0};
    if (parameters_set(&scenario->parameters, sweep->parameter, number, NULL, 0, 0, &own) == 0)
        return 0;
    if (scenarios->left_out++ == 0) /* the sentence begins with the name of the parameter */
        scenarios->left_out_reason =
            xformat("%s=%s%s", parameter->name, text, own.text + strlen(parameter->name));
    return 1;
}

/* Adds a scenario: the fields of a row (NULL: there is no table), and combination NUMBER of the swept values,
 * the last sweep varying fastest. 1: it is left out; negative with FAILURE. */
static int add_scenario(struct reading *reading, const struct csv_field *fields, size_t number,
                        struct failure *failure) {
    struct scenarios *scenarios = reading->scenarios;
    size_t count = scenarios->count;
    if (count == scenarios->room) {
        scenarios->room = count ? 2 * count : 1;
        scenarios->items = xrealloc(scenarios->items, scenarios->room * sizeof *scenarios->items);
    }
    struct scenario *scenario = &scenarios->items[scenarios->count++];
    *scenario =
        (struct scenario){.number = reading->scenarios_made + 1, .line = fields ? csv_line(reading->csv) : 0};
    int r = parameters_init(&scenario->parameters, scenarios->table, failure);
    for (size_t i = reading->sweep_count; r == 0 && i-- > 0;) {
        const struct sweep *sweep = &reading->sweeps[i];
        if (!sweep->expression)
            r = parameters_set(&scenario->parameters, sweep->parameter, sweep->values[number % sweep->count],
                               NULL, 0, 0, failure);
        number /= sweep->count;
    }
    for (size_t c = 0; r == 0 && fields && c < csv_column_count(reading->csv); c++)
        r = read_field(reading, &fields[c], c, scenario, failure);
    for (size_t i = 0; r == 0 && i < reading->sweep_count; i++)
        if (reading->sweeps[i].expression)
            r = compute_parameter(scenarios, &reading->sweeps[i], scenario, failure);
    for (size_t i = 0; r == 0 && i < scenarios->option_count; i++) /* for the check: they are set elsewhere */
        scenario->parameters.values[i].is_set = scenarios->options.values[i].is_set;
    r = r != 0 ? r : parameters_check(&scenario->parameters, failure);
    if (r == 1)
        scenarios_drop(scenarios, count);
    reading->scenarios_made += r == 0;
    return r < 0 && fields ? failure_place(failure, r, csv_file(reading->csv), scenario->line, 0) : r;
}

/* Reads the next row of the table; without a table there is one, without fields. 1, 0 at the end, or
 * negative. */
static int next_row(struct reading *reading, struct failure *failure) {
    int r = reading->csv ? csv_next(reading->csv, &reading->fields, failure) : reading->rows == 0;
    if (r == 0 && reading->rows == 0)
        return failure_input(failure, csv_file(reading->csv), 0, 0,
                             "the table has no scenarios; expected at least one row");
    reading->rows += r > 0;
    reading->next = r > 0 ? 0 : reading->combinations;
    return r;
}

/* Reads up to MAX more scenarios. Returns their number, 0 at the end, negative with FAILURE; -EINVAL too if
 * no combination is possible. */
int scenarios_more(struct scenarios *scenarios, size_t max, struct failure *failure) {
    struct reading *reading = scenarios->reading;
    size_t begin = scenarios->count;
    int r = 0;
    while (r >= 0 && scenarios->count - begin < max) {
        if (reading->next == reading->combinations && (r = next_row(reading, failure)) <= 0)
            break;
        r = add_scenario(reading, reading->fields, reading->next++, failure);
    }
    if (r == 0 && reading->scenarios_made == 0)
        return failure_input(failure, NULL, 0, 0, "none of the %zu combinations is possible; the first: %s",
                             scenarios->left_out, scenarios->left_out_reason);
    return r < 0 ? r : (int)(scenarios->count - begin);
}

size_t scenarios_combinations(const struct scenarios *scenarios) {
    return scenarios->reading->csv ? 0 : scenarios->reading->combinations;
}

int scenarios_add(struct scenarios *scenarios, size_t number, struct failure *failure) {
    scenarios->reading->scenarios_made = scenarios->count;
    return add_scenario(scenarios->reading, NULL, number, failure);
}

size_t scenarios_sweep_count(const struct scenarios *scenarios) {
    return scenarios->reading->sweep_count;
}

size_t scenarios_sweep(const struct scenarios *scenarios, size_t i, size_t *ret_stride) {
    const struct reading *reading = scenarios->reading;
    *ret_stride = 1;
    for (size_t k = i + 1; k < reading->sweep_count; k++) /* the last is the fastest */
        *ret_stride *= reading->sweeps[k].count;
    return reading->sweeps[i].count;
}

void scenarios_drop(struct scenarios *scenarios, size_t first) {
    for (size_t i = first; i < scenarios->count; i++) {
        parameters_clear(&scenarios->items[i].parameters);
        free(scenarios->items[i].name);
    }
    scenarios->count = first < scenarios->count ? first : scenarios->count;
}

static int open_table(struct reading *reading, const char *file, struct failure *failure) {
    int r = csv_open(file, &reading->csv, failure);
    if (r < 0)
        return r;
    reading->columns = xcalloc(csv_column_count(reading->csv) + 1, sizeof *reading->columns);
    for (size_t c = 0; r == 0 && c < csv_column_count(reading->csv); c++)
        r = bind_column(reading, c, failure);
    return r;
}

/* Joins the plugin's tables of options and parameters into one. */
static void join_tables(struct scenarios *scenarios, const struct predict_plugin *plugin) {
    size_t options = 0, parameters = 0;
    while (plugin->options && plugin->options[options].name)
        options++;
    while (plugin->parameters && plugin->parameters[parameters].name)
        parameters++;
    scenarios->table = xcalloc(options + parameters + 1, sizeof *scenarios->table);
    if (options > 0)
        memcpy(scenarios->table, plugin->options, options * sizeof *scenarios->table);
    if (parameters > 0)
        memcpy(scenarios->table + options, plugin->parameters, parameters * sizeof *scenarios->table);
    scenarios->option_count = options;
    scenarios->parameter_count = parameters;
}

/* Refuses an expression of a parameter that is itself set by a later expression. */
static int check_order(const struct reading *reading, struct failure *failure) {
    const struct plugin_parameter *table = reading->scenarios->table;
    for (size_t i = 0; i < reading->sweep_count; i++)
        for (size_t k = 0; k < reading->sweeps[i].input_count; k++)
            for (size_t later = i; later < reading->sweep_count; later++) {
                const struct sweep *sweep = &reading->sweeps[i];
                size_t input = sweep->inputs[k];
                if (reading->sweeps[later].expression && reading->sweeps[later].parameter == input &&
                    expression_uses(sweep->expression, k))
                    return failure_input(
                        failure, NULL, 0, 0,
                        "%s=%s: the expression uses '%s', which is set later; set '%s' before "
                        "'%s'",
                        table[sweep->parameter].name, expression_text(sweep->expression), table[input].name,
                        table[input].name, table[sweep->parameter].name);
            }
    return 0;
}

/* Reads the settings and opens the table; scenarios are read by scenarios_more(). */
int scenarios_open(struct scenarios *scenarios, const struct predict_plugin *plugin,
                   const char *const *settings, size_t setting_count, const char *file,
                   struct failure *failure) {
    *scenarios = (struct scenarios){.reading = xcalloc(1, sizeof *scenarios->reading)};
    struct reading *reading = scenarios->reading;
    reading->scenarios = scenarios;
    reading->combinations = 1;
    join_tables(scenarios, plugin);
    int r = parameters_init(&scenarios->options, scenarios->table, failure);
    for (size_t i = 0; r == 0 && i < setting_count; i++)
        r = read_setting(reading, settings[i], failure);
    r = r < 0 ? r : check_order(reading, failure);
    for (size_t i = 0; r == 0 && i < reading->sweep_count; i++)
        if (__builtin_mul_overflow(reading->combinations, reading->sweeps[i].count, &reading->combinations))
            r = failure_input(failure, NULL, 0, 0,
                              "the values that are set have more combinations than can be counted; "
                              "set fewer values");
    reading->next = reading->combinations;
    return r < 0 || !file ? r : open_table(reading, file, failure);
}

void scenarios_clear(struct scenarios *scenarios) {
    scenarios_drop(scenarios, 0);
    parameters_clear(&scenarios->options);
    reading_free(scenarios->reading);
    free(scenarios->items), free(scenarios->table), free(scenarios->left_out_reason);
    *scenarios = (struct scenarios){0};
}
