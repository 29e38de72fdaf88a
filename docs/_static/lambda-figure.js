// The λ figure: corrected scores are linear in λ, so every crossing is computed exactly. No request but for its examples.

const MAX_STRENGTH = 2;
const number = (value, digits = 2) => value.toFixed(digits).replace("-", "−");
const quote = (text) => `“${text}”`;
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

export const winner = (values) => values.indexOf(Math.max(...values));

export function centred(scores) {
  const middle = mean(scores);
  return scores.map((score) => score - middle);
}

export function corrected(image, prior, strength) {
  return image.map((score, place) => score - strength * prior[place]);
}

export function shares(scores) {
  const top = Math.max(...scores);
  const weights = scores.map((score) => Math.exp(score - top));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}

// The strength at which two candidates have the same corrected score.
export const crossing = (image, prior, one, other) => (image[one] - image[other]) / (prior[one] - prior[other]);

// Who is first from which strength to which, from 0 on; the last part has no end.
export function firstPlaces(image, prior) {
  const places = [...image.keys()];
  const above = (one, other) => image[one] - image[other] || prior[other] - prior[one];
  let place = places.reduce((best, other) => (above(other, best) > 0 ? other : best));
  const parts = [{ place, from: 0, to: Infinity }];
  for (;;) {
    const rivals = places.filter((other) => prior[other] < prior[place]);
    if (!rivals.length) return parts;
    const at = Math.min(...rivals.map((other) => crossing(image, prior, place, other)));
    // Of candidates that meet there, the one with the lowest prior is first from there on.
    place = rivals
      .filter((other) => crossing(image, prior, place, other) === at)
      .reduce((best, other) => (prior[other] < prior[best] ? other : best));
    parts.at(-1).to = at;
    parts.push({ place, from: at, to: Infinity });
  }
}

// What the gate makes of the corrected scores: which support condition holds, the margin, and whether it lets them pass.
export function gate(example, strength, minMargin) {
  const values = corrected(example.image, example.prior, strength);
  const proposal = winner(values);
  const [best, second] = shares(values).sort((one, other) => other - one);
  const original = example.candidates.indexOf(example.original);
  const [seen, blind] = [winner(example.image), winner(example.prior)];
  let condition = null;
  if (seen !== blind && proposal === seen) condition = "conflict";
  if (original === seen && seen === blind && proposal !== original) condition = "absorption";
  const margin = best - second;
  return { proposal, margin, condition, passes: proposal !== original && margin >= minMargin && condition !== null };
}

// ---- the page ---------------------------------------------------------------------------------------------------------

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// Put an element from one strength to another on the track.
function lay(made, from, to = from) {
  const part = (value) => String(Math.min(value, MAX_STRENGTH) / MAX_STRENGTH);
  made.style.setProperty("--from", part(from));
  made.style.setProperty("--to", part(to));
  return made;
}

const TEMPLATE = `
<fieldset class="lf-examples"><legend>Examples of the embedded model</legend><div></div></fieldset>
<div class="lf-panel">
  <p class="lf-about"></p>
  <p class="lf-verdict" aria-live="polite"></p>
  <label for="lf-strength">λ, how much of the prior is subtracted: <b class="lf-value"></b></label>
  <div class="lf-track">
    <span class="lf-own"><b></b></span>
    <span class="lf-stable"></span>
    <input id="lf-strength" type="range" min="0" max="${MAX_STRENGTH}" step="0.01" aria-describedby="lf-crossings">
    <div class="lf-firsts" aria-hidden="true"></div>
    <div class="lf-ticks" aria-hidden="true"></div>
  </div>
  <div class="lf-row"><p class="lf-margin lf-fine"></p><button type="button">Back to the calibrator's λ</button></div>
  <ul class="lf-fine" id="lf-crossings"></ul>
  <table>
    <caption>▲ comes first at this λ. Per cents and bars: shares among these answers. Small numbers: scores around their mean;
    corrected = with the image − λ × without.</caption>
    <thead><tr><th scope="col">answer</th><th scope="col">with the image</th><th scope="col">without</th><th scope="col">corrected</th></tr></thead>
    <tbody></tbody>
  </table>
  <p class="lf-why"></p>
</div>`;

function cell(side) {
  const numbers = element("span", { className: "lf-numbers" }, element("span"), element("small"));
  return element("td", { className: `lf-${side}` }, numbers, element("span", { className: "lf-bar" }, element("i")));
}

function fill(data, share, score, isFirst = false) {
  const [text, small] = data.querySelector(".lf-numbers").children;
  const percent = share < 0.005 ? "< 1 %" : `${Math.round(100 * share)} %`;
  text.textContent = isFirst ? `▲ ${percent}` : percent;
  small.textContent = number(score);
  data.querySelector("i").style.width = `${100 * share}%`;
}

