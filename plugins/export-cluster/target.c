/*
 * What a coefficient is:
 *
 *     target := term | "sigma(" term ")" | "none"
 *     term   := "1" | factor { "*" factor }        factor := column [ "^" digit ]
 *
 * Names say much themselves: "intercept" is 1; m, n and k, each at most once, in one word (mnk) are their
 * product; what has a "*" or "^" is read as a term; "sigma.X" and "X_residual" are sigma(X), and "sigma" is
 * that of 1.
 */
#include "plugins/export-cluster/cluster.h"

#include <ctype.h>
#include <string.h>

const char *target_factor(const char *at, char column[static TERM_MAX], int *power) {
    size_t length = 0;
    while (isalnum((unsigned char)at[length]) || at[length] == '_' || at[length] == '.')
        length++;
    snprintf(column, TERM_MAX, "%.*s", (int)length, at);
    *power = at[length] == '^' ? at[length + 1] - '0' : 1;
    at += at[length] == '^' && at[length + 1] ? length + 2 : length;
    return length > 0 && !isdigit((unsigned char)column[0]) && *power >= 1 && *power <= 9 ? at : NULL;
}

static bool is_product(const char *term) {
    char column[TERM_MAX];
    int power;
    for (const char *at = term; (at = target_factor(at, column, &power)); at++)
        if (*at != '*')
            return *at == '\0';
    return false;
}

/* Reads a NAME that says its term itself, such as intercept or mnk, into RET. false: it does not. */
static bool read_name(const char *name, char ret[static TERM_MAX]) {
    size_t length = strlen(name), written = 0;
    if (strcmp(name, "1") == 0 || strcasecmp(name, "intercept") == 0 || strcmp(name, "(Intercept)") == 0)
        name = "1";
    if (strcmp(name, "1") == 0 || strpbrk(name, "*^")) {
        snprintf(ret, TERM_MAX, "%s", name);
        return strcmp(name, "1") == 0 || is_product(name);
    }
    for (size_t i = 0; i < length; i++)
        if (!strchr("mnk", name[i]) || memchr(name, name[i], i))
            return false;
        else
            written += (size_t)snprintf(ret + written, TERM_MAX - written, "%s%c", i ? "*" : "", name[i]);
    return length > 0;
}

/* Finds what a coefficient is, by AS if that is not NULL, else by NAME. -EINVAL: not known. */
int target_read(const char *name, const char *as, struct target *ret, struct plugin_message *message) {
    static const char open[] = "sigma(", prefix[] = "sigma.", residual[] = "_residual";
    const char *text = as ? as : strcmp(name, "sigma") == 0 ? "sigma(1)" : name;
    size_t length = strlen(text), opened = sizeof open - 1, ended = sizeof residual - 1;
    char term[TERM_MAX];
    *ret = (struct target){.kind = TARGET_MEAN};
    if (as && strcmp(as, "none") == 0) {
        ret->kind = TARGET_NONE;
        return 0;
    }
    if (strncmp(text, open, opened) == 0 && text[length - 1] == ')') {
        ret->kind = TARGET_SIGMA;
        text += opened, length -= opened + 1;
    } else if (!as && strncmp(text, prefix, sizeof prefix - 1) == 0) {
        ret->kind = TARGET_SIGMA;
        text += sizeof prefix - 1, length -= sizeof prefix - 1;
    } else if (!as && length > ended && strcmp(text + length - ended, residual) == 0) {
        ret->kind = TARGET_SIGMA;
        length -= ended;
    }
    snprintf(term, sizeof term, "%.*s", (int)length, text);
    bool good = length < sizeof term && (read_name(term, ret->term) || (as && is_product(term)));
    if (good && as && is_product(term))
        memcpy(ret->term, term, sizeof term);
    return good ? 0
                : plugin_refuse(message, -EINVAL,
                                "the term of the coefficient '%.200s'%s%.200s is not known; set "
                                "as=%.200s=TERM, such as m*n*k, sigma(m*n*k) or none",
                                name, as ? " as " : "", as ? as : "", name);
}
