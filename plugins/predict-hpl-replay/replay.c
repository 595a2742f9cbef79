#include "plugins/predict-hpl-replay/state.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Books the time FROM to UNTIL of RANK: every change of a clock goes through here. WHAT is the kernel, or the
 * phase of messages, of ACTIVITY. *TOTAL is the sum over all processes, s. Returns UNTIL. */
static inline double spend(struct replay *replay, double *total, int rank, enum activity activity, int what,
                           double from, double until) {
    *total += until - from;
    if (replay->trace)
        trace_pass(replay->trace, rank, activity, what, from, until);
    return until;
}

/* TIME of a kernel call, s, as a model gives it: 0 where it is negative or NaN, which is counted. */
static inline double usable_time(struct replay *replay, double time) {
    if (!(time >= 0)) {
        replay->times.unusable_count++;
        time = 0;
    }
    return replay->machine->whole_microseconds ? floor(time * 1e6) / 1e6 : time;
}

static void do_kernel(struct replay *replay, struct process *process, const struct operation *operation) {
    enum hpl_kernel kernel = operation->what;
    uint64_t rank = (uint64_t)rank_of(replay, process), number = process->calls++;
    double time = operation->time;
    replay->times.kernel_count++;
    if (operation->kind == DO_KERNEL)
        replay->machine->kernel[kernel](replay->machine->context, kernel, 1, &rank, &number, &operation->m,
                                        operation->n, operation->k, &time);
    process->now = spend(replay, &replay->times.kernels[kernel], (int)rank, KERNEL, (int)kernel, process->now,
                         process->now + usable_time(replay, time));
}

/* ---- Factorisation of a panel, by recurrence over the clocks of a column's processes */

/* The model of KERNEL in the factorisation of panels, or NULL. */
static replay_kernel *factoring_kernel(const struct replay_machine *machine, enum hpl_kernel kernel) {
    return machine->panel_kernel[kernel] ? machine->panel_kernel[kernel] : machine->kernel[kernel];
}

static void factor_kernel(struct hpl_sink *sink, enum hpl_kernel kernel, int from, int to, const int *each,
                          int same, int n, int k) {
    struct replay *replay = sink->context;
    struct factoring *of = &replay->factoring;
    bool may_be_empty = is_empty(kernel, 0, n, k);
    replay_kernel *find_times = factoring_kernel(replay->machine, kernel);
    if (!find_times || is_empty(kernel, 1, n, k))
        return;
    double total = replay->times.kernels[kernel];
    for (int row = from; !each && row < to; row++)
        of->sizes[row] = same;
    each = each ? each : of->sizes;
    for (int end; from < to; from = end + 1) {
        for (end = from; end < to && (each[end] > 0 || !may_be_empty);)
            end++;
        if (end > from)
            find_times(replay->machine->context, kernel, (size_t)(end - from), of->ranks + from,
                       of->calls + from, each + from, n, k, of->times);
        replay->times.kernel_count += (uint64_t)(end - from);
        for (int row = from; row < end; row++) {
            double now = of->clocks[row];
            of->clocks[row] = spend(replay, &total, (int)of->ranks[row], KERNEL, (int)kernel, now,
                                    now + usable_time(replay, of->times[row - from]));
            of->calls[row]++;
        }
    }
    replay->times.kernels[kernel] = total;
}

/* Moves the clocks of two processes of the column over one exchange of messages. *TOTAL grows by the time of
 * both, s. */
static inline void factor_exchange(struct replay *replay, const struct exchange *costs, double *total) {
    struct factoring *of = &replay->factoring;
    double *a = &of->clocks[costs->rows[0]], *b = &of->clocks[costs->rows[1]];
    double a_sent = *a + costs->send[0], b_sent = *b + costs->send[1], a_ready = a_sent, b_ready = b_sent;
    if (costs->is_rendezvous) {
        a_sent = costs->starts_when_both_are_ready[0] ? later(a_sent, *b) : a_sent;
        b_sent = costs->starts_when_both_are_ready[1] ? later(b_sent, *a) : b_sent;
    }
    double a_got = b_sent + costs->transit[1], b_got = a_sent + costs->transit[0];
    double a_end = later(costs->waits[0] ? later(a_ready, b_got) : a_ready, a_got) + costs->receive[1];
    double b_end = later(costs->waits[1] ? later(b_ready, a_got) : b_ready, b_got) + costs->receive[0];
    int a_rank = (int)of->ranks[costs->rows[0]], b_rank = (int)of->ranks[costs->rows[1]];
    if (replay->trace)
        trace_exchange(replay->trace, a_rank, b_rank, a_got > a_ready, b_got > b_ready);
    if (replay->sensitivities)
        sensitivities_exchange(replay->sensitivities,
                               &(struct sensitivity_exchange){{a_rank, b_rank},
                                                              costs->bytes,
                                                              costs->starts_when_both_are_ready,
                                                              costs->waits,
                                                              costs->send,
                                                              costs->transit,
                                                              costs->receive});
    *a = spend(replay, total, a_rank, MESSAGES, HPL_FACT, *a, a_end);
    *b = spend(replay, total, b_rank, MESSAGES, HPL_FACT, *b, b_end);
}

