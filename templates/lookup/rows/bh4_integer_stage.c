//$ takes helper, stage, target, words_at, counted_blocks, integers, other_units
//$ -- A stage of BH4 for tokens in rows, in integers: rounds the inputs of all tokens first.
$(include("templates/lookup/rows/round_tokens.c", { source = stage.source, x_step = stage.x_step, inputs = stage.inputs }))
//$ for _, p in ipairs(stage.products) do
    factors.scales = $(sum("scales", p.scale_at));
    factors.units = $(sum("units", other_units[p])); //$ if other_units[p]
    factors.starts = $(sum("starts", other_units[p])); //$ if other_units[p] and integers.starts
    $(helper)_$(p.name)($(sum("integers", p.integers_at)), $(integers.pitch),
        $(sum("w", words_at(p, stage))),
        &factors, $(sum(target, p.y_at)), $(stage.y_step), $(listed("tokens", counted_blocks(p))));
//$ end
$(include("templates/lookup/rows/bh4_butterflies.c")) //$ if #stage.steps > 0
