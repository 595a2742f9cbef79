#include "engine/remote/launch/package.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/list.h"

#include <dirent.h>
#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BINARY_MOST = 64 << 20, /* bytes; with sanitizers it is large */
    SOURCE_MOST = 8 << 20,  /* of all files */
    SCRIPT_MOST = 1 << 16,
    FILES_MOST = 1024,
    DEPTH_MOST = 8, /* of folders */
    INPUT_MOST = BINARY_MOST + SOURCE_MOST + SCRIPT_MOST + (1 << 20),
};

static const char script_name[] = "engine/remote/launch/delivery.sh";
static const char name_characters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";

struct agent_package {
    enum agent_kind kind;
    char binary_hash[HASH_HEX_SIZE], source_hash[HASH_HEX_SIZE];
    const char *machine;
    struct text inputs[AGENT_INPUTS]; /* empty for what is not needed */
    size_t script_length;
};

void agent_package_free(struct agent_package *package) {
    if (!package)
        return;
    for (size_t i = 0; i < AGENT_INPUTS; i++)
        text_clear(&package->inputs[i]);
    free(package);
}

static void free_package(struct agent_package **package) {
    agent_package_free(*package);
}

enum agent_kind agent_package_kind(const struct agent_package *package) {
    return package->kind;
}

const char *agent_package_binary_hash(const struct agent_package *package) {
    return package->binary_hash;
}

const char *agent_package_source_hash(const struct agent_package *package) {
    return package->source_hash;
}

const char *agent_package_machine(const struct agent_package *package) {
    return package->machine;
}

const char *agent_package_input(const struct agent_package *package, enum agent_input input,
                                size_t *ret_length) {
    const struct text *text = &package->inputs[input];
    *ret_length = text->length;
    return text->length > 0 ? text->bytes : NULL;
}

size_t agent_package_script_length(const struct agent_package *package) {
    return package->script_length;
}

static bool is_plain(const char *word) {
    return word[0] && strspn(word, name_characters) == strlen(word);
}

/* Says that the installation is not whole, which is the user's to mend, whatever made it so. */
static int prefix_installation(struct failure *failure) {
    return failure_prefix(failure, "the agent cannot be brought to nodes");
}

/* ---- the script */

/* Without comments and indentation, which nobody there reads: the node's sh takes it byte by byte. */
static int read_script(struct agent_package *package, const char *folder, struct failure *failure) {
    cleanup(text_clear) struct text content;
    text_init(&content, SCRIPT_MOST);
    cleanup_free char *path = file_join(folder, script_name);
    if (!path)
        return failure_memory(failure);
    int r = file_read(path, &content, failure);
    if (r < 0)
        return prefix_installation(failure);
    struct text *script = &package->inputs[AGENT_INPUT_SCRIPT];
    for (const char *at = content.bytes; r == 0 && *at;) {
        at += strspn(at, " ");
        size_t length = strcspn(at, "\n");
        if (length > 0 && *at != '#')
            r = text_append(script, at, length);
        if (r == 0 && length > 0 && *at != '#')
            r = text_append_character(script, '\n');
        at += length + (at[length] == '\n');
    }
    if (r < 0)
        return failure_memory(failure);
    package->script_length = script->length;
    return 0;
}

/* ---- the binary */

/* `uname -m` of the machines that have a Linux and a name; "unknown" runs nowhere, and so is built there. */
static const char *machine_of(const struct text *binary) {
    static const struct {
        uint16_t machine;
        uint8_t class;
        const char *name;
    } machines[] = {
        {EM_X86_64, ELFCLASS64, "x86_64"}, {EM_AARCH64, ELFCLASS64, "aarch64"},
        {EM_PPC64, ELFCLASS64, "ppc64le"}, {EM_RISCV, ELFCLASS64, "riscv64"},
        {EM_S390, ELFCLASS64, "s390x"},    {EM_386, ELFCLASS32, "i686"},
    };
    Elf64_Ehdr header; /* both classes have the machine at the same place */
    if (binary->length < sizeof header || memcmp(binary->bytes, ELFMAG, SELFMAG) != 0)
        return "unknown";
    memcpy(&header, binary->bytes, sizeof header);
    bool little = header.e_ident[EI_DATA] == ELFDATA2LSB;
    uint16_t machine = little ? le16toh(header.e_machine) : be16toh(header.e_machine);
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        if (machine == machines[i].machine && header.e_ident[EI_CLASS] == machines[i].class &&
            little == (machine != EM_S390))
            return machines[i].name;
    return "unknown";
}

