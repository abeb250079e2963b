// The rate at which this machine streams memory into its registers: GB/s of reading more than any cache holds, by each
// of several threads its own part. What an engine that is bound by reading weights is measured against.
//
// `bench_stream [threads...]` prints a line for each count of threads, 1 and 2 unless given others.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBytes = std::size_t{512} << 20;  // all threads together
constexpr std::size_t kPage = std::size_t{2} << 20;     // parts begin at huge pages
constexpr std::size_t kWords = 16;                      // of a step: two lines of a cache
constexpr double kSeconds = 0.5;

/// Memory on huge pages where the system has them: it walks fewer page tables.
class Memory {
 public:
  Memory() : words_(new std::uint64_t[(kBytes + kPage) / sizeof(std::uint64_t)]) {
    void* at = words_.get();
    std::size_t space = kBytes + kPage;
    data_ = static_cast<std::uint64_t*>(std::align(kPage, kBytes, at, space));
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    madvise(data_, kBytes, MADV_HUGEPAGE);
#endif
    for (std::size_t i = 0; i < kBytes / sizeof(std::uint64_t); ++i) data_[i] = i;
  }
  const std::uint64_t* data() const noexcept { return data_; }

 private:
  std::unique_ptr<std::uint64_t[]> words_;
  std::uint64_t* data_ = nullptr;
};

/// A step's words go to sums of their own, so that no addition waits for another and compilers use vectors.
std::uint64_t read_all(const std::uint64_t* words, std::size_t count) noexcept {
  std::uint64_t sums[kWords] = {};
  for (std::size_t i = 0; i < count; i += kWords) {
    for (std::size_t j = 0; j < kWords; ++j) sums[j] += words[i + j];
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t part : sums) sum += part;
  return sum;
}

/// GB/s of the best pass in which all threads read at the same time.
double read_rate(const Memory& memory, std::size_t threads) {
  const std::size_t count = kBytes / threads / kPage * kPage / sizeof(std::uint64_t);
  double best = 0, total = 0;
  while (total < kSeconds) {
    std::atomic<std::size_t> waiting{threads};
    std::atomic<std::uint64_t> sum{0};
    std::vector<Clock::time_point> begins(threads), ends(threads);
    const auto part = [&](std::size_t t) {
      waiting.fetch_sub(1);
      while (waiting.load() != 0) std::this_thread::yield();
      begins[t] = Clock::now();
      sum.fetch_add(read_all(memory.data() + t * count, count));
      ends[t] = Clock::now();
    };
    std::vector<std::thread> others;
    for (std::size_t t = 1; t < threads; ++t) others.emplace_back(part, t);
    part(0);
    for (std::thread& other : others) other.join();
    const double seconds = std::chrono::duration<double>(*std::max_element(ends.begin(), ends.end()) -
                                                         *std::min_element(begins.begin(), begins.end()))
                               .count();
    if (sum.load() == 0) std::abort();  // the words are counted up from 0: their sum is used, and so they are read
    best = std::max(best, static_cast<double>(count * threads * sizeof(std::uint64_t)) / seconds * 1e-9);
    total += seconds;
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::size_t> counts;
  for (int i = 1; i < argc; ++i) {
    const long count = std::strtol(argv[i], nullptr, 10);
    if (count < 1 || count > 256) {
      std::fprintf(stderr, "bench_stream: %s is no count of threads: use 1 to 256\n", argv[i]);
      return 2;
    }
    counts.push_back(static_cast<std::size_t>(count));
  }
  if (counts.empty()) counts = {1, 2};
  const Memory memory;
  for (const std::size_t threads : counts) {
    std::printf("read %3zu threads %8.2f GB/s\n", threads, read_rate(memory, threads));
  }
}
