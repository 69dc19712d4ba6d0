-- Renders a template with what all of them may use: the model's names, other templates, and functions of C that several
-- kernels of a file call, each printed once.
local expression = require "gen.isa.expression"
local figures = require "gen.plan.figures"
local host = require "host"
local template = require "gen.print.template"

local render = {}

local compiled = {} -- templates by path

-- The text of the template `path` with `values`; `more`, optional, are for this template alone.
function render.text(path, values, more)
    compiled[path] = compiled[path] or template.compile(assert(host.resource(path)), path, host.bytecode(path))
    return template.render(compiled[path], values, more)
end

-- Gives `values` the function that includes another template: its text, with the names in `more` beside those of
-- whoever includes it.
local function including(values)
    values.include = function(path, more)
        local inner = values
        if more then
            inner = including(setmetatable({}, {
                __index = function(_, name)
                    local value = more[name]
                    if value == nil then value = values[name] end
                    return value
                end,
            }))
        end
        return (render.text(path, inner, more):gsub("\n$", ""))
    end
    return values
end

-- What is printed of the C functions that several kernels of a file call; their names begin with `prefix`:
--   texts, taken   sets of their texts, and of their names
--   depth          how deep such functions are included in each other at the moment
--   waiting        texts to be printed before the one at hand
function render.new_file(prefix) return { texts = {}, taken = {}, prefix = prefix, depth = 0, waiting = "" } end

-- Gives `values` the function that prints such functions where `file` has not printed them yet. Where a name is taken,
-- by another text, it begins with `helper`, that of the template at hand, instead of the prefix, or if that is the same
-- with the name of the instruction set, too.
local function sharing(values, file)
    -- The text of the template `path`, the names of functions and types that it defines, and whether these are free.
    local function rendered(path, more, helper)
        local own = { helper = helper }
        for key, value in pairs(more or {}) do
            own[key] = value
        end
        file.depth = file.depth + 1
        local text = values.include(path, own)
        file.depth = file.depth - 1
        local names, free = {}, true
        local function defines(name)
            names[#names + 1], free = name, free and not file.taken[name]
        end
        for kind, name in text:gmatch "\n([%w_]+) [^\n(]-([%w_]+)%(" do
            if kind == "static" or kind:find "_INLINE$" then defines(name) end
        end
        for name in text:gmatch "\n} ([%w_]+);" do
            defines(name)
        end
        return text .. "\n", names, free
    end
    function values.share(path, more, helper)
        local prefix = file.prefix
        local text, names, free = rendered(path, more, prefix)
        if not free and not file.texts[text] then
            prefix = helper ~= prefix and helper or prefix .. "_" .. values.isa.name
            text, names = rendered(path, more, prefix)
        end
        if not file.texts[text] then
            file.texts[text], file.waiting = true, file.waiting .. text
            for _, name in ipairs(names) do
                file.taken[name] = true
            end
        end
        local waiting = file.waiting
        if file.depth > 0 then return "", prefix end -- what calls it comes behind it
        file.waiting = ""
        return waiting, prefix
    end
    return values
end

-- Gives `values` what every template may use (template.common) of plan `p`, and returns them. `file`, for kernels: what
-- render.new_file made for the file that they are in.
function render.with_common(p, values, file)
    values.model, values.names, values.shape = p.names.model, p.names, p.shape
    values.tables, values.projection = p.tables, p.projection
    values.api = p.target and "" or p.names.macro "API" .. " " -- firmware is linked as it is
    values.sum, values.times, values.advance = expression.sum, expression.times, expression.advance
    values.plural = figures.plural
    return sharing(including(values), file or render.new_file(p.names.model))
end

return render