static int read_binary(struct agent_package *package, const char *path, struct failure *failure) {
    cleanup(text_clear) struct text binary;
    text_init(&binary, BINARY_MOST);
    if (file_read(path, &binary, failure) < 0)
        return prefix_installation(failure);
    package->machine = machine_of(&binary);
    int r = hash_bytes(binary.bytes, binary.length, package->binary_hash);
    struct text *input = &package->inputs[AGENT_INPUT_BINARY];
    const struct text *script = &package->inputs[AGENT_INPUT_SCRIPT];
    if (r == 0)
        r = text_append(input, script->bytes, script->length);
    if (r == 0)
        r = text_append(input, binary.bytes, binary.length);
    return r < 0 ? failure_memory(failure) : 0;
}

/* ---- the sources */

struct source_file {
    char *name; /* relative to the folder */
    struct text content;
};

struct sources {
    const char *folder;
    struct source_file *files;
    size_t count, capacity;
    size_t bytes;
};

static void sources_clear(struct sources *sources) {
    for (size_t i = 0; i < sources->count; i++) {
        free(sources->files[i].name);
        text_clear(&sources->files[i].content);
    }
    free(sources->files);
}

static int compare_files(const void *a, const void *b) {
    return strcmp(((const struct source_file *)a)->name, ((const struct source_file *)b)->name);
}

static int add_file(struct sources *sources, const char *name, const char *path, struct failure *failure) {
    int r = list_reserve(&sources->files, &sources->capacity, sources->count + 1, sizeof *sources->files,
                         FILES_MOST);
    if (r == -EFBIG)
        return failure_set(failure, r, "'%s' has more than %d files", sources->folder, (int)FILES_MOST);
    char *copy = r == 0 ? strdup(name) : NULL;
    if (!copy)
        return failure_memory(failure);
    struct source_file *file = &sources->files[sources->count++];
    file->name = copy;
    text_init(&file->content, SOURCE_MOST);
    r = file_read(path, &file->content, failure);
    if (r < 0)
        return r;
    sources->bytes += file->content.length;
    if (sources->bytes > SOURCE_MOST)
        return failure_set(failure, -EFBIG, "'%s' has more than %d MiB", sources->folder, SOURCE_MOST >> 20);
    /* The stream that unpacks it is text of lines. */
    if (memchr(file->content.bytes, '\0', file->content.length) ||
        (file->content.length > 0 && file->content.bytes[file->content.length - 1] != '\n'))
        return failure_set(failure, -EINVAL, "'%s' is not a text of whole lines", path);
    return 0;
}

static bool is_source(const char *name) {
    size_t length = strlen(name);
    return length > 2 && name[length - 2] == '.' && (name[length - 1] == 'c' || name[length - 1] == 'h');
}

/* All of NAME, a folder below the sources' ("" for that one). */
static int walk(struct sources *sources, const char *name, unsigned depth, struct failure *failure) {
    cleanup_free char *path = name[0] ? file_join(sources->folder, name) : strdup(sources->folder);
    if (!path)
        return failure_memory(failure);
    if (depth > DEPTH_MOST)
        return failure_set(failure, -ELOOP, "'%s' is more than %d folders deep", path, (int)DEPTH_MOST);
    DIR *entries = opendir(path);
    if (!entries)
        return failure_set_kind(failure, errno == ENOENT ? FAILURE_INPUT : FAILURE_SYSTEM, -errno,
                                "cannot read '%s': %s", path, strerror(errno));
    int r = 0;
    for (struct dirent *entry; r == 0 && (entry = readdir(entries));) {
        if (entry->d_name[0] == '.')
            continue;
        cleanup_free char *below = name[0] ? file_join(name, entry->d_name) : strdup(entry->d_name);
        cleanup_free char *full = below ? file_join(sources->folder, below) : NULL;
        if (!full)
            r = failure_memory(failure);
        else if (!is_plain(below))
            r = failure_set(failure, -EINVAL, "'%s' has characters that no command may have", full);
        else if (file_is_folder(full))
            r = walk(sources, below, depth + 1, failure);
        else if (is_source(below))
            r = add_file(sources, below, full, failure);
    }
    closedir(entries);
    return r;
}

static int hash_sources(const struct sources *sources, char hex[static HASH_HEX_SIZE]) {
    struct hash *hash = hash_new();
    if (!hash)
        return -ENOMEM;
    for (size_t i = 0; i < sources->count; i++) {
        const struct source_file *file = &sources->files[i];
        const struct {
            const char *bytes;
            size_t length;
        } parts[] = {{file->name, strlen(file->name)}, {file->content.bytes, file->content.length}};
        for (size_t k = 0; k < 2; k++) {
            char length[32];
            hash_update(hash, length, (size_t)snprintf(length, sizeof length, "%zu\n", parts[k].length));
            hash_update(hash, parts[k].bytes, parts[k].length);
        }
    }
    hash_finish(hash, hex);
    hash_free(hash);
    return 0;
}

