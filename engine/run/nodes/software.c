/* What ran on each node, as its loader, its package manager and its compiler say: software/versions.json. */
#include "engine/run/nodes/software.h"

#include "archive-format/layout.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/memory.h"
#include "engine/run/nodes/command.h"
#include "engine/run/nodes/nodes.h"

#include <stdlib.h>
#include <string.h>

enum { ANSWER_MAX = 1 << 20, FIELDS = 3, PATH_LENGTH_MAX = 4 << 10 };

/* Arguments: pairs of a name ("-": none) and a word, which is a path or is looked up in PATH. Prints, with
 * symbolic links resolved, lines of three fields that are separated by tabs,
 *
 *     file     NAME    PATH      of each word that is a file, and that may be executed if it has no name
 *     version  -       VERSION   of the file before, when that starts MPI's ranks
 *     library  SONAME  PATH      of the file before; no path: the loader does not find it
 *     value    KEY     VALUE
 *
 * and then "HASH  PATH" and "PACKAGE: PATH" lines of all these files. */
static const char list_script[] =
    "tab=$(printf '\\t')\n"
    "set -f\n"
    "list=$(while [ $# -gt 1 ]; do\n"
    "    name=$1 word=$2 file=\n"
    "    shift 2\n"
    "    IFS=:\n"
    "    case $word in\n"
    "    */*) [ ! -f \"$word\" ] || file=$word ;;\n"
    "    *) for folder in $PATH; do\n"
    "        [ -n \"$file\" ] || [ ! -f \"$folder/$word\" ] || [ ! -x \"$folder/$word\" ] || "
    "file=$folder/$word\n"
    "    done ;;\n"
    "    esac\n"
    "    [ -n \"$file\" ] && { [ \"$name\" != - ] || [ -x \"$file\" ]; } || continue\n"
    "    printf 'file\\t%s\\t%s\\n' \"$name\" \"$(readlink -f -- \"$file\")\"\n"
    "    case ${word##*/} in mpirun | mpiexec)\n"
    "        printf 'version\\t-\\t%s\\n' \"$(\"$file\" --version 2>/dev/null | grep -m 1 '[0-9]')\" ;;\n"
    "    esac\n"
    /* ldd would start what is no ELF file, and refuses what is linked statically. */
    "    [ \"$(head -c 4 -- \"$file\" | tail -c 3)\" = ELF ] || continue\n"
    "    ldd -- \"$file\" 2>/dev/null | sed -n \"s/^$tab\\(.*\\) => not found\\$/\\1$tab/p\n"
    "        s/^$tab\\(.*\\) => \\(.*\\) (0x[0-9a-f]*)\\$/\\1$tab\\2/p\" | while IFS=$tab read -r name file; "
    "do\n"
    "        printf 'library\\t%s\\t%s\\n' \"$name\" \"$([ -z \"$file\" ] || readlink -f -- \"$file\")\"\n"
    "    done\n"
    "done)\n"
    "IFS='\n'\n"
    "files=$(printf '%s\\n' \"$list\" | cut -f 3 | sort -u)\n"
    "printf '%s\\n' \"$list\"\n"
    "printf 'value\\tcompiler\\t%s\\n' \"$(cc --version 2>/dev/null | head -n 1)\"\n"
    "printf 'value\\tlibc\\t%s\\n' \"$(getconf GNU_LIBC_VERSION 2>/dev/null)\"\n"
    "sha256sum -- $files 2>/dev/null\n"
    /* What dpkg-query -S answers, in an eighth of its time, for that reads about all packages first. Packages
       may have been made before /lib was /usr/lib. */
    "set +f\n"
    "printf '%s\\n' \"$files\" | sed 'p;s,^/usr/,/,' |\n"
    "    LC_ALL=C grep -HxFf - /var/lib/dpkg/info/*.list 2>/dev/null | awk -F '[.]list:' '\n"
    "        { sub(\".*/\", \"\", $1); names[$2] = names[$2] (names[$2] ? \", \" : \"\") $1 }\n"
    "        END { for (file in names) print names[file] \": \" file }'\n"
    "exit 0\n";

/* The beginning of the line of TEXT that ends in "BETWEEN PATH"; NULL: there is none. */
static const char *find_line(const char *text, const char *between, const char *path) {
    char end[PATH_LENGTH_MAX];
    snprintf(end, sizeof end, "%s%s\n", between, path);
    const char *at = path[0] ? strstr(text, end) : NULL;
    while (at && at > text && at[-1] != '\n')
        at--;
    return at;
}

