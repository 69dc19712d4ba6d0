//$ takes pass, i, bytes_of
//$ if pass.kind == "classes" then
/* Pass $(i): removes characters, or makes spaces of them, or puts spaces around them. */
static size_t $(model)_pass_$(i)(const $(names.weights) *weights, const unsigned char *from, size_t bytes, unsigned char *to, size_t room)
{
    size_t out = 0, length;
    for (size_t in = 0; in < bytes; in += length) {
        const unsigned class = $(model)_property(weights->classes_pages, weights->classes,
            $(model)_character(from + in, bytes - in, &length));
        if (room - out < length + 2)
            return $(names.macro("FULL"));
//$ if pass.drop > 0 then
        if (class & $(pass.drop)u)
            continue;
//$ end
//$ if pass.blank > 0 then
        if (class & $(pass.blank)u) {
            to[out++] = ' ';
            continue;
        }
//$ end
//$ if pass.pad > 0 then
        if (class & $(pass.pad)u)
            to[out++] = ' ';
//$ end
        $(model)_copy(from + in, length, to + out);
        out += length;
//$ if pass.pad > 0 then
        if (class & $(pass.pad)u)
            to[out++] = ' ';
//$ end
    }
    return out;
}
//$ elseif pass.kind == "spaces" then
//$ local prefix = pass.prefix ~= "never"
//$ local runs = pass.collapse and ", each run one and none at the ends" or ""
//$ local at_start = pass.prefix == "first" and ", int at_start" or ""
/* Pass $(i): what spaces become$(runs)$(prefix and ", and what the text begins with" or ""). */
static size_t $(model)_pass_$(i)(const $(names.weights) *weights, const unsigned char *from, size_t bytes,
    unsigned char *to, size_t room$(at_start))
{
    static const unsigned char space[$(#pass.to)] = { $(bytes_of(pass.to)) };
    size_t in = 0, out = 0, length;
    int wanted = $(pass.prefix == "first" and "at_start" or prefix and "1" or "0"); /* a space before what comes next */
    (void) weights; //$ if not pass.wide

    while (in < bytes) {
//$ if pass.wide then
        const int blank = ($(model)_property(weights->classes_pages, weights->classes,
            $(model)_character(from + in, bytes - in, &length)) & 4u) != 0;
//$ else
        const int blank = from[in] == ' ';
        length = 1;
//$ end
//$ if pass.collapse then
        if (blank) {
            if (out > 0)
                wanted = 1;
            in += length;
            continue;
        }
//$ end
        if (room - out < $(2 * #pass.to) + length)
            return $(names.macro("FULL"));
//$ if pass.once then
//$ if pass.collapse then
        if (wanted && $(model)_begins(from + in, bytes - in, space, $(#pass.to)))
            wanted = 0;
//$ else
        if (wanted && (blank || $(model)_begins(from + in, bytes - in, space, $(#pass.to))))
            wanted = 0;
//$ end
//$ end
        if (wanted) {
            $(model)_copy(space, $(#pass.to), to + out);
            out += $(#pass.to);
            wanted = 0;
        }
//$ if pass.collapse then
        $(model)_copy(from + in, length, to + out);
        out += length;
//$ else
        $(model)_copy(blank ? space : from + in, blank ? $(#pass.to) : length, to + out);
        out += blank ? $(#pass.to) : length;
//$ end
        in += length;
    }
//$ if pass.collapse and not pass.wide then
    while (out >= $(#pass.to) && $(model)_begins(to + out - $(#pass.to), $(#pass.to), space, $(#pass.to)))
        out -= $(#pass.to);
//$ end
    return out;
}
//$ elseif pass.kind == "runs" then
/* Pass $(i): what two spaces or more become. */
static size_t $(model)_pass_$(i)(const unsigned char *from, size_t bytes, unsigned char *to, size_t room)
{
    static const unsigned char text[$(#pass.to)] = { $(bytes_of(pass.to)) }; //$ if #pass.to > 0
    size_t out = 0;
    for (size_t in = 0, end; in < bytes; in = end) {
        for (end = in; end < bytes && from[end] == ' ';)
            ++end;
        if (room - out < $(#pass.to + 1))
            return $(names.macro("FULL"));
        if (end > in + 1) {
//$ if #pass.to > 0 then
            $(model)_copy(text, $(#pass.to), to + out);
            out += $(#pass.to);
//$ end
            continue;
        }
        to[out++] = from[in];
        end = in + 1;
    }
    return out;
}
//$ elseif pass.kind == "strip" then
//$ local left, right = pass.left and "at the beginning", pass.right and "at the end"
/* Pass $(i): removes white space $(left and right and left .. " and " .. right or left or right or ""). */
static size_t $(model)_pass_$(i)(const $(names.weights) *weights, const unsigned char *from, size_t bytes, unsigned char *to, size_t room)
{
    size_t first = bytes, last = 0, length;
    for (size_t in = 0; in < bytes; in += length) {
        if ($(model)_property(weights->classes_pages, weights->classes, $(model)_character(from + in, bytes - in, &length)) & 4u)
            continue;
        if (first == bytes)
            first = in;
        last = in + length;
    }
    first = 0; //$ if not pass.left
    last = bytes; //$ if not pass.right
    if (last < first)
        last = first;
    if (last - first > room)
        return $(names.macro("FULL"));
    $(model)_copy(from + first, last - first, to);
    return last - first;
}
//$ elseif pass.kind == "prepend" then
/* Pass $(i): what comes before a text. */
static size_t $(model)_pass_$(i)(const unsigned char *from, size_t bytes, unsigned char *to, size_t room)
{
    static const unsigned char text[$(#pass.text)] = { $(bytes_of(pass.text)) };
    size_t out = 0;
    if (bytes > room || room - bytes < $(#pass.text))
        return $(names.macro("FULL"));
    if (bytes > 0$(pass.unless and (" && !" .. model .. "_begins(from, bytes, text, " .. #pass.text .. ")") or "")) {
        $(model)_copy(text, $(#pass.text), to);
        out = $(#pass.text);
    }
    $(model)_copy(from, bytes, to + out);
    return out + bytes;
}
//$ end
