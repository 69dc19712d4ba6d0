-- lookupc emit --web: packs the weights, compiles the C to WebAssembly, and gives all files of the page.
local compilers = require "harness.base.compilers"
local host = require "host"
local isa = require "gen.isa.list"
local packing = require "gen.families.packing"
local process = require "process"
local request = require "gen.request.request"
local web_files = require "gen.emit.web"

local build = {}

-- Raises one line unless the compiler and its linker, of the same version, make a module of nothing.
local function check_compiler()
    local target = web_files.target
    local module = process.temporary_directory() .. "/nothing.wasm"
    local flags = { "--target=wasm32", "-nostdlib", "-Wl,--no-entry", "-x", "c", "/dev/null", "-o", module }
    local result = process.run(compilers.joined({ target.compiler }, flags), { env = compilers.environment() })
    if not result or result.status ~= 0 then
        error(
            string.format(
                "--web: needs %s with its wasm-ld to make WebAssembly (Debian packages: clang-19, lld-19)",
                target.compiler
            ),
            0
        )
    end
end

-- The bytes of the module that the C files among `files` make.
local function compiled(p, files)
    local directory, contents, sources = process.temporary_directory(), {}, {}
    for _, file in ipairs(files) do
        if file.name:find "^src/" then contents[file.name] = file.text end
        if file.name:find "%.c$" then sources[#sources + 1] = directory .. "/" .. file.name end
    end
    assert(host.write_directory(directory, contents, true))
    local output = directory .. "/" .. p.names.wasm
    compilers.call(compilers.joined({ web_files.target.compiler }, web_files.flags(p), sources, { "-o", output }))
    return assert(host.read(output, 1 << 30))
end

-- The plan of the model file `path` and all files of its page: { {name, text} }; raises one line.
function build.page(path, options)
    local p = request.plan(path, { isa.get(web_files.target.isa) }, options)
    web_files.check(p)
    check_compiler()
    local known = { ends = p.ends or {}, compiler = compilers.version(web_files.target.compiler) }
    local module = compiled(p, web_files.texts(p, known.ends))
    local blob = process.temporary_directory() .. "/" .. p.names.blob
    packing.pack(p, packing.files(options, blob))
    local made = { [p.names.wasm] = { text = module }, [p.names.blob] = { text = assert(host.read(blob, 1 << 32)) } }
    return p, web_files.files(p, made, known)
end

return build
