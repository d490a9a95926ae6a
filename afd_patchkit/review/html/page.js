"use strict";
(() => {
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

// ---- elements: text goes in as text, never as markup -------------------------------------------------------------

function el(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined && child !== "") node.append(child);
  return node;
}
// `code` in a sentence.
const prose = (value) => visible(value).split("`").map((part, i, all) => i % 2 && i < all.length - 1 ? el("code", {}, part) : i % 2 ? "`" + part : part);
const plural = (n, one, many) => n.toLocaleString("en") + " " + (n === 1 ? one : many);

// ---- differences -------------------------------------------------------------------------------------------------

// Myers' algorithm: [["=" | "-" | "+", index in a, index in b], ...]
function compare(a, b) {
  let head = 0, tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const ops = [];
  for (let i = 0; i < head; i++) ops.push(["=", i, i]);
  for (const [op, i, j] of middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail))) ops.push([op, i + head, j + head]);
  for (let i = tail; i > 0; i--) ops.push(["=", a.length - i, b.length - i]);
  return ops;
}

function middle(a, b) {
  const n = a.length, m = b.length, most = Math.min(n + m, 3000), trace = [];
  let v = new Int32Array(2 * most + 3);
  const at = most + 1;
  let found = -1;
  search: for (let d = 0; d <= most; d++) {
    trace.push(v.slice(at - d - 1, at + d + 2));
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && v[at + k - 1] < v[at + k + 1]) ? v[at + k + 1] : v[at + k - 1] + 1;
      while (x < n && x - k < m && a[x] === b[x - k]) x++;
      v[at + k] = x;
      if (x >= n && x - k >= m) { found = d; break search; }
    }
  }
  if (found < 0) return [...a.map((_, i) => ["-", i, 0]), ...b.map((_, j) => ["+", n, j])];
  const ops = [];
  let x = n, y = m;
  for (let d = found; d > 0; d--) {
    const row = trace[d], mid = d + 1, k = x - y;
    const down = k === -d || (k !== d && row[mid + k - 1] < row[mid + k + 1]);
    const back = down ? k + 1 : k - 1, px = row[mid + back], py = px - back;
    while (x > px + (down ? 0 : 1) && y > py + (down ? 1 : 0)) ops.push(["=", --x, --y]);
    if (down) ops.push(["+", x, --y]); else ops.push(["-", --x, y]);
  }
  while (x > 0) ops.push(["=", --x, --y]);
  return ops.reverse();
}

const words = (line) => line.match(/\w+|\s+|[^\w\s]/gu) || [];

function alike(a, b) {
  const bag = new Map();
  let total = 0, same = 0;
  for (const w of words(a)) if (w.trim()) { bag.set(w, (bag.get(w) || 0) + 1); total++; }
  for (const w of words(b)) if (w.trim()) { total++; if (bag.get(w)) { bag.set(w, bag.get(w) - 1); same += 2; } }
  return total ? same / total : 1;
}

// Pair removed with added lines of one change: the order-preserving pairing with the greatest likeness.
function pair(dels, adds) {
  const n = dels.length, m = adds.length;
  if (!n || !m || n * m > 2500) return dels.map((d, i) => [d, i < m && n * m > 2500 ? adds[i] : null]).concat(adds.slice(n * m > 2500 ? n : 0).map((x) => [null, x]));
  const best = Array.from({ length: n + 1 }, () => new Float64Array(m + 1)), like = [];
  for (let i = n - 1; i >= 0; i--) {
    like[i] = [];
    for (let j = m - 1; j >= 0; j--) {
      const s = alike(dels[i].text, adds[j].text);
      like[i][j] = s >= 0.4 ? s : -1;
      best[i][j] = Math.max(best[i + 1][j], best[i][j + 1], like[i][j] > 0 ? like[i][j] + best[i + 1][j + 1] : 0);
    }
  }
  const rows = [];
  let i = 0, j = 0;
  while (i < n || j < m) {
    if (i < n && j < m && like[i][j] > 0 && best[i][j] === like[i][j] + best[i + 1][j + 1]) rows.push([dels[i++], adds[j++]]);
    else if (i < n && (j >= m || best[i][j] === best[i + 1][j])) rows.push([dels[i++], null]);
    else rows.push([null, adds[j++]]);
  }
  return rows;
}

