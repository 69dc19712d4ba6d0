//$ takes guard, flushes, isas, asks, requests_amx, runs, choice, digest_lines, header_bytes, format, sections
#include "$(names.runtime)"
//$ if asks then
//$ local x86 = choice.x86
//$ if x86 then

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

//$ if choice.permitted[1] then
/* Whether the CPU has tiles as the kernels configure them: CPUID leaf 1DH, palette 1, eight tiles of 16 rows of 64 bytes. A guest may
   be offered AMX without it. */
static int $(model)_has_tiles(void)
{
    unsigned a, b, c, d;

    return __get_cpuid_count(0x1d, 0, &a, &b, &c, &d) && a >= 1 /* the last palette */
        && __get_cpuid_count(0x1d, 1, &a, &b, &c, &d) && a >> 16 == 1024 && b == (8u << 16 | 64) && (c & 0xffffu) == 16;
}

//$ end
//$ local subleaf = x86.leaf7_1_eax
/* Whether CPU and operating system offer the features: CPUID leaf 1 ECX, leaf 7 $(x86.leaf7),
   its subleaf 1 EAX, //$ if subleaf
   and XGETBV's state bits. */
static int $(model)_cpu_has($(x86.parameters))
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & leaf1_ecx) != leaf1_ecx)
        return 0;
//$ if x86.bare then
    if (state == 0) /* no more is needed, and the CPU may have neither leaf 7 nor XGETBV */
        return 1;
//$ end
//$ local ecx = x86.leaf7_ecx and " || (c & leaf7_ecx) != leaf7_ecx" or ""
//$ local edx = x86.leaf7_edx and " || (d & leaf7_edx) != leaf7_edx" or ""
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & leaf7_ebx) != leaf7_ebx$(ecx)$(edx))
        return 0;
//$ if subleaf then
    /* a: the last subleaf */
    if (leaf7_1_eax != 0 && (a < 1 || !__get_cpuid_count(7, 1, &a, &b, &c, &d) || (a & leaf7_1_eax) != leaf7_1_eax))
        return 0;
//$ end
//$ if choice.permitted[1] then
    if ((state >> 18 & 1u) != 0 && !$(model)_has_tiles()) /* the state of tiles */
        return 0;
//$ end
    __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return (a & state) == state;
}
#endif
//$ if choice.permitted[1] then

$(include("templates/bundle/permission.c"))
//$ end
//$ end
//$ for _, set in ipairs(choice.list) do
//$ if set.has_own then

#if $(set.condition)
/* Whether CPU and operating system offer $(set.name). Linux lets programs read the ID registers, since 4.11: it emulates the instruction
   and shows what it supports itself. Elsewhere, and on Android, whose kernels may be older, the answer is
   $(#isas > 1 and "no" or "yes: there is no other choice"). */
