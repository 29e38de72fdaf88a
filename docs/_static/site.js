// What scrolls can be reached by keyboard: code and tables that are wider than the page.
"use strict";

function markScrollable() {
  for (const each of document.querySelectorAll("pre, .table-wrapper, .output_subarea")) {
    const scrolls = each.scrollWidth > each.clientWidth || each.scrollHeight > each.clientHeight;
    if (scrolls) {
      each.tabIndex = 0;
    } else {
      each.removeAttribute("tabindex");
    }
  }
}

document.addEventListener("DOMContentLoaded", markScrollable);
window.addEventListener("load", markScrollable);
window.addEventListener("resize", markScrollable);
document.addEventListener("toggle", markScrollable, true);
