-- Which projections `fuse` merges exactly into others. Where it cannot, a model without them is an architecture of its
-- own, which is trained so.
local fusable = {}

-- Whether the checkpoint of model `m` is one that `fuse` writes.
function fusable.is_fused(m) return m.attention.eliminate ~= "none" or m.attention.cache == "k" end

-- Whether a linear map stands between the rows of the embedding and the first block.
function fusable.has_map(m) return m.embedding ~= nil and (m.embedding.d or m.d) ~= m.d end

-- What stands between the rows of the embedding and the first block, into which nothing is merged.
local between = {
    norm = "fuse merges weights into rows of the embedding, which is exact only without a norm behind them",
    sinusoidal = "fuse merges weights into rows of the embedding, which is exact only for learned or rotary positions",
}

-- Why the projections in the word `eliminate` cannot be merged exactly in model `m`: a key chain, a value and a rule,
-- or nil.
function fusable.obstacle(m, eliminate)
    for _, key in ipairs { "skip", "norm" } do
        if m[key] then
            local rule = "fuse merges weights across it, which is exact only without skip connections and norms"
            return { key }, key == "skip" or nil, rule
        end
    end
    if m.embedding and not fusable.has_map(m) then
        for _, key in ipairs { "norm", "sinusoidal" } do
            if m.embedding[key] then return { "embedding", key }, nil, between[key] end
        end
        if m.tied and m.attention.eliminate ~= "none" then
            local rule = "fuse parts the head from the embedding: the model of what it writes has tied = false"
            return { "tied" }, true, rule
        end
    end
    if eliminate == "none" then return nil end
    local chain, first, p = { "attention", "eliminate" }, eliminate:sub(1, 1), eliminate:find("P", 1, true)
    if m.parallel and p then
        return chain,
            eliminate,
            "the P of a parallel block adds to the FFN's output and cannot be merged exactly; eliminate "
                .. first
                .. " alone"
    end
    local merged = m.parallel and first .. "^-1" or p and "P"
    if merged and m.ffn.kind == "lookup" and m.ffn.projection.kind == "bh4" then
        return chain, eliminate, merged .. ' cannot be merged into ffn.projection.kind = "bh4", only into "dense"'
    end
end

return fusable
