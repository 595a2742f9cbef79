/* A fit plugin with one thing wrong: which one is said by the ODD_ macro that it is built with. */
#include <assay/fit.h>

#ifdef ODD_NO_SYMBOL
#define SYMBOL something_else
#else
#define SYMBOL assay_plugin
#endif

#ifdef ODD_UNRESOLVED
int nobody_has_this(void);
#endif

__attribute__((unused)) static int odd_fit(const struct fit_rows *rows, const struct fit_request *request,
                                           struct fit_result *result, struct plugin_message *message) {
    (void)request, (void)result;
#ifdef ODD_UNRESOLVED
    return nobody_has_this();
#endif
    return plugin_refuse(message, -EINVAL, "the first of %zu rows is odd", rows->count);
}

static const struct fit_plugin operations = {
    .size = sizeof operations,
#ifndef ODD_BARE
    .fit = odd_fit,
#endif
};

__attribute__((visibility("default"))) extern const struct assay_plugin SYMBOL;
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
    .kind = PLUGIN_PREDICT,
#else
    .kind = PLUGIN_FIT,
#endif
#ifdef ODD_MISNAMED
    .name = "otherwise",
#elif !defined ODD_NAMELESS
    .name = ODD_NAME,
#endif
    .version = "1",
    .summary = "a plugin with one thing wrong",
    .operations = &operations,
};
