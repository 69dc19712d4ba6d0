-- Compiles candidates, several at a time, and proves them right before anybody times them.
--
-- What was compiled and verified once is kept in a folder under the digest of everything it depends on, so that a
-- tuning that goes on, or another one, finds it there.
local compile = require "harness.base.compile"
local elf = require "harness.base.elf"
local harness = require "harness.families.list"
local host = require "host"
local process = require "process"

local build = {}
build.__index = build

build.timeout = 120 -- seconds that a compiler may take
local most_kept = 4000 -- files of the folder: with more it is emptied

-- The folder of what was compiled; raises one line if nothing says where.
function build.folder()
    local cache, home = process.variable "XDG_CACHE_HOME", process.variable "HOME"
    if cache and cache:find "^/" then return cache .. "/lookupc" end
    if home and home:find "^/" then return home .. "/.cache/lookupc" end
    error("XDG_CACHE_HOME and HOME are not set: there is no place for compiled candidates", 0)
end

-- A builder of candidates of one model. options: cc, version (its first line of --version), cflags, threads, seed,
-- files (what the family's tuning.prepare made), timeout in seconds.
function build.new(options)
    local self = setmetatable(
        { options = options, kept = build.folder(), scratch = process.temporary_directory(), number = 0 },
        build
    )
    assert(host.write_directory(self.kept, {}))
    local names = assert(host.list(self.kept))
    if #names > most_kept then
        for _, name in ipairs(names) do
            assert(host.remove(self.kept .. "/" .. name))
        end
    end
    return self
end

-- The digest of all that a library made of `contents` depends on.
function build:digest(contents, units, cflags)
    local names, parts = {}, { self.options.version, cflags }
    for _, unit in ipairs(units) do
        parts[#parts + 1] = unit.name .. " " .. table.concat(compile.flags(unit, ""), " ")
    end
    for name in pairs(contents) do
        names[#names + 1] = name
    end
    table.sort(names)
    for _, name in ipairs(names) do
        parts[#parts + 1] = name .. " " .. host.sha256(contents[name])
    end
    return host.sha256(table.concat(parts, "\n"))
end

-- What has to be done for plan `p`: { plan, library = path, commands, link }, without commands if the library is there.
function build:order(p)
    local o = self.options
    local contents, units = compile.sources { p }
    local cflags = compile.threaded(p, o.cflags, o.threads)
    local digest = self:digest(contents, units, cflags)
    local made = { plan = p, digest = digest, library = string.format("%s/%s.so", self.kept, digest) }
    if host.kind(made.library) then return made end
    self.number = self.number + 1
    local directory = self.scratch .. "/" .. self.number
    assert(host.write_directory(directory, contents))
    made.fresh = directory .. "/library.so"
    made.commands, made.link = compile.commands(units, directory, made.fresh, o.cc, cflags)
    return made
end

-- Runs `commands` { {argv, of} } beside each other; what fails puts its reason into of.failure.
local function run_all(commands, timeout)
    local list = {}
    for i, command in ipairs(commands) do
        list[i] = command.argv
    end
    local results = assert(process.run_all(list, { at_once = math.min(process.cpu_count(), 64), timeout = timeout }))
    for i, command in ipairs(commands) do
        local failure = compile.failure(command.argv, results[i], timeout)
        command.of.failure = command.of.failure or failure and "compile: " .. failure
    end
end

-- Whether the library's kernels of `regime` (nil: of both) are right: a reason why not, or nil.
function build:verify(made, regime)
    local o = self.options
    local mark = string.format("%s/%s.right_%s_%d_%s", self.kept, made.digest, regime or "both", o.seed, host.version)
    if host.kind(mark) then return nil end
    local failure = harness.get(made.plan.family).tuning.failure(made, regime, o, self.bind_known)
    if failure then return ("verify: " .. failure):gsub("%c", " ") end
    self.bind_known = true -- the same for all candidates of a model
    assert(host.write_file(mark, ""))
end

-- Compiles and verifies the kernels of `regime` (nil: of both) of `plans`. Returns a list in their order: { plan,
-- library, bytes (of machine code) } or { plan, failure = "compile: …" | "verify: …" }.
function build:make(plans, regime)
    local list, compiling, linking = {}, {}, {}
    for i, p in ipairs(plans) do
        local made = self:order(p)
        list[i] = made
        for _, argv in ipairs(made.commands or {}) do
            compiling[#compiling + 1] = { argv = argv, of = made }
        end
    end
    local timeout = self.options.timeout or build.timeout
    run_all(compiling, timeout)
    for _, made in ipairs(list) do
        if made.link and not made.failure then linking[#linking + 1] = { argv = made.link, of = made } end
    end
    run_all(linking, timeout)
    for i, made in ipairs(list) do
        -- maybe another file system
        if made.link and not made.failure then assert(host.write_file(made.library, assert(host.read(made.fresh)))) end
        local failure = made.failure or self:verify(made, regime)
        list[i] = {
            plan = made.plan,
            failure = failure,
            library = made.library,
            bytes = not failure and elf.code_bytes(assert(host.read(made.library))) or nil,
        }
    end
    return list
end

return build
