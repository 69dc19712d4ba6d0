//$ takes cache_type, place, head, count, element, more
//$ -- The `count` elements, or words, of a head's key go to their tile: each element(i), where `more` holds, if given.
//$ -- Where the first heads use the key of the token before, they go to the next position, too.
//$ local tile_positions, shifted = names.constant("TILE_POSITIONS"), shape.shifted > 0
//$ local at, some = shifted and (shape.ring and "slot" or "at") or place, shifted and shape.shifted < shape.kv_heads
//$ local tile = at .. " / " .. tile_positions .. " * " .. names.constant("KEY_TILE") .. " + " .. at .. " % " .. tile_positions
//$ if some then
    const size_t from = head < $(shape.shifted) ? shifted_from : position, last = head < $(shape.shifted) ? shifted_end : position + 1;
//$ end
    for (size_t at = $(some and "from" or "shifted_from"); at < $(some and "last" or "shifted_end"); ++at) { //$ if shifted
    const size_t slot = at % $(shape.mixed and "positions" or names.constant("CACHE_POSITIONS")); //$ if shifted and shape.ring
    $(shape.cache.storage) *key = head_keys + $(tile);
    if ($(more)) //$ if more
//$ loop("i", 0, count, 1, function(i)
    key[$(times(i, tile_positions))] = $(element(i));
//$ end)
//$ local first = times(shape.mixed and times(head, "positions") or head, names.constant("KEY_SCALES_HEAD"))
    key_scales[$(sum(first, at))] = unit; //$ if shifted and cache_type.scaled
    } //$ if shifted
