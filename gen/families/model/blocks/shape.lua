-- The shape of a transformer: its widths, and where keys and values lie in the cache.
local blob = require "gen.plan.blob"
local dtype = require "gen.plan.dtype"
local ffn_parts = require "gen.schema.ffn_parts"
local layout = require "gen.families.model.blocks.layout"
local lookup_plan = require "gen.families.lookup.plan"
local rope_angles = require "gen.families.model.blocks.rope"
local rules = require "gen.families.model.model"

local shape = {}

local unit_eps = 1e-6 -- added to the mean square of a head of q or k, where only its direction counts

-- The cache: positions that it holds, and per layer, in bytes, the keys [kv_heads][tile][width][32], the values
-- [kv_heads][position][pitch] and, where elements are integers, the scales of both, [kv_heads][position]. In the type
-- that products round their inputs to (`words`, a row of their table) these are words of the dot products of attention:
-- keys [kv_heads][tile][word][32], each of some elements of a key, values [kv_heads][word][pitch], each of an element
-- of some positions. key_step: elements or words of a key. A window's cache is a ring of tiles: a token's keys and
-- values are put where those were that no token sees any more. So that up to a tile of tokens can enter before they
-- attend, it holds that many more, and one where a key goes to the place of the next token. Where only some layers have
-- the window, `mixed`, all offsets are in proportion to the positions of a layer: positions, or those of a ring. For
-- several sequences at once it holds those of one layer, each sequence from a tile on. Where values are made of keys
-- (from_keys) there are keys alone, as they are before they are rotated, a row of all heads for each position,
-- [position][pitch], and, where elements are integers, scales [position][heads].
local function cache_of(s, type)
    local pitch, positions = blob.round_up(s.width, layout.values), s.context
    if s.from_keys then pitch = blob.round_up(s.e, layout.values) | layout.values end
    local ring = s.ring and s.window - 1 + layout.keys + (s.shifted > 0 and 1 or 0)
    if s.ring and not s.mixed then positions = ring end
    if s.sequences then positions = s.sequences.positions end
    local words = not s.from_keys and s.rounded and s.rounded.name == type.name and s.rounded or nil
    local per_word = words and words.rows or 1
    local cache = {
        type = type,
        held = type, -- the type of keys and values
        words = words,
        storage = words and words.storage or type.storage,
        bytes = words and type.bytes * per_word or type.bytes,
        per_word = per_word,
        key_step = (s.width + per_word - 1) // per_word,
        pitch = pitch,
        positions = blob.round_up(positions, s.mixed and blob.align or layout.keys),
        layer_bytes = 0,
        position_bytes = 0, -- of all layers
        parts = {},
    }
    local function part(name, element, elements) -- of 32 positions
        local head = cache.positions // layout.keys * elements
        local one = { name = name, storage = element.storage, head = head, at = cache.layer_bytes }
        one.step, one.position_at = elements // layout.keys, one.at // cache.positions -- of a position
        cache.parts[#cache.parts + 1] = one
        cache[name] = one
        cache.layer_bytes = blob.round_up(one.at + s.cached_heads * one.head * element.bytes, blob.align)
        local bytes = elements * element.bytes // layout.keys -- of a position
        cache.position_bytes = cache.position_bytes + s.layers * s.cached_heads * bytes
    end
    if s.from_keys then cache.key_step = pitch end
    -- That are rounded together, filled up.
    cache.rounded_elements = s.from_keys and type.scaled and blob.round_up(s.width, layout.values) or pitch
    cache.key_tile, cache.value_tile = layout.keys * cache.key_step, layout.keys // per_word * pitch
    part("keys", cache, cache.key_tile)
    if not s.from_keys then part("values", cache, cache.value_tile) end
    if type.scaled then
        part("key_scales", dtype.get "f32", layout.keys * (s.from_keys and s.heads or 1))
        if not s.from_keys then part("value_scales", dtype.get "f32", layout.keys) end
    end
    cache.layers, cache.bytes_of_all = {}, 0
    cache.ring_positions = s.mixed and math.min(cache.positions, blob.round_up(ring, blob.align))
    for layer = 1, s.sequences and 1 or s.layers do
        local held = cache.positions
        if s.mixed and not s.full_layers[layer] then held = cache.ring_positions end
        cache.layers[layer] = { positions = held, at = cache.bytes_of_all }
        cache.bytes_of_all = cache.bytes_of_all + cache.layer_bytes * held // cache.positions
    end
    return cache
end

-- That of attention by tables, likewise. Decoders keep for each head the sums of the values that have left the window,
-- [table][row][pitch], of those in it keys [rows][width], values [rows][pitch] and codes [table][window], a ring, and,
-- where keys go to the next token, the last one. Rows stand by age, from position % window on, in front of those of the
-- next call, so that every window lies in one piece. Encoders keep keys, values and codes of all positions. Parts that
-- are `read` go to the kernel of attention: keys only for a window. In i8 rows are sums in 16 bits of values rounded to
-- 8: of several tables at a time in a unit of theirs, [table / together], which doubles when a sum leaves -limit ...
-- limit - 1, so that rows of each of these tables never add up to more than 16 bits.
local function cache_of_tables(s, type)
    local lsh, positions = s.lsh, s.sequences and s.sequences.positions or s.context
    local limit = type.scaled and (1 << 15) // math.max(2, lsh.together)
    local row = type.scaled and { storage = "int16_t", bytes = 2 } or type
    local cache = {
        type = type,
        held = dtype.get "f32",
        per_word = 1,
        key_step = s.width,
        pitch = blob.round_up(s.width, layout.values),
        row = row, -- what an element of a row of tables is
        limit = limit,
        positions = blob.round_up(positions, layout.keys),
        layer_bytes = 0,
        position_bytes = 0, -- of all layers
        parts = {},
        layers = {},
    }
    local function part(name, storage, bytes, elements) -- of a head
        if elements == 0 then return end
        local at = cache.layer_bytes
        local read = name ~= "before" and (name ~= "keys" or lsh.window > 0)
        cache.parts[#cache.parts + 1] = { name = name, storage = storage, head = elements, at = at, read = read }
        cache.layer_bytes = blob.round_up(at + s.kv_heads * elements * bytes, blob.align)
    end
    local held = s.causal and lsh.window or cache.positions
    cache.rows = s.causal and math.max(0, 3 * held - 2) or held
    part("keys", "float", 4, cache.rows * s.width)
    part("values", "float", 4, cache.rows * cache.pitch)
    -- 32 are read together; without them those of all tables would often lie in the same set of L1.
    if not s.causal then cache.code_pitch = held + 32 end
    part("codes", "uint16_t", 2, lsh.tables * (cache.code_pitch or held))
    if s.causal then
        part("tables", row.storage, row.bytes, lsh.tables * lsh.rows * cache.pitch)
        part("units", "float", 4, limit and lsh.tables // lsh.together or 0)
        part("before", "float", 4, s.shifted > 0 and s.width or 0)
    end
    local layers = s.sequences and 1 or s.layers
    for layer = 1, layers do
        cache.layers[layer] = { positions = cache.positions, at = (layer - 1) * cache.layer_bytes }
    end
    cache.bytes_of_all = layers * cache.layer_bytes
    return cache
end

-- The window of the run of blocks `m`, whose first layer is number `first`, or nil; and where only some of its layers
-- have it, for each whether it attends to all positions.
local function window_of(m, first)
    if m.attention.kind == "lsh" then return nil end
    local a, full, list, count = m.attention, {}, {}, 0
    for _, number in ipairs(a.full_layers or {}) do
        full[number] = true
    end
    for layer = 1, m.layers do
        list[layer] = full[first + layer - 1] or false
        if list[layer] then count = count + 1 end
    end
    if count == m.layers then return nil end
    return a.window, count > 0 and list or nil
end

-- Where a block's FFN ends with a linear map and a sum, means over tokens can be taken before both: { hidden, pitch }:
-- where the sums of hidden values begin behind those of the tokens' own, and floats of a row of both. nil: they cannot.
local function sums_of(s)
    local behind = s.norm and s.norm.place ~= "pre"
    if s.layers > 1 or s.lookup or s.parallel or s.delivered or behind or not s.skip then return nil end
    return { hidden = s.d, pitch = s.d + s.f }
end

-- The widths of model `m`, whatever its types are: d, q, e of q and of k and v, read of what Q, K and V of the
-- checkpoint take, input of a block; skip_map: whether the checkpoint has S.
function shape.widths(m)
    local s = { d = m.d, q = rules.q_width(m), e = rules.kv_width(m), skip = m.skip }
    -- What makes a block's input delivers its q, k and v, side by side.
    s.delivered = m.attention.eliminate:find("QKV", 1, true) ~= nil
    s.made = s.delivered and s.q + 2 * s.e or s.d -- width of what a block makes that is not the last
    -- Rows of tables that hold q, k and v before the FFN's output, and where that begins.
    s.qkv, s.row = m.ffn.qkv or false, rules.row_width(m)
    s.output_at = s.row - s.d
    s.read = s.delivered and s.d or rules.input_width(m)
    s.skip_map = s.skip and s.read ~= s.d
    -- So do embeddings, of which the skip connection adds a part, too; the checkpoint has the maps that make all that.
    s.projected = m.projected or false
    s.given = s.delivered or s.projected
    s.input = s.delivered and s.made or s.projected and s.q + 2 * s.e + (s.skip and s.d or 0) or s.read
    return s
end

-- That of the LookupFFN of blocks of `m`, `looked` of their types.
local function looked_of(m, looked)
    local ffn = ffn_parts.add_lookup({ d = m.d, d_out = rules.row_width(m) }, m.ffn)
    return lookup_plan.shape(ffn, looked.tables, looked.projection, looked.multiplied)
end

-- The norms of a block of shape `s` in the order of their numbers: { word, doc, width }.
local function norms_of(s)
    if not s.norm then return {} end
    if s.qkv or s.norm.shared then return { { word = "first", doc = "norm", width = s.d } } end
    local post, both = s.norm.place == "post", s.norm.place == "both"
    return {
        { word = "first", doc = "first norm", width = post and s.d or s.read },
        { word = "second", doc = "second norm", width = s.d },
        both and { word = "after_attention", doc = "norm after attention", width = s.d } or nil,
        both and { word = "after_ffn", doc = "norm after the FFN", width = s.d } or nil,
    }
end

-- The norms that heads of q and k go through, one after the other: { name, eps, gains: whether it has some }.
local function head_norms_of(attention)
    local list, norm = {}, attention.qk_norm
    if norm then list[1] = { name = "norm_heads", eps = norm.eps, gains = true } end
    if attention.unit or attention.kind == "lsh" then
        list[#list + 1] = { name = norm and "unit_heads" or "norm_heads", eps = unit_eps, gains = false }
    end
    return list
end

-- The shape of model `m` with `types` (gen/families/model/types.lua); sequences: { positions, means }, of a batch at
-- most, each sequence filled up to whole tiles, means: only means over their tokens are asked for; or nil: a call is
-- for one sequence; first_layer: the number of its first layer.
function shape.of(m, types, sequences, first_layer)
    local window, full_layers = window_of(m, first_layer)
    local width, dense = rules.head_width(m), ffn_parts.dense(m.ffn)
    local from_keys = m.attention.cache == "k"
    local cached_heads = from_keys and 1 or m.kv_heads -- all queries read all of K
    local looked = m.ffn.kind == "lookup" and types.looked or nil
    local s = {
        type = types.type,
        rounded = types.rounded,
        heads = m.heads,
        kv_heads = m.kv_heads,
        from_keys = from_keys,
        cached_heads = cached_heads,
        group = m.heads // cached_heads, -- heads of q for each of them
        width = width,
        f = dense and dense.f, -- of the dense FFN, which may stand beside a LookupFFN
        layers = m.layers,
        context = m.attention.context,
        window = window,
        full_layers = full_layers,
        causal = m.attention.causal,
        sequences = sequences,
        -- Some layers are rings; mixed: not all; endless: no layer of the model holds the context. There is no way back
        -- in tables either.
        ring = m.attention.causal and (window ~= nil or m.attention.kind == "lsh"),
        mixed = m.attention.causal and full_layers ~= nil,
        endless = m.attention.causal and window ~= nil and not m.attention.full_layers,
        parallel = m.parallel,
        scale = m.attention.scale or width ^ -0.5,
        gated = dense ~= nil and dense.kind == "glu",
        activation = dense and dense.activation,
        norm = m.norm,
        lookup = m.ffn.kind == "lookup",
        tables = looked and looked.tables, -- their type
        looked = looked and looked.multiplied and looked_of(m, looked), -- where there is something to choose
        lsh = rules.lsh(m),
        shaped = m.attention.shaped or false,
        qk_norm = m.attention.qk_norm or false,
        unit = m.attention.unit or false,
        shifted = m.attention.shifted or 0,
        head_norms = head_norms_of(m.attention),
        soft_cap = m.attention.soft_cap,
    }
    for key, value in pairs(shape.widths(m)) do
        s[key] = value
    end
    s.norms = norms_of(s)
    local rope = m.attention.rope
    if rope then
        s.rotated = rules.rotated(m)
        s.rope = { half = s.rotated // 2, interleaved = rope.pairs == "interleaved" }
        s.rope.frequencies, s.rope.factor = rope_angles.frequencies(rope, s.rope.half)
    end
    if s.lsh and types.cache.scaled and s.lsh.tables % 8 == 0 then s.lsh.together = 8 end -- of half as many bytes
    s.cache = (s.lsh and cache_of_tables or cache_of)(s, types.cache)
    if s.endless then
        -- Positions go on beyond the context: the angles of a position are those of its bytes, added up.
        s.context = layout.max_positions
        if s.rope then s.rope.digits = { 1, 1 << 8, 1 << 16, 1 << 24 } end
    end
    s.sums = sequences and sequences.means and sums_of(s) or nil
    s.most_tokens = sequences and s.cache.positions or s.context -- of a call
    return s
end

return shape
