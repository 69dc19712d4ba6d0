-- The files of a web page that runs a model: the page, a JavaScript module, and the C of its WebAssembly.
--
-- Needs no compiler: how the C is compiled stands here, for the one who does it (harness/web/build.lua) and for the
-- page's README.
local blob = require "gen.plan.blob"
local emit = require "gen.emit.emit"
local families = require "gen.families.list"
local host = require "host"
local json = require "json"
local misuse = require "gen.schema.misuse"
local names = require "gen.schema.names"
local target = require "gen.plan.target"

local web = {}

web.target = target.get "wasm32"

local most_bytes = 0xfff00000 -- of 4 GiB that WebAssembly addresses
local stack_bytes = 1 << 20

-- What the family of plan `p` says of its page; raises one line for a model that has none.
local function page_of(p)
    local of = families.get(p.family).web
    if not of then misuse("--web: " .. p.model.name .. ": is for whole models, from text to text or vector") end
    return of(p)
end

-- Memory that the page takes beside what a single call needs.
local function memory_bytes(p)
    return stack_bytes + p.packed_bytes + p.weights_struct_bytes + (p.state_bytes or 0) + p.scratch_bytes
end

-- The flags that make the sources of plan `p` a module, before their names and the module's.
function web.flags(p)
    local list = { "-std=c99", "-O3", "-ffp-contract=off", "-ffreestanding", "-nostdlib" }
    for _, flags in ipairs { web.target.flags, p.variants[1].isa.flags } do
        table.move(flags, 1, #flags, #list + 1, list)
    end
    for _, flag in ipairs { "--no-entry", "--stack-first", "-z,stack-size=" .. stack_bytes } do
        list[#list + 1] = "-Wl," .. flag
    end
    for _, name in ipairs(page_of(p).exports) do
        list[#list + 1] = "-Wl,--export=" .. name
    end
    list[#list + 1] = "-Wl,--export=__heap_base"
    return list
end

-- Raises one line if there can be no page of plan `p`.
function web.check(p)
    page_of(p)
    names.check("web", p.names.model)
    local bytes = memory_bytes(p)
    if bytes > most_bytes then
        error(
            string.format(
                "--web: %s: takes %d MiB, but WebAssembly addresses 4096: less context or a narrower type helps",
                p.model.name,
                bytes >> 20
            ),
            0
        )
    end
end

-- The files whose bytes the plan does not decide.
function web.recorded_names(p) return { p.names.wasm, p.names.blob } end

-- The text files of the page: { {name, text} }; those below src/ are C. ends: the ids that end a text.
function web.texts(p, ends)
    local page, files = page_of(p), {}
    for _, file in ipairs(emit.sources(p)) do
        files[#files + 1] = { name = "src/" .. file.name, text = file.text }
    end
    local sources = {}
    for _, file in ipairs(files) do
        if file.name:find "%.c$" then sources[#sources + 1] = file.name end
    end
    local values = {
        web = page,
        context = p.context,
        align = blob.align,
        packed_bytes = p.packed_bytes,
        struct_bytes = p.weights_struct_bytes,
        state_bytes = p.state_bytes or 0,
        scratch_bytes = p.scratch_bytes,
        facts = p.facts,
        ends = table.concat(ends, ", "),
        memory_bytes = memory_bytes(p),
        compiler = web.target.compiler,
        flags = table.concat(web.flags(p), " "),
        sources = table.concat(sources, " "),
    }
    local function add(name, template)
        files[#files + 1] = { name = name, text = emit.text(p, "templates/web/" .. template, values) }
    end
    add("index.html", page.page .. ".html")
    add("web-page.css", page.page .. ".css")
    add("web-page.js", page.page .. "_page.js")
    add("web-worker.js", page.page .. "_worker.js")
    add("web-model.js", "runtime.js")
    add(p.names.script, "model.js")
    add("README.md", "readme.md")
    files[#files + 1] = { name = p.names.licence, text = assert(host.resource("LICENSE")) }
    return files
end

-- Every file of the page, the manifest last.
--   made      by name what the plan does not decide: { text }, or { sha256 } as a manifest records it
--   known     what the plan does not have when it is built from a manifest: { ends: the ids that end a text, compiler:
--             the first line of its --version }
function web.files(p, made, known)
    local files = web.texts(p, known.ends)
    for _, name in ipairs(web.recorded_names(p)) do
        files[#files + 1] = { name = name, text = made[name].text, sha256 = made[name].sha256 }
    end
    local more = { profile = "web", compiler = known.compiler, ends = json.array(known.ends) }
    files[#files + 1] = { name = p.names.manifest, text = emit.manifest(p, files, more) }
    return files
end

return web
