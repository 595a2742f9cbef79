#include "engine/agent/controls/control.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TEXT_MAX_BYTES = 256 << 10, LIST_SIZE = 1024 };

static const struct control *const table[CONTROL_COUNT] = {
    [CONTROL_DAEMONS] = &control_daemons,
    [CONTROL_HYPERTHREADS] = &control_hyperthreads,
    [CONTROL_GOVERNOR] = &control_governor,
    [CONTROL_TURBO] = &control_turbo,
    [CONTROL_FREQUENCY] = &control_frequency,
    [CONTROL_ENERGY_PREFERENCE] = &control_energy_preference,
    [CONTROL_IDLE_STATES] = &control_idle_states,
    [CONTROL_UNCORE_FREQUENCY] = &control_uncore_frequency,
    [CONTROL_NUMA_BALANCING] = &control_numa_balancing,
    [CONTROL_TRANSPARENT_HUGE_PAGES] = &control_transparent_huge_pages,
    [CONTROL_ASLR] = &control_aslr,
};

const struct control *control_at(enum control_index index) {
    return table[index];
}

enum control_index control_find(const char *name) {
    unsigned index = 0;
    while (index < CONTROL_COUNT && strcmp(table[index]->name, name) != 0)
        index++;
    return (enum control_index)index;
}

unsigned control_closure(unsigned set) {
    for (unsigned before = ~set; before != set;) {
        before = set;
        for (unsigned index = 0; index < CONTROL_COUNT; index++)
            if (set >> index & 1)
                set |= table[index]->side_effects;
    }
    return set;
}

/* ---- attributes: one kind of file */

bool attribute_is_there(const struct attribute *attribute, const struct layout *layout) {
    struct layout_place place;
    for (size_t i = 0; layout_place(layout, attribute->scope, attribute->folder, i, &place); i++)
        if (layout_answers(layout, place.folder, attribute->file))
            return true;
    return false;
}

static bool is_switch(const struct attribute *attribute) {
    return attribute->codec == ATTRIBUTE_SWITCH || attribute->codec == ATTRIBUTE_INVERSE_SWITCH;
}

static bool is_number(const char *text, uint64_t *ret) {
    return number_parse_uint64(text, strlen(text), ret);
}

/* The word for VALUE, the content of a file of ATTRIBUTE; VALUE may be changed in place. */
static const char *decode(const struct attribute *attribute, char *value) {
    uint64_t number;
    if (is_switch(attribute))
        return (strcmp(value, "0") == 0) == (attribute->codec == ATTRIBUTE_SWITCH) ? "off" : "on";
    if (attribute->codec == ATTRIBUTE_CHOICE)
        plan_choose(value);
    if (attribute->codec == ATTRIBUTE_NAMED && is_number(value, &number))
        for (const struct attribute_name *at = attribute->names; at->name; at++)
            if (at->number == number)
                return at->name;
    return value;
}

/* Reads the possible words of ATTRIBUTE; "": not known. */
static void read_words(const struct attribute *attribute, const struct layout *layout, const char *folder,
                       char words[static LIST_SIZE]) {
    words[0] = '\0';
    if (attribute->words)
        snprintf(words, LIST_SIZE, "%s", attribute->words);
    else if (attribute->list)
        (void)layout_value(layout, folder, attribute->list, words, LIST_SIZE);
}

/* Reads the values of all files of ATTRIBUTE into the status. */
static void read_attribute(const struct attribute *attribute, const struct layout *layout,
                           struct control_status *ret) {
    char value[LIST_SIZE];
    struct layout_place place;
    for (size_t i = 0; layout_place(layout, attribute->scope, attribute->folder, i, &place); i++) {
        if (layout_value(layout, place.folder, attribute->file, value, sizeof value) < 0)
            continue;
        values_add(&ret->values, decode(attribute, value), &place.pus);
        if (ret->path[0])
            continue;
        control_set_path(ret, place.folder, attribute->file);
        read_words(attribute, layout, place.folder, value);
        control_add_possible(ret, "%s", value);
    }
}

