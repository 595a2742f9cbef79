/*
 * Names in known_hosts as `ssh-keygen -H` and HashKnownHosts write them: "|1|SALT|HASH" in base64, where HASH
 * is the HMAC (RFC 2104) with SHA-1 (FIPS 180-4) of the name under the 20 bytes of SALT. Whoever reads the
 * file does not learn the names; whoever looks for one tries it against every line. So a line is prepared
 * once, up to where the name comes in, and a try costs two blocks of SHA-1: with a thousand nodes and a
 * thousand lines that is the difference between seconds and a blink.
 *
 * SHA-1 protects nothing here: it is what the format has.
 */
#ifndef ASSAY_SSH_HASHED_NAME_H
#define ASSAY_SSH_HASHED_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HASHED_NAME_BYTES = 20 };

struct hashed_name {
    uint32_t inner[5], outer[5]; /* SHA-1 after the padded salt */
    uint8_t hash[HASHED_NAME_BYTES];
};

/* False when TEXT (LENGTH bytes) is none. */
bool hashed_name_parse(const char *text, size_t length, struct hashed_name *ret);
/* What HASH would be for NAME. */
void hashed_name_compute(const struct hashed_name *hashed, const char *name, uint8_t ret[HASHED_NAME_BYTES]);
bool hashed_name_matches(const struct hashed_name *hashed, const char *name);

#endif
