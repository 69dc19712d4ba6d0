-- The C program that tests the words of one instruction set, while it is written.
local inputs = require "tests.isa.inputs"
local isa = require "gen.isa.list"

local scalar = isa.get "scalar"

local Program = {}
Program.__index = Program

function Program.of(set)
    inputs.begin()
    return setmetatable({ set = set, lines = {}, data = {}, arrays = {}, tested = {}, count = 0 }, Program)
end

function Program:add(text, ...)
    if select("#", ...) > 0 then text = string.format(text, ...) end
    self.lines[#self.lines + 1] = text
end

-- The name of an array of inputs of a domain: floats as numbers, elements as what tables store.
function Program:input(domain, which)
    local name = "in_" .. domain:gsub(" ", "_") .. "_" .. which
    if not self.arrays[name] then
        self.arrays[name] = true
        local element = inputs.elements[domain]
        local text = {}
        for i, bits in ipairs(inputs.of(domain)) do
            if domain == "words" and not self.set.store_words then bits = bits & 0xffff end -- as index_store takes them
            text[i] = string.format(element and "%d," or "{ .bits = 0x%xu },", bits)
        end
        table.insert(
            self.data,
            string.format(
                "static const %s %s[%d] ALIGNED = { %s };",
                element or "number",
                name,
                inputs.count,
                table.concat(text, " ")
            )
        )
    end
    return inputs.elements[domain] and name or "&" .. name .. "[0].value"
end

function Program:begin(name)
    self.tested[name:match "^[%w_]+"] = true
    self.count = self.count + 1
    self:add("static void test_%d(void) /* %s */", self.count, name)
    self:add "{"
end

function Program:finish() self:add "}" end

-- Statements for each vector of the inputs; `at` is its first lane.
function Program:vectors(...)
    self:add("    for (size_t at = 0; at < COUNT; at += %d) {", self.set.lanes)
    for _, line in ipairs { ... } do
        self:add("        " .. line .. ";")
    end
    self:add "    }"
end

-- Statements for each lane `i`.
function Program:lanes(...)
    self:add "    for (unsigned i = 0; i < COUNT; ++i) {"
    for _, line in ipairs { ... } do
        self:add("        " .. line .. ";")
    end
    self:add "    }"
end

-- A vector of integers to where `got_words` has them: all bits, or the lower 16 where no word stores more.
function Program:store_index(value)
    if self.set.store_words then return self.set.store_words("got_words", "at", value), "0xffffffffu", "got_words" end
    return self.set.index_store("got_halves", "at", value), "0xffffu", "got_halves"
end

-- Declarations of what a word takes in between.
function Program:steps(indent, steps)
    for _, step in ipairs(steps) do
        self:add("%sconst %s %s = %s;", indent, step.type or self.set.vector, step.name, step.value)
    end
end

-- The operands of a word: C expressions of vectors, and of lanes, and the declarations of the former.
function Program:operands(word)
    local vectors, lanes, declared, floats, integers = {}, {}, {}, 0, 0
    local names = { "a", "b", "c", "d" }
    for kind in word.takes:gmatch "%S+" do
        if kind == "vector" then
            floats = floats + 1
            local name = names[floats]
            local from = self:input(word.domain or "any", floats)
            declared[#declared + 1] =
                string.format("const %s %s = %s", self.set.vector, name, self.set.load_unaligned(from, "at"))
            vectors[#vectors + 1] = name
            lanes[#lanes + 1] = string.format("(%s)[i]", from)
        elseif kind == "index" then
            integers = integers + 1
            local name, from = "n" .. integers, self:input("words", integers)
            declared[#declared + 1] =
                string.format("const %s %s = %s", self.set.index, name, self.set.load_words(from, "at"))
            vectors[#vectors + 1], lanes[#lanes + 1] = name, from .. "[i]"
        elseif kind == "mask" then
            local a, b = self:input("any", 4), self:input("any", 5)
            declared[#declared + 1] = string.format(
                "const %s m = %s",
                self.set.mask,
                self.set.less(self.set.load_unaligned(a, "at"), self.set.load_unaligned(b, "at"))
            )
            vectors[#vectors + 1], lanes[#lanes + 1] = "m", scalar.less("(" .. a .. ")[i]", "(" .. b .. ")[i]")
        elseif kind == "bit" then
            vectors[#vectors + 1], lanes[#lanes + 1] = 4, 4
        else
            return nil
        end
    end
    return vectors, lanes, declared
end

return Program
