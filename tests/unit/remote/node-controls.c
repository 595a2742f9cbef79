/* Controls of many nodes, by tools that say what the test wants: what is understood, skipped and refused. */
#include "tests/test.h"
#include "tests/unit/remote/tool-fixture.h"

#include "engine/foundation/cleanup.h"
#include "engine/remote/nodes/controls.h"

#include <inttypes.h>

enum { NODES = 2 };

/* ---- looking */

#define CONTROL(name, status) "control\\t" name "\\t" status "\\ton\\ton off\\tintel_pstate\\t\\n"

TEST(show) {
    struct node_control_state *states;
    tools_open(
        NODES,
        "[ $1 = --controls ] && [ $# = 1 ] || exit 2\n"
        "printf '" CONTROL(
            "turbo", "available") "'\n"
                                  "printf 'news\\tof\\tlater versions\\n'\n"
                                  "printf 'control\\tidle-states\\tdenied\\tmixed: C1 (0-3), "
                                  "a\\\\tb\\\\nc\\tall POLL C1\\t\\tnot "
                                  "\\\\\\\\ root\\n'\n"
                                  "printf 'control\\taslr\\tread-only\\t2\\n'\n"
                                  "printf 'control\\tdaemons\\twhatever\\t\\t\\t\\tbecause\\ttoo\\tmany\\n'\n"
                                  "printf 'machine\\tboot-1\\tintel_pstate\\t2100000000\\t3.5e9\\n'\n"
                                  "printf 'machine\\tboot-2\\tother\\t1\\t1\\n'\n");
    assert_done(&fixture, node_controls_show(fixture.group, &states, &failures, &fixture.failure));
    for (size_t i = 0; i < NODES; i++) {
        assert_int_equal(failures[i].code, 0);
        assert_int_equal(states[i].count, 4);
        const struct node_control *controls = states[i].controls;
        assert_string_equal(controls[0].name, "turbo");
        assert_int_equal(controls[0].status, NODE_CONTROL_AVAILABLE);
        assert_string_equal(controls[0].value, "on");
        assert_string_equal(controls[0].possible, "on off");
        assert_string_equal(controls[0].driver, "intel_pstate");
        assert_string_equal(controls[0].why, "");
        assert_int_equal(controls[1].status, NODE_CONTROL_DENIED);
        assert_string_equal(controls[1].value, "mixed: C1 (0-3), a\tb\nc");
        assert_string_equal(controls[1].why, "not \\ root");
        assert_int_equal(controls[2].status, NODE_CONTROL_READ_ONLY);
        assert_string_equal(controls[2].why, "");
        assert_int_equal(controls[3].status, NODE_CONTROL_UNKNOWN);
        assert_string_equal(node_control_status_name(controls[3].status), "unknown");
        assert_string_equal(controls[3].why, "because");
        assert_string_equal(states[i].boot_id, "boot-1");
        assert_true(states[i].base_hz == 2.1e9 && states[i].max_hz == 3.5e9);
        assert_null(states[i].holder);
    }
    node_control_states_free(states, NODES);
}

TEST(show_who_holds_them) {
    static const struct {
        const char *line, *holder;
        bool alive;
        int64_t since_ns;
    } cases[] = {
        {"held\\t0123456789abcdef\\trun:x\\talive\\t1700000000000000000", "session 0123456789abcdef (run:x)",
         true, INT64_C(1700000000000000000)},
        {"held\\t0123456789abcdef\\t\\tgone\\tnever", "session 0123456789abcdef", false, 0},
        {"held\\t\\tby-hand\\tdead or alive\\t", "by-hand", false, 0},
        {"held", "an agent without a name", false, 0},
    };
    tools_open(1, "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct node_control_state *states;
        cleanup_free char *script = text_format(
            "printf '" CONTROL("turbo", "available") "%s\\nmachine\\tb\\t\\t\\t-1\\n'", cases[i].line);
        tools_are(script);
        assert_done(&fixture, node_controls_show(fixture.group, &states, &failures, &fixture.failure));
        assert_int_equal(failures[0].code, 0);
        assert_string_equal(states[0].holder, cases[i].holder);
        assert_int_equal(states[0].holder_alive, cases[i].alive);
        assert_int_equal(states[0].holder_since_ns, cases[i].since_ns);
        assert_true(states[0].base_hz == 0 && states[0].max_hz == 0); /* unknown, and nonsense */
        node_control_states_free(states, 1);
        free(take_pointer(failures));
    }
}

