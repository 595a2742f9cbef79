#include "engine/run/record/run-record.h"

#include "archive-format/layout.h"
#include "archive-format/redaction.h"
#include "engine/foundation/checksum.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What nodes say is in it, too: it stays one line, and moves no cursor. The caller frees it. */
static char *add_sentence(struct run_record *record, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
/* Adds a line to the log and returns its sentence, which the caller frees. Line breaks and control
 * characters, which nodes may send, are made visible. */
static char *add_sentence(struct run_record *record, const char *format, va_list arguments) {
    char now[CLOCK_TEXT_SIZE];
    cleanup(text_clear) struct text words;
    struct text sentence;
    text_init(&words, 64 << 10);
    text_init(&sentence, 4 * words.limit); /* a byte becomes four at most */
    text_vprintf(&words, format, arguments);
    text_append_shown(&sentence, words.bytes, words.length, false);
    text_printf(&record->log->pending, "%s  %s\n", clock_format(clock_wall_ns(), now), sentence.bytes);
    return text_take(&sentence);
}

void record_log(struct run_record *record, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    free(add_sentence(record, format, arguments));
    va_end(arguments);
}

void record_note(struct run_record *record, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    cleanup_free char *sentence = add_sentence(record, format, arguments);
    va_end(arguments);
    journal_note(record->journal, "note", "sentence", sentence);
    record_report_text(record, RUN_EVENT_NOTE, sentence);
}

void record_journal_counts(struct run_record *record) {
    journal_integer(record->journal, "units_done", (int64_t)record->units->done);
    journal_integer(record->journal, "units_failed", (int64_t)record->units->failed);
    journal_integer(record->journal, "lines_flagged", (int64_t)record->units->flagged);
    journal_integer(record->journal, "units_repeated", (int64_t)record->units->repeated);
}

bool record_has_ended_units(const struct run_record *record) {
    return memcmp(&record->committed, record->units, sizeof record->committed) != 0;
}

/* Commits the results, then journals their length, checksum and counts: the journal must not speak of bytes
 * that are not durable. */
static int commit_results(struct run_record *record, struct failure *failure) {
    struct append_file *results = record->results;
    size_t length = results->pending.length;
    char digits[9];
    if (length == 0 && !record_has_ended_units(record))
        return 0;
    snprintf(digits, sizeof digits, "%08" PRIx32, checksum_crc32c(results->pending.bytes, length));
    int r = append_file_commit(results, failure);
    if (r < 0)
        return r;
    journal_begin(record->journal, "results");
    journal_integer(record->journal, "bytes", (int64_t)results->committed);
    journal_string(record->journal, "bytes_crc32c", digits);
    record_journal_counts(record);
    if (record->estimated_ns >= 0)
        journal_integer(record->journal, "left_ns", record->estimated_ns);
    journal_end(record->journal);
    record->left = (struct run_left){record->estimated_ns, clock_monotonic_ns()};
    record->committed = *record->units;
    return 0;
}

/* ---- The reserve -----------------------------------------------------------------------------------------
 */

/* Opens .reserve, a file that keeps room on the disk for the end of the run. It is no part of an archive
 * (writer.h). */
static int open_reserve(const struct run_record *record, struct failure *failure) {
    cleanup_free char *path = record_path(record, ".reserve");
    int file = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    return file < 0 ? failure_set(failure, -errno, "cannot open '%s': %s", path, strerror(errno)) : file;
}

int record_make_reserve(struct run_record *record, struct failure *failure) {
    cleanup_free char *bytes = memset(xmalloc(RECORD_RESERVE), '\n', RECORD_RESERVE);
    cleanup_close int file = open_reserve(record, failure);
    int r = file < 0 ? file : file_write_all(file, bytes, RECORD_RESERVE);
    if (file >= 0 && r < 0)
        return failure_set(failure, r, "cannot reserve %d KiB of the disk for the end of the run in '%s': %s",
                           RECORD_RESERVE >> 10, record->folder, strerror(-r));
    record->reserved = RECORD_RESERVE;
    return file < 0 ? file : 0;
}

/* Cuts the reserve to KEEP bytes. */
void record_release_reserve(struct run_record *record, size_t keep) {
    if (record->reserved <= keep)
        return;
    record->reserved = keep;
    cleanup_free char *path = record_path(record, ".reserve");
    cleanup_close int file = keep > 0 ? open_reserve(record, NULL) : -1;
    if (file < 0 || ftruncate(file, (off_t)keep) < 0)
        unlink(path);
}

/* ---- Committing ------------------------------------------------------------------------------------------
 */

/* Commits files, results, journal and log, in this order. */
static int commit(struct run_record *record, struct failure *failure) {
    int r = run_files_sync(&record->files, failure);
    if (r == 0)
        r = commit_results(record, failure);
    if (r == 0)
        r = journal_commit(record->journal, failure);
    if (r == 0)
        r = append_file_commit(record->log, failure);
    return r;
}

/* Commits all records. On a full disk most of the reserve is given up and all is committed, but that call
 * fails nevertheless. */
int record_commit(struct run_record *record, struct failure *failure) {
    int r = commit(record, failure);
    if ((r == -ENOSPC || r == -EDQUOT) && record->reserved > RECORD_RESERVE_LAST) {
        record_release_reserve(record, RECORD_RESERVE_LAST);
        commit(record, NULL);
    }
    return r;
}

void record_report_event(const struct run_record *record, const struct run_event *event) {
    if (record->observer.event)
        record->observer.event(record->observer.context, event);
}

void record_report_text(const struct run_record *record, enum run_event_kind kind, const char *text) {
    record_report_event(record, &(struct run_event){.kind = kind, .text = text, .seconds_left = -1});
}

char *record_path(const struct run_record *record, const char *name) {
    return name[0] ? xformat("%s/%s", record->folder, name) : xstrdup(record->folder);
}

/* Makes the folder NAME. It is quick for the folder that was made last and for one whose parent is there,
 * since a thousand nodes have three each. */
int record_make_folder(struct run_record *record, const char *name, struct failure *failure) {
    if (record->made && strcmp(record->made, name) == 0)
        return 0;
    cleanup_free char *path = record_path(record, name);
    struct stat status;
    int r = 0;
    /* The path of the run's folder was checked when it was made, and what is above the last name is mostly
     * there: a thousand nodes have three folders each, and several phases write into each of them. */
    if (name[0] && mkdir(path, geteuid() == 0 ? 0755 : 0777) == 0)
        r = file_sync_folder_of(path, failure);
    else if (!name[0] || lstat(path, &status) < 0 || !S_ISDIR(status.st_mode))
        r = file_make_folders(path, failure);
    free(record->made);
    record->made = r < 0 ? NULL : xstrdup(name);
    return r;
}

/* ---- Files of nodes --------------------------------------------------------------------------------------
 */

int record_write_node_json(struct run_record *record, const char *node, const char *file, const cJSON *value,
                           struct failure *failure) {
    cleanup_free char *folder = archive_node_folder(node, record->part),
                      *name = xformat("%s/%s", folder, file);
    cleanup(text_clear) struct text bytes;
    text_init(&bytes, 64 << 20);
    if (json_print(value, true, &bytes) < 0 || text_append_character(&bytes, '\n') < 0)
        return failure_memory(failure);
    int r = record_make_folder(record, folder, failure);
    return r < 0 ? r : run_files_write(&record->files, name, bytes.bytes, bytes.length, failure);
}

void record_clear(struct run_record *record) {
    run_files_clear(&record->files);
    journal_close(record->journal);
    append_file_close(record->results);
    append_file_close(record->log);
    ledger_free(record->ledger);
    redaction_free(&record->redaction);
    free(record->folder);
    free(record->made);
}
