#include "plugins/fit-population/terms.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_NAMED_MAX = 4096 };

struct reading {
    const struct plugin_host *host;
    const struct fit_request *request;
    const char *at;
    struct terms *terms;
    struct plugin_message *message;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct reading *reading, const char *format,
                                                        ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reading->message->text, sizeof reading->message->text, format, arguments);
    va_end(arguments);
    return -EINVAL;
}

static void skip_blanks(struct reading *reading) {
    while (isspace((unsigned char)*reading->at))
        reading->at++;
}

static const char *find_column(const struct fit_request *request, const char *name, size_t length) {
    for (size_t i = 0; i < request->column_count; i++)
        if (strlen(request->columns[i].name) == length &&
            strncmp(request->columns[i].name, name, length) == 0)
            return request->columns[i].name;
    return NULL;
}

static int refuse_column(const struct reading *reading, const char *name, size_t length) {
    const struct fit_request *request = reading->request;
    const char *names[COLUMNS_NAMED_MAX];
    char word[256];
    snprintf(word, sizeof word, "%.*s", (int)(length < 200 ? length : 200), name);
    size_t count = request->column_count < COLUMNS_NAMED_MAX ? request->column_count : COLUMNS_NAMED_MAX;
    for (size_t i = 0; i < count; i++)
        names[i] = request->columns[i].name;
    const char *nearest = reading->host->nearest(word, names, count);
    if (nearest)
        return refuse(reading, "there is no column '%s' (terms '%.200s'); did you mean '%s'?", word,
                      request->terms ? request->terms : "", nearest);
    return refuse(reading, "there is no column '%s' (terms '%.200s')", word,
                  request->terms ? request->terms : "");
}

static int read_column(struct reading *reading, const char **ret) {
    skip_blanks(reading);
    const char *name = reading->at;
    size_t length = 0;
    if (*name == '`') {
        name++;
        length = strcspn(name, "`");
        if (name[length] != '`')
            return refuse(reading, "the terms '%.200s' have a backquote that is not closed",
                          reading->request->terms);
        reading->at = name + length + 1;
    } else {
        while (isalnum((unsigned char)name[length]) || name[length] == '_' || name[length] == '.')
            length++;
        reading->at = name + length;
    }
    if (length == 0)
        return refuse(reading, "the terms '%.200s' have '%.20s' where the name of a column was expected",
                      reading->request->terms, *name ? name : "nothing");
    *ret = find_column(reading->request, name, length);
    return *ret ? 0 : refuse_column(reading, name, length);
}

static bool contains(const char *const *names, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static int add_coefficient(struct reading *reading, const char *name) {
    struct terms *terms = reading->terms;
    if (strcmp(name, reading->request->response) == 0)
        return 0;
    if (contains(terms->coefficients, terms->coefficient_count, name))
        return refuse(reading, "the coefficient '%s' is given twice", name);
    if (terms->coefficient_count == COEFFICIENTS_MAX)
        return refuse(reading, "there are more than %d coefficients", (int)COEFFICIENTS_MAX);
    terms->coefficients[terms->coefficient_count++] = name;
    return 0;
}

static int add_machine(struct reading *reading, const char *name) {
    struct terms *terms = reading->terms;
    if (contains(terms->coefficients, terms->coefficient_count, name))
        return refuse(reading, "'%s' cannot be a coefficient and tell the machines apart", name);
    if (contains(terms->machines, terms->machine_count, name))
        return refuse(reading, "'%s' tells the machines apart twice", name);
    if (terms->machine_count == MACHINE_COLUMNS_MAX)
        return refuse(reading, "more than %d columns tell the machines apart", (int)MACHINE_COLUMNS_MAX);
    terms->machines[terms->machine_count++] = name;
    return 0;
}

static int read_text(struct reading *reading) {
    char separator = '+';
    for (;;) {
        const char *column = NULL;
        int r = read_column(reading, &column);
        if (r < 0)
            return r;
        r = separator == '+' ? add_coefficient(reading, column) : add_machine(reading, column);
        if (r < 0)
            return r;
        skip_blanks(reading);
        char next = *reading->at;
        if (next == '\0')
            return 0;
        if (next == '|' && separator == '+')
            separator = ',';
        else if (next != separator)
            return refuse(reading, "the terms '%.200s' have '%.20s' where '%c' was expected",
                          reading->request->terms, reading->at, separator);
        reading->at++;
    }
}

static int find_machines(struct reading *reading) {
    static const char *const usual[] = {"node", "host", "cpu", "core"};
    const struct fit_request *request = reading->request;
    struct terms *terms = reading->terms;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        const char *name = find_column(request, usual[i], strlen(usual[i]));
        if (name && !contains(terms->coefficients, terms->coefficient_count, name) &&
            !contains(request->by, request->by_count, name))
            terms->machines[terms->machine_count++] = name;
    }
    if (terms->machine_count > 0)
        return 0;
    return refuse(reading,
                  "which columns tell the machines apart? there is no node, host, cpu or core%s; "
                  "expected them after the coefficients, as in 'alpha + gamma | node, cpu'",
                  request->by_count ? " that is not a group" : "");
}

int terms_read(const struct plugin_host *host, const struct fit_request *request, struct terms *ret,
               struct plugin_message *message) {
    *ret = (struct terms){.coefficients = {request->response}, .coefficient_count = 1};
    struct reading reading = {host, request, request->terms, ret, message};
    int r = 0;
    if (request->terms && strlen(request->terms) > TERMS_BYTES_MAX)
        return refuse(&reading, "the terms have more than %d bytes", (int)TERMS_BYTES_MAX);
    if (request->terms)
        r = read_text(&reading);
    for (size_t i = 0; r == 0 && !request->terms && i < request->size_count; i++) {
        const char *name = find_column(request, request->sizes[i], strlen(request->sizes[i]));
        r = name ? add_coefficient(&reading, name)
                 : refuse_column(&reading, request->sizes[i], strlen(request->sizes[i]));
    }
    return r < 0 || ret->machine_count > 0 ? r : find_machines(&reading);
}
