-- Loads of weights of a type that an instruction set has no words for: element by element, as portable C reads it.
local dtype = require "gen.plan.dtype"
local expression = require "gen.isa.expression"
local scalar = require "gen.isa.scalar"

local text = [[
static inline VECTOR $NAME(const STORAGE *from, unsigned n)
{
    float lane[LANES] = { 0 };
    for (unsigned i = 0; i < n; ++i)
        lane[i] = VALUE;
    return LOADED;
}]]

-- Adds to the instruction set `set` the words load_<type> and load_partial_<type> that it lacks, and their helpers.
return function(set)
    set.helpers = { table.unpack(set.helpers or {}) }
    for _, type in ipairs(set.lanes > 1 and dtype.loaded_names or {}) do
        local packed = dtype.get(type).bytes < 1
        local all, some = "load_" .. type, "load_partial_" .. type
        if not (set[all] and set[some]) then
            local name = set.name .. "_load_first_" .. type
            table.insert(set.helpers, {
                name = name,
                includes = set.includes,
                guard = set.guard,
                text = text:gsub("%u%u%u+", {
                    VECTOR = set.vector,
                    NAME = name,
                    STORAGE = dtype.get(type).storage,
                    LANES = set.lanes,
                    VALUE = packed and scalar[all]("from", "i") or scalar[all](expression.sum("from", "i")),
                    LOADED = set.load_unaligned("lane", 0),
                }),
            })
            set[some] = set[some] or function(base, n) return expression.call("$" .. name, base, n) end
            set[all] = set[all] or function(base) return expression.call("$" .. name, base, set.lanes) end
        end
    end
end
