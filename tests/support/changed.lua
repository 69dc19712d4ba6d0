-- A copy of a table with changes.
return function(base, changes)
    local copy = {}
    for key, value in pairs(base) do
        copy[key] = value
    end
    for key, value in pairs(changes or {}) do
        copy[key] = value
    end
    return copy
end
