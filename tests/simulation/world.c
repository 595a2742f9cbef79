#include "tests/simulation/world.h"

#include "engine/agent/serve/spawn.h"
#include "engine/event-loop/event-source.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "tests/simulation/virtual-clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TURNS_MAX = 100000 }; /* at one instant */

struct world world;
struct counters counters;

bool world_read_seeds(int count, char **arguments, uint64_t *first, uint64_t *seeds) {
    for (int i = 1; i < count; i += 2) {
        uint64_t *value = strcmp(arguments[i], "--count") == 0 ? seeds : first;
        world.trace |= strcmp(arguments[i], "--seed") == 0;
        if (i + 1 == count || (value == first && !world.trace && strcmp(arguments[i], "--first") != 0)) {
            fprintf(stderr, "usage: %s [--count N] [--first SEED] | --seed SEED\n",
                    program_invocation_short_name);
            return false;
        }
        *value = strtoull(arguments[i + 1], NULL, 10);
    }
    if (world.trace)
        *seeds = 1;
    return true;
}

/* ---- chance */

static uint64_t next_of(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t draw(uint64_t below) {
    return next_of(&world.state) % below;
}

int64_t draw_time(int64_t from_ns, int64_t to_ns) {
    return from_ns + (int64_t)draw((uint64_t)(to_ns - from_ns) + 1);
}

bool happens(unsigned percent) {
    return draw(100) < percent;
}

/* In place of the kernel's: the link draws its delays from it. */
ssize_t getrandom(void *bytes, size_t size, unsigned flags) {
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)next_of(&world.chance);
    return (ssize_t)size;
}

/* ---- time */

int64_t now(void) {
    return virtual_now_ns;
}

static void print_time(FILE *stream) {
    int64_t ns = now() - VIRTUAL_CLOCK_START;
    fprintf(stream, "%9.3f  ", (double)ns / 1e9);
}

