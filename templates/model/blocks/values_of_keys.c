//$ takes v, type, made, panel, count, rounds, structs, matrix
//$ -- The values of heads, made of sums of keys: rows of the map V, whose panels may have outputs of two heads.
//$ local width, aligned = shape.width, shape.width % panel == 0
//$ if shape.rounded then
//$ local given = listed("a->sums", names.constant("VALUE_PITCH"), "a->rounded_sums", made.pitch, times(count, shape.group))
        $(rounds[shape.e])_rounded_$(shape.e)($(given));
//$ end
        for (size_t head = 0; head < $(shape.heads); ++head) {
//$ if aligned then
            const size_t panel = $(times("head", width // panel)), panels = $(width // panel);
//$ else
            const size_t panel = head * $(width) / $(panel);
            const size_t panels = (head * $(width) + $(width + panel - 1)) / $(panel) - panel;
//$ end
            $(matrix) map;
            $(shape.rounded and names.rounded_rows or names.rows) means;
            $(names.rows) made;

            map.weights = layer->v.weights + panel * $(made.panel_step);
            map.scales = layer->v.scales + panel * $(panel); //$ if type.scaled
            map.bias = layer->v.bias + panel * $(panel);
            map.inputs = layer->v.inputs;
            map.panels = panels;
            map.strip = layer->v.strip; //$ if structs.converts
            means.at = a->$(made.sums) + head * $(made.pitch);
            means.step = $(shape.heads) * $(made.pitch);
//$ if aligned then
            made.at = y + token * y_step + head * $(width);
            made.step = y_step;
//$ else
            made.at = a->head_values;
            made.step = $(made.head_pitch);
//$ end
            $(v.names.product)(&map, &means, &made, $(count));
//$ if not aligned then
            for (size_t own = 0; own < $(count); ++own)
                for (size_t i = 0; i < $(width); ++i)
                    y[(token + own) * y_step + head * $(width) + i] =
                        one * a->head_values[own * $(made.head_pitch) + head * $(width) % $(panel) + i];
//$ end
        }