/* A here-document: its end is a line that holds the hash of what is before it, and so is not in it. */
static int append_file(struct text *stream, const struct source_file *file, const char *end) {
    int slash = (int)(file_base_name(file->name) - file->name);
    int r = 0;
    if (slash > 1)
        r = text_printf(stream, "mkdir -p %.*s || exit 1\n", slash - 1, file->name);
    if (r == 0)
        r = text_printf(stream, "cat >%s <<'%s' || exit 1\n", file->name, end);
    if (r == 0)
        r = text_append(stream, file->content.bytes, file->content.length);
    return r == 0 ? text_printf(stream, "%s\n", end) : r;
}

static int read_sources(struct agent_package *package, const char *folder, struct failure *failure) {
    cleanup(sources_clear) struct sources sources = {.folder = folder};
    int r = walk(&sources, "", 0, failure);
    if (r == 0 && sources.count == 0)
        r = failure_set_kind(failure, FAILURE_INPUT, -ENOENT, "there are no sources in '%s'", folder);
    if (r < 0)
        return prefix_installation(failure);
    qsort(sources.files, sources.count, sizeof *sources.files, compare_files);
    struct text *input = &package->inputs[AGENT_INPUT_SOURCE];
    const struct text *script = &package->inputs[AGENT_INPUT_SCRIPT];
    r = hash_sources(&sources, package->source_hash);
    if (r == 0)
        r = text_append(input, script->bytes, script->length);
    for (size_t i = 0; r == 0 && i < sources.count; i++)
        r = append_file(input, &sources.files[i], package->source_hash);
    if (r == 0)
        r = text_append_string(input, "echo " ASSAY_VERSION " >.complete\n");
    return r < 0 ? failure_memory(failure) : 0;
}

int agent_package_new(const struct installation *installation, enum agent_kind kind,
                      struct agent_package **ret, struct failure *failure) {
    cleanup(free_package) struct agent_package *package = calloc(1, sizeof *package);
    if (!package)
        return failure_memory(failure);
    package->kind = kind;
    package->machine = "";
    for (size_t i = 0; i < AGENT_INPUTS; i++)
        text_init(&package->inputs[i], INPUT_MOST);
    int r = read_script(package, installation->agent_source, failure);
    if (r == 0 && kind != AGENT_SOURCE)
        r = read_binary(package, installation->agent, failure);
    if (r == 0 && kind != AGENT_BINARY)
        r = read_sources(package, installation->agent_source, failure);
    if (r < 0)
        return r;
    *ret = take_pointer(package);
    return 0;
}

/* ---- starting it */

/* Of the folder and the file, `ls` prints a line each. For csh there is no exclamation mark in it, and no
 * newline; for C, no trigraph. */
static const char start_script[] =
    "u=$(id -u); case $(ls -ldn \"${0%/*}\" \"$0\" 2>/dev/null | while read -r mode links owner rest; do "
    "case $mode,$owner in [-d]????"
    "-??"
    "-*,$u) printf y;; *) printf n;; esac; done) in "
    "yy) exec \"$0\" \"$@\";; "
    "?n|n?) echo \"assay-agent: others may write to $0 or to its folder, or it is theirs\" >&2; exit 78;; "
    "*) exit 127;; esac";

char *agent_package_usual_path(const struct agent_package *package) {
    return text_format("~/.cache/assay/agent-%s", package->binary_hash);
}

int agent_package_command(const struct agent_package *package, const char *path, const char *const *arguments,
                          struct text *ret, struct failure *failure) {
    cleanup(text_clear) struct text command;
    text_init(&command, SIZE_MAX);
    int r = 0;
    if (path && !is_plain(path))
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                "the agent's path '%s' has a character that no command may have", path);
    cleanup_free char *usual = path ? NULL : agent_package_usual_path(package);
    if (!path && !usual)
        return failure_memory(failure);
    r = text_printf(&command, "exec /bin/sh -c '%s' %s", start_script, path ? path : usual);
    for (size_t i = 0; r == 0 && arguments[i]; i++) {
        if (!is_plain(arguments[i]))
            return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                    "'%s' cannot be an argument of the agent; expected letters, digits and "
                                    "any of _ @ %% + = : , . / -",
                                    arguments[i]);
        r = text_printf(&command, " %s", arguments[i]);
    }
    if (r == 0)
        r = text_append(ret, command.bytes, command.length);
    if (r == -EFBIG)
        return failure_set(failure, r, "the agent's command is longer than %zu bytes", ret->limit);
    return r < 0 ? failure_memory(failure) : 0;
}
