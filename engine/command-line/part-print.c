#include "engine/command-line/part-print.h"

#include "engine/command-line/shown.h"

#include <math.h>
#include <string.h>

enum {
    ROWS_SHOWN = 40,
    COLUMNS_MAX = 32,
    HEAD_SIZE = 48,
    NUMBER_WIDTH = 12,
    VALUE_NAME_SIZE = 256,
};

static const char *const error_suffixes[] = {"_standard_error", "_error"};

double part_value(const struct predict_part *part, const char *name) {
    for (size_t i = 0; i < part->value_count; i++)
        if (strcmp(part->values[i].name, name) == 0)
            return part->values[i].value;
    return NAN;
}

static bool has_value(const struct predict_part *part, const char *name) {
    for (size_t i = 0; i < part->value_count; i++)
        if (strcmp(part->values[i].name, name) == 0)
            return true;
    return false;
}

/* The name of the value that is the error of NAME, in ERROR. */
static bool find_error(const struct predict_part *part, const char *name,
                       char error[static VALUE_NAME_SIZE]) {
    for (size_t i = 0; i < sizeof error_suffixes / sizeof *error_suffixes; i++)
        if (snprintf(error, VALUE_NAME_SIZE, "%s%s", name, error_suffixes[i]) < VALUE_NAME_SIZE &&
            has_value(part, error))
            return true;
    return false;
}

/* Whether NAME is the error of another value. */
static bool is_error(const struct predict_part *part, const char *name) {
    for (size_t i = 0; i < sizeof error_suffixes / sizeof *error_suffixes; i++) {
        char whose[VALUE_NAME_SIZE];
        size_t length = strlen(name), suffix = strlen(error_suffixes[i]);
        if (length <= suffix || length >= sizeof whose ||
            strcmp(name + length - suffix, error_suffixes[i]) != 0)
            continue;
        snprintf(whose, sizeof whose, "%.*s", (int)(length - suffix), name);
        if (has_value(part, whose))
            return true;
    }
    return false;
}

double part_bound(const struct part_heads *heads, const struct predict_part *part, bool end) {
    double bound = end ? part->to : part->from;
    for (size_t i = 0; !isfinite(bound) && heads->over && i < part->domain_count; i++)
        if (strcmp(part->domain[i].name, heads->over) == 0)
            bound = end ? part->domain[i].maximum : part->domain[i].minimum;
    return isfinite(bound) ? bound : NAN;
}

/* ---- Units */

/* "" for plain numbers and where it is not known. */
static const char *plain(const char *unit) {
    return unit && strcmp(unit, "1") != 0 ? unit : "";
}

/* As the READMEs of the plugins fix them. */
static const struct {
    const char *plugin, *value, *unit;
} fixed_units[] = {
    {"fit-transfer", "bandwidth", "By/s"},
    {"fit-transfer", "latency", "s"},
    {"fit-transfer", "half_size", "By"},
    {"fit-roofline", "peak_flops", "flop/s"},
    {"fit-roofline", "peak_bandwidth", "By/s"},
    {"fit-roofline", "ridge_intensity", "flop/By"},
    {"fit-roofline", "overhead", "s"},
    {"fit-smpi", "latency", "s"},
    {"fit-smpi", "bandwidth", "By/s"},
    {"fit-smpi", "async_small_thresh", "By"},
    {"fit-smpi", "send_is_detached_thresh", "By"},
};

static const char *value_unit(const struct part_heads *heads, const struct predict_part *part,
                              const char *name) {
    for (size_t i = 0; heads->plugin && i < sizeof fixed_units / sizeof *fixed_units; i++)
        if (strcmp(heads->plugin, fixed_units[i].plugin) == 0 && strcmp(name, fixed_units[i].value) == 0)
            return fixed_units[i].unit;
    if (strcmp(name, "break_low") == 0 || strcmp(name, "break_high") == 0)
        return plain(heads->over_unit);
    /* Where sigma is in proportion to the mean it is a share. */
    bool share = part->noise && strcmp(part->noise->kind, "N-2") == 0;
    return strcmp(name, "sigma") == 0 && !share ? plain(heads->response_unit) : "";
}

