#include "engine/history/filter.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/text.h"

#include <string.h>

static const char *const part_names[HISTORY_FILTERS] = {"campaign", "response", "node"};

bool history_filter_matches(const struct history_filter *filter, const struct history_series *series) {
    const char *const has[HISTORY_FILTERS] = {series->campaign, series->response, series->node};
    for (size_t i = 0; i < HISTORY_FILTERS; i++)
        if (filter->names[i] && strcmp(filter->names[i], has[i]) != 0)
            return false;
    return true;
}

int history_filter_check(const struct history_filter *filter, size_t which, const char *const *names,
                         size_t count, const char *place, struct failure *failure) {
    const char *name = filter->names[which];
    char instead[TEXT_INSTEAD_SIZE];
    if (text_find(name, names, count) < count)
        return 0;
    return failure_input(failure, place, 0, 0, "no series has the %s '%.64s'; %s", part_names[which], name,
                         text_instead(name, names, count, instead));
}

int history_filter_refuse(const struct history_filter *filter, const char *place, const char *empty,
                          struct failure *failure) {
    cleanup(text_clear) struct text list;
    text_init(&list, FAILURE_TEXT_SIZE / 2);
    for (size_t i = 0; i < HISTORY_FILTERS; i++)
        if (filter->names[i])
            (void)text_printf(&list, "%sthe %s '%.64s'", list.length > 0 ? " and " : "", part_names[i],
                              filter->names[i]);
    if (list.length == 0)
        return failure_input(failure, place, 0, 0, "%s", empty);
    return failure_input(failure, place, 0, 0,
                         "no single series has %s together; 'assay history export' prints all "
                         "series",
                         list.bytes);
}
