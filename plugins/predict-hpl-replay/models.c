#include "plugins/predict-hpl-replay/models.h"

/* What a kernel takes: one model, or no time. Kernels of one model that is by kernel have a part of its
 * groups each. */
struct kernel_model {
    const struct model *model;
    struct kernel_group {
        const struct model_group *group;
        const struct predict_call *call;
    } * groups; /* of the model, in its order */
    size_t count;
    bool is_by_kernel;
    bool is_named; /* the model is for this kernel alone */
};

struct models {
    struct kernel_model kernels[MODELS_KERNELS];
};

void models_close(void *state) {
    struct models *models = state;
    for (int i = 0; models && i < MODELS_KERNELS; i++)
        free(models->kernels[i].groups);
    free(models);
}

static bool is_by_kernel(const struct model *model) {
    return model->by_count > 0 && strcmp(model->by[model->by_count - 1], "kernel") == 0;
}

/* Binds the groups of MODEL whose kernel is LABEL; NULL: all of them. */
static int bind_kernel(const struct predict_inputs *inputs, const struct model *model, const char *label,
                       struct kernel_model *ret, struct plugin_message *message) {
    static const char *const names[] = {"m", "n", "k", "operations"};
    free(ret->groups);
    *ret = (struct kernel_model){.model = model,
                                 .is_by_kernel = label != NULL,
                                 .groups = calloc(model->group_count + 1, sizeof *ret->groups)};
    if (!ret->groups)
        return -ENOMEM;
    for (size_t g = 0; g < model->group_count; g++) {
        if (label && strcmp(model->groups[g].labels[model->by_count - 1], label) != 0)
            continue;
        struct kernel_group *group = &ret->groups[ret->count++];
        group->group = &model->groups[g];
        int r = inputs->bind(inputs->context, model, g, names, 4, &group->call, message);
        if (r < 0)
            return r;
    }
    return ret->count > 0
               ? 0
               : plugin_refuse(message, -EINVAL,
                               "the model '%.128s' has no groups; expected one that was fitted", model->file);
}

/* Whether a model called NAME is for panels alone; NAME is then what comes after. */
static bool is_for_panels(const char **name) {
    static const char prefix[] = "panel-";
    bool ret = strncmp(*name, prefix, sizeof prefix - 1) == 0;
    *name += ret ? sizeof prefix - 1 : 0;
    return ret;
}

/* Which kernels a model called NAME is for: one, or all forms of dlaswp. */
static int find_kernel(const char *name, int *ret_first, int *ret_last) {
    int panel = is_for_panels(&name) ? HPL_KERNELS : 0;
    *ret_first = panel + HPL_DLASWP00_N;
    *ret_last = panel + HPL_DLASWP10_N;
    if (strcmp(name, "dlaswp") == 0)
        return 0;
    for (int i = 0; i < HPL_KERNELS; i++)
        if (strcmp(name, hpl_kernel_names[i]) == 0) {
            *ret_first = *ret_last = panel + i;
            return 0;
        }
    return -ENOENT;
}

/* The model for the kernel NAME; that for one form of dlaswp goes before that for all. */
static int bind_named(const struct predict_inputs *inputs, struct models *models, const struct model *model,
                      const char *name, struct plugin_message *message) {
    int first, last, r = 0;
    if (find_kernel(name, &first, &last) < 0)
        return plugin_refuse(message, -EINVAL,
                             "'%.128s' is no kernel of HPL; expected dtrsm=FILE, dgemv, dger, dtrsv, dscal, "
                             "daxpy, dcopy, idamax, "
                             "dlacpy, dlatcpy, dlaswp, one of dlaswp's forms such as dlaswp01T, or "
                             "kernel=FILE, a model by kernel "
                             "as that of the experiment blas; of the factorisation of panels alone: "
                             "panel-dgemm=FILE and the like",
                             name);
    for (int i = first; r == 0 && i <= last; i++)
        if (first == last || !models->kernels[i].is_named) {
            r = bind_kernel(inputs, model, NULL, &models->kernels[i], message);
            models->kernels[i].is_named = first == last;
        }
    return r;
}

