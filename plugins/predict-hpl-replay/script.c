/* Scripts: what the processes of a column do in one step, in their order. */
#include "plugins/predict-hpl-replay/state.h"

#include <stdlib.h>

/* Enlarges the array ITEMS of *ROOM elements of SIZE bytes so that it has room for COUNT + 1. Returns it, or
 * ITEMS as they were where there is no memory (`error`). */
static void *make_room(struct replay *replay, void *items, int count, int *room, size_t size) {
    if (count < *room)
        return items;
    int more = count + count / 2 + 8;
    void *ret = realloc(items, (size_t)more * size);
    if (!ret) {
        replay->error = -ENOMEM;
        return items;
    }
    *room = more;
    return ret;
}

/* Appends OPERATION to the draft, for the process in ROW. */
static void append(struct replay *replay, int row, struct operation operation) {
    struct draft *draft = &replay->draft;
    int size = draft->size;
    draft->next = make_room(replay, draft->next, draft->count, &size, sizeof *draft->next);
    draft->items = make_room(replay, draft->items, draft->count, &draft->size, sizeof *draft->items);
    if (replay->error < 0)
        return;
    *(draft->last[row] == NONE ? &draft->first[row] : &draft->next[draft->last[row]]) = draft->count;
    draft->last[row] = draft->count;
    draft->next[draft->count] = NONE;
    draft->items[draft->count++] = operation;
}

/* hpl_sink.kernel: the time of a kernel that depends on its sizes alone is found here, once for all columns.
 */
static void append_kernel(struct hpl_sink *sink, enum hpl_kernel kernel, int from, int to, const int *each,
                          int same, int n, int k) {
    struct replay *replay = sink->context;
    const struct replay_machine *machine = replay->machine;
    for (int row = from; machine->kernel[kernel] && row < to; row++) {
        struct operation operation = {.kind = DO_KERNEL, .what = (uint8_t)kernel};
        uint64_t rank = (uint64_t)hpl_rank(sink->hpl, row, sink->column), number = 0;
        int m = each ? each[row] : same;
        if (is_empty(kernel, m, n, k))
            continue;
        operation.m = m;
        operation.n = n;
        operation.k = k;
        if (machine->is_fixed[kernel]) {
            operation.kind = DO_FIXED;
            machine->kernel[kernel](machine->context, kernel, 1, &rank, &number, &m, n, k, &operation.time);
        }
        append(replay, row, operation);
    }
}

static void write_call(struct operation *ret, const struct hpl_sink *sink, int call, int row, int peer_row,
                       int peer_column, int64_t bytes) {
    ret->kind = DO_CALL;
    ret->what = (uint8_t)call;
    ret->phase = (uint8_t)sink->phase;
    ret->probes = 0;
    ret->peer = call == HPL_WAIT
                    ? 0
                    : hpl_rank(sink->hpl, peer_row, peer_column) - hpl_rank(sink->hpl, row, sink->column);
    ret->bytes = bytes;
}

static void append_call(struct hpl_sink *sink, enum hpl_call call, int row, int peer_row, int peer_column,
                        int64_t bytes) {
    struct operation operation;
    write_call(&operation, sink, (int)call, row, peer_row, peer_column, bytes);
    append(sink->context, row, operation);
}

/* hpl_sink.exchange: one operation of each process. A direction without bytes makes it a Send and a Recv. */
static void append_exchange(struct hpl_sink *sink, int a, int b, int64_t a_to_b, int64_t b_to_a) {
    bool is_both = a_to_b > 0 && b_to_a > 0;
    int rows[] = {a, b};
    int64_t bytes[] = {a_to_b, b_to_a};
    for (int i = 0; i < 2; i++) {
        int call = is_both ? EXCHANGE : bytes[i] > 0 ? HPL_SEND : HPL_RECV;
        int64_t size = bytes[i] > 0 ? bytes[i] : bytes[1 - i];
        if (size > 0)
            append_call(sink, (enum hpl_call)call, rows[i], rows[1 - i], sink->column, size);
    }
}

/* hpl_sink.control: a probe is counted in the operation before it. */
static void append_control(struct hpl_sink *sink, enum hpl_control control, int from, int to, int panel,
                           int columns) {
    struct replay *replay = sink->context;
    const struct draft *draft = &replay->draft;
    for (int row = from; row < to; row++) {
        struct operation *last = draft->last[row] == NONE ? NULL : &draft->items[draft->last[row]];
        if (control == HPL_PROBE && last && last->kind != DO_CONTROL && last->probes < UINT8_MAX)
            last->probes++;
        else
            append(replay, row,
                   (struct operation){
                       .kind = DO_CONTROL, .what = (uint8_t)control, .peer = panel, .columns = columns});
    }
}

/* hpl_sink.call of make_urgent(). */
static void add_urgent(struct hpl_sink *sink, enum hpl_call call, int row, int peer_row, int peer_column,
                       int64_t bytes) {
    struct replay *replay = sink->context;
    struct urgent *urgent = &process_at(replay, row, sink->column)->urgent;
    urgent->items = make_room(replay, urgent->items, urgent->count, &urgent->size, sizeof *urgent->items);
    if (replay->error == 0)
        write_call(&urgent->items[urgent->count++], sink, (int)call, row, peer_row, peer_column, bytes);
}

void make_urgent(struct replay *replay, const struct process *process, int panel) {
    struct hpl_sink sink = {
        .context = replay, .hpl = replay->hpl, .column = process->column, .call = add_urgent};
    hpl_broadcast(&sink, panel, process->row);
}

/* ---- Steps of a column */