void trace(const char *format, ...) {
    if (!world.trace)
        return;
    va_list arguments;
    print_time(stdout);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

void must(bool holds, const char *format, ...) {
    if (holds)
        return;
    va_list arguments;
    fflush(stdout);
    print_time(stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nseed %" PRIu64 " fails; to see what happened: %s --seed %" PRIu64 "\n", world.seed,
            program_invocation_short_name, world.seed);
    exit(1);
}

struct call {
    struct event_source *source;
    void (*function)(void *context, int64_t argument);
    void *context;
    int64_t argument;
    struct call *next, **link;
};
static struct call *calls;

static void call_free(struct call *call) {
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    event_source_remove(call->source);
    free(call);
}

static void on_call(struct event_source *self, void *context) {
    struct call copy = *(struct call *)context;
    call_free(context);
    copy.function(copy.context, copy.argument);
}

void later(size_t actor, int64_t delay_ns, void (*function)(void *context, int64_t argument), void *context,
           int64_t argument) {
    struct call *call = calloc(1, sizeof *call);
    *call = (struct call){
        .function = function, .context = context, .argument = argument, .next = calls, .link = &calls};
    if (calls)
        calls->link = &call->next;
    calls = call;
    call->source = event_loop_add_timer(world.actors[actor].loop, delay_ns, 0, on_call, call);
}

static void thaw(void *context, int64_t actor) {
    trace("%s %" PRId64 " is thawed", actor == ENGINE ? "the engine" : "agent", actor - FIRST_AGENT);
    world.actors[actor].frozen = false;
    if (actor >= FIRST_AGENT) {
        struct node *node = &world.nodes[actor - FIRST_AGENT];
        if (node->unread)
            node->heard_ns = node->before_ns = now();
        node->unread = false;
    }
}

void freeze(size_t actor, int64_t duration_ns) {
    if (world.actors[actor].frozen)
        return;
    trace("%s %zd freezes for %.3f s", actor == ENGINE ? "the engine" : "agent", (ssize_t)actor - FIRST_AGENT,
          (double)duration_ns / 1e9);
    world.actors[actor].frozen = true;
    later(NETWORK, duration_ns, thaw, NULL, (int64_t)actor);
}

/* ---- who acts */

/* A run turns its own loop. */
static bool may_turn(size_t actor) {
    return !world.actors[actor].frozen && !(actor == ENGINE && world.on_wait);
}

/* Of an agent that is not there nothing is open. */
static bool listens(size_t actor) {
    return may_turn(actor) && (actor < FIRST_AGENT || world.nodes[actor - FIRST_AGENT].there);
}

/* One turn of each who has something to do, in any order. */
static bool turn(void) {
    size_t count = FIRST_AGENT + world.node_count, first = draw(count), step = count % 2 ? 2 : 1;
    struct pollfd ready[FIRST_AGENT + NODES_MAX];
    bool acted = false;
    for (size_t i = 0; i < count; i++)
        ready[i] = (struct pollfd){.fd = listens(i) ? world.actors[i].loop->epoll : -1, .events = POLLIN};
    must(poll(ready, count, 0) >= 0, "the loops cannot be asked");
    for (size_t i = 0; i < count; i++) {
        size_t actor = (first + i * step) % count;
        struct event_loop *loop = world.actors[actor].loop;
        if (!may_turn(actor) ||
            !(ready[actor].revents || !TAILQ_EMPTY(&loop->deferred) || timer_earliest(loop) <= now()))
            continue;
        acted |= event_loop_run_once(loop, 0, NULL) == 1;
        if (actor >= FIRST_AGENT)
            node_look(&world.nodes[actor - FIRST_AGENT]);
    }
    return acted;
}

void world_run(int64_t end_ns, bool (*is_over)(void), void (*at_each_instant)(void)) {
    for (;;) {
        unsigned turns = 0;
        while (turn())
            must(++turns < TURNS_MAX, "time stands still: somebody always has something to do");
        at_each_instant();
        if (now() >= end_ns || (is_over && is_over()))
            return;
        int64_t next = end_ns;
        for (size_t i = 0; i < FIRST_AGENT + world.node_count; i++)
            if (may_turn(i) && timer_earliest(world.actors[i].loop) < next)
                next = timer_earliest(world.actors[i].loop);
        if (next > now())
            virtual_now_ns = next;
    }
}

/* An engine that waits is called again after every turn of the others, or after several; one that is frozen
 * only when it is thawed. */
static void let_others_act(void *context, int64_t deadline_ns) {
    unsigned turns = 0;
    world.on_wait();
    world.others_act = true;
    do {
        if (turn()) {
            must(++turns < TURNS_MAX, "time stands still: somebody always has something to do");
            continue;
        }
        turns = 0;
        int64_t next = world.actors[ENGINE].frozen ? INT64_MAX : deadline_ns;
        for (size_t i = NETWORK; i < FIRST_AGENT + world.node_count; i++)
            if (may_turn(i) && timer_earliest(world.actors[i].loop) < next)
                next = timer_earliest(world.actors[i].loop);
        must(next != INT64_MAX, "the engine waits for what will never happen");
        if (next > now())
            virtual_now_ns = next;
    } while (world.actors[ENGINE].frozen || (turns > 0 && happens(30)));
    world.others_act = false;
}

void world_use_run_clock(void (*on_wait)(void)) {
    static struct clock_source source;
    source = virtual_clock;
    source.pass = let_others_act;
    clock_use(&source);
    world.on_wait = on_wait;
    world.others_act = false;
}

static void say_seed(int number) {
    char line[64];
    int length = snprintf(line, sizeof line, "seed %" PRIu64 " ends by signal %d\n", world.seed, number);
    (void)!write(2, line, (size_t)length);
    signal(number, SIG_DFL);
    raise(number);
}

#ifdef __SANITIZE_ADDRESS__
void __sanitizer_set_death_callback(void (*callback)(void));
static void say_seed_at_death(void) {
    fprintf(stderr, "seed %" PRIu64 "\n", world.seed);
}
#endif

static const char *folder_path;

static pid_t owner; /* of the folder, which its children leave alone */

static void remove_folder(void) {
    if (getpid() == owner && !world.trace)
        (void)file_remove_tree(folder_path, NULL);
}

const char *world_folder(void) {
    return folder_path;
}

/* For a seed. The loops stay, for making them takes long. */
void world_init(void) {
    clock_use(&virtual_clock);
    while (calls)
        call_free(calls);
    virtual_now_ns = VIRTUAL_CLOCK_START;
    for (size_t i = 0; i < FIRST_AGENT + NODES_MAX; i++) {
        if (!world.actors[i].loop)
            world.actors[i].loop = event_loop_new(NULL);
        world.actors[i].frozen = false;
        (void)event_loop_run_once(world.actors[i].loop, 0, NULL); /* looks at the clock */
    }
    memset(world.nodes, 0, sizeof world.nodes);
    memset(world.programs, 0, sizeof world.programs);
    world.node_count = world.program_count = 0;
    world.on_wait = NULL;
    world.freeze_ns = 0;
    world.engine_frozen_ns = 0;
    world.state = world.seed * UINT64_C(0x2545f4914f6cdd1d) + 1;
    world.chance = ~world.state;
    if (!folder_path) {
        static char folder[] = "/dev/shm/assay-simulation-XXXXXX", other[] = "/tmp/assay-simulation-XXXXXX";
        folder_path = mkdtemp(folder) ? folder : mkdtemp(other);
        must(folder_path, "there is no place for files");
        for (int i = 0; i < NODES_MAX; i++) {
            char path[64];
            snprintf(path, sizeof path, "%s/%d", folder_path, i);
            world.directories[i] =
                mkdir(path, 0700) == 0 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
            must(world.directories[i] >= 0, "there is no place for files");
        }
        owner = getpid();
        atexit(remove_folder);
        signal(SIGPIPE, SIG_IGN);
        signal(SIGABRT, say_seed);
        signal(SIGSEGV, say_seed);
#ifdef __SANITIZE_ADDRESS__
        signal(SIGSEGV, SIG_DFL);
        __sanitizer_set_death_callback(say_seed_at_death);
#endif
    }
}

/* ---- in place of engine/agent/serve/spawn.c, but for starting: programs.c and run-world.c do that */

void spawned_init(struct spawned *spawned) {
    *spawned = (struct spawned){.input = -1, .output = -1, .error = -1};
}

void spawned_clear(struct spawned *spawned) {
    cleanup_close_descriptor(&spawned->input);
    cleanup_close_descriptor(&spawned->output);
    cleanup_close_descriptor(&spawned->error);
}

void spawn_allow_descriptors(void) {
}

size_t spawn_widen_pipe(int descriptor, size_t size) {
    return 64 << 10;
}
