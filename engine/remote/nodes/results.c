/* What came of it, of many nodes: who answered alike, and what went wrong, in few words. */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/host-list.h"
#include "engine/foundation/memory.h"
#include "engine/remote/nodes/inside.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAMES_MOST = 400,      /* bytes of the names of one fold */
    FIRST_LINE_MOST = 200, /* bytes of what a command said on stderr */
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

/* A command that was told to end by its time limit, and does so with status 0, has not done its work. */
bool node_result_is_good(const struct node_result *result) {
    const struct remote_exit *how = &result->exit;
    return result->outcome == NODE_DONE && !how->signalled && how->code == 0 && !how->timed_out;
}

/* ---- grouping: indices sorted so that equal ones are neighbours, then in order of the first of each */

typedef int compare_nodes(size_t a, size_t b, const void *context);

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

static bool take_answer(struct node_answer *answer, const size_t *nodes, size_t count) {
    answer->nodes = calloc(count, sizeof *nodes);
    if (!answer->nodes)
        return false;
    memcpy(answer->nodes, nodes, count * sizeof *nodes);
    answer->count = count;
    return true;
}

/* Those of the COUNT NODES that are equal by ORDER together; NODES is sorted by it. */
static int fold(size_t *nodes, size_t count, const struct order *order, struct node_answer **ret,
                size_t *ret_count) {
    qsort_r(nodes, count, sizeof *nodes, compare_in_order, (void *)order);
    struct node_answer *answers = calloc(count + 1, sizeof *answers);
    size_t used = 0;
    for (size_t start = 0, end; answers && start < count; start = end) {
        for (end = start + 1; end < count; end++)
            if (order->compare(nodes[start], nodes[end], order->context) != 0)
                break;
        if (!take_answer(&answers[used], nodes + start, end - start)) {
            node_answers_free(answers, used);
            answers = NULL;
        }
        used++;
    }
    if (!answers)
        return -ENOMEM;
    qsort(answers, used, sizeof *answers, compare_first);
    *ret = answers;
    *ret_count = used;
    return 0;
}

