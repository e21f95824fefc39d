"use strict";
// The page that follows a running engine: what moves comes as server-sent events; a newer snapshot is fetched whole.
(() => {
  const byId = (id) => document.getElementById(id);
  const said = byId("live-said"), list = document.querySelector("#live dl");
  const ACTIVITY = {
    blocked: "Not reading, see above.", reading: "Reading.", current: "Up to date, waiting for new events.",
    fitting: "All events read; fitting models.",
    idle: "Connected, but not reading at the moment.", starting: "Starting: compiling, once.", lost: "Reconnecting. The data below may be out of date.",
  };
  const published = new Map();   // snapshot -> when it was
  let last = 0, filled = null, fetching = false, objects = false;
  const whole = (n) => Math.round(n).toLocaleString("en");
  const percent = (p) => `${(100 * p).toFixed(1)} %`;
  const clock = (t, ...more) => new Date(1000 * t).toLocaleTimeString([], Object.fromEntries(["hour", "minute", ...more].map((part) => [part, "2-digit"])));
  const since = (s) => s < 90 ? `${Math.round(s)} s` : s < 5400 ? `${Math.round(s / 60)} min` : `${(s / 3600).toFixed(1)} h`;

  // -- what is now ---------------------------------------------------------------------------------------------------
  function show(now) {
    const rows = now.starting && !now.events ? [["state", "starting"]] : [   // zeros would say that nothing is there
      ["events", whole(now.events)], ["events per second", whole(now.rate)], ["comparisons", whole(now.comparisons)],
      ["unread", now.starting ? "starting" : now.lag === null ? "unknown" : whole(now.lag), now.behind], ["rejected", whole(now.refused), now.refusing],
      ["objects", whole(now.objects)], ["snapshot", now.snapshot ? `${now.snapshot}${now.age === null ? "" : `, ${since(now.age)} ago`}` : "none yet"],
      ["accuracy", now.accuracy === null ? (unfitted(now) ? "no model yet" : "too few answers") : percent(now.accuracy)],
      ["refits running", now.refits.map((r) => `${r.kind} ${Math.round(100 * r.done)} %${r.gap === null ? "" : `, gap ${r.gap.toPrecision(2)}`}`).join("; ")],
      ["refits failed", now.failed.join(", "), true], ["drift alarms", now.drifts ? whole(now.drifts) : "", true],
    ].filter(([, value]) => value !== "");
    list.replaceChildren(...rows.map(([head, value, bad]) => {
      const box = document.createElement("div"), dt = document.createElement("dt"), dd = document.createElement("dd");
      dt.textContent = head; dd.textContent = value; dd.id = `live-${head.replace(/ /g, "-")}`;
      if (bad) dd.className = "bad";
      box.append(dt, dd);
      return box;
    }));
    wrong(now.wrong);
    const waiting = byId("waiting");   // until the sections are there
    if (waiting) waiting.textContent = now.snapshot ? "Rendering the latest snapshot." : `No snapshot yet. The report appears with the first snapshot${now.events && now.snapshot_due ? `, which is due in ${since(now.snapshot_due)}` : ""}.`;
    reportOf();
    say(now.starting ? "starting" : !now.ready ? "blocked" : now.rate > 0 ? "reading" : now.lag !== 0 ? "idle" : now.refits.length ? "fitting" : "current", now.quiet);
  }
  function reportOf() {   // the figures above are newer than the report
    const report = JSON.parse(byId("data").textContent), at = published.get(report.snapshot);
    byId("report-of").hidden = !report.snapshot;
    byId("report-of").textContent = `Report of snapshot ${report.snapshot}: ${whole(report.events)} events${at ? `, ${since(Date.now() / 1000 - at)} ago` : ""}`;
  }
  const unfitted = (now) => !now.snapshot || now.refits.length > 0;
  function say(state, quiet) {
    said.dataset.state = state;
    said.textContent = ACTIVITY[state] + (!["reading", "starting", "fitting"].includes(state) && quiet >= 60 ? ` No event for ${since(quiet)}.` : "");
  }
  function wrong(texts) {
    const list = byId("live-wrong");
    if (Array.from(list.children, (e) => e.textContent).join() === texts.join()) return;   // else it is read out again
    list.replaceChildren(...texts.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
  }

  // -- how it moved --------------------------------------------------------------------------------------------------
  const NAMES = ["time", "events", "refused", "lag", "accuracy", "drifts"];
  let past = Object.fromEntries(NAMES.map((name) => [name, []]));
  const most = 600;
  function add(now) {
    NAMES.forEach((name) => past[name].push(now[name]));
    if (past.time.length > most) NAMES.forEach((name) => { past[name] = past[name].filter((_, k) => k % 2 === 0 || k === past[name].length - 1); });
  }
  async function history() {   // of the run; what this page saw of a run before it stays
    try {
      const got = await (await fetch("history", { cache: "no-store" })).json();
      const before = past.time.findIndex((t) => !(t < got.time[0])), upto = before < 0 ? past.time.length : before;
      NAMES.forEach((name) => { past[name] = past[name].slice(0, upto).concat(got[name]); });
    } catch (gone) { /* the next connection asks again */ }
  }
  const rates = (totals) => totals.map((n, k) => k === 0 || n < totals[k - 1] || past.time[k] <= past.time[k - 1] ? null : (n - totals[k - 1]) / (past.time[k] - past.time[k - 1]));
  function alarms() {   // when a change was noticed, and how many alarms that was
    return past.time.map((t, k) => [t, k > 0 ? past.drifts[k] - past.drifts[k - 1] : 0]).filter(([, n]) => n > 0);
  }
  const SHOWN = [
    ["accuracy", "Accuracy of the present model", percent, (now) => {
      const known = past.accuracy.filter((v) => v !== null), noticed = alarms();
      if (now.accuracy === null) return unfitted(now) ? "No accuracy yet: models are fitted to each snapshot." : "Too few comparisons have been predicted to show an accuracy.";
      const number = noticed.reduce((sum, [, n]) => sum + n, 0);
      const change = number ? ` Drift: ${number} alarm${number > 1 ? "s" : ""} (dotted), the last at ${clock(noticed[noticed.length - 1][0])}.` : " No drift was detected.";
      const many = now.accuracy_n === null ? "" : `${whole(now.accuracy_n)} `;
      const of = now.accuracy_of === "since" ? `a sample of ${many}comparisons that came since it was fitted` : `${many}held-out comparisons`;
      const by = now.accuracy_of === "since" ? `Of the models tested on new comparisons, ${now.accuracy_by.replaceAll("_", " ")} is the best: it` : `The ${now.accuracy_by}`;
      return `${by} predicts ${percent(now.accuracy)} of ${of}${range(known)}.${change}`;
    }],
    ["rate", "Events per second", (v) => v > 0 && v < 10 ? v.toFixed(1) : whole(v), (now) => {
      const first = past.events[0], more = now.events - first;
      return `${whole(now.rate)} events per second now; ${whole(Math.max(more, 0))} events since ${clock(past.time[0])}. ${now.refused ? `${whole(now.refused)} rejected in total (dashed).` : "No event was rejected."}`;
    }],
    ["lag", "Unread", whole, (now) => now.lag === null ? "The lag of this source is unknown." : now.lag === 0 ? "Nothing unread." : `${whole(now.lag)} unread (bytes, rows or messages); ${trend()}.`],
  ];
  function range(known) {   // nothing where both ends look alike
    const [least, most] = [percent(Math.min(...known)), percent(Math.max(...known))];
    return least === most ? "" : `; since ${clock(past.time[past.accuracy.findIndex((v) => v !== null)])} between ${least} and ${most}`;
  }
  function trend() {
    const end = past.lag.length - 1, from = past.time.findIndex((t) => t >= past.time[end] - 60), before = past.lag[Math.max(from, 0)];
    return before === null || before === past.lag[end] ? "unchanged" : past.lag[end] > before ? `more than ${whole(before)} a minute ago` : `less than ${whole(before)} a minute ago`;
  }
  const WIDE = 300, HIGH = 110, LEFT = 58, TOP = 6, BOTTOM = 18;
  const drawn = (name, attributes, text) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(attributes).forEach(([key, value]) => e.setAttribute(key, value));
    if (text !== undefined) e.textContent = text;
    return e;
  };
  function line(values, x, y) {   // a path, interrupted where nothing is known
    let on = false;
    return values.map((v, k) => { const part = v === null ? "" : `${on ? "L" : "M"}${x(past.time[k]).toFixed(1)} ${y(v).toFixed(1)}`; on = v !== null; return part; }).join("");
  }
  function figure([name, title, told, says], now) {
    const main = name === "rate" ? rates(past.events) : past[name], beside = name === "rate" && past.refused.some((n) => n) ? rates(past.refused) : [];
    const values = [...main, ...beside].filter((v) => v !== null), [from, to] = [past.time[0], past.time[past.time.length - 1]];
    const top = Math.max(...values), low = name === "accuracy" ? Math.min(...values) : 0, room = name === "accuracy" ? Math.max(0.02, 0.2 * (top - low)) : 0;
    const y0 = Math.max(low - room, 0), y1 = name === "accuracy" ? Math.min(top + room, 1) : Math.max(top, 1);
    const x = (t) => LEFT + (WIDE - LEFT - 6) * (t - from) / (to - from || 1), y = (v) => HIGH - BOTTOM - (HIGH - BOTTOM - TOP) * (v - y0) / (y1 - y0 || 1);
    const precise = to - from < 120 ? ["second"] : [];
    const text = says(now), svg = byId(`live-${name}-svg`);
    byId(`live-${name}-says`).textContent = text;
    const parts = [drawn("title", {}, title), drawn("desc", {}, text)];
    svg.toggleAttribute("hidden", values.length < 2);
    if (values.length > 1) {
      parts.push(...[y0, y1].map((v) => drawn("path", { class: "grid", d: `M${LEFT} ${y(v)}H${WIDE - 6}` })));
      parts.push(...[y0, y1].map((v) => drawn("text", { class: "num", x: LEFT - 5, y: y(v) + 4, "text-anchor": "end" }, told(v))));
      parts.push(drawn("text", { class: "num", x: LEFT, y: HIGH - 3 }, clock(from, ...precise)), drawn("text", { class: "num", x: WIDE - 6, y: HIGH - 3, "text-anchor": "end" }, clock(to, ...precise)));
      if (name === "accuracy") parts.push(...alarms().map(([t]) => drawn("path", { class: "alarm", d: `M${x(t)} ${TOP}V${HIGH - BOTTOM}` })));
      parts.push(drawn("path", { class: "curve", d: line(main, x, y) }));
      if (beside.length) parts.push(drawn("path", { class: "curve dashed", d: line(beside, x, y) }));
    }
    svg.replaceChildren(...parts);
  }
  byId("series").replaceChildren(...SHOWN.map(([name, title]) => {
    const box = document.createElement("figure"), svg = drawn("svg", { id: `live-${name}-svg`, role: "img", "aria-label": title, viewBox: `0 0 ${WIDE} ${HIGH}` });
    const caption = Object.assign(document.createElement("figcaption"), { textContent: title });
    box.append(caption, svg, Object.assign(document.createElement("p"), { id: `live-${name}-says` }));
    return box;
  }));
  const HEADS = ["time", "events", "rejected", "unread", "accuracy", "drift alarms"];
  byId("table-live").querySelector("thead tr").append(...HEADS.map((head) => Object.assign(document.createElement("th"), { scope: "col", textContent: head })));
  let tabled = 0;
  function table() {
    if (!byId("live-table").open || Date.now() - tabled < 5000) return;
    tabled = Date.now();
    byId("table-live").tBodies[0].replaceChildren(...past.time.map((t, k) => {
      const row = document.createElement("tr"), accuracy = past.accuracy[k];
      const values = [[new Date(1000 * t).toLocaleTimeString(), new Date(1000 * t).toISOString()], [past.events[k]], [past.refused[k]], [past.lag[k] ?? ""], [accuracy === null ? "" : accuracy.toFixed(4)], [past.drifts[k]]];
      row.append(...values.map(([text, exact]) => { const cell = Object.assign(document.createElement("td"), { textContent: text, className: "n" }); if (exact) cell.dataset.v = exact; return cell; }));
      return row;
    }).reverse());
  }
  byId("live-table").addEventListener("toggle", () => { tabled = 0; table(); });

  // -- the sections of the newest snapshot, and its objects -------------------------------------------------------------
  async function fill(version) {
    if (fetching || version === filled) return;
    fetching = true;
    try {
      const answer = await fetch("page", { cache: "no-cache" });
      if (answer.ok) {
        const main = byId("main"), top = scrollY, high = main.offsetHeight;
        main.innerHTML = await answer.text();
        const links = Array.from(main.querySelectorAll("section")).map((section) => [section.id, section.querySelector("h2").textContent]);
        byId("links").replaceChildren(...[...["study", "moving"].filter(byId).map((id) => [id, byId(`${id}-head`).textContent]), ...links].map(([id, text]) => {
          const item = document.createElement("li"), link = document.createElement("a");
          link.href = `#${id}`; link.textContent = text;
          item.append(link);
          return item;
        }));
        if (objects) await pictured();
        globalThis.pageFilled();
        document.title = byId("title").textContent = globalThis.pageTitle || JSON.parse(byId("data").textContent).title;
        if (high) scrollTo(0, top);
        filled = version;
        reportOf();
      }
    } catch (gone) {
      // the engine does not answer: what it says next has this asked again
    } finally { fetching = false; }
  }
  let withPicture = new Set();
  async function pictured() {
    try { withPicture = new Set((await (await fetch("object")).json()).pictures); } catch (gone) { /* names, then */ }
  }
  globalThis.pictureOf = (name) => withPicture.has(name) ? `object/picture?name=${encodeURIComponent(name)}` : "";
  globalThis.askObject = async (name) => {
    if (!objects) return null;
    const query = `?name=${encodeURIComponent(name)}`;
    try {
      const told = await (await fetch(`object${query}`)).json();
      return { picture: told.picture ? `object/picture${query}` : "", text: told.text };
    } catch (gone) { return null; }
  };

  // -- the stream ----------------------------------------------------------------------------------------------------
  const events = new EventSource("live");
  let known = Promise.resolve();
  events.onopen = () => { known = history(); };
  events.onmessage = async (message) => {
    const now = JSON.parse(message.data);
    last = Date.now();
    objects = now.objects_shown;
    if (now.age !== null) published.set(now.snapshot, last / 1000 - now.age);
    if (now.page && now.page !== filled) fill(now.page);
    await known;
    add(now);
    if (document.hidden) return;
    show(now);
    SHOWN.forEach((each) => figure(each, now));
    table();
  };
  events.onerror = () => {
    const ago = last ? `; the last message was ${since((Date.now() - last) / 1000)} ago` : "";
    wrong([`The engine has stopped or cannot be reached${ago}.`]);
    say("lost");
    if (events.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 10000);
  };
})();
