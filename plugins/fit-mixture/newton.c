/* The last digits: Newton's method on the exact second derivatives. */
#include "plugins/fit-mixture/em.h"

#include <gsl/gsl_linalg.h>
#include <math.h>
#include <string.h>

enum {
    OWN = 3, /* parameters of a component: log weight, mean, log deviation */
    PARAMETERS_MAX = OWN * COMPONENTS_MAX,
    STEPS_MAX = 60,
    STEPS_OF_MANY = 8,
    DETOURS_MAX = 15, /* by EM, where Newton's method does not gain */
};

/* The first and second derivatives of the log-likelihood. With r_k the share of component k in a point, u its
 * distance from the mean in deviations, and b = (1, u / sigma, u^2 - 1), the gradient is the sum of r b (less
 * the weight, for a log weight), and the second derivatives of the parameters p of component j and q of l
 *
 *     sum over points of  [j = l] r_j (b_p b_q + h_pq) - r_j b_p r_l b_q  (less [j = l] w_j - w_j w_l, for
 *     two log weights),
 *
 * h the second derivatives of the logarithm of one normal. */
struct derivatives {
    double gradient[PARAMETERS_MAX], second[PARAMETERS_MAX][PARAMETERS_MAX];
};

static void add_point(const struct mixture *mixture, double at, double weight, struct derivatives *sums) {
    double density[COMPONENTS_MAX], most = -INFINITY, total = 0;
    for (size_t k = 0; k < mixture->count; k++) {
        double u = (at - mixture->mean[k]) / mixture->sigma[k];
        density[k] = log(mixture->weight[k] / mixture->sigma[k]) - 0.5 * u * u;
        most = fmax(most, density[k]);
    }
    for (size_t k = 0; k < mixture->count; k++)
        total += density[k] = exp(density[k] - most);
    double scores[PARAMETERS_MAX];
    for (size_t k = 0; k < mixture->count; k++) {
        double sigma = mixture->sigma[k], u = (at - mixture->mean[k]) / sigma, r = density[k] / total;
        const double b[OWN] = {1, u / sigma, u * u - 1};
        const double h[OWN][OWN] = {
            {0, 0, 0}, {0, -1 / (sigma * sigma), -2 * u / sigma}, {0, -2 * u / sigma, -2 * u * u}};
        for (size_t p = 0; p < OWN; p++) {
            scores[OWN * k + p] = r * b[p];
            for (size_t q = 0; q <= p; q++)
                sums->second[OWN * k + p][OWN * k + q] += weight * r * (b[p] * b[q] + h[p][q]);
        }
    }
    for (size_t p = 0; p < OWN * mixture->count; p++) {
        double score = weight * scores[p];
        sums->gradient[p] += score;
        for (size_t q = 0; q <= p; q++)
            sums->second[p][q] -= score * scores[q];
    }
}

static void differentiate(const struct mixture *mixture, const struct points *points,
                          struct derivatives *ret) {
    memset(ret, 0, sizeof *ret);
    double all = 0;
    for (size_t i = 0; i < points->count; i++) {
        add_point(mixture, points->at[i], points->weight[i], ret);
        all += points->weight[i];
    }
    for (size_t k = 0; k < mixture->count; k++) {
        ret->gradient[OWN * k] -= all * mixture->weight[k];
        for (size_t l = 0; l <= k; l++)
            ret->second[OWN * k][OWN * l] -=
                all * mixture->weight[k] * ((k == l ? 1 : 0) - mixture->weight[l]);
    }
}

/* The parameters that may move: all but one log weight, since they add up, and deviations at the floor. */
static size_t list_free(const struct mixture *mixture, const struct floor *floor, size_t *ret) {
    size_t greatest = 0, count = 0;
    for (size_t k = 1; k < mixture->count; k++)
        if (mixture->weight[k] > mixture->weight[greatest])
            greatest = k;
    for (size_t p = 0; p < OWN * mixture->count; p++) {
        size_t k = p / OWN;
        bool held = p % OWN == 0 ? k == greatest : p % OWN == 2 && mixture->sigma[k] <= floor->sigma;
        if (!held)
            ret[count++] = p;
    }
    return count;
}

