/* The journal of an archive against its results. */
#include "engine/run/record/trace.h"
#include "tests/unit/archive-format/staged-run.h"

static int check(const char *name, uint64_t *ret_lines) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    seal_staged(name, NULL, &archive);
    return run_trace_check(archive, ret_lines, &test_failure);
}

TEST(each_line_is_traced) {
    uint64_t lines = 0;
    stage("right");
    assert_ok(check("right", &lines));
    assert_int_equal(lines, 2);
}

TEST(without_a_journal_nothing_is) {
    uint64_t lines = 7;
    const char *staging = stage("none");
    cleanup_free char *journal = file_join(staging, "journal.jsonl");
    assert_int_equal(remove(journal), 0);
    assert_ok(check("none", &lines));
    assert_int_equal(lines, 0);
}

/* What is not so of the run: a text that stands in the results or in another file, and what stands there
 * then. With TRUSTED the checksum of the journal is that of the changed results, as somebody would make it
 * who forges both. */
static const struct {
    const char *file, *text, *instead, *reason;
    bool trusted;
} lies[] = {
    {"results/results.csv", "0.25", "0.26", "of results/results.csv are not those of journal.jsonl", false},
    {"results/results.csv", ",z,0.5", ",z,0.55", "are not those of journal.jsonl", false},
    {"results/results.csv", "2,1,2,1,1", "2,1,3,1,1", "has order 3; block 1 of the journal has 1 to 2", true},
    {"results/results.csv", "2,1,2,1,1", "2,1,2,1,2",
     "line 3 of results/results.csv has no entry 'unit-command'", true},
    {"results/results.csv", "2,1,2,1,1", "2,1,2,2,1", "is of block 2, which the journal did not start", true},
    {"results/results.csv", "n-1.site", "n-2.site",
     "line 2 of results/results.csv is of the node 'n-2.site.example'", true},
    {"results/results.csv", "300,200,100,z", "300,200,101,z",
     "line 3 of results/results.csv has other factors than row 2", true},
    {"results/results.csv", "2,1,2,1,1", "3,1,2,1,1", "has other factors than row 3", true},
    {"results/results.csv", "\"x,y\"", "x", "has other factors than row 1", true},
    {"results/results.csv", "2,1,2,1,1", "2,1,2,1", "line 3 of results/results.csv is no line of the results",
     true},
    {"results/results.csv", "row,repetition,order,block,", "", "does not begin with the columns of a run",
     true},
    {"design.csv", "100,200,300", "100,200,301", "has other factors than row 1", false},
    {"run.json", "\"units_done\":2", "\"units_done\":3", "counts 3 units that were done and 0 that failed",
     false},
    {"run.json", "3f0e6d2c", "4f0e6d2c", "is of the run '3f0e6d2c", false},
    {"journal.jsonl", "\"last\":2", "\"last\":9", "is right up to line 3 only", false},
    {"journal.jsonl", "\"run-started\"", "\"run-begun\"", "is right up to line 0 only", false},
};

TEST(lies_are_found) {
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        cleanup_free char *name = text_format("lie-%zu", i);
        const char *staging = stage(name);
        cleanup_free char *path = file_join(staging, lies[i].file);
        cleanup(text_clear) struct text after;
        uint64_t lines;
        text_init(&after, 1 << 20);
        const char *before = test_read(path, NULL), *at = strstr(before, lies[i].text);
        assert_non_null(at);
        text_printf(&after, "%.*s%s%s", (int)(at - before), before, lies[i].instead,
                    at + strlen(lies[i].text));
        put(name, lies[i].file, after.bytes);
        if (lies[i].trusted)
            stage_run_journal(name, after.bytes, staged_commands);
        test_forget();
        assert_true(check(name, &lines) < 0);
        assert_int_equal(test_failure.kind, FAILURE_VERIFICATION);
        assert_says(test_failure.text, lies[i].reason);
    }
}

/* The journal of a kernel, which has all units of its core in a block, and journals that say no command line.
 */
