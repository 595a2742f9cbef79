/* The testbed stands for engine/testbed/hosts.c, and the programs for engine/agent/serve/spawn.c. */
#include "tests/simulation/run-world.h"

#include "engine/agent/machine/tool.h"
#include "engine/agent/serve/spawn.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/testbed/host-settings.h"
#include "tests/machines/machine-tree.h"
#include "tests/simulation/virtual-clock.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct run_world run_world;
struct run_counters *run_counters;

/* ---- machines */

static const char control_file[] = "proc/sys/kernel/numa_balancing", control_value[] = "1\n";

static void write_file(const struct machine_of_run *machine, const char *name, const char *text) {
    cleanup_free char *path = file_join(machine->root, name);
    FILE *file = fopen(path, "w");
    must(file && fputs(text, file) >= 0 && fclose(file) == 0, "'%s' cannot be written", path);
}

void machine_boot(const struct machine_of_run *machine) {
    static unsigned boots;
    char id[64];
    cleanup_free char *kept = file_join(machine->root, "run");
    snprintf(id, sizeof id, "%08x-0000-4000-8000-000000000000\n", ++boots);
    must(file_remove_tree(kept, NULL) == 0, "'%s' cannot be removed", kept);
    write_file(machine, control_file, control_value);
    write_file(machine, "proc/sys/kernel/random/boot_id", id);
}

void machines_make(const char *folder) {
    struct failure failure;
    for (size_t i = 0; i < MACHINES; i++) {
        struct machine_of_run *machine = &run_world.machines[i];
        snprintf(machine->name, sizeof machine->name, "node-%02zu", i + 1);
        snprintf(machine->root, sizeof machine->root, "%s/root-%zu", folder, i);
        must(machine_tree_make("virtual", machine->root, &failure) == 0, "no machine: %s", failure.text);
        machine_boot(machine);
    }
}

void machines_init(void) {
    run_world.part = 0;
    if (!run_world.no_loop)
        run_world.no_loop = world.actors[ENGINE].loop;
    for (size_t i = 0; i < MACHINES; i++) {
        struct machine_of_run *machine = &run_world.machines[i];
        machine->latency_ns = happens(10) ? draw_time(MS, 80 * MS) : draw_time(MS / 50, 3 * MS);
        machine->jitter_ns = draw_time(0, machine->latency_ns);
        machine->window = (size_t)PROTOCOL_ACKNOWLEDGE_BYTES >> draw(3);
    }
}

void machines_check(bool harmed_too) {
    for (size_t i = 0; i < MACHINES; i++) {
        const struct machine_of_run *machine = &run_world.machines[i];
        if (machine->was_harmed && !harmed_too)
            continue;
        cleanup_free char *path = file_join(machine->root, control_file),
                          *kept = file_join(machine->root, "run/assay");
        cleanup(text_clear) struct text text;
        text_init(&text, 4096);
        must(file_read(path, &text, NULL) == 0, "'%s' cannot be read", path);
        must(strcmp(text.bytes, control_value) == 0, "%s of %s is not as it was: %s", control_file,
             machine->name, text.bytes);
        must(!harmed_too || !file_exists(kept), "a snapshot of controls is left on %s", machine->name);
    }
}

void machine_each(size_t machine, void (*function)(struct node *node, int64_t argument), int64_t argument) {
    for (size_t slot = machine; slot < world.node_count; slot += MACHINES)
        function(&world.nodes[slot], argument);
}

static struct machine_of_run *machine_of(const struct node *node) {
    return &run_world.machines[node->number % MACHINES];
}

/* ---- the testbed */

struct testbed {
    const struct testbed_settings *settings;
    size_t first; /* node of this part */
};

static size_t expected_nodes(const struct testbed_settings *settings) {
    return settings->host_count;
}

