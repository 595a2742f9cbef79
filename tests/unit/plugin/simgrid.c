/* Models as SimGrid is to be told of them, and as C headers: units, what is refused, what is escaped. That
 * SimGrid loads it and simulates the same is tests/integration/plugin/simgrid.sh's. */
#include "engine/plugin/kernel-header.h"
#include "engine/plugin/simgrid-platform.h"
#include "tests/test.h"

static struct simgrid_network network; /* large */
static struct failure failure;
static const struct simgrid_base nothing = {NAN, NAN, false};
static char groups[1 << 17]; /* of the model being made, in JSON */

/* ---- Models */

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...) {
    va_list arguments;
    size_t length = strlen(groups);
    va_start(arguments, format);
    vsnprintf(groups + length, sizeof groups - length, format, arguments);
    va_end(arguments);
}

static void add_terms(double intercept, double slope) {
    add("\"terms\":[{\"name\":\"1\",\"unit\":null,\"estimate\":%.17g,\"standard_error\":null,\"t\":null,"
        "\"p\":null},{\"name\":\"size\",\"unit\":null,\"estimate\":%.17g,\"standard_error\":null,\"t\":null,"
        "\"p\":null}],\"covariance\":null,\"domain\":[]",
        intercept, slope);
}

/* A group with parts, which are then added. */
static void begin_parts(void) {
    groups[0] = '\0';
    add("{\"labels\":{},\"n\":4,\"notes\":[],\"parts\":[");
}

/* VALUES: "\"charged\":1". The line is 1 + size/2, in the response's unit. */
static void add_part(const char *name, double from, const char *values) {
    add("%s{\"kind\":\"segment\",\"name\":\"%s\",\"from\":%.17g,%s%s",
        groups[strlen(groups) - 1] == '[' ? "" : ",", name, from, values, values[0] ? "," : "");
    add_terms(1, 0.5);
    add("}");
}

/* A segment of a piecewise model. */
static void add_segment(double from, double to, double intercept, double slope) {
    add("%s{\"kind\":\"segment\"", groups[strlen(groups) - 1] == '[' ? "" : ",");
    if (isfinite(from))
        add(",\"from\":%.17g", from);
    if (isfinite(to))
        add(",\"to\":%.17g", to);
    add(",");
    add_terms(intercept, slope);
    add("}");
}

/* A group of one part with a label of the column node. */
static void add_group(const char *label, double intercept, double slope) {
    add("%s{\"labels\":{\"node\":\"%s\"},\"n\":4,\"notes\":[],", groups[0] ? "," : "", label);
    add_terms(intercept, slope);
    add("}");
}

/* KIND and what else stands before the groups. */
static struct model *parse(const char *kind, const char *unit, const char *by) {
    static char text[2 * sizeof groups];
    struct model *model = NULL;
    snprintf(text, sizeof text,
             "{\"assay_model\":1,\"kind\":%s,\"response\":{\"name\":\"duration\",\"unit\":\"%s\"},"
             "\"formula\":[{\"name\":\"1\",\"unit\":null,\"factors\":[]},"
             "{\"name\":\"size\",\"unit\":null,\"factors\":[{\"factor\":\"size\",\"power\":1}]}],"
             "\"factors\":[{\"name\":\"size\",\"unit\":\"By\"}],\"weights\":null,\"by\":[%s],"
             "\"origin\":{\"plugin\":\"p\",\"version\":\"1\",\"engine\":\"1\",\"created\":"
             "\"2024-01-01T00:00:00Z\",\"rows\":4,\"inputs\":[]},\"groups\":[%s],\"skipped\":[]}",
             kind, unit, by, groups);
    if (model_parse("m.json", text, strlen(text), &model, &failure) < 0)
        fail_msg("%s", failure.text);
    return model;
}

static struct model *parse_parts(const char *kind, const char *unit) {
    char whole[64];
    add("]}");
    snprintf(whole, sizeof whole, "\"%s\",\"over\":\"size\"", kind);
    return parse(whole, unit, "");
}

static void add_protocol(void) {
    add_part("protocol", 0,
             "\"latency\":1e-6,\"bandwidth\":1e9,\"async_small_thresh\":0,"
             "\"send_is_detached_thresh\":65536");
}

static void assert_said(int code, const char *words) {
    assert_int_equal(code, -EINVAL);
    if (!strstr(failure.text, words))
        fail_msg("'%s'; expected '%s'", failure.text, words);
}

static void refuse_network(struct model *model, const char *group, const struct simgrid_base *base,
                           const char *words) {
    assert_said(simgrid_network_read(model, group, base, &network, &failure), words);
    model_free(model);
}

