-- From plan and templates to the bytes of every emitted file and of the manifest that records them.
local blob = require "gen.plan.blob"
local comments = require "gen.print.comments"
local dispatch = require "gen.emit.dispatch"
local expression = require "gen.isa.expression"
local extras = require "gen.emit.extras"
local families = require "gen.families.list"
local figures = require "gen.plan.figures"
local helpers = require "gen.isa.helpers"
local host = require "host"
local json = require "json"
local literal = require "gen.print.literal"
local long_lines = require "gen.print.long_lines"
local misuse = require "gen.schema.misuse"
local prologue = require "gen.print.prologue"
local promise = require "gen.emit.promise"
local single_file = require "gen.emit.single_file"
local sizes = require "gen.families.sizes"
local template = require "gen.print.template"

local emit = {}

-- What <model>_bind returns, in the order of the checks; in firmware, which knows its weights, only some of them. With
-- `amx`: what <model>_request_amx returns.
local statuses = {
    { name = "OK", code = 0, doc = "success", text = "no error", firmware = true },
    { name = "ERROR_NULL", code = 1, doc = "blob or weights is a null pointer", firmware = true },
    { name = "ERROR_ALIGNMENT", code = 2, doc = "blob is not aligned", firmware = true },
    {
        name = "ERROR_SIZE",
        code = 3,
        doc = "not as many bytes as this model's blob has",
        text = "not as many bytes as this model's blob has: run lookupc pack again",
        firmware = true,
    },
    { name = "ERROR_MAGIC", code = 4, doc = "not a blob of lookupc" },
    { name = "ERROR_VERSION", code = 5, doc = "a blob of another version" },
    {
        name = "ERROR_MODEL",
        code = 6,
        doc = "a blob of another model, or of other sizes or types of this one",
        text = "a blob of another model, or of other sizes or types of this one: run lookupc pack again",
    },
    { name = "ERROR_CHECKSUM", code = 7, doc = "the blob is damaged", firmware = true },
    { name = "ERROR_BYTE_ORDER", code = 21, doc = "this CPU is big-endian, the blob little-endian", firmware = true },
    { name = "ERROR_CPU", code = 8, doc = "this CPU or operating system cannot run these kernels" },
    { name = "ERROR_ISA", code = 20, doc = "the requested instruction set is not in this bundle", choice = true },
    { name = "ERROR_AMX", code = 22, doc = "this CPU or operating system has no AMX", amx = true },
    {
        name = "ERROR_AMX_STACK",
        code = 23,
        doc = "AMX was refused: an alternate signal stack is too small for its tiles",
        amx = true,
    },
    { name = "ERROR_AMX_REFUSED", code = 24, doc = "AMX was refused by the operating system", amx = true },
}

local compiled = {} -- templates by path

local function render(path, values, more)
    compiled[path] = compiled[path] or template.compile(assert(host.resource(path)), path, host.bytecode(path))
    return template.render(compiled[path], values, more)
end

-- Gives `values` the function that includes another template: its text, with the names in `more` beside those of
-- whoever includes it.
local function including(values)
    values.include = function(path, more)
        local inner = values
        if more then
            inner = including(setmetatable({}, {
                __index = function(_, name)
                    local value = more[name]
                    if value == nil then value = values[name] end
                    return value
                end,
            }))
        end
        return (render(path, inner, more):gsub("\n$", ""))
    end
    return values
end

