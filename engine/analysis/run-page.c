#include "engine/analysis/run-page.h"

#include "archive-format/reader.h"
#include "engine/analysis/answer.h"
#include "engine/analysis/influence.h"
#include "engine/analysis/plots.h"
#include "engine/analysis/series.h"
#include "engine/analysis/trust.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/host-list.h"
#include "engine/foundation/memory.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* The inputs, opened again. */
struct inputs {
    struct archive_reader **archives;
    const struct archive_run **runs; /* theirs */
    size_t count;
};

static void inputs_clear(struct inputs *inputs) {
    for (size_t i = 0; i < inputs->count; i++)
        archive_close(inputs->archives[i]);
    free(inputs->archives), free(inputs->runs);
}

/* Opens the archives of all runs. After a failure INPUTS has those that were opened. */
static int open_inputs(const struct measurements *measurements, struct inputs *inputs,
                       struct failure *failure) {
    size_t count = measurements->table->input_count;
    inputs->archives = xcalloc(count + 1, sizeof(struct archive_reader *));
    inputs->runs = xcalloc(count + 1, sizeof(const struct archive_run *));
    for (size_t i = 0; i < count; i++) {
        int r = archive_open(measurements->table->inputs[i].path, &inputs->archives[i], failure);
        if (r < 0)
            return r;
        inputs->count++;
        inputs->runs[i] = archive_run(inputs->archives[i]);
    }
    return 0;
}

/* Adds the table of the runs. */
static void report_runs(const struct measurements *measurements, const struct inputs *inputs,
                        struct report_section *in) {
    static const struct column columns[] = {{.name = "run"},
                                            {.name = "status"},
                                            {.name = "began"},
                                            {.name = "took", .unit = "s", .digits = 4},
                                            {.name = "nodes"},
                                            {.name = "testbed"},
                                            {.name = "units", .digits = 9},
                                            {.name = "failed", .digits = 9},
                                            {.name = "flagged", .digits = 9},
                                            {.name = "engine"}};
    struct report_table *table = report_table(in, "runs", NULL, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < inputs->count; i++) {
        const struct archive_run *run = inputs->runs[i];
        char began[CLOCK_TEXT_SIZE];
        clock_format(run->started_ns, began);
        cleanup(text_clear) struct text nodes;
        text_init(&nodes, SIZE_MAX / 4);
        host_list_fold((const char *const *)run->nodes.items, run->nodes.count, &nodes);
        report_cell_text(table, measurements->table->inputs[i].name);
        report_cell_text(table, run->status);
        report_cell_text(table, run->started_ns > 0 ? began : NULL);
        report_cell(table,
                    run->ended_ns > run->started_ns ? (double)(run->ended_ns - run->started_ns) / 1e9 : NAN);
        report_cell_text(table, nodes.bytes);
        report_cell_text(table, run->testbed);
        report_cell(table, (double)run->counts.done);
        report_cell(table, (double)run->counts.failed);
        report_cell(table, (double)run->counts.flagged);
        report_cell_text(table, run->engine.version);
    }
}

/* Adds warnings: nodes that were excluded or slow, and why runs failed. */
static void report_remarks(const struct inputs *inputs, struct report_section *in) {
    for (size_t i = 0; i < inputs->count; i++) {
        const struct archive_node_out *out = inputs->runs[i]->nodes_out.items;
        const struct archive_slow_node *slow = inputs->runs[i]->slow_nodes.items;
        for (size_t k = 0; k < inputs->runs[i]->nodes_out.count; k++)
            report_note(in, REPORT_WARNING, "%s was excluded from the run: %s", out[k].node,
                        out[k].sentence ? out[k].sentence : out[k].why);
        for (size_t k = 0; k < inputs->runs[i]->slow_nodes.count; k++)
            report_note(in, REPORT_WARNING, "%s is slow: %s", slow[k].node, slow[k].sentence);
        if (inputs->runs[i]->error)
            report_note(in, REPORT_WARNING, "%s", inputs->runs[i]->error);
    }
}

char *run_page_title(const struct measurements *measurements) {
    const struct table *table = measurements->table;
    return table->input_count == 1 ? xformat("%s: %s", table->inputs[0].experiment, table->inputs[0].name)
                                   : xformat("%s: %zu runs", table->inputs[0].experiment, table->input_count);
}

int run_page_report(struct report_section *in, const struct measurements *measurements,
                    const struct ranking *ranking, struct failure *failure) {
    cleanup(inputs_clear) struct inputs inputs = {0};
    int r = open_inputs(measurements, &inputs, failure);
    if (r < 0)
        return r;
    struct report_section *summary = report_section(in, "summary", "Summary", false);
    report_runs(measurements, &inputs, summary);
    report_remarks(&inputs, summary);
    trust_report(in, measurements, true);
    answer_report(report_section(in, "answer", "The answer", false), measurements, ranking, SIZE_MAX);
    influence_report(in, measurements);
    plots_report(in, measurements, inputs.runs, inputs.count);
    for (size_t i = 0; r == 0 && i < inputs.count; i++)
        r = series_report(in, inputs.archives[i], failure);
    return r;
}
