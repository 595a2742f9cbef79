/* What the replay says that HPL does, against what instrumented runs of HPL 2.3 did: every message and every
 * kernel of every process (../shared/data/hpl-counts), and some cases that were counted by hand. The plugin's
 * sources are included: what is tested is inside it. */
#include "plugins/predict-hpl-replay/broadcast.c"
#include "plugins/predict-hpl-replay/counts.c"
#include "plugins/predict-hpl-replay/factorisation.c"
#include "plugins/predict-hpl-replay/hpl.c"
#include "plugins/predict-hpl-replay/swap.c"
#include "tests/test.h"
#include "tests/unit/plugin/gzip-file.h"

#include <math.h>

struct operation {
    const char *name;
    int phase;
    int64_t a, b, c;
};

struct operations {
    struct operation *items;
    size_t count, size;
};

static void add_operation(struct operations *list, struct operation operation) {
    if (list->count == list->size) {
        list->size = list->size > 0 ? 2 * list->size : 1024;
        list->items = realloc(list->items, list->size * sizeof *list->items);
        assert_non_null(list->items);
    }
    list->items[list->count++] = operation;
}

static void observe(void *context, int rank, const char *name, enum hpl_phase phase, int64_t a, int64_t b,
                    int64_t c) {
    struct operations *by_rank = context;
    add_operation(&by_rank[rank], (struct operation){name, (int)phase, a, b, c});
}

/* ---- The files of runs */

enum { RUNS_MAX = 512, ORDER_MAX = 1000 };

struct run {
    char kind[16], build[16];
    struct hpl hpl;
    int probe, same_messages;
    int64_t sent, bytes;
    struct counts_message *messages;
    size_t message_count;
    double (*kernels)[HPL_PHASES][HPL_KERNELS][COUNTS_SUMS];
    struct operations *order;
};

static struct run runs[RUNS_MAX];
static int *pivots[ORDER_MAX + 1];

static FILE *open_file(const char *name) {
    char path[8192], header[1024];
    snprintf(path, sizeof path, "%s/hpl-counts/%s", test_data(), name);
    if (strstr(name, ".gz")) {
        assert_int_equal(gzip_file_read(path, test_path("plain.csv")), 0);
        snprintf(path, sizeof path, "%s", test_path("plain.csv"));
    }
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(fgets(header, sizeof header, file));
    return file;
}

static int find_name(const char *const *names, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    fail_msg("'%s' is not known", name);
    return -1;
}

