/*
 * Makes of a record of disk-faults.c what a folder can hold after a crash at each of its calls:
 *
 *   crash-states RECORD FOLDER
 *
 * A process that is killed loses nothing that it wrote. A machine that loses its power can lose each write to
 * a file that no sync of the file followed, and each name that no sync of its folder followed. So there are,
 * after each call: all of it (kept); what was synced (lost); names without what was not synced (empty), and
 * that without names (nameless); the last write to each file by half, with zeros behind (torn); and, as
 * writes to several files reach the disk in any order, those to one file alone (kept-NAME).
 *
 * Each state that differs from all before it becomes a folder FOLDER/NUMBER and a line on standard output:
 * NUMBER CALL WHAT STARTED UNITS SEALED; the last three are what a run had shown by then. 0 is what the
 * folder holds in the end. Of a record to which several processes have written the states are those of the
 * last.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OBJECTS_MAX = 4096, NAMES_MAX = 256, STATES_MAX = 65536 };
enum { NOW, SYNCED, TORN, VERSIONS };

struct object;
struct names {
    size_t count;
    struct {
        char name[NAME_MAX + 1];
        struct object *object;
    } items[NAMES_MAX];
};
struct object {
    unsigned long inode;
    bool is_folder, is_dirty; /* dirty: written since its last sync */
    char name[NAME_MAX + 1];  /* the last that it got */
    struct {
        char *bytes;
        size_t length;
        uint64_t hash;
    } content[VERSIONS];
    struct names names[TORN]; /* NOW and SYNCED */
};

static struct object *objects[OBJECTS_MAX], *root;
static size_t object_count;
struct shown {
    bool started, sealed;
    unsigned long units;
};
static struct shown shown;
static struct state {
    uint64_t hash;
    unsigned long call;
    char what[NAME_MAX + 8];
    struct shown shown;
} states[STATES_MAX];
static size_t state_count;

static void die(const char *what, const char *name) {
    fprintf(stderr, "crash-states: %s '%s'\n", what, name);
    exit(1);
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length) {
    for (const unsigned char *at = bytes; length > 0; at++, length--)
        hash = (hash ^ *at) * UINT64_C(0x100000001b3); /* FNV-1a */
    return hash;
}

/* ---- What there is --------------------------------------------------------------------------------------
 */

static struct object *find(unsigned long inode) {
    for (size_t i = object_count; i-- > 0;) /* the last: numbers are used again */
        if (objects[i]->inode == inode)
            return objects[i];
    die("a call on what nobody made after", object_count ? objects[object_count - 1]->name : "");
    return NULL;
}

static struct object *make(unsigned long inode, bool is_folder) {
    struct object *object = calloc(1, sizeof *object);
    if (!object || object_count == OBJECTS_MAX)
        die("too much is made in", "the record");
    object->inode = inode;
    object->is_folder = is_folder;
    for (int i = NOW; i < VERSIONS; i++)
        object->content[i].hash = hash_bytes(1, NULL, 0);
    return objects[object_count++] = object;
}

static struct object *unname(struct object *folder, const char *name) {
    struct names *names = &folder->names[NOW];
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i].name, name) == 0) {
            struct object *object = names->items[i].object;
            memmove(&names->items[i], &names->items[i + 1], (--names->count - i) * sizeof names->items[0]);
            return object;
        }
    return NULL;
}

static void name_it(struct object *folder, const char *name, struct object *object) {
    struct names *names = &folder->names[NOW];
    unname(folder, name);
    size_t at = names->count++;
    if (at == NAMES_MAX)
        die("too many names beside", name);
    for (; at > 0 && strcmp(names->items[at - 1].name, name) > 0; at--)
        names->items[at] = names->items[at - 1];
    snprintf(names->items[at].name, sizeof names->items[at].name, "%s", name);
    snprintf(object->name, sizeof object->name, "%s", name);
    names->items[at].object = object;
}

static void resize(struct object *file, int version, size_t length) {
    size_t before = file->content[version].length;
    file->content[version].bytes = realloc(file->content[version].bytes, length + 1);
    if (length > before)
        memset(file->content[version].bytes + before, 0, length - before);
    file->content[version].length = length;
}