/* ---- A table */

enum what { WHAT_FROM, WHAT_TO, WHAT_ESTIMATE, WHAT_ERROR, WHAT_VALUE, WHAT_VALUE_ERROR };

struct column {
    enum what what;
    size_t term;
    const char *name; /* of the value */
    char head[HEAD_SIZE], unit[HEAD_SIZE];
    int width;
};

struct table {
    const struct part_heads *heads;
    const struct told_part *parts;
    size_t count;
    struct column columns[COLUMNS_MAX];
    size_t column_count;
};

/* NaN where the part has none. */
static double cell(const struct table *table, const struct column *column, size_t row) {
    const struct told_part *told = &table->parts[row];
    const struct predict_part *part = &told->part;
    bool dropped = part->dropped && part->dropped[column->term];
    char error[VALUE_NAME_SIZE];
    switch (column->what) {
    case WHAT_FROM:
    case WHAT_TO:
        return part_bound(table->heads, part, column->what == WHAT_TO);
    case WHAT_ESTIMATE:
        return dropped ? NAN : part->estimates[column->term];
    case WHAT_ERROR:
        return dropped ? NAN : told->errors[column->term];
    case WHAT_VALUE:
        return part_value(part, column->name);
    case WHAT_VALUE_ERROR:
        return find_error(part, column->name, error) ? part_value(part, error) : NAN;
    }
    return NAN;
}

/* Left out where no part has it. */
static void add_column(struct table *table, struct column told_by, const char *head, const char *unit) {
    if (table->column_count == COLUMNS_MAX)
        return;
    struct column *column = &table->columns[table->column_count];
    *column = told_by;
    bool told = false;
    for (size_t i = 0; !told && i < table->count; i++)
        told = isfinite(cell(table, column, i));
    if (!told)
        return;
    snprintf(column->head, HEAD_SIZE, "%.*s", HEAD_SIZE - 1, shown(head).text);
    snprintf(column->unit, HEAD_SIZE, "%.*s", HEAD_SIZE - 1, shown(unit).text);
    size_t length = strlen(column->head) > strlen(column->unit) ? strlen(column->head) : strlen(column->unit);
    column->width = length > NUMBER_WIDTH ? (int)length : NUMBER_WIDTH;
    table->column_count++;
}

/* Criteria that compare whole models, and how a number came about. */
static bool is_aside(const struct predict_part *part, const char *name) {
    static const char *const aside[] = {"rss",     "aic",         "bic",          "degrees_of_freedom",
                                        "folds",   "starts",      "floored",      "rows_left_out",
                                        "cv_rmse", "cv_relative", "cv_log_score", "weight"};
    for (size_t i = 0; i < sizeof aside / sizeof *aside; i++)
        if (strcmp(name, aside[i]) == 0)
            return true;
    return strcmp(name, "log_likelihood") == 0 && !has_value(part, "components");
}

/* Whether the first of several parts tells it of all of them. */
static bool is_of_all(const struct table *table, const char *name) {
    if (strcmp(name, "sigma") == 0) /* the others do not tell theirs */
        return false;
    for (size_t i = 1; i < table->count; i++)
        if (has_value(&table->parts[i].part, name))
            return false;
    return table->count > 1 && has_value(&table->parts[0].part, name);
}

static bool is_told(const struct table *table, size_t term) {
    for (size_t i = 0; i < table->count; i++)
        if (!table->parts[i].part.dropped || !table->parts[i].part.dropped[term])
            return true;
    return false;
}

static const char *term_head(const struct table *table, size_t term) {
    const struct part_heads *heads = table->heads;
    const char *name = heads->names[term];
    size_t told = 0;
    for (size_t t = 0; t < heads->term_count; t++)
        told += is_told(table, t);
    if (strcmp(name, "1") == 0)
        return told > 1 ? "intercept" : "mean";
    return heads->term_count == 2 && heads->over && strcmp(name, heads->over) == 0 ? "slope" : name;
}

