//! flags: -pthread -std=c++20
// C++: new and delete in every form, exceptions through frames and threads, containers.
#include "victim.h"
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct alignas(128) Wide {
    char bytes[256];
};

static int destroyed;
struct Guard {
    std::string text = "a string that is too long to be kept within the object itself";
    ~Guard() { destroyed += text.size() > 20; }
};

__attribute__((noinline)) static void thrower(int depth) {
    Guard guard;
    if (depth == 0) throw std::runtime_error(guard.text + " thrown");
    thrower(depth - 1);
}

static int catches() {
    int caught = 0;
    for (int i = 0; i < 8; i++) {
        try {
            thrower(i);
        } catch (const std::exception &error) {
            caught += std::string(error.what()).ends_with("thrown");
        }
    }
    return caught;
}

int main() {
    std::map<std::string, std::vector<int>> map;
    for (int i = 0; i < 60; i++) map["key" + std::to_string(i % 7)].push_back(i);
    for (auto &[key, values] : map) printf("%s %d\n", key.c_str(), std::accumulate(values.begin(), values.end(), 0));
    CHECK(catches() == 8 && destroyed == 36);
    std::exception_ptr kept;
    std::thread thread([&] {
        try {
            thrower(3);
        } catch (...) {
            kept = std::current_exception();
        }
    });
    thread.join();
    try {
        std::rethrow_exception(kept);
    } catch (const std::runtime_error &error) {
        printf("%s\n", error.what());
    }
    auto wide = std::make_unique<Wide[]>(3);
    CHECK(reinterpret_cast<uintptr_t>(wide.get()) % 128 == 0);
    wide[2].bytes[255] = 1;
    int *array = new int[10];
    delete[] array;
    volatile size_t huge = size_t(1) << 62;
    bool refused = false;
    try {
        delete[] new char[huge];
    } catch (const std::bad_alloc &) {
        refused = true;
    }
    CHECK(refused && new (std::nothrow) char[huge] == nullptr);
    std::set_new_handler([] { throw std::bad_alloc(); });
    std::shared_ptr<Guard> shared = std::make_shared<Guard>();
    std::weak_ptr<Guard> weak = shared;
    shared.reset();
    CHECK(weak.expired());
    printf("ok\n");
    return 0;
}
