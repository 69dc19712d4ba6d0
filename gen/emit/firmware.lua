-- The files of a firmware bundle: the sources of its plan, weights to be linked in, self-test, example, linker snippet
-- and papers.
--
-- Needs no compiler: what only a compiler knows comes in as `measured` (harness/firmware/build.lua), what only the
-- reference knows as `vectors`.
local blob = require "gen.plan.blob"
local emit = require "gen.emit.emit"
local families = require "gen.families.list"
local host = require "host"
local literal = require "gen.print.literal"
local wrap = require "gen.emit.wrap"

local firmware = {}

firmware.tolerance = 1e-5 -- of an output in the self-test, relative to the norm of its token's outputs

-- `words`, joined by ", ", as lines of at most `width` characters.
local function wrapped(words, width)
    local lines, line = {}, ""
    for _, word in ipairs(words) do
        if line ~= "" and #line + 1 + #word > width then
            lines[#lines + 1], line = line, ""
        end
        line = line .. (line == "" and "" or " ") .. word .. ","
    end
    if line ~= "" then lines[#lines + 1] = line end
    return lines
end

local function hex_lines(numbers)
    local words = {}
    for i, number in ipairs(numbers) do
        words[i] = literal.hex(number, 8)
    end
    return wrapped(words, 100)
end

-- Integers as they are, others as hexadecimal floats.
local function number_lines(numbers)
    local words = {}
    for i, number in ipairs(numbers) do
        words[i] = math.type(number) == "integer" and tostring(number) or string.format("%af", literal.round32(number))
    end
    return wrapped(words, 120)
end

-- ## Checks of the weights

local crc_polynomial = 0xedb88320

-- What `bits` bits of a CRC-32 become.
local function crc_table(bits)
    local list = {}
    for n = 0, (1 << bits) - 1 do
        local crc = n
        for _ = 1, bits do
            crc = crc & 1 == 1 and crc >> 1 ~ crc_polynomial or crc >> 1
        end
        list[n + 1] = crc
    end
    return list
end

local function crc32(bytes)
    local step, crc = crc_table(8), 0xffffffff
    for i = 1, #bytes do
        crc = crc >> 8 ~ step[((crc ~ bytes:byte(i)) & 255) + 1]
    end
    return ~crc & 0xffffffff
end

-- The first 32 bits behind the point of roots of the first `count` primes: SHA-256's constants (FIPS 180-4, sections
-- 4.2.2 and 5.3.3).
local function root_fractions(count, exponent)
    local list, n = {}, 2
    while #list < count do
        local prime = true
        for divisor = 2, math.tointeger(n ^ 0.5 // 1) do
            prime = prime and n % divisor ~= 0
        end
        if prime then list[#list + 1] = math.tointeger(n ^ exponent % 1 * 2.0 ^ 32 // 1) end
        n = n + 1
    end
    return list
end

-- ## Parts

-- The blob in three parts: the tables, which may lie in slower memory, and what is before and behind them; and where
-- the sections are in them.
local function parts_of(p)
    local first, last
    for i, section in ipairs(p.sections) do
        if section.name == "tables" then
            first, last = section.at, p.sections[i + 1].at
        end
    end
    local weights, tables = p.names.macro "WEIGHTS_SECTION", p.names.macro "TABLE_SECTION"
    local parts = {
        { symbol = p.model.name .. "_weights_before_tables", at = 0, bytes = first, section = weights },
        { symbol = p.model.name .. "_weights_tables", at = first, bytes = last - first, section = tables },
        {
            symbol = p.model.name .. "_weights_behind_tables",
            at = last,
            bytes = p.packed_bytes - last,
            section = weights,
        },
    }
    local sections = {}
    for i, section in ipairs(p.sections) do
        local part = section.at < first and 1 or section.at < last and 2 or 3
        sections[i] =
            { name = section.name, storage = section.storage, part = part - 1, at = section.at - parts[part].at }
    end
    return parts, sections
end

-- What a token costs, from the plan alone.
local function cost_of(p)
    local row = p.shape.d_out * p.tables.bytes
    return {
        flops = math.floor(p.mflop.projection * 1e6 + 2 * p.shape.slots * p.shape.d_out + 0.5),
        table_bytes_read = p.shape.slots * row,
        rows_read = p.shape.slots,
        row_bytes = row,
    }
end

-- The numbers of the header's macros: `code` is what the compiler measured, { text, rodata, stack }.
function firmware.sizes(p, code)
    return {
        flash_bytes = blob.round_up(code.text + code.rodata, 4) + p.packed_bytes,
        ram_bytes = p.scratch_bytes + p.weights_struct_bytes,
        stack_bytes = code.stack,
    }
end

-- What the templates read as `firmware`. `weights` are the packed bytes.
local function values_of(p, weights, measured, vectors)
    local sizes, cost, parts, sections = firmware.sizes(p, measured), cost_of(p), parts_of(p)
    local counts, tolerances, digest = {}, {}, {}
    for i, part in ipairs(parts) do
        counts[i] = tostring(part.bytes)
    end
    for i, vector in ipairs(vectors) do
        local sum = 0
        for _, y in ipairs(vector.y) do
            sum = sum + y * y
        end
        tolerances[i] = firmware.tolerance * sum ^ 0.5
    end
    for word in host.sha256(weights):gmatch("%x%x%x%x%x%x%x%x") do
        digest[#digest + 1] = tonumber(word, 16)
    end
    local family = families.get(p.family)
    return {
        target = p.target.name,
        flash_bytes = sizes.flash_bytes,
        ram_bytes = sizes.ram_bytes,
        stack_bytes = sizes.stack_bytes,
        table_bytes = parts[2].bytes,
        table_bytes_read = cost.table_bytes_read .. " bytes",
        cost = cost,
        parts = parts,
        sections = sections,
        part_bytes = table.concat(counts, ", "),
        crc_lines = hex_lines(crc_table(4)),
        crc32 = literal.hex(crc32(weights), 8),
        sha256_lines = hex_lines(digest),
        sha256_constant_lines = hex_lines(root_fractions(64, 1 / 3)),
        sha256_start_lines = hex_lines(root_fractions(8, 1 / 2)),
        vectors = vectors,
        tolerances = tolerances,
        tolerance = string.format("%g", firmware.tolerance),
        number_lines = number_lines,
        exact = family.exact,
        input = family.input,
        output = family.output,
        byte_lines = function(part)
            local words = {}
            for i = part.at + 1, part.at + part.bytes do
                words[#words + 1] = tostring(weights:byte(i))
            end
            return wrapped(words, 140)
        end,
    }
end

-- The C sources for measuring and for the bundle: { [path in the bundle] = text }, and the list of those paths that are
-- compiled.
local function sources_of(p, values)
    local files = {}
    for i, file in ipairs(emit.sources(p, { firmware = values })) do
        files[i] = { name = (file.public and "inc/" or "src/") .. file.name, text = file.text, isa = file.isa }
    end
    return files
end

local nothing = { text = 0, rodata = 0, stack = 0, compiler = "", flags = {} }

-- The sources before anything is measured: { {name, text} }. They differ from the final ones in the header's macros and
-- comments only.
function firmware.unmeasured(p, weights) return sources_of(p, values_of(p, weights, nothing, {})) end

-- The parts of flash, RAM and stack for the report: lists of { bytes, text }.
local function report_of(p, values, measured)
    local flash = { { bytes = measured.text, text = "code" }, { bytes = measured.rodata, text = "constants" } }
    for _, section in ipairs(p.sections) do
        flash[#flash + 1] = { bytes = section.bytes, text = section.name .. ", " .. section.doc }
    end
    local rest = values.flash_bytes
    for _, row in ipairs(flash) do
        rest = rest - row.bytes
    end
    flash[#flash + 1] = { bytes = rest, text = "header of the weights and alignment" }
    local ram, places = { { bytes = p.weights_struct_bytes, text = "a " .. p.names.weights } }, {}
    for name, at in pairs(p.variants[1].scratch) do
        places[#places + 1] = { name = name, at = at }
    end
    table.sort(places, function(a, b) return a.at < b.at end)
    for i, place in ipairs(places) do
        ram[#ram + 1] = {
            bytes = (places[i + 1] and places[i + 1].at or p.scratch_bytes) - place.at,
            text = "scratch: " .. place.name,
        }
    end
    local by_name, stack, functions = {}, {}, {}
    for i, row in ipairs(measured.functions) do
        by_name[row.name] = row.stack
        functions[i] = { bytes = row.stack, text = row.name }
    end
    for i, name in ipairs(measured.path) do
        stack[i] = { bytes = by_name[name] or 0, text = (i > 1 and "calls " or "") .. name }
    end
    return {
        firmware = values,
        flash = flash,
        ram = ram,
        stack = stack,
        functions = functions,
        cost = values.cost,
        measured = { compiler = measured.compiler, flags = table.concat(measured.flags, " ") },
        flags = table.concat(p.target.flags, " "),
        number = function(n) return string.format("%10d", n) end,
        projection_bytes = p.projection_bytes,
        hidden = p.dense_hidden,
        dense_flops = string.format("%.0f", p.mflop.dense * 1e6),
        align = blob.align,
    }
end

-- The files that hold what only the reference, a checker or the weights know; those of the weights come first.
function firmware.recorded_names(p)
    local model = p.model.name
    return {
        "src/" .. model .. "_weights.bin",
        "src/" .. model .. "_weights.c",
        "test/" .. model .. "_selftest.c",
        "test/" .. model .. "_selftest.h",
        "README.md",
        "MISRA.md",
    }
end

-- The packed weights in a file of that name with these `bytes`.
function firmware.weights_in(name, bytes)
    if not name:find("%.c$") then return bytes end
    local list = {}
    for array in bytes:gmatch("%b{}") do
        for byte in array:gmatch("(%d+),") do
            list[#list + 1] = string.char(tonumber(byte))
        end
    end
    return table.concat(list)
end

-- Every file of the bundle of plan `p`, the manifest last.
--   weights   packed bytes
--   measured  { text, rodata, stack, compiler, flags, functions }
--   vectors   { {x, y} }, tokens and what the reference makes of them
--   options   { c_array, misra, wrap, recorded }: weights as a C array instead of an assembler file; what a checker of
--             MISRA rules reports; systems of gen/emit/wrap.lua; digests by name of files that are taken as a manifest
--             records them, and have no text
function firmware.files(p, weights, measured, vectors, options)
    local values, recorded = values_of(p, weights, measured, vectors), options.recorded or {}
    local files = sources_of(p, values)
    local function add(name, path)
        files[#files + 1] =
            { name = name, text = emit.text(p, path, { firmware = values, integers = false, align = blob.align }) }
    end
    local c_array = options.c_array or p.target.object ~= "elf"
    if c_array then
        add("src/" .. p.model.name .. "_weights.c", "templates/firmware/weights.c")
    else
        add("src/" .. p.model.name .. "_weights.S", "templates/firmware/weights.S")
        files[#files + 1] = { name = "src/" .. p.model.name .. "_weights.bin", text = weights }
    end
    add("test/" .. p.model.name .. "_selftest.h", "templates/firmware/selftest.h")
    add("test/" .. p.model.name .. "_selftest.c", "templates/firmware/selftest.c")
    add("example_main.c", "templates/firmware/example.c")
    local function paper(name, path, more)
        local report = report_of(p, values, measured)
        report.misra = more
        files[#files + 1] = { name = name, text = emit.text(p, path, report) }
    end
    paper("REPORT.txt", "templates/firmware/report.txt")
    paper("README.md", "templates/firmware/readme.md")
    if p.target.object == "elf" then paper(p.model.name .. ".ld", "templates/firmware/linker.ld") end
    if options.misra then
        paper("MISRA.md", "templates/firmware/misra.md", options.misra)
    elseif recorded["MISRA.md"] then
        files[#files + 1] = { name = "MISRA.md" }
    end
    local compiled = {}
    for _, file in ipairs(files) do
        if file.name:find("^src/.*%.[cS]$") then compiled[#compiled + 1] = file.name end
    end
    for _, file in ipairs(wrap.files(options.wrap or {}, p.model.name)) do
        files[#files + 1] = {
            name = file.name,
            text = emit.text(p, file.template, {
                sources = compiled,
                version = host.version,
                target = p.target.name,
                flash_bytes = values.flash_bytes,
                ram_bytes = values.ram_bytes,
                stack_bytes = values.stack_bytes,
            }),
        }
    end
    files[#files + 1] = { name = p.names.licence, text = assert(host.resource("LICENSE")) }
    for _, file in ipairs(files) do
        file.sha256 = recorded[file.name]
        file.text = not file.sha256 and file.text or nil
    end
    files[#files + 1] = {
        name = p.names.manifest,
        text = emit.manifest(p, files, {
            profile = "firmware",
            target = p.target.name,
            c_array = c_array or nil,
            wrap = options.wrap,
            weights_sha256 = host.sha256(weights),
            measured = measured,
        }),
    }
    return files
end

return firmware
