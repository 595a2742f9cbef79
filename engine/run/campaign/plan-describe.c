#include "engine/run/campaign/plan-describe.h"

#include "archive-format/layout.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/run/campaign/experiment-command.h"
#include "engine/run/campaign/repeat.h"
#include "engine/run/campaign/source-files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many units, blocks and lines are listed at most. */
enum {
    UNITS_SHOWN = 10,
    BLOCKS_SHOWN = 24,
    FILE_LINES_SHOWN = 8,
    LINE_WIDTH = 100, /* of the values that all rows share */
};

/* Appends COMMANDS, with VALUES filled in, one indented line each. */
static int append_commands(const struct plan *plan, const struct experiment_command *commands, size_t count,
                           const struct plan_values *values, struct text *ret, struct failure *failure) {
    struct experiment_values usable = plan_values_view(values);
    for (size_t i = 0; i < count; i++) {
        char **arguments;
        int r = experiment_command_arguments(&commands[i], plan->campaign->experiment->file, &usable,
                                             &arguments, failure);
        if (r < 0)
            return r;
        text_append_string(ret, "             ");
        text_append_command(ret, (const char *const *)arguments);
        text_append_character(ret, '\n');
        experiment_arguments_free(arguments);
    }
    return 0;
}

/* "files of     /home/me/triad (3 files, 12.1 KiB)" */
static int append_files(const char *what, const struct source_choice *choice, struct text *ret,
                        struct failure *failure) {
    cleanup(source_files_clear) struct source_files files = SOURCE_FILES_NONE;
    int r = source_files_read(choice, &files, failure);
    text_printf(ret, "%-12s %s (", what, choice->folder);
    source_files_describe(&files, ret);
    text_append_string(ret, ")\n");
    return r;
}

/* Appends the packages, software and source files that the nodes get. RUNS: the folder of runs, which is not
 * copied. */
static int append_needs(const struct experiment *experiment, const char *runs, struct text *ret,
                        struct failure *failure) {
    const struct experiment_source *source = &experiment->source;
    struct source_choice own = {.folder = experiment->folder, .skip_hidden = true, .runs = runs},
                         other = {.folder = source->folder, .ignore = &source->ignore, .runs = runs};
    cleanup(text_clear) struct text software;
    text_init(&software, EXPERIMENT_ARGUMENT_MAX);
    for (size_t i = 0; i < experiment->packages.count; i++)
        text_printf(ret, "%-12s %s\n", i ? "" : "packages", experiment->packages.items[i]);
    software_settings_describe(&experiment->software, &software);
    if (software.length)
        text_printf(ret, "%-12s %s\n", "software", software.bytes);
    if (source->folder && !source->recorded)
        return append_files("source", &other, ret, failure);
    if (source->git && source->at)
        text_printf(ret, "%-12s %s at %s\n", "source", source->git, source->at);
    else if (source->git)
        text_printf(ret, "%-12s %s\n", "source", source->git);
    else if (source->folder)
        text_printf(ret, "%-12s as recorded in %s\n", "source", file_base_name(source->recorded));
    else if (experiment->folder)
        return append_files("files of", &own, ret, failure);
    return 0;
}

/* Appends the line on the measure phase: rows, repetitions, placement, blocks, order and seed. */
static void append_units(const struct plan *plan, struct text *ret) {
    const struct experiment *experiment = plan->campaign->experiment;
    size_t positions = plan_positions(plan), rows = plan->design->row_count;
    static const char *const places[] = {" on each physical core, all cores at once", " on each node",
                                         ", each on nodes together"};
    bool job = experiment->placement == EXPERIMENT_PLACEMENT_JOB;
    const struct testbed_choice *testbed = &plan->campaign->testbed;
    size_t nodes = testbed->backend->expected_nodes(testbed->settings);
    const char *at_most = plan->campaign->design->repeat.wanted ? "at most " : "";
    text_printf(ret, "  measure    %zu rows x %s%zu repetitions = %s%zu units%s", rows, at_most,
                positions / rows, at_most, positions, places[experiment->placement]);
    if (nodes > 1)
        text_printf(ret, job ? ", of %zu that there are" : ", of %zu nodes at once", nodes);
    if (plan_control_count(plan))
        text_printf(ret, ", in %zu block%s", plan->order->block_count,
                    plan->order->block_count == 1 ? "" : "s");
    text_printf(ret, ", order %s, seed %" PRIu64 "\n", design_order_kind_name(plan->order->kind),
                design_specification_seed(plan->campaign->design));
    repeat_describe(plan, ret);
}

