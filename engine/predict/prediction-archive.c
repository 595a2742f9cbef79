#include "engine/predict/prediction-archive.h"

#include "archive-format/datapackage.h"
#include "archive-format/layout.h"
#include "archive-format/writer.h"
#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Opening and clearing */

/* Prepares the folder whose content becomes the archive TARGET. To be cleared after failures too. */
int prediction_archive_open(struct prediction_archive *archive, const char *target, struct failure *failure) {
    static const char *const folders[] = {ARCHIVE_TABLES, ARCHIVE_MODELS};
    *archive = (struct prediction_archive){
        .target = target, .results = {.output = FILE_OUTPUT_NONE}, .started_ns = clock_wall_ns()};
    int r = archive_check_target(target, failure);
    r = r < 0 ? r : file_make_temporary(&archive->folder, failure);
    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < sizeof folders / sizeof *folders; i++) {
        cleanup_free char *path = file_join(archive->folder, folders[i]);
        r = file_make_folders(path, failure);
    }
    archive->results_path = file_join(archive->folder, ARCHIVE_RESULTS);
    return r < 0 ? r : report_file_open(&archive->results, archive->results_path, failure);
}

void prediction_archive_clear(struct prediction_archive *archive) {
    report_file_clear(&archive->results);
    if (archive->folder)
        file_remove_tree(archive->folder, NULL);
    text_set_clear(&archive->warnings.set), text_set_clear(&archive->notes.set);
    free(archive->folder), free(archive->results_path);
    *archive = (struct prediction_archive){.results = {.output = FILE_OUTPUT_NONE}};
}

/* ---- Contents */

int prediction_archive_take_scenarios(struct prediction_archive *archive, const char *path, char **ret,
                                      struct failure *failure) {
    cleanup_free char *copy = file_join(archive->folder, ARCHIVE_SCENARIOS);
    int r = file_copy(path, FILE_OR_PIPE, copy, failure);
    *ret = r < 0 ? NULL : take_pointer(copy);
    return r;
}

/* Counts SENTENCE of SCENARIO; each sentence is kept once. */
static void add_sentence(struct prediction_sentences *sentences, const char *sentence, size_t scenario) {
    uint32_t number;
    bool is_known = text_set_find(&sentences->set, sentence, strlen(sentence), &number);
    if (!is_known && sentences->set.count == PREDICTION_ARCHIVE_SENTENCES_MAX)
        return;
    if (!is_known) {
        number = text_set_add(&sentences->set, sentence, strlen(sentence));
        sentences->of[number].first = scenario;
    }
    sentences->of[number].count++;
}

/* Adds all sentences to TO, with the scenarios that they are of, as "scenario 3 and 12 more: SENTENCE"; alone
 * if they are of all. */
static void describe_sentences(const struct prediction_sentences *sentences, int64_t scenarios,
                               struct bind_texts *to) {
    for (size_t i = 0; i < sentences->set.count; i++) {
        size_t others = sentences->of[i].count - 1;
        cleanup_free char *which = xformat("scenario %zu", sentences->of[i].first),
                          *more = others > 0 ? xformat(" and %zu more", others) : xstrdup(""),
                          *text = xformat("%s%s: %s", which, more, sentences->set.texts[i]);
        bind_texts_add(to, (int64_t)others + 1 == scenarios ? sentences->set.texts[i] : text);
    }
}

/* Adds the results of the scenarios from FIRST on. */
int prediction_archive_add(struct prediction_archive *archive, const struct prediction *prediction,
                           size_t first, struct failure *failure) {
    cleanup(report_cleanup) struct report *report = report_new();
    for (size_t i = first; i < prediction->scenarios.count; i++) {
        const struct prediction_result *result = &prediction->results[i];
        for (size_t k = 0; k < result->remark_count; k++)
            add_sentence(result->remarks[k].warning ? &archive->warnings : &archive->notes,
                         result->remarks[k].sentence, prediction->scenarios.items[i].number);
        archive->scenarios++;
        archive->rows += (int64_t)result->row_count;
    }
    return report_file_add(&archive->results, prediction_report_table(prediction, first, report->root),
                           failure);
}

