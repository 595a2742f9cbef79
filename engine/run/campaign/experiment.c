#include "engine/run/campaign/experiment-bind.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The mapping as bound, before it becomes a struct experiment. */
struct written {
    char *name, *summary;
    const struct document_node *factors, *require, *responses, *tables, *options, *packages, *source, *setup,
        *run, *teardown, *maxima, *memory, *estimate, *model, *design;
    struct software_written software;
};

#define NODE(name_, member)                                                                                  \
    { .key = name_, .type = BIND_NODE, .offset = offsetof(struct written, member) }
#define MAPPING(name_, member)                                                                               \
    {                                                                                                        \
        .key = name_, .type = BIND_NODE, .offset = offsetof(struct written, member),                         \
        .kinds = 1 << DOCUMENT_MAPPING                                                                       \
    }

static const struct bind_field written_fields[] = {
    {.key = "name", .type = BIND_TEXT, .offset = offsetof(struct written, name), .required = true},
    {.key = "summary", .type = BIND_TEXT, .offset = offsetof(struct written, summary)},
    MAPPING("factors", factors),
    {.key = "require",
     .type = BIND_NODE,
     .offset = offsetof(struct written, require),
     .kinds = 1 << DOCUMENT_SEQUENCE},
    {.key = "responses",
     .type = BIND_NODE,
     .offset = offsetof(struct written, responses),
     .kinds = 1 << DOCUMENT_MAPPING,
     .required = true},
    MAPPING("tables", tables),
    MAPPING("options", options),
    NODE("packages", packages),
    SOFTWARE_FIELDS(struct written, software),
    MAPPING("source", source),
    NODE("setup", setup),
    {.key = "run", .type = BIND_NODE, .offset = offsetof(struct written, run), .required = true},
    NODE("teardown", teardown),
    MAPPING("maxima", maxima),
    NODE("memory", memory),
    NODE("estimate", estimate),
    MAPPING("model", model),
    NODE("design", design),
};
enum { WRITTEN_FIELD_COUNT = sizeof written_fields / sizeof *written_fields };

/* Whether programs may have an environment variable of that name: what is all capitals and has an underscore
 * (LD_PRELOAD, OMP_NUM_THREADS), ends as paths and flags do, or is one of those that every system has. */
