/* Tables of messages in memory, and what a method of this build makes of them: for the tests of fit-piecewise
 * and fit-smpi. */
#ifndef ASSAY_TESTS_MESSAGE_TABLE_H
#define ASSAY_TESTS_MESSAGE_TABLE_H

#include "engine/foundation/text.h"
#include "tests/unit/fit/fitted.h"

enum { MESSAGE_SETTINGS_MAX = 12 };

static struct text table_text;
static const char *settings[MESSAGE_SETTINGS_MAX + 1]; /* "NAME=VALUE", up to NULL */

static inline int open_messages(void **state) {
    text_init(&table_text, 64 << 20);
    return fitted_set_up(state);
}

static inline int close_messages(void **state) {
    text_clear(&table_text);
    return fitted_tear_down(state);
}

/* Fits the file PATH, or where that is NULL what is in table_text, by METHOD and `settings`: 0, or less with
 * `refusal`. */
static inline int try_fit(const char *method, const char *path, struct fit_options options) {
    options.settings = settings;
    options.response = options.response ? options.response : "duration";
    return fit_file(method, path ? path : test_put("table.csv", table_text.bytes), options, NULL);
}

static inline void assert_skipped(const char *reason) {
    assert_non_null(fit);
    assert_int_equal(fit->model->skipped_count, 1);
    assert_says(fit->model->skipped[0].reason, reason);
}

static inline double line_at(const struct model_part *part, double x) {
    return part->estimates[0].estimate + part->estimates[1].estimate * x;
}

static inline void assert_noted(const char *words) {
    if (is_noted(fitted(), words))
        return;
    for (size_t i = 0; i < fitted()->note_count; i++)
        print_error("note: %s\n", fitted()->notes[i]);
    fail_msg("no note has '%s'", words);
}

#endif
