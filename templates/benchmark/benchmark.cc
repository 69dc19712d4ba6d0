//$ takes calls, rows, isas, isa_names, exact, input, output, ids, memory, random, several, width, width_out, requests_amx, format, header_bytes
//$ local program = names.benchmark
//$ local several_isas = #isas > 1
//$ local before = several_isas and "Before a call is timed its results are compared with those of the first instruction set: where they differ it is not timed, and the program returns 1."
//$     or "Where the results of a call are not finite it is not timed, and the program returns 1."
/* Times the calls of $(model) on this machine, with the build that it is linked to, for each instruction set of the bundle that this CPU
   runs. Google Benchmark 1.7 or later, C++14 or later:

     $(program) [BLOB] [--benchmark_filter=...] [--benchmark_out=FILE] ...

   BLOB is a file that lookupc pack wrote$(random and "; without it weights are random" or ""). tokens, bytes: a second; bytes are those of
   weights, once a call, and of rows that tokens take of tables. $(before) */

#include "$(names.header)"

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <list>
#include <string>
#include <vector>

#include <stddef.h>
#include <stdint.h>

namespace {

/* Zeroed bytes, aligned as calls need them. */
class memory {
public:
    explicit memory(size_t bytes) : bytes_(bytes + $(names.macro("ALIGN"))) {}
    unsigned char *data()
    {
        return bytes_.data() + ($(names.macro("ALIGN")) - reinterpret_cast<uintptr_t>(bytes_.data()) % $(names.macro("ALIGN")));
    }

private:
    std::vector<unsigned char> bytes_;
};

/* Random numbers, the same in every run (SplitMix64). */
class numbers {
public:
    explicit numbers(uint64_t seed) : state_(seed) {}
    uint64_t bits()
    {
        uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    /* From low to high, both included. */
    int64_t integer(int64_t low, int64_t high)
    {
        return low + static_cast<int64_t>(bits() % static_cast<uint64_t>(high - low + 1));
    }
    /* Uniform, with that mean and standard deviation. */
    float number(double mean, double deviation)
    {
        const double unit = static_cast<double>(bits() >> 11) / 9007199254740992.0; /* 2^53 */
        return static_cast<float>(mean + deviation * (unit - 0.5) * 3.4641016);
    }
//$ local has = random and random.methods or {}
//$ if has.floats then
    void floats(unsigned char *at, size_t count, double mean, double deviation)
    {
        for (size_t i = 0; i < count; ++i) {
            const float value = number(mean, deviation);
            std::memcpy(at + i * sizeof value, &value, sizeof value);
        }
    }
//$ end
//$ if has.bf16 then
    /* The upper halves of floats. */
    void bf16(unsigned char *at, size_t count, double mean, double deviation)
    {
        for (size_t i = 0; i < count; ++i) {
            const float value = number(mean, deviation);
            uint32_t bits;
            std::memcpy(&bits, &value, sizeof bits);
            const uint16_t half = static_cast<uint16_t>(bits >> 16);
            std::memcpy(at + i * sizeof half, &half, sizeof half);
        }
    }
//$ end
//$ if has.f16 then
    /* Half precision: what is too small for it becomes 0. */
    void f16(unsigned char *at, size_t count, double mean, double deviation)
    {
        for (size_t i = 0; i < count; ++i) {
            const float value = number(mean, deviation);
            uint32_t bits;
            std::memcpy(&bits, &value, sizeof bits);
            const uint32_t sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
            const uint16_t half = static_cast<uint16_t>(sign | (rest < 0x38800000u ? 0 : (rest - 0x38000000u) >> 13));
            std::memcpy(at + i * sizeof half, &half, sizeof half);
        }
    }
//$ end
//$ if has.integers then
    template <typename type> void integers(unsigned char *at, size_t count, int64_t low, int64_t high)
    {
        for (size_t i = 0; i < count; ++i) {
            const type value = static_cast<type>(integer(low, high));
            std::memcpy(at + i * sizeof value, &value, sizeof value);
        }
    }
//$ end
//$ if has.nibbles then
    /* Pairs of integers from -7 to 7. */
    void nibbles(unsigned char *at, size_t count)
    {
        for (size_t i = 0; i < count; ++i)
            at[i] = static_cast<unsigned char>((integer(-7, 7) & 15) | (integer(-7, 7) & 15) << 4);
    }
//$ end
//$ if has.e4m3 then
    /* Finite fp8 numbers: a sign, and less than the exponent 14. */
    void e4m3(unsigned char *at, size_t count)
    {
        for (size_t i = 0; i < count; ++i)
            at[i] = static_cast<unsigned char>(integer(0, 1) << 7 | integer(0, 0x6f));
    }
//$ end
//$ if has.groups then
    /* Groups of so many words, of which the first ones are scales, pairs in half precision, and behind as many of these minima, if there
       are any; the others are weights. */
    void groups(unsigned char *at, size_t count, size_t words, size_t first, uint32_t scales, uint32_t minima)
    {
        for (size_t i = 0; i < count; ++i) {
            const size_t place = i % words;
            const bool weights = place >= first, minimum = minima != 0 && place >= first / 2;
            const uint32_t word = weights ? static_cast<uint32_t>(bits()) : minimum ? minima : scales;
            std::memcpy(at + i * sizeof word, &word, sizeof word);
        }
    }
//$ end

private:
    uint64_t state_;
};
//$ if random then

/* Fills a blob with random weights, and the header that $(names.bind) expects. */
void fill(unsigned char *blob)
{
    const $(names.description) *sizes = $(names.sizes)();
    const uint32_t versions[2] = { $(format), $(header_bytes) };
    const uint64_t bytes = $(names.macro("WEIGHTS_BYTES"));
    numbers draw(1);

    draw.$(line.call); /* $(line.doc) */ //$ for _, line in ipairs(random.lines)
    std::memcpy(blob, "LOOKUPC", 8);
    std::memcpy(blob + 8, versions, sizeof versions);
    for (unsigned i = 0; i < 16; ++i) { /* of the model */
        const std::string digits(sizes->digest + 2 * i, 2);
        blob[16 + i] = static_cast<unsigned char>(std::stoul(digits, nullptr, 16));
    }
    std::memcpy(blob + 32, &bytes, sizeof bytes);
    uint64_t sum = 0xcbf29ce484222325u; /* the checksum of $(names.source), which wants little-endian words */
    for (size_t i = $(header_bytes); i < $(names.macro("WEIGHTS_BYTES")); i += 8) {
        uint64_t word;
        std::memcpy(&word, blob + i, sizeof word);
        sum = (sum ^ word) * 0x00000100000001b3u;
        sum ^= sum >> 32;
    }
    std::memcpy(blob + 40, &sum, sizeof sum);
}
//$ end

/* What a call works on. */
struct arguments {
    const $(names.weights) *weights;
    const int32_t *ids; //$ if ids
    const $(input) *x; //$ if not ids
    $(output) *y;
    size_t tokens;
//$ if several then
    const size_t *offsets;
    size_t sequences;
//$ end
    unsigned char *$(memory); //$ if memory
    unsigned char *scratch;
};
//$ local function runs(call) return "run" .. call.name:sub(#model + 1) end
//$ for _, call in ipairs(calls) do

int $(runs(call))(const arguments &of)
{
    $(call.start)(of.$(memory)); //$ if call.start
//$ if call.one_by_one then
    for (size_t i = 0; i < of.tokens; ++i) {
        const int status = $(call.name)($(call.program));
        if (status != $(names.macro("OK")))
            return status;
    }
    return $(names.macro("OK"));
//$ elseif call.status then
    return $(call.name)($(call.program));
//$ else
    $(call.name)($(call.program));
    return $(names.macro("OK"));
//$ end
}
//$ end

/* A call for so many tokens$(several and " of so many sequences" or ""). */
struct timed {
    const char *name;
    int (*run)(const arguments &of);
    size_t tokens;
    size_t sequences; //$ if several
    size_t results;   /* rows of y */
    double bytes;     /* of weights and rows that it reads */
    double tolerance; /* by which a row may differ, relative to its norm */
    size_t most_off;  /* rows that may differ by more: a sign of what is nearly 0 decides which row of a table they take */
};

const timed timed_calls[] = {
//$ for _, row in ipairs(rows) do
//$ local of = several and row.sequences .. ", " or ""
    { "$(row.call.name)", $(runs(row.call)), $(row.tokens), $(of)$(row.results), $(row.bytes).0, $(row.tolerance), $(row.most_off) },
//$ end
};

/* In the order of weights.isa. */
const char *const isas[] = { $(isa_names) };

const size_t turns = 64; /* calls take turns in their first token, so that they take other rows of tables */

/* Weights, and the memory of all calls. */
class bench {
public:
    bench() : blob_($(names.macro("WEIGHTS_BYTES")))$(memory and ", " .. memory .. "_(" .. names.macro(memory:upper() .. "_BYTES") .. ")" or ""), scratch_($(names.macro("SCRATCH_BYTES"))) {}

