//$ takes structs
//$ -- The structs that functions of a run of blocks take (gen/families/model/blocks/structs.lua).
//$ local function print(word, doc, fields)

/* $(doc) */
typedef struct $(names.type(word)) {
    $(field.type)$(field.name);$(field.doc and " /* " .. field.doc .. " */" or "") //$ for _, field in ipairs(fields)
} $(names.type(word));
//$ end
//$ print("layer", "The weights of a layer.", structs.layer.fields)
//$ print("cache", "A layer's part of the cache, or that of a head.", structs.cache)
//$ print("buffers", "What the steps of a block work in: rows of a chunk of tokens, in scratch.", structs.buffers)
//$ print("attention", "What attention reads, works in and writes.", structs.attention)
//$ print("call", "A call of a run of blocks.", structs.call)
