#include "plugins/fit-piecewise/request.h"

#include "plugins/numerics/points.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const criteria[] = {"bic", "aic", "relative", "log", "rss", NULL};
static const char *const equals[] = {"averaged", "weighted", "raw", "inverse-variance", NULL};
static const char *const noes[] = {"no", "yes", NULL};

enum parameter { CRITERION, PER_BREAK, SEGMENTS, MOST, MINIMUM, EQUAL, CONTINUOUS, BETWEEN, CONFIDENCE };

const struct plugin_parameter request_parameters[REQUEST_PARAMETERS] = {
    [CRITERION] = {.name = "criterion",
                   .words = criteria,
                   .help =
                       "what is least: bic, aic (squares), relative (squares / y^2), log (squares of log y), "
                       "rss (squares; with segments)"},
    [PER_BREAK] = {.name = "per_break",
                   .unit = "1",
                   .fallback = 4,
                   .maximum = 1000,
                   .help = "parameters that a break more counts as: 4 as in pycewise, 3 as in strucchange"},
    [SEGMENTS] = {.name = "segments",
                  .unit = "1",
                  .maximum = 1e6,
                  .whole = true,
                  .help = "exactly so many; 0: as many as the criterion says"},
    [MOST] = {.name = "most",
              .unit = "1",
              .maximum = 1e6,
              .whole = true,
              .help = "segments at most; 0: as many as there is room for"},
    [MINIMUM] = {.name = "minimum",
                 .unit = "1",
                 .fallback = 3,
                 .minimum = 2,
                 .maximum = 1e6,
                 .whole = true,
                 .help = "different sizes that a segment has at least"},
    [EQUAL] = {.name = "equal",
               .words = equals,
               .help =
                   "rows of one size: averaged first, weighted by how many they are, raw, or weighted by the "
                   "inverse variance of their mean"},
    [CONTINUOUS] = {.name = "continuous", .words = noes, .help = "whether lines meet at the breaks"},
    [BETWEEN] = {.name = "between",
                 .words = noes,
                 .help = "whether more breaks are looked for between those that the terms give"},
    [CONFIDENCE] = {.name = "confidence",
                    .unit = "1",
                    .fallback = 0.95,
                    .minimum = 0.5,
                    .maximum = 0.9999,
                    .help = "of the intervals of breaks"},
};

/* ---- The column */

static const char *find_column(const struct fit_request *from, const char *name, size_t length) {
    for (size_t i = 0; i < from->column_count; i++)
        if (strlen(from->columns[i].name) == length && memcmp(from->columns[i].name, name, length) == 0)
            return from->columns[i].name;
    return NULL;
}

static int check_column(const struct plugin_host *host, const struct fit_request *from, const char *name,
                        size_t length, const char **ret, struct plugin_message *message) {
    *ret = find_column(from, name, length);
    if (*ret && strcmp(*ret, from->response) != 0)
        return 0;
    char word[256];
    snprintf(word, sizeof word, "%.*s", (int)(length < 200 ? length : 200), name);
    if (*ret) {
        snprintf(message->text, sizeof message->text,
                 "'%s' is the response; expected another column for the lines to be over", word);
        return -EINVAL;
    }
    const char *names[256];
    size_t count = 0;
    for (size_t i = 0; i < from->column_count && count < 256; i++)
        names[count++] = from->columns[i].name;
    const char *near = host->nearest(word, names, count);
    snprintf(message->text, sizeof message->text, "no column '%s'%s%s%s", word,
             near ? "; did you mean '" : "", near ? near : "", near ? "'" : "");
    return -EINVAL;
}

static bool is_taken(const struct fit_request *from, const char *name) {
    if (strcmp(name, from->response) == 0 || (from->weights && strcmp(name, from->weights) == 0))
        return true;
    for (size_t i = 0; i < from->by_count; i++)
        if (strcmp(name, from->by[i]) == 0)
            return true;
    return false;
}

/* The only one that can be meant. */
static int choose_column(const struct fit_request *from, const char **ret, struct plugin_message *message) {
    char list[512] = "";
    size_t used = 0, count = 0;
    for (size_t i = 0; i < from->column_count; i++) {
        const struct fit_column *column = &from->columns[i];
        bool number =
            !column->type || strcmp(column->type, "integer") == 0 || strcmp(column->type, "number") == 0;
        if (!number || is_taken(from, column->name))
            continue;
        *ret = column->name;
        if (used < sizeof list - 1) {
            int n = snprintf(list + used, sizeof list - used, "%s%s", count ? ", " : "", column->name);
            used += n > 0 ? (size_t)n : 0;
        }
        count++;
    }
    if (count == 1)
        return 0;
    if (count == 0)
        snprintf(message->text, sizeof message->text,
                 "there is no column for the lines to be over besides the response '%.200s'", from->response);
    else
        snprintf(message->text, sizeof message->text,
                 "over which column are the lines? there are: %.500s; name one with --sizes", list);
    return -EINVAL;
}

/* ---- Terms */

struct reader {
    const char *text, *at;
    struct plugin_message *message;
};

static void skip_blanks(struct reader *reader) {
    while (isspace((unsigned char)*reader->at))
        reader->at++;
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '-';
}

static int complain(struct reader *reader, const char *expected) {
    if (*reader->at)
        snprintf(reader->message->text, sizeof reader->message->text,
                 "the terms have '%.40s' at column %zu; expected %s", reader->at,
                 (size_t)(reader->at - reader->text) + 1, expected);
    else
        snprintf(reader->message->text, sizeof reader->message->text, "the terms end; expected %s", expected);
    return -EINVAL;
}

