-- The machines that defaults of a schedule can be made for, by name: one row each, everything else loops over it.
--
--   name, doc   what `--for` takes, and what it is
--   l2_bytes    L2 cache of a core, nil: the nominal one of each instruction set
--   meets       how often a call must meet a row on average before slices of tables, copied or in place, are gathered
--               faster than whole rows
--   columns     of slices of tables that are read where they lie, nil: slices are copied first, since pieces of rows on
--               many pages come slowly
--   follows_streams   its own prefetchers follow a stream at the speed of memory: of cached keys and values only the
--               first page of the next tile is worth prefetching, into L2
-- Where a row says "measured", docs/experiments.md has the measurements; the others have sizes only.
local machine = {}

machine.list = {
    { name = "generic", doc = "no CPU in particular", meets = 4 },
    { name = "skylake-x", doc = "Intel Skylake-X and Cascade Lake, measured", l2_bytes = 1 << 20, meets = 4 },
    { name = "ice-lake-server", doc = "Intel Ice Lake server, measured", l2_bytes = 5 << 18, meets = 4 },
    { name = "sapphire-rapids", doc = "Intel Sapphire Rapids", l2_bytes = 2 << 20, meets = 4 },
    {
        name = "zen4",
        doc = "AMD Zen 4, measured",
        l2_bytes = 1 << 20,
        meets = 4,
        columns = 32,
        follows_streams = true,
    },
    { name = "neoverse-v1", doc = "Arm Neoverse V1", l2_bytes = 1 << 20, meets = 4 },
}

machine.nominal = machine.list[1]
machine.most_l2_bytes = 0
machine.names = {}
for i, row in ipairs(machine.list) do
    machine.names[i] = row.name
    machine.most_l2_bytes = math.max(machine.most_l2_bytes, row.l2_bytes or 0)
end

-- The row of that name; raises one line for another.
function machine.get(name)
    for _, row in ipairs(machine.list) do
        if row.name == name then return row end
    end
    error('--for: "' .. tostring(name) .. '": must be one of ' .. table.concat(machine.names, ", "), 0)
end

-- The instruction sets `sets` on the machine of that name; nil: as they are.
function machine.sets(sets, name)
    if not name then return sets end
    local row, list = machine.get(name), {}
    for i, set in ipairs(sets) do
        local copy = {}
        for key, value in pairs(set) do
            copy[key] = value
        end
        copy.l2_bytes, copy.machine = row.l2_bytes or set.l2_bytes, row
        list[i] = copy
    end
    return list
end

return machine
