"""One tokenizer of each kind and format, and what it makes of a text by definitions of their own in Python."""
import collections
import functools
import itertools
import math
import re
import struct
import sys
import unicodedata

import tokenizers

SPACE = "\u2581"
CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d"
ALL = [chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000]
PATTERNS = {
    "llama3": r"(?i:" + CONTRACTIONS + r")|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen2": r"(?i:" + CONTRACTIONS + r")|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "deepseek": (
        r"\p{N}{1,3}",
        "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*"
        "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"),
    "smollm": (r"\p{N}", CONTRACTIONS + r"| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"),
    "gpt2": CONTRACTIONS + r"| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
}


@functools.lru_cache(None)
def ranges(first):
    """The characters of the categories that begin with a letter, as the inside of a set of Python's re."""
    codes, parts = [ord(c) for c in ALL if unicodedata.category(c)[0] == first], []
    start = last = codes[0]
    for code in codes[1:] + [None]:
        if code != last + 1 if code is not None else True:
            parts.append("\\U%08x-\\U%08x" % (start, last))
            start = code
        last = code
    return "".join(parts)


@functools.lru_cache(None)
def pattern(text):
    """The pattern for Python's re, a group."""
    text = text.replace(r"\s", r"\x09-\x0d \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000")
    text = re.sub(r"(?<!\[)((?:\\x09-\\x0d)[^+*]*?\\u3000)(?=[+*)])", r"[\1]", text)
    text = text.replace(r"(?!\S)", r"(?![^\x09-\x0d \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000])")
    for letter in "LNMPS":
        text = re.sub(r"(\[[^\]]*)\\p\{%s\}" % letter, lambda match: match.group(1) + ranges(letter), text)
        text = text.replace(r"\p{%s}" % letter, "[" + ranges(letter) + "]")
    return re.compile("(" + text + ")")


def patterns(name):
    """The patterns of a split, one behind the other."""
    return (PATTERNS[name],) if isinstance(PATTERNS[name], str) else PATTERNS[name]


def words_of(name, text):
    words = [text]
    for each in patterns(name):
        words = [word for outer in words for word in pattern(each).split(outer) if word]
    return words


def bpe(symbols, ranks):
    """Merges the pair of the least rank, the leftmost first, until none has one."""
    while True:
        pairs = [(ranks[pair], i) for i, pair in enumerate(zip(symbols, symbols[1:])) if pair in ranks]
        if not pairs:
            return symbols
        _, i = min(pairs)
        symbols = symbols[:i] + (symbols[i] + symbols[i + 1],) + symbols[i + 2:]


@functools.lru_cache(None)
def trained_bytes():
    """The merges and the vocabulary of byte-level BPE, made from the documentation, and the function that writes bytes as characters."""
    characters = tokenizers.byte_characters()

    def written(word):
        return "".join(characters[byte] for byte in word.encode())

    words = collections.Counter(written(word) for word in words_of("gpt2", tokenizers.text()))
    return (*tokenizers.train_bpe(words, sorted(characters.values()), 120), written)


def in_word(character):
    category = unicodedata.category(character)
    return category[0] in "LM" or category in ("Nd", "Nl", "Pc") or character in "\u200c\u200d" or any(
        first <= character <= last for first, last in ("\u24b6\u24e9", "\U0001f130\U0001f149", "\U0001f150\U0001f169", "\U0001f170\U0001f189"))


def cut(text, passes):
    """The ids of the added pieces of `passes` in text, [{text: (id, flags)}], the longest first, and the stretches between them: those of the
    second pass are found in the stretches of the first. Flags are lstrip, rstrip and single_word by their first letters."""
    if not passes:
        return [text]
    parts, at = [], 0
    for match in re.finditer("|".join(re.escape(piece) for piece in sorted(passes[0], key=len, reverse=True)), text):
        piece, flags = passes[0][match.group()]
        start, end = match.span()
        if "s" in flags and any(in_word(c) for c in text[:start][-1:] + text[end:][:1]):
            continue
        if "l" in flags:
            start = at + len(text[at:start].rstrip())
        if "r" in flags:
            end += len(text[end:]) - len(text[end:].lstrip())
        parts += cut(text[at:start], passes[1:]) * (start > at) + [piece]
        at = end
    return parts + cut(text[at:], passes[1:])


