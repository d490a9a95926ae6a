// What is shown, and moving about. The functions of diff.js stand above, in the same function.

document.documentElement.classList.add("js");
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const ORDER = data.order;
const VIEWS = [
  { id: "upstream", label: "Upstream", sides: ["base", "new"], heads: ["upstream, old", "upstream, new"] },
  { id: "delta", label: "Delta", sides: ["newLevel", "oursNew"], heads: ["upstream, new", "generated, new"] },
  { id: "generated", label: "Generated", sides: ["oursOld", "oursNew"], heads: ["generated, old", "generated, new"] },
  { id: "other", label: "Second method", sides: ["oursNew", "other"], heads: ["structural operations", "three-way merge"] },
];
const NARROW = matchMedia("(max-width: 860px)");
const state = { target: 0, filter: null, query: "", entry: null, page: "overview", view: null, split: !NARROW.matches };
const store = {
  get(key) { try { return localStorage.getItem("afd-patchkit." + key); } catch { return null; } },
  set(key, value) { try { localStorage.setItem("afd-patchkit." + key, value); } catch { /* a locked-down browser */ } },
};

// What a person has viewed, by a digest of what there was to see: when that changes, it is to be viewed again.
const viewed = {
  marks: new Set((() => { try { const kept = JSON.parse(store.get("viewed") || "[]"); return Array.isArray(kept) ? kept : []; } catch { return []; } })()),
  has(entry) { return this.marks.has(entry.mark); },
  set(entry, on) {
    this.marks.delete(entry.mark);
    if (on) this.marks.add(entry.mark);
    store.set("viewed", JSON.stringify([...this.marks].slice(-5000)));
  },
};

// ---- what is shown -----------------------------------------------------------------------------------------------

const target = () => data.targets[state.target];
const text = (entry, side) => entry.texts[side] === null ? null : data.texts[entry.texts[side]];
const key = (entry) => entry.ref + (entry.axis === "donor" ? " (donor)" : "");

function searchable(entry) {
  if (!entry.search) {
    const parts = [key(entry), entry.symbol, entry.newSymbol, entry.kind, entry.status, entry.changed, entry.mustDo];
    for (const f of entry.findings) parts.push(f.code, f.message);
    for (const d of entry.deltas) { parts.push(d.name, d.status); for (const f of d.findings) parts.push(f.code, f.message); }
    entry.search = parts.join("\n").toLowerCase();
  }
  return entry.search;
}

function shown() {
  const wanted = state.query.toLowerCase().split(/\s+/).filter(Boolean);
  return target().entries.filter((e) => (!state.filter || e.status === state.filter) && wanted.every((w) => searchable(e).includes(w)));
}

function drawTop() {
  const t = target();
  $("title").textContent = t.title;
  $("verdict").textContent = t.verdict + (t.seconds ? " (" + t.seconds + ")" : "");
  document.title = t.title;
  $("target").value = String(state.target);
}

function drawFilters() {
  const entries = target().entries, box = $("filters");
  const make = (status, label, count) => el("button", {
    type: "button", class: "filter" + (status ? " s-" + status : ""), "aria-pressed": String(state.filter === status), "data-status": status || "all",
    title: status ? data.meanings[status] : "all entries",
    onclick: () => { state.filter = state.filter === status ? null : status; drawFilters(); drawList(); },
  }, status ? el("span", { class: "dot", "aria-hidden": "true" }) : null, label + " ", el("span", { class: "n" }, count.toLocaleString("en")));
  const focused = box.contains(document.activeElement) ? document.activeElement.dataset.status : null;
  box.replaceChildren(make(null, "all", entries.length), ...ORDER.map((s) => [s, entries.filter((e) => e.status === s).length]).filter((p) => p[1]).map((p) => make(p[0], p[0], p[1])));
  if (focused) { const again = [...box.children].find((b) => b.dataset.status === focused); if (again) again.focus(); }
}

function drawList() {
  const entries = shown(), list = $("list");
  list.replaceChildren(...entries.map((entry) => el("li", {}, el("button", {
    type: "button", class: "item s-" + entry.status + (viewed.has(entry) ? " seen" : ""), "data-key": key(entry), "aria-current": String(state.page === "entry" && state.entry === entry),
    onclick: () => open(entry),
  }, el("span", { class: "item-head" }, el("span", { class: "item-name mono" }, visible(entry.name)),
    el("span", { class: "item-status" }, entry.status + (entry.accepted ? " \u2713" : ""))),
  el("span", { class: "item-module" }, visible(entry.module + (entry.axis === "donor" ? " (donor)" : "")), viewed.has(entry) ? el("span", { class: "item-seen" }, " \u00b7 viewed") : null)))));
  const seen = target().entries.filter((e) => viewed.has(e)).length;
  $("count").textContent = (entries.length === target().entries.length ? plural(entries.length, "entry", "entries")
    : entries.length.toLocaleString("en") + " of " + plural(target().entries.length, "entry", "entries")) + (seen ? ", " + seen.toLocaleString("en") + " viewed" : "");
}

