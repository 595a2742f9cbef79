/* The plugin predict-stencil: see README.md for what it computes. */
#include <assay/predict.h>

static const char *const compute_kinds[] = {"linear", "maximum", NULL};
static const char *const path_kinds[] = {"linear", "piecewise", "smpi", NULL};
enum { COMPUTE_MODEL, NETWORK_MODEL, COPY_MODEL, ROLE_COUNT };
static const struct predict_role roles[] = {
    [COMPUTE_MODEL] = {"compute", compute_kinds, .is_time = true, .optional = true, .experiment = "stencil",
                       .help = "V/P: the time of a device as a function of the 'flops' (and perhaps "
                               "'bytes') of its part; from the experiment stencil, or by 'assay fit "
                               "roofline'"},
    [NETWORK_MODEL] = {"network", path_kinds, .is_time = true, .optional = true,
                       .experiment = "mpi-point-to-point",
                       .help = "s/B(s): the time of a message by its 'size'; for a model of SMPI half "
                               "of a PingPong"},
    [COPY_MODEL] = {"copy", path_kinds, .is_time = true, .optional = true, .experiment = "transfer",
                    .help = "s/B(s): the time of a copy between device and host by its 'size'; "
                            "without accelerators the time to pack a face"},
    {0},
};

static const char *const cut_words[] = {"1d", "2d", "3d", NULL};
static const char *const yes_words[] = {"no", "yes", NULL};
static const char *const progress_words[] = {"all", "network", "none", NULL};
enum { PROGRESS_ALL, PROGRESS_NETWORK, PROGRESS_NONE };
static const char *const duplex_words[] = {"half", "full", NULL};

enum {
    DEVICES,
    MESH, /* nx, ny, nz */
    FLOPS = MESH + 3,
    BYTES,
    HALO_BYTES,
    CUT,
    PARTS, /* px, py, pz */
    FACES = PARTS + 3,
    PERIODIC,
    OVERLAP,
    PROGRESS,
    DEVICES_PER_NODE,
    DUPLEX,
    PERFORMANCE,
    PEAK_FLOPS,
    PEAK_BANDWIDTH,
    PATHS, /* bandwidth and latency of the network, then of copies */
    GROUPS = PATHS + 4,
    PARAMETER_COUNT = GROUPS + ROLE_COUNT
};

#define POINTS(NAME, HELP)                                                                                   \
    {                                                                                                        \
        NAME, PLUGIN_NUMBER, "1", .minimum = 1, .maximum = 1e9, .integer = true, .required = true,           \
                                  .help = HELP                                                               \
    }
#define PARTS_IN(NAME, HELP)                                                                                 \
    { NAME, PLUGIN_NUMBER, "1", .minimum = 1, .maximum = 1e9, .integer = true, .help = HELP }
#define RATE(NAME, UNIT, HELP)                                                                               \
    {                                                                                                        \
        NAME, PLUGIN_NUMBER, UNIT, .minimum = 1, .maximum = 1e21, .plausible_minimum = 1e6,                  \
                                   .plausible_maximum = 1e16, .help = HELP                                   \
    }
#define LATENCY(NAME, HELP)                                                                                  \
    { NAME, PLUGIN_NUMBER, "s", .minimum = 0, .maximum = 1e3, .plausible_maximum = 1e-2, .help = HELP }

