/* Keeping what rests on a node small: an agent waits for most of its life, on machines that are measured. */
#ifndef ASSAY_SERVE_MEMORY_H
#define ASSAY_SERVE_MEMORY_H

/* Large blocks go back to the system as soon as they are freed, for the rest of the process's life. To be
 * called before they are allocated. */
void memory_return_blocks(void);

/* Before a long wait: the pages of our own code that were needed until now are let go. They are the page
 * cache's, and come back from there one by one when they are needed again. */
void memory_forget_code(void);

#endif
