// SPDX-License-Identifier: Apache-2.0
// Decoding: the keys and values of sequences that grow lie in pages, and one captured graph serves every token.
//
// A cache of fixed size for the longest possible sequence wastes most of its memory. PagedCache gives a sequence
// pages as it grows and takes them back when it ends. Lengths and page tables are read on the device, so
// the graph of one step stays right as sequences grow, and nothing waits for the host.
//
// For your case: q, k and v of a step come from your model's projections; put these into the capture, too.
// Heads of queries that share keys: enable_gqa. Keys of f16 or bf16: PagedCacheOptions::dtype.
#include <clutch/clutch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace {
constexpr std::int64_t kBatch = 3, kHeads = 2, kSize = 32, kPage = 16, kSteps = 20, kLongest = 80;
constexpr std::int64_t kPrompt[kBatch] = {5, 33, 60};  // keys that a sequence has before it decodes

/// softmax(q k^T / sqrt(size)) v of one query over the first `length` keys, in double; k and v are (kLongest, kSize).
std::vector<double> attend(const float* q, const float* k, const float* v, std::int64_t length) {
  std::vector<double> result(kSize);
  double sum = 0;
  for (std::int64_t j = 0; j < length; ++j) {
    double dot = 0;
    for (std::int64_t e = 0; e < kSize; ++e) dot += static_cast<double>(q[e]) * static_cast<double>(k[j * kSize + e]);
    const double weight = std::exp(dot / std::sqrt(static_cast<double>(kSize)));
    sum += weight;
    for (std::int64_t e = 0; e < kSize; ++e) result[static_cast<std::size_t>(e)] += weight * static_cast<double>(v[j * kSize + e]);
  }
  for (double& x : result) x /= sum;
  return result;
}
}  // namespace

int main() {
  const clutch::Device device = clutch::default_device();
  std::printf("device: %s\n", device.name().c_str());
  const clutch::Stream stream(device);
  const clutch::StreamGuard guard(stream);  // calls that name no stream go on this one

  // What a model would compute: queries of the steps, keys and values of all places.
  const clutch::Tensor queries = clutch::randn({kSteps, kBatch, kHeads, 1, kSize}, {.device = device, .seed = 1});
  const clutch::Tensor keys = clutch::randn({kBatch, kHeads, kLongest, kSize}, {.device = device, .seed = 2});
  const clutch::Tensor values = clutch::randn({kBatch, kHeads, kLongest, kSize}, {.device = device, .seed = 3});

  // 15 pages hold 240 keys of all sequences together.
  clutch::attention::PagedCache cache({.pages = 15, .page_size = kPage, .max_batch = kBatch, .heads = kHeads, .key_size = kSize, .device = device});

  // Prompts: each sequence takes pages and writes its keys in one call.
  for (std::int64_t b = 0; b < kBatch; ++b) {
    cache.reserve(b, kPrompt[b]);  // on the host; throws at once if too few pages are free
    const clutch::Tensor places = clutch::arange(0, static_cast<double>(kPrompt[b]), 1, {.dtype = clutch::DType::i32, .device = device});
    const clutch::Tensor sequence = clutch::full({1}, static_cast<double>(b), {.dtype = clutch::DType::i32, .device = device});
    cache.assign(sequence, places.unsqueeze(0), keys.slice(0, b, b + 1).slice(2, 0, kPrompt[b]), values.slice(0, b, b + 1).slice(2, 0, kPrompt[b]));
  }

  // One step as a graph. Its inputs are tensors that the loop below overwrites; lengths advance on the device.
  const clutch::Tensor q = clutch::zeros({kBatch, kHeads, 1, kSize}, {.device = device});
  const clutch::Tensor k = clutch::zeros({kBatch, kHeads, 1, kSize}, {.device = device}), v = clutch::zeros({kBatch, kHeads, 1, kSize}, {.device = device});
  const clutch::Tensor sequences = clutch::arange(0, kBatch, 1, {.dtype = clutch::DType::i32, .device = device});
  const clutch::Tensor lengths = clutch::from_host(std::vector<std::int32_t>(kPrompt, kPrompt + kBatch), {kBatch}, device);
  clutch::Graph step;
  clutch::Tensor out;
  {
    clutch::GraphCapture capture(step, stream);
    cache.assign(sequences, lengths.unsqueeze(1), k, v);  // the new key stands at place `length`
    clutch::add_(lengths, 1);
    out = clutch::attention::flex(q, cache.keys(), cache.values(), {.varlen = cache.varlen(lengths)}).out;
  }

  const std::vector<float> all_q = queries.to_host<float>(), all_k = keys.to_host<float>(), all_v = values.to_host<float>();
  double worst = 0;
  for (std::int64_t t = 0; t < kSteps; ++t) {
    clutch::copy_(q, queries.select(0, t));
    for (std::int64_t b = 0; b < kBatch; ++b) {
      cache.reserve(b, kPrompt[b] + t + 1);  // takes a page when the last one is full; the graph reads the table anew
      clutch::copy_(k.select(0, b), keys.select(0, b).slice(1, kPrompt[b] + t, kPrompt[b] + t + 1));
      clutch::copy_(v.select(0, b), values.select(0, b).slice(1, kPrompt[b] + t, kPrompt[b] + t + 1));
    }
    step.replay(stream);

    // Check this step against plain loops over keys that lie side by side. to_host() waits.
    const std::vector<float> got = out.to_host<float>();
    for (std::int64_t b = 0; b < kBatch; ++b)
      for (std::int64_t h = 0; h < kHeads; ++h) {
        const std::int64_t row = b * kHeads + h, first = row * kLongest * kSize;
        const std::vector<double> expected = attend(&all_q[static_cast<std::size_t>((t * kBatch * kHeads + row) * kSize)],
                                                    &all_k[static_cast<std::size_t>(first)], &all_v[static_cast<std::size_t>(first)], kPrompt[b] + t + 1);
        for (std::size_t e = 0; e < kSize; ++e)
          worst = std::max(worst, std::fabs(static_cast<double>(got[static_cast<std::size_t>(row) * kSize + e]) - expected[e]));
      }
  }
  const std::int64_t free = cache.free_pages();
  cache.erase(2);  // the sequence ended: others may take its pages
  std::printf("%d steps of %d sequences; %d of 15 pages were free, %d after one sequence ended\n", static_cast<int>(kSteps), static_cast<int>(kBatch),
              static_cast<int>(free), static_cast<int>(cache.free_pages()));
  std::printf("largest error: %.1e\n", worst);
  return worst < 1e-5 && cache.free_pages() == free + 5 ? 0 : 1;
}