static const struct plugin_parameter parameters[PARAMETER_COUNT + 1] = {
    [MESH] = POINTS("nx", "points of the whole mesh in x"),
    [MESH + 1] = POINTS("ny", "in y"),
    [MESH + 2] = POINTS("nz", "in z"),
    [DEVICES] = {"devices", PLUGIN_NUMBER, "1", .minimum = 1, .maximum = 1e9, .integer = true,
                 .required = true, .help = "R: GPUs or cores, each with one part of the mesh"},
    [FLOPS] = {"flops", PLUGIN_NUMBER, "flop", .minimum = 1e-3, .maximum = 1e12, .required = true,
               .help = "number of operations for a point and step: 13 for diffusion"},
    [BYTES] = {"bytes", PLUGIN_NUMBER, "By", .minimum = 1e-3, .maximum = 1e12,
               .help = "bytes of memory traffic for a point and step: 32 for diffusion; used "
                       "with peaks and rooflines only"},
    [HALO_BYTES] = {"halo-bytes", PLUGIN_NUMBER, "By", .minimum = 0, .maximum = 1e9, .required = true,
                    .help = "bytes sent for a point of a face: 4 for diffusion in single precision"},
    [CUT] = {"decomposition", PLUGIN_WORD, .choices = cut_words, .default_text = "2d",
             .help = "in which directions the mesh is cut: z (1d); y and z (2d); all (3d); "
                     "into R^(1/d) parts each, as in the source also where this is no whole "
                     "number"},
    [PARTS] = PARTS_IN("px", "parts in x, instead of 'decomposition'"),
    [PARTS + 1] = PARTS_IN("py", "parts in y"),
    [PARTS + 2] = PARTS_IN("pz", "parts in z"),
    [FACES] = {"faces", PLUGIN_NUMBER, "1", .minimum = 1, .maximum = 2, .integer = true, .default_text = "2",
               .help = "number of exchanges j for each direction that is cut: 2: a face on "
                       "both sides; 1: where the factor 2g is taken to count both sides"},
    [PERIODIC] = {"periodic", PLUGIN_WORD, .choices = yes_words, .default_text = "no",
                  .help = "whether a device is its own neighbour in directions y and z that are "
                          "not cut, which costs three copies a face"},
    [OVERLAP] = {"overlap", PLUGIN_WORD, .choices = yes_words, .default_text = "no",
                 .help = "whether the exchange overlaps the update of the inside: equation (4) "
                         "instead of (2)"},
    [PROGRESS] = {"progress", PLUGIN_WORD, .choices = progress_words, .default_text = "all",
                  .help = "what proceeds during the update: all; the network alone; or none, "
                          "where the core that computes moves every byte itself"},
    [DEVICES_PER_NODE] = {"devices-per-node", PLUGIN_NUMBER, "1", .minimum = 1, .maximum = 1e6,
                          .integer = true, .default_text = "1",
                          .help = "g: number of devices that share the network of a node"},
    [DUPLEX] = {"duplex", PLUGIN_WORD, .choices = duplex_words, .default_text = "half",
                .help = "half: sending and receiving share the bandwidth of the network "
                        "(2g/B); full: they do not (g/B)"},
    [PERFORMANCE] =
        RATE("performance", "flop/s", "P: measured performance of one device; or give the peaks, or a model"),
    [PEAK_FLOPS] = RATE("peak-flops", "flop/s",
                        "Fpeak: peak rate of one device; gives P by equation (1) with alpha = 0"),
    [PEAK_BANDWIDTH] = RATE("peak-bandwidth", "By/s", "Bpeak: peak memory bandwidth of one device"),
    [PATHS] = RATE("network-bandwidth", "By/s", "B0: bandwidth between two nodes, instead of a model"),
    [PATHS + 1] = LATENCY("network-latency", "t0: latency between two nodes"),
    [PATHS + 2] = RATE("copy-bandwidth", "By/s",
                       "B0: bandwidth between device and host, instead of a model; not set: "
                       "no copies"),
    [PATHS + 3] = LATENCY("copy-latency", "t0: latency between device and host"),
    [GROUPS] = {"compute-group", PLUGIN_TEXT,
                .help = "group of the model 'compute', if the model has several"},
    [GROUPS + 1] = {"network-group", PLUGIN_TEXT, .help = "group of the model 'network', such as remote"},
    [GROUPS + 2] = {"copy-group", PLUGIN_TEXT, .help = "group of the model 'copy', if the model has several"},
};

