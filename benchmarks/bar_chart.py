"""Bars of a common unit as an SVG, for the pages in `docs/`."""

from __future__ import annotations

from html import escape

from benchmarks.result import BarPlot, Number

_COLOR, _OTHERS = "#1f6feb", "#8c959f"
_FONT = 'font-family="sans-serif" font-size="11"'
_WIDTH, _LEFT, _RIGHT, _TOP, _BAR, _GAP = 640, 210, 90, 34, 18, 8


def bar_chart(plot: BarPlot) -> str:
    """An SVG with one line for each bar, its number beside it; the first bar stands out."""
    height = _TOP + len(plot.bars) * (_BAR + _GAP) + _GAP
    scale = (_WIDTH - _LEFT - _RIGHT) / (max(plot.bars.values(), default=0) or 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" {_FONT}>',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="8" y="18" font-size="13" font-weight="bold">{escape(plot.title)}</text>',
    ]
    for number, (name, value) in enumerate(plot.bars.items()):
        y, width = _TOP + number * (_BAR + _GAP), max(1.0, value * scale)
        middle, color = y + _BAR / 2 + 4, _OTHERS if number else _COLOR
        parts.append(f'<text x="{_LEFT - 8}" y="{middle}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{color}"/>')
        shown = escape(str(Number(float(value), plot.unit)))
        parts.append(f'<text x="{_LEFT + width + 6:.1f}" y="{middle}">{shown}</text>')
    return "\n".join([*parts, "</svg>\n"])