    /* Binds the file `path`, or random weights for a null pointer. Says in one line why it cannot be done. */
    bool bind(const char *path)
    {
        if (path && !read(path))
            return false;
//$ if random then
        if (!path)
            fill(blob_.data());
//$ end
        const int status = $(names.bind)(blob_.data(), $(names.macro("WEIGHTS_BYTES")), &weights_);
        if (status != $(names.macro("OK")))
            std::fprintf(stderr, "$(program): %s: %s\n", path ? path : "random weights", $(names.error)(status));
        return status == $(names.macro("OK"));
    }

    /* Inputs number `seed`, for `tokens` tokens and all turns. */
    void draw(uint64_t seed, size_t tokens)
    {
        numbers from(seed);
//$ if ids then
        ids_.resize(tokens + turns);
        for (int32_t &id : ids_)
            id = static_cast<int32_t>(from.integer(0, $(names.macro("VOCAB")) - 1));
//$ else
        x_.resize((tokens + turns) * $(width));
        for ($(input) &x : x_)
            x = static_cast<$(input)>(from.integer(-32768, 32767)); //$ if exact
            x = from.number(0, 1); //$ if not exact
//$ end
    }

    /* What `of` is called with, by an instruction set. */
    arguments given(const timed &of, int isa)
    {
        arguments all = arguments();
        weights_.isa = isa; //$ if several_isas
        (void) isa; //$ if not several_isas
        all.weights = &weights_;
        all.ids = ids_.data(); //$ if ids
        all.x = x_.data(); //$ if not ids
        y_.resize(of.results * $(width_out));
        all.y = y_.data();
        all.tokens = of.tokens;
//$ if several then
        offsets_.resize(of.sequences + 1);
        for (size_t i = 0; i <= of.sequences; ++i)
            offsets_[i] = of.tokens * i / of.sequences;
        all.offsets = offsets_.data();
        all.sequences = of.sequences;
//$ end
        all.$(memory) = $(memory)_.data(); //$ if memory
        all.scratch = scratch_.data();
        return all;
    }

