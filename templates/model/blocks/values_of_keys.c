//$ takes v, type, made, panel, some, rounds
//$ -- The values of heads, made of sums of keys: rows of the map V, whose panels may have outputs of two heads.
//$ local width, count, aligned = shape.width, some and "count" or "1", shape.width % panel == 0
//$ if shape.rounded then
//$ local given = listed("sums", names.constant("VALUE_PITCH"), "rounded_sums", made.pitch, times(count, shape.group))
        $(rounds[shape.e])_rounded_$(shape.e)($(given));
//$ end
        for (size_t head = 0; head < $(shape.heads); ++head) {
//$ if aligned then
            const size_t panel = $(times("head", width // panel)), panels = $(width // panel);
//$ else
            const size_t panel = head * $(width) / $(panel);
            const size_t panels = (head * $(width) + $(width + panel - 1)) / $(panel) - panel;
//$ end
//$ local given = listed(
//$     made.sums .. " + head * " .. made.pitch,
//$     shape.heads .. " * " .. made.pitch,
//$     "w + panel * " .. made.panel_step,
//$     type.scaled and "w_scales + panel * " .. panel,
//$     "bias + panel * " .. panel,
//$     aligned and "y + token * y_step + head * " .. width .. ", y_step" or "head_values, " .. made.head_pitch,
//$     names.constant("V_INPUTS"),
//$     "panels",
//$     count,
//$     v.unpacked_at and "unpacked"
//$ )
            $(v.names.product)($(given));
//$ if not aligned then
            for (size_t own = 0; own < $(count); ++own)
                for (size_t i = 0; i < $(width); ++i)
                    y[(token + own) * y_step + head * $(width) + i] =
                        one * head_values[own * $(made.head_pitch) + head * $(width) % $(panel) + i];
//$ end
        }
