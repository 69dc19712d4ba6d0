-- The list of score functions: what a token multiplies the row of a table by. One row a score, everything else loops
-- over it or reads its fields.
--
-- With z the bits of a table and S the signs that a row's number stands for, p = exp<z, S> / product of (exp z + exp
-- -z) is the row's share of the softmax over all rows.
--
--   share           whether p is a factor: kernels multiply 1 + exp(-2 |z|) over the bits
--   along           whether <z, S> is a factor: kernels add |z| over the bits, and take 2 |z| off for each bit in which
--                   a row is not the best one
--   scored          whether there is a factor, which follows from these two. Without one scores are 1 and kernels have
--                   none: each of the rows that a table gives counts once
--   name            in model files, in names of emitted kernels, and in the table of harness/reference/lookup.c, whose
--                   error bounds follow from the same factors
--   doc             for help
--   never_negative  whether the score of a table's best row cannot be below 0: sums of integers rely on it
--   best            what comments of kernels call the score of the best row; top_m, all: that of any of the m best
--                   rows, and of any of all rows; absent where scores are 1
local score = {}

score.list = {
    {
        name = "gelu",
        doc = "p_k times the sum of |z|",
        share = true,
        along = true,
        never_negative = true,
        best = "sum of |z| / product of (1 + exp(-2 |z|))",
        top_m = "exp(-2 cost) (sum of |z| - 2 cost) / product of (1 + exp(-2 |z|))",
        all = "product of (exp(-2 |z|) where the vertex differs from the best one) <z, vertex> / \z
            product of (1 + exp(-2 |z|))",
    },
    {
        name = "softmax",
        doc = "p_k",
        share = true,
        along = false,
        never_negative = true,
        best = "1 / product of (1 + exp(-2 |z|))",
        top_m = "exp(-2 cost) / product of (1 + exp(-2 |z|))",
        all = "product of (exp(-2 |z|) where the vertex differs from the best one) / product of (1 + exp(-2 |z|))",
    },
    { name = "one", doc = "1: a plain lookup", share = false, along = false, never_negative = true },
}

score.names, score.docs = {}, {}
local by_name = {}
for i, row in ipairs(score.list) do
    row.scored = row.share or row.along
    score.names[i], score.docs[i], by_name[row.name] = row.name, row.doc, row
end

-- The row of that name.
function score.get(name) return by_name[name] or error("no score " .. tostring(name)) end

return score
