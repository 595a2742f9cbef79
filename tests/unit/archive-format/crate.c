/*
 * ro-crate-metadata.json against RO-Crate 1.1 and Process Run Crate 0.5, on archives of every kind and end;
 * each rule refuses a crate that breaks it; and the pages for people, README.md and ro-crate-preview.html.
 */
#include "archive-format/crate/crate.h"
#include "archive-format/crate/check.h"
#include "engine/documents/json.h"
#include "tests/unit/archive-format/staged-run.h"

#include <sys/stat.h>
#include <unistd.h>

#define MUST CRATE_MUST
#define SHOULD CRATE_SHOULD

/* What the two specifications ask for, by entity and member, as their texts have it; not what the code has.
 */
static const struct {
    const char *entity, *member;
    enum crate_level level;
} asked[] = {
    {"ro-crate-metadata.json", "about", MUST},
    {"ro-crate-metadata.json", "conformsTo", MUST},
    {"./", "name", MUST},
    {"./", "description", MUST},
    {"./", "datePublished", MUST},
    {"./", "license", MUST},
    {"./", "hasPart", MUST},
    {"./", "conformsTo", MUST},
    {"./", "mentions", SHOULD},
    {"CreateAction", "instrument", MUST},
    {"CreateAction", "name", SHOULD},
    {"CreateAction", "description", SHOULD},
    {"CreateAction", "endTime", SHOULD},
    {"CreateAction", "result", SHOULD},
    {"SoftwareApplication", "name", SHOULD},
    {"SoftwareApplication", "version", SHOULD},
    {"File", "name", SHOULD},
    {"File", "description", SHOULD},
    {"File", "encodingFormat", SHOULD},
    {"File", "contentSize", SHOULD},
};

/* ---- Archives of every kind and end */

static const char prediction_json[] =
    "{\"archive_version\":\"1.0\",\"kind\":\"prediction\",\"run_id\":\"3f0e6d2c-8f5b-4b58-9a54-"
    "2f1f2f9e8b10\","
    "\"name\":\"hpl\",\"engine\":{\"name\":\"assay\",\"version\":\"0.1.0\"},\"status\":\"completed\","
    "\"counts\":{},"
    "\"prediction\":{\"plugin\":\"predict-hpl\",\"version\":\"3\",\"warnings\":[\"the model of <dgemm> was "
    "extrapolated\"]}}\n";
static const char import_json[] =
    "{\"archive_version\":\"1.0\",\"kind\":\"import\",\"run_id\":\"3f0e6d2c-8f5b-4b58-9a54-2f1f2f9e8b10\","
    "\"name\":\"dgemm\",\"status\":\"completed\",\"counts\":{\"units_planned\":2,\"units_done\":2},"
    "\"import\":{"
    "\"format\":\"peanut\",\"file\":\"x.zip\",\"notes\":[\"a row was left out\"]}}\n";
static const char failed_json[] =
    "{\"archive_version\":\"1.0\",\"run_id\":\"3f0e6d2c-8f5b-4b58-9a54-2f1f2f9e8b10\",\"name\":\"dgemm\","
    "\"status\":\"failed\",\"error\":\"a node "
    "burnt\",\"counts\":{\"units_planned\":9,\"units_done\":2,\"units_failed\":3,"
    "\"units_flagged\":1},\"nodes_out\":[{\"node\":\"n-2\",\"why\":\"lost\",\"sentence\":\"no "
    "answer\"}],\"slow_nodes\":[{"
    "\"node\":\"n-3\",\"sentence\":\"9 % slower\"}]}\n";

