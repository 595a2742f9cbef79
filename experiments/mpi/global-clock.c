#include "global-clock.h"

#include "ranks.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { EXCHANGES = 20, TAG_CLOCK };

/* A node's clock minus rank 0's, at a time of the node's clock; the error is at most half of the fastest
 * exchange. */
struct point {
    double at, offset, error;
};

static struct point *points; /* of this rank's node */
static int count, leaders, leader = -1;
static MPI_Comm node, leader_comm; /* leader_comm: the first rank of each node; MPI_COMM_NULL on others */

void global_clock_begin(void) {
    int local;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local);
    MPI_Comm_split(MPI_COMM_WORLD, local == 0 ? 0 : MPI_UNDEFINED, rank, &leader_comm);
    if (local == 0) {
        MPI_Comm_rank(leader_comm, &leader);
        MPI_Comm_size(leader_comm, &leaders);
    }
    points = ranks_allocate(GLOBAL_CLOCK_POINTS_MAX, sizeof *points);
    global_clock_synchronize();
}

/* Rank 0 asks a node's first rank for its time, several times, and sends it the result. The offset is by the
 * fastest exchange, half of which bounds the error (Cristian's algorithm). */
static struct point query_clock(int other) {
    struct point best = {.error = 1e300};
    for (int i = 0; i < EXCHANGES; i++) {
        double remote_time, before = ranks_now();
        MPI_Send(NULL, 0, MPI_DOUBLE, other, TAG_CLOCK, leader_comm);
        MPI_Recv(&remote_time, 1, MPI_DOUBLE, other, TAG_CLOCK, leader_comm, MPI_STATUS_IGNORE);
        double after = ranks_now(), error = (after - before) / 2;
        if (error < best.error)
            best = (struct point){remote_time, remote_time - (before + after) / 2, error};
    }
    MPI_Send(&best, 3, MPI_DOUBLE, other, TAG_CLOCK, leader_comm);
    return best;
}

/* Answers rank 0's queries with this node's time, then receives the offset that rank 0 found. */
static void answer_queries(struct point *ret) {
    for (int i = 0; i < EXCHANGES; i++) {
        MPI_Recv(NULL, 0, MPI_DOUBLE, 0, TAG_CLOCK, leader_comm, MPI_STATUS_IGNORE);
        double local_time = ranks_now();
        MPI_Send(&local_time, 1, MPI_DOUBLE, 0, TAG_CLOCK, leader_comm);
    }
    MPI_Recv(ret, 3, MPI_DOUBLE, 0, TAG_CLOCK, leader_comm, MPI_STATUS_IGNORE);
}

/* Adds a point: rank 0 queries each node, and each node's first rank tells the others. Collective. */
void global_clock_synchronize(void) {
    if (count == GLOBAL_CLOCK_POINTS_MAX)
        count--; /* the last interval is a long one */
    struct point *point = &points[count];
    if (leader == 0) {
        *point = (struct point){.at = ranks_now()};
        for (int other = 1; other < leaders; other++)
            (void)query_clock(other);
    } else if (leader > 0) {
        answer_queries(point);
    }
    MPI_Bcast(point, 3, MPI_DOUBLE, 0, node);
    count++;
}

/* The offset at a time of this node's clock: interpolated between two points, or that of the nearest. */
static double offset_at(double local) {
    int next = 0;
    while (next < count && points[next].at <= local)
        next++;
    if (next == 0)
        return points[0].offset;
    const struct point *before = &points[next - 1];
    if (next == count)
        return before->offset;
    double share = (local - before->at) / (points[next].at - before->at);
    return before->offset + share * (points[next].offset - before->offset);
}

double global_clock_of(double local) {
    return local - offset_at(local);
}

double local_clock_of(double global) {
    return global + points[count - 1].offset;
}

/* Rank 0 prints all points of all nodes, with times since SINCE on its clock. Collective. */
void global_clock_print(double since) {
    if (leader < 0)
        return;
    const int numbers = count * 3;
    struct point *all = ranks_allocate((size_t)leaders * (size_t)count, sizeof *all);
    char *names = ranks_allocate((size_t)leaders, MPI_MAX_PROCESSOR_NAME);
    MPI_Gather(points, numbers, MPI_DOUBLE, all, numbers, MPI_DOUBLE, 0, leader_comm);
    MPI_Gather(rank_names + rank * MPI_MAX_PROCESSOR_NAME, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, names,
               MPI_MAX_PROCESSOR_NAME, MPI_CHAR, 0, leader_comm);
    for (int l = 0; leader == 0 && l < leaders; l++)
        for (int i = 0; i < count; i++) {
            const struct point *point = &all[l * count + i];
            printf("clock %s %.9f %.9f %.9f\n", names + l * MPI_MAX_PROCESSOR_NAME,
                   point->at - point->offset - since, point->offset, point->error);
        }
    free(all);
    free(names);
}
