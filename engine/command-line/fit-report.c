#include "engine/command-line/fit-report.h"

#include "engine/command-line/fit-print.h"
#include "engine/command-line/shown.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    DETAILED_GROUPS = 6, /* that many are printed one by one */
    WORST_GROUPS = 5,
    SKIPPED_SHOWN = 10,
};

/* What is kept of each group for the spread. */
struct spread {
    uint32_t group;
    uint64_t rows;
    double r2, sigma, cv_relative;
    size_t notes, parts;
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
    struct fit_print print; /* since the formula was heard */
    struct spread *groups;
    size_t group_count, group_capacity;
    double *estimates, *p; /* term_count for each group */
    size_t estimate_capacity, p_capacity;
    struct skipped *skipped; /* the first SKIPPED_SHOWN */
    size_t skipped_count;    /* all */
    char *note;              /* the first one heard, with how many groups have notes */
    size_t noted_groups;
    bool has_cv; /* of some group */
};

void fit_report_free(struct fit_report *report) {
    if (!report)
        return;
    for (size_t i = 0; i < report->skipped_count && i < SKIPPED_SHOWN; i++)
        free(report->skipped[i].reason);
    fit_print_clear(&report->print);
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

/* ---- Listening */

static int hear_formula(void *context, const struct fit_formula *formula, struct failure *failure) {
    struct fit_report *report = context;
    int r = fit_print_init(&report->print, report->fitting, formula, failure);
    if (r == 0 && report->stream)
        fit_print_head(report->stream, &report->print);
    return r;
}

static int keep_group(struct fit_report *report, const struct fit_group *group) {
    /* Of groups with many parts the estimates do not compare. */
    const struct fit_part *part = fit_print_parts(group) == 1 ? &group->parts[0] : NULL;
    size_t k = report->group_count, terms = report->print.term_count;
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
    report->groups[k] = (struct spread){group->code,
                                        group->rows,
                                        fit_print_value(group, "r2"),
                                        fit_print_value(group, "sigma"),
                                        fit_print_value(group, "cv_relative"),
                                        group->note_count,
                                        fit_print_parts(group)};
    report->has_cv |= !isnan(report->groups[k].cv_relative);
    for (size_t t = 0; t < terms; t++) {
        bool has = part && !part->estimates[t].dropped;
        report->estimates[k * terms + t] = has ? part->estimates[t].estimate : NAN;
        report->p[k * terms + t] = has ? part->estimates[t].p : NAN;
    }
    return 0;
}

static bool is_detailed(const struct fit_report *report) {
    return fitting_group_count(report->fitting) <= DETAILED_GROUPS;
}

static int hear_group(void *context, const struct fit_group *group, struct failure *failure) {
    struct fit_report *report = context;
    if (report->stream && is_detailed(report))
        fit_print_group(report->stream, &report->print, group);
    else if (report->stream && keep_group(report, group) < 0)
        return failure_memory(failure);
    if (group->note_count > 0 && report->noted_groups++ == 0 && !(report->note = strdup(group->notes[0])))
        return failure_memory(failure);
    report->group_count++;
    return 0;
}

static int hear_skipped(void *context, uint32_t group, uint64_t rows, const char *reason,
                        struct failure *failure) {
    (void)failure;
    struct fit_report *report = context;
    if (report->skipped_count < SKIPPED_SHOWN) {
        char *copy = xstrdup(reason);
        report->skipped[report->skipped_count] = (struct skipped){group, rows, copy};
    }
    report->skipped_count++;
    return 0;
}

int fit_report_new(const struct fitting *fitting, FILE *stream, struct fit_report **ret) {
    struct fit_report *report = xcalloc(1, sizeof *report);
    struct skipped *skipped = xcalloc(SKIPPED_SHOWN, sizeof *skipped);
    report->fitting = fitting;
    report->stream = stream;
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
    fprintf(report->stream, "  %-*s", report->print.width, name);
    fit_print_number(report->stream, 15, 7, defined ? values[0] : NAN);
    fit_print_number(report->stream, 15, 7, median);
    fit_print_number(report->stream, 15, 7, defined ? values[defined - 1] : NAN);
    if (has_p)
        fit_print_p(report->stream, largest_p);
    else
        fprintf(report->stream, "%11s", "");
    fit_print_unit(report->stream, unit);
}

/* What is spread of each group. */
static double rows_of(const struct spread *group) {
    return (double)group->rows;
}

static double parts_of(const struct spread *group) {
    return (double)group->parts;
}

static double r2_of(const struct spread *group) {
    return group->r2;
}

static double sigma_of(const struct spread *group) {
    return group->sigma;
}

static double error_of(const struct spread *group) {
    return 100 * group->cv_relative;
}

/* Nothing of what no group tells. */
static void print_quality(const struct fit_report *report, const char *name,
                          double (*of)(const struct spread *group), const char *unit, double *values) {
    bool told = false;
    for (size_t i = 0; i < report->group_count; i++) {
        values[i] = of(&report->groups[i]);
        told |= !isnan(values[i]);
    }
    if (told)
        print_spread(report, name, values, 0, false, unit);
}

static void print_spreads(const struct fit_report *report, double *values) {
    bool segments = false;
    for (size_t i = 0; i < report->group_count; i++)
        segments |= report->groups[i].parts > 1;
    fprintf(report->stream, "\n  %-*s %14s %14s %14s %10s  unit\n", report->print.width,
            segments ? "" : "term", "minimum", "median", "maximum", segments ? "" : "largest p");
    for (size_t t = 0; t < report->print.term_count && !segments; t++) {
        double largest = NAN;
        for (size_t i = 0; i < report->group_count; i++) {
            values[i] = report->estimates[i * report->print.term_count + t];
            largest = fmax(largest, report->p[i * report->print.term_count + t]);
        }
        print_spread(report, shown(report->print.names[t]).text, values, largest, true,
                     report->print.units[t]);
    }
    print_quality(report, "sigma", sigma_of, report->print.response_unit, values);
    print_quality(report, "R2", r2_of, "", values);
    print_quality(report, "cv error", error_of, "% of the mean", values);
    if (segments)
        print_quality(report, "parts", parts_of, "", values);
    print_quality(report, "rows", rows_of, "", values);
}

/* The lowest R2 first, or the greatest error on rows left out; undefined ones last. */
static int compare_r2(const void *a, const void *b) {
    const struct spread *x = a, *y = b;
    return compare_doubles(&x->r2, &y->r2);
}

static int compare_errors(const void *a, const void *b) {
    const struct spread *x = a, *y = b;
    if (isnan(x->cv_relative) || isnan(y->cv_relative))
        return isnan(x->cv_relative) - isnan(y->cv_relative);
    return compare_doubles(&y->cv_relative, &x->cv_relative);
}

static void print_worst(struct fit_report *report) {
    qsort(report->groups, report->group_count, sizeof *report->groups,
          report->has_cv ? compare_errors : compare_r2);
    fprintf(report->stream, "\nthe groups that are explained worst:\n");
    for (size_t i = 0; i < report->group_count && i < WORST_GROUPS; i++) {
        const struct spread *group = &report->groups[i];
        char name[FIT_PRINT_NAME_MAX], count[FIT_PRINT_COUNT_MAX];
        fprintf(report->stream, "  %s: ", fit_print_name(report->fitting, group->group, name));
        if (!isnan(group->r2))
            fprintf(report->stream, "R2 %.6g, ", group->r2);
        if (!isnan(group->cv_relative))
            fprintf(report->stream, "cv error %.4g %% of the mean, ", 100 * group->cv_relative);
        if (!isnan(group->sigma))
            fprintf(report->stream, "sigma %.4g%s%s, ", group->sigma, report->print.response_unit ? " " : "",
                    report->print.response_unit ? shown(report->print.response_unit).text : "");
        fprintf(report->stream, "%s\n", fit_print_rows(group->rows, count));
    }
}

static void print_skipped(const struct fit_report *report) {
    char count[FIT_PRINT_COUNT_MAX];
    fprintf(report->stream, "\n%s group%s not fitted:\n", fit_print_count(report->skipped_count, count),
            report->skipped_count == 1 ? "" : "s");
    for (size_t i = 0; i < report->skipped_count && i < SKIPPED_SHOWN; i++) {
        char name[FIT_PRINT_NAME_MAX];
        fprintf(report->stream, "  %s: %s\n", fit_print_name(report->fitting, report->skipped[i].group, name),
                shown(report->skipped[i].reason).text);
    }
    if (report->skipped_count > SKIPPED_SHOWN)
        fprintf(report->stream, "  and %zu more\n", report->skipped_count - SKIPPED_SHOWN);
}

void fit_report_spread(struct fit_report *report) {
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
}

void fit_report_end(const struct fit_report *report, const char *model_path) {
    if (!report->stream)
        return;
    if (!report->print.response_unit)
        fprintf(report->stream, "\nunits: plain CSV does not tell any\n");
    if (report->group_count == 0)
        return;
    if (model_path)
        fprintf(report->stream, "\n%s has all of it\n", shown(model_path).text);
    else
        fprintf(report->stream, "\n'-o MODEL.json' keeps all of it for prediction\n");
}
