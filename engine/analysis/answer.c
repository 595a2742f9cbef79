#include "engine/analysis/answer.h"

#include "archive-format/reader.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { LINE_BYTES_MAX = 1 << 16, OUTPUT_BYTES_MAX = 64 << 20, DIGITS_LEAST = 4, DIGITS_MOST = 8 };

/* ---- The head */

static void report_grade(struct report_section *section, const struct measurements *measurements) {
    cleanup_free char *grade = measurements->flagged == 0 ? xstrdup("no measurement was flagged")
                               : measurements->all_flagged
                                   ? xformat("do not trust: every unit was flagged (%s)", measurements->flags)
                                   : xformat("%llu of %zu measurements were flagged (%s) and are left out",
                                             (unsigned long long)measurements->flagged,
                                             measurements->row_count, measurements->flags);
    report_text(section, "grade", "", grade, measurements->flagged == 0);
}

static void report_head(struct report_section *section, const struct measurements *measurements) {
    const char *best = measurements->most ? "most" : "least",
               *experiment = measurements->table->inputs[0].experiment;
    char failed[64] = "", missing[64] = "";
    if (measurements->failed)
        snprintf(failed, sizeof failed, ", %llu failed", (unsigned long long)measurements->failed);
    if (measurements->missing)
        snprintf(missing, sizeof missing, ", %llu not measured", (unsigned long long)measurements->missing);
    cleanup_free char *head = xformat(
        "%s of %s, %s is best%s: %zu setting%s, %zu measurement%s%s%s", measurements->response, experiment,
        best, measurements->is_assumed ? " (assumed: the experiment has no 'answer')" : "",
        measurements->setting_count, measurements->setting_count == 1 ? "" : "s", measurements->row_count,
        measurements->row_count == 1 ? "" : "s", failed, missing);
    report_text(section, NULL, "", head, false);
    report_text(section, "response", NULL, measurements->response, true);
    report_text(section, "best_is", NULL, best, true);
    report_number(section, "measurements", NULL, (double)measurements->row_count, NULL, 0, true);
    report_number(section, "measurements_flagged", NULL, (double)measurements->flagged, NULL, 0, true);
    report_number(section, "units_failed", NULL, (double)measurements->failed, NULL, 0, true);
    report_number(section, "units_missing", NULL, (double)measurements->missing, NULL, 0, true);
}

/* ---- The settings */

/* The level of factor F in SETTING; false where it is a text. */
static bool read_level(const struct measurements *measurements, const struct setting *setting, size_t f,
                       double *ret) {
    const struct table_column *column = table_find(measurements->table, measurements->factors[f]);
    bool is_text = column->type && strcmp(column->type, "string") == 0;
    return !is_text && number_parse_double(setting->levels[f], strlen(setting->levels[f]), ret);
}

static void report_always(struct report_section *section, const struct measurements *measurements) {
    struct report_section *always = report_section(section, "always", NULL, true);
    cleanup(text_clear) struct text line;
    text_init(&line, LINE_BYTES_MAX);
    for (size_t f = 0; measurements->setting_count > 0 && f < measurements->factor_count; f++) {
        const char *value = measurements->settings[0].levels[f], *name = measurements->factors[f];
        const char *unit = report_unit_label(measurements->units[f]);
        double number;
        if (measurements->varies[f])
            continue;
        if (read_level(measurements, &measurements->settings[0], f, &number))
            report_number(always, name, NULL, number, NULL, 0, true);
        else
            report_text(always, name, NULL, value, true);
        (void)text_printf(&line, "%s%s = %s%s%s", line.length ? ", " : "", name, value, unit[0] ? " " : "",
                          unit);
    }
    if (line.length > 0)
        report_text(section, NULL, "always", line.bytes, false);
}

/* So many that the interval of the best has two different ones. */
static int choose_digits(const struct ranked *best) {
    double digits = 2 + ceil(log10(fabs(best->mean) / (best->high - best->mean)));
    return isnan(digits) ? DIGITS_LEAST + 1 : (int)fmin(fmax(digits, DIGITS_LEAST), DIGITS_MOST);
}

