-- Parts of matrices that are bytes of float32, row by row.
local matrix = {}

local function part(bytes, first, count) return bytes:sub(4 * first + 1, 4 * (first + count)) end

-- Rows `numbers` (from 1) of the matrix `bytes`, whose rows are `width` wide.
function matrix.rows(bytes, numbers, width)
    local list = {}
    for i, number in ipairs(numbers) do
        list[i] = part(bytes, (number - 1) * width, width)
    end
    return table.concat(list)
end

-- Its columns `numbers` below each other: the matrix of them, transposed.
function matrix.columns_as_rows(bytes, numbers, width)
    local list = {}
    for _, number in ipairs(numbers) do
        for at = number - 1, #bytes // 4 - 1, width do
            list[#list + 1] = part(bytes, at, 1)
        end
    end
    return table.concat(list)
end

-- The matrix, transposed.
function matrix.transposed(bytes, width)
    local all = {}
    for number = 1, width do
        all[number] = number
    end
    return matrix.columns_as_rows(bytes, all, width)
end

return matrix
