/* Compares the emitted product of rounded inputs with one in int64. */
#ifndef LOOKUPC_HARNESS_VERIFY_EXACT_PRODUCT_H
#define LOOKUPC_HARNESS_VERIFY_EXACT_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>

/* Calls the kernel `symbol` of the library at the path for random numbers, the largest and smallest among them, `inputs` inputs of the
   type of that name and several numbers of outputs and tokens, with memory of exactly its size: each output must be the float nearest to
   the sum of all products in int64. "i8": bytes. "bf16": whole numbers so small that sums of up to 250,000 products are exact in float32.
   Fails with one line. */
bool exact_product(const char *library, const char *symbol, const char *type, size_t inputs, char *error, size_t error_size);

#endif
