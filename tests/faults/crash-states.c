/*
 * Makes of a record of disk-faults.c what a folder can hold after a crash at each of its calls:
 *
 *   crash-states RECORD FOLDER
 *
 * A process that is killed loses nothing that it wrote. A machine that is may lose each write to a file that
 * was not followed by a sync of the file, and each name that was not followed by a sync of its folder. So
 * there are, after each call: all of it (kept); nothing that was not synced (lost); names without content
 * (empty); content without names (nameless); the last write to each file by half, zeros behind it (torn); the
 * writes to one file and to no other (KEPT-NAME), in whatever order they were made.
 *
 * Each state that differs from all others becomes a folder FOLDER/NUMBER, and a line on standard output:
 * NUMBER CALL WHAT STARTED UNITS SEALED: what the run's JSON events had shown before it. The first, 0, is
 * what the folder holds at the end of the record. A record to which a second process was appended makes the
 * states of the second.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OBJECTS_MAX = 4096, NAMES_MAX = 256, STATES_MAX = 65536 };

struct bytes {
    char *at;
    size_t length;
};
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
    struct bytes now, synced, torn;
    uint64_t hash_now, hash_synced, hash_torn;
    struct names *names, *names_synced;
};

static struct object *objects[OBJECTS_MAX], *root;
static size_t object_count;
static struct {
    bool started, sealed;
    unsigned long units;
} shown;
static struct state {
    uint64_t hash;
    unsigned long call;
    char what[NAME_MAX + 8];
    bool started, sealed;
    unsigned long units;
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

/* ---- What there is ---------------------------------------------------------------------------------------
 */

static struct object *find(unsigned long inode) {
    for (size_t i = object_count; i-- > 0;) /* the last: numbers are used again */
        if (objects[i]->inode == inode)
            return objects[i];
    die("a call on what nobody made", "");
    return NULL;
}

static struct object *make(unsigned long inode, bool is_folder) {
    struct object *object = calloc(1, sizeof *object);
    if (!object || object_count == OBJECTS_MAX)
        die("too much is made", "");
    object->inode = inode;
    object->is_folder = is_folder;
    if (is_folder) {
        object->names = calloc(1, sizeof *object->names);
        object->names_synced = calloc(1, sizeof *object->names_synced);
    }
    return objects[object_count++] = object;
}

static struct object *unname(struct object *folder, const char *name) {
    struct names *names = folder->names;
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i].name, name) == 0) {
            struct object *object = names->items[i].object;
            memmove(&names->items[i], &names->items[i + 1], (--names->count - i) * sizeof names->items[0]);
            return object;
        }
    return NULL;
}

static void name_it(struct object *folder, const char *name, struct object *object) {
    struct names *names = folder->names;
    unname(folder, name);
    size_t at = names->count++;
    if (names->count > NAMES_MAX)
        die("too many names beside", name);
    for (; at > 0 && strcmp(names->items[at - 1].name, name) > 0; at--)
        names->items[at] = names->items[at - 1];
    snprintf(names->items[at].name, sizeof names->items[at].name, "%s", name);
    names->items[at].object = object;
}

static void set(struct bytes *to, const struct bytes *from) {
    to->at = realloc(to->at, from->length + 1);
    memcpy(to->at, from->at ? from->at : "", from->length);
    to->length = from->length;
}

static void resize(struct bytes *bytes, size_t length) {
    bytes->at = realloc(bytes->at, length + 1);
    if (length > bytes->length)
        memset(bytes->at + bytes->length, 0, length - bytes->length);
    bytes->length = length;
}

static void changed(struct object *file) {
    file->is_dirty = true;
    file->hash_now = hash_bytes(1, file->now.at, file->now.length);
    file->hash_torn = hash_bytes(1, file->torn.at, file->torn.length);
}

static void put(struct object *file, size_t offset, const char *bytes, size_t length) {
    set(&file->torn, &file->now);
    if (offset + length > file->now.length) {
        resize(&file->now, offset + length);
        resize(&file->torn, offset + length);
    }
    memcpy(file->now.at + offset, bytes, length);
    memcpy(file->torn.at + offset, bytes, length / 2);
    changed(file);
}

static void sync_object(struct object *object) {
    if (object->is_folder) {
        *object->names_synced = *object->names;
    } else {
        set(&object->synced, &object->now);
        object->is_dirty = false;
        object->hash_synced = object->hash_now;
    }
}

/* ---- States ----------------------------------------------------------------------------------------------
 */

struct loss {
    bool names, torn, content;   /* what of it is lost */
    const struct object *except; /* whose content is not */
};

static void write_object(const char *path, const struct bytes *bytes) {
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (file < 0 || write(file, bytes->at, bytes->length) != (ssize_t)bytes->length || close(file) < 0)
        die("cannot write", path);
}

/* What nobody reads when the run is resumed: states in which nothing but its content differs are one. */
static bool is_unread(const char *name) {
    const char *end = strrchr(name, '.');
    return strcmp(name, "nodes") == 0 || strcmp(name, "engine.log") == 0 ||
           (end && strcmp(end, ".part") == 0);
}