static bool may_be_a_variable(const char *name) {
    static const char *const names[] = {"HOME",     "USER", "LOGNAME", "SHELL",  "PWD", "OLDPWD",
                                        "LANG",     "TERM", "TZ",      "TMPDIR", "TMP", "IFS",
                                        "HOSTNAME", "ENV",  "UID",     "CC",     "CXX", "FC"};
    size_t length = strlen(name);
    if (strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") < length)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return strchr(name, '_') || (length >= 4 && strcmp(name + length - 4, "PATH") == 0) ||
           (length >= 5 && strcmp(name + length - 5, "FLAGS") == 0);
}

/* Names become environment variables and parts of file names. */
int experiment_check_name(const struct document *document, const struct document_node *key, const char *what,
                          struct failure *failure) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t length = strspn(key->text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    if (!key->text[0] || !strchr(letters, key->text[0]) || key->text[length] || length > 64)
        return failure_input(
            failure, document->file, key->line, key->column,
            "'%s' cannot name %s, expected up to 64 letters, digits and underscores, a letter first",
            key->text, what);
    if (may_be_a_variable(key->text))
        return failure_input(failure, document->file, key->line, key->column,
                             "'%s' cannot name %s, since programs have environment variables of such names; "
                             "expected a lower-case letter in it",
                             key->text, what);
    return 0;
}

int experiment_check_count(const struct document *document, const struct document_node *node,
                           const char *what, struct failure *failure) {
    if (node->count <= EXPERIMENT_NAMES_MOST)
        return 0;
    return failure_input(failure, document->file, node->line, node->column, "%zu %s, expected at most %d",
                         node->count, what, EXPERIMENT_NAMES_MOST);
}

/* The names that every experiment has: columns of results.csv, and values of its commands. */
static const char *const reserved_names[] = {
    "unit",    "row",      "repetition", "order",      "block",
    "attempt", "node",     "core",       "start",      "start_monotonic",
    "cpus",    "hostfile", "run_nodes",  "node_cores", "node_memory"};

static bool is_reserved(const char *name) {
    for (size_t i = 0; i < sizeof reserved_names / sizeof *reserved_names; i++)
        if (strcmp(reserved_names[i], name) == 0)
            return true;
    char variable[CONTROL_VARIABLE_SIZE];
    for (size_t i = 0; i < CONTROL_FACTORS; i++)
        if (strcmp(control_variable(control_factors[i].name, variable), name) == 0)
            return true;
    return false;
}

/* Factors, responses, options and maxima share one space of names: they are columns, and what {name} and
 * $name mean. */
int experiment_check_name_is_free(const struct experiment *experiment, const struct document *document,
                                  const struct document_node *key, struct failure *failure) {
    const char *what = NULL;
    if (is_reserved(key->text))
        what = "a name that every experiment has";
    for (size_t i = 0; i < experiment->factor_count; i++)
        if (experiment->factors[i].name && strcmp(experiment->factors[i].name, key->text) == 0)
            what = "a factor";
    for (size_t i = 0; i < experiment->response_count; i++)
        if (experiment->responses[i].name && strcmp(experiment->responses[i].name, key->text) == 0)
            what = "a response";
    if (experiment_option_value(experiment, key->text))
        what = "an option";
    if (!what)
        return 0;
    return failure_input(failure, document->file, key->line, key->column,
                         "'%s' is %s already, expected another name", key->text, what);
}

/* ---- Expressions ----------------------------------------------------------------------------------------
 */

/* The names of the factors. The caller frees the array only. */
static const char **factor_names(const struct experiment *experiment) {
    const char **names = calloc(experiment->factor_count + 1, sizeof *names);
    for (size_t i = 0; names && i < experiment->factor_count; i++)
        names[i] = experiment->factors[i].name;
    return names;
}

static int parse_expression(const struct document *document, const struct document_node *node,
                            const char *what, const char *const *names, size_t count, struct expression **ret,
                            struct failure *failure) {
    if (node->kind != DOCUMENT_TEXT && node->kind != DOCUMENT_NUMBER)
        return failure_input(failure, document->file, node->line, node->column,
                             "'%s' is %s, expected an expression", what, document_kind_name(node->kind));
    return expression_parse(node->text, names, count, document->file, node->line, node->column, ret, failure);
}

static int bind_conditions(struct experiment *experiment, const struct document *document,
                           const struct document_node *node, struct failure *failure) {
    if (!node)
        return 0;
    int r = experiment_check_count(document, node, "conditions", failure);
    if (r < 0)
        return r;
    cleanup_free const char **names = factor_names(experiment);
    experiment->conditions = calloc(node->count ? node->count : 1, sizeof *experiment->conditions);
    if (!names || !experiment->conditions)
        return failure_memory(failure);
    for (size_t i = 0; r == 0 && i < node->count; i++)
        r = parse_expression(document, node->items[i], "require", names, experiment->factor_count,
                             &experiment->conditions[experiment->condition_count++], failure);
    return r;
}

static int bind_maxima(struct experiment *experiment, const struct document *document,
                       const struct document_node *node, struct failure *failure) {
    if (!node)
        return 0;
    int r = experiment_check_count(document, node, "maxima", failure);
    if (r < 0)
        return r;
    cleanup_free const char **names = factor_names(experiment);
    experiment->maxima = calloc(node->count ? node->count : 1, sizeof *experiment->maxima);
    if (!names || !experiment->maxima)
        return failure_memory(failure);
    for (size_t i = 0; r == 0 && i < node->count; i++) {
        struct experiment_maximum *maximum = &experiment->maxima[experiment->maximum_count++];
        r = experiment_check_name(document, node->keys[i], "a maximum", failure);
        if (r == 0)
            r = experiment_check_name_is_free(experiment, document, node->keys[i], failure);
        if (r == 0 && !(maximum->name = strdup(node->keys[i]->text)))
            r = failure_memory(failure);
        if (r == 0)
            r = parse_expression(document, node->items[i], maximum->name, names, experiment->factor_count,
                                 &maximum->expression, failure);
    }
    return r;
}

static int bind_costs(struct experiment *experiment, const struct document *document,
                      const struct written *written, struct failure *failure) {
    int r = 0;
    if (written->estimate) {
        cleanup_free const char **names = factor_names(experiment);
        if (!names)
            return failure_memory(failure);
        r = parse_expression(document, written->estimate, "estimate", names, experiment->factor_count,
                             &experiment->estimate, failure);
    }
    if (r == 0 && written->memory) {
        cleanup_free const char **names = xcalloc(experiment->maximum_count + 1, sizeof *names);
        for (size_t i = 0; i < experiment->maximum_count; i++)
            names[i] = experiment->maxima[i].name;
        r = parse_expression(document, written->memory, "memory", names, experiment->maximum_count,
                             &experiment->memory, failure);
    }
    return r;
}

/* ---- Run, source, model ---------------------------------------------------------------------------------
 */

struct written_run {
    const struct document_node *streamed, *command, *pass;
    const struct document_node *job; /* for experiment-job.h */
    char *placement;
    double timeout;
};
static const struct bind_field run_fields[] = {
    {.key = "streamed", .type = BIND_NODE, .offset = offsetof(struct written_run, streamed)},
    {.key = "command", .type = BIND_NODE, .offset = offsetof(struct written_run, command)},
    {.key = "pass", .type = BIND_NODE, .offset = offsetof(struct written_run, pass)},
    {.key = "placement", .type = BIND_TEXT, .offset = offsetof(struct written_run, placement)},
    {.key = "timeout",
     .type = BIND_QUANTITY,
     .offset = offsetof(struct written_run, timeout),
     .dimension = UNIT_TIME,
     .minimum = 1e-3,
     .maximum = 1e8},
#define JOB_FIELD(name_)                                                                                     \
    { .key = name_, .type = BIND_NODE, .offset = offsetof(struct written_run, job) }
    JOB_FIELD("nodes"),
    JOB_FIELD("ranks"),
    JOB_FIELD("ranks-per-node"),
    JOB_FIELD("threads"),
    JOB_FIELD("bind"),
    JOB_FIELD("mpirun"),
    JOB_FIELD("files"),
};
enum { RUN_FIELD_COUNT = sizeof run_fields / sizeof *run_fields };

static int bind_run(struct experiment *experiment, const struct document *document,
                    const struct document_node *node, struct failure *failure) {
    if (node->kind != DOCUMENT_MAPPING)
        return experiment_command_bind(document, node, "run", &experiment->run, failure);
    struct written_run written = {0};
    int r = bind_mapping(document, node, "run", run_fields, RUN_FIELD_COUNT, &written, failure);
    if (r == 0 && !written.streamed == !written.command)
        r = failure_input(failure, document->file, node->line, node->column,
                          "'run' has %s, expected one of 'streamed' and 'command'",
                          written.command ? "both" : "neither");
    if (r == 0) {
        experiment->streamed = written.streamed;
        r = experiment_command_bind(document, written.streamed ? written.streamed : written.command, "run",
                                    &experiment->run, failure);
    }
    if (r == 0)
        r = experiment_job_bind(experiment, document, node, &experiment->job, failure);
    experiment->timeout = written.timeout;
    experiment->placement_text = take_pointer(written.placement);
    const struct document_node *at = document_get(node, "placement");
    experiment->placement_line = at ? at->line : 0;
    experiment->placement_column = at ? at->column : 0;
    return r;
}

static const struct bind_field source_fields[] = {
    {.key = "git", .type = BIND_TEXT, .offset = offsetof(struct experiment_source, git)},
    {.key = "at", .type = BIND_TEXT, .offset = offsetof(struct experiment_source, at)},
    {.key = "folder", .type = BIND_TEXT, .offset = offsetof(struct experiment_source, folder)},
    {.key = "ignore", .type = BIND_TEXTS, .offset = offsetof(struct experiment_source, ignore)},
};
enum { SOURCE_FIELD_COUNT = sizeof source_fields / sizeof *source_fields };

/* "https://name:token@host/...", "https://token@host/...": the campaign goes into the archive byte for byte,
 * and secrets never do. In ssh URLs the part before the @ is a user's name. */
static bool has_secret(const char *url) {
    const char *authority = strstr(url, "://");
    if (!authority)
        return false;
    bool http = strncmp(url, "http", 4) == 0;
    authority += 3;
    size_t length = strcspn(authority, "/?#");
    const char *at = memchr(authority, '@', length);
    return at && (http || memchr(authority, ':', (size_t)(at - authority)));
}

static int bind_source(struct experiment *experiment, const struct document *document,
                       const struct document_node *node, const char *base_folder, struct failure *failure) {
    if (!node)
        return 0;
    struct experiment_source *source = &experiment->source;
    int r = bind_mapping(document, node, "source", source_fields, SOURCE_FIELD_COUNT, source, failure);
    if (r < 0)
        return r;
    if (!source->git == !source->folder || (source->at && !source->git) ||
        (source->ignore.count && !source->folder))
        return failure_input(failure, document->file, node->line, node->column,
                             "'source' expects either 'git' (with 'at' if wanted) or 'folder' (with 'ignore' "
                             "if wanted)");
    for (size_t i = 0; i < source->ignore.count; i++) { /* "build/", as for git, is a folder */
        char *end = source->ignore.items[i] + strlen(source->ignore.items[i]);
        if (end - source->ignore.items[i] > 1 && end[-1] == '/')
            end[-1] = '\0';
    }
    /* git would take these for options. */
    for (int i = 0; i < 2; i++) {
        const char *key = i == 0 ? "git" : "at", *value = i == 0 ? source->git : source->at;
        const struct document_node *at = document_get(node, key);
        if (value && (value[0] == '-' || value[0] == '\0'))
            return failure_input(failure, document->file, at->line, at->column,
                                 "'%s' is '%s', expected a name", key, value);
    }
    if (source->git && has_secret(source->git)) {
        const struct document_node *at = document_get(node, "git");
        return failure_input(
            failure, document->file, at->line, at->column,
            "the URL has a user's secret in it, which would be kept in the archive; expected one "
            "without (git's credential helpers keep secrets)");
    }
    if (source->folder && source->folder[0] != '/') {
        char *absolute = file_join(base_folder, source->folder);
        if (!absolute)
            return failure_memory(failure);
        free(source->folder);
        source->folder = realpath(absolute, NULL);
        if (source->folder)
            free(absolute);
        else
            source->folder = absolute;
    }
    if (source->folder) {
        const struct document_node *at = document_get(node, "folder");
        source->line = at->line;
        source->column = at->column;
    }
    return 0;
}

int experiment_check_source(const struct experiment *experiment, struct failure *failure) {
    const struct experiment_source *source = &experiment->source;
    if (!source->folder || source->recorded || file_is_folder(source->folder))
        return 0;
    return failure_input(failure, experiment->file, source->line, source->column,
                         "'%s' is not a folder that is there", source->folder);
}

static const struct bind_field model_fields[] = {
    {.key = "method",
     .type = BIND_TEXT,
     .offset = offsetof(struct experiment_model, method),
     .required = true},
    {.key = "response",
     .type = BIND_TEXT,
     .offset = offsetof(struct experiment_model, response),
     .required = true},
    {.key = "terms", .type = BIND_TEXT, .offset = offsetof(struct experiment_model, terms)},
    {.key = "table", .type = BIND_TEXT, .offset = offsetof(struct experiment_model, table)},
    {.key = "sizes", .type = BIND_TEXTS, .offset = offsetof(struct experiment_model, sizes)},
    {.key = "by", .type = BIND_TEXTS, .offset = offsetof(struct experiment_model, by)},
    {.key = "set", .type = BIND_TEXTS, .offset = offsetof(struct experiment_model, set)},
};
enum { MODEL_FIELD_COUNT = sizeof model_fields / sizeof *model_fields };

static int bind_model(struct experiment *experiment, const struct document *document,
                      const struct document_node *node, struct failure *failure) {
    if (!node)
        return 0;
    experiment->model = xcalloc(1, sizeof *experiment->model);
    int r =
        bind_mapping(document, node, "model", model_fields, MODEL_FIELD_COUNT, experiment->model, failure);
    if (r < 0)
        return r;
    for (size_t i = 0; i < experiment->response_count; i++)
        if (strcmp(experiment->responses[i].name, experiment->model->response) == 0 &&
            experiment->responses[i].type == EXPERIMENT_RESPONSE_NUMBER)
            return 0;
    const struct document_node *at = document_get(node, "response");
    return failure_input(failure, document->file, at->line, at->column,
                         "'%s' is not a response of this experiment that is a number",
                         experiment->model->response);
}

int experiment_bind_packages(struct experiment *experiment, const struct document *document,
                             const struct document_node *node, struct failure *failure) {
    if (!node)
        return 0;
    for (size_t i = 0; i < experiment->packages.count; i++)
        free(experiment->packages.items[i]);
    free(experiment->packages.items);
    experiment->packages = (struct bind_texts){0};
    struct bind_field field = {.key = "packages", .type = BIND_TEXTS};
    int r = bind_value(document, node, &field, &experiment->packages, failure);
    for (size_t i = 0; r == 0 && i < experiment->packages.count; i++) {
        const char *name = experiment->packages.items[i];
        size_t length = strlen(name);
        /* Debian Policy 5.6.1; apt would take a dash at the end for "remove". */
        if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789+-.") != length || length < 2 ||
            name[length - 1] == '-' || strchr("+-.", name[0]))
            r = failure_input(failure, document->file, node->line, node->column,
                              "'%s' is not the name of a Debian package", name);
    }
    return r;
}

