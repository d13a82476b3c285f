# SPDX-License-Identifier: Apache-2.0
"""Networks as transformers, timm, torch_geometric and torchvision publish them, with small random weights: no op of a training step runs on the CPU, 20 losses are
the CPU's, and a recorded step has the bits of an eager one. With their own dropouts steps are finite, repeat by the seed, and have the CPU's mean loss.

What is not installed is skipped: scripts/test --torch --nightly installs all four below build/torch/networks.
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


def unless(drop, **options):
    """The options that switch dropouts off, where the network's own ones are not wanted."""
    return {} if drop else options


# Of each: the model, and the inputs of a step; the model's first output is its loss.
def gpt2(drop=False):
    from transformers import GPT2Config, GPT2LMHeadModel

    x = tokens()
    return GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=64, n_embd=32, n_layer=2, n_head=4,
                                      **unless(drop, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))), dict(input_ids=x, labels=x)


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


def bert(mask=True, drop=False):
    from transformers import BertConfig, BertForMaskedLM

    x = tokens()
    inputs = dict(input_ids=x, attention_mask=padded(), labels=x) if mask else dict(input_ids=x, labels=x)
    return BertForMaskedLM(BertConfig(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                                      max_position_embeddings=64, **unless(drop, hidden_dropout_prob=0, attention_probs_dropout_prob=0))), inputs


def t5(mask=True, drop=False, cache=True):
    from transformers import T5Config, T5ForConditionalGeneration

    inputs = dict(input_ids=tokens(), attention_mask=padded(), labels=tokens(12))
    if not mask:
        del inputs["attention_mask"]
    return T5ForConditionalGeneration(T5Config(vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
                                               decoder_start_token_id=0, pad_token_id=0, use_cache=cache, **unless(drop, dropout_rate=0))), inputs


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


def timm_swin(drop=False):
    return image_classifier("swin_tiny_patch4_window7_224", img_size=32, embed_dim=24, depths=(2, 2), num_heads=(2, 4), window_size=4,
                            **unless(drop, drop_path_rate=0))


def timm_beit():
    return image_classifier("beit_base_patch16_224", img_size=32, patch_size=8, embed_dim=48, depth=2, num_heads=3)


def timm_cait():
    return image_classifier("cait_xxs24_224", img_size=32, patch_size=8, embed_dim=48, depth=2, num_heads=3)


def timm_eva02():
    return image_classifier("eva02_tiny_patch14_224", img_size=32, patch_size=8, embed_dim=48, depth=2, num_heads=3)


def timm_xcit():
    return image_classifier("xcit_nano_12_p16_224", img_size=32, patch_size=8, embed_dim=48, depth=2, num_heads=3)


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

    return Classifier(Net()), nodes()


def nodes():
    return dict(x=torch.randn(60, 8), edges=torch.randint(0, 60, (2, 240)), labels=torch.randint(0, 5, (60,)))


def gcn(**options):
    return geometric("GCNConv", **options)


def gat(**options):
    return geometric("GATConv", heads=2, **options)


def sage():
    return geometric("SAGEConv")


def gin():
    return geometric("GINConv")


def geometric_model(name, drop, **options):
    """A network of torch_geometric.nn.models with a norm and its layers' results joined."""
    from torch_geometric.nn import models

    return Classifier(getattr(models, name)(8, 16, num_layers=3, out_channels=5, dropout=0.5 if drop else 0.0, **options)), nodes()


def model_gcn(drop=False, **options):
    return geometric_model("GCN", drop, norm="batch_norm", jk="cat", **options)


def model_gat(drop=False, **options):
    return geometric_model("GAT", drop, norm="layer_norm", jk="max", heads=4, **options)


def model_sage(drop=False):
    return geometric_model("GraphSAGE", drop, norm="graph_norm", jk="last", act="elu")


def model_gin(drop=False):
    """Not by relu, which after batch norms turns the rounding of a sum into 3e-4 of a loss."""
    return geometric_model("GIN", drop, norm="batch_norm", jk="lstm", act="elu")