static void read_runs(void) {
    static bool is_read;
    char line[1024];
    if (is_read)
        return;
    is_read = true;
    FILE *file = open_file("pivots.csv");
    int n, column, row;
    while (fgets(line, sizeof line, file) && sscanf(line, "%d,%d,%d", &n, &column, &row) == 3) {
        assert_in_range(n, 1, ORDER_MAX);
        if (!pivots[n])
            pivots[n] = calloc((size_t)n, sizeof *pivots[n]);
        pivots[n][column] = row;
    }
    fclose(file);
    file = open_file("runs.csv");
    while (fgets(line, sizeof line, file)) {
        int run, swap, bcast, rfact, pfact, pmap, l1, u, equil;
        struct run new = {0};
        struct hpl *h = &new.hpl;
        long long sent, bytes;
        int got = sscanf(
            line,
            "%d,%15[^,],%*d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%15[^,],%*[^,],%d,%*d,%*[^,],"
            "%*d,%*d,%lld,%lld",
            &run, new.kind, &h->n, &h->nb, &h->p, &h->q, &h->depth, &bcast, &swap, &h->swap_threshold, &rfact,
            &pfact, &h->nbmin, &h->ndiv, &pmap, &l1, &u, &equil, new.build, &new.probe, &sent, &bytes);
        assert_int_equal(got, 22);
        h->bcast = bcast, h->swap = swap, h->rfact = rfact, h->pfact = pfact;
        h->column_major = pmap, h->l1_plain = l1, h->u_plain = u, h->equilibrate = equil;
        h->copy_l = strcmp(new.build, "copyl") == 0 || strcmp(new.build, "nodt") == 0;
        h->pivots = pivots[h->n];
        new.sent = sent, new.bytes = bytes;
        new.same_messages = run;
        new.kernels = calloc((size_t)(h->p * h->q), sizeof *new.kernels);
        new.order = strcmp(new.kind, "order") == 0 ? calloc((size_t)(h->p * h->q), sizeof *new.order) : NULL;
        runs[run] = new;
    }
    fclose(file);
    file = open_file("messages_same.csv");
    while (fgets(line, sizeof line, file)) {
        int run, same;
        assert_int_equal(sscanf(line, "%d,%d", &run, &same), 2);
        runs[run].same_messages = same;
    }
    fclose(file);
    file = open_file("messages.csv.gz");
    size_t size = 0;
    while (fgets(line, sizeof line, file)) {
        int run, rank, peer;
        char phase[16], type[16];
        long long bytes, times;
        assert_int_equal(sscanf(line, "%d,%d,%15[^,],%15[^,],%d,%lld,%lld", &run, &rank, phase, type, &peer,
                                &bytes, &times),
                         7);
        struct run *of = &runs[run];
        size = of->message_count == 0 ? 0 : size;
        if (of->message_count == size) {
            size = size > 0 ? 2 * size : 256;
            of->messages = realloc(of->messages, size * sizeof *of->messages);
        }
        of->messages[of->message_count++] =
            (struct counts_message){rank,
                                    find_name(hpl_phase_names, HPL_PHASES, phase),
                                    find_name(hpl_call_names, HPL_CALLS, type),
                                    peer,
                                    bytes,
                                    times};
    }
    fclose(file);
    file = open_file("kernels.csv.gz");
    while (fgets(line, sizeof line, file)) {
        int run, rank, at;
        char phase[16], kernel[16];
        assert_int_equal(sscanf(line, "%d,%d,%15[^,],%15[^,],%*[^,],%n", &run, &rank, phase, kernel, &at), 4);
        double *sums = runs[run].kernels[rank][find_name(hpl_phase_names, HPL_PHASES, phase)]
                                        [find_name(hpl_kernel_names, HPL_KERNELS, kernel)];
        char *text = line + at;
        for (int i = 0; i < COUNTS_SUMS; i++, text++)
            sums[i] = strtod(text, &text);
    }
    fclose(file);
    file = open_file("order.csv.gz");
    while (fgets(line, sizeof line, file)) {
        int run, rank;
        char name[16], phase[16];
        long long a, b, c;
        assert_int_equal(
            sscanf(line, "%d,%d,%*d,%15[^,],%15[^,],%lld,%lld,%lld", &run, &rank, name, phase, &a, &b, &c),
            7);
        const char *plain = name[0] == '+' ? name + 1 : name;
        bool is_call = plain[0] >= 'A' && plain[0] <= 'Z';
        const char *known = is_call ? hpl_call_names[find_name(hpl_call_names, HPL_CALLS, plain)]
                                    : hpl_kernel_names[find_name(hpl_kernel_names, HPL_KERNELS, plain)];
        add_operation(
            &runs[run].order[rank],
            (struct operation){known, find_name(hpl_phase_names, HPL_PHASES, phase), a, b, is_call ? 0 : c});
    }
    fclose(file);
}

/* Magnitudes of HPL's own matrix while it is factored: number n * j + i of row i in column j before step j.
 * Its generator is x -> 6364136223846793005 x + 1, by columns, from the seed 100. */
static const double *factor_matrix(size_t n) {
    static double *known[ORDER_MAX + 1];
    double *a = calloc(n * n, sizeof *a), *ret = known[n] = known[n] ? known[n] : calloc(n * n, sizeof *ret);
    uint64_t x = 100;
    for (size_t i = 0; ret[0] == 0 && i < n * n; i++) {
        x = 6364136223846793005u * x + 1;
        a[i] = 0.5 - ((double)(x & 0xffffffff) / 0x1p32 + (double)(x >> 32)) / 0x1p32;
    }
    for (size_t j = 0; j < n && ret[n * j] == 0; j++) {
        double *column = a + j * n;
        size_t pivot = (size_t)pivots[n][j];
        for (size_t i = 0; i < n; i++)
            ret[n * j + i] = fabs(column[i]);
        for (size_t k = 0; k < n; k++) {
            double swapped = a[k * n + j];
            a[k * n + j] = a[k * n + pivot];
            a[k * n + pivot] = swapped;
        }
        for (size_t i = j + 1; i < n; i++)
            column[i] /= column[j];
        for (size_t k = j + 1; k < n; k++)
            for (size_t i = j + 1; i < n; i++)
                a[k * n + i] -= column[i] * a[k * n + j];
    }
    free(a);
    return ret;
}

static double *find_peaks(const struct hpl *hpl) {
    size_t n = (size_t)hpl->n, p = (size_t)hpl->p;
    const double *magnitudes = factor_matrix(n);
    double *ret = calloc(n * p, sizeof *ret);
    for (size_t j = 0; j < n; j++)
        for (size_t i = j; i < n; i++) {
            double *peak = &ret[j * p + i / (size_t)hpl->nb % p];
            *peak = fmax(*peak, magnitudes[n * j + i]);
        }
    return ret;
}

