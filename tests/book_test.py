#!/usr/bin/env python3
"""The book in docs/html says what the sources say: no dead link, nothing from outside, and every quoted line, change, number,
drawing and question as it stands in the repository. In a browser, where there is one, every page is opened.

Run by `make check-docs`, after `make docs`, as: book_test.py --bin BIN_FOLDER. Reads the pages and the sources by itself, and uses
nothing of docs/book/.
"""
import argparse
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlparse

sys.path.insert(0, str(Path(__file__).resolve().parent))
from browser import Browser, find_browser  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--bin", type=Path, default=Path("build/bin"))
parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
parser.add_argument("--html", type=Path)
OPTIONS, REST = parser.parse_known_args()
ROOT, BIN = OPTIONS.root.resolve(), OPTIONS.bin.resolve()
HTML = (OPTIONS.html or ROOT / "docs" / "html").resolve()
STAGES = sorted(p.parent for p in ROOT.glob("stages/[0-9][0-9]_*/README.md") if p.read_text().strip())
PARTS = ["The idea", "The bytes", "The kernel", "What changed", "Measured", "The profile", "Pitfalls", "Exercise", "Quiz"]


def number(stage):
    return stage.name[:2]


def builds_on(stage):
    declared = dict(re.findall(r"softmax_add_stage\((\S+)[^)]*BUILDS_ON (\w+)", (ROOT / "stages/CMakeLists.txt").read_text()))
    at = STAGES.index(stage)
    return ROOT / "stages" / declared[stage.name] if stage.name in declared else STAGES[at - 1] if at else None


def kernel_lines(stage):
    """Without the marks of quotations, which are no part of a change."""
    return [line for line in (stage / "kernel.cuh").read_text().splitlines() if not line.startswith("//! [")]


