/* What modules, Spack and prefixes change in the environment of a node's commands. */
#include "engine/run/nodes/software.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/secret.h"
#include "engine/run/nodes/command.h"
#include "engine/run/nodes/kinds.h"
#include "engine/run/nodes/nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    ANSWER_MAX = 1 << 20, /* the environment twice, and what is known of the tools */
    COMPLAINT_MAX = 600,
};

/* Arguments: pairs of a kind and a name, which never become text of the shell. On standard output, records
 * that end with NUL: the environment before, an empty one, the environment after, an empty one, and then
 * lines "TOOL=VERSION". On failure, what failed stands behind the last NUL, and on standard error what the
 * tool says. */
static const char load_script[] =
    "exec 3>&1 >&2\n"
    "env=$(command -v env) facts= last= image= sum=\n"
    "fail() { printf '\\0%s' \"$1\" >&3; exit 1; }\n"
    "fact() { facts=\"$facts$1=$2\n\"; }\n"
    "front() { [ ! -d \"$2\" ] || eval \"export $1=\\\"\\$2\\${$1:+:\\$$1}\\\"\"; }\n"
    "start_modules() {\n"
    "    locale=$LC_ALL\n"
    "    for file in \"${LMOD_PKG-}/init/bash\" \"${MODULESHOME-}/init/bash\" /etc/profile.d/*lmod*.sh \\\n"
    "        /etc/profile.d/*module*.sh /etc/profile.d/*.sh; do\n"
    "        ! type module >/dev/null 2>&1 || break\n"
    "        [ ! -r \"$file\" ] || . \"$file\" >/dev/null 2>&1\n"
    "    done\n"
    "    export LC_ALL=\"$locale\"\n"
    "    type module >/dev/null 2>&1 || fail 'there is no module system; expected Lmod or Environment "
    "Modules "
    "(Debian: lmod or environment-modules)'\n"
    "    fact modules \"$(module --version 2>&1 | grep -m 1 '[0-9]')\"\n"
    "}\n"
    "load_module() {\n"
    "    before=${LOADEDMODULES-}\n"
    "    module load \"$1\" || return 1\n"
    /* Old versions of Environment Modules exit with 0 whatever happens. */
    "    case \":${LOADEDMODULES-}:\" in *\":$1:\"* | *\":$1/\"*) ;; \":$before:\") return 1 ;; esac\n"
    "}\n"
    "find_spack() {\n"
    "    spack=$(command -v spack) || spack=${SPACK_ROOT-}/bin/spack\n"
    "    command -v \"$spack\" >/dev/null || fail 'there is no spack; expected it in PATH, or in the folder "
    "that "
    "SPACK_ROOT names'\n"
    "    fact spack \"$(\"$spack\" --version 2>&1 | head -n 1)\"\n"
    "}\n"
    "\"$env\" -0 >&3\n"
    "printf '\\0' >&3\n"
    "while [ $# -gt 1 ]; do\n"
    "    case $1 in\n"
    "    modules)\n"
    "        [ \"$last\" = \"$1\" ] || start_modules\n"
    "        load_module \"$2\" || fail \"module '$2' cannot be loaded\" ;;\n"
    "    spack)\n"
    "        [ \"$last\" = \"$1\" ] || find_spack\n"
    "        text=$(\"$spack\" load --sh \"$2\") && eval \"$text\" || fail \"spack's '$2' cannot be loaded\" "
    ";;\n"
    "    spack-environment)\n"
    "        find_spack\n"
    "        text=$(\"$spack\" env activate --sh -d \"$2\") && eval \"$text\" ||\n"
    "            fail \"spack's environment '$2' cannot be activated\" ;;\n"
    "    prefix)\n"
    "        [ -d \"$2\" ] || fail \"the prefix '$2' is not a folder\"\n"
    "        front PATH \"$2/bin\"\n"
    "        front CPATH \"$2/include\"\n"
    "        for lib in lib64 lib; do\n"
    "            front LD_LIBRARY_PATH \"$2/$lib\"\n"
    "            front LIBRARY_PATH \"$2/$lib\"\n"
    "            front PKG_CONFIG_PATH \"$2/$lib/pkgconfig\"\n"
    "        done\n"
    "        front PKG_CONFIG_PATH \"$2/share/pkgconfig\"\n"
    /* An empty item stands for the manuals of the system. */
    "        [ ! -d \"$2/share/man\" ] || export MANPATH=\"$2/share/man:${MANPATH-}\" ;;\n"
    "    container)\n"
    "        [ \"$last\" = \"$1\" ] || fact container \"$(\"$2\" --version 2>&1 | head -n 1)\"\n"
    "        image=$2 ;;\n"
    "    esac\n"
    "    last=$1\n"
    "    shift 2\n"
    "done\n"
    "[ ! -f \"$image\" ] || sum=$(sha256sum <\"$image\")\n"
    "[ -z \"$image\" ] || fact image \"$image\"\n"
    "[ -z \"$sum\" ] || fact image.sha256 \"${sum%% *}\"\n"
    "\"$env\" -0 >&3\n"
    "printf '\\0%s' \"$facts\" >&3\n";

