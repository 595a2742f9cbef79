/* Results of many nodes: nodes with equal results grouped, and one failure text about all. */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/host-list.h"
#include "engine/foundation/memory.h"
#include "engine/remote/nodes/nodes-private.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAMES_MAX = 400,  /* bytes of the list of names of nodes with the same failure */
    REASON_MAX = 200, /* bytes of what a command said on stderr */
};

static void clear_stream(struct node_stream *stream) {
    free(stream->bytes);
    free(stream->file);
}

void node_results_free(struct node_group *group, struct node_result *results) {
    for (size_t i = 0; results && i < group->count; i++) {
        clear_stream(&results[i].output);
        clear_stream(&results[i].error);
    }
    free(results);
}

/* A command that ends with status 0 because its time limit sent it a signal is not good, either. */
bool node_result_is_good(const struct node_result *result) {
    const struct remote_exit *how = &result->exit;
    return result->outcome == NODE_DONE && !how->signalled && how->code == 0 && !how->timed_out;
}

/* ---- grouping nodes: sorted so that equal ones are neighbours, then groups in the order of their first node
 */

typedef int compare_nodes(size_t a, size_t b, const void *context);

/* How nodes are compared. */
struct order {
    compare_nodes *compare;
    const void *context;
};

static int compare_in_order(const void *a, const void *b, void *context) {
    const struct order *order = context;
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    int r = order->compare(x, y, order->context);
    return r ? r : (x > y) - (x < y);
}

static int compare_first(const void *a, const void *b) {
    size_t x = ((const struct node_answer *)a)->nodes[0], y = ((const struct node_answer *)b)->nodes[0];
    return (x > y) - (x < y);
}

void node_answers_free(struct node_answer *answers, size_t count) {
    for (size_t i = 0; answers && i < count; i++)
        free(answers[i].nodes);
    free(answers);
}

/* Groups COUNT nodes that are equal by ORDER; sorts NODES. RET: the groups, in the order of their first
 * nodes; node_answers_free(). Returns the number of groups. */
static size_t group_nodes(size_t *nodes, size_t count, const struct order *order, struct node_answer **ret) {
    qsort_r(nodes, count, sizeof *nodes, compare_in_order, (void *)order);
    struct node_answer *answers = xcalloc(count + 1, sizeof *answers);
    size_t used = 0;
    for (size_t start = 0, end; start < count; start = end) {
        struct node_answer *answer = &answers[used++];
        for (end = start + 1; end < count; end++)
            if (order->compare(nodes[start], nodes[end], order->context) != 0)
                break;
        answer->count = end - start;
        answer->nodes = xcalloc(answer->count, sizeof *nodes);
        memcpy(answer->nodes, nodes + start, answer->count * sizeof *nodes);
    }
    qsort(answers, used, sizeof *answers, compare_first);
    *ret = answers;
    return used;
}

