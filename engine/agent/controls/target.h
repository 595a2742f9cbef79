/* What frequency a busy PU may have, as the machine is set now. */
#ifndef ASSAY_CONTROLS_TARGET_H
#define ASSAY_CONTROLS_TARGET_H

#include "engine/agent/controls/layout.h"

/* Over all policies, in kHz; 0: not known. */
void target_find(const struct layout *layout, uint64_t *ret_min_khz, uint64_t *ret_max_khz);

#endif
