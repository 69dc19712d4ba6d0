-- A library of several plans has the kernels that they share once, and only those.
local check = require "tests.support.check"
local compile = require "harness.base.compile"
local isa = require "gen.isa.list"
local model = require "gen.families.model_file"
local plan = require "gen.families.lookup.plan"

local function plan_of(name, wanted)
    local given = { name = name, d = 40, h = 8, tau = 4, projection = { kind = "dense" }, score = "gelu" }
    return plan.build(model.validate(given, "", name), isa.select "avx2", { avx2 = wanted }, "f32", "f32")
end

-- The kernels of model `name` that are others': { ["load_…"] = "first_load_…" }.
local function shared(same, name)
    local list = {}
    for _, option in ipairs(same) do
        local own, other = option:match("^%-Wl,%-%-defsym=" .. name .. "_([%w_]+)=([%w_]+)$")
        if own then list[own] = other end
    end
    return list
end

local function count(list)
    local n = 0
    for _ in pairs(list) do
        n = n + 1
    end
    return n
end

-- The symbol of the gather of many tokens.
local function gather_of(p) return p.variants[1].stages[1].gathers[1].names.gather end

return {
    plans_that_differ_in_their_name_only_share_every_kernel_that_calls_no_other = function()
        local _, units, same = compile.sources { plan_of "first", plan_of "second" }
        local list = shared(same, "second")
        check.equal(#units, 2)
        check.equal(count(list) > 4, true)
        for own, other in pairs(list) do
            check.equal(other, "first_" .. own)
            check.equal(own:find("^ffn") or own:find("^project") or false, false)
        end
    end,
    a_kernel_of_the_same_name_but_another_text_is_not_shared = function()
        local first, second = plan_of("first", { ["gather.unroll"] = 1 }), plan_of("second", { ["gather.unroll"] = 2 })
        local gather = gather_of(second)
        check.equal(gather, (gather_of(first):gsub("^first", "second")))
        local contents, units, same = compile.sources { first, second }
        local list = shared(same, "second")
        check.equal(list[gather:gsub("^second_", "")], nil)
        check.equal(contents[units[2].name]:find('"' .. gather .. '.c"', 1, true) ~= nil, true)
        check.equal(count(list) > 2, true)
    end,
    -- Scratch of chunks of other sizes has the sums elsewhere: the text of the gather has a name for where.
    a_kernel_of_the_same_text_whose_macros_have_other_values_is_not_shared = function()
        local function one(name, tokens)
            return plan_of(name, { ["chunk.tokens"] = tokens, ["gather.columns"] = 16, ["gather.group"] = 1 })
        end
        local first, second = one("first", 128), one("second", 256)
        local gather, contents, _, same = gather_of(second), compile.sources { first, second }
        local function text(name) -- lines break elsewhere in that of a longer name
            return (contents[name .. ".c"]:gsub("first", "second"):gsub("FIRST", "SECOND"):gsub("%s+", " "))
        end
        check.equal(text(gather_of(first)), text(gather))
        check.equal(text(gather):find("SECOND_AVX2_SCRATCH_SUMS", 1, true) ~= nil, true)
        local list = shared(same, "second")
        check.equal(list[gather:gsub("^second_", "")], nil)
        check.equal(count(list) > 2, true)
    end,
    one_plan_shares_nothing = function()
        local _, _, same = compile.sources { plan_of "first" }
        check.equal(same, {})
    end,
}