static const struct kind {
    const char *name;
    enum archive_kind kind;
    const char *status, *error, *run; /* run NULL: as it is staged */
    const char *action_status;
} kinds[] = {
    {"complete", ARCHIVE_OF_RUN, "completed", NULL, NULL, "Completed"},
    {"failed", ARCHIVE_OF_RUN, "failed", "a node burnt", failed_json, "Failed"},
    {"interrupted", ARCHIVE_OF_RUN, "interrupted", NULL, NULL, "Failed"},
    {"partial", ARCHIVE_OF_RUN, "partial", NULL, NULL, "Failed"},
    {"prediction", ARCHIVE_OF_PREDICTION, "completed", NULL, prediction_json, "Completed"},
    {"import", ARCHIVE_IMPORTED, "completed", NULL, import_json, "Completed"},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void seal_kind(const struct kind *kind, struct archive_reader **ret) {
    struct archive_description description = describe();
    stage(kind->name);
    description.kind = kind->kind;
    description.status = kind->status;
    description.error = kind->error;
    description.agent = "Josiah Carberry <https://orcid.org/0000-0002-1825-0097>";
    description.measured_by = kind->kind == ARCHIVE_IMPORTED ? "peanut 0.0.1" : NULL;
    if (kind->run)
        put(kind->name, "run.json", kind->run);
    seal_staged(kind->name, &description, ret);
}

static const char *text_of(const struct document_node *entity, const char *key) {
    const struct document_node *value = document_get(entity, key);
    return value && value->text ? value->text : "";
}

/* The entity called ID, or the first of that type. */
static const struct document_node *find(const struct document *crate, const char *id) {
    const struct document_node *graph = document_get(crate->root, "@graph");
    for (size_t i = 0; i < graph->count; i++)
        if (strcmp(text_of(graph->items[i], "@id"), id) == 0 ||
            strcmp(text_of(graph->items[i], "@type"), id) == 0)
            return graph->items[i];
    fail_msg("the crate has no entity '%s'", id);
    return NULL;
}

static const struct document_node *find_named(const struct document *crate, const char *name) {
    const struct document_node *graph = document_get(crate->root, "@graph");
    for (size_t i = 0; i < graph->count; i++)
        if (strcmp(text_of(graph->items[i], "name"), name) == 0)
            return graph->items[i];
    fail_msg("the crate has no entity of the name '%s'", name);
    return NULL;
}

TEST(every_archive_keeps_to_the_rules) {
    for (size_t i = 0; i < KINDS; i++) {
        cleanup(archive_cleanup) struct archive_reader *archive = NULL;
        cleanup(document_cleanup) struct document *crate = NULL;
        seal_kind(&kinds[i], &archive);
        assert_ok(archive_read_document(archive, "ro-crate-metadata.json", &crate, &test_failure));
        assert_ok(crate_check(crate, archive, CRATE_SHOULD, &test_failure));
        assert_ok(archive_check(archive, &test_failure));
        const struct document_node *action = find(crate, "CreateAction");
        cleanup_free char *status = text_format("http://schema.org/%sActionStatus", kinds[i].action_status);
        assert_string_equal(text_of(action, "actionStatus"), status);
        bool failed = strcmp(kinds[i].action_status, "Failed") == 0;
        assert_int_equal(document_get(action, "error") != NULL, failed);
        assert_string_equal(text_of(action, "@id"), "urn:uuid:3f0e6d2c-8f5b-4b58-9a54-2f1f2f9e8b10");
        assert_string_equal(text_of(action, "endTime"), "2025-11-20T10:02:03.456+00:00");
        assert_string_equal(text_of(document_get(action, "agent"), "@id"),
                            "https://orcid.org/0000-0002-1825-0097");
        assert_string_equal(text_of(find(crate, "Person"), "name"), "Josiah Carberry");
    }
}

/* Software, nodes and folders, each with what is known of it. */
TEST(software_and_nodes) {
    static const struct {
        const char *name, *type, *member, *value;
    } expected[] = {
        {"C compiler", "SoftwareApplication", "version", "cc 12.2.0"},
        {"MPI", "SoftwareApplication", "version", "Open MPI 4.1.4"},
        {"dgemm.git", "SoftwareSourceCode", "version", "abcdef0"},
        {"dgemm.git", "SoftwareSourceCode", "url", "https://example.org/dgemm.git"},
        {"dgemm", "SoftwareApplication", "sha256",
         "6666666666666666666666666666666666666666666666666666666666666666"},
        {"libopenblas.so.0", "SoftwareApplication", "version", "libopenblas0"},
        {"Linux", "SoftwareApplication", "version", "6.1.0"},
        {"assay-agent", "SoftwareApplication", "sha256",
         "5555555555555555555555555555555555555555555555555555555555555555"},
        {"nodes/n-1.site.example", "Dataset", "description",
         "Model <T>, 2 physical cores, 8 GiB of memory, Linux 6.1.0"},
    };
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    cleanup(document_cleanup) struct document *crate = NULL;
    seal_kind(&kinds[0], &archive);
    assert_ok(archive_read_document(archive, "ro-crate-metadata.json", &crate, &test_failure));
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const struct document_node *entity = find_named(crate, expected[i].name);
        assert_string_equal(text_of(entity, "@type"), expected[i].type);
        assert_string_equal(text_of(entity, expected[i].member), expected[i].value);
    }
    assert_int_equal(document_get(find(crate, "#assay-0.1.0"), "softwareRequirements")->count, 7);
    assert_string_equal(text_of(find(crate, "experiment/"), "@type"), "Dataset");
}

