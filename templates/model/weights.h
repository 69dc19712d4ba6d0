//$ takes parts_of_blocks, own_sections, plan, isa_list
//$ for i, part in ipairs(parts_of_blocks) do
/* Where the weights of $(part.shape.layers == 1 and "a block" or part.shape.layers .. " blocks") lie. */
typedef struct $(part.names.weights) {
//$ for _, section in ipairs(plan.segments[i].plan.sections) do
    const $(section.storage) *$(section.name); /* $(section.doc:find("^%[") and "" or "[" .. section.count .. "] ")$(section.doc) */
//$ end
} $(part.names.weights);

//$ end
/* Where the parts of a blob lie; filled by $(names.bind), valid as long as the blob is. */
typedef struct $(names.weights) {
//$ for _, section in ipairs(own_sections) do
    const $(section.storage) *$(section.name); /* $(section.doc:find("^%[") and "" or "[" .. section.count .. "] ")$(section.doc) */
//$ end
    $(part.names.weights) $(plan.segments[i].word); //$ for i, part in ipairs(parts_of_blocks)
    int isa; /* the instruction set chosen for this CPU: $(isa_list) */ //$ if isa_list
} $(names.weights);
