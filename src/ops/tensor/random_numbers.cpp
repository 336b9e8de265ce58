#include "ops/tensor/random_numbers.h"

#include <bit>
#include <cmath>
#include <numbers>
#include <random>

namespace tenon {
namespace {

using Words = std::array<uint32_t, 4>;

Words Philox(Words counter, uint32_t key0, uint32_t key1) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * counter[0];
    const uint64_t product1 = uint64_t{kMultiplier1} * counter[2];
    counter = {
        static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
        static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return counter;
}

double ToUnit(uint32_t high, uint32_t low) {
  const uint64_t bits = uint64_t{high} << 32 | low;
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;  // the step of SplitMix64

std::atomic<bool> has_process_seed = false;
std::atomic<uint64_t> process_seed = 0;

// Spreads the seeds of successive runs over all 64 bits (the finalizer of SplitMix64).
uint64_t Mix(uint64_t value) {
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
  value = (value ^ value >> 27) * 0x94D049BB133111EB;
  return value ^ value >> 31;
}

}  // namespace

std::array<double, 2> RandomNumbers::UniformPair(uint64_t position) const {
  const Words words =
      Philox({static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), 0, 0},
             static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32));
  return {ToUnit(words[0], words[1]), ToUnit(words[2], words[3])};
}

std::array<double, 2> RandomNumbers::NormalPair(uint64_t position) const {
  // Box and Muller's transform; 1 - u is never 0.
  const std::array<double, 2> u = UniformPair(position);
  const double radius = std::sqrt(-2 * std::log(1 - u[0]));
  const double angle = 2 * std::numbers::pi * u[1];
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

void SetProcessSeed(uint64_t seed) {
  process_seed = Mix(seed);
  has_process_seed = true;
}

void RandomSource::SetSeed(std::optional<float> seed) {
  is_fixed_ = seed.has_value();
  if (seed) {
    seed_ = Mix(std::bit_cast<uint32_t>(*seed));
    return;
  }
  if (has_process_seed) {
    seed_ = Mix(process_seed.fetch_add(kGolden) + kGolden);
    return;
  }
  std::random_device device;
  seed_ = uint64_t{device()} << 32 | device();
}

RandomNumbers RandomSource::ForRun() const {
  if (is_fixed_) return RandomNumbers(seed_);
  return RandomNumbers(Mix(seed_ + kGolden * runs_.fetch_add(1, std::memory_order_relaxed)));
}

}  // namespace tenon
