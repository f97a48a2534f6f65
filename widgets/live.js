// The page's end of a live dashboard; live.py describes the messages.

const ACK_MS = 100 // at most one acknowledgement in this time
const ALIVE_MS = 10_000 // a sign of life, so that a forgotten page is sent a snapshot
const ASK_MS = 3_000 // an unanswered question is asked again
const INPUT_MS = 40 // changes by the user are sent at most this often
const CALM_MS = 400 // what the user has just moved is not moved by the kernel for so long

let loading = null // one BokehJS for all dashboards of this browser page

function bokeh(version) {
  const found = window.Bokeh?.[version] ?? (window.Bokeh?.version === version ? window.Bokeh : null)
  return found && "RadioButtonGroup" in found.Models ? found : null
}

async function runScript(bytes) {
  const url = URL.createObjectURL(new Blob([bytes], {type: "text/javascript"}))
  await new Promise((resolve, reject) => {
    const script = document.createElement("script")
    script.onload = resolve
    script.onerror = () => reject(new Error("BokehJS could not be run"))
    script.src = url
    document.head.appendChild(script)
  })
  URL.revokeObjectURL(url)
}

class Page {
  constructor(model, el) {
    this.model = model
    this.el = el
    this.name = crypto.randomUUID?.() ?? String(Math.random())
    this.sequence = -1 // last message drawn; -1 asks for a snapshot
    this.pending = new Map() // "id.attr" -> message, sent together
    this.touched = new Map() // "id.attr" -> time of the user's last change
    this.queue = Promise.resolve() // messages are handled one after the other
    this.onMessage = (content, buffers) => {
      this.queue = this.queue.then(() => this.handle(content, buffers)).catch((error) => this.fail(error))
    }
    model.on("msg:custom", this.onMessage)
    this.onHide = () => this.say("bye")
    window.addEventListener("pagehide", this.onHide)
    this.alive = setInterval(() => !this.asked && this.say("ack", {sequence: this.sequence}), ALIVE_MS)
    this.patience = setInterval(() => this.asked && Date.now() - this.asked > ASK_MS && this.ask(), ASK_MS)
    this.ask()
  }

  // Ask for a snapshot; `asked` stays set until it has been drawn.
  ask() {
    this.asked = Date.now()
    this.say("hello")
  }

  say(type, rest = {}) {
    this.model.send({type, page: this.name, ...rest})
  }

  async handle(content, buffers) {
    switch (content.type) {
      case "script":
        return content.page === this.name ? this.script(buffers) : null
      case "snapshot":
        return content.pages.includes(this.name) ? this.snapshot(content) : null
      case "patch":
        return this.patch(content, buffers)
      case "closed":
        return this.stop()
    }
  }

  async script(buffers) {
    loading ??= (async () => {
      for (const bytes of buffers) await runScript(bytes)
    })()
    await loading
    this.ask()
  }

  async snapshot({document: text, sequence, inputs}) {
    if (!this.asked) return
    const json = JSON.parse(text)
    if (!bokeh(json.version)) await loading // by another dashboard of this page
    const B = bokeh(json.version)
    if (!B) return this.say("script")
    this.asked = 0
    this.clear()
    this.inputs = new Set(inputs.map(([id, attr]) => `${id}.${attr}`))
    this.doc = B.require("document/index").Document.from_json(json)
    this.doc.on_change((event) => this.changed(event))
    this.sequence = sequence
    this.views = await B.embed.add_document_standalone(this.doc, this.el)
    this.report()
  }

  patch({sequence, except, patch: text, buffers: ids}, buffers) {
    if (this.doc == null || sequence <= this.sequence) return
    if (sequence !== this.sequence + 1) {
      this.doc = null // a message was lost: draw nothing until the snapshot has come
      return this.ask()
    }
    this.sequence = sequence
    if (except !== this.name) {
      const patch = JSON.parse(text)
      const now = Date.now()
      patch.events = patch.events.filter(
        ({model, attr}) => !(now - (this.touched.get(`${model?.id}.${attr}`) ?? 0) < CALM_MS),
      )
      const bytes = ({buffer, byteOffset, byteLength}) => buffer.slice(byteOffset, byteOffset + byteLength)
      this.doc.apply_json_patch(patch, new Map(ids.map((id, i) => [id, bytes(buffers[i])])))
    }
    this.acknowledge()
  }

  acknowledge() {
    this.ack ??= setTimeout(() => {
      this.ack = null
      this.say("ack", {sequence: this.sequence})
    }, ACK_MS)
  }

  // Forward what the kernel listens to, and only what the user (not a patch) has changed.
  changed({model, attr, value, sync}) {
    const key = `${model?.id}.${attr}`
    if (sync === false || !this.inputs.has(key)) return
    this.touched.set(key, Date.now())
    this.pending.set(key, {id: model.id, attr, value})
    this.flush ??= setTimeout(() => {
      this.flush = null
      for (const message of this.pending.values()) this.say("set", message)
      this.pending.clear()
    }, INPUT_MS)
  }

  // What the layout has found out before anybody listened: the width of the plots.
  report() {
    for (const key of this.inputs) {
      const [id, attr] = key.split(".")
      if (attr !== "inner_width") continue
      const value = this.doc.get_model_by_id(id)?.[attr]
      if (value) this.say("set", {id, attr, value})
    }
  }

  fail(error) {
    console.error(error)
    const note = document.createElement("pre")
    note.textContent = `the dashboard could not be drawn: ${error}`
    this.clear()
    this.el.replaceChildren(note)
  }

  clear() {
    this.views?.clear()
    this.views = this.doc = null
    this.el.replaceChildren()
  }

  // The kernel has closed the dashboard: the last picture stays.
  stop() {
    clearInterval(this.alive)
    clearInterval(this.patience)
    this.inputs = new Set()
    window.removeEventListener("pagehide", this.onHide)
  }

  dispose() {
    this.stop()
    this.model.off("msg:custom", this.onMessage)
    this.say("bye")
    this.clear()
  }
}

export default {
  render({model, el}) {
    const page = new Page(model, el)
    return () => page.dispose()
  },
}
