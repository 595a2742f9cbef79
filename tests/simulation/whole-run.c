/*
 * Whole runs over many seeds: the engine's run, from its campaign to its sealed archive, on simulated
 * machines that fail, with an engine that is killed and resumes. Each seed has a process of its own.
 *
 *     whole-run [--count N] [--first SEED]      so many seeds, one after the other
 *     whole-run --seed SEED                     one, with a trace; its folder is kept
 */
#include "engine/agent/serve/program.h"
#include "engine/documents/document.h"
#include "engine/event-loop/event-source.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/run/record/status.h"
#include "engine/run/run.h"
#include "tests/simulation/run-world.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPEATS = 2, ROWS_MAX = 5, REPETITIONS_MAX = 3, FAULTS_MAX = 6, MEASURE = 3, PHASES = 9 };

/* What a run, all of its waiting included, may take. */
#define RUN_MAX (3600 * SECOND)
/* In which a run is to measure: times of faults are drawn from it. */
#define MEASURING (30 * SECOND)
/* In which an agent that has its lease over, or that was told to leave, has left. */
#define LEAVING_MAX (60 * SECOND)

static const char *const phases[PHASES] = {"connect", "inspect", "prepare", "measure", "control",
                                           "collect", "restore", "seal",    "release"};

enum fault_kind {
    CUT,
    HALF_CUT,
    STALL,
    REFUSE,
    FREEZE,
    AGENT_DIES,
    POWER_FAILS,
    REBOOT,
    INTERRUPT,
    ENGINE_FREEZES,
    ENGINE_DIES,
    FAULTS
};
static const char *const fault_names[FAULTS] = {"cut",       "half cut",       "stall",       "refuse",
                                                "freeze",    "agent dies",     "power fails", "reboot",
                                                "interrupt", "engine freezes", "engine dies"};

struct fault {
    enum fault_kind kind;
    size_t machine;
    unsigned part, phase;
    int64_t delay_ns;
};

static struct {
    struct fault faults[FAULTS_MAX];
    size_t fault_count;
    unsigned rows, repetitions, parts; /* the last part is left in peace */
    bool aborts;                       /* when a node is lost */
    bool by_core, gate;                /* a node that was throttled measures again */
    bool fails;                        /* may units fail? */
    char folder[96], campaign[128];
    struct installation installation;
    /* of the part that runs */
    bool dies, dies_silently;
    bool is_calm; /* nothing goes wrong but programs */
    bool lease_is_noted;
    bool is_connecting;  /* its phase */
    bool leaves_agents;  /* it says that it ends with an earlier part's on nodes that it had yet to reach */
    unsigned interrupts; /* that were made, or are to come by the clock */
    unsigned syncs_left; /* before it dies, just before or after one; 0: not so */
    int64_t began_ns;
    uint64_t shown; /* units, as done */
    char *run_folder;
    struct text results; /* of before this part */
    sigjmp_buf death;
} story;

/* ---- what goes wrong */

static void cut(struct node *node, int64_t seen) {
    network_cut(node, seen & 1, seen & 2);
}

static void stall(struct node *node, int64_t until_ns) {
    node->stalled_until_ns = until_ns;
}

static void refuse(struct node *node, int64_t until_ns) {
    node->refused_until_ns = until_ns;
    if (happens(70))
        network_cut(node, true, happens(50));
}

static void freeze_agent(struct node *node, int64_t duration_ns) {
    freeze(FIRST_AGENT + node->number, duration_ns);
}

static void die(struct node *node, int64_t is_power) {
    if (is_power) {
        node->keeps_controls = false; /* nobody is there to do it */
        network_cut(node, false, false);
        node->refused_until_ns = is_power;
        node->refusal = -EHOSTUNREACH;
    }
    node_die(node);
}

