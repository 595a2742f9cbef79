/* assay list: a line for each run. */
#include "engine/command-line/output.h"
#include "engine/command-line/status/prune.h"
#include "engine/command-line/status/run-list.h"
#include "engine/command-line/verb.h"
#include "engine/run/record/status-report.h"

#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One row of the list. STATUS is NULL if the run cannot be read, and WHY says why. */
struct row {
    const char *path;
    struct run_status *status;
    char *why;
};

struct table {
    struct row *rows;
    size_t count;
};

static void clear_row(struct row *row) {
    run_status_free(row->status);
    free(row->why);
}

static void clear_table(struct table *table) {
    for (size_t i = 0; i < table->count; i++)
        clear_row(&table->rows[i]);
    free(table->rows);
}

static const char *begun(const struct row *row) {
    return row->status ? row->status->started : "";
}

/* The newest last; what cannot be read first. */
static int compare_rows(const void *a, const void *b) {
    const struct row *one = a, *other = b;
    int order = strcmp(begun(one), begun(other));
    return order ? order : strcmp(one->path, other->path);
}

static void read_row(const char *path, struct row *row) {
    struct failure why = {0};
    row->path = path;
    int r = (file_is_folder(path) ? run_status_read : run_status_read_archive)(path, &row->status, &why);
    if (r < 0) {
        char sentence[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE];
        row->why = xstrdup(failure_describe(&why, sentence, sizeof sentence));
    }
}

/* Was the same run sealed again later, in an archive with a row of its own? */
static bool is_superseded(const struct table *table, size_t index) {
    const struct run_status *status = table->rows[index].status;
    if (!status || status->folder || !status->run_id[0])
        return false;
    for (size_t i = 0; i < table->count; i++) {
        const struct run_status *other = table->rows[i].status;
        if (i != index && other && !other->folder && strcmp(other->run_id, status->run_id) == 0) {
            int order = strcmp(other->ended, status->ended);
            if (order > 0 || (order == 0 && i > index))
                return true;
        }
    }
    return false;
}

static void read_table(const struct run_list *list, struct table *table) {
    table->rows = xcalloc(list->count + 1, sizeof *table->rows);
    for (size_t i = 0; i < list->count; i++)
        read_row(list->paths[i], &table->rows[table->count++]);
    if (table->count > 0)
        qsort(table->rows, table->count, sizeof *table->rows, compare_rows);
}

/* Adds the row of one run. A run that cannot be read has the reason in place of the next step. */
static void add_line(struct report_table *to, const struct row *row) {
    const struct run_status *status = row->status;
    report_cell_text(to, row->path);
    if (!status) {
        const char *const cells[] = {"-", "unreadable", "", "", "", row->why};
        for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
            report_cell_text(to, cells[i]);
        return;
    }
    char time[CLOCK_TEXT_SIZE], units[STATUS_UNITS_SIZE], when[STATUS_WHEN_SIZE];
    size_t missing = status->nodes_out_of_reach + status->nodes_lost + status->nodes_out;
    cleanup_free char *all = xformat("%zu", status->node_count);
    cleanup_free char *some = xformat("%zu of %s", status->node_count - missing, all);
    report_cell_text(to, status_describe_time(status->started, time));
    report_cell_text(to, run_condition_name(status->condition));
    report_cell_text(to, status_describe_units(status, units));
    report_cell_text(to, missing > 0 ? some : all);
    report_cell_text(to, status_describe_when(status, when));
    report_cell_text(to, status->command ? status->command : "");
}

/* Prints a line for each run that no other run of the table supersedes. */
static void print_table(const struct table *table) {
    static const struct column columns[] = {
        {.label = "run"},   {.label = "started (UTC)"}, {.label = "status"},         {.label = "units"},
        {.label = "nodes"}, {.label = "when"},          {.label = "what to do next"}};
    cleanup(report_cleanup) struct report *report = report_new();
    struct report_table *lines =
        report_table(report->root, NULL, NULL, columns, sizeof columns / sizeof *columns);
    report_print_whole(lines);
    for (size_t i = 0; i < table->count; i++)
        if (!is_superseded(table, i))
            add_line(lines, &table->rows[i]);
    report_print(report, stdout, false);
}

