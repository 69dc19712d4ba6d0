-- What products of weights print: how kernels read and multiply, and what a kernel of several tokens or of one is.
local barriers = require "gen.print.barriers"
local byte_products = require "gen.isa.parts.byte_products"
local expression = require "gen.isa.expression"
local layout = require "gen.families.model.blocks.layout"
local literal = require "gen.print.literal"

local print_product = {}

local sum, times = expression.sum, expression.times

-- What loads a vector of elements of `type`: load(base, at).
function print_product.loader(isa, type)
    return function(base, at)
        if type.plain then return isa.load_unaligned(base, at) end
        return isa["load_" .. type.name](expression.sum(base, at))
    end
end

-- How a product of rounded inputs sums them: the C type of a vector of sums, what they start from (a word behind the
-- inputs, `started`, or nothing), and the words of their dot product, of two at a time, or nil, and of that of
-- softmax's weights, which are never negative, and values. type: of weights in groups, nil: they are in none. The word
-- that a group starts from has two halves, which beside 4 bits instruction sets that can sum by themselves, until
-- `total` adds them up.
function print_product.sums(rounded, isa, type)
    if not rounded or not rounded.integers then
        return { type = isa.vector, start = isa.zero, dot = isa.dot_bf16, dot_weights = isa.dot_bf16 }
    end
    local products = byte_products(isa, rounded.levels)
    local narrow, dot, dot_two = products.dot_narrow, products.dot, products.dot_two
    local function itself(sum) return sum end
    if type and type.bits == 8 and isa.dot_b8 then
        return { start = isa.index_zero, started = false, dot = isa.dot_b8, total = itself }
    end
    if type and type.bits == 4 and isa.dot_halves then
        return { start = isa.index_broadcast, dot = isa.dot_halves, total = isa.add_halves }
    end
    if type then
        local form = "((int16_t) %s + (int16_t) (%s >> 16))"
        if type.bits == 8 then form = "(" .. type.offset // 8 .. " * " .. form .. ")" end
        local function start(word) return isa.index_broadcast("(uint32_t) " .. form:format(word, word)) end
        return { start = start, dot = type.bits == 8 and dot or narrow, total = itself }
    end
    if isa.dot_s8 and dot ~= narrow then
        return { type = isa.index, start = isa.index_zero, started = false, dot = isa.dot_s8, dot_weights = narrow }
    end
    local start = isa.index_broadcast
    return { type = isa.index, start = start, started = true, dot = dot, dot_two = dot_two, dot_weights = dot }
end

-- How groups of inputs lie in words (gen/families/model/blocks/layout.lua), of weights of `type`, and what unpacks them
-- with `isa`; of inputs of a word, from its lowest bits on, and of inputs one after the other: what the floats of
-- that are still to be multiplied by. At least as many as lanes of the latter. panel: outputs side by side.
function print_product.groups(type, isa, panel)
    local factors, of_inputs, group = {}, {}, layout.group(type, panel)
    for b, input in ipairs(group.order) do
        factors[b] = literal.float(b < type.weights and 2.0 ^ (type.bits * (1 - b)) or 1.0)
        for at = input + 1, math.max(isa.lanes, type.weights), type.weights do
            of_inputs[at] = factors[b]
        end
    end
    return {
        factors = factors,
        repeats = #of_inputs,
        factors_of_inputs = table.concat(of_inputs, ", "),
        inputs = type.groups,
        of_word = type.weights,
        minimum = type.minimum or false,
        scales_text = ("[%d] scales in half precision%s"):format(panel, type.minimum and " and as many minima" or ""),
        weights_text = type.minimum and "in units of the scale, more than the minimum"
            or type.offset .. " more than in units of the scale",
        words = group.words,
        first_word = group.first_word,
        order = group.order,
        bits = type.bits,
        offset = type.offset,
        below_zero = literal.float(-type.offset),
        unpack = type.bits == 8 and isa.unpack_i8 or isa.unpack_i4,
    }
end

-- What prints a vector of outputs of a token, of its sum: the sum; of rounded inputs sum unit scale + bias, or
-- sum + bias. Groups of inputs have scaled their sums themselves.
local function outputs_of(rounded, isa, groups)
    return function(sum, unit, at)
        if not rounded then return sum end
        local bias = isa.load_unaligned("bias", at)
        if not rounded.integers then return isa.add(sum, bias) end
        if groups then return isa.fma(sum, isa.broadcast(unit), bias) end
        return isa.fma(isa.float_of(sum), isa.mul(isa.broadcast(unit), isa.load_unaligned("scale", at)), bias)
    end
end

-- What a product by tiles prints, false: there is none.
function print_product.tiles(p, v)
    local rounded, tiles = p.rounded, v.product.tiles
    return tiles and {
        sums = print_product.sums(rounded, v.isa),
        outputs = outputs_of(rounded, v.isa),
        dot = v.isa[tiles.word],
        epilogue = false,
    } or false
