#include "engine/report/shown.h" /* its home */
