/* JSON of any bytes: refused with a sentence, or a sound tree that survives being written and read again. */
#include "engine/foundation/cleanup.h"
#include "tests/fuzz/trees.h"

/* Any bytes must become a string literal that reads back, except for what U+FFFD stands for. */
static void check_string(const char *bytes, size_t length) {
    cleanup(text_clear) struct text literal;
    text_init(&literal, 64 << 20);
    must(json_append_string(&literal, bytes, length) == 0);
    struct document *document = NULL;
    struct failure failure = {0};
    must(document_parse_json("literal", literal.bytes, literal.length, &document, &failure) == 0);
    if (text_invalid_utf8(bytes, length) == length && !memchr(bytes, '\0', length))
        must(strlen(document->root->text) == length && memcmp(document->root->text, bytes, length) == 0);
    document_free(document);
}

FUZZ_TARGET(18, 2000);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    struct document *document = NULL;
    struct failure failure = {0};
    check_string((const char *)bytes, length);
    int r = document_parse_json("fuzz.json", (const char *)bytes, length, &document, &failure);
    if (r < 0) {
        must(document == NULL);
        check_failure("fuzz.json", r, &failure);
        return 0;
    }
    fuzz_passed++;
    check_tree(document->root, 1);
    check_json_of(document->root, true);
    check_json_of(document->root, false);
    document_free(document);
    return 0;
}
