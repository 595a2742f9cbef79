/* The parts of the controls that need no machine: lines, frequencies, snapshots as bytes. */
#include "engine/agent/controls/hertz.h"
#include "engine/agent/controls/lines.h"
#include "engine/agent/controls/snapshot.h"
#include "engine/agent/files/sha256.h"
#include "engine/agent/machine/process.h"
#include "tests/test.h"

#include <sys/wait.h>
#include <unistd.h>

/* ---- lines */

TEST(fields_go_and_come) {
    static const char *const fields[] = {"", "plain", "a\tb", "a\nb\n", "\\", "\\t", "\\\\n\t\n", "\xff\x01"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        struct lines lines;
        size_t length;
        lines_init(&lines, 1024);
        lines_put(&lines, fields[i], "next", NULL);
        assert_int_equal(lines.error, 0);
        char *at = lines.text.bytes, *end = lines.text.bytes + lines.text.length - 1;
        assert_ptr_equal(strpbrk(at, "\n"), end);
        assert_string_equal(lines_read_field(&at, end, &length), fields[i]);
        assert_int_equal(length, strlen(fields[i]));
        assert_string_equal(lines_read_field(&at, end, &length), "next");
        assert_null(at);
        assert_null(lines_read_field(&at, end, &length));
        lines_clear(&lines);
    }
    static const char *const bad[] = {"\\", "a\\", "\\x", "a\\\tb", "a\nb"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char copy[16], *at = copy;
        size_t length;
        snprintf(copy, sizeof copy, "%s", bad[i]);
        assert_null(lines_read_field(&at, copy + strlen(copy), &length));
    }
    char nothing[] = "a\0b", *at = nothing;
    size_t length;
    assert_null(lines_read_field(&at, nothing + 3, &length));
}

TEST(errors_have_names) {
    char buffer[16];
    assert_string_equal(lines_errno(0, buffer), "");
    assert_string_equal(lines_errno(-EBUSY, buffer), "EBUSY");
    assert_string_equal(lines_errno(-EACCES, buffer), "EACCES");
    assert_string_equal(lines_errno(-4000, buffer), "4000");
}

/* ---- frequencies */

TEST(frequencies_are_read_and_written) {
    static const struct {
        const char *text;
        uint64_t khz;
        const char *again;
    } good[] = {
        {"2.1GHz", 2100000, "2.1GHz"},
        {"2100MHz", 2100000, "2.1GHz"},
        {"2100000kHz", 2100000, "2.1GHz"},
        {"2100000000Hz", 2100000, "2.1GHz"},
        {"2.101 GHz", 2101000, "2.101GHz"},
        {"800MHz", 800000, "800MHz"},
        {"1.2e3MHz", 1200000, "1.2GHz"},
        {"24kHz", 24, "24kHz"},
        {"2.10000049GHz", 2100000, "2.1GHz"},
        {"3.333333GHz", 3333333, "3.333333GHz"},
        {"0GHz", 0, "unknown"},
        {"2.1ghz", 2100000, "2.1GHz"},
    };
    static const char *const bad[] = {"",       "GHz",    "2.1",     "2.1THz",  "-1GHz",
                                      "nanGHz", "infGHz", "1e30GHz", "2,1GHz",  "2.1 GHzx",
                                      "0x2GHz", " GHz",   "2.1GHz ", "1GHz1GHz"};
    char text[HERTZ_TEXT_SIZE];
    uint64_t khz;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(hertz_parse(good[i].text, strlen(good[i].text), &khz), 0);
        assert_int_equal(khz, good[i].khz);
        assert_string_equal(hertz_format(khz, text), good[i].again);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(hertz_parse(bad[i], strlen(bad[i]), &khz), -EINVAL);
    char range[HERTZ_RANGE_SIZE];
    assert_string_equal(hertz_format_range(800000, 3500000, range), "800MHz..3.5GHz");
    assert_string_equal(hertz_format_range(800000, 800000, range), "800MHz");
}

/* ---- snapshots */

static void add(struct snapshot *snapshot, enum control_index control, const char *path,
                const char *content) {
    snapshot->files = realloc(snapshot->files, (snapshot->count + 1) * sizeof *snapshot->files);
    snapshot->files[snapshot->count++] = (struct saved_file){.control = control,
                                                             .late = snapshot->count % 2,
                                                             .path = strdup(path),
                                                             .content = strdup(content),
                                                             .length = strlen(content)};
}

