/*
 * Nodes that lie. Their agents are this file: a transport that answers as it is told, in frames of the
 * protocol, beside an honest one.
 */
#include "tests/test.h"
#include "tests/unit/remote/group-fixture.h"

#include "engine/agent/files/tar.h"
#include "engine/agent/wire/mailbox.h"
#include "engine/foundation/hash.h"

#include "tests/simulation/virtual-clock.h"

#include <sys/mman.h>

enum silence {
    ANSWERS,
    SAYS_NOTHING, /* after its greeting */
    STANDS_STILL, /* its tools start, and end when they are killed */
    CANNOT_KILL,  /* its tools start, and never end */
};

struct liar {
    struct transport base;
    struct event_source *turn; /* deferred */
    struct inbox inbox;
    struct outbox outbox;
    unsigned wants;
    bool told_open;
    const char *archive; /* what its tools print */
    size_t length;
    unsigned exit_flags; /* how they end */
    enum silence silence;
    uint32_t command; /* that stands still */
};

static void answer_hello(struct liar *liar) {
    struct protocol_writer writer;
    outbox_begin(&liar->outbox, &writer, PROTOCOL_HELLO);
    protocol_put_message(&writer, &(struct protocol_hello){.version = PROTOCOL_VERSION,
                                                           .payload_limit = PROTOCOL_PAYLOAD_LIMIT,
                                                           .pid = 1,
                                                           .program = "liar",
                                                           .host = "liar"});
    assert_int_equal(outbox_end(&liar->outbox, &writer), 0);
}

static void answer_run(struct liar *liar, const struct protocol_frame *frame) {
    struct protocol_writer writer;
    struct protocol_run run;
    assert_int_equal(protocol_get_message(frame, &run, NULL), 0);
    assert_non_null(strstr(run.arguments[1], "pack")); /* or --unpack */
    outbox_begin(&liar->outbox, &writer, PROTOCOL_STARTED);
    protocol_put_message(&writer, &(struct protocol_started){.command = run.command, .pid = 2});
    assert_int_equal(outbox_end(&liar->outbox, &writer), 0);
    liar->command = run.command;
    if (liar->silence >= STANDS_STILL) {
        protocol_run_clear(&run);
        return;
    }
    if (liar->length > 0) {
        outbox_begin(&liar->outbox, &writer, PROTOCOL_OUTPUT);
        protocol_put_message(&writer, &(struct protocol_data){run.command, 1, liar->archive, liar->length});
        assert_int_equal(outbox_end(&liar->outbox, &writer), 0);
    }
    outbox_begin(&liar->outbox, &writer, PROTOCOL_EXITED);
    protocol_put_message(&writer,
                         &(struct protocol_exited){.command = run.command, .flags = liar->exit_flags});
    assert_int_equal(outbox_end(&liar->outbox, &writer), 0);
    protocol_run_clear(&run);
}

static void answer_kill(struct liar *liar) {
    struct protocol_writer writer;
    outbox_begin(&liar->outbox, &writer, PROTOCOL_EXITED);
    protocol_put_message(&writer, &(struct protocol_exited){.command = liar->command,
                                                            .code = SIGKILL,
                                                            .flags = PROTOCOL_EXIT_SIGNALLED});
    assert_int_equal(outbox_end(&liar->outbox, &writer), 0);
}

static void answer(struct liar *liar, const struct protocol_frame *frame) {
    if (frame->type == PROTOCOL_HELLO)
        answer_hello(liar);
    else if (frame->type == PROTOCOL_RUN && liar->silence != SAYS_NOTHING)
        answer_run(liar, frame);
    else if (frame->type == PROTOCOL_KILL && liar->silence == STANDS_STILL)
        answer_kill(liar);
}