class Page(HTMLParser):
    """Links, ids and texts of a page."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.path, self.ids, self.links, self.loads = path, set(), [], []
        self.text = path.read_text()
        self.feed(self.text)

    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        self.ids.update(a[k] for k in ("id", "name") if a.get(k))
        if tag == "a" and a.get("href"):
            self.links.append(a["href"])
        elif tag == "link" and a.get("href"):
            self.loads.append(a["href"])
        elif a.get("src"):
            self.loads.append(a["src"])


PAGES = {p.name: Page(p) for p in sorted(HTML.glob("*.html"))}


def page(stage):
    return PAGES[f"stage{number(stage)}.html"].text


def plain(fragment):
    return html.unescape(re.sub(r"<[^>]*>", "", fragment))


def section(text, title):
    """From a heading to the next one of its level."""
    parts = re.split(r"(?=<h1[ >])", text)
    return next(p for p in parts if plain(p.split("</h1>")[0]).strip() == title)


def listing(fragment):
    """Lines of a listing, without their numbers."""
    lines = re.findall(r'<div class="line">(.*?)</div>', fragment, re.S)
    return [plain(re.sub(r'<span class="lineno">.*?</span>|<a id="[^"]*"[^>]*></a>', "", line)).rstrip() for line in lines]


def table_rows(fragment):
    return [[plain(c).strip() for c in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.S)]
            for row in re.findall(r"<tr[^>]*>(.*?)</tr>", fragment, re.S)]


class Links(unittest.TestCase):
    def test_there_is_a_book(self):
        wanted = {"index.html", *(f"stage{number(s)}.html" for s in STAGES)}
        self.assertFalse(wanted - set(PAGES), "these pages are missing: run make docs")

    def test_no_dead_link(self):
        for p in PAGES.values():
            for link in p.links + p.loads:
                url = urlparse(link)
                if url.scheme in ("http", "https", "data", "javascript"):
                    continue
                self.assertEqual(url.scheme, "", f"{p.path.name}: {link}")
                target = unquote(url.path) or p.path.name
                self.assertTrue((HTML / target).exists(), f"{p.path.name}: {link}")
                if url.fragment and target in PAGES:
                    self.assertIn(unquote(url.fragment), PAGES[target].ids, f"{p.path.name}: {link}")

    def test_nothing_is_loaded_from_outside(self):
        for p in PAGES.values():
            for link in p.loads:
                self.assertNotRegex(link, r"^(https?:)?//", p.path.name)
        for style in HTML.glob("*.css"):
            self.assertNotRegex(style.read_text(), r"(?i)(@import|url\()\s*[\"']?(https?:)?//", style.name)

    def test_the_navigation_leads_somewhere(self):
        for script in set(HTML.glob("*.js")) - set(HTML.glob("navtreeindex*.js")):  # an index of pages, not links
            for target in re.findall(r'"([\w-]+\.html)(?:#([\w-]*))?"', script.read_text()):
                self.assertTrue(target[0] in PAGES, f"{script.name}: {target[0]}")

    def test_each_stage_leads_on_and_back(self):
        for at, stage in enumerate(STAGES):
            onward = re.search(r'<nav class="onward".*?</nav>', page(stage), re.S)[0]
            self.assertIn('href="index.html"', onward)
            for other in (STAGES[at - 1] if at else None, STAGES[at + 1] if at + 1 < len(STAGES) else None):
                if other:
                    self.assertIn(f'href="stage{number(other)}.html"', onward)
            self.assertIn(f'href="stage{number(stage)}.html"', PAGES["index.html"].text)


class Chapters(unittest.TestCase):
    def test_parts(self):
        for stage in STAGES:
            titles = [plain(t).strip() for t in re.findall(r"<h1[^>]*>(.*?)</h1>", page(stage), re.S)]
            wanted = [p for p in PARTS if p != "What changed" or builds_on(stage)]
            self.assertEqual([t for t in titles if t in PARTS], wanted, stage.name)
            self.assertIn("<svg", section(page(stage), "The idea"), stage.name)

    def test_the_kernel_is_that_of_the_file(self):
        for stage in STAGES:
            source = [line.rstrip() for line in (stage / "kernel.cuh").read_text().splitlines()]
            listings = [listing(f) for f in re.findall(r'<div class="fragment">(.*?)</div><!-- fragment -->', section(page(stage), "The kernel"), re.S)]
            self.assertEqual([line for line in listings["//! [kernel]" in source] if line], [line for line in source if line], stage.name)
            if "//! [kernel]" in source:
                first, last = (i for i, line in enumerate(source) if line == "//! [kernel]")
                self.assertEqual([line for line in listings[0] if line], [line for line in source[first + 1:last] if line], stage.name)

    def test_the_change_leads_from_one_kernel_to_the_other(self):
        for stage in filter(builds_on, STAGES):
            shown = re.search(r'<pre class="diff".*?</pre>', section(page(stage), "What changed"), re.S)[0]
            lines = [html.unescape(line) for line in re.findall(r'<span class="\w+">(.*?)</span>', shown, re.S)]
            old, new, at = kernel_lines(builds_on(stage)), [], 0
            for line in lines:
                place = re.match(r"@@ -(\d+)(?:,(\d+))? ", line)
                if place:
                    begin = int(place[1]) - (place[2] != "0")
                    new += old[at:begin]
                    at = begin
                elif line.startswith("+"):
                    new.append(line[1:])
                else:
                    self.assertEqual(line[1:], old[at], stage.name)
                    new += [line[1:]] if line[:1] == " " else []
                    at += 1
            self.assertEqual(new + old[at:], kernel_lines(stage), stage.name)

    def test_the_page_shows_every_table_of_the_chapter(self):
        for document, name in [(s / "README.md", f"stage{number(s)}.html") for s in STAGES] + \
                [(ROOT / "docs" / f"{n}.md", f"{n}.html") for n in ("bytes", "numerics", "simulator", "benchmarking", "amd", "words", "reading")]:
            bare = lambda cell: re.sub(r"\s+", " ", re.sub(r"[*`]", "", cell)).strip()
            shown = {tuple(map(bare, row)) for row in table_rows(PAGES[name].text)}
            for line in re.findall(r"^\|(.*)\|$", document.read_text(), re.M):
                if not set(line) <= set("-|"):
                    cells = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", c.replace("\\|", "|")) for c in re.split(r"(?<!\\)\|", line)]
                    self.assertIn(tuple(map(bare, cells)), shown, name)

    def test_drawings_are_those_of_the_repository(self):
        body = lambda svg: re.sub(r"<style>.*?</style>\n?|<rect class=\"paper\"[^>]*/>\n?", "", svg, flags=re.S).split(">", 1)[1].split()
        drawings = {p.stem: body(p.read_text()) for p in (ROOT / "docs" / "figures").glob("*.svg")}
        for document, name in [(s / "README.md", f"stage{number(s)}.html") for s in STAGES] + [(p, p.stem + ".html") for p in (ROOT / "docs").glob("*.md")]:
            if name not in PAGES:
                continue
            wanted = re.findall(r"figures/([\w-]+)\.svg", document.read_text())
            shown = [body(svg) for svg in re.findall(r'<figure class="drawing">(<svg.*?</svg>)', PAGES[name].text, re.S)]
            self.assertEqual(shown, [drawings[w] for w in wanted], name)

    def test_formulas_need_nothing(self):
        self.assertIn("<math", page(next(s for s in STAGES if "```math" in (s / "README.md").read_text())))
        for p in PAGES.values():
            self.assertNotIn("MathJax", p.text, p.path.name)


class Numbers(unittest.TestCase):
    def measured(self, stage, dtype="f32"):
        """cols -> (GB/s, fraction of the copy), from the results themselves."""
        found = {}
        path = ROOT / f"bench/results/h200/bench-{number(stage)}.json"
        for e in json.loads(path.read_text())["benchmarks"] if path.exists() else []:
            m = re.match(rf"stage-{number(stage)}/dtype:{dtype}/rows:(\d+)/cols:(\d+)/(?!lie)", e["run_name"])
            if m and e.get("aggregate_name") == "median" and int(m[1]) * int(m[2]) > 1 << 27:
                found[int(m[2])] = e["bytes_per_second"] * 1e-9, e["of_copy"]
        return found

    def test_the_map_has_the_best_fraction_of_each_stage(self):
        cards = re.findall(r'<div class="card">.*?</div>', PAGES["index.html"].text, re.S)
        self.assertEqual(len(cards), len(STAGES))
        for stage, card in zip(STAGES, cards):
            best = max(((f, n) for n, (_, f) in self.measured(stage).items()), default=None)
            self.assertIn(f"{best[0]:.2f} of a copy, at {best[1]} columns" if best else "not measured yet", plain(card), stage.name)
            together = re.search(r"\| \*\*together\*\* \| \*\*([^*]*)\*\* \| \*\*([^*]*)\*\* \|", (stage / "README.md").read_text())
            self.assertIn(f"reads {together[1]}, writes {together[2]}", plain(card), stage.name)

    def test_measured_tables_are_the_results(self):
        for stage in STAGES:
            rates = self.measured(stage)
            if not rates:
                continue
            head, *rows = table_rows(re.search(r"<table.*?</table>", section(page(stage), "Measured"), re.S)[0])
            at = head.index(f"stage {number(stage)}, fp32")
            shown = {int(r[0]): r[at] for r in rows}
            for n, (rate, fraction) in rates.items():
                self.assertEqual(shown[n], f"{rate:.0f} ({fraction:.2f})", f"{stage.name}, {n} columns")


class Quizzes(unittest.TestCase):
    def asked(self, stage):
        done = subprocess.run([BIN / "questions", number(stage)], capture_output=True, text=True,
                              env={**os.environ, "SOFTMAX_WORKBOOK": str(ROOT)})
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["gpus"]

    def test_questions_keys_and_reasons_are_those_of_the_program(self):
        for stage in STAGES:
            data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', page(stage), re.S)[1])
            for gpu in self.asked(stage):
                shown = [q.get("all") or q[gpu["key"]] for q in data["questions"]]
                self.assertEqual(shown, gpu["questions"], f"{stage.name} for {gpu['key']}")


@unittest.skipUnless(find_browser(), "no Chromium is installed: pages are not opened")
class InABrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser(find_browser())

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def opened(self, browser, dark):
        """Opens the pages, wide and narrow. Returns the colours of their paper. Listings of headers and members look all alike: they
        are opened in two of the four ways."""
        papers = set()
        for width in (1280, 390):
            browser.show_as(width, 900, dark)
            for name in PAGES:
                if re.search(r"_source\.html$|-members\.html$|^dir_", name) and dark != (width == 390):
                    continue
                where = f"{name}, {width} wide, {'dark' if dark else 'light'}"
                self.assertEqual(browser.open(HTML / name), [], where)
                wide, paper = browser.value("[document.documentElement.scrollWidth, getComputedStyle(document.body).backgroundColor]")
                self.assertLessEqual(wide, width, f"{where}: scrolls sideways")
                papers.add(paper)
        return papers

    def test_every_page_opens_in_light_and_dark_wide_and_narrow(self):
        with Browser(find_browser()) as other, ThreadPoolExecutor(2) as both:
            light, dark = both.map(self.opened, (self.browser, other), (False, True))
        self.assertFalse(light & dark, light | dark)

    def answer(self, number_of_question, text):
        self.browser.value(f"""(() => {{
          const form = document.querySelectorAll('.quiz form')[{number_of_question}];
          const choice = form.querySelector('input[type=radio][value="{text}"]'), field = form.querySelector('input[type=text]');
          if (choice) choice.click();
          if (field) field.value = '{text}';
          form.querySelector('button').click();
        }})()""")
        return self.browser.value(f"document.querySelectorAll('.quiz form .verdict')[{number_of_question}].textContent")

    def test_the_quiz(self):
        self.browser.show_as(1280, 900, False)
        score = "document.querySelector('.quiz .score').textContent"
        for stage in STAGES:
            path = HTML / f"stage{number(stage)}.html"
            self.browser.open(path)
            questions = Quizzes().asked(stage)[0]["questions"]
            self.assertEqual(self.browser.value(score), f"{len(questions)} questions")
            for i, q in enumerate(questions):
                if "choices" in q:
                    self.assertEqual(self.answer(i, "none"), "Choose an answer first.")
                    for c in sorted(range(len(q["choices"])), key=lambda c: q["choices"][c]["right"]):
                        head = "Right. " if q["choices"][c]["right"] else "Wrong. "
                        self.assertEqual(self.answer(i, c), head + q["choices"][c]["reason"])
                else:
                    self.assertEqual(self.answer(i, "twelve"), "Write a number.")
                    self.assertEqual(self.answer(i, -12345), "Wrong. " + q["miss"])
                    for trap in q["traps"]:
                        self.assertEqual(self.answer(i, trap["value"]), "Wrong. " + trap["reason"])
                    self.assertEqual(self.answer(i, q["number"]["value"]), "Right. " + q["number"]["reason"])
            all_right = f"{len(questions)} of {len(questions)} right, {len(questions)} answered"
            self.assertEqual(self.browser.value(score), all_right)
            self.browser.open(path)
            self.assertEqual(self.browser.value(score), all_right, "kept in the browser")
            self.assertTrue(self.browser.value(
                "[...document.querySelectorAll('.quiz input')].every(i => i.labels.length) && "
                "[...document.querySelectorAll('.quiz form')].every(f => f.querySelector('legend') && f.querySelector('[aria-live]'))"))
            self.browser.open(HTML / "index.html")
            self.assertEqual(self.browser.value(f"document.querySelector('.map .score[data-stage=\"{number(stage)}\"]').textContent"),
                             f"{len(questions)}/{len(questions)}")
            self.browser.open(path)
            self.browser.value("[...document.querySelectorAll('.quiz button')].find(b => b.textContent === 'Start again').click()")
            self.assertEqual(self.browser.value(score), f"{len(questions)} questions")

    def test_the_search_finds_pages_and_names(self):
        self.browser.show_as(1280, 900, False)
        for word, wanted in (("fused", "stage02.html"), ("streaming", "stage05.html"), ("barrier", "words.html"), ("group_reduce", "namespacesoftmax.html")):
            self.assertEqual(self.browser.open(HTML / "index.html"), [])
            self.browser.value("document.getElementById('MSearchField').focus()")
            self.browser.type(word)
            self.browser.value("new Promise(done => setTimeout(done, 1200))")
            found = self.browser.links_of_frames()
            self.assertTrue(any(wanted in link for link in found), f"{word}: {found}")
            self.assertEqual(self.browser.problems(), [])


class Staleness(unittest.TestCase):
    """A copy of the sources with one line changed, beside the book as it is: the book must be found stale."""

    def stale(self, change, *tests):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder)
            for name in ("stages", "bench/results", "docs", "common"):
                shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("html"))
            shutil.copy(ROOT / "README.md", copy)
            change(copy)
            return subprocess.run([sys.executable, __file__, "--bin", BIN, "--root", copy, "--html", HTML, *tests], capture_output=True, text=True)

    @staticmethod
    def edit(file, old, new):
        text = file.read_text()
        assert old in text, f"{old} is not in {file}"
        file.write_text(text.replace(old, new, 1))

    def test_a_kernel_line(self):
        for stage in STAGES:
            r = self.stale(lambda copy: self.edit(copy / "stages" / stage.name / "kernel.cuh", "s.rows == 0", "s.rows <= 0"), "Chapters")
            self.assertEqual(r.returncode, 1, stage.name)
            self.assertRegex(r.stderr, "FAIL: test_the_kernel_is_that_of_the_file")

    def test_a_result(self):
        def slower(copy):
            path = copy / "bench/results/h200/bench-02.json"
            path.write_text(re.sub(r'"of_copy": 0\.9', '"of_copy": 0.8', path.read_text()))
        self.assertRegex(self.stale(slower, "Numbers").stderr, "FAIL: test_the_map_has_the_best_fraction")

    def test_an_answer(self):
        r = self.stale(lambda copy: self.edit(copy / f"stages/{STAGES[0].name}/quiz.toml", 'text = "the N values of each row"', 'text = "the values of each row"'), "Quizzes")
        self.assertRegex(r.stderr, "FAIL: test_questions_keys_and_reasons")


if __name__ == "__main__":
    if ROOT != Path(__file__).resolve().parent.parent:
        del Staleness, InABrowser
    unittest.main(argv=[sys.argv[0], *REST])
