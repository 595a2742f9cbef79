/*
 * A journal from a stranger. First the bytes as they are, in pieces of any size: what is whole is what a
 * slower look at the same lines finds. Then each line with the checksum that it should have, behind the
 * beginning that an entry has, so that all else in it is the stranger's: members are found or not, and
 * nothing is read that is not there.
 */
#include "engine/documents/json.h"
#include "engine/foundation/checksum.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/text.h"
#include "engine/run/record/history.h"
#include "tests/fuzz/fuzz.h"
#include "tests/pieces.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static void look_up(const struct journal_entry *entry, const char *key) {
    int64_t integer;
    char text[40];
    bool is_integer = journal_entry_integer(entry, key, &integer);
    for (size_t size = 1; size <= sizeof text; size += 3) {
        memset(text, '\n', sizeof text);
        if (!journal_entry_text(entry, key, text, size))
            continue;
        must(memchr(text, '\0', size) && !is_integer);
        for (size_t i = size; i < sizeof text; i++)
            must(text[i] == '\n');
    }
}

static int take(const struct journal_entry *entry, void *context, struct failure *failure) {
    (void)failure;
    uint64_t *count = context;
    must(entry->sequence == ++*count);
    must(entry->event);
    look_up(entry, "row");
    look_up(entry, "node");
    look_up(entry, "");
    return 0;
}

/* What `assay status` would make of it. Entries that are no run's first are refused. */
static void fold(const char *bytes, size_t length, size_t piece) {
    struct pieces pieces = {bytes, length, piece};
    struct journal_source source = {"fuzz", read_piece, &pieces};
    struct run_history history = {0};
    struct failure failure = {0};
    if (run_history_read_from(&source, &history, &failure) == 0) {
        double rate = run_history_rate(&history);
        must(isnan(rate) || rate > 0);
        must(history.part_count <= history.journal.entries);
        must(history.commit_count <= history.journal.entries);
        for (size_t i = 0; i < history.node_count; i++)
            for (size_t k = 0; k < i && k < 8; k++)
                must(strcmp(history.nodes[i]->name, history.nodes[k]->name) != 0);
    }
    run_history_clear(&history);
}

static struct journal_end replay(const char *bytes, size_t length, size_t piece) {
    struct pieces pieces = {bytes, length, piece};
    struct failure failure = {0};
    struct journal_end end = {0};
    uint64_t count = 0;
    must(journal_replay_from(&(struct journal_source){"fuzz", read_piece, &pieces}, take, &count, &end,
                             &failure) == 0);
    must(end.entries == count && end.file_bytes == length && end.bytes <= length);
    return end;
}

static void check_raw(const char *bytes, size_t length, size_t piece) {
    struct journal_end end = replay(bytes, length, piece);
    uint64_t whole = 0;
    for (const char *at = bytes, *newline; (newline = memchr(at, '\n', length - (size_t)(at - bytes)));
         at = newline + 1)
        whole += newline - at <= JOURNAL_LINE_BYTES_MAX && journal_line_is_whole(at, (size_t)(newline - at));
    must(end.bytes == 0 || bytes[end.bytes - 1] == '\n');
    must(end.entries + end.whole_after <= whole && end.entries + end.whole_after + 1 >= whole);
}

/* Begins the entry after COUNT others: with the LENGTH bytes at BYTES as its members, or, where that is no
 * JSON, with them as the text of one. */
static int append_entry(struct text *journal, uint64_t count, const char *event, const char *bytes,
                        size_t length) {
    size_t begin = journal->length;
    int r = text_printf(journal, "{\"seq\":%" PRIu64 ",\"t\":5,\"m\":%" PRIu64 "%s", count + 1, count, event);
    size_t behind = journal->length;
    r = r < 0 ? r : text_append(journal, bytes, length);
    r = r < 0 ? r : text_append_character(journal, '}');
    cleanup(json_cleanup) cJSON *parsed =
        r < 0 ? NULL : cJSON_ParseWithLength(journal->bytes + begin, journal->length - begin);
    text_cut(journal, journal->length - (r == 0));
    if (r < 0 || parsed)
        return r;
    text_cut(journal, behind);
    r = text_append_string(journal, event[0] ? ",\"node\":" : ",\"event\":\"node\",\"name\":");
    return r < 0 ? r : json_append_string(journal, bytes, length);
}

/* Every line of BYTES as what an entry says, with a checksum that is right. */
static void check_sealed(const char *bytes, size_t length, size_t piece) {
    cleanup(text_clear) struct text journal;
    text_init(&journal, 64 << 20);
    uint64_t count = 0;
    for (const char *at = bytes, *end = bytes + length; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t line = (size_t)((newline ? newline : end) - at), begin = journal.length;
        /* A line of our own goes in with what it says of itself replaced. */
        const char *event = memmem(at, line, ",\"event\"", 8), *tail = memmem(at, line, ",\"crc32c\"", 9);
        const char *from = event ? event : at, *to = tail && tail > from ? tail : at + line;
        const char *own = event ? "" : count == 0 ? ",\"event\":\"run-started\"" : ",\"event\":\"x\"";
        if (append_entry(&journal, count, own, from, (size_t)(to - from)) < 0 ||
            text_printf(&journal, ",\"crc32c\":\"%08" PRIx32 "\"}\n",
                        checksum_crc32c(journal.bytes + begin, journal.length - begin)) < 0)
            break;
        count++;
        at += line + 1;
    }
    struct journal_end end = replay(journal.bytes, journal.length, piece);
    must(end.entries <= count);
    fuzz_passed += end.entries > 0;
    fold(journal.bytes, journal.length, piece);
}

FUZZ_TARGET(90, 2000);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    if (length < 2)
        return 0;
    size_t piece = 1 + bytes[0] + (size_t)bytes[1] * 64;
    check_raw((const char *)bytes + 2, length - 2, piece);
    check_sealed((const char *)bytes + 2, length - 2, piece);
    return 0;
}
