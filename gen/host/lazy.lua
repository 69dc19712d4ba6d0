-- Modules that are loaded when they are first used, where most runs of the program do not use them.

-- Stands for the module of that name, or for the table that a function returns; both are read by field.
return function(module)
    local loaded
    return setmetatable({}, {
        __index = function(_, field)
            loaded = loaded or (type(module) == "function" and module() or require(module))
            return loaded[field]
        end,
    })
end