static int wrong_messages(const struct run *run, struct counts *counter, int number) {
    const struct run *of = &runs[run->same_messages];
    size_t count = of->message_count;
    struct counts_message *expected = of->messages, *found = counter->messages;
    counts_sort(expected, &count);
    for (size_t i = 0; i < count || i < counter->message_count; i++) {
        struct counts_message none = {0}, *e = i < count ? &expected[i] : &none;
        struct counts_message *f = i < counter->message_count ? &found[i] : &none;
        if (counts_compare(e, f) != 0 || e->count != f->count) {
            print_error("run %d: message %zu of rank %d: %s %s peer %d, %lld bytes, %lld times; expected "
                        "rank %d: %s %s "
                        "peer %d, %lld bytes, %lld times\n",
                        number, i, f->rank, hpl_phase_names[f->phase], hpl_call_names[f->type], f->peer,
                        (long long)f->bytes, (long long)f->count, e->rank, hpl_phase_names[e->phase],
                        hpl_call_names[e->type], e->peer, (long long)e->bytes, (long long)e->count);
            return 1;
        }
    }
    return 0;
}

/* Where a real run probed by itself, the number of pieces of an update is not known. */
static int wrong_kernels(const struct run *run, const struct counts *counter, int number, bool is_free) {
    int wrong = 0;
    for (int rank = 0; rank < run->hpl.p * run->hpl.q; rank++)
        for (int phase = 0; phase < HPL_PHASES; phase++)
            for (int kernel = 0; kernel < HPL_KERNELS; kernel++) {
                const double *e = run->kernels[rank][phase][kernel],
                             *f = counter->kernels[rank][phase][kernel];
                bool is_wrong = is_free && phase == HPL_UPDATE
                                    ? kernel == HPL_DGEMM && e[COUNTS_MNK] != f[COUNTS_MNK]
                                    : memcmp(e, f, COUNTS_SUMS * sizeof *e) != 0;
                if (is_wrong && wrong++ == 0) {
                    print_error("run %d: rank %d: %s %s:", number, rank, hpl_phase_names[phase],
                                hpl_kernel_names[kernel]);
                    for (int i = 0; i < COUNTS_SUMS; i++)
                        print_error(" %.17g", f[i]);
                    print_error("; expected");
                    for (int i = 0; i < COUNTS_SUMS; i++)
                        print_error(" %.17g", e[i]);
                    print_error("\n");
                }
            }
    return wrong > 0;
}

static int wrong_order(const struct run *run, const struct operations *order, int number) {
    for (int rank = 0; run->order && rank < run->hpl.p * run->hpl.q; rank++) {
        const struct operations *expected = &run->order[rank], *found = &order[rank];
        for (size_t i = 0; i < expected->count || i < found->count; i++) {
            const struct operation *e = &expected->items[i], *f = &found->items[i];
            if (i == expected->count || i == found->count || strcmp(e->name, f->name) != 0 ||
                e->phase != f->phase || e->a != f->a || e->b != f->b || e->c != f->c) {
                print_error(
                    "run %d: rank %d: operation %zu of %zu (%zu expected) differs: %s %lld %lld %lld\n",
                    number, rank, i, found->count, expected->count, i < found->count ? f->name : "",
                    i < found->count ? (long long)f->a : 0, i < found->count ? (long long)f->b : 0,
                    i < found->count ? (long long)f->c : 0);
                return 1;
            }
        }
    }
    return 0;
}

TEST(every_message_and_kernel_of_real_runs) {
    int compared = 0, wrong = 0, free_runs = 0;
    if (!test_data())
        test_skip("no measured runs");
    read_runs();
    for (int i = 0; i < RUNS_MAX; i++) {
        struct run *run = &runs[i];
        struct hpl *hpl = &run->hpl;
        if (hpl->n == 0)
            continue;
        double *peaks = hpl->p > 2 ? find_peaks(hpl) : NULL;
        hpl->peaks = peaks;
        bool is_free = run->probe == 0 && hpl->depth > 0 && hpl->q > 1 && hpl->bcast < HPL_LONG;
        struct counts counter;
        struct operations *order = run->order ? calloc((size_t)(hpl->p * hpl->q), sizeof *order) : NULL;
        assert_int_equal(counts_make(hpl, run->probe == 2, order ? observe : NULL, order, &counter), 0);
        int bad = wrong_messages(run, &counter, i) + wrong_kernels(run, &counter, i, is_free) +
                  wrong_order(run, order, i);
        wrong += bad > 0;
        compared++;
        free_runs += is_free;
        counts_clear(&counter);
        for (int rank = 0; order && rank < hpl->p * hpl->q; rank++)
            free(order[rank].items);
        free(order);
        hpl->peaks = NULL;
        free(peaks);
    }
    print_message("%d runs compared, %d of which probed by themselves; %d wrong\n", compared, free_runs,
                  wrong);
    assert_int_equal(wrong, 0);
}