static void fault_happens(void *context, int64_t argument) {
    const struct fault *fault = context;
    struct machine_of_run *machine = &run_world.machines[fault->machine];
    int64_t duration = happens(50) ? draw_time(MS, 3 * SECOND) : draw_time(MS, 2 * run_world.lease_ns);
    trace("---- %s: %s, %.3f s", machine->name, fault_names[fault->kind], (double)duration / 1e9);
    machine->was_harmed |= fault->kind < INTERRUPT;
    story.is_calm = false;
    switch (fault->kind) {
    case CUT:
        machine_each(fault->machine, cut, 3);
        break;
    case HALF_CUT:
        machine_each(fault->machine, cut, (int64_t)draw(4));
        break;
    case STALL:
        machine_each(fault->machine, stall, now() + duration);
        break;
    case REFUSE:
        machine_each(fault->machine, refuse, now() + duration);
        break;
    case FREEZE:
        machine_each(fault->machine, freeze_agent, duration);
        break;
    case AGENT_DIES:
        machine_each(fault->machine, die, 0);
        break;
    case POWER_FAILS:
    case REBOOT:
        machine->is_lost |= fault->kind == POWER_FAILS;
        machine_each(fault->machine, die, fault->kind == POWER_FAILS ? INT64_MAX : now() + duration);
        machine_boot(machine);
        break;
    case INTERRUPT:
        story.interrupts += world.on_wait != NULL;
        if (world.on_wait)
            kill(getpid(), happens(50) ? SIGTERM : SIGINT);
        break;
    case ENGINE_FREEZES:
        for (size_t i = 0; i < MACHINES; i++)
            run_world.machines[i].was_harmed = true;
        if (world.on_wait)
            freeze(ENGINE, duration);
        break;
    default:
        story.dies = true;
    }
}

static void plan_faults(void) {
    story.fault_count = happens(15) ? 0 : 1 + draw(FAULTS_MAX);
    for (size_t i = 0; i < story.fault_count; i++) {
        struct fault *fault = &story.faults[i];
        unsigned phase = happens(60) ? MEASURE : (unsigned)draw(PHASES);
        *fault =
            (struct fault){.kind = (enum fault_kind)draw(happens(30) ? FAULTS : ENGINE_FREEZES),
                           .machine = draw(happens(80) ? HOSTS : MACHINES),
                           .part = happens(70) ? 1 : 2,
                           .phase = phase,
                           .delay_ns = phase == MEASURE ? draw_time(0, MEASURING) : draw_time(0, 40 * MS)};
    }
}

static void on_event(void *context, const struct run_event *event) {
    if (event->kind == RUN_EVENT_PROGRESS)
        story.shown = event->units_done;
    else if (event->text && event->kind != RUN_EVENT_NODES)
        trace("run: %s", event->text);
    if (event->kind == RUN_EVENT_NOTE)
        story.lease_is_noted |= strncmp(event->text, "'lease' is ", 11) == 0;
    if (event->kind == RUN_EVENT_NOTE)
        story.leaves_agents |= strstr(event->text, "an earlier part left an agent") != NULL;
    /* Before it has a link to them, so that it cannot tell them to restore anything. */
    if (event->kind == RUN_EVENT_NOTE && story.is_connecting)
        story.leaves_agents |= strncmp(event->text, "the reservation ends at ", 24) == 0;
    if (event->kind == RUN_EVENT_PHASE)
        story.is_connecting = strcmp(event->text, "connect") == 0;
    if (event->kind == RUN_EVENT_STARTED)
        story.run_folder = strdup(event->text);
    if (event->kind != RUN_EVENT_PHASE)
        return;
    must(strcmp(event->text, "measure") != 0 || story.lease_is_noted == (run_world.lease_ns < 20 * SECOND),
         "a short lease is not called so");
    /* The agents would do it too, but only as they leave. */
    if (strcmp(event->text, "seal") == 0 && story.interrupts < 2 && !story.leaves_agents)
        machines_check(false);
    for (size_t i = 0; i < story.fault_count; i++)
        if (story.faults[i].part == run_world.part && strcmp(phases[story.faults[i].phase], event->text) == 0)
            later(NETWORK, story.faults[i].delay_ns, fault_happens, &story.faults[i], 0);
}

/* The engine waits, or has written something to the disk: may it live on? */
static void look_at_engine(void) {
    must(now() - story.began_ns < RUN_MAX, "the run does not end");
    if (story.dies)
        siglongjmp(story.death, 1);
}

/* In place of libc's: what an engine has written survives its process, synced or not, but between two steps
 * of a commit it may die. Agents write without that being counted: they act while the engine waits. */
