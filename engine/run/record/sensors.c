#include "engine/run/record/sensors.h"

#include <math.h>
#include <string.h>

enum { TEMPERATURE, FREQUENCY, POWER, KINDS };

/* The units that probes have. */
static const struct {
    const char *unit;
    int kind;
    double factor;
} units[] = {
    {"Cel", TEMPERATURE, 1}, {"Hz", FREQUENCY, 1}, {"kHz", FREQUENCY, 1e3}, {"MHz", FREQUENCY, 1e6},
    {"W", POWER, 1},         {"uW", POWER, 1e-6},  {"mW", POWER, 1e-3},     {"kW", POWER, 1e3},
};

/* W over all zones of the energy probe; NaN: there is one sample, or a counter has wrapped or begun anew. */
static double find_power(const struct samples_probe *probe) {
    double seconds = (double)(probe->time_ns - probe->before_ns) / 1e9, joules = 0;
    if (!probe->before || probe->before_ns == 0 || seconds <= 0)
        return NAN;
    for (size_t i = 0; i < probe->count; i++)
        if (strcmp(probe->names[i], "psys") != 0) {
            double used = (probe->values[i] - probe->before[i]) / 1e6;
            joules += used >= 0 ? used : NAN;
        }
    return joules / seconds;
}

static void add_value(double value, const char *unit, double *most, double *sum, size_t *count) {
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(unit, units[i].unit) != 0 || isnan(value))
            continue;
        int kind = units[i].kind;
        most[kind] = fmax(most[kind], value * units[i].factor);
        sum[kind] += value * units[i].factor;
        count[kind]++;
    }
}

struct sensors sensors_find(const struct samples *samples) {
    double most[KINDS] = {NAN, NAN, NAN}, sum[KINDS] = {0}, used = NAN;
    size_t count[KINDS] = {0};
    for (size_t i = 0; i < samples->count; i++) {
        const struct samples_probe *probe = &samples->probes[i];
        for (size_t c = 0; c < probe->count; c++)
            if (probe->units[c])
                add_value(probe->values[c], probe->units[c], most, sum, count);
        if (strcmp(probe->file, "energy.csv") == 0)
            used = find_power(probe);
    }
    return (struct sensors){.temperature = most[TEMPERATURE],
                            .frequency =
                                count[FREQUENCY] > 0 ? sum[FREQUENCY] / (double)count[FREQUENCY] : NAN,
                            .power = isnan(used) ? most[POWER] : used};
}
