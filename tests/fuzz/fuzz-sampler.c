/* Any bytes as what a node's sampler prints, in pieces of any size (the first byte): lines that are none are
 * left out, and the others are samples of the columns that were told, with values that are numbers. */
#include "engine/foundation/file.h"
#include "engine/run/state/watch.c"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(40, 2000);

static char folder[] = "/tmp/assay-fuzz-sampler.XXXXXX";

static void remove_folder(void) {
    (void)file_remove_tree(folder, NULL);
}

/* How many samples are kept, whose values must be numbers or not known. */
static size_t count_samples(const struct watch *watch) {
    size_t samples = 0;
    for (size_t kind = 0; kind < PROBE_KINDS; kind++) {
        const struct watch_probe *probe = watch_probe(watch, 0, (enum probe_kind)kind);
        if (!probe)
            continue;
        must(probe->history.columns <= WATCH_COLUMNS_MAX);
        for (size_t i = 0; i < probe->history.columns; i++)
            must(watch_column_name(probe, i)[0]);
        for (size_t row = 0; row < probe->history.count; row++)
            for (size_t i = 0; i < probe->history.columns; i++)
                must(!isinf(history_row(&probe->history, row)[i]));
        samples += probe->history.count;
    }
    return samples;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    static struct journal *journal;
    static struct event_loop *loop;
    struct failure failure = {0};
    if (!loop) {
        must(mkdtemp(folder) && (loop = event_loop_new(&failure)));
        cleanup_free char *path = file_join(folder, "journal.jsonl");
        must(journal_create(path, &journal, &failure) == 0 && atexit(remove_folder) == 0);
    }
    struct run_node node = {.name = (char[]){"node"}};
    struct append_file log = {0};
    text_init(&log.pending, 1 << 20);
    struct run_record record = {
        .folder = folder, .files.folder = folder, .part = 1, .journal = journal, .log = &log};
    struct node_set set = {.record = &record, .items = &node, .count = 1, .loop = loop};
    struct watch watch = {.set = &set};
    must(watch_open(&watch, &failure) == 0);
    watch.nodes[0].state = WATCH_STARTING;
    size_t step = length ? 1 + (size_t)bytes[0] : 1;
    for (size_t at = 1; at < length; at += step)
        on_output(NULL, REMOTE_STDOUT, (const char *)bytes + at, length - at < step ? length - at : step,
                  &watch.nodes[0]);
    fuzz_passed += count_samples(&watch) > 0;
    watch_close(&watch);
    text_clear(&log.pending);
    free(record.made);
    return 0;
}
