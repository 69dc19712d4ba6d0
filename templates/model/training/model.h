//$ takes training, helper, variants, lookups
#ifndef $(names.macro("TRAIN_H_INCLUDED"))
#define $(names.macro("TRAIN_H_INCLUDED"))

/* Trains $(model): passes forward and backward in float32. No function allocates memory, keeps state or calls a library. All parts of a
   step may run in threads of the caller. */

#include "$(names.header)"

#define $(names.macro("TRAIN_PARAMETERS")) $(training.parameters)u /* floats of all tensors, whose places MANIFEST.json has */
#define $(names.macro("TRAIN_GRADIENTS")) $(training.gradients)u /* floats of those that have gradients: the first ones */
#define $(names.macro("TRAIN_TABLE_ROWS")) $(training.table_rows)u /* rows of all tables of LookupFFNs */
#define $(names.macro("TRAIN_CONSTANTS")) $(training.constants)u /* floats of rotary angles and sines of positions */

#ifdef __cplusplus
extern "C" {
#endif

//$ local logits = "logits" .. (training.head.soft_cap and ", before the soft cap," or "")
/* What a token costs: of token number `token` of the call, [sequences][length], whose
   $(training.head.at and logits or "output of the last block") `row` has.
   back: leaves the gradient times `scale` in row. Every part calls it for tokens of its own. */
typedef float (*$(helper)_criterion)(void *context, size_t token, float *row, float scale, int back);

/* What one part sees before the criterion is called: what the blocks and the norm behind them made of all tokens, in
   rows of $(training.head.features)
   floats, $(training.head.features_pitch) apart. Rows of padding mean nothing. */
typedef void (*$(helper)_observer)(void *context, const float *features);

//$ local parameters, gradients = names.macro("TRAIN_PARAMETERS"), names.macro("TRAIN_GRADIENTS")
//$ local table_rows = names.macro("TRAIN_TABLE_ROWS")
//$ local without = lookups[1] and "" or " What is said to be of tables may be anything: they are those of LookupFFNs, which this model has not."
/* What a part of a call reads and writes. The fields are the same for every model, so that a program can train them all$(training.by_tables and "; others have no `signs`" or "").$(without) */
typedef struct $(helper) {
    float *parameters;           /* [$(parameters)], 64-byte aligned */
    float *gradients;            /* [$(gradients)]: added to */
//$ if lookups[1] then
    float *table_state;          /* zeros at first; Adagrad: [$(table_rows)] sums of mean squares of gradients; Adam:
                                    [2 * ($(parameters) - $(gradients))], both moments of each row in turn */
    uint32_t *row_uses;          /* [$(table_rows)]: + 1 for every use of a row, or null */
//$ else
    float *table_state;          /* of tables */
    uint32_t *row_uses;          /* of tables */
//$ end
    const float *constants;      /* [$(names.macro("TRAIN_CONSTANTS"))]$(training.constants > 0 and "" or "; may be null") */
    const uint32_t *lengths;     /* [sequences] tokens of each, at least 1; what follows is padding, whose targets are -1;
                                    null: all are full */
//$ if lookups[1] then
    float table_rate, table_epsilon; /* of rows of tables, which move as the LookupFFN's rates say below */
    float beta1, beta2, correction1, correction2; /* of Adam; corrections 1 / (1 - beta^step) */
    int adam;                    /* 0: tables have row-wise Adagrad, else lazy Adam */
//$ else
    float table_rate, table_epsilon, beta1, beta2, correction1, correction2; /* of tables */
    int adam;                    /* of tables */
//$ end
    float gradient_scale;        /* of the sum of cross-entropies, whose gradients are added */
    float dropout;               /* share; 0: none */
    uint64_t seed, step;         /* of dropout */
    uint64_t first_sequence;     /* number of the first sequence of a call in the whole batch, of dropout */
    size_t part, parts;          /* all `parts` threads make the same calls, each with its own part, from 0 on */
    void (*barrier)(void *);     /* at which they meet; not called if parts is 1 */
    void *context;               /* of the barrier */
//$ if lookups[1] then
    uint32_t *rows;              /* null: a step updates tables; else it lists the rows that it would have changed: */
    uint32_t *row_counts;        /* [tables]: how many of each table of all layers */
    float *row_gradients;        /* [$(parameters) - $(gradients)]: `rows` from the table's first row in table_state on are
                                    numbers among all
                                    rows of the layer, ascending; their gradients begin where the table does behind the other tensors */
//$ else
    uint32_t *rows, *row_counts; /* of tables */
    float *row_gradients;        /* of tables */
//$ end
//$ local criterion_doc = training.head.at and "null: cross-entropy" or "what a token's features cost; must not be null"
    $(helper)_criterion criterion; /* $(criterion_doc) */
    void *criterion_context;
    $(helper)_observer observe;  /* may be null */
//$ if training.by_tables then
    int signs;                   /* of attention by tables: 0: weights are those expected; 1: tables with signs of this step, by
                                    seed and step; 2: tables with the model's signs */
//$ end
} $(helper);
//$ for i, v in ipairs(variants) do

/* The same with $(v.isa.name). */ //$ if i > 1
/* $(v.isa.name): bytes of the workspace of a call, 64-byte aligned, which all parts share. */ //$ if i <= 1
$(api)size_t $(v.training.names.workspace)(size_t sequences, size_t length, size_t parts);
//$ if i == 1 then

/* Adds the gradients of the sum of the cross-entropies (nats) of the targets, times
   gradient_scale$(lookups[1] and ", and updates tables" or ""); returns that sum, the same to
   every part, and the same bytes for any number of parts.
   t             what the part reads and writes
   ids, targets  [sequences][length], ids below $(names.macro("VOCAB")); a target of -1 does not count
   sequences     how many there are
   length        of each, at most $(names.macro("CONTEXT"))
   workspace     of as many bytes as such a call takes, see above */
//$ end
$(api)double $(v.training.names.step)(const $(helper) *t, const int32_t *ids, const int32_t *targets, size_t sequences,
    size_t length, void *workspace);
//$ if i == 1 then

/* The sum alone, without dropout; gradients may be null. */
//$ end
$(api)double $(v.training.names.loss)(const $(helper) *t, const int32_t *ids, const int32_t *targets, size_t sequences,
    size_t length, void *workspace);
//$ if lookups[1] then
//$     if i == 1 then

/* Updates tables by the lists. All parts call it. */
//$     end
$(api)void $(v.training.names.apply)(const $(helper) *t);
//$ end
//$ end
//$ for _, own in ipairs(lookups) do

$(include("templates/lookup/training/declarations.h", own))
//$ end

#ifdef __cplusplus
}
#endif

#endif