/* The costs of an exchange between the rows ROWS of the column that send BYTES each, with the cards as they
 * are now. */
static struct exchange find_costs(const struct replay *replay, const int rows[2], const int64_t bytes[2]) {
    const struct network_model *model = replay->machine->network;
    const uint64_t *ranks = replay->factoring.ranks;
    struct exchange ret = {.rows = {rows[0], rows[1]}, .bytes = {bytes[0], bytes[1]}};
    for (int i = 0; i < 2; i++) {
        int source = (int)ranks[rows[i]], target = (int)ranks[rows[1 - i]];
        const struct network_segment *segment = segment_of(replay, source, target, bytes[i]);
        double size = (double)bytes[i];
        bool is_sent = bytes[i] > 0;
        ret.waits[i] = is_sent && size >= model->detached_below;
        ret.starts_when_both_are_ready[i] = ret.waits[i] || (is_sent && size >= model->eager_below);
        ret.is_rendezvous = ret.is_rendezvous || ret.starts_when_both_are_ready[i];
        ret.transit[i] = is_sent ? small_time(replay, source, target, bytes[i]) : -INFINITY;
        if (is_sent && !ret.waits[i]) {
            ret.send[i] = network_cost(segment, NETWORK_SEND, size);
            ret.receive[i] = network_cost(segment, NETWORK_RECV, size);
        }
    }
    return ret;
}

/* hpl_sink.exchange of a factorisation. All searches of a piece have the same exchanges in the same order:
 * the first search finds their costs, later ones use them again. */
static void find_exchange(struct hpl_sink *sink, int a, int b, int64_t a_to_b, int64_t b_to_a) {
    struct replay *replay = sink->context;
    struct factoring *of = &replay->factoring;
    const struct exchange *first = of->exchanges;
    if (of->at == of->exchange_count) {
        if (of->at > 0 && first->rows[0] == a && first->rows[1] == b && first->bytes[0] == a_to_b &&
            first->bytes[1] == b_to_a)
            of->at = 0;
        else
            of->exchanges[of->exchange_count++] =
                find_costs(replay, (const int[]){a, b}, (const int64_t[]){a_to_b, b_to_a});
    }
    factor_exchange(replay, &of->exchanges[of->at++], &replay->times.messages[HPL_FACT]);
    replay->times.message_count += (uint64_t)(a_to_b > 0) + (b_to_a > 0);
}

/* hpl_sink.search: all exchanges of the search for one pivot. */
static void factor_search(struct hpl_sink *sink, int root, int width) {
    struct replay *replay = sink->context;
    struct factoring *of = &replay->factoring;
    if (of->exchange_count == 0) {
        uint64_t before = replay->times.message_count;
        hpl_search(sink, root, width);
        of->messages = replay->times.message_count - before;
        return;
    }
    replay->times.message_count += of->messages;
    double total = replay->times.messages[HPL_FACT];
    for (int i = 0; i < of->exchange_count; i++)
        factor_exchange(replay, &of->exchanges[i], &total);
    replay->times.messages[HPL_FACT] = total;
}

static int factoring_init(struct factoring *of, int p) {
    size_t exchanges = 3 * (size_t)p, rows = (size_t)p; /* of a search, at most */
    for (int bit = 1; bit < p; bit *= 2)
        exchanges += (size_t)p / 2;
    *of = (struct factoring){.clocks = calloc(2 * rows, sizeof *of->clocks),
                             .ranks = calloc(2 * rows, sizeof *of->ranks),
                             .sizes = calloc(rows, sizeof *of->sizes),
                             .exchanges = malloc(exchanges * sizeof *of->exchanges)};
    of->times = of->clocks + p;
    of->calls = of->ranks + p;
    return of->clocks && of->ranks && of->sizes && of->exchanges ? 0 : -ENOMEM;
}

