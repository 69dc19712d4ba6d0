-- What templates print statements of C with: lines, blocks, loops, and what several kernels of a file call.
-- gen/print/indent.lua indents them.
--
-- Methods of the text so far, { out = list of pieces, values = what the template is given }.
local printers = {}

-- Renders a list of lines.
function printers:lines(list)
    for _, line in ipairs(list) do
        self.out[#self.out + 1] = line .. "\n"
    end
end

-- Renders another template unless an earlier one of this file has, of the same text; returns what its names begin
-- with.
function printers:once(path, given)
    local text, prefix = self.values.share(path, given, self.values.helper)
    self.out[#self.out + 1] = text
    return prefix
end

-- Renders the declarations of constants, a list of { type, name, value }.
function printers:declare_constants(list)
    for _, one in ipairs(list) do
        self.out[#self.out + 1] = string.format("const %s %s = %s;\n", one.type, one.name, one.value)
    end
end

-- Renders the declaration of `name`, the first lane of `vector`, all of it in portable C; returns what C calls it.
function printers:first_lane(name, vector)
    local isa = self.values.isa
    if isa.lanes == 1 then
        self.out[#self.out + 1] = string.format("const float %s = %s;\n", name, vector)
        return name
    end
    self.out[#self.out + 1] = string.format("float %s[%d];\n", name, isa.lanes)
    self.out[#self.out + 1] = isa.store_unaligned(name, 0, vector) .. ";\n"
    return name .. "[0]"
end

-- Renders a block of statements, which `body()` prints; braces only where there are several.
function printers:block(body)
    local head = #self.out + 1
    self.out[head] = "{\n"
    body()
    local _, lines = table.concat(self.out, "", head):gsub("\n", "")
    if lines == 2 then
        self.out[head] = ""
    else
        self.out[#self.out + 1] = "}\n"
    end
end

-- Renders a loop over `variable` from `from` up to `to`, or what it does once: `body(at)` prints a turn, where `at` is
-- the variable or its only value; `to` is nil if only C knows it. Fields of `options`:
--   from, to  how C writes the bounds, if not as numbers
--   type      of the variable, otherwise size_t
--   also      what a turn of many ends with, such as ", z += 8"
--   block     whether a single turn stands in braces, because of the names that it declares
--   braces    false for a body of several lines that is one statement
function printers:loop(variable, from, to, step, body, options)
    options = options or {}
    if to and from >= to then return end
    if to and from + step >= to then
        if not options.block then return body(options.from or from) end
        return printers.block(self, function() body(options.from or from) end)
    end
    local next = (step == 1 and "++" .. variable or variable .. " += " .. step) .. (options.also or "")
    local head = #self.out + 1
    self.out[head] = ""
    body(variable)
    local _, lines = table.concat(self.out, "", head):gsub("\n", "")
    local braces = lines > 1 and options.braces ~= false
    self.out[head] = string.format(
        "for (%s %s = %s; %s < %s; %s)%s\n",
        options.type or "size_t",
        variable,
        options.from or from,
        variable,
        options.to or to,
        next,
        braces and " {" or ""
    )
    if braces then self.out[#self.out + 1] = "}\n" end
end

-- Renders a loop over the `count` elements of a row by vectors, and what is done with the last ones, which fill no
-- vector: `body(at, load, store)` prints a turn, where load(base, at) and store(base, at, value) are as the
-- instruction set says them. `options` as for `loop`; their `to` stands if nothing is left.
function printers:over_row(count, body, options)
    local isa = self.values.isa
    local whole, rest = count // isa.lanes * isa.lanes, count % isa.lanes
    local given = { block = options and options.block, to = rest == 0 and options and options.to or nil }
    printers.loop(self, "i", 0, whole, isa.lanes, function(at)
        body(at, isa.load_unaligned, isa.store_unaligned)
    end, given)
    if rest == 0 then return end
    local function load_rest(base, at) return isa.load_partial(base, at, rest) end
    local function store_rest(base, at, value) return isa.store_partial(base, at, rest, value) end
    if not given.block then return body(whole, load_rest, store_rest) end
    printers.block(self, function() body(whole, load_rest, store_rest) end)
end

-- What functions that join lanes are called, by word: of floats, or of magnitudes that are the bits of floats.
local joins = { add = "sum_of_lanes", max = "largest_lane", magnitude = "largest_magnitude" }

-- Renders a function that joins the lanes of a vector by `word`, "add", "max" or "magnitude", where there are several
-- and the file has none yet; returns a function from a vector to the C expression.
function printers:across(word)
    local isa = self.values.isa
    if isa.lanes == 1 then
        return function(vector) return select(2, isa.reduce(vector, word)) end
    end
    local prefix = printers.once(self, "templates/math/across.c", { word = word, name = joins[word] })
    return function(vector) return prefix .. "_" .. joins[word] .. "(" .. vector .. ")" end
end

-- The arguments, or parameters, as C lists them: those of a list among them, and none that are false.
function printers.listed(_, ...)
    local list = {}
    for i = 1, select("#", ...) do
        local one = select(i, ...)
        if type(one) == "table" then
            table.move(one, 1, #one, #list + 1, list)
        else
            list[#list + 1] = one or nil
        end
    end
    return table.concat(list, ", ")
end

return printers