/* Writes ROWS into results/tables/NAME.csv, and describes it in RET, whose path and columns the caller
 * frees. */
static int write_table(const struct prediction_archive *archive, const struct report_table *rows,
                       const char *name, const char *help, struct archive_table *ret,
                       struct failure *failure) {
    cleanup(text_clear) struct text csv;
    text_init(&csv, SIZE_MAX / 4);
    ret->path = archive_table_path(name);
    ret->description = help;
    ret->columns = report_table_columns(rows, &ret->column_count);
    cleanup_free char *path = file_join(archive->folder, ret->path);
    int r = report_table_append_csv(rows, &csv, failure);
    return r < 0 ? r : file_write_output(path, csv.bytes, csv.length, failure);
}

/* Writes the wanted tables and the explanation, and describes the columns of all tables. */
static int write_tables(const struct prediction_archive *archive, const struct prediction *prediction,
                        const struct explanation *explanation, struct failure *failure) {
    cleanup(report_cleanup) struct report *report = report_new();
    size_t count = 0, last = prediction->scenarios.count - 1;
    cleanup_free struct archive_table *tables = xcalloc(prediction->table_count + 3, sizeof *tables);
    const struct report_table *results = prediction_report_table(prediction, last, report->root);
    int r = 0;
    tables[count++] = (struct archive_table){
        .path = ARCHIVE_RESULTS,
        .description = "one row for each scenario, or several where the method gives several"};
    tables->columns = report_table_columns(results, &tables->column_count);
    for (size_t t = 0; r == 0 && t < prediction->table_count; t++) {
        const struct predict_table *of = prediction->tables[t].table;
        if (prediction->tables[t].is_wanted)
            r = write_table(archive, prediction_report_rows(prediction, t, report->root), of->name, of->help,
                            &tables[count++], failure);
    }
    if (r == 0 && explanation && explanation->parts)
        r = write_table(archive, explanation->parts, "explained-parts", "share of each part of the result",
                        &tables[count++], failure);
    if (r == 0 && explanation && explanation->effects)
        r = write_table(archive, explanation->effects, "explained-effects",
                        "change of the result if a term or parameter is 1 % greater", &tables[count++],
                        failure);
    cleanup_free char *package = file_join(archive->folder, ARCHIVE_DATAPACKAGE);
    r = r < 0 ? r
              : archive_write_datapackage(package, prediction->library->plugin->name, tables, count, failure);
    for (size_t i = 0; i < count; i++) {
        free((struct column *)tables[i].columns);
        free(i > 0 ? (char *)tables[i].path : NULL);
    }
    return r;
}

/* Copies each model file, and describes it in TO. */
static int write_models(const struct prediction_archive *archive, const struct prediction *prediction,
                        struct archive_prediction *to, struct failure *failure) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < prediction->models.count; i++) {
        const struct given_model *given = &prediction->models.items[i];
        const struct model_origin *origin = &given->model->origin;
        struct archive_prediction_model *model = bind_items_add(&to->models, sizeof *model);
        model->role = xstrdup(prediction->plugin->roles[given->role].name);
        model->file = xstrdup(given->source.file);
        model->member =
            archive_model_path(i + 1, model->role, given->source.bytes ? strrchr(model->file, '.') : ".json");
        model->sha256 = xstrdup(given->source.sha256);
        model->grade = xstrdup_or_null(given->verdict ? report_grade_word(given->grade) : NULL);
        model->verdict = xstrdup_or_null(given->verdict);
        for (size_t k = 0; k < origin->input_count; k++) {
            const struct model_input *input = &origin->inputs[k];
            struct archive_model_input *of = bind_items_add(&model->inputs, sizeof *of);
            *of = (struct archive_model_input){.name = xstrdup_or_null(input->name),
                                               .sha256 = input->sha256[0] ? xstrdup(input->sha256) : NULL,
                                               .run_id = xstrdup_or_null(input->run_id),
                                               .experiment = xstrdup_or_null(input->experiment)};
        }
        cleanup_free char *path = file_join(archive->folder, model->member);
        r = file_write_output(path, given->content, given->length, failure);
    }
    return r;
}