static void add_value(struct table *table, const struct predict_part *part, const char *name) {
    char error[VALUE_NAME_SIZE];
    if (is_aside(part, name) || is_error(part, name) || is_of_all(table, name))
        return;
    add_column(table, (struct column){.what = WHAT_VALUE, .name = name}, name,
               value_unit(table->heads, part, name));
    if (find_error(part, name, error))
        add_column(table, (struct column){.what = WHAT_VALUE_ERROR, .name = name}, "+-", "");
}

/* The first segment has no break before it: what only the others tell is the last part's too. */
static void add_values(struct table *table) {
    const struct predict_part *first = &table->parts[0].part, *last = &table->parts[table->count - 1].part;
    for (size_t i = 0; i < first->value_count; i++)
        add_value(table, first, first->values[i].name);
    for (size_t i = 0; i < last->value_count; i++)
        if (!has_value(first, last->values[i].name))
            add_value(table, last, last->values[i].name);
}

/* A part that tells values with their errors is told by these: SMPI's factors rather than what they are of.
 */
static bool has_errors_of_values(const struct predict_part *part) {
    for (size_t i = 0; i < part->value_count; i++)
        if (is_error(part, part->values[i].name))
            return true;
    return false;
}

static void add_columns(struct table *table) {
    const struct part_heads *heads = table->heads;
    if (heads->over) {
        add_column(table, (struct column){.what = WHAT_FROM}, "from", plain(heads->over_unit));
        add_column(table, (struct column){.what = WHAT_TO}, "to", plain(heads->over_unit));
    }
    for (size_t t = 0; t < heads->term_count && !has_errors_of_values(&table->parts[0].part); t++) {
        add_column(table, (struct column){.what = WHAT_ESTIMATE, .term = t}, term_head(table, t),
                   plain(heads->units[t]));
        add_column(table, (struct column){.what = WHAT_ERROR, .term = t}, "+-", "");
    }
    add_values(table);
}

static bool has_names(const struct table *table) {
    return table->parts[0].part.name != NULL;
}

static bool has_errors(const struct table *table) {
    for (size_t c = 0; c < table->column_count; c++)
        if (table->columns[c].what == WHAT_ERROR || table->columns[c].what == WHAT_VALUE_ERROR)
            return true;
    return false;
}

static void print_title(FILE *stream, const struct table *table) {
    const struct predict_part *first = &table->parts[0].part;
    const struct part_heads *heads = table->heads;
    bool bounded = table->column_count > 0 && table->columns[0].what == WHAT_FROM;
    if (strcmp(first->kind, "whole") == 0)
        fprintf(stream, "  at any %s", heads->over ? shown(heads->over).text : "place");
    else
        fprintf(stream, "  %s%s", shown(first->kind).text, table->count == 1 ? "" : "s");
    if (bounded)
        fprintf(stream, " of %s", shown(heads->over).text);
    fprintf(stream, "%s\n%s", has_errors(table) ? "; +- is the standard error" : "",
            has_names(table) ? "  name      " : "  ");
    bool units = false;
    for (size_t c = 0; c < table->column_count; c++) {
        fprintf(stream, " %*s", table->columns[c].width, table->columns[c].head);
        units |= table->columns[c].unit[0] != '\0';
    }
    fprintf(stream, "\n%s", !units ? "" : has_names(table) ? "            " : "  ");
    for (size_t c = 0; units && c < table->column_count; c++)
        fprintf(stream, " %*s", table->columns[c].width, table->columns[c].unit);
    fprintf(stream, "%s", units ? "\n" : "");
}

