// Containers, virtual functions and exceptions; prints what it computed.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

struct Shape {
    virtual ~Shape() = default;
    virtual long area() const = 0;
};
struct Square : Shape {
    long side;
    explicit Square(long side) : side(side) {}
    long area() const override {
        if (side % 7 == 0)
            throw std::out_of_range("side " + std::to_string(side));
        return side * side;
    }
};
struct Guard {
    std::shared_ptr<long> count;
    ~Guard() { ++*count; }
};

int main() {
    std::vector<std::unique_ptr<Shape>> shapes;
    for (long i = 0; i < 100; i++)
        shapes.push_back(std::make_unique<Square>(i));
    auto unwound = std::make_shared<long>(0);
    long total = 0, thrown = 0;
    for (auto &shape : shapes) {
        try {
            Guard guard{unwound};
            total += shape->area();
        } catch (const std::out_of_range &error) {
            thrown += std::string(error.what()).size();
        }
    }
    std::map<std::string, long> words;
    std::unordered_map<long, std::string> names;
    for (long i = 0; i < 500; i++) {
        words["word" + std::to_string(i * 7919 % 101)] += i;
        names[i * 31 % 257] += 'a' + char(i % 26);
    }
    std::vector<double> numbers;
    for (auto &entry : words)
        numbers.push_back(entry.second / 3.0);
    std::sort(numbers.begin(), numbers.end());
    std::string joined;
    for (long i = 0; i < 257; i += 16)
        joined += names[i];
    std::printf("%ld %ld %ld %zu %.3f %s\n", total, thrown, *unwound, words.size(), numbers[50], joined.c_str());
}
