-- The tuned file: the schedules that `lookupc tune` found for a model, as text that a person can read and vendor.
--
-- It is data, read like a model file in the sandbox. Emission takes its choices and nothing else of it: the CPU and the
-- compiler it was tuned on, and the digest of the templates, say how far its times can be trusted.
local dtype = require "gen.plan.dtype"
local duplicate_fields = require "gen.schema.duplicate_fields"
local emit = require "gen.emit.emit"
local families = require "gen.families.list"
local files_read = require "gen.host.files_read"
local host = require "host"
local isa = require "gen.isa.list"
local lua_text = require "gen.schema.lua_text"
local sandbox = require "sandbox"
local schema = require "gen.schema.schema"

local tuned_file = {}

local function text(words, pattern)
    local function holds(v) return type(v) == "string" and #v <= 200 and v:find(pattern) ~= nil end
    return { words = words, holds = holds }
end
local line = text("must be a line of text", "^[^%c]+$")
local sha256 = text("must be 64 hexadecimal digits", "^" .. ("[0-9a-f]"):rep(64) .. "$")
local bytes = schema.integer(1, 1 << 40)
local of_parts = {
    words = 'must be what --type takes, such as "i4,head=i8"',
    holds = function(value) return type(value) == "string" and pcall(dtype.of_parts, value) end,
}

-- What is known of a CPU: fields of the key of a measurement (harness/tune). Of a CPU that is not x86 many are not
-- known.
local cpu_keys = {
    { key = "arch", rule = line, optional = true },
    { key = "cpu_vendor", rule = line, optional = true },
    { key = "cpu_family", rule = schema.integer(0, 65535), optional = true },
    { key = "cpu_model", rule = schema.integer(0, 65535), optional = true },
    { key = "cpu_stepping", rule = schema.integer(0, 65535), optional = true },
    { key = "cpu_name", rule = line },
    { key = "isa_usable", rule = text("must be names of instruction sets with commas between them", "^[%w,]+$") },
    { key = "l1d", rule = bytes, optional = true },
    { key = "l1i", rule = bytes, optional = true },
    { key = "l2", rule = bytes, optional = true },
    { key = "l3_share", rule = bytes, optional = true },
    {
        key = "virtual",
        rule = { words = "must be true or false", holds = function(v) return type(v) == "boolean" end },
        optional = true,
    },
    { key = "threads", rule = schema.integer(1, 65536), optional = true },
}

