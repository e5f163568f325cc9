// Filter, sort and expand: all else is there without this.
(function () {
  var doc = document, root = doc.documentElement, by = function (id) { return doc.getElementById(id); };
  root.classList.add('js');
  var anomaly = by('f-anomaly'), fault = by('f-fault'), name = by('f-name'), count = by('f-count');
  var form = doc.querySelector('.filter'); // a page of findings has none, and no matrix
  var home = by('matrix') ? 'matrix' : 'findings';
  var articles = Array.prototype.slice.call(doc.querySelectorAll('article'));
  var place = ''; // the fragment without the filter

  // The fragment is a place, and behind a question mark the filter.
  function read() {
    var text = location.hash.slice(1), at = text.indexOf('?');
    var query = new URLSearchParams(at < 0 ? '' : text.slice(at + 1));
    if (form) {
      anomaly.value = query.get('anomaly') || '';
      fault.value = query.get('fault') || '';
      name.value = query.get('name') || '';
    }
    var raw = at < 0 ? text : text.slice(0, at);
    try { place = decodeURIComponent(raw); } catch (e) { place = raw; }
    filter();
    show();
  }
  function write() {
    var query = new URLSearchParams();
    if (anomaly.value) query.set('anomaly', anomaly.value);
    if (fault.value) query.set('fault', fault.value);
    if (name.value) query.set('name', name.value);
    var text = query.toString();
    history.replaceState(null, '', '#' + encodeURI(place) + (text ? '?' + text : ''));
  }
  function go(to) {
    place = to;
    var text = location.hash, at = text.indexOf('?');
    history.pushState(null, '', '#' + encodeURI(to) + (at < 0 ? '' : text.slice(at)));
    show();
  }
  function show() {
    var target = by(place), article = target && target.closest('article'), event = '';
    if (!article) { // an event that is no proof has no place of its own
      var cut = place.lastIndexOf('/');
      target = cut > 0 ? by(place.slice(0, cut)) : null;
      article = target && target.closest('article');
      event = place.slice(cut + 1);
    }
    articles.forEach(function (a) { a.classList.toggle('open', a === article); });
    doc.querySelectorAll('li.here').forEach(function (li) { li.classList.remove('here'); });
    if (article) {
      tools.firstChild.textContent = 'copy as Markdown';
      article.querySelector('h3').after(tools);
      event = event || target.dataset.e || '';
      var sentence = function (e) { return article.querySelector('li[data-e="' + CSS.escape(e) + '"]'); };
      var told = timeline.show(article, /^\d+$/.test(event) ? event : ''); // maybe with another
      target = told.map(sentence).find(Boolean) || event && sentence(event) || article;
      if (target !== article) target.classList.add('here');
      target.scrollIntoView();
    } else {
      timeline.show(null);
      target = by(place);
      if (target) {
        if (target.tagName === 'DETAILS') target.open = true;
        target.scrollIntoView();
      }
    }
  }
  function filter() {
    if (!form) return;
    var shown = 0, word = name.value.trim().toLowerCase();
    doc.querySelectorAll('table.matrix').forEach(function (table) {
      var heads = Array.prototype.map.call(table.tHead.rows[0].cells, function (c) { return c.textContent.toLowerCase(); });
      Array.prototype.forEach.call(table.tBodies[0].rows, function (row) {
        var mine = row.dataset.s.toLowerCase().indexOf(word) >= 0, any = false;
        var met = !fault.value || row.dataset.f.split(' ').indexOf(fault.value) >= 0;
        Array.prototype.forEach.call(row.cells, function (cell, i) {
          if (!i) return;
          var ok = met && (!word || mine || heads[i].indexOf(word) >= 0) &&
            (!anomaly.value || (cell.dataset.a || '').split(' ').indexOf(anomaly.value) >= 0);
          cell.classList.toggle('off', !ok);
          if (ok && cell.firstElementChild) { any = true; shown++; }
        });
        row.classList.toggle('gone', !any);
      });
    });
    count.textContent = shown + ' cells';
  }
  if (form) {
    [anomaly, fault, name].forEach(function (c) {
      c.addEventListener('input', function () { filter(); write(); });
    });
    form.addEventListener('submit', function (e) { e.preventDefault(); });
    form.addEventListener('reset', function () { setTimeout(function () { filter(); write(); }, 0); });
  }

  doc.querySelectorAll('button[data-sort]').forEach(function (button) {
    button.addEventListener('click', function () {
      var column = +button.dataset.sort, body = by('ranking').tBodies[0], up = button.dataset.up !== '1';
      button.dataset.up = up ? '1' : '0';
      doc.querySelectorAll('#ranking th').forEach(function (th) { th.removeAttribute('aria-sort'); });
      button.closest('th').setAttribute('aria-sort', up ? 'ascending' : 'descending');
      var key = function (row) {
        var cell = row.cells[column], v = cell.dataset.v === undefined ? cell.textContent : cell.dataset.v;
        return v !== '' && isFinite(v) ? +v : v;
      };
      Array.prototype.slice.call(body.rows).sort(function (a, b) {
        var x = key(a), y = key(b);
        if (typeof x !== typeof y) { x = String(x); y = String(y); }
        return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1);
      }).forEach(function (row) { body.appendChild(row); });
    });
  });

  // The buttons of the story that is shown.
  var tools = doc.createElement('p');
  tools.className = 'tools';
  [['copy', 'copy as Markdown'], ['back', 'back to the ' + home]].forEach(function (b) {
    var button = doc.createElement('button');
    button.type = 'button';
    button.dataset.do = b[0];
    button.textContent = b[1];
    tools.append(button, ' ');
  });

  // A story as Markdown.
  function markdown(article) {
    var escape = function (s) { return s.replace(/\s+/g, ' ').trim().replace(/[\\`*_<>|\[\]#]/g, '\\$&'); };
    var out = ['### ' + escape(article.querySelector('h3').textContent), ''];
    article.querySelectorAll('p:not(.again):not(.tools)').forEach(function (p) {
      out.push(escape(p.textContent), '');
    });
    article.querySelectorAll('ol>li').forEach(function (li, i) { out.push((i + 1) + '. ' + escape(li.textContent)); });
    article.querySelectorAll('pre').forEach(function (pre) { out.push('', '```' + (pre.dataset.lang || 'mermaid'), pre.textContent.trim(), '```'); });
    var code = article.querySelector('.again code');
    if (code) out.push('', '    ' + code.textContent);
    return out.join('\n') + '\n';
  }
  function copy(article, button) {
    var text = markdown(article), done = function () { button.textContent = 'copied'; };
    var byHand = function () { // from a file some browsers allow nothing else
      var area = doc.createElement('textarea');
      area.value = text;
      area.setAttribute('aria-label', 'the story as Markdown');
      article.appendChild(area);
      area.select();
      if (doc.execCommand('copy')) { done(); area.remove(); }
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, byHand); else byHand();
  }
  function back() { go(home); }
  doc.addEventListener('click', function (e) {
    var button = e.target.closest('button[data-do]');
    if (button) return button.dataset.do === 'copy' ? copy(button.closest('article'), button) : back();
    var link = e.target.closest('a[href^="#"]');
    if (link) {
      e.preventDefault();
      var to = link.getAttribute('href').slice(1);
      try { to = decodeURIComponent(to); } catch (err) { /* as it is */ }
      return go(to);
    }
    var li = e.target.closest('article li[data-e]');
    if (li) go(li.closest('article').id + '/' + li.dataset.e);
  });
  doc.addEventListener('keydown', function (e) {
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) || e.ctrlKey || e.metaKey || e.altKey) return;
    var at = articles.findIndex(function (a) { return a.classList.contains('open'); });
    if (e.key === 'Escape') { if (!timeline.clear()) back(); }
    else if (e.key === '/' && form) { e.preventDefault(); name.focus(); }
    else if (e.key === 'j' && at + 1 < articles.length) go(articles[at + 1].id);
    else if (e.key === 'k' && at > 0) go(articles[at - 1].id);
  });
  window.addEventListener('popstate', read);
  window.addEventListener('hashchange', read);
  read();
})();
