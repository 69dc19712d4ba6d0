-- One file of all that measuring processes timed, as Google Benchmark writes it and its tools, such as compare.py, read
-- it: each repetition of each call, under the name of the job's model.
local host = require "host"
local json = require "json"

local raw = {}
raw.__index = raw

function raw.new(path) return setmetatable({ path = path }, raw) end

-- Adds what a process wrote.
function raw:add(text)
    local found = assert(json.decode(text))
    self.all = self.all or { context = found.context, benchmarks = json.array {} }
    for key, value in pairs(found.context) do
        self.all.context[key] = self.all.context[key] or value
    end
    table.move(found.benchmarks, 1, #found.benchmarks, #self.all.benchmarks + 1, self.all.benchmarks)
end

-- Raises one line if the file cannot be written.
function raw:write() assert(host.write_file(self.path, assert(json.encode(self.all)) .. "\n")) end

return raw
