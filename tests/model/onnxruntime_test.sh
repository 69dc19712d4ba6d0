#!/bin/bash
# The ONNX models of the sentence encoder compute its vectors in ONNX Runtime, and its timing beside them prints every row.
set -euo pipefail
models=${LOOKUPC_MODELS:-build/models}
export LOOKUPC_ONNXRUNTIME=${LOOKUPC_ONNXRUNTIME:-$models/onnxruntime} LOOKUPC_ROUNDS=1

if [[ ! -f $models/sentence_encoder.lua || ! -d $LOOKUPC_ONNXRUNTIME/node_modules ]] || ! command -v node >/dev/null; then
    echo "skipped: needs node, $models/sentence_encoder.lua and $LOOKUPC_ONNXRUNTIME; ./build.sh bench rivals fetches them"
    exit 77
fi
if [[ ${LOOKUPC_EFFORT-} != full ]]; then
    echo "skipped: takes half a minute; only with LOOKUPC_EFFORT=full"
    exit 77
fi
table=$(PYTHONPATH=tests/support /usr/bin/python3 -B tests/rivals/encoder_beside_onnxruntime.py)
for name in 'lookupc f32' 'lookupc bf16' 'lookupc i8' 'ONNX Runtime f32' 'ONNX Runtime f32 fused' 'ONNX Runtime i8' 'ONNX Runtime i8 fused'; do
    for tokens in 16 128; do
        grep -Eq "^$name +$tokens +[0-9.]+ " <<<"$table" || {
            printf 'FAILED: no row of %s at %s tokens:\n%s\n' "$name" "$tokens" "$table"
            exit 1
        }
    done
done
