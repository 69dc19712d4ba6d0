//$ takes sizes
/* The model in numbers, for programs that do not see the macros. */
typedef struct $(names.description) {
    $(row.declared); /* $(row.doc) */ //$ for _, row in ipairs(sizes)
} $(names.description);

/* Those of this model: static, never null. */
$(api)const $(names.description) *$(names.sizes)(void);

/* What a status means: static text, never null, for any number. */
$(api)const char *$(names.error)(int status);
