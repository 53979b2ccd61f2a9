// The quiz of a chapter. Questions, keys and reasons are those that `make quiz-NN` asks from; answers and score stay in
// this browser.
(() => {
  "use strict";
  const key = stage => `softmax-workbook-quiz-${stage}`;
  const store = {
    get(stage) {
      try { return JSON.parse(localStorage.getItem(key(stage))) || {}; } catch { return {}; }
    },
    set(stage, state) {
      try { localStorage.setItem(key(stage), JSON.stringify(state)); } catch { /* private windows keep nothing */ }
    },
  };
  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };

  /// {right, reason}, or nothing if the text is no answer.
  function judge(question, answer) {
    if (question.choices) {
      const choice = question.choices[answer];
      return choice && {right: choice.right, reason: choice.reason};
    }
    const text = String(answer ?? "").trim();
    const value = Number(text);
    if (text === "" || !Number.isFinite(value)) return undefined;
    const near = target => Math.abs(value - target.value) <= target.within;
    if (near(question.number)) return {right: true, reason: question.number.reason};
    const trap = question.traps.find(near);
    return {right: false, reason: trap ? trap.reason : question.miss};
  }

  class Quiz {
    constructor(box) {
      this.box = box;
      this.data = JSON.parse(box.querySelector("script").textContent);
      this.state = {gpu: this.data.gpus[0].key, answers: {}, ...store.get(this.data.stage)};
      if (!this.data.gpus.some(gpu => gpu.key === this.state.gpu)) this.state.gpu = this.data.gpus[0].key;
      this.show();
    }

    questions() {
      return this.data.questions.map(q => q.all || q[this.state.gpu]);
    }

    save() {
      const questions = this.questions();
      const verdicts = questions.map(q => judge(q, this.state.answers[q.id]));
      this.state.right = verdicts.filter(v => v && v.right).length;
      this.state.total = questions.length;
      store.set(this.data.stage, this.state);
      const answered = verdicts.filter(Boolean).length;
      this.score.textContent = answered ? `${this.state.right} of ${questions.length} right, ${answered} answered` :
                                          `${questions.length} questions`;
    }

    show() {
      this.box.querySelectorAll(":scope > :not(script)").forEach(old => old.remove());
      this.score = make("p", {className: "score"});
      this.score.setAttribute("role", "status");
      const bar = make("div", {className: "bar"}, this.score);
      if (this.data.questions.some(q => !q.all)) {
        const select = make("select");
        for (const gpu of this.data.gpus) select.append(make("option", {value: gpu.key, textContent: gpu.name}));
        select.value = this.state.gpu;
        select.addEventListener("change", () => { this.state.gpu = select.value; this.show(); this.box.querySelector("select").focus(); });
        bar.append(make("label", {}, "about the GPU ", select));
      }
      const again = make("button", {type: "button", textContent: "Start again"});
      again.addEventListener("click", () => { this.state.answers = {}; this.show(); });
      bar.append(again);
      this.box.append(bar, ...this.questions().map((q, i) => this.form(q, i)));
      this.save();
    }

    form(question, index) {
      const name = `${this.data.stage}-${question.id}`;
      const verdict = make("p", {className: "verdict"});
      verdict.setAttribute("aria-live", "polite");
      const fields = make("fieldset", {}, make("legend", {textContent: `${index + 1}. ${question.ask}`}));
      const given = this.state.answers[question.id];
      if (question.choices) {
        question.choices.forEach((choice, i) => {
          const input = make("input", {type: "radio", name, value: String(i), checked: given === String(i)});
          fields.append(make("label", {className: "choice"}, input, make("span", {textContent: choice.text})));
        });
      } else {
        const input = make("input", {type: "text", name, inputMode: "decimal", autocomplete: "off", value: given ?? ""});
        fields.append(make("label", {className: "number"}, "a number ", input));
      }
      const form = make("form", {noValidate: true}, fields, make("button", {type: "submit", textContent: "Check"}), verdict);
      const tell = () => {
        const v = judge(question, this.state.answers[question.id]);
        verdict.className = `verdict ${v ? (v.right ? "right" : "wrong") : ""}`;
        verdict.replaceChildren(...(v ? [make("strong", {textContent: v.right ? "Right. " : "Wrong. "}), v.reason] : []));
      };
      form.addEventListener("submit", event => {
        event.preventDefault();
        const answer = new FormData(form).get(name);
        if (!judge(question, answer)) {
          verdict.className = "verdict";
          verdict.textContent = question.choices ? "Choose an answer first." : "Write a number.";
          return;
        }
        this.state.answers[question.id] = answer;
        tell();
        this.save();
      });
      tell();
      return form;
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".quiz").forEach(box => new Quiz(box));
    document.querySelectorAll(".map .score").forEach(place => {
      const {right, total, answers} = store.get(place.dataset.stage);
      if (answers && Object.keys(answers).length) place.textContent = `${right}/${total}`;
    });
  });
})();
