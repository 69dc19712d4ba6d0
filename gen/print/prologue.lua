-- The first lines of a kernel file: includes, and a stop for a compiler without the right flags.

return function(p, isa)
    local lines = { '#include "' .. p.names.runtime .. '"' }
    if isa.guard then
        lines[#lines + 1] = ""
        lines[#lines + 1] = "#if !(" .. isa.guard .. ")"
        lines[#lines + 1] = '#error "compile this file with ' .. table.concat(isa.flags, " ") .. '"'
        lines[#lines + 1] = "#endif"
    end
    for i, header in ipairs(isa.includes) do
        if i == 1 then lines[#lines + 1] = "" end
        lines[#lines + 1] = "#include " .. header
    end
    return lines
end
