/*
 * Every pair of ranks exchanges a byte, within a limit: preflight SECONDS. In each round all ranks are in
 * pairs (the tournament of the circle method), so that N ranks need N - 1 rounds, or N when N is odd. Prints
 * the pair that took longest; of one that cannot, "stuck RANK RANK", and ends all ranks. No collective comes
 * before: it would hang where a pair cannot.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The partner of RANK in ROUND; RANK itself when it has none. */
static int partner_of(int rank, int round, int size) {
    int seats = size + size % 2, partner;
    if (rank == seats - 1) /* sits still, and the others go round it */
        partner = round * (seats / 2) % (seats - 1);
    else if ((2 * rank - round) % (seats - 1) == 0)
        partner = seats - 1;
    else
        partner = (round - rank + seats - 1) % (seats - 1);
    return partner < size ? partner : rank;
}

static void exchange(int rank, int partner, double limit) {
    char out = 1, in = 0;
    MPI_Request requests[2];
    int done = 0;
    double start = MPI_Wtime();
    MPI_Irecv(&in, 1, MPI_CHAR, partner, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&out, 1, MPI_CHAR, partner, 0, MPI_COMM_WORLD, &requests[1]);
    while (!done && MPI_Wtime() - start < limit)
        MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
    if (done && in == 1)
        return;
    printf("stuck %d %d\n", rank, partner);
    fflush(stdout);
    sleep(1); /* so that its partner says the same, and not only those who wait for one of the two */
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void leave(int signal_number) {
    (void)signal_number;
    _exit(0);
}

int main(int count, char **arguments) {
    static char hosts[1 << 16][MPI_MAX_PROCESSOR_NAME];
    int rank, size, length, slowest = 0;
    double limit = count > 1 ? strtod(arguments[1], NULL) : 10;
    struct {
        double seconds;
        int rank;
    } own = {0, 0}, worst;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    MPI_Get_processor_name(name, &length);
    printf("here %d %s\n", rank, name);
    fflush(stdout);
    for (int round = 0; round < size + size % 2 - 1; round++) {
        int partner = partner_of(rank, round, size);
        double start = MPI_Wtime();
        if (partner != rank)
            exchange(rank, partner, limit);
        double seconds = MPI_Wtime() - start;
        if (partner != rank && seconds > own.seconds) {
            own.seconds = seconds;
            slowest = partner;
        }
    }
    own.rank = rank;
    MPI_Allgather(name, sizeof name, MPI_CHAR, hosts, sizeof name, MPI_CHAR, MPI_COMM_WORLD);
    MPI_Allreduce(&own, &worst, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    MPI_Bcast(&slowest, 1, MPI_INT, worst.rank, MPI_COMM_WORLD);
    if (rank == 0)
        printf("pairs %ld slowest %.9f s: %s %s\n", (long)size * (size - 1) / 2, worst.seconds,
               hosts[worst.rank], hosts[slowest]);
    fflush(stdout);
    /* All is known, and MPI_Finalize may hang: that of MPICH 4.0.2 over UCX does. */
    signal(SIGALRM, leave);
    alarm(2);
    MPI_Finalize();
    return 0;
}
