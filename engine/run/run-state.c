#include "engine/run/run-state.h"

#include "engine/foundation/checksum.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What nodes say is in it, too: it stays one line, and moves no cursor. The caller frees it. */
static char *add_sentence(struct run *run, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
static char *add_sentence(struct run *run, const char *format, va_list arguments) {
    char now[CLOCK_TEXT_SIZE];
    struct text sentence;
    text_init(&sentence, 64 << 10);
    text_vprintf(&sentence, format, arguments);
    for (size_t i = 0; i < sentence.length; i++)
        if ((unsigned char)sentence.bytes[i] < ' ' || sentence.bytes[i] == 0x7f)
            sentence.bytes[i] = '?';
    text_printf(&run->log->pending, "%s  %s\n", clock_format(clock_wall_ns(), now), sentence.bytes);
    return text_take(&sentence);
}

void run_log(struct run *run, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    free(add_sentence(run, format, arguments));
    va_end(arguments);
}

void run_note(struct run *run, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    cleanup_free char *sentence = add_sentence(run, format, arguments);
    va_end(arguments);
    run_tell(run, RUN_EVENT_NOTE, sentence);
}

void run_journal_counts(struct run *run) {
    journal_integer(run->journal, "units_done", (int64_t)run->units->done);
    journal_integer(run->journal, "units_failed", (int64_t)run->units->failed);
    journal_integer(run->journal, "lines_flagged", (int64_t)run->units->flagged);
    journal_integer(run->journal, "units_repeated", (int64_t)run->units->repeated);
}

/* The results are on the disk before the journal says so. */
static int commit_results(struct run *run, struct failure *failure) {
    struct append_file *results = run->results;
    size_t length = results->pending.length;
    char digits[9];
    if (length == 0 && memcmp(&run->committed, run->units, sizeof run->committed) == 0)
        return 0;
    snprintf(digits, sizeof digits, "%08" PRIx32, checksum_crc32c(results->pending.bytes, length));
    int r = append_file_commit(results, failure);
    if (r < 0)
        return r;
    journal_begin(run->journal, "results");
    journal_integer(run->journal, "bytes", (int64_t)results->committed);
    journal_string(run->journal, "bytes_crc32c", digits);
    run_journal_counts(run);
    journal_end(run->journal);
    run->committed = *run->units;
    return 0;
}

int run_commit(struct run *run, struct failure *failure) {
    int r = run_files_sync(&run->files, failure);
    if (r == 0)
        r = commit_results(run, failure);
    if (r == 0)
        r = journal_commit(run->journal, failure);
    if (r == 0)
        r = append_file_commit(run->log, failure);
    return r;
}

void run_tell(const struct run *run, enum run_event_kind kind, const char *text) {
    const struct run_observer *observer = &run->request->observer;
    if (observer->event)
        observer->event(observer->context,
                        &(struct run_event){.kind = kind, .text = text, .seconds_left = -1});
}

char *run_path(const struct run *run, const char *name) {
    return name[0] ? xformat("%s/%s", run->folder, name) : xstrdup(run->folder);
}

int run_make_folder(const struct run *run, const char *name, struct failure *failure) {
    cleanup_free char *path = run_path(run, name);
    return file_make_folders(path, failure);
}

/* ---- Files of nodes --------------------------------------------------------------------------------------
 */

char *run_node_folder_of(const struct run_node *node, unsigned part) {
    return part > 1 ? xformat("nodes/%s/part-%u", node->name, part) : xformat("nodes/%s", node->name);
}

char *run_node_folder(const struct run *run, const struct run_node *node) {
    return run_node_folder_of(node, run->part);
}

int run_write_node_json(struct run *run, const struct run_node *node, const char *file, const cJSON *value,
                        struct failure *failure) {
    cleanup_free char *folder = run_node_folder(run, node), *name = xformat("%s/%s", folder, file);
    cleanup(text_clear) struct text bytes;
    text_init(&bytes, 64 << 20);
    if (json_print(value, true, &bytes) < 0 || text_append_character(&bytes, '\n') < 0)
        return failure_memory(failure);
    int r = run_make_folder(run, folder, failure);
    return r < 0 ? r : run_files_write(&run->files, name, bytes.bytes, bytes.length, failure);
}
