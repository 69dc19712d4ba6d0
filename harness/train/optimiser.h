/* AdamW on pieces of tensors, and the sum of squares that clips gradients. */
#ifndef LOOKUPC_TRAIN_OPTIMISER_H
#define LOOKUPC_TRAIN_OPTIMISER_H

#include <stddef.h>

/* What a step has in common for all elements of a tensor. Source: Loshchilov, Hutter, "Decoupled weight decay regularization". */
typedef struct {
    float rate;          /* of this step and tensor */
    float decay;         /* a weight loses rate * decay of itself */
    float beta1, beta2;  /* how slowly both averages forget */
    float first, second; /* what they have to be multiplied with after so few steps: 1 / (1 - beta^step) */
    float epsilon;
} adam_step;

/* From 1 on; `step` 1 is the first. */
adam_step adam_at(size_t step, float rate, float decay, float beta1, float beta2, float epsilon);

/* Updates weights[count] and their averages with gradients[count] times scale; averages that fade below 1e-30 become 0. May not alias. */
void adam_update(const adam_step *s, float scale, float *restrict weights, const float *restrict gradients, float *restrict first,
                 float *restrict second, size_t count);

/* The sum of squares of values[count], the same bits in whatever order it is vectorised: eight sums in turn. */
double sum_of_squares(const float *values, size_t count);

#endif
