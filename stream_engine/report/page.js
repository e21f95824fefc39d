"use strict";
// Hover, search, sort, zoom, names and pictures that have room, choice of clusters and axes, and files to take along.
// Works on what the page holds.
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
    if (near) hint(data.names[i], near);
  }
  function hint(text, near) {
    const box = near.getBoundingClientRect();
    tip.textContent = text;
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
  document.addEventListener("focusin", (e) => { const term = e.target.closest("abbr"); if (term) hint(term.title, term); });
  document.addEventListener("focusout", (e) => { if (e.target.closest("abbr")) shown(tip, false); });
  addEventListener("beforeprint", () => all("details.columns").forEach((e) => { e.open = true; }));
  document.addEventListener("click", (e) => { const hit = object(e); if (hit && !e.target.closest("a")) about(+hit.dataset.i); });
  byId("about-close").addEventListener("click", () => about(-1));
  document.addEventListener("keydown", (e) => { if (e.key === "Escape" && chosen >= 0) about(-1); });

  // -- search --------------------------------------------------------------------------------------------------------
  const search = byId("search");
  let match = null;   // the objects that were searched for; null: all
  function dim() {   // what was not searched for, or is in no cluster that was chosen
    all("svg [data-i]").forEach((e) => { const i = +e.dataset.i; e.classList.toggle("dim", (!!match && !match.has(i)) || (off.size > 0 && !off.has(data.cluster[i]))); });
  }
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    const hits = wanted ? data.names.map((n, i) => [n.toLowerCase(), i]).filter(([n]) => n.includes(wanted)) : [];
    hits.sort((a, b) => (b[0] === wanted) - (a[0] === wanted) || b[0].startsWith(wanted) - a[0].startsWith(wanted));
    byId("hits").textContent = wanted ? `${hits.length} found` : "";
    match = wanted ? new Set(hits.map(([, i]) => i)) : null;
    dim();
    all("tr[data-i]").forEach((r) => shown(r, !match || match.has(+r.dataset.i)));
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
  const SIDES = [[1, 0], [-1, 0], [0, -1], [0, 1], [1, -1], [1, 1], [-1, -1], [-1, 1]];   // right or left, up or down
  const RINGS = [0.8, 1.2, 1.7, 2.3, 3, 4], ANGLES = Array.from({ length: 24 }, (_, k) => k * Math.PI / 12);
  const made = (name, attributes) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(attributes).forEach(([key, value]) => e.setAttribute(key, value));
    return e;
  };
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "11px system-ui, sans-serif";
  const width = (text) => pen.measureText(text).width;
  function occupied(cell) {   // boxes, found by the cells of a grid that they touch
    const boxes = new Map();
    const cells = ([l, r, t, b]) => { const out = []; for (let c = Math.floor(l / cell); c <= r / cell; c++) for (let d = Math.floor(t / cell); d <= b / cell; d++) out.push(`${c} ${d}`); return out; };
    return {
      add: (box) => cells(box).forEach((key) => { if (boxes.has(key)) boxes.get(key).push(box); else boxes.set(key, [box]); }),
      free: (box) => !cells(box).some((key) => (boxes.get(key) || []).some((o) => box[0] < o[1] && o[0] < box[1] && box[2] < o[3] && o[2] < box[3])),
    };
  }
  function thumbnail(there, pixel) {   // about as large as neighbours are apart, so that most have room
    const near = there.slice(0, 300).map((p) => there.reduce((least, q) => q === p ? least : Math.min(least, Math.hypot(p.x - q.x, p.y - q.y)), Infinity)).sort((a, b) => a - b);
    return Math.min(Math.max(near.length ? near[near.length >> 1] : 0, 22 * pixel), 72 * pixel);
  }
  function zooming(plot) {
    const svg = plot.querySelector("svg"), marks = svg.querySelector(".marks"), frame = svg.querySelector(".frame");
    const inside = { x: +frame.getAttribute("x"), y: +frame.getAttribute("y"), w: +frame.getAttribute("width"), h: +frame.getAttribute("height") };
    const view = { k: 1, x: 0, y: 0 };
    let drag = null, at = -1, waits = 0;
    const places = () => all("use[data-i]", marks).filter((e) => !e.classList.contains("away")).map((e) => ({ i: +e.dataset.i, x: +e.getAttribute("x"), y: +e.getAttribute("y"), e }));
    const ratio = () => svg.viewBox.baseVal.width / (svg.getBoundingClientRect().width || svg.viewBox.baseVal.width);
    function show() {
      view.k = Math.min(Math.max(view.k, 1), 60);
      view.x = Math.min(Math.max(view.x, inside.x + inside.w - view.k * (inside.x + inside.w)), inside.x * (1 - view.k));
      view.y = Math.min(Math.max(view.y, inside.y + inside.h - view.k * (inside.y + inside.h)), inside.y * (1 - view.k));
      marks.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.k})`);
      const pixel = ratio() / view.k, small = ratio() > 1.4, size = small ? 0.75 * pixel : pixel;   // of the screen, in the units of the figure
      all("use", marks).forEach((e) => e.setAttribute("transform", `translate(${e.getAttribute("x") * (1 - size)} ${e.getAttribute("y") * (1 - size)}) scale(${size})`));
      all("text.num, .tick", svg).forEach((e) => { e.style.opacity = view.k > 1 || small ? 0 : 1; });
      all("text.label", svg).forEach((e) => {
        const room = (e.classList.contains("lx") ? inside.w : inside.h) / (0.56 * Math.max(e.textContent.length, 1));
        e.style.fontSize = `${Math.min(12 * Math.min(ratio(), 2), Math.max(room, 12))}px`;
      });
      waits = waits || requestAnimationFrame(() => { waits = 0; arrange(pixel); });
    }
    // Pictures instead of points, then names beside points, each where it lies on nothing else: as `labels.py` does it
    // for paper, but for the screen and the zoom of now.
    function arrange(pixel) {
      const x0 = (inside.x - view.x) / view.k, y0 = (inside.y - view.y) / view.k, x1 = x0 + inside.w / view.k, y1 = y0 + inside.h / view.k;
      const there = places().filter((p) => p.x >= x0 && p.x <= x1 && p.y >= y0 && p.y <= y1), taken = occupied(24 * pixel);
      const within = ([l, r, t, b]) => l >= x0 && r <= x1 && t >= y0 && b <= y1;
      const pictures = group("pictures"), names = group("names"), picture = (p) => data.pictures[data.names[p.i]] || (globalThis.pictureOf ? globalThis.pictureOf(data.names[p.i]) : "");
      const pictured = there.filter(picture), side = thumbnail(there, pixel);
      const put = (p, x, y) => {
        const box = [x - side / 2, x + side / 2, y - side / 2, y + side / 2];
        if (!within(box) || !taken.free(box)) return false;
        taken.add(box);
        const where = { x: box[0], y: box[2], width: side, height: side, "data-i": p.i }, rim = 0.05 * side;
        pictures.append(made("rect", { ...where, class: p.e.getAttribute("class").split(" ")[0] }));
        pictures.append(made("image", { "data-i": p.i, x: box[0] + rim, y: box[2] + rim, width: side - 2 * rim, height: side - 2 * rim, href: picture(p) }));
        return true;
      };
      const half = 4 * pixel, point = (p) => [p.x - half, p.x + half, p.y - half, p.y + half];
      const crowded = pictured.length > 150 ? [] : pictured.filter((p) => pictured.some((q) => q !== p && Math.max(Math.abs(p.x - q.x), Math.abs(p.y - q.y)) < side / 2));
      const aside = pictured.filter((p) => !crowded.includes(p) && !put(p, p.x, p.y)).concat(crowded);
      if (pictured.length <= 150) {   // beside their points, tied to them by lines
        aside.forEach((p) => taken.add(point(p)));
        aside.forEach((p) => RINGS.some((ring) => ANGLES.some((angle) => {
          const x = p.x + ring * side * Math.cos(angle), y = p.y + ring * side * Math.sin(angle);
          if (!put(p, x, y)) return false;
          pictures.prepend(made("path", { class: "tie", "data-i": p.i, d: `M${p.x} ${p.y}L${x} ${y}` }));
          return true;
        })));
      }
      const high = 12 * pixel, drawn = there.filter((p) => !picture(p));
      there.forEach((p) => taken.add(point(p)));
      const left_over = [], text_of = (p) => data.names[p.i].length > 24 ? `${data.names[p.i].slice(0, 23)}…` : data.names[p.i];
      const write = (p, x, y, across) => {
        const name = made("text", { x, y: y + 4 * pixel, "data-i": p.i, "text-anchor": across > 0 ? "start" : across < 0 ? "end" : "middle" });
        name.textContent = text_of(p);
        name.style.fontSize = `${11 * pixel}px`; name.style.strokeWidth = `${2.5 * pixel}px`;
        names.append(name);
      };
      const tied = (p) => {   // farther out, with a line that crosses nothing else
        const wide = (width(text_of(p)) + 2) * pixel;
        for (const away of [16, 22, 30, 40, 52, 66]) for (const angle of ANGLES) {
          const dx = Math.cos(angle), dy = Math.sin(angle), across = Math.abs(dx) < 0.3 ? 0 : Math.sign(dx);
          const x = p.x + away * dx * pixel, y = p.y + away * dy * pixel, left = across > 0 ? x : across < 0 ? x - wide : x - wide / 2;
          const box = [left, left + wide, y - high / 2, y + high / 2], line = [];
          for (let far = 6; far < away - (across ? 0 : 6); far += 3) { const a = p.x + far * dx * pixel, b = p.y + far * dy * pixel; line.push([a - pixel, a + pixel, b - pixel, b + pixel]); }
          if (!within(box) || !taken.free(box) || !line.every(taken.free)) continue;
          [box, ...line].forEach(taken.add);
          names.prepend(made("path", { class: "tie", "data-i": p.i, d: `M${p.x + 4 * dx * pixel} ${p.y + 4 * dy * pixel}L${x} ${across ? y : y - Math.sign(dy) * high / 2}` }));
          write(p, x, y, across);
          return;
        }
      };
      drawn.forEach((p) => {
        const wide = (width(text_of(p)) + 2) * pixel;
        for (const [across, down] of SIDES) {
          const x = p.x + 6 * across * pixel, y = p.y + down * (across ? 0.6 * high : high / 2 + half + pixel);
          const left = across > 0 ? x : across < 0 ? x - wide : x - wide / 2, box = [left, left + wide, y - high / 2, y + high / 2];
          if (!within(box) || !taken.free(box)) continue;
          taken.add(box);
          write(p, x, y, across);
          return;
        }
        left_over.push(p);
      });
      if (there.length <= 150) left_over.forEach(tied);
      dim();
    }
    function group(name) {   // emptied; made behind the points where there is none
      const found = marks.querySelector(`.${name}`) || marks.appendChild(made("g", { class: name }));
      found.replaceChildren();
      return found;
    }
    function about_point(x, y, factor) {
      const k = Math.min(Math.max(view.k * factor, 1), 60);
      view.x = x - (x - view.x) * k / view.k; view.y = y - (y - view.y) * k / view.k; view.k = k;
      show();
    }
    const here = (e) => { const b = svg.getBoundingClientRect(), r = svg.viewBox.baseVal.width / b.width; return [(e.clientX - b.left) * r, (e.clientY - b.top) * r]; };
    const middle = () => [inside.x + inside.w / 2, inside.y + inside.h / 2];
    plot.classList.add("moves");
    all(`[data-regions="${svg.id}"]`).forEach((b) => b.addEventListener("click", () => b.setAttribute("aria-pressed", String(svg.classList.toggle("regions")))));
    show();
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
    all("[data-regions]").forEach((e) => { e.disabled = !map.covariance; });
    all("text.num, .grid, .tick", svg).forEach((e) => { e.style.display = "none"; });
    maps.forEach((m) => m.again());
  }
  function clusters() {
    all("[data-group]").forEach((b) => b.addEventListener("click", () => {
      const group = +b.dataset.group;
      if (off.has(group)) off.delete(group); else off.add(group);
      b.setAttribute("aria-pressed", String(off.has(group)));
      dim();
    }));
  }
  function begin() {   // at the start, and again when the live page has been filled again
    data = JSON.parse(byId("data").textContent);
    maps = all(".plot[data-zooms]").map(zooming);
    ["map-of", "map-x", "map-y"].forEach((id) => { const e = byId(id); if (e) e.addEventListener("change", place); });
    clusters();
    const drawn = data.maps && data.maps[0];
    all("[data-regions]").forEach((e) => { e.disabled = !!drawn && !drawn.covariance; });
    if (search.value) search.dispatchEvent(new Event("input"));
    if (chosen >= 0 && chosen < data.names.length) about(chosen);
  }
  addEventListener("resize", () => maps.forEach((each) => each.again()));
  begin();
  globalThis.pageFilled = begin;
})();