static void assert_show_fails(const char *script, int code, const char *sentence) {
    struct node_control_state *states;
    tools_open(NODES, "printf '" CONTROL("turbo", "available") "'");
    tool_is(1, script);
    assert_done(&fixture, node_controls_show(fixture.group, &states, &failures, &fixture.failure));
    assert_int_equal(failures[0].code, 0);
    assert_int_equal(states[0].count, 1);
    assert_int_equal(failures[1].code, code);
    assert_string_equal(failures[1].text, sentence);
    node_control_states_free(states, NODES);
}

TEST(show_refuses) {
    assert_show_fails("for i in $(seq 65); do printf '" CONTROL("c", "available") "'; done", -EPROTO,
                      "the agent reported more than 64 controls");
    assert_show_fails("printf 'machine\\tboot\\n'", -EPROTO,
                      "the output of the agent's tool lacks lines that were asked for");
    assert_show_fails("true", -EPROTO, "the output of the agent's tool lacks lines that were asked for");
    assert_show_fails(
        "printf '" CONTROL("turbo", "available") "'; echo 'the snapshot is damaged' >&2; exit 1", -EIO,
        "the agent's tool exited with status 1: the snapshot is damaged");
}

/* ---- keeping */

static void keep(struct text *snapshots, struct failure **ret) {
    for (size_t i = 0; i < NODES; i++)
        text_init(&snapshots[i], 1 << 20);
    assert_done(&fixture, node_controls_keep(fixture.group, "run:0123", snapshots, ret, &fixture.failure));
}

static void kept_away(struct text *snapshots) {
    for (size_t i = 0; i < NODES; i++)
        text_clear(&snapshots[i]);
}

TEST(keep) {
    struct text snapshots[NODES];
    tools_open(
        NODES,
        "echo \"$*\" >arguments; printf 'restored\\t1\\t0\\tabc\\t\\nsnapshot\\t/run/assay/x\\tboot\\t1\\n"
        "file\\tturbo\\t/sys/a b\\t0\\\\n\\n'");
    keep(snapshots, &failures);
    for (size_t i = 0; i < NODES; i++) {
        char arguments[128];
        assert_int_equal(failures[i].code, 0);
        assert_string_equal(snapshots[i].bytes, "restored\t1\t0\tabc\t\nsnapshot\t/run/assay/x\tboot\t1\n"
                                                "file\tturbo\t/sys/a b\t0\\n\n");
        uint64_t session = agent_link_transport(node_group_link(fixture.group, i))->session;
        snprintf(arguments, sizeof arguments,
                 "--snapshot-controls --label run:0123 --session %016" PRIx64 "\n", session);
        assert_string_equal(tool_left(i, "arguments"), arguments);
    }
    kept_away(snapshots);
}

static void assert_keep_fails(const char *script, int code, const char *sentence) {
    struct text snapshots[NODES];
    tools_open(NODES, "printf 'snapshot\\t/run/assay/x\\tboot\\t1\\n'");
    tool_is(0, script);
    keep(snapshots, &failures);
    assert_int_equal(failures[0].code, code);
    assert_string_equal(failures[0].text, sentence);
    assert_int_equal(failures[1].code, 0);
    kept_away(snapshots);
}

TEST(keep_refuses) {
    assert_keep_fails("printf 'held\\tfeed\\trun:9\\talive\\t5\\n'; exit 1", -EBUSY,
                      "its controls were set by session feed (run:9), whose agent still runs; wait until it "
                      "ends, or end it with 'assay nodes clean --force'");
    assert_keep_fails("printf 'file\\tturbo\\t/sys/x\\t1\\n'", -EPROTO,
                      "the output of the agent's tool lacks lines that were asked for");
    assert_keep_fails("printf 'snapshot\\t/x\\tb\\t1\\n'; echo 'no room on /run' >&2; exit 1", -EIO,
                      "the agent's tool exited with status 1: no room on /run");
    assert_keep_fails("yes 'file turbo 123456789abcdef' | head -c 2000000", -EFBIG,
                      "the agent's tool printed more than 1 MiB");
}

/* ---- setting */

static void set(struct node_change *changes, struct failure **ret) {
    static const char *const assignments[] = {"turbo=off", "governor=a b", NULL};
    assert_done(&fixture, node_controls_set(fixture.group, assignments, changes, ret, &fixture.failure));
}

