// The participant's page: one question after the other, each answer kept before the next one is shown.
"use strict";
const told = JSON.parse(document.body.dataset.told);
const words = told.words;
const filled = (text, numbers) => text.replace(/\{(\w+)\}/g, (_, name) => numbers[name]);
const by = (id) => document.getElementById(id);
const given = new URLSearchParams(location.search);
const kept = {
  get: (name) => { try { return localStorage.getItem(`${told.study}.${name}`); } catch { return null; } },
  set: (name, value) => { try { localStorage.setItem(`${told.study}.${name}`, value); } catch { /* private mode */ } },
};
const AHEAD = 3; // questions that lie ready here
const LONG = 60; // characters of a text that needs the width of a phone
const LOOK = 5000; // milliseconds between two looks whether a pause is over
const TOO_SOON = 250; // milliseconds after a question has come in which nobody has looked: a double click ends there
const queue = [], known = new Set();
let current = null, chosen = [], since = 0, busy = false, fetching = null, last = {};

function workerCode() {
  const named = given.get(told.workerFrom) || given.get("worker") || kept.get("worker");
  if (named) return named;
  const made = Array.from(crypto.getRandomValues(new Uint8Array(6)), (b) => b.toString(16).padStart(2, "0")).join("");
  kept.set("worker", made);
  return made;
}
const worker = workerCode(), key = given.get("key") || "";

function show(id) {
  for (const each of document.querySelectorAll("section")) each.hidden = each.id !== id;
  const head = by(id).querySelector("h2");
  if (head) head.focus();
}
const say = (text) => { by("said").textContent = text; };

// A request that is repeated until the server takes it; what it refuses for good comes back with its status.
async function ask(path, body) {
  const parameters = new URLSearchParams(key ? { key } : {});
  for (let pause = 500; ; pause = Math.min(2 * pause, 8000)) {
    try {
      const [bare, query] = path.split("?");
      for (const [name, value] of new URLSearchParams(query || "")) parameters.set(name, value);
      const asked = body === undefined ? {} : {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
      };
      const answer = await fetch(`${bare}?${parameters}`, { cache: "no-store", ...asked });
      if (answer.status < 500 && answer.status !== 429) {
        say("");
        return { status: answer.status, ...(await answer.json()) };
      }
    } catch { /* the network */ }
    say(words.no_connection);
    await new Promise((done) => setTimeout(done, pause));
  }
}

async function more(again) {
  if (fetching) return fetching;
  const query = new URLSearchParams({ worker, n: AHEAD, ...(again ? { again: 1 } : {}) });
  fetching = ask(`questions?${query}`);
  const said = await fetching;
  fetching = null;
  last = said;
  if (said.consent === "needed") { show("consent"); return said; }
  if (said.status >= 400) { say(words[said.refused] || words.refused); return said; }
  for (const each of said.questions) {
    if (known.has(each.id)) continue;
    known.add(each.id);
    each.show = said.show;
    queue.push(each);
    for (const name of names(each)) if (isPicture(said.show[name])) new Image().src = said.show[name].from;
  }
  return said;
}
const names = (each) => (each.anchor === undefined ? each.objects : [each.anchor, ...each.shown]);
const isPicture = (what) => what && what.media && what.media.startsWith("image/");

async function next() {
  if (!queue.length) await more(false);
  if (!queue.length && !last.ended) await more(true); // what another tab was sent and left
  if (!queue.length && last.paused) {
    show("paused");
    return void setTimeout(next, LOOK);
  }
  if (!queue.length) return ended();
  draw(queue.shift());
  if (queue.length < 2 && !last.ended) more(false);
}

function ended() {
  if (last.status >= 400) return;
  if (last.ended === "excluded") return show("excluded");
  if (!last.ended) return void setTimeout(next, 2000);
  if (last.code) {
    by("code").hidden = false;
    by("code-text").textContent = last.code;
  }
  show("end");
}

// What is shown of an object: never its name, unless that is what is shown.
function drawn(what, label) {
  if (isPicture(what)) {
    const image = document.createElement("img");
    image.alt = what.text || label;
    image.src = what.from;
    image.draggable = false;
    image.addEventListener("load", () => sized(image));
    if (image.complete) sized(image);
    const box = document.createElement("div");
    box.className = "picture";
    box.append(image);
    return [box];
  }
  if (what.media) {
    const sound = document.createElement("audio");
    sound.controls = true;
    sound.preload = "auto";
    sound.src = what.from;
    sound.setAttribute("aria-label", `${label}: ${words.sound}`);
    return [sound];
  }
  const text = document.createElement("span");
  text.className = "shown text";
  text.textContent = what.text;
  return [text];
}

// How much of its box a picture takes: as much as every other one of the study, or by its own size.
function sized(image) {
  const { size, fill, largest } = told.pictures, wide = image.naturalWidth, high = image.naturalHeight;
  if (!wide || !high) return;
  if (size === "natural") {
    image.style.width = `min(${wide}px, ${100 * wide / largest}%)`;
    image.style.height = `min(${high}px, ${100 * high / largest}%)`;
    return;
  }
  const across = Math.sqrt(fill * wide / high), up = Math.sqrt(fill * high / wide), least = Math.max(across, up, 1);
  image.style.width = `${100 * across / least}%`;
  image.style.height = `${100 * up / least}%`;
}

