/* fit-smpi on the raw calls of a real machine against what was published of it (data/README.md): every factor
 * of the platform with the quantiles of old R, every line of every segment with exact ones. Skipped, aloud,
 * where the data is not. */
#include "engine/foundation/file.h"
#include "engine/foundation/number.h"
#include "engine/plugin/fitting.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PARTS_MAX = 64, FIELDS = 16 };

struct part {
    char name[32];
    double from, estimates[2], errors[2];
    char value_names[16][32]; /* the plugin's texts go with it */
    double values[16];
    size_t value_count;
};

static char folder[] = "/tmp/assay-smpi-XXXXXX";
static const char *data;
static char table_path[8192];
static struct installation installation;
static struct part parts[PARTS_MAX];
static size_t part_count;

static const char *const segments[] = {"Small", "Medium", "Asynchronous", "Detached", "Large"};
static const double froms[] = {0, 1420, 65536, 131072, 400000};

/* gzip -dc FROM (cat, for what is not compressed) >> the table */
static int append(const char *name) {
    char from[8192];
    snprintf(from, sizeof from, "%s/smpi/miriel/%s", data, name);
    pid_t child = fork();
    if (child == 0) {
        int output = open(table_path, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (output >= 0 && dup2(output, STDOUT_FILENO) >= 0)
            execlp("gzip", "gzip", "-dcf", from, (char *)NULL);
        _exit(127);
    }
    int status;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int set_up(void **state) {
    if (!(data = test_data()))
        exit(77);
    static const char *const files[] = {"Isend.csv.gz", "Recv.csv.gz", "PingPong.csv.gz",
                                        "Iprobe.csv",   "Test.csv",    "Wtime.csv"};
    struct failure failure = {0};
    if (!mkdtemp(folder) || installation_init(&installation, test_build(), NULL, &failure) < 0)
        return -1;
    snprintf(table_path, sizeof table_path, "%s/miriel.csv", folder);
    FILE *table = fopen(table_path, "w");
    if (!table || fputs("op,size,start,duration\n", table) < 0 || fclose(table) != 0)
        return -1;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (append(files[i]) != 0)
            return -1;
    return 0;
}

static int tear_down(void **state) {
    installation_clear(&installation);
    return file_remove_tree(folder, NULL);
}

/* ---- Fitting */

static int hear_formula(void *context, const struct fit_formula *formula, struct failure *failure) {
    assert_string_equal(formula->kind, "smpi");
    return 0;
}

static int hear_group(void *context, const struct fit_group *group, struct failure *failure) {
    assert_true(group->part_count <= PARTS_MAX);
    part_count = group->part_count;
    for (size_t i = 0; i < part_count; i++) {
        const struct fit_part *part = &group->parts[i];
        struct part *kept = &parts[i];
        snprintf(kept->name, sizeof kept->name, "%s", part->name);
        kept->from = part->from;
        kept->value_count = part->value_count;
        for (size_t v = 0; v < part->value_count; v++) {
            snprintf(kept->value_names[v], sizeof kept->value_names[v], "%s", part->values[v].name);
            kept->values[v] = part->values[v].value;
        }
        for (size_t t = 0; t < 2; t++) {
            kept->estimates[t] = part->estimates[t].estimate;
            kept->errors[t] = part->estimates[t].standard_error;
        }
    }
    return 0;
}

static int hear_skipped(void *context, uint32_t code, uint64_t rows, const char *reason,
                        struct failure *failure) {
    fail_msg("skipped: %s", reason);
    return 0;
}

/* The settings of data/smpi/miriel/config.xml. */
static void fit(const char *quantile) {
    const char *const settings[] = {"latency=50us",
                                    "bandwidth=1e9",
                                    "break1=1420",
                                    "break2=65536",
                                    "break3=131072",
                                    "break4=400000",
                                    "async-small-thresh=17408",
                                    "send-is-detached-thresh=17408",
                                    quantile};
    const char *path = table_path;
    struct failure failure = {0};
    struct table *table = NULL;
    struct fitting *fitting = NULL;
    const struct fitting_options options = {.method = "smpi",
                                            .response = "duration",
                                            .settings = settings,
                                            .setting_count = sizeof settings / sizeof *settings};
    if (table_stream_open(&path, 1, false, &table, &failure) < 0 ||
        fitting_run(&installation, table, &options, NULL, NULL, &fitting, &failure) < 0)
        fail_msg("%s", failure.text);
    const struct fitting_listener listener = {NULL, hear_formula, hear_group, hear_skipped};
    const struct fitting_listener *const listeners[] = {&listener};
    assert_int_equal(fitting_finish(fitting, listeners, 1, &failure), 0);
    fitting_free(fitting);
    table_close(table);
}

/* ---- Answers */

/* The fields of a line of CSV; quotes only around whole fields. */
static size_t split(char *line, char *fields[static FIELDS]) {
    size_t count = 0;
    for (char *at = line; at && count < FIELDS;) {
        bool quoted = *at == '"';
        fields[count++] = at += quoted;
        at = strpbrk(at, quoted ? "\"" : ",\n");
        if (at)
            *at++ = '\0';
        at = at && quoted ? at + 1 : at;
        at = at && *at ? at : NULL;
    }
    return count;
}

static double number(const char *text) {
    double value = NAN;
    assert_true(number_parse_double(text, strlen(text), &value));
    return value;
}

static const struct part *part_of(const char *name, const char *segment) {
    for (size_t i = 0; i < part_count; i++) {
        if (strcmp(parts[i].name, name) != 0)
            continue;
        if (!isfinite(parts[i].from))
            return &parts[i];
        for (size_t s = 0; s < 5; s++)
            if (strcmp(segments[s], segment) == 0 && parts[i].from == froms[s])
                return &parts[i];
    }
    fail_msg("there is no %s of %s", name, segment);
    return NULL;
}

static double value_of(const struct part *part, const char *name) {
    for (size_t i = 0; i < part->value_count; i++)
        if (strcmp(part->value_names[i], name) == 0)
            return part->values[i];
    fail_msg("%s has no %s", part->name, name);
    return NAN;
}

static void compare(double found, double expected, double tolerance, const char *what, const char *segment) {
    char name[256];
    snprintf(name, sizeof name, "%s of %s", what, segment);
    assert_close(found, expected, tolerance, name);
}

static FILE *open_answers(const char *name) {
    char path[8192], header[1024];
    snprintf(path, sizeof path, "%s/smpi/%s", data, name);
    FILE *answers = fopen(path, "r");
    assert_non_null(answers);
    assert_non_null(fgets(header, sizeof header, answers));
    return answers;
}

static double published_value(const char *property, const char *segment, const char *term) {
    static const char *const words[][2] = {{"os", "Send"},       {"ois", "Isend"},    {"or", "Recv"},
                                           {"iprobe", "Iprobe"}, {"test", "Test"},    {"wtime", "Wtime"},
                                           {"bw-factor", NULL},  {"lat-factor", NULL}};
    size_t i = 0;
    while (i < 8 && strcmp(words[i][0], property) != 0)
        i++;
    assert_true(i < 8);
    if (!words[i][1])
        return value_of(part_of("PingPong", segment), property[0] == 'b' ? "bw_factor" : "lat_factor");
    const struct part *part = part_of(words[i][1], segment);
    if (i < 3)
        assert_true(value_of(part, "charged") == 1);
    return part->estimates[strcmp(term, "slope") == 0];
}

/* ---- Tests */

/* Recomputed to 1e-13; what was printed with 15 digits as far as these go. */
TEST(published) {
    char line[1024], *fields[FIELDS];
    size_t compared = 0;
    fit("quantile=old-r");
    FILE *answers = open_answers("published_check.csv");
    for (; fgets(line, sizeof line, answers); compared++) {
        assert_true(split(line, fields) >= 7);
        double found = published_value(fields[1], fields[2], fields[3]);
        compare(found, number(fields[5]), 1e-13, fields[1], fields[2]);
        compare(found, number(fields[4]), 1e-13, fields[1], fields[2]);
    }
    fclose(answers);
    assert_int_equal(compared, 19);
    /* What is not in the table of answers was published as 0. */
    for (size_t i = 0; i < part_count; i++)
        if (parts[i].from > 0 && isfinite(parts[i].from) && strcmp(parts[i].name, "PingPong") != 0)
            assert_true(value_of(&parts[i], "charged") == 0);
}

TEST(lines) {
    char line[1024], *fields[FIELDS];
    size_t compared = 0;
    fit("quantile=exact");
    FILE *answers = open_answers("segments.csv");
    for (; fgets(line, sizeof line, answers); compared++) {
        assert_true(split(line, fields) >= 13);
        fields[1][strcspn(fields[1], " ")] = '\0';
        const struct part *part = part_of(fields[1], fields[2]);
        assert_true(value_of(part, "rows") == number(fields[5]));
        compare(part->estimates[0], number(fields[6]), 1e-11, "intercept", fields[2]);
        compare(part->estimates[1], number(fields[7]), 1e-11, "slope", fields[2]);
        compare(part->errors[0], number(fields[8]), 1e-11, "error of the intercept", fields[2]);
        compare(part->errors[1], number(fields[9]), 1e-11, "error of the slope", fields[2]);
        compare(value_of(part, "sigma"), number(fields[10]), 1e-11, "sigma", fields[2]);
        compare(value_of(part, "r2"), number(fields[11]), 1e-11, "R2", fields[2]);
        compare(value_of(part, "bic"), number(fields[12]), 1e-11, "BIC", fields[2]);
    }
    fclose(answers);
    assert_int_equal(compared, 20);
}

TEST_GROUP(set_up, tear_down)