static void on_turn(struct event_source *self, void *context) {
    struct liar *liar = context;
    size_t length;
    if (!liar->told_open) {
        liar->told_open = true;
        transport_set_state(&liar->base, TRANSPORT_OPEN, NULL);
    }
    unsigned ready =
        (liar->wants & EVENT_WRITE) | (outbox_unsent(&liar->outbox, &length) ? liar->wants & EVENT_READ : 0u);
    if (ready && liar->base.state == TRANSPORT_OPEN)
        liar->base.listener.on_ready(&liar->base, ready, liar->base.listener.context);
}

static int liar_start(struct transport *transport, struct failure *failure) {
    event_source_defer(((struct liar *)transport)->turn);
    return 0;
}

static ssize_t liar_read(struct transport *transport, void *bytes, size_t size) {
    struct liar *liar = (struct liar *)transport;
    size_t length;
    const char *unsent = outbox_unsent(&liar->outbox, &length);
    if (!unsent)
        return -EAGAIN;
    length = length < size ? length : size;
    memcpy(bytes, unsent, length);
    outbox_sent(&liar->outbox, length);
    event_source_defer(liar->turn);
    return (ssize_t)length;
}

static ssize_t liar_write(struct transport *transport, const void *bytes, size_t length) {
    struct liar *liar = (struct liar *)transport;
    for (size_t at = 0; at < length;) {
        char *space;
        size_t size;
        assert_int_equal(inbox_reserve(&liar->inbox, &space, &size), 0);
        size = size < length - at ? size : length - at;
        memcpy(space, (const char *)bytes + at, size);
        inbox_fill(&liar->inbox, size);
        at += size;
        struct protocol_frame frame;
        while (inbox_next(&liar->inbox, &frame, NULL) > 0) {
            assert_int_equal(outbox_acknowledge(&liar->outbox, frame.acknowledged, NULL), 0);
            answer(liar, &frame);
        }
    }
    event_source_defer(liar->turn);
    return (ssize_t)length;
}

static int liar_want(struct transport *transport, unsigned events) {
    struct liar *liar = (struct liar *)transport;
    liar->wants = events;
    event_source_defer(liar->turn);
    return 0;
}

static void liar_close(struct transport *transport) {
    transport_set_state(transport, TRANSPORT_CLOSED, NULL);
}

static void liar_free(struct transport *transport) {
    struct liar *liar = (struct liar *)transport;
    event_source_remove(liar->turn);
    inbox_clear(&liar->inbox);
    outbox_clear(&liar->outbox);
    free(liar->base.node);
    free(liar);
}

static const struct transport_operations operations = {.name = "liar",
                                                       .start = liar_start,
                                                       .read = liar_read,
                                                       .write = liar_write,
                                                       .want = liar_want,
                                                       .close = liar_close,
                                                       .free = liar_free};

static struct liar *add_liar(void) {
    struct liar *liar = calloc(1, sizeof *liar);
    assert_non_null(liar);
    liar->base.operations = &operations;
    liar->base.loop = fixture.loop;
    liar->base.node = strdup("liar");
    liar->turn = event_loop_add_deferred(fixture.loop, on_turn, liar);
    inbox_init(&liar->inbox);
    outbox_init(&liar->outbox, &liar->inbox, 64 << 20);
    assert_done(&fixture, node_group_add(fixture.group, &liar->base, NULL, &fixture.failure));
    return liar;
}

/* A group of one honest node, n1, with a file "it/good", and the liar. */
static struct liar *open_with_liar(const struct text *archive) {
    group_prepare(NULL);
    group_add(0, test_agent());
    struct liar *liar = add_liar();
    liar->archive = archive->bytes;
    liar->length = archive->length;
    assert_done(&fixture, node_group_connect(fixture.group, &fixture.failure));
    assert_int_equal(file_make_folders(group_path("n1/it"), NULL), 0);
    write_whole(group_path("n1/it/good"), "good", 4);
    return liar;
}

