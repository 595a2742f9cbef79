/*
 * Models of one table side by side, each cross-validated on the same folds of it: methods, formulas, kinds of
 * noise, pooled or by the first columns of `by`; and which of them suffices (choice.h).
 *
 * Folds leave whole settings out: rows that are equal in all columns that any of the alternatives uses, or in
 * those that `folds_by` says. A method with a parameter `noise` is tried with its words `homoscedastic` and
 * `heteroscedastic`, unless the settings say which. Of
 * alternatives with the same terms, groups and noise only the first is compared.
 */
#ifndef ASSAY_FIT_ALTERNATIVES_H
#define ASSAY_FIT_ALTERNATIVES_H

#include "engine/fit/choice.h"
#include "engine/fit/fit.h"

/* Limit of rows times alternatives: each prediction takes 40 bytes. */
#define ALTERNATIVES_ROWS_MAX ((size_t)1 << 27)

struct alternatives_request {
    /* Response, sizes, groups (all columns of `by`), weights, settings, seed, folds. Terms are not looked at.
     */
    const struct fit_options *options;
    const char *const *methods; /* at least one */
    size_t method_count;
    const char *const *terms; /* of methods that take terms; none: M-0, M-1, M-2 */
    size_t term_count;
};

struct alternative {
    const struct library *library;
    const char *terms, *noise; /* NULL: the method takes none */
    size_t by_count;           /* the number of columns of `by`, from the first, that form its groups */
    bool is_repeated;          /* an earlier one has the same terms, groups and noise: it is not compared */
    char *reason;              /* owned: why some or all groups have no fit; or NULL */
};

struct alternatives {
    struct alternative
        *items; /* from simple to complex groups; then methods, terms, noise as they were given */
    struct contender *contenders; /* one each */
    size_t count;
    struct choice choice;
    size_t folds, settings;
    struct library **libraries;
    size_t library_count;
};

/* Fits and compares all alternatives over TABLE, which is open but not loaded. An alternative that cannot
 * be fitted has a reason; it is a failure if none can. RET is to be cleared after failures, too. */
int alternatives_make(const struct installation *installation, struct table *table,
                      const struct alternatives_request *request, struct alternatives *ret,
                      struct failure *failure);
void alternatives_clear(struct alternatives *alternatives);
/* Adds the comparison, the choice and the reasons to a report. OPTIONS are those of the request. */
void alternatives_report(struct report_section *in, const struct alternatives *alternatives,
                         const struct table *table, const struct fit_options *options);

#endif
