#include "engine/remote/launch/package.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/memory.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BINARY_MAX = 64 << 20, /* bytes; with sanitizers it is large */
    SOURCE_MAX = 8 << 20,  /* of all files */
    SCRIPT_MAX = 1 << 16,
    INPUT_MAX = BINARY_MAX + SOURCE_MAX + SCRIPT_MAX + (1 << 20),
};

static const char script_name[] = "engine/remote/launch/delivery.sh";
static const char name_characters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";

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

bool agent_package_is_plain(const char *word) {
    return word[0] && strspn(word, name_characters) == strlen(word);
}

/* Prefixes the failure of a file of the installation, which the user must install again. */
static int prefix_installation(struct failure *failure) {
    return failure_prefix(failure, "cannot deliver the agent to nodes");
}

/* ---- the script */

/* Reads delivery.sh, without comments and indentation: the node's sh reads it byte by byte. */
static int read_script(struct agent_package *package, const char *folder, struct failure *failure) {
    cleanup(text_clear) struct text content;
    text_init(&content, SCRIPT_MAX);
    cleanup_free char *path = xformat("%s/%s", folder, script_name);
    if (file_read(path, &content, failure) < 0)
        return prefix_installation(failure);
    struct text *script = &package->inputs[AGENT_INPUT_SCRIPT];
    for (const char *at = content.bytes; *at; at += *at == '\n') {
        at += strspn(at, " ");
        size_t length = strcspn(at, "\n");
        if (length > 0 && *at != '#' && text_printf(script, "%.*s\n", (int)length, at) < 0)
            return failure_memory(failure);
        at += length;
    }
    package->script_length = script->length;
    return 0;
}

/* ---- the binary */

/* The name, as `uname -m` prints it, of the machines on which BINARY runs; "unknown" matches no node, so that
 * the agent is built there. */
