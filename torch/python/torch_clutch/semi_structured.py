# SPDX-License-Identifier: Apache-2.0
"""torch.sparse's semi-structured (2:4) tensors on clutch: torch.sparse.to_sparse_semi_structured() of a tensor there gives this subclass.

Any shape, and float32, float64 and the 8-bit dtypes besides PyTorch's: where CUTLASS takes float32 as 1:2, it is 2:4 here.
"""
import torch
from torch.sparse import SparseSemiStructuredTensor, semi_structured

_DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.float8_e4m3fn, torch.float8_e5m2)
_ops = torch.ops.clutch
_aten = torch.ops.aten


class SparseSemiStructuredTensorClutch(SparseSemiStructuredTensor):
    """Two values of each four numbers of a row (packed) and their places (meta, four bits each), as clutch::sparse::SemiStructured has them."""

    BACKEND = "clutch"
    _DTYPE_SHAPE_CONSTRAINTS = {dtype: semi_structured._SEMI_STRUCTURED_SPARSE_CONFIG(1, 1, 1, 1) for dtype in _DTYPES}

    @classmethod
    def _load_dispatch_table(cls, custom_dispatch_table=None):
        super()._load_dispatch_table(
            {_aten.linear: _linear, _aten.linear_backward: _linear_backward, _aten._scaled_mm: _scaled_mm, **(custom_dispatch_table or {})}
        )

    @classmethod
    def _validate_device_dim_dtype_shape(cls, original_tensor):
        if original_tensor.device.type != "clutch":
            raise RuntimeError(f"Error original_tensor.device= {original_tensor.device} is not supported! It must be on clutch.")
        if original_tensor.dim() != 2:
            raise RuntimeError(f"Error original_tensor.dim = {original_tensor.dim()} is not supported! Only 2d tensors are supported.")
        if original_tensor.dtype not in _DTYPES:
            raise RuntimeError(f"Error original_tensor.dtype {original_tensor.dtype} is not a supported dtype for {cls}!")

    @classmethod
    def from_dense(cls, original_tensor, alg_id=0):
        """Of a quad that has three or four numbers the first two are kept, or those that PyTorch keeps (its CUTLASS subclass)."""
        cls._validate_device_dim_dtype_shape(original_tensor)
        return cls(
            original_tensor.shape,
            **cls._packed(original_tensor),
            packed_t=None,
            meta_t=None,
            compressed_swizzled_bitmask=None,
            requires_grad=original_tensor.requires_grad,
        )

    @classmethod
    def prune_dense_static_sort(cls, original_tensor, algorithm=""):
        """Keeps of each 4 x 4 numbers what `algorithm` says, so that the transposed matrix is 2:4, too: for training."""
        cls._validate_device_dim_dtype_shape(original_tensor)
        dense = original_tensor.detach()
        mask = _ops.semi_structured_mask(dense, algorithm)
        pruned = torch.where(mask, dense, torch.zeros((), dtype=dense.dtype, device=dense.device))
        of_transposed = cls._packed(pruned.t())
        return cls(
            original_tensor.shape,
            **cls._packed(pruned),
            packed_t=of_transposed["packed"],
            meta_t=of_transposed["meta"],
            compressed_swizzled_bitmask=_ops.semi_structured_bits(mask),
            requires_grad=False,
        )

    @staticmethod
    def _packed(dense):
        # Not as inference tensors: PyTorch counts no writes to those, so that what products pack of them could not be kept.
        with torch.inference_mode(False), torch.no_grad():
            packed, meta = _ops.semi_structured_compress(dense.detach())
        return {"packed": packed, "meta": meta}

    def to_dense(self):
        if self.packed is not None:
            return _ops.semi_structured_decompress(self.packed, self.meta, self.shape[1])
        return _ops.semi_structured_decompress(self.packed_t, self.meta_t, self.shape[0]).t()

    def _mask(self):
        """Where a gradient changes numbers: what pruning kept, or where there are values."""
        if self.compressed_swizzled_bitmask is not None:
            return _ops.semi_structured_mask_of_bits(self.compressed_swizzled_bitmask, *self.shape)
        if self.packed is not None:
            return _ops.semi_structured_mask_of(self.packed, self.meta, self.shape[1])
        return _ops.semi_structured_mask_of(self.packed_t, self.meta_t, self.shape[0]).t()

    def _mm(self, B, *, bias=None, should_transpose_dense=False, **kwargs):
        """self @ B, or self @ B.t() + bias as a transposed tensor."""
        if isinstance(B, SparseSemiStructuredTensor):
            raise ValueError("`SparseSemiStructuredTensor @ SparseSemiStructuredTensor` is not supported")
        if self.ndim != 2 or B.ndim != 2:
            raise NotImplementedError(f"`{type(self).__name__}` matmul: Broadcasting is not implemented")
        if should_transpose_dense or bias is not None:
            return _linear_of(B if should_transpose_dense else B.t(), self, bias).t()
        if self.packed is None:
            return torch.mm(self.to_dense(), B)
        return _ops.semi_structured_mm(self.packed, self.meta, self.shape[1], B)


