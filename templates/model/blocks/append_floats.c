//$ takes isa, turn, turns, place, head
//$ -- A head's key and value of a token go into the cache as floats.
//$ local pitch = names.constant("VALUE_PITCH")
//$ local is_left = turns and (shape.shifted > 0 and "head < " .. shape.shifted .. " || token >= turned" or "token >= turned")
//$ local function element(i) return (shape.rope and "turned_k[" or "head_k[") .. i .. "]" end
//$ local key = { place = place, head = head, count = shape.width, element = element, more = is_left or false }
            float *value = head_values + $(place) * $(pitch);
//$ if shape.rope then
            float turned_k[$(shape.width)];
            $(turn)_rotate_$(shape.width)(head_k, cosine, sine, one, turned_k);
//$ end
$(include("templates/model/blocks/store_key.c", key))
//$ over_row(shape.width, function(at, load, store)
                $(store("value", at, isa.mul(isa.broadcast("one"), load("head_v", at))));
//$ end)
//$ loop("i", shape.width, shape.cache.pitch, 1, function(i)
                value[$(i)] = $(type(i) == "number" and "0.0f" or "zero");
//$ end, { to = pitch })
