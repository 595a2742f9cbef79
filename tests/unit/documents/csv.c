/* CSV rows: read, refused with line and column, and written. That what is written reads the same: fuzz-csv.
 */
#include "engine/documents/csv.h"

#include "engine/documents/csv-reader.h"
#include "engine/foundation/file.h"
#include "tests/pieces.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Reading ------------------------------------------------------------------------------------ */

/* All rows as text: fields in brackets, each with its column, "q" when it was quoted; rows begin with their
 * line. */
static void dump(struct csv_reader *reader, struct text *text, struct failure *failure) {
    const struct csv_field *fields;
    int r;
    while ((r = csv_next(reader, &fields, failure)) == 1) {
        text_printf(text, "%zu:", csv_line(reader));
        for (size_t i = 0; i < csv_column_count(reader); i++) {
            text_printf(text, " %u%s[", fields[i].column, fields[i].quoted ? "q" : "");
            text_append(text, fields[i].bytes, fields[i].length);
            text_append_character(text, ']');
        }
        text_append_character(text, '\n');
    }
    if (r < 0) {
        char sentence[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE];
        text_printf(text, "%s\n", failure_describe(failure, sentence, sizeof sentence));
    }
}

/* Reads BYTES whole, and in pieces of every small size through buffers of several, and expects the same each
 * time. */
static void check_as(int separator, const char *bytes, size_t length, const char *expected) {
    static const size_t capacities[] = {1, 2, 3, 7, 16, 64, 4096};
    for (size_t size = 0; size <= 9; size++)
        for (size_t c = 0; c < sizeof capacities / sizeof *capacities; c++) {
            struct text text;
            text_init(&text, 1 << 20);
            struct pieces pieces = {bytes, length, size ? size : length};
            struct csv_reader *reader = NULL;
            struct failure failure = {0};
            int r =
                csv_reader_open("r.csv", read_piece, &pieces, capacities[c], separator, &reader, &failure);
            if (r == 0) {
                dump(reader, &text, &failure);
            } else {
                char sentence[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE];
                assert_null(reader);
                text_printf(&text, "%s\n", failure_describe(&failure, sentence, sizeof sentence));
            }
            if (failure.kind != FAILURE_NONE)
                assert_int_equal(failure.kind, FAILURE_INPUT);
            assert_string_equal(text.bytes, expected);
            csv_close(reader);
            text_clear(&text);
        }
}

static void check_bytes(const char *bytes, size_t length, const char *expected) {
    check_as(CSV_STRICT, bytes, length, expected);
}

static void check(const char *csv, const char *expected) {
    check_bytes(csv, strlen(csv), expected);
}

static void check_foreign(int separator, const char *csv, const char *expected) {
    check_as(separator, csv, strlen(csv), expected);
}

TEST(plain_rows) {
    check("a,b\n1,2\n3,4\n", "2: 1[1] 3[2]\n3: 1[3] 3[4]\n");
    check("a,b\n1,2\n3,4", "2: 1[1] 3[2]\n3: 1[3] 3[4]\n"); /* no newline at the end */
    check("a,b\r\n1,2\r\n3,4\r\n", "2: 1[1] 3[2]\n3: 1[3] 3[4]\n");
    check("a,b\n,\n1,\n,2\n", "2: 1[] 2[]\n3: 1[1] 3[]\n4: 1[] 2[2]\n");
    check("a,b\n1,", "2: 1[1] 3[]\n");
    check("a,b\n", "");
    check("a,b", "");
    check("a\n\n\nx\n", "2: 1[]\n3: 1[]\n4: 1[x]\n"); /* one column: an empty line is an empty field */
    check("a,b\n 1 ,\t2\n", "2: 1[ 1 ] 5[\t2]\n");    /* blanks belong to the field */
    check("\xef\xbb\xbf"
          "a,b\n1,2\n",
          "2: 1[1] 3[2]\n");
    check("é,b\nü,€\n", "2: 1[ü] 4[€]\n"); /* columns count bytes */
    check("a,b\n'x','y'\n", "2: 1['x'] 5['y']\n");
}

