-- What the block products print: the distinct blocks of a projection, strip by strip for tokens in rows, codelet by
-- codelet for tokens in the lanes.
local expression = require "gen.isa.expression"
local figures = require "gen.plan.figures"
local product = require "gen.families.lookup.product"

local block_products = {}

local sum = expression.sum

-- The distinct blocks of `products`, each with what `describe` adds to it.
local function distinct_blocks(products, describe)
    local seen, blocks = {}, {}
    for _, p in ipairs(products) do
        if not seen[p.name] then
            seen[p.name] = true
            local block = { name = p.name, rows = p.rows, outputs = p.outputs, folds = p.folds, fold_gap = p.fold_gap }
            describe(block, p)
            blocks[#blocks + 1] = block
        end
    end
    return blocks
end

-- What the block products of tokens in rows print.
function block_products.rows(p, v, products, values)
    local isa, type = v.isa, p.projection
    local per_word, integers = type.word.rows, type.word.integers
    values.blocks = distinct_blocks(products, function(block, of)
        block.strips = { product.strips(of, isa.lanes, v.vectors_alone) } -- by the number of tokens
        block.strips[v.pass] = product.strips(of, isa.lanes, v.vectors)
        block.k_pairs, block.last_rows = of.rows // per_word, {}
        for row = block.k_pairs * per_word, of.rows - 1 do
            table.insert(block.last_rows, tostring(row))
        end
        block.block_words, block.x_stride = of.block_words, of.x_stride
        if integers then
            -- A fold's blocks of inputs lie so many blocks, and words, after those of the one before.
            block.lines, block.fold_blocks = of.lines, of.fold_gap // of.rows
            block.fold_words = block.fold_blocks * of.lines
            block.x_stride = product.lines(of.x_stride, per_word)
        end
    end)
    values.unpacked, values.folded, values.panel, values.block_of = false, false, product.panel, false
    -- One call for all blocks of a product: a call for each costs one token 2 to 3 % of its projection.
    local counted = {}
    for _, of in ipairs(products) do
        counted[of.name] = counted[of.name] or of.count > 1
    end
    for _, block in ipairs(values.blocks) do
        block.counted = counted[block.name]
    end
    values.counted_blocks = function(of) return counted[of.name] and of.count end
    values.token_counts = v.pass > 1 and { v.pass, 1 } or { 1 }
    -- The variable that counts words of an output, and the inputs that a word is for, each after `before`.
    values.counter = integers and values.counter or per_word > 1 and "k_pair" or "k"
    -- The places, from `before` on, of the inputs of word number `k`.
    values.x_inputs = function(before, k)
        local first = math.type(k) and k * per_word or per_word > 1 and per_word .. " * " .. k or k
        local list = {}
        for part = 0, per_word - 1 do
            local at = sum(first, part)
            list[part + 1] = before == 0 and at or sum(before, at)
        end
        return list
    end
    -- A vector of weights of input `k`, or of words number `k`, or `later` ones.
    local function load(whole, partial, vector, k, later)
        local first = vector.at + (later or 0) * vector.step
        local at = sum(math.type(k) and k * vector.step or k .. " * " .. vector.step, first)
        return vector.partial and partial("w", at, vector.floats) or whole("w", at)
    end
    values.load_weights = function(vector, k) return load(isa.load_unaligned, isa.load_partial, vector, k) end
    values.load_words = function(vector, k, later)
        return load(isa.load_words, isa.load_words_partial, vector, k, later)
    end
    -- How the weights of a block lie, in words.
    values.weights_text = function(block)
        local lines = figures.plural(product.lines(block.rows, per_word), per_word > 1 and "word" or "input")
        if block.folds > 1 then lines = block.folds .. " * " .. lines end
        local whole, rest = block.outputs // product.panel, block.outputs % product.panel
        local width = whole > 0 and product.panel or rest
        local text = string.format("[%s][%s]", lines, figures.plural(width, "output"))
        if whole > 1 or whole == 1 and rest > 0 then text = figures.plural(whole, "panel") .. " " .. text end
        return whole > 0 and rest > 0 and text .. ", then one of " .. figures.plural(rest, "output") or text
    end
    values.unpack = per_word > 1 and isa["unpack_" .. type.name] or false
    -- Declarations of a token's accumulators, four a line: of floats, or of integers with names that begin with `name`;
    -- `start`: what they begin with, zero if absent.
    values.zeros = function(token, count, name, start)
        local list, zero = {}, start or name and isa.index_zero() or isa.zero()
        for first = 0, count - 1, 4 do
            local line = {}
            for n = first, math.min(first + 3, count - 1) do
                line[#line + 1] = (name or "y") .. token .. "_" .. n .. " = " .. zero
            end
            list[#list + 1] = (name and isa.index or isa.vector) .. " " .. table.concat(line, ", ") .. ";"
        end
        return list
    end
    -- Sums of integers wait for each other where there are few: then two words in a row have sums of their own.
    values.chains = function(block, vectors, tokens)
        local narrow = vectors * tokens <= 4
        return narrow and block.lines % 2 == 0 and 2 or 1
    end
end

-- Splits `outputs` outputs into codelets of at most `max`.
local function parts(outputs, max)
    local list, at = {}, 0
    while at < outputs do
        local n = math.min(max, outputs - at)
        list[#list + 1] = { at = at, outputs = n }
        at = at + n
    end
    return list
end

-- The functions that unpack words, one for each width of a panel in `blocks`: { {width, whole, partial} }, whole
-- vectors first.
local function unpacks_of(isa, blocks)
    local seen, list = {}, {}
    for _, block in ipairs(blocks) do
        for _, width in ipairs { block.full_panels > 0 and product.panel or 0, block.tail_outputs } do
            if width > 0 and not seen[width] then
                seen[width] = true
                list[#list + 1] = { width = width, whole = width - width % isa.lanes, partial = width % isa.lanes }
            end
        end
    end
    table.sort(list, function(a, b) return a.width < b.width end)
    return list
end

-- What the block products of tokens in the lanes print: blocks, and the codelets they need.
function block_products.lanes(p, v, products, values)
    local micro_seen, odd, integers = {}, 0, p.projection.word.integers
    values.micro, values.folded = {}, false
    values.blocks = distinct_blocks(products, function(block, of)
        block.lines, odd = of.lines, odd | (integers and of.lines or of.rows) & 1
        block.full_panels, block.tail_outputs, block.depth, block.panel_words =
            of.full_panels, of.tail_outputs, of.depth, of.depth * product.panel
        block.full = of.full_panels > 0 and parts(product.panel, v.outputs) or {}
        block.tail = parts(of.tail_outputs, v.outputs)
        values.folded = values.folded or of.folds > 1
        for _, list in ipairs { block.full, block.tail } do
            for _, part in ipairs(list) do
                if not micro_seen[part.outputs] then
                    micro_seen[part.outputs] = true
                    values.micro[#values.micro + 1] = part.outputs
                end
            end
        end
    end)
    table.sort(values.micro)
    local by_name = {}
    for _, block in ipairs(values.blocks) do
        by_name[block.name] = block
    end
    values.block_of = function(of) return by_name[of.name] end
    -- Those that are multiplied as a whole: all, unless rows of theirs come first.
    values.called_blocks = {}
    for _, block in ipairs(values.blocks) do
        if values.whole_blocks == nil or values.whole_blocks[block.name] then
            table.insert(values.called_blocks, block)
        end
    end
    values.panel, values.counted_blocks = product.panel, false
    -- The loop over the inputs, or words, of a codelet, and weight `output` of the row that comes `number` later.
    values.unroll = v.isa.lanes > 1 and odd == 0 and 2 or 1
    values.counted = function(counter)
        if values.unroll == 1 then return "++" .. counter .. ", x += " .. v.tile end
        return string.format("%s += %d, x += %d", counter, values.unroll, values.unroll * v.tile)
    end
    values.weight = function(number, output)
        local before = number == 0 and "" or number == 1 and "width" or number .. " * width"
        return "row[" .. (number == 0 and output or sum(before, output)) .. "]"
    end
    local word = p.projection.word
    values.unpacked = word.rows > 1 and not word.integers
    if values.unpacked then values.unpacks = unpacks_of(v.isa, values.blocks) end
    values.accumulators = function(output)
        local list = {}
        for n = 0, v.vectors - 1 do
            local start = word.offset and "start" .. n or word.integers and v.isa.index_zero() or v.isa.zero()
            list[n + 1] = "y" .. output .. "_" .. n .. " = " .. start
        end
        return table.concat(list, ", ")
    end
end

return block_products