// The changed ranges of two like lines, as [start, end) in each.
function inline(a, b) {
  const wa = words(a), wb = words(b), ra = [], rb = [];
  let x = 0, y = 0;
  const put = (ranges, start, end) => {
    const last = ranges[ranges.length - 1];
    if (last && last[1] === start) last[1] = end; else ranges.push([start, end]);
  };
  for (const [op, i, j] of compare(wa, wb)) {
    if (op === "=") { x += wa[i].length; y += wb[j].length; }
    else if (op === "-") { put(ra, x, x + wa[i].length); x += wa[i].length; }
    else { put(rb, y, y + wb[j].length); y += wb[j].length; }
  }
  return [join(ra, a), join(rb, b)];
}

function join(ranges, line) {
  const out = [];
  for (const range of ranges) {
    const last = out[out.length - 1];
    if (last && !line.slice(last[1], range[0]).trim()) last[1] = range[1]; else out.push(range.slice());
  }
  return out;
}

// Lines of a text with colours and fences.
function lines(text) {
  const all = text.split("\n");
  if (all.length && all[all.length - 1] === "") all.pop();
  const colours = colour(text), out = [];
  let inside = 0, start = 0;
  all.forEach((line, i) => {
    const mark = fence(line);
    if (mark === "START") inside++;
    out.push({ text: line, no: i + 1, spans: colours(start, start + line.length), fence: mark, inside: inside > 0 });
    if (mark === "END") inside = Math.max(0, inside - 1);
    start += line.length + 1;
  });
  return out;
}

function fence(line) {
  const rest = line.trim();
  if (!rest.startsWith("# " + data.marker + " ")) return null;
  const word = rest.slice(data.marker.length + 3);
  return word.startsWith("START:") ? "START" : word.startsWith("END:") ? "END" : null;
}

const KEYWORDS = new Set(("False None True and as assert async await break case class continue def del elif else except finally for from global if import in is " +
  "lambda match nonlocal not or pass raise return try while with yield").split(" "));
