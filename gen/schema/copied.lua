-- A new table with the fields of another; what these hold is the same.
return function(from)
    local copy = {}
    for key, value in pairs(from) do
        copy[key] = value
    end
    return copy
end
