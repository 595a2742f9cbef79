/* What lies on a node as a snapshot of its controls: never believed unless it is whole, never read beyond.
 * The input are its lines; the checksum is made to fit, or nothing would get past it. */
#include "engine/agent/controls/snapshot.h"
#include "engine/agent/files/sha256.h"
#include "tests/fuzz/fuzz.h"

static int append_digest(struct text *text) {
    struct sha256 hash;
    unsigned char digest[SHA256_SIZE];
    sha256_init(&hash);
    sha256_add(&hash, text->bytes, text->length);
    sha256_end(&hash, digest);
    int r = text_append_string(text, "end\t");
    for (size_t i = 0; i < sizeof digest && r == 0; i++)
        r = text_printf(text, "%02x", digest[i]);
    return r == 0 ? text_append_character(text, '\n') : r;
}

FUZZ_TARGET(15, 2000);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    struct text text;
    struct lines again;
    struct failure failure;
    struct snapshot snapshot;
    text_init(&text, 8 << 20);
    lines_init(&again, LINES_MAX_BYTES);
    if (text_append_string(&text, "assay-controls\t3\n") < 0 || text_append(&text, data, size) < 0 ||
        append_digest(&text) < 0)
        abort();
    if (snapshot_parse(text.bytes, text.length, &snapshot, &failure) == 0) {
        fuzz_passed++;
        /* What was read can be written, and read again. */
        struct snapshot second;
        snapshot_format(&snapshot, &again);
        if (again.error < 0 || snapshot_parse(again.text.bytes, again.text.length, &second, &failure) < 0 ||
            second.count != snapshot.count)
            abort();
        snapshot_clear(&second);
        snapshot_clear(&snapshot);
    }
    text_clear(&text);
    lines_clear(&again);
    return 0;
}
