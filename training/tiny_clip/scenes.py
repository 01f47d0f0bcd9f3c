"""Pictures of one coloured shape each, and what may be said about them. The same seed gives the same scenes."""

from __future__ import annotations

import random
from dataclasses import dataclass
from math import cos, pi, sin

from PIL import Image, ImageDraw

SIDE = 64
COLOURS = {
    "red": (214, 40, 40),
    "green": (40, 160, 70),
    "blue": (40, 80, 210),
    "yellow": (240, 215, 50),
    "orange": (245, 135, 30),
    "purple": (130, 50, 160),
    "black": (20, 20, 20),
    "white": (245, 245, 245),
}
SHAPES = ("circle", "square", "triangle", "star", "cross")
_PLAIN = (
    "{a} {colour} {shape}",
    "{a} {size} {colour} {shape}",
    "a picture of {a} {colour} {shape}",
    "a photo of {a} {size} {colour} {shape}",
    "the image shows {a} {colour} {shape}.",
    "there is {a} {size} {colour} {shape} {place}.",
    "the {shape} is {colour}.",
    "i see {a} {colour} {shape} {place} of the picture.",
)
_FILLERS = (
    "the background is plain.",
    "nothing else can be seen.",
    "it was drawn by a computer.",
    "here is what i found.",
    "please tell me if you need more.",
)


@dataclass(frozen=True)
class Scene:
    """One shape: what it is, where it stands and how large it is."""

    colour: str
    shape: str
    radius: float
    centre: tuple[float, float]
    turn: float
    background: int

    @property
    def label(self) -> str:
        """What the scene is of, which captions agree on."""
        return f"{self.colour} {self.shape}"


def random_scene(chance: random.Random) -> Scene:
    """A scene with a shape that lies within the picture."""
    radius = chance.uniform(9.0, 24.0)
    low, high = radius + 2, SIDE - radius - 2
    return Scene(
        chance.choice(list(COLOURS)),
        chance.choice(SHAPES),
        radius,
        (chance.uniform(low, high), chance.uniform(low, high)),
        chance.uniform(-0.3, 0.3),
        chance.randint(95, 190),
    )


def render(scene: Scene, side: int = SIDE) -> Image.Image:
    """Draw a scene four times too large and scale it down, for smooth edges."""
    scale = 4 * side / SIDE
    picture = Image.new("RGB", (4 * side, 4 * side), (scene.background,) * 3)
    draw = ImageDraw.Draw(picture)
    colour = COLOURS[scene.colour]
    x, y, radius = (scale * each for each in (*scene.centre, scene.radius))
    if scene.shape == "circle":
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)
    elif scene.shape == "cross":
        arm = 0.36
        outline = [(-1, -arm), (-arm, -arm), (-arm, -1), (arm, -1), (arm, -arm), (1, -arm)]
        outline += [(-a, -b) for a, b in outline]
        draw.polygon([_turned(x, y, radius * a, radius * b, scene.turn) for a, b in outline], fill=colour)
    else:
        corners, inner = {"square": (4, 1.0), "triangle": (3, 1.0), "star": (5, 0.42)}[scene.shape]
        points = []
        for step in range(2 * corners):
            if step % 2 and inner == 1.0:
                continue
            reach = radius * (inner if step % 2 else 1.0)
            angle = pi * step / corners - pi / 2 + (pi / 4 if scene.shape == "square" else 0.0)
            points.append(_turned(x, y, reach * cos(angle), reach * sin(angle), scene.turn))
        draw.polygon(points, fill=colour)
    return picture.resize((side, side), Image.Resampling.LANCZOS)


def caption(scene: Scene, chance: random.Random) -> str:
    """Something true about a scene; every eighth caption goes on about nothing, as answers do."""
    words = {
        "a": "an" if scene.colour == "orange" else "a",
        "colour": scene.colour,
        "shape": scene.shape,
        "size": "small" if scene.radius < 16 else "large",
        "place": _place(scene.centre),
    }
    if "{a} {size}" in (template := chance.choice(_PLAIN)):
        words["a"] = "a"
    text = template.format(**words)
    if chance.random() < 0.125:
        fillers = chance.sample(_FILLERS, chance.randint(1, 3))
        text = " ".join([*fillers, text] if chance.random() < 0.5 else [text, *fillers])
    return text


def labels() -> list[str]:
    """Every kind of scene there is."""
    return [f"{colour} {shape}" for colour in COLOURS for shape in SHAPES]


def _place(centre: tuple[float, float]) -> str:
    x, y = centre
    across = "left" if x < SIDE / 2 else "right"
    return f"at the {'top' if y < SIDE / 2 else 'bottom'} {across}"


def _turned(x: float, y: float, dx: float, dy: float, turn: float) -> tuple[float, float]:
    return x + dx * cos(turn) - dy * sin(turn), y + dx * sin(turn) + dy * cos(turn)
