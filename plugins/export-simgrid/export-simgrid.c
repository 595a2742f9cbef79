/*
 * The plugin export-simgrid: a platform file of SimGrid (simgrid.dtd, version 4.1; what SimGrid 3.32 loads):
 * hosts, the links between them, and SMPI's configuration. See README.md.
 *
 * Hosts that are alike are a <cluster>; hosts with a speed of their own are a <zone> of routing Cluster with
 * a <host_link> each. Either way a message takes the sender's link up and the receiver's down, so each has
 * half of the latency between two hosts.
 */
#include "plugins/export-simgrid/network.h"

#include <assay/text.h>

#include <strings.h>

enum {
    TEXT_MAX = 1000, /* bytes of an attribute */
    HOSTS_MAX = 1000000,
};

enum role { NETWORK, SPEEDS };

static const char *const network_kinds[] = {"smpi", "piecewise", "linear", NULL};
static const char *const speed_kinds[] = {"linear", NULL};

static const struct predict_role roles[] = {
    [NETWORK] = {"network", network_kinds, .is_time = true, .optional = true,
                 .help = "the network: SMPI's tables, or durations of messages by size"},
    [SPEEDS] = {"speeds", speed_kinds, .is_time = true, .optional = true,
                .help = "speeds of the hosts: durations of a kernel, with a fit for each host"},
    {.name = NULL},
};

enum option {
    HOSTS,
    RADICAL,
    PREFIX,
    SUFFIX,
    SPEED,
    CORES,
    FLOP,
    GROUP,
    LATENCY,
    BANDWIDTH,
    ROUND_TRIP,
    LOOPBACK_LATENCY,
    LOOPBACK_BANDWIDTH,
    BACKBONE_LATENCY,
    BACKBONE_BANDWIDTH,
    FAT_TREE,
    CONFIG
};

static const char *const no_yes[] = {"no", "yes", NULL};

static const struct plugin_parameter options[] = {
    [HOSTS] = {"hosts", PLUGIN_NUMBER, "1", .minimum = 1, .maximum = HOSTS_MAX, .integer = true,
               .help = "number of equal hosts, numbered from 0"},
    [RADICAL] = {"radical", PLUGIN_TEXT, .help = "numbers of the equal hosts, such as 1-16,20"},
    [PREFIX] = {"prefix", PLUGIN_TEXT, .default_text = "node-",
                .help = "text before the number of a host in its name"},
    [SUFFIX] = {"suffix", PLUGIN_TEXT, .default_text = "",
                .help = "text after the number of a host in its name"},
    [SPEED] = {"speed", PLUGIN_NUMBER, "flop/s", .default_text = "1e9", .minimum = 1, .maximum = 1e18,
               .plausible_minimum = 1e8, .plausible_maximum = 1e14,
               .help = "speed of a core of the equal hosts"},
    [CORES] = {"cores", PLUGIN_NUMBER, "1", .default_text = "1", .minimum = 1, .maximum = 1 << 20,
               .integer = true, .help = "number of cores of each host"},
    [FLOP] = {"flop", PLUGIN_NUMBER, "1", .default_text = "2", .minimum = 1e-9, .maximum = 1e18,
              .help = "flop for each unit of the highest term of the model 'speeds': 2 for "
                      "m*n*k of dgemm"},
    [GROUP] = {"group", PLUGIN_TEXT, .help = "group of the model 'network', where the model has several"},
    [LATENCY] = {"latency", PLUGIN_NUMBER, "s", .minimum = 1e-12, .maximum = 1e3, .plausible_minimum = 1e-8,
                 .plausible_maximum = 0.1,
                 .help = "value between two hosts, where the model 'network' has none"},
    [BANDWIDTH] = {"bandwidth", PLUGIN_NUMBER, "By/s", .minimum = 1, .maximum = 1e15,
                   .plausible_minimum = 1e6, .plausible_maximum = 1e12,
                   .help = "value between two hosts, where the model 'network' has none"},
    [ROUND_TRIP] = {"round-trip", PLUGIN_WORD, .choices = no_yes, .default_text = "no",
                    .help = "whether the durations of messages are round trips"},
    [LOOPBACK_LATENCY] = {"loopback-latency", PLUGIN_NUMBER, "s", .minimum = 0, .maximum = 1e3,
                          .help = "value between two processes of a host"},
    [LOOPBACK_BANDWIDTH] = {"loopback-bandwidth", PLUGIN_NUMBER, "By/s", .minimum = 1, .maximum = 1e15,
                            .help = "value between two processes of a host"},
    [BACKBONE_LATENCY] = {"backbone-latency", PLUGIN_NUMBER, "s", .minimum = 0, .maximum = 1e3,
                          .help = "latency of a link that all hosts share; part of the latency between "
                                  "two hosts"},
    [BACKBONE_BANDWIDTH] = {"backbone-bandwidth", PLUGIN_NUMBER, "By/s", .minimum = 1, .maximum = 1e15,
                            .help = "bandwidth of a link that all hosts share"},
    [FAT_TREE] = {"fat-tree", PLUGIN_TEXT,
                  .help = "fat tree in SimGrid's form LEVELS;BELOW;ABOVE;LINKS, such as "
                          "2;16,4;1,2;1,4"},
    [CONFIG] = {"config", PLUGIN_TEXTS, .help = "further settings of SimGrid: smpi/iprobe=3e-7,..."},
    {.name = NULL},
};

