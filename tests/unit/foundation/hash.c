/* SHA-256 against FIPS 180-2, appendix B, in one piece, in many, and from a file; and SHA-512, appendix C,
 * from a file. */
#include "engine/foundation/hash.h"

#include "engine/foundation/file.h"
#include "tests/test.h"

#include <unistd.h>

static const char of_abc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
static const char of_nothing[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
static const char of_million_a[] = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
static const char sha512_of_million_a[] = "e718483d0ce769644e2e42c7bc15b4638e1f98b13b2044285632a803afa973eb"
                                          "de0ff244877ea60a4cb0432ce577c31beb009c5c2c49aa2e4eadb217ad8cc09b";

TEST(published_values) {
    char hex[HASH_HEX_SIZE];
    assert_int_equal(hash_bytes("abc", 3, hex), 0);
    assert_string_equal(hex, of_abc);
    assert_int_equal(hash_bytes("", 0, hex), 0);
    assert_string_equal(hex, of_nothing);
}

TEST(pieces_and_starting_anew) {
    char hex[HASH_HEX_SIZE];
    struct hash *hash = hash_new();
    assert_non_null(hash);
    char piece[1000];
    memset(piece, 'a', sizeof piece);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 1000; i++)
            hash_update(hash, piece, sizeof piece);
        hash_finish(hash, hex);
        assert_string_equal(hex, of_million_a);
    }
    hash_finish(hash, hex);
    assert_string_equal(hex, of_nothing);
    hash_free(hash);
    hash_free(NULL);
}

TEST(file) {
    char path[] = "/tmp/assay-hash.XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    char *content = malloc(1000000);
    memset(content, 'a', 1000000);
    assert_int_equal(file_write_all(descriptor, content, 1000000), 0);
    free(content);
    close(descriptor);
    char hex[HASH_HEX_SIZE];
    uint64_t size = 0;
    struct failure failure = {0};
    assert_int_equal(hash_file(path, hex, &size, &failure), 0);
    assert_string_equal(hex, of_million_a);
    assert_int_equal(size, 1000000);
    char long_hex[HASH_SHA512_HEX_SIZE];
    assert_int_equal(hash_file_sha512(path, long_hex, &failure), 0);
    assert_string_equal(long_hex, sha512_of_million_a);
    assert_int_equal(hash_file(path, hex, NULL, &failure), 0);
    unlink(path);
    assert_int_equal(hash_file(path, hex, &size, &failure), -ENOENT);
    assert_non_null(strstr(failure.text, path));
    assert_int_equal(hash_file("/tmp", hex, &size, &failure), -EISDIR);
}