function markCurrent() {
  for (const node of document.querySelectorAll("#list .item")) {
    const current = state.page === "entry" && state.entry !== null && node.dataset.key === key(state.entry);
    node.setAttribute("aria-current", String(current));
    if (current) node.scrollIntoView({ block: "nearest" });
  }
  $("overview-button").setAttribute("aria-current", String(state.page === "overview"));
}

function show(page, ...children) {
  state.page = page;
  document.querySelector(".panes").classList.toggle("reading", page !== "list");
  const detail = $("detail");
  detail.replaceChildren(el("button", { type: "button", class: "back", onclick: () => { state.page = "list"; document.querySelector(".panes").classList.remove("reading"); } }, "\u2190 Entries"), ...children);
  detail.scrollTop = 0;
  markCurrent();
  remember();
}

const badge = (entry) => el("span", { class: "badge s-" + entry.status, title: data.meanings[entry.status] }, entry.status);

// A place in the new text of the entry is a link to its line.
function placeOf(f) {
  const entry = state.entry, inside = f.at && entry && f.at[0] === entry.file && entry.ranges.new.some((r) => r[0] <= f.at[1] && f.at[1] <= r[1]);
  return inside ? el("button", { type: "button", class: "link to-line", onclick: () => toLine(f.at[1]) }, visible("upstream " + f.upstream)) : visible("upstream " + f.upstream);
}

function findingCard(f, inner) {
  return el("div", { class: inner === true ? "inner" : "card" },
    el("p", {}, el("span", { class: "sev-" + f.severity }, f.severity + " " + f.code), " ", prose(f.message)),
    f.place || f.upstream ? el("p", { class: "meta mono" }, visible(f.place), f.place && f.upstream ? "   " : null, f.upstream ? placeOf(f) : null) : null,
    f.details.length ? el("div", { class: "pre" }, f.details.join("\n").split("\n").map(detailLine)) : null,
    f.help ? el("p", {}, prose(f.help)) : null,
    el("p", { class: "meta" }, f.title + ". ", el("code", {}, "afd-patchkit explain " + f.code)));
}

// A command with a button that copies it.
function commandLine(text) {
  const code = el("code", {}, visible(text)), said = el("span", { class: "meta", role: "status" });
  const copied = () => { said.textContent = "copied"; setTimeout(() => { said.textContent = ""; }, 2000); };
  const byHand = () => {
    const range = document.createRange();
    range.selectNodeContents(code);
    getSelection().removeAllRanges(); getSelection().addRange(range);
    if (document.execCommand("copy")) copied();
  };
  const copy = () => navigator.clipboard ? navigator.clipboard.writeText(text).then(copied, byHand) : byHand();
  return el("p", { class: "command" }, code, el("button", { type: "button", class: "copy", "data-text": text, onclick: copy }, "Copy"), said);
}

// Lines of a change are coloured as such.
const detailLine = (line) => el("span", { class: line.startsWith("+ ") ? "new" : line.startsWith("- ") ? "old" : "line" }, visible(line) || "\u200b");

function deltaCard(d) {
  const card = el("div", { class: "card s-" + d.status }, el("div", { class: "delta" }, el("strong", {}, visible(d.name)),
    el("span", { class: "badge s-" + d.status }, d.status), d.accepted ? el("span", { class: "badge plain" }, "accepted") : null,
    d.lines ? el("span", { class: "meta" }, "upstream lines " + d.lines) : null), d.findings.map((f) => findingCard(f, true)), d.accept ? commandLine(d.accept) : null);
  if (d.proposal) {
    const p = d.proposal;
    card.append(el("p", {}, "Proposed for ", el("code", {}, visible(p.key)), " at ", el("code", {}, visible(p.where)), ": matches ", el("code", {}, visible(p.place)), ", " + p.confidence + " alike"),
      el("div", { class: "pre" }, p.old.replace(/\n$/, "").split("\n").map((l) => el("span", { class: "old" }, "- " + visible(l))), p.new.replace(/\n$/, "").split("\n").map((l) => el("span", { class: "new" }, "+ " + visible(l)))));
  }
  return card;
}