static void print_cell(FILE *stream, const struct table *table, const struct column *column, size_t row) {
    double value = cell(table, column, row);
    bool error = column->what == WHAT_ERROR || column->what == WHAT_VALUE_ERROR;
    if (!isfinite(value))
        fprintf(stream, " %*s", column->width, "-");
    else if (strcmp(column->head, "charged") == 0)
        fprintf(stream, " %*s", column->width, value != 0 ? "yes" : "no");
    else
        fprintf(stream, " %*.*g", column->width,
                error                                                  ? 3
                : column->what == WHAT_FROM || column->what == WHAT_TO ? 9
                                                                       : 6,
                value);
}

static void print_of_all(FILE *stream, const struct table *table) {
    const struct predict_part *first = &table->parts[0].part;
    bool any = false;
    for (size_t i = 0; i < first->value_count; i++) {
        if (!is_of_all(table, first->values[i].name) || !isfinite(first->values[i].value))
            continue;
        fprintf(stream, "%s%s %.8g", any ? ", " : "  ", shown(first->values[i].name).text,
                first->values[i].value);
        any = true;
    }
    fprintf(stream, "%s", any ? "\n" : "");
}

/* A part without estimates: a line a value. */
static void print_settings(FILE *stream, const struct part_heads *heads, const struct predict_part *part) {
    fprintf(stream, "  %s\n", shown(part->name ? part->name : part->kind).text);
    for (size_t i = 0; i < part->value_count; i++) {
        const char *unit = value_unit(heads, part, part->values[i].name);
        if (isfinite(part->values[i].value))
            fprintf(stream, "    %-24s %.9g%s%s\n", shown(part->values[i].name).text, part->values[i].value,
                    unit[0] ? " " : "", shown(unit).text);
    }
}

static bool has_estimates(const struct part_heads *heads, const struct predict_part *part) {
    for (size_t t = 0; t < heads->term_count; t++)
        if (!part->dropped || !part->dropped[t])
            return true;
    return false;
}

/* ---- Noise */

static void print_components(FILE *stream, const struct plugin_noise *noise) {
    for (size_t i = 0; i < noise->component_count; i++)
        fprintf(stream, "%s%.3g %% at %+.4g with sigma %.4g", i ? ", " : "",
                100 * noise->components[i].weight, noise->components[i].mean, noise->components[i].sigma);
}

static void print_sigma(FILE *stream, const struct part_heads *heads, const struct plugin_noise *noise) {
    fprintf(stream, "sigma = %.4g", noise->constant);
    for (size_t t = 0; noise->coefficients && t < heads->term_count; t++)
        if (noise->coefficients[t] != 0)
            fprintf(stream, " %c %.4g %s", noise->coefficients[t] < 0 ? '-' : '+',
                    fabs(noise->coefficients[t]), shown(heads->names[t]).text);
}

static void print_noise_head(FILE *stream, const struct plugin_noise *noise) {
    fprintf(stream, "  noise %s, %s", shown(noise->kind).text,
            noise->distribution ? shown(noise->distribution).text : "normal");
    if (noise->method)
        fprintf(stream, ", by %s", shown(noise->method).text);
}

/* "  noise mixture, normal, from 0 to 128 By: 60 % at +1e-06 with sigma 2e-07, ..." */
static void print_noise(FILE *stream, const struct part_heads *heads, const struct predict_part *part) {
    print_noise_head(stream, part->noise);
    if (heads->over) {
        const char *unit = plain(heads->over_unit);
        fprintf(stream, ", from %.9g to %.9g%s%s", part_bound(heads, part, false),
                part_bound(heads, part, true), unit[0] ? " " : "", shown(unit).text);
    }
    fprintf(stream, ": ");
    if (part->noise->components)
        print_components(stream, part->noise);
    else
        print_sigma(stream, heads, part->noise);
    const char *unit = plain(heads->response_unit);
    fprintf(stream, "%s%s\n", unit[0] ? " " : "", shown(unit).text);
}

/* Whether the sigma of the table says all of it: it is that of every row, or, of segments that were fitted to
 * relative errors, its share of the mean. */
