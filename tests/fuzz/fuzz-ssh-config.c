/* Any bytes as an ssh configuration, and their first line as a destination: refused with a place in the file,
 * or taken, and then every host has a name and what is said of it is bounded. Files named by Include are not
 * opened: the bytes have no slash and no "~" in them, and the folder that relative names are in is empty. */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/remote/ssh/config.h"
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static void check_destination(const char *text) {
    char *user = NULL, *host = NULL, *same_user = NULL, *same_host = NULL;
    unsigned port = 0, same_port = 0;
    struct failure failure = {0};
    if (ssh_destination_parse(text, &user, &host, &port, &failure) < 0) {
        must(failure.kind == FAILURE_INPUT && failure.text[0] && !user && !host);
        return;
    }
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

static void check_host(const struct ssh_config *config, const char *destination) {
    struct ssh_host host = {0};
    struct failure failure = {0};
    if (ssh_config_look_up(config, destination, &host, &failure) < 0) {
        must(failure.kind == FAILURE_INPUT && strncmp(failure.place, "/proc/self/fd/", 14) == 0);
        must(!host.host_name);
        return;
    }
    must(host.host_name && host.port < 65536 && host.identity_count <= 100);
    must(!(host.proxy_jump && host.proxy_command));
    for (size_t i = 0; i < host.identity_count; i++)
        must(host.identities[i] && strlen(host.identities[i]) <= 4096);
    ssh_host_clear(&host);
}

FUZZ_TARGET(60, 2000);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    static int descriptor = -1;
    static char path[64];
    if (descriptor < 0) {
        must(setenv("HOME", "/nonexistent", 1) == 0);
        descriptor = memfd_create("ssh-config", MFD_CLOEXEC);
        must(descriptor >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    }
    if (length > 1 << 16)
        return 0;
    cleanup_free char *text = malloc(length + 1);
    must(text != NULL);
    memcpy(text, bytes, length);
    text[length] = '\0';
    for (size_t i = 0; i < length; i++)
        if (text[i] == '/' || text[i] == '~')
            text[i] = '_';
    must(ftruncate(descriptor, 0) == 0 && lseek(descriptor, 0, SEEK_SET) == 0);
    must(file_write_all(descriptor, text, length) == 0);
    struct ssh_config *config = NULL;
    struct failure failure = {0};
    if (ssh_config_read(path, &config, &failure) < 0) {
        must(failure.kind == FAILURE_INPUT && failure.text[0] &&
             strncmp(failure.place, path, strlen(path)) == 0);
        must(text_invalid_utf8(failure.text, strlen(failure.text)) == strlen(failure.text) ||
             text_invalid_utf8(text, length) < length);
    } else {
        fuzz_passed++;
        check_host(config, "node");
        check_host(config, "a.site");
        ssh_config_free(config);
    }
    text[strcspn(text, "\n")] = '\0';
    check_destination(text);
    return 0;
}
