//$ takes helper

/* What is prefetched while a strip is multiplied: `step` bytes a turn, from `next` on. */
typedef struct {
    uintptr_t next;
    size_t step;
} $(helper)_ahead;
