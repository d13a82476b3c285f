# SPDX-License-Identifier: Apache-2.0
"""The C ABI from Python's ctypes by the table that is made of its description. Use: ctypes_test.py <libclutch.so> <folder of clutch_ctypes.py>

Besides a program, each function is called with nothing (NULL, 0), with results but nothing else, with structs of sizes that no version has, and
of those that older headers could have: it gives a status, and where it fails a text.
"""
import array
import ctypes
import sys

sys.path.insert(0, sys.argv[2])
import clutch_ctypes as clutch

library = clutch.load(sys.argv[1])


def ok(status):
    assert status == clutch.OK, library.clutch_error_message().decode()


def made(function, *arguments):
    result = ctypes.c_void_p()
    ok(function(*arguments, ctypes.byref(result)))
    return result


def dims(*sizes):
    return (ctypes.c_int64 * len(sizes))(*sizes), len(sizes)


def tensor(values, *sizes):
    data = array.array("f", values).tobytes()
    return made(library.clutch_from_bytes, data, len(data), *dims(*sizes), None, None)


def floats(handle, count):
    values = (ctypes.c_float * count)()
    ok(library.clutch_tensor_read_bytes(handle, values, ctypes.sizeof(values), None))
    return list(values)


def program():
    x, y = tensor([1, 2, 3, 4], 2, 2), tensor([4, 3, 2, 1], 2, 2)
    out = made(library.clutch_empty, *dims(2, 2), None, None)
    ok(library.clutch_addcmul_out(out, x, x, y, ctypes.byref(clutch.AddcOptions(value=2.0)), None))
    assert floats(out, 4) == [9, 14, 15, 12]
    ok(library.clutch_add_number_(out, clutch.Number(1, 1), None, None))
    assert floats(out, 4) == [10, 15, 16, 13]
    options = clutch.ReduceOptions(dims=ctypes.cast((ctypes.c_int64 * 1)(0), ctypes.c_void_p), dims_count=1)
    total = made(library.clutch_empty, *dims(2), None, None)
    ok(library.clutch_sum_out(total, out, ctypes.byref(options), None))
    assert floats(total, 2) == [26, 28]
    # Rows by their functions: softmax, as e^(x - max) / sum e^(x - max).
    text = "inputs f32\noutputs %0\n", "inputs f32 f32\n%2 = sub %0 %1\n%3 = exp %2\noutputs %3\n", "inputs f32 f32 f32\n%3 = sub %0 %1\n%4 = exp %3\n%5 = div %4 %2\noutputs %5\n"
    functions = [made(library.clutch_expr_function_parse, t.encode()) for t in text]
    row = made(library.clutch_row_function_create, (ctypes.c_int64 * 1)(clutch.DTYPE_F32), 1, (ctypes.c_int64 * 2)(clutch.REDUCE_AMAX, clutch.REDUCE_SUM), 2,
               (ctypes.c_void_p * 2)(*[f.value for f in functions[:2]]), 2, functions[2], None)
    by_rows, named = (made(library.clutch_empty, *dims(2, 2), None, None) for _ in range(2))
    ok(library.clutch_rowwise_out((ctypes.c_void_p * 1)(by_rows.value), 1, row, (ctypes.c_void_p * 1)(x.value), 1, None, None))
    ok(library.clutch_nn_softmax_out(named, x, -1, None))
    assert floats(by_rows, 4) == floats(named, 4)
    # DLPack out and in.
    lent = made(library.clutch_interop_to_dlpack_versioned, x, clutch.INTEROP_DLPACK_MEMORY_DEVICE, None)
    back = made(library.clutch_interop_from_dlpack_versioned, lent, None, None)
    assert floats(back, 4) == [1, 2, 3, 4]
    shares = ctypes.c_int64(-1)
    ok(library.clutch_tensor_shares_storage(x, x, ctypes.byref(shares)))
    assert shares.value == 1
    # A profile of the program.
    profiler = made(library.clutch_profiler_create, None)
    ok(library.clutch_profiler_start(profiler))
    ok(library.clutch_exp_out(out, x, None, None))
    ok(library.clutch_profiler_stop(profiler))
    length = ctypes.c_size_t()
    ok(library.clutch_profiler_table(profiler, None, None, 0, ctypes.byref(length)))
    table = ctypes.create_string_buffer(length.value + 1)
    ok(library.clutch_profiler_table(profiler, None, table, len(table), None))
    assert b"exp_out" in table.value
    library.clutch_profiler_release(profiler)
    bytes_ = ctypes.c_uint64()
    ok(library.clutch_memory_stat(b"allocated_bytes.all.current", None, ctypes.byref(bytes_)))
    assert bytes_.value > 0
    assert library.clutch_memory_stat(b"no_such", None, ctypes.byref(bytes_)) == clutch.INVALID_ARGUMENT
    state = ctypes.c_void_p()
    adam = made(library.clutch_optim_adam_create, (ctypes.c_void_p * 1)(x.value), 1, None, None)
    names, count = ctypes.create_string_buffer(200), ctypes.c_size_t()
    tensors = (ctypes.c_void_p * 8)()
    ok(library.clutch_optim_adam_state(adam, names, len(names), None, tensors, 8, ctypes.byref(count)))
    keys = names.value.split(b"\n")
    assert keys == [b"0.exp_avg", b"0.exp_avg_sq", b"0.step"] and count.value == 3, keys
    ok(library.clutch_optim_adam_load_state(adam, (ctypes.c_char_p * 3)(*keys), tensors, 3, None))
    assert library.clutch_optim_adam_load_state(adam, (ctypes.c_char_p * 1)(keys[0]), tensors, 1, None) == clutch.INVALID_ARGUMENT
    assert state.value is None


