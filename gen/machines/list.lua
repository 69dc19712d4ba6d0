-- The CPUs that defaults of a schedule can be made for: each other file of this folder is one, with the name that
-- `--for` takes; `lookupc tune --machine` writes them. Every file says everything; only `generic`, which is none, has
-- no instruction sets of its own.
--
--   cpus           as CPUID or MIDR_EL1 name them: { vendor, family, first model, last model }
--   architecture   of gen/isa/list.lua
--   isa            the instruction sets that some of these CPUs have; older ones of x86, whose bits theirs include,
--                  may be missing
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
--   product_prefetch      what products of several tokens prefetch, a value of product.prefetch
--   attention_prefetch, attention_converted   what attention prefetches of a cache that it reads as it is, and of one
--                  that it converts; values of attention.prefetch
local copied = require "gen.schema.copied"
local host = require "host"
local one_of = require "gen.schema.one_of"

local machines = { nominal = "generic" }

-- The fields in the order of the files: facts, then numbers, with what goes together side by side.
machines.fields = {
    { "cpus", "architecture", "isa", "l2_bytes" },
    { "tile_vectors", "rows_first", "copies", "integers_ahead", "floats_ahead", "codes_ahead" },
    { "integers_met", "floats_met", "whole_up_to", "integers_into_l2", "floats_into_l2", "whole_rows" },
    { "few_into_l2", "few_prefetch", "far", "far_lines", "far_rows", "tables_at_once" },
    { "product_prefetch", "attention_prefetch", "attention_converted" },
}

-- Their names, the nominal one first.
machines.names = { machines.nominal }
local files = host.resources "gen/machines/"
table.sort(files)
for _, file in ipairs(files) do
    local name = file:match "([^/]+)%.lua$"
    if name and name ~= "list" and name ~= machines.nominal then machines.names[#machines.names + 1] = name end
end

-- The CPU of that name; raises one line for another.
function machines.get(name)
    one_of.check("--for", name, machines.names)
    return (require("gen.machines." .. name))
end

-- How far the CPU with these numbers is from the nearest one of the file `cpu`, 0: it is one of them; nil: the file has
-- none of its vendor.
function machines.distance(cpu, vendor, family, model)
    local least
    for _, range in ipairs(cpu.cpus) do
        local apart = math.abs(family - range[2]) * 65536 + math.max(range[3] - model, model - range[4], 0)
        if range[1] == vendor and apart < (least or math.huge) then least = apart end
    end
    return least
end

-- The name of the CPU with these numbers, or else of the nearest one of its vendor, the nominal one's, if there is
-- none; and the distance.
function machines.nearest(vendor, family, model)
    local found, least = machines.nominal, math.huge
    for _, name in ipairs(vendor and machines.names or {}) do
        local apart = machines.distance(machines.get(name), vendor, family, model)
        if apart and apart < least then
            found, least = name, apart
        end
    end
    return found, least
end

-- The name of the CPU with these numbers; the nominal one's, if it has no file.
function machines.of_cpu(vendor, family, model)
    local name, apart = machines.nearest(vendor, family, model)
    return apart == 0 and name or machines.nominal
end

-- The instruction sets `sets` on the CPU with the numbers `cpu`.
function machines.with(sets, cpu)
    local list = {}
    for i, set in ipairs(sets) do
        local copy = copied(set)
        if cpu.l2_bytes > 0 then copy.l2_bytes = cpu.l2_bytes end
        copy.machine = cpu
        list[i] = copy
    end
    return list
end

-- The same on the CPU of that name; nil: as they are.
function machines.sets(sets, name) return name and machines.with(sets, machines.get(name)) or sets end

return machines
