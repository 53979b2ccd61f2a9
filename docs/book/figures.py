"""The drawings of the book. refresh.py writes each of them to docs/figures/; values in them are computed, here or from bench/results.

A function named draw_x returns the drawing x; of_stages() adds those that each stage has.
"""
import math

from drawing import WIDTH, Drawing
from stages import elements, fractions, peer_fractions, stages

LEFT, RIGHT = 16, WIDTH - 16


# What each kernel reads and writes, by the names of the chapters; elsewhere x comes in and y goes out.
NAMES = {"00": (("x", "m"), ("x, m", "z"), ("z", "e"), ("e", "d"), ("e, d", "y")),
         "01": (("x", "m"), ("x, m", "d"), ("x, m, d", "y"))}


def flow(stage):
    """Kernels in the middle, memory on both sides; a thick arrow is a matrix, a thin one a column of row results."""
    launches = [launch for launch in stage.launches if launch.kernel != "together"]
    d = Drawing(f"Stage {stage.number}: each kernel reads from memory and writes back to it. "
                + "; ".join(f"{k.kernel} reads {k.reads}, writes {k.writes}" for k in launches) + ".", 62 + 52 * len(launches))
    names = NAMES.get(stage.number, [("x" if i == 0 else "", "y" if i == len(launches) - 1 else "") for i in range(len(launches))])
    for x, name in ((LEFT, "memory"), (RIGHT, "memory")):
        d.text(x, 20, name, "muted small" + (" end" if x == RIGHT else ""))
    d.text(WIDTH / 2, 20, "kernels, top to bottom", "muted small middle")
    bottom = 34 + 52 * len(launches)
    for x in (LEFT + 4, RIGHT - 4):
        d.add("path", "rule", d=f"M{x} 30V{bottom - 8}", stroke_width=8)
    for i, k in enumerate(launches):
        y = 34 + 52 * i
        d.box(136, y, 138, 38)
        d.text(205, y + 23, k.kernel, "mono middle strong")
        for name, formula, x1, x2, cls in ((names[i][0], k.reads, LEFT + 12, 132, "a-line"), (names[i][1], k.writes, 278, RIGHT - 14, "b-line")):
            d.arrow(x1, y + 22, x2, cls, 3.2 if "MN" in formula else 1.4)
            d.text((x1 + x2) / 2 - 2, y + 13, f"{name}: {formula}" if name else formula, "small middle")
    d.text(WIDTH / 2, bottom + 12, f"reads {stage.together.reads}, writes {stage.together.writes}", "middle strong")
    return d


def draw_machine():
    d = Drawing("A matrix of M rows and N columns. Each row is given to one block of 256 threads; the block is 8 warps of 32 lanes, "
                "and thread 5 takes columns 5, 261, 517 and so on.", 300)
    d.text(LEFT, 22, "x: M rows of N columns", "small muted")
    for row in range(6):
        d.box(LEFT, 32 + row * 16, 250, 12, "a-soft" if row == 2 else "soft", 2)
    d.text(276, 74, "one row …", "small")
    d.down(140, 132, 156)
    d.text(150, 148, "… is the work of one block", "small")
    for warp in range(8):
        y = 166 + warp * 13
        for lane in range(32):
            mine = (warp, lane) == (0, 5)
            d.box(LEFT + lane * 8, y, 6.4, 10, "b" if mine else "a-soft", 1)
        if warp in (0, 7):
            d.text(282, y + 9, f"warp {warp}: 32 lanes", "small")
    d.text(282, 216, "256 threads", "small muted")
    d.text(LEFT, 286, "thread 5 takes the columns 5, 261, 517, … of its row", "small")
    return d


