#include "engine/plugin/kernel-header.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/plugin/kernel-text.h"
#include "engine/plugin/model-fit.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { ID_MAX = 100000000 };

/* The file being written; what all steps want. */
struct cases {
    struct text *text;
    int error; /* of the first append that failed */
    const struct model_fit *fit;
    double seconds; /* in one unit of the response */
    bool noisy, nodes;
    long *ids; /* of the groups; owned */
    struct failure *failure;
};

static void note(struct cases *cases, int r) {
    cases->error = cases->error ? cases->error : r;
}

static void append(struct cases *cases, const char *string) {
    note(cases, text_append_string(cases->text, string));
}

/* ---- Which case a group is */

/* The first number in TEXT, as get_nodeid() finds it in a host's name; -1 where there is none. */
static long first_number(const char *text) {
    const char *digits = strpbrk(text, "0123456789");
    long value = digits ? strtol(digits, NULL, 10) : -1;
    return value <= ID_MAX ? value : -1;
}

static int refuse_groups(const struct cases *cases) {
    return failure_input(
        cases->failure, cases->fit->view->name, 0, 0,
        "the groups are not by node, by node and cpu, or by cpu; expected what tells the nodes "
        "apart that HPL asks for ('assay fit --by node,cpu')");
}

static int find_id(struct cases *cases, size_t group) {
    const struct model_fit *fit = cases->fit;
    const char *const *labels = fit->groups[group].labels;
    long id = first_number(labels[0]), cpu = 0;
    if (fit->by_count == 2) {
        cpu = first_number(labels[1]);
        id = id < 0 || cpu < 0 || cpu > 1 ? -1 : 2 * id + cpu;
    }
    for (size_t g = 0; id >= 0 && g < group; g++)
        if (cases->ids[g] == id)
            return failure_input(cases->failure, fit->view->name, 0, 0,
                                 "the groups '%.128s' and '%.128s' are both number %ld to HPL",
                                 fit->view->groups[g].name, fit->view->groups[group].name, id);
    cases->ids[group] = id;
    if (id >= 0)
        return 0;
    return failure_input(
        cases->failure, fit->view->name, 0, 0,
        "the group '%.128s' has no number for HPL; expected a number in the node's name, and the "
        "cpu 0 or 1",
        fit->view->groups[group].name);
}

static int find_ids(struct cases *cases) {
    const struct model_fit *fit = cases->fit;
    bool node =
        fit->by_count > 0 && (strcasecmp(fit->by[0], "node") == 0 || strcasecmp(fit->by[0], "host") == 0);
    bool cpu = fit->by_count > 0 && strcasestr(fit->by[fit->by_count - 1], "cpu") != NULL;
    cases->nodes = node && fit->by_count == 1;
    cases->ids = xcalloc(fit->view->group_count, sizeof *cases->ids);
    if (!(cases->nodes || (cpu && fit->by_count == 1) || (node && cpu && fit->by_count == 2)))
        return refuse_groups(cases);
    int r = 0;
    for (size_t g = 0; r == 0 && g < fit->view->group_count; g++)
        r = find_id(cases, g);
    return r;
}

/* ---- Terms */

/* HPL's name of a column: M, N, K. */
static char size_of(const char *column) {
    return strlen(column) == 1 && strchr("mnkMNK", column[0]) ? (char)toupper((unsigned char)column[0])
                                                              : '\0';
}

static int check_terms(const struct cases *cases) {
    const struct predict_model *view = cases->fit->view;
    for (size_t t = 0; t < view->term_count; t++)
        for (size_t f = 0; f < view->terms[t].factor_count; f++) {
            const struct plugin_factor *factor = &view->terms[t].factors[f];
            if (size_of(factor->name) && factor->power > 0 && !factor->level && !factor->function)
                continue;
            return failure_input(cases->failure, view->name, 0, 0,
                                 "the term '%.128s' is not a product of m, n and k", view->terms[t].name);
        }
    return 0;
}

static void append_product(struct cases *cases, const struct plugin_term *term) {
    for (size_t f = 0; f < term->factor_count; f++)
        for (int i = 0; i < term->factors[f].power; i++) {
            const char part[] = {'*', size_of(term->factors[f].name), '\0'};
            append(cases, part);
        }
}