/* Appends the files that a unit of the first row gets, at most FILE_LINES_SHOWN lines of each, and whether it
 * has ranks. */
static int append_start(const struct plan *plan, const struct plan_values *values, struct text *ret,
                        struct failure *failure) {
    const struct experiment *experiment = plan->campaign->experiment;
    struct experiment_values view = plan_values_view(values);
    if (experiment_has_ranks(experiment))
        text_append_string(ret, "             ranks, each of which does:\n");
    for (size_t i = 0; i < experiment->job.file_count; i++) {
        cleanup_free char *text = NULL;
        int r = experiment_file_fill(&experiment->job.files[i], experiment->file, &view, &text, failure);
        if (r < 0)
            return r;
        text_printf(ret, "             file %s, for the first row:\n", experiment->job.files[i].name);
        size_t lines = 0;
        for (const char *line = text; *line; lines++) {
            size_t length = strcspn(line, "\n");
            if (lines < FILE_LINES_SHOWN)
                text_printf(ret, "                 %.*s\n", (int)length, line);
            line += length + (line[length] == '\n');
        }
        if (lines > FILE_LINES_SHOWN)
            text_printf(ret, "                 ... and %zu more lines\n", lines - FILE_LINES_SHOWN);
    }
    return 0;
}

/* Whether all rows have the same value. */
static bool is_constant(const struct design *design, const struct design_column *column) {
    size_t size = column->about.type == COLUMN_STRING ? sizeof *column->codes : sizeof *column->numbers;
    return memcmp(column->items, (const char *)column->items + size, (design->row_count - 1) * size) == 0;
}

/* "N (By)" */
static char *name_column(const struct plan *plan, size_t column) {
    const struct experiment *experiment = plan->campaign->experiment;
    const char *unit = column < experiment->factor_count ? experiment->factors[column].about.unit : "1";
    bool has_unit = unit && unit[0] && strcmp(unit, "1") != 0; /* texts have none */
    return xformat("%s%s%s%s", plan->design->columns[column].about.name, has_unit ? " (" : "",
                   has_unit ? unit : "", has_unit ? ")" : "");
}

/* Appends the columns that have the same value in all rows. */
static void append_constants(const struct plan *plan, struct text *ret) {
    size_t begin = 0;
    for (size_t i = 0; i < plan->design->column_count; i++) {
        char buffer[NUMBER_TEXT_SIZE];
        if (!is_constant(plan->design, &plan->design->columns[i]))
            continue;
        cleanup_free char *name = name_column(plan, i);
        cleanup_free char *pair = xformat("%s = %s", name, design_value(plan->design, 0, i, buffer));
        const char *gap = begin == 0                                        ? "\nIn every unit:\n\n  "
                          : ret->length - begin + strlen(pair) > LINE_WIDTH ? ",\n  "
                                                                            : ", ";
        text_append_string(ret, gap);
        begin = gap[1] == ' ' ? begin : ret->length;
        text_append_string(ret, pair);
    }
    if (begin > 0)
        text_append_character(ret, '\n');
}

/* Appends a table of the first UNITS_SHOWN units in the order of measurement. Constant columns stand above
 * it. */
