/* assay archive import: archives of what other programs measured. */
#include "engine/command-line/archive-import.h"

#include "archive-format/import/import.h"
#include "engine/command-line/output.h"
#include "engine/foundation/cleanup.h"

#include <string.h>

static void print_result(const struct import_request *request, const struct import_result *result,
                         bool json) {
    cleanup(report_cleanup) struct report *report = report_new();
    struct report_section *root = report->root;
    report_text(root, "archive", "sealed in", request->target, false);
    report_text(root, "sha256", "sha256", result->sha256, false);
    report_number(root, "rows", "measurements", (double)result->rows, NULL, 0, false);
    report_number(root, "nodes", "nodes", (double)result->nodes, NULL, 0, false);
    for (size_t i = 0; i < result->notes.count; i++)
        report_note(root, REPORT_NOTE, "%s", result->notes.items[i]);
    output_report(report, json, false);
}

int archive_import(const struct verb_arguments *arguments, struct failure *failure) {
    const char *format = arguments->operands[1];
    bool is_csv = strcmp(format, "csv") == 0;
    const struct import_request request = {.file = arguments->operands[2],
                                           .target = verb_value(arguments, "--output"),
                                           .mapping = verb_value(arguments, "--mapping")};
    cleanup(import_result_clear) struct import_result result = {0};
    if (!is_csv && strcmp(format, "peanut") != 0)
        return failure_input(failure, NULL, 0, 0, "'%s' cannot be imported; expected peanut or csv", format);
    if (!request.target)
        return failure_input(failure, NULL, 0, 0,
                             "the name of the archive is missing; expected -o ARCHIVE.zip");
    if (request.mapping && !is_csv)
        return failure_input(failure, NULL, 0, 0, "--mapping is for csv; the columns of peanut are known");
    int r = is_csv ? import_csv(&request, &result, failure) : import_peanut(&request, &result, failure);
    if (r == 0)
        print_result(&request, &result, verb_switch(arguments, "--json"));
    else if (result.mapping.length > 0)
        output_bytes(result.mapping.bytes, result.mapping.length);
    return r;
}
