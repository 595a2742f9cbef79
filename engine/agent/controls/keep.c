/* --snapshot-controls: what the machine holds is kept on it before anything is set. */
#include "engine/agent/controls/arguments.h"
#include "engine/agent/controls/restore.h"
#include "engine/agent/controls/shelf.h"
#include "engine/agent/serve/tool.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Fills in what a snapshot says besides the files. */
static int sign(struct snapshot *snapshot, const struct shelf *shelf, const struct control_arguments *given,
                struct failure *failure) {
    snprintf(snapshot->host, sizeof snapshot->host, "%s", shelf->host);
    snprintf(snapshot->boot, sizeof snapshot->boot, "%s", shelf->boot);
    snprintf(snapshot->machine_id, sizeof snapshot->machine_id, "%s", shelf->machine_id);
    snprintf(snapshot->session, sizeof snapshot->session, "%s", given->session ? given->session : "");
    snprintf(snapshot->label, sizeof snapshot->label, "%s", given->label ? given->label : "");
    snapshot->wall_ns = clock_wall_ns();
    if (owner_find(getppid(), &snapshot->owner) < 0)
        return failure_set(failure, -ESRCH, "whoever started this has gone meanwhile");
    return 0;
}

/* What lies there already: 1 if it is our parent's, and is told again; 0 if nothing is in the way now. */
static int take_present(struct shelf *shelf, struct lines *lines, struct failure *failure) {
    cleanup(snapshot_clear) struct snapshot snapshot = {0};
    int r = shelf_load(shelf, &snapshot, failure);
    if (r == -ENOENT || r == -ESTALE)
        return 0;
    if (r < 0)
        return r;
    struct owner parent;
    if (owner_find(getppid(), &parent) == 0 && owner_is(&parent, &snapshot.owner)) {
        snapshot_tell(&snapshot, shelf->path, lines);
        return 1;
    }
    if (owner_is_alive(&snapshot.owner)) {
        snapshot_tell_held(&snapshot, lines);
        return failure_set(failure, -EBUSY, "another agent that is alive has set controls of this machine");
    }
    struct restored restored;
    r = restore_shelf(shelf, &snapshot, lines, &restored, failure);
    if (r < 0)
        text_reset(&lines->text); /* nothing is kept: whoever reads must not take it for done */
    return r;
}

static int make_new(struct shelf *shelf, const struct control_arguments *given, struct lines *lines,
                    struct failure *failure) {
    cleanup(layout_clear) struct layout layout = {0};
    cleanup(snapshot_clear) struct snapshot snapshot = {0};
    if (layout_read(&shelf->machine, &layout) < 0 || snapshot_take(&layout, &snapshot) < 0)
        return failure_memory(failure);
    int r = sign(&snapshot, shelf, given, failure);
    if (r == 0)
        r = shelf_store(shelf, &snapshot, failure);
    if (r == 0)
        snapshot_tell(&snapshot, shelf->path, lines);
    return r;
}

static int keep(struct shelf *shelf, const struct control_arguments *given, struct lines *lines,
                struct failure *failure) {
    int r = take_present(shelf, lines, failure);
    return r == 0 ? make_new(shelf, given, lines, failure) : r;
}

int tool_snapshot_controls(int count, char **arguments) {
    return control_tool(count, arguments, CONTROL_ARGUMENTS_NAMES, SHELF_MAKE, keep);
}