static void report_settings(struct report_section *section, const struct measurements *measurements,
                            const struct ranking *ranking, size_t settings) {
    static const char *const replicates[] = {"units", "cores", "nodes"}, *const standings[] = {
                                                                             "best", "no difference shown",
                                                                             "", "not compared", "no value"};
    cleanup_free struct report_column *columns = xcalloc(measurements->factor_count + 10, sizeof *columns);
    const char *unit = measurements->unit;
    int digits = choose_digits(ranking->items);
    size_t count = 0;
    for (size_t f = 0; f < measurements->factor_count; f++)
        if (measurements->varies[f])
            columns[count++] =
                (struct report_column){.name = measurements->factors[f], .unit = measurements->units[f]};
    const struct report_column figures[] = {
        {.name = "replicates", .label = replicates[ranking->replicate]},
        {.name = "mean", .unit = unit, .digits = digits},
        {.name = "deviation", .unit = unit, .digits = 3, .detail = true},
        {.name = "interval_low", .label = "95 % from", .unit = unit, .digits = digits},
        {.name = "interval_high", .label = "to", .unit = unit, .digits = digits},
        {.name = "p_adjusted", .label = "adjusted p", .digits = 3, .detail = true},
        {.name = "measurements_flagged", .label = "flagged", .detail = measurements->flagged == 0},
        {.name = "units_failed", .label = "failed", .detail = measurements->failed == 0},
        {.name = "units_missing", .label = "not measured", .detail = measurements->missing == 0},
        {.name = "standing", .label = ""},
    };
    memcpy(columns + count, figures, sizeof figures);
    struct report_table *table =
        report_table(section, "settings", NULL, columns, count + sizeof figures / sizeof *figures);
    for (size_t i = 0; i < ranking->count && i < settings; i++) {
        const struct ranked *item = &ranking->items[i];
        for (size_t f = 0; f < measurements->factor_count; f++) {
            double number;
            if (!measurements->varies[f])
                continue;
            if (read_level(measurements, item->setting, f, &number))
                report_cell(table, number);
            else
                report_cell_text(table, item->setting->levels[f]);
        }
        report_cell(table, (double)item->n);
        report_cell(table, item->mean);
        report_cell(table, item->deviation);
        report_cell(table, item->low);
        report_cell(table, item->high);
        report_cell(table, item->p);
        report_cell(table, (double)item->setting->flagged);
        report_cell(table, (double)item->setting->failed);
        report_cell(table, (double)item->setting->missing);
        report_cell_text(table, standings[item->standing]);
    }
}

static void report_methods(struct report_section *section, const struct ranking *ranking) {
    static const char *const over[] = {"units", "cores, each with the mean of its units",
                                       "nodes, each with the mean of its units"},
                             *const paired[] = {"", "paired by core", "paired by node"};
    bool has_single = false;
    for (size_t i = 0; i < ranking->with_value; i++)
        has_single = has_single || ranking->items[i].n == 1;
    cleanup_free char *intervals = xformat("of the mean over %s, by Student's t%s", over[ranking->replicate],
                                           has_single ? "; there is none of a single one" : "");
    report_text(section, "intervals", NULL, intervals, false);
    if (ranking->count < 2)
        return;
    size_t ties = 0;
    for (size_t i = 0; i < ranking->count; i++)
        ties += ranking->items[i].standing == RANKING_NO_DIFFERENCE;
    cleanup_free char *comparison =
        ranking->comparisons == 0
            ? xstrdup("none: a setting that was measured once has no standard deviation; "
                      "'repetitions: 3' in the design gives it one")
            : xformat("%zu of %zu settings are not told from the best by two-sided t-tests at 5 %%, %s, with "
                      "Holm's correction",
                      ties, ranking->comparisons,
                      ranking->is_paired ? paired[ranking->replicate] : "Welch's");
    report_text(section, "comparison", NULL, comparison, false);
}

void answer_report(struct report_section *section, const struct measurements *measurements,
                   const struct ranking *ranking, size_t settings) {
    const struct table *table = measurements->table;
    report_grade(section, measurements);
    report_head(section, measurements);
    report_always(section, measurements);
    if (ranking->with_value == 0) {
        report_note(section, REPORT_WARNING, "no setting can be ranked: no measurement %shas a value of '%s'",
                    measurements->flagged ? "that was not flagged " : "", measurements->response);
    } else {
        report_settings(section, measurements, ranking, settings);
        report_methods(section, ranking);
    }
    for (size_t i = 0; i < table->note_count; i++)
        report_note(section, REPORT_NOTE, "%s", table->notes[i]);
}

