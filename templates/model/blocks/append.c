//$ takes lanes, helper, cache_type, rounds, turn
//$ -- How keys and values go into the cache.
//$ local words, plain = shape.cache.words, cache_type.plain
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
//$ -- Where a head's part of `name` begins in the cache.
//$ local function first_of(name, head)
//$     return times(shape.mixed and times(head, "positions") or head, names.constant(name:upper() .. "_HEAD"))
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
static void $(helper)_append(const $(names.type("layer")) *layer, const $(names.type("buffers")) *b, const $(names.span) *span,
    const $(names.type("cache")) *cache)
{
$(include("templates/model/blocks/rows_of_span.c", { rows = { "k", "v" }, reads = 2 }))
    const size_t first = span->first, tokens = span->count;
$(include("templates/model/blocks/cache_of_span.c"))
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
$(include("templates/model/blocks/angles.c", { of = "layer", position = "position" })) //$ if shape.rope
//$ if turns then
//$ local tile = place .. " / " .. tile_positions .. " * " .. names.constant("KEY_TILE")
//$ local tile_place = tile .. " + " .. place .. " % " .. tile_positions
        if (token >= turned && $(place) % $(lanes) == 0 && tokens - token >= $(lanes)) {
//$ loop("head", shape.shifted, shape.kv_heads, 1, function(head)
            $(helper)_transpose_keys($(sum("token_k", times(head, shape.width))), k_step, $(sum("keys", first_of("keys", head), tile_place)));
//$ end)
            turned = token + $(lanes);
        }
//$ end
//$ loop("head", 0, shape.kv_heads, 1, function(head)
            const float *head_k = $(sum("token_k", times(head, shape.width))), *head_v = $(sum("token_v", times(head, shape.width)));
            $(shape.cache.storage) *head_keys = $(sum("keys", first_of("keys", head))), *head_values = $(sum("values", first_of("values", head)));

//$ local function unit_of(name) return name .. "[" .. sum(first_of(name, head), place) .. "]" end
//$ local key_unit, value_unit = shape.shifted > 0 and "const float unit" or unit_of("key_scales"), unit_of("value_scales")
//$ local units = { place = place, head = head, key_unit = key_unit, value_unit = value_unit, turn = turn }
//$ if words then units.rounds = rounds end
$(include("templates/model/blocks/append_words.c", units)) //$ if words
$(include("templates/model/blocks/append_rounded.c", units)) //$ if not words and not plain
$(include("templates/model/blocks/append_floats.c", { place = place, head = head, turns = turns, turn = turn })) //$ if not words and plain
//$ end, { block = true })
    }
}
