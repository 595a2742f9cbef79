#include "tests/test-bed/kernel-files.h"

#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    REQUEST_SIZE = 64 << 10, /* the kernel wants 8 KiB at least, and a write's bytes over its header */
    WRITE_MAX = 4096,        /* a page, as attributes take */
    ORDER_MAX = 8192,
    ANSWER_MAX = 1 << 20,
    WORDS_MAX = 8,
    ASK_WAIT_S = 120, /* for an answer: a slow file may be in the way */
    LONG_S = 3600,
};

/* What one open file shows: as of the read that began at its start. */
struct handle {
    struct text shown;
};

/* One question while it is answered. */
struct question {
    struct kernel *kernel;
    int descriptor;
    const struct fuse_in_header *header;
    const void *body;
    size_t length; /* of the body */
};

static void answer_with(const struct question *question, int status, const void *bytes, size_t length) {
    struct fuse_out_header header = {
        .len = (uint32_t)(sizeof header + length), .error = status, .unique = question->header->unique};
    struct iovec parts[2] = {{&header, sizeof header}, {(void *)bytes, length}};
    ssize_t written = writev(question->descriptor, parts, length > 0 ? 2 : 1);
    (void)written; /* who has asked may be gone */
}

static void answer_status(const struct question *question, int status) {
    answer_with(question, status, NULL, 0);
}

/* ---- Files and folders */

static struct kernel_file *file_of(const struct question *question) {
    uint64_t number = question->header->nodeid;
    return number >= KERNEL_ROOT && number < question->kernel->count ? &question->kernel->files[number]
                                                                     : NULL;
}

static void fill_attributes(const struct kernel *kernel, const struct kernel_file *file,
                            struct fuse_attr *attr) {
    static const unsigned types[] = {
        [MACHINE_FILE] = S_IFREG, [MACHINE_LINK] = S_IFLNK, [MACHINE_FOLDER] = S_IFDIR};
    *attr = (struct fuse_attr){.ino = kernel_number_of(kernel, file),
                               .size = file->kind == MACHINE_LINK   ? strlen(file->initial)
                                       : file->kind == MACHINE_FILE ? 4096
                                                                    : 0,
                               .mode = types[file->kind] | file->mode,
                               .nlink = 1,
                               .blksize = 4096};
}

/* Only folders that cannot go away are looked up once and for long: that is most of a path. */
static uint64_t lasts(const struct kernel_file *file) {
    return file->kind == MACHINE_FOLDER && file->pu < 0 ? LONG_S : 0;
}

static void do_lookup(const struct question *question, const struct kernel_file *folder) {
    const char *name = question->body;
    const struct kernel *kernel = question->kernel;
    const struct kernel_file *file =
        folder->kind != MACHINE_FOLDER || strnlen(name, question->length) == question->length
            ? NULL
            : kernel_child(kernel, kernel_number_of(kernel, folder), name);
    if (file == NULL || !kernel_is_there(kernel, file)) {
        answer_status(question, -ENOENT);
        return;
    }
    struct fuse_entry_out entry = {
        .nodeid = kernel_number_of(kernel, file), .entry_valid = lasts(file), .attr_valid = LONG_S};
    fill_attributes(kernel, file, &entry.attr);
    answer_with(question, 0, &entry, sizeof entry);
}

/* Also for SETATTR: a file is truncated when it is opened for writing, which means nothing here. */
static void do_attributes(const struct question *question, const struct kernel_file *file) {
    struct fuse_attr_out out = {.attr_valid = LONG_S}; /* they never change */
    fill_attributes(question->kernel, file, &out.attr);
    answer_with(question, 0, &out, sizeof out);
}

static void do_readlink(const struct question *question, const struct kernel_file *file) {
    if (file->kind == MACHINE_LINK)
        answer_with(question, 0, file->initial, strlen(file->initial));
    else
        answer_status(question, -EINVAL);
}

/* Not even by root: an attribute has a function for reading, for writing, or for both. WANTS: mode bits. */
static bool may_be_opened(const struct kernel_file *file, unsigned wants) {
    return ((wants & 0444) == 0 || (file->mode & 0444) != 0) &&
           ((wants & 0222) == 0 || (file->mode & 0222) != 0);
}

