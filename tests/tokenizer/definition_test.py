"""Emitted tokenizers of every kind against definitions in Python, id for id; and the texts of their ids against the text."""
import json
import subprocess
import sys
import tempfile

import tokenizer_cases
import tokenizers

many = tokenizers.lines(tokenizers.effort("tokenizer_texts"))
many[::50] = ["a <|endoftext|>" + line + "<|endoftext|>" for line in many[::50]]
plain = {"bytes_gpt2", "bytes_llama3", "bytes_deepseek", "single_bytes"}
with tempfile.TemporaryDirectory() as folder:
    for case in tokenizer_cases.cases(folder):
        tokenizers.compare(case.name, many, tokenizers.tokenize(case.model, many), [case.ids(line) for line in many])

        # what byte-level tokenizers make of a text stands for all of it
        text = "It's 2024, isn't it? caf\u00e9 \U0001f600"
        row = json.loads(subprocess.run([tokenizers.LOOKUPC, "tokenize", case.model, text, "--json"], check=True, capture_output=True).stdout)
        if len(row["ids"]) != len(row["pieces"]):
            sys.exit("%s: %s" % (case.name, row))
        if case.name in plain and None not in row["pieces"] and "".join(row["pieces"]) != text:
            sys.exit("%s: the texts of the ids are %s" % (case.name, row["pieces"]))
