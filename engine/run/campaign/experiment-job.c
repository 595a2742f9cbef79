#include "engine/run/campaign/experiment-job.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/run/campaign/experiment-columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const fact_names[] = {"run_nodes", "node_cores", "node_memory"};
enum { FACTS = sizeof fact_names / sizeof *fact_names };

const char *const experiment_count_names[] = {[EXPERIMENT_COUNT_NODES] = "nodes",
                                              [EXPERIMENT_COUNT_RANKS] = "ranks",
                                              [EXPERIMENT_COUNT_RANKS_PER_NODE] = "ranks-per-node",
                                              [EXPERIMENT_COUNT_THREADS] = "threads",
                                              NULL};

/* ---- Binding */

/* Binds the counts of `run` (nodes, ranks, ...): expressions of factors and facts. */
static int bind_counts(const struct experiment_binding *binding, const struct document_node *run) {
    struct experiment *experiment = binding->experiment;
    size_t count = experiment->factor_count;
    cleanup_free const char **names = experiment_factor_names(experiment, FACTS);
    memcpy(names + count, fact_names, sizeof fact_names);
    int r = 0;
    for (size_t i = 0; r == 0 && i < EXPERIMENT_COUNTS; i++) {
        const struct document_node *node = document_get(run, experiment_count_names[i]);
        if (node)
            r = experiment_bind_expression(binding, node, experiment_count_names[i], names, count + FACTS,
                                           &experiment->job.counts[i]);
    }
    return r;
}

/* Binds `files`: texts that each unit finds in its working folder. Refused: names that lead out of it. */
static int bind_files(const struct experiment_binding *binding, const struct document_node *node) {
    struct experiment_job *job = &binding->experiment->job;
    if (!node)
        return 0;
    if (node->kind != DOCUMENT_MAPPING || node->count > EXPERIMENT_FILES_MAX)
        return experiment_refuse(binding, node, "'files' is not a mapping of at most %d names to texts",
                                 EXPERIMENT_FILES_MAX);
    job->files = xcalloc(node->count + 1, sizeof *job->files);
    for (size_t i = 0; i < node->count; i++) {
        const struct document_node *value = node->items[i];
        const char *name = node->keys[i]->text;
        if (!name[0] || name[0] == '/' || strstr(name, "..") || strlen(name) >= 256)
            return experiment_refuse(
                binding, node->keys[i],
                "'%s' cannot name a file of a unit, expected a path below its working folder", name);
        if (value->kind != DOCUMENT_TEXT && value->kind != DOCUMENT_NUMBER)
            return experiment_refuse(binding, value, "file '%s' is %s, expected its text", name,
                                     document_kind_name(value->kind));
        job->files[job->file_count++] = (struct experiment_file){
            .name = xstrdup(name),
            .text = {.line = xstrdup(value->text), .where_line = value->line, .where_column = value->column}};
    }
    return 0;
}

/* Binds the keys of `run` that are about units with files or ranks. Refused: keys for ranks without `ranks`,
 * names twice in `keep`, and any of these with a streamed kernel. */
int experiment_job_bind(const struct experiment_binding *binding, const struct document_node *run) {
    static const char *const needy[] = {"ranks-per-node", "threads", "bind", "mpirun"};
    const struct document_node *mpirun = document_get(run, "mpirun"), *ranks = document_get(run, "ranks"),
                               *files = document_get(run, "files");
    struct experiment_job *job = &binding->experiment->job;
    job->mpirun.where_line = mpirun ? mpirun->line : 0;
    job->mpirun.where_column = mpirun ? mpirun->column : 0;
    int r = bind_counts(binding, run);
    r = r < 0 ? r : bind_files(binding, files);
    if (r == 0 && job->keep.count > EXPERIMENT_FILES_MAX)
        r = experiment_refuse(binding, document_get(run, "keep"),
                              "'keep' names %zu files, expected at most %d", job->keep.count,
                              EXPERIMENT_FILES_MAX);
    for (size_t i = 1; r == 0 && i < job->keep.count; i++)
        for (size_t j = 0; r == 0 && j < i; j++)
            if (strcmp(job->keep.items[i], job->keep.items[j]) == 0)
                r = experiment_refuse(binding, document_get(run, "keep"),
                                      "'keep' names '%s' twice; remove one of the two", job->keep.items[i]);
    /* Keys that only ranks need are refused without `ranks`. */
    for (size_t i = 0; r == 0 && i < sizeof needy / sizeof *needy; i++) {
        const struct document_node *node = document_get(run, needy[i]);
        if (node && !ranks)
            r = experiment_refuse(binding, node, "'%s' is given and 'ranks' is not, expected both or neither",
                                  needy[i]);
    }
    static const char *const of_commands[] = {"ranks", "files", "keep"};
    for (size_t i = 0;
         r == 0 && document_get(run, "streamed") && i < sizeof of_commands / sizeof *of_commands; i++)
        if (document_get(run, of_commands[i]))
            r = experiment_refuse(binding, document_get(run, of_commands[i]),
                                  "'%s' does not go with 'streamed', whose kernel takes many units",
                                  of_commands[i]);
    return r;
}