struct host {
    const char *name; /* the model's */
    double seconds;   /* that a unit of the term takes, summed over its groups */
    size_t groups;
    double speed; /* of a core, flop/s */
};

/* Hosts with speeds of their own. */
struct speeds {
    struct host *hosts; /* in the order of the model; owned */
    size_t count;
    double mean; /* flop/s */
};

/* The platform file that is being written. */
struct platform {
    const struct plugin_value *options;
    struct predict_output *output;
    struct network network;
    struct speeds speeds;
    double link_latency; /* of a host's link, s */
    struct plugin_message *message;
};

static double number(const struct platform *platform, enum option option) {
    return platform->options[option].number;
}

/* ---- Text */

/* Writes TEXT in an XML attribute; characters that are not printable ASCII become _. */
static void escape(struct predict_output *output, const char *text) {
    static const char special[] = "&<>\"'";
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};
    for (; *text; text++) {
        const char *found = strchr(special, *text);
        if (found)
            output->text(output->context, entities[found - special], strlen(entities[found - special]));
        else
            output->text(output->context, *text >= ' ' && *text < 127 ? text : "_", 1);
    }
}

#define put(platform, ...) predict_print((platform)->output, escape, __VA_ARGS__)

/* -EINVAL unless TEXT, of LEAST to TEXT_MAX characters, can be a name of a host or an attribute. WHAT names
 * it in the message. */
static int check_text(const struct platform *platform, const char *what, const char *text, size_t least) {
    size_t length = 0;
    while (text[length] > ' ' && text[length] < 127)
        length++;
    if (text[length] == '\0' && length >= least && length <= TEXT_MAX)
        return 0;
    return plugin_refuse(platform->message, -EINVAL,
                         "%s '%.128s' is not possible in a platform of SimGrid; expected %zu to "
                         "%d ASCII characters without blanks",
                         what, text, least, (int)TEXT_MAX);
}

/* ---- Speeds, from a linear model of a kernel with a fit for each host: what a unit of the term of the
 * highest degree (m*n*k of dgemm) takes is FLOP / speed. Groups of one host (its cores) are averaged: a host
 * of SimGrid has one speed for all of its cores. */

static int degree_of(const struct model_term *term) {
    int degree = 0;
    for (size_t f = 0; f < term->factor_count; f++)
        degree += term->factors[f].level || term->factors[f].function ? 0 : term->factors[f].power;
    return degree;
}

/* The term of the highest degree, whose coefficient gives the speed. -EINVAL: there is none, or several. */
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
                         "no term of %.128s gives the speed; expected a single term of the "
                         "highest degree, such as m*n*k",
                         model->file);
}

