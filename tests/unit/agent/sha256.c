/* The agent's own SHA-256, against the published vectors and against the engine's hash, which is libcrypto's.
 */
#include "engine/agent/files/sha256.h"
#include "engine/foundation/hash.h"
#include "tests/test.h"

static const char *hex(const unsigned char *digest) {
    static char text[2 * SHA256_SIZE + 1];
    for (int i = 0; i < SHA256_SIZE; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return text;
}

/* FIPS 180-4 examples and NIST's SHA256ShortMsg.rsp and SHA256LongMsg.rsp. */
TEST(published_vectors) {
    static const struct {
        const char *message, *digest;
    } vectors[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsm"
         "nopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
        {"\xd3", "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1"},
        {"\x11\xaf", "5ca7133fa735326081558ac312c620eeca9970d1e70a4b95533d956f072d1f98"},
    };
    unsigned char digest[SHA256_SIZE];
    struct sha256 hash;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        sha256_init(&hash);
        sha256_add(&hash, vectors[i].message, strlen(vectors[i].message));
        sha256_end(&hash, digest);
        assert_string_equal(hex(digest), vectors[i].digest);
    }
    sha256_init(&hash);
    for (int i = 0; i < 1000000; i++)
        sha256_add(&hash, "a", 1);
    sha256_end(&hash, digest);
    assert_string_equal(hex(digest), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Every length around the edges of blocks, in parts of every size. */
TEST(as_the_engine) {
    enum { MOST = 700 };
    unsigned char message[MOST], digest[SHA256_SIZE];
    char expected[HASH_HEX_SIZE];
    for (size_t i = 0; i < MOST; i++)
        message[i] = (unsigned char)(i * 2654435761u >> 13);
    for (size_t length = 0; length <= MOST; length++) {
        assert_int_equal(hash_bytes(message, length, expected), 0);
        for (size_t part = 1; part <= length + 1; part += 1 + part / 3) {
            struct sha256 hash;
            sha256_init(&hash);
            for (size_t done = 0; done < length; done += part)
                sha256_add(&hash, message + done, part < length - done ? part : length - done);
            assert_int_equal(hash.length, length);
            sha256_end(&hash, digest);
            assert_string_equal(hex(digest), expected);
        }
    }
}

/* The length of the message is counted in bits, past 2^32 of them too. */
TEST(a_long_message) {
#ifdef __SANITIZE_ADDRESS__
    enum { CHUNK = 1 << 20, CHUNKS = 20 }; /* slow there, and what it counts is the same */
#else
    enum { CHUNK = 1 << 20, CHUNKS = 600 };
#endif
    unsigned char *bytes = calloc(1, CHUNK), digest[SHA256_SIZE];
    char expected[HASH_HEX_SIZE];
    assert_non_null(bytes);
    struct sha256 hash;
    struct hash *other = hash_new();
    sha256_init(&hash);
    for (int i = 0; i < CHUNKS; i++) {
        sha256_add(&hash, bytes, CHUNK);
        hash_update(other, bytes, CHUNK);
    }
    sha256_end(&hash, digest);
    hash_finish(other, expected);
    hash_free(other);
    assert_string_equal(hex(digest), expected);
    free(bytes);
}
