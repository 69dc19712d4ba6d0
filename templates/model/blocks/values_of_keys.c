//$ takes v, type, made, panel, count, rounds
//$ -- The values of heads, made of sums of keys: rows of the map V, whose panels may have outputs of two heads.
//$ local width, aligned = shape.width, shape.width % panel == 0
//$ if shape.rounded then
//$ local given = listed("a.sums", names.constant("VALUE_PITCH"), "a.rounded_sums", made.pitch, times(count, shape.group))
        $(rounds[shape.e])_rounded_$(shape.e)($(given));
//$ end
        for (size_t head = 0; head < $(shape.heads); ++head) {
//$ if aligned then
            const size_t panel = $(times("head", width // panel)), panels = $(width // panel);
//$ else
            const size_t panel = head * $(width) / $(panel);
            const size_t panels = (head * $(width) + $(width + panel - 1)) / $(panel) - panel;
//$ end
            map.weights = all.weights + panel * $(made.panel_step);
            map.scales = all.scales + panel * $(panel); //$ if type.scaled
            map.bias = all.bias + panel * $(panel);
            map.panels = panels;
//$ local to = aligned and "y + head * " .. width .. ", y_step" or "a.head_values, " .. made.head_pitch
            $(v.names.product)(&map, a.$(made.sums) + head * $(made.pitch), $(shape.heads) * $(made.pitch), $(to), $(count));
//$ if not aligned then
            for (size_t own = 0; own < $(count); ++own)
                for (size_t i = 0; i < $(width); ++i)
                    y[own * y_step + head * $(width) + i] =
                        one * a.head_values[own * $(made.head_pitch) + head * $(width) % $(panel) + i];
//$ end
        }
