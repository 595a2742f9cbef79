#include "plugins/export-simgrid/speeds.h"

#include <strings.h>

void speeds_clear(struct speeds *speeds) {
    free(speeds->hosts);
    *speeds = (struct speeds){.hosts = NULL};
}

static int degree_of(const struct model_term *term) {
    int degree = 0;
    for (size_t f = 0; f < term->factor_count; f++)
        degree += term->factors[f].level || term->factors[f].function ? 0 : term->factors[f].power;
    return degree;
}

static int find_term(const struct model *model, size_t *ret, struct plugin_message *message) {
    size_t as_high = 0;
    *ret = 0;
    for (size_t t = 0; t < model->term_count; t++)
        if (degree_of(&model->terms[t]) > degree_of(&model->terms[*ret]))
            *ret = t;
    for (size_t t = 0; t < model->term_count; t++)
        as_high += degree_of(&model->terms[t]) == degree_of(&model->terms[*ret]);
    if (as_high == 1 && degree_of(&model->terms[*ret]) >= 1)
        return 0;
    return plugin_refuse(message, -EINVAL,
                         "no term of %.128s gives the speed; expected one of a higher degree than all "
                         "others, such as m*n*k",
                         model->file);
}

static int find_column(const struct model *model, size_t *ret, struct plugin_message *message) {
    *ret = 0;
    for (size_t j = 0; j < model->by_count; j++)
        if (strcasecmp(model->by[j], "node") == 0 || strcasecmp(model->by[j], "host") == 0) {
            *ret = j;
            return 0;
        }
    if (model->by_count == 1)
        return 0;
    return plugin_refuse(
        message, -EINVAL, "%.128s has %s; expected one for each host ('assay fit --by node')", model->file,
        model->by_count ? "fits for groups, of which no column is called node or host" : "one fit for all");
}

static struct speeds_host *find_host(struct speeds *speeds, const char *name) {
    for (size_t i = speeds->count; i-- > 0;)
        if (strcmp(speeds->hosts[i].name, name) == 0)
            return &speeds->hosts[i];
    speeds->hosts[speeds->count] = (struct speeds_host){.name = name};
    return &speeds->hosts[speeds->count++];
}

int speeds_read(const struct model *model, double flop, struct speeds *ret, struct plugin_message *message) {
    size_t term = 0, by = 0;
    int r = find_term(model, &term, message);
    r = r < 0 ? r : find_column(model, &by, message);
    if (r < 0)
        return r;
    ret->hosts = calloc(model->group_count, sizeof *ret->hosts);
    if (!ret->hosts)
        return plugin_refuse(message, -ENOMEM, "out of memory");
    for (size_t g = 0; g < model->group_count; g++) {
        const struct model_group *group = &model->groups[g];
        double seconds = group->parts[0].estimates[term].estimate * model->response_seconds;
        if (!(seconds > 0) || !isfinite(flop / seconds))
            return plugin_refuse(message, -EINVAL,
                                 "the group '%.128s' of %.128s takes %g s for a unit of %.128s; expected "
                                 "more than 0",
                                 group->name, model->file, seconds, model->terms[term].name);
        struct speeds_host *host = find_host(ret, group->labels[by]);
        host->seconds += seconds;
        host->groups++;
    }
    for (size_t i = 0; i < ret->count; i++) {
        struct speeds_host *host = &ret->hosts[i];
        host->speed = flop / (host->seconds / (double)host->groups);
        ret->mean += host->speed / (double)ret->count;
    }
    return 0;
}
