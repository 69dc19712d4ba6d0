//$ takes helper, v, structs, layers
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
//$ local function of_layer(place) return sum("weights->" .. place.of, layers and place.step and times("layer", macro(place.step)) or 0) end

/* The weights of layer number `layer`. */
static void $(helper)_layer_at(const $(names.weights) *weights, size_t layer, const $(names.type("buffers")) *b, $(names.type("layer")) *own)
{
    (void) layer; /* there is one */ //$ if not layers
    (void) b; /* no weights are converted */ //$ if not v.unpacked_at
//$ if not structs.uses_weights then
    (void) weights;
    (void) own;
//$ end
//$ for _, map in ipairs(structs.layer.maps) do
    own->$(map.name).$(place.name) = $(of_layer(place)); //$ for _, place in ipairs(map.places)
    own->$(map.name).inputs = $(macro(map.letter .. "_INPUTS"));
    own->$(map.name).panels = $(macro(map.letter .. "_PANELS"));
//$ if v.unpacked_at then
    own->$(map.name).strip = b->strip;
//$ elseif structs.converts then
    own->$(map.name).strip = NULL;
//$ end
//$ end
//$ for _, field in ipairs(structs.layer.fields) do
//$ if field.of then
    own->$(field.name) = $(of_layer(field));
//$ elseif field.name == "window" then
    own->window = $(helper)_is_full[layer] ? $(macro("CACHE_POSITIONS")) : $(shape.window);
//$ elseif field.name == "number" then
    own->number = layer;
//$ end
//$ end
//$ for n, part in ipairs(structs.layer.lookups) do
    $(n == 1 and "if (layer < " .. part.count .. ") {" or "} else {") //$ if #structs.layer.lookups > 1
        own->lookup.$(place.name) = $(of_layer(place)); //$ for _, place in ipairs(part.places)
//$ end
    } //$ if #structs.layer.lookups > 1
}

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

/* The rows of a chunk of a call, but not yet those of the call itself. */
static void $(helper)_buffers_at(const $(names.type("call")) *call, void *scratch, $(names.type("buffers")) *b)
{
    const size_t chunk = call->tokens < $(macro("CHUNK")) ? call->tokens : $(macro("CHUNK"));
//$ local floats = v.lookup_floats
//$ if floats.many > floats.alone then
    float *rows = (float *) scratch + (chunk == 1 ? $(macro("LOOKUP_FLOATS_ALONE")) : $(macro("LOOKUP_FLOATS")));
//$ elseif floats.many > 0 then
    float *rows = (float *) scratch + $(macro("LOOKUP_FLOATS"));
//$ else
    float *rows = (float *) scratch;
//$ end

//$ for _, item in ipairs(v.buffers.tokens) do
//$ local at = "rows + chunk * " .. macro(item.name:upper() .. "_AT")
//$ if item.storage ~= "float" then at = "(" .. item.storage .. " *) (void *) (" .. at .. ")" end
//$ if item.storage == "uint16_t" then
    b->$(item.name) = $(at);
//$ else
    b->$(item.name).at = $(at);
    b->$(item.name).step = $(structs.step_of(item.name));
//$ end
//$ end
    b->attention = rows + chunk * $(macro("TOKEN_FLOATS"));
//$ if v.unpacked_at then
    b->strip = chunk > 1 ? (float *) scratch + $(macro("UNPACKED_AT")) : NULL;
//$ elseif structs.converts then
    b->strip = NULL;
//$ end
}

/* The chunk from token number `at` of a call on: its input$(v.buffers.of_call and ", what is kept of it" or ""), and what attention reads and writes. */
static void $(helper)_chunk_at(const $(names.type("call")) *call, size_t at, void *scratch, $(names.type("buffers")) *b, $(names.type("attention")) *a)
{
//$ local together = v.chunk < v.queries and v.chunk or v.queries
//$ local some = not shape.lsh and together > 1
//$ if some then
    const size_t most = call->tokens < $(together) ? call->tokens : $(together); /* tokens that attend together */
//$ end
//$ local tile = v.buffers.tile_floats > 0 and macro("TILE_FLOATS") .. " + " or ""

    b->in.at = call->in.at + at * call->in.step;
    b->in.step = call->in.step;
//$ local of_call = v.buffers.of_call
//$ if of_call then
    b->$(of_call.name).at = (float *) scratch + $(macro("OF_CALL_AT")) + at * $(structs.step_of(of_call.name));
    b->$(of_call.name).step = $(structs.step_of(of_call.name));
//$ else
    (void) scratch;
//$ end
//$ for _, row in ipairs(structs.attention_rows) do
//$ if row.codes then
    a->$(row.name) = b->$(row.from);
//$ else
    a->$(row.name).at = $(sum("b->" .. row.from .. ".at", row.at and macro(row.at) or 0));
    a->$(row.name).step = b->$(row.from).step;
//$ end
//$ end
//$ for _, field in ipairs(structs.attention) do
//$ if field.item then
//$ local at = "b->attention + " .. tile .. (some and "most * " or "") .. macro(field.name:upper() .. "_AT")
    a->$(field.name) = $(field.item.storage == "float" and at or "(" .. field.item.storage .. " *) (void *) (" .. at .. ")");
//$ elseif field.name == "tile" then
    a->tile = b->attention;
//$ end
//$ end
}