/* "mu = 1e-06 + 6.8e-11*M*N*K;" */
static void append_sum(struct cases *cases, const char *name, double constant, const double *coefficients) {
    const struct predict_model *view = cases->fit->view;
    append(cases, "        ");
    append(cases, name);
    append(cases, " = ");
    note(cases, kernel_text_number(cases->text, constant * cases->seconds));
    for (size_t t = 0; coefficients && t < view->term_count; t++) {
        append(cases, " + ");
        note(cases, kernel_text_number(cases->text, coefficients[t] * cases->seconds));
        append_product(cases, &view->terms[t]);
    }
    append(cases, ";\n");
}

/* ---- Cases */

static void append_case(struct cases *cases, const double *estimates, const struct plugin_noise *noise) {
    append_sum(cases, "mu", 0, estimates);
    if (!cases->noisy || !noise) {
        append(cases, "        return mu;\n");
        return;
    }
    append_sum(cases, "sigma", noise->constant, noise->coefficients);
    append(cases, "        sigma = sigma > 0 ? sigma : 0;\n");
    append(cases, strcmp(noise->distribution, "half-normal") == 0
                      ? "        return mu + random_halfnormal_shifted(0, sigma);\n"
                      : "        return mu + sigma * random_normal();\n");
}

static int append_mean(struct cases *cases) {
    const struct predict_model *view = cases->fit->view;
    cleanup_free double *sums = xcalloc(2 * view->term_count + 1, sizeof *sums);
    const struct plugin_noise *first = view->groups[0].parts[0].noise;
    struct plugin_noise mean = {.coefficients = sums + view->term_count,
                                .distribution = first ? first->distribution : "normal"};
    double count = (double)view->group_count;
    for (size_t g = 0; g < view->group_count; g++) {
        const struct predict_part *part = &view->groups[g].parts[0];
        for (size_t t = 0; t < view->term_count; t++) {
            sums[t] += part->estimates[t] / count;
            sums[view->term_count + t] += kernel_sigma(part, t) / count;
        }
        mean.constant += part->noise ? part->noise->constant / count : 0;
    }
    append(cases, "    default: /* the mean of all */\n");
    append_case(cases, sums, first ? &mean : NULL);
    return 0;
}

static int write_cases(struct cases *cases, const struct kernel *kernel) {
    const struct predict_model *view = cases->fit->view;
    int r = find_ids(cases);
    r = r < 0 ? r : check_terms(cases);
    r = r < 0 ? r : kernel_check_groups(view, cases->seconds, cases->noisy, cases->failure);
    if (r < 0)
        return r;
    append(cases,
           "/* The body of dgemm_time(M, N, K) of HPL on SMPI, in its src/blas/dgemm_model.c: seconds.\n * ");
    note(cases, kernel_text_comment(cases->text, kernel->origin));
    append(cases, " */\ndouble mu, sigma;\n(void)sigma;\nswitch (get_");
    append(cases, cases->nodes ? "nodeid()) {\n" : "cpuid()) {\n");
    for (size_t g = 0; g < view->group_count; g++) {
        char line[48];
        snprintf(line, sizeof line, "    case %ld:\n", cases->ids[g]);
        append(cases, line);
        append_case(cases, view->groups[g].parts[0].estimates, view->groups[g].parts[0].noise);
    }
    r = append_mean(cases);
    append(cases, "}\n");
    return r;
}

int kernel_switch_write(const struct kernel *kernel, bool noisy, struct text *ret, struct failure *failure) {
    cleanup(model_fit_cleanup) struct model_fit *fit = NULL;
    struct cases cases = {.text = ret, .noisy = noisy, .failure = failure};
    const struct predict_model *view = model_view(kernel->model);
    if (strcmp(view->kind, "linear") != 0)
        return failure_input(
            failure, view->name, 0, 0,
            "a model of kind '%.64s' is none of dgemm; expected linear, with one fit for each "
            "node%s",
            view->kind,
            strcmp(view->kind, "population") == 0
                ? " ('assay generate cluster --model' draws such a one from it)"
                : "");
    int r = model_fit_read(kernel->model, &fit, failure);
    r = r < 0 ? r : model_time(kernel->model, &cases.seconds, failure);
    cases.fit = fit;
    r = r < 0 ? r : write_cases(&cases, kernel);
    free(cases.ids);
    if (r == 0 && cases.error == -EFBIG)
        return failure_set(failure, -EFBIG, "the file is larger than %zu bytes", ret->limit);
    return r == 0 && cases.error ? failure_memory(failure) : r;
}
