// A static C++ program linked with the archive: maps, strings, threads, exceptions; the names of
// malloc and of operator new must all come from the archive. Prints figures that do not depend on
// the allocator.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static unsigned long work(unsigned seed) {
    std::map<std::string, std::vector<unsigned>> words;
    unsigned state = seed * 2654435761u | 1;
    for (unsigned i = 0; i < 50000; i++) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        words[std::string(1 + state % 60, char('a' + state % 26))].push_back(i);
        if (state % 1000 == 0) words.erase(words.begin());
    }
    unsigned long sum = 0;
    for (auto &entry : words) {
        sum = sum * 31 + entry.first.size();
        for (unsigned value : entry.second) sum = sum * 31 + value;
    }
    return sum;
}

int main() {
    std::vector<std::thread> threads;
    std::vector<unsigned long> sums(8);
    for (unsigned i = 0; i < 8; i++) {
        threads.emplace_back([&sums, i] { sums[i] = work(i); });
    }
    for (auto &thread : threads) thread.join();
    for (unsigned long sum : sums) printf("%lx\n", sum);
    try {
        std::vector<std::unique_ptr<std::string>> kept;
        for (int i = 0; i < 1000; i++) kept.push_back(std::make_unique<std::string>(i, 'x'));
        throw std::runtime_error(std::string(1000, 'e'));
    } catch (const std::runtime_error &error) {
        printf("%zu\n", std::string(error.what()).size());
    }
    void *aligned = aligned_alloc(4096, 8192);
    char *grown = static_cast<char *>(realloc(strdup("grown"), 100000));
    printf("%d %s\n", int(reinterpret_cast<unsigned long>(aligned) % 4096), grown);
    free(grown);
    free(aligned);
    return 0;
}
