/* What this processor and its operating system say of themselves, without Lua: for programs of devices, too. */
#ifndef LOOKUPC_HARNESS_CPU_FACTS_H
#define LOOKUPC_HARNESS_CPU_FACTS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    const char *architecture, *amx_missing; /* why this process cannot use AMX, NULL: it can */
    char model[64], vendor[13];
    int family, number, stepping;                                  /* the vendor's numbers of this model */
    bool virtual;                                                  /* a hypervisor says that it is there */
    unsigned leaf1_ecx, leaf7_ebx, leaf7_ecx, leaf7_edx;           /* CPUID: what it can run; without AMX, if that is missing */
    unsigned leaf7_1_eax, xcr0;                                    /* likewise; XGETBV: what the operating system saves */
    uint64_t id_aa64pfr0, id_aa64isar0, id_aa64isar1, id_aa64zfr0; /* ID registers of AArch64, likewise */
    unsigned vector_bytes;                                         /* of SVE, 0: none */
    int64_t l1d, l1i, l2, l3, l3_share;                            /* bytes, 0 when unknown; l3_share: L3 over the cores that share it */
} cpu_facts;

/* Asks for AMX where there is any. Texts that are unknown are "unknown". */
cpu_facts cpu_facts_read(void);

/* The numbers of the facts with their names; `known`: 0 says that it is not known. */
typedef struct {
    const char *name;
    int64_t number;
    bool known;
} cpu_number;

enum { CPU_NUMBERS = 19 };

void cpu_facts_numbers(const cpu_facts *facts, cpu_number list[CPU_NUMBERS]);

#endif
