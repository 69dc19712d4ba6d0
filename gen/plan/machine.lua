-- The machines that defaults of a schedule can be made for, by name: one row each, everything else loops over it.
--
--   name, doc      what `--for` takes, and what it is
--   cpus           the CPUs that it means, as CPUID or MIDR_EL1 name them: { vendor, family, first model, last model }
--   architecture   of gen/isa/list.lua, nil: any
--   isa            the instruction sets that some of these CPUs have, nil: any
--   tile_vectors   vectors of tokens in a tile, nil: as many as leave the fewest loads beside products
--   l2_bytes       L2 cache of a core, nil: the nominal one of each instruction set
--   l3_bytes       tables of up to so many bytes lie in L3, and only of these calls between few and many tokens gather
--                  whole rows; nil: no default asks for it
--   slices_from    times that a call meets a row on average, above which slices of tables are gathered faster than
--                  whole rows; nil: 4 where rows are summed as integers; of floats, 512 rows that it takes of a table
--   float_slices_from  the same of tables of floats, whose whole rows are gathered with tokens in the lanes until then;
--                  nil: only few tokens gather whole rows of floats
--   prefetches_l2  which calls find rows of tables beyond l3_bytes faster if they are prefetched into L2 than into L1,
--                  whose misses are few at a time: "few", those of few tokens, or "all" that gather whole rows; nil:
--                  none
--   few_prefetch   what calls of few tokens prefetch of other tables, a value of few.prefetch, nil: by their type
--   rows_at_once   rows of a strip where others between few and many tokens prefetch into L1, nil: 32
--   tables_at_once  tables of such a strip, whatever rows are taken of each, nil: as rows_at_once says
--   whole_prefetch  what those calls prefetch, a value of whole.prefetch, nil: into L2 as prefetches_l2 says, else L1
--   few_rows       rows of integers that few tokens read side by side where those of all tables overfill L1, nil: all
--   short_strips_from  bytes of tables of floats from which few tokens read strips of one line, and others prefetch
--                  them as whole_prefetch says, nil: none
--   copies         how slices of tables are copied, a value of the choice gather.pack, nil: 1
--   copies_ahead   of which tables the next slice is best prefetched while tokens read a copied one: "integers" or
--                  "all", whose slices are narrower for it; nil: none
--   fills_l2       those of floats are not narrower: they fill L2
--   prefetches_codes  whether codes and scores of integers come too late by themselves
--   rows_first     a stage of a projection in i8 and its butterflies share L1 best, of 512-bit vectors
--   tlb_bytes      what pages of 2 MiB in L1's TLB cover: of larger tables of floats few tokens read long strips, nil:
--                  no default asks for it
--   product_prefetch  how many bytes ahead products of several tokens prefetch weights, nil: not
--   attention_prefetch, attention_prefetch_converted  what attention of one token prefetches of a cache whose type it
--                  reads as it is, and of one that it converts; values of attention.prefetch, nil: by the vectors
-- Where a row says "measured", docs/decisions.md has the figures; the others are nominal: sizes of data sheets
-- only. A row has what a schedule is decided by and nothing else: L1, L3 and rates are measured where kernels run.
local misuse = require "gen.model.misuse"
local one_of = require "gen.model.one_of"

local machine = {}

local avx2 = { "scalar", "sse4", "avx2" }
local avx512 = { "scalar", "sse4", "avx2", "avx512" }
local avx512_bf16 = { "scalar", "sse4", "avx2", "avx512", "avx512_bf16" }

