/*
 * A server on 127.0.0.1 that answers by a script, one step a connection, in a thread of the test; with TLS by
 * a certificate of its own. And a clock that a step can move on.
 */
#ifndef ASSAY_TESTBED_SCRIPTED_SERVER_H
#define ASSAY_TESTBED_SCRIPTED_SERVER_H

#include "engine/event-loop/event-loop.h"
#include "engine/foundation/clock.h"
#include "tests/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Of { } it is closed at once. */
struct scripted_step {
    const char *status; /* "200 OK" */
    const char *body, *header;
    size_t missing;    /* bytes of the body that are promised and do not come */
    size_t more;       /* bytes of 'x' behind the body */
    bool is_silent;    /* the connection stays open, and nothing comes */
    int64_t passes_ns; /* so much time passes when the request is there */
    const char *raw;   /* this and no more */
};

enum { SCRIPTED_STEPS_MAX = 32, SCRIPTED_REQUEST_MAX = 4096 };

struct scripted_server {
    const struct scripted_step *steps;
    size_t count;
    SSL_CTX *tls; /* NULL: plain */
    int listener, port, silent[SCRIPTED_STEPS_MAX];
    char url[64];
    char requests[SCRIPTED_STEPS_MAX][SCRIPTED_REQUEST_MAX];
    atomic_size_t done;
    pthread_t thread;
};

static _Atomic int64_t scripted_passed_ns;

static inline int64_t scripted_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * EVENT_SECOND + now.tv_nsec + scripted_passed_ns;
}

static inline int64_t scripted_wall_ns(void *context) {
    return scripted_clock(CLOCK_REALTIME);
}

static inline int64_t scripted_monotonic_ns(void *context) {
    return scripted_clock(CLOCK_MONOTONIC);
}

static inline int scripted_clock_use(void **state) {
    static const struct clock_source source = {.wall_ns = scripted_wall_ns,
                                               .monotonic_ns = scripted_monotonic_ns,
                                               .look_again_ns = 2 * EVENT_MILLISECOND};
    clock_use(&source);
    signal(SIGPIPE, SIG_IGN);
    return 0;
}

static inline ssize_t scripted_read(SSL *tls, int descriptor, char *bytes, size_t size) {
    return tls ? SSL_read(tls, bytes, (int)size) : read(descriptor, bytes, size);
}

static inline void scripted_write(SSL *tls, int descriptor, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t n = tls ? SSL_write(tls, bytes, (int)length) : write(descriptor, bytes, length);
        if (n <= 0)
            return;
        bytes += n;
        length -= (size_t)n;
    }
}

/* Until its body is there, too. */
static inline void scripted_read_request(SSL *tls, int descriptor, char *request) {
    size_t length = 0, body = 0;
    const char *end = NULL;
    while (!end || length < (size_t)(end + 4 - request) + body) {
        ssize_t n = scripted_read(tls, descriptor, request + length, SCRIPTED_REQUEST_MAX - 1 - length);
        if (n <= 0)
            return;
        length += (size_t)n;
        request[length] = '\0';
        end = strstr(request, "\r\n\r\n");
        const char *promised = end ? strcasestr(request, "content-length:") : NULL;
        body = promised ? strtoul(promised + strlen("content-length:"), NULL, 10) : 0;
    }
}

static inline void scripted_answer(const struct scripted_step *step, SSL *tls, int descriptor) {
    static const char filler[4096] = {[0 ... 4095] = 'x'};
    char head[1024];
    const char *body = step->body ? step->body : "";
    if (step->raw)
        scripted_write(tls, descriptor, step->raw, strlen(step->raw));
    if (!step->status)
        return;
    snprintf(head, sizeof head, "HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %zu\r\n%s\r\n",
             step->status, strlen(body) + step->more + step->missing, step->header ? step->header : "");
    scripted_write(tls, descriptor, head, strlen(head));
    scripted_write(tls, descriptor, body, strlen(body));
    for (size_t left = step->more; left > 0; left -= left < sizeof filler ? left : sizeof filler)
        scripted_write(tls, descriptor, filler, left < sizeof filler ? left : sizeof filler);
}

static inline void *scripted_serve(void *context) {
    struct scripted_server *server = context;
    for (;;) {
        int descriptor = accept(server->listener, NULL, NULL);
        size_t i = server->done;
        if (descriptor < 0 || i >= server->count) {
            close(descriptor);
            return NULL;
        }
        const struct scripted_step *step = &server->steps[i];
        SSL *tls = server->tls ? SSL_new(server->tls) : NULL;
        if (tls)
            SSL_set_fd(tls, descriptor);
        if (!tls || SSL_accept(tls) > 0) {
            if (step->status || step->raw || step->is_silent)
                scripted_read_request(tls, descriptor, server->requests[i]);
            server->done++;
            scripted_passed_ns += step->passes_ns;
            scripted_answer(step, tls, descriptor);
            if (tls)
                SSL_shutdown(tls);
        } else {
            server->done++;
        }
        SSL_free(tls);
        if (step->is_silent)
            server->silent[i] = descriptor;
        else
            close(descriptor);
    }
}

static inline void scripted_start(struct scripted_server *server, SSL_CTX *tls,
                                  const struct scripted_step *steps, size_t count) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    *server = (struct scripted_server){.steps = steps, .count = count, .tls = tls};
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(server->listener, 16), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &length), 0);
    server->port = ntohs(address.sin_port);
    snprintf(server->url, sizeof server->url, "%s://127.0.0.1:%d/api/", tls ? "https" : "http", server->port);
    assert_int_equal(pthread_create(&server->thread, NULL, scripted_serve, server), 0);
}

static inline void scripted_stop(struct scripted_server *server) {
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listener);
    for (size_t i = 0; i < SCRIPTED_STEPS_MAX; i++)
        if (server->silent[i] > 0)
            close(server->silent[i]);
}

/* A context with a certificate for the address ADDRESS, signed by itself and written to PATH. */
static inline SSL_CTX *scripted_tls(const char *address, const char *path) {
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    char name[64];
    snprintf(name, sizeof name, "IP:%s", address);
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
    X509_set_pubkey(certificate, key);
    X509_NAME *subject = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)"a test", -1, -1, 0);
    X509_set_issuer_name(certificate, subject);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, name);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    fclose(file);
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    assert_int_equal(SSL_CTX_use_certificate(context, certificate), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(context, key), 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return context;
}

#endif
