"""`Figure` → SVG: the same record gives the same bytes on every machine.

Text stays text, so it can be read aloud, searched and translated; it is measured with the one font that matplotlib
ships and shown in whatever Chinese font the reader has. The ground is opaque, so lines are legible on a light and on a
dark page. Predictions are dashed; what was measured or counted is solid, with its intervals.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kb.files import digest
from kb.model import Figure, Series, Text
from kb.publish.escape import one_line
from kb.publish.numbers import digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DRAWING = 4
"""Version of this module's drawing; raising it redraws every figure."""
WIDTH_IN, HEIGHT_IN = 7.2, 3.6
LEGEND_ROW_IN = 0.24
TITLE_ROW_IN = 0.19
DIGIT_IN, Y_LABEL_ROW_IN = 0.084, 0.17
LABEL_COLUMNS, Y_LABEL_COLUMNS = 76, 40
"""Widest line of a label; a Chinese character takes two columns."""
TICK_DIGITS, TICK_NOISE = 6, 1e-12
"""Significant digits of a tick; below the second number a tick is zero that rounding missed."""
INK, FAINT, PAPER = "#1f2328", "#d0d7de", "#ffffff"
COLOURS = ("#0969da", "#cf222e", "#1a7f37", "#9a6700", "#8250df", "#bf3989", "#57606a", "#0a7ea4")
"""Each has a contrast of at least 4.5 on the ground."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
FONT = "'DejaVu Sans'"
FONTS = f"{FONT}, 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', 'Source Han Sans SC', sans-serif"
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "kb",
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.parse_math": False,
    "text.usetex": False,
    "axes.unicode_minus": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "legend.frameon": False,
    "path.simplify": False,
}


def figure_sum(figure: Figure) -> str:
    """What an SVG must carry to be the picture of this record."""
    return digest({"drawing": DRAWING, "figure": figure.to_json()})[:16]


def is_drawn(figure: Figure, svg: bytes) -> bool:
    """Whether an SVG is the picture of this record; another release of matplotlib does not make it stale."""
    return f"kb:figure {figure_sum(figure)}".encode() in svg[:400]


def draw(figure: Figure, language: str) -> bytes:
    """Draw one figure.

    Args:
        figure: Recorded numbers; text in it may be hostile and stays text.
        language: ``zh`` or ``en``: the first of the two languages on the labels.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context(), _quiet():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        rows = len(figure.series)
        title = _titles(figure.title, language)
        above = 0.3 + TITLE_ROW_IN * (title.count("\n") + 1)
        height = HEIGHT_IN + LEGEND_ROW_IN * rows + above
        canvas = Canvas(figsize=(WIDTH_IN, height))
        FigureCanvasSVG(canvas)
        below = (0.62 + LEGEND_ROW_IN * rows) / height
        axes = canvas.add_axes((0.12, below, 0.84, 1 - below - above / height))
        for series, number in zip(figure.series, _places(figure.series), strict=True):
            _draw_series(axes, series, number, language)
        axes.set_title(title, loc="left", fontsize=10.5)
        _label(axes, figure, language)
        left = _left(axes)
        axes.set_position((left, below, 0.96 - left, 1 - below - above / height))
        drop = 0.5 / (height * (1 - below) - above)
        if figure.series:
            axes.legend(loc="upper left", bbox_to_anchor=(-0.02, -drop), ncols=1, borderaxespad=0)
        out = io.BytesIO()
        canvas.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return _finish(out.getvalue(), figure, language)


def _places(series: Sequence[Series]) -> list[int]:
    """Place of each series in the colours: a prediction shares its colour with the measurement it is for.

    The n-th prediction belongs to the n-th measurement where there are as many of both; else each has its own place.
    """
    predicted = [one.predicted for one in series]
    if 2 * sum(predicted) != len(predicted):
        return list(range(len(series)))
    return [predicted[:number].count(kind) for number, kind in enumerate(predicted)]


def _draw_series(axes: Axes, series: Series, number: int, language: str) -> None:
    x = [point.x for point in series.points]
    y = [point.y for point in series.points]
    look: dict[str, Any] = {
        "color": COLOURS[number % len(COLOURS)],
        "label": wrap(both(series.label, language), LABEL_COLUMNS),
    }
    if series.predicted:
        # wide and behind, so that it can still be seen where the measurement lies on it
        axes.plot(x, y, linestyle=(0, (2.2, 1.2)), linewidth=3.2, alpha=0.5, zorder=1.5, **look)
        return
    below = [point.y - point.low if point.low is not None else 0.0 for point in series.points]
    above = [point.high - point.y if point.high is not None else 0.0 for point in series.points]
    spread = [[max(0.0, d) for d in below], [max(0.0, d) for d in above]] if any(below + above) else None
    marker = MARKERS[number % len(MARKERS)]
    axes.errorbar(
        x, y, yerr=spread, linestyle="-", linewidth=1.6, marker=marker, markersize=4.5, capsize=3, **look
    )