function open(entry, options) {
  state.entry = entry;
  const head = el("div", { class: "entry-head" }, el("h2", { class: "mono" }, visible(entry.name)), badge(entry), entry.accepted ? el("span", { class: "badge plain" }, "accepted") : null,
    entry.axis === "donor" ? el("span", { class: "badge plain" }, "donor") : null,
    el("label", { class: "viewed" }, el("input", { type: "checkbox", id: "viewed", onchange: (event) => mark(entry, event.target.checked) }), "Viewed ", el("kbd", {}, "v")));
  head.querySelector("#viewed").checked = viewed.has(entry);
  const cell = (name, value) => el("div", {}, el("h3", {}, name), el("p", {}, prose(value)));
  const parts = [head, el("p", { class: "origin" }, visible(entry.module + " \u00b7 " + entry.origin)),
    el("div", { class: "three" }, cell("What upstream changed", entry.changed), cell("What happened to our deltas", entry.fates), cell("What you must do", entry.mustDo))];
  if (entry.accept) parts.push(el("div", { class: "card" }, el("h3", {}, "Reviewed, and it stays as it is?"), commandLine(entry.accept)));
  const section = (name, ...children) => { if (children.flat().length) parts.push(el("section", { class: "section" }, el("h3", {}, name), ...children)); };
  if (entry.successors.length) section("Likely successors", el("ul", { class: "lines" }, entry.successors.map((s) => el("li", {}, visible(s[0]) + "  " + s[1]))));
  section("Findings", entry.findings.map((f) => findingCard(f)));
  const telling = entry.deltas.filter((d) => d.findings.length || d.proposal || !["clean", "unchanged"].includes(d.status));
  const quiet = entry.deltas.filter((d) => !telling.includes(d));
  const cards = telling.map(deltaCard);
  if (quiet.length) cards.push(el("p", { class: "small" }, "Without change in place or meaning: " + quiet.map((d) => visible(d.name)).join(", ")));
  section("Deltas", cards);
  if (entry.attributes.length) section("Attributes read now and not before", el("ul", { class: "lines" }, entry.attributes.map((a) => el("li", {}, visible(a)))));
  const diffs = el("section", { class: "section", "aria-label": "Differences" });
  parts.push(diffs);
  show("entry", ...parts);
  drawDiff(diffs, entry);
  if (options && options.focus) $("detail").focus({ preventScroll: true });
}

// Mark an entry as viewed, or take the mark back.
function mark(entry, on) {
  viewed.set(entry, on);
  drawList();
  markCurrent();
  const box = $("viewed");
  if (box) box.checked = on;
}

const viewsOf = (entry) => VIEWS.filter((v) => v.id !== "other" || entry.texts.other !== null);

function firstView(entry) {
  const possible = viewsOf(entry);
  if (state.view && possible.some((v) => v.id === state.view)) return state.view;
  const telling = possible.find((v) => { const [a, b] = v.sides.map((s) => text(entry, s)); return a !== null && b !== null && a !== b; });
  return (telling || possible[0]).id;
}

let hunks = [], hunk = -1;

function drawDiff(box, entry) {
  const chosen = firstView(entry), view = VIEWS.find((v) => v.id === chosen), possible = viewsOf(entry);
  const redraw = (focus) => { drawDiff(box, entry); if (focus) { const node = box.querySelector(focus); if (node) node.focus(); } };
  const tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "Views" }, possible.map((v, i) => el("button", {
    type: "button", class: "tab", role: "tab", id: "tab-" + v.id, "aria-selected": String(v.id === chosen), "aria-controls": "diff", tabindex: v.id === chosen ? 0 : -1,
    onclick: () => { state.view = v.id; redraw("#tab-" + v.id); },
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = possible[(i + step + possible.length) % possible.length];
      state.view = next.id; redraw("#tab-" + next.id);
    },
  }, v.label + " ", el("kbd", {}, String(i + 1)))));
  const mode = el("button", { type: "button", class: "mode", "aria-pressed": String(state.split), onclick: () => { state.split = !state.split; redraw(".mode"); } }, "Side by side ", el("kbd", {}, "u"));
  const count = el("span", { class: "hunks", role: "status" });
  const wrap = el("div", { class: "diff-wrap", id: "diff", role: "tabpanel", "aria-labelledby": "tab-" + chosen });
  const [a, b] = view.sides.map((s) => text(entry, s)), ranges = view.sides.map((s) => entry.ranges[s === "newLevel" ? "new" : s]);
  hunks = []; hunk = -1;
  if (a === null || b === null) wrap.append(el("p", { class: "diff-note" }, "Nothing to compare: " + (entry.absent[chosen] || "a side is not at hand") + "."));
  else if (a === b) wrap.append(el("p", { class: "diff-note" }, "Both sides are equal."), diffTable(a, b, view.heads, state.split, ranges).table);
  else {
    const made = diffTable(a, b, view.heads, state.split, ranges);
    hunks = made.hunks;
    wrap.append(made.table);
    count.textContent = plural(hunks.length, "change", "changes");
  }
  box.replaceChildren(el("div", { class: "bar" }, tabs, el("span", { class: "grow" }), count, mode), wrap);
}

