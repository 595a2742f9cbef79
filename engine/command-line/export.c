/* assay export: models in, files for other programs out. */
#include "engine/command-line/output.h"
#include "engine/command-line/verb.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/plugin/kernel-header.h"
#include "engine/plugin/model.h"
#include "engine/plugin/simgrid-hosts.h"
#include "engine/plugin/simgrid-network.h"
#include "engine/plugin/simgrid-platform.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MODELS_MAX = 64,
    SETTINGS_MAX = 64,
    OUTPUT_BYTES_MAX = 1 << 28,
};

/* The models that were named, and where they come from. */
struct inputs {
    struct model *models[MODELS_MAX];
    char *origins[MODELS_MAX]; /* owned: "smpi.json (SHA-256 ...)" */
    char *names[MODELS_MAX];   /* owned; of kernels */
    const char *paths[MODELS_MAX];
    size_t count;
};

static void inputs_clear(struct inputs *inputs) {
    for (size_t i = 0; i < inputs->count; i++) {
        model_free(inputs->models[i]);
        free(inputs->origins[i]);
        free(inputs->names[i]);
    }
}

static int read_input(struct inputs *inputs, const char *path, struct failure *failure) {
    size_t i = inputs->count++;
    char sha256[HASH_HEX_SIZE];
    inputs->paths[i] = path;
    int r = model_read(path, &inputs->models[i], failure);
    r = r < 0 ? r : hash_file(path, sha256, NULL, failure);
    if (r < 0)
        return r;
    inputs->origins[i] =
        text_format("Written by assay %s from %s (SHA-256 %s).", ASSAY_VERSION, file_base_name(path), sha256);
    return inputs->origins[i] ? 0 : failure_memory(failure);
}

static int check_count(const struct verb_arguments *arguments, struct failure *failure) {
    if (arguments->operand_count - 1 <= MODELS_MAX)
        return 0;
    return failure_input(failure, NULL, 0, 0, "%zu models were given; expected at most %d",
                         arguments->operand_count - 1, (int)MODELS_MAX);
}

static int write_output(const struct verb_arguments *arguments, const struct inputs *inputs,
                        const struct text *text, struct failure *failure) {
    const char *path = verb_value(arguments, "--output");
    if (!path) {
        fwrite(text->bytes, 1, text->length, stdout);
        return 0;
    }
    cleanup(file_output_clear) struct file_output output = FILE_OUTPUT_NONE;
    int r = output_check(path, inputs->paths, inputs->count, failure);
    r = r < 0 ? r : file_output_open(path, 0666, &output, failure);
    r = r < 0 ? r : file_output_write(&output, text->bytes, text->length, failure);
    return r < 0 ? r : file_output_commit(&output, failure);
}

/* ---- Values */

/* The value of OPTION in *RET; untouched when it is not given. */
static int read_quantity(const struct verb_arguments *arguments, const char *option,
                         enum unit_dimension dimension, double least, double *ret, struct failure *failure) {
    const char *text = verb_value(arguments, option);
    double value;
    if (!text)
        return 0;
    if (!unit_parse(text, dimension, &value))
        return failure_input(failure, NULL, 0, 0, "%s: '%.128s' is not %s", option, text,
                             unit_expectation(dimension));
    if (!(value >= least) || !isfinite(value))
        return failure_input(failure, NULL, 0, 0, "%s: '%.128s' is out of range; expected at least %g %s",
                             option, text, least, unit_symbol(dimension));
    *ret = value;
    return 0;
}

static int read_whole(const struct verb_arguments *arguments, const char *option, int64_t most, int *ret,
                      struct failure *failure) {
    const char *text = verb_value(arguments, option);
    int64_t value;
    if (!text)
        return 0;
    if (!number_parse_int64(text, strlen(text), &value) || value < 1 || value > most)
        return failure_input(failure, NULL, 0, 0, "%s: '%.128s' is not a whole number from 1 to %lld", option,
                             text, (long long)most);
    *ret = (int)value;
    return 0;
}

