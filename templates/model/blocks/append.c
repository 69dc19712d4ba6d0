//$ takes isa, lanes, helper, cache_type, rounds, v, turn
//$ -- How keys and values go into the cache.
//$ local words, plain = shape.cache.words, cache_type.plain
//$ local heads = shape.kv_heads > 1
//$ local value_pitch, tile_positions = names.constant("VALUE_PITCH"), names.constant("TILE_POSITIONS")
//$ if not plain and not words then
$(include("templates/model/blocks/round_head.c", { elements = shape.cache.pitch, text = value_pitch }))
//$ end
//$ -- Keys go to their tile by whole vectors of positions where they are neither rotated nor rounded.
//$ local turns = lanes > 1 and plain and not shape.rope and shape.width >= lanes and shape.shifted < shape.kv_heads
//$ if turns then
//$ local whole = shape.width // lanes * lanes
//$ local transpose = once("templates/math/transpose.c", { step = tile_positions }) .. "_transpose"

/* One head of the keys of $(lanes) tokens, `k_step` apart, to positions of a tile that follow each other. */
static void $(helper)_transpose_keys(const float *restrict k, size_t k_step, float *restrict key)
{
//$ loop("i", 0, whole, lanes, function(at)
        $(transpose)($(sum("k", at)), k_step, $(sum("key", times(at, tile_positions))));
//$ end)
//$ if whole < shape.width then
    for (size_t i = $(whole); i < $(shape.width); ++i)
        for (size_t token = 0; token < $(lanes); ++token)
            key[i * $(tile_positions) + token] = k[token * k_step + i];
//$ end
}
//$ end
//$ local bounded = shape.shifted > 0 and (shape.mixed or not shape.ring)
//$ local length = shape.mixed and "positions" or names.constant("CACHE_POSITIONS")
//$ local some = shape.shifted < shape.kv_heads and " of the first " .. (shape.shifted > 1 and shape.shifted .. " heads" or "head") or ""

/* Puts the keys and values of the tokens of `span` into the cache of a layer.
//$ if shape.shifted > 0 then
   Keys$(some) go beside the values of the next
   token$(bounded and ", if there is one" or ""), those of the first token also beside its own.
//$ end
   */
