//$ takes
/* The Arduino builder looks for headers in src/ only. */
#include "../inc/$(names.header)"
