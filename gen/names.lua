-- Makes every identifier and file name of emitted code; nobody else concatenates them.

local names = {}

local keywords = {}
for word in ([[auto break case char const continue default do double else enum extern float for goto if inline int long
register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while alignas
alignof and asm bool catch class compl constexpr decltype delete explicit export false friend mutable namespace new
noexcept not nullptr operator or private protected public template this throw true try typeid typename using virtual
xor]]):gmatch("%S+") do keywords[word] = true end

-- The rule for a model's name, and whether `text` follows it.
names.rule = "must be 1 to 40 of a-z, 0-9 and single _, start with a letter, not end with _ and not be a C or C++ keyword"
function names.valid(text)
    return #text <= 40 and text:find("^%l[%l%d_]*$") ~= nil and not text:find("__", 1, true)
        and not text:find("_$") and not keywords[text]
end

-- The public names of a model: they never carry an instruction set or a choice.
function names.public(model)
    local upper = model:upper()
    return {
        model = model,
        macro = function(word) return upper .. "_" .. word end,
        weights = model .. "_weights",
        bind = model .. "_bind",
        ffn = model .. "_ffn",
        header = model .. ".h",
        source = model .. ".c",
        runtime = model .. "_runtime.h",
        manifest = "MANIFEST.json",
        licence = "LICENSE",
    }
end

-- A variant's name: <model>_<kernel>__<isa>[_<choices>], for example tiny_gather_f32__avx2_g8_c64.
-- `__` is reserved in C++; only C files see these names. Static helpers are <model>_<what>: each file has one variant.
function names.variant(model, kernel, isa, choices)
    return model .. "_" .. kernel .. "__" .. isa .. (choices and choices ~= "" and "_" .. choices or "")
end

return names