/* The column of groups that names hosts. -EINVAL: there is none. */
static int find_column(const struct model *model, size_t *ret, struct plugin_message *message) {
    *ret = 0;
    for (size_t j = 0; j < model->by_count; j++)
        if (strcasecmp(model->by[j], "node") == 0 || strcasecmp(model->by[j], "host") == 0) {
            *ret = j;
            return 0;
        }
    if (model->by_count == 1)
        return 0;
    return plugin_refuse(message, -EINVAL,
                         "%.128s has %s; expected a fit for each host ('assay fit --by node')", model->file,
                         model->by_count ? "groups, but none of their columns is called node or host"
                                         : "a single fit for all hosts");
}

static struct host *find_host(struct speeds *speeds, const char *name) {
    for (size_t i = speeds->count; i-- > 0;)
        if (strcmp(speeds->hosts[i].name, name) == 0)
            return &speeds->hosts[i];
    speeds->hosts[speeds->count] = (struct host){.name = name};
    return &speeds->hosts[speeds->count++];
}

/* The speed of each host: FLOP over the mean coefficient of its groups. -EINVAL: a coefficient is not above
 * 0. The caller frees RET->hosts. */
static int read_speeds(const struct model *model, double flop, struct speeds *ret,
                       struct plugin_message *message) {
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
                                 "the group '%.128s' of %.128s has the coefficient %g s for the term "
                                 "%.128s; expected a coefficient above 0",
                                 group->name, model->file, seconds, model->terms[term].name);
        struct host *host = find_host(ret, group->labels[by]);
        host->seconds += seconds;
        host->groups++;
    }
    for (size_t i = 0; i < ret->count; i++) {
        struct host *host = &ret->hosts[i];
        host->speed = flop / (host->seconds / (double)host->groups);
        ret->mean += host->speed / (double)ret->count;
    }
    return 0;
}

/* ---- Platforms that cannot be simulated */

/* -EINVAL unless hosts are given in one way: equal hosts by options, or hosts of a model. */
static int check_hosts(const struct platform *platform) {
    static const enum option alike[] = {HOSTS, RADICAL, PREFIX, SUFFIX, SPEED, FAT_TREE};
    const struct plugin_value *set = platform->options;
    const struct speeds *speeds = &platform->speeds;
    int r = 0;
    for (size_t i = 0; speeds->count > 0 && i < sizeof alike / sizeof *alike; i++)
        if (set[alike[i]].is_set)
            return plugin_refuse(platform->message, -EINVAL,
                                 "'%s' describes equal hosts, but the model 'speeds' gives each host "
                                 "its own speed; remove one",
                                 options[alike[i]].name);
    for (size_t i = 0; r == 0 && i < speeds->count; i++)
        r = check_text(platform, "the host", speeds->hosts[i].name, 1);
    if (speeds->count == 0 && set[HOSTS].is_set == set[RADICAL].is_set)
        return plugin_refuse(platform->message, -EINVAL,
                             "the number of hosts is %s; set either 'hosts' or 'radical', or give a "
                             "model 'speeds' with a fit for each host",
                             set[HOSTS].is_set ? "set twice" : "not known");
    for (enum option option = RADICAL; r == 0 && option <= FAT_TREE; option++)
        if (set[option].text && options[option].type == PLUGIN_TEXT)
            r = check_text(platform, options[option].name, set[option].text, 0);
    return r;
}

/* -EINVAL unless a latency and a bandwidth are given together; FIRST is the option of the latency. */
static int check_link(const struct platform *platform, enum option first) {
    bool missing = isnan(number(platform, first));
    if (missing == isnan(number(platform, first + 1)))
        return 0;
    return plugin_refuse(platform->message, -EINVAL, "'%s' is set without '%s'; set both or neither",
                         options[first + missing].name, options[first + !missing].name);
}

/* Checks hosts and links, and computes the latency of a host's link. */
static int check_platform(struct platform *platform) {
    double latency = platform->network.latency, shared = number(platform, BACKBONE_LATENCY);
    int r = check_hosts(platform);
    r = r < 0 ? r : check_link(platform, LOOPBACK_LATENCY);
    r = r < 0 ? r : check_link(platform, BACKBONE_LATENCY);
    if (r < 0)
        return r;
    if (isnan(latency) || isnan(platform->network.bandwidth))
        return plugin_refuse(platform->message, -EINVAL,
                             "the %s between two hosts is not known; give a model 'network', or set "
                             "'latency' and 'bandwidth'",
                             isnan(latency) ? "latency" : "bandwidth");
    if (shared > latency || (shared >= 0 && platform->options[FAT_TREE].text))
        return plugin_refuse(platform->message, -EINVAL,
                             "the backbone has a latency of %g s; expected at most %g s, the "
                             "latency between two hosts, and no backbone with a fat tree",
                             shared, latency);
    platform->link_latency = (latency - (shared >= 0 ? shared : 0)) / 2;
    return 0;
}

