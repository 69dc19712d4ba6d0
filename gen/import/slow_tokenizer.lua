-- What Hugging Face's tokenizers in Python put around the files of other formats than tokenizer.json: the keys of a
-- model file that say it, from the folder's settings and the conventions of each class; and where settings contradict
-- tokenizer.json.
local fields = require "gen.import.fields"
local json = require "json"

local slow_tokenizer = {}

-- The pieces that have a role, in the order in which missing ones get ids.
local roles = { "bos", "eos", "unk", "sep", "pad", "cls", "mask" }

local fairseq = { bos = "<s>", eos = "</s>", unk = "<unk>", sep = "</s>", pad = "<pad>", cls = "<s>", mask = "<mask>" }

-- One row a class: its file; the pieces of its roles; those before and behind a text, or the setting that says whether
-- there is one, and its default; mask_left: white space before the mask belongs to it; modern: `legacy = false` puts a
-- space before texts only at their start; ids: the model file's key; own: lookupc reads the file as the class does;
-- fixed: settings that must have this value, or null, where they are there.
local classes = {
    BertTokenizer = {
        file = "vocab.txt",
        roles = { unk = "[UNK]", sep = "[SEP]", pad = "[PAD]", cls = "[CLS]", mask = "[MASK]" },
        fixed = { { "tokenize_chinese_chars", true }, { "do_basic_tokenize", true }, { "strip_accents" } },
        own = true,
    },
    RobertaTokenizer = {
        file = "vocab.json",
        roles = fairseq,
        first = "cls",
        last = "sep",
        mask_left = true,
        fixed = { { "add_prefix_space", false } },
    },
    XLMRobertaTokenizer = {
        file = "sentencepiece.bpe.model",
        roles = fairseq,
        first = "cls",
        last = "sep",
        mask_left = true,
        ids = "fairseq",
    },
    GPT2Tokenizer = {
        file = "vocab.json",
        roles = { bos = "<|endoftext|>", eos = "<|endoftext|>", unk = "<|endoftext|>" },
        first = { "bos", "add_bos_token", false },
        fixed = { { "add_prefix_space", false } },
    },
    LlamaTokenizer = {
        file = "tokenizer.model",
        roles = { bos = "<s>", eos = "</s>", unk = "<unk>" },
        first = { "bos", "add_bos_token", true },
        last = { "eos", "add_eos_token", false },
        modern = true,
        fixed = { { "add_prefix_space", true } },
    },
}

-- The class of a model_type whose tokenizer_config.json names none.
local usual = {
    bert = "BertTokenizer",
    gpt2 = "GPT2Tokenizer",
    llama = "LlamaTokenizer",
    mistral = "LlamaTokenizer",
    roberta = "RobertaTokenizer",
    ["xlm-roberta"] = "XLMRobertaTokenizer",
}

-- Where the piece of a role stands: the file and what it says, json.null for none; nil and the class's own.
-- added_tokens_decoder of the settings says all that the map says, which else comes before them.
local function piece_of(folder, class, role)
    local config, path = fields.settings(folder, "tokenizer_config.json")
    local map, map_path = fields.settings(folder, "special_tokens_map.json")
    local key = role .. "_token"
    if map[key] ~= nil and type(config.added_tokens_decoder) ~= "table" then return map_path, map[key] end
    if config[key] ~= nil then return path, config[key] end
    return path, class.roles[role]
end

