#include "engine/run/nodes/answers.h"

#include "engine/foundation/memory.h"

#include <errno.h>
#include <stdlib.h>

void answers_init(struct answers *answers, struct event_loop *loop, size_t most, void *context) {
    *answers =
        (struct answers){.loop = loop, .items = xcalloc(most, sizeof *answers->items), .context = context};
}

struct answer *answers_ask(struct answers *answers, struct agent_link *link, size_t node, size_t item) {
    struct answer *answer = &answers->items[answers->count++];
    *answer = (struct answer){.answers = answers, .link = link, .node = node, .item = item, .open = true};
    answers->open++;
    return answer;
}

void answers_take(struct answer *answer) {
    if (!answer->open)
        return;
    answer->open = false;
    answer->answers->open--;
}

int answers_wait(struct answers *answers, struct failure *failure) {
    int r = 0;
    while (r >= 0 && answers->open > 0)
        r = event_loop_turn(answers->loop, -1, failure);
    return r < 0 ? r : 0;
}

void answers_clear(struct answers *answers) {
    for (size_t i = 0; answers->open > 0 && i < answers->count; i++)
        if (answers->items[i].open)
            agent_link_forget(answers->items[i].link, &answers->items[i]);
    free(answers->items);
    *answers = (struct answers){0};
}