NUMBERS = ctypes.c_int64, ctypes.c_uint64, ctypes.c_double, ctypes.c_size_t


def calls_with_wrong_structs():
    """Each struct of each function with sizes that it never has, and with a field that this library does not know."""
    tried = 0
    for name, types in clutch.FUNCTIONS.items():
        for place, t in enumerate(types):
            struct = getattr(t, "_type_", None)
            if not isinstance(struct, type) or not issubclass(struct, clutch.Sized):
                continue
            for size in (0, 8, 12, ctypes.sizeof(struct) + 8, 1 << 40):
                room = (ctypes.c_uint8 * (ctypes.sizeof(struct) + 16))()
                ctypes.memmove(room, ctypes.byref(struct()), ctypes.sizeof(struct))
                room[ctypes.sizeof(struct)] = 1
                given = struct.from_buffer(room)
                given.size = size
                arguments = [clutch.Number(0, 0) if u is clutch.Number else u(0) if u in NUMBERS else None for u in types]
                arguments[place] = ctypes.pointer(given)
                status = getattr(library, name)(*arguments)
                assert status in (clutch.INVALID_ARGUMENT, clutch.NOT_SUPPORTED), (name, size, status, library.clutch_error_message())
                tried += 1
    assert tried > 1000, tried
    return tried


def calls_with_older_structs():
    """Each struct of each function as each older header could have it: what stands behind its size is neither refused nor read nor written."""
    tried = 0
    for name, types in clutch.FUNCTIONS.items():
        for place, t in enumerate(types):
            struct = getattr(t, "_type_", None)
            if not isinstance(struct, type) or not issubclass(struct, clutch.Sized):
                continue
            whole = ctypes.sizeof(struct)
            for size in range(16, whole, 8):
                room = (ctypes.c_uint8 * whole)()
                ctypes.memmove(room, ctypes.byref(struct()), size)
                behind = bytes([0xA5]) * (whole - size)
                room[size:] = behind
                given = struct.from_buffer(room)
                given.size = size
                arguments = [clutch.Number(0, 0) if u is clutch.Number else u(0) if u in NUMBERS else None for u in types]
                arguments[place] = ctypes.pointer(given)
                status = getattr(library, name)(*arguments)
                text = library.clutch_error_message().decode()
                assert status == clutch.OK or ("sizeof(" not in text and str(0xA5A5A5A5A5A5A5A5 - 2**64) not in text), (name, size, text)
                assert bytes(room[size:]) == behind and given.size == size, (name, size)
                tried += 1
    assert tried > 1000, tried
    return tried


# They change the process for the calls behind them.
APART = {"clutch_clear_cache"}


def calls_with_nothing():
    """Each function with NULL and 0, then with places for results."""
    refused = 0
    for name, types in clutch.FUNCTIONS.items():
        if name in APART:
            continue
        nothing = [clutch.Number(0, 0) if t is clutch.Number else t(0) if t in NUMBERS else None for t in types]
        places = list(nothing)
        if name in clutch.RESULTS:
            place = ctypes.create_string_buffer(8192)
            places[-1] = ctypes.cast(place, types[-1])
        for arguments in (nothing, places):
            status = getattr(library, name)(*arguments)
            assert 0 <= status <= clutch.MISMATCH, (name, status)
            if status != clutch.OK:
                refused += 1
                text = library.clutch_error_message().decode()
                assert text and ":" in text, (name, text)
                assert status != clutch.INTERNAL, (name, text)
    assert refused > len(clutch.FUNCTIONS), refused
    return refused


if __name__ == "__main__":
    assert library.clutch_abi_version() == clutch.ABI
    program()
    wrong = calls_with_wrong_structs()
    older = calls_with_older_structs()
    refused = calls_with_nothing()
    program()
    print("%d functions, %d refusals, %d wrong structs, %d older ones" % (len(clutch.FUNCTIONS), refused, wrong, older))
