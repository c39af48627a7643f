import { useMemo, useState } from 'react'
import { Collision } from '../../form/collision'
import { useChange } from '../../lib/change'
import { request } from '../../lib/client'
import { useMay } from '../../lib/me'
import { all } from '../../lib/pages'
import { configChanged } from '../../lib/query'
import { shown } from '../../lib/text'
import { Button, Command, Mode, ProblemNote, Sending, Sheet, toast } from '../../ui'
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
  const [was, setWas] = useState(() => choiceOf(version(modes).value))
  const [choice, setChoice] = useState(was)
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
      configChanged()
      onClose()
    },
  })
  const sections = useMemo(
    () => (choice === was ? undefined : { modes: changed(stored, tool, automation, storedOf(choice)?.mode ?? null) }),
    [choice, was, stored, tool, automation],
  )
  const trial = useSimulation(sections, { tool })
  const whyNot =
    may(choice === 'inherit' ? 'deleteMode' : 'putMode') ??
    (change.collision ? 'Choose a version first.' : trial.whyNot)
  const save = () => !whyNot && change.save(storedOf(choice))
  const drop = () => {
    const theirs = choiceOf(change.drop())
    setWas(theirs)
    setChoice(theirs)
  }
  const keep = () => {
    if (change.collision) setWas(choiceOf(change.collision.theirs))
    change.keep()
  }
  const of = automation ? `automation ${automation}` : 'everybody'
  return (
    <Sheet
      title={`${tool === '*' ? 'All tools' : shown(tool)}, for ${shown(of)}`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" command="send" whyNot={whyNot} busy={change.busy} onClick={save}>
            Save
          </Button>
        </>
      }
    >
      <div className="stack">
        <Sending run={save} whyNot={whyNot} />
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
        {change.collision && <Collision of={change.collision} onKeep={keep} onDrop={drop} />}
        {change.error !== null && <ProblemNote error={change.error} what="Not saved" />}
        <Simulation of={trial} />
        <Command of="countersign policy mode set KEY MODE" />
      </div>
    </Sheet>
  )
}

const saved: Record<ModeOf, string> = {
  allow: 'runs at once',
  require_approval: 'waits for a person',
  deny: 'is denied',
}
