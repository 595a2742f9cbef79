#include "plugins/numerics/random.h"

uint64_t random_numbers_bits(struct random_numbers *numbers) {
    uint64_t bits = numbers->state += UINT64_C(0x9e3779b97f4a7c15);
    bits ^= bits >> 30;
    bits *= UINT64_C(0xbf58476d1ce4e5b9);
    bits ^= bits >> 27;
    bits *= UINT64_C(0x94d049bb133111eb);
    return bits ^ bits >> 31;
}

double random_numbers_fraction(struct random_numbers *numbers) {
    return (double)(random_numbers_bits(numbers) >> 11) * 0x1p-53;
}