/* ---- Configuration */

/* Writes a setting of SimGrid, NAME=VALUE, as a <prop>. -EINVAL: it has no name. */
static int put_setting(const struct platform *platform, const char *setting) {
    char name[TEXT_MAX + 1] = "";
    const char *sign = strchr(setting, '=');
    int r = check_text(platform, "the setting", setting, 1);
    if (r < 0)
        return r;
    if (!sign || sign == setting)
        return plugin_refuse(platform->message, -EINVAL,
                             "config: '%.128s' is not a setting of SimGrid; expected NAME=VALUE", setting);
    memcpy(name, setting, (size_t)(sign - setting));
    put(platform, "    <prop id=\"%s\" value=\"%s\"/>\n", name, sign + 1);
    return 0;
}

/* Writes the configuration: SMPI's tables, the speed of the measuring host, and the user's settings. */
static int put_configuration(const struct platform *platform) {
    const struct plugin_value *config = &platform->options[CONFIG];
    put(platform, "  <config id=\"General\">\n");
    int r = network_print(&platform->network, config, platform->output, platform->message);
    /* On a host of this speed MPI code takes as long as where it is run. */
    if (!network_is_set(config, "smpi/host-speed"))
        put(platform, "    <prop id=\"smpi/host-speed\" value=\"%gf\"/>\n",
            platform->speeds.count > 0 ? platform->speeds.mean : number(platform, SPEED));
    for (size_t i = 0; r == 0 && i < config->count; i++)
        r = put_setting(platform, config->texts[i]);
    put(platform, "  </config>\n");
    return r;
}

/* ---- Hosts and links */

/* Writes equal hosts as a <cluster>. */
static void put_cluster(const struct platform *platform) {
    const struct plugin_value *set = platform->options;
    char radical[32];
    snprintf(radical, sizeof radical, "0-%.0f", set[HOSTS].number - 1);
    put(platform,
        "    <cluster id=\"cluster\" prefix=\"%s\" suffix=\"%s\" radical=\"%s\" speed=\"%gf\" "
        "core=\"%g\"\n             bw=\"%gBps\" lat=\"%gs\" sharing_policy=\"SPLITDUPLEX\"",
        set[PREFIX].text, set[SUFFIX].text, set[RADICAL].text ? set[RADICAL].text : radical,
        set[SPEED].number, set[CORES].number, platform->network.bandwidth, platform->link_latency);
    if (!isnan(set[LOOPBACK_LATENCY].number))
        put(platform, " loopback_bw=\"%gBps\" loopback_lat=\"%gs\"", set[LOOPBACK_BANDWIDTH].number,
            set[LOOPBACK_LATENCY].number);
    if (!isnan(set[BACKBONE_LATENCY].number))
        put(platform, " bb_bw=\"%gBps\" bb_lat=\"%gs\"", set[BACKBONE_BANDWIDTH].number,
            set[BACKBONE_LATENCY].number);
    if (set[FAT_TREE].text)
        put(platform, " topology=\"FAT_TREE\" topo_parameters=\"%s\"", set[FAT_TREE].text);
    put(platform, "/>\n");
}