local choice_keys, isa_keys = {}, {}
for _, family in ipairs(families.rows) do
    for _, choice in ipairs(family.space and family.space.choices or {}) do
        if not choice_keys[choice.key] then
            choice_keys[#choice_keys + 1], choice_keys[choice.key] =
                { key = choice.key, rule = schema.integer(0, 1 << 31), optional = true }, true
        end
    end
end
for i, name in ipairs(isa.all) do
    isa_keys[i] = { key = name, rule = schema.table("choices (see lookupc schedules)", choice_keys), optional = true }
end

tuned_file.keys = {
    {
        key = "lookupc",
        rule = schema.table(
            "version, templates",
            { { key = "version", rule = line }, { key = "templates", rule = sha256 } }
        ),
    },
    { key = "model", rule = sha256 },
    { key = "tables", rule = schema.choice(table.unpack(dtype.names)), optional = true }, -- of a LookupFFN
    { key = "projection", rule = schema.choice(table.unpack(dtype.projection_names)), optional = true },
    { key = "type", rule = of_parts, optional = true }, -- of a transformer
    { key = "cache", rule = schema.choice(table.unpack(dtype.cache_names)), optional = true },
    { key = "activations", rule = schema.choice(table.unpack(dtype.activation_names)), optional = true },
    { key = "cpu", rule = schema.table("facts of a CPU", cpu_keys) },
    { key = "compiler", rule = line },
    { key = "schedules", rule = schema.table("schedules by instruction set", isa_keys) },
}

-- Validates the plain table `given` read from `path` with text `source`; raises one line on the first error. The result
-- also has the context of the file, for errors that only show with a model.
local function validate(given, source, path)
    local context = { path = path, source = source }
    local data = schema.validate(context, tuned_file.keys, given, {})
    if next(data.schedules) == nil then schema.refuse(context, { "schedules" }, nil, "has no schedule") end
    return data, context
end

-- Reads and validates a tuned file; raises one line "path:line: field = value: rule". Returns the data and the context
-- of the file.
function tuned_file.load(path)
    local given, source = sandbox.load(files_read.note(path))
    if not given then error(source, 0) end
    duplicate_fields.refuse(source, path)
    return validate(given, source, path)
end

local function names_of(map, order)
    local list = {}
    for _, name in ipairs(order) do
        if map[name] then list[#list + 1] = name end
    end
    return table.concat(list, ", ")
end

-- Raises one line unless `data` is for the model and the types of plan `p`.
local function check_made_for(data, p, refuse)
    local family = families.get(p.family)
    local required = { [family.types[1]] = true, cache = true }
    for _, key in ipairs(family.types) do
        local asked, may_miss = p.options[key] or "f32", not required[key]
        if data[key] == nil and not may_miss then
            refuse({ key }, nil, "required key is missing for " .. p.model.name)
        end
        if (data[key] or "f32") ~= asked then
            local rule = "the command asks for %s: give --%s %s, or tune again"
            refuse({ key }, data[key], rule:format(asked, key, data[key] or "f32"))
        end
    end
    if data.model ~= p.digest then
        local rule = "is the digest of another model than %s, %s: tune this one"
        refuse({ "model" }, data.model:sub(1, 16), rule:format(p.model.name, p.digest:sub(1, 16)))
    end
end

-- The choices of `data` (with its context) for plan `p`, by instruction set, as plan.build wants them, and a list of
-- lines that a user should know. Raises one line if the file is for another model or holds what is illegal for this
-- one.
function tuned_file.choices(data, context, p)
    local function refuse(chain, value, rule) schema.refuse(context, chain, value, rule) end
    local family = families.get(p.family)
    check_made_for(data, p, refuse)
    local same_templates = data.lookupc.templates == emit.digest()
    local wanted, missing, notes, without, with = {}, {}, {}, {}, 0
    for _, v in ipairs(p.variants) do
        local name = v.isa.name
        local choices = data.schedules[name]
        if choices then
            with = with + 1
            for key in pairs(choices) do
                family.space.choice(key, context.path .. ": schedules." .. name)
            end
            for _, choice in ipairs(family.space.choices) do
                if choices[choice.key] == nil then
                    if same_templates then
                        refuse({ "schedules", name, choice.key }, nil, "is missing: a schedule lists every choice")
                    end
                    missing[choice.key] = true
                end
            end
            local legal, key, value, rule = family.space.try(p.shape, v.isa, choices)
            if not legal then refuse({ "schedules", name, key }, value, rule) end
            wanted[name] = choices
        else
            without[#without + 1] = name
        end
    end
    if with == 0 then
        refuse(
            { "schedules" },
            nil,
            string.format(
                "none is for %s: they are for %s",
                table.concat(without, ", "),
                names_of(data.schedules, isa.all)
            )
        )
    end
    if not same_templates then
        local keys = {}
        for i, choice in ipairs(family.space.choices) do
            keys[i] = choice.key
        end
        local new = names_of(missing, keys)
        notes[1] = string.format(
            "%s: tuned with other templates (lookupc %s): its choices are legal, but may no longer be the fastest: \z
                tune again%s",
            context.path,
            data.lookupc.version,
            new ~= "" and "; it does not have " .. new .. ", which keep their default" or ""
        )
    end
    if #without > 0 then
        notes[#notes + 1] =
            string.format("%s: no schedule for %s: the default is taken", context.path, table.concat(without, ", "))
    end
    return wanted, notes
end

local keys, value = lua_text.keys, lua_text.value

-- What is known of a choice, as a comment: "default", or { ratio, low, high, samples, batch, counted }: how many times
-- as fast as the default, the interval of that, and the batches that it was measured on; counted: of what it takes so
-- many times less instead, nil: of time.
local function comment(note)
    if type(note) ~= "table" then return note and " -- " .. note or "" end
    local what = note.counted and "fewer " .. note.counted .. " than the default" or "the speed of the default"
    return string.format(
        " -- %.2fx %s (%.2f … %.2f, %d samples, batch %s)",
        note.ratio,
        what,
        note.low,
        note.high,
        note.samples,
        note.batch
    )
end

-- The text of a tuned file that holds `data`. title: comment lines on top; notes[isa][choice]: see above, both
-- optional. Reading the text gives `data` again; raises one line for data that no tuned file may hold.
function tuned_file.text(data, title, notes)
    validate(data, "", "tuned file")
    local lines = {}
    local function add(form, ...) lines[#lines + 1] = string.format(form, ...) end
    for _, words in ipairs(title or {}) do
        add("-- %s", (words:gsub("%c", " ")))
    end
    add "return {"
    add("    lookupc = %s,", value(data.lookupc))
    add("    model = %s,", value(data.model))
    local types = {}
    for _, key in ipairs { "tables", "projection", "type", "cache", "activations" } do
        if data[key] then types[#types + 1] = key .. " = " .. value(data[key]) end
    end
    if #types > 0 then add("    %s,", table.concat(types, ", ")) end
    add "    cpu = {"
    for _, key in ipairs(keys(data.cpu)) do
        add("        %s = %s,", key, value(data.cpu[key]))
    end
    add "    },"
    add("    compiler = %s,", value(data.compiler))
    add "    schedules = {"
    for _, name in ipairs(keys(data.schedules)) do
        add("        %s = {", name)
        for _, key in ipairs(keys(data.schedules[name])) do
            local note = notes and notes[name] and notes[name][key]
            add("            [%s] = %d,%s", value(key), data.schedules[name][key], comment(note))
        end
        add "        },"
    end
    add "    },"
    add "}"
    return table.concat(lines, "\n") .. "\n"
end

-- What every tuned file that this lookupc writes says of it.
function tuned_file.generator() return { version = host.version, templates = emit.digest() } end

return tuned_file
