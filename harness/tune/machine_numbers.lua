-- Which numbers of a CPU `lookupc tune --machine` measures: the values that each may have, and the shapes and calls at
-- which they decide anything.
local dtype = require "gen.plan.dtype"

local machine_numbers = {}

-- A LookupFFN of `d` values with `h` tables of 2^tau rows; options: its types.
local function lookup(name, d, h, tau, options)
    local tables = dtype.get(options.tables, "tables")
    return {
        model = {
            name = name,
            d = d,
            h = h,
            tau = tau,
            projection = { kind = "bh4", block = math.min(64, d // 4), decay = 0.7 },
            score = "gelu",
            norm = { kind = "layernorm", eps = 1e-5 },
        },
        options = options,
        bytes = h * d * tables.bytes << tau,
    }
end

-- A decoder of `layers` blocks that is called at position `position`.
local function decoder(name, layers, f, kv_heads, position, options)
    return {
        model = {
            name = name,
            d = 1024,
            heads = 16,
            kv_heads = kv_heads,
            layers = layers,
            vocab = 256,
            attention = { eliminate = "QP", rope = { theta = 10000 }, causal = true, context = 4096 },
            ffn = { kind = "glu", f = f, activation = "silu" },
        },
        options = options,
        position = position,
    }
end

local floats, integers = { tables = "f32", projection = "f32" }, { tables = "i8", projection = "f32" }

-- Tables in L2, in L3 and in memory, few slots and many, short rows and long ones.
machine_numbers.shapes = {
    floats_l2 = lookup("floats_l2", 64, 16, 6, floats),
    floats_16m = lookup("floats_16m", 512, 32, 8, floats),
    floats_64m = lookup("floats_64m", 512, 128, 8, floats),
    floats_128m = lookup("floats_128m", 512, 128, 9, floats),
    floats_255m = lookup("floats_255m", 768, 170, 9, floats),
    integers_l2 = lookup("integers_l2", 64, 16, 6, { tables = "i8", projection = "i8" }),
    integers_4m = lookup("integers_4m", 512, 32, 8, integers),
    integers_16m = lookup("integers_16m", 512, 128, 8, integers),
    integers_64m = lookup("integers_64m", 768, 170, 9, integers),
    integers_96m = lookup("integers_96m", 768, 256, 9, integers),
    projection_i8 = lookup("projection_i8", 512, 128, 8, { tables = "i8", projection = "i8" }),
    products = decoder("products", 2, 3584, 4, 0, { type = "f32" }),
    attention_f32 = decoder("attention_f32", 2, 64, 16, 2048, { type = "f32" }),
    attention_f16 = decoder("attention_f16", 2, 64, 16, 2048, { type = "f32", cache = "f16" }),
}

local large_floats, large_integers = { "floats_64m", "floats_255m" }, { "integers_16m", "integers_64m" }
local both = { "floats_64m", "floats_255m", "integers_16m", "integers_64m" }
local all_floats = { "floats_16m", "floats_64m", "floats_128m", "floats_255m" }
local all_integers = { "integers_4m", "integers_16m", "integers_64m", "integers_96m" }
local all = table.move(all_integers, 1, #all_integers, #all_floats + 1, { table.unpack(all_floats) })
local calls_between = { 192, 384, 768, 1536 }

-- One row a number, in the order in which they are measured. `values`: those that it may have; nil: it is a size of
-- tables at which something begins or ends, and each of the shapes may be the last one of before. `beside`: values of
-- others to be tried with each, where it means nothing without them.
machine_numbers.rows = {
    { name = "tile_vectors", values = { 1, 2, 4 }, shapes = { "floats_l2", "floats_64m" }, tokens = { 512 } },
    { name = "rows_first", values = { 0, 1 }, shapes = { "projection_i8", "integers_l2" }, tokens = { 512 } },
    { name = "copies", values = { 0, 1, 2, 3 }, shapes = both, tokens = { 4096 } },
    { name = "integers_ahead", values = { 0, 2, 4 }, shapes = large_integers, tokens = { 4096 } },
    { name = "floats_ahead", values = { 0, 2, 4 }, shapes = large_floats, tokens = { 4096 } },
    { name = "codes_ahead", values = { 0, 1 }, shapes = large_integers, tokens = { 4096 } },
    { name = "integers_met", values = { 0, 1, 2, 4 }, shapes = large_integers, tokens = calls_between },
    { name = "floats_met", values = { 0, 1, 2, 4 }, shapes = large_floats, tokens = calls_between },
    { name = "whole_up_to", shapes = all, tokens = { 256 } },
    { name = "integers_into_l2", shapes = all_integers, tokens = { 128 } },
    { name = "floats_into_l2", shapes = all_floats, tokens = { 128 } },
    { name = "whole_rows", values = { 16, 32, 128 }, shapes = large_integers, tokens = { 128 } },
    { name = "few_into_l2", shapes = all, tokens = { 1, 8 } },
    { name = "few_prefetch", values = { 1, 2 }, shapes = all_integers, tokens = { 1 } },
    {
        name = "far",
        shapes = all_floats,
        tokens = { 1, 8 },
        beside = {
            { far_lines = 1, far_rows = 16 },
            { far_lines = 2, far_rows = 64 },
            { far_lines = 16, far_rows = 64 },
        },
    },
    { name = "tables_at_once", values = { 16, 64, 256 }, shapes = large_integers, tokens = { 1, 128 } },
    { name = "product_prefetch", values = { 0, 1, 1024, 4096, 8192 }, shapes = { "products" }, tokens = { 16, 128 } },
    { name = "attention_prefetch", values = { 0, 1, 2, 3 }, shapes = { "attention_f32" }, tokens = { 1, 16 } },
    { name = "attention_converted", values = { 0, 1, 2, 3 }, shapes = { "attention_f16" }, tokens = { 1, 16 } },
}

return machine_numbers
