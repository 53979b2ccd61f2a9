#!/usr/bin/env python3
"""Writes what Doxygen makes the book of: a page for each chapter, the front page with its map, style, and configuration.

    docs/book/pages.py OUT --questions build/bin/questions --html docs/html
    doxygen OUT/book.doxyfile

Pages are the Markdown files of the repository, fitted to Doxygen: links between files become links between pages, drawings
and formulas become part of the page, and a chapter gets its kernel, its quiz and its neighbours.
"""
import argparse
import html
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import doxygen_awesome_css  # noqa: E402
from latex2mathml.converter import convert as mathml  # noqa: E402

import drawing  # noqa: E402
import figures  # noqa: E402
from stages import ROOT, best_fraction, stages  # noqa: E402

# Chapters beside those of the stages: file, label of the page, what the navigation calls it.
CHAPTERS = (("docs/bytes.md", "bytes", "The byte model"),
            ("docs/numerics.md", "numerics", "Numerics"),
            ("docs/simulator.md", "simulator", "The simulator"),
            ("docs/benchmarking.md", "benchmarking", "Benchmarking honestly"),
            ("docs/amd.md", "amd", "AMD and 64 lanes"),
            ("docs/takeaway.md", "takeaway", "What to take away"))
APPENDIX = (("docs/words.md", "words", "Glossary"),
            ("docs/reading.md", "reading", "Further reading"))
NEEDS = {"takeaway": "common/softmax.hpp"}  # a chapter that waits for a file


@dataclass(frozen=True)
class Page:
    source: Path
    label: str
    title: str


def chapters(table):
    return [Page(ROOT / file, label, title) for file, label, title in table
            if (ROOT / file).exists() and (ROOT / NEEDS.get(label, file)).exists()]


def stage_pages():
    return [Page(s.folder / "README.md", s.page, f"{s.number} {s.name}") for s in stages()]


def all_pages():
    return [Page(ROOT / "docs/mainpage.md", "index", "The map"), *stage_pages(), *chapters(CHAPTERS), *chapters(APPENDIX)]


def raw(text, inline=False):
    """HTML that Doxygen hands on untouched."""
    return f"\\htmlonly {text}\\endhtmlonly" if inline else f"\n\\htmlonly[block]\n{text}\n\\endhtmlonly\n"


def slug(heading):
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def figure(alt, path):
    """A drawing within the page, so that it follows the theme; its caption is the text for those who do not see it."""
    name = path.stem
    drawn = figures.all_figures()[name]
    return raw(f'<figure class="drawing">{drawn.inline()}<figcaption>{html.escape(alt, quote=False)}</figcaption></figure>')


def diff_html(lines):
    kinds = {"+": "added", "-": "removed", "@": "place"}
    spans = "".join(f'<span class="{kinds.get(line[:1], "same")}">{html.escape(line, quote=False) or " "}</span>' for line in lines)
    return raw(f'<pre class="diff" tabindex="0" aria-label="Changed lines">{spans}</pre>')


class Converter:
    """One Markdown file on its way to Doxygen."""

    def __init__(self, page, labels):
        self.page, self.labels = page, labels

    def link(self, m):
        text, target = m[1], m[2]
        if re.match(r"https?:", target):
            return m[0]
        path, _, fragment = target.partition("#")
        file = (self.page.source.parent / path).resolve() if path else self.page.source
        label = self.labels.get(file)
        if label is None:
            return text  # a file that is no page of the book
        return f"[{text}](@ref {label}{'-' + fragment if fragment else ''})"

    def inline(self, line):
        image = re.fullmatch(r"!\[([^\]]*)\]\(([^)]*\.svg)\)", line.strip())
        if image:
            return figure(image[1], Path(image[2]))
        line = re.sub(r"\*\*(`[^`]+`)\*\*", r"<b>\1</b>", line)  # which Doxygen does not see
        parts = re.split(r"(\$`[^`]+`\$)", line)
        for i, part in enumerate(parts):
            if part.startswith("$`"):
                parts[i] = raw(mathml(part[2:-2]), inline=True)
        line = "".join(parts)
        return re.sub(r"(?<!!)\[((?:`[^`]*`|[^\]`])+)\]\(([^)\s]+)\)", self.link, line)

    def heading(self, line):
        level, title = re.fullmatch(r"(#+) (.*)", line).groups()
        if self.page.label == "index":  # Doxygen names the main page itself, and its headings are no places to go to
            return line if level == "#" else f"<h2>{title}</h2>"
        label = self.page.label if level == "#" else f"{self.page.label}-{slug(title)}"
        return f"{level} {title} {{#{label}}}"

    def convert(self, text):
        out, lines = [], iter(text.splitlines())
        for line in lines:
            if line.startswith("```"):
                kind, body = line[3:].strip(), []
                for inner in lines:
                    if inner.startswith("```"):
                        break
                    body.append(inner)
                if kind == "math":
                    # Formulas side by side may stand one below the other on a phone.
                    parts = "".join(f"<span>{mathml(part, display='block')}</span>" for part in " ".join(body).split("\\qquad"))
                    out.append(raw(f'<div class="formula">{parts}</div>'))
                elif kind == "diff":
                    out.append(diff_html(body))
                else:
                    out.append("\n".join(["```" + (kind or "{.unparsed}"), *body, "```"]))
            elif re.fullmatch(r"<!--.*-->", line):
                out.append("")  # marks of generated parts
            elif line.startswith("#"):
                out.append(self.heading(line))
            else:
                out.append(self.inline(line))
        return "\n".join(out) + "\n"


