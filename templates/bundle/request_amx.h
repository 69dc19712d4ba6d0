//$ takes
/* Asks Linux to let this process use AMX, the matrix engine of some x86 CPUs. $(names.bind) never asks: it takes kernels with AMX
   only where that is granted, by this or by other code. So call it once, before $(names.bind). All threads and later forks have the
   permission, a program that they execute has not, and nothing takes it back. From then on an alternate signal stack (sigaltstack)
   needs some 12 KiB; where a thread has a smaller one, the request fails. Returns $(names.macro("OK")), also where it was granted
   before, or a code with AMX in its name: $(names.bind) then takes another instruction set.
   $(names.source) has no such function where it is compiled with $(names.macro("NO_REQUEST_AMX")). */
$(api)int $(names.request_amx)(void);
