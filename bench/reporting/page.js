"use strict";
// Draws the charts in the theme and width of the moment, and makes the tables sort and filter.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const phone = matchMedia("(max-width: 640px)");
  const views = {};
  const first = document.querySelector("[name=dtype]:checked")?.value ?? data.figures.flatMap(f => f.dtypes)[0];
  const state = {dtype: first, hidden: [], shape: {}};
  const theme = () => root.dataset.theme || (dark.matches ? "dark" : "light");

  // A copy of a specification with the colours of the theme and the sizes of a phone.
  function adapt(value, key) {
    if (Array.isArray(value)) return value.map(v => adapt(v));
    if (value && typeof value === "object")
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, k === "datasets" ? v : adapt(v, k)]));
    if (typeof value === "string" && theme() === "dark" && value in data.swap) return data.swap[value];
    if (key === "labelLimit" && phone.matches) return 104;
    return value;
  }

  // A chart without the chosen type keeps the one it has: it is hidden, and an empty scale would only complain.
  function values(figure) {
    if (figure.dtypes.includes(state.dtype)) figure.dtype = state.dtype;
    return {narrow: phone.matches, hidden: state.hidden, dtype: figure.dtype, shape: state.shape[figure.key]};
  }

  async function draw(figure) {
    const place = document.getElementById("chart-" + figure.key);
    const spec = adapt(figure.spec);
    const now = values(figure);
    spec.params = spec.params.map(p => p.name in now && now[p.name] !== undefined ? {...p, value: now[p.name]} : p);
    if (phone.matches && figure.legend) spec.height = 320;
    views[figure.key]?.finalize();
    place.hidden = false; // what is hidden has no width
    const options = {actions: false, renderer: "svg", config: data.config[theme()], tooltip: {theme: "custom"}};
    views[figure.key] = await vegaEmbed(place, spec, options);
    // The container is one image with a description; what is inside it need not be read out.
    place.querySelector("svg")?.setAttribute("aria-hidden", "true");
    show(figure);
  }

  // A chart that has nothing of the chosen type says so.
  function show(figure) {
    const has = !figure.dtypes.length || figure.dtypes.includes(state.dtype);
    const absent = document.getElementById("absent-" + figure.key);
    document.getElementById("chart-" + figure.key).hidden = !has;
    absent.hidden = has;
    absent.textContent = has ? "" : `Nothing was measured in ${state.dtype} here; there is ${figure.dtypes.join(", ")}.`;
  }

  function update(figure) {
    const view = views[figure.key]?.view;
    if (!view) return;
    const now = values(figure);
    for (const name of ["hidden", "dtype", "shape"])
      if (now[name] !== undefined && figure.spec.params.some(p => p.name === name)) view.signal(name, now[name]);
    view.runAsync();
    show(figure);
  }

  // Tables that hold every type show the chosen one; none of their own shows nothing less than all.
  function rows() {
    document.querySelectorAll("table.split").forEach(table => {
      const all = [...table.querySelectorAll("[data-dtype]")];
      const has = all.some(r => r.dataset.dtype === state.dtype);
      all.forEach(r => r.classList.toggle("other", has && r.dataset.dtype !== state.dtype));
      table.classList.toggle("js", has);
    });
  }

  function choices(figure) {
    const select = document.querySelector(`[data-shape="${figure.key}"]`);
    if (!select) return;
    const before = state.shape[figure.key] ?? figure.spec.params.find(p => p.name === "shape").value;
    const fit = figure.shapes.filter(s => !s.dtypes.length || s.dtypes.includes(state.dtype));
    select.replaceChildren(...fit.map(s => new Option(s.label, s.value)));
    select.value = fit.some(s => s.value === before) ? before : fit[0]?.value ?? "";
    if (fit.length) state.shape[figure.key] = select.value;
    select.disabled = !fit.length;
  }

  const drawAll = () => Promise.all(data.figures.map(draw)).catch(problem => console.error(problem));

  for (const figure of data.figures) {
    choices(figure);
    document.querySelector(`[data-shape="${figure.key}"]`)?.addEventListener("change", e => {
      state.shape[figure.key] = e.target.value;
      update(figure);
    });
  }
  document.querySelectorAll("[name=dtype]").forEach(radio => radio.addEventListener("change", () => {
    state.dtype = radio.value;
    data.figures.forEach(f => { choices(f); update(f); });
    rows();
  }));
  document.querySelectorAll("[data-series], [data-label]").forEach(box => box.addEventListener("change", () => {
    const off = what => [...document.querySelectorAll(`[data-${what}]:not(:checked)`)].map(b => b.dataset[what]);
    const series = off("series"), labels = off("label");
    state.hidden = Object.entries(data.names).filter(([, [s, l]]) => series.includes(s) || labels.includes(l)).map(([n]) => n);
    data.figures.forEach(update);
  }));

  // --- theme: the system's, until the reader chooses
  const button = document.getElementById("theme");
  const keep = {get: () => { try { return localStorage.getItem("softmax-theme"); } catch { return null; } },
                set: v => { try { localStorage.setItem("softmax-theme", v); } catch { /* files may have no storage */ } }};
  function choose(value) {
    if (value === "light" || value === "dark") root.dataset.theme = value; else delete root.dataset.theme;
    button.querySelector("span").textContent = root.dataset.theme ?? "system";
  }
  button.hidden = false;
  choose(keep.get());
  button.addEventListener("click", () => {
    const next = {system: "light", light: "dark", dark: "system"}[root.dataset.theme ?? "system"];
    keep.set(next);
    choose(next);
    drawAll();
  });
  dark.addEventListener("change", drawAll);
  phone.addEventListener("change", drawAll);

  // --- saving
  function save(name, href) {
    const a = document.createElement("a");
    a.download = name;
    a.href = href;
    a.click();
  }
  document.querySelectorAll("[data-save]").forEach(b => b.addEventListener("click", async () => {
    const {save: key, kind} = b.dataset;
    save(`softmax-${key}.${kind}`, await views[key].view.toImageURL(kind, kind === "png" ? 2 : 1));
  }));

  // --- the full table
  const worth = cell => cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
  const empty = v => v === "";
  function order(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", {numeric: true});
  }
  function sortBy(table, sort) {
    const body = table.tBodies[0];
    const i = Number(sort.dataset.sort), head = sort.closest("th");
    const down = head.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll("[aria-sort]").forEach(h => h.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...body.rows].map(r => [worth(r.cells[i]), r]);
    rows.sort(([a], [b]) => empty(a) || empty(b) ? empty(a) - empty(b) : down ? order(b, a) : order(a, b));
    body.append(...rows.map(([, r]) => r));
  }
  function filter(table, text) {
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = [...row.cells].map(c => c.textContent.toLowerCase()).join(" ");
      row.hidden = !wanted.every(w => text.includes(w));
      shown += !row.hidden;
    }
    document.getElementById("count").textContent = `${shown} of ${table.tBodies[0].rows.length} rows`;
  }
  const table = document.getElementById("full"); // absent where a file holds no points
  table?.querySelectorAll("[data-sort]").forEach(b => b.addEventListener("click", () => sortBy(table, b)));
  document.getElementById("filter")?.addEventListener("input", e => filter(table, e.target.value));
  document.getElementById("download")?.addEventListener("click", () => {
    const url = URL.createObjectURL(new Blob([data.csv], {type: "text/csv"}));
    save("softmax.csv", url);
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  });

  rows();
  drawAll().then(() => { root.dataset.drawn = "yes"; });
})();