enum { TIME, RATE, UPDATES, EFFICIENCY, COMPUTE, EXPOSED, NETWORK, COPY, DEVICE_RATE, SENT, COLUMN_COUNT };
static const struct column columns[COLUMN_COUNT + 1] = {
    [TIME] = {"time", .unit = "s", .help = "time of a step", .goal = COLUMN_LESS},
    [RATE] = {"rate", .unit = "Gflop/s", .help = "P_m: rate of all devices, V R / time", .goal = COLUMN_MORE},
    [UPDATES] = {"points", .unit = "1/s", .help = "points updated in a second by all devices",
                 .detail = true},
    [EFFICIENCY] = {"efficiency", .unit = "1", .help = "P_m / (R P)"},
    [COMPUTE] = {"compute", .unit = "s", .help = "time to compute, V / P", .part_of = "time"},
    [EXPOSED] = {"exposed", .unit = "s", .help = "time of the exchange that no computation hides",
                 .part_of = "time"},
    [NETWORK] = {"network", .unit = "s", .help = "time of the exchange between nodes"},
    [COPY] = {"copy", .unit = "s", .help = "time of the exchange between device and host"},
    [DEVICE_RATE] = {"device_rate", .unit = "Gflop/s", .help = "P: performance of one device",
                     .detail = true},
    [SENT] = {"sent", .unit = "By", .help = "bytes that a device sends in a step, through all its faces",
              .detail = true, .exact = true},
    {0},
};

/* A call for each group of each model that was given. */
struct state {
    const struct predict_call **calls[ROLE_COUNT];
};

struct scenario {
    struct state *state;
    const struct predict_inputs *inputs;
    const struct plugin_value *values;
    struct plugin_message *message;
};

/* ---- The time of a part, a message, a copy */

/* The time that the model of ROLE predicts for SIZES, in s, into *RET. -EINVAL: no such group; -EDOM: below
 * 0. */
static int evaluate_model(const struct scenario *s, size_t role, const double *sizes, double *ret) {
    const struct model *model = s->inputs->models[role][0];
    const struct model_group *group =
        predict_group_by(model, parameters[GROUPS + role].name, s->values[GROUPS + role].text, s->message);
    struct predict_value value;
    if (!group)
        return -EINVAL;
    int r = s->inputs->evaluate(s->inputs->context, s->state->calls[role][group - model->groups], sizes,
                                &value, s->message);
    if (r == 0 && !(value.mean >= 0))
        r = plugin_refuse(
            s->message, -EDOM, "the model '%s' predicts %g s for %s %g; expected a time of at least 0",
            s->inputs->sources[role]->file, value.mean, role == COMPUTE_MODEL ? "flops" : "size", sizes[0]);
    if (r == 0)
        *ret = value.mean * (model->response_seconds > 0 ? model->response_seconds : 1) *
               (strcmp(model->kind, "smpi") == 0 ? 0.5 : 1);
    return r;
}

static bool has_column(const struct model *model, const char *name) {
    bool found = false;
    for (size_t t = 0; t < model->term_count; t++)
        for (size_t f = 0; f < model->terms[t].factor_count; f++)
            found = found || strcmp(model->terms[t].factors[f].column, name) == 0;
    return found;
}

/* V/P, the time to update a part of POINTS, into *RET. -EINVAL: the speed is given in no way, or in
 * several. */