static void append_first_units(const struct plan *plan, struct text *ret) {
    const struct design *design = plan->design;
    size_t positions = plan_positions(plan), shown = positions < UNITS_SHOWN ? positions : UNITS_SHOWN;
    cleanup_free int *widths = xcalloc(design->column_count + 1, sizeof *widths); /* 0: it is constant */
    char buffer[NUMBER_TEXT_SIZE];
    if (design->column_count == 0)
        return;
    append_constants(plan, ret);
    text_append_string(ret, "\nThe first units:\n\n  order  row  repetition");
    for (size_t i = 0; i < design->column_count; i++) {
        if (is_constant(design, &design->columns[i]))
            continue;
        cleanup_free char *name = name_column(plan, i);
        widths[i] = (int)strlen(name);
        for (size_t at = 0; at < shown; at++) {
            int width = (int)strlen(design_value(design, design_order_row(plan->order, at), i, buffer));
            widths[i] = width > widths[i] ? width : widths[i];
        }
        text_printf(ret, "  %*s", widths[i], name);
    }
    text_append_character(ret, '\n');
    for (size_t at = 0; at < shown; at++) {
        size_t row = design_order_row(plan->order, at);
        text_printf(ret, "  %5zu  %3zu  %10zu", at + 1, row + 1,
                    design_order_repetition(plan->order, at) + 1);
        for (size_t i = 0; i < design->column_count; i++)
            if (widths[i])
                text_printf(ret, "  %*s", widths[i], design_value(design, row, i, buffer));
        text_append_character(ret, '\n');
    }
    if (positions > shown)
        text_printf(ret, "  ... and %zu more\n", positions - shown);
}

/* The number of different rows in BLOCK. SEEN has room for all rows; it is all false before and after. */
static size_t count_rows(const struct plan *plan, const struct design_block *block, bool *seen) {
    size_t rows = 0;
    for (size_t at = block->first; at < block->first + block->count; at++) {
        bool *one = &seen[design_order_row(plan->order, at)];
        rows += !*one;
        *one = true;
    }
    for (size_t at = block->first; at < block->first + block->count; at++)
        seen[design_order_row(plan->order, at)] = false;
    return rows;
}

/* Appends the first BLOCKS_SHOWN blocks: how many units and rows each has, and the state of its controls. */
static void append_blocks(const struct plan *plan, struct text *ret) {
    const struct design_order *order = plan->order;
    if (plan_control_count(plan) == 0)
        return;
    cleanup_free bool *seen = xcalloc(plan->design->row_count, sizeof *seen);
    text_printf(
        ret,
        "\nThe blocks: %zu of %zu state%s of the controls, in this order:\n\n  block   units    rows  "
        "state\n",
        order->block_count, order->state_count, order->state_count == 1 ? "" : "s");
    for (size_t b = 0; b < order->block_count && b < BLOCKS_SHOWN; b++) {
        const struct design_block *block = &order->blocks[b];
        text_printf(ret, "  %5zu  %6zu  %6zu  ", b + 1, block->count, count_rows(plan, block, seen));
        plan_append_state(plan, block->row, ret);
        text_append_character(ret, '\n');
    }
    if (order->block_count > BLOCKS_SHOWN)
        text_printf(ret, "  ... and %zu more\n", order->block_count - BLOCKS_SHOWN);
}

/* Appends which columns were computed from guessed facts, and are computed again when the nodes are known. */
static void append_facts(const struct plan *plan, struct text *ret) {
    const struct plan_facts *facts = &plan->facts;
    char memory[NUMBER_TEXT_SIZE];
    if (!plan->uses_facts || facts->known)
        return;
    text_printf(ret,
                "\nFacts: this plan is for %.0f node%s of %.0f physical core%s and %s of available memory, "
                "which this machine has now.\nWhen the nodes are known, these are chosen for them:",
                facts->nodes, facts->nodes == 1 ? "" : "s", facts->cores, facts->cores == 1 ? "" : "s",
                number_describe_bytes(facts->memory, memory));
    for (size_t i = 0; i < plan->design->column_count; i++)
        if (plan->design->columns[i].of_facts)
            text_printf(ret, " %s", plan->design->columns[i].about.name);
    text_append_string(ret, plan->is_tentative ? ".\nThe experiment's conditions are checked then, too.\n"
                                               : ".\n");
}

