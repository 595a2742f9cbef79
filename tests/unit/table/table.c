/* Tables in memory: what is read of CSV files, in which units, which rows stay, and where they stand. */
#include "engine/table/table.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* The table of the first COUNT files with NUMBERS and CATEGORIES (ended by NULL). */
static struct table *load(size_t count, const char *const *numbers, const char *const *categories,
                          const char *where) {
    const char *const paths[] = {test_path("a.csv"), test_path("b.csv")};
    struct table *table = NULL;
    struct table_selection selection = {.numbers = numbers, .categories = categories, .where = where};
    while (numbers[selection.number_count])
        selection.number_count++;
    while (categories && categories[selection.category_count])
        selection.category_count++;
    assert_ok(table_open(paths, count, &(struct table_options){.hash = true}, &table, &test_failure));
    assert_ok(table_load(table, &selection, &test_failure));
    return table;
}

TEST(columns_and_levels) {
    test_put("a.csv", "host,size,time\ndahu-10,1,0.5\ndahu-2,2,\ndahu-10,4,2.5\n");
    const char *const numbers[] = {"time", "size", NULL}, *const categories[] = {"host", NULL};
    cleanup(table_cleanup) struct table *table = load(1, numbers, categories, NULL);
    assert_int_equal(table->rows, 3);
    assert_true(table->numbers[0].values[0] == 0.5 && isnan(table->numbers[0].values[1]));
    assert_true(table->numbers[1].values[2] == 4);
    assert_int_equal(table->categories[0].level_count, 2);
    assert_string_equal(table->categories[0].levels[0], "dahu-2"); /* natural order */
    assert_int_equal(table->categories[0].codes[0], 1);
    assert_int_equal(table->categories[0].codes[1], 0);
    assert_int_equal(strlen(table->inputs[0].sha256), 64);
}

static void expect_levels(const struct table_category *category, const char *expected) {
    char found[256] = "";
    for (size_t i = 0; i < category->level_count; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", i ? " " : "",
                 category->levels[i]);
    assert_string_equal(found, expected);
}

/* A column that is all numbers has values as levels, over all files; another has texts. */
TEST(levels_by_value) {
    test_put("a.csv", "NB,rank,t\n1e+05,7,1\n-0,007,2\n,7,3\n");
    test_put("b.csv", "NB,rank,t\n100000.0,x,4\n0,7,5\n1e5,7,6\n");
    const char *const numbers[] = {"t", NULL}, *const categories[] = {"NB", "rank", NULL};
    cleanup(table_cleanup) struct table *table = load(2, numbers, categories, NULL);
    expect_levels(&table->categories[0], "0 100000 ");
    expect_levels(&table->categories[1], "007 7 x");
    static const uint32_t codes[] = {1, 0, 2, 1, 0, 1};
    assert_memory_equal(table->categories[0].codes, codes, sizeof codes);
    cleanup(table_cleanup) struct table *some = load(2, numbers, NULL, "NB == '1e5' and rank != 'x'");
    assert_int_equal(some->rows, 2);
}

/* The names of columns with and without their units, in each file as it has them. */
TEST(columns_with_units) {
    test_put("a.csv", "size (B),duration [\u00b5s],x (mean),t_us,t_ms\n1,5,1,1,1\n");
    test_put("b.csv", "duration_ms,size_bytes,x (mean),t_us,t_ms\n2,3,1,1,1\n");
    const char *const numbers[] = {"duration", "size (bytes)", NULL};
    cleanup(table_cleanup) struct table *table = load(2, numbers, NULL, NULL);
    assert_string_equal(table->numbers[0].unit, "us");
    assert_string_equal(table->numbers[1].unit, "By");
    assert_true(table->numbers[0].values[0] == 5 && table->numbers[0].values[1] == 2000);
    assert_true(table->numbers[1].values[1] == 3);
    static const char *const names[][2] = {{"duration", "duration"},    {"duration (us)", "duration"},
                                           {"duration_us", "duration"}, {"duration in \u03bcs", "duration"},
                                           {"duration (ms)", NULL},     {"size", "size"},
                                           {"x", "x (mean)"},           {"t_us", "t_us"},
                                           {"t [ms]", "t_ms"},          {"t", NULL}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct column *found = table_find(table, names[i][0]);
        if (!found != !names[i][1] || (found && strcmp(found->name, names[i][1]) != 0))
            fail_msg("'%s' is '%s'", names[i][0], found ? found->name : "none");
        assert_string_equal(table_column_name(table, names[i][0]), names[i][1] ? names[i][1] : names[i][0]);
    }
}

