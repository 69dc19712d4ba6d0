//$ takes sections, isa_list
/* Where the parts of a blob lie; filled by $(names.bind), valid as long as the blob is. */
typedef struct $(names.weights) {
//$ for _, section in ipairs(sections) do
    const $(section.storage) *$(section.name); /* $(section.doc:find("^%[") and "" or "[" .. section.count .. "] ")$(section.doc) */
//$ end
    int isa; /* the instruction set chosen for this CPU: $(isa_list) */ //$ if isa_list
} $(names.weights);
