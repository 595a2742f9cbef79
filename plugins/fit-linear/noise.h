/*
 * The noise of a group: what is told of how single rows scatter about its mean (README.md, "Noise").
 *
 * N-1 with normal errors comes from the sums alone. The others keep the rows (noise-rows.h) as they pass.
 */
#ifndef ASSAY_FIT_LINEAR_NOISE_H
#define ASSAY_FIT_LINEAR_NOISE_H

#include "plugins/fit-linear/settle.h"

enum noise_kind { NOISE_AUTO, NOISE_0, NOISE_1, NOISE_2, NOISE_RULE, NOISE_TRIMMED_RULE };
enum noise_distribution { NOISE_NORMAL, NOISE_HALF_NORMAL };
extern const char *const noise_words[], *const distribution_words[];

enum { NOISE_NOTE_SIZE = 256 };

struct noise;

/* What is told of a group's noise. */
struct noise_told {
    bool present;
    struct plugin_noise noise; /* its coefficients are the next member */
    double coefficients[EXPANSION_TERMS_MAX];
    double log_score; /* cv_log_score; NaN: not defined */
    char note[NOISE_NOTE_SIZE];
};

/* Refuses what does not go together. *RET is NULL where no noise is told, or needs nothing kept. */
int noise_new(const struct fit *fit, struct noise **ret, struct plugin_message *message);
void noise_free(struct noise *noise);

/* Rows of a pass as moments_add gets them; those that it leaves out are left out here too. NULL is fine. */
int noise_add(struct noise *noise, size_t rows, const double *const *columns, const uint32_t *cells,
              const uint8_t *folds, struct plugin_message *message);

/* The noise of GROUP, which was settled. Where the mean is found together with the noise, the estimates in
 * SETTLED change, and with them the covariance, rss, sigma, R2, likelihood, AIC, BIC and the error on rows
 * left out. NOISE as noise_new gave it. */
int noise_settle(struct noise *noise, const struct fit *fit, uint32_t group, struct settled *settled,
                 struct noise_told *ret);

#endif
