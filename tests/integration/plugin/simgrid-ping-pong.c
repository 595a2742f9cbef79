/* On SimGrid: for each size given, how long the second of two messages there and back takes between ranks 0
 * and 1, and what its MPI_Send takes; then the speed of every rank's host. */
#include <mpi.h>
#include <simgrid/host.h>
#include <stdio.h>
#include <stdlib.h>

static char message[1 << 23];

static void exchange(int rank, int size, double *ret_send, double *ret_all) {
    double start = MPI_Wtime(), sent = start;
    if (rank == 0) {
        MPI_Send(message, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        sent = MPI_Wtime();
        MPI_Recv(message, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(message, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(message, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    *ret_send = sent - start;
    *ret_all = MPI_Wtime() - start;
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 1; rank < 2 && i < argc; i++) {
        double send, all;
        exchange(rank, (int)strtol(argv[i], NULL, 10), &send, &all);
        exchange(rank, (int)strtol(argv[i], NULL, 10), &send, &all);
        if (rank == 0)
            printf("%s %.17g %.17g\n", argv[i], send, all);
    }
    printf("host %s %.17g %d\n", sg_host_self_get_name(), sg_host_get_speed(sg_host_self()),
           sg_host_core_count(sg_host_self()));
    MPI_Finalize();
    return 0;
}
