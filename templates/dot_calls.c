//$ -- Adds the rows of all tables to a tile of columns, span by span, a group of tables after the other: sums wait as integers in between.
//$ local function call(i, run, k, from, to, next)
//$     local at, text = sum(table, k.table), from .. ", " .. to .. ", tokens" .. (ask and ", " .. next or "") .. ");"
//$     for n, place in ipairs(dot_places) do
//$         local more = #dot_places > 1 and "    " or ""
//$         if #dot_places > 1 then
$(i)$(n == 1 and "if (packs)" or "else")
//$         end
$(i)$(more)$(dot_name(run, t, place))($((place.apart or not pack) and at or helper .. "_pack_" .. t.width .. "(" .. at .. ", " .. run.tables .. ", slice)"), $(sum("code", k.code)), $(sum("words", k.words)),
$(i)$(more)    $(text)
//$     end
//$ end
//$ local pitch_of = dot_pitch(t.width)
//$ local row_words = shape.rows * pitch
//$ for n, span in ipairs(v.spans) do
//$     local waiting, y = "sums, " .. pitch_of, "score_units" .. (n > 1 and " + " .. (n - 1) * v.chunk or "") .. ", " .. (n > 1 and columns .. ", " .. shape.y_step or bias .. ", 0") .. ", " .. columns
//$     local k, last = span.table, span.table + span.tables
//$     local function place(k) return { table = k * row_words, code = k * tile, words = k // isa.dot.rows * 2 * tile } end
//$     local function following(k) return k < shape.h and sum(table, k * row_words) or after end
//$     local from = "zeros, 0"
//$     if k + v.group < last then
//$         call(i, span.group, place(k), from, "sums", following(k + v.group))
//$         from, k = waiting, k + v.group
//$     end
//$     local middle = (last - 1 - k) // v.group -- groups that are neither first nor last
//$     if middle > 1 then
$(i)for (size_t k = $(k); k < $(k + middle * v.group); k += $(v.group)) {
//$         local words = 2 * tile // isa.dot.rows
//$         call(i .. "    ", span.group, { table = "k * " .. row_words, code = "k * " .. tile, words = "k * " .. words }, from, "sums", table .. " + (k + " .. v.group .. ") * " .. row_words)
$(i)}
//$     elseif middle == 1 then
//$         call(i, span.group, place(k), from, "sums", following(k + v.group))
//$     end
//$     k = k + middle * v.group
//$     call(i, span.last, place(k), from, y, following(last))
//$ end
