// The sheet in which one setting of policy is made, changed or removed, by the version that the person has seen.
import { type ReactNode, useState } from 'react'
import { Collision } from '../../form/collision'
import { useChange, type Version } from '../../lib/change'
import type { Json } from '../../lib/json'
import { configChanged } from '../../lib/query'
import { Button, Command, Dialog, ProblemNote, Sending, Sheet, toast } from '../../ui'
import { type Sections, Simulation, useSimulation } from '../../ui/simulation'

export interface EditProps<T extends Json> {
  title: string
  // name is the setting in sentences.
  name: string
  base: Version<T>
  draft: T
  onDraft: (draft: T) => void
  read: () => Promise<Version<T>>
  write: (value: T | null, ifMatch: string | undefined) => Promise<unknown>
  // whyNot is why the draft cannot be saved, and whyNotRemove why the setting cannot be removed.
  whyNot: string | undefined
  whyNotRemove: string | undefined
  // removal is the consequence of a removal, and without the policy without the setting, which is simulated.
  removal: string
  without?: Sections
  command: string
  onClose: () => void
  children: ReactNode
}

export function Edit<T extends { [name: string]: Json }>({
  title,
  name,
  base,
  draft,
  onDraft,
  read,
  write,
  whyNot,
  whyNotRemove,
  removal,
  without,
  command,
  onClose,
  children,
}: EditProps<T>) {
  const [removing, setRemoving] = useState(false)
  const change = useChange<T>({
    base,
    read,
    write,
    onSaved: (value) => {
      toast({ text: `${value === null ? 'Removed' : 'Saved'} ${name}.` })
      configChanged()
      onClose()
    },
  })
  const choose = change.collision && 'Choose a version first.'
  const off = choose ?? whyNot
  const save = () => off === undefined && change.save(draft)
  return (
    <Sheet
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button kind="primary" command="send" whyNot={off} busy={change.busy} onClick={save}>
            Save
          </Button>
          {base.value !== null && (
            <Button kind="danger" whyNot={whyNotRemove ?? choose} busy={change.busy} onClick={() => setRemoving(true)}>
              Remove…
            </Button>
          )}
          <Button onClick={onClose}>Cancel</Button>
        </>
      }
    >
      <Sending run={save} whyNot={off} />
      <div className="stack">
        {change.collision && (
          <Collision
            of={change.collision}
            onKeep={change.keep}
            onDrop={() => {
              const theirs = change.drop()
              if (theirs === null) onClose()
              else onDraft(theirs)
            }}
          />
        )}
        {change.error !== null && <ProblemNote error={change.error} what="Not saved" />}
        {children}
        <Command of={command} />
      </div>
      {removing && (
        <Dialog
          title={`Remove ${name}?`}
          onClose={() => setRemoving(false)}
          actions={
            <>
              <Button onClick={() => setRemoving(false)}>Keep it</Button>
              <Button
                kind="danger"
                onClick={() => {
                  setRemoving(false)
                  change.save(null)
                }}
              >
                Remove
              </Button>
            </>
          }
        >
          <div className="stack">
            <p>{removal}</p>
            <Removal of={without} />
          </div>
        </Dialog>
      )}
    </Sheet>
  )
}

function Removal({ of }: { of: Sections | undefined }) {
  return <Simulation of={useSimulation(of)} />
}
