-- What a drawn model has, as facts, and a short list of models in which each pair of facts occurs that can.
--
-- A fact is an instruction set, a type of weights, or a feature: a key of the model file with its value, or how a width
-- lies to the vectors of the instruction set. A pair is two facts of different kinds, in one family. Several sets share
-- their vectors: the quick suite needs each feature with the vectors only, not with each set.
local dtype = require "gen.plan.dtype"
local families = require "gen.families.list"
local host = require "host"
local isa = require "gen.isa.list"
local lookup_model = require "gen.families.lookup.model"
local plans = require "tests.fuzz.plans"
local score = require "gen.plan.score"

local cover = {}

-- Features that are verified with the vectors of every instruction set.
local everywhere = {
    ["attention.kind=lsh"] = true,
    ["attention.unit=true"] = true,
    ["attention.shifted"] = true,
    ["ffn.qkv=true"] = true,
}

-- Keys that the emitted C does not follow.
local unseen = { name = true, vocab = true, checkpoint = true }

-- The features of a table of a model file: "norm.place=pre", or "norm.eps" of a key with a number.
local function features(given, path, add)
    for key, value in pairs(given) do
        local own = type(key) == "number" and path or path == "" and key or path .. "." .. key
        if type(value) == "table" then
            add(own)
            features(value, own, add)
        elseif type(value) == "number" then
            if path ~= "" then add(own) end
        elseif not unseen[key] then
            add(own .. "=" .. tostring(value))
        end
    end
end

-- How `width` lies to vectors of so many lanes.
local function fit(width, lanes)
    if width < lanes then return "below a vector" end
    if width == lanes then return "one vector" end
    return width % lanes == 0 and "vectors" or "vectors and a rest"
end