def add_to_section(text, title, addition, before="## Exercise"):
    """Where the section has `<!-- title -->`, else at its end. It is made, ahead of another, where a chapter lacks it."""
    mark = f"<!-- {title.split()[-1].lower()} -->\n"
    if mark in text:
        return text.replace(mark, f"\n{addition}\n")
    start = re.search(rf"^## {re.escape(title)}$", text, re.M)
    if not start:
        at = text.find(f"\n{before}\n")
        at = len(text) if at < 0 else at + 1
        return text[:at] + f"## {title}\n\n{addition}\n\n" + text[at:]
    following = re.search(r"^## ", text[start.end():], re.M)
    at = start.end() + following.start() if following else len(text)
    return text[:at].rstrip() + f"\n\n{addition}\n\n" + text[at:]


def kernel_part(stage):
    """The kernel, from the file that is built."""
    file = f"{stage.folder.name}/kernel.cuh"
    first = raw(f'<p>What stands below a comment <code>exercise</code> is yours to write, <a href="#{stage.page}-exercise">if you like to '
                "try first</a>.</p>")
    folded = lambda name, title: (raw(f"<details><summary>{title}</summary>") + f"\n\\include{{lineno}} {stage.folder.name}/{name}\n" +
                                  raw("</details>"))
    others = "".join(folded(p.name, f"Its part <code>{p.name}</code>") for p in stage.parts)
    if not stage.has_quotation:
        return f"{first}\n\\include{{lineno}} {file}\n{others}"
    whole = folded("kernel.cuh", "The whole file <code>kernel.cuh</code>, with its launcher")
    return f"{first}\n\\snippet{{lineno}} {file} kernel\n{whole}{others}"


def quiz_part(stage, program):
    """The questions as the program `questions` knows them; a question that reads alike for all GPUs is kept once."""
    found = json.loads(subprocess.run([program, stage.number], capture_output=True, text=True, check=True).stdout)
    gpus = found["gpus"]
    questions = []
    for asked in zip(*(g["questions"] for g in gpus)):
        alike = all(q == asked[0] for q in asked)
        questions.append({"all": asked[0]} if alike else {g["key"]: q for g, q in zip(gpus, asked)})
    data = {"stage": stage.number, "gpus": [{"key": g["key"], "name": g["name"]} for g in gpus], "questions": questions}
    text = json.dumps(data, ensure_ascii=False).replace("</", "<\\/")
    return raw(f'<div class="quiz" id="quiz-{stage.number}"><script type="application/json">{text}</script>'
               f"<noscript><p>The questions need JavaScript here; <code>make quiz-{stage.number}</code> asks them in a terminal.</p></noscript></div>")


def neighbours(pages, page):
    """Back, up to the map, and on."""
    at = pages.index(page)
    link = lambda other, cls, text: f'<a class="{cls}" href="{other.label}.html">{html.escape(text)}</a>' if other else f'<span class="{cls}"></span>'
    before, after = pages[at - 1] if at > 1 else None, pages[at + 1] if at + 1 < len(pages) else None
    return raw('<nav class="onward" aria-label="Chapters">' + link(before, "back", f"← {before.title}" if before else "") +
               '<a class="up" href="index.html">the map</a>' + link(after, "next", f"{after.title} →" if after else "") + "</nav>")


# --- the map

