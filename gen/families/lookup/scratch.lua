-- Plans scratch, the memory that calls work in: the buffers of a stage and their places.
local blob = require "gen.plan.blob"
local dense = require "gen.families.lookup.dense"
local figures = require "gen.plan.figures"
local product = require "gen.families.lookup.product"

local scratch = {}

-- Bytes after which addresses fall into the same set of L1 again: 64 sets of 64 bytes, on x86 and most of Arm.
local sets_bytes = 4096

-- Places of the buffers in `list`, from byte `first` on, each aligned to `align` bytes (blob.align, if absent), and
-- their end. A buffer that is read `beside` another one lies half of `sets_bytes` off it: so the same elements of both
-- fall into other sets of L1.
function scratch.places(list, first, align)
    local places, at = {}, first
    for _, buffer in ipairs(list) do
        local beside = places[buffer.beside]
        if beside then at = at + (sets_bytes // 2 - (at - beside)) % sets_bytes end
        places[buffer.name] = at
        at = blob.round_up(at + buffer.bytes, align or blob.align)
    end
    return places, at
end

-- The buffers of a projection that rounds its inputs, as scratch.work returns them. `blocks`: units of a token.
local function work_of_integers(shape, stage)
    local word, tokens = shape.projection.word, stage.projected
    local many, rows_first, lanes = stage.layout == "lanes", stage.rows_first, stage.isa.lanes
    -- A vector of words is stored at a time, whatever a block needs: the next one's follow.
    local block = not word.offset and shape.padded or shape.kind == "bh4" and shape.block or shape.d
    local blocks, lines = shape.padded // block, product.lines(block, word.rows)
    local pitch = (blocks - 1) * lines + blob.round_up(lines, lanes)
    if many and not rows_first then
        pitch, blocks = stage.projection.max_lines, word.offset and stage.projection.max_folds or 2
    end
    -- What comments say of an axis: of a tile's tokens, of blocks or folds, if there are several.
    local tile = many and "[" .. stage.tile .. "]" or ""
    local parts = blocks > 1 and "[" .. blocks .. (many and not rows_first and " folds]" or " blocks]") or ""
    local list = {
        {
            name = "integers",
            storage = word.storage,
            pitch = pitch,
            bytes = tokens * pitch * 4,
            text = (many and "[tiles][" or "[tokens][") .. pitch .. "]" .. tile .. " words",
        },
        {
            name = "units",
            storage = "float",
            blocks = blocks,
            bytes = tokens * blocks * (many and 8 or 4),
            text = not many and "[tokens]" .. (word.offset and parts or "")
                or word.offset and "[tiles]" .. parts .. "[unit, inverse]" .. tile
                or "[tiles][x, outputs of a stage][unit, inverse]" .. tile,
        },
    }
    if word.offset then
        list[3] = {
            name = "starts",
            storage = word.storage,
            bytes = tokens * blocks * 4,
            text = (many and "[tiles]" or "[tokens]") .. parts .. tile,
        }
    end
    local tiled = many and shape.kind == "dense" and dense.by_tiles(shape, stage.isa)
    if tiled and tiled.splits then
        list[3] = {
            name = "bytes",
            storage = word.storage,
            bytes = lines * product.panel * 4,
            text = "[" .. lines .. "][" .. product.panel .. "] words, a panel of weights in bytes",
        }
    end
    if rows_first then
        list[4] = {
            name = "maxima",
            storage = "uint32_t",
            bytes = tokens * blocks * 4,
            text = "[" .. figures.plural(blocks, "block") .. "][tile] words",
        }
    end
    return list
end

-- What the projection of a stage works in beside its vectors: { name, storage, bytes, text = shape and use }.
--   integers, units   inputs rounded to words of integers, and the units of the tokens. Tokens in rows round all
--                     inputs, those in the lanes the blocks one after the other
--   starts            what sums begin with where weights have an offset: then each block has a unit and a start
--   maxima            where stages go by rows: the largest magnitude of each block that butterflies make
--   bytes             a panel of weights of 16 bits, split for a matrix engine
--   halves            inputs rounded to bf16, token after token, for a matrix engine
--   unpacked          kernels with tokens in the lanes broadcast one weight after the other: they unpack words of
--                     several, a panel at a time
function scratch.work(shape, stage)
    local word = shape.projection.word
    if word.integers then return work_of_integers(shape, stage) end
    if stage.layout == "lanes" and shape.kind == "dense" and dense.by_tiles(shape, stage.isa) then
        local bytes, text = stage.projected * shape.d * 2, "[tiles][tile][" .. shape.d // 2 .. "] words of two in bf16"
        return { { name = "halves", storage = word.storage, bytes = bytes, text = text } }
    end
    if word.rows == 1 or stage.layout == "rows" then return {} end
    local floats = stage.projection.panel_floats
    return { { name = "unpacked", storage = "float", bytes = floats * 4, text = "[" .. floats .. "]" } }
end

-- The buffers of a stage, without those of its gathers.
function scratch.buffers(shape, stage)
    local list = { { name = "code", bytes = stage.chunk * shape.slots * 2 } }
    if shape.weighted then list[2] = { name = "score", bytes = stage.chunk * shape.slots * 4 } end
    local tokens, rows = stage.projected, stage.projection.rows
    for _, name in ipairs { "x", "a", "b", "z" } do
        if rows[name] then
            -- The last butterfly adds a share of x to z: as many elements of each as it has wires, often 4 KiB apart.
            local beside = name == "z" and tokens > 1 and rows.x and "x" or nil
            list[#list + 1] = { name = name, bytes = rows[name] * tokens * 4, beside = beside }
        end
    end
    if stage.hash.bytes > 0 then list[#list + 1] = { name = "vertices", bytes = stage.hash.bytes } end
    return table.move(stage.work, 1, #stage.work, #list + 1, list)
end

return scratch
