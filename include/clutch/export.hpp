// SPDX-License-Identifier: Apache-2.0
#pragma once

// CLUTCH_API marks what the shared library exports; all else is hidden.
#if defined(CLUTCH_STATIC)
#define CLUTCH_API
#elif defined(_WIN32)
#if defined(CLUTCH_BUILDING)
#define CLUTCH_API __declspec(dllexport)
#else
#define CLUTCH_API __declspec(dllimport)
#endif
#else
#define CLUTCH_API __attribute__((visibility("default")))
#endif
