//$ takes
/* The tokenizer. Threads may share it; copies share tables. */
class model {
public:
    explicit model(const weights &bound) : weights_(bound) {}
    explicit model(const std::string &path) : model(weights(path)) {}

$(include("templates/cpp/tokenizer_calls.hpp"))

private:
    weights weights_;
};
