-- The local store of all records: where it is, merging, look-up by nearness. A damaged one is rebuilt from the records
-- it still holds.
local figures = require "gen.plan.figures"
local host = require "host"
local key = require "harness.tune.key"
local process = require "process"
local record = require "harness.tune.record"
local sqlite = require "store"
local summary = require "harness.tune.summary"

local store = {}
store.__index = store

store.version = 1
-- application_id is this plus the version: one of the two alone cannot have been damaged unseen
local application = 0x6c6b7000

-- Pages as large as SQLite has them: a record then lies in one piece, where record.find sees it. A changed key or time
-- no longer agrees with its index, a changed line not with its check.
local schema = {
    "CREATE TABLE records (id TEXT PRIMARY KEY, key TEXT NOT NULL, time INTEGER NOT NULL, line TEXT NOT NULL)",
    "CREATE INDEX by_key ON records (key, time)",
    "PRAGMA application_id = " .. application + store.version,
    "PRAGMA user_version = " .. store.version,
}

-- Where the store is; raises one line if nothing says so.
function store.path()
    local function set(name, pattern)
        local value = process.variable(name)
        return value and value:find(pattern) and value
    end
    local own, data, home = set("LOOKUPC_STORE", "."), set("XDG_DATA_HOME", "^/"), set("HOME", "^/")
    if own then return own end
    if not data and not home then
        error("LOOKUPC_STORE, XDG_DATA_HOME and HOME are not set: there is no place for the store", 0)
    end
    return (data or home .. "/.local/share") .. "/lookupc/tuned.sqlite"
end

local function create(db)
    for _, sql in ipairs { "PRAGMA page_size = 65536", "PRAGMA journal_mode = WAL", "BEGIN IMMEDIATE" } do
        assert(db:query(sql))
    end
    for _, sql in ipairs(schema) do
        assert(db:query(sql))
    end
    assert(db:query "COMMIT")
end

-- Adds a record unless it is there. Returns how many were added and the key's id.
local function insert(db, r)
    local id = key.id(r.key)
    assert(
        db:query(
            "INSERT OR IGNORE INTO records (id, key, time, line) VALUES (?, ?, ?, ?)",
            r.check,
            id,
            r.time,
            record.line(r)
        )
    )
    return db:changes(), id
end

-- Runs `work` as one transaction and returns its result.
local function transaction(db, work)
    assert(db:query "BEGIN IMMEDIATE")
    local good, result = pcall(work)
    if good then
        local done, message = db:query "COMMIT"
        if done then return result end
        result = message
    end
    db:query "ROLLBACK"
    error(result, 0)
end

-- Raises { what = "damaged", why } for a damaged file and one line for all other failures.
local function ask(db, sql, ...)
    local rows, message, damaged = db:query(sql, ...)
    if rows then return rows end
    error(damaged and { what = damaged, why = message:match(": ([^:]*)$") or message } or message, 0)
end

-- Raises { what = "new" | "foreign" | "damaged", why } unless the database is a whole store, which can be written or is
-- `only_read`, and one line if it is of another version.
local function inspect(db, path, only_read)
    local application_id, version =
        ask(db, "PRAGMA application_id")[1].application_id, ask(db, "PRAGMA user_version")[1].user_version
    local objects = ask(db, "SELECT count(*) AS count FROM sqlite_schema")[1].count
    if application_id == 0 and version == 0 and objects == 0 then error({ what = "new" }, 0) end
    if application_id - version ~= application then error({ what = "foreign", why = "its header is wrong" }, 0) end
    if version ~= store.version then
        error(
            string.format("%s: is a store of version %d: this lookupc reads version %d", path, version, store.version),
            0
        )
    end
    for _, sql in ipairs(only_read and {} or { "BEGIN IMMEDIATE", "PRAGMA user_version = 0", "ROLLBACK" }) do
        ask(db, sql)
    end
    if ask(db, "PRAGMA integrity_check")[1].integrity_check ~= "ok" then
        error({ what = "damaged", why = "its pages contradict each other" }, 0)
    end
    local last = math.mininteger
    repeat
        local rows = ask(db, "SELECT rowid, id, line FROM records WHERE rowid > ? ORDER BY rowid LIMIT 1000", last)
        for _, row in ipairs(rows) do
            last = row.rowid
            local whole = record.intact(row.line) and row.line:find('"check":"' .. row.id .. '"', 1, true)
            if not whole then error({ what = "damaged", why = "a record does not match its check" }, 0) end
        end
    until #rows == 0
end

local largest_rebuilt = 1 << 32 -- bytes of a damaged store, or of its journal, which are read whole

