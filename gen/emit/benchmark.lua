-- A bundle's own benchmark: the program that times each of its calls on the user's machine, in C++ with Google
-- Benchmark, or of firmware in C with a counter of cycles.
local families = require "gen.families.list"
local layout = require "gen.families.model.blocks.layout"
local literal = require "gen.print.literal"
local misuse = require "gen.schema.misuse"

local benchmark = {}

-- The tokens a call of --batch, a text, as a list, empty for nil; raises one line for what is none.
function benchmark.batches(text)
    local list = {}
    for word in (text and text .. "," or ""):gmatch "([^,]*)," do
        list[#list + 1] = word:find "^%d+$" and math.tointeger(tonumber(word)) or 0
        if list[#list] < 1 then
            misuse('--batch: "' .. word .. '": must be integers from 1 on, separated by commas')
        end
    end
    return list
end

-- Gives plan `p` the tokens a call that its benchmark times, `batches`, or its family's usual ones for an empty list;
-- raises one line for a model that has no benchmark, or for too many tokens.
function benchmark.add(p, batches)
    local family = families.get(p.family)
    if not family.benchmark then
        local line = families.not_for(family, function(row) return row.benchmark end)
        misuse("--benchmark: " .. p.model.name .. ": " .. line)
    end
    local most = family.benchmark.most(p)
    for _, tokens in ipairs(batches) do
        if tokens > most then
            misuse(string.format("--batch: %d: must be at most %d, of %s", tokens, most, p.model.name))
        end
    end
    p.benchmark = #batches > 0 and batches or family.benchmark.batches(p)
end

-- ## Calls

local memory = { "weights", "cache", "state", "x", "ids", "y", "offsets", "tokens", "sequences", "scratch" }
local is_memory = {}
for _, word in ipairs(memory) do
    is_memory[word] = true
end

-- The arguments of `call` as a list in C, where the memory `word` is called named(word).
local function arguments_of(call, named)
    local list = {}
    for i, argument in ipairs(call.arguments) do
        list[i] = argument:gsub("[%a_]+", function(word) return is_memory[word] and named(word) or word end)
    end
    return table.concat(list, ", ")
end

local function member(word) return "of." .. word end

local function static(word) return word == "weights" and "&weights" or word end

-- Bytes of the sections of plan `p` that a call reads whole: not those of which a token takes rows, nor sines.
local function weights_bytes(p)
    local angles, bytes = {}, 0
    for _, piece in ipairs(p.pieces or {}) do
        if piece.angles then angles[piece.at] = true end
    end
    for _, section in ipairs(p.sections) do
        if not section.slow and not angles[section.at] then bytes = bytes + section.bytes end
    end
    return bytes
end

-- What is timed: the calls, and rows { call, tokens, sequences, results: rows of y, bytes: of weights and rows that are
-- read, tolerance, most_off }.
local function timed_of(p)
    local own, list = families.get(p.family).benchmark, {}
    local calls, weights, row = own.calls(p), weights_bytes(p), own.row_bytes(p)
    for _, call in ipairs(calls) do
        call.program, call.firmware = arguments_of(call, member), arguments_of(call, static)
        for _, tokens in ipairs(p.benchmark) do
            local sequences = math.min(call.sequences or 1, tokens)
            local results = own.rows(p, call, tokens, sequences)
            local tolerance, share = own.tolerance(p, tokens)
            list[#list + 1] = {
                call = call,
                tokens = tokens,
                sequences = sequences,
                results = results,
                bytes = (call.one_by_one and tokens or 1) * weights + tokens * row,
                tolerance = string.format("%g", tolerance),
                most_off = math.floor(results * share),
            }
        end
    end
    return calls, list
end

-- ## Random weights

-- What an element of a type is on average, without its sign and the scale of its row.
local usual = { i16 = 18900, i8 = 73, u8 = 73, i7 = 36, u7 = 36, i4 = 4, e4m3 = 0.16 }

local function is_scales(section) return section.name:find "scales$" ~= nil end

-- Mean and deviation of what `piece` fills: of its tensor as it is sampled, `drawn`, or of what else it has.
local function draw_of(piece, drawn)
    local own = piece.from and drawn[piece.from]
    local mean, deviation = 0, piece.angles and 0.5 or piece.row and piece.row ^ -0.5 or 0.1
    if own then
        mean, deviation = (own.mean or 0) + (piece.type == "f32" and piece.raised or 0), own.deviation
    end
    for _, step in ipairs(piece.steps or {}) do
        if step.step == "hadamard" then
            deviation = deviation * step.size ^ 0.5
        elseif step.step == "scale" and step.at == 0 then
            mean, deviation = mean * step.factor, deviation * step.factor
        end
    end
    return mean, deviation
end

-- The power of two at most `x`, in half precision.
local function half_bits(x)
    local exponent = math.max(math.floor(math.log(x, 2)), -14)
    return exponent + 15 << 10
end

local function number(x) return string.format("%.6g", x) end

-- Both halves of a word.
local function twice(half) return literal.hex(half << 16 | half, 8) end

local integers = { [1] = "int8_t", [2] = "int16_t", [4] = "int32_t" }

-- The filling of integers of so many bytes from `low` to `high`.
local function integers_of(section, bytes, low, high)
    local type = low >= 0 and "u" .. integers[bytes] or integers[bytes]
    local form, count = "integers<%s>(blob + %d, %d, %d, %d)", section.bytes // bytes
    return "integers", form:format(type, section.at, count, low, high)
end

-- The method of `numbers` that fills `section`, and its call; piece: the first one of the section; deviation: of its
-- elements.
local function filling_of(section, piece, mean, deviation)
    local type = section.type
    local raised = section.storage == "uint32_t"
    if section.dtype.groups then
        local of = section.dtype
        local group, scale = layout.group(of, piece.panel), half_bits(deviation / (of.bits == 8 and 73 or 4.6))
        local minimum = of.minimum and half_bits(deviation * 2) | 0x8000 or 0
        local form = "groups(blob + %d, %d, %d, %d, %s, %s)"
        return "groups",
            form:format(section.at, section.bytes // 4, group.words, group.first_word, twice(scale), twice(minimum))
    elseif type == "f32" or type == "bf16" or type == "f16" then
        local method = ({ f32 = "floats", bf16 = "bf16", f16 = "f16" })[type]
        local count = section.bytes // (type == "f32" and 4 or 2)
        return method,
            string.format("%s(blob + %d, %d, %s, %s)", method, section.at, count, number(mean), number(deviation))
    elseif type == "i16" then
        return integers_of(section, 2, -32767, 32767)
    elseif type == "i4" or type == "e4m3" then
        local method = type == "i4" and "nibbles" or "e4m3"
        return method, string.format("%s(blob + %d, %d)", method, section.at, section.bytes)
    end
    local most = (type == "i7" or type == "u7") and 63 or 127
    return integers_of(section, 1, raised and 1 or -most, raised and 2 * most + 1 or most)
end

-- How random weights are made for plan `p`: { methods: a set, lines: { call, doc } }; nil: they cannot be, as some
-- sections follow from others.
local function random_of(p)
    local own, drawn, first = families.get(p.family).benchmark, {}, {}
    for _, tensor in ipairs(p.samples or p.tensors) do
        drawn[tensor.name] = tensor
    end
    local pieces = p.pieces or p.sections
    for _, piece in ipairs(pieces) do
        first[piece.at] = first[piece.at] or piece
        for _, step in ipairs(piece.steps or {}) do
            if step.step == "multiply_out" then return nil end
        end
    end
    local random = { methods = {}, lines = {} }
    for i, section in ipairs(p.sections) do
        local range, method, text = own.range(p, section.name), nil, nil
        local scaled = is_scales(section) and p.sections[i + 1]
        local piece = first[(scaled or section).at] or {}
        local mean, deviation = draw_of(piece, drawn)
        if scaled then mean, deviation = deviation / usual[scaled.type], deviation / usual[scaled.type] / 8 end
        if range then
            method, text = integers_of(section, math.ceil(section.dtype.bytes), range[1], range[2])
        elseif not piece.text then
            method, text = filling_of(section, piece, mean, deviation)
        end
        if method then
            random.methods[method] = true
            random.lines[#random.lines + 1] = { call = text, doc = section.name }
        end
    end
    return random
end

-- What the templates read of plan `p`.
function benchmark.values(p)
    local family = families.get(p.family)
    local calls, rows = timed_of(p)
    local of = family.benchmark.memory(p)
    local values = {
        calls = calls,
        rows = rows,
        isas = {},
        exact = p.exact or false,
        input = p.input or family.input,
        output = type(p.output) == "string" and p.output or family.output,
        ids = of.ids or false,
        memory = of.memory or false,
        width = of.width or false,
        width_out = of.width_out,
        random = random_of(p) or false,
        most = math.max(table.unpack(p.benchmark)),
        results = 1,
        most_sequences = 1,
        several = false,
    }
    for i, v in ipairs(p.variants) do
        values.isas[i] = v.isa.name
    end
    values.isa_names = '"' .. table.concat(values.isas, '", "') .. '"'
    for _, call in ipairs(calls) do
        values.several = values.several or call.sequences ~= nil
        values.most_sequences = math.max(values.most_sequences, call.sequences or 1)
    end
    for _, row in ipairs(rows) do
        values.results = math.max(values.results, row.results)
    end
    return values
end

return benchmark
