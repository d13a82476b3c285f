# SPDX-License-Identifier: Apache-2.0
"""Philox 4x32-10: uniform and normal numbers by their words, and what their distribution is."""

import math

import mpmath
import numpy as np
import scipy.stats
import torch

from common import DTYPES, EPS, FLOATS, case, compute_name, fma, fma32, fma64, unit
from tensors import unchanged

RANDOM = "clutch/ops/random.hpp"


def philox(seed, block):
    """Words (4, ...) of blocks of that number, by J. K. Salmon et al., 2011: key of the seed's halves, counter of the number's."""
    block = np.asarray(block, dtype=np.uint64)
    low = np.uint64(0xFFFFFFFF)
    c = [block & low, block >> np.uint64(32), np.zeros_like(block), np.zeros_like(block)]
    k0, k1 = np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32 & 0xFFFFFFFF)
    for i in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ k0, p1 & low, (p0 >> np.uint64(32)) ^ c[3] ^ k1, p0 & low]
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & low, (k1 + np.uint64(0xBB67AE85)) & low
    return np.stack(c)


def known_answer():
    """Random123's own: counter and key of zeros."""
    words = philox(0, np.array(0))
    assert [int(w) for w in words] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


known_answer()


def uniform_words(seed, offset, n, name):
    """The word of each element, 64 bits of f64."""
    i = np.arange(n, dtype=np.uint64)
    if name == "f64":
        block = np.uint64(offset) + np.uint64(16) * (i // np.uint64(32)) + i % np.uint64(16)
        w = philox(seed, block)
        pair = (i // np.uint64(16) % np.uint64(2)).astype(np.int64) * 2
        return w[pair, np.arange(n)] | w[pair + 1, np.arange(n)] << np.uint64(32)
    block = np.uint64(offset) + np.uint64(16) * (i // np.uint64(64)) + i % np.uint64(16)
    w = philox(seed, block)
    return w[(i // np.uint64(16) % np.uint64(4)).astype(np.int64), np.arange(n)]


def chunk_blocks(n, name):
    return 16 * -(-n // (32 if name == "f64" else 64))


def pick_source(c):
    """Arguments, seed and offset."""
    seed = c.pick([0, 1, 67280421310721, 2**63 - 1, c.integer(0, 2**62)])
    if c.chance(0.5):
        return {"seed": seed}, seed, 0
    offset = c.pick([0, 1, 12345, 2**32 - 3, 2**40])
    return {"generator_seed": seed, "generator_offset": offset}, seed, offset


@case(50, covers=["uniform_", "rand", "manual_seed"], sharp=True)
def uniforms(c):
    name = c.floating()
    compute = compute_name(name)
    shape = c.shape(elements=3000)
    n = math.prod(shape)
    source, seed, offset = pick_source(c)
    bits = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}[name]
    words = uniform_words(seed, offset, n, name)
    u = (words >> np.uint64((64 if name == "f64" else 32) - bits)).astype(np.float64) * 2.0**-bits
    low, high = c.pick([(0.0, 1.0), (-1.0, 1.0), (2.0, 5.0), (0.0, 0.0), (-1e3, 1e4)])
    kind = np.float64 if compute == "f64" else np.float32
    width = kind(kind(high) - kind(low))
    want = fma(torch.from_numpy(np.array(u)), float(width), float(kind(low)), compute).to(DTYPES[name]).reshape(shape)
    x = c.tensor(shape, name, "normal", expand=False)
    reply = c.call("uniform_", back=["self"], self=x, low=low, high=high, **source)
    c.same(reply.back["self"], want, RANDOM + ", uniform_, Words", f"{name} in [{low}, {high}): ", zero_signs=False)
    unchanged(c, x, reply.back["self"], RANDOM)
    if "generator_seed" in source:
        c.true(reply.values["seed"] == seed and reply.values["offset"] == offset + chunk_blocks(n, name), f"the generator's state is {reply.values}", RANDOM + ": a call draws 16 ceil(numel / chunk) blocks")
    got = c.call("rand", sizes=shape, dtype=name, **source)[0]
    c.same(got, torch.from_numpy(np.array(u)).to(DTYPES[name]).reshape(shape), RANDOM + ", rand", f"{name}: ")
    seed = c.integer(0, 2**40)
    reply = c.call("manual_seed", seed=seed, sizes=[100])
    for i in range(2):
        words = uniform_words(seed, i * chunk_blocks(100, "f32"), 100, "f32")
        c.same(reply[i], torch.from_numpy((words >> np.uint64(8)).astype(np.float64) * 2.0**-24).float(), "clutch/random.hpp, manual_seed", f"call {i} of the default generator: ")
    c.true(reply.values["offset"] == 2 * chunk_blocks(100, "f32"), f"the default generator's offset is {reply.values['offset']}", "clutch/random.hpp")


@case(50, covers=["normal_", "randn"])
def normals(c):
    name = c.floating()
    compute = compute_name(name)
    shape = c.shape(elements=1500)
    n = math.prod(shape)
    source, seed, offset = pick_source(c)
    i = np.arange(n, dtype=np.uint64)
    chunk, per = (32, 2) if name == "f64" else (64, 4)
    block = np.uint64(offset) + np.uint64(16) * (i // np.uint64(chunk)) + i % np.uint64(16)
    w = philox(seed, block)
    place = (i // np.uint64(16) % np.uint64(per)).astype(np.int64)
    at = np.arange(n)
    wide = np.longdouble
    if name == "f64":
        # The upper 53 bits of two words, the first one low.
        u = ((w[0] | w[1] << np.uint64(32)) >> np.uint64(11)).astype(wide) * wide(2.0) ** -53 + wide(2.0) ** -54
        u = u.astype(np.float64).astype(wide)  # rounded to f64 first
        t = ((w[2] | w[3] << np.uint64(32)).astype(np.int64) >> np.int64(11)).astype(wide) * wide(2.0) ** -52
        second = place % 2 == 1
    else:
        pair = place // 2 * 2
        u = fma32(w[pair, at].astype(np.float32), np.float32(2.0**-32), np.float32(2.0**-33))
        t = w[pair + 1, at].astype(np.uint32).view(np.int32).astype(np.float64) * 2.0**-31
        u, t = u.astype(wide), t.astype(np.float32).astype(wide)  # f32, as words are made numbers of it
        second = place % 2 == 1
    r = np.sqrt(-2 * np.log(u))
    pi = wide("3.14159265358979323846264338327950288")
    z = r * np.where(second, np.sin(pi * t), np.cos(pi * t))
    got = c.call("randn", sizes=shape, dtype=name, **source)[0]
    # Where u rounds to 1 the radius is 0 or tiny; beside it the logarithm's error is relative to itself.
    tolerance = 4 * unit(z, compute) + r * (2.0**-24 if compute == "f32" else 2.0**-53) * 1e-3
    exact = z.reshape(shape)
    c.near(got, exact, np.asarray(tolerance, dtype=wide).reshape(shape), RANDOM + ", normal_, Accuracy: z within 4 ulp", f"{name}: ")
    mean, deviation = c.pick([(0.0, 1.0), (5.0, 0.5), (-1.0, 0.0), (0.0, 1e3)])
    x = c.tensor(shape, name, "normal", expand=False)
    reply = c.call("normal_", back=["self"], self=x, mean=mean, stddev=deviation, **source)
    unchanged(c, x, reply.back["self"], RANDOM)
    exact, tolerance = exact * deviation + mean, np.asarray(tolerance).reshape(shape) * deviation + unit(exact * deviation + mean, compute)
    c.near(reply.back["self"], exact, tolerance, RANDOM + ", normal_", f"{name}, mean {mean}, deviation {deviation}: ")
    if "generator_seed" in source:
        c.true(reply.values["offset"] == offset + chunk_blocks(n, name), f"the generator's offset is {reply.values['offset']}", RANDOM)


def keeps_rest(c, reply, source, offset, n, name):
    if "generator_seed" in source:
        c.true(reply.values["offset"] == offset + chunk_blocks(n, name), f"the generator's offset is {reply.values['offset']}", RANDOM)


@case(60, covers=["random_", "bernoulli_", "exponential_", "randperm"])
def draws(c):
    """Whole numbers, chances, waiting times and permutations, of the words of numbers."""
    shape = c.shape(elements=2000)
    n = math.prod(shape)
    source, seed, offset = pick_source(c)
    wide, narrow = uniform_words(seed, offset, n, "f64"), uniform_words(seed, offset, n, "f32")
    name = c.pick(["i8", "u8", "i16", "i32", "i64", "f32", "f16", "bf16"])
    largest = {"i8": 127, "u8": 255, "i16": 2**15 - 1, "i32": 2**31 - 1, "i64": 2**63 - 1, "f32": 2**24, "f16": 2**11, "bf16": 2**8}[name]
    least = 0 if name == "u8" else -largest
    low = c.pick([0, least, least // 2, c.integer(max(least, -100), 50)])
    high = c.pick([largest, min(largest, low + 1), min(largest, low + c.integer(1, 200)), max(low + 1, largest // 3)])
    high = min(high, low + 2**63 - 1)
    x = c.tensor(shape, name, expand=False)
    reply = c.call("random_", back=["self"], self=x, to=high, **{"from": low}, **source)
    want = [low + ((int(w) * (high - low)) >> 64) for w in wide]
    c.same(reply.back["self"], torch.tensor(want, dtype=torch.int64).reshape(shape).to(x.dtype), RANDOM + ", random_", f"{name} in [{low}, {high}): ")
    unchanged(c, x, reply.back["self"], RANDOM)
    keeps_rest(c, reply, source, offset, n, "f64")
    u = torch.from_numpy((narrow >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)).reshape(shape)
    x = c.tensor(shape, c.pick(["f32", "bf16", "bool", "i32", "u8"]), expand=False)
    p = c.pick([0.0, 1.0, 0.5, 0.1, 1e-3])
    reply = c.call("bernoulli_", back=["self"], self=x, p=p, **source)
    c.same(reply.back["self"], (u < np.float32(p)).to(x.dtype), RANDOM + ", bernoulli_", f"p {p}: ")
    keeps_rest(c, reply, source, offset, n, "f32")
    chances = torch.from_numpy(c.rng.random(shape[-1:] if c.chance(0.5) else shape).astype(np.float32))
    reply = c.call("bernoulli_", back=["self"], self=x, probabilities=chances, **source)
    c.same(reply.back["self"], (u < chances).to(x.dtype), RANDOM + ", bernoulli_ of tensors")
    rate = c.pick([1.0, 0.25, 7.0])
    x = c.tensor(shape, "f32", "normal", expand=False)
    reply = c.call("exponential_", back=["self"], self=x, **{"lambda": rate}, **source)
    exact = -np.log1p(-u.double().numpy()) / rate
    c.near(reply.back["self"], exact, 1.35 * unit(exact, "f32"), RANDOM + ", exponential_, Accuracy: 1.35 ulp")
    count = c.pick([0, 1, 2, 100, 3000])
    got = c.call("randperm", n=count, **source)[0]
    order = np.argsort(uniform_words(seed, offset, count, "f64"), kind="stable") if count else np.zeros(0, dtype=np.int64)
    c.same(got, torch.from_numpy(order.astype(np.int64)), RANDOM + ", randperm", f"{count}: ")


@case(30, covers=["random_uniform"], sharp=True)
def traced_draws(c):
    """Dropout in one function, whatever the layout: element i of row-major order has rand()'s number i."""
    shape = c.shape(elements=3000)
    n = math.prod(shape)
    source, seed, offset = pick_source(c)
    x = c.tensor(shape, "f32", "normal")
    u = torch.from_numpy((uniform_words(seed, offset, n, "f32") >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)).reshape(shape)
    p = c.pick([0.1, 0.5, 0.0])
    reply = c.call("random_uniform", x=x, p=p, **source)
    c.same(reply[1], u, "clutch/expr.hpp, random_uniform, Numbers")
    c.same(reply[0], torch.where(u < np.float32(p), 0 * x, x * 2), "clutch/expr.hpp, random_uniform: dropout")
    keeps_rest(c, reply, source, offset, n, "f32")


@case(6, covers=[])
def distributions(c):
    """Kolmogorov's test at 1e-7, of many numbers: the words' order and what is made of them."""
    name = c.floating()
    seed = c.integer(0, 2**60)
    x = c.call("rand", sizes=[200000], dtype=name, seed=seed)[0].double().numpy()
    grain = {"f64": 0.0, "f32": 0.0, "f16": 2.0**-12, "bf16": 2.0**-9}[name]
    c.true(scipy.stats.kstest(x + grain, "uniform").statistic < 0.0075 + 2 * grain, "rand is not uniform", RANDOM)
    x = c.call("randn", sizes=[200000], dtype=name, seed=seed)[0].double().numpy()
    c.true(scipy.stats.kstest(x, "norm").statistic < 0.0075 + 4 * EPS[name] + (0.003 if name == "bf16" else 0), "randn is not normal", RANDOM)
    c.true(abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.012, "neighbours are correlated", RANDOM)
    c.true(np.abs(x).max() <= (6.77 + 0.02 if name != "f64" else 9), "a number is larger than the contract says", RANDOM + ": f32's |z| is at most 6.77")


@case(10, covers=[])
def random_refused(c):
    x = torch.zeros(5)
    c.refused("invalid_argument", "uniform_", RANDOM, self=x, low=1.0, high=0.0)
    c.refused("invalid_argument", "uniform_", RANDOM, self=x, low=0.0, high=math.inf)
    c.refused("invalid_argument", "normal_", RANDOM, self=x, stddev=-1.0)
    c.refused("invalid_dtype", "uniform_", RANDOM, self=torch.zeros(5, dtype=torch.int32))
    c.refused("invalid_overlap", "normal_", RANDOM, self=torch.zeros(1).expand(5))