static size_t spare_nodes(const struct testbed_settings *settings) {
    return settings->hosts.count - settings->host_count;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* As that of hosts. */
static struct agent_link_policy make_policy(int64_t lease) {
    return (struct agent_link_policy){.lease_ns = lease,
                                      .heartbeat_ns = least(AGENT_LINK_HEARTBEAT_NS, lease / 8),
                                      .silence_ns = least(AGENT_LINK_SILENCE_NS, lease / 4)};
}

static int reserve(const struct testbed_settings *settings, const struct testbed_request *request,
                   struct testbed **ret, struct failure *failure) {
    must(run_world.part < PARTS_MAX, "there are more parts than machines were made for");
    struct testbed *testbed = calloc(1, sizeof *testbed);
    *testbed = (struct testbed){.settings = settings, .first = run_world.part++ * MACHINES};
    world.actors[ENGINE].loop = request->loop;
    run_world.lease_ns = llround(settings->access.lease * 1e9);
    for (size_t i = 0; i < MACHINES; i++) {
        struct node *node = &world.nodes[testbed->first + i];
        *node = (struct node){.number = testbed->first + i,
                              .name = run_world.machines[i].name,
                              .root = run_world.machines[i].root,
                              .latency_ns = run_world.machines[i].latency_ns,
                              .jitter_ns = run_world.machines[i].jitter_ns,
                              .window = run_world.machines[i].window,
                              .policy = make_policy(run_world.lease_ns),
                              .refused_until_ns = run_world.machines[i].is_lost ? INT64_MAX : 0,
                              .is_of_run = true};
        if (testbed->first > 0) {
            const struct node *before = node - MACHINES;
            node->stalled_until_ns = before->stalled_until_ns;
            node->refused_until_ns = before->refused_until_ns;
        }
    }
    world.node_count = testbed->first + MACHINES;
    *ret = testbed;
    return 0;
}

static size_t node_count(const struct testbed *testbed) {
    return testbed->settings->host_count;
}

static const char *node_name(const struct testbed *testbed, size_t node) {
    return run_world.machines[node].name;
}

static int connect_node(struct testbed *testbed, size_t node, struct transport **ret,
                        struct failure *failure) {
    *ret = scripted_new(&world.nodes[testbed->first + node]);
    return 0;
}

static struct agent_link_policy policy(const struct testbed *testbed) {
    return make_policy(run_world.lease_ns);
}

static struct testbed_agent agent(const struct testbed *testbed, const struct transport *transport) {
    return (struct testbed_agent){.path = "assay-agent"};
}

static int64_t deadline(const struct testbed *testbed) {
    return 0;
}

static int release(struct testbed *testbed, struct failure *failure) {
    free(testbed);
    return 0;
}

const struct testbed_backend testbed_hosts = {.name = "hosts",
                                              .summary = "simulated machines",
                                              .bind = host_settings_bind,
                                              .free_settings = host_settings_free,
                                              .expected_nodes = expected_nodes,
                                              .spare_nodes = spare_nodes,
                                              .describe = host_settings_describe,
                                              .resolve = host_settings_resolve,
                                              .reserve = reserve,
                                              .node_count = node_count,
                                              .node_name = node_name,
                                              .connect = connect_node,
                                              .policy = policy,
                                              .agent = agent,
                                              .deadline = deadline,
                                              .release = release};

/* ---- programs */

enum { TASKS_MAX = 4096, OUTPUT_MAX = 48 << 10, FIRST_PID = 1000000, IS_GONE = 69 };

struct task {
    struct node *node;
    char *output, *error; /* all of it; printed at the end */
    int out, err, code;
    bool alive, others, killed, stubborn, immortal, hangs, leaves_others;
    struct node *ends;  /* the agent that it waits for; NULL: none */
    int64_t period_ns;  /* of a sampler; 0: it is none */
    unsigned throttled; /* so often, its samples say */
    struct event_source *timer, *end;
    event_child_callback *callback;
    void *context;
};

static struct task tasks[TASKS_MAX];
static size_t task_count;

size_t tasks_alive(void) {
    size_t count = 0;
    for (size_t i = 0; i < task_count; i++)
        count += tasks[i].alive || tasks[i].others;
    return count;
}

unsigned unit_answer(unsigned row, unsigned repetition) {
    return row * 1000 + repetition;
}

static void print(int *pipe, const char *text) {
    if (*pipe >= 0 && text)
        (void)!write(*pipe, text, strlen(text));
}

/* ---- the sampler, of which only one probe is there */

static void print_sample(struct task *task) {
    task->throttled += happens(run_world.habits.throttles);
    if (task->out >= 0)
        dprintf(task->out, "s0,%" PRId64 ",%" PRId64 ",0,0,%u\n", clock_wall_ns(), now(), task->throttled);
    event_source_set_timer(task->timer, task->period_ns - now() % task->period_ns, 0);
}

static int64_t start_sampler(const char *const *words, struct task *task) {
    char header[512];
    snprintf(header, sizeof header,
             "probe\t0\tthrottle\t%s\tpackage-0:1\nmissing\tload\tnot simulated\nbegin\t%" PRId64 "\t%" PRId64
             "\n",
             words[1], clock_wall_ns(), now());
    task->output = strdup(header);
    task->period_ns = strtoll(words[1], NULL, 10);
    return MS;
}

static void end_task(struct task *task, bool killed) {
    trace("a program of %s %s", task->node->name, killed ? "is killed" : "ends");
    if (!killed) {
        print(&task->out, task->output);
        print(&task->err, task->error);
    }
    task->alive = false;
    task->killed = killed;
    task->others = task->leaves_others && !killed;
    cleanup_close_descriptor(&task->out);
    cleanup_close_descriptor(&task->err);
    task->out = task->err = -1;
    event_source_set_timer(task->timer, -1, 0);
    if (task->end)
        event_source_defer(task->end);
}

/* Of assay-agent --end. */
static bool is_waiting(struct task *task) {
    struct node *node = task->ends;
    if (node && node->there)
        agent_leave(&node->agent, NULL);
    return node && node->there;
}

static void on_task_timer(struct event_source *self, void *context) {
    struct task *task = context;
    if (task->hangs)
        return;
    if (task->immortal && task->killed)
        task->end = NULL; /* the agent has given it up */
    if (task->period_ns && task->output) {
        print(&task->out, task->output);
        free(take_pointer(task->output));
    }
    if (task->period_ns)
        print_sample(task);
    else if (is_waiting(task))
        event_source_set_timer(self, 10 * MS, 0);
    else
        end_task(task, task->immortal && task->killed);
}

/* What the agent's program does as a tool is done by a process of its own, at once; how long it seems to take
 * is another matter. */
static int run_tool(tool_function *tool, const char *const *arguments, struct task *task) {
    char *words[64] = {(char *)"--root", (char *)task->node->root};
    int count = 2, status = 0;
    int files[2] = {memfd_create("output", MFD_CLOEXEC), memfd_create("error", MFD_CLOEXEC)};
    for (; *arguments && count < 63; arguments++)
        words[count++] = (char *)*arguments;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        clock_use(&virtual_clock);
        dup2(files[0], 1);
        dup2(files[1], 2);
        int code = tool(count, words);
        fflush(NULL);
        _exit(code);
    }
    must(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status), "a tool does not end");
    for (int i = 0; i < 2; i++) {
        char *text = calloc(1, OUTPUT_MAX);
        must(pread(files[i], text, OUTPUT_MAX, 0) < OUTPUT_MAX, "a tool prints too much");
        *(i ? &task->error : &task->output) = text;
        close(files[i]);
    }
    return WEXITSTATUS(status);
}

