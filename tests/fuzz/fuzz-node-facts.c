/* Any bytes as what a node says about itself: refused with a sentence, or read, and then each PU is there
 * once, in order, and one of each core is its first. */
#include "engine/foundation/cleanup.h"
#include "engine/remote/link/facts.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(25, 2000);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    struct node_facts *facts = NULL;
    struct failure failure = {0};
    if (node_facts_parse(bytes, length, &facts, &failure) < 0) {
        must(facts == NULL && failure.text[0]);
        return 0;
    }
    fuzz_passed++;
    must(facts->host_name && facts->boot_id && facts->pu_count > 0);
    for (size_t i = 1; i < facts->pu_count; i++)
        must(facts->pus[i - 1].index < facts->pus[i].index);
    cleanup_free const struct node_pu **cores = NULL;
    size_t count;
    must(node_facts_physical_cores(facts, &cores, &count) == 0 && count <= facts->pu_count);
    for (size_t i = 0; i < count; i++)
        must(cores[i]->allowed && cores[i]->first_sibling_index <= cores[i]->index);
    node_facts_free(facts);
    return 0;
}
