/* From models to a machine that the replay can run on. */
#ifndef ASSAY_PREDICT_HPL_REPLAY_MODELS_H
#define ASSAY_PREDICT_HPL_REPLAY_MODELS_H

#include "plugins/predict-hpl-replay/replay.h"

#include <assay/predict.h>

/* Each kernel, and each once more as it is in the factorisation of panels. */
enum { MODELS_KERNELS = 2 * HPL_KERNELS };

enum { ROLE_DGEMM, ROLE_KERNELS, ROLE_NETWORK, ROLE_LOOPBACK, ROLE_PIVOTS };

/* predict_plugin.open and close: bind each kernel's model. */
int models_open(const struct predict_inputs *inputs, void **ret_state, struct plugin_message *message);
void models_close(void *state);

struct models_request {
    const struct hpl *hpl;
    int ranks_per_node;
    int cpus_per_node; /* groups that are one node; 0: by their first label */
    int node_rows;     /* of the grid that a node has a block of; 0: ranks fill nodes in order */
    int threads;       /* of a rank, which share each dgemm and dtrsm */
    bool has_noise;
    double probe, card;        /* NaN: the network model's */
    bool is_deferred, is_smpi; /* probes find what calls before them brought in; are as SMPI has them */
    bool is_cut;               /* kernel times in whole microseconds */
    struct network_tree tree;  /* its cable in units of a card, if card_cables */
    bool card_cables, is_max_min;
};

struct machine {
    struct replay_machine replay;
    struct network_model network;
    const struct models *models;
    bool has_noise;
    double seconds[MODELS_KERNELS]; /* of a unit of the model's response, shared by threads */
    int *node_of;                   /* by rank */
    int *group_of[MODELS_KERNELS];  /* by rank */
    int *pivots;
    void *memory;
};

/* Whether nodes have a block each of the grid of HPL, if they are to have one. */
bool models_fit_grid(const struct models_request *request, const struct hpl *hpl);
/* The machine for a scenario. -EINVAL with a sentence: the models do not suffice. */
int machine_new(const void *state, const struct predict_inputs *inputs, const struct models_request *request,
                struct predict_output *output, struct machine **ret, struct plugin_message *message);
/* How many nodes the model of dgemm has. */
int models_nodes(const void *state, const struct models_request *request);
/* Node I of the machine is node NODES[I] of each kernel's model, which are repeated in order. */
void machine_choose_nodes(struct machine *machine, const struct models_request *request, const int *nodes);
/* Every process is as the mean of them: of each kernel it has the group that is nearest to their mean time of
 * a call of these sizes, and that mean. */
void machine_make_even(struct machine *machine, const struct hpl *hpl, double m, double n, double k);
/* The mean time of such a call of dgemm by the processes of NODE, s. */
double machine_node_time(const struct machine *machine, const struct hpl *hpl, int node, double m, double n,
                         double k);
/* "node 3 (LABEL)": by its number from 0, and what the model of dgemm calls it. */
void machine_name_node(const struct machine *machine, int node, char *ret, size_t size);
void machine_free(struct machine *machine);

#endif
