-- The CPUs that defaults of a schedule can be made for: a file of this folder each, by the name that `--for` takes.
-- Every file says everything; only `generic`, which is none, has no instruction sets of its own.
--
--   cpus           as CPUID or MIDR_EL1 name them: { vendor, family, first model, last model }
--   architecture   of gen/isa/list.lua
--   isa            the instruction sets that some of these CPUs have
--   l2_bytes       L2 cache of a core; 0: the nominal one of each instruction set
--
-- Kernels for many tokens, and slices of tables that they copy:
--   tile_vectors   vectors of tokens in a tile, if 32 registers have room for them
--   rows_first     1: with 32 registers 16 rows of all blocks of an i8 projection, and their butterflies, share L1
--   copies         how slices are copied, a value of gather.pack
--   integers_ahead, floats_ahead   the part of L2 (2: half) that a slice takes while the next one is prefetched, of
--                  rows that are summed as integers and of others; 0: none is prefetched, a slice takes half of L2
--   codes_ahead    1: codes and scores of integers are prefetched
--
-- Calls between few and many tokens, which gather whole rows:
--   integers_met, floats_met   times that a call meets a row on average, above which slices are faster; 0: always
--   whole_up_to    bytes of tables up to which whole rows are faster than the gather of few tokens, wherever a token
--                  alone is quick to project
--   integers_into_l2, floats_into_l2   bytes of tables beyond which they prefetch into L2, not L1, whose misses are few
--   whole_rows     rows of integers at a time that come into L1; all of those that come into L2
--
-- Few tokens:
--   few_into_l2    bytes of tables beyond which they prefetch into L2
--   few_prefetch   what they prefetch of rows of integers otherwise, a value of few.prefetch
--   far            bytes of floats beyond which they read strips of `far_lines` cache lines of `far_rows` rows, so that
--                  they come back to a page seldom, or leave little unread in L1
--   tables_at_once tables of integers whose rows are read side by side, by these and by those that go into L2
--
-- Transformers:
--   product_prefetch      bytes ahead that products of several tokens prefetch weights; 0: not
--   attention_prefetch, attention_converted   what attention prefetches of a cache that it reads as it is, and of one
--                  that it converts; values of attention.prefetch
local misuse = require "gen.schema.misuse"
local one_of = require "gen.schema.one_of"

local machines = {
    nominal = "generic",
    names = { "generic", "skylake-x", "ice-lake-server", "sapphire-rapids", "zen3", "zen4", "zen5", "neoverse-v1" },
}

-- The CPU of that name; raises one line for another.
function machines.get(name)
    one_of.check("--for", name, machines.names)
    return (require("gen.machines." .. name))
end

-- Raises one line if the CPU of that name is not one for the instruction sets `sets`. Those that somebody has `asked`
-- for it must have, all; a list that nobody asked for may go beyond it, on CPUs of its kind.
function machines.check(name, sets, asked)
    local cpu = machines.get(name)
    for _, set in ipairs(cpu.isa and sets or {}) do
        local has = table.concat(cpu.isa, ", ")
        if asked and not one_of.contains(cpu.isa, set.name) then
            misuse(string.format("--isa: %s: is not of --for %s, which has %s", set.name, name, has))
        elseif set.architecture and set.architecture ~= cpu.architecture then
            misuse(string.format("--for: %s: does not run %s: needs --isa, of %s", name, set.name, has))
        end
    end
end

-- The name of the CPU with these numbers; the nominal one's, if it has no file.
function machines.of_cpu(vendor, family, model)
    for _, name in ipairs(machines.names) do
        for _, cpu in ipairs(machines.get(name).cpus) do
            if cpu[1] == vendor and cpu[2] == family and cpu[3] <= model and model <= cpu[4] then return name end
        end
    end
    return machines.nominal
end

-- The instruction sets `sets` on the CPU of that name; nil: as they are.
function machines.sets(sets, name)
    if not name then return sets end
    local cpu, list = machines.get(name), {}
    for i, set in ipairs(sets) do
        local copy = {}
        for key, value in pairs(set) do
            copy[key] = value
        end
        if cpu.l2_bytes > 0 then copy.l2_bytes = cpu.l2_bytes end
        copy.machine = cpu
        list[i] = copy
    end
    return list
end

return machines