def _linear_of(x, weight, bias):
    if weight.packed is None:
        return torch.nn.functional.linear(x, weight.to_dense(), bias)
    return _ops.semi_structured_linear(x, weight.packed, weight.meta, weight.shape[1], bias)


def _linear(func, types, args=(), kwargs=None):
    x, weight, bias = (*args, None)[:3]
    if not isinstance(weight, SparseSemiStructuredTensor):
        raise NotImplementedError("`SparseSemiStructuredTensor` linear: only the weight can be sparse")
    return _linear_of(x, weight, bias)


def _linear_backward(func, types, args=(), kwargs=None):
    x, grad, weight, wanted = args
    rows = grad.reshape(-1, grad.shape[-1])
    of_x = of_weight = of_bias = None
    if wanted[0]:  # the transposed matrix times the gradient, if it is 2:4, too
        of_x = (weight.t()._mm(rows, should_transpose_dense=True).t() if weight.packed_t is not None else rows @ weight.to_dense()).reshape(x.shape)
    if wanted[1]:
        of_weight = torch.where(weight._mask(), rows.t() @ x.reshape(-1, x.shape[-1]), 0)
    if wanted[2]:
        of_bias = rows.sum(0)
    return of_x, of_weight, of_bias


def _scaled_mm(func, types, args=(), kwargs=None):
    names = ("self", "mat2", "scale_a", "scale_b", "bias", "scale_result", "out_dtype", "use_fast_accum")
    given = dict(zip(names, args)) | (kwargs or {})
    weight = given["self"]
    if not isinstance(weight, SparseSemiStructuredTensorClutch) or weight.packed is None:
        raise NotImplementedError("`SparseSemiStructuredTensor` _scaled_mm: only the first operand can be sparse")
    return _ops.semi_structured_scaled_mm(
        weight.packed, weight.meta, weight.shape[1], given["mat2"], given["scale_a"], given["scale_b"], given.get("bias"), given.get("out_dtype")
    )


def _register_fakes():
    """Shapes of results, for torch.compile."""

    def fake(name):
        return torch.library.register_fake(f"clutch::semi_structured_{name}")

    @fake("compress")
    def compress(dense):
        m, quads = dense.shape[0], (dense.shape[1] + 3) // 4
        return dense.new_empty((m, 2 * quads)), dense.new_empty((m, (quads + 1) // 2), dtype=torch.uint8)

    @fake("decompress")
    def decompress(values, metadata, columns):
        return values.new_empty((values.shape[0], columns))

    @fake("mask_of")
    def mask_of(values, metadata, columns):
        return values.new_empty((values.shape[0], columns), dtype=torch.bool)

    @fake("mm")
    def mm(values, metadata, columns, dense, out_dtype=None):
        return dense.new_empty((values.shape[0], dense.shape[1]), dtype=out_dtype or dense.dtype)

    @fake("linear")
    def linear(x, values, metadata, columns, bias, activation="none"):
        return x.new_empty((*x.shape[:-1], values.shape[0]))

    @fake("scaled_mm")
    def scaled_mm(values, metadata, columns, dense, scale, scale_of_dense, bias, out_dtype):
        return dense.new_empty((values.shape[0], dense.shape[1]), dtype=out_dtype or torch.bfloat16)

    @fake("mask")
    def mask(dense, algorithm):
        return dense.new_empty(dense.shape, dtype=torch.bool)

    @fake("bits")
    def bits(mask):
        return mask.new_empty(((mask.shape[0] + 7) // 8, (mask.shape[1] + 7) // 8, 8), dtype=torch.uint8)

    @fake("mask_of_bits")
    def mask_of_bits(bits, rows, columns):
        return bits.new_empty((rows, columns), dtype=torch.bool)


def register():
    _register_fakes()
    # What torch.sparse.to_sparse_semi_structured() calls, whichever of its two subclasses is chosen.
    for theirs in (torch.sparse.SparseSemiStructuredTensorCUSPARSELT, torch.sparse.SparseSemiStructuredTensorCUTLASS):
        _take_ours(theirs)


def _take_ours(theirs):
    from_dense = theirs.from_dense.__func__

    def choose(cls, original_tensor, alg_id=0):
        if original_tensor.device.type == "clutch":
            return SparseSemiStructuredTensorClutch.from_dense(original_tensor, alg_id)
        return from_dense(cls, original_tensor, alg_id)

    theirs.from_dense = classmethod(choose)
