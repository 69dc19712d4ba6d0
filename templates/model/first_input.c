//$ takes helper, embedding, has, calls, maps, ids, position, count, to
//$ -- Makes `to` the input of the first block, of `count` ids from position `position` on.
//$ local macro, width, map, projected = names.macro, embedding.width, embedding.map, embedding.projected
//$ local norm, copied_at = embedding.norm and calls.norms.embedding, projected and projected.copied_at
//$ if map or projected then
//$ local rows = embedding.positions and sum(position, "row") .. ", " or ""
        for (size_t row = 0; row < $(count); row += $(macro("ROWS"))) {
            const size_t some = $(count) - row < $(macro("ROWS")) ? $(count) - row : $(macro("ROWS"));
//$ if projected then
            float *given = $(to) + $(times("row", embedding.input));

//$ end
            $(helper)_embed(weights, $(ids) + row, $(rows)some, embedded); //$ if has("embedded")
            $(calls.norms.factors.name)(embedded, $(width), factors, some); //$ if projected and projected.norm
//$ if map then
            $(norm.name)(embedded, $(width), $(norm.weights), embedded, $(width), some); //$ if norm
$(include("templates/model/map_rows.c", { of = maps.embedding, rows = "some" }))
            for (size_t token = 0; token < some; ++token)
                for (size_t i = 0; i < $(embedding.input); ++i)
                    $(to)[(row + token) * $(embedding.input) + i] = one * mapped[token * $(map.pitch) + i];
//$ else
            $(helper)_project(weights, $(ids) + row, $(projected.parts[1].positions and rows or "")some,
                $(projected.norm and "factors, " or "")given);
//$ end
            $(norm.name)(embedded, $(width), $(norm.weights), given + $(copied_at), $(embedding.input), some); //$ if copied_at and norm
//$ if copied_at and not norm then
            for (size_t token = 0; token < some; ++token)
                for (size_t i = 0; i < $(width); ++i)
                    given[token * $(embedding.input) + $(copied_at) + i] = one * embedded[token * $(width) + i];
//$ end
        }
//$ else
        $(helper)_embed(weights, $(ids), $(embedding.positions and position .. ", " or "")$(count), $(to));
        $(norm.name)($(to), $(width), $(norm.weights), $(to), $(width), $(count)); //$ if norm
//$ end
