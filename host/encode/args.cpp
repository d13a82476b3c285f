// SPDX-License-Identifier: Apache-2.0
#include "encode/args.hpp"

#include "runtime/launch.hpp"
#include "runtime/recorder.hpp"
#include "runtime/runtime.hpp"

#include <cstring>

namespace clutch { inline namespace v0 { namespace detail {

bool args_go_by_value(const Encoder& encoder) { return encoder.stream().impl()->runtime().traits().args_by_value; }

Encoder& bind_args_in_memory(Encoder& encoder, const void* args, std::size_t size, const char* name) {
  std::shared_ptr<std::uint8_t[]> bytes(new std::uint8_t[size]);
  std::memcpy(bytes.get(), args, size);
  const Tensor memory = encoder.scratch({static_cast<std::int64_t>(size)}, DType::u8);
  const StreamRef stream = encoder.stream().impl();
  stream->recorder()->upload(stream, encoder.op(), memory, std::move(bytes));
  // Its block must not go to the launch's next struct, nor to another thread's call, before the kernel is enqueued.
  encoder.launch_->kept.push_back(memory);
  return encoder.input(memory, name);
}

}}}  // namespace clutch::v0::detail
