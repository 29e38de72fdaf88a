"use strict";
// Filters of the gallery; without scripts all examples are visible.
(() => {
  const form = document.querySelector(".filters");
  if (!form) return;
  const cards = [...document.querySelectorAll(".card")];
  const texts = cards.map((card) => card.textContent.toLowerCase().replace(/\s+/g, " "));
  const wanted = {};
  const noun = form.dataset.noun || "examples";
  const search = form.querySelector("input");
  const count = form.querySelector("output");
  const nothing = document.getElementById("nothing");

  function update() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    cards.forEach((card, index) => {
      const fits = Object.entries(wanted).every(([name, value]) => !value || card.dataset[name] === value)
        && words.every((word) => texts[index].includes(word));
      card.hidden = !fits;
      shown += fits;
    });
    count.textContent = shown === cards.length ? `${shown} ${noun}` : `${shown} of ${cards.length} ${noun}`;
    nothing.hidden = shown > 0;
  }

  form.querySelectorAll(".choices").forEach((group) => {
    const buttons = [...group.querySelectorAll("button")];
    buttons.forEach((button) => button.addEventListener("click", () => {
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      wanted[group.dataset.filter] = button.dataset.value;
      update();
    }));
  });
  form.querySelectorAll("select").forEach((select) => select.addEventListener("change", () => {
    wanted[select.dataset.filter] = select.value;
    update();
  }));
  search.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
})();
