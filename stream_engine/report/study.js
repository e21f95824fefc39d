"use strict";
// The part of the page about a study that collects answers: how far it is, its participants, and what its owner can do.
(() => {
  const byId = (id) => document.getElementById(id);
  const whole = (n) => Math.round(n).toLocaleString("en");
  const EVERY = 3000;   // milliseconds between two looks
  const made = (name, text, attributes) => Object.assign(document.createElement(name), { textContent: text }, attributes);
  let paused = false;

  function tile(head, value, note) {
    const box = made("div", "", { className: "tile" });
    box.append(made("dt", head), made("dd", value, { className: "value" }), made("dd", note, { className: "soft" }));
    return box;
  }
  function show(study) {
    paused = study.paused;
    globalThis.pageTitle = document.title = byId("title").textContent = study.title;
    const each = study.wanted_of_each ? `${whole(study.wanted_of_each)} for each participant` : "no limit for each participant";
    const share = study.people ? `${Math.round(100 * study.done / study.people)} % of those who started` : "no participant has started yet";
    byId("study-tiles").replaceChildren(
      tile("Answers", whole(study.answers), study.wanted ? `of ${whole(study.wanted)}; ${each}` : each),
      tile("Participants", whole(study.people), study.excluded ? `${whole(study.excluded)} screened out by catch trials` : "none screened out"),
      tile("Completed", whole(study.done), share),
      tile("Unanswered questions", whole(study.waiting), "sent, not answered yet"),
    );
    byId("study-screened").hidden = !study.excluded;
    const said = paused ? "Paused: participants get no new questions." : study.enough ? "The study has all the answers that it needs." : "Open: participants get questions.";
    if (byId("study-said").textContent !== said) byId("study-said").textContent = said;   // else it is read out again
    byId("pause").textContent = paused ? "Resume" : "Pause";
    byId("pause").setAttribute("aria-pressed", String(paused));
  }

  // -- participants --------------------------------------------------------------------------------------------------
  const HEADS = ["participant", "progress", "answers", "catch trials passed", "failed", "last answer", "status", "flagged because"];
  const STATUS = { "": "in progress", done: "completed", excluded: "screened out" };
  byId("table-participants").querySelector("thead tr").append(...HEADS.map((head) => made("th", head, { scope: "col" })));
  function flags() {   // as the report of the newest snapshot has them
    const found = new Map(), table = byId("table-workers");
    if (!table) return found;
    const heads = Array.from(table.querySelectorAll("th"), (e) => e.textContent), name = heads.indexOf("worker"), why = heads.indexOf("flagged because");
    if (why >= 0) Array.from(table.tBodies[0].rows, (row) => found.set(row.cells[name].textContent, row.cells[why].textContent));
    return found;
  }
  function cell(text, right) { return made("td", text, right ? { className: "n" } : {}); }
  function row(each, of, flagged) {
    const line = document.createElement("tr"), bar = cell("");
    if (of) bar.append(made("progress", "", { max: of, value: Math.min(each.answers, of), ariaLabel: `${each.worker}: ${each.answers} of ${of}` }));
    const last = each.latest ? new Date(1000 * each.latest).toLocaleString([], { dateStyle: "short", timeStyle: "short" }) : "";
    const flag = flagged.get(each.worker) || "";
    line.append(made("th", each.worker, { scope: "row" }), bar, cell(of ? `${each.answers} of ${of}` : whole(each.answers), true), cell(each.catch_passed, true),
      cell(each.catch_failed, true), cell(last), cell(STATUS[each.ended]), made("td", flag, flag ? { className: "flag" } : {}));
    return line;
  }
  function list(people, of) {
    const flagged = flags(), rows = people.shown.map((each) => row(each, of, flagged)), body = byId("table-participants").tBodies[0];
    if (people.participants > people.shown.length) rows.push(made("tr", ""));
    if (rows.length > people.shown.length) rows[rows.length - 1].append(made("td", `and ${whole(people.participants - people.shown.length)} more: see the CSV`, { colSpan: HEADS.length }));
    const now = made("tbody", "");
    now.append(...rows);
    if (now.innerHTML !== body.innerHTML) body.replaceChildren(...rows);
  }

  // -- what the owner can do --------------------------------------------------------------------------------------------
  byId("pause").addEventListener("click", async () => {
    const body = JSON.stringify({ paused: !paused });
    try {
      await fetch("pause", { method: "POST", headers: { "Content-Type": "application/json" }, body });
      await look();
    } catch (gone) { byId("study-said").textContent = "The server cannot be reached; try again."; }
  });
  byId("study-links").addEventListener("submit", (event) => {
    event.preventDefault();
    const link = document.createElement("a");
    link.href = `links?n=${+byId("links-n").value}`;
    link.download = "links.csv";
    link.click();
  });
  async function look() {
    const asked = { cache: "no-store" };
    const [study, people] = await Promise.all(["study", "participants.json"].map(async (path) => (await fetch(path, asked)).json()));
    show(study);
    list(people, study.wanted_of_each);
  }
  async function follow() {
    if (!document.hidden) await look().catch(() => { byId("study-said").textContent = "The server cannot be reached. The figures may be out of date."; });
    setTimeout(follow, EVERY);
  }
  follow();
})();
