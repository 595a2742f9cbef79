#include "engine/run/run-state.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static void append_log(struct run *run, const char *sentence) {
    char now[CLOCK_TEXT_SIZE];
    text_printf(&run->log->pending, "%s  %s\n", clock_format(clock_wall_ns(), now), sentence);
}

/* What nodes say is in it, too: it stays one line, and moves no cursor. */
static void compose(struct text *sentence, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
static void compose(struct text *sentence, const char *format, va_list arguments) {
    text_init(sentence, 64 << 10);
    text_vprintf(sentence, format, arguments);
    for (size_t i = 0; i < sentence->length; i++)
        if ((unsigned char)sentence->bytes[i] < ' ' || sentence->bytes[i] == 0x7f)
            sentence->bytes[i] = '?';
}

void run_log(struct run *run, const char *format, ...) {
    struct text sentence;
    va_list arguments;
    va_start(arguments, format);
    compose(&sentence, format, arguments);
    va_end(arguments);
    append_log(run, sentence.bytes);
    text_clear(&sentence);
}

void run_note(struct run *run, const char *format, ...) {
    struct text sentence;
    va_list arguments;
    va_start(arguments, format);
    compose(&sentence, format, arguments);
    va_end(arguments);
    append_log(run, sentence.bytes);
    run_tell(run, RUN_EVENT_NOTE, sentence.bytes);
    text_clear(&sentence);
}

int run_commit(struct run *run, struct failure *failure) {
    int r = run_sync_files(run, failure);
    if (r == 0)
        r = append_file_commit(run->results, failure);
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
    return name[0] ? file_join(run->folder, name) : strdup(run->folder);
}

int run_make_folder(const struct run *run, const char *name, struct failure *failure) {
    cleanup_free char *path = run_path(run, name);
    return path ? file_make_folders(path, failure) : failure_memory(failure);
}

int run_write_json(const char *path, const cJSON *value, struct failure *failure) {
    struct text bytes;
    text_init(&bytes, 256 << 20);
    int r = json_print(value, true, &bytes);
    if (r == 0)
        r = text_append_character(&bytes, '\n');
    r = r < 0 ? failure_memory(failure) : file_replace(path, bytes.bytes, bytes.length, 0666, failure);
    text_clear(&bytes);
    return r;
}
