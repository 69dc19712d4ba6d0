/* What this processor and its operating system say of themselves. */
#include "harness/base/cpu_facts.h"

#include "harness/base/amx.h"

#include <stdio.h>
#include <string.h>

static const unsigned AMX = 1u << 22 | 1u << 24 | 1u << 25; /* of leaf7_edx: bf16, tiles, int8 */

#if defined(__x86_64__)
#define ARCHITECTURE "x86_64"
#elif defined(__i386__)
#define ARCHITECTURE "i386"
#elif defined(__aarch64__)
#define ARCHITECTURE "aarch64"
#elif defined(__arm__)
#define ARCHITECTURE "arm"
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCHITECTURE "riscv64"
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

static void name_unknown(char *text)
{
    if (text[0] == '\0')
        strcpy(text, "unknown");
}

cpu_facts cpu_facts_read(void)
{
    cpu_facts facts = read_facts();
    facts.architecture = ARCHITECTURE;
    facts.amx_missing = amx_request();
    if (facts.amx_missing)
        facts.leaf7_edx &= ~AMX;
    name_unknown(facts.model);
    name_unknown(facts.vendor);
    return facts;
}

void cpu_facts_numbers(const cpu_facts *facts, cpu_number list[CPU_NUMBERS])
{
    const cpu_number numbers[CPU_NUMBERS] = {{"family", facts->family, true},
                                             {"number", facts->number, true},
                                             {"stepping", facts->stepping, true},
                                             {"leaf1_ecx", facts->leaf1_ecx, true},
                                             {"leaf7_ebx", facts->leaf7_ebx, true},
                                             {"leaf7_ecx", facts->leaf7_ecx, true},
                                             {"leaf7_edx", facts->leaf7_edx, true},
                                             {"leaf7_1_eax", facts->leaf7_1_eax, true},
                                             {"xcr0", facts->xcr0, true},
                                             {"id_aa64pfr0_el1", (int64_t)facts->id_aa64pfr0, true},
                                             {"id_aa64isar0_el1", (int64_t)facts->id_aa64isar0, true},
                                             {"id_aa64isar1_el1", (int64_t)facts->id_aa64isar1, true},
                                             {"id_aa64zfr0_el1", (int64_t)facts->id_aa64zfr0, true},
                                             {"vector_bytes", facts->vector_bytes, true},
                                             {"l1d", facts->l1d, facts->l1d > 0},
                                             {"l1i", facts->l1i, facts->l1i > 0},
                                             {"l2", facts->l2, facts->l2 > 0},
                                             {"l3", facts->l3, facts->l3 > 0},
                                             {"l3_share", facts->l3_share, facts->l3_share > 0}};
    memcpy(list, numbers, sizeof numbers);
}
