/* assay help: the manual, as text or as a page for man(1). */
#include "engine/command-line/manual.h"
#include "engine/command-line/verb.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/installation.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TOPIC_BYTES_MAX = 16 << 20 };

/* The references that are no command's; CMakeLists.txt says of what they are made. */
static const char *const topics[] = {"campaign", "experiment", "testbed", "external", "runs", "models"};

static bool is_topic(const char *word) {
    return text_find(word, topics, sizeof topics / sizeof *topics) < sizeof topics / sizeof *topics;
}

static int print_file(const struct installation *installation, const char *name, struct failure *failure) {
    cleanup_free char *path = xformat("%s/share/%s", installation->prefix, name);
    cleanup(text_clear) struct text text;
    text_init(&text, TOPIC_BYTES_MAX);
    int r = file_read(path, &text, failure);
    if (r == 0)
        fwrite(text.bytes, 1, text.length, stdout);
    return r;
}

int command_help(const struct verb_arguments *arguments, struct failure *failure) {
    const struct verb *verb = NULL;
    const char *word = arguments->operand_count > 0 ? arguments->operands[0] : NULL;
    bool is_man = verb_switch(arguments, "--man");
    if (word && is_topic(word)) {
        cleanup_free char *file = xformat(is_man ? "man/man7/assay-%s.7" : "assay/manual/%s.md", word);
        return print_file(arguments->installation, file, failure);
    }
    int r = word ? verb_find(word, &verb, failure) : 0;
    if (r < 0)
        return r;
    cleanup_free char *file = xformat("man/man1/assay%s%s.1", word ? "-" : "", word ? word : "");
    if (is_man)
        return print_file(arguments->installation, file, failure);
    cleanup_free char *page = manual_text(verb, manual_width(STDOUT_FILENO));
    fputs(page, stdout);
    return 0;
}
