"""A figure is the same bytes everywhere, readable as text, and says which line was predicted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from kb.model import Point, Series, Text
from kb.publish.figures import COLOURS, INK, PAPER, draw, is_drawn, wrap

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def figure(shelf):
    return shelf.figure()


@pytest.fixture
def root(figure):
    return ET.fromstring(draw(figure, "zh"))


def texts(root) -> list[str]:
    return ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]


def test_the_same_record_gives_the_same_bytes_in_another_process(figure, tmp_path):
    path = tmp_path / "figure.json"
    path.write_text(figure.model_dump_json())
    program = (
        "import sys; from kb.model import Figure; from kb.publish.figures import draw;"
        "sys.stdout.buffer.write(draw(Figure.model_validate_json(open(sys.argv[1]).read()), 'zh'))"
    )
    other = {**os.environ, "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], env=other, capture_output=True, check=True
    )
    assert done.stdout == draw(figure, "zh")


def test_the_settings_of_the_caller_change_no_byte(figure):
    import matplotlib as mpl

    plain = draw(figure, "zh")
    with mpl.rc_context({"font.size": 30, "axes.grid": False, "svg.fonttype": "path"}):
        assert draw(figure, "zh") == plain
        assert mpl.rcParams["font.size"] == 30


def test_text_is_text_in_both_languages(root):
    found = texts(root)
    assert "每页 token 数 · tokens per page" in found
    assert "均匀保留 · uniform" in found
    assert "页越大归还越少" in found
    assert "Larger pages give less back" in found


def test_a_reader_who_cannot_see_it_gets_a_name_and_a_description(root):
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title").text == "页越大归还越少 · Larger pages give less back"
    assert root.find(f"{SVG}desc").text == "归还占比从 0.9 降到 0.185 · from 0.9 down to 0.185"


def test_predictions_are_dashed_and_measurements_solid_with_intervals(figure):
    def dashes(series: Series) -> int:
        one = figure.model_copy(update={"series": (series,)})
        # grid lines are solid; a dashed line and its place in the legend are the only dashes
        return draw(one, "zh").count(b"stroke-dasharray")

    measured, predicted = figure.series
    assert (dashes(measured), dashes(predicted)) == (0, 2)
    assert draw(figure, "zh").count(b"LineCollection") == 2, "error bars on the line and in the legend"


def test_it_is_legible_on_a_light_and_a_dark_page(root):
    """The ground is opaque, and every colour stands out from it by WCAG's 4.5 (text) or 3 (lines)."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for colour in (INK, *COLOURS):
        assert (luminance(PAPER) + 0.05) / (luminance(colour) + 0.05) >= 4.5, colour
    ground = root.find(f".//{SVG}g[@id='patch_1']/{SVG}path")
    assert PAPER in ground.get("style")


def test_only_another_record_makes_a_picture_stale(figure):
    svg = draw(figure, "zh")
    assert is_drawn(figure, svg)
    assert not is_drawn(figure.model_copy(update={"x_scale": "log"}), svg)
    assert not is_drawn(figure, b"<svg/>")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"series": ()}, id="no series"),
        pytest.param({"series": (Series(label=Text(), points=()),)}, id="no points"),
        pytest.param(
            {"y_scale": "log", "series": (Series(label=Text(zh="零"), points=(Point(x=0, y=0),)),)},
            id="zero on a log axis",
        ),
        pytest.param(
            {"series": (Series(label=Text(zh="宽"), points=(Point(x=1, y=2, low=3, high=1),)),)},
            id="interval beside its point",
        ),
        pytest.param({"title": Text(zh="很长的题目" * 40, en="a long title " * 20)}, id="long title"),
        pytest.param({"y": Text(zh="很长的轴名" * 20)}, id="long axis label"),
    ],
)
def test_an_odd_record_is_still_drawn(figure, change):
    ET.fromstring(draw(figure.model_copy(update=change), "en"))


def test_long_labels_break_at_spaces_and_between_chinese_characters():
    assert wrap("中文中文中文", 8) == "中文中文\n中文"
    assert wrap("one two three", 8) == "one two\nthree"
    assert max(map(len, wrap("页 token 数 per page " * 9, 40).split("\n"))) <= 40


def test_a_large_axis_is_written_out_without_a_factor_in_a_corner(shelf):
    points = tuple(Point(x=x, y=1e6 * x) for x in (0, 1, 2))
    figure = shelf.figure("large", x_scale="linear", series=(Series(label=Text(en="a"), points=points),))
    said = texts(ET.fromstring(draw(figure, "zh")))
    assert {"0", "1,000,000", "2,000,000"} <= set(said)
    assert not [text for text in said if "e+" in text or text == "1e6"]


def test_long_numbers_leave_room_for_the_label_beside_them(figure):
    """The y label of a figure with seven-digit ticks stays inside the picture."""
    wide = figure.model_copy(
        update={
            "series": (
                Series(label=Text(zh="甲", en="a"), points=(Point(x=1, y=600_000), Point(x=2, y=1_250_000))),
            )
        }
    )
    svg = draw(wide, "zh").decode()
    turned = [float(x) for x in re.findall(r"rotate\(-90 ([\d.]+)", svg)]
    assert turned
    assert min(turned) > 10
    assert draw(wide, "zh") == draw(wide, "zh")
