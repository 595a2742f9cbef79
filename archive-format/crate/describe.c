#include "archive-format/crate/describe.h"

#include "archive-format/layout.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { LINES_SHOWN = 6, SENTENCES_SHOWN = 8, HEAD_BYTES = 4 << 10 };

bool describe_is_made_last(const char *name) {
    return strcmp(name, ARCHIVE_PREVIEW) == 0 || strcmp(name, ARCHIVE_CRATE) == 0 ||
           strcmp(name, ARCHIVE_MANIFEST) == 0;
}

int describe_result(const struct sealed_content *content, struct text *ret) {
    if (content->description->result)
        return text_append_string(ret, content->description->result);
    char head[HEAD_BYTES];
    cleanup_free char *path = file_join(content->staging->folder, ARCHIVE_RESULTS);
    cleanup_close int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t got = file < 0 ? 0 : TEMP_FAILURE_RETRY(read(file, head, sizeof head));
    size_t end = 0, length = got < 0 ? 0 : (size_t)got; /* END: behind the last whole line that is shown */
    const char *newline = head;
    for (size_t lines = 0; lines < LINES_SHOWN && newline; lines++) {
        newline = memchr(head + end, '\n', length - end);
        end = newline ? (size_t)(newline - head) + 1 : end;
    }
    return text_append(ret, head, end);
}

static void print_sentences(const struct bind_texts *sentences, const char *word, struct text *ret) {
    for (size_t i = 0; i < sentences->count && i < SENTENCES_SHOWN; i++)
        text_printf(ret, "%s: %s\n", word, sentences->items[i]);
    if (sentences->count > SENTENCES_SHOWN)
        text_printf(ret, "%s: %zu more are in run.json\n", word, sentences->count - SENTENCES_SHOWN);
}

static void print_nodes(const struct archive_run *run, struct text *ret) {
    const struct archive_node_out *out = run->nodes_out.items;
    const struct archive_slow_node *slow = run->slow_nodes.items;
    for (size_t i = 0; i < run->nodes_out.count && i < SENTENCES_SHOWN; i++)
        text_printf(ret, "Failures: node %s left the run (%s): %s\n", out[i].node, out[i].why,
                    out[i].sentence ? out[i].sentence : "no reason is known");
    for (size_t i = 0; i < run->slow_nodes.count && i < SENTENCES_SHOWN; i++)
        text_printf(ret, "Flags: node %s is slow: %s\n", slow[i].node, slow[i].sentence);
}

int describe_outcome(const struct sealed_content *content, struct text *ret) {
    const struct archive_run *run = content->run;
    const struct archive_description *description = content->description;
    const struct archive_counts *counts = &run->counts;
    int64_t missing = counts->planned - counts->done - counts->failed;
    struct text_mark mark = text_mark(ret);
    text_printf(ret, "Status: %s%s%s\n", description->status, description->error ? ", " : "",
                description->error ? description->error : "");
    if (run->prediction) {
        print_sentences(&run->prediction->warnings, "Warning", ret);
        return text_keep(ret, mark);
    }
    if (counts->flagged > 0)
        text_printf(ret, "Flags: %" PRId64 " of the lines of " ARCHIVE_RESULTS " have flags\n",
                    counts->flagged);
    else
        text_append_string(ret, "Flags: no line of " ARCHIVE_RESULTS " has any\n");
    if (counts->planned == 0)
        text_append_string(ret, "Failures: no unit was planned\n");
    else if (counts->failed > 0 || missing > 0)
        text_printf(ret,
                    "Failures: of %" PRId64 " units, %" PRId64 " failed and %" PRId64 " were not measured\n",
                    counts->planned, counts->failed, missing > 0 ? missing : 0);
    else
        text_append_string(ret, "Failures: no unit failed or is missing\n");
    print_nodes(run, ret);
    if (run->import)
        print_sentences(&run->import->notes, "Note", ret);
    return text_keep(ret, mark);
}

/* ---- Machines */

bool describe_is_facts(const char *name) {
    static const char folder[] = ARCHIVE_NODES "/";
    if (strncmp(name, folder, sizeof folder - 1) != 0)
        return false;
    const char *end = strchr(name + sizeof folder - 1, '/');
    return end && strcmp(end + 1, ARCHIVE_NODE_FACTS) == 0;
}

static const char *fact(const struct document *facts, const char *name) {
    const struct document_node *node = document_get(facts->root, name);
    return node && node->text && node->kind != DOCUMENT_NULL ? node->text : "?";
}

struct document *describe_read(const struct staging *staging, const char *name) {
    cleanup_free char *path = file_join(staging->folder, name);
    struct document *document = NULL;
    if (staging_find(staging, name))
        (void)document_read_json(path, &document, NULL);
    return document;
}

/* Nodes say these things themselves: a long one is cut. */
char *describe_machine(const struct staging *staging, const char *name) {
    cleanup(document_cleanup) struct document *facts = describe_read(staging, name);
    char memory[NUMBER_TEXT_SIZE];
    int64_t bytes;
    if (!facts)
        return NULL;
    const char *total = fact(facts, "memory_total_bytes");
    if (!number_parse_int64(total, strlen(total), &bytes))
        return NULL;
    return xformat("%.100s, %.20s physical cores, %s of memory, %.100s %.100s", fact(facts, "cpu_model"),
                   fact(facts, "physical_cores_usable"), number_describe_bytes((double)bytes, memory),
                   fact(facts, "kernel_name"), fact(facts, "kernel_release"));
}
