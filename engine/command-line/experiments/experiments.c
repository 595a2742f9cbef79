/* assay experiments: which experiments there are, what one declares, and a folder to begin one's own with. */
#include "engine/command-line/experiments/experiments.h"
#include "engine/command-line/output.h"

#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/installation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_experiment(struct experiment **experiment) {
    experiment_free(*experiment);
}

/* ---- The list */

/* Lists one experiment. One that cannot be read is listed with the reason. */
static void list_one(const struct installation *installation, const char *name, const char *folder,
                     struct page *page, cJSON *list) {
    cleanup(free_experiment) struct experiment *experiment = NULL;
    struct failure own = {0};
    char sentence[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE + 4];
    int r = experiment_find(name, ".", installation, NULL, 0, 0, &experiment, &own);
    const char *why = r < 0 ? failure_describe(&own, sentence, sizeof sentence) : NULL;
    const char *summary = experiment && experiment->summary ? experiment->summary : "";
    page_say(page, "%s", why ? why : summary);
    page_entry(page, name);
    cJSON *object = json_add_object(list, NULL);
    json_add_string(object, "name", name);
    json_add_string(object, "folder", folder);
    json_add_string(object, "summary", experiment ? experiment->summary : NULL);
    json_add_string(object, "failure", why);
}

/* Lists those of NAMES that are found in FOLDER, below its name. */
static int list_folder(const struct installation *installation, const struct installation_names *names,
                       const char *folder, struct page *page, cJSON *list, struct failure *failure) {
    bool begun = false;
    for (size_t i = 0; i < names->count; i++) {
        cleanup_free char *path = NULL;
        int r = installation_find(installation, INSTALLATION_EXPERIMENT, names->items[i], &path, failure);
        if (r < 0)
            return r;
        size_t length = (size_t)(file_base_name(path) - path) - 1;
        if (strlen(folder) != length || memcmp(folder, path, length) != 0)
            continue;
        if (!begun)
            page_line(page, "%s%s:", page->text.length ? "\n" : "", folder);
        begun = true;
        list_one(installation, names->items[i], path, page, list);
    }
    return 0;
}

static int list_all(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(installation_names_clear) struct installation_names names = {0};
    cleanup(page_clear) struct page page;
    cleanup(json_cleanup) cJSON *list = cJSON_CreateArray();
    page_init(&page, 22);
    const struct installation *installation = arguments->installation;
    int r = installation_list(installation, INSTALLATION_EXPERIMENT, &names, failure);
    const struct installation_names *folders = &installation->folders[INSTALLATION_EXPERIMENT];
    for (size_t i = 0; r == 0 && i < folders->count; i++)
        r = list_folder(installation, &names, folders->items[i], &page, list, failure);
    if (r < 0)
        return r;
    if (verb_switch(arguments, "--json")) {
        output_json(list, true);
        return 0;
    }
    page_line(&page, "%s",
              names.count ? "\n'assay experiments show NAME' prints what one declares." : "no experiments");
    page_print(&page);
    return 0;
}

/* ---- One of them */

static int show(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(free_experiment) struct experiment *experiment = NULL;
    int r = experiment_find(arguments->operands[1], ".", arguments->installation, NULL, 0, 0, &experiment,
                            failure);
    if (r == 0)
        r = experiment_resolve(experiment, failure);
    if (r < 0)
        return r;
    if (verb_switch(arguments, "--json")) {
        cleanup(json_cleanup) cJSON *object = json_from_node(experiment->document->root);
        json_add_string(object, "folder", experiment->folder);
        output_json(object, true);
    } else {
        experiments_print(experiment);
    }
    return 0;
}

/* ---- The command */

static const struct verb_action actions[] = {
    {"list", 0, 0, "none", "--json", list_all},
    {"show", 1, 1, "the name of an experiment, or its folder with a slash", "--json", show},
    {"new", 1, 1, "a name for the experiment", "--output --mpi", experiments_new},
    {0},
};

int command_experiments(const struct verb_arguments *arguments, struct failure *failure) {
    const char *name = arguments->operand_count ? arguments->operands[0] : "list";
    return verb_run_action(arguments, actions, name, failure);
}