static void factoring_clear(struct factoring *of) {
    free(of->clocks);
    free(of->ranks);
    free(of->sizes);
    free(of->exchanges);
}

/* Moves the clocks of COLUMN's processes over the factorisation of the columns FROM to TO - 1 of PANEL. */
static void factor_piece(struct replay *replay, int column, int panel, int from, int to) {
    struct factoring *of = &replay->factoring;
    for (int row = 0; row < replay->hpl->p; row++) {
        const struct process *process = process_at(replay, row, column);
        of->ranks[row] = (uint64_t)rank_of(replay, process);
        of->clocks[row] = process->now;
        of->calls[row] = process->calls;
    }
    of->exchange_count = of->at = 0;
    replay->factor_sink.column = column;
    hpl_factor(&replay->factor_sink, panel, from, to);
    for (int row = 0; row < replay->hpl->p; row++) {
        process_at(replay, row, column)->now = of->clocks[row];
        process_at(replay, row, column)->calls = of->calls[row];
    }
}

/* ---- Panels that are awaited */

/* PROCESS has found the panel that it awaits, and is about to receive it and send it on. */
static void receive_panel(struct replay *replay, struct process *process) {
    process->latest = process->pending;
    process->pending = NONE;
    make_urgent(replay, process, process->latest);
}

/* Whether MPI_Iprobe, called NOW, finds a message that was sent at VISIBLE. With deferred probing it finds
 * what had come by *PROGRESSED, the time of the call of MPI before it. Sets *PROGRESSED to NOW. */
static inline bool finds(const struct replay *replay, double now, double *progressed, double visible) {
    double until = replay->machine->probe_is_deferred ? *progressed : now;
    *progressed = now;
    return visible <= until;
}

static inline double probe_cost(const struct replay *replay) {
    return replay->machine->probe * (replay->machine->probe_grows ? replay->sleeps : 1);
}

/* Adds the cost of one MPI_Iprobe to the clock of PROCESS. The caller does that after it has looked for a
 * message; for SMPI, before. */
static inline void pay_probe(struct replay *replay, struct process *process) {
    process->now = spend(replay, &replay->times.probing, rank_of(replay, process), PROBING, 0, process->now,
                         process->now + probe_cost(replay));
}

/* Fills `senders` of PROCESS: from whom its pending panel comes, and, where a send waits for its receiver,
 * from whom that process gets it, up to the root or SENDERS. */
static void find_senders(const struct replay *replay, struct process *process) {
    const struct hpl *hpl = replay->hpl;
    const struct network_model *model = replay->machine->network;
    int panel = process->pending, at = process->source, root = hpl_panel_column(hpl, panel);
    int64_t bytes = 8 * (int64_t)hpl_rows_below(hpl, panel, process->row) * hpl_panel_width(hpl, panel);
    double delay = 0;
    process->sender_count = 0;
    for (;;) {
        int column = replay->processes[at].column;
        process->senders[process->sender_count++] = (struct sender){at, delay};
        if (process->sender_count == SENDERS || column == root || (double)bytes < model->detached_below)
            return;
        int before = hpl_rank(hpl, process->row, hpl_ring_source(hpl, panel, column));
        const struct network_segment *segment = segment_of(replay, before, at, bytes);
        delay += segment->latency + (double)bytes / segment->rate;
        at = before;
    }
}

/* Whether the pending panel cannot have been sent by the time of PROCESS, which is ahead of the events: the
 * clock of its sender is later, or the sender has to receive the panel first. Sets `early_until`. */
static bool is_early(const struct replay *replay, struct process *process) {
    if (process->now < process->early_until)
        return true;
    if (process->sender_count == 0)
        find_senders(replay, process);
    for (int i = 0; i < process->sender_count; i++) {
        const struct process *source = &replay->processes[process->senders[i].rank];
        process->early_until =
            later(process->early_until, later(source->now, replay->clock) + process->senders[i].delay);
        if (source->latest >= process->pending)
            break;
    }
    return process->now < process->early_until;
}

/* PROCESS calls MPI_Iprobe for its pending panel. Returns whether the panel is there. *RET_WAIT: not decided
 * yet, because the clock of PROCESS is ahead of the events; an event RESUME will come. */
