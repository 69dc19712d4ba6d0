/* The weights of the dense FFN beside a model: -DWEIGHTS="path". */
    .section ".rodata.baseline", "a", %progbits
    .balign 64
    .global baseline_weights
baseline_weights:
    .incbin WEIGHTS