static void print_json(const struct table *table) {
    cleanup(json_cleanup) cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; i < table->count; i++) {
        const struct row *row = &table->rows[i];
        if (is_superseded(table, i))
            continue;
        cleanup(report_cleanup) struct report *report =
            row->status ? status_describe(row->status) : report_new();
        if (!row->status) {
            report_text(report->root, "path", NULL, row->path, true);
            report_text(report->root, "status", NULL, "unreadable", true);
            report_text(report->root, "error", NULL, row->why, true);
        }
        cJSON_AddItemToArray(array, report_json(report));
    }
    output_json(array, true);
}

/* ---- Reservations ------------------------------------------------------------------------------ */

static void print_reservations(const struct table *table) {
    static const struct column columns[] = {{.label = "run"},         {.label = "testbed"},
                                            {.label = "id"},          {.label = "since (UTC)"},
                                            {.label = "until (UTC)"}, {.label = "status"}};
    cleanup(report_cleanup) struct report *report = report_new();
    struct report_table *lines =
        report_table(report->root, NULL, NULL, columns, sizeof columns / sizeof *columns);
    report_print_whole(lines);
    for (size_t i = 0; i < table->count; i++) {
        const struct run_status *status = table->rows[i].status;
        const struct run_history_reservation *held = &status->history.held;
        char since[CLOCK_TEXT_SIZE], until[CLOCK_TEXT_SIZE];
        report_cell_text(lines, table->rows[i].path);
        report_cell_text(lines, held->testbed);
        report_cell_text(lines, held->id);
        report_cell_text(lines, status_describe_moment(held->since_ns, since));
        report_cell_text(lines, status_describe_moment(held->until_ns, until));
        report_cell_text(lines, run_condition_name(status->condition));
    }
    report_print(report, stdout, false);
}

/* Removes all rows but those of runs that have something reserved. */
static void keep_reserved(struct table *table) {
    size_t kept = 0;
    for (size_t i = 0; i < table->count; i++) {
        struct row row = table->rows[i];
        table->rows[i] = (struct row){0};
        if (row.status && run_history_is_reserved(&row.status->history, clock_wall_ns()))
            table->rows[kept++] = row;
        else
            clear_row(&row);
    }
    table->count = kept;
}

/* ---- The command ------------------------------------------------------------------------------- */

int command_list(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(run_list_clear) struct run_list list = {0};
    cleanup(clear_table) struct table table = {0};
    bool prunes = verb_switch(arguments, "--prune"), has_consent = verb_switch(arguments, "--yes");
    if ((prunes && arguments->option_count > 1u + has_consent) || (has_consent && !prunes))
        return failure_input(failure, "list", 0, 0, "--prune goes with --yes alone, and --yes with --prune");
    int r = arguments->operand_count == 0 ? run_list_add(&list, "runs", failure) : 0;
    for (size_t i = 0; r == 0 && i < arguments->operand_count; i++)
        r = run_list_add(&list, arguments->operands[i], failure);
    if (r < 0)
        return r;
    if (prunes)
        return prune_runs(&list, has_consent ? PRUNE_AGREED : PRUNE_ASKS, failure);
    read_table(&list, &table);
    bool is_about_reservations = verb_switch(arguments, "--reservations");
    if (is_about_reservations)
        keep_reserved(&table);
    if (verb_switch(arguments, "--json"))
        print_json(&table);
    else if (table.count == 0)
        fputs(is_about_reservations ? "nothing is reserved\n" : "no runs\n", stderr);
    else
        (is_about_reservations ? print_reservations : print_table)(&table);
    return 0;
}
