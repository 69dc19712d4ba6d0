/* The weights of the dense FFN beside a model: -DWEIGHTS="path". */
    .section ".rodata.rival", "a", %progbits
    .balign 64
    .global rival_weights
rival_weights:
    .incbin WEIGHTS
