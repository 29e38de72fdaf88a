// The answer on the page: verdict, λ and scores, and the same request as a program. Nothing here asks the server.

import { clipped, corrected, firstPlaces, shares, winner } from "./lambda.js";

export const $ = (id) => document.getElementById(id);
export const GAP = "\u0000"; // where the image goes, in a request that is shown
const MAX_STRENGTH = 2;
const SHOWN = 60; // characters of an answer in a sentence
const BRIEF = 24; // and in the one that changes with λ, which has its place and no more
let shown = null; // what the slider works on

const named = (value) => (value === true ? "yes" : value === false ? "no" : value);
const number = (value, digits = 2) => value.toFixed(digits).replace("-", "−");

// An answer or question inside a sentence: plain text that keeps its own direction of writing.
function quote(text, longest = SHOWN) {
  const letters = [...text];
  const element = document.createElement("bdi");
  element.textContent = letters.length > longest ? `“${letters.slice(0, longest).join("")}…”` : `“${text}”`;
  return element;
}

export function show(answer, served, request, milliseconds) {
  const told = answer.unprior;
  const rows = told.candidates ?? [];
  const raw = rows.map((row) => row.without_image);
  const sent = answer.type === "predicate" ? answer.probability > 0.5 : answer.choice;
  shown = {
    told,
    served,
    raw,
    sent: named(sent),
    original: named(told.original),
    names: rows.map((row) => named(row.value)),
    image: rows.map((row) => row.with_image),
    usable: rows.length > 1 && !raw.includes(null), // to subtract from
    prior: clipped(raw, told.clip),
    decides: told.proposal !== null, // whether the calibrator has a λ for this question
    own: told.proposal === null ? 0 : told.strength,
  };
  const asked = quote(request.question.instructions, Infinity);
  $("about").replaceChildren("Asked: ", asked, ...exampleWords(request.example, served.mode === "observe"));
  $("verdict").replaceChildren(...verdict());
  $("why").textContent = told.explanation ?? REASONS[told.reason] ?? "";
  const clip = ` Of this open question, those without the image count as at most ${told.clip} below their best.`;
  $("clip").textContent = told.clip === null ? "" : clip;
  $("strength").max = Math.max(MAX_STRENGTH, Math.ceil(shown.own * 2.5) / 2);
  $("reset").textContent = shown.decides ? "Back to the calibrator's λ" : "Back to λ = 0";
  document.querySelector(".dial").hidden = !shown.usable;
  $("scores").hidden = !rows.length;
  drawTrack();
  drawTable();
  setStrength(shown.own);
  $("cost").textContent =
    `The model was asked ${callWords(served.prior_cache, request.question.type)}` +
    `${served.upstream_calls ? ` (${served.upstream_calls} calls of the server behind)` : ""}. ` +
    `${Math.round(milliseconds)} ms, of which ${Math.round(1000 * served.seconds)} ms in the server.`;
  writeCode(request);
  $("empty").hidden = true;
  $("result").hidden = false;
  const { top } = $("answer").getBoundingClientRect();
  const smooth = matchMedia("(prefers-reduced-motion: no-preference)").matches;
  if (top < 0 || top > innerHeight - 320) $("answer").scrollIntoView({ behavior: smooth ? "smooth" : "auto" });
}

function callWords(cached, kind) {
  if (kind === "open") return "to propose answers, and to score them with the image and without";
  if (cached === "miss") return "twice, with the image and without";
  return `once, with the image${cached === "hit" ? "; what it says without was known from before" : ""}`;
}

// What an example is about, and what the calibrator does to the answer, or would do.
function exampleWords(example, observed) {
  if (!example) return [];
  const words = {
    repaired: `${observed ? "would repair" : "repairs"} the model's answer, which is wrong.`,
    harmed: `${observed ? "would harm" : "harms"} the model's answer, which is right.`,
    kept: `${observed ? "would leave" : "leaves"} the model's answer alone, which is right.`,
  };
  return [` The image shows ${example.about}: the calibrator ${words[example.label]}`];
}

