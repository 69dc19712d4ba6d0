//$ -- Adds the rows of all tables to a tile of columns, span by span, a group of tables after the other: sums wait as integers in between.
//$ local row_words, lane_words, group = shape.rows * pitch, 2 * tile // isa.gather_i8.rows, v.group
//$ local function following(k) return k < shape.h and sum(table, k * row_words) or after end
//$ local function calls(i, packs)
//$     local function call(i, run, k, from, to, next)
//$         local function offset(base, step) return type(k) == "number" and sum(base, k * step) or base .. " + " .. k .. " * " .. step end
//$         local at = offset(table, row_words)
//$         if packs then at = helper .. "_pack_" .. t.width .. "(" .. at .. ", " .. run.tables .. ", slice)" end
$(i)$(dot_name(run, t))($(at), $(pack and (packs and pack.pitch or pitch) .. ", " or "")$(offset("code", tile)), $(offset("words", lane_words)),
$(i)    $(from), $(to), tokens$(ask and ", " .. next or ""));
//$     end
//$     for n, span in ipairs(v.spans) do
//$         local first, last, waiting = span.table, span.table + span.tables - span.last.tables, "sums, " .. dot_pitch(t.width)
//$         if first + group == last then
//$             call(i, span.group, first, "zeros, 0", "sums", following(last))
//$         elseif first < last then
$(i)for (size_t k = $(first); k < $(last); k += $(group))
//$             local start = first == 0 and "k > 0" or "k > " .. first
//$             call(i .. "    ", span.group, "k", start .. " ? sums : zeros, " .. start .. " ? " .. dot_pitch(t.width) .. " : 0", "sums", table .. " + (k + " .. group .. ") * " .. row_words)
//$         end
//$         local unit = sum("score_units", (n - 1) * v.chunk)
//$         call(i, span.last, last, first < last and waiting or "zeros, 0", unit .. ", " .. (n > 1 and columns .. ", " .. shape.y_step or bias .. ", 0") .. ", " .. columns .. (v.stream and ", streams" or ""), following(span.table + span.tables))
//$     end
//$ end
//$ if pack then
$(i)if (tokens < $(v.packs_from)) {
$(i)    /* too few to make up for copies */
//$     calls(i .. "    ", false)
$(i)} else {
//$     calls(i .. "    ", true)
$(i)}
//$ else
//$     calls(i, false)
//$ end
