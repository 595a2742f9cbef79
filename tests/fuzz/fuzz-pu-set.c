/* Any bytes as the kernel's answer to which PUs there are: refused, or read; and what is written of it reads
 * the same. */
#include "engine/agent/machine/pu-set.h"
#include "engine/foundation/cleanup.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(40, 2000);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    static char written[PROTOCOL_PU_LIMIT * 6];
    struct pu_set set, again;
    cleanup_free char *text = strndup((const char *)bytes, length);
    must(text != NULL);
    if (pu_set_parse(text, &set) < 0)
        return 0;
    fuzz_passed++;
    must(pu_set_parse(pu_set_format(&set, written, sizeof written), &again) == 0);
    must(memcmp(&set, &again, sizeof set) == 0);
    return 0;
}