/* As one that is stopped, or waits for a disk: it ends when it is killed. */
static void hang_tool(struct task *task) {
    struct machine_of_run *machine = machine_of(task->node);
    if (run_world.habits.tool_hangs == 0 || machine != &run_world.machines[run_world.hanging])
        return;
    task->hangs = happens(run_world.habits.tool_hangs);
    run_world.is_hung |= task->hangs;
    machine->was_harmed |= task->hangs;
    run_counters->tools_hung += task->hangs;
}

static int run_agent_program(const char *const *words, struct task *task) {
    static const struct {
        const char *name;
        tool_function *tool;
    } tools[] = {{"--controls", tool_controls},
                 {"--snapshot-controls", tool_snapshot_controls},
                 {"--set-controls", tool_set_controls},
                 {"--restore-controls", tool_restore_controls}};
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        if (strcmp(words[0], tools[i].name) != 0)
            continue;
        int code = run_tool(tools[i].tool, words + 1, task);
        if (tools[i].tool != tool_restore_controls)
            hang_tool(task);
        task->node->keeps_controls |= i == 1 && code == 0;
        run_counters->controls_set += i == 2 && code == 0;
        return code;
    }
    if (strcmp(words[0], "--end") == 0) {
        uint64_t session = strtoull(words[1], NULL, 16);
        must(session > 0 && session <= world.node_count &&
                 machine_of(&world.nodes[session - 1]) == machine_of(task->node),
             "%s is to end an agent that it does not have", task->node->name);
        task->ends = &world.nodes[session - 1];
        run_counters->old_agents_ended += task->ends->there;
        return task->ends->there ? 0 : IS_GONE;
    }
    /* None of the files that a run keeps of its nodes is there. */
    must(strcmp(words[0], "--pack") == 0, "the agent's program is asked to %s", words[0]);
    hang_tool(task);
    task->error = strdup("assay-agent: cannot read that: No such file or directory\n");
    return 1;
}