static int $(model)_has_$(set.name)(void)
{
#if defined(__linux__) && !defined(__ANDROID__)
    uint64_t $(field.name); //$ for i, field in ipairs(set.cpu)
//$ for i, field in ipairs(set.cpu) do

    __asm__ volatile("mrs %0, $(field.register)" : "=r"($(field.name)));
    if (($(field.name) >> $(field.shift) & 15u) == 0)
        return 0;
//$ end
//$ if set.cpu.vector_bytes then

    /* cntb x0: the bytes of a vector, in words that compilers without SVE know, too */
    register uint64_t vector_bytes __asm__("x0");
    __asm__ volatile(".inst 0x0420e3e0" : "=r"(vector_bytes));
    return vector_bytes >= $(set.cpu.vector_bytes);
//$ else
    return 1;
//$ end
#else
    return $(#isas > 1 and 0 or 1);
#endif
}
#endif
//$ end
//$ end

/* Whether this CPU can run the instruction set of that number. */
static int $(model)_can_run(int isa)
{
    switch (isa) {
//$ for _, set in ipairs(choice.list) do
#if $(set.condition) //$ if set.opens
//$ if set.x86 then
//$ local permitted = set.permission and " && " .. model .. "_may_use_tiles()" or ""
    case $(set.number): return $(model)_cpu_has($(set.x86))$(permitted); /* $(set.name) */
//$ elseif set.has_own then
    case $(set.number): return $(model)_has_$(set.name)();
//$ else
    case $(set.number): return 1; /* $(set.name) */
//$ end
#endif //$ if set.closes
//$ end
    default: return 0;
    }
}
//$ end
//$ if #isas > 1 then

/* $(names.macro("ISA")) is the name of an instruction set, which then takes the place of the best one; a null pointer or "" is none. */
#if defined($(names.macro("ISA_FROM_ENVIRONMENT"))) && !defined($(names.macro("ISA")))
#include <stdlib.h>
#define $(names.macro("ISA")) getenv("$(names.macro("ISA"))")
#endif

/* Finds the best instruction set of this bundle that this CPU can run, or the one that $(names.macro("ISA")) names. */
static int $(model)_choose_isa(int *isa)
{
#if defined($(names.macro("ISA")))
    static const char names[$(#isas)][$(choice.name_bytes)] = { $(choice.names_text) };
    const char *name = $(names.macro("ISA"));

    if (name && name[0] != '\0') {
        for (*isa = 0; *isa < $(#isas); ++*isa) {
            unsigned k = 0;
            while (name[k] != '\0' && name[k] == names[*isa][k])
                ++k;
            if (name[k] == names[*isa][k])
                return $(model)_can_run(*isa) ? $(names.macro("OK")) : $(names.macro("ERROR_CPU"));
        }
        return $(names.macro("ERROR_ISA"));
    }
#endif
    for (*isa = $(#isas - 1); *isa >= 0; --*isa)
        if ($(model)_can_run(*isa))
            return $(names.macro("OK"));
    return $(names.macro("ERROR_CPU"));
}
//$ end

/* Checksum of little-endian 64-bit words. Each word changes the state one to one, so damage to a single word never goes
   unnoticed. FNV-1a's offset basis and prime, the state folded after every word. */
static uint64_t $(model)_checksum(const unsigned char *bytes, size_t size)
{
    uint64_t state = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        for (unsigned k = 0; k < 8; ++k)
            word |= (uint64_t) bytes[i + k] << (8 * k);
        state = (state ^ word) * 0x00000100000001b3u;
        state ^= state >> 32;
    }
    return state;
}

/* The little-endian number of `width` bytes, wherever it lies. */
static uint64_t $(model)_read(const unsigned char *bytes, unsigned width)
{
    uint64_t value = 0;
    for (unsigned k = 0; k < width; ++k)
        value |= (uint64_t) bytes[k] << (8 * k);
    return value;
}

/* Where sections begin in a blob, in bytes: `lookupc pack` places them there. */
//$ local function place(section) return names.macro("AT_" .. (section.name:upper():gsub("%W", "_"))) end
#define $(place(section)) $(section.at)u //$ for _, section in ipairs(sections)

//$ if api ~= "" then
/* The header makes this name a macro, so that C calls the function with the guard in its name; other languages look up the
   plain one. */
#undef $(names.bind)
$(api)int $(names.bind)(const void *blob, size_t bytes, $(names.weights) *weights);

//$ end
/* Header of a blob, $(header_bytes) bytes, little-endian:
   0 magic "LOOKUPC\0" | 8 version u32 | 12 header bytes u32 | 16 model digest | 32 blob bytes u64 | 40 checksum u64 of what
   follows the header | 48 zero */
int $(names.bind)(const void *blob, size_t bytes, $(names.weights) *weights)
{
    static const unsigned char magic[8] = { 'L', 'O', 'O', 'K', 'U', 'P', 'C', 0 };
    static const unsigned char digest[16] = {
//$ lines(digest_lines)
    };
    const unsigned char *header = (const unsigned char *) blob;
    const uint16_t byte_order = 1; /* its first byte is 1 on little-endian CPUs only */

    if (!blob || !weights)
        return $(names.macro("ERROR_NULL"));
    if ((uintptr_t) blob % $(names.macro("ALIGN")))
        return $(names.macro("ERROR_ALIGNMENT"));
    if (bytes < $(header_bytes))
        return $(names.macro("ERROR_SIZE"));
    for (unsigned k = 0; k < 8; ++k)
        if (header[k] != magic[k])
            return $(names.macro("ERROR_MAGIC"));
    if ($(model)_read(header + 8, 4) != $(format) || $(model)_read(header + 12, 4) != $(header_bytes))
        return $(names.macro("ERROR_VERSION"));
    for (unsigned k = 0; k < 16; ++k)
        if (header[16 + k] != digest[k])
            return $(names.macro("ERROR_MODEL"));
    if (bytes != $(names.macro("WEIGHTS_BYTES")) || $(model)_read(header + 32, 8) != $(names.macro("WEIGHTS_BYTES")))
        return $(names.macro("ERROR_SIZE"));
    for (unsigned k = 48; k < $(header_bytes); ++k)
        if (header[k] != 0)
            return $(names.macro("ERROR_VERSION"));
    if ($(model)_read(header + 40, 8) != $(model)_checksum(header + $(header_bytes), $(names.macro("WEIGHTS_BYTES")) - $(header_bytes)))
        return $(names.macro("ERROR_CHECKSUM"));
    if (*(const unsigned char *) &byte_order != 1)
        return $(names.macro("ERROR_BYTE_ORDER"));
//$ if #isas > 1 then

    int isa;
    const int status = $(model)_choose_isa(&isa);
    if (status != $(names.macro("OK")))
        return status;
    weights->isa = isa;
//$ elseif isas[1] then
//$ if asks then

    if (!$(model)_can_run(0))
        return $(names.macro("ERROR_CPU"));
//$ end

    weights->isa = 0;
//$ end

//$ for _, section in ipairs(sections) do
    weights->$(section.name) = (const $(section.storage) *) (const void *) (header + $(place(section)));
//$ end
    return $(names.macro("OK"));
}
//$ if api ~= "" then

int $(names.guarded(names.bind, guard))(const void *blob, size_t bytes, $(names.weights) *weights)
{
    return $(names.bind)(blob, bytes, weights);
}
//$ end

$(include("templates/bundle/sizes.c"))
//$ if requests_amx then

$(include("templates/bundle/request_amx.c"))
//$ end
//$ if runs then

int $(names.runs)(int isa)
{
    return $(model)_can_run(isa);
}
//$ end
//$ if flushes then

$(include("templates/bundle/flush.c"))
//$ end
