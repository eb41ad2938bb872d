// Search and the ledger's filters. Everything else on the site works without this file. No request leaves the site.
(function () {
  "use strict";
  var script = document.currentScript;
  var root = new URL("..", script.src).href;
  var zh = (document.documentElement.lang || "zh").slice(0, 2) === "zh";
  var say = function (a, b) { return zh ? a : b; };

  function clean(text) { return text.normalize("NFKC").toLowerCase(); }

  // A form in the header leads to the search page.
  function addForm() {
    var bar = document.querySelector(".md-header__inner");
    if (!bar || bar.querySelector(".kb-head")) return;
    var form = document.createElement("form");
    form.className = "kb-head";
    form.setAttribute("role", "search");
    form.action = root + "search/";
    var input = document.createElement("input");
    input.type = "search"; input.name = "q";
    input.placeholder = say("搜索", "Search");
    input.setAttribute("aria-label", say("搜索全站", "Search the site"));
    form.appendChild(input);
    bar.appendChild(form);
  }

  function hits(entries, asked) {
    var words = clean(asked).split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    var found = [];
    entries.forEach(function (entry, place) {
      var title = clean(entry.t), body = clean(entry.x), score = 0;
      for (var i = 0; i < words.length; i++) {
        var inTitle = title.indexOf(words[i]) >= 0, at = body.indexOf(words[i]);
        if (!inTitle && at < 0) return;
        score += (inTitle ? 10 : 0) + (at >= 0 ? 1 : 0);
      }
      found.push([score + (entry.k === "page" ? 0.5 : 0), place, entry]);
    });
    found.sort(function (a, b) { return b[0] - a[0] || a[1] - b[1]; });
    return found.map(function (one) { return one[2]; });
  }

  function mark(parent, text, words) {
    var low = clean(text);
    if (low.length !== text.length) { parent.textContent = text; return; }
    var at = 0;
    while (at < text.length) {
      var next = -1, size = 0;
      words.forEach(function (word) {
        var i = low.indexOf(word, at);
        if (i >= 0 && (next < 0 || i < next)) { next = i; size = word.length; }
      });
      if (next < 0) break;
      parent.appendChild(document.createTextNode(text.slice(at, next)));
      var hit = document.createElement("mark");
      hit.textContent = text.slice(next, next + size);
      parent.appendChild(hit);
      at = next + size;
    }
    parent.appendChild(document.createTextNode(text.slice(at)));
  }

  function show(list, entries, asked, status) {
    var words = clean(asked).split(/\s+/).filter(Boolean);
    var found = hits(entries, asked);
    list.textContent = "";
    status.textContent = asked.trim() ? say("找到 " + found.length + " 条", found.length + " found") : "";
    found.slice(0, 50).forEach(function (entry) {
      var item = document.createElement("li");
      item.className = "kb-hit";
      var link = document.createElement("a");
      link.href = root + entry.u;
      mark(link, entry.t, words);
      item.appendChild(link);
      var low = clean(entry.x), first = words.length ? low.indexOf(words[0]) : -1;
      var start = Math.max(0, first - 30);
      var text = document.createElement("p");
      mark(text, (start ? "…" : "") + entry.x.slice(start, start + 120), words);
      item.appendChild(text);
      list.appendChild(item);
    });
  }

  function searchPage() {
    var form = document.getElementById("kb-search");
    if (!form) return;
    form.hidden = false;
    var input = form.querySelector("input"), list = document.getElementById("kb-hits"), status = document.getElementById("kb-count");
    input.value = new URLSearchParams(location.search).get("q") || "";
    fetch(root + "search/index.json").then(function (answer) { return answer.json(); }).then(function (entries) {
      var run = function () { show(list, entries, input.value, status); };
      input.addEventListener("input", run);
      form.addEventListener("submit", function (event) { event.preventDefault(); run(); });
      run();
      document.body.setAttribute("data-kb-ready", "search");
    });
  }

  function ledger() {
    var form = document.getElementById("kb-filter");
    if (!form) return;
    form.hidden = false;
    var rows = Array.prototype.slice.call(document.querySelectorAll("#kb-ledger tbody tr"));
    var status = document.getElementById("kb-count");
    var asked = new URLSearchParams(location.search);
    Array.prototype.forEach.call(form.elements, function (field) { if (field.name && asked.get(field.name)) field.value = asked.get(field.name); });
    function run() {
      var left = 0;
      rows.forEach(function (row) {
        var fits = Array.prototype.every.call(form.elements, function (field) {
          if (!field.name || !field.value) return true;
          if (field.name === "q") return clean(row.textContent).indexOf(clean(field.value)) >= 0;
          return (" " + (row.getAttribute("data-" + field.name) || "") + " ").indexOf(" " + field.value + " ") >= 0;
        });
        row.hidden = !fits;
        if (fits) left++;
      });
      status.textContent = say("显示 " + left + " / " + rows.length + " 条", left + " of " + rows.length + " shown");
    }
    form.addEventListener("input", run);
    form.addEventListener("submit", function (event) { event.preventDefault(); run(); });
    run();
    document.body.setAttribute("data-kb-ready", "ledger");
  }

  addForm(); searchPage(); ledger();
})();
