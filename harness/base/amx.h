/* The permission to use AMX, which Linux gives a process that asks for it. */
#ifndef LOOKUPC_HARNESS_BASE_AMX_H
#define LOOKUPC_HARNESS_BASE_AMX_H

/* Asks for it, unless LOOKUPC_CPU names an instruction set without it; once it is given, this and later forks have it. Returns NULL, or why
 * there is none, as words behind "no: ". */
const char *amx_request(void);

#endif
