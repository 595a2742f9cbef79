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

/* Opens a CSV file or the pipe of the input. */
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
                               options->columns, options->column_count, &input->csv, failure);
}

/* ---- Archives, and folders of runs */

/* Opens an archive and its table. -EINVAL: the run has measured nothing. */
static int open_archive(struct input *input, const struct table_options *options, struct failure *failure) {
    uint64_t bytes;
    input->archive = input->opened_by_caller;
    int r = input->archive ? 0 : archive_open(input->about.path, &input->archive, failure);
    r = r < 0 || options->predictions ? r : archive_check_measured(input->archive, failure);
    if (r < 0)
        return r;
    const struct archive_model *model = archive_run(input->archive)->model;
    if (!input->about.member)
        input->about.member = archive_table_path(model ? model->table : NULL);
    /* A run begins its table with a header when it knows what it will measure. */
    if (archive_find(input->archive, input->about.member, &bytes) && bytes == 0)
        return failure_input(failure, input->about.path, 0, 0,
                             "nothing was measured: the run ended before its first unit, and '%s' is empty",
                             input->about.member);
    r = archive_member_open(input->archive, input->about.member, &input->opened, failure);
    if (r < 0)
        return r;
    cleanup_free char *name = xformat("%s:%s", input->about.path, input->about.member);
    r = csv_open_function(name, archive_member_read, input->opened, &input->csv, failure);
    return r < 0 ? input_failure(input, r, failure) : 0;
}

static void describe_columns(struct input *input, const struct archive_columns *known) {
    for (size_t i = 0; i < input->column_count; i++) {
        const struct column *found = archive_columns_find(known, input->columns[i].name);
        if (!found)
            continue;
        column_clear(&input->columns[i]);
        input->columns[i] = column_copy(found);
    }
}

/* Describes the input by its archive: columns, run, experiment, suggested model. */
static int describe_archive(struct input *input, struct failure *failure) {
    struct archive_columns columns = {0};
    const struct archive_run *run = archive_run(input->archive);
    struct table_input *about = &input->about;
    int r = input->is_regular ? hash_file(about->path, about->sha256, NULL, failure) : 0;
    r = r < 0 ? r : archive_table_columns(input->archive, about->member, &columns, failure);
    if (r < 0)
        return r;
    describe_columns(input, &columns);
    archive_columns_clear(&columns);
    about->run_id = run->run_id ? xstrdup(run->run_id) : NULL;
    about->experiment = run->experiment.name ? xstrdup(run->experiment.name) : NULL;
    (void)archive_find(input->archive, ARCHIVE_JOURNAL, &input->journal_bytes);
    input->has_answer = run->answer != NULL;
    if (run->answer)
        bind_copy(archive_answer_fields, ARCHIVE_ANSWER_FIELDS, run->answer, &input->answer);
    cleanup_free char *suggested = archive_table_path(run->model ? run->model->table : NULL);
    input->suggests = run->model && strcmp(about->member, suggested) == 0;
    if (input->suggests)
        bind_copy(archive_model_fields, ARCHIVE_MODEL_FIELDS, run->model, &input->suggestion);
    return 0;
}

/* ---- All kinds */

/* Whether a file with these first bytes is a JSON object, a model for example, and no CSV. */
static bool begins_as_json(const char *bytes, size_t length) {
    size_t blanks = 1;
    while (blanks < length && strchr(" \t\r\n", bytes[blanks]))
        blanks++;
    return length > 1 && bytes[0] == '{' && blanks < length && (bytes[blanks] == '"' || bytes[blanks] == '}');
}

/* Opens the file or pipe of INPUT and sets *RET if its content begins as a zip: with a local header, or with
 * the end record of an empty one. The descriptor of a pipe, which can be read once only, is kept in
 * input->pipe. -EINVAL: it is JSON. */
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
                             "this file is JSON, not a table; if it is a model, 'assay model show' "
                             "prints it");
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