TEST(expressions_and_condition) {
    test_put("a.csv", "m,n,time\n1,2,8\n2,2,8\n3,2,6\n");
    const char *const numbers[] = {"1 / (m * n)", "time", NULL};
    cleanup(table_cleanup) struct table *table = load(1, numbers, NULL, "m != 2");
    assert_int_equal(table->rows, 2);
    assert_int_equal(table->rows_not_matching, 1);
    assert_true(table->numbers[0].values[0] == 0.5 && table->numbers[0].values[1] == 1.0 / 6);
    const struct table_input *input;
    uint64_t line;
    assert_true(table_place(table, 1, &input, &line));
    assert_int_equal(line, 4); /* the third row of the file */
    assert_string_equal(input->path, test_path("a.csv"));
}

TEST(several_files_are_one_table) {
    test_put("a.csv", "host,time\nb,1\n");
    test_put("b.csv", "time,host,more\n2,a,x\n3,b,y\n");
    const char *const numbers[] = {"time", NULL}, *const categories[] = {"host", TABLE_FILE_COLUMN, NULL};
    cleanup(table_cleanup) struct table *table = load(2, numbers, categories, NULL);
    assert_int_equal(table->rows, 3);
    assert_true(table->numbers[0].values[2] == 3);
    assert_int_equal(table->categories[0].codes[0], 1);
    assert_int_equal(table->categories[0].codes[1], 0);
    assert_string_equal(table->categories[1].levels[table->categories[1].codes[2]], "b.csv");
    assert_int_equal(table->inputs[1].rows, 2);
}

TEST(a_file_given_twice_counts_once) {
    test_put("a.csv", "x,y\n1,2\n");
    const char *const paths[] = {test_path("a.csv"), test_path("a.csv")};
    cleanup(table_cleanup) struct table *table = NULL;
    assert_ok(table_open(paths, 2, NULL, &table, &test_failure));
    assert_int_equal(table->input_count, 1);
    assert_int_equal(table->note_count, 1);
    assert_says(table->notes[0], "is the same file as");
}

/* It is opened once, and its writer closes it first: of a pipe that is opened and closed before it is read,
 * the writer ends, and what it has written is lost. */
TEST(a_pipe_is_read_once) {
    const char *fifo = test_path("pipe");
    cleanup_close int closings = inotify_init1(IN_CLOEXEC);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_true(inotify_add_watch(closings, fifo, IN_CLOSE) >= 0);
    if (fork() == 0) {
        int out = open(fifo, O_WRONLY);
        dprintf(out, "x,y\n");
        for (int i = 0; i < 1000; i++)
            dprintf(out, "%d,%d\n", i, 2 * i);
        _exit(0);
    }
    const char *const paths[] = {fifo}, *const numbers[] = {"y"};
    cleanup(table_cleanup) struct table *table = NULL;
    assert_ok(table_open(paths, 1, NULL, &table, &test_failure));
    assert_ok(
        table_load(table, &(struct table_selection){.numbers = numbers, .number_count = 1}, &test_failure));
    assert_int_equal(table->rows, 1000);
    assert_true(table->numbers[0].values[999] == 1998);
    struct inotify_event first;
    assert_int_equal(read(closings, &first, sizeof first), sizeof first);
    assert_true(first.mask & IN_CLOSE_WRITE);
}

static int read_number(const char *content, const char *number) {
    const char *const paths[] = {test_put("a.csv", content)}, *const numbers[] = {number};
    cleanup(table_cleanup) struct table *table = NULL;
    const struct table_selection selection = {.numbers = numbers, .number_count = 1};
    int r = table_open(paths, 1, NULL, &table, &test_failure);
    return r < 0 ? r : table_load(table, &selection, &test_failure);
}

TEST(refusals) {
    static const struct {
        const char *content, *number, *says;
    } cases[] = {{"time,size\n1,2\n", "tim", "did you mean 'time'"},
                 {"time\nfast\n", "time", "fast"},
                 {"{ \"assay_model\": 2 }\n", "time", "this file is JSON, not a table"},
                 {"time\n1\n", "time +", "expected"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_error(read_number(cases[i].content, cases[i].number), -EINVAL, cases[i].says);
}
