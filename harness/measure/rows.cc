// Memory, libraries and calls of compiled code, as a job of the measuring process describes them.
#include "harness/measure/rows.hh"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "gen/weights/random.h"
#include "harness/base/blob_memory.h"
#include "harness/base/memory.h"

namespace
{

constexpr size_t most = (size_t)1 << 44, most_words = 8;

// A function that does not take so many words gets some that it does not look at.
using words = std::array<uintptr_t, most_words>;
using function = uintptr_t(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

template <typename type> type *pointer(uintptr_t word)
{
    return reinterpret_cast<type *>(word);
}

// Inputs such as text has: frequent tokens come again and again, each time a little different.
void fill_skewed(float *numbers, size_t count, uint64_t seed, size_t width)
{
    constexpr size_t kinds = 1024; // the k-th most frequent one is k times rarer than the first: Zipf's law
    constexpr double difference = 0.1;
    random_state random = random_seed(seed);
    std::vector<float> kind(kinds * width);
    random_fill(&random, kind.data(), kind.size(), 0.0, 1.0);
    random_fill(&random, numbers, count, 0.0, difference);
    for (size_t at = 0; at + width <= count; at += width) {
        const auto place = static_cast<size_t>(std::exp(random_uniform(&random) * std::log(static_cast<double>(kinds))));
        const float *from = &kind[(std::min(place, kinds) - 1) * width];
        std::transform(from, from + width, numbers + at, numbers + at, std::plus<>());
    }
}

// Functions of steps without a library.

uintptr_t copy(uintptr_t to, uintptr_t from, uintptr_t bytes, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t)
{
    std::memcpy(pointer<void>(to), pointer<const void>(from), bytes);
    return 0;
}

// Reads memory in four streams side by side, to which it gives more than to one.
uintptr_t read(uintptr_t memory, uintptr_t bytes, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t)
{
    constexpr size_t streams = 4, piece = 512;
    const size_t each = bytes / streams / piece * piece;
    for (size_t at = 0; at < each; at += piece) {
        for (size_t stream = 0; stream < streams; ++stream) {
            limits_read(pointer<const void>(memory + stream * each + at), piece);
        }
    }
    return 0;
}

// Lays codes and scores [tokens][slots] out as a tile [slots][tile]: warm in cache, as a projection leaves them. About 0.6 ns a token and
// slot; to read them from a tile kept for each call would cost more, for it would be cold.
uintptr_t tile(uintptr_t to_code, uintptr_t to_score, uintptr_t from_code, uintptr_t from_score, uintptr_t tokens, uintptr_t slots,
               uintptr_t width, uintptr_t)
{
    auto *code = pointer<uint16_t>(to_code);
    auto *score = pointer<float>(to_score);
    for (size_t lane = 0; lane < tokens; ++lane) {
        const auto *own_code = pointer<const uint16_t>(from_code) + lane * slots;
        const auto *own_score = pointer<const float>(from_score) + lane * slots;
        for (size_t slot = 0; slot < slots; ++slot) {
            code[slot * width + lane] = own_code[slot];
            score[slot * width + lane] = own_score[slot];
        }
    }
    return 0;
}

// The other way round, of tiles one behind the other.
uintptr_t by_token(uintptr_t to_code, uintptr_t to_score, uintptr_t from_code, uintptr_t from_score, uintptr_t tokens, uintptr_t slots,
                   uintptr_t width, uintptr_t)
{
    for (size_t token = 0; token < tokens; ++token) {
        for (size_t slot = 0; slot < slots; ++slot) {
            const size_t from = (token / width * slots + slot) * width + token % width;
            pointer<uint16_t>(to_code)[token * slots + slot] = pointer<const uint16_t>(from_code)[from];
            pointer<float>(to_score)[token * slots + slot] = pointer<const float>(from_score)[from];
        }
    }
    return 0;
}

const std::map<std::string, function *> own_functions = {{"copy", copy}, {"read", read}, {"tile", tile}, {"by_token", by_token}};

} // namespace

class measure_workshop::caller
{
  public:
    caller(size_t places, size_t place, size_t callers) : places_(places), place_(place % places), step_(callers % places) {}

    void add_call(function *called, bool status)
    {
        calls_.push_back({called, status, {}});
        count_ = 0;
    }

