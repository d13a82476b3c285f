// SPDX-License-Identifier: Apache-2.0
// Cells of LSTM and GRU: all gates of a step in one launch, as PyTorch has them for GPUs.
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>

namespace torch_clutch {
namespace {

using MaybeTensor = const std::optional<at::Tensor>&;

// The parts of a (batch, parts * size) or (parts * size) tensor, each of a row's shape.
void append_parts(std::vector<clutch::Tensor>& to, const at::Tensor& gates, int64_t parts) {
  for (const at::Tensor& part : gates.chunk(parts, -1)) to.push_back(wrap(part));
}
void check_bias(MaybeTensor a, MaybeTensor b) {
  const bool has_a = a.has_value() && a->defined(), has_b = b.has_value() && b->defined();
  TORCH_CHECK(has_a == has_b, "both biases of a cell must be given, or none");
}

// What a cell keeps for its gradient, and gradients of gates while they are made: each gate's rows together, since clutch takes parts of one row after another
// for an overlap.
at::Tensor gates_apart(const at::Tensor& like, int64_t parts) { return at::empty({parts, like.size(0), like.size(1)}, like.options()); }
void append_gates(std::vector<clutch::Tensor>& to, const at::Tensor& apart) {
  for (const at::Tensor& gate : apart.unbind(0)) to.push_back(wrap(gate));
}
at::Tensor in_rows(const at::Tensor& apart) { return apart.transpose(0, 1).reshape({apart.size(1), -1}); }

constexpr int64_t kLstm = 4, kGru = 3, kGruKept = 5;

// x: gates of the input, of the hidden state, the cell's state, then biases of both. Gates: input, forget, cell, output.
template <bool kBias>
constexpr auto lstm_cell = [](const In& in) {
  auto gate = [&](std::size_t i) { return kBias ? in.x[i] + in.x[9 + i] + (in.x[4 + i] + in.x[13 + i]) : in.x[i] + in.x[4 + i]; };
  const Expr i = clutch::sigmoid(gate(0)), f = clutch::sigmoid(gate(1)), g = clutch::tanh(gate(2)), o = clutch::sigmoid(gate(3));
  const Expr c = f * in.x[8] + i * g;
  return std::vector<Expr>{o * clutch::tanh(c), c, i, f, g, o};
};

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm(const at::Tensor& input, const at::Tensor& hidden, const at::Tensor& cx, MaybeTensor input_bias,
                                                    MaybeTensor hidden_bias) {
  check_bias(input_bias, hidden_bias);
  at::Tensor hy = at::empty_like(cx, at::MemoryFormat::Contiguous), cy = at::empty_like(hy), kept = gates_apart(cx, kLstm);
  std::vector<clutch::Tensor> inputs, outputs{wrap(hy), wrap(cy)};
  append_parts(inputs, input, kLstm);
  append_parts(inputs, hidden, kLstm);
  inputs.push_back(wrap(cx));
  append_gates(outputs, kept);
  const bool biased = input_bias.has_value() && input_bias->defined();
  if (biased) {
    append_parts(inputs, *input_bias, kLstm);
    append_parts(inputs, *hidden_bias, kLstm);
  }
  if (hy.numel() > 0) clutch::map_out(outputs, biased ? traced(lstm_cell<true>, inputs) : traced(lstm_cell<false>, inputs), inputs);
  return {hy, cy, kept};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_backward(MaybeTensor grad_hy, MaybeTensor grad_cy, const at::Tensor& cx, const at::Tensor& cy,
                                                             const at::Tensor& kept, bool has_bias) {
  const bool has_hy = grad_hy.has_value() && grad_hy->defined(), has_cy = grad_cy.has_value() && grad_cy->defined();
  if (!has_hy && !has_cy) return {};
  const at::Tensor of_hy = has_hy ? *grad_hy : at::zeros_like(cy), of_cy = has_cy ? *grad_cy : at::zeros_like(cy);
  at::Tensor apart = at::empty_like(kept), of_cx = at::empty_like(cx, at::MemoryFormat::Contiguous);
  std::vector<clutch::Tensor> inputs{wrap(of_hy), wrap(of_cy), wrap(cx), wrap(cy)}, outputs{wrap(of_cx)};
  append_gates(inputs, kept);
  append_gates(outputs, apart);
  constexpr auto backward = [](const In& in) {
    const Expr &i = in.x[4], &f = in.x[5], &g = in.x[6], &o = in.x[7];
    const Expr t = clutch::tanh(in.x[3]), c = in.x[0] * o * (1.0 - t * t) + in.x[1];
    return std::vector<Expr>{c * f, c * g * i * (1.0 - i), c * in.x[2] * f * (1.0 - f), c * i * (1.0 - g * g), in.x[0] * t * o * (1.0 - o)};
  };
  if (apart.numel() > 0) clutch::map_out(outputs, traced(backward, inputs), inputs);
  const at::Tensor gates = in_rows(apart);
  return {gates, of_cx, has_bias ? gates.sum(0) : at::Tensor()};
}

// x: gates of the input, of the hidden state, the hidden state, then biases of both. Gates: reset, update, new.
template <bool kBias>
constexpr auto gru_cell = [](const In& in) {
  auto input = [&](std::size_t i) { return kBias ? in.x[i] + in.x[7 + i] : in.x[i]; };
  auto hidden = [&](std::size_t i) { return kBias ? in.x[3 + i] + in.x[10 + i] : in.x[3 + i]; };
  const Expr r = clutch::sigmoid(input(0) + hidden(0)), u = clutch::sigmoid(input(1) + hidden(1)), h = hidden(2);
  const Expr n = clutch::tanh(input(2) + r * h);
  return std::vector<Expr>{n + u * (in.x[6] - n), r, u, n, in.x[6], h};
};
std::tuple<at::Tensor, at::Tensor> gru(const at::Tensor& input, const at::Tensor& hidden, const at::Tensor& hx, MaybeTensor input_bias,
                                       MaybeTensor hidden_bias) {
  check_bias(input_bias, hidden_bias);
  at::Tensor hy = at::empty_like(hx, at::MemoryFormat::Contiguous), kept = gates_apart(hx, kGruKept);
  std::vector<clutch::Tensor> inputs, outputs{wrap(hy)};
  append_parts(inputs, input, kGru);
  append_parts(inputs, hidden, kGru);
  inputs.push_back(wrap(hx));
  append_gates(outputs, kept);
  const bool biased = input_bias.has_value() && input_bias->defined();
  if (biased) {
    append_parts(inputs, *input_bias, kGru);
    append_parts(inputs, *hidden_bias, kGru);
  }
  if (hy.numel() > 0) clutch::map_out(outputs, biased ? traced(gru_cell<true>, inputs) : traced(gru_cell<false>, inputs), inputs);
  return {hy, kept};
}
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> gru_backward(const at::Tensor& grad, const at::Tensor& kept, bool has_bias) {
  at::Tensor of_hx = at::empty_like(kept[0]), input_apart = gates_apart(of_hx, kGru), hidden_apart = gates_apart(of_hx, kGru);
  std::vector<clutch::Tensor> inputs{wrap(grad)}, outputs{wrap(of_hx)};
  append_gates(inputs, kept);
  append_gates(outputs, input_apart);
  append_gates(outputs, hidden_apart);
  constexpr auto backward = [](const In& in) {
    const Expr &g = in.x[0], &r = in.x[1], &u = in.x[2], &n = in.x[3], &hx = in.x[4], &h = in.x[5];
    const Expr update = g * (hx - n) * (1.0 - u) * u, fresh = g * (1.0 - u) * (1.0 - n * n), reset = fresh * h * (1.0 - r) * r;
    return std::vector<Expr>{g * u, reset, update, fresh, reset, update, fresh * r};
  };
  if (of_hx.numel() > 0) clutch::map_out(outputs, traced(backward, inputs), inputs);
  const at::Tensor of_input = in_rows(input_apart), of_hidden = in_rows(hidden_apart);
  if (!has_bias) return {of_input, of_hidden, of_hx, at::Tensor(), at::Tensor()};
  return {of_input, of_hidden, of_hx, of_input.sum(0), of_hidden.sum(0)};
}

}  // namespace

void add_recurrent(OpTable& table) {
  table.family("recurrent cells");
  table.add<"_thnn_fused_lstm_cell", &lstm>("map");
  table.add<"_thnn_fused_lstm_cell_backward_impl", &lstm_backward>("map");
  table.add<"_thnn_fused_gru_cell", &gru>("map");
  table.add<"_thnn_fused_gru_cell_backward", &gru_backward>("map");
}

}  // namespace torch_clutch