TEST(quoted_rows) {
    check("\"a\",\"b\"\n\"1\",\"2\"\n", "2: 1q[1] 5q[2]\n");
    check("a,b\n\"x,y\",\"say \"\"hi\"\"\"\n", "2: 1q[x,y] 7q[say \"hi\"]\n");
    check("a,b\n\"\",\"\"\"\"\n", "2: 1q[] 4q[\"]\n");
    check("a,b,c\n1,\"two\nlines\",3\n4,5,6\n", "2: 1[1] 3q[two\nlines] 8[3]\n4: 1[4] 3[5] 5[6]\n");
    check("a,b\n\"\r\n\r\n\",\"x\"\r\n1,2\r\n", "2: 1q[\r\n\r\n] 3q[x]\n5: 1[1] 3[2]\n");
    check("a,b\n\"é\n\",\"\xf0\x9f\x98\x80\"\"\"", "2: 1q[é\n] 3q[\xf0\x9f\x98\x80\"]\n");
    check("\"a\nb\",\"c\"\"\"\n1,2\n", "3: 1[1] 3[2]\n");
    check("a\n\"\"\n", "2: 1q[]\n");
}

TEST(refused_headers) {
    check("", "r.csv:1:1: the table is empty; expected a header row\n");
    check("\xef\xbb\xbf", "r.csv:1:1: the table is empty; expected a header row\n");
    check("a,b,a\n", "r.csv:1:5: two columns are called 'a'\n");
    check("a,\"a\"\n", "r.csv:1:3: two columns are called 'a'\n");
    check("a,,c\n", "r.csv:1:3: column 2 has no name, expected one\n");
    check("\n", "r.csv:1:1: column 1 has no name, expected one\n");
    check("a,\"\"\n", "r.csv:1:3: column 2 has no name, expected one\n");
    check("a,\"b\n", "r.csv:1:3: a quote that is not closed, expected another before the end of the file\n");
    check_bytes("a,\0", 3, "r.csv:1:3: a NUL byte, expected text\n");
    check_bytes("\xef\xbb", 2, "r.csv:1:1: a byte that is not UTF-8, expected UTF-8 text\n");
}

TEST(refused_rows) {
    check("a,b,c\n1,2,3\n4,5\n",
          "2: 1[1] 3[2] 5[3]\nr.csv:3:3: a row that ends with field 2, expected 3 fields\n");
    check("a,b\n1\n", "r.csv:2:1: a row that ends with field 1, expected 2 fields\n");
    check("a,b\n\n", "r.csv:2:1: an empty line, expected 2 fields\n");
    check("a,b\n\"\"\n", "r.csv:2:1: a row that ends with field 1, expected 2 fields\n");
    check("a,b\n1,2,3\n", "r.csv:2:5: a row of more than 2 fields, as many as the header has\n");
    check("a,b\n1,2,\n", "r.csv:2:5: a row of more than 2 fields, as many as the header has\n");
    check("a,b\n\"x\ny\",1,2\n", "r.csv:3:6: a row of more than 2 fields, as many as the header has\n");
    check("a,b\n1,x\"y\n",
          "r.csv:2:4: a quote inside a field, expected the whole field in quotes and this one doubled\n");
    check("a,b\n1, \"y\"\n",
          "r.csv:2:4: a quote inside a field, expected the whole field in quotes and this one doubled\n");
    check("a,b\n\"x\"y,1\n",
          "r.csv:2:4: text after a closing quote, expected a comma or the end of the row\n");
    check("a,b\n\"x\" ,1\n",
          "r.csv:2:4: text after a closing quote, expected a comma or the end of the row\n");
    check("a,b\n\"l1\nl2\"y,1\n",
          "r.csv:3:4: text after a closing quote, expected a comma or the end of the row\n");
    check("a,b\n1,\"open\n\n",
          "r.csv:2:3: a quote that is not closed, expected another before the end of the file\n");
    check("a,b\n\"x\n\",\"open",
          "r.csv:3:3: a quote that is not closed, expected another before the end of the file\n");
    check("a,b\n1,2\r3,4\n",
          "r.csv:2:4: a carriage return without a newline behind it, expected LF or CRLF\n");
    check("a,b\n1,2\r", "r.csv:2:4: a carriage return without a newline behind it, expected LF or CRLF\n");
    check("a,b\n1,\"2\"\r",
          "r.csv:2:6: a carriage return without a newline behind it, expected LF or CRLF\n");
    check_bytes("a,b\n1,x\0y\n", 10, "r.csv:2:4: a NUL byte, expected text\n");
    check_bytes("a,b\n1,\"x\n\"\"\0\"\n", 14, "r.csv:3:3: a NUL byte, expected text\n");
    check("a,b\n1,caf\xe9\n", "r.csv:2:6: a byte that is not UTF-8, expected UTF-8 text\n");
    check("a,b\n1,\"q\"\"\nx\xe2\x82\"\n", "r.csv:3:2: a byte that is not UTF-8, expected UTF-8 text\n");
    check("a,b\n\xff,\xff\n", "r.csv:2:1: a byte that is not UTF-8, expected UTF-8 text\n");
}

