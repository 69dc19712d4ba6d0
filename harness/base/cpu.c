/* Lua module `cpu`: what this processor and its operating system say of themselves. */
#include "gen/host/fields.h"
#include "harness/base/amx.h"
#include "harness/base/modules.h"

#include <lauxlib.h>
#include <lua.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int luaopen_cpu(lua_State *L);

typedef struct {
    char model[64], vendor[13];
    int family, number, stepping;                                  /* the vendor's numbers of this model */
    bool virtual;                                                  /* a hypervisor says that it is there */
    unsigned leaf1_ecx, leaf7_ebx, leaf7_ecx, leaf7_edx;           /* CPUID: what it can run */
    unsigned leaf7_1_eax, xcr0;                                    /* likewise; XGETBV: what the operating system saves */
    uint64_t id_aa64pfr0, id_aa64isar0, id_aa64isar1, id_aa64zfr0; /* ID registers of AArch64, likewise */
    unsigned vector_bytes;                                         /* of SVE, 0: none */
    int64_t l1d, l1i, l2, l3, l3_share;                            /* bytes, 0 when unknown; l3_share: L3 over the cores that share it */
} cpu_facts;

static const unsigned AMX = 1u << 22 | 1u << 24 | 1u << 25; /* of leaf7_edx: bf16, tiles, int8 */

#if defined(__x86_64__)
#define ARCHITECTURE "x86_64"
#elif defined(__i386__)
#define ARCHITECTURE "i386"
#elif defined(__aarch64__)
#define ARCHITECTURE "aarch64"
#else
#define ARCHITECTURE "other"
#endif

#if defined(__x86_64__) || defined(__i386__)

#include <cpuid.h>

typedef struct {
    unsigned eax, ebx, ecx, edx;
} cpuid_result;

/* All zeros for a leaf that the processor does not have. */
static cpuid_result cpuid(unsigned leaf, unsigned subleaf)
{
    cpuid_result r = {0};
    if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx))
        r = (cpuid_result){0};
    return r;
}

static bool has(unsigned word, int bit)
{
    return (word >> bit & 1u) != 0;
}