static void do_open(const struct question *question, const struct kernel_file *file) {
    const struct fuse_open_in *in = question->body;
    bool is_there = kernel_is_there(question->kernel, file);
    unsigned wants = (in->flags & O_ACCMODE) == O_RDONLY   ? 0444
                     : (in->flags & O_ACCMODE) == O_WRONLY ? 0222
                                                           : 0666;
    struct fuse_open_out out = {.open_flags = FOPEN_DIRECT_IO};
    if (is_there && file->kind == MACHINE_FILE && !may_be_opened(file, wants)) {
        answer_status(question, -EACCES);
        return;
    }
    if (is_there && file->kind == MACHINE_FILE) {
        struct handle *handle = calloc(1, sizeof *handle);
        if (handle != NULL)
            text_init(&handle->shown, KERNEL_SHOWN_MAX);
        out.fh = (uint64_t)(uintptr_t)handle;
    }
    if (!is_there)
        answer_status(question, -ENOENT);
    else if (file->kind == MACHINE_FILE && out.fh == 0)
        answer_status(question, -ENOMEM);
    else
        answer_with(question, 0, &out, sizeof out);
}

static void do_release(const struct question *question) {
    const struct fuse_release_in *in = question->body;
    struct handle *handle = (struct handle *)(uintptr_t)in->fh;
    if (handle != NULL)
        text_clear(&handle->shown);
    free(handle);
    answer_status(question, 0);
}

static void do_read(const struct question *question, const struct kernel_file *file) {
    const struct fuse_read_in *in = question->body;
    struct handle *handle = (struct handle *)(uintptr_t)in->fh;
    if (in->offset == 0) {
        text_reset(&handle->shown);
        int status = kernel_read(question->kernel, file, &handle->shown);
        if (status < 0) {
            answer_status(question, status);
            return;
        }
    }
    size_t from = in->offset < handle->shown.length ? (size_t)in->offset : handle->shown.length;
    size_t length = handle->shown.length - from;
    answer_with(question, 0, handle->shown.bytes + from, length < in->size ? length : in->size);
}

static void do_write(const struct question *question, struct kernel_file *file) {
    const struct fuse_write_in *in = question->body;
    if (question->length < sizeof *in + in->size) {
        answer_status(question, -EIO);
        return;
    }
    int status = kernel_write(question->kernel, file, (const char *)(in + 1), in->size);
    struct fuse_write_out out = {.size = in->size};
    if (status < 0)
        answer_status(question, status);
    else
        answer_with(question, 0, &out, sizeof out);
}

/* The offset of an entry is the number of the file after it; the root's is taken by nobody's next one, and
 * says that there is none. */
static void do_readdir(const struct question *question, const struct kernel_file *folder) {
    const struct fuse_read_in *in = question->body;
    const struct kernel *kernel = question->kernel;
    struct text entries cleanup(text_clear);
    text_init(&entries, in->size);
    uint32_t at = in->offset == 0 ? folder->first : in->offset == KERNEL_ROOT ? 0 : (uint32_t)in->offset;
    for (int status = 0; status == 0 && at != 0 && at < kernel->count; at = kernel->files[at].next) {
        const struct kernel_file *file = &kernel->files[at];
        if (!kernel_is_there(kernel, file))
            continue;
        size_t length = strlen(file->name);
        struct fuse_dirent entry = {.ino = at,
                                    .off = file->next != 0 ? file->next : KERNEL_ROOT,
                                    .namelen = (uint32_t)length,
                                    .type = file->kind == MACHINE_FILE   ? S_IFREG >> 12
                                            : file->kind == MACHINE_LINK ? S_IFLNK >> 12
                                                                         : S_IFDIR >> 12};
        char bytes[FUSE_DIRENT_ALIGN(sizeof entry + MACHINE_TREE_PATH_SIZE)] = {0};
        memcpy(bytes, &entry, FUSE_NAME_OFFSET);
        memcpy(bytes + FUSE_NAME_OFFSET, file->name, length);
        status = text_append(&entries, bytes, FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + length));
        if (status < 0) /* the buffer is full; it asks again from here */
            break;
    }
    answer_with(question, 0, entries.bytes, entries.length);
}

/* ---- The protocol */

static void do_init(const struct question *question) {
    const struct fuse_init_in *in = question->body;
    struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION,
                                .minor = FUSE_KERNEL_MINOR_VERSION,
                                .max_readahead = in->max_readahead,
                                .flags = in->flags & FUSE_BIG_WRITES,
                                .max_background = 16,
                                .congestion_threshold = 12,
                                .max_write = WRITE_MAX,
                                .time_gran = 1};
    answer_with(question, 0, &out, sizeof out);
}

