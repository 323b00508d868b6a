// "On this page": a nested list of links to the headings of a page.
window.Toc = {
  init: function (options) {
    const nav = options.$nav;
    if (nav.length === 0) {
      return;
    }
    nav.attr("data-toggle", "toc");
    const top = jQuery("<ul class='nav flex-column'></ul>").appendTo(nav);
    let inner = null;
    let first = 0;
    options.$scope.each(function () {
      const id = this.id || (this.parentNode.id ?? "");
      const level = Number(this.tagName[1]);
      if (id === "" || level > 3) {
        return;
      }
      first = first || level;
      const heading = this.cloneNode(true);
      heading.querySelectorAll(".anchor").forEach((a) => a.remove());
      const item = jQuery("<li class='nav-item'></li>");
      jQuery("<a class='nav-link'></a>")
        .attr("href", "#" + id)
        .text(heading.textContent.trim())
        .appendTo(item);
      if (level > first && top.children().length > 0) {
        inner = inner || jQuery("<ul class='nav flex-column'></ul>");
        inner.append(item).appendTo(top.children().last());
      } else {
        inner = null;
        top.append(item);
      }
    });
  },
};