/* ---- The whole -------------------------------------------------------------------------------------------
 */

int experiment_name_check(const char *name, const char *file, size_t line, size_t column,
                          struct failure *failure) {
    size_t length = strlen(name);
    if (length > 0 && length <= 64 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == length)
        return 0;
    return failure_input(
        failure, file, line, column,
        "'%s' cannot name an experiment, expected up to 64 lower-case letters, digits, - and _", name);
}

int experiment_from_node(const struct document *document, const struct document_node *node,
                         const char *base_folder, struct experiment **ret, struct failure *failure) {
    struct experiment *experiment = xcalloc(1, sizeof *experiment);
    experiment->file = document->file;
    experiment->source_document = document;
    struct written written = {0};
    int r =
        bind_mapping(document, node, "experiment", written_fields, WRITTEN_FIELD_COUNT, &written, failure);
    if (r == 0) {
        const struct document_node *at = document_get(node, "name");
        r = experiment_name_check(written.name, document->file, at->line, at->column, failure);
    }
    experiment->name = take_pointer(written.name);
    experiment->summary = take_pointer(written.summary);
    experiment->design_node = written.design;
    if (r == 0)
        r = experiment_bind_factors(experiment, document, written.factors, failure);
    if (r == 0)
        r = bind_run(experiment, document, written.run, failure);
    if (r == 0)
        r = experiment_bind_tables(experiment, document, written.tables, failure);
    if (r == 0)
        r = experiment_bind_responses(experiment, document, written.responses, failure);
    if (r == 0)
        r = experiment_bind_pass(experiment, document, document_get(written.run, "pass"), failure);
    if (r == 0)
        r = experiment_bind_options(experiment, document, written.options, failure);
    if (r == 0)
        r = bind_conditions(experiment, document, written.require, failure);
    if (r == 0)
        r = bind_maxima(experiment, document, written.maxima, failure);
    if (r == 0)
        r = bind_costs(experiment, document, &written, failure);
    if (r == 0)
        r = experiment_bind_packages(experiment, document, written.packages, failure);
    if (r == 0)
        r = software_settings_bind(document, &written.software, &experiment->software, failure);
    if (r == 0)
        r = bind_source(experiment, document, written.source, base_folder, failure);
    if (r == 0)
        r = experiment_commands_bind(document, written.setup, "setup", &experiment->setup,
                                     &experiment->setup_count, failure);
    if (r == 0)
        r = experiment_commands_bind(document, written.teardown, "teardown", &experiment->teardown,
                                     &experiment->teardown_count, failure);
    if (r == 0)
        r = bind_model(experiment, document, written.model, failure);
    bind_clear(written_fields, WRITTEN_FIELD_COUNT, &written);
    if (r < 0) {
        experiment_free(experiment);
        return r;
    }
    *ret = experiment;
    return 0;
}

