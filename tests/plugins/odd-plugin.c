/* A fit plugin with one thing wrong: which one is said by the ODD_ macro that it is built with. */
#include "plugins/interface/fit.h"

#include <errno.h>
#include <stdio.h>

#ifdef ODD_NO_SYMBOL
#define SYMBOL something_else
#else
#define SYMBOL assay_plugin
#endif

#ifdef ODD_UNRESOLVED
int nobody_has_this(void);
#endif

static int odd_open(const struct plugin_host *host, const struct fit_request *request, struct fit **ret,
                    struct fit_needs *ret_needs, struct plugin_message *message) {
    (void)host, (void)message;
    static const char *needs[1];
    needs[0] = request->response;
    *ret = NULL;
    *ret_needs = (struct fit_needs){.size = sizeof *ret_needs, .columns = needs, .column_count = 1};
#ifdef ODD_UNRESOLVED
    return nobody_has_this();
#else
    return 0;
#endif
}

#ifndef ODD_BARE
static int odd_block(struct fit *fit, const struct fit_block *block, struct plugin_message *message) {
    (void)fit;
    snprintf(message->text, sizeof message->text, "the first of %zu rows is odd", block->rows);
    return -EINVAL;
}
#endif

static int odd_end_of_pass(struct fit *fit, struct plugin_message *message) {
    (void)fit, (void)message;
    return FIT_DONE;
}

static int odd_finish(struct fit *fit, const struct fit_writer *writer, struct plugin_message *message) {
    (void)fit, (void)writer, (void)message;
    return 0;
}

static void odd_close(struct fit *fit) {
    (void)fit;
}

static const struct fit_operations operations = {
    .size = sizeof operations,
    .open = odd_open,
#ifdef ODD_BARE
    .block = NULL,
#else
    .block = odd_block,
#endif
    .end_of_pass = odd_end_of_pass,
    .finish = odd_finish,
    .close = odd_close,
};

ASSAY_PLUGIN_EXPORT extern const struct assay_plugin SYMBOL;
const struct assay_plugin SYMBOL = {
#ifdef ODD_OTHER_ABI
    .abi = 7,
#else
    .abi = ASSAY_PLUGIN_ABI,
#endif
#ifdef ODD_SHORT
    .size = 16,
#else
    .size = sizeof SYMBOL,
#endif
#ifdef ODD_PREDICTS
    .kind = ASSAY_PLUGIN_PREDICT,
#else
    .kind = ASSAY_PLUGIN_FIT,
#endif
#ifdef ODD_MISNAMED
    .name = "fit-otherwise",
#elif !defined ODD_NAMELESS
    .name = ODD_NAME,
#endif
    .version = "1",
    .summary = "a plugin with one thing wrong",
    .operations = &operations,
};
