#include "engine/run/record/summary.h"

#include "engine/foundation/clock.h"

/* 0: null. */
static void add_time(cJSON *object, const char *key, int64_t wall_ns) {
    char when[CLOCK_TEXT_SIZE];
    json_add_string(object, key, wall_ns ? clock_format(wall_ns, when) : NULL);
}

/* Phases that have no entry were skipped if a later one has. */
static void add_phases(const struct run_history *history, cJSON *object) {
    cJSON *phases = json_add_array(object, "phases");
    int last = RUN_PHASES - 1;
    while (last >= 0 && !history->phases[last].started_ns)
        last--;
    for (int i = 0; i < RUN_PHASES; i++) {
        const struct run_history_phase *phase = &history->phases[i];
        cJSON *item = json_add_object(phases, NULL);
        json_add_string(item, "name", run_phase_names[i]);
        /* Its end comes after what it seals: whoever reads this in an archive knows that it was sealed. */
        bool is_sealing = i == RUN_SEAL && history->sealed_as[0] && phase->started_ns && !phase->ended_ns;
        add_time(item, "started", phase->started_ns);
        add_time(item, "ended",
                 is_sealing ? history->parts[history->part_count - 1].ended_ns : phase->ended_ns);
        json_add_string(item, "status",
                        phase->ended_ns     ? phase->status
                        : is_sealing        ? "done"
                        : phase->started_ns ? "running"
                        : i < last          ? "skipped"
                                            : "not reached");
    }
}

static void add_parts(const struct run_history *history, cJSON *object) {
    cJSON *parts = json_add_array(object, "parts");
    for (size_t i = 0; i < history->part_count; i++) {
        const struct run_history_part *part = &history->parts[i];
        bool running = i + 1 == history->part_count && !history->sealed_as[0];
        cJSON *item = json_add_object(parts, NULL);
        add_time(item, "started", part->started_ns);
        add_time(item, "ended", running ? 0 : part->ended_ns);
        json_add_string(item, "status", running ? "running" : part->status);
        json_add_uint64(item, "units_done", part->units_done);
        json_add_string(item, "engine", part->engine[0] ? part->engine : NULL);
    }
}

/* A new item of the array KEY, which is there only when it has any. */
static cJSON *add_item(cJSON *object, const char *key) {
    cJSON *array = cJSON_GetObjectItemCaseSensitive(object, key);
    return json_add_object(array ? array : json_add_array(object, key), NULL);
}

static void add_nodes(const struct run_history *history, cJSON *object) {
    cJSON *nodes = json_add_array(object, "nodes");
    for (size_t i = 0; i < history->node_count; i++) {
        const struct run_history_node *node = history->nodes[i];
        if (node->part != history->part_count || !node->given)
            continue;
        json_add_string(nodes, NULL, node->name);
        if (node->out[0]) {
            cJSON *item = add_item(object, "nodes_out");
            json_add_string(item, "node", node->name);
            json_add_string(item, "why", node->out);
            json_add_string(item, "sentence", node->sentence);
            json_add_boolean(item, "replaced", node->replaced);
        }
        if (node->slow) {
            cJSON *item = add_item(object, "slow_nodes");
            json_add_string(item, "node", node->name);
            json_add_string(item, "sentence", node->slow);
        }
    }
}

/* A run that ended before its units were counted has at least those that are listed as missing. */
static void add_counts(const struct run_history *history, cJSON *object) {
    cJSON *counts = json_add_object(object, "counts");
    json_add_int64(counts, "units_planned",
                   history->planned ? history->planned : history->units_done + history->units_missing);
    json_add_int64(counts, "units_done", history->units_done);
    json_add_int64(counts, "units_failed", history->units_failed);
    json_add_int64(counts, "units_flagged", history->lines_flagged);
    json_add_int64(counts, "units_repeated", history->units_repeated);
    if (history->rows_settled >= 0)
        json_add_int64(counts, "rows_settled", history->rows_settled);
}

void run_history_summarize(const struct run_history *history, cJSON *object) {
    const struct run_history_part *last = &history->parts[history->part_count - 1];
    bool sealed = history->sealed_as[0];
    json_add_string(object, "run_id", history->run_id);
    json_add_string(object, "status", sealed ? history->sealed_as : "running");
    json_add_string(object, "error", history->outcome[0] ? history->outcome : NULL);
    add_time(object, "started", history->parts[0].started_ns);
    add_time(object, "ended", sealed ? last->ended_ns : 0);
    add_counts(history, object);
    add_nodes(history, object);
    add_parts(history, object);
    add_phases(history, object);
}
