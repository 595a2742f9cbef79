/*
 * Nodes that lie. Their agents are this file: a transport that answers as it is told, in frames of the
 * protocol, beside an honest one.
 */
#include "tests/test.h"
#include "tests/unit/remote/group-fixture.h"

#include "engine/agent/wire/mailbox.h"

#include <fcntl.h>

struct liar {
    struct transport base;
    struct event_source *turn; /* deferred */
    struct inbox inbox;
    struct outbox outbox;
    unsigned wants;
    bool told_open;
    /* What it answers. */
    const char *listing;
    size_t listing_length;
    const char *content; /* of every file */
    uint64_t repeat;     /* so often */
    const char *hash_of; /* it says that every file has the hash of these bytes */
};

static void answer_number(struct liar *liar, enum protocol_type type, uint32_t number) {
    struct protocol_writer writer;
    outbox_begin(&liar->outbox, &writer, type);
    protocol_put_number(&writer, number);
    assert_int_equal(outbox_end(&liar->outbox, &writer), 0);
}

static void answer_data(struct liar *liar, uint32_t number, const char *bytes, size_t length) {
    struct protocol_writer writer;
    outbox_begin(&liar->outbox, &writer, PROTOCOL_FILE_DATA);
    protocol_put_number(&writer, number);
    protocol_put_bytes(&writer, bytes, length);
    assert_int_equal(outbox_end(&liar->outbox, &writer), 0);
}

static void answer_hello(struct liar *liar) {
    struct protocol_writer writer;
    outbox_begin(&liar->outbox, &writer, PROTOCOL_HELLO);
    protocol_put_hello(&writer, &(struct protocol_hello){.version = PROTOCOL_VERSION,
                                                         .payload_limit = PROTOCOL_PAYLOAD_LIMIT,
                                                         .pid = 1,
                                                         .program = "liar",
                                                         .host = "liar"});
    assert_int_equal(outbox_end(&liar->outbox, &writer), 0);
}

static void answer_hash(struct liar *liar, uint32_t number) {
    char hex[HASH_HEX_SIZE];
    assert_int_equal(hash_bytes(liar->hash_of, strlen(liar->hash_of), hex), 0);
    struct protocol_hash hash = {.request = number, .size = strlen(liar->hash_of)};
    for (size_t i = 0; i < PROTOCOL_HASH_SIZE; i++) {
        unsigned byte;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
        hash.digest[i] = (unsigned char)byte;
    }
    struct protocol_writer writer;
    outbox_begin(&liar->outbox, &writer, PROTOCOL_HASH);
    protocol_put_hash(&writer, &hash);
    assert_int_equal(outbox_end(&liar->outbox, &writer), 0);
}

static void answer(struct liar *liar, const struct protocol_frame *frame) {
    struct protocol_path_request request;
    if (frame->type == PROTOCOL_HELLO) {
        answer_hello(liar);
        return;
    }
    if (frame->type == PROTOCOL_REFUSE || frame->type == PROTOCOL_ACK)
        return;
    assert_int_equal(protocol_get_path_request(frame, &request, NULL), 0);
    if (frame->type == PROTOCOL_HASH_FILE) {
        answer_hash(liar, request.request);
        return;
    }
    if (frame->type == PROTOCOL_LIST_TREE)
        answer_data(liar, request.request, liar->listing, liar->listing_length);
    else
        for (uint64_t i = 0; i < liar->repeat; i++)
            answer_data(liar, request.request, liar->content, strlen(liar->content));
    answer_number(liar, PROTOCOL_DONE, request.request);
}

