"""A small plot as SVG: what a record costs, and the memory taken, as files grow."""

from __future__ import annotations

from math import log10

from benchmarks.speed.answers import Answer

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 640, 220, 56, 24, 40
_COLORS = {"one process": "#4269d0", "--jobs 2": "#ef7b30"}


def growth_plot(answer: Answer) -> str:
    """Two panels over the number of records, on a logarithmic axis: CPU time a record, and peak memory."""
    panels = [("CPU µs a record", "cpu_us"), ("peak MB of the parent", "peak_mb")]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for number, (title, key) in enumerate(panels):
        parts += _panel(answer, title, key, number * _WIDTH / 2)
    for number, (name, color) in enumerate(_COLORS.items()):
        x = _LEFT + number * 110
        parts.append(f'<rect x="{x}" y="{_HEIGHT - 12}" width="10" height="3" fill="{color}"/>')
        parts.append(f'<text x="{x + 14}" y="{_HEIGHT - 8}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _panel(answer: Answer, title: str, key: str, left: float) -> list[str]:
    # What went through a pipe is one more size of the same way.
    rows = [{**row, "name": row["name"].partition(",")[0]} for row in answer.rows]
    sizes = sorted({row["n_records"] for row in rows})
    highest = max(row[key] for row in rows) * 1.15
    width = _WIDTH / 2 - _LEFT - 24
    spread = log10(sizes[-1] / sizes[0]) or 1.0

    def x(n_records: float) -> float:
        return left + _LEFT + width * (log10(n_records / sizes[0]) / spread)

    def y(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - value / highest)

    parts = [f'<text x="{left + _LEFT}" y="14" font-weight="bold">{title}</text>']
    for value in (0.0, highest / 2, highest):
        line = f'x1="{x(sizes[0]):.0f}" x2="{x(sizes[-1]):.0f}" y1="{y(value):.0f}" y2="{y(value):.0f}"'
        parts.append(f'<line {line} stroke="#dddddd"/>')
        parts.append(f'<text x="{left + _LEFT - 6}" y="{y(value) + 4:.0f}" text-anchor="end">{value:.0f}</text>')
    below = _HEIGHT - _BOTTOM + 14
    parts += [f'<text x="{x(size):.0f}" y="{below}" text-anchor="middle">{size:,}</text>' for size in sizes]
    for name, color in _COLORS.items():
        points = [(x(row["n_records"]), y(row[key])) for row in rows if row["name"] == name]
        line = " ".join(f"{each[0]:.1f},{each[1]:.1f}" for each in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{each[0]:.1f}" cy="{each[1]:.1f}" r="3" fill="{color}"/>' for each in points]
    return parts
