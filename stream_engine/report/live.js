"use strict";
// The page that follows a running engine: what moves comes as server-sent events; a newer snapshot is fetched whole.
(() => {
  const byId = (id) => document.getElementById(id);
  const said = byId("live-said"), list = document.querySelector("#live dl");
  const root = document.documentElement.dataset;
  let last = 0, filled = null, fetching = false;
  const whole = (n) => Math.round(n).toLocaleString("en");
  const since = (s) => s < 90 ? `${Math.round(s)} s` : s < 5400 ? `${Math.round(s / 60)} min` : `${(s / 3600).toFixed(1)} h`;
  function show(now) {
    const rows = [
      ["events", whole(now.events)], ["events a second", whole(now.rate)], ["comparisons", whole(now.comparisons)],
      ["unread", now.lag === null ? "unknown" : whole(now.lag), now.behind], ["refused", whole(now.refused), now.refusing],
      ["objects", whole(now.objects)], ["snapshot", now.snapshot ? `${now.snapshot}${now.age === null ? "" : `, ${since(now.age)} ago`}` : "none yet"],
      ["accuracy now", now.accuracy === null ? "" : `${(100 * now.accuracy).toFixed(1)} %`],
      ["refits running", now.refits.map((r) => `${r.kind} ${Math.round(100 * r.done)} %${r.gap === null ? "" : `, gap ${r.gap.toPrecision(2)}`}`).join("; ")],
      ["refits failed", now.failed.join(", "), true], ["changes noticed", now.drifts ? whole(now.drifts) : "", true],
    ].filter(([, value]) => value !== "");
    list.replaceChildren(...rows.map(([head, value, bad]) => {
      const box = document.createElement("div"), dt = document.createElement("dt"), dd = document.createElement("dd");
      dt.textContent = head; dd.textContent = value; dd.id = `live-${head.replace(/ /g, "-")}`;
      if (bad) dd.className = "bad";
      box.append(dt, dd);
      return box;
    }));
    said.textContent = now.why || "reading";
    said.className = now.why ? "bad" : "soft";
  }
  async function fill(version) {
    if (fetching || version === filled) return;
    fetching = true;
    try {
      const answer = await fetch("page", { cache: "no-cache" });
      if (answer.ok) {
        const main = byId("main"), top = scrollY;
        main.innerHTML = await answer.text();
        byId("links").replaceChildren(...Array.from(main.querySelectorAll("section")).map((section) => {
          const item = document.createElement("li"), link = document.createElement("a");
          link.href = `#${section.id}`; link.textContent = section.querySelector("h2").textContent;
          item.append(link);
          return item;
        }));
        globalThis.pageFilled();
        document.title = byId("title").textContent = JSON.parse(byId("data").textContent).title;
        scrollTo(0, top);
        filled = version;
      }
    } catch (gone) {
      // the engine does not answer: what it says next has this asked again
    } finally { fetching = false; }
  }
  const events = new EventSource("live");
  events.onmessage = (message) => {
    const now = JSON.parse(message.data);
    last = Date.now();
    show(now);
    if (now.page && now.page !== filled) fill(now.page);
  };
  events.onerror = () => {
    const ago = last ? `, last heard of ${since((Date.now() - last) / 1000)} ago` : "";
    said.textContent = `the engine has stopped or cannot be reached${ago}; trying again`;
    said.className = "bad";
    if (events.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 10000);
  };
})();