static void on_turn(struct event_source *self, void *context) {
    (void)self;
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
    (void)failure;
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

/* A group of one honest node, n1, with a file "it/good", and the liar. */
static struct liar *open_with_liar(struct group_fixture *fixture, const char *listing, size_t length) {
    group_prepare(fixture, NULL);
    group_add(fixture, 0, agent_program());
    struct liar *liar = calloc(1, sizeof *liar);
    assert_non_null(liar);
    liar->base.operations = &operations;
    liar->base.loop = fixture->loop;
    liar->base.node = strdup("liar");
    liar->turn = event_loop_add_deferred(fixture->loop, on_turn, liar);
    inbox_init(&liar->inbox);
    outbox_init(&liar->outbox, &liar->inbox, 64 << 20);
    liar->listing = listing;
    liar->listing_length = length;
    liar->content = "content";
    liar->hash_of = "content";
    liar->repeat = 1;
    assert_done(fixture, node_group_add(fixture->group, &liar->base, NULL, &fixture->failure));
    assert_done(fixture, node_group_connect(fixture->group, &fixture->failure));
    assert_int_equal(file_make_folders(group_path(fixture, "n1/it"), NULL), 0);
    write_whole(group_path(fixture, "n1/it/good"), "good", 4);
    return liar;
}

static int get_it(struct group_fixture *fixture, struct failure *ret) {
    struct failure *failures = NULL;
    assert_done(fixture, node_group_get(fixture->group, "it", group_path(fixture, "got"), &failures,
                                        &fixture->failure));
    if (failures[0].code < 0)
        print_error("%s\n", failures[0].text);
    assert_int_equal(failures[0].code, 0);
    assert_true(file_exists(group_path(fixture, "got/n1/it/good")));
    *ret = failures[1];
    free(failures);
    return ret->code;
}

#define LISTING(text) (text), sizeof(text) - 1

TEST(the_liar_can_tell_the_truth) {
    struct group_fixture fixture;
    struct failure failure;
    open_with_liar(&fixture, LISTING("d 755 0\0sub\0f 644 7\0sub/file\0l 777 3\0sub/link\0"));
    assert_int_equal(get_it(&fixture, &failure), 0);
    assert_true(file_exists(group_path(&fixture, "got/liar/it/sub/file")));
    assert_false(file_exists(group_path(&fixture, "got/liar/it/sub/link")));
    group_close(&fixture);
}

TEST(paths_that_lead_out) {
    static const struct {
        const char *bytes;
        size_t length;
    } listings[] = {
        {LISTING("f 644 7\0../out\0")},
        {LISTING("f 644 7\0a/../../../out\0")},
        {LISTING("f 644 7\0/tmp/assay-hostile-out\0")},
        {LISTING("d 755 0\0..\0f 644 7\0../out\0")},
        {LISTING("d 755 0\0a\0f 644 7\0a/.\0")},
        {LISTING("f 644 7\0a//out\0")},
        {LISTING("f 644 7\0\0f 644 7\0a\0")},
        {LISTING("f 644 7\0a\0f 644 7\0a\0")},
        {LISTING("d 755 0\0\0")},
        {LISTING("f 644 7\0no end")},
        {LISTING("x 644 7\0a\0")},
        {LISTING("f 999 7\0a\0")},
        {LISTING("f 644 99999999999999999999999\0a\0")},
        {LISTING("\0\0\0\0")},
    };
    for (size_t i = 0; i < sizeof listings / sizeof *listings; i++) {
        struct group_fixture fixture;
        struct failure failure;
        open_with_liar(&fixture, listings[i].bytes, listings[i].length);
        if (get_it(&fixture, &failure) == 0)
            fail_msg("listing %zu was taken", i);
        assert_false(file_exists(group_path(&fixture, "out")));
        assert_false(file_exists(group_path(&fixture, "got/out")));
        assert_false(file_exists("/tmp/assay-hostile-out"));
        group_close(&fixture);
    }
}

/* A file in the way of a folder of the same listing. */
TEST(a_file_that_is_a_folder) {
    struct group_fixture fixture;
    struct failure failure;
    open_with_liar(&fixture, LISTING("f 644 7\0a\0f 644 7\0a/b\0"));
    assert_true(get_it(&fixture, &failure) < 0);
    group_close(&fixture);
}

TEST(a_hash_that_does_not_fit) {
    struct group_fixture fixture;
    struct failure failure;
    struct liar *liar = open_with_liar(&fixture, LISTING("f 644 7\0\0"));
    liar->hash_of = "other";
    assert_int_equal(get_it(&fixture, &failure), -EBUSY);
    assert_false(file_exists(group_path(&fixture, "got/liar/it")));
    group_close(&fixture);
}

/* It says 7 bytes, and sends more, again and again. */
TEST(more_bytes_than_were_listed) {
    struct group_fixture fixture;
    struct failure failure;
    struct liar *liar = open_with_liar(&fixture, LISTING("f 644 7\0\0"));
    liar->repeat = 1000;
    assert_int_equal(get_it(&fixture, &failure), -EPROTO);
    assert_false(file_exists(group_path(&fixture, "got/liar/it")));
    group_close(&fixture);
}
