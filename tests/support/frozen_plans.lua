-- Freezes every plan that tests build: it is data that nobody writes into once it is built, and a write fails where it
-- is made.

local views = setmetatable({}, { __mode = "k" }) -- by table
local tables = setmetatable({}, { __mode = "k" }) -- by view

-- The read-only view of `value`, if that is a table, and of all that it holds: the same one every time, so that it can
-- be a key.
local function view(value)
    if type(value) ~= "table" or tables[value] then return value end
    if views[value] then return views[value] end
    local new = setmetatable({}, {
        __index = function(_, key) return view(value[key]) end,
        __newindex = function(_, key) error("the plan is frozen: " .. tostring(key) .. " is written", 2) end,
        __len = function() return #value end,
        __pairs = function()
            return function(_, key)
                local after, item = next(value, key)
                return after, view(item)
            end
        end,
        __eq = function(a, b) return rawequal(tables[a] or a, tables[b] or b) end,
    })
    views[value], tables[new] = new, value
    return new
end

-- `value` without views: the table behind one, a copy of a table that holds some. `open`: the tables around it, for
-- one may be inside itself.
local function thaw(value, open)
    if type(value) ~= "table" or open[value] then return value end
    if tables[value] then return thaw(tables[value], open) end -- a plan may hold views of another family's
    open[value] = true
    local copy, changed = {}, false
    for key, item in next, value do
        copy[key] = thaw(item, open)
        changed = changed or not rawequal(copy[key], item)
    end
    open[value] = nil
    return changed and setmetatable(copy, getmetatable(value)) or value
end

for _, folder in ipairs { "lookup", "lookup.integer", "tokenizer", "model" } do
    local plan = require("gen.families." .. folder .. ".plan")
    local build = plan.build
    function plan.build(...) return view(build(...)) end
end

-- What is written in C does not see through views.
for name in pairs(package.preload) do
    local module = require(name)
    for key, value in pairs(module) do
        if type(value) == "function" then
            module[key] = function(...)
                local arguments = table.pack(...)
                for i = 1, arguments.n do
                    arguments[i] = thaw(arguments[i], {})
                end
                return value(table.unpack(arguments, 1, arguments.n))
            end
        end
    end
end
