#include "engine/testbed/http.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* libcurl is loaded when the first URL is checked: linked, it and its libraries would take two thirds of the
 * time in which assay starts, and most commands need no API. */
#define CURL_FUNCTIONS(FUNCTION)                                                                             \
    FUNCTION(easy_cleanup);                                                                                  \
    FUNCTION(easy_getinfo);                                                                                  \
    FUNCTION(easy_header);                                                                                   \
    FUNCTION(easy_init);                                                                                     \
    FUNCTION(easy_setopt);                                                                                   \
    FUNCTION(easy_strerror);                                                                                 \
    FUNCTION(free);                                                                                          \
    FUNCTION(multi_add_handle);                                                                              \
    FUNCTION(multi_assign);                                                                                  \
    FUNCTION(multi_cleanup);                                                                                 \
    FUNCTION(multi_info_read);                                                                               \
    FUNCTION(multi_init);                                                                                    \
    FUNCTION(multi_remove_handle);                                                                           \
    FUNCTION(multi_setopt);                                                                                  \
    FUNCTION(multi_socket_action);                                                                           \
    FUNCTION(slist_append);                                                                                  \
    FUNCTION(slist_free_all);                                                                                \
    FUNCTION(url);                                                                                           \
    FUNCTION(url_cleanup);                                                                                   \
    FUNCTION(url_get);                                                                                       \
    FUNCTION(url_set)
#define CURL_MEMBER(name) typeof(curl_##name) *name
#define CURL_FIND(name) is_there = is_there && (curl.name = (typeof(curl.name))dlsym(library, "curl_" #name))

static struct { CURL_FUNCTIONS(CURL_MEMBER); } curl;

/* Loads libcurl and finds its functions. -ELIBACC where the library or a function is missing. */
static int load_curl(struct failure *failure) {
    void *library = dlopen("libcurl.so.4", RTLD_NOW);              /* later calls get the same handle */
    library = library ? library : dlopen(ASSAY_LIBCURL, RTLD_NOW); /* its path at build time */
    bool is_there = library != NULL;
    CURL_FUNCTIONS(CURL_FIND);
    return is_there ? 0 : failure_set(failure, -ELIBACC, "cannot load libcurl: %s", dlerror());
}

static const int64_t timeout_ns = 60 * EVENT_SECOND;

struct http_request {
    CURL *easy; /* NULL: no request runs */
    struct curl_slist *headers;
    struct text body;
    bool is_over, is_too_big;
    CURLcode result;
    char problem[CURL_ERROR_SIZE];
};

struct http {
    struct event_loop *loop;
    CURLM *multi;
    struct event_source *timer; /* set by libcurl for its own time-outs */
    char *url;                  /* without a '/' at its end */
    bool is_plain;              /* the URL is http:// */
    char *credentials, *authority;
    struct http_request background;     /* that of http_start() */
    struct event_source *timeout_timer; /* time-out of `background` */
    void (*callback)(const struct http_answer *answer, void *context);
    void *context;
};

void http_answer_clear(struct http_answer *answer) {
    text_clear(&answer->body);
    free(answer->location);
    *answer = (struct http_answer){0};
}

/* ---- Settings */

static void free_url(CURLU **url) {
    curl.url_cleanup(*url);
}

/* True where the URL has PART and its text is one of WORDS; WORDS NULL: any text. */
static bool part_is(CURLU *url, CURLUPart part, const char *const *words) {
    char *text = NULL;
    bool is_one = curl.url_get(url, part, &text, 0) == CURLUE_OK && !words;
    while (text && words && *words && !is_one)
        is_one = strcmp(*words++, text) == 0;
    curl.free(text);
    return is_one;
}

/* No message quotes the URL: it may contain a password. */
int http_check_url(const char *text, struct failure *failure) {
    static const char *const https[] = {"https", NULL}, *const http[] = {"http", NULL};
    static const char *const this_machine[] = {"127.0.0.1", "localhost", "[::1]", NULL};
    int r = load_curl(failure);
    if (r < 0)
        return r;
    cleanup(free_url) CURLU *url = curl.url();
    CURLUcode code = curl.url_set(url, CURLUPART_URL, text, 0);
    const char *problem = code == CURLUE_OK ? NULL : "it is no URL";
    if (!problem && (part_is(url, CURLUPART_USER, NULL) || part_is(url, CURLUPART_PASSWORD, NULL)))
        problem = "it has a user or a password in it, which belong in a netrc file";
    else if (!problem && (part_is(url, CURLUPART_QUERY, NULL) || part_is(url, CURLUPART_FRAGMENT, NULL)))
        problem = "it has a query or a fragment, and paths are appended to it";
    else if (!problem && !part_is(url, CURLUPART_SCHEME, https) &&
             !(part_is(url, CURLUPART_SCHEME, http) && part_is(url, CURLUPART_HOST, this_machine)))
        problem = "its scheme is not https";
    return problem ? failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                      "the address of the API cannot be used: %s; expected "
                                      "https://HOST[:PORT][/PATH], or http:// for 127.0.0.1, [::1] or "
                                      "localhost",
                                      problem)
                   : 0;
}

