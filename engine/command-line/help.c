/* assay help: the manual, as text or as a page for man(1). */
#include "engine/command-line/manual.h"
#include "engine/command-line/verb.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/installation.h"
#include "engine/foundation/memory.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TOPIC_BYTES_MAX = 16 << 20 };

/* The references that are no command's; CMakeLists.txt says of what they are made. */
static const char *const topics[] = {"campaign", "experiment", "testbed", "external", "runs", "models"};

static bool is_topic(const char *word) {
    for (size_t i = 0; i < sizeof topics / sizeof *topics; i++)
        if (strcmp(word, topics[i]) == 0)
            return true;
    return false;
}

static int print_topic(const char *topic, struct failure *failure) {
    cleanup(installation_clear) struct installation installation = {0};
    int r = installation_init(&installation, NULL, NULL, failure);
    if (r < 0)
        return r;
    cleanup_free char *path = xformat("%s/share/assay/manual/%s.md", installation.prefix, topic);
    cleanup(text_clear) struct text text;
    text_init(&text, TOPIC_BYTES_MAX);
    r = file_read(path, &text, failure);
    if (r == 0)
        fwrite(text.bytes, 1, text.length, stdout);
    return r;
}

static int run(const struct verb_arguments *arguments, struct failure *failure) {
    const struct verb *verb = NULL;
    if (arguments->operand_count > 0) {
        if (is_topic(arguments->operands[0]))
            return print_topic(arguments->operands[0], failure);
        int r = verb_find(arguments->operands[0], &verb, failure);
        if (r < 0)
            return r;
    }
    cleanup_free char *page =
        verb_switch(arguments, "--man") ? manual_roff(verb) : manual_text(verb, manual_width(STDOUT_FILENO));
    fputs(page, stdout);
    return 0;
}

static const struct verb_option options[] = {
    {"--man", 0, NULL, "Print the page for man(1) in roff instead of text.", false},
    {0},
};

const struct verb verb_help = {
    .name = "help",
    .summary = "print the manual of assay or of one of its commands",
    .synopsis = "assay help [COMMAND | campaign | experiment | testbed | external | runs | models] [OPTIONS]",
    .description =
        "Prints the manual of a command, or with none that of assay itself. The same text is in the pages "
        "assay(1) and assay-COMMAND(1), which can be read without being installed:\n\n"
        "    assay help --man fit | man -l -\n\n"
        "'assay help campaign' prints the reference of the campaign file, and so on: experiments of your "
        "own, testbeds, runs and archives, models. These are also assay-campaign(7) and its like.\n",
    .options = options,
    .operands_least = 0,
    .operands_most = 1,
    .run = run,
};
