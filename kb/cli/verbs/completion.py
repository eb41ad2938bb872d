"""``kb completion``: the script that lets a shell complete verbs and options."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    r"""Print the completion script of a shell.

    \b
    eval "$(kb completion bash)"                                 in ~/.bashrc
    eval "$(kb completion zsh)"                                  in ~/.zshrc
    kb completion fish > ~/.config/fish/completions/kb.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101  click has all three
    click.echo(kind(ctx.find_root().command, {}, "kb", "_KB_COMPLETE").source())