    // The next argument of the last call; at another place `step` bytes further on.
    bool add_word(uintptr_t word, uintptr_t step, bool value)
    {
        if (count_ == most_words) {
            return false;
        }
        if (step > 0 || value) {
            moving_.push_back({calls_.size() - 1, count_, word, step, value});
        }
        calls_.back().arguments[count_++] = word;
        return true;
    }

    bool operator()()
    {
        for (const moving &m : moving_) {
            const uintptr_t at = m.first + place_ * m.step;
            calls_[m.call].arguments[m.word] = m.value ? static_cast<uintptr_t>(*pointer<const int32_t>(at)) : at;
        }
        place_ += step_;
        place_ -= place_ < places_ ? 0 : places_;
        bool good = true;
        for (const made &c : calls_) {
            const words &w = c.arguments;
            const uintptr_t status = c.called(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]);
            good &= !c.status || static_cast<int>(status) == 0;
        }
        return good;
    }

  private:
    struct made {
        function *called;
        bool status;
        words arguments;
    };
    struct moving {
        size_t call, word;
        uintptr_t first, step;
        bool value;
    };

    std::vector<made> calls_;
    std::vector<moving> moving_;
    size_t places_, place_, step_, count_ = 0;
};

measure_workshop::measure_workshop(const measure_object &job, const measure_timing_job &timing)
{
    for (const measure_object &row : job.objects("memory")) {
        make_memory(row, timing.seed + memory_.size());
    }
    for (const measure_object &row : job.objects("libraries")) {
        load(row);
    }
    for (const measure_object &row : job.objects("setup")) {
        for (caller &one : callers(row)) {
            if (!one()) {
                measure_fail("%s: %s: failed", job.file(), row.text("name"));
            }
        }
    }
}

unsigned char *measure_workshop::memory(const char *name, size_t number) const
{
    const auto found = memory_.find(name);
    if (found == memory_.end()) {
        measure_fail("%s: there is no such memory", name);
    }
    return found->second.copies[number % found->second.copies.size()];
}

size_t measure_workshop::bytes(const char *name) const
{
    memory(name);
    return memory_.at(name).bytes;
}

void measure_workshop::make_memory(const measure_object &row, uint64_t seed)
{
    const size_t bytes = row.integer("bytes", 0, most);
    const std::string fill = row.has("fill") ? row.text("fill") : "";
    buffer made = {bytes, {}};
    for (size_t i = 0; i < row.integer_or("copies", 1, 1024); ++i) {
        void *memory = row.flag("large") ? memory_of_large_pages(bytes) : aligned_memory(bytes);
        if (!memory) {
            measure_fail("out of memory for %zu bytes", bytes);
        }
        made.copies.push_back(static_cast<unsigned char *>(memory));
        if (fill == "normal") {
            measure_random(static_cast<float *>(memory), bytes / sizeof(float), seed, 1.0);
        } else if (fill == "skewed") {
            fill_skewed(static_cast<float *>(memory), bytes / sizeof(float), seed, row.integer("width", 1, most));
        } else if (fill == "units") {
            random_state random = random_seed(seed);
            std::generate_n(static_cast<int16_t *>(memory), bytes / sizeof(int16_t),
                            [&] { return static_cast<int16_t>(std::clamp(4096.0 * random_normal(&random), -32768.0, 32767.0)); });
        } else if (fill == "ids") {
            const size_t below = row.integer("below", 1, INT32_MAX);
            random_state random = random_seed(seed);
            std::generate_n(static_cast<int32_t *>(memory), bytes / sizeof(int32_t),
                            [&] { return static_cast<int32_t>(random_bits(&random) % below); });
        } else if (fill == "sizes") {
            auto *to = static_cast<size_t *>(memory);
            for (const json_t *size : row.values("sizes")) {
                *to++ = static_cast<size_t>(json_integer_value(size));
            }
        } else {
            std::memset(memory, 0, bytes);
        }
    }
    memory_[row.text("name")] = made;
}

void measure_workshop::load(const measure_object &row)
{
    char error[512];
    loaded own = {};
    const char *path = row.path("blob");
    const auto [blob, first] = blobs_.try_emplace(path);
    own.blob = &blob->second;
    if ((first && !blob_map(path, &blob->second, error, sizeof(error))) ||
        !library_open(&own.functions, row.path("library"), LIBRARY_STAYS, error, sizeof(error))) {
        measure_fail("%s", error);
    }
    if (row.has("weights_of")) {
        own.weights = libraries_.at(row.text("weights_of")).weights;
    } else {
        own.weights = aligned_memory(row.integer("weights_struct_bytes", 1, 1 << 24));
        if (!own.weights || !library_bind(&own.functions, row.word("bind"), path, own.blob, own.weights, error, sizeof(error))) {
            measure_fail("%s", own.weights ? error : "out of memory");
        }
    }
    libraries_[row.text("name")] = own;
}

