# SPDX-License-Identifier: Apache-2.0
# 64-bit Windows, by MinGW with POSIX threads; what it links stands in build/cross/windows/root, where scripts/cross puts it. Programs run under Wine.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
cmake_path(SET cross_root NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../../build/cross/windows/root)
set(CMAKE_FIND_ROOT_PATH ${cross_root})
set(CMAKE_PREFIX_PATH /usr)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(OpenCL_INCLUDE_DIR ${cross_root}/usr/include CACHE PATH "")
set(OpenCL_LIBRARY ${cross_root}/usr/lib/libOpenCL.dll.a CACHE FILEPATH "")
file(GLOB fmt_folder ${cross_root}/usr/lib/*/cmake/fmt)
set(fmt_DIR ${fmt_folder} CACHE PATH "")
# Objects of traced functions have more sections than the format's old limit.
set(CMAKE_CXX_FLAGS_INIT -Wa,-mbig-obj)
# Linux's size of the main thread's stack: without optimization a deep function's nodes take more than Windows' 1 MiB.
set(CMAKE_EXE_LINKER_FLAGS_INIT -Wl,--stack,8388608)
set(CMAKE_CROSSCOMPILING_EMULATOR /usr/lib/wine/wine64)