static int sync_and_die(void) {
    if (world.on_wait && !world.others_act && story.syncs_left > 0 && --story.syncs_left == 0)
        siglongjmp(story.death, 1);
    return 0;
}

int fsync(int descriptor) {
    return sync_and_die();
}

int fdatasync(int descriptor) {
    return sync_and_die();
}

/* ---- a part of the run */

/* What the kernel does: what the engine had open in its run's folder is closed, and so its lock is free. */
static void close_files(void) {
    DIR *folder = opendir("/proc/self/fd");
    for (const struct dirent *entry; (entry = readdir(folder));) {
        char path[512] = "";
        int descriptor = (int)number_of(entry->d_name);
        if (readlinkat(dirfd(folder), entry->d_name, path, sizeof path - 1) > 0 &&
            strncmp(path, story.folder, strlen(story.folder)) == 0 && strstr(path, "/runs/"))
            close(descriptor);
    }
    closedir(folder);
}

static void engine_is_dead(void) {
    run_counters->killed++;
    trace("---- the engine is dead%s", story.dies_silently ? ", and so is its machine" : "");
    network_lose_engine(story.dies_silently);
    const struct event_loop *loop = world.actors[ENGINE].loop;
    if (loop != run_world.no_loop)
        close(loop->epoll);
    if (loop != run_world.no_loop && loop->signals >= 0)
        close(loop->signals);
    close_files();
}

/* Nobody is there but the nodes. */
static bool no_agent_is_there(void) {
    for (size_t i = 0; i < world.node_count; i++)
        if (world.nodes[i].there)
            return false;
    return true;
}

static void nothing(void) {
}

static void be_away(int64_t duration_ns) {
    world.actors[ENGINE].loop = run_world.no_loop;
    world.actors[ENGINE].frozen = false;
    world_run(now() + duration_ns, no_agent_is_there, nothing);
}

static bool all_is_well(void) {
    for (size_t i = 0; i < world.node_count; i++)
        if (world.nodes[i].stalled_until_ns > now() || world.nodes[i].refused_until_ns > now() ||
            world.actors[FIRST_AGENT + i].frozen)
            return false;
    return true;
}

/* Returns the run's result; 1 when it was killed. */
static int run_part(const struct run_request *request, struct failure *failure) {
    cleanup(inputs_clear) struct inputs inputs = {0};
    cleanup(campaign_cleanup) struct campaign *campaign = NULL;
    static char *archive;
    struct run_request own = *request;
    bool resumes = story.run_folder;
    int r = resumes ? inputs_read(story.run_folder, &inputs, failure) : 0;
    if (r == 0)
        r = resumes
                ? campaign_read_recorded(story.run_folder, &story.installation, NULL, 0, &campaign, failure)
                : campaign_read(story.campaign, &story.installation, NULL, &campaign, failure);
    must(r == 0, "the campaign cannot be read: %s", failure->text);
    own.campaign = campaign;
    story.dies = story.leaves_agents = story.lease_is_noted = run_world.is_hung = false;
    story.interrupts = request->until_ns > 0;
    story.is_calm = all_is_well();
    story.syncs_left =
        run_world.part + 1 < story.parts && happens(20) ? 1 + (unsigned)draw(happens(50) ? 40 : 400) : 0;
    story.shown = 0;
    story.began_ns = now();
    story.dies_silently = happens(30);
    world_use_run_clock(look_at_engine);
    if (sigsetjmp(story.death, 1) == 0)
        r = resumes ? run_resume(&own, &inputs, &archive, failure) : run_execute(&own, &archive, failure);
    else
        r = 1;
    world.on_wait = NULL;
    if (r == 1) {
        engine_is_dead();
        take_pointer(campaign); /* the dead have no memory to free, and may have been anywhere in it */
        memset(&inputs, 0, sizeof inputs);
    }
    trace("==== part %u: %s", run_world.part, r == 1 ? "killed" : r < 0 ? failure->text : archive);
    return r;
}

/* ---- what must hold */

struct unit_fate {
    unsigned done, missing, attempt;
    bool is_flagged; /* the last attempt */
};

