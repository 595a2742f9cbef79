#include "engine/analysis/trust.h"

#include "engine/analysis/checks.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/table/folds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COVARIATES = 3, KEYS_MAX = 3 };

/* The rows that are used. */
struct trust {
    const struct measurements *measurements;
    struct check_rows rows;
    size_t *sources;                                    /* of each, its row in the table */
    double *y, *covariates[COVARIATES];                 /* order, frequency, temperature */
    uint32_t *settings, *runs, *nodes, *cores, *blocks; /* nodes of one run, cores of one node */
};

static const struct {
    const char *name, *test, *unit; /* unit of the size */
} tests[CHECK_COUNT] = {
    [CHECK_TREND] = {"trend", "correlation of ranks with the order of measurement", "%"},
    [CHECK_AUTOCORRELATION] = {"autocorrelation", "lag-1 correlation, one-sided", ""},
    [CHECK_CARRY_OVER] = {"carry-over", "correlation of ranks with the setting before", "%"},
    [CHECK_ORDER] = {"order", "F test of the order by settings, within blocks", "%"},
    [CHECK_MODES] = {"modes", "dip test of one mode", "%"},
    [CHECK_NODES] = {"nodes", "F test of ranks", "%"},
    [CHECK_CORES] = {"cores", "F test of ranks within nodes", "%"},
    [CHECK_NEIGHBOURS] = {"neighbours", "correlation of units at one time, one-sided", ""},
    [CHECK_FREQUENCY] = {"frequency", "correlation of ranks with the frequency", "%"},
    [CHECK_TEMPERATURE] = {"temperature", "correlation of ranks with the temperature", "%"},
};

/* ---- Rows */

static void trust_clear(struct trust *trust) {
    for (size_t i = 0; i < COVARIATES; i++)
        free(trust->covariates[i]);
    free(trust->sources), free(trust->y), free(trust->settings), free(trust->runs), free(trust->nodes);
    free(trust->cores), free(trust->blocks);
}

/* Chooses the rows with a value and an order, with the covariates. The response is replaced by its logarithm
 * if all are positive. */
static void choose_rows(struct trust *trust) {
    const struct measurements *m = trust->measurements;
    const double *const covariates[COVARIATES] = {m->order, m->frequency, m->temperature};
    size_t *count = &trust->rows.count;
    trust->sources = xcalloc(m->row_count + 1, sizeof *trust->sources);
    trust->y = xcalloc(m->row_count + 1, sizeof *trust->y);
    trust->rows.is_logarithmic = true;
    for (size_t row = 0; row < m->row_count; row++) {
        if (m->left_out[row] || !isfinite(m->order[row]))
            continue;
        trust->sources[*count] = row;
        trust->y[(*count)++] = m->values[row];
        trust->rows.is_logarithmic = trust->rows.is_logarithmic && m->values[row] > 0;
    }
    for (size_t i = 0; trust->rows.is_logarithmic && i < *count; i++)
        trust->y[i] = log(trust->y[i]);
    for (size_t k = 0; k < COVARIATES; k++) {
        trust->covariates[k] = xcalloc(*count + 1, sizeof(double));
        for (size_t i = 0; i < *count; i++)
            trust->covariates[k][i] = covariates[k] ? covariates[k][trust->sources[i]] : NAN;
    }
}

/* The CODES of the rows that are used. The caller frees. */
static uint32_t *choose_codes(const struct trust *trust, const uint32_t *codes) {
    uint32_t *ret = xcalloc(trust->rows.count + 1, sizeof *ret);
    for (size_t i = 0; i < trust->rows.count; i++)
        ret[i] = codes[trust->sources[i]];
    return ret;
}

/* Numbers the combinations of KEYS and, unless it is NULL, NUMBER. */
static struct check_codes combine_codes(const struct trust *trust, const uint32_t *const *keys,
                                        size_t key_count, const double *number, uint32_t **ret) {
    const struct folds_columns columns = {&number, keys, number != NULL, key_count};
    *ret = xcalloc(trust->rows.count + 1, sizeof **ret);
    size_t levels = folds_units(&columns, trust->rows.count, *ret);
    return (struct check_codes){*ret, levels};
}

