// The page of `unprior serve`: takes an image and a question, asks, and hands the reply to answer.js.

import { $, GAP, show } from "./answer.js";

const examples = JSON.parse($("examples").textContent);
const { model, maxBytes } = document.body.dataset;
const TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"];
let image = null; // {url, type, name, address, turn}; address: of an example
let images = 0; // images that were begun to be read; the last one counts
let asking = null; // {key, abort} of the request that is under way
let answered = null; // key of the request whose answer is shown

function tellProblem(message, field = null) {
  $("problem").textContent = message;
  for (const id of ["text", "candidates", "file"]) $(id).setAttribute("aria-invalid", String(id === field));
}

// ---- the image -----------------------------------------------------------------------------------------------------

function dataUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = reject;
    reader.readAsDataURL(file);
  });
}

// Take an image unless another one was begun to be read meanwhile; whether it was taken.
async function takeImage(file, name, about, address = null) {
  const turn = (images += 1);
  const blob = await file;
  const url = await dataUrl(blob);
  if (turn !== images) return false;
  image = { url, type: blob.type, name, address, turn };
  $("preview").src = url;
  $("preview").alt = about;
  $("preview").hidden = false;
  $("hint").hidden = true;
  $("file-name").textContent = name;
  tellProblem("");
  press(null);
  markStale();
  return true;
}

function readFile(file) {
  if (!file || !TYPES.includes(file.type)) {
    return tellProblem("This is no image that can be read; give a PNG, JPEG, WEBP or GIF file.", "file");
  }
  if (file.size > Number(maxBytes)) {
    const most = Math.floor(Number(maxBytes) / 1e6);
    return tellProblem(`The image has more than ${most} MB; give a smaller one.`, "file");
  }
  const name = file.name || "image.png";
  takeImage(file, name, `the chosen image, ${name}`).catch(() => tellProblem("The file cannot be read.", "file"));
}

$("preview").addEventListener("error", () => tellProblem("This image cannot be shown; it may be damaged.", "file"));
$("file").addEventListener("change", () => {
  if ($("file").files.length) readFile($("file").files[0]); // none where the choice was cancelled
});
// A file that is dropped beside the box would otherwise replace the page.
const hasFiles = (event) => event.dataTransfer.types.includes("Files");
document.addEventListener("dragover", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  $("drop").classList.add("over");
});
document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) $("drop").classList.remove("over");
});
document.addEventListener("drop", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  $("drop").classList.remove("over");
  readFile(event.dataTransfer.files[0]);
});
document.addEventListener("paste", (event) => {
  const file = [...event.clipboardData.files].find((each) => each.type.startsWith("image/"));
  const isText = event.target.matches("textarea") && event.clipboardData.types.includes("text/plain");
  if (!file || isText) return;
  event.preventDefault();
  readFile(file);
});

// ---- the question --------------------------------------------------------------------------------------------------

const kind = () => document.querySelector("input[name=kind]:checked").value;

function setKind(value) {
  document.querySelector(`input[name=kind][value=${value}]`).checked = true;
  $("choices").hidden = value !== "choice";
}

const buttons = [...document.querySelectorAll(".example")];

function press(place) {
  buttons.forEach((button, other) => button.setAttribute("aria-pressed", String(other === place)));
}

async function askExample(place) {
  const example = examples[place];
  const address = new URL(example.image, location).href;
  const file = fetch(address).then((reply) => (reply.ok ? reply.blob() : Promise.reject(reply.status)));
  try {
    if (!(await takeImage(file, `example: ${example.about}`, example.about, address))) return;
  } catch {
    return tellProblem("The example cannot be loaded. Is the server still running?");
  }
  $("text").value = example.question;
  $("candidates").value = example.candidates.join("\n");
  setKind(example.kind);
  press(place);
  ask(example);
}

buttons.forEach((button, place) => {
  button.addEventListener("click", (event) => {
    if (event.detail < 2) askExample(place); // the second click of a double one asks nothing new
  });
});

function questionAsked() {
  const question = { type: kind(), instructions: $("text").value.trim() };
  if (question.type === "choice") {
    const lines = $("candidates").value.split("\n").map((line) => line.trim());
    question.choices = lines.filter(Boolean).map((value) => ({ value }));
  }
  return question;
}

function requestBody(url) {
  const input = [{ role: "user", content: [{ type: "input_image", image_url: url }] }];
  const extras = $("calibrator") ? { unprior: { calibrator: $("calibrator").value } } : {};
  return { model, input, questions: [questionAsked()], ...extras };
}

// What tells requests apart.
const requestKey = () => JSON.stringify([requestBody(""), image?.turn]);

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
$("send").addEventListener("click", (event) => {
  if (event.detail > 1) event.preventDefault();
});
$("ask").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) ask();
});
$("ask").addEventListener("input", () => {
  setKind(kind());
  tellProblem("");
  markStale();
});

async function ask(example = null) {
  const key = requestKey();
  if (asking?.key === key) return;
  tellProblem("");
  const question = questionAsked();
  if (!image) return tellProblem("Choose an image first.", "file");
  if (!question.instructions) return tellProblem("Ask a question.", "text");
  if (question.choices?.length < 2) {
    return tellProblem("Give at least two answers to choose from, one a line.", "candidates");
  }
  asking?.abort.abort(); // a later request replaces one that is under way
  const own = (asking = { key, abort: new AbortController() });
  const request = { image, question, example, form: requestBody(GAP) };
  $("answer").setAttribute("aria-busy", "true");
  $("send").textContent = "Asking …";
  const started = performance.now();
  let reply = null;
  let content = null;
  try {
    reply = await fetch("v1/decisions", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(requestBody(image.url)),
      signal: own.abort.signal,
    });
    content = await reply.json();
  } catch {
    // told below: there is no reply, or it is none of this server
  }
  if (asking !== own) return;
  asking = null;
  $("answer").setAttribute("aria-busy", "false");
  $("send").textContent = "Ask";
  if (!reply) return tellProblem("The server does not answer. Is it still running?");
  if (!reply.ok || !content) return tellRefusal(content?.error, reply.status);
  const [answer] = content.answers;
  if (answer.type === "refusal") return tellProblem(answer.unprior.explanation);
  answered = key;
  show(answer, content.unprior, request, performance.now() - started);
  markStale();
}

// A message of the server in the words of the page.
function tellRefusal(error, status) {
  if (!error) return tellProblem(`The server answered with status ${status} and no reason.`);
  const fields = { input: "file", "questions[0].instructions": "text", "questions[0].choices": "candidates" };
  const words = error.message
    .replaceAll(/questions\[0\]\.choices\[(\d+)\]/g, (_, place) => `answer ${Number(place) + 1}`)
    .replace("questions[0].choices", "answers")
    .replace("questions[0].instructions", "question")
    .replace(/^input(?=: )/, "image");
  const field = fields[error.param?.replace(/(choices)\[\d+\]$/, "$1")];
  tellProblem(`${words[0].toUpperCase()}${words.slice(1)}.`, field);
}

// A result stands beside the question that it answers, or says that it does not.
function markStale() {
  const stale = answered !== null && answered !== requestKey();
  $("result").classList.toggle("old", stale);
  $("stale").textContent = stale ? "to an earlier question; ask again for this one" : "";
  if (stale) press(null);
}

setKind(kind());
press(null);