/* ---- Tables of other programs -------------------------------------------------------------------- */

TEST(separators) {
    check_foreign(0, "a,b\n1,2\n", "2: 1[1] 3[2]\n");
    check_foreign(0, "a;b\n1,5;2,5\n", "2: 1[1,5] 5[2,5]\n");
    check_foreign(0, "a\tb\n1\t\n", "2: 1[1] 3[]\n");
    check_foreign(',', "a b\n1 2\n", "2: 1[1 2]\n");
    check_foreign(0, "\"a,b,c\";d\n\"1,2,3\";\"x;y\"\n", "2: 1q[1,2,3] 9q[x;y]\n");
    check_foreign(0, "\"a;\nb\",c\n1,2\n", "3: 1[1] 3[2]\n");
    /* The next row decides between two of which the header has as many. */
    check_foreign(0, "time, s;power, W\n1;2\n", "2: 1[1] 3[2]\n");
    check_foreign(0, "a,b;c\n", "");
    check_foreign(';', "a,b;c\n1;2\n", "2: 1[1] 3[2]\n");
    check_foreign('\t', "a,b\n1,2\n", "2: 1[1,2]\n");
    check_foreign(0, "a;b\n\"x\"y;1\n",
                  "r.csv:2:4: text after a closing quote, expected a separator or the end of the row\n");
}

TEST(foreign_rows) {
    /* R: write.csv; pandas: to_csv */
    check_foreign(0, "\"\",\"a\",\"b\"\n\"1\",0.5,NA\n", "2: 1q[1] 5[0.5] 9[NA]\n");
    check_foreign(0, "\xef\xbb\xbf,a\r\n0,1\r\n", "2: 1[0] 3[1]\n");
    check_foreign(0, "# by hand, on \"dahu\n\n#\n  \na, b\n1, 2\n", "6: 1[1] 4[2]\n");
    check_foreign(0, "a,b\n 1 ,\t2 \n \" x \" , \"y\"\"\" \n", "2: 2[1] 6[2]\n3: 2q[ x ] 10q[y\"]\n");
    check_foreign(0, "a\tb\n 1\t \t\n", "2: 2[1] 5[]\n"); /* here tabs are no blanks */
    check_foreign(0, "a,b\n\n1,2\n \t\r\n\n3,4\n\n", "3: 1[1] 3[2]\n6: 1[3] 3[4]\n");
    check_foreign(0, "a,b,,\n1,2,,\n3,4\n5,6, ,,,\n", "2: 1[1] 3[2]\n3: 1[3] 3[4]\n4: 1[5] 3[6]\n");
    check_foreign(0, "a,b\n1,2,\n#3,4\n", "2: 1[1] 3[2]\n3: 1[#3] 4[4]\n");
    check_foreign(0, "a;b\n1;2;3\n", "r.csv:2:5: a row of more than 2 fields, as many as the header has\n");
    check_foreign(0, "a;b\n\n1\n", "r.csv:3:1: a row that ends with field 1, expected 2 fields\n");
    check_foreign(
        0, "a,b\n1,x\"y\n",
        "r.csv:2:4: a quote inside a field, expected the whole field in quotes and this one doubled\n");
    check_foreign(0, "a,b\n\"1\" \"2\",3\n",
                  "r.csv:2:5: text after a closing quote, expected a comma or the end of the row\n");
    check_foreign(0, "a,,c\n", "r.csv:1:3: column 2 has no name, expected one\n");
    check_foreign(0, "# only a comment\n\n", "r.csv:1:1: the table is empty; expected a header row\n");
    check_foreign(0, "# only a comment", "r.csv:1:1: the table is empty; expected a header row\n");
    check_foreign(0, "# c\na,b\n1,\xff\n", "r.csv:3:3: a byte that is not UTF-8, expected UTF-8 text\n");
}

