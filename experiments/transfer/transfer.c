/*
 * How long it takes to copy a message from one place in memory to another, by memcpy: one row is one copy.
 * The README beside this file has the rest.
 *
 *     cc -O2 -I../kernels -o transfer transfer.c ../kernels/{buffer,processor,rows,settings}.c
 *
 * Exit codes: 0 done, 1 memory or input and output failed, 2 an option or a row is wrong, 3 a copy differs.
 */
#include "buffer.h"
#include "processor.h"
#include "rows.h"

#include <string.h>

static const char *const places[] = {"moving", "same", NULL};
static const char *const responses[] = {"duration", "class", NULL};

enum { LINE = 64 };
enum { SIZE, BUFFER, LARGEST, SPAN, SEED, SYS, SETTINGS };
static const struct setting settings[SETTINGS] = {
    [SIZE] = {"size", SETTING_WHOLE, .least = 1, .most = UINT64_C(1) << 48, .in_rows = true,
              .help = "bytes of the message"},
    [BUFFER] = {"buffer", SETTING_WORD, .words = places, .fallback = "moving", .in_rows = true,
                .help = "whether each message has its own place in memory, so that it is not "
                        "in a cache"},
    [LARGEST] = {"largest", SETTING_WHOLE, .least = 1, .most = UINT64_C(1) << 48,
                 .help = "largest size of the rows"},
    [SPAN] = {"span", SETTING_WHOLE, .most = UINT64_C(1) << 48, .fallback = "67108864",
              .help = "bytes of memory over which the places of messages move"},
    [SEED] = {"seed", SETTING_WHOLE, .most = UINT64_MAX, .fallback = "1", .help = "of the places"},
    [SYS] = {"sys", SETTING_TEXT, .fallback = "/sys",
             .help = "folder in which the kernel lists the classes of PUs"},
};
static struct value values[SETTINGS];

int main(int argc, char **argv) {
    settings_read(argc, argv, "rows on standard input", settings, SETTINGS, values);
    settings_require(settings, SETTINGS, values);
    const char *policy = buffer_keep_local();
    uint64_t state = values[SEED].whole, bytes = values[LARGEST].whole + values[SPAN].whole, stamp = 0;
    const struct content content = {.kind = CONTENT_RANDOM, .scale = 1};
    char *from = buffer_allocate(bytes + LINE, "messages"), *to = buffer_allocate(bytes + LINE, "copies");
    content_fill(&content, from, bytes / sizeof(double), &state);
    content_fill(&content, to, bytes / sizeof(double), &state);
    rows_begin(settings, SETTINGS, values);
    fact("call", "memcpy of the C library, from and to multiples of %d bytes", LINE);
    fact("span", "%s", values[SPAN].text);
    fact_process(policy);
    rows_answers(responses, "duration,class");
    double class = processor_class(values[SYS].text);
    while (rows_next()) {
        struct stopwatch watch;
        size_t size = values[SIZE].whole, lines = values[BUFFER].word == 0 ? values[SPAN].whole / LINE : 0;
        if (size > values[LARGEST].whole)
            rows_refuse("a row has the size %zu; expected at most --largest %llu", size,
                        (unsigned long long)values[LARGEST].whole);
        char *source = from + draw_up_to(&state, lines) * LINE,
             *target = to + draw_up_to(&state, lines) * LINE;
        stamp++;
        if (lines == 0) /* the copy is there already; elsewhere this would bring it into the caches */
            memcpy(source, &stamp, size < sizeof stamp ? size : sizeof stamp);
        stopwatch_start(&watch);
        memcpy(target, source, size);
        __asm__ volatile("" ::: "memory");
        stopwatch_stop(&watch);
        if (memcmp(target, source, size) != 0)
            die(EXIT_WRONG, "a copy of %zu bytes differs from its source", size);
        rows_answer(&watch, (const double[]){stopwatch_read(&watch), class});
    }
    return 0;
}
