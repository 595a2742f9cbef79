/* Tables in memory: what is read of CSV files, in which units, which rows stay, and where they stand. */
#include "engine/table/table.h"
#include "engine/foundation/cleanup.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/assay-test-table-XXXXXX";
static char path[4][128];

static int set_up(void **state) {
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 4; i++)
        snprintf(path[i], sizeof path[i], "%s/%c.csv", folder, 'a' + i);
    return 0;
}

static int tear_down(void **state) {
    for (int i = 0; i < 4; i++)
        unlink(path[i]);
    return rmdir(folder);
}
TEST_GROUP(set_up, tear_down)

static void write_file(int i, const char *text) {
    FILE *file = fopen(path[i], "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* The table of the first COUNT files with NUMBERS and CATEGORIES (ended by NULL). */
static struct table *load(size_t count, const char *const *numbers, const char *const *categories,
                          const char *where) {
    const char *paths[] = {path[0], path[1], path[2], path[3]};
    struct table *table = NULL;
    struct failure failure = {0};
    struct table_selection selection = {.numbers = numbers, .categories = categories, .where = where};
    while (numbers[selection.number_count])
        selection.number_count++;
    while (categories && categories[selection.category_count])
        selection.category_count++;
    if (table_open(paths, count, &(struct table_options){.hash = true}, &table, &failure) < 0 ||
        table_load(table, &selection, &failure) < 0)
        fail_msg("%s: %s", failure.place, failure.text);
    return table;
}

TEST(columns_and_levels) {
    write_file(0, "host,size,time\ndahu-10,1,0.5\ndahu-2,2,\ndahu-10,4,2.5\n");
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

TEST(expressions_and_condition) {
    write_file(0, "m,n,time\n1,2,8\n2,2,8\n3,2,6\n");
    const char *const numbers[] = {"1 / (m * n)", "time", NULL};
    cleanup(table_cleanup) struct table *table = load(1, numbers, NULL, "m != 2");
    assert_int_equal(table->rows, 2);
    assert_int_equal(table->rows_elsewhere, 1);
    assert_true(table->numbers[0].values[0] == 0.5 && table->numbers[0].values[1] == 1.0 / 6);
    const struct table_input *input;
    uint64_t line;
    assert_true(table_place(table, 1, &input, &line));
    assert_int_equal(line, 4); /* the third row of the file */
    assert_string_equal(input->path, path[0]);
}

TEST(several_files_are_one_table) {
    write_file(0, "host,time\nb,1\n");
    write_file(1, "time,host,more\n2,a,x\n3,b,y\n");
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
    write_file(0, "x,y\n1,2\n");
    const char *const paths[] = {path[0], path[0]};
    cleanup(table_cleanup) struct table *table = NULL;
    struct failure failure = {0};
    assert_int_equal(table_open(paths, 2, NULL, &table, &failure), 0);
    assert_int_equal(table->input_count, 1);
    assert_int_equal(table->note_count, 1);
    assert_says(table->notes[0], "is the same file as");
}

TEST(a_pipe_is_read_once) {
    char fifo[160];
    snprintf(fifo, sizeof fifo, "%s/pipe", folder);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    if (fork() == 0) {
        int out = open(fifo, O_WRONLY);
        dprintf(out, "x,y\n");
        for (int i = 0; i < 1000; i++)
            dprintf(out, "%d,%d\n", i, 2 * i);
        _exit(0);
    }
    const char *const paths[] = {fifo}, *const numbers[] = {"y"};
    cleanup(table_cleanup) struct table *table = NULL;
    struct failure failure = {0};
    assert_int_equal(table_open(paths, 1, NULL, &table, &failure), 0);
    assert_int_equal(
        table_load(table, &(struct table_selection){.numbers = numbers, .number_count = 1}, &failure), 0);
    assert_int_equal(table->rows, 1000);
    assert_true(table->numbers[0].values[999] == 1998);
    unlink(fifo);
}

static void assert_refused(const char *content, const char *number, const char *expected) {
    write_file(0, content);
    const char *const paths[] = {path[0]}, *const numbers[] = {number};
    cleanup(table_cleanup) struct table *table = NULL;
    struct failure failure = {0};
    int r = table_open(paths, 1, NULL, &table, &failure);
    if (r == 0)
        r = table_load(table, &(struct table_selection){.numbers = numbers, .number_count = 1}, &failure);
    assert_true(r < 0);
    assert_says(failure.text, expected);
}

TEST(refusals) {
    assert_refused("time,size\n1,2\n", "tim", "did you mean 'time'");
    assert_refused("time\nfast\n", "time", "fast");
    assert_refused("{ \"assay_model\": 2 }\n", "time", "this is JSON, not a table");
    assert_refused("time\n1\n", "time +", "expected");
}
