#include "engine/command-line/fit-report.h"

#include "engine/command-line/shown.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"
#include "engine/foundation/text.h"
#include "engine/plugin/model-unit.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    DETAILED_GROUPS = 6, /* that many are printed one by one */
    WORST_GROUPS = 5,
    SKIPPED_SHOWN = 10,
    NAME_MOST = 256,
};

/* What is kept of each group for the spread. */
struct spread {
    uint32_t group;
    uint64_t rows;
    double r2, sigma;
    size_t notes;
};

struct skipped {
    uint32_t group;
    uint64_t rows;
    char *reason;
};

struct fit_report {
    const struct fitting *fitting;
    struct fitting_listener listener;
    FILE *stream;
    char **names, **units; /* of the terms: units are those of their coefficients */
    char **products;       /* units of the terms themselves */
    size_t term_count;
    int width;           /* of the longest term's name */
    char *response_unit; /* or NULL */
    struct spread *groups;
    size_t group_count, group_capacity;
    double *estimates, *p; /* term_count for each group */
    size_t estimate_capacity, p_capacity;
    struct skipped *skipped; /* the first SKIPPED_SHOWN */
    size_t skipped_count;    /* all */
    char *note;              /* the first one heard, with how many groups have notes */
    size_t noted_groups;
};

void fit_report_free(struct fit_report *report) {
    if (!report)
        return;
    for (size_t t = 0; t < report->term_count; t++) {
        free(report->names[t]);
        free(report->units[t]);
        free(report->products[t]);
    }
    for (size_t i = 0; i < report->skipped_count && i < SKIPPED_SHOWN; i++)
        free(report->skipped[i].reason);
    free(report->names);
    free(report->units);
    free(report->products);
    free(report->response_unit);
    free(report->groups);
    free(report->estimates);
    free(report->p);
    free(report->skipped);
    free(report->note);
    free(report);
}

void fit_report_cleanup(struct fit_report **report) {
    fit_report_free(*report);
}

/* ---- Pieces */

/* "node dahu-3, core 7", as it may be shown. */
static const char *group_name(const struct fit_report *report, uint32_t group, char name[static NAME_MOST]) {
    const struct fitting_options *options = fitting_options(report->fitting);
    size_t length = 0;
    snprintf(name, NAME_MOST, "all rows");
    for (size_t j = 0; j < options->by_count && length < NAME_MOST - 1; j++) {
        int written = snprintf(name + length, NAME_MOST - length, "%s%s %s", j ? ", " : "", options->by[j],
                               fitting_label(report->fitting, group, j));
        length += written < 0 ? 0 : (size_t)written;
    }
    struct shown clean = shown(name);
    snprintf(name, NAME_MOST, "%.*s", (int)(NAME_MOST - 1), clean.text);
    return name;
}

/* A whole number with commas between thousands. */
static const char *with_commas(uint64_t value, char buffer[static 32]) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, value);
    char *at = buffer;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *at++ = ',';
        *at++ = digits[i];
    }
    *at = '\0';
    return buffer;
}

/* A number in WIDTH columns, or "-" where it is not defined. */
static void print_number(FILE *stream, int width, int digits, double value) {
    if (isnan(value))
        fprintf(stream, "%*s", width, "-");
    else
        fprintf(stream, "%*.*g", width, digits, value);
}

static void print_unit(FILE *stream, const char *unit) {
    fprintf(stream, "  %s\n", unit ? shown(unit).text : "-");
}

static double value_of(const struct fit_part *part, const char *name) {
    for (size_t i = 0; i < part->value_count; i++)
        if (strcmp(part->values[i].name, name) == 0)
            return part->values[i].value;
    return NAN;
}

/* ---- Listening */

