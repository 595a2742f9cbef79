/* assay archive: lists, prints, extracts and verifies sealed runs. */
#include "engine/command-line/shown.h"
#include "engine/command-line/verb.h"

#include "archive-format/reader.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_BYTES_MAX = 256 << 20 };

static void free_object(cJSON **object) {
    cJSON_Delete(*object);
}

/* What an archive says of itself is anybody's text: nothing of it may steer the terminal. */
static void print_text(const char *text) {
    shown_print(stdout, text ? text : "?", false);
}

static int print_json(const cJSON *value, bool pretty, struct failure *failure) {
    cleanup(text_clear) struct text text;
    text_init(&text, JSON_BYTES_MAX);
    int r = json_print(value, pretty, &text);
    if (r < 0)
        return failure_set(failure, r, "cannot print the result: %s", strerror(-r));
    printf("%s\n", text.bytes);
    return 0;
}

static uint64_t content_bytes(const struct archive_reader *archive) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < archive_member_count(archive); i++)
        bytes += archive_member_size(archive, i);
    return bytes;
}

/* The members of run.json that tell which run it is, as they are shown and as they are called in JSON. */
static const char *const head_keys[] = {"archive_version", "run_id",  "name", "status",
                                        "error",           "started", "ended"};
enum { HEAD_COUNT = sizeof head_keys / sizeof *head_keys };

static bool add_head(cJSON *object, const struct archive_reader *archive) {
    bool added =
        json_add_string(object, "archive", archive_path(archive)) &&
        json_add_string(object, "experiment", archive_run_text(archive, "experiment", "name", NULL)) &&
        json_add_uint64(object, "bytes", archive_bytes(archive)) &&
        json_add_uint64(object, "content_bytes", content_bytes(archive)) &&
        json_add_uint64(object, "member_count", archive_member_count(archive));
    for (size_t i = 0; added && i < HEAD_COUNT; i++)
        added = json_add_string(object, head_keys[i], archive_run_text(archive, head_keys[i], NULL));
    return added;
}

/* ---- list */

static void print_pair(const char *key, const char *value) {
    printf("%-11s ", key);
    print_text(value);
    putchar('\n');
}

static void list_text(const struct archive_reader *archive) {
    char bytes[NUMBER_TEXT_SIZE], content[NUMBER_TEXT_SIZE];
    const char *error = archive_run_text(archive, "error", NULL);
    print_pair("name", archive_run_text(archive, "name", NULL));
    print_pair("run", archive_run_text(archive, "run_id", NULL));
    print_pair("status", archive_run_text(archive, "status", NULL));
    if (error)
        print_pair("error", error);
    print_pair("experiment", archive_run_text(archive, "experiment", "name", NULL));
    print_pair("started", archive_run_text(archive, "started", NULL));
    print_pair("ended", archive_run_text(archive, "ended", NULL));
    print_pair("verified", "no: `assay archive verify` checks every byte");
    printf("%-11s version ", "archive");
    print_text(archive_run_text(archive, "archive_version", NULL));
    printf(", %s, %zu files of %s\n\n", number_describe_bytes((double)archive_bytes(archive), bytes),
           archive_member_count(archive), number_describe_bytes((double)content_bytes(archive), content));
    printf("%12s  %13s  %-64s  %s\n", "size (byte)", "packed (byte)", "sha256", "name");
    for (size_t i = 0; i < archive_member_count(archive); i++)
        printf("%12" PRIu64 "  %13" PRIu64 "  %-64s  %s\n", archive_member_size(archive, i),
               archive_member_stored_size(archive, i), archive_member_sha256(archive, i),
               shown(archive_member_name(archive, i)).text);
}

static int list_json(const struct archive_reader *archive, struct failure *failure) {
    cleanup(free_object) cJSON *object = cJSON_CreateObject();
    if (!object || !add_head(object, archive))
        return failure_memory(failure);
    cJSON *members = json_add_array(object, "members");
    for (size_t i = 0; i < archive_member_count(archive); i++) {
        cJSON *member = members ? json_add_object(members, NULL) : NULL;
        const char *sha256 = archive_member_sha256(archive, i);
        if (!member || !json_add_string(member, "name", archive_member_name(archive, i)) ||
            !json_add_uint64(member, "size", archive_member_size(archive, i)) ||
            !json_add_uint64(member, "packed", archive_member_stored_size(archive, i)) ||
            !json_add_string(member, "sha256", *sha256 ? sha256 : NULL))
            return failure_memory(failure);
    }
    return print_json(object, true, failure);
}

