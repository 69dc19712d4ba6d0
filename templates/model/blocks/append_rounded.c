//$ takes isa, helper, cache_type, turn, place, head, key_unit, value_unit
//$ -- A head's key and value of a token go into the cache in its type, integers in units of their own.
//$ local pitch, scaled = names.constant("VALUE_PITCH"), cache_type.scaled
            $(cache_type.storage) *value = head_values + $(place) * $(pitch), rounded[$(pitch)];
            float all[$(pitch)];
//$ loop("i", shape.width, shape.cache.pitch, 1, function(i)
                all[$(i)] = $(type(i) == "number" and "0.0f" or "zero");
//$ end, { to = pitch })
            $(turn)_rotate_$(shape.width)(head_k, cosine, sine, one, all); //$ if shape.rope
//$ if not shape.rope then
            for (size_t i = 0; i < $(shape.width); ++i)
                all[i] = one * head_k[i];
//$ end
            $(scaled and key_unit .. " = " or "")$(helper)_round_head(all, rounded);
//$ local function element(i) return "rounded[" .. i .. "]" end
//$ local key = { place = place, head = head, count = shape.width, element = element, more = false }
$(include("templates/model/blocks/store_key.c", key))
//$ over_row(shape.width, function(at, load, store)
                $(store("all", at, isa.mul(isa.broadcast("one"), load("head_v", at))));
//$ end)
            $(scaled and value_unit .. " = " or "")$(helper)_round_head(all, value);
