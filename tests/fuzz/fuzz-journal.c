/*
 * A journal from a stranger. First the bytes as they are, in pieces of any size: what is whole is what a
 * slower look at the same lines finds. Then each line with the checksum that it should have, behind the
 * beginning that an entry has, so that all else in it is the stranger's: members are found or not, and
 * nothing is read that is not there.
 */
#include "engine/foundation/checksum.h"
#include "engine/foundation/text.h"
#include "engine/run/record/journal-read.h"
#include "engine/run/record/journal.h"
#include "engine/run/record/story.h"
#include "tests/fuzz/pieces.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static void look_at(const struct journal_member *member) {
    int64_t integer;
    double number;
    char text[40];
    bool is_integer = journal_member_integer(member, &integer),
         is_number = journal_member_number(member, &number);
    for (size_t size = 0; size <= sizeof text; size += 4) {
        memset(text, '\n', sizeof text);
        if (!journal_member_text(member, text, size))
            continue;
        must(size > 0 && memchr(text, '\0', size) && !is_integer && !is_number);
        for (size_t i = size; i < sizeof text; i++)
            must(text[i] == '\n');
    }
    must(!is_integer || (is_number && number == (double)integer));
}

/* What the one-by-one functions say of KEY is what the first member of that name says. */
static void look_up(const struct journal_entry *entry, const char *key) {
    struct journal_member member;
    size_t at = 0;
    bool there = false;
    while (!there && journal_entry_next(entry, &at, &member))
        there = journal_member_is(&member, key);
    int64_t a = 0, b = 0;
    must(journal_entry_integer(entry, key, &a) == (there && journal_member_integer(&member, &b)) && a == b);
    double c = 0, d = 0;
    must(journal_entry_number(entry, key, &c) == (there && journal_member_number(&member, &d)) && c == d);
    char one[20] = "", other[20] = "";
    must(journal_entry_text(entry, key, one, sizeof one) ==
         (there && journal_member_text(&member, other, sizeof other)));
    must(strcmp(one, other) == 0);
}

static int take(const struct journal_entry *entry, void *context, struct failure *failure) {
    (void)failure;
    uint64_t *count = context;
    must(entry->sequence == ++*count);
    size_t at = 0, before = 0;
    struct journal_member member;
    while (journal_entry_next(entry, &at, &member)) {
        must(at > before && at <= entry->length && member.length > 0);
        must(member.key >= entry->members && member.value + member.length == entry->members + at);
        before = at;
        look_at(&member);
    }
    look_up(entry, "row");
    look_up(entry, "node");
    look_up(entry, "");
    return 0;
}

/* What `assay status` would make of it. Entries that are no run's first are given one before them. */
static void tell_story(const char *bytes, size_t length, size_t piece) {
    struct pieces pieces = {bytes, length, piece};
    struct journal_source source = {"fuzz", read_piece, &pieces};
    struct run_status *status = calloc(1, sizeof *status);
    struct failure failure = {0};
    struct journal_end end;
    struct run_story story = {.status = status, .last_unit_ns = -1, .entries = 1};
    if (!status)
        return;
    must(journal_replay_from(&source, run_story_take, &story, &end, &failure) == 0);
    double rate = run_story_rate(&story);
    must(isnan(rate) || rate > 0);
    must(story.entries == end.entries + 1 && status->flagged <= end.entries);
    for (size_t i = 0; i < status->node_count; i++)
        for (size_t k = 0; k < i && k < 8; k++)
            must(strcmp(status->nodes[i]->name, status->nodes[k]->name) != 0);
    run_story_clear(&story);
    run_status_free(status);
}

static struct journal_end replay(const char *bytes, size_t length, size_t piece) {
    struct pieces pieces = {bytes, length, piece};
    struct failure failure = {0};
    struct journal_end end;
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
        whole += newline - at <= JOURNAL_LINE_BYTES_MOST && journal_line_is_whole(at, (size_t)(newline - at));
    must(end.bytes == 0 || bytes[end.bytes - 1] == '\n');
    must(end.entries + end.whole_after <= whole && end.entries + end.whole_after + 1 >= whole);
}

/* Every line of BYTES as what an entry says, with a checksum that is right. */
static void check_sealed(const char *bytes, size_t length, size_t piece) {
    struct text journal;
    text_init(&journal, 64 << 20);
    uint64_t count = 0;
    for (const char *at = bytes, *end = bytes + length; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t line = (size_t)((newline ? newline : end) - at), begin = journal.length;
        /* A line of our own goes in with what it says of itself replaced. */
        const char *event = memmem(at, line, ",\"event\"", 8), *tail = memmem(at, line, ",\"crc32c\"", 9);
        const char *from = event ? event : at, *to = tail && tail > from ? tail : at + line;
        if (text_printf(&journal, "{\"seq\":%" PRIu64 ",\"t\":5%s", ++count,
                        event ? "" : ",\"event\":\"x\"") < 0 ||
            text_append(&journal, from, (size_t)(to - from)) < 0 ||
            text_printf(&journal, ",\"crc32c\":\"%08" PRIx32 "\"}\n",
                        checksum_crc32c(journal.bytes + begin, journal.length - begin)) < 0)
            break;
        at += line + 1;
    }
    struct journal_end end = replay(journal.bytes, journal.length, piece);
    must(end.entries <= count);
    fuzz_passed += end.entries > 0;
    tell_story(journal.bytes, journal.length, piece);
    text_clear(&journal);
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