/* Binds each kernel that MODEL has groups of; a kernel that already has a model of its own keeps that one. */
static int bind_by_kernel(const struct predict_inputs *inputs, struct models *models,
                          const struct model *model, const char *name, struct plugin_message *message) {
    int first, last, r = 0, panel = is_for_panels(&name) ? HPL_KERNELS : 0;
    for (size_t g = 0; r == 0 && g < model->group_count; g++) {
        const char *label = model->groups[g].labels[model->by_count - 1];
        if (find_kernel(label, &first, &last) < 0)
            continue;
        for (int i = panel + first; r == 0 && i <= panel + last; i++)
            if (models->kernels[i].count == 0)
                r = bind_kernel(inputs, model, label, &models->kernels[i], message);
    }
    return r;
}

static int bind_all(const struct predict_inputs *inputs, struct models *models,
                    struct plugin_message *message) {
    const struct model *const *kernels = inputs->models[ROLE_KERNELS];
    int r = bind_kernel(inputs, inputs->models[ROLE_DGEMM][0], NULL, &models->kernels[HPL_DGEMM], message);
    for (size_t i = 0; r == 0 && i < inputs->model_counts[ROLE_KERNELS]; i++)
        if (!is_by_kernel(kernels[i]))
            r = bind_named(inputs, models, kernels[i], inputs->sources[ROLE_KERNELS][i].name, message);
    for (size_t i = 0; r == 0 && i < inputs->model_counts[ROLE_KERNELS]; i++)
        if (is_by_kernel(kernels[i]))
            r = bind_by_kernel(inputs, models, kernels[i], inputs->sources[ROLE_KERNELS][i].name, message);
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

/* Operations of a call, as the experiment blas counts them; its elements, where it only moves them. */
static double operations_of(enum hpl_kernel kernel, double m, double n, double k) {
    bool adds = kernel == HPL_DGEMM || kernel == HPL_DGEMV || kernel == HPL_DGER || kernel == HPL_DAXPY;
    double of[] = {0, m, m * n, m * n * k};
    return (adds ? 2 : 1) * of[hpl_dimensions(kernel)];
}

/* The times of calls by the model of KERNEL, or of it in panels. Calls of one group with the same sizes,
 * which follow each other, are drawn together. A kernel of one length has it as m and n: models of vectors
 * call it either way. */
static void model_times(const struct machine *machine, int kernel, size_t count, const uint64_t *ranks,
                        const uint64_t *numbers, const int *m, int n, int k, double *ret) {
    const struct kernel_model *of = &machine->models->kernels[kernel];
    const int *group_of = machine->group_of[kernel];
    for (size_t i = 0, next; i < count; i = next) {
        int group = group_of[ranks[i]];
        const struct predict_call *call = of->groups[group].call;
        double values[] = {m[i], n > 0 ? n : m[i], k,
                           of->is_by_kernel ? operations_of(kernel % HPL_KERNELS, m[i], n, k) : 0};
        for (next = i + 1; next < count && m[next] == m[i] && group_of[ranks[next]] == group;)
            next++;
        if (machine->has_noise && next > i + 1)
            call->draws(call, values, next - i, ranks + i, numbers + i, ret + i);
        else
            ret[i] = machine->has_noise ? call->draw(call, values, ranks[i], numbers[i])
                                        : call->mean(call, values);
        for (size_t same = i + 1; !machine->has_noise && same < next; same++)
            ret[same] = ret[i];
    }
    for (size_t i = 0; machine->seconds[kernel] != 1 && i < count; i++)
        ret[i] *= machine->seconds[kernel];
}

static void kernel_times(void *context, enum hpl_kernel kernel, size_t count, const uint64_t *ranks,
                         const uint64_t *numbers, const int *m, int n, int k, double *ret) {
    model_times(context, (int)kernel, count, ranks, numbers, m, n, k, ret);
}

static void panel_times(void *context, enum hpl_kernel kernel, size_t count, const uint64_t *ranks,
                        const uint64_t *numbers, const int *m, int n, int k, double *ret) {
    model_times(context, HPL_KERNELS + (int)kernel, count, ranks, numbers, m, n, k, ret);
}

static bool has_noise(const struct model *model, const struct model_group *group) {
    bool ret = false;
    for (size_t i = 0; i < group->part_count; i++) {
        const struct model_noise *noise = &group->parts[i].noise;
        ret = ret || noise->constant != 0 || noise->floor.sigma > 0 || noise->component_count > 0;
        for (size_t t = 0; noise->coefficients && t < model->term_count; t++)
            ret = ret || noise->coefficients[t] != 0;
    }
    return ret;
}

static void halve(double *times, size_t count) {
    for (size_t i = 0; i < count; i++)
        times[i] /= 2;
}

/* Without a model of dtrsm: half of a dgemm of that size, which has twice the operations. */
static void half_dgemm(void *context, __attribute__((unused)) enum hpl_kernel kernel, size_t count,
                       const uint64_t *ranks, const uint64_t *numbers, const int *m, int n, int k,
                       double *ret) {
    kernel_times(context, HPL_DGEMM, count, ranks, numbers, m, n, k, ret);
    halve(ret, count);
}

/* The same of the factorisation of panels. */
static void half_panel_dgemm(void *context, __attribute__((unused)) enum hpl_kernel kernel, size_t count,
                             const uint64_t *ranks, const uint64_t *numbers, const int *m, int n, int k,
                             double *ret) {
    panel_times(context, HPL_DGEMM, count, ranks, numbers, m, n, k, ret);
    halve(ret, count);
}

/* The rank that is number PLACE, as nodes are filled: by rank, or, as rocHPL does it, with a block of the
 * grid each; nodes and the ranks of each are in the order of PMAP. */
static int rank_at(const struct models_request *request, int place) {
    const struct hpl *hpl = request->hpl;
    int per_node = request->ranks_per_node, rows = request->node_rows, node = place / per_node,
        own = place % per_node;
    if (rows == 0)
        return place;
    int columns = per_node / rows, down = hpl->p / rows, across = hpl->q / columns;
    return hpl->column_major
               ? hpl_rank(hpl, node % down * rows + own % rows, node / down * columns + own / rows)
               : hpl_rank(hpl, node / across * rows + own / columns, node % across * columns + own % columns);
}

bool models_fit_grid(const struct models_request *request, const struct hpl *hpl) {
    int rows = request->node_rows, columns = rows > 0 ? request->ranks_per_node / rows : 0;
    return rows == 0 ||
           (rows * columns == request->ranks_per_node && hpl->p % rows == 0 && hpl->q % columns == 0);
}

static int check_nodes(const struct models_request *request, struct plugin_message *message) {
    const struct hpl *hpl = request->hpl;
    int rows = request->node_rows;
    if (models_fit_grid(request, hpl))
        return 0;
    return plugin_refuse(
        message, -EINVAL,
        "node-rows is %d: the %d ranks of a node are no block of %d rows of the grid of %d x %d; "
        "expected a divisor of P whose block divides the grid",
        rows, request->ranks_per_node, rows, hpl->p, hpl->q);
}

/* The end of the groups of the node whose first one is START. */
static size_t node_end(const struct kernel_model *kernel, const struct models_request *request,
                       size_t start) {
    const struct kernel_group *groups = kernel->groups;
    size_t end = start + 1, by_count = kernel->model->by_count - kernel->is_by_kernel;
    if (request->cpus_per_node > 0)
        return (size_t)fmin((double)start + request->cpus_per_node, (double)kernel->count);
    while (end < kernel->count && by_count > 1 &&
           strcmp(groups[start].group->labels[0], groups[end].group->labels[0]) == 0)
        end++;
    return end;
}

/* The groups of a kernel's model by rank, as indices of its calls: groups with the same first label are one
 * node, whose ranks are spread over them in order. Ranks of more nodes than the model has begin again with
 * its first. OUTPUT: where warnings go, or NULL. */
static void assign_groups(const struct kernel_model *kernel, const struct models_request *request, int *ret,
                          struct predict_output *output) {
    const struct model *model = kernel->model;
    size_t count = kernel->count, nodes = 0, start = 0, by_count = model->by_count - kernel->is_by_kernel;
    int ranks = request->hpl->p * request->hpl->q, per_node = request->ranks_per_node;
    for (int node = 0; node * per_node < ranks; node++) {
        size_t end = node_end(kernel, request, start);
        if (output && node == 0 && by_count > 1 && strcmp(model->by[by_count - 1], "core") == 0 &&
            (size_t)per_node * (size_t)request->threads > end)
            predict_remark(output, true,
                           "%d processes on a node with threads=%d need %d cores, and a node of the model "
                           "'%s' has %zu: the "
                           "real run would share cores",
                           per_node, request->threads, per_node * request->threads, model->file, end);
        for (int i = 0; i < per_node && node * per_node + i < ranks; i++)
            ret[rank_at(request, node * per_node + i)] =
                (int)(start + (end - start) * (size_t)i / (size_t)per_node);
        start = end < count ? end : 0;
        nodes += start == 0 && nodes == 0 ? (size_t)node + 1 : 0;
    }
    size_t needed = ((size_t)ranks + (size_t)per_node - 1) / (size_t)per_node;
    if (output && count > 1 && nodes > 0 && nodes < needed)
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

static int read_network(const struct model *model, const struct model_group *group, enum network_path path,
                        struct network_model *ret, double *ret_probe, struct plugin_message *message) {
    static const char *const cost_names[NETWORK_COSTS] = {"Send", "Isend", "Recv"};
    struct network_segment *segments = ret->segments[path];
    double latency = NAN, bandwidth = NAN;
    int count = 0;
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

/* Warns where the messages of the replay are smaller or larger than those that GROUP was fitted to. */
static void warn_of_sizes(const struct model *model, const struct model_group *group, const struct hpl *hpl,
                          struct predict_output *output) {
    double rows = hpl_local_rows(hpl, 0, 0), columns = hpl_local_columns(hpl, 0, hpl->n + 1, 0);
    double largest = 8.0 * hpl->nb * fmax(hpl->q > 1 ? rows : 0, hpl->p > 1 ? columns : 0);
    double smallest = 8.0 * (hpl->p > 1 ? hpl->nb + 4 : hpl->nb), known[2] = {INFINITY, -INFINITY};
    for (size_t i = 0; i < group->part_count; i++)
        for (size_t j = 0; j < group->parts[i].domain_count; j++)
            if (group->parts[i].name && strcmp(group->parts[i].name, "PingPong") == 0) {
                known[0] = fmin(known[0], group->parts[i].domain[j].minimum);
                known[1] = fmax(known[1], group->parts[i].domain[j].maximum);
            }
    if (known[1] > 0 && largest > known[1])
        predict_remark(
            output, true,
            "messages have up to %.3g MB, and '%s' was measured up to %.3g MB: their rate may collapse "
            "beyond; measure larger ones",
            largest / 1e6, model->file, known[1] / 1e6);
    if (known[1] > 0 && smallest < known[0])
        predict_remark(output, true,
                       "messages have as few as %.3g kB, and '%s' was measured from %.3g kB on: its latency "
                       "is extrapolated; measure smaller ones",
                       smallest / 1e3, model->file, known[0] / 1e3);
}

/* Reads PATH of MODEL: the group called so, as in archives of mpi-point-to-point, or the only one. */
static int read_path(const struct model *model, enum network_path path, const struct hpl *hpl,
                     struct network_model *network, double *ret_probe, struct predict_output *output,
                     struct plugin_message *message) {
    static const char *const names[NETWORK_PATHS] = {"remote", "loopback"};
    const struct model_group *group =
        predict_group_by(model, "pair", model->group_count > 1 ? names[path] : NULL, message);
    int r = group ? read_network(model, group, path, network, ret_probe, message) : -EINVAL;
    if (r == 0)
        warn_of_sizes(model, group, hpl, output);
    return r;
}

/* The topology of the machine, whose cards are known; a note has its figures. */
static int make_tree(const struct models_request *request, struct predict_output *output,
                     struct machine *machine, struct plugin_message *message) {
    struct network_model *network = &machine->network;
    struct network_tree *tree = &network->tree;
    *tree = request->tree;
    network->is_max_min = request->is_max_min;
    if (tree->leaf_nodes == 0)
        return 0;
    tree->cable *= request->card_cables ? network->card : 1;
    int leaves = network_leaf_count(tree, machine->replay.nodes);
    if ((double)leaves * tree->spines * tree->spine_cables > NETWORK_CABLES_MAX)
        return plugin_refuse(
            message, -EINVAL,
            "the fat tree has %d leaf switches with %d x %d cables each; at most %d cables are "
            "replayed: set fewer spines, spine-cables, or more leaf-nodes",
            leaves, tree->spines, tree->spine_cables, NETWORK_CABLES_MAX);
    double up = (double)tree->spines * tree->spine_cables * tree->cable;
    predict_remark(output, leaves == 1,
                   "fat tree: leaf switches %d, nodes on each %d with cards of %.4g GB/s; spine switches %d, "
                   "cables of a leaf switch %d with %.4g GB/s; oversubscription %.3g%s",
                   leaves, tree->leaf_nodes, network->card / 1e9, tree->spines,
                   tree->spines * tree->spine_cables, tree->cable / 1e9,
                   tree->leaf_nodes * network->card / up,
                   leaves == 1 ? ". No message crosses a spine: set fewer leaf-nodes" : "");
    return 0;
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
    const struct model *remote = inputs->models[ROLE_NETWORK][0];
    const struct model *loopback = inputs->model_counts[ROLE_LOOPBACK] > 0 ? inputs->models[ROLE_LOOPBACK][0]
                                   : remote->group_count > 1               ? remote
                                                                           : NULL;
    int r = read_path(remote, NETWORK_REMOTE, request->hpl, network, &probe, output, message);
    if (r == 0 && loopback) {
        r = read_path(loopback, NETWORK_LOOPBACK, request->hpl, network, &ignored, output, message);
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
    return r == 0 ? make_tree(request, output, machine, message) : r;
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
    int *numbers = calloc((MODELS_KERNELS + 1) * ranks + (size_t)hpl->n, sizeof *numbers);
    int r = machine && numbers ? check_nodes(request, message) : -ENOMEM;
    if (r == 0) {
        *machine = (struct machine){.models = models,
                                    .has_noise = request->has_noise,
                                    .node_of = numbers,
                                    .pivots = numbers + (MODELS_KERNELS + 1) * ranks,
                                    .memory = numbers};
        machine->replay = (struct replay_machine){.network = &machine->network,
                                                  .nodes = ((int)ranks + request->ranks_per_node - 1) /
                                                           request->ranks_per_node,
                                                  .node_of = numbers,
                                                  .context = machine,
                                                  .probe_is_deferred = request->is_deferred,
                                                  .probe_grows = request->is_smpi,
                                                  .whole_microseconds = request->is_cut};
        for (size_t i = 0; i < ranks; i++)
            numbers[rank_at(request, (int)i)] = (int)i / request->ranks_per_node;
        r = make_network(inputs, request, output, machine, message);
    }
    for (int i = 0; r == 0 && i < MODELS_KERNELS; i++) {
        const struct kernel_model *kernel = &models->kernels[i];
        int of = i % HPL_KERNELS;
        if (kernel->count == 0)
            continue;
        bool is_another = i == 0 || models->kernels[i - 1].model != kernel->model;
        if (i < HPL_KERNELS) {
            machine->replay.kernel[of] = kernel_times;
            machine->replay.is_fixed[of] =
                kernel->count == 1 &&
                (!request->has_noise || !has_noise(kernel->model, kernel->groups[0].group));
        } else {
            machine->replay.panel_kernel[of] = panel_times;
        }
        machine->seconds[i] =
            kernel->model->response_seconds / (of == HPL_DGEMM || of == HPL_DTRSM ? request->threads : 1);
        machine->group_of[i] = numbers + (size_t)(i + 1) * ranks;
        assign_groups(kernel, request, machine->group_of[i], is_another ? output : NULL);
    }
    if (r == 0 && models->kernels[HPL_DTRSM].count == 0)
        machine->replay.kernel[HPL_DTRSM] = half_dgemm;
    if (r == 0 && models->kernels[HPL_KERNELS + HPL_DTRSM].count == 0 &&
        models->kernels[HPL_KERNELS + HPL_DGEMM].count > 0)
        machine->replay.panel_kernel[HPL_DTRSM] = half_panel_dgemm;
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
    return r;
}

static int count_nodes(const struct kernel_model *kernel, const struct models_request *request) {
    int ret = 0;
    for (size_t start = 0; start < kernel->count; start = node_end(kernel, request, start))
        ret++;
    return ret;
}

int models_nodes(const void *state, const struct models_request *request) {
    const struct models *models = state;
    return count_nodes(&models->kernels[HPL_DGEMM], request);
}

void machine_choose_nodes(struct machine *machine, const struct models_request *request, const int *nodes) {
    int ranks = request->hpl->p * request->hpl->q;
    for (int i = 0; i < MODELS_KERNELS; i++) {
        const struct kernel_model *kernel = &machine->models->kernels[i];
        if (!machine->group_of[i])
            continue;
        int count = count_nodes(kernel, request);
        for (int node = 0; node < machine->replay.nodes; node++) {
            size_t start = 0;
            for (int before = nodes[node] % count; before > 0; before--)
                start = node_end(kernel, request, start);
            size_t size = node_end(kernel, request, start) - start, slot = 0;
            for (int rank = 0; rank < ranks; rank++)
                if (machine->node_of[rank] == node)
                    machine->group_of[i][rank] =
                        (int)(start + size * slot++ / (size_t)request->ranks_per_node);
        }
    }
}

static double group_time(const struct machine *machine, int kernel, int group, double m, double n, double k) {
    const struct kernel_model *of = &machine->models->kernels[kernel];
    const struct predict_call *call = of->groups[group].call;
    return call->mean(
        call, (double[]){m, n, k, of->is_by_kernel ? operations_of(kernel % HPL_KERNELS, m, n, k) : 0});
}

void machine_make_even(struct machine *machine, const struct hpl *hpl, double m, double n, double k) {
    int ranks = hpl->p * hpl->q;
    for (int i = 0; i < MODELS_KERNELS; i++) {
        int *group_of = machine->group_of[i], nearest = 0;
        double mean = 0, least = INFINITY, own = 0;
        for (int rank = 0; group_of && rank < ranks; rank++)
            mean += group_time(machine, i, group_of[rank], m, n, k) / ranks;
        for (int rank = 0; group_of && rank < ranks; rank++) {
            double time = group_time(machine, i, group_of[rank], m, n, k);
            if (fabs(time - mean) < least) {
                least = fabs(time - mean);
                nearest = group_of[rank];
                own = time;
            }
        }
        for (int rank = 0; group_of && rank < ranks; rank++)
            group_of[rank] = nearest;
        machine->seconds[i] *= own > 0 && mean > 0 ? mean / own : 1;
    }
}

double machine_node_time(const struct machine *machine, const struct hpl *hpl, int node, double m, double n,
                         double k) {
    double sum = 0;
    int count = 0;
    for (int rank = 0; rank < hpl->p * hpl->q; rank++)
        if (machine->node_of[rank] == node) {
            sum += group_time(machine, HPL_DGEMM, machine->group_of[HPL_DGEMM][rank], m, n, k);
            count++;
        }
    return machine->seconds[HPL_DGEMM] * sum / count;
}

void machine_name_node(const struct machine *machine, int node, char *ret, size_t size) {
    const struct kernel_model *dgemm = &machine->models->kernels[HPL_DGEMM];
    int rank = 0;
    while (machine->node_of[rank] != node)
        rank++;
    const struct model_group *group = dgemm->groups[machine->group_of[HPL_DGEMM][rank]].group;
    if (dgemm->model->by_count > (size_t)dgemm->is_by_kernel)
        snprintf(ret, size, "node %d (%s)", node, group->labels[0]);
    else
        snprintf(ret, size, "node %d", node);
}

void machine_free(struct machine *machine) {
    if (!machine)
        return;
    free(machine->memory);
    free(machine);
}
