#!/bin/bash
# experiments/hpl/trace: every BLAS and MPI call of a program with its sizes, under OpenMPI and MPICH.
. "$(dirname "$0")/../tap.sh"
blas=$(find /usr/lib /usr/lib64 -path '*/blas/libblas.so.3' 2>/dev/null | head -1) # the reference: its cblas_dgemm calls dgemm_
[ -n "$blas" ] || plan_skip "the reference BLAS (libblas3) is not installed"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cd "$scratch" || exit 1

# Two ranks. `calls` makes calls whose list is below, `many` more than there is room for, `own` has a dgemm in itself.
cat >program.c <<'END'
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
void daxpy_(const int *n, const double *alpha, const double *x, const int *incx, double *y, const int *incy);
void dger_(const int *m, const int *n, const double *alpha, const double *x, const int *incx, const double *y,
           const int *incy, double *a, const int *lda);
void dgemm_(const char *, const char *, const int *m, const int *n, const int *k, const double *alpha, const double *a,
            const int *lda, const double *b, const int *ldb, const double *beta, double *c, const int *ldc);
void dtrsm_(const char *, const char *, const char *, const char *, const int *m, const int *n, const double *alpha,
            const double *a, const int *lda, double *b, const int *ldb);
int idamax_(const int *n, const double *x, const int *incx);
#ifdef OWN
void dgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k, const double *alpha, const double *a,
            const int *lda, const double *b, const int *ldb, const double *beta, double *c, const int *ldc) {}
int main(int argc, char **argv) {
    int one = 1;
    double x = 1;
    MPI_Init(&argc, &argv);
    dgemm_("N", "N", &one, &one, &one, &x, &x, &one, &x, &one, &x, &x, &one);
    MPI_Finalize();
}
#else
void cblas_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda, const double *b,
                 int ldb, double beta, double *c, int ldc);
