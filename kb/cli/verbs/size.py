"""``kb size MODEL --gpu G``: does a deployment fit?"""

from __future__ import annotations

import click

from kb.cli.shared import emit_json, emit_table, json_option


@click.command()
@click.argument("model")
@click.option("--gpu", "gpu_name", required=True, help="GPU, such as h100.")
@click.option("--context", type=int, required=True, help="Tokens per request, prompt plus output.")
@click.option("--batch", type=int, default=1, show_default=True, help="Requests held at once.")
@click.option("--weights", default="bf16", show_default=True, help="bf16, fp8, int8 or int4.")
@click.option("--kv", default="bf16", show_default=True, help="bf16, fp8, int8 or int4.")
@click.option("--page", type=int, default=16, show_default=True, help="Tokens per page.")
@click.option(
    "--utilization", type=float, default=0.92, show_default=True, help="Share of memory the engine may use."
)
@click.option(
    "--gpus", "num_gpus", type=int, default=1, show_default=True, help="GPUs, by tensor parallelism."
)
@json_option
def command(
    model: str, gpu_name: str, context: int, batch: int, weights: str, kv: str, page: int,
    utilization: float, num_gpus: int, as_json: bool,
) -> None:  # fmt: skip
    r"""Add up weights, KV cache and overhead of MODEL, and say whether they fit.

    \b
    kb size llama-3-70b --gpu h100 --weights fp8 --context 4096 --batch 6
    """
    from kb.repro.sim.shapes import find_hardware, find_model
    from kb.repro.sim.sizing import size

    result = size(
        find_model(model), find_hardware(gpu_name), context=context, batch=batch, weights=weights, kv=kv,
        page=page, utilization=utilization, num_gpus=num_gpus,
    )  # fmt: skip
    if as_json:
        emit_json(result.to_json())
        return
    rows = [(name, f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))
            for name, value in result.to_json().items()]  # fmt: skip
    emit_table(rows, ("what", "bytes or count"))
