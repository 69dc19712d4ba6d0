-- Spaces of schedules: choices that change speed, and few what is rounded, with their legal values and defaults.
--
-- A choice that cannot be made is not listed: `legal` is the space that tuning walks.
local misuse = require "gen.schema.misuse"
local schema = require "gen.schema.schema"

local space = {}

-- The powers of two from `first` to `last`.
function space.powers(first, last)
    local list, power = {}, 1
    while power <= last do
        if power >= first then list[#list + 1] = power end
        power = power * 2
    end
    return list
end

-- Whether `rows` times `vectors` accumulators of a product fit, with the vectors and one scalar of the step in hand.
-- The portable kernels leave registers to the compiler.
function space.product_fits(isa, rows, vectors)
    local registers = rows * vectors + vectors + 1
    return isa.lanes == 1 or registers <= isa.registers
end

local function contains(list, value)
    for _, item in ipairs(list) do
        if item == value then return true end
    end
    return false
end

-- The value of `legal`, in ascending order, that is nearest to `value` by ratio; of two the smaller.
function space.nearest(legal, value)
    local best, least
    for _, candidate in ipairs(legal) do
        local ratio = math.max(candidate + 1, value + 1) / (math.min(candidate, value) + 1)
        if not best or ratio < least then
            best, least = candidate, ratio
        end
    end
    return best
end

-- Reads "gather.group=8,chunk.tokens=4096"; raises one line. `known(key)` raises one for a key that is none.
local function parse(text, known)
    local wanted = {}
    for item in (text .. ","):gmatch("([^,]*),") do
        local key, value = item:match("^([%w._]+)=(%d+)$")
        if not key then misuse('--schedule: "' .. item .. '": must be choice=number') end
        known(key)
        if wanted[key] then misuse("--schedule: " .. key .. ": given twice") end
        wanted[key] = math.tointeger(tonumber(value))
    end
    return wanted
end

-- The same for the schedule of a record, whatever space it is of.
function space.read(text)
    return parse(text, function() end)
end

-- `choices` for every one of `isas`, as the plans take them; no choices: none.
function space.for_all(isas, choices)
    local wanted = {}
    for _, isa in ipairs(choices and isas or {}) do
        wanted[isa.name] = choices
    end
    return wanted
end

-- The largest of the ascending values in `legal` that is at most `value`; the first one, if there is none.
local function largest_at_most(legal, value)
    local largest = legal[1]
    for _, candidate in ipairs(legal) do
        if candidate <= value then largest = candidate end
    end
    return largest
end

-- The space of `choices`, one row a choice, in the order in which they are made: { key, doc, values }.
-- `values(shape, isa, s)` lists what is legal given the choices before it (in `s`), in ascending order; `rounds`:
-- results depend on it, so that tuning leaves it alone without a budget.
-- `defaults(shape, isa, s, choose)` makes them all: choose(key, value) adds to `s` the largest legal value up to
-- `value`, or else the smallest, unless another is wanted, and returns it. None decides the layout of the weights: all
-- instruction sets and schedules of a model read the same blob.
function space.new(choices, defaults)
    local self, by_key, keys = { choices = choices, nearest = space.nearest, for_all = space.for_all }, {}, {}
    for i, choice in ipairs(choices) do
        by_key[choice.key] = choice
        keys[i] = choice.key
    end

    -- The choice of that key; raises one line, after `where`, for an unknown one.
    function self.choice(key, where)
        if by_key[key] then return by_key[key] end
        local near = schema.nearest(key, keys)
        local rule = near and '; did you mean "' .. near .. '"?' or "; they are " .. table.concat(keys, ", ")
        local raise = where:find "^%-" and misuse or error -- or a tuned file says so
        raise(where .. ": " .. key .. ": unknown choice" .. rule, 0)
    end

    -- What the option --schedule says. Whether the values are legal is decided by `make`.
    function self.parse(text)
        return parse(text, function(key) self.choice(key, "--schedule") end)
    end

    -- The schedule of `isa` with the choices in `wanted` and defaults for the others; nil, choice, value and rule for
    -- the first illegal value.
    function self.try(shape, isa, wanted)
        local s, illegal = {}, nil
        defaults(shape, isa, s, function(key, value)
            local legal = by_key[key].values(shape, isa, s)
            if wanted[key] and not illegal and not contains(legal, wanted[key]) then
                illegal = { key, wanted[key], "must be one of " .. table.concat(legal, ", ") }
            end
            s[key] = largest_at_most(legal, wanted[key] or value)
            return s[key]
        end)
        if illegal then return nil, table.unpack(illegal) end
        return s
    end

    -- The same, but raises one line for an illegal value.
    function self.make(shape, isa, wanted)
        local s, key, value, rule = self.try(shape, isa, wanted)
        if not s then misuse(string.format("--schedule: %s = %d: %s: %s", key, value, isa.name, rule)) end
        return s
    end

    -- The legal values of every choice, given the choices of `s` before it: { {key, values, chosen, doc} }.
    function self.legal(shape, isa, s)
        local list = {}
        for i, choice in ipairs(choices) do
            list[i] =
                { key = choice.key, values = choice.values(shape, isa, s), chosen = s[choice.key], doc = choice.doc }
        end
        return list
    end

    -- "tile.vectors=2,product.outputs=8,…" in the order of the choices.
    function self.text(s)
        local list = {}
        for i, key in ipairs(keys) do
            list[i] = key .. "=" .. s[key]
        end
        return table.concat(list, ",")
    end

    -- The same without choices of 0, which make nothing, and those of calls that there are none of. `only`, optional:
    -- the group, such as "few", whose kernels take all calls, so that its threshold means nothing; beside it stands the
    -- first choice.
    function self.used_text(s, only)
        local list = {}
        for i, key in ipairs(keys) do
            local group = key:match "^%l+"
            local calls = s[group .. ".threshold"] or s[group .. ".tokens"]
            local wanted = not only or i == 1 or group == only and calls ~= s[key]
            if wanted and s[key] ~= 0 and calls ~= 0 then list[#list + 1] = key .. "=" .. s[key] end
        end
        return table.concat(list, ",")
    end

    return self
end

return space