static int find_compute(const struct scenario *s, double points, double *ret) {
    const struct plugin_value *v = s->values;
    bool has_model = s->inputs->model_counts[COMPUTE_MODEL] > 0,
         has_peaks = v[PEAK_FLOPS].is_set || v[PEAK_BANDWIDTH].is_set;
    if (has_model + has_peaks + v[PERFORMANCE].is_set != 1)
        return plugin_refuse(s->message, -EINVAL,
                             "the speed of a device must be given in one way: performance, or both "
                             "peak-flops and peak-bandwidth (data sheet), or compute=MODEL (archive "
                             "of the experiment stencil, or 'assay fit roofline'); %s",
                             has_model || has_peaks ? "several are given, remove all but one"
                                                    : "none is given");
    if ((has_peaks || (has_model && has_column(s->inputs->models[COMPUTE_MODEL][0], "bytes"))) &&
        !v[BYTES].is_set)
        return plugin_refuse(s->message, -EINVAL,
                             "bytes is not set; a roofline needs the bytes of a point: set bytes");
    if (has_peaks && !(v[PEAK_FLOPS].is_set && v[PEAK_BANDWIDTH].is_set))
        return plugin_refuse(s->message, -EINVAL, "%s is not set; equation (1) needs both peaks: set it, too",
                             v[PEAK_FLOPS].is_set ? "peak-bandwidth" : "peak-flops");
    if (has_model)
        return evaluate_model(s, COMPUTE_MODEL,
                              (double[]){v[FLOPS].number * points, v[BYTES].number * points}, ret);
    *ret = points * (has_peaks
                         ? v[FLOPS].number / v[PEAK_FLOPS].number + v[BYTES].number / v[PEAK_BANDWIDTH].number
                         : v[FLOPS].number / v[PERFORMANCE].number);
    return 0;
}

/* SIZE/B(SIZE), the time of a message or copy, by its model or equation (5), into *RET; 0 for copies without
 * a path. -EINVAL: latency or bandwidth is missing or given twice. */
static int find_transfer(const struct scenario *s, size_t role, double size, double *ret) {
    static const char *const names[] = {[NETWORK_MODEL] = "network", [COPY_MODEL] = "copy"};
    const struct plugin_value *path = &s->values[PATHS + 2 * (role - NETWORK_MODEL)];
    bool has_model = s->inputs->model_counts[role] > 0;
    if (has_model && (path[0].is_set || path[1].is_set))
        return plugin_refuse(s->message, -EINVAL,
                             "a model is given for '%s', but %s-bandwidth or %s-latency is set, "
                             "too; remove one",
                             names[role], names[role], names[role]);
    if (has_model)
        return evaluate_model(s, role, &size, ret);
    *ret = 0;
    if (role == COPY_MODEL && !path[0].is_set && !path[1].is_set)
        return 0;
    if (!path[0].is_set || !path[1].is_set)
        return plugin_refuse(s->message, -EINVAL,
                             "%s-%s is not set; set it (B0 and t0 of equation (5)), or give "
                             "%s=MODEL of 'assay fit transfer' or of an archive of the experiment %s",
                             names[role], path[0].is_set ? "latency" : "bandwidth", names[role],
                             roles[role].experiment);
    *ret = size / path[0].number + path[1].number;
    return 0;
}

/* ---- A scenario */

/* The number of parts in x, y and z. -EINVAL or -EDOM: they do not fit devices or mesh. */
static int find_parts(const struct scenario *s, double *ret) {
    const struct plugin_value *v = s->values;
    double devices = v[DEVICES].number, product = 1;
    int dimensions = (int)v[CUT].number + 1;
    bool is_given = v[PARTS].is_set || v[PARTS + 1].is_set || v[PARTS + 2].is_set;
    if (is_given && v[CUT].is_set)
        return plugin_refuse(s->message, -EINVAL, "both decomposition and px, py or pz are set; remove one");
    for (int d = 0; d < 3; d++) {
        double given = v[PARTS + d].is_set ? v[PARTS + d].number : 1;
        ret[d] = is_given ? given : d >= 3 - dimensions ? pow(devices, 1.0 / dimensions) : 1;
        product *= given;
        if (ret[d] > v[MESH + d].number)
            return plugin_refuse(s->message, is_given ? -EINVAL : -EDOM,
                                 "%g parts in direction %c are more than its %g points; set fewer parts "
                                 "or a larger mesh",
                                 ret[d], "xyz"[d], v[MESH + d].number);
    }
    return !is_given || product == devices
               ? 0
               : plugin_refuse(s->message, -EINVAL,
                               "px x py x pz are %g parts; expected as many parts as devices, %g", product,
                               devices);
}

