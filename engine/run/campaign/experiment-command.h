/*
 * A command of an experiment: a line for `sh -c`, to which values come as environment variables, or a vector
 * of arguments in which {name} stands for a value. Never both: values do not become shell text.
 */
#ifndef ASSAY_CAMPAIGN_EXPERIMENT_COMMAND_H
#define ASSAY_CAMPAIGN_EXPERIMENT_COMMAND_H

#include "engine/documents/bind.h"
#include "engine/documents/document.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"

#include <stddef.h>
#include <stdint.h>

enum {
    EXPERIMENT_COMMANDS_MAX = 256,
    EXPERIMENT_ARGUMENT_MAX = 64 << 10, /* bytes of one argument, values filled in */
};

struct experiment_command {
    char *line;                  /* NULL for a vector */
    struct bind_texts arguments; /* empty for a line */
    uint32_t where_line, where_column;
};

/* The values that a command may use: parallel arrays, borrowed. */
struct experiment_values {
    const char *const *names;
    const char *const *values;
    size_t count;
};

/* The value called NAME (LENGTH bytes), or NULL. */
const char *experiment_values_get(const struct experiment_values *values, const char *name, size_t length);

int experiment_command_bind(const struct document *document, const struct document_node *node,
                            const char *what, struct experiment_command *ret, struct failure *failure);
void experiment_command_clear(struct experiment_command *command);
/* A sequence of commands, or one line; NODE may be NULL. */
int experiment_commands_bind(const struct document *document, const struct document_node *node,
                             const char *what, struct experiment_command **ret, size_t *ret_count,
                             struct failure *failure);
void experiment_commands_free(struct experiment_command *commands, size_t count);

/* The argument vector to execute, NULL-ended; the caller frees it with experiment_arguments_free. A {name}
 * that is not among VALUES is refused at the command's place in FILE. */
int experiment_command_arguments(const struct experiment_command *command, const char *file,
                                 const struct experiment_values *values, char ***ret,
                                 struct failure *failure);
void experiment_arguments_free(char **arguments);

#endif
