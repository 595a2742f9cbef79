#include "engine/table/input.h"

#include "archive-format/layout.h"
#include "engine/documents/document.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- CSV files and pipes ---- */

static int open_plain(struct input *input, const struct table_options *options, struct failure *failure) {
    const char *path = input->about.path;
    cleanup_close int descriptor = input->pipe >= 0 ? -1 : file_open(path, FILE_REGULAR, failure);
    int file = input->pipe >= 0 ? input->pipe : descriptor;
    struct stat status;
    if (file < 0)
        return file;
    if (fstat(file, &status) < 0 || (input->pipe >= 0 && lseek(file, input->pipe_start, SEEK_SET) < 0))
        return failure_set(failure, -errno, "cannot read '%s': %s", path, strerror(errno));
    input->device = status.st_dev;
    input->inode = status.st_ino;
    return csv_open_descriptor(file, strcmp(path, "-") == 0 ? "standard input" : path, options->separator,
                               input->is_folder ? NULL : options->columns, options->column_count, &input->csv,
                               failure);
}

/* ---- Archives */

/* The table that the suggested model is of. */
static char *suggested_member(const struct archive_reader *archive) {
    const char *table = archive_run_text(archive, "model", "table", NULL);
    return table ? xformat(ARCHIVE_TABLES "/%s.csv", table) : xstrdup(ARCHIVE_RESULTS);
}

/* A run begins its table with a header, when it knows what it will measure. */
static int refuse_empty(const struct input *input, struct failure *failure) {
    return failure_input(failure, input->about.path, 0, 0,
                         "nothing was measured: the run ended before its first unit, and '%s' is empty",
                         input->about.member);
}

static int open_archive(struct input *input, struct failure *failure) {
    int r = archive_open(input->about.path, &input->archive, failure);
    if (r < 0)
        return r;
    if (!input->about.member)
        input->about.member = suggested_member(input->archive);
    size_t index;
    if (archive_find(input->archive, input->about.member, &index) &&
        archive_member_size(input->archive, index) == 0)
        return refuse_empty(input, failure);
    r = archive_member_open(input->archive, input->about.member, &input->opened, failure);
    if (r < 0)
        return r;
    cleanup_free char *name = xformat("%s:%s", input->about.path, input->about.member);
    r = csv_open_function(name, archive_member_read, input->opened, &input->csv, failure);
    return r < 0 ? input_failure(input, r, failure) : 0;
}

static void describe_columns(struct input *input, const struct archive_columns *known) {
    for (size_t i = 0; i < input->column_count; i++) {
        struct table_column *column = &input->columns[i];
        const struct column *found = archive_columns_find(known, column->name);
        if (!found)
            continue;
        column->role = found->role;
        column->type = xstrdup(column_type_name(found->type));
        free(column->unit);
        column->unit = found->unit && found->unit[0] ? xstrdup(found->unit) : NULL;
    }
}

static char *text_of(const struct document_node *node, const char *key) {
    const struct document_node *value = document_get(node, key);
    return value && value->text && value->kind != DOCUMENT_NULL ? xstrdup(value->text) : NULL;
}

static char **texts_of(const struct document_node *node, const char *key, size_t *ret_count) {
    const struct document_node *value = document_get(node, key);
    if (!value || value->kind != DOCUMENT_SEQUENCE || value->count == 0)
        return NULL;
    char **texts = xcalloc(value->count, sizeof *texts);
    for (size_t i = 0; i < value->count; i++)
        texts[i] = xstrdup(value->items[i]->text ? value->items[i]->text : "");
    *ret_count = value->count;
    return texts;
}

