// C++ chains: templates, virtual calls, closures, a catch block, a destructor during unwinding.
#include <algorithm>
#include <functional>
#include <stdexcept>
#include <vector>

typedef void probe_fn();
#define OUT extern "C" __attribute__((noinline, visibility("default")))
#define BARRIER(p) __asm__ volatile("" : : "r"(p) : "memory")

OUT void cpp_leaf(probe_fn *probe) {
    double pad[7] = {};
    BARRIER(pad);
    probe();
    BARRIER(pad);
}

struct Shape {
    virtual ~Shape() = default;
    virtual int area(probe_fn *probe) = 0;
};
struct Square : Shape {
    int area(probe_fn *probe) override {
        cpp_leaf(probe);
        BARRIER(this);
        return 1;
    }
};

OUT int virtual_call(probe_fn *probe) {
    Square square;
    Shape *shape = &square;
    BARRIER(&shape);
    return shape->area(probe) + 1;
}

OUT int closures(probe_fn *probe) {
    std::vector<int> numbers(40, 7);
    std::function<bool(int, int)> less = [probe](int a, int b) {
        cpp_leaf(probe);
        BARRIER(&a);
        return a < b;
    };
    std::stable_sort(numbers.begin(), numbers.end(), less);
    return numbers[0];
}

struct Guard {
    probe_fn *probe;
    ~Guard() {
        cpp_leaf(probe);
        BARRIER(this);
    }
};

OUT int throwing(probe_fn *probe) {
    Guard guard{probe};
    BARRIER(&guard);
    throw std::runtime_error("expected");
}

OUT int exceptions(probe_fn *probe) {
    try {
        return throwing(probe);
    } catch (const std::exception &) {
        cpp_leaf(probe);
        BARRIER(probe);
        return 1;
    }
}
