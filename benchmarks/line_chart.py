"""Lines over a common axis as an SVG, for the pages in `docs/`."""

from __future__ import annotations

from html import escape

from benchmarks.result import LinePlot

_COLORS = ("#1f6feb", "#d1242f", "#1a7f37")
_FONT = 'font-family="sans-serif" font-size="11"'
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 640, 260, 64, 34, 40


def line_chart(plot: LinePlot) -> str:
    """An SVG; both axes begin at zero."""
    right = max((x for points in plot.lines.values() for x, _ in points), default=0) or 1
    top = (max((y for points in plot.lines.values() for _, y in points), default=0) or 1) * 1.05
    plot_width, plot_height = _WIDTH - _LEFT - 20, _HEIGHT - _TOP - _BOTTOM

    def at(x: float, y: float) -> str:
        return f"{_LEFT + x / right * plot_width:.1f},{_TOP + plot_height - y / top * plot_height:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" {_FONT}>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="18" font-size="13" font-weight="bold">{escape(plot.title)}</text>',
    ]
    for step in range(5):
        x, y = right * step / 4, top * step / 4
        x_at, y_at = at(x, 0).split(",")[0], at(0, y).split(",")[1]
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - 20}" y1="{y_at}" y2="{y_at}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y_at}" dy="4" text-anchor="end">{y:,.4g}</text>')
        parts.append(f'<text x="{x_at}" y="{_HEIGHT - 22}" text-anchor="middle">{x:,.0f}</text>')
    for number, (name, points) in enumerate(plot.lines.items()):
        color = _COLORS[number % len(_COLORS)]
        path = " ".join(at(x, y) for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts.append(f'<text x="{_LEFT + 10 + 170 * number}" y="{_TOP + 10}" fill="{color}">{escape(name)}</text>')
    parts.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 6}" text-anchor="middle">{escape(plot.x_label)}</text>')
    parts.append(
        f'<text transform="translate(12 {_HEIGHT / 2}) rotate(-90)" text-anchor="middle">{escape(plot.y_label)}</text>'
    )
    return "\n".join([*parts, "</svg>\n"])