static bool probe(struct replay *replay, struct process *process, bool *ret_wait) {
    *ret_wait = false;
    if (replay->machine->probe_grows && !process->has_probed)
        pay_probe(replay, process);
    process->has_probed = true;
    int id = find_incoming(replay, process, process->source);
    if (id == NONE && process->now > replay->clock &&
        (replay->machine->probe_grows || !is_early(replay, process))) {
        push(replay, process->now, RESUME, rank_of(replay, process));
        *ret_wait = true;
        return false;
    }
    process->has_probed = false;
    bool is_there = finds(replay, process->now, &process->progressed,
                          id != NONE ? replay->transfers[id].posted : INFINITY);
    replay->sleeps = is_there ? 1 : replay->sleeps + 1;
    if (!replay->machine->probe_grows)
        pay_probe(replay, process);
    return is_there;
}

/* hpl_sink.kernel of hpl_chunk(): collects the kernels in `chunk`. */
static void add_chunk_kernel(struct hpl_sink *sink, enum hpl_kernel kernel, __attribute__((unused)) int from,
                             __attribute__((unused)) int to, __attribute__((unused)) const int *each,
                             int same, int n, int k) {
    struct replay *replay = sink->context;
    if (replay->machine->kernel[kernel] && !is_empty(kernel, same, n, k))
        replay->chunk[replay->chunk_kernels++] = (struct chunk_kernel){kernel, same, n, k};
}

/* Draws the times of the next COUNT chunks of PROCESS: TIMES[kernel of `chunk`][chunk], s. */
static void find_chunk_times(struct replay *replay, const struct process *process, int count,
                             double times[][CHUNKS_AT_ONCE]) {
    const struct replay_machine *machine = replay->machine;
    uint64_t ranks[CHUNKS_AT_ONCE], numbers[CHUNKS_AT_ONCE];
    int sizes[CHUNKS_AT_ONCE], kernels = replay->chunk_kernels;
    for (int i = 0; i < count; i++)
        ranks[i] = (uint64_t)rank_of(replay, process);
    for (int j = 0; j < kernels; j++) {
        const struct chunk_kernel *at = &replay->chunk[j];
        for (int i = 0; i < count; i++) {
            numbers[i] = process->calls + (uint64_t)(i * kernels + j);
            sizes[i] = at->m;
        }
        machine->kernel[at->kernel](machine->context, at->kernel, (size_t)count, ranks, numbers, sizes, at->n,
                                    at->k, times[j]);
    }
}

/* PROCESS updates COUNT chunks of COLUMNS local columns. With HAS_PROBES it probes after each, and stops
 * where a probe finds the panel, which was sent at VISIBLE; then it returns true. */
static bool update_chunks(struct replay *replay, struct process *process, int columns, int count,
                          bool has_probes, double visible) {
    double times[CHUNK_KERNELS_MAX][CHUNKS_AT_ONCE], totals[CHUNK_KERNELS_MAX];
    int rank = rank_of(replay, process), together = FIRST_CHUNKS;
    bool is_found = false;
    replay->chunk_sink.column = process->column;
    replay->chunk_kernels = 0;
    if (count > 0)
        hpl_chunk(&replay->chunk_sink, process->chunk_panel, process->row, columns);
    int kernels = replay->chunk_kernels;
    double cost = probe_cost(replay);
    while (count > 0 && !is_found) {
        double begun = process->now, now = begun, progressed = process->progressed,
               probing = replay->times.probing;
        int drawn = count < together ? count : together, done = 0;
        find_chunk_times(replay, process, drawn, times);
        for (int j = 0; j < kernels; j++)
            totals[j] = replay->times.kernels[replay->chunk[j].kernel];
        for (; done < drawn && !is_found; done++) {
            for (int j = 0; j < kernels; j++)
                now = spend(replay, &totals[j], rank, KERNEL, (int)replay->chunk[j].kernel, now,
                            now + usable_time(replay, times[j][done]));
            if (has_probes) {
                is_found = finds(replay, now, &progressed, visible);
                now = spend(replay, &probing, rank, PROBING, 0, now, now + cost);
            }
        }
        process->now = now;
        process->progressed = progressed;
        replay->times.probing = probing;
        replay->times.kernel_count += (uint64_t)(done * kernels);
        for (int j = 0; j < kernels; j++)
            replay->times.kernels[replay->chunk[j].kernel] = totals[j];
        process->calls += (uint64_t)(done * kernels);
        process->chunk_left -= done * columns;
        count -= done;
        double left = fmax(visible - process->now, 0) / (process->now - begun) * done;
        together = (int)fmin(left + 1 + replay->machine->probe_is_deferred, CHUNKS_AT_ONCE);
    }
    return is_found;
}