/* "libc6:amd64: /lib/x86_64-linux-gnu/libc.so.6" */
static void add_package(cJSON *file, const char *answer, const char *path) {
    const char *line = find_line(answer, ": ", path);
    if (!line && strncmp(path, "/usr/", 5) == 0)
        line = find_line(answer, ": ", path + strlen("/usr"));
    if (line)
        json_add_bytes(file, "package", line, (size_t)(strstr(line, ": /") - line));
}

/* Adds a file with its hash and package, as ANSWER says, to LIST. NAME "-": it has none beside its path. */
static cJSON *add_file(cJSON *list, const char *name, const char *path, const char *answer) {
    cJSON *file = json_add_object(list, NULL);
    const char *hash = find_line(answer, "  ", path);
    if (strcmp(name, "-") != 0)
        json_add_string(file, "name", name);
    json_add_string(file, "path", path[0] ? path : NULL);
    if (hash)
        json_add_bytes(file, "sha256", hash, HASH_HEX_SIZE - 1);
    else
        json_add_string(file, "sha256", NULL);
    add_package(file, answer, path);
    return file;
}

/* Adds the files of an ANSWER as member KEY of the node's record. */
static void add_answer(struct run_node *node, const char *key, const char *answer) {
    cJSON *list = json_add_array(node->software, key), *file = NULL, *libraries = NULL;
    for (const char *line = answer; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        cleanup_free char *copy = xstrndup(line, strcspn(line, "\n"));
        char *fields[FIELDS] = {copy};
        for (size_t i = 1; i < FIELDS && fields[i - 1]; i++)
            if ((fields[i] = strchr(fields[i - 1], '\t')))
                *fields[i]++ = '\0';
        if (!fields[FIELDS - 1])
            continue;
        if (strcmp(fields[0], "file") == 0) {
            file = add_file(list, fields[1], fields[2], answer);
            libraries = NULL;
        } else if (strcmp(fields[0], "version") == 0) {
            json_add_string(file, "version", fields[2]);
        } else if (strcmp(fields[0], "library") == 0) {
            if (!libraries)
                libraries = json_add_array(file, "libraries");
            add_file(libraries, fields[1], fields[2], answer);
        } else if (strcmp(fields[0], "value") == 0) {
            cJSON_DeleteItemFromObjectCaseSensitive(node->software, fields[1]);
            json_add_string(node->software, fields[1], fields[2][0] ? fields[2] : NULL);
        }
    }
}

/* Which files each node is asked about. */
struct file_question {
    /* The words of a node for the script, owned, NULL-ended; none: it is not asked. */
    const char **(*find)(const struct run_node *node, void *context);
    void *context;
    const char **arguments; /* of the last node that was asked; owned */
};

static int specify_files(struct node_set *set, size_t node, struct remote_command_specification *ret,
                         void *context, struct failure *failure) {
    static const char *const shell[] = {"sh", "-c", list_script, "assay", NULL};
    struct file_question *question = context;
    cleanup_free const char **words = question->find(&set->items[node], question->context);
    (void)failure;
    free(question->arguments);
    question->arguments = software_join(shell, words);
    ret->arguments = question->arguments;
    ret->coalesce_ms = 5000; /* the script writes a line at a time; its end sends what is left */
    return 0;
}

/* Asks each node about the files that QUESTION finds for it. The answers become member KEY of the nodes'
 * records; a node that fails has none. */
static int query_files(struct node_set *set, struct file_question *question, const char *key,
                       const char *shown, struct failure *failure) {
    cleanup_free bool *nodes = xcalloc(set->count, sizeof *nodes);
    bool any = false;
    for (struct run_node *node = NULL; (node = node_set_next(set, node));) {
        size_t i = node->number;
        if (!node->software || !node_group_is_there(set->group, i))
            continue;
        cleanup_free const char **words = question->find(node, question->context);
        any |= nodes[i] = words[0];
    }
    if (!any)
        return 0;
    struct node_command command = {.specify = specify_files,
                                   .context = question,
                                   .in_software = true,
                                   .nodes = nodes,
                                   .shown = shown,
                                   .kept = ANSWER_MAX};
    struct node_result *results = NULL;
    int r = node_command_run(set, &command, &results, failure);
    free(take_pointer(question->arguments));
    if (r < 0)
        return r;
    for (struct run_node *node = NULL; (node = node_set_next(set, node));) {
        const struct node_result *result = &results[node->number];
        if (node_result_is_good(result) && result->output.length)
            add_answer(node, key, result->output.bytes);
    }
    node_results_free(set->group, results);
    return 0;
}