static bool is_told_by_sigma(const struct part_heads *heads, const struct predict_part *part) {
    bool share = heads->plugin && strcmp(heads->plugin, "fit-piecewise") == 0;
    return has_value(part, "sigma") && (share || strcmp(part->noise->kind, "N-1") == 0);
}

/* Once for all parts where each tells its own sigma. */
static void print_noises(FILE *stream, const struct table *table) {
    bool told = false;
    for (size_t i = 0; i < table->count && i < ROWS_SHOWN; i++) {
        const struct predict_part *part = &table->parts[i].part;
        if (part->noise && !is_told_by_sigma(table->heads, part)) {
            print_noise(stream, table->heads, part);
        } else if (part->noise && !told) {
            print_noise_head(stream, part->noise);
            fprintf(stream, ": sigma%s as above\n",
                    strcmp(part->noise->kind, "N-1") == 0 ? "" : ", a share of the mean,");
            told = true;
        }
    }
}

/* ---- Tables */

static bool is_alike(const struct predict_part *a, const struct predict_part *b) {
    return strcmp(a->kind, b->kind) == 0 && !a->name == !b->name &&
           has_errors_of_values(a) == has_errors_of_values(b);
}

static void print_table(FILE *stream, struct table *table) {
    add_columns(table);
    print_of_all(stream, table);
    print_title(stream, table);
    for (size_t i = 0; i < table->count && i < ROWS_SHOWN; i++) {
        fprintf(stream, "  ");
        if (has_names(table))
            fprintf(stream, "%-10s", shown(table->parts[i].part.name).text);
        for (size_t c = 0; c < table->column_count; c++)
            print_cell(stream, table, &table->columns[c], i);
        fputc('\n', stream);
    }
    if (table->count > ROWS_SHOWN)
        fprintf(stream, "  and %zu more\n", table->count - ROWS_SHOWN);
    print_noises(stream, table);
}

void part_print_tables(FILE *stream, const struct part_heads *heads, const struct told_part *parts,
                       size_t count) {
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && is_alike(&parts[i].part, &parts[next].part); next++)
            ;
        struct table table = {.heads = heads, .parts = parts + i, .count = next - i};
        if (next - i > 1 || has_estimates(heads, &parts[i].part))
            print_table(stream, &table);
        else
            print_settings(stream, heads, &parts[i].part);
    }
}

/* ---- Values with standard errors */

bool part_is_own(const struct predict_part *part, size_t i) {
    char error[VALUE_NAME_SIZE];
    return find_error(part, part->values[i].name, error) || is_error(part, part->values[i].name);
}

/* What the plugins take columns to be in where the table does not say. */
static const char *taken_units(const struct part_heads *heads) {
    return strcmp(heads->plugin, "fit-roofline") == 0 ? "flop, By and s, or flop/s" : "By and s, or By/s";
}

void part_print_own(FILE *stream, const struct part_heads *heads, const struct predict_part *part) {
    bool first = true, taken = false;
    for (size_t i = 0; i < part->value_count; i++) {
        const char *name = part->values[i].name;
        char error[VALUE_NAME_SIZE], number[32] = "-";
        if (is_error(part, name) || !find_error(part, name, error) || !isfinite(part->values[i].value))
            continue;
        if (first)
            fprintf(stream, "  %-16s %14s %14s  unit\n", "from these", "value", "standard error");
        first = false;
        if (isfinite(part_value(part, error)))
            snprintf(number, sizeof number, "%.3g", part_value(part, error));
        const char *unit = value_unit(heads, part, name);
        bool is_taken = unit[0] && heads->plugin && !heads->response_unit;
        taken |= is_taken;
        fprintf(stream, "  %-16s %14.7g %14s  %s%s\n", shown(name).text, part->values[i].value, number,
                unit[0] ? shown(unit).text : "-", is_taken ? " (taken)" : "");
    }
    if (taken)
        fprintf(stream, "  taken: columns without units are in %s\n", taken_units(heads));
}
