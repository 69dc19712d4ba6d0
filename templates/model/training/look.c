//$ takes helper, tape, look, fields
    tokens.$(field.name) = $(field.value); //$ for _, field in ipairs(fields)
    $(helper)_$(tape.word)_$(look)(r, &tokens);
