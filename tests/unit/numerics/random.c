/* Random streams: the bits of the published generator, the same draws on every machine, and the moments asked
 * for. */
#include "engine/numerics/random.h"

#include "tests/test.h"

enum { DRAWS = 200000 };

TEST(published_bits) {
    struct random_stream stream = {{1, 2, 3, 4}};
    const uint64_t expected[] = {11520, 0, 1509978240, UINT64_C(1215971899390074240)};
    for (size_t i = 0; i < 4; i++)
        assert_true(random_stream_bits(&stream) == expected[i]);
}

TEST(streams_differ) {
    struct random_stream streams[5];
    random_stream_init(&streams[0], 1, "noise", 0);
    random_stream_init(&streams[1], 1, "noise", 1);
    random_stream_init(&streams[2], 1, "nois", 0);
    random_stream_init(&streams[3], 2, "noise", 0);
    random_stream_init(&streams[4], 1, "noise", 0);
    uint64_t bits[5];
    for (size_t i = 0; i < 5; i++)
        bits[i] = random_stream_bits(&streams[i]);
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(bits[i] != bits[j]);
    assert_true(bits[4] == bits[0]);
}

/* A hash of many draws: machine and C library make no difference. */
TEST(same_on_every_machine) {
    struct random_stream stream;
    uint64_t hash = 0, bits;
    random_stream_init(&stream, 42, "machines", 7);
    for (size_t i = 0; i < 20000; i++) {
        double draws[] = {random_stream_uniform(&stream), random_stream_normal(&stream), 0};
        double variance = random_log(1 + 1.0 / 3 * (1.0 / 3)); /* a log-normal of mean 3 and deviation 1 */
        draws[2] = 3 * random_exp(sqrt(variance) * random_stream_normal(&stream) - variance / 2);
        for (size_t d = 0; d < 3; d++) {
            memcpy(&bits, &draws[d], sizeof bits);
            hash = (hash ^ bits) * UINT64_C(0x100000001b3);
        }
    }
    assert_true(hash == UINT64_C(0x7de1ce5b8d4e7480));
}

TEST(moments) {
    struct random_stream stream;
    double normal[3] = {0}, uniform = 0;
    size_t below[7] = {0};
    random_stream_init(&stream, 1, "moments", 0);
    for (size_t i = 0; i < DRAWS; i++) {
        double z = random_stream_normal(&stream);
        normal[0] += z;
        normal[1] += z * z;
        normal[2] += z * z * z * z;
        double u = random_stream_uniform(&stream);
        assert_true(u > 0 && u < 1);
        uniform += u;
        below[random_stream_below(&stream, 7)]++;
    }
    assert_true(fabs(normal[0] / DRAWS) < 0.01 && fabs(normal[1] / DRAWS - 1) < 0.02 &&
                fabs(normal[2] / DRAWS - 3) < 0.1);
    assert_close(uniform / DRAWS, 0.5, 0.01, "the mean of uniform numbers");
    for (size_t i = 0; i < 7; i++)
        assert_close((double)below[i], DRAWS / 7.0, 0.03, "one of seven");
}