static void copy(struct object *file, int to) {
    resize(file, to, file->content[NOW].length);
    if (file->content[NOW].length > 0)
        memcpy(file->content[to].bytes, file->content[NOW].bytes, file->content[NOW].length);
}

static void changed(struct object *file) {
    file->is_dirty = true;
    for (int i = NOW; i < VERSIONS; i++)
        file->content[i].hash = hash_bytes(1, file->content[i].bytes, file->content[i].length);
}

static void cut(struct object *file, size_t length) {
    resize(file, NOW, length);
    copy(file, TORN);
    changed(file);
}

static void put(struct object *file, size_t offset, const char *bytes, size_t length) {
    if (offset + length > file->content[NOW].length)
        resize(file, NOW, offset + length);
    copy(file, TORN); /* where the file grows these are zeros */
    memcpy(file->content[TORN].bytes + offset, bytes, length / 2);
    memcpy(file->content[NOW].bytes + offset, bytes, length);
    changed(file);
}

static void sync_object(struct object *object) {
    object->names[SYNCED] = object->names[NOW];
    copy(object, SYNCED);
    object->content[SYNCED].hash = object->content[NOW].hash;
    object->is_dirty = false;
}

/* ---- States ---------------------------------------------------------------------------------------------
 */

struct loss {
    int names, content;          /* which of it is left: NOW is all */
    const struct object *except; /* whose content is left whole */
};

/* What nobody reads when the run is resumed: states in which nothing but its content differs are one. */
static bool is_unread(const char *name) {
    const char *end = strrchr(name, '.');
    return strcmp(name, "nodes") == 0 || strcmp(name, "engine.log") == 0 ||
           (end && strcmp(end, ".part") == 0);
}

/* The hash of what is left below FOLDER, with CONTENT. With a PATH it is written there, too. */
static uint64_t walk(const struct object *folder, const struct loss *loss, bool content, uint64_t hash,
                     const char *path) {
    const struct names *names = &folder->names[loss->names];
    if (path && mkdir(path, 0755) < 0)
        die("cannot make", path);
    hash = hash_bytes(hash, "(", 1);
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->items[i].name;
        const struct object *object = names->items[i].object;
        char below[PATH_MAX];
        bool read = (content && !is_unread(name)) || strcmp(name, "facts.json") == 0;
        int version = object->is_dirty && object != loss->except ? loss->content : NOW;
        snprintf(below, sizeof below, "%s/%s", path ? path : "", name);
        hash = hash_bytes(hash, name, strlen(name) + 1);
        if (object->is_folder) {
            hash = walk(object, loss, read, hash, path ? below : NULL);
            continue;
        }
        if (read)
            hash = hash_bytes(hash, &object->content[version].hash, sizeof hash);
        FILE *file = path ? fopen(below, "wx") : NULL;
        if (path && (!file ||
                     fwrite(object->content[version].bytes, 1, object->content[version].length, file) !=
                         object->content[version].length ||
                     fclose(file) != 0))
            die("cannot write", below);
    }
    return hash_bytes(hash, ")", 1);
}

static void take(const char *what, const struct loss *loss, unsigned long call, const char *folder) {
    uint64_t hash = walk(root, loss, true, 1, NULL);
    struct state *state = states;
    while (state < states + state_count && state->hash != hash)
        state++;
    if (state == states + state_count) {
        char path[PATH_MAX];
        if (++state_count == STATES_MAX)
            die("too many states in", folder);
        state->hash = hash;
        state->call = call;
        snprintf(state->what, sizeof state->what, "%s%s", what, loss->except ? loss->except->name : "");
        snprintf(path, sizeof path, "%s/%zu", folder, state_count);
        walk(root, loss, true, 1, path);
    }
    state->shown = shown; /* the same state again, after more was shown */
}