/* More files than are described one by one, in one folder and in all: what the run refers to is described. */
TEST(many_files) {
    const char *staging = stage("many");
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    cleanup(document_cleanup) struct document *crate = NULL;
    for (size_t i = 0; i < CRATE_FOLDER_FILES_MAX + CRATE_ENTITIES_MAX; i++) {
        size_t folder = i / CRATE_FOLDER_FILES_MAX;
        cleanup_free char *below =
            folder == 0 ? text_format("%s/results", staging) : text_format("%s/logs/a%zu", staging, folder);
        cleanup_free char *path = text_format("%s/other-%zu", below, i);
        if (i % CRATE_FOLDER_FILES_MAX == 0)
            assert_ok(file_make_folders(below, &test_failure));
        cleanup_fclose FILE *file = fopen(path, "w"); /* not synced, as put() does */
        assert_non_null(file);
    }
    seal_staged("many", NULL, &archive);
    assert_ok(archive_read_document(archive, "ro-crate-metadata.json", &crate, &test_failure));
    assert_ok(crate_check(crate, archive, CRATE_SHOULD, &test_failure));
    assert_string_equal(text_of(find(crate, "results/results.csv"), "@type"), "File");
    assert_string_equal(text_of(find(crate, "nodes/"), "@type"), "Dataset");
    assert_true(document_get(crate->root, "@graph")->count < CRATE_ENTITIES_MAX + 64);
}