const char *experiment_placement_name(enum experiment_placement placement) {
    static const char *const names[] = {"core", "node", "job"};
    return names[placement];
}

static int refuse_placement(const struct experiment *experiment, const char *expected,
                            struct failure *failure) {
    return failure_input(failure, experiment->file, experiment->placement_line, experiment->placement_column,
                         "'placement' is '%s', expected %s", experiment->placement_text, expected);
}

int experiment_resolve(struct experiment *experiment, struct failure *failure) {
    experiment->placement = EXPERIMENT_PLACEMENT_NODE;
    const char *text = experiment->placement_text;
    if (!text)
        return 0;
    size_t length = strlen(text);
    if (length > 2 && text[0] == '{' && text[length - 1] == '}') {
        cleanup_free char *name = strndup(text + 1, length - 2);
        text = name ? experiment_option_value(experiment, name) : NULL;
    }
    if (text && strcmp(text, "job") == 0)
        experiment->placement = EXPERIMENT_PLACEMENT_JOB;
    else if (text && strcmp(text, "core") == 0)
        experiment->placement = EXPERIMENT_PLACEMENT_CORE;
    else if (!text || strcmp(text, "node") != 0)
        return refuse_placement(experiment, "core, node, job, or an option that is one of them", failure);
    if (experiment->placement == EXPERIMENT_PLACEMENT_CORE && experiment_has_ranks(experiment))
        return refuse_placement(experiment, "node or job, since 'run' has ranks", failure);
    if (experiment->placement == EXPERIMENT_PLACEMENT_JOB && experiment->streamed)
        return refuse_placement(experiment, "core or node, since the kernel is streamed", failure);
    return 0;
}

