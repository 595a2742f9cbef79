#include "engine/command-line/fit-progress.h"

#include "engine/command-line/fit-print.h"
#include "engine/command-line/progress.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/number.h"

#include <string.h>
#include <unistd.h>

static const int64_t quiet_ns = 2000000000; /* from the command's beginning */
static const int64_t period_ns = 100000000; /* between two lines */

void fit_progress_init(struct fit_progress *progress, FILE *stream, bool shows, int64_t now_ns) {
    *progress = (struct fit_progress){
        .stream = stream, .shows = shows, .began_ns = now_ns, .shown_ns = now_ns - period_ns};
}

static void take_away(struct fit_progress *progress) {
    if (!progress->drawn)
        return;
    fputs("\r\033[K", progress->stream);
    fflush(progress->stream);
    progress->drawn = false;
}

/* Counts begin anew with another stage, another pass, or when they fall back. */
static void follow(struct fit_progress *progress, const struct fitting_stage *stage, int64_t now_ns) {
    bool same = progress->of && strcmp(progress->of, stage->of) == 0 && progress->pass == stage->pass &&
                stage->done >= progress->last;
    if (!same) {
        progress->of = stage->of;
        progress->pass = stage->pass;
        progress->first = stage->done;
        progress->stage_ns = now_ns;
    }
    progress->last = stage->done;
}

static void draw(struct fit_progress *progress, const struct fitting_stage *stage, int64_t now_ns) {
    char done[FIT_PRINT_COUNT_MAX], total[FIT_PRINT_COUNT_MAX], bar[PROGRESS_BAR_SIZE];
    double seconds = (double)(now_ns - progress->stage_ns) * 1e-9;
    double rate = seconds > 0 ? (double)(stage->done - progress->first) / seconds : 0;
    fputs("\r\033[K  ", progress->stream);
    fit_print_count(stage->done, done);
    if (stage->total > 0)
        fprintf(progress->stream, "[%s] %s of %s %s",
                progress_bar((double)stage->done / (double)stage->total, bar), done,
                fit_print_count(stage->total, total), stage->of);
    else
        fprintf(progress->stream, "%s %s", done, stage->of);
    if (stage->pass > 1)
        fprintf(progress->stream, ", pass %u", stage->pass);
    if (rate > 0)
        fprintf(progress->stream, ", %.3g %s/s", rate, stage->of);
    if (rate > 0 && stage->total > stage->done) {
        char left[NUMBER_TEXT_SIZE];
        fprintf(progress->stream, ", %s left",
                number_describe_duration((double)(stage->total - stage->done) / rate, left));
    }
    fflush(progress->stream);
    progress->drawn = true;
    progress->shown_ns = now_ns;
}

void fit_progress_show(struct fit_progress *progress, const struct fitting_stage *stage, int64_t now_ns) {
    if (!progress->shows)
        return;
    if (!stage) {
        take_away(progress);
        return;
    }
    follow(progress, stage, now_ns);
    if (now_ns - progress->began_ns >= quiet_ns && now_ns - progress->shown_ns >= period_ns)
        draw(progress, stage, now_ns);
}

void fit_progress_begin(struct fit_progress *progress) {
    fit_progress_init(progress, stderr, isatty(STDERR_FILENO), clock_monotonic_ns());
}

/* What is on stdout comes before the line. */
void fit_progress_hear(void *context, const struct fitting_stage *stage) {
    struct fit_progress *progress = context;
    int64_t now_ns = progress->shows ? clock_monotonic_ns() : 0;
    if (stage && progress->shows && !progress->drawn)
        fflush(stdout);
    fit_progress_show(progress, stage, now_ns);
}

void fit_progress_end(struct fit_progress *progress) {
    take_away(progress);
}