static struct unit_fate units[MACHINES][CORES][ROWS_MAX][REPETITIONS_MAX];
static uint64_t units_done, lines_missing, lines_failed, lines_flagged;

static void read_text(const char *name, struct text *ret) {
    cleanup_free char *path = file_join(story.run_folder, name);
    text_init(ret, 64 << 20);
    must(!file_exists(path) || file_read(path, ret, NULL) == 0, "'%s' cannot be read", path);
}

static struct unit_fate *find_unit(char **fields, size_t node_at) {
    size_t machine = 0, core = story.by_core ? strtoul(fields[node_at + 1], NULL, 10) : 0;
    while (machine < MACHINES && strcmp(run_world.machines[machine].name, fields[node_at]) != 0)
        machine++;
    unsigned long row = strtoul(fields[0], NULL, 10), repetition = strtoul(fields[1], NULL, 10);
    must(machine < MACHINES && core < CORES && row >= 1 && row <= story.rows && repetition >= 1 &&
             repetition <= story.repetitions,
         "there is no unit of row %s, repetition %s on %s, core %s", fields[0], fields[1], fields[node_at],
         fields[node_at + 1]);
    return &units[machine][core][row - 1][repetition - 1];
}

static void take_result(char **fields) {
    struct unit_fate *unit = find_unit(fields, 5);
    unsigned attempt = number_of(fields[4]);
    must(attempt > unit->attempt && (unit->done == 0 || unit->is_flagged),
         "row %s, repetition %s on %s, core %s is there twice", fields[0], fields[1], fields[5], fields[6]);
    units_done += unit->done == 0;
    run_counters->lines_repeated += unit->done > 0;
    unit->done = 1;
    unit->attempt = attempt;
    unit->is_flagged = strcmp(fields[13], "throttle") == 0;
    lines_flagged += fields[13][0] != '\0';
    must(strtoul(fields[10], NULL, 10) == unit_answer(number_of(fields[0]), number_of(fields[1])),
         "row %s, repetition %s has the answer %s", fields[0], fields[1], fields[10]);
}

static void take_missing(char **fields) {
    struct unit_fate *unit = find_unit(fields, 3);
    must(++unit->missing == 1 && !unit->done,
         "row %s, repetition %s on %s, core %s is said to be missing: %s", fields[0], fields[1], fields[3],
         fields[4], fields[5]);
    lines_missing++;
    lines_failed += strcmp(fields[5], "failed") == 0;
}

static void each_line(const char *name, void (*take)(char **fields)) {
    cleanup(text_clear) struct text text;
    read_text(name, &text);
    char *at = text.bytes, *line;
    for (size_t number = 0; at && (line = strsep(&at, "\n")) && *line; number++) {
        char *fields[16] = {0};
        for (size_t i = 0; i < 16 && line; i++)
            fields[i] = strsep(&line, ",");
        if (number > 0)
            take(fields);
    }
}

static const char *text_at(const struct document_node *node, const char *key) {
    const struct document_node *value = document_get(node, key);
    return value && value->text ? value->text : "";
}

/* Of one core: all, that is done or missing; or nothing, when the run did not get so far as to know it. */
static void check_core(size_t machine, size_t core, bool is_complete, bool is_out) {
    unsigned done = 0, known = 0, all = story.rows * story.repetitions;
    for (size_t i = 0; i < ROWS_MAX * REPETITIONS_MAX; i++) {
        const struct unit_fate *unit = &(&units[machine][core][0][0])[i];
        done += unit->done;
        known += unit->done + unit->missing;
        /* An attempt that fails counts, and has no line; and for want of time none more is made. */
        must(!is_complete || !story.gate || story.fails || story.interrupts > 0 || is_out ||
                 run_world.machines[machine].was_harmed || !unit->is_flagged || unit->attempt > REPEATS,
             "a unit of %s is flagged, and was done only %u times", run_world.machines[machine].name,
             unit->attempt);
    }
    must(known == 0 || known == all, "%s, core %zu has %u units that are done or missing, of %u",
         run_world.machines[machine].name, core, known, all);
    must(!is_complete || done == all, "%s, core %zu has done %u of %u units, and the run is complete",
         run_world.machines[machine].name, core, done, all);
}

