/* What daemons are asked: files, folders and clocks. */
#include "engine/foundation/clock.h"
#include "engine/foundation/text.h"
#include "tests/unit/agent/engine.h"

TEST_EACH(set_up, tear_down)

/* ---- requests that only daemons of today answer */

static void write_to(struct engine *engine, const char *path, const char *content) {
    begin(engine, PROTOCOL_WRITE_BEGIN);
    uint32_t number = engine->next++;
    protocol_put_path_request(&writer,
                              &(struct protocol_path_request){
                                  .request = number, .mode = 0640, .size = strlen(content), .path = path});
    end(engine);
    begin(engine, PROTOCOL_WRITE_DATA);
    protocol_put_number(&writer, number);
    protocol_put_bytes(&writer, content, strlen(content));
    end(engine);
    begin(engine, PROTOCOL_WRITE_END);
    protocol_put_number(&writer, number);
    end(engine);
}

static void check_content(const char *path, const char *content) {
    struct text text;
    text_init(&text, 1000);
    assert_int_equal(file_read(path, &text, NULL), 0);
    assert_string_equal(text.bytes, content);
    text_clear(&text);
}

TEST(it_writes_where_it_may) {
    struct engine engine;
    struct protocol_frame frame;
    char sentence[512];
    engine_init(&engine);
    attach(&engine, (const char *const[]){"--directory", below("run"), NULL});
    write_to(&engine, below("file"), "x");
    snprintf(sentence, sizeof sentence, "'%s' is absolute; expected a path below the run directory",
             below("file"));
    expect_error(&engine, -EXDEV, sentence);
    leave(&engine);
    engine_clear(&engine);

    engine_init(&engine);
    attach(&engine, (const char *const[]){"--directory", below("run"), "--write-anywhere", NULL});
    request(&engine, PROTOCOL_MAKE_FOLDER, 0, below("a/b/c/"));
    expect(&engine, PROTOCOL_DONE, &frame);
    assert_true(file_is_folder(below("a/b/c")));
    write_to(&engine, below("a/b/file"), "one");
    expect(&engine, PROTOCOL_DONE, &frame);
    check_content(below("a/b/file"), "one");
    /* Links are followed, at the end too, and stay links. */
    assert_int_equal(symlink("b/../b/file", below("a/link")), 0);
    assert_int_equal(symlink(below("a"), below("d")), 0);
    assert_int_equal(symlink("loop", below("loop")), 0);
    write_to(&engine, below("d/link"), "two");
    expect(&engine, PROTOCOL_DONE, &frame);
    check_content(below("a/b/file"), "two");
    char target[64] = "";
    assert_int_equal(readlink(below("a/link"), target, sizeof target), 11);
    write_to(&engine, below("loop"), "x");
    snprintf(sentence, sizeof sentence, "cannot write '%s': Too many levels of symbolic links",
             below("loop"));
    expect_error(&engine, -ELOOP, sentence);
    /* What is no file is not replaced by one. */
    write_to(&engine, "/dev/null", "x");
    expect_error(&engine, -EINVAL, "cannot write '/dev/null': it is not a file");
    write_to(&engine, below("a"), "x");
    snprintf(sentence, sizeof sentence, "cannot write '%s': it is a folder", below("a"));
    expect_error(&engine, -EISDIR, sentence);
    write_to(&engine, "/", "x");
    expect_error(&engine, -EINVAL, "'/' has no name at its end");
    /* Removing follows no link, at the end either; nor does it take what has no name. */
    request(&engine, PROTOCOL_REMOVE_TREE, 0, below("d"));
    expect(&engine, PROTOCOL_DONE, &frame);
    assert_true(file_is_folder(below("a/b/c")));
    assert_false(file_exists(below("d")));
    request(&engine, PROTOCOL_REMOVE_TREE, 0, below("a/"));
    expect(&engine, PROTOCOL_DONE, &frame);
    assert_false(file_exists(below("a")));
    request(&engine, PROTOCOL_REMOVE_TREE, 0, "//");
    expect_error(&engine, -EINVAL, "'//' has no name at its end");
    request(&engine, PROTOCOL_REMOVE_TREE, 0, "/tmp/..");
    expect_error(&engine, -EINVAL, "'/tmp/..' has no name at its end");
    /* Relative paths mean the run directory, as ever. */
    write_to(&engine, "here", "three");
    expect(&engine, PROTOCOL_DONE, &frame);
    check_content(below("run/here"), "three");
    write_to(&engine, "../here", "four");
    expect_error(&engine, -EXDEV, "'../here' leaves the run directory");
    leave(&engine);
    engine_clear(&engine);
}

