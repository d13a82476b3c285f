# SPDX-License-Identifier: Apache-2.0
# The other end of bench/peers/torch.cpp: reads one JSON request a line, answers one line, times on its own clock.
import json
import sys
import time

import torch


def wait(device):
    if device != "cpu":
        torch.cuda.synchronize()


def main():
    cuda = torch.cuda.is_available()
    print(json.dumps({"version": torch.__version__, "cuda": cuda, "threads": torch.get_num_threads()}), flush=True)
    spaces = {}
    for line in sys.stdin:
        try:
            request = json.loads(line)
            if "setup" in request:
                device = "cuda" if cuda and request["gpu"] else "cpu"
                space = spaces[request["slot"]] = {"torch": torch, "device": device}
                with torch.no_grad():
                    exec(request["setup"], space)
                    exec("def call():\n    " + request["call"], space)
                    space["call"]()
                wait(device)
                answer = {"device": torch.cuda.get_device_name() if device == "cuda" else "cpu"}
            else:
                space, reps = spaces[request["slot"]], request["reps"]
                call = space["call"]
                with torch.no_grad():
                    wait(space["device"])
                    begin = time.perf_counter()
                    for _ in range(reps):
                        call()
                    wait(space["device"])
                    answer = {"seconds": time.perf_counter() - begin}
        except Exception as error:  # whatever it is, the other end says it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
