#include "engine/plugin/table-input.h"

#include "archive-format/datapackage.h"
#include "engine/documents/document.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Plain files */

/* A csv_read_function: the file's bytes, hashed as they pass. */
static int64_t read_plain(void *context, char *buffer, size_t size) {
    struct table_source *source = context;
    ssize_t length;
    do
        length = read(source->descriptor, buffer, size);
    while (length < 0 && errno == EINTR);
    if (length < 0)
        return -errno;
    if (source->hash)
        hash_update(source->hash, buffer, (size_t)length);
    return length;
}

static int open_plain(struct table_source *source, bool hash, struct failure *failure) {
    const char *path = source->input.path;
    source->descriptor = source->is_standard_input ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                                   : open(path, O_RDONLY | O_CLOEXEC);
    if (source->descriptor < 0)
        return failure_set_kind(failure, errno == ENOENT || errno == ENOTDIR ? FAILURE_INPUT : FAILURE_SYSTEM,
                                -errno, "cannot open '%s': %s", path, strerror(errno));
    struct stat status;
    if (fstat(source->descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
        source->is_regular = true;
        source->device = status.st_dev;
        source->inode = status.st_ino;
    }
    if (hash && !(source->hash = hash_new()))
        return failure_memory(failure);
    return csv_open_function(source->is_standard_input ? "standard input" : path, read_plain, source,
                             &source->csv, failure);
}

/* Whether what begins so is a JSON object: a model, say. No header row of a CSV begins so. */
static bool begins_as_json(const char *bytes, size_t length) {
    size_t blanks = 1;
    while (blanks < length && strchr(" \t\r\n", bytes[blanks]))
        blanks++;
    return length > 1 && bytes[0] == '{' && blanks < length && (bytes[blanks] == '"' || bytes[blanks] == '}');
}

static int refuse_json(const char *path, struct failure *failure) {
    return failure_input(failure, path, 0, 0,
                         "this is JSON, not a table; 'assay model show' tells what is in a model");
}

/* Whether PATH begins as a zip does: with a local header, or the end record of an empty one. What is no table
 * at all is refused. */
static int is_zip(const char *path, bool *ret, struct failure *failure) {
    cleanup_close int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return failure_set_kind(failure, errno == ENOENT || errno == ENOTDIR ? FAILURE_INPUT : FAILURE_SYSTEM,
                                -errno, "cannot open '%s': %s", path, strerror(errno));
    char magic[256];
    ssize_t length = read(descriptor, magic, sizeof magic);
    if (length < 0)
        return failure_set_kind(failure, errno == EISDIR ? FAILURE_INPUT : FAILURE_SYSTEM, -errno,
                                "cannot read '%s': %s", path, strerror(errno));
    if (begins_as_json(magic, (size_t)length))
        return refuse_json(path, failure);
    *ret = length >= 4 && (memcmp(magic, "PK\3\4", 4) == 0 || memcmp(magic, "PK\5\6", 4) == 0);
    return 0;
}

/* ---- Archives */

/* The table that the suggested model is of. */
static char *suggested_member(const struct archive_reader *archive) {
    const char *table = archive_run_text(archive, "model", "table", NULL);
    return table ? text_format("results/tables/%s.csv", table) : strdup(TABLE_ARCHIVE_MEMBER);
}

static int open_member(struct table_source *source, struct failure *failure) {
    int r = archive_open(source->input.path, &source->archive, failure);
    if (r == 0 && !source->input.member && !(source->input.member = suggested_member(source->archive)))
        r = failure_memory(failure);
    r = r < 0 ? r : archive_member_open(source->archive, source->input.member, &source->member, failure);
    if (r < 0)
        return r;
    cleanup_free char *name = xformat("%s:%s", source->input.path, source->input.member);
    r = csv_open_function(name, archive_member_read, source->member, &source->csv, failure);
    return r < 0 ? table_source_failure(source, r, failure) : 0;
}

/* Units and roles by datapackage.json. */
static int read_units(struct table_source *source, struct failure *failure) {
    struct archive_columns columns = {0};
    int r = archive_table_columns(source->archive, source->input.member, &columns, failure);
    for (size_t i = 0; r == 0 && i < source->column_count; i++) {
        const struct archive_column *known = archive_columns_find(&columns, source->columns[i].name);
        if (!known)
            continue;
        source->columns[i].response = known->role == ARCHIVE_ROLE_RESPONSE;
        source->columns[i].type = archive_column_type_name(known->type);
        if (known->unit && known->unit[0] && !(source->columns[i].unit = strdup(known->unit)))
            r = failure_memory(failure);
    }
    archive_columns_clear(&columns);
    return r;
}

static int copy_text(const struct document_node *node, const char *key, const char **ret) {
    const struct document_node *value = document_get(node, key);
    if (!value || !value->text || value->kind == DOCUMENT_NULL)
        return 0;
    *ret = strdup(value->text);
    return *ret ? 0 : -ENOMEM;
}

static int copy_texts(const struct document_node *node, const char *key, const char *const **ret,
                      size_t *ret_count) {
    const struct document_node *value = document_get(node, key);
    if (!value || value->kind != DOCUMENT_SEQUENCE || value->count == 0)
        return 0;
    char **texts = calloc(value->count, sizeof *texts);
    if (!texts)
        return -ENOMEM;
    *ret = (const char *const *)texts;
    for (size_t i = 0; i < value->count; i++) {
        texts[i] = strdup(value->items[i]->text ? value->items[i]->text : "");
        if (!texts[i])
            return -ENOMEM;
        *ret_count = i + 1;
    }
    return 0;
}

/* What run.json says of the run and of the model that its experiment suggests. */
static int read_run(struct table_source *source, struct failure *failure) {
    const char *run_id = archive_run_text(source->archive, "run_id", NULL);
    const char *experiment = archive_run_text(source->archive, "experiment", "name", NULL);
    if ((run_id && !(source->input.run_id = strdup(run_id))) ||
        (experiment && !(source->input.experiment = strdup(experiment))))
        return failure_memory(failure);
    size_t journal;
    if (archive_find(source->archive, TABLE_ARCHIVE_JOURNAL, &journal)) {
        source->journal_bytes = archive_member_size(source->archive, journal);
        snprintf(source->journal_sha256, sizeof source->journal_sha256, "%s",
                 archive_member_sha256(source->archive, journal));
    }
    const struct document_node *model = document_get(archive_run(source->archive)->root, "model");
    cleanup_free char *suggested = suggested_member(source->archive);
    if (!suggested)
        return failure_memory(failure);
    if (!model || model->kind != DOCUMENT_MAPPING || strcmp(source->input.member, suggested) != 0)
        return 0;
    struct table_suggestion *suggestion = &source->suggestion;
    source->suggests = true;
    int r = copy_text(model, "method", &suggestion->method);
    r = r < 0 ? r : copy_text(model, "response", &suggestion->response);
    r = r < 0 ? r : copy_text(model, "terms", &suggestion->terms);
    r = r < 0 ? r : copy_texts(model, "sizes", &suggestion->sizes, &suggestion->size_count);
    r = r < 0 ? r : copy_texts(model, "by", &suggestion->by, &suggestion->by_count);
    r = r < 0 ? r : copy_texts(model, "set", &suggestion->set, &suggestion->set_count);
    return r < 0 ? failure_memory(failure) : 0;
}

/* ---- Either */

int table_source_failure(const struct table_source *source, int code, struct failure *failure) {
    if (source->member) {
        struct failure own = {0};
        if (archive_member_status(source->member, &own) < 0) {
            if (failure)
                *failure = own;
            return own.code;
        }
    }
    return code;
}

static int copy_columns(struct table_source *source, struct failure *failure) {
    size_t count = csv_column_count(source->csv);
    source->columns = xcalloc(count, sizeof *source->columns);
    for (size_t i = 0; i < count; i++) {
        if (!(source->columns[i].name = strdup(csv_column_name(source->csv, i))))
            return failure_memory(failure);
        source->column_count = i + 1;
    }
    return 0;
}

static int open_rows(struct table_source *source, bool hash, struct failure *failure) {
    return source->input.archive ? open_member(source, failure) : open_plain(source, hash, failure);
}

int table_source_look(struct table_source *source, const char *path, const char *member, bool hash,
                      struct failure *failure) {
    *source = (struct table_source){.descriptor = -1, .is_standard_input = strcmp(path, "-") == 0};
    if (member && !(source->input.member = strdup(member)))
        return failure_memory(failure);
    source->input.path = xstrdup(path);
    source->input.name = xstrdup(source->is_standard_input ? "standard input" : file_base_name(path));
    int r = source->is_standard_input ? 0 : is_zip(path, &source->input.archive, failure);
    r = r < 0 ? r : open_rows(source, hash, failure);
    r = r < 0 ? r : copy_columns(source, failure);
    if (r == 0 && source->is_standard_input && source->column_count == 1 &&
        strcmp(source->columns[0].name, "{") == 0) /* a model's first line */
        return refuse_json(source->input.name, failure);
    if (r == 0 && source->input.archive) {
        r = archive_hash(path, source->input.sha256, failure);
        r = r < 0 ? r : read_units(source, failure);
        r = r < 0 ? r : read_run(source, failure);
    }
    if (r == 0 && !source->is_standard_input)
        table_source_stop(source, false);
    return r;
}

const struct table_column *table_source_find(const struct table_source *source, const char *name) {
    for (size_t i = 0; i < source->column_count; i++)
        if (strcmp(source->columns[i].name, name) == 0)
            return &source->columns[i];
    return NULL;
}

int table_source_start(struct table_source *source, bool hash, struct failure *failure) {
    if (source->is_standard_input) {
        if (source->read_before)
            return failure_input(
                failure, NULL, 0, 0,
                "this method reads its input more than once, which standard input cannot be; give a "
                "file");
        source->read_before = true;
        return 0;
    }
    int r = open_rows(source, hash, failure);
    if (r < 0)
        table_source_stop(source, false);
    return r;
}

void table_source_stop(struct table_source *source, bool complete) {
    csv_close(source->csv);
    source->csv = NULL;
    archive_member_close(source->member);
    source->member = NULL;
    archive_close(source->archive);
    source->archive = NULL;
    if (source->hash && complete)
        hash_finish(source->hash, source->input.sha256);
    hash_free(source->hash);
    source->hash = NULL;
    if (source->descriptor >= 0)
        close(source->descriptor);
    source->descriptor = -1;
}

static void free_texts(const char *const *texts, size_t count) {
    for (size_t i = 0; i < count; i++)
        free((char *)texts[i]);
    free((void *)texts);
}

void table_source_clear(struct table_source *source) {
    table_source_stop(source, false);
    free((char *)source->input.path);
    free((char *)source->input.name);
    free((char *)source->input.member);
    free((char *)source->input.run_id);
    free((char *)source->input.experiment);
    for (size_t i = 0; i < source->column_count; i++) {
        free((char *)source->columns[i].name);
        free((char *)source->columns[i].unit);
    }
    free(source->columns);
    struct table_suggestion *suggestion = &source->suggestion;
    free((char *)suggestion->method);
    free((char *)suggestion->response);
    free((char *)suggestion->terms);
    free_texts(suggestion->sizes, suggestion->size_count);
    free_texts(suggestion->by, suggestion->by_count);
    free_texts(suggestion->set, suggestion->set_count);
    *source = (struct table_source){.descriptor = -1};
}