static void add_texts(struct bind_texts *to, const char *const *texts, size_t count) {
    for (size_t i = 0; i < count; i++)
        bind_texts_add(to, texts[i]);
}

/* Describes the prediction in RUN: plugin, options, seed, counts, command. */
static void describe_run(const struct prediction_archive *archive, const struct prediction *prediction,
                         const char *const *command, struct archive_run *run) {
    const struct scenarios *scenarios = &prediction->scenarios;
    struct archive_prediction *made = run->prediction;
    run->kind = ARCHIVE_OF_PREDICTION;
    run->name = xstrdup(prediction->library->plugin->name);
    run->status = xstrdup(prediction->is_interrupted ? "interrupted" : "completed");
    archive_engine_describe(&run->engine);
    run->started_ns = archive->started_ns;
    run->ended_ns = clock_wall_ns();
    run->seed = xformat("%" PRIu64, prediction->models.seed);
    run->counts = (struct archive_counts){
        .rows = archive->rows, .planned = archive->scenarios, .done = archive->scenarios, .rows_settled = -1};
    for (size_t i = 0; i < scenarios->option_count; i++)
        if (scenarios->options.values[i].text) {
            bind_texts_add(&run->options, scenarios->table[i].name);
            bind_texts_add(&run->options, scenarios->options.values[i].text);
        }
    for (size_t i = 0; command && command[i]; i++)
        bind_texts_add(&run->command, command[i]);
    made->plugin = xformat("%s-%s", prediction->prefix, prediction->library->plugin->name);
    made->version = xstrdup(prediction->library->plugin->version);
    made->draws = (int64_t)prediction->draws;
    made->searched = (int64_t)prediction->searched;
    describe_sentences(&archive->warnings, archive->scenarios, &made->warnings);
    describe_sentences(&archive->notes, archive->scenarios, &made->notes);
}

static int seal(const struct prediction_archive *archive, const struct prediction *prediction,
                const struct archive_run *run, char sha256[static HASH_HEX_SIZE], struct failure *failure) {
    cleanup_free char *title = xformat("prediction of %s", run->name);
    return archive_seal_run(archive->folder, archive->target, run, title,
                            prediction->library->plugin->summary, sha256, failure);
}

/* Writes all that describes the prediction, and seals the archive; SHA256 is its checksum. */
int prediction_archive_seal(struct prediction_archive *archive, const struct prediction *prediction,
                            const struct explanation *explanation, const char *const *settings,
                            size_t setting_count, const char *const *command,
                            char sha256[static HASH_HEX_SIZE], struct failure *failure) {
    cleanup(archive_run_clear) struct archive_run run = {.prediction = xcalloc(1, sizeof *run.prediction)};
    cleanup_free char *path = file_join(archive->folder, ARCHIVE_RUN);
    char id[ARCHIVE_ID_SIZE];
    int r = report_file_commit(&archive->results, failure);
    r = r < 0 ? r : archive_draw_id(id, failure);
    r = r < 0 ? r : write_tables(archive, prediction, explanation, failure);
    r = r < 0 ? r : write_models(archive, prediction, run.prediction, failure);
    if (r < 0)
        return r;
    run.run_id = xstrdup(id);
    add_texts(&run.prediction->settings, settings, setting_count);
    describe_run(archive, prediction, command, &run);
    r = archive_run_write(path, &run, failure);
    return r < 0 ? r : seal(archive, prediction, &run, sha256, failure);
}

/* ---- The report */