/* PROCESS continues its update until a probe finds the pending panel, which was sent at VISIBLE. Where the
 * update ends before, it waits for the panel. */
static void update_until(struct replay *replay, struct process *process, double visible) {
    int nb = replay->hpl->nb;
    bool is_found =
        process->now >= visible && (!replay->machine->probe_is_deferred || process->progressed >= visible);
    if (!is_found)
        is_found = update_chunks(replay, process, nb, process->chunk_left / nb, true, visible);
    if (!is_found && process->chunk_left > 0)
        update_chunks(replay, process, process->chunk_left, 1, true, visible);
    if (process->now < visible) {
        double cost = replay->machine->probe, wait = visible - process->now;
        wait = cost > 0 ? ceil(wait / cost) * cost : wait;
        if (replay->trace)
            trace_wait(replay, process, find_incoming(replay, process, process->source), visible);
        process->now = spend(replay, &replay->times.panel_wait, rank_of(replay, process), PANEL_WAIT, 0,
                             process->now, process->now + wait);
    }
}

void wake_prober(struct replay *replay, int rank, double visible) {
    struct process *process = &replay->processes[rank];
    if (replay->machine->probe_grows || process->pending == NONE ||
        find_incoming(replay, process, process->source) == NONE)
        return;
    update_until(replay, process, visible);
    process->state = READY;
    process->is_probing = true;
    push(replay, fmax(process->now, replay->clock), RESUME, rank);
}

/* HPL_CHUNKS and HPL_FINISH: the update of a process, or its wait for the pending panel. False: it has to
 * wait, or goes on after it has received the panel. */
static bool do_chunks(struct replay *replay, struct process *process, const struct operation *operation) {
    int nb = replay->hpl->nb;
    if (process->state == READY && !process->is_probing) {
        process->chunk_panel = operation->what == HPL_CHUNKS ? operation->peer : NONE;
        process->chunk_left = operation->columns;
    }
    process->state = READY;
    if (process->pending != NONE && !replay->machine->probe_grows) {
        int id = find_incoming(replay, process, process->source);
        if (id == NONE) {
            process->state = IN_CHUNKS;
            return false;
        }
        update_until(replay, process, replay->transfers[id].posted);
        process->is_probing = process->chunk_left > 0;
        receive_panel(replay, process);
        return process->chunk_left == 0;
    }
    while (process->pending != NONE) {
        bool waits;
        if (!process->has_probed && process->chunk_left > 0)
            update_chunks(replay, process, process->chunk_left < nb ? process->chunk_left : nb, 1, false,
                          INFINITY);
        process->is_probing = true;
        bool is_there = probe(replay, process, &waits);
        if (waits)
            return false;
        if (is_there) {
            receive_panel(replay, process);
            process->is_probing = process->chunk_left > 0;
            return process->chunk_left == 0;
        }
    }
    process->is_probing = false;
    if (process->chunk_left > 0)
        update_chunks(replay, process, process->chunk_left, 1, false, INFINITY);
    return true;
}

/* ---- Steps */

/* The next operation of PROCESS: a call for a panel that was found, a probe, or one of its script. NULL: all
 * is done, or there is no memory. */
static inline const struct operation *next_operation(struct replay *replay, struct process *process) {
    static const struct operation probe = {.kind = DO_CONTROL, .what = HPL_PROBE};
    if (process->urgent.head < process->urgent.count)
        return &process->urgent.items[process->urgent.head];
    if (process->probes > 0)
        return &probe;
    if (process->operation->kind == DO_NEXT && !next_script(replay, process))
        return NULL;
    return process->operation;
}

/* Removes the operation that PROCESS has ended. IS_URGENT: it was the first of `urgent`, else one of the
 * script or a probe after it. */
