-- The buffers that kernels of a LookupFFN take as arguments: their types, their names, and what comments say of them.
local buffers = {}

-- What a comment calls so many floats of a token.
function buffers.rows(width, step)
    return "[" .. width .. "]" .. (step > width and ", " .. step .. " floats apart" or "")
end

-- What a comment calls one element for each row that a token takes.
function buffers.slots(shape)
    return "[" .. shape.h .. "]" .. (shape.neighbours > 1 and "[" .. shape.neighbours .. "]" or "")
end

-- The function that gives the buffer of a name in the scratch of `v`, a stage or a gather, as a pointer to `type`.
function buffers.in_scratch(p, v)
    return function(name, type)
        if v.scratch[name] == 0 then return type == "void" and "scratch" or "(" .. type .. " *) scratch" end
        local at = "(unsigned char *) scratch + " .. p.names.constant(v.constants .. name:upper())
        return type == "void" and at or "(" .. type .. " *) (void *) (" .. at .. ")"
    end
end

-- What the projection of stage `v` works in and writes, beside x: { {name, storage} }.
function buffers.of_projection(v)
    local list = {}
    for _, name in ipairs { "a", "b", "z" } do
        if v.projection.rows[name] then list[#list + 1] = { name = name, storage = "float" } end
    end
    return table.move(v.work, 1, #v.work, #list + 1, list)
end

-- What the projection of `v` on a matrix engine, which hashes, too, writes: { {name, storage} }.
function buffers.of_hash(v)
    local list = {}
    if v.projection.tiled then
        list[1] = { name = "code", storage = "uint16_t" }
        if v.shape.score.scored then list[2] = { name = "score", storage = "float" } end
        if v.hash.bytes > 0 then list[#list + 1] = { name = "vertices", storage = "void" } end
    end
    return list
end

-- They as parameters of the projection's function: a list of them.
function buffers.projection_parameters(v)
    local list = buffers.of_projection(v)
    table.move(buffers.of_hash(v), 1, 3, #list + 1, list)
    for i, buffer in ipairs(list) do
        list[i] = buffer.storage .. " *restrict " .. buffer.name
    end
    return list
end

return buffers
