// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/allocator.hpp>
#include <clutch/device.hpp>
#include <clutch/dtype.hpp>
#include <clutch/error.hpp>
#include <clutch/event.hpp>
#include <clutch/expr.hpp>
#include <clutch/kernel.hpp>
#include <clutch/nn.hpp>
#include <clutch/ops.hpp>
#include <clutch/pointwise.hpp>
#include <clutch/random.hpp>
#include <clutch/settings.hpp>
#include <clutch/stream.hpp>
#include <clutch/tensor.hpp>
#include <clutch/version.hpp>
