#include "archive-format/layout.h"
#include "engine/run/campaign/experiment-columns.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/path.h"
#include "engine/foundation/secret.h"

#include <stdlib.h>
#include <string.h>

/* ---- Fields ----------------------------------------------------------------------------------------------
 */

static const char *expect_name(const char *key, const char *value) {
    size_t length = strlen(value);
    (void)key;
    return length > 0 && length <= 64 && strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789-_") == length
               ? NULL
               : "up to 64 lower-case letters, digits, - and _";
}

/* git would take it for an option. */
static const char *expect_word(const char *key, const char *value) {
    (void)key;
    return value[0] && value[0] != '-' ? NULL : "a name";
}

static const char *expect_bind(const char *key, const char *value) {
    (void)key;
    return value[0] == '{' || strcmp(value, "core") == 0 || strcmp(value, "none") == 0
               ? NULL
               : "core, none, or {OPTION} of an option whose value is core or none";
}

/* The end of the file's name in results/raw/, where "out" and "err" are what the unit printed. */
static const char *expect_kept_name(const char *key, const char *value) {
    static const char set[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t length = strlen(value);
    (void)key;
    return length > 0 && length <= 64 && strspn(value, set) == length && value[0] != '.' && value[0] != '-' &&
                   strcmp(value, "out") != 0 && strcmp(value, "err") != 0
               ? NULL
               : "the name of a file in the unit's working folder: up to 64 letters, digits, '.', '_' and "
                 "'-', "
                 "and neither out nor err";
}

#define LATER(key_) .key = key_, .type = BIND_LATER
#define MAPPING(key_) LATER(key_), .kinds = 1 << DOCUMENT_MAPPING

static const struct bind_field source_fields[] = {
    {BIND_ROW("git", BIND_TEXT, experiment_source, git), .expect = expect_word},
    {BIND_ROW("at", BIND_TEXT, experiment_source, at), .expect = expect_word},
    {BIND_ROW("folder", BIND_TEXT, experiment_source, folder)},
    {BIND_ROW("ignore", BIND_TEXTS, experiment_source, ignore)},
};

static const char *const best_names[] = {"most", "least", NULL};
static const struct bind_field answer_fields[] = {
    {BIND_ROW("response", BIND_TEXT, archive_answer, response), .required = true},
    {BIND_ROW("unit", BIND_TEXT, archive_answer, unit), .expect = experiment_expect_unit},
    {BIND_ROW("best", BIND_CHOICE, archive_answer, best), .required = true, .choices = best_names},
    {BIND_ROW("lines", BIND_TEXT, archive_answer, lines)},
    {BIND_ROW("sizes", BIND_TEXTS, archive_answer, sizes)},
    {BIND_ROW("share", BIND_TEXT, archive_answer, share)},
    {BIND_ROW("of", BIND_TEXT, archive_answer, of)},
};
enum { ANSWER_FIELD_COUNT = sizeof answer_fields / sizeof *answer_fields };

static const struct bind_word none[] = {{"none", 0}, {NULL, 0}};
static const struct bind_field run_fields[] = {
    {LATER("streamed")},
    {LATER("command")},
    {LATER("pass")},
    {BIND_ROW("placement", BIND_TEXT, experiment, placement_text)},
    {BIND_ROW("timeout", BIND_QUANTITY, experiment, timeout), .dimension = UNIT_TIME, .minimum = 1e-3,
     .maximum = 1e8},
    {BIND_ROW("idle-timeout", BIND_QUANTITY, experiment, idle_timeout), .dimension = UNIT_TIME, .minimum = 10,
     .maximum = 1e8, .words = none},
    {BIND_RANGED("overrun", BIND_NUMBER, experiment, overrun, 1, 1e6)},
    {.keys = experiment_count_names, .type = BIND_LATER},
    {BIND_ROW("bind", BIND_TEXT, experiment, job.bind), .expect = expect_bind},
    {BIND_ROW("mpirun", BIND_TEXTS, experiment, job.mpirun.arguments)},
    {LATER("files")},
    {BIND_ROW("keep", BIND_TEXTS, experiment, job.keep), .expect = expect_kept_name},
};
enum { RUN_FIELD_COUNT = sizeof run_fields / sizeof *run_fields };

static const struct bind_field fields[] = {
    {BIND_ROW("name", BIND_TEXT, experiment, name), .required = true, .expect = expect_name},
    {BIND_ROW("summary", BIND_TEXT, experiment, summary)},
    {MAPPING("factors")},
    {LATER("require"), .kinds = 1 << DOCUMENT_SEQUENCE},
    {MAPPING("responses"), .required = true},
    {MAPPING("tables")},
    {MAPPING("options")},
    {BIND_ROW("packages", BIND_TEXTS, experiment, packages), .expect = package_expectation},
    {BIND_ROW(NULL, BIND_MAPPING, experiment, software), BIND_FIELDS(software_fields)},
    {BIND_ROW("source", BIND_MAPPING, experiment, source), BIND_FIELDS(source_fields)},
    {BIND_ROW("inputs", BIND_TEXTS, experiment, inputs)},
    {BIND_ROW("sources", BIND_TEXTS, experiment, sources)},
    {LATER("setup")},
    {LATER("run"), .required = true},
    {LATER("teardown")},
    {MAPPING("maxima")},
    {LATER("memory")},
    {LATER("estimate")},
    {MAPPING("model")},
    {LATER("answer")}, /* a mapping, or "none" */
    {BIND_ROW("design", BIND_NODE, experiment, design_node)},
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

/* ---- Expressions -----------------------------------------------------------------------------------------
 */

/* Binds `require`: expressions of factors that every row of a design must fulfil. */
static int bind_conditions(const struct experiment_binding *binding, const struct document_node *root) {
    const struct document_node *node = document_get(root, "require");
    struct experiment *experiment = binding->experiment;
    cleanup_free const char **names = experiment_factor_names(experiment, 0);
    if (!node)
        return 0;
    if (node->count > EXPERIMENT_NAMES_MAX)
        return experiment_refuse(binding, node, "%zu conditions, expected at most %d", node->count,
                                 EXPERIMENT_NAMES_MAX);
    experiment->conditions = xcalloc(node->count + 1, sizeof *experiment->conditions);
    for (size_t i = 0; i < node->count; i++) {
        int r =
            experiment_bind_expression(binding, node->items[i], "require", names, experiment->factor_count,
                                       &experiment->conditions[experiment->condition_count++]);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Binds `estimate` (seconds, of factors) and `memory` (bytes, of maxima). Refused: `overrun` without
 * `estimate`. */
static int bind_costs(const struct experiment_binding *binding, const struct document_node *root) {
    struct experiment *experiment = binding->experiment;
    const struct document_node *estimate = document_get(root, "estimate"),
                               *memory = document_get(root, "memory");
    if (experiment->overrun > 0 && !estimate)
        return experiment_refuse(binding, document_get(document_get(root, "run"), "overrun"),
                                 "'overrun' is a multiple of the experiment's estimate; expected an "
                                 "'estimate' beside 'run'");
    cleanup_free const char **factors = experiment_factor_names(experiment, 0);
    cleanup_free const char **maxima = xcalloc(experiment->maximum_count + 1, sizeof *maxima);
    for (size_t i = 0; i < experiment->maximum_count; i++)
        maxima[i] = experiment->maxima[i].name;
    int r = !estimate ? 0
                      : experiment_bind_expression(binding, estimate, "estimate", factors,
                                                   experiment->factor_count, &experiment->estimate);
    if (r < 0 || !memory)
        return r;
    r = experiment_bind_expression(binding, memory, "memory", maxima, experiment->maximum_count,
                                   &experiment->memory);
    return r < 0 && experiment->maximum_count == 0
               ? failure_prefix(binding->failure,
                                "'memory' is an expression of names under 'maxima'; add 'maxima'")
               : r;
}

/* Binds `pass` of `run`: an expression of responses that says whether a unit's results are right. Responses
 * that are texts cannot be used in it. */
static int bind_pass(const struct experiment_binding *binding, const struct document_node *root) {
    const struct document_node *node = document_get(document_get(root, "run"), "pass");
    struct experiment *experiment = binding->experiment;
    cleanup_free const char **names = xcalloc(experiment->response_count + 1, sizeof *names);
    for (size_t i = 0; i < experiment->response_count; i++)
        names[i] = experiment->responses[i].about.name;
    if (!node)
        return 0;
    if (experiment->streamed)
        return experiment_refuse(binding, node,
                                 "an experiment with a streamed kernel cannot have 'pass'; let the "
                                 "kernel end with an error when its results are wrong");
    int r = experiment_bind_expression(binding, node, "pass", names, experiment->response_count,
                                       &experiment->pass);
    for (size_t i = 0; r == 0 && i < experiment->response_count; i++)
        if (experiment->responses[i].about.type == COLUMN_STRING && expression_uses(experiment->pass, i))
            r = experiment_refuse(binding, node,
                                  "'%s' is a text; expected numbers here, and 'pass: [...]' of the response "
                                  "itself with those of its choices that pass",
                                  names[i]);
    return r;
}

/* ---- Run, source, model ----------------------------------------------------------------------------------
 */

/* Binds `run`, which is a command or a mapping with one of `streamed` and `command`. */
static int bind_run(const struct experiment_binding *binding, const struct document_node *root) {
    const struct document_node *node = document_get(root, "run");
    struct experiment *experiment = binding->experiment;
    if (node->kind != DOCUMENT_MAPPING)
        return experiment_command_bind(binding->document, node, "run", &experiment->run, binding->failure);
    int r = bind_mapping(binding->document, node, "run", run_fields, RUN_FIELD_COUNT, experiment,
                         binding->failure);
    const struct document_node *streamed = document_get(node, "streamed"),
                               *command = document_get(node, "command"),
                               *placement = document_get(node, "placement");
    if (r == 0 && !streamed == !command)
        r = experiment_refuse(binding, node, "'run' has %s, expected one of 'streamed' and 'command'",
                              command ? "both" : "neither");
    if (r < 0)
        return r;
    experiment->streamed = streamed;
    experiment->placement_line = placement ? placement->line : 0;
    experiment->placement_column = placement ? placement->column : 0;
    r = experiment_command_bind(binding->document, streamed ? streamed : command, "run", &experiment->run,
                                binding->failure);
    return r < 0 ? r : experiment_job_bind(binding, node);
}

/* Checks `source` (git or folder, no password in the URL) and makes its folder absolute. A folder that does
 * not exist is kept as written and reported later. */
static int bind_source(const struct experiment_binding *binding, const struct document_node *root) {
    const struct document_node *node = document_get(root, "source");
    struct experiment_source *source = &binding->experiment->source;
    if (!node)
        return 0;
    if (!source->git == !source->folder || (source->at && !source->git) ||
        (source->ignore.count && !source->folder))
        return experiment_refuse(binding, node,
                                 "'source' expects either 'git' (with 'at' if wanted) or 'folder' (with "
                                 "'ignore' if wanted)");
    if (source->git && secret_is_text(source->git))
        return experiment_refuse(binding, document_get(node, "git"),
                                 "the URL contains a password or token, which the archive would show; "
                                 "remove it and let git's credential helper supply it");
    for (size_t i = 0; i < source->ignore.count; i++) { /* "build/", as for git, is a folder */
        char *pattern = source->ignore.items[i];
        size_t length = strlen(pattern);
        if (length > 1 && pattern[length - 1] == '/')
            pattern[length - 1] = '\0';
    }
    if (!source->folder)
        return 0;
    const struct document_node *at = document_get(node, "folder");
    cleanup_free char *written = source->folder;
    cleanup_free char *absolute =
        written[0] == '/' ? xstrdup(written) : xformat("%s/%s", binding->base_folder, written);
    source->folder = realpath(absolute, NULL);
    if (!source->folder)
        source->folder = take_pointer(absolute);
    source->line = at->line;
    source->column = at->column;
    return 0;
}

int experiment_check_source(const struct experiment *experiment, struct failure *failure) {
    const struct experiment_source *source = &experiment->source;
    if (!source->folder || source->recorded || file_is_folder(source->folder))
        return 0;
    return failure_input(failure, experiment->file, source->line, source->column, "there is no folder '%s'",
                         source->folder);
}

/* Binds `model`: the fit that the experiment suggests. Its response must be a number of the experiment, or of
 * the table it names. */
static int bind_model(const struct experiment_binding *binding, const struct document_node *root) {
    const struct document_node *node = document_get(root, "model");
    struct experiment *experiment = binding->experiment;
    if (!node)
        return 0;
    experiment->model = xcalloc(1, sizeof *experiment->model);
    int r = bind_mapping(binding->document, node, "model", archive_model_fields, ARCHIVE_MODEL_FIELDS,
                         experiment->model, binding->failure);
    if (r < 0)
        return r;
    const char *table = experiment->model->table;
    const struct experiment_response *columns = experiment->responses;
    size_t count = experiment->response_count, i = 0;
    if (table) {
        while (i < experiment->table_count && strcmp(experiment->tables[i].name, table) != 0)
            i++;
        if (i == experiment->table_count)
            return experiment_refuse(binding, document_get(node, "table"),
                                     "'%s' is not a table of this experiment", table);
        columns = experiment->tables[i].columns;
        count = experiment->tables[i].column_count;
    }
    for (i = 0; i < count; i++)
        if (strcmp(columns[i].about.name, experiment->model->response) == 0 &&
            columns[i].about.type == COLUMN_NUMBER)
            return 0;
    return experiment_refuse(binding, document_get(node, "response"), "'%s' is not a %s that is a number",
                             experiment->model->response,
                             table ? "column of that table" : "response of this experiment");
}

/* Checks the expression of `answer`, of numeric responses and factors. Without a unit of its own it gets that
 * of the response with its name, else 1. */
static int check_answer(const struct experiment_binding *binding, const struct document_node *node) {
    struct experiment *experiment = binding->experiment;
    struct archive_answer *answer = experiment->answer;
    size_t count = experiment->response_count, all = count + experiment->factor_count;
    cleanup_free const char **names = xcalloc(all + 1, sizeof *names);
    struct expression *expression = NULL;
    for (size_t i = 0; i < all; i++)
        names[i] =
            i < count ? experiment->responses[i].about.name : experiment->factors[i - count].about.name;
    int r = experiment_bind_expression(binding, node, "answer", names, all, &expression);
    for (size_t i = 0; r == 0 && i < all; i++) {
        bool is_text = i < count ? experiment->responses[i].about.type == COLUMN_STRING
                                 : experiment->factors[i - count].about.type == COLUMN_STRING;
        if (is_text && expression_uses(expression, i))
            r = experiment_refuse(binding, node, "'%s' is a text, which cannot be ranked; expected a number",
                                  names[i]);
        if (i < count && !answer->unit && strcmp(answer->response, names[i]) == 0)
            answer->unit = xstrdup(experiment->responses[i].about.unit);
    }
    expression_free(expression);
    experiment_use_unit_code((const char **)&answer->unit, "1");
    return r;
}

static bool has_number(const struct experiment *experiment, const char *response) {
    size_t i = 0;
    while (i < experiment->response_count && strcmp(experiment->responses[i].about.name, response) != 0)
        i++;
    return i < experiment->response_count && experiment->responses[i].about.type != COLUMN_STRING;
}

static bool has_factor(const struct experiment *experiment, const char *name) {
    size_t i = 0;
    while (i < experiment->factor_count && strcmp(experiment->factors[i].about.name, name) != 0)
        i++;
    return i < experiment->factor_count;
}

/* Binds `answer`: what rows are ranked by. 'none' means that nothing is ranked. */
static int bind_answer(const struct experiment_binding *binding, const struct document_node *root) {
    const struct document_node *node = document_get(root, "answer");
    struct experiment *experiment = binding->experiment;
    experiment->ranks_nothing = node && node->text && strcmp(node->text, "none") == 0;
    if (!node || experiment->ranks_nothing)
        return 0;
    experiment->answer = xcalloc(1, sizeof *experiment->answer);
    int r = bind_mapping(binding->document, node, "answer", answer_fields, ANSWER_FIELD_COUNT,
                         experiment->answer, binding->failure);
    for (size_t i = 0; r == 0 && i < experiment->answer->sizes.count; i++)
        if (!has_factor(experiment, experiment->answer->sizes.items[i]))
            r = experiment_refuse(binding, document_get(node, "sizes"),
                                  "'%s' is not a factor; expected the name of a factor",
                                  experiment->answer->sizes.items[i]);
    const struct archive_answer *answer = experiment->answer;
    if (r == 0 && answer->share && !has_number(experiment, answer->share))
        r = experiment_refuse(binding, document_get(node, "share"),
                              "'%s' is not a response that is a number; expected the name of one",
                              answer->share);
    return r < 0 ? r : check_answer(binding, document_get(node, "response"));
}

/* ---- The whole -------------------------------------------------------------------------------------------
 */

int experiment_name_check(const char *name, const char *file, size_t line, size_t column,
                          struct failure *failure) {
    const char *expected = expect_name("name", name);
    return expected ? failure_input(failure, file, line, column,
                                    "'%s' cannot name an experiment, expected %s", name, expected)
                    : 0;
}

static int bind_software(const struct experiment_binding *binding, const struct document_node *root) {
    return software_settings_finish(&binding->experiment->software, binding->document, root,
                                    binding->failure);
}

static int bind_commands(const struct experiment_binding *binding, const struct document_node *root) {
    struct experiment *experiment = binding->experiment;
    int r = experiment_commands_bind(binding->document, document_get(root, "setup"), "setup",
                                     &experiment->setup, &experiment->setup_count, binding->failure);
    return r < 0 ? r
                 : experiment_commands_bind(binding->document, document_get(root, "teardown"), "teardown",
                                            &experiment->teardown, &experiment->teardown_count,
                                            binding->failure);
}

/* Later ones look at earlier ones. Without a function: items. */
static const struct step {
    int (*bind)(const struct experiment_binding *binding, const struct document_node *root);
    enum experiment_items items;
} steps[] = {
    {NULL, EXPERIMENT_FACTORS},
    {bind_run, 0},
    {NULL, EXPERIMENT_TABLES},
    {NULL, EXPERIMENT_RESPONSES},
    {bind_pass, 0},
    {NULL, EXPERIMENT_OPTIONS},
    {bind_conditions, 0},
    {NULL, EXPERIMENT_MAXIMA},
    {bind_costs, 0},
    {bind_software, 0},
    {bind_source, 0},
    {bind_commands, 0},
    {bind_model, 0},
    {bind_answer, 0},
};

static void free_pointer(struct experiment **experiment) {
    experiment_free(*experiment);
}

int experiment_from_node(const struct document *document, const struct document_node *node,
                         const char *base_folder, struct experiment **ret, struct failure *failure) {
    cleanup(free_pointer) struct experiment *experiment = xcalloc(1, sizeof *experiment);
    experiment->idle_timeout = IDLE_TIMEOUT_SECONDS;
    experiment->file = document->file;
    experiment->source_document = document;
    struct experiment_binding binding = {experiment, document, base_folder, failure};
    int r = bind_mapping(document, node, "experiment", fields, FIELD_COUNT, experiment, failure);
    for (size_t i = 0; r == 0 && i < sizeof steps / sizeof *steps; i++)
        r = steps[i].bind ? steps[i].bind(&binding, node)
                          : experiment_bind_items(&binding, steps[i].items, node);
    if (r == 0)
        *ret = take_pointer(experiment);
    return r;
}

/* Reads the experiment NAME: a path relative to BASE_FOLDER if it has a slash, else one of the installation.
 * The copy beside an archived campaign is used when the folder has none. */
int experiment_find(const char *name, const char *base_folder, const struct installation *installation,
                    const char *place_file, size_t place_line, size_t place_column, struct experiment **ret,
                    struct failure *failure) {
    static const char description_file[] = "experiment.yaml";
    cleanup_free char *folder = NULL;
    int r = 0;
    if (strchr(name, '/'))
        folder = name[0] == '/' ? xstrdup(name) : xformat("%s/%s", base_folder, name);
    if (folder)
        r = path_check(folder, PATH_SOURCE, failure);
    else
        r = installation_find(installation, INSTALLATION_EXPERIMENT, name, &folder, failure);
    if (r < 0 && failure && failure->kind == FAILURE_INPUT)
        return failure_input(failure, place_file, place_line, place_column, "%s", failure->text);
    if (r < 0)
        return r;
    /* The campaign of an archive that was extracted has the copy of its experiment beside it. */
    cleanup_free char *copy = xformat("%s/" ARCHIVE_EXPERIMENT, base_folder);
    cleanup_free char *copied = xformat("%s/%s", copy, description_file),
                      *named = xformat("%s/%s", folder, description_file),
                      *inputs = xformat("%s/" ARCHIVE_INPUTS, base_folder);
    bool is_archived = !file_exists(named) && file_exists(copied) && file_exists(inputs);
    cleanup_free char *absolute = realpath(is_archived ? copy : folder, NULL);
    cleanup_free char *path = xformat("%s/%s", absolute ? absolute : folder, description_file);
    if (!absolute || !file_exists(path))
        return failure_input(failure, place_file, place_line, place_column,
                             "there is no '%s' in '%s', expected the folder of an experiment",
                             description_file, folder);
    cleanup(document_cleanup) struct document *document = NULL;
    r = document_read_yaml(path, &document, failure);
    if (r == 0)
        r = experiment_from_node(document, document->root, absolute, ret, failure);
    if (r < 0)
        return r;
    (*ret)->document = take_pointer(document);
    (*ret)->folder = take_pointer(absolute);
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

const char *experiment_resolve_text(const struct experiment *experiment, const char *text) {
    size_t length = strlen(text);
    if (length < 3 || text[0] != '{' || text[length - 1] != '}')
        return text;
    cleanup_free char *name = xstrndup(text + 1, length - 2);
    return experiment_option_value(experiment, name);
}

/* Decides the placement from its text and options, and refuses ranks, `keep` or a streamed kernel that do not
 * go with it. */
int experiment_resolve(struct experiment *experiment, struct failure *failure) {
    experiment->placement = EXPERIMENT_PLACEMENT_NODE;
    if (!experiment->placement_text)
        return 0;
    const char *text = experiment_resolve_text(experiment, experiment->placement_text);
    if (text && strcmp(text, "job") == 0)
        experiment->placement = EXPERIMENT_PLACEMENT_JOB;
    else if (text && strcmp(text, "core") == 0)
        experiment->placement = EXPERIMENT_PLACEMENT_CORE;
    else if (!text || strcmp(text, "node") != 0)
        return refuse_placement(experiment, "core, node, job, or an option that is one of them", failure);
    if (experiment->placement == EXPERIMENT_PLACEMENT_CORE && experiment_has_ranks(experiment))
        return refuse_placement(experiment, "node or job, since 'run' has ranks", failure);
    if (experiment->placement == EXPERIMENT_PLACEMENT_CORE && experiment->job.keep.count > 0)
        return refuse_placement(experiment, "node or job, since 'run' has 'keep'", failure);
    if (experiment->placement == EXPERIMENT_PLACEMENT_JOB && experiment->streamed)
        return refuse_placement(experiment, "core or node, since the kernel is streamed", failure);
    return 0;
}

void experiment_add_package(struct experiment *experiment, const char *name) {
    if (!bind_texts_have(&experiment->packages, name))
        bind_texts_add(&experiment->packages, name);
}

void experiment_free(struct experiment *experiment) {
    if (!experiment)
        return;
    experiment_columns_clear(experiment);
    for (size_t i = 0; i < experiment->condition_count; i++)
        expression_free(experiment->conditions[i]);
    free(experiment->conditions);
    expression_free(experiment->pass);
    expression_free(experiment->memory);
    expression_free(experiment->estimate);
    software_settings_clear(&experiment->software);
    free(experiment->source.recorded);
    experiment_commands_free(experiment->setup, experiment->setup_count);
    experiment_commands_free(experiment->teardown, experiment->teardown_count);
    experiment_command_clear(&experiment->run);
    experiment_job_clear(&experiment->job);
    if (experiment->model)
        bind_clear(archive_model_fields, ARCHIVE_MODEL_FIELDS, experiment->model);
    free(experiment->model);
    if (experiment->answer)
        bind_clear(answer_fields, ANSWER_FIELD_COUNT, experiment->answer);
    free(experiment->answer);
    free(experiment->placement_text);
    bind_texts_clear(&experiment->input_paths);
    bind_texts_clear(&experiment->input_values);
    bind_clear(fields, FIELD_COUNT, experiment);
    free(experiment->folder);
    document_free(experiment->document);
    free(experiment);
}
