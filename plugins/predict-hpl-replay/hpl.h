/*
 * What HPL 2.3 does, step by step: which process calls which kernel with which sizes, and which MPI call with
 * which peer and bytes, in order. Source: A. Petitet, R. C. Whaley, J. Dongarra, A. Cleary, HPL 2.3
 * (netlib.org/benchmark/hpl); the structure follows its pdgesv, pdfact, pdmxswp, pdlaswp00, pdlaswp01,
 * pdupdate, bcast and pdtrsv.
 *
 * The P processes of one column of the grid do the same steps in the same order. So the walk goes by steps of
 * a process column, and gives the operations of its P processes to a `struct hpl_sink`. A sink may count, may
 * queue them for each process, or may compute with times of the whole column at once.
 *
 * A process is (row, column). Its rank is row * Q + column, or column * P + row by PMAP = column.
 * Columns and rows of the matrix are global and count from 0. The matrix has N rows and N + 1 columns: the
 * last one is the right-hand side.
 */
#ifndef ASSAY_PREDICT_HPL_REPLAY_HPL_H
#define ASSAY_PREDICT_HPL_REPLAY_HPL_H

#include <stdbool.h>
#include <stdint.h>

/* As numbered in HPL.dat. */
enum hpl_variant { HPL_LEFT, HPL_CROUT, HPL_RIGHT };
enum hpl_broadcast { HPL_1RING, HPL_1RINGM, HPL_2RING, HPL_2RINGM, HPL_LONG, HPL_LONGM };
enum hpl_swap { HPL_BINARY_EXCHANGE, HPL_SPREAD_ROLL, HPL_MIX };

struct hpl {
    int n, nb, p, q;
    int depth;                /* of the look-ahead */
    enum hpl_broadcast bcast; /* of panels */
    enum hpl_swap swap;       /* of rows */
    int swap_threshold; /* local columns up to which HPL_MIX swaps by binary exchange, else by spread-roll */
    enum hpl_variant rfact, pfact;
    int nbmin, ndiv;        /* the recursion ends at nbmin columns, and divides by ndiv */
    bool column_major;      /* PMAP: ranks go down the columns of the grid */
    bool l1_plain, u_plain; /* L1, U are stored without transposition */
    bool equilibrate;       /* HPL_SPREAD_ROLL makes the pieces equally long before they roll */
    bool copy_l;            /* built with HPL_COPY_L: the panel is copied before it is sent */
    /* As rocHPL does it, on accelerators: the update of all but the next panel's columns is in two parts. The
     * right one, up to this share of a process's columns, is under way while the panel is factored and
     * broadcast and the left one's rows are swapped; the left one while the right one's rows are swapped for
     * the next panel. `depth` has no effect then. */
    bool is_split;
    double split;
    /* The panels that are factored, in rising order: each follows the one before as if there were none
     * between. The back substitution has all. NULL: all panels. */
    const int *chosen;
    int chosen_count;
    /* The global row with which row i is exchanged at step i, at least i: one for each of the N columns. */
    const int *pivots;
    /* For each column, P numbers: the greatest magnitude in the rows of each process row, below 0 where it
     * has none. They decide which copies the search for the pivot makes, and nothing else. NULL: not known;
     * copies are then made for the pivot itself only. */
    const double *peaks;
};

enum hpl_phase { HPL_FACT, HPL_BCAST, HPL_SWAP, HPL_UPDATE, HPL_TRSV, HPL_PHASES };

/* Sizes m, n, k as in BLAS; k of dtrsm is the order of the triangle. m alone: the length. Copies of rows have
 * (rows, columns); dlaswp04 has (rows of U, columns, rows of W), dlaswp10N (columns, rows). Where there are
 * two, N is for a U or L1 that is not transposed, T for one that is. */