/* What run.json says of the run, its answer, and the model that its experiment suggests. */
static void describe_run(struct input *input, const struct document_node *run) {
    const struct document_node *model = document_get(run, "model"), *answer = document_get(run, "answer");
    cleanup_free char *best = text_of(answer, "best");
    input->about.run_id = text_of(run, "run_id");
    input->about.experiment = text_of(document_get(run, "experiment"), "name");
    input->answer = (struct table_answer){.response = text_of(answer, "response"),
                                          .unit = text_of(answer, "unit"),
                                          .lines = text_of(answer, "lines"),
                                          .most = best && strcmp(best, "most") == 0};
    input->answer.sizes = texts_of(answer, "sizes", &input->answer.size_count);
    input->ranks_nothing = answer && answer->text && strcmp(answer->text, "none") == 0;
    cleanup_free char *table = text_of(model, "table");
    cleanup_free char *suggested =
        table ? xformat(ARCHIVE_TABLES "/%s.csv", table) : xstrdup(ARCHIVE_RESULTS);
    if (!model || model->kind != DOCUMENT_MAPPING || strcmp(input->about.member, suggested) != 0)
        return;
    struct table_suggestion *suggestion = &input->suggestion;
    input->suggests = true;
    suggestion->method = text_of(model, "method");
    suggestion->response = text_of(model, "response");
    suggestion->terms = text_of(model, "terms");
    suggestion->sizes = texts_of(model, "sizes", &suggestion->size_count);
    suggestion->by = texts_of(model, "by", &suggestion->by_count);
    suggestion->set = texts_of(model, "set", &suggestion->set_count);
}

/* Records beside the table are not used, but where one is damaged the user should know: the table itself is
 * proved as it is read. */
static void look_at_records(struct input *input) {
    for (size_t i = 0; i < archive_member_count(input->archive) && !input->damage; i++) {
        const char *name = archive_member_name(input->archive, i);
        cleanup(text_clear) struct text bytes;
        struct failure own = {0};
        text_init(&bytes, ARCHIVE_RECORD_BYTES_MAX);
        if (strcmp(name, input->about.member) == 0 ||
            archive_member_size(input->archive, i) >= ARCHIVE_RECORD_BYTES_MAX)
            continue;
        if (archive_read_member(input->archive, name, &bytes, &own) < 0)
            input->damage =
                xformat("'%s' is damaged beside its table (%s); 'assay archive verify' has all of it",
                        input->about.path, own.text);
    }
}

static int describe_archive(struct input *input, struct failure *failure) {
    struct archive_columns columns = {0};
    int r = hash_file(input->about.path, input->about.sha256, NULL, failure);
    r = r < 0 ? r : archive_table_columns(input->archive, input->about.member, &columns, failure);
    if (r < 0)
        return r;
    describe_columns(input, &columns);
    archive_columns_clear(&columns);
    describe_run(input, archive_run(input->archive)->root);
    look_at_records(input);
    size_t journal;
    if (archive_find(input->archive, ARCHIVE_JOURNAL, &journal)) {
        input->journal_bytes = archive_member_size(input->archive, journal);
        snprintf(input->journal_sha256, sizeof input->journal_sha256, "%s",
                 archive_member_sha256(input->archive, journal));
    }
    return 0;
}

/* ---- The folder of a run: what its archive has, as it stands */

static int open_folder(struct input *input, const struct table_options *options, struct failure *failure) {
    cleanup_free char *member = file_join(input->about.path, input->about.member);
    char *folder = input->about.path;
    struct stat status;
    if (stat(member, &status) == 0 && status.st_size == 0)
        return refuse_empty(input, failure);
    input->about.path = member;
    int r = open_plain(input, options, failure);
    input->about.path = folder;
    return r;
}

/* The JSON document NAME of the folder. */
static int read_record(const struct input *input, const char *name, struct document **ret,
                       struct failure *failure) {
    cleanup_free char *path = file_join(input->about.path, name);
    return document_read_json(path, ret, failure);
}

