/* Keeps the agent's memory on a node small: it waits most of the time, on machines that are measured. */
#ifndef ASSAY_SERVE_MEMORY_H
#define ASSAY_SERVE_MEMORY_H

/* From now on large blocks are returned to the system as soon as they are freed. Call it before they are
 * allocated. */
void memory_return_blocks(void);

/* Call it before a long wait: releases the pages of the program's own code. They stay in the page cache, and
 * are mapped again one by one when they are needed. */
void memory_forget_code(void);

#endif