enum hpl_kernel {
    HPL_DGEMM,
    HPL_DTRSM,
    HPL_DGEMV,
    HPL_DGER,
    HPL_DTRSV,
    HPL_DSCAL,
    HPL_DAXPY,
    HPL_DCOPY,
    HPL_IDAMAX,
    HPL_DLOCMAX,
    HPL_DLOCSWP_N,
    HPL_DLOCSWP_T,
    HPL_DLACPY,
    HPL_DLATCPY,
    HPL_DLASWP00_N,
    HPL_DLASWP01_N,
    HPL_DLASWP01_T,
    HPL_DLASWP02_N,
    HPL_DLASWP03_N,
    HPL_DLASWP03_T,
    HPL_DLASWP04_N,
    HPL_DLASWP04_T,
    HPL_DLASWP05_N,
    HPL_DLASWP05_T,
    HPL_DLASWP06_N,
    HPL_DLASWP06_T,
    HPL_DLASWP10_N,
    HPL_KERNELS
};
extern const char *const hpl_kernel_names[HPL_KERNELS];
/* How many of m, n, k are sizes of KERNEL. Where one of these is 0, the kernel does nothing. */
static inline int hpl_dimensions(enum hpl_kernel kernel) {
    return kernel <= HPL_DTRSM ? 3 : kernel >= HPL_DSCAL && kernel <= HPL_DLOCSWP_T ? 1 : 2;
}
extern const char *const hpl_phase_names[HPL_PHASES];

enum hpl_call { HPL_SEND, HPL_SSEND, HPL_ISSEND, HPL_RECV, HPL_IRECV, HPL_WAIT, HPL_CALLS };
extern const char *const hpl_call_names[HPL_CALLS];

/* What a process does besides calls and kernels. PANEL and COLUMNS are arguments of hpl_sink.control. */
enum hpl_control {
    HPL_FACTOR, /* the whole column factors PANEL together: hpl_factor() has the operations */
    HPL_START,  /* PANEL is to be broadcast. Its root, and with HPL_LONG and HPL_LONGM everybody, does all of
                   hpl_broadcast() now. Others probe, here and at each HPL_PROBE. When the panel is there,
                   they do it then, and probe no more. */
    HPL_PROBE,  /* asks whether the panel is there, unless it was already received */
    HPL_CHUNKS, /* updates COLUMNS local columns with PANEL: hpl_chunk() for NB columns at a time, with a
                   probe after each, until the panel that is awaited was received; then for the rest at once
                 */
    HPL_FINISH, /* waits for the panel, if it was not yet received */
    HPL_LAUNCH, /* has its accelerator update COLUMNS local columns with PANEL, after what it has to do */
    HPL_MARK,   /* remembers what the accelerator has to do so far */
    HPL_AWAIT,  /* waits for the accelerator: COLUMNS 1: until it has done what it had to do at HPL_MARK */
};

/*
 * Takes the operations of the P processes of process column `column`, in order. Operations of one process are
 * in its order; those of two processes only where they exchange messages.
 */
struct hpl_sink {
    void *context; /* the caller's */
    const struct hpl *hpl;
    struct hpl_space *space;
    int column;
    enum hpl_phase phase;
    /* Rows FROM to TO - 1 of the grid call KERNEL. Its m is EACH[row], or SAME where EACH is NULL. HPL makes
     * calls with a size of 0, and so does the walk. */
    void (*kernel)(struct hpl_sink *sink, enum hpl_kernel kernel, int from, int to, const int *each, int same,
                   int n, int k);
    /* The process of ROW calls CALL. HPL_WAIT is for its last HPL_IRECV or HPL_ISSEND, and has no peer. */
    void (*call)(struct hpl_sink *sink, enum hpl_call call, int row, int peer_row, int peer_column,
                 int64_t bytes);
    /* Rows A and B of this column exchange messages: each calls Irecv, Send and Wait. A direction of 0 bytes
     * is not there: the call is then a Send and a Recv, or nothing. NULL: done by `call`. */
    void (*exchange)(struct hpl_sink *sink, int a, int b, int64_t a_to_b, int64_t b_to_a);
    void (*control)(struct hpl_sink *sink, enum hpl_control control, int from, int to, int panel,
                    int columns);
    /* The messages of the search for one pivot, which are those of hpl_search(). The copies of candidates,
     * dcopy, dlocmax and dlocswp, are then not told. NULL: told one by one, with the copies. */
    void (*search)(struct hpl_sink *sink, int root, int width);
};

