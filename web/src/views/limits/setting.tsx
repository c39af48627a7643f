// A setting that is edited in a sheet: what changes is shown before it is saved, and both versions where two people
// changed it.
import { type ReactNode, useState } from 'react'
import { Collision } from '../../form/collision'
import { Changes } from '../../form/text'
import { type ChangeOptions, useChange } from '../../lib/change'
import type { Json } from '../../lib/json'
import { diff } from '../../lib/pointer'
import { queries } from '../../lib/query'
import { Button, ProblemNote, Sending, Sheet, toast } from '../../ui'

interface SettingProps<T extends Json, D> extends Omit<ChangeOptions<T>, 'onSaved'> {
  title: string
  // name is the setting in a sentence, and list the list that it is in.
  name: string
  list: string
  draftOf: (value: T | null) => D
  // parse returns the value of a draft. It throws a RangeError where the draft is wrong.
  parse: (draft: D) => T
  fields: (draft: D, set: (part: Partial<D>) => void) => ReactNode
  // effect shows the effect of a value.
  effect?: (value: T) => ReactNode
  whyNot: string | undefined
  // remove is the word for removing the setting, where that is possible.
  remove?: { word: string; done: string; whyNot: string | undefined }
  onClose: () => void
}

// refresh has a list read again.
export const refresh = (list: string) => void queries.invalidateQueries({ queryKey: ['config', 'limits', list] })

export function Setting<T extends Json, D>(props: SettingProps<T, D>) {
  const { title, name, list, draftOf, parse, fields, effect, whyNot, remove, onClose } = props
  const [first] = useState(props.base)
  const [draft, setDraft] = useState(() => draftOf(first.value))
  const change = useChange<T>({
    ...props,
    onSaved: (value) => {
      toast({ text: `${name} is ${value === null ? (remove?.done ?? 'removed') : 'saved'}.` })
      refresh(list)
      onClose()
    },
  })
  let value: T | undefined
  let wrong: string | undefined
  try {
    value = parse(draft)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    wrong = error.message
  }
  const changes = value === undefined ? [] : diff(first.value ?? undefined, value)
  const off =
    whyNot ??
    wrong ??
    (change.collision ? 'Choose one of the versions.' : changes.length === 0 ? 'Nothing is changed.' : undefined)
  const save = () => !off && value !== undefined && change.save(value)
  return (
    <Sheet
      title={title}
      onClose={onClose}
      actions={
        <>
          {remove && first.etag && (
            <Button
              kind="danger"
              whyNot={remove.whyNot ?? (change.collision && 'Choose one of the versions.')}
              busy={change.busy}
              onClick={() => change.save(null)}
            >
              {remove.word}
            </Button>
          )}
          <Button onClick={onClose}>Close</Button>
          <Button kind="primary" command="send" whyNot={off} busy={change.busy} onClick={save}>
            Save
          </Button>
        </>
      }
    >
      <Sending run={save} whyNot={off} />
      <div className="stack">
        {fields(draft, (part) => setDraft({ ...draft, ...part }))}
        {wrong && (
          <p className="error" role="alert">
            {wrong}
          </p>
        )}
        {changes.length > 0 && !change.collision && (
          <section aria-label="Before and after">
            <h3>Before and after</h3>
            <Changes changes={changes} />
          </section>
        )}
        {value !== undefined && effect?.(value)}
        {change.collision && (
          <Collision
            of={change.collision}
            onKeep={change.keep}
            onDrop={() => {
              change.drop()
              refresh(list)
              onClose()
            }}
          />
        )}
        {change.error !== null && <ProblemNote error={change.error} what="Not saved" />}
      </div>
    </Sheet>
  )
}
