# SPDX-License-Identifier: Apache-2.0
"""A mod of flex_attention as text, a line a number: what ops/flex.cpp interprets while clutch traces the mod.

Graphs of dynamo (operator.add) and of ATen (aten.add.Tensor) are read alike. A value of a mod is a Word (one number, whose text is its name) or an Array:
a captured tensor, what indexing left of it, what was computed of that. Arrays are functions of their indices; only what the result needs is written.
"""
import itertools
import math
import operator

import torch

_MOST_LINES = 4000

# Names of Python's and dynamo's operators that ATen has others for.
_SAME = {
    "truediv": "div", "true_divide": "div", "divide": "div", "floordiv": "floor_divide", "mod": "remainder", "multiply": "mul", "subtract": "sub",
    "and_": "bitwise_and", "and": "bitwise_and", "or_": "bitwise_or", "or": "bitwise_or", "xor": "bitwise_xor", "invert": "bitwise_not", "inv": "bitwise_not",
    "not_": "logical_not", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift", "negative": "neg", "pos": "positive", "absolute": "abs",
    "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "not_equal": "ne", "fix": "trunc", "clip": "clamp", "sgn": "sign",
    "arctan": "atan", "special_expit": "sigmoid", "special_erf": "erf", "special_expm1": "expm1", "special_exp2": "exp2", "special_log1p": "log1p",
    "convert_element_type": "to", "_to_copy": "to", "vdot": "dot", "inner": "dot", "linalg_vecdot": "dot",
}  # fmt: skip
# Python's operators with the number first.
_SWAPPED = {"radd": "add", "rmul": "mul", "rsub": "sub", "rtruediv": "div", "rfloordiv": "floor_divide", "rmod": "remainder",
            "rpow": "pow", "rand": "bitwise_and", "ror": "bitwise_or", "rxor": "bitwise_xor", "rlshift": "bitwise_left_shift", "rrshift": "bitwise_right_shift"}  # fmt: skip
_PASSED = {"clone", "alias", "contiguous", "lift_fresh_copy", "lift_fresh", "lift", "positive"}
_CONVERSIONS = {"float": torch.float32, "double": torch.float64, "half": torch.float16, "bfloat16": torch.bfloat16, "int": torch.int32, "long": torch.int64,
                "short": torch.int16, "bool": torch.bool}  # fmt: skip
_WORDS_OF_DTYPES = {torch.bool: "to_bool", torch.float16: "to_f16", torch.bfloat16: "to_bf16", torch.float32: "to_float", torch.float64: "to_float",
                    torch.int8: "to_i8", torch.uint8: "to_u8", torch.int16: "to_i16", torch.int32: "to_int", torch.int64: "to_int"}  # fmt: skip
_TRUTHS = {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isinf", "isfinite",
           "to_bool", "true", "false"}
_REALS = {"div", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "atan", "sinh", "cosh",
          "tanh", "sigmoid", "erf", "silu", "softplus", "gelu", "gelu_tanh", "leaky_relu", "reciprocal", "to_float", "to_f16", "to_bf16", "with_derivatives"}  # fmt: skip
_WHOLE = {"to_int", "to_i8", "to_u8", "to_i16"}
# Those whose second argument is part of the kernel if it is a number: what divides by it, or shifts by it, is faster.
_LITERAL_SECOND = {"floor_divide", "remainder", "fmod", "trunc_divide", "bitwise_left_shift", "bitwise_right_shift", "bitwise_and", "bitwise_or", "bitwise_xor"}
_IGNORED = {"device", "layout", "pin_memory", "memory_format", "non_blocking", "copy", "requires_grad", "implicit", "out"}


class Unknown(Exception):
    """A mod has what clutch's flex has no word for."""


class Word:
    """One number: its text, its kind (b, i or f), the bounds of a whole one if they are known, its value if that is."""

    __slots__ = ("text", "kind", "low", "high", "number")
    sizes = ()

    def __init__(self, text, kind, low=None, high=None, number=None):
        self.text, self.kind, self.low, self.high, self.number = text, kind, low, high, number

    def at(self, index):
        return self


class Array:
    """Numbers of a shape: `at` makes the one at indices that are ints or Words."""

    def __init__(self, sizes, kind, at):
        self.sizes, self.kind = tuple(sizes), kind
        self._at, self._known = at, {}

    def at(self, index):
        key = tuple(i if isinstance(i, int) else i.text for i in index)
        if key not in self._known:
            self._known[key] = self._at(tuple(index))
        return self._known[key]


def _kind(dtype):
    if dtype == torch.bool:
        return "b"
    if dtype.is_complex:
        raise Unknown("a complex number")
    return "f" if dtype.is_floating_point else "i"


