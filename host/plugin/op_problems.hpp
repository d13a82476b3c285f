// SPDX-License-Identifier: Apache-2.0
#pragma once
// Problems by groups of ops: what add_problems() asks for.
#include <clutch/expr.hpp>
#include <clutch/ops/reduce.hpp>
#include <clutch/ops/rowwise.hpp>

#include "plugin/problems.hpp"

namespace clutch { inline namespace v0 { namespace detail {

void map_problems(PluginProblems& problems);
/// Problems of a function: tensors of these dtypes in several layouts, with its params and with others.
void function_problems(PluginProblems& problems, const ExprFunction& function, std::span<const DType> outputs, std::span<const DType> inputs);
void copy_problems(PluginProblems& problems);

void reduction_problems(PluginProblems& problems);
/// Problems of a reduction of a function, with its `after` and keepdim.
void reduction_problems(PluginProblems& problems, Reduce op, const ExprFunction& function, DType output, std::span<const DType> inputs,
                        const ReduceOptions& given);
void product_problems(PluginProblems& problems);
/// Problems of a product with an epilogue.
void product_problems(PluginProblems& problems, const ExprFunction& function, DType output, DType of_a, DType of_b, std::span<const DType> inputs);
void scan_problems(PluginProblems& problems);
void scan_gradient_problems(PluginProblems& problems);
void softmax_gradient_problems(PluginProblems& problems, bool logs);
/// Of layer_norm, else of rms_norm.
void norm_gradient_problems(PluginProblems& problems, bool layers);

/// Problems of a function of rows, with its params and with others.
void rows_problems(PluginProblems& problems, const RowFunction& function, std::span<const DType> outputs, std::span<const DType> inputs);
void rows_problems(PluginProblems& problems);
/// Of layer_norm, else of rms_norm.
void norm_problems(PluginProblems& problems, bool layers);
void cross_entropy_problems(PluginProblems& problems);
void cross_entropy_gradient_problems(PluginProblems& problems);

void topk_problems(PluginProblems& problems);
void kthvalue_problems(PluginProblems& problems);
void nonzero_problems(PluginProblems& problems);
void group_problems(PluginProblems& problems);
void gather_problems(PluginProblems& problems);
void scatter_problems(PluginProblems& problems);
void index_problems(PluginProblems& problems);
void index_put_problems(PluginProblems& problems);
void segment_problems(PluginProblems& problems);
void embedding_problems(PluginProblems& problems);
void embedding_gradient_problems(PluginProblems& problems);
void spmm_problems(PluginProblems& problems);

void draw_problems(PluginProblems& problems, bool normal);
/// `op`: "optim::adam_" and others.
void optim_problems(PluginProblems& problems, std::string_view op);
/// Of eigh, else of eigvalsh.
void eigh_problems(PluginProblems& problems, bool vectors);
void sparse_matmul_problems(PluginProblems& problems);

}}}  // namespace clutch::v0::detail