/* Appends the memory of a process and the estimated time, or that they are not known. */
static void append_costs(const struct plan *plan, struct text *ret) {
    char words[NUMBER_TEXT_SIZE];
    if (plan->memory > 0)
        text_printf(ret, "\nMemory: %s a process, checked on every node before anything starts.\n",
                    number_describe_bytes(plan->memory, words));
    else
        text_append_string(ret, "\nMemory: the experiment does not say what it needs.\n");
    if (plan->seconds >= 0)
        text_printf(
            ret,
            "Time to measure: %sabout %s by the experiment's own estimate, before anything is known of "
            "the machine.\n",
            plan->campaign->design->repeat.wanted ? "at most " : "",
            number_describe_duration(plan->seconds, words));
    else
        text_append_string(ret, "Time to measure: unknown; the experiment has no estimate.\n");
}

/* Appends every phase with the commands that it runs. */
static int append_phases(const struct plan *plan, struct plan_values *values, struct text *ret,
                         struct failure *failure) {
    const struct experiment *experiment = plan->campaign->experiment;
    const char *each = plan_control_count(plan) ? ", before each block" : "";
    text_append_string(ret,
                       "\nPhases:\n\n  reserve    the nodes\n  deploy     the agent to nodes without it\n"
                       "  connect    to the agents, and measure their clocks against ours\n"
                       "  inspect    what the nodes are, whether they differ, and whether the design fits\n"
                       "  prepare    packages, software and source\n");
    int r = append_commands(plan, experiment->setup, experiment->setup_count, values, ret, failure);
    if (r < 0)
        return r;
    text_printf(ret,
                "  control    as listed above; nothing else is changed%s\n  warm-up    as listed above%s\n",
                each, each);
    append_units(plan, ret);
    plan_values_set(values, plan, 0, 1);
    r = append_start(plan, values, ret, failure);
    if (r == 0)
        r = append_commands(plan, &experiment->run, 1, values, ret, failure);
    text_append_string(ret,
                       "  collect    measure the clocks again; record software and the agents' own cost\n");
    if (r == 0)
        r = append_commands(plan, experiment->teardown, experiment->teardown_count, values, ret, failure);
    text_append_string(ret, "  restore    every control that was changed, as it was found\n"
                            "  seal       the archive\n  release    the nodes\n");
    return r;
}

/* Appends the text of 'assay run --dry-run': campaign, phases with their commands, blocks, first units, facts
 * and costs. */
int plan_describe(const struct plan *plan, const char *runs, struct text *ret, struct failure *failure) {
    const struct campaign *campaign = plan->campaign;
    const struct experiment *experiment = campaign->experiment;
    cleanup(plan_values_clear) struct plan_values values = plan_values_new(plan, 1);
    /* The number of cores of a node is not known before it was asked. */
    if (experiment->placement == EXPERIMENT_PLACEMENT_NODE) {
        free(values.values[0]);
        values.values[0] = xstrdup("CORES");
    }
    text_printf(ret, "campaign     %s\nexperiment   %s%s%s\ntestbed      %s: %s\n", campaign->name,
                experiment->name, experiment->summary ? ": " : "",
                experiment->summary ? experiment->summary : "", campaign->testbed.backend->name,
                campaign->testbed.backend->summary);
    if (campaign->testbed.backend->describe(campaign->testbed.settings, ret) < 0)
        return failure_memory(failure);
    for (size_t i = 0; i < experiment->option_count; i++) {
        const char *note = experiment_option_note(&experiment->options[i]);
        text_printf(ret, "%-12s %s = %s%s%s%s\n", i ? "" : "options",
                    experiment->options[i].factor.about.name, experiment->options[i].value,
                    experiment->options[i].given ? "" : " (default)", note ? ": " : "", note ? note : "");
    }
    settings_describe(campaign, ret);
    int r = append_needs(experiment, runs, ret, failure);
    if (r == 0)
        r = append_phases(plan, &values, ret, failure);
    if (r < 0)
        return r;
    append_blocks(plan, ret);
    append_first_units(plan, ret);
    append_facts(plan, ret);
    append_costs(plan, ret);
    return 0;
}

/* ---- For programs */

static const char generator[] = "xoshiro256**";

static void add_options(const struct plan *plan, cJSON *object) {
    const struct experiment *experiment = plan->campaign->experiment;
    cJSON *options = json_add_object(object, "options");
    for (size_t i = 0; i < experiment->option_count; i++)
        json_add_string(options, experiment->options[i].factor.about.name, experiment->options[i].value);
}