/* ---- Networks */

TEST(smpi) {
    begin_parts();
    add_part("Isend", 0, "\"charged\":1");
    add_part("Isend", 10, "\"charged\":0");
    add_part("PingPong", 10, "\"lat_factor\":3,\"bw_factor\":4"); /* in any order */
    add_part("PingPong", 0, "\"lat_factor\":0,\"bw_factor\":2");
    add_part("Test", 0, "");
    add_protocol();
    struct model *model = parse_parts("smpi", "us");
    assert_int_equal(simgrid_network_read(model, NULL, &nothing, &network, &failure), 0);
    const struct simgrid_table *table = &network.tables[SIMGRID_OIS];
    assert_int_equal(table->count, 2);
    assert_true(table->entries[0].values[0] == 1e-6 && table->entries[0].values[1] == 0.5e-6);
    assert_true(table->entries[1].from == 10 && table->entries[1].values[0] == 0);
    assert_true(network.tables[SIMGRID_LATENCY_FACTOR].entries[0].values[0] == 0);
    assert_true(network.tables[SIMGRID_BANDWIDTH_FACTOR].entries[1].values[0] == 4);
    assert_int_equal(network.tables[SIMGRID_OS].count, 0);
    assert_true(network.test == 1e-6 && isnan(network.iprobe) && network.latency == 1e-6);
    const struct simgrid_base same = {1e-6, 1e9, false}, other = {1e-6, 2e9, false};
    assert_int_equal(simgrid_network_read(model, NULL, &same, &network, &failure), 0);
    refuse_network(model, NULL, &other, "relative to the bandwidth 1000000000, not 2000000000");
}