/* "1e9", "38.4Gflop/s", "38.4 Gf". */
static int read_speed(const struct verb_arguments *arguments, double *ret, struct failure *failure) {
    static const char *const prefixes = "kMGTP";
    const char *text = verb_value(arguments, "--speed");
    if (!text)
        return 0;
    size_t length = strlen(text), number = length;
    double scale = 1, value;
    if (length >= 6 && strcmp(text + length - 6, "flop/s") == 0)
        number = length - 6;
    else if (length >= 1 && text[length - 1] == 'f')
        number = length - 1;
    const char *prefix = number < length && number > 0 ? strchr(prefixes, text[number - 1]) : NULL;
    if (prefix) {
        number--;
        scale = pow(1000, (double)(prefix - prefixes) + 1);
    }
    while (number > 0 && text[number - 1] == ' ')
        number--;
    if (!number_parse_double(text, number, &value) || !(value * scale > 0) || !isfinite(value * scale))
        return failure_input(failure, NULL, 0, 0,
                             "--speed: '%.128s' is not a speed, such as 38.4Gflop/s or 1e9", text);
    *ret = value * scale;
    return 0;
}

/* ---- assay export simgrid */

struct simgrid {
    struct inputs inputs;
    struct simgrid_network *network; /* owned: large */
    struct simgrid_hosts hosts;
    struct simgrid_base base;
    struct simgrid_setting settings[SETTINGS_MAX];
    char *setting_names[SETTINGS_MAX]; /* owned */
    char radical[32];
    struct simgrid_platform platform;
};

static void simgrid_clear(struct simgrid *simgrid) {
    inputs_clear(&simgrid->inputs);
    simgrid_hosts_clear(&simgrid->hosts);
    free(simgrid->network);
    for (size_t i = 0; i < simgrid->platform.setting_count; i++)
        free(simgrid->setting_names[i]);
}

/* Names of SimGrid's configuration are such as smpi/os. */
static int read_settings(const struct verb_arguments *arguments, struct simgrid *simgrid,
                         struct failure *failure) {
    const char *text;
    int r = verb_check_settings(arguments, "--config", failure);
    if (r < 0)
        return r;
    for (size_t k = 0; (text = verb_value_at(arguments, "--config", k)); k++) {
        const char *equals = strchr(text, '=');
        size_t length = equals ? (size_t)(equals - text) : 0;
        bool good = length > 0 && text_invalid_utf8(text, strlen(text)) == strlen(text);
        for (size_t i = 0; good && text[i]; i++)
            good = i < length ? isalnum((unsigned char)text[i]) || strchr("-_/", text[i]) != NULL
                              : (unsigned char)text[i] >= ' ' && text[i] != 127;
        if (!good || k == SETTINGS_MAX)
            return failure_input(failure, NULL, 0, 0,
                                 "--config: '%.128s' is not NAME=VALUE, such as network/model=SMPI, at most "
                                 "%d times",
                                 text, (int)SETTINGS_MAX);
        simgrid->setting_names[k] = xstrndup(text, length);
        simgrid->platform.setting_count = k + 1;
        simgrid->settings[k] = (struct simgrid_setting){simgrid->setting_names[k], equals + 1};
    }
    simgrid->platform.settings = simgrid->settings;
    return 0;
}

static int read_links(const struct verb_arguments *arguments, struct simgrid *simgrid,
                      struct failure *failure) {
    struct simgrid_platform *platform = &simgrid->platform;
    const struct {
        const char *option;
        enum unit_dimension dimension;
        double least, *value;
    } links[] = {
        {"--latency", UNIT_TIME, 1e-15, &simgrid->base.latency},
        {"--bandwidth", UNIT_BANDWIDTH, 1e-3, &simgrid->base.bandwidth},
        {"--loopback-latency", UNIT_TIME, 0, &platform->loopback_latency},
        {"--loopback-bandwidth", UNIT_BANDWIDTH, 1e-3, &platform->loopback_bandwidth},
        {"--backbone-latency", UNIT_TIME, 0, &platform->backbone_latency},
        {"--backbone-bandwidth", UNIT_BANDWIDTH, 1e-3, &platform->backbone_bandwidth},
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof links / sizeof *links; i++) {
        *links[i].value = NAN;
        r = read_quantity(arguments, links[i].option, links[i].dimension, links[i].least, links[i].value,
                          failure);
    }
    return r;
}