    /* What is wrong with the results of `of` by an instruction set; "": nothing. They are wrong if they are so for each of three inputs: a
       sign or a rounding that nearly is another one may be another one. */
    std::string fault_of(const timed &of, int isa)
    {
        std::string fault;
        for (uint64_t seed = 1; seed <= 3; ++seed) {
            draw(seed, of.tokens);
            fault = fault_of_inputs(of, isa$(several_isas and ", seed" or ""));
            if (fault.empty())
                break;
        }
        return fault;
    }

private:
    bool read(const char *path)
    {
        std::FILE *file = std::fopen(path, "rb");
        const size_t bytes = $(names.macro("WEIGHTS_BYTES"));
        const bool opened = file != nullptr, all = opened && std::fread(blob_.data(), 1, bytes, file) == bytes;
        const bool good = all && std::fgetc(file) == EOF;
        if (!opened || std::ferror(file))
            std::fprintf(stderr, "$(program): %s: cannot be read\n", path);
        else if (!good)
            std::fprintf(stderr, "$(program): %s: %s\n", path, $(names.error)($(names.macro("ERROR_SIZE"))));
        if (opened)
            std::fclose(file);
        return good;
    }

    std::string fault_of_inputs(const timed &of, int isa$(several_isas and ", uint64_t seed" or ""))
    {
        y_.assign(of.results * $(width_out), 0); //$ if exact
        y_.assign(of.results * $(width_out), std::numeric_limits<$(output)>::quiet_NaN()); //$ if not exact
        const int status = of.run(given(of, isa));
        if (status != $(names.macro("OK")))
            return $(names.error)(status);
//$ if not exact then
        for (const $(output) value : y_)
            if (!std::isfinite(value))
                return "its results are not finite";
//$ end
//$ if several_isas then
        const std::vector<$(output)> found = y_;
        if (seed != 1 || expected_of_ != &of) {
            if (isa != reference_)
                of.run(given(of, reference_));
            expected_ = y_;
            expected_of_ = seed == 1 ? &of : nullptr;
        }
        return difference(of, found);
//$ else
        return "";
//$ end
    }
//$ if several_isas then

