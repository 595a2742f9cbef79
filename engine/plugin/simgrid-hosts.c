#include "engine/plugin/simgrid-hosts.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text-set.h"
#include "engine/foundation/text.h"
#include "engine/plugin/model-fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void simgrid_hosts_clear(struct simgrid_hosts *hosts) {
    free(hosts->hosts);
    *hosts = (struct simgrid_hosts){0};
}

static int degree_of(const struct plugin_term *term) {
    int degree = 0;
    for (size_t f = 0; f < term->factor_count; f++)
        degree += term->factors[f].level || term->factors[f].function ? 0 : term->factors[f].power;
    return degree;
}

/* The term of the highest degree, when there is one. */
static int find_term(const struct predict_model *view, size_t *ret, struct failure *failure) {
    size_t best = 0, as_high = 0;
    for (size_t t = 0; t < view->term_count; t++)
        if (degree_of(&view->terms[t]) > degree_of(&view->terms[best]))
            best = t;
    for (size_t t = 0; t < view->term_count; t++)
        as_high += degree_of(&view->terms[t]) == degree_of(&view->terms[best]);
    if (degree_of(&view->terms[best]) < 1 || as_high > 1)
        return failure_input(failure, view->name, 0, 0,
                             "no term tells the speed: expected one of a higher degree than all others, "
                             "such as m*n*k");
    *ret = best;
    return 0;
}

static int find_column(const struct model_fit *fit, const char *name, size_t *ret, struct failure *failure) {
    if (fit->by_count == 0)
        return failure_input(failure, fit->view->name, 0, 0,
                             "the model has one fit for all; expected one for each host ('assay fit --by')");
    *ret = 0;
    for (size_t j = fit->by_count; j-- > 0;) {
        bool usual = strcasecmp(fit->by[j], "node") == 0 || strcasecmp(fit->by[j], "host") == 0;
        if (name ? strcmp(fit->by[j], name) == 0 : usual) {
            *ret = j;
            return 0;
        }
    }
    if (!name)
        return 0;
    const char *nearest = text_nearest(name, fit->by, fit->by_count);
    return failure_input(failure, fit->view->name, 0, 0, "no column '%.128s' forms groups; %s '%.128s'%s",
                         name, nearest ? "did you mean" : "the first that does is",
                         nearest ? nearest : fit->by[0], nearest ? "?" : "");
}

static struct simgrid_host *find_host(struct simgrid_hosts *hosts, struct text_set *names, const char *name) {
    uint32_t code = text_set_add(names, name, strlen(name));
    if (code == hosts->count)
        hosts->hosts[hosts->count++] = (struct simgrid_host){.name = name};
    return &hosts->hosts[code];
}

static int add_groups(const struct model_fit *fit, size_t column, size_t term, double scale,
                      struct simgrid_hosts *ret, struct failure *failure) {
    cleanup(text_set_clear) struct text_set names = {0};
    for (size_t g = 0; g < fit->view->group_count; g++) {
        const struct predict_group *group = &fit->view->groups[g];
        double seconds = group->parts[0].estimates[term] * scale;
        if (!(seconds > 0) || !isfinite(seconds))
            return failure_input(failure, fit->view->name, 0, 0,
                                 "the group '%.128s' takes %g s for a unit of %.64s; expected more than 0",
                                 group->name, seconds, fit->view->terms[term].name);
        struct simgrid_host *host = find_host(ret, &names, fit->groups[g].labels[column]);
        host->seconds += seconds;
        host->groups++;
    }
    return 0;
}

int simgrid_hosts_read(const struct model *model, const char *column, double flop, struct simgrid_hosts *ret,
                       struct failure *failure) {
    const struct predict_model *view = model_view(model);
    cleanup(model_fit_cleanup) struct model_fit *fit = NULL;
    size_t term = 0, by = 0;
    double seconds = 1;
    if (strcmp(view->kind, "population") == 0)
        return failure_input(failure, view->name, 0, 0,
                             "a population tells no hosts by name; 'assay generate cluster --model' draws a "
                             "model of some from it");
    int r = model_time(model, &seconds, failure);
    r = r < 0 ? r : model_fit_read(model, &fit, failure);
    r = r < 0 ? r : find_term(view, &term, failure);
    r = r < 0 ? r : find_column(fit, column, &by, failure);
    if (r < 0)
        return r;
    struct simgrid_hosts hosts = {.term = view->terms[term].name};
    hosts.hosts = xcalloc(view->group_count, sizeof *hosts.hosts);
    r = add_groups(fit, by, term, seconds, &hosts, failure);
    if (r < 0) {
        simgrid_hosts_clear(&hosts);
        return r;
    }
    for (size_t i = 0; i < hosts.count; i++)
        hosts.hosts[i].speed = flop / (hosts.hosts[i].seconds / (double)hosts.hosts[i].groups);
    *ret = hosts;
    return 0;
}
