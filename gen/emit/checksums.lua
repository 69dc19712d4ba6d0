-- What firmware checks its weights with: tables and results of CRC-32 and SHA-256.
local host = require "host"

local checksums = {}

local crc_polynomial = 0xedb88320

-- What the last `bits` bits of a CRC-32 add to it when they leave it: a list by their value + 1.
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

-- What C needs to check the weights `bytes`, in numbers of 32 bits:
--   crc_table, crc   the table for four bits at a time, and the result
--   sha256_constants, sha256_start, sha256   lists: the constants of the rounds, the state before, the result
function checksums.of(bytes)
    local digest = {}
    for word in host.sha256(bytes):gmatch("%x%x%x%x%x%x%x%x") do
        digest[#digest + 1] = tonumber(word, 16)
    end
    return {
        crc_table = crc_table(4),
        crc = crc32(bytes),
        sha256_constants = root_fractions(64, 1 / 3),
        sha256_start = root_fractions(8, 1 / 2),
        sha256 = digest,
    }
end

return checksums
