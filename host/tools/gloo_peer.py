# SPDX-License-Identifier: Apache-2.0
# The other end of host/tools/gloo_peer.cpp: a rank of torch.distributed's gloo. Reads one JSON request a line, answers one line, times on its own clock.
import json
import os
import sys
import time

import torch
import torch.distributed as dist


def make(op, count, rank, ranks):
    """A call of `count` numbers in all, and how many numbers of its result are not what they must be."""
    block = count // ranks

    def values(of, n):
        return (torch.arange(n, dtype=torch.int64) % 13 + (of + 1) * 3).to(torch.float32)

    total = sum(values(r, count) for r in range(ranks))
    x, own, out, part = values(rank, count), values(rank, block), torch.empty(count), torch.empty(block)
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    if op == "all_reduce":
        call, result, wanted = lambda: dist.all_reduce(x), x, total
    elif op == "reduce":
        call, result, wanted = lambda: dist.reduce(x, 0), x if rank == 0 else None, total
    elif op == "reduce_scatter":
        call, result, wanted = lambda: dist.reduce_scatter_tensor(part, x), part, total[rank * block : (rank + 1) * block]
    elif op == "all_gather":
        call, result, wanted = lambda: dist.all_gather_into_tensor(out, own), out, torch.cat([values(r, block) for r in range(ranks)])
    elif op == "gather":
        parts = list(out.chunk(ranks)) if rank == 0 else None
        call, result, wanted = lambda: dist.gather(own, parts, 0), out if rank == 0 else None, torch.cat([values(r, block) for r in range(ranks)])
    elif op == "scatter":
        parts = list(x.chunk(ranks)) if rank == 0 else None
        call, result, wanted = lambda: dist.scatter(part, parts, 0), part, values(0, count)[rank * block : (rank + 1) * block]
    elif op == "broadcast":
        call, result, wanted = lambda: dist.broadcast(x, 0), x, values(0, count)
    elif op == "all_to_all":
        wanted = torch.cat([values(r, count)[rank * block : (rank + 1) * block] for r in range(ranks)])
        call, result = lambda: dist.all_to_all_single(out, x), out
    elif op == "sendrecv":

        def call():
            for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, after), dist.P2POp(dist.irecv, out, before)]):
                work.wait()

        result, wanted = out, values(before, count)
    else:
        return None, 0
    call()
    wrong = 0 if result is None else int((result != wanted).sum())
    if op in ("all_reduce", "reduce"):
        x.zero_()  # in place, of the same numbers again and again
    return call, wrong


def main():
    hello = json.loads(sys.stdin.readline())
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    rank, ranks = hello["rank"], hello["ranks"]
    dist.init_process_group("gloo", init_method="file://" + hello["file"], rank=rank, world_size=ranks)
    print(json.dumps({"version": torch.__version__}), flush=True)
    call = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "op" in request:
                call, wrong = make(request["op"], request["count"], rank, ranks)
                answer = {"has": call is not None, "wrong": wrong}
            else:
                dist.barrier()
                begin = time.perf_counter()
                for _ in range(request["reps"]):
                    call()
                answer = {"seconds": time.perf_counter() - begin}
        except Exception as error:  # whatever it is, the other end says it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
