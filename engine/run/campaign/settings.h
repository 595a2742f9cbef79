/*
 * What a campaign says beside its experiment and its design: the keys below, each with its defaults. One
 * table of fields (settings.c) binds and prints them.
 */
#ifndef ASSAY_CAMPAIGN_SETTINGS_H
#define ASSAY_CAMPAIGN_SETTINGS_H

#include "engine/design/control-factors.h"
#include "engine/documents/bind.h"
#include "engine/documents/document.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"
#include "engine/testbed/testbed.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct campaign;

/*
 * `controls:`, the state of the nodes.
 *
 *     controls:
 *       turbo: off                    # on, off
 *       hyperthreads: off             # on, off
 *       governor: performance
 *       frequency: base               # one for both limits, or MIN..MAX: 2.1GHz, 80%, min, base, max
 *       energy-preference: performance
 *       idle-states: C1               # the deepest that may be used, the largest exit latency (10us), or all
 *       uncore-frequency: max
 *       numa-balancing: off
 *       transparent-huge-pages: never # always, madvise, never
 *       daemons: stopped              # tuned, thermald, power-profiles-daemon, irqbalance
 *       mismatch: error               # what was written is not what is read back; or best-effort: recorded
 *       unavailable: error            # no such file, or no permission; or best-effort: recorded
 *       proof: 1 s                    # all cores busy for so long, and how fast they were; or none
 *       tolerance: 2%                 # of the frequency in that proof
 *
 * What a value means is the agent's to know (engine/agent/TOOLS.md); what no node could take is refused here.
 */
enum control_rigour { CONTROL_ERROR, CONTROL_BEST_EFFORT };

enum { CONTROL_KINDS = CONTROL_FACTORS }; /* that can be set: control_kinds */

struct control_settings {
    char *values[CONTROL_KINDS]; /* owned; by control_kinds; NULL: left as it is */
    enum control_rigour mismatch, unavailable;
    double proof_seconds; /* 0: none */
    double tolerance;     /* relative */
};

/* Is anything to be set? */
bool control_settings_any(const struct control_settings *settings);

/*
 * `probes:`, how the nodes are watched. The probes are the agent's (engine/agent/probes/README.md).
 *
 *     probes: 100ms                                     # all of them, so often; or none
 *     probes: {period: 1 s, energy: 100ms, drift: none} # each its own; the default is 1 s
 */
enum probe_kind {
    PROBE_FREQUENCY,
    PROBE_TEMPERATURE,
    PROBE_THROTTLE,
    PROBE_ENERGY,
    PROBE_POWER,
    PROBE_LOAD,
    PROBE_MEMORY,
    PROBE_NETWORK,
    PROBE_KERNEL,
    PROBE_DRIFT,
    PROBE_KINDS,
};

extern const char *const probe_kind_names[PROBE_KINDS + 1]; /* the last is NULL */

struct probe_settings {
    int64_t periods_ns[PROBE_KINDS]; /* 0: not sampled */
    int64_t period_ns;               /* of those that have none of their own */
};

/* Is any sampled? */
bool probe_settings_any(const struct probe_settings *settings);

/*
 * `warm-up:`, keeping the nodes busy until they are as they will be.
 *
 *     warm-up: none                 # the default
 *     warm-up: 2min                 # busy for so long
 *     warm-up: steady               # busy until nothing changes any more
 *     warm-up:
 *       until: steady               # or a time
 *       window: 1min                # over which temperature and frequency are looked at
 *       at-most: 15min
 *       temperature-slope: 1 Cel    # over one window, of the line of least squares
 *       temperature-spread: 3 Cel   # greatest less least within the window, off that line
 *       frequency-slope: 1%         # of the mean, likewise
 *       frequency-spread: 3%
 *       load: agent                 # agent, stress, stress-ng
 *
 * A node is steady when every temperature of a package that it has, and the mean frequency of its PUs, keep
 * to these limits over the last window (steadiness.h).
 */