-- What is known of the pieces of `folder`: { role = text }, and flags of texts { [text] = { left, special, id } }.
local function pieces_of(folder, class)
    local config, path = fields.settings(folder, "tokenizer_config.json")
    local map, map_path = fields.settings(folder, "special_tokens_map.json")
    if type(config.added_tokens_decoder) == "table" then map = {} end
    local texts, flags, list = {}, {}, {}
    -- Notes a piece, which stands in a file as its text or as an object.
    local function note(from, key, value, left, special, id)
        local text = type(value) == "table" and value.content or value
        if type(text) ~= "string" or text == "" or text:find "[%s%c]" or not utf8.len(text) then
            fields.refuse(from, key, text, "must be a piece without spaces")
        end
        if not flags[text] then
            flags[text] = { left = left, special = special }
            list[#list + 1] = text
        end
        if type(value) == "table" then
            for _, flag in ipairs { "rstrip", "single_word" } do
                if value[flag] == true then fields.refuse(from, key .. "." .. flag, true, "is not known here") end
            end
            flags[text].left = value.lstrip == true
            flags[text].special = flags[text].special or value.special == true
        end
        flags[text].id = id or flags[text].id
        return text
    end
    for _, role in ipairs(roles) do
        local from, value = piece_of(folder, class, role)
        if value ~= nil and value ~= json.null then
            texts[role] = note(from, role .. "_token", value, role == "mask" and class.mask_left or false, true)
        end
    end
    local source, from = config, path
    if map.additional_special_tokens then
        source, from = map, map_path
    end
    for i, value in ipairs(fields.typed(from, source, "", "additional_special_tokens", "list", {})) do
        note(from, "additional_special_tokens[" .. i .. "]", value, false, true)
    end
    -- The rest with their ids, the least first.
    local rows = {}
    for key, value in pairs(fields.typed(path, config, "", "added_tokens_decoder", "table", {})) do
        rows[#rows + 1] = { path, "added_tokens_decoder." .. tostring(key), value, math.tointeger(tonumber(key)) }
    end
    local added, added_path = fields.settings(folder, "added_tokens.json")
    for key, id in pairs(added) do
        rows[#rows + 1] = { added_path, tostring(key), key, math.tointeger(id) }
    end
    for _, row in ipairs(rows) do
        if not row[4] then fields.refuse(row[1], row[2], nil, "must be a piece and its id") end
    end
    table.sort(rows, function(a, b)
        if a[4] ~= b[4] then return a[4] < b[4] end
        return a[1] .. a[2] < b[1] .. b[2]
    end)
    for _, row in ipairs(rows) do
        note(row[1], row[2], row[3], false, false, row[4])
    end
    return texts, flags, list
end

-- The piece before or behind a text, `rule` being the class's; nil: none.
local function end_piece(folder, rule, texts)
    if not rule then return nil end
    local role = rule
    if type(rule) == "table" then
        local config, path = fields.settings(folder, "tokenizer_config.json")
        role = fields.typed(path, config, "", rule[2], "boolean", rule[3]) and rule[1]
    end
    if role and not texts[role] then fields.refuse(folder, role .. "_token", nil, "is missing") end
    return role and texts[role] or nil
end

-- The name of the class, without Fast, as the folder's settings say it, or its config.json, decoded; "": none that is
-- known.
local function class_of(folder, config_json)
    local config, path = fields.settings(folder, "tokenizer_config.json")
    local name = fields.typed(path, config, "", "tokenizer_class", "string", "")
    local main = folder .. "/config.json"
    if name == "" then name = fields.typed(main, config_json, "", "tokenizer_class", "string", "") end
    return name == "" and usual[config_json.model_type] or name:gsub("Fast$", "")
end

-- The keys of a model file for the tokenizer in the file `name` of the folder, whose config.json is decoded, and the
-- ids that its pieces must get, { text = id }. Raises one line if a model file cannot say what is made of that file.
function slow_tokenizer.keys(folder, name, config_json)
    local config, path = fields.settings(folder, "tokenizer_config.json")
    local class_name = class_of(folder, config_json)
    local class = classes[class_name]
    if not class or class.file ~= name then
        local whose = class_name ~= "" and "a " .. class_name or "the tokenizer of a " .. config_json.model_type
        local rule = "what %s makes of it is not known here; a tokenizer.json would say it"
        error(string.format("%s/%s: " .. rule, folder, name, whose), 0)
    end
    if fields.typed(path, config, "", "split_special_tokens", "boolean", false) then
        fields.refuse(path, "split_special_tokens", true, "is not known here")
    end
    for _, row in ipairs(class.fixed or {}) do
        local value = config[row[1]]
        if value ~= nil and value ~= json.null and value ~= row[2] then
            fields.refuse(path, row[1], value, "is not known here")
        end
    end
    if type(config.sp_model_kwargs) == "table" and next(config.sp_model_kwargs) ~= nil then
        fields.refuse(path, "sp_model_kwargs", nil, "is not known here")
    end
    local keys = { ids = class.ids }
    if name == "vocab.txt" then keys.lower = fields.typed(path, config, "", "do_lower_case", "boolean", true) end
    local texts, flags, list = pieces_of(folder, class)
    if class.modern and config.legacy == false then
        keys.space = "first"
        for _, text in ipairs(list) do
            if not flags[text].special then
                local rule = "is added and not special: legacy = false is not known here beside it"
                fields.refuse(folder, text, nil, rule)
            end
        end
    end
    local ids, others = {}, {}
    for _, text in ipairs(list) do
        ids[text] = flags[text].id
        if flags[text].left and text == texts.mask then
            keys.mask = text
        elseif flags[text].left then
            fields.refuse(folder, text, nil, "white space before it belongs to it: known here of the mask alone")
        else
            others[#others + 1] = text
        end
    end
    if class.own then -- the file's format says the same
        local known = {}
        for _, role in ipairs(roles) do
            known[class.roles[role] or ""] = true
        end
        for _, text in ipairs(list) do
            if not known[text] or flags[text].left then
                fields.refuse(folder, text, nil, "is an added piece, which is not known here")
            end
        end
        return keys, ids
    end
    keys.added = #others > 0 and table.concat(others, " ") or nil
    keys.first, keys.last = end_piece(folder, class.first, texts), end_piece(folder, class.last, texts)
    return keys, ids
end

-- The key `first` or `last` of a model file for the piece that the class puts there where the record `r` of the
-- folder's tokenizer.json has none; nil: none. Raises one line if it should have that piece and lacks it.
local function added_piece(folder, class, r, key)
    local config, path = fields.settings(folder, "tokenizer_config.json")
    local role, setting, default = table.unpack(class[key])
    local said = fields.typed(path, config, "", setting, "boolean", default)
    if not said or r[key][1] then return nil end
    local _, piece = piece_of(folder, class, role)
    local text = type(piece) == "table" and piece.content or piece
    for _, row in ipairs(r.pieces) do
        if row.text == text and row.type == "control" then return text end
    end
    if config[setting] then fields.refuse(path, setting, true, "tokenizer.json has no " .. role .. "_token") end
end

-- The keys of a model file for what the class in Python, in which the folder's settings win, adds to the record `r` of
-- its tokenizer.json. Raises one line where they contradict it; config.json is decoded.
function slow_tokenizer.beside(folder, r, config_json)
    local config, path = fields.settings(folder, "tokenizer_config.json")
    local class_name = class_of(folder, config_json)
    local lower, prefix, keys = false, false, {}
    if class_name == "LlamaTokenizer" then
        for _, key in ipairs { "first", "last" } do
            keys[key] = added_piece(folder, classes[class_name], r, key)
        end
    end
    for _, step in ipairs(r.steps) do
        lower = lower or step.op == "lower"
        prefix = prefix or step.op == "prepend" and step.text == " "
    end
    local said = {
        BertTokenizer = { do_lower_case = lower },
        GPT2Tokenizer = { add_prefix_space = prefix },
        RobertaTokenizer = { add_prefix_space = prefix },
        LlamaTokenizer = {
            add_bos_token = #r.first > 0 or keys.first ~= nil,
            add_eos_token = #r.last > 0 or keys.last ~= nil,
        },
    }
    for _, key in ipairs { "do_lower_case", "add_prefix_space", "add_bos_token", "add_eos_token" } do
        local value = (said[class_name] or {})[key]
        if value ~= nil and type(config[key]) == "boolean" and config[key] ~= value then
            fields.refuse(path, key, config[key], "contradicts tokenizer.json")
        end
    end
    return keys
end

return slow_tokenizer