// What goes out, and what the calibrator has to do with it.
function verdict() {
  const { told, served, sent, original } = shown;
  const out = [quote(sent), " goes out. "];
  const none = "The model named none of the answers; ";
  if (told.decision === "revised") {
    if (original === null) return [...out, none, "the calibrator chose this one."];
    return [...out, "The calibrator changed the model's answer ", quote(original), "."];
  }
  if (original === null) out.push(none, "this one has the highest score. ");
  if (told.decision === "would_revise") {
    const proposal = quote(named(told.proposal));
    return [...out, "The calibrator would change it to ", proposal, ", but this server only observes."];
  }
  if (told.reason in REASONS) return out;
  return [...out, served.mode === "observe" ? "The calibrator would keep it." : "The calibrator kept it."];
}

const REASONS = {
  no_calibrator: "It is the model's own answer: there is no calibrator to change it.",
  prior_unavailable: "It is the model's own answer: the scores without the image could not be had.",
  scores_unavailable: "It is the model's own answer: the scores could not be had.",
  censored_scores: "It is the model's own answer: some scores are only bounds.",
};

// Put an element from one strength to another on the track.
function lay(element, from, to = from) {
  const end = Number($("strength").max);
  const part = (value) => String(Math.min(Math.max(value ?? end, 0), end) / end);
  element.style.setProperty("--from", part(from));
  element.style.setProperty("--to", part(to));
  return element;
}

function drawTrack() {
  const { told, names, image: withImage, prior, usable } = shown;
  const end = Number($("strength").max);
  $("stable").hidden = !told.stable_range;
  $("own").hidden = !shown.decides;
  if (told.stable_range) lay($("stable"), ...told.stable_range);
  lay($("own"), shown.own).firstChild.textContent = `calibrator's λ = ${number(shown.own)}`;
  shown.parts = usable ? firstPlaces(withImage, prior).filter((part) => part.from < end) : [];
  $("firsts").replaceChildren(
    ...shown.parts.map((part) => {
      const element = lay(document.createElement("span"), part.from, part.to);
      element.textContent = names[part.place];
      element.title = names[part.place];
      return element;
    }),
  );
  $("ticks").replaceChildren(
    ...[0, 1, 2, 3, 4].map((quarter) => {
      const element = lay(document.createElement("span"), (end * quarter) / 4);
      element.textContent = String(Number(((end * quarter) / 4).toFixed(3)));
      return element;
    }),
  );
  const at = shown.parts.slice(1).map((part) => number(part.from, 3));
  const same = `The first place is the same at every λ up to ${end}.`;
  $("flips").replaceChildren(at.length ? `The first place changes at λ = ${at.join(" and ")}.` : same);
  if (told.stable_range && told.proposal !== null) {
    $("flips").append(" Shaded: where ", quote(named(told.proposal)), ", first at the calibrator's λ, stays first.");
  }
}

// The rows of the table; what depends on λ is filled in by draw().
function drawTable() {
  const { names, image: withImage, prior, raw, usable, original } = shown;
  const guess = usable ? winner(prior) : null;
  const heat = shown.told.temperature ?? 1;
  const [seen, blind] = [shares(withImage, heat), usable ? shares(raw, heat) : raw];
  $("scores").tBodies[0].replaceChildren(
    ...names.map((name, place) => {
      const row = document.createElement("tr");
      const head = document.createElement("th");
      head.scope = "row";
      const text = document.createElement("bdi");
      text.textContent = name;
      text.title = name;
      const mark = document.createElement("span");
      mark.className = "mark";
      const marks = { "the model's answer": name === original, "its guess without the image": place === guess };
      mark.textContent = Object.keys(marks).filter((words) => marks[words]).join(", ");
      head.append(text, mark);
      row.append(head, cell("with"), cell("without"), cell("corrected"));
      fill(row.cells[1], seen[place], withImage[place]);
      fill(row.cells[2], blind[place], raw[place]);
      return row;
    }),
  );
}

// An empty cell: share, score and bar.
function cell(side) {
  const data = document.createElement("td");
  data.className = side;
  const numbers = document.createElement("span");
  numbers.className = "numbers";
  numbers.append(document.createElement("span"), document.createElement("small"));
  const bar = document.createElement("span");
  bar.className = "bar";
  bar.append(document.createElement("i"));
  data.append(numbers, bar);
  return data;
}

function fill(data, share, score, isFirst = false) {
  const [text, small] = data.querySelector(".numbers").children;
  const missing = score === null || share === null;
  const percent = share < 0.005 ? "< 1 %" : `${Math.round(100 * share)} %`;
  text.textContent = missing ? "–" : isFirst ? `▲ ${percent}` : percent;
  small.textContent = missing ? "" : number(score);
  data.querySelector("i").style.width = missing ? "0" : `${100 * share}%`;
}