/* ---- Rules that need no run */

static int64_t count_sends(const struct counts *counter, enum hpl_phase phase) {
    int64_t ret = 0;
    for (size_t i = 0; i < counter->message_count; i++)
        if (counter->messages[i].phase == (int)phase && counter->messages[i].type <= HPL_ISSEND)
            ret += counter->messages[i].count;
    return ret;
}

/* Every message that is sent is received, with its length. */
static void check_pairs(struct counts *counter) {
    struct counts_message *ends = calloc(counter->message_count, sizeof *ends);
    size_t count = 0;
    for (size_t i = 0; i < counter->message_count; i++) {
        struct counts_message *m = &counter->messages[i];
        bool is_send = m->type <= HPL_ISSEND;
        if (m->type != HPL_WAIT)
            ends[count++] = (struct counts_message){
                is_send ? m->rank : m->peer, m->phase, 0,
                is_send ? m->peer : m->rank, m->bytes, is_send ? m->count : -m->count};
    }
    counts_sort(ends, &count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(ends[i].count, 0);
    free(ends);
}

TEST(messages_and_flops_of_any_grid) {
    /* Sends of a column's pivot search: p2 log2(p2) + 3 (P - p2), p2 being the greatest power of 2 in P. */
    static const int pivot_sends[] = {0, 0, 2, 5, 8, 11, 14, 17, 24};
    static const struct {
        int n, nb, p, q, depth, bcast, swap, nbmin, ndiv;
    } cases[] = {{40, 8, 4, 2, 1, 0, 0, 2, 2}, {41, 8, 3, 5, 1, 1, 0, 1, 3}, {64, 8, 2, 4, 0, 2, 1, 4, 2},
                 {33, 4, 5, 3, 2, 3, 2, 2, 2}, {50, 7, 6, 3, 1, 4, 0, 3, 2}, {50, 7, 7, 4, 1, 5, 1, 2, 4},
                 {30, 8, 8, 1, 1, 0, 0, 2, 2}, {30, 8, 1, 6, 3, 2, 0, 2, 2}, {5, 8, 2, 2, 3, 0, 0, 2, 2}};
    int drawn[64];
    hpl_draw_pivots(64, 7, drawn);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int n = cases[i].n, nb = cases[i].nb, p = cases[i].p, q = cases[i].q,
            depth = q > 1 ? cases[i].depth : 0;
        struct hpl hpl = {.n = n,
                          .nb = nb,
                          .p = p,
                          .q = q,
                          .depth = cases[i].depth,
                          .bcast = cases[i].bcast,
                          .swap = cases[i].swap,
                          .swap_threshold = 8,
                          .nbmin = cases[i].nbmin,
                          .ndiv = cases[i].ndiv,
                          .rfact = i % 3,
                          .pfact = i / 3 % 3,
                          .equilibrate = true,
                          .pivots = drawn};
        hpl_draw_pivots(n, i, drawn);
        for (int is_late = 0; is_late < 2; is_late++) {
            struct counts counter;
            int64_t panels = (n + nb - 1) / nb, flops = 0, found = 0, each = 0;
            assert_int_equal(counts_make(&hpl, is_late, NULL, NULL, &counter), 0);
            for (int j = 0; j < n; j += nb) {
                int64_t width = n - j < nb ? n - j : nb;
                flops += (n - j - width) * (n + 1 - j - width) * width;
            }
            for (int rank = 0; rank < p * q; rank++)
                found += (int64_t)counter.kernels[rank][HPL_UPDATE][HPL_DGEMM][COUNTS_MNK];
            assert_int_equal(found, flops);
            assert_int_equal(count_sends(&counter, HPL_FACT), n * pivot_sends[p]);
            each = hpl.bcast < HPL_LONG ? q - 1 : hpl.bcast == HPL_LONG ? q * q - 1 : (q - 1) * (q - 1);
            assert_int_equal(count_sends(&counter, HPL_BCAST),
                             (panels > depth ? panels : depth) * p * (q > 1 ? each : 0));
            check_pairs(&counter);
            counts_clear(&counter);
        }
    }
}