end

-- How kernels of several tokens, or of one alone, read and multiply:
--   storage, pitch      the C type of weights, and their distance from input to input or from word to word
--   input, word, sum    the C types of vectors of inputs, of what is loaded of weights, and of sums
--   broadcast, load, dot, dot_two, start   words; start: what sums begin with, given where that may lie
--   weights_first       whether weights are loaded before inputs: there are more of these
--   parts, order        what is multiplied of what has been loaded, and by which inputs; there is one part, input 0, of
--                       most weights
--   groups              whether groups of inputs have scales, a sum each; then per_group, per_row: inputs of a group
--                       and of a word of weights; started: whether groups' sums start from words behind the inputs;
--                       total(sum, offset): what a group's scale multiplies; at: kernels take the output to begin with
local function reads_of(p, v, several)
    local isa, type, rounded, panel = v.isa, p.type, p.rounded, layout.panel
    local function itself(words) return { words } end
    if rounded then
        local sums = print_product.sums(rounded, isa, type.groups and type)
        local reads = {
            storage = rounded.storage,
            pitch = panel,
            input = isa.index,
            word = isa.index,
            sum = sums.type or isa.index,
            broadcast = isa.index_broadcast,
            load = isa.load_words,
            dot = sums.dot,
            dot_two = several and sums.dot_two,
            start = sums.start,
            weights_first = several and not sums.dot_two and not type.groups,
            parts = itself,
            order = { 0 },
            at = type.groups ~= nil,
        }
        if not type.groups then return reads end
        reads.groups, reads.per_group, reads.per_row = true, type.groups // rounded.rows, type.weights // rounded.rows
        reads.started = type.minimum or sums.started ~= false
        if type.minimum then reads.start = isa.index_zero end
        reads.total = function(sum) return isa.float_of(sums.total(sum)) end
        if type.bits == 4 then
            reads.order = { 0, 1 }
            reads.parts = function(words)
                return { isa.index_and(words, isa.index_broadcast "0x0f0f0f0f"), isa.high_nibbles(words) }
            end
        end
        return reads
    end
    local floats = several and v.product.unpacks
    local reads = {
        storage = floats and "float" or type.storage,
        pitch = floats and v.product.strip or panel,
        input = isa.vector,
        word = isa.vector,
        sum = isa.vector,
        broadcast = isa.broadcast,
        load = floats and isa.load_unaligned or print_product.loader(isa, type),
        dot = function(sum, weights, input) return isa.fma(input, weights, sum) end,
        start = function() return "zero" end,
        weights_first = several,
        parts = itself,
        order = { 0 },
    }
    if several or not type.groups then return reads end
    local group = print_product.groups(type, isa, panel)
    reads.groups, reads.at, reads.per_group, reads.per_row = true, true, type.groups, type.weights
    reads.word, reads.load, reads.parts, reads.order = isa.index, isa.load_words, group.unpack, group.order
    reads.weights_first = true
    reads.total = function(sum, offset) return type.minimum and sum or isa.add(sum, offset) end
    return reads
end

