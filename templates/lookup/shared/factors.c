//$ takes helper, projection, integers

/* What sums of integers are multiplied by, and what they begin with beside units. */
typedef struct {
    const float *scales, *units; /* of outputs, and of inputs */
    const $(projection.word.storage) *starts; //$ if integers.starts
} $(helper)_factors;
