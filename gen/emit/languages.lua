-- Packages of a model for other languages: one row a language, its files around the bundle's single C file.
local dispatch = require "gen.emit.dispatch"
local emit = require "gen.emit.emit"
local families = require "gen.families.list"
local host = require "host"
local names = require "gen.schema.names"
local sizes = require "gen.families.sizes"

local languages = {}

-- name: of the option and of the folder of templates; sources: the folder of the C files; files: { name, template },
-- in which $model stands for the model's name.
languages.list = {
    {
        name = "python",
        sources = "src/",
        files = {
            { "pyproject.toml", "pyproject.toml" },
            { "setup.py", "setup.py" },
            { "MANIFEST.in", "manifest.in" },
            { "README.md", "readme.md" },
            { "$model/__init__.py", "package.py" },
        },
    },
    {
        name = "rust",
        sources = "c/",
        files = {
            { "Cargo.toml", "cargo.toml" },
            { "build.rs", "build.rs" },
            { "README.md", "readme.md" },
            { "src/lib.rs", "lib.rs" },
            { "src/ffi.rs", "ffi.rs" },
        },
    },
}

-- The row of that name, or nil.
function languages.get(name)
    for _, row in ipairs(languages.list) do
        if row.name == name then return row end
    end
end

local numpy_types = { float = "float32", int16_t = "int16", int32_t = "int32" }
local rust_types = { float = "f32", int16_t = "i16", int32_t = "i32" }

-- What packs the blob of plan `p`.
local function pack_command(p, family)
    local words = { "lookupc pack " .. (p.renamed or p.model.name) .. ".lua" .. (p.pack_options or "") }
    for _, name in ipairs(family.types) do
        if p.options[name] then words[#words + 1] = "--" .. name .. " " .. p.options[name] end
    end
    if not family.without_weights then words[#words + 1] = "--weights weights.safetensors" end
    return table.concat(words, " ")
end

-- What the templates of all languages may print of plan `p`.
function languages.values(p)
    local family = families.get(p.family)
    local api = family.print.api(p)
    local error_room
    for _, status in ipairs(api.statuses) do
        if status.name == "ERROR_ROOM" then error_room = status.code end
    end
    local input, output = p.input or family.input, p.output or family.output
    return {
        sizes = sizes.of(p),
        wrapper = family.wrapper,
        flushes = emit.flushes(p),
        requests_amx = #dispatch.permitted(p.variants) > 0,
        pack = pack_command(p, family),
        version = host.version,
        input = input,
        output = output,
        x_dtype = numpy_types[input] or "",
        y_dtype = numpy_types[output] or "",
        x_rust = rust_types[input] or "",
        y_rust = rust_types[output] or "",
        facts = p.facts or false,
        error_room = error_room or false,
        plan = p,
    }
end

-- Every file of the package of plan `p` for the language `name`, the manifest last; raises one line.
function languages.files(p, name)
    local row, values, files = assert(languages.get(name)), languages.values(p), {}
    names.check(name, p.names.model)
    for _, file in ipairs(emit.sources(p, nil, "single")) do
        files[#files + 1] = { name = row.sources .. file.name, text = file.text }
    end
    for _, file in ipairs(row.files) do
        files[#files + 1] = {
            name = file[1]:gsub("%$model", p.names.model),
            text = emit.text(p, "templates/" .. name .. "/" .. file[2], values),
        }
    end
    files[#files + 1] = { name = p.names.licence, text = assert(host.resource("LICENSE")) }
    files[#files + 1] = { name = p.names.manifest, text = emit.manifest(p, files, { profile = name }) }
    return files
end

return languages
