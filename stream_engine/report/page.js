"use strict";
// Hover, search, sort, zoom, choice of clusters and axes, and files to take along. Works on what the page holds.
(() => {
  const byId = (id) => document.getElementById(id);
  const all = (query, within) => Array.from((within || document).querySelectorAll(query));
  const shown = (element, yes) => { if (element) element.hidden = !yes; };
  let data = null;   // what the page holds about its objects: names, axes, covariances, clusters
  let chosen = -1;   // the object that is looked at
  const off = new Set();

  // -- objects -------------------------------------------------------------------------------------------------------
  const tip = byId("tip");
  function point(i, near) {
    all(".found").forEach((e) => e.classList.remove("found"));
    if (i < 0) { shown(tip, false); return; }
    all(`[data-i="${i}"]`).forEach((e) => e.classList.add("found"));
    if (!near) return;
    const box = near.getBoundingClientRect();
    tip.textContent = data.names[i];
    shown(tip, true);
    tip.style.left = `${Math.min(box.right + 6, innerWidth - tip.offsetWidth - 8) + scrollX}px`;
    tip.style.top = `${box.top - 8 + scrollY}px`;
  }
  function about(i) {
    chosen = i;
    point(i);
    const panel = byId("about");
    shown(panel, i >= 0);
    if (i < 0) return;
    byId("about-name").textContent = data.names[i];
    const list = panel.querySelector("dl");
    list.replaceChildren();
    const row = document.querySelector(`tr[data-i="${i}"]`);
    const heads = row ? all("th", row.closest("table")).map((h) => h.textContent) : [];
    heads.slice(1).forEach((head, k) => {
      const value = row.cells[k + 1].textContent;
      if (!value) return;
      list.append(Object.assign(document.createElement("dt"), { textContent: head }),
        Object.assign(document.createElement("dd"), { textContent: value }));
    });
    const name = data.names[i], picture = byId("about-picture");
    const look = (what, text) => {
      shown(picture, !!what);
      if (what) { picture.src = what; picture.alt = name; }
      byId("about-text").textContent = text || "";
    };
    look(data.pictures[name], data.texts[name]);
    if (globalThis.askObject) globalThis.askObject(name).then((told) => { if (chosen === i && told) look(told.picture, told.text); });
    const link = byId("about-row");
    shown(link, !!row);
    if (row) row.id = `object-${i}`;
    link.href = `#object-${i}`;
  }
  const object = (event) => {
    const hit = event.target.closest && event.target.closest("[data-i]");
    return hit && !hit.closest("#about") ? hit : null;
  };
  document.addEventListener("pointerover", (e) => { const hit = object(e); if (hit) point(+hit.dataset.i, hit); });
  document.addEventListener("pointerout", (e) => { if (object(e)) point(chosen); });
  document.addEventListener("click", (e) => { const hit = object(e); if (hit && !e.target.closest("a")) about(+hit.dataset.i); });
  byId("about-close").addEventListener("click", () => about(-1));
  document.addEventListener("keydown", (e) => { if (e.key === "Escape" && chosen >= 0) about(-1); });

  // -- search --------------------------------------------------------------------------------------------------------
  const search = byId("search");
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    const hits = wanted ? data.names.map((n, i) => [n.toLowerCase(), i]).filter(([n]) => n.includes(wanted)) : [];
    hits.sort((a, b) => (b[0] === wanted) - (a[0] === wanted) || b[0].startsWith(wanted) - a[0].startsWith(wanted));
    byId("hits").textContent = wanted ? `${hits.length} found` : "";
    const match = new Set(hits.map(([, i]) => i));
    all("use[data-i], .names [data-i], ellipse[data-i]").forEach((e) => e.classList.toggle("dim", !!wanted && !match.has(+e.dataset.i)));
    all("tr[data-i]").forEach((r) => shown(r, !wanted || match.has(+r.dataset.i)));
    point(hits.length ? hits[0][1] : -1);
  });
  search.addEventListener("keydown", (e) => {
    const first = document.querySelector(".found");
    if (e.key === "Enter" && first) about(+first.dataset.i);
  });

  // -- tables --------------------------------------------------------------------------------------------------------
  const number = (text) => { const n = parseFloat(text.replace(/[,%\s]/g, "")); return isNaN(n) ? null : n; };
  document.addEventListener("click", (e) => {
    const head = e.target.closest && e.target.closest("th[aria-sort]");
    if (!head || !e.target.closest("button")) return;
    const table = head.closest("table"), at = head.cellIndex, body = table.tBodies[0];
    const up = head.getAttribute("aria-sort") !== "ascending";
    all("th[aria-sort]", table).forEach((h) => h.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const keyed = all("tr", body).map((row) => { const text = row.cells[at].textContent; return [text, number(text), row]; });
    const numeric = keyed.every(([text, n]) => text === "" || n !== null);
    keyed.sort(([a, x], [b, y]) => a === "" ? 1 : b === "" ? -1 : (up ? 1 : -1) * (numeric ? x - y : a.localeCompare(b)));
    body.append(...keyed.map(([, , row]) => row));
  });

  // -- files to take along -------------------------------------------------------------------------------------------
  function take(name, text, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  const quoted = (text) => /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  function csv(table) {
    const rows = all("tr", table).map((r) => all("th,td", r).map((c) => quoted(c.dataset.v !== undefined ? c.dataset.v : c.textContent)).join(","));
    return rows.join("\n") + "\n";
  }
  function alone(svg) {   // a figure with its colours written into it
    const copy = svg.cloneNode(true);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    const from = all("*", svg), to = all("*", copy);
    from.forEach((e, k) => {
      const style = getComputedStyle(e);
      ["fill", "stroke", "stroke-width", "stroke-dasharray", "fill-opacity", "stroke-opacity", "font-size", "font-family", "opacity"]
        .forEach((name) => { const v = style.getPropertyValue(name); if (v && to[k].tagName !== "title") to[k].setAttribute(name, v); });
    });
    return new XMLSerializer().serializeToString(copy);
  }
  document.addEventListener("click", (e) => {
    const button = e.target.closest && e.target.closest("button[data-take]");
    if (!button) return;
    const what = byId(button.dataset.take), name = button.dataset.name;
    if (name.endsWith(".csv")) take(name, csv(what), "text/csv");
    else take(name, alone(what), "image/svg+xml");
  });

  // -- figures that zoom ---------------------------------------------------------------------------------------------
  function zooming(plot) {
    const svg = plot.querySelector("svg"), marks = svg.querySelector(".marks"), frame = svg.querySelector(".frame");
    const inside = { x: +frame.getAttribute("x"), y: +frame.getAttribute("y"), w: +frame.getAttribute("width"), h: +frame.getAttribute("height") };
    const view = { k: 1, x: 0, y: 0 };
    let drag = null, at = -1;
    const places = () => all("use[data-i]", marks).map((e) => ({ i: +e.dataset.i, x: +e.getAttribute("x"), y: +e.getAttribute("y"), e }));
    function show() {
      view.k = Math.min(Math.max(view.k, 1), 60);
      view.x = Math.min(Math.max(view.x, inside.x + inside.w - view.k * (inside.x + inside.w)), inside.x * (1 - view.k));
      view.y = Math.min(Math.max(view.y, inside.y + inside.h - view.k * (inside.y + inside.h)), inside.y * (1 - view.k));
      marks.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.k})`);
      const small = 1 / view.k;
      all("use", marks).forEach((e) => e.setAttribute("transform", `translate(${e.getAttribute("x") * (1 - small)} ${e.getAttribute("y") * (1 - small)}) scale(${small})`));
      all(".names text", marks).forEach((e) => { e.style.fontSize = `${11 * small}px`; e.style.strokeWidth = `${2.5 * small}px`; });
      all("text.num", svg).forEach((e) => { e.style.opacity = view.k > 1 ? 0 : 1; });
    }
    function about_point(x, y, factor) {
      const k = Math.min(Math.max(view.k * factor, 1), 60);
      view.x = x - (x - view.x) * k / view.k; view.y = y - (y - view.y) * k / view.k; view.k = k;
      show();
    }
    const here = (e) => { const b = svg.getBoundingClientRect(), r = svg.viewBox.baseVal.width / b.width; return [(e.clientX - b.left) * r, (e.clientY - b.top) * r]; };
    const middle = () => [inside.x + inside.w / 2, inside.y + inside.h / 2];
    plot.classList.add("moves");
    plot.addEventListener("wheel", (e) => { if (!e.ctrlKey && document.activeElement !== plot) return; e.preventDefault(); about_point(...here(e), e.deltaY < 0 ? 1.2 : 1 / 1.2); }, { passive: false });
    plot.addEventListener("pointerdown", (e) => { drag = [...here(e), view.x, view.y]; });
    plot.addEventListener("pointermove", (e) => {
      if (!drag || !e.buttons) return;
      const [x, y] = here(e);
      view.x = drag[2] + x - drag[0]; view.y = drag[3] + y - drag[1];
      show();
    });
    addEventListener("pointerup", () => { drag = null; });
    plot.addEventListener("keydown", (e) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
      if (e.key === "+" || e.key === "=") about_point(...middle(), 1.4);
      else if (e.key === "-") about_point(...middle(), 1 / 1.4);
      else if (e.key === "0") { view.k = 1; view.x = view.y = 0; show(); }
      else if (e.key === "Enter" && at >= 0) about(at);
      else if (step) {   // to the nearest object in that direction
        const there = places(), from = there.find((p) => p.i === at);
        const ahead = from ? there.filter((p) => p !== from && (p.x - from.x) * step[0] + (p.y - from.y) * step[1] > 0) : there;
        const far = (p) => { const dx = p.x - from.x, dy = p.y - from.y; return Math.abs(dx * step[0] + dy * step[1]) + 2.5 * Math.abs(dx * step[1] + dy * step[0]); };
        const next = from ? ahead.reduce((best, p) => (!best || far(p) < far(best) ? p : best), null) : there[0];
        if (next) { at = next.i; point(at, next.e); byId("said").textContent = data.names[at]; }
      } else return;
      e.preventDefault();
    });
    all(`[data-zoom="${plot.id}"]`).forEach((b) => b.addEventListener("click", () => {
      if (b.dataset.by === "0") { view.k = 1; view.x = view.y = 0; show(); } else about_point(...middle(), +b.dataset.by);
    }));
    return { again: show };
  }

  // -- which axes, which clusters ------------------------------------------------------------------------------------
  let maps = [];
  function place() {
    const svg = byId("map-svg"), which = byId("map-of"), first = byId("map-x"), second = byId("map-y");
    if (!svg || !first || !data.maps) return;
    const map = data.maps[which ? +which.value : 0], a = Math.min(+first.value, map.axes.length - 1), b = Math.min(+second.value, map.axes.length - 1);
    const frame = svg.querySelector(".frame"), fx = +frame.getAttribute("x"), fy = +frame.getAttribute("y"), w = +frame.getAttribute("width"), h = +frame.getAttribute("height");
    const xs = map.axes[a], ys = map.axes[b], known = xs.map((v, i) => v !== null && ys[i] !== null);
    const range = (v) => { const ok = v.filter((_, i) => known[i]); return [Math.min(...ok), Math.max(...ok)]; };
    const [x0, x1] = range(xs), [y0, y1] = range(ys), k = 0.88 * Math.min(w / (x1 - x0 || 1), h / (y1 - y0 || 1));
    const at = (i) => [fx + w / 2 + (xs[i] - (x0 + x1) / 2) * k, fy + h / 2 - (ys[i] - (y0 + y1) / 2) * k];
    all("use[data-i]", svg).forEach((e) => { const i = +e.dataset.i; e.classList.toggle("away", !known[i]); if (known[i]) { const [x, y] = at(i); e.setAttribute("x", x.toFixed(1)); e.setAttribute("y", y.toFixed(1)); } });
    all(".names text", svg).forEach((e) => { const i = +e.dataset.i; if (known[i]) { const [x, y] = at(i); e.removeAttribute("text-anchor"); e.setAttribute("x", (x + 7).toFixed(1)); e.setAttribute("y", (y + 4).toFixed(1)); } });
    if (map.covariance && !svg.querySelector("ellipse")) {   // the picture that the page was drawn with has none
      const points = svg.querySelector("use[data-i]").parentNode, name = "http://www.w3.org/2000/svg";
      const group = points.parentNode.insertBefore(document.createElementNS(name, "g"), points);
      group.setAttribute("class", "ellipses");
      all("use[data-i]", points).forEach((e) => { const made = group.appendChild(document.createElementNS(name, "ellipse")); made.setAttribute("class", e.getAttribute("class")); made.dataset.i = e.dataset.i; });
    }
    all("ellipse[data-i]", svg).forEach((e) => {
      const i = +e.dataset.i, c = map.covariance && map.covariance[i];
      shown(e, !!c);
      e.style.display = c ? "" : "none";
      if (!c) return;
      const d = map.axes.length, at2 = (r, s) => c[Math.min(r, s) * d - Math.min(r, s) * (Math.min(r, s) - 1) / 2 + Math.abs(r - s)];
      const p = at2(a, a), q = at2(a, b), r = at2(b, b), half = (p + r) / 2, gap = Math.sqrt((p - r) ** 2 / 4 + q * q);
      const turn = -Math.atan2(half + gap - p, q || 1e-30) * 180 / Math.PI, [x, y] = at(i);
      e.setAttribute("rx", (Math.sqrt(5.991 * (half + gap)) * k).toFixed(1));
      e.setAttribute("ry", (Math.sqrt(5.991 * Math.max(half - gap, 0)) * k).toFixed(1));
      e.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)}) rotate(${(q === 0 ? (p >= r ? 0 : -90) : turn).toFixed(0)})`);
    });
    const label = (query, text) => { const e = svg.querySelector(query); if (e) e.textContent = text; };
    label(".lx", `${map.name}, axis ${a + 1}`); label(".ly", `axis ${b + 1}`);
    all("text.num", svg).forEach((e) => { e.style.display = "none"; });
    all(".grid, .tick", svg).forEach((e) => { e.style.display = "none"; });
    maps.forEach((m) => m.again());
  }
  function clusters() {
    all("[data-group]").forEach((b) => b.addEventListener("click", () => {
      const group = +b.dataset.group;
      if (off.has(group)) off.delete(group); else off.add(group);
      b.setAttribute("aria-pressed", String(off.has(group)));
      all("use[data-i], .names [data-i], ellipse[data-i]").forEach((e) => e.classList.toggle("dim", off.size > 0 && !off.has(data.cluster[+e.dataset.i])));
    }));
  }
  function begin() {   // at the start, and again when the live page has been filled anew
    data = JSON.parse(byId("data").textContent);
    maps = all(".plot[data-zooms]").map(zooming);
    ["map-of", "map-x", "map-y"].forEach((id) => { const e = byId(id); if (e) e.addEventListener("change", place); });
    clusters();
    if (search.value) search.dispatchEvent(new Event("input"));
    if (chosen >= 0 && chosen < data.names.length) about(chosen);
  }
  begin();
  globalThis.pageFilled = begin;
})();
