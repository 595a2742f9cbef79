#include "engine/run/measure/student-t.h"

#include <math.h>
#include <stdbool.h>

enum {
    SUMMED_MOST = 1000, /* degrees of freedom */
    STEPS_MOST = 200,   /* halvings alone are through after 60 or so */
};
static const double half_pi = 1.57079632679489661923;

/* The probability of |T| <= sqrt(FREEDOM) tan(ANGLE), and how fast it rises with ANGLE. */
static double probability(uint64_t freedom, double angle, double *ret_slope) {
    bool odd = freedom % 2;
    double cosine = cos(angle), sine = sin(angle), square = cosine * cosine;
    /* The terms have cos^0, cos^2, ... or cos^1, cos^3, ...; the one after the last gives the slope. */
    double term = odd ? cosine : 1, sum = 0;
    for (uint64_t j = odd ? 3 : 2; j <= freedom; j += 2) {
        sum += term;
        term *= square * (double)(j - 1) / (double)j;
    }
    *ret_slope = (double)freedom * term / cosine / (odd ? half_pi : 1);
    return odd ? (angle + sine * sum) / half_pi : sine * sum;
}

static double by_sum(uint64_t freedom, double confidence) {
    double low = 0, high = half_pi, angle = half_pi * confidence;
    for (int i = 0; i < STEPS_MOST; i++) {
        double slope, excess = probability(freedom, angle, &slope) - confidence;
        if (excess > 0)
            high = angle;
        else
            low = angle;
        double next = angle - excess / slope;
        if (!(next > low && next < high))
            next = low + (high - low) / 2;
        if (fabs(next - angle) <= 4e-16 * angle) {
            angle = next;
            break;
        }
        angle = next;
    }
    return sqrt((double)freedom) * tan(angle);
}

/* The value that the size of a normal variable exceeds with probability 1 - CONFIDENCE. */
static double normal_two_sided(double confidence) {
    static const double root_half = 0.70710678118654752440, density = 0.79788456080286535588; /* sqrt(2/pi) */
    double low = 0, high = 40, z = 1;
    for (int i = 0; i < STEPS_MOST; i++) {
        double excess = (1 - confidence) - erfc(z * root_half);
        if (excess > 0)
            high = z;
        else
            low = z;
        double next = z - excess / (density * exp(-z * z / 2));
        if (!(next > low && next < high))
            next = low + (high - low) / 2;
        bool done = fabs(next - z) <= 1e-15 * z;
        z = next;
        if (done)
            break;
    }
    return z;
}

static double by_expansion(uint64_t freedom, double confidence) {
    double z = normal_two_sided(confidence), s = z * z, n = (double)freedom;
    double first = z * (s + 1) / 4;
    double second = z * ((5 * s + 16) * s + 3) / 96;
    double third = z * (((3 * s + 19) * s + 17) * s - 15) / 384;
    double fourth = z * ((((79 * s + 776) * s + 1482) * s - 1920) * s - 945) / 92160;
    return z + (first + (second + (third + fourth / n) / n) / n) / n;
}

double student_t_two_sided(uint64_t freedom, double confidence) {
    if (freedom < 1 || !(confidence > 0 && confidence < 1))
        return NAN;
    return freedom <= SUMMED_MOST ? by_sum(freedom, confidence) : by_expansion(freedom, confidence);
}
