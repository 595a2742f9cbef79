/* What the program of an external testbed answers when nodes are there. */
#include "engine/testbed/external-grant.h"
#include "tests/test.h"

static const struct {
    const char *answer;
    const char *hosts, *keys; /* hosts folded */
    int64_t end_s;
    const char *refusal; /* a part of it; NULL: it is fine */
} cases[] = {
    {"{\"nodes\": [\"a[1-3]\", \"cc@b:2222\"]}", "a[1-3],cc@b:2222", "", 0, NULL},
    {"{\"nodes\": \"a1,a2\", \"end\": null, \"more\": {}}", "a[1-2]", "", 0, NULL},
    {"{\"nodes\": [\"a\"], \"end\": 1795372200.9}", "a", "", 1795372200, NULL},
    {"{\"nodes\": [\"a\"], \"end\": \"2026-11-22T18:30:00Z\"}", "a", "", 1795372200, NULL},
    {"{\"nodes\": [\"a\"], \"end\": \"2026-11-22T18:30:00.123456+00:00\"}", "a", "", 1795372200, NULL},
    {"{\"nodes\": [\"a\"], \"end\": \"2026-11-22T20:00:00+01:30\"}", "a", "", 1795372200, NULL},
    {"{\"nodes\": [\"a\"], \"known_hosts\": [\"a,[a]:22 ssh-rsa AA\", \"b ssh-ed25519 BB c\"]}", "a",
     "a,[a]:22 ssh-rsa AA\nb ssh-ed25519 BB c\n", 0, NULL},
    {"{}", "", "", 0, "the list of hosts is empty"},
    {"{\"nodes\": []}", "", "", 0, "the list of hosts is empty"},
    {"{\"nodes\": [7]}", "", "", 0, "'nodes' has a number, expected texts"},
    {"{\"nodes\": {\"a\": 1}}", "", "", 0, "'nodes' has a mapping, expected texts"},
    {"{\"nodes\": [\"-oProxyCommand=x\"]}", "", "", 0, "host"},
    {"{\"nodes\": [\"a;reboot\"]}", "", "", 0, "host"},
    {"{\"nodes\": [\"a$(id)\"]}", "", "", 0, "host"},
    {"{\"nodes\": [\"root@-oX\"]}", "", "", 0, "begins with '-'"},
    {"{\"nodes\": [\"../../etc\"]}", "", "", 0, "host"},
    {"{\"nodes\": [\"a\", \"root@A\"]}", "", "", 0, "two nodes would be called"},
    {"{\"nodes\": [\"a[1-99999]\"]}", "", "", 0, "host"},
    {"{\"nodes\": [\"a\"], \"end\": \"tomorrow\"}", "", "", 0, "'end' is 'tomorrow'"},
    {"{\"nodes\": [\"a\"], \"end\": \"2026-11-22T18:30:00\"}", "", "", 0, "expected seconds since 1970"},
    {"{\"nodes\": [\"a\"], \"end\": \"2026-11-22T18:30:00Z;\"}", "", "", 0, "expected seconds since 1970"},
    {"{\"nodes\": [\"a\"], \"end\": -1}", "", "", 0, "expected seconds since 1970"},
    {"{\"nodes\": [\"a\"], \"end\": 1e300}", "", "", 0, "expected seconds since 1970"},
    {"{\"nodes\": [\"a\"], \"end\": [1]}", "", "", 0, "expected seconds since 1970"},
    {"{\"nodes\": [\"a\"], \"known_hosts\": [\"a ssh-rsa AA\\n* ssh-rsa BB\"]}", "", "", 0,
     "not a line of a known_hosts file"},
    {"{\"nodes\": [\"a\"], \"known_hosts\": [\"@revoked a ssh-rsa AA\"]}", "", "", 0,
     "not a line of a known_hosts file"},
    {"{\"nodes\": [\"a\"], \"known_hosts\": [\"# a:22 SSH-2.0\"]}", "", "", 0,
     "not a line of a known_hosts file"},
    {"{\"nodes\": [\"a\"], \"known_hosts\": [\"ssh-ed25519 AAAA\"]}", "", "", 0,
     "not a line of a known_hosts file"},
    {"{\"nodes\": [\"a\"], \"known_hosts\": [[]]}", "", "", 0, "'known_hosts' has a sequence"},
};

TEST(grants_are_read) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct document *document = NULL;
        cleanup(external_grant_clear) struct external_grant grant = {0};
        cleanup(text_clear) struct text hosts;
        text_init(&hosts, 1000);
        print_message("%s\n", cases[i].answer);
        assert_ok(
            document_parse_json("pool", cases[i].answer, strlen(cases[i].answer), &document, &test_failure));
        if (cases[i].refusal) {
            assert_true(external_grant_read(document, &grant, &test_failure) < 0);
            assert_int_equal(test_failure.kind, FAILURE_SYSTEM);
            assert_says(test_failure.text, cases[i].refusal);
        } else {
            assert_ok(external_grant_read(document, &grant, &test_failure));
            assert_ok(host_list_fold((const char *const *)grant.hosts.names, grant.hosts.count, &hosts));
            assert_string_equal(hosts.bytes, cases[i].hosts);
            assert_string_equal(grant.known_hosts.bytes, cases[i].keys);
            assert_true(grant.end_s == cases[i].end_s);
        }
        document_free(document);
    }
}
