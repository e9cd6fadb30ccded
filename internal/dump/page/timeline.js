// SPDX-License-Identifier: Apache-2.0
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const text = i => i < 0 ? null : data.strings[i];
  const byID = id => document.getElementById(id);
  const canvas = byID("chart"), scroll = byID("scroll"), tall = byID("tall"), detail = byID("detail");
  const draw2d = canvas.getContext("2d");
  const rowHeight = 18, axisHeight = 26, namesWidth = () => Math.min(260, Math.max(120, scroll.clientWidth * 0.28));
  const phases = ["absent", "pending", "running", "succeeded", "failed", "other"];
  const RESTART = 1, FINISHED = 2, REFUSED = 4, REMOVED = 8;
  const UNCLEAN = 1, LATER = 2; // of an epoch
  const SEQ = 0, VERSION = 1, AT = 2, STATE = 3, FLAGS = 4, KIND = 5, REASON = 6, TEXT = 7, CHANGES = 8;

  const all = Math.max(data.to - data.from, 1);
  const margin = Math.max(all * 0.01, 1);
  let view = { from: -margin, to: all + margin };
  let rows = data.pods;
  let chosen = { pod: null, event: -1 };
  let colours = {};
  let waiting = false;

  const troubled = pod => pod.w >= 0 || pod.e.some(e => (e[FLAGS] & (RESTART | REFUSED)) || e[STATE] >> 2 === 4) || flaps(pod);
  function flaps(pod) {
    let was = pod.s & 3;
    for (const e of pod.e) {
      const now = e[STATE] & 3;
      if (was === 2 && now === 1 && e[STATE] >> 2 === 2) return true;
      if (now) was = now;
    }
    return false;
  }

  function readColours() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["back", "text", "soft", "line", "row", "chosen", "ready", "unready", "pending", "succeeded", "failed", "other", "restart", "unsynced", "agent", "gap"])
      colours[name] = style.getPropertyValue("--" + name).trim();
  }
  function colourOf(state) {
    const phase = state >> 2;
    if (phase === 0) return null;
    if (phase === 2) return (state & 3) === 2 ? colours.ready : colours.unready;
    return colours[phases[phase]];
  }

  const x = (t, width, names) => names + (t - view.from) / (view.to - view.from) * (width - names);
  const timeAt = (px, width, names) => view.from + (px - names) / (width - names) * (view.to - view.from);
  // first returns the first event of a pod at or after a time.
  function first(events, t) {
    let lo = 0, hi = events.length;
    while (lo < hi) { const mid = (lo + hi) >> 1; if (events[mid][AT] < t) lo = mid + 1; else hi = mid; }
    return lo;
  }

  function later() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  }

  function draw() {
    const width = scroll.clientWidth, height = scroll.clientHeight, ratio = window.devicePixelRatio || 1;
    tall.style.height = Math.max(height, axisHeight + rows.length * rowHeight) + "px";
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
      canvas.style.width = width + "px"; canvas.style.height = height + "px";
    }
    const c = draw2d, names = namesWidth();
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = colours.back; c.fillRect(0, 0, width, height);
    c.font = "12px system-ui, sans-serif"; c.textBaseline = "middle";
    const top = scroll.scrollTop, from = Math.max(0, Math.floor(top / rowHeight)), to = Math.min(rows.length, Math.ceil((top + height - axisHeight) / rowHeight));
    c.save();
    c.beginPath(); c.rect(0, axisHeight, width, height - axisHeight); c.clip();
    for (let i = from; i < to; i++) drawRow(c, rows[i], axisHeight + i * rowHeight - top, i, width, names);
    drawEpochs(c, width, height, names);
    c.restore();
    drawAxis(c, width, names);
    byID("shown").textContent = rows.length + " of " + data.pods.length + " pods";
  }

  function drawRow(c, pod, y, i, width, names) {
    if (pod === chosen.pod) { c.fillStyle = colours.chosen; c.fillRect(0, y, width, rowHeight); }
    else if (i % 2) { c.fillStyle = colours.row; c.fillRect(0, y, width, rowHeight); }
    c.fillStyle = colours.text;
    c.fillText(fit(c, text(pod.n), names - 14), 8, y + rowHeight / 2);
    c.save();
    c.beginPath(); c.rect(names, y, width - names, rowHeight); c.clip();
    const events = pod.e, begin = first(events, view.from);
    let state = begin > 0 ? events[begin - 1][STATE] : pod.s, left = Math.max(x(0, width, names), names), i2 = begin;
    const end = x(all, width, names);
    const bar = (a, b, s) => { const colour = colourOf(s); if (colour && b > a) { c.fillStyle = colour; c.fillRect(a, y + 4, Math.max(b - a, 1), rowHeight - 9); } };
    // What follows within a pixel is drawn over by the worst of it.
    for (; i2 < events.length && events[i2][AT] <= view.to; i2++) {
      const at = x(events[i2][AT], width, names);
      bar(left, at, state);
      left = at; state = events[i2][STATE];
    }
    bar(left, Math.min(end, width), state);
    let last = -9;
    for (let k = begin; k < i2; k++) {
      const at = x(events[k][AT], width, names), flags = events[k][FLAGS];
      if (flags & (RESTART | REFUSED)) {
        c.fillStyle = colours.restart;
        if (flags & RESTART) { c.beginPath(); c.moveTo(at, y + 3); c.lineTo(at - 4, y + rowHeight - 4); c.lineTo(at + 4, y + rowHeight - 4); c.fill(); }
        else c.fillText("✕", at - 4, y + rowHeight / 2);
      } else if (at - last >= 3) {
        c.fillStyle = colours.text; c.globalAlpha = 0.35; c.fillRect(at, y + 3, 1, rowHeight - 7); c.globalAlpha = 1;
        last = at;
      }
      if (flags & FINISHED) { c.fillStyle = colours.text; c.beginPath(); c.arc(at, y + rowHeight / 2 - 1, 3, 0, 7); c.fill(); }
    }
    if (pod.w >= 0) {
      c.fillStyle = colours.unsynced;
      const a = Math.max(x(pod.w, width, names), names), b = Math.max(Math.min(end, width), a + 2);
      c.fillRect(a, y + rowHeight - 4, b - a, 3);
    }
    if (pod === chosen.pod && chosen.event >= 0) {
      const at = x(events[chosen.event][AT], width, names);
      c.strokeStyle = colours.text; c.lineWidth = 2; c.strokeRect(at - 4, y + 1, 8, rowHeight - 2);
    }
    c.restore();
  }

  function drawEpochs(c, width, height, names) {
    c.save();
    c.beginPath(); c.rect(names, axisHeight, width - names, height); c.clip();
    for (const [, at, before, flags] of data.epochs) {
      const unclean = flags & UNCLEAN;
      const b = Math.round(x(at - data.from, width, names)), a = x(before - data.from, width, names);
      if (b < names || a > width) continue;
      if (b - a > 3) { c.fillStyle = colours.gap; c.globalAlpha = 0.45; c.fillRect(a, axisHeight, b - a, height); c.globalAlpha = 1; }
      if (flags & LATER) continue;
      c.fillStyle = unclean ? colours.restart : colours.agent;
      c.fillRect(b, axisHeight, unclean ? 2 : 1, height);
    }
    c.restore();
  }

  const steps = [1, 10, 100, 1000, 5000, 15000, 60000, 300000, 900000, 3600000, 10800000, 21600000, 86400000, 604800000, 2592000000];
  function drawAxis(c, width, names) {
    c.fillStyle = colours.back; c.fillRect(0, 0, width, axisHeight);
    c.fillStyle = colours.line; c.fillRect(0, axisHeight - 1, width, 1);
    c.fillStyle = colours.soft;
    const span = view.to - view.from, room = Math.max(1, (width - names) / 110);
    const step = steps.find(s => span / s <= room) || span;
    for (let t = Math.ceil((view.from + data.from) / step) * step; t <= view.to + data.from; t += step) {
      const at = x(t - data.from, width, names);
      if (at < names) continue;
      c.fillRect(at, axisHeight - 6, 1, 5);
      c.fillText(label(t, step), at + 3, axisHeight / 2 - 1);
    }
    c.fillText("UTC", 8, axisHeight / 2);
  }
  function label(t, step) {
    const s = new Date(t).toISOString();
    if (step >= 86400000) return s.slice(0, 10);
    if (step >= 60000) return s.slice(5, 16).replace("T", " ");
    return step >= 1000 ? s.slice(11, 19) : s.slice(14, 23);
  }
  function fit(c, s, width) {
    if (c.measureText(s).width <= width) return s;
    let lo = 0, hi = s.length;
    while (lo < hi) { const mid = (lo + hi) >> 1; if (c.measureText("…" + s.slice(mid)).width <= width) hi = mid; else lo = mid + 1; }
    return "…" + s.slice(lo);
  }

  function zoom(factor, at) {
    const span = Math.min(Math.max((view.to - view.from) * factor, 2), (all + 2 * margin) * 1.2);
    const part = (at - view.from) / (view.to - view.from);
    view = { from: at - span * part, to: at + span * (1 - part) };
    later();
  }
  function move(part) {
    const by = (view.to - view.from) * part;
    view = { from: view.from + by, to: view.to + by };
    later();
  }
  const middle = () => chosen.event >= 0 ? chosen.pod.e[chosen.event][AT] : (view.from + view.to) / 2;

  function choose(pod, event) {
    chosen = { pod, event };
    if (pod) {
      const i = rows.indexOf(pod), y = i * rowHeight;
      if (y < scroll.scrollTop) scroll.scrollTop = y;
      else if (y + rowHeight > scroll.scrollTop + scroll.clientHeight - axisHeight) scroll.scrollTop = y + rowHeight - scroll.clientHeight + axisHeight;
      if (event >= 0) {
        const at = pod.e[event][AT];
        if (at < view.from || at > view.to) { const half = (view.to - view.from) / 2; view = { from: at - half, to: at + half }; }
      }
    }
    show();
    later();
  }

  function add(parent, tag, content, kind) {
    const e = document.createElement(tag);
    e.textContent = content;
    if (kind) e.className = kind;
    parent.append(e);
    return e;
  }
  function show() {
    detail.replaceChildren();
    const pod = chosen.pod;
    if (!pod) return;
    add(detail, "h2", text(pod.n));
    add(detail, "p", "uid " + text(pod.u) + ", " + pod.e.length + " events" + (pod.w >= 0 ? ", not acknowledged since " + new Date(data.from + pod.w).toISOString() + (pod.w === 0 ? " or before" : "") : ""));
    if (pod.e.length === 0) add(detail, "p", "nothing happened to it in this time: " + phases[pod.s >> 2] + ["", ", not ready", ", ready"][pod.s & 3] + " throughout");
    if (chosen.event < 0) return;
    const e = pod.e[chosen.event], changes = e[CHANGES];
    const reason = text(e[REASON]);
    add(detail, "p", "event " + e[SEQ] + ", version " + e[VERSION] + ": " + text(e[KIND]) + (reason ? " (" + reason + ")" : ""));
    add(detail, "p", new Date(data.from + e[AT]).toISOString());
    const told = text(e[TEXT]);
    if (told) add(detail, "p", told, "told");
    const list = add(detail, "dl", "");
    for (let i = 0; i < changes.length; i += 3) {
      add(list, "dt", text(changes[i]));
      if (changes[i + 1] >= 0) add(list, "dd", "− " + text(changes[i + 1]), "old");
      if (changes[i + 2] >= 0) add(list, "dd", "+ " + text(changes[i + 2]), "new");
    }
    if (changes.length === 0) add(detail, "p", "no field of the status changed");
  }

  function search() {
    const word = byID("search").value.trim().replace(/^\//, "").toLowerCase(), only = byID("troubled").checked;
    const hits = new Set();
    if (word) data.strings.forEach((s, i) => { if (s.toLowerCase().includes(word)) hits.add(i); });
    const matches = pod => !word || hits.has(pod.n) || hits.has(pod.u) || pod.e.some(e => hits.has(e[TEXT]) || e[CHANGES].some((c, i) => i % 3 && hits.has(c)));
    rows = data.pods.filter(pod => matches(pod) && (!only || troubled(pod)));
    if (chosen.pod && !rows.includes(chosen.pod)) { chosen = { pod: null, event: -1 }; show(); }
    scroll.scrollTop = 0;
    later();
  }

  // near returns the event of a pod that is nearest to a time; -1 without any.
  function near(pod, t) {
    const i = first(pod.e, t);
    if (i === pod.e.length || i > 0 && t - pod.e[i - 1][AT] < pod.e[i][AT] - t) return i - 1;
    return i;
  }
  let drag = null;
  canvas.addEventListener("pointerdown", e => { drag = { x: e.offsetX, from: view.from, to: view.to, moved: false }; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointermove", e => {
    if (!drag) return;
    const dx = e.offsetX - drag.x;
    if (Math.abs(dx) > 4) drag.moved = true;
    if (!drag.moved) return;
    const by = dx / (scroll.clientWidth - namesWidth()) * (drag.to - drag.from);
    view = { from: drag.from - by, to: drag.to - by };
    later();
  });
  canvas.addEventListener("pointerup", e => {
    const was = drag;
    drag = null;
    if (!was || was.moved) return;
    const row = Math.floor((e.offsetY - axisHeight + scroll.scrollTop) / rowHeight);
    if (e.offsetY < axisHeight || row < 0 || row >= rows.length) return;
    const names = namesWidth(), pod = rows[row];
    choose(pod, e.offsetX < names ? Math.min(0, pod.e.length - 1) : near(pod, timeAt(e.offsetX, scroll.clientWidth, names)));
  });
  canvas.addEventListener("wheel", e => {
    if (!e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    zoom(e.deltaY > 0 ? 1.25 : 0.8, timeAt(e.offsetX, scroll.clientWidth, namesWidth()));
  }, { passive: false });
  scroll.addEventListener("scroll", later);
  new ResizeObserver(later).observe(scroll);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); later(); });
  byID("in").addEventListener("click", () => zoom(0.5, middle()));
  byID("out").addEventListener("click", () => zoom(2, middle()));
  byID("fit").addEventListener("click", () => { view = { from: -margin, to: all + margin }; later(); });
  byID("search").addEventListener("input", search);
  byID("troubled").addEventListener("change", search);

  const row = () => rows.indexOf(chosen.pod);
  function step(by) {
    if (rows.length === 0) return;
    const next = Math.min(Math.max(row() + by, 0), rows.length - 1), pod = rows[next];
    choose(pod, near(pod, middle()));
  }
  const keys = {
    ArrowDown: () => step(1), ArrowUp: () => step(-1), PageDown: () => step(20), PageUp: () => step(-20),
    ArrowRight: e => e.shiftKey ? move(0.2) : along(1), ArrowLeft: e => e.shiftKey ? move(-0.2) : along(-1),
    Home: () => along(-Infinity), End: () => along(Infinity),
    "+": () => zoom(0.5, middle()), "=": () => zoom(0.5, middle()), "-": () => zoom(2, middle()), "0": () => byID("fit").click(),
    "/": () => byID("search").focus(), Escape: () => { byID("search").value = ""; byID("troubled").checked = false; chosen = { pod: null, event: -1 }; search(); show(); canvas.focus(); },
  };
  function along(by) {
    if (!chosen.pod) return step(1);
    choose(chosen.pod, Math.min(Math.max(chosen.event + by, 0), chosen.pod.e.length - 1));
  }
  document.addEventListener("keydown", e => {
    const typing = e.target instanceof HTMLInputElement && e.target.type === "search";
    if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key] || typing && e.key !== "Escape") {
      if (typing && e.key === "Enter") { canvas.focus(); if (rows.length > 0) choose(rows[0], near(rows[0], middle())); }
      return;
    }
    e.preventDefault();
    keys[e.key](e);
  });

  byID("node").textContent = (data.node ? "on " + data.node + ", " : "") + new Date(data.from).toISOString() + " to " + new Date(data.to).toISOString();
  readColours();
  draw();
  canvas.focus();
})();
