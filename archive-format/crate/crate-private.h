/* What crate.c and software.c share: the graph that is being written. */
#ifndef ASSAY_ARCHIVE_FORMAT_CRATE_CRATE_PRIVATE_H
#define ASSAY_ARCHIVE_FORMAT_CRATE_CRATE_PRIVATE_H

#include "archive-format/crate/describe.h"
#include "engine/documents/json.h"

struct crate {
    const struct staging *staging;
    const struct archive_description *description;
    const struct archive_run *of;
    cJSON *graph;
    char *run;       /* @id of the action */
    char *engine;    /* @id of the instrument */
    char *agent;     /* @id of the person, if there is one */
    size_t machines; /* nodes whose facts were read for their descriptions */
};

/* OBJECT's member KEY, or a new item if KEY is NULL, refers to the entity ID. */
void crate_refer(cJSON *object, const char *key, const char *id);
/* A new entity of the graph. NAME and DESCRIPTION may be NULL. */
cJSON *crate_entity(struct crate *crate, const char *id, const char *type, const char *name,
                    const char *description);
/* Adds an entity for each piece of software that run.json, software/versions.json and the facts of the nodes
 * name, each once, and makes it a softwareRequirements of INSTRUMENT, the entity of what measured. */
void crate_describe_software(struct crate *crate, cJSON *instrument);

#endif