static void print_head(const struct fit_report *report) {
    const struct fitting_options *options = fitting_options(report->fitting);
    FILE *stream = report->stream;
    char count[32];
    fprintf(stream, "%s: %s =", fitting_plugin(report->fitting)->name, shown(options->response).text);
    for (size_t t = 0; t < report->term_count; t++)
        fprintf(stream, "%s%s", t ? " + " : " ", shown(report->names[t]).text);
    for (size_t j = 0; j < options->by_count; j++)
        fprintf(stream, "%s%s", j ? ", " : "; by ", shown(options->by[j]).text);
    if (options->weights)
        fprintf(stream, "; weights %s", shown(options->weights).text);
    fprintf(stream, "\n%s rows from", with_commas(fitting_rows(report->fitting), count));
    size_t inputs = table_input_count(fitting_table(report->fitting));
    for (size_t i = 0; i < inputs && i < 3; i++)
        fprintf(stream, "%s %s", i ? "," : "",
                shown(table_input(fitting_table(report->fitting), i)->path).text);
    if (inputs > 3)
        fprintf(stream, " and %zu more", inputs - 3);
    fprintf(stream, "; %s group%s\n", with_commas(fitting_group_count(report->fitting), count),
            fitting_group_count(report->fitting) == 1 ? "" : "s");
}

static int hear_formula(void *context, const struct fit_formula *formula, struct failure *failure) {
    struct fit_report *report = context;
    report->names = calloc(formula->term_count + 1, sizeof *report->names);
    report->units = calloc(formula->term_count + 1, sizeof *report->units);
    report->products = calloc(formula->term_count + 1, sizeof *report->products);
    if (!report->names || !report->units || !report->products)
        return failure_memory(failure);
    for (size_t t = 0; t < formula->term_count; t++) {
        report->term_count = t + 1;
        report->names[t] = strdup(formula->terms[t].name);
        if (!report->names[t] ||
            model_unit_of_estimate(report->fitting, formula->kind, &formula->terms[t], &report->units[t]) <
                0 ||
            model_unit_of_product(report->fitting, &formula->terms[t], &report->products[t]) < 0)
            return failure_memory(failure);
        int width = (int)strlen(shown(report->names[t]).text);
        if (width > report->width)
            report->width = width;
    }
    if (model_unit_of_power(report->fitting, 1, &report->response_unit) < 0)
        return failure_memory(failure);
    if (report->stream)
        print_head(report);
    return 0;
}

/* The unit of a factor or a term, "" for plain numbers and where it is not known. */
static const char *domain_unit(const struct fit_report *report, const char *name) {
    const char *unit = fitting_unit(report->fitting, name);
    for (size_t t = 0; !unit && t < report->term_count; t++)
        if (strcmp(report->names[t], name) == 0)
            unit = report->products[t];
    return unit && strcmp(unit, "1") != 0 ? unit : "";
}

/* A p that is too small for a double is not zero. */
static void print_p(FILE *stream, double p) {
    if (p == 0)
        fprintf(stream, "%11s", "<1e-300");
    else
        print_number(stream, 11, 3, p);
}

static void print_group(const struct fit_report *report, const struct fit_group *group) {
    const struct fit_part *part = &group->parts[0];
    FILE *stream = report->stream;
    char name[NAME_MOST], count[32];
    fprintf(stream, "\n%s: %s rows, R2 ", group_name(report, group->code, name),
            with_commas(group->rows, count));
    print_number(stream, 0, 6, value_of(part, "r2"));
    fprintf(stream, ", sigma ");
    print_number(stream, 0, 4, value_of(part, "sigma"));
    fprintf(stream, "%s%s, AIC ", report->response_unit ? " " : "",
            report->response_unit ? shown(report->response_unit).text : "");
    print_number(stream, 0, 6, value_of(part, "aic"));
    fprintf(stream, ", BIC ");
    print_number(stream, 0, 6, value_of(part, "bic"));
    fprintf(stream, "\n  %-*s %14s %14s %10s %10s  unit\n", report->width, "term", "estimate",
            "standard error", "t", "p");
    for (size_t t = 0; t < report->term_count; t++) {
        const struct fit_estimate *estimate = &part->estimates[t];
        fprintf(stream, "  %-*s", report->width, shown(report->names[t]).text);
        print_number(stream, 15, 7, estimate->estimate);
        print_number(stream, 15, 4, estimate->standard_error);
        print_number(stream, 11, 4, estimate->t);
        print_p(stream, estimate->p);
        print_unit(stream, report->units[t]);
    }
    for (size_t i = 0; i < part->domain_count; i++) {
        const char *unit = domain_unit(report, part->domain[i].name);
        fprintf(stream, "%s%s %.6g to %.6g%s%s", i ? ", " : "  valid for ", shown(part->domain[i].name).text,
                part->domain[i].minimum, part->domain[i].maximum, unit[0] ? " " : "", shown(unit).text);
    }
    fprintf(stream, "%s", part->domain_count ? "\n" : "");
    for (size_t i = 0; i < group->note_count; i++)
        fprintf(stream, "  note: %s\n", shown(group->notes[i]).text);
}