static int list(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(archive_close_reader) struct archive_reader *archive = NULL;
    int r = archive_open(arguments->operands[1], &archive, failure);
    if (r < 0)
        return r;
    if (verb_switch(arguments, "--json"))
        return list_json(archive, failure);
    list_text(archive);
    return 0;
}

/* ---- cat */

/* Reads the member to its end; with PRINT to standard output, as long as somebody takes it. */
static int read_through(struct archive_reader *archive, const char *name, bool print,
                        struct failure *failure) {
    cleanup(archive_close_member) struct archive_member *member = NULL;
    char buffer[65536];
    int r = archive_member_open(archive, name, &member, failure);
    if (r < 0)
        return r;
    int64_t got;
    while ((got = archive_member_read(member, buffer, sizeof buffer)) > 0)
        if (print && fwrite(buffer, 1, (size_t)got, stdout) != (size_t)got)
            return 0; /* main tells why standard output failed */
    return archive_member_status(member, failure);
}

/* Twice: nothing is printed of a member that turns out at its end to be damaged. */
static int cat(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(archive_close_reader) struct archive_reader *archive = NULL;
    int r = archive_open(arguments->operands[1], &archive, failure);
    if (r == 0)
        r = read_through(archive, arguments->operands[2], false, failure);
    return r < 0 ? r : read_through(archive, arguments->operands[2], true, failure);
}

/* ---- extract */

/* "runs/dgemm.zip" -> "dgemm", in the working folder. */
static char *folder_for(const char *path) {
    const char *name = file_base_name(path);
    size_t length = strlen(name);
    bool zip = length > 4 && strcmp(name + length - 4, ".zip") == 0;
    return zip ? strndup(name, length - 4) : text_format("%s.extracted", name);
}

static int extract(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(archive_close_reader) struct archive_reader *archive = NULL;
    const char *given = verb_value(arguments, "--folder");
    cleanup_free char *folder = given ? strdup(given) : folder_for(arguments->operands[1]);
    if (!folder)
        return failure_memory(failure);
    int r = archive_open(arguments->operands[1], &archive, failure);
    if (r == 0)
        r = archive_extract(archive, folder, arguments->operands + 2, arguments->operand_count - 2, failure);
    if (r == 0)
        printf("%s\n", folder);
    return r;
}

/* ---- verify */

static void verified_text(const struct archive_reader *archive) {
    char bytes[NUMBER_TEXT_SIZE];
    const char *experiment = archive_run_text(archive, "experiment", "name", NULL);
    printf("%s: verified: ", shown(archive_path(archive)).text);
    print_text(archive_run_text(archive, "status", NULL));
    if (experiment) {
        fputs(" run of ", stdout);
        print_text(experiment);
    }
    printf(", %zu files, %s\n", archive_member_count(archive),
           number_describe_bytes((double)content_bytes(archive), bytes));
}

static int verified_json(const struct archive_reader *archive, struct failure *failure) {
    cleanup(free_object) cJSON *object = cJSON_CreateObject();
    char sha256[HASH_HEX_SIZE];
    int r = archive_hash(archive_path(archive), sha256, failure);
    if (r < 0)
        return r;
    if (!object || !add_head(object, archive) || !json_add_string(object, "sha256", sha256) ||
        !json_add_boolean(object, "verified", true))
        return failure_memory(failure);
    return print_json(object, false, failure);
}

/* Tells that PATH is refused, and why; one line, as for the others. */
static int refused(const char *path, bool json, const struct failure *reason, struct failure *failure) {
    char sentence[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE + 4];
    failure_describe(reason, sentence, sizeof sentence);
    if (!json) {
        printf("%s: refused: ", shown(path).text);
        /* The place is the archive, and said; or a line of a file inside it. */
        print_text(strcmp(reason->place, path) == 0 ? reason->text : sentence);
        putchar('\n');
        return 0;
    }
    cleanup(free_object) cJSON *object = cJSON_CreateObject();
    if (!object || !json_add_string(object, "archive", path) ||
        !json_add_boolean(object, "verified", false) || !json_add_string(object, "reason", sentence))
        return failure_memory(failure);
    return print_json(object, false, failure);
}

static int verify_one(const char *path, bool json, struct failure *failure) {
    cleanup(archive_close_reader) struct archive_reader *archive = NULL;
    int r = archive_open(path, &archive, failure);
    if (r == 0)
        r = archive_verify(archive, NULL, NULL, failure);
    if (r == 0 && json)
        r = verified_json(archive, failure);
    else if (r == 0)
        verified_text(archive);
    return r;
}

