#include "engine/foundation/file.h"
#include "engine/run/record/lock.h"
#include "tests/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A file system that cannot lock, when this is an errno: what the room's calls of fcntl meet. */
static int lock_errno;

/* The header may give this another name, fcntl64, and the room's calls too. */
int fcntl(int descriptor, int command, ...) {
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (lock_errno && (command == F_OFD_SETLK || command == F_OFD_GETLK)) {
        errno = lock_errno;
        return -1;
    }
    return (int)syscall(SYS_fcntl, descriptor, command, argument);
}

static const char *path;
static char host[256];

static int set_up(void **state) {
    path = test_path(".lock");
    return gethostname(host, sizeof host - 1);
}

static struct run_lock_owner look(void) {
    struct run_lock_owner owner;
    memset(&owner, 0x55, sizeof owner);
    assert_ok(run_lock_read(test_folder(), &owner, &test_failure));
    return owner;
}

TEST(one_at_a_time) {
    struct run_lock *lock = NULL, *second = NULL;
    struct run_lock_owner owner = look();
    assert_false(owner.held || owner.known);
    assert_false(file_exists(path)); /* looking makes nothing */
    assert_ok(run_lock_take(test_folder(), &lock, &test_failure));
    owner = look();
    assert_true(owner.held && owner.known && owner.pid == getpid());
    assert_string_equal(owner.host, host);
    assert_int_equal(strlen(owner.since), strlen("2026-11-20T10:02:03.123+00:00"));
    assert_int_equal(run_lock_take(test_folder(), &second, &test_failure), -EBUSY);
    assert_null(second);
    assert_int_equal(test_failure.kind, FAILURE_INPUT);
    char expected[1024];
    snprintf(expected, sizeof expected, "process %d on host %s has been working on the run '%s' since %s",
             (int)getpid(), host, test_folder(), owner.since);
    assert_string_equal(test_failure.text, expected);
    run_lock_free(lock);
    owner = look();
    assert_false(owner.held || owner.known);
    assert_ok(run_lock_take(test_folder(), &second, &test_failure));
    run_lock_free(second);
    run_lock_free(NULL);
}