/* Opens the rows of an input, if they are not open. Negative with FAILURE. */
int input_open(struct input *input, const struct table_options *options, struct failure *failure) {
    if (input->is_open)
        return 0;
    int r =
        input->about.archive ? open_archive(input, options, failure) : open_plain(input, options, failure);
    input->is_open = true;
    if (r < 0)
        input_close(input);
    return r;
}

/* Finds out what PATH is and what columns it has (input.h); the input is closed again. To be cleared after
 * failures too. */
int input_inspect(struct input *input, const char *path, const struct table_options *options,
                  struct failure *failure) {
    bool is_standard_input = strcmp(path, "-") == 0;
    *input = (struct input){.pipe = -1, .opened_by_caller = options->archive};
    input->about.path = xstrdup(path);
    input->about.name = xstrdup(is_standard_input ? "standard input" : file_base_name(path));
    input->about.member = options->member ? xstrdup(options->member) : NULL;
    struct stat status;
    bool exists = !is_standard_input && stat(path, &status) == 0;
    input->is_regular = exists && S_ISREG(status.st_mode);
    input->about.archive = exists && S_ISDIR(status.st_mode);
    int r =
        input->about.archive ? 0 : detect_archive(input, input->is_regular, &input->about.archive, failure);
    if (r == 0 && input->about.archive && input->pipe >= 0)
        r = failure_input(failure, path, 0, 0, "an archive cannot be read from a pipe; give its file name");
    r = r < 0 ? r : input_open(input, options, failure);
    if (r < 0)
        return r;
    input->column_count = csv_column_count(input->csv);
    input->columns = xcalloc(input->column_count, sizeof *input->columns);
    for (size_t i = 0; i < input->column_count; i++) {
        /* An archive's unit is in its datapackage.json. */
        const struct column column = {.name = csv_column_name(input->csv, i),
                                      .unit = csv_column_unit(input->csv, i)};
        input->columns[i] = column_copy(&column);
    }
    if (input->about.archive)
        r = describe_archive(input, failure);
    input_close(input);
    return r;
}

/* Whether NAME is COLUMN's name with or without the column's unit. */
static bool is_called(const struct column *column, const char *name) {
    const struct unit *written, *own;
    size_t length, own_length;
    enum unit_place place = unit_read_name(name, strlen(name), &length, &written);
    unit_read_name(column->name, strlen(column->name), &own_length, &own);
    bool is_other =
        place != UNIT_PLACE_NONE && !(written && column->unit && strcmp(written->code, column->unit) == 0);
    return length == own_length && strncmp(name, column->name, length) == 0 && !is_other;
}

/* The column NAME, or, if there is none, the only one whose name without unit it is; NULL: none, or
 * several. */
const struct column *input_find_column(const struct column *columns, size_t count, const char *name) {
    const struct column *found = NULL;
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

const struct column *input_find(const struct input *input, const char *name) {
    return input_find_column(input->columns, input->column_count, name);
}

void input_close(struct input *input) {
    csv_close(take_pointer(input->csv));
    archive_member_close(take_pointer(input->opened));
    if (input->archive != input->opened_by_caller)
        archive_close(input->archive);
    input->archive = NULL;
    input->is_open = false;
}

/* Closes the input and frees what it owns. */
void input_clear(struct input *input) {
    input_close(input);
    if (input->pipe >= 0)
        close(input->pipe);
    struct table_input *about = &input->about;
    free(about->path), free(about->name), free(about->member), free(about->run_id), free(about->experiment);
    for (size_t i = 0; i < input->column_count; i++)
        column_clear(&input->columns[i]);
    free(input->columns);
    free(input->row_hashes);
    bind_clear(archive_answer_fields, ARCHIVE_ANSWER_FIELDS, &input->answer);
    bind_clear(archive_model_fields, ARCHIVE_MODEL_FIELDS, &input->suggestion);
    *input = (struct input){.pipe = -1};
}