/* The register states that the operating system saves: XCR0, 0 without XSAVE. */
static unsigned saved_states(void)
{
    unsigned low = 0, high = 0;
    if (has(cpuid(1, 0).ecx, 27)) /* OSXSAVE */
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

/* Vendor and the numbers of the model. */
static void read_identity(cpu_facts *facts)
{
    const cpuid_result zero = cpuid(0, 0), one = cpuid(1, 0);
    memcpy(facts->vendor, &zero.ebx, 4);
    memcpy(facts->vendor + 4, &zero.edx, 4);
    memcpy(facts->vendor + 8, &zero.ecx, 4);
    const unsigned family = one.eax >> 8 & 15u, model = one.eax >> 4 & 15u;
    facts->family = (int)(family == 15 ? family + (one.eax >> 20 & 255u) : family);
    facts->number = (int)(family == 15 || family == 6 ? model | (one.eax >> 16 & 15u) << 4 : model);
    facts->stepping = (int)(one.eax & 15u);
    facts->virtual = has(one.ecx, 31);
}

/* Intel's and AMD's leaves of cache parameters have one layout. */
static void read_caches(cpu_facts *facts, unsigned leaf)
{
    int64_t threads_of_core = 1; /* those that share L2 */
    for (unsigned index = 0; index < 16; ++index) {
        const cpuid_result r = cpuid(leaf, index);
        const unsigned type = r.eax & 31u, level = r.eax >> 5 & 7u;
        if (type == 0)
            return;
        const int64_t line = (r.ebx & 0xFFFu) + 1, partitions = (r.ebx >> 12 & 0x3FFu) + 1, ways = (r.ebx >> 22) + 1;
        const int64_t bytes = line * partitions * ways * ((int64_t)r.ecx + 1);
        if (level == 1 && type == 1)
            facts->l1d = bytes;
        if (level == 1 && type == 2)
            facts->l1i = bytes;
        const int64_t threads = (r.eax >> 14 & 0xFFFu) + 1;
        if (level == 2) {
            facts->l2 = bytes;
            threads_of_core = threads;
        }
        if (level == 3) {
            facts->l3 = bytes;
            facts->l3_share = threads > threads_of_core ? bytes * threads_of_core / threads : bytes;
        }
    }
}

static void read_model(char model[64])
{
    unsigned brand[12] = {0};
    for (unsigned i = 0; i < 3; ++i) {
        const cpuid_result r = cpuid(0x80000002u + i, 0);
        memcpy(brand + 4 * i, &r, sizeof r);
    }
    const char *text = (const char *)brand;
    size_t used = 0;
    for (size_t i = 0; i < sizeof brand && text[i] != '\0'; ++i) {
        /* Some brands are padded with spaces inside and at both ends. */
        const bool space = text[i] <= ' ' || text[i] > '~';
        if (!space)
            model[used++] = text[i];
        else if (used > 0 && model[used - 1] != ' ')
            model[used++] = ' ';
    }
    if (used > 0 && model[used - 1] == ' ')
        --used;
    model[used] = '\0';
}

static cpu_facts read_facts(void)
{
    cpu_facts facts = {0};
    const cpuid_result extended = cpuid(7, 0);
    facts.leaf1_ecx = cpuid(1, 0).ecx;
    facts.leaf7_ebx = extended.ebx;
    facts.leaf7_ecx = extended.ecx;
    facts.leaf7_edx = extended.edx;
    facts.leaf7_1_eax = extended.eax >= 1 ? cpuid(7, 1).eax : 0; /* EAX: the last subleaf */
    facts.xcr0 = saved_states();
    read_identity(&facts);
    read_model(facts.model);
    read_caches(&facts, 4);
    if (facts.l1d == 0)
        read_caches(&facts, 0x8000001Du);
    return facts;
}

#elif defined(__aarch64__) && defined(__linux__)

#include <sys/auxv.h>
#include <sys/prctl.h>

/* The bytes of a cache as Linux tells them, 0 when it does not: index 0, 1, … of the first core's. */
static int64_t read_cache(unsigned index, char type[16], unsigned *level)
{
    const char folder[] = "/sys/devices/system/cpu/cpu0/cache/index";
    char path[96];
    unsigned long long kib = 0;
    const struct {
        const char *file, *format;
        void *value;
    } values[] = {{"level", "%u", level}, {"type", "%15s", type}, {"size", "%lluK", &kib}};
    for (size_t i = 0; i < sizeof values / sizeof *values; ++i) {
        snprintf(path, sizeof path, "%s%u/%s", folder, index, values[i].file);
        FILE *file = fopen(path, "r");
        const int count = file ? fscanf(file, values[i].format, values[i].value) : 0;
        if (file)
            fclose(file);
        if (count != 1)
            return 0;
    }
    return (int64_t)kib * 1024;
}

static void read_caches(cpu_facts *facts)
{
    for (unsigned index = 0; index < 8; ++index) {
        char type[16] = "";
        unsigned level = 0;
        const int64_t bytes = read_cache(index, type, &level);
        if (level == 1)
            *(type[0] == 'I' ? &facts->l1i : &facts->l1d) = bytes;
        if (level == 2)
            facts->l2 = bytes;
        if (level == 3)
            facts->l3 = facts->l3_share = bytes;
    }
}

/* ID registers can be read since Linux 4.11, which emulates the instruction and shows what it supports itself. */
#define ID_REGISTER(name, value) __asm__("mrs %0, " name : "=r"(value))

static cpu_facts read_facts(void)
{
    cpu_facts facts = {0};
    uint64_t midr = 0;
    if ((getauxval(AT_HWCAP) & HWCAP_CPUID) == 0)
        return facts;
    ID_REGISTER("midr_el1", midr);
    ID_REGISTER("id_aa64pfr0_el1", facts.id_aa64pfr0);
    ID_REGISTER("id_aa64isar0_el1", facts.id_aa64isar0);
    ID_REGISTER("id_aa64isar1_el1", facts.id_aa64isar1);
    if (facts.id_aa64pfr0 >> 32 & 15u) {
        ID_REGISTER("s3_0_c0_c4_4", facts.id_aa64zfr0); /* ID_AA64ZFR0_EL1 */
        const int length = prctl(PR_SVE_GET_VL);
        facts.vector_bytes = length > 0 ? (unsigned)length & PR_SVE_VL_LEN_MASK : 0;
    }
    facts.family = (int)(midr >> 24 & 255u); /* the implementer */
    facts.number = (int)(midr >> 4 & 0xFFFu);
    facts.stepping = (int)((midr >> 16 & 0xF0u) | (midr & 15u));
    snprintf(facts.vendor, sizeof facts.vendor, "0x%x", (unsigned)facts.family);
    snprintf(facts.model, sizeof facts.model, "implementer 0x%x part 0x%x", (unsigned)facts.family, (unsigned)facts.number);
    read_caches(&facts);
    return facts;
}

#else

static cpu_facts read_facts(void)
{
    return (cpu_facts){0};
}

#endif

/* cpu.describe() -> { architecture, model, vendor, family, number, stepping, virtual, leaf1_ecx, leaf7_ebx, leaf7_ecx, leaf7_edx,
   leaf7_1_eax, xcr0, amx_missing (why this process cannot use AMX, whose bits of leaf7_edx are 0 then; absent: it can), id_aa64pfr0_el1,
   id_aa64isar0_el1, id_aa64isar1_el1, id_aa64zfr0_el1, vector_bytes, l1d, l1i, l2, l3, l3_share in bytes (absent when unknown) } */
static int describe(lua_State *L)
{
    const cpu_facts facts = read_facts();
    const char *const amx_missing = amx_request();
    lua_newtable(L);
    field_set_text(L, "model", facts.model[0] ? facts.model : "unknown");
    field_set_text(L, "architecture", ARCHITECTURE);
    field_set_text(L, "vendor", facts.vendor[0] ? facts.vendor : "unknown");
    field_set_flag(L, "virtual", facts.virtual);
    if (amx_missing)
        field_set_text(L, "amx_missing", amx_missing);
    const struct {
        const char *name;
        lua_Integer number;
    } numbers[] = {{"family", facts.family},
                   {"number", facts.number},
                   {"stepping", facts.stepping},
                   {"leaf1_ecx", facts.leaf1_ecx},
                   {"leaf7_ebx", facts.leaf7_ebx},
                   {"leaf7_ecx", facts.leaf7_ecx},
                   {"leaf7_edx", amx_missing ? facts.leaf7_edx & ~AMX : facts.leaf7_edx},
                   {"leaf7_1_eax", facts.leaf7_1_eax},
                   {"xcr0", facts.xcr0},
                   {"id_aa64pfr0_el1", (lua_Integer)facts.id_aa64pfr0},
                   {"id_aa64isar0_el1", (lua_Integer)facts.id_aa64isar0},
                   {"id_aa64isar1_el1", (lua_Integer)facts.id_aa64isar1},
                   {"id_aa64zfr0_el1", (lua_Integer)facts.id_aa64zfr0},
                   {"vector_bytes", facts.vector_bytes}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
        lua_pushinteger(L, numbers[i].number);
        lua_setfield(L, -2, numbers[i].name);
    }

    const struct {
        const char *name;
        int64_t bytes;
    } caches[] = {{"l1d", facts.l1d}, {"l1i", facts.l1i}, {"l2", facts.l2}, {"l3", facts.l3}, {"l3_share", facts.l3_share}};
    for (size_t i = 0; i < sizeof caches / sizeof *caches; ++i) {
        if (caches[i].bytes > 0) {
            lua_pushinteger(L, caches[i].bytes);
            lua_setfield(L, -2, caches[i].name);
        }
    }
    return 1;
}

int luaopen_cpu(lua_State *L)
{
    const luaL_Reg functions[] = {{"describe", describe}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