/* The step of Newton's method into STEP (0 for what is held); what the log-likelihood gains by it, by its
 * second order; negative where it has no maximum nearby. */
static double find_step(const struct mixture *mixture, const struct points *points, const struct floor *floor,
                        double *step) {
    struct derivatives sums;
    differentiate(mixture, points, &sums);
    size_t list[PARAMETERS_MAX], count = list_free(mixture, floor, list);
    double matrix[PARAMETERS_MAX * PARAMETERS_MAX], right[PARAMETERS_MAX];
    for (size_t i = 0; i < count; i++) {
        right[i] = sums.gradient[list[i]];
        for (size_t j = 0; j <= i; j++)
            matrix[i * count + j] = matrix[j * count + i] = -sums.second[list[i]][list[j]];
    }
    memset(step, 0, PARAMETERS_MAX * sizeof *step);
    if (count == 0)
        return 0;
    gsl_matrix_view a = gsl_matrix_view_array(matrix, count, count);
    gsl_vector_view x = gsl_vector_view_array(right, count);
    if (gsl_linalg_cholesky_decomp1(&a.matrix) != 0)
        return -1;
    gsl_linalg_cholesky_svx(&a.matrix, &x.vector);
    double gain = 0;
    for (size_t i = 0; i < count; i++) {
        step[list[i]] = right[i];
        gain += 0.5 * right[i] * sums.gradient[list[i]];
    }
    return gain;
}

static void move(const struct mixture *from, const double *step, double length, const struct floor *floor,
                 struct mixture *ret) {
    double total = 0;
    *ret = *from;
    for (size_t k = 0; k < from->count; k++) {
        total += ret->weight[k] = from->weight[k] * exp(length * step[OWN * k]);
        ret->mean[k] = from->mean[k] + length * step[OWN * k + 1];
        ret->sigma[k] = fmax(from->sigma[k] * exp(length * step[OWN * k + 2]), floor->sigma);
    }
    for (size_t k = 0; k < from->count; k++)
        ret->weight[k] /= total;
}

/* Takes the step or a part of it, if that gains. */
static bool take_step(struct mixture *mixture, const struct points *points, const struct floor *floor,
                      const double *step) {
    for (double length = 1; length > 0.01; length /= 2) {
        struct mixture moved;
        move(mixture, step, length, floor, &moved);
        moved.log_likelihood = em_log_likelihood(&moved, points);
        if (moved.log_likelihood > mixture->log_likelihood) {
            *mixture = moved;
            return true;
        }
    }
    return false;
}

void em_polish(struct mixture *mixture, const struct points *points, const struct floor *floor) {
    static const double enough = 1e-19; /* of the log-likelihood: 1e-9 standard errors */
    mixture->log_likelihood = em_log_likelihood(mixture, points);
    bool many = points->count > FINE_MAX; /* each step takes its time */
    int steps = many ? STEPS_OF_MANY : STEPS_MAX, detours_most = many ? 1 : DETOURS_MAX;
    for (int i = 0, detours = 0; i < steps && detours < detours_most; i++) {
        double step[PARAMETERS_MAX];
        double gain = find_step(mixture, points, floor, step);
        if (gain >= 0 && gain < 1e-9 * (1 + fabs(mixture->log_likelihood) * 1e-7)) {
            /* What is left to gain drowns in the rounding of the log-likelihood; the step is right all the
             * same. */
            struct mixture moved;
            move(mixture, step, 1, floor, &moved);
            moved.log_likelihood = em_log_likelihood(&moved, points);
            *mixture = moved;
            if (gain < enough)
                return;
            continue;
        }
        if (gain > 0 && take_step(mixture, points, floor, step))
            continue;
        detours++;
        em_climb(mixture, points, floor, 10, 0);
        mixture->log_likelihood = em_log_likelihood(mixture, points);
    }
}
