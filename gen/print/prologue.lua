-- The first lines of a kernel file: includes, and a stop for a compiler without the right flags; with `condition`, that
-- of the preprocessor for CPUs that the kernels are for, up to an #endif at the end, only there.

return function(p, isa, condition)
    local lines = { '#include "' .. p.names.runtime .. '"' }
    if condition then
        lines[#lines + 1] = ""
        lines[#lines + 1] = "#if " .. condition
    end
    if isa.guard then
        lines[#lines + 1] = ""
        lines[#lines + 1] = "#if !(" .. isa.guard .. ")"
        local flags = table.concat(isa.flags, " ")
        lines[#lines + 1] = '#error "'
            .. (flags ~= "" and "compile this file with " .. flags or "this file is for " .. isa.name)
            .. '"'
        lines[#lines + 1] = "#endif"
    end
    for i, header in ipairs(isa.includes) do
        if i == 1 then lines[#lines + 1] = "" end
        lines[#lines + 1] = "#include " .. header
    end
    return lines
end
