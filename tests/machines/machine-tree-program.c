/* machine-tree: a made-up machine in a folder, for tests in shell. */
#include "tests/machines/machine-tree.h"

#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
    struct failure failure = {0};
    if (count != 3) {
        fputs("usage: machine-tree NAME[:SETTING=NUMBER,...] FOLDER\n", stderr);
        return 2;
    }
    if (machine_tree_make(words[1], words[2], &failure) < 0) {
        fprintf(stderr, "machine-tree: %s\n", failure.text);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
