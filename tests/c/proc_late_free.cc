// Destructors of thread_local objects that free and allocate, in an order that differs from that
// of their construction by first use; also at the exit of the main thread.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

static std::atomic<unsigned> destroyed;

template <int Number>
struct Late {
    std::vector<std::string> strings;
    std::unique_ptr<char[]> large{new char[100000 + Number]};
    Late() {
        for (int i = 0; i < 50; i++) strings.push_back(std::string(20 + 30 * i, char('a' + Number)));
        large[0] = large[100000 + Number - 1] = char(Number);
    }
    ~Late() {
        std::map<int, std::string> fresh;
        for (int i = 0; i < 50; i++) fresh[i] = strings[i] + "more";
        for (auto &entry : fresh) {
            if (entry.second.size() != size_t(24 + 30 * entry.first)) abort();
            if (entry.second[3] != char('a' + Number)) abort();
        }
        if (large[0] != char(Number) || large[100000 + Number - 1] != char(Number)) abort();
        large.reset(new char[8]);
        destroyed++;
    }
};

static thread_local Late<0> first;
static thread_local Late<1> second;
static thread_local Late<2> third;
static thread_local std::shared_ptr<std::string> shared;

static void use(unsigned order) {
    size_t sum = 0;
    for (int i = 0; i < 3; i++) {
        unsigned which = (order + i) % 3;
        if (which == 0) sum += first.strings.size();
        if (which == 1) sum += second.strings.size();
        if (which == 2) sum += third.strings.size();
    }
    if (sum != 150) abort();
}

int main() {
    auto common = std::make_shared<std::string>(300, 'x');
    for (unsigned round = 0; round < 200; round++) {
        std::vector<std::thread> threads;
        for (unsigned i = 0; i < 4; i++) {
            threads.emplace_back([&common, i] {
                shared = common;
                use(i);
            });
        }
        for (auto &thread : threads) thread.join();
    }
    if (common.use_count() != 1 || destroyed != 2400) abort();
    use(1);
    printf("destroyed=%u\n", destroyed.load());
    return 0;
}
