/* assay model check: whether model files hold together, and whether they hold for new measurements. */
#include "engine/command-line/model/command.h"

#include "engine/command-line/output.h"
#include "engine/fit/model-check.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"
#include "engine/model/read.h"

#include <string.h>

enum { MOST_USUAL = 2 };

static int read_options(const struct verb_arguments *arguments, struct model_check *ret,
                        struct failure *failure) {
    const char *most = verb_value(arguments, "--most");
    ret->most = MOST_USUAL;
    ret->how = (struct measured_options){.response = true,
                                         .where = verb_value(arguments, "--where"),
                                         .with_flagged = verb_switch(arguments, "--with-flagged")};
    if (most && (!number_parse_double(most, strlen(most), &ret->most) || !(ret->most > 0)))
        return failure_input(failure, NULL, 0, 0, "--most '%.64s'; expected a number above 0", most);
    if (ret->input_count == 0 && (most || ret->how.where || ret->how.with_flagged))
        return failure_input(failure, NULL, 0, 0, "--most, --where and --with-flagged need --data");
    return 0;
}

int model_command_check(const struct verb_arguments *arguments, struct failure *failure) {
    struct model_check check = {0};
    char reason[FAILURE_TEXT_SIZE] = "";
    size_t refused = 0;
    cleanup(report_cleanup) struct report *report = report_new();
    cleanup_free const char **inputs = verb_values(arguments, "--data", &check.input_count);
    check.inputs = inputs;
    int r = read_options(arguments, &check, failure);
    for (size_t i = 1; r == 0 && i < arguments->operand_count; i++) {
        cleanup(model_cleanup) struct model *model = NULL;
        r = model_check_file(&check, arguments->operands[i], report->root, &model, reason, failure);
        if (model)
            model_command_warn(model);
        refused += reason[0] != '\0';
    }
    if (r == 0)
        output_report(report, verb_switch(arguments, "--json"), false);
    if (r < 0 || refused == 0)
        return r;
    if (arguments->operand_count == 2)
        return failure_input(failure, NULL, 0, 0, "the model fails the check: %s", reason);
    return failure_input(failure, NULL, 0, 0, "%zu of %zu models fail the check", refused,
                         arguments->operand_count - 1);
}
