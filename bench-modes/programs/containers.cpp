// std::map and std::unordered_map: inserts, look-ups, walks in order, erasures. The argument is the number of steps.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

std::uint64_t state = 12345;

std::uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

}  // namespace

int main(int, char **argv) {
    const std::uint64_t steps = std::strtoull(argv[1], nullptr, 10), keys = steps / 4 + 1;
    std::map<std::uint64_t, std::string> ordered;
    std::unordered_map<std::string, std::uint64_t> counts;
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> groups;
    std::uint64_t found = 0, sum = 0;
    for (std::uint64_t step = 0; step < steps; ++step) {
        const std::uint64_t key = next() % keys;
        ordered.emplace(key, "value number " + std::to_string(key));
        ++counts["key" + std::to_string(next() % keys)];
        groups[key % 1024].push_back(static_cast<std::uint32_t>(step));
        const auto near = ordered.lower_bound(next() % keys);
        if (near != ordered.end()) found += near->second.size();
        if (step % 8 == 0) ordered.erase(next() % keys);
    }
    for (const auto &[key, value] : ordered) sum = sum * 31 + key + value.back();
    std::uint64_t most = 0, members = 0;
    for (const auto &[key, count] : counts) most = count > most ? count : most;
    for (const auto &[key, group] : groups) members += group.size() * (group.back() % 7 + 1);
    std::printf("%zu %zu %zu\n", ordered.size(), counts.size(), groups.size());
    std::printf("%llu %llu %llu %llu\n", static_cast<unsigned long long>(found), static_cast<unsigned long long>(sum),
                static_cast<unsigned long long>(most), static_cast<unsigned long long>(members));
}
