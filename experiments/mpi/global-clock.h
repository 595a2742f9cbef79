/*
 * One time for all ranks of a job, in two levels: ranks of a node share its CLOCK_MONOTONIC; the first rank
 * of each node finds out how far that is from rank 0's, by the fastest of many exchanges, again and again
 * while the job runs. What is between two such points is interpolated, so that neither an offset nor a drift
 * of a clock is in a duration. After S. Hunold and A. Carpen-Amarie, "Hierarchical Clock Synchronization in
 * MPI", IEEE Cluster 2018, and their ReproMPI.
 */
#ifndef ASSAY_MPI_GLOBAL_CLOCK_H
#define ASSAY_MPI_GLOBAL_CLOCK_H

enum { GLOBAL_CLOCK_POINTS_MAX = 4096 };

/* Finds the first rank of each node and synchronizes once. Collective. */
void global_clock_begin(void);
/* Measures each node's offset once more; rank 0 makes 20 exchanges with each other node. Collective. */
void global_clock_synchronize(void);
/* Converts a time of this node's clock to rank 0's clock, and back, in s: by linear interpolation between two
 * measured offsets, or by the nearest. Back: by the last offset. */
double global_clock_of(double local);
double local_clock_of(double global);
/* Rank 0 prints a line a node and point: `clock NODE ELAPSED OFFSET ERROR`; in s, elapsed since SINCE of rank
 * 0's. Collective. */
void global_clock_print(double since);

#endif