static int compare_numbers(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int compare_streams(const struct node_stream *a, const struct node_stream *b) {
    int r = compare_numbers(a->total, b->total);
    return r ? r : strcmp(a->hash, b->hash);
}

/* Orders results by outcome, exit or failure, and output; 0: they are equal. */
static int compare_results(size_t a, size_t b, const void *context) {
    const struct node_result *results = context, *x = &results[a], *y = &results[b];
    int r = compare_numbers(x->outcome, y->outcome);
    if (r == 0 && x->outcome == NODE_DONE) {
        r = compare_numbers(x->exit.signalled, y->exit.signalled);
        r = r ? r : (x->exit.code > y->exit.code) - (x->exit.code < y->exit.code);
        r = r ? r : compare_numbers(x->exit.timed_out, y->exit.timed_out);
    } else if (r == 0) {
        r = strcmp(x->failure.text, y->failure.text);
    }
    r = r ? r : compare_streams(&x->output, &y->output);
    return r ? r : compare_streams(&x->error, &y->error);
}

size_t node_results_fold(const struct node_group *group, const struct node_result *results,
                         struct node_answer **ret) {
    cleanup_free size_t *nodes = xcalloc(group->count + 1, sizeof *nodes);
    size_t count = 0;
    for (size_t i = 0; i < group->count; i++)
        if (results[i].outcome != NODE_NOT_ASKED)
            nodes[count++] = i;
    return group_nodes(nodes, count, &(struct order){compare_results, results}, ret);
}

/* ---- one text about many nodes */

static bool is_name_character(char c) {
    return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.';
}

/* The length of the IP address at AT, such as 10.77.0.6 or fe80::1; 0: there is none. */
static size_t address_length(const char *at) {
    char address[INET6_ADDRSTRLEN];
    unsigned char bytes[sizeof(struct in6_addr)];
    size_t length = strspn(at, "0123456789abcdefABCDEF.:");
    while (length > 0 && (at[length - 1] == '.' || at[length - 1] == ':'))
        length--; /* punctuation of the sentence */
    if (length < 2 || length >= sizeof address || is_name_character(at[length]))
        return 0;
    memcpy(address, at, length);
    address[length] = '\0';
    return inet_pton(AF_INET, address, bytes) == 1 || inet_pton(AF_INET6, address, bytes) == 1 ? length : 0;
}

/* A copy of SENTENCE with NAME, the name of its node, as NODE and IP addresses as ADDRESS: then the sentences
 * of two nodes with the same failure are equal. The caller frees. */
static char *generalize(const char *sentence, const char *name) {
    struct text text;
    text_init(&text, 8 * FAILURE_TEXT_SIZE);
    size_t length = strlen(name);
    for (const char *at = sentence; *at;) {
        bool begins = at == sentence || (!is_name_character(at[-1]) && at[-1] != ':');
        bool named = begins && strncmp(at, name, length) == 0 && !is_name_character(at[length]);
        size_t address = begins && !named ? address_length(at) : 0;
        const char *word = named ? "NODE" : address ? "ADDRESS" : NULL;
        (void)(word ? text_append_string(&text, word) : text_append_character(&text, *at));
        at += named ? length : address ? address : 1;
    }
    return text_take(&text);
}

static int compare_sentences(size_t a, size_t b, const void *context) {
    const char *const *keys = context;
    return strcmp(keys[a], keys[b]);
}

/* The names of the nodes of ANSWER as a folded list, dahu-[3,7]. One of more than NAMES_MAX bytes is cut at a
 * comma and ends with the number of nodes. The caller frees. */
static char *fold_names(const struct node_group *group, const struct node_answer *answer) {
    cleanup_free const char **names = xcalloc(answer->count, sizeof *names);
    for (size_t i = 0; i < answer->count; i++)
        names[i] = node_group_name(group, answer->nodes[i]);
    cleanup(text_clear) struct text folded;
    text_init(&folded, SIZE_MAX / 2);
    (void)host_list_fold(names, answer->count, &folded);
    if (folded.length <= NAMES_MAX)
        return text_take(&folded);
    size_t end = NAMES_MAX;
    while (end > 0 && folded.bytes[end] != ',')
        end--;
    return xformat("%.*s,... (%zu nodes)", (int)end, folded.bytes, answer->count);
}

void node_group_fold_sentences(const struct node_group *group, const char *const *sentences,
                               struct text *ret) {
    size_t count = 0, start = ret->length, omitted = 0;
    cleanup_free size_t *nodes = xcalloc(group->count + 1, sizeof *nodes);
    cleanup_free char **keys = xcalloc(group->count + 1, sizeof *keys);
    for (size_t i = 0; i < group->count; i++)
        if (sentences[i]) {
            nodes[count++] = i;
            keys[i] = generalize(sentences[i], node_group_name(group, i));
        }
    struct node_answer *answers;
    size_t answer_count = group_nodes(nodes, count, &(struct order){compare_sentences, keys}, &answers);
    for (size_t i = 0; i < answer_count; i++) {
        const struct node_answer *answer = &answers[i];
        size_t first = answer->nodes[0];
        const char *sentence = answer->count == 1 ? sentences[first] : keys[first];
        cleanup_free char *names = fold_names(group, answer);
        /* The first is written however long it is, because failure texts are limited. */
        if (omitted > 0 || (i > 0 && ret->length - start + strlen(names) + strlen(sentence) > NODE_WORDS_MAX))
            omitted += answer->count;
        else
            (void)text_printf(ret, "%s%s: %s", i > 0 ? "; " : "", names, sentence);
    }
    if (omitted > 0)
        (void)text_printf(ret, "; and %zu more for other reasons", omitted);
    node_answers_free(answers, answer_count);
    for (size_t i = 0; i < group->count; i++)
        free(keys[i]);
}

/* node_group_fold_sentences() into a new text; the caller frees. */
static char *fold_to_text(const struct node_group *group, const char *const *sentences) {
    struct text words;
    text_init(&words, NODE_SENTENCES_MAX);
    node_group_fold_sentences(group, sentences, &words);
    return text_take(&words);
}

int node_failures_merge(const struct node_group *group, const struct failure *failures, const char *what,
                        struct failure *failure) {
    cleanup_free const char **sentences = xcalloc(group->count + 1, sizeof *sentences);
    size_t count = 0;
    const struct failure *first = NULL;
    for (size_t i = 0; i < group->count; i++) {
        if (failures[i].code == 0)
            continue;
        sentences[i] = failures[i].text;
        if (count++ == 0)
            first = &failures[i];
    }
    if (count == 0)
        return 0;
    cleanup_free char *words = fold_to_text(group, sentences);
    enum failure_kind kind = first->kind == FAILURE_NONE ? FAILURE_SYSTEM : first->kind;
    return failure_set_kind(failure, kind, first->code, "%s failed on %zu of %zu nodes: %s", what, count,
                            group->count, words);
}

/* Why RESULT is not good, with the line of stderr that has the reason; the caller frees. */
static char *describe_result(const struct node_result *result) {
    if (result->outcome != NODE_DONE)
        return xstrdup(result->failure.text);
    char how[128];
    int length;
    const char *reason = text_reason(result->error.bytes ? result->error.bytes : "", &length);
    cleanup_free char *line = xstrndup(reason, (size_t)length);
    remote_exit_describe(&result->exit, how, sizeof how);
    text_shorten(line, (size_t)length, REASON_MAX);
    return xformat("%s%s%s", how, line[0] ? ": " : "", line);
}

int node_results_failure(const struct node_group *group, const struct node_result *results,
                         struct failure *failure) {
    cleanup_free char **sentences = xcalloc(group->count + 1, sizeof *sentences);
    size_t bad = 0, asked = 0;
    for (size_t i = 0; i < group->count; i++) {
        asked += results[i].outcome != NODE_NOT_ASKED;
        if (results[i].outcome == NODE_NOT_ASKED || node_result_is_good(&results[i]))
            continue;
        bad++;
        sentences[i] = describe_result(&results[i]);
    }
    if (bad == 0)
        return 0;
    cleanup_free char *words = fold_to_text(group, (const char *const *)sentences);
    for (size_t i = 0; i < group->count; i++)
        free(sentences[i]);
    return failure_set_kind(failure, FAILURE_EXPERIMENT, -EIO, "%zu of %zu nodes failed: %s", bad, asked,
                            words);
}