def _name(target):
    """The name of what a node calls; of an op that is not PyTorch's own with its namespace."""
    if isinstance(target, str):
        name = target
    elif isinstance(target, torch._ops.HigherOrderOperator):
        return target.name()
    elif isinstance(target, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        space, name = (target._schema.name if hasattr(target, "_schema") else target._qualified_op_name).split("::")
        if space not in ("aten", "prims"):
            return f"{space}::{name}"
    else:
        name = target.__name__
    name = name.strip("_") if name.startswith("__") else name
    return _SAME.get(name, name)


def _is_linear(graph, gradients):
    """Whether the results of a backward graph are linear in the gradients that it gets."""
    moved = set(gradients)
    for node in graph.nodes:
        where = [i for i, a in enumerate(node.args) if isinstance(a, torch.fx.Node) and a in moved]
        if node.op in ("placeholder", "output") or not any(a in moved for a in node.all_input_nodes):
            continue
        name = _name(node.target)
        if name in ("mul", "neg", "to", "float", "type_as", "view", "reshape", "div") or name in _PASSED:
            linear = where == [0] or name == "mul" and len(where) == 1
        else:
            linear = name in ("add", "sub") and len(where) == 2 or name == "where" and where and 0 not in where
        if not linear:
            return False
        moved.add(node)
    return True


class _Writer:
    def __init__(self, bounds, is_score):
        self.count, self.added = 0, []  # tensors that are read, and those of them that are part of the mod
        self.lines, self.known = [], {}
        self.inputs = [Word("v0", "f")] if is_score else []
        self.inputs += [Word(f"v{i + is_score}", "i", 0, max(n - 1, 0)) for i, n in enumerate(bounds)]
        self.operations = set(torch.ops.clutch.flex_operations())
        self.keeps_gradients, self.within_function = True, False

    # Words

    def constant(self, value, kind=None):
        kind = kind or ("b" if isinstance(value, bool) else "i" if isinstance(value, int) else "f")
        if kind == "b":
            return self.word("true" if value else "false", [])
        if kind == "i":
            return Word(f"i{int(value)}", "i", int(value), int(value), int(value))
        return Word(f"f{float(value)!r}", "f", number=float(value))

    def word(self, op, words):
        """A new line, or what is known of its value already."""
        if op not in self.operations:
            raise Unknown(f"the op {op}")
        if op in ("bitwise_and", "logical_and", "bitwise_or", "logical_or") and all(w.kind == "b" for w in words):
            neutral = self.known.get("true" if op.endswith("and") else "false")
            for one, other in (words, words[::-1]):
                if one is neutral:
                    return other
        texts = [w.text for w in words]
        if op in _LITERAL_SECOND and texts[1][0] == "i":
            texts[1] = "c" + texts[1][1:]
        line = " ".join([op, *texts])
        if line not in self.known:
            if len(self.lines) >= _MOST_LINES:
                raise Unknown(f"a mod of more than {_MOST_LINES} steps")
            self.lines.append(line)
            kind = self.kind(op, words)
            low, high = self.bounds(op, words) if kind == "i" else (None, None)
            self.known[line] = Word(f"v{len(self.inputs) + len(self.lines) - 1}", kind, low, high)
        return self.known[line]

    @staticmethod
    def kind(op, words):
        if op in _TRUTHS:
            return "b"
        if op in _REALS:
            return "f"
        if op in _WHOLE:
            return "i"
        kinds = {w.kind for w in (words[1:] if op == "where" else words)}
        return "f" if "f" in kinds else "i" if "i" in kinds else "b"

    @staticmethod
    def bounds(op, words):
        """The least and the largest value of a whole number, or nothing."""
        none = (None, None)
        if op == "where":
            words = words[1:]
        x = words[0]
        second = words[1].number if len(words) > 1 else None
        if op == "remainder" and second is not None and second > 0:
            return 0, second - 1
        if op == "bitwise_and" and any(w.low is not None and w.low >= 0 for w in words):
            return 0, min(w.high for w in words if w.low is not None and w.low >= 0)
        if any(w.low is None for w in words):
            return none
        match op:
            case "add":
                return x.low + words[1].low, x.high + words[1].high
            case "sub":
                return x.low - words[1].high, x.high - words[1].low
            case "mul":
                corners = [a * b for a in (x.low, x.high) for b in (words[1].low, words[1].high)]
                return min(corners), max(corners)
            case "neg":
                return -x.high, -x.low
            case "abs":
                return (0 if x.low <= 0 <= x.high else min(abs(x.low), abs(x.high))), max(abs(x.low), abs(x.high))
            case "minimum":
                return min(w.low for w in words), min(w.high for w in words)
            case "maximum":
                return max(w.low for w in words), max(w.high for w in words)
            case "where":
                return min(w.low for w in words), max(w.high for w in words)
            case "floor_divide" if second is not None and second > 0:
                return x.low // second, x.high // second
            case "bitwise_right_shift" if second is not None and 0 <= second < 32:
                return x.low >> second, x.high >> second
            case "bitwise_or" | "bitwise_xor" if all(w.low >= 0 for w in words):
                return 0, (1 << max(w.high for w in words).bit_length()) - 1
            case "to_int" | "floor" | "ceil" | "trunc" | "round":
                return x.low, x.high
        return none

    def value(self, x):
        if isinstance(x, (Word, Array)):
            return x
        if isinstance(x, (bool, int, float)):
            return self.constant(x)
        raise Unknown(f"an argument {type(x).__name__}")

    # Arrays

    def each(self, op, *values):
        """An op of numbers on values that broadcast."""
        values = [self.value(v) for v in values]
        if all(isinstance(v, Word) for v in values):
            return self.word(op, values)
        if op not in self.operations:
            raise Unknown(f"the op {op}")
        return self.broadcast(values, self.kind(op, values), lambda words: self.word(op, words))

    def broadcast(self, values, kind, make):
        try:
            sizes = torch.broadcast_shapes(*(v.sizes for v in values))
        except RuntimeError:
            raise Unknown("values of shapes that do not broadcast") from None

        def at(index):
            own = [index[len(index) - len(v.sizes):] for v in values]
            return make([v.at([0 if n == 1 else i for i, n in zip(o, v.sizes)]) for v, o in zip(values, own)])

        return Array(sizes, kind, at) if sizes else at(())

    def read(self, tensor):
        """A tensor from outside of the mod."""
        number, kind = self.count, _kind(tensor.dtype)
        self.count += 1
        self.added.append(tensor)
        if tensor.numel() == 0:
            raise Unknown("a captured tensor without elements")
        if tensor.numel() == 1:
            one = Word(f"b{number}", kind)
            return Array(tensor.shape, kind, lambda _: one) if tensor.dim() else one

        def at(index):
            places = [Word(f"c{i}", "i", i, i, i) if isinstance(i, int) else i for i in index]
            word = self.word("index", [Word(f"b{number}", kind), *places])
            word.kind, word.low, word.high = kind, None, None
            return word

        return Array(tensor.shape, kind, at)

    def place(self, index, size):
        """An index as PyTorch has it: negative ones count from the end."""
        if isinstance(index, Word) and index.number is not None:
            index = int(index.number)
        if isinstance(index, int):
            if not -size <= index < size:
                raise Unknown("an index out of bounds")
            return index % size
        if index.kind != "i":
            raise Unknown("an index that is no whole number")
        if index.low is not None and index.low >= 0:
            return index
        back = self.word("add", [index, Word(f"c{size}", "i", size, size, size)])
        result = self.word("where", [self.word("lt", [index, Word("c0", "i", 0, 0, 0)]), back, index])
        result.low, result.high = 0, size - 1
        return result

    def indexed(self, x, items):
        """x[items]: ints, Words, Arrays, slices, None for a new dimension, Ellipsis."""
        taken = sum(i is not None and i is not Ellipsis for i in items)
        if taken > len(x.sizes):
            raise Unknown("more indices than dimensions")
        if Ellipsis not in [i for i in items if i is None or i is Ellipsis]:
            items = [*items, Ellipsis]
        at = next(k for k, i in enumerate(items) if i is Ellipsis)
        items = [*items[:at], *[slice(None)] * (len(x.sizes) - taken), *items[at + 1:]]
        gathered = any(isinstance(i, (Word, Array)) for i in items)
        # parts: how the result's indices make those of x; `places` is where the dimensions of Arrays go
        parts, sizes, arrays, places, dim = [], [], [], [], 0
        for item in items:
            if item is None:
                sizes.append(1)
                continue
            size = x.sizes[dim]
            dim += 1
            if isinstance(item, slice):
                if any(not isinstance(b, (int, type(None))) for b in (item.start, item.stop, item.step)):
                    raise Unknown("a slice between values of a mod")
                begin, end, step = item.indices(size)
                parts.append((len(sizes), begin, step))
                sizes.append(len(range(begin, end, step)))
            elif isinstance(item, bool):
                raise Unknown("a truth as an index")
            else:
                item = self.place(item, size) if not isinstance(item, Array) else self.placed(item, size)
                if gathered:
                    places.append(len(sizes))
                parts.append(item)
                if isinstance(item, Array):
                    arrays.append(item)
        shape = tuple(torch.broadcast_shapes(*(a.sizes for a in arrays))) if arrays else ()
        first = 0 if not places or len(set(places)) > 1 else places[0]
        total = (*sizes[:first], *shape, *sizes[first:])

        def read(index):
            own, rest = index[first:first + len(shape)], [*index[:first], *index[first + len(shape):]]
            result = []
            for part in parts:
                if isinstance(part, tuple):
                    where, begin, step = part
                    i = rest[where]
                    if isinstance(i, int):
                        result.append(begin + step * i)
                    else:
                        result.append(i if (begin, step) == (0, 1) else self.each("add", self.each("mul", i, step), begin))
                elif isinstance(part, Array):
                    result.append(part.at([0 if n == 1 else i for i, n in zip(own[len(own) - len(part.sizes):], part.sizes)]))
                else:
                    result.append(part)
            return x.at(result)

        return Array(total, x.kind, read) if total else read(())

    def placed(self, array, size):
        if array.kind != "i":
            raise Unknown("an index that is no whole number")

        def at(index):
            place = self.place(array.at(index), size)
            return place if isinstance(place, Word) else Word(f"c{place}", "i", place, place, place)

        return Array(array.sizes, "i", at)

    def reshaped(self, x, sizes):
        count = math.prod(x.sizes)
        sizes = [count // max(-math.prod(sizes), 1) if n == -1 else n for n in sizes]
        if math.prod(sizes) != count:
            raise Unknown("a shape of another size")
        if not sizes:
            return x.at([0] * len(x.sizes))

        def at(index):
            if not all(isinstance(i, int) for i in index):
                raise Unknown("an index into a tensor that the mod has given another shape")
            flat, own = 0, []
            for i, n in zip(index, sizes):
                flat = flat * n + i
            for n in reversed(x.sizes):
                own.append(flat % n)
                flat //= n
            return x.at(own[::-1])

        return Array(sizes, x.kind, at)

    def permuted(self, x, order):
        order = [d % len(order) for d in order]
        return Array([x.sizes[d] for d in order], x.kind, lambda index: x.at([index[order.index(d)] for d in range(len(order))])) if order else x

    def expanded(self, x, sizes):
        ahead = len(sizes) - len(x.sizes)
        sizes = [x.sizes[k - ahead] if n == -1 else n for k, n in enumerate(sizes)]
        return self.broadcast([x, Array(sizes, x.kind, lambda _: None)], x.kind, lambda words: words[0])

    def reduced(self, x, make, dims=None, keepdim=False):
        """`make` of the numbers along dimensions, all by default."""
        rank = len(x.sizes)
        dims = range(rank) if dims is None or dims == [] or dims == () else [dims] if isinstance(dims, int) else dims
        dims = sorted(d % rank for d in dims) if rank else []
        if math.prod(x.sizes[d] for d in dims) > _MOST_LINES:
            raise Unknown(f"a sum over more than {_MOST_LINES} numbers")
        kept = [d for d in range(rank) if d not in dims]

        def at(index):
            if keepdim:
                index = [index[d] for d in kept]
            numbers = []
            for inner in itertools.product(*(range(x.sizes[d]) for d in dims)):
                place = dict(zip(dims, inner)) | dict(zip(kept, index))
                numbers.append(x.at([place[d] for d in range(rank)]))
            return make(numbers)

        sizes = [1 if d in dims else n for d, n in enumerate(x.sizes)] if keepdim else [x.sizes[d] for d in kept]
        return Array(sizes, x.kind, at) if sizes else at(())

    def chain(self, op, begin=None):
        def make(numbers):
            if not numbers and begin is None:
                raise Unknown("the extreme of no numbers")
            result = numbers[0] if numbers else self.constant(begin)
            for number in numbers[1:]:
                result = self.word(op, [result, number])
            return result

        return make

    def sum(self, x, dims=None, keepdim=False):
        if x.kind == "b":
            x = self.each("to_int", x)
        return self.reduced(x, self.chain("add", 0), dims, keepdim)

    def product(self, a, b):
        """matmul of vectors and matrices."""
        if not 1 <= len(a.sizes) <= 2 or not 1 <= len(b.sizes) <= 2:
            raise Unknown("a product of tensors of these ranks")
        if len(b.sizes) == 2:
            b = self.permuted(b, [1, 0])
            if len(a.sizes) == 2:
                a = self.indexed(a, [slice(None), None])
        return self.sum(self.each("mul", a, b), [-1])

    # Graphs

    def run(self, module, arguments):
        """The results of a graph, as its output node has them."""
        names = {}
        arguments = iter(arguments)

        def look(x):
            return torch.fx.node.map_arg(x, lambda n: names[n])

        for node in module.graph.nodes:
            match node.op:
                case "placeholder":
                    names[node] = next(arguments)
                case "get_attr":
                    names[node] = self.attribute(operator.attrgetter(node.target)(module))
                case "output":
                    return look(node.args[0])
                case "call_function" | "call_method":
                    args, kwargs = list(_plain(node.args, names)), {k: _plain(v, names) for k, v in node.kwargs.items()}
                    result = self.call(node.target, args, kwargs)
                    if not self.keeps_gradients and not self.within_function:
                        result = self.detached(result)
                    names[node] = result
                case _:
                    raise Unknown(f"a node {node.op}")
        raise Unknown("a mod without result")

    def attribute(self, x):
        if not isinstance(x, torch.Tensor):
            return x
        if x.numel() == 1:
            one = self.constant(x.item(), _kind(x.dtype))
            return Array(x.shape, one.kind, lambda _: one) if x.dim() else one
        return self.read(x)

    def detached(self, x):
        if isinstance(x, (list, tuple)):
            return [self.detached(y) for y in x]
        if not isinstance(x, (Word, Array)) or x.kind != "f" or getattr(x, "number", None) is not None:
            return x
        return self.each("detach", x)

    def call(self, target, args, kwargs):
        name = _name(target)
        if name in _SWAPPED:
            name, args = _SWAPPED[name], args[::-1]
        if name in ("_set_grad_enabled", "set_grad_enabled"):
            self.keeps_gradients = args[0]
            return None
        if name == "autograd_function_apply":
            return self.function(*args)
        if "::" in name:
            return self.custom(name, args, kwargs)
        if name == "where" and isinstance(target, str):  # the method has its own value first
            args[:2] = args[1::-1]
        if "input" in kwargs:
            args.insert(0, kwargs.pop("input"))
        if "other" in kwargs:
            args.append(kwargs.pop("other"))
        if kwargs.get("out") is not None:
            raise Unknown("an op that writes into a tensor")
        kwargs = {k: v for k, v in kwargs.items() if k not in _IGNORED}
        if args and not any(isinstance(a, (Word, Array)) for a in _flat((args, list(kwargs.values())))) and callable(target) and all(
                isinstance(a, (bool, int, float)) for a in args) and getattr(target, "__module__", "") in ("_operator", "operator", "math", "builtins"):
            return target(*args, **kwargs)  # sizes
        handler = getattr(self, "op_" + name, None)
        if handler is not None:
            try:
                return handler(*args, **kwargs)
            except (TypeError, AttributeError, IndexError, KeyError, ValueError) as error:
                raise Unknown(f"the op {name} with these arguments ({error})") from error
        if kwargs:
            raise Unknown(f"the op {name} with {next(iter(kwargs))}")
        if name in _PASSED:
            return args[0]
        if name in _CONVERSIONS:
            return self.converted(args[0], _CONVERSIONS[name])
        return self.each(name, *args)

    def function(self, forward, backward, *args):
        """torch.autograd.Function: its value with derivatives by its own backward."""
        within, self.within_function = self.within_function, True
        results, saved = self.run(forward, args)
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        if len(results) != 1 or not all(isinstance(v, (Word, int, float, type(None))) for v in (*results, *args)):
            raise Unknown("an autograd.Function of more than numbers")
        inputs = [n for n in backward.graph.nodes if n.op == "placeholder"]
        if not _is_linear(backward.graph, inputs[:1]):
            raise Unknown("an autograd.Function whose backward is not linear")
        gradients = self.run(backward, [Word("c1", "f"), *saved])
        self.within_function = within
        gradients = list(gradients) if isinstance(gradients, (tuple, list)) else [gradients]
        if len(gradients) != len(args):
            raise Unknown("an autograd.Function with another number of gradients")
        words = [self.value(results[0])]
        for gradient, x in zip(gradients, args):
            if isinstance(x, Word) and x.kind == "f" and gradient is not None:
                words += [self.converted(self.value(gradient), torch.float32), x]
        return [self.word("with_derivatives", words) if len(words) > 1 else self.detached(words[0])]

    def custom(self, name, args, kwargs):
        """An op of torch.library.custom_op: what its Python computes, where that can be traced."""
        from torch._library.custom_ops import OPDEFS
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.fx.experimental.proxy_tensor import make_fx

        op = OPDEFS.get(name)
        if op is None or kwargs or not all(isinstance(a, Word) for a in args) or set(op._backend_fns) - {None, "default"}:
            raise Unknown(f"the op {name}")
        if op._backward_fn is not None and not self.within_function:
            raise Unknown(f"the op {name}, which has a backward of its own,")
        dtypes = {"b": torch.bool, "i": torch.int64, "f": torch.float32}
        try:
            with FakeTensorMode():
                given = [torch.zeros((), dtype=dtypes[a.kind]) for a in args]
            graph = make_fx(op._init_fn, tracing_mode="fake")(*given)
        except Exception as error:
            raise Unknown(f"the op {name} ({type(error).__name__} while it was traced)") from error
        return self.run(graph, args)

    # Ops that are more than a word, by the names of their nodes

    def converted(self, x, dtype):
        if dtype not in _WORDS_OF_DTYPES:
            raise Unknown(f"a conversion to {dtype}")
        x, word = self.value(x), _WORDS_OF_DTYPES[dtype]
        if word == "to_" + {"f": "float", "i": "int", "b": "bool"}[x.kind]:
            return x
        if isinstance(x, Word) and x.number is not None and word in ("to_float", "to_int"):
            return self.constant(x.number, "f" if word == "to_float" else "i")
        return self.each(word, x)

    def op_to(self, x, *rest, dtype=None, **_):
        dtype = dtype or next((a for a in rest if isinstance(a, torch.dtype)), None)
        like = next((a for a in rest if isinstance(a, (Word, Array))), None)
        return self.op_type_as(x, like) if like is not None else x if dtype is None else self.converted(x, dtype)

    def op_type_as(self, x, like):
        return self.converted(x, {"b": torch.bool, "i": torch.int64, "f": torch.float32}[self.value(like).kind])

    def op_getitem(self, x, items):
        if isinstance(x, (list, tuple)):
            return x[items]
        return self.indexed(x, list(items) if isinstance(items, (tuple, list)) else [items])

    def op_index(self, x, items):
        return self.indexed(x, [slice(None) if i is None else i for i in items])

    op_mod_index = op_index

    def op_select(self, x, dim, index):
        return self.indexed(x, [*[slice(None)] * (dim % len(x.sizes)), index])

    def op_slice(self, x, dim=0, start=None, end=None, step=1):
        return self.indexed(x, [*[slice(None)] * (dim % len(x.sizes)), slice(start, end, step)])

    def op_narrow(self, x, dim, start, length):
        return self.op_slice(x, dim, start, start + length)

    def op_unbind(self, x, dim=0):
        return [self.op_select(x, dim, i) for i in range(x.sizes[dim])]

    def op_unsqueeze(self, x, dim):
        return self.indexed(x, [*[slice(None)] * (dim % (len(x.sizes) + 1)), None])

    def op_squeeze(self, x, dim=None):
        dims = range(len(x.sizes)) if dim is None else [d % max(len(x.sizes), 1) for d in ([dim] if isinstance(dim, int) else dim)]
        return self.indexed(x, [0 if d in dims and n == 1 else slice(None) for d, n in enumerate(x.sizes)])

    def op_view(self, x, *sizes, shape=None):
        sizes = shape if shape is not None else sizes
        return self.reshaped(x, sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes)

    op_reshape = op__unsafe_view = op_view

    def op_flatten(self, x, start_dim=0, end_dim=-1):
        rank = max(len(x.sizes), 1)
        start, end, sizes = start_dim % rank, end_dim % rank, x.sizes or (1,)
        return self.reshaped(x, [*sizes[:start], math.prod(sizes[start:end + 1]), *sizes[end + 1:]])

    def op_expand(self, x, *sizes):
        return self.expanded(x, sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes)

    def op_permute(self, x, *dims):
        return self.permuted(x, dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims)

    def op_transpose(self, x, a, b):
        order = list(range(len(x.sizes)))
        order[a], order[b] = order[b], order[a]
        return self.permuted(x, order)

    def op_t(self, x):
        return self.permuted(x, list(range(len(x.sizes)))[::-1])

    def op_size(self, x, dim=None):
        return x.sizes if dim is None else x.sizes[dim]

    op_sym_size = op_size

    def op_stack(self, values, dim=0):
        values = [self.value(v) for v in values]
        dim, kind = dim % (len(values[0].sizes) + 1), self.kind("add", values)

        def at(index):
            if not isinstance(index[dim], int):
                raise Unknown("an index into stacked values")
            return values[index[dim]].at([*index[:dim], *index[dim + 1:]])

        return Array([*values[0].sizes[:dim], len(values), *values[0].sizes[dim:]], kind, at)

    def filled(self, sizes, value, dtype, like=None):
        kind = _kind(dtype) if dtype is not None else like
        one = self.constant(value, kind)
        sizes = [n for n in _flat(sizes)]
        return Array(sizes, one.kind, lambda _: one) if sizes else one

    def op_zeros(self, *size, dtype=None, **named):
        return self.filled((size, list(named.values())), 0, dtype or torch.get_default_dtype())

    def op_ones(self, *size, dtype=None, **named):
        return self.filled((size, list(named.values())), 1, dtype or torch.get_default_dtype())

    def op_new_zeros(self, x, *size, dtype=None, **named):
        return self.filled((size, list(named.values())), 0, dtype, x.kind)

    def op_new_ones(self, x, *size, dtype=None, **named):
        return self.filled((size, list(named.values())), 1, dtype, x.kind)

    def op_zeros_like(self, x, dtype=None):
        return self.filled(x.sizes, 0, dtype, x.kind)

    def op_ones_like(self, x, dtype=None):
        return self.filled(x.sizes, 1, dtype, x.kind)

    def op_full_like(self, x, fill_value, dtype=None):
        return self.filled_with(x.sizes, fill_value, dtype, x.kind)

    def op_full(self, size, fill_value, dtype=None):
        return self.filled_with(size, fill_value, dtype)

    def op_new_full(self, x, size, fill_value, dtype=None):
        return self.filled_with(size, fill_value, dtype, x.kind)

    def filled_with(self, sizes, value, dtype, like=None):
        if isinstance(value, Word) and value.number is None:
            raise Unknown("a tensor filled with a value of a mod")
        return self.filled(sizes, value.number if isinstance(value, Word) else value, dtype, like)

    def op_scalar_tensor(self, value, dtype=None):
        return self.filled_with((), value, dtype)

    def op_tensor(self, data, dtype=None):
        if isinstance(data, (bool, int, float)):
            return self.filled((), data, dtype)
        if isinstance(data, (list, tuple)) and all(isinstance(v, (bool, int, float)) for v in data):
            return self.op_stack([self.filled((), v, dtype) for v in data])
        raise Unknown("a tensor of values of a mod")

    def op_new_tensor(self, x, data, dtype=None):
        return self.op_tensor(data, dtype or {"b": torch.bool, "i": torch.int64, "f": torch.float32}[x.kind])

    def op_arange(self, *ends, dtype=None, **named):
        begin, end, step = (0, ends[0], 1) if len(ends) == 1 else (*ends, 1)[:3]
        if named or not all(isinstance(n, int) for n in (begin, end, step)) or dtype is not None and dtype.is_floating_point:
            raise Unknown("arange of these numbers")
        numbers = range(begin, end, step)

        def at(index):
            return self.constant(numbers[index[0]]) if isinstance(index[0], int) else self.each("add", self.each("mul", index[0], step), begin)

        return Array([len(numbers)], "i", at)

    def op_detach(self, x):
        return self.detached(x)

    op_detach_ = op_detach

    def op_add(self, a, b, alpha=1):
        return self.each("add", a, b if alpha == 1 else self.each("mul", b, alpha))

    def op_sub(self, a, b, alpha=1):
        return self.each("sub", a, b if alpha == 1 else self.each("mul", b, alpha))

    def op_rsub(self, a, b, alpha=1):
        return self.op_sub(b, a, alpha)

    def op_div(self, a, b, rounding_mode=None):
        return self.each({None: "div", "floor": "floor_divide", "trunc": "trunc_divide"}[rounding_mode], a, b)

    def op_pow(self, a, b):
        a, b = self.value(a), self.value(b)
        if isinstance(b, Word) and b.number in (2, 3):
            square = self.each("mul", a, a)
            return square if b.number == 2 else self.each("mul", square, a)
        if "f" in (a.kind, b.kind):
            return self.each("pow", self.converted(a, torch.float32), self.converted(b, torch.float32))
        if isinstance(a, Word) and a.number == 2 and b.kind == "i":
            return self.each("bitwise_left_shift", Word("c1", "i", 1, 1, 1), b)
        raise Unknown("a power of whole numbers")

    def op_where(self, condition, a, b):
        return self.each("where", condition, a, b)

    def op_masked_fill(self, x, mask, value):
        return self.each("where", mask, value, x)

    def op_clamp(self, x, min=None, max=None):
        if self.value(x).kind == "f":
            return self.each("clamp", x, -math.inf if min is None else min, math.inf if max is None else max)
        x = x if min is None else self.each("maximum", x, min)
        return x if max is None else self.each("minimum", x, max)

    op_hardtanh = op_clamp

    def op_clamp_min(self, x, min):
        return self.op_clamp(x, min)

    def op_clamp_max(self, x, max):
        return self.op_clamp(x, None, max)

    def op_relu6(self, x):
        return self.op_clamp(x, 0, 6)

    def op_square(self, x):
        return self.each("mul", x, x)

    def op_round(self, x, decimals=0):
        if decimals:
            raise Unknown("round with decimals")
        return self.each("round", x)

    def op_gelu(self, x, approximate="none"):
        return self.each("gelu" if approximate == "none" else "gelu_tanh", x)

    def op_softplus(self, x, beta=1, threshold=20):
        if (beta, threshold) != (1, 20):
            raise Unknown("softplus with numbers of its own")
        return self.each("softplus", x)

    def op_leaky_relu(self, x, negative_slope=0.01):
        return self.each("leaky_relu", x, negative_slope)

    def op_elu(self, x, alpha=1.0):
        return self.each("where", self.each("gt", x, 0), x, self.each("mul", self.each("expm1", x), alpha))

    def op_lerp(self, a, b, weight):
        return self.each("add", a, self.each("mul", weight, self.each("sub", b, a)))

    def op_addcmul(self, x, a, b, value=1):
        return self.op_add(x, self.each("mul", a, b), value)

    def op_isneginf(self, x):
        return self.each("eq", x, -math.inf)

    def op_isposinf(self, x):
        return self.each("eq", x, math.inf)

    def op_sum(self, x, dim=None, keepdim=False, dtype=None, axis=None):
        return self.sum(self.converted(x, dtype) if dtype is not None else x, dim if axis is None else axis, keepdim)

    def op_mean(self, x, dim=None, keepdim=False, dtype=None):
        total = self.sum(self.converted(x, dtype) if dtype is not None else x, dim, keepdim)
        return self.each("div", total, math.prod(x.sizes) // max(math.prod(total.sizes), 1))

    def op_prod(self, x, dim=None, keepdim=False):
        return self.reduced(x, self.chain("mul", 1), dim, keepdim)

    def op_amax(self, x, dim=None, keepdim=False):
        return self.reduced(x, self.chain("maximum"), dim, keepdim)

    def op_amin(self, x, dim=None, keepdim=False):
        return self.reduced(x, self.chain("minimum"), dim, keepdim)

    def op_any(self, x, dim=None, keepdim=False):
        return self.reduced(self.converted(x, torch.bool), self.chain("logical_or", False), dim, keepdim)

    def op_all(self, x, dim=None, keepdim=False):
        return self.reduced(self.converted(x, torch.bool), self.chain("logical_and", True), dim, keepdim)

    def op_max(self, x, other=None, dim=None, keepdim=False):
        return self.extreme("maximum", x, other, dim)

    def op_min(self, x, other=None, dim=None, keepdim=False):
        return self.extreme("minimum", x, other, dim)

    def extreme(self, op, x, other, dim):
        if dim is not None or other is not None and not isinstance(other, (Word, Array)):
            raise Unknown("the extremes along a dimension with their places")
        return self.reduced(x, self.chain(op)) if other is None else self.each(op, x, other)

    def op_dot(self, a, b, dim=-1):
        if not a.sizes or not b.sizes:
            return self.each("mul", a, b)
        return self.sum(self.each("mul", a, b), [dim])

    def op_matmul(self, a, b):
        return self.product(a, b)

    op_mv = op_mm = op_matmul


def _plain(x, names):
    """Arguments with the values of nodes; lists of nodes as lists."""
    if isinstance(x, torch.fx.Node):
        return names[x]
    if isinstance(x, (tuple, list)):
        return [_plain(y, names) for y in x]
    if isinstance(x, slice):
        return slice(*(_plain(y, names) for y in (x.start, x.stop, x.step)))
    return x


def _flat(x):
    return [z for y in x for z in _flat(y)] if isinstance(x, (tuple, list)) else [x]


def program(module, bounds, buffers, is_score):
    """The text of a mod and the tensors that are part of it; `bounds` are the numbers of batches, heads, queries and keys. The text is empty for a score mod
    that changes nothing, and for a mask that holds everywhere."""
    if not hasattr(module, "graph"):
        raise Unknown("a mod that was not traced")
    writer = _Writer(bounds, is_score)
    given = [writer.read(b) if isinstance(b, torch.Tensor) else b for b in buffers]
    writer.added.clear()
    result = writer.run(module, [*writer.inputs, *given])
    result = writer.value(result[0] if isinstance(result, (tuple, list)) else result)
    if math.prod(result.sizes) != 1:
        raise Unknown("a mod whose result is more than a number")
    result = result.at([0] * len(result.sizes))
    if result.text == "v0" if is_score else result is writer.known.get("true"):
        return "", []
    if result.text != f"v{len(writer.inputs) + len(writer.lines) - 1}" or not writer.lines:
        writer.word("copy", [result])
    return "\n".join(writer.lines), writer.added