/* Adds a write of WORD. Where it is a number that has a name, the kernel may show the name afterwards. */
static void add_word(const struct attribute *attribute, const struct layout_place *place, const char *word,
                     struct plan *ret) {
    uint64_t number;
    struct plan_write *write = plan_add(ret, place->pu, place->folder, attribute->file, word);
    if (attribute->codec == ATTRIBUTE_CHOICE)
        write->kind = PLAN_CHOICE;
    if (strcmp(word, "default") == 0)
        write->kind = PLAN_ALIAS;
    for (const struct attribute_name *at = attribute->names; at && at->name && is_number(word, &number); at++)
        if (at->number == number)
            snprintf(write->also_accepted, sizeof write->also_accepted, "%s", at->name);
}

/* Finds the number to write for the value ASKED of a switch or a named number. 0 or -EINVAL with a sentence.
 */
static int encode_number(const struct attribute *attribute, const char *asked, uint64_t *ret,
                         struct failure *failure) {
    if (is_switch(attribute) && (strcmp(asked, "on") == 0 || strcmp(asked, "off") == 0)) {
        *ret = (strcmp(asked, "on") == 0) == (attribute->codec == ATTRIBUTE_SWITCH);
        return 0;
    }
    if (is_switch(attribute))
        return failure_set(failure, -EINVAL, "'%s' is not possible; expected on or off", asked);
    for (const struct attribute_name *at = attribute->names; at->name; at++)
        if (strcmp(at->name, asked) == 0) {
            *ret = at->number;
            return 0;
        }
    if (is_number(asked, ret) && *ret <= attribute->max)
        return 0;
    return failure_set(failure, -EINVAL, "'%s' is not possible here; expected 0 to %u, or one of: %s", asked,
                       attribute->max, attribute->words);
}

/* Plans one write for each place of the attribute: a number, or the word of the kernel for ASKED. -EINVAL:
 * ASKED is not possible. */
int attribute_plan(const struct attribute *attribute, const struct layout *layout, const char *asked,
                   struct plan *ret, struct failure *failure) {
    bool numbers = is_switch(attribute) || attribute->codec == ATTRIBUTE_NAMED;
    char word[64], list[LIST_SIZE];
    uint64_t number;
    int r = numbers ? encode_number(attribute, asked, &number, failure) : 0;
    if (r < 0)
        return r;
    bool free_number = !numbers && attribute->max && is_number(asked, &number);
    if (free_number && number > attribute->max)
        return failure_set(failure, -EINVAL, "'%s' is too large; expected 0 to %u", asked, attribute->max);
    snprintf(word, sizeof word, "%.63s", asked);
    for (char *at = word; attribute->names && !numbers && *at; at++)
        if (*at == '-')
            *at = '_'; /* the kernel's spelling */
    struct layout_place place;
    for (size_t i = 0; layout_place(layout, attribute->scope, attribute->folder, i, &place); i++) {
        if (!layout_has(layout, place.folder, attribute->file))
            continue;
        if (numbers) {
            struct plan_write *write = plan_add_number(ret, place.pu, place.folder, attribute->file, number);
            if (is_switch(attribute) && number && attribute->max)
                write->max = attribute->max;
            continue;
        }
        read_words(attribute, layout, place.folder, list);
        if (list[0] && !free_number && (r = control_check_word(word, list, failure)) < 0)
            return r;
        add_word(attribute, &place, word, ret);
    }
    return 0;
}

/* The first attribute of CONTROL whose files exist; NULL: none. */
static const struct attribute *find_attribute(const struct control *control, const struct layout *layout) {
    size_t i = 0;
    while (control->attributes[i] && !attribute_is_there(control->attributes[i], layout))
        i++;
    return control->attributes[i];
}

/* ---- the status */

void control_status_clear(struct control_status *current) {
    values_clear(&current->values);
    text_clear(&current->value);
    text_clear(&current->possible);
}

const char *control_access_name(enum control_access access) {
    static const char *const names[] = {[CONTROL_AVAILABLE] = "available",
                                        [CONTROL_READ_ONLY] = "read-only",
                                        [CONTROL_ABSENT] = "absent",
                                        [CONTROL_DENIED] = "denied"};
    return names[access];
}

/* Tests whether this user may write the control, by opening its file for writing: that alone changes nothing.
 */