int experiment_add_package(struct experiment *experiment, const char *name, struct failure *failure) {
    struct bind_texts *packages = &experiment->packages;
    for (size_t i = 0; i < packages->count; i++)
        if (strcmp(packages->items[i], name) == 0)
            return 0;
    char **items = xrealloc(packages->items, (packages->count + 1) * sizeof *items);
    packages->items = items;
    if (!(items[packages->count] = strdup(name)))
        return failure_memory(failure);
    packages->count++;
    return 0;
}

void experiment_free(struct experiment *experiment) {
    if (!experiment)
        return;
    for (size_t i = 0; i < experiment->factor_count; i++)
        design_factor_clear(&experiment->factors[i]);
    free(experiment->factors);
    for (size_t i = 0; i < experiment->condition_count; i++)
        expression_free(experiment->conditions[i]);
    free(experiment->conditions);
    experiment_tables_clear(experiment);
    experiment_responses_clear(experiment);
    expression_free(experiment->pass);
    experiment_options_clear(experiment);
    for (size_t i = 0; i < experiment->maximum_count; i++) {
        free(experiment->maxima[i].name);
        expression_free(experiment->maxima[i].expression);
    }
    free(experiment->maxima);
    expression_free(experiment->memory);
    expression_free(experiment->estimate);
    for (size_t i = 0; i < experiment->packages.count; i++)
        free(experiment->packages.items[i]);
    free(experiment->packages.items);
    software_settings_clear(&experiment->software);
    bind_clear(source_fields, SOURCE_FIELD_COUNT, &experiment->source);
    free(experiment->source.recorded);
    experiment_commands_free(experiment->setup, experiment->setup_count);
    experiment_commands_free(experiment->teardown, experiment->teardown_count);
    experiment_command_clear(&experiment->run);
    experiment_job_clear(&experiment->job);
    if (experiment->model)
        bind_clear(model_fields, MODEL_FIELD_COUNT, experiment->model);
    free(experiment->model);
    free(experiment->placement_text);
    free(experiment->name);
    free(experiment->summary);
    free(experiment->folder);
    document_free(experiment->document);
    free(experiment);
}
