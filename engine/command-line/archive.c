/* assay archive: lists, prints, extracts, verifies, signs, fetches, imports, exports and publishes archives.
 */
#include "engine/command-line/archive-export.h"
#include "engine/command-line/archive-import.h"
#include "engine/command-line/archive-sign.h"
#include "engine/command-line/output.h"
#include "engine/command-line/status/fetch.h"
#include "engine/command-line/verb.h"
#include "engine/report/shown.h"

#include "archive-format/reader.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/report/report.h"
#include "engine/run/record/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t content_bytes(const struct archive_reader *archive) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < archive_member_count(archive); i++)
        bytes += archive_member_size(archive, i);
    return bytes;
}

/* What run.json says of which run it is: as people see it, where they do, and in JSON. */
static void add_head(struct report_section *to, const struct archive_reader *archive) {
    const struct archive_run *run = archive_run(archive);
    char started[CLOCK_TEXT_SIZE], ended[CLOCK_TEXT_SIZE];
    report_text(to, "archive", NULL, archive_path(archive), true);
    report_text(to, "name", "name", run->name, false);
    report_text(to, "kind", NULL, archive_kind_name((enum archive_kind)run->kind),
                run->kind == ARCHIVE_OF_RUN);
    report_text(to, "run_id", "run", run->run_id, false);
    report_text(to, "status", "status", run->status, false);
    report_text(to, "error", "error", run->error, !run->error);
    report_text(to, "started", "started", run->started_ns ? clock_format(run->started_ns, started) : NULL,
                false);
    report_text(to, "ended", "ended", run->ended_ns ? clock_format(run->ended_ns, ended) : NULL, false);
    report_text(to, "archive_version", NULL, run->version, true);
    report_text(to, "experiment", NULL, run->experiment.name, false);
    report_number(to, "bytes", NULL, (double)archive_bytes(archive), NULL, 0, true);
    report_number(to, "content_bytes", NULL, (double)content_bytes(archive), NULL, 0, true);
    report_number(to, "member_count", NULL, (double)archive_member_count(archive), NULL, 0, true);
}

/* ---- list */

static void add_members(struct report_section *to, const struct archive_reader *archive) {
    static const struct column columns[] = {{.name = "size", .unit = "By"},
                                            {.name = "packed", .unit = "By"},
                                            {.name = "sha256"},
                                            {.name = "name"}};
    struct report_table *table = report_table(to, "members", "", columns, sizeof columns / sizeof *columns);
    report_print_whole(table);
    for (size_t i = 0; i < archive_member_count(archive); i++) {
        const char *sha256 = archive_member_sha256(archive, i);
        report_cell(table, (double)archive_member_size(archive, i));
        report_cell(table, (double)archive_member_stored_size(archive, i));
        report_cell_text(table, *sha256 ? sha256 : NULL);
        report_cell_text(table, archive_member_name(archive, i));
    }
}

static int list(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    int r = archive_open(arguments->operands[1], &archive, failure);
    r = r < 0 ? r : archive_list(archive, failure);
    if (r < 0)
        return r;
    cleanup(report_cleanup) struct report *report = report_new();
    char bytes[NUMBER_TEXT_SIZE], content[NUMBER_TEXT_SIZE];
    cleanup_free char *size =
        xformat("version %s, %s, %zu files of %s", archive_run(archive)->version,
                number_describe_bytes((double)archive_bytes(archive), bytes), archive_member_count(archive),
                number_describe_bytes((double)content_bytes(archive), content));
    add_head(report->root, archive);
    bool is_folder = archive_is_folder(archive);
    report_text(report->root, NULL, "verified",
                is_folder ? "no: the folder of a run has no hashes before it is sealed"
                          : "no: `assay archive verify` checks every byte",
                false);
    report_text(report->root, NULL, is_folder ? "folder" : "archive", size, false);
    add_members(report->root, archive);
    output_report(report, verb_switch(arguments, "--json"), false);
    return 0;
}

/* ---- cat */

/* BYTES has room for one more. */
static void print_safely(char *bytes, size_t length) {
    char after = bytes[length];
    bytes[length] = '\0';
    shown_write(stdout, bytes, length);
    bytes[length] = after;
}

/* Reads the member to its end; with PRINT to standard output, as long as somebody takes it. What is printed
 * to a terminal must not steer it: there, lines are printed as in a table. */
static int read_through(struct archive_reader *archive, const char *name, bool print,
                        struct failure *failure) {
    cleanup(archive_member_cleanup) struct archive_member *member = NULL;
    char buffer[65536];
    bool is_terminal = isatty(STDOUT_FILENO);
    size_t kept = 0; /* the begin of a line whose end has not come */
    int r = archive_member_open(archive, name, &member, failure);
    if (r < 0)
        return r;
    int64_t got;
    while ((got = archive_member_read(member, buffer + kept, sizeof buffer - 1 - kept)) > 0) {
        size_t length = kept + (size_t)got;
        const char *newline = is_terminal ? memrchr(buffer, '\n', length) : NULL;
        size_t ready = newline ? (size_t)(newline - buffer) + 1 : length;
        kept = print && newline ? length - ready : 0;
        if (print && is_terminal)
            print_safely(buffer, ready);
        else if (print && fwrite(buffer, 1, ready, stdout) != ready)
            return 0; /* main says why standard output failed */
        memmove(buffer, buffer + ready, kept);
    }
    if (kept > 0)
        print_safely(buffer, kept);
    return archive_member_status(member, failure);
}

/* Twice: nothing is printed of a member that turns out at its end to be damaged. */
static int cat(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    int r = archive_open(arguments->operands[1], &archive, failure);
    if (r == 0)
        r = read_through(archive, arguments->operands[2], false, failure);
    return r < 0 ? r : read_through(archive, arguments->operands[2], true, failure);
}

