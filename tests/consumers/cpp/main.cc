// Calls models through the classes of their C++ headers, and prints what they give.
#include "decoder.hpp"
#include "encoder.hpp"
#include "integers.hpp"
#include "tiny.hpp"
#include "tiny_skipless.hpp"

#include <cstdio>
#include <fstream>
#include <stdexcept>

template <typename Values> static void print(const char *name, const Values &values)
{
    std::printf("%s", name);
    for (const auto value : values)
        std::printf(" %.7g", static_cast<double>(value));
    std::printf("\n");
}

int main()
{
    std::vector<float> x(64), tokens;
    x[0] = 1;
    x[1] = -1;
    lookupc::tiny::model layer("tiny.bin");
    print("tiny", layer.ffn(x));

    std::vector<std::int16_t> units(64);
    units[0] = 1000;
    units[1] = -1000;
    print("integers", lookupc::integers::model("integers.bin").ffn(units));

    for (int i = 0; i < 3 * 64; ++i)
        tokens.push_back(static_cast<float>(i % 7 - 3) / 4);
    lookupc::tiny_skipless::model blocks("tiny_skipless.bin");
    lookupc::tiny_skipless::sequence sequence;
    std::vector<float> y = blocks.prefill(sequence, std::vector<float>(tokens.begin(), tokens.begin() + 128));
    for (const float value : blocks.decode(sequence, std::vector<float>(tokens.begin() + 128, tokens.end())))
        y.push_back(value);
    print("tiny_skipless", y);

    lookupc::decoder::model decoder("decoder.bin");
    lookupc::decoder::sequence text;
    const std::vector<std::int32_t> ids = decoder.tokenize("Hello");
    y = decoder.prefill_all(text, std::vector<std::int32_t>(ids.begin(), ids.end() - 1));
    lookupc::decoder::sequence branch = text;
    for (const float value : decoder.step(branch, ids.back()))
        y.push_back(value);
    print("decoder", y);
    std::printf("text %s %zu %zu\n", decoder.detokenize(ids).c_str(), text.position(), branch.position());

    lookupc::encoder::model encoder("encoder.bin");
    print("encoder", encoder.encode(encoder.tokenize("Hello")));

    try {
        layer.ffn(std::vector<float>(65));
    } catch (const std::invalid_argument &error) {
        std::printf("shape\n");
    }
    try {
        lookupc::tiny::model("encoder.bin");
    } catch (const lookupc::tiny::error &error) {
        std::printf("code %d: %s\n", error.code(), error.what());
    }
    std::ofstream("short.bin") << "few";
    for (const std::string name : {"short", "none"}) {
        try {
            lookupc::tiny::model(name + ".bin");
        } catch (const std::runtime_error &error) {
            std::printf("%s %s\n", name.c_str(), error.what());
        }
    }
    try {
        decoder.step(branch, 256);
    } catch (const lookupc::decoder::error &error) {
        std::printf("id %s\n", error.what());
    }
    return 0;
}