void experiment_job_clear(struct experiment_job *job) {
    for (size_t i = 0; i < EXPERIMENT_COUNTS; i++)
        expression_free(job->counts[i]);
    for (size_t i = 0; i < job->file_count; i++) {
        free(job->files[i].name);
        experiment_command_clear(&job->files[i].text);
    }
    free(job->files);
    free(job->bind);
    experiment_command_clear(&job->mpirun);
    bind_texts_clear(&job->keep);
    *job = (struct experiment_job){0};
}

/* ---- Shapes */

bool experiment_has_ranks(const struct experiment *experiment) {
    return experiment->job.counts[EXPERIMENT_COUNT_RANKS] != NULL;
}

static int evaluate_count(const struct experiment_job *job, enum experiment_count which, const double *values,
                          size_t otherwise, size_t *ret, struct failure *failure) {
    const struct expression *expression = job->counts[which];
    double value = expression ? expression_value(expression, values) : (double)otherwise;
    *ret = value >= 1 && value <= EXPERIMENT_RANKS_MAX ? (size_t)value : 0;
    if (value == floor(value) && *ret > 0)
        return 0;
    return expression_failure(expression, failure, "'%s' is %g, expected a whole number from 1 to %d",
                              experiment_count_names[which], value, EXPERIMENT_RANKS_MAX);
}

/* Decides whether ranks are bound to cores: as `bind` says, or, without it, if a node has enough cores. */
static int find_bind(const struct experiment *experiment, struct experiment_shape *shape, size_t node_cores,
                     struct failure *failure) {
    const char *text = experiment->job.bind, *value = text ? experiment_resolve_text(experiment, text) : NULL;
    shape->bind = shape->ranks_per_node * shape->threads <= node_cores;
    if (!text)
        return 0;
    if (value && strcmp(value, "none") == 0)
        shape->bind = false;
    else if (!value || strcmp(value, "core") != 0)
        return failure_input(failure, experiment->file, experiment->placement_line, 0,
                             "'bind: %s' gives '%s', expected core or none", text, value ? value : "");
    return 0;
}

/* Computes the nodes, ranks and threads of a unit with the values FACTORS. Nodes that would have no rank are
 * left out. */
int experiment_job_shape(const struct experiment *experiment, const double *factors,
                         const struct experiment_facts *facts, struct experiment_shape *ret,
                         struct failure *failure) {
    const struct experiment_job *job = &experiment->job;
    size_t count_factors = experiment->factor_count;
    bool several = experiment->placement == EXPERIMENT_PLACEMENT_JOB;
    cleanup_free double *values = xcalloc(count_factors + FACTS, sizeof *values);
    for (size_t i = 0; i < count_factors; i++)
        values[i] = factors[i];
    values[count_factors] = facts->run_nodes;
    values[count_factors + 1] = facts->node_cores;
    values[count_factors + 2] = facts->node_memory;
    *ret = (struct experiment_shape){.nodes = 1, .ranks = 1, .ranks_per_node = 1, .threads = 1};
    int r = several ? evaluate_count(job, EXPERIMENT_COUNT_NODES, values, (size_t)facts->run_nodes,
                                     &ret->nodes, failure)
                    : 0;
    if (r < 0 || !experiment_has_ranks(experiment))
        return r;
    r = evaluate_count(job, EXPERIMENT_COUNT_RANKS, values, 1, &ret->ranks, failure);
    if (r == 0)
        r = evaluate_count(job, EXPERIMENT_COUNT_THREADS, values, 1, &ret->threads, failure);
    if (r == 0)
        r = evaluate_count(job, EXPERIMENT_COUNT_RANKS_PER_NODE, values,
                           (ret->ranks + ret->nodes - 1) / ret->nodes, &ret->ranks_per_node, failure);
    if (r == 0 && ret->ranks > ret->ranks_per_node * ret->nodes)
        r = expression_failure(job->counts[EXPERIMENT_COUNT_RANKS], failure,
                               "%zu ranks do not fit on %zu node%s with %zu ranks each", ret->ranks,
                               ret->nodes, ret->nodes == 1 ? "" : "s", ret->ranks_per_node);
    if (r == 0) /* the others would have none */
        ret->nodes = (ret->ranks + ret->ranks_per_node - 1) / ret->ranks_per_node;
    return r < 0 ? r : find_bind(experiment, ret, (size_t)facts->node_cores, failure);
}

int experiment_file_fill(const struct experiment_file *file, const char *document,
                         const struct experiment_values *values, char **ret, struct failure *failure) {
    struct experiment_command as_argument = {.arguments = {.items = (char *[]){file->text.line}, .count = 1},
                                             .where_line = file->text.where_line,
                                             .where_column = file->text.where_column};
    char **arguments = NULL;
    int r = experiment_command_arguments(&as_argument, document, values, &arguments, failure);
    if (r == 0)
        *ret = take_pointer(arguments[0]);
    experiment_arguments_free(arguments);
    return r;
}