// The largest boxes that the screen has room for, in as many columns as make them largest.
function fit() {
  if (!current) return;
  const n = by("choices").children.length, wide = by("trial").clientWidth, anchored = by("anchor").childElementCount;
  let best = { side: 0, columns: 1 };
  for (let columns = 1; columns <= n; columns += 1) {
    const rows = Math.ceil(n / columns), room = innerHeight - 210 - 70 * rows;
    const side = Math.min((wide - 15 * (columns - 1)) / columns - 26, room / (rows + (anchored ? 1 : 0)), 320);
    if (side > best.side) best = { side, columns };
  }
  by("trial").style.setProperty("--side", `${Math.floor(Math.max(best.side, Math.min(96, wide / 3)))}px`);
  by("trial").style.setProperty("--columns", best.columns);
}
addEventListener("resize", fit);

function draw(each) {
  current = each;
  chosen = [];
  by("question").textContent = told.question;
  by("anchor").replaceChildren(...(each.anchor === undefined ? [] : drawn(each.show[each.anchor], words.anchor)));
  const shown = each.anchor === undefined ? each.objects : each.shown;
  by("choices").replaceChildren(...shown.map((name, place) => choice(name, place, each)));
  const whats = shown.map((name) => each.show[name]);
  by("choices").classList.toggle("pictures", whats.some(isPicture));
  by("choices").classList.toggle("sounds", whats.some((what) => what.media && !isPicture(what)));
  by("choices").classList.toggle("long", whats.some((what) => !what.media && what.text.length > LONG));
  by("go").hidden = each.choose < 2;
  const of = last.of, done = last.answered || 0;
  by("bar").hidden = !of;
  by("bar").value = of ? done / of : 0;
  by("far").textContent = of ? filled(words.far, { n: Math.min(done + 1, of), of }) : `${done + 1}`;
  show("trial");
  fit();
  since = performance.now();
}

function choice(name, place, each) {
  const box = document.createElement("div"), button = document.createElement("button"), what = each.show[name];
  const number = document.createElement("span");
  box.className = "choice";
  number.className = "number";
  number.textContent = String(place + 1);
  const inner = drawn(what, filled(words.choice, { n: place + 1 }));
  if (what.media && !isPicture(what)) {
    box.append(...inner); // a player is no part of a button
    number.textContent = filled(words.choose, { n: place + 1 });
    button.append(number);
  } else button.append(...inner, number);
  if (each.choose > 1) button.setAttribute("aria-pressed", "false");
  button.addEventListener("click", () => pick(name, button));
  box.append(button);
  return box;
}

function pick(name, button) {
  if (busy || !current || performance.now() - since < TOO_SOON) return;
  if (current.choose < 2) {
    button.classList.add("chosen");
    return void send([name]);
  }
  chosen = chosen.includes(name) ? chosen.filter((each) => each !== name) : [...chosen, name].slice(-current.choose);
  const shown = current.anchor === undefined ? current.objects : current.shown;
  by("choices").querySelectorAll("button").forEach((each, at) => each.setAttribute("aria-pressed", String(chosen.includes(shown[at]))));
}

async function send(names) {
  busy = true;
  const seconds = (performance.now() - since) / 1000;
  for (const each of by("choices").querySelectorAll("button")) each.setAttribute("aria-disabled", "true");
  const said = await ask("answers", { id: current.id, worker, chosen: names, seconds });
  busy = false;
  current = null;
  if (said.answered !== undefined) last = { ...last, ...said };
  if (said.ended) return ended();
  await next();
  if (said.status >= 400) say(words.closed);
}

by("go").addEventListener("click", () => {
  if (!busy && current && chosen.length === current.choose) send(chosen);
  else if (current) say(filled(words.please_choose, { n: current.choose }));
});
document.addEventListener("keydown", (event) => {
  if (by("trial").hidden || busy || event.repeat || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.target instanceof HTMLAudioElement) return;
  const buttons = by("choices").querySelectorAll("button");
  const arrow = buttons.length === 2 && current && current.choose < 2 ? { ArrowLeft: 0, ArrowRight: 1 }[event.key] : undefined;
  const at = /^[1-9]$/.test(event.key) ? Number(event.key) - 1 : arrow;
  if (at !== undefined && buttons[at]) {
    event.preventDefault();
    buttons[at].click();
  }
});
if (by("agree")) {
  by("agree").addEventListener("click", async () => {
    const said = await ask("consent", { worker });
    if (said.consented) await start();
    else say(words[said.refused] || words.refused);
  });
  by("decline").addEventListener("click", () => show("declined"));
  by("reconsider").addEventListener("click", () => show("consent"));
}
by("copy").addEventListener("click", async () => {
  const code = by("code-text");
  try { await navigator.clipboard.writeText(code.textContent); } catch { // not over plain HTTP: what is selected can be copied
    getSelection().selectAllChildren(code);
    document.execCommand("copy");
  }
  say(words.copied);
});
by("begin").addEventListener("click", async () => {
  kept.set("begun", "1");
  await more(true);
  await next();
});
async function start() {
  const said = await more(true); // says at once whether there is anything to do
  if (said.status >= 400 || said.consent) return;
  if (said.ended) return ended();
  if (said.paused) {
    show("paused");
    return void setTimeout(start, LOOK);
  }
  show("instructions");
}
start();