enum warm_up_kind { WARM_UP_NONE, WARM_UP_TIME, WARM_UP_STEADY };
enum warm_up_load { WARM_UP_AGENT, WARM_UP_STRESS, WARM_UP_STRESS_NG };

extern const char *const warm_up_load_names[]; /* of programs other than the agent, also of their packages */

struct steadiness_limits {
    double window_seconds;
    double temperature_slope, temperature_spread; /* Cel: over a window; off the line */
    double frequency_slope, frequency_spread;     /* of the mean, likewise */
};

struct warm_up_settings {
    enum warm_up_kind kind;
    enum warm_up_load load;
    double seconds;         /* WARM_UP_TIME; of others 0 and -1 */
    double at_most_seconds; /* WARM_UP_STEADY */
    struct steadiness_limits limits;
};

/*
 * `gates:`, what becomes of a unit by the state that it ran under.
 *
 *     gates: flag                     # all of them: none, flag, repeat, drop or stop
 *     gates:
 *       all: flag                     # those that are not named
 *       throttle: repeat              # a core or package was slowed down by its temperature or power
 *       frequency: flag               # the unit's PUs were slower or faster than the controls set
 *       temperature: flag             # off the band that the warm-up reached
 *       drift: stop                   # a control is not as it was set any more
 *       load: flag                    # other programs took processor time
 *       kernel: flag                  # the kernel logged an error
 *       unwatched: flag               # no samples say what the unit ran under
 *       repeats: 3                    # of one unit at most; then it stays flagged
 *       frequency-tolerance: 5%
 *       temperature-band: 5 Cel       # to either side of what the warm-up reached
 *       foreign-load: 0.5             # in processors
 *
 * flag: the unit's row says so (`flags`). repeat: it is flagged, and measured again, as a new attempt. drop:
 * its node is excluded from the run (nodes.h). stop: the run ends as failed. What the rows say is
 * FORMAT.md, "results/results.csv". What is measured without probes is not flagged.
 */
enum gate_kind {
    GATE_THROTTLE,
    GATE_FREQUENCY,
    GATE_TEMPERATURE,
    GATE_DRIFT,
    GATE_LOAD,
    GATE_KERNEL,
    GATE_UNWATCHED,
    GATE_KINDS,
};
enum gate_action { GATE_NONE, GATE_FLAG, GATE_REPEAT, GATE_DROP, GATE_STOP };

/* The probe that a gate reads; PROBE_KINDS for GATE_UNWATCHED. */
enum probe_kind gate_probe(enum gate_kind gate);

extern const char *const gate_kind_names[GATE_KINDS + 1]; /* the last is NULL */
extern const char *const gate_action_names[];

struct gate_settings {
    enum gate_action actions[GATE_KINDS];
    enum gate_action all; /* of those that are not named */
    int64_t repeats;
    double frequency_tolerance; /* relative */
    double temperature_band;    /* Cel */
    double foreign_load;        /* processors */
};

/*
 * `node-loss:`, what becomes of the run when a node is lost.
 *
 *     node-loss: continue             # abort, continue or replace
 *     node-loss:
 *       do: continue
 *       at-least: 2                   # fewer nodes left than that: abort
 *
 * abort: the run ends as failed. continue: the node is excluded, and the others continue (nodes.h).
 * replace: likewise, and one of the testbed's spares measures the node's share. By default a run with spares
 * replaces, one on several nodes continues, and one on a single node aborts.
 */
enum node_loss_action { NODE_LOSS_ABORT, NODE_LOSS_CONTINUE, NODE_LOSS_REPLACE };

struct node_loss_settings {
    enum node_loss_action action;
    int64_t at_least; /* nodes */
};

/*
 * `walltime:`, the time that a part of the run may take.
 *
 *     walltime: 2h                    # from the beginning of each part, restoring and sealing included
 *     walltime:
 *       limit: 2h                     # or none
 *       margin: 30 s                  # kept beside what restoring and sealing are measured to take
 *       model: model.json             # of `assay fit`, to predict how long units take
 *
 * Without a limit the rest still holds for a deadline from elsewhere (deadline.h). The margin is `auto` by
 * default: a tenth of what it is kept beside, and at least 5 s. The model's path is relative to the campaign.
 */
