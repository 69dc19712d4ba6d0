/* Calls of a device's program, and how far their outputs are off: with and without an operating system. */
#include "harness/device/device.h"

/* What an argument that is in a memory stands for. */
static uintptr_t word_at(const device_argument *a, size_t place)
{
    const unsigned char *at = device.memories[a->of].memory + a->at + place * a->place;
    return a->value ? (uintptr_t) * (const int32_t *)(const void *)at : (uintptr_t)at;
}

static void prepare(device_call *call)
{
    for (device_step *step = call->steps; step < call->steps + call->count; ++step) {
        for (size_t i = 0; i < step->count; ++i) {
            const device_argument *a = &step->arguments[i];
            switch (a->kind) {
            case DEVICE_NUMBER: step->words[i] = (uintptr_t)a->of; break;
            case DEVICE_MEMORY: step->words[i] = word_at(a, 0); break;
            case DEVICE_WEIGHTS: step->words[i] = (uintptr_t)device.libraries[step->library].weights; break;
            case DEVICE_BLOB: step->words[i] = (uintptr_t)device.libraries[step->library].bound; break;
            }
        }
    }
}

bool device_prepare(void)
{
    bool good = true;
    for (device_call *first = device.setups; first < device.setups + device.setup_count; ++first) {
        prepare(first);
        good &= device_run(first);
    }
    for (size_t i = 0; i < device.call_count; ++i) {
        prepare(&device.calls[i]);
    }
    for (size_t i = 0; i < device.check_count; ++i) {
        prepare(&device.checks[i].call);
    }
    return good;
}

/* One call, at the next of its places; false: a function reports an error. */
bool device_run(device_call *call)
{
    bool good = true;
    for (device_step *step = call->steps; step < call->steps + call->count; ++step) {
        uintptr_t *const w = step->words;
        for (size_t i = 0; i < step->count; ++i) {
            const device_argument *a = &step->arguments[i];
            if (a->place > 0) {
                w[i] = word_at(a, call->place);
            }
        }
        const uintptr_t status = step->called(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]);
        good &= !step->status || (int)status == 0;
    }
    call->place += 1;
    call->place -= call->place < call->places ? 0 : call->places;
    return good;
}

uintptr_t device_copy(uintptr_t to, uintptr_t from, uintptr_t bytes)
{
    for (uintptr_t i = 0; i < bytes; ++i) {
        ((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
    }
    return 0;
}

/* The larger one; NaN is the largest. */
static double larger(double a, double b)
{
    return a != a || b <= a ? a : b;
}

device_errors device_compare(const device_check *check)
{
    const float *y = (const float *)(const void *)device.memories[check->y].memory;
    const double *expected = (const double *)(const void *)device.memories[check->expected].memory;
    device_errors most = {0.0, 0.0, 0.0};
    double all_off = 0.0, all_length = 0.0;
    for (size_t token = 0; check->period > 0 && token < check->tokens; ++token) {
        const float *row = y + token * check->width;
        const double *right = expected + token % check->period * check->width;
        double off = 0.0, length = 0.0;
        for (size_t i = 0; i < check->width && right[0] == right[0]; ++i) {
            const double difference = (double)row[i] - right[i], square = difference * difference;
            off += square;
            length += right[i] * right[i];
            most.absolute = larger(most.absolute, square);
        }
        most.relative = larger(most.relative, off == 0.0 ? 0.0 : off / length);
        all_off += off;
        all_length += length;
    }
    most.all = all_off == 0.0 ? 0.0 : all_off / all_length;
    return most;
}