/* Numbers settings, nodes, cores and blocks of the chosen rows. Nodes of several runs count as different. */
static void number_rows(struct trust *trust) {
    const struct measurements *m = trust->measurements;
    const struct groups *settings = &m->settings;
    struct check_rows *rows = &trust->rows;
    cleanup_free uint32_t *of_row = xcalloc(m->row_count + 1, sizeof *of_row);
    cleanup_free double *blocks = xcalloc(rows->count + 1, sizeof *blocks);
    for (size_t g = 0; g < settings->count; g++)
        for (size_t i = settings->first[g]; i < settings->first[g + 1]; i++)
            of_row[settings->rows[i]] = (uint32_t)g;
    for (size_t i = 0; i < rows->count; i++)
        blocks[i] = m->block && isfinite(m->block[trust->sources[i]]) ? m->block[trust->sources[i]] : 0;
    cleanup_free uint32_t *node_names = choose_codes(trust, m->nodes),
                          *core_names = choose_codes(trust, m->cores->codes);
    trust->settings = choose_codes(trust, of_row);
    trust->runs = choose_codes(trust, m->runs);
    const uint32_t *const keys[KEYS_MAX] = {trust->runs, node_names, core_names};
    rows->settings = (struct check_codes){trust->settings, settings->count};
    rows->nodes = combine_codes(trust, keys, 2, NULL, &trust->nodes);
    rows->cores = combine_codes(trust, keys, 3, NULL, &trust->cores);
    rows->blocks = combine_codes(trust, keys, 2, blocks, &trust->blocks);
    rows->y = trust->y;
    rows->order = trust->covariates[0];
    rows->frequency = trust->covariates[1];
    rows->temperature = trust->covariates[2];
}

/* ---- Findings */

/* "node n3" or "core 2 of node n3": LEVEL of the check, by the first row that has it. The caller frees. */
static char *name_level(const struct trust *trust, enum check check, uint32_t level) {
    const struct measurements *m = trust->measurements;
    const struct table_category *cores = m->cores, *nodes = cores - 1;
    const uint32_t *codes = check == CHECK_NODES ? trust->nodes : trust->cores;
    size_t i = 0;
    while (codes[i] != level)
        i++;
    size_t row = trust->sources[i];
    const char *node = nodes->levels[nodes->codes[row]];
    return check == CHECK_NODES ? xformat("node %s", node)
                                : xformat("core %s of node %s", cores->levels[cores->codes[row]], node);
}

static const char *direction(const struct trust *trust, double size) {
    return (size > 0) == trust->measurements->most ? "better" : "worse";
}

/* A sentence about the finding, without its p; the caller frees. */
static char *describe_finding(const struct trust *trust, enum check check,
                              const struct check_result *result) {
    const char *response = trust->measurements->response;
    double size = result->size, by = fabs(size);
    switch (check) {
    case CHECK_TREND:
        return xformat("drift: %s changes by %+.2g %% from the first measurement to the last", response,
                       size);
    case CHECK_AUTOCORRELATION:
        return xformat("autocorrelation: each measurement resembles the measurement before it "
                       "(correlation %.2f), so that intervals are too narrow; a condition "
                       "changes during the run: see the charts of 'assay report'",
                       size);
    case CHECK_CARRY_OVER:
        return xformat("carry-over: %s changes by %+.2g %% with the setting that was measured before",
                       response, size);
    case CHECK_ORDER:
        return xformat("settings were not measured in random order: they explain %.0f %% of "
                       "the order, so that a drift would look like their effect; set 'order: "
                       "random' in the design",
                       size);
    case CHECK_MODES:
        return xformat("two modes: %s is %.2g %% greater in %.0f %% of the measurements", response, size,
                       100 * result->share);
    case CHECK_NODES:
    case CHECK_CORES: {
        cleanup_free char *name = name_level(trust, check, result->level);
        return xformat("%s differ: %s is %.2g %% %s than the median of the others",
                       check == CHECK_NODES ? "nodes" : "cores", name, by, direction(trust, size));
    }
    case CHECK_NEIGHBOURS:
        return xformat("units that run on one node at the same time have similar results "
                       "(correlation %.2f): they compete for a shared resource, or another "
                       "load disturbs all of them; run fewer at a time",
                       size);
    case CHECK_FREQUENCY:
        return xformat("%s follows the frequency: it is %.2g %% %s where the frequency is high than where it "
                       "is low; set the frequency, or warm the nodes up",
                       response, by, direction(trust, size));
    case CHECK_TEMPERATURE:
        return xformat(
            "%s follows the temperature: it is %.2g %% %s where the node is hot; warm the nodes up", response,
            by, direction(trust, size));
    case CHECK_COUNT:
        break;
    }
    return xstrdup("");
}

/* Differences of nodes and cores are the machine's, and no fault of the measurements. */
static bool is_fault(enum check check) {
    return check != CHECK_NODES && check != CHECK_CORES;
}

