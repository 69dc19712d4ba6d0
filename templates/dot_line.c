//$ -- One line of four rows: interleaved, times the upper and the lower bytes of four scores.
//$ local dot, word = isa.dot, isa.index
$(i){
//$ for r, name in ipairs(rows) do
//$     if name == "line" .. r - 1 then
$(i)    const $(word) $(name) = $(line.columns == dot.columns and dot.load("row" .. r - 1, from) or dot.load_partial("row" .. r - 1, from, line.columns));
//$     end
//$ end
//$ local steps, quads = dot.interleave(rows)
//$ for _, step in ipairs(steps) do
$(i)    const $(word) $(step.name) = $(step.value);
//$ end
//$ for n, quad in ipairs(quads) do
$(i)    const $(word) quad$(n - 1) = $(quad);
//$ end
//$ for n = 0, #quads - 1 do
$(i)    $(line.high)$(n) = $(dot.dot(line.high .. n, "scores_high", "quad" .. n));
$(i)    $(line.low)$(n) = $(dot.dot(line.low .. n, "scores_low", "quad" .. n));
//$ end
$(i)}