enum hpl_step_kind {
    HPL_STEP_FACTOR,
    HPL_STEP_BROADCAST,
    HPL_STEP_UPDATE,
    HPL_STEP_SOLVE,
    HPL_STEP_SWAP,    /* of the rows of `columns` local columns */
    HPL_STEP_CONTROL, /* `control`, with `columns` */
};

struct hpl_step {
    enum hpl_step_kind kind;
    int panel;    /* of HPL_STEP_SOLVE: the block that was solved before; or -1 at the end */
    int pending;  /* of HPL_STEP_UPDATE: the panel that is broadcast meanwhile, or -1 */
    int from, to; /* of HPL_STEP_UPDATE: the columns of the matrix that are updated, without TO */
    int columns;  /* of HPL_STEP_SWAP and HPL_STEP_CONTROL */
    enum hpl_control control;
};

/* Where a process column is in its steps. Begin with zeros. */
struct hpl_position {
    int iteration, part;
    bool is_solving;
};

/* Writes the next step of COLUMN into *RET and moves POSITION on. False: there are no more steps. */
bool hpl_next(const struct hpl *hpl, int column, struct hpl_position *position, struct hpl_step *ret);
/* Gives the operations of STEP to SINK. Of HPL_STEP_FACTOR that is the control HPL_FACTOR alone: the caller
 * has hpl_factor(). */
void hpl_emit(struct hpl_sink *sink, const struct hpl_step *step);

/* The factorisation of PANEL by the column that owns it: of its columns FROM to TO - 1, and, where TO is more
 * than its width, all that comes after the last. */
void hpl_factor(struct hpl_sink *sink, int panel, int from, int to);
/* The exchanges of the search for a pivot, in a panel of WIDTH columns whose diagonal block is in row ROOT.
 */
void hpl_search(struct hpl_sink *sink, int root, int width);
/* The part of the process in ROW in the broadcast of PANEL. */
void hpl_broadcast(struct hpl_sink *sink, int panel, int row);
/* Doubles of PANEL that each process in ROW gets. */
int64_t hpl_broadcast_length(const struct hpl *hpl, int panel, int row);
/*
 * HPL_LONG and HPL_LONGM cut the panel into as many pieces as the row has members; the root is member 0. A
 * binomial tree spreads them, one to each member: for each power of 2 that is below the number of members,
 * the largest BIT first, member I, a multiple of 2 BIT, sends the BIT pieces from I + BIT on to member I +
 * BIT. Then they roll: in each step a member exchanges a piece with a neighbour, to one side and the other in
 * turn, until all have all.
 */
static inline int hpl_roll_size(const struct hpl *hpl) { /* HPL_LONGM leaves the root's neighbour out */
    return hpl->bcast == HPL_LONGM ? hpl->q - 1 : hpl->q;
}
/* The process column of member I. */
int hpl_roll_member(const struct hpl *hpl, int panel, int i);
/* COUNT pieces from PIECE on. The last one also has what is left over. */
int64_t hpl_roll_bytes(const struct hpl *hpl, int panel, int row, int piece, int count);
/* The piece that member ME of SIZE sends, or receives, in STEP of the roll, 0 to SIZE - 2. Its neighbour is
 * the one before where ME + STEP is odd, else the one behind. */
int hpl_roll_piece(int size, int me, int step, bool is_received);
/* Whether that process can receive PANEL only by asking for it: a ring, and not its root. */
bool hpl_probes(const struct hpl *hpl, int panel, int column);
/* The column from which COLUMN receives PANEL in a ring. */
int hpl_ring_source(const struct hpl *hpl, int panel, int column);
/* The process in ROW updates COLUMNS of its columns with PANEL. */
void hpl_chunk(struct hpl_sink *sink, int panel, int row, int columns);

/* Working memory of these functions: how the rows of the last few panels move, and numbers by process row.
 * One serves all columns, one after the other. NULL: no memory. */