TEST(smpi_refused) {
    static const struct {
        const char *values, *unit, *words;
    } cases[] = {
        {"\"lat_factor\":-1e-9,\"bw_factor\":2", "s", "the latency factor from 0 byte on is -1e-09"},
        {"\"lat_factor\":1,\"bw_factor\":0", "s", "the bandwidth factor from 0 byte on is 0; expected more"},
        {"\"lat_factor\":1,\"bw_factor\":null", "s", "from 0 byte on the model's time does not grow"},
        {"\"lat_factor\":1,\"bw_factor\":-2", "s", "the bandwidth factor from 0 byte on is -2"},
        {"\"lat_factor\":1", "s", "from 0 byte on the model's time does not grow"},
        {"\"lat_factor\":1,\"bw_factor\":2", "Hz", "'duration' is in Hz, which is no time"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_parts();
        add_part("PingPong", 0, cases[i].values);
        add_protocol();
        refuse_network(parse_parts("smpi", cases[i].unit), NULL, &nothing, cases[i].words);
    }
    begin_parts();
    add_part("PingPong", 0, "\"lat_factor\":1,\"bw_factor\":2");
    refuse_network(parse_parts("smpi", "s"), NULL, &nothing, "'protocol' does not tell the latency");
    begin_parts();
    add_protocol();
    refuse_network(parse_parts("smpi", "s"), NULL, &nothing, "has no part 'PingPong'");
    begin_parts();
    add_part("PingPong", 3e9, "\"lat_factor\":1,\"bw_factor\":2");
    add_protocol();
    refuse_network(parse_parts("smpi", "s"), NULL, &nothing,
                   "begins at 3000000000 byte; SimGrid takes sizes");
    begin_parts();
    add_part("PingPong", 7, "\"lat_factor\":1,\"bw_factor\":2");
    add_part("PingPong", 7, "\"lat_factor\":1,\"bw_factor\":2");
    add_protocol();
    refuse_network(parse_parts("smpi", "s"), NULL, &nothing, "two segments begin at 7 byte");
    begin_parts();
    for (int i = 0; i < SIMGRID_SEGMENTS_MAX + 1; i++)
        add_part("PingPong", i, "\"lat_factor\":1,\"bw_factor\":2");
    add_protocol();
    refuse_network(parse_parts("smpi", "s"), NULL, &nothing, "more than 256 segments");
}

TEST(messages) {
    begin_parts();
    add_segment(-INFINITY, 1000.5, 2, 1e-3);
    add_segment(1000.5, INFINITY, 6, 5e-4);
    struct model *model = parse_parts("piecewise", "us");
    assert_int_equal(simgrid_network_read(model, NULL, &nothing, &network, &failure), 0);
    const struct simgrid_entry *latency = network.tables[SIMGRID_LATENCY_FACTOR].entries;
    const struct simgrid_entry *bandwidth = network.tables[SIMGRID_BANDWIDTH_FACTOR].entries;
    assert_true(fabs(network.latency - 2e-6) < 1e-20 && fabs(network.bandwidth - 2e9) < 1e-5);
    assert_true(latency[0].from == 0 && latency[0].values[0] == 1 && latency[1].from == 1001);
    assert_true(fabs(latency[1].values[0] - 3) < 1e-15 && fabs(bandwidth[0].values[0] - 0.5) < 1e-15);
    const struct simgrid_base base = {1e-6, 1e9, true};
    assert_int_equal(simgrid_network_read(model, NULL, &base, &network, &failure), 0);
    assert_true(fabs(latency[1].values[0] - 3) < 1e-15 && fabs(bandwidth[1].values[0] - 4) < 1e-15);
    model_free(model);
    begin_parts();
    add_segment(-INFINITY, 10, 2, 1e-3);
    add_segment(10, INFINITY, 6, -5e-4);
    const struct simgrid_base given = {1e-6, 1e9, false};
    model = parse_parts("piecewise", "us");
    assert_said(simgrid_network_read(model, NULL, &nothing, &network, &failure),
                "expected both to be more than 0");
    refuse_network(model, NULL, &given, "the bandwidth factor from 10 byte on is -2");
    groups[0] = '\0';
    add_group("a", 1, 2);
    add_group("b", 1, 4);
    model = parse("\"linear\"", "s", "\"node\"");
    assert_int_equal(simgrid_network_read(model, "b", &nothing, &network, &failure), 0);
    assert_true(network.bandwidth == 0.25);
    assert_said(simgrid_network_read(model, "bb", &nothing, &network, &failure), "has no group 'bb'");
    refuse_network(model, NULL, &nothing, "has 2 groups, the first 'a'; say which with --group");
    refuse_network(parse("\"maximum\"", "s", "\"node\""), NULL, &nothing,
                   "a model of kind 'maximum' tells of no network");
}

/* ---- Hosts */

TEST(hosts) {
    struct simgrid_hosts found = {0};
    groups[0] = '\0';
    add_group("x", 1, 2);
    add_group("y", 1, 4);
    struct model *model = parse("\"linear\"", "ms", "\"node\"");
    assert_int_equal(simgrid_hosts_read(model, NULL, 3, &found, &failure), 0);
    assert_int_equal(found.count, 2);
    assert_string_equal(found.hosts[1].name, "y");
    assert_true(fabs(found.hosts[0].speed - 1500) < 1e-9 && fabs(found.hosts[1].speed - 750) < 1e-9);
    simgrid_hosts_clear(&found);
    assert_said(simgrid_hosts_read(model, "nodes", 2, &found, &failure), "did you mean 'node'?");
    model_free(model);
    groups[0] = '\0';
    add_group("x", 1, 0);
    model = parse("\"linear\"", "ms", "\"node\"");
    assert_said(simgrid_hosts_read(model, NULL, 2, &found, &failure), "'x' takes 0 s for a unit of size");
    simgrid_hosts_clear(&found);
    model_free(model);
    model = parse("\"linear\"", "J", "\"node\"");
    assert_said(simgrid_hosts_read(model, NULL, 2, &found, &failure), "which is no time");
    model_free(model);
}

/* ---- Platforms */

static struct simgrid_platform usual(void) {
    return (struct simgrid_platform){.prefix = "n",
                                     .suffix = "",
                                     .radical = "0-3",
                                     .speed = 1e9,
                                     .cores = 1,
                                     .latency = 1e-6,
                                     .bandwidth = 1e9,
                                     .loopback_latency = NAN,
                                     .loopback_bandwidth = NAN,
                                     .backbone_latency = NAN,
                                     .backbone_bandwidth = NAN};
}

static void refuse_platform(const struct simgrid_platform *platform, const char *words) {
    struct text text;
    text_init(&text, 1 << 16);
    assert_said(simgrid_platform_write(platform, &text, &failure), words);
    assert_int_equal(text.length, 0);
    text_clear(&text);
}

TEST(lists_and_trees) {
    static const char *const lists[] = {"",      "a",     "-1",   "3-1",        "1,,2",
                                        "0-3,",  "1-2-3", "0- 3", "0-99999999", "0-999999,1000000",
                                        "1-2 ;", "0x10",  ",1",   "1234567890"};
    static const char *const trees[] = {"",
                                        "2",
                                        "2;2,2;1,1",
                                        "2;2,2;1,1;1,1;",
                                        "1;4;1;1,1",
                                        "2;2,2;1,0;1,1",
                                        "9;4;1;1",
                                        "2;2,2,1;1,1;1,1",
                                        "x;4;1;1",
                                        "2;2,2;1,1;1,",
                                        "1;999999999;1;1",
                                        "0;;;"};
    struct simgrid_platform platform = usual();
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        platform.radical = lists[i];
        refuse_platform(&platform, "is no list of hosts");
    }
    platform.radical = "0-3";
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        platform.fat_tree = trees[i];
        refuse_platform(&platform, "is no fat tree");
    }
    platform.fat_tree = "2;2,3;1,1;1,1";
    refuse_platform(&platform, "has 6 hosts; the platform has 4");
    platform.fat_tree = "2;2,2;1,1;1,1";
    platform.backbone_latency = 1e-7;
    refuse_platform(&platform, "the backbone has no bandwidth (--backbone-bandwidth)");
    platform.backbone_bandwidth = 1e9;
    refuse_platform(&platform, "a fat tree has no backbone");
    platform.fat_tree = NULL;
    platform.backbone_latency = 2e-6;
    refuse_platform(&platform, "the backbone's latency of 2e-06 s is more than the 1e-06 s");
}

