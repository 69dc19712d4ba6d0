// The program lookupc-tokenizer: trains a tokenizer on text with SentencePiece.
// Usage: lookupc-tokenizer KIND PIECES COVERAGE FALLBACK OUT PARENT FILE...: KIND is bpe or unigram, FALLBACK true or false, as
// SentencePiece takes them; PARENT is the process that starts it; the files are UTF-8. Text stays as it is: no normalisation, and line
// feeds are characters like others. The same texts and numbers give the same bytes.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include <sentencepiece_trainer.h>

#include "gen/host/files.h"
#include "harness/base/parent.h"

namespace
{

constexpr std::size_t most_bytes = std::size_t{1} << 34; // of a file
constexpr std::size_t chunk_bytes = 4000;                // of what SentencePiece takes as a sentence, about

// The texts of files in chunks that end with a line where they can.
class chunks : public sentencepiece::SentenceIterator
{
  public:
    chunks(char **first, char **last) : path_(first), last_(last)
    {
        Next();
    }
    bool done() const override
    {
        return done_;
    }
    const std::string &value() const override
    {
        return chunk_;
    }
    sentencepiece::util::Status status() const override
    {
        return {};
    }
    const std::string &error() const
    {
        return error_;
    }

    void Next() override
    {
        while (at_ == size_) {
            if (path_ == last_ || !error_.empty()) {
                done_ = true;
                return;
            }
            open(*path_++);
        }
        const std::size_t left = size_ - at_;
        std::size_t length = left < chunk_bytes ? left : chunk_bytes;
        if (length < left) {
            std::size_t end = length;
            while (end > 0 && text_.get()[at_ + end - 1] != '\n') {
                --end;
            }
            if (end > 0) {
                length = end;
            } else {
                while (length > 1 && (text_.get()[at_ + length] & 0xc0) == 0x80) { // inside a character
                    --length;
                }
            }
        }
        chunk_.assign(text_.get() + at_, length);
        at_ += length;
    }

  private:
    void open(const char *path)
    {
        char *bytes = nullptr, error[512];
        at_ = size_ = 0;
        if (!files_read(path, most_bytes, &bytes, &size_, error, sizeof error)) {
            error_ = error;
            size_ = 0;
        }
        text_.reset(bytes);
    }

    struct release {
        void operator()(char *bytes) const
        {
            std::free(bytes);
        }
    };
    char **path_, **last_;
    std::unique_ptr<char, release> text_;
    std::size_t at_ = 0, size_ = 0;
    std::string chunk_, error_;
    bool done_ = false;
};

int fail(const std::string &message)
{
    std::fprintf(stderr, "%s\n", message.c_str());
    return 1;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 8) {
        std::fputs("usage: lookupc-tokenizer KIND PIECES COVERAGE FALLBACK OUT PARENT FILE...\n", stderr);
        return 2;
    }
    end_with_parent(static_cast<pid_t>(std::atoi(argv[6]))); // nobody else wants the result
    const std::unordered_map<std::string, std::string> options = {
        {"model_type", argv[1]},
        {"vocab_size", argv[2]},
        {"character_coverage", argv[3]},
        {"byte_fallback", argv[4]},
        {"normalization_rule_name", "identity"},
        {"add_dummy_prefix", "false"},
        {"remove_extra_whitespaces", "false"},
        {"allow_whitespace_only_pieces", "true"},
        {"max_sentence_length", std::to_string(2 * chunk_bytes)},
        {"num_threads", "4"}, // sums of floats depend on it
        {"minloglevel", "2"},
    };
    chunks text(argv + 7, argv + argc);
    std::string model;
    const auto status = sentencepiece::SentencePieceTrainer::Train(options, &text, &model);
    if (!text.error().empty()) {
        return fail(text.error());
    }
    if (!status.ok()) {
        return fail(status.ToString());
    }
    char error[512];
    files_output output = {argv[5], model.data(), model.size(), true, false};
    return files_write(&output, 1, error, sizeof error) ? 0 : fail(error);
}
