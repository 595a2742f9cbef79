/* Giving back what a run has reserved, where no engine works on it. */
#include "engine/run/run.h"

#include "engine/event-loop/event-loop.h"
#include "engine/foundation/cleanup.h"
#include "engine/run/record/submission.h"

/* Returns the reservation of the run PAST to its testbed; the journal says so where the run had one. */
int run_give_back(const char *folder, const struct run_history *past, const struct campaign *campaign,
                  const struct installation *installation,
                  void (*report)(void *context, const char *sentence), void *context,
                  struct failure *failure) {
    const struct testbed_choice *testbed = &campaign->testbed;
    cleanup(event_loop_cleanup) struct event_loop *loop = event_loop_new(failure);
    if (!loop)
        return failure->code;
    struct testbed_request request = {.loop = loop,
                                      .installation = installation,
                                      .run_id = past->run_id,
                                      .run_name = campaign->name,
                                      .folder = folder,
                                      .known_id = past->held.id,
                                      .report = report,
                                      .report_context = context};
    int r = testbed->backend->reclaim(testbed->settings, &request, failure);
    return r == 0 && past->held.is_held ? submission_journal(folder, "reservation-released", NULL, failure)
                                        : r;
}
