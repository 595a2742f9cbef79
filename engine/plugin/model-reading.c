#include "engine/plugin/model-reading.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int reading_refuse(const struct reading *reading, const struct document_node *node, const char *key,
                   const char *expected) {
    return failure_input(reading->failure, reading->document->file, node->line, node->column,
                         "'%s' is missing or is not %s", key, expected);
}

int reading_doubt(const struct reading *reading, const struct document_node *node, const char *key,
                  const char *expected) {
    char sentence[FAILURE_TEXT_SIZE];
    snprintf(sentence, sizeof sentence, "'%s' is not %s", key, expected);
    if (reading->doubt && reading->doubt(reading->context, node->line, node->column, sentence) < 0)
        return failure_memory(reading->failure);
    return reading->doubt ? 0
                          : failure_input(reading->failure, reading->document->file, node->line, node->column,
                                          "%s", sentence);
}

int reading_need(const struct reading *reading, const struct document_node *node, const char *key,
                 enum document_kind kind, const struct document_node **ret) {
    const struct document_node *value = document_get(node, key);
    if (!value || value->kind != kind)
        return reading_refuse(reading, value ? value : node, key, document_kind_name(kind));
    *ret = value;
    return 0;
}

int reading_text(const struct reading *reading, const struct document_node *node, const char *key,
                 const char **ret) {
    const struct document_node *value = NULL;
    int r = reading_need(reading, node, key, DOCUMENT_TEXT, &value);
    if (r == 0)
        *ret = value->text;
    return r;
}

int reading_entry(const struct reading *reading, const struct document_node *node, const char *key,
                  double *ret) {
    if (node->kind != DOCUMENT_NUMBER || !number_parse_double(node->text, strlen(node->text), ret))
        return reading_refuse(reading, node, key, "a number that a double can hold");
    return 0;
}

int reading_number(const struct reading *reading, const struct document_node *node, const char *key,
                   double *ret) {
    const struct document_node *value = NULL;
    int r = reading_need(reading, node, key, DOCUMENT_NUMBER, &value);
    return r < 0 ? r : reading_entry(reading, value, key, ret);
}

int reading_whole(const struct reading *reading, const struct document_node *node, const char *key,
                  int64_t minimum, int64_t maximum, int64_t *ret) {
    const struct document_node *value = NULL;
    int64_t whole = 0;
    int r = reading_need(reading, node, key, DOCUMENT_NUMBER, &value);
    if (r == 0 &&
        (!number_parse_int64(value->text, strlen(value->text), &whole) || whole < minimum || whole > maximum))
        return reading_refuse(reading, value, key, "a whole number in range");
    if (r == 0)
        *ret = whole;
    return r;
}

int reading_may_text(const struct reading *reading, const struct document_node *node, const char *key,
                     const char **ret) {
    const struct document_node *value = document_get(node, key);
    *ret = NULL;
    return !value || value->kind == DOCUMENT_NULL ? 0 : reading_text(reading, node, key, ret);
}

int reading_may_number(const struct reading *reading, const struct document_node *node, const char *key,
                       double *ret) {
    const struct document_node *value = document_get(node, key);
    if (value && value->kind == DOCUMENT_NULL) {
        *ret = NAN;
        return 0;
    }
    return reading_number(reading, node, key, ret);
}

int reading_numbers(const struct reading *reading, const struct document_node *node, const char *key,
                    size_t count, double **ret) {
    const struct document_node *list = NULL;
    int r = reading_need(reading, node, key, DOCUMENT_SEQUENCE, &list);
    if (r < 0)
        return r;
    if (list->count != count)
        return reading_refuse(reading, list, key, "a sequence of as many numbers as there have to be");
    cleanup_free double *numbers = xcalloc(count + 1, sizeof *numbers);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = reading_entry(reading, list->items[i], key, &numbers[i]);
    if (r == 0)
        *ret = take_pointer(numbers);
    return r;
}
