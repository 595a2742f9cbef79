#include "engine/run/state/node-control.h"

#include "engine/remote/nodes/controls.h"

#include <errno.h>
#include <stdlib.h>

static void forget_expectations(struct node_control_record *record) {
    for (size_t i = 0; i < record->expectation_count; i++)
        free(record->expectations[i]);
    free(record->expectations);
    record->expectations = NULL;
    record->expectation_count = 0;
}

void node_control_record_clear(struct node_control_record *record) {
    forget_expectations(record);
    cJSON_Delete(record->json);
    *record = (struct node_control_record){0};
}

static cJSON *json_of(struct node_control_record *record) {
    if (!record->json)
        record->json = cJSON_CreateObject();
    return record->json;
}

/* The array called NAME, made if it is not there. */
static cJSON *array_of(struct node_control_record *record, const char *name) {
    cJSON *json = json_of(record);
    if (!json)
        return NULL;
    cJSON *array = cJSON_GetObjectItemCaseSensitive(json, name);
    return array ? array : json_add_array(json, name);
}

int node_control_record_state(struct node_control_record *record, const struct node_control_state *state) {
    cJSON *json = json_of(record);
    if (!json)
        return -ENOMEM;
    json_add_string(json, "boot_id", state->boot_id);
    json_add_string(json, "driver", state->driver);
    if (state->base_hz > 0)
        json_add_double(json, "base_frequency_hz", state->base_hz);
    if (state->max_hz > 0)
        json_add_double(json, "max_frequency_hz", state->max_hz);
    cJSON *array = json_add_array(json, "found");
    for (size_t i = 0; i < state->count; i++) {
        const struct node_control *control = &state->controls[i];
        cJSON *item = json_add_object(array, NULL);
        if (!item)
            return -ENOMEM;
        json_add_string(item, "control", control->name);
        json_add_string(item, "status", node_control_status_name(control->status));
        json_add_string(item, "value", control->value);
        if (control->possible[0])
            json_add_string(item, "possible", control->possible);
        if (control->driver[0])
            json_add_string(item, "driver", control->driver);
        if (control->why[0])
            json_add_string(item, "why", control->why);
    }
    return array ? 0 : -ENOMEM;
}

int node_control_record_change(struct node_control_record *record, struct node_change *change, size_t block) {
    record->target_min_hz = change->target_min_hz;
    record->target_max_hz = change->target_max_hz;
    forget_expectations(record);
    record->expectations = change->expectations;
    record->expectation_count = change->expectation_count;
    change->expectations = NULL;
    change->expectation_count = 0;
    cJSON *array = array_of(record, "set");
    for (size_t i = 0; i < change->count; i++) {
        const struct node_setting *setting = &change->settings[i];
        cJSON *item = array ? json_add_object(array, NULL) : NULL;
        if (!item)
            return -ENOMEM;
        if (block > 0)
            json_add_uint64(item, "block", block);
        json_add_string(item, "control", setting->control);
        json_add_string(item, "asked", setting->asked);
        json_add_string(item, "before", setting->before);
        json_add_string(item, "after", setting->after);
        json_add_string(item, "status", node_setting_status_name(setting->status));
        if (setting->sentence[0])
            json_add_string(item, "sentence", setting->sentence);
    }
    return array ? 0 : -ENOMEM;
}

int node_control_record_restored(struct node_control_record *record, const struct node_change *change,
                                 const char *sentence) {
    cJSON *json = json_of(record), *object = json ? json_add_object(json, "restored") : NULL;
    if (!object)
        return -ENOMEM;
    json_add_uint64(object, "files_written", change->files_written);
    json_add_uint64(object, "files_different", change->files_different);
    if (sentence && sentence[0])
        json_add_string(object, "sentence", sentence);
    if (change->different.length > 0)
        json_add_bytes(object, "different", change->different.bytes, change->different.length);
    return 0;
}

struct node_speed node_control_record_speed(const struct node_control_record *record,
                                            const struct node_proof *proof, double tolerance) {
    struct node_speed speed = {.count = proof->count};
    for (size_t i = 0; i < proof->count; i++) {
        double hz = proof->hz[i];
        speed.least = i == 0 || hz < speed.least ? hz : speed.least;
        speed.most = hz > speed.most ? hz : speed.most;
        speed.mean += hz / (double)proof->count;
        speed.slow += record->target_min_hz > 0 && hz < record->target_min_hz * (1 - tolerance);
        speed.fast += record->target_max_hz > 0 && hz > record->target_max_hz * (1 + tolerance);
    }
    return speed;
}

int node_control_record_proof(struct node_control_record *record, const struct node_proof *proof,
                              const struct node_speed *speed, size_t block) {
    cJSON *array = array_of(record, "proof"), *item = array ? json_add_object(array, NULL) : NULL;
    if (!item)
        return -ENOMEM;
    if (block > 0)
        json_add_uint64(item, "block", block);
    json_add_string(item, "source", proof->source);
    json_add_double(item, "target_min_hz", record->target_min_hz > 0 ? record->target_min_hz : 0.0 / 0.0);
    json_add_double(item, "target_max_hz", record->target_max_hz > 0 ? record->target_max_hz : 0.0 / 0.0);
    json_add_double(item, "mean_hz", speed->mean);
    cJSON *pus = json_add_array(item, "pus");
    for (size_t i = 0; pus && i < proof->count; i++) {
        cJSON *pu = json_add_object(pus, NULL);
        json_add_uint64(pu, "index", proof->pus[i]);
        json_add_double(pu, "hz", proof->hz[i]);
    }
    return pus ? 0 : -ENOMEM;
}