static int read_hosts(const struct verb_arguments *arguments, struct simgrid *simgrid,
                      struct failure *failure) {
    struct simgrid_platform *platform = &simgrid->platform;
    const char *prefix = verb_value(arguments, "--prefix"), *suffix = verb_value(arguments, "--suffix");
    int hosts = 0;
    platform->prefix = prefix ? prefix : "node-";
    platform->suffix = suffix ? suffix : "";
    platform->radical = verb_value(arguments, "--radical");
    platform->fat_tree = verb_value(arguments, "--fat-tree");
    platform->exact_breaks = verb_switch(arguments, "--exact-breaks");
    platform->cores = 1;
    platform->speed = 1e9;
    int r = read_whole(arguments, "--hosts", SIMGRID_HOSTS_MAX, &hosts, failure);
    r = r < 0 ? r : read_whole(arguments, "--cores", 1 << 20, &platform->cores, failure);
    r = r < 0 ? r : read_speed(arguments, &platform->speed, failure);
    if (r < 0)
        return r;
    if (platform->radical && hosts > 0)
        return failure_input(failure, NULL, 0, 0, "--hosts and --radical both say how many hosts there are");
    if (!platform->radical && hosts > 0) {
        snprintf(simgrid->radical, sizeof simgrid->radical, "0-%d", hosts - 1);
        platform->radical = simgrid->radical;
    }
    return 0;
}

/* Each model is either the network's or the hosts'. */
static int use_models(const struct verb_arguments *arguments, struct simgrid *simgrid,
                      struct failure *failure) {
    double flop = 2;
    int r = read_quantity(arguments, "--flop", UNIT_NONE, 1e-300, &flop, failure);
    for (size_t i = 0; r == 0 && i < simgrid->inputs.count; i++) {
        const struct model *model = simgrid->inputs.models[i];
        bool network = simgrid_network_is(model_view(model));
        if (network ? simgrid->network != NULL : simgrid->hosts.count > 0)
            return failure_input(failure, simgrid->inputs.paths[i], 0, 0,
                                 "this is the second model of the %s; expected one",
                                 network ? "network" : "hosts");
        if (!network) {
            r = simgrid_hosts_read(model, verb_value(arguments, "--host-column"), flop, &simgrid->hosts,
                                   failure);
            continue;
        }
        simgrid->network = xmalloc(sizeof *simgrid->network);
        r = simgrid_network_read(model, verb_value(arguments, "--group"), &simgrid->base, simgrid->network,
                                 failure);
    }
    return r;
}

/* What options and models together leave open, or say twice. */
static int complete(const struct verb_arguments *arguments, struct simgrid *simgrid,
                    struct failure *failure) {
    struct simgrid_platform *platform = &simgrid->platform;
    platform->network = simgrid->network;
    platform->hosts = simgrid->hosts.count > 0 ? &simgrid->hosts : NULL;
    platform->latency = simgrid->network ? simgrid->network->latency : simgrid->base.latency;
    platform->bandwidth = simgrid->network ? simgrid->network->bandwidth : simgrid->base.bandwidth;
    platform->origins = (const char *const *)simgrid->inputs.origins;
    platform->origin_count = simgrid->inputs.count;
    if (isnan(platform->latency) || isnan(platform->bandwidth))
        return failure_input(failure, NULL, 0, 0, "no model tells the %s between two hosts; say it with --%s",
                             isnan(platform->latency) ? "latency" : "bandwidth",
                             isnan(platform->latency) ? "latency" : "bandwidth");
    static const char *const alike[] = {"--radical", "--hosts", "--prefix", "--suffix", "--speed"};
    for (size_t i = 0; platform->hosts && i < sizeof alike / sizeof *alike; i++)
        if (verb_value(arguments, alike[i]))
            return failure_input(failure, NULL, 0, 0,
                                 "%s is for hosts that are alike; a model tells the hosts and their speeds",
                                 alike[i]);
    if (!platform->hosts && !platform->radical)
        return failure_input(failure, NULL, 0, 0,
                             "how many hosts? say it with --hosts or --radical, or give a model with one fit "
                             "for each host");
    return 0;
}

static int export_simgrid(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(simgrid_clear) struct simgrid simgrid = {0};
    cleanup(text_clear) struct text text;
    text_init(&text, OUTPUT_BYTES_MAX);
    simgrid.base.round_trip = verb_switch(arguments, "--round-trip");
    int r = read_links(arguments, &simgrid, failure);
    r = r < 0 ? r : read_hosts(arguments, &simgrid, failure);
    r = r < 0 ? r : read_settings(arguments, &simgrid, failure);
    for (size_t i = 1; r == 0 && i < arguments->operand_count; i++)
        r = read_input(&simgrid.inputs, arguments->operands[i], failure);
    r = r < 0 ? r : use_models(arguments, &simgrid, failure);
    r = r < 0 ? r : complete(arguments, &simgrid, failure);
    r = r < 0 ? r : simgrid_platform_write(&simgrid.platform, &text, failure);
    return r < 0 ? r : write_output(arguments, &simgrid.inputs, &text, failure);
}