static void check_rights(const struct machine *machine, struct control_status *current) {
    cleanup_close int file = machine_open_file(machine, current->path, O_WRONLY | O_NONBLOCK);
    if (file >= 0)
        return;
    struct stat status;
    cleanup_close int seen = machine_open_file(machine, current->path, O_PATH);
    bool read_only =
        file == -EROFS || (seen >= 0 && fstat(seen, &status) == 0 && (status.st_mode & 0222) == 0);
    current->access = read_only ? CONTROL_READ_ONLY : CONTROL_DENIED;
    if (read_only)
        snprintf(current->why, sizeof current->why, "'/%.120s' cannot be written on this machine",
                 current->path);
    else
        snprintf(current->why, sizeof current->why, "this user may not write '/%.120s': %s", current->path,
                 strerror(-file));
}

/* Reads the values of a control first; only then it is known whether the machine has it, and whether this
 * user may set it. */
int control_read_status(const struct control *control, const struct layout *layout,
                        struct control_status *ret) {
    *ret = (struct control_status){0};
    text_init(&ret->value, TEXT_MAX_BYTES);
    text_init(&ret->possible, TEXT_MAX_BYTES);
    const struct attribute *attribute = find_attribute(control, layout);
    if (control->shows_driver && layout->policy_count)
        (void)layout_value(layout, layout->policies[0].folder, "scaling_driver", ret->driver,
                           sizeof ret->driver);
    if (control->read_status)
        control->read_status(layout, ret);
    else if (attribute)
        read_attribute(attribute, layout, ret);
    int r = values_put(&ret->values, &ret->value);
    if (r < 0 || ret->error < 0)
        return r < 0 ? r : ret->error;
    if (ret->values.count == 0) {
        text_reset(&ret->possible);
        control_refuse(ret, CONTROL_ABSENT, ret->why[0] ? ret->why : control->absent);
    } else if (control->read_only) {
        control_refuse(ret, CONTROL_READ_ONLY, control->read_only);
    } else if (ret->access == CONTROL_AVAILABLE && ret->path[0]) {
        check_rights(layout->machine, ret);
    }
    return 0;
}

void control_refuse(struct control_status *current, enum control_access access, const char *why) {
    current->access = access;
    if (why != current->why)
        snprintf(current->why, sizeof current->why, "%s", why);
}

void control_add_possible(struct control_status *current, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int r = text_vprintf(&current->possible, format, arguments);
    va_end(arguments);
    current->error = r < 0 ? r : current->error;
}

void control_set_path(struct control_status *current, const char *folder, const char *name) {
    snprintf(current->path, sizeof current->path, "%s/%s", folder, name);
}

/* ---- plans */

int control_plan(const struct control *control, const struct layout *layout, const char *asked,
                 struct plan *ret, struct failure *failure) {
    const struct attribute *attribute = find_attribute(control, layout);
    int r = control->plan ? control->plan(layout, asked, ret, failure)
            : attribute   ? attribute_plan(attribute, layout, asked, ret, failure)
                          : 0;
    return r == 0 && ret->error < 0
               ? failure_set(failure, ret->error, "cannot find the files to write for '%s': %s",
                             control->name, strerror(-ret->error))
               : r;
}

int control_check_word(const char *asked, const char *list, struct failure *failure) {
    size_t length = strlen(asked);
    for (const char *at = list; length > 0 && (at = strstr(at, asked)); at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0') && !strchr(asked, ' '))
            return 0;
    return failure_set(failure, -EINVAL, "'%s' is not possible here; expected one of: %s", asked, list);
}

/* ---- files */

void control_list_files(const struct control *control, const struct layout *layout, struct plan *ret) {
    const struct attribute *first = control->read_status ? NULL : find_attribute(control, layout);
    if (control->files)
        control->files(layout, ret);
    else if (first)
        control_add_files(ret, layout, first);
    for (size_t i = 0; control->read_status && !control->files && control->attributes[i]; i++)
        control_add_files(ret, layout, control->attributes[i]);
}

void control_add_file(struct plan *plan, const char *folder, const char *file) {
    (void)plan_add(plan, -1, folder, file, "");
}

void control_add_files(struct plan *plan, const struct layout *layout, const struct attribute *attribute) {
    struct layout_place place;
    for (size_t i = 0; layout_place(layout, attribute->scope, attribute->folder, i, &place); i++) {
        control_add_file(plan, place.folder, attribute->file);
        if (attribute->upper)
            control_add_file(plan, place.folder, attribute->upper);
    }
}
