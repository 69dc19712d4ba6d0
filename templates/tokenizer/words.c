//$ takes facts, splits
//$ if splits.classes then
/* Bits of a character's class. */
//$ if splits.pattern then
#define $(names.macro("LETTER")) 1u
#define $(names.macro("NUMBER")) 2u
//$ end
#define $(names.macro("SPACE")) 4u
#define $(names.macro("PUNCTUATION")) 16u //$ if facts.split == "bert"

/* The class of the character at text[at..bytes) and its length; 0 at the end and for what is none. */
static unsigned $(model)_class(const $(names.weights) *weights, const unsigned char *text, size_t at, size_t bytes, size_t *length)
{
    *length = 0;
    return at < bytes ? $(model)_property(weights->classes_pages, weights->classes, $(model)_character(text + at, bytes - at, length)) : 0;
}

//$ end
//$ if splits.pattern then
//$ local numbers = facts.split == "llama3" and 3 or facts.split == "qwen2" and 1
/* The length of a contraction that text[bytes] begins with, or 0: 's, 't, 're, 've, 'm, 'll, 'd$(numbers and ", in either case" or ""). */
static size_t $(model)_contraction(const unsigned char *text, size_t bytes)
{
    unsigned char first, second;
    if (bytes < 2 || text[0] != '\'')
        return 0;
    first = text[1];
    second = bytes > 2 ? text[2] : 0;
//$ if numbers then
    if (first == 0xc5u && second == 0xbfu) /* the long s */
        return 3;
    if (first >= 'A' && first <= 'Z')
        first = (unsigned char) (first + 32);
    if (second >= 'A' && second <= 'Z')
        second = (unsigned char) (second + 32);
//$ end
    if (first == 's' || first == 't' || first == 'm' || first == 'd')
        return 2;
    return (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l') ? 3 : 0;
}

/* The end of a run of characters from `at` on whose class has one of the bits `any`, or has none of the bits `none` if `any` is 0. */
static size_t $(model)_run(const $(names.weights) *weights, const unsigned char *text, size_t at, size_t bytes, unsigned any, unsigned none)
{
    for (size_t length; at < bytes; at += length) {
        const unsigned class = $(model)_class(weights, text, at, bytes, &length);
        if (any ? !(class & any) : (class & none) != 0)
            break;
    }
    return at;
}

/* The length of the first word of text[bytes], bytes > 0, as the pattern of $(facts.split) splits it. */
static size_t $(model)_word(const $(names.weights) *weights, const unsigned char *text, size_t bytes)
{
    const unsigned letter = $(names.macro("LETTER")), number = $(names.macro("NUMBER")), space = $(names.macro("SPACE"));
    size_t length, next, end = $(model)_contraction(text, bytes);
    unsigned class, behind;
    if (end)
        return end;

    class = $(model)_class(weights, text, 0, bytes, &length);
    behind = $(model)_class(weights, text, length, bytes, &next);
//$ if numbers then

    /* letters, also behind one character that is no letter, number or end of a line */
    if (class & letter)
        return $(model)_run(weights, text, 0, bytes, letter, 0);
    if (!(class & number) && text[0] != '\r' && text[0] != '\n' && (behind & letter))
        return $(model)_run(weights, text, length, bytes, letter, 0);

    /* $(numbers == 1 and "a number" or "up to " .. numbers .. " numbers") */
    if (class & number) {
        end = length;
//$ if numbers > 1 then
        for (unsigned k = 1; k < $(numbers) && ($(model)_class(weights, text, end, bytes, &next) & number); ++k)
            end += next;
//$ end
        return end;
    }

    /* signs, also behind a space, and the ends of lines behind them */
    end = 0;
    if (!(class & space))
        end = length;
    else if (text[0] == ' ' && next && !(behind & (letter | number | space)))
        end = length + next;
    if (end) {
        end = $(model)_run(weights, text, end, bytes, 0, letter | number | space);
        while (end < bytes && (text[end] == '\r' || text[end] == '\n'))
            ++end;
        return end;
    }
//$ else

    /* letters, numbers, or signs, also behind a space */
    end = 0;
    if (text[0] == ' ' && next && !(behind & space)) {
        end = length;
        class = behind;
    }
    if (class & (letter | number))
        return $(model)_run(weights, text, end, bytes, class & letter ? letter : number, 0);
    if (!(class & space))
        return $(model)_run(weights, text, end, bytes, 0, letter | number | space);
//$ end

    /* white space$(numbers and ": up to the end of the last line in it," or ":") all but the last character before a word, or all */
    next = 0;
    for (end = 0; $(model)_class(weights, text, end, bytes, &length) & space; end += length)
        next = length;
//$ if numbers then
    for (size_t line = end; line > 0; --line)
        if (text[line - 1] == '\r' || text[line - 1] == '\n')
            return line;
//$ end
    return end < bytes && end > next ? end - next : end;
}
//$ elseif facts.split == "bert" then
/* The length of the first word of text[bytes], bytes > 0, which begins with no white space: a sign of punctuation, or all up to one or to
   white space. */
static size_t $(model)_word(const $(names.weights) *weights, const unsigned char *text, size_t bytes)
{
    size_t end, length;
    for (end = 0; end < bytes; end += length) {
        const unsigned class = $(model)_class(weights, text, end, bytes, &length);
        if (class & $(names.macro("PUNCTUATION")))
            return end ? end : length;
        if (class & $(names.macro("SPACE")))
            break;
    }
    return end;
}
//$ elseif facts.split == "whitespace" then
/* The length of the first word of text[bytes], bytes > 0, which begins with no white space: all up to white space. */
static size_t $(model)_word(const $(names.weights) *weights, const unsigned char *text, size_t bytes)
{
    size_t end, length;
    for (end = 0; end < bytes; end += length)
        if ($(model)_class(weights, text, end, bytes, &length) & $(names.macro("SPACE")))
            break;
    return end;
}
//$ elseif facts.split == "meta" then
/* The length of the first word of text[bytes], bytes > 0: all up to the next U+2581. */
static size_t $(model)_word(const unsigned char *text, size_t bytes)
{
    static const unsigned char space[3] = { 0xe2u, 0x96u, 0x81u };
    size_t end = 1;
    while (end < bytes && !$(model)_begins(text + end, bytes - end, space, 3))
        ++end;
    return end;
}
//$ end