/* ---- assay export kernels */

/* "NAME=MODEL", or MODEL, whose name is then the file's up to the first point, with _ for what C does not
 * know. */
static int read_kernel(struct inputs *inputs, const char *operand, struct failure *failure) {
    const char *equals = strchr(operand, '=');
    size_t word = strspn(operand, "abcdefghijklmnopqrstuvwxyz0123456789_");
    bool named = equals && equals == operand + word && word > 0;
    int r = read_input(inputs, named ? equals + 1 : operand, failure);
    if (r < 0)
        return r;
    size_t i = inputs->count - 1;
    const char *base = file_base_name(operand);
    char *name = inputs->names[i] = named ? strndup(operand, word) : strndup(base, strcspn(base, "."));
    if (!name)
        return failure_memory(failure);
    for (char *at = name; *at; at++)
        *at = isalnum((unsigned char)*at) ? (char)tolower((unsigned char)*at) : '_';
    for (size_t k = 0; k < i; k++)
        if (strcmp(inputs->names[k], name) == 0)
            return failure_input(failure, inputs->paths[i], 0, 0,
                                 "two kernels are called '%.64s'; NAME=MODEL gives another name", name);
    return 0;
}

static int export_kernels(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(inputs_clear) struct inputs inputs = {.count = 0};
    cleanup(text_clear) struct text text;
    struct kernel kernels[MODELS_MAX];
    text_init(&text, OUTPUT_BYTES_MAX);
    int r = 0;
    for (size_t i = 1; r == 0 && i < arguments->operand_count; i++)
        r = read_kernel(&inputs, arguments->operands[i], failure);
    if (r == 0 && inputs.count == 0)
        r = failure_input(failure, NULL, 0, 0, "no model of a kernel was given; expected [NAME=]MODEL");
    for (size_t i = 0; i < inputs.count; i++)
        kernels[i] = (struct kernel){inputs.names[i], inputs.models[i], inputs.origins[i]};
    r = r < 0 ? r
              : kernel_header_write(kernels, inputs.count, !verb_switch(arguments, "--no-noise"), &text,
                                    failure);
    return r < 0 ? r : write_output(arguments, &inputs, &text, failure);
}

/* ---- assay export hpl-smpi */

static int export_hpl_smpi(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(inputs_clear) struct inputs inputs = {.count = 0};
    cleanup(text_clear) struct text text;
    text_init(&text, OUTPUT_BYTES_MAX);
    if (arguments->operand_count != 2)
        return failure_input(failure, NULL, 0, 0, "%zu models were given; expected one, of dgemm",
                             arguments->operand_count - 1);
    int r = read_input(&inputs, arguments->operands[1], failure);
    if (r < 0)
        return r;
    const struct kernel kernel = {"dgemm", inputs.models[0], inputs.origins[0]};
    r = kernel_switch_write(&kernel, !verb_switch(arguments, "--no-noise"), &text, failure);
    return r < 0 ? r : write_output(arguments, &inputs, &text, failure);
}

static int run(const struct verb_arguments *arguments, struct failure *failure) {
    static const char *const words[] = {"simgrid", "kernels", "hpl-smpi"};
    const char *word = arguments->operands[0];
    int r = check_count(arguments, failure);
    if (r < 0)
        return r;
    if (strcmp(word, "simgrid") == 0)
        return export_simgrid(arguments, failure);
    if (strcmp(word, "kernels") == 0)
        return export_kernels(arguments, failure);
    if (strcmp(word, "hpl-smpi") == 0)
        return export_hpl_smpi(arguments, failure);
    const char *nearest = text_nearest(word, words, sizeof words / sizeof *words);
    return failure_input(failure, NULL, 0, 0, "there is no export '%.128s'; %s%s%s", word,
                         nearest ? "did you mean '" : "expected simgrid, kernels or hpl-smpi",
                         nearest ? nearest : "", nearest ? "'?" : "");
}