TEST(commands_of_units) {
    static const struct {
        const char *entry, *version, *reason;
    } cases[] = {
        {"\"core\":\"all\",\"block\":1,\"first\":1,\"arguments\":[\"./kernel\"]", "1.1", ""},
        {"\"core\":\"all\",\"block\":1,\"first\":1,\"arguments\":null", "1.1", ""},
        {"\"core\":\"all\",\"block\":1,\"first\":1", "1.1", "line 2 of results/results.csv has no entry"},
        {"\"core\":\"3\",\"block\":1,\"first\":1,\"arguments\":[\"./kernel\"]", "1.1", "line 2 of "},
        {"\"core\":\"all\",\"block\":2,\"first\":1,\"arguments\":[\"./kernel\"]", "1.1", "line 2 of "},
        {"\"core\":\"3\",\"block\":1,\"first\":1", "1.0", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup_free char *name = text_format("command-%zu", i);
        const char *staging = stage(name);
        cleanup_free char *path = file_join(staging, "run.json"),
                          *entry = text_format("\"event\":\"unit-command\",\"node\":\"n-1.site.example\",%s",
                                               cases[i].entry);
        const char *const commands[] = {entry, entry};
        cleanup(text_clear) struct text run;
        uint64_t lines;
        text_init(&run, 1 << 20);
        assert_ok(file_read(path, &run, &test_failure));
        memcpy(strstr(run.bytes, "1.1"), cases[i].version, 3);
        put(name, "run.json", run.bytes);
        stage_run_journal(name, staged_results, commands);
        test_forget();
        assert_int_equal(check(name, &lines) < 0, cases[i].reason[0] != '\0');
        assert_says(test_failure.text, cases[i].reason);
    }
}

/* A journal that says less, or more, than there is. */
TEST(commits_cover_the_results) {
    static const char started[] =
        "\"event\":\"run-started\",\"run_id\":\"3f0e6d2c-8f5b-4b58-9a54-2f1f2f9e8b10\",\"part\":1";
    static const char counts[] = "\"units_done\":2,\"units_failed\":0";
    static const struct {
        size_t bytes, said;
        const char *reason;
    } cases[] = {{sizeof staged_results - 8, sizeof staged_results - 8, "is no line of the results"},
                 {0, sizeof staged_results + 99, "is shorter than journal.jsonl says"},
                 {0, (size_t)1 << 40, "at most 268435456 are accepted"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup_free char *name = text_format("commit-%zu", i);
        stage(name);
        uint64_t lines;
        cleanup_free char *entry =
            text_format("\"event\":\"results\",\"bytes\":%zu,\"bytes_crc32c\":\"%08x\",%s", cases[i].said,
                        checksum_crc32c(staged_results, cases[i].bytes), counts);
        const char *const entries[] = {started,
                                       "\"event\":\"node\",\"name\":\"n-1.site.example\"",
                                       "\"event\":\"block-started\",\"block\":1,\"first\":1,\"last\":2",
                                       staged_commands[0],
                                       staged_commands[1],
                                       entry};
        stage_journal(name, entries, sizeof entries / sizeof *entries);
        assert_true(check(name, &lines) < 0);
        assert_says(test_failure.text, cases[i].reason);
    }
}

/* Results of which the journal says nothing; the columns alone are of a run that did nothing. */
TEST(results_without_a_commit) {
    static const char begin[] =
        "\"event\":\"run-started\",\"run_id\":\"3f0e6d2c-8f5b-4b58-9a54-2f1f2f9e8b10\",\"part\":1";
    for (int lines = 0; lines < 2; lines++) {
        cleanup_free char *name = text_format("silent-%d", lines);
        const char *staging = stage(name), *const entries[] = {begin};
        uint64_t traced;
        cleanup_free char *path = file_join(staging, "run.json"),
                          *columns =
                              text_format("%.*s", (int)strcspn(staged_results, "\n") + 1, staged_results);
        char *run = test_read(path, NULL);
        *strstr(strstr(run, "\"units_done\":2"), "2") = '0';
        put(name, "run.json", run);
        if (lines == 0)
            put(name, "results/results.csv", columns);
        stage_journal(name, entries, 1);
        test_forget();
        int r = check(name, &traced);
        assert_int_equal(r < 0, lines);
        assert_says(test_failure.text, lines ? "journal.jsonl vouches for 0" : "");
        assert_int_equal(traced, 0);
    }
}