def draw_sectors():
    """What 32 lanes that load a float each touch, by where the addresses lie."""
    cases = (("neighbours, aligned", lambda lane: lane), ("neighbours, starting 3 floats later", lambda lane: lane + 3),
             ("every 8th float", lambda lane: 8 * lane))
    d = Drawing("One request of 32 lanes for 4 bytes each. Neighbouring addresses touch 4 sectors of 32 bytes; shifted by 3 floats they "
                "touch 5; every 8th float touches 32 sectors.", 214)
    for i, (name, where) in enumerate(cases):
        y = 14 + 66 * i
        touched = sorted({where(lane) // 8 for lane in range(32)})
        wanted = {where(lane) for lane in range(32)}
        d.text(LEFT, y + 12, name, "small strong")
        d.text(RIGHT, y + 12, f"{len(touched)} sectors", "small end muted")
        shown = min(len(touched), 6)
        for s in range(shown):
            x = LEFT + s * 60
            d.box(x, y + 20, 57, 18, "void", 2)
            for word in range(8):
                if s * 8 + word in wanted:
                    d.box(x + 2 + word * 6.75, y + 22, 5.6, 14, "a", 1)
        if shown < len(touched):
            d.text(LEFT + 60 * shown, y + 34, "…", "muted")
    d.text(LEFT, 206, "32 lanes want a float each (filled); a frame is a sector of 32 bytes", "small muted")
    return d


def draw_registers():
    cols, threads = 13, 4
    items = 4
    d = Drawing("A row of 13 columns in a block of 4 threads. Thread t holds the columns t, t+4, t+8 and t+12 in its registers; "
                "the last three places are beyond the row and hold minus infinity.", 286)
    colour = "abcd"
    step = (RIGHT - LEFT) / (threads * items)
    d.text(LEFT, 20, f"a row of {cols} columns in memory: read once", "small muted")
    for col in range(threads * items):
        x = LEFT + col * step
        inside = col < cols
        d.box(x + 1, 28, step - 2, 24, f"{colour[col % threads]}-soft" if inside else "void", 2)
        d.text(x + step / 2, 44, str(col) if inside else "", "small middle")
    d.down(WIDTH / 2, 60, 80)
    d.text(WIDTH / 2 + 10, 75, "one request for neighbours", "small muted")
    for i in range(items):
        d.text(LEFT, 124 + i * 22, f"held[{i}]", "mono")
    for t in range(threads):
        x = LEFT + 62 + t * 77
        d.box(x, 88, 72, 112, "soft edge")
        d.text(x + 36, 104, f"thread {t}", "small strong middle")
        for i in range(items):
            col = t + i * threads
            inside = col < cols
            d.box(x + 6, 110 + i * 22, 60, 19, f"{colour[t]}-soft" if inside else "void", 2)
            d.text(x + 36, 124 + i * 22, f"x[{col}]" if inside else "-inf", "small middle")
    d.text(WIDTH / 2, 222, "maximum → exponentials → sum, all of it in registers", "middle")
    d.down(WIDTH / 2, 230, 248)
    d.text(LEFT, 268, "y[row], written once", "small muted")
    d.text(RIGHT, 268, "reads MN, writes MN", "small strong end")
    return d


def draw_shuffles():
    """The butterfly of group_reduce(): lanes whose numbers differ in one bit exchange what they have."""
    lanes, values = 8, [3, 1, 7, 2, 5, 8, 4, 6]
    d = Drawing("Eight lanes find their maximum in three steps: each takes the value of the lane whose number differs in one bit, "
                "and keeps the larger. After steps with 4, 2 and 1 every lane has 8.", 262)
    at = [80 + i * 43 for i in range(lanes)]
    d.text(LEFT, 22, "lane", "small muted")
    for lane in range(lanes):
        d.text(at[lane], 22, str(lane), "small muted middle")
    y, mask = 38, lanes // 2
    while True:
        for lane in range(lanes):
            d.box(at[lane] - 15, y, 30, 22, "a-soft" if values[lane] == max(values) else "soft edge")
            d.text(at[lane], y + 15, str(values[lane]), "middle strong" if values[lane] == max(values) else "middle")
        if mask == 0:
            break
        d.text(LEFT, y + 46, f"xor {mask}", "mono")
        for lane in range(lanes):
            d.line([(at[lane], y + 22), (at[lane], y + 64)], "rule")
            d.line([(at[lane ^ mask], y + 22), (at[lane], y + 64)], "a-line")
        values = [max(v, values[lane ^ mask]) for lane, v in enumerate(values)]
        y, mask = y + 64, mask // 2
    return d


def block(d, x, y, filled, colour, cell=5.0, rows=8, lanes=32):
    """A block as warps of lanes; filled(warp, lane) tells the row that a lane works on, or None."""
    for warp in range(rows):
        for lane in range(lanes):
            row = filled(warp, lane)
            d.box(x + lane * cell, y + warp * 11, cell - 0.9, 9, colour(row) if row is not None else "void", 0.8)


def draw_rows():
    d = Drawing("Rows of 32 columns in blocks of 8 warps. With one row a block a single warp has data and 224 lanes have none; "
                "with eight rows a block every warp has a row.", 168)
    shade = lambda row: "abcd"[row % 4]
    for x, title, filled, below in ((LEFT, "one row a block", lambda w, l: 0 if w == 0 else None, "128 bytes under way"),
                                    (212, "eight rows a block", lambda w, l: w, "1024 bytes under way")):
        d.text(x, 22, title, "strong small")
        block(d, x, 32, filled, shade, 5.4)
        d.text(x, 138, below, "small muted")
    d.text(LEFT, 158, "a line is a warp of 32 lanes; a frame is a lane with nothing to do", "small muted")
    return d


def draw_warps():
    d = Drawing("A row of 1024 columns. With 4 warps each thread has 8 columns and 4 warps meet at a barrier; "
                "with 32 warps each thread has 1 column and 32 warps meet.", 196)
    d.text(LEFT, 22, "4 warps, 8 columns a thread", "strong small")
    for warp in range(4):
        for item in range(8):
            d.box(LEFT + warp * 42, 32 + item * 13, 36, 11, "a-soft", 1)
        d.down(LEFT + warp * 42 + 18, 138, 152)
    d.line([(LEFT, 158), (LEFT + 162, 158)], "b-line")
    d.text(212, 22, "32 warps, 1 column each", "strong small")
    for warp in range(32):
        x = 212 + warp % 8 * 21.5
        y = 32 + warp // 8 * 26
        d.box(x, y, 18, 11, "a-soft", 1)
    for x in range(8):
        d.down(212 + x * 21.5 + 9, 138, 152)
    d.line([(212, 158), (RIGHT - 2, 158)], "b-line")
    d.text(LEFT, 176, "4 partial results meet", "small")
    d.text(212, 176, "32 partial results meet", "small")
    return d


def draw_online():
    """Running maximum and sum of a short row."""
    values = [3, 1, 5, 2]
    d = Drawing("The values 3, 1, 5, 2 are seen one by one. The maximum m goes 3, 3, 5, 5; the sum d of exponentials relative to m is "
                "rescaled by exp(3 - 5) when 5 arrives.", 190)
    at = [120 + i * 76 for i in range(len(values))]
    for y, name in ((30, "value"), (78, "m"), (126, "d")):
        d.text(LEFT, y + 17, name, "mono strong")
    m, total = -math.inf, 0.0
    for i, v in enumerate(values):
        before = m
        m = max(m, v)
        rescaled = m > before and i > 0
        total = total * math.exp(before - m) + math.exp(v - m) if i else 1.0
        d.box(at[i] - 30, 30, 60, 26, "soft edge")
        d.text(at[i], 47, str(v), "middle")
        d.box(at[i] - 30, 78, 60, 26, "b-soft" if rescaled else "a-soft")
        d.text(at[i], 95, str(m), "middle strong")
        d.box(at[i] - 30, 126, 60, 26, "b-soft" if rescaled else "a-soft")
        d.text(at[i], 143, f"{total:.4f}".rstrip("0").rstrip("."), "middle")
        if rescaled:
            d.text(at[i], 172, f"· exp({before} - {m})", "small middle b strong")
        if i:
            d.arrow(at[i] - 44, 139, at[i] - 33)
    exact = sum(math.exp(v - max(values)) for v in values)
    assert abs(exact - total) < 1e-12
    d.text(LEFT, 172, "rescaled:", "small muted")
    return d


def draw_merge():
    """Pairs (m, d) of four threads, merged two by two."""
    parts = [[3, 1], [5, 2], [4, 4], [0, 1]]
    state = lambda xs: (max(xs), sum(math.exp(x - max(xs)) for x in xs))
    pairs = [state(p) for p in parts]
    d = Drawing("Four threads hold a maximum and a sum each. Pairs are merged two by two: the larger maximum stays, both sums are "
                "brought to it and added. The last pair is that of the whole row.", 268)
    width = 84
    at = [LEFT + 46 + i * 92 for i in range(4)]
    d.text(LEFT, 20, "each thread: its values, then its pair (m, d)", "small muted")
    y = 34
    for i, p in enumerate(parts):
        d.text(at[i], y + 10, ", ".join(map(str, p)), "mono middle")
    y = 56
    while True:
        for i, (m, total) in enumerate(pairs):
            d.box(at[i] - width / 2, y, width, 28, "b-soft" if len(pairs) == 1 else "a-soft")
            d.text(at[i], y + 18, f"({m}, {total:.3f})", "mono middle")
        if len(pairs) == 1:
            break
        middle = [(a + b) / 2 for a, b in zip(at[::2], at[1::2])]
        for i, x in enumerate(at):
            d.line([(x, y + 28), (middle[i // 2], y + 66)], "rule")
        for i, x in enumerate(middle):
            d.text(x + (46 if i == 0 and len(middle) > 1 else 30), y + 60, "merge", "small muted")
        merged = []
        for (ma, da), (mb, db) in zip(pairs[::2], pairs[1::2]):
            m = max(ma, mb)
            merged.append((m, da * math.exp(ma - m) + db * math.exp(mb - m)))
        pairs, at, y = merged, middle, y + 66
    whole = state([x for p in parts for x in p])
    assert pairs[0][0] == whole[0] and abs(pairs[0][1] - whole[1]) < 1e-12
    d.text(WIDTH / 2, y + 50, "the same pair as of the whole row, in any grouping", "middle small")
    return d


def draw_vectors():
    """A row that starts anywhere: aligned vectors of 4 floats, and edges."""
    past, cols, per = 2, 17, 4
    head = -past % per
    vectors = (cols - head) // per
    d = Drawing(f"A row of {cols} floats that begins {4 * past} bytes behind a multiple of 16: {head} floats before the first multiple, {vectors} vectors "
                f"of 4 floats, and {cols - head - per * vectors} floats behind the last vector.", 138)
    step = (RIGHT - LEFT) / (past + cols + 1)
    d.text(LEFT, 20, "a row of floats that begins between two multiples of 16 bytes", "small muted")
    for place in range(past + cols + 1):
        x, col = LEFT + place * step, place - past
        inside = 0 <= col < cols
        vector = head <= col < head + per * vectors
        d.box(x + 1, 44, step - 2, 24, ("a-soft" if vector else "b-soft") if inside else "void", 2)
        if inside:
            d.text(x + step / 2, 60, str(col), "small middle")
        if place % per == 0:
            d.line([(x, 36), (x, 76)], "dashed")
    d.box(LEFT, 92, 14, 14, "a-soft", 2)
    d.text(LEFT + 22, 103, f"{vectors} vectors: one access of 16 bytes each", "small")
    d.box(LEFT, 114, 14, 14, "b-soft", 2)
    d.text(LEFT + 22, 125, f"{cols - per * vectors} edges: one access each", "small")
    return d


def draw_split():
    """A row over four blocks: partial maxima and sums meet."""
    parts = [(3, 1.135), (5, 1.05), (4, 2.0), (1, 1.368)]
    m = max(p[0] for p in parts)
    total = sum(s * math.exp(p - m) for p, s in parts)
    d = Drawing("A row is cut into four parts, one for each of four blocks. Each block finds the maximum and sum of its part; the pairs are "
                "exchanged and merged by every block, and each block writes its part.", 236)
    width = (RIGHT - LEFT) / 4
    d.text(LEFT, 20, "one row, four blocks", "small muted")
    for i, (top, s) in enumerate(parts):
        x = LEFT + i * width
        c = "abcd"[i]
        d.box(x + 1, 30, width - 2, 22, f"{c}-soft", 2)
        d.text(x + width / 2, 45, f"part {i}", "small middle")
        d.down(x + width / 2, 56, 76)
        d.box(x + 6, 80, width - 12, 30, "soft edge")
        d.text(x + width / 2, 99, f"({top}, {s:.3f})", "mono middle")
        for k in range(4):
            d.line([(x + width / 2, 112), (LEFT + k * width + width / 2, 142)], "rule")
        d.box(x + 6, 144, width - 12, 30, "c-soft edge")
        d.text(x + width / 2, 163, f"({m}, {total:.3f})", "mono middle")
        d.down(x + width / 2, 178, 194)
        d.box(x + 1, 198, width - 2, 22, f"{c}-soft", 2)
        d.text(x + width / 2, 213, "written", "small middle")
    return d


def draw_ledger():
    d = Drawing("Elements moved by each stage, in units of MN: " +
                "; ".join(f"stage {s.number} reads {elements(s.together.reads):g}, writes {elements(s.together.writes):g}" for s in stages())
                + ". No softmax moves fewer than 2.", 66 + 30 * len(stages()))
    x0, unit = 150, (RIGHT - 60 - 150) / max(elements(s.together.reads) + elements(s.together.writes) for s in stages())
    d.text(x0, 18, "reads", "small a strong")
    d.text(x0 + 48, 18, "writes", "small b strong")
    d.text(RIGHT, 18, "together", "small muted end")
    bottom = 30 + 30 * len(stages())
    for i, s in enumerate(stages()):
        y = 30 + 30 * i
        reads, writes = elements(s.together.reads), elements(s.together.writes)
        d.text(LEFT, y + 14, f"{s.number} {s.name}", "small")
        d.box(x0, y, reads * unit, 19, "a", 1)
        d.box(x0 + reads * unit, y, writes * unit, 19, "b", 1)
        d.text(RIGHT, y + 14, f"{reads + writes:g} MN", "small end strong")
    d.add("path", "dashed", d=f"M{x0 + 2 * unit:.1f} 26V{bottom + 4}")
    d.text(x0 + 2 * unit, bottom + 20, "the floor: 2 MN", "small muted middle")
    return d


def draw_wavefront():
    d = Drawing("256 threads are 8 warps of 32 lanes on NVIDIA, and 4 wavefronts of 64 lanes on AMD's CDNA. A reduction over 64 lanes "
                "takes 6 steps instead of 5, the first of them between lanes that are 32 apart.", 230)
    for y, width, name in ((34, 32, "NVIDIA: 8 warps of 32 lanes"), (140, 64, "AMD CDNA: 4 wavefronts of 64 lanes")):
        d.text(LEFT, y - 10, name, "small strong")
        cell = 5.7
        across = 64 // width
        for warp in range(256 // width):
            x = LEFT + warp % across * (32 * cell + 3)
            for lane in range(width):
                d.box(x + lane * cell + (3 if lane >= 32 else 0), y + warp // across * 13, cell - 1, 10, "c-soft" if width == 64 else "a-soft", 0.8)
        steps = [width >> k for k in range(1, width.bit_length())]
        d.text(LEFT, y + 66, f"{len(steps)} shuffles: xor " + ", ".join(map(str, steps)), "small")
    d.text(LEFT, 224, "begin with xor 16 on 64 lanes, and two halves never meet", "small muted")
    return d


def measured(stage):
    """Fraction of the copy over the width of the row: this stage, the one it builds on, and the best peer."""
    before = stage.before
    curves = [("best peer", peer_fractions(), "faint dots", "muted")]
    if before:
        curves.append((f"stage {before.number}", fractions(before), "b-line curve", "b"))
    own = fractions(stage)
    curves.append((f"stage {stage.number}" if own else f"{stage.number}: not measured", own, "a-line curve", "a"))
    d = Drawing(f"Stage {stage.number}, fp32 on an H200: fraction of the best copy over the columns of a row. " +
                " ".join((f"{name}: " + ", ".join(f"{n} columns {f:.2f}" for n, f in points) if points else name) + "." for name, points, *_ in curves), 268)
    x0, x1, y0, y1 = 46, RIGHT - 6, 212, 30
    widths = [n for _, points, *_ in curves for n, _ in points]
    low, high = math.log2(min(widths)), math.log2(max(widths))
    across = lambda n: x0 + (math.log2(n) - low) / (high - low) * (x1 - x0)
    up = lambda f: y0 - f * (y0 - y1)
    for f in (0, 0.25, 0.5, 0.75, 1):
        d.line([(x0, up(f)), (x1, up(f))], "stroke" if f == 1 else "rule")
        d.text(x0 - 6, up(f) + 4, f"{f:g}", "small end muted")
    d.text(LEFT - 6, 16, "1 = the best copy kernel of the same process", "small muted")
    n = 32
    while n <= max(widths):
        d.text(across(n), y0 + 18, str(n) if n < 1024 else f"{n // 1024}K" if n < 1 << 20 else "1M", "small middle muted")
        n *= 8
    d.text(x1, y0 + 34, "columns N", "small end muted")
    for name, points, cls, _ in curves:
        if points:
            d.line([(across(n), up(f)) for n, f in points], cls)
    x = LEFT
    for name, _, cls, ink in curves:
        d.line([(x, 254), (x + 22, 254)], cls)
        d.text(x + 28, 258, name, f"small {ink}")
        x += 118
    return d


def of_stages():
    """name -> drawing, of what every stage has."""
    found = {}
    for s in stages():
        found[f"flow-{s.number}"] = flow(s)
        if any(fractions(other) for other in stages()):
            found[f"measured-{s.number}"] = measured(s)
    return found


def all_figures():
    drawn = {name[5:]: make() for name, make in sorted(globals().items()) if name.startswith("draw_")}
    return {**drawn, **of_stages()}