def transformer(drop=False):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.head = nn.Embedding(VOCABULARY, 32), nn.Linear(32, VOCABULARY)
            self.both = nn.Transformer(32, 4, 2, 2, 64, batch_first=True, **unless(drop, dropout=0.0))

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
    "timm": [timm_vit, timm_deit3, timm_swin, timm_beit, timm_cait, timm_eva02, timm_xcit],
    "torch_geometric": [gcn, gat, sage, gin, model_gcn, model_gat, model_sage, model_gin],
    "torch": [transformer, perceptron, lstm, gru],
}
# What reads numbers of the device on the host cannot be recorded: whether a mask is all true, how many edges are loops.
RECORDED = {bert: dict(mask=False), t5: dict(mask=False), gcn: dict(cached=True), gat: dict(add_self_loops=False),
            model_gcn: dict(cached=True), model_gat: dict(add_self_loops=False)}
NETS = [(package, make) for package, all_of in PACKAGES.items() for make in all_of]


@pytest.fixture(params=NETS, ids=lambda net: net[1].__name__)
def make(request):
    package, function = request.param
    pytest.importorskip(package, reason=f"{package} is not installed; scripts/test --torch --nightly installs it")
    torch.manual_seed(0)
    return function


def stepper(net, inputs, where, call=None):
    """Steps of training of the network, which `call` runs if it is given."""
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    named = {name: value.to(where) for name, value in inputs.items()}
    positional = []
    if isinstance(net, Classifier):
        labels = named.pop("labels")
        positional, named = list(named.values()), dict(labels=labels)

    def step():
        optimizer.zero_grad(set_to_none=False)
        loss = (net if call is None else call)(*positional, **named)[0]
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


# What dynamo takes no network whole with, on any device: a cache that is a copied object.
WHOLE = RECORDED | {t5: dict(mask=False, cache=False)}


# Networks that compiled code computes by other ops than eager code: the class takes another way, or PyTorch takes its recurrent layers apart.
OTHER_OPS = (mamba, model_gin, lstm, gru)


def test_compiled_whole(make, native):
    """Forward and backward are one part each, replayed by fused graphs, with the bits of eager steps."""
    import torch._dynamo

    from torch_clutch import compile as clutch_compile

    torch._dynamo.reset()
    net, inputs = make(**WHOLE.get(make, {}))
    net.train()
    if make is gpt2:
        net.loss_type = "ForCausalLM"  # the one that it takes; without it there is a line in the log, which dynamo takes no network whole with
    eager, whole = copy.deepcopy(net).to("clutch"), copy.deepcopy(net).to("clutch")
    first = clutch_compile.regions_compiled()
    call = torch.compile(whole, backend="clutch", fullgraph=True, options={"graph": "fused"})
    with torch._dynamo.config.patch(allow_rnn=True):
        wanted, got = ([step().item() for _ in range(5)] for step in (stepper(eager, inputs, "clutch"), stepper(whole, inputs, "clutch", call)))
    parts = [part for part in torch.clutch.compile_report() if part["number"] >= first]
    # Two compile a second time, since their first call changes what their code asks for.
    assert [part["what"] for part in parts] in (["forward", "backward"], ["forward", "backward"] * 2)
    assert all(part["replays"] > 0 for part in parts[-2:]) and all(part["plain_calls"] == 0 for part in parts)
    if make in OTHER_OPS:
        torch.testing.assert_close(got, wanted, rtol=RTOL, atol=1e-6)
        return
    assert got == wanted
    assert all(torch.equal(a, b) for a, b in zip(eager.parameters(), whole.parameters(), strict=True))


# With the dropouts that their classes have.
DROPPING = [(package, make) for package, make in NETS if make in (gpt2, bert, t5, timm_swin, model_gcn, model_gat, model_sage, model_gin, transformer)]


@pytest.fixture(params=DROPPING, ids=lambda net: net[1].__name__)
def dropping(request):
    package, function = request.param
    pytest.importorskip(package, reason=f"{package} is not installed; scripts/test --torch --nightly installs it")
    return function


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def test_steps_with_dropout_repeat_by_the_seed(dropping, native, deterministic):
    torch.manual_seed(0)
    net, inputs = dropping(drop=True)
    results = []
    for seed in (5, 5, 6):
        device = copy.deepcopy(net).train().to("clutch")
        step = stepper(device, inputs, "clutch")
        torch.manual_seed(seed)
        losses = [step().item() for _ in range(3)]
        results.append((losses, [p.detach().cpu() for p in device.parameters()]))
    assert results[0][0] == results[1][0] and results[0][0][0] != results[2][0][0]
    assert all(torch.equal(a, b) for a, b in zip(results[0][1], results[1][1]))
    assert all(torch.isfinite(t).all() for t in [torch.tensor(results[0][0]), *results[0][1]])
    assert any(not torch.equal(a, b.detach()) for a, b in zip(results[0][1], net.parameters()))


