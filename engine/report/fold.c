/* Folds the sections of many nodes into one text: equal parts once, with the names of those that differ. */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/host-list.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text-set.h"
#include "engine/report/report-tree.h"

#include <stdlib.h>
#include <string.h>

/* Sections that say the same of the same thing. */
struct group {
    uint32_t key;
    const struct item *item; /* of the first of them */
    size_t row;              /* of the item's table */
    size_t *members;         /* ascending */
    size_t count, capacity;
};

struct folding {
    const char *const *names;
    struct text_set keys, values; /* of the values, one a group */
    struct group *groups;
    size_t capacity;
};

static void clear_folding(struct folding *folding) {
    for (size_t i = 0; i < folding->values.count; i++)
        free(folding->groups[i].members);
    free(folding->groups);
    text_set_clear(&folding->keys);
    text_set_clear(&folding->values);
}

/* Adds the value that MEMBER has for KEY. Members with the same value of a key share a group. */
static void add_value(struct folding *folding, size_t member, const char *key, const char *value,
                      const struct item *item, size_t row) {
    uint32_t number = text_set_add(&folding->keys, key, strlen(key));
    cleanup_free char *both = xformat("%u %s", (unsigned)number, value);
    size_t before = folding->values.count, i = text_set_add(&folding->values, both, strlen(both));
    if (i == before) {
        (void)list_reserve(&folding->groups, &folding->capacity, i + 1, sizeof *folding->groups, SIZE_MAX);
        folding->groups[i] = (struct group){.key = number, .item = item, .row = row};
    }
    struct group *group = &folding->groups[i];
    if (group->count > 0 && group->members[group->count - 1] == member)
        return;
    (void)list_reserve(&group->members, &group->capacity, group->count + 1, sizeof *group->members, SIZE_MAX);
    group->members[group->count++] = member;
}

static int compare_groups(const void *a, const void *b) {
    const struct group *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return (x->members[0] > y->members[0]) - (x->members[0] < y->members[0]);
}

static void sort_groups(struct folding *folding) {
    if (folding->values.count > 0)
        qsort(folding->groups, folding->values.count, sizeof *folding->groups, compare_groups);
}

static bool is_first_of_key(const struct folding *folding, size_t i) {
    return i == 0 || folding->groups[i - 1].key != folding->groups[i].key;
}

static char *fold_names(const struct folding *folding, const struct group *group) {
    cleanup_free const char **names = xcalloc(group->count, sizeof *names);
    for (size_t i = 0; i < group->count; i++)
        names[i] = folding->names[group->members[i]];
    struct text text;
    text_init(&text, SIZE_MAX / 2);
    host_list_fold(names, group->count, &text);
    return text_take(&text);
}

/* TEXT, and, if members differ in this key, the names of those with this value. The caller frees. */
static char *with_names(const struct folding *folding, size_t i, const char *text) {
    bool differs =
        !is_first_of_key(folding, i) || (i + 1 < folding->values.count && !is_first_of_key(folding, i + 1));
    cleanup_free char *names = differs ? fold_names(folding, &folding->groups[i]) : NULL;
    return names ? xformat("%s   %s", text, names) : xstrdup(text);
}

/* Folds the pairs of all sections by label and text. */
static void fold_pairs(struct report_section *into, const struct report_section *list,
                       const char *const *names) {
    cleanup(clear_folding) struct folding folding = {.names = names};
    for (size_t i = 0; i < list->count; i++) {
        const struct report_section *section = list->items[i].section;
        for (size_t k = 0; k < section->count; k++) {
            const struct item *item = &section->items[k];
            cleanup_free char *text = tree_is_pair(item) && !item->detail ? tree_pair_text(item) : NULL;
            if (text)
                add_value(&folding, i, item->label, text, item, 0);
        }
    }
    sort_groups(&folding);
    for (size_t i = 0; i < folding.values.count; i++) {
        const struct item *item = folding.groups[i].item;
        cleanup_free char *text = tree_pair_text(item), *line = with_names(&folding, i, text);
        report_text(into, NULL, is_first_of_key(&folding, i) ? item->label : " ", line, false);
    }
}

