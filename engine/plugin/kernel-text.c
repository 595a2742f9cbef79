#include "engine/plugin/kernel-text.h"

#include "engine/foundation/number.h"

#include <math.h>
#include <string.h>

int kernel_text_number(struct text *text, double value) {
    char digits[NUMBER_TEXT_SIZE];
    if (isinf(value))
        return text_append_string(text, value < 0 ? "-HUGE_VAL" : "HUGE_VAL");
    number_format_double(value, digits);
    return text_printf(text, "%s%s", digits, strpbrk(digits, ".e") ? "" : ".0");
}

int kernel_text_comment(struct text *text, const char *words) {
    int r = 0;
    for (char before = ' '; r == 0 && *words; words++) {
        unsigned char byte = (unsigned char)*words;
        bool bad = byte < ' ' || byte > 126 || byte == '\\' || /* \ joins lines, as does ??/ */
                   (byte == '/' && (before == '*' || before == '?')) || (byte == '*' && before == '/');
        before = bad ? '?' : *words;
        r = text_append_character(text, before);
    }
    return r;
}

double kernel_sigma(const struct predict_part *part, size_t term) {
    return part->noise && part->noise->coefficients ? part->noise->coefficients[term] : 0;
}

static int check_part(const struct predict_model *view, const struct predict_group *group,
                      const struct predict_part *part, double seconds, bool noisy, struct failure *failure) {
    const struct plugin_noise *noise = noisy ? part->noise : NULL;
    if (noise && strncmp(noise->kind, "N-", 2) != 0)
        return failure_input(failure, view->name, 0, 0,
                             "the noise of the group '%.128s' is a %.32s, which the export has no words for; "
                             "--no-noise leaves it out",
                             group->name, noise->kind);
    bool finite = !noise || isfinite(noise->constant * seconds);
    for (size_t t = 0; finite && t < view->term_count; t++)
        finite =
            isfinite(part->estimates[t] * seconds) && (!noise || isfinite(kernel_sigma(part, t) * seconds));
    if (finite)
        return 0;
    return failure_input(failure, view->name, 0, 0,
                         "an estimate of the group '%.128s' is not finite in seconds", group->name);
}

int kernel_check_groups(const struct predict_model *view, double seconds, bool noisy,
                        struct failure *failure) {
    for (size_t g = 0; g < view->group_count; g++)
        for (size_t p = 0; p < view->groups[g].part_count; p++) {
            const struct predict_group *group = &view->groups[g];
            int r = check_part(view, group, &group->parts[p], seconds, noisy, failure);
            if (r < 0)
                return r;
        }
    return 0;
}
