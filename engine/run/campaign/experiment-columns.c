#include "engine/run/campaign/experiment-columns.h"

#include "archive-format/layout.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/run/campaign/pattern.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int experiment_bind_expression(const struct experiment_binding *binding, const struct document_node *node,
                               const char *what, const char *const *names, size_t count,
                               struct expression **ret) {
    if (node->kind != DOCUMENT_TEXT && node->kind != DOCUMENT_NUMBER)
        return experiment_refuse(binding, node, "'%s' is %s, expected an expression", what,
                                 document_kind_name(node->kind));
    return expression_parse(node->text, names, count, binding->document->file, node->line, node->column, ret,
                            binding->failure);
}

const char **experiment_factor_names(const struct experiment *experiment, size_t more) {
    const char **names = xcalloc(experiment->factor_count + more + 1, sizeof *names);
    for (size_t i = 0; i < experiment->factor_count; i++)
        names[i] = experiment->factors[i].about.name;
    return names;
}

/* ---- Names -----------------------------------------------------------------------------------------------
 */

/* Whether programs may have an environment variable of that name: what is all capitals and has an underscore
 * (LD_PRELOAD, OMP_NUM_THREADS), ends as paths and flags do, or is one of those that every system has. */
static bool may_be_a_variable(const char *name) {
    static const char *const names[] = {"HOME",     "USER", "LOGNAME", "SHELL",  "PWD", "OLDPWD",
                                        "LANG",     "TERM", "TZ",      "TMPDIR", "TMP", "IFS",
                                        "HOSTNAME", "ENV",  "UID",     "CC",     "CXX", "FC"};
    size_t length = strlen(name);
    if (strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") < length)
        return false;
    return text_find(name, names, sizeof names / sizeof *names) < sizeof names / sizeof *names ||
           strchr(name, '_') || (length >= 4 && strcmp(name + length - 4, "PATH") == 0) ||
           (length >= 5 && strcmp(name + length - 5, "FLAGS") == 0);
}

/* Refuses KEY as the name of NOUN ("a factor"): names become environment variables and parts of file names,
 * and must not hide a variable that programs use. */
static int check_name(const struct experiment_binding *binding, const struct document_node *key,
                      const char *noun) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t length = strspn(key->text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    if (!key->text[0] || !strchr(letters, key->text[0]) || key->text[length] || length > 64)
        return experiment_refuse(
            binding, key,
            "'%s' cannot name %s, expected up to 64 letters, digits and underscores, a letter first",
            key->text, noun);
    if (may_be_a_variable(key->text))
        return experiment_refuse(binding, key,
                                 "'%s' cannot name %s, since programs have environment variables of such "
                                 "names; expected a lower-case letter in it",
                                 key->text, noun);
    return 0;
}

/* The names that every experiment has: columns of results.csv, and values of its commands. */
static const char *const reserved_names[] = {
    "unit",    "row",      "repetition", "order",      "block",
    "attempt", "node",     "core",       "start",      "start_monotonic",
    "cpus",    "hostfile", "run_nodes",  "node_cores", "node_memory"};
enum { RESERVED_NAMES = sizeof reserved_names / sizeof *reserved_names };

static bool is_reserved(const char *name) {
    if (text_find(name, reserved_names, RESERVED_NAMES) < RESERVED_NAMES)
        return true;
    char variable[CONTROL_VARIABLE_SIZE];
    for (const struct control_kind *kind = control_kinds; kind->name; kind++)
        if (strcmp(control_variable(kind->factor.about.name, variable), name) == 0)
            return true;
    return false;
}

/* Refuses KEY when a factor, response or option has that name already. All of them share one space of names:
 * columns, {name} and $name. */
static int check_name_is_free(const struct experiment_binding *binding, const struct document_node *key) {
    const struct experiment *experiment = binding->experiment;
    const char *what = is_reserved(key->text) ? "a name that every experiment has" : NULL;
    for (size_t i = 0; i < experiment->factor_count; i++)
        if (experiment->factors[i].about.name && strcmp(experiment->factors[i].about.name, key->text) == 0)
            what = "a factor";
    for (size_t i = 0; i < experiment->response_count; i++)
        if (experiment->responses[i].about.name &&
            strcmp(experiment->responses[i].about.name, key->text) == 0)
            what = "a response";
    if (experiment_option_value(experiment, key->text))
        what = "an option";
    return what ? experiment_refuse(binding, key, "'%s' is already %s; choose another name", key->text, what)
                : 0;
}

/* The kinds of items that an experiment declares by name. */
typedef int bind_item(const struct experiment_binding *binding, const struct document_node *key,
                      const struct document_node *value, void *item);
struct item_kind {
    const char *key, *one; /* "factors", "a factor" */
    size_t size, least, most;
    bind_item *bind;
    bool has_own_names;
    size_t items, count; /* where they are in the struct that has them */
};

/* Binds the mapping under KIND's key into an array that OWNER then owns: names are checked, and each item is
 * bound by KIND. After a failure OWNER still frees the items bound so far. */
static int bind_items(const struct experiment_binding *binding, const struct document_node *root,
                      const struct item_kind *kind, void *owner) {
    const struct document_node *node = document_get(root, kind->key);
    size_t *count = (size_t *)((char *)owner + kind->count);
    if (!node)
        return 0;
    if (node->count < kind->least)
        return experiment_refuse(binding, node, "no %s, expected at least one", kind->key);
    if (node->count > kind->most)
        return experiment_refuse(binding, node, "%zu %s, expected at most %zu", node->count, kind->key,
                                 kind->most);
    char *items = xcalloc(node->count + 1, kind->size);
    memcpy((char *)owner + kind->items, &items, sizeof items);
    for (size_t i = 0; i < node->count; i++) {
        int r = check_name(binding, node->keys[i], kind->one);
        if (r == 0 && !kind->has_own_names)
            r = check_name_is_free(binding, node->keys[i]);
        if (r == 0)
            r = kind->bind(binding, node->keys[i], node->items[i], items + (*count)++ * kind->size);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- Factors and options ---------------------------------------------------------------------------------
 */

/* Units go into headers, tables and JSON of others. One that assay does not know is a word of the user's own.
 */
const char *experiment_expect_unit(const char *key, const char *unit) {
    size_t length = 0;
    (void)key;
    if (strcmp(unit, "KB") == 0 || strcmp(unit, "KB/s") == 0)
        return "kB for 1000 bytes or KiB for 1024";
    while (unit[length] > ' ' && unit[length] < 0x7f && unit[length] != ',' && unit[length] != '"')
        length++;
    return unit_find_written(unit) || (length > 0 && length <= 32 && !unit[length])
               ? NULL
               : "a word of up to 32 printable ASCII characters, such as s, MB/s or cycles";
}

void experiment_use_unit_code(const char **unit, const char *fallback) {
    const struct unit *known = *unit ? unit_find_written(*unit) : NULL;
    char *code = xstrdup(known ? known->code : *unit ? *unit : fallback);
    free((char *)*unit);
    *unit = code;
}

struct written_factor {
    struct design_factor factor;
    int type; /* its index in factor_types; -1: not written */
    struct bind_texts choices;
};
static const char *const factor_types[] = {"integer", "number", "text", NULL};
#define FACTOR(key_, type_, member) BIND_ROW(key_, type_, written_factor, factor.member)
static const struct bind_field factor_fields[] = {
    {FACTOR("default-note", BIND_TEXT, default_note)}, /* of options */
    {BIND_ROW("type", BIND_CHOICE, written_factor, type), .choices = factor_types},
    {FACTOR("description", BIND_TEXT, about.help)},
    {FACTOR("default", BIND_TEXT, default_text)},
    {FACTOR("minimum", BIND_NUMBER, minimum)},
    {FACTOR("maximum", BIND_NUMBER, maximum)},
    {.key = "choices", .type = BIND_TEXTS, .offset = offsetof(struct written_factor, choices)},
    {FACTOR("unit", BIND_TEXT, about.unit), .expect = experiment_expect_unit},
    {FACTOR("from-share", BIND_TEXT, from_share)},
    {FACTOR("from-time", BIND_TEXT, from_time)},
};
enum {
    FACTOR_FIELD_FIRST = 1,
    FACTOR_FIELD_COUNT = sizeof factor_fields / sizeof *factor_fields,
    OPTION_FIELD_COUNT = 7, /* of them, those that an option has too */
};

/* Binds a factor or an option called KEY. Its fields are COUNT of factor_fields from FIRST on. TYPE is used
 * when the mapping names no type. */
static int bind_variable(const struct experiment_binding *binding, const struct document_node *key,
                         const struct document_node *value, enum column_type type, size_t first, size_t count,
                         struct design_factor *ret) {
    static const enum column_type types[] = {COLUMN_INTEGER, COLUMN_NUMBER, COLUMN_STRING};
    struct written_factor written = {.factor = {.minimum = -DESIGN_UNBOUNDED, .maximum = DESIGN_UNBOUNDED},
                                     .type = -1};
    int r = value->kind == DOCUMENT_NULL
                ? 0
                : bind_mapping(binding->document, value, key->text, factor_fields + first, count - first,
                               &written, binding->failure);
    *ret = written.factor;
    ret->about.name = xstrdup(key->text);
    ret->about.label = xstrdup(key->text);
    ret->about.type = written.type < 0 ? type : types[written.type];
    ret->about.role = COLUMN_ROLE_FACTOR;
    experiment_use_unit_code(&ret->about.unit, ret->about.type == COLUMN_STRING ? "" : "1");
    ret->choices = written.choices.items;
    ret->choice_count = written.choices.count;
    if (r == 0 && ret->minimum > ret->maximum)
        return experiment_refuse(binding, value, "'%s' has a minimum above its maximum", key->text);
    return r;
}

/* Sets *LINE and *COLUMN to the place of KEY's value in the mapping VALUE; 0 when the key is not there. */
static void find_place(const struct document_node *value, const char *key, size_t *line, size_t *column) {
    const struct document_node *at = document_get(value, key);
    *line = at ? at->line : 0;
    *column = at ? at->column : 0;
}

/* Binds one factor. from-share and from-time are refused for texts, since they compute a number. */
static int bind_factor(const struct experiment_binding *binding, const struct document_node *key,
                       const struct document_node *value, void *item) {
    static const char *const meanings[] = {"from-share", "from-time"};
    struct design_factor *factor = item;
    int r =
        bind_variable(binding, key, value, COLUMN_INTEGER, FACTOR_FIELD_FIRST, FACTOR_FIELD_COUNT, factor);
    find_place(value, "default", &factor->default_line, &factor->default_column);
    find_place(value, "from-share", &factor->share_line, &factor->share_column);
    find_place(value, "from-time", &factor->time_line, &factor->time_column);
    for (size_t i = 0; r == 0 && i < 2; i++)
        if (document_get(value, meanings[i]) && factor->about.type == COLUMN_STRING)
            r = experiment_refuse(binding, document_get(value, meanings[i]),
                                  "factor '%s' is a text and cannot have '%s', which is for numbers",
                                  factor->about.name, meanings[i]);
    return r;
}

/* Binds one option, which needs a default; its default becomes its value. */
static int bind_option(const struct experiment_binding *binding, const struct document_node *key,
                       const struct document_node *value, void *item) {
    struct experiment_option *option = item;
    const struct document_node *at = document_get(value, "default");
    int r = bind_variable(binding, key, value, COLUMN_STRING, 0, OPTION_FIELD_COUNT, &option->factor);
    if (option->factor.choice_count)
        option->factor.about.type = COLUMN_STRING;
    if (r == 0 && !at)
        r = experiment_refuse(binding, value, "%s has no 'default'; every option needs one", key->text);
    if (r == 0)
        r = experiment_set_option(binding->experiment, key->text, option->factor.default_text,
                                  binding->document->file, at->line, at->column, binding->failure);
    option->given = false;
    return r;
}

static struct experiment_option *find_option(const struct experiment *experiment, const char *name) {
    for (size_t i = 0; i < experiment->option_count; i++)
        if (experiment->options[i].factor.about.name &&
            strcmp(experiment->options[i].factor.about.name, name) == 0)
            return &experiment->options[i];
    return NULL;
}

const char *experiment_option_value(const struct experiment *experiment, const char *name) {
    const struct experiment_option *option = find_option(experiment, name);
    return option ? option->value : NULL;
}

static bool is_default(const struct experiment_option *option) {
    const char *value = option->factor.default_text;
    return value && strcmp(option->value, value) == 0;
}

bool experiment_option_is_default(const struct experiment *experiment, const char *name) {
    const struct experiment_option *option = find_option(experiment, name);
    return option && is_default(option);
}

const char *experiment_option_note(const struct experiment_option *option) {
    return is_default(option) ? option->factor.default_note : NULL;
}

static int refuse_option(const struct experiment *experiment, const char *name, const char *file, size_t line,
                         size_t column, struct failure *failure) {
    const char *names[EXPERIMENT_NAMES_MAX];
    char instead[TEXT_INSTEAD_SIZE];
    for (size_t i = 0; i < experiment->option_count; i++)
        names[i] = experiment->options[i].factor.about.name;
    return failure_input(failure, file, line, column, "experiment '%s' has no option '%s'; %s",
                         experiment->name, name,
                         text_instead(name, names, experiment->option_count, instead));
}

/* Sets the option NAME to VALUE and marks it as given. Refused, with the place FILE:LINE:COLUMN: an unknown
 * name, and a value that the option does not accept. */
int experiment_set_option(struct experiment *experiment, const char *name, const char *value,
                          const char *file, size_t line, size_t column, struct failure *failure) {
    struct experiment_option *option = find_option(experiment, name);
    char expected[DESIGN_EXPECTATION_SIZE], canonical[NUMBER_TEXT_SIZE];
    double number;
    if (!option)
        return refuse_option(experiment, name, file, line, column, failure);
    const struct design_factor *factor = &option->factor;
    bool good =
        factor->about.type != COLUMN_STRING
            ? number_parse_double(value, strlen(value), &number) && design_factor_admits(factor, number)
            : factor->choice_count == 0 || design_factor_admits_text(factor, value, strlen(value));
    if (!good)
        return failure_input(failure, file, line, column, "option '%s' is '%s', expected %s", name, value,
                             design_factor_expectation(factor, expected));
    /* "+5" and "5" are the same number, but not to every program. */
    if (factor->about.type == COLUMN_INTEGER) {
        number_format_double(number, canonical);
        value = canonical;
    }
    free(option->value);
    option->value = xstrdup(value);
    option->given = true;
    return 0;
}

/* ---- Responses and tables --------------------------------------------------------------------------------
 */

static const char *const response_types[] = {"number", "text", NULL};
static const struct bind_field response_fields[] = {
    {BIND_ROW("type", BIND_CHOICE, experiment_response, about.type), .choices = response_types},
    {BIND_ROW("unit", BIND_TEXT, experiment_response, about.unit), .expect = experiment_expect_unit},
    {BIND_ROW("description", BIND_TEXT, experiment_response, about.help)},
    {BIND_ROW("pattern", BIND_TEXT, experiment_response, pattern)},
    {BIND_ROW("choices", BIND_TEXTS, experiment_response, choices)},
    {BIND_ROW("pass", BIND_TEXTS, experiment_response, pass)},
};
enum {
    RESPONSE_FIELD_COUNT = sizeof response_fields / sizeof *response_fields,
    COLUMN_FIELD_COUNT = 3, /* of them, those that a column of a table has too */
};

/* Binds what responses and columns of tables have in common: the first COUNT response_fields. A text has no
 * unit. */
static int bind_reading(const struct experiment_binding *binding, const struct document_node *key,
                        const struct document_node *value, size_t count, struct experiment_response *ret) {
    ret->about.name = xstrdup(key->text);
    int r = value->kind == DOCUMENT_NULL ? 0
                                         : bind_mapping(binding->document, value, key->text, response_fields,
                                                        count, ret, binding->failure);
    bool text = ret->about.type != 0; /* until here the index in response_types */
    ret->about.type = text ? COLUMN_STRING : COLUMN_NUMBER;
    ret->about.role = COLUMN_ROLE_RESPONSE;
    ret->about.label = xstrdup(key->text);
    if (r == 0 && ret->about.unit && text)
        return experiment_refuse(binding, document_get(value, "unit"), "'%s' is a text, which has no unit",
                                 ret->about.name);
    if (r == 0)
        experiment_use_unit_code(&ret->about.unit, text ? "" : "1");
    return r;
}

static void clear_reading(struct experiment_response *response) {
    bind_clear(response_fields, RESPONSE_FIELD_COUNT, response);
    column_clear(&response->about);
}

/* Refuses PATTERN, of the response or table NAME, if it does not compile. *RET_GROUPS is the number of its
 * groups. */
static int check_pattern(const struct experiment_binding *binding, const struct document_node *value,
                         const char *name, const char *pattern, size_t *ret_groups) {
    regex_t compiled;
    char reason[PATTERN_REASON_SIZE];
    int r = pattern_compile(pattern, &compiled, reason);
    if (r == -ENOMEM)
        return failure_memory(binding->failure);
    if (r < 0)
        return experiment_refuse(binding, document_get(value, "pattern"),
                                 "the pattern of '%s', '%.100s%s', %s", name, pattern,
                                 strlen(pattern) > 100 ? "..." : "", reason);
    *ret_groups = compiled.re_nsub;
    tre_regfree(&compiled);
    return 0;
}

/* Binds one response. Refused: a pattern or texts where the kernel is streamed, `choices` of a number, `pass`
 * texts that are no choices, and a missing pattern where the kernel is not streamed. */
static int bind_response(const struct experiment_binding *binding, const struct document_node *key,
                         const struct document_node *value, void *item) {
    struct experiment_response *response = item;
    bool streamed = binding->experiment->streamed, text;
    const char *at = NULL, *wrong = NULL;
    size_t groups;
    int r = bind_reading(binding, key, value, RESPONSE_FIELD_COUNT, response);
    if (r < 0)
        return r;
    text = response->about.type == COLUMN_STRING;
    if (streamed && response->pattern)
        at = "pattern", wrong = "has a pattern; a streamed kernel answers with numbers and needs none";
    else if (streamed && text)
        at = "type", wrong = "is a text; a streamed kernel answers with numbers only";
    else if (response->choices.count > 0 && !text)
        at = "choices", wrong = "has choices, but is a number, expected 'type: text'";
    for (size_t i = 0; !wrong && i < response->pass.count; i++)
        if (!bind_texts_have(&response->choices, response->pass.items[i]))
            at = "pass", wrong = "has a text in 'pass' that is not one of its choices";
    if (wrong)
        return experiment_refuse(binding, document_get(value, at), "response '%s' %s", response->about.name,
                                 wrong);
    if (!response->pattern && !streamed)
        return experiment_refuse(
            binding, value,
            "response '%s' has no pattern, expected one, since the run command is not streamed",
            response->about.name);
    return streamed ? 0 : check_pattern(binding, value, response->about.name, response->pattern, &groups);
}

static const struct bind_field table_fields[] = {
    {BIND_ROW("pattern", BIND_TEXT, experiment_table, pattern), .required = true},
    {BIND_ROW("description", BIND_TEXT, experiment_table, description)},
    {.key = "columns", .type = BIND_LATER, .kinds = 1 << DOCUMENT_MAPPING, .required = true},
};
enum { TABLE_FIELD_COUNT = sizeof table_fields / sizeof *table_fields };

static int bind_column(const struct experiment_binding *binding, const struct document_node *key,
                       const struct document_node *value, void *item) {
    return bind_reading(binding, key, value, COLUMN_FIELD_COUNT, item);
}

/* Binds one table of the output and its columns. Refused: with a streamed kernel, a name that another table
 * has, and a pattern whose groups are not as many as the columns. */
static int bind_table(const struct experiment_binding *binding, const struct document_node *key,
                      const struct document_node *value, void *item) {
    static const struct item_kind kind = {.key = "columns",
                                          .one = "a column",
                                          .size = sizeof(struct experiment_response),
                                          .most = EXPERIMENT_NAMES_MAX,
                                          .bind = bind_column,
                                          .items = offsetof(struct experiment_table, columns),
                                          .count = offsetof(struct experiment_table, column_count)};
    struct experiment_table *table = item;
    size_t groups;
    table->name = xstrdup(key->text);
    table->file = archive_table_path(key->text);
    if (binding->experiment->streamed)
        return experiment_refuse(binding, key,
                                 "an experiment with a streamed kernel cannot have 'tables': its output "
                                 "holds the answers only");
    /* Names that differ only in their case would be one file on some systems. */
    for (const struct experiment_table *other = binding->experiment->tables; other < table; other++)
        if (strcasecmp(other->name, key->text) == 0)
            return experiment_refuse(binding, key, "'%s' is already a table; choose another name",
                                     other->name);
    int r = bind_mapping(binding->document, value, key->text, table_fields, TABLE_FIELD_COUNT, table,
                         binding->failure);
    /* The table's own columns come after the unit's and the factors. */
    if (r == 0)
        r = bind_items(binding, value, &kind, table);
    if (r == 0)
        r = check_pattern(binding, value, table->name, table->pattern, &groups);
    if (r < 0 || groups == table->column_count)
        return r;
    return experiment_refuse(binding, document_get(value, "pattern"),
                             "the pattern of '%s' has %zu groups, expected %zu, one for each column",
                             table->name, groups, table->column_count);
}

/* ---- Maxima ----------------------------------------------------------------------------------------------
 */

static int bind_maximum(const struct experiment_binding *binding, const struct document_node *key,
                        const struct document_node *value, void *item) {
    struct experiment_maximum *maximum = item;
    cleanup_free const char **names = experiment_factor_names(binding->experiment, 0);
    maximum->name = xstrdup(key->text);
    return experiment_bind_expression(binding, value, maximum->name, names, binding->experiment->factor_count,
                                      &maximum->expression);
}

/* ---- All of them -----------------------------------------------------------------------------------------
 */

#define ITEMS(struct_, items_, count_)                                                                       \
    .size = sizeof(struct struct_), .items = offsetof(struct experiment, items_),                            \
    .count = offsetof(struct experiment, count_)
static const struct item_kind kinds[] = {
    [EXPERIMENT_FACTORS] = {"factors", "a factor", ITEMS(design_factor, factors, factor_count),
                            .most = EXPERIMENT_NAMES_MAX, .bind = bind_factor},
    [EXPERIMENT_TABLES] = {"tables", "a table", ITEMS(experiment_table, tables, table_count),
                           .most = EXPERIMENT_TABLES_MAX, .bind = bind_table, .has_own_names = true},
    [EXPERIMENT_RESPONSES] = {"responses", "a response",
                              ITEMS(experiment_response, responses, response_count), .least = 1,
                              .most = EXPERIMENT_NAMES_MAX, .bind = bind_response},
    [EXPERIMENT_OPTIONS] = {"options", "an option", ITEMS(experiment_option, options, option_count),
                            .most = EXPERIMENT_NAMES_MAX, .bind = bind_option},
    [EXPERIMENT_MAXIMA] = {"maxima", "a maximum", ITEMS(experiment_maximum, maxima, maximum_count),
                           .most = EXPERIMENT_NAMES_MAX, .bind = bind_maximum},
};

int experiment_bind_items(const struct experiment_binding *binding, enum experiment_items items,
                          const struct document_node *root) {
    return bind_items(binding, root, &kinds[items], binding->experiment);
}

void experiment_columns_clear(struct experiment *experiment) {
    for (size_t i = 0; i < experiment->factor_count; i++)
        design_factor_clear(&experiment->factors[i]);
    free(experiment->factors);
    for (size_t i = 0; i < experiment->option_count; i++) {
        design_factor_clear(&experiment->options[i].factor);
        free(experiment->options[i].value);
    }
    free(experiment->options);
    for (size_t i = 0; i < experiment->response_count; i++)
        clear_reading(&experiment->responses[i]);
    free(experiment->responses);
    for (size_t i = 0; i < experiment->table_count; i++) {
        struct experiment_table *table = &experiment->tables[i];
        for (size_t j = 0; j < table->column_count; j++)
            clear_reading(&table->columns[j]);
        free(table->columns);
        free(table->name);
        free(table->file);
        bind_clear(table_fields, TABLE_FIELD_COUNT, table);
    }
    free(experiment->tables);
    for (size_t i = 0; i < experiment->maximum_count; i++) {
        free(experiment->maxima[i].name);
        expression_free(experiment->maxima[i].expression);
    }
    free(experiment->maxima);
}
