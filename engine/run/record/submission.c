#include "engine/run/record/submission.h"

#include "archive-format/layout.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/run/record/journal.h"

static void close_journal(struct journal **journal) {
    journal_close(*journal);
}

int submission_journal(const char *folder, const char *event, const char *sentence, struct failure *failure) {
    cleanup(close_journal) struct journal *journal = NULL;
    cleanup_free char *path = xformat("%s/" ARCHIVE_JOURNAL, folder);
    struct journal_end end = {0};
    int r = journal_replay(path, NULL, NULL, &end, failure);
    if (r < 0 || end.bytes != end.file_bytes)
        return r;
    r = journal_open(path, &end, &journal, failure);
    if (r < 0)
        return r;
    journal_note(journal, event, "sentence", sentence);
    return journal_commit(journal, failure);
}
