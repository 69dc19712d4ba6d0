-- The candidates of a tuning: which schedules of one instruction set to measure, in which order, and why others are not
-- worth it.
--
-- A space holds what may vary: the choices of a regime, "few" (keys that begin with "few.") or "many" (all others),
-- around a base schedule. A choice that is not varied has the base's value, or the nearest one that is legal beside the
-- others. A candidate is { schedule, text = its text, cost = cycles of a token as harness/families/lookup/estimate.lua
-- guesses }.
local copied = require "gen.schema.copied"
local families = require "gen.families.list"
local harness = require "harness.families.list"
local misuse = require "gen.schema.misuse"
local nearest = require("gen.plan.space").nearest

local candidates = {}

candidates.most = 20000 -- of an exhaustive list
local most_stack_bytes = 16 << 10
local threshold = "few.threshold" -- chosen last, from the times of both regimes; of blocks only one token is few
local few_chunk = 8 -- tokens that the few-token kernels take at once if calls may be that large

-- The schedule nearest to `wanted`, which has a value for every choice.
local function legalised(space, wanted)
    local s = {}
    for _, choice in ipairs(space.schedules.choices) do
        s[choice.key] = nearest(choice.values(space.shape, space.isa, s), wanted[choice.key])
    end
    return s
end

-- The tokens of the longest call that takes the kernels for few tokens of schedule `s`.
function candidates.most_few(s) return s[threshold] or 1 end

-- The space of variant `v` of plan `p` in `regime`. options, all optional:
--   base     the schedule around which to search; v's own
--   choices  list of the keys to vary; all of the regime
--   caches   l1i, l1d, l2, l3 of this CPU in bytes; those of a nominal one
--   batch    tokens of a call that the order is for; 1 or 4096
--   rel_err  relative error of y with this type of tables, to be compared with the model's budget
--   stack    most bytes of local arrays
function candidates.space(p, v, regime, options)
    options = options or {}
    local schedules, family = families.get(p.family).space, harness.get(p.family).tuning
    local base, vary = {}, {}
    for key, value in pairs(options.base or v.schedule) do
        base[key] = value
    end
    if regime == "few" and base[threshold] == 0 then
        base[threshold] = nearest(schedules.choice(threshold, regime).values(p.shape, v.isa, base), few_chunk)
    end
    local function of_regime(key) return key ~= threshold and (key:find("^few%.") ~= nil) == (regime == "few") end
    for _, choice in ipairs(schedules.choices) do
        local allowed = not choice.rounds or p.model.budget and family.integer_sums(p, v)
        vary[choice.key] = not options.choices and of_regime(choice.key) and allowed and true or false
    end
    for _, key in ipairs(options.choices or {}) do
        schedules.choice(key, "choices to vary")
        if not of_regime(key) then
            error("choices to vary: " .. key .. ": does not concern the kernels for " .. regime .. " tokens", 0)
        end
        vary[key] = true
    end
    local caches = options.caches or {}
    return {
        plan = p,
        shape = p.shape,
        isa = v.isa,
        regime = regime,
        base = base,
        vary = vary,
        schedules = schedules,
        integer_sums = family.integer_sums(p, v),
        estimate = family.estimate,
        all_rules = family.rules,
        exists = regime == "many" or candidates.most_few(base) > 0,
        caches = {
            l1i = caches.l1i or 32 << 10,
            l1d = caches.l1d or 32 << 10,
            l2 = caches.l2 or v.isa.l2_bytes,
            l3 = caches.l3 or 32 << 20,
        },
        batch = options.batch or (regime == "few" and 1 or 4096),
        rel_err = options.rel_err,
        stack = options.stack or most_stack_bytes,
    }
end

-- The schedule that needs least of everything: the smallest value of every choice that varies.
local function least_of(space)
    local s = {}
    for _, choice in ipairs(space.schedules.choices) do
        local legal = choice.values(space.shape, space.isa, s)
        s[choice.key] = space.vary[choice.key] and legal[1] or nearest(legal, space.base[choice.key])
    end
    return s
