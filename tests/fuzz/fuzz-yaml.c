/* YAML of any bytes: refused with a sentence, or a sound tree that survives being written as JSON. */
#include "tests/fuzz/trees.h"

FUZZ_TARGET(25, 2000);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    struct document *document = NULL;
    struct failure failure = {0};
    int r = document_parse_yaml("fuzz.yaml", (const char *)bytes, length, &document, &failure);
    if (r < 0) {
        must(document == NULL);
        check_failure("fuzz.yaml", r, &failure);
        return 0;
    }
    fuzz_passed++;
    check_tree(document->root, 1);
    check_json_of(document->root, true);
    document_free(document);
    return 0;
}