int software_mpirun(const struct node_set *set, char ***ret, struct failure *failure) {
    static char usual[] = "mpirun";
    const struct experiment_command *own = &set->experiment->job.mpirun;
    struct experiment_command command = {.arguments = {.items = (char *[]){usual}, .count = 1}};
    cleanup(plan_values_clear) struct plan_values values = plan_values_new(set->plan, 1);
    struct experiment_values view = plan_values_view(&values);
    return experiment_command_arguments(own->arguments.count ? own : &command, set->experiment->file, &view,
                                        ret, failure);
}

/* The programs that a unit starts; MPIRUN is NULL if it starts no ranks. */
struct programs {
    char **arguments, **mpirun;
};

static void clear_programs(struct programs *programs) {
    experiment_arguments_free(programs->arguments);
    experiment_arguments_free(programs->mpirun);
}

/* The arguments of the run command that may be programs, as pairs "-", PATH: its first one, and paths,
 * because programs such as mpirun start others. The caller frees the array. */
static const char **find_programs(const struct run_node *node, void *context) {
    const struct programs *programs = context;
    char **arguments = programs->arguments;
    size_t count = 0, used = 0;
    (void)node;
    while (arguments[count])
        count++;
    const char **words = xcalloc(2 * count + 3, sizeof *words);
    if (programs->mpirun) {
        words[used++] = "-";
        words[used++] = programs->mpirun[0];
    }
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strchr(arguments[i], '/')) {
            words[used++] = "-";
            words[used++] = arguments[i];
        }
    return words;
}

/* Records the programs that the run command starts, their libraries and hashes, with the values of the first
 * unit. */
int software_record_programs(struct node_set *set, struct failure *failure) {
    cleanup(plan_values_clear) struct plan_values values = plan_values_new(set->plan, 1);
    cleanup(clear_programs) struct programs programs = {0};
    plan_values_set(&values, set->plan, 0, 1);
    struct experiment_values usable = plan_values_view(&values);
    int r = experiment_command_arguments(&set->experiment->run, set->experiment->file, &usable,
                                         &programs.arguments, failure);
    if (r == 0 && experiment_has_ranks(set->experiment))
        r = software_mpirun(set, &programs.mpirun, failure);
    if (r < 0)
        return r;
    struct file_question question = {.find = find_programs, .context = &programs};
    return query_files(set, &question, "programs",
                       "list the programs that run, their libraries and the hashes of both", failure);
}

/* The facts in the node's record that are paths, as pairs of a name and a path. The caller frees the array.
 */
static const char **find_facts(const struct run_node *node, void *context) {
    const cJSON *facts = cJSON_GetObjectItemCaseSensitive(node->software, "kernel"), *fact;
    const char **words = xcalloc(2 * (size_t)cJSON_GetArraySize(facts) + 1, sizeof *words);
    size_t used = 0;
    (void)context;
    cJSON_ArrayForEach(fact, facts) {
        if (cJSON_IsString(fact) && fact->valuestring[0] == '/') {
            words[used++] = fact->string;
            words[used++] = fact->valuestring;
        }
    }
    return words;
}

int software_record_facts(struct node_set *set, struct failure *failure) {
    if (!set->group)
        return 0;
    struct file_question question = {.find = find_facts};
    return query_files(set, &question, "libraries", "list the libraries that kernels named, and their hashes",
                       failure);
}

int software_write(struct node_set *set, struct failure *failure) {
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    cJSON *nodes = json_add_object(object, "nodes");
    for (size_t i = 0; i < set->count; i++)
        if (set->items[i].software)
            cJSON_AddItemReferenceToObject(nodes, set->items[i].name, set->items[i].software);
    cleanup_free char *path = record_path(set->record, ARCHIVE_VERSIONS);
    /* A part that got no further than to reach the nodes knows less than those before. */
    if (cJSON_GetArraySize(nodes) == 0 && file_exists(path))
        return 0;
    return json_write_file(path, object, failure);
}
