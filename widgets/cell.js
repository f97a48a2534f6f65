// The button that puts a cell into the notebook; cell.py describes it. `messages.js` stands before it.

// The cells of the notebook that this page shows: JupyterLab's and Notebook 7's widgets know them, others do not.
function notebook(model) {
  const document = model.widget_manager?.context?.model
  return document?.sharedModel?.insertCell && document.cells ? document : null
}

// The number of the cell that shows a widget, or of the last one where it stands inside another widget.
function place({cells}, widget) {
  for (let number = 0; number < cells.length; number++) {
    for (const {data} of cells.get(number).outputs?.toJSON() ?? []) {
      if (data?.["application/vnd.jupyter.widget-view+json"]?.model_id === widget) return number
    }
  }
  return cells.length - 1
}

export default {
  async render({model, el}) {
    const own = await takeMessages(model)
    const button = document.createElement("button")
    button.className = "lm-Widget jupyter-widgets jupyter-button widget-button mod-primary"
    button.textContent = "Create cell"
    const show = () => {
      button.disabled = model.get("cell") === ""
    }
    button.onclick = () => {
      const found = notebook(model)
      if (found) {
        const cell = {cell_type: "code", metadata: {}, outputs: [], source: model.get("cell")}
        found.sharedModel.insertCell(place(found, model.get("shown_in")) + 1, cell)
      }
      model.send({type: "pressed", done: found != null})
    }
    model.on("change:cell", show)
    show()
    el.append(button)
    own?.comm?.send({method: "request_state"}, {}) // what was said before this module could hear
    return () => model.off("change:cell", show)
  },
}
