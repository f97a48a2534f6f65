// The page's end of a live dashboard; live.py describes the messages, and names the files that stand before this one.

const ACK_MS = 50 // at most one acknowledgement in this time
const HIDDEN_MS = 1_000 // a frame that has not come after this will not come
const ALIVE_MS = 10_000 // a sign of life, so that a forgotten page is sent a snapshot
const [ASK_MS, PATIENCE_MS] = [3_000, 24_000] // an unanswered question is asked again after so long, and at most
const INPUT_MS = 40 // changes by the user are sent at most this often
const CALM_MS = 400 // a range that the user has just moved is not moved by the kernel for so long
const SILENCE_MS = 12_000 // a kernel that says nothing for so long is told of
const ATTEMPTS = 3 // pictures that may fail until the page gives up
const [STILL, LIVE] = ["winquery-still", "winquery-live"] // see still.py
const WIDGET = "application/vnd.jupyter.widget-view+json"

function saveAs(name, blob) {
  const link = document.createElement("a")
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}

class Page {
  constructor(model, el) {
    this.model = model
    this.el = el
    this.name = crypto.randomUUID?.() ?? String(Math.random())
    this.sequence = -1 // last message drawn
    this.failures = 0
    this.pending = new Map() // "id.attr" -> change, told together
    this.told = 0 // when changes were told last
    this.touched = new Map() // "id.attr" -> time of the user's last change
    this.queue = Promise.resolve() // messages are handled one after the other
    this.onMessage = (content, buffers) => {
      this.queue = this.queue.then(() => this.handle(content, buffers)).catch((error) => this.fail(error))
    }
    model.on("msg:custom", this.onMessage)
    this.heard = Date.now()
    this.onHide = () => this.say("bye")
    window.addEventListener("pagehide", this.onHide)
    this.alive = setInterval(() => !this.asked && this.say("ack", {sequence: this.sequence}), ALIVE_MS)
    this.patience = ASK_MS // until an answer counts as lost; longer each time, for slow ways to the kernel
    this.asking = setInterval(() => this.askAgain(), 1_000)
    this.watch = setInterval(() => this.listen(), 1_000)
    this.lab = new MutationObserver(() => this.tellTheme())
    this.lab.observe(document.body, {attributes: true, attributeFilter: ["data-jp-theme-light", "class"]})
    this.tellTheme()
    this.notebook = model.widget_manager?.context // JupyterLab's, and nobody else's
    this.onSave = (_, state) => state === "started" && this.keep()
    this.notebook?.saveState?.connect(this.onSave)
    this.ask()
  }

  // Ask for a snapshot; `asked` stays set until it has come, and patches are left out meanwhile.
  ask() {
    if (this.gone) return
    this.asked = Date.now()
    this.say("hello")
  }

  askAgain() {
    if (!this.asked || Date.now() - this.asked < this.patience) return
    this.patience = Math.min(2 * this.patience, PATIENCE_MS)
    this.ask()
  }

  say(type, rest = {}) {
    try {
      this.model.send({type, page: this.name, ...rest})
    } catch (error) {
      console.debug("the kernel cannot be told", error) // it has gone: `listen` says so
    }
  }

  // Light or dark: JupyterLab says so at the body, other pages leave it to the browser.
  tellTheme() {
    const light = document.body.dataset.jpThemeLight
    const dark = light == null ? matchMedia("(prefers-color-scheme: dark)").matches : light === "false"
    const name = dark ? "dark" : "light"
    if (name === this.theme) return
    this.theme = name
    this.say("theme", {name})
  }

  // Say so when the kernel has gone, and take it back when it speaks again. The picture stays.
  listen() {
    if (Date.now() - this.heard <= SILENCE_MS) {
      this.note?.remove()
      this.note = null
    } else if (this.note == null) {
      const since = new Date(this.heard).toLocaleTimeString()
      this.note = document.createElement("div")
      this.note.setAttribute("role", "alert")
      this.note.style.cssText =
        "padding:6px 10px;font:13px sans-serif;color:#fff;background:#c92a2a;border-radius:3px"
      this.note.textContent =
        `the kernel has not answered since ${since}: ` +
        (this.doc ? "the picture is from then. " : "the dashboard comes as soon as it does. ") +
        "If the kernel has died or was restarted, run the cell again."
      this.el.prepend(this.note)
    }
  }

