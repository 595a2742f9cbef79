/* The generator against vectors computed apart from it, and the shuffle against chance. */
#include "engine/design/random.h"
#include "tests/test.h"

/* The vectors, of xoshiro256** with splitmix64 of the seed as its state, were computed with whole numbers of
 * any size, from the papers; those of stream 1 with the 256 x 256 matrix of one step over GF(2), squared 128
 * times: the jump polynomial had no part in them. */

TEST(streams) {
    static const struct {
        uint64_t seed;
        enum random_stream stream;
        uint64_t expected[3];
    } cases[] = {
        {0,
         RANDOM_STREAM_TABLE,
         {UINT64_C(11091344671253066420), UINT64_C(13793997310169335082), UINT64_C(1900383378846508768)}},
        {0,
         RANDOM_STREAM_ORDER,
         {UINT64_C(3990776330815198764), UINT64_C(6323160657905912999), UINT64_C(13566710497314530181)}},
        {42,
         RANDOM_STREAM_TABLE,
         {UINT64_C(1546998764402558742), UINT64_C(6990951692964543102), UINT64_C(12544586762248559009)}},
        {42,
         RANDOM_STREAM_ORDER,
         {UINT64_C(5766981335298035530), UINT64_C(13414075677763163907), UINT64_C(6818771422820058410)}},
        {42, /* a stream that has no name yet: two jumps */
         (enum random_stream)2,
         {UINT64_C(9689321145619467905), UINT64_C(2258870915674454393), UINT64_C(13756082229112209005)}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct random_source source;
        random_start(&source, cases[i].seed, cases[i].stream);
        for (size_t j = 0; j < 3; j++)
            assert_true(random_bits(&source) == cases[i].expected[j]);
    }
}

TEST(below) {
    struct random_source source;
    random_start(&source, 7, RANDOM_STREAM_TABLE);
    /* Chi-square over 6 faces, 60,000 throws; 5 degrees of freedom: above 25.7 once in 10,000. */
    double counts[6] = {0}, chi_square = 0;
    for (int i = 0; i < 60000; i++) {
        uint64_t face = random_below(&source, 6);
        assert_true(face < 6);
        counts[face]++;
    }
    for (int i = 0; i < 6; i++)
        chi_square += (counts[i] - 10000) * (counts[i] - 10000) / 10000;
    assert_true(chi_square < 25.7);
    assert_true(chi_square > 0.1); /* as even as that would be no chance */
    for (int i = 0; i < 1000; i++)
        assert_true(random_below(&source, 1) == 0);
}

/* A bound of 3 * 2^62: a plain remainder, or a product without rejection, would give a third of the values
 * twice as often as the rest. */
TEST(below_rejects) {
    struct random_source source;
    random_start(&source, 11, RANDOM_STREAM_TABLE);
    const uint64_t bound = UINT64_C(3) << 62;
    enum { DRAWS = 30000 };
    double thirds[3] = {0}, residues[3] = {0};
    for (int i = 0; i < DRAWS; i++) {
        uint64_t value = random_below(&source, bound);
        assert_true(value < bound);
        thirds[value >> 62]++;
        residues[value % 3]++;
    }
    double chi_square = 0, of_residues = 0;
    for (int i = 0; i < 3; i++) {
        chi_square += (thirds[i] - DRAWS / 3) * (thirds[i] - DRAWS / 3) / (DRAWS / 3);
        of_residues += (residues[i] - DRAWS / 3) * (residues[i] - DRAWS / 3) / (DRAWS / 3);
    }
    /* 2 degrees of freedom: above 18.4 once in 10,000. */
    assert_true(chi_square < 18.4);
    assert_true(of_residues < 18.4);
}

TEST(fraction) {
    struct random_source source;
    random_start(&source, 3, RANDOM_STREAM_TABLE);
    double sum = 0, least = 1, most = 0;
    for (int i = 0; i < 100000; i++) {
        double u = random_fraction(&source);
        assert_true(u >= 0 && u < 1);
        assert_true(u * 0x1p53 == (double)(uint64_t)(u * 0x1p53));
        sum += u;
        least = u < least ? u : least;
        most = u > most ? u : most;
    }
    assert_true(sum / 100000 > 0.496 && sum / 100000 < 0.504); /* 4.4 standard errors */
    assert_true(least < 0.001 && most > 0.999);
}

TEST(shuffle_is_unbiased) {
    struct random_source source;
    random_start(&source, 2026, RANDOM_STREAM_ORDER);
    enum { SHUFFLES = 240000, ORDERS = 256 };
    double counts[ORDERS] = {0};
    for (int i = 0; i < SHUFFLES; i++) {
        uint32_t items[4] = {0, 1, 2, 3};
        random_shuffle(&source, items, 4);
        counts[items[0] * 64 + items[1] * 16 + items[2] * 4 + items[3]]++;
    }
    double chi_square = 0;
    int seen = 0;
    for (int i = 0; i < ORDERS; i++) {
        if (counts[i] == 0)
            continue;
        seen++;
        chi_square += (counts[i] - SHUFFLES / 24) * (counts[i] - SHUFFLES / 24) / (SHUFFLES / 24);
    }
    assert_int_equal(seen, 24);
    /* 23 degrees of freedom: above 58.6 and below 4.5 once in 20,000 each. */
    assert_true(chi_square < 58.6);
    assert_true(chi_square > 4.5);
}

TEST(shuffle_of_little) {
    struct random_source source;
    random_start(&source, 1, RANDOM_STREAM_ORDER);
    struct random_source before = source;
    uint32_t one = 9;
    random_shuffle(&source, NULL, 0);
    random_shuffle(&source, &one, 1);
    assert_int_equal(one, 9);
    assert_memory_equal(&source, &before, sizeof source); /* nothing was drawn */
}

TEST(system_seed) {
    uint64_t first = 0, second = 0;
    assert_ok(random_system_seed(&first, &test_failure));
    assert_ok(random_system_seed(&second, &test_failure));
    assert_true(first != second);
    assert_true(first >> RANDOM_SYSTEM_SEED_BITS == 0 && second >> RANDOM_SYSTEM_SEED_BITS == 0);
}