/* One update of N/2 rows by N/2 + 1 columns: m n k is beyond 64 bits. */
TEST(products_beyond_64_bits) {
    enum { HALF = 2200000 };
    int *pivots_of_large = calloc(2 * HALF, sizeof *pivots_of_large);
    struct hpl hpl = {.n = 2 * HALF,
                      .nb = HALF,
                      .p = 1,
                      .q = 1,
                      .nbmin = HALF,
                      .ndiv = 2,
                      .pfact = HPL_RIGHT,
                      .pivots = pivots_of_large};
    struct counts counter;
    for (int i = 0; i < hpl.n; i++)
        pivots_of_large[i] = i;
    assert_int_equal(counts_make(&hpl, false, NULL, NULL, &counter), 0);
    const double *sums = counter.kernels[0][HPL_UPDATE][HPL_DGEMM];
    assert_float_equal(sums[COUNTS_MNK] / ((double)HALF * HALF * (HALF + 1.0)), 1, 1e-12);
    counts_clear(&counter);
    free(pivots_of_large);
}

/* N = 2, NB = 1, 2 x 1, the second row is the first pivot: counted by hand. Column 0: each process sends its
 * candidate, jb + 4 = 5 numbers, the root with its row 6. The swap of the right-hand side and of column 1: 2
 * local columns; the pivot row goes to process 0 with its index, 3 numbers; U comes back, 2. Column 1: the
 * last row is in process 1, which is the root. Nothing is left but the right-hand side, one column: U alone
 * goes, 1 number. Then x2 goes up to process 0, which divides, and x1 comes down. */
TEST(two_rows_by_hand) {
    static const struct counts_message expected[] = {
        {0, HPL_FACT, HPL_SEND, 1, 40, 1}, {0, HPL_FACT, HPL_SEND, 1, 48, 1},
        {0, HPL_SWAP, HPL_SEND, 1, 16, 1}, {0, HPL_TRSV, HPL_SEND, 1, 8, 1},
        {1, HPL_FACT, HPL_SEND, 0, 40, 1}, {1, HPL_FACT, HPL_SEND, 0, 48, 1},
        {1, HPL_SWAP, HPL_SEND, 0, 8, 1},  {1, HPL_SWAP, HPL_SEND, 0, 24, 1},
        {1, HPL_TRSV, HPL_SEND, 0, 8, 1}};
    static const int swapped[] = {1, 1};
    struct hpl hpl = {.n = 2, .nb = 1, .p = 2, .q = 1, .nbmin = 1, .ndiv = 2, .pivots = swapped};
    struct counts counter;
    size_t sends = 0;
    assert_int_equal(counts_make(&hpl, false, NULL, NULL, &counter), 0);
    for (size_t i = 0; i < counter.message_count; i++)
        if (counter.messages[i].type <= HPL_ISSEND) {
            assert_true(sends < sizeof expected / sizeof *expected);
            assert_int_equal(counts_compare(&counter.messages[i], &expected[sends]), 0);
            assert_int_equal(counter.messages[i].count, expected[sends++].count);
        }
    assert_int_equal(sends, sizeof expected / sizeof *expected);
    counts_clear(&counter);
}

static double swap_bytes(const struct hpl *hpl) {
    struct counts counts;
    double ret = 0;
    assert_int_equal(counts_make(hpl, false, NULL, NULL, &counts), 0);
    for (size_t i = 0; i < counts.message_count; i++)
        if (counts.messages[i].phase == HPL_SWAP && counts.messages[i].type <= HPL_ISSEND)
            ret += (double)(counts.messages[i].bytes * counts.messages[i].count);
    counts_clear(&counts);
    return ret;
}

/* Of the runs with real pivots: what is sent in row swaps is among what 20 seeds of drawn pivots send, or as
 * near as they are to each other. */
TEST(drawn_pivots_move_as_much) {
    int compared = 0;
    static int drawn[ORDER_MAX];
    if (!test_data())
        test_skip("no measured runs");
    read_runs();
    for (int i = 0; i < RUNS_MAX && compared < 12; i += 1) {
        struct hpl hpl = runs[i].hpl;
        if (hpl.n != 1000 || hpl.p < 2)
            continue;
        double real = swap_bytes(&hpl), least = INFINITY, most = 0;
        hpl.pivots = drawn;
        for (uint64_t seed = 0; seed < 20; seed++) {
            hpl_draw_pivots(hpl.n, seed, drawn);
            double bytes = swap_bytes(&hpl);
            least = fmin(least, bytes);
            most = fmax(most, bytes);
        }
        assert_true(least - (most - least) <= real && real <= most + (most - least));
        compared++;
    }
    assert_true(compared > 8);
}
