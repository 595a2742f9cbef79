/* Adds up arrays of SIZE bytes over all ranks, CALLS times; rank 0 prints how long a call takes and by how
 * much the sums are off. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments) {
    int rank, ranks;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int items = count == 3 ? (int)(strtol(arguments[1], NULL, 10) / (long)sizeof(double)) : 0;
    int calls = count == 3 ? (int)strtol(arguments[2], NULL, 10) : 0;
    double *own = calloc((size_t)items + 1, sizeof *own), *sums = calloc((size_t)items + 1, sizeof *sums);
    if (items < 1 || calls < 1 || !own || !sums) {
        fprintf(stderr, "usage: allreduce SIZE CALLS, and memory for two arrays of SIZE bytes\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
        return 2;
    }
    for (int i = 0; i < items; i++)
        own[i] = rank + 1;

    /* The first call sets up connections, and is not timed. */
    MPI_Allreduce(own, sums, items, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int call = 0; call < calls; call++)
        MPI_Allreduce(own, sums, items, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double time = (MPI_Wtime() - start) / calls, error = 0;

    for (int i = 0; i < items; i++) {
        double off = sums[i] - 0.5 * ranks * (ranks + 1.0);
        error += off < 0 ? -off : off;
    }
    double mine[] = {time, error}, most[] = {0, 0};
    MPI_Reduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("time %.9f s\nerror %g\n", most[0], most[1]);
    free(own);
    free(sums);
    MPI_Finalize();
    return 0;
}
