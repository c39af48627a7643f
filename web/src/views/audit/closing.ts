export interface Closing {
  events: number
  next_cursor?: string
}

// closingOf returns the last line of a part of an export. Without it the part was cut off.
export async function closingOf(part: Blob): Promise<Closing> {
  const most = 4_000
  const lines = (await part.slice(Math.max(0, part.size - most)).text()).trimEnd().split('\n')
  const last = lines[lines.length - 1]!
  if (!last.startsWith('{"end":true')) throw new Error('The export was cut off before its last line.')
  return JSON.parse(last) as Closing
}