// A number of bytes in the field of an argument, 0 without it.
static size_t bytes_of(const json_t *argument, const char *name)
{
    return static_cast<size_t>(json_integer_value(json_object_get(argument, name)));
}

void measure_workshop::add_argument(const measure_object &step, const json_t *argument, const loaded *own, size_t number, size_t first,
                                    size_t tokens, caller *to) const
{
    const char *text = json_string_value(json_is_object(argument) ? json_object_get(argument, "memory") : argument);
    const std::string name = text ? text : "";
    uintptr_t word = 0;
    if (json_is_integer(argument)) {
        word = static_cast<uintptr_t>(json_integer_value(argument));
    } else if (name == "tokens") {
        word = tokens;
    } else if (name == "weights" && own) {
        word = reinterpret_cast<uintptr_t>(own->weights);
    } else if (name == "blob" && own) {
        word = reinterpret_cast<uintptr_t>(own->blob->data);
    } else if (text) {
        word = reinterpret_cast<uintptr_t>(memory(text, number)) + bytes_of(argument, "at") + first * bytes_of(argument, "token");
    } else {
        step.refuse("arguments", argument, "must be integers, names or objects");
    }
    if (!to->add_word(word, bytes_of(argument, "place"), json_is_true(json_object_get(argument, "value")))) {
        step.refuse("arguments", argument, "must be at most %zu", most_words);
    }
}

void measure_workshop::add_step(const measure_object &step, size_t number, caller *to) const
{
    char error[512];
    const char *name = step.word("function");
    const loaded *own = step.has("library") ? &libraries_.at(step.text("library")) : nullptr;
    const auto known = own_functions.find(name);
    function *called = known == own_functions.end() ? nullptr : known->second;
    if (!called && !own) {
        measure_fail("%s: %s: there is no such function", step.file(), name);
    }
    if (!called && !library_find(&own->functions, name, &called, error, sizeof(error))) {
        measure_fail("%s", error);
    }
    const size_t tokens = step.integer_or("tokens", 1, most), chunk = step.integer_or("chunk", tokens, most);
    for (size_t first = 0; first < tokens; first += chunk) {
        to->add_call(called, step.flag("status"));
        for (const json_t *argument : step.values("arguments")) {
            add_argument(step, argument, own, number, first, std::min(chunk, tokens - first), to);
        }
    }
}

std::vector<measure_workshop::caller> measure_workshop::callers(const measure_object &row) const
{
    const size_t count = row.integer_or("callers", 1, 1024), places = row.integer_or("places", 1, most);
    std::vector<caller> list;
    for (size_t number = 0; number < count; ++number) {
        list.emplace_back(places, number, count);
        for (const measure_object &step : row.objects("steps")) {
            add_step(step, number, &list.back());
        }
    }
    return list;
}

void measure_random(float *numbers, size_t count, uint64_t seed, double deviation)
{
    constexpr size_t period = (1 << 20) - 7;
    random_state random = random_seed(seed);
    random_fill(&random, numbers, std::min(count, period), 0.0, deviation);
    for (size_t done = period; done < count; done += period) {
        std::memcpy(numbers + done, numbers, std::min(period, count - done) * sizeof(float));
    }
}

bool measure_together(size_t callers, const std::function<bool(size_t)> &one)
{
    bool good = true;
#pragma omp parallel for num_threads(callers) schedule(static, 1) reduction(&& : good)
    for (size_t caller = 0; caller < callers; ++caller) {
        good = one(caller) && good;
    }
    return good;
}

measure_call measure_workshop::call(const measure_object &row) const
{
    std::vector<caller> list = callers(row);
    const size_t threads = row.integer_or("threads", 1, 1024), turn = row.integer_or("turn", 0, 1000),
                 turns = row.integer_or("turns", 1, 1000);
    const char *name = row.text("name"), *alike = row.has("alike") ? row.text("alike") : "";
    std::function<bool()> one;
    if (list.size() == 1) {
        one = list.front();
    } else {
        one = [=]() mutable { return measure_together(list.size(), [&](size_t number) { return list[number](); }); };
    }
    return {name, std::max(threads, list.size()), row.flag("cold"), one, turn, turns, alike};
}
