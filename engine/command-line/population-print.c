/* How machines and days differ, for people: see part-print.h. */
#include "engine/command-line/part-print.h"

#include "engine/command-line/shown.h"

#include <math.h>
#include <string.h>

enum { CORRELATION_WIDTH = 9 };

static double deviation(const double *covariance, size_t count, size_t i) {
    double variance = covariance ? covariance[i * count + i] : NAN;
    return variance >= 0 ? sqrt(variance) : NAN;
}

static void print_number(FILE *stream, int width, int digits, double value) {
    if (isnan(value))
        fprintf(stream, " %*s", width, "-");
    else
        fprintf(stream, " %*.*g", width, digits, value);
}

static void print_correlations(FILE *stream, const struct part_heads *heads, const char *between,
                               const double *covariance) {
    size_t count = heads->term_count;
    if (!covariance || count < 2)
        return;
    fprintf(stream, "  correlations between %s\n  %-*s", between, heads->width, "");
    for (size_t j = 0; j < count; j++)
        fprintf(stream, " %*s", CORRELATION_WIDTH, shown(heads->names[j]).text);
    for (size_t i = 0; i < count; i++) {
        fprintf(stream, "\n  %-*s", heads->width, shown(heads->names[i]).text);
        for (size_t j = 0; j < count; j++) {
            int width = (int)strlen(shown(heads->names[j]).text);
            double product = deviation(covariance, count, i) * deviation(covariance, count, j);
            print_number(stream, width > CORRELATION_WIDTH ? width : CORRELATION_WIDTH, 3,
                         product > 0 ? covariance[i * count + j] / product : NAN);
        }
    }
    fputc('\n', stream);
}

static void print_value(FILE *stream, const char *before, const struct predict_part *part, const char *name,
                        const char *words, bool share) {
    double value = part ? part_value(part, name) : NAN;
    if (isfinite(value))
        fprintf(stream, "%s%s %.4g%s", before, words, share ? 100 * value : value, share ? " %" : "");
}

static void print_component(FILE *stream, const struct part_heads *heads, const struct told_part *told,
                            const struct predict_part *days) {
    const struct predict_part *part = &told->part;
    size_t count = heads->term_count;
    fprintf(stream, "  %s%s", shown(part->kind).text, part->name ? " " : "");
    fprintf(stream, "%s", part->name ? shown(part->name).text : "");
    print_value(stream, ": ", part, "weight", "weight", false);
    print_value(stream, ", ", part, "heterogeneity", "heterogeneity", true);
    fprintf(stream, "\n  %-*s %14s %14s %14s %14s  unit\n", heads->width, "term", "mean", "standard error",
            "sd of machines", "sd of days");
    for (size_t t = 0; t < count; t++) {
        fprintf(stream, "  %-*s", heads->width, shown(heads->names[t]).text);
        print_number(stream, 14, 7, part->estimates[t]);
        print_number(stream, 14, 4, told->errors[t]);
        print_number(stream, 14, 4, deviation(part->covariance, count, t));
        print_number(stream, 14, 4, days ? deviation(days->covariance, count, t) : NAN);
        fprintf(stream, "  %s\n", heads->units[t] ? shown(heads->units[t]).text : "-");
    }
    print_correlations(stream, heads, "machines", part->covariance);
}

void part_print_population(FILE *stream, const struct part_heads *heads, const struct told_part *parts,
                           size_t count) {
    const struct predict_part *days = NULL;
    for (size_t i = 0; i < count; i++)
        if (strcmp(parts[i].part.kind, "days") == 0)
            days = &parts[i].part;
    print_value(stream, "  ", &parts[0].part, "machines", "machines", false);
    print_value(stream, ", ", &parts[0].part, "slow_share", "slow share", true);
    print_value(stream, ", ", days, "days", "days a machine", false);
    print_value(stream, ", ", days, "repeated", "machines with several days", false);
    print_value(stream, ", ", days, "variability", "variability", true);
    fprintf(stream, "\n");
    for (size_t i = 0; i < count; i++)
        if (&parts[i].part != days)
            print_component(stream, heads, &parts[i], days);
    if (days)
        print_correlations(stream, heads, "days", days->covariance);
}
