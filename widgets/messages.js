// What the module of every widget begins with.

// anywidget holds the kernel's messages back until a module has been loaded, and refuses them all for good where that
// takes more than two seconds: in a browser with much to do a widget would stay deaf. Take them from the comm instead.
async function takeMessages(model) {
  const own = await model.widget_manager?.get_model?.(model.get("own_id")).catch(() => null)
  let base = own
  while (base && base._handle_comm_msg === own._handle_comm_msg) base = Object.getPrototypeOf(base)
  if (own?.comm && base?._handle_comm_msg) own.comm.on_msg((message) => base._handle_comm_msg.call(own, message))
  return own
}
