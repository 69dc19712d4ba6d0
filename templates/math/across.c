//$ takes isa, helper, word, name
//$ local magnitudes = word == "magnitude"

/* $(word == "add" and "The sum of all lanes." or "The largest lane" .. (magnitudes and ", the bits of a float." or ".")) */
static inline float $(helper)_$(name)($(magnitudes and isa.index or isa.vector) v)
{
//$ local function join() if magnitudes then return isa.reduce_magnitudes("v") end return isa.reduce("v", word) end
//$ local steps, result = join()
//$ declare_constants(steps)
    return $(result);
}