export function start(root, { method, min_margin: minMargin, examples }) {
  root.innerHTML = TEMPLATE;
  const $ = (selector) => root.querySelector(selector);
  const slider = $("input[type=range]");
  let shown = null;

  function show(example) {
    const parts = firstPlaces(example.image, example.prior);
    shown = { ...example, parts, seen: centred(example.image), blind: centred(example.prior) };
    const own = parts.find((part) => example.candidates[part.place] === example.proposal);
    const kind = example.side === "cf" ? "unusual, a CF image" : "ordinary, a CS image";
    $(".lf-about").textContent = `${example.question} The image shows ${example.shows} (${kind}).`;
    lay($(".lf-stable"), own.from, own.to);
    lay($(".lf-own"), example.strength).firstChild.textContent = `calibrator's λ = ${number(example.strength)}`;
    const visible = parts.filter((part) => part.from < MAX_STRENGTH);
    $(".lf-firsts").replaceChildren(
      ...visible.map(({ place, from, to }) => {
        const name = example.candidates[place];
        return lay(element("span", { textContent: name, title: name }), from, to);
      }),
    );
    $("#lf-crossings").replaceChildren(
      ...crossingWords(own, visible).map((words) => element("li", { textContent: words })),
    );
    drawTable();
    $(".lf-why").textContent = `What the calibrator (${method}) does: ${example.explanation}`;
    set(example.strength);
  }

  function crossingWords(own, visible) {
    const { candidates, seen, blind } = shown;
    const flips = visible.slice(1).map(({ place, from }, before) => {
      const last = visible[before].place;
      const part = (scores) => `(${number(scores[last])} − ${number(scores[place])})`.replace("− −", "+ ");
      return (
        `${quote(candidates[last])} and ${quote(candidates[place])} meet at ` +
        `λ* = ${part(seen)} / ${part(blind)} = ${number(from, 3)}.`
      );
    });
    const end = own.to === Infinity ? "without end" : `to ${number(own.to, 3)}`;
    const range = `Shaded: the stable range of ${quote(shown.proposal)}, first at the calibrator's λ, from ${number(own.from, 3)} ${end}.`;
    return [...(flips.length ? flips : [`The first place is the same at every λ up to ${MAX_STRENGTH}.`]), range];
  }

  function drawTable() {
    const { candidates, seen, blind, original } = shown;
    const [withImage, without] = [shares(seen), shares(blind)];
    $("tbody").replaceChildren(
      ...candidates.map((name, place) => {
        const marks = {
          "the model's answer": name === original,
          "its guess without the image": place === winner(blind),
          "what the image shows": name === shown.right,
        };
        const mark = Object.keys(marks).filter((words) => marks[words]).join(", ");
        const head = element("th", { scope: "row" }, element("span", { className: "lf-name", textContent: name }));
        head.append(element("span", { className: "lf-mark", textContent: mark }));
        const row = element("tr", {}, head, cell("with"), cell("without"), cell("corrected"));
        fill(row.cells[1], withImage[place], seen[place]);
        fill(row.cells[2], without[place], blind[place]);
        return row;
      }),
    );
  }

  function set(strength) {
    slider.value = strength; // rounded to a step there, exact here
    draw(strength);
  }

  function draw(strength) {
    const { candidates, seen, blind, parts } = shown;
    const values = corrected(seen, blind, strength);
    const parted = shares(values);
    const found = gate(shown, strength, minMargin);
    [...$("tbody").rows].forEach((row, place) => {
      row.classList.toggle("lf-best", place === found.proposal);
      fill(row.cells[3], parted[place], values[place], place === found.proposal);
    });
    [...$(".lf-firsts").children].forEach((each, place) => {
      each.classList.toggle("lf-here", strength >= parts[place].from && strength < parts[place].to);
    });
    $(".lf-value").textContent = number(strength);
    slider.setAttribute("aria-valuetext", `${number(strength)}, ${candidates[found.proposal]} comes first`);
    $(".lf-margin").textContent = `Margin ${number(found.margin)}; the gate asks for at least ${number(minMargin)}.`;
    const verdict = verdictWords(found);
    if ($(".lf-verdict").textContent !== verdict) $(".lf-verdict").textContent = verdict; // said once, not at every step
  }

  function verdictWords({ proposal, condition, passes }) {
    const { candidates, original, right } = shown;
    const first = `${quote(candidates[proposal])} comes first`;
    if (candidates[proposal] === original) return `${first}: the model's own answer, so nothing changes.`;
    if (passes) {
      const outcome = candidates[proposal] === right ? "a repair" : original === right ? "a harm" : "still wrong";
      return `${first}, and the gate would let it replace ${quote(original)} (${condition}): ${outcome}.`;
    }
    const why = condition === null ? "no support condition holds" : "its margin is too small";
    return `${first}, but the gate would keep ${quote(original)}: ${why}.`;
  }

  $(".lf-ticks").replaceChildren(
    ...[0, 0.5, 1, 1.5, 2].map((at) => lay(element("span", { textContent: String(at) }), at)),
  );
  $(".lf-examples div").replaceChildren(
    ...examples.map((example, place) => {
      const input = element("input", { type: "radio", name: "lf-example", checked: place === 0 });
      input.addEventListener("change", () => show(example));
      const image = element("img", { src: example.picture, alt: `Drawing: ${example.shows}`, width: 72, height: 72 });
      return element("label", {}, input, image, element("span", { textContent: example.title }));
    }),
  );
  slider.addEventListener("input", () => draw(Number(slider.value)));
  $("button").addEventListener("click", () => set(shown.strength));
  show(examples[0]);
}

const root = document.getElementById("lambda-figure");
if (root) {
  const reply = await fetch(new URL(root.dataset.examples, import.meta.url));
  if (reply.ok) start(root, await reply.json()); // otherwise its text stays
}
