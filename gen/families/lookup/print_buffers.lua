-- The buffers that kernels of a LookupFFN take as arguments: their types, their names, and what comments say of them.
local buffers = {}

-- What a comment calls so many floats of a token.
function buffers.rows(width, step)
    return "[" .. width .. "]" .. (step > width and ", " .. step .. " floats apart" or "")
end

-- What the projection of `v` works in and writes, beside x: { {name, storage} }.
function buffers.of_projection(v)
    local list = {}
    for _, name in ipairs { "a", "b", "z" } do
        if v.projection.rows[name] then list[#list + 1] = { name = name, storage = "float" } end
    end
    return table.move(v.work, 1, #v.work, #list + 1, list)
end

-- They as parameters of the projection's function.
function buffers.projection_parameters(v)
    local list = {}
    for i, buffer in ipairs(buffers.of_projection(v)) do
        list[i] = buffer.storage .. " *restrict " .. buffer.name
    end
    return table.concat(list, ", ")
end

return buffers