class ByteLevel:
    """GPT-2's: vocab.json and merges.txt, or with a named split tokenizer.json. normalized: with pieces for others to leave."""

    def __init__(self, folder, split, normalized=False):
        merges, self.vocabulary, self.written = trained_bytes()
        self.ranks, self.split = {pair: i for i, pair in enumerate(merges)}, split
        end = len(self.vocabulary)
        vocabulary = dict(self.vocabulary, **{"<|endoftext|>": end})
        self.whole = split == "llama3"
        self.name = "bytes_" + split + "_normalized" * normalized
        self.added = [{"<|endoftext|>": (end, "")}]
        if normalized:
            free = itertools.count(end + 1)
            texts = ("the", "ing", "  ", "a ", "|x|", "12") if split == "qwen2" else ("the", "ing", " t", "them", "in", "a")
            known = {text: vocabulary[text] if text in vocabulary else next(free) for text in texts}
            flags = {"the": "ls", "ing": "r", "in": "ls", "a": "s"} if split == "smollm" else {"the": "l", "in": "l"}
            added = {text: (known[text], flags.get(text, "")) for text in texts}
            self.added[0].update({text: added.pop(text) for text in ("the", "ing")})
            self.added.append(added)
        if split == "gpt2":
            tokenizers.write_json(folder, "vocab.json", vocabulary)
            with open(folder + "/merges.txt", "w", encoding="utf-8") as file:
                file.write("#version: 0.2\n" + "".join(left + " " + right + "\n" for left, right in merges))
            self.model = tokenizers.write_model(folder, self.name, 'file = "vocab.json", kind = "bpe"')
            return
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": split == "smollm"}
        rules = [{"type": "Split", "pattern": {"Regex": each}, "behavior": "Isolated", "invert": False} for each in patterns(split)]
        if split == "smollm":
            rules = [{"type": "Digits", "individual_digits": True}]
        tokenizers.write_json(folder, self.name + ".json", tokenizer_json(
            [(i, text, later > 0, flags) for later, pieces in enumerate(self.added) for text, (i, flags) in pieces.items()],
            {"type": "NFC"} if split == "qwen2" else None,
            {"type": "Sequence", "pretokenizers": rules + [level]},
            {"type": "BPE", "vocab": vocabulary, "merges": [" ".join(pair) for pair in merges], "ignore_merges": self.whole}))
        self.model = tokenizers.write_model(folder, self.name, 'file = "%s.json"' % self.name)

    def ids(self, line):
        ids = []
        parts = cut(line, self.added[:1])
        if self.split == "qwen2":
            parts = [unicodedata.normalize("NFC", part) if isinstance(part, str) else part for part in parts]
        for part in (inner for part in parts for inner in (cut(part, self.added[1:]) if isinstance(part, str) else [part])):
            if not isinstance(part, str):
                ids.append(part)
                continue
            for word in words_of(self.split, part):
                text = self.written(word)
                symbols = (text,) if self.whole and text in self.vocabulary else bpe(tuple(text), self.ranks)
                ids += [self.vocabulary[symbol] for symbol in symbols]
        return ids


def tokenizer_json(added, normalizer, pre_tokenizer, model):
    return {
        "version": "1.0",
        "added_tokens": [{"id": i, "content": text, "special": True, "normalized": normalized, "single_word": "s" in flags, "lstrip": "l" in flags,
                          "rstrip": "r" in flags} for i, text, normalized, flags in added],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "model": model,
    }