/* work ROW REPETITION */
static int64_t run_unit(const char *const *words, struct task *task) {
    const struct habits *habits = &run_world.habits;
    task->output = malloc(32);
    snprintf(task->output, 32, "t=%u\n", unit_answer(number_of(words[1]), number_of(words[2])));
    task->code = happens(habits->fails) ? 3 : 0;
    task->hangs = happens(habits->hangs);
    task->stubborn = happens(habits->is_stubborn);
    task->immortal = happens(habits->is_immortal);
    task->leaves_others = happens(habits->leaves_others);
    run_counters->units_hung += task->hangs;
    trace("%s does row %s, repetition %s%s%s%s%s", task->node->name, words[1], words[2],
          task->code ? ", in vain" : "", task->hangs ? ", and hangs" : "", task->stubborn ? ", stubborn" : "",
          task->immortal ? ", immortal" : "");
    return draw_time(200 * MS, 2 * SECOND);
}

int spawn(const struct protocol_run *run, const struct spawn_folders *folders, struct spawned *ret,
          struct failure *failure) {
    size_t slot = 0;
    while (world.directories[slot] != folders->directory)
        slot++;
    must(task_count < TASKS_MAX, "there are too many programs");
    const char *const *words = (const char *const *)run->arguments;
    struct task *task = &tasks[task_count];
    *task = (struct task){.node = &world.nodes[slot], .out = -1, .err = -1, .alive = true};
    int64_t duration = draw_time(MS, 5 * MS);
    bool samples = words[1] && strcmp(words[1], "--sample") == 0;
    must(task->node->there, "a program is started where no agent is");
    if (strcmp(words[0], "work") == 0 && happens(run_world.habits.is_not_there))
        return failure_set(failure, -ENOENT, "there is no such program");
    if (strcmp(words[0], "work") == 0)
        duration = run_unit(words, task);
    else if (samples)
        duration = start_sampler(words + 2, task);
    else if (strcmp(words[0], "/proc/self/exe") == 0)
        task->code = run_agent_program(words + 1, task);
    else
        must(strcmp(words[0], "true") == 0 || strcmp(words[0], "sh") == 0 || strcmp(words[0], "mkdir") == 0,
             "a program '%s' is started", words[0]);
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    must((run->output != PROTOCOL_MODE_STREAM || pipe2(out, O_CLOEXEC | O_NONBLOCK) == 0) &&
             (run->error != PROTOCOL_MODE_STREAM || pipe2(err, O_CLOEXEC | O_NONBLOCK) == 0),
         "no pipes are left");
    task->out = out[1];
    task->err = err[1];
    *ret = (struct spawned){.pid = FIRST_PID + (pid_t)task_count++,
                            .wall_ns = clock_wall_ns(),
                            .monotonic_ns = now(),
                            .input = -1,
                            .output = out[0],
                            .error = err[0]};
    task->timer = event_loop_add_timer(world.actors[NETWORK].loop, duration, 0, on_task_timer, task);
    return 0;
}

static void on_end(struct event_source *self, void *context) {
    struct task *task = context;
    event_source_remove(self);
    task->end = NULL;
    task->callback(NULL,
                   &(struct event_child_exit){.pid = FIRST_PID + (pid_t)(task - tasks),
                                              .signalled = task->killed,
                                              .code = task->killed ? SIGKILL : task->code},
                   task->context);
}

struct event_source *spawn_watch(struct event_loop *loop, pid_t pid, event_child_callback *callback,
                                 void *context) {
    struct task *task = &tasks[pid - FIRST_PID];
    task->callback = callback;
    task->context = context;
    return task->end = event_loop_add_deferred(loop, on_end, task);
}

int spawn_signal(pid_t pid, int number) {
    struct task *task = &tasks[pid - FIRST_PID];
    if (!task->alive && !task->others)
        return -ESRCH;
    if (number == 0 || (number == SIGTERM && task->stubborn))
        return 0;
    if (task->period_ns && number == SIGTERM) {
        print_sample(task);
        print(&task->out, "cost\t0\t0\t0\t0\t0\t0\n");
        end_task(task, false);
        return 0;
    }
    if (task->alive && task->immortal) { /* the kernel lets go of it later */
        task->killed = true;
        task->hangs = false;
        event_source_set_timer(task->timer, 20 * SECOND, 0);
        return 0;
    }
    task->others = false;
    if (task->alive)
        end_task(task, true);
    return 0;
}

void programs_are_gone(const struct node *node) {
    for (size_t i = 0; i < task_count; i++) {
        if (tasks[i].node != node)
            continue;
        tasks[i].end = NULL; /* the agent has removed it */
        must((!tasks[i].alive || tasks[i].immortal) && !tasks[i].others, "a program outlives the agent of %s",
             node->name);
    }
}
