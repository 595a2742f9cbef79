#include "engine/plugin/group-names.h"

#include "engine/foundation/cleanup.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct named {
    const char *name;
    size_t group;
};

struct group_names {
    struct named *items; /* by name, then by group */
    size_t count;
};

static int compare_names(const void *a, const void *b) {
    const struct named *one = a, *other = b;
    int order = strcmp(one->name, other->name);
    return order ? order : one->group < other->group ? -1 : one->group > other->group;
}

int group_names_new(const struct predict_model *model, struct group_names **ret, struct failure *failure) {
    cleanup(group_names_cleanup) struct group_names *names = calloc(1, sizeof *names);
    if (!names || !(names->items = calloc(model->group_count + 1, sizeof *names->items)))
        return failure_memory(failure);
    names->count = model->group_count;
    for (size_t g = 0; g < model->group_count; g++)
        names->items[g] = (struct named){model->groups[g].name, g};
    qsort(names->items, names->count, sizeof *names->items, compare_names);
    *ret = take_pointer(names);
    return 0;
}

void group_names_free(struct group_names *names) {
    if (!names)
        return;
    free(names->items);
    free(names);
}

void group_names_cleanup(struct group_names **names) {
    group_names_free(*names);
}

size_t group_names_find(const struct group_names *names, const char *name) {
    size_t low = 0, high = names->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(names->items[middle].name, name);
        if (order == 0)
            return names->items[middle].group;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return SIZE_MAX;
}

size_t group_names_twin(const struct group_names *names, size_t *next) {
    for (size_t i = *next; i + 1 < names->count; i++)
        if (strcmp(names->items[i].name, names->items[i + 1].name) == 0) {
            *next = i + 1;
            return names->items[i + 1].group;
        }
    return SIZE_MAX;
}

bool group_names_join(const char *const *labels, size_t count, char *buffer, size_t size) {
    static const char *const none[] = {"all"};
    size_t length = 0;
    if (count == 0) {
        labels = none;
        count = 1;
    }
    for (size_t j = 0; j < count; j++) {
        size_t more = strlen(labels[j]) + (j > 0);
        if (length + more >= size)
            return false;
        if (j > 0)
            buffer[length] = '/';
        memcpy(buffer + length + (j > 0), labels[j], more - (j > 0));
        length += more;
    }
    buffer[length] = '\0';
    return true;
}
