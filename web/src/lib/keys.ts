// The one table of commands: keys, palette, help and the tests come from it.
import { createContext, useContext, useEffect, useLayoutEffect, useRef } from 'react'
import { preferences } from './preferences'

interface Row {
  label: string
  // keys are written as one types them: "a", "Shift+j", "Mod+k" (Ctrl, or ⌘ on a Mac), "g i" one after the other.
  keys: readonly string[]
  group: 'Everywhere' | 'Go to' | 'Lists' | 'Decide'
  // fields says that the keys count in text fields as well.
  fields?: true
  // repeats says that holding the key repeats the command.
  repeats?: true
}

const rows = {
  palette: { label: 'Find anything, or run a command', keys: ['Mod+k'], group: 'Everywhere', fields: true },
  help: { label: 'Keys of this view', keys: ['?'], group: 'Everywhere' },
  refresh: { label: 'Refresh', keys: ['r'], group: 'Everywhere' },
  pause: { label: 'Pause or resume live updates', keys: ['p'], group: 'Everywhere' },
  copy_link: { label: 'Copy link', keys: ['y'], group: 'Everywhere' },
  save_view: { label: 'Save this view…', keys: [], group: 'Everywhere' },
  theme: { label: 'Switch between light, dark and system', keys: [], group: 'Everywhere' },
  zone: { label: 'Switch between local time and UTC', keys: [], group: 'Everywhere' },
  letters: { label: 'Switch single-letter keys on or off', keys: [], group: 'Everywhere' },
  logout: { label: 'Log out', keys: [], group: 'Everywhere' },
  go_inbox: { label: 'Inbox', keys: ['g i'], group: 'Go to' },
  go_actions: { label: 'Actions', keys: ['g t'], group: 'Go to' },
  go_workflows: { label: 'Workflows', keys: ['g w'], group: 'Go to' },
  go_dead_letters: { label: 'Dead letters', keys: ['g d'], group: 'Go to' },
  go_policy: { label: 'Policy', keys: ['g p'], group: 'Go to' },
  go_limits: { label: 'Limits', keys: ['g l'], group: 'Go to' },
  go_people: { label: 'People and tokens', keys: ['g u'], group: 'Go to' },
  go_subscriptions: { label: 'Subscriptions', keys: ['g b'], group: 'Go to' },
  go_fleet: { label: 'Fleet', keys: ['g f'], group: 'Go to' },
  go_audit: { label: 'Audit log', keys: ['g a'], group: 'Go to' },
  go_sources: { label: 'Sources', keys: ['g o'], group: 'Go to' },
  go_tools: { label: 'Tools', keys: ['g e'], group: 'Go to' },
  go_settings: { label: 'Settings', keys: ['g s'], group: 'Go to' },
  next: { label: 'Next', keys: ['j', 'ArrowDown'], group: 'Lists', repeats: true },
  previous: { label: 'Previous', keys: ['k', 'ArrowUp'], group: 'Lists', repeats: true },
  open: { label: 'Open', keys: ['Enter', 'o'], group: 'Lists' },
  back: { label: 'Back', keys: ['Escape'], group: 'Lists', fields: true },
  mark: { label: 'Mark', keys: ['x'], group: 'Lists' },
  extend_down: { label: 'Mark down to the next', keys: ['Shift+j'], group: 'Lists' },
  extend_up: { label: 'Mark up to the previous', keys: ['Shift+k'], group: 'Lists' },
  mark_group: { label: 'Mark the whole group', keys: ['Shift+x'], group: 'Lists' },
  fold_group: { label: 'Open or close the group', keys: ['z'], group: 'Lists' },
  show_new: { label: 'Show new items', keys: ['.'], group: 'Lists' },
  filter: { label: 'Filter', keys: ['/'], group: 'Lists' },
  approve: { label: 'Approve', keys: ['a'], group: 'Decide' },
  deny: { label: 'Deny…', keys: ['d'], group: 'Decide' },
  edit: { label: 'Edit', keys: ['e'], group: 'Decide' },
  always: { label: 'Always…', keys: ['w'], group: 'Decide' },
  acknowledge: { label: 'Acknowledge', keys: ['c'], group: 'Decide' },
  undo: { label: 'Undo', keys: ['u'], group: 'Decide' },
  whole: { label: 'Show all values in full', keys: ['f'], group: 'Decide' },
  note: { label: 'Note', keys: ['n'], group: 'Decide' },
  send: { label: 'Send the form', keys: ['Mod+Enter'], group: 'Decide', fields: true },
} as const satisfies Record<string, Row>

export type CommandID = keyof typeof rows
export const table: Readonly<Record<CommandID, Row>> = rows
export const commandIDs = Object.keys(rows) as CommandID[]

// Binding is a command that can be given now, or the reason why it cannot.
export interface Binding {
  id: CommandID
  run: () => void
  whyNot?: string | undefined
}

