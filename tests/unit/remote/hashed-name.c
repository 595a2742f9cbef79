/* Hashed names: against libssh, which has its own reader, and against what ssh-keygen writes. */
#include "engine/remote/ssh/hashed-name.h"
#include "engine/foundation/text.h"
#include "tests/test.h"

#include <libssh/libssh.h>

static const char *const by_ssh_keygen =
    "|1|kZs+AsHa2+isJRSYV0DdwGAkam8=|vBqk8TkuBxyvBzcXrZUiTBUPTbc="; /* of node.site.org */

static bool parse(const char *text, struct hashed_name *ret) {
    return hashed_name_parse(text, strlen(text), ret);
}

TEST(real_line) {
    struct hashed_name hashed;
    assert_true(parse(by_ssh_keygen, &hashed));
    assert_true(hashed_name_matches(&hashed, "node.site.org"));
    assert_false(hashed_name_matches(&hashed, "node.site.or"));
    assert_false(hashed_name_matches(&hashed, "node.site.orgs"));
    assert_false(hashed_name_matches(&hashed, ""));
}

TEST(refuses) {
    struct hashed_name hashed;
    char text[128];
    size_t length = strlen(by_ssh_keygen);
    for (size_t i = 0; i < length; i++)
        assert_false(hashed_name_parse(by_ssh_keygen, i, &hashed));
    assert_false(hashed_name_parse(by_ssh_keygen, length + 1, &hashed));
    static const char *const wrong = "!-_ \n";
    for (size_t i = 0; i < length; i++)
        for (const char *bad = wrong; *bad; bad++) {
            memcpy(text, by_ssh_keygen, length + 1);
            text[i] = *bad;
            assert_false(parse(text, &hashed));
        }
    assert_false(parse("|2|kZs+AsHa2+isJRSYV0DdwGAkam8=|vBqk8TkuBxyvBzcXrZUiTBUPTbc=", &hashed));
}

static void encode(const uint8_t bytes[HASHED_NAME_BYTES], char ret[29]) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0;
    unsigned have = 0;
    size_t filled = 0;
    for (size_t i = 0; i < HASHED_NAME_BYTES; i++) {
        bits = bits << 8 | bytes[i];
        for (have += 8; have >= 6; have -= 6)
            ret[filled++] = digits[bits >> (have - 6) & 63];
    }
    ret[filled++] = digits[bits << (6 - have) & 63];
    ret[filled++] = '=';
    ret[filled] = '\0';
}

/* libssh only says whether a line is for a name. So a line is made with the hash that we compute: libssh must
 * take it, and must not when one bit of it is another. */
TEST(as_libssh) {
    srandom(7);
    for (int round = 0; round < 400; round++) {
        uint8_t salt[HASHED_NAME_BYTES], zero[HASHED_NAME_BYTES] = {0};
        char salt_text[29], hash_text[29], name[300];
        size_t length = (size_t)round < sizeof name - 1 ? (size_t)round : (size_t)(random() % 299);
        for (size_t i = 0; i < length; i++)
            name[i] = (char)('a' + random() % 26);
        name[length] = '\0';
        for (size_t i = 0; i < HASHED_NAME_BYTES; i++)
            salt[i] = (uint8_t)random();
        encode(salt, salt_text);
        encode(zero, hash_text);
        char *line = text_format("|1|%s|%s", salt_text, hash_text);
        struct hashed_name hashed;
        assert_true(parse(line, &hashed));
        free(line);
        uint8_t hash[HASHED_NAME_BYTES];
        hashed_name_compute(&hashed, name, hash);
        for (int spoilt = 0; spoilt < 2; spoilt++) {
            hash[random() % HASHED_NAME_BYTES] ^= (uint8_t)spoilt;
            encode(hash, hash_text);
            line = text_format("|1|%s|%s ssh-ed25519 AAAA", salt_text, hash_text);
            struct ssh_knownhosts_entry *entry = NULL;
            int r = length ? ssh_known_hosts_parse_line(name, line, &entry) : SSH_ERROR;
            ssh_knownhosts_entry_free(r == SSH_OK ? entry : NULL);
            if (length)
                assert_int_equal(r == SSH_AGAIN, spoilt);
            assert_true(hashed_name_parse(line, strcspn(line, " "), &hashed));
            assert_int_equal(hashed_name_matches(&hashed, name), !spoilt);
            free(line);
        }
    }
}
