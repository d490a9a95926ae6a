// Elements, and differences as tables. The page's script follows in the same function; `data` is declared there.

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

// The number in its file of a line of a text, where the text is these parts of the file; its own number without any.
const numbered = (ranges) => (line) => {
  for (const [first, last] of ranges || []) {
    if (line <= last - first + 1) return first + line - 1;
    line -= last - first + 1;
  }
  return line;
};

// Lines of a text with colours and fences.
function lines(text, number) {
  const all = text.split("\n");
  if (all.length && all[all.length - 1] === "") all.pop();
  const colours = colour(text), out = [];
  let inside = 0, start = 0;
  all.forEach((line, i) => {
    const mark = fence(line);
    if (mark === "START") inside++;
    out.push({ text: line, no: number(i + 1), spans: colours(start, start + line.length), fence: mark, inside: inside > 0 });
    if (mark === "END") inside = Math.max(0, inside - 1);
    start += line.length + 1;
  });
  return out;
}

function fence(line) {
  const text = line.trim();
  return Object.keys(data.fences).find(side => text.startsWith(data.fences[side])) ?? null;
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

function rowsOf(oldText, newText, ranges) {
  const a = lines(oldText, numbered(ranges[0])), b = lines(newText, numbered(ranges[1])), rows = [];
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
  cell.style.setProperty("--hang", line.text.replace(/\t/g, "    ").search(/\S|$/) + 2); // what does not fit goes on further in
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
  const make = (line, other, kind, sign, marks) => el("tr", { class: kind, "data-line": kind === "del" ? null : kind === "add" ? line.no : other.no },
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
  return el("tr", { "data-line": row.new ? row.new.no : null }, half(row.old, same ? "" : "del", same ? "" : "-", row.oldMarks, false), half(row.new, same ? "" : "add", same ? "" : "+", row.newMarks, true));
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

function diffTable(oldText, newText, heads, split, ranges) {
  const rows = rowsOf(oldText, newText, ranges);
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
