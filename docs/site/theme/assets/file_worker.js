// Search runs in a worker, and browsers refuse workers to pages that are opened from a file. On such pages this class runs the
// script of a worker in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inside = frame.contentWindow;
      this.ready = new Promise((done) => {
        const script = frame.contentDocument.createElement("script");
        this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        this.inside.importScripts = () => {};
        script.onload = done;
        script.src = url;
        frame.contentDocument.body.appendChild(script);
      });
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })));
    }
    set onmessage(handler) {
      this.addEventListener("message", handler);
    }
    terminate() {}
  };
}
