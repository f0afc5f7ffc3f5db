"""Draws charts of validation loss for the documentation: panels below each other, with a legend at the bottom."""

import math

PANEL = 300  # height of one panel
LEFT, RIGHT, TOP, BOTTOM = 60, 820, 30, 260  # the area of its curves
WIDTH = RIGHT + 20


def ticks(low, high, about=5):
    """Returns round values between `low` and `high`."""
    rough = (high - low) / about
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= rough)
    return [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def panel(curves, title, offset, goal=None):
    """`curves`: (label, colour, dash, [(x, loss)]). The scale ignores the first quarter of a curve, where losses fall steeply."""
    right = max(x for *_, points in curves for x, _ in points)
    shown = [y for *_, points in curves for _, y in points[len(points) // 4:]]
    low, high = min(shown), max(max(shown), min(shown) + 0.01)

    def x_of(x):
        return LEFT + (RIGHT - LEFT) * x / right

    def y_of(y):
        return BOTTOM - (BOTTOM - TOP) * (y - low) / (high - low)

    svg = f'<g transform="translate(0,{offset})"><text x="{LEFT}" y="16" font-weight="600">validation loss against {title}</text>'
    for y in ticks(low, high):
        svg += (f'<line x1="{LEFT}" x2="{RIGHT}" y1="{y_of(y):.1f}" y2="{y_of(y):.1f}" stroke="#eeeeee"/>'
                f'<text x="{LEFT - 8}" y="{y_of(y) + 4:.1f}" text-anchor="end" fill="#555555">{y:.3g}</text>')
    for x in ticks(0, right):
        shown_x = f"{x / 1e6:g}M" if right >= 1e6 else f"{x:g}"
        svg += f'<text x="{x_of(x):.1f}" y="{BOTTOM + 18}" text-anchor="middle" fill="#555555">{shown_x}</text>'
    if goal is not None:
        svg += f'<line x1="{LEFT}" x2="{RIGHT}" y1="{y_of(goal):.1f}" y2="{y_of(goal):.1f}" stroke="#999999"/>'
    for label, colour, dash, points in curves:
        line = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in points if y <= high)
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        svg += (f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.6"{dashes}>'
                f"<title>{label}</title></polyline>")
    return svg + "</g>"


def draw(path, panels, legend, note=""):
    """`legend`: (text, colour); `note`: a line below it."""
    foot = PANEL * len(panels) + 12
    words = "".join(f'<text x="{LEFT + 100 * i}" y="{foot}" fill="{colour}">{text}</text>'
                    for i, (text, colour) in enumerate(legend))
    if note:
        foot += 18
        words += f'<text x="{LEFT}" y="{foot}" fill="#555555">{note}</text>'
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {foot + 14}" font-family="sans-serif" '
                    f'font-size="12"><rect width="100%" height="100%" fill="white"/>' + "".join(panels) + words + "</svg>\n")