static const char *find_machine(const struct text *binary) {
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

/* Makes the input of the script that installs the agent's program: the script and the file PATH, with its
 * hash and its architecture. */
static int read_binary(struct agent_package *package, const char *path, struct failure *failure) {
    cleanup(text_clear) struct text binary;
    text_init(&binary, BINARY_MAX);
    if (file_read(path, &binary, failure) < 0)
        return prefix_installation(failure);
    package->machine = find_machine(&binary);
    struct text *input = &package->inputs[AGENT_INPUT_BINARY];
    const struct text *script = &package->inputs[AGENT_INPUT_SCRIPT];
    if (hash_bytes(binary.bytes, binary.length, package->binary_hash) < 0 ||
        text_append(input, script->bytes, script->length) < 0 ||
        text_append(input, binary.bytes, binary.length) < 0)
        return failure_memory(failure);
    return 0;
}

/* ---- the sources */

/* Appends commands that write the source file PATH, as a here-document. Its end mark is the hash of the
 * content, which the content cannot contain. */
static int append_source(struct text *stream, const char *folder, const char *path, struct failure *failure) {
    const char *name = path + strlen(folder) + 1;
    char hex[HASH_HEX_SIZE];
    cleanup(text_clear) struct text content;
    text_init(&content, SOURCE_MAX);
    int r = file_read(path, &content, failure);
    if (r < 0)
        return r;
    /* The node's sh reads lines. */
    if (!agent_package_is_plain(name) || memchr(content.bytes, '\0', content.length) ||
        (content.length > 0 && content.bytes[content.length - 1] != '\n'))
        return failure_set(
            failure, -EINVAL,
            "the agent's source '%s' does not end with a newline, has a NUL byte, or has a name "
            "that a shell would have to quote; install assay again",
            path);
    if (hash_bytes(content.bytes, content.length, hex) < 0 ||
        text_printf(stream, "mkdir -p %.*s && cat >%s <<'%s' || exit 1\n%s%s\n",
                    (int)(file_base_name(name) - name - 1), name, name, hex, content.bytes, hex) < 0)
        return failure_set(failure, -EFBIG, "the sources in '%s' have more than %d MiB", folder,
                           SOURCE_MAX >> 20);
    return 0;
}

static void free_glob(glob_t *found) {
    globfree(found);
}

/* Makes the input of the script that compiles the agent on a node: the script, the sources below FOLDER,
 * their hash. FAILURE_INPUT when there are none. */
static int read_sources(struct agent_package *package, const char *folder, struct failure *failure) {
    cleanup(free_glob) glob_t found = {0};
    cleanup_free char *sources = xformat("%s/*/*/*.[ch]", folder);
    cleanup_free char *deeper = xformat("%s/*/*/*/*.[ch]", folder);
    (void)glob(sources, 0, NULL, &found);
    (void)glob(deeper, found.gl_pathc ? GLOB_APPEND : 0, NULL, &found);
    if (found.gl_pathc == 0)
        return failure_set_kind(
            failure, FAILURE_INPUT, -ENOENT,
            "cannot deliver the agent to nodes: '%s' has no sources of the agent; install assay again",
            folder);
    struct text *input = &package->inputs[AGENT_INPUT_SOURCE];
    const struct text *script = &package->inputs[AGENT_INPUT_SCRIPT];
    if (text_append(input, script->bytes, script->length) < 0)
        return failure_memory(failure);
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (append_source(input, folder, found.gl_pathv[i], failure) < 0)
            return prefix_installation(failure);
    if (text_append_string(input, "echo " ASSAY_VERSION " >.complete\n") < 0 ||
        hash_bytes(input->bytes + script->length, input->length - script->length, package->source_hash) < 0)
        return failure_memory(failure);
    return 0;
}

int agent_package_new(const struct installation *installation, enum agent_kind kind,
                      struct agent_package **ret, struct failure *failure) {
    cleanup(free_package) struct agent_package *package = xcalloc(1, sizeof *package);
    package->kind = kind;
    package->machine = "";
    for (size_t i = 0; i < AGENT_INPUTS; i++)
        text_init(&package->inputs[i], INPUT_MAX);
    int r = read_script(package, installation->agent_source, failure);
    if (r == 0 && kind != AGENT_SOURCE)
        r = read_binary(package, installation->agent, failure);
    if (r == 0 && kind != AGENT_BINARY)
        r = read_sources(package, installation->agent_source, failure);
    if (r == 0)
        *ret = take_pointer(package);
    return r;
}

/* ---- the command that starts the agent */

/* `ls` prints a line each for the folder and the file, whose mode and owner are checked. The script has no
 * exclamation mark and no newline, because of csh, and no trigraph, because of C. */
static const char start_script[] =
    "echo; echo " AGENT_SHELL_LINE
    "; u=$(id -u); case $(ls -ldn \"${0%/*}\" \"$0\" 2>/dev/null | while read -r mode links owner rest; do "
    "case $mode,$owner in [-d]????"
    "-??"
    "-*,$u) printf y;; *) printf n;; esac; done) in "
    "yy) exec \"$0\" \"$@\";; "
    "?n|n?) echo \"assay-agent: others may write to $0 or to its folder, or it is theirs\" >&2; exit 78;; "
    "*) exit 127;; esac";

char *agent_package_usual_path(const struct agent_package *package) {
    return xformat("~/.cache/assay/agent-%s", package->binary_hash);
}

/* Appends the shell command that starts the agent. FAILURE_INPUT when the path or an argument would have to
 * be quoted. */
int agent_package_command(const struct agent_package *package, const char *path, const char *const *arguments,
                          struct text *ret, struct failure *failure) {
    cleanup_free char *usual = agent_package_usual_path(package);
    if (path && !agent_package_is_plain(path))
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                "the agent's path '%s' has a character that no command may have", path);
    int r = text_printf(ret, "exec /bin/sh -c '%s' %s", start_script, path ? path : usual);
    for (size_t i = 0; r == 0 && arguments[i]; i++) {
        if (!agent_package_is_plain(arguments[i]))
            return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                    "'%s' cannot be an argument of the agent; expected letters, digits and "
                                    "any of _ @ %% + = : , . / -",
                                    arguments[i]);
        r = text_printf(ret, " %s", arguments[i]);
    }
    return r < 0 ? failure_set(failure, r, "the agent's command is longer than %zu bytes", ret->limit) : 0;
}
