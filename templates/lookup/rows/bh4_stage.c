//$ takes helper, stage, target, words_at, counted_blocks
//$ -- A stage of BH4 for tokens in rows: products of blocks, for all tokens, then the butterflies of each token.
//$ for _, p in ipairs(stage.products) do
    $(helper)_$(p.name)($(sum(stage.source, p.x_at)), $(stage.x_step),
        $(sum("w", words_at(p, stage))),
        $(sum(target, p.y_at)), $(stage.y_step), $(listed("tokens", counted_blocks(p))));
//$ end
$(include("templates/lookup/rows/bh4_butterflies.c")) //$ if #stage.steps > 0