/* Adds tables of the models, and of the inputs that they were fitted to. */
static void report_models(const struct archive_prediction *prediction, struct report_section *in) {
    static const struct column columns[] = {
        {.name = "role"},   {.name = "file"},  {.name = "member", .detail = true},
        {.name = "sha256"}, {.name = "grade"}, {.name = "verdict", .detail = true}};
    static const struct column input_columns[] = {
        {.name = "role"}, {.name = "input"}, {.name = "experiment"}, {.name = "sha256"}};
    const struct archive_prediction_model *models = prediction->models.items;
    struct report_table *table = report_table(in, "models", "models", columns, 6);
    struct report_table *inputs = report_table(in, "inputs", "inputs of the models", input_columns, 4);
    for (size_t i = 0; i < prediction->models.count; i++) {
        const struct archive_model_input *of = models[i].inputs.items;
        const char *const cells[] = {models[i].role,   models[i].file,  models[i].member,
                                     models[i].sha256, models[i].grade, models[i].verdict};
        for (size_t c = 0; c < 6; c++)
            report_cell_text(table, cells[c]);
        for (size_t k = 0; k < models[i].inputs.count; k++) {
            const char *const input[] = {models[i].role, of[k].name, of[k].experiment, of[k].sha256};
            for (size_t c = 0; c < 4; c++)
                report_cell_text(inputs, input[c]);
        }
    }
}

/* Adds how a prediction of an archive was made: plugin, version, time, seed, options and models. */
static void report_head(const struct archive_run *run, struct report_section *in) {
    const struct archive_prediction *prediction = run->prediction;
    char time[CLOCK_TEXT_SIZE];
    report_text(in, "plugin", "method", prediction->plugin, false);
    report_text(in, "version", NULL, prediction->version, false);
    report_text(in, "engine", NULL, run->engine.version, true);
    report_text(in, "ended", "predicted", run->ended_ns ? clock_format(run->ended_ns, time) : NULL, false);
    report_text(in, "seed", NULL, run->seed, true);
    report_number(in, "draws", NULL, (double)prediction->draws, NULL, 0, prediction->draws == 0);
    report_number(in, "scenario_count", "scenarios", (double)run->counts.done, NULL, 0, false);
    if (prediction->searched > 0)
        report_note(in, REPORT_NOTE, "the best of %" PRId64 " scenarios that were run", prediction->searched);
    struct report_section *options = report_section(in, "options", NULL, true);
    for (size_t i = 0; i + 1 < run->options.count; i += 2)
        report_text(options, run->options.items[i], NULL, run->options.items[i + 1], true);
    report_models(prediction, in);
}

/* FIELD as a number in COLUMN; NaN: it is a text, or empty. */
static double number_in(const char *field, const struct column *column) {
    char *end = NULL;
    double number = column->type == COLUMN_STRING || !field[0] ? NAN : strtod(field, &end);
    return end && *end == '\0' ? number : NAN;
}

/* Adds the row of a single scenario, a line per column. */
static void report_row(const struct column *columns, size_t count, char *const *fields,
                       struct report_section *in) {
    static const struct column heads[] = {{.name = "name"}, {.name = "value"}, {.name = "help"}};
    struct report_table *table = report_table(in, "list", "", heads, 3);
    report_print_whole(table);
    for (size_t c = 0; c < count; c++) {
        double number = number_in(fields[c], &columns[c]);
        cleanup_free char *shown =
            isnan(number) ? xstrdup(fields[c]) : report_format(number, columns[c].unit, columns[c].digits);
        if (!fields[c][0] || columns[c].detail)
            continue;
        report_cell_text(table, columns[c].name);
        report_cell_text(table, shown);
        report_cell_text(table, columns[c].help);
    }
}

static void add_cells(struct report_table *table, const struct column *columns, size_t count,
                      char *const *fields) {
    for (size_t c = 0; c < count; c++)
        if (columns[c].type == COLUMN_STRING)
            report_cell_text(table, fields[c]);
        else
            report_cell(table, number_in(fields[c], &columns[c]));
}

