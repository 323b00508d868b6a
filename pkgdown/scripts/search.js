// The search of the site: every word of a query must be in a section's title,
// text or code, at the beginning of a word where that is possible.
window.Fuse = class {
  constructor(data, options) {
    this.entries = data.map((item) => ({
      item: item,
      fields: ["title", "what", "text", "code"].map((key) =>
        String(item[key] ?? "").toLowerCase()
      ),
    }));
  }

  // Titles count more than headings, these more than text, whole words more
  // than parts; 0 if the word is nowhere.
  weight(fields, word) {
    const factors = [8, 6, 2, 1];
    let best = 0;
    fields.forEach((text, k) => {
      let at = text.indexOf(word);
      while (at >= 0) {
        // the method summary.tall_fit is not tall_fit
        const begins = at === 0 || !/[\w.]/.test(text[at - 1]);
        const ends = !/\w/.test(text[at + word.length] ?? " ");
        best = Math.max(best, factors[k] * (begins ? (ends ? 3 : 2) : 1));
        if (begins && ends) {
          break;
        }
        at = text.indexOf(word, at + 1);
      }
    });
    return best;
  }

  search(query, options) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [];
    for (const entry of this.entries) {
      const weights = words.map((word) => this.weight(entry.fields, word));
      if (weights.length > 0 && weights.every((weight) => weight > 0)) {
        const sum = weights.reduce((a, b) => a + b);
        found.push({ item: entry.item, score: 0, weight: sum });
      }
    }
    const length = (entry) => entry.item.title.length + entry.item.what.length;
    found.sort((a, b) => b.weight - a.weight || length(a) - length(b));
    // a page is there twice at most
    const times = {};
    return found
      .filter(({ item }) => {
        times[item.path] = (times[item.path] ?? 0) + 1;
        return times[item.path] <= 2;
      })
      .slice(0, options.limit);
  }
};

// A list below the input: arrow keys move in it, Enter goes there.
jQuery.fn.autocomplete = function (options, sources) {
  const input = this;
  const source = sources[0];
  const list = jQuery("<div class='search-results' role='listbox'></div>")
    .hide()
    .insertAfter(input);
  let items = [];
  let at = 0;

  const choose = (k) => {
    if (items.length > 0) {
      input.trigger("autocomplete:selected", items[k]);
    }
  };
  const mark = (k) => {
    at = (k + items.length) % items.length;
    list.children().removeClass("active").eq(at).addClass("active")[0]
      ?.scrollIntoView({ block: "nearest" });
  };
  const show = (found) => {
    items = found;
    list.empty().toggle(found.length > 0);
    found.forEach((item, k) => {
      jQuery("<div class='search-result' role='option'></div>")
        .html(source.templates.suggestion(item))
        .on("mousedown", () => choose(k))
        .appendTo(list);
    });
    if (found.length > 0) {
      mark(0);
    }
  };

  input.attr("autocomplete", "off");
  input.on("input focus", () => {
    const query = input.val().trim();
    if (query.length < options.minLength) {
      show([]);
    } else {
      source.source(query, show);
    }
  });
  input.on("blur", () => list.hide());
  input.on("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (items.length > 0) {
        mark(at + (event.key === "ArrowDown" ? 1 : -1));
      }
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(at);
    } else if (event.key === "Escape") {
      show([]);
    }
  });
  return this;
};

// What was looked for is marked on the page that was found.
window.Mark = class {
  constructor(selector) {
    this.root = document.querySelector(selector);
  }

  mark(text) {
    const word = text.trim().toLowerCase();
    if (!this.root || word === "") {
      return;
    }
    const walker = document.createTreeWalker(this.root, NodeFilter.SHOW_TEXT);
    const found = [];
    while (walker.nextNode()) {
      if (walker.currentNode.data.toLowerCase().includes(word)) {
        found.push(walker.currentNode);
      }
    }
    for (const node of found) {
      const range = document.createRange();
      const from = node.data.toLowerCase().indexOf(word);
      range.setStart(node, from);
      range.setEnd(node, from + word.length);
      range.surroundContents(document.createElement("mark"));
    }
  }
};