machine.list = {
    { name = "generic", doc = "no CPU in particular", cpus = {} },
    {
        name = "skylake-x",
        doc = "Intel Skylake-X and Cascade Lake, measured",
        cpus = { { "GenuineIntel", 6, 85, 85 } },
        architecture = "x86",
        isa = avx512_bf16, -- of Cooper Lake, which has the same numbers
        l2_bytes = 1 << 20,
    },
    {
        name = "ice-lake-server",
        doc = "Intel Ice Lake server, measured",
        cpus = { { "GenuineIntel", 6, 106, 106 }, { "GenuineIntel", 6, 108, 108 } },
        architecture = "x86",
        isa = avx512,
        l2_bytes = 5 << 18,
    },
    {
        name = "sapphire-rapids",
        doc = "Intel Sapphire and Emerald Rapids, measured",
        cpus = { { "GenuineIntel", 6, 143, 143 }, { "GenuineIntel", 6, 207, 207 } },
        architecture = "x86",
        isa = { "scalar", "sse4", "avx2", "avx_vnni", "avx512", "avx512_bf16" },
        l2_bytes = 2 << 20,
        prefetches_l2 = "few",
        copies = 3,
        prefetches_codes = true,
        rows_first = true,
    },
    {
        name = "zen3",
        doc = "AMD Zen 3, measured",
        cpus = { { "AuthenticAMD", 25, 0, 15 }, { "AuthenticAMD", 25, 32, 95 } },
        architecture = "x86",
        isa = avx2,
        l2_bytes = 512 << 10,
        slices_from = 1,
        float_slices_from = 2,
        tables_at_once = 16,
        whole_prefetch = 2,
        few_rows = 16,
        copies_ahead = "all",
        fills_l2 = true,
        prefetches_codes = true,
        short_strips_from = 128 << 20,
        product_prefetch = 4096,
    },
    {
        name = "zen4",
        doc = "AMD Zen 4, measured",
        cpus = { { "AuthenticAMD", 25, 16, 31 }, { "AuthenticAMD", 25, 96, 127 }, { "AuthenticAMD", 25, 160, 175 } },
        architecture = "x86",
        isa = avx512_bf16,
        l2_bytes = 1 << 20,
        prefetches_l2 = "all",
        copies = 2,
        copies_ahead = "integers",
        attention_prefetch = 3,
        tile_vectors = 1,
    },
    {
        name = "zen5",
        doc = "AMD Zen 5, measured",
        cpus = { { "AuthenticAMD", 26, 0, 47 }, { "AuthenticAMD", 26, 64, 79 }, { "AuthenticAMD", 26, 96, 127 } },
        architecture = "x86",
        isa = { "scalar", "sse4", "avx2", "avx_vnni", "avx512", "avx512_bf16" },
        l2_bytes = 1 << 20,
        l3_bytes = 32 << 20,
        prefetches_l2 = "few",
        few_prefetch = 1,
        rows_at_once = 128,
        copies = 2,
        copies_ahead = "all",
        rows_first = true,
        tlb_bytes = 192 << 20,
        attention_prefetch = 1,
        attention_prefetch_converted = 1,
    },
    {
        name = "neoverse-v1",
        doc = "Arm Neoverse V1, nominal",
        cpus = { { "0x41", 65, 3392, 3392 } },
        architecture = "aarch64",
        isa = { "scalar", "neon", "dotprod", "sve", "i8mm" },
        l2_bytes = 1 << 20,
    },
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
    one_of.check("--for", name, machine.names)
end

-- Raises one line if the machine of that name is not one for the instruction sets `sets`. Those that somebody has
-- `asked` for it must have, all; a list that nobody asked for may go beyond it, on CPUs of its kind.
function machine.check(name, sets, asked)
    local row = machine.get(name)
    for _, set in ipairs(row.isa and sets or {}) do
        local has = table.concat(row.isa, ", ")
        if asked and not one_of.contains(row.isa, set.name) then
            misuse(string.format("--isa: %s: is not of --for %s, which has %s", set.name, row.name, has))
        elseif set.architecture and set.architecture ~= row.architecture then
            misuse(string.format("--for: %s: does not run %s: needs --isa, of %s", row.name, set.name, has))
        end
    end
end

-- The name of the row that means the CPU with these numbers; the nominal one's, if none does.
function machine.of_cpu(vendor, family, model)
    for _, row in ipairs(machine.list) do
        for _, cpu in ipairs(row.cpus) do
            if cpu[1] == vendor and cpu[2] == family and cpu[3] <= model and model <= cpu[4] then return row.name end
        end
    end
    return machine.nominal.name
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
