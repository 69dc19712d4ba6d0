-- How many CPUs this program may keep busy: those that it may run on, and no more than its control groups have a quota
-- of, such as that of `docker run --cpus 2`.
local host = require "host"
local process = require "process"

local cpus = {}

-- The numbers in a small file, math.huge for a word such as "max"; none where there is no such file.
local function numbers(path)
    local list = {}
    for word in (host.read(path, 4096) or ""):gmatch "%S+" do
        list[#list + 1] = tonumber(word) or math.huge
    end
    return table.unpack(list)
end

-- The quota of the control group with the folder `path`, in CPUs: of version 2, and of version 1, where -1 is none.
local function quota_of(path)
    local quota, period = numbers(path .. "/cpu.max")
    if not period then
        quota, period = numbers(path .. "/cpu.cfs_quota_us"), numbers(path .. "/cpu.cfs_period_us")
    end
    return quota and period and quota > 0 and period > 0 and quota / period or math.huge
end

-- The lowest quota of this program's control groups and of those that these are in. `root`: what stands before the
-- paths of /proc and /sys.
function cpus.quota(root)
    local least = math.huge
    for names, group in (host.read(root .. "/proc/self/cgroup", 1 << 20) or ""):gmatch "%d+:([^:\n]*):([^\n]*)" do
        local v1 = ("," .. names .. ","):find(",cpu,", 1, true) and { "/cpu", "/" .. names }
        for _, mounted in ipairs(names == "" and { "", "/unified" } or v1 or {}) do
            local path = group:gsub("/+$", "")
            repeat -- in a container the last one, "", may be the only one that it sees
                least = math.min(least, quota_of(root .. "/sys/fs/cgroup" .. mounted .. path))
                path = path:match "^(.*)/[^/]*$"
            until not path
        end
    end
    return least
end

local quota -- of this program

function cpus.count()
    quota = quota or cpus.quota ""
    return math.max(1, math.min(process.affinity(), math.tointeger(math.min(quota, 1 << 30) // 1)))
end

return cpus