TEST(set) {
    struct node_change changes[NODES];
    tools_open(NODES, "[ $# = 3 ] && [ \"$3\" = 'governor=a b' ] || exit 2\n"
                      "printf 'write\\tturbo\\t/sys/no_turbo\\t0\\t1\\t1\\t\\n'\n"
                      "printf 'set\\tturbo\\toff\\ton\\toff\\tdone\\t\\n'\n"
                      "printf 'set\\tgovernor\\ta b\\tpowersave\\tpowersave\\tinvalid\\tit has\\\\tnone\\n'\n"
                      "printf 'set\\tmore\\t\\t\\t\\twhat now\\n'\n"
                      "printf 'expect\\t/sys/no_turbo\\t1\\n'\n"
                      "printf 'expect\\t/sys/a=b\\tx y\\n'\n"
                      "printf 'target\\t8e8\\tfast\\n'\n"
                      "exit 1\n");
    for (size_t i = 0; i < NODES; i++)
        node_change_init(&changes[i]);
    for (int round = 0; round < 2; round++) { /* the second forgets the first */
        set(changes, &failures);
        for (size_t i = 0; i < NODES; i++) {
            const struct node_change *change = &changes[i];
            assert_int_equal(failures[i].code, 0);
            assert_int_equal(change->count, 3);
            assert_string_equal(change->settings[0].control, "turbo");
            assert_string_equal(change->settings[0].asked, "off");
            assert_string_equal(change->settings[0].before, "on");
            assert_string_equal(change->settings[0].after, "off");
            assert_int_equal(change->settings[0].status, NODE_SETTING_DONE);
            assert_int_equal(change->settings[1].status, NODE_SETTING_INVALID);
            assert_string_equal(change->settings[1].sentence, "it has\tnone");
            assert_int_equal(change->settings[2].status, NODE_SETTING_FAILED); /* not a word we know */
            assert_string_equal(change->settings[2].sentence, "");
            assert_string_equal(change->writes.bytes, "turbo\t/sys/no_turbo\t0\t1\t1\t\n");
            assert_int_equal(change->expectation_count, 2);
            assert_string_equal(change->expectations[0], "/sys/no_turbo=1");
            assert_string_equal(change->expectations[1], "/sys/a=b=x y");
            assert_true(change->target_min_hz == 8e8 && change->target_max_hz == 0);
        }
        free(take_pointer(failures));
    }
    for (size_t i = 0; i < NODES; i++)
        node_change_clear(&changes[i]);
}

static void assert_change_fails(const char *script, bool setting, int code, const char *sentence) {
    struct node_change change = {0};
    tools_open(1, script);
    node_change_init(&change);
    if (setting)
        set(&change, &failures);
    else
        assert_done(&fixture,
                    node_controls_restore(fixture.group, NULL, false, &change, &failures, &fixture.failure));
    assert_int_equal(failures[0].code, code);
    assert_string_equal(failures[0].text, sentence);
    free(take_pointer(failures));
    node_change_clear(&change);
}

TEST(set_refuses) {
    assert_change_fails("printf 'set\\tturbo\\toff\\ton\\toff\\tdone\\t\\n'", true, -EPROTO,
                        "the output of the agent's tool lacks lines that were asked for");
    assert_change_fails("printf 'set\\tturbo\\toff\\ton\\toff\\tdone\\t\\n'; echo 'no snapshot' >&2; exit 1",
                        true, -EIO, "the agent's tool exited with status 1: no snapshot");
    assert_change_fails("for i in $(seq 65); do printf 'set\\tturbo\\n'; done", true, -EPROTO,
                        "the agent reported more than 64 settings");
    assert_change_fails("yes 'expect\t/sys/x\t1' | head -n 65537", true, -EPROTO,
                        "the agent wrote more than 65536 files");
}

/* ---- restoring */