def lanes():
    """(stage, lane, parent) of each stage, laid out as a history: a stage goes on in the lane of what it builds on, if it
    follows it directly, else it gets a lane of its own."""
    placed = []
    for i, s in enumerate(stages()):
        if s.before is None:
            lane = 0
        elif i and stages()[i - 1] == s.before:
            lane = placed[-1][1]
        else:
            lane = max(at for _, at, _ in placed) + 1
        placed.append((s, lane, s.before))
    return placed


def rail(placed, row):
    """The piece of the drawn path beside one stage: 100 high, stretched to the height of its card."""
    step, left, middle = 22, 16, 50
    at = lambda lane: left + step * lane
    stage, lane, parent = placed[row]
    index = {s: i for i, (s, _, _) in enumerate(placed)}
    pieces = []
    for child, (s, child_lane, before) in enumerate(placed):
        if before is None:
            continue
        start = index[before]
        if start == row:
            x1, x2 = at(placed[start][1]), at(child_lane)
            pieces.append(f"M{x1} {middle}" + (f"V100" if x1 == x2 else f"C{x1} 85 {x2} 65 {x2} 100"))
        elif start < row < child:
            pieces.append(f"M{at(child_lane)} 0V100")
        elif row == child:
            pieces.append(f"M{at(child_lane)} 0V{middle}")
    width = left * 2 + step * max(lane for _, lane, _ in placed)
    path = "".join(f'<path d="{p}" vector-effect="non-scaling-stroke"/>' for p in pieces)
    dot = f'<span class="dot" style="left:{at(lane)}px">{stage.number}</span>'
    return (f'<span class="rail" style="width:{width}px" aria-hidden="true"><svg viewBox="0 0 {width} 100" preserveAspectRatio="none" '
            f'width="{width}">{path}</svg>{dot}</span>')


def stage_map():
    placed = lanes()
    cards = []
    for row, (s, _, before) in enumerate(placed):
        best = best_fraction(s)
        builds = f'builds on <a href="{before.page}.html">{before.number}</a>' if before else "where it starts"
        fraction = (f'<span class="bar" style="--share:{min(best[0], 1):.3f}"></span><span class="best"><strong>{best[0]:.2f}</strong> of a copy, '
                    f"at {best[1]} columns</span>") if best else '<span class="best">not measured yet</span>'
        cards.append(
            f'<li>{rail(placed, row)}<div class="card"><a class="name" href="{s.page}.html">{s.number} {html.escape(s.name)}</a>'
            f'<p>{html.escape(s.idea)}</p><p class="bytes">reads {s.together.reads}, writes {s.together.writes}</p>'
            f'<p class="fraction">{fraction}</p><p class="links"><a href="{s.page}.html#{s.page}-exercise">exercise</a> · '
            f'<a href="{s.page}.html#quiz-{s.number}">quiz</a> <span class="score" data-stage="{s.number}"></span> · {builds}</p></div></li>')
    return raw('<ol class="map">' + "".join(cards) + "</ol>")


# --- everything around the pages

def navigation(reference):
    user = lambda p: f'<tab type="user" url="@ref {p.label}" title="{html.escape(p.title)}"/>'
    group = lambda title, pages: f'<tab type="usergroup" url="@ref {pages[0].label}" title="{title}">' + "".join(map(user, pages)) + "</tab>"
    tabs = ['<tab type="mainpage" visible="yes" title="The map"/>', group("Stages", stage_pages()), group("Chapters", chapters(CHAPTERS)),
            *map(user, chapters(APPENDIX))]
    if reference:
        tabs.append('<tab type="usergroup" title="Reference"><tab type="filelist" visible="yes" title="Headers"/>'
                    '<tab type="classlist" visible="yes" title="Types"/><tab type="namespacemembers" visible="yes" title="All names"/></tab>')
    return "<navindex>" + "".join(tabs) + "</navindex>"


