-- A CPU as far as speed depends on it: what is known of it, and how near two of them are.
local machine = {}

-- From near to far. Measurements of another CPU are of use where both run the same instruction sets.
machine.levels = { "exact", "microarchitecture", "isa" }
local same_cpu, other_cpu = 2, 3

-- One row a field; `differs` is the nearest level at which it may differ, nil: it must agree. In the order in which
-- reasons are told.
machine.fields = {
    { name = "arch" },
    { name = "isa_usable" },
    { name = "cpu_vendor", differs = other_cpu },
    { name = "cpu_family", differs = other_cpu },
    { name = "cpu_model", differs = other_cpu },
    { name = "cpu_stepping", differs = same_cpu },
    { name = "cpu_name", differs = same_cpu },
    { name = "virtual", differs = same_cpu },
    { name = "l1d", differs = same_cpu },
    { name = "l1i", differs = same_cpu },
    { name = "l2", differs = same_cpu },
    { name = "l3_share", differs = same_cpu },
}

-- How near `other` is to `wanted` by `fields`, rows as above that may also have `part`, what of a value must agree in
-- any case: the number of its level, and the rows that differ as it allows; or nil and the differing rows that no level
-- allows.
function machine.compare(fields, wanted, other)
    local level, allowed, refused = 1, {}, {}
    for _, field in ipairs(fields) do
        local a, b = wanted[field.name], other[field.name]
        if a ~= b then
            local good = field.differs and (not field.part or field.part(a) == field.part(b))
            local list = good and allowed or refused
            list[#list + 1] = field
            if good then level = math.max(level, field.differs) end
        end
    end
    if #refused > 0 then return nil, refused end
    return level, allowed
end

return machine
