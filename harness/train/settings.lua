-- What a run does, from the options of the command: everything that its results depend on, as data.
local cpus = require "harness.base.cpus"
local learning_rates = require "harness.train.learning_rates"
local misuse = require "gen.schema.misuse"
local rounding = require "harness.train.rounding"

local settings = {}

local most_steps = 1 << 31
local units = { s = 1, m = 60, h = 3600, d = 86400 }

-- The number in options[name], or `otherwise`; raises one line if `holds` is false of it.
local function number(options, name, otherwise, words, holds)
    if options[name] == nil then return otherwise end
    local value = tonumber(options[name])
    if not value or value ~= value or not holds(value) then
        misuse(string.format("--%s: %s: must be %s", name, options[name], words))
    end
    return value + 0.0
end

local function integer(options, name, otherwise, first, last)
    local value = options[name]
    if value == nil then return otherwise end
    if value < first or value > last then
        misuse(string.format("--%s: %d: must be an integer from %d to %d", name, value, first, last))
    end
    return value
end

-- The seconds of a text such as 90s, 5m, 1h.
local function seconds(option, text)
    local count, unit = text:match "^(%d+%.?%d*)([smhd]?)$"
    local value = count and tonumber(count) * (units[unit] or 1)
    if not value or value <= 0 then misuse(option .. ": " .. text .. ": must be a time such as 90s, 5m or 1h") end
    return value
end

-- The settings of a run, and beside these fields that results depend on `threads` and `save_seconds`. `most_context`:
-- tokens that the model attends to.
function settings.of(options, most_context)
    if not (options.steps or options.tokens or options.time) then
        misuse("--steps is missing, or --tokens or --time")
    end
    local function positive(value) return value > 0 and value <= 100 end
    local function share(value) return value >= 0 and value < 1 end
    local adam = options["table-optimiser"] == "adam"
    local rate = number(options, "rate", learning_rates.base, "a number above 0, at most 100", positive)
    local usual = adam and learning_rates.tables.adam.factor * rate or learning_rates.tables.adagrad.rate
    local s = {
        context = integer(options, "context", most_context, 2, most_context),
        batch = integer(options, "batch", 16, 1, 1 << 16),
        rate = rate,
        table_optimiser = adam and "adam" or "adagrad",
        table_rate = number(options, "table-rate", usual, "a number above 0, at most 100", positive),
        projection_rate = number(
            options,
            "projection-rate",
            nil,
            "a number from 0 to 100",
            function(v) return v == 0 or positive(v) end
        ),
        dropout = number(options, "dropout", 0.0, "a number from 0 to below 1", share),
        masked = number(options, "masked", nil, "a number above 0 and below 1", function(v) return v > 0 and v < 1 end),
        attention = options.attention,
        type = options.type ~= "f32" and options.type or nil,
        seed = options.seed,
    }
    if options.quantise then
        local types = rounding.types(options.quantise)
        s.tables_type, s.projection_type = types.tables, types.projection
    end
    local window = s.batch * s.context
    s.time = options.time and seconds("--time", options.time)
    s.steps = integer(options, "steps", nil, 1, most_steps)
    if options.tokens then
        local most = most_steps * window
        local words = string.format("a number of tokens from 1 to %.0f, those of 2^31 steps", most)
        local tokens = number(options, "tokens", nil, words, function(v) return v >= 1 and v <= most end)
        s.steps = math.max(1, math.ceil(tokens / window))
    end
    s.evaluate = integer(options, "evaluate", nil, 1, most_steps)
    local own = {
        threads = math.min(integer(options, "threads", cpus.count(), 1, 1024), s.batch),
        save_seconds = options["save-every"] and seconds("--save-every", options["save-every"]) or 60,
    }
    return s, own
end

-- What is said of a setting: those of types are nil where they are f32.
local function shown(name, value)
    if value == nil then return name:find "type$" and "f32" or "absent" end
    return tostring(value)
end

-- Raises one line for a setting in which the run that is resumed differs from the options. `path`: its checkpoint.
function settings.check(path, wanted, saved)
    local names = {}
    for name in pairs(wanted) do
        names[#names + 1] = name
    end
    for name in pairs(saved) do
        if wanted[name] == nil then names[#names + 1] = name end
    end
    table.sort(names)
    for _, name in ipairs(names) do
        local given, own = wanted[name], saved[name]
        if given ~= own then
            error(
                string.format(
                    "--resume: %s: %s: is %s: must be %s, as in the run that it continues",
                    path,
                    name,
                    shown(name, given),
                    shown(name, own)
                ),
                0
            )
        end
    end
end

return settings
