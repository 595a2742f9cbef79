/* assay help: the manual, as text or as a page for man(1). */
#include "engine/command-line/manual.h"
#include "engine/command-line/verb.h"
#include "engine/foundation/cleanup.h"

#include <stdio.h>
#include <unistd.h>

static int run(const struct verb_arguments *arguments, struct failure *failure) {
    const struct verb *verb = NULL;
    if (arguments->operand_count > 0) {
        int r = verb_find(arguments->operands[0], &verb, failure);
        if (r < 0)
            return r;
    }
    cleanup(text_clear) struct text text;
    text_init(&text, MANUAL_BYTES_MOST);
    int r = verb_switch(arguments, "--man") ? manual_roff(verb, &text, failure)
                                            : manual_text(verb, manual_width(STDOUT_FILENO), &text, failure);
    if (r == 0)
        fwrite(text.bytes, 1, text.length, stdout);
    return r;
}

static const struct verb_option options[] = {
    {"--man", 0, NULL, "Print the page for man(1) in roff instead of text.", false},
    {0},
};

const struct verb verb_help = {
    .name = "help",
    .summary = "tell about assay or one of its commands",
    .synopsis = "assay help [COMMAND] [OPTIONS]",
    .description =
        "Prints the manual of a command, or with none that of assay itself. The same text is in the pages "
        "assay(1) and assay-COMMAND(1), which can be read without being installed:\n"
        "\n"
        "    assay help --man fit | man -l -\n",
    .options = options,
    .operands_least = 0,
    .operands_most = 1,
    .run = run,
};
