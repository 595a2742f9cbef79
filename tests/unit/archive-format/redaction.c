/* What is taken out of texts: secrets, numbers of machines, and, for strangers, people and addresses. */
#include "archive-format/redaction.h"
#include "engine/foundation/file.h"
#include "tests/test.h"

static void expect(bool for_strangers, const char *text, const char *expected, int count) {
    static const char *const users[] = {"alice", "root", "me", NULL};
    cleanup(redaction_free) struct redaction *redaction = NULL;
    cleanup(text_clear) struct text found;
    setenv("XDG_STATE_HOME", test_path("state"), 1);
    text_init(&found, 1 << 20);
    test_put("state/assay/salt", "0123456789-0123456789-0123456789-012");
    assert_ok(redaction_new(for_strangers, users, &redaction, &test_failure));
    assert_int_equal(redaction_apply(redaction, text, strlen(text), &found), count);
    assert_string_equal(found.bytes, expected);
}

TEST(secrets_and_numbers_of_machines) {
    expect(false, "clone https://me:pw@host/x and http://h/y\n",
           "clone https://[redacted]@host/x and http://h/y\n", 1);
    expect(false, "a password=one,b\nPASSWD: two c", "a password=[redacted],b\nPASSWD: [redacted] c", 2);
    expect(false, "--token=x --secret=y z", "--token=[redacted] --secret=[redacted] z", 2);
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
    expect(true, "time 12:30:59 ratio 3.25 pci 0000:00:1f.2", "time 12:30:59 ratio 3.25 pci 0000:00:1f.2", 0);
}
