// JupyterLab's launcher and its list of files offer a dashboard of a file of events: a notebook that a kernel writes,
// by workbench/template.py. This is by hand what a bundler makes of an extension, so nothing has to be built.

{
  const DATA = /\.((?:csv|tsv|jsonl?|ndjson)(?:\.gz)?|parquet|pq|arrow|feather|ipc)$/i // the endings of workbench/feeds/formats.py
  const OF_A_FILE = "winquery:dashboard-of-a-file"
  const OF_SELECTED = "winquery:dashboard-of-selected-file"
  const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke-width="1.8">
    <path class="jp-icon3" stroke="#616161" d="M3 3v18h18"/>
    <path class="jp-icon-contrast0" stroke="#1c7ed6" d="M6 15l4-6 4 3 6-8"/>
    <path class="jp-icon-contrast1" stroke="#e8590c" stroke-dasharray="2 1.6" d="M6 18l5-3 4 2 5-5"/>
  </svg>`

  let scope = {}

  // A module of JupyterLab's, which shares each of them once.
  async function module(name) {
    const [version] = Object.values(scope[name])
    return (await version.get())()
  }

  const joined = (folder, name) => (folder ? `${folder}/${name}` : name)

  // Let a kernel in that folder write the notebook, unless there is one; returns its path. Of what can be read in
  // several ways `ask` gets the question, and gives the value of the option that answers it, or null.
  async function write({kernelspecs, sessions}, folder, name, ask) {
    await kernelspecs.ready
    const session = await sessions.startNew({
      path: joined(folder, `winquery-${Date.now()}`),
      name: "",
      type: "console",
      kernel: {name: kernelspecs.specs.default},
    })
    const options = {}
    try {
      for (;;) {
        const [data, given] = [name, JSON.stringify(options)].map((text) => JSON.stringify(text))
        const code = `import json\nfrom workbench.template import offer\nprint(offer(${data}, json.loads(${given})))`
        const future = session.kernel.requestExecute({code})
        let said = ""
        future.onIOPub = ({header, content}) => {
          if (header.msg_type === "stream" && content.name === "stdout") said += content.text
        }
        const {content} = await future.done
        if (content.status !== "ok") throw new Error(content.evalue)
        const {path, ...question} = JSON.parse(said.trim().split("\n").at(-1))
        if (path != null) return joined(folder, path)
        const answer = await ask(question)
        if (answer == null) return null
        options[question.option] = answer
      }
    } finally {
      await session.shutdown()
    }
  }

  async function plugin() {
    const names = ["launcher", "filebrowser", "apputils", "ui-components"].map((name) => `@jupyterlab/${name}`)
    const [{ILauncher}, {IFileBrowserFactory}, apputils, {LabIcon}] = await Promise.all(names.map(module))
    const {InputDialog, Notification, showErrorMessage} = apputils

    async function choose({message, option, readings}) {
      const items = Object.entries(readings).map(([value, what]) => `${what} (${option}: ${value})`)
      const title = `${message[0].toUpperCase()}${message.slice(1)}. Which one is it?`
      const {button, value} = await InputDialog.getItem({title, items, okLabel: "Go on"})
      return button.accept ? Object.keys(readings)[items.indexOf(value)] : null
    }

    async function open(app, folder, name) {
      const told = Notification.emit(`Looking at ${name}`, "in-progress")
      try {
        const path = await write(app.serviceManager, folder, name, choose)
        return path && (await app.commands.execute("docmanager:open", {path, factory: "Notebook"}))
      } catch (error) {
        return showErrorMessage(`No dashboard of ${name}`, error)
      } finally {
        Notification.dismiss(told)
      }
    }

    async function pick(app, folder) {
      const {content} = await app.serviceManager.contents.get(folder)
      const items = content.map(({name}) => name).filter((name) => DATA.test(name))
      if (items.length === 0) {
        Notification.warning("There is no CSV, JSON, Parquet or Arrow file in this folder: put one here first.")
        return null
      }
      const title = "A dashboard of which file?"
      const {button, value} = await InputDialog.getItem({title, items: items.sort(), okLabel: "Open"})
      return button.accept ? value : null
    }

    return {
      id: "winquery:launcher",
      description: "Offers a dashboard of a file in the launcher and in the list of files.",
      autoStart: true,
      optional: [ILauncher, IFileBrowserFactory],
      activate(app, launcher, browsers) {
        const icon = new LabIcon({name: "winquery:dashboard", svgstr: ICON})
        const caption = "Write a notebook that shows a file of events as a live dashboard, and open it"
        app.commands.addCommand(OF_A_FILE, {
          label: "Dashboard of a file",
          caption,
          icon,
          async execute({cwd}) {
            const folder = cwd ?? browsers?.tracker.currentWidget?.model.path ?? ""
            const name = await pick(app, folder)
            return name && open(app, folder, name)
          },
        })
        const url = `data:image/svg+xml,${encodeURIComponent(ICON)}`
        launcher?.add({command: OF_A_FILE, category: "Notebook", rank: 100, kernelIconUrl: url})
        if (!browsers) return
        const selected = () => {
          const [item, ...others] = browsers.tracker.currentWidget?.selectedItems() ?? []
          return others.length === 0 && DATA.test(item?.name ?? "") ? item : null
        }
        app.commands.addCommand(OF_SELECTED, {
          label: "Live Dashboard",
          caption,
          icon,
          isVisible: () => selected() != null,
          execute: () => open(app, selected().path.split("/").slice(0, -1).join("/"), selected().name),
        })
        app.contextMenu.addItem({
          command: OF_SELECTED,
          selector: '.jp-DirListing-item[data-isdir="false"]',
          rank: 3,
        })
      },
    }
  }

  window._JUPYTERLAB = window._JUPYTERLAB ?? {}
  window._JUPYTERLAB.winquery = {
    init(shared) {
      scope = shared
    },
    async get() {
      const made = await plugin()
      return () => ({__esModule: true, default: made})
    },
  }
}