function setStrength(strength) {
  $("strength").value = strength; // rounded to a step there, exact here
  draw(strength);
}

function draw(strength) {
  const { names, image: withImage, prior, usable, original, parts } = shown;
  const values = usable ? corrected(withImage, prior, strength) : withImage.map(() => null);
  const parted = usable ? shares(values, shown.told.temperature ?? 1) : values;
  const best = winner(usable ? values : withImage);
  [...$("scores").tBodies[0].rows].forEach((row, place) => {
    row.classList.toggle("best", place === best);
    fill(row.cells[3], parted[place], values[place], usable && place === best);
  });
  $("value").textContent = number(strength);
  if (!usable) return;
  [...$("firsts").children].forEach((part, place) => {
    part.classList.toggle("here", strength >= parts[place].from && strength < parts[place].to);
  });
  let own = [", and not the model's own answer ", quote(original ?? "", BRIEF), "."];
  if (names[best] === original) own = [": the model's own answer."];
  if (original === null) own = ["; the model itself named none of the answers."];
  $("moved").replaceChildren(`At λ = ${number(strength)}, `, quote(names[best], BRIEF), " comes first", ...own);
}

$("strength").addEventListener("input", () => draw(Number($("strength").value)));
$("reset").addEventListener("click", () => setStrength(shown.own));

// ---- the same from a program ----------------------------------------------------------------------------------------

const PLAIN_NAME = /^[\p{L}\p{N} ._()+@,=<>&'"!$%#~^`;-]+$/u; // nothing that hides in a terminal
const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function writeCode(request) {
  const { form, image: used } = request;
  const name = PLAIN_NAME.test(used.name) ? used.name : "image.png";
  const [before, after] = JSON.stringify(form).split(JSON.stringify(GAP).slice(1, -1));
  const needsKey = "key" in document.body.dataset;
  const header = needsKey ? ` -H "Authorization: Bearer $UNPRIOR_SERVE_KEY"` : "";
  const key = needsKey ? `os.environ["UNPRIOR_SERVE_KEY"]` : `"none"`;
  const read = used.address ? `curl -s${header} ${shell(used.address)} | base64` : `base64 < ${shell(name)}`;
  const route = new URL("v1/decisions", location).href;
  const place = `Both read the image from the file ${name} in the folder where they run.`;
  $("from").textContent = used.address ? "Both fetch the image of the example from this server." : place;
  $("curl").textContent =
    `{ printf %s ${shell(`${before}data:${used.type};base64,`)}\n` +
    `  ${read} | tr -d '\\n'\n` +
    `  printf %s ${shell(after)}; } |\n` +
    `  curl ${shell(route)}${header} -H 'Content-Type: application/json' --data-binary @-\n`;
  const asked = JSON.stringify(used.address);
  const told = needsKey ? `urllib.request.Request(${asked}, headers={"Authorization": "Bearer " + client.api_key})` : asked;
  const content = used.address
    ? `urllib.request.urlopen(${told}).read()`
    : `pathlib.Path(${JSON.stringify(name)}).read_bytes()`;
  const extra = form.unprior ? `\n    extra_body={"unprior": ${JSON.stringify(form.unprior)}},` : "";
  $("python").textContent = `import base64, ${needsKey ? "os, " : ""}${used.address ? "urllib.request" : "pathlib"}
from openai import OpenAI

client = OpenAI(base_url=${JSON.stringify(new URL("v1", location).href)}, api_key=${key})
image = "data:${used.type};base64," + base64.b64encode(${content}).decode()
reply = client.decisions.create(
    model=${JSON.stringify(form.model)},
    input=[{"role": "user", "content": [{"type": "input_image", "image_url": image}]}],
    questions=${JSON.stringify(form.questions)},${extra}
)
print(reply.answers[0].unprior["explanation"])
print(reply.answers[0])
`;
}

for (const button of document.querySelectorAll("[data-copy]")) {
  const words = button.textContent;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText($(button.dataset.copy).textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren($(button.dataset.copy));
      button.textContent = "Selected; press Ctrl+C";
    }
    setTimeout(() => (button.textContent = words), 2000);
  });
}