static int describe_folder(struct input *input, struct failure *failure) {
    cleanup_free char *package = file_join(input->about.path, ARCHIVE_DATAPACKAGE);
    cleanup(text_clear) struct text bytes;
    text_init(&bytes, ARCHIVE_RECORD_BYTES_MAX);
    struct archive_columns columns = {0};
    int r = file_read(package, &bytes, failure);
    r = r < 0 ? r
              : archive_parse_columns(package, bytes.bytes, bytes.length, input->about.member, &columns,
                                      failure);
    if (r < 0)
        return r;
    describe_columns(input, &columns);
    archive_columns_clear(&columns);
    cleanup(document_cleanup) struct document *run = NULL;
    r = read_record(input, ARCHIVE_RUN, &run, failure);
    if (r < 0)
        return r;
    describe_run(input, run->root);
    cleanup_free char *journal = file_join(input->about.path, ARCHIVE_JOURNAL);
    return file_exists(journal) ? hash_file(journal, input->journal_sha256, &input->journal_bytes, failure)
                                : 0;
}

static int find_folder_member(struct input *input, struct failure *failure) {
    cleanup(document_cleanup) struct document *run = NULL;
    int r = read_record(input, ARCHIVE_RUN, &run, failure);
    if (r < 0)
        return failure_prefix(failure, "'%s' is a folder, but not that of a run", input->about.path);
    cleanup_free char *table = text_of(document_get(run->root, "model"), "table");
    if (!input->about.member)
        input->about.member = table ? xformat(ARCHIVE_TABLES "/%s.csv", table) : xstrdup(ARCHIVE_RESULTS);
    return 0;
}

/* ---- Any of them */

/* Whether a file with these first bytes is a JSON object, a model for example, and no CSV. */
static bool begins_as_json(const char *bytes, size_t length) {
    size_t blanks = 1;
    while (blanks < length && strchr(" \t\r\n", bytes[blanks]))
        blanks++;
    return length > 1 && bytes[0] == '{' && blanks < length && (bytes[blanks] == '"' || bytes[blanks] == '}');
}

/* Opens the file or pipe of INPUT and sets *RET if its content begins as a zip does: with a local header, or
 * with the end record of an empty zip. A pipe can be read once only: its descriptor is kept in input->pipe.
 */
static int detect_archive(struct input *input, bool is_regular, bool *ret, struct failure *failure) {
    const char *path = input->about.path;
    cleanup_close int descriptor = file_open(path, FILE_OR_PIPE, failure);
    if (descriptor < 0)
        return descriptor;
    char magic[256];
    off_t start = lseek(descriptor, 0, SEEK_CUR);
    ssize_t length = start < 0 ? start : pread(descriptor, magic, sizeof magic, start);
    if (length < 0)
        return failure_set(failure, -errno, "cannot read '%s': %s", path, strerror(errno));
    input->pipe_start = start;
    input->pipe = is_regular ? -1 : take_descriptor(descriptor);
    if (begins_as_json(magic, (size_t)length))
        return failure_input(failure, path, 0, 0,
                             "this is JSON, not a table; 'assay model show' prints what is in a model");
    *ret = length >= 4 && (memcmp(magic, "PK\3\4", 4) == 0 || memcmp(magic, "PK\5\6", 4) == 0);
    return 0;
}

int input_failure(const struct input *input, int code, struct failure *failure) {
    struct failure own = {0};
    if (!input->opened || archive_member_status(input->opened, &own) == 0)
        return code;
    if (failure)
        *failure = own;
    return own.code;
}

int input_open(struct input *input, const struct table_options *options, struct failure *failure) {
    if (input->is_open)
        return 0;
    int r = !input->about.archive ? open_plain(input, options, failure)
            : input->is_folder    ? open_folder(input, options, failure)
                                  : open_archive(input, failure);
    input->is_open = true;
    if (r < 0)
        input_close(input);
    return r;
}

