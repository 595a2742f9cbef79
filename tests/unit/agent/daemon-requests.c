/* What daemons are asked: clocks, and what the node is. */
#include "engine/foundation/clock.h"
#include "tests/unit/agent/engine.h"

TEST_EACH(set_up, tear_down)

TEST(clocks_and_places_are_told) {
    struct engine engine;
    struct protocol_frame frame;
    struct protocol_clock clock;
    engine_init(&engine);
    attach(&engine, (const char *const[]){"--directory", below("run"), NULL});
    int64_t wall = clock_wall_ns(), monotonic = clock_monotonic_ns();
    begin(&engine, PROTOCOL_CLOCK);
    protocol_put_u32(&writer, 7);
    end(&engine);
    expect(&engine, PROTOCOL_CLOCK_REPLY, &frame);
    assert_int_equal(protocol_get_message(&frame, &clock, &failure), 0);
    assert_int_equal(clock.request, 7);
    assert_true(clock.wall_ns >= wall && clock.wall_ns <= clock_wall_ns());
    assert_true(clock.monotonic_ns >= monotonic && clock.monotonic_ns <= clock_monotonic_ns());

    begin(&engine, PROTOCOL_INSPECT);
    protocol_put_u32(&writer, 8);
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
