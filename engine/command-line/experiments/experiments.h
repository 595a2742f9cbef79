/* Private to `assay experiments`: its parts, a file each, and the text that they print. */
#ifndef ASSAY_COMMAND_LINE_EXPERIMENTS_EXPERIMENTS_H
#define ASSAY_COMMAND_LINE_EXPERIMENTS_EXPERIMENTS_H

#include "engine/command-line/verb.h"
#include "engine/foundation/text.h"
#include "engine/run/campaign/experiment.h"

#include <stddef.h>

/* A page of entries: a name, and a paragraph that is wrapped beside it. The paragraph of the entry that comes
 * next grows by page_say, whose sentences are separated by semicolons. */
struct page {
    struct text text, paragraph;
    size_t indent, width;
};

void page_init(struct page *page, size_t indent);
void page_clear(struct page *page);
void page_say(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
void page_entry(struct page *page, const char *name);
/* A line of its own. */
void page_line(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
void page_print(const struct page *page);

/* Prints the declarations of an experiment that has a document of its own, without patterns, descriptions of
 * columns and the content of input files. */
void experiments_print(const struct experiment *experiment);

/* `assay experiments new NAME`. */
int experiments_new(const struct verb_arguments *arguments, struct failure *failure);

#endif