TEST(blanks_separate) {
    check_foreign(0, "a b\n1 2\n", "2: 1[1] 3[2]\n");
    check_foreign(0, "a\n1 2\n", "2: 1[1 2]\n"); /* one column: the header has no blank */
    check_foreign(0, "  a   b\n 1 \t 2  \n\n# c\n3 NA\n", "2: 2[1] 6[2]\n5: 1[3] 3[NA]\n");
    check_foreign(0, "\"a b\" c\n\"x y\" 2\n", "2: 1q[x y] 7[2]\n");
    check_foreign(0, "a b\n1 2 3\n",
                  "r.csv:1:1: 'a b' is not a name for each of 3 columns; expected names without "
                  "blanks, or two blanks between names\n");
    check_foreign(0, "a b\n1 2\n3\n",
                  "2: 1[1] 3[2]\nr.csv:3:1: a row that ends with field 1, expected 2 fields\n");
}

static void check_names(const char *csv, const char *names) {
    cleanup(text_clear) struct text found;
    text_init(&found, 1 << 10);
    for (size_t size = 1; size < 100; size += 7) {
        struct pieces pieces = {csv, strlen(csv), size};
        struct csv_reader *reader = NULL;
        found.length = 0;
        assert_int_equal(csv_reader_open("r", read_piece, &pieces, 1, 0, &reader, NULL), 0);
        for (size_t i = 0; i < csv_column_count(reader); i++) {
            const char *unit = csv_column_unit(reader, i);
            text_printf(&found, "%s%s|%s", i ? ", " : "", csv_column_name(reader, i), unit ? unit : "");
        }
        const struct csv_field *fields;
        assert_int_equal(csv_next(reader, &fields, NULL), 1);
        if (fields[0].bytes[0] != '1')
            fail_msg("%s: %zu: %.*s", csv, size, (int)fields[0].length, fields[0].bytes);
        csv_close(reader);
        assert_string_equal(found.bytes, names);
    }
}

/* OSU's micro-benchmarks, gnuplot, numpy.savetxt; and units as they stand in headers. */
TEST(headers) {
    check_names("\n# OSU MPI Latency Test v7.1\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n1    "
                "1.45\n2   1.5\n",
                "Size|, Avg Latency|us");
    check_names("# Size          Bandwidth (MB/s)        Messages/s\n1    1.45   3\n2   1.5 4\n",
                "Size|, Bandwidth|MBy/s, Messages/s|");
    check_names("N NB run (s)\n1 2 3\n", "N|, NB|, run|s");
    check_names("N  NB  run time (s)\n1 2 3\n", "N|, NB|, run time|s");
    check_names("# x,y\n1,2\n", "x|, y|");
    check_names("# one comment\n1,2\n1,3\n", "1|, 2|"); /* not as many names */
    check_names("t (us),t (ms),n_bytes,bus_s,x (mean)\n1,2,3,4,5\n",
                "t|us, t (ms)|ms, n_bytes|By, bus_s|, x (mean)|");
    check_names("\"t, us\",u in ms\n1,2\n", "t|us, u|ms");
}