TEST(restore) {
    struct node_change changes[4];
    const bool nodes[] = {true, true, true, false};
    tools_open(4, "printf 'write\\tturbo\\t/sys/x\\t1\\t0\\t0\\t\\nrestored\\t12\\t0\\tfeed\\trun:1\\n'\n"
                  "echo \"$*\" >arguments");
    tool_is(
        1,
        "printf 'different\\tturbo\\t/sys/x\\t0\\t1\\tEPERM\\nrestored\\t3\\t1\\tfeed\\trun:1\\n'; exit 1");
    tool_is(2, "printf 'nothing\\tthere is\\\\tno snapshot\\n'");
    for (size_t i = 0; i < 4; i++)
        node_change_init(&changes[i]);
    assert_done(&fixture,
                node_controls_restore(fixture.group, nodes, true, changes, &failures, &fixture.failure));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(failures[i].code, 0);
    assert_string_equal(tool_left(0, "arguments"), "--restore-controls --abandoned\n");
    assert_int_equal(changes[0].files_written, 12);
    assert_int_equal(changes[0].files_different, 0);
    assert_string_equal(changes[0].restored, "session feed (run:1)");
    assert_string_equal(changes[0].writes.bytes, "turbo\t/sys/x\t1\t0\t0\t\n");
    assert_int_equal(changes[1].files_written, 3);
    assert_int_equal(changes[1].files_different, 1);
    assert_string_equal(changes[1].different.bytes, "turbo\t/sys/x\t0\t1\tEPERM\n");
    assert_null(changes[2].restored);
    assert_string_equal(changes[2].nothing, "there is\tno snapshot");
    assert_null(changes[3].restored); /* it was not asked */
    assert_null(changes[3].nothing);
    free(take_pointer(failures));
    tool_is(0, "echo \"$*\" >arguments; printf 'held\\tfeed\\t\\talive\\t1\\n'; echo 'alive' >&2; exit 1");
    assert_done(&fixture,
                node_controls_restore(fixture.group, nodes, false, changes, &failures, &fixture.failure));
    assert_string_equal(tool_left(0, "arguments"), "--restore-controls\n");
    assert_int_equal(failures[0].code, 0);
    assert_string_equal(changes[0].held, "session feed");
    assert_null(changes[0].restored);
    assert_int_equal(changes[0].files_written, 0);
    for (size_t i = 0; i < 4; i++)
        node_change_clear(&changes[i]);
}

TEST(restore_refuses) {
    assert_change_fails("true", false, -EPROTO,
                        "the output of the agent's tool lacks lines that were asked for");
    assert_change_fails("printf 'restored\\tall\\t0\\n'", false, -EPROTO,
                        "the agent reported 'all' files restored and '0' different");
    assert_change_fails("printf 'restored\\t3\\t\\n'", false, -EPROTO,
                        "the agent reported '3' files restored and '' different");
    assert_change_fails("printf 'write\\tturbo\\t/sys/x\\n'; echo 'cannot remove the snapshot' >&2; exit 1",
                        false, -EIO, "the agent's tool exited with status 1: cannot remove the snapshot");
    assert_change_fails("printf 'restored\\t3\\t0\\tx\\ty\\n'; echo 'cannot go on' >&2; exit 1", false, -EIO,
                        "the agent's tool exited with status 1: cannot go on");
}

/* ---- proof */

TEST(prove) {
    struct node_proof *proofs;
    tools_open(NODES,
               "[ \"$*\" = '--spin --milliseconds 50' ] || exit 2\n"
               "printf 'spin\\t0\\t2100000000\\taperf\\t\\nspin\\t5\\tunknown\\tcycles\\t7\\nother\\n'");
    assert_done(&fixture, node_controls_prove(fixture.group, 50, &proofs, &failures, &fixture.failure));
    for (size_t i = 0; i < NODES; i++) {
        assert_int_equal(failures[i].code, 0);
        assert_int_equal(proofs[i].count, 2);
        assert_int_equal(proofs[i].pus[1], 5);
        assert_true(proofs[i].hz[0] == 2.1e9 && proofs[i].hz[1] == 0);
        assert_string_equal(proofs[i].source, "aperf");
    }
    free(take_pointer(failures));
    node_proofs_free(proofs, NODES);
    tool_is(0, "[ \"$*\" = '--spin --milliseconds 50' ] && printf 'spin\\t8192\\t1\\taperf\\t\\n'");
    tool_is(1, "true");
    assert_done(&fixture, node_controls_prove(fixture.group, 50, &proofs, &failures, &fixture.failure));
    assert_string_equal(failures[0].text,
                        "the agent reported a frequency of '8192', which is not the number of a PU");
    assert_string_equal(failures[1].text, "the output of the agent's tool lacks lines that were asked for");
    free(take_pointer(failures));
    node_proofs_free(proofs, NODES);
}
