//$ takes promise, firmware, integers, layer_text, shape_text, calls_text, sizes_text, struct_of_weights, scratch_bytes, packed_bytes
#ifndef $(names.macro("H_INCLUDED"))
#define $(names.macro("H_INCLUDED"))

$(include(layer_text))

   Firmware for $(firmware.target): weights are linked in and read in place, a caller gives it $(names.macro("RAM_BYTES")) of RAM.
   $(promise)
   All are reentrant.

$(include(firmware.family.templates .. "usage.h")) */

#include <stddef.h>
#include <stdint.h> //$ if integers

$(include(shape_text))

/* What it takes on $(firmware.target): upper bounds, measured with the compiler and the flags that REPORT.txt names. */
#define $(names.macro("FLASH_BYTES")) $(firmware.flash_bytes)u /* code, constants and weights */
#define $(names.macro("RAM_BYTES")) $(firmware.ram_bytes)u /* $(firmware.takes) and a $(names.weights); there is no static data */
#define $(names.macro("STACK_BYTES")) $(firmware.stack_bytes)u /* that the deepest call takes below its caller */
//$ local stack = names.macro("SELFTEST_STACK_BYTES")
#define $(stack) $(firmware.selftest_stack_bytes)u /* likewise $(names.selftest), which example_main.c calls */
#define $(names.macro("SCRATCH_BYTES")) $(scratch_bytes)u /* that a call works in */
#define $(names.macro("WEIGHTS_BYTES")) $(packed_bytes)u /* of a blob */
$(include(sizes_text)) //$ if sizes_text
//$ if firmware.slow_bytes > 0 then
//$ local tables, section = names.macro("TABLE_BYTES"), names.macro("TABLE_SECTION")
#define $(tables) $(firmware.slow_bytes)u /* of them in $(section): a token reads $(firmware.work.slow_bytes) bytes */
//$ end

//$ if firmware.slow_bytes > 0 then
/* Where the linker puts the weights: define these for all that is compiled, for example to have the $(firmware.slow_names) in slower
   memory. */
//$ else
/* Where the linker puts the weights: define this for all that is compiled. */
//$ end
#ifndef $(names.macro("WEIGHTS_SECTION"))
#define $(names.macro("WEIGHTS_SECTION")) ".rodata.$(model)_weights"
#endif
//$ if firmware.slow_bytes > 0 then
#ifndef $(names.macro("TABLE_SECTION"))
#define $(names.macro("TABLE_SECTION")) ".rodata.$(model)_tables"
#endif
//$ end

/* How the functions that bind check the weights: each finds every bit that is wrong. */
#define $(names.macro("CHECK_CRC32")) 1 /* CRC-32 of IEEE 802.3 */
#define $(names.macro("CHECK_SHA256")) 2 /* the manifest's SHA-256; takes more code */
#ifndef $(names.macro("CHECK"))
#define $(names.macro("CHECK")) $(names.macro("CHECK_CRC32"))
#endif

$(include("templates/bundle/statuses.h"))

#ifdef __cplusplus
extern "C" {
#endif

$(include(struct_of_weights))

/* Checks the weights that are linked in and fills `weights`. Copies nothing.
   weights  not written unless the result is $(names.macro("OK"))
   Returns $(names.macro("OK")) or one of the codes above. Reads all weights once. */
int $(names.bind_linked)($(names.weights) *weights);

/* The same for a copy of these weights somewhere else: src/$(model)_weights.bin, whole.
   blob     $(names.macro("WEIGHTS_BYTES")) bytes, $(names.macro("ALIGN"))-byte aligned
   bytes    size of the blob */
int $(names.bind)(const void *blob, size_t bytes, $(names.weights) *weights);

$(include(calls_text))

#ifdef __cplusplus
}
#endif

#endif
