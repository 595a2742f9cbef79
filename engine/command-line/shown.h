#ifndef ASSAY_COMMAND_LINE_SHOWN_H
#define ASSAY_COMMAND_LINE_SHOWN_H

#include "engine/report/shown.h" /* its home */

#endif