static void advance(struct replay *replay, struct process *process, bool is_urgent) {
    struct urgent *urgent = &process->urgent;
    if (is_urgent) {
        if (++urgent->head == urgent->count)
            urgent->head = urgent->count = 0;
        return;
    }
    process->probes = process->pending == NONE ? 0
                      : process->probes > 0    ? process->probes - 1
                                               : process->operation->probes;
    while (process->probes > 0 && process->now < process->early_until && process->incoming == NONE &&
           !replay->machine->probe_grows) { /* as probe() would */
        finds(replay, process->now, &process->progressed, INFINITY);
        pay_probe(replay, process);
        process->probes--;
    }
    process->operation += process->probes == 0;
}

/* Factors the next COLUMNS_AT_ONCE columns of the panel of COLUMN, and comes back by an event FACTOR at the
 * time of its slowest process, so that small messages find the cards as they are then. After the last columns
 * all processes go on. */
static void factor(struct replay *replay, int column) {
    const struct hpl *hpl = replay->hpl;
    struct column *at = &replay->columns[column];
    bool is_begin = at->factored < 0, is_end = false;
    double last = 0;
    if (!is_begin) {
        int next = at->factored + COLUMNS_AT_ONCE, width = hpl_panel_width(hpl, at->panel);
        is_end = next >= width;
        factor_piece(replay, column, at->panel, at->factored, is_end ? width + 1 : next);
    }
    at->factored = is_begin ? 0 : at->factored + COLUMNS_AT_ONCE;
    for (int row = 0; row < hpl->p; row++) {
        struct process *process = process_at(replay, row, column);
        at->begun = is_begin ? fmin(row > 0 ? at->begun : INFINITY, process->now) : at->begun;
        last = fmax(last, process->now);
        if (is_end) {
            process->state = READY;
            advance(replay, process, false);
            push(replay, fmax(process->now, replay->clock), RESUME, hpl_rank(hpl, row, column));
        }
    }
    if (!is_end) {
        push(replay, last, FACTOR, column);
    } else if (replay->observer && replay->observer->panel_done) {
        int r = replay->observer->panel_done(replay->observer->context, at->panel, at->begun, last);
        r = r == 0 && replay->trace ? replay->trace->error : r;
        r = r == 0 && replay->sensitivities ? replay->sensitivities->error : r;
        replay->error = r < 0 ? r : replay->error;
    }
}

/* PROCESS waits at the broadcast of PANEL, which goes on when all of its row are there. */
static void join_long_broadcast(struct replay *replay, struct process *process, int panel) {
    const struct hpl *hpl = replay->hpl;
    int row = process->row;
    process->state = IN_CALL;
    process->since = process->now;
    if (++replay->rolls.arrived[row] < hpl->q)
        return;
    replay->rolls.arrived[row] = 0;
    long_broadcast(replay, panel, row);
    for (int column = 0; column < hpl->q; column++) {
        struct process *member = process_at(replay, row, column);
        int rank = rank_of(replay, member);
        member->progressed = spend(replay, &replay->times.messages[HPL_BCAST], rank, MESSAGES, HPL_BCAST,
                                   member->since, member->now);
        member->state = READY;
        member->pending = NONE;
        member->latest = panel;
        advance(replay, member, false);
        push(replay, fmax(member->now, replay->clock), RESUME, rank);
    }
}

/* HPL_LAUNCH: the accelerator of PROCESS updates COLUMNS local columns with PANEL, after its other work.
 * PROCESS does not wait. */
static void launch(struct replay *replay, struct process *process, int panel, int columns) {
    double times[CHUNK_KERNELS_MAX][CHUNKS_AT_ONCE];
    replay->chunk_sink.column = process->column;
    replay->chunk_kernels = 0;
    hpl_chunk(&replay->chunk_sink, panel, process->row, columns);
    find_chunk_times(replay, process, 1, times);
    process->calls += (uint64_t)replay->chunk_kernels;
    replay->times.kernel_count += (uint64_t)replay->chunk_kernels;
    process->device = later(process->device, process->now);
    for (int j = 0; j < replay->chunk_kernels; j++)
        process->device += usable_time(replay, times[j][0]);
}

static void report_found(struct replay *replay, const struct process *process, int panel) {
    const struct replay_observer *observer = replay->observer;
    int r = observer && observer->panel_found
                ? observer->panel_found(observer->context, panel, process->now, &replay->times)
                : 0;
    replay->error = r < 0 ? r : replay->error;
}

