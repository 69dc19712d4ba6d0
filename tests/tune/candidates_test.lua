-- The candidates of a tuning are legal, in an order that is always the same, counted right, and refused for a reason.
local candidates = require "harness.tune.candidates"
local check = require "tests.support.check"
local emit = require "gen.emit.emit"
local estimate = require "harness.families.lookup.estimate"
local effort = require "tests.effort"
local fuzz = require "tests.fuzz.fuzz"
local isa = require "gen.isa.list"
local model = require "gen.families.model_file"
local plan = require "gen.families.lookup.plan"
local schedule = require "gen.families.lookup.schedule"
local sets = require "tests.support.sets"

local function plan_of(name, set, tables)
    return plan.build(model.load("gen/models/" .. name .. ".lua"), isa.select(set), nil, tables)
end

local function space_of(name, set, regime, options, tables)
    local p = plan_of(name, set, tables)
    return candidates.space(p, p.variants[1], regime, options)
end

-- Two tables of four rows of 16 floats behind a dense projection: small enough to count by hand.
local function smallest(regime, options)
    local m = { name = "m", d = 16, h = 2, tau = 2, projection = { kind = "dense" }, score = "gelu" }
    local p = plan.build(model.validate(m, "", "m"), isa.select("scalar"))
    return candidates.space(p, p.variants[1], regime, options)
end

local function texts(list)
    local names = {}
    for i, found in ipairs(list) do
        names[i] = found.text
    end
    return names
end

local function set_of(list)
    local set = {}
    for _, found in ipairs(list) do
        set[found.text] = true
    end
    return set
end

local test = {}

