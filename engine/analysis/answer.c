#include "engine/analysis/answer.h"

#include "archive-format/layout.h"
#include "archive-format/reader.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { OUTPUT_BYTES_MAX = 64 << 20, NAMES_BYTES_MAX = 4096, DIGITS_LEAST = 4, DIGITS_MOST = 12 };

/* ---- The report */

/* Adds the line about the response and the counts, and a verdict if rows were flagged. */
static void report_head(struct report_section *section, const struct measurements *m) {
    cleanup_free char *verdict = m->all_flagged
                                     ? xformat("do not trust: every unit was flagged (%s)", m->flags)
                                     : xformat("%zu of %zu measurements were flagged (%s) and are left out",
                                               m->flagged, m->row_count, m->flags);
    cleanup_free char *head = xformat(
        "%s by %s, %s is better%s: %zu setting%s, %zu measurement%s; units failed: %llu, not measured: %llu",
        m->table->inputs[0].experiment, m->response, m->most ? "more" : "less",
        m->is_assumed ? " (assumed, because the experiment declares no 'answer')" : "", m->settings.count,
        m->settings.count == 1 ? "" : "s", m->row_count, m->row_count == 1 ? "" : "s",
        (unsigned long long)m->failed, (unsigned long long)m->missing);
    if (m->flagged > 0)
        report_verdict(section, "verdict", m->all_flagged ? REPORT_NOT_USABLE : REPORT_USABLE, verdict);
    report_text(section, NULL, "", head, false);
    report_text(section, "response", NULL, m->response, true);
    report_text(section, "best_is", NULL, m->most ? "most" : "least", true);
    report_number(section, "measurements", NULL, (double)m->row_count, NULL, 0, true);
    report_number(section, "measurements_flagged", NULL, (double)m->flagged, NULL, 0, true);
    report_number(section, "units_failed", NULL, (double)m->failed, NULL, 0, true);
    report_number(section, "units_missing", NULL, (double)m->missing, NULL, 0, true);
}

/* Adds the level of factor F in SETTING, as a number if it is one. */
static void add_level(struct report_table *table, const struct measurements *measurements, size_t setting,
                      size_t f) {
    const char *level = measurements_level(measurements, setting, f);
    double number;
    if (measurements->factors[f].column->type != COLUMN_STRING &&
        number_parse_double(level, strlen(level), &number))
        report_cell(table, number);
    else
        report_cell_text(table, level);
}

void answer_setting_cells(struct report_table *table, const struct measurements *measurements,
                          size_t setting) {
    for (size_t f = 0; f < measurements->factor_count; f++)
        add_level(table, measurements, setting, f);
}

struct report_table *answer_settings_table(struct report_section *section,
                                           const struct measurements *measurements,
                                           const struct column *figures, size_t figure_count) {
    size_t count = measurements->factor_count;
    cleanup_free struct column *columns = xcalloc(count + figure_count, sizeof *columns);
    for (size_t f = 0; f < count; f++) {
        const struct measured_factor *factor = &measurements->factors[f];
        columns[f] = *factor->column;
        columns[f].detail = !factor->varies && f >= measurements->size_count;
    }
    memcpy(columns + count, figures, figure_count * sizeof *figures);
    return report_table(section, "settings", NULL, columns, count + figure_count);
}

/* So many that the interval of the best has two different ones. */
static int choose_digits(const struct ranked *best) {
    double digits = 2 + ceil(log10(fabs(best->mean) / (best->high - best->mean)));
    return isnan(digits) ? DIGITS_LEAST + 1 : (int)fmin(fmax(digits, DIGITS_LEAST), DIGITS_MOST);
}

/* Adds the first SETTINGS settings of the ranking, with intervals. */
static void report_settings(struct report_section *section, const struct measurements *measurements,
                            const struct ranking *ranking, size_t settings) {
    static const char *const standings[] = /* enum ranking_standing */
        {"no value", "", "best", "no difference shown", "", "not compared"};
    const char *unit = measurements->unit;
    int digits = choose_digits(ranking->best);
    const struct column figures[] = {
        {.name = "replicates", .label = ranking->by_node ? "nodes" : "units"},
        {.name = "mean", .unit = unit, .digits = digits},
        {.name = "deviation", .unit = unit, .digits = 3, .detail = true},
        {.name = "interval_low", .label = "95 % from", .unit = unit, .digits = digits},
        {.name = "interval_high", .label = "to", .unit = unit, .digits = digits},
        {.name = "p_adjusted", .label = "adjusted p", .digits = 3, .detail = true},
        {.name = "standing", .label = ""},
    };
    enum { FIGURES = sizeof figures / sizeof *figures };
    struct report_table *table = answer_settings_table(section, measurements, figures, FIGURES);
    for (size_t i = 0; i < ranking->count && i < settings; i++) {
        const struct ranked *item = &ranking->items[i];
        const double cells[] = {(double)item->n, item->mean, item->deviation, item->low, item->high, item->p};
        answer_setting_cells(table, measurements, item->setting);
        for (size_t c = 0; c < FIGURES - 1; c++)
            report_cell(table, cells[c]);
        report_cell_text(table, standings[item->standing]);
    }
}

