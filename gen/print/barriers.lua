-- Statements that keep sums of integers in their registers (templates/bundle/runtime.h).

-- One for each name in `list`, of kernels of plan `p`; none where `isa` needs none.
return function(p, isa, list)
    local text = {}
    for i, name in ipairs(isa.register_barrier and list or {}) do
        text[i] = p.names.macro "REGISTER_BARRIER" .. "(" .. name .. ");"
    end
    return text
end