// Show the line of the new upstream text that a finding is about.
function toLine(number) {
  const box = document.querySelector("#detail > .section[aria-label]");
  state.view = "upstream";
  drawDiff(box, state.entry);
  const row = () => box.querySelector('tr[data-line="' + number + '"]');
  for (const button of box.querySelectorAll(".fold button")) { if (row()) break; button.click(); }
  const found = row();
  if (!found) { box.scrollIntoView({ block: "start" }); return; }
  found.classList.add("at");
  found.tabIndex = -1;
  found.focus({ preventScroll: true });
  found.scrollIntoView({ block: "center" });
}

function toHunk(step) {
  if (!hunks.length) return;
  if (hunk >= 0) hunks[hunk].classList.remove("at");
  hunk = Math.min(hunks.length - 1, Math.max(0, hunk + step));
  hunks[hunk].classList.add("at");
  hunks[hunk].scrollIntoView({ block: "center" });
}

function overview() {
  const t = target();
  const parts = [el("h2", {}, t.verdict.charAt(0).toUpperCase() + t.verdict.slice(1)), el("p", { class: "origin" }, t.tally)];
  if (!t.baseAvailable) parts.push(el("p", { class: "card" }, "The old upstream is not at hand: the lock's digests decided, old text is not shown."));
  for (const f of t.findings) parts.push(findingCard(f));
  const rows = t.entries.filter((e) => e.status !== "unchanged");
  if (rows.length) {
    const heads = ["Status", "Entry", "What upstream changed", "What happened to our deltas", "What you must do"];
    parts.push(el("div", { class: "scroll" }, el("table", { class: "grid table" }, el("thead", {}, el("tr", {}, heads.map((h) => el("th", { scope: "col" }, h)))),
      el("tbody", {}, rows.map((e) => el("tr", { class: "s-" + e.status },
        el("td", { class: "status" }, e.status + (e.accepted ? " \u2713" : "")),
        el("td", {}, el("button", { type: "button", class: "link mono", onclick: () => open(e, { focus: true }) }, visible(e.name)), el("span", { class: "small" }, visible(e.module))),
        ...[e.changed, e.fates, e.mustDo].map((v, i) => el("td", { "data-label": ["upstream", "deltas", "to do"][i] }, prose(v)))))))));
  }
  const same = t.entries.length - rows.length;
  if (same) parts.push(el("p", { class: "origin" }, plural(same, "entry is", "entries are") + " untouched by upstream."));
  for (const [name, items] of t.extras) parts.push(el("section", { class: "section" }, el("h3", {}, name), el("div", { class: "card" }, el("ul", { class: "lines" }, items.map((i) => el("li", {}, visible(i)))))));
  show("overview", el("div", { class: "overview" }, parts));
}

