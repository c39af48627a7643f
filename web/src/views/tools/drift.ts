// The difference between the accepted definition of a tool and the present one, in the order in which it is read.
import type { Schemas } from '../../lib/client'
import type { Json } from '../../lib/json'
import type { Change } from '../../lib/pointer'

export type Diff = Schemas['ToolDiff']

// Group is the changes of one strength.
export interface Group {
  strength: 'interface' | 'text'
  title: string
  changes: (Change & { hidden: boolean })[]
}

const titles = {
  interface: 'Interface: changes what a call means',
  text: 'Text: only describes',
} as const

// grouped returns the changes, those of the interface first. A strength without changes has no group.
export function grouped(changes: Diff['changes']): Group[] {
  return (['interface', 'text'] as const)
    .map((strength) => ({
      strength,
      title: titles[strength],
      changes: changes
        .filter((one) => one.strength === strength)
        .map(({ pointer, was, now, hidden_characters }) => ({
          pointer,
          was: was as Json | undefined,
          now: now as Json | undefined,
          hidden: hidden_characters,
        })),
    }))
    .filter(({ changes: some }) => some.length > 0)
}

// Standing is whether a person has to look at a tool, and why: its source's address is not accepted, it is new, or it
// changed.
export type Standing = 'fine' | 'source' | 'new' | 'changed'

export function standing(tool: Pick<Schemas['Tool'], 'drift' | 'drifted' | 'quarantined'>): Standing {
  if (tool.quarantined) return tool.drift === 'none' ? 'source' : 'new'
  if (tool.drift !== 'none') return 'changed'
  return tool.drifted ? 'source' : 'fine'
}
