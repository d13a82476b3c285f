# SPDX-License-Identifier: Apache-2.0
"""Networks as transformers, timm and torch_geometric publish them, with small random weights: no op of a training step runs on the CPU, 20 losses are the CPU's,
and a recorded step has the bits of an eager one.

What is not installed is skipped: scripts/test --torch --nightly installs all three below build/torch/networks.
"""
import copy
import os
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

if os.environ.get("TORCH_CLUTCH_NETWORKS") and Path(os.environ["TORCH_CLUTCH_NETWORKS"]).is_dir():
    sys.path.append(os.environ["TORCH_CLUTCH_NETWORKS"])

VOCABULARY = 128
RTOL = 2e-5  # of the losses: their sums have other orders


def tokens(length=24):
    return torch.randint(1, VOCABULARY, (2, length))


def padded():
    """The second sequence is shorter."""
    mask = torch.ones(2, 24, dtype=torch.long)
    mask[1, 18:] = 0
    return mask


# Of each: the model, and the inputs of a step; the model's first output is its loss.
def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    x = tokens()
    return GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=64, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0,
                                      attn_pdrop=0)), dict(input_ids=x, labels=x)


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    x = tokens()
    return LlamaForCausalLM(LlamaConfig(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                                        num_key_value_heads=2, max_position_embeddings=64)), dict(input_ids=x, labels=x)


def mamba():
    from transformers import MambaConfig, MambaForCausalLM

    x = tokens()
    return MambaForCausalLM(MambaConfig(vocab_size=VOCABULARY, hidden_size=32, state_size=8, num_hidden_layers=2)), dict(input_ids=x, labels=x)


def mamba_by_scan():
    torch.clutch.use_selective_scan()
    return mamba()


def bert(mask=True):
    from transformers import BertConfig, BertForMaskedLM

    x = tokens()
    inputs = dict(input_ids=x, attention_mask=padded(), labels=x) if mask else dict(input_ids=x, labels=x)
    return BertForMaskedLM(BertConfig(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                                      max_position_embeddings=64, hidden_dropout_prob=0, attention_probs_dropout_prob=0)), inputs


def t5(mask=True):
    from transformers import T5Config, T5ForConditionalGeneration

    inputs = dict(input_ids=tokens(), attention_mask=padded(), labels=tokens(12))
    if not mask:
        del inputs["attention_mask"]
    return T5ForConditionalGeneration(T5Config(vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0,
                                               decoder_start_token_id=0, pad_token_id=0)), inputs


def vit():
    from transformers import ViTConfig, ViTForImageClassification

    return ViTForImageClassification(ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8,
                                               num_labels=10, hidden_dropout_prob=0, attention_probs_dropout_prob=0)), dict(
                                                   pixel_values=torch.randn(4, 3, 32, 32), labels=torch.randint(0, 10, (4,)))


class Classifier(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, *inputs, labels):
        return (F.cross_entropy(self.net(*inputs), labels),)


def image_classifier(name, **options):
    import timm

    net = Classifier(timm.create_model(name, num_classes=10, **options))
    return net, dict(x=torch.randn(4, 3, 32, 32), labels=torch.randint(0, 10, (4,)))


def timm_vit():
    return image_classifier("vit_tiny_patch16_224", img_size=32, patch_size=8, embed_dim=48, depth=2, num_heads=3)


def timm_deit3():
    return image_classifier("deit3_small_patch16_224", img_size=32, patch_size=8, embed_dim=48, depth=2, num_heads=3)


def geometric(layer, **options):
    import torch_geometric.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            make = getattr(torch_geometric.nn, layer)

            def one(inputs, outputs):
                if layer == "GINConv":
                    return make(nn.Sequential(nn.Linear(inputs, outputs), nn.ReLU(), nn.Linear(outputs, outputs)))
                return make(inputs, outputs, **options)

            self.first, self.second = one(8, 16), one(16 * options.get("heads", 1), 5)

        def forward(self, x, edges):
            x = self.second(F.relu(self.first(x, edges)), edges)
            return x.reshape(x.size(0), -1)

    return Classifier(Net()), dict(x=torch.randn(60, 8), edges=torch.randint(0, 60, (2, 240)), labels=torch.randint(0, 5, (60,)))


def gcn(**options):
    return geometric("GCNConv", **options)


def gat(**options):
    return geometric("GATConv", heads=2, **options)


def sage():
    return geometric("SAGEConv")


def gin():
    return geometric("GINConv")


def transformer():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.head = nn.Embedding(VOCABULARY, 32), nn.Linear(32, VOCABULARY)
            self.both = nn.Transformer(32, 4, 2, 2, 64, dropout=0.0, batch_first=True)

        def forward(self, source, target, missing, causal):
            y = self.both(self.tokens(source), self.tokens(target), tgt_mask=causal, src_key_padding_mask=missing, memory_key_padding_mask=missing,
                          tgt_is_causal=True)
            return self.head(y).flatten(0, 1)

    y = tokens(13)
    return Classifier(Net()), dict(source=tokens(), target=y[:, :-1], missing=padded() == 0, causal=nn.Transformer.generate_square_subsequent_mask(12),
                                   labels=y[:, 1:].flatten())


