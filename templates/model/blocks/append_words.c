//$ takes v, rounds, turn, place, head, key_unit, value_unit
//$ -- A head's key and value of a token go into the cache as words of rounded elements: a word has as many elements of
//$ -- a key as it has positions of a value.
//$ local words, width, pitch = shape.cache.words, shape.width, v.attention.query_step
//$ local whole, bytes, round = width // words.rows, 4 // words.rows, rounds[shape.width]
//$ -- Bytes of a key are words.offset larger: added to each without a carry.
//$ local masked = "((words[%s] & 0x7f7f7f7fu) + 0x40404040u) & 0x7f7f7f7fu"
//$ local larger = words.offset == 128 and "words[%s] ^ 0x80808080u" or masked
//$ local function element(i) return (words.integers and larger or "words[%s]"):format(i) end
//$ -- Byte `k` of a word, and where it goes.
//$ local function byte(word, k)
//$     return k == 0 and "words[" .. word .. "]" or "(words[" .. word .. "] >> " .. 8 * k .. ")"
//$ end
//$ local function at(word, k) return sum(times(4 * words.rows, word), k // bytes * 4 + k % bytes) end
//$ local first_byte = place .. " % " .. words.rows .. (words.rows < 4 and " * " .. bytes or "")
//$ local first_word = place .. " / " .. words.rows .. " * " .. names.constant("VALUE_PITCH")
            unsigned char *value = (unsigned char *) (head_values + $(first_word)) + $(first_byte);
            uint32_t words[$(pitch)]$(words.integers and ", start; /* which is for queries only */" or ";")
            float all[$(width)]; //$ if shape.rope
            $(turn)_rotate_$(width)(head_k, cosine, sine, one, all); //$ if shape.rope
//$ local key = shape.rope and "all" or "head_k"
            $(key_unit) = $(round)_round_block_$(width)($(key), words, &start); //$ if words.integers
            $(round)_rounded_$(width)($(key), $(width), words, $(pitch), 1); //$ if not words.integers
$(include("templates/model/blocks/store_key.c", { head = head, count = shape.cache.key_step, element = element, more = false }))
            $(value_unit) = $(round)_round_block_$(width)(head_v, words, &start); //$ if words.integers
            $(round)_rounded_$(width)(head_v, $(width), words, $(pitch), 1); //$ if not words.integers
//$ loop("i", 0, whole, 1, function(word)
            value[$(at(word, k))] = (unsigned char) $(byte(word, k)); //$ for k = 0, 3
//$ end)
            value[$(at(whole, k))] = (unsigned char) $(byte(whole, k)); //$ for k = 0, width % words.rows * bytes - 1
//$ loop("i", width, shape.cache.pitch, 1, function(i)
            value[4 * $(i)] = $(words.rows == 4 and "" or "value[4 * " .. i .. " + 1] = ")0;
//$ end)
