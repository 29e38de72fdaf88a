"use strict";
const KEY = `unprior-labels:${document.body.dataset.known}`;
const fields = [...document.querySelectorAll("fieldset")];
const progress = document.getElementById("progress");

// A browser may forbid to keep anything; labels can then be saved all the same.
const stored = () => { try { return JSON.parse(localStorage.getItem(KEY)) ?? {}; } catch { return {}; } };
const keep = (labels) => { try { localStorage.setItem(KEY, JSON.stringify(labels)); } catch { /* see above */ } };

function answerOf(field) {
  const chosen = field.querySelector("input[type=radio]:checked");
  if (chosen.dataset.kind === "other") return field.querySelector("input[type=text]").value.trim();
  return chosen.value;
}

function choose(field, answer) {
  const radios = [...field.querySelectorAll("input[type=radio]")];
  let found = radios.find((radio) => radio.dataset.kind !== "other" && radio.value === answer);
  const other = radios.find((radio) => radio.dataset.kind === "other");
  if (!found && other && answer) {
    found = other;
    field.querySelector("input[type=text]").value = answer;
  }
  if (found) found.checked = true;
}

const labels = () => fields.map((field) => ({ example: field.dataset.id, answer: answerOf(field) }));

function tell() {
  const done = fields.filter((field) => answerOf(field) !== "").length;
  progress.textContent = `${done} of ${fields.length} labelled`;
}

function changed() {
  keep(Object.fromEntries(labels().map((each) => [each.example, each.answer])));
  tell();
}

const before = stored();
for (const field of fields) choose(field, before[field.dataset.id] ?? field.dataset.answer);
tell();

document.addEventListener("change", changed);
document.addEventListener("input", (event) => {
  if (event.target.type !== "text") return;
  event.target.closest("label").querySelector("input[type=radio]").checked = true;
  changed();
});

document.getElementById("next").addEventListener("click", () => {
  const open = fields.find((field) => answerOf(field) === "");
  if (!open) return;
  open.scrollIntoView({ block: "start" });
  open.querySelector("input[type=radio]").focus({ preventScroll: true });
});

function save(text, ending, kind) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = `${document.body.dataset.file}.labels.${ending}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// As the sheet is written: no formulas, and quotes around what needs them.
function cell(text) {
  const guarded = /^'*[=+\-@\t\r\n＝＋－＠]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded;
}

document.getElementById("csv").addEventListener("click", () => {
  const lines = labels().map((each) => `${cell(each.example)},${cell(each.answer)}\r\n`);
  save(`\ufeffexample,answer\r\n${lines.join("")}`, "csv", "text/csv");
});

document.getElementById("jsonl").addEventListener("click", () => {
  save(labels().map((each) => `${JSON.stringify(each)}\n`).join(""), "jsonl", "application/jsonl");
});
