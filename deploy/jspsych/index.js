// A jsPsych trial whose question comes from a study of `stream-engine collect`, and whose answer is counted there.
// In a page: load after jsPsych; the plugin is then `jsPsychStreamEngine`. In a bundle: require it.
(function (root, make) {
  if (typeof module === "object" && module.exports) module.exports = make(require("jspsych"));
  else root.jsPsychStreamEngine = make(root.jsPsychModule);
})(globalThis, function (jspsych) {
  "use strict";
  const { ParameterType } = jspsych;
  const info = {
    name: "stream-engine",
    version: "0.1.0",
    parameters: {
      server: { type: ParameterType.STRING, default: undefined },
      worker: { type: ParameterType.STRING, default: undefined },
      key: { type: ParameterType.STRING, default: "" },
      consented: { type: ParameterType.BOOL, default: false },
      prompt: { type: ParameterType.HTML_STRING, default: "" },
      waiting: { type: ParameterType.STRING, default: "No connection. Trying again …" },
      button_label: { type: ParameterType.STRING, default: "Continue" },
    },
    data: {
      id: { type: ParameterType.STRING },
      type_of_question: { type: ParameterType.STRING },
      chosen: { type: ParameterType.STRING, array: true },
      rt: { type: ParameterType.INT },
      counted: { type: ParameterType.INT },
      refused: { type: ParameterType.STRING },
      ended: { type: ParameterType.STRING },
      code: { type: ParameterType.STRING },
    },
  };
  const FIRST_PAUSE = 500, LONGEST_PAUSE = 8000; // milliseconds between requests while the study cannot be reached
  const NO_QUESTION_YET = 1000; // milliseconds until a study that has no question at the moment is asked again
  const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
  const element = (name, more = {}) => Object.assign(document.createElement(name), more);

  class StreamEnginePlugin {
    static info = info;

    constructor(jsPsych) {
      this.jsPsych = jsPsych;
    }

    async trial(display, trial, on_load) {
      const said = await this.question(display, trial);
      if (said.refused || said.ended || !said.questions.length) {
        return this.finish({ refused: said.refused || "", ended: said.ended || "refused", code: said.code || "" });
      }
      const { id, type, choose, ...question } = said.questions[0];
      const began = performance.now();
      const choosing = this.chosen(display, trial, said.questions[0], said.show);
      on_load();
      const chosen = await choosing;
      const rt = Math.round(performance.now() - began);
      const body = { id, worker: trial.worker, chosen, seconds: rt / 1000 };
      const answer = await this.request(display, trial, "answers", {}, body);
      this.finish({
        ...question, id, type_of_question: type, chosen, rt, counted: answer.counted || 0, refused: answer.refused || "",
        ended: answer.ended || "", code: answer.code || "",
      });
    }

    finish(data) {
      this.jsPsych.finishTrial(data);
    }

    // The next question. A participant who reloads the page gets the one that was not answered.
    async question(display, trial) {
      for (;;) {
        const said = await this.request(display, trial, "questions", { worker: trial.worker, n: 1, again: 1 });
        if (said.consent === "needed") {
          if (!trial.consented) return { refused: "consent" };
          const agreed = await this.request(display, trial, "consent", {}, { worker: trial.worker });
          if (agreed.refused) return agreed;
        } else if (said.refused || said.ended || said.questions.length) return said;
        else await wait(NO_QUESTION_YET);
      }
    }

    // A request that is repeated until the study takes it or refuses it for good.
    async request(display, trial, path, query, body) {
      const given = new URLSearchParams({ ...query, ...(trial.key ? { key: trial.key } : {}) });
      const sent = body === undefined ? {} : {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
      };
      for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
        try {
          const answer = await fetch(`${trial.server.replace(/\/$/, "")}/${path}?${given}`, { cache: "no-store", ...sent });
          if (answer.status < 500 && answer.status !== 429) return await answer.json();
        } catch { /* the network */ }
        const status = display.querySelector("[role=status]") || display.appendChild(element("p", { role: "status" }));
        status.textContent = trial.waiting;
        await wait(pause);
      }
    }

    // What the participant selects, as names of objects.
    chosen(display, trial, question, show) {
      const names = question.anchor === undefined ? question.objects : question.shown;
      const drawn = (name, label) => this.drawn(trial, show[name], label);
      const anchor = element("div", { id: "jspsych-stream-engine-anchor" });
      if (question.anchor !== undefined) anchor.append(drawn(question.anchor, "anchor"));
      const choices = element("div", { id: "jspsych-stream-engine-choices" });
      display.replaceChildren(element("div", { innerHTML: trial.prompt }), anchor, choices);
      return new Promise((done) => {
        let selected = [];
        const buttons = names.map((name, place) => {
          const button = element("button", { className: "jspsych-btn" }), what = show[name];
          const sound = what.media && !what.media.startsWith("image/");
          button.append(sound ? String(place + 1) : drawn(name, `choice ${place + 1}`));
          button.addEventListener("click", () => {
            if (question.choose < 2) return done([name]);
            selected = selected.includes(name) ? selected.filter((each) => each !== name) : [...selected, name];
            selected = selected.slice(-question.choose);
            buttons.forEach((each, at) => each.setAttribute("aria-pressed", String(selected.includes(names[at]))));
            go.disabled = selected.length < question.choose;
          });
          const box = element("div", { style: "display: inline-block; margin: 8px" });
          box.append(...(sound ? [drawn(name, `choice ${place + 1}`)] : []), button); // a player is no part of a button
          choices.append(box);
          return button;
        });
        const go = element("button", { className: "jspsych-btn", textContent: trial.button_label, disabled: true });
        go.addEventListener("click", () => done(selected));
        if (question.choose > 1) display.append(go);
      });
    }

    // A picture, a player, or a text; never the object's name, unless that is what the study shows.
    drawn(trial, what, label) {
      const from = what.from && `${trial.server.replace(/\/$/, "")}/${what.from}`;
      if (what.media && what.media.startsWith("image/")) {
        return element("img", { src: from, alt: what.text || label, style: "max-width: 40vw; max-height: 40vh" });
      }
      if (what.media) {
        const sound = element("audio", { src: from, controls: true });
        sound.setAttribute("aria-label", label);
        return sound;
      }
      return element("span", { textContent: what.text });
    }
  }
  return StreamEnginePlugin;
});
