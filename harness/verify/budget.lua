-- What types may cost a LookupFFN, in error of y and in flips of codes: --budget of verify, or the model file's key.
local misuse = require "gen.schema.misuse"
local schema = require "gen.schema.schema"

local budget = {}

-- The number that `text` says, or its hundredth with a percent sign; nil for what is no number.
local function number_of(text)
    local percent = text:match "^(.*)%%$"
    local number = tonumber(percent or text)
    return number and (percent and number / 100 or number)
end

-- One row a cost: its name in --budget, the rule for its value, and how messages say how much of it a result has.
local costs = {
    {
        name = "error",
        rule = "must be a number above 0, at most 1",
        good = function(value) return value > 0 and value <= 1 end,
        of = function(result) return result.rel_err end,
        text = function(result, what, most)
            return string.format("relative error %.2g of y with %s, the budget is %g", result.rel_err, what, most)
        end,
    },
    {
        name = "codes",
        rule = "must be a share from 0 to 1, such as 1% or 0.01",
        good = function(value) return value >= 0 and value <= 1 end,
        of = function(result) return result.code_flips and result.code_flips / result.codes end,
        text = function(result, what, most)
            local form = "%d of %d codes flipped (%.3g %%) with %s, the budget is %g %%"
            local flips, codes = result.code_flips, result.codes
            return form:format(flips, codes, 100 * flips / codes, what, 100 * most)
        end,
    },
}

-- The budget of model `m`, { error, codes } by name: what `text`, such as codes=1%,error=0.4, says, and for the error
-- of y the model's key, where it says nothing of it. Raises one line.
function budget.of(m, text)
    local found, names, known = {}, {}, {}
    for i, cost in ipairs(costs) do
        names[i], known[cost.name] = cost.name, cost
    end
    for part in ((text or "") .. ","):gmatch "([^,]*)," do
        local name, said = part:match "^(%a+)=(.+)$"
        local cost, value = known[name], said and number_of(said)
        local function refuse(rule) misuse(string.format('--budget: "%s": %s', part, rule)) end
        if text and not cost then
            local near = name and schema.nearest(name, names)
            refuse("must be codes=SHARE or error=NUMBER" .. (near and "; did you mean " .. near .. "?" or ""))
        end
        if cost and not (value and cost.good(value)) then refuse(cost.rule) end
        if cost and found[name] then refuse "is given twice" end
        if cost then found[name] = value end
    end
    found.error = found.error or m.budget
    return found
end

-- The share of each layer's codes that may flip in blocks or a whole model `m`, by `text`, nil: --budget was not given.
-- Raises one line.
function budget.of_layers(m, text, has_lookup)
    if not text then return nil end
    local limits = budget.of({}, text)
    local function refuse(rule) misuse(string.format('--budget: "%s": %s', text, rule)) end
    if not has_lookup then refuse(m.name .. " has no LookupFFN") end
    if limits.error then
        refuse "error is for a LookupFFN alone: of each layer codes=SHARE; perplexity and similar --score take others"
    end
    return limits.codes
end

-- What comes of each layer's share of flipped codes (seen.flips of harness/families/model) beside the share
-- `most` that may flip: { most, ok, layers = { { layer, codes, flips, ok } } }.
function budget.layers(flips, most)
    local found = { most = most, ok = true, layers = flips }
    for _, row in ipairs(flips) do
        row.ok = row.codes > 0 and row.flips / row.codes <= most
        found.ok = found.ok and row.ok
    end
    return found
end

-- Adds to `result`, { ok, checks, rel_err, codes, code_flips }, a check for each cost that the budget `limits` bounds.
-- `what`: the types in words. A result without figures failed before there were any.
function budget.check(result, limits, what)
    for _, cost in ipairs(costs) do
        local most, found = limits[cost.name], cost.of(result)
        if most and found then
            local within = found <= most -- NaN is not
            result.ok = result.ok and within
            table.insert(result.checks, { name = "budget", ok = within, detail = cost.text(result, what, most) })
        end
    end
end

return budget