/* Writes hosts with speeds of their own as a <zone>, whose routes must come last. */
static void put_zone(const struct platform *platform) {
    const struct plugin_value *set = platform->options;
    const struct speeds *speeds = &platform->speeds;
    bool loops = !isnan(set[LOOPBACK_LATENCY].number);
    put(platform, "    <zone id=\"cluster\" routing=\"Cluster\">\n");
    for (size_t i = 0; i < speeds->count; i++) {
        const char *name = speeds->hosts[i].name;
        put(platform,
            "      <host id=\"%s\" speed=\"%gf\" core=\"%g\"/>\n"
            "      <link id=\"link-%s\" bandwidth=\"%gBps\" latency=\"%gs\" "
            "sharing_policy=\"SPLITDUPLEX\"/>\n"
            "      <host_link id=\"%s\" up=\"link-%s_UP\" down=\"link-%s_DOWN\"/>\n",
            name, speeds->hosts[i].speed, set[CORES].number, name, platform->network.bandwidth,
            platform->link_latency, name, name, name);
        if (loops)
            put(platform,
                "      <link id=\"loopback-%s\" bandwidth=\"%gBps\" latency=\"%gs\" "
                "sharing_policy=\"FATPIPE\"/>\n",
                name, set[LOOPBACK_BANDWIDTH].number, set[LOOPBACK_LATENCY].number);
    }
    if (!isnan(set[BACKBONE_LATENCY].number))
        put(platform, "      <backbone id=\"backbone\" bandwidth=\"%gBps\" latency=\"%gs\"/>\n",
            set[BACKBONE_BANDWIDTH].number, set[BACKBONE_LATENCY].number);
    for (size_t i = 0; loops && i < speeds->count; i++)
        put(platform, "      <route src=\"%s\" dst=\"%s\"><link_ctn id=\"loopback-%s\"/></route>\n",
            speeds->hosts[i].name, speeds->hosts[i].name, speeds->hosts[i].name);
    put(platform, "    </zone>\n");
}

/* ---- The file */

/* Writes the head: source files with checksums, units. */
static void put_head(const struct platform *platform, const struct predict_inputs *inputs) {
    put(platform,
        "<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n");
    for (enum role role = NETWORK; role <= SPEEDS; role++) {
        const struct predict_source *source = inputs->model_counts[role] ? inputs->sources[role] : NULL;
        if (source)
            predict_print(platform->output, predict_comment,
                          "<!-- Written by %s from %s (SHA-256 %s)%s%s. -->\n", inputs->engine, source->file,
                          source->sha256, source->warning ? "; warning: " : "",
                          source->warning ? source->warning : "");
    }
    put(platform,
        "<platform version=\"4.1\">\n"
        "  <!-- Between two hosts: %g s and %g B/s, over two links of half the latency each. -->\n"
        "  <!-- Speeds are flop/s of a core. Tables: size in bytes, then s and s/byte (os, ois, or), or a "
        "factor (lat, bw). -->\n",
        platform->network.latency, platform->network.bandwidth);
}

/* Writes the platform. -EINVAL: it cannot be simulated. */
static int write_platform(struct platform *platform, const struct predict_inputs *inputs) {
    const struct plugin_value *set = platform->options;
    int r = 0;
    if (inputs->model_counts[NETWORK] > 0)
        r = network_open(inputs->models[NETWORK][0], set[GROUP].text, set[ROUND_TRIP].number > 0,
                         &platform->network, platform->message);
    if (r == 0 && inputs->model_counts[SPEEDS] > 0)
        r = read_speeds(inputs->models[SPEEDS][0], set[FLOP].number, &platform->speeds, platform->message);
    r = r < 0 ? r : check_platform(platform);
    if (r < 0)
        return r;
    put_head(platform, inputs);
    r = put_configuration(platform);
    put(platform, "  <zone id=\"world\" routing=\"Full\">\n");
    if (platform->speeds.count > 0)
        put_zone(platform);
    else
        put_cluster(platform);
    put(platform, "  </zone>\n</platform>\n");
    return r;
}

/* Writes the platform file of the given models and options. */
static int run(void *state, const struct predict_inputs *inputs, const struct plugin_value *parameters,
               double *ret_values, struct predict_output *output, struct plugin_message *message) {
    (void)state, (void)parameters, (void)ret_values;
    struct platform platform = {.options = inputs->options, .output = output, .message = message};
    platform.network.latency = inputs->options[LATENCY].number;
    platform.network.bandwidth = inputs->options[BANDWIDTH].number;
    int r = write_platform(&platform, inputs);
    free(platform.speeds.hosts);
    return r;
}

ASSAY_PREDICT_PLUGIN("simgrid", ASSAY_VERSION,
                     "a SimGrid platform with SMPI's tables and the speeds of hosts", .roles = roles,
                     .options = options, .suffix = ".xml", .run = run);
