/* Any text as a host list: it is refused, and the list is as before, or what it says can be folded and read
 * again, which gives the same names. */
#include "engine/foundation/host-list.h"
#include "tests/fuzz/fuzz.h"

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

FUZZ_TARGET(30, 2000);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    if (length > 65536)
        return 0;
    char *text = fuzz_text(bytes, length);
    struct host_list list = {0}, again = {0};
    struct failure failure = {0};
    struct text folded;
    text_init(&folded, SIZE_MAX);
    must(host_list_add(&list, "first", &failure) == 0);
    if (host_list_parse(&list, text, &failure) < 0) {
        must(failure.kind == FAILURE_INPUT && failure.text[0] && list.count == 1);
        must(text_invalid_utf8(failure.text, strlen(failure.text)) == strlen(failure.text));
    } else {
        fuzz_passed++;
    }
    for (size_t i = 0; i < list.count; i++)
        must(list.names[i][0] && strlen(list.names[i]) <= HOST_BYTES_MAX);
    must(host_list_fold((const char *const *)list.names, list.count, &folded) == 0);
    must(host_list_parse(&again, folded.bytes, &failure) == 0);
    must(again.count == list.count);
    qsort(list.names, list.count, sizeof *list.names, compare_names);
    qsort(again.names, again.count, sizeof *again.names, compare_names);
    for (size_t i = 0; i < list.count; i++)
        must(strcmp(list.names[i], again.names[i]) == 0);
    host_list_clear(&list);
    host_list_clear(&again);
    text_clear(&folded);
    free(text);
    return 0;
}