-- Puts a new store with the records that are left in the place of the damaged one. Returns a line that says so; raises
-- one for a file that never was a store.
local function rebuild(path, found)
    local bytes = assert(host.read_regular(path, largest_rebuilt))
    bytes = bytes .. (host.read_regular(path .. "-wal", largest_rebuilt) or "")
    local lines = record.find(bytes)
    if #lines == 0 and (found.what == "foreign" or not bytes:find("^SQLite format 3\0")) then
        error(path .. ": is no store of lookupc", 0)
    end
    local fresh, number = path .. ".new", 0
    for _, suffix in ipairs { "", "-wal", "-shm" } do
        host.remove(fresh .. suffix)
    end
    do
        local db <close> = assert(sqlite.open(fresh))
        create(db)
        transaction(db, function()
            for _, line in ipairs(lines) do
                insert(db, assert(record.parse(line)))
            end
        end)
    end
    local aside
    repeat
        number = number + 1
        aside = path .. ".damaged-" .. number
    until not host.kind(aside)
    assert(host.move(path, aside))
    host.move(path .. "-wal", aside .. "-wal")
    host.remove(path .. "-shm")
    assert(host.move(fresh, path))
    return string.format(
        "%s: is damaged (%s): moved to %s, %s recovered",
        path,
        found.why,
        aside,
        figures.plural(#lines, "record")
    )
end

-- One try to open the store under a lock: the store, or nil and what is wrong with it, repaired if the lock is
-- exclusive.
local function try(path, kind)
    local lock = assert(sqlite.lock(path, kind))
    local db
    local good, found = pcall(function()
        db = assert(sqlite.open(path))
        ask(db, "PRAGMA secure_delete = ON")
        inspect(db, path)
    end)
    if good then return setmetatable({ path = path, db = db, lock = lock }, store) end
    local repaired, message = pcall(function()
        if type(found) ~= "table" then error(found, 0) end
        if kind ~= "exclusive" then return end
        if found.what == "new" then return create(db) end
        db:close()
        return rebuild(path, found)
    end)
    if db then db:close() end
    lock:close()
    if not repaired then error(message, 0) end
    return nil, message
end

-- Opens a store that this user may only read. While another process writes, its journal is there; without one SQLite
-- could not make the files that it shares with writers, and takes the file as it is.
local function open_to_read(path)
    local lock = host.kind(path .. ".lock") and sqlite.lock(path, "read") or nil
    local escaped = path:gsub("^//+", "/"):gsub("[^%w/._~-]", function(c) return string.format("%%%02X", c:byte()) end)
    local uri = "file:" .. escaped .. "?mode=ro" .. (host.kind(path .. "-wal") and "" or "&immutable=1")
    local db = assert(sqlite.open(path, uri))
    local good, found = pcall(inspect, db, path, true)
    if good then return setmetatable({ path = path, db = db, lock = lock }, store) end
    db:close()
    if lock then lock:close() end
    if type(found) ~= "table" then error(found, 0) end
    local damaged = found.what == "damaged" and string.format("is damaged (%s), and cannot be written", found.why)
    error(path .. ": " .. (damaged or "is no store of lookupc"), 0)
end

-- Opens the store at `path`, which is made if need be; `reads`: it is not written, and may be one that cannot be.
-- Returns it, and a line if it was damaged. Raises one line for a file that is none.
function store.open(path, reads)
    if host.kind(path) == "directory" then error(path .. ": is a directory", 0) end
    local folder = path:match "^(.+)/[^/]*$"
    local writable = sqlite.writable(path) and sqlite.writable(folder or ".")
    if reads and host.kind(path) and not writable then return open_to_read(path) end
    if folder then assert(host.write_directory(folder, {})) end
    local problem
    for _, kind in ipairs { "shared", "exclusive", "shared" } do
        local opened, message = try(path, kind)
        problem = problem or message
        if opened and kind == "exclusive" then
            opened:close() -- another process has repaired it
        elseif opened then
            return opened, problem
        end
    end
    error(path .. ": is damaged again and again", 0)
end

function store:close()
    self.db:close()
    if self.lock then self.lock:close() end
end

store.__close = store.close

-- Adds records; those it has already are left alone, so that order and repetition do not matter. Returns how many were
-- new, and the ids of their keys, new or not, as a set.
function store:merge(records)
    local keys = {}
    local added = transaction(self.db, function()
        local sum = 0
        for _, r in ipairs(records) do
            local new, id = insert(self.db, r)
            sum, keys[id] = sum + new, true
        end
        return sum
    end)
    return added, keys
end

-- Every key: { {id, key, count, first, last} } in the order of ids; count of records, times of the first and the last.
function store:keys()
    local list = assert(self.db:query([[
        SELECT key AS id, count(*) AS count, min(time) AS first, max(time) AS last, min(line) AS line
        FROM records GROUP BY key ORDER BY key]]))
    for _, row in ipairs(list) do
        row.key, row.line = assert(record.parse(row.line)).key, nil
    end
    return list
end

local order = summary.by { "regime", "batch", "codes", "tables", "candidate", "time", "check" }

-- The records of a key, in an order that does not depend on how they came.
function store:records(id)
    local list = assert(self.db:query("SELECT line FROM records WHERE key = ?", id))
    for i, row in ipairs(list) do
        list[i] = assert(record.parse(row.line))
    end
    table.sort(list, order)
    return list
end

-- The key whose id begins with `prefix`; raises one line if it is not one.
function store:key_of(prefix)
    local found = {}
    for _, row in ipairs(self:keys()) do
        if row.id:sub(1, #prefix) == prefix then found[#found + 1] = row end
    end
    if #found == 0 then
        error(string.format('"%s": no key of %s begins so (see lookupc tuned list)', prefix, self.path), 0)
    end
    if #found > 1 then
        error(string.format('"%s": %d keys of %s begin so: give more digits', prefix, #found, self.path), 0)
    end
    return found[1]
end

-- Removes the records measured before `time`, in seconds since 1970. Returns how many.
function store:prune_older(time)
    assert(self.db:query("DELETE FROM records WHERE time < ?", time))
    return self.db:changes()
end

-- Removes the records of other templates than those of `digest`. Returns how many.
function store:prune_templates(digest)
    return transaction(self.db, function()
        local removed = 0
        for _, row in ipairs(self:keys()) do
            if row.key.templates ~= digest then
                assert(self.db:query("DELETE FROM records WHERE key = ?", row.id))
                removed = removed + self.db:changes()
            end
        end
        return removed
    end)
end

local function texts(fields)
    local list = {}
    for i, field in ipairs(fields) do
        list[i] = field.text
    end
    return table.concat(list, ", ")
end

-- Whether one of the records has the fields in `where`, and is a measurement unless they say else. A field may name
-- several values.
local function has(records, where)
    for _, r in ipairs(records) do
        local good = where.status ~= nil or r.status == "ok"
        for name, value in pairs(where) do
            local one = false
            for _, possible in ipairs(type(value) == "table" and value or { value }) do
                one = one or r[name] == possible
            end
            good = good and one
        end
        if good then return true end
    end
    return false
end

local subject = { "model", "tables", "projection", "isa" }

-- The keys with records for the subject of `wanted`: the usable ones, nearest first, and the refused ones with the
-- reason.
local function candidates(keys, wanted)
    local usable, refused = {}, {}
    for _, row in ipairs(keys) do
        local same = true
        for _, name in ipairs(subject) do
            same = same and row.key[name] == wanted[name]
        end
        if same then
            local level, fields = key.compare(wanted, row.key)
            local entry =
                { id = row.id, level = level, differences = #fields, count = -row.count, reason = texts(fields) }
            local list = level and usable or refused
            list[#list + 1] = entry
        end
    end
    table.sort(usable, summary.by { "level", "differences", "count", "id" })
    table.sort(refused, summary.by { "differences", "id" })
    return usable, refused
end

-- The records nearest to key `wanted` that hold one with the fields in `where`, such as { regime = "few" } or { status
-- = "chosen" }: { level = "exact" | "microarchitecture" | "isa" | "default", id, records, differs = text, refused = {
-- {id, reason} } }. At "default" there are none. Refused are keys of the same model and types that were nearer or of no
-- use.
function store:look_up(wanted, where)
    local usable, refused = candidates(self:keys(), wanted)
    for _, entry in ipairs(usable) do
        local records = self:records(entry.id)
        if has(records, where or {}) then
            return {
                level = key.levels[entry.level],
                id = entry.id,
                records = records,
                differs = entry.reason,
                refused = refused,
            }
        end
        refused[#refused + 1] = { id = entry.id, reason = "has no measurement of this case" }
    end
    return { level = "default", records = {}, differs = "", refused = refused }
end

-- A found level in one line.
function store.say(found)
    local parts = { "records used: " .. found.level }
    if found.id then parts[1] = parts[1] .. ", key " .. found.id:sub(1, 12) end
    if found.differs ~= "" then parts[1] = parts[1] .. ", " .. found.differs end
    for _, entry in ipairs(found.refused) do
        parts[#parts + 1] = "refused: key " .. entry.id:sub(1, 12) .. ", " .. entry.reason
    end
    return table.concat(parts, "; ")
end

return store