static int keep_group(struct fit_report *report, const struct fit_group *group) {
    const struct fit_part *part = &group->parts[0];
    size_t k = report->group_count, terms = report->term_count;
    int r =
        list_reserve(&report->groups, &report->group_capacity, k + 1, sizeof *report->groups, SIZE_MAX / 64);
    r = r < 0 ? r
              : list_reserve(&report->estimates, &report->estimate_capacity, (k + 1) * terms,
                             sizeof *report->estimates, SIZE_MAX / 64);
    r = r < 0 ? r
              : list_reserve(&report->p, &report->p_capacity, (k + 1) * terms, sizeof *report->p,
                             SIZE_MAX / 64);
    if (r < 0)
        return r;
    report->groups[k] = (struct spread){group->code, group->rows, value_of(part, "r2"),
                                        value_of(part, "sigma"), group->note_count};
    for (size_t t = 0; t < terms; t++) {
        report->estimates[k * terms + t] = part->estimates[t].estimate;
        report->p[k * terms + t] = part->estimates[t].p;
    }
    return 0;
}

static bool is_detailed(const struct fit_report *report) {
    return fitting_group_count(report->fitting) <= DETAILED_GROUPS;
}

static int hear_group(void *context, const struct fit_group *group, struct failure *failure) {
    struct fit_report *report = context;
    if (report->stream && is_detailed(report))
        print_group(report, group);
    else if (report->stream && keep_group(report, group) < 0)
        return failure_memory(failure);
    if (group->note_count > 0 && report->noted_groups++ == 0 && !(report->note = strdup(group->notes[0])))
        return failure_memory(failure);
    report->group_count++;
    return 0;
}

static int hear_skipped(void *context, uint32_t group, uint64_t rows, const char *reason,
                        struct failure *failure) {
    struct fit_report *report = context;
    if (report->skipped_count < SKIPPED_SHOWN) {
        char *copy = strdup(reason);
        if (!copy)
            return failure_memory(failure);
        report->skipped[report->skipped_count] = (struct skipped){group, rows, copy};
    }
    report->skipped_count++;
    return 0;
}

int fit_report_new(const struct fitting *fitting, FILE *stream, struct fit_report **ret,
                   struct failure *failure) {
    struct fit_report *report = calloc(1, sizeof *report);
    struct skipped *skipped = calloc(SKIPPED_SHOWN, sizeof *skipped);
    if (!report || !skipped) {
        free(report);
        free(skipped);
        return failure_memory(failure);
    }
    report->fitting = fitting;
    report->stream = stream;
    report->width = 4;
    report->skipped = skipped;
    report->listener = (struct fitting_listener){report, hear_formula, hear_group, hear_skipped};
    *ret = report;
    return 0;
}

const struct fitting_listener *fit_report_listener(const struct fit_report *report) {
    return &report->listener;
}

size_t fit_report_fitted(const struct fit_report *report) {
    return report->group_count;
}

const char *fit_report_first_reason(const struct fit_report *report) {
    return report->skipped_count > 0 ? report->skipped[0].reason : NULL;
}

/* ---- The spread */

/* Undefined values last. */
static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    if (isnan(x) || isnan(y))
        return isnan(x) - isnan(y);
    return (x > y) - (x < y);
}

/* Prints minimum, median and maximum of the COUNT values, which get sorted. */
static void print_spread(const struct fit_report *report, const char *name, double *values, double largest_p,
                         bool has_p, const char *unit) {
    size_t count = report->group_count, defined = 0;
    qsort(values, count, sizeof *values, compare_doubles);
    while (defined < count && !isnan(values[defined]))
        defined++;
    double median = defined == 0 ? NAN : 0.5 * (values[(defined - 1) / 2] + values[defined / 2]);
    fprintf(report->stream, "  %-*s", report->width, name);
    print_number(report->stream, 15, 7, defined ? values[0] : NAN);
    print_number(report->stream, 15, 7, median);
    print_number(report->stream, 15, 7, defined ? values[defined - 1] : NAN);
    if (has_p)
        print_p(report->stream, largest_p);
    else
        fprintf(report->stream, "%11s", "");
    print_unit(report->stream, unit);
}