function matrix() {
  if (data.targets.length < 2) return;
  const keys = new Map();
  data.targets.forEach((t, i) => t.entries.forEach((e) => { if (!keys.has(key(e))) keys.set(key(e), []); keys.get(key(e))[i] = e; }));
  const rows = [...keys].sort((x, y) => worst(x[1]) - worst(y[1]));
  const to = (i, entry) => { choose(i); open(entry, { focus: true }); };
  show("matrix", el("div", { class: "overview" }, el("h2", {}, "Entries over releases"), el("div", { class: "scroll" }, el("table", { class: "grid matrix" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Entry"), data.targets.map((t) => el("th", { scope: "col" }, visible(t.new))))),
    el("tbody", {}, rows.map(([, cells]) => el("tr", {}, el("th", { scope: "row" }, rowName(cells.find(Boolean))), data.targets.map((_, i) => cells[i]
      ? el("td", { class: "status s-" + cells[i].status }, el("button", { type: "button", class: "link status", onclick: () => to(i, cells[i]) }, cells[i].status + (cells[i].accepted ? " \u2713" : "")))
      : el("td", {}, "\u2013")))))))));
}
const rowName = (entry) => [el("span", { class: "mono" }, visible(entry.name + (entry.axis === "donor" ? " (donor)" : ""))), el("span", { class: "small" }, visible(entry.module))];
const worst = (cells) => Math.min(...cells.filter(Boolean).map((e) => ORDER.indexOf(e.status)));

// ---- moving about ------------------------------------------------------------------------------------------------

function choose(index) {
  state.target = index;
  if (state.filter && !target().entries.some((e) => e.status === state.filter)) state.filter = null;
  drawTop(); drawFilters(); drawList();
}

function toTarget(index) {
  if (index < 0 || index >= data.targets.length) return;
  const last = state.page === "entry" ? key(state.entry) : null;
  choose(index);
  const same = last && target().entries.find((e) => key(e) === last);
  if (same) open(same); else if (state.page === "matrix") matrix(); else overview();
}

function step(by) {
  const entries = shown();
  if (!entries.length) return;
  const at = state.page === "entry" ? entries.indexOf(state.entry) : -1;
  open(entries[at < 0 ? (by > 0 ? 0 : entries.length - 1) : Math.min(entries.length - 1, Math.max(0, at + by))]);
}

function remember() {
  const parts = new URLSearchParams();
  if (data.targets.length > 1) parts.set("release", target().new);
  if (state.page === "entry") parts.set("entry", key(state.entry));
  if (state.page === "matrix") parts.set("page", "matrix");
  try { history.replaceState(null, "", "#" + parts); } catch { /* some browsers refuse it for files */ }
}

function recall() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const index = data.targets.findIndex((t) => t.new === parts.get("release"));
  choose(index < 0 ? 0 : index);
  const entry = target().entries.find((e) => key(e) === parts.get("entry"));
  if (entry) open(entry);
  else if (parts.get("page") === "matrix" || (data.targets.length > 1 && index < 0)) matrix();
  else { overview(); if (NARROW.matches) document.querySelector(".panes").classList.add("reading"); }
}

const isDark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
function drawTheme() { $("theme").firstChild.textContent = isDark() ? "Light " : "Dark "; }
function toggleTheme() {
  const value = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = value;
  store.set("theme", value);
  drawTheme();
}

const KEYS = {
  j: () => step(1), k: () => step(-1), n: () => toHunk(1), p: () => toHunk(-1),
  "/": () => { document.querySelector(".panes").classList.remove("reading"); $("search").focus(); $("search").select(); },
  o: () => overview(), m: () => matrix(), d: () => toggleTheme(), "?": () => $("help").showModal(),
  v: () => { if (state.page === "entry") mark(state.entry, !viewed.has(state.entry)); },
  u: () => { state.split = !state.split; if (state.page === "entry") drawDiff(document.querySelector("#detail > .section[aria-label]"), state.entry); },
  "[": () => toTarget(state.target - 1), "]": () => toTarget(state.target + 1),
};
for (let i = 1; i <= VIEWS.length; i++) KEYS[i] = () => {
  if (state.page !== "entry") return;
  const view = viewsOf(state.entry)[i - 1];
  if (!view) return;
  state.view = view.id;
  const box = document.querySelector("#detail > .section[aria-label]");
  drawDiff(box, state.entry);
  box.scrollIntoView({ block: "start" });
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox";
  if (event.key === "Escape" && typing) {
    if (event.target === $("search")) { $("search").value = ""; state.query = ""; drawList(); markCurrent(); }
    event.target.blur();
    return;
  }
  if (typing && event.key === "Enter" && event.target === $("search")) { event.target.blur(); step(1); return; }
  if (typing || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
});

$("search").addEventListener("input", () => { state.query = $("search").value; drawList(); markCurrent(); });
$("theme").addEventListener("click", toggleTheme);
$("help-button").addEventListener("click", () => $("help").showModal());
$("overview-button").addEventListener("click", overview);
$("matrix-button").addEventListener("click", matrix);
$("target").addEventListener("change", () => toTarget(Number($("target").value)));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawTheme);
const kept = store.get("theme");
if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
drawTheme();
if (data.targets.length > 1) {
  $("target").append(...data.targets.map((t, i) => el("option", { value: String(i) }, t.new)));
  $("target-label").hidden = false;
  $("matrix-button").hidden = false;
}
recall();