/* Members of JSON that break their schemas. */
TEST(members_keep_to_their_schemas) {
    static const struct {
        const char *file, *text, *reason;
    } cases[] = {
        {"nodes/n-1.site.example/facts.json", "{\"host_name\":\"n-1\"}", "one with the member kernel_name"},
        {"nodes/n-1.site.example/part-2/clock.json", "{\"start\":null}", "one with the member end"},
        {"nodes/n-1.site.example/controls.json", "{\"found\":[{\"control\":\"x\"}]}", "the member status"},
        {"nodes/n-1.site.example/warm-up.json", "[{\"seconds\":-1}]", "expected one with the member steady"},
        {"nodes/n-1.site.example/raw/facts.json", "{}", ""},
        {"software/versions.json", "{\"nodes\":{\"n-1\":{\"mpi\":1}}}",
         "'mpi' is '1'; expected the type string"},
        {"software/sources.json", "{\"hpl\":{\"written\":\"x\"}}", "one with the member sha256"},
        {"inputs.json", "{\"campaign\":{\"sha256\":\"x\"}}", "the member seed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup_free char *name = text_format("schema-%zu", i);
        cleanup(archive_cleanup) struct archive_reader *archive = NULL;
        stage(name);
        put(name, cases[i].file, cases[i].text);
        seal_staged(name, NULL, &archive);
        test_forget();
        assert_int_equal(archive_check(archive, &test_failure) < 0, cases[i].reason[0] != '\0');
        assert_says(test_failure.text, cases[i].reason);
        if (cases[i].reason[0])
            assert_int_equal(test_failure.kind, FAILURE_VERIFICATION);
    }
}

/* ---- Crates that break a rule */

/* Of the entity called ID in the crate: member MEMBER becomes VALUE (JSON), or goes where that is NULL. */
static const struct {
    const char *id, *member, *value, *reason;
} breaches[] = {
    {"./", "name", "\"\"", "the entity './' has no right 'name'; expected a text"},
    {"./", "datePublished", "\"2025-11-20T10:02:03Z\"", "expected a text such as"},
    {"./", "license", "\"\"", "'license'; expected a reference by @id"},
    {"./", "conformsTo", "{\"@id\":\"https://w3id.org/ro/crate/1.1\"}",
     "expected https://w3id.org/ro/wfrun/process/0.5"},
    {"./", "hasPart", "[{\"@id\":\"run.json\"}]", "is no part of './' by hasPart"},
    {"./", "author", "{\"@id\":\"#nobody\"}", "refers to '#nobody', which is not in '@graph'"},
    {"./", "author", "{\"@id\":\"#agent\",\"name\":\"x\"}", "member 'author' of the entity './' is nested"},
    {"./", "author", "[[\"x\"]]", "is nested"},
    {"./", "@id", "\"run.json\"", "two entities of '@graph' have the @id 'run.json'"},
    {"./", "@id", "\"./x/\"", "refers to './', which is not in '@graph'"},
    {"./", "@type", NULL, "has no '@id' or no '@type'"},
    {"ro-crate-metadata.json", "conformsTo", "{\"@id\":\"https://w3id.org/ro/crate/1.2\"}",
     "https://w3id.org/ro/crate/1.1"},
    {"ro-crate-metadata.json", "about", "{\"@id\":\"run.json\"}", "'about'; expected ./"},
    {"https://w3id.org/ro/wfrun/process/0.5", "@id", "\"https://w3id.org/x\"",
     "has no entity 'https://w3id.org/ro/wfrun"},
    {"urn:uuid:3f0e6d2c-8f5b-4b58-9a54-2f1f2f9e8b10", "instrument", NULL,
     "'instrument'; expected a reference"},
    {"urn:uuid:3f0e6d2c-8f5b-4b58-9a54-2f1f2f9e8b10", "error", "\"x\"",
     "has an error, but its actionStatus is not"},
    {"urn:uuid:3f0e6d2c-8f5b-4b58-9a54-2f1f2f9e8b10", "@type", "\"Thing\"",
     "no entity of the type CreateAction"},
    {"run.json", "contentSize", "\"7\"", "the entity 'run.json' has the contentSize 7; the file has"},
    {"run.json", "sha256", "\"00\"", "has another sha256 than the manifest"},
    {"logs/engine.log", "@id", "\"logs/other.log\"", "refers to 'logs/engine.log', which is not"},
    {"logs/", "@type", "\"File\"", "is no file of the archive"},
    /* Cyclic graphs: a folder that has itself as a part, and two that have each other. */
    {"logs/", "hasPart", "{\"@id\":\"logs/\"}",
     "the entity 'logs/' is no part of './' by hasPart, or has itself as a part"},
    {"logs/", "hasPart", "{\"@id\":\"./\"}", "has itself as a part"},
};

/* CRATE is refused for REASON. */
static void check_changed(const struct archive_reader *archive, cJSON *crate, enum crate_level level,
                          const char *reason) {
    cleanup(text_clear) struct text text;
    cleanup(document_cleanup) struct document *document = NULL;
    text_init(&text, 1 << 20);
    assert_int_equal(json_print(crate, false, &text), 0);
    assert_ok(document_parse_json("crate", text.bytes, text.length, &document, &test_failure));
    int r = crate_check(document, archive, level, &test_failure);
    if (r >= 0 || !strstr(test_failure.text, reason))
        fail_msg("'%s'; expected '%s'", r < 0 ? test_failure.text : "taken", reason);
    assert_int_equal(test_failure.kind, FAILURE_VERIFICATION);
}

static cJSON *parse_crate(struct archive_reader *archive) {
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 20);
    assert_ok(archive_read_member(archive, "ro-crate-metadata.json", &text, &test_failure));
    return cJSON_Parse(text.bytes);
}