/* A folder like /tmp, in which another user has made links to what is ours. */
TEST(links_of_others_are_no_way) {
    static const struct {
        enum protocol_type type;
        const char *what, *path, *link;
    } ways[] = {
        {PROTOCOL_WRITE_BEGIN, "write", "all/file", "file"},
        {PROTOCOL_WRITE_BEGIN, "write", "all/folder/new", "folder"},
        {PROTOCOL_WRITE_BEGIN, "write", "all/own/../all/folder/secret", "folder"},
        {PROTOCOL_READ_FILE, "read", "all/file", "file"},
        {PROTOCOL_READ_FILE, "read", "all/folder/secret", "folder"},
        {PROTOCOL_HASH_FILE, "read", "all/file", "file"},
        {PROTOCOL_LIST_TREE, "read", "all/folder", "folder"},
        {PROTOCOL_MAKE_FOLDER, "make folder", "all/folder/new", "folder"},
        {PROTOCOL_REMOVE_TREE, "remove", "all/folder/secret", "folder"},
    };
    struct engine engine;
    struct protocol_frame frame;
    const uid_t other = 65534;
    char path[256], sentence[512];
    if (geteuid() != 0)
        skip(); /* nobody else can be made to own a link */
    engine_init(&engine);
    attach(&engine, (const char *const[]){"--directory", below("run"), "--write-anywhere", NULL});
    request(&engine, PROTOCOL_MAKE_FOLDER, 0, below("ours"));
    expect(&engine, PROTOCOL_DONE, &frame);
    write_to(&engine, below("ours/secret"), "ours");
    expect(&engine, PROTOCOL_DONE, &frame);
    assert_int_equal(mkdir(below("all"), 0777) | chmod(below("all"), 01777), 0);
    assert_int_equal(symlink("../ours/secret", below("all/file")), 0);
    assert_int_equal(symlink(below("ours"), below("all/folder")), 0);
    assert_int_equal(symlink(below("ours"), below("all/own")), 0);
    assert_int_equal(lchown(below("all/file"), other, other) | lchown(below("all/folder"), other, other), 0);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        snprintf(path, sizeof path, "%s", below(ways[i].path));
        if (ways[i].type == PROTOCOL_WRITE_BEGIN)
            write_to(&engine, path, "theirs");
        else
            request(&engine, ways[i].type, 1000, path);
        snprintf(sentence, sizeof sentence,
                 "cannot %s '%s': the link '%s' on the way was made by another user in a folder where "
                 "everybody may make one, and is not followed",
                 ways[i].what, path, ways[i].link);
        expect_error(&engine, -EXDEV, sentence);
    }
    check_content(below("ours/secret"), "ours");
    assert_false(file_exists(below("ours/new")));
    /* The link itself is the other's loss; one of our own is a way, and so is one of the folder's owner. */
    request(&engine, PROTOCOL_REMOVE_TREE, 0, below("all/file"));
    expect(&engine, PROTOCOL_DONE, &frame);
    write_to(&engine, below("all/own/secret"), "new");
    expect(&engine, PROTOCOL_DONE, &frame);
    check_content(below("ours/secret"), "new");
    assert_int_equal(chown(below("all"), other, other), 0);
    write_to(&engine, below("all/folder/secret"), "newer");
    expect(&engine, PROTOCOL_DONE, &frame);
    check_content(below("ours/secret"), "newer");
    leave(&engine);
    engine_clear(&engine);
}

static void expect_hash(struct engine *engine, uint64_t size, const char *hex) {
    struct protocol_frame frame;
    struct protocol_hash hash;
    char got[2 * PROTOCOL_HASH_SIZE + 1];
    expect(engine, PROTOCOL_HASH, &frame);
    assert_int_equal(protocol_get_hash(&frame, &hash, &failure), 0);
    assert_int_equal(hash.size, size);
    for (int i = 0; i < PROTOCOL_HASH_SIZE; i++)
        snprintf(got + 2 * i, 3, "%02x", hash.digest[i]);
    assert_string_equal(got, hex);
}