static void check_nodes(const struct document_node *run, bool is_complete) {
    const struct document_node *nodes = document_get(run, "nodes"), *out = document_get(run, "nodes_out");
    for (size_t i = 0; i < nodes->count; i++) {
        size_t machine = strtoul(nodes->items[i]->text + strlen("node-"), NULL, 10) - 1;
        bool is_out = false, is_replaced = false;
        for (size_t k = 0; out && k < out->count; k++) {
            if (strcmp(text_at(out->items[k], "node"), nodes->items[i]->text) != 0)
                continue;
            is_out = true;
            is_replaced = strcmp(text_at(out->items[k], "replaced"), "true") == 0;
            const char *why = text_at(out->items[k], "why"), *sentence = text_at(out->items[k], "sentence");
            trace("%s is out: %s: %s", nodes->items[i]->text, why, sentence);
            must(strcmp(why, "hung") == 0 || strcmp(why, "replaced") == 0 ||
                     run_world.machines[machine].was_harmed,
                 "%s is out (%s: %s), and nothing was wrong with it", nodes->items[i]->text, why, sentence);
            run_counters->nodes_lost++;
            run_counters->nodes_replaced += is_replaced;
            run_counters->leases_over += strstr(sentence, "lease") != NULL;
        }
        for (size_t core = 0; !is_replaced && core < (story.by_core ? CORES : 1); core++)
            check_core(machine, core, is_complete, is_out);
    }
}

/* What is written about a run that has ended says the same everywhere. */
static void check_records(int result, const struct failure *why) {
    struct document *document = NULL;
    cleanup(run_status_cleanup) struct run_status *status = NULL;
    struct failure failure = {0};
    cleanup_free char *path = file_join(story.run_folder, "run.json");
    memset(units, 0, sizeof units);
    units_done = lines_missing = lines_failed = lines_flagged = 0;
    each_line("results/results.csv", take_result);
    each_line("results/missing.csv", take_missing);
    must(document_read_json(path, &document, &failure) == 0, "%s", failure.text);
    const struct document_node *counts = document_get(document->root, "counts");
    const char *said = text_at(document->root, "status");
    must(strtoull(text_at(counts, "units_done"), NULL, 10) == units_done,
         "run.json has %s units, and results.csv %" PRIu64, text_at(counts, "units_done"), units_done);
    must(strtoull(text_at(counts, "units_failed"), NULL, 10) == lines_failed,
         "run.json has %s units that failed, and missing.csv %" PRIu64, text_at(counts, "units_failed"),
         lines_failed);
    must(strtoull(text_at(counts, "units_flagged"), NULL, 10) == lines_flagged,
         "run.json has %s lines that are flagged, and results.csv %" PRIu64, text_at(counts, "units_flagged"),
         lines_flagged);
    bool is_complete = strcmp(said, "completed") == 0;
    /* Agents are told to leave when all is sealed. */
    must((result == 0) == is_complete || strncmp(why->text, "leaving failed", 14) == 0,
         "the run returns %d and is said to be %s", result, said);
    must(!is_complete || lines_missing == 0, "the run is complete, and %" PRIu64 " units are missing",
         lines_missing);
    check_nodes(document->root, is_complete);
    must(!run_world.is_hung || !story.is_calm || story.aborts || story.fails || strcmp(said, "failed") != 0,
         "a tool that hangs on one node ends the run: %s", why->text);
    must(run_status_read(story.run_folder, &status, &failure) == 0, "%s", failure.text);
    must(strcmp(run_condition_name(status->condition), said) == 0 && status->done == units_done &&
             status->failed == lines_failed,
         "run.json says %s, and the history %s with %" PRIu64 " units done of %" PRIu64, said,
         run_condition_name(status->condition), status->done, units_done);
    run_counters->units += units_done;
    run_counters->units_missing += lines_missing;
    run_counters->units_failed += lines_failed;
    run_counters->completed += is_complete;
    run_counters->partial += strcmp(said, "partial") == 0;
    run_counters->failed += strcmp(said, "failed") == 0;
    run_counters->interrupted += strcmp(said, "interrupted") == 0;
    document_free(document);
}

