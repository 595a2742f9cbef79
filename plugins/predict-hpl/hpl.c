#include "plugins/predict-hpl/hpl.h"

#include <math.h>

static double power(double base, int exponent) {
    double result = 1;
    for (int i = 0; i < exponent; i++)
        result *= base;
    return result;
}

static double term_value(const struct hpl_term *term, double m, double n, double k) {
    return power(m, term->m) * power(n, term->n) * power(k, term->k);
}

double hpl_evaluate(const struct hpl_term *terms, const double *coefficients, size_t count, double m,
                    double n, double k) {
    double seconds = 0;
    for (size_t t = 0; t < count; t++)
        seconds += coefficients[t] * term_value(&terms[t], m, n, k);
    return seconds;
}

double hpl_flops(double n) {
    return (2.0 / 3.0 * n + 1.5) * n * n;
}

/* gamma 2N^3/(3PQ) + beta N^2 (3P+Q)/(2PQ) + alpha N ((NB+1) log2 P + P)/NB */
static double closed_form(const struct hpl_scenario *s, double gamma) {
    return gamma * 2 * s->n * s->n * s->n / (3 * s->p * s->q) +
           s->word * s->n * s->n * (3 * s->p + s->q) / (2 * s->p * s->q) +
           s->latency * s->n * ((s->nb + 1) * log2(s->p) + s->p) / s->nb;
}

struct hpl_time hpl_predict(const struct hpl_scenario *s, const struct hpl_dgemm *dgemm, hpl_visit visit,
                            void *context) {
    struct hpl_time time = {.closed = closed_form(s, dgemm->gamma)};
    double rounds = log2(s->p);
    for (double done = 0; done < s->n; done += s->nb) {
        double width = s->n - done < s->nb ? s->n - done : s->nb;
        double rows = s->n - done, rest = rows - width; /* of the panel; of the trailing matrix */
        time.panels++;
        double work = (rows / s->p - width / 3) * width * width * dgemm->gamma;
        if (3 * rows < s->p * width) { /* a process has fewer rows than the term takes away */
            time.clamped++;
            time.hidden -= work;
            work = 0;
        }
        time.factorisation += work + width * rounds * (s->latency + s->word * 2 * width);
        time.broadcast += s->latency + s->word * width * rows / s->p;
        time.swap += s->latency * (rounds + s->p - 1) + 3 * s->word * rest * width / s->q;
        if (rest <= 0)
            continue;
        double m = rest / s->p, n = rest / s->q;
        double seconds = hpl_evaluate(dgemm->terms, dgemm->coefficients, dgemm->term_count, m, n, width);
        if (!(seconds > 0)) {
            seconds = 2 * m * n * width * dgemm->gamma;
            time.replaced++;
        }
        time.update += seconds + dgemm->gamma * rest * width * width / s->q;
        if (visit)
            visit(context, m, n, width, seconds);
    }
    return time;
}

void hpl_sum_terms(const struct hpl_scenario *s, const struct hpl_term *terms, size_t count, double *sums) {
    for (size_t t = 0; t < count; t++)
        sums[t] = 0;
    for (double done = 0; done < s->n; done += s->nb) {
        double width = s->n - done < s->nb ? s->n - done : s->nb;
        double rest = s->n - done - width;
        for (size_t t = 0; rest > 0 && t < count; t++)
            sums[t] += term_value(&terms[t], rest / s->p, rest / s->q, width);
    }
}
