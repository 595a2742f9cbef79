/* Which series are read: those that a filter names, and the refusal of names that nothing has. Private to
 * this room. */
#ifndef ASSAY_HISTORY_FILTER_H
#define ASSAY_HISTORY_FILTER_H

#include "engine/history/store.h"

bool history_filter_matches(const struct history_filter *filter, const struct history_series *series);
/* FAILURE_INPUT unless the name that FILTER has for its part WHICH is one of the COUNT names in PLACE. */
int history_filter_check(const struct history_filter *filter, size_t which, const char *const *names,
                         size_t count, const char *place, struct failure *failure);
/* FAILURE_INPUT: no series has all that FILTER names; with the message EMPTY if it names nothing. */
int history_filter_refuse(const struct history_filter *filter, const char *place, const char *empty,
                          struct failure *failure);

#endif
