/* The reference of a transformer's blocks: float64, from the definitions, every projection a product of its own. */
#ifndef LOOKUPC_HARNESS_REFERENCE_TRANSFORMER_H
#define LOOKUPC_HARNESS_REFERENCE_TRANSFORMER_H

#include "harness/reference/block_lookup.h"
#include "harness/reference/type.h"

#include "gen/weights/safetensors.h"

typedef double reference_activation(double x);

/* The activation of that name; NULL if there is none. */
reference_activation *reference_activation_named(const char *name);

struct reference_map;

/* What applies maps in place of the reference, and may look at their inputs. */
typedef struct reference_stand_in {
    bool (*apply)(const struct reference_stand_in *self, const struct reference_map *map, const double *x, double *y, size_t tokens,
                  char *error, size_t error_size);
} reference_stand_in;

/* y = W x + b, W and b in a file: W's row r is the tensor's row r / group * stride + offset + r % group, of `columns` elements, or its
   column of that number if it is `transposed`. weight NULL: there is no such map, y = x; bias NULL: b = 0. */
typedef struct reference_map {
    const safetensors *file, *bias_file;
    const safetensors_tensor *weight, *bias;
    size_t rows, columns, group, stride, offset;
    bool transposed;
    const reference_stand_in *stand_in; /* NULL: there is none */
} reference_map;

/* The number of the map's row r among the rows, or columns, of its tensor, and of its bias. */
size_t reference_map_row(const reference_map *map, size_t r);

/* Rounds a row of the map's weights to the type. What a GGUF file has in its scales and integers stays as it is. */
void reference_map_round(const reference_map *map, reference_type type, double *row);

/* matrix[rows][columns] <- the map's weights. Fails as reference_map_apply does. */
bool reference_map_matrix(const reference_map *map, double *matrix, char *error, size_t error_size);

/* What is rounded before a map multiplies: its weights, a row of W at a time, and each row of x. */
typedef struct {
    reference_type weights, inputs;
} reference_map_types;

/* y[tokens][rows] = the map of x[tokens][columns], both rounded. Fails with one line that starts with a path. */
bool reference_map_apply(const reference_map *map, reference_map_types types, const double *x, double *y, size_t tokens, char *error,
                         size_t error_size);

/* gain NULL: there is no such norm; offset may be NULL. */
typedef struct {
    double *gain, *offset; /* [d], or as wide as the block's input where that is normalised */
} reference_block_norm;

/* sqrt(variance + eps) of a row, and its mean; without one sqrt(mean square + eps), and 0. */
double reference_norm_root(bool with_mean, double eps, const double *row, size_t width, double *mean);

/* x[tokens][width] <- every row normalised by itself; with_mean: LayerNorm, not RMSNorm. */
void reference_normalise(const reference_block_norm *norm, bool with_mean, double eps, double *x, size_t width, size_t tokens);

typedef enum { REFERENCE_ROPE_PLAIN, REFERENCE_ROPE_LINEAR, REFERENCE_ROPE_LLAMA3, REFERENCE_ROPE_YARN } reference_rope_kind;

/* How the frequencies of rotary positions are scaled for a context that is `factor` times the original one. */
typedef struct {
    reference_rope_kind kind;
    double factor, original;
    double slow, fast;       /* turns within the original context: fewer are slowed down, more are not */
    double attention_factor; /* of cosines and sines, yarn only */
    bool truncate;           /* yarn: the pairs that turn slow and fast are whole numbers */
} reference_rope_scaling;

/* Attention by tables instead of a softmax: see table_attention.h. */
typedef struct {
    size_t tables; /* 0: there are none */
    size_t tau, window;
    double eps;
    uint64_t seed;
    bool expected; /* weights are what they are on average over all seeds */
} reference_lsh;

typedef struct {
    size_t d, heads, kv_heads;
    size_t f;        /* hidden values of the dense FFN, which may stand beside a lookup FFN; 0: there is none */
    size_t width;    /* of a head */
    double scale;    /* of q k */
    double soft_cap; /* a score x becomes soft_cap tanh(x / soft_cap); 0: it stays */
    size_t shifted;  /* so many heads of k and v have the key of the token before, the first token its own */
    bool causal;
    bool from_keys; /* v maps a token's keys of all heads, before they are turned, to its values */
    const size_t
        *lengths; /* of the sequences that the tokens are, one behind the other, each of which attends to itself; NULL: they are one */
    size_t start; /* position of the first token, of each sequence */
    size_t half;  /* pairs of a head that are turned, 0: none */
    double theta;
    reference_rope_scaling scaling;
    bool interleaved;
    bool gated, parallel, skip, mean, post; /* mean: LayerNorm, not RMSNorm; post: norms behind their skip connections */
    bool unit;                              /* heads of q and k are divided by the root of their mean square */
    reference_lsh lsh;                      /* whose heads are divided so, too */
    double eps, head_eps;                   /* of the norms of heads of q and k */
    reference_activation *activation;
    reference_type type;        /* that W is rounded to */
    reference_type activations; /* that the inputs of maps are rounded to, those of a token together */
    reference_type cache;       /* that keys and values are rounded to, those of a head together */
    reference_type attention;   /* that queries are, those of a head together, and the softmax's weights: see attend() */
} reference_transformer;

typedef struct {
    size_t number;  /* of the layer */
    size_t layer;   /* its number in the checkpoint */
    size_t in;      /* width of the block's input */
    size_t window;  /* a token attends to positions nearer than this; 0: to all */
    bool delivered; /* it is q, k and v side by side, which then have no maps */
    bool qkv;       /* parallel, without maps: rows of the lookup FFN are q, k, v and its output */
    reference_map q, k, v, p, g, m, o;
    reference_map s;                      /* of the skip connection around attention; none where the input is d wide */
    const reference_block_lookup *lookup; /* NULL: the FFN is g, m and o alone */
    reference_block_norm first, second, after_attention, after_ffn; /* the last two before they are added to the skip connection */
    reference_block_norm q_norm, k_norm;                            /* of heads, [width], without a mean */
    bool means;           /* only means over all tokens are asked for: the FFN's last map is given the mean of its inputs */
    const double *scales; /* [heads]: factors of scores; NULL: there are none */
    const double *signs;  /* of the hashes of q and k; NULL: those of the seed */
    const double *shape;  /* [heads][3]: alpha, beta, gamma of shaped attention; NULL: plain */
} reference_block;

/* The sequence of a token: its first one and, returned, the one behind its last. */
size_t reference_sequence_of(const reference_transformer *model, size_t token, size_t tokens, size_t *first);

/* Width of the block's output. */
size_t reference_block_out(const reference_transformer *model, const reference_block *block);

/* x[tokens][in] <- the block's output [tokens][out]. Fails with one line that starts with a path, or says that memory is short. */
bool reference_block_run(const reference_transformer *model, const reference_block *block, reference_ties *ties, double *x, size_t tokens,
                         char *error, size_t error_size);

#endif