static void print_spreads(const struct fit_report *report, double *values) {
    fprintf(report->stream, "\n  %-*s %14s %14s %14s %10s  unit\n", report->width, "term", "minimum",
            "median", "maximum", "largest p");
    for (size_t t = 0; t < report->term_count; t++) {
        double largest = NAN;
        for (size_t i = 0; i < report->group_count; i++) {
            values[i] = report->estimates[i * report->term_count + t];
            largest = fmax(largest, report->p[i * report->term_count + t]);
        }
        print_spread(report, shown(report->names[t]).text, values, largest, true, report->units[t]);
    }
    for (size_t i = 0; i < report->group_count; i++)
        values[i] = report->groups[i].sigma;
    print_spread(report, "sigma", values, 0, false, report->response_unit);
    for (size_t i = 0; i < report->group_count; i++)
        values[i] = report->groups[i].r2;
    print_spread(report, "R2", values, 0, false, "");
    for (size_t i = 0; i < report->group_count; i++)
        values[i] = (double)report->groups[i].rows;
    print_spread(report, "rows", values, 0, false, "");
}

/* Lowest R2 first; undefined ones are not compared. */
static int compare_quality(const void *a, const void *b) {
    const struct spread *x = a, *y = b;
    return compare_doubles(&x->r2, &y->r2);
}

static void print_worst(struct fit_report *report) {
    qsort(report->groups, report->group_count, sizeof *report->groups, compare_quality);
    fprintf(report->stream, "\nthe groups that are explained worst:\n");
    for (size_t i = 0; i < report->group_count && i < WORST_GROUPS; i++) {
        const struct spread *group = &report->groups[i];
        char name[NAME_MOST], count[32];
        fprintf(report->stream, "  %s: R2 ", group_name(report, group->group, name));
        print_number(report->stream, 0, 6, group->r2);
        fprintf(report->stream, ", sigma ");
        print_number(report->stream, 0, 4, group->sigma);
        fprintf(report->stream, "%s%s, %s rows\n", report->response_unit ? " " : "",
                report->response_unit ? shown(report->response_unit).text : "",
                with_commas(group->rows, count));
    }
}

static void print_skipped(const struct fit_report *report) {
    char count[32];
    fprintf(report->stream, "\n%s group%s not fitted:\n", with_commas(report->skipped_count, count),
            report->skipped_count == 1 ? "" : "s");
    for (size_t i = 0; i < report->skipped_count && i < SKIPPED_SHOWN; i++) {
        char name[NAME_MOST];
        fprintf(report->stream, "  %s: %s\n", group_name(report, report->skipped[i].group, name),
                shown(report->skipped[i].reason).text);
    }
    if (report->skipped_count > SKIPPED_SHOWN)
        fprintf(report->stream, "  and %zu more\n", report->skipped_count - SKIPPED_SHOWN);
}

void fit_report_end(struct fit_report *report, const char *model_path) {
    if (!report->stream)
        return;
    if (!is_detailed(report) && report->group_count > 0) {
        cleanup_free double *values = calloc(report->group_count, sizeof *values);
        if (values)
            print_spreads(report, values);
        print_worst(report);
        if (report->note)
            fprintf(report->stream, "\nnotes on %zu of %zu groups, the first: %s\n", report->noted_groups,
                    report->group_count, shown(report->note).text);
    }
    if (report->skipped_count > 0)
        print_skipped(report);
    if (!report->response_unit)
        fprintf(report->stream, "\nunits: plain CSV does not tell any\n");
    if (report->group_count == 0)
        return;
    if (model_path)
        fprintf(report->stream, "\n%s has all of it\n", shown(model_path).text);
    else
        fprintf(report->stream, "\n'-o MODEL.json' keeps all of it for prediction\n");
}