/* Bytes that a body must have for what is read of it here. */
static size_t least_body(uint32_t opcode) {
    switch (opcode) {
    case FUSE_INIT:
        return 16;
    case FUSE_LOOKUP:
        return 1;
    case FUSE_READ:
    case FUSE_READDIR:
        return sizeof(struct fuse_read_in);
    case FUSE_WRITE:
        return sizeof(struct fuse_write_in);
    case FUSE_OPEN:
    case FUSE_OPENDIR:
        return sizeof(struct fuse_open_in);
    case FUSE_RELEASE:
        return sizeof(struct fuse_release_in);
    default:
        return 0;
    }
}

static void answer_about(const struct question *question, struct kernel_file *file) {
    switch (question->header->opcode) {
    case FUSE_LOOKUP:
        do_lookup(question, file);
        return;
    case FUSE_GETATTR:
    case FUSE_SETATTR:
        do_attributes(question, file);
        return;
    case FUSE_READLINK:
        do_readlink(question, file);
        return;
    case FUSE_OPEN:
    case FUSE_OPENDIR:
        do_open(question, file);
        return;
    case FUSE_READ:
        do_read(question, file);
        return;
    case FUSE_WRITE:
        do_write(question, file);
        return;
    case FUSE_READDIR:
        do_readdir(question, file);
        return;
    default: /* FLUSH too: it is not asked again */
        answer_status(question, -ENOSYS);
    }
}

static void answer_question(const struct question *question) {
    struct kernel_file *file = file_of(question);
    uint32_t opcode = question->header->opcode;
    if (opcode == FUSE_FORGET || opcode == FUSE_BATCH_FORGET || opcode == FUSE_INTERRUPT)
        return; /* these want no answer */
    struct fuse_statfs_out system = {.st = {.bsize = 4096, .namelen = 255, .frsize = 4096}};
    if (question->length < least_body(opcode))
        answer_status(question, -EIO);
    else if (opcode == FUSE_INIT)
        do_init(question);
    else if (opcode == FUSE_STATFS)
        answer_with(question, 0, &system, sizeof system);
    else if (opcode == FUSE_RELEASE || opcode == FUSE_RELEASEDIR)
        opcode == FUSE_RELEASE ? do_release(question) : answer_status(question, 0);
    else if (file == NULL)
        answer_status(question, -ESTALE);
    else
        answer_about(question, file);
}

/* ---- Orders: the length of the words as 4 bytes, then the words, each with its NUL. The answer: its length,
 * '=' or '!', and the text. */

static bool move(int socket, void *bytes, size_t length, bool out) {
    for (size_t done = 0; done < length;) {
        ssize_t moved = out ? send(socket, (char *)bytes + done, length - done, MSG_NOSIGNAL)
                            : recv(socket, (char *)bytes + done, length - done, 0);
        if (moved < 0 && errno == EINTR)
            continue;
        if (moved <= 0)
            return false;
        done += (size_t)moved;
    }
    return true;
}

/* False when nobody will ask any more. */
static bool take_order(struct kernel *kernel, int control) {
    char bytes[ORDER_MAX];
    const char *words[WORDS_MAX];
    uint32_t length;
    int count = 0;
    if (!move(control, &length, sizeof length, false) || length == 0 || length > sizeof bytes ||
        !move(control, bytes, length, false) || bytes[length - 1] != '\0')
        return false;
    for (size_t at = 0; at < length && count < WORDS_MAX; at += strlen(bytes + at) + 1)
        words[count++] = bytes + at;
    struct failure failure = {0};
    struct text answer cleanup(text_clear);
    text_init(&answer, ANSWER_MAX);
    int status = text_append_character(&answer, '=');
    if (status == 0)
        status = kernel_order(kernel, count, words, &answer, &failure);
    if (status < 0) {
        text_reset(&answer);
        if (text_printf(&answer, "!%s", failure.text) < 0)
            return false;
    }
    length = (uint32_t)answer.length;
    return move(control, &length, sizeof length, true) && move(control, answer.bytes, answer.length, true);
}

