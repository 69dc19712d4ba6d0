/* A program for Linux on a big-endian MIPS that ends with what binding the linked weights returns.
   Compiled with -DMODEL_HEADER="…" and -DMODEL(word)=<model>_##word. */
#include MODEL_HEADER

void __start(void);
void __start(void)
{
    static MODEL(weights) weights;
    register long call __asm__("$2") = 4001; /* exit */
    register long status __asm__("$4") = MODEL(bind_linked)(&weights);
    __asm__ volatile("syscall" : : "r"(call), "r"(status));
}
