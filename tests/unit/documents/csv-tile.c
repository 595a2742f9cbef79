/* The kernels for tiles of plain rows: each gives what plain C gives, and that is what the rows say. */
#include "engine/documents/csv-tile.h"
#include "engine/documents/csv-number.h"
#include "engine/documents/csv-scan.h"
#include "engine/foundation/text.h"
#include "tests/test.h"
#include "tests/unit/documents/missing-number.h"

static uint64_t random_state = 29;

static uint64_t draw(void) {
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* A text in a buffer as a reader has it: with bytes that may be read, but mean nothing, on both sides. */
static struct csv_tile tile_of(const char *text, size_t length, size_t columns, char *room, uint32_t *ends) {
    memset(room, "9,\n.e"[draw() % 5], length + 2 * CSV_SCAN_PADDING);
    memcpy(room + CSV_SCAN_PADDING, text, length);
    return (struct csv_tile){.at = room + CSV_SCAN_PADDING, .columns = columns, .ends = ends};
}

enum { TEXT_MOST = 1 << 16 };

static char room[TEXT_MOST + 2 * CSV_SCAN_PADDING];
static uint32_t ends[CSV_TILE_ROOM], expected_ends[CSV_TILE_ROOM];

/* ---- Ends of fields */

static size_t index_of(const struct csv_tile_kernel *kernel, const char *text, size_t columns) {
    struct csv_tile tile = tile_of(text, strlen(text), columns, room, ends);
    kernel->index(&tile, strlen(text));
    return tile.rows;
}

TEST(plain_rows) {
    size_t count;
    const struct csv_tile_kernel *const *kernels = csv_tile_kernels(&count);
    assert_string_equal(kernels[0]->name, "plain C");
    for (size_t k = 0; k < count; k++) {
        assert_int_equal(index_of(kernels[k], "1,22\n,\r\n5,6\n", 2), 3);
        const uint32_t expected[] = {UINT32_MAX, 1, 4, 5, 7, 9, 11};
        assert_memory_equal(ends, expected, sizeof expected);
        struct csv_tile tile = {room + CSV_SCAN_PADDING, 2, 3, ends};
        assert_int_equal(csv_tile_begin(ends), 0);
        assert_int_equal(csv_tile_end(tile.at, ends, false), 1);
        assert_int_equal(csv_tile_begin(ends + 3), 6);
        assert_int_equal(csv_tile_end(tile.at, ends + 3, true), 6); /* without the carriage return */
        assert_int_equal(index_of(kernels[k], "\n\r\n\n", 1), 3);
    }
}

TEST(rows_that_are_not_plain) {
    size_t count;
    const struct csv_tile_kernel *const *kernels = csv_tile_kernels(&count);
    for (size_t k = 0; k < count; k++) {
        /* Up to the first odd byte. */
        assert_int_equal(index_of(kernels[k], "1,2\n3,4\n5,\"6\"\n7,8\n", 2), 2);
        assert_int_equal(index_of(kernels[k], "1,2\n3,\xc3\xa9\n", 2), 1);
        assert_int_equal(index_of(kernels[k], "1,2\n3\r,4\n", 2), 1);
        assert_int_equal(index_of(kernels[k], "1,2\n3,4\r\r\n", 2), 1);
        assert_int_equal(index_of(kernels[k], "1,2\n3,4\t\n", 2), 1);
        /* Rows that are too short or too long: none can be trusted. */
        assert_int_equal(index_of(kernels[k], "1,2\n3\n5,6\n", 2), 0);
        assert_int_equal(index_of(kernels[k], "1,2\n3,4,5\n6\n", 2), 0);
        assert_int_equal(index_of(kernels[k], "1\n2,3\n,4\n", 2), 0);
    }
}

/* Random texts, made mostly of what matters; a NUL would end the comparison with strlen early. */
TEST(kernels_find_the_same) {
    size_t count;
    const struct csv_tile_kernel *const *kernels = csv_tile_kernels(&count);
    char text[4096];
    for (int round = 0; round < 20000; round++) {
        size_t columns = 1 + draw() % 5, length = 0, fields = 0, rows = draw() % 400;
        bool returns = draw() % 2;
        while (rows > 0 && length + 16 < sizeof text) {
            for (size_t i = draw() % 9; i > 0; i--)
                text[length++] = draw() % 2000 ? (char)('0' + draw() % 10) : "\"\r\t\xff"[draw() % 4];
            if (++fields % columns != 0) {
                text[length++] = ',';
                continue;
            }
            if (returns)
                text[length++] = '\r';
            text[length++] = draw() % 3000 ? '\n' : ',';
            rows--;
        }
        text[length++] = '\n';
        struct csv_tile expected = tile_of(text, length, columns, room, expected_ends);
        kernels[0]->index(&expected, length);
        for (size_t k = 1; k < count; k++) {
            struct csv_tile tile = {expected.at, columns, 0, ends};
            kernels[k]->index(&tile, length);
            assert_int_equal(tile.rows, expected.rows);
            assert_memory_equal(ends, expected_ends, (1 + tile.rows * columns) * sizeof *ends);
        }
    }
}

/* More fields than fit, and rows of more bytes than a tile has. */
TEST(bounds) {
    size_t count;
    const struct csv_tile_kernel *const *kernels = csv_tile_kernels(&count);
    for (size_t k = 0; k < count; k++)
        for (size_t columns = 1; columns <= CSV_TILE_ENDS; columns = columns * 3 + 1) {
            struct csv_tile tile = {room + CSV_SCAN_PADDING, columns, 0, ends};
            for (size_t i = 0; i < TEXT_MOST; i++)
                room[CSV_SCAN_PADDING + i] = (i + 1) % columns == 0 ? '\n' : ',';
            kernels[k]->index(&tile, TEXT_MOST / columns * columns);
            assert_true(tile.rows * columns <= CSV_TILE_ENDS);
            assert_true(tile.rows * columns + columns > CSV_TILE_ENDS - 128);
        }
}

/* ---- Numbers */

/* What a column of one text a row is read as, by every kernel. */
static void check_numbers(const char *const *texts, size_t rows, bool missing_is_nan, bool last) {
    size_t count;
    const struct csv_tile_kernel *const *kernels = csv_tile_kernels(&count);
    struct text csv;
    text_init(&csv, TEXT_MOST);
    for (size_t row = 0; row < rows; row++)
        text_printf(&csv, last ? "x,%s\r\n" : "%s,x\n", texts[row]);
    struct csv_tile tile = tile_of(csv.bytes, csv.length, 2, room, ends);
    kernels[0]->index(&tile, csv.length);
    assert_int_equal(tile.rows, rows);
    size_t expected = 0;
    double value;
    while (expected < rows &&
           (missing_is_nan ? parse_or_missing(texts[expected], strlen(texts[expected]), &value)
                           : number_parse_double(texts[expected], strlen(texts[expected]), &value)))
        expected++;
    for (size_t k = 0; k < count; k++) {
        double numbers[64];
        assert_int_equal(kernels[k]->numbers(&tile, last, missing_is_nan, numbers), expected);
        for (size_t row = 0; row < expected; row++) {
            (void)parse_or_missing(texts[row], strlen(texts[row]), &value);
            if (isnan(value) ? !isnan(numbers[row]) : memcmp(&value, &numbers[row], sizeof value) != 0)
                fail_msg("%s: '%s' is %a, expected %a", kernels[k]->name, texts[row], numbers[row], value);
        }
    }
    text_clear(&csv);
}

TEST(numbers) {
    static const char *const texts[] = {"0",
                                        "1",
                                        "12345678",
                                        "99999999",
                                        "00000000",
                                        "123456789",
                                        "-5",
                                        "-0",
                                        "0.5",
                                        "5.",
                                        ".5",
                                        "1e-05",
                                        "1e5",
                                        "1.5E+07",
                                        "1e-300",
                                        "-.5e-03",
                                        "9007199254740993",
                                        "0.1",
                                        "+3",
                                        "1234567.123456789",
                                        "5.803674000e-01",
                                        "-5.803674000e-01",
                                        "0.000043290676827792501",
                                        "1e+22",
                                        "1e+23"};
    check_numbers(texts, sizeof texts / sizeof *texts, false, false);
    check_numbers(texts, sizeof texts / sizeof *texts, true, true);
}

/* Each alone among numbers, in every place of the four that are read at once; where they are errors, the
 * rows stop there. */
TEST(missing_numbers) {
    static const char *const missing[] = {
        "nan",       "NaN",       "NA",      "na",      "inf",       "-inf",      "+Inf",       "INFINITY",
        "",          "   ",       " nan ",   "     83", "83       ", " -1.5e-3 ", "    0.1",    "1 2",
        "nano",      "n",         "--inf",   "in",      "nan(1)",    "- inf",     "-infinity ", "-nan",
        "12345678 ", " 12345678", "       ", "1e5   ",  "+",         "NaN0",      "+na"};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        for (size_t at = 0; at < 9; at++) {
            const char *texts[9] = {"1", "22", "333", "4444", "55555", "6", "7", "8", "9"};
            texts[at] = missing[i];
            check_numbers(texts, 9, false, at % 2);
            check_numbers(texts, 9, true, at % 2);
        }
}

TEST(what_is_no_number) {
    static const char *const bad[] = {"",
                                      ".",
                                      "-",
                                      "e",
                                      "e-05",
                                      ".e-05",
                                      "-.",
                                      "1.2.3",
                                      "1e",
                                      "1e-",
                                      "12a",
                                      "x",
                                      "1 ",
                                      " 1",
                                      "--1",
                                      "1-",
                                      "0x10",
                                      "nan",
                                      "inf",
                                      "1e+999",
                                      "1e-0x",
                                      "1..2e-05",
                                      "123456789012345678901234567890x",
                                      "/",
                                      ":",
                                      "1/2",
                                      "1:2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (size_t at = 0; at < 9; at++) {
            const char *texts[9] = {"1", "22", "333", "4444", "55555", "6", "7", "8", "9"};
            texts[at] = bad[i];
            check_numbers(texts, 9, false, at % 2);
            check_numbers(texts, 9, true, at % 2);
        }
}

/* Numbers with an exponent, that are read by fours, and among them what only looks like one. */
TEST(scientific_numbers) {
    static const char *const odd[] = {
        "1.5e-0x",  "1.5e-:1", "1.5e-1:",  "1.5e-/1", "1.5e/01", "1.5f-01",           "1.5e*01",
        "1.5e001",  "1x5e-01", "x.5e-01",  "1.xe-01", ":.5e-01", "-1.5e-01",          "12.5e-01",
        "1.e-01",   "1.5e-1",  "1.5e-001", "15e-01",  "1.5E+01", "9.9999999999e+99",  "1.0e+22",
        "1.0e+23",  "1.0e+24", "1.0e-21",  "1.0e-22", "1.0e-23", "1.00000000000e-01", "0.0e+00",
        "1.5e-01 ", "7"};
    char usual[9][32];
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        for (size_t at = 0; at < 9; at++) {
            const char *texts[9];
            for (size_t row = 0; row < 9; row++) {
                int digits = (int)(draw() % 12), exponent = (int)(draw() % 60) - 30;
                snprintf(usual[row], sizeof usual[row], "%.*fe%+03d", digits,
                         (double)(draw() % 1000) * 0.0099, exponent);
                texts[row] = row == at ? odd[i] : usual[row];
            }
            check_numbers(texts, 9, false, at % 2);
            check_numbers(texts, 9, true, (at + 1) % 2);
        }
}

TEST(random_numbers) {
    for (int round = 0; round < 3000; round++) {
        char texts[40][64];
        const char *pointers[40];
        unsigned shape = (unsigned)(draw() % 5);
        for (size_t i = 0; i < 40; i++) {
            pointers[i] = texts[i];
            uint64_t bits = draw() >> draw() % 64;
            if (shape == 0 || draw() % 50 == 0)
                snprintf(texts[i], sizeof texts[i], "%llu", (unsigned long long)(bits % 1000000000));
            else if (shape == 1)
                snprintf(texts[i], sizeof texts[i], "%.*e", (int)(draw() % 17),
                         (double)(int64_t)bits * 1e-19);
            else if (shape == 2)
                snprintf(texts[i], sizeof texts[i], "%.*f", (int)(draw() % 12),
                         (double)(bits % 10000000) * 1e-3);
            else if (shape == 3)
                snprintf(texts[i], sizeof texts[i], "%.17g", (double)(int64_t)bits * 1e-14);
            else
                for (size_t length = draw() % 20, j = 0; j <= length; j++)
                    texts[i][j] =
                        j == length ? '\0' : "0123456789012345.-e+ "[draw() % (draw() % 4 ? 17 : 21)];
        }
        check_numbers(pointers, 40, draw() % 2, draw() % 2);
    }
}