static int compare_numbers(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int compare_streams(const struct node_stream *a, const struct node_stream *b) {
    int r = compare_numbers(a->total, b->total);
    return r ? r : strcmp(a->hash, b->hash);
}

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

int node_results_fold(const struct node_group *group, const struct node_result *results,
                      struct node_answer **ret, size_t *ret_count, struct failure *failure) {
    cleanup_free size_t *nodes = xcalloc(group->count + 1, sizeof *nodes);
    size_t count = 0;
    for (size_t i = 0; i < group->count; i++)
        if (results[i].outcome != NODE_NOT_ASKED)
            nodes[count++] = i;
    struct order order = {compare_results, results};
    return fold(nodes, count, &order, ret, ret_count) < 0 ? failure_memory(failure) : 0;
}

/* ---- sentences about many */

static bool is_name_character(char c) {
    return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.';
}

/* How many bytes at AT are an address of the network, such as 10.77.0.6 or fe80::1; 0: they are none. */
static size_t address_length(const char *at) {
    char address[INET6_ADDRSTRLEN];
    unsigned char bytes[sizeof(struct in6_addr)];
    size_t length = strspn(at, "0123456789abcdefABCDEF.:");
    while (length > 0 && (at[length - 1] == '.' || at[length - 1] == ':'))
        length--; /* of the sentence */
    if (length < 2 || length >= sizeof address || is_name_character(at[length]))
        return 0;
    memcpy(address, at, length);
    address[length] = '\0';
    return inet_pton(AF_INET, address, bytes) == 1 || inet_pton(AF_INET6, address, bytes) == 1 ? length : 0;
}

/* SENTENCE with the node's own NAME, where it is a word, and addresses replaced: two nodes that say the same
 * of themselves say the same. NULL when out of memory. */
static char *without_names(const char *sentence, const char *name) {
    struct text text;
    text_init(&text, 4 * FAILURE_TEXT_SIZE);
    size_t length = strlen(name);
    int r = 0;
    for (const char *at = sentence; *at && r == 0;) {
        bool begins = at == sentence || (!is_name_character(at[-1]) && at[-1] != ':');
        bool named = begins && strncmp(at, name, length) == 0 && !is_name_character(at[length]);
        size_t address = begins && !named ? address_length(at) : 0;
        r = named     ? text_append_string(&text, "NODE")
            : address ? text_append_string(&text, "ADDRESS")
                      : text_append_character(&text, *at);
        at += named ? length : address ? address : 1;
    }
    char *result = r == 0 ? text_take(&text) : NULL;
    text_clear(&text);
    return result;
}

static int compare_sentences(size_t a, size_t b, const void *context) {
    const char *const *keys = context;
    return strcmp(keys[a], keys[b]);
}

/* Cuts a folded list that is too long to read at one of its commas. */
static void cut_names(struct text *names, size_t start) {
    if (names->length - start <= NAMES_MOST)
        return;
    size_t end = start + NAMES_MOST;
    while (end > start && names->bytes[end] != ',')
        end--;
    names->length = end;
    names->bytes[end] = '\0';
}

/* "names: sentence"; a fold of many whose names were cut says how many they are. */
static int put_fold(const struct node_group *group, const struct node_answer *answer, const char *sentence,
                    struct text *ret) {
    cleanup_free const char **names = calloc(answer->count, sizeof *names);
    if (!names)
        return -ENOMEM;
    for (size_t i = 0; i < answer->count; i++)
        names[i] = node_group_name(group, answer->nodes[i]);
    cleanup(text_clear) struct text folded;
    text_init(&folded, SIZE_MAX / 2);
    int r = host_list_fold(names, answer->count, &folded);
    size_t whole = folded.length;
    if (r == 0)
        cut_names(&folded, 0);
    if (r == 0 && folded.length < whole)
        r = text_printf(&folded, ",... (%zu nodes)", answer->count);
    return r < 0 ? r : text_printf(ret, "%s: %s", folded.bytes, sentence);
}

static int put_folds(const struct node_group *group, const struct node_answer *answers, size_t count,
                     const char *const *sentences, char *const *keys, struct text *ret) {
    size_t start = ret->length, left = 0;
    int r = 0;
    for (size_t i = 0; i < count && r == 0; i++) {
        const struct node_answer *answer = &answers[i];
        size_t before = ret->length, first = answer->nodes[0];
        if (left == 0) {
            if (i > 0)
                r = text_append_string(ret, "; ");
            if (r == 0)
                r = put_fold(group, answer, answer->count == 1 ? sentences[first] : keys[first], ret);
        }
        /* The first is told however long it is; failure texts have an end of their own. */
        if (left > 0 || r == -EFBIG || (i > 0 && ret->length - start > NODE_WORDS_MOST)) {
            ret->length = before;
            if (ret->bytes)
                ret->bytes[before] = '\0';
            left += answer->count;
            r = 0;
        }
    }
    if (r == 0 && left > 0)
        r = text_printf(ret, "; and %zu more for other reasons", left);
    return r;
}

int node_group_fold_sentences(const struct node_group *group, const char *const *sentences,
                              struct text *ret) {
    size_t count = 0;
    cleanup_free size_t *nodes = calloc(group->count + 1, sizeof *nodes);
    cleanup_free char **keys = calloc(group->count + 1, sizeof *keys);
    int r = nodes && keys ? 0 : -ENOMEM;
    for (size_t i = 0; i < group->count && r == 0; i++) {
        if (!sentences[i])
            continue;
        nodes[count++] = i;
        keys[i] = without_names(sentences[i], node_group_name(group, i));
        r = keys[i] ? 0 : -ENOMEM;
    }
    struct node_answer *answers = NULL;
    size_t answer_count = 0;
    if (r == 0) {
        struct order order = {compare_sentences, keys};
        r = fold(nodes, count, &order, &answers, &answer_count);
    }
    if (r == 0)
        r = put_folds(group, answers, answer_count, sentences, keys, ret);
    node_answers_free(answers, answer_count);
    for (size_t i = 0; keys && i < group->count; i++)
        free(keys[i]);
    return r;
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
    cleanup(text_clear) struct text words;
    text_init(&words, NODE_SENTENCES_MOST);
    if (node_group_fold_sentences(group, sentences, &words) < 0)
        return failure_memory(failure);
    enum failure_kind kind = first->kind == FAILURE_NONE ? FAILURE_SYSTEM : first->kind;
    return failure_set_kind(failure, kind, first->code, "%s failed on %zu of %zu nodes: %s", what, count,
                            group->count, words.bytes);
}

/* The first line of it that says something, cut. */
static void first_line(const struct node_stream *stream, char ret[static FIRST_LINE_MOST + 1]) {
    const char *at = stream->bytes ? stream->bytes : "";
    at += strspn(at, " \t\r\n");
    size_t length = strcspn(at, "\r\n");
    if (length > FIRST_LINE_MOST)
        length = FIRST_LINE_MOST;
    while (length > 0 && ((unsigned char)at[length] & 0xc0) == 0x80)
        length--; /* not inside a character of UTF-8 */
    memcpy(ret, at, length);
    ret[length] = '\0';
}

static char *describe_result(const struct node_result *result) {
    if (result->outcome != NODE_DONE)
        return strdup(result->failure.text);
    char how[128], line[FIRST_LINE_MOST + 1];
    remote_exit_describe(&result->exit, how, sizeof how);
    first_line(&result->error, line);
    return text_format("%s%s%s", how, line[0] ? ": " : "", line);
}

static int describe_bad(const struct node_group *group, char **sentences, size_t bad, size_t asked,
                        struct failure *failure) {
    cleanup(text_clear) struct text words;
    text_init(&words, NODE_SENTENCES_MOST);
    if (node_group_fold_sentences(group, (const char *const *)sentences, &words) < 0)
        return failure_memory(failure);
    return failure_set_kind(failure, FAILURE_EXPERIMENT, -EIO, "%zu of %zu nodes failed: %s", bad, asked,
                            words.bytes);
}

int node_results_failure(const struct node_group *group, const struct node_result *results,
                         struct failure *failure) {
    cleanup_free char **sentences = xcalloc(group->count + 1, sizeof *sentences);
    size_t bad = 0, asked = 0;
    int r = 0;
    for (size_t i = 0; i < group->count && r == 0; i++) {
        asked += results[i].outcome != NODE_NOT_ASKED;
        if (results[i].outcome == NODE_NOT_ASKED || node_result_is_good(&results[i]))
            continue;
        bad++;
        sentences[i] = describe_result(&results[i]);
        r = sentences[i] ? 0 : failure_memory(failure);
    }
    if (r == 0 && bad > 0)
        r = describe_bad(group, sentences, bad, asked, failure);
    for (size_t i = 0; i < group->count; i++)
        free(sentences[i]);
    return r;
}