  async handle(content, buffers) {
    this.heard = Date.now()
    switch (content.type) {
      case "script":
        return content.page === this.name ? this.script(buffers) : null
      case "snapshot":
        return content.pages.includes(this.name) ? this.snapshot(content, buffers[0]) : null
      case "patch":
        return this.patch(content, buffers)
      case "file":
        return content.page === this.name ? saveAs(content.name, new Blob(buffers)) : null
      case "closed":
        return this.stop()
    }
  }

  async script(buffers) {
    await loadBokeh(buffers)
    this.ask()
  }

  async snapshot({sequence, inputs, menu, plots, widget}, packed) {
    if (!this.asked) return
    const json = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).json()
    const B = await awaitBokeh(json.version, this.name, () => this.say("script"))
    if (!B || !this.asked) return // not there yet, or the page has gone meanwhile
    this.asked = 0
    this.patience = ASK_MS
    spareWork(B)
    this.clear()
    this.inputs = new Set(inputs.map(([id, attr]) => `${id}.${attr}`))
    this.doc = B.require("document/index").Document.from_json(json)
    this.documents = B.documents
    this.menu = menu
    this.widget = widget
    this.plots = plots
    this.doc.on_change((event) => this.changed(event))
    this.sequence = sequence
    this.views = await B.embed.add_document_standalone(this.doc, this.el)
    if (this.gone) return this.clear()
    this.el.classList.add(LIVE)
    this.report()
  }

  patch({sequence, causes, patch: text, buffers: made}, parts) {
    if (this.doc == null || this.asked || sequence <= this.sequence) return
    if (sequence !== this.sequence + 1) return this.ask() // a message was lost
    this.sequence = sequence
    const patch = JSON.parse(text)
    const bytes = unpack(made, parts)
    const now = Date.now()
    patch.events = patch.events.filter(
      ({model, attr}, place) =>
        causes[place] !== this.name &&
        ((attr !== "start" && attr !== "end") || now - (this.touched.get(`${model?.id}.${attr}`) ?? 0) >= CALM_MS),
    )
    this.doc.apply_json_patch(patch, bytes)
    this.acknowledge()
  }

  // After the frame that shows it, so that a page too slow for its plots is sent less; a hidden page has no frames.
  acknowledge() {
    if (this.ack) return
    const ack = (this.ack = {})
    const say = () => {
      if (this.ack !== ack) return
      this.ack = null
      this.say("ack", {sequence: this.sequence})
    }
    setTimeout(() => {
      requestAnimationFrame(() => setTimeout(say))
      setTimeout(say, HIDDEN_MS)
    }, ACK_MS)
  }

  // Forward what the kernel listens to, and only what the user (not a patch) has changed.
  changed({model, attr, value, sync}) {
    const key = `${model?.id}.${attr}`
    if (sync === false || !this.inputs.has(key)) return
    if (model.id === this.menu) return this.export(model)
    this.touched.set(key, Date.now())
    this.pending.set(key, [model.id, attr, value])
    if (this.telling) return
    // The first change goes at once, with what is changed beside it; the kernel works while the page paints.
    this.telling = true
    const wait = this.told + INPUT_MS - Date.now()
    if (wait > 0) setTimeout(() => this.tell(), wait)
    else queueMicrotask(() => this.tell())
  }

  tell() {
    this.telling = false
    this.told = Date.now()
    this.say("set", {changes: [...this.pending.values()]})
    this.pending.clear()
  }

  // The menu of files: pictures of the canvas are made here, everything else in the kernel.
  export(menu) {
    const kind = menu.value
    const nothing = menu.options[0]
    if (kind === nothing) return
    setTimeout(() => menu.setv({value: nothing}, {sync: false}))
    if (kind !== "PNG") return this.say("set", {changes: [[menu.id, "value", kind]]})
    return new Promise((done) => this.picture().toBlob(done, "image/png")).then((blob) =>
      saveAs(`${this.doc.title()}.png`, blob),
    )
  }

  // The notebook is being saved: draw the picture that stands for the dashboard where no kernel answers.
  keep() {
    const {cells} = this.notebook.model
    for (let number = 0; this.doc != null && number < cells.length; number++) {
      const {outputs} = cells.get(number)
      for (let place = 1; place < (outputs?.length ?? 0); place++) {
        const output = outputs.get(place).toJSON()
        const html = [output.data?.["text/html"]].flat().join("")
        const shown = outputs.get(place - 1).toJSON().data?.[WIDGET]?.model_id === this.widget
        if (!shown || !html.includes(STILL)) continue
        const canvas = this.picture()
        if (canvas.width === 1) return // no plot on show: the picture from before is better than none
        const drawn = html.replace(/ src="[^"]*"/, ` src="${canvas.toDataURL("image/png")}"`)
        outputs.set(place, {...output, data: {...output.data, "text/html": drawn}})
      }
    }
  }

  // The plots on show, on the ground of the theme.
  picture() {
    const root = [...this.views].find((view) => view.model === this.doc.roots()[0])
    const plots = root.child_views.filter(({model}) => this.plots.includes(model.id) && model.visible)
    const layers = plots.map((view) => view.export("png").canvas)
    const canvas = document.createElement("canvas")
    canvas.width = Math.max(1, ...layers.map(({width}) => width))
    canvas.height = Math.max(1, layers.reduce((height, layer) => height + layer.height, 0))
    const ground = canvas.getContext("2d")
    ground.fillStyle = getComputedStyle(root.el).backgroundColor
    ground.fillRect(0, 0, canvas.width, canvas.height)
    let top = 0
    for (const layer of layers) {
      ground.drawImage(layer, 0, top)
      top += layer.height
    }
    return canvas
  }

  // What the layout has found out before anybody listened: the width of the plots.
  report() {
    for (const key of this.inputs) {
      const [id, attr] = key.split(".")
      if (attr !== "inner_width") continue
      const value = this.doc.get_model_by_id(id)?.[attr]
      if (value) this.say("set", {changes: [[id, attr, value]]})
    }
  }

  // Say what went wrong, and draw anew from a snapshot: the fault may have been one of this moment.
  fail(error) {
    console.error(error)
    const note = document.createElement("pre")
    note.textContent = `the dashboard could not be drawn: ${error}`
    this.clear()
    this.el.replaceChildren(note)
    if (++this.failures < ATTEMPTS) this.ask()
  }

  clear() {
    this.views?.clear()
    // BokehJS keeps every document that it has ever made.
    const place = this.documents?.indexOf(this.doc) ?? -1
    if (place >= 0) this.documents.splice(place, 1)
    this.views = this.doc = null
    this.el.replaceChildren()
  }

  // The kernel has closed the dashboard: the last picture stays.
  stop() {
    this.ack = null // an acknowledgement on its way is not sent any more
    leaveBokeh(this.name)
    clearInterval(this.alive)
    clearInterval(this.asking)
    clearInterval(this.watch)
    this.lab.disconnect()
    this.notebook?.saveState?.disconnect(this.onSave)
    this.note?.remove()
    this.inputs = new Set()
    window.removeEventListener("pagehide", this.onHide)
  }

  dispose() {
    this.gone = true
    this.asked = 0
    this.stop()
    this.model.off("msg:custom", this.onMessage)
    this.say("bye")
    this.clear()
  }
}

export default {
  async render({model, el}) {
    await takeMessages(model)
    const page = new Page(model, el)
    return () => page.dispose()
  },
}
