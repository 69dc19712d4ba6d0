-- lookupc emit --profile firmware: packs, compiles for the target to measure, checks limits, and only then writes the
-- bundle.
local benchmark = require "gen.emit.benchmark"
local families = require "gen.families.list"
local firmware_files = require "gen.emit.firmware"
local harness = require "harness.families.list"
local host = require "host"
local isa = require "gen.isa.list"
local json = require "json"
local misra = require "harness.firmware.misra"
local misuse = require "gen.schema.misuse"
local packed = require "harness.families.lookup.packed"
local process = require "process"
local request = require "gen.request.request"
local target = require "gen.plan.target"
local toolchain = require "harness.firmware.toolchain"
local wrap = require "gen.emit.wrap"

local firmware = {}

local limited = { -- options that set a limit, in the order of the table
    { option = "flash", key = "flash_bytes" },
    { option = "ram", key = "ram_bytes" },
    { option = "stack", key = "stack_bytes" },
}

-- The bytes of "512K", "2M" or "900"; raises one line.
local function bytes_of(option, text)
    local digits, unit = text:match("^(%d+)([KM]?)$")
    local number = digits and #digits <= 12 and math.tointeger(tonumber(digits))
    if not number or number < 1 then
        misuse(string.format('--%s: "%s": must be a number of bytes such as 900, 64K or 1M', option, text))
    end
    return number * (unit == "K" and 1 << 10 or unit == "M" and 1 << 20 or 1)
end

-- The limits of the options: { [key] = bytes }.
local function limits_of(options)
    local limits = {}
    for _, row in ipairs(limited) do
        limits[row.key] = options[row.option] and bytes_of(row.option, options[row.option])
    end
    return limits
end

-- What the target's compiler makes of plan `p` with so many weights, whatever they are.
local function measured_of(p, directory)
    local vectors = harness.get(p.family).firmware.stand_ins(p)
    return toolchain.measure(p, firmware_files.unmeasured(p, ("\0"):rep(p.packed_bytes), vectors), directory)
end

local function fits(sizes, limits)
    for key, limit in pairs(limits) do
        if sizes[key] > limit then return false end
    end
    return true
end