/* What was shown is on the disk and stays there; of a run that has ended, all of it. */
static void check_kept(bool has_ended) {
    struct text results;
    uint64_t lines = 0;
    size_t kept = story.results.length;
    read_text("results/results.csv", &results);
    must(results.length >= kept && memcmp(results.bytes, story.results.bytes, kept) == 0,
         "results of earlier parts are not as they were");
    for (size_t i = 0; i < results.length; i++) {
        lines += results.bytes[i] == '\n';
        if (i >= kept && results.bytes[i] == '\n' && lines == story.shown + 1)
            kept = i + 1;
    }
    must(story.shown == 0 || lines > story.shown,
         "%" PRIu64 " units were shown as done, and %" PRIu64 " lines are there", story.shown, lines);
    text_clear(&story.results);
    story.results = results;
    if (!has_ended)
        story.results.length = kept;
}

/* ---- one seed */

static void write_campaign(void) {
    bool spares = happens(50), controls = happens(70);
    unsigned lease = 10 + (unsigned)draw(30), seed = (unsigned)draw(1000);
    const char *loss = spares ? "replace" : happens(20) ? "abort" : "continue";
    story.aborts = strcmp(loss, "abort") == 0;
    FILE *file = fopen(story.campaign, "w");
    must(file, "the campaign cannot be written");
    fprintf(file,
            "name: whole\n"
            "experiment:\n"
            "  name: work\n"
            "  factors: {n: {type: integer, minimum: 1, maximum: 100}}\n"
            "  responses: {t: {pattern: '^t=([0-9]+)'}}\n"
            "  run: {command: [work, '{row}', '{repetition}'], placement: %s, timeout: 6 s}\n"
            "testbed: {hosts: 'node-[01-08]'%s, lease: %u s}\n"
            "stop-after-failures: none\n"
            "node-loss: %s\n"
            "design: {factors: {n: {from: 1, to: %u, steps: %u}}, repetitions: %u, seed: %u}\n",
            story.by_core ? "core" : "node", spares ? ", spares: 'node-[09-10]'" : "", lease, loss,
            story.rows, story.rows, story.repetitions, seed);
    if (controls)
        fprintf(file, "controls: {numa-balancing: off, proof: none}\n");
    if (story.gate)
        fprintf(file, "probes: {period: 1 s}\ngates: {all: none, throttle: repeat, repeats: %d}\n", REPEATS);
    else
        fprintf(file, "probes: none\n");
    must(fclose(file) == 0, "the campaign cannot be written");
}

/* Before the last part all is well again, but for what is lost for good. */
static void mend(void) {
    for (size_t i = 0; i < world.node_count; i++) {
        world.nodes[i].stalled_until_ns = 0;
        if (!run_world.machines[i % MACHINES].is_lost)
            world.nodes[i].refused_until_ns = 0;
        world.actors[FIRST_AGENT + i].frozen = false;
    }
    run_world.habits = (struct habits){0};
    story.fault_count = 0;
}

static bool is_begun(void) {
    cleanup_free char *path = story.run_folder ? file_join(story.run_folder, "journal.jsonl") : NULL;
    uint64_t size = 0;
    return path && file_exists(path) && file_size(path, &size, NULL) == 0 && size > 0;
}

static void plan(void) {
    machines_init();
    run_world.habits = (struct habits){.is_stubborn = (unsigned)draw(50)};
    story.fails = happens(30);
    if (story.fails)
        run_world.habits = (struct habits){.fails = (unsigned)draw(20),
                                           .hangs = (unsigned)draw(10),
                                           .is_stubborn = (unsigned)draw(50),
                                           .is_immortal = happens(30),
                                           .is_not_there = (unsigned)draw(5),
                                           .leaves_others = (unsigned)draw(20)};
    story.rows = 2 + (unsigned)draw(ROWS_MAX - 1);
    story.repetitions = 1 + (unsigned)draw(REPETITIONS_MAX);
    story.by_core = happens(50);
    story.gate = happens(25);
    run_world.habits.throttles = (unsigned)draw(20);
    story.parts = 1 + (unsigned)draw(PARTS_MAX);
    text_init(&story.results, 1);
    snprintf(story.campaign, sizeof story.campaign, "%s/campaign.yaml", story.folder);
    write_campaign();
    plan_faults();
    if (world.seed % 6 == 0) {
        run_world.habits.tool_hangs = 40;
        run_world.hanging = world.seed / 6 % HOSTS;
    }
}

