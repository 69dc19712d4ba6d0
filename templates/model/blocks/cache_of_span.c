//$ takes structs
//$ -- The parts of the cache from the position on at which the sequence of `span` starts.
//$ local value_pitch = names.constant("VALUE_PITCH")
//$ local words = shape.cache.words
//$ local steps = {
//$     codes = 1,
//$     keys = shape.cache.key_step,
//$     values = value_pitch,
//$ }
//$ for _, part in ipairs(structs.cache) do
//$ if part.at then
//$ local base = part.name == "values" and words and "span->base / " .. words.rows or "span->base"
//$ local at = shape.sequences and times(base, steps[part.name] or 1) or 0
    $(part.type)$(part.name) = $(sum("cache->" .. part.name, at));
//$ end
//$ end
    const size_t positions = cache->positions; //$ if shape.mixed