local function size_words(sizes)
    local list = {}
    for _, row in ipairs(limited) do
        list[#list + 1] = string.format("%10d", sizes[row.key])
    end
    return table.concat(list)
end

-- The first choices of `schedules` with which plan `p` takes no more than `most` bytes of stack, as options write them
-- and as `build` takes them beside its own `types`; nil: none.
local function with_less_stack(p, schedules, most, build, types, directory)
    if firmware_files.sizes(p, measured_of(p, directory .. "/again")).stack_bytes <= most then return nil end
    for _, text in ipairs(schedules) do
        local choices = families.get(p.family).space.parse(text)
        local good, candidate = pcall(build, p.model, types, choices)
        if good and measured_of(candidate, directory .. "/" .. text).stack <= most then
            return "--schedule " .. text, choices
        end
    end
end

-- The largest number of what `fewer` counts with which model `m` fits by its plan; 0: none does.
local function most_that_fit(fewer, m, types, limits, build)
    local least, most = 0, fewer.most(m)
    while least < most do
        local count = (least + most + 1) // 2
        local good, candidate = pcall(build, fewer.with(m, count), types)
        if
            good
            and candidate.packed_bytes + 4096 <= (limits.flash_bytes or math.maxinteger)
            and candidate.scratch_bytes + candidate.weights_struct_bytes <= (limits.ram_bytes or math.maxinteger)
        then
            least = count
        else
            most = count - 1
        end
    end
    return least
end

-- What would fit: a list of { text, sizes }, each measured. `build(m, types, choices)` makes a plan; types: by option.
local function alternatives(p, limits, build, directory)
    local list, tried, family = {}, 0, families.get(p.family)
    local of = harness.get(p.family).firmware
    local smaller, fewer, own = of.smaller(p), of.fewer, {}
    for _, name in ipairs(family.types) do
        own[name] = p.options[name] or p[name] and p[name].name
    end
    -- Fewer sums in registers take less stack: the first choices that do are those of all that follows.
    local words, choices
    if limits.stack_bytes and #smaller.schedules > 0 then
        words, choices = with_less_stack(p, smaller.schedules, limits.stack_bytes, build, own, directory)
    end
    local function try(text, m, types)
        local good, candidate = pcall(build, m, types, choices)
        if not good or candidate.packed_bytes > (limits.flash_bytes or math.maxinteger) then return end
        tried = tried + 1
        local sizes = firmware_files.sizes(candidate, measured_of(candidate, directory .. "/" .. tried))
        if fits(sizes, limits) then list[#list + 1] = { text = text, sizes = sizes } end
    end
    local function type_of(types, name) return types[name] or "f32" end
    local function types_text(types)
        local options = {}
        for i, name in ipairs(family.types) do
            local type = type_of(types, name)
            if i == 1 or type ~= "f32" then options[#options + 1] = "--" .. name .. " " .. type end
        end
        return table.concat(options, " ") .. (words and " " .. words or "")
    end
    local function same_types(types)
        for _, name in ipairs(family.types) do
            if type_of(types, name) ~= type_of(own, name) then return false end
        end
        return true
    end
    if words then try(words, p.model, own) end
    for _, types in ipairs(smaller.options) do
        if not same_types(types) then try(types_text(types), p.model, types) end
    end
    -- As many as fit of what shrinks with their number, while all else does not grow.
    for _, types in ipairs(fewer and { own, smaller.options[#smaller.options] } or {}) do
        local count = most_that_fit(fewer, p.model, types, limits, build)
        if count > 0 then
            try(string.format(fewer.text .. ", %s", count, types_text(types)), fewer.with(p.model, count), types)
        end
    end
    return list
end

-- Says what is too large and what would fit, and raises one line.
local function refuse(p, sizes, limits, build, directory)
    host.note(string.format("%-60s%10s%10s%10s", p.model.name .. " on " .. p.target.name, "flash", "ram", "stack"))
    host.note(string.format("%-60s%s", "takes", size_words(sizes)))
    local allowed, too_large = {}, {}
    for i, row in ipairs(limited) do
        allowed[i] = string.format("%10s", limits[row.key] or "")
        if limits[row.key] and sizes[row.key] > limits[row.key] then too_large[#too_large + 1] = row.option end
    end
    host.note(string.format("%-60s%s", "may take", table.concat(allowed)))
    local list = alternatives(p, limits, build, directory)
    host.note(
        #list > 0 and "would fit:"
            or "nothing that was tried would fit: other types, fewer tables, fewer sums in registers"
    )
    for _, row in ipairs(list) do
        host.note(string.format("  %-58s%s", row.text, size_words(row.sizes)))
    end
    error(string.format("--%s: %s does not fit: nothing is written", table.concat(too_large, ", --"), p.model.name), 0)
end

-- What a command's options ask for: the plan, the family's record of the model, and the instruction set. Adds to
-- options what the target decides. Raises one line.
local function planned(path, options)
    local wanted = target.get(options.target)
    if options["target-flags"] then wanted = target.with_flags(wanted, options["target-flags"]) end
    local _, asked = request.model(path, options)
    if not asked.firmware then misuse("--profile: firmware: is not for a " .. asked.noun) end
    options.firmware = wanted
    for name, value in pairs(wanted.soft_float and asked.firmware.without_fpu or {}) do
        options[name] = options[name] or value
    end
    local _, family = request.model(path, options)
    local set = isa.get(family.firmware.isa(wanted, options))
    return request.plan(path, { set }, options), family, set
end

-- What a command's options ask for, measured: { plan, weights, measured, vectors, misra }. Raises one line.
function firmware.build(path, options)
    local limits, wrapped = limits_of(options), options.wrap and wrap.select(options.wrap) or nil
    local p, family, set = planned(path, options)
    local directory = process.temporary_directory()
    local measured = measured_of(p, directory .. "/measured")
    local sizes = firmware_files.sizes(p, measured)
    if not fits(sizes, limits) then
        refuse(p, sizes, limits, function(smaller, types, choices)
            local changed = setmetatable({}, { __index = function(_, name) return types[name] or options[name] end })
            return family.build(
                smaller,
                { set },
                changed,
                { [set.name] = choices or p.options.schedule and p.options.schedule[set.name] }
            )
        end, directory)
    end
    local files = packed.make(p, directory, options)
    return {
        plan = p,
        wrap = wrapped,
        weights = assert(host.read(files.output, 1 << 31)),
        measured = measured,
        vectors = harness.get(p.family).firmware.vectors(p, files, options.seed),
    }
end

-- Options beside those of plan `p` that may take less: { { {name, value} } }.
local function helpful(p, family, options)
    local list, smaller = {}, harness.get(p.family).firmware.smaller(p)
    for _, types in ipairs(smaller.options) do
        local others = {}
        for _, name in ipairs(family.types) do
            local own = p.options[name] or p[name] and p[name].name or "f32"
            if types[name] and types[name] ~= own then others[#others + 1] = { name, types[name] } end
        end
        if #others > 0 then list[#list + 1] = others end
    end
    for _, text in ipairs(options.tuned and {} or smaller.schedules) do
        list[#list + 1] = { { "schedule", text } }
    end
    for name, value in pairs(family.firmware.without_fpu or {}) do
        if not p.options[name] then list[#list + 1] = { { name, value } } end
    end
    return list
end

-- What a bundle would take, without its weights: { plan, text, report, sizes, options }. text, report: those of
-- firmware_files.report(); options: a list of { text, sizes } of options that save a hundredth of flash,
-- RAM or stack, measured likewise.
function firmware.figures(path, options)
    local asked = setmetatable({}, { __index = options })
    local p, family = planned(path, asked)
    local directory = process.temporary_directory()
    local measured = measured_of(p, directory .. "/measured")
    local text, report = firmware_files.report(p, measured)
    local own, list = firmware_files.sizes(p, measured), {}
    for i, changes in ipairs(helpful(p, family, options)) do
        local changed, words = setmetatable({}, { __index = asked }), {}
        for k, change in ipairs(changes) do
            changed[change[1]], words[k] = change[2], "--" .. change[1] .. " " .. change[2]
        end
        local good, other = pcall(planned, path, changed)
        if good then
            local sizes, helps = firmware_files.sizes(other, measured_of(other, directory .. "/" .. i)), false
            for _, row in ipairs(limited) do
                helps = helps or sizes[row.key] < 0.99 * own[row.key]
            end
            if helps then list[#list + 1] = { text = table.concat(words, " "), sizes = sizes } end
        end
    end
    return { plan = p, text = text, report = report, sizes = own, options = list }
end

-- firmware.figures() as text.
function firmware.figures_text(found)
    local lines = { found.text }
    if #found.options > 0 then
        lines[#lines + 1] =
            string.format("%-50s%10s%10s%10s", "options that would help, bytes beside these:", "flash", "RAM", "stack")
    end
    for _, row in ipairs(found.options) do
        local words = {}
        for i, limit in ipairs(limited) do
            words[i] = string.format("%+10d", row.sizes[limit.key] - found.sizes[limit.key])
        end
        lines[#lines + 1] = string.format("  %-48s%s", row.text, table.concat(words))
    end
    return table.concat(lines, "\n")
end

-- firmware.figures() as JSON takes it.
function firmware.figures_json(found)
    local report, options = found.report, {}
    for i, row in ipairs(found.options) do
        options[i] = { options = row.text }
        for key, value in pairs(row.sizes) do
            options[i][key] = value
        end
    end
    local json_of = {
        model = found.plan.model.name,
        target = found.plan.target.name,
        compiler = report.measured.compiler,
        flags = report.measured.flags,
        options = json.array(options),
    }
    for _, part in ipairs { "flash", "ram", "in_use", "stack", "selftest_stack" } do
        json_of[part] = json.array(report[part])
    end
    for key, value in pairs(found.sizes) do
        json_of[key] = value
    end
    return json_of
end

-- What the checker of MISRA rules says of the bundle; nil if it is not asked or missing.
local function misra_of(b, options)
    if options["without-misra"] then return nil end
    local folder, contents, sources = process.temporary_directory(), {}, {}
    for _, file in ipairs(firmware_files.unmeasured(b.plan, b.weights)) do
        contents[file.name], sources[#sources + 1] = file.text, file.name
    end
    assert(host.write_directory(folder, contents, true))
    local report = misra.report(folder, sources)
    if not report then host.note("lookupc: cppcheck is missing: no MISRA.md") end
    return report
end

-- The files of the bundle.
function firmware.files(b, options)
    return firmware_files.files(
        b.plan,
        b.weights,
        b.measured,
        b.vectors,
        {
            c_array = options["weights-array"],
            misra = misra_of(b, options),
            wrap = b.wrap,
            benchmark = options.benchmark and json.array(benchmark.batches(options.batch)),
        }
    )
end

return firmware