/* The first entity of CRATE that has the @id NAME, or that type. */
static cJSON *find_entity(cJSON *crate, const char *name) {
    cJSON *entity;
    cJSON_ArrayForEach(entity, cJSON_GetObjectItem(crate, "@graph")) {
        const cJSON *type = cJSON_GetObjectItem(entity, "@type");
        if (strcmp(cJSON_GetObjectItem(entity, "@id")->valuestring, name) == 0 ||
            strcmp(type->valuestring, name) == 0)
            return entity;
    }
    fail_msg("the crate has no entity '%s'", name);
    return NULL;
}

/* Whatever is asked for: without it the crate is refused, and what only should be there is not missed by the
 * rest. */
TEST(all_that_is_asked_for_is_checked) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    seal_kind(&kinds[0], &archive);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        cleanup(json_cleanup) cJSON *crate = parse_crate(archive);
        cleanup_free char *reason = text_format("has no right '%s'; expected ", asked[i].member);
        cJSON_DeleteItemFromObject(find_entity(crate, asked[i].entity), asked[i].member);
        check_changed(archive, crate, asked[i].level, reason);
        cleanup(text_clear) struct text text;
        cleanup(document_cleanup) struct document *document = NULL;
        text_init(&text, 1 << 20);
        assert_int_equal(json_print(crate, false, &text), 0);
        assert_ok(document_parse_json("crate", text.bytes, text.length, &document, &test_failure));
        if (asked[i].level == CRATE_SHOULD)
            assert_ok(crate_check(document, archive, CRATE_MUST, &test_failure));
    }
}

TEST(breaches_are_found) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    seal_kind(&kinds[0], &archive);
    for (size_t i = 0; i < sizeof breaches / sizeof *breaches; i++) {
        cleanup(json_cleanup) cJSON *crate = parse_crate(archive);
        cJSON *entity = find_entity(crate, breaches[i].id);
        cJSON_DeleteItemFromObject(entity, breaches[i].member);
        if (breaches[i].value)
            cJSON_AddItemToObject(entity, breaches[i].member, cJSON_Parse(breaches[i].value));
        check_changed(archive, crate, CRATE_MUST, breaches[i].reason);
    }
    cleanup(json_cleanup) cJSON *crate = parse_crate(archive);
    cJSON_DeleteItemFromArray(cJSON_GetObjectItem(crate, "@context"), 1);
    check_changed(archive, crate, CRATE_MUST,
                  "'@context' does not have 'https://w3id.org/ro/terms/workflow-run/context'");
    cJSON_DeleteItemFromObject(crate, "@graph");
    check_changed(archive, crate, CRATE_MUST, "the crate is not an object of '@context' and '@graph'");
}

/* Whatever has become of a crate, it is taken or refused with a reason. */
TEST(mutated_crates) {
    enum { ROUNDS = 2000 };
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    cleanup(text_clear) struct text crate;
    size_t parsed = 0;
    seal_kind(&kinds[0], &archive);
    text_init(&crate, 1 << 20);
    assert_ok(archive_read_member(archive, "ro-crate-metadata.json", &crate, &test_failure));
    for (size_t i = 0; i < ROUNDS; i++) {
        cleanup(document_cleanup) struct document *document = NULL;
        size_t from = (size_t)(test_random() * (double)crate.length),
               to = (size_t)(test_random() * (double)crate.length);
        char before = crate.bytes[to];
        crate.bytes[to] = crate.bytes[from];
        test_forget();
        if (document_parse_json("crate", crate.bytes, crate.length, &document, &test_failure) == 0) {
            parsed++;
            if (crate_check(document, archive, CRATE_SHOULD, &test_failure) < 0)
                assert_true(test_failure.kind == FAILURE_VERIFICATION && test_failure.text[0]);
        }
        crate.bytes[to] = before;
    }
    assert_true(parsed > ROUNDS / 4);
}