interface Bound {
  layer: number
  bindings: () => readonly Binding[]
}

const bound: Bound[] = []

// Layer is 0 on the page, and one more in each dialog: while a dialog is open, the commands below it rest.
export const Layer = createContext(0)

// useCommands binds commands while the component is shown. What was bound last counts.
export function useCommands(bindings: readonly (Binding | false | undefined)[]) {
  const layer = useContext(Layer)
  const latest = useRef(bindings)
  useLayoutEffect(() => {
    latest.current = bindings
  })
  useEffect(() => {
    const one: Bound = { layer, bindings: () => latest.current.filter((b): b is Binding => Boolean(b)) }
    bound.push(one)
    return () => void bound.splice(bound.indexOf(one), 1)
  }, [layer])
}

// available returns what can be commanded in the topmost layer, or in the layer given.
export function available(layer = Math.max(0, ...bound.map((b) => b.layer))): Map<CommandID, Binding> {
  const found = new Map<CommandID, Binding>()
  for (const each of bound) {
    if (each.layer !== layer) continue
    for (const binding of each.bindings()) found.set(binding.id, binding)
  }
  return found
}

const isMac = typeof navigator !== 'undefined' && /Mac|iPhone|iPad/.test(navigator.platform)

// keyOf returns a keypress as the table writes it. Both cases of a letter count as the letter.
export function keyOf(event: Pick<KeyboardEvent, 'key' | 'shiftKey' | 'ctrlKey' | 'metaKey' | 'altKey'>): string {
  const letter = /^[a-z]$/i.test(event.key)
  const key = letter ? event.key.toLowerCase() : event.key
  const mod = isMac ? event.metaKey : event.ctrlKey
  const other = isMac ? event.ctrlKey : event.metaKey
  if (event.altKey || other) return ''
  return (mod ? 'Mod+' : '') + (event.shiftKey && (letter || key.length > 1) ? 'Shift+' : '') + key
}

// inField says whether a key goes into what is being typed.
function inField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  if (target instanceof HTMLInputElement)
    return !['checkbox', 'radio', 'button', 'submit', 'range'].includes(target.type)
  return target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement
}

// usedBy says whether the element with the focus acts on the key itself.
function usedBy(target: EventTarget | null, key: string): boolean {
  if (!(target instanceof Element)) return false
  if (key === 'Enter') return target.closest('a, button, summary, [role=tab], [role=menuitem]') !== null
  if (key.startsWith('Arrow'))
    return target.closest('[role=tablist], [role=menu], [role=listbox], [role=grid], input, pre, textarea') !== null
  return false
}

const sequenceWait = 1_500
let prefix = ''
let prefixAt = 0

// find returns the command that a key gives, or the first key of a sequence.
function find(key: string, layer: Map<CommandID, Binding>, typing: boolean): Binding | 'prefix' | undefined {
  const tries = key.startsWith('Shift+') ? [key, key.slice('Shift+'.length)] : [key]
  for (const one of tries) {
    for (const id of commandIDs) {
      const row = table[id]
      const given = layer.get(id)
      if (given && row.keys.includes(one) && (!typing || row.fields)) return given
    }
    if (!typing && commandIDs.some((id) => layer.has(id) && table[id].keys.some((k) => k.startsWith(one + ' '))))
      return 'prefix'
  }
  return undefined
}

// press runs the command of a key press, and reports whether there was one. onRefused hears why a command cannot be
// given.
export function press(event: KeyboardEvent, onRefused: (why: string) => void): boolean {
  if (event.defaultPrevented || event.isComposing || ['Shift', 'Control', 'Alt', 'Meta'].includes(event.key))
    return false
  const typing = inField(event.target)
  let key = keyOf(event)
  const plain = key.replace('Shift+', '').length === 1
  if (!key || (plain && preferences().letters === 'off') || usedBy(event.target, key)) return false
  if (prefix && !typing && event.timeStamp - prefixAt < sequenceWait) key = `${prefix} ${key.replace('Shift+', '')}`
  prefix = ''
  const found = find(key, available(), typing)
  if (!found) return false
  if (found === 'prefix') {
    prefix = key.replace('Shift+', '')
    prefixAt = event.timeStamp
    return true
  }
  if (event.repeat && !table[found.id].repeats) return true
  if (found.whyNot) onRefused(found.whyNot)
  else found.run()
  return true
}

const names: Record<string, string> = {
  Mod: isMac ? '⌘' : 'Ctrl',
  Escape: 'Esc',
  ArrowDown: '↓',
  ArrowUp: '↑',
  Shift: '⇧',
}

// written returns a key as it is shown: ["Ctrl", "K"].
export function written(key: string): string[] {
  return key.split(/[+ ]/).map((part) => names[part] ?? (part.length === 1 ? part.toUpperCase() : part))
}
