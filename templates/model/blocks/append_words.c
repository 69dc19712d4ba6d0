//$ takes v, rounds, turn, place, head, key_unit, value_unit
//$ -- A head's key and value of a token go into the cache as words of rounded elements: a word has as many elements of a
//$ -- key as it has positions of a value.
//$ local words, width, pitch = shape.cache.words, shape.width, v.attention.query_step
//$ local whole, bytes = width // words.rows, 4 // words.rows
//$ -- Bytes of a key are words.offset larger: added to each without a carry.
//$ local function element(i)
//$     local word = "words[" .. i .. "]"
//$     if not words.integers then return word end
//$     return words.offset == 128 and word .. " ^ 0x80808080u" or "((" .. word .. " & 0x7f7f7f7fu) + 0x40404040u) & 0x7f7f7f7fu"
//$ end
//$ local key = { place = place, head = head, count = shape.cache.key_step, element = element, more = false }
//$ -- Rounds a head to words, in units that go to `unit`.
//$ local function round(name, unit)
            $(unit) = $(rounds[width])_round_block_$(width)($(name), words, &start); //$ if words.integers
            $(rounds[width])_rounded_$(width)($(name), $(width), words, $(pitch), 1); //$ if not words.integers
//$ end
//$ -- Stores byte `k` of a word.
//$ local function store_byte(word, k)
//$     local byte = k == 0 and "words[" .. word .. "]" or "(words[" .. word .. "] >> " .. 8 * k .. ")"
            value[$(sum(times(4 * words.rows, word), k // bytes * 4 + k % bytes))] = (unsigned char) $(byte);
//$ end
//$ local first_byte = place .. " % " .. words.rows .. (words.rows < 4 and " * " .. 4 // words.rows or "")
//$ local first_word = "(head_values + " .. place .. " / " .. words.rows .. " * " .. names.constant("VALUE_PITCH") .. ")"
            unsigned char *value = (unsigned char *) $(first_word) + $(first_byte);
            uint32_t words[$(pitch)]$(words.integers and ", start; /* which is for queries only */" or ";")
//$ if shape.rope then
            float all[$(width)];
            $(turn)_rotate_$(width)(head_k, cosine, sine, one, all);
//$ end
//$ round(shape.rope and "all" or "head_k", key_unit)
$(include("templates/model/blocks/store_key.c", key))
//$ round("head_v", value_unit)
//$ loop("i", 0, whole, 1, function(word)
//$ for k = 0, 3 do store_byte(word, k) end
//$ end)
//$ for k = 0, width % words.rows * bytes - 1 do store_byte(whole, k) end
//$ loop("i", width, shape.cache.pitch, 1, function(i)
            value[4 * $(i)] = $(words.rows == 4 and "" or "value[4 * " .. i .. " + 1] = ")0;
//$ end)