function test.spaces_counted_by_hand()
    -- 5 numbers of outputs, 3 radices, 4 numbers of accumulators; a group of one table has one
    -- unroll, one of two has two. A tile of 2^a tokens (a to 3) and 2^b tiles a pass (b to 4) leave 15 - a - b chunks:
    -- 20 * 15 - 5 * 6 - 4 * 10.
    check.equal(candidates.count(smallest "many"), 5 * 3 * 4 * (1 + 2) * 230)
    check.equal(candidates.count(smallest "few"), 4 * 2) -- accumulators, tables at a time
    local function counted(...) return candidates.exhaustive(smallest("many", { choices = { ... } })) end
    check.equal(#counted("tile.vectors", "project.tiles", "chunk.tokens").list, 230)
    check.equal(#counted("gather.unroll", "gather.group").list, 3)
    check.equal(#counted("gather.columns").list, 1)
    check.equal(#counted().list, 1)
    local few = candidates.exhaustive(smallest "few")
    check.equal({ #few.list, #few.rejected, few.total }, { 8, 0, 8 })
end

function test.the_count_is_what_is_walked()
    for _, set in ipairs(sets.emitted()) do
        for _, tables in ipairs { "f32", "i8" } do
            for _, choices in ipairs {
                { "tile.vectors", "product.outputs", "project.tiles", "chunk.tokens" },
                { "gather.accumulators", "gather.columns", "gather.group", "gather.unroll" },
                { "tile.vectors", "chunk.tokens", "gather.prefetch_next" },
            } do
                local found =
                    candidates.exhaustive(space_of("roberta_small", set, "many", { choices = choices }, tables))
                local all = set_of(found.list)
                for text in pairs(set_of(found.rejected)) do
                    all[text] = true
                end
                local number = 0
                for _ in pairs(all) do
                    number = number + 1
                end
                check.equal({ number, #found.list + #found.rejected }, { found.total, found.total })
            end
            local few = candidates.exhaustive(space_of("roberta_small", set, "few", nil, tables))
            check.equal(#few.list + #few.rejected, few.total)
        end
    end
end

function test.a_space_that_is_too_large_is_refused_in_one_line()
    local space = space_of("roberta_small", "avx512", "many")
    check.equal(candidates.count(space) > 1000000, true)
    check.fails_with(
        "--exhaustive: avx512 many: " .. candidates.count(space) .. " schedules, at most 20000",
        candidates.exhaustive,
        space
    )
    check.fails_with(
        'choices to vary: tile.vector: unknown choice; did you mean "tile.vectors"?',
        space_of,
        "tiny",
        "avx2",
        "many",
        { choices = { "tile.vector" } }
    )
    check.fails_with(
        "choices to vary: few.tokens: does not concern the kernels for many tokens",
        space_of,
        "tiny",
        "avx2",
        "many",
        { choices = { "few.tokens" } }
    )
    check.fails_with(
        "choices to vary: few.threshold: does not concern",
        space_of,
        "tiny",
        "avx2",
        "few",
        { choices = { "few.threshold" } }
    )
end

function test.the_default_is_first_then_schedules_one_choice_away()
    for _, regime in ipairs { "many", "few" } do
        local space = space_of("roberta_small", "avx512", regime)
        local found = candidates.list(space, 200)
        local near = candidates.neighbours(space, space.base)
        check.equal(found.list[1].text, schedule.text(space.base))
        check.equal(texts(table.move(found.list, 2, #near + 1, 1, {})), texts(near))
        local last = 0
        for _, other in ipairs(near) do
            check.equal(other.cost >= last, true)
            last = other.cost
        end
    end
    local found = candidates.list(space_of("roberta_small", "avx512", "many"), 200)
    check.equal(
        { #found.list, found.list[1].text },
        { 200, plan_of("roberta_small", "avx512").variants[1].schedule_text }
    )
    check.equal(#candidates.list(space_of("roberta_small", "avx512", "many"), 10).list, 10)
end

function test.only_choices_of_the_regime_vary()
    for _, set in ipairs(sets.emitted()) do
        for _, regime in ipairs { "many", "few" } do
            local space = space_of("roberta_base", set, regime)
            local varied, several = {}, {}
            local function look(s)
                for _, choice in ipairs(schedule.legal(space.shape, space.isa, s)) do
                    several[choice.key] = several[choice.key] or #choice.values > 1
                end
            end
            look(space.base)
            for _, found in ipairs(candidates.list(space, 160).list) do
                for key, value in pairs(found.schedule) do
                    if value ~= space.base[key] then
                        varied[key] = true
                        if not several[key] then look(found.schedule) end
                        check.equal(key:find("^few%.") ~= nil, regime == "few")
                    end
                end
            end
            check.equal(varied["few.threshold"], nil)
            -- What has several values, beside the base or a candidate that varies it, and nothing else.
            for _, choice in ipairs(schedule.choices) do
                if space.vary[choice.key] then check.equal(varied[choice.key] == true, several[choice.key]) end
            end
        end
    end
end

function test.a_neighbour_differs_in_one_choice_and_what_that_makes_illegal()
    local space = space_of("roberta_small", "avx512", "many")
    for _, found in ipairs(candidates.neighbours(space, space.base)) do
        local s, before = found.schedule, {}
        local changed = 0
        for _, choice in ipairs(schedule.choices) do
            local legal = choice.values(space.shape, space.isa, before)
            if s[choice.key] ~= space.base[choice.key] then
                local still_legal = false
                for _, value in ipairs(legal) do
                    still_legal = still_legal or value == space.base[choice.key]
                end
                changed = changed + (still_legal and 1 or 0)
            end
            before[choice.key] = s[choice.key]
        end
        check.equal({ found.text, changed }, { found.text, 1 })
    end
end

function test.every_value_of_every_choice_has_a_neighbour()
    local space = space_of("tiny", "avx2", "many")
    local near, refused = candidates.neighbours(space, space.base)
    local number = 0
    for _, choice in ipairs(schedule.legal(space.shape, space.isa, space.base)) do
        if space.vary[choice.key] then number = number + #choice.values - 1 end
    end
    check.equal(#near + #refused, number)
end

function test.the_order_is_always_the_same()
    for _, regime in ipairs { "many", "few" } do
        local first = candidates.list(space_of("roberta_base", "avx512", regime), 100)
        local near = #candidates.neighbours(space_of("roberta_base", "avx512", regime), first.list[1].schedule)
        local again = candidates.list(space_of("roberta_base", "avx512", regime), 100)
        check.equal(again, first)
        -- A smaller budget tries the beginning of what a larger one tries, as far as the neighbours go.
        local fewer = candidates.list(space_of("roberta_base", "avx512", regime), 20)
        check.equal(
            table.move(texts(fewer.list), 1, math.min(20, 1 + near), 1, {}),
            table.move(texts(first.list), 1, math.min(20, 1 + near), 1, {})
        )
    end
end

function test.no_candidate_twice_and_none_that_was_rejected()
    for _, set in ipairs(sets.emitted()) do
        local found = candidates.list(space_of("roberta_small", set, "many"), 400)
        local seen = {}
        for _, other in ipairs(found.list) do
            check.equal({ other.text, seen[other.text] }, { other.text, nil })
            seen[other.text] = true
        end
        for _, row in ipairs(found.rejected) do
            check.equal({ row.text, seen[row.text] }, { row.text, nil })
            seen[row.text] = true
            check.matches(row.reason, "^%a+: ")
        end
        check.equal(#found.list + #found.rejected <= found.total, true)
    end
end

-- Each candidate is what schedule.make gives for its own text, and its C can be printed.
local function legal_and_emitted(p, m, tables, space, budget)
    for _, found in ipairs(candidates.list(space, budget).list) do
        local choices = schedule.parse(found.text)
        check.equal(schedule.make(space.shape, space.isa, choices), found.schedule)
        local built = plan.build(m, { p.variants[1].isa }, schedule.for_all({ space.isa }, choices), tables)
        check.equal(built.variants[1].schedule_text, found.text)
        check.equal(#emit.files(built) > 5, true)
        check.equal(found.cost > 0 and found.cost < math.huge, true)
    end
end

function test.all_candidates_are_legal_and_are_emitted()
    for _, name in ipairs { "tiny", "roberta_small" } do
        for _, set in ipairs(sets.emitted()) do
            for _, regime in ipairs { "many", "few" } do
                local p = plan_of(name, set)
                legal_and_emitted(p, p.model, nil, candidates.space(p, p.variants[1], regime), 6)
            end
        end
    end
    for index = 1, effort.candidates do
        local given, tables = fuzz.model(index)
        local m = model.validate(given, "", "fuzz")
        for _, set in ipairs(sets.emitted()) do
            for _, regime in ipairs { "many", "few" } do
                local p = plan.build(m, isa.select(set), nil, tables)
                legal_and_emitted(p, m, tables, candidates.space(p, p.variants[1], regime), 6)
            end
        end
    end
end

function test.where_there_are_no_kernels_for_few_tokens_there_are_no_candidates()
    local m = model.validate(
        { name = "m", d = 64, h = 8, tau = 6, projection = { kind = "bh4", block = 2 }, score = "gelu" },
        "",
        "m"
    )
    local p = plan.build(m, isa.select("avx2"))
    local space = candidates.space(p, p.variants[1], "few")
    check.equal(candidates.list(space, 10), { list = {}, rejected = {}, total = 0 })
    check.equal(candidates.exhaustive(space), { list = {}, rejected = {}, total = 0 })
end

function test.a_base_without_kernels_for_few_tokens_gets_some()
    local p = plan.build(model.load("gen/models/tiny.lua"), isa.select("avx2"), { avx2 = { ["few.threshold"] = 0 } })
    local space = candidates.space(p, p.variants[1], "few")
    check.equal({ p.variants[1].schedule["few.threshold"], space.base["few.threshold"] }, { 0, 8 })
    check.equal(#candidates.list(space, 10).list, 10)
end

function test.the_search_goes_on_around_another_base()
    local base = schedule.make(
        space_of("roberta_small", "avx512", "many").shape,
        isa.get("avx512"),
        { ["gather.columns"] = 128, ["gather.group"] = 2 }
    )
    local found = candidates.list(space_of("roberta_small", "avx512", "many", { base = base }), 50)
    check.equal(found.list[1].schedule, base)
end

-- Whether some schedule is rejected with a reason that starts with `prefix`.
local function rejects(found, prefix)
    for _, row in ipairs(found.rejected) do
        if row.reason:find(prefix, 1, true) == 1 then return row end
    end
    error("nothing rejected with " .. prefix, 2)
end

function test.reasons()
    local function many(set, options, tables)
        return candidates.list(space_of("roberta_small", set, "many", options, tables), 300)
    end
    -- Two buffers of 512 features of 4 * 16 * 16 tokens.
    local space = space_of("roberta_small", "avx512", "many", { choices = { "tile.vectors", "project.tiles" } })
    local s = schedule.make(
        space.shape,
        space.isa,
        { ["tile.vectors"] = 4, ["project.tiles"] = 16, ["product.outputs"] = 4, ["chunk.tokens"] = 4096 }
    )
    check.equal(candidates.reason(space, s), "tile: 4096.0 KiB of projection buffers, L2 has 1024.0 KiB")
    -- 64 tables of 256 rows of 256 floats; whole rows are no tile.
    s = schedule.make(space.shape, space.isa, { ["gather.columns"] = 256, ["gather.group"] = 64 })
    check.equal(candidates.reason(space, s), "tile: a slice of tables of 16384.0 KiB, L2 has 1024.0 KiB")
    check.equal(
        candidates.reason(
            space,
            schedule.make(space.shape, space.isa, { ["gather.columns"] = 512, ["gather.group"] = 64 })
        ),
        nil
    )
    check.equal(candidates.reason(space, space.base), nil)
    rejects(many "avx512", "tile: ")
    rejects(many("avx512", { caches = { l1i = 3200 } }), "code: loops of about ")
    rejects(many("avx2", { stack = 150 }), "stack: ")
    -- 16 outputs times 8 tokens of portable C, in vectors of four.
    space = space_of("roberta_small", "scalar", "many")
    s = schedule.make(space.shape, space.isa, { ["tile.vectors"] = 8, ["product.outputs"] = 16 })
    check.equal(candidates.reason(space, s), "registers: needs 34 of 16")
    rejects(candidates.list(space, 300), "registers: ")
end

function test.a_rule_that_every_schedule_breaks_rejects_none()
    -- One table of 65536 rows of 16 floats is larger than L2, whatever is chosen.
    local m = model.validate(
        { name = "m", d = 64, h = 8, tau = 16, projection = { kind = "dense" }, score = "gelu" },
        "",
        "m"
    )
    local p = plan.build(m, isa.select("avx512"))
    local found = candidates.list(candidates.space(p, p.variants[1], "many"), 100)
    check.equal(#found.list, 100)
    for _, row in ipairs(found.rejected) do
        check.equal(row.reason:find("slice of tables", 1, true), nil)
    end
    check.equal(#candidates.list(space_of("tiny", "avx2", "many", { caches = { l1i = 1 } }), 50).list, 50)
end

function test.a_type_of_tables_over_the_budget_leaves_the_default_alone()
    local m = model.load("gen/models/tiny.lua")
    m.budget = 1e-3
    local p = plan.build(m, isa.select("avx2"), nil, "i8")
    local function tried(rel_err)
        return candidates.list(candidates.space(p, p.variants[1], "many", { rel_err = rel_err }), 50)
    end
    check.equal(#tried(nil).list, 50)
    check.equal(#tried(5e-4).list, 50)
    local over = tried(6.5e-3)
    check.equal(texts(over.list), { p.variants[1].schedule_text })
    check.equal(over.rejected[1].reason, "budget: relative error 0.0065 of y with tables in i8, the budget is 0.001")
    check.equal(#tried(0 / 0).list, 1)
end

function test.scores_are_rounded_under_a_budget_alone()
    local function varies(budget, set, tables)
        local m = model.load "gen/models/tiny.lua"
        m.budget = budget
        local p = plan.build(m, isa.select(set), nil, tables)
        local many = candidates.space(p, p.variants[1], "many").vary["gather.byte_scores"]
        return { many, candidates.space(p, p.variants[1], "few").vary["few.byte_scores"] }
    end
    check.equal(varies(0.1, "avx2", "i8"), { true, true })
    check.equal(varies(nil, "avx2", "i8"), { false, false })
    check.equal(varies(0.1, "avx2", "f32"), { false, false })
    check.equal(varies(0.1, "scalar", "i8"), { false, false })
end

function test.the_estimate_knows_what_is_good()
    local p = plan_of("roberta_small", "avx512")
    local v, caches = p.variants[1], { l1d = 48 << 10, l2 = 1 << 20, l3 = 32 << 20 }
    local function cycles(regime, changes, batch)
        return estimate.cycles(
            p,
            v.isa,
            schedule.make(p.shape, v.isa, changes),
            regime,
            caches,
            batch or (regime == "few" and 1 or 4096)
        )
    end
    local many, few = cycles("many", {}), cycles("few", {})
    -- loads, not multiply-adds
    check.equal(cycles("many", { ["tile.vectors"] = 2, ["product.outputs"] = 1 }) > 1.2 * many, true)
    check.equal(cycles("many", { ["gather.accumulators"] = 1 }) > many, true)
    -- 64 MiB of tables for 128 tokens
    check.equal(cycles("many", { ["chunk.tokens"] = 128, ["gather.prefetch_next"] = 0 }) > 1.5 * many, true)
    -- a slice that leaves L2
    check.equal(cycles("many", { ["gather.columns"] = 512, ["gather.group"] = 32 }) > many, true)
    check.equal(cycles("few", { ["few.prefetch"] = 0 }) > 1.2 * few, true)
    check.equal(cycles("few", { ["few.tokens"] = 1 }, 64) > cycles("few", { ["few.tokens"] = 4 }, 64), true)
    -- Whole rows of integers, for calls and last chunks that are short.
    local i8 = plan_of("roberta_small", "avx512", "i8")
    local words = i8.variants[1].isa.integer_sums
    local function with_whole(batch, tokens, more)
        local changes = { ["whole.tokens"] = tokens, ["chunk.tokens"] = 1024 }
        for key, value in pairs(more or {}) do
            changes[key] = value
        end
        local set = i8.variants[1].isa
        return estimate.cycles(i8, set, schedule.make(i8.shape, set, changes), "many", caches, batch, words)
    end
    check.equal(with_whole(64, 128) < 0.8 * with_whole(64, 0), true)
    check.equal(with_whole(2048, 128), with_whole(2048, 0))
    local long, short = with_whole(1024, 128), with_whole(64, 128)
    local both = (1024 * long + 64 * short) / 1088 -- a chunk, and one that is short
    if math.abs(with_whole(1088, 128) / both - 1) > 1e-9 then error(with_whole(1088, 128) .. ", not " .. both, 0) end
    check.equal(with_whole(64, 128, { ["whole.prefetch"] = 0 }) > short, true)
    check.equal(with_whole(64, 128, { ["whole.group"] = 8 }) > with_whole(64, 128, { ["whole.group"] = 128 }), true)
    -- The default is among the cheapest quarter of its neighbours and itself.
    for _, regime in ipairs { "many", "few" } do
        local space = candidates.space(p, v, regime)
        local near, cheaper = candidates.neighbours(space, space.base), 0
        for _, found in ipairs(near) do
            cheaper = cheaper + (found.cost < 0.97 * cycles(regime, {}) and 1 or 0)
        end
        check.equal({ regime, cheaper <= #near // 4 }, { regime, true })
    end
end

return test