static const struct verb_option options[] = {
    {"--output", 'o', "FILE", "Write the file, instead of to standard output.", false},
    {"--hosts", 'n', "N", "simgrid: N hosts that are alike, numbered from 0.", false},
    {"--radical", 0, "LIST", "simgrid: the numbers of hosts that are alike: 1-16,20.", false},
    {"--prefix", 0, "TEXT", "simgrid: before the number of a host (node-).", false},
    {"--suffix", 0, "TEXT", "simgrid: after the number of a host.", false},
    {"--cores", 0, "N", "simgrid: cores of a host (1).", false},
    {"--speed", 0, "SPEED", "simgrid: of a core of hosts that are alike, such as 38.4Gflop/s (1Gflop/s).",
     false},
    {"--host-column", 0, "COLUMN",
     "simgrid: which of the columns that form the groups of the hosts' model names the host (node, host, or "
     "the "
     "first).",
     false},
    {"--flop", 0, "N",
     "simgrid: operations that a unit of the hosts' model's highest term stands for (2: m*n*k).", false},
    {"--group", 'g', "GROUP", "simgrid: the group of the network's model.", false},
    {"--latency", 0, "TIME", "simgrid: between two hosts, where the model does not tell it.", false},
    {"--bandwidth", 0, "BANDWIDTH", "simgrid: between two hosts, where the model does not tell it.", false},
    {"--round-trip", 0, NULL,
     "simgrid: the linear or piecewise model of messages is of the way there and back.", false},
    {"--loopback-latency", 0, "TIME", "simgrid: within a host.", false},
    {"--loopback-bandwidth", 0, "BANDWIDTH", "simgrid: within a host.", false},
    {"--backbone-latency", 0, "TIME",
     "simgrid: of a link that all messages share; part of the latency between two "
     "hosts.",
     false},
    {"--backbone-bandwidth", 0, "BANDWIDTH", "simgrid: of a link that all messages share.", false},
    {"--fat-tree", 0, "SHAPE", "simgrid: LEVELS;BELOW;ABOVE;LINKS, such as 2;16,4;1,2;1,4.", false},
    {"--exact-breaks", 0, NULL,
     "simgrid: tables change at the model's sizes to the byte, also as SMPI counts them.", false},
    {"--config", 'c', "NAME=VALUE", "simgrid: more of SimGrid's configuration.", true},
    {"--no-noise", 0, NULL, "kernels, hpl-smpi: means only.", false},
    {0},
};

const struct verb verb_export = {
    .name = "export",
    .summary = "write models as files of other programs: SimGrid, C",
    .synopsis = "assay export simgrid|kernels|hpl-smpi [[NAME=]MODEL]... [OPTIONS]",
    .description =
        "'simgrid' writes a platform for SimGrid (3.32; simgrid.dtd 4.1). The network comes from a model of "
        "kind "
        "'smpi' ('assay fit smpi'), with SMPI's tables of factors and costs, or from a linear or piecewise "
        "model of the durations of messages over their size, or from --latency and --bandwidth. The hosts "
        "are "
        "alike (--hosts), or come from a linear model of a kernel with one fit for each host ('assay fit "
        "--by "
        "node'): a host's speed is --flop over what a unit of the term of the highest degree takes there.\n"
        "\n"
        "'kernels' writes a C header with models of kernels, for a program whose kernels are replaced by "
        "their "
        "times: mean, standard deviation and a draw of each for a group (a host, a core) and sizes.\n"
        "\n"
        "'hpl-smpi' writes the model of dgemm for HPL on SMPI as T. Cornebize changed it for his thesis "
        "(github.com/Ezibenroc/hpl): the body of the function dgemm_time(M, N, K), a case for each node, or "
        "cpu of a node. Put it in place of src/blas/dgemm_model.c, which src/blas/HPL_dgemm.c includes, and "
        "compile HPL as before; in versions without that file it goes in place of all that stands between "
        "the "
        "braces of dgemm_time() in HPL_dgemm.c. It calls what HPL_dgemm.c defines above: get_nodeid(), the "
        "first number in the host's name, or get_cpuid(), 2 x node + rank modulo 2, so hosts of the platform "
        "are to be called as the model's nodes; and random_halfnormal_shifted() or random_normal(). Groups "
        "by "
        "cpu alone are the numbers of get_cpuid(): cpu 0 is then that of node 0 only.\n"
        "\n"
        "    assay export simgrid smpi.json --hosts 32 --cores 16 -o platform.xml\n"
        "    assay export simgrid smpi.json dgemm.json --loopback-latency=0.1us \\\n"
        "        --loopback-bandwidth=18GB/s\n"
        "    assay export kernels dgemm.json dtrsm=calls/dtrsm-2024.json -o kernels.h\n"
        "    assay export hpl-smpi dgemm.json -o src/blas/dgemm_model.c\n",
    .options = options,
    .operands_least = 1,
    .operands_most = SIZE_MAX,
    .run = run,
};
