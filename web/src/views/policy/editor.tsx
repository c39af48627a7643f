import { useMemo, useState } from 'react'
import { Setting } from '../../form/setting'
import { useChange } from '../../lib/change'
import { request } from '../../lib/client'
import { useMay } from '../../lib/me'
import { all } from '../../lib/pages'
import { shown } from '../../lib/text'
import { Mode, toast } from '../../ui'
import { Simulation, useSimulation } from '../../ui/simulation'
import { changed, type ModeOf, type ModeRule, modeOf, modePath } from './rows'

type Choice = ModeOf | 'inherit'
type Value = { mode: ModeOf }

const choices: readonly [Choice, string][] = [
  ['allow', 'runs at once'],
  ['require_approval', 'waits for a person'],
  ['deny', 'does not run'],
  ['inherit', 'the next broader mode counts'],
]

const choiceOf = (value: Value | null): Choice => value?.mode ?? 'inherit'
const storedOf = (choice: Choice): Value | null => (choice === 'inherit' ? null : { mode: choice })

// Editor sets or removes the mode of a pattern, for an automation or for everybody, after it was tried on the past.
export function Editor({
  tool,
  automation,
  modes,
  onClose,
}: {
  tool: string
  automation: string
  modes: readonly ModeRule[]
  onClose: () => void
}) {
  const may = useMay()
  const [stored, setStored] = useState(modes)
  const version = (among: readonly ModeRule[]) => {
    const own = modeOf(among, tool, automation)
    return { value: own ? { mode: own.mode as ModeOf } : null, etag: own?.etag ?? '' }
  }
  const [choice, setChoice] = useState(() => choiceOf(version(modes).value))
  const read = async () => {
    const now = await all<ModeRule>('/api/v1/policy/modes')
    setStored(now)
    return version(now)
  }
  const change = useChange<Value>({
    base: version(modes),
    read,
    write: (value, ifMatch) =>
      request(value ? 'PUT' : 'DELETE', modePath(tool, automation), { body: value ?? undefined, ifMatch }),
    onSaved: (value) => {
      toast({ text: `${shown(tool)}: ${value ? saved[value.mode] : 'mode removed'}.` })
      onClose()
    },
  })
  const was = choiceOf(change.base)
  const sections = useMemo(
    () => (choice === was ? undefined : { modes: changed(stored, tool, automation, storedOf(choice)?.mode ?? null) }),
    [choice, was, stored, tool, automation],
  )
  const trial = useSimulation(sections, { tool })
  const of = automation ? `automation ${automation}` : 'everybody'
  return (
    <Setting
      title={`${tool === '*' ? 'All tools' : shown(tool)}, for ${shown(of)}`}
      change={change}
      value={storedOf(choice)}
      whyNot={may(choice === 'inherit' ? 'deleteMode' : 'putMode') ?? trial.whyNot}
      onTheirs={(theirs) => setChoice(choiceOf(theirs))}
      command="countersign policy mode set KEY MODE"
      onClose={onClose}
    >
      <fieldset className="modes">
        <legend>Mode</legend>
        {choices.map(([one, text]) => (
          <label key={one} className="row">
            <input type="radio" name="mode" value={one} checked={choice === one} onChange={() => setChoice(one)} />
            {one === 'inherit' ? 'inherit' : <Mode mode={one} />}
            <span className="muted">{text}</span>
            {one === was && <span className="small muted">(now)</span>}
          </label>
        ))}
      </fieldset>
      <Simulation of={trial} />
    </Setting>
  )
}

const saved: Record<ModeOf, string> = {
  allow: 'runs at once',
  require_approval: 'waits for a person',
  deny: 'is denied',
}