/* The hash of what is left below FOLDER, with CONTENT. With a PATH it is written there, too. */
static uint64_t walk(const struct object *folder, const struct loss *loss, bool content, uint64_t hash,
                     const char *path) {
    const struct names *names = loss->names ? folder->names_synced : folder->names;
    if (path && mkdir(path, 0755) < 0)
        die("cannot make", path);
    hash = hash_bytes(hash, "(", 1);
    for (size_t i = 0; i < names->count; i++) {
        const struct object *object = names->items[i].object;
        char below[PATH_MAX];
        bool read =
            (content && !is_unread(names->items[i].name)) || strcmp(names->items[i].name, "facts.json") == 0;
        snprintf(below, sizeof below, "%s/%s", path ? path : "", names->items[i].name);
        hash = hash_bytes(hash, names->items[i].name, strlen(names->items[i].name) + 1);
        if (object->is_folder) {
            hash = walk(object, loss, read, hash, path ? below : NULL);
            continue;
        }
        bool lost = loss->content && object != loss->except && object->is_dirty,
             torn = loss->torn && object->is_dirty;
        if (read)
            hash = hash_bytes(hash,
                              lost   ? &object->hash_synced
                              : torn ? &object->hash_torn
                                     : &object->hash_now,
                              sizeof hash);
        if (path)
            write_object(below, lost ? &object->synced : torn ? &object->torn : &object->now);
    }
    return hash_bytes(hash, ")", 1);
}

static void take(const char *what, const char *name, const struct loss *loss, unsigned long call,
                 const char *folder) {
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
        snprintf(state->what, sizeof state->what, "%s%s", what, name);
        snprintf(path, sizeof path, "%s/%zu", folder, state_count);
        walk(root, loss, true, 1, path);
    }
    /* The same again, after more was shown. */
    state->started = shown.started;
    state->sealed = shown.sealed;
    state->units = shown.units;
}

static void find_name(const struct object *folder, const struct object *object, char *name) {
    for (size_t i = 0; i < folder->names->count; i++) {
        if (folder->names->items[i].object == object)
            snprintf(name, NAME_MAX + 1, "%s", folder->names->items[i].name);
        else if (folder->names->items[i].object->is_folder)
            find_name(folder->names->items[i].object, object, name);
    }
}

static void take_all(unsigned long call, const char *folder) {
    size_t dirty = 0;
    take("kept", "", &(struct loss){0}, call, folder);
    take("lost", "", &(struct loss){.names = true, .content = true}, call, folder);
    take("empty", "", &(struct loss){.content = true}, call, folder);
    take("nameless", "", &(struct loss){.names = true}, call, folder);
    take("torn", "", &(struct loss){.torn = true}, call, folder);
    for (size_t i = 0; i < object_count; i++)
        dirty += objects[i]->is_dirty;
    for (size_t i = 0; i < object_count && dirty > 1; i++) {
        char name[NAME_MAX + 1] = "nothing";
        if (!objects[i]->is_dirty)
            continue;
        find_name(root, objects[i], name);
        take("kept-", name, &(struct loss){.content = true, .except = objects[i]}, call, folder);
    }
}

/* ---- The record ------------------------------------------------------------------------------------------
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

static void see(const char *line) {
    static const char units[] = "\"units_done\":";
    const char *at = strstr(line, units);
    unsigned long count = at ? strtoul(at + strlen(units), NULL, 10) : 0;
    const char *part = strstr(line, "\"text\":\"part ");
    if (part && sscanf(part, "\"text\":\"part %*u: %lu of", &count) != 1)
        count = 0;
    const char *done = strstr(line, "\"done\": "); /* of assay status */
    count = done ? strtoul(done + strlen("\"done\": "), NULL, 10) : count;
    shown.units = count > shown.units ? count : shown.units;
    shown.started |= strstr(line, "\"event\":\"started\"") != NULL;
    shown.sealed |= strstr(line, "\"event\":\"sealed\"") != NULL;
}

static void replay(const struct call *call) {
    const char *what = call->what;
    if (strcmp(what, "root") == 0)
        root = root ? root : make(call->one, true);
    else if (strcmp(what, "show") == 0)
        see(call->bytes);
    else if (strcmp(what, "make") == 0 || strcmp(what, "folder") == 0)
        name_it(find(call->one), call->name, make(call->other, what[0] == 'f'));
    else if (strcmp(what, "remove") == 0)
        unname(find(call->one), call->name);
    else if (strcmp(what, "rename") == 0)
        name_it(find(call->other), call->other_name, unname(find(call->one), call->name));
    else if (strcmp(what, "write") == 0)
        put(find(call->one), call->offset, call->bytes, call->length);
    else if (strcmp(what, "cut") == 0) {
        struct object *file = find(call->one);
        resize(&file->now, call->offset);
        set(&file->torn, &file->now);
        changed(file);
    } else if (strcmp(what, "syncfs") == 0)
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
    walk(root, &(struct loss){0}, true, 1, path);
    for (size_t i = 0; i < state_count; i++)
        printf("%zu %lu %s %d %lu %d\n", i + 1, states[i].call, states[i].what, states[i].started,
               states[i].units, states[i].sealed);
    return 0;
}
