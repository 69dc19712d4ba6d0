"""Splits by patterns, alone and behind each other, against Python's re with the characters of each class spelt out: the same words."""
import functools
import random
import re
import tempfile
import unicodedata

import tokenizers

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
BEHIND = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + BEHIND
QWEN2 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + BEHIND
QWEN35 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CL100K = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
CL100K_NOW = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s")
O200K = "|".join((r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + "+" + CONTRACTIONS + "?",
                  r"[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER + "*" + CONTRACTIONS + "?",
                  r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"))
DEEPSEEK = (r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*"
            "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+")

SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2028\u2029\u202f\u205f\u3000"
ALPHABET = sorted(set(
    SPACES + "".join(map(chr, range(33, 127))) + "\u00e9\u00c9\u00df\u017f\u212a\u01c5\u02b0\u03c3\u05d0\u0627\u0905\u093e\u0e01\u4e2d\u6587\u9fa6\u3042"
    "\u30ab\uac00\u0301\u0323\u0488\u0663\u0969\u00b2\u00bd\u2167\u3007\u24b6\u00ab\u2014\u3002\u201c\u203f\u00a9\u20ac\u2212\u2581\u200c\u200d\u00ad\u200b"
    "\U0001f600\U0001f3fd\u2764\ufe0f\U00020000\U0001d7d8\U00010400\U00010428\ufffd"))


BYTE = tokenizers.byte_characters()  # those that stand for bytes


def inside(name):
    """The characters of ALPHABET and BYTE that are of a category, \\s or \\w, as the inside of a set of Python's re."""
    def has(c):
        category = unicodedata.category(c)
        if name == "s":
            return c in SPACES
        if name == "w":
            return category[0] in "LM" or category in ("Nd", "Nl", "Pc") or c == "\u24b6"
        return category.startswith("Nd" if name == "d" else name)
    return "".join("\\U%08x" % ord(c) for c in sorted({*ALPHABET, *BYTE.values()}) if has(c))


@functools.lru_cache(None)
def compiled(pattern):
    """The pattern for Python's re: every class spelt out, $ at the end of a line."""
    text, bracket = "", False
    for token in re.findall(r"\\p\{\w+\}|\\.|.", pattern, re.DOTALL):
        name = token[3:-1] if token[:2] == "\\p" else token[1:] if token in ("\\s", "\\d", "\\w") else None
        if name:
            token = inside(name) if bracket else "[%s]" % inside(name)
        elif token == "\\S":
            token = "[^%s]" % inside("s")
        elif token in ("[", "]"):
            bracket = token == "["
        elif token in ("$", "\\z") and not bracket:
            token = {"$": "(?m:$)", "\\z": "\\Z"}[token]
        text += token
    return re.compile(text)


def parts_of(text, pattern, invert):
    """Matches and what lies between them, [(text, whether it counts as a match)]."""
    parts, at = [], 0
    for match in compiled(pattern).finditer(text):
        parts += [(text[at:match.start()], invert), (match.group(), not invert)]
        at = match.end()
    return [part for part in parts + [(text[at:], invert)] if part[0]]


def split(text, pattern, behavior, invert=False):
    parts, words = parts_of(text, pattern, invert), []
    if behavior == "MergedWithNext":
        parts.reverse()
    before = False
    for part, matched in parts:
        joins = {"MergedWithPrevious": matched and not before, "MergedWithNext": matched and not before, "Contiguous": matched == before}
        if behavior == "Removed" and matched:
            pass
        elif words and joins.get(behavior):
            words[-1] = part + words[-1] if behavior == "MergedWithNext" else words[-1] + part
        else:
            words.append(part)
        before = matched
    return words[::-1] if behavior == "MergedWithNext" else words


def rule(pattern, behavior="Isolated", invert=False, kind="Regex"):
    """A Split, and what it does here."""
    definition = re.escape(pattern) if kind == "String" else pattern
    return ({"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}, (definition, behavior, invert))


PUNCTUATION = r"[!-/:-@\[-`{-~\p{P}]"
DIGITS = ({"type": "Digits"}, (r"\p{N}", "Contiguous"))
EACH_DIGIT = ({"type": "Digits", "individual_digits": True}, (r"\p{N}", "Isolated"))
BERT = ({"type": "BertPreTokenizer"}, (r"\s", "Removed"), (PUNCTUATION, "Isolated"))
WORDS = ({"type": "Whitespace"}, ("[\\w\u200c\u200d]+|[^\\w\u200c\u200d\\s]+", "Removed", True))


def punctuation(behavior):
    return ({"type": "Punctuation", "behavior": behavior}, (PUNCTUATION, behavior))


def level_of(digits):
    """GPT-2's split behind another one, so that it is a pattern like others."""
    return [digits, rule(GPT2)]


# One row a tokenizer: splits behind each other.
CASES = {
    "gpt2 behind digits": level_of(EACH_DIGIT),
    "llama3 behind punctuation": [punctuation("Removed"), rule(LLAMA3)],
    "qwen2 behind words": [rule("\u4e2d", "Isolated", kind="String"), rule(QWEN2)],
    "qwen3.5": [rule(QWEN35)],
    "cl100k": [rule(CL100K)],
    "cl100k now": [rule(CL100K_NOW)],
    "o200k": [rule(O200K)],
    "deepseek": [rule(part) for part in DEEPSEEK],
    "words and digits": [WORDS, DIGITS],
    "bert and digits": [BERT, EACH_DIGIT],
    "punctuation": [punctuation("Contiguous"), rule(r"\d{2,3}", "MergedWithPrevious")],
    "lines": [rule("\n", "MergedWithPrevious", kind="String"), rule("ab", "MergedWithNext", kind="String"), rule(r"\s{2,}", "Removed")],
    "inverted": [rule("[a-f]+", "MergedWithPrevious", True), rule("[^b-z]", "MergedWithNext", True), rule(r"\S(?=\S)", "Contiguous", True)],
    "ends": [rule(r"(?:ab|[cd]{2}|e(?:fg?)?)+|x(?!y)|\w\z|\x41.|\u0042\t?", "Isolated"), punctuation("MergedWithNext")],
}


FALCON = [punctuation("Contiguous"), ({"type": "ByteLevel", "add_prefix_space": False}, (GPT2, "Isolated"), "bytes"), DIGITS, rule("[0-9][0-9][0-9]")]
BEHIND_BYTES = {
    "falcon": FALCON,
    "bytes alone": [({"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}, "bytes"), rule("\u0120", "MergedWithNext", kind="String"), EACH_DIGIT],
}


def texts(count):
    """Of the documentation, with their ends of lines, and of random characters, alone and in runs."""
    state = random.Random(48)
    known, all_of, made = set(ALPHABET), tokenizers.text(), []
    favourites = ["'s", "'LL", "'\u017f", " 's", "\n", "\r\n", "  ", " \n ", "12345", "1 2", "HTTPServer", "ab", "abcdef", "\u4e2d\u6587", "e\u0301", "...", "\n\n", "xy"]
    for number in range(count):
        if number % 4 == 0:
            at = state.randrange(len(all_of) - 80)
            made.append("".join(c for c in all_of[at:at + 60] if c in known))
            continue
        line = ""
        while len(line) < 40 and state.random() > 0.04:
            line += state.choice(favourites) if state.random() < 0.35 else state.choice(ALPHABET) * state.choice((1, 1, 1, 2, 5))
        made.append(line)
    return made


def words_of(text, rules):
    words = [text] if text else []
    for step in (step for _, *steps in rules for step in steps):
        if step == "bytes":
            words = ["".join(BYTE[byte] for byte in word.encode()) for word in words]
        else:
            words = [word for outer in words for word in split(outer, *step)]
    return words


def paired(word, ranks):
    """The symbols of a word where two become one, the least rank first, then the leftmost."""
    word = list(word)
    while pairs := [(ranks[a + b], i) for i, (a, b) in enumerate(zip(word, word[1:])) if a + b in ranks]:
        i = min(pairs)[1]
        word[i:i + 2] = [word[i] + word[i + 1]]
    return word


def behind_bytes(folder, many):
    """Splits of the characters that stand for bytes, also within a character: every pair of bytes in the texts is a piece."""
    symbols = ["".join(BYTE[byte] for byte in text.encode()) for text in many]
    pairs = sorted({text[i:i + 2] for text in symbols for i in range(len(text) - 1)})
    random.Random(7).shuffle(pairs)
    ranks = {pair: i for i, pair in enumerate(pairs)}
    ids = {piece: i for i, piece in enumerate([*BYTE.values(), *pairs])}
    model = {"type": "BPE", "vocab": ids, "merges": [list(pair) for pair in pairs]}
    for name, rules in BEHIND_BYTES.items():
        tokenizers.write_json(folder, "t.json", {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [json for json, *_ in rules]}, "model": model})
        path = tokenizers.write_model(folder, "m", 'file = "t.json"')
        wanted = [[ids[piece] for word in words_of(text, rules) for piece in paired(word, ranks)] for text in many]
        tokenizers.compare(name, many, tokenizers.tokenize_texts(path, many), wanted)


def main():
    # a piece of each character where a word begins, and another one within words
    ids = {piece: i for i, piece in enumerate(["[UNK]"] + ALPHABET + ["\x7f" + c for c in ALPHABET])}
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "\x7f", "vocab": ids}
    many = texts(500)
    with tempfile.TemporaryDirectory() as folder:
        for name, rules in CASES.items():
            pre = {"type": "Sequence", "pretokenizers": [json for json, *_ in rules]}
            tokenizers.write_json(folder, "t.json", {"pre_tokenizer": pre, "model": model})
            path = tokenizers.write_model(folder, "m", 'file = "t.json"')
            wanted = []
            for text in many:
                wanted.append([ids["\x7f" * (i > 0) + c] for word in words_of(text, rules) for i, c in enumerate(word)])
            tokenizers.compare(name, many, tokenizers.tokenize_texts(path, many), wanted)
        behind_bytes(folder, many)


main()
