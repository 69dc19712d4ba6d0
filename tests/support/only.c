/* Lets a program of cmocka tests run one of them alone: the one that LOOKUPC_TEST in the environment names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

__attribute__((constructor)) static void choose_test(void)
{
    const char *name = getenv("LOOKUPC_TEST");
    if (name != NULL)
        cmocka_set_test_filter(name);
}