/* All of them, whatever becomes of each. */
static int verify(const struct verb_arguments *arguments, struct failure *failure) {
    bool json = verb_switch(arguments, "--json");
    struct failure last = {0}, worst = {0};
    size_t count = arguments->operand_count - 1, refusals = 0;
    for (size_t i = 1; i <= count; i++) {
        if (verify_one(arguments->operands[i], json, &last) == 0)
            continue;
        if (refusals++ == 0 || last.kind == FAILURE_VERIFICATION)
            worst = last;
        int r = refused(arguments->operands[i], json, &last, failure);
        if (r < 0)
            return r;
    }
    if (refusals == 0)
        return 0;
    *failure = worst;
    if (count > 1)
        return failure_set_kind(failure, worst.kind, worst.code, "%zu of %zu archives are refused", refusals,
                                count);
    return worst.code;
}

/* ---- The command */

static const struct action {
    const char *name;
    size_t least, most; /* operands, with the action's own name */
    const char *expected;
    bool json, folder; /* which options it takes */
    int (*run)(const struct verb_arguments *arguments, struct failure *failure);
} actions[] = {
    {"list", 2, 2, "one archive", true, false, list},
    {"cat", 3, 3, "an archive and one of its members", false, false, cat},
    {"extract", 2, SIZE_MAX, "an archive, and members of it or nothing", false, true, extract},
    {"verify", 2, SIZE_MAX, "archives", true, false, verify},
};
enum { ACTION_COUNT = sizeof actions / sizeof *actions };

static const struct action *find_action(const char *name, struct failure *failure) {
    const char *names[ACTION_COUNT];
    for (size_t i = 0; i < ACTION_COUNT; i++) {
        names[i] = actions[i].name;
        if (strcmp(name, names[i]) == 0)
            return &actions[i];
    }
    const char *nearest = text_nearest(name, names, ACTION_COUNT);
    failure_input(failure, NULL, 0, 0, "'%s' is not what can be done to an archive; expected %s%s%s", name,
                  nearest ? "'" : "list, cat, extract or verify", nearest ? nearest : "", nearest ? "'" : "");
    return NULL;
}

static int run(const struct verb_arguments *arguments, struct failure *failure) {
    const struct action *action = find_action(arguments->operands[0], failure);
    if (!action)
        return -EINVAL;
    if (arguments->operand_count < action->least || arguments->operand_count > action->most)
        return failure_input(failure, NULL, 0, 0, "'assay archive %s' has %zu operands; expected %s",
                             action->name, arguments->operand_count - 1, action->expected);
    const char *stray = verb_switch(arguments, "--json") && !action->json       ? "--json"
                        : verb_switch(arguments, "--folder") && !action->folder ? "--folder"
                                                                                : NULL;
    if (stray)
        return failure_input(failure, NULL, 0, 0, "'assay archive %s' has no option '%s'", action->name,
                             stray);
    return action->run(arguments, failure);
}

static const struct verb_option options[] = {
    {"--folder", 'C', "FOLDER",
     "extract: where to; a new or an empty folder. Without it, a folder called as the archive without "
     "'.zip'.",
     false},
    {"--json", 0, NULL, "list: print one JSON object; verify: one a line.", false},
    {NULL, 0, NULL, NULL, false},
};

const struct verb verb_archive = {
    .name = "archive",
    .summary = "list, cat, extract and verify sealed runs",
    .synopsis = "assay archive list|cat|extract|verify ARCHIVE... [OPTIONS]",
    .description = "An archive is the sealed zip of a run: the campaign, the design, the results, the "
                   "journal, what the machines are, and the SHA-256 of every file. archive-format/FORMAT.md "
                   "describes it. An archive may come from anybody: one that is damaged, hostile or not what "
                   "its manifest says is refused with the reason, before anything is written (exit code 5). "
                   "extract and verify check every byte, cat every byte of what it prints; list checks the "
                   "zip's directory and the names, and tells what the archive says of itself.\n"
                   "\n"
                   "list shows which run it is and every file with its size and SHA-256:\n"
                   "\n"
                   "    assay archive list dgemm.zip\n"
                   "    assay archive list dgemm.zip --json\n"
                   "\n"
                   "cat prints one file, after checking it:\n"
                   "\n"
                   "    assay archive cat dgemm.zip results/results.csv\n"
                   "\n"
                   "extract verifies the whole archive, then writes all of it, or the files and folders that "
                   "are named, and prints the folder:\n"
                   "\n"
                   "    assay archive extract dgemm.zip -C again\n"
                   "    assay archive extract dgemm.zip results nodes/n-1/facts.json -C some\n"
                   "\n"
                   "verify reads every byte of every archive given, and prints a line for each:\n"
                   "\n"
                   "    assay archive verify runs/*.zip\n",
    .options = options,
    .operands_least = 1,
    .operands_most = SIZE_MAX,
    .run = run,
};
