/* Any bytes as an archive: opened, verified, every member read, the columns of its table parsed. */
#include "archive-format/datapackage.h"
#include "archive-format/reader.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>

enum { READ_MAX = 4 << 20 };

FUZZ_TARGET(12, 2000);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    cleanup(archive_columns_clear) struct archive_columns columns = {0};
    struct failure failure = {0};
    int descriptor = memfd_create("fuzz", MFD_CLOEXEC);
    if (descriptor < 0 || file_write_all(descriptor, data, size) < 0)
        abort();
    if (archive_open_descriptor(descriptor, "fuzz.zip", &archive, &failure) < 0)
        return failure.text[0] == '\0' ? (abort(), 0) : 0; /* a failure always says why */
    fuzz_passed++;
    uint64_t content = 0;
    for (size_t i = 0; i < archive_member_count(archive); i++)
        content += archive_member_size(archive, i);
    if (content <
        READ_MAX) /* two megabytes of input may unpack to gigabytes, slowly: a small bomb is no finding */
        (void)archive_check(archive, &failure);
    for (size_t i = 0; i < archive_member_count(archive); i++) {
        cleanup(text_clear) struct text text;
        uint64_t found = UINT64_MAX;
        text_init(&text, READ_MAX);
        if (!archive_find(archive, archive_member_name(archive, i), &found) ||
            found != archive_member_size(archive, i))
            abort();
        if (archive_read_member(archive, archive_member_name(archive, i), &text, &failure) == 0 &&
            text.length != archive_member_size(archive, i))
            abort();
    }
    (void)archive_table_columns(archive, "results/results.csv", &columns, &failure);
    return 0;
}