-- The facts of a plan as plans.families draws it for the instruction set `set`: { sets, vectors, types, features },
-- each a list of words in order.
function cover.facts(set, given, options)
    local seen, list = {}, {}
    local function add(word)
        if not seen[word] then
            seen[word] = true
            list[#list + 1] = word
        end
    end
    features(given, "", add)
    local ffn = given.ffn or given
    if ffn.tau then
        local m = ffn.neighbours or 1
        add("rows: " .. (m == 1 << ffn.tau and "all" or m > 2 and "several" or m))
    end
    local head = given.heads and (given.head_dim or given.d // given.heads)
    local kv = given.heads and (given.kv_heads or given.heads) * head
    if set.lanes > 1 then
        for _, row in ipairs { { "d", given.d }, { "d_out", given.d_out }, { "head", head }, { "keys", kv } } do
            if row[2] then add(row[1] .. ": " .. fit(row[2], set.lanes)) end
        end
        -- A row of the embedding that has Q, K and V is read in parts.
        if given.embedding and given.embedding.projected then add("projected keys: " .. fit(kv, set.lanes)) end
    end
    if options.quantised then add "quantised checkpoint" end
    local types = {}
    for _, name in ipairs { "arithmetic", "type", "cache", "activations", "tables", "projection" } do
        local text = options[name]
        if text then types[#types + 1] = name .. " " .. text:match "^[^,]+" end
        for part in (text or ""):gmatch "(%a+)=" do
            add("type of its own: " .. part)
        end
    end
    table.sort(list)
    local vectors = string.format("%d of %s for %s", set.lanes, set.vector, set.target or "hosts")
    return { sets = { set.name }, vectors = { vectors }, types = types, features = list }
end

-- The pairs of the facts, as words; `sets`: which facts are paired with features, "sets" or "vectors".
local function pairs_of(facts, sets)
    local list = {}
    for _, kinds in ipairs { { "sets", "types" }, { sets, "features" }, { "types", "features" } } do
        for _, a in ipairs(facts[kinds[1]]) do
            for _, b in ipairs(facts[kinds[2]]) do
                list[#list + 1] = a .. " / " .. b
            end
        end
    end
    return list
end

-- Multiplications a token of the FFN `ffn` of width `d`, about; where several rows of a table count the reference ranks
-- all, and looks for others in their place.
local function work_of_ffn(ffn, d)
    if not ffn.tau then return 3 * d * (ffn.f or 0) end
    local bits, m, padded = ffn.h * ffn.tau, ffn.neighbours or 1, lookup_model.power_of_two_at_least(d)
    local block = ffn.projection.block
    local projected = block and 4 * math.ceil(bits / padded) * padded * block or d * bits
    return projected + ffn.h * m * (ffn.d_out or d) + (m > 1 and (4 + m // 8) * ffn.h << ffn.tau or 0)
end

-- Seconds, about, that it takes to compile and verify the plan `p` of the table `given` in emulation.
local function seconds_of(p, given)
    local chosen, work = p.variants[1].schedule, work_of_ffn(given.ffn or given, given.d)
    if given.layers then
        work = (given.attention.causal and 3 or 24) * (work + 4 * given.d * given.d) -- the latter in batches, too
    end
    return 1 + work * (chosen and chosen["chunk.tokens"] or 1) / 2e6 + p.packed_bytes / 5e5
end

-- Few of `rows`, each with a list of `facts` and a `cost`, that have all facts of them: always the one with most that
-- are missing yet, for its cost. Behind them how many facts there are.
local function cover_of(rows)
    local missing, count = {}, 0
    for _, row in ipairs(rows) do
        for _, fact in ipairs(row.facts) do
            if not missing[fact] then
                missing[fact], count = true, count + 1
            end
        end
        row.most = #row.facts / row.cost -- that can be missing yet
    end
    local chosen, left = {}, count
    while left > 0 do
        local best, most = nil, 0
        for _, row in ipairs(rows) do
            if row.most > most then
                local own = 0
                for _, fact in ipairs(row.facts) do
                    if missing[fact] then own = own + 1 end
                end
                row.most = own / row.cost
                if row.most > most then
                    best, most = row, row.most
                end
            end
        end
        for _, fact in ipairs(best.facts) do
            if missing[fact] then
                missing[fact], left = nil, left - 1
            end
        end
        chosen[#chosen + 1] = best
    end
    return chosen, count
end

-- Draws `count` models of a family for every instruction set that it has kernels for. Returns few { set, index } that
-- have all pairs which occur, in two lists: `quick`, which every suite compiles, and `full`, which one at full strength
-- does besides; and few to be verified, `verified`: with all single facts on x86, all sets and types of quick models on
-- AArch64, which is emulated, and what is `everywhere` with all vectors. Behind them how many pairs occur.
local function chosen_of(family, count)
    local rows, by_architecture, verified = {}, {}, {}
    local sets = {}
    for _, name in ipairs(isa.all) do
        if plans.has(family, isa.get(name)) then sets[#sets + 1] = isa.get(name) end
    end
    for index = 1, count do
        for i = 1, #sets do
            local set = sets[(index + i) % #sets + 1] -- of equals the first is chosen: they take turns
            local good, p, given, options = pcall(family.draw, index, set)
            assert(good or plans.target_of(set), p) -- firmware has not all
            if good then
                local facts, seconds = cover.facts(set, given, options), seconds_of(p, given)
                rows[#rows + 1] = {
                    set = set,
                    index = index,
                    facts = pairs_of(facts, "sets"),
                    cost = 1,
                    single = facts,
                    seconds = seconds,
                }
            end
        end
    end
    local compiled, occur = cover_of(rows)
    for _, row in ipairs(compiled) do
        row.facts = pairs_of(row.single, "vectors")
    end
    local quick, is_quick, full = cover_of(compiled), {}, {}
    for _, row in ipairs(quick) do
        is_quick[row] = true
    end
    for _, row in ipairs(compiled) do
        if not is_quick[row] then full[#full + 1] = row end
    end
    for _, row in ipairs(rows) do
        local name = row.set.architecture or "x86"
        local list = by_architecture[name] or {}
        by_architecture[name] = list
        if not plans.target_of(row.set) and (name == "x86" or row.seconds < 5) then
            local f = row.single
            local facts = table.move(f.types, 1, #f.types, 2, { row.set.name })
            if name == "x86" then table.move(f.features, 1, #f.features, #facts + 1, facts) end
            for _, feature in ipairs(f.features) do
                if everywhere[feature] then facts[#facts + 1] = f.vectors[1] .. " / " .. feature end
            end
            list[#list + 1] = { set = row.set, index = row.index, facts = facts, cost = row.seconds }
        end
    end
    for _, name in ipairs { "x86", "aarch64" } do
        local list = family.checked and cover_of(by_architecture[name] or {}) or {}
        table.move(list, 1, #list, #verified + 1, verified)
    end
    return { quick = quick, full = full, verified = verified }, occur
end

-- Lines of { [set] = numbers } of `rows`.
local function lines_of(rows, lines)
    for _, name in ipairs(isa.all) do
        local list = {}
        for _, row in ipairs(rows) do
            if row.set.name == name then list[#list + 1] = row.index end
        end
        table.sort(list)
        if #list > 0 then
            lines[#lines + 1] = "            " .. name .. " = {"
            for first = 1, #list, 20 do
                local last = math.min(first + 19, #list)
                lines[#lines + 1] = "                " .. table.concat(list, ", ", first, last) .. ","
            end
            lines[#lines + 1] = "            },"
        end
    end
end

-- A digest of what the list depends on, in a fraction of a second: the keys of model files with their rules, types,
-- scores, instruction sets, and the facts of a few models with the legal values of every choice of their schedules.
function cover.mark()
    local lines = {}
    local function add(words) lines[#lines + 1] = table.concat(words, " ") end
    local function add_keys(keys)
        for _, row in ipairs(keys) do
            add { row.key, row.rule.words }
            add_keys(row.rule.table or {})
        end
    end
    for _, family in ipairs(families.rows) do
        add_keys(family.model.keys)
    end
    for _, names in ipairs { dtype.names, dtype.type_names, dtype.projection_names, dtype.cache_names, score.names } do
        add(names)
    end
    for _, row in ipairs(isa.list) do
        add { row.name, row.use, isa.get(row.name).lanes }
    end
    for i, family in ipairs(plans.families) do
        local drawn_for = isa.get(family.one_lane and "scalar" or "avx2")
        local p, given, options = family.draw(i, drawn_for)
        local facts = cover.facts(drawn_for, given, options)
        add(facts.types)
        add(facts.features)
        for _, row in ipairs(isa.list) do
            local chosen = {}
            for _, choice in ipairs(families.get(p.family).space.choices) do
                local values = choice.values(p.shape, isa.get(row.name), chosen)
                chosen[choice.key] = values[#values]
                add { choice.key, table.unpack(values) }
            end
        end
    end
    return host.sha256(table.concat(lines, "\n")):sub(1, 16)
end

-- The text of tests/fuzz/covering.lua, out of `count` models of each family and instruction set.
function cover.text(count)
    local lines = {
        "-- Models in which each pair of instruction set, type of weights and feature occurs, by family: the",
        "-- numbers by which tests/fuzz/plans.lua draws them; those that only a suite at full strength compiles stand",
        "-- apart. And those in which each fact occurs, to be verified.",
        "-- Written by `./build.sh covering`; tests/fuzz/cover.lua says what a pair is.",
        "return {",
        "    drawn = " .. count .. ",",
        '    mark = "' .. cover.mark() .. '", -- of what the draws depend on',
    }
    for _, family in ipairs(plans.families) do
        local chosen, occur = chosen_of(family, count)
        lines[#lines + 1] = "    " .. family.name .. " = {"
        lines[#lines + 1] = "        pairs = " .. occur .. ","
        for _, name in ipairs { "quick", "full", "verified" } do
            lines[#lines + 1] = "        " .. name .. " = {"
            lines_of(chosen[name], lines)
            lines[#lines + 1] = "        },"
        end
        lines[#lines + 1] = "    },"
    end
    lines[#lines + 1] = "}"
    return table.concat(lines, "\n") .. "\n"
end

return cover