/* False: PROCESS waits, or was moved on by someone else. */
static bool do_control(struct replay *replay, struct process *process, const struct operation *operation) {
    const struct hpl *hpl = replay->hpl;
    int column = process->column;
    bool waits = false;
    switch ((enum hpl_control)operation->what) {
    case HPL_FACTOR:
        process->state = AT_FACTOR;
        if (++replay->columns[column].arrived == hpl->p) {
            replay->columns[column].arrived = 0;
            replay->columns[column].panel = operation->peer;
            replay->columns[column].factored = NONE;
            factor(replay, column);
        }
        return false;
    case HPL_START:
        if (!process->is_probing) {
            process->pending = operation->peer;
            process->early_until = 0;
            process->sender_count = 0;
        }
        if (!hpl_probes(hpl, operation->peer, column)) {
            if (replay->is_unshared) {
                join_long_broadcast(replay, process, operation->peer);
                return false;
            }
            receive_panel(replay, process);
            return true;
        }
        process->source = hpl_rank(hpl, process->row, hpl_ring_source(hpl, operation->peer, column));
        /* fall through */
    case HPL_PROBE:
        if (process->pending == NONE)
            return true;
        process->is_probing = true;
        if (probe(replay, process, &waits))
            receive_panel(replay, process);
        process->is_probing = waits;
        return !waits;
    case HPL_FINISH:
        if (process->pending != NONE && !do_chunks(replay, process, operation))
            return false;
        report_found(replay, process, operation->peer);
        return true;
    case HPL_LAUNCH:
        launch(replay, process, operation->peer, operation->columns);
        return true;
    case HPL_MARK:
        process->mark = process->device;
        return true;
    case HPL_AWAIT: {
        double until = operation->columns == 1 ? process->mark : process->device;
        process->now = spend(replay, &replay->times.kernels[HPL_DGEMM], rank_of(replay, process), KERNEL,
                             HPL_DGEMM, process->now, later(process->now, until));
        return true;
    }
    default:
        return do_chunks(replay, process, operation);
    }
}

/* RESUME: RANK does its operations until it has to wait for an event. */
static void run(struct replay *replay, int rank) {
    struct process *process = &replay->processes[rank];
    while (replay->error == 0) {
        bool is_urgent = process->urgent.head < process->urgent.count;
        const struct operation *operation = next_operation(replay, process);
        if (!operation) {
            process->state = DONE;
            replay->done++;
            return;
        }
        if (operation->kind == DO_KERNEL || operation->kind == DO_FIXED) {
            do_kernel(replay, process, operation);
        } else if (operation->kind == DO_CALL && do_call(replay, process, operation)) {
            process->progressed = spend(replay, &replay->times.messages[operation->phase], rank, MESSAGES,
                                        operation->phase, process->since, process->now);
        } else if (operation->kind == DO_CALL || !do_control(replay, process, operation)) {
            if (process->state == READY && !process->has_probed && !is_urgent &&
                process->urgent.head < process->urgent.count)
                continue; /* the panel is received first */
            return;
        }
        advance(replay, process, is_urgent);
    }
}

/* Counts the processes of each node, in the same process column and in all: whether they share cards. */
static int count_neighbours(struct replay *replay) {
    const struct hpl *hpl = replay->hpl;
    const int *node_of = replay->machine->node_of;
    int *counts = calloc((size_t)replay->machine->nodes, sizeof *counts);
    if (!counts)
        return -ENOMEM;
    for (int column = 0; column < hpl->q; column++) {
        for (int row = 0; row < hpl->p; row++)
            counts[node_of[hpl_rank(hpl, row, column)]]++;
        for (int row = 0; row < hpl->p; row++)
            process_at(replay, row, column)->neighbours = counts[node_of[hpl_rank(hpl, row, column)]];
        for (int row = 0; row < hpl->p; row++)
            counts[node_of[hpl_rank(hpl, row, column)]] = 0;
    }
    for (int rank = 0; rank < hpl->p * hpl->q; rank++)
        replay->is_unshared = replay->is_unshared && ++counts[node_of[rank]] == 1;
    free(counts);
    return 0;
}

