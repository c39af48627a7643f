// Items that are alike, and in what they differ: for deciding about many at once.

import { type Json, parse } from '../../lib/json'
import { differing } from '../../lib/pointer'
import type { Item } from './items'

interface Known {
  args: Json
  cut: boolean
}

// read has the arguments of the items that are shown: a list of a thousand is drawn often, and read once.
const read = new WeakMap<Item, Known>()

// argsOf returns the arguments of an item, as far as the list has them.
export function argsOf(item: Item): Known {
  const known = read.get(item) ?? parsed(item)
  read.set(item, known)
  return known
}

function parsed(item: Item): Known {
  if (item.args_preview === undefined) return { args: (item.args ?? {}) as Json, cut: false }
  try {
    return { args: parse(item.args_preview), cut: item.args_cut ?? false }
  } catch {
    return { args: { '': item.args_preview }, cut: true }
  }
}

// like reports whether two items have the same kind, tool, session and cohort.
export const like = (a: Item, b: Item) =>
  a.kind === b.kind && a.tool === b.tool && a.session_id === b.session_id && a.mail?.cohort === b.mail?.cohort

// alike returns the other items that are like one.
export const alike = (item: Item, items: readonly Item[]) =>
  items.filter((other) => other.action_id !== item.action_id && like(item, other))

export interface Differences {
  pointers: string[]
  tools: string[]
  // cut says that not all arguments are known, so that there may be other differences.
  cut: boolean
}

// differences returns in what items differ.
export function differences(items: readonly Item[]): Differences {
  const known = items.map(argsOf)
  return {
    pointers: differing(known.filter((a) => !a.cut).map((a) => a.args)),
    tools: [...new Set(items.map((item) => item.tool))],
    cut: known.some((a) => a.cut),
  }
}

// mailLine returns one line about the message that an item is about.
export const mailLine = ({ sender, sender_name, subject }: NonNullable<Item['mail']>) =>
  `${sender_name || sender}: ${subject || 'no subject'}`.slice(0, 200)
