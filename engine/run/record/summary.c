#include "engine/run/record/summary.h"

#include "engine/foundation/memory.h"

/* NULL for "" and NULL. */
static char *copy(const char *text) {
    return text && text[0] ? xstrdup(text) : NULL;
}

/* Phases that have no entry were skipped if a later one has. */
static void add_phases(const struct run_history *history, struct archive_run *run) {
    int last = RUN_PHASES - 1;
    while (last >= 0 && !history->phases[last].started_ns)
        last--;
    for (int i = 0; i < RUN_PHASES; i++) {
        const struct run_history_phase *phase = &history->phases[i];
        /* Its end comes after what it seals: whoever reads this in an archive knows that it was sealed. */
        bool is_sealing = i == RUN_SEAL && history->sealed_as[0] && phase->started_ns && !phase->ended_ns;
        *(struct archive_phase *)bind_items_add(&run->phases, sizeof(struct archive_phase)) =
            (struct archive_phase){.name = xstrdup(run_phase_names[i]),
                                   .started_ns = phase->started_ns,
                                   .ended_ns = is_sealing ? history->parts[history->part_count - 1].ended_ns
                                                          : phase->ended_ns,
                                   .status = xstrdup(phase->ended_ns     ? phase->status
                                                     : is_sealing        ? "done"
                                                     : phase->started_ns ? "running"
                                                     : i < last          ? "skipped"
                                                                         : "not reached")};
    }
}

static void add_parts(const struct run_history *history, struct archive_run *run) {
    for (size_t i = 0; i < history->part_count; i++) {
        const struct run_history_part *part = &history->parts[i];
        bool running = i + 1 == history->part_count && !history->sealed_as[0];
        *(struct archive_part *)bind_items_add(&run->parts, sizeof(struct archive_part)) =
            (struct archive_part){.started_ns = part->started_ns,
                                  .ended_ns = running ? 0 : part->ended_ns,
                                  .status = xstrdup(running ? "running" : part->status),
                                  .units_done = (int64_t)part->units_done,
                                  .engine = copy(part->engine)};
    }
}

/* Adds the nodes of the last part, which of them were taken out, and which are slow. */
static void add_nodes(const struct run_history *history, struct archive_run *run) {
    for (size_t i = 0; i < history->node_count; i++) {
        const struct run_history_node *node = history->nodes[i];
        if (node->part != history->part_count || !node->given)
            continue;
        bind_texts_add(&run->nodes, node->name);
        if (node->out[0])
            *(struct archive_node_out *)bind_items_add(&run->nodes_out, sizeof(struct archive_node_out)) =
                (struct archive_node_out){xstrdup(node->name), xstrdup(node->out), copy(node->sentence),
                                          node->replaced};
        if (node->slow)
            *(struct archive_slow_node *)bind_items_add(&run->slow_nodes, sizeof(struct archive_slow_node)) =
                (struct archive_slow_node){xstrdup(node->name), xstrdup(node->slow)};
    }
}

void run_history_summarize(const struct run_history *history, struct archive_run *run) {
    bool sealed = history->sealed_as[0];
    run->run_id = xstrdup(history->run_id);
    run->status = xstrdup(sealed ? history->sealed_as : "running");
    run->error = copy(history->outcome);
    if (history->based_on[0]) {
        run->based_on = xcalloc(1, sizeof *run->based_on);
        *run->based_on = (struct archive_origin){copy(history->based_on), copy(history->based_on_archive),
                                                 copy(history->based_on_sha256)};
    }
    run->started_ns = history->parts[0].started_ns;
    run->ended_ns = sealed ? history->parts[history->part_count - 1].ended_ns : 0;
    /* A run that ended before its units were counted has at least those that are listed as missing. */
    run->counts = (struct archive_counts){
        .planned = history->planned ? history->planned : history->units_done + history->units_missing,
        .done = history->units_done,
        .failed = history->units_failed,
        .flagged = history->lines_flagged,
        .repeated = history->units_repeated,
        .rows_settled = history->rows_settled};
    add_nodes(history, run);
    add_parts(history, run);
    add_phases(history, run);
}