def perceptron():
    net = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 10))
    return Classifier(net), dict(x=torch.randn(32, 20), labels=torch.randint(0, 10, (32,)))


def recurrent(kind):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells, self.head = kind(8, 16, num_layers=2, bidirectional=True, batch_first=True), nn.Linear(32, 10)

        def forward(self, x):
            return self.head(self.cells(x)[0].mean(1))

    return Classifier(Net()), dict(x=torch.randn(8, 12, 8), labels=torch.randint(0, 10, (8,)))


def lstm():
    return recurrent(nn.LSTM)


def gru():
    return recurrent(nn.GRU)


PACKAGES = {
    "transformers": [gpt2, llama, bert, t5, vit, mamba, mamba_by_scan],
    "timm": [timm_vit, timm_deit3],
    "torch_geometric": [gcn, gat, sage, gin],
    "torch": [transformer, perceptron, lstm, gru],
}
# What reads numbers of the device on the host cannot be recorded: whether a mask is all true, how many edges are loops.
RECORDED = {bert: dict(mask=False), t5: dict(mask=False), gcn: dict(cached=True), gat: dict(add_self_loops=False)}
NETS = [(package, make) for package, all_of in PACKAGES.items() for make in all_of]


@pytest.fixture(params=NETS, ids=lambda net: net[1].__name__)
def make(request):
    package, function = request.param
    pytest.importorskip(package, reason=f"{package} is not installed; scripts/test --torch --nightly installs it")
    torch.manual_seed(0)
    return function


def stepper(net, inputs, where):
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    named = {name: value.to(where) for name, value in inputs.items()}
    positional = []
    if isinstance(net, Classifier):
        labels = named.pop("labels")
        positional, named = list(named.values()), dict(labels=labels)

    def step():
        optimizer.zero_grad(set_to_none=False)
        loss = net(*positional, **named)[0]
        loss.backward()
        optimizer.step()
        return loss

    return step


def test_twenty_steps_without_the_cpu(make, native):
    host, inputs = make()
    host.train()
    device = copy.deepcopy(host).to("clutch")
    assert len(list(device.parameters())) == len(list(host.parameters()))  # shared ones stay shared
    wanted, got = ([step().item() for _ in range(20)] for step in (stepper(host, inputs, "cpu"), stepper(device, inputs, "clutch")))
    torch.testing.assert_close(got, wanted, rtol=RTOL, atol=1e-6)
    assert got[-1] < got[0]


def test_a_recorded_step_has_eager_bits(make, native):
    net, inputs = make(**RECORDED.get(make, {}))
    net.train()
    results = []
    for recorded in (False, True):
        device = copy.deepcopy(net).to("clutch")
        step = stepper(device, inputs, "clutch")
        torch.accelerator.synchronize()
        stream = torch.Stream("clutch")
        with stream:
            losses = [step().item() for _ in range(2)]
            torch.accelerator.synchronize()
            if recorded:
                graph = torch.accelerator.Graph()
                with graph:
                    loss = step()
        for _ in range(3):
            with stream:
                if recorded:
                    graph.replay()
                else:
                    loss = step()
                losses.append(loss.item())
        torch.accelerator.synchronize()
        results.append((losses, [p.detach().cpu() for p in device.parameters()]))
    assert results[0][0] == results[1][0]
    assert all(torch.equal(a, b) for a, b in zip(results[0][1], results[1][1]))


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("first", [True, False])
def test_an_encoder_of_padded_batches_in_evaluation(nested, first, native):
    """Where PyTorch takes its fast path, on the CPU with nested tensors or without."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, norm_first=first)
    host = nn.TransformerEncoder(layer, 2, enable_nested_tensor=nested).eval()
    device = copy.deepcopy(host).to("clutch")
    x, missing = torch.randn(2, 24, 32), padded() == 0
    with torch.no_grad():
        wanted, got = host(x, src_key_padding_mask=missing), device(x.to("clutch"), src_key_padding_mask=missing.to("clutch")).cpu()
    torch.testing.assert_close(got[~missing], wanted[~missing], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("weights", [True, False])
def test_attention_in_evaluation(weights, native):
    torch.manual_seed(0)
    host = nn.MultiheadAttention(32, 4, batch_first=True).eval()
    device = copy.deepcopy(host).to("clutch")
    x, missing = torch.randn(2, 24, 32), padded() == 0
    moved = x.to("clutch")
    with torch.no_grad():
        wanted = host(x, x, x, key_padding_mask=missing, need_weights=weights)
        got = device(moved, moved, moved, key_padding_mask=missing.to("clutch"), need_weights=weights)
    torch.testing.assert_close(got[0].cpu(), wanted[0], rtol=1e-5, atol=1e-5)
    if weights:
        torch.testing.assert_close(got[1].cpu(), wanted[1], rtol=1e-5, atol=1e-6)