/* Equation (3): the sums over the faces of a part of the times on each path, and of the bytes sent. */
static int find_exchange(const struct scenario *s, const double *parts, double *ret) {
    const struct plugin_value *v = s->values;
    double share = (v[DUPLEX].number == 0 ? 2 : 1) * fmin(v[DEVICES_PER_NODE].number, v[DEVICES].number);
    int r = 0;
    for (int d = 0; r == 0 && d < 3; d++) {
        bool is_own = parts[d] == 1;
        double size = v[HALO_BYTES].number, network = 0, copy;
        if (is_own && (d == 0 || v[PERIODIC].number == 0))
            continue;
        for (int other = 0; other < 3; other++)
            size *= other == d ? 1 : v[MESH + other].number / parts[other];
        r = find_transfer(s, COPY_MODEL, size, &copy);
        if (r == 0 && !is_own)
            r = find_transfer(s, NETWORK_MODEL, size, &network);
        if (r < 0)
            return r;
        ret[NETWORK] += v[FACES].number * share * network;
        ret[COPY] += v[FACES].number * (is_own ? 3 : 2) * copy;
        ret[SENT] += v[FACES].number * size;
    }
    return r;
}

static void stencil_close(void *data) {
    struct state *state = data;
    for (size_t role = 0; state && role < ROLE_COUNT; role++)
        free(state->calls[role]);
    free(state);
}

/* Binds a call for each group of each given model. */
static int stencil_open(const struct predict_inputs *inputs, void **ret_state,
                        struct plugin_message *message) {
    static const char *const names[][2] = {
        {"flops", "bytes"}, {"size", "operation=PingPong"}, {"size", "operation=PingPong"}};
    struct state *state = calloc(1, sizeof *state);
    int r = state ? 0 : -ENOMEM;
    for (size_t role = 0; r == 0 && role < ROLE_COUNT; role++) {
        const struct model *model = inputs->model_counts[role] > 0 ? inputs->models[role][0] : NULL;
        size_t count = role == COMPUTE_MODEL || (model && model->named_by) ? 2 : 1;
        r = predict_bind(inputs, model, names[role], count, &state->calls[role], message);
    }
    if (r < 0)
        stencil_close(state);
    else
        *ret_state = state;
    return r;
}

/* Predicts one scenario. */
static int stencil_run(void *state, const struct predict_inputs *inputs, const struct plugin_value *values,
                       double *ret, struct predict_output *output, struct plugin_message *message) {
    (void)output;
    const struct scenario s = {state, inputs, values, message};
    double parts[3], devices = values[DEVICES].number,
                     points = values[MESH].number * values[MESH + 1].number * values[MESH + 2].number;
    ret[NETWORK] = ret[COPY] = ret[SENT] = 0;
    int r = find_parts(&s, parts);
    r = r < 0 ? r : find_compute(&s, points / devices, &ret[COMPUTE]);
    r = r < 0 ? r : find_exchange(&s, parts, ret);
    if (r < 0)
        return r;
    double exchange = ret[NETWORK] + ret[COPY], hidden = 0;
    if (values[OVERLAP].number == 1 && values[PROGRESS].number != PROGRESS_NONE)
        hidden = fmin(ret[COMPUTE], values[PROGRESS].number == PROGRESS_ALL ? exchange : ret[NETWORK]);
    ret[EXPOSED] = exchange - hidden;
    ret[TIME] = ret[COMPUTE] + ret[EXPOSED];
    ret[UPDATES] = points / ret[TIME];
    ret[RATE] = values[FLOPS].number * ret[UPDATES] / 1e9;
    ret[DEVICE_RATE] = values[FLOPS].number * points / devices / ret[COMPUTE] / 1e9;
    ret[EFFICIENCY] = ret[COMPUTE] / ret[TIME];
    return 0;
}

ASSAY_PREDICT_PLUGIN("stencil", ASSAY_VERSION,
                     "time steps of a stencil code on a regular mesh over many GPUs or "
                     "cores, with or without overlap",
                     .roles = roles, .parameters = parameters, .columns = columns, .open = stencil_open,
                     .run = stencil_run, .close = stencil_close);