/* Finds the netrc file: NAMED, or ~/.netrc for NULL. *RET stays NULL where there is no ~/.netrc. -EPERM for a
 * file that cannot be read, or that other users can read. */
static int find_netrc(const char *named, char **ret, struct failure *failure) {
    const char *home = getenv("HOME");
    cleanup_free char *path = named ? xstrdup(named) : home ? file_join(home, ".netrc") : NULL;
    cleanup_close int descriptor = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    struct stat status;
    if (!path || (descriptor < 0 && errno == ENOENT && !named))
        return 0;
    if (descriptor < 0 || fstat(descriptor, &status) < 0)
        return failure_set(failure, -EPERM, "cannot read the credentials '%s': %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077) != 0)
        return failure_set(failure, -EPERM,
                           "other users can read the credentials '%s'; expected a file of your "
                           "own with mode 0600",
                           path);
    *ret = take_pointer(path);
    return 0;
}

/* ---- libcurl on the loop */

static void mark_ended_requests(struct http *http);

/* Called when a socket of libcurl's is ready. */
static void on_descriptor(struct event_source *source, int descriptor, unsigned events, void *context) {
    struct http *http = context;
    int running,
        bits = (events & EVENT_READ ? CURL_CSELECT_IN : 0) | (events & EVENT_WRITE ? CURL_CSELECT_OUT : 0);
    (void)source;
    /* After a hang-up no bits are passed: libcurl then checks the socket itself and finds the error. */
    (void)curl.multi_socket_action(http->multi, descriptor, events & EVENT_HANGUP ? 0 : bits, &running);
    mark_ended_requests(http);
}

/* Called by libcurl: watches a socket for the events WHAT, or no longer watches it. */
static int on_socket_wanted(CURL *easy, curl_socket_t descriptor, int what, void *context,
                            void *descriptor_context) {
    static const unsigned interests[] = {[CURL_POLL_IN] = EVENT_READ,
                                         [CURL_POLL_OUT] = EVENT_WRITE,
                                         [CURL_POLL_INOUT] = EVENT_READ | EVENT_WRITE};
    struct http *http = context;
    struct event_source *source = descriptor_context;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        event_source_remove(source);
        return 0;
    }
    if (source)
        return event_source_set_events(source, interests[what]);
    source = event_loop_add_descriptor(http->loop, descriptor, interests[what], on_descriptor, http);
    (void)curl.multi_assign(http->multi, descriptor, source);
    return source ? 0 : -1;
}

/* Called when libcurl's timer expires. */
static void on_timer(struct event_source *source, void *context) {
    struct http *http = context;
    int running;
    (void)source;
    (void)curl.multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    mark_ended_requests(http);
}

/* Called by libcurl: sets its timer; negative: stops it. */
static int on_timer_wanted(CURLM *multi, long milliseconds, void *context) {
    (void)multi;
    event_source_set_timer(((struct http *)context)->timer,
                           milliseconds < 0 ? -1 : milliseconds * EVENT_MILLISECOND, 0);
    return 0;
}

/* Opens sockets for libcurl with close-on-exec: its own sockets would be inherited by every program that is
 * started. */
