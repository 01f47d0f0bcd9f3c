/* Pages that are opened from a disk may not start workers. Search then runs in a hidden frame instead. */
if (location.protocol === "file:" && "Worker" in window) {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = this.onerror = null;
      this.addEventListener("message", (event) => this.onmessage && this.onmessage(event));
      this.addEventListener("error", (event) => this.onerror && this.onerror(event));
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inside = frame.contentWindow;
      this.frame = frame;
      inside.worker = this;
      const scripts = `
        var postMessage = (data) => worker.dispatchEvent(new parent.MessageEvent("message", { data }));
        var importScripts = (...urls) => urls.reduce((before, each) => before.then(() => new Promise((done) => {
          const script = document.createElement("script");
          script.src = each;
          script.onload = script.onerror = done;
          document.body.appendChild(script);
        })), Promise.resolve());`;
      inside.document.open();
      inside.document.write(`<html><body><script>${scripts}<\/script><script src="${url}"><\/script></body></html>`);
      inside.document.close();
      this.ready = new Promise((done) => (inside.onload = done));
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