static void take_all(unsigned long call, const char *folder) {
    size_t dirty = 0;
    take("kept", &(struct loss){NOW, NOW, NULL}, call, folder);
    take("lost", &(struct loss){SYNCED, SYNCED, NULL}, call, folder);
    take("empty", &(struct loss){NOW, SYNCED, NULL}, call, folder);
    take("nameless", &(struct loss){SYNCED, NOW, NULL}, call, folder);
    take("torn", &(struct loss){NOW, TORN, NULL}, call, folder);
    for (size_t i = 0; i < object_count; i++)
        dirty += objects[i]->is_dirty;
    for (size_t i = 0; i < object_count && dirty > 1; i++)
        if (objects[i]->is_dirty)
            take("kept-", &(struct loss){NOW, SYNCED, objects[i]}, call, folder);
}

/* ---- The record -----------------------------------------------------------------------------------------
 */

struct call {
    char what[16], name[NAME_MAX + 1], other_name[NAME_MAX + 1];
    unsigned long one, other;
    size_t offset, length;
    char *bytes;
};

static bool read_call(FILE *record, struct call *call) {
    if (fscanf(record, "%15s %lu %lu %zu %zu %255s %255s", call->what, &call->one, &call->other,
               &call->offset, &call->length, call->name, call->other_name) != 7)
        return false;
    call->bytes = realloc(call->bytes, call->length + 1);
    if (getc(record) != '\n' || fread(call->bytes, 1, call->length, record) != call->length)
        die("a record that ends in", call->what);
    call->bytes[call->length] = '\0';
    return true;
}

/* The numbers of units that are shown as done: in the progress of a run, by a run that is resumed, by its
 * status. */
static void show(const char *text) {
    static const char *const forms[] = {"\"units_done\":", "\"text\":\"part 2: ", "\"done\": "};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const char *at = strstr(text, forms[i]);
        unsigned long units = at ? strtoul(at + strlen(forms[i]), NULL, 10) : 0;
        shown.units = units > shown.units ? units : shown.units;
    }
    shown.started |= strstr(text, "\"event\":\"started\"") != NULL;
    shown.sealed |= strstr(text, "\"event\":\"sealed\"") != NULL;
}

static void replay(const struct call *call) {
    const char *what = call->what;
    if (strcmp(what, "root") == 0)
        root = root ? root : make(call->one, true);
    else if (strcmp(what, "show") == 0)
        show(call->bytes);
    else if (strcmp(what, "make") == 0 || strcmp(what, "folder") == 0)
        name_it(find(call->one), call->name, make(call->other, what[0] == 'f'));
    else if (strcmp(what, "remove") == 0)
        unname(find(call->one), call->name);
    else if (strcmp(what, "rename") == 0)
        name_it(find(call->other), call->other_name, unname(find(call->one), call->name));
    else if (strcmp(what, "write") == 0)
        put(find(call->one), call->offset, call->bytes, call->length);
    else if (strcmp(what, "cut") == 0)
        cut(find(call->one), call->offset);
    else if (strcmp(what, "syncfs") == 0)
        for (size_t i = 0; i < object_count; i++)
            sync_object(objects[i]);
    else
        sync_object(find(call->one));
}

int main(int argc, char **argv) {
    struct call call = {0};
    FILE *record = argc == 3 ? fopen(argv[1], "r") : NULL;
    unsigned long count = 0, first = 0;
    char path[PATH_MAX];
    if (!record)
        die("cannot open", argc == 3 ? argv[1] : "RECORD FOLDER");
    for (unsigned long i = 1; read_call(record, &call); i++)
        if (strcmp(call.what, "root") == 0)
            first = i;
    rewind(record);
    while (read_call(record, &call)) {
        replay(&call);
        if (++count >= first)
            take_all(count, argv[2]);
    }
    snprintf(path, sizeof path, "%s/0", argv[2]);
    walk(root, &(struct loss){NOW, NOW, NULL}, true, 1, path);
    for (size_t i = 0; i < state_count; i++)
        printf("%zu %lu %s %d %lu %d\n", i + 1, states[i].call, states[i].what, states[i].shown.started,
               states[i].shown.units, states[i].shown.sealed);
    return 0;
}
