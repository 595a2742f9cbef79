/* What is taken out of texts: secrets, numbers of machines, and, for strangers, people and addresses. */
#include "archive-format/redaction.h"
#include "engine/foundation/checksum.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/memory.h"
#include "tests/test.h"

static void expect(bool for_strangers, const char *text, const char *expected, int count) {
    static const char *const users[] = {"alice", "root", "me", NULL};
    cleanup(redaction_free) struct redaction *redaction = NULL;
    cleanup(text_clear) struct text found;
    setenv("XDG_STATE_HOME", test_path("state"), 1);
    text_init(&found, 1 << 20);
    test_put("state/assay/salt", "0123456789-0123456789-0123456789-012");
    assert_ok(redaction_new(for_strangers, users, &redaction, &test_failure));
    redaction_keep(redaction, "alice-pc");
    redaction_keep(redaction, "10.0.0.9");
    assert_int_equal(redaction_apply(redaction, text, strlen(text), &found), count);
    assert_string_equal(found.bytes, expected);
}

TEST(secrets_and_numbers_of_machines) {
    expect(false, "clone https://me:pw@host/x and http://h/y\n",
           "clone https://[redacted]@host/x and http://h/y\n", 1);
    expect(false, "a password=one,b\nPASSWD: two c", "a password=[redacted],b\nPASSWD: [redacted] c", 2);
    expect(false, "--token=x --secret=y z", "--token=[redacted] --secret=[redacted] z", 2);
    expect(false, "a hvs.CAESIJ1a2b3c4d5e6f7g8h9iAbCd, x", "a [redacted], x", 1);
    expect(false, "{\"a\":\"ghp_aB3dE5fG7hI9jK1lM3nO5p\\\"\"}", "{\"a\":\"[redacted]\\\"\"}", 1);
    expect(false,
           "Serial Number: S 1 \nSerial Number: S 1", /* printf '%s' '0123456789-0123456789-0123456789-012 S
                                                         1' | sha256sum */
           "Serial Number: hashed:72aef82e913c4b87 \nSerial Number: hashed:72aef82e913c4b87", 2);
    expect(false, "bus 0000:3b:00.0 at 12:30:59, v1.2.3.4, alice",
           "bus 0000:3b:00.0 at 12:30:59, v1.2.3.4, alice", 0);
    expect(false, "", "", 0);
}

TEST(people_and_addresses) {
    expect(true, "/home/alice/x alice@10.0.0.1 malice alice_2",
           "/home/[user]/x [user]@[redacted] malice alice_2", 3);
    expect(true, "10.1.2.3, 10.1.2.4:22; 1.2.3 fe80::1 2001:db8::7/64 root me",
           "[redacted], [redacted]:22; 1.2.3 [redacted] [redacted]/64 root me", 4);
    expect(true, "no route to 10.1.2.3. Or 2a01:e0a:1b2:3c40:a00:27ff:fe4e:66a1",
           "no route to [redacted]. Or [redacted]", 2);
    expect(true, "time 12:30:59 ratio 3.25 pci 0000:00:1f.2", "time 12:30:59 ratio 3.25 pci 0000:00:1f.2", 0);
}

/* Names that the archive has elsewhere, too, and the keys of JSON. */
TEST(what_is_kept) {
    expect(true, "alice@alice-pc /nodes/alice-pc/x alice-pd", "[user]@alice-pc /nodes/alice-pc/x [user]-pd",
           2);
    expect(true, "10.0.0.9 10.0.0.90 10.0.0.9:22", "10.0.0.9 [redacted] 10.0.0.9:22", 1);
    expect(true, "{\"alice\":\"alice\",\"alice\": 1}", "{\"alice\":\"[user]\",\"alice\": 1}", 1);
}

static void read(const char *path, struct text *ret) {
    text_init(ret, 1 << 20);
    assert_ok(file_read(test_path(path), ret, &test_failure));
}

/* Files of the user's, and tables, stay as they are; the journal's lines are whole, and the hash of the
 * campaign is that of the copy. */
TEST(folders) {
    static const char *const users[] = {"alice", NULL};
    static const char line[] = "{\"seq\":1,\"event\":\"note\",\"sentence\":\"of alice, \\\"crc32c\\\"\"";
    static const char expected[] = "{\"seq\":1,\"event\":\"note\",\"sentence\":\"of [user], ";
    char tail[64], hash[HASH_HEX_SIZE];
    cleanup(redaction_free) struct redaction *redaction = NULL;
    cleanup(text_clear) struct text journal, inputs, campaign, other, stayed;
    setenv("XDG_STATE_HOME", test_path("state"), 1);
    text_init(&stayed, 256);
    snprintf(tail, sizeof tail, ",\"crc32c\":\"%08x\"}\n", checksum_crc32c(line, strlen(line)));
    cleanup_free char *whole = xformat("%s%s%s%s", line, tail, line, tail);
    hash_bytes("user: alice\n", 12, hash);
    cleanup_free char *record = xformat("{\"campaign\": {\"sha256\": \"%s\"}}\n", hash);
    test_put("run/journal.jsonl", whole);
    test_put("run/campaign.yaml", "user: alice\n");
    test_put("run/inputs.json", record);
    test_put("run/experiment/a.c", "/* alice */\n");
    test_put("run/experiment/other.yaml", "name: x\nexperiment: .\ntestbed: {user: alice}\n");
    test_put("run/design.csv", "node\nalice-pc\n");
    test_put("run/source.tar", "alice\n");
    test_put("run/results/results.csv", "node\nalice\n");
    assert_ok(redaction_new(true, users, &redaction, &test_failure));
    redaction_keep(redaction, "alice-pc");
    cleanup_free char *from = xstrdup(test_path("run")), *to = xstrdup(test_path("copy"));
    assert_ok(redaction_copy(redaction, from, to, &stayed, &test_failure));
    assert_string_equal(stayed.bytes, "experiment/a.c, results/results.csv, source.tar");
    read("copy/journal.jsonl", &journal);
    for (const char *at = journal.bytes; *at; at = strchr(at, '\n') + 1) {
        const char *mark = strstr(at, ",\"crc32c\":");
        assert_true(strncmp(at, expected, strlen(expected)) == 0);
        snprintf(tail, sizeof tail, ",\"crc32c\":\"%08x\"}\n", checksum_crc32c(at, (size_t)(mark - at)));
        assert_true(strncmp(mark, tail, strlen(tail)) == 0);
    }
    hash_bytes("user: [user]\n", 13, hash);
    read("copy/inputs.json", &inputs);
    assert_non_null(strstr(inputs.bytes, hash));
    read("copy/campaign.yaml", &campaign);
    assert_string_equal(campaign.bytes, "user: [user]\n");
    read("copy/experiment/other.yaml", &other);
    assert_string_equal(other.bytes, "name: x\nexperiment: .\ntestbed: {user: [user]}\n");
    assert_true(file_is_same(test_path("run/experiment/a.c"), test_path("copy/experiment/a.c")));
    assert_true(file_is_same(test_path("run/results/results.csv"), test_path("copy/results/results.csv")));
}
