"""A small SVG pen. A drawing is 400 wide, so that it stays legible on a phone, and takes its colours from CSS variables."""
from html import escape

WIDTH = 400

LIGHT = {"ink": "#1c2024", "muted": "#5b6570", "line": "#c3cad1", "soft": "#eef1f4", "paper": "#ffffff",
         "a": "#0072b2", "a-soft": "#cfe5f4", "b": "#b35900", "b-soft": "#fbe0c4", "c": "#00705f", "c-soft": "#c9ece5",
         "d": "#9b2f79", "d-soft": "#f3d5e8"}
DARK = {"ink": "#e8ebee", "muted": "#a3adb7", "line": "#46505a", "soft": "#222930", "paper": "#15191e",
        "a": "#6fc0f5", "a-soft": "#173d57", "b": "#ffae57", "b-soft": "#55330f", "c": "#4fd3bd", "c-soft": "#114840",
        "d": "#f08fd0", "d-soft": "#53214a"}

RULES = """
.drawn text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif;fill:var(--fig-ink)}
.drawn .small{font-size:11.5px}.drawn .strong{font-weight:600}.drawn .mono{font-family:ui-monospace,"DejaVu Sans Mono",monospace;font-size:12px}
.drawn .muted{fill:var(--fig-muted)}.drawn .middle{text-anchor:middle}.drawn .end{text-anchor:end}
.drawn .paper{fill:var(--fig-paper)}.drawn .soft{fill:var(--fig-soft)}.drawn .void{fill:none;stroke:var(--fig-line);stroke-dasharray:3 2}
.drawn .edge{stroke:var(--fig-line)}.drawn .stroke{fill:none;stroke:var(--fig-ink);stroke-width:1.3}
.drawn .rule{stroke:var(--fig-line);fill:none}.drawn .dashed{stroke:var(--fig-muted);stroke-dasharray:5 4;fill:none}
.drawn .curve{fill:none;stroke-width:2.4;stroke-linejoin:round}.drawn .faint{fill:none;stroke:var(--fig-muted);stroke-width:1.6}
.drawn .dots{stroke-dasharray:1.5 4.5;stroke-linecap:round}
""" + "".join(f".drawn .{k}{{fill:var(--fig-{k})}}.drawn .{k}-soft{{fill:var(--fig-{k}-soft)}}.drawn .{k}-line{{stroke:var(--fig-{k});fill:none}}"
              for k in "abcd") + "\n"


def variables(colours):
    return ";".join(f"--fig-{name}:{value}" for name, value in colours.items())


def page_css():
    """For drawings within a page, whose theme is a class of its root element."""
    return f"html{{{variables(LIGHT)}}}\nhtml.dark-mode{{{variables(DARK)}}}\n{RULES}"


FILE_CSS = (f".drawn{{{variables(LIGHT)}}}@media (prefers-color-scheme:dark){{.drawn{{{variables(DARK)}}}}}" + RULES).replace("\n", "")


def num(v):
    return f"{v:.1f}".rstrip("0").rstrip(".")


class Drawing:
    """`title` says in one sentence what the picture shows, for those who do not see it."""

    def __init__(self, title, height):
        self.title, self.height, self.parts = title, height, []

    def add(self, tag, cls, content=None, **attributes):
        words = "".join(f' {k.replace("_", "-")}="{num(v) if isinstance(v, (int, float)) else escape(v)}"' for k, v in attributes.items())
        self.parts.append(f'<{tag} class="{cls}"{words}' + ("/>" if content is None else f">{escape(content, quote=False)}</{tag}>"))

    def text(self, x, y, content, cls=""):
        self.add("text", cls, content, x=x, y=y)

    def box(self, x, y, width, height, cls="soft edge", radius=3):
        self.add("rect", cls, x=x, y=y, width=width, height=height, rx=radius)

    def line(self, points, cls="stroke"):
        self.add("path", cls, d="M" + "L".join(f"{num(x)} {num(y)}" for x, y in points))

    def arrow(self, x1, y, x2, cls="stroke", thick=1.3):
        """Level; `cls` must set stroke."""
        tip = 6 if x2 > x1 else -6
        self.add("path", cls, d=f"M{num(x1)} {num(y)}H{num(x2)}m{-tip} -4l{tip} 4l{-tip} 4", stroke_width=thick)

    def down(self, x, y1, y2, cls="stroke"):
        self.add("path", cls, d=f"M{num(x)} {num(y1)}V{num(y2)}m-4 -6l4 6l4 -6")

    def _svg(self, style, background):
        body = "\n".join(self.parts)
        return (f'<svg class="drawn" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {num(self.height)}" role="img" aria-label="{escape(self.title)}">'
                f"{style}\n{background}{body}\n</svg>\n")

    def file(self):
        """A picture that stands alone: it follows the reader's colour scheme and has paper of its own."""
        paper = f'<rect class="paper" width="{WIDTH}" height="{num(self.height)}" rx="6"/>\n'
        return self._svg(f"<style>{FILE_CSS}</style>", paper)

    def inline(self):
        return self._svg("", "")
