-- Statements that keep sums of integers in their registers (templates/bundle/runtime.h).

-- Two a line, for the variables of the names in `list` of kernels of plan `p`; none where `isa` needs none.
return function(p, isa, list)
    local text = {}
    for i = 1, isa.register_barrier and #list or 0, 2 do
        local line = {}
        for n = i, math.min(i + 1, #list) do
            line[#line + 1] = p.names.macro "REGISTER_BARRIER" .. "(" .. list[n] .. ");"
        end
        text[#text + 1] = table.concat(line, " ")
    end
    return text
end