def test_losses_with_dropout_have_the_mean_of_the_cpu(dropping, native):
    """Of 100 draws on each side: means and deviations within five standard errors."""
    torch.manual_seed(0)
    net, inputs = dropping(drop=True)
    sides = []
    for where in ("cpu", "clutch"):
        model = copy.deepcopy(net).train().to(where)
        named = {name: value.to(where) for name, value in inputs.items()}
        positional = []
        if isinstance(model, Classifier):
            labels = named.pop("labels")
            positional, named = list(named.values()), dict(labels=labels)
        with torch.no_grad():
            sides.append(torch.tensor([model(*positional, **named)[0].item() for _ in range(100)], dtype=torch.float64))
    (mean, other), (deviation, spread) = ([side.mean() for side in sides], [side.std() for side in sides])
    assert deviation > 0 and abs(mean - other) < 5 * ((deviation**2 + spread**2) / 100) ** 0.5
    assert 0.5 < spread / deviation < 2


# By torchvision, with the ops that the CPU may do.
CNNS = {
    "resnet18": set(),
    "mobilenet_v3_small": set(),
    "densenet121": set(),
    "shufflenet_v2_x0_5": set(),
    "alexnet": {"aten::_adaptive_avg_pool2d", "aten::_adaptive_avg_pool2d_backward"},  # bins that are not of one size
}


@pytest.fixture(params=CNNS)
def cnn(request):
    torchvision = pytest.importorskip("torchvision", reason="torchvision is not installed; scripts/test --torch --nightly installs it")
    torch.manual_seed(0)
    net = getattr(torchvision.models, request.param)(num_classes=10)
    for part in net.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    yield net, torch.randn(2, 3, 64, 64), torch.randint(0, 10, (2,))
    assert set(torch.clutch.fallbacks()) <= CNNS[request.param]


def distance(got, wanted):
    """Of two lists of tensors: the norm of the difference by the norm."""
    pairs = [(a.detach().cpu().double(), b.detach().double()) for a, b in zip(got, wanted, strict=True)]
    return (sum((a - b).square().sum() for a, b in pairs) / sum(b.square().sum() for _, b in pairs)).sqrt().item()


def test_a_cnn_in_evaluation(cnn):
    net, x, _ = cnn
    device = copy.deepcopy(net).eval().to("clutch")
    with torch.no_grad():
        assert distance([device(x.to("clutch"))], [net.eval()(x)]) < 2e-5


def test_gradients_of_a_cnn(cnn):
    """f32 beside f64 of the CPU. Corners of relu and pooling make some of an image's gradients others: the CPU's own f32 is 0.02 away in resnet18."""
    net, x, labels = cnn
    exact = copy.deepcopy(net).double()
    device = copy.deepcopy(net).to("clutch")
    loss = F.cross_entropy(exact(x.double()), labels)
    got = F.cross_entropy(device(x.to("clutch")), labels.to("clutch"))
    loss.backward()
    got.backward()
    assert abs(got.item() / loss.item() - 1) < 1e-5
    assert distance([p.grad for p in device.parameters()], [p.grad for p in exact.parameters()]) < 0.03


def test_steps_of_a_cnn(cnn):
    """In f64, in which no corner is met by rounding."""
    net, x, labels = cnn
    sides = []
    for where in ("cpu", "clutch"):
        model, pixels, wanted = copy.deepcopy(net).double().to(where), x.double().to(where), labels.to(where)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(pixels), wanted)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        sides.append((losses, [*model.parameters(), *model.buffers()]))
    torch.testing.assert_close(sides[1][0], sides[0][0], rtol=1e-9, atol=0)
    assert distance(sides[1][1], sides[0][1]) < 1e-9
    assert sides[1][0][-1] < sides[1][0][0]


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