static void simulate(void) {
    static const char *const command[] = {"assay", "run", "campaign.yaml", NULL};
    struct run_outcome outcome = {0};
    world_init();
    snprintf(story.folder, sizeof story.folder, "%s/seed-%" PRIu64, world_folder(), world.seed);
    cleanup_free char *runs = file_join(story.folder, "runs");
    must(file_make_folders(runs, NULL) == 0, "'%s' cannot be made", runs);
    plan();
    struct run_request request = {.folder = runs,
                                  .installation = &story.installation,
                                  .observer = {.event = on_event},
                                  .outcome = &outcome,
                                  .command = command};
    struct failure failure = {0};
    int result = 1;
    while (result != 0 && run_world.part < PARTS_MAX) {
        bool is_last = run_world.part + 1 >= story.parts;
        if (is_last)
            mend();
        request.until_ns = happens(is_last ? 20 : 35)
                               ? clock_wall_ns() + draw_time(SECOND, happens(70) ? 30 * SECOND : 90 * SECOND)
                               : 0;
        run_counters->resumed_parts += story.run_folder != NULL;
        failure = (struct failure){0};
        int64_t began_ns = clock_wall_ns();
        result = run_part(&request, &failure);
        if (result == 1 && !is_begun()) {
            story.run_folder = NULL;
            continue;
        }
        if (!story.run_folder)
            break;
        check_kept(result != 1);
        if (result != 1 && request.until_ns >= began_ns + 10 * SECOND && story.is_calm && !run_world.is_hung)
            must(clock_wall_ns() <= request.until_ns, "the run ends %.3f s after its time was up",
                 (double)(clock_wall_ns() - request.until_ns) / 1e9);
        run_counters->deadlines += result != 1 && outcome.reservation_over;
        if (result != 1)
            check_records(result, &failure);
        if (is_last && result != 1)
            break;
        be_away(draw_time(0, 2 * run_world.lease_ns));
    }
    be_away(run_world.lease_ns + LEAVING_MAX);
    must(no_agent_is_there(), "an agent is left over");
    world_run(now() + 30 * SECOND, NULL, nothing); /* the kernel lets go of what no agent could end */
    must(tasks_alive() == 0, "%zu programs are left over", tasks_alive());
    machines_check(true);
    if (!world.trace)
        must(file_remove_tree(story.folder, NULL) == 0, "'%s' cannot be removed", story.folder);
}

#define PRINT(name) printf(" %s %" PRIu64, #name, run_counters->name);
#define HAPPENED(name) &&run_counters->name > 0

int main(int count, char **arguments) {
    uint64_t first = 1, seeds = 100, failed = 0;
    if (!world_read_seeds(count, arguments, &first, &seeds))
        return 2;
    run_counters =
        mmap(NULL, sizeof *run_counters, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(run_counters != MAP_FAILED && installation_init(&story.installation, NULL, NULL, NULL) == 0,
         "there is no memory");
    world_init();
    machines_make(world_folder());
    setlinebuf(stdout);
    (void)program_sha256(); /* takes long, and is known to all children from here on */
    for (world.seed = first; world.seed < first + seeds && failed == 0; world.seed++) {
        int status = 0;
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            simulate();
            fflush(NULL);
            _exit(0);
        }
        must(child > 0 && waitpid(child, &status, 0) == child, "there are no processes");
        failed += status != 0;
        if (status != 0)
            fprintf(stderr, "seed %" PRIu64 " failed: %s %d\n", world.seed,
                    WIFSIGNALED(status) ? "signal" : "status",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    printf("%" PRIu64 " seeds:", seeds);
    RUN_COUNTERS(PRINT)
    putchar('\n');
    if (seeds >= 100 && !(1 RUN_COUNTERS(HAPPENED))) {
        fprintf(stderr, "something never happened\n");
        return 1;
    }
    return failed ? 1 : 0;
}
