// Draws the charts of a report and makes its table, legend and pictures answer. Without it the page is still complete
// in words, numbers and pictures.
"use strict";
(() => {
  const all = (root, selector) => [...root.querySelectorAll(selector)];
  document.documentElement.classList.add("scripting");

  function sortable(table) {
    const heads = all(table.tHead, "th");
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const ascending = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        const text = head.dataset.kind === "text";
        const keyed = all(table.tBodies[0], ":scope > tr").map((row) => ({ row, key: row.cells[column].dataset.value }));
        const missing = (entry) => entry.key === "";
        keyed.sort((a, b) => {
          if (missing(a) || missing(b)) return missing(a) - missing(b); // without a number: last, whatever the direction
          const order = text ? a.key.localeCompare(b.key) : a.key - b.key;
          return ascending ? order : -order;
        });
        table.tBodies[0].append(...keyed.map((entry) => entry.row));
      });
    });
  }

  function filterable(page) {
    const field = page.querySelector("[data-filter]");
    const rows = all(page, "table.board tbody tr[data-agent]");
    field?.addEventListener("input", () => {
      const wanted = field.value.trim().toLowerCase();
      rows.forEach((row) => { row.hidden = !row.dataset.agent.toLowerCase().includes(wanted); });
    });
  }

  function pictures(page) {
    const choice = page.querySelector("[data-gallery]");
    choice?.addEventListener("change", () => {
      all(page, ".gallery").forEach((gallery) => { gallery.hidden = gallery.id !== choice.value; });
    });
    const dots = page.querySelector("[data-dots]");
    dots?.addEventListener("change", () => {
      all(page, ".gallery").forEach((gallery) => gallery.classList.toggle("plain", !dots.checked));
    });
  }

  // One legend for the whole page: it hides agents in every chart and picture, and scales adapt to those left.
  function legend(page, views) {
    const chips = all(page, ".chip[data-agent]");
    const reset = page.querySelector("[data-reset]");
    const apply = () => {
      const hidden = chips.filter((chip) => chip.getAttribute("aria-pressed") === "false").map((chip) => chip.dataset.agent);
      if (reset) reset.hidden = hidden.length === 0;
      all(page, ".strips tr[data-agent]").forEach((row) => { row.hidden = hidden.includes(row.dataset.agent); });
      return Promise.all(views.map((view) => view.signal("hidden", hidden).runAsync()));
    };
    chips.forEach((chip) => chip.addEventListener("click", () => {
      chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") === "false"));
      apply();
    }));
    reset?.addEventListener("click", () => {
      chips.forEach((chip) => chip.setAttribute("aria-pressed", "true"));
      apply();
    });
  }

  function metrics(page, curves) {
    all(page, "input[type=radio]").forEach((radio) => radio.addEventListener("change", () => {
      curves.forEach((view) => view.signal("metric", radio.value).runAsync());
    }));
  }

  async function draw(page) {
    const specs = JSON.parse(page.querySelector("[data-charts]").textContent);
    const views = new Map();
    for (const place of all(page, "[data-chart]")) {
      const name = place.dataset.chart;
      const { view } = await vegaEmbed(place, specs[name], {
        mode: "vega-lite",
        renderer: "svg",
        ast: true, // expressions are interpreted, so that the page may forbid eval
        actions: { export: { svg: true, png: true }, source: false, compiled: false, editor: false },
        downloadFileName: `${page.dataset.suite}-${name}`,
        defaultStyle: false,
        forceActionsMenu: true,
        tooltip: { disableDefaultStyle: true },
      });
      views.set(name, view);
    }
    legend(page, [...views.values()]);
    metrics(page, [...views].filter(([name]) => name.startsWith("curve")).map(([, view]) => view));
  }

  async function main() {
    const pages = all(document, "[data-suite]");
    all(document, "table.board").forEach(sortable);
    pages.forEach((page) => { filterable(page); pictures(page); });
    for (const page of pages) await draw(page);
    document.body.dataset.ready = "true";
  }

  main();
})();
