// Random numbers that depend only on a seed and a position, so that loops over positions can be
// divided among threads. The generator is Philox-4x32-10 (Salmon et al., "Parallel random numbers:
// as easy as 1, 2, 3", 2011).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

namespace tenon {

// The numbers of one run. Copies give the same numbers.
class RandomNumbers {
 public:
  explicit RandomNumbers(uint64_t seed) : seed_(seed) {}

  // Two independent numbers, uniform in [0, 1), of 53 bits.
  std::array<double, 2> UniformPair(uint64_t position) const;
  // Two independent numbers of the standard normal distribution.
  std::array<double, 2> NormalPair(uint64_t position) const;
  // Number `position` of a row of uniform ones.
  double Uniform(uint64_t position) const { return UniformPair(position / 2)[position % 2]; }
  double Normal(uint64_t position) const { return NormalPair(position / 2)[position % 2]; }

 private:
  uint64_t seed_;
};

// From now on, sources without a seed of their own draw their first seeds from this one, in the
// order in which they are set, so that a program that makes the same sessions gets the same
// numbers.
void SetProcessSeed(uint64_t seed);

// The source of numbers for a kernel's runs: the same for each run with a seed, different ones
// without.
class RandomSource {
 public:
  RandomSource() = default;
  // `seed` has the form of the operators' attribute. Without one, the process or the system
  // provides a first seed.
  void SetSeed(std::optional<float> seed);
  // Thread-safe.
  RandomNumbers ForRun() const;

 private:
  bool is_fixed_ = false;
  uint64_t seed_ = 0;
  mutable std::atomic<uint64_t> runs_{0};
};

}  // namespace tenon
