/* How a run stands, for people and for programs: what `assay status` and `assay list` share. */
#ifndef ASSAY_RECORD_STATUS_REPORT_H
#define ASSAY_RECORD_STATUS_REPORT_H

#include "engine/report/report.h"
#include "engine/run/record/status.h"

/* The report of a status; in JSON every member is always there. The caller frees. */
struct report *status_describe(const struct run_status *status);

/* "3 of 6", "3" when it is not known of how many. Returns BUFFER. */
enum { STATUS_UNITS_SIZE = 64, STATUS_WHEN_SIZE = 96 };
const char *status_describe_units(const struct run_status *status, char buffer[static STATUS_UNITS_SIZE]);
/* "12 min left", "ended 2026-11-20 10:02:03", "last heard of 2026-11-20 10:02:03". Returns BUFFER. */
const char *status_describe_when(const struct run_status *status, char buffer[static STATUS_WHEN_SIZE]);
/* "2026-11-20 10:02:03" of a time as clock_format() writes it; "-" for an empty one. Returns BUFFER. */
const char *status_describe_time(const char *time, char buffer[static CLOCK_TEXT_SIZE]);

/* As status_describe_time() for ns since 1970; "-" for 0. */
const char *status_describe_moment(int64_t wall_ns, char buffer[static CLOCK_TEXT_SIZE]);

#endif
