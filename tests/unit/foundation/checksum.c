/* CRC-32C against RFC 3720, appendix B.4, and against the definition, bit by bit. */
#include "engine/foundation/checksum.h"
#include "tests/test.h"

static uint32_t by_definition(const unsigned char *bytes, size_t length) {
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0x82f63b78) : 0);
    }
    return ~crc;
}

TEST(published_values) {
    unsigned char bytes[32] = {0};
    assert_int_equal(checksum_crc32c(bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(checksum_crc32c(bytes, 32), 0x62a8ab43);
    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (unsigned char)i;
    assert_int_equal(checksum_crc32c(bytes, 32), 0x46dd794e);
    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (unsigned char)(31 - i);
    assert_int_equal(checksum_crc32c(bytes, 32), 0x113fdb5c);
    assert_int_equal(checksum_crc32c("123456789", 9), 0xe3069283);
    assert_int_equal(checksum_crc32c("", 0), 0);
}

TEST(every_length_and_alignment) {
    unsigned char bytes[80];
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 37 + 11);
    for (size_t offset = 0; offset < 8; offset++)
        for (size_t length = 0; length + offset <= sizeof bytes; length++)
            assert_int_equal(checksum_crc32c(bytes + offset, length), by_definition(bytes + offset, length));
}
