// Cuts the flat columns of one figure into its lines, in the page: a CustomJS of figures.py, which describes the columns.
// Only what is visible is handed on, with one point on either side: the value axis fits it, and less is drawn.

const FORMS = FORMS_OF_LINES // of final and of provisional lines: dash and opacity
const MUTED = OPACITY_OF_MUTED
const [THICK, THIN] = WIDTHS_OF_LINES
const DENSE = 4_000 // points of all lines from which on they are drawn thin: they are seen better, and without a
// graphics card lines of more than a pixel take five to twenty times as long

let waiting = false // one patch changes several sources: the lines are cut once, after all of it

export default (figure) => {
  if (waiting) return
  waiting = true
  queueMicrotask(() => {
    waiting = false
    cut(figure)
  })
}

function cut({final, open, keys, range, lines}) {
  const {label, key, muted} = keys.data
  const count = label.length
  const data = {xs: [], ys: [], label: [], key: [], alpha: [], width: [], dash: [], first: []}
  for (const [form, {data: {x, y}}] of [final, open].entries()) {
    const rows = count ? x.length / count : 0
    for (let slot = 0; slot < count; slot++) {
      const first = Math.max(0, search(x, rows, count, slot, range.start) - 1)
      const end = Math.min(rows, search(x, rows, count, slot, range.end) + 1)
      const xs = new Float64Array(Math.max(0, end - first))
      const ys = new Float64Array(xs.length)
      for (let row = 0, at = first * count + slot; row < xs.length; row++, at += count) {
        xs[row] = x[at]
        ys[row] = y[at]
      }
      data.xs.push(xs)
      data.ys.push(ys)
      data.label.push(label[slot])
      data.key.push(key[slot])
      data.alpha.push(muted[slot] ? MUTED : FORMS[form].alpha)
      data.dash.push(FORMS[form].dash)
      data.first.push(first)
    }
  }
  const points = data.xs.reduce((sum, {length}) => sum + length, 0)
  data.width = data.xs.map(() => (points < DENSE ? THICK : THIN))
  lines.setv({data}, {sync: false})
}

// The first row of a key whose time is not before `time`.
function search(x, rows, count, slot, time) {
  let [low, high] = [0, rows]
  while (low < high) {
    const middle = (low + high) >> 1
    if (x[middle * count + slot] < time) low = middle + 1
    else high = middle
  }
  return low
}