static struct snapshot example(void) {
    struct snapshot snapshot = {.boot = "11111111-2222-3333-4444-555555555555",
                                .owner = {.pid = 4321, .start = UINT64_MAX, .namespace = 4026531836},
                                .session = "0123456789abcdef",
                                .label = "somebody@somewhere",
                                .wall_ns = INT64_C(1795311195604050976),
                                .touched = 1u << CONTROL_TURBO | 1u << CONTROL_DAEMONS,
                                .daemons = {DAEMON_RUNNING, DAEMON_ABSENT, DAEMON_STOPPED, DAEMON_UNKNOWN}};
    add(&snapshot, CONTROL_TURBO, "sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
    add(&snapshot, CONTROL_TRANSPARENT_HUGE_PAGES, "sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n");
    add(&snapshot, CONTROL_NUMA_BALANCING, "proc/sys/kernel/numa_balancing", "");
    add(&snapshot, CONTROL_GOVERNOR, "sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
        "a\tb\\c\n\n d");
    return snapshot;
}

TEST(snapshots_go_and_come) {
    struct snapshot snapshot = example(), again;
    struct lines first, second;
    lines_init(&first, 1 << 20);
    lines_init(&second, 1 << 20);
    snapshot_format(&snapshot, &first);
    assert_int_equal(first.error, 0);
    const struct text bytes = first.text;
    cleanup_free char *copy = strdup(bytes.bytes);
    assert_int_equal(snapshot_parse(copy, bytes.length, &again, &test_failure), 0);
    snapshot_format(&again, &second);
    assert_string_equal(bytes.bytes, second.text.bytes);
    assert_string_equal(again.files[3].content, "a\tb\\c\n\n d");
    assert_int_equal(again.touched, snapshot.touched);
    assert_true(owner_is(&again.owner, &snapshot.owner));
    snapshot_clear(&again);
    /* Any one byte less, or another, and it is none. */
    for (size_t length = 0; length < bytes.length; length++) {
        memcpy(copy, bytes.bytes, bytes.length);
        assert_int_equal(snapshot_parse(copy, length, &again, &test_failure), -EBADMSG);
        memcpy(copy, bytes.bytes, bytes.length);
        copy[length] ^= 0x20;
        assert_int_equal(snapshot_parse(copy, bytes.length, &again, &test_failure), -EBADMSG);
    }
    lines_clear(&first);
    lines_clear(&second);
    snapshot_clear(&snapshot);
}

/* With a checksum that is right. */
static int parse_lines(const char *lines) {
    struct sha256 hash;
    unsigned char digest[SHA256_SIZE];
    struct snapshot snapshot;
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 20);
    assert_int_equal(text_printf(&text, "assay-controls\t3\n%s", lines), 0);
    sha256_init(&hash);
    sha256_add(&hash, text.bytes, text.length);
    sha256_end(&hash, digest);
    assert_int_equal(text_append_string(&text, "end\t"), 0);
    for (size_t i = 0; i < sizeof digest; i++)
        assert_int_equal(text_printf(&text, "%02x", digest[i]), 0);
    assert_int_equal(text_append_string(&text, "\n"), 0);
    int r = snapshot_parse(text.bytes, text.length, &snapshot, &test_failure);
    if (r == 0)
        snapshot_clear(&snapshot);
    return r;
}

TEST(strange_snapshots_are_refused) {
    static const char *const good[] = {
        "",
        "file\tturbo\tsys/devices/system/cpu/intel_pstate/no_turbo\t0\\n\n",
        "late\taslr\tproc/sys/kernel/randomize_va_space\t\n",
        "touched\tturbo\n",
        "daemon\ttuned\trunning\n",
        "owner\t1\t2\t3\t\t\t4\n",
        "boot\t0123\n",
    };
    static const char *const bad[] = {
        "\n",
        "what\n",
        "file\tturbo\n",
        "file\tturbo\tetc/passwd\tx\n",
        "file\tturbo\t/sys/devices/system/cpu/intel_pstate/no_turbo\t0\n",
        "file\tturbo\tsys/devices/system/cpu/../../../../etc/passwd\tx\n",
        "file\tturbo\tsys/devices/system/cpu/./no_turbo\tx\n",
        "file\tturbo\tproc/sys/vm/swappiness\tx\n",
        "file\tboost\tsys/devices/system/cpu/intel_pstate/no_turbo\t0\n",
        "file\tturbo\tsys/devices/system/cpu/intel_pstate/no_turbo\t0\t1\n",
        "file\tturbo\tsys/devices/system/cpu/intel_pstate/no_turbo\t\\x\n",
        "touched\teverything\n",
        "touched\n",
        "daemon\tsshd\trunning\n",
        "daemon\ttuned\tdead\n",
        "owner\t-1\t2\t3\t\t\t4\n",
        "owner\t1\t-2\t3\t\t\t4\n",
        "owner\t1\t2\t3\txyz\t\t4\n",
        "owner\t1\t2\t3\t\ttwo words\t4\n",
        "owner\t99999999999\t2\t3\t\t\t4\n",
        "owner\t1\t2\t3\t\t\n",
        "boot\n",
        "boot\tone\ttwo\n",
        "a\tb\tc\td\te\tf\tg\th\n",
        "touched\tturbo",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(parse_lines(good[i]), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(parse_lines(bad[i]), -EBADMSG);
}

/* ---- owners */

TEST(owners_are_known_again) {
    struct owner me, again, child;
    assert_int_equal(owner_find(getpid(), &me), 0);
    assert_int_equal(owner_find(getpid(), &again), 0);
    assert_true(owner_is(&me, &again) && owner_is_alive(&me) && me.start > 0);
    again.start++;
    assert_false(owner_is_alive(&again));
    again.namespace ++; /* a container's: nothing here says whether it runs */
    assert_true(owner_is_alive(&again) && !owner_is(&again, &me));
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    assert_int_equal(owner_find(pid, &child), 0);
    assert_true(owner_is_alive(&child));
    kill(pid, SIGKILL);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_false(owner_is_alive(&child)); /* dead, and still to be reaped */
    waitpid(pid, NULL, 0);
    assert_false(owner_is_alive(&child));
    assert_int_equal(owner_find(0, &child), -ESRCH);
    assert_int_equal(owner_find(-1, &child), -ESRCH);
}

/* ---- the table */

TEST(controls_that_change_along) {
    assert_int_equal(control_closure(0), 0);
    assert_int_equal(control_closure(1u << CONTROL_ASLR), 1u << CONTROL_ASLR);
    unsigned threads = control_closure(1u << CONTROL_HYPERTHREADS);
    assert_true(threads >> CONTROL_TURBO & 1); /* by the governor */
    assert_false(threads >> CONTROL_NUMA_BALANCING & 1);
    for (unsigned index = 0; index < CONTROL_COUNT; index++)
        assert_int_equal(control_find(control_at((enum control_index)index)->name), index);
    assert_int_equal(control_find("boost"), CONTROL_COUNT);
}