TEST(names_and_comments) {
    char longer[SIMGRID_NAME_MAX + 2];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    const char *const bad[] = {"a b", "a\n", "\x7f", "\xff", longer};
    struct simgrid_platform platform = usual();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        platform.prefix = bad[i];
        refuse_platform(&platform, "cannot be a name of SimGrid");
    }
    struct simgrid_host one = {.name = "", .speed = 1e9};
    const struct simgrid_hosts none = {&one, 1, "m*n*k"};
    platform = usual();
    platform.hosts = &none;
    refuse_platform(&platform, "the host '' cannot be a name");
    const char *const origins[] = {"a--b --> \x01 \xff", "---"};
    struct text text;
    text_init(&text, 1 << 16);
    platform = usual();
    platform.prefix = "'<&>\"\xc3\xa9";
    platform.origins = origins;
    platform.origin_count = 2;
    assert_int_equal(simgrid_platform_write(&platform, &text, &failure), 0);
    assert_non_null(strstr(text.bytes, "<!-- a-b -> ? ? -->\n<!-- - -->\n"));
    assert_non_null(strstr(text.bytes, "prefix=\"'&lt;&amp;&gt;&quot;\xc3\xa9\""));
    assert_int_equal(text_invalid_utf8(text.bytes, text.length), text.length);
    text_clear(&text);
    text_init(&text, 100);
    assert_int_equal(simgrid_platform_write(&platform, &text, &failure), -EFBIG);
    text_clear(&text);
}

/* ---- Headers */

TEST(headers) {
    groups[0] = '\0';
    add_group("a\\\"?\\u0001*/", 1, 2);
    struct model *model = parse("\"linear\"", "ns", "\"node\"");
    struct kernel kernel = {"k", model, "from a*/b\n /*c\xc3\xa9 ?\?/\\"};
    struct text text;
    text_init(&text, 1 << 16);
    assert_int_equal(kernel_header_write(&kernel, 1, true, &text, &failure), 0);
    assert_non_null(strstr(text.bytes, "from a*?b? /?c?? ?\?\?\?\n"));
    assert_non_null(strstr(text.bytes, "    \"a\\042\\077\\001*/\",\n"));
    assert_non_null(strstr(text.bytes, "{1e-09, 2e-09}"));
    static const char *const names[] = {"", "1", "K", "_k", "a-b", "\xc3\xa9"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        kernel.name = names[i];
        assert_said(kernel_header_write(&kernel, 1, true, &text, &failure), "cannot be a part of names in C");
    }
    model_free(model);
    kernel = (struct kernel){"k", parse("\"linear\"", "W", "\"node\""), ""};
    assert_said(kernel_header_write(&kernel, 1, true, &text, &failure), "which is no time");
    model_free((struct model *)kernel.model);
    groups[0] = '\0';
    add("{\"labels\":{},\"n\":4,\"notes\":[],\"noise\":{\"kind\":\"mixture\",\"distribution\":\"normal\","
        "\"method\":"
        "\"maximum-likelihood\",\"components\":"
        "[{\"weight\":1,\"mean\":0,\"sigma\":1}]},");
    add_terms(1, 2);
    add("}");
    kernel.model = model = parse("\"linear\"", "s", "");
    assert_said(kernel_header_write(&kernel, 1, true, &text, &failure), "--no-noise leaves it out");
    assert_int_equal(kernel_header_write(&kernel, 1, false, &text, &failure), 0);
    model_free(model);
    text_clear(&text);
}