end

-- Why schedule `s` is not worth measuring, nil if it is. A rule that the base breaks, or all schedules of the space do,
-- says nothing.
function candidates.reason(space, s)
    if not space.rules then
        local least = least_of(space)
        space.rules = {}
        for _, rule in ipairs(space.all_rules) do
            if not rule(space, space.base) and not rule(space, least) then space.rules[#space.rules + 1] = rule end
        end
    end
    local budget = space.plan.model.budget
    if budget and space.rel_err and not (space.rel_err <= budget) then
        return string.format(
            "budget: relative error %.2g of y with tables in %s, the budget is %g",
            space.rel_err,
            space.shape.tables.name,
            budget
        )
    end
    for _, rule in ipairs(space.rules) do
        local reason = rule(space, s)
        if reason then return reason end
    end
end

local function candidate(space, s)
    return {
        schedule = s,
        text = space.schedules.text(s),
        cost = space.estimate.cycles(
            space.plan,
            space.isa,
            s,
            space.regime,
            space.caches,
            space.batch,
            space.integer_sums
        ),
    }
end

local function cheaper(a, b)
    if a.cost ~= b.cost then return a.cost < b.cost end
    return a.text < b.text
end

-- The schedules that differ from `s` in one choice of the space, and in what that makes illegal; the cheapest first.
-- The second result lists those that are not worth measuring: { text, reason }.
function candidates.neighbours(space, s)
    local list, rejected, seen = {}, {}, { [space.schedules.text(s)] = true }
    for _, choice in ipairs(space.schedules.choices) do
        for _, value in ipairs(space.vary[choice.key] and choice.values(space.shape, space.isa, s) or {}) do
            local wanted = setmetatable({ [choice.key] = value }, { __index = s })
            local found = candidate(space, legalised(space, wanted))
            if not seen[found.text] then
                seen[found.text] = true
                local reason = candidates.reason(space, found.schedule)
                if reason then
                    rejected[#rejected + 1] = { text = found.text, reason = reason }
                else
                    list[#list + 1] = found
                end
            end
        end
    end
    table.sort(list, cheaper)
    return list, rejected
end

-- Calls visit(schedule) for every schedule of the space, in the order of the choices and of their values.
local function walk(space, visit)
    local s = {}
    local function choose(i)
        local choice = space.schedules.choices[i]
        if not choice then return visit(copied(s)) end
        local legal = choice.values(space.shape, space.isa, s)
        for _, value in ipairs(space.vary[choice.key] and legal or { nearest(legal, space.base[choice.key]) }) do
            s[choice.key] = value
            choose(i + 1)
        end
        s[choice.key] = nil
    end
    choose(1)
end

-- How many schedules the space has. What is left to choose depends only on the earlier choices that later ones look at:
-- it is counted once for each of their values.
function candidates.count(space)
    if not space.exists then return 0 end
    local s, looked_at, counts = {}, {}, {}
    local depth
    local reads = setmetatable({}, {
        __index = function(_, key)
            for i = 1, depth do
                if not looked_at[i][key] and s[key] then
                    -- A key that choice i and those after it look at, if it was chosen before i.
                    looked_at[i][key], counts[i] = true, {}
                end
            end
            return s[key]
        end,
    })
    for i = 1, #space.schedules.choices do
        looked_at[i], counts[i] = {}, {}
    end
    local function count(i)
        local choice = space.schedules.choices[i]
        if not choice then return 1 end
        local function place()
            local words = {}
            for j = 1, i - 1 do
                local key = space.schedules.choices[j].key
                if looked_at[i][key] then words[#words + 1] = s[key] end
            end
            return table.concat(words, " ")
        end
        local known = counts[i][place()]
        if known then return known end
        depth = i
        local legal, total = choice.values(space.shape, space.isa, reads), 0
        for _, value in ipairs(space.vary[choice.key] and legal or { nearest(legal, space.base[choice.key]) }) do
            s[choice.key] = value
            total = total + count(i + 1)
        end
        s[choice.key] = nil
        counts[i][place()] = total
        return total
    end
    return count(1)
end

-- The base first, whatever its error is, then `more`.
local function with_base(space, more, rejected)
    local list = { candidate(space, legalised(space, space.base)) }
    for _, found in ipairs(more) do
        if found.text ~= list[1].text then list[#list + 1] = found end
    end
    local others = {}
    for _, row in ipairs(rejected) do
        if row.text ~= list[1].text then others[#others + 1] = row end
    end
    table.sort(others, function(a, b) return a.text < b.text end)
    return { list = list, rejected = others, total = candidates.count(space) }
end

local nothing = function() return { list = {}, rejected = {}, total = 0 } end

-- The schedules of the space; raises one line for more than `candidates.most`.
function candidates.exhaustive_count(space)
    local total = candidates.count(space)
    if total > candidates.most then
        misuse(
            string.format(
                "--exhaustive: %s %s: %d schedules, at most %d: name fewer choices",
                space.isa.name,
                space.regime,
                total,
                candidates.most
            )
        )
    end
    return total
end

-- All candidates of the space: { list, rejected = { {text, reason} }, total = schedules of the space }. Raises one line
-- for more than `candidates.most`.
function candidates.exhaustive(space)
    if not space.exists then return nothing() end
    candidates.exhaustive_count(space)
    local list, rejected = {}, {}
    walk(space, function(s)
        local reason = candidates.reason(space, s)
        if reason then
            rejected[#rejected + 1] = { text = space.schedules.text(s), reason = reason }
        else
            list[#list + 1] = candidate(space, s)
        end
    end)
    table.sort(list, cheaper)
    return with_base(space, list, rejected)
end

-- The best known `unexpanded` one, the cheapest first.
local function cheapest(pool)
    local best
    for _, found in ipairs(pool) do
        if not found.expanded and (not best or cheaper(found, best)) then best = found end
    end
    return best
end

-- Of candidates in order those that the estimate can tell apart, then the others.
local function told_apart(list)
    local first, rest, last = {}, {}, nil
    for _, found in ipairs(list) do
        if not last or found.cost > last * 1.001 then
            first[#first + 1], last = found, found.cost
        else
            rest[#rest + 1] = found
        end
    end
    table.move(rest, 1, #rest, #first + 1, first)
    return first
end

-- At most `budget` candidates of the space, in the order in which to measure them: the base, the schedules one choice
-- away, then combinations, which are looked for around the cheapest ones known. Returns what `exhaustive` does;
-- `rejected` holds those that were met.
function candidates.list(space, budget)
    if not space.exists then return nothing() end
    local base = candidate(space, legalised(space, space.base))
    local pool, rejected, seen = { base }, {}, { [base.text] = true }
    local function expand(found)
        found.expanded = true
        local near, refused = candidates.neighbours(space, found.schedule)
        for _, other in ipairs(near) do
            if not seen[other.text] then
                seen[other.text] = true
                pool[#pool + 1] = other
            end
        end
        for _, row in ipairs(refused) do
            if not seen[row.text] then
                seen[row.text] = true
                rejected[#rejected + 1] = row
            end
        end
    end
    expand(base)
    local near = table.move(pool, 2, #pool, 1, {})
    while #pool < 4 * budget do
        local found = cheapest(pool)
        if not found then break end
        expand(found)
    end
    local far = table.move(pool, #near + 2, #pool, 1, {})
    table.sort(far, cheaper)
    local list = table.move(told_apart(far), 1, #far, #near + 1, near)
    for _, found in ipairs(pool) do
        found.expanded = nil
    end
    local result = with_base(space, list, rejected)
    for i = #result.list, budget + 1, -1 do
        result.list[i] = nil
    end
    return result
end

return candidates
