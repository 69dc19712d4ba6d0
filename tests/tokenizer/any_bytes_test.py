"""Emitted tokenizers take any bytes: under sanitizers, with no more memory than they ask for, in time in proportion to the text; and they
call no library."""
import os
import subprocess
import sys
import tempfile

import tokenizer_cases
import tokenizers

WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]


def run(*words):
    result = subprocess.run(words, capture_output=True, text=True, timeout=250)
    if result.returncode != 0:
        sys.exit(" ".join(words) + ":\n" + result.stdout + result.stderr)
    return result.stdout


with tempfile.TemporaryDirectory() as folder:
    for case in tokenizer_cases.cases(folder)[:: 1 if tokenizers.effort("tokenizers") else 3]:
        bundle, blob = os.path.join(folder, "bundle_" + case.name), os.path.join(folder, case.name + ".bin")
        run(tokenizers.LOOKUPC, "emit", case.model, "-o", bundle)
        run(tokenizers.LOOKUPC, "pack", case.model, "-o", blob)
        if "fresh" not in run(tokenizers.LOOKUPC, "check", bundle):
            sys.exit(case.name + ": check does not take the bundle for fresh")

        source, upper = os.path.join(bundle, case.name + ".c"), case.name.upper()
        for optimisation in ("-O1", "-O3"):
            run("gcc", "-std=c99", optimisation, *WARNINGS, "-c", source, "-o", folder + "/alone.o")
            undefined = run("nm", "-u", folder + "/alone.o")
            if undefined:
                sys.exit("%s, %s: calls %s" % (case.name, optimisation, undefined))

        codes = ["-D%s=%s_%s" % (word, upper, word) for word in ("ERROR_ROOM", "ERROR_SCRATCH", "ERROR_NULL", "ERROR_ALIGNMENT", "PIECES")]
        program = os.path.join(folder, "driver_" + case.name)
        run("gcc", "-std=c11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", *WARNINGS, "-DNAME=" + case.name,
            '-DHEADER="%s.h"' % case.name, "-DSCRATCH=%s_TOKENIZE_SCRATCH" % upper, *codes, "-I" + bundle, "tests/tokenizer/driver.c", source, "-o", program)
        print(case.name + ":", run(program, blob, "1", str(tokenizers.effort("tokenizer_texts"))).strip())