/* ---- What commands are started with ----------------------------------------------------------------------
 */

static const char *const none[] = {NULL};

const char *const *software_environment(const struct node_set *set, const struct run_node *node) {
    (void)set;
    return node->environment ? (const char *const *)node->environment : none;
}

const char *const *software_prefix(const struct node_set *set) {
    const struct bind_texts *container = &set->experiment->software.kinds[SOFTWARE_CONTAINER];
    return container->count ? (const char *const *)container->items : none;
}

/* FIRST and then SECOND, NULL-ended; each may be NULL. The caller frees the array; the texts are borrowed. */
const char **software_join(const char *const *first, const char *const *second) {
    size_t count = 0, used = 0;
    for (size_t i = 0; first && first[i]; i++)
        count++;
    for (size_t i = 0; second && second[i]; i++)
        count++;
    const char **joined = xcalloc(count + 1, sizeof *joined);
    for (size_t i = 0; first && first[i]; i++)
        joined[used++] = first[i];
    for (size_t i = 0; second && second[i]; i++)
        joined[used++] = second[i];
    return joined;
}

/* ---- What a node answers ---------------------------------------------------------------------------------
 */

/* The records of an environment, borrowed, and how many; *AT moves behind the empty one that ends it. */
static const char **split_records(const char **at, const char *end, size_t *count) {
    *count = 0;
    for (const char *record = *at; record < end && *record; record += strlen(record) + 1)
        ++*count;
    const char **records = xcalloc(*count + 1, sizeof *records);
    for (size_t i = 0; i < *count; i++, *at += strlen(*at) + 1)
        records[i] = *at;
    *at += *at < end;
    return records;
}

static const char *find_variable(const char *const *records, const char *name) {
    size_t length = strcspn(name, "=");
    for (; *records; records++)
        if (strncmp(*records, name, length) == 0 && (*records)[length] == '=')
            return *records;
    return NULL;
}

/* Archives are passed on: variables that may be a secret stay out of them, and so does what module systems
 * note down for themselves. */
static bool is_recorded(const char *variable) {
    return !secret_is_variable(variable) && !strcasestr(variable, "MODULETABLE") &&
           !strcasestr(variable, "BASH_FUNC");
}

/* Adds "NAME=VALUE", or "NAME" for what is taken away, to the node's environment and to the record of it. */
static void add_change(struct run_node *node, size_t *count, const char *change, size_t length,
                       cJSON *record) {
    cleanup_free char *name = xstrndup(change, strcspn(change, "="));
    char *copy = node->environment[(*count)++] = xstrndup(change, length);
    if (is_recorded(copy))
        json_add_string(record, name, copy[strlen(name)] ? copy + strlen(name) + 1 : NULL);
}

/* Sets NODE's environment to the variables that loading the software has changed, and records these and the
 * tools found. OUTPUT has the variables before, those after, and lines TOOL=PATH. */
static void record_environment(struct run_node *node, const struct node_stream *output) {
    const char *at = output->bytes, *end = output->bytes + output->length;
    size_t before_count, after_count, count = 0;
    cleanup_free const char **before = split_records(&at, end, &before_count),
                            **after = split_records(&at, end, &after_count);
    cJSON *record = json_add_object(node->software, "environment"),
          *tools = json_add_object(node->software, "tools");
    experiment_arguments_free(node->environment);
    node->environment = xcalloc(before_count + after_count + 1, sizeof *node->environment);
    for (size_t i = 0; after[i]; i++) {
        const char *known = find_variable(before, after[i]);
        if (!known || strcmp(known, after[i]) != 0)
            add_change(node, &count, after[i], strlen(after[i]), record);
    }
    for (size_t i = 0; before[i]; i++)
        if (!find_variable(after, before[i]))
            add_change(node, &count, before[i], strcspn(before[i], "="), record);
    for (const char *line = at; line < end; line += strcspn(line, "\n") + 1) {
        cleanup_free char *name = xstrndup(line, strcspn(line, "="));
        size_t length = strcspn(line, "\n"), value = strlen(name) + 1;
        if (value <= length)
            json_add_bytes(tools, name, line + value, length - value);
    }
}

static const char blank[] = " \t\r\n";

/* Sets FAILURE: "on node a-1, module 'gcc/99' cannot be loaded: Lmod has detected the following error: ...".
 */