const TOKEN = /(#[^\n]*)|([rbfuRBFU]{0,2}(?:"""(?:[^\\]|\\[\s\S])*?(?:"""|(?![\s\S]))|'''(?:[^\\]|\\[\s\S])*?(?:'''|(?![\s\S]))|"(?:[^"\\\n]|\\[\s\S])*"?|'(?:[^'\\\n]|\\[\s\S])*'?))|((?<=^[ \t]*)@[\w.]+)|(\b\d[\w.]*)|([^\W\d]\w*)/gmu;

function colour(text) {
  const spans = [];
  if (text.length < 400000) {
    for (const m of text.matchAll(TOKEN)) {
      const kind = m[1] !== undefined ? "com" : m[2] !== undefined ? "str" : m[3] !== undefined ? "dec" : m[4] !== undefined ? "num" : KEYWORDS.has(m[5]) ? "kw" : null;
      if (kind) spans.push([m.index, m.index + m[0].length, kind]);
    }
  }
  let next = 0;
  return (start, end) => {
    const out = [];
    while (next < spans.length && spans[next][1] <= start) next++;
    for (let i = next; i < spans.length && spans[i][0] < end; i++) {
      out.push([Math.max(0, spans[i][0] - start), Math.min(end, spans[i][1]) - start, spans[i][2]]);
    }
    return out;
  };
}

// ---- the diff as a table -----------------------------------------------------------------------------------------

function rowsOf(oldText, newText) {
  const a = lines(oldText), b = lines(newText), rows = [];
  let dels = [], adds = [];
  const flush = () => {
    for (const [d, x] of pair(dels, adds)) {
      const [rd, rx] = d && x ? inline(d.text, x.text) : [[], []];
      rows.push({ kind: "change", old: d, new: x, oldMarks: rd, newMarks: rx });
    }
    dels = []; adds = [];
  };
  for (const [op, i, j] of compare(a.map((l) => l.text), b.map((l) => l.text))) {
    if (op === "-") dels.push(a[i]);
    else if (op === "+") adds.push(b[j]);
    else { flush(); rows.push({ kind: "same", old: a[i], new: b[j] }); }
  }
  flush();
  return rows;
}

function codeCell(line, kind, marks) {
  if (!line) return el("td", { class: "code void" });
  const classes = ["code", kind];
  if (line.fence) classes.push("fence"); else if (line.inside) classes.push("in-fence");
  const cell = el("td", { class: classes.join(" ").trim() });
  const cuts = new Set([0, line.text.length]);
  for (const [s, e] of [...line.spans, ...(marks || [])]) { cuts.add(s); cuts.add(e); }
  const points = [...cuts].sort((x, y) => x - y);
  for (let i = 0; i + 1 < points.length; i++) {
    const [s, e] = [points[i], points[i + 1]];
    const span = line.spans.find((p) => p[0] <= s && p[1] >= e), mark = (marks || []).some((p) => p[0] <= s && p[1] >= e);
    const text = visible(line.text.slice(s, e));
    cell.append(span || mark ? el("span", { class: [span ? "t-" + span[2] : "", mark ? "x" : ""].join(" ").trim() }, text) : text);
  }
  if (!line.text) cell.append("\u200b");
  return cell;
}

// Control characters and marks that turn the direction of text are spelled out.
const visible = (text) => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu,
  (c) => c === "\r" ? "\\r" : "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

function unifiedRows(row) {
  const make = (line, other, kind, sign, marks) => el("tr", { class: kind },
    el("td", { class: "no" }, kind === "add" ? "" : String(line.no)), el("td", { class: "no" }, kind === "add" ? String(line.no) : kind === "del" ? "" : String(other.no)),
    el("td", { class: "sign" }, sign), codeCell(kind ? line : other, kind, marks));
  if (row.kind === "same") return [make(row.old, row.new, "", "", null)];
  const out = [];
  if (row.old) out.push(make(row.old, null, "del", "-", row.oldMarks));
  if (row.new) out.push(make(row.new, null, "add", "+", row.newMarks));
  return out;
}

function splitRow(row) {
  const half = (line, kind, sign, marks, right) => [
    el("td", { class: "no" + (line ? "" : " void") + (right ? " split-right" : "") }, line ? String(line.no) : ""),
    el("td", { class: "sign " + (line ? kind : "void") }, line ? sign : ""),
    codeCell(line, kind, marks)];
  const same = row.kind === "same";
  return el("tr", {}, half(row.old, same ? "" : "del", same ? "" : "-", row.oldMarks, false), half(row.new, same ? "" : "add", same ? "" : "+", row.newMarks, true));
}

// Removed and added lines that are not alike still share rows: nothing is gained by a staircase.
function level(rows) {
  const out = [];
  let dels = [], adds = [];
  const flush = () => {
    for (let i = 0; i < Math.max(dels.length, adds.length); i++) out.push({ kind: "change", old: dels[i] || null, new: adds[i] || null, oldMarks: [], newMarks: [] });
    dels = []; adds = [];
  };
  for (const row of rows) {
    if (row.old && row.new) { flush(); out.push(row); } else if (row.old) dels.push(row.old); else adds.push(row.new);
  }
  flush();
  return out;
}

const CONTEXT = 4;

function diffTable(oldText, newText, heads, split) {
  const rows = rowsOf(oldText, newText);
  const hunks = [];
  const body = el("tbody");
  const draw = (part) => {
    if (split) return level(part).map(splitRow);
    // unified: all removed lines of a change, then all added ones
    const out = [];
    let adds = [];
    for (const row of part) {
      if (row.kind === "same") { out.push(...adds, ...unifiedRows(row)); adds = []; continue; }
      for (const tr of unifiedRows(row)) (tr.className === "add" ? adds : out).push(tr);
    }
    return [...out, ...adds];
  };
  const span = split ? 6 : 4;
  for (let i = 0; i < rows.length;) {
    let end = i;
    while (end < rows.length && rows[end].kind === rows[i].kind) end++;
    const part = rows.slice(i, end);
    if (part[0].kind === "same") {
      const before = i === 0 ? 0 : CONTEXT, after = end === rows.length ? 0 : CONTEXT, hidden = part.length - before - after;
      if (hidden > 3) {
        body.append(...draw(part.slice(0, before)));
        const middlePart = part.slice(before, part.length - after);
        const button = el("button", { type: "button" }, "Show " + plural(hidden, "unchanged line", "unchanged lines"));
        const fold = el("tr", { class: "fold" }, el("td", { colspan: span }, button));
        button.addEventListener("click", () => {
          const shown = draw(middlePart);
          fold.replaceWith(...shown);
          shown[0].tabIndex = -1; shown[0].focus({ preventScroll: true });
        });
        body.append(fold, ...draw(part.slice(part.length - after)));
      } else body.append(...draw(part));
    } else {
      const shown = draw(part);
      hunks.push(shown[0]);
      body.append(...shown);
    }
    i = end;
  }
  const head = split
    ? el("tr", {}, el("th", { scope: "col", colspan: 3 }, heads[0]), el("th", { scope: "col", colspan: 3, class: "split-right" }, heads[1]))
    : el("tr", {}, el("th", { scope: "col", colspan: 4 }, heads[0] + "  \u2192  " + heads[1]));
  const widths = split ? ["no", "sign", "", "no", "sign", ""] : ["no", "no", "sign", ""];
  const table = el("table", { class: "diff" }, el("colgroup", {}, widths.map((w) => el("col", { class: w }))), el("thead", {}, head), body);
  return { table, hunks };
}

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
    type: "button", class: "item s-" + entry.status, "data-key": key(entry), "aria-current": String(state.page === "entry" && state.entry === entry),
    onclick: () => open(entry),
  }, el("span", { class: "item-head" }, el("span", { class: "item-name mono" }, visible(entry.name)),
    el("span", { class: "item-status" }, entry.status + (entry.accepted ? " \u2713" : ""))),
  el("span", { class: "item-module" }, visible(entry.module + (entry.axis === "donor" ? " (donor)" : "")))))));
  $("count").textContent = entries.length === target().entries.length ? plural(entries.length, "entry", "entries")
    : entries.length.toLocaleString("en") + " of " + plural(target().entries.length, "entry", "entries");
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

