-- Compiles candidates, several at a time, and proves them right before anybody times them.
--
-- What was compiled and verified once is kept in a folder under the digest of everything it depends on, so that a
-- tuning that goes on, or another one, finds it there.
local compile = require "harness.base.compile"
local elf = require "harness.base.elf"
local harness = require "harness.families.list"
local host = require "host"
local library_cache = require "harness.base.library_cache"
local process = require "process"

local build = {}
build.__index = build

build.timeout = 120 -- seconds that a compiler may take

-- A builder of candidates of one model. options: cc, version (its first line of --version), cflags, threads, seed,
-- files (what the family's tuning.prepare made), timeout in seconds, folder (of what is kept; default: the user's).
-- Raises one line if there is no such folder.
function build.new(options)
    local folder = options.folder or library_cache.folder()
    if not folder then error("XDG_CACHE_HOME and HOME are not set: there is no place for compiled candidates", 0) end
    assert(library_cache.open(folder))
    return setmetatable(
        { options = options, folder = folder, scratch = process.temporary_directory(), number = 0 },
        build
    )
end

-- What has to be done for plan `p`: { plan, library = path, commands, link }, without commands if the library is there.
function build:order(p)
    local o = self.options
    local contents, units, same = compile.sources { p }
    local cflags = compile.threaded(p, o.cflags, o.threads)
    local made = { plan = p, digest = compile.digest(contents, units, same, o.cc, o.version, cflags) }
    local bytes, path = library_cache.find(self.folder, made.digest)
    if bytes then
        made.library, made.bytes = path, bytes
        return made
    end
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
    for i, failure in ipairs(compile.failures(list, timeout)) do
        local of = commands[i].of
        of.failure = of.failure or failure and "compile: " .. failure
    end
end

-- Whether the library's kernels of `regime` (nil: of both) are right, in at most `left` seconds: a reason why not, or
-- nil; and what an earlier verification noted of the seconds that making the library took, or nil.
function build:verify(made, regime, left)
    local o = self.options
    local mark = string.format("%s/%s.right_%s_%d_%s", self.folder, made.digest, regime or "both", o.seed, host.version)
    local noted = host.read(mark, 100)
    if noted then return nil, tonumber(noted) end
    local start = process.clock()
    local failure = harness.get(made.plan.family).tuning.failure(made, regime, o, self.bind_known, left)
    if failure then return ("verify: " .. failure):gsub("%c", " "), nil end
    self.bind_known = true -- the same for all candidates of a model
    made.seconds = made.seconds + process.clock() - start
    assert(host.write_file(mark, string.format("%.3f", made.seconds)))
end

-- Compiles and verifies the kernels of `regime` (nil: of both) of `plans`, in at most `left` seconds (nil: as many as
-- it takes). Returns a list in their order: { plan, library, bytes (of machine code), seconds (that it took, or once
-- took, beside others) } or { plan, failure = "compile: …" | "verify: …" } or { plan, late = true }: there was no time.
function build:make(plans, regime, left)
    local list, compiling, linking = {}, {}, {}
    local start = process.clock()
    local function rest() return left and left - (process.clock() - start) end
    local function late() return left ~= nil and rest() <= 0 end
    local most = self.options.timeout or build.timeout
    local function timeout() return math.min(most, math.max(0.01, rest() or most)) end
    for i, p in ipairs(plans) do
        local made = self:order(p)
        list[i] = made
        for _, argv in ipairs(made.commands or {}) do
            compiling[#compiling + 1] = { argv = argv, of = made }
        end
    end
    local compile_start = process.clock()
    if not late() then run_all(compiling, timeout()) end
    for _, made in ipairs(list) do
        if made.link and not made.failure then linking[#linking + 1] = { argv = made.link, of = made } end
    end
    if not late() then run_all(linking, timeout()) end
    -- of one beside others: a single one has the other CPUs idle
    local seconds = (process.clock() - compile_start) / math.max(#plans, process.cpu_count())
    for i, made in ipairs(list) do
        local failure, noted = made.failure, nil
        made.seconds = made.link and seconds or 0
        if not late() and not failure then
            if made.link then
                made.bytes = assert(host.read(made.fresh))
                made.library = assert(library_cache.put(self.folder, made.digest, made.bytes))
            end
            failure, noted = self:verify(made, regime, rest())
        end
        if late() then
            list[i] = { plan = made.plan, late = true }
        else
            list[i] = {
                plan = made.plan,
                failure = failure,
                library = made.library,
                bytes = not failure and elf.code_bytes(made.bytes) or nil,
                seconds = noted or made.seconds,
            }
        end
    end
    return list
end

return build