/* ---- Pages for people */

static void read_page(struct archive_reader *archive, const char *name, struct text *ret) {
    text_init(ret, 1 << 20);
    assert_ok(archive_read_member(archive, name, ret, &test_failure));
}

TEST(pages_begin_with_what_was_found) {
    static const struct {
        size_t kind;
        const char *readme, *preview;
    } cases[] = {
        {0, "# dgemm on n-1\n\n    row,repetition,order,",
         "<li>Flags: no line of results/results.csv has any</li>\n"},
        {0,
         "- Status: completed\n- Flags: no line of results/results.csv has any\n- Failures: no unit failed "
         "or is missing\n",
         "<li>Failures: no unit failed or is missing</li>"},
        {1,
         "- Status: failed, a node burnt\n- Flags: 1 of the lines of results/results.csv have flags\n"
         "- Failures: of 9 units, 3 failed and 4 were not measured\n"
         "- Failures: node n-2 left the run (lost): no answer\n- Flags: node n-3 is slow: 9 % slower\n",
         "<li>Failures: node n-2 left the run (lost): no answer</li>"},
        {4, "- Warning: the model of <dgemm> was extrapolated\n",
         "<li>Warning: the model of &lt;dgemm&gt; was extrapolated</li>"},
        {5, "- Note: a row was left out\n", "<li>Note: a row was left out</li>"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup(archive_cleanup) struct archive_reader *archive = NULL;
        cleanup(text_clear) struct text readme, preview;
        seal_kind(&kinds[cases[i].kind], &archive);
        read_page(archive, "README.md", &readme);
        read_page(archive, "ro-crate-preview.html", &preview);
        assert_says(readme.bytes, cases[i].readme);
        assert_says(preview.bytes, cases[i].preview);
        assert_int_equal(strncmp(preview.bytes, "<!DOCTYPE html>\n", 16), 0);
        assert_null(strstr(preview.bytes, "<script"));
        assert_says(preview.bytes, "<a href=\"nodes/n-1.site.example/facts.json\">");
        assert_null(strstr(preview.bytes, "href=\"ro-crate"));
    }
}

/* Whatever a run calls itself, and whatever it found, is text in the page. */
TEST(previews_are_escaped) {
    static const char hostile[] = "<script>alert('&\"')</script>";
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    cleanup(text_clear) struct text preview;
    struct archive_description description = describe();
    stage("escaped");
    description.name = description.text = description.command = description.agent = description.license =
        hostile;
    description.result = "</pre><script>x</script>\x1b[31m\n";
    description.status = "failed";
    description.error = hostile;
    seal_staged("escaped", &description, &archive);
    assert_ok(archive_check(archive, &test_failure));
    read_page(archive, "ro-crate-preview.html", &preview);
    assert_says(preview.bytes, "<h1>&lt;script&gt;alert(&#39;&amp;&quot;&#39;)&lt;/script&gt;</h1>");
    assert_says(preview.bytes, "<pre>&lt;/pre&gt;&lt;script&gt;x&lt;/script&gt;\\x1b[31m\n</pre>");
    assert_null(strstr(preview.bytes, "<script"));
}

/* A folder of links to its parents is refused by name, and nothing follows them. */
TEST(links_to_parents_are_not_followed) {
    const char *staging = stage("loop"), *target = test_path("loop.zip");
    const struct archive_description description = describe();
    char sha256[HASH_HEX_SIZE];
    assert_int_equal(mkdir(test_path("loop/experiment/loops"), 0700), 0);
    for (char i = 'a'; i <= 'f'; i++) {
        cleanup_free char *link = text_format("loop/experiment/loops/%c", i);
        assert_int_equal(symlink("..", test_path(link)), 0);
    }
    assert_true(archive_seal(staging, target, &description, sha256, &test_failure) < 0);
    assert_says(test_failure.text, "cannot be archived: it is a symbolic link");
    assert_false(file_exists(target));
}
