// What the buttons beside code use to copy it.
window.ClipboardJS = class {
  static isSupported() {
    return Boolean(navigator.clipboard);
  }

  constructor(selector, options) {
    this.handlers = {};
    document.addEventListener("click", (event) => {
      const trigger = event.target.closest(selector);
      if (trigger) {
        navigator.clipboard.writeText(options.text(trigger)).then(
          () => this.tell("success", trigger),
          () => this.tell("error", trigger)
        );
      }
    });
  }

  on(name, handler) {
    this.handlers[name] = handler;
  }

  tell(name, trigger) {
    this.handlers[name]({ trigger: trigger, clearSelection: () => {} });
  }
};