static double x[10000], y[10000], a[100];
static void add(int n) {
    int one = 1;
    double alpha = 1;
    daxpy_(&n, &alpha, x, &one, y, &one);
}
static void added(void *from, void *into, int *n, MPI_Datatype *type) {
    add(3);
    for (int i = 0; i < *n; i++)
        ((double *)into)[i] += ((double *)from)[i];
}
static void *add_often(void *unused) {
    for (int i = 0; i < 100000; i++)
        add(1);
    return unused;
}
int main(int argc, char **argv) {
    int rank, flag, level;
    MPI_Comm turned;
    MPI_Request requests[2];
    MPI_Datatype spread;
    MPI_Op op;
    add(99); /* before MPI_Init */
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strcmp(argv[1], "many") == 0) {
        pthread_t threads[2];
        MPI_Bcast(x, 5, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        for (int i = 0; i < 2; i++)
            pthread_create(&threads[i], NULL, add_often, NULL);
        for (int i = 0; i < 3000; i++)
            MPI_Iprobe(1 - rank, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        for (int i = 0; i < 1000; i++) {
            int length = 1 + i % 2, one = 1;
            idamax_(&length, x, &one);
        }
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned); /* rank 0 is rank 1 there */
    MPI_Type_vector(5, 1, 7, MPI_DOUBLE, &spread);
    MPI_Type_commit(&spread);
    MPI_Op_create(added, 1, &op);
    if (rank == 0) {
        MPI_Send(x, 1000, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        MPI_Ssend(x, 1, spread, 0, 2, turned);
        MPI_Isend(x, 3, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(y, 4, MPI_DOUBLE, 1, 4, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Send(x, 0, MPI_INT, MPI_PROC_NULL, 5, MPI_COMM_WORLD);
        MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, y, 6, MPI_INT, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(y, 4000, MPI_CHAR, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Probe(1, 2, turned, MPI_STATUS_IGNORE);
        MPI_Recv(y, 80, MPI_BYTE, 1, MPI_ANY_TAG, turned, MPI_STATUS_IGNORE);
        MPI_Recv(y, 3, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Issend(x, 4, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD, &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Gather(x, 6, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
    }
    MPI_Iprobe(1 - rank, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Sendrecv(x, 20, MPI_INT, 1 - rank, 6, y, 20, MPI_INT, 1 - rank, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Bcast(x, 100, MPI_DOUBLE, 0, turned);
    MPI_Allreduce(x, y, 2, MPI_DOUBLE, op, MPI_COMM_WORLD); /* the daxpy of its operator is a part of it */
    MPI_Barrier(MPI_COMM_WORLD);

    int two = 2, three = 3, four = 4, six = 6, one = 1, none = 0, largest;
    double alpha = 1, beta = 0;
    for (int i = 0; i < 100; i++)
        x[i] = i;
    cblas_dgemm(102, 111, 111, 7, 5, 9, 1, x, 7, x, 9, 0, y, 7);
    double sum = 0;
    for (int i = 0; i < 9; i++)
        sum += x[6 + 7 * i] * x[i + 9 * 4];
    double product = y[6 + 7 * 4];
    dgemm_("N", "T", &four, &three, &two, &alpha, x, &four, x, &three, &beta, a, &four);
    dgemm_("N", "T", &four, &none, &two, &alpha, x, &four, x, &three, &beta, a, &four);
    for (int i = 0; i < 36; i++)
        a[i] = i % 7 == 0;
    dtrsm_("L", "U", "N", "N", &six, &two, &alpha, a, &six, x, &six);
    dtrsm_("R", "U", "N", "N", &six, &two, &alpha, a, &two, x, &six);
    dger_(&three, &two, &alpha, x, &one, x, &one, a, &three);
    add(10);
    largest = idamax_(&six, x, &one);
    if (product != sum)
        fprintf(stderr, "wrong product\n");
    if (largest != 6)
        fprintf(stderr, "wrong index %d\n", largest);
    MPI_Comm_free(&turned);
    MPI_Type_free(&spread);
    MPI_Finalize();
    return 0;
}
#endif
END
cat >expected <<'END'
mpi 0 Send 1 1000
mpi 0 Ssend 1 40
mpi 0 Isend 1 24
mpi 0 Irecv 1 32
mpi 0 Waitall -1 0
mpi 0 Send -1 0
mpi 0 Gather 0 0
mpi 0 Iprobe 1 0
mpi 0 Sendrecv 1 80
mpi 0 Bcast 1 800
mpi 0 Allreduce -1 16
mpi 0 Barrier -1 0
blas 0 dgemm 7 5 9
blas 0 dgemm 4 3 2
blas 0 dtrsm 6 2 6
blas 0 dtrsm 6 2 2
blas 0 dger 3 2 1
blas 0 daxpy 1 10 1
blas 0 idamax 1 6 1
mpi 1 Recv 0 1000
mpi 1 Probe 0 40
mpi 1 Recv 0 40
mpi 1 Recv 0 24
mpi 1 Issend 0 32
mpi 1 Wait -1 0
mpi 1 Gather 0 24
mpi 1 Iprobe 0 0
mpi 1 Sendrecv 0 80
mpi 1 Bcast 1 800
mpi 1 Allreduce -1 16
mpi 1 Barrier -1 0
blas 1 dgemm 7 5 9
blas 1 dgemm 4 3 2
blas 1 dtrsm 6 2 6
blas 1 dtrsm 6 2 2
blas 1 dger 3 2 1
blas 1 daxpy 1 10 1
blas 1 idamax 1 6 1
END

traced() { # traced MPI PROGRAM [ARGUMENT]
    local oversubscribe=--oversubscribe
    [ "$1" = openmpi ] || oversubscribe=
    "mpirun.$1" $oversubscribe -n 2 env LD_PRELOAD="./trace-$1.so" "./$2-$1" "${@:3}" >"$2-$1.out" 2>"$2-$1.err"
}
traced_loudly() { traced "$@" || { cat "$2-$1.err" >&2; return 1; }; }
build() { # build MPI: what experiments/hpl/trace/README.md says, and the program with and without the library
    "mpicc.$1" -O2 -Wall -Wextra -Werror -shared -fPIC -o "trace-$1.so" "$ASSAY_SOURCE/experiments/hpl/trace/trace.c" -ldl &&
        "mpicc.$1" -O1 -w -o "calls-$1" program.c "$blas" -lpthread && cp "calls-$1" "many-$1" &&
        "mpicc.$1" -O0 -w -DOWN -o "own-$1" program.c
}
sizes() { sed -nE 's/^trace ((mpi|blas) .*) [0-9.]+ [0-9.]+$/\1/p' "$1"; }
# Calls of a rank follow each other, last some time, and end before MPI_Finalize; totals are the sums of the records.
in_order() {
    awk '
        $2 == "overhead" { wall[$3] = $7; if ($4 < 1 || $5 <= 0 || $6 <= 0 || $8 <= 0) wrong = wrong "\n" $0 }
        $2 == "total" { total[$3 " " $4] = $7 }
        $2 == "mpi" || $2 == "blas" {
            if ($NF <= 0 || $(NF - 1) < end[$3] - 1e-9) wrong = wrong "\n" $0
            end[$3] = $(NF - 1) + $NF; sum[$3 " " $4] += $NF; ranks[$3] = 1
        }
        END {
            for (rank in ranks) if (!(wall[rank] > 0) || end[rank] > wall[rank] + 1e-9) wrong = wrong "\n rank " rank " ends after its wall time"
            for (name in sum) if (sum[name] - total[name] > 1e-9 || total[name] - sum[name] > 1e-9) wrong = wrong "\n total of " name
            print wrong
            exit wrong != ""
        }' "$1"
}
# 200,000 daxpy of two threads, 1,000 idamax whose sizes alternate, 3,000 Iprobe, a Bcast and a Barrier in room for 64.
thinned() {
    awk '
        $2 == "total" { calls[$3 " " $4] = $5; kept[$3 " " $4] = $6; all[$3] += $6 }
        $2 == "mpi" || $2 == "blas" { seen[$3 " " $4]++ }
        $4 == "idamax" && $2 == "blas" { size[$3 " " $6]++ }
        END {
            for (name in kept) if (kept[name] != seen[name]) print "kept", name, kept[name], seen[name]
            for (rank = 0; rank < 2; rank++) {
                print rank, calls[rank " daxpy"], calls[rank " idamax"], calls[rank " Iprobe"], seen[rank " Bcast"], seen[rank " Barrier"]
                if (all[rank] < 24 || all[rank] > 64) print "records:", all[rank]
                if (size[rank " 1"] < 2 || size[rank " 2"] < 2) print "idamax of size 1:", size[rank " 1"], "of size 2:", size[rank " 2"]
            }
        }' "$1"
}

for mpi in openmpi mpich; do
    if ! command -v "mpicc.$mpi" >/dev/null || ! command -v "mpirun.$mpi" >/dev/null; then
        skip "$mpi" "not installed"
        continue
    fi
    check "$mpi: the library builds as its README says" build $mpi
    check "$mpi: a program is traced" traced $mpi calls calls
    is "$mpi: it computes what it did" "$(cat calls-$mpi.err)" ""
    is "$mpi: every call is there with its size and its peer, in order" "$(sizes calls-$mpi.out)" "$(cat expected)"
    is "$mpi: a call with a size of 0 is counted" "$(grep -c '^trace total [01] empty 1 0 ' calls-$mpi.out)" 2
    check "$mpi: no call overlaps another one, nor the end" in_order calls-$mpi.out
    export ASSAY_TRACE_RECORDS=64
    check "$mpi: a program that makes more calls than there is room for" traced $mpi many many
    is "$mpi: all are counted, rare ones kept, and what alternates does not fall into step" "$(thinned many-$mpi.out)" $'0 200000 1000 3000 1 1\n1 200000 1000 3000 1 1'
    export ASSAY_TRACE_RECORDS=5
    refuse "$mpi: too little room is refused" 1 '^trace: ASSAY_TRACE_RECORDS .*64 to 1000000.* 5$' traced_loudly $mpi many many
    unset ASSAY_TRACE_RECORDS
    check "$mpi: a program with a BLAS in itself" traced $mpi own own
    check "$mpi: which is said" grep -q '^trace: no BLAS call of rank 0 was seen' own-$mpi.err
done
finish
