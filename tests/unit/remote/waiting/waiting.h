/* Requests and commands, waited for: each function turns the loop until the answer is there. When the loop is
 * stopped meanwhile, it gives up with FAILURE_INTERRUPTED, -EINTR. */
#ifndef ASSAY_TESTS_UNIT_REMOTE_WAITING_H
#define ASSAY_TESTS_UNIT_REMOTE_WAITING_H

#include "engine/foundation/text.h"
#include "engine/remote/link/command.h"
#include "engine/remote/link/link.h"

int agent_link_wait_ready(struct agent_link *link, struct failure *failure);
/* Over TIMEOUT_NS the link is left closing. The failure is that of an end that came before it was asked for.
 */
int agent_link_close_and_wait(struct agent_link *link, int64_t timeout_ns, struct failure *failure);
int agent_link_inspect_and_wait(struct agent_link *link, struct node_facts **ret, struct failure *failure);
/* Appends the file to RET. */
int agent_link_read_file_and_wait(struct agent_link *link, const char *path, struct text *ret,
                                  struct failure *failure);
int agent_link_make_folder_and_wait(struct agent_link *link, const char *path, struct failure *failure);
int agent_link_measure_clock_and_wait(struct agent_link *link, unsigned exchanges, struct agent_clock *ret,
                                      struct failure *failure);
int agent_link_statistics_and_wait(struct agent_link *link, struct agent_statistics *ret,
                                   struct failure *failure);

struct remote_result {
    struct remote_start start;
    struct remote_exit exit;
    char *output, *error; /* owned; a NUL after the last byte */
    size_t output_length, error_length;
};
void remote_result_clear(struct remote_result *result);
/* stdin gets INPUT (NULL: nothing). A non-zero exit status is not a failure. */
int agent_link_run_and_wait(struct agent_link *link, const struct remote_command_specification *specification,
                            const void *input, size_t input_length, struct remote_result *ret,
                            struct failure *failure);

#endif
