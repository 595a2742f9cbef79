/* What people and programs get to see of a run's status; real ones are in
 * integration/command-line/list-status.sh. */
#include "engine/run/record/status-report.h"
#include "engine/documents/document.h"
#include "engine/documents/json.h"
#include "tests/test.h"

static struct run_status status_of_stranger(void) {
    return (struct run_status){.path = (char *)"runs/x",
                               .folder = (char *)"runs/\033[2J",
                               .name = "a\nb\033]0;c\a",
                               .run_id = "\xff\xfe",
                               .part = 2,
                               .condition = RUN_IS_STOPPED,
                               .phase = "mea\tsure",
                               .rate = NAN,
                               .seconds_left = -1,
                               .last_error = "it\nbroke \"here\"",
                               .journal_torn_bytes = 12,
                               .journal_whole_after = 3,
                               .next = (char *)"`assay resume runs/x` continues it",
                               .command = (char *)"assay resume runs/x"};
}

/* The caller frees. */
static char *page_of(const struct run_status *status) {
    cleanup(report_cleanup) struct report *report = status_describe(status);
    return report_render(report, false);
}

TEST(nothing_steers_the_terminal) {
    struct run_status status = status_of_stranger();
    cleanup_free char *page = page_of(&status);
    for (const char *at = page; *at; at++)
        assert_true(*at == '\n' || ((unsigned char)*at >= ' ' && *at != 0x7f));
    assert_int_equal(text_invalid_utf8(page, strlen(page)), strlen(page));
    size_t lines = 0;
    for (const char *at = page; (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(lines, 13); /* no text made one of its own */
    assert_non_null(strstr(page, "\nnext        `assay resume runs/x` continues it\n"));
    assert_non_null(strstr(page, "3 whole entries follow the tear"));
}

TEST(json_has_all_members_always) {
    struct run_status statuses[2] = {status_of_stranger(),
                                     {.path = (char *)"x", .rate = 2, .next = (char *)"nothing"}};
    for (size_t i = 0; i < 2; i++) {
        cleanup(report_cleanup) struct report *report = status_describe(&statuses[i]);
        cJSON *object = report_json(report);
        struct text text;
        struct document *document = NULL;
        text_init(&text, 1 << 20);
        assert_int_equal(json_print(object, true, &text), 0);
        assert_int_equal(document_parse_json("status", text.bytes, text.length, &document, NULL), 0);
        assert_int_equal(document->root->count, 25);
        assert_non_null(document_get(document_get(document->root, "units"), "planned"));
        document_free(document);
        text_clear(&text);
        cJSON_Delete(object);
    }
}

static void add_nodes(struct run_status *status, struct run_history_node *nodes, size_t count) {
    status->nodes = calloc(count, sizeof *status->nodes);
    assert_non_null(status->nodes);
    for (size_t i = 0; i < count; i++)
        status->nodes[i] = &nodes[i];
    status->node_count = count;
}

/* A thousand lost nodes do not hide what to do next. */
TEST(few_nodes_are_named) {
    struct run_status status = status_of_stranger();
    struct run_history_node nodes[100] = {{0}};
    for (size_t i = 0; i < 100; i++)
        nodes[i] = (struct run_history_node){
            .name = (char *)"n", .condition = RUN_NODE_LOST, .sentence = (char *)"gone"};
    nodes[0] = (struct run_history_node){.name = (char *)"n-0"};
    nodes[1] = (struct run_history_node){.name = (char *)"n-1", .slow = (char *)"2x"};
    add_nodes(&status, nodes, 100);
    status.nodes_lost = 98;
    status.nodes_slow = 1;
    cleanup_free char *page = page_of(&status);
    assert_non_null(strstr(page, "nodes       100, 98 lost, 1 slow\n"));
    assert_null(strstr(page, "n-0"));
    assert_non_null(strstr(page, "            n-1 is slow: 2x\n            n is lost: gone\n"));
    assert_non_null(strstr(page, "            ... and 79 more\n"));
    free(status.nodes);
}

TEST(units_have_a_bar) {
    struct run_status status = status_of_stranger();
    char units[STATUS_UNITS_SIZE], when[STATUS_WHEN_SIZE];
    assert_string_equal(status_describe_units(&status, units), "0");
    assert_string_equal(status_describe_when(&status, when), "last heard of -");
    status.is_planned = true;
    status.planned = UINT64_MAX;
    status.done = UINT64_MAX;
    cleanup_free char *page = page_of(&status);
    assert_non_null(strstr(page, "[########################################] 100.0 %"));
    free(page);
    status.planned = 4; /* more than was planned: nodes went */
    status.done = 5;
    page = page_of(&status);
    assert_non_null(strstr(page, "[########################################] 125.0 %"));
    free(page);
    status.done = 1;
    page = page_of(&status);
    assert_non_null(
        strstr(page, "[##########..............................] 25.0 %\n            1 of 4 done"));
    assert_string_equal(status_describe_units(&status, units), "1 of 4");
    status.condition = RUN_IS_RUNNING;
    assert_string_equal(status_describe_when(&status, when), "in mea\tsure"); /* the caller shows it */
    status.seconds_left = 90;
    assert_string_equal(status_describe_when(&status, when), "90 s left");
}
