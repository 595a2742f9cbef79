/* assay list: a line for each run. */
#include "engine/command-line/run-list.h"
#include "engine/command-line/shown.h"
#include "engine/command-line/status-describe.h"
#include "engine/command-line/verb.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_BYTES_MAX = 256 << 20 };

/* What was read of one item; STATUS is NULL for what cannot be read, and WHY says it. */
struct row {
    const char *path;
    struct run_status *status;
    char *why;
};

struct table {
    struct row *rows;
    size_t count;
};

static void clear_table(struct table *table) {
    for (size_t i = 0; i < table->count; i++) {
        run_status_free(table->rows[i].status);
        free(table->rows[i].why);
    }
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

static int read_row(const struct run_list_item *item, struct row *row, struct failure *failure) {
    struct failure why = {0};
    row->path = item->path;
    int r = item->is_archive ? run_status_read_archive(item->path, &row->status, &why)
                             : run_status_read(item->path, &row->status, &why);
    if (r < 0) {
        char sentence[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE];
        row->why = strdup(failure_describe(&why, sentence, sizeof sentence));
    }
    return r < 0 && !row->why ? failure_memory(failure) : 0;
}

/* Was the same run sealed again later, in an archive that has its own row? */
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

static int read_table(const struct run_list *list, struct table *table, struct failure *failure) {
    table->rows = xcalloc(list->count + 1, sizeof *table->rows);
    int r = 0;
    for (size_t i = 0; r == 0 && i < list->count; i++)
        r = read_row(&list->items[i], &table->rows[table->count++], failure);
    if (r == 0 && table->count > 0)
        qsort(table->rows, table->count, sizeof *table->rows, compare_rows);
    return r;
}

/* ---- As a table -------------------------------------------------------------------------------- */

enum { CELLS = 7 };
struct line {
    struct shown cells[CELLS];
};

static struct line describe_row(const struct row *row) {
    struct line line = {0};
    const struct run_status *status = row->status;
    line.cells[0] = shown(row->path);
    if (!status) {
        line.cells[1] = shown("-");
        line.cells[2] = shown("unreadable");
        line.cells[6] = shown(row->why);
        return line;
    }
    char time[CLOCK_TEXT_SIZE], units[STATUS_UNITS_SIZE], when[STATUS_WHEN_SIZE], nodes[64];
    size_t missing = status->nodes_out_of_reach + status->nodes_lost + status->nodes_out;
    if (missing > 0)
        snprintf(nodes, sizeof nodes, "%zu of %zu", status->node_count - missing, status->node_count);
    else
        snprintf(nodes, sizeof nodes, "%zu", status->node_count);
    line.cells[1] = shown(status_describe_time(status->started, time));
    line.cells[2] = shown(run_condition_name(status->condition));
    line.cells[3] = shown(status_describe_units(status, units));
    line.cells[4] = shown(nodes);
    line.cells[5] = shown(status_describe_when(status, when));
    line.cells[6] = shown(status->command ? status->command : "");
    return line;
}

/* How many columns of a terminal TEXT takes; what is shown is valid UTF-8. */
static int width_of(const char *text) {
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void print_line(const struct line *line, const int widths[static CELLS]) {
    size_t last = CELLS;
    while (last > 0 && !line->cells[last - 1].text[0])
        last--;
    for (size_t i = 0; i < last; i++) {
        int padding = i + 1 < last ? widths[i] - width_of(line->cells[i].text) + 2 : 0;
        printf("%s%*s", line->cells[i].text, padding, "");
    }
    putchar('\n');
}

static void print_table(const struct table *table) {
    static const char *const names[CELLS] = {"run",   "started (UTC)", "status",         "units",
                                             "nodes", "when",          "what to do next"};
    struct line head;
    for (size_t k = 0; k < CELLS; k++)
        head.cells[k] = shown(names[k]);
    int widths[CELLS] = {0};
    for (size_t i = 0; i <= table->count; i++) {
        struct line line = i == 0 ? head : describe_row(&table->rows[i - 1]);
        for (size_t k = 0; k < CELLS; k++)
            if (width_of(line.cells[k].text) > widths[k])
                widths[k] = width_of(line.cells[k].text);
    }
    print_line(&head, widths);
    for (size_t i = 0; i < table->count; i++)
        if (!is_superseded(table, i)) {
            struct line line = describe_row(&table->rows[i]);
            print_line(&line, widths);
        }
}

/* ---- As JSON ----------------------------------------------------------------------------------- */

static int print_json(const struct table *table, struct failure *failure) {
    cleanup(json_cleanup) cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; array && i < table->count; i++) {
        const struct row *row = &table->rows[i];
        if (is_superseded(table, i))
            continue;
        cJSON *object = row->status ? status_describe_json(row->status) : cJSON_CreateObject();
        if (object && !row->status) {
            json_add_string(object, "path", row->path);
            json_add_string(object, "status", "unreadable");
            json_add_string(object, "error", row->why);
        }
        if (!object || !cJSON_AddItemToArray(array, object))
            return failure_memory(failure);
    }
    cleanup(text_clear) struct text text;
    text_init(&text, JSON_BYTES_MAX);
    if (!array || json_print(array, true, &text) < 0)
        return failure_memory(failure);
    printf("%s\n", text.bytes);
    return 0;
}

/* ---- The command ------------------------------------------------------------------------------- */

static int run(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(run_list_clear) struct run_list list = {0};
    cleanup(clear_table) struct table table = {0};
    int r = arguments->operand_count == 0 ? run_list_add(&list, "runs", failure) : 0;
    for (size_t i = 0; r == 0 && i < arguments->operand_count; i++)
        r = run_list_add(&list, arguments->operands[i], failure);
    if (r == 0)
        r = read_table(&list, &table, failure);
    if (r < 0)
        return r;
    if (verb_switch(arguments, "--json"))
        return print_json(&table, failure);
    if (table.count > 0)
        print_table(&table);
    else
        fputs("no runs\n", stderr);
    return 0;
}

static const struct verb_option options[] = {
    {"--json", 0, NULL, "prints one JSON array, an object a run as 'assay status --json' has it", false},
    {NULL, 0, NULL, NULL, false},
};

const struct verb verb_list = {
    .name = "list",
    .summary = "list runs: how they stand, and what to do next",
    .synopsis = "assay list [FOLDER]... [--json]",
    .description =
        "Lists the runs in each FOLDER, runs/ if none is given, a line a run and the newest last: when it "
        "started, how it stands ('assay status' says what the words mean), units done of those planned, its "
        "nodes, "
        "how long it still takes or when it ended, and the command that continues it, if it needs one. "
        "Runs "
        "whose folder is gone are listed from their archives. What cannot be read is listed with the "
        "reason.\n\n"
        "  assay list\n"
        "  assay list /scratch/campaigns/runs --json",
    .options = options,
    .operands_least = 0,
    .operands_most = SIZE_MAX,
    .run = run,
};
