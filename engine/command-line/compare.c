/* assay compare: models side by side, and on measurements that they have not seen. */
#include "engine/command-line/output.h"
#include "engine/command-line/verb.h"
#include "engine/fit/comparison.h"
#include "engine/foundation/cleanup.h"

int command_compare(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(comparison_clear) struct comparison comparison = {0};
    cleanup(report_cleanup) struct report *report = report_new();
    const struct measured_options options = {.response = true,
                                             .where = verb_value(arguments, "--where"),
                                             .with_flagged = verb_switch(arguments, "--with-flagged")};
    size_t count = 0;
    cleanup_free const char **inputs = verb_values(arguments, "--data", &count);
    int r = comparison_make(arguments->operands, arguments->operand_count, inputs, count, &options,
                            &comparison, failure);
    if (r < 0)
        return r;
    comparison_report(report->root, &comparison);
    output_report(report, verb_switch(arguments, "--json"), verb_switch(arguments, "--verbose"));
    return 0;
}