/* ---- extract */

/* "runs/dgemm.zip" -> "dgemm", in the working folder. */
static char *folder_for(const char *path) {
    const char *name = file_base_name(path);
    return text_ends_in(name, ".zip") ? xstrndup(name, strlen(name) - 4) : xformat("%s.extracted", name);
}

static int extract(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    const char *given = verb_value(arguments, "--folder");
    cleanup_free char *folder = given ? xstrdup(given) : folder_for(arguments->operands[1]);
    int r = archive_open(arguments->operands[1], &archive, failure);
    if (r == 0)
        r = archive_extract(archive, folder, arguments->operands + 2, arguments->operand_count - 2, failure);
    if (r == 0)
        printf("%s\n", folder);
    return r;
}

/* ---- verify */

/* What was found of an archive that is not refused. */
struct verdict {
    uint64_t lines; /* of the results that the journal accounts for */
    char *signer;   /* NULL: signatures were not asked for */
};

static int print_verified(const struct archive_reader *archive, const struct verdict *verdict, bool json,
                          struct failure *failure) {
    char sha256[HASH_HEX_SIZE], bytes[NUMBER_TEXT_SIZE];
    int r = json ? hash_file(archive_path(archive), sha256, NULL, failure) : 0;
    if (r < 0)
        return r;
    cleanup(report_cleanup) struct report *report = report_new();
    const struct archive_run *run = archive_run(archive);
    const char *of = run->kind == ARCHIVE_OF_RUN ? run->experiment.name : run->name;
    if (json) {
        add_head(report->root, archive);
        report_text(report->root, "sha256", NULL, sha256, true);
        report_boolean(report->root, "verified", NULL, true, true);
        report_number(report->root, "lines_traced", NULL, (double)verdict->lines, NULL, 0, true);
        if (verdict->signer)
            report_text(report->root, "signer", NULL, verdict->signer, true);
        output_report_line(report);
        return 0;
    }
    cleanup_free char *traced =
        verdict->lines ? xformat(", %" PRIu64 " results traced", verdict->lines) : xstrdup("");
    report_note(report->root, REPORT_LINE, "%s: verified: %s %s%s%s, %zu files, %s%s%s%s",
                archive_path(archive), run->status ? run->status : "?",
                archive_kind_name((enum archive_kind)run->kind), of ? " of " : "", of ? of : "",
                archive_member_count(archive), number_describe_bytes((double)content_bytes(archive), bytes),
                traced, verdict->signer ? ", signed by " : "", verdict->signer ? verdict->signer : "");
    report_print(report, stdout, false);
    return 0;
}

/* Says that PATH is refused, and why; one line, as for the others. */
static void print_refused(const char *path, bool json, const struct failure *reason) {
    char sentence[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE + 4];
    failure_describe(reason, sentence, sizeof sentence);
    cleanup(report_cleanup) struct report *report = report_new();
    if (json) {
        report_text(report->root, "archive", NULL, path, true);
        report_boolean(report->root, "verified", NULL, false, true);
        report_text(report->root, "reason", NULL, sentence, true);
        output_report_line(report);
        return;
    }
    /* The place is the archive, and said; or a line of a file inside it. */
    printf("%s: refused: ", shown(path).text);
    shown_print(stdout, strcmp(reason->place, path) == 0 ? reason->text : sentence, false);
    putchar('\n');
}

static int verify_one(const char *path, const char *signers, bool json, struct failure *failure) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    int r = archive_open(path, &archive, failure);
    struct verdict verdict = {0};
    if (r == 0)
        r = archive_check(archive, failure);
    if (r == 0)
        r = run_trace_check(archive, &verdict.lines, failure);
    if (r == 0 && signers)
        r = archive_check_signature(archive, signers, &verdict.signer, failure);
    r = r < 0 ? r : print_verified(archive, &verdict, json, failure);
    free(verdict.signer);
    return r;
}

/* All of them, whatever becomes of each. */
static int verify(const struct verb_arguments *arguments, struct failure *failure) {
    bool json = verb_switch(arguments, "--json");
    struct failure last = {0}, worst = {0};
    size_t count = arguments->operand_count - 1, refusals = 0;
    for (size_t i = 1; i <= count; i++) {
        if (verify_one(arguments->operands[i], verb_value(arguments, "--signers"), json, &last) == 0)
            continue;
        if (refusals++ == 0 || last.kind == FAILURE_VERIFICATION)
            worst = last;
        print_refused(arguments->operands[i], json, &last);
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

static const struct verb_action actions[] = {
    {"list", 1, 1, "one archive or the folder of a run", "--json", list},
    {"cat", 2, 2, "an archive, or the folder of a run, and one of its members", NULL, cat},
    {"extract", 1, SIZE_MAX, "an archive, and members of it or nothing", "--folder", extract},
    {"verify", 1, SIZE_MAX, "archives", "--json --signers", verify},
    {"sign", 1, 1, "one archive", "--key", archive_sign},
    {"fetch", 1, 2, "HOST:RUN, and a folder or nothing", "--partial --jump --ssh-config --quiet",
     archive_fetch},
    {"import", 2, 2, "a format, peanut or csv, and a file", "--output --mapping --json", archive_import},
    {"export", 2, 2, "a form, bagit, frictionless or folder, and an archive", "--output",
     archive_export_command},
    {"publish", 1, 1, "one archive", "--output --creator --license --title --keyword", archive_publish},
    {0},
};

int command_archive(const struct verb_arguments *arguments, struct failure *failure) {
    return verb_run_action(arguments, actions, arguments->operands[0], failure);
}