static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address) {
    (void)context;
    (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* Called by libcurl for each piece of the body. Returns 0, which aborts the request, beyond the body's limit.
 */
static size_t on_body(char *bytes, size_t size, size_t count, void *context) {
    struct http_request *request = context;
    request->is_too_big = text_append(&request->body, bytes, size * count) < 0;
    return request->is_too_big ? 0 : size * count;
}

/* ---- One request */

/* The whole URL of PATH; NULL: PATH is a URL that is not below that of the settings. The caller frees. */
static char *full_url(const struct http *http, const char *path) {
    size_t length = strlen(http->url);
    if (path[0] == '/')
        return xformat("%s%s", http->url, path);
    return strncmp(path, http->url, length) == 0 && path[length] == '/' ? xstrdup(path) : NULL;
}

/* Sets all options of one request: address, TLS, credentials, headers and body. */
static void set_options(struct http *http, struct http_request *request, const char *method, const char *url,
                        const char *body) {
    CURL *easy = request->easy;
    curl.easy_setopt(easy, CURLOPT_URL, url);
    curl.easy_setopt(easy, CURLOPT_PROTOCOLS_STR, http->is_plain ? "http" : "https");
    if (http->is_plain) /* http:// is this machine itself: no proxy */
        curl.easy_setopt(easy, CURLOPT_PROXY, "");
    curl.easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl.easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl.easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    curl.easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (http->authority) {
        curl.easy_setopt(easy, CURLOPT_CAINFO, http->authority);
        curl.easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    if (http->credentials) {
        curl.easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
        curl.easy_setopt(easy, CURLOPT_NETRC_FILE, http->credentials);
    }
    static const char *const headers[] = {"Accept: application/json", "Cache-Control: no-cache",
                                          "Expect:", "Content-Type: application/json"};
    for (size_t i = 0; i < (body ? 4 : 3); i++)
        request->headers = curl.slist_append(request->headers, headers[i]);
    curl.easy_setopt(easy, CURLOPT_HTTPHEADER, request->headers);
    curl.easy_setopt(easy, CURLOPT_USERAGENT, "assay/" ASSAY_VERSION);
    if (body || strcmp(method, "POST") == 0)
        curl.easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, body ? body : "");
    curl.easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
    curl.easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl.easy_setopt(easy, CURLOPT_WRITEDATA, request);
    curl.easy_setopt(easy, CURLOPT_PRIVATE, request);
    curl.easy_setopt(easy, CURLOPT_ERRORBUFFER, request->problem);
    curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl.easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* an abort does not wait for a name look-up */
}

/* Starts a request in REQUEST, which must stay at its address until drop(). -EINVAL for a PATH that is not
 * below the URL of the settings. */
static int start_request(struct http *http, struct http_request *request, const char *method,
                         const char *path, const char *body, size_t limit, struct failure *failure) {
    cleanup_free char *url = full_url(http, path);
    if (!url)
        return failure_set(failure, -EINVAL, "'%s' is not below '%s'", path, http->url);
    *request = (struct http_request){.easy = curl.easy_init()};
    if (!request->easy)
        memory_exhausted();
    text_init(&request->body, limit);
    set_options(http, request, method, url, body);
    if (curl.multi_add_handle(http->multi, request->easy) != CURLM_OK)
        memory_exhausted();
    return 0;
}

/* Removes REQUEST from libcurl, whether or not it has ended, and frees what it owns. */
static void end_request(struct http *http, struct http_request *request) {
    if (!request->easy)
        return;
    curl.multi_remove_handle(http->multi, request->easy);
    curl.easy_cleanup(request->easy);
    curl.slist_free_all(request->headers);
    text_clear(&request->body);
    request->easy = NULL;
}

/* Fails with a sentence for a request that ended without an answer. */
static int fail_request(const struct http *http, const struct http_request *request,
                        struct failure *failure) {
    static const struct {
        CURLcode result;
        int code;
        const char *what;
    } kinds[] = {{CURLE_PEER_FAILED_VERIFICATION, -EPERM, "shows a certificate that is not trusted"},
                 {CURLE_SSL_CACERT_BADFILE, -EPERM, "shows a certificate that is not trusted"},
                 {CURLE_SSL_CONNECT_ERROR, -EIO, "does not speak TLS"},
                 {CURLE_COULDNT_RESOLVE_HOST, -EHOSTUNREACH, "cannot be reached"},
                 {CURLE_COULDNT_RESOLVE_PROXY, -EHOSTUNREACH, "cannot be reached"},
                 {CURLE_COULDNT_CONNECT, -EHOSTUNREACH, "cannot be reached"},
                 {CURLE_GOT_NOTHING, -ECONNRESET, "closed the connection"},
                 {CURLE_PARTIAL_FILE, -ECONNRESET, "closed the connection"},
                 {CURLE_SEND_ERROR, -ECONNRESET, "closed the connection"},
                 {CURLE_RECV_ERROR, -ECONNRESET, "closed the connection"}};
    size_t i = 0, count = sizeof kinds / sizeof *kinds;
    if (request->is_too_big)
        return failure_set(failure, -EMSGSIZE, "%s answers with more than %zu bytes", http->url,
                           request->body.limit);
    while (i < count && kinds[i].result != request->result)
        i++;
    return failure_set(failure, i < count ? kinds[i].code : -EIO, "%s %s: %s", http->url,
                       i < count ? kinds[i].what : "does not answer",
                       request->problem[0] ? request->problem : curl.easy_strerror(request->result));
}

/* Moves the answer of a request that has ended to RET, which is empty; fails where there was no answer. */
static int read_answer(const struct http *http, struct http_request *request, struct http_answer *ret,
                       struct failure *failure) {
    struct curl_header *header;
    if (request->result != CURLE_OK)
        return fail_request(http, request, failure);
    curl.easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &ret->status);
    if (curl.easy_header(request->easy, "Location", 0, CURLH_HEADER, -1, &header) == CURLHE_OK)
        ret->location = xstrdup(header->value);
    int64_t seconds;
    ret->retry_after_ns = -1;
    if (curl.easy_header(request->easy, "Retry-After", 0, CURLH_HEADER, -1, &header) == CURLHE_OK &&
        number_parse_int64(header->value, strlen(header->value), &seconds) && seconds >= 0 &&
        seconds < INT32_MAX)
        ret->retry_after_ns = seconds * EVENT_SECOND;
    ret->body = request->body;
    text_init(&request->body, 0);
    return 0;
}

/* ---- Requests */

/* Passes the background request's answer to the callback. HTTP is not used afterwards: the callback may have
 * closed it. */
static void end_background(struct http *http) {
    struct http_answer answer = {0};
    bool is_good = read_answer(http, &http->background, &answer, NULL) == 0;
    http_stop(http);
    http->callback(is_good ? &answer : NULL, http->context);
    http_answer_clear(&answer);
}

/* Marks the requests that libcurl reports as ended, and calls back for the background one. */
static void mark_ended_requests(struct http *http) {
    struct http_request *request;
    CURLMsg *message;
    int left;
    while ((message = curl.multi_info_read(http->multi, &left))) {
        if (curl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &request) != CURLE_OK)
            continue;
        request->result = message->data.result;
        request->is_over = true;
    }
    if (http->background.easy && http->background.is_over)
        end_background(http);
}