/* Handles events and ends of large messages in the order of their times, until there are none. */
static int simulate(struct replay *replay) {
    static void (*const handlers[])(struct replay *,
                                    int) = {[RESUME] = run, [FLOW_BEGINS] = begin_flow, [FACTOR] = factor};
    int ranks = replay->hpl->p * replay->hpl->q;
    for (int rank = 0; rank < ranks; rank++)
        push(replay, 0, RESUME, rank);
    while (replay->error == 0) {
        double flow = network_next(replay->network);
        double event = replay->events.count > 0 ? replay->events.heap[0].time : INFINITY;
        replay->times.events++;
        if (flow <= event) {
            if (isinf(flow))
                break;
            replay->clock = flow;
            int id = network_finish(replay->network, flow);
            if (replay->sensitivities)
                sensitivities_finish(
                    replay->sensitivities, id, replay->machine->node_of[replay->transfers[id].source],
                    replay->machine->node_of[replay->transfers[id].target],
                    (double)replay->transfers[id].bytes / replay->machine->network->rate, flow);
            finish_transfer(replay, id, flow);
        }
        if (flow > event) {
            struct event next = event_pop(&replay->events), *after = replay->events.heap;
            if (replay->events.count > 0 && event_kind(*after) == RESUME)
                __builtin_prefetch(&replay->processes[event_id(*after)]);
            replay->clock = next.time;
            handlers[event_kind(next)](replay, event_id(next));
        }
        for (int i = 0; i < replay->ready_count; i++)
            run(replay, replay->ready[i]);
        replay->ready_count = 0;
    }
    return replay->error < 0 ? replay->error : replay->done < ranks ? -EDEADLK : 0;
}

int replay_run(const struct hpl *hpl, const struct replay_machine *machine,
               const struct replay_observer *observer, struct replay_times *ret) {
    size_t ranks = (size_t)hpl->p * (size_t)hpl->q;
    struct replay replay = {
        .hpl = hpl,
        .machine = machine,
        .observer = observer,
        .trace = observer ? observer->trace : NULL,
        .transfers = malloc(2 * ranks * sizeof *replay.transfers),
        .transfer_count = (int)ranks,
        .transfer_size = 2 * (int)ranks,
        .sensitivities = observer && observer->trace ? observer->trace->sensitivities : NULL,
        .free_transfer = NONE,
        .has_exchanges = machine->network->detached_below <= LARGE && !(observer && observer->trace),
        .is_unshared = hpl->bcast >= HPL_LONG && machine->network->reverse == 0 &&
                       machine->network->tree.leaf_nodes == 0 && machine->network->detached_below <= LARGE &&
                       !(observer && observer->trace),
        .sleeps = 1};
    struct hpl_space *space = replay.space = hpl_space_new(hpl);
    replay.network = network_new(machine->network, machine->nodes);
    replay.processes = aligned_alloc(CACHE_LINE, ranks * sizeof *replay.processes);
    replay.columns = calloc((size_t)hpl->q, sizeof *replay.columns);
    int r = space && replay.transfers && replay.network && replay.processes && replay.columns ? 0 : -ENOMEM;
    for (size_t i = 0; replay.processes && i < ranks; i++)
        replay.processes[i] = (struct process){.calls = machine->first_call,
                                               .incoming = NONE,
                                               .receive_from = NONE,
                                               .receiving = NONE,
                                               .sending = NONE,
                                               .partner = NONE,
                                               .pending = NONE,
                                               .latest = NONE};
    if (factoring_init(&replay.factoring, hpl->p) < 0 || rolls_init(&replay) < 0 ||
        (r == 0 && scripts_init(&replay) < 0))
        r = -ENOMEM;
    replay.factor_sink =
        (struct hpl_sink){.context = &replay,
                          .hpl = hpl,
                          .space = space,
                          .kernel = factor_kernel,
                          .exchange = find_exchange,
                          .search = factoring_kernel(machine, HPL_DCOPY) ? NULL : factor_search};
    replay.chunk_sink =
        (struct hpl_sink){.context = &replay, .hpl = hpl, .space = space, .kernel = add_chunk_kernel};
    if (r == 0)
        r = count_neighbours(&replay);
    if (r == 0)
        r = simulate(&replay);
    for (size_t i = 0; replay.processes && i < ranks; i++) {
        struct process *process = &replay.processes[i];
        replay.times.time = fmax(replay.times.time, process->now);
        free(process->urgent.items);
    }
    *ret = replay.times;
    factoring_clear(&replay.factoring);
    rolls_clear(&replay);
    scripts_clear(&replay);
    free(replay.processes);
    free(replay.columns);
    free(replay.transfers);
    event_clear(&replay.events);
    network_free(replay.network);
    hpl_space_free(space);
    return r;
}