static void add_seed(const struct plan *plan, cJSON *object) {
    json_add_uint64_text(object, "seed", design_specification_seed(plan->campaign->design));
    json_add_string(object, "generator", generator);
    json_add_string(object, "order", design_order_kind_name(plan->order->kind));
}

/* Adds the array `blocks` to OBJECT: each block's units, rows and controls. */
static void add_blocks(const struct plan *plan, cJSON *object) {
    cleanup_free bool *seen = xcalloc(plan->design->row_count, sizeof *seen);
    cJSON *blocks = json_add_array(object, "blocks");
    for (size_t b = 0; b < plan->order->block_count; b++) {
        const struct design_block *block = &plan->order->blocks[b];
        cJSON *item = json_add_object(blocks, NULL);
        json_add_uint64(item, "block", b + 1);
        json_add_uint64(item, "first", block->first + 1);
        json_add_uint64(item, "units", block->count);
        json_add_uint64(item, "rows", count_rows(plan, block, seen));
        cJSON *controls = json_add_object(item, "controls");
        for (size_t i = 0; i < plan_control_count(plan); i++)
            json_add_string(controls, plan_control_name(plan, i), plan_control_value(plan, block->row, i));
    }
}

/* Adds the values that are computed from the campaign: seed, facts, counts, memory, time, maxima and blocks.
 */
static void add_resolved(const struct plan *plan, cJSON *object) {
    const struct experiment *experiment = plan->campaign->experiment;
    const char *model = plan->campaign->walltime.model;
    char sha256[HASH_HEX_SIZE];
    json_add_string(object, "experiment", experiment->name);
    add_seed(plan, object);
    if (plan->uses_facts || plan->facts.known) {
        cJSON *facts = json_add_object(object, "facts");
        bind_resolve(plan_fact_fields, PLAN_FACTS, &plan->facts, facts);
        json_add_boolean(facts, "guessed", !plan->facts.known);
    }
    json_add_uint64(object, "rows", plan->design->row_count);
    json_add_uint64(object, "repetitions", plan->order->repetitions);
    json_add_uint64(object, "positions", plan_positions(plan));
    struct archive_repeat *repeat = repeat_of_plan(plan);
    if (repeat) {
        bind_resolve(archive_repeat_fields, ARCHIVE_REPEAT_FIELDS, repeat, json_add_object(object, "repeat"));
        bind_clear(archive_repeat_fields, ARCHIVE_REPEAT_FIELDS, repeat);
        free(repeat);
    }
    json_add_string(object, "placement", experiment_placement_name(experiment->placement));
    if (plan->memory > 0)
        json_add_double(object, "memory_per_process_bytes", plan->memory);
    if (plan->seconds >= 0)
        json_add_double(object, "estimated_seconds", plan->seconds);
    if (model && hash_file(model, sha256, NULL, NULL) == 0)
        json_add_string(object, "walltime_model_sha256", sha256);
    cJSON *maxima = json_add_object(object, "maxima");
    for (size_t i = 0; i < experiment->maximum_count; i++)
        json_add_double(maxima, experiment->maxima[i].name, plan->maxima[i]);
    add_blocks(plan, object);
}

/* Adds `design`. When the facts are known the table is design.csv, and only keys on repetition and order are
 * copied; else the generator stays as written. */
static void add_design(const struct plan *plan, cJSON *object) {
    static const char *const kept[] = {"repetitions", "repeat", "blocks", "order"};
    const struct design_specification *design = plan->campaign->design;
    const struct document_node *node = plan->campaign->design_node;
    bool is_known = plan->facts.known || !plan->uses_facts;
    cJSON *item =
        !is_known && node && node->kind == DOCUMENT_MAPPING ? json_from_node(node) : cJSON_CreateObject();
    for (size_t i = 0; is_known && i < sizeof kept / sizeof *kept; i++)
        if (document_get(node, kept[i]))
            cJSON_AddItemToObject(item, kept[i], json_from_node(document_get(node, kept[i])));
    cJSON_DeleteItemFromObjectCaseSensitive(item, "seed");
    cJSON_DeleteItemFromObjectCaseSensitive(item, "file");
    if (is_known && plan->design->column_count > 0)
        json_add_string(item, "file", ARCHIVE_DESIGN);
    else if (!is_known && design->file)
        json_add_string(item, "file", design->file);
    json_add_uint64_text(item, "seed", design_specification_seed(design));
    cJSON_AddItemToObject(object, "design", item);
}

