// BokehJS, one for all dashboards of a browser page: found, run, and spared work that it does twice.

const SCRIPT_MS = 15_000 // BokehJS that has not come after this is asked for again

// Every dashboard of a browser page has this module for itself; the first one asks for BokehJS, the others wait for it.
const shared = (window.winquery ??= {asked: 0, by: null, loading: null})

function bokeh(version) {
  const found = window.Bokeh?.[version] ?? (window.Bokeh?.version === version ? window.Bokeh : null)
  return found && "RadioButtonGroup" in found.Models ? found : null
}

// BokehJS, once it is there where another dashboard has asked for it; else null: whoever asks has to hear the answer.
async function awaitBokeh(version, name, ask) {
  const waiting = () => !bokeh(version) && Date.now() - shared.asked < SCRIPT_MS
  while (waiting() && shared.by !== name) await new Promise((resolve) => setTimeout(resolve, 50))
  if (!bokeh(version) && !waiting()) {
    Object.assign(shared, {asked: Date.now(), by: name})
    ask()
  }
  return bokeh(version)
}

// Whoever has that name goes, and will not hear an answer.
function leaveBokeh(name) {
  if (shared.by === name) shared.asked = 0
}

// Run the scripts of BokehJS, unless another dashboard is at it.
function loadBokeh(scripts) {
  shared.loading ??= (async () => {
    for (const bytes of scripts) await runScript(bytes)
  })().finally(() => Object.assign(shared, {asked: 0, loading: null}))
  return shared.loading
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

// BokehJS does some work again that has just been done. Each part is left as it is where BokehJS is not as expected.
function spareWork(B) {
  const sheet = B.require("core/dom").InlineStyleSheet?.prototype
  if (sheet?._update == null || sheet.spares) return
  sheet.spares = true
  keepStyles(sheet)
  paintOnce(B.Models.Figure?.prototype.default_view?.prototype)
  keepMarkup(B.Models.Div?.prototype.default_view?.prototype)
}

// It writes the place of every renderer into a style sheet of its own whenever a plot is painted, and reads styles in
// between: the browser then works out the styles of the page again each time, which took a third of a refresh.
function keepStyles(sheet) {
  const write = sheet._update
  sheet._update = function (css) {
    if (this.el.textContent !== css) write.call(this, css)
  }
}

// It fits the value axis at the beginning of a paint, and the changed range asks for another paint of the same.
function paintOnce(plot) {
  const [paint, schedule] = [plot?._actual_paint, plot?.schedule_paint]
  if (paint == null || schedule == null) return
  plot._actual_paint = function () {
    const outer = this.paints
    this.paints = true
    try {
      return paint.call(this)
    } finally {
      this.paints = outer
    }
  }
  plot.schedule_paint = function () {
    if (!this.paints) schedule.call(this)
  }
}

// It builds a text anew and lays the whole dashboard out, all plots included, when its words change. Where they change
// its size, the observer that each of its elements has lets the dashboard be laid out.
function keepMarkup(div) {
  const rerender = div?.rerender
  if (rerender == null) return
  div.rerender = function () {
    const {text, render_as_text} = this.model
    const words = this.words != null && this.words !== text && !render_as_text && this.has_math_disabled()
    this.words = text
    if (words) this.markup_el.innerHTML = text
    else rerender.call(this)
  }
}