/* All cells of a row that people see, for comparing; the caller frees. */
static char *row_text(const struct report_table *table, size_t row) {
    struct text text;
    text_init(&text, SIZE_MAX / 2);
    for (size_t c = 0; c < table->column_count; c++) {
        cleanup_free char *cell =
            tree_cell_text(&table->columns[c], &table->cells[row * table->column_count + c]);
        if (!table->columns[c].detail)
            text_printf(&text, "%s\x1f", cell);
    }
    return text_take(&text);
}

/* Adds the row of group I, with names in its last column if members differ. */
static void add_row(struct report_table *to, const struct folding *folding, size_t i) {
    const struct group *group = &folding->groups[i];
    const struct report_table *from = group->item->table;
    size_t column = 0;
    for (size_t c = 0; c < from->column_count; c++) {
        if (from->columns[c].detail)
            continue;
        cleanup_free char *text =
            tree_cell_text(&from->columns[c], &from->cells[group->row * from->column_count + c]);
        cleanup_free char *last = column + 1 == to->column_count ? with_names(folding, i, text) : NULL;
        bool is_repeated = column++ == 0 && !is_first_of_key(folding, i);
        report_cell_text(to, is_repeated ? "" : last ? last : text);
    }
}

/* Folds the rows of all tables that have the name of LIKE. */
static void fold_tables(struct report_section *into, const struct report_section *list,
                        const char *const *names, const struct report_table *like) {
    cleanup(clear_folding) struct folding folding = {.names = names};
    for (size_t i = 0; i < list->count; i++) {
        const struct report_section *section = list->items[i].section;
        for (size_t k = 0; k < section->count; k++) {
            const struct report_table *table = section->items[k].table;
            for (size_t row = 0; table && strcmp(table->name, like->name) == 0 &&
                                 row * table->column_count < table->cell_count;
                 row++) {
                cleanup_free char *text = row_text(table, row);
                cleanup_free char *key =
                    tree_cell_text(&table->columns[0], &table->cells[row * table->column_count]);
                add_value(&folding, i, key, text, &section->items[k], row);
            }
        }
    }
    sort_groups(&folding);
    cleanup_free struct column *columns = xcalloc(like->column_count, sizeof *columns);
    size_t count = 0;
    for (size_t c = 0; c < like->column_count; c++)
        if (!like->columns[c].detail)
            columns[count++] = like->columns[c];
    if (count == 0 || folding.values.count == 0)
        return;
    struct report_table *table = report_table(into, NULL, like->title, columns, count);
    report_print_whole(table);
    for (size_t i = 0; i < folding.values.count; i++)
        add_row(table, &folding, i);
}

/* Folds the tables of all sections, those of one name together. */
static void fold_all_tables(struct report_section *into, const struct report_section *list,
                            const char *const *names) {
    cleanup(text_set_clear) struct text_set done = {0};
    for (size_t i = 0; i < list->count; i++) {
        const struct report_section *section = list->items[i].section;
        for (size_t k = 0; k < section->count; k++) {
            const struct report_table *table = section->items[k].table;
            uint32_t found;
            if (!table || text_set_find(&done, table->name, strlen(table->name), &found))
                continue;
            text_set_add(&done, table->name, strlen(table->name));
            fold_tables(into, list, names, table);
        }
    }
}

/* Folds the notes: "dahu-[1-3]: SENTENCE". */
static void fold_notes(struct report_section *into, const struct report_section *list,
                       const char *const *names) {
    cleanup(clear_folding) struct folding folding = {.names = names};
    for (size_t i = 0; i < list->count; i++)
        for (size_t k = 0; k < list->items[i].section->count; k++) {
            const struct item *item = &list->items[i].section->items[k];
            if (item->kind == ITEM_NOTE)
                add_value(&folding, i, item->text, "", item, 0);
        }
    for (size_t i = 0; i < folding.values.count; i++) {
        cleanup_free char *who = fold_names(&folding, &folding.groups[i]);
        cleanup_free char *line = xformat("%s: %s", who, folding.groups[i].item->text);
        report_text(into, NULL, "", line, false);
    }
}

void report_fold(struct report_section *into, const struct report_section *list, const char *const *names) {
    fold_pairs(into, list, names);
    fold_all_tables(into, list, names);
    fold_notes(into, list, names);
}
