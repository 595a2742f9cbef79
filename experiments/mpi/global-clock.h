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

/* Collective. */
void global_clock_begin(void);
/* Another point. Collective; of many nodes it takes some 20 exchanges with each. */
void global_clock_synchronize(void);
/* This rank's clock to rank 0's, and back, in s: by the points around it, or by the nearest. */
double global_clock_of(double local);
double local_clock_of(double global);
/* Rank 0 prints a line a node and point: `clock NODE ELAPSED OFFSET ERROR`; in s, elapsed since SINCE of rank
 * 0's. Collective. */
void global_clock_print(double since);

#endif
