#!/usr/bin/env python3
"""Lets the search find a page by any word of its title and headings, and the glossary by its words: Doxygen's own index has
the beginnings of titles alone.

    docs/book/search.py docs/html OUT/pages     after Doxygen; the pages are those that pages.py wrote
"""
import html
import json
import re
import sys
from pathlib import Path

COMMON = set("a an and as at by for from has how in is it its not of on or that the this to what where with you your".split())


def as_id(text):
    """As convertToId() of Doxygen's search.js."""
    return "".join(c if re.match(r"[a-z0-9\u0080-\uffff]", c) else f"_{ord(c):02x}" for c in text.lower())


def plain(fragment):
    return html.unescape(re.sub(r"<[^>]*>", "", fragment)).strip()


def entries(page):
    """(text, link, page title) of a chapter: its title, its headings, and in the glossary its words."""
    text = page.read_text()
    title = plain(re.search(r'<div class="title">(.*?)</div>', text, re.S)[1])
    yield title, page.name, ""
    for level, anchor, heading in re.findall(r'<h([123])[^>]*>\s*<a class="anchor" id="([^"]+)"></a>\s*(.*?)</h\1>', text, re.S):
        yield plain(heading), f"{page.name}#{anchor}", title
    if page.name == "words.html":
        for cell in re.findall(r"<tr[^>]*>\s*<td[^>]*>(.*?)</td>", text, re.S):
            for word in plain(cell).split(","):
                yield word.strip(), page.name, title


def main(folder, pages):
    search = folder / "search"
    letters = re.search(r'0: "([^"]*)"', (search / "searchdata.js").read_text())[1]
    added = {}
    for page in pages:
        for text, link, scope in entries(folder / page):
            words = re.findall(r"[\w-]+", text)
            for at, word in enumerate(words):
                if at and word.lower() in COMMON:
                    continue
                rest = text[text.index(word):] if at else text
                if rest[0].lower() in letters:
                    added.setdefault(letters.index(rest[0].lower()), []).append((as_id(rest), text, link, scope))
    for letter, found in added.items():
        path = search / f"all_{letter:x}.js"
        old = path.read_text()
        new = [f"[{json.dumps(f'{name}_{1000 + i}')},[{json.dumps(html.escape(text))},[{json.dumps('../' + link)},1,{json.dumps(html.escape(scope))}]]]"
               for i, (name, text, link, scope) in enumerate(sorted(set(found))) if not re.search(rf"\['{name}_\d+'", old)]
        if new:
            path.write_text(old.rstrip().rstrip(";").rstrip().rstrip("]").rstrip() + ",\n" + ",\n".join(new) + "\n];\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sorted(f"{p.stem}.html" for p in Path(sys.argv[2]).glob("*.md")))