static int get_it(struct failure *ret) {
    assert_done(&fixture,
                node_group_get(fixture.group, "it", group_path("got"), &failures, &fixture.failure));
    if (failures[0].code < 0)
        print_error("%s\n", failures[0].text);
    assert_int_equal(failures[0].code, 0);
    assert_true(file_exists(group_path("got/n1/it/good")));
    *ret = failures[1];
    return ret->code;
}

/* ---- what it sends */

static struct text sent;
static struct tar_writer tar;

static void tar_open(void) {
    int file = memfd_create("tar", MFD_CLOEXEC);
    assert_true(file >= 0);
    tar_begin(&tar, file, UINT64_MAX);
}

static void tar_add(char type, const char *path, const char *content, const char *claim) {
    struct tar_entry entry = {.type = (enum tar_type)type, .mode = 0644, .target = "/etc/passwd"};
    snprintf(entry.path, sizeof entry.path, "%s", path);
    entry.size = type == TAR_FILE ? strlen(content) : 0;
    assert_int_equal(hash_bytes(claim, strlen(claim), entry.sha256), 0);
    tar_put_entry(&tar, &entry);
    tar_put_bytes(&tar, content, entry.size);
    tar_put_padding(&tar, entry.size);
}

static const struct text *tar_take(void) {
    static char path[64];
    assert_int_equal(tar_end(&tar), 0);
    text_clear(&sent);
    text_init(&sent, 1 << 20);
    snprintf(path, sizeof path, "/proc/self/fd/%d", tar.output);
    assert_int_equal(file_read(path, &sent, NULL), 0);
    close(tar.output);
    return &sent;
}

static int get_what_it_sends(void) {
    struct failure failure;
    open_with_liar(tar_take());
    int r = get_it(&failure);
    if (r < 0)
        print_message("%s\n", failure.text);
    return r;
}

TEST(the_liar_can_tell_the_truth) {
    tar_open();
    tar_add(TAR_FOLDER, "it", "", "");
    tar_add(TAR_FOLDER, "it/sub", "", "");
    tar_add(TAR_FILE, "it/sub/file", "content", "content");
    tar_add(TAR_LINK, "it/sub/link", "", "");
    assert_int_equal(get_what_it_sends(), 0);
    assert_true(file_exists(group_path("got/liar/it/sub/file")));
    assert_false(file_exists(group_path("got/liar/it/sub/link")));
}

TEST(paths_that_lead_out) {
    static const char *const paths[] = {
        "../out", "a/../../../out", "/tmp/assay-hostile-out", "..", "a/.", "a//out", ".", "it/../../out"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        for (int folder = 0; folder < 2; folder++) {
            tar_open();
            tar_add(folder ? TAR_FOLDER : TAR_FILE, paths[i], "content", "content");
            if (get_what_it_sends() == 0)
                fail_msg("'%s' was taken", paths[i]);
            assert_false(file_exists(group_path("out")));
            assert_false(file_exists(group_path("got/out")));
            assert_false(file_exists("/tmp/assay-hostile-out"));
        }
}

/* A link of the archive is not made, so that nothing is written through it. */
TEST(files_behind_links) {
    tar_open();
    tar_add(TAR_LINK, "it", "", "");
    tar_add(TAR_FOLDER, "it", "", "");
    tar_add(TAR_FILE, "it/passwd", "content", "content");
    tar_add('1', "hard", "", "");
    assert_int_equal(get_what_it_sends(), 0);
    assert_true(file_exists(group_path("got/liar/it/passwd")));
    assert_false(file_exists(group_path("got/liar/hard")));
}

TEST(a_hash_that_does_not_fit) {
    tar_open();
    tar_add(TAR_FOLDER, "it", "", "");
    tar_add(TAR_FILE, "it/bad", "content", "other");
    tar_add(TAR_FILE, "it/good", "content", "content");
    assert_int_equal(get_what_it_sends(), -EBUSY);
    assert_false(file_exists(group_path("got/liar/it/bad")));
    assert_true(file_exists(group_path("got/liar/it/good")));
}

/* Nothing, something else, more than was asked for, or names that a terminal would take for commands. */
TEST(what_was_not_asked_for) {
    static const char *const paths[][2] = {
        {NULL, NULL}, {"y", NULL},    {"y/a", NULL},    {"it/a", NULL},      {"it", "y"},
        {"it", "it"}, {"item", NULL}, {"it", "item/a"}, {"it", "it/\33[1m"}, {"it", "it/a\nb"}};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        tar_open();
        for (size_t k = 0; k < 2 && paths[i][k]; k++)
            tar_add(paths[i][1] && k == 0 ? TAR_FOLDER : TAR_FILE, paths[i][k], "content", "content");
        if (get_what_it_sends() != -EBADMSG)
            fail_msg("'%s' was taken", paths[i][0] ? paths[i][0] : "");
        assert_false(file_exists(group_path("got/liar/y")));
    }
    struct failure failure;
    text_clear(&sent);
    text_init(&sent, 1);
    open_with_liar(&sent); /* not even an archive */
    assert_int_equal(get_it(&failure), -EBADMSG);
    assert_non_null(strstr(failure.text, "the node sent nothing, expected 'it'"));
}

