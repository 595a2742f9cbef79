/* engine/report/shown.h, by the name that commands use. */
#ifndef ASSAY_COMMAND_LINE_SHOWN_H
#define ASSAY_COMMAND_LINE_SHOWN_H

#include "engine/report/shown.h"

#endif