TEST(missing) {
    static const char *const words[] = {"", "NA", "na", "N/A", "NaN", "nan", "null", "NULL", "-", "None"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_true(csv_is_missing(words[i], strlen(words[i])));
    static const char *const others[] = {"0", "--", "N", "NAN1", "inf", " ", "nothing"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(csv_is_missing(others[i], strlen(others[i])));
    assert_true(csv_is_missing("NA,1", 2));
}

/* Reads the output of COMMAND from a pipe, which has far less room than it needs. */
static void check_pipe(const char *command, const char *failing) {
    int ends[2], status;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    struct csv_reader *reader = NULL;
    struct failure failure = {0};
    const struct csv_field *fields;
    double value = 0, sum = 0;
    int r = csv_open_descriptor(ends[0], "the pipe", 0, NULL, 0, &reader, &failure);
    while (r == 0 && (r = csv_next(reader, &fields, &failure)) == 1) {
        r = csv_number(reader, 1, &value, &failure);
        sum += value;
    }
    csv_close(reader);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (failing) {
        assert_true(r < 0);
        assert_int_equal(failure.kind, FAILURE_INPUT);
        assert_non_null(strstr(failure.text, failing));
    } else {
        assert_int_equal(r, 0);
        assert_true(sum == 300000.0 * 300001 / 2);
    }
}

TEST(pipes) {
    static const char rows[] = "{ echo 'x;y'; seq 300000 | sed 's/^/a;/'; }";
    char command[256];
    check_pipe(rows, NULL);
    snprintf(command, sizeof command, "%s | gzip -1", rows);
    check_pipe(command, NULL);
    /* Files that were put one behind the other. */
    check_pipe("{ echo 'x;y' | gzip; seq 300000 | sed 's/^/a;/' | gzip -1; }", NULL);
    snprintf(command, sizeof command, "%s | gzip -1 | head -c 100000", rows);
    check_pipe(command, "damaged or incomplete gzip data");
    /* Damage is found in what it becomes, or by gzip. */
    snprintf(command, sizeof command, "%s | gzip -1 | { head -c 50000; printf '%%01000d' 0; }", rows);
    check_pipe(command, "");
}

/* ---- Limits ------------------------------------------------------------------------------------- */

static void check_big(const struct text *csv, const char *expected_place, const char *expected) {
    struct csv_reader *reader = NULL;
    struct failure failure = {0};
    int r = csv_open_memory("r.csv", csv->bytes, csv->length, &reader, &failure);
    const struct csv_field *fields;
    while (r == 0 && (r = csv_next(reader, &fields, &failure)) == 1)
        r = 0;
    csv_close(reader);
    if (!expected) {
        assert_int_equal(r, 0);
        return;
    }
    assert_int_equal(r, -EINVAL);
    assert_string_equal(failure.place, expected_place);
    assert_string_equal(failure.text, expected);
}

static void append_many(struct text *text, char character, size_t count) {
    char *end;
    assert_int_equal(text_reserve(text, count, &end), 0);
    memset(end, character, count);
    text->length += count;
    end[count] = '\0';
}

TEST(field_limit) {
    for (int quoted = 0; quoted < 2; quoted++)
        for (size_t extra = 0; extra < 2; extra++) {
            struct text csv;
            text_init(&csv, 64 << 20);
            text_append_string(&csv, quoted ? "a,b\n1,\"" : "a,b\n1,");
            append_many(&csv, 'x', CSV_FIELD_MAX + extra);
            text_append_string(&csv, quoted ? "\"\n" : "\n");
            check_big(&csv, "r.csv:2:3", extra ? "a field of more than 1048576 bytes" : NULL);
            text_clear(&csv);
        }
    /* Found long before a quote that never closes has filled the memory. */
    struct text csv;
    text_init(&csv, 64 << 20);
    text_append_string(&csv, "a,b\n1,\"");
    append_many(&csv, 'x', 40 << 20);
    check_big(&csv, "r.csv:2:3", "a field of more than 1048576 bytes");
    text_clear(&csv);
}

TEST(row_and_column_limits) {
    cleanup(text_clear) struct text csv;
    text_init(&csv, 64 << 20);
    for (int i = 0; i < 20; i++)
        text_printf(&csv, "%sc%d", i ? "," : "", i);
    for (int i = 0; i < 20; i++) {
        text_append_string(&csv, i ? "," : "\n");
        append_many(&csv, 'x', 900000);
    }
    check_big(&csv, "r.csv:2", "a row of more than 16777216 bytes");
    text_reset(&csv);
    for (int i = 0; i < CSV_COLUMNS_MAX; i++)
        text_printf(&csv, "%sc%d", i ? "," : "", i);
    check_big(&csv, "", NULL);
    text_append_string(&csv, ",more");
    check_big(&csv, "r.csv:1:23467", "more than 4096 columns");
}

/* ---- Opening and asking -------------------------------------------------------------------------- */

static int64_t fail_to_read(void *context, char *buffer, size_t room) {
    int *calls = context;
    if ((*calls)++ > 0)
        return -EIO;
    memcpy(buffer, "a,b\n1,", 6);
    return 6;
}

TEST(read_errors) {
    struct csv_reader *reader = NULL;
    struct failure failure = {0};
    const struct csv_field *fields;
    int calls = 0;
    assert_int_equal(csv_open_function("member.csv", fail_to_read, &calls, &reader, &failure), 0);
    assert_int_equal(csv_next(reader, &fields, &failure), -EIO);
    assert_int_equal(failure.kind, FAILURE_SYSTEM);
    assert_string_equal(failure.text, "cannot read 'member.csv': Input/output error");
    /* No row is made of what is left. */
    assert_true(csv_next(reader, &fields, &failure) < 0);
    csv_close(reader);
    csv_close(NULL);
}

TEST(files) {
    char path[] = "/tmp/assay-csv.XXXXXX";
    int descriptor = mkstemp(path);
    assert_int_equal(file_write_all(descriptor, "a,b\n1,x\n", 8), 0);
    close(descriptor);
    struct csv_reader *reader = NULL;
    struct failure failure = {0};
    assert_int_equal(csv_open(path, &reader, &failure), 0);
    assert_string_equal(csv_file(reader), path);
    const struct csv_field *fields;
    assert_int_equal(csv_next(reader, &fields, &failure), 1);
    assert_int_equal(csv_next(reader, &fields, &failure), 0);
    assert_int_equal(csv_next(reader, &fields, &failure), 0);
    csv_close(reader);
    reader = NULL;
    /* "-" is standard input, which stays open. */
    int saved = dup(STDIN_FILENO);
    descriptor = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(dup2(descriptor, STDIN_FILENO), STDIN_FILENO);
    close(descriptor);
    assert_int_equal(csv_open("-", &reader, &failure), 0);
    assert_string_equal(csv_file(reader), "standard input");
    assert_int_equal(csv_next(reader, &fields, &failure), 1);
    csv_close(reader);
    assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
    if (saved >= 0) {
        dup2(saved, STDIN_FILENO);
        close(saved);
    }
    unlink(path);
    assert_int_equal(csv_open(path, &reader, &failure), -ENOENT);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    assert_int_equal(csv_open("/tmp", &reader, &failure), -EISDIR);
    assert_int_equal(failure.kind, FAILURE_INPUT);
}

TEST(columns) {
    static const char csv[] = "host,core,duration\n";
    struct csv_reader *reader = NULL;
    struct failure failure = {0};
    assert_int_equal(csv_open_memory("r.csv", csv, sizeof csv - 1, &reader, &failure), 0);
    assert_int_equal(csv_column_count(reader), 3);
    assert_string_equal(csv_column_name(reader, 1), "core");
    size_t column = 42;
    assert_int_equal(csv_find_column(reader, "duration", &column, &failure), 0);
    assert_int_equal(column, 2);
    assert_int_equal(csv_find_column(reader, "durations", &column, &failure), -EINVAL);
    assert_int_equal(column, 2);
    assert_string_equal(failure.place, "r.csv");
    assert_string_equal(
        failure.text,
        "no column 'durations'; did you mean 'duration'? (the columns are 'host', 'core', 'duration')");
    assert_int_equal(csv_find_column(reader, "xyz", &column, &failure), -EINVAL);
    assert_string_equal(failure.text, "no column 'xyz', expected one of 'host', 'core', 'duration'");
    csv_close(reader);
}

TEST(numbers) {
    static const char csv[] =
        "name,duration\nx,5.803674000e-01\nx,0.5x\nx,\n\"a\nb\nc\",1e999\nx, 1\nx,\"-7\"\n";
    struct csv_reader *reader = NULL;
    struct failure failure = {0};
    const struct csv_field *fields;
    double value = 42;
    assert_int_equal(csv_open_memory("results.csv", csv, sizeof csv - 1, &reader, &failure), 0);
    assert_int_equal(csv_next(reader, &fields, &failure), 1);
    assert_int_equal(csv_number(reader, 1, &value, &failure), 0);
    assert_true(value == 5.803674000e-01);
    static const char *const expected[][2] = {
        {"results.csv:3:3", "column 'duration' is '0.5x', expected a number"},
        {"results.csv:4:3", "column 'duration' is empty, expected a number"},
        {"results.csv:7:4", "column 'duration' is '1e999', expected a number"},
        {"results.csv:8:3", "column 'duration' is ' 1', expected a number"}};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(csv_next(reader, &fields, &failure), 1);
        assert_int_equal(csv_number(reader, 1, &value, &failure), -EINVAL);
        assert_int_equal(failure.kind, FAILURE_INPUT);
        assert_string_equal(failure.place, expected[i][0]);
        assert_string_equal(failure.text, expected[i][1]);
    }
    assert_int_equal(csv_next(reader, &fields, &failure), 1);
    assert_int_equal(csv_number(reader, 1, &value, &failure), 0); /* quotes do not make it less of a number */
    assert_true(value == -7);
    assert_int_equal(csv_failure(reader, 0, &failure, "%d of %s", 3, "x"), -EINVAL);
    assert_string_equal(failure.place, "results.csv:9:1");
    assert_string_equal(failure.text, "3 of x");
    csv_close(reader);
}

/* ---- Writing ------------------------------------------------------------------------------------- */

static void check_field(const char *bytes, size_t length, const char *expected) {
    cleanup(text_clear) struct text text;
    text_init(&text, 100);
    assert_int_equal(csv_append_field(&text, true, bytes, length), 0);
    assert_string_equal(text.bytes, expected);
    text_reset(&text);
    assert_int_equal(csv_append_field(&text, false, bytes, length), 0);
    assert_int_equal(text.bytes[0], ',');
    assert_string_equal(text.bytes + 1, expected);
}

TEST(fields) {
    check_field("", 0, "");
    check_field("plain text", 10, "plain text");
    check_field("a,b", 3, "\"a,b\"");
    check_field("a\nb", 3, "\"a\nb\"");
    check_field("a\r", 2, "\"a\r\"");
    check_field("\"", 1, "\"\"\"\"");
    check_field("say \"hi\"", 8, "\"say \"\"hi\"\"\"");
    check_field("é€", 5, "é€");
    check_field("a\0b", 3,
                "a\xef\xbf\xbd"
                "b");
    check_field("\xff\"\xc3", 3, "\"\xef\xbf\xbd\"\"\xef\xbf\xbd\"");
    check_field("\xef\xbb\xbfx", 4, "\"\xef\xbb\xbfx\"");
}

TEST(numbers_written) {
    struct text text;
    text_init(&text, 1000);
    csv_append_int64(&text, true, INT64_MIN);
    csv_append_int64(&text, false, INT64_MAX);
    csv_append_double(&text, false, 0x1.3333333333334p-2);
    csv_append_double(&text, false, NAN);
    csv_append_double(&text, false, INFINITY);
    csv_append_double(&text, false, 3);
    assert_string_equal(text.bytes, "-9223372036854775808,9223372036854775807,0.30000000000000004,,,3");
    text_clear(&text);
    text_init(&text, 4);
    assert_int_equal(csv_append_int64(&text, true, 1234), 0);
    assert_int_equal(csv_append_int64(&text, false, 5), -EFBIG);
    assert_int_equal(csv_append_field(&text, false, "x", 1), -EFBIG);
    assert_string_equal(text.bytes, "1234");
    text_reset(&text);
    assert_int_equal(csv_append_field(&text, true, "a,b", 3), -EFBIG);
    assert_int_equal(text.length, 0);
    assert_string_equal(text.bytes, "");
    text_clear(&text);
}
