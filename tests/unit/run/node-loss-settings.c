/* What a campaign says of nodes that are lost, and of spares: bound, or refused with its place. */
#include "engine/run/campaign/node-loss-settings.h"
#include "engine/documents/document.h"
#include "tests/test.h"

static int bind(const char *text, struct node_loss_settings *ret, struct failure *failure) {
    struct document *document;
    assert_int_equal(document_parse_yaml("c.yaml", text, strlen(text), &document, failure), 0);
    struct testbed_choice testbed = {0};
    struct testbed_written written = {
        .document = document, .node = document_get(document->root, "testbed"), .folder = "/"};
    int r = testbed_bind(&written, &testbed, failure);
    if (r == 0)
        r = node_loss_settings_bind(document, document_get(document->root, "node-loss"), &testbed, false, ret,
                                    failure);
    testbed_choice_clear(&testbed);
    document_free(document);
    return r;
}

static void accepted(const char *text, enum node_loss_action action, int64_t at_least) {
    struct node_loss_settings settings;
    struct failure failure = {0};
    if (bind(text, &settings, &failure) < 0)
        fail_msg("%s: %s", text, failure.text);
    assert_int_equal(settings.action, action);
    assert_int_equal(settings.at_least, at_least);
}

static void refused(const char *text, const char *place, const char *words) {
    struct node_loss_settings settings = {0};
    struct failure failure = {0};
    if (bind(text, &settings, &failure) == 0)
        fail_msg("accepted: %s", text);
    assert_string_equal(failure.place, place);
    if (!strstr(failure.text, words))
        fail_msg("'%s' does not say '%s'", failure.text, words);
}

#define FOUR "testbed: {hosts: 'n-[1-4]'}\n"
#define SPARED "testbed: {hosts: 'n-[1-4]', spares: 'n-[9-10]'}\n"

TEST(defaults_go_by_the_testbed) {
    accepted("testbed: local\n", NODE_LOSS_ABORT, 1);
    accepted("testbed: {hosts: n-1}\n", NODE_LOSS_ABORT, 1);
    accepted(FOUR, NODE_LOSS_CONTINUE, 1);
    accepted(SPARED, NODE_LOSS_REPLACE, 1);
}

TEST(what_is_said_counts) {
    accepted(FOUR "node-loss: abort\n", NODE_LOSS_ABORT, 1);
    accepted(FOUR "node-loss: continue\n", NODE_LOSS_CONTINUE, 1);
    accepted(FOUR "node-loss: {at-least: 4}\n", NODE_LOSS_CONTINUE, 4);
    accepted(FOUR "node-loss: {do: continue, at-least: 2}\n", NODE_LOSS_CONTINUE, 2);
    accepted(SPARED "node-loss: {do: replace, at-least: 3}\n", NODE_LOSS_REPLACE, 3);
    accepted("testbed: local\nnode-loss: continue\n", NODE_LOSS_CONTINUE, 1);
}

TEST(what_cannot_be_is_refused_with_its_place) {
    refused(FOUR "node-loss: ignore\n", "c.yaml:2:12", "'ignore'");
    refused(FOUR "node-loss: [continue]\n", "c.yaml:2:12", "node-loss");
    refused(FOUR "node-loss: {do: continue, atleast: 2}\n", "c.yaml:2:27", "at-least");
    refused(FOUR "node-loss: {do: continue, at-least: 0}\n", "c.yaml:2:37", "at-least");
    refused(FOUR "node-loss: {at-least: 5}\n", "c.yaml:2:23", "'at-least' is 5, and the run has 4 nodes");
    refused(FOUR "node-loss: {do: abort, at-least: 2}\n", "c.yaml:2:34", "expected 'do: continue'");
    refused(FOUR "node-loss: replace\n", "c.yaml:2:12", "has no spares");
    refused(FOUR "node-loss: {do: replace}\n", "c.yaml:2:17", "has no spares");
    refused("testbed: local\nnode-loss: replace\n", "c.yaml:2:12", "has no spares");
    refused(SPARED "node-loss: continue\n", "c.yaml:2:12", "2 spares that nobody would use");
}

TEST(spares_are_a_list_of_their_own) {
    accepted("testbed: {hosts: [n-1, n-2], spares: [n-3, 'n-[7-8]']}\n", NODE_LOSS_REPLACE, 1);
    refused("testbed: {hosts: 'n-[1-4]', spares: n-3}\n", "c.yaml:1:37",
            "the spare 'n-3' is one of the hosts too");
    refused("testbed: {hosts: 'n-[1-4]', spares: root@n-3}\n", "c.yaml:1:37",
            "two nodes would be called 'n-3'");
    refused("testbed: {hosts: 'n-[1-4]', spares: {files: x}}\n", "c.yaml:1:38", "'spares'");
    refused("testbed: {hosts: 'n-[1-4]', spares: 'n-['}\n", "c.yaml:1:37",
            "expected a number in the bracket");
    refused("testbed: {hosts: 'n-[1-4]', spares: ~}\n", "c.yaml:1:37", "'spares' is");
}

TEST(spares_are_no_nodes) {
    struct document *document;
    struct failure failure = {0};
    assert_int_equal(document_parse_yaml("c.yaml", SPARED, strlen(SPARED), &document, &failure), 0);
    struct testbed_choice testbed = {0};
    struct testbed_written written = {
        .document = document, .node = document_get(document->root, "testbed"), .folder = "/"};
    assert_int_equal(testbed_bind(&written, &testbed, &failure), 0);
    assert_int_equal(testbed.backend->expected_nodes(testbed.settings), 4);
    assert_int_equal(testbed_spare_nodes(&testbed), 2);
    struct text words;
    text_init(&words, 4096);
    assert_int_equal(testbed.backend->describe(testbed.settings, &words), 0);
    assert_non_null(strstr(words.bytes, "nodes        4: n-[1-4]\nspares       2: n-[9-10]\n"));
    text_clear(&words);
    cJSON *object = cJSON_CreateObject();
    testbed.backend->resolve(testbed.settings, object);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(object, "hosts")), 4);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(cJSON_GetObjectItem(object, "spares"), 1)),
                        "n-10");
    cJSON_Delete(object);
    testbed_choice_clear(&testbed);
    document_free(document);
}
