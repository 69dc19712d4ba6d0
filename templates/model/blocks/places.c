//$ takes helper, v, structs, layers, map_uses
//$ -- Where a layer's weights, its cache and the rows of a chunk lie: nothing else knows offsets and strides of these.
//$ local macro = names.constant
//$ if shape.full_layers then

/* Whether a layer attends to all positions, not only to those in the window. */
static const unsigned char $(helper)_is_full[$(shape.layers)] = {
    $(structs.full_flags),
};
//$ end
//$ if shape.mixed then

/* Where the keys and values of a layer begin in the cache: those of layers with the window are rings. */
static const size_t $(helper)_cache_begins[$(shape.layers)] = {
    $(structs.cache_places),
};
//$ end
//$ -- The fields of a linear map, of the layer `own`.
//$ local function fields_of(map)
//$     local fields = {}
//$     for i, place in ipairs(map.places) do
//$         local distance = layers and times("own->number", macro(place.step)) or 0
//$         fields[i] = { name = place.name, value = sum("own->weights->" .. place.of, distance) }
//$     end
//$     fields[#fields + 1] = { name = "inputs", value = macro(map.letter .. "_INPUTS") }
//$     fields[#fields + 1] = { name = "panels", value = macro(map.letter .. "_PANELS") }
//$     return fields
//$ end
//$ for _, map in ipairs(structs.layer.maps) do
//$ local fields = fields_of(map)
//$ local own = "const " .. names.type("layer") .. " *own"
//$ if map_uses[map.letter] == "product" then
$(include("templates/model/multiply.c", { name = map.name, what = map.letter .. " of a layer", of = own, fields = fields, matrix = structs.matrix }))
//$ elseif map_uses[map.letter] then

/* The linear map $(map.letter) of a layer$(structs.converts and ", but not its strip" or ""). */
static void $(helper)_$(map.name)_at($(own), $(structs.matrix) *map)
{
    map->$(field.name) = $(field.value); //$ for _, field in ipairs(fields)
}
//$ end
//$ end
//$ local function of_layer(place) return sum("weights->" .. place.of, layers and place.step and times("layer", macro(place.step)) or 0) end

/* Layer number `layer`, but not its linear maps. */
static void $(helper)_layer_at(const $(names.weights) *weights, size_t layer, $(names.type("layer")) *own)
{
    own->weights = weights;
    own->number = layer;
//$ for _, field in ipairs(structs.layer.fields) do
//$ if field.of then
    own->$(field.name) = $(of_layer(field));
//$ elseif field.name == "window" then
    own->window = $(helper)_is_full[layer] ? $(macro("CACHE_POSITIONS")) : $(shape.window);
//$ end
//$ end
}
//$ if structs.lookup then

/* The weights of the LookupFFN of a layer. */
static void $(helper)_lookup_at(const $(names.type("layer")) *own, $(structs.lookup) *lookup)
{
    const $(names.weights) *weights = own->weights;
    const size_t layer = own->number; //$ if layers

//$ local several = #structs.layer.lookups > 1
//$ for n, part in ipairs(structs.layer.lookups) do
    $(n == 1 and "if (layer < " .. part.count .. ") {" or "} else {") //$ if several
        lookup->$(place.name) = $(of_layer(place)); //$ for _, place in ipairs(part.places)
//$ end
    } //$ if several
}
//$ end

/* The part of the cache that layer number `layer` has. */
static void $(helper)_cache_at(unsigned char *cache, size_t layer, $(names.type("cache")) *own)
{
//$ local base = "cache"
//$ if layers and not shape.sequences then
    unsigned char *begin = cache + $(shape.mixed and helper .. "_cache_begins[layer]" or "layer * " .. macro("CACHE_LAYER_BYTES"));
//$ base = "begin"
//$ else
    (void) layer; /* all layers use the same */
//$ end

//$ if shape.mixed then
    own->positions = $(helper)_is_full[layer] ? $(macro("CACHE_POSITIONS")) : $(macro("RING_POSITIONS"));
//$ end
//$ for _, part in ipairs(structs.cache) do
//$ if part.at then
//$ local at = part.at == 0 and base or "(" .. base .. " + " .. (shape.mixed and "own->positions * " or "") .. macro(part.name:upper() .. "_AT") .. ")"
    own->$(part.name) = ($(part.type)) (void *) $(at);
//$ end
//$ end
}