/* It ends early, wherever that is; it is no archive; it says that it is larger than all that comes. */
TEST(archives_that_are_none) {
    static const char sparse[] = "30 GNU.sparse.major=1\n";
    for (size_t size = 1; size < 2000; size += 333) {
        struct failure failure;
        tar_open();
        tar_add(TAR_FILE, "it", "content", "content");
        struct text cut = *tar_take();
        cut.length = size;
        open_with_liar(&cut);
        assert_true(get_it(&failure) < 0);
        assert_false(file_exists(group_path("got/liar/it")));
    }
    struct failure failure;
    tar_open();
    struct tar_entry entry = {.type = TAR_FILE, .path = "it", .size = UINT64_C(1) << 40};
    tar_put_entry(&tar, &entry);
    tar_put_bytes(&tar, sparse, sizeof sparse);
    assert_true(get_what_it_sends() < 0);
    text_clear(&sent);
    text_init(&sent, 1 << 20);
    for (int i = 0; i < 100; i++)
        assert_int_equal(text_append_string(&sent, "this is no archive\n"), 0);
    open_with_liar(&sent);
    assert_true(get_it(&failure) < 0);
    text_clear(&sent);
}

static struct text taken;

static void take_of_liar(size_t node, size_t path, const char *bytes, size_t length, void *context) {
    if (node == 1)
        assert_int_equal(text_printf(&taken, "%zu:%.*s ", path, (int)length, bytes), 0);
}

/* ---- what never ends: the limits are the engine's own, in virtual time */

static const struct failure *ask_silent(enum silence silence, const char *remote) {
    static const char *const paths[] = {"/a", NULL};
    static struct failure of_liar;
    struct node_facts **facts = NULL;
    clock_use(&virtual_clock);
    group_prepare(NULL);
    add_liar()->silence = silence;
    assert_done(&fixture, node_group_connect(fixture.group, &fixture.failure));
    free(take_pointer(failures));
    int64_t begun_ns = virtual_now_ns;
    if (!remote)
        assert_done(&fixture, node_group_inspect(fixture.group, &facts, &failures, &fixture.failure));
    else if (!*remote)
        assert_done(&fixture, node_group_read(fixture.group, paths, 100, take_of_liar, NULL, &failures,
                                              &fixture.failure));
    else
        assert_done(&fixture,
                    node_group_get(fixture.group, remote, group_path("got"), &failures, &fixture.failure));
    free(facts);
    assert_true(virtual_now_ns - begun_ns <= 660 * EVENT_SECOND);
    clock_use(NULL);
    of_liar = failures[0];
    print_message("%s\n", of_liar.text);
    return &of_liar;
}

