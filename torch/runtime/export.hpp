// SPDX-License-Identifier: Apache-2.0
// What libtorch_clutch_dist takes from libtorch_clutch.
#pragma once

#define TORCH_CLUTCH_EXPORT __attribute__((visibility("default")))
