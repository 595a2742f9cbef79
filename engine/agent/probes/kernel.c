/*
 * The probe `kernel`: the number of records in the kernel's log of priority err or worse since the probe
 * began (each is also an event `kernel-error`), and the corrected and uncorrected errors of memory
 * controllers since boot (EDAC).
 */
#include "engine/agent/probes/probe.h"
#include "engine/agent/probes/source.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EDAC "sys/devices/system/edac/mc"

/* A machine in distress logs much: at most READS records are read for each sample, and EVENTS of them become
 * events. */
enum { RECORD = 8 << 10, READS = 256, EVENTS = 16, TEXT = 256, CONTROLLERS = 64, WORST = 3, KINDS = 2 };

static const struct {
    const char *file, *column;
} kinds[KINDS] = {{"ce_count", "corrected"}, {"ue_count", "uncorrected"}};

struct kernel {
    int log; /* -1: cannot be read */
    uint64_t errors;
    unsigned events;                          /* of this sample */
    struct source counts[KINDS][CONTROLLERS]; /* of the errors of memory controllers */
    size_t controllers;
    char record[RECORD];
};

/* Counts a line of the log, "PRIORITY,NUMBER,TIME,FLAGS;TEXT" (/dev/kmsg, dev-kmsg in
 * Documentation/ABI/testing), if it is an error of the kernel. PRIORITY is 8 times the facility, 0 for the
 * kernel, plus the level. Continuation lines begin with a blank and are skipped. */
static void read_line(struct probing *probing, struct kernel *kernel, const char *line) {
    char *end;
    unsigned long priority = strtoul(line, &end, 10);
    const char *text = *end == ',' && end != line ? strchr(end, ';') : NULL;
    if (!text || priority > WORST)
        return;
    kernel->errors++;
    if (kernel->events++ < EVENTS)
        probing_event(probing, "kernel-error", "%.*s", TEXT, text + 1);
}

/* Reads new records of the log. A read of /dev/kmsg gives one record; one of a captured log, a plain file,
 * may give many. */
static void read_log(struct probing *probing, struct kernel *kernel) {
    kernel->events = 0;
    for (int reads = 0; reads < READS; reads++) {
        ssize_t got = read(kernel->log, kernel->record, RECORD - 1);
        if (got < 0 && (errno == EPIPE || errno == EINTR))
            continue; /* EPIPE: the oldest records were overwritten before they were read */
        if (got <= 0)
            return;
        kernel->record[got] = '\0';
        char *rest = kernel->record, *line;
        while ((line = strsep(&rest, "\n")))
            read_line(probing, kernel, line);
    }
}

/* Puts the sum of the counts of all memory controllers. */
static void put_sum(struct probing *probing, struct source *sources, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        char digits[64];
        uint64_t value;
        ssize_t length =
            source_read_digits(&sources[i], probing->machine, probing->now_ns, digits, sizeof digits);
        if (length < 0 || !number_parse_uint64(digits, (size_t)length, &value)) {
            probing_put_gone(probing);
            return;
        }
        sum += value;
    }
    probing_put_number(probing, sum);
}

static void sample(struct probing *probing) {
    struct kernel *kernel = probing->state;
    if (kernel->log >= 0) {
        read_log(probing, kernel);
        probing_put_number(probing, kernel->errors);
    }
    for (size_t i = 0; i < KINDS && kernel->controllers > 0; i++)
        put_sum(probing, kernel->counts[i], kernel->controllers);
}

/* Adds the columns of memory errors, if the machine has memory controllers with counters of them. */
static void begin_controllers(struct probing *probing, struct kernel *kernel) {
    cleanup(machine_names_clear) struct machine_names names = {0};
    (void)machine_list(probing->machine, EDAC, "mc", &names);
    for (size_t i = 0; i < names.count && kernel->controllers < CONTROLLERS; i++) {
        if (!machine_has(probing->machine, machine_path(EDAC "/%s/ce_count", names.items[i])))
            continue;
        for (size_t k = 0; k < KINDS; k++)
            if (source_init(&kernel->counts[k][kernel->controllers],
                            machine_path(EDAC "/%s/%s", names.items[i], kinds[k].file)) < 0)
                probing->error = -ENOMEM;
        kernel->controllers++;
    }
    for (size_t k = 0; k < KINDS && kernel->controllers > 0; k++)
        probing_add_column(probing, "1", "%s", kinds[k].column);
}

/* Adds a column for errors in the kernel's log, if it can be read, and columns for memory errors (EDAC). */
static void begin(struct probing *probing) {
    struct kernel *kernel = probing->state;
    kernel->log = machine_open_file(probing->machine, "dev/kmsg", O_RDONLY | O_NONBLOCK);
    int r = kernel->log < 0 ? kernel->log : lseek(kernel->log, 0, SEEK_END) < 0 ? -errno : 0;
    if (r < 0) {
        probing_note(probing, "/dev/kmsg: %s", strerror(-r));
        cleanup_close_descriptor(&kernel->log);
    } else {
        probing_add_column(probing, "1", "errors");
    }
    begin_controllers(probing, kernel);
    snprintf(probing->source, sizeof probing->source, "%s%s%s", kernel->log >= 0 ? "/dev/kmsg" : "",
             kernel->log >= 0 && kernel->controllers > 0 ? ", " : "", kernel->controllers > 0 ? "edac" : "");
}

static void end(struct probing *probing) {
    struct kernel *kernel = probing->state;
    cleanup_close_descriptor(&kernel->log);
    for (size_t i = 0; i < KINDS * CONTROLLERS; i++)
        source_clear(&kernel->counts[i / CONTROLLERS][i % CONTROLLERS]);
}

const struct probe probe_kernel = {
    .name = "kernel", .state_size = sizeof(struct kernel), .begin = begin, .sample = sample, .end = end};
