-- A CPU as far as speed depends on it: what is known of this one, and how near two of them are.
local cpu = require "harness.base.cpu"
local isa = require "gen.isa.list"
local machines = require "gen.machines.list"

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
    local function value_of(key, name) return key[name] == nil and 0 or key[name] end -- 0: not known, as nil
    for _, field in ipairs(fields) do
        local a, b = value_of(wanted, field.name), value_of(other, field.name)
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

-- What is known of this CPU.
function machine.cpu()
    local facts = cpu.describe()
    local usable = {} -- of what is taken without asking: other instruction sets tell no CPUs apart
    for _, name in ipairs(isa.here) do
        if isa.runs(isa.get(name), facts) then usable[#usable + 1] = name end
    end
    for _, feature in ipairs(isa.features(facts)) do
        usable[#usable + 1] = feature
    end
    return {
        arch = facts.architecture,
        cpu_vendor = facts.vendor,
        cpu_family = facts.family,
        cpu_model = facts.number,
        cpu_stepping = facts.stepping,
        cpu_name = facts.model,
        isa_usable = table.concat(usable, ","),
        virtual = facts.virtual,
        l1d = facts.l1d or 0,
        l1i = facts.l1i or 0,
        l2 = facts.l2 or 0,
        l3_share = facts.l3_share or 0,
    }
end

-- The name of this CPU among those that have defaults of their own (gen/machines/).
function machine.name()
    local facts = cpu.describe()
    return machines.of_cpu(facts.vendor, facts.family, facts.number)
end

-- How near the CPU `here` is to `known`, both as machine.cpu() gives them: a level or "other"; and the
-- first field in which they differ.
function machine.level(known, here)
    local level, rows = machine.compare(machine.fields, here, known)
    -- that they agree says nothing
    if level == 2 and not (known.cpu_vendor and known.cpu_family and known.cpu_model) then level = 3 end
    return machine.levels[level] or "other", rows[1] and rows[1].name
end

local levels = {
    microarchitecture = "of this CPU's microarchitecture",
    isa = "with this CPU's instruction sets",
    other = "with other instruction sets than this CPU",
}

-- The line that says that `data` was tuned on another CPU than `here` (this one, if absent), nil if it was not.
function machine.tuned_note(data, context, here)
    here = here or machine.cpu()
    local level, differs = machine.level(data.cpu, here)
    if level == "exact" then return nil end
    local name = data.cpu.cpu_name
    if name == here.cpu_name then
        local function value(map) return map[differs] == nil and "unknown" or tostring(map[differs]) end
        name = string.format("another %s (%s %s, here %s)", name, differs, value(data.cpu), value(here))
    end
    return string.format("%s: tuned on %s, %s: another schedule may be faster here", context.path, name, levels[level])
end

return machine
