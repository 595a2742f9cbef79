#include "plugins/predict-hpl-replay/models.h"

struct kernel_model {
    const struct model *model;
    const struct predict_call **calls; /* by group; NULL: no model, no time */
};

struct models {
    struct kernel_model kernels[HPL_KERNELS];
    bool owns[HPL_KERNELS]; /* calls, which several kernels may share */
};

void models_close(void *state) {
    struct models *models = state;
    for (int i = 0; models && i < HPL_KERNELS; i++)
        if (models->owns[i])
            free(models->kernels[i].calls);
    free(models);
}

static int bind_kernel(const struct predict_inputs *inputs, const struct model *model, struct models *models,
                       int first, int last, struct plugin_message *message) {
    static const char *const names[] = {"m", "n", "k"};
    if (model->group_count == 0)
        return plugin_refuse(message, -EINVAL, "the model '%s' has no groups; expected one that was fitted",
                             model->file);
    const struct predict_call **calls = calloc(model->group_count, sizeof *calls);
    if (!calls)
        return -ENOMEM;
    if (models->owns[first])
        free(models->kernels[first].calls);
    models->owns[first] = true;
    for (int i = first; i <= last; i++) {
        if (i > first && models->owns[i]) /* has a model of its own */
            continue;
        models->kernels[i] = (struct kernel_model){model, calls};
    }
    for (size_t g = 0; g < model->group_count; g++) {
        int r = inputs->bind(inputs->context, model, g, names, 3, &calls[g], message);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Which kernels a model called NAME is for: one, or all forms of dlaswp. */
static int find_kernel(const char *name, int *ret_first, int *ret_last) {
    *ret_first = HPL_DLASWP00_N;
    *ret_last = HPL_DLASWP10_N;
    if (strcmp(name, "dlaswp") == 0)
        return 0;
    for (*ret_first = 0; *ret_first < HPL_KERNELS; ++*ret_first)
        if (strcmp(name, hpl_kernel_names[ *ret_last = *ret_first]) == 0)
            return 0;
    return -ENOENT;
}

static int bind_all(const struct predict_inputs *inputs, struct models *models,
                    struct plugin_message *message) {
    int r = bind_kernel(inputs, inputs->models[ROLE_DGEMM][0], models, HPL_DGEMM, HPL_DGEMM, message);
    for (size_t i = 0; r == 0 && i < inputs->model_counts[ROLE_KERNELS]; i++) {
        int first, last;
        const struct predict_source *source = &inputs->sources[ROLE_KERNELS][i];
        if (find_kernel(source->name, &first, &last) < 0)
            return plugin_refuse(
                message, -EINVAL,
                "'%.128s' is no kernel of HPL; expected dtrsm=FILE, dgemv, dger, dtrsv, dscal, daxpy, "
                "dcopy, idamax, dlacpy, dlatcpy, dlaswp, or one of dlaswp's forms such as dlaswp01T",
                source->name);
        r = bind_kernel(inputs, inputs->models[ROLE_KERNELS][i], models, first, last, message);
    }
    return r;
}

int models_open(const struct predict_inputs *inputs, void **ret_state, struct plugin_message *message) {
    struct models *models = calloc(1, sizeof *models);
    int r = models ? bind_all(inputs, models, message) : -ENOMEM;
    if (r < 0)
        models_close(models);
    else
        *ret_state = models;
    return r;
}

/* ---- Kernels */

/* A kernel of one length has it as m and n: models of vectors call it either way. */
static double kernel_time(void *context, enum hpl_kernel kernel, int rank, double m, double n, double k,
                          uint64_t number) {
    const struct machine *machine = context;
    const struct kernel_model *of = &machine->models->kernels[kernel];
    const struct predict_call *call = of->calls[machine->group_of[kernel][rank]];
    double values[] = {m, n > 0 ? n : m, k};
    double time =
        machine->has_noise ? call->draw(call, values, (uint64_t)rank, number) : call->mean(call, values);
    return of->model->response_seconds * time;
}

/* Without a model of dtrsm: half of a dgemm of that size, which has twice the operations. */
static double half_dgemm(void *context, __attribute__((unused)) enum hpl_kernel kernel, int rank, double m,
                         double n, double k, uint64_t number) {
    return kernel_time(context, HPL_DGEMM, rank, m, n, k, number) / 2;
}

/* The groups of MODEL by rank: groups with the same first label are one node, whose ranks are spread over
 * them in order. Ranks of more nodes than the model has begin again with its first. */
static void assign_groups(const struct model *model, const struct models_request *request, int *ret,
                          struct predict_output *output) {
    const struct model_group *groups = model->groups;
    size_t count = model->group_count, nodes = 0, start = 0;
    int ranks = request->hpl->p * request->hpl->q, per_node = request->ranks_per_node;
    for (int node = 0; node * per_node < ranks; node++) {
        size_t end = start + 1;
        if (request->cpus_per_node > 0)
            end = start + (size_t)request->cpus_per_node < count ? start + (size_t)request->cpus_per_node
                                                                 : count;
        else
            while (end < count && model->by_count > 1 &&
                   strcmp(groups[start].labels[0], groups[end].labels[0]) == 0)
                end++;
        if (node == 0 && model->by_count > 1 && strcmp(model->by[model->by_count - 1], "core") == 0 &&
            (size_t)per_node > end)
            predict_remark(output, true, "a node has %d processes, and %zu cores in the model '%s'", per_node,
                           end, model->file);
        for (int i = 0; i < per_node && node * per_node + i < ranks; i++)
            ret[node * per_node + i] = (int)(start + (end - start) * (size_t)i / (size_t)per_node);
        start = end < count ? end : 0;
        nodes += start == 0 && nodes == 0 ? (size_t)node + 1 : 0;
    }
    size_t needed = ((size_t)ranks + (size_t)per_node - 1) / (size_t)per_node;
    if (count > 1 && nodes > 0 && nodes < needed)
        predict_remark(output, true,
                       "the model '%s' has %zu nodes, and %zu are used: they are repeated in order",
                       model->file, nodes, needed);
}

/* ---- Network */

static double term_of(const struct model *model, const struct model_part *part, bool is_size) {
    for (size_t t = 0; t < model->term_count; t++)
        if ((model->terms[t].factor_count > 0) == is_size)
            return part->estimates[t].estimate * model->response_seconds;
    return 0;
}

/* The largest size that the ping-pongs of GROUP had; infinite where that is not known. */
static double largest_size(const struct model_group *group) {
    double ret = -INFINITY;
    for (size_t i = 0; i < group->part_count; i++)
        for (size_t j = 0; j < group->parts[i].domain_count; j++)
            if (group->parts[i].name && strcmp(group->parts[i].name, "PingPong") == 0)
                ret = fmax(ret, group->parts[i].domain[j].maximum);
    return ret > 0 ? ret : INFINITY;
}

static int read_network(const struct model *model, enum network_path path, struct network_model *ret,
                        double *ret_probe, struct plugin_message *message) {
    static const char *const cost_names[NETWORK_COSTS] = {"Send", "Isend", "Recv"};
    const struct model_group *group = predict_group(model, NULL, message);
    struct network_segment *segments = ret->segments[path];
    double latency = NAN, bandwidth = NAN;
    int count = 0;
    if (!group)
        return -EINVAL;
    for (size_t i = 0; i < group->part_count; i++) {
        const struct model_part *part = &group->parts[i];
        if (part->name && strcmp(part->name, "protocol") == 0) {
            latency = predict_part_value(part, "latency");
            bandwidth = predict_part_value(part, "bandwidth");
            double eager = predict_part_value(part, "async_small_thresh");
            double detached = predict_part_value(part, "send_is_detached_thresh"),
                   envelope = predict_part_value(part, "envelope");
            if (path == NETWORK_REMOTE) {
                ret->detached_below = detached >= 0 ? detached : 65536;
                ret->eager_below = eager >= 0 ? eager : ret->detached_below;
                ret->envelope = envelope >= 0 ? envelope : 0;
                ret->card = ret->card > 0 ? ret->card : bandwidth;
            }
        }
        if (part->name && strcmp(part->name, "Iprobe") == 0)
            *ret_probe = isnan(*ret_probe) ? term_of(model, part, false) : *ret_probe;
    }
    for (size_t i = 0; i < group->part_count; i++) {
        const struct model_part *part = &group->parts[i];
        if (!part->name || strcmp(part->name, "PingPong") != 0)
            continue;
        if (count == NETWORK_SEGMENTS_MAX)
            return plugin_refuse(message, -EINVAL,
                                 "'%.128s' has more than %d segments; fit fewer, by --set breaks=...",
                                 model->file, NETWORK_SEGMENTS_MAX);
        struct network_segment *segment = &segments[count++];
        double factor = predict_part_value(part, "bw_factor");
        *segment = (struct network_segment){.above = part->from > 0 ? ceil(part->from) - 1 : -1,
                                            .latency = latency * predict_part_value(part, "lat_factor"),
                                            .rate = bandwidth * factor,
                                            .rate_factor = fmax(factor, 1)};
        for (size_t j = 0; j < group->part_count; j++)
            for (int cost = 0; cost < NETWORK_COSTS; cost++) {
                const struct model_part *line = &group->parts[j];
                if (line->name && strcmp(line->name, cost_names[cost]) == 0 && line->from == part->from &&
                    predict_part_value(line, "charged") == 1) {
                    segment->fixed[cost] = term_of(model, line, false);
                    segment->per_byte[cost] = term_of(model, line, true);
                }
            }
        if (!(segment->latency >= 0 && segment->rate > 0))
            return plugin_refuse(
                message, -EINVAL,
                "'%.128s' has a latency of %g s and a rate of %g byte/s from %g bytes on; expected a "
                "model of 'assay fit smpi' with rules=ping-pong",
                model->file, segment->latency, segment->rate, part->from);
    }
    ret->counts[path] = count;
    return count > 0 ? 0
                     : plugin_refuse(message, -EINVAL,
                                     "'%.128s' has no part PingPong; expected a model of 'assay fit smpi'",
                                     model->file);
}

/* Messages that are larger than any that was measured. */
static void warn_of_sizes(const struct model *model, const struct hpl *hpl, struct predict_output *output) {
    double rows = hpl_local_rows(hpl, 0, 0), columns = hpl_local_columns(hpl, 0, hpl->n + 1, 0);
    double largest = 8.0 * hpl->nb * fmax(hpl->q > 1 ? rows : 0, hpl->p > 1 ? columns : 0);
    double known = largest_size(&model->groups[0]);
    if (largest > known)
        predict_remark(
            output, true,
            "messages have up to %.3g MB, and '%s' was measured up to %.3g MB: their rate may collapse "
            "beyond; measure larger ones",
            largest / 1e6, model->file, known / 1e6);
}

static int make_network(const struct predict_inputs *inputs, const struct models_request *request,
                        struct predict_output *output, struct machine *machine,
                        struct plugin_message *message) {
    struct network_model *network = &machine->network;
    double probe = request->probe, ignored = NAN;
    network->card = request->card;
    network->reverse = request->is_smpi ? 0.05 : 0;
    if (request->hpl->p * request->hpl->q == 1) {
        network->counts[NETWORK_REMOTE] = network->counts[NETWORK_LOOPBACK] = 1;
        return 0;
    }
    if (inputs->model_counts[ROLE_NETWORK] == 0)
        return plugin_refuse(
            message, -EINVAL,
            "there is no model of the network; expected network=FILE from 'assay fit smpi', since P x Q "
            "is %d",
            request->hpl->p * request->hpl->q);
    int r = read_network(inputs->models[ROLE_NETWORK][0], NETWORK_REMOTE, network, &probe, message);
    if (r == 0 && inputs->model_counts[ROLE_LOOPBACK] > 0) {
        r = read_network(inputs->models[ROLE_LOOPBACK][0], NETWORK_LOOPBACK, network, &ignored, message);
    } else if (r == 0) {
        memcpy(network->segments[NETWORK_LOOPBACK], network->segments[NETWORK_REMOTE],
               sizeof network->segments[NETWORK_REMOTE]);
        network->counts[NETWORK_LOOPBACK] = network->counts[NETWORK_REMOTE];
    }
    machine->replay.probe = probe > 0 ? probe : 0;
    const struct network_segment *last =
        &network->segments[NETWORK_REMOTE][network->counts[NETWORK_REMOTE] - 1];
    network->rate = r == 0 ? last->rate / last->rate_factor : 0;
    for (int i = 0; request->is_smpi && i < network->counts[NETWORK_REMOTE]; i++)
        network->segments[NETWORK_REMOTE][i].rate_factor = 1;
    if (r == 0)
        warn_of_sizes(inputs->models[ROLE_NETWORK][0], request->hpl, output);
    return r;
}

/* ---- Pivots */

static int read_pivots(const struct predict_source *source, int n, int *ret, struct plugin_message *message) {
    const char *at = source->bytes;
    int found = 0;
    for (int c = 0; c < n; c++)
        ret[c] = -1; /* not given yet */
    for (size_t line = 1; *at; line++) {
        double numbers[3] = {NAN, NAN, NAN};
        int count = 0;
        char *end;
        while (count < 3 && (at += strspn(at, " \t"), *at != '\n' && *at != '\r') &&
               (numbers[count] = strtod(at, &end), end != at)) {
            count++;
            at = end;
            if (*at != ',')
                break;
            at++;
        }
        int column =
            count > 1 && numbers[count - 2] >= 0 && numbers[count - 2] < n ? (int)numbers[count - 2] : -1;
        if (count == 2 || (count == 3 && numbers[0] == n)) {
            double row = numbers[count - 1];
            if (column < 0 || !(row >= column && row < n))
                return plugin_refuse(
                    message, -EINVAL,
                    "%.128s:%zu: row %g for column %g; expected a column below N = %d and a row from it "
                    "on",
                    source->file, line, row, numbers[count - 2], n);
            found += ret[column] < 0;
            ret[column] = (int)row;
        }
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    return found >= n ? 0
                      : plugin_refuse(message, -EINVAL,
                                      "%.128s has %d pivots; expected one for each of N = %d columns",
                                      source->file, found, n);
}

int machine_new(const void *state, const struct predict_inputs *inputs, const struct models_request *request,
                struct predict_output *output, struct machine **ret, struct plugin_message *message) {
    const struct hpl *hpl = request->hpl;
    const struct models *models = state;
    size_t ranks = (size_t)hpl->p * (size_t)hpl->q;
    struct machine *machine = calloc(1, sizeof *machine);
    int *numbers = calloc((HPL_KERNELS + 1) * ranks + (size_t)hpl->n, sizeof *numbers);
    double *computing = calloc(ranks, sizeof *computing);
    int r = machine && numbers && computing ? 0 : -ENOMEM;
    if (r == 0) {
        *machine = (struct machine){.models = models,
                                    .has_noise = request->has_noise,
                                    .node_of = numbers,
                                    .pivots = numbers + (HPL_KERNELS + 1) * ranks,
                                    .computing = computing,
                                    .memory = numbers};
        machine->replay = (struct replay_machine){.network = &machine->network,
                                                  .nodes = ((int)ranks + request->ranks_per_node - 1) /
                                                           request->ranks_per_node,
                                                  .node_of = numbers,
                                                  .context = machine,
                                                  .probe_grows = request->is_smpi,
                                                  .whole_microseconds = request->is_smpi};
        for (size_t i = 0; i < ranks; i++)
            numbers[i] = (int)i / request->ranks_per_node;
        r = make_network(inputs, request, output, machine, message);
    }
    for (int i = 0; r == 0 && i < HPL_KERNELS; i++) {
        const struct kernel_model *kernel = &models->kernels[i];
        if (!kernel->calls)
            continue;
        machine->replay.kernel[i] = kernel_time;
        machine->group_of[i] = numbers + (size_t)(i + 1) * ranks;
        if (i > 0 && machine->group_of[i - 1] && models->kernels[i - 1].model == kernel->model)
            machine->group_of[i] = machine->group_of[i - 1];
        else
            assign_groups(kernel->model, request, machine->group_of[i], output);
    }
    if (r == 0 && !models->kernels[HPL_DTRSM].calls)
        machine->replay.kernel[HPL_DTRSM] = half_dgemm;
    if (r == 0 && inputs->model_counts[ROLE_PIVOTS] > 0)
        r = read_pivots(&inputs->sources[ROLE_PIVOTS][0], hpl->n, machine->pivots, message);
    else if (r == 0)
        hpl_draw_pivots(hpl->n, (uint64_t)(inputs->uniform(inputs->context, "pivots", 0) * 0x1p53),
                        machine->pivots);
    if (r == 0) {
        *ret = machine;
        return 0;
    }
    free(machine);
    free(numbers);
    free(computing);
    return r;
}

void machine_free(struct machine *machine) {
    if (!machine)
        return;
    free(machine->memory);
    free(machine->computing);
    free(machine);
}
