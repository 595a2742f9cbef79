/* Any line as an ssh destination: refused, or taken apart, and then its parts make the same again. */
#include "engine/foundation/cleanup.h"
#include "engine/remote/ssh/config.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>

static void check_destination(const char *text) {
    char *user = NULL, *host = NULL, *same_user = NULL, *same_host = NULL;
    unsigned port = 0, same_port = 0;
    struct failure failure = {0};
    if (ssh_destination_parse(text, &user, &host, &port, &failure) < 0) {
        must(failure.kind == FAILURE_INPUT && failure.text[0] && !user && !host);
        return;
    }
    fuzz_passed++;
    must(host[0] && host[0] != '-' && (!user || (user[0] && user[0] != '-')) && port < 65536);
    must(!strpbrk(host, " \t\n'\"`$;&|<>()\\/") && (!user || !strpbrk(user, " \t\n'\"`;&|<>()/")));
    /* Put together again it is the same. */
    char whole[1200], number[16] = "";
    if (port)
        snprintf(number, sizeof number, ":%u", port);
    snprintf(whole, sizeof whole, "%s%s[%s]%s", user ? user : "", user ? "@" : "", host, number);
    must(ssh_destination_parse(whole, &same_user, &same_host, &same_port, &failure) == 0);
    must(strcmp(host, same_host) == 0 && port == same_port && !user == !same_user);
    must(!user || strcmp(user, same_user) == 0);
    free(user);
    free(host);
    free(same_user);
    free(same_host);
}

FUZZ_TARGET(40, 2000);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    if (length > 4096)
        return 0;
    cleanup_free char *text = fuzz_text(bytes, length);
    text[strcspn(text, "\n")] = '\0';
    check_destination(text);
    return 0;
}
