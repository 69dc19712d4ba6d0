//$ takes helper, tape, attend, fields
    attention.$(field.name) = $(field.value); //$ for _, field in ipairs(fields)
    for (size_t s = 0; s < r->count / r->length; ++s)
        $(tape.attention.helper)_$(attend)(r, &attention, s);