int kernel_files_ask(int control, int count, const char *const *words, struct text *answer,
                     struct failure *failure) {
    struct text order cleanup(text_clear);
    text_init(&order, ORDER_MAX);
    int status = 0;
    for (int i = 0; status == 0 && i < count; i++)
        status = text_append(&order, words[i], strlen(words[i]) + 1);
    if (status < 0 || count > WORDS_MAX)
        return failure_set(failure, -E2BIG, "the order is too long");
    uint32_t length = (uint32_t)order.length;
    if (!move(control, &length, sizeof length, true) || !move(control, order.bytes, order.length, true) ||
        !move(control, &length, sizeof length, false) || length == 0 || length > ANSWER_MAX)
        return failure_set(failure, -EIO, "the process behind the node's files does not answer");
    cleanup_free char *bytes = calloc(1, length + 1);
    if (bytes == NULL)
        return failure_memory(failure);
    if (!move(control, bytes, length, false))
        return failure_set(failure, -EIO, "the process behind the node's files does not answer");
    if (bytes[0] != '=')
        return failure_set(failure, -EIO, "%s", bytes + 1);
    return text_append(answer, bytes + 1, length - 1) < 0
               ? failure_set(failure, -EFBIG, "the answer is too long")
               : 0;
}

/* ---- The process */

static void serve(struct kernel *kernel, int descriptor, int control) __attribute__((noreturn));
static void serve(struct kernel *kernel, int descriptor, int control) {
    static _Alignas(struct fuse_in_header) char request[REQUEST_SIZE];
    for (;;) {
        struct pollfd waits[2] = {{.fd = descriptor, .events = POLLIN}, {.fd = control, .events = POLLIN}};
        if (poll(waits, 2, -1) < 0)
            continue;
        if (waits[1].revents != 0 && !take_order(kernel, control))
            _exit(0);
        if (waits[0].revents == 0)
            continue;
        ssize_t length = read(descriptor, request, sizeof request);
        if (length < 0 && errno == ENODEV) /* nothing has it mounted any more */
            _exit(0);
        if (length < 0 && errno == EPERM) /* not mounted yet */
            usleep(500);
        if (length < (ssize_t)sizeof(struct fuse_in_header))
            continue; /* whoever asked has gone */
        const struct question question = {.kernel = kernel,
                                          .descriptor = descriptor,
                                          .header = (const struct fuse_in_header *)request,
                                          .body = request + sizeof(struct fuse_in_header),
                                          .length = (size_t)length - sizeof(struct fuse_in_header)};
        answer_question(&question);
    }
}

static void become_server(struct kernel *kernel, int descriptor, int control, pid_t node)
    __attribute__((noreturn));
static void become_server(struct kernel *kernel, int descriptor, int control, pid_t node) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "bed-kernel");
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* Nothing of the keeper's is left open: its lock and its sockets end with it. */
    unsigned low = (unsigned)(descriptor < control ? descriptor : control);
    unsigned high = (unsigned)(descriptor < control ? control : descriptor);
    if (low > 3)
        close_range(3, low - 1, 0);
    if (high > low + 1)
        close_range(low + 1, high - 1, 0);
    close_range(high + 1, ~0U, 0);
    kernel->heat.node = node;
    clock_gettime(CLOCK_MONOTONIC, &kernel->heat.last);
    serve(kernel, descriptor, control);
}

int kernel_files_start(struct kernel *kernel, int descriptor, pid_t node, pid_t *ret, int *ret_control,
                       struct failure *failure) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
        return failure_set(failure, -errno, "cannot make a socket: %s", strerror(errno));
    struct timeval wait = {.tv_sec = ASK_WAIT_S};
    setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    pid_t process = fork();
    if (process == 0)
        become_server(kernel, descriptor, sockets[1], node);
    close(sockets[1]);
    if (process < 0) {
        close(sockets[0]);
        return failure_set(failure, -errno, "cannot fork: %s", strerror(errno));
    }
    *ret = process;
    *ret_control = sockets[0];
    return 0;
}

int kernel_files_open(struct failure *failure) {
    int descriptor = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (descriptor < 0)
        return failure_set(failure, -errno, "cannot open '/dev/fuse': %s", strerror(errno));
    return descriptor;
}

int kernel_files_mount(int descriptor, const char *folder, struct failure *failure) {
    char options[128];
    snprintf(options, sizeof options,
             "fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other,default_permissions", descriptor);
    if (mount("kernel-files", folder, "fuse", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) < 0)
        return failure_set(failure, -errno, "cannot mount FUSE on '%s': %s", folder, strerror(errno));
    return 0;
}

int kernel_files_try(const char *folder, struct failure *failure) {
    cleanup_close int descriptor = kernel_files_open(failure);
    int status = descriptor < 0 ? descriptor : kernel_files_mount(descriptor, folder, failure);
    if (status == 0)
        umount2(folder, MNT_DETACH);
    return status;
}