-- The vectors of sums of kernel `k`, token by token and panel by panel: { token, stream, n, sum: what C calls it, sums:
-- of each line of weights, y: the sum of groups, at: its outputs in what all tokens share, place: in y }.
local function vectors_of(k, lanes)
    local list, many = {}, k.tokens * k.streams > 1
    for t = 0, k.tokens - 1 do
        for s = 0, k.streams - 1 do
            for n = 0, k.vectors - 1 do
                local row, at = many and t + s .. "_" or "", sum(times(s, "y_apart"), n * lanes)
                local one = { token = t, stream = s, n = n, sums = {}, y = "y" .. row .. n, at = at }
                for u = 1, k.sets do
                    one.sums[u] = "sum" .. row .. (k.sets > 1 and u - 1 .. "_" or "") .. n
                end
                one.sum, one.place = one.sums[1], sum(times(t, "y_step"), at)
                list[#list + 1] = one
            end
        end
    end
    return list
end

-- What kernel `k` loads and multiplies, in order, of line number `u` of weights, or of two at once if there is a
-- `second`: a list of { weights = { name, at }, inputs = { name, token, at }, parts = { name, value: of a word },
-- products = { to, value }, kept: names of weights that stay in registers, or nil }.
local function loads_of(k, lanes, u, second)
    local reads, list = k.reads, {}
    local several = #reads.order > 1 or k.step > 1
    local function add(weights, inputs, products)
        list[#list + 1] = { weights = weights, inputs = inputs, parts = {}, products = products }
        return list[#list]
    end
    local function input(t, at) return { name = "x" .. t .. (several and "_" .. at or ""), token = t, at = at } end
    local function weights(v, line)
        local row = k.streams > 1 and v.stream .. "_" or k.pair and line .. "_" or ""
        return { name = "w" .. row .. v.n, at = sum(times(v.stream, "apart"), line * layout.panel + v.n * lanes) }
    end
    local all, inputs = {}, {}
    for at = 1, k.streams * k.vectors do
        all[at] = weights(k.list[at], u)
    end
    for t = 0, k.tokens - 1 do
        for part, at in ipairs(reads.order) do
            inputs[#inputs + 1] = input(t, u + at)
            inputs[#inputs].part = part
        end
        if second then inputs[#inputs + 1] = input(t, second) end
    end
    local function product(v, parts, x)
        local to = v.sums[k.sets > 1 and u + 1 or 1]
        return { to = to, value = reads.dot(to, parts[x.part], x.name) }
    end
    if reads.weights_first then
        add(all, {}, {})
        for _, x in ipairs(inputs) do
            local products = add({}, { x }, {}).products
            for at, w in ipairs(all) do
                local v = k.list[x.token * #all + at]
                products[at] = product(v, reads.parts(w.name), x)
            end
        end
        return list
    end
    add({}, inputs, {})
    for at, w in ipairs(all) do
        local turn, parts = add({ w }, {}, {}), reads.parts(w.name)
        for part, value in ipairs(#parts > 1 and parts or {}) do
            turn.parts[part] = { name = w.name .. "_" .. part, value = value }
            parts[part] = turn.parts[part].name
        end
        if second then
            local next = weights(k.list[at], second)
            turn.weights[2], turn.kept = next, { w.name, next.name }
        end
        for n, x in ipairs(inputs) do
            local v = k.list[x.token * #all + at]
            if not second then
                turn.products[n] = product(v, parts, x)
            elseif x.part then
                local value = reads.dot_two(v.sum, w.name, x.name, turn.weights[2].name, inputs[n + 1].name)
                table.insert(turn.products, { to = v.sum, value = value })
            end
        end
    end
    return list
end

-- The kernels of several tokens, then those of one: { name =, tokens, streams: panels side by side, vectors: of outputs
-- of each, step: inputs, or words, of a turn; pair: two words are multiplied at once; sets: of sums; x: the C type of
-- inputs; adds: to what lies in y; next, prefetch, prefetch_bytes: as the plan has them, of a turn; reads: as reads_of
-- says; list: as vectors_of says; sums: names that stay in registers; rest, turn: as loads_of says, of a line and
-- of all of a turn; additions: sums of lines, to and from }.
local function kernels_of(p, v)
    local product, list, x = v.product, {}, p.rounded and "uint32_t" or "float"
    local several, alone = reads_of(p, v, true), reads_of(p, v, false)
    local lanes, step = v.isa.lanes, several.dot_two and 2 or 1
    local function add(k)
        k.sets, k.x = k.pair and 1 or k.step, x
        k.list = vectors_of(k, lanes)
        k.rest, k.turn, k.sums, k.additions = loads_of(k, lanes, 0), {}, {}, {}
        for u = 0, k.sets - 1 do
            k.turn[u + 1] = loads_of(k, lanes, u, k.pair and 1)
        end
        for at, one in ipairs(k.list) do
            k.sums[at] = one.sum
        end
        local apart = 1
        while apart < k.sets do
            for u = 1, k.sets, 2 * apart do
                for _, one in ipairs(k.list) do
                    table.insert(k.additions, { one.sums[u], one.sums[u + apart] })
                end
            end
            apart = 2 * apart
        end
        list[#list + 1] = k
    end
    for at, tokens in ipairs(product.tokens) do
        add {
            name = "of_" .. tokens,
            tokens = tokens,
            streams = 1,
            vectors = product.strip_vectors,
            step = step,
            pair = step > 1,
            adds = not p.rounded,
            next = at == 1 and product.next, -- not beside a rest of the tokens
            prefetch = product.ahead,
            prefetch_bytes = step * product.strip_bytes,
            reads = several,
        }
    end
    for _, streams in ipairs(product.streams) do
        add {
            name = "alone" .. (streams > 1 and "_" .. streams or ""),
            tokens = 1,
            streams = streams,
            vectors = product.alone_vectors,
            step = product.unroll,
            prefetch = product.prefetch,
            prefetch_bytes = product.step_bytes,
            reads = alone,
        }
    end
    return list
end

-- Adds what the product of weights prints.
function print_product.values(p, v, values)
    values.product, values.rounded, values.tiles = v.product, p.rounded or false, print_product.tiles(p, v)
    values.length = p.rounded and "words" or "inputs"
    values.groups = p.type.groups and print_product.groups(p.type, v.isa, layout.panel) or false
    values.load_weights = not p.type.groups and print_product.loader(v.isa, p.type)
    values.kernels = kernels_of(p, v)
    values.outputs = outputs_of(p.rounded, v.isa, p.type.groups)
    values.started = p.rounded and print_product.sums(p.rounded, v.isa, p.type.groups and p.type).started or false
    values.barriers = function(sums) return p.rounded and barriers(p, v.isa, sums) or {} end
end

return print_product