TEST(files_are_hashed) {
    struct engine engine;
    struct protocol_frame frame;
    engine_init(&engine);
    attach(&engine, (const char *const[]){"--directory", below("run"), NULL});
    run_shell(&engine, "printf abc >abc; head -c 100000000 /dev/zero >zeros; : >empty; mkfifo fifo");
    expect(&engine, PROTOCOL_STARTED, &frame);
    expect(&engine, PROTOCOL_EXITED, &frame);
    request(&engine, PROTOCOL_HASH_FILE, 0, "abc");
    expect_hash(&engine, 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    request(&engine, PROTOCOL_HASH_FILE, 0, below("run/empty"));
    expect_hash(&engine, 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    /* A large one holds nobody up: commands come and go meanwhile. */
    request(&engine, PROTOCOL_HASH_FILE, 0, "zeros");
    run_shell(&engine, "exit 0");
    expect(&engine, PROTOCOL_STARTED, &frame);
    expect(&engine, PROTOCOL_EXITED, &frame);
    /* head -c 100000000 /dev/zero | sha256sum */
    expect_hash(&engine, 100000000, "a993f8c574e0fea8c1cdcbcd9408d9e2e107ee6e4d120edcfa11decd53fa0cae");
    request(&engine, PROTOCOL_HASH_FILE, 0, "none");
    expect_error(&engine, -ENOENT, "cannot open 'none': No such file or directory");
    request(&engine, PROTOCOL_HASH_FILE, 0, "fifo");
    expect_error(&engine, -EINVAL, "cannot read 'fifo': it is not a file");
    /* One that is under way when the agent leaves is forgotten. */
    request(&engine, PROTOCOL_HASH_FILE, 0, "zeros");
    leave(&engine);
    engine_clear(&engine);
}

/* The whole listing as text, a line an entry. */
static void expect_tree(struct engine *engine, const char *expected) {
    struct protocol_frame frame;
    struct protocol_data data;
    struct text text;
    text_init(&text, 1 << 20);
    do
        assert_true(receive(engine, &frame));
    while (frame.type == PROTOCOL_ACK);
    for (; frame.type == PROTOCOL_FILE_DATA; assert_true(receive(engine, &frame))) {
        assert_int_equal(protocol_get_data(&frame, &data, &failure), 0);
        assert_int_equal(text_append(&text, data.bytes, data.length), 0);
    }
    assert_int_equal(frame.type, PROTOCOL_DONE);
    size_t nul = 0;
    for (size_t i = 0; i < text.length; i++)
        if (text.bytes[i] == '\0')
            text.bytes[i] = nul++ % 2 ? '\n' : ' ';
    assert_string_equal(text.bytes, expected);
    text_clear(&text);
}

TEST(trees_are_listed) {
    struct engine engine;
    struct protocol_frame frame;
    engine_init(&engine);
    attach(&engine, (const char *const[]){"--directory", below("run"), NULL});
    run_shell(&engine, "umask 022; mkdir t t/a t/a/x t/empty; printf 12345 >t/a/x/f; : >t/a-b; mkfifo t/p; "
                       "ln -s a t/l; ln -s /etc t/etc; chmod 4751 t/a-b; mkdir many; cd many; "
                       "i=0; while [ $i -lt 20000 ]; do : >a-file-of-the-name-$i; i=$((i+1)); done");
    expect(&engine, PROTOCOL_STARTED, &frame);
    expect(&engine, PROTOCOL_EXITED, &frame);
    request(&engine, PROTOCOL_LIST_TREE, 1 << 20, "t");
    expect_tree(&engine, "d 755 0 a\n"
                         "f 4751 0 a-b\n" /* '-' comes before '/' */
                         "d 755 0 a/x\n"
                         "f 644 5 a/x/f\n"
                         "d 755 0 empty\n"
                         "l 777 0 etc\n"
                         "l 777 0 l\n"
                         "o 644 0 p\n");
    request(&engine, PROTOCOL_LIST_TREE, 1 << 20, "t/empty");
    expect_tree(&engine, "");
    request(&engine, PROTOCOL_LIST_TREE, 1 << 20, below("run/t/a/x/f"));
    expect_tree(&engine, "f 644 5 \n");
    request(&engine, PROTOCOL_LIST_TREE, 1 << 20, "t/l");
    expect_tree(&engine, "d 755 0 x\nf 644 5 x/f\n");
    request(&engine, PROTOCOL_LIST_TREE, 10, "t");
    expect_error(&engine, -EFBIG, "the list of what is in 't' has more than 10 bytes");
    request(&engine, PROTOCOL_LIST_TREE, 1 << 20, "none");
    expect_error(&engine, -ENOENT, "cannot open 'none': No such file or directory");
    request(&engine, PROTOCOL_LIST_TREE, 1 << 20, "../run");
    expect_error(&engine, -EXDEV, "'../run' leaves the run directory");
    /* A large one comes in several frames, one listing after the other. */
    request(&engine, PROTOCOL_LIST_TREE, 1 << 24, "many");
    request(&engine, PROTOCOL_LIST_TREE, 1 << 24, "t/a");
    size_t bytes = 0, frames = 0;
    for (expect(&engine, PROTOCOL_FILE_DATA, &frame); frame.type == PROTOCOL_FILE_DATA; frames++) {
        bytes += frame.length - 4;
        assert_true(frame.length <= PROTOCOL_CHUNK + 4);
        assert_true(receive(&engine, &frame));
    }
    assert_int_equal(frame.type, PROTOCOL_DONE);
    assert_true(frames > 2);
    /* "f 644 0", NUL, the name of 19 letters and 1 to 5 digits, NUL */
    assert_int_equal(bytes, 20000 * (8 + 19 + 1) + 10 * 1 + 90 * 2 + 900 * 3 + 9000 * 4 + 10000 * 5);
    expect_tree(&engine, "d 755 0 x\nf 644 5 x/f\n");
    leave(&engine);
    engine_clear(&engine);
}

TEST(clocks_and_places_are_told) {
    struct engine engine;
    struct protocol_frame frame;
    struct protocol_clock clock;
    engine_init(&engine);
    attach(&engine, (const char *const[]){"--directory", below("run"), NULL});
    int64_t wall = clock_wall_ns(), monotonic = clock_monotonic_ns();
    begin(&engine, PROTOCOL_CLOCK);
    protocol_put_number(&writer, 7);
    end(&engine);
    expect(&engine, PROTOCOL_CLOCK_REPLY, &frame);
    assert_int_equal(protocol_get_clock(&frame, &clock, &failure), 0);
    assert_int_equal(clock.request, 7);
    assert_true(clock.wall_ns >= wall && clock.wall_ns <= clock_wall_ns());
    assert_true(clock.monotonic_ns >= monotonic && clock.monotonic_ns <= clock_monotonic_ns());

    begin(&engine, PROTOCOL_INSPECT);
    protocol_put_number(&writer, 8);
    end(&engine);
    expect(&engine, PROTOCOL_FACTS, &frame);
    struct protocol_reader reader;
    protocol_read(&reader, frame.payload, frame.length);
    protocol_get_u32(&reader);
    unsigned places = 0, spaces = 0;
    while (!reader.wrong && reader.at < reader.end) {
        unsigned kind = protocol_get_u16(&reader);
        size_t length = protocol_get_u32(&reader);
        const char *bytes = protocol_get_bytes(&reader, length);
        if (kind == PROTOCOL_FACT_DIRECTORY) {
            assert_int_equal(length, strlen(below("run")));
            assert_memory_equal(bytes, below("run"), length);
            places++;
        } else if (kind == PROTOCOL_FACT_SPACE) {
            assert_int_equal(length, 12);
            struct protocol_reader body;
            protocol_read(&body, bytes, length);
            assert_int_equal(protocol_get_u32(&body) & ~3u, 0);
            assert_true(protocol_get_u64(&body) > 0);
            spaces++;
        }
    }
    assert_null(reader.wrong);
    assert_true(places == 1 && spaces == 1);
    leave(&engine);
    engine_clear(&engine);
}