struct walltime_settings {
    double limit_seconds;  /* 0: none */
    double margin_seconds; /* negative: the default */
    char *model;           /* absolute path; NULL: none */
};

/*
 * `provenance:`, how much the archive keeps beside the results.
 *
 *     provenance: full                # or lean
 *
 * full: of each node all that nodes/facts-files.c lists, and copies of sources up to 256 MiB. lean: neither
 * lists of packages and devices nor the kernel's log, and copies of sources up to 4 MiB. Of larger sources
 * the archive has hash and listing.
 */
enum provenance { PROVENANCE_FULL, PROVENANCE_LEAN };
/* The largest source of which the archive has a copy. */
uint64_t provenance_source_bytes(enum provenance provenance);

/*
 * `redact:`, what is taken out of the archive for strangers.
 *
 *     redact: none                    # or people: names of users, and addresses of the network
 */
enum redact { REDACT_NONE, REDACT_PEOPLE };

/* The longest that is taken: of limits and of --until from now. */
#define WALLTIME_SECONDS_MAX (400 * 86400.0)

/*
 * Where an experiment's software comes from, beside Debian's packages: keys of the experiment, or of the
 * campaign, which knows its site better; then they take the place of all that the experiment says of these.
 *
 *     modules: [gcc/12, openmpi/4.1]    # Lmod or Environment Modules
 *     spack: [hpl@2.3]                  # installed specs; or {specs: [hpl@2.3], environment: DIR}
 *     container: image.sif              # or {image: image.sif, command: [apptainer, exec]}
 *     prefix: /opt/openmpi              # a folder with bin, lib, include; or several, the first in front
 */
enum software_kind {
    SOFTWARE_MODULES,
    SOFTWARE_SPACK,
    SOFTWARE_SPACK_ENVIRONMENT,
    SOFTWARE_PREFIX,
    SOFTWARE_CONTAINER, /* arguments that go before each command, NULL-ended; the last is the image */
    SOFTWARE_KINDS,
};
extern const char *const software_kind_names[SOFTWARE_KINDS];

struct software_settings {
    struct bind_texts kinds[SOFTWARE_KINDS];
    char *image; /* as written; NULL: no container */
    struct bind_texts command;
};

enum { SOFTWARE_FIELDS = 4 };
extern const struct bind_field software_fields[SOFTWARE_FIELDS];

/* Whether ROOT, a campaign or an experiment, has one of these keys. */
bool software_settings_given(const struct document_node *root);
/* Once they are bound: makes SOFTWARE_CONTAINER. */
int software_settings_finish(struct software_settings *settings, const struct document *document,
                             const struct document_node *root, struct failure *failure);
void software_settings_clear(struct software_settings *settings);
/* Appends "modules gcc/12 openmpi/4.1; prefix /opt"; nothing where nothing is asked for. */
void software_settings_describe(const struct software_settings *settings, struct text *ret);

/* A name of a package of Debian: NULL, or what was expected. */
const char *package_expectation(const char *key, const char *value);

/* ---- All of them: for campaign_read(), for tests, and to be printed. */

/* Binds what the document of CAMPAIGN, whose folder is known, says of these keys, and its testbed; its other
 * keys are only looked at. Of COMMAND_LINE, nodes and spares count, and, unless its document is NULL, the
 * root of that and its folder in place of the campaign's testbed. */
int settings_bind(struct campaign *campaign, const struct testbed_written *command_line,
                  struct failure *failure);
void settings_clear(struct campaign *campaign);
/* For people, a line a key; and as keys of a campaign. */
void settings_describe(const struct campaign *campaign, struct text *ret);
void settings_resolve(const struct campaign *campaign, cJSON *object);

#endif