class Fallback:
    """Llama's: BPE of characters, unknown ones as bytes, spaces as U+2581."""

    name = "fallback"

    def __init__(self, folder):
        words = collections.Counter(SPACE + word for word in tokenizers.text().split())
        first = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % byte for byte in range(256)]
        alphabet = first + [SPACE] + sorted({c for c in tokenizers.text() if 32 < ord(c) < 127})
        words = {word: count for word, count in words.items() if all(c in alphabet for c in word)}
        merges, self.vocabulary = tokenizers.train_bpe(words, alphabet, 120)
        self.ranks = {pair: i for i, pair in enumerate(merges)}
        tokenizers.write_json(folder, "fallback.json", tokenizer_json(
            [(i, text, False, "") for i, text in enumerate(("<unk>", "<s>", "</s>"))],
            {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": SPACE}, {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}]},
            None, {"type": "BPE", "vocab": self.vocabulary, "merges": [list(pair) for pair in merges], "unk_token": "<unk>", "fuse_unk": True,
                   "byte_fallback": True}))
        self.model = tokenizers.write_model(folder, self.name, 'file = "fallback.json"')

    def ids(self, line):
        symbols = ()
        for character in (SPACE + line).replace(" ", SPACE) if line else "":
            known = character in self.vocabulary
            symbols += (character,) if known else tuple("<0x%02X>" % byte for byte in character.encode())
        return [self.vocabulary[symbol] for symbol in bpe(symbols, self.ranks)]


def is_punctuation(character):
    return unicodedata.category(character)[0] == "P" or character in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


def is_ideograph(character):
    code = ord(character)
    return any(first <= code <= last for first, last in (
        (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF),
        (0x2F800, 0x2FA1F)))


class WordPiece:
    """BERT's, uncased: vocab.txt."""

    name = "wordpiece"

    def __init__(self, folder):
        counts = collections.Counter(re.findall("[a-z]+", tokenizers.text().lower()))
        letters = [chr(c) for c in range(33, 127) if not chr(c).isupper()] + ["\u4e2d", "\u03c3", "\u0131"]
        pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + letters + ["##" + c for c in letters]
        pieces += [word for word, _ in counts.most_common(400) if len(word) > 1] + ["##ing", "##ed", "##s", "##tion", "##er"]
        self.ranks = {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
        with open(folder + "/vocab.txt", "w", encoding="utf-8") as file:
            file.write("".join(piece + "\n" for piece in self.ranks))
        self.model = tokenizers.write_model(folder, self.name, 'file = "vocab.txt", lower = true')

    def word(self, word):
        ids, start = [], 0
        while start < len(word):
            end = next((end for end in range(len(word), start, -1) if "##" * (start > 0) + word[start:end] in self.ranks), 0)
            if not end or len(word) > 100:
                return [self.ranks["[UNK]"]]
            ids.append(self.ranks["##" * (start > 0) + word[start:end]])
            start = end
        return ids

    def ids(self, line):
        text = "".join("" if c in "\0\ufffd" or unicodedata.category(c) in ("Cc", "Cf", "Co") and c not in "\t\n\r" else " " if c.isspace()
                       else " %s " % c if is_ideograph(c) else c for c in line)
        text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
        text = "".join(c.lower() for c in text)
        text = "".join(" %s " % c if is_punctuation(c) else c for c in text)
        inside = sum((self.word(word) for word in text.split()), [])
        return [self.ranks["[CLS]"]] + inside + [self.ranks["[SEP]"]]


def single(value):
    """float32, as SentencePiece keeps scores; sums are compared before they are rounded."""
    return struct.unpack("f", struct.pack("f", value))[0]


class Scored:
    """The unigram pieces of TensorFlow.js packages: a list of pieces and scores; NFKC."""

    name = "scored"

    def __init__(self, folder):
        words = collections.Counter(SPACE + word for word in tokenizers.text().split())
        parts = collections.Counter()
        for word, count in words.items():
            for start in range(len(word)):
                for end in range(start + 1, min(len(word), start + 8) + 1):
                    parts[word[start:end]] += count
        chosen = [part for part, _ in parts.most_common(900)]
        self.pieces = [["\ufffd", 0], ["<s>", 0], ["</s>", 0]] + [[part, -1.5 - math.sqrt(i + 2) / 3] for i, part in enumerate(chosen)]
        self.scores = {part: (single(score), i) for i, (part, score) in enumerate(self.pieces) if i > 2}
        self.unknown = single(min(score for score, _ in self.scores.values()) - 10)
        tokenizers.write_json(folder, "scored.json", self.pieces)
        self.model = tokenizers.write_model(folder, self.name, 'file = "scored.json", kind = "unigram"')

    def ids(self, line):
        text = (SPACE + unicodedata.normalize("NFKC", line)).replace(" ", SPACE) if line else ""
        best = [(0.0, None, None)] + [None] * len(text)
        for start in range(len(text)):
            ways = [(text[start:end], start, end) for end in range(start + 1, min(len(text), start + 8) + 1) if text[start:end] in self.scores]
            if not ways or ways[0][2] != start + 1:
                ways.append((None, start, start + 1))
            for part, begin, end in ways:
                score = best[begin][0] + (self.scores[part][0] if part else self.unknown)
                if best[end] is None or score > best[end][0]:
                    best[end] = (single(score), begin, self.scores[part][1] if part else 0)
        ids, at = [], len(text)
        while at > 0:
            _, begin, i = best[at]
            if i != 0 or not ids or ids[-1] != 0:
                ids.append(i)
            at = begin
        return ids[::-1]


class Bytes:
    name = "single_bytes"

    def __init__(self, folder):
        self.model = tokenizers.write_model(folder, self.name, 'kind = "bytes"')

    def ids(self, line):
        return list(line.encode())


def cases(folder):
    levels = [ByteLevel(folder, "gpt2"), ByteLevel(folder, "llama3"), ByteLevel(folder, "llama3", normalized=True), ByteLevel(folder, "qwen2", normalized=True)]
    return levels + [Fallback(folder), WordPiece(folder), Scored(folder), Bytes(folder), ByteLevel(folder, "smollm", normalized=True),
                                                                                            ByteLevel(folder, "deepseek")]