/* Somebody who is killed holds nothing any more, and is still known. */
TEST(the_dead_hold_nothing) {
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct run_lock *lock;
        if (run_lock_take(test_folder(), &lock, NULL) == 0 && write(ready[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    cleanup(run_lock_cleanup) struct run_lock *lock = NULL;
    struct run_lock_owner owner = look();
    assert_true(owner.held && owner.known && owner.pid == child);
    assert_int_equal(run_lock_take(test_folder(), &lock, &test_failure), -EBUSY);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    owner = look();
    assert_true(!owner.held && owner.known && owner.pid == child);
    assert_ok(run_lock_take(test_folder(), &lock, &test_failure));
    owner = look();
    assert_true(owner.held && owner.pid == getpid());
}

/* The lock counts, and not what the file says. */
TEST(the_text_is_anybodys) {
    static const char *const texts[] = {"",
                                        "\n",
                                        "host",
                                        "host 1",
                                        "host 1 now",
                                        "host x now\n",
                                        "host 0 now\n",
                                        "host -1 now\n",
                                        "h\nt 1 now\n",
                                        "host 1 2026-11-20T10:02:03.123+00:00-and-very-much-more\n",
                                        "\033[2J 1 now\n",
                                        "host 1 now more\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        test_put(".lock", texts[i]);
        struct run_lock_owner owner = look();
        assert_false(owner.held || owner.known);
    }
    char much[4096];
    memset(much, 'x', sizeof much);
    assert_int_equal(file_replace(path, much, sizeof much, 0600, NULL), 0);
    assert_false(look().known);
    test_put(".lock", "host 1 now\n");
    struct run_lock_owner owner = look();
    assert_true(owner.known && !owner.held && owner.pid == 1);
    assert_string_equal(owner.host, "host");
    struct run_lock *lock;
    assert_int_equal(run_lock_take(test_folder(), &lock, NULL), 0);
    assert_true(look().pid == getpid());
    run_lock_free(lock);
}

TEST(what_is_no_file_is_refused) {
    struct run_lock *lock = NULL;
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(run_lock_take(test_folder(), &lock, &test_failure), -EINVAL);
    assert_false(look().held);
    unlink(path);
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_int_equal(run_lock_take(test_folder(), &lock, &test_failure), -ELOOP);
    unlink(path);
    assert_int_equal(run_lock_take("/nowhere/at/all", &lock, &test_failure), -ENOENT);
    assert_null(lock);
}

/* In the file that may be locked: closing it leaves that lock. */
static void write_owner(const char *of_host, int pid) {
    FILE *file = fopen(path, "w");
    fprintf(file, "%s %d 2026-11-20T10:02:03.123+00:00\n", of_host, pid);
    fclose(file);
}

/* Then the text is all there is. */
TEST(without_locks_the_text_counts) {
    struct run_lock *lock = NULL, *second = NULL;
    pid_t gone = fork();
    if (gone == 0)
        _exit(0);
    assert_int_equal(waitpid(gone, NULL, 0), gone);
    unlink(path);
    lock_errno = ENOSYS;
    assert_ok(run_lock_take(test_folder(), &lock, &test_failure));
    assert_true(look().held);
    assert_error(run_lock_take(test_folder(), &second, &test_failure), -EBUSY,
                 "if the process has ended, remove '");
    run_lock_free(lock);
    assert_false(look().held);
    write_owner(host, (int)gone);
    assert_false(look().held);
    write_owner("another-host", (int)gone);
    assert_true(look().held);
    assert_int_equal(run_lock_take(test_folder(), &second, &test_failure), -EBUSY);
    write_owner(host, (int)gone);
    assert_ok(run_lock_take(test_folder(), &lock, &test_failure));
    run_lock_free(lock);
    lock_errno = EIO;
    assert_int_equal(run_lock_take(test_folder(), &second, &test_failure), -EIO);
    lock_errno = 0;
    assert_null(second);
    unlink(path);
}

/* ---- Signals ----------------------------------------------------------------------------------- */

static volatile sig_atomic_t signalled;

static void on_signal(int number) {
    signalled = number;
}

/* Only who has the lock is signalled: not who has its number, not one of another host, nobody who is gone. */
TEST(its_owner_is_signalled) {
    struct run_lock *lock = NULL;
    struct run_lock_owner owner;
    signal(SIGUSR1, on_signal);
    unlink(path);
    assert_int_equal(run_lock_signal(test_folder(), SIGUSR1, &owner, &test_failure), -ESRCH);
    write_owner(host, (int)getpid()); /* of an engine that died, whose number we have now */
    assert_int_equal(run_lock_signal(test_folder(), SIGUSR1, &owner, &test_failure), -ESRCH);
    assert_ok(run_lock_take(test_folder(), &lock, &test_failure));
    assert_ok(run_lock_signal(test_folder(), SIGUSR1, &owner, &test_failure));
    assert_int_equal(owner.pid, getpid());
    assert_int_equal(signalled, SIGUSR1);
    signalled = 0;
    write_owner(host, (int)getppid()); /* which has not opened the file */
    assert_int_equal(run_lock_signal(test_folder(), 0, &owner, &test_failure), -ESRCH);
    write_owner("another-host", (int)getpid());
    assert_error(run_lock_signal(test_folder(), SIGUSR1, &owner, &test_failure), -EREMOTE,
                 "on host another-host works on the run");
    assert_int_equal(signalled, 0);
    run_lock_free(lock);
    assert_int_equal(run_lock_signal(test_folder(), SIGUSR1, &owner, &test_failure), -ESRCH);
    unlink(path);
}

TEST_GROUP(set_up, NULL)
