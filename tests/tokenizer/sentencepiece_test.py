"""Emitted tokenizers against SentencePiece's own library, id for id: unigram and BPE, with and without byte fallback, normalisation and
white space rules; on real text, random characters and random bytes."""
import os
import random
import sys
import tempfile

try:
    import sentencepiece
except ImportError:
    print("skipped: python3-sentencepiece is missing")
    sys.exit(77)

import tokenizers

CASES = {
    "unigram": dict(model_type="unigram", vocab_size=1200),
    "unigram_bytes": dict(model_type="unigram", vocab_size=1200, byte_fallback=True, normalization_rule_name="nmt_nfkc_cf"),
    "unigram_plain": dict(model_type="unigram", vocab_size=1000, normalization_rule_name="identity", remove_extra_whitespaces=False),
    "bpe": dict(model_type="bpe", vocab_size=1200),
    "bpe_bytes": dict(model_type="bpe", vocab_size=1500, byte_fallback=True, normalization_rule_name="identity", add_dummy_prefix=False),
}

state = random.Random(7)
many = [line.encode() for line in tokenizers.lines(tokenizers.effort("tokenizer_texts"))]
many += [bytes(state.choice(b"ab \xc3\xa9\xe2\x96\x81\xf0\xff") for _ in range(state.randrange(30))) for _ in range(len(many) // 10)]
with tempfile.TemporaryDirectory() as folder:
    corpus = os.path.join(folder, "corpus.txt")
    with open(corpus, "w", encoding="utf-8") as file:
        file.write(tokenizers.text())
    for name, options in CASES.items():
        prefix = os.path.join(folder, name)
        sentencepiece.SentencePieceTrainer.train(input=corpus, model_prefix=prefix, minloglevel=2, num_threads=1, hard_vocab_limit=False, **options)
        theirs = sentencepiece.SentencePieceProcessor(model_file=prefix + ".model")
        model = tokenizers.write_model(folder, name, 'file = "%s.model"' % name)
        tokenizers.compare(name, many, tokenizers.tokenize(model, many), [theirs.encode(line) for line in many])