/* Adds the first rows of the results as a table; AS_LIST: as a list each. */
static int report_rows(struct csv_reader *csv, const struct archive_columns *known, bool as_list,
                       struct report_section *in, struct failure *failure) {
    size_t count = csv_column_count(csv), rows = 0;
    cleanup_free struct column *columns = xcalloc(count + 1, sizeof *columns);
    cleanup_free char **texts = xcalloc(count + 1, sizeof *texts);
    const struct csv_field *fields;
    for (size_t c = 0; c < count; c++) {
        const struct column *found = archive_columns_find(known, csv_column_name(csv, c));
        columns[c] = found ? *found : (struct column){.type = COLUMN_STRING};
        columns[c].name = csv_column_name(csv, c);
        columns[c].label = NULL;
        columns[c].digits = columns[c].role == COLUMN_ROLE_RESPONSE ? 5 : 0;
        columns[c].detail = strcmp(columns[c].name, "remarks") == 0 || text_ends_in(columns[c].name, "_mean");
    }
    struct report_table *table = as_list ? NULL : report_table(in, "scenarios", "", columns, count);
    int r;
    while ((r = csv_next(csv, &fields, failure)) > 0 && rows++ < PREDICTION_ARCHIVE_SHOWN_MAX) {
        for (size_t c = 0; c < count; c++)
            texts[c] = xstrndup(fields[c].bytes, fields[c].length);
        if (as_list)
            report_row(columns, count, texts, in);
        else
            add_cells(table, columns, count, texts);
        for (size_t c = 0; c < count; c++)
            free(texts[c]);
    }
    if (r > 0)
        report_note(in, REPORT_NOTE,
                    "these are the first %d rows; 'assay archive cat ARCHIVE " ARCHIVE_RESULTS "' prints all",
                    PREDICTION_ARCHIVE_SHOWN_MAX);
    return r < 0 ? r : 0;
}

/* Adds the results in the archive to the report. Negative with FAILURE: they cannot be read. */
static int report_results(struct archive_reader *archive, bool as_list, struct report_section *in,
                          struct failure *failure) {
    cleanup(archive_member_cleanup) struct archive_member *member = NULL;
    struct archive_columns columns = {0};
    struct csv_reader *csv = NULL;
    cleanup_free char *name = xformat("%s:" ARCHIVE_RESULTS, archive_path(archive));
    int r = archive_table_columns(archive, ARCHIVE_RESULTS, &columns, failure);
    r = r < 0 ? r : archive_member_open(archive, ARCHIVE_RESULTS, &member, failure);
    r = r < 0 ? r : csv_open_function(name, archive_member_read, member, &csv, failure);
    r = r < 0 ? r : report_rows(csv, &columns, as_list, in, failure);
    if (member && archive_member_status(member, NULL) < 0)
        r = archive_member_status(member, failure);
    csv_close(csv);
    archive_columns_clear(&columns);
    return r;
}

/* Adds the report of a prediction in an archive. FOR_PEOPLE: a single row becomes a list. */
int prediction_archive_report(struct archive_reader *archive, bool for_people, struct report_section *in,
                              struct failure *failure) {
    const struct archive_run *run = archive_run(archive);
    const struct archive_prediction *prediction = run->prediction;
    const struct archive_prediction_model *models = prediction->models.items;
    report_head(run, in);
    int r = report_results(archive, for_people && run->counts.rows == 1, in, failure);
    for (size_t i = 0; i < prediction->warnings.count; i++)
        report_note(in, REPORT_WARNING, "%s", prediction->warnings.items[i]);
    for (size_t i = 0; i < prediction->notes.count; i++)
        report_note(in, REPORT_NOTE, "%s", prediction->notes.items[i]);
    for (size_t i = 0; i < prediction->models.count; i++)
        if (models[i].verdict && models[i].grade &&
            strcmp(models[i].grade, report_grade_word(REPORT_USABLE)) != 0)
            report_note(in,
                        strcmp(models[i].grade, report_grade_word(REPORT_NOT_USABLE)) == 0 ? REPORT_WARNING
                                                                                           : REPORT_NOTE,
                        "'%s': %s", models[i].file, models[i].verdict);
    return r;
}
