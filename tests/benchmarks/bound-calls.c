/*
 * How long a bound call of a model takes: bound_mean_ns, bound_draw_ns and bound_means_ns of the groups of
 * MODEL, a term list over m, n, k such as M-2, over rows in random order, from two threads at once.
 *
 *     bound-calls MODEL CALLS      CALLS of each thread; prints "figure NAME VALUE UNIT" of the slower thread
 */
#include "engine/foundation/clock.h"
#include "engine/model/bound.h"
#include "engine/model/model.h"
#include "engine/model/read.h"
#include "engine/numerics/random.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROWS = 1 << 16, THREADS = 2, AT_ONCE = 4096 };

static struct model *model;
static const struct predict_call **calls;
static double rows[ROWS][3], columns[3][ROWS];
static uint32_t groups[ROWS], places[ROWS];
static size_t count;

struct thread {
    pthread_t id;
    double mean, draw, means, sum;
};

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *work(void *argument) {
    struct thread *thread = argument;
    static _Thread_local double ret[AT_ONCE];
    const double *of[] = {columns[0], columns[1], columns[2]};
    double begin = seconds();
    for (size_t i = 0; i < count; i++) {
        const struct predict_call *call = calls[groups[i % ROWS]];
        thread->sum += call->mean(call, rows[places[i % ROWS]]);
    }
    thread->mean = seconds() - begin;
    begin = seconds();
    for (size_t i = 0; i < count; i++) {
        const struct predict_call *call = calls[groups[i % ROWS]];
        thread->sum += call->draw(call, rows[places[i % ROWS]], groups[i % ROWS], i);
    }
    thread->draw = seconds() - begin;
    begin = seconds();
    for (size_t i = 0; i < count / AT_ONCE; i++) {
        const struct predict_call *call = calls[groups[i % ROWS]];
        call->means(call, of, AT_ONCE, ret);
        thread->sum += ret[i % AT_ONCE];
    }
    thread->means = seconds() - begin;
    return NULL;
}

int main(int argc, char **argv) {
    static const char *const names[] = {"m", "n", "k"};
    struct failure failure = {0};
    struct evaluator *evaluator;
    struct random_stream stream;
    struct thread threads[THREADS] = {0};
    double mean = 0, draw = 0, means = 0, sum = 0;
    if (argc != 3 || model_file_read(argv[1], &model, &failure) < 0 ||
        evaluator_new(model, &evaluator, &failure) < 0) {
        fprintf(stderr, "bound-calls: expected MODEL CALLS: %s\n", failure.text);
        return 2;
    }
    count = strtoul(argv[2], NULL, 10);
    calls = calloc(model->group_count + 1, sizeof *calls);
    for (size_t g = 0; g < model->group_count; g++) {
        struct bound *bound;
        if (bound_new(evaluator, &model->groups[g], names, 3, NULL, &bound, &failure) < 0) {
            fprintf(stderr, "bound-calls: %s\n", failure.text);
            return 2;
        }
        calls[g] = bound_call(bound);
    }
    random_stream_init(&stream, 1, "rows", 0);
    for (size_t i = 0; i < ROWS; i++) {
        groups[i] = (uint32_t)random_stream_below(&stream, model->group_count);
        places[i] = (uint32_t)random_stream_below(&stream, ROWS);
        for (size_t c = 0; c < 3; c++)
            columns[c][i] = rows[i][c] = (double)(3 + random_stream_below(&stream, 9000));
    }
    for (size_t t = 0; t < THREADS; t++)
        pthread_create(&threads[t].id, NULL, work, &threads[t]);
    for (size_t t = 0; t < THREADS; t++) {
        pthread_join(threads[t].id, NULL);
        mean = threads[t].mean > mean ? threads[t].mean : mean;
        draw = threads[t].draw > draw ? threads[t].draw : draw;
        means = threads[t].means > means ? threads[t].means : means;
        sum += threads[t].sum;
    }
    printf("groups %zu, checksum %.17g\n", model->group_count, sum);
    printf("figure bound_mean_ns %.2f ns\n", 1e9 * mean / (double)count);
    printf("figure bound_draw_ns %.2f ns\n", 1e9 * draw / (double)count);
    printf("figure bound_means_ns %.2f ns\n", 1e9 * means / (double)(count / AT_ONCE * AT_ONCE));
    return 0;
}
