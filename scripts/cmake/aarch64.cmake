# SPDX-License-Identifier: Apache-2.0
# Linux on 64-bit Arm, by Debian's cross compiler; what it links stands in build/cross/aarch64/root, where scripts/cross puts it. Programs run under qemu.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
cmake_path(SET cross_root NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../../build/cross/aarch64/root)
set(CMAKE_FIND_ROOT_PATH ${cross_root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${cross_root}/usr/lib/aarch64-linux-gnu/pkgconfig:${cross_root}/usr/lib/aarch64-linux-gnu/openblas-pthread/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${cross_root})
# The C and C++ libraries are those of the cross compiler.
set(CMAKE_CROSSCOMPILING_EMULATOR /usr/bin/qemu-aarch64-static -L /usr/aarch64-linux-gnu)
# The same for tests that start programs by themselves.
list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " CLUTCH_TEST_EMULATOR)