TEST(agents_that_only_greet) {
    assert_non_null(strstr(ask_silent(SAYS_NOTHING, NULL)->text,
                           "did not report the facts of its node within 2 min 00 s"));
    assert_false(node_group_is_there(fixture.group, 0));
    ask_silent(SAYS_NOTHING, "");
    assert_false(node_group_is_there(fixture.group, 0));
}

TEST(tools_that_stand_still) {
    assert_non_null(
        strstr(ask_silent(STANDS_STILL, "")->text, "made no progress for 2 min 00 s and was killed"));
    assert_true(node_group_is_there(fixture.group, 0));
    assert_non_null(strstr(ask_silent(STANDS_STILL, "it")->text, "made no progress for 10 min 00 s"));
    assert_true(node_group_is_there(fixture.group, 0));
    assert_non_null(strstr(ask_silent(CANNOT_KILL, "")->text, "did not end a command that was killed"));
    assert_false(node_group_is_there(fixture.group, 0));
}

TEST(clocks_that_are_never_told) {
    struct agent_clock *clocks = NULL;
    clock_use(&virtual_clock);
    group_prepare(NULL);
    add_liar()->silence = SAYS_NOTHING;
    assert_done(&fixture, node_group_connect(fixture.group, &fixture.failure));
    assert_done(&fixture, node_group_measure_clocks(fixture.group, &clocks, &fixture.failure));
    clock_use(NULL);
    assert_int_equal(clocks[0].exchanges, 0);
    assert_false(node_group_is_there(fixture.group, 0));
    free(clocks);
}

/* ---- files that are read into memory */

static const struct failure *read_of_liar(void) {
    static const char *const paths[] = {"/a/one", "/b/two", "/c/three", "/d/four", "/e/five", NULL};
    text_clear(&taken);
    text_init(&taken, 4096);
    free(take_pointer(failures));
    assert_done(&fixture,
                node_group_read(fixture.group, paths, 100, take_of_liar, NULL, &failures, &fixture.failure));
    return &failures[1];
}

/* One file that is not as it should be keeps no other from coming, and none comes twice or for another. */
TEST(files_of_which_some_are_wrong) {
    char large[102] = "";
    memset(large, 'x', sizeof large - 1);
    tar_open();
    tar_add(TAR_FILE, "one", "1", "another");
    tar_add(TAR_FILE, "unasked", "0", "0");
    tar_add(TAR_FILE, "two", "2", "2");
    tar_add(TAR_FILE, "two", "again", "again");
    tar_add(TAR_FOLDER, "three", "", "");
    tar_add(TAR_FILE, "four", large, large);
    tar_add(TAR_FILE, "five", "5", "5");
    tar_add(TAR_FILE, "one", "1", "1");
    open_with_liar(tar_take());
    const struct failure *why = read_of_liar();
    assert_string_equal(taken.bytes, "1:2 4:5 ");
    assert_int_equal(why->code, -EBUSY);
    assert_non_null(strstr(why->text, "'/a/one' changed while it was read"));
    text_clear(&taken);
}

TEST(files_that_are_not_sent) {
    tar_open();
    tar_add(TAR_FILE, "five", "5", "5");
    open_with_liar(tar_take());
    assert_non_null(strstr(read_of_liar()->text, "sent 1 of the 5 files"));
    assert_string_equal(taken.bytes, "4:5 ");
    text_clear(&taken);
}

TEST(output_that_is_said_to_be_cut) {
    tar_open();
    tar_add(TAR_FILE, "one", "1", "1");
    struct liar *liar = open_with_liar(tar_take());
    liar->exit_flags = PROTOCOL_EXIT_OUTPUT_CUT;
    assert_int_equal(read_of_liar()->code, -EFBIG);
    assert_string_equal(taken.bytes, "");
    text_clear(&taken);
    struct failure failure = {0};
    assert_int_equal(
        agent_link_write_file_and_wait(node_group_link(fixture.group, 1), "folder/x", "", 0, 0600, &failure),
        -EFBIG);
    assert_non_null(strstr(failure.text, "'folder' is larger than"));
}
