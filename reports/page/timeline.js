'use strict';
// The timeline of the story that is open: it zooms, its lanes can be pinned, and lengths in it are measured.
// What the program drew stays as it is, to be printed. What is seen is a copy in which places are moved: absolute
// coordinates are places in time and in lanes, relative ones are glyphs there, which nothing stretches.
var timeline = (function () {
  var doc = document, gutter = 74, top = 42, most = 60, letter = 6.1;
  var t = null; // the one that is seen

  function make(name, attributes, text) {
    var e = doc.createElement(name);
    Object.keys(attributes).forEach(function (a) { e.setAttribute(a, attributes[a]); });
    e.textContent = text || '';
    return e;
  }
  function draw(parent, name, attributes, text) {
    var e = doc.createElementNS('http://www.w3.org/2000/svg', name);
    Object.keys(attributes).forEach(function (a) { e.setAttribute(a, attributes[a]); });
    if (text) e.textContent = text;
    parent.appendChild(e);
    return e;
  }
  function each(list, f) { Array.prototype.forEach.call(list, f); }
  function num(e, a) { return +e.getAttribute(a); }
  function round(x) { return Math.round(x * 10) / 10; }
  function fit(text, room) {
    if (text.length * letter <= room + 1) return text;
    var n = Math.floor(room / letter) - 1;
    return n < 3 ? '' : text.slice(0, n) + '…';
  }

  // A length with three digits at most, as the program says it.
  function words(ns) {
    var unit = ns >= 1e9 ? [1e9, ' s'] : ns >= 1e6 ? [1e6, ' ms'] : ns >= 1e3 ? [1e3, ' µs'] : [1, ' ns'];
    var x = ns / unit[0], behind = 3;
    for (var rest = x; rest >= 1 && behind > 0; rest /= 10) behind--;
    return +x.toFixed(behind) + unit[1];
  }
  function seconds(ns) { return (ns / 1e9).toFixed(t.digits); }

  // Places and times, both ways: between two places time goes on evenly.
  function between(x, from, to) {
    var p = t.places, i = 1;
    while (i < p.length - 1 && p[i][from] < x) i++;
    if (p.length < 2 || x <= p[0][from]) return p[0][to];
    if (x >= p[p.length - 1][from]) return p[p.length - 1][to];
    var a = p[i - 1], b = p[i];
    return a[to] + (b[to] - a[to]) * (x - a[from]) / (b[from] - a[from]);
  }
  function timeAt(x) { return Math.round(between(x, 'x', 'at')); }
  function nearest(x) { // the place next to x
    return t.places.reduce(function (best, p) { return Math.abs(p.x - x) < Math.abs(best.x - x) ? p : best; });
  }
  function place(x) { // where something is to be seen, whichever way it was rounded
    var p = nearest(x);
    return Math.abs(p.x - x) <= 1 ? p.x : x;
  }
  function X(x) { return x < gutter ? x : gutter + (x - gutter) * t.k; }
  function unX(x) { return gutter + (x - gutter) / t.k; }
  function Y(y) {
    var lane = t.lanes.find(function (l) { return y > l.top - 4 && y <= l.top + l.height + 4; });
    return lane ? y - lane.top + lane.now : y;
  }
  function left() { return t.copy.getBoundingClientRect().left; }
  function told(p) { // what happened at a place
    var plain = [], says = p.events.map(function (e) {
      var own = [e].concat(t.of[e].also).map(function (e) { return t.said[e]; }).filter(Boolean);
      if (!own.length) plain.push(e);
      return own.join('; ');
    }).filter(Boolean);
    if (plain.length > 1) says.push('events ' + plain.join(', ') + (p.says.length ? ', of which: ' + p.says.join('; ') : ''));
    else if (plain.length) says.push('event ' + plain + (p.says.length ? ': ' + p.says.join('; ') : ''));
    return says.join('; ');
  }

  // open makes the copy of a story's timeline.
  function open(article) {
    var svg = article.querySelector('.draw>svg[data-axis]');
    if (!svg) return;
    var box = svg.parentNode, copy = svg.cloneNode(true), size = svg.getAttribute('viewBox').split(' ');
    t = { article: article, box: box, copy: copy, k: 1, width: +size[2], height: +size[3], bottom: size[3] - 34, places: [], said: {}, of: {}, sel: null, cursor: -1, own: false };
    var axis = svg.dataset.axis.split('|'), items = axis[0].split(';'), cuts = (axis[1] || '').split(','), x = 0, at = 0, event = 0;
    t.digits = +items[0];
    t.unit = Math.pow(10, Math.max(0, 6 - t.digits));
    items.slice(1).forEach(function (item) {
      var n = item.split(','), place = t.places.length;
      x += +n[0];
      at += +n[1];
      t.places.push({ x: x, at: at * t.unit, says: [], events: n.slice(2).map(function (text) {
        var runs = text.split('+'), also = [], next = event += +runs[0];
        runs.slice(1).forEach(function (n, i) {
          for (n = +(n || 1); n > 0; n--) if (++next && !(i % 2)) also.push(next);
        });
        [event].concat(also).forEach(function (e) { t.of[e] = { place: place, event: event, also: also }; });
        return event;
      }) });
    });
    each(article.querySelectorAll('li[data-e]'), function (li) { t.said[li.dataset.e] = li.textContent; });
    t.cuts = cuts.map(function (n) { return n * t.unit; });
    labels(svg);
    var names = svg.querySelectorAll('g.b>text');
    t.lanes = Array.prototype.map.call(names, function (name, i) {
      var y = num(name, 'y') - 14, next = names[i + 1] ? num(names[i + 1], 'y') - 14 : t.bottom;
      return { name: (name.querySelector('title') || name).textContent, top: y, now: y, height: next - y - 8, order: i, pinned: false };
    });
    copy.classList.add('live');
    copy.removeAttribute('data-axis');
    if (copy.querySelector('g.b')) copy.querySelector('g.b').remove(); // the heads are in its place
    var words = copy.querySelectorAll('g.d:not(.c)>text');
    words[0].remove();
    t.note = words[1];
    t.scale = t.note.textContent;
    t.ticks = copy.querySelector('g.d.c');
    t.labels = Array.prototype.map.call(t.ticks.children, function (e) { return { x: num(e, 'x'), y: num(e, 'y'), text: e.textContent }; });
    t.flags = copy.querySelector('g.wt.c');
    t.proving = t.flags ? t.flags.textContent.match(/\d+/g).map(Number) : [];
    shapes();
    box.classList.add('on');
    box.appendChild(copy);
    controls();
    layout();
  }

  // labels finds words for what the sentences don't tell: beside a mark, or in the sequence diagram.
  function labels(svg) {
    each(svg.querySelectorAll('path.x>title,.v title'), function (title) {
      var number = /^#(\d+) (.*)/.exec(title.textContent), p = nearest(+title.parentNode.getAttribute('d').slice(1).split(',')[0]);
      if (number) t.said[number[1]] = t.said[number[1]] || 'event ' + number[1] + ': ' + number[2];
      else p.says = p.says.concat(title.textContent.split('; '));
    });
    var rows = {}, bars = Array.prototype.map.call(svg.querySelectorAll('path>title'), function (title) { return title.textContent; }), other = t.article.querySelector('.draw>svg:not([data-axis])');
    each(other ? other.querySelectorAll('svg>text') : [], function (e) { rows[num(e, 'y')] = e.textContent; });
    each(other ? other.querySelectorAll('g[transform]>text') : [], function (e) {
      var y = num(e, 'y'), words = rows[y] || rows[y - 4], own = t.of[e.textContent.split(' ')[0]];
      if (!words || !own || [own.event].concat(own.also).some(function (e) { return t.said[e]; })) return;
      var cut = /…$/.test(words), whole = t.places[own.place].says.concat(cut ? bars : []).find(function (says) { return says.indexOf(words.replace(/…$/, '')) >= 0; });
      t.said[own.event] = 'event ' + own.event + ': ' + (whole || words);
    });
    t.places.forEach(function (p) { // words that are an event's already are not another's
      p.says = p.says.filter(function (says) { return !p.events.some(function (e) { return t.said[e] && (t.said[e].indexOf(says) >= 0 || says.indexOf(t.said[e]) >= 0); }); });
    });
  }

  // shapes reads what is drawn: it is moved from where it was at first.
  function shapes() {
    each(t.copy.querySelectorAll('path.x'), function (path) { // marks without words of their own: the sentences have them
      if (path.firstElementChild) return;
      path.getAttribute('d').split(/(?=M)/).forEach(function (d) {
        var mark = path.parentNode.insertBefore(path.cloneNode(), path);
        mark.setAttribute('d', d);
        draw(mark, 'title', {}, told(nearest(+d.slice(1).split(',')[0])));
      });
      path.remove();
    });
    t.bars = [];
    t.marks = [];
    t.shapes = Array.prototype.map.call(t.copy.querySelectorAll('path'), function (path) {
      var d = path.getAttribute('d'), title = path.querySelector('title');
      var parts = d.match(/[a-zA-Z][^a-zA-Z]*/g).map(function (p) { return { c: p[0], n: (p.slice(1).match(/-?[\d.]+/g) || []).map(Number) }; });
      var box = /^M([\d.]+),([\d.]+)H([\d.]+)(?:l4,([\d.]+)-4,([\d.]+))?(?:([vV])([\d.]+))?H/.exec(d);
      var cut = ['l-4', 'l4'].map(function (point) { return box && d.indexOf(point) > 0 ? t.cuts.shift() : 0; }); // before, behind
      if (box && title) t.bars.push(bar(path, title.textContent, box, cut));
      if (!box && title && path.classList.contains('x') && parts[1].c === 'v') t.marks.push({ x: parts[0].n[0], y: parts[0].n[1], height: parts[1].n[0], path: path });
      var sharp = box && box[3] - box[1] <= 2 ? box[3] - box[1] : 0; // an instant: as wide as can be seen, at each zoom
      return { path: path, parts: parts, sharp: sharp, over: path.classList.contains('o'), lost: parts.length > 2 && parts[1].c === 'M' && parts[2].c === 'L' && !!title };
    });
    t.grid = t.copy.querySelector('path.l');
    t.texts = Array.prototype.map.call(t.copy.querySelectorAll('text'), function (e) { return { e: e, x: num(e, 'x'), y: num(e, 'y') }; }).filter(function (text) {
      return text.e !== t.note && !text.e.closest('g.c') && !text.e.closest('g.v') && !t.bars.some(function (b) { return b.label === text.e; });
    });
    t.writes = Array.prototype.map.call(t.copy.querySelectorAll('g.v>path'), function (path) {
      var d = /^M([\d.]+),([\d.]+)m(-?[\d.]+)(.*)$/.exec(path.getAttribute('d')), next = path.nextElementSibling;
      return { path: path, x: +d[1], y: +d[2], rest: d[4], name: next && next.tagName === 'text' ? next : null };
    });
    t.selected = draw(t.copy, 'path', { 'class': 'sel' });
    t.line = draw(t.copy, 'path', { 'class': 'cur' });
  }
  function bar(path, says, box, cut) {
    var next = path.nextElementSibling, end = +box[3], surface = /^[zf]$/.test(path.getAttribute('class'));
    if (next && next.classList.contains('g')) { // what was granted
      end = +/H([\d.]+)/.exec(next.getAttribute('d'))[1];
      next = next.nextElementSibling;
    }
    var height = !box[6] ? +box[4] + +box[5] : box[6] === 'v' ? +box[7] : box[7] - box[2], to = box[3] - box[1] <= 2 ? +box[1] : +box[3];
    var b = { path: path, says: says, x: place(+box[1]), to: place(to), end: end, y: +box[2], height: height, text: '', surface: surface, cut: cut[0] + cut[1] ? cut : null };
    if (path.classList.contains('o') || path.classList.contains('g')) return b; // its label stands above, or before
    if (next && next.tagName === 'text' && num(next, 'x') === b.x + 3) b.label = next;
    else {
      b.label = draw(t.copy, 'text', { x: b.x + 3, y: Math.round(b.y + height - 2.5) });
      path.after(b.label);
    }
    b.at = num(b.label, 'y');
    b.text = b.label.textContent;
    return b;
  }

  // layout puts everything where it belongs at this zoom and with these lanes.
  function layout() {
    var y = top + 8, order = [], width = X(end()) + t.width - end();
    t.lanes.slice().sort(function (a, b) { return b.pinned - a.pinned || a.order - b.order; }).forEach(function (lane) {
      lane.now = y;
      lane.head.style.top = y + 'px';
      order.push(lane.head);
      y += lane.height + 8;
    });
    // Who goes through the heads by key goes from top to bottom. One that is moved is no longer where keys go to.
    if (order.some(function (head, i) { return t.heads.children[i + 1] !== head; })) t.heads.append.apply(t.heads, order);
    t.copy.setAttribute('width', round(width));
    t.copy.setAttribute('viewBox', '0 0 ' + round(width) + ' ' + t.height);
    t.shapes.forEach(function (s) {
      var y = s.parts[0].n[1], half = 0;
      if (s.lost) half = (Y(y) + Y(s.parts[1].n[1])) / 2;
      s.path.setAttribute('d', s.parts.map(function (p) {
        var n = p.n;
        if (p.c === 'H') n = [round(s.sharp && n[0] !== s.parts[0].n[0] ? X(n[0] - s.sharp) + s.sharp : X(n[0]))];
        else if (p.c === 'V') n = [Y(n[0])];
        else if (p.c === 'M' || p.c === 'L') n = n.map(function (v, i) { return i % 2 ? p.c === 'L' && s.lost ? half : Y(v) : round(X(v)); });
        if (s.over && (p.c === 'M' || p.c === 'V')) { // from the upper belief to the lower, whichever that is now
          var a = Y(y), b = Y(s.parts.find(function (p) { return p.c === 'V'; }).n[0]) - 20;
          n = p.c === 'M' ? [n[0], Math.min(a, b)] : [Math.max(a, b) + 20];
        }
        return p.c + n.join();
      }).join(''));
    });
    t.texts.forEach(function (text) {
      text.e.setAttribute('x', round(X(text.x)));
      text.e.setAttribute('y', Y(text.y));
    });
    var last = -1000;
    t.writes.forEach(function (w) {
      var x = X(w.x);
      last = Math.max(x, last + 24);
      w.path.setAttribute('d', 'M' + round(x) + ',' + Y(w.y) + 'm' + round(last - x - 4) + w.rest);
      if (!w.name) return;
      w.name.setAttribute('x', round(x));
      w.name.setAttribute('dx', round(last - x + 8));
      w.name.setAttribute('y', Y(w.y) + 4);
    });
    axis();
    flags();
    t.note.textContent = t.scale.replace(/= ([\d.]+) px/, function (_, px) { return '= ' + +(px * t.k).toPrecision(3) + ' px'; });
    t.out.disabled = t.k <= least();
    t.in.disabled = t.k >= most;
    mark();
    view();
  }

  // axis writes as many times as there is room for.
  function axis() {
    var labels = t.labels;
    if (t.k !== 1) {
      var lines = '', p = t.places, end = -1000, ticks = [];
      labels = labels.filter(function (l) { return l.y > t.bottom; }).map(function (l) { return { x: X(l.x), y: l.y, text: l.text }; }).filter(function (l) {
        var half = l.text.length * letter / 2, room = l.x - half >= end;
        if (room) end = l.x + half + 6;
        return room;
      });
      var tick = function (x, text, last) {
        var at = Math.max(x, 52 + text.length * 3.6); // beside the unit
        var close = function () { return ticks.length && at - ticks[ticks.length - 1].x < text.length * letter + 8; };
        while (last && ticks.length > 1 && close()) ticks.pop();
        if (last && close()) at = ticks[0].x + text.length * 7.2 + 4;
        if (!close()) ticks.push({ x: at, y: top - 4, text: text, line: x });
      };
      p.forEach(function (place, i) {
        tick(X(place.x), seconds(place.at), i && i === p.length - 1);
        var next = p[i + 1], wide = next && X(next.x) - X(place.x);
        if (!next || wide < 300) return;
        var least = (next.at - place.at) * 150 / wide, step = Math.pow(10, Math.max(9 - t.digits, Math.ceil(Math.log10(least))));
        if (step / 2 >= least && step > Math.pow(10, 9 - t.digits)) step /= 2;
        for (var at = Math.ceil(place.at / step) * step; at < next.at; at += step) {
          var x = X(between(at, 'at', 'x'));
          if (X(next.x) - x > 60) tick(x, seconds(at));
        }
      });
      ticks.forEach(function (l) { lines += 'M' + round(l.line) + ',' + top + 'V' + t.bottom; });
      labels = labels.concat(ticks);
      t.grid.setAttribute('d', lines);
    }
    t.ticks.textContent = '';
    labels.forEach(function (l) { draw(t.ticks, 'text', { x: round(l.x), y: l.y }, l.text); });
  }

  // flags writes the numbers of what proves something, together where they would lie upon each other.
  function flags() {
    if (!t.flags) return;
    var list = [];
    t.proving.forEach(function (e) {
      var place = t.of[e] && t.places[t.of[e].place], text = '#' + e, last = list[list.length - 1];
      if (!place) return;
      if (last && X(place.x) - last.x < (last.text.length + text.length) * letter / 2 + 6) last.text += ' ' + text;
      else list.push({ x: X(place.x), text: text });
    });
    t.flags.textContent = '';
    list.forEach(function (f) { draw(t.flags, 'text', { x: round(f.x), y: 12 }, f.text); });
  }

  // view puts the labels of bars into what is seen of them, and says as much as fits.
  function view() {
    var from = t.box.getBoundingClientRect().left + gutter + 7 - left(), to = from + t.box.clientWidth;
    t.heads.parentNode.classList.toggle('over', t.box.scrollLeft > 0);
    t.note.setAttribute('x', 4 + Math.max(0, t.box.scrollLeft));
    t.bars.forEach(function (b) {
      if (!b.label) return;
      var x = Math.max(X(b.x), Math.min(from, X(b.end))), room = X(b.end) - x - 4, text = b.text;
      if (X(b.x) > to || room < 0) text = '';
      else if (!text || /…$/.test(text) || text.length * letter > room + 1) text = room >= 20 * letter ? fit(b.says, room) : fit(text, room).replace(/…+$/, '…');
      b.label.textContent = text;
      b.label.setAttribute('x', round(x + 3));
      b.label.setAttribute('y', Y(b.at));
    });
  }

  // mark draws what is selected and where one is.
  function mark() {
    var s = t.sel, p = t.places[t.cursor];
    t.selected.setAttribute('d', s ? 'M' + round(X(s.a)) + ',' + top + 'H' + round(X(s.b)) + 'V' + t.bottom + 'H' + round(X(s.a)) + 'z' : '');
    t.line.setAttribute('d', p ? 'M' + round(X(p.x)) + ',' + (top - 8) + 'V' + t.bottom : '');
  }
  function select(a, b, says, cut) { // of what is cut so much lies before the picture and behind it
    if (a > b) { var c = a; a = b; b = c; }
    t.sel = { a: a, b: b };
    var from = timeAt(a), to = timeAt(b), seen = to - from;
    if (cut) {
      from -= cut[0];
      to += cut[1];
    }
    t.status.textContent = (says ? says + ': ' : '') + seconds(from) + ' s to ' + seconds(to) + ' s, ' + words(to - from) + (cut ? ' (the picture shows ' + words(seen) + ' of it)' : '');
    mark();
  }
  function pick(b) {
    t.chosen = b;
    t.cursor = -1;
    select(b.x, b.to, b.says, b.cut);
  }
  function put(i, own) { // the cursor
    var p = t.places[i];
    t.cursor = i;
    t.own = own;
    t.status.textContent = seconds(p.at) + ' s' + (p.events.length ? ': ' + told(p) : '');
    mark();
    bring(p.x);
  }
  function bring(x) { // into view
    var box = t.box.getBoundingClientRect(), at = left() + X(x);
    if (at < box.left + gutter + 10 || at > box.right - 20) t.box.scrollLeft += at - (box.left + gutter + box.right) / 2;
    view();
  }
  function clear() {
    if (!t || !t.sel && !(t.cursor >= 0 && t.own)) return false;
    t.sel = t.chosen = t.anchor = null;
    t.cursor = -1;
    t.status.textContent = '';
    mark();
    return true;
  }

  function end() { return t.places[t.places.length - 1].x; }
  function least() { return Math.min(1, Math.max(0.05, (t.box.clientWidth - 13 - gutter - t.width + end()) / (end() - gutter))); }
  function zoom(k, at) {
    var box = t.box.getBoundingClientRect();
    if (at === undefined) at = t.pointer > box.left + gutter && t.pointer < box.right ? t.pointer : (box.left + gutter + box.right) / 2;
    var x = unX(at - left());
    t.k = Math.max(least(), Math.min(most, k));
    layout();
    t.box.scrollLeft += left() + X(x) - at;
    view();
  }
  function next(by) { // one step, but not past the scale at which everything began
    var k = t.k * by;
    return (k - 1) * (t.k - 1) < 0 ? 1 : k;
  }
  function pan(way) {
    t.box.scrollLeft += way * (t.box.clientWidth - gutter) / 3;
    view();
  }
  function pin(lane) {
    lane.pinned = !lane.pinned;
    lane.head.setAttribute('aria-pressed', lane.pinned);
    layout();
    lane.head.focus();
  }

  // controls makes the buttons: above the picture those that zoom, in it the heads of the lanes.
  function controls() {
    t.tools = make('div', { 'class': 'zoom', role: 'group', 'aria-label': 'Zoom of the timeline' });
    var button = function (text, name, does) {
      var b = make('button', { type: 'button', 'aria-label': name, title: name }, text);
      b.addEventListener('click', does);
      t.tools.append(b, ' ');
      return b;
    };
    var middle = function () { var box = t.box.getBoundingClientRect(); return (box.left + gutter + box.right) / 2; };
    t.out = button('−', 'zoom out (s)', function () { zoom(next(1 / 1.5), middle()); });
    t.in = button('+', 'zoom in (w)', function () { zoom(next(1.5), middle()); });
    button('whole', 'the whole timeline (0)', whole);
    button('◂', 'pan to the left (a)', function () { pan(-1); });
    button('▸', 'pan to the right (d)', function () { pan(1); });
    t.status = make('output', { role: 'status' });
    t.tools.append(t.status);
    t.box.before(t.tools);
    var layer = make('div', { 'class': 'heads' }), strip = make('div', { role: 'group', 'aria-label': 'Lanes' });
    strip.style.height = t.bottom + 'px';
    strip.append(make('span', {}, 'seconds'));
    t.heads = strip;
    t.lanes.forEach(function (lane) {
      lane.head = make('button', { type: 'button', 'aria-pressed': 'false', 'aria-label': 'pin lane ' + lane.name, title: lane.name + ': pin, so that this lane comes first' }, lane.name);
      lane.head.style.height = lane.height + 'px';
      lane.head.addEventListener('click', function () { pin(lane); });
      strip.append(lane.head);
    });
    layer.append(strip);
    t.box.prepend(layer);
    t.copy.addEventListener('pointerdown', press);
    t.copy.addEventListener('click', click);
    t.box.addEventListener('pointermove', hover);
    t.box.addEventListener('pointerleave', hover);
    t.box.addEventListener('wheel', wheel, { passive: false });
    t.box.addEventListener('scroll', view);
  }
  function whole() {
    zoom(least());
    t.box.scrollLeft = 0;
    view();
  }
  function close() {
    if (!t) return;
    t.tools.remove();
    t.heads.parentNode.remove();
    t.copy.remove();
    t.box.classList.remove('on');
    t.box.removeEventListener('pointermove', hover);
    t.box.removeEventListener('pointerleave', hover);
    t.box.removeEventListener('wheel', wheel);
    t.box.removeEventListener('scroll', view);
    t = null;
  }

  function hover(e) { t.pointer = e.type === 'pointerleave' ? undefined : e.clientX; }
  function wheel(e) {
    if (!e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    zoom(t.k * Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.002)), e.clientX);
  }
  // What is dragged over snaps to what happened close by, so that a length is that of something.
  function snapped(clientX) {
    var x = Math.max(t.places[0].x, Math.min(t.places[t.places.length - 1].x, unX(clientX - left()))), p = nearest(x);
    return Math.abs(X(p.x) - X(x)) <= 5 ? p.x : x;
  }
  function press(e) {
    if (e.button || e.pointerType === 'touch') return; // a finger scrolls
    var began = e.clientX;
    t.dragged = false;
    var move = function (e) {
      if (!t || !t.dragged && Math.abs(e.clientX - began) < 4) return;
      t.dragged = true;
      t.cursor = -1;
      t.chosen = null;
      select(snapped(began), snapped(e.clientX));
    };
    var up = function () {
      doc.removeEventListener('pointermove', move);
      doc.removeEventListener('pointerup', up);
      doc.removeEventListener('pointercancel', up);
    };
    doc.addEventListener('pointermove', move);
    doc.addEventListener('pointerup', up);
    doc.addEventListener('pointercancel', up);
  }
  function click(e) {
    if (t.dragged) { t.dragged = false; return; }
    var frame = t.copy.getBoundingClientRect(), x = e.clientX - frame.left, y = e.clientY - frame.top;
    var inside = function (a, b, at, height) { return x >= a && x <= b && y >= at && y <= at + height; };
    var hit = t.marks.filter(function (m) { return inside(X(m.x) - 4, X(m.x) + 4, Y(m.y), m.height); })[0];
    if (hit) {
      clear();
      return put(t.places.indexOf(nearest(hit.x)), true);
    }
    var size = function (b) { var r = b.path.getBoundingClientRect(); return r.width * r.height + (b.surface ? 1e9 : 0); };
    var bars = t.bars.filter(function (b) {
      var r = b.path.getBoundingClientRect();
      return inside(r.left - frame.left - 1, r.right - frame.left + 1, r.top - frame.top, r.height);
    }).sort(function (a, b) { return size(a) - size(b); });
    if (bars.length) pick(bars[0]); else clear();
  }
  function step(way, extend, to) {
    var first = t.cursor;
    if (first < 0) first = t.places.findIndex(function (p) { return left() + X(p.x) >= t.box.getBoundingClientRect().left + gutter; }) - (way > 0 ? 1 : 0);
    var next = Math.max(0, Math.min(t.places.length - 1, to === undefined ? first + way : to));
    if (!extend) {
      t.anchor = t.sel = null;
      return put(next, true);
    }
    if (!t.anchor) t.anchor = t.places[Math.max(0, first)];
    put(next, true);
    select(t.anchor.x, t.places[next].x);
  }
  function bars(way) { // the next of what lasted
    var list = t.bars.filter(function (b) { return !b.surface; }).sort(function (a, b) { return a.x - b.x || Y(a.y) - Y(b.y); });
    if (!list.length) return;
    var at = list.indexOf(t.chosen), b = list[at < 0 ? way > 0 ? 0 : list.length - 1 : (at + way + list.length) % list.length];
    pick(b);
    bring(b.x);
  }
  doc.addEventListener('keydown', function (e) {
    if (!t || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) || e.ctrlKey || e.metaKey || e.altKey) return;
    var last = t.places.length - 1, keys = {
      w: function () { zoom(next(1.5)); }, s: function () { zoom(next(1 / 1.5)); }, a: function () { pan(-1); }, d: function () { pan(1); },
      '0': whole, b: function () { bars(1); }, B: function () { bars(-1); }
    }, arrows = {
      ArrowRight: function () { step(1, e.shiftKey); }, ArrowLeft: function () { step(-1, e.shiftKey); },
      Home: function () { step(0, e.shiftKey, 0); }, End: function () { step(0, e.shiftKey, last); }
    };
    var does = keys.hasOwnProperty(e.key) ? keys[e.key] : t.box === doc.activeElement && arrows.hasOwnProperty(e.key) ? arrows[e.key] : null;
    if (!does) return;
    e.preventDefault();
    does();
  });
  window.addEventListener('resize', function () { if (t) layout(); });

  return {
    // show shows the timeline of a story, if it has one, and of that an event, if there is one. It returns the events
    // that may have its sentence.
    show: function (article, event) {
      if (t && t.article !== article) close();
      if (article && !t) open(article);
      if (!t) return [event];
      t.sel = t.chosen = t.anchor = null;
      t.cursor = -1;
      t.status.textContent = '';
      mark();
      if (!event) return [];
      var of = t.of[event], at = 0;
      if (of) {
        put(of.place, false);
        if (of.event === +event) return [event].concat(of.also);
        t.status.textContent += ' (event ' + event + ' is told together with event ' + of.event + ')';
        return [event, of.event];
      }
      t.places.forEach(function (p, i) { if (p.events.some(function (e) { return e <= event; })) at = i; });
      bring(t.places[at].x);
      t.status.textContent = 'event ' + event + ' is not in the picture';
      return [event];
    },
    clear: clear
  };
})();