//$ local some_tokens = v.chunk > 1
//$ local function of_chunk(constant) return "rows + " .. (some_tokens and "chunk * " or "") .. macro(constant) end
/* The rows of the chunk from token number `at` of a call on. */
static void $(helper)_buffers_at(const $(names.type("call")) *call, size_t at, void *scratch, $(names.type("buffers")) *b)
{
    const size_t chunk = call->tokens < $(macro("CHUNK")) ? call->tokens : $(macro("CHUNK")); //$ if some_tokens
    const size_t in_step = $(shape.delivered and "call->in_step" or macro(shape.input == shape.d and "D" or "D_IN"));
//$ local floats = v.lookup_floats
//$ if floats.many > floats.alone and some_tokens then
    float *rows = (float *) scratch + (chunk == 1 ? $(macro("LOOKUP_FLOATS_ALONE")) : $(macro("LOOKUP_FLOATS")));
//$ elseif floats.many > 0 then
    float *rows = (float *) scratch + $(macro(floats.many > floats.alone and "LOOKUP_FLOATS_ALONE" or "LOOKUP_FLOATS"));
//$ else
    float *rows = (float *) scratch;
//$ end

    b->in.at = call->in + at * in_step;
    b->in.step = in_step;
//$ local of_call = v.buffers.of_call
//$ if of_call then
    b->$(of_call.name).at = (float *) scratch + $(macro("OF_CALL_AT")) + at * $(structs.step_of(of_call.name));
    b->$(of_call.name).step = $(structs.step_of(of_call.name));
//$ end
//$ for _, item in ipairs(v.buffers.tokens) do
//$ local at = of_chunk(item.name:upper() .. "_AT")
//$ if item.storage ~= "float" then at = "(" .. item.storage .. " *) (void *) (" .. at .. ")" end
//$ if item.storage == "uint16_t" then
    b->$(item.name) = $(at);
//$ else
    b->$(item.name).at = $(at);
    b->$(item.name).step = $(structs.step_of(item.name));
//$ end
//$ end
//$ -- What attention by tables works in is of a chunk, of others of the tokens that attend together.
//$ local tile = v.buffers.tile_floats > 0 and macro("TILE_FLOATS") .. " + " or ""
//$ local function working(field, base)
//$     local at = base .. macro(field.name:upper() .. "_AT")
//$     return field.item.storage == "float" and at or "(" .. field.item.storage .. " *) (void *) (" .. at .. ")"
//$ end
    b->$(field.name) = $(working(field, of_chunk("TOKEN_FLOATS") .. " + ")); //$ for _, field in ipairs(structs.buffers) if field.item
    b->attention = $(of_chunk("TOKEN_FLOATS")); //$ if not shape.lsh
//$ if v.unpacked_at and some_tokens then
    b->strip = chunk > 1 ? (float *) scratch + $(macro("UNPACKED_AT")) : NULL;
//$ elseif structs.converts then
    b->strip = NULL;
//$ end
}

/* What attention works in for all$(shape.lsh and " heads: the same rows" or " tokens of a chunk"). */
static void $(helper)_attention_at(const $(names.type("call")) *call, const $(names.type("layer")) *layer, const $(names.type("buffers")) *b,
    $(names.type("attention")) *a)
{
//$ if shape.lsh then
    (void) call;
    (void) layer;
    a->$(field.name).step = b->$(structs.rows[field.name].from).step; //$ for _, field in ipairs(structs.attention) if structs.rows[field.name]
    a->table = b->table; //$ if not shape.causal
//$ else
//$ local together = v.chunk < v.queries and v.chunk or v.queries
//$ local some = together > 1
//$ if some then
    const size_t most = call->tokens < $(together) ? call->tokens : $(together); /* tokens that attend together */

//$ else
    (void) call; /* tokens attend one at a time */
//$ end
    (void) layer; /* attention is the same in all */ //$ if not structs.attention[1].of_layer
    a->$(field.name) = layer->$(field.name); //$ for _, field in ipairs(structs.attention) if field.of_layer
    a->tile = b->attention; //$ if tile ~= ""
    a->$(field.name) = $(working(field, "b->attention + " .. tile .. (some and "most * " or ""))); //$ for _, field in ipairs(structs.attention) if field.item
//$ end
}