/* One user less of SCRIPT; NULL is fine. The last one puts it into the list of unused scripts. */
static void release_script(struct replay *replay, struct script *script) {
    if (!script || --script->users > 0)
        return;
    script->next = replay->unused;
    replay->unused = script;
}

/* The draft as a script, without users. NULL: no memory (`error`). */
static struct script *new_script(struct replay *replay) {
    const struct draft *draft = &replay->draft;
    struct script *script = replay->unused;
    int p = replay->hpl->p, at = 0;
    if (script) {
        replay->unused = script->next;
    } else if (!(script = calloc(1, sizeof *script + (size_t)p * sizeof *script->first))) {
        replay->error = -ENOMEM;
        return NULL;
    }
    script->users = 0;
    script->items =
        make_room(replay, script->items, draft->count + p - 1, &script->size, sizeof *script->items);
    for (int row = 0; replay->error == 0 && row < p; row++) {
        script->first[row] = at;
        for (int from = draft->first[row]; from != NONE; from = draft->next[from])
            script->items[at++] = draft->items[from];
        script->items[at++] = (struct operation){.kind = DO_NEXT};
    }
    return script;
}

/* The script of STEP for COLUMN. That of an update is shared by all columns that update as many local
 * columns. NULL: the column does nothing in STEP, or there is no memory (`error`). */
static struct script *find_script(struct replay *replay, int column, const struct hpl_step *step) {
    const struct hpl *hpl = replay->hpl;
    bool is_shared = step->kind == HPL_STEP_UPDATE && !(hpl->copy_l && column == step->pending % hpl->q);
    struct hpl_sink sink = {.context = replay,
                            .hpl = hpl,
                            .space = replay->space,
                            .column = column,
                            .kernel = append_kernel,
                            .call = append_call,
                            .exchange = append_exchange,
                            .control = append_control};
    int columns = is_shared ? hpl_local_columns(hpl, step->from, step->to, column) : 0;
    struct script *script;
    for (int i = 0; is_shared && i < SCRIPTS_SHARED; i++) {
        script = replay->shared[i];
        if (script && script->columns == columns && script->panel == step->panel &&
            script->pending == step->pending)
            return script;
    }
    replay->draft.count = 0;
    for (int row = 0; row < hpl->p; row++)
        replay->draft.first[row] = replay->draft.last[row] = NONE;
    hpl_emit(&sink, step);
    script = replay->draft.count > 0 ? new_script(replay) : NULL;
    if (!script)
        return NULL;
    script->panel = step->panel;
    script->pending = step->pending;
    script->columns = columns;
    if (is_shared) {
        struct script **place = &replay->shared[replay->made++ % SCRIPTS_SHARED];
        release_script(replay, *place);
        script->users++;
        *place = script;
    }
    return script;
}

/* Appends the script of the next step in which COLUMN does something. False: there is none, or no memory. */
static bool add_step(struct replay *replay, struct column *column) {
    struct hpl_step step;
    struct script *script = NULL;
    int index = (int)(column - replay->columns);
    while (!script && replay->error == 0) {
        if (column->is_done || !hpl_next(replay->hpl, index, &column->position, &step)) {
            column->is_done = true;
            return false;
        }
        script = find_script(replay, index, &step);
    }
    struct script_use *use = calloc(1, sizeof *use);
    if (script)
        script->users++;
    if (!script || !use || replay->error < 0) {
        replay->error = -ENOMEM;
        release_script(replay, script);
        free(use);
        return false;
    }
    use->script = script;
    use->users = replay->hpl->p;
    column->last->next = use;
    column->last = use;
    return true;
}

/* Removes the first script of COLUMN, which all its processes have left. */
static void end_use(struct replay *replay, struct column *column) {
    struct script_use *use = column->first;
    column->first = use->next;
    release_script(replay, use->script);
    free(use);
}

bool next_script(struct replay *replay, struct process *process) {
    struct column *column = &replay->columns[process->column];
    while (process->operation->kind == DO_NEXT) {
        struct script_use *use = process->use;
        if (!use->next && !add_step(replay, column))
            return false;
        process->use = use->next;
        process->operation = &use->next->script->items[use->next->script->first[process->row]];
        if (--use->users == 0)
            end_use(replay, column);
    }
    return true;
}

int scripts_init(struct replay *replay) {
    static const struct operation next = {.kind = DO_NEXT};
    const struct hpl *hpl = replay->hpl;
    replay->draft.first = calloc(2 * (size_t)hpl->p, sizeof *replay->draft.first);
    if (!replay->draft.first)
        return -ENOMEM;
    replay->draft.last = replay->draft.first + hpl->p;
    for (int column = 0; column < hpl->q; column++) {
        struct script_use *use = calloc(1, sizeof *use);
        if (!use)
            return -ENOMEM;
        use->users = hpl->p;
        replay->columns[column].first = replay->columns[column].last = use;
        for (int row = 0; row < hpl->p; row++) {
            struct process *process = process_at(replay, row, column);
            process->row = row;
            process->column = column;
            process->use = use;
            process->operation = &next;
        }
    }
    return 0;
}

void scripts_clear(struct replay *replay) {
    free(replay->draft.items);
    free(replay->draft.next);
    free(replay->draft.first);
    for (int column = 0; replay->columns && column < replay->hpl->q; column++)
        while (replay->columns[column].first)
            end_use(replay, &replay->columns[column]);
    for (int i = 0; i < SCRIPTS_SHARED; i++)
        release_script(replay, replay->shared[i]);
    for (struct script *script = replay->unused, *next; script; script = next) {
        next = script->next;
        free(script->items);
        free(script);
    }
}