function findingCard(f, inner) {
  const meta = [f.place, f.upstream && "upstream " + f.upstream].filter(Boolean).join("   ");
  return el("div", { class: inner === true ? "inner" : "card" },
    el("p", {}, el("span", { class: "sev-" + f.severity }, f.severity + " " + f.code), " ", prose(f.message)),
    meta ? el("p", { class: "meta mono" }, visible(meta)) : null,
    f.details.length ? el("div", { class: "pre" }, f.details.join("\n").split("\n").map(detailLine)) : null,
    f.help ? el("p", {}, prose(f.help)) : null,
    el("p", { class: "meta" }, f.title + ". ", el("code", {}, "afd-patchkit explain " + f.code)));
}

// Lines of a change are coloured as such.
const detailLine = (line) => el("span", { class: line.startsWith("+ ") ? "new" : line.startsWith("- ") ? "old" : "line" }, visible(line) || "\u200b");

function deltaCard(d) {
  const card = el("div", { class: "card s-" + d.status }, el("div", { class: "delta" }, el("strong", {}, visible(d.name)),
    el("span", { class: "badge s-" + d.status }, d.status), d.accepted ? el("span", { class: "badge plain" }, "accepted") : null,
    d.lines ? el("span", { class: "meta" }, "upstream lines " + d.lines) : null), d.findings.map((f) => findingCard(f, true)));
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
    entry.axis === "donor" ? el("span", { class: "badge plain" }, "donor") : null);
  const cell = (name, value) => el("div", {}, el("h3", {}, name), el("p", {}, prose(value)));
  const parts = [head, el("p", { class: "origin" }, visible(entry.module + " \u00b7 " + entry.origin)),
    el("div", { class: "three" }, cell("What upstream changed", entry.changed), cell("What happened to our deltas", entry.fates), cell("What you must do", entry.mustDo))];
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
  const [a, b] = view.sides.map((s) => text(entry, s));
  hunks = []; hunk = -1;
  if (a === null || b === null) wrap.append(el("p", { class: "diff-note" }, "Nothing to compare: " + (entry.absent[chosen] || "a side is not at hand") + "."));
  else if (a === b) wrap.append(el("p", { class: "diff-note" }, "Both sides are equal."), diffTable(a, b, view.heads, state.split).table);
  else {
    const made = diffTable(a, b, view.heads, state.split);
    hunks = made.hunks;
    wrap.append(made.table);
    count.textContent = plural(hunks.length, "change", "changes");
  }
  box.replaceChildren(el("div", { class: "bar" }, tabs, el("span", { class: "grow" }), count, mode), wrap);
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
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
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
})();