/* The background request has timed out. */
static void on_timeout(struct event_source *source, void *context) {
    struct http *http = context;
    (void)source;
    http->background.result = CURLE_OPERATION_TIMEDOUT;
    end_background(http);
}

int http_open(struct event_loop *loop, const struct http_settings *settings, struct http **ret,
              struct failure *failure) {
    cleanup_free char *credentials = NULL;
    int r = http_check_url(settings->url, failure);
    if (r == 0)
        r = find_netrc(settings->credentials, &credentials, failure);
    if (r < 0)
        return r;
    struct http *http = xcalloc(1, sizeof *http);
    http->loop = loop;
    http->url = xstrdup(settings->url);
    for (size_t end = strlen(http->url); http->url[end - 1] == '/'; end--)
        http->url[end - 1] = '\0';
    http->is_plain = strncasecmp(http->url, "http:", 5) == 0;
    http->credentials = take_pointer(credentials);
    http->authority = settings->authority ? xstrdup(settings->authority) : NULL;
    http->timer = event_loop_add_timer(loop, -1, 0, on_timer, http);
    http->timeout_timer = event_loop_add_timer(loop, -1, 0, on_timeout, http);
    http->multi = curl.multi_init();
    if (!http->timer || !http->timeout_timer || !http->multi)
        memory_exhausted();
    curl.multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, on_socket_wanted);
    curl.multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
    curl.multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, on_timer_wanted);
    curl.multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
    *ret = http;
    return 0;
}

void http_close(struct http *http) {
    if (!http)
        return;
    http_stop(http);
    curl.multi_cleanup(http->multi);
    event_source_remove(http->timer);
    event_source_remove(http->timeout_timer);
    free(http->url);
    free(http->credentials);
    free(http->authority);
    free(http);
}

/* Sends a request and waits for its answer, whatever its status. -ETIMEDOUT after a minute. */
int http_run(struct http *http, const char *method, const char *path, const char *body, size_t limit,
             struct http_answer *ret, struct failure *failure) {
    struct http_request request = {0};
    *ret = (struct http_answer){.retry_after_ns = -1};
    int r = start_request(http, &request, method, path, body, limit, failure);
    if (r == 0)
        r = event_loop_turn_until(http->loop, &request.is_over, timeout_ns, failure);
    if (r == -ETIMEDOUT)
        failure_set(failure, r, "%s does not answer within a minute", http->url);
    if (r == 0)
        r = read_answer(http, &request, ret, failure);
    end_request(http, &request);
    return r;
}

void http_start(struct http *http, const char *method, const char *path, const char *body, size_t limit,
                void (*callback)(const struct http_answer *answer, void *context), void *context) {
    http_stop(http);
    http->callback = callback;
    http->context = context;
    if (start_request(http, &http->background, method, path, body, limit, NULL) == 0)
        event_source_set_timer(http->timeout_timer, timeout_ns, 0);
}

void http_stop(struct http *http) {
    end_request(http, &http->background);
    event_source_set_timer(http->timeout_timer, -1, 0);
}
