/* CRC-32C (Castagnoli, RFC 3720), for lines that must show whether they are whole; not against an attacker.
 */
#ifndef ASSAY_FOUNDATION_CHECKSUM_H
#define ASSAY_FOUNDATION_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* By the processor's own instruction where it has one (SSE 4.2, ARMv8's CRC32), else by tables. */
uint32_t checksum_crc32c(const void *bytes, size_t length);
/* The tables, whatever the processor has. */
uint32_t checksum_crc32c_by_tables(const void *bytes, size_t length);

#endif