/* Adds by which methods intervals and comparisons were made. */
static void report_methods(struct report_section *section, const struct measurements *measurements,
                           const struct ranking *ranking) {
    cleanup(text_clear) struct text sizes;
    text_init(&sizes, NAMES_BYTES_MAX);
    for (size_t f = 0; f < measurements->size_count; f++)
        if (measurements->factors[f].varies)
            (void)text_printf(&sizes, "%s%s", sizes.length ? ", " : "",
                              measurements->factors[f].column->name);
    report_text(section, "intervals", NULL,
                ranking->by_node ? "of the mean over nodes (each node counts with the mean of its units), "
                                   "by Student's t"
                                 : "of the mean over units, by Student's t; a single unit has no interval",
                false);
    if (ranking->choices > 0)
        report_text(section, "comparison", NULL,
                    ranking->comparisons == 0
                        ? "none: a setting that was measured once has no standard deviation; set "
                          "'repetitions: 3' in the design"
                    : ranking->by_node ? "two-sided t-tests at 5 %, paired by node, adjusted by Holm"
                                       : "two-sided Welch t-tests at 5 %, adjusted by Holm",
                    false);
    if (sizes.length > 0)
        report_note(section, REPORT_LINE, "only settings with the same problem size (%s) are compared; %s",
                    sizes.bytes,
                    ranking->choices > 0
                        ? "the largest size is first"
                        : "each size has a single setting, so that no settings can be compared; "
                          "'assay fit' models how the response depends on the size");
}

/* Adds the share of the attainable that the best setting has reached; nothing if the experiment declares no
 * share. */
static void report_share(struct report_section *section, const struct measurements *m,
                         const struct ranking *ranking) {
    const struct archive_answer *answer = m->table->answer;
    double sum = 0, count = 0;
    for (size_t i = m->settings.first[ranking->best->setting];
         m->share && i < m->settings.first[ranking->best->setting + 1]; i++) {
        uint32_t row = m->settings.rows[i];
        if (m->left_out[row] || !(m->share[row] > 0))
            continue;
        sum += m->share[row];
        count++;
    }
    cleanup_free char *label =
        xformat("best: share of %s", answer && answer->of ? answer->of : "what is attainable");
    if (count > 0)
        report_number(section, "best_share", label, 100 * sum / count, "%", 3, false);
}

void answer_report(struct report_section *section, const struct measurements *measurements,
                   const struct ranking *ranking, size_t settings) {
    const struct table *table = measurements->table;
    report_head(section, measurements);
    if (!ranking->best) {
        report_note(section, REPORT_WARNING, "no setting can be ranked: no measurement %shas a value of '%s'",
                    measurements->flagged ? "without a flag " : "", measurements->response);
    } else {
        if (settings > 0)
            report_settings(section, measurements, ranking, settings);
        report_share(section, measurements, ranking);
        report_methods(section, measurements, ranking);
    }
    for (size_t i = 0; i < table->note_count; i++)
        report_note(section, REPORT_NOTE, "%s", table->notes[i]);
}

/* ---- The best */

/* Reads the standard output of the unit of ROW from its archive or folder. The file's name has the unit's
 * node, or "job" if it had several nodes. */
static int read_output(const struct measurements *measurements, uint32_t row, struct text *ret,
                       struct failure *failure) {
    const struct table *table = measurements->table;
    const struct table_category *nodes = &table->categories[measurements->factor_count], *cores = nodes + 1;
    const char *const places[] = {nodes->levels[nodes->codes[row]], "job"};
    const struct table_input *input;
    uint64_t line;
    double attempt = measurements->attempt[row];
    if (!table_place(table, row, &input, &line))
        return failure_input(failure, NULL, 0, 0,
                             "cannot find the output of the best unit, because the runs have too "
                             "many rows together; give a single run");
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    int r = archive_open(input->path, &archive, failure);
    if (r < 0)
        return r;
    for (size_t i = 0; i < 2 && (i == 0 || r < 0); i++) {
        cleanup_free char *name =
            archive_output_path((size_t)measurements->order[row], places[i], cores->levels[cores->codes[row]],
                                (unsigned)attempt, "out");
        r = archive_read_member(archive, name, ret, failure);
    }
    return r;
}

/* Appends what stands behind the marker in each line of OUTPUT that has it. FAILURE_INPUT: no line has. */
static int append_lines(const struct measurements *measurements, const struct text *output, struct text *ret,
                        struct failure *failure) {
    size_t before = ret->length, length = strlen(measurements->lines);
    const char *end = output->bytes + output->length;
    for (const char *line = output->bytes, *next; line < end; line = next) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        next = newline ? newline + 1 : end;
        /* MPI may print a prefix before the lines of a rank; it is skipped. */
        const char *found = memmem(line, (size_t)(next - line), measurements->lines, length);
        if (found && text_append(ret, found + length, (size_t)(next - found) - length) < 0)
            return failure_memory(failure);
    }
    return ret->length > before
               ? 0
               : failure_input(failure, measurements->table->inputs[0].path, 0, 0,
                               "the best setting printed no line that begins with '%s'", measurements->lines);
}

/* Appends the best setting in the form in which it is used: lines that its first unit printed, or NAME=VALUE
 * of its factors. */
int answer_best(const struct measurements *measurements, const struct ranking *ranking, struct text *ret,
                struct failure *failure) {
    if (!ranking->best)
        return failure_input(failure, measurements->table->inputs[0].path, 0, 0,
                             "there is no best setting, because no measurement has a value of '%s'; "
                             "'assay report' says why",
                             measurements->response);
    size_t best = ranking->best->setting, row = measurements->settings.first[best];
    while (measurements->left_out[measurements->settings.rows[row]])
        row++;
    if (measurements->lines) {
        cleanup(text_clear) struct text output;
        text_init(&output, OUTPUT_BYTES_MAX);
        int r = read_output(measurements, measurements->settings.rows[row], &output, failure);
        return r < 0 ? r : append_lines(measurements, &output, ret, failure);
    }
    for (size_t f = 0; f < measurements->factor_count; f++)
        if (text_printf(ret, "%s=%s\n", measurements->factors[f].column->name,
                        measurements_level(measurements, best, f)) < 0)
            return failure_memory(failure);
    return 0;
}