int input_look(struct input *input, const char *path, const struct table_options *options,
               struct failure *failure) {
    bool is_standard_input = strcmp(path, "-") == 0;
    *input = (struct input){.pipe = -1};
    input->about.path = xstrdup(path);
    input->about.name = xstrdup(is_standard_input ? "standard input" : file_base_name(path));
    input->about.member = options->member ? xstrdup(options->member) : NULL;
    struct stat status;
    bool exists = !is_standard_input && stat(path, &status) == 0;
    input->is_folder = exists && S_ISDIR(status.st_mode);
    input->is_regular = exists && S_ISREG(status.st_mode);
    input->about.archive = input->is_folder;
    int r = input->is_folder ? find_folder_member(input, failure)
                             : detect_archive(input, input->is_regular, &input->about.archive, failure);
    if (r == 0 && input->about.archive && input->pipe >= 0)
        r = failure_input(failure, path, 0, 0, "this is an archive from a pipe; give its file");
    r = r < 0 ? r : input_open(input, options, failure);
    if (r < 0)
        return r;
    input->column_count = csv_column_count(input->csv);
    input->columns = xcalloc(input->column_count, sizeof *input->columns);
    for (size_t i = 0; i < input->column_count; i++) {
        const char *unit = csv_column_unit(input->csv, i);
        input->columns[i].name = xstrdup(csv_column_name(input->csv, i));
        input->columns[i].unit = unit ? xstrdup(unit) : NULL; /* an archive's is in its datapackage.json */
    }
    if (input->about.archive)
        r = input->is_folder ? describe_folder(input, failure) : describe_archive(input, failure);
    input_close(input);
    return r;
}

/* Whether NAME is COLUMN's name with or without the column's unit. */
static bool is_called(const struct table_column *column, const char *name) {
    const struct unit *written, *own;
    size_t length, own_length;
    enum unit_place place = unit_read_name(name, strlen(name), &length, &written);
    unit_read_name(column->name, strlen(column->name), &own_length, &own);
    bool is_other =
        place != UNIT_PLACE_NONE && !(written && column->unit && strcmp(written->code, column->unit) == 0);
    return length == own_length && strncmp(name, column->name, length) == 0 && !is_other;
}

const struct table_column *input_find_column(const struct table_column *columns, size_t count,
                                             const char *name) {
    const struct table_column *found = NULL;
    for (size_t i = 0; i < count; i++)
        if (strcmp(columns[i].name, name) == 0)
            return &columns[i];
    for (size_t i = 0; i < count; i++) {
        bool is_it = is_called(&columns[i], name);
        if (is_it && found)
            return NULL;
        found = is_it ? &columns[i] : found;
    }
    return found;
}

const struct table_column *input_find(const struct input *input, const char *name) {
    return input_find_column(input->columns, input->column_count, name);
}

void input_close(struct input *input) {
    csv_close(take_pointer(input->csv));
    archive_member_close(take_pointer(input->opened));
    archive_close(take_pointer(input->archive));
    input->is_open = false;
}

static void free_texts(char **texts, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(texts[i]);
    free(texts);
}

void input_clear(struct input *input) {
    input_close(input);
    if (input->pipe >= 0)
        close(input->pipe);
    struct table_input *about = &input->about;
    free(about->path), free(about->name), free(about->member), free(about->run_id), free(about->experiment);
    for (size_t i = 0; i < input->column_count; i++)
        free(input->columns[i].name), free(input->columns[i].unit), free(input->columns[i].type);
    free(input->columns);
    free(input->damage), free(input->row_hashes);
    free(input->answer.response), free(input->answer.unit), free(input->answer.lines);
    for (size_t i = 0; i < input->answer.size_count; i++)
        free(input->answer.sizes[i]);
    free(input->answer.sizes);
    struct table_suggestion *suggestion = &input->suggestion;
    free(suggestion->method), free(suggestion->response), free(suggestion->terms);
    free_texts(suggestion->sizes, suggestion->size_count);
    free_texts(suggestion->by, suggestion->by_count);
    free_texts(suggestion->set, suggestion->set_count);
    *input = (struct input){.pipe = -1};
}