-- Gives `values` the function that prints functions which several kernels of `file` call, where they are not printed
-- yet: { texts, taken: sets of texts and names; prefix: what names begin with; depth: of such functions in each other;
-- waiting: texts to be printed before the one at hand }. Where a name is taken, another function begins with the
-- kernel's helper.
local function sharing(values, file)
    local function rendered(path, more, helper)
        local own = { helper = helper }
        for key, value in pairs(more or {}) do
            own[key] = value
        end
        file.depth = file.depth + 1
        local text = values.include(path, own)
        file.depth = file.depth - 1
        local names, free = {}, true
        for kind, name in text:gmatch "\n([%w_]+) [^\n(]-([%w_]+)%(" do
            if kind == "static" or kind:find "_INLINE$" then
                names[#names + 1], free = name, free and not file.taken[name]
            end
        end
        return text .. "\n", names, free
    end
    function values.share(path, more)
        local prefix = file.prefix
        local text, names, free = rendered(path, more, prefix)
        if not free and not file.texts[text] then
            prefix = values.helper
            text, names = rendered(path, more, prefix)
        end
        if not file.texts[text] then
            file.texts[text], file.waiting = true, file.waiting .. text
            for _, name in ipairs(names) do
                file.taken[name] = true
            end
        end
        local waiting = file.waiting
        if file.depth > 0 then return "", prefix end -- what calls it comes behind it
        file.waiting = ""
        return waiting, prefix
    end
    return values
end

local function new_file(prefix) return { texts = {}, taken = {}, prefix = prefix, depth = 0, waiting = "" } end

-- Adds what every template may use: banner-free text helpers and the names of the model. `file`, optional: as `sharing`
-- takes it, for kernels.
local function with_common(p, values, file)
    values.model, values.names, values.shape = p.names.model, p.names, p.shape
    values.tables, values.projection = p.tables, p.projection
    values.api = p.target and "" or p.names.macro "API" .. " " -- firmware is linked as it is
    values.sum, values.times, values.advance = expression.sum, expression.times, expression.advance
    values.plural = figures.plural
    return sharing(including(values), file or new_file(p.names.model))
end

-- A number for all that header and sources of plan `p` must agree in: model, sizes, types, instruction sets, choices.
local function guard_of(p)
    local isas = {}
    for i, v in ipairs(p.variants) do
        isas[i] = v.isa.name
    end
    local digest = host.sha256(json.encode({ p.names.model, p.digest, json.array(isas), p.options }, "compact"))
    return string.format("%010d", tonumber(digest:sub(1, 8), 16))
end

local function banner(text) return "/* Generated by lookupc from " .. text .. ". Do not edit. */\n" end

-- The banner of the file of variant `v`: with the choices that its kernels follow.
local function kernels_banner(p, v)
    local choices = v.choices_text and ": " .. v.choices_text:gsub(",", ", ") or ""
    local kernels = "\n   Kernels for " .. v.isa.name .. choices .. ". */\n"
    return (banner("model " .. p.model.name):gsub(" %*/\n$", kernels))
end

-- `text` with names filled in, and beside constants that compilers do not know why.
local function named(p, text)
    text = text:gsub("(\n *const ([^\n]*%$hidden[^\n]*);)\n", function(line, constant)
        local call = constant:find "%(0" and "memset" or "memcpy"
        return line .. " /* else its loop is a call of " .. call .. " */\n"
    end)
    return (text:gsub("%$(%l)", p.names.model .. "_%1"):gsub("%$(%u)", p.names.macro "%1"))
end

-- Text of a file of plan `p`: names filled in, comments filled, long lines broken.
local function finish(p, text) return long_lines.broken(comments.filled(named(p, text))) end

-- The text that the template `path` gave, as a file of its own.
local function finish_one(p, path, text) return finish(p, banner(path .. " and model " .. p.model.name) .. text) end

-- A kernel's text, and where it is from.
local function from(kernel) return "\n/* From " .. kernel.template .. ". */\n" .. kernel.text end

-- The kernels of variant `v` as one file: what they include, the header `more` too if there is one, then the texts
-- `kernels`; `condition`: that of the preprocessor for CPUs that they are for, false: none.
local function joined(p, v, kernels, condition, more)
    local parts = { kernels_banner(p, v) }
    for i, line in ipairs(prologue(p, v.isa, condition)) do
        parts[#parts + 1] = line .. "\n"
        if i == 1 and more then parts[#parts + 1] = '#include "' .. more .. '"\n' end
    end
    table.move(kernels, 1, #kernels, #parts + 1, parts)
    if condition then parts[#parts + 1] = "\n#endif\n" end
    return finish(p, table.concat(parts))
end

-- Whether a bundle of plan `p` has the function that makes a CPU take denormal numbers for zeros.
function emit.flushes(p) return #p.variants > 0 and not p.exact and not p.target end

-- What emit.sources takes as `more` for a library whose functions, also kernels, are found by their names.
emit.open = { api = "" }

-- The statuses that the functions of plan `p` return, for `sets` instruction sets, those of its family last; `amx`:
-- whether one of these functions asks for AMX.
local function statuses_of(p, sets, amx, own)
    local returned = {}
    for _, status in ipairs(statuses) do
        local met = (status.firmware or not p.target) and (sets > 1 or not status.choice) and (amx or not status.amx)
        if met then returned[#returned + 1] = status end
    end
    return table.move(own, 1, #own, #returned + 1, returned)
end

-- The values of header and source of plan `p` for the instruction sets `isas`, each compiled under one of `conditions`;
-- `more`, optional, are values beside the plan's.
local function values_of(p, isas, conditions, more)
    local listed = {}
    for i, set in ipairs(isas) do
        listed[i] = i - 1 .. " " .. set.name
    end
    dispatch.check(isas)
    local values = with_common(p, families.get(p.family).print.api(p))
    local own = {
        isas = isas,
        choice = dispatch.plan(isas),
        conditions = conditions,
        -- Firmware is for one instruction set, and short of memory.
        isa_list = not p.target and #isas > 0 and table.concat(listed, ", "),
        variants = p.variants,
        promise = promise.text(p.target, not p.exact),
        sections = p.sections,
        align = blob.align,
        guard = guard_of(p),
        flushes = emit.flushes(p),
        scratch_bytes = p.scratch_bytes,
        packed_bytes = p.packed_bytes,
        header_bytes = blob.header_bytes,
        format = blob.format,
        sizes = sizes.of(p),
        digest_lines = literal.byte_lines(p.digest:sub(1, 32)),
        functions = values.functions or false,
        inlines = values.inlines or false,
        struct_of_weights = values.struct_of_weights or "templates/bundle/weights.h",
        pack_options = p.pack_options or "",
    }
    for _, list in ipairs { own, more or {} } do
        for key, value in pairs(list) do
            values[key] = value
        end
    end
    -- lookupc itself runs libraries of one instruction set where it knows that it can, and asks for itself.
    local apart = values.api ~= ""
    values.asks = #isas > 1 or apart and #isas > 0 and isas[1].cpu ~= nil
    values.requests_amx = apart and #dispatch.permitted(p.variants) > 0
    values.returns_text = values.returns_text
        or p.names.bind .. (values.requests_amx and " and " .. p.names.request_amx .. " return" or " returns")
    values.statuses = statuses_of(p, #isas, values.requests_amx, values.statuses)
    return values
end

-- Collects the files of plan `p`, and all texts that may call helpers.
local function collector(p)
    local c = { files = {}, texts = {} }
    function c.add(name, text, file)
        file.name, file.text = name, text
        c.files[#c.files + 1] = file
    end
    function c.rendered(path, values)
        local text = render(path, values)
        c.texts[#c.texts + 1] = text
        return text
    end
    -- Of a kernel of the file that `file` describes, as `sharing` takes it.
    function c.kernel(kernel, file)
        kernel.text = c.rendered(kernel.template, with_common(kernel.plan or p, kernel.values, file))
        return from(kernel)
    end
    return c
end

-- Adds the files of the kernels of variant `v`; for a single file returns their texts instead, as single_file takes
-- them.
local function add_kernels(c, p, v, condition, form)
    local section, file = {}, new_file(p.names.model)
    for i, kernel in ipairs(families.get(p.family).print.files(p, v)) do
        if form == "apart" then
            file = new_file(kernel.values.helper) -- lookupc compiles several such files as one
        else
            kernel.values.prologue = {}
        end
        section[i] = c.kernel(kernel, file)
        if form == "apart" then
            c.add(kernel.symbol .. ".c", finish_one(p, kernel.template, kernel.text), { isa = v.isa })
        end
    end
    if not form then
        local name = p.names.kernels(not p.target and v.isa.name or nil)
        c.add(name, joined(p, v, section, condition), { isa = v.isa })
    elseif form == "single" then
        local text = table.concat(section)
        local called = helpers.own_lines(text, v.isa)
        c.texts[#c.texts + 1] = called
        return { isa = v.isa, text = named(p, called .. text), condition = condition }
    end
end

-- Adds the files that train the weights of plan `p`; `api` as in its header.
local function add_training(c, p, conditions, api)
    local training = families.get(p.family).training
    local values = with_common(p, training.api(p))
    values.api = api
    c.add(p.names.train_header, finish_one(p, training.header, c.rendered(training.header, values)), { public = true })
    for n, v in ipairs(p.variants) do
        local kernels, file = {}, new_file(p.names.model .. "_train") -- lookupc compiles it with the kernels as one
        for i, kernel in ipairs(training.files(p, v)) do
            kernels[i] = c.kernel(kernel, file)
        end
        local text = joined(p, v, kernels, conditions[n], p.names.train_header)
        c.add(p.names.train_kernels(v.isa.name), text, { isa = v.isa })
    end
end

-- The C sources of plan `p`: { {name, text, public, isa or nil} }, public the header, an isa that of kernels. Their
-- names depend on the model's name and the instruction sets only. `more` are values for the templates beside the
-- plan's. `form`, optional: "apart", every kernel in a file of its own, for what compiles kernels of many plans; or
-- "single", all in one file beside the header.
function emit.sources(p, more, form)
    local isas, conditions, sections, c = {}, {}, {}, collector(p)
    for i, v in ipairs(p.variants) do
        isas[i] = v.isa
    end
    local guarded = dispatch.guarded(isas)
    for i, set in ipairs(isas) do
        conditions[i] = guarded and dispatch.condition(set) or false
    end
    local values = values_of(p, isas, conditions, more)
    c.add(p.names.header, finish_one(p, values.header, c.rendered(values.header, values)), { public = true })
    c.add(p.names.source, finish_one(p, values.source, c.rendered(values.source, values)), {})
    for n, v in ipairs(p.variants) do
        sections[n] = add_kernels(c, p, v, conditions[n], form)
    end
    if p.training then add_training(c, p, conditions, values.api) end
    -- Last: it has the helpers that the other texts call.
    values.helpers = helpers.lines(c.texts, form == "single" and {} or isas)
    local runtime = "templates/bundle/runtime.h"
    if form == "single" then
        local source = named(p, render(values.source, values))
        local text = single_file.text(named(p, render(runtime, values)), sections, source, { p.names.runtime })
        c.files[2].text = finish(p, banner("model " .. p.model.name) .. text)
    else
        table.insert(c.files, 2, { name = p.names.runtime, text = finish_one(p, runtime, render(runtime, values)) })
    end
    return c.files
end

-- A text of the model that is no part of the sources: the template `path`, with a banner if it is C.
function emit.text(p, path, values)
    local text = render(path, with_common(p, values))
    return path:find("%.[chS]$") and finish_one(p, path, text) or text
end

-- Gives plan `p` what trains its weights, with which emit.sources adds to its files; raises one line for a model that
-- cannot be trained.
function emit.add_training(p)
    local family = families.get(p.family)
    if not family.training then
        misuse("--training: " .. p.model.name .. ": is not for " .. families.with_article(family.noun))
    end
    family.training.add(p)
end

-- Every emitted file of plan `p`: { {name, text, isa or nil} }, the manifest last. `wanted`: what gen/emit/extras.lua
-- adds, nil: nothing.
function emit.files(p, wanted)
    wanted = wanted or {}
    if wanted.training then emit.add_training(p) end
    local files = emit.sources(p, nil, wanted.single_file and "single" or nil)
    extras.add(p, files, wanted, { align = blob.align, guard = guard_of(p) }, emit.text)
    extras.add_build_files(p, files, wanted, emit.text)
    files[#files + 1] = { name = p.names.licence, text = assert(host.resource("LICENSE")) }
    files[#files + 1] = { name = p.names.manifest, text = emit.manifest(p, files, wanted) }
    return files
end

-- The text of the manifest `table` with a digest of its own, which replaces the one that it may have: the SHA-256 of
-- the text without that line.
function emit.manifest_text(table)
    table.manifest_sha256 = nil
    local text = assert(json.encode(table))
    table.manifest_sha256 = host.sha256(text)
    return assert(json.encode(table)) .. "\n"
end

-- The manifest: all that decides the bytes of the bundle, and the digest of every file, of its text or as it is
-- recorded; `more` are further fields.
function emit.manifest(p, files, more)
    local isas, list, sets = {}, {}, {}
    for i, v in ipairs(p.variants) do
        isas[i], sets[i] = v.isa.name, v.isa
    end
    local guarded = dispatch.guarded(sets) -- who compiles must know which flags are for which CPUs
    for i, file in ipairs(files) do
        list[i] = {
            name = file.name,
            sha256 = file.sha256 or host.sha256(file.text),
            flags = file.isa and json.array(file.isa.flags) or nil,
            architecture = guarded and file.isa and file.isa.architecture or nil,
        }
    end
    local options = { isa = json.array(isas) }
    for key, value in pairs(p.options) do
        options[key] = value
    end
    local permitted = dispatch.permitted(p.variants)
    local manifest = {
        generator = "lookupc",
        version = host.version,
        model = p.model,
        model_digest = p.digest,
        renamed = p.renamed, -- from this name
        options = options,
        needs_permission = permitted[1] and json.array(permitted) or nil, -- the system's: instruction sets
        files = json.array(list),
        trained = p.training and p.training.described or nil,
    }
    for key, value in pairs(more or {}) do
        manifest[key] = value
    end
    return emit.manifest_text(manifest)
end

-- All that decides the bytes emitted for a plan stands in these folders, and nothing else does.
local deciding = { "gen/emit/", "gen/families/", "gen/isa/", "gen/schema/", "gen/plan/", "gen/print/", "templates/" }

local digest

-- The SHA-256 of the files in those folders, by name: of templates and generator.
function emit.digest()
    if digest then return digest end
    local parts = {}
    for _, folder in ipairs(deciding) do
        local names = host.resources(folder)
        table.sort(names) -- a folder beside a file of the same name: embedded files and a tree list them differently
        for _, name in ipairs(names) do
            if not name:find("/%.[^/]*$") then -- settings of editors
                parts[#parts + 1] = name .. " " .. host.sha256(assert(host.resource(name))) .. "\n"
            end
        end
    end
    digest = host.sha256(table.concat(parts))
    return digest
end

return emit
