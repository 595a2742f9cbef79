/*
 * Every pair of ranks exchanges a byte, within a limit: preflight SECONDS. In each round all ranks are in
 * pairs (the tournament of the circle method), so that N ranks need N - 1 rounds, or N when N is odd. Prints
 * the pair that took longest; of one that cannot, "stuck RANK RANK", and ends all ranks. No collective comes
 * before: it would hang where a pair cannot.
 */
#include <mpi.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The partner of RANK in ROUND of a tournament by the circle method; RANK itself if it has none. */
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

/* Exchanges a byte with PARTNER. If that takes LIMIT seconds: prints "stuck RANK PARTNER" and aborts the
 * job. */
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
    sleep(1); /* so that the partner prints its line too, before the abort ends it */
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Prints the networks that MPI uses, each once, by the files that this process has open after exchanging a
 * byte with every rank: this node's address for IP connections, the device for other networks. */
static void print_networks(int rank) {
    char seen[4096] = "\n", line[512], path[64], name[256];
    for (int file = 3; file < 4096; file++) {
        struct sockaddr_storage own, peer;
        socklen_t own_size = sizeof own, peer_size = sizeof peer;
        memset(name, 0, sizeof name);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        if (getpeername(file, (struct sockaddr *)&peer, &peer_size) == 0) {
            if (getsockname(file, (struct sockaddr *)&own, &own_size) != 0 || own.ss_family == AF_UNIX ||
                getnameinfo((struct sockaddr *)&own, own_size, name, sizeof name, NULL, 0, NI_NUMERICHOST) !=
                    0 ||
                strncmp(name, "127.", 4) == 0 || strcmp(name, "::1") == 0)
                continue;
        } else if (readlink(path, name, sizeof name - 1) < 0 ||
                   (strncmp(name, "/dev/infiniband/", 16) != 0 && strncmp(name, "/dev/hfi", 8) != 0 &&
                    strncmp(name, "/dev/cxi", 8) != 0)) {
            continue;
        }
        snprintf(line, sizeof line, "\nnetwork %d %s\n", rank, name);
        if (!strstr(seen, line) && strlen(seen) + strlen(line) < sizeof seen)
            snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s", line + 1);
    }
    fputs(seen + 1, stdout);
}

/* Signal handler: ends the process successfully, in place of an MPI_Finalize that hangs. */
static void exit_at_alarm(int signal_number) {
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
    print_networks(rank);
    own.rank = rank;
    MPI_Allgather(name, sizeof name, MPI_CHAR, hosts, sizeof name, MPI_CHAR, MPI_COMM_WORLD);
    MPI_Allreduce(&own, &worst, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    MPI_Bcast(&slowest, 1, MPI_INT, worst.rank, MPI_COMM_WORLD);
    if (rank == 0)
        printf("pairs %ld slowest %.9f s: %s %s\n", (long)size * (size - 1) / 2, worst.seconds,
               hosts[worst.rank], hosts[slowest]);
    fflush(stdout);
    /* All is known, and MPI_Finalize may hang: that of MPICH 4.0.2 over UCX does. */
    signal(SIGALRM, exit_at_alarm);
    alarm(2);
    MPI_Finalize();
    return 0;
}
