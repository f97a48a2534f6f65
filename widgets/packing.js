// The buffers of a message by their names: each is one of its parts with every 8 bytes so many times, see packing.py.
function unpack(made, parts) {
  return new Map(
    made.map(([name, part, times]) => {
      const {buffer, byteOffset, byteLength} = parts[part]
      const bytes = buffer.slice(byteOffset, byteOffset + byteLength)
      return [name, times === 1 ? bytes : repeat(new Int32Array(bytes), times)]
    }),
  )
}

function repeat(halves, times) {
  const repeated = new Int32Array(halves.length * times)
  for (let half = 0, at = 0; half < halves.length; half += 2) {
    for (let time = 0; time < times; time++) {
      repeated[at++] = halves[half]
      repeated[at++] = halves[half + 1]
    }
  }
  return repeated.buffer
}
