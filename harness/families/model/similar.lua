-- The command similar: ranks lines by how similar they are to a text, or rates pairs of a file as people did.
local correlation = require "harness.families.model.correlation"
local csv = require "harness.families.model.csv"
local figures = require "gen.plan.figures"
local host = require "host"
local json = require "json"
local loss = require "harness.families.model.loss"
local misuse = require "gen.schema.misuse"
local rows_of = require "rows"
local shortened = require "gen.schema.shortened"
local text_file = require "harness.base.text_file"
local text_model = require "harness.families.model.text_model"
local text_vectors = require "harness.families.model.text_vectors"

local similar = {}

local most_csv_bytes = 1 << 30

-- From the cosine of two vectors to their similarity, by the name that --similarity takes.
local similarities = {
    angle = function(cosine) return 1 - math.acos(cosine) / math.pi end,
    cosine = function(cosine) return cosine end,
}

local function row(rows, i, columns) return rows:sub((i - 1) * 4 * columns + 1, i * 4 * columns) end

-- Puts `found` into `list`, the most similar first and of equal ones the first, which keeps at most `top`.
local function insert(list, found, top)
    local low, high = 1, #list + 1
    while low < high do
        local middle = (low + high) // 2
        if list[middle].similarity >= found.similarity then
            low = middle + 1
        else
            high = middle
        end
    end
    if low > top then return end
    table.insert(list, low, found)
    list[top + 1] = nil
end

function similar.rank(path, text, options)
    local similarity = similarities[options.similarity]
    if options.top == 0 then misuse("--top: 0: must be an integer from 1 on") end
    local next_line = text_vectors.of_lines(options.lines)
    local model, p = text_model.open(path, options, "vectors", "text")
    local columns, query, list = p.widths.out, nil, {}
    text_vectors.each(model, p, text_vectors.of_list { text }, options, function(_, rows) query = rows end)
    local lines = { truncate = options.truncate, leave_out = true }
    text_vectors.each(
        model,
        p,
        function()
            local item = next_line()
            while item and item.text:find "^%s*$" do
                item = next_line()
            end
            return item
        end,
        lines,
        function(item, rows, i)
            local cosine = rows_of.cosines(row(rows, i, columns), columns, query)[1]
            if cosine ~= cosine then error(item.where .. ": has a vector without direction", 0) end
            insert(list, { similarity = similarity(cosine), line = item.number, text = item.text }, options.top)
        end
    )
    for _, found in ipairs(list) do
        local line = options.json
                and assert(json.encode({
                    similarity = found.similarity,
                    line = found.line,
                    text = utf8.len(found.text) and found.text or json.null,
                }, "compact"))
            or string.format("%7.4f  %s", found.similarity, found.text)
        if not host.print(line) then break end
    end
    return 0
end

-- Whether `text` is a number by which nothing can be sorted: no heading.
local function is_no_score(text) return text:lower():find "^%s*[+-]?nan%s*$" or text:lower():find "^%s*[+-]?inf" end

-- The pairs of the file `path`: { first, second, score, line }. A first row without a number in it is a heading.
local function pairs_of(path)
    local list = {}
    for i, found in ipairs(csv.rows(path, text_file.read("--score", path, most_csv_bytes))) do
        local fields, where = found.fields, path .. ":" .. found.line
        if #fields ~= 3 then
            error(string.format("%s: %d columns: must be 3: sentence, sentence, score", where, #fields), 0)
        end
        local score = tonumber(fields[3])
        if score and score == score and math.abs(score) < math.huge then
            list[#list + 1] = { fields[1], fields[2], score = score, line = found.line }
        elseif i > 1 or is_no_score(fields[3]) or score then
            error(string.format('%s: "%s": must be a number', where, shortened(fields[3], 40):gsub("%c", "?")), 0)
        end
    end
    if #list < 2 then error(path .. ": has fewer than two pairs", 0) end
    return list
end

-- How the similarity of the pairs `list`, as the model of the options has it, correlates with their scores: Pearson's
-- and Spearman's.
local function correlations(path, list, options)
    local similarity = similarities[options.similarity]
    local model, p = text_model.open(path, options, "vectors", "text")
    local columns, at, first = p.widths.out, 0, nil
    local found, wanted = {}, {}
    local function next_text()
        at = at + 1
        local pair = list[(at + 1) // 2]
        return pair and { text = pair[2 - at % 2], where = options.score .. ":" .. pair.line, pair = pair }
    end
    text_vectors.each(model, p, next_text, options, function(item, rows, i)
        local vector = row(rows, i, columns)
        if not first then
            first = vector
            return
        end
        local cosine = rows_of.cosines(vector, columns, first)[1]
        if cosine ~= cosine then error(item.where .. ": has a vector without direction", 0) end
        found[#found + 1], wanted[#wanted + 1], first = similarity(cosine), item.pair.score, nil
    end)
    return correlation.pearson(found, wanted), correlation.spearman(found, wanted)
end

function similar.score(path, options)
    local budget, list = loss.budget(options), pairs_of(options.score)
    local pearson, spearman = correlations(path, list, options)
    local r = {
        pairs = #list,
        similarity = options.similarity,
        pearson = pearson,
        spearman = spearman,
    }
    if pearson ~= pearson then
        error(options.score .. ": scores, or similarities, are all equal: nothing correlates", 0)
    end
    local form = "%s pairs, %s: Pearson %.4f, Spearman %.4f"
    local line = form:format(figures.grouped(#list), options.similarity, pearson, spearman)
    if budget then
        local exact = correlations(path, list, loss.in_float32(options))
        line = line .. loss.judge(r, exact - pearson, exact, budget)
    end
    host.print(options.json and assert(json.encode(r, "compact")) or line)
    return loss.status(r, "Pearson's correlation: these types")
end

-- The command, with the text or with --score.
function similar.run(path, texts, options)
    if options.score then
        for _, name in ipairs { "lines", "top" } do
            if options[name] then
                misuse(string.format("--%s: %s: is for a text, not for --score", name, options[name]))
            end
        end
        if texts[1] then misuse("--score: " .. options.score .. ": takes no text") end
        return similar.score(path, options)
    end
    if not texts[1] then error("a text is missing, or --score with pairs", 0) end
    options.top = options.top or 10
    return similar.rank(path, texts[1], options)
end

return similar
