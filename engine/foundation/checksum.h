/* CRC-32C (Castagnoli, RFC 3720), for lines that must show whether they are whole; not against an attacker.
 */
#ifndef ASSAY_FOUNDATION_CHECKSUM_H
#define ASSAY_FOUNDATION_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

uint32_t checksum_crc32c(const void *bytes, size_t length);

#endif