static int set_load_failure(const struct run_node *node, const struct node_result *result,
                            struct failure *failure) {
    char how[128];
    cleanup(text_clear) struct text said;
    text_init(&said, COMPLAINT_MAX);
    const char *word = result->error.length ? result->error.bytes : "";
    word += strspn(word, blank);
    for (int r = 0; r == 0 && *word; word += strcspn(word, blank), word += strspn(word, blank))
        r = text_printf(&said, "%s%.*s", said.length ? " " : "", (int)strcspn(word, blank), word);
    const char *begin = result->output.length ? result->output.bytes : "",
               *what = begin + result->output.length;
    while (what > begin && what[-1])
        what--;
    if (*what == '\0' || result->exit.code != 1)
        return failure_set_kind(failure, FAILURE_EXPERIMENT, -ECHILD,
                                "on node %s, loading the software %s: %s", node->name,
                                remote_exit_describe(&result->exit, how, sizeof how), said.bytes);
    return failure_set_kind(failure, FAILURE_INPUT, -ENOPKG, "on node %s, %.300s%s%s", node->name, what,
                            said.length ? ": " : "", said.bytes);
}

/* ---- All nodes -------------------------------------------------------------------------------------------
 */

/* Notes which items of MEMBER, an object of the records, are not the same on all nodes. */
static void note_differences(struct node_set *set, const char *member) {
    cleanup(json_cleanup) cJSON *names = cJSON_CreateObject();
    const cJSON *item;
    for (size_t i = 0; i < set->count; i++)
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(set->items[i].software, member)) {
            if (!cJSON_GetObjectItemCaseSensitive(names, item->string))
                json_add_string(names, item->string, NULL);
        }
    for (const cJSON *name = names->child; name; name = name->next) {
        cleanup(node_texts_clear) struct node_texts values = node_texts_new(set->count);
        for (size_t i = 0; i < set->count; i++) {
            const cJSON *record = cJSON_GetObjectItemCaseSensitive(set->items[i].software, member);
            item = cJSON_GetObjectItemCaseSensitive(record, name->string);
            if (record && run_node_is_in(&set->items[i]))
                values.items[i] = xstrdup(cJSON_IsString(item) ? item->valuestring : "unset");
        }
        node_set_note_difference(set, name->string, &values);
    }
}

/* The arguments of the script that loads the software: a shell, then pairs of a kind and a name. The caller
 * frees. */
static const char **make_arguments(const struct software_settings *settings) {
    const struct bind_texts *kinds = settings->kinds;
    bool bash = kinds[SOFTWARE_MODULES].count || kinds[SOFTWARE_SPACK].count ||
                kinds[SOFTWARE_SPACK_ENVIRONMENT].count;
    const char *const shell[] = {bash ? "bash" : "sh", "-c", load_script, "assay", NULL};
    size_t count = 0;
    for (size_t kind = 0; kind < SOFTWARE_KINDS; kind++)
        count += kinds[kind].count;
    cleanup_free const char **pairs = xcalloc(2 * count + 1, sizeof *pairs);
    const char **at = pairs;
    for (size_t kind = 0; kind < SOFTWARE_KINDS; kind++)
        for (size_t i = 0; i < kinds[kind].count; i++) {
            *at++ = software_kind_names[kind];
            /* Each prefix goes in front of those before it. */
            *at++ = kinds[kind].items[kind == SOFTWARE_PREFIX ? kinds[kind].count - 1 - i : i];
        }
    return software_join(shell, pairs);
}

/* Checks that the software was loaded, and records NODE's environment. */
static int read_answer(struct run_node *node, const struct node_result *result, struct failure *failure) {
    if (result->outcome == NODE_SKIPPED)
        return 0;
    if (result->outcome != NODE_DONE) {
        *failure = result->failure;
        return failure_prefix(failure, "on node %s, loading the software", node->name);
    }
    if (!node_result_is_good(result))
        return set_load_failure(node, result, failure);
    if (result->output.total > result->output.length)
        return failure_set_kind(
            failure, FAILURE_EXPERIMENT, -E2BIG,
            "on node %s, the environment has %llu bytes with what is loaded; expected at most %d", node->name,
            (unsigned long long)result->output.total / 2, ANSWER_MAX / 2);
    record_environment(node, &result->output);
    return 0;
}

/* Loads modules and other software on all nodes, and notes where the environments differ. */
int software_load(struct node_set *set, struct failure *failure) {
    const struct software_settings *settings = &set->experiment->software;
    cleanup(text_clear) struct text shown;
    text_init(&shown, FAILURE_TEXT_SIZE);
    text_append_string(&shown, "load ");
    software_settings_describe(settings, &shown);
    if (shown.length == strlen("load "))
        return 0;
    cleanup_free const char **arguments = make_arguments(settings);
    struct node_command question = {
        .arguments = arguments, .folder = RUN_WORK_FOLDER, .shown = shown.bytes, .kept = ANSWER_MAX};
    struct node_result *results = NULL;
    int r = node_command_run(set, &question, &results, failure);
    if (r < 0)
        return r;
    for (struct run_node *node = NULL; r == 0 && (node = node_set_next(set, node));)
        r = read_answer(node, &results[node->number], failure);
    node_results_free(set->group, results);
    if (r < 0)
        return r;
    note_differences(set, "environment");
    note_differences(set, "tools");
    return 0;
}