def _label(axes: Axes, figure: Figure, language: str) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.set_xlabel(wrap(both(figure.x, language), LABEL_COLUMNS))
    axes.set_ylabel(wrap(both(figure.y, language), Y_LABEL_COLUMNS))
    plain = FuncFormatter(lambda value, _: digits(value, TICK_DIGITS) if abs(value) > TICK_NOISE else "0")
    for axis, scale, name in ((axes.xaxis, figure.x_scale, "x"), (axes.yaxis, figure.y_scale, "y")):
        axis.set_major_formatter(plain)  # no "1e6" in a corner for a reader to multiply by
        if scale == "linear":
            continue
        base = 2 if scale == "log2" else 10
        (axes.set_xscale if name == "x" else axes.set_yscale)("log", base=base)
        axis.set_major_formatter(plain)
        axis.set_minor_formatter(NullFormatter())


def _left(axes: Axes) -> float:
    """Where the plot begins, as a share of the width: the numbers on the y axis and its label fit beside it.

    Counted in characters, not measured: the answer must not depend on the fonts of this machine.
    """
    low, high = sorted(axes.get_ylim())
    shown = [axes.yaxis.get_major_formatter()(tick, 0) for tick in axes.get_yticks() if low <= tick <= high]
    lines = axes.get_ylabel().count("\n") + 1
    needs = DIGIT_IN * max(map(len, shown), default=0) + Y_LABEL_ROW_IN * lines + 0.2
    return float(max(0.12, needs / WIDTH_IN))


def both(text: Text, language: str) -> str:
    """A label in both languages, the page's first; one where they are equal or one is missing."""
    first, second = (text.zh, text.en) if language == "zh" else (text.en, text.zh)
    parts = dict.fromkeys(one_line(part, 120) for part in (first, second) if part.strip())
    return " · ".join(parts)


def _titles(text: Text, language: str) -> str:
    first, second = (text.zh, text.en) if language == "zh" else (text.en, text.zh)
    parts = dict.fromkeys(one_line(part, 240) for part in (first, second) if part.strip())
    return "\n".join(wrap(part, LABEL_COLUMNS) for part in parts)


def wrap(text: str, columns: int) -> str:
    """Break a label into lines of at most ``columns`` columns: at spaces, and anywhere between Chinese characters."""
    lines, width = [""], 0
    for piece in re.findall(r"[\u2e80-\U0003ffff]|[^\u2e80-\U0003ffff\s]+\s*|\s+", text):
        needs = sum(2 if char >= "\u2e80" else 1 for char in piece)
        if width + needs > columns and lines[-1]:
            lines.append("")
            width = 0
        lines[-1] += piece
        width += needs
    return "\n".join(line.rstrip() for line in lines)


@contextmanager
def _quiet() -> Iterator[None]:
    """Chinese is measured without its glyphs on purpose, so that no installed font changes the bytes."""
    import logging

    logger = logging.getLogger("matplotlib.font_manager")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*missing from (?:current )?font.*")
            warnings.filterwarnings(
                "ignore", message=".*(?:no positive values|non-positive|No artists with labels).*"
            )
            yield
    finally:
        logger.setLevel(level)


def _finish(svg: bytes, figure: Figure, language: str) -> bytes:
    """Give the picture a name and a description for readers who cannot see it, and Chinese fonts."""
    from html import escape

    title, alt = (escape(both(text, language)) for text in (figure.title, figure.alt))
    text = svg.decode().replace(FONT, FONTS).replace('"DejaVu Sans"', FONTS)
    text = re.sub(r"<!DOCTYPE.*?>\n?", "", text, count=1, flags=re.DOTALL)
    text = re.sub(r" *<metadata>.*?</metadata>\n?", "", text, count=1, flags=re.DOTALL)
    head = f'role="img" aria-labelledby="t d"><title id="t">{title}</title><desc id="d">{alt}</desc>'
    opened = text.index(">", text.index("<svg"))
    text = f"{text[:opened]} {head}{text[opened + 1 :]}"
    declared = text.index("?>") + 2
    text = f"{text[:declared]}\n<!-- kb:figure {figure_sum(figure)} -->{text[declared:]}"
    return re.sub(r"[ \t]+\n", "\n", text).encode()
