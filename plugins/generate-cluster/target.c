/*
 * What a coefficient is:
 *
 *     target := term | "sigma(" term ")" | "none"
 *     term   := "1" | factor { "*" factor }        factor := column [ "^" digit ]
 *
 * Names say much themselves: "intercept" is 1; m, n and k, each at most once, in one word (mnk) are their
 * product; what has a "*" or "^" is read as a term; "X_residual" is sigma(X), and "sigma" that of 1.
 */
#include "plugins/generate-cluster/cluster.h"

#include <ctype.h>
#include <string.h>

static int add_factor(struct target *target, const char *column, size_t length, int power) {
    if (target->factor_count == FACTORS_MAX || length == 0 || length >= WORD_MAX ||
        isdigit((unsigned char)*column))
        return -EINVAL;
    memcpy(target->columns[target->factor_count], column, length);
    target->columns[target->factor_count][length] = '\0';
    target->powers[target->factor_count++] = power;
    return 0;
}

static int read_product(const char *text, size_t length, struct target *ret) {
    const char *end = text + length;
    if (length == 1 && *text == '1')
        return 0;
    for (;; text++) {
        const char *column = text;
        int power = 1;
        while (text < end && (isalnum((unsigned char)*text) || *text == '_' || *text == '.'))
            text++;
        size_t width = (size_t)(text - column);
        if (text + 1 < end && *text == '^') {
            power = text[1] - '0';
            text += 2;
        }
        if (power < 1 || power > 9 || add_factor(ret, column, width, power) < 0 ||
            (text < end && *text != '*'))
            return -EINVAL;
        if (text == end)
            return 0;
    }
}

/* What a name says by itself. */
static int read_name(const char *name, size_t length, struct target *ret) {
    static const char *const ones[] = {"1", "intercept", "Intercept", "(Intercept)"};
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
        if (strlen(ones[i]) == length && memcmp(ones[i], name, length) == 0)
            return 0;
    if (memchr(name, '*', length) || memchr(name, '^', length))
        return read_product(name, length, ret);
    for (size_t i = 0; i < length; i++)
        if (!strchr("mnk", name[i]) || memchr(name, name[i], i) || add_factor(ret, name + i, 1, 1) < 0)
            return -EINVAL;
    return length > 0 ? 0 : -EINVAL;
}

int target_read(const char *name, const char *as, struct target *ret, struct plugin_message *message) {
    static const char open[] = "sigma(", residual[] = "_residual";
    const char *text = as ? as : name;
    size_t length = strlen(text), opened = sizeof open - 1, ended = sizeof residual - 1, written = 0;
    *ret = (struct target){.kind = TARGET_MEAN, .term = "1"};
    if (as && strcmp(as, "none") == 0) {
        ret->kind = TARGET_NONE;
        return 0;
    }
    if (!as && strcmp(name, "sigma") == 0)
        text = "sigma(1)", length = strlen(text);
    if (strncmp(text, open, opened) == 0 && text[length - 1] == ')') {
        ret->kind = TARGET_SIGMA;
        text += opened, length -= opened + 1;
    } else if (!as && length > ended && strcmp(text + length - ended, residual) == 0) {
        ret->kind = TARGET_SIGMA;
        length -= ended;
    }
    if ((as ? read_product(text, length, ret) : read_name(text, length, ret)) < 0)
        return plugin_refuse(
            message, -EINVAL,
            "what the coefficient '%.200s'%s%.200s is of is not clear; expected as=%.200s=TERM, "
            "such as m*n*k, sigma(m*n*k) or none",
            name, as ? " as " : "", as ? as : "", name);
    for (size_t f = 0; f < ret->factor_count; f++) {
        char power[8] = "";
        if (ret->powers[f] > 1)
            snprintf(power, sizeof power, "^%d", ret->powers[f]);
        written += (size_t)snprintf(ret->term + written, sizeof ret->term - written, "%s%s%s", f ? "*" : "",
                                    ret->columns[f], power);
    }
    return 0;
}