def doxygen(*arguments, cwd):
    subprocess.run(["doxygen", *arguments], check=True, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


SCRIPTS = ("doxygen-awesome-darkmode-toggle.js", "doxygen-awesome-fragment-copy-button.js", "doxygen-awesome-paragraph-link.js",
           "doxygen-awesome-interactive-toc.js")
STYLES = ("doxygen-awesome.css", "doxygen-awesome-sidebar-only.css", "doxygen-awesome-sidebar-only-darkmode-toggle.css")
START = "".join(f"DoxygenAwesome{part}.init();" for part in ("DarkModeToggle", "FragmentCopyButton", "ParagraphLink", "InteractiveToc"))


def write_frame(out, html_folder, version):
    """Header, navigation, style and configuration."""
    theme = Path(doxygen_awesome_css.__file__).parent
    for name in (*SCRIPTS, *STYLES):
        shutil.copy(theme / name, out / name)
    for name in ("quiz.js", "book.css"):
        shutil.copy(HERE / name, out / name)
    (out / "drawings.css").write_text(drawing.page_css())
    doxygen("-w", "html", "header.html", "footer.html", "unused.css", cwd=out)
    scripts = "".join(f'<script type="text/javascript" src="$relpath^{name}"></script>\n' for name in (*SCRIPTS, "quiz.js"))
    header = (out / "header.html").read_text()
    header = header.replace("</head>", f'{scripts}<script type="text/javascript">{START}</script>\n<link rel="icon" href="data:,">\n</head>')
    (out / "header.html").write_text(header.replace("<html ", '<html lang="en" ') if " lang=" not in header else header)
    doxygen("-l", "layout.xml", cwd=out)
    layout = re.sub(r"<navindex>.*?</navindex>", lambda _: navigation(True), (out / "layout.xml").read_text(), flags=re.S)
    (out / "layout.xml").write_text(layout)
    quote = lambda path: f'"{path}"'
    settings = {
        "INPUT": quote(out / "pages") + " common",
        "EXAMPLE_PATH": "stages",
        "OUTPUT_DIRECTORY": quote(out),
        "HTML_OUTPUT": quote(html_folder),
        "HTML_HEADER": quote(out / "header.html"),
        "HTML_FOOTER": quote(out / "footer.html"),
        "HTML_EXTRA_STYLESHEET": " ".join(quote(out / name) for name in (*STYLES, "drawings.css", "book.css")),
        "HTML_EXTRA_FILES": " ".join(quote(out / name) for name in (*SCRIPTS, "quiz.js")),
        "LAYOUT_FILE": quote(out / "layout.xml"),
        "USE_MDFILE_AS_MAINPAGE": quote(out / "pages" / "index.md"),
    }
    if version >= (1, 9, 5):
        settings["HTML_COLORSTYLE"] = "LIGHT"  # the theme has the dark one
    if version >= (1, 10):
        settings["HTML_CODE_FOLDING"] = "NO"
    lines = ["# Written by docs/book/pages.py.", "@INCLUDE = docs/Doxyfile", *(f"{k} = {v}" for k, v in settings.items())]
    (out / "book.doxyfile").write_text("\n".join(lines) + "\n")


def write_pages(out, questions):
    folder = out / "pages"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pages = all_pages()
    labels = {p.source.resolve(): p.label for p in pages}
    by_page = {s.page: s for s in stages()}
    for page in pages:
        text = page.source.read_text()
        converter = Converter(page, labels)
        if page.label == "index":
            text = converter.convert(text.replace("<!-- map -->", "@MAP@")).replace("@MAP@", stage_map())
        else:
            stage = by_page.get(page.label)
            if stage:
                text = re.sub(r"^Next: .*\n", "", text, flags=re.M)  # the page has its own links onward
                text = add_to_section(text, "The kernel", "@KERNEL@")
                if stage.before and "## What changed" not in text:
                    text = add_to_section(text, "What changed", "```diff\n" + "\n".join(stage.diff()) + "\n```")
                text = add_to_section(text, "Quiz", "@QUIZ@", before="")
            text = converter.convert(text)
            if stage:
                text = text.replace("@KERNEL@", kernel_part(stage)).replace("@QUIZ@", quiz_part(stage, questions))
            title, _, rest = text.partition("\n")
            onward = neighbours(pages, page)
            text = f"{title}\n{onward}\n[TOC]\n{rest}\n{onward}"
        (folder / f"{page.label}.md").write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder for what Doxygen reads")
    parser.add_argument("--questions", type=Path, required=True, help="the program that knows the quizzes")
    parser.add_argument("--html", type=Path, required=True, help="folder for the book")
    args = parser.parse_args()
    out = args.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    version = tuple(int(n) for n in re.findall(r"\d+", subprocess.run(["doxygen", "--version"], capture_output=True, text=True, check=True).stdout)[:3])
    os.chdir(ROOT)
    write_pages(out, args.questions.resolve())
    write_frame(out, args.html.resolve(), version)
    return 0


if __name__ == "__main__":
    sys.exit(main())