struct hpl_space {
    const struct hpl *hpl;
    int *numbers;  /* of 6 (P + 1) */
    double *peaks; /* of P */
    struct hpl_moves *moves;
    int cached;
    int *sources, *contents;
};
struct hpl_space *hpl_space_new(const struct hpl *hpl);
void hpl_space_free(struct hpl_space *space);
/* The swaps of PANEL's pivot rows in COLUMNS local columns: kernels, messages and probes. */
void hpl_swap_rows(struct hpl_sink *sink, int panel, int columns);

/* Draws pivots by chance into RET: each of the rows that are left is as likely. */
void hpl_draw_pivots(int n, uint64_t seed, int *ret);

/* ---- Block-cyclic arithmetic */

int hpl_panel_count(const struct hpl *hpl);
/* The first column of PANEL; N for one behind the last. */
static inline int hpl_panel_start(const struct hpl *hpl, int panel) {
    int64_t start = (int64_t)panel * hpl->nb;
    return start < hpl->n ? (int)start : hpl->n;
}
static inline int hpl_panel_width(const struct hpl *hpl, int panel) {
    int rest = hpl->n - hpl_panel_start(hpl, panel);
    return rest < hpl->nb ? rest : hpl->nb;
}
static inline int hpl_panel_row(const struct hpl *hpl, int panel) {
    return hpl_panel_start(hpl, panel) / hpl->nb % hpl->p;
}
static inline int hpl_panel_column(const struct hpl *hpl, int panel) {
    return hpl_panel_start(hpl, panel) / hpl->nb % hpl->q;
}
/* How many of the rows 0 to COUNT - 1 belong to process row WHICH of OF; the same for columns. */
static inline int hpl_local(int count, int nb, int which, int of) {
    int blocks = count / nb, rest = count % nb, turn = blocks % of;
    return blocks / of * nb + (which < turn ? nb : which == turn ? rest : 0);
}
/* Local rows of ROW from the first row of PANEL on. */
static inline int hpl_local_rows(const struct hpl *hpl, int panel, int row) {
    return hpl_local(hpl->n, hpl->nb, row, hpl->p) -
           hpl_local(hpl_panel_start(hpl, panel), hpl->nb, row, hpl->p);
}
/* Local rows of ROW below the diagonal block of PANEL. */
static inline int hpl_rows_below(const struct hpl *hpl, int panel, int row) {
    return hpl_local_rows(hpl, panel, row) -
           (row == hpl_panel_row(hpl, panel) ? hpl_panel_width(hpl, panel) : 0);
}
static inline int hpl_local_columns(const struct hpl *hpl, int from, int to, int column) {
    return to <= from ? 0 : hpl_local(to, hpl->nb, column, hpl->q) - hpl_local(from, hpl->nb, column, hpl->q);
}
static inline int hpl_rank(const struct hpl *hpl, int row, int column) {
    return hpl->column_major ? column * hpl->p + row : row * hpl->q + column;
}

static inline int hpl_row_of(const struct hpl *hpl, int rank) {
    return hpl->column_major ? rank % hpl->p : rank / hpl->q;
}
static inline int hpl_column_of(const struct hpl *hpl, int rank) {
    return hpl->column_major ? rank / hpl->p : rank % hpl->q;
}

/* ---- Used by several files of this plugin's HPL */

/* Rows A and B of the sink's column exchange messages: by sink->exchange, or else by calls. */
void hpl_exchange(struct hpl_sink *sink, int a, int b, int64_t a_to_b, int64_t b_to_a);
/* A broadcast of BYTES down a binomial tree, from row ROOT to the SIZE - 1 rows after it, cyclic. PROBES: all
 * of them probe after each round. */
void hpl_binomial(struct hpl_sink *sink, int root, int size, int64_t bytes, bool probes);
/* The largest power of 2 that is at most COUNT. */
static inline int hpl_power_below(int count) {
    int power = 1;
    while (power <= count / 2)
        power *= 2;
    return power;
}

#endif