static void add_testbed(const struct testbed_choice *testbed, cJSON *object) {
    cJSON *settings = cJSON_CreateObject();
    testbed->backend->resolve(testbed->settings, settings);
    if (settings && settings->child) {
        cJSON_AddItemToObject(object, "testbed", settings);
        return;
    }
    cJSON_Delete(settings);
    json_add_string(object, "testbed", testbed->backend->name);
}

cJSON *plan_resolve(const struct plan *plan) {
    static const struct bind_field packages = {.key = "packages", .type = BIND_TEXTS};
    const struct campaign *campaign = plan->campaign;
    const struct experiment *experiment = campaign->experiment;
    cJSON *object = cJSON_CreateObject();
    if (experiment->folder)
        json_add_string(object, "experiment", "./" ARCHIVE_EXPERIMENT);
    else
        cJSON_AddItemToObject(object, "experiment",
                              json_from_node(document_get(campaign->document->root, "experiment")));
    add_testbed(&campaign->testbed, object);
    settings_resolve(campaign, object);
    add_options(plan, object);
    bind_resolve(&packages, 1, &experiment->packages, object);
    bind_resolve(software_fields, SOFTWARE_FIELDS, &experiment->software, object);
    add_design(plan, object);
    add_resolved(plan, json_add_object(object, "resolved"));
    return object;
}

/* ---- For run.json ----------------------------------------------------------------------------------------
 */

/* The fit that the experiment suggests, grouped by each control of the design too; the caller frees. NULL: it
 * suggests none. */
static struct archive_model *model_of(const struct plan *plan) {
    const struct archive_model *model = plan->campaign->experiment->model;
    if (!model)
        return NULL;
    struct archive_model *ret = xcalloc(1, sizeof *ret);
    bind_copy(archive_model_fields, ARCHIVE_MODEL_FIELDS, model, ret);
    for (size_t i = 0; i < plan_control_count(plan); i++) {
        char column[CONTROL_VARIABLE_SIZE];
        snprintf(column, sizeof column, CONTROL_PREFIX "%s", plan_control_name(plan, i));
        bind_texts_add(&ret->by, column);
    }
    return ret;
}

static struct archive_answer *answer_of(const struct experiment *experiment) {
    if (!experiment->answer && !experiment->ranks_nothing)
        return NULL;
    struct archive_answer *ret = xcalloc(1, sizeof *ret);
    if (experiment->answer)
        bind_copy(archive_answer_fields, ARCHIVE_ANSWER_FIELDS, experiment->answer, ret);
    else
        ret->best = ARCHIVE_BEST_NONE;
    return ret;
}

/* Sets the members of RUN, for run.json, that follow from the plan. */
void plan_summarize(const struct plan *plan, struct archive_run *run) {
    const struct experiment *experiment = plan->campaign->experiment;
    char seed[NUMBER_TEXT_SIZE];
    number_format_uint64(design_specification_seed(plan->campaign->design), seed);
    run->counts.rows = (int64_t)plan->design->row_count;
    run->name = xstrdup(plan->campaign->name);
    run->seed = xstrdup(seed);
    run->generator = xstrdup(generator);
    run->order = xstrdup(design_order_kind_name(plan->order->kind));
    run->repeat = repeat_of_plan(plan);
    run->testbed = xstrdup(plan->campaign->testbed.backend->name);
    run->experiment.name = xstrdup(experiment->name);
    run->experiment.folder = experiment->folder ? xstrdup(ARCHIVE_EXPERIMENT) : NULL;
    for (size_t i = 0; i < experiment->option_count; i++) {
        bind_texts_add(&run->options, experiment->options[i].factor.about.name);
        bind_texts_add(&run->options, experiment->options[i].value);
    }
    run->model = model_of(plan);
    run->answer = answer_of(experiment);
}