/* ---- The best */

/* The row of the best value. */
static uint32_t find_best_row(const struct measurements *measurements, const struct setting *setting) {
    uint32_t best = UINT32_MAX;
    for (size_t i = 0; i < setting->row_count; i++) {
        uint32_t row = setting->rows[i];
        if (measurements->left_out[row])
            continue;
        if (best == UINT32_MAX ||
            (measurements->most ? measurements->values[row] > measurements->values[best]
                                : measurements->values[row] < measurements->values[best]))
            best = row;
    }
    return best;
}

/* The member of an archive, or the file of a run's folder. */
static int read_member(const struct table_input *input, const char *name, struct text *ret,
                       struct failure *failure) {
    if (file_is_folder(input->path)) {
        cleanup_free char *path = file_join(input->path, name);
        return file_read(path, ret, failure);
    }
    cleanup(archive_close_reader) struct archive_reader *archive = NULL;
    int r = archive_open(input->path, &archive, failure);
    return r < 0 ? r : archive_read_member(archive, name, ret, failure);
}

/* What the unit of ROW printed (FORMAT.md, "results/tables"): the place in the name is the node's, or "job".
 */
static int read_output(const struct measurements *measurements, uint32_t row, struct text *ret,
                       struct failure *failure) {
    const struct table *table = measurements->table;
    const struct table_input *input;
    uint64_t line;
    double order = table->numbers[1].values[row], attempt = table->numbers[2].values[row];
    const struct table_category *nodes = measurements_category(table, "node"),
                                *cores = measurements_category(table, "core");
    const char *places[] = {nodes->levels[nodes->codes[row]], "job"};
    cleanup_free char *again = attempt > 1 ? xformat("-again-%.0f", attempt) : xstrdup("");
    if (!table_place(table, row, &input, &line))
        return failure_input(failure, NULL, 0, 0, "the best unit is not known among so many");
    int r = -ENOENT;
    for (size_t i = 0; i < 2 && r < 0; i++) {
        cleanup_free char *name = xformat("results/raw/%.0f-%s-%s%s.out", order, places[i],
                                          cores->levels[cores->codes[row]], again);
        r = read_member(input, name, ret, failure);
        if (r < 0 && failure->kind != FAILURE_INPUT)
            break;
    }
    return r;
}

static int append_lines(const struct measurements *measurements, const struct text *output, struct text *ret,
                        struct failure *failure) {
    size_t before = ret->length, length = strlen(measurements->lines);
    const char *end = output->bytes + output->length;
    for (const char *line = output->bytes, *next; line < end; line = next) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        next = newline ? newline + 1 : end;
        /* What MPI puts before the lines of a rank is passed over. */
        const char *found = memmem(line, (size_t)(next - line), measurements->lines, length);
        if (found && text_append(ret, found + length, (size_t)(next - found) - length) < 0)
            return failure_memory(failure);
    }
    return ret->length > before
               ? 0
               : failure_input(failure, measurements->table->inputs[0].path, 0, 0,
                               "the best unit printed no line that begins with '%s'", measurements->lines);
}

int answer_best(const struct measurements *measurements, const struct ranking *ranking, struct text *ret,
                struct failure *failure) {
    if (ranking->with_value == 0)
        return failure_input(
            failure, measurements->table->inputs[0].path, 0, 0,
            "no setting is the best: no measurement has a value of '%s'; 'assay report' says why",
            measurements->response);
    const struct setting *best = ranking->items[0].setting;
    if (measurements->lines) {
        cleanup(text_clear) struct text output;
        text_init(&output, OUTPUT_BYTES_MAX);
        int r = read_output(measurements, find_best_row(measurements, best), &output, failure);
        return r < 0 ? r : append_lines(measurements, &output, ret, failure);
    }
    for (size_t f = 0; f < measurements->factor_count; f++)
        if (text_printf(ret, "%s=%s\n", measurements->factors[f], best->levels[f]) < 0)
            return failure_memory(failure);
    return 0;
}