    /* How results `found` differ from those expected. */
    std::string difference(const timed &of, const std::vector<$(output)> &found) const
    {
        size_t off = 0;
        double worst = 0;
        for (size_t row = 0; row < of.results; ++row) {
            double squares = 0, norm = 0;
            for (size_t i = row * $(width_out); i < (row + 1) * $(width_out); ++i) {
                const double wanted = static_cast<double>(expected_[i]), apart = static_cast<double>(found[i]) - wanted;
                squares += apart * apart;
                norm += wanted * wanted;
            }
            const double error = !(squares <= 0) ? std::sqrt(squares / norm) : 0; /* NaN is one */
            if (!(error <= of.tolerance))
                ++off;
            if (!(error <= worst))
                worst = error;
        }
        if (off <= of.most_off)
            return "";
        char text[160];
        std::snprintf(text, sizeof text, "differs from %s: %zu of %zu rows, by up to %.2g of their norm, not %g",
            isas[reference_], off, of.results, worst, of.tolerance);
        return text;
    }

public:
    /* Chooses what results are compared with: the first instruction set that this CPU runs. */
    void choose()
    {
        while (!$(names.runs)(reference_))
            ++reference_;
    }

private:
    int reference_ = 0;
    std::vector<$(output)> expected_; /* of the first inputs of the row expected_of_, if there is one */
    const timed *expected_of_ = nullptr;
//$ end
    memory blob_;
    $(names.weights) weights_ = $(names.weights)();
    std::vector<int32_t> ids_; //$ if ids
    std::vector<$(input)> x_; //$ if not ids
    std::vector<$(output)> y_;
    std::vector<size_t> offsets_; //$ if several
    memory $(memory)_; //$ if memory
    memory scratch_;
};

/* A row of what is printed. */
struct line {
    const timed *of;
    int isa;
    bool compared;
    std::string fault;
};

void time_calls(benchmark::State &state, bench &with, line &row)
{
    const timed &of = *row.of;
    if (!row.compared) {
        row.fault = with.fault_of(of, row.isa);
        row.compared = true;
    }
    if (!row.fault.empty()) {
        state.SkipWithError(row.fault.c_str());
        return;
    }
    with.draw(0, of.tokens);
    arguments all = with.given(of, row.isa);
//$ local at = ids and "ids" or "x"
    const $(ids and "int32_t" or input) *const first = all.$(at);
    size_t turn = 0;
    for (auto _ : state) {
        all.$(at) = first + turn++ % turns$(ids and "" or " * " .. width);
        of.run(all);
        benchmark::ClobberMemory();
    }
    const double calls = static_cast<double>(state.iterations());
    state.counters["tokens"] = benchmark::Counter(calls * static_cast<double>(of.tokens), benchmark::Counter::kIsRate);
    state.counters["bytes"] = benchmark::Counter(calls * of.bytes, benchmark::Counter::kIsRate);
}

} // namespace

int main(int argc, char **argv)
{
    bench with;
    std::list<line> lines;
    int status = 0;

    benchmark::Initialize(&argc, argv);
    if (argc > 2 || (argc > 1 && argv[1][0] == '-')) {
        std::fprintf(stderr, "$(program): %s: not understood: $(program) [BLOB] [--benchmark_...]\n", argv[argc - 1]);
        return 2;
    }
//$ if not random then
    if (argc < 2) {
        std::fprintf(stderr, "$(program): a BLOB is missing: weights that are multiplied out cannot be random\n");
        return 2;
    }
//$ end
    $(names.request_amx)(); /* without it $(names.runs) says no to AMX */ //$ if requests_amx
    if (!with.bind(argc > 1 ? argv[1] : nullptr))
        return 1;
    with.choose(); //$ if several_isas
    for (const timed &of : timed_calls)
        for (int isa = 0; isa < $(#isas); ++isa) {
//$ if several_isas then
            if (!$(names.runs)(isa))
                continue;
//$ end
            lines.push_back(line{ &of, isa, false, "" });
            line &row = lines.back();
            const std::string name = std::string(of.name) + "/" + isas[isa] + "/" + std::to_string(of.tokens);
            benchmark::internal::Benchmark *added = benchmark::RegisterBenchmark(
                name.c_str(), [&with, &row](benchmark::State &state) { time_calls(state, with, row); });
            added->Unit(benchmark::kMicrosecond);
#ifdef $(names.macro("OPENMP"))
            added->UseRealTime(); /* of all threads */
#endif
        }
    benchmark::AddCustomContext("model", $(names.sizes)()->model);
    benchmark::AddCustomContext("weights", argc > 1 ? argv[1] : "random");
    benchmark::RunSpecifiedBenchmarks();
    for (const line &row : lines)
        if (!row.fault.empty())
            status = 1;
    benchmark::Shutdown();
    return status;
}