static void $(helper)_append(const $(names.type("layer")) *layer, const $(names.type("attention")) *a, const $(names.span) *span,
    const $(names.type("cache")) *cache)
{
    const size_t k_step = a->k.step, v_step = a->v.step, first = span->first, tokens = span->count;
    const float *k = a->k.at + span->token * k_step, *v = a->v.at + span->token * v_step;
$(include("templates/model/blocks/cache_of_span.c", { restrict = "" }))
    const size_t end = $(shape.sequences and "span->tokens" or names.constant("CACHE_POSITIONS")); //$ if bounded
//$ if not words then
//$ if shape.cache.pitch > shape.width + 1 then
    const float one = $hidden(1.0f), zero = $hidden(0.0f); /* else loops are calls of memcpy and memset */
//$ else
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */
//$ end
//$ elseif shape.rope then
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */
//$ end
    size_t turned = 0; /* tokens whose keys are there already */ //$ if turns

    (void) layer; /* nothing is rotated */ //$ if not shape.rope
    for (size_t token = 0; token < tokens; ++token) {
        const size_t position = first + token$(shape.ring and ", place = position % " .. length or "");
        const float *token_k = k + token * k_step, *token_v = v + token * v_step;
//$ local place = shape.ring and "place" or "position"
//$ if shape.shifted > 0 then
        const size_t shifted_from = position > 0 ? position + 1 : 0;
        const size_t shifted_end = $(bounded and "position + 1 < end ? position + 2 : position + 1" or "position + 2");
//$ end
$(include("templates/model/blocks/angles.c", { position = "position" })) //$ if shape.rope
//$ local head_at = shape.mixed and "head * positions" or "head"
//$ -- Element 0 of a head of k and v, and of a head in a part of the cache.
//$ local from = heads and times("head", shape.width) or 0
//$ local function head_of(name) return heads and times(head_at, names.constant(name:upper() .. "_HEAD")) or 0 end
//$ local function element(name, i) return name .. "[" .. sum(from, i) .. "]" end
//$ local function in_cache(name, rest) return sum(name, head_of(name), rest) end
//$ local function in_scales(name) return name .. "[" .. sum(head_of(name), place) .. "]" end
//$ local function fill(name)
//$     if shape.cache.pitch == shape.width then return end
//$     if shape.cache.pitch == shape.width + 1 then
            $(name)[$(shape.width)] = 0.0f;
//$     else
            for (size_t i = $(shape.width); i < $(value_pitch); ++i)
                $(name)[i] = zero;
//$     end
//$ end
//$ local function of_tile(at)
//$     return at .. " / " .. tile_positions .. " * " .. names.constant("KEY_TILE") .. " + " .. at .. " % " .. tile_positions
//$ end
//$ local tile_place = of_tile(place)
//$ -- A key's elements go where `store(indent)` puts them, from `key` on, and its scale, `unit`, to its place.
//$ local function store_key(storage, store)
//$     if shape.shifted == 0 then return store() end
//$     local from, last = "shifted_from", "shifted_end"
//$     if shape.shifted < shape.kv_heads then
        const size_t from = head < $(shape.shifted) ? shifted_from : position, last = head < $(shape.shifted) ? shifted_end : position + 1;
//$         from, last = "from", "last"
//$     end
            for (size_t at = $(from); at < $(last); ++at) {
//$     local at = shape.ring and "slot" or "at"
                const size_t slot = at % $(length); //$ if shape.ring
                $(storage) *key = $(in_cache("keys", of_tile(at)));
//$     store()
                key_scales[$(sum(head_of("key_scales"), at))] = unit; //$ if cache_type.scaled
            }
//$ end
//$ -- Where the unit of a key goes first.
//$ local unit = shape.shifted > 0 and "const float unit" or in_scales("key_scales")
//$ if turns then
        if (token >= turned && $(place) % $(lanes) == 0 && tokens - token >= $(lanes)) {
//$ if heads then
            for (size_t head = $(shape.shifted); head < $(shape.kv_heads); ++head)
                $(helper)_transpose_keys($(sum("token_k", from)), k_step, $(in_cache("keys", tile_place)));
//$ else
            $(helper)_transpose_keys(token_k, k_step, $(in_cache("keys", tile_place)));
//$ end
            turned = token + $(lanes);
        }
//$ end
        for (size_t head = 0; head < $(shape.kv_heads); ++head) { //$ if heads
//$ if words then
//$ local pitch, count = v.attention.query_step, shape.cache.key_step
//$ -- The line that rounds a head to words, in units that go to `unit`.
//$ local function round(name, unit)
//$     if words.integers then
            $(unit) = $(rounds[shape.width])_round_block_$(shape.width)($(name), words, &start);
//$     else
            $(rounds[shape.width])_rounded_$(shape.width)($(name), $(shape.width), words, $(pitch), 1);
//$     end
//$ end
            uint32_t *key = $(in_cache("keys", tile_place)); //$ if shape.shifted == 0
//$ local first_word = in_cache("values", place .. " / " .. words.rows .. " * " .. value_pitch)
    unsigned char *value = (unsigned char *) ($(first_word)) + $(place) % $(words.rows)$(words.rows < 4 and " * " .. 4 // words.rows or "");
            uint32_t words[$(pitch)]$(words.integers and ", start; /* which is for queries only */" or ";")
//$ if shape.rope then
            float all[$(shape.width)];
            $(turn)_rotate_$(shape.width)($(sum("token_k", from)), cosine, sine, one, all);
//$ end
//$ round(shape.rope and "all" or sum("token_k", from), unit)
//$ -- Bytes of a key are words.offset larger: added to each without a carry.
//$ local raised = words.offset == 128 and "words[i] ^ 0x80808080u" or "((words[i] & 0x7f7f7f7fu) + 0x40404040u) & 0x7f7f7f7fu"
//$ store_key("uint32_t", function()
                for (size_t i = 0; i < $(count); ++i)
                    key[i * $(tile_positions)] = $(words.integers and raised or "words[i]");
//$ end)
//$ round(sum("token_v", from), in_scales("value_scales"))
//$ -- A word has as many elements of a value as a word of the cache has positions.
//$ local whole, bytes = shape.width // words.rows, 4 // words.rows
//$ -- The line that stores byte `k` of a word.
//$ local function store_byte(word, k)
//$     local byte = k == 0 and "words[" .. word .. "]" or "(words[" .. word .. "] >> " .. 8 * k .. ")"
                value[$(sum(times(4 * words.rows, word), k // bytes * 4 + k % bytes))] = (unsigned char) $(byte);
//$ end
//$ loop("i", 0, whole, 1, function(word)
//$ for k = 0, 3 do store_byte(word, k) end
//$ end)
//$ for k = 0, shape.width % words.rows * bytes - 1 do store_byte(whole, k) end
//$ if shape.cache.pitch > shape.width then
            for (size_t i = $(shape.width); i < $(value_pitch); ++i)
                value[4 * i] = 0; //$ if words.rows == 4
                value[4 * i] = value[4 * i + 1] = 0; //$ if words.rows ~= 4
//$ end
//$ else
            $(cache_type.storage) *key = $(in_cache("keys", tile_place)); //$ if shape.shifted == 0
            $(cache_type.storage) *value = $(in_cache("values", place .. " * " .. value_pitch));
//$ if not plain then
            float all[$(value_pitch)];
            $(cache_type.storage) rounded[$(value_pitch)];
//$ fill("all")
//$ elseif shape.rope then
            float all[$(shape.width)];
//$ end
//$ if shape.rope then
            $(turn)_rotate_$(shape.width)($(sum("token_k", from)), cosine, sine, one, all);
//$ elseif not plain then
            for (size_t i = 0; i < $(shape.width); ++i)
                all[i] = one * $(element("token_k", "i"));
//$ end
//$ if cache_type.scaled then
            $(unit) = $(helper)_round_head(all, rounded);
//$ elseif not plain then
            $(helper)_round_head(all, rounded);
//$ end
//$ local is_left = turns and (shape.shifted > 0 and "(head < " .. shape.shifted .. " || token >= turned) && " or "token >= turned && ")
//$ store_key(cache_type.storage, function()
                for (size_t i = 0; $(is_left or "")i < $(shape.width); ++i)
                    key[i * $(tile_positions)] = $(not plain and "rounded[i]" or shape.rope and "all[i]" or element("token_k", "i"));
//$ end)
//$ local to = plain and "value" or "all"
//$ over_row(shape.width, function(at, load, store)
//$ -- Without the factor of 1 compilers would call memcpy.
                $(store(to, at, isa.mul(isa.broadcast("one"), load("token_v", sum(from, at)))));
//$ end)
//$ if cache_type.scaled then
            $(in_scales("value_scales")) = $(helper)_round_head(all, value);
//$ elseif not plain then
            $(helper)_round_head(all, value);
//$ else
//$ fill("value")
//$ end
//$ end
        } //$ if heads
    }
}