/* ---- The report */

/* Adds the verdict: can the measurements be trusted? */
static void report_verdict_of(struct report_section *in, const struct trust *trust,
                              const struct checks *checks) {
    size_t faults = 0;
    double least = 1;
    for (size_t i = 0; i < CHECK_COUNT; i++) {
        const struct check_result *result = &checks->results[i];
        if (!is_fault((enum check)i))
            continue;
        faults += result->is_finding;
        least = fmin(least, isnan(result->adjusted) ? 1 : result->adjusted);
    }
    const char *plural = checks->tested == 1 ? "" : "s";
    const struct measurements *m = trust->measurements;
    cleanup_free char *sentence =
        m->all_flagged ? xformat("can it be trusted: no: every unit was flagged (%s)", m->flags)
        : checks->tested == 0
            ? xformat("can it be trusted: unknown: %zu measurements of %zu settings are too "
                      "few to test; set more 'repetitions' in the design",
                      trust->rows.count, m->settings.count)
        : faults > 0
            ? xformat("can it be trusted: with care: %zu of %zu checks found a fault", faults, checks->tested)
            : xformat("can it be trusted: yes: %zu check%s found no fault (least adjusted "
                      "p-value %.2g)",
                      checks->tested, plural, least);
    report_verdict(in, "verdict",
                   m->all_flagged || faults > 0 ? REPORT_NOT_USABLE
                   : checks->tested == 0        ? REPORT_UNKNOWN
                                                : REPORT_USABLE,
                   sentence);
}

/* Adds the table of all checks that could be made, and the names of the others. */
static void report_tests(struct report_section *in, const struct checks *checks) {
    static const struct column columns[] = {
        {.name = "check", .type = COLUMN_STRING},
        {.name = "test", .type = COLUMN_STRING},
        {.name = "size", .digits = 3},
        {.name = "size_unit", .label = "", .type = COLUMN_STRING},
        {.name = "measurements", .unit = "1"},
        {.name = "share", .label = "share of the variance", .unit = "1", .digits = 2, .detail = true},
        {.name = "p", .unit = "1", .digits = 2, .detail = true},
        {.name = "p_adjusted", .label = "adjusted p", .unit = "1", .digits = 2},
        {.name = "finding", .label = "", .type = COLUMN_STRING},
    };
    struct report_table *table = report_table(in, "tests", "", columns, sizeof columns / sizeof *columns);
    cleanup(text_clear) struct text untested;
    text_init(&untested, FAILURE_TEXT_SIZE);
    for (size_t i = 0; i < CHECK_COUNT; i++) {
        const struct check_result *result = &checks->results[i];
        if (isnan(result->p)) {
            (void)text_printf(&untested, "%s%s", untested.length ? ", " : "", tests[i].name);
            continue;
        }
        report_cell_text(table, tests[i].name), report_cell_text(table, tests[i].test);
        report_cell(table, result->size);
        report_cell_text(table, tests[i].unit);
        report_cell(table, (double)result->rows);
        report_cell(table, result->share);
        report_cell(table, result->p), report_cell(table, result->adjusted);
        report_cell_text(table, !result->is_finding ? "" : is_fault((enum check)i) ? "fault" : "difference");
    }

    if (untested.length > 0)
        report_text(in, "untested", "not tested, because measurements are too few", untested.bytes, false);
}

/* Adds whether the measurements can be trusted, and a warning or note for each finding. WITH_TESTS: also the
 * table of all tests. */
void trust_report(struct report_section *in, const struct measurements *measurements, bool with_tests) {
    cleanup(trust_clear) struct trust trust = {.measurements = measurements};
    struct checks checks;
    choose_rows(&trust);
    if (trust.rows.count == 0)
        return;
    number_rows(&trust);
    checks_find(&trust.rows, &checks);
    struct report_section *section =
        report_section(in, "checks", with_tests ? "Can it be trusted" : NULL, false);
    report_verdict_of(section, &trust, &checks);
    for (size_t i = 0; i < CHECK_COUNT; i++) {
        const struct check_result *result = &checks.results[i];
        if (!result->is_finding)
            continue;
        cleanup_free char *sentence = describe_finding(&trust, (enum check)i, result);
        report_note(section, is_fault((enum check)i) ? REPORT_WARNING : REPORT_NOTE, "%s (p = %.2g)",
                    sentence, result->adjusted);
    }
    if (with_tests && checks.tested > 0)
        report_tests(section, &checks);
}
