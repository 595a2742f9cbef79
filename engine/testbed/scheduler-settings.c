/* Settings of a campaign's scheduler, and helpers that read answers and write commands for all schedulers. */
#include "engine/testbed/scheduler.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/testbed/http.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void scheduler_word(struct bind_texts *words, const char *format, ...) {
    cleanup(text_clear) struct text word;
    va_list arguments;
    text_init(&word, 64 << 10);
    va_start(arguments, format);
    (void)text_vprintf(&word, format, arguments);
    va_end(arguments);
    bind_texts_add(words, word.bytes);
}

const char *scheduler_text(const struct document_node *node, const char *key) {
    const struct document_node *value = document_get(node, key);
    return value && value->text && value->kind != DOCUMENT_NULL ? value->text : "";
}

int64_t scheduler_number(const struct document_node *node, const char *key) {
    int64_t number = 0;
    const char *text = scheduler_text(node, key);
    return number_parse_int64(text, strlen(text), &number) && number > 0 ? number : 0;
}

const char *scheduler_expect_name(const char *key, const char *value) {
    (void)key;
    return value[strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")]
               ? "a name of letters, digits, '-', '_' and '.'"
               : NULL;
}

/* What to write instead of the option WORD, if it is one of those refused; NULL: it is not. */
const char *scheduler_expect_option(const struct scheduler_option *refused, size_t count, const char *flags,
                                    const char *word) {
    size_t length = strcspn(word, "=");
    bool is_short = word[0] == '-' && word[1] && word[1] != '-';
    char letter = is_short ? word[1 + strspn(word + 1, flags)] : '\0';
    for (size_t i = 0; i < count; i++) {
        bool is_long = strncasecmp(refused[i].name, word, length) == 0 &&
                       (length >= strlen("--x") || strcmp(refused[i].name, word) == 0);
        if (is_long || (letter && letter == refused[i].letter))
            return refused[i].expected;
    }
    return NULL;
}

/* Finds the first JSON object in the output, after lines of other text. 1; 0: the output has none; -EBADMSG:
 * it is damaged. */
int scheduler_parse_object(const char *program, const char *output, size_t length, struct document **ret,
                           struct failure *failure) {
    const char *last = memrchr(output, '}', length), *end = last ? last + 1 : output + length, *newline;
    int r = 0;
    for (const char *line = output; line < end; line = newline ? newline + 1 : end) {
        newline = memchr(line, '\n', (size_t)(end - line));
        if (*line == '{' && (r = document_parse_json(program, line, (size_t)(end - line), ret, failure)) == 0)
            return 1;
    }
    return r < 0 ? failure_set(failure, -EBADMSG,
                               "%s printed no JSON object; run it by hand to see what it prints", program)
                 : 0;
}

void scheduler_prefer_job(struct scheduler_job *found, struct scheduler_job *ret) {
    struct scheduler_job *less = found->state >= ret->state ? ret : found;
    host_list_clear(&less->nodes);
    if (less == ret)
        *ret = *found;
    *found = (struct scheduler_job){0};
}

/* ---- Settings */

static const struct bind_field access_field[] = {{.type = BIND_MAPPING,
                                                  .offset = offsetof(struct testbed_settings, access),
                                                  .fields = access_fields,
                                                  .field_count = ACCESS_FIELDS}};

/* The field that binds the mapping under the scheduler's key ("slurm"). */
static struct bind_field resources_field(const struct scheduler *scheduler) {
    return (struct bind_field){.key = scheduler->key,
                               .type = BIND_MAPPING,
                               .offset = offsetof(struct testbed_settings, resources),
                               .fields = scheduler->fields,
                               .field_count = scheduler->field_count};
}

void scheduler_free_settings(struct testbed_settings *settings) {
    if (!settings)
        return;
    bind_clear(access_field, 1, settings);
    bind_clear(settings->scheduler->fields, settings->scheduler->field_count, &settings->resources);
    free(settings);
}

static void free_settings_pointer(struct testbed_settings **settings) {
    scheduler_free_settings(*settings);
}

/* Checks 'api' and the settings that go with it; makes its files absolute, relative to the campaign's folder.
 */
static int check_api(struct scheduler_resources *resources, const struct testbed_written *written,
                     const struct document_node *own, struct failure *failure) {
    struct failure why = {0};
    access_place_path(&resources->credentials, written->folder);
    access_place_path(&resources->authority, written->folder);
    if (!resources->api && (resources->credentials || resources->authority))
        return bind_refuse(written->document, own, failure,
                           "'credentials' and 'authority' are used with 'api' only; add 'api' or "
                           "remove them");
    if (resources->api && resources->login)
        return bind_refuse(written->document, document_get(own, "login"), failure,
                           "'login' and 'api' are two ways to reach one scheduler; remove one of "
                           "them");
    int r = resources->api ? http_check_url(resources->api, &why) : 0;
    if (r == -EINVAL)
        return bind_refuse(written->document, document_get(own, "api"), failure, "%s", why.text);
    return r < 0 ? failure_set(failure, r, "%s", why.text) : 0;
}

/* Reads and checks what a campaign says of SCHEDULER: its resources, access and launcher. */
int scheduler_bind(const struct scheduler *scheduler, const struct testbed_written *written,
                   struct testbed_settings **ret, struct failure *failure) {
    const struct document_node *node = written->node, *own = document_get(node, scheduler->key);
    cleanup(free_settings_pointer) struct testbed_settings *settings = xcalloc(1, sizeof *settings);
    settings->scheduler = scheduler;
    settings->resources.nodes = 1;
    settings->resources.api = scheduler->api ? xstrdup(scheduler->api) : NULL;
    access_init(&settings->access);
    if (!own || own->kind != DOCUMENT_MAPPING)
        return bind_refuse(written->document, own ? own : node, failure,
                           "'%s' does not say what to reserve, expected %s", scheduler->key,
                           scheduler->expected);
    struct bind_field fields[] = {resources_field(scheduler), access_field[0]};
    int r = bind_mapping(written->document, node, "'testbed'", fields, 2, settings, failure);
    if (r == 0)
        r = access_check(&settings->access, written, failure);
    if (r == 0)
        r = check_api(&settings->resources, written, own, failure);
    const char *by = settings->access.launcher.by;
    if (r == 0 && by && strcmp(by, "ssh") != 0 && strcmp(by, scheduler->launcher) != 0)
        r = bind_refuse(written->document, document_get(node, "launcher"), failure,
                        "the launcher '%s' cannot start programs in jobs of %s; expected ssh "
                        "or %s",
                        by, scheduler->name, scheduler->launcher);
    if (r == 0 && settings->resources.login && settings->access.launcher.by &&
        strcmp(settings->access.launcher.by, "ssh") != 0)
        r = bind_refuse(
            written->document, document_get(node, "launcher"), failure,
            "the launcher '%s' runs on this machine, and '%s' is only on the login node; expected "
            "ssh, or assay to run there",
            settings->access.launcher.by, scheduler->key);
    if (r == 0 && scheduler->check_settings)
        r = scheduler->check_settings(settings, written, failure);
    if (r == 0)
        *ret = take_pointer(settings);
    return r;
}

size_t scheduler_expected_nodes(const struct testbed_settings *settings) {
    return settings->resources.resources ? 0 : (size_t)settings->resources.nodes;
}

bool scheduler_kills_agents(const struct testbed_settings *settings) {
    return access_kills_agents(&settings->access);
}

char *scheduler_asks(const struct testbed_settings *settings, const char *control) {
    const struct scheduler *scheduler = settings->scheduler;
    return scheduler->asks ? scheduler->asks(&settings->resources, control) : NULL;
}

int scheduler_describe(const struct testbed_settings *settings, struct text *ret) {
    text_printf(ret, "%-12s ", "job");
    const struct scheduler *scheduler = settings->scheduler;
    bind_describe(scheduler->fields, scheduler->field_count, &settings->resources, ret);
    for (size_t i = 0; i < scheduler->field_count; i++) {
        const struct bind_field *field = &scheduler->fields[i];
        if (field->type != BIND_MAPPING)
            continue;
        text_printf(ret, ", %s: ", field->key);
        bind_describe(field->fields, field->field_count, (const char *)&settings->resources + field->offset,
                      ret);
    }
    text_append_character(ret, '\n');
    return access_describe(&settings->access, ret);
}

void scheduler_resolve(const struct testbed_settings *settings, cJSON *object) {
    bind_resolve(settings->scheduler->fields, settings->scheduler->field_count, &settings->resources,
                 json_add_object(object, settings->scheduler->key));
    bind_resolve(access_field, 1, settings, object);
    access_leave_out(&settings->access, object);
}
