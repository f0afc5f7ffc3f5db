// One program, many ranks: every rank runs all tests in the same order, and rank 0 reports. A failure ends the rank at
// once. mpirun then ends the others, which would wait for it.
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdio>

#include "ranks/support.h"

namespace megalith::testing_ranks {
namespace {

std::unique_ptr<World> joined;
std::unique_ptr<Channel> all;
std::byte* mapped = nullptr;
int64_t used = 0;

class FailFast : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d of %d: %s:%d: %s\n", world().rank(), world().size(), result.file_name(),
                 result.line_number(), result.message());
    std::fflush(nullptr);
    _exit(1);
  }
};

// The value of finite bits, according to the definition of the format.
float widen(uint16_t bits, Element element) {
  if (element == Element::bfloat16) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                                        : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// The nearest value, ties to even. Only for finite values of moderate size.
uint16_t narrow(float value, Element element) {
  const float magnitude = std::fabs(value);
  uint16_t low = 0, high = element == Element::bfloat16 ? 0x7f7f : 0x7bff;
  while (high - low > 1) {
    const uint16_t middle = static_cast<uint16_t>((low + high) / 2);
    (widen(middle, element) <= magnitude ? low : high) = middle;
  }
  const double below = static_cast<double>(magnitude) - widen(low, element);
  const double above = widen(high, element) - static_cast<double>(magnitude);
  const uint16_t nearest = below < above || (below == above && low % 2 == 0) ? low : high;
  return static_cast<uint16_t>(nearest | (std::signbit(value) ? 0x8000 : 0));
}

}  // namespace

World& world() { return *joined; }
Channel& everyone() { return *all; }

Values::Values(Memory memory, int64_t count, Element element) : count_(count), element_(element) {
  const int64_t bytes = count * size_of(element);
  const bool shared = memory == Memory::shared || (memory == Memory::mixed && world().rank() % 2 == 0);
  if (!shared) {
    own_.resize(static_cast<size_t>(bytes));
    data_ = own_.data();
    return;
  }
  used += 64 * (1 + world().rank());
  if (used + bytes > (int64_t{64} << 20)) used = 64 * world().rank();
  data_ = mapped + used;
  used += (bytes + 63) / 64 * 64;
}

std::vector<std::byte> drawn(int rank, int64_t count, Element element, uint32_t seed) {
  uint64_t state = seed * uint64_t{1000} + static_cast<uint64_t>(rank);
  const auto random = [&] {  // the high half of a multiplicative generator, well mixed
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>((state ^ state >> 29) >> 32);
  };
  const auto draw = [&] { return static_cast<float>(static_cast<int32_t>(random())) * 0x1p-31f; };
  random();
  std::vector<std::byte> bytes(static_cast<size_t>(count * size_of(element)));
  for (int64_t i = 0; i < count; i++) {
    std::byte* to = bytes.data() + i * size_of(element);
    switch (element) {
      case Element::byte: *to = static_cast<std::byte>(random()); break;
      case Element::float32: {
        const float value = draw();
        std::memcpy(to, &value, 4);
        break;
      }
      case Element::float64: {
        const double wide = static_cast<double>(draw()) + draw() * 1e-9;
        std::memcpy(to, &wide, 8);
        break;
      }
      default: {  // any mantissa, magnitudes around one, sometimes subnormal
        const uint32_t any = random();
        const int mantissa_bits = element == Element::bfloat16 ? 7 : 10;
        const uint32_t bias = element == Element::bfloat16 ? 127 : 15;
        const uint32_t exponent = any % 16 == 0 ? 0 : bias - any % 8;
        const auto bits = static_cast<uint16_t>((any >> 16 & 0x8000u) | exponent << mantissa_bits |
                                                (any >> 8 & ((1u << mantissa_bits) - 1)));
        std::memcpy(to, &bits, 2);
      }
    }
  }
  return bytes;
}

double as_double(const std::vector<std::byte>& bytes, int64_t index, Element element) {
  const std::byte* at = bytes.data() + index * size_of(element);
  if (element == Element::float64) return *reinterpret_cast<const double*>(at);
  if (element == Element::float32) return static_cast<double>(*reinterpret_cast<const float*>(at));
  return static_cast<double>(widen(*reinterpret_cast<const uint16_t*>(at), element));
}

std::vector<std::byte> summed(const std::vector<int>& ranks, int64_t count, Element element, uint32_t seed) {
  std::vector<std::vector<std::byte>> values;
  for (int rank : ranks) values.push_back(drawn(rank, count, element, seed));
  std::vector<std::byte> result(values[0].size());
  for (int64_t i = 0; i < count; i++) {
    std::byte* to = result.data() + i * size_of(element);
    if (element == Element::float64) {
      double total = as_double(values[0], i, element);
      for (size_t r = 1; r < ranks.size(); r++) total += as_double(values[r], i, element);
      std::memcpy(to, &total, 8);
      continue;
    }
    float total = static_cast<float>(as_double(values[0], i, element));
    for (size_t r = 1; r < ranks.size(); r++) total += static_cast<float>(as_double(values[r], i, element));
    if (element == Element::float32) {
      std::memcpy(to, &total, 4);
    } else {
      const uint16_t bits = narrow(total, element);
      std::memcpy(to, &bits, 2);
    }
  }
  return result;
}

}  // namespace megalith::testing_ranks

int main(int argc, char** argv) {
  using namespace megalith;
  using namespace megalith::testing_ranks;
  testing::InitGoogleTest(&argc, argv);
  joined = World::join();
  const int fd = memfd_create("test-region", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, kRegion) != 0) return 1;
  void* got = mmap(nullptr, kRegion, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (got == MAP_FAILED) return 1;
  mapped = static_cast<std::byte*>(got);
  joined->share_memory({fd, mapped, kRegion});
  std::vector<int> ranks;
  for (int rank = 0; rank < joined->size(); rank++) ranks.push_back(rank);
  all = std::make_unique<Channel>(joined->channel(ranks, "everyone"));

  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  if (joined->rank() != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new FailFast);
  const int result = RUN_ALL_TESTS();
  all.reset();
  joined->leave();
  return result;
}