/* A word, or what is between backquotes. */
static bool read_word(struct reader *reader, const char **ret, size_t *ret_length) {
    skip_blanks(reader);
    bool quoted = *reader->at == '`';
    const char *start = reader->at + quoted, *end = start;
    while (*end && (quoted ? *end != '`' : is_word(*end)))
        end++;
    if (end == start || (quoted && *end != '`'))
        return false;
    *ret = start;
    *ret_length = (size_t)(end - start);
    reader->at = end + quoted;
    return true;
}

static int read_name(struct reader *reader, char name[static REQUEST_NAME_SIZE]) {
    const char *word;
    size_t length;
    const char *start = reader->at;
    if (!read_word(reader, &word, &length))
        return 0;
    if (length >= REQUEST_NAME_SIZE) {
        reader->at = start;
        return complain(reader, "a segment's name of at most 63 characters");
    }
    memcpy(name, word, length);
    name[length] = '\0';
    return 0;
}

static int read_break(struct reader *reader, struct request *ret) {
    reader->at++;
    skip_blanks(reader);
    if (ret->break_count == REQUEST_BREAKS_MAX)
        return complain(reader, "at most 64 breaks");
    char *end;
    double value = strtod(reader->at, &end);
    if (end == reader->at || !isfinite(value))
        return complain(reader, "a number: the first size of the segment that begins there");
    if (ret->break_count > 0 && value <= ret->breaks[ret->break_count - 1])
        return complain(reader, "breaks in ascending order");
    reader->at = end;
    ret->breaks[ret->break_count++] = value;
    int r = read_name(reader, ret->names[ret->break_count]);
    skip_blanks(reader);
    return r < 0 || !*reader->at || *reader->at == '|' ? r : complain(reader, "'|' or the end");
}

static int read_terms(const struct plugin_host *host, const struct fit_request *from, struct request *ret,
                      struct plugin_message *message) {
    struct reader reader = {from->terms, from->terms, message};
    if (strlen(from->terms) > REQUEST_BYTES_MAX) {
        snprintf(message->text, sizeof message->text, "the terms have %zu bytes; expected at most %d",
                 strlen(from->terms), REQUEST_BYTES_MAX);
        return -EINVAL;
    }
    skip_blanks(&reader);
    if (*reader.at == '1') {
        const char *after = reader.at + 1;
        after += strspn(after, " \t");
        reader.at = *after == '+' ? after + 1 : reader.at;
    }
    const char *word;
    size_t length;
    int r = 0;
    if (read_word(&reader, &word, &length)) {
        r = check_column(host, from, word, length, &ret->over, message);
        r = r < 0 ? r : read_name(&reader, ret->names[0]);
    }
    skip_blanks(&reader);
    if (r >= 0 && *reader.at && *reader.at != '|')
        r = complain(&reader, "a column, and breaks after '|'");
    while (r >= 0 && *reader.at == '|')
        r = read_break(&reader, ret);
    return r;
}

/* ---- Altogether */

static int check(const struct request *request, struct plugin_message *message) {
    const char *wrong = NULL;
    if (request->criterion == CRITERION_RSS && request->segments == 0 &&
        (request->break_count == 0 || request->between))
        wrong = "the criterion rss never has enough segments; expected segments=N";
    else if (request->segments > 0 && request->most < request->segments)
        wrong = "more segments are asked for than there may be at most";
    else if (request->segments > 0 && request->break_count > 0 && !request->between)
        wrong = "the terms give the breaks; expected no number of segments, or between=yes";
    else if (request->segments > 0 && request->segments <= request->break_count)
        wrong = "the terms give more breaks than that number of segments has";
    else if (request->continuous && request->between)
        wrong = "lines that meet cannot be looked for between breaks that are given; expected one of the two";
    else if (request->most <= request->break_count)
        wrong = "the terms give more breaks than there may be segments";
    if (!wrong)
        return 0;
    snprintf(message->text, sizeof message->text, "%s", wrong);
    return -EINVAL;
}

int request_read(const struct plugin_host *host, const struct fit_request *from, struct request *ret,
                 struct plugin_message *message) {
    const double *given = from->parameters;
    *ret = (struct request){
        .criterion = (enum request_criterion)given[CRITERION],
        .per_break = given[PER_BREAK],
        .segments = (size_t)given[SEGMENTS],
        .most = given[MOST] > 0 ? (size_t)given[MOST] : SIZE_MAX,
        .minimum = (size_t)given[MINIMUM],
        .equal = (int)given[EQUAL],
        .continuous = given[CONTINUOUS] > 0,
        .between = given[BETWEEN] > 0,
        .confidence = given[CONFIDENCE],
    };
    int r = from->terms ? read_terms(host, from, ret, message) : 0;
    if (r >= 0 && !ret->over && from->size_count > 0)
        r = check_column(host, from, from->sizes[0], strlen(from->sizes[0]), &ret->over, message);
    if (r >= 0 && !ret->over)
        r = choose_column(from, &ret->over, message);
    if (r >= 0 && ret->equal == POINTS_PRECISE && from->weights) {
        snprintf(
            message->text, sizeof message->text,
            "equal=inverse-variance makes weights of how the rows of a size scatter; expected no --weights");
        return -EINVAL;
    }
    /* Relative and log errors weigh by 1 / y^2 already: what counts besides is the variance of y over that.
     */
    bool relative = ret->criterion == CRITERION_RELATIVE || ret->criterion == CRITERION_LOG;
    if (ret->equal == POINTS_PRECISE && relative)
        ret->equal = POINTS_PRECISE_RELATIVE;
    return r < 0 ? r : check(ret, message);
}
